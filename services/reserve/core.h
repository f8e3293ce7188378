/* SPDX-License-Identifier: Apache-2.0
 * One hold on its way: gate, ledger, answer. Pure: events and actions are plain data; no clock, no
 * heap, no I/O. A flow that began always ends with exactly one answer (or none for a re-sent
 * record, which nobody waits for). An outcome that is not known is answered try_again: the same
 * Idempotency-Key finds out. */
#ifndef RESERVE_CORE_H
#define RESERVE_CORE_H

#include "lib/pure/reason.h"
#include "lib/pure/sale.h"
#include "services/reserve/answer.h"

struct reserve_demand {
    uint32_t item;
    uint32_t any; /* how many of any units */
    uint32_t named_count;
    uint32_t named[TG_MAX_UNITS_PER_HOLD];
};

/* A checked request: one demand per item, sums within the limits. */
struct reserve_request {
    char reservation[TG_RESERVATION_ID_LENGTH + 1];
    uint8_t user[TG_MAX_USER_BYTES];
    size_t user_length;
    uint8_t place[TG_PLACE_BYTES];
    uint64_t window;
    int64_t pass_expires_ms;
    uint8_t digest[TG_DIGEST_BYTES];
    uint32_t wanted_units;
    uint32_t demand_count;
    struct reserve_demand demands[TG_MAX_ITEMS_PER_SALE];
};

enum reserve_stage {
    RESERVE_STAGE_FREE,
    RESERVE_STAGE_GATE,   /* the hold script runs */
    RESERVE_STAGE_RECORD, /* the ledger is asked to record */
    RESERVE_STAGE_READ    /* the ledger is asked what became of it */
};

struct reserve_flow {
    enum reserve_stage stage;
    bool resend; /* nobody waits for the answer */
    bool replayed;
    enum tg_phase phase; /* when it began: what "not open" means */
    char reservation[TG_RESERVATION_ID_LENGTH + 1];
    struct tg_hold_record record; /* from RECORD on */
};

/* What the ledger said about a reservation. */
enum reserve_recorded {
    RESERVE_RECORDED_NEW,
    RESERVE_RECORDED_KNOWN,   /* it was there: `state` */
    RESERVE_RECORDED_REFUSED, /* `reason` */
    RESERVE_RECORDED_UNKNOWN
};
enum reserve_state {
    RESERVE_STATE_UNKNOWN,
    RESERVE_STATE_PENDING,
    RESERVE_STATE_CONFIRMED,
    RESERVE_STATE_EXPIRED,
    RESERVE_STATE_CANCELLED
};
struct reserve_ledger_answer {
    enum reserve_recorded recorded;
    enum tg_reason reason;
    enum reserve_state state;
    int64_t expires_ms;
    uint32_t unit_count; /* 0: as in the record */
    struct tg_unit_ref units[TG_MAX_UNITS_PER_HOLD];
};

enum reserve_event_kind {
    RESERVE_EVENT_BEGIN,
    RESERVE_EVENT_RESEND,
    RESERVE_EVENT_GATE,
    RESERVE_EVENT_RECORDED,
    RESERVE_EVENT_READ
};
struct reserve_event {
    enum reserve_event_kind kind;
    union {
        struct {
            const struct reserve_request *request;
            enum tg_phase phase;
        } begin;
        struct {
            const char *reservation;
            const struct tg_hold_record *record;
        } resend;
        const struct reserve_hold_answer *gate;
        const struct reserve_ledger_answer *ledger; /* RECORDED, READ */
    };
};

struct reserve_outcome {
    enum tg_reason reason;
    bool replayed, final;
    int64_t expires_ms;
    char reservation[TG_RESERVATION_ID_LENGTH + 1];
    uint32_t unit_count;
    struct tg_unit_ref units[TG_MAX_UNITS_PER_HOLD];
};

enum reserve_action_kind {
    RESERVE_DO_HOLD,        /* run the script for the request */
    RESERVE_DO_RECORD,      /* ask the ledger to record flow->record */
    RESERVE_DO_READ,        /* ask the ledger about flow->reservation */
    RESERVE_DO_ANSWER,      /* answer whoever asked; the flow is over */
    RESERVE_DO_END,         /* a re-sent one: over */
    RESERVE_DO_ACKNOWLEDGE, /* tell the gate the ledger's deadline */
    RESERVE_DO_PAUSE        /* close the gate with this pause */
};
enum reserve_pause_cause { RESERVE_PAUSE_UNIT_CONFLICT, RESERVE_PAUSE_DOUBT };
struct reserve_action {
    enum reserve_action_kind kind;
    union {
        struct reserve_outcome outcome;
        int64_t deadline_ms;
        enum reserve_pause_cause cause;
    };
};
enum { RESERVE_ACTIONS_MAX = 3 };

/* Returns the number of actions. An event that does not fit the flow's stage gives none. */
size_t reserve_step(struct reserve_flow *flow, const struct reserve_event *event,
                    struct reserve_action out_actions[RESERVE_ACTIONS_MAX]);

#endif
