/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/rate.h"

enum { WAYS = 4 };

_Static_assert((TG_MAX_RATE_CELLS & (TG_MAX_RATE_CELLS - 1)) == 0, "a power of two");

/* The cell of the key, or the longest idle one of its set, taken over. */
static struct tg_rate_cell *cell_of(struct tg_rate *rate, uint64_t key)
{
    struct tg_rate_cell *set = &rate->cells[key % (TG_MAX_RATE_CELLS / WAYS) * WAYS];
    struct tg_rate_cell *idle = set;
    for (int i = 0; i < WAYS; i++) {
        if (set[i].key == key) {
            return &set[i];
        }
        if (set[i].due_us < idle->due_us) {
            idle = &set[i];
        }
    }
    *idle = (struct tg_rate_cell){.key = key};
    return idle;
}

uint64_t tg_rate_ask(struct tg_rate *rate, uint64_t key, uint64_t now_us)
{
    if (rate->interval_us == 0) {
        return 0;
    }
    struct tg_rate_cell *cell = cell_of(rate, key);
    const uint64_t due_us = cell->due_us > now_us ? cell->due_us : now_us;
    const uint64_t ahead_us = due_us - now_us;
    const uint64_t allowed_us = (rate->burst - 1) * rate->interval_us;
    if (ahead_us > allowed_us) {
        return ahead_us - allowed_us;
    }
    cell->due_us = due_us + rate->interval_us;
    return 0;
}
