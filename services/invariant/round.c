/* SPDX-License-Identifier: Apache-2.0
 * Carries out the reads of a round, one answer at a time. The token of every call is the sale's
 * index and the round's number. */
#include "lib/io/log.h"
#include "lib/io/now.h"
#include "services/invariant/checker.h"
#include "services/invariant/store_gate.h"
#include "services/invariant/store_ledger.h"

#include <stdlib.h>
#include <string.h>

/* Whether the step is done, goes on with its next page, or waits for one that was asked for. */
struct outcome {
    bool more, waits;
    enum invariant_result result;
};
static const struct outcome AGAIN = {.more = true}, WAITS = {.waits = true};

static struct outcome done(enum invariant_result result)
{
    return (struct outcome){.result = result};
}

static uint64_t stock_of(const struct invariant_look *look)
{
    uint64_t stock = 0;
    for (uint32_t i = 0; i < look->item_count; i++) {
        stock += look->items[i].stock;
    }
    return stock;
}

/* ---- growing arrays ---- */

static int grow(void **at, size_t *room, size_t count, size_t size)
{
    if (count < *room) {
        return 0;
    }
    if (count >= TG_MAX_PROOF_ENTRIES) {
        return TG_ERR_FULL;
    }
    const size_t wanted = *room ? *room * 2 : 4096;
    void *grown = realloc(*at, wanted * size);
    if (!grown) {
        return TG_ERR_FULL;
    }
    *at = grown;
    *room = wanted;
    return 0;
}

static int add_entry(struct invariant_entries *entries, const struct invariant_entry *entry)
{
    void *at = entries->at;
    const int error = grow(&at, &entries->room, entries->count, sizeof *entry);
    entries->at = at;
    if (error == 0) {
        entries->at[entries->count++] = *entry;
    }
    return error;
}

static int add_row(void *context, const struct invariant_row *row,
                   const struct invariant_holding *holding_or_null)
{
    struct invariant_work *work = context;
    void *at = work->rows.at;
    int error = grow(&at, &work->rows.room, work->rows.count, sizeof *row);
    work->rows.at = at;
    if (error != 0) {
        return error;
    }
    work->rows.at[work->rows.count++] = *row;
    if (!holding_or_null) {
        return 0;
    }
    at = work->holdings.at;
    error = grow(&at, &work->holdings.room, work->holdings.count, sizeof *holding_or_null);
    work->holdings.at = at;
    if (error == 0) {
        work->holdings.at[work->holdings.count++] = *holding_or_null;
    }
    return error;
}

/* ---- answers of Redis ---- */

static struct outcome read_look(struct invariant *invariant, size_t index, const redisReply *reply)
{
    struct invariant_work *work = invariant->works[index];
    const uint32_t item_count = tg_sales_at(invariant->sales, index)->item_count;
    const struct invariant_round *round = &work->core.round;
    const bool first = round->step == INVARIANT_LOOK1;
    struct invariant_look *look = first ? &work->look1[round->shard] : &work->look2[round->shard];
    if (invariant_wire_look(reply, round->epoch, item_count, look) != 0) {
        return done(INVARIANT_UNREAD);
    }
    if (first && round->shard == 0) {
        work->gate_pause_count = invariant_wire_pauses(reply, item_count, work->gate_pauses);
        invariant_carry_pauses(invariant, index);
    }
    return done(first && !(look->present && look->readable && look->armed) ? INVARIANT_LACKING
                                                                           : INVARIANT_READ);
}

static struct outcome read_log(struct invariant_work *work, const redisReply *reply)
{
    const struct invariant_round *round = &work->core.round;
    const struct invariant_look *look = &work->look1[round->shard];
    struct invariant_log *log = &work->core.logs[round->shard];
    if (reply->type != REDIS_REPLY_ARRAY) {
        return done(INVARIANT_UNREAD);
    }
    for (size_t i = 0; i < reply->elements && log->sequence < look->sequence; i++) {
        struct invariant_wire_log entry;
        if (invariant_wire_log(reply->element[i], &entry) != 0) {
            return done(INVARIANT_TORN);
        }
        const enum invariant_log_step step = invariant_log_take(log, &entry.entry);
        if (step != INVARIANT_LOG_TAKEN) {
            return done(step == INVARIANT_LOG_GAP ? INVARIANT_LACKING : INVARIANT_TORN);
        }
    }
    if (log->sequence < look->sequence) {
        return reply->elements == INVARIANT_LOG_COUNT ? AGAIN : done(INVARIANT_LACKING);
    }
    return done(invariant_log_meets(log, look->sequence, stock_of(look)) ? INVARIANT_READ
                                                                         : INVARIANT_TORN);
}

static int add_claims(struct invariant *invariant, struct invariant_work *work,
                      const redisReply *field, const redisReply *value)
{
    struct invariant_entry claims[TG_MAX_BUYER_LIMIT];
    const uint32_t count = invariant_wire_buyer(field, value, invariant->tag_key, claims);
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        error = add_entry(&work->claims, &claims[i]);
    }
    return error;
}

static int add_hold(struct invariant *invariant, struct invariant_work *work,
                    enum invariant_place place, const redisReply *const pair[2])
{
    struct invariant_entries *entries =
        work->core.round.step < INVARIANT_LEDGER ? &work->r1 : &work->r2;
    struct invariant_entry entry;
    if (place == INVARIANT_UNACKED) {
        invariant_wire_unacked(pair[0], &entry);
    } else {
        invariant_wire_hold(pair[0], pair[1], place, invariant->tag_key, &entry);
    }
    return add_entry(entries, &entry);
}

static int add_page(struct invariant *invariant, struct invariant_work *work,
                    enum invariant_place place, const redisReply *page)
{
    const size_t stride = place == INVARIANT_UNACKED ? 1 : 2;
    int error = 0;
    for (size_t i = 0; error == 0 && i + stride <= page->elements; i += stride) {
        const redisReply *const pair[2] = {page->element[i], page->element[i + stride - 1]};
        error = place == INVARIANT_CLAIMED ? add_claims(invariant, work, pair[0], pair[1])
                                           : add_hold(invariant, work, place, pair);
    }
    return error;
}

/* One map after the other; there is none where no unit was ever free. */
static struct outcome read_map(struct invariant *invariant, size_t index, const redisReply *reply)
{
    struct invariant_work *work = invariant->works[index];
    if (reply->type != REDIS_REPLY_STRING && reply->type != REDIS_REPLY_NIL) {
        return done(INVARIANT_UNREAD);
    }
    if (reply->type == REDIS_REPLY_STRING) {
        work->free_tag = invariant_free_tag(work->free_tag, work->map_item,
                                            (const uint8_t *)reply->str, (size_t)reply->len);
    }
    work->map_item++;
    if (work->map_item < tg_sales_at(invariant->sales, index)->item_count) {
        return AGAIN;
    }
    work->map_item = 0;
    return done(INVARIANT_READ);
}

static int ask_gate(struct invariant *invariant, size_t index);

/* A page of HSCAN or SSCAN into the round's first or second set, or the claims. The next one is
 * asked for before this one is read: Redis and the checker work at the same time. */
static struct outcome read_scan(struct invariant *invariant, size_t index,
                                enum invariant_place place, const redisReply *reply)
{
    struct invariant_work *work = invariant->works[index];
    if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        reply->element[0]->type != REDIS_REPLY_STRING ||
        reply->element[1]->type != REDIS_REPLY_ARRAY ||
        (size_t)reply->element[0]->len >= sizeof work->cursor) {
        return done(INVARIANT_UNREAD);
    }
    memcpy(work->cursor, reply->element[0]->str, reply->element[0]->len + 1);
    const bool finished = strcmp(work->cursor, "0") == 0;
    if (!finished && ask_gate(invariant, index) != 0) {
        return done(INVARIANT_UNREAD);
    }
    tg_kv_flush(invariant->kv);
    if (add_page(invariant, work, place, reply->element[1]) != 0) {
        return done(INVARIANT_UNREAD);
    }
    return finished ? done(INVARIANT_READ) : WAITS;
}

static enum invariant_place place_of(enum invariant_step step)
{
    if (step == INVARIANT_UNACKED1) {
        return INVARIANT_UNACKED;
    }
    if (step == INVARIANT_SETTLED1 || step == INVARIANT_SETTLED2) {
        return INVARIANT_SETTLED;
    }
    if (step == INVARIANT_RELEASED1 || step == INVARIANT_RELEASED2) {
        return INVARIANT_RELEASED;
    }
    if (step == INVARIANT_BUYERS) {
        return INVARIANT_CLAIMED;
    }
    return INVARIANT_HELD;
}

static enum tg_gate_key key_of(enum invariant_place place)
{
    switch (place) {
    case INVARIANT_HELD:
    case INVARIANT_GARBLED:
        break;
    case INVARIANT_UNACKED:
        return TG_GATE_KEY_UNACKED;
    case INVARIANT_SETTLED:
        return TG_GATE_KEY_SETTLED;
    case INVARIANT_RELEASED:
        return TG_GATE_KEY_RELEASED;
    case INVARIANT_CLAIMED:
        return TG_GATE_KEY_BUYERS;
    }
    return TG_GATE_KEY_HELD;
}

static struct outcome read_gate(struct invariant *invariant, size_t index, int status,
                                const redisReply *reply)
{
    struct invariant_work *work = invariant->works[index];
    const enum invariant_step step = work->core.round.step;
    const enum invariant_reply kind = invariant_wire_reply(status, reply);
    if (kind == INVARIANT_REPLY_WRONG_TYPE) {
        if (step == INVARIANT_LOOK1) {
            work->look1[work->core.round.shard] = (struct invariant_look){.present = true};
        }
        return done(INVARIANT_GARBAGE);
    }
    if (kind == INVARIANT_REPLY_UNUSABLE) {
        return done(INVARIANT_UNREAD);
    }
    if (step == INVARIANT_SERVER) {
        return done(invariant_wire_server(reply, &work->server) == 0 ? INVARIANT_READ
                                                                     : INVARIANT_UNREAD);
    }
    if (step == INVARIANT_LOOK1 || step == INVARIANT_LOOK2) {
        return read_look(invariant, index, reply);
    }
    if (step == INVARIANT_LOG) {
        return read_log(work, reply);
    }
    if (step == INVARIANT_FREE2) {
        return read_map(invariant, index, reply);
    }
    return read_scan(invariant, index, place_of(step), reply);
}

/* ---- answers of PostgreSQL ---- */

static struct outcome read_fill(struct invariant_work *work, const PGresult *result)
{
    struct invariant_log *log = &work->core.logs[work->core.round.shard];
    const int count = PQntuples(result);
    const uint64_t before = log->sequence;
    for (int i = 0; i < count; i++) {
        struct invariant_log_entry entry;
        if (invariant_ledger_read_fill(result, i, &entry) != 0) {
            return done(INVARIANT_UNREAD);
        }
        const enum invariant_log_step step = invariant_log_take(log, &entry);
        if (step == INVARIANT_LOG_TORN) {
            return done(INVARIANT_TORN);
        }
        if (step == INVARIANT_LOG_GAP) {
            break;
        }
    }
    if (log->sequence == before) {
        return done(INVARIANT_LACKING);
    }
    return count == INVARIANT_FILL_COUNT ? AGAIN : done(INVARIANT_READ);
}

static struct outcome read_snapshot(struct invariant *invariant, struct invariant_work *work,
                                    const PGresult *result)
{
    const struct invariant_ledger_sink sink = {
        .context = work, .tag_key = invariant->tag_key, .row = add_row};
    work->rows.count = 0;
    work->holdings.count = 0;
    const int error = invariant_ledger_read(result, &sink, &work->ledger);
    if (error != 0) {
        tg_log(TG_LOG_ERROR, "proof.snapshot_unreadable",
               TG_TEXT_FIELD("error", tg_error_text(error)));
    }
    work->rows.count = invariant_fold_rows(work->rows.at, work->rows.count);
    return done(error == 0 ? INVARIANT_READ : INVARIANT_UNREAD);
}

static struct outcome read_ledger(struct invariant *invariant, size_t index, int status,
                                  const PGresult *result)
{
    struct invariant_work *work = invariant->works[index];
    const struct invariant_round *round = &work->core.round;
    if (status != 0) {
        tg_log(TG_LOG_WARN, "proof.ledger_unread", TG_TEXT_FIELD("error", tg_error_text(status)),
               TG_TEXT_FIELD("detail", result ? PQresultErrorMessage(result) : ""));
        return done(INVARIANT_UNREAD);
    }
    if (round->step == INVARIANT_HEAD) {
        return done(invariant_ledger_read_head(result, &work->core.logs[round->shard]) == 0
                        ? INVARIANT_READ
                        : INVARIANT_UNREAD);
    }
    if (round->step == INVARIANT_FILL) {
        return read_fill(work, result);
    }
    struct outcome outcome = read_snapshot(invariant, work, result);
    if (round->step == INVARIANT_BUYERS && outcome.result == INVARIANT_READ) {
        work->core.round.ledger_read = true;
        return WAITS;
    }
    return outcome;
}

/* ---- going on ---- */

static void finish_answer(struct invariant *invariant, size_t index, const struct outcome *outcome)
{
    struct invariant_work *work = invariant->works[index];
    if (outcome->waits) {
        return;
    }
    if (!outcome->more) {
        invariant_advance(&work->core, outcome->result);
        memcpy(work->cursor, "0", 2);
    }
    invariant_proceed(invariant, index);
}

/* The sale's index, when the token belongs to its present round. */
static bool present_round(const struct invariant *invariant, uint64_t token, size_t *out_index)
{
    const size_t index = token >> 32;
    if (index >= TG_MAX_SALES || !invariant->works[index] ||
        invariant->works[index]->core.round.number != (uint32_t)token ||
        invariant->works[index]->core.round.step == INVARIANT_REST) {
        return false;
    }
    *out_index = index;
    return true;
}

static void on_gate(void *context, uint64_t token, int status, const redisReply *reply)
{
    struct invariant *invariant = context;
    size_t index = 0;
    if (present_round(invariant, token, &index)) {
        const struct outcome outcome = read_gate(invariant, index, status, reply);
        finish_answer(invariant, index, &outcome);
    }
}

static void on_ledger(void *context, uint64_t token, int status, const PGresult *result)
{
    struct invariant *invariant = context;
    size_t index = 0;
    if (present_round(invariant, token, &index)) {
        const struct outcome outcome = read_ledger(invariant, index, status, result);
        finish_answer(invariant, index, &outcome);
    }
}

static int ask_gate(struct invariant *invariant, size_t index)
{
    struct invariant_work *work = invariant->works[index];
    const struct invariant_round *round = &work->core.round;
    const struct tg_sale *view = tg_sales_at(invariant->sales, index);
    const struct invariant_gate gate = {
        .kv = invariant->kv, .sale = view->name, .shard = round->shard, .epoch = round->epoch};
    const struct invariant_answer answer = {
        .on_reply = on_gate, .context = invariant, .token = (uint64_t)index << 32 | round->number};
    if (round->step == INVARIANT_SERVER) {
        return invariant_gate_server(invariant->kv, &answer);
    }
    if (round->step == INVARIANT_LOOK1 || round->step == INVARIANT_LOOK2) {
        return invariant_gate_look(&gate, view->item_count, &answer);
    }
    if (round->step == INVARIANT_LOG) {
        return invariant_gate_log(&gate, work->core.logs[round->shard].sequence,
                                  INVARIANT_LOG_COUNT, &answer);
    }
    if (round->step == INVARIANT_FREE2) {
        return invariant_gate_map(&gate, work->map_item, &answer);
    }
    return invariant_gate_scan(&gate, key_of(place_of(round->step)), work->cursor, &answer);
}

static int ask_ledger(struct invariant *invariant, size_t index)
{
    struct invariant_work *work = invariant->works[index];
    const struct invariant_round *round = &work->core.round;
    const uint64_t sequence = work->look1[round->shard].sequence;
    const struct invariant_question question = {.pg = invariant->pg,
                                                .sale = tg_sales_at(invariant->sales, index)->name,
                                                .on_result = on_ledger,
                                                .context = invariant,
                                                .token = (uint64_t)index << 32 | round->number};
    if (round->step == INVARIANT_HEAD) {
        return invariant_ledger_head(&question, round->epoch, round->shard, sequence);
    }
    if (round->step == INVARIANT_FILL) {
        return invariant_ledger_fill(&question, round->epoch, round->shard,
                                     work->core.logs[round->shard].sequence, sequence);
    }
    return invariant_ledger_snapshot(&question, round->generation);
}

/* P and the rows of buyers both belong between R1 and R2, in either order: both are on their way at
 * once. What was read before is put in order while the stores work. */
static int ask(struct invariant *invariant, size_t index)
{
    struct invariant_work *work = invariant->works[index];
    struct invariant_round *round = &work->core.round;
    if (round->step == INVARIANT_HEAD || round->step == INVARIANT_FILL) {
        return ask_ledger(invariant, index);
    }
    const bool with_ledger = !round->ledger_asked &&
                             (round->step == INVARIANT_BUYERS || round->step == INVARIANT_LEDGER);
    int error = with_ledger ? ask_ledger(invariant, index) : 0;
    if (error == 0 && round->step != INVARIANT_LEDGER) {
        error = ask_gate(invariant, index);
    }
    if (with_ledger) {
        round->ledger_asked = true;
        tg_kv_flush(invariant->kv);
        work->r1.count = invariant_fold(work->r1.at, work->r1.count);
    } else if (round->step == INVARIANT_HELD2 && round->shard == 0) {
        tg_kv_flush(invariant->kv);
        invariant_sort(work->claims.at, work->claims.count);
    }
    return error;
}

static void judge(struct invariant_work *work)
{
    const struct invariant_round *round = &work->core.round;
    work->r2.count = invariant_fold(work->r2.at, work->r2.count);
    struct invariant_facts facts = {.epoch = round->epoch,
                                    .generation = round->generation,
                                    .shards = round->shards,
                                    .looked = round->looked,
                                    .server = work->server,
                                    .look1 = work->look1,
                                    .look2 = work->look2,
                                    .log_torn = round->log_torn,
                                    .garbage = round->garbage,
                                    .complete = round->complete && !round->garbage,
                                    .r1 = work->r1.at,
                                    .r1_count = work->r1.count,
                                    .r2 = work->r2.at,
                                    .r2_count = work->r2.count,
                                    .free_tag = work->free_tag,
                                    .claims = work->claims.at,
                                    .claim_count = work->claims.count,
                                    .ledger = work->ledger,
                                    .rows = work->rows.at,
                                    .row_count = work->rows.count,
                                    .holdings = work->holdings.at,
                                    .holding_count = work->holdings.count};
    invariant_judge(&facts, &work->judgement);
}

void invariant_proceed(struct invariant *invariant, size_t index)
{
    struct invariant_work *work = invariant->works[index];
    struct invariant_round *round = &work->core.round;
    if (round->step == INVARIANT_SERVER) {
        work->r1.count = 0;
        work->r2.count = 0;
        work->claims.count = 0;
        work->map_item = 0;
        work->free_tag = 0;
        memcpy(work->cursor, "0", 2);
    }
    if (round->step != INVARIANT_REST && round->step != INVARIANT_JUDGE) {
        if (ask(invariant, index) == 0) {
            return;
        }
        invariant_advance(&work->core, INVARIANT_UNREAD);
    }
    if (round->step == INVARIANT_JUDGE) {
        judge(work);
    } else {
        invariant_judge_void(&work->judgement, "a read failed or its outcome is unknown");
    }
    invariant_report(invariant, index);
    invariant_rest(&work->core);
}
