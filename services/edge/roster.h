/* SPDX-License-Identifier: Apache-2.0
 * The roster of a draw as this edge sees it: the early entrants it has still to enter at the queue,
 * and, once frozen, all of them, sorted: whoever lost an early ticket gets the place back by
 * signing in, and whoever checks the draw reads them here. */
#ifndef EDGE_ROSTER_H
#define EDGE_ROSTER_H

#include "lib/pure/clock.h"
#include "lib/pure/draw.h"
#include "lib/pure/limit.h"

#include <stdbool.h>
#include <stdint.h>

struct edge;
struct edge_sale;

struct edge_roster {
    uint64_t generation;
    uint64_t pushed,
        entered;    /* early entrants given a ticket, and of those the ones in the roster */
    uint32_t sent;  /* in the call under way */
    bool busy;      /* a call is under way */
    bool over_told; /* the queue knows that nobody more comes from here */
    struct tg_mono retry_at;
    uint8_t (*unsent)[TG_ENTRANT_BYTES]; /* heap, ring of TG_MAX_ROSTER_UNSENT; NULL: none so far */
    uint8_t (*all)[TG_ENTRANT_BYTES];    /* heap; NULL: not frozen, or not begun */
    uint64_t count, loaded;              /* of `all` */
};

/* Notes an early entrant. False: too many are on their way, or no memory; no ticket is given. */
bool edge_roster_enter(struct edge_sale *sale, const uint8_t entrant[TG_ENTRANT_BYTES]);
/* Every entrant of the frozen roster is here. */
static inline bool edge_roster_complete(const struct edge_roster *roster)
{
    return roster->all != NULL && roster->loaded == roster->count;
}
/* False also while it is not complete. */
bool edge_roster_has(const struct edge_roster *roster, const uint8_t entrant[TG_ENTRANT_BYTES]);
/* Nobody comes early any more, and all who did are in the roster or shut out of it. */
bool edge_roster_over(const struct edge_sale *sale);
/* Sends what is to be sent, loads what is to be loaded. */
void edge_roster_tick(struct edge *edge);
void edge_roster_free(struct edge_roster *roster);

#endif
