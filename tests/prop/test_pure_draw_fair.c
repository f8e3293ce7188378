/* SPDX-License-Identifier: Apache-2.0
 * The draw is fair. Over a million draws, each with a secret of its own, one entrant's rank is as
 * likely to be any as any other (chi-square, p > 0.001 on both sides of the scale). Over a million
 * entrants of one draw, rank has nothing to do with arrival (|correlation| < 0.005). */
#include "tests/prop/choice.h"

#include "lib/pure/draw.h"
#include "lib/pure/rank.h"

#include <math.h>

enum { MILLION = 1000000, BINS = 1000 };

/* Wilson and Hilferty: the cube root of chi-square over its degrees of freedom is nearly normal. */
static double deviations_of(double chi_square, double freedom)
{
    const double part = 2 / (9 * freedom);
    return (cbrt(chi_square / freedom) - (1 - part)) / sqrt(part);
}

static void ranks_over_draws(const struct tg_draw *base, const char *entrant)
{
    static uint32_t counts[BINS];
    struct tg_draw draw = *base;
    memset(counts, 0, sizeof(counts));
    for (uint32_t i = 0; i < MILLION; i++) {
        struct tg_board_view board = {.random = true, .revealed = true, .present_at_open = BINS};
        uint64_t rank = BINS;
        memcpy(draw.secret, &i, sizeof(i));
        tg_draw_mix(&draw);
        memcpy(board.seed, draw.seed, sizeof(board.seed));
        HOLDS(tg_rank(&board, 0, true, entrant, &rank) && rank < BINS);
        counts[rank]++;
    }
    const double expected = (double)MILLION / BINS;
    double chi_square = 0;
    for (uint32_t bin = 0; bin < BINS; bin++) {
        chi_square += (counts[bin] - expected) * (counts[bin] - expected) / expected;
    }
    /* 3.09 deviations: one in a thousand */
    HOLDS(fabs(deviations_of(chi_square, BINS - 1)) < 3.09);
}

static void ranks_over_entrants(const struct tg_draw *draw, const uint8_t key[TG_KEY_BYTES])
{
    struct tg_board_view board = {.random = true, .revealed = true, .present_at_open = MILLION};
    double sum = 0, squares = 0, products = 0;
    memcpy(board.seed, draw->seed, sizeof(board.seed));
    for (uint32_t i = 0; i < MILLION; i++) {
        struct tg_holder holder = {.kind = TG_HOLDER_USER, .length = 4};
        char entrant[TG_ENTRANT_LENGTH + 1];
        uint64_t rank = 0;
        memcpy(holder.bytes, &i, 4);
        tg_entrant(key, "demo", 1, &holder, entrant);
        HOLDS(tg_rank(&board, i, true, entrant, &rank) && rank < MILLION);
        sum += (double)rank;
        squares += (double)rank * (double)rank;
        products += (double)rank * i;
    }
    const double n = MILLION, arrivals = n * (n - 1) / 2,
                 arrival_squares = arrivals * (2 * n - 1) / 3;
    const double correlation =
        (n * products - sum * arrivals) /
        (sqrt(n * squares - sum * sum) * sqrt(n * arrival_squares - arrivals * arrivals));
    HOLDS(fabs(correlation) < 0.005);
}

static void property(struct choice *choice)
{
    struct tg_draw draw = {.count = MILLION};
    uint8_t key[TG_KEY_BYTES];
    struct tg_holder holder = {.kind = TG_HOLDER_USER, .length = 3, .bytes = "eve"};
    char entrant[TG_ENTRANT_LENGTH + 1];
    choice_bytes(choice, draw.secret, sizeof(draw.secret));
    choice_bytes(choice, draw.root, sizeof(draw.root));
    choice_bytes(choice, key, sizeof(key));
    tg_entrant(key, "demo", 1, &holder, entrant);
    ranks_over_draws(&draw, entrant);
    tg_draw_mix(&draw);
    ranks_over_entrants(&draw, key);
}

PROPERTY_MAIN(property, 1, 96)
