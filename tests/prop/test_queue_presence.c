/* SPDX-License-Identifier: Apache-2.0
 * A long line of whom some are not there any more, the shipped core, and edges that tell how many
 * asked for a pass:
 *   - whatever share is absent, also when it changes at once, the line always moves, and never
 *     faster than the pace times the bound;
 *   - while everybody comes, the watermark keeps to the pace;
 *   - in the long run as many people come in as the pace says, as far as the bound allows it;
 *   - a crowd that comes back at once exceeds the pace by a bounded number of people;
 *   - edges that are late hide people: nothing speeds up;
 *   - live passes and holds stay within the cap, as well as presence can be estimated. */
#include "tests/prop/choice.h"

#include "services/queue/core_parts.h"
#include "tests/unit/queue_bench.h"

enum { DELAY_STEPS_MAX = 64, SECOND_STEPS = 1000 / BENCH_STEP_MS, TELL_STEPS = 10 };

static struct queue_bench bench;
static struct {
    uint64_t absent_permille;
    unsigned delay_steps;
    uint64_t coming_milli[DELAY_STEPS_MAX]; /* thousandths of people */
    uint64_t asked_milli;                   /* since the last presence */
    uint64_t asked;                         /* in all */
    size_t step;
    bool late;                 /* edges tell nothing */
    uint64_t slowest, fastest; /* rise of the watermark in a second */
} crowd;

static void tell_presence(void)
{
    struct queue_event event = {.kind = QUEUE_PRESENCE};
    event.presence.edge = "edge-a";
    event.presence.generation = 1;
    event.presence.index_end = bench.brain.index_end;
    event.presence.passes_asked = crowd.asked_milli / 1000;
    crowd.asked_milli %= 1000;
    bench_feed(&bench, &event);
}

static void step(void)
{
    uint64_t before = bench.brain.watermark;
    uint64_t haste = bench.brain.presence.haste_permille;
    bench_run(&bench, BENCH_STEP_MS);
    HOLDS(bench.brain.presence.haste_permille <= haste + haste / QUEUE_HASTE_STEP);
    size_t slot = crowd.step++ % DELAY_STEPS_MAX;
    uint64_t come = (bench.brain.watermark - before) * (1000 - crowd.absent_permille);
    crowd.coming_milli[(slot + crowd.delay_steps) % DELAY_STEPS_MAX] += come;
    crowd.asked_milli += crowd.coming_milli[slot];
    crowd.asked += crowd.coming_milli[slot];
    crowd.coming_milli[slot] = 0;
    if (crowd.step % TELL_STEPS == 0 && !crowd.late) {
        tell_presence();
    }
    if (bench.brain.index_end < bench.brain.watermark + 20000) {
        bench_arrive(&bench, bench.brain.watermark + 50000);
    }
}

/* People who asked in this time. */
static uint64_t run(int seconds)
{
    uint64_t asked = crowd.asked;
    crowd.slowest = UINT64_MAX;
    crowd.fastest = 0;
    for (int second = 0; second < seconds; second++) {
        uint64_t before = bench.brain.watermark;
        for (int i = 0; i < SECOND_STEPS; i++) {
            step();
        }
        uint64_t risen = bench.brain.watermark - before;
        crowd.slowest = risen < crowd.slowest ? risen : crowd.slowest;
        crowd.fastest = risen > crowd.fastest ? risen : crowd.fastest;
    }
    return (crowd.asked - asked) / 1000;
}

static void check_speed(uint64_t pace)
{
    HOLDS(crowd.slowest >= pace * 9 / 10);
    HOLDS(crowd.fastest <= pace * QUEUE_HASTE_MAX_PERMILLE / 1000 + 1);
}

/* As many as the pace says; fewer where even the fastest watermark finds too few, or where few
 * people a second leave the estimate at its prior. */
static void check_admitted(uint64_t asked, uint64_t pace, uint64_t seconds)
{
    uint64_t reach = (1000 - crowd.absent_permille) * QUEUE_HASTE_MAX_PERMILLE / 1000;
    uint64_t share = reach < 1000 ? reach : 1000;
    HOLDS(asked <= pace * seconds * 125 / 100 + QUEUE_PRESENCE_PRIOR);
    HOLDS(pace < 200 || asked >= pace * seconds * share / 1000 * 7 / 10);
}

static void check_everybody_there(void)
{
    for (int i = 0; i < 20 * SECOND_STEPS; i++) {
        step();
        HOLDS(bench.brain.presence.haste_permille < 1100);
    }
}

static void check_late(void)
{
    crowd.late = true;
    (void)run(2);
    uint64_t haste = bench.brain.presence.haste_permille;
    (void)run(8);
    HOLDS(bench.brain.presence.haste_permille <= haste);
    crowd.late = false;
}

/* Nobody inside; then up to the cap come in and stand there; when they have taken units and paid,
 * others follow. */
static void check_cap(struct choice *choice, uint64_t pace)
{
    bench.admission = false;
    (void)run(95);
    bench.admission = true;
    bench.view.inside_max = 1 + choice_below(choice, pace * 10);
    uint64_t most = bench.view.inside_max * 105 / 100 + QUEUE_PRESENCE_PRIOR;
    uint64_t inside = run(30);
    HOLDS(inside <= most);
    bench.held_units = inside;
    bench.free_units -= inside;
    uint64_t more = run(10);
    HOLDS(inside + more <= most);
    bench.held_units = 0;
    HOLDS(inside < 10 || run(10) > 0);
}

static void property(struct choice *choice)
{
    memset(&crowd, 0, sizeof crowd);
    bench_begin(&bench, "queue-a");
    bench.view.phase = TG_PHASE_OPEN;
    bench.free_units = 1000000;
    uint64_t pace = 20 + choice_below(choice, 2000);
    bench.pace_milli = pace * 1000;
    bench_activate(&bench);
    bench_arrive(&bench, 50000);
    crowd.delay_steps = 10 + (unsigned)choice_below(choice, 20);
    check_everybody_there();
    crowd.delay_steps = 10 + (unsigned)choice_below(choice, 40);
    crowd.absent_permille = choice_below(choice, 951);
    (void)run(60);
    check_admitted(run(60), pace, 60);
    check_speed(pace);
    crowd.absent_permille = choice_below(choice, 951);
    uint64_t after = run(60);
    check_speed(pace);
    HOLDS(after <= pace * 60 * 125 / 100 + pace * QUEUE_HASTE_MAX_PERMILLE / 1000 * 5 +
                       QUEUE_PRESENCE_PRIOR);
    check_admitted(run(60), pace, 60);
    check_late();
    check_cap(choice, pace);
}

PROPERTY_MAIN(property, 60, 64)
