/* SPDX-License-Identifier: Apache-2.0
 * What a gate script said, as checked data. An answer of another shape is BROKEN, never guessed.
 * Pure. */
#ifndef RESERVE_ANSWER_H
#define RESERVE_ANSWER_H

#include "lib/pure/error.h"
#include "lib/pure/hold_record.h"
#include "lib/pure/limit.h"
#include "lib/pure/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a call of a script ended, before its words are looked at. */
enum reserve_ending {
    RESERVE_ENDED,   /* it answered */
    RESERVE_UNKNOWN, /* time-out or broken connection: it may have run */
    RESERVE_NOT_RUN, /* not connected, full, out of memory, read-only, loading: nothing was done */
    RESERVE_BROKEN /* an error: wrong type or garbage somewhere; nothing was written. The gate is in
                      doubt */
};

enum { RESERVE_WORDS_MAX = 512 };

struct reserve_word {
    const char *text; /* not NUL-terminated */
    size_t length;
};

/* A script's answer as flat words; borrowed for the time of the call-back. */
struct reserve_answer {
    enum reserve_ending ending;
    size_t count;
    const struct reserve_word *words;
};

bool reserve_word_is(const struct reserve_answer *answer, size_t index, const char *text);
/* A decimal of 0..2^53 - 1. */
bool reserve_word_number(const struct reserve_answer *answer, size_t index, int64_t *out_value);
/* A word of at most capacity - 1 bytes, NUL-terminated. */
bool reserve_word_copy(const struct reserve_answer *answer, size_t index, char *out_text,
                       size_t capacity);

/* hold */
enum reserve_taken {
    RESERVE_TAKEN_HELD,
    RESERVE_TAKEN_REPLAY_HELD,
    RESERVE_TAKEN_REPLAY_SETTLED,
    RESERVE_TAKEN_REPLAY_RELEASED,
    RESERVE_TAKEN_MISMATCH,
    RESERVE_TAKEN_UNKNOWN_GATE,
    RESERVE_TAKEN_NOT_OPEN,
    RESERVE_TAKEN_PAUSED,
    RESERVE_TAKEN_UNPROVED,
    RESERVE_TAKEN_PASS_EXPIRED,
    RESERVE_TAKEN_PASS_USED,
    RESERVE_TAKEN_LIMIT,
    RESERVE_TAKEN_SOLD_OUT,
    RESERVE_TAKEN_DOUBT,
    RESERVE_TAKEN_UNKNOWN, /* the outcome is not known */
    RESERVE_TAKEN_NOT_RUN
};
struct reserve_hold_answer {
    enum reserve_taken taken;
    bool final;                                     /* SOLD_OUT: nothing free and nothing held */
    char reservation[TG_RESERVATION_ID_LENGTH + 1]; /* LIMIT; may be empty */
    struct tg_hold_record record;                   /* HELD, REPLAY_HELD */
};
/* Everything unreadable is DOUBT. */
void reserve_answer_hold(const struct reserve_answer *answer, struct reserve_hold_answer *out_hold);

/* acknowledge, extend, settle, release */
enum reserve_obeyed {
    RESERVE_OBEYED_DONE,
    RESERVE_OBEYED_ALREADY,
    RESERVE_OBEYED_UNKNOWN_RESERVATION,
    RESERVE_OBEYED_UNKNOWN_GATE,
    RESERVE_OBEYED_DOUBT,
    RESERVE_OBEYED_UNKNOWN
};
enum reserve_obeyed reserve_answer_obeyed(const struct reserve_answer *answer);

/* It answered that there is no such gate, or that it is not the armed one. */
bool reserve_answer_unknown_gate(const struct reserve_answer *answer);

/* look */
struct reserve_look_item {
    int64_t initial, stock, held, settled, free_bits;
};
struct reserve_look {
    bool known; /* false: there is no such gate */
    bool armed;
    int64_t now_ms, attested_until_ms, load_at_ms, load_page, sequence, limit, epoch;
    int64_t unacked;
    char run_id[41], replication_id[41], loader[40];
    uint32_t item_count;
    struct reserve_look_item items[TG_MAX_ITEMS_PER_SALE];
    uint32_t
        pause_count; /* as many as are there; at most TG_MAX_PAUSES + TG_MAX_LIFTED ids are told */
    char pauses[TG_MAX_PAUSES + TG_MAX_LIFTED][TG_BASE32_ID_LENGTH + 1];
};
/* False: of another shape. */
bool reserve_answer_look(const struct reserve_answer *answer, struct reserve_look *out_look);

#endif
