/* SPDX-License-Identifier: Apache-2.0
 * What every virtual buyer was told, and when: 48 bytes an answer, kept in memory for the referee.
 */
#ifndef REHEARSE_SEEN_H
#define REHEARSE_SEEN_H

#include "lib/pure/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum rehearse_told {
    REHEARSE_TOLD_HELD,      /* 201: a reservation, new or replayed */
    REHEARSE_TOLD_CONFIRMED, /* 200 with an order */
    REHEARSE_TOLD_SOLD_OUT,  /* units may return */
    REHEARSE_TOLD_FINAL,     /* sold out for good */
    REHEARSE_TOLD_WAIT,      /* waiting, admitted, or a board of an open sale: not sold out */
    REHEARSE_TOLD_OTHER
};

struct rehearse_seen {
    uint32_t buyer;                /* UINT32_MAX: a shared cache */
    uint32_t sent_ms, answered_ms; /* since the run began */
    uint8_t ask;                   /* enum rehearse_ask */
    uint8_t told;                  /* enum rehearse_told */
    uint8_t attempt;               /* of the buyer: one Idempotency-Key each */
    bool replayed;
    uint32_t item, unit;     /* HELD */
    uint32_t age_ms;         /* of the state the answer rests on, where it says so */
    uint8_t reservation[16]; /* HELD, CONFIRMED */
};

struct rehearse_log {
    struct rehearse_seen *rows;
    size_t count, capacity;
};

/* Aborts when memory is gone: a referee who forgets is none. */
void rehearse_log_add(struct rehearse_log *log, const struct rehearse_seen *row);
void rehearse_log_clear(struct rehearse_log *log);

#endif
