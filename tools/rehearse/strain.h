/* SPDX-License-Identifier: Apache-2.0
 * Whether the load generator itself kept up: a run that it bounded says nothing about the engine.
 * Pure. */
#ifndef REHEARSE_STRAIN_H
#define REHEARSE_STRAIN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    REHEARSE_LATE_MS = 500,      /* near its turn a page looks every 1 to 2 s: half of it is late */
    REHEARSE_WAITED_MS = 2000,   /* longer than a page waits between two such looks */
    REHEARSE_STRAINED_MS = 10000 /* of either in all: the run is void */
};

struct rehearse_strain {
    uint32_t longest_ms; /* turn of the loop */
    uint32_t late_ms;    /* in turns longer than REHEARSE_LATE_MS, in all */
    uint32_t queued_ms;  /* while a request had waited longer than REHEARSE_WAITED_MS, in all */
};

/* A turn of the loop took `turn_ms`; at its end the oldest request of the queue had waited
 * `waited_ms` for a connection. */
void rehearse_strain_add(struct rehearse_strain *strain, uint32_t turn_ms, uint32_t waited_ms);

/* `faults`: an edge that is broken on purpose holds its connections, so the queue says nothing. */
bool rehearse_strained(const struct rehearse_strain *strain, bool faults);

#endif
