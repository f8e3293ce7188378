/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/oracle_gate.h"

#include "lib/pure/number.h"

#include <stdio.h>
#include <string.h>

static struct memory_redis *data_of(int gate)
{
    return &sim.redis[gate].data;
}

static int64_t field(struct memory_redis *data, const struct redis_key *ctl, const char *name)
{
    int64_t value = -1;
    const struct redis_entry *entry = redis_get(data, ctl, name, strlen(name));
    if (entry == NULL ||
        tg_integer_parse(entry->value, entry->value_length, 0, INT64_MAX, &value) != 0) {
        return -1;
    }
    return value;
}

static const struct redis_key *key_of(struct memory_redis *data, uint64_t epoch, uint32_t name)
{
    const struct reserve_keys *names = sim_keys(epoch);
    return redis_find(data, names->text[name], names->lengths[name]);
}

static uint32_t count_of(struct memory_redis *data, uint64_t epoch, uint32_t name)
{
    const struct redis_key *key = key_of(data, epoch, name);
    return key != NULL ? key->count : 0;
}

/* Slots in use by all buyers. */
static uint32_t slots_of(struct memory_redis *data, uint64_t epoch)
{
    const struct redis_key *buyers = key_of(data, epoch, 6);
    uint32_t count = 0;
    for (uint16_t at = buyers != NULL ? buyers->first : 0; at != 0;
         at = data->entries[at - 1].next) {
        const struct redis_entry *entry = &data->entries[at - 1];
        for (uint8_t i = 0; i < entry->value_length; i++) {
            count += entry->value[i] == ':';
        }
    }
    return count;
}

static void read_items(struct memory_redis *data, uint64_t epoch, const struct redis_key *ctl,
                       struct gate_view *view)
{
    static const char *const names[SIM_ITEMS][4] = {
        {"initial:0", "stock:0", "held:0", "settled:0"},
        {"initial:1", "stock:1", "held:1", "settled:1"}};
    for (uint8_t item = 0; item < sim.ledger.item_count; item++) {
        const struct redis_key *map = key_of(data, epoch, RESERVE_PLAIN_KEYS + item);
        view->initial[item] = (uint32_t)field(data, ctl, names[item][0]);
        view->stock[item] = (uint32_t)field(data, ctl, names[item][1]);
        view->held_units[item] = (uint32_t)field(data, ctl, names[item][2]);
        view->settled_units[item] = (uint32_t)field(data, ctl, names[item][3]);
        for (uint32_t unit = 0; map != NULL && unit < SIM_UNITS; unit++) {
            view->free[item] |= redis_bit(map, unit) << unit;
        }
    }
}

bool oracle_gate_view(int gate, uint64_t epoch, struct gate_view *out_view)
{
    struct memory_redis *data = data_of(gate);
    const struct redis_key *ctl = key_of(data, epoch, 0);
    memset(out_view, 0, sizeof *out_view);
    if (ctl == NULL || ctl->type != REDIS_HASH) {
        return false;
    }
    read_items(data, epoch, ctl, out_view);
    out_view->pauses = count_of(data, epoch, 1);
    out_view->held = count_of(data, epoch, 2);
    out_view->unacked = count_of(data, epoch, 3);
    out_view->settled = count_of(data, epoch, 4);
    out_view->released = count_of(data, epoch, 5);
    out_view->slots = slots_of(data, epoch);
    out_view->attested_until_ms = field(data, ctl, "attested_until");
    out_view->armed = field(data, ctl, "armed") == 1;
    const struct redis_entry *run = redis_get(data, ctl, "run_id", 6);
    if (run != NULL) {
        memcpy(out_view->run_id, run->value, run->value_length);
    }
    return true;
}

/* The epoch that the keys of a call name: "tg:{s.0}:EPOCH:ctl". */
static uint64_t epoch_of(const struct sim_gate_call *call)
{
    uint64_t epoch = 0;
    for (size_t i = 9; i < call->words[0].length && call->words[0].text[i] != ':'; i++) {
        epoch = epoch * 10 + (uint64_t)(call->words[0].text[i] - '0');
    }
    return epoch;
}

static void check_sums(int gate, uint64_t epoch)
{
    struct gate_view view;
    if (oracle_excused(epoch) || !oracle_gate_view(gate, epoch, &view)) {
        return;
    }
    for (uint8_t item = 0; item < sim.ledger.item_count; item++) {
        if (view.stock[item] + view.held_units[item] + view.settled_units[item] !=
            view.initial[item]) {
            sim_fail("stock + held + settled is not initial at the gate");
        } else if ((uint32_t)__builtin_popcount(view.free[item]) != view.stock[item]) {
            sim_fail("free units are not stock at the gate");
        }
    }
}

/* Held now: was the gate allowed to? The script changes none of what is read here. */
static void check_allowed(int gate, uint64_t epoch)
{
    struct gate_view view;
    if (!oracle_gate_view(gate, epoch, &view)) {
        sim_fail("held at a gate that is not there");
    } else if (view.pauses > 0) {
        sim_fail("held while a pause is in the gate");
    } else if (!view.armed || strcmp(view.run_id, sim.redis[gate].run_id) != 0) {
        sim_fail("held at a gate that is not armed on this Redis");
    } else if (sim_gate_now(gate) >= view.attested_until_ms) {
        sim_fail("held without a fresh attestation");
    } else if (view.attested_until_ms > sim.proved_until_ms[epoch]) {
        sim_fail("held on an attestation that no clean round earned");
    }
}

static void check_free(const struct reserve_answer *answer, uint16_t id, uint64_t epoch)
{
    struct tg_hold_record record;
    if (oracle_excused(epoch) || epoch != sim.ledger.epoch || answer->count < 2 ||
        tg_hold_record_parse(answer->words[1].text, answer->words[1].length, &record) != 0) {
        return;
    }
    for (uint16_t i = 0; i < sim.ledger.row_count; i++) {
        const struct ledger_row *row = &sim.ledger.rows[i];
        for (uint8_t n = 0; ledger_live(row) && i != id && n < row->unit_count; n++) {
            for (uint32_t u = 0; u < record.unit_count; u++) {
                if (record.units[u].item == row->units[n].item &&
                    record.units[u].unit == row->units[n].unit) {
                    sim_fail("the gate grants %s a unit that %s has", sim.ids[id].text,
                             sim.ids[i].text);
                }
            }
        }
    }
}

/* Nobody who won hears that he lost. */
static void check_refusal(const struct reserve_answer *answer, uint16_t id, uint64_t epoch)
{
    if (!(reserve_word_is(answer, 0, "sold_out") || reserve_word_is(answer, 0, "limit") ||
          reserve_word_is(answer, 0, "pass_used")) ||
        epoch != sim.ledger.epoch || !sim.ledger.armed || oracle_excused(epoch)) {
        return;
    }
    for (uint16_t i = 0; i < sim.ledger.row_count; i++) {
        if (ledger_live(&sim.ledger.rows[i]) && sim.ids[i].intent == sim.ids[id].intent) {
            sim_fail("%s won and hears %.*s", sim.ids[id].text, (int)answer->words[0].length,
                     answer->words[0].text);
        }
    }
}

static void check_hold(int gate, const struct sim_gate_call *call,
                       const struct reserve_answer *answer)
{
    const struct redis_word *name = &call->words[call->key_count + 1];
    const int id = sim_id_of(name->text, name->length);
    const uint64_t epoch = epoch_of(call);
    if (id < 0) {
        return;
    }
    if (reserve_word_is(answer, 0, "held")) {
        sim_totals.holds++;
        check_allowed(gate, epoch);
        check_free(answer, (uint16_t)id, epoch);
        check_sums(gate, epoch);
    } else {
        check_refusal(answer, (uint16_t)id, epoch);
    }
}

static void check_release(int gate, const struct sim_gate_call *call)
{
    const struct redis_word *name = &call->words[call->key_count + 2];
    const int id = sim_id_of(name->text, name->length);
    if (id < 0 || sim.corrupted) {
        return;
    }
    const struct ledger_row *row = &sim.ledger.rows[id];
    if (!row->present || (row->state != LEDGER_EXPIRED && row->state != LEDGER_CANCELLED)) {
        sim_fail("released without a verdict: %s", sim.ids[id].text);
    }
    const uint64_t epoch = epoch_of(call);
    uint8_t *releases = &data_of(gate)->releases[id];
    if (*releases == epoch && !oracle_excused(epoch)) {
        sim_fail("released twice: %s", sim.ids[id].text);
    }
    *releases = (uint8_t)epoch;
    check_sums(gate, epoch);
}

void oracle_gate(int gate, const struct sim_gate_call *call, const struct reserve_answer *answer)
{
    if (reserve_word_is(answer, 0, "doubt") && !oracle_excused(epoch_of(call))) {
        sim_fail("a doubt in a sound gate: %s: %.*s",
                 reserve_script_name((enum reserve_script)call->script),
                 (int)(answer->count > 1 ? answer->words[1].length : 0),
                 answer->count > 1 ? answer->words[1].text : "");
    } else if (answer->ending == RESERVE_BROKEN && !oracle_excused(epoch_of(call))) {
        sim_fail("a script broke: %s: %.*s", reserve_script_name((enum reserve_script)call->script),
                 (int)(answer->words != NULL ? answer->words[0].length : 0),
                 answer->words != NULL ? answer->words[0].text : "");
    }
    if (call->script == RESERVE_SCRIPT_HOLD) {
        check_hold(gate, call, answer);
    } else if (call->script == RESERVE_SCRIPT_RELEASE && reserve_word_is(answer, 0, "done")) {
        check_release(gate, call);
    } else if (call->script == RESERVE_SCRIPT_SETTLE && reserve_word_is(answer, 0, "done")) {
        check_sums(gate, epoch_of(call));
    }
}
