/* SPDX-License-Identifier: Apache-2.0
 * What the edge decides from memory. */
#include "services/edge/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct tg_sale sale;
static struct edge_stock stock;
static struct edge_board board;
static const struct edge_view view = {.sale = &sale, .stock = &stock, .board = &board};
static struct edge_now now;

/* An open sale of ten free units, all heard just now. */
static int set_up(void **state)
{
    now = (struct edge_now){.mono = {100000}, .wall = {1000000}};
    sale = (struct tg_sale){.name = "s",
                            .generation = 1,
                            .phase = TG_PHASE_OPEN,
                            .opens_at = {900000},
                            .heard = {100000}};
    stock = (struct edge_stock){.known = true, .heard = {100000}, .free = 10};
    board = (struct edge_board){.known = true, .term = 1, .generation = 1, .instance = "queue-b"};
    board.view = (struct tg_board_view){.watermark = 5, .pace_milli = 1000};
    return 0;
}

static void test_state_of_an_open_sale(void **state)
{
    assert_int_equal(edge_state(&view, now), EDGE_OPEN);
    sale.phase = TG_PHASE_SCHEDULED;
    assert_int_equal(edge_state(&view, now), EDGE_SCHEDULED);
    sale.phase = TG_PHASE_PAUSED;
    assert_int_equal(edge_state(&view, now), EDGE_PAUSED);
    sale.phase = TG_PHASE_UNKNOWN;
    assert_int_equal(edge_state(&view, now), EDGE_PAUSED);
    sale.phase = TG_PHASE_CLOSED;
    assert_int_equal(edge_state(&view, now), EDGE_CLOSED);
}

static void test_own_pause_counts_at_once(void **state)
{
    assert_int_equal(tg_sale_pause(&sale, "00000000000000000000000001", "test"), 0);
    assert_int_equal(edge_state(&view, now), EDGE_PAUSED);
}

static void test_stale_state_is_paused_unless_it_is_final(void **state)
{
    now.mono.ms += TG_MAX_STATE_STALE_MS;
    stock.heard = now.mono;
    assert_int_equal(edge_state(&view, now), EDGE_OPEN);
    now.mono.ms++;
    assert_int_equal(edge_state(&view, now), EDGE_PAUSED);
    stock = (struct edge_stock){.known = true, .heard = now.mono, .settled = 10};
    assert_int_equal(edge_state(&view, now), EDGE_SOLD_OUT);
    sale.phase = TG_PHASE_CLOSED;
    now.mono.ms += 1000000;
    assert_int_equal(edge_state(&view, now), EDGE_CLOSED);
}

static void test_sold_out_is_final_only_when_nothing_is_held(void **state)
{
    stock.free = 0;
    stock.held = 1;
    assert_int_equal(edge_state(&view, now), EDGE_OPEN);
    stock.held = 0;
    assert_int_equal(edge_state(&view, now), EDGE_SOLD_OUT);
    stock.heard.ms -= EDGE_STOCK_STALE_MS + 1; /* unknown again */
    assert_int_equal(edge_state(&view, now), EDGE_OPEN);
    sale.phase = TG_PHASE_SOLD_OUT; /* the ledger's word, when the gate's is not known */
    assert_int_equal(edge_state(&view, now), EDGE_SOLD_OUT);
    stock = (struct edge_stock){.known = true, .heard = now.mono, .free = 1};
    assert_int_equal(edge_state(&view, now), EDGE_OPEN); /* something came back */
    stock.known = false;
    assert_int_equal(edge_state(&view, now), EDGE_SOLD_OUT);
}

static void test_refusals_come_in_order(void **state)
{
    struct edge_refusal refusal = edge_refuse(&view, now, false, EDGE_PASS_NONE);
    assert_int_equal(refusal.reason, TG_REASON_SIGN_IN_REQUIRED);
    assert_int_equal(edge_refuse(&view, now, true, EDGE_PASS_NONE).reason, TG_REASON_PASS_REQUIRED);
    assert_int_equal(edge_refuse(&view, now, true, EDGE_PASS_INVALID).reason,
                     TG_REASON_PASS_INVALID);
    assert_int_equal(edge_refuse(&view, now, true, EDGE_PASS_OLD).reason, TG_REASON_RESTART);
    assert_int_equal(edge_refuse(&view, now, true, EDGE_PASS_AHEAD).reason, TG_REASON_TRY_AGAIN);
    sale.phase = TG_PHASE_SCHEDULED;
    sale.opens_at.ms = now.wall.ms + 90000;
    refusal = edge_refuse(&view, now, true, EDGE_PASS_NONE);
    assert_int_equal(refusal.reason, TG_REASON_SALE_NOT_OPEN);
    assert_int_equal(refusal.retry_after_ms, 90000);
    sale.phase = TG_PHASE_PAUSED;
    refusal = edge_refuse(&view, now, false, EDGE_PASS_NONE);
    assert_int_equal(refusal.reason, TG_REASON_SALE_PAUSED);
    assert_true(refusal.retry_after_ms > 0);
    stock.free = 0;
    stock.held = 3;
    refusal = edge_refuse(&view, now, false, EDGE_PASS_NONE);
    assert_int_equal(refusal.reason, TG_REASON_SOLD_OUT);
    assert_false(refusal.final);
    assert_true(refusal.retry_after_ms > 0);
    stock.held = 0;
    refusal = edge_refuse(&view, now, false, EDGE_PASS_NONE);
    assert_int_equal(refusal.reason, TG_REASON_SOLD_OUT);
    assert_true(refusal.final);
    assert_int_equal(refusal.retry_after_ms, 0);
    sale.phase = TG_PHASE_CLOSED;
    assert_int_equal(edge_refuse(&view, now, true, EDGE_PASS_NONE).reason, TG_REASON_SALE_CLOSED);
}

static void test_opening_is_told_within_bounds(void **state)
{
    sale.opens_at.ms = now.wall.ms - 5;
    assert_int_equal(edge_opens_in_ms(&sale, now), 1000);
    sale.opens_at.ms = now.wall.ms + 2500;
    assert_int_equal(edge_opens_in_ms(&sale, now), 2500);
    sale.opens_at.ms = now.wall.ms + INT64_C(1000) * 86400 * 365;
    assert_int_equal(edge_opens_in_ms(&sale, now), 3600000);
}

static void test_early_is_before_the_opening(void **state)
{
    sale.opened = true;
    assert_int_equal(edge_arrival(&sale, now), EDGE_ARRIVAL_LATE);
    sale.opens_at.ms = now.wall.ms + 1; /* opened by hand, before its time */
    assert_int_equal(edge_arrival(&sale, now), EDGE_ARRIVAL_LATE);
    sale.opened = false;
    sale.phase = TG_PHASE_PAUSED; /* before it opened */
    assert_int_equal(edge_arrival(&sale, now), EDGE_ARRIVAL_EARLY);
    sale.heard.ms = now.mono.ms - TG_MAX_STATE_STALE_MS;
    assert_int_equal(edge_arrival(&sale, now), EDGE_ARRIVAL_EARLY);
    sale.heard.ms--; /* it may have opened, nobody told us */
    assert_int_equal(edge_arrival(&sale, now), EDGE_ARRIVAL_UNSURE);
}

static void test_buckets(void **state)
{
    static const uint64_t rows[][2] = {
        {0, 0},     {1, 1},     {10, 10},   {11, 10},     {19, 10},
        {20, 20},   {49, 20},   {50, 50},   {99, 50},     {100, 100},
        {199, 100}, {200, 200}, {999, 500}, {1000, 1000}, {32000000, 20000000}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(edge_bucket(rows[i][0]), rows[i][1]);
    }
    for (uint64_t units = 0; units < 100000; units++) {
        uint64_t told = edge_bucket(units);
        assert_true(told <= units && (units == 0 || told > 0));
        assert_true(told >= edge_bucket(units == 0 ? 0 : units - 1)); /* never more told for less */
    }
    assert_true(edge_bucket(UINT64_MAX) <= UINT64_MAX);
}

static void test_standing_and_turn(void **state)
{
    struct edge_standing standing;
    edge_stand(&view, now, 4, false, "", &standing);
    assert_true(standing.known && standing.below);
    assert_int_equal(edge_turn(EDGE_OPEN, &standing), EDGE_ASK);
    assert_int_equal(edge_turn(EDGE_PAUSED, &standing), EDGE_TELL);
    assert_int_equal(edge_turn(EDGE_SOLD_OUT, &standing), EDGE_TELL);
    edge_stand(&view, now, 5, false, "", &standing); /* the next one, not yet below */
    assert_true(standing.known && !standing.below);
    assert_int_equal(standing.position, 0);
    assert_int_equal(edge_turn(EDGE_OPEN, &standing), EDGE_WAIT);
    edge_stand(&view, now, 105, false, "", &standing);
    assert_int_equal(standing.position, 100);
    assert_int_equal(standing.estimate_seconds, 125);
    board.known = false;
    edge_stand(&view, now, 0, false, "", &standing);
    assert_false(standing.known);
    assert_true(standing.poll_seconds > 0);
    assert_int_equal(edge_turn(EDGE_OPEN, &standing), EDGE_WAIT);
}

static void test_a_draw_shows_no_position_before_the_seed(void **state)
{
    struct edge_standing standing;
    board.view.random = true;
    edge_stand(&view, now, 0, true, "00000000000000000000000000", &standing);
    assert_false(standing.known);
    board.view.revealed = true;
    board.view.present_at_open = 10;
    edge_stand(&view, now, 0, true, "00000000000000000000000000", &standing);
    assert_true(standing.known && standing.rank < 10);
}

static void test_poll_advice_is_spread(void **state)
{
    uint64_t sum = 0;
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = 0; i < 65536; i++) {
        uint32_t seconds = edge_spread(20, i * 65537U + 12345U);
        least = seconds < least ? seconds : least;
        most = seconds > most ? seconds : most;
        sum += seconds;
        assert_true(edge_spread(1, i * 65537U) >= 1);
    }
    assert_in_range(least, 14, 15);
    assert_in_range(most, 25, 26);
    assert_in_range(sum / 65536, 19, 20);
}

static bool counts(uint64_t generation, uint64_t term, const char *instance, uint64_t version)
{
    struct edge_board heard = {.generation = generation, .term = term, .version = version};
    memcpy(heard.instance, instance, strlen(instance) + 1);
    return edge_board_counts(&board, &heard);
}

static void test_boards_of_lower_terms_do_not_count(void **state)
{
    board.version = 5;
    assert_false(counts(1, 0, "queue-a", 9));
    assert_true(counts(1, 1, "queue-b", 5));
    assert_true(counts(1, 1, "queue-b", 6));
    assert_false(counts(1, 1, "queue-b", 4)); /* the same voice, delivered late */
    assert_true(counts(1, 1, "queue-a", 1));  /* two of one term: the smaller stays */
    assert_false(counts(1, 1, "queue-c", 9));
    assert_true(counts(1, 2, "queue-c", 1));
    assert_true(counts(2, 0, "queue-c", 1)); /* another generation */
    board.known = false;
    assert_true(counts(1, 0, "queue-c", 1));
}

static void test_units_prefer_the_gate(void **state)
{
    uint64_t free, held;
    board.remaining = 7;
    board.held = 2;
    stock.held = 4;
    assert_true(edge_units(&view, now, &free, &held));
    assert_int_equal(free, 10);
    assert_int_equal(held, 4);
    stock.known = false;
    assert_true(edge_units(&view, now, &free, &held));
    assert_int_equal(free, 7);
    board.known = false;
    assert_false(edge_units(&view, now, &free, &held));
}

static void test_lease_is_enough_for_those_who_wait(void **state)
{
    struct edge_lease lease = {0};
    edge_lease_follow(&lease, 1);
    assert_int_equal(edge_lease_ask(&lease, 900, now), 1024);
    edge_lease_granted(&lease, 0, 1024);
    assert_int_equal(edge_lease_ask(&lease, TG_MAX_PARKED, now), TG_MAX_LEASE_INDEXES);
}

static void test_lease_is_asked_ahead(void **state)
{
    struct edge_lease lease = {0};
    uint64_t index, last = 0;
    edge_lease_follow(&lease, 1);
    assert_false(edge_lease_take(&lease, &index));
    assert_true(edge_lease_wants(&lease, now));
    assert_int_equal(edge_lease_ask(&lease, 0, now), EDGE_LEASE_FIRST);
    assert_false(edge_lease_wants(&lease, now)); /* asked already */
    edge_lease_granted(&lease, 100, 64);
    assert_int_equal(lease.index_end, 164);
    for (int i = 0; i < 31; i++) {
        assert_true(edge_lease_take(&lease, &index));
        assert_false(edge_lease_wants(&lease, now));
    }
    assert_true(edge_lease_take(&lease, &index));
    assert_int_equal(index, 131);
    assert_true(edge_lease_wants(&lease, now));                             /* half is left */
    assert_int_equal(edge_lease_ask(&lease, 0, now), 2 * EDGE_LEASE_FIRST); /* and it went fast */
    edge_lease_granted(&lease, 500, 128);
    assert_false(edge_lease_wants(&lease, now)); /* a spare is in hand */
    for (int i = 0; i < 32 + 128; i++) {
        assert_true(edge_lease_take(&lease, &index));
        assert_true(index > last);
        last = index;
    }
    assert_int_equal(index, 627);
    assert_false(edge_lease_take(&lease, &index));
}

static void test_lease_size_follows_the_rate_within_bounds(void **state)
{
    struct edge_lease lease = {0};
    uint64_t index, first = 0;
    edge_lease_follow(&lease, 1);
    for (int round = 0; round < 20; round++) {
        uint32_t size = edge_lease_ask(&lease, 0, now);
        assert_in_range(size, EDGE_LEASE_FIRST, TG_MAX_LEASE_INDEXES);
        edge_lease_granted(&lease, first, size);
        first += size;
        while (edge_lease_take(&lease, &index)) {
        }
    }
    assert_int_equal(lease.size, TG_MAX_LEASE_INDEXES);
    for (int round = 0; round < 20; round++) {
        now.mono.ms += 61000;
        edge_lease_granted(&lease, first, edge_lease_ask(&lease, 0, now));
        while (edge_lease_take(&lease, &index)) {
        }
    }
    assert_int_equal(lease.size, EDGE_LEASE_FIRST);
}

static void test_failed_lease_is_retried_soon_and_not_at_once(void **state)
{
    struct edge_lease lease = {0};
    edge_lease_follow(&lease, 1);
    (void)edge_lease_ask(&lease, 0, now);
    edge_lease_failed(&lease, now);
    assert_false(edge_lease_wants(&lease, now));
    now.mono.ms += EDGE_LEASE_RETRY_MS;
    assert_true(edge_lease_wants(&lease, now));
}

/* A queue that is not ready yet refuses for a second: an edge without visitors once leased 320
 * places meanwhile, and at two a second the line began with two minutes of nobody. */
static void test_an_edge_without_visitors_holds_one_small_block(void **state)
{
    struct edge_lease lease = {0};
    edge_lease_follow(&lease, 1);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(edge_lease_ask(&lease, 0, now), EDGE_LEASE_FIRST);
        edge_lease_failed(&lease, now);
        now.mono.ms += EDGE_LEASE_RETRY_MS;
    }
    (void)edge_lease_ask(&lease, 0, now);
    edge_lease_granted(&lease, 0, EDGE_LEASE_FIRST);
    assert_false(edge_lease_wants(&lease, now));
    for (int i = 0; i < 6; i++) { /* the first is asked for fast, and refused */
        assert_int_equal(edge_lease_ask(&lease, 0, now), 2 * EDGE_LEASE_FIRST);
        edge_lease_failed(&lease, now);
        now.mono.ms += EDGE_LEASE_RETRY_MS;
    }
}

static void test_lease_of_another_generation_is_forgotten(void **state)
{
    struct edge_lease lease = {0};
    uint64_t index;
    edge_lease_follow(&lease, 1);
    edge_lease_granted(&lease, 0, 64);
    edge_lease_saw(&lease, 900);
    edge_lease_follow(&lease, 1);
    assert_int_equal(lease.index_end, 901);
    edge_lease_follow(&lease, 2);
    assert_false(edge_lease_take(&lease, &index));
    assert_int_equal(lease.index_end, 0);
    edge_lease_saw(&lease, UINT64_MAX);
    assert_int_equal(lease.index_end, 0);
}

static void test_blocks_leased_before_the_opening_of_a_draw_die_at_it(void **state)
{
    struct edge_lease lease = {0};
    uint64_t index;
    edge_lease_follow(&lease, 1);
    edge_lease_granted(&lease, 0, 64);
    edge_lease_granted(&lease, 64, 64);
    edge_lease_over(&lease);
    assert_false(edge_lease_take(&lease, &index));
    edge_lease_granted(&lease, 128, 64);
    edge_lease_over(&lease);
    assert_true(edge_lease_take(&lease, &index) && index == 128);
}

static void test_who_asks_again_is_one_person(void **state)
{
    static struct edge_asked asked;
    struct edge_now later = now;
    for (int i = 0; i < 100; i++) {
        edge_asked_count(&asked, 1, 0, later);
        edge_asked_count(&asked, 1, 7, later);
        later.mono.ms += 100;
    }
    assert_int_equal(asked.people, 2);
    edge_asked_count(&asked, 2, 7, later); /* another line */
    edge_asked_count(&asked, 2, 7 + EDGE_ASKED_ROWS, later);
    assert_int_equal(asked.people, 4);
    later.mono.ms = now.mono.ms + EDGE_ASKED_MS;
    edge_asked_count(&asked, 1, 0, later); /* stands there with another pass */
    assert_int_equal(asked.people, 5);
}

static void test_every_state_has_a_name(void **state)
{
    static const char *const names[] = {"scheduled", "open", "paused", "sold_out", "closed"};
    for (int i = 0; i <= EDGE_CLOSED; i++) {
        assert_string_equal(edge_state_name((enum edge_state)i), names[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_state_of_an_open_sale, set_up),
        cmocka_unit_test_setup(test_own_pause_counts_at_once, set_up),
        cmocka_unit_test_setup(test_stale_state_is_paused_unless_it_is_final, set_up),
        cmocka_unit_test_setup(test_sold_out_is_final_only_when_nothing_is_held, set_up),
        cmocka_unit_test_setup(test_refusals_come_in_order, set_up),
        cmocka_unit_test_setup(test_opening_is_told_within_bounds, set_up),
        cmocka_unit_test_setup(test_early_is_before_the_opening, set_up),
        cmocka_unit_test_setup(test_buckets, set_up),
        cmocka_unit_test_setup(test_standing_and_turn, set_up),
        cmocka_unit_test_setup(test_a_draw_shows_no_position_before_the_seed, set_up),
        cmocka_unit_test_setup(test_poll_advice_is_spread, set_up),
        cmocka_unit_test_setup(test_boards_of_lower_terms_do_not_count, set_up),
        cmocka_unit_test_setup(test_units_prefer_the_gate, set_up),
        cmocka_unit_test_setup(test_lease_is_enough_for_those_who_wait, set_up),
        cmocka_unit_test_setup(test_lease_is_asked_ahead, set_up),
        cmocka_unit_test_setup(test_lease_size_follows_the_rate_within_bounds, set_up),
        cmocka_unit_test_setup(test_failed_lease_is_retried_soon_and_not_at_once, set_up),
        cmocka_unit_test_setup(test_an_edge_without_visitors_holds_one_small_block, set_up),
        cmocka_unit_test_setup(test_lease_of_another_generation_is_forgotten, set_up),
        cmocka_unit_test_setup(test_blocks_leased_before_the_opening_of_a_draw_die_at_it, set_up),
        cmocka_unit_test_setup(test_who_asks_again_is_one_person, set_up),
        cmocka_unit_test_setup(test_every_state_has_a_name, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
