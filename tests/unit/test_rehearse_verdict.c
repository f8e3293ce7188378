/* SPDX-License-Identifier: Apache-2.0
 * pass, fail or void: what a load generator that did not keep up excuses, and what nothing excuses.
 */
#include "tools/rehearse/report.h"

#include "tests/unit/cmocka_tests.h"

#include <string.h>

enum { TICK_MS = 10 };

static struct {
    struct rehearse_options options;
    struct rehearse_crowd crowd;
    struct rehearse_result result;
} scene;

/* A clean run whose generator kept up. */
static void set(void)
{
    memset(&scene, 0, sizeof(scene));
    scene.crowd.options = &scene.options;
    scene.crowd.finished = true;
    scene.result.options = &scene.options;
    scene.result.crowd = &scene.crowd;
    scene.result.counts.rounds_clean = 1;
    scene.result.findings.first_empty_ms = INT64_MAX;
}

static void turns(uint32_t count, uint32_t turn_ms, uint32_t waited_ms)
{
    for (uint32_t i = 0; i < count; i++) {
        rehearse_strain_add(&scene.crowd.strain, turn_ms, waited_ms);
    }
}

static void expect(enum rehearse_verdict verdict, size_t failures)
{
    rehearse_conclude(&scene.result);
    assert_int_equal(scene.result.verdict, verdict);
    assert_int_equal(scene.result.failure_count, failures);
}

static void a_generator_that_keeps_up_changes_nothing(void **state)
{
    set();
    turns(100000, REHEARSE_LATE_MS, REHEARSE_WAITED_MS); /* at both bounds, not beyond */
    assert_int_equal(scene.crowd.strain.late_ms + scene.crowd.strain.queued_ms, 0);
    expect(REHEARSE_PASS, 0);
    set();
    turns(1, REHEARSE_STRAINED_MS, 0); /* the machine slept once */
    assert_int_equal(scene.crowd.strain.longest_ms, REHEARSE_STRAINED_MS);
    expect(REHEARSE_PASS, 0);
    set();
    scene.crowd.finished = false;
    expect(REHEARSE_FAIL, 1);
}

static void a_late_loop_makes_the_run_void(void **state)
{
    set();
    turns(REHEARSE_STRAINED_MS / 1000 + 1, 1000, 0);
    expect(REHEARSE_VOID, 1);
}

static void a_queue_that_waits_for_long_makes_the_run_void(void **state)
{
    set();
    turns(REHEARSE_STRAINED_MS / TICK_MS, TICK_MS, REHEARSE_WAITED_MS + 1);
    expect(REHEARSE_PASS, 0);
    set();
    turns(REHEARSE_STRAINED_MS / TICK_MS + 1, TICK_MS, REHEARSE_WAITED_MS + 1);
    expect(REHEARSE_VOID, 1);
    set();
    scene.options.faults = true; /* a frozen edge holds its connections: that is no strain */
    turns(REHEARSE_STRAINED_MS, TICK_MS, 60000);
    expect(REHEARSE_PASS, 0);
}

/* What may be its own fault does not count against the engine; all of it is still told. */
static void a_strained_run_does_not_blame_the_engine(void **state)
{
    set();
    turns(100, 1000, 0);
    scene.crowd.finished = false;
    scene.crowd.totals.by_state[REHEARSE_FAILED] = 3;
    scene.crowd.totals.status_5xx = 1;
    scene.options.settle_s = 1;
    scene.result.counts.rounds_clean = 0;
    expect(REHEARSE_VOID, 6);
}

/* One unit too many is one too many at any speed. */
static void a_broken_rule_is_never_void(void **state)
{
    struct rehearse_findings *findings = &scene.result.findings;
    uint64_t *const counts[] = {
        &findings->oversold,          &findings->over_limit,        &findings->leaked,
        &findings->lost_holds,        &findings->wrong_holds,       &findings->wrong_orders,
        &findings->refused_after_win, &findings->two_for_one_key,   &findings->false_sold_out,
        &findings->false_alarms,      &findings->held_while_paused, &scene.crowd.totals.unreadable};
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        set();
        turns(100, 1000, 60000);
        *counts[i] = 1;
        expect(REHEARSE_FAIL, 2);
    }
    set();
    turns(100, 1000, 60000);
    findings->alarm_missing = true;
    expect(REHEARSE_FAIL, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_generator_that_keeps_up_changes_nothing),
        cmocka_unit_test(a_late_loop_makes_the_run_void),
        cmocka_unit_test(a_queue_that_waits_for_long_makes_the_run_void),
        cmocka_unit_test(a_strained_run_does_not_blame_the_engine),
        cmocka_unit_test(a_broken_rule_is_never_void),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
