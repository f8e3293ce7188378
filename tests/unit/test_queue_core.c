// SPDX-License-Identifier: Apache-2.0
// The queue's core: leases, the opening, the watermark, the room, the board.
#include "tests/unit/cmocka_tests.h"

#include "services/queue/core_parts.h"
#include "tests/unit/queue_bench.h"

#include <stdio.h>

static struct queue_bench bench;

static int begin(void **state)
{
    bench_begin(&bench, "queue-a");
    return 0;
}

static int begin_active(void **state)
{
    bench_begin(&bench, "queue-a");
    bench_activate(&bench);
    return 0;
}

/* Active, open, and `people` indexes given. */
static void open_with(uint64_t people)
{
    bench_arrive(&bench, people);
    bench.view.phase = TG_PHASE_OPEN;
    bench_tick(&bench);
}

static void presence(struct queue_event *out_event)
{
    *out_event = (struct queue_event){.kind = QUEUE_PRESENCE};
    out_event->presence.edge = "edge-a";
    out_event->presence.generation = 1;
}

/* The same, of a sale of so many units. */
static void open_units(uint64_t units)
{
    bench_begin(&bench, "queue-a");
    bench.free_units = units;
    bench_activate(&bench);
    open_with(10000);
}

/* ---- leases ---- */

static void on_standby_leases_are_not_mine(void **state)
{
    bench_run(&bench, 1000);
    bench_lease(&bench, "edge-a", 8);
    assert_int_equal(bench.grant.reason, TG_REASON_NOT_MINE);
}

static void without_a_state_the_sale_is_unknown(void **state)
{
    bench_lease(&bench, "edge-a", 8);
    assert_int_equal(bench.grant.reason, TG_REASON_SALE_UNKNOWN);
}

static void the_first_population_gets_indexes_from_zero_before_the_opening(void **state)
{
    bench_lease(&bench, "edge-a", 8);
    assert_int_equal(bench.grant.reason, TG_REASON_NONE);
    assert_int_equal(bench.grant.first, 0);
    assert_int_equal(bench.grant.count, 8);
    assert_int_equal(bench.grant.term, 1);
    assert_int_equal(bench.grant.generation, 1);
    bench_lease(&bench, "edge-b", 3);
    assert_int_equal(bench.grant.first, 8);
    assert_int_equal(bench.grant.count, 3);
    assert_int_equal(bench.board.phase, TG_PHASE_SCHEDULED);
}

static void a_closed_sale_gives_no_indexes(void **state)
{
    bench.view.phase = TG_PHASE_CLOSED;
    bench_tick(&bench);
    bench_lease(&bench, "edge-a", 8);
    assert_int_equal(bench.grant.reason, TG_REASON_SALE_CLOSED);
}

static void a_paused_sale_goes_on_giving_places(void **state)
{
    bench.view.phase = TG_PHASE_PAUSED;
    bench_tick(&bench);
    bench_lease(&bench, "edge-a", 8);
    assert_int_equal(bench.grant.reason, TG_REASON_NONE);
}

static void blocks_follow_the_rate_of_the_edge_up_to_the_limit(void **state)
{
    uint32_t last = 0;
    for (int i = 0; i < 12; i++) {
        bench_lease(&bench, "edge-a", TG_MAX_LEASE_INDEXES);
        assert_true(bench.grant.count >= last);
        last = bench.grant.count;
    }
    assert_int_equal(last, TG_MAX_LEASE_INDEXES);
    bench_lease(&bench, "edge-b", TG_MAX_LEASE_INDEXES);
    assert_int_equal(bench.grant.count, QUEUE_BLOCK_MIN);
    bench_run(&bench, 60000);
    bench_lease(&bench, "edge-a", TG_MAX_LEASE_INDEXES);
    assert_int_equal(bench.grant.count, QUEUE_BLOCK_MIN);
}

static void a_burst_told_by_presence_gets_a_block_of_its_size(void **state)
{
    struct queue_event event;
    presence(&event);
    event.presence.arrivals = 700;
    bench_feed(&bench, &event);
    bench_lease(&bench, "edge-a", TG_MAX_LEASE_INDEXES);
    assert_int_equal(bench.grant.count, 700);
}

/* More edges than rows: leases still work, with small blocks. */
static void more_edges_than_rows_are_served_too(void **state)
{
    char name[16];
    for (int i = 0; i < TG_MAX_EDGES + 20; i++) {
        snprintf(name, sizeof name, "edge-%d", i);
        uint64_t expected = bench.brain.index_end;
        bench_lease(&bench, name, TG_MAX_LEASE_INDEXES);
        assert_int_equal(bench.grant.reason, TG_REASON_NONE);
        assert_int_equal(bench.grant.first, expected);
        assert_int_equal(bench.grant.count, QUEUE_BLOCK_MIN);
    }
}

/* ---- the opening ---- */

static void the_ledgers_phase_decides_the_opening_not_the_clock(void **state)
{
    bench_arrive(&bench, 500);
    bench.now.wall.ms = bench.view.opens_at.ms + 60000;
    bench_run(&bench, 3000);
    assert_int_equal(bench.board.watermark, 0);
    bench.view.phase = TG_PHASE_OPEN;
    bench_run(&bench, 100);
    assert_true(bench.board.watermark > 0);
}

static void the_opening_records_who_was_present(void **state)
{
    struct queue_event event;
    bench_arrive(&bench, 100);
    presence(&event);
    event.presence.index_end = 100;
    event.presence.tickets = 93;
    bench_feed(&bench, &event);
    bench.view.phase = TG_PHASE_OPEN;
    bench_tick(&bench);
    assert_int_equal(bench.board.index_at_open, 100);
    assert_int_equal(bench.board.present_at_open, 93);
    bench_arrive(&bench, 300);
    bench_run(&bench, 500);
    assert_int_equal(bench.board.index_at_open, 100);
}

/* ---- the watermark ---- */

static void the_watermark_moves_by_pace_times_time(void **state)
{
    open_with(100000);
    bench_run(&bench, 10000);
    assert_int_equal(bench.brain.watermark, 10000);
    bench.pace_milli = 500; /* half a person a second */
    bench_run(&bench, 10000);
    assert_in_range(bench.brain.watermark, 10005, 10055);
}

static void it_stops_when_the_sale_is_not_open(void **state)
{
    static const enum tg_phase phases[] = {TG_PHASE_SCHEDULED, TG_PHASE_PAUSED, TG_PHASE_SOLD_OUT,
                                           TG_PHASE_CLOSED, TG_PHASE_UNKNOWN};
    open_with(100000);
    bench_run(&bench, 1000);
    for (size_t i = 0; i < COUNT_OF(phases); i++) {
        bench.view.phase = phases[i];
        uint64_t before = bench.brain.watermark;
        bench_run(&bench, 2000);
        assert_int_equal(bench.brain.watermark, before);
    }
}

static void it_stops_without_a_pace_and_lets_nobody_in_for_the_time_lost(void **state)
{
    open_with(100000);
    bench.admission = false;
    bench_run(&bench, 10000);
    assert_in_range(bench.brain.watermark, 1400, 1600);
    uint64_t before = bench.brain.watermark;
    bench.admission = true;
    bench_run(&bench, 1000);
    assert_in_range(bench.brain.watermark, before + 900, before + 1100);
}

static void it_stops_when_the_stock_is_unknown(void **state)
{
    open_with(100000);
    bench_run(&bench, 1000);
    bench.gate = false;
    bench_run(&bench, 20000);
    assert_in_range(bench.brain.watermark, 3900, 4100);
}

static void it_stops_while_nothing_is_free_and_goes_on_when_units_return(void **state)
{
    bench.free_units = 0;
    bench.held_units = 10;
    open_with(1000);
    bench_run(&bench, 5000);
    assert_int_equal(bench.brain.watermark, 0);
    assert_int_equal(bench.board.notice, TG_REASON_NOTICE_ALL_HELD);
    bench.free_units = 2;
    bench.held_units = 8;
    bench_run(&bench, 500);
    assert_true(bench.brain.watermark >= 10);
    assert_int_equal(bench.board.notice, TG_REASON_NONE);
}

static void it_stops_while_the_gate_is_paused_or_unarmed(void **state)
{
    open_with(1000);
    bench.gate = false;
    struct queue_event event = {.kind = QUEUE_STOCK};
    event.stock.epoch = 1;
    event.stock.known = true;
    event.stock.paused = true;
    event.stock.free = 50;
    event.stock.gate_now_ms = bench.now.wall.ms + 1000;
    bench_feed(&bench, &event);
    bench_run(&bench, 1000);
    assert_int_equal(bench.brain.watermark, 0);
    event.stock.paused = false;
    event.stock.known = false;
    event.stock.epoch = 2;
    bench_feed(&bench, &event);
    bench_run(&bench, 1000);
    assert_int_equal(bench.brain.watermark, 0);
}

static void it_never_passes_the_next_index_and_saves_nothing_up(void **state)
{
    open_with(50);
    bench.brain.witnessed = true;
    bench_run(&bench, 20000);
    assert_int_equal(bench.brain.watermark, 50);
    bench_arrive(&bench, 1000);
    bench_run(&bench, 100);
    assert_in_range(bench.brain.watermark, 51, 200);
}

static void places_nobody_told_of_are_reached_after_all_died_together(void **state)
{
    open_with(50); /* known; the queue and the edge before these two gave some 3,000 more */
    bench_run(&bench, 20000);
    assert_in_range(bench.brain.watermark, 3000, 25000);
    assert_in_range(bench.brain.index_end, bench.brain.watermark, UINT32_MAX);
    bench_lease(&bench, "edge-a", 10);
    assert_in_range(bench.grant.first, 3000, UINT32_MAX); /* nobody's place is given again */
    bench.free_units = 0;
    bench_run(&bench, 100);
    uint64_t before = bench.brain.watermark;
    bench_run(&bench, 5000);
    assert_int_equal(bench.brain.watermark, before);
}

static void a_late_tick_lets_in_half_a_second_at_most(void **state)
{
    open_with(100000);
    bench.now.mono.ms += 900;
    bench_pace(&bench, 1, BENCH_PACE_MILLI);
    bench_tick(&bench);
    assert_int_equal(bench.brain.watermark, QUEUE_STEP_MS_MAX);
}

static void stock_told_out_of_order_is_ignored(void **state)
{
    open_with(1000);
    bench.gate = false;
    struct queue_event event = {.kind = QUEUE_STOCK};
    event.stock.epoch = 1;
    event.stock.known = true;
    event.stock.gate_now_ms = bench.now.wall.ms + 5000;
    event.stock.free = 0;
    event.stock.held = 9;
    bench_feed(&bench, &event);
    event.stock.gate_now_ms -= 1000;
    event.stock.free = 9;
    event.stock.held = 0;
    bench_feed(&bench, &event);
    bench_run(&bench, 1000);
    assert_int_equal(bench.brain.watermark, 0);
    assert_int_equal(bench.board.remaining, 0);
}

/* ---- the room ---- */

static void ask_for_passes(struct queue_bench *of, uint64_t people)
{
    struct queue_event event;
    presence(&event);
    event.presence.index_end = of->brain.index_end;
    event.presence.passes_asked = people;
    bench_feed(of, &event);
}

static void people_are_not_let_in_to_nothing(void **state)
{
    open_units(10);
    bench_run(&bench, 1000);
    assert_int_equal(bench.brain.watermark, 11 + 10);
}

/* Everybody who is let in asks, and nobody takes a unit. */
static void run_asking(int64_t ms)
{
    for (; ms > 0; ms -= 500) {
        uint64_t before = bench.brain.watermark;
        bench_run(&bench, 500);
        ask_for_passes(&bench, bench.brain.watermark - before);
    }
}

static void who_stands_before_the_gate_is_waited_for(void **state)
{
    open_units(1000);
    run_asking(4000);
    uint64_t before = bench.brain.watermark;
    assert_in_range(before, 1000, 1110);
    run_asking(30000); /* if nobody takes one, the path stands still */
    assert_in_range(bench.brain.watermark, before, 1900);
    run_asking(60000); /* but no longer than passes live */
    assert_true(bench.brain.watermark > 4000);
}

static void taken_units_make_room_for_others(void **state)
{
    open_units(100);
    bench_run(&bench, 1000);
    ask_for_passes(&bench, 120);
    for (uint64_t taken = 0; taken < 60; taken++) {
        bench.free_units--;
        bench_run(&bench, BENCH_STEP_MS);
    }
    /* 60 stand there, for 40 units only 54 may: nobody new meanwhile */
    assert_in_range(bench.brain.watermark, 120, 125);
    bench_run(&bench, 20000); /* the others were as quick, or do not come */
    assert_true(bench.brain.watermark > 140);
}

/* A unit that lapses while another is taken leaves as many free as before: the log tells. */
static void lapses_do_not_hide_who_took_a_unit(void **state)
{
    struct queue_event event = {.kind = QUEUE_STOCK};
    event.stock.epoch = 1;
    event.stock.known = true;
    event.stock.free = 100;
    event.stock.settled = 20;
    event.stock.sequence = 500;
    event.stock.gate_now_ms = bench.now.wall.ms + 1000;
    open_with(1000);
    bench.gate = false;
    bench_feed(&bench, &event);
    const struct queue_presence *presence = &bench.brain.presence;
    const uint64_t before = presence->slots[presence->at].taken;
    event.stock.gate_now_ms++;
    event.stock.sequence += 30 + 25 + 4; /* held, lapsed, paid */
    event.stock.free = 100 - 30 + 25;
    event.stock.settled += 4;
    bench_feed(&bench, &event);
    assert_int_equal(presence->slots[presence->at].taken - before, 30);
    event.stock.gate_now_ms++;
    event.stock.sequence += 5 + 40;
    event.stock.free += 40 - 5;
    bench_feed(&bench, &event);
    assert_int_equal(presence->slots[presence->at].taken - before, 35);
}

static void time_stands_still_before_a_gate_that_is_shut(void **state)
{
    open_units(100);
    bench_run(&bench, 1000);
    ask_for_passes(&bench, 120);
    bench_run(&bench, 1000);
    bench.view.phase = TG_PHASE_PAUSED;
    uint64_t standing = queue_room_standing_milli(&bench.brain.room);
    bench_run(&bench, 30000);
    assert_in_range(queue_room_standing_milli(&bench.brain.room), standing - 1000, standing);
}

static void a_standby_knows_who_stands_before_the_gate(void **state)
{
    static struct queue_bench standby;
    bench_begin(&standby, "queue-b");
    standby.connected = false; /* it never becomes active */
    standby.view.phase = TG_PHASE_OPEN;
    bench_run(&standby, 1000);
    ask_for_passes(&standby, 120);
    standby.free_units -= 50;
    bench_run(&standby, 1000);
    assert_int_equal(standby.brain.watermark, 0);
    assert_in_range(queue_room_standing_milli(&standby.brain.room), 65000, 70000);
}

/* Whoever let them in is gone. */
static void units_taken_by_people_it_did_not_see_say_little(void **state)
{
    open_units(5000);
    bench_run(&bench, 50);
    bench.free_units = 3000;
    bench_run(&bench, 1000);
    uint64_t before = bench.brain.watermark;
    bench_run(&bench, 6000);
    assert_in_range(bench.brain.watermark, before + 800, before + 3000);
}

static void absent_people_slow_the_line_but_do_not_stop_it(void **state)
{
    open_units(1);
    bench_run(&bench, 10000);
    uint64_t before = bench.brain.watermark;
    bench_run(&bench, 60000);
    assert_in_range(bench.brain.watermark, before + 200, before + 500);
}

static void the_board_tells_how_fast_people_really_come_in(void **state)
{
    open_units(2000);
    run_asking(500);
    assert_int_equal(bench.board.pace_milli, BENCH_PACE_MILLI);
    run_asking(6000);
    assert_in_range(bench.board.pace_milli, QUEUE_TOLD_MIN, BENCH_PACE_MILLI / 4);
}

/* ---- the board ---- */

static void boards_come_every_200_ms_and_versions_grow_with_content(void **state)
{
    bench.admission = false;
    bench_run(&bench, 3000);
    size_t boards = bench.boards;
    uint64_t version = bench.board.version;
    bench_run(&bench, 2000);
    assert_int_equal(bench.boards, boards + 10);
    assert_in_range(bench.board.version, version, version + 1); /* poll advice nears the opening */
    struct queue_event event;
    bench_arrive(&bench, 100);
    presence(&event);
    event.presence.index_end = 100;
    event.presence.tickets = 100;
    bench_feed(&bench, &event);
    bench_run(&bench, 200);
    assert_in_range(bench.board.version, version + 1, version + 2);
    assert_int_equal(bench.board.waiting, 100);
}

static void a_pause_is_told_at_once(void **state)
{
    open_with(100);
    size_t boards = bench.boards;
    bench.view.phase = TG_PHASE_PAUSED;
    bench_tick(&bench);
    assert_int_equal(bench.boards, boards + 1);
    assert_int_equal(bench.board.phase, TG_PHASE_PAUSED);
    assert_int_equal(bench.board.notice, TG_REASON_NOTICE_PAUSED);
}

static void the_last_free_unit_gone_is_told_at_once(void **state)
{
    open_with(100);
    size_t boards = bench.boards;
    bench.free_units = 0;
    bench.held_units = 1;
    bench.now.wall.ms += 1;
    bench_stock(&bench);
    assert_int_equal(bench.boards, boards + 1);
    assert_int_equal(bench.board.notice, TG_REASON_NOTICE_ALL_HELD);
}

static void indexes_without_a_ticket_are_not_counted_as_waiting(void **state)
{
    struct queue_event event;
    bench_arrive(&bench, 64);
    presence(&event);
    event.presence.index_end = 64;
    event.presence.tickets = 40;
    bench_feed(&bench, &event);
    bench_run(&bench, 200);
    assert_int_equal(bench.board.waiting, 40);
}

/* A small block after a rush: what is left of the large one before it was counted as people. */
static void a_large_block_in_hand_is_not_waiting_behind_a_small_one(void **state)
{
    enum { LEFT = 2000 };
    struct queue_event event;
    for (int i = 0; i < 12; i++) {
        bench_lease(&bench, "edge-a", TG_MAX_LEASE_INDEXES);
    }
    presence(&event);
    event.presence.index_end = bench.brain.index_end;
    event.presence.tickets = bench.brain.index_end - LEFT;
    for (int i = 0; i < 60; i++) {
        bench_feed(&bench, &event);
        bench_run(&bench, 1000);
    }
    bench_lease(&bench, "edge-a", TG_MAX_LEASE_INDEXES);
    assert_int_equal(bench.grant.count, QUEUE_BLOCK_MIN);
    bench_feed(&bench, &event);
    bench_run(&bench, 200);
    assert_int_equal(bench.board.waiting, event.presence.tickets);
}

/* A block that was lost with its edge is not taken off for ever. */
static void a_lost_block_does_not_hide_people(void **state)
{
    bench_arrive(&bench, 4000);
    bench_run(&bench, QUEUE_EDGE_SILENT_MS + 1000);
    for (int i = 0; i < 100; i++) {
        bench_lease(&bench, "edge-b", 8);
        bench_run(&bench, 1000);
    }
    struct queue_event event;
    presence(&event);
    event.presence.edge = "edge-b";
    event.presence.index_end = bench.brain.index_end;
    event.presence.tickets = 800;
    bench_feed(&bench, &event);
    bench_run(&bench, 200);
    assert_int_equal(bench.board.waiting, 4800);
}

static void a_standby_says_nothing(void **state)
{
    bench_run(&bench, 1900);
    assert_int_equal(bench.boards, 0);
}

/* The brain before leased blocks that no board and no edge has told of. */
static void a_takeover_leaves_room_for_leases_nobody_told_of(void **state)
{
    struct queue_event event;
    bench_run(&bench, 100);
    presence(&event);
    event.presence.board_term = 1;
    event.presence.index_end = 100;
    bench_feed(&bench, &event);
    bench_run(&bench, BENCH_ACTIVE_MS);
    bench_lease(&bench, "edge-a", 1);
    assert_int_equal(bench.grant.reason, TG_REASON_NONE);
    assert_true(bench.grant.first >= 100 + QUEUE_GAP_MIN);
}

/* ---- generations ---- */

/* case-17: a sale created anew under the same name starts from nothing; old numbers do not come
 * back. */
static void case_17_a_new_generation_starts_anew(void **state)
{
    open_with(1000);
    bench_run(&bench, 500);
    bench.view.generation = 2;
    bench.view.phase = TG_PHASE_SCHEDULED;
    bench_tick(&bench);
    bench_lease(&bench, "edge-a", 8);
    assert_int_equal(bench.grant.reason, TG_REASON_NOT_MINE);
    struct queue_event old;
    presence(&old);
    old.presence.index_end = 1000;
    old.presence.board_watermark = 500;
    old.presence.index_at_open = 1000;
    old.presence.board_term = 1;
    bench_feed(&bench, &old);
    struct queue_event of_both; /* an edge that has the generation, but last saw an older board */
    presence(&of_both);
    of_both.presence.generation = 2;
    of_both.presence.board_term = 1;
    bench_feed(&bench, &of_both);
    bench_run(&bench, QUEUE_COLLECT_MS);
    bench_lease(&bench, "edge-a", 8);
    assert_int_equal(bench.grant.reason, TG_REASON_NONE);
    assert_int_equal(bench.grant.first, 0);
    assert_int_equal(bench.grant.generation, 2);
    assert_int_equal(bench.board.watermark, 0);
    assert_int_equal(bench.board.index_at_open, 0);
}

/* case-17: numbers only grow; who leaves does not free a number for somebody else. */
static void case_17_numbers_are_never_given_twice(void **state)
{
    uint64_t expected = 0;
    for (int i = 0; i < 500; i++) {
        bench_lease(&bench, i % 3 == 0 ? "edge-a" : "edge-b", 1 + (uint32_t)i % 50);
        assert_int_equal(bench.grant.first, expected);
        expected += bench.grant.count;
        bench_run(&bench, (i % 7) * BENCH_STEP_MS);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(on_standby_leases_are_not_mine, begin),
        cmocka_unit_test_setup(without_a_state_the_sale_is_unknown, begin),
        cmocka_unit_test_setup(a_standby_says_nothing, begin),
        cmocka_unit_test_setup(the_first_population_gets_indexes_from_zero_before_the_opening,
                               begin_active),
        cmocka_unit_test_setup(a_closed_sale_gives_no_indexes, begin_active),
        cmocka_unit_test_setup(a_paused_sale_goes_on_giving_places, begin_active),
        cmocka_unit_test_setup(blocks_follow_the_rate_of_the_edge_up_to_the_limit, begin_active),
        cmocka_unit_test_setup(a_burst_told_by_presence_gets_a_block_of_its_size, begin_active),
        cmocka_unit_test_setup(more_edges_than_rows_are_served_too, begin_active),
        cmocka_unit_test_setup(the_ledgers_phase_decides_the_opening_not_the_clock, begin_active),
        cmocka_unit_test_setup(the_opening_records_who_was_present, begin_active),
        cmocka_unit_test_setup(the_watermark_moves_by_pace_times_time, begin_active),
        cmocka_unit_test_setup(it_stops_when_the_sale_is_not_open, begin_active),
        cmocka_unit_test_setup(it_stops_without_a_pace_and_lets_nobody_in_for_the_time_lost,
                               begin_active),
        cmocka_unit_test_setup(it_stops_when_the_stock_is_unknown, begin_active),
        cmocka_unit_test_setup(it_stops_while_nothing_is_free_and_goes_on_when_units_return,
                               begin_active),
        cmocka_unit_test_setup(it_stops_while_the_gate_is_paused_or_unarmed, begin_active),
        cmocka_unit_test_setup(it_never_passes_the_next_index_and_saves_nothing_up, begin_active),
        cmocka_unit_test_setup(places_nobody_told_of_are_reached_after_all_died_together,
                               begin_active),
        cmocka_unit_test_setup(a_late_tick_lets_in_half_a_second_at_most, begin_active),
        cmocka_unit_test_setup(stock_told_out_of_order_is_ignored, begin_active),
        cmocka_unit_test_setup(people_are_not_let_in_to_nothing, begin_active),
        cmocka_unit_test_setup(who_stands_before_the_gate_is_waited_for, begin_active),
        cmocka_unit_test_setup(taken_units_make_room_for_others, begin_active),
        cmocka_unit_test_setup(lapses_do_not_hide_who_took_a_unit, begin_active),
        cmocka_unit_test_setup(time_stands_still_before_a_gate_that_is_shut, begin_active),
        cmocka_unit_test_setup(a_standby_knows_who_stands_before_the_gate, begin_active),
        cmocka_unit_test_setup(units_taken_by_people_it_did_not_see_say_little, begin_active),
        cmocka_unit_test_setup(the_board_tells_how_fast_people_really_come_in, begin_active),
        cmocka_unit_test_setup(absent_people_slow_the_line_but_do_not_stop_it, begin_active),
        cmocka_unit_test_setup(boards_come_every_200_ms_and_versions_grow_with_content,
                               begin_active),
        cmocka_unit_test_setup(a_pause_is_told_at_once, begin_active),
        cmocka_unit_test_setup(the_last_free_unit_gone_is_told_at_once, begin_active),
        cmocka_unit_test_setup(indexes_without_a_ticket_are_not_counted_as_waiting, begin_active),
        cmocka_unit_test_setup(a_large_block_in_hand_is_not_waiting_behind_a_small_one,
                               begin_active),
        cmocka_unit_test_setup(a_lost_block_does_not_hide_people, begin_active),
        cmocka_unit_test_setup(a_takeover_leaves_room_for_leases_nobody_told_of, begin),
        cmocka_unit_test_setup(case_17_a_new_generation_starts_anew, begin_active),
        cmocka_unit_test_setup(case_17_numbers_are_never_given_twice, begin_active),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
