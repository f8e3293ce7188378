/* SPDX-License-Identifier: Apache-2.0
 * When the checker reads what, when it accuses Redis of being gone, and how it pauses; and the
 * log's continuity. */
#include "services/invariant/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static struct invariant_sale sale;
static struct tg_sale view;

static int fresh(void **state)
{
    memset(&sale, 0, sizeof sale);
    memset(&view, 0, sizeof view);
    view.armed = true;
    view.phase = TG_PHASE_OPEN;
    view.epoch = 4;
    view.generation = 1;
    view.shards = 1;
    view.proof_every_ms = 1000;
    return 0;
}

/* The ledger was heard just now. */
static enum invariant_turn turn(int64_t now_ms, bool reachable)
{
    view.heard.ms = now_ms;
    return invariant_turn(&sale, &view, (struct tg_mono){now_ms}, reachable);
}

static void assert_steps(const enum invariant_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(sale.round.step, steps[i]);
        invariant_advance(&sale, INVARIANT_READ);
    }
}

/* ---- rounds ---- */

static void a_round_reads_r1_then_p_then_r2(void **state)
{
    static const enum invariant_step steps[] = {
        INVARIANT_SERVER,    INVARIANT_LOOK1,    INVARIANT_HEAD,     INVARIANT_LOG,
        INVARIANT_HELD1,     INVARIANT_UNACKED1, INVARIANT_SETTLED1, INVARIANT_RELEASED1,
        INVARIANT_BUYERS,    INVARIANT_LEDGER,   INVARIANT_HELD2,    INVARIANT_SETTLED2,
        INVARIANT_RELEASED2, INVARIANT_FREE2,    INVARIANT_LOOK2};
    assert_int_equal(turn(1000, true), INVARIANT_TURN_ROUND);
    assert_int_equal(turn(3000, true), INVARIANT_TURN_NONE); /* one at a time */
    assert_steps(steps, sizeof steps / sizeof steps[0]);
    assert_int_equal(sale.round.step, INVARIANT_JUDGE);
    assert_true(sale.round.complete);
    invariant_rest(&sale);
    assert_int_equal(turn(1999, true), INVARIANT_TURN_NONE);
    assert_int_equal(turn(2000, true), INVARIANT_TURN_ROUND);
}

static void shards_are_read_one_after_the_other_on_both_sides(void **state)
{
    static const enum invariant_step steps[] = {
        INVARIANT_SERVER,    INVARIANT_LOOK1,    INVARIANT_LOG,       INVARIANT_HELD1,
        INVARIANT_UNACKED1,  INVARIANT_SETTLED1, INVARIANT_RELEASED1, INVARIANT_LOOK1,
        INVARIANT_LOG,       INVARIANT_HELD1,    INVARIANT_UNACKED1,  INVARIANT_SETTLED1,
        INVARIANT_RELEASED1, INVARIANT_BUYERS,   INVARIANT_BUYERS,    INVARIANT_LEDGER,
        INVARIANT_HELD2,     INVARIANT_SETTLED2, INVARIANT_RELEASED2, INVARIANT_FREE2,
        INVARIANT_LOOK2,     INVARIANT_HELD2,    INVARIANT_SETTLED2,  INVARIANT_RELEASED2,
        INVARIANT_FREE2,     INVARIANT_LOOK2};
    view.shards = 2;
    sale.last_epoch = view.epoch;
    sale.logs[0].placed = sale.logs[1].placed = true;
    assert_int_equal(turn(1000, true), INVARIANT_TURN_ROUND);
    assert_steps(steps, sizeof steps / sizeof steps[0]);
    assert_int_equal(sale.round.step, INVARIANT_JUDGE);
    assert_int_equal(sale.round.looked, 2);
}

static void runs_while_armed_in_every_phase_but_closed(void **state)
{
    view.phase = TG_PHASE_CLOSED;
    assert_int_equal(turn(1000, true), INVARIANT_TURN_NONE);
    view.phase = TG_PHASE_PAUSED;
    view.armed = false;
    assert_int_equal(turn(1000, true), INVARIANT_TURN_NONE);
    view.armed = true;
    assert_int_equal(turn(1000, true), INVARIANT_TURN_ROUND);
    invariant_rest(&sale);
    view.phase = TG_PHASE_SCHEDULED;
    assert_int_equal(turn(2000, true), INVARIANT_TURN_ROUND);
    invariant_rest(&sale);
    view.phase = TG_PHASE_SOLD_OUT;
    assert_int_equal(turn(3000, true), INVARIANT_TURN_ROUND);
}

static void an_unknown_read_makes_the_round_void(void **state)
{
    assert_int_equal(turn(1000, true), INVARIANT_TURN_ROUND);
    invariant_advance(&sale, INVARIANT_READ);
    invariant_advance(&sale, INVARIANT_UNREAD);
    assert_int_equal(sale.round.step, INVARIANT_REST);
}

static void a_missing_gate_leaves_the_word_to_the_ledger(void **state)
{
    assert_int_equal(turn(1000, true), INVARIANT_TURN_ROUND);
    invariant_advance(&sale, INVARIANT_READ);
    invariant_advance(&sale, INVARIANT_LACKING);
    assert_int_equal(sale.round.step, INVARIANT_LEDGER);
    invariant_advance(&sale, INVARIANT_READ);
    assert_int_equal(sale.round.step, INVARIANT_JUDGE);
    assert_false(sale.round.complete);
    assert_int_equal(sale.round.looked, 1);
}

static void garbage_goes_straight_to_the_ledger_or_the_judgement(void **state)
{
    assert_int_equal(turn(1000, true), INVARIANT_TURN_ROUND);
    invariant_advance(&sale, INVARIANT_READ);
    invariant_advance(&sale, INVARIANT_GARBAGE);
    assert_int_equal(sale.round.step, INVARIANT_LEDGER);
    assert_true(sale.round.garbage);
    invariant_advance(&sale, INVARIANT_READ);
    assert_int_equal(sale.round.step, INVARIANT_JUDGE);
}

static void what_the_stream_lacks_is_asked_of_the_ledger(void **state)
{
    sale.last_epoch = view.epoch;
    sale.logs[0].placed = true;
    assert_int_equal(turn(1000, true), INVARIANT_TURN_ROUND);
    invariant_advance(&sale, INVARIANT_READ);
    invariant_advance(&sale, INVARIANT_READ);
    assert_int_equal(sale.round.step, INVARIANT_LOG);
    invariant_advance(&sale, INVARIANT_LACKING);
    assert_int_equal(sale.round.step, INVARIANT_FILL);
    invariant_advance(&sale, INVARIANT_READ);
    assert_int_equal(sale.round.step,
                     INVARIANT_LOG); /* read again: it may have been trimmed once more */
    invariant_advance(&sale, INVARIANT_LACKING);
    assert_int_equal(sale.round.step, INVARIANT_FILL);
    assert_false(sale.round.log_torn);
    invariant_advance(&sale, INVARIANT_LACKING); /* it is nowhere */
    assert_true(sale.round.log_torn);
    assert_int_equal(sale.round.step, INVARIANT_HELD1);
}

static void a_torn_log_does_not_hide_the_rest(void **state)
{
    sale.last_epoch = view.epoch;
    sale.logs[0].placed = true;
    assert_int_equal(turn(1000, true), INVARIANT_TURN_ROUND);
    invariant_advance(&sale, INVARIANT_READ);
    invariant_advance(&sale, INVARIANT_READ);
    invariant_advance(&sale, INVARIANT_TORN);
    assert_true(sale.round.log_torn);
    assert_int_equal(sale.round.step, INVARIANT_HELD1);
}

static void a_new_epoch_starts_its_log_anew(void **state)
{
    sale.last_epoch = 3;
    sale.logs[0] = (struct invariant_log){.placed = true, .sequence = 99};
    assert_int_equal(turn(1000, true), INVARIANT_TURN_ROUND);
    assert_false(sale.logs[0].placed);
    assert_int_equal(sale.logs[0].sequence, 0);
}

static void redis_is_lost_after_two_turns_in_a_row(void **state)
{
    assert_int_equal(turn(1000, false), INVARIANT_TURN_NONE);
    assert_int_equal(turn(1500, false), INVARIANT_TURN_NONE); /* not a turn yet */
    assert_int_equal(turn(2000, true), INVARIANT_TURN_ROUND);
    invariant_rest(&sale);
    assert_int_equal(turn(3000, false), INVARIANT_TURN_NONE);
    assert_int_equal(turn(4000, false), INVARIANT_TURN_LOST);
    assert_int_equal(turn(5000, false), INVARIANT_TURN_LOST);
}

static enum invariant_turn deaf_turn(int64_t now_ms, bool reachable)
{
    return invariant_turn(&sale, &view, (struct tg_mono){now_ms}, reachable);
}

static void a_checker_that_is_cut_off_accuses_nobody(void **state)
{
    assert_int_equal(turn(1000, true), INVARIANT_TURN_ROUND);
    invariant_rest(&sale);
    assert_int_equal(deaf_turn(2000, false), INVARIANT_TURN_NONE); /* counts: it may be Redis */
    for (int64_t now_ms = 3000; now_ms <= 20000; now_ms += 1000) {
        assert_int_equal(deaf_turn(now_ms, false), INVARIANT_TURN_NONE);
    }
    /* The bus is back first; Redis needs a moment longer. */
    for (int64_t now_ms = 21000; now_ms <= 24000; now_ms += 1000) {
        assert_int_equal(turn(now_ms, false), INVARIANT_TURN_NONE);
    }
    assert_int_equal(turn(25000, true), INVARIANT_TURN_ROUND);
    invariant_rest(&sale);
    /* Redis alone is gone: lost as ever. */
    assert_int_equal(turn(26000, false), INVARIANT_TURN_NONE);
    assert_int_equal(turn(27000, false), INVARIANT_TURN_LOST);
}

static void a_redis_that_stays_away_after_a_cut_is_lost(void **state)
{
    assert_int_equal(deaf_turn(5000, false), INVARIANT_TURN_NONE);
    for (int64_t now_ms = 6000; now_ms <= 10000; now_ms += 1000) {
        assert_int_equal(turn(now_ms, false), INVARIANT_TURN_NONE);
    }
    assert_int_equal(turn(11000, false), INVARIANT_TURN_LOST);
}

static void a_checker_that_was_stopped_accuses_nobody(void **state)
{
    assert_int_equal(turn(1000, true), INVARIANT_TURN_ROUND);
    invariant_advance(&sale, INVARIANT_UNREAD); /* its command timed out while it was stopped */
    assert_int_equal(turn(600000, false),
                     INVARIANT_TURN_NONE); /* reconnecting; one turn only, however late */
    assert_int_equal(turn(601000, true), INVARIANT_TURN_ROUND);
}

/* Each stop outlasts a command, so that each turn after one finds no connection. */
static void a_checker_stopped_again_and_again_accuses_nobody(void **state)
{
    for (int64_t now_ms = 1000; now_ms < 60000; now_ms += 1200) {
        assert_int_equal(turn(now_ms, false), INVARIANT_TURN_NONE);
        assert_int_equal(turn(now_ms + 100, true), INVARIANT_TURN_NONE); /* connected anew */
    }
}

static void a_sale_not_watched_forgets_that_redis_was_away(void **state)
{
    assert_int_equal(turn(1000, false), INVARIANT_TURN_NONE);
    view.armed = false;
    assert_int_equal(turn(2000, false), INVARIANT_TURN_NONE);
    view.armed = true;
    assert_int_equal(turn(3000, false), INVARIANT_TURN_NONE);
}

/* ---- the pause ---- */

#define FIRST "00000000000000000000000001"
#define SECOND "00000000000000000000000002"

static void show(const char *id)
{
    view.pause_count = 1;
    (void)snprintf(view.pauses[0].id, sizeof view.pauses[0].id, "%s", id);
}

static void a_pause_is_repeated_until_the_ledger_shows_it(void **state)
{
    invariant_alarm(&sale, &view, FIRST, "A");
    assert_true(invariant_pause_due(&sale, &view, (struct tg_mono){1000}));
    assert_false(invariant_pause_due(&sale, &view, (struct tg_mono){1999}));
    assert_true(invariant_pause_due(&sale, &view, (struct tg_mono){2000}));
    invariant_alarm(&sale, &view, SECOND,
                    "A"); /* the next round alarms too: still the same pause */
    assert_string_equal(sale.pause.id, FIRST);
    show(FIRST);
    assert_false(invariant_pause_due(&sale, &view, (struct tg_mono){3000}));
    invariant_alarm(&sale, &view, SECOND, "A"); /* in force: nothing to add */
    assert_string_equal(sale.pause.id, FIRST);
    assert_false(invariant_pause_due(&sale, &view, (struct tg_mono){9000}));
}

static void an_alarm_after_the_lift_takes_a_new_pause(void **state)
{
    invariant_alarm(&sale, &view, FIRST, "A");
    show(FIRST);
    assert_false(invariant_pause_due(&sale, &view, (struct tg_mono){1000}));
    view.pause_count = 0;
    view.lifted_count = 1;
    (void)snprintf(view.lifted[0], sizeof view.lifted[0], "%s", FIRST);
    invariant_alarm(&sale, &view, SECOND, "B");
    assert_string_equal(sale.pause.id, SECOND);
    assert_true(invariant_pause_due(&sale, &view, (struct tg_mono){2000}));
}

static void a_pause_lifted_before_we_saw_it_is_not_repeated(void **state)
{
    invariant_alarm(&sale, &view, FIRST, "A");
    view.lifted_count = 1;
    (void)snprintf(view.lifted[0], sizeof view.lifted[0], "%s", FIRST);
    assert_false(invariant_pause_due(&sale, &view, (struct tg_mono){1000}));
}

static void a_pause_of_another_generation_is_dropped(void **state)
{
    invariant_alarm(&sale, &view, FIRST, "A");
    view.generation = 2;
    assert_false(invariant_pause_due(&sale, &view, (struct tg_mono){1000}));
    invariant_alarm(&sale, &view, SECOND, "A");
    assert_string_equal(sale.pause.id, SECOND);
}

/* ---- pauses the ledger lacks ---- */

static void a_gates_own_pause_is_carried_to_the_ledger(void **state)
{
    static const struct tg_pause doubt[] = {{"00000000001764444444123456", "doubt: x"},
                                            {"01AAAAAAAAAAAAAAAAAAAAAAAA", "operator"}};
    assert_false(invariant_orphan(&sale, &view, doubt[0].id)); /* may be on its way to the ledger */
    invariant_orphans_end(&sale, &view, doubt, 2);
    assert_true(invariant_orphan(&sale, &view, doubt[0].id));
    assert_true(invariant_orphan(&sale, &view, doubt[1].id));
    view.pause_count = 1;
    view.pauses[0] = doubt[1];
    assert_false(invariant_orphan(&sale, &view, doubt[1].id));
    invariant_orphans_end(&sale, &view, doubt, 2);
    assert_int_equal(sale.orphans.count, 1);
    assert_true(invariant_orphan(&sale, &view, doubt[0].id)); /* repeated until it is shown */
    view.lifted_count = 1;
    memcpy(view.lifted[0], doubt[0].id, sizeof view.lifted[0]);
    assert_false(invariant_orphan(&sale, &view, doubt[0].id));
}

/* ---- the log ---- */

static enum invariant_log_step take(struct invariant_log *log, uint64_t sequence, int64_t change,
                                    int64_t stock_after)
{
    const struct invariant_log_entry entry = {
        .sequence = sequence, .change = change, .stock_after = stock_after, .readable = true};
    return invariant_log_take(log, &entry);
}

static void the_log_leads_from_stock_to_stock(void **state)
{
    struct invariant_log log = {.placed = true};
    assert_int_equal(take(&log, 1, -2, 8), INVARIANT_LOG_TAKEN);
    assert_int_equal(take(&log, 2, 0, 8), INVARIANT_LOG_TAKEN);
    assert_int_equal(take(&log, 3, 1, 9), INVARIANT_LOG_TAKEN);
    assert_int_equal(take(&log, 2, 7, 99), INVARIANT_LOG_TAKEN); /* seen before */
    assert_true(invariant_log_meets(&log, 3, 9));
    assert_false(invariant_log_meets(&log, 3, 10));
    assert_false(invariant_log_meets(&log, 2, 9)); /* went back: an older state was restored */
    assert_int_equal(take(&log, 5, 0, 9), INVARIANT_LOG_GAP);
    assert_int_equal(log.sequence, 3);
    assert_int_equal(take(&log, 4, -1, 9), INVARIANT_LOG_TORN);
    assert_int_equal(take(&log, 4, -1, 8), INVARIANT_LOG_TAKEN);
}

static void an_unreadable_entry_tears_the_log(void **state)
{
    struct invariant_log log = {.placed = true, .sequence = 1};
    const struct invariant_log_entry entry = {.sequence = 2};
    assert_int_equal(invariant_log_take(&log, &entry), INVARIANT_LOG_TORN);
    assert_int_equal(take(&log, 2, 0, -1), INVARIANT_LOG_TORN);
}

static void kinds_change_the_stock(void **state)
{
    int64_t change = 0;
    assert_int_equal(invariant_log_change("hold", 4, 3, &change), 0);
    assert_int_equal(change, -3);
    assert_int_equal(invariant_log_change("settle", 6, 3, &change), 0);
    assert_int_equal(change, 0);
    assert_int_equal(invariant_log_change("release", 7, 3, &change), 0);
    assert_int_equal(change, 3);
    assert_int_equal(invariant_log_change("return", 6, 3, &change), 0);
    assert_int_equal(change, 3);
    assert_int_equal(invariant_log_change("holder", 6, 3, &change), TG_ERR_MALFORMED);
    assert_int_equal(invariant_log_change("hol", 3, 3, &change), TG_ERR_MALFORMED);
}

/* ---- age ---- */

static void what_lingers_is_told_after_its_time(void **state)
{
    uint8_t ids[3][INVARIANT_ID_BYTES] = {{1}, {2}, {3}}, one[INVARIANT_ID_BYTES];
    assert_int_equal(invariant_linger(&sale.unacked, (struct tg_mono){0}, 5000, ids, 3, one), 0);
    assert_int_equal(invariant_linger(&sale.unacked, (struct tg_mono){4999}, 5000, ids, 3, one), 0);
    assert_int_equal(invariant_linger(&sale.unacked, (struct tg_mono){5000}, 5000, &ids[1], 1, one),
                     1);
    assert_int_equal(one[0], 2);
    assert_int_equal(invariant_linger(&sale.unacked, (struct tg_mono){10000}, 5000, ids, 0, one),
                     0);
    assert_int_equal(invariant_linger(&sale.unacked, (struct tg_mono){15000}, 5000, ids, 3, one),
                     0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_round_reads_r1_then_p_then_r2, fresh),
        cmocka_unit_test_setup(shards_are_read_one_after_the_other_on_both_sides, fresh),
        cmocka_unit_test_setup(runs_while_armed_in_every_phase_but_closed, fresh),
        cmocka_unit_test_setup(an_unknown_read_makes_the_round_void, fresh),
        cmocka_unit_test_setup(a_missing_gate_leaves_the_word_to_the_ledger, fresh),
        cmocka_unit_test_setup(garbage_goes_straight_to_the_ledger_or_the_judgement, fresh),
        cmocka_unit_test_setup(what_the_stream_lacks_is_asked_of_the_ledger, fresh),
        cmocka_unit_test_setup(a_torn_log_does_not_hide_the_rest, fresh),
        cmocka_unit_test_setup(a_new_epoch_starts_its_log_anew, fresh),
        cmocka_unit_test_setup(redis_is_lost_after_two_turns_in_a_row, fresh),
        cmocka_unit_test_setup(a_checker_that_is_cut_off_accuses_nobody, fresh),
        cmocka_unit_test_setup(a_checker_stopped_again_and_again_accuses_nobody, fresh),
        cmocka_unit_test_setup(a_redis_that_stays_away_after_a_cut_is_lost, fresh),
        cmocka_unit_test_setup(a_checker_that_was_stopped_accuses_nobody, fresh),
        cmocka_unit_test_setup(a_sale_not_watched_forgets_that_redis_was_away, fresh),
        cmocka_unit_test_setup(a_pause_is_repeated_until_the_ledger_shows_it, fresh),
        cmocka_unit_test_setup(an_alarm_after_the_lift_takes_a_new_pause, fresh),
        cmocka_unit_test_setup(a_pause_lifted_before_we_saw_it_is_not_repeated, fresh),
        cmocka_unit_test_setup(a_pause_of_another_generation_is_dropped, fresh),
        cmocka_unit_test_setup(a_gates_own_pause_is_carried_to_the_ledger, fresh),
        cmocka_unit_test_setup(the_log_leads_from_stock_to_stock, fresh),
        cmocka_unit_test_setup(an_unreadable_entry_tears_the_log, fresh),
        cmocka_unit_test_setup(kinds_change_the_stock, fresh),
        cmocka_unit_test_setup(what_lingers_is_told_after_its_time, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
