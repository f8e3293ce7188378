/* SPDX-License-Identifier: Apache-2.0
 * A timing wheel for millions of sleepers: one entry of 8 bytes each, no order within a tick.
 * Whoever is put in again is woken at the later call's time only: the caller keeps each one's due
 * tick and ignores entries that do not match. */
#ifndef REHEARSE_WHEEL_H
#define REHEARSE_WHEEL_H

#include "lib/pure/error.h"

#include <stddef.h>
#include <stdint.h>

enum { REHEARSE_TICK_MS = 10, REHEARSE_WHEEL_SLOTS = 4096 };

struct rehearse_sleeper {
    uint32_t buyer;
    uint32_t due; /* tick */
};

struct rehearse_slot {
    struct rehearse_sleeper *sleepers;
    uint32_t count, capacity;
};

struct rehearse_wheel {
    uint32_t now; /* tick */
    struct rehearse_slot slots[REHEARSE_WHEEL_SLOTS];
};

/* Wakes `buyer` after at least `ms`. Returns the due tick, never 0; aborts when memory is gone. */
uint32_t rehearse_wheel_add(struct rehearse_wheel *wheel, uint32_t buyer, uint32_t ms);

/* Moves on by one tick and calls for everybody due then. `wake` may add sleepers. */
void rehearse_wheel_turn(struct rehearse_wheel *wheel,
                         void (*wake)(void *context, uint32_t buyer, uint32_t due), void *context);

void rehearse_wheel_clear(struct rehearse_wheel *wheel);

#endif
