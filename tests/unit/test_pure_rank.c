/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/rank.h"

#include <string.h>

static const char entrant[] = "4SGCQK0777DMJ5G6QHT2D2F6SQ";

static struct tg_board_view random_board(void)
{
    struct tg_board_view board = {
        .random = true, .revealed = true, .present_at_open = 1000, .index_at_open = 1200};
    memset(board.seed, 7, sizeof(board.seed));
    return board;
}

/* Computed with another implementation (SHA-256 of Python's hashlib). */
static void a_known_score(void **state)
{
    struct tg_board_view board = random_board();
    uint64_t rank = 0;
    assert_true(tg_score(board.seed, entrant) == UINT64_C(4203076272388665896));
    assert_true(tg_rank(&board, 5, true, entrant, &rank));
    assert_true(rank == 227); /* 4203076272388665896 x 1000 / 2^64 */
}

static void fifo_ranks_by_index(void **state)
{
    struct tg_board_view board = {.random = false, .watermark = 10};
    uint64_t rank = 0;
    assert_true(tg_rank(&board, 42, false, entrant, &rank));
    assert_true(rank == 42);
    assert_true(tg_position(&board, 42) == 32);
    assert_true(tg_position(&board, 10) == 0);
    assert_true(tg_position(&board, 3) == 0);
}

static void nobody_has_a_rank_before_the_seed_is_known(void **state)
{
    struct tg_board_view board = random_board();
    uint64_t rank = 99;
    board.revealed = false;
    assert_false(tg_rank(&board, 5, true, entrant, &rank));
    assert_false(tg_rank(&board, 5, false, entrant, &rank));
    assert_true(rank == 99);
}

static void the_early_come_first_and_the_late_in_order(void **state)
{
    struct tg_board_view board = random_board();
    uint64_t rank = 0;
    assert_true(tg_rank(&board, 1200, false, entrant, &rank));
    assert_true(rank == 1000);
    assert_true(tg_rank(&board, 1207, false, entrant, &rank));
    assert_true(rank == 1007);
    assert_true(
        tg_rank(&board, 3, false, entrant, &rank)); /* a late one with an index leased early */
    assert_true(rank == 1000);
    assert_true(tg_rank(&board, UINT64_MAX, false, entrant, &rank));
    assert_true(rank == UINT64_MAX - 1200 + 1000);
    board.index_at_open = 0;
    assert_true(tg_rank(&board, UINT64_MAX, false, entrant, &rank));
    assert_true(rank == UINT64_MAX);
}

static uint64_t estimate(uint64_t position, uint64_t pace_milli)
{
    struct tg_board_view board = {.pace_milli = pace_milli};
    return tg_estimate_seconds(&board, position);
}

static void estimates_are_rounded_up(void **state)
{
    assert_true(estimate(0, 0) == UINT64_MAX); /* first in line, and paused */
    assert_true(estimate(0, 1) == 0);
    assert_true(estimate(1, 0) == UINT64_MAX);
    assert_true(estimate(1000, 1000000) == 2); /* 1.25 s at 1000 people per second */
    assert_true(estimate(800, 1000000) == 1);
    assert_true(estimate(801, 1000000) == 2);
    assert_true(estimate(1, 1000000) == 1);
    assert_true(estimate(UINT64_MAX, 1) == UINT64_MAX - 1); /* long, but not never */
    assert_true(estimate(UINT64_MAX, UINT64_C(1) << 50) == UINT64_C(16384) * 1250);
    assert_true(estimate(1, UINT64_MAX) == 1);
    for (uint64_t pace = 1; pace < 3000000; pace = pace * 3 + 7) {
        for (uint64_t position = 1; position < 3000000; position = position * 2 + 11) {
            uint64_t seconds = estimate(position, pace);
            assert_true(seconds * pace >= position * 1250 &&
                        (seconds - 1) * pace < position * 1250);
        }
    }
}

static void nobody_polls_faster_than_once_a_second_or_slower_than_every_30(void **state)
{
    assert_int_equal(tg_poll_seconds(0, 1000000, 5000), 1);
    assert_int_equal(tg_poll_seconds(1000, 1000000, 500000), 1);
    assert_int_equal(tg_poll_seconds(10000, 1000000, 500000), 2);
    assert_int_equal(tg_poll_seconds(100000, 1000000, 500000), 12);
    assert_int_equal(tg_poll_seconds(2000000, 1000000, 500000), 30);
    assert_int_equal(tg_poll_seconds(2000000, 1000000, 100), 2);
    assert_int_equal(tg_poll_seconds(2000000, 1000000, 0), 2);
    assert_int_equal(tg_poll_seconds(2000000, 0, 500000), 5);
    assert_int_equal(tg_poll_seconds(UINT64_MAX, 1, UINT64_MAX), 30);
}

static void polling_slows_with_distance(void **state)
{
    uint32_t before = 0;
    for (uint64_t position = 0; position < 2000000; position += 997) {
        uint32_t seconds = tg_poll_seconds(position, 1000000, 1000000);
        assert_true(seconds >= before && seconds >= 1 && seconds <= 30);
        before = seconds;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_score),
        cmocka_unit_test(fifo_ranks_by_index),
        cmocka_unit_test(nobody_has_a_rank_before_the_seed_is_known),
        cmocka_unit_test(the_early_come_first_and_the_late_in_order),
        cmocka_unit_test(estimates_are_rounded_up),
        cmocka_unit_test(nobody_polls_faster_than_once_a_second_or_slower_than_every_30),
        cmocka_unit_test(polling_slows_with_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
