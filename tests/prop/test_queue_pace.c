/* SPDX-License-Identifier: Apache-2.0
 * The watermark under any mixture of pace, stock, phases, arrivals and late ticks:
 *   - it rises only, and never beyond the next index;
 *   - it rises only while open, active, with a fresh pace and fresh stock that has free units;
 *   - it never rises faster than the pace allows, whatever was blocked before;
 *   - it never rises for more people than there is room for;
 *   - whenever it may rise and somebody waits, it does so within a minute, however many do not
 * come. */
#include "tests/prop/choice.h"

#include "services/queue/core_parts.h"
#include "tests/unit/queue_bench.h"

enum { STEPS = 400, MINUTE_STEPS = 1200 };

static struct queue_bench bench;
static int64_t pace_at_ms, stock_at_ms;

static void change(struct choice *choice)
{
    static const enum tg_phase phases[] = {TG_PHASE_OPEN, TG_PHASE_OPEN, TG_PHASE_OPEN,
                                           TG_PHASE_PAUSED, TG_PHASE_SOLD_OUT};
    switch (choice_below(choice, 10)) {
    case 0:
        bench.view.phase = phases[choice_below(choice, 5)];
        break;
    case 1:
        bench.admission = choice_below(choice, 4) != 0;
        break;
    case 2:
        bench.gate = choice_below(choice, 4) != 0;
        break;
    case 3:
        bench.pace_milli = choice_below(choice, 5000000);
        break;
    case 4: /* people take units, or units come back */
        bench.free_units = choice_below(choice, 2) == 0
                               ? bench.free_units - choice_below(choice, bench.free_units + 1)
                               : bench.free_units + choice_below(choice, 300);
        break;
    case 5:
        bench_arrive(&bench, bench.brain.index_end + choice_below(choice, 2000));
        break;
    default:
        break;
    }
}

static bool may_rise(void)
{
    int64_t now = bench.now.mono.ms;
    return queue_acts(&bench.brain) && bench.view.phase == TG_PHASE_OPEN &&
           bench.brain.stock.free > 0 && now - pace_at_ms <= QUEUE_PACE_STALE_MS &&
           now - stock_at_ms <= QUEUE_STOCK_STALE_MS;
}

static void let_pass(int64_t ms)
{
    bench.now.mono.ms += ms;
    bench.now.wall.ms += ms;
    if (bench.admission) {
        bench_pace(&bench, 1, bench.pace_milli);
        pace_at_ms = bench.now.mono.ms;
    }
    if (bench.gate) {
        bench_stock(&bench);
        stock_at_ms = bench.now.mono.ms;
    }
    bench_tick(&bench);
}

static void check_rise(uint64_t before, int64_t passed_ms, bool could)
{
    uint64_t haste = bench.brain.presence.haste_permille;
    uint64_t risen = bench.brain.watermark - before;
    HOLDS(bench.brain.watermark >= before);
    HOLDS(could || risen == 0);
    HOLDS(risen <= bench.brain.pace_milli * haste / 1000 * (uint64_t)passed_ms / 1000000 + 1);
}

/* Ranks of a gap are nobody: they need no room. */
static void check_bounds(uint64_t coming_before)
{
    uint64_t most = queue_room_people(&bench.brain.room, bench.brain.stock.free);
    HOLDS(bench.brain.watermark <= bench.brain.index_end);
    uint64_t coming = queue_presence_coming(&bench.brain.presence, 1);
    HOLDS(coming <= most || coming <= coming_before);
}

static void property(struct choice *choice)
{
    bench_begin(&bench, "queue-a");
    bench.free_units = choice_below(choice, 3000);
    bench_activate(&bench);
    pace_at_ms = bench.now.mono.ms;
    stock_at_ms = bench.now.mono.ms;
    bench_arrive(&bench, choice_below(choice, 50000));
    for (int i = 0; i < STEPS; i++) {
        change(choice);
        uint64_t before = bench.brain.watermark;
        uint64_t coming = queue_presence_coming(&bench.brain.presence, 1);
        int64_t ms = choice_below(choice, 20) == 0 ? 900 : BENCH_STEP_MS;
        let_pass(ms);
        check_rise(before, ms, may_rise());
        check_bounds(coming);
    }
    bench.view.phase = TG_PHASE_OPEN;
    bench.admission = true;
    bench.gate = true;
    bench.pace_milli = 1000000;
    bench.free_units += 1;
    bench_run(&bench, BENCH_ACTIVE_MS + 1000);
    bench_arrive(&bench, bench.brain.watermark + 1000);
    uint64_t before = bench.brain.watermark;
    for (int i = 0; i < MINUTE_STEPS && bench.brain.watermark == before; i++) {
        let_pass(BENCH_STEP_MS);
    }
    HOLDS(bench.brain.watermark > before);
}

PROPERTY_MAIN(property, 300, 2048)
