/* SPDX-License-Identifier: Apache-2.0
 * The order of people of one sale: which indexes edges may give, how far the watermark is, what the
 * board says. Decides only: no clock, no randomness, no heap, no I/O. Events in, actions out; all
 * counts are integers.
 *
 * Keeps nothing that must survive: a new brain continues from what edges saw (presence) and what
 * its peers announced. */
#ifndef QUEUE_CORE_H
#define QUEUE_CORE_H

#include "lib/pure/clock.h"
#include "lib/pure/limit.h"
#include "lib/pure/reason.h"
#include "lib/pure/sale.h"
#include "lib/pure/term.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    QUEUE_BOARD_EVERY_MS = 200,
    QUEUE_PACE_STALE_MS =
        1500, /* admission publishes every 250 ms; silent for this long = nobody is admitted */
    QUEUE_STOCK_STALE_MS = 3000, /* stock older than this is unknown */
    QUEUE_STEP_MS_MAX = 500,     /* a late tick does not let in more than this much time's worth */
    QUEUE_BLOCK_MIN = 64,        /* an edge gets this many at least, if it wants them */
    QUEUE_BLOCK_FAST_MS = 250,   /* a block used up faster than this: up to four times as many */
    QUEUE_BLOCK_SLOW_MS = 5000,  /* every such span without a lease halves it */
    QUEUE_ARRIVALS_FRESH_MS = 1000, /* arrivals told longer ago say nothing */
    QUEUE_EDGE_SILENT_MS = 10000,   /* an edge silent for this long gives its row to another */
    QUEUE_GAP_MIN = 256,            /* least distance between an earlier term's indexes and ours */
    QUEUE_COLLECT_MS = 600, /* a sale new to this process: what its edges saw is heard first */
    /* Presence: who was let through and asks for a pass. */
    QUEUE_PRESENCE_SLOT_MS = 500,
    QUEUE_PRESENCE_SLOTS = 180,   /* 90 s: about as long as a pass lives */
    QUEUE_PRESENCE_LAG_SLOTS = 4, /* people ask about 2 s after their turn has come */
    QUEUE_PRESENCE_FADE = 16,     /* of the sums, a slot: half in 5.5 s */
    QUEUE_PRESENCE_PRIOR = 50,    /* people who count as having been there */
    QUEUE_PRESENCE_PEOPLE_MAX = 1000000,
    QUEUE_HASTE_MAX_PERMILLE =
        5000,              /* the watermark moves at most five times as fast as the pace */
    QUEUE_HASTE_STEP = 20, /* up by a twentieth a slot */
    /* The room: whoever asked for a pass stands before the gate until he has had his time. */
    QUEUE_CROWDS = 4,           /* suppositions of how long people take */
    QUEUE_CROWD_DOUBT = 6,      /* units: not so much nearer to what was seen is as good */
    QUEUE_CROWD_FADE = 256,     /* of what did not fit, a slot: half in 90 s */
    QUEUE_ROOM_PRIOR = 4,       /* people who count as having taken one unit each */
    QUEUE_ROOM_MEMORY = 500,    /* people: of fewer little is known; of more ... */
    QUEUE_ROOM_FADE = 64,       /* ... it fades, a slot: half in 22 s */
    QUEUE_ROOM_PERMILLE = 1100, /* of the people who would take every free unit */
    QUEUE_ROOM_CONSTANT = 10,   /* and so many more, for the last units */
    QUEUE_CONVERSION_MIN = 20,  /* units per 1000 people */
    QUEUE_CART_MAX = 8,         /* units per person, on average of many */
    QUEUE_OVERDUE_UNITS = 16,   /* due since the last one was taken: the path stands still */
    QUEUE_STILL_SLOTS = 80,     /* for 40 s at most */
    QUEUE_CALM_SLOTS = 20,      /* then what was held up is through */
    QUEUE_TOLD_SLOTS = 4,       /* the board's pace while there is little room */
    QUEUE_TOLD_MIN = 10000,     /* milli: whoever is next keeps looking */
    QUEUE_EDGE_LATE_MS = 1200,  /* told every 500 ms: an edge later than this is overloaded */
    /* After the opening: an edge that has not said by then that nobody is early any more has heard
       no state for TG_MAX_STATE_STALE_MS and gives no early ticket either. */
    QUEUE_SHUT_OUT_MS = TG_MAX_STATE_STALE_MS + 500,
    QUEUE_ACTIONS_MAX = 4
};

struct queue_now {
    struct tg_mono mono;
    struct tg_wall wall;
};

/* What the ledger says of the sale, as the daemon sees it at this instant. */
struct queue_view {
    enum tg_phase phase; /* tg_sale_phase: stale or paused is PAUSED */
    uint64_t generation;
    struct tg_wall opens_at;
    uint64_t inside_max; /* live passes and holds; at most so many people let in at a time */
    bool opened;         /* has been open */
    enum tg_order order;
    bool beacon_promised;
    struct tg_draw draw;
};

/* The content of a board (all but the time it was made). */
struct queue_board {
    uint64_t generation;
    uint64_t term;
    uint64_t version;
    enum tg_phase phase;
    struct tg_wall opens_at;
    uint64_t watermark;
    uint64_t present_at_open;
    uint64_t index_at_open;
    uint64_t pace_milli;
    uint64_t waiting;
    uint64_t remaining;
    uint64_t held;
    uint64_t index_end;
    uint32_t poll_seconds;
    enum tg_reason notice; /* NONE or a notice */
    enum tg_order order;
    bool revealed;
    uint8_t seed[TG_DRAW_BYTES];
};

enum queue_event_kind {
    QUEUE_TICK,     /* at least every 100 ms, and at once when the sale's state changed */
    QUEUE_LEASE,    /* an edge wants indexes */
    QUEUE_PRESENCE, /* what an edge saw */
    QUEUE_PEER,     /* a board was heard */
    QUEUE_PACE,     /* admission's pace */
    QUEUE_STOCK     /* the gate's counters */
};

struct queue_event {
    enum queue_event_kind kind;
    union {
        struct {
            struct queue_view view;
            bool connected;
            uint32_t jitter_ms;
        } tick;
        struct {
            const char *edge; /* borrowed for the step */
            uint32_t count;   /* 1..TG_MAX_LEASE_INDEXES */
        } lease;
        struct {
            const char *edge;
            uint64_t generation;
            uint64_t index_end;
            uint64_t tickets;
            uint64_t arrivals;
            uint64_t passes_asked; /* by so many people, since its last presence */
            uint64_t board_term;
            uint64_t board_watermark;
            uint64_t present_at_open;
            uint64_t index_at_open;
            bool early_over;
        } presence;
        struct {
            uint64_t generation;
            uint64_t term;
            const char *instance;
            uint64_t index_end;
            uint64_t watermark;
            uint64_t present_at_open;
            uint64_t index_at_open;
        } peer;
        struct {
            uint64_t term;
            uint64_t pace_milli; /* people per 1000 s */
        } pace;
        struct {
            uint64_t epoch;
            bool known;  /* armed: the counters mean something */
            bool paused; /* the gate refuses by a pause of its own */
            int64_t gate_now_ms;
            uint64_t free;
            uint64_t held;
            uint64_t settled;
            uint64_t sequence; /* of the gate's log */
        } stock;
    };
};

enum queue_action_kind {
    QUEUE_DO_BOARD, /* publish it */
    QUEUE_DO_GRANT, /* answer the lease of this step */
    QUEUE_DO_ROLE   /* the role or the term changed: tell operators */
};

struct queue_grant {
    enum tg_reason reason; /* NONE: granted */
    uint64_t term;
    uint64_t generation;
    uint64_t first;
    uint32_t count;
    bool opened;
};

struct queue_action {
    enum queue_action_kind kind;
    union {
        struct queue_board board;
        struct queue_grant grant;
        struct {
            enum tg_term_role role;
            uint64_t term;
        } role;
    };
};

/* One edge, as it was last heard. */
struct queue_edge {
    char name[TG_TERM_INSTANCE_BYTES]; /* "" = free row */
    struct tg_mono heard;
    struct tg_mono leased;
    uint64_t tickets;  /* as last told */
    uint32_t arrivals; /* of its last presence, half a second */
    uint32_t block;    /* size of its last lease; 0 = none yet */
    uint32_t before;   /* of the one before it */
    uint64_t unused;   /* indexes leased to it and no ticket told for */
    bool early_over;   /* of a draw: it has nobody left to enter */
};

struct queue_stock {
    bool known;
    bool paused;
    uint64_t epoch;
    int64_t gate_now_ms;
    struct tg_mono heard;
    uint64_t free;
    uint64_t held;
    uint64_t settled;
    uint64_t sequence; /* of the gate's log */
};

struct queue_presence_slot {
    uint64_t passed, asked; /* people */
    uint64_t taken;         /* units */
};

/* How many of those let through are there. */
struct queue_presence {
    struct queue_presence_slot slots[QUEUE_PRESENCE_SLOTS];
    size_t at;
    struct tg_mono slot_began;
    uint64_t passed_sum, asked_sum; /* thousandths, fading */
    uint64_t haste_permille;        /* speed of the watermark against the pace */
};

/* Those who asked for a pass, if people take so long; thousandths of people. */
struct queue_crowd {
    uint64_t early, late; /* stand before the gate: two stages, one after the other */
    uint64_t had_time;    /* fading */
    uint64_t missed;      /* thousandths of units taken earlier or later than supposed, fading */
};

/* How many may be let in for the free units. */
struct queue_room {
    struct queue_crowd crowds[QUEUE_CROWDS];
    size_t crowd;     /* the likeliest */
    uint64_t units;   /* thousandths taken, fading as had_time does */
    uint64_t overdue; /* thousandths of units, expected since the last one was taken */
    uint64_t still;   /* slots for which time stood still, or is not yet trusted again */
};

/* One sale. All sales of a process share its term: whoever is active is so for every sale. */
struct queue_brain {
    struct tg_term *term;
    struct queue_view view;
    bool connected;      /* as of the last tick: what is published can be heard */
    struct tg_mono seen; /* since when this generation of the sale is known */
    uint64_t claimed;    /* term in which the line below was claimed; 0 = not yet */
    bool evidence;       /* an earlier term gave indexes of this sale */
    bool witnessed;      /* this brain acted when the generation began: nobody gave any before */
    /* the line */
    uint64_t index_end; /* next index to lease; in standby the highest known end */
    uint64_t watermark;
    bool opened;        /* the two below are recorded */
    uint64_t open_term; /* the term in which it has seen the sale open, since then */
    struct tg_mono open_since;
    uint64_t present_at_open;
    uint64_t index_at_open;
    uint64_t gap_from, gap_to; /* indexes this term skipped: nobody is known to hold them */
    /* the pace */
    struct tg_mono moved;
    uint64_t credit_micro; /* millionths of a person */
    uint64_t pace_milli;
    uint64_t pace_term;
    struct tg_mono pace_heard;
    bool pace_known;
    struct queue_stock stock;
    struct queue_presence presence;
    struct queue_room room;
    /* the board */
    struct queue_board told;
    struct tg_mono told_at;
    bool told_any;
    struct queue_edge edges[TG_MAX_EDGES];
};

/* A sale of which nothing is known yet. `term` is borrowed and outlives the brain. */
void queue_begin(struct queue_brain *brain, struct tg_term *term, struct tg_mono now);

/* This process decides for this sale. */
static inline bool queue_acts(const struct queue_brain *brain)
{
    return tg_term_acts(brain->term) && brain->claimed == brain->term->number;
}

/* Of a draw: what the shell has of the roster, and what is to be done next. */
struct queue_roster {
    bool loaded;  /* everything the ledger has is in memory */
    bool closing; /* nobody is added any more */
    bool closed;  /* sorted, its root is known */
    uint32_t unstored;
    bool secret_known;
};
enum queue_draw_step {
    QUEUE_DRAW_REST,
    QUEUE_DRAW_LOAD,  /* read the ledger's next page */
    QUEUE_DRAW_STORE, /* give the ledger the next page */
    QUEUE_DRAW_CLOSE, /* sort, find the root */
    QUEUE_DRAW_FREEZE,
    QUEUE_DRAW_REVEAL
};
/* This process keeps the roster of this sale. */
bool queue_draws(const struct queue_brain *brain);
enum queue_draw_step queue_draw_next(const struct queue_brain *brain, struct tg_mono now,
                                     const struct queue_roster *roster);
/* Entrants may still come in. */
bool queue_draw_takes(const struct queue_brain *brain, const struct queue_roster *roster);

/* Handles one event. Writes at most QUEUE_ACTIONS_MAX actions and returns how many; a lease always
 * yields one grant. */
size_t queue_step(struct queue_brain *brain, struct queue_now now, const struct queue_event *event,
                  struct queue_action out_actions[QUEUE_ACTIONS_MAX]);

#endif
