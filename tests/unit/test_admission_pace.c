/* SPDX-License-Identifier: Apache-2.0
 * The law of the pace by a virtual clock: ramp, tripwire, steps down and up, bounds, budgets. */
#include "tests/unit/cmocka_tests.h"

#include "tests/unit/admission_goals.h"

#include <string.h>

enum { STEP_MS = 50, TELL_MS = 250, SECOND_MS = 1000 };

static struct {
    struct admission_control control;
    struct admission_bounds bounds;
    struct tg_mono now;
    struct admission_flow flow;
    struct admission_load edge, gate, ledger;
    bool told[ADMISSION_DAEMONS];
    uint64_t used_permille; /* of the pace, by which the watermark moves */
    uint64_t moved_micro;
    struct admission_pace pace;
} bench;

static void step(void)
{
    bench.now.ms += STEP_MS;
    bench.moved_micro += bench.pace.pace_milli * STEP_MS * bench.used_permille / 1000;
    bench.flow.watermark = bench.moved_micro / 1000000;
    if (bench.now.ms % TELL_MS == 0) {
        if (bench.told[ADMISSION_EDGE]) {
            admission_control_load(&bench.control, bench.now, &bench.edge);
        }
        if (bench.told[ADMISSION_RESERVE]) {
            admission_control_load(&bench.control, bench.now, &bench.gate);
        }
        if (bench.told[ADMISSION_LEDGER]) {
            admission_control_load(&bench.control, bench.now, &bench.ledger);
        }
    }
    admission_control_flow(&bench.control, bench.now, bench.flow);
    admission_control_turn(&bench.control, bench.now, &bench.bounds, bench.flow.watermark);
    bench.pace = admission_control_pace(&bench.control, bench.now, &bench.bounds);
}

static void run(int64_t ms)
{
    for (int64_t passed = 0; passed < ms; passed += STEP_MS) {
        step();
    }
}

/* A sale that has just been opened, with a calm purchase path. */
static int begin(void **state)
{
    memset(&bench, 0, sizeof bench);
    bench.now.ms = 1000000;
    bench.bounds = (struct admission_bounds){
        .start_milli = 1000000, .min_milli = 10000, .max_milli = 5000000, .budget_milli = 5000000};
    bench.gate = (struct admission_load){.daemon = ADMISSION_RESERVE, .requests = 200};
    bench.ledger = (struct admission_load){.daemon = ADMISSION_LEDGER, .requests = 200};
    bench.edge = (struct admission_load){.daemon = ADMISSION_EDGE};
    bench.told[ADMISSION_EDGE] = true;
    bench.told[ADMISSION_RESERVE] = true;
    bench.told[ADMISSION_LEDGER] = true;
    bench.used_permille = 1000;
    admission_control_begin(&bench.control, &goals);
    bench.flow.scheduled = true;
    step();
    bench.flow = (struct admission_flow){.open = true};
    step();
    return 0;
}

static void say(const char *name, uint64_t value_milli, uint64_t limit_milli, int64_t valid_ms)
{
    struct admission_signal signal = {
        .value_milli = value_milli, .limit_milli = limit_milli, .valid_ms = valid_ms};
    strncpy(signal.name, name, sizeof signal.name - 1);
    admission_control_signal(&bench.control, bench.now, &signal);
}

static void is(uint64_t pace_milli, enum admission_limiting limiting)
{
    assert_int_equal(bench.pace.limiting, limiting);
    assert_int_equal(bench.pace.pace_milli, pace_milli);
}

/* ---- freeze and ramp ---- */

static void an_opening_is_no_thaw(void **state)
{
    is(1000000, ADMISSION_BY_START);
    assert_int_equal(bench.pace.ramp_permille, 1000);
}

static void a_resume_ramps_from_a_quarter_to_the_whole_in_a_minute(void **state)
{
    bench.bounds.max_milli = 1000000;
    bench.flow.open = false;
    run(5000);
    bench.flow.open = true;
    step();
    for (int64_t second = 0; second < 60; second++) {
        assert_int_equal(bench.pace.limiting, ADMISSION_BY_RAMP);
        assert_int_equal(bench.pace.ramp_permille, 250 + 750 * second / 60);
        assert_int_equal(bench.pace.pace_milli, 1000 * (250 + 750 * second / 60));
        run(SECOND_MS);
    }
    is(1000000, ADMISSION_BY_MAXIMUM);
}

static void a_freeze_within_a_ramp_begins_it_anew(void **state)
{
    bench.flow.open = false;
    step();
    bench.flow.open = true;
    run(30000);
    assert_in_range(bench.pace.ramp_permille, 600, 650);
    say("disk", 2000, 1000, 5000);
    step();
    is(0, ADMISSION_BY_SIGNAL);
    say("disk", 1000, 1000, 5000);
    step();
    assert_int_equal(bench.pace.ramp_permille, ADMISSION_RAMP_FROM);
}

static void the_two_named_signals_have_their_own_limits(void **state)
{
    say(ADMISSION_SIGNAL_DATABASE_CPU, 85000, 0, 5000);
    say(ADMISSION_SIGNAL_PAYMENT_ERRORS, 5000, 0, 5000);
    step();
    is(1000000, ADMISSION_BY_START);
    say(ADMISSION_SIGNAL_DATABASE_CPU, 85001, 0, 5000);
    step();
    is(0, ADMISSION_BY_SIGNAL);
    assert_string_equal(bench.pace.signal, ADMISSION_SIGNAL_DATABASE_CPU);
    assert_int_equal(bench.pace.value, 85001);
    assert_int_equal(bench.pace.goal, 85000);
    say(ADMISSION_SIGNAL_DATABASE_CPU, 20000, 0, 5000);
    say(ADMISSION_SIGNAL_PAYMENT_ERRORS, 5001, 0, 5000);
    step();
    is(0, ADMISSION_BY_SIGNAL);
    assert_string_equal(bench.pace.signal, ADMISSION_SIGNAL_PAYMENT_ERRORS);
}

static void a_tripped_signal_that_falls_silent_stays_tripped_until_it_is_withdrawn(void **state)
{
    say("disk", 2000, 1000, 1000);
    run(120000);
    is(0, ADMISSION_BY_SIGNAL);
    say("disk", 0, 0, 0);
    step();
    is(250000, ADMISSION_BY_RAMP);
}

static void signals_beyond_the_table_replace_the_longest_silent_one_within_its_limit(void **state)
{
    char name[] = "signal_a";
    say("disk", 2000, 1000, 60000);
    for (int i = 0; i < TG_MAX_SIGNALS + 3; i++) {
        name[7] = (char)('a' + i);
        bench.now.ms += 10;
        say(name, 1, 1000, 60000);
    }
    step();
    is(0, ADMISSION_BY_SIGNAL);
    assert_string_equal(bench.pace.signal, "disk");
    for (int i = 0; i < TG_MAX_SIGNALS; i++) {
        name[7] = (char)('a' + i);
        say(name, 2000, 1000, 60000);
    }
    say("one_more", 5000, 1000, 60000);
    step();
    is(0, ADMISSION_BY_SIGNAL);
}

/* ---- the law ---- */

static void a_calm_path_lets_the_pace_climb_to_the_maximum(void **state)
{
    run(1000);
    assert_int_equal(bench.pace.limiting, ADMISSION_BY_RISING);
    assert_int_equal(bench.pace.pace_milli, 1000000 + 1000000 / ADMISSION_CLIMB_SHARE);
    run(60000);
    is(5000000, ADMISSION_BY_MAXIMUM);
}

static void a_pace_nobody_uses_does_not_climb(void **state)
{
    bench.used_permille = 500;
    run(30000);
    is(1000000, ADMISSION_BY_DEMAND);
}

static void pressure_between_easy_and_full_holds(void **state)
{
    bench.gate.p99_us = 200000;
    run(30000);
    is(1000000, ADMISSION_BY_GATE);
    assert_int_equal(bench.pace.value, 200000);
    assert_int_equal(bench.pace.goal, 250000);
}

static void each_measure_slows_down_by_its_name(void **state)
{
    static const struct {
        struct admission_load gate, ledger, edge;
        enum admission_limiting by;
    } rows[] = {
        {{.requests = 9}, {.requests = 9}, {.p99_us = 201000}, ADMISSION_BY_EDGE},
        {{.requests = 9}, {.requests = 9}, {.requests = 9, .errors = 1}, ADMISSION_BY_ERRORS},
        {{.p99_us = 251000, .requests = 9}, {.requests = 9}, {0}, ADMISSION_BY_GATE},
        {{.requests = 9}, {.p99_us = 151000, .requests = 9}, {0}, ADMISSION_BY_LEDGER},
        {{.requests = 90, .errors = 2}, {.requests = 90}, {0}, ADMISSION_BY_ERRORS},
        {{.requests = 9, .in_flight = 1026}, {.requests = 9}, {0}, ADMISSION_BY_IN_FLIGHT},
        {{.requests = 9}, {.requests = 9, .in_flight = 1026}, {0}, ADMISSION_BY_IN_FLIGHT},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        begin(state);
        bench.gate = rows[i].gate;
        bench.ledger = rows[i].ledger;
        bench.edge = rows[i].edge;
        bench.gate.daemon = ADMISSION_RESERVE;
        bench.ledger.daemon = ADMISSION_LEDGER;
        run(1000);
        assert_int_equal(bench.pace.limiting, rows[i].by);
        assert_in_range(bench.pace.pace_milli, 500000, 950000);
    }
}

static void a_hard_press_halves_the_pace_once_in_three_seconds_down_to_the_minimum(void **state)
{
    bench.gate.p99_us = 2000000;
    run(1000);
    is(500000, ADMISSION_BY_GATE);
    run(2000);
    is(500000, ADMISSION_BY_GATE);
    run(1000);
    is(250000, ADMISSION_BY_GATE);
    run(60000);
    is(10000, ADMISSION_BY_GATE);
}

static void an_easing_press_is_not_slowed_again(void **state)
{
    bench.gate.p99_us = 2000000;
    run(1000);
    for (int i = 0; i < 8; i++) {
        bench.gate.p99_us -= 200000;
        run(1000);
        is(500000, ADMISSION_BY_GATE);
    }
}

static void a_p99_of_a_handful_says_nothing(void **state)
{
    bench.gate.p99_us = 900000;
    bench.gate.requests = ADMISSION_LOAD_REQUESTS_MIN - 1;
    run(3000);
    assert_int_equal(bench.pace.limiting, ADMISSION_BY_RISING);
}

static void what_is_unknown_holds_and_still_slows(void **state)
{
    bench.told[ADMISSION_LEDGER] = false;
    run(ADMISSION_LOAD_STALE_MS + 2000);
    uint64_t held = bench.pace.pace_milli;
    run(30000);
    is(held, ADMISSION_BY_UNKNOWN);
    bench.gate.p99_us = 900000;
    run(1000);
    assert_true(bench.pace.pace_milli < held);
}

static void an_expired_signal_within_its_limit_holds(void **state)
{
    say("disk", 1, 1000, 500);
    run(2000);
    uint64_t held = bench.pace.pace_milli;
    run(30000);
    is(held, ADMISSION_BY_UNKNOWN);
    say("disk", 1, 1000, 60000);
    run(2000);
    assert_true(bench.pace.pace_milli > held);
}

/* ---- the operator ---- */

static void an_operators_pace_is_neither_judged_nor_outside_the_bounds(void **state)
{
    bench.gate.p99_us = 2000000;
    bench.bounds.operator_milli = 4000000;
    run(30000);
    is(4000000, ADMISSION_BY_OPERATOR);
    bench.bounds.operator_milli = 90000000;
    step();
    is(5000000, ADMISSION_BY_OPERATOR);
    say("disk", 2000, 1000, 60000);
    step();
    is(0, ADMISSION_BY_SIGNAL);
}

static void a_slow_word_of_the_operator_proves_nothing_about_more(void **state)
{
    bench.bounds.operator_milli = 100000;
    run(60000);
    bench.bounds.operator_milli = 0;
    step();
    assert_int_equal(bench.pace.pace_milli, 1000000);
}

static void an_override_ends_the_ramp(void **state)
{
    bench.flow.open = false;
    step();
    bench.flow.open = true;
    step();
    bench.bounds.operator_milli = 2000000;
    admission_control_override(&bench.control);
    step();
    is(2000000, ADMISSION_BY_OPERATOR);
}

static void a_standby_goes_on_where_the_active_one_was(void **state)
{
    admission_control_follow(&bench.control, bench.now, 3000000, 625);
    bench.pace = admission_control_pace(&bench.control, bench.now, &bench.bounds);
    is(3000000 / 1000 * 625, ADMISSION_BY_RAMP);
    run(29000);
    assert_in_range(bench.pace.ramp_permille, 980, 990);
    assert_int_equal(bench.pace.base_milli, 3000000);
}

/* ---- budgets ---- */

static void a_budget_is_divided_fairly(void **state)
{
    static const struct {
        uint64_t wants[4], total, shares[4];
    } rows[] = {
        {{100, 200, 300, 0}, 1000, {100, 200, 300, 250}},
        {{100, 900, 900, 0}, 1000, {100, 450, 450, 250}},
        {{900, 900, 900, 900}, 1000, {250, 250, 250, 250}},
        {{50, 260, 900, 900}, 1000, {50, 260, 345, 345}},
        {{0, 0, 0, 0}, 1000, {1000, 1000, 1000, 1000}}, /* a sale that thaws is not cut to 0 */
        {{5000, 0, 0, 0}, 1000, {1000, 500, 500, 500}},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint64_t shares[4];
        admission_budget_share(rows[i].wants, 4, rows[i].total, shares);
        assert_memory_equal(shares, rows[i].shares, sizeof shares);
    }
}

static void a_budget_limits_by_name(void **state)
{
    bench.bounds.budget_milli = 400000;
    step();
    is(400000, ADMISSION_BY_BUDGET);
    run(30000);
    assert_int_equal(bench.pace.base_milli, 1000000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(an_opening_is_no_thaw, begin),
        cmocka_unit_test_setup(a_resume_ramps_from_a_quarter_to_the_whole_in_a_minute, begin),
        cmocka_unit_test_setup(a_freeze_within_a_ramp_begins_it_anew, begin),
        cmocka_unit_test_setup(the_two_named_signals_have_their_own_limits, begin),
        cmocka_unit_test_setup(
            a_tripped_signal_that_falls_silent_stays_tripped_until_it_is_withdrawn, begin),
        cmocka_unit_test_setup(
            signals_beyond_the_table_replace_the_longest_silent_one_within_its_limit, begin),
        cmocka_unit_test_setup(a_calm_path_lets_the_pace_climb_to_the_maximum, begin),
        cmocka_unit_test_setup(a_pace_nobody_uses_does_not_climb, begin),
        cmocka_unit_test_setup(pressure_between_easy_and_full_holds, begin),
        cmocka_unit_test_setup(each_measure_slows_down_by_its_name, begin),
        cmocka_unit_test_setup(
            a_hard_press_halves_the_pace_once_in_three_seconds_down_to_the_minimum, begin),
        cmocka_unit_test_setup(an_easing_press_is_not_slowed_again, begin),
        cmocka_unit_test_setup(a_p99_of_a_handful_says_nothing, begin),
        cmocka_unit_test_setup(what_is_unknown_holds_and_still_slows, begin),
        cmocka_unit_test_setup(an_expired_signal_within_its_limit_holds, begin),
        cmocka_unit_test_setup(an_operators_pace_is_neither_judged_nor_outside_the_bounds, begin),
        cmocka_unit_test_setup(a_slow_word_of_the_operator_proves_nothing_about_more, begin),
        cmocka_unit_test_setup(an_override_ends_the_ramp, begin),
        cmocka_unit_test_setup(a_standby_goes_on_where_the_active_one_was, begin),
        cmocka_unit_test_setup(a_budget_is_divided_fairly, begin),
        cmocka_unit_test_setup(a_budget_limits_by_name, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
