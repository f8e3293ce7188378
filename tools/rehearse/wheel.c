/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/wheel.h"

#include <stdlib.h>

static void put(struct rehearse_slot *slot, struct rehearse_sleeper sleeper)
{
    if (slot->count == slot->capacity) {
        uint32_t capacity = slot->capacity > 0 ? 2 * slot->capacity : 8;
        struct rehearse_sleeper *sleepers = realloc(slot->sleepers, capacity * sizeof(*sleepers));
        if (sleepers == NULL) {
            abort();
        }
        slot->sleepers = sleepers;
        slot->capacity = capacity;
    }
    slot->sleepers[slot->count++] = sleeper;
}

uint32_t rehearse_wheel_add(struct rehearse_wheel *wheel, uint32_t buyer, uint32_t ms)
{
    uint32_t ticks = ms / REHEARSE_TICK_MS + 1;
    uint32_t due = wheel->now + ticks;
    put(&wheel->slots[due % REHEARSE_WHEEL_SLOTS],
        (struct rehearse_sleeper){.buyer = buyer, .due = due});
    return due;
}

/* The slot is taken out before anybody is called, so that those put in meanwhile wait their whole
 * round. */
void rehearse_wheel_turn(struct rehearse_wheel *wheel,
                         void (*wake)(void *context, uint32_t buyer, uint32_t due), void *context)
{
    wheel->now++;
    struct rehearse_slot *slot = &wheel->slots[wheel->now % REHEARSE_WHEEL_SLOTS];
    struct rehearse_slot taken = *slot;
    *slot = (struct rehearse_slot){0};
    for (uint32_t i = 0; i < taken.count; i++) {
        if (taken.sleepers[i].due == wheel->now) {
            wake(context, taken.sleepers[i].buyer, taken.sleepers[i].due);
        } else {
            put(slot, taken.sleepers[i]); /* due in a later round */
        }
    }
    free(taken.sleepers);
}

void rehearse_wheel_clear(struct rehearse_wheel *wheel)
{
    for (size_t i = 0; i < REHEARSE_WHEEL_SLOTS; i++) {
        free(wheel->slots[i].sleepers);
        wheel->slots[i] = (struct rehearse_slot){0};
    }
}
