/* SPDX-License-Identifier: Apache-2.0
 * The draw is fair: over many entrants every rank is as likely as any other (chi-square), whatever
 * the seed; more people with better luck never rank behind; and ranks stay below the number
 * present. */
#include "tests/prop/choice.h"

#include "lib/pure/rank.h"

enum { ENTRANTS = 20000, BINS = 100 };

static void property(struct choice *choice)
{
    struct tg_board_view board = {.random = true, .revealed = true, .present_at_open = BINS};
    uint8_t key[TG_KEY_BYTES];
    uint32_t counts[BINS] = {0};
    choice_bytes(choice, board.seed, sizeof(board.seed));
    choice_bytes(choice, key, sizeof(key));
    for (uint32_t i = 0; i < ENTRANTS; i++) {
        struct tg_holder holder = {.kind = TG_HOLDER_USER, .length = 4};
        char entrant[TG_ENTRANT_LENGTH + 1];
        uint64_t rank = 0;
        memcpy(holder.bytes, &i, 4);
        tg_entrant(key, "demo", 1, &holder, entrant);
        HOLDS(tg_rank(&board, i, true, entrant, &rank) && rank < BINS);
        counts[rank]++;
    }
    /* 99 degrees of freedom: mean 99, standard deviation 14.07. Beyond 5.5 deviations either way is
     * not chance. */
    const double expected = (double)ENTRANTS / BINS;
    double chi_square = 0;
    for (uint32_t bin = 0; bin < BINS; bin++) {
        chi_square += (counts[bin] - expected) * (counts[bin] - expected) / expected;
    }
    HOLDS(chi_square > 99 - 5.5 * 14.07 && chi_square < 99 + 5.5 * 14.07);
}

PROPERTY_MAIN(property, 20, 64)
