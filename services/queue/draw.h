/* SPDX-License-Identifier: Apache-2.0
 * The shell of a draw: the roster of each drawn sale while this process is the active queue, its
 * way into the ledger, the closing of it in slices, and its parts for whoever checks the draw.
 * Decides nothing; forgets everything when the term ends, because the ledger has it. */
#ifndef QUEUE_DRAW_H
#define QUEUE_DRAW_H

#include "lib/io/brain.h"
#include "services/queue/core.h"

#include <uv.h>

struct queue_keeper; /* of one sale; heap */

struct queue_draws {
    struct tg_brains *brains;
    struct queue_brain *by_sale;
    const char *keys_folder;
    uint32_t serial;  /* of the newest keeper: replies to older ones are not taken */
    uv_idle_t slices; /* runs while a roster is being closed */
    struct queue_keeper *keepers[TG_MAX_SALES];
};

/* `draws` is zeroed and stays where it is. */
void queue_draws_begin(struct queue_draws *draws, struct tg_brains *brains,
                       struct queue_brain *by_sale, const char *keys_folder);
/* From the first time this process is active. */
TG_MUST_CHECK int queue_draws_serve(struct queue_draws *draws);
/* Every tick of a sale, after its core's. */
void queue_draws_tick(struct queue_draws *draws, size_t index, const struct tg_sale *sale);
/* Answers whoever waits and forgets all rosters. */
void queue_draws_end(struct queue_draws *draws);

#endif
