/* SPDX-License-Identifier: Apache-2.0
 * Admission's core: the judgement of a request for a pass, the pass itself, the pace. */
#include "tests/unit/cmocka_tests.h"

#include "services/admission/core.h"
#include "tests/unit/admission_goals.h"

#include <sodium.h>
#include <string.h>

enum { STEP_MS = 50, ACTIVE_MS = 2600 };

static struct {
    struct tg_term term;
    struct admission_keys keys;
    struct tg_verify_key verify;
    struct admission_brain brain;
    struct admission_now now;
    struct admission_view view;
    bool connected;
    bool board, gate;
    uint64_t watermark;
    /* what came out */
    size_t paces;
    struct admission_pace pace;
    struct admission_answer answer;
    char ticket[TG_MAX_TICKET_BYTES + 1];
} bench;

static void feed(const struct admission_event *event)
{
    struct admission_action actions[ADMISSION_ACTIONS_MAX];
    size_t count = admission_step(&bench.brain, bench.now, event, actions);
    for (size_t i = 0; i < count; i++) {
        if (actions[i].kind == ADMISSION_DO_PACE) {
            bench.pace = actions[i].pace;
            bench.paces++;
        } else if (actions[i].kind == ADMISSION_DO_ANSWER) {
            bench.answer = actions[i].answer;
        }
    }
}

static void tick(void)
{
    struct admission_event event = {.kind = ADMISSION_TICK};
    event.tick.view = bench.view;
    event.tick.connected = bench.connected;
    feed(&event);
}

static void hear_board(uint64_t generation, uint64_t term, uint64_t watermark)
{
    struct admission_event event = {.kind = ADMISSION_BOARD};
    event.board.generation = generation;
    event.board.term = term;
    event.board.watermark = watermark;
    feed(&event);
}

static void hear_stock(uint64_t epoch, bool known)
{
    struct admission_event event = {.kind = ADMISSION_STOCK};
    event.stock.epoch = epoch;
    event.stock.known = known;
    feed(&event);
}

static void run(int64_t ms)
{
    for (int64_t passed = 0; passed < ms; passed += STEP_MS) {
        bench.now.mono.ms += STEP_MS;
        bench.now.wall.ms += STEP_MS;
        if (bench.board) {
            hear_board(bench.view.generation, 1, bench.watermark);
        }
        if (bench.gate) {
            hear_stock(1, true);
        }
        tick();
    }
}

static int begin(void **state)
{
    memset(&bench, 0, sizeof bench);
    bench.now.mono.ms = 1000000;
    bench.now.wall.ms = INT64_C(1764583200000);
    bench.view = (struct admission_view){.phase = TG_PHASE_SCHEDULED,
                                         .generation = 3,
                                         .bounds = {.start_milli = 1000000,
                                                    .min_milli = 10000,
                                                    .max_milli = 5000000,
                                                    .budget_milli = 5000000}};
    bench.connected = true;
    bench.board = true;
    bench.gate = true;
    bench.watermark = 100;
    uint8_t seed[32] = {7};
    crypto_sign_seed_keypair(bench.keys.sign.public_key, bench.keys.sign.secret, seed);
    memcpy(bench.keys.sign.id, "00c0ffee", 9);
    memcpy(bench.verify.id, bench.keys.sign.id, 9);
    memcpy(bench.verify.public_key, bench.keys.sign.public_key, 32);
    bench.keys.tickets.keys[0].id = 1;
    memset(bench.keys.tickets.keys[0].key, 5, TG_KEY_BYTES);
    memset(bench.keys.mac, 9, TG_KEY_BYTES);
    tg_term_begin(&bench.term, "admission-a", bench.now.mono, 0);
    admission_begin(&bench.brain, &bench.term, &bench.keys, &goals, "demo");
    run(ACTIVE_MS);
    bench.view.phase = TG_PHASE_OPEN;
    run(STEP_MS);
    return 0;
}

static struct tg_ticket ticket_of(const char *user, uint64_t index)
{
    struct tg_ticket ticket = {.sale = "demo", .generation = 3, .index = index};
    ticket.arrived.ms = bench.now.wall.ms - 60000;
    ticket.holder.kind = TG_HOLDER_USER;
    ticket.holder.length = (uint8_t)strlen(user);
    memcpy(ticket.holder.bytes, user, strlen(user));
    return ticket;
}

static void ask(const struct tg_ticket *ticket, const char *user)
{
    static const uint8_t nonce[TG_TICKET_NONCE_BYTES] = {1};
    struct admission_event event = {.kind = ADMISSION_ASK};
    event.ask.view = bench.view;
    event.ask.ticket = bench.ticket;
    event.ask.ticket_length = tg_ticket_seal(&bench.keys.tickets, ticket, nonce, bench.ticket);
    event.ask.user = (const uint8_t *)user;
    event.ask.user_length = strlen(user);
    feed(&event);
}

static enum tg_reason asked(const struct tg_ticket *ticket, const char *user)
{
    bench.answer.reason = TG_REASON_COUNT;
    ask(ticket, user);
    if (bench.answer.reason != TG_REASON_NONE) {
        assert_string_equal(bench.answer.pass, "");
    }
    return bench.answer.reason;
}

/* ---- passes ---- */

static void a_rank_below_the_watermark_gets_a_pass(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 99);
    assert_int_equal(asked(&ticket, "ann"), TG_REASON_NONE);
    struct tg_pass pass;
    assert_int_equal(
        tg_pass_verify(&bench.verify, 1, bench.answer.pass, strlen(bench.answer.pass), &pass), 0);
    uint8_t place[TG_PLACE_BYTES];
    char jti[TG_JTI_LENGTH + 1];
    tg_place("demo", 3, &ticket.holder, 99, place);
    tg_jti(bench.keys.mac, "demo", 3, place, (const uint8_t *)"ann", 3, pass.window, jti);
    assert_string_equal(pass.sale, "demo");
    assert_int_equal(pass.generation, 3);
    assert_memory_equal(pass.place, place, TG_PLACE_BYTES);
    assert_memory_equal(pass.user, "ann", 3);
    assert_string_equal(pass.jti, jti);
    assert_int_equal(bench.answer.expires_at.ms, tg_pass_expires(pass.window).ms);
    assert_in_range(bench.answer.expires_at.ms - bench.now.wall.ms, 60000, 120000);
    assert_int_equal(bench.answer.watermark, 100);
}

static void a_rank_at_the_watermark_waits(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 100);
    assert_int_equal(asked(&ticket, "ann"), TG_REASON_WAITING);
    bench.watermark = 101;
    run(STEP_MS);
    assert_int_equal(asked(&ticket, "ann"), TG_REASON_NONE);
}

/* ---- lanes ---- */

static void with_lanes(void)
{
    static struct admission_goals lanes_on;
    lanes_on = goals;
    lanes_on.lanes = true;
    lanes_on.slow_one_in = 4;
    bench.brain.control.goals = &lanes_on;
}

static void a_decoy_never_gets_a_pass(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 5);
    ticket.lane = TG_LANE_DECOY;
    with_lanes();
    for (int minute = 0; minute < 120; minute++) {
        assert_int_equal(asked(&ticket, "ann"), TG_REASON_WAITING);
        bench.now.wall.ms += TG_MAX_PASS_WINDOW_MS;
    }
    ticket.lane = TG_LANE_LIVE;
    assert_int_equal(asked(&ticket, "ann"), TG_REASON_NONE);
}

/* In one of four minutes, the same one in every instance, and no place is left out. */
static void a_slow_ticket_gets_a_pass_in_one_minute_of_four(void **state)
{
    with_lanes();
    for (uint64_t index = 0; index < 20; index++) {
        struct tg_ticket ticket = ticket_of("ann", index);
        ticket.lane = TG_LANE_SLOW;
        int passes = 0;
        for (int minute = 0; minute < 4; minute++) {
            enum tg_reason reason = asked(&ticket, "ann");
            assert_int_equal(asked(&ticket, "ann"), reason);
            assert_true(reason == TG_REASON_NONE || reason == TG_REASON_WAITING);
            passes += reason == TG_REASON_NONE;
            bench.now.wall.ms += TG_MAX_PASS_WINDOW_MS;
        }
        assert_int_equal(passes, 1);
    }
}

static void without_lanes_every_ticket_is_live(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 5);
    for (int lane = TG_LANE_LIVE; lane <= TG_LANE_DECOY; lane++) {
        ticket.lane = (enum tg_lane)lane;
        assert_int_equal(asked(&ticket, "ann"), TG_REASON_NONE);
    }
}

static void the_same_minute_gives_the_same_pass_the_next_another(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 5);
    char first[TG_MAX_PASS_BYTES + 1];
    bench.now.wall.ms -= bench.now.wall.ms % TG_MAX_PASS_WINDOW_MS;
    ask(&ticket, "ann");
    memcpy(first, bench.answer.pass, sizeof first);
    bench.now.wall.ms += TG_MAX_PASS_WINDOW_MS - 1;
    ask(&ticket, "ann");
    assert_string_equal(bench.answer.pass, first);
    bench.now.wall.ms += 1;
    ask(&ticket, "ann");
    assert_int_equal(bench.answer.reason, TG_REASON_NONE);
    assert_string_not_equal(bench.answer.pass, first);
}

/* Signing needs no term: the answer does not depend on who is active. */
static void a_standby_signs_the_same_pass(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 5);
    char active[TG_MAX_PASS_BYTES + 1];
    ask(&ticket, "ann");
    memcpy(active, bench.answer.pass, sizeof active);
    struct admission_event peer = {.kind = ADMISSION_PEER};
    peer.peer.term = 9;
    peer.peer.instance = "admission-b";
    feed(&peer);
    assert_int_equal(bench.term.role, TG_TERM_STANDBY);
    ask(&ticket, "ann");
    assert_int_equal(bench.answer.reason, TG_REASON_NONE);
    assert_string_equal(bench.answer.pass, active);
}

static void a_ticket_is_used_by_its_holder_only(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 5);
    assert_int_equal(asked(&ticket, "anna"), TG_REASON_FORBIDDEN);
    assert_int_equal(asked(&ticket, "bob"), TG_REASON_FORBIDDEN);
    assert_int_equal(asked(&ticket, "an"), TG_REASON_FORBIDDEN);
}

static void a_visitors_ticket_serves_any_buyer_and_the_place_stays_the_visitors(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 5);
    ticket.holder.kind = TG_HOLDER_VISITOR;
    ticket.holder.length = 16;
    memset(ticket.holder.bytes, 0x33, 16);
    uint8_t place[TG_PLACE_BYTES];
    tg_place("demo", 3, &ticket.holder, 5, place);
    static const char *const buyers[] = {"bob", "carol"};
    for (size_t i = 0; i < COUNT_OF(buyers); i++) {
        struct tg_pass pass;
        assert_int_equal(asked(&ticket, buyers[i]), TG_REASON_NONE);
        assert_int_equal(
            tg_pass_verify(&bench.verify, 1, bench.answer.pass, strlen(bench.answer.pass), &pass),
            0);
        assert_memory_equal(pass.place, place, TG_PLACE_BYTES);
        assert_memory_equal(pass.user, buyers[i], strlen(buyers[i]));
    }
}

/* case-17: a ticket of an earlier sale of the same name is told to start again, and never admitted.
 */
static void case_17_a_ticket_of_an_earlier_generation_restarts(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 5);
    ticket.generation = 2;
    assert_int_equal(asked(&ticket, "ann"), TG_REASON_RESTART);
    ticket.generation = 4; /* we lag behind: nobody's fault */
    assert_int_equal(asked(&ticket, "ann"), TG_REASON_TRY_AGAIN);
}

static void a_ticket_of_another_sale_or_key_is_invalid(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 5);
    memcpy(ticket.sale, "Demo", 5);
    assert_int_equal(asked(&ticket, "ann"), TG_REASON_TICKET_INVALID);
    ticket = ticket_of("ann", 5);
    ask(&ticket, "ann");
    struct admission_event event = {.kind = ADMISSION_ASK};
    event.ask.view = bench.view;
    event.ask.ticket = bench.ticket;
    event.ask.ticket_length = strlen(bench.ticket);
    event.ask.user = (const uint8_t *)"ann";
    event.ask.user_length = 3;
    for (size_t i = 0; i < event.ask.ticket_length; i++) {
        bench.ticket[i] = bench.ticket[i] == 'A' ? 'B' : 'A';
        feed(&event);
        assert_int_equal(bench.answer.reason, TG_REASON_TICKET_INVALID);
        ask(&ticket, "ann");
    }
    memset(bench.keys.tickets.keys[0].key, 6, TG_KEY_BYTES);
    feed(&event);
    assert_int_equal(bench.answer.reason, TG_REASON_TICKET_INVALID);
}

static void a_ticket_of_the_previous_key_still_opens(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 5);
    ask(&ticket, "ann");
    bench.keys.tickets.keys[1] = bench.keys.tickets.keys[0];
    bench.keys.tickets.keys[0].id = 2;
    memset(bench.keys.tickets.keys[0].key, 6, TG_KEY_BYTES);
    struct admission_event event = {.kind = ADMISSION_ASK};
    event.ask.view = bench.view;
    event.ask.ticket = bench.ticket;
    event.ask.ticket_length = strlen(bench.ticket);
    event.ask.user = (const uint8_t *)"ann";
    event.ask.user_length = 3;
    feed(&event);
    assert_int_equal(bench.answer.reason, TG_REASON_NONE);
}

static void every_phase_but_open_refuses_by_its_name(void **state)
{
    static const struct {
        enum tg_phase phase;
        enum tg_reason reason;
    } rows[] = {
        {TG_PHASE_UNKNOWN, TG_REASON_TRY_AGAIN}, {TG_PHASE_SCHEDULED, TG_REASON_SALE_NOT_OPEN},
        {TG_PHASE_OPEN, TG_REASON_NONE},         {TG_PHASE_PAUSED, TG_REASON_SALE_PAUSED},
        {TG_PHASE_SOLD_OUT, TG_REASON_SOLD_OUT}, {TG_PHASE_CLOSED, TG_REASON_SALE_CLOSED},
    };
    struct tg_ticket ticket = ticket_of("ann", 5);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bench.view.phase = rows[i].phase;
        assert_int_equal(asked(&ticket, "ann"), rows[i].reason);
    }
}

static void a_stale_board_says_nothing(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 5);
    bench.board = false;
    run(ADMISSION_BOARD_STALE_MS);
    assert_int_equal(asked(&ticket, "ann"), TG_REASON_NONE);
    run(STEP_MS);
    assert_int_equal(asked(&ticket, "ann"), TG_REASON_TRY_AGAIN);
}

static void boards_of_another_generation_or_a_lower_term_do_not_count(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 500);
    hear_board(2, 1, 100000);
    hear_board(3, 0, 100000);
    assert_int_equal(asked(&ticket, "ann"), TG_REASON_WAITING);
    hear_board(3, 2, 501);
    assert_int_equal(asked(&ticket, "ann"), TG_REASON_NONE);
}

/* Whoever was let through stays so, also when a new brain knows less. */
static void the_watermark_never_goes_back(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 99);
    hear_board(3, 2, 40);
    assert_int_equal(asked(&ticket, "ann"), TG_REASON_NONE);
}

/* A queue that lost every memory begins at a low term: it is followed once the old one is silent.
 */
static void a_lower_term_is_followed_after_silence(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 150);
    hear_board(3, 9, 100);
    bench.board = false;
    run(ADMISSION_BOARD_STALE_MS + STEP_MS);
    hear_board(3, 1, 200);
    assert_int_equal(asked(&ticket, "ann"), TG_REASON_NONE);
}

static void a_new_generation_forgets_the_watermark(void **state)
{
    struct tg_ticket ticket = ticket_of("ann", 5);
    bench.view.generation = 4;
    ticket.generation = 4;
    assert_int_equal(asked(&ticket, "ann"), TG_REASON_TRY_AGAIN);
    hear_board(4, 1, 5);
    assert_int_equal(asked(&ticket, "ann"), TG_REASON_WAITING);
}

/* ---- the pace ---- */

static void the_pace_is_the_definitions_start(void **state)
{
    assert_int_equal(bench.pace.pace_milli, 1000000);
    assert_int_equal(bench.pace.limiting, ADMISSION_BY_START);
    assert_int_equal(bench.pace.term, 1);
}

static void the_operators_pace_comes_first_within_the_bounds(void **state)
{
    static const struct {
        uint64_t wanted, given;
    } rows[] = {{2000000, 2000000}, {1, 10000}, {99000000, 5000000}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        bench.view.bounds.operator_milli = rows[i].wanted;
        run(2 * ADMISSION_PACE_EVERY_MS);
        assert_int_equal(bench.pace.pace_milli, rows[i].given);
        assert_int_equal(bench.pace.limiting, ADMISSION_BY_OPERATOR);
    }
}

static void not_open_freezes_at_once(void **state)
{
    static const enum tg_phase phases[] = {TG_PHASE_PAUSED, TG_PHASE_SOLD_OUT, TG_PHASE_CLOSED,
                                           TG_PHASE_UNKNOWN, TG_PHASE_SCHEDULED};
    for (size_t i = 0; i < COUNT_OF(phases); i++) {
        bench.view.phase = TG_PHASE_OPEN;
        tick();
        assert_int_equal(bench.pace.pace_milli, i == 0 ? 1000000 : 250000);
        bench.view.phase = phases[i];
        tick();
        assert_int_equal(bench.pace.pace_milli, 0);
        assert_int_equal(bench.pace.base_milli, 1000000); /* what a standby goes on from */
        assert_int_equal(bench.pace.limiting, ADMISSION_BY_STATE);
    }
}

static void unknown_stock_freezes(void **state)
{
    bench.gate = false;
    run(ADMISSION_STOCK_STALE_MS + STEP_MS);
    assert_int_equal(bench.pace.pace_milli, 0);
    assert_int_equal(bench.pace.limiting, ADMISSION_BY_STOCK);
    hear_stock(1, true);
    assert_int_equal(bench.pace.pace_milli, 250000);
    hear_stock(2, false); /* a rebuild: the new epoch's gate is not armed */
    assert_int_equal(bench.pace.pace_milli, 0);
    hear_stock(1, true); /* the old gate still speaks */
    assert_int_equal(bench.pace.pace_milli, 0);
}

static void the_pace_is_said_every_250_ms_by_the_active_one_only(void **state)
{
    size_t paces = bench.paces;
    run(5000);
    assert_in_range(bench.paces - paces, 20, 21); /* and once more: nobody tells a load */
    struct admission_event peer = {.kind = ADMISSION_PEER};
    peer.peer.term = 2;
    peer.peer.instance = "admission-b";
    feed(&peer);
    paces = bench.paces;
    run(1000);
    assert_int_equal(bench.paces, paces);
}

/* What the active one says is what its successor goes on from. */
static void a_standby_follows_and_takes_over_at_the_same_pace(void **state)
{
    struct admission_event peer = {.kind = ADMISSION_PEER};
    peer.peer.term = 2;
    peer.peer.instance = "admission-b";
    peer.peer.base_milli = 3000000;
    peer.peer.ramp_permille = 1000;
    feed(&peer);
    run(ACTIVE_MS + TG_TERM_SILENCE_MS);
    assert_int_equal(bench.pace.term, 3);
    assert_int_equal(bench.pace.pace_milli, 3000000);
}

static void a_signal_above_its_limit_freezes_with_the_same_step(void **state)
{
    size_t paces = bench.paces;
    struct admission_event event = {.kind = ADMISSION_SIGNAL};
    memcpy(event.signal.name, "disk", 5);
    event.signal.value_milli = 1001;
    event.signal.limit_milli = 1000;
    event.signal.valid_ms = 5000;
    feed(&event);
    assert_int_equal(bench.paces, paces + 1);
    assert_int_equal(bench.pace.pace_milli, 0);
    assert_int_equal(bench.pace.limiting, ADMISSION_BY_SIGNAL);
    run(10000);
    assert_int_equal(bench.pace.pace_milli, 0);
    event.signal.valid_ms = 0;
    feed(&event);
    assert_int_equal(bench.pace.pace_milli, 250000);
    assert_int_equal(bench.pace.limiting, ADMISSION_BY_RAMP);
}

static void a_new_generation_forgets_the_signals(void **state)
{
    struct admission_event event = {.kind = ADMISSION_SIGNAL};
    memcpy(event.signal.name, "disk", 5);
    event.signal.value_milli = 1001;
    event.signal.limit_milli = 1000;
    event.signal.valid_ms = 5000;
    feed(&event);
    bench.view.generation = 4;
    bench.view.phase = TG_PHASE_SCHEDULED;
    run(STEP_MS);
    bench.view.phase = TG_PHASE_OPEN;
    run(STEP_MS);
    assert_int_equal(bench.pace.pace_milli, 1000000);
}

static void who_settles_announces_itself_with_a_pace_of_zero(void **state)
{
    struct tg_term term;
    struct admission_brain brain;
    tg_term_begin(&term, "admission-b", bench.now.mono, 0);
    admission_begin(&brain, &term, &bench.keys, &goals, "demo");
    struct admission_event event = {.kind = ADMISSION_TICK};
    event.tick.view = bench.view;
    event.tick.connected = true;
    bool announced = false;
    while (!tg_term_acts(&term)) {
        struct admission_action actions[ADMISSION_ACTIONS_MAX];
        bench.now.mono.ms += STEP_MS;
        size_t count = admission_step(&brain, bench.now, &event, actions);
        for (size_t i = 0; i < count; i++) {
            if (actions[i].kind == ADMISSION_DO_PACE) {
                announced = true;
                assert_int_equal(actions[i].pace.pace_milli, 0);
            }
        }
    }
    assert_true(announced);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_rank_below_the_watermark_gets_a_pass, begin),
        cmocka_unit_test_setup(a_rank_at_the_watermark_waits, begin),
        cmocka_unit_test_setup(a_decoy_never_gets_a_pass, begin),
        cmocka_unit_test_setup(a_slow_ticket_gets_a_pass_in_one_minute_of_four, begin),
        cmocka_unit_test_setup(without_lanes_every_ticket_is_live, begin),
        cmocka_unit_test_setup(the_same_minute_gives_the_same_pass_the_next_another, begin),
        cmocka_unit_test_setup(a_standby_signs_the_same_pass, begin),
        cmocka_unit_test_setup(a_ticket_is_used_by_its_holder_only, begin),
        cmocka_unit_test_setup(a_visitors_ticket_serves_any_buyer_and_the_place_stays_the_visitors,
                               begin),
        cmocka_unit_test_setup(case_17_a_ticket_of_an_earlier_generation_restarts, begin),
        cmocka_unit_test_setup(a_ticket_of_another_sale_or_key_is_invalid, begin),
        cmocka_unit_test_setup(a_ticket_of_the_previous_key_still_opens, begin),
        cmocka_unit_test_setup(every_phase_but_open_refuses_by_its_name, begin),
        cmocka_unit_test_setup(a_stale_board_says_nothing, begin),
        cmocka_unit_test_setup(boards_of_another_generation_or_a_lower_term_do_not_count, begin),
        cmocka_unit_test_setup(the_watermark_never_goes_back, begin),
        cmocka_unit_test_setup(a_lower_term_is_followed_after_silence, begin),
        cmocka_unit_test_setup(a_new_generation_forgets_the_watermark, begin),
        cmocka_unit_test_setup(the_pace_is_the_definitions_start, begin),
        cmocka_unit_test_setup(the_operators_pace_comes_first_within_the_bounds, begin),
        cmocka_unit_test_setup(not_open_freezes_at_once, begin),
        cmocka_unit_test_setup(unknown_stock_freezes, begin),
        cmocka_unit_test_setup(the_pace_is_said_every_250_ms_by_the_active_one_only, begin),
        cmocka_unit_test_setup(a_standby_follows_and_takes_over_at_the_same_pace, begin),
        cmocka_unit_test_setup(a_signal_above_its_limit_freezes_with_the_same_step, begin),
        cmocka_unit_test_setup(a_new_generation_forgets_the_signals, begin),
        cmocka_unit_test_setup(who_settles_announces_itself_with_a_pace_of_zero, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
