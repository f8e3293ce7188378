/* SPDX-License-Identifier: Apache-2.0
 * Rank, position and estimate: the same rule in C, in web/waiting and in docs/. Source:
 * docs/http.openapi.yaml, board. */
#ifndef TG_PURE_RANK_H
#define TG_PURE_RANK_H

#include "lib/pure/identity.h"

#include <stdbool.h>
#include <stdint.h>

struct tg_board_view { /* the numbers of a board that ranks depend on */
    bool random;       /* policy random or lottery */
    bool lottery;      /* only who registered before the opening has a rank */
    bool revealed;     /* seed is known */
    uint64_t watermark;
    uint64_t present_at_open;
    uint64_t index_at_open;
    uint64_t pace_milli; /* people per 1000 s */
    uint8_t seed[32];
};

/* score = first 64 bits, big-endian, of SHA-256(seed || length as 8 bytes little-endian ||
 * entrant). */
uint64_t tg_score(const uint8_t seed[32], const char entrant[TG_ENTRANT_LENGTH + 1]);

/* fifo: index. random: early -> floor(score x present / 2^64), later -> present + index -
 * index_at_open. False when there is no rank: seed not revealed, or a late one under lottery. */
bool tg_rank(const struct tg_board_view *board, uint64_t index, bool early, const char *entrant,
             uint64_t *out_rank);

/* max(0, rank - watermark). */
uint64_t tg_position(const struct tg_board_view *board, uint64_t rank);

/* position / pace x 1.25, rounded up, seconds; UINT64_MAX when the pace is 0: nobody moves, the
 * first in line neither. */
uint64_t tg_estimate_seconds(const struct tg_board_view *board, uint64_t position);

/* Advice for the next poll: 1..2 when little is left or the turn is near, up to 30 far away. */
uint32_t tg_poll_seconds(uint64_t position, uint64_t pace_milli, uint64_t remaining);

#endif
