/* SPDX-License-Identifier: Apache-2.0
 * What the sweeper does next, as pure decisions: events and the time in, calls to make out. Two
 * lanes per sale run side by side, each with one call in flight: CARRY takes what the ledger has
 * due (lapsed ids to a verdict, verdicts to the gate, the gate's obedience back), BURY takes holds
 * the ledger may never have seen to a verdict, with tombstones. Every step may be repeated or done
 * by another sweeper at the same time. Never asks for a release on its own account: only orders of
 * the ledger reach the gate. */
#ifndef SWEEPER_CORE_H
#define SWEEPER_CORE_H

#include "lib/pure/clock.h"
#include "lib/pure/identity.h"
#include "lib/pure/limit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SWEEPER_PAGE = TG_MAX_PAGE,
    SWEEPER_BURY_PAGE = 64, /* a lapsed hold with the longest user takes 212 bytes of a message */
    SWEEPER_POISON_MAX = 256,
    SWEEPER_CARRY_EVERY_MS = 200,
    SWEEPER_BURY_EVERY_MS = 1000,
    SWEEPER_POISON_FIRST_MS = 1000,
    SWEEPER_POISON_LONGEST_MS = 60000
};
_Static_assert(SWEEPER_BURY_PAGE *(TG_MAX_USER_BYTES + 84) <= TG_MAX_BUS_BODY_BYTES,
               "a page of holds fits a message");

struct sweeper_id {
    char text[TG_RESERVATION_ID_LENGTH + 1];
};

enum sweeper_kind { SWEEPER_SETTLE, SWEEPER_RELEASE, SWEEPER_EXTEND };

struct sweeper_order {
    struct sweeper_id id;
    enum sweeper_kind kind;
    int64_t deadline_ms; /* extend only */
};

/* How the gate answered one order. */
enum sweeper_obedience {
    SWEEPER_DONE,
    SWEEPER_ALREADY,
    SWEEPER_NOT_KNOWN_THERE, /* the gate does not know the reservation: never "done" */
    SWEEPER_DOUBT,
    SWEEPER_UNANSWERED /* unknown gate or unknown outcome: ask again */
};

struct sweeper_result {
    struct sweeper_id id;
    enum sweeper_kind kind;
    enum sweeper_obedience obedience;
};

/* A hold by the gate's word, with all a tombstone needs. */
struct sweeper_hold {
    struct sweeper_id id;
    uint8_t user[TG_MAX_USER_BYTES];
    uint8_t user_length;
    uint8_t place[TG_PLACE_BYTES];
    uint64_t window;
    uint8_t digest[TG_DIGEST_BYTES];
};

struct sweeper_poison {
    struct sweeper_id id; /* "" = free */
    struct tg_mono retry_at;
    int64_t delay_ms;
};

/* What a lane waits for. */
enum sweeper_call {
    SWEEPER_CALL_NONE,
    SWEEPER_CALL_DUE,      /* ledger.due, from sale->cursor */
    SWEEPER_CALL_EXPIRE,   /* ledger.expire: sale->lapsed under sale->epoch, sale->generation */
    SWEEPER_CALL_OBEY,     /* reserve.obey: sale->orders under sale->epoch */
    SWEEPER_CALL_OBEYED,   /* ledger.obeyed: sale->results under sale->epoch */
    SWEEPER_CALL_GATE_DUE, /* reserve.due */
    SWEEPER_CALL_BURY      /* ledger.expire with sale->holds as tombstones under sale->bury_epoch,
                              sale->bury_generation */
};

enum sweeper_lane_name { SWEEPER_CARRY, SWEEPER_BURY, SWEEPER_LANES };

struct sweeper_lane {
    enum sweeper_call call; /* in flight, or NONE */
    uint32_t sequence;      /* of the call in flight; an answer to another one is ignored */
    struct tg_mono next;    /* when idle: begin then */
    bool full;              /* the page in work was a full one: more is waiting */
    bool progress;          /* something moved with it */
};

/* One sale's work. Plain data, zero it to begin. The pages are read by the shell while their call
 * is being sent. */
struct sweeper_sale {
    struct sweeper_lane lanes[SWEEPER_LANES];
    uint64_t epoch, generation;
    uint64_t bury_epoch, bury_generation;
    struct sweeper_id cursor; /* orders are asked for after this id, so that a page of poison cannot
                                 hide the rest */
    uint32_t lapsed_count, order_count, result_count, hold_count;
    struct sweeper_id lapsed[SWEEPER_PAGE];
    struct sweeper_order orders[SWEEPER_PAGE];
    struct sweeper_result results[SWEEPER_PAGE];
    struct sweeper_hold holds[SWEEPER_BURY_PAGE];
    struct sweeper_poison poison[SWEEPER_POISON_MAX];
};

enum sweeper_event_kind {
    SWEEPER_TICK,
    SWEEPER_FAILED,   /* the call had no usable answer: refused as a whole, lost, timed out */
    SWEEPER_DUE,      /* lapsed, orders, epoch, generation */
    SWEEPER_VERDICTS, /* final_verdicts: how many of the asked now have a final word (expire or
                         bury) */
    SWEEPER_RESULTS,  /* results: the gate's answers */
    SWEEPER_STORED,   /* the ledger took what was obeyed */
    SWEEPER_GATE_DUE  /* holds, epoch, generation */
};

/* Plain data; pages are borrowed for the step. Counts above a page are cut to it. */
struct sweeper_event {
    enum sweeper_event_kind kind;
    enum sweeper_lane_name lane; /* all but TICK */
    uint32_t sequence;           /* all but TICK */
    uint64_t epoch, generation;
    const struct sweeper_id *lapsed;
    uint32_t lapsed_count;
    bool lapsed_full;
    const struct sweeper_order *orders;
    uint32_t order_count;
    bool orders_full;
    const struct sweeper_result *results;
    uint32_t result_count;
    const struct sweeper_hold *holds;
    uint32_t hold_count;
    bool holds_full;
    uint32_t final_verdicts;
};

struct sweeper_actions {
    enum sweeper_call calls[SWEEPER_LANES]; /* to send now, per lane; NONE = nothing */
    uint32_t buried;                        /* tombstones or verdicts gained by BURY */
    uint32_t expired;                       /* verdicts gained by EXPIRE */
    uint32_t obeyed;           /* sale->results[0..obeyed) are now stored: count and log them */
    uint32_t poison_count;     /* rows the gate refused, old and new */
    uint32_t poison_new_count; /* first met: log each of these once */
    struct sweeper_id poison_new[SWEEPER_PAGE];
};

/* One step. Cost: at most a page times the poison table. */
void sweeper_step(struct sweeper_sale *sale, struct tg_mono now, const struct sweeper_event *event,
                  struct sweeper_actions *out_actions);

/* Calls in flight, 0..2. */
size_t sweeper_in_flight(const struct sweeper_sale *sale);

#endif
