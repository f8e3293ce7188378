/* SPDX-License-Identifier: Apache-2.0
 * One schedule from its seed: set up, let things happen, heal, and see everything end well. */
#include "tests/sim/oracle_gate.h"

#include <string.h>

enum {
    EVENTS_LEAST = 300,
    EVENTS_MOST = 60000,
    SETTLE_MS = 60000,
    ROUNDS_TO_NOTICE = 6, /* of two checkers: two each, and those that were under way */
    HEAL_MS = 200
};

static uint32_t chosen_faults(uint64_t seed)
{
    static const uint8_t percents[FAULT_COUNT] = {
#define SIM_FAULT(id, name, percent, what) percent,
#include "tests/sim/faults.def"
#undef SIM_FAULT
    };
    struct sim_chance chance = {seed ^ 0x5157a4d1c0ffee00u};
    uint32_t faults = 0;
    for (int fault = 0; fault < FAULT_COUNT; fault++) {
        faults |= (uint32_t)sim_percent(&chance, percents[fault]) << fault;
    }
    return faults;
}

/* A mutant that shows only around a rebuild or a failover gets those, and none that would excuse
 * it. */
static uint32_t suited(uint32_t faults, enum sim_mutant mutant)
{
    enum { BIT = 1 };
    const uint32_t rebuild =
        BIT << FAULT_REBUILD | BIT << FAULT_LATE | BIT << FAULT_LOSS | BIT << FAULT_REORDER;
    const uint32_t failover = BIT << FAULT_FAILOVER | BIT << FAULT_REORDER | BIT << FAULT_CUT;
    const uint32_t excuse = BIT << FAULT_GATE_SUFFIX | BIT << FAULT_GATE_EMPTY |
                            BIT << FAULT_FAILOVER | BIT << FAULT_CLOSE | BIT << FAULT_CORRUPT;
    switch (mutant) {
    case MUTANT_NO_FENCE:
    case MUTANT_NO_TOMBSTONE_FENCE:
    case MUTANT_OBEY_ANY_EPOCH:
        return (faults | rebuild) & ~excuse;
    case MUTANT_OBEY_FOREIGN_GATE:
        return (faults | failover) & ~(uint32_t)(BIT << FAULT_CORRUPT | BIT << FAULT_CLOSE);
    default:
        break;
    }
    return faults;
}

static void define_sale(void)
{
    struct sim_chance *chance = &sim.chance;
    struct ledger *ledger = &sim.ledger;
    ledger->item_count = (uint8_t)(1 + sim_percent(chance, 40));
    for (uint8_t item = 0; item < ledger->item_count; item++) {
        ledger->units[item] = (uint8_t)sim_between(chance, 1, 6);
    }
    ledger->limit = (uint8_t)sim_between(chance, 1, 2);
    ledger->hold_ms = sim_between(chance, 300, 1000);
    ledger->grace_ms = sim_between(chance, 50, 200);
    ledger->extend_ms = sim_between(chance, 200, 1200);
    ledger->extensions_max = 2;
    ledger->lease_ms = sim_between(chance, 2500, 3000);
    ledger->epoch = 1;
    ledger->control_sequence = 1;
    ledger->stage = TG_PHASE_SCHEDULED;
    sim.buyer_count = (uint32_t)sim_between(chance, 2, SIM_BUYERS);
    sim.attentive = sim_percent(chance, 60);
    sim.calm_until = sim_percent(chance, 25) ? 0 : 700;
    sim.heal_at = sim_between(chance, 2600, 4500);
}

static void set_up(uint64_t seed)
{
    sim.seed = seed;
    memset(&sim.now, 0, offsetof(struct sim, stale) - offsetof(struct sim, now));
    sim.chance.state = seed * 0x2545f4914f6cdd1du + 1;
    sim.bus_chance.state = seed * 0x9e6c63d0876a9a47u + 2;
    sim.people_chance.state = seed * 0xda942042e4dd58b5u + 3;
    for (int fault = 0; fault < FAULT_COUNT; fault++) {
        sim.fault_chance[fault].state = (seed + 11) * (0xd1342543de82ef95u + 2u * (uint64_t)fault);
    }
    gate_script_reset();
    oracle_begin();
    for (int gate = 0; gate < TWO; gate++) {
        sim.redis[gate].clock_offset = 0;
        sim.redis[gate].up = false;
        sim.redis[gate].primary = true;
        redis_flush(&sim.redis[gate].data);
    }
    redis_flush(&sim.earlier);
    sim.earlier_at = 0;
    define_sale();
    gate_new_run(0);
    for (uint8_t node = 0; node < NODES; node++) {
        sim.nodes[node].mono_offset = sim_between(&sim.chance, 0, 1000000);
        sim.nodes[node].exists =
            node >= NODE_PEOPLE || node % TWO == 0 || sim_percent(&sim.chance, 50);
        if (node < NODE_PEOPLE && sim.nodes[node].exists) {
            sim_start(node);
        }
    }
    sim.nodes[NODE_PEOPLE].up = true;
    sim.nodes[NODE_OPERATOR].up = true;
}

static void hand_tick(const struct sim_event *event)
{
    switch (sim_kind(event->node)) {
    case NODE_RESERVE:
        reserve_tick(event->node, event->a);
        break;
    case NODE_LEDGER:
        ledger_node_tick(event->node);
        break;
    case NODE_SWEEPER:
        sweeper_tick(event->node);
        break;
    case NODE_INVARIANT:
        invariant_tick(event->node);
        break;
    default:
        break;
    }
}

/* Settled, given up, or not yet. */
static void look_at_end(void)
{
    if (sim.corrupted) {
        if (sim.alarmed_since) {
            sim.over = sim.events >= EVENTS_LEAST;
        } else if (sim.rounds_since >= ROUNDS_TO_NOTICE) {
            sim_fail("not noticed in two rounds: %s", sim.corruption);
        }
        return;
    }
    const char *why = oracle_unsettled();
    const bool proved = sim.ledger.armed && sim.ledger.clean_rounds > 0 &&
                        sim.ledger.stage != TG_PHASE_CLOSED && sim.now > sim.rebuilt_at + 1000 &&
                        sim.now > sim.heal_at + 1500;
    if ((sim.faults >> FAULT_CORRUPT & 1u) && proved && !sim.alarmed_since) {
        sim.rounds_since = 0;
        sim.corrupted = fault_corrupt();
        if (sim.corrupted) {
            return;
        }
    }
    if (why == NULL) {
        sim.over = sim.events >= EVENTS_LEAST;
    } else if (sim.now > sim.end_at) {
        sim_fail("not settled: %s", why);
    }
}

static void hand_timed(const struct sim_event *event)
{
    switch ((enum sim_event_kind)event->kind) {
    case EVENT_TICK:
        hand_tick(event);
        break;
    case EVENT_READ:
        invariant_read(event->node, event->a);
        break;
    case EVENT_EXPORT:
        invariant_export(event->node);
        break;
    case EVENT_CONNECT:
        if (!sim.nodes[event->node].connection.up) {
            gate_connect(event->node);
        }
        break;
    default:
        break;
    }
}

static void hand(const struct sim_event *event)
{
    const bool same = sim.nodes[event->node].incarnation == event->b;
    switch ((enum sim_event_kind)event->kind) {
    case EVENT_DELIVER:
        bus_deliver(event->a);
        break;
    case EVENT_UNANSWERED:
        bus_unanswered(event->a, event->b);
        break;
    case EVENT_GATE_RUN:
        gate_call_run(event->a);
        break;
    case EVENT_GATE_REPLY:
        gate_call_reply(event->a);
        break;
    case EVENT_TICK:
    case EVENT_READ:
    case EVENT_EXPORT:
    case EVENT_CONNECT:
        if (same && sim.nodes[event->node].up) {
            hand_timed(event);
        }
        break;
    case EVENT_BUYER:
        people_turn(event->a);
        break;
    case EVENT_FAULT:
        fault_strike((enum sim_fault)event->a);
        break;
    case EVENT_UNDO:
        fault_undo((enum sim_fault)event->a, event->node);
        break;
    case EVENT_RESTART:
        if (same && !sim.nodes[event->node].up) {
            sim_start(event->node);
        }
        break;
    case EVENT_OPERATOR:
        operator_turn();
        break;
    case EVENT_HEAL:
        if (!sim.healing) {
            fault_heal();
            sim.end_at = sim.now + SETTLE_MS;
        } else {
            look_at_end();
        }
        sim_at(sim.now + HEAL_MS, EVENT_HEAL, 0, 0, 0);
        break;
    case EVENT_KINDS:
        break;
    }
}

void schedule_run(uint64_t seed, uint32_t fault_mask, bool trace)
{
    struct sim_event event;
    sim.trace = trace;
    sim.faults = suited(chosen_faults(seed), sim.mutant) & fault_mask;
    set_up(seed);
    fault_plan();
    people_start();
    sim_at(100, EVENT_OPERATOR, NODE_OPERATOR, 0, 0);
    sim_at(sim.heal_at, EVENT_HEAL, 0, 0, 0);
    while (!sim.over && !sim.failed && sim_next(&event)) {
        bus_timeouts(event.at);
        sim.now = event.at;
        sim.events++;
        hand(&event);
        if (sim.events > EVENTS_MOST) {
            sim_fail("more than %d events: something goes round", EVENTS_MOST);
        }
    }
    if (!sim.failed && sim.events < EVENTS_LEAST) {
        sim_fail("only %u events", sim.events);
    }
    sim_totals.schedules++;
    sim_totals.events += sim.events;
    if (sim_totals.events_least == 0 || sim.events < sim_totals.events_least) {
        sim_totals.events_least = sim.events;
    }
}
