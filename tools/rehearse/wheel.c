/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/wheel.h"

#include <stdlib.h>

static struct rehearse_bed *make_bed(struct rehearse_wheel *wheel, struct rehearse_bed *next)
{
    struct rehearse_bed *bed = wheel->empty;
    if (bed != NULL) {
        wheel->empty = bed->next;
    } else {
        bed = malloc(sizeof(*bed));
    }
    if (bed == NULL) {
        abort();
    }
    bed->next = next;
    bed->count = 0;
    return bed;
}

static void put(struct rehearse_wheel *wheel, struct rehearse_sleeper sleeper)
{
    struct rehearse_bed **slot = &wheel->slots[sleeper.due % REHEARSE_WHEEL_SLOTS];
    if (*slot == NULL || (*slot)->count == REHEARSE_BED_SLEEPERS) {
        *slot = make_bed(wheel, *slot);
    }
    (*slot)->sleepers[(*slot)->count++] = sleeper;
}

uint32_t rehearse_wheel_add(struct rehearse_wheel *wheel, uint32_t buyer, uint32_t ms)
{
    uint32_t due = wheel->now + ms / REHEARSE_TICK_MS + 1;
    put(wheel, (struct rehearse_sleeper){.buyer = buyer, .due = due});
    return due;
}

/* The slot is taken out before anybody is called, so that those put in meanwhile wait their whole
 * round. */
void rehearse_wheel_turn(struct rehearse_wheel *wheel,
                         void (*wake)(void *context, const struct rehearse_sleeper *due,
                                      uint32_t count),
                         void *context)
{
    wheel->now++;
    struct rehearse_bed **slot = &wheel->slots[wheel->now % REHEARSE_WHEEL_SLOTS];
    struct rehearse_bed *bed = *slot;
    *slot = NULL;
    while (bed != NULL) {
        uint32_t due = 0;
        for (uint32_t i = 0; i < bed->count; i++) {
            if (bed->sleepers[i].due == wheel->now) {
                bed->sleepers[due++] = bed->sleepers[i];
            } else {
                put(wheel, bed->sleepers[i]); /* due in a later round */
            }
        }
        if (due > 0) {
            wake(context, bed->sleepers, due);
        }
        struct rehearse_bed *next = bed->next;
        bed->next = wheel->empty;
        wheel->empty = bed;
        bed = next;
    }
}

static void free_beds(struct rehearse_bed *bed)
{
    while (bed != NULL) {
        struct rehearse_bed *next = bed->next;
        free(bed);
        bed = next;
    }
}

void rehearse_wheel_clear(struct rehearse_wheel *wheel)
{
    for (size_t i = 0; i < REHEARSE_WHEEL_SLOTS; i++) {
        free_beds(wheel->slots[i]);
        wheel->slots[i] = NULL;
    }
    free_beds(wheel->empty);
    wheel->empty = NULL;
}
