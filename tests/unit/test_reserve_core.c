/* SPDX-License-Identifier: Apache-2.0
 * One hold on its way: a list of events and the actions that must follow. */
#include "services/reserve/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#define ID "res_00000000000000000000000001"
#define OTHER "res_00000000000000000000000002"

static struct reserve_action actions[RESERVE_ACTIONS_MAX];

static struct tg_hold_record record_of(uint32_t unit)
{
    struct tg_hold_record record = {.unit_count = 1, .user_length = 1, .user = {'u'}};
    record.units[0] = (struct tg_unit_ref){0, unit};
    return record;
}

static void begin(struct reserve_flow *flow, enum tg_phase phase)
{
    static struct reserve_request request = {.reservation = ID};
    const struct reserve_event event = {.kind = RESERVE_EVENT_BEGIN, .begin = {&request, phase}};
    memset(flow, 0, sizeof *flow);
    assert_int_equal(reserve_step(flow, &event, actions), 1);
    assert_int_equal(actions[0].kind, RESERVE_DO_HOLD);
}

static size_t gate_says(struct reserve_flow *flow, enum reserve_taken taken)
{
    struct reserve_hold_answer answer = {.taken = taken, .record = record_of(7)};
    memcpy(answer.reservation, OTHER, sizeof OTHER);
    const struct reserve_event event = {.kind = RESERVE_EVENT_GATE, .gate = &answer};
    return reserve_step(flow, &event, actions);
}

static size_t ledger_says(struct reserve_flow *flow, const struct reserve_ledger_answer *answer)
{
    const struct reserve_event event = {
        .kind = flow->stage == RESERVE_STAGE_READ ? RESERVE_EVENT_READ : RESERVE_EVENT_RECORDED,
        .ledger = answer};
    return reserve_step(flow, &event, actions);
}

static void a_won_hold_is_recorded_before_it_is_answered(void **state)
{
    struct reserve_flow flow;
    begin(&flow, TG_PHASE_OPEN);
    assert_int_equal(gate_says(&flow, RESERVE_TAKEN_HELD), 1);
    assert_int_equal(actions[0].kind, RESERVE_DO_RECORD);
    assert_int_equal(flow.record.units[0].unit, 7);
    const struct reserve_ledger_answer recorded = {
        .recorded = RESERVE_RECORDED_NEW, .state = RESERVE_STATE_PENDING, .expires_ms = 99};
    assert_int_equal(ledger_says(&flow, &recorded), 2);
    assert_int_equal(actions[0].kind, RESERVE_DO_ACKNOWLEDGE);
    assert_int_equal(actions[0].deadline_ms, 99);
    assert_int_equal(actions[1].kind, RESERVE_DO_ANSWER);
    assert_int_equal(actions[1].outcome.reason, TG_REASON_NONE);
    assert_string_equal(actions[1].outcome.reservation, ID);
    assert_int_equal(actions[1].outcome.expires_ms, 99);
    assert_int_equal(actions[1].outcome.unit_count, 1);
    assert_int_equal(actions[1].outcome.units[0].unit, 7);
    assert_false(actions[1].outcome.replayed);
    assert_int_equal(flow.stage, RESERVE_STAGE_FREE);
}

static void refusals_of_the_gate(void **state)
{
    static const struct {
        enum reserve_taken taken;
        enum tg_reason reason;
    } rows[] = {
        {RESERVE_TAKEN_MISMATCH, TG_REASON_IDEMPOTENCY_MISMATCH},
        {RESERVE_TAKEN_UNKNOWN_GATE, TG_REASON_TRY_AGAIN},
        {RESERVE_TAKEN_PAUSED, TG_REASON_SALE_PAUSED},
        {RESERVE_TAKEN_UNPROVED, TG_REASON_SALE_PAUSED},
        {RESERVE_TAKEN_PASS_EXPIRED, TG_REASON_PASS_EXPIRED},
        {RESERVE_TAKEN_PASS_USED, TG_REASON_PASS_USED},
        {RESERVE_TAKEN_LIMIT, TG_REASON_LIMIT_REACHED},
        {RESERVE_TAKEN_SOLD_OUT, TG_REASON_SOLD_OUT},
        {RESERVE_TAKEN_UNKNOWN, TG_REASON_TRY_AGAIN},
        {RESERVE_TAKEN_NOT_RUN, TG_REASON_TRY_AGAIN},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reserve_flow flow;
        begin(&flow, TG_PHASE_OPEN);
        assert_int_equal(gate_says(&flow, rows[i].taken), 1);
        assert_int_equal(actions[0].kind, RESERVE_DO_ANSWER);
        assert_int_equal(actions[0].outcome.reason, rows[i].reason);
        assert_string_equal(actions[0].outcome.reservation,
                            rows[i].taken == RESERVE_TAKEN_LIMIT ? OTHER : "");
        assert_int_equal(flow.stage, RESERVE_STAGE_FREE);
    }
}

static void closed_by_state_says_why(void **state)
{
    static const struct {
        enum tg_phase phase;
        enum tg_reason reason;
        bool final;
    } rows[] = {
        {TG_PHASE_SCHEDULED, TG_REASON_SALE_NOT_OPEN, false},
        {TG_PHASE_PAUSED, TG_REASON_SALE_PAUSED, false},
        {TG_PHASE_SOLD_OUT, TG_REASON_SOLD_OUT, true},
        {TG_PHASE_CLOSED, TG_REASON_SALE_CLOSED, false},
        {TG_PHASE_UNKNOWN, TG_REASON_SALE_PAUSED, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reserve_flow flow;
        begin(&flow, rows[i].phase);
        assert_int_equal(gate_says(&flow, RESERVE_TAKEN_NOT_OPEN), 1);
        assert_int_equal(actions[0].outcome.reason, rows[i].reason);
        assert_int_equal(actions[0].outcome.final, rows[i].final);
    }
}

static void a_doubt_pauses_and_is_never_an_answer(void **state)
{
    struct reserve_flow flow;
    begin(&flow, TG_PHASE_OPEN);
    assert_int_equal(gate_says(&flow, RESERVE_TAKEN_DOUBT), 2);
    assert_int_equal(actions[0].kind, RESERVE_DO_PAUSE);
    assert_int_equal(actions[0].cause, RESERVE_PAUSE_DOUBT);
    assert_int_equal(actions[1].outcome.reason, TG_REASON_TRY_AGAIN);
}

static void replays_are_answered_by_the_ledgers_word(void **state)
{
    static const struct {
        enum reserve_taken taken;
        enum reserve_state state;
        enum tg_reason reason;
    } rows[] = {
        {RESERVE_TAKEN_REPLAY_HELD, RESERVE_STATE_PENDING, TG_REASON_NONE},
        {RESERVE_TAKEN_REPLAY_HELD, RESERVE_STATE_CONFIRMED, TG_REASON_NONE},
        {RESERVE_TAKEN_REPLAY_HELD, RESERVE_STATE_EXPIRED, TG_REASON_RESERVATION_EXPIRED},
        {RESERVE_TAKEN_REPLAY_HELD, RESERVE_STATE_CANCELLED, TG_REASON_RESERVATION_CANCELLED},
        {RESERVE_TAKEN_REPLAY_HELD, RESERVE_STATE_UNKNOWN, TG_REASON_TRY_AGAIN},
        {RESERVE_TAKEN_REPLAY_SETTLED, RESERVE_STATE_CONFIRMED, TG_REASON_NONE},
        {RESERVE_TAKEN_REPLAY_SETTLED, RESERVE_STATE_CANCELLED, TG_REASON_RESERVATION_CANCELLED},
        {RESERVE_TAKEN_REPLAY_RELEASED, RESERVE_STATE_EXPIRED, TG_REASON_RESERVATION_EXPIRED},
        {RESERVE_TAKEN_REPLAY_RELEASED, RESERVE_STATE_CANCELLED, TG_REASON_RESERVATION_CANCELLED},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reserve_flow flow;
        bool held = rows[i].taken == RESERVE_TAKEN_REPLAY_HELD;
        begin(&flow, TG_PHASE_PAUSED);
        assert_int_equal(gate_says(&flow, rows[i].taken), 1);
        assert_int_equal(actions[0].kind, held ? RESERVE_DO_RECORD : RESERVE_DO_READ);
        struct reserve_ledger_answer known = {.recorded = RESERVE_RECORDED_KNOWN,
                                              .state = rows[i].state,
                                              .expires_ms = 5,
                                              .unit_count = 1};
        known.units[0] = (struct tg_unit_ref){1, 3};
        size_t count = ledger_says(&flow, &known);
        bool granted = rows[i].reason == TG_REASON_NONE;
        assert_int_equal(count, granted && held ? 2 : 1);
        const struct reserve_action *last = &actions[count - 1];
        assert_int_equal(last->kind, RESERVE_DO_ANSWER);
        assert_int_equal(last->outcome.reason, rows[i].reason);
        assert_int_equal(last->outcome.replayed, granted);
        assert_int_equal(last->outcome.unit_count, granted ? 1 : 0);
        assert_int_equal(last->outcome.units[0].unit, granted ? 3 : 0);
    }
}

static void refusals_of_the_ledger(void **state)
{
    static const struct {
        enum tg_reason told, answered;
        bool pause;
    } rows[] = {
        {TG_REASON_STALE_EPOCH, TG_REASON_TRY_AGAIN, false},
        {TG_REASON_UNIT_CONFLICT, TG_REASON_TRY_AGAIN, true},
        {TG_REASON_LIMIT_CONFLICT, TG_REASON_LIMIT_REACHED, false},
        {TG_REASON_SALE_CLOSED, TG_REASON_SALE_CLOSED, false},
        {TG_REASON_COUNT, TG_REASON_TRY_AGAIN, false},
        {TG_REASON_NONE, TG_REASON_TRY_AGAIN, false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reserve_flow flow;
        begin(&flow, TG_PHASE_OPEN);
        (void)gate_says(&flow, RESERVE_TAKEN_HELD);
        const struct reserve_ledger_answer refused = {.recorded = RESERVE_RECORDED_REFUSED,
                                                      .reason = rows[i].told};
        size_t count = ledger_says(&flow, &refused);
        assert_int_equal(count, rows[i].pause ? 2 : 1);
        if (rows[i].pause) {
            assert_int_equal(actions[0].kind, RESERVE_DO_PAUSE);
            assert_int_equal(actions[0].cause, RESERVE_PAUSE_UNIT_CONFLICT);
        }
        assert_int_equal(actions[count - 1].outcome.reason, rows[i].answered);
        assert_int_equal(flow.stage, RESERVE_STAGE_FREE);
    }
}

static void unknown_is_never_yes_or_no(void **state)
{
    static const enum reserve_taken taken[] = {RESERVE_TAKEN_HELD, RESERVE_TAKEN_REPLAY_HELD,
                                               RESERVE_TAKEN_REPLAY_SETTLED,
                                               RESERVE_TAKEN_REPLAY_RELEASED};
    for (size_t i = 0; i < sizeof taken / sizeof taken[0]; i++) {
        struct reserve_flow flow;
        begin(&flow, TG_PHASE_OPEN);
        (void)gate_says(&flow, taken[i]);
        const struct reserve_ledger_answer unknown = {.recorded = RESERVE_RECORDED_UNKNOWN};
        assert_int_equal(ledger_says(&flow, &unknown), 1);
        assert_int_equal(actions[0].kind, RESERVE_DO_ANSWER);
        assert_int_equal(actions[0].outcome.reason, TG_REASON_TRY_AGAIN);
        assert_string_equal(actions[0].outcome.reservation, "");
    }
}

static void a_resent_record_ends_without_an_answer(void **state)
{
    struct reserve_flow flow = {.stage = RESERVE_STAGE_FREE};
    const struct tg_hold_record record = record_of(3);
    const struct reserve_event resend = {.kind = RESERVE_EVENT_RESEND, .resend = {ID, &record}};
    assert_int_equal(reserve_step(&flow, &resend, actions), 1);
    assert_int_equal(actions[0].kind, RESERVE_DO_RECORD);
    const struct reserve_ledger_answer known = {
        .recorded = RESERVE_RECORDED_KNOWN, .state = RESERVE_STATE_PENDING, .expires_ms = 8};
    assert_int_equal(ledger_says(&flow, &known), 2);
    assert_int_equal(actions[0].kind, RESERVE_DO_ACKNOWLEDGE);
    assert_int_equal(actions[1].kind, RESERVE_DO_END);

    /* A verdict has fallen meanwhile: nothing is acknowledged, the order to give back is on its
     * way. */
    assert_int_equal(reserve_step(&flow, &resend, actions), 1);
    const struct reserve_ledger_answer expired = {.recorded = RESERVE_RECORDED_KNOWN,
                                                  .state = RESERVE_STATE_EXPIRED};
    assert_int_equal(ledger_says(&flow, &expired), 1);
    assert_int_equal(actions[0].kind, RESERVE_DO_END);
}

static void events_out_of_their_stage_do_nothing(void **state)
{
    struct reserve_flow flow;
    begin(&flow, TG_PHASE_OPEN);
    const struct reserve_ledger_answer recorded = {.recorded = RESERVE_RECORDED_NEW};
    const struct reserve_event early = {.kind = RESERVE_EVENT_RECORDED, .ledger = &recorded};
    assert_int_equal(reserve_step(&flow, &early, actions), 0);
    (void)gate_says(&flow, RESERVE_TAKEN_SOLD_OUT);
    assert_int_equal(gate_says(&flow, RESERVE_TAKEN_HELD), 0);
    assert_int_equal(reserve_step(&flow, &early, actions), 0);
    const struct reserve_event read = {.kind = RESERVE_EVENT_READ, .ledger = &recorded};
    assert_int_equal(reserve_step(&flow, &read, actions), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_won_hold_is_recorded_before_it_is_answered),
        cmocka_unit_test(refusals_of_the_gate),
        cmocka_unit_test(closed_by_state_says_why),
        cmocka_unit_test(a_doubt_pauses_and_is_never_an_answer),
        cmocka_unit_test(replays_are_answered_by_the_ledgers_word),
        cmocka_unit_test(refusals_of_the_ledger),
        cmocka_unit_test(unknown_is_never_yes_or_no),
        cmocka_unit_test(a_resent_record_ends_without_an_answer),
        cmocka_unit_test(events_out_of_their_stage_do_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
