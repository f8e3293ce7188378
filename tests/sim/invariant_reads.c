/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/invariant_reads.h"

#include <string.h>

enum { PAGE = 4, SLOTS_MAX = 2, MORE = -1 };

/* ---- the gate ---- */

static bool wrong_type(const struct reserve_answer *answer)
{
    return answer->words != NULL &&
           memmem(answer->words[0].text, answer->words[0].length, "WRONGTYPE", 9) != NULL;
}

static bool numbers(const struct reserve_answer *answer, size_t first, uint64_t *const *out,
                    size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t value = 0;
        if (!reserve_word_number(answer, first + i, &value)) {
            return false;
        }
        *out[i] = (uint64_t)value;
    }
    return true;
}

/* look  1 now 2 format 3 epoch 4 run id 5 replication id 6 armed 7 sequence 8 items, five per item
 */
static bool read_ctl(const struct reserve_answer *answer, uint64_t epoch, uint32_t item_count,
                     struct invariant_look *look)
{
    uint64_t format = 0, own_epoch = 0, items = 0;
    bool fine = numbers(answer, 2, (uint64_t *const[]){&format, &own_epoch}, 2) && format == 1 &&
                own_epoch == epoch &&
                reserve_word_copy(answer, 4, look->run_id, sizeof look->run_id) &&
                reserve_word_copy(answer, 5, look->replication_id, sizeof look->replication_id) &&
                numbers(answer, 7, (uint64_t *const[]){&look->sequence, &items}, 2);
    look->armed = fine && reserve_word_is(answer, 6, "1");
    look->item_count = (uint32_t)items;
    for (uint32_t i = 0; fine && i < item_count && i < items; i++) {
        struct invariant_item *item = &look->items[i];
        uint64_t *const fields[] = {&item->initial, &item->stock, &item->held, &item->settled,
                                    &item->free_bits};
        fine = numbers(answer, 9 + (size_t)i * 5, fields, 5);
    }
    return fine;
}

static enum invariant_result read_look(int gate, struct invariant_node *checker)
{
    const struct invariant_round *round = &checker->core.round;
    const bool first = round->step == INVARIANT_LOOK1;
    struct invariant_look *look = first ? &checker->look1 : &checker->look2;
    struct reserve_answer answer;
    gate_check(gate, round->epoch, &answer);
    memset(look, 0, offsetof(struct invariant_look, items));
    if (answer.ending != RESERVE_ENDED) {
        look->present = first && wrong_type(&answer);
        return wrong_type(&answer) ? INVARIANT_GARBAGE : INVARIANT_UNREAD;
    }
    if (!reserve_word_number(&answer, 1, &look->gate_ms)) {
        return INVARIANT_UNREAD;
    }
    look->present = reserve_word_is(&answer, 0, "look");
    look->readable =
        look->present && read_ctl(&answer, round->epoch, checker->view.item_count, look);
    return first && !(look->readable && look->armed) ? INVARIANT_LACKING : INVARIANT_READ;
}

static const struct redis_key *key_of(int gate, uint64_t epoch, int name)
{
    const struct reserve_keys *names = sim_keys(epoch);
    return redis_find(&sim.redis[gate].data, names->text[name], names->lengths[name]);
}

static uint32_t units_in(const char *text)
{
    uint32_t count = text[0] != '\0';
    for (; *text != '\0'; text++) {
        count += *text == ',' || *text == ';';
    }
    return count;
}

void invariant_read_change(const struct redis_log *log, struct ledger_log *entry)
{
    entry->readable =
        log->readable && invariant_log_change(log->kind, strlen(log->kind), units_in(log->units),
                                              &entry->change) == 0;
}

static enum invariant_log_step take(struct invariant_log *log, const struct ledger_log *row)
{
    const struct invariant_log_entry entry = {.sequence = row->sequence,
                                              .change = row->change,
                                              .stock_after = row->stock_after,
                                              .readable = row->readable};
    return invariant_log_take(log, &entry);
}

static uint64_t stock_of(const struct invariant_look *look)
{
    uint64_t stock = 0;
    for (uint32_t i = 0; i < look->item_count; i++) {
        stock += look->items[i].stock;
    }
    return stock;
}

static int read_log(int gate, struct invariant_node *checker)
{
    struct invariant_log *log = &checker->core.logs[0];
    const struct memory_redis *data = &sim.redis[gate].data;
    const struct redis_key *key = key_of(gate, checker->core.round.epoch, 8);
    uint32_t seen = 0;
    if (key != NULL && key->type != REDIS_STREAM) {
        return INVARIANT_GARBAGE;
    }
    for (uint16_t at = key != NULL ? key->first : 0;
         at != 0 && log->sequence < checker->look1.sequence && seen < PAGE;
         at = data->log[at - 1].next) {
        const struct redis_log *entry = &data->log[at - 1];
        struct ledger_log row = {.sequence = entry->sequence, .stock_after = entry->stock_after};
        if (entry->sequence <= log->sequence) {
            continue;
        }
        seen++;
        invariant_read_change(entry, &row);
        const enum invariant_log_step step = take(log, &row);
        if (step != INVARIANT_LOG_TAKEN) {
            return step == INVARIANT_LOG_GAP ? INVARIANT_LACKING : INVARIANT_TORN;
        }
    }
    if (log->sequence < checker->look1.sequence) {
        return seen == PAGE ? MORE : INVARIANT_LACKING;
    }
    return invariant_log_meets(log, checker->look1.sequence, stock_of(&checker->look1))
               ? INVARIANT_READ
               : INVARIANT_TORN;
}

static void add_entry(struct invariant_node *checker, const struct redis_entry *from,
                      enum invariant_place place)
{
    const bool first = checker->core.round.step < INVARIANT_LEDGER;
    struct invariant_entry *entry =
        first ? &checker->r1[checker->r1_count++] : &checker->r2[checker->r2_count++];
    struct tg_hold_record record;
    *entry = (struct invariant_entry){.places = place};
    if (tg_base32_id_decode(from->field + 4, (size_t)from->field_length - 4, entry->id) != 0) {
        entry->places |= INVARIANT_GARBLED;
    }
    const bool unitless =
        place == INVARIANT_RELEASED && memmem(from->value, from->value_length, " - - ", 5) != NULL;
    if (place == INVARIANT_UNACKED || unitless) {
        return;
    }
    if (tg_hold_record_parse(from->value, from->value_length, &record) != 0) {
        entry->places |= INVARIANT_GARBLED;
        return;
    }
    for (uint32_t i = 0; i < record.unit_count; i++) {
        entry->units_tag =
            invariant_units_tag(entry->units_tag, record.units[i].item, record.units[i].unit);
    }
    for (uint32_t i = 0; i < record.unit_count; i++) {
        entry->slots |= UINT64_C(1) << record.slots[i];
    }
    entry->unit_count = record.unit_count;
    entry->user_tag = record.user[1];
}

/* "SLOT:RESERVATION,SLOT:RESERVATION": a claim for each, as invariant_wire_buyer. Slots are digits.
 */
static void add_claims(struct invariant_node *checker, const struct redis_entry *from)
{
    enum { CLAIM = 2 + TG_RESERVATION_ID_LENGTH };
    for (uint32_t at = 0; at + CLAIM <= from->value_length; at += CLAIM + 1) {
        const char *text = from->value + at;
        struct invariant_entry *last =
            checker->claim_count > 0 ? &checker->claims[checker->claim_count - 1] : NULL;
        struct invariant_entry claim = {.places = INVARIANT_CLAIMED,
                                        .user_tag = (uint64_t)from->field[1],
                                        .slots = UINT64_C(1) << (text[0] - '0'),
                                        .unit_count = 1};
        if (tg_base32_id_decode(text + 6, TG_BASE32_ID_LENGTH, claim.id) != 0) {
            claim.places |= INVARIANT_GARBLED;
        }
        if (last && at > 0 && memcmp(last->id, claim.id, sizeof claim.id) == 0) {
            last->slots |= claim.slots;
            last->unit_count++;
        } else {
            checker->claims[checker->claim_count++] = claim;
        }
    }
}

static int read_scan(int gate, struct invariant_node *checker)
{
    static const struct {
        int key;
        enum invariant_place place;
    } scans[] = {[INVARIANT_HELD1] = {2, INVARIANT_HELD},
                 [INVARIANT_UNACKED1] = {3, INVARIANT_UNACKED},
                 [INVARIANT_SETTLED1] = {4, INVARIANT_SETTLED},
                 [INVARIANT_RELEASED1] = {5, INVARIANT_RELEASED},
                 [INVARIANT_BUYERS] = {6, INVARIANT_CLAIMED},
                 [INVARIANT_HELD2] = {2, INVARIANT_HELD},
                 [INVARIANT_SETTLED2] = {4, INVARIANT_SETTLED},
                 [INVARIANT_RELEASED2] = {5, INVARIANT_RELEASED}};
    const enum invariant_step step = checker->core.round.step;
    const struct redis_key *key = key_of(gate, checker->core.round.epoch, scans[step].key);
    const struct redis_entry *entries[PAGE];
    if (key == NULL) {
        return INVARIANT_READ;
    }
    if (key->type != (step == INVARIANT_UNACKED1 ? REDIS_SET : REDIS_HASH)) {
        return INVARIANT_GARBAGE;
    }
    if (checker->r1_count + PAGE > SIM_ENTRIES || checker->r2_count + PAGE > SIM_ENTRIES ||
        checker->claim_count + PAGE * SLOTS_MAX > SIM_ENTRIES) {
        return INVARIANT_UNREAD;
    }
    const size_t count =
        redis_scan(&sim.redis[gate].data, key, checker->cursor, PAGE, entries, &checker->cursor);
    for (size_t i = 0; i < count; i++) {
        if (step == INVARIANT_BUYERS) {
            add_claims(checker, entries[i]);
        } else {
            add_entry(checker, entries[i], scans[step].place);
        }
    }
    return checker->cursor == 0 ? INVARIANT_READ : MORE;
}

static enum invariant_result read_maps(int gate, struct invariant_node *checker)
{
    checker->free_tag = 0;
    for (uint32_t item = 0; item < checker->view.item_count; item++) {
        const struct redis_key *map =
            key_of(gate, checker->core.round.epoch, RESERVE_PLAIN_KEYS + (int)item);
        if (map != NULL) {
            checker->free_tag =
                invariant_free_tag(checker->free_tag, item, map->bitmap, map->bitmap_length);
        }
    }
    return INVARIANT_READ;
}

static int read_gate(uint8_t node, struct invariant_node *checker)
{
    const struct sim_connection *connection = &sim.nodes[node].connection;
    const struct sim_redis *redis = &sim.redis[connection->gate];
    const enum invariant_step step = checker->core.round.step;
    if (!connection->up || !redis->up) {
        return INVARIANT_UNREAD;
    }
    if (step == INVARIANT_SERVER) {
        memcpy(checker->server.run_id, redis->run_id, sizeof checker->server.run_id);
        memcpy(checker->server.replication_id, redis->replication_id,
               sizeof checker->server.replication_id);
        checker->server.primary = redis->primary;
        return INVARIANT_READ;
    }
    if (step == INVARIANT_LOOK1 || step == INVARIANT_LOOK2) {
        return read_look(connection->gate, checker);
    }
    if (step == INVARIANT_FREE2) {
        return read_maps(connection->gate, checker);
    }
    return step == INVARIANT_LOG ? read_log(connection->gate, checker)
                                 : read_scan(connection->gate, checker);
}

/* ---- the ledger ---- */

static enum invariant_result read_head(struct invariant_node *checker)
{
    struct invariant_log *log = &checker->core.logs[0];
    const struct ledger *ledger = &sim.ledger;
    log->placed = true;
    log->sequence = 0;
    log->stock_known = false;
    if (ledger->log_epoch != checker->core.round.epoch) {
        return INVARIANT_READ;
    }
    for (uint32_t i = 0; i < ledger->log_count; i++) {
        if (ledger->log[i].sequence <= checker->look1.sequence) {
            log->sequence = ledger->log[i].sequence;
            log->stock = ledger->log[i].stock_after;
            log->stock_known = true;
        }
    }
    return INVARIANT_READ;
}

static enum invariant_result read_fill(struct invariant_node *checker)
{
    struct invariant_log *log = &checker->core.logs[0];
    const struct ledger *ledger = &sim.ledger;
    const uint64_t before = log->sequence;
    for (uint32_t i = 0; i < ledger->log_count && ledger->log_epoch == checker->core.round.epoch;
         i++) {
        const struct ledger_log *row = &ledger->log[i];
        if (row->sequence <= before || row->sequence > checker->look1.sequence) {
            continue;
        }
        const enum invariant_log_step step = take(log, row);
        if (step == INVARIANT_LOG_TORN) {
            return INVARIANT_TORN;
        }
        if (step == INVARIANT_LOG_GAP) {
            break;
        }
    }
    return log->sequence == before ? INVARIANT_LACKING : INVARIANT_READ;
}

static void add_row(struct invariant_node *checker, const struct ledger_row *from)
{
    struct invariant_row *row = &checker->rows[checker->row_count++];
    *row = (struct invariant_row){.user_tag = (uint64_t)('0' + from->user),
                                  .state = from->state,
                                  .unit_count = from->unit_count,
                                  .restocked = from->restocked,
                                  .obeyed = from->obeyed_epoch == sim.ledger.epoch &&
                                            sim.mutant != MUTANT_NO_CHECK_D &&
                                            sim.mutant != MUTANT_OBEY_FOREIGN_GATE};
    memcpy(row->id, sim.ids[from->id].bytes, sizeof row->id);
    for (uint8_t n = 0; n < from->unit_count; n++) {
        const struct ledger_unit *unit = &from->units[n];
        row->units_tag = invariant_units_tag(row->units_tag, unit->item, unit->unit);
        row->slots |= UINT64_C(1) << unit->slot;
        row->live_count += unit->live;
        checker->ledger.holdings_joined++;
        if (unit->live && checker->holding_count < SIM_IDS) {
            struct invariant_holding *holding = &checker->holdings[checker->holding_count++];
            *holding = (struct invariant_holding){.user_tag = row->user_tag,
                                                  .item = unit->item,
                                                  .unit = unit->unit,
                                                  .slot = unit->slot};
            memcpy(holding->id, row->id, sizeof holding->id);
        }
    }
}

static enum invariant_result read_snapshot(struct invariant_node *checker)
{
    const struct ledger *ledger = &sim.ledger;
    struct invariant_ledger *told = &checker->ledger;
    memset(told, 0, sizeof *told);
    told->epoch = ledger->epoch;
    told->generation = 1;
    told->armed = ledger->armed;
    told->closed = ledger->stage == TG_PHASE_CLOSED;
    memcpy(told->run_id, ledger->run_id, sizeof told->run_id);
    memcpy(told->replication_id, ledger->replication_id, sizeof told->replication_id);
    told->shards = 1;
    told->one_owner = true;
    told->one_slot = true;
    told->item_count = ledger->item_count;
    for (uint8_t i = 0; i < ledger->item_count; i++) {
        told->units[i] = ledger->units[i];
    }
    checker->row_count = 0;
    checker->holding_count = 0;
    for (uint16_t i = 0; i < ledger->row_count; i++) {
        const struct ledger_row *row = &ledger->rows[i];
        if (row->present) {
            told->holdings_counted += row->unit_count;
            if (!row->deleted) {
                add_row(checker, row);
            }
        }
    }
    return INVARIANT_READ;
}

void invariant_read_step(uint8_t node, struct invariant_node *checker)
{
    const enum invariant_step step = checker->core.round.step;
    int result;
    if (step == INVARIANT_SERVER) {
        checker->r1_count = 0;
        checker->r2_count = 0;
        checker->claim_count = 0;
        checker->cursor = 0;
    }
    if (step == INVARIANT_HEAD) {
        result = read_head(checker);
    } else if (step == INVARIANT_FILL) {
        result = read_fill(checker);
    } else if (step == INVARIANT_LEDGER) {
        result = read_snapshot(checker);
    } else {
        result = read_gate(node, checker);
    }
    if (result != MORE) {
        checker->cursor = 0;
        invariant_advance(&checker->core, (enum invariant_result)result);
    }
}

/* ---- judging ---- */

static void judge_naively(const struct invariant_node *checker,
                          struct invariant_judgement *judgement)
{
    const uint64_t sum = stock_of(&checker->look1) + checker->holding_count;
    if (judgement->outcome == INVARIANT_CLEAN && sum != judgement->initial) {
        judgement->outcome = INVARIANT_ALARM;
        judgement->findings[INVARIANT_CHECK_C0] =
            (struct invariant_finding){.failures = 1, .note = "the naive sum is not initial"};
    }
}

void invariant_read_judge(struct invariant_node *checker, struct invariant_judgement *out_judgement)
{
    const struct invariant_round *round = &checker->core.round;
    checker->r1_count = invariant_fold(checker->r1, checker->r1_count);
    checker->r2_count = invariant_fold(checker->r2, checker->r2_count);
    invariant_sort(checker->claims, checker->claim_count);
    checker->row_count = invariant_fold_rows(checker->rows, checker->row_count);
    struct invariant_facts facts = {.epoch = round->epoch,
                                    .generation = round->generation,
                                    .shards = round->shards,
                                    .looked = round->looked,
                                    .server = checker->server,
                                    .look1 = &checker->look1,
                                    .look2 = &checker->look2,
                                    .log_torn = round->log_torn,
                                    .garbage = round->garbage,
                                    .complete = round->complete && !round->garbage,
                                    .r1 = checker->r1,
                                    .r1_count = checker->r1_count,
                                    .r2 = checker->r2,
                                    .r2_count = checker->r2_count,
                                    .free_tag = checker->free_tag,
                                    .claims = checker->claims,
                                    .claim_count = checker->claim_count,
                                    .ledger = checker->ledger,
                                    .rows = checker->rows,
                                    .row_count = checker->row_count,
                                    .holdings = checker->holdings,
                                    .holding_count = checker->holding_count};
    invariant_judge(&facts, out_judgement);
    if (sim.mutant == MUTANT_NAIVE_SUM) {
        judge_naively(checker, out_judgement);
    } else if (sim.mutant == MUTANT_BLIND_CHECKER) {
        out_judgement->outcome = INVARIANT_CLEAN;
    }
}
