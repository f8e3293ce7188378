// SPDX-License-Identifier: Apache-2.0
#include "services/admission/core_pace.h"

#include "lib/pure/number.h"

#include <string.h>

#define NO_SIGNAL SIZE_MAX
/* Let through within a second: more is a watermark that was adopted, not people. */
#define PEOPLE_MAX ((uint64_t)1000000)

static uint64_t within(uint64_t value, uint64_t low, uint64_t high)
{
    return tg_smaller(tg_larger(value, low), high);
}

void admission_control_begin(struct admission_control *control, const struct admission_goals *goals)
{
    memset(control, 0, sizeof *control);
    control->goals = goals;
    control->by = ADMISSION_BY_START;
}

/* ---- what is heard ---- */

void admission_control_load(struct admission_control *control, struct tg_mono now,
                            const struct admission_load *load)
{
    struct admission_heard *heard = &control->loads[load->daemon];
    heard->known = true;
    heard->at = now;
    heard->load.requests += load->requests;
    heard->load.errors += load->errors;
    heard->load.in_flight = tg_larger(heard->load.in_flight, load->in_flight);
    if (load->requests >= ADMISSION_LOAD_REQUESTS_MIN || load->daemon == ADMISSION_EDGE) {
        heard->load.p99_us = tg_larger(heard->load.p99_us, load->p99_us);
    }
}

static uint64_t limit_of(const struct admission_control *control,
                         const struct admission_signal *signal)
{
    if (signal->limit_milli > 0) {
        return signal->limit_milli;
    }
    return strcmp(signal->name, ADMISSION_SIGNAL_DATABASE_CPU) == 0
               ? control->goals->database_cpu_milli
               : control->goals->payment_errors_milli;
}

static bool above(const struct admission_control *control, const struct admission_signal *signal)
{
    return signal->name[0] != '\0' && signal->value_milli > limit_of(control, signal);
}

/* The row of this name; else a free one; else the one that has been silent longest and is within
 * its limit. None: all are above theirs, and the pace is frozen anyway. */
static struct admission_signal *signal_row(struct admission_control *control, const char *name)
{
    struct admission_signal *spare = NULL;
    for (size_t i = 0; i < TG_MAX_SIGNALS; i++) {
        struct admission_signal *row = &control->signals[i];
        if (strcmp(row->name, name) == 0) {
            return row;
        }
        bool older = spare == NULL || (spare->name[0] != '\0' &&
                                       (row->name[0] == '\0' || row->heard.ms < spare->heard.ms));
        if (older && !above(control, row)) {
            spare = row;
        }
    }
    return spare;
}

void admission_control_signal(struct admission_control *control, struct tg_mono now,
                              const struct admission_signal *signal)
{
    struct admission_signal *row = signal_row(control, signal->name);
    if (row == NULL) {
        return;
    }
    memset(row, 0, sizeof *row);
    if (signal->valid_ms > 0) {
        *row = *signal;
        row->heard = now;
    }
}

/* ---- the tripwire ---- */

/* A signal that was above its limit and fell silent is not known to be better. */
static size_t tripped(const struct admission_control *control)
{
    for (size_t i = 0; i < TG_MAX_SIGNALS; i++) {
        if (above(control, &control->signals[i])) {
            return i;
        }
    }
    return NO_SIGNAL;
}

static void begin_turn(struct admission_control *control, struct tg_mono now, uint64_t watermark)
{
    control->turned = now;
    control->watermark = watermark;
    for (size_t i = 0; i < ADMISSION_DAEMONS; i++) {
        memset(&control->loads[i].load, 0, sizeof control->loads[i].load);
    }
}

void admission_control_flow(struct admission_control *control, struct tg_mono now,
                            struct admission_flow flow)
{
    bool flows = flow.open && tripped(control) == NO_SIGNAL;
    if (flows && !control->flowing) {
        control->ramping = !control->opening;
        control->thawed = now;
        begin_turn(control, now, flow.watermark);
    }
    control->flowing = flows;
    control->opening = flow.scheduled || (control->opening && !flow.open);
}

static uint32_t ramp_now(const struct admission_control *control, struct tg_mono now)
{
    int64_t passed_ms = now.ms - control->thawed.ms;
    int64_t ramp_ms = control->goals->ramp_ms;
    if (!control->ramping || passed_ms >= ramp_ms) {
        return 1000;
    }
    return (uint32_t)(ADMISSION_RAMP_FROM + (1000 - ADMISSION_RAMP_FROM) * passed_ms / ramp_ms);
}

void admission_control_follow(struct admission_control *control, struct tg_mono now,
                              uint64_t base_milli, uint32_t ramp_permille)
{
    control->base_milli = base_milli;
    control->by = ADMISSION_BY_START;
    control->turned = now;
    control->ramping = ramp_permille < 1000;
    if (control->ramping) {
        int64_t done =
            ramp_permille > ADMISSION_RAMP_FROM ? ramp_permille - ADMISSION_RAMP_FROM : 0;
        control->thawed.ms = now.ms - control->goals->ramp_ms * done / (1000 - ADMISSION_RAMP_FROM);
    }
}

void admission_control_override(struct admission_control *control)
{
    control->ramping = false;
}

/* ---- the law ---- */

static uint64_t base_of(const struct admission_control *control,
                        const struct admission_bounds *bounds)
{
    uint64_t base = control->base_milli > 0 ? control->base_milli : bounds->start_milli;
    return within(base, bounds->min_milli, bounds->max_milli);
}

static void press(struct admission_pressure *worst, enum admission_limiting by, uint64_t value,
                  uint64_t goal)
{
    uint64_t permille = value > UINT64_MAX / 1000 ? UINT64_MAX : value * 1000 / goal;
    if (permille > worst->permille) {
        *worst = (struct admission_pressure){
            .by = by, .permille = permille, .value = value, .goal = goal};
    }
}

static struct admission_pressure pressure_of(const struct admission_control *control)
{
    const struct admission_load *edge = &control->loads[ADMISSION_EDGE].load;
    const struct admission_load *gate = &control->loads[ADMISSION_RESERVE].load;
    const struct admission_load *ledger = &control->loads[ADMISSION_LEDGER].load;
    const struct admission_goals *goals = control->goals;
    struct admission_pressure worst = {.by = ADMISSION_BY_RISING};
    press(&worst, ADMISSION_BY_EDGE, edge->p99_us, goals->edge_late_us);
    press(&worst, ADMISSION_BY_GATE, gate->p99_us, goals->gate_p99_us);
    press(&worst, ADMISSION_BY_LEDGER, ledger->p99_us, goals->ledger_p99_us);
    uint64_t requests = 0, errors = 0, in_flight = 0;
    for (size_t i = 0; i < ADMISSION_DAEMONS; i++) {
        requests += control->loads[i].load.requests;
        errors += control->loads[i].load.errors;
        in_flight = tg_larger(in_flight, control->loads[i].load.in_flight);
    }
    press(&worst, ADMISSION_BY_IN_FLIGHT, in_flight, goals->in_flight);
    press(&worst, ADMISSION_BY_ERRORS, requests > 0 ? errors * 1000 / requests : 0,
          goals->error_permille);
    return worst;
}

static bool anything_unknown(const struct admission_control *control, struct tg_mono now)
{
    for (size_t i = 0; i < ADMISSION_DAEMONS; i++) {
        const struct admission_heard *heard = &control->loads[i];
        if (!heard->known || now.ms - heard->at.ms > ADMISSION_LOAD_STALE_MS) {
            return true;
        }
    }
    for (size_t i = 0; i < TG_MAX_SIGNALS; i++) {
        const struct admission_signal *signal = &control->signals[i];
        if (signal->name[0] != '\0' && now.ms - signal->heard.ms > signal->valid_ms) {
            return true;
        }
    }
    return false;
}

/* From what was really used, so that a pace nobody used up does not stand in the way; never to
 * less than half of it at once. */
static uint64_t slowed(const struct admission_control *control, uint64_t base, uint64_t flow)
{
    uint64_t left = within((uint64_t)1000 * 1000 / control->pressure.permille, ADMISSION_SLOW_MIN,
                           ADMISSION_SLOW_MAX);
    return tg_larger(tg_smaller(base, flow) * left / 1000, base * ADMISSION_SLOW_MIN / 1000);
}

/* In proportion while it is small, so that a small path is not overrun. */
static uint64_t climb(uint64_t base, const struct admission_bounds *bounds)
{
    uint64_t most = bounds->max_milli / ADMISSION_CLIMB_PART;
    return tg_larger(tg_smaller(base / ADMISSION_CLIMB_SHARE, most), 1);
}

static void judge(struct admission_control *control, struct tg_mono now,
                  const struct admission_bounds *bounds, uint64_t flow)
{
    uint64_t base = base_of(control, bounds);
    uint64_t used = admission_control_pace(control, now, bounds).pace_milli;
    uint64_t before = control->pressure.permille;
    control->pressure = pressure_of(control);
    control->by = control->pressure.by;
    if (control->pressure.permille > ADMISSION_PRESSURE_FULL) {
        bool easing = control->pressure.permille < before;
        if (now.ms - control->slowed.ms >= ADMISSION_COOL_MS && !easing) {
            control->slowed = now;
            base = slowed(control, base, flow);
        }
    } else if (control->pressure.permille > ADMISSION_PRESSURE_EASY) {
        /* as fast as the path can take */
    } else if (anything_unknown(control, now)) {
        control->by = ADMISSION_BY_UNKNOWN;
    } else if (base == bounds->max_milli) {
        control->by = ADMISSION_BY_MAXIMUM;
    } else if (used < base || flow < used / 1000 * ADMISSION_USED_PERMILLE) {
        control->by = ADMISSION_BY_DEMAND;
    } else {
        control->by = ADMISSION_BY_RISING;
        base += climb(base, bounds);
    }
    control->base_milli = within(base, bounds->min_milli, bounds->max_milli);
}

void admission_control_turn(struct admission_control *control, struct tg_mono now,
                            const struct admission_bounds *bounds, uint64_t watermark)
{
    int64_t passed_ms = now.ms - control->turned.ms;
    if (!control->flowing || passed_ms < ADMISSION_TURN_MS) {
        return;
    }
    uint64_t people = watermark > control->watermark ? watermark - control->watermark : 0;
    people = tg_smaller(people, PEOPLE_MAX);
    judge(control, now, bounds, people * 1000000 / (uint64_t)passed_ms);
    begin_turn(control, now, watermark);
}

/* ---- the pace ---- */

uint64_t admission_control_want(const struct admission_control *control,
                                const struct admission_bounds *bounds)
{
    uint64_t want = bounds->operator_milli > 0 ? bounds->operator_milli : base_of(control, bounds);
    return within(want, bounds->min_milli, bounds->max_milli);
}

static void cap(struct admission_pace *pace, uint64_t most_milli, enum admission_limiting by)
{
    if (pace->pace_milli > most_milli) {
        pace->pace_milli = most_milli;
        pace->limiting = by;
    }
}

static void by_pressure(const struct admission_control *control, struct admission_pace *pace)
{
    pace->limiting = control->by;
    if (control->by == control->pressure.by) {
        pace->value = control->pressure.value;
        pace->goal = control->pressure.goal;
    }
}

struct admission_pace admission_control_pace(const struct admission_control *control,
                                             struct tg_mono now,
                                             const struct admission_bounds *bounds)
{
    struct admission_pace pace = {.base_milli = base_of(control, bounds),
                                  .ramp_permille = ramp_now(control, now),
                                  .signal = ""};
    size_t trip = tripped(control);
    if (trip != NO_SIGNAL) {
        const struct admission_signal *signal = &control->signals[trip];
        pace.limiting = ADMISSION_BY_SIGNAL;
        pace.signal = signal->name;
        pace.value = signal->value_milli;
        pace.goal = limit_of(control, signal);
        return pace;
    }
    pace.pace_milli = admission_control_want(control, bounds);
    if (bounds->operator_milli > 0) {
        pace.limiting = ADMISSION_BY_OPERATOR;
    } else {
        by_pressure(control, &pace);
    }
    cap(&pace, bounds->budget_milli, ADMISSION_BY_BUDGET);
    if (pace.ramp_permille < 1000) {
        pace.pace_milli = pace.pace_milli * pace.ramp_permille / 1000;
        pace.limiting = ADMISSION_BY_RAMP;
    }
    pace.pace_milli = within(pace.pace_milli, bounds->min_milli, bounds->max_milli);
    return pace;
}

/* ---- several sales ---- */

void admission_budget_share(const uint64_t *wants, size_t count, uint64_t total,
                            uint64_t *out_shares)
{
    size_t hungry = 0;
    for (size_t i = 0; i < count; i++) {
        hungry += wants[i] > 0;
    }
    for (size_t i = 0; i < count; i++) {
        out_shares[i] = wants[i] > 0 ? 0 : total / (hungry + 1);
    }
    bool sated = true;
    while (sated) {
        uint64_t part = hungry > 0 ? total / hungry : 0;
        sated = false;
        for (size_t i = 0; i < count; i++) {
            if (out_shares[i] == 0 && wants[i] > 0 && wants[i] <= part) {
                out_shares[i] = wants[i];
                total -= wants[i];
                hungry--;
                sated = true;
            }
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (out_shares[i] == 0 && wants[i] > 0) {
            out_shares[i] = total / hungry;
        }
    }
}
