/* SPDX-License-Identifier: Apache-2.0
 * The referee finds every kind of lie, and nothing where there is none. */
#include "tools/rehearse/referee.h"

#include "tools/rehearse/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Two units, three buyers: 0 buys unit 0; 1 holds unit 1, lets it lapse; 2 hears sold out, then
 * gets unit 1. */
struct scene {
    struct rehearse_log log;
    struct rehearse_row rows[3];
    struct rehearse_stock stock[6];
    struct rehearse_facts facts;
    struct rehearse_findings findings;
};

static void told(struct scene *scene, uint32_t buyer, enum rehearse_ask ask,
                 enum rehearse_told what, uint32_t sent_ms)
{
    struct rehearse_seen seen = {.buyer = buyer,
                                 .ask = (uint8_t)ask,
                                 .told = (uint8_t)what,
                                 .sent_ms = sent_ms,
                                 .answered_ms = sent_ms + 10};
    if (what == REHEARSE_TOLD_HELD || what == REHEARSE_TOLD_CONFIRMED) {
        seen.reservation[0] = (uint8_t)(buyer + 1);
        seen.unit = buyer == 0 ? 0 : 1;
    }
    rehearse_log_add(&scene->log, &seen);
}

static void set(struct scene *scene)
{
    memset(scene, 0, sizeof(*scene));
    told(scene, 0, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_HELD, 1000);
    told(scene, 1, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_HELD, 1100);
    told(scene, 2, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_SOLD_OUT, 1200);
    told(scene, 0, REHEARSE_ASK_CONFIRM, REHEARSE_TOLD_CONFIRMED, 2000);
    told(scene, 2, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_HELD, 5000);
    told(scene, 2, REHEARSE_ASK_CONFIRM, REHEARSE_TOLD_CONFIRMED, 6000);
    told(scene, UINT32_MAX, REHEARSE_ASK_BOARD, REHEARSE_TOLD_FINAL, 9000);
    for (uint32_t i = 0; i < 3; i++) {
        scene->rows[i] = (struct rehearse_row){.reservation = {(uint8_t)(i + 1)},
                                               .buyer = i,
                                               .unit = i == 0 ? 0 : 1,
                                               .has_unit = true,
                                               .confirmed = i != 1};
    }
    const struct rehearse_stock stock[6] = {{1005, 1, 1}, {1105, 0, 2}, {2005, 0, 1},
                                            {4000, 1, 0}, {5005, 0, 1}, {6005, 0, 0}};
    memcpy(scene->stock, stock, sizeof(stock));
    scene->facts = (struct rehearse_facts){.units = 2,
                                           .live = 2,
                                           .gate_settled = 2,
                                           .gate_known = true,
                                           .rows = scene->rows,
                                           .row_count = 3,
                                           .stock = scene->stock,
                                           .stock_count = 6,
                                           .stock_known = true};
}

static void judge(struct scene *scene)
{
    rehearse_sort_rows(&scene->facts);
    rehearse_judge(&scene->log, &scene->facts, &scene->findings);
    rehearse_log_clear(&scene->log);
}

static void a_clean_run_has_no_findings(void **state)
{
    struct scene scene;
    set(&scene);
    judge(&scene);
    assert_int_equal(rehearse_wrong_answers(&scene.findings), 0);
    assert_int_equal(scene.findings.oversold, 0);
    assert_int_equal(scene.findings.over_limit, 0);
    assert_int_equal(scene.findings.leaked, 0);
    assert_int_equal(scene.findings.told_late, 0);
    assert_int_equal(scene.findings.first_empty_ms, 1105);
    assert_int_equal(scene.findings.finished_ms, 6005);
}

static void an_empty_run_has_no_findings(void **state)
{
    struct scene scene;
    memset(&scene, 0, sizeof(scene));
    scene.facts = (struct rehearse_facts){
        .units = 5, .gate_free = 5, .gate_bits = 5, .gate_known = true, .stock_known = true};
    judge(&scene);
    assert_int_equal(rehearse_wrong_answers(&scene.findings) + scene.findings.leaked, 0);
    assert_int_equal(scene.findings.first_empty_ms, INT64_MAX);
}

static void r1_more_owners_than_units(void **state)
{
    struct scene scene;
    set(&scene);
    scene.facts.live = 3;
    judge(&scene);
    assert_int_equal(scene.findings.oversold, 1);
    set(&scene);
    scene.facts.units_twice = 1;
    scene.facts.buyers_over_limit = 1;
    judge(&scene);
    assert_int_equal(scene.findings.oversold, 1);
    assert_int_equal(scene.findings.over_limit, 1);
}

static void r2_a_unit_nobody_accounts_for(void **state)
{
    struct scene scene;
    set(&scene);
    scene.facts.gate_settled = 1; /* sold in the ledger, gone at the gate */
    judge(&scene);
    assert_int_equal(scene.findings.leaked, 1);
    set(&scene);
    scene.facts.gate_bits = 1; /* a free bit nobody counts */
    judge(&scene);
    assert_int_equal(scene.findings.leaked, 1);
    set(&scene);
    scene.facts.live = 1; /* lapsed in the ledger, still taken at the gate */
    judge(&scene);
    assert_int_equal(scene.findings.leaked, 1);
    set(&scene);
    scene.facts.gate_known = false;
    judge(&scene);
    assert_int_equal(scene.findings.leaked, 2);
}

static void r3_a_201_without_its_row(void **state)
{
    struct scene scene;
    set(&scene);
    scene.rows[1].reservation[0] = 99;
    judge(&scene);
    assert_int_equal(scene.findings.lost_holds, 1);
    set(&scene);
    scene.rows[1].tombstone = true; /* buried without ever being recorded */
    judge(&scene);
    assert_int_equal(scene.findings.lost_holds, 1);
}

static void r3_a_row_that_is_not_what_was_told(void **state)
{
    struct scene scene;
    set(&scene);
    scene.rows[1].unit = 0;
    judge(&scene);
    assert_int_equal(scene.findings.wrong_holds, 1);
    set(&scene);
    scene.rows[1].buyer = 2;
    judge(&scene);
    assert_int_equal(scene.findings.wrong_holds, 1);
    set(&scene);
    scene.rows[0].confirmed = false;
    judge(&scene);
    assert_int_equal(scene.findings.wrong_orders, 1);
}

static void r4_sold_out_after_a_win(void **state)
{
    struct scene scene;
    set(&scene);
    told(&scene, 0, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_SOLD_OUT, 1500);
    judge(&scene);
    assert_int_equal(scene.findings.refused_after_win, 1);
    set(&scene);
    told(&scene, 0, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_SOLD_OUT,
         1005); /* both under way: no contradiction */
    scene.log.rows[scene.log.count - 1].answered_ms = 1200;
    judge(&scene);
    assert_int_equal(scene.findings.refused_after_win, 0);
    set(&scene);
    told(&scene, 0, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_SOLD_OUT, 1500);
    scene.log.rows[scene.log.count - 1].attempt = 1; /* another key */
    judge(&scene);
    assert_int_equal(scene.findings.refused_after_win, 0);
}

static void r4_two_reservations_for_one_key(void **state)
{
    struct scene scene;
    set(&scene);
    told(&scene, 0, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_HELD, 1500);
    judge(&scene);
    assert_int_equal(scene.findings.two_for_one_key, 0); /* the same one again */
    set(&scene);
    told(&scene, 0, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_HELD, 1500);
    scene.log.rows[scene.log.count - 1].reservation[0] = 2;
    judge(&scene);
    assert_int_equal(scene.findings.two_for_one_key, 1);
}

static void r5_sold_out_while_there_was_stock(void **state)
{
    static const struct {
        uint32_t sent_ms;
        enum rehearse_ask ask;
        enum rehearse_told told;
        uint64_t wrong;
    } rows[] = {
        {500, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_SOLD_OUT, 1},  /* before the first hold */
        {1050, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_SOLD_OUT, 1}, /* one left */
        {1100, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_SOLD_OUT,
         0}, /* the last one went while it was asked */
        {3000, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_SOLD_OUT, 0},
        {4500, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_SOLD_OUT, 1}, /* one came back */
        {4500, REHEARSE_ASK_STATUS, REHEARSE_TOLD_SOLD_OUT, 0},  /* by an announcement of before */
        {5200, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_SOLD_OUT, 0},
        {3000, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_FINAL, 1}, /* one is held: not for good */
        {5200, REHEARSE_ASK_STATUS, REHEARSE_TOLD_FINAL, 1},
        {7000, REHEARSE_ASK_RESERVE, REHEARSE_TOLD_FINAL, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scene scene;
        set(&scene);
        told(&scene, 7, rows[i].ask, rows[i].told, rows[i].sent_ms);
        judge(&scene);
        if (scene.findings.false_sold_out != rows[i].wrong) {
            fail_msg("row %zu: %d", i, (int)scene.findings.false_sold_out);
        }
    }
}

static void r6_an_alarm_without_a_cause_and_a_cause_without_an_alarm(void **state)
{
    static const struct {
        uint64_t alarms;
        bool corrupted;
        uint64_t false_alarms;
        bool missing;
    } rows[] = {
        {0, false, 0, false}, {2, false, 2, false}, {2, true, 0, false}, {0, true, 0, true}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct scene scene;
        set(&scene);
        scene.facts.alarms = rows[i].alarms;
        scene.facts.corrupted = rows[i].corrupted;
        judge(&scene);
        assert_int_equal(scene.findings.false_alarms, rows[i].false_alarms);
        assert_int_equal(scene.findings.alarm_missing, rows[i].missing);
    }
}

static void r7_held_while_paused(void **state)
{
    struct scene scene;
    set(&scene);
    scene.facts.held_while_paused = 1;
    judge(&scene);
    assert_int_equal(scene.findings.held_while_paused, 1);
}

static void told_late_counts_who_is_left_waiting(void **state)
{
    struct scene scene;
    set(&scene);
    told(&scene, 7, REHEARSE_ASK_STATUS, REHEARSE_TOLD_WAIT, 6900); /* within the second */
    told(&scene, 8, REHEARSE_ASK_STATUS, REHEARSE_TOLD_WAIT, 7100);
    judge(&scene);
    assert_int_equal(scene.findings.told_late, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_clean_run_has_no_findings),
        cmocka_unit_test(an_empty_run_has_no_findings),
        cmocka_unit_test(r1_more_owners_than_units),
        cmocka_unit_test(r2_a_unit_nobody_accounts_for),
        cmocka_unit_test(r3_a_201_without_its_row),
        cmocka_unit_test(r3_a_row_that_is_not_what_was_told),
        cmocka_unit_test(r4_sold_out_after_a_win),
        cmocka_unit_test(r4_two_reservations_for_one_key),
        cmocka_unit_test(r5_sold_out_while_there_was_stock),
        cmocka_unit_test(r6_an_alarm_without_a_cause_and_a_cause_without_an_alarm),
        cmocka_unit_test(r7_held_while_paused),
        cmocka_unit_test(told_late_counts_who_is_left_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
