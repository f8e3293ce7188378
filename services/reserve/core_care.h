/* SPDX-License-Identifier: Apache-2.0
 * What a reserve daemon does for one sale's gate unasked: looks at it, tells the stock, keeps its
 * pauses equal to the ledger's, and loads and arms the gate of an epoch that was never armed. Pure.
 * Load: begin -> (page of the ledger -> page of the gate)* -> verify -> arm -> tell the ledger.
 * Nothing can be sold before the ledger knows, because nobody attests a gate that the ledger's
 * state does not name. */
#ifndef RESERVE_CORE_CARE_H
#define RESERVE_CORE_CARE_H

#include "lib/pure/sale.h"
#include "services/reserve/answer.h"

enum reserve_care_stage {
    RESERVE_CARE_IDLE,
    RESERVE_CARE_BEGIN,
    RESERVE_CARE_FETCH,
    RESERVE_CARE_PAGE,
    RESERVE_CARE_FINISH,
    RESERVE_CARE_ARM,
    RESERVE_CARE_TELL
};

enum { RESERVE_CARE_RETRY_MS = 1000, RESERVE_CARE_FOREIGN_MS = 5000 };

struct reserve_care {
    enum reserve_care_stage stage;
    uint64_t epoch; /* being loaded */
    uint32_t page;
    char after[TG_RESERVATION_ID_LENGTH + 1];
    bool last_page;
    char replication_id[41]; /* the gate was armed with, for TELL */
    struct tg_mono retry_at;
    bool looking;
    bool broken; /* the last look failed on a key: paused for it already */
    bool looked; /* `look` is there */
    struct tg_mono look_at;
    struct reserve_look look;
};

/* What the daemon knows when an event happens. */
struct reserve_care_view {
    struct tg_mono now;
    const struct tg_sale *sale;
    const char *run_id; /* of the connected, writable Redis; NULL: none */
    bool noeviction;
};

enum reserve_step_result {
    RESERVE_RESULT_DONE,
    RESERVE_RESULT_ARMED_ALREADY,
    RESERVE_RESULT_FAILED
};
enum reserve_care_event_kind {
    RESERVE_CARE_TICK,
    RESERVE_CARE_LOOKED, /* look: NULL when unknown; broken when a key is of another type */
    RESERVE_CARE_BEGUN,
    RESERVE_CARE_FETCHED, /* rows, after, end */
    RESERVE_CARE_PAGED,
    RESERVE_CARE_FINISHED,
    RESERVE_CARE_ARMED,
    RESERVE_CARE_TOLD
};
struct reserve_care_event {
    enum reserve_care_event_kind kind;
    enum reserve_step_result result;
    const struct reserve_look *look;
    bool broken;
    uint32_t rows;
    const char *after;
    bool end;
    const char *replication_id; /* BEGUN when armed already, ARMED */
};

enum reserve_care_action {
    RESERVE_CARE_DO_LOOK,
    RESERVE_CARE_DO_PUBLISH, /* what care->look says, see reserve_care_armed */
    RESERVE_CARE_DO_PAUSE,   /* write the sale's pauses into the gate */
    RESERVE_CARE_DO_LIFT,    /* remove those that reserve_care_lifts names */
    RESERVE_CARE_DO_DOUBT,   /* a pause of our own */
    RESERVE_CARE_DO_BEGIN,
    RESERVE_CARE_DO_FETCH, /* from care->after */
    RESERVE_CARE_DO_PAGE,  /* the rows at hand, as page care->page */
    RESERVE_CARE_DO_FINISH,
    RESERVE_CARE_DO_ARM,
    RESERVE_CARE_DO_TELL
};
enum { RESERVE_CARE_ACTIONS_MAX = 5 };

size_t reserve_care_step(struct reserve_care *care, const struct reserve_care_view *view,
                         const struct reserve_care_event *event,
                         enum reserve_care_action out_actions[RESERVE_CARE_ACTIONS_MAX]);

/* The gate of the present epoch is there, and armed on the Redis and in the epoch the ledger knows.
 */
bool reserve_care_armed(const struct reserve_care *care, const struct reserve_care_view *view);
/* By the last look: a pause of the sale is not in the gate; one in the gate is to leave it. */
bool reserve_care_pause_missing(const struct reserve_care *care, const struct tg_sale *sale);
bool reserve_care_lift_wanted(const struct reserve_care *care, const struct tg_sale *sale);
/* This id is in the gate, and the ledger's state lists it as lifted and not as active. */
bool reserve_care_lifts(const struct tg_sale *sale, const char *id);

#endif
