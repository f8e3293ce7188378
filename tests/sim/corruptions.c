/* SPDX-License-Identifier: Apache-2.0
 * Lasting corruptions of either store, behind the back of every daemon. */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <string.h>

enum {
    KEY_CTL = 0,
    KEY_HELD = 2,
    KEY_UNACKED = 3,
    KEY_SETTLED = 4,
    KEY_RELEASED = 5,
    KEY_BUYERS = 6
};

static struct memory_redis *data(void)
{
    return &sim.redis[sim.primary].data;
}

static struct redis_key *key_of(int name)
{
    const struct reserve_keys *names = sim_keys(sim.ledger.epoch);
    return redis_find(data(), names->text[name], names->lengths[name]);
}

/* An entry of `name` whose reservation the ledger has, or NULL. */
static struct redis_entry *known_entry(int name, const struct ledger_row **out_row)
{
    const struct redis_key *key = key_of(name);
    for (uint16_t at = key != NULL ? key->first : 0; at != 0; at = data()->entries[at - 1].next) {
        struct redis_entry *entry = &data()->entries[at - 1];
        const int id = sim_id_of(entry->field, entry->field_length);
        if (id >= 0 && sim.ledger.rows[id].present) {
            *out_row = &sim.ledger.rows[id];
            return entry;
        }
    }
    return NULL;
}

static struct redis_entry *live_entry(const struct ledger_row **out_row)
{
    struct redis_entry *entry = known_entry(KEY_HELD, out_row);
    return entry != NULL ? entry : known_entry(KEY_SETTLED, out_row);
}

static bool add_to(const char *name, int64_t change)
{
    struct redis_entry *entry = redis_get(data(), key_of(KEY_CTL), name, strlen(name));
    if (entry == NULL || entry->value_length > 2) {
        return false;
    }
    const int64_t value = entry->value[0] - '0' + change;
    if (entry->value_length != 1 || value < 0 || value > 9) {
        return false;
    }
    entry->value[0] = (char)('0' + value);
    return true;
}

static bool rogue_incr(void)
{
    return add_to("stock:0", 1);
}

static bool rogue_decr(void)
{
    return add_to("stock:0", -1);
}

static bool free_taken_unit(void)
{
    const struct ledger_row *row = NULL;
    if (live_entry(&row) == NULL || !ledger_live(row)) {
        return false;
    }
    struct redis_key *map = key_of(RESERVE_PLAIN_KEYS + row->units[0].item);
    if (map == NULL || redis_bit(map, row->units[0].unit)) {
        return false;
    }
    map->bitmap[row->units[0].unit / 8] |= (uint8_t)(1u << (7 - row->units[0].unit % 8));
    return true;
}

static bool delete_from(int name)
{
    const struct ledger_row *row = NULL;
    const struct redis_entry *entry = known_entry(name, &row);
    if (entry == NULL) {
        return false;
    }
    const struct redis_entry copy = *entry;
    struct redis_key *unacked = key_of(KEY_UNACKED);
    if (unacked != NULL) {
        (void)redis_remove(data(), unacked, copy.field, copy.field_length);
    }
    return redis_remove(data(), key_of(name), copy.field, copy.field_length);
}

static bool delete_hold(void)
{
    return delete_from(KEY_HELD);
}

static bool delete_sale(void)
{
    return delete_from(KEY_SETTLED);
}

static bool delete_release(void)
{
    return delete_from(KEY_RELEASED);
}

/* The script itself, on nobody's word. */
static bool forge(enum reserve_script script, int name, enum ledger_state state)
{
    char seal[RESERVE_SEAL_BYTES];
    struct reserve_call call;
    struct reserve_answer answer;
    struct redis_word words[RESERVE_CALL_WORDS];
    const struct ledger_row *row = NULL;
    const struct redis_entry *entry = known_entry(name, &row);
    if (entry == NULL || row->state != state) {
        return false;
    }
    const struct sim_redis *redis = &sim.redis[sim.primary];
    reserve_seal(redis->run_id, redis->replication_id, seal);
    const struct reserve_gate_name gate = {sim_keys(sim.ledger.epoch), seal, "rogue"};
    reserve_call_obey(&call, &gate, script, sim.ids[row->id].text, 0);
    for (int i = 0; i < call.count; i++) {
        words[i] = (struct redis_word){call.words[i], call.lengths[i]};
    }
    const struct gate_machine machine = {.data = data(), .now_ms = sim_gate_now(sim.primary)};
    const struct gate_words text = {call.key_count, call.count, words};
    if (state == LEDGER_PENDING) { /* else its end would soon make it true */
        sim.ledger.rows[row->id].expires_ms += 60000;
    }
    gate_script_run(&machine, script, &text, &answer);
    return reserve_word_is(&answer, 0, "done");
}

static bool forged_release(void)
{
    return forge(RESERVE_SCRIPT_RELEASE, KEY_HELD, LEDGER_PENDING);
}

static bool forged_return(void)
{
    return forge(RESERVE_SCRIPT_RELEASE, KEY_SETTLED, LEDGER_CONFIRMED);
}

static bool forged_settle(void)
{
    return forge(RESERVE_SCRIPT_SETTLE, KEY_HELD, LEDGER_PENDING);
}

static bool row_deleted(void)
{
    const struct ledger_row *row = NULL;
    for (int name = KEY_SETTLED; name <= KEY_RELEASED; name++) {
        if (known_entry(name, &row) != NULL) {
            sim.ledger.rows[row->id].deleted = true;
            return true;
        }
    }
    return false;
}

static bool row_unexpired(void)
{
    const struct ledger_row *row = NULL;
    if (known_entry(KEY_RELEASED, &row) == NULL || row->unit_count == 0) {
        return false;
    }
    struct ledger_row *changed = &sim.ledger.rows[row->id];
    changed->state = LEDGER_CONFIRMED;
    for (uint8_t n = 0; n < changed->unit_count; n++) {
        changed->units[n].live = true;
    }
    return true;
}

/* A unit has a second owner: the unique index is gone. */
static bool second_owner(void)
{
    struct ledger_row *first = NULL;
    for (uint16_t i = 0; i < sim.ledger.row_count; i++) {
        struct ledger_row *row = &sim.ledger.rows[i];
        if (!ledger_live(row) || row->state != LEDGER_CONFIRMED) {
            continue;
        }
        if (first != NULL) {
            row->units[0].item = first->units[0].item;
            row->units[0].unit = first->units[0].unit;
            return true;
        }
        first = row;
    }
    return false;
}

static bool unit_edited(void)
{
    const struct ledger_row *row = NULL;
    struct redis_entry *entry = live_entry(&row);
    char *at = entry != NULL ? memmem(entry->value, entry->value_length, ":", 1) : NULL;
    if (at == NULL) {
        return false;
    }
    at[1] = at[1] == '0' ? '1' : '0';
    struct tg_hold_record record; /* one that repeats a unit would be garbled, not edited */
    return tg_hold_record_parse(entry->value, entry->value_length, &record) == 0;
}

static bool user_edited(void)
{
    const struct ledger_row *row = NULL;
    struct redis_entry *entry = live_entry(&row);
    if (entry == NULL) {
        return false;
    }
    entry->value[entry->value_length - 1]++;
    return true;
}

/* A row of buyers that names a live reservation loses it: its buyer may buy once more. */
static bool buyer_edited(void)
{
    const struct redis_key *key = key_of(KEY_BUYERS);
    for (uint16_t at = key != NULL ? key->first : 0; at != 0; at = data()->entries[at - 1].next) {
        struct redis_entry *entry = &data()->entries[at - 1];
        if (entry->value_length > 0) {
            entry->value_length = 0;
            return true;
        }
    }
    return false;
}

static bool epoch_edited(void)
{
    struct redis_entry *entry = redis_get(data(), key_of(KEY_CTL), "epoch", 5);
    if (entry == NULL) {
        return false;
    }
    entry->value[entry->value_length - 1] =
        entry->value[entry->value_length - 1] == '9' ? '0' : '9';
    return true;
}

static bool wrong_type(void)
{
    struct redis_key *key = key_of(KEY_SETTLED);
    if (key == NULL) {
        return false;
    }
    redis_unlink(data(), key);
    key->type = REDIS_STRING;
    return true;
}

/* As before it was sold: counters and log in order, but the ledger has noted the order as done. */
static bool sale_undone(void)
{
    const struct ledger_row *row = NULL;
    const struct redis_entry *entry = known_entry(KEY_SETTLED, &row);
    char held[16], settled[16];
    if (entry == NULL || row->state != LEDGER_CONFIRMED || row->obeyed_epoch < sim.ledger.epoch) {
        return false;
    }
    (void)snprintf(held, sizeof held, "held:%u", row->units[0].item);
    (void)snprintf(settled, sizeof settled, "settled:%u", row->units[0].item);
    if (!add_to(settled, -row->unit_count) || !add_to(held, row->unit_count)) {
        return false;
    }
    const struct redis_entry copy = *entry;
    const struct reserve_keys *names = sim_keys(sim.ledger.epoch);
    struct redis_key *key = redis_take(data(), names->text[KEY_HELD], names->lengths[KEY_HELD]);
    key->type = REDIS_HASH;
    redis_set(data(), key, &(struct redis_word){copy.field, copy.field_length},
              &(struct redis_word){copy.value, copy.value_length});
    return redis_remove(data(), key_of(KEY_SETTLED), copy.field, copy.field_length);
}

static bool earlier_has(int name, const char *id)
{
    const struct reserve_keys *names = sim_keys(sim.ledger.epoch);
    const struct redis_key *key = redis_find(&sim.earlier, names->text[name], names->lengths[name]);
    return key != NULL && redis_get(&sim.earlier, key, id, TG_RESERVATION_ID_LENGTH) != NULL;
}

/* What an older state undoes for good: a reservation the ledger knows, or an order it has noted as
 * done. Anything else is on its way and would come to the gate once more. */
static bool earlier_lacks_something(void)
{
    for (uint16_t id = 0; id < sim.ledger.row_count; id++) {
        const struct ledger_row *row = &sim.ledger.rows[id];
        const char *text = sim.ids[id].text;
        if (!row->present || row->deleted || earlier_has(KEY_RELEASED, text)) {
            continue;
        }
        const bool settled = earlier_has(KEY_SETTLED, text);
        const bool done = row->obeyed_epoch == sim.ledger.epoch;
        if ((!settled && !earlier_has(KEY_HELD, text)) ||
            (done && !(settled && row->state == LEDGER_CONFIRMED))) {
            return true;
        }
    }
    return false;
}

/* A unit sold is counted as held. */
static bool counters_moved(void)
{
    return add_to("settled:0", -1) && add_to("held:0", 1);
}

static bool exchange_bits(uint8_t item)
{
    struct redis_key *map = key_of(RESERVE_PLAIN_KEYS + item);
    for (uint32_t unit = 0; map != NULL && unit + 1 < sim.ledger.units[item]; unit++) {
        if (redis_bit(map, unit) != redis_bit(map, unit + 1)) {
            map->bitmap[unit / 8] ^= (uint8_t)(1u << (7 - unit % 8));
            map->bitmap[(unit + 1) / 8] ^= (uint8_t)(1u << (7 - (unit + 1) % 8));
            return true;
        }
    }
    return false;
}

/* As many units free as before, and one of them is sold. */
static bool free_units_exchanged(void)
{
    return exchange_bits(0) || (sim.ledger.item_count > 1 && exchange_bits(1));
}

/* The state of a while ago, under the same process. */
static bool snapshot_restored(void)
{
    const struct reserve_keys *names = sim_keys(sim.ledger.epoch);
    const struct redis_key *old =
        redis_find(&sim.earlier, names->text[KEY_CTL], names->lengths[KEY_CTL]);
    const struct redis_entry *armed =
        sim.earlier_at != 0 && old != NULL ? redis_get(&sim.earlier, old, "armed", 5) : NULL;
    if (armed == NULL || armed->value[0] != '1' || !earlier_lacks_something()) {
        return false;
    }
    redis_copy(data(), &sim.earlier);
    return true;
}

bool fault_corrupt(void)
{
    static const struct {
        const char *name;
        bool (*apply)(void);
    } corruptions[] = {{"rogue increment", rogue_incr},
                       {"rogue decrement", rogue_decr},
                       {"taken unit freed", free_taken_unit},
                       {"deleted hold", delete_hold},
                       {"deleted sale", delete_sale},
                       {"deleted release", delete_release},
                       {"forged release", forged_release},
                       {"settled moved to released", forged_return},
                       {"forged settlement", forged_settle},
                       {"ledger row deleted", row_deleted},
                       {"ledger row revived", row_unexpired},
                       {"second owner of a unit", second_owner},
                       {"unit edited", unit_edited},
                       {"user edited", user_edited},
                       {"epoch edited", epoch_edited},
                       {"wrong type", wrong_type},
                       {"buyer edited", buyer_edited},
                       {"sale undone", sale_undone},
                       {"counters moved", counters_moved},
                       {"free units exchanged", free_units_exchanged},
                       {"snapshot restored", snapshot_restored}};
    enum { COUNT = sizeof corruptions / sizeof corruptions[0] };
    const uint32_t first = sim_below(&sim.fault_chance[FAULT_CORRUPT], COUNT);
    for (uint32_t i = 0; i < COUNT; i++) {
        const uint32_t at = (first + i) % COUNT;
        if (corruptions[at].apply()) {
            sim.corruption = corruptions[at].name;
            sim.corrupted = true;
            sim_occurred(FAULT_CORRUPT);
            SIM_NOTE("CORRUPTION %s", sim.corruption);
            return true;
        }
    }
    return false;
}
