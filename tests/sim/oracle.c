/* SPDX-License-Identifier: Apache-2.0
 * What must hold after every event, and what must have become of everything in the end. The oracles
 * see both stores at once, which no daemon can. */
#include "tests/sim/oracle_gate.h"

#include <string.h>

/* What the ledger was like after the last statement: verdicts are final. */
static uint8_t was[SIM_IDS];
static bool known[SIM_IDS];

void oracle_begin(void)
{
    memset(known, 0, sizeof known);
}

bool oracle_excused(uint64_t epoch)
{
    return sim.corrupted || epoch <= sim.excused_epoch || (sim.redis[0].up && sim.redis[1].up);
}

void oracle_excuse(void)
{
    if (sim.ledger.epoch > sim.excused_epoch) {
        sim.excused_epoch = sim.ledger.epoch;
    }
}

/* ---- the ledger ---- */

static void check_units(void)
{
    uint32_t owners[SIM_ITEMS][SIM_UNITS] = {0}, of_user[SIM_BUYERS] = {0};
    bool intents[SIM_IDS] = {false};
    for (uint16_t i = 0; i < sim.ledger.row_count; i++) {
        const struct ledger_row *row = &sim.ledger.rows[i];
        if (!ledger_live(row)) {
            continue;
        }
        if (intents[sim.ids[i].intent]) {
            sim_fail("one act of a buyer has two live reservations: %s", sim.ids[i].text);
        }
        intents[sim.ids[i].intent] = true;
        for (uint8_t n = 0; n < row->unit_count; n++) {
            const struct ledger_unit *unit = &row->units[n];
            if (unit->unit >= sim.ledger.units[unit->item]) {
                sim_fail("a unit that does not exist is sold: %s", sim.ids[i].text);
            } else if (++owners[unit->item][unit->unit] > 1) {
                sim_fail("OVERSOLD: unit %u:%u has two live holdings, one is %s", unit->item,
                         unit->unit, sim.ids[i].text);
            }
            if (++of_user[row->user] > sim.ledger.limit) {
                sim_fail("buyer %u holds more than the limit", row->user);
            }
        }
    }
}

static void check_verdict(uint16_t id, const struct ledger_row *row)
{
    const int64_t end_ms = row->expires_ms + sim.ledger.grace_ms;
    if (!known[id] || was[id] == row->state) {
        return;
    }
    if (was[id] != LEDGER_PENDING &&
        !(was[id] == LEDGER_CONFIRMED && row->state == LEDGER_CANCELLED)) {
        sim_fail("a verdict was changed: %s", sim.ids[id].text);
    }
    if (row->state == LEDGER_EXPIRED && sim_ledger_now() < end_ms) {
        sim_fail("expired before its time: %s", sim.ids[id].text);
    }
    if (row->state == LEDGER_CONFIRMED && sim_ledger_now() >= end_ms) {
        sim_fail("confirmed after its time: %s", sim.ids[id].text);
    }
}

void oracle_ledger(void)
{
    if (sim.corrupted) {
        return; /* only the checker has to notice */
    }
    check_units();
    for (uint16_t id = 0; id < sim.ledger.row_count; id++) {
        const struct ledger_row *row = &sim.ledger.rows[id];
        if (!row->present) {
            continue;
        }
        check_verdict(id, row);
        known[id] = true;
        was[id] = row->state;
        if (sim.ids[id].sold && !sim.ids[id].returned && row->state != LEDGER_CONFIRMED) {
            sim_fail("a confirmed sale is lost: %s", sim.ids[id].text);
        }
    }
}

void oracle_answer(uint16_t id, const struct reserve_outcome *outcome)
{
    const struct ledger_row *row = &sim.ledger.rows[id];
    if (outcome->reason == TG_REASON_NONE) {
        if (!row->present || row->tombstone) {
            sim_fail("a 201 without its row: %s", sim.ids[id].text);
        } else if (outcome->unit_count != row->unit_count) {
            sim_fail("a 201 names other units than its row: %s", sim.ids[id].text);
        }
    }
}

void oracle_refused(enum tg_reason reason, uint16_t id)
{
    if ((reason == TG_REASON_UNIT_CONFLICT || reason == TG_REASON_LIMIT_CONFLICT) &&
        !oracle_excused(sim.ledger.epoch)) {
        sim_fail("the gate granted what the ledger must refuse (%s): %s", tg_reason_code(reason),
                 sim.ids[id].text);
    }
}

/* ---- the checker ---- */

void oracle_alarm(uint8_t node, const struct invariant_judgement *judgement)
{
    const struct invariant_node *checker = &sim.invariants[node - NODE_INVARIANT];
    const struct sim_connection *connection = &sim.nodes[node].connection;
    const bool unreachable = judgement->initial == 0 && !connection->up;
    sim.alarmed_since = true;
    if (sim.corrupted || unreachable || oracle_excused(checker->core.round.epoch)) {
        return;
    }
    char detail[256];
    (void)invariant_detail(judgement, detail, sizeof detail);
    sim_fail("a false alarm: %s", detail);
}

/* ---- the end ---- */

static const char *gate_agrees(void)
{
    const struct ledger *ledger = &sim.ledger;
    struct gate_view gate;
    if (!oracle_gate_view(sim.primary, ledger->epoch, &gate)) {
        return "the gate is not there";
    }
    if (gate.held + gate.unacked > 0) {
        return "holds have not ended at the gate";
    }
    uint32_t settled = 0, sold[SIM_ITEMS] = {0}, slots = 0;
    for (uint16_t i = 0; i < ledger->row_count; i++) {
        const struct ledger_row *row = &ledger->rows[i];
        if (!row->present) {
            continue;
        }
        if (row->obeyed_epoch < ledger->epoch) {
            return "a verdict is not obeyed";
        }
        if (row->state == LEDGER_CONFIRMED) {
            settled++;
            slots += row->unit_count;
            for (uint8_t n = 0; n < row->unit_count; n++) {
                sold[row->units[n].item]++;
                if (gate.free[row->units[n].item] >> row->units[n].unit & 1u) {
                    return "a sold unit is free";
                }
            }
        }
    }
    if (settled != gate.settled || slots != gate.slots) {
        return "the gate has other sales than the ledger";
    }
    for (uint8_t item = 0; item < ledger->item_count; item++) {
        if (gate.stock[item] + sold[item] != ledger->units[item] ||
            (uint32_t)__builtin_popcount(gate.free[item]) != gate.stock[item]) {
            return "a unit is neither free nor sold";
        }
    }
    return NULL;
}

const char *oracle_unsettled(void)
{
    const struct ledger *ledger = &sim.ledger;
    const bool closed = ledger->stage == TG_PHASE_CLOSED;
    for (uint16_t i = 0; i < ledger->row_count; i++) {
        if (ledger->rows[i].present && ledger->rows[i].state == LEDGER_PENDING) {
            return "a hold has not ended in the ledger";
        }
    }
    const bool there = ledger->armed && strcmp(ledger->run_id, sim.redis[sim.primary].run_id) == 0;
    if (!there) {
        return closed ? NULL : "the gate is not armed";
    }
    if (!closed && ledger->pause_count > 0) {
        return "the sale is paused";
    }
    if (!closed && ledger->stage == TG_PHASE_SCHEDULED) {
        return "the sale has not opened";
    }
    return gate_agrees();
}
