/* SPDX-License-Identifier: Apache-2.0
 * What the edge decides from memory: the state of a sale as people see it, who is refused before
 * any other daemon hears of him, whose turn it is, and how many indexes to keep in hand. Pure: no
 * clock, no randomness, no heap, no I/O. */
#ifndef EDGE_CORE_H
#define EDGE_CORE_H

#include "lib/pure/clock.h"
#include "lib/pure/rank.h"
#include "lib/pure/reason.h"
#include "lib/pure/sale.h"
#include "lib/pure/ticket.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    EDGE_STOCK_STALE_MS = 3000, /* older counters are unknown: nobody is told sold out by them */
    EDGE_LEASE_FIRST = 64,      /* indexes asked for when nothing is known of the arrival rate */
    EDGE_LEASE_RETRY_MS = 250,
    EDGE_ASKED_ROWS = 4096, /* people who asked for a pass and are remembered */
    EDGE_ASKED_MS = 60000   /* as long as asking again gives the same pass */
};

struct edge_now {
    struct tg_mono mono;
    struct tg_wall wall;
};

/* The gate's counters, summed over items, as last heard. */
struct edge_stock {
    bool known; /* of an armed gate */
    struct tg_mono heard;
    uint64_t epoch;
    uint64_t free, held, settled;
};

/* The queue's board as last heard. */
struct edge_board {
    bool known;
    struct tg_mono heard;
    uint64_t term, version, generation;
    char instance[33];
    struct tg_board_view view;
    uint64_t waiting, remaining, held;
    uint64_t index_end; /* next index the queue will lease */
    uint32_t poll_seconds;
};

struct edge_view {
    const struct tg_sale *sale;
    const struct edge_stock *stock;
    const struct edge_board *board;
};

/* What people are told. */
enum edge_state { EDGE_SCHEDULED, EDGE_OPEN, EDGE_PAUSED, EDGE_SOLD_OUT, EDGE_CLOSED };

/* "scheduled", "open", "paused", "sold_out", "closed". */
const char *edge_state_name(enum edge_state state);

/* SOLD_OUT only when it is final: nothing free and nothing held. Closed and sold out come before
 * paused: they stay true. */
enum edge_state edge_state(const struct edge_view *view, struct edge_now now);

/* Why the sale is paused, as far as people need to know: by the organisers, by its own checker, or
 * because nothing is heard of it. */
enum tg_reason edge_pause_notice(const struct edge_view *view, struct edge_now now);

/* Free and held units, from the gate if fresh, else from the board. False when nothing is known. */
bool edge_units(const struct edge_view *view, struct edge_now now, uint64_t *out_free,
                uint64_t *out_held);

/* Exact up to 10, then rounded down to 1, 2, 5 x 10^n. */
uint64_t edge_bucket(uint64_t units);

/* Why somebody without a (valid) pass cannot reserve; never NONE. */
struct edge_refusal {
    enum tg_reason reason;
    bool final;             /* with SOLD_OUT */
    int64_t retry_after_ms; /* 0: none */
};
/* AHEAD: of a generation this edge has not heard of yet. */
enum edge_pass { EDGE_PASS_NONE, EDGE_PASS_INVALID, EDGE_PASS_OLD, EDGE_PASS_AHEAD };
struct edge_refusal edge_refuse(const struct edge_view *view, struct edge_now now, bool signed_in,
                                enum edge_pass pass);

/* Milliseconds until the opening by the edge's clock, at least 1000, at most an hour. */
int64_t edge_opens_in_ms(const struct tg_sale *sale, struct edge_now now);

/* What a new ticket is. UNSURE: no state of the ledger for TG_MAX_STATE_STALE_MS, so the sale may
 * have opened: in a draw nobody is early by mistake. */
enum edge_arrival { EDGE_ARRIVAL_EARLY, EDGE_ARRIVAL_LATE, EDGE_ARRIVAL_UNSURE };
enum edge_arrival edge_arrival(const struct tg_sale *sale, struct edge_now now);

/* Where somebody stands. */
struct edge_standing {
    bool known; /* a board was heard and the rank is decided */
    bool below; /* the watermark: may ask for a pass */
    uint64_t rank, position;
    uint64_t estimate_seconds; /* UINT64_MAX: nobody moves */
    uint32_t poll_seconds;
};
void edge_stand(const struct edge_view *view, struct edge_now now, uint64_t index, bool early,
                const char *entrant, struct edge_standing *out_standing);

/* What status does with a ticket of this sale and generation: tell the state, let wait, or ask
 * admission for a pass. */
enum edge_turn { EDGE_TELL, EDGE_WAIT, EDGE_ASK };
enum edge_turn edge_turn(enum edge_state state, const struct edge_standing *standing);

/* Poll advice spread by +-30 %, at least 1 s. `dice`: 32 random bits. */
uint32_t edge_spread(uint32_t poll_seconds, uint32_t dice);

/* A board counts when its term is not lower than the known one's; of two with one term the smaller
 * instance. An older board of the same voice does not: watermarks never fall. */
bool edge_board_counts(const struct edge_board *known, const struct edge_board *heard);

/* Who asked for a pass, for the queue, which waits for those who stand before the gate. However
 * often somebody asks, answered or not, he is one person. A row per index; of two people on one row
 * the later one is remembered. */
struct edge_asked {
    uint64_t people; /* since this was told last */
    struct {
        uint64_t generation, index;
        struct tg_mono counted;
    } rows[EDGE_ASKED_ROWS];
};
/* Counts whoever has this index, once in EDGE_ASKED_MS. */
void edge_asked_count(struct edge_asked *asked, uint64_t generation, uint64_t index,
                      struct edge_now now);

/* Index blocks leased ahead, so that a ticket never waits for the queue. */
struct edge_block {
    uint64_t next, end;
};
struct edge_lease {
    uint64_t generation;
    struct edge_block current, spare;
    bool asked;
    bool rated; /* a block was granted since asked_at: how long it lasted is known */
    struct tg_mono asked_at, retry_at;
    bool over;          /* only blocks granted after the opening count */
    uint32_t size;      /* of the next request */
    uint64_t index_end; /* exclusive end of the highest index ever leased or seen */
};
/* Forgets everything when the generation is another one. */
void edge_lease_follow(struct edge_lease *lease, uint64_t generation);
/* Whether an index is in hand. */
bool edge_lease_has(const struct edge_lease *lease);
/* A draw has opened: what was leased before dies. */
void edge_lease_over(struct edge_lease *lease);
/* False when no index is in hand. */
bool edge_lease_take(struct edge_lease *lease, uint64_t *out_index);
/* True when a block should be asked for now; the caller then calls edge_lease_ask. */
bool edge_lease_wants(const struct edge_lease *lease, struct edge_now now);
/* How many to ask for: twice as many when the last block lasted less than a second, half when it
 * lasted a minute; enough for those who wait already. A lease that failed says nothing of this. */
uint32_t edge_lease_ask(struct edge_lease *lease, uint32_t waiting, struct edge_now now);
void edge_lease_granted(struct edge_lease *lease, uint64_t first, uint32_t count);
void edge_lease_failed(struct edge_lease *lease, struct edge_now now);
void edge_lease_saw(struct edge_lease *lease, uint64_t index);

#endif
