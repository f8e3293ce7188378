/* SPDX-License-Identifier: Apache-2.0
 * What the active queue keeps of one draw: the roster, the entrants on their way into the ledger,
 * the edges that wait for them. Memory only: no bus, no clock. */
#ifndef QUEUE_KEEPER_H
#define QUEUE_KEEPER_H

#include "lib/io/bus.h"
#include "lib/pure/draw.h"
#include "lib/pure/limit.h"
#include "services/queue/core.h"

struct queue_keeper {
    uint64_t generation, term;
    uint32_t serial;
    struct queue_roster state;
    struct tg_roster roster;
    struct tg_roster_close closing;
    uint8_t root[TG_DRAW_BYTES];
    uint64_t stored; /* entrants in the ledger's log, as far as it was read or written here */
    bool busy;       /* a call to the ledger is under way */
    enum queue_draw_step asked; /* what it asks for */
    uint32_t sent;              /* entrants in it */
    struct tg_mono retry_at;
    bool complained; /* the secret is missing or is not the promised one: said once */
    uint8_t secret[TG_DRAW_BYTES];
    uint64_t pushed, flushed; /* entrants that came in, and of those the stored */
    struct {
        struct tg_bus_incoming *incoming;
        uint64_t until; /* answered when as many are flushed */
    } waiting[TG_MAX_EDGES];
    uint32_t waiting_count;
    uint8_t unstored[TG_MAX_ROSTER_UNSTORED][TG_ENTRANT_BYTES]; /* ring, from flushed to pushed */
};

/* NULL when there is no memory. */
struct queue_keeper *queue_keeper_new(uint64_t generation, uint64_t term, uint32_t serial);
struct queue_keeper *queue_keeper_free(struct queue_keeper *keeper);
/* Entrants of an edge: the new ones are to be stored. 0, or TG_ERR_FULL, TG_ERR_MALFORMED. */
TG_MUST_CHECK int queue_keeper_enter(struct queue_keeper *keeper, const uint8_t *entrants,
                                     uint32_t count);
/* Entrants the ledger has. 0 or an error: they cannot be kept. */
TG_MUST_CHECK int queue_keeper_loaded(struct queue_keeper *keeper, const uint8_t *entrants,
                                      uint32_t count);
/* The next page to store, without gap; marks it as sent. */
uint32_t queue_keeper_page(struct queue_keeper *keeper,
                           uint8_t out_entrants[TG_MAX_ROSTER_PAGE][TG_ENTRANT_BYTES]);
/* The sent page is stored. */
void queue_keeper_flushed(struct queue_keeper *keeper);
/* One more slice of closing; true when the roster is closed. */
bool queue_keeper_close(struct queue_keeper *keeper);

#endif
