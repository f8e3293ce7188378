/* SPDX-License-Identifier: Apache-2.0
 * Which faults a schedule has, when they strike, and how they end. Every class draws from a chance
 * of its own, so that leaving one out changes the others as little as can be. */
#include "tests/sim/sim.h"

#include <string.h>

static struct sim_chance *chance(enum sim_fault fault)
{
    return &sim.fault_chance[fault];
}

static bool timed(enum sim_fault fault)
{
    switch (fault) {
    case FAULT_CUT:
    case FAULT_GATE_CUT:
    case FAULT_GATE_SUFFIX:
    case FAULT_GATE_EMPTY:
    case FAULT_FAILOVER:
    case FAULT_OOM:
    case FAULT_PAUSE:
    case FAULT_RESUME:
    case FAULT_REPLAY:
    case FAULT_REBUILD:
    case FAULT_CLOSE:
    case FAULT_CHECKER_DEAD:
    case FAULT_CLOCK_GATE:
    case FAULT_CLOCK_LEDGER:
        return true;
    default:
        break;
    }
    return false;
}

void fault_plan(void)
{
    static const uint32_t percents[] = {2, 8, 25};
    sim.loss_percent = percents[sim_below(chance(FAULT_LOSS), 3)];
    sim.duplicate_percent = percents[sim_below(chance(FAULT_DUPLICATE), 3)];
    sim.late_percent = 1 + sim_below(chance(FAULT_LATE), 4);
    sim.crash_per_mille = 1 + sim_below(&sim.chance, 12);
    sim.gate_ms = sim_percent(&sim.chance, 30) ? 40 : 2;
    for (int fault = 0; fault < FAULT_COUNT; fault++) {
        if ((sim.faults >> fault & 1u) == 0 || !timed((enum sim_fault)fault)) {
            continue;
        }
        const uint32_t often = 1 + sim_below(chance((enum sim_fault)fault), 2);
        for (uint32_t i = 0; i < (fault == FAULT_CLOSE ? 1 : often); i++) {
            sim_at(sim_between(chance((enum sim_fault)fault),
                               fault == FAULT_CLOSE ? 1800 : sim.calm_until + 100, sim.heal_at - 1),
                   EVENT_FAULT, 0, (uint16_t)fault, 0);
        }
    }
    if (sim.faults >> FAULT_SKEW & 1u) {
        sim_occurred(FAULT_SKEW);
        sim.redis[0].clock_offset = sim_between(chance(FAULT_SKEW), -1500, 1500);
        sim.redis[1].clock_offset = sim_between(chance(FAULT_SKEW), -1500, 1500);
        sim.ledger_offset = sim_between(chance(FAULT_SKEW), -1500, 1500);
    }
}

/* ---- Redis ---- */

static void keep_earlier(enum sim_fault fault)
{
    redis_copy(&sim.earlier, &sim.redis[sim.primary].data);
    sim.earlier_at = sim.now;
    sim_at(sim.now + sim_between(chance(fault), 50, 1500), EVENT_UNDO, 0, (uint16_t)fault, 0);
}

static void restart(enum sim_fault fault)
{
    struct sim_redis *redis = &sim.redis[sim.primary];
    oracle_excuse();
    if (fault == FAULT_GATE_EMPTY) {
        redis_flush(&redis->data);
    } else {
        redis_copy(&redis->data, &sim.earlier);
    }
    gate_new_run(sim.primary);
}

/* The replica is behind; who is connected to the old primary stays there until it is told. */
static void fail_over(void)
{
    const int other = 1 - sim.primary;
    oracle_excuse();
    redis_copy(&sim.redis[other].data, &sim.earlier);
    gate_new_run(other);
    sim.primary = other;
    for (uint8_t node = 0; node < NODE_PEOPLE; node++) {
        if (sim.nodes[node].connection.up && sim_percent(chance(FAULT_FAILOVER), 50)) {
            gate_break(node);
        }
    }
    sim_at(sim.now + sim_between(chance(FAULT_FAILOVER), 100, 3000), EVENT_UNDO, 1, FAULT_FAILOVER,
           (uint32_t)(1 - other));
}

static void end_old_primary(int gate)
{
    if (gate == sim.primary || !sim.redis[gate].up) {
        return;
    }
    SIM_NOTE("the old primary ends");
    oracle_excuse();
    sim.redis[gate].up = false;
    for (uint8_t node = 0; node < NODE_PEOPLE; node++) {
        if (sim.nodes[node].connection.up && sim.nodes[node].connection.gate == gate) {
            gate_break(node);
        }
    }
}

/* ---- striking ---- */

static void cut(void)
{
    uint8_t node = (uint8_t)sim_below(chance(FAULT_CUT), NODE_PEOPLE);
    node = sim.nodes[node].exists ? node : (uint8_t)(node & ~1u);
    sim.nodes[node].cut = true;
    SIM_NOTE("%s is cut off", sim_node_name(node));
    sim_at(sim.now + sim_between(chance(FAULT_CUT), 50, 4000), EVENT_UNDO, node, FAULT_CUT, 0);
}

static void break_one(void)
{
    static const uint8_t connected[] = {NODE_RESERVE, NODE_RESERVE + 1, NODE_INVARIANT,
                                        NODE_INVARIANT + 1};
    const uint8_t node = connected[sim_below(chance(FAULT_GATE_CUT), 4)];
    if (sim.nodes[node].connection.up) {
        gate_break(node);
    }
}

static void kill_checkers(void)
{
    for (uint8_t node = NODE_INVARIANT; node < NODE_INVARIANT + TWO; node++) {
        if (sim.nodes[node].up) {
            sim_crash(node, sim_between(chance(FAULT_CHECKER_DEAD), 1000, 4000));
        }
    }
}

static int64_t step_of(enum sim_fault fault)
{
    const int64_t ms = sim_between(chance(fault), 100, 2000);
    return sim_percent(chance(fault), 50) ? ms : -ms;
}

void fault_strike(enum sim_fault fault)
{
    if (sim.healing) {
        return;
    }
    SIM_NOTE("fault %d strikes", fault);
    if (fault != FAULT_REPLAY) {
        sim_occurred(fault);
    }
    switch (fault) {
    case FAULT_CUT:
        cut();
        break;
    case FAULT_GATE_CUT:
        break_one();
        break;
    case FAULT_GATE_SUFFIX:
    case FAULT_FAILOVER:
        keep_earlier(fault);
        break;
    case FAULT_GATE_EMPTY:
        restart(fault);
        break;
    case FAULT_OOM:
        sim.redis[sim.primary].out_of_memory = true;
        sim_at(sim.now + sim_between(chance(fault), 100, 2500), EVENT_UNDO, 0, (uint16_t)fault, 0);
        break;
    case FAULT_PAUSE:
        operator_pause();
        break;
    case FAULT_RESUME:
        operator_resume();
        break;
    case FAULT_REPLAY:
        operator_replay();
        break;
    case FAULT_REBUILD:
        operator_rebuild();
        break;
    case FAULT_CLOSE:
        operator_close();
        break;
    case FAULT_CHECKER_DEAD:
        kill_checkers();
        break;
    case FAULT_CLOCK_GATE:
        sim.redis[sim.primary].clock_offset += step_of(fault);
        break;
    case FAULT_CLOCK_LEDGER:
        sim.ledger_offset += step_of(fault);
        break;
    default:
        break;
    }
}

void fault_undo(enum sim_fault fault, uint8_t node)
{
    switch (fault) {
    case FAULT_CUT:
        sim.nodes[node].cut = false;
        break;
    case FAULT_OOM:
        sim.redis[0].out_of_memory = false;
        sim.redis[1].out_of_memory = false;
        break;
    case FAULT_GATE_SUFFIX:
        if (!sim.healing) {
            SIM_NOTE("Redis restarts with what it was %lld ms ago",
                     (long long)(sim.now - sim.earlier_at));
            restart(fault);
        }
        break;
    case FAULT_FAILOVER:
        if (node != 0) {
            end_old_primary(1 - sim.primary);
        } else if (!sim.healing && !sim.redis[1 - sim.primary].up) {
            SIM_NOTE("failover to a replica %lld ms behind", (long long)(sim.now - sim.earlier_at));
            fail_over();
        }
        break;
    default:
        break;
    }
}

/* Everything that fails is over: who is dead lives, who is cut off is heard. */
void fault_heal(void)
{
    SIM_NOTE("healing");
    sim.healing = true;
    fault_undo(FAULT_OOM, 0);
    end_old_primary(1 - sim.primary);
    for (uint8_t node = 0; node < NODE_PEOPLE; node++) {
        sim.nodes[node].cut = false;
        if (!sim.nodes[node].up && sim.nodes[node].exists) {
            sim.nodes[node].incarnation++;
            sim_start(node);
        }
    }
    sim.alarmed_since = false;
    sim.rebuilt_at = sim.now - 1000;
}
