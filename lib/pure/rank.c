/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/rank.h"

#include <sodium.h>

uint64_t tg_score(const uint8_t seed[32], const char entrant[TG_ENTRANT_LENGTH + 1])
{
    static const uint8_t entrant_length[8] = {TG_ENTRANT_LENGTH};
    crypto_hash_sha256_state state;
    uint8_t digest[crypto_hash_sha256_BYTES];
    (void)crypto_hash_sha256_init(&state);
    (void)crypto_hash_sha256_update(&state, seed, 32);
    (void)crypto_hash_sha256_update(&state, entrant_length, sizeof(entrant_length));
    (void)crypto_hash_sha256_update(&state, (const uint8_t *)entrant, TG_ENTRANT_LENGTH);
    (void)crypto_hash_sha256_final(&state, digest);
    uint64_t score = 0;
    for (int i = 0; i < 8; i++) {
        score = score << 8 | digest[i];
    }
    return score;
}

bool tg_rank(const struct tg_board_view *board, uint64_t index, bool early, const char *entrant,
             uint64_t *out_rank)
{
    if (!board->random) {
        *out_rank = index;
        return true;
    }
    if (!board->revealed) {
        return false;
    }
    if (early) {
        unsigned __int128 product =
            (unsigned __int128)tg_score(board->seed, entrant) * board->present_at_open;
        *out_rank = (uint64_t)(product >> 64);
        return true;
    }
    if (board->lottery) {
        return false;
    }
    /* Indexes leased before the opening die at it; one that was given all the same joins the end of
     * the early ones. */
    uint64_t after = index > board->index_at_open ? index - board->index_at_open : 0;
    if (__builtin_add_overflow(board->present_at_open, after, out_rank)) {
        *out_rank = UINT64_MAX;
    }
    return true;
}

uint64_t tg_position(const struct tg_board_view *board, uint64_t rank)
{
    return rank > board->watermark ? rank - board->watermark : 0;
}

/* ceil(position x 1.25 x 1000 / pace_milli), saturating. */
static uint64_t seconds_to_pass(uint64_t position, uint64_t pace_milli)
{
    enum { FACTOR = 1250 };
    if (position == 0) {
        return 0;
    }
    if (pace_milli == 0) {
        return UINT64_MAX;
    }
    /* Faster than any crowd; what is below it cannot overflow the rest. */
    uint64_t pace = pace_milli < UINT64_MAX / (FACTOR + 1) ? pace_milli : UINT64_MAX / (FACTOR + 1);
    uint64_t seconds = 0;
    if (__builtin_mul_overflow(position / pace, (uint64_t)FACTOR, &seconds) ||
        __builtin_add_overflow(seconds, (position % pace * FACTOR + pace - 1) / pace, &seconds) ||
        seconds == UINT64_MAX) {
        return UINT64_MAX - 1; /* long, but not never */
    }
    return seconds;
}

uint64_t tg_estimate_seconds(const struct tg_board_view *board, uint64_t position)
{
    return board->pace_milli > 0 ? seconds_to_pass(position, board->pace_milli) : UINT64_MAX;
}

/* Near (4 s): every second. Within 20 s, or when what remains would be gone within 10 s: every 2 s.
 * Farther: a tenth of the way, at most 30 s. Nobody moves (pace 0): the turn is not near, but the
 * next change is worth hearing soon: 5 s. */
uint32_t tg_poll_seconds(uint64_t position, uint64_t pace_milli, uint64_t remaining)
{
    enum { NEAR_S = 4, SOON_S = 20, LITTLE_S = 10, FROZEN_POLL_S = 5, POLL_S_MAX = 30 };
    uint64_t seconds = seconds_to_pass(position, pace_milli);
    if (seconds <= NEAR_S) {
        return 1;
    }
    if (seconds <= SOON_S || seconds_to_pass(remaining, pace_milli) <= LITTLE_S) {
        return 2;
    }
    if (seconds == UINT64_MAX) {
        return FROZEN_POLL_S;
    }
    return seconds / 10 < POLL_S_MAX ? (uint32_t)(seconds / 10) : POLL_S_MAX;
}
