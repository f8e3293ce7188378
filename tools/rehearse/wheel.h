/* SPDX-License-Identifier: Apache-2.0
 * A timing wheel for millions of sleepers: one entry of 8 bytes each, no order within a tick.
 * Whoever is put in again is woken at the later call's time only: the caller keeps each one's due
 * tick and ignores entries that do not match. */
#ifndef REHEARSE_WHEEL_H
#define REHEARSE_WHEEL_H

#include "lib/pure/error.h"

#include <stddef.h>
#include <stdint.h>

enum { REHEARSE_TICK_MS = 10, REHEARSE_WHEEL_SLOTS = 4096, REHEARSE_BED_SLEEPERS = 62 };

struct rehearse_sleeper {
    uint32_t buyer;
    uint32_t due; /* tick */
};

/* Half a KiB of sleepers of one slot: what empties is used again. */
struct rehearse_bed {
    struct rehearse_bed *next;
    uint32_t count;
    struct rehearse_sleeper sleepers[REHEARSE_BED_SLEEPERS];
};

struct rehearse_wheel {
    uint32_t now; /* tick */
    struct rehearse_bed *slots[REHEARSE_WHEEL_SLOTS];
    struct rehearse_bed *empty;
};

/* Wakes `buyer` after at least `ms`. Returns the due tick, never 0; aborts when memory is gone. */
uint32_t rehearse_wheel_add(struct rehearse_wheel *wheel, uint32_t buyer, uint32_t ms);

/* Moves on by one tick and calls for everybody due then, by the bed: 1..REHEARSE_BED_SLEEPERS.
 * `wake` may add sleepers. */
void rehearse_wheel_turn(struct rehearse_wheel *wheel,
                         void (*wake)(void *context, const struct rehearse_sleeper *due,
                                      uint32_t count),
                         void *context);

void rehearse_wheel_clear(struct rehearse_wheel *wheel);

#endif
