/* SPDX-License-Identifier: Apache-2.0
 * The sweeper's decisions: the way of a page, full pages, poison (case_07), lost answers, drains.
 */
#include "services/sweeper/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static struct sweeper_sale sale;
static struct sweeper_actions actions;

static int fresh(void **state)
{
    memset(&sale, 0, sizeof sale);
    return 0;
}

static struct sweeper_id id_of(int number)
{
    struct sweeper_id id;
    (void)snprintf(id.text, sizeof id.text, "res_%026d", number);
    return id;
}

static void tick(int64_t now_ms)
{
    const struct sweeper_event event = {.kind = SWEEPER_TICK};
    sweeper_step(&sale, (struct tg_mono){now_ms}, &event, &actions);
}

static void answer(int64_t now_ms, enum sweeper_lane_name lane, struct sweeper_event event)
{
    event.lane = lane;
    event.sequence = sale.lanes[lane].sequence;
    sweeper_step(&sale, (struct tg_mono){now_ms}, &event, &actions);
}

/* A due page: lapsed ids from..., orders from ... */
static void due(int64_t now_ms, int lapsed_from, int lapsed_count, int order_from, int order_count)
{
    static struct sweeper_id lapsed[SWEEPER_PAGE];
    static struct sweeper_order orders[SWEEPER_PAGE];
    for (int i = 0; i < lapsed_count; i++) {
        lapsed[i] = id_of(lapsed_from + i);
    }
    for (int i = 0; i < order_count; i++) {
        orders[i] = (struct sweeper_order){.id = id_of(order_from + i), .kind = SWEEPER_RELEASE};
    }
    answer(now_ms, SWEEPER_CARRY,
           (struct sweeper_event){.kind = SWEEPER_DUE,
                                  .epoch = 3,
                                  .generation = 2,
                                  .lapsed = lapsed,
                                  .lapsed_count = (uint32_t)lapsed_count,
                                  .lapsed_full = lapsed_count == SWEEPER_PAGE,
                                  .orders = orders,
                                  .order_count = (uint32_t)order_count,
                                  .orders_full = order_count == SWEEPER_PAGE});
}

static void results(int64_t now_ms, int from, int count, enum sweeper_obedience obedience)
{
    static struct sweeper_result rows[SWEEPER_PAGE];
    for (int i = 0; i < count; i++) {
        rows[i] = (struct sweeper_result){
            .id = id_of(from + i), .kind = SWEEPER_RELEASE, .obedience = obedience};
    }
    answer(now_ms, SWEEPER_CARRY,
           (struct sweeper_event){
               .kind = SWEEPER_RESULTS, .results = rows, .result_count = (uint32_t)count});
}

static void stored(int64_t now_ms)
{
    answer(now_ms, SWEEPER_CARRY, (struct sweeper_event){.kind = SWEEPER_STORED});
}

static void verdicts(int64_t now_ms, enum sweeper_lane_name lane, uint32_t final_verdicts)
{
    answer(now_ms, lane,
           (struct sweeper_event){.kind = SWEEPER_VERDICTS, .final_verdicts = final_verdicts});
}

static void a_page_goes_verdict_obey_obeyed(void **state)
{
    tick(1000);
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_DUE);
    assert_int_equal(actions.calls[SWEEPER_BURY], SWEEPER_CALL_GATE_DUE);
    due(1001, 1, 2, 10, 3);
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_EXPIRE);
    assert_int_equal(sale.lapsed_count, 2);
    assert_int_equal(sale.epoch, 3);
    assert_int_equal(sale.generation, 2);
    verdicts(1002, SWEEPER_CARRY, 2);
    assert_int_equal(actions.expired, 2);
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_OBEY);
    results(1003, 10, 3, SWEEPER_DONE);
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_OBEYED);
    assert_int_equal(sale.result_count, 3);
    stored(1004);
    assert_int_equal(actions.obeyed, 3);
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_NONE);
    tick(1203);
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_NONE);
    tick(1204);
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_DUE);
}

static void only_what_the_gate_did_is_reported(void **state)
{
    tick(1000);
    due(1000, 0, 0, 1, 4);
    struct sweeper_result rows[5];
    for (int i = 0; i < 5; i++) {
        rows[i] = (struct sweeper_result){.id = id_of(1 + i), .kind = SWEEPER_RELEASE};
    }
    rows[0].obedience = SWEEPER_ALREADY;
    rows[1].obedience = SWEEPER_UNANSWERED;
    rows[2].obedience = SWEEPER_NOT_KNOWN_THERE;
    rows[3].obedience = SWEEPER_DOUBT;
    rows[4].obedience = SWEEPER_DONE; /* nobody ordered this one */
    answer(1001, SWEEPER_CARRY,
           (struct sweeper_event){.kind = SWEEPER_RESULTS, .results = rows, .result_count = 5});
    assert_int_equal(sale.result_count, 1);
    assert_string_equal(sale.results[0].id.text, id_of(1).text);
    assert_int_equal(actions.poison_count, 2);
    assert_int_equal(actions.poison_new_count, 2);
}

static void nothing_done_is_nothing_reported(void **state)
{
    tick(1000);
    due(1000, 0, 0, 1, 2);
    results(1001, 1, 2, SWEEPER_UNANSWERED);
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_NONE);
    assert_int_equal(sale.lanes[SWEEPER_CARRY].call, SWEEPER_CALL_NONE);
}

static void a_full_page_is_followed_at_once(void **state)
{
    tick(1000);
    due(1000, 1, SWEEPER_PAGE, 0, 0);
    verdicts(1001, SWEEPER_CARRY, SWEEPER_PAGE);
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_DUE);
    due(1002, 1, SWEEPER_PAGE, 0, 0);
    verdicts(1003, SWEEPER_CARRY, 0); /* nothing moved: no busy loop */
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_NONE);
}

static void case_07_poison_is_logged_once_and_retried_later(void **state)
{
    tick(1000);
    due(1000, 0, 0, 1, 1);
    results(1000, 1, 1, SWEEPER_DOUBT);
    assert_int_equal(actions.poison_new_count, 1);
    tick(1200);
    due(1200, 0, 0, 1, 1);
    assert_int_equal(actions.calls[SWEEPER_CARRY],
                     SWEEPER_CALL_NONE); /* backed off: not even asked */
    tick(2000);
    due(2000, 0, 0, 1, 1);
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_OBEY);
    results(2000, 1, 1, SWEEPER_DOUBT);
    assert_int_equal(actions.poison_count, 1);
    assert_int_equal(actions.poison_new_count, 0);
    tick(3999);
    due(3999, 0, 0, 1, 1);
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_NONE); /* twice as long now */
    tick(4199);
    due(4199, 0, 0, 1, 1);
    results(4199, 1, 1, SWEEPER_DONE); /* healed */
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_OBEYED);
    assert_int_equal(sale.poison[0].id.text[0], '\0');
}

static void case_07_a_page_of_poison_hides_nobody(void **state)
{
    tick(1000);
    assert_string_equal(sale.cursor.text, "");
    due(1000, 0, 0, 1, SWEEPER_PAGE);
    results(1000, 1, SWEEPER_PAGE, SWEEPER_NOT_KNOWN_THERE);
    assert_int_equal(actions.calls[SWEEPER_CARRY],
                     SWEEPER_CALL_DUE); /* at once: behind them may be others */
    assert_string_equal(sale.cursor.text, id_of(SWEEPER_PAGE).text);
    due(1001, 0, 0, SWEEPER_PAGE + 1, 2);
    results(1001, SWEEPER_PAGE + 1, 2, SWEEPER_DONE);
    stored(1002);
    assert_int_equal(actions.obeyed, 2);
    assert_string_equal(sale.cursor.text, "");
}

static void a_page_round_the_end_is_not_followed_at_once(void **state)
{
    static struct sweeper_order orders[SWEEPER_PAGE];
    tick(1000);
    due(1000, 0, 0, 51, SWEEPER_PAGE);
    results(1000, 51, SWEEPER_PAGE, SWEEPER_DOUBT);
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_DUE);
    /* after the cursor 151..200, then from the start 1..50: the ledger has come round */
    for (int i = 0; i < SWEEPER_PAGE; i++) {
        orders[i] =
            (struct sweeper_order){.id = id_of(i < 50 ? 151 + i : i - 49), .kind = SWEEPER_RELEASE};
    }
    answer(1001, SWEEPER_CARRY,
           (struct sweeper_event){.kind = SWEEPER_DUE,
                                  .orders = orders,
                                  .order_count = SWEEPER_PAGE,
                                  .orders_full = true});
    static struct sweeper_result rows[SWEEPER_PAGE];
    for (int i = 0; i < SWEEPER_PAGE; i++) {
        rows[i] = (struct sweeper_result){
            .id = orders[i].id, .kind = SWEEPER_RELEASE, .obedience = SWEEPER_DOUBT};
    }
    answer(1002, SWEEPER_CARRY,
           (struct sweeper_event){
               .kind = SWEEPER_RESULTS, .results = rows, .result_count = SWEEPER_PAGE});
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_NONE);
    assert_string_equal(sale.cursor.text, id_of(50).text);
}

static void more_poison_than_remembered_still_ends_the_turn(void **state)
{
    int64_t now_ms = 1000;
    tick(now_ms);
    for (int page = 0; page < 5; page++) {
        due(now_ms, 0, 0, 1 + page * SWEEPER_PAGE, SWEEPER_PAGE);
        results(now_ms, 1 + page * SWEEPER_PAGE, SWEEPER_PAGE, SWEEPER_DOUBT);
        assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_DUE);
        now_ms++;
    }
    due(now_ms, 0, 0, 1000, 1);
    results(now_ms, 1000, 1, SWEEPER_DONE);
    stored(now_ms);
    assert_int_equal(actions.obeyed, 1);
}

static void lost_answers_are_asked_again(void **state)
{
    tick(1000);
    answer(3000, SWEEPER_CARRY, (struct sweeper_event){.kind = SWEEPER_FAILED});
    assert_int_equal(sweeper_in_flight(&sale), 1); /* the bury lane waits on its own */
    tick(3200);
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_DUE);
}

static void lost_verdicts_keep_no_orders_waiting(void **state)
{
    tick(1000);
    due(1000, 1, 5, 10, 1);
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_EXPIRE);
    answer(3000, SWEEPER_CARRY, (struct sweeper_event){.kind = SWEEPER_FAILED});
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_OBEY);
    answer(5000, SWEEPER_CARRY, (struct sweeper_event){.kind = SWEEPER_FAILED});
    assert_int_equal(actions.calls[SWEEPER_CARRY], SWEEPER_CALL_NONE);
}

static void late_and_foreign_answers_change_nothing(void **state)
{
    tick(1000);
    const struct sweeper_event late = {.kind = SWEEPER_DUE,
                                       .lane = SWEEPER_CARRY,
                                       .sequence = sale.lanes[SWEEPER_CARRY].sequence - 1};
    sweeper_step(&sale, (struct tg_mono){1001}, &late, &actions);
    assert_int_equal(sale.lanes[SWEEPER_CARRY].call, SWEEPER_CALL_DUE);
    answer(1001, SWEEPER_CARRY, (struct sweeper_event){.kind = SWEEPER_RESULTS});
    assert_int_equal(sale.lanes[SWEEPER_CARRY].call, SWEEPER_CALL_DUE);
    answer(1001, SWEEPER_CARRY, (struct sweeper_event){.kind = SWEEPER_STORED});
    assert_int_equal(sale.lanes[SWEEPER_CARRY].call, SWEEPER_CALL_DUE);
}

static void forgotten_holds_are_buried(void **state)
{
    static struct sweeper_hold holds[SWEEPER_BURY_PAGE];
    for (int i = 0; i < SWEEPER_BURY_PAGE; i++) {
        holds[i].id = id_of(i);
    }
    tick(1000);
    const struct sweeper_event page = {.kind = SWEEPER_GATE_DUE,
                                       .epoch = 9,
                                       .generation = 4,
                                       .holds = holds,
                                       .hold_count = SWEEPER_BURY_PAGE,
                                       .holds_full = true};
    answer(1001, SWEEPER_BURY, page);
    assert_int_equal(actions.calls[SWEEPER_BURY], SWEEPER_CALL_BURY);
    assert_int_equal(sale.hold_count, SWEEPER_BURY_PAGE);
    assert_int_equal(sale.bury_epoch, 9);
    assert_int_equal(sale.bury_generation, 4);
    verdicts(1002, SWEEPER_BURY, 5);
    assert_int_equal(actions.buried, 5);
    assert_int_equal(actions.calls[SWEEPER_BURY], SWEEPER_CALL_GATE_DUE);
    answer(1003, SWEEPER_BURY, page);
    verdicts(1004, SWEEPER_BURY, 0); /* all still pending */
    assert_int_equal(actions.calls[SWEEPER_BURY], SWEEPER_CALL_NONE);
    tick(2003);
    assert_int_equal(actions.calls[SWEEPER_BURY], SWEEPER_CALL_NONE);
    tick(2004);
    assert_int_equal(actions.calls[SWEEPER_BURY], SWEEPER_CALL_GATE_DUE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_page_goes_verdict_obey_obeyed, fresh),
        cmocka_unit_test_setup(only_what_the_gate_did_is_reported, fresh),
        cmocka_unit_test_setup(nothing_done_is_nothing_reported, fresh),
        cmocka_unit_test_setup(a_full_page_is_followed_at_once, fresh),
        cmocka_unit_test_setup(case_07_poison_is_logged_once_and_retried_later, fresh),
        cmocka_unit_test_setup(case_07_a_page_of_poison_hides_nobody, fresh),
        cmocka_unit_test_setup(a_page_round_the_end_is_not_followed_at_once, fresh),
        cmocka_unit_test_setup(more_poison_than_remembered_still_ends_the_turn, fresh),
        cmocka_unit_test_setup(lost_answers_are_asked_again, fresh),
        cmocka_unit_test_setup(lost_verdicts_keep_no_orders_waiting, fresh),
        cmocka_unit_test_setup(late_and_foreign_answers_change_nothing, fresh),
        cmocka_unit_test_setup(forgotten_holds_are_buried, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
