// SPDX-License-Identifier: Apache-2.0
// The queue's core in a draw: when the roster may be closed, what comes after what, and that nobody
// is let in before the seed is told.
#include "tests/unit/cmocka_tests.h"

#include "tests/unit/queue_bench.h"

static struct queue_bench bench;
static struct queue_roster roster;

static int begin(void **state)
{
    bench_begin(&bench, "queue-a");
    bench.view.order = TG_ORDER_RANDOM;
    bench_activate(&bench);
    roster = (struct queue_roster){.loaded = true, .secret_known = true};
    return 0;
}

static enum queue_draw_step next(void)
{
    return queue_draw_next(&bench.brain, bench.now.mono, &roster);
}

static void tell(const char *edge, bool early_over)
{
    struct queue_event event = {.kind = QUEUE_PRESENCE};
    event.presence.edge = edge;
    event.presence.generation = 1;
    event.presence.early_over = early_over;
    bench_feed(&bench, &event);
}

static void open_sale(void)
{
    bench.view.phase = TG_PHASE_OPEN;
    bench_tick(&bench);
}

static void freeze(uint64_t count)
{
    bench.view.draw.frozen = true;
    bench.view.draw.count = count;
    bench.view.draw.index_at_open = 64;
    bench_tick(&bench);
}

static void entrants_come_in_until_the_roster_is_closing(void **state)
{
    assert_true(queue_draw_takes(&bench.brain, &roster));
    roster.loaded = false;
    assert_false(queue_draw_takes(&bench.brain, &roster));
    assert_int_equal(next(), QUEUE_DRAW_LOAD);
    roster = (struct queue_roster){.loaded = true, .closing = true};
    assert_false(queue_draw_takes(&bench.brain, &roster));
    roster.closing = false; /* a new queue that finds it frozen */
    freeze(40);
    assert_false(queue_draw_takes(&bench.brain, &roster));
}

static void what_came_in_is_stored_before_anything_is_closed(void **state)
{
    roster.unstored = 3;
    assert_int_equal(next(), QUEUE_DRAW_STORE);
    open_sale();
    bench_run(&bench, QUEUE_SHUT_OUT_MS);
    assert_int_equal(next(), QUEUE_DRAW_STORE);
}

static void nothing_closes_before_every_edge_has_said_that_nobody_is_early(void **state)
{
    tell("edge-a", false);
    tell("edge-b", true);
    assert_int_equal(next(), QUEUE_DRAW_REST);
    open_sale();
    assert_int_equal(next(), QUEUE_DRAW_REST);
    tell("edge-a", true);
    assert_int_equal(next(), QUEUE_DRAW_CLOSE);
    roster.closing = roster.closed = true;
    assert_int_equal(next(), QUEUE_DRAW_FREEZE);
}

static void an_edge_that_says_nothing_is_shut_out(void **state)
{
    tell("edge-a", false);
    open_sale();
    bench_run(&bench, QUEUE_SHUT_OUT_MS - BENCH_STEP_MS);
    assert_int_equal(next(), QUEUE_DRAW_REST);
    bench_run(&bench, 2 * BENCH_STEP_MS);
    assert_int_equal(next(), QUEUE_DRAW_CLOSE);
}

static void the_secret_is_told_after_the_roster_is_frozen_and_the_beacon_known(void **state)
{
    bench.view.beacon_promised = true;
    open_sale();
    assert_int_equal(next(), QUEUE_DRAW_CLOSE);
    freeze(40);
    roster.closing = roster.closed = true;
    assert_int_equal(next(), QUEUE_DRAW_REST);
    bench.view.draw.beacon_length = 8;
    bench_tick(&bench);
    assert_int_equal(next(), QUEUE_DRAW_REVEAL);
    roster.secret_known = false;
    assert_int_equal(next(), QUEUE_DRAW_REST);
}

static void a_new_queue_reveals_before_it_has_read_the_roster(void **state)
{
    open_sale();
    freeze(40);
    roster.loaded = false;
    assert_int_equal(next(), QUEUE_DRAW_REVEAL);
    bench.view.draw.revealed = true;
    bench_tick(&bench);
    assert_int_equal(next(), QUEUE_DRAW_LOAD);
    roster.loaded = true;
    assert_int_equal(next(), QUEUE_DRAW_CLOSE);
}

static void nobody_is_let_in_before_the_seed_is_told(void **state)
{
    bench_arrive(&bench, 64);
    open_sale();
    bench_run(&bench, 2000);
    assert_true(bench.board.watermark == 0 && !bench.board.revealed);
    freeze(40);
    bench_run(&bench, 1000);
    assert_true(bench.board.watermark == 0 && bench.board.present_at_open == 40);
    bench.view.draw.revealed = true;
    bench_run(&bench, 2000);
    /* 40 were drawn, nobody came later: the ranks end there, whatever indexes were given */
    assert_true(bench.board.revealed && bench.board.watermark == 40);
}

static void under_fifo_nothing_is_drawn(void **state)
{
    bench.view.order = TG_ORDER_FIFO;
    bench_tick(&bench);
    assert_int_equal(next(), QUEUE_DRAW_REST);
    assert_false(queue_draw_takes(&bench.brain, &roster));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(entrants_come_in_until_the_roster_is_closing, begin),
        cmocka_unit_test_setup(what_came_in_is_stored_before_anything_is_closed, begin),
        cmocka_unit_test_setup(nothing_closes_before_every_edge_has_said_that_nobody_is_early,
                               begin),
        cmocka_unit_test_setup(an_edge_that_says_nothing_is_shut_out, begin),
        cmocka_unit_test_setup(the_secret_is_told_after_the_roster_is_frozen_and_the_beacon_known,
                               begin),
        cmocka_unit_test_setup(a_new_queue_reveals_before_it_has_read_the_roster, begin),
        cmocka_unit_test_setup(nobody_is_let_in_before_the_seed_is_told, begin),
        cmocka_unit_test_setup(under_fifo_nothing_is_drawn, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
