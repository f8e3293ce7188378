/* SPDX-License-Identifier: Apache-2.0
 * Who may enter one sale, and how fast: judges requests for passes, signs them, and says how fast
 * the queue's watermark may move. Decides only: no clock, no randomness, no heap, no I/O. Events
 * in, actions out.
 *
 * Signing needs no coordination: every instance gives the same pass for the same place, buyer and
 * minute. Only the pace has one voice, the active one of a term. */
#ifndef ADMISSION_CORE_H
#define ADMISSION_CORE_H

#include "lib/pure/clock.h"
#include "lib/pure/identity.h"
#include "lib/pure/limit.h"
#include "lib/pure/pass.h"
#include "lib/pure/reason.h"
#include "lib/pure/sale.h"
#include "lib/pure/term.h"
#include "lib/pure/ticket.h"
#include "services/admission/core_pace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ADMISSION_PACE_EVERY_MS = 250,
    ADMISSION_BOARD_STALE_MS = 3000, /* a board older than this says nothing */
    ADMISSION_STOCK_STALE_MS = 3000, /* stock older than this is unknown: nobody is let in */
    ADMISSION_ACTIONS_MAX = 4
};

struct admission_now {
    struct tg_mono mono;
    struct tg_wall wall;
};

/* What the ledger says of the sale, as the daemon sees it at this instant. */
struct admission_view {
    enum tg_phase phase; /* tg_sale_phase: stale or paused is PAUSED */
    uint64_t generation;
    enum tg_order order;
    struct tg_draw draw;
    struct admission_bounds bounds;
};

struct admission_keys {
    struct tg_key_ring tickets;
    struct tg_sign_key sign;
    enum tg_pass_algorithm algorithm;
    char es256_id[9];              /* ES256: the core writes what the shell signs */
    uint8_t mac[TG_KEY_BYTES];     /* of the jti, shared with reserve only */
    uint8_t entrant[TG_KEY_BYTES]; /* of a draw's entrants, shared with the edges */
};

enum admission_event_kind {
    ADMISSION_TICK,  /* at least every 100 ms, and at once when the sale's state changed */
    ADMISSION_ASK,   /* a buyer wants a pass */
    ADMISSION_BOARD, /* the queue's board */
    ADMISSION_PEER,  /* a pace was heard */
    ADMISSION_STOCK, /* the gate's counters */
    ADMISSION_LOAD,  /* what a daemon behind the gate says of itself */
    ADMISSION_SIGNAL /* a measurement from outside */
};

struct admission_event {
    enum admission_event_kind kind;
    union {
        struct {
            struct admission_view view;
            bool connected;
            uint32_t jitter_ms;
        } tick;
        struct { /* borrowed for the step */
            struct admission_view view;
            const char *ticket;
            size_t ticket_length; /* at most TG_MAX_TICKET_BYTES */
            const uint8_t *user;
            size_t user_length; /* a valid buyer id */
        } ask;
        struct {
            uint64_t generation;
            uint64_t term;
            uint64_t watermark;
        } board;
        struct {
            uint64_t term;
            const char *instance;
            uint64_t base_milli;
            uint32_t ramp_permille;
        } peer;
        struct {
            uint64_t epoch;
            bool known; /* armed: the counters mean something */
        } stock;
        struct admission_load load;
        struct admission_signal signal;
    };
};

struct admission_answer {
    enum tg_reason reason; /* NONE: admitted; WAITING; or a refusal */
    char pass[TG_MAX_PASS_BYTES + 1];
    struct tg_wall expires_at;
    uint64_t watermark;
};

enum admission_action_kind { ADMISSION_DO_PACE, ADMISSION_DO_ANSWER, ADMISSION_DO_ROLE };

struct admission_action {
    enum admission_action_kind kind;
    union {
        struct admission_pace pace;
        struct admission_answer answer;
        struct {
            enum tg_term_role role;
            uint64_t term;
        } role;
    };
};

/* One sale. All sales of a process share its term and its keys. */
struct admission_brain {
    struct tg_term *term;
    const struct admission_keys *keys;
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    struct admission_view view;
    bool connected; /* as of the last tick: what is published can be heard */
    struct {
        bool known;
        uint64_t term;
        uint64_t watermark;
        struct tg_mono heard;
    } board;
    struct {
        bool known;
        uint64_t epoch;
        struct tg_mono heard;
    } stock;
    struct admission_control control;
    bool told_any;
    struct admission_pace told;
    struct tg_mono told_at;
};

/* A sale of which nothing is known yet. `term`, `keys` and `goals` are borrowed and outlive the
 * brain. */
void admission_begin(struct admission_brain *brain, struct tg_term *term,
                     const struct admission_keys *keys, const struct admission_goals *goals,
                     const char *sale);

/* Handles one event. Writes at most ADMISSION_ACTIONS_MAX actions and returns how many; asking
 * always yields one answer. */
size_t admission_step(struct admission_brain *brain, struct admission_now now,
                      const struct admission_event *event,
                      struct admission_action out_actions[ADMISSION_ACTIONS_MAX]);

/* The pace this instant, active or not. */
struct admission_pace admission_pace_now(const struct admission_brain *brain, struct tg_mono now);

/* What the sale would use if it were alone; 0 while it is frozen. */
uint64_t admission_want(const struct admission_brain *brain, struct tg_mono now);

/* "state", "stock", "signal", "unknown", ... */
const char *admission_limiting_name(enum admission_limiting limiting);

#endif
