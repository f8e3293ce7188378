/* SPDX-License-Identifier: Apache-2.0
 * One virtual buyer as a small state machine: what he does next, from what he planned and what he
 * was told. Pure: no clock, no randomness of its own (random bits are arguments), no heap, no I/O.
 * Two million of them fit in memory. */
#ifndef REHEARSE_CORE_H
#define REHEARSE_CORE_H

#include "lib/pure/rank.h"
#include "lib/pure/reason.h"

#include <stdbool.h>
#include <stdint.h>

enum rehearse_state {
    REHEARSE_ABSENT,    /* has not come yet */
    REHEARSE_TICKETING, /* asks for a ticket */
    REHEARSE_WAITING,   /* has a ticket, looks at the board now and then */
    REHEARSE_ASKING,    /* his turn: asks for a pass */
    REHEARSE_RESERVING, /* has a pass, asks for a unit */
    REHEARSE_SHORT,     /* has a pass, but every unit is held: looks at the board */
    REHEARSE_HOLDING,   /* has a unit, is about to pay */
    REHEARSE_PAYING,    /* the shop confirms */
    /* Ends. */
    REHEARSE_BOUGHT,
    REHEARSE_ABANDONED, /* had a unit and let it lapse, as planned */
    REHEARSE_LAPSED,    /* wanted to pay, was too late */
    REHEARSE_SOLD_OUT,  /* was told: sold out, for good */
    REHEARSE_OVER,      /* was told: the sale is closed */
    REHEARSE_FAILED,    /* was told something that should not happen, or nothing for too long */
    REHEARSE_STATE_COUNT
};

bool rehearse_ended(enum rehearse_state state);
/* "waiting", "bought", ...: for the progress line and the report. */
const char *rehearse_state_name(enum rehearse_state state);

/* What a buyer has set his mind on; bits. TWICE, DROP and AGAIN exclude each other. */
enum rehearse_plan {
    REHEARSE_ABANDON = 1, /* takes a unit and never pays */
    REHEARSE_TWICE = 2,   /* sends the reserve twice at once */
    REHEARSE_DROP =
        4, /* breaks the connection before the answer, then asks again with the same key */
    REHEARSE_AGAIN = 8,      /* asks again with the same key after the answer */
    REHEARSE_REPEATING = 16, /* the repeat of AGAIN is under way */
    REHEARSE_ROUSED = 32     /* saw that something came back, is about to press the button */
};

struct rehearse_buyer {
    uint64_t index;  /* of his ticket; once he is `ranked` his rank, which never changes */
    uint16_t tries;  /* troubles in a row: no answer, 5xx, come back later */
    uint8_t state;   /* enum rehearse_state */
    uint8_t plan;    /* bits of enum rehearse_plan */
    uint8_t attempt; /* number of the purchase: each has its own Idempotency-Key */
    bool early, ranked;
};

/* The board as a buyer reads it. */
enum rehearse_phase {
    REHEARSE_PHASE_UNKNOWN,
    REHEARSE_PHASE_SCHEDULED,
    REHEARSE_PHASE_OPEN,
    REHEARSE_PHASE_PAUSED,
    REHEARSE_PHASE_SOLD_OUT,
    REHEARSE_PHASE_CLOSED
};
struct rehearse_board {
    enum rehearse_phase phase;
    struct tg_board_view view;
    uint64_t remaining, held;
    uint32_t poll_s;
};

enum rehearse_ask {
    REHEARSE_ASK_TICKET,
    REHEARSE_ASK_BOARD,
    REHEARSE_ASK_STATUS,
    REHEARSE_ASK_RESERVE,
    REHEARSE_ASK_CONFIRM,
    REHEARSE_ASK_COUNT
};

/* What `status` said. */
enum rehearse_said {
    REHEARSE_SAID_NOTHING,
    REHEARSE_SAID_WAITING,
    REHEARSE_SAID_ADMITTED,
    REHEARSE_SAID_SOLD_OUT,
    REHEARSE_SAID_SCHEDULED,
    REHEARSE_SAID_PAUSED,
    REHEARSE_SAID_RESTART,
    REHEARSE_SAID_CLOSED
};

enum rehearse_heard {
    REHEARSE_HEARD_NOTHING, /* no answer: time-out, broken connection, unreadable */
    REHEARSE_HEARD_DONE,
    REHEARSE_HEARD_REFUSED /* with a reason */
};

struct rehearse_answer {
    enum rehearse_ask ask;
    enum rehearse_heard heard;
    enum tg_reason reason;   /* REFUSED; TG_REASON_COUNT: a code nobody knows */
    enum rehearse_said said; /* status, DONE; ticket, DONE: no place is given any more */
    bool final;              /* sold out for good */
    uint32_t wait_ms;        /* Retry-After or pollSeconds; 0: none given */
    uint64_t index;          /* ticket, DONE */
    bool early;
};

enum rehearse_do {
    REHEARSE_DO_NOTHING, /* another answer or timer is on its way */
    REHEARSE_DO_SLEEP,   /* then rehearse_wake */
    REHEARSE_DO_TICKET,
    REHEARSE_DO_BOARD,
    REHEARSE_DO_STATUS,
    REHEARSE_DO_RESERVE,
    REHEARSE_DO_RESERVE_TWICE,
    REHEARSE_DO_RESERVE_AND_DROP,
    REHEARSE_DO_CONFIRM,
    REHEARSE_DO_END
};
struct rehearse_action {
    enum rehearse_do what;
    uint32_t sleep_ms;
};

struct rehearse_rules {
    uint32_t pay_ms;    /* about how long a buyer takes to pay */
    uint32_t tries_max; /* troubles in a row until he gives up */
};

/* Draws a plan: `dice` random bits; shares in percent, 0..100. */
uint8_t rehearse_draw_plan(uint64_t dice, unsigned abandon_percent, unsigned duplicate_percent);

struct rehearse_action rehearse_arrive(struct rehearse_buyer *buyer, uint8_t plan);
struct rehearse_action rehearse_wake(struct rehearse_buyer *buyer);
/* `entrant` counts only where the order is random; "" otherwise. */
struct rehearse_action rehearse_see_board(struct rehearse_buyer *buyer,
                                          const struct rehearse_board *board, const char *entrant,
                                          uint32_t dice);
struct rehearse_action rehearse_hear(struct rehearse_buyer *buyer,
                                     const struct rehearse_answer *answer,
                                     const struct rehearse_rules *rules, uint32_t dice);

#endif
