/* SPDX-License-Identifier: Apache-2.0
 * How often somebody may ask: the generic cell rate algorithm per key, in a table of fixed size.
 * When the table is crowded the longest idle of a set makes room: then somebody may ask a little
 * too often, but nobody honest is refused for another's sake. Pure: time and key are arguments. */
#ifndef TG_PURE_RATE_H
#define TG_PURE_RATE_H

#include "lib/pure/limit.h"

#include <stdint.h>

struct tg_rate_cell {
    uint64_t key;    /* a keyed hash of whoever asks, so that nobody can choose his neighbours */
    uint64_t due_us; /* when the next request is due at the sustained rate */
};

/* Zero-initialised, then interval and burst set. */
struct tg_rate {
    uint64_t interval_us; /* between requests at the sustained rate; 0: no limit */
    uint64_t burst;       /* requests at one moment, at least 1 */
    struct tg_rate_cell cells[TG_MAX_RATE_CELLS];
};

/* Counts one request. 0: within the rate. Otherwise it is over, is not counted, and the value is
 * how many microseconds to wait until one fits. */
uint64_t tg_rate_ask(struct tg_rate *rate, uint64_t key, uint64_t now_us);

#endif
