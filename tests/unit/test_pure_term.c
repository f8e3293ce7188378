// SPDX-License-Identifier: Apache-2.0
// The active/standby rule of lib/pure/term.h.
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/term.h"

enum { STEP_MS = 50 };

static struct tg_mono at(int64_t ms)
{
    return (struct tg_mono){.ms = ms};
}

/* Runs ticks up to and including `until`; returns `until`. */
static int64_t run(struct tg_term *term, int64_t from_ms, int64_t until_ms)
{
    for (int64_t ms = from_ms; ms <= until_ms; ms += STEP_MS) {
        tg_term_tick(term, at(ms), true, 0);
        if (tg_term_speaks(term)) {
            tg_term_told(term, at(ms));
        }
    }
    return until_ms;
}

static void alone_it_becomes_active_within_three_seconds(void **state)
{
    struct tg_term term;
    tg_term_begin(&term, "a", at(0), 0);
    run(&term, 0, 1450);
    assert_int_equal(term.role, TG_TERM_STANDBY);
    run(&term, 1500, 1950);
    assert_int_equal(term.role, TG_TERM_COLLECTING);
    assert_false(tg_term_speaks(&term));
    run(&term, 2000, 2350);
    assert_int_equal(term.role, TG_TERM_SETTLING);
    assert_true(tg_term_speaks(&term));
    assert_false(tg_term_acts(&term));
    run(&term, 2400, 2400);
    assert_true(tg_term_acts(&term));
    assert_int_equal(term.number, 1);
}

static void jitter_lengthens_the_silence_but_stays_within_three_seconds(void **state)
{
    struct tg_term term;
    tg_term_begin(&term, "a", at(0), 399);
    run(&term, 0, 1850);
    assert_int_equal(term.role, TG_TERM_STANDBY);
    run(&term, 1900, 2950);
    assert_true(tg_term_acts(&term));
}

static void a_heard_peer_keeps_it_on_standby(void **state)
{
    struct tg_term term;
    tg_term_begin(&term, "b", at(0), 0);
    for (int64_t ms = 0; ms < 10000; ms += 200) {
        run(&term, ms, ms + 150);
        assert_true(tg_term_heard(&term, 7, "a", at(ms + 150)));
    }
    assert_int_equal(term.role, TG_TERM_STANDBY);
    assert_int_equal(term.number, 7);
    run(&term, 10000, 13000);
    assert_true(tg_term_acts(&term));
    assert_int_equal(term.number, 8);
}

static void evidence_while_collecting_raises_the_number(void **state)
{
    struct tg_term term;
    tg_term_begin(&term, "a", at(0), 0);
    run(&term, 0, 1600);
    assert_int_equal(term.role, TG_TERM_COLLECTING);
    tg_term_learn(&term, 41, at(1600));
    run(&term, 1650, 2400);
    assert_true(tg_term_acts(&term));
    assert_int_equal(term.number, 42);
}

static void a_higher_number_makes_the_active_one_step_down(void **state)
{
    struct tg_term term;
    tg_term_begin(&term, "a", at(0), 0);
    int64_t now = run(&term, 0, 2500);
    assert_true(tg_term_heard(&term, 2, "b", at(now)));
    assert_int_equal(term.role, TG_TERM_STANDBY);
    assert_int_equal(term.number, 2);
}

/* By what an edge saw, before any message of the other one. */
static void evidence_of_a_higher_number_makes_the_active_one_step_down(void **state)
{
    struct tg_term term;
    tg_term_begin(&term, "a", at(0), 0);
    int64_t now = run(&term, 0, 2500);
    tg_term_learn(&term, 1, at(now));
    assert_true(tg_term_acts(&term));
    tg_term_learn(&term, 2, at(now));
    assert_int_equal(term.role, TG_TERM_STANDBY);
    assert_int_equal(term.number, 2);
}

static void lower_numbers_are_ignored(void **state)
{
    struct tg_term term;
    tg_term_begin(&term, "b", at(0), 0);
    tg_term_learn(&term, 5, at(0));
    int64_t now = run(&term, 0, 2500);
    assert_int_equal(term.number, 6);
    assert_false(tg_term_heard(&term, 5, "a", at(now)));
    assert_true(tg_term_acts(&term));
}

static void of_two_who_settle_the_smaller_name_stays(void **state)
{
    struct tg_term a;
    struct tg_term b;
    tg_term_begin(&a, "a", at(0), 0);
    tg_term_begin(&b, "b", at(0), 0);
    run(&a, 0, 2000);
    run(&b, 0, 2000);
    assert_false(tg_term_heard(&a, 1, "b", at(2010)));
    assert_true(tg_term_heard(&b, 1, "a", at(2010)));
    run(&a, 2050, 2400);
    assert_false(tg_term_acts(&a)); /* it listens anew after a rival */
    run(&a, 2450, 2450);
    run(&b, 2050, 2450);
    assert_true(tg_term_acts(&a));
    assert_int_equal(b.role, TG_TERM_STANDBY);
    assert_int_equal(b.number, 1);
}

static void who_settles_yields_to_one_that_acts(void **state)
{
    struct tg_term a;
    struct tg_term b;
    tg_term_begin(&a, "a", at(500), 0);
    tg_term_begin(&b, "b", at(0), 0);
    run(&b, 0, 2500);
    run(&a, 500, 2500);
    assert_int_equal(a.role, TG_TERM_SETTLING);
    int64_t ms = 2500;
    for (; a.role == TG_TERM_SETTLING; ms += 200) {
        run(&a, ms, ms + 150);
        run(&b, ms, ms + 150);
        tg_term_heard(&a, 1, "b", at(ms + 150));
        assert_false(tg_term_heard(&b, 1, "a", at(ms + 150)));
    }
    assert_true(tg_term_acts(&b));
    assert_int_equal(a.role, TG_TERM_STANDBY);
    assert_true(ms <= 3500);
}

static void of_two_who_act_the_smaller_name_stays(void **state)
{
    struct tg_term a;
    struct tg_term b;
    tg_term_begin(&a, "a", at(0), 0);
    tg_term_begin(&b, "b", at(0), 0);
    run(&a, 0, 2500);
    run(&b, 0, 2500);
    for (int64_t ms = 2500; ms <= 3500; ms += 200) {
        tg_term_told(&a, at(ms));
        tg_term_told(&b, at(ms));
        assert_false(tg_term_heard(&a, 1, "b", at(ms)));
        assert_true(tg_term_heard(&b, 1, "a", at(ms)) == (ms - 2500 >= 2 * TG_TERM_RIVAL_MS));
    }
    assert_true(tg_term_acts(&a));
    assert_int_equal(b.role, TG_TERM_STANDBY);
}

static void own_messages_are_no_peer(void **state)
{
    struct tg_term term;
    tg_term_begin(&term, "a", at(0), 0);
    int64_t now = run(&term, 0, 2500);
    assert_false(tg_term_heard(&term, 1, "a", at(now)));
    assert_true(tg_term_acts(&term));
}

/* A process that restarts under the same name hears what its former self said last. */
static void own_earlier_messages_are_evidence_of_their_number(void **state)
{
    struct tg_term term;
    tg_term_begin(&term, "a", at(0), 0);
    tg_term_heard(&term, 9, "a", at(100));
    run(&term, 0, 2500);
    assert_true(tg_term_acts(&term));
    assert_int_equal(term.number, 10);
}

static void frozen_it_steps_down_before_anything_else(void **state)
{
    struct tg_term term;
    tg_term_begin(&term, "a", at(0), 0);
    int64_t now = run(&term, 0, 2500);
    tg_term_check(&term, at(now + TG_TERM_UNSURE_MS));
    assert_true(tg_term_acts(&term));
    tg_term_check(&term, at(now + TG_TERM_UNSURE_MS + 1));
    assert_int_equal(term.role, TG_TERM_STANDBY);
}

static void frozen_while_collecting_it_listens_anew(void **state)
{
    struct tg_term term;
    tg_term_begin(&term, "a", at(0), 0);
    run(&term, 0, 1900);
    assert_int_equal(term.role, TG_TERM_COLLECTING);
    tg_term_tick(&term, at(60000), true, 0);
    assert_int_equal(term.role, TG_TERM_STANDBY);
    run(&term, 60050, 61450);
    assert_int_equal(term.role, TG_TERM_STANDBY);
}

/* Running is not enough: what others did not hear does not keep it active. */
static void unannounced_it_steps_down(void **state)
{
    struct tg_term term;
    tg_term_begin(&term, "a", at(0), 0);
    int64_t now = run(&term, 0, 2500);
    for (int64_t ms = now; ms <= now + TG_TERM_UNSURE_MS; ms += STEP_MS) {
        tg_term_tick(&term, at(ms), true, 0);
        assert_true(tg_term_acts(&term));
    }
    tg_term_tick(&term, at(now + TG_TERM_UNSURE_MS + STEP_MS), true, 0);
    assert_int_equal(term.role, TG_TERM_STANDBY);
}

/* Time in which it could not hear anybody is not time in which nobody spoke. */
static void time_lost_does_not_count_as_waiting(void **state)
{
    struct tg_term term;
    tg_term_begin(&term, "a", at(0), 0);
    run(&term, 0, 1000);
    tg_term_tick(&term, at(1900), true, 0);
    assert_int_equal(term.role, TG_TERM_STANDBY);
    run(&term, 1950, 2250);
    assert_int_equal(term.role, TG_TERM_STANDBY);
    run(&term, 2300, 2300);
    assert_int_equal(term.role, TG_TERM_COLLECTING);
}

static void a_claimant_that_was_deaf_begins_again(void **state)
{
    struct tg_term term;
    tg_term_begin(&term, "a", at(0), 0);
    run(&term, 0, 2000);
    assert_int_equal(term.role, TG_TERM_SETTLING);
    tg_term_tick(&term, at(2000 + TG_TERM_DEAF_MS + 1), true, 0);
    assert_int_equal(term.role, TG_TERM_STANDBY);
}

static void cut_off_it_steps_down_and_waits_after_reconnecting(void **state)
{
    struct tg_term term;
    tg_term_begin(&term, "a", at(0), 0);
    int64_t now = run(&term, 0, 2500);
    for (int64_t ms = now; ms <= now + 20000; ms += STEP_MS) {
        tg_term_tick(&term, at(ms), false, 0);
    }
    assert_int_equal(term.role, TG_TERM_STANDBY);
    run(&term, now + 20050, now + 21500);
    assert_int_equal(term.role, TG_TERM_STANDBY);
    run(&term, now + 21550, now + 22500);
    assert_true(tg_term_acts(&term));
    assert_int_equal(term.number, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone_it_becomes_active_within_three_seconds),
        cmocka_unit_test(jitter_lengthens_the_silence_but_stays_within_three_seconds),
        cmocka_unit_test(a_heard_peer_keeps_it_on_standby),
        cmocka_unit_test(evidence_while_collecting_raises_the_number),
        cmocka_unit_test(a_higher_number_makes_the_active_one_step_down),
        cmocka_unit_test(evidence_of_a_higher_number_makes_the_active_one_step_down),
        cmocka_unit_test(lower_numbers_are_ignored),
        cmocka_unit_test(of_two_who_settle_the_smaller_name_stays),
        cmocka_unit_test(who_settles_yields_to_one_that_acts),
        cmocka_unit_test(of_two_who_act_the_smaller_name_stays),
        cmocka_unit_test(own_messages_are_no_peer),
        cmocka_unit_test(own_earlier_messages_are_evidence_of_their_number),
        cmocka_unit_test(frozen_it_steps_down_before_anything_else),
        cmocka_unit_test(frozen_while_collecting_it_listens_anew),
        cmocka_unit_test(unannounced_it_steps_down),
        cmocka_unit_test(time_lost_does_not_count_as_waiting),
        cmocka_unit_test(a_claimant_that_was_deaf_begins_again),
        cmocka_unit_test(cut_off_it_steps_down_and_waits_after_reconnecting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
