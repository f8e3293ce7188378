/* SPDX-License-Identifier: Apache-2.0
 * One virtual buyer: events in, actions out. */
#include "tools/rehearse/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

static const struct rehearse_rules rules = {.pay_ms = 2000, .tries_max = 3};
static const uint32_t middle = 0x80000000; /* the dice that change nothing: jitter 0 */

static struct rehearse_board open_board(uint64_t watermark, uint64_t remaining, uint64_t held)
{
    return (struct rehearse_board){.phase = REHEARSE_PHASE_OPEN,
                                   .view = {.watermark = watermark, .pace_milli = 1000000},
                                   .remaining = remaining,
                                   .held = held,
                                   .poll_s = 2};
}

static struct rehearse_answer done(enum rehearse_ask ask)
{
    return (struct rehearse_answer){.ask = ask, .heard = REHEARSE_HEARD_DONE};
}

static struct rehearse_answer refused(enum rehearse_ask ask, enum tg_reason reason)
{
    return (struct rehearse_answer){.ask = ask, .heard = REHEARSE_HEARD_REFUSED, .reason = reason};
}

static struct rehearse_answer said(enum rehearse_said what)
{
    return (struct rehearse_answer){
        .ask = REHEARSE_ASK_STATUS, .heard = REHEARSE_HEARD_DONE, .said = what};
}

static enum rehearse_do hear(struct rehearse_buyer *buyer, struct rehearse_answer answer)
{
    return rehearse_hear(buyer, &answer, &rules, middle).what;
}

static enum rehearse_do see(struct rehearse_buyer *buyer, struct rehearse_board board)
{
    return rehearse_see_board(buyer, &board, "", middle).what;
}

/* A buyer with a ticket of this index. */
static struct rehearse_buyer waiting(uint8_t plan, uint64_t index)
{
    struct rehearse_buyer buyer;
    assert_int_equal(rehearse_arrive(&buyer, plan).what, REHEARSE_DO_TICKET);
    struct rehearse_answer ticket = done(REHEARSE_ASK_TICKET);
    ticket.index = index;
    assert_int_equal(hear(&buyer, ticket), REHEARSE_DO_BOARD);
    return buyer;
}

/* A buyer whose pass has come; out_action: what he does with it. */
static struct rehearse_buyer admitted(uint8_t plan, enum rehearse_do *out_action)
{
    struct rehearse_buyer buyer = waiting(plan, 5);
    assert_int_equal(see(&buyer, open_board(6, 10, 0)), REHEARSE_DO_STATUS);
    *out_action = hear(&buyer, said(REHEARSE_SAID_ADMITTED));
    assert_int_equal(buyer.state, REHEARSE_RESERVING);
    return buyer;
}

static void he_waits_until_his_rank_is_below_the_watermark(void **state)
{
    struct rehearse_buyer buyer = waiting(0, 5);
    assert_int_equal(see(&buyer, open_board(0, 10, 0)), REHEARSE_DO_SLEEP);
    assert_int_equal(rehearse_wake(&buyer).what, REHEARSE_DO_BOARD);
    assert_int_equal(see(&buyer, open_board(5, 10, 0)), REHEARSE_DO_SLEEP);
    assert_int_equal(see(&buyer, open_board(6, 10, 0)), REHEARSE_DO_STATUS);
    assert_int_equal(buyer.state, REHEARSE_ASKING);
}

/* Late to a draw of 100 that opened at index 50: the rank is drawn from the ticket he has now. */
static void a_new_ticket_is_ranked_anew(void **state)
{
    struct rehearse_buyer buyer = waiting(0, 60);
    struct rehearse_board board = open_board(110, 10, 0);
    board.view.random = board.view.revealed = true;
    board.view.present_at_open = 100;
    board.view.index_at_open = 50;
    assert_int_equal(see(&buyer, board), REHEARSE_DO_SLEEP);
    assert_int_equal(see(&buyer, board), REHEARSE_DO_SLEEP);
    board.view.watermark = 111;
    assert_int_equal(see(&buyer, board), REHEARSE_DO_STATUS);
    assert_int_equal(hear(&buyer, said(REHEARSE_SAID_RESTART)), REHEARSE_DO_TICKET);
    struct rehearse_answer ticket = done(REHEARSE_ASK_TICKET);
    ticket.index = 70;
    assert_int_equal(hear(&buyer, ticket), REHEARSE_DO_BOARD);
    board.view.watermark = 120;
    assert_int_equal(see(&buyer, board), REHEARSE_DO_SLEEP);
    board.view.watermark = 121;
    assert_int_equal(see(&buyer, board), REHEARSE_DO_STATUS);
}

static void he_buys(void **state)
{
    enum rehearse_do action;
    struct rehearse_buyer buyer = admitted(0, &action);
    assert_int_equal(action, REHEARSE_DO_RESERVE);
    struct rehearse_answer held = done(REHEARSE_ASK_RESERVE);
    struct rehearse_action next = rehearse_hear(&buyer, &held, &rules, middle);
    assert_int_equal(next.what, REHEARSE_DO_SLEEP);
    assert_int_equal(next.sleep_ms, 2000);
    assert_int_equal(rehearse_wake(&buyer).what, REHEARSE_DO_CONFIRM);
    assert_int_equal(hear(&buyer, done(REHEARSE_ASK_CONFIRM)), REHEARSE_DO_END);
    assert_int_equal(buyer.state, REHEARSE_BOUGHT);
}

static void he_abandons_as_planned(void **state)
{
    enum rehearse_do action;
    struct rehearse_buyer buyer = admitted(REHEARSE_ABANDON, &action);
    assert_int_equal(hear(&buyer, done(REHEARSE_ASK_RESERVE)), REHEARSE_DO_END);
    assert_int_equal(buyer.state, REHEARSE_ABANDONED);
    assert_int_equal(rehearse_wake(&buyer).what, REHEARSE_DO_NOTHING);
}

static void of_two_requests_at_once_one_win_counts(void **state)
{
    enum rehearse_do action;
    struct rehearse_buyer buyer = admitted(REHEARSE_TWICE, &action);
    assert_int_equal(action, REHEARSE_DO_RESERVE_TWICE);
    assert_int_equal(hear(&buyer, done(REHEARSE_ASK_RESERVE)), REHEARSE_DO_SLEEP);
    assert_int_equal(hear(&buyer, done(REHEARSE_ASK_RESERVE)), REHEARSE_DO_NOTHING);
    assert_int_equal(buyer.state, REHEARSE_HOLDING);

    buyer = admitted(REHEARSE_TWICE, &action);
    assert_int_equal(hear(&buyer, refused(REHEARSE_ASK_RESERVE, TG_REASON_SOLD_OUT)),
                     REHEARSE_DO_SLEEP);
    assert_int_equal(buyer.state, REHEARSE_SHORT);
    assert_int_equal(hear(&buyer, done(REHEARSE_ASK_RESERVE)), REHEARSE_DO_SLEEP);
    assert_int_equal(buyer.state, REHEARSE_HOLDING); /* a unit given is never overlooked */
}

static void a_lost_answer_is_asked_for_again(void **state)
{
    enum rehearse_do action;
    struct rehearse_buyer buyer = admitted(REHEARSE_DROP, &action);
    assert_int_equal(action, REHEARSE_DO_RESERVE_AND_DROP);
    struct rehearse_answer lost = {.ask = REHEARSE_ASK_RESERVE, .heard = REHEARSE_HEARD_NOTHING};
    assert_int_equal(hear(&buyer, lost), REHEARSE_DO_SLEEP);
    assert_int_equal(rehearse_wake(&buyer).what, REHEARSE_DO_RESERVE);
    assert_int_equal(buyer.attempt, 0); /* the same Idempotency-Key */
    assert_int_equal(hear(&buyer, done(REHEARSE_ASK_RESERVE)), REHEARSE_DO_SLEEP);
    assert_int_equal(buyer.state, REHEARSE_HOLDING);
}

static void asking_again_comes_before_paying(void **state)
{
    enum rehearse_do action;
    struct rehearse_buyer buyer = admitted(REHEARSE_AGAIN, &action);
    assert_int_equal(action, REHEARSE_DO_RESERVE);
    assert_int_equal(hear(&buyer, done(REHEARSE_ASK_RESERVE)), REHEARSE_DO_RESERVE);
    assert_int_equal(hear(&buyer, done(REHEARSE_ASK_RESERVE)), REHEARSE_DO_SLEEP);
    assert_int_equal(rehearse_wake(&buyer).what, REHEARSE_DO_CONFIRM);
}

static void sold_out_for_good_ends_it_and_for_now_does_not(void **state)
{
    enum rehearse_do action;
    struct rehearse_buyer buyer = admitted(0, &action);
    assert_int_equal(hear(&buyer, refused(REHEARSE_ASK_RESERVE, TG_REASON_SOLD_OUT)),
                     REHEARSE_DO_SLEEP);
    assert_int_equal(rehearse_wake(&buyer).what, REHEARSE_DO_BOARD);
    assert_int_equal(see(&buyer, open_board(6, 0, 10)), REHEARSE_DO_SLEEP);
    assert_int_equal(see(&buyer, open_board(6, 1, 9)), REHEARSE_DO_SLEEP);  /* he needs a moment */
    assert_int_equal(see(&buyer, open_board(6, 0, 10)), REHEARSE_DO_SLEEP); /* gone again */
    assert_int_equal(see(&buyer, open_board(6, 1, 9)), REHEARSE_DO_SLEEP);
    assert_int_equal(see(&buyer, open_board(6, 1, 9)), REHEARSE_DO_RESERVE);
    struct rehearse_answer final = refused(REHEARSE_ASK_RESERVE, TG_REASON_SOLD_OUT);
    final.final = true;
    assert_int_equal(hear(&buyer, final), REHEARSE_DO_END);
    assert_int_equal(buyer.state, REHEARSE_SOLD_OUT);
}

static void waiters_learn_of_the_end_from_the_board(void **state)
{
    struct rehearse_buyer buyer = waiting(0, 1000);
    struct rehearse_board board = open_board(10, 0, 0);
    board.phase = REHEARSE_PHASE_SOLD_OUT;
    assert_int_equal(see(&buyer, board), REHEARSE_DO_END);
    assert_int_equal(buyer.state, REHEARSE_SOLD_OUT);
    buyer = waiting(0, 1000);
    board.phase = REHEARSE_PHASE_CLOSED;
    assert_int_equal(see(&buyer, board), REHEARSE_DO_END);
    assert_int_equal(buyer.state, REHEARSE_OVER);
}

static void paused_and_scheduled_boards_make_him_wait(void **state)
{
    static const enum rehearse_phase phases[] = {REHEARSE_PHASE_SCHEDULED, REHEARSE_PHASE_PAUSED,
                                                 REHEARSE_PHASE_UNKNOWN};
    for (size_t i = 0; i < 3; i++) {
        struct rehearse_buyer buyer = waiting(0, 0);
        struct rehearse_board board = open_board(10, 5, 0);
        board.phase = phases[i];
        struct rehearse_action action = rehearse_see_board(&buyer, &board, "", middle);
        assert_int_equal(action.what, REHEARSE_DO_SLEEP);
        assert_int_equal(action.sleep_ms, 2000);
    }
}

static void a_late_ticket_is_told_the_end(void **state)
{
    struct rehearse_buyer buyer;
    rehearse_arrive(&buyer, 0);
    struct rehearse_answer ticket = done(REHEARSE_ASK_TICKET);
    ticket.said = REHEARSE_SAID_SOLD_OUT;
    assert_int_equal(hear(&buyer, ticket), REHEARSE_DO_END);
    assert_int_equal(buyer.state, REHEARSE_SOLD_OUT);
}

static void trouble_is_borne_a_while(void **state)
{
    enum rehearse_do action;
    struct rehearse_buyer buyer = admitted(0, &action);
    struct rehearse_answer unknown = refused(REHEARSE_ASK_RESERVE, TG_REASON_TRY_AGAIN);
    unknown.wait_ms = 3000;
    struct rehearse_action next = rehearse_hear(&buyer, &unknown, &rules, middle);
    assert_int_equal(next.what, REHEARSE_DO_SLEEP);
    assert_int_equal(next.sleep_ms, 3000); /* Retry-After is heeded */
    assert_int_equal(hear(&buyer, unknown), REHEARSE_DO_SLEEP);
    assert_int_equal(hear(&buyer, unknown), REHEARSE_DO_SLEEP);
    assert_int_equal(hear(&buyer, unknown), REHEARSE_DO_END);
    assert_int_equal(buyer.state, REHEARSE_FAILED);
}

static void what_should_not_happen_is_a_failure(void **state)
{
    static const enum tg_reason reasons[] = {TG_REASON_PASS_INVALID, TG_REASON_PASS_USED,
                                             TG_REASON_IDEMPOTENCY_MISMATCH,
                                             TG_REASON_LIMIT_REACHED, TG_REASON_COUNT};
    for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
        enum rehearse_do action;
        struct rehearse_buyer buyer = admitted(0, &action);
        assert_int_equal(hear(&buyer, refused(REHEARSE_ASK_RESERVE, reasons[i])), REHEARSE_DO_END);
        assert_int_equal(buyer.state, REHEARSE_FAILED);
    }
}

static void an_old_pass_is_renewed_and_a_lapsed_hold_bought_anew(void **state)
{
    enum rehearse_do action;
    struct rehearse_buyer buyer = admitted(0, &action);
    assert_int_equal(hear(&buyer, refused(REHEARSE_ASK_RESERVE, TG_REASON_PASS_EXPIRED)),
                     REHEARSE_DO_STATUS);
    assert_int_equal(hear(&buyer, said(REHEARSE_SAID_ADMITTED)), REHEARSE_DO_RESERVE);
    assert_int_equal(hear(&buyer, refused(REHEARSE_ASK_RESERVE, TG_REASON_RESERVATION_EXPIRED)),
                     REHEARSE_DO_SLEEP);
    assert_int_equal(buyer.attempt, 1); /* a new Idempotency-Key */
    assert_int_equal(rehearse_wake(&buyer).what, REHEARSE_DO_STATUS);
    assert_int_equal(hear(&buyer, said(REHEARSE_SAID_ADMITTED)), REHEARSE_DO_RESERVE);
    assert_int_equal(hear(&buyer, refused(REHEARSE_ASK_RESERVE, TG_REASON_PASS_USED)),
                     REHEARSE_DO_SLEEP);
    assert_int_equal(buyer.state, REHEARSE_ASKING); /* the pass of a later minute opens the place */
    assert_int_equal(rehearse_wake(&buyer).what, REHEARSE_DO_STATUS);
    assert_int_equal(hear(&buyer, said(REHEARSE_SAID_ADMITTED)), REHEARSE_DO_RESERVE);
    assert_int_equal(hear(&buyer, refused(REHEARSE_ASK_RESERVE, TG_REASON_LIMIT_REACHED)),
                     REHEARSE_DO_SLEEP); /* the gate has not obeyed the verdict yet */
    assert_int_equal(buyer.state, REHEARSE_ASKING);
}

static void paying_too_late_is_no_failure(void **state)
{
    enum rehearse_do action;
    struct rehearse_buyer buyer = admitted(0, &action);
    hear(&buyer, done(REHEARSE_ASK_RESERVE));
    assert_int_equal(rehearse_wake(&buyer).what, REHEARSE_DO_CONFIRM);
    struct rehearse_answer lost = {.ask = REHEARSE_ASK_CONFIRM, .heard = REHEARSE_HEARD_NOTHING};
    assert_int_equal(hear(&buyer, lost), REHEARSE_DO_SLEEP);
    assert_int_equal(rehearse_wake(&buyer).what, REHEARSE_DO_CONFIRM);
    assert_int_equal(hear(&buyer, refused(REHEARSE_ASK_CONFIRM, TG_REASON_RESERVATION_EXPIRED)),
                     REHEARSE_DO_END);
    assert_int_equal(buyer.state, REHEARSE_LAPSED);
}

static void every_status_has_its_answer(void **state)
{
    static const struct {
        enum rehearse_said said;
        enum rehearse_do does;
        enum rehearse_state becomes;
    } rows[] = {
        {REHEARSE_SAID_WAITING, REHEARSE_DO_SLEEP, REHEARSE_WAITING},
        {REHEARSE_SAID_SCHEDULED, REHEARSE_DO_SLEEP, REHEARSE_WAITING},
        {REHEARSE_SAID_PAUSED, REHEARSE_DO_SLEEP, REHEARSE_WAITING},
        {REHEARSE_SAID_SOLD_OUT, REHEARSE_DO_END, REHEARSE_SOLD_OUT},
        {REHEARSE_SAID_CLOSED, REHEARSE_DO_END, REHEARSE_OVER},
        {REHEARSE_SAID_RESTART, REHEARSE_DO_TICKET, REHEARSE_TICKETING},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct rehearse_buyer buyer = waiting(0, 0);
        see(&buyer, open_board(1, 1, 0));
        assert_int_equal(hear(&buyer, said(rows[i].said)), rows[i].does);
        assert_int_equal(buyer.state, rows[i].becomes);
    }
}

static void jitter_spreads_by_thirty_percent(void **state)
{
    static const uint32_t dice[] = {0, UINT32_MAX};
    static const uint32_t expected[] = {1400, 2599};
    for (size_t i = 0; i < 2; i++) {
        struct rehearse_buyer buyer = waiting(0, 0);
        struct rehearse_board board = open_board(1, 1, 0);
        board.phase = REHEARSE_PHASE_PAUSED;
        assert_int_equal(rehearse_see_board(&buyer, &board, "", dice[i]).sleep_ms, expected[i]);
    }
}

static void plans_follow_the_shares(void **state)
{
    unsigned abandons = 0;
    unsigned repeats = 0;
    for (uint64_t i = 0; i < 100000; i++) {
        uint64_t dice = i * UINT64_C(0x9e3779b97f4a7c15);
        dice ^= dice >> 29;
        uint8_t plan = rehearse_draw_plan(dice, 20, 30);
        uint8_t repeat = plan & (REHEARSE_TWICE | REHEARSE_DROP | REHEARSE_AGAIN);
        abandons += (plan & REHEARSE_ABANDON) != 0;
        repeats += repeat != 0;
        assert_int_equal(repeat & (repeat - 1), 0); /* at most one of the three */
        assert_int_equal(rehearse_draw_plan(dice, 0, 0), 0);
        assert_true(rehearse_draw_plan(dice, 100, 100) > REHEARSE_ABANDON);
    }
    assert_in_range(abandons, 19000, 21000);
    assert_in_range(repeats, 29000, 31000);
}

/* Whatever comes in whatever order, nobody leaves the states, and who has bought stays a buyer. */
static void any_order_of_events_is_survived(void **state)
{
    uint64_t seed = 1;
    for (unsigned run = 0; run < 2000; run++) {
        struct rehearse_buyer buyer;
        rehearse_arrive(&buyer, (uint8_t)(run % 16));
        for (unsigned step = 0; step < 60; step++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            uint32_t bits = (uint32_t)(seed >> 32);
            bool bought = buyer.state == REHEARSE_BOUGHT;
            struct rehearse_answer answer = {
                .ask = (enum rehearse_ask)(bits % REHEARSE_ASK_COUNT),
                .heard = (enum rehearse_heard)(bits >> 4 & 1 ? 1 : bits >> 5 & 3) % 3,
                .reason = (enum tg_reason)((bits >> 8) % (TG_REASON_COUNT + 1)),
                .said = (enum rehearse_said)((bits >> 16) % 8),
                .final = (bits >> 20 & 1) != 0};
            struct rehearse_board board = open_board(bits >> 24, bits >> 30, 0);
            board.phase = (enum rehearse_phase)((bits >> 7) % 6);
            if (bits % 7 == 0) {
                rehearse_wake(&buyer);
            } else if (bits % 7 == 1) {
                rehearse_see_board(&buyer, &board, "", bits);
            } else {
                rehearse_hear(&buyer, &answer, &rules, bits);
            }
            assert_true(buyer.state > REHEARSE_ABSENT && buyer.state < REHEARSE_STATE_COUNT);
            assert_true(!bought || buyer.state == REHEARSE_BOUGHT);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(he_waits_until_his_rank_is_below_the_watermark),
        cmocka_unit_test(a_new_ticket_is_ranked_anew),
        cmocka_unit_test(he_buys),
        cmocka_unit_test(he_abandons_as_planned),
        cmocka_unit_test(of_two_requests_at_once_one_win_counts),
        cmocka_unit_test(a_lost_answer_is_asked_for_again),
        cmocka_unit_test(asking_again_comes_before_paying),
        cmocka_unit_test(sold_out_for_good_ends_it_and_for_now_does_not),
        cmocka_unit_test(waiters_learn_of_the_end_from_the_board),
        cmocka_unit_test(paused_and_scheduled_boards_make_him_wait),
        cmocka_unit_test(a_late_ticket_is_told_the_end),
        cmocka_unit_test(trouble_is_borne_a_while),
        cmocka_unit_test(what_should_not_happen_is_a_failure),
        cmocka_unit_test(an_old_pass_is_renewed_and_a_lapsed_hold_bought_anew),
        cmocka_unit_test(paying_too_late_is_no_failure),
        cmocka_unit_test(every_status_has_its_answer),
        cmocka_unit_test(jitter_spreads_by_thirty_percent),
        cmocka_unit_test(plans_follow_the_shares),
        cmocka_unit_test(any_order_of_events_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
