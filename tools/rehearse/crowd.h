/* SPDX-License-Identifier: Apache-2.0
 * The crowd: everybody's state, tickets and passes; does what the cores say, tells them what was
 * answered, and keeps the log for the referee. Boards come through modelled shared caches: one
 * request to the origin per cache and second. */
#ifndef REHEARSE_CROWD_H
#define REHEARSE_CROWD_H

#include "lib/pure/histogram.h"
#include "tools/rehearse/answers.h"
#include "tools/rehearse/options.h"
#include "tools/rehearse/sale.h"
#include "tools/rehearse/seen.h"
#include "tools/rehearse/strain.h"
#include "tools/rehearse/wheel.h"

enum {
    REHEARSE_RUN_TAG_LENGTH = 8,
    REHEARSE_SECONDS_MAX = 7200,
    REHEARSE_CACHES_MAX = 64,
    REHEARSE_SHOP_CONNECTIONS = 64,
    REHEARSE_TRAILING = 2 /* times --arrive-s: so long the last 20 % take to come */
};

struct rehearse_totals {
    uint64_t by_state[REHEARSE_STATE_COUNT];
    uint64_t tickets, passes, holds, replays, confirms;
    uint64_t asked[REHEARSE_ASK_COUNT];
    uint64_t status_5xx, unreadable;
    uint64_t status_5xx_of[REHEARSE_ASK_COUNT];
    uint64_t refused[TG_REASON_COUNT + 1]; /* the last: unknown codes */
    uint64_t boards_from_cache, boards_from_origin;
    uint64_t duplicates;                               /* reserves sent more than once on purpose */
    uint32_t holds_by_second[REHEARSE_SECONDS_MAX];    /* first 201 of a reservation */
    struct tg_histogram hold, ticket, status, confirm; /* sent to answered */
    struct tg_histogram queue;                         /* wait for a connection of the pool */
};

/* One buyer, and his share of the shell: what the core need not know. */
struct rehearse_person {
    struct rehearse_buyer buyer;
    uint32_t due;    /* tick he sleeps until; 0: awake */
    uint32_t ticket; /* in crowd->tickets, 0: none */
    uint32_t next;   /* in his cache's queue */
    uint16_t outstanding;
    bool has_pass, has_won;
    struct rehearse_session *session;
};

/* Where a purchase stands; only while there is one. */
struct rehearse_session {
    char reservation[TG_RESERVATION_ID_LENGTH + 1];
    char pass[]; /* NUL-terminated */
};

struct rehearse_cache {
    struct rehearse_board board;
    bool fetching;
    uint32_t fresh_until; /* tick; 0: never fetched */
    uint32_t first;       /* of those who wait for the fetch; UINT32_MAX: nobody */
};

struct rehearse_tickets {
    char **chunks;
    uint32_t chunk_count, used; /* of the last chunk, in units of 8 bytes */
};

struct rehearse_crowd {
    const struct rehearse_options *options;
    const struct rehearse_sale *sale;
    uv_loop_t *loop;
    struct rehearse_client *client; /* the people's connections */
    struct rehearse_client *shop;   /* the shop's own: its confirms do not queue behind people */
    struct rehearse_client *fetch;  /* the caches' own, likewise */
    char tag[REHEARSE_RUN_TAG_LENGTH + 1]; /* of this run: part of users, keys and payments */
    struct rehearse_person *people;
    struct rehearse_tickets tickets;
    struct rehearse_cache caches[REHEARSE_CACHES_MAX];
    struct rehearse_wheel wheel;
    struct rehearse_log log;
    struct rehearse_totals totals;
    struct rehearse_strain strain;
    struct rehearse_rules rules;
    uint32_t arrived, ended;
    uint64_t begun_us;
    struct tg_wall begun;
    uv_timer_t timer;
    bool doors_open; /* the edge gives tickets: the run has begun */
    bool finished;
};

/* Plays the whole run on `loop`: first asks for a ticket until the edge gives one (a sale declared
 * just now takes a moment to be known everywhere), then lets people come; returns when everybody
 * has ended or the limit is reached, or TG_ERR_TIMEOUT when no ticket was given. The crowd stays
 * readable until rehearse_crowd_free. */
TG_MUST_CHECK int rehearse_crowd_run(struct rehearse_crowd *crowd);
/* Closes all connections; the loop's next turns finish it. */
void rehearse_crowd_hang_up(struct rehearse_crowd *crowd);
void rehearse_crowd_free(struct rehearse_crowd *crowd);

/* crowd_text.c: the requests, as text. */
size_t rehearse_crowd_write(void *context, const struct rehearse_request *request,
                            char out_text[REHEARSE_REQUEST_BYTES]);
/* The user id of a buyer: "rehearse-TAG-NUMBER". out_user: 64 bytes. */
void rehearse_user(const char *tag, uint32_t buyer, char out_user[64]);
/* The number of a user id of this run; UINT32_MAX when it is none. */
uint32_t rehearse_user_number(const char *tag, const char *user, size_t length);

/* crowd_keep.c: tickets and passes. */
uint32_t rehearse_tickets_keep(struct rehearse_tickets *tickets, const char *token,
                               const char *entrant);
const char *rehearse_tickets_token(const struct rehearse_tickets *tickets, uint32_t ticket);
const char *rehearse_tickets_entrant(const struct rehearse_tickets *tickets, uint32_t ticket);
void rehearse_tickets_clear(struct rehearse_tickets *tickets);

/* progress.c: on standard error, what is ahead; then one line a second, a heading now and then. */
void rehearse_announce(const struct rehearse_crowd *crowd);
void rehearse_progress(const struct rehearse_crowd *crowd);

#endif
