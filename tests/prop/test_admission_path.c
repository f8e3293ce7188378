/* SPDX-License-Identifier: Apache-2.0
 * The pace of admission against a model of the purchase path: people let in reach it after a second
 * or two, it serves a limited number of them a second, the others queue in front of it, and who
 * queues for two seconds hears "try again". Whatever its capacity is, and also when it drops:
 *   - the pace is 0 or within the sale's bounds, and every step up is small;
 *   - in the long run most of the capacity is used and hardly anybody hears "try again";
 *   - what is unknown never makes it faster;
 *   - a signal above its limit stops it with the tick that hears it, and it comes back by the ramp.
 */
#include "tests/prop/choice.h"

#include "tests/unit/admission_goals.h"

enum { STEP_MS = 50, TELL_MS = 250, DELAY_STEPS_MAX = 64, SECOND_STEPS = 20, GIVE_UP_MS = 2000 };

struct plant {
    uint64_t capacity_milli; /* people per 1000 s */
    unsigned delay_steps;
    uint64_t on_the_way_micro[DELAY_STEPS_MAX];
    uint64_t queue_micro;
    uint64_t watermark_micro;
    bool silent; /* daemons tell nothing */
    /* since the last told load */
    uint64_t worst_ms, served_micro, failed_micro;
    /* since the last count */
    uint64_t served, failed;
};

static struct admission_bounds bounds;
static struct admission_control control;
static struct plant plant;
static struct tg_mono now;
static uint64_t pace_milli;

static void arrive(uint64_t people_micro)
{
    size_t slot = (size_t)(now.ms / STEP_MS) % DELAY_STEPS_MAX;
    size_t later = (slot + plant.delay_steps) % DELAY_STEPS_MAX;
    plant.on_the_way_micro[later] += people_micro;
    uint64_t arrived = plant.on_the_way_micro[slot];
    plant.on_the_way_micro[slot] = 0;
    uint64_t wait_ms = plant.queue_micro / plant.capacity_milli;
    if (wait_ms > GIVE_UP_MS) {
        plant.failed_micro += arrived;
    } else {
        plant.queue_micro += arrived;
    }
    plant.worst_ms = wait_ms > plant.worst_ms ? wait_ms : plant.worst_ms;
}

static void serve(void)
{
    uint64_t can = plant.capacity_milli * STEP_MS;
    uint64_t served = plant.queue_micro < can ? plant.queue_micro : can;
    plant.queue_micro -= served;
    plant.served_micro += served;
}

static void tell(void)
{
    uint64_t served = plant.served_micro / 1000000;
    uint64_t failed = plant.failed_micro / 1000000;
    plant.served += served;
    plant.failed += failed;
    plant.served_micro -= served * 1000000;
    plant.failed_micro -= failed * 1000000;
    const struct admission_load gate = {.daemon = ADMISSION_RESERVE,
                                        .p99_us = plant.worst_ms * 1000 + 4000,
                                        .requests = served + failed,
                                        .errors = failed,
                                        .in_flight = plant.queue_micro / 1000000};
    const struct admission_load ledger = {
        .daemon = ADMISSION_LEDGER, .p99_us = 4000, .requests = served};
    const struct admission_load edge = {.daemon = ADMISSION_EDGE};
    if (!plant.silent) {
        admission_control_load(&control, now, &edge);
        admission_control_load(&control, now, &gate);
        admission_control_load(&control, now, &ledger);
    }
    plant.worst_ms = 0;
}

static void step(void)
{
    const struct admission_flow flow = {.open = true, .watermark = plant.watermark_micro / 1000000};
    now.ms += STEP_MS;
    uint64_t people_micro = pace_milli * STEP_MS;
    plant.watermark_micro += people_micro;
    arrive(people_micro);
    serve();
    if (now.ms % TELL_MS == 0) {
        tell();
    }
    admission_control_flow(&control, now, flow);
    uint64_t before = control.base_milli;
    admission_control_turn(&control, now, &bounds, flow.watermark);
    HOLDS(before == 0 ||
          control.base_milli <= before + bounds.max_milli / ADMISSION_CLIMB_PART + 1);
    pace_milli = admission_control_pace(&control, now, &bounds).pace_milli;
    HOLDS(pace_milli >= bounds.min_milli && pace_milli <= bounds.max_milli);
}

static void run(int seconds)
{
    plant.served = 0;
    plant.failed = 0;
    for (int i = 0; i < seconds * SECOND_STEPS; i++) {
        step();
    }
}

static void check_used(int seconds)
{
    uint64_t capacity =
        plant.capacity_milli < bounds.max_milli ? plant.capacity_milli : bounds.max_milli;
    HOLDS(plant.served >= capacity * (uint64_t)seconds / 1000 * 6 / 10);
    HOLDS(plant.failed * 100 <= plant.served);
}

static void check_unknown(void)
{
    plant.silent = true;
    run(2);
    uint64_t held = control.base_milli;
    run(30);
    HOLDS(control.base_milli <= held);
    plant.silent = false;
}

static void check_tripwire(void)
{
    struct admission_signal signal = {
        .name = ADMISSION_SIGNAL_DATABASE_CPU, .value_milli = 85001, .valid_ms = 5000};
    admission_control_signal(&control, now, &signal);
    HOLDS(admission_control_pace(&control, now, &bounds).pace_milli == 0);
    admission_control_flow(&control, now, (struct admission_flow){.open = true});
    now.ms += 600000;
    HOLDS(admission_control_pace(&control, now, &bounds).pace_milli == 0);
    signal.value_milli = 85000;
    admission_control_signal(&control, now, &signal);
    admission_control_flow(&control, now, (struct admission_flow){.open = true});
    struct admission_pace pace = admission_control_pace(&control, now, &bounds);
    HOLDS(pace.ramp_permille == ADMISSION_RAMP_FROM);
    HOLDS(pace.pace_milli <= bounds.max_milli / 4 + bounds.min_milli);
}

static void property(struct choice *choice)
{
    memset(&plant, 0, sizeof plant);
    now.ms = 1000000;
    plant.capacity_milli = 100000 + choice_below(choice, 8000000);
    plant.delay_steps = 20 + (unsigned)choice_below(choice, 30);
    bounds = (struct admission_bounds){.min_milli = 10000,
                                       .max_milli = 500000 + choice_below(choice, 5000000),
                                       .budget_milli = 100000000};
    bounds.start_milli =
        bounds.min_milli + choice_below(choice, bounds.max_milli - bounds.min_milli);
    admission_control_begin(&control, &goals);
    admission_control_flow(&control, now, (struct admission_flow){.scheduled = true});
    pace_milli = 0;
    run(120);
    run(60);
    check_used(60);
    plant.capacity_milli = plant.capacity_milli * (30 + choice_below(choice, 71)) / 100;
    run(90);
    run(60);
    check_used(60);
    check_unknown();
    check_tripwire();
}

PROPERTY_MAIN(property, 200, 64)
