/* SPDX-License-Identifier: Apache-2.0
 * Active/standby by numbered terms over a bus that may lose, delay and repeat: the rule the queue
 * and admission brains share. A standby that hears nobody for 1.5 s (plus jitter) collects what is
 * known for 0.5 s, claims the next number, listens 0.4 s for a rival with the same idea, and only
 * then acts. Whoever learns of a higher number steps down. Whoever did not announce itself for a
 * second (frozen, cut off) cannot know whether it was replaced and steps down before it does
 * anything else: a second before anybody else can have claimed. Only time in which the process ran
 * and was connected counts as waiting. Nothing here makes two brains impossible; it makes the
 * second one harmless, because everybody ignores lower numbers. */
#ifndef TG_PURE_TERM_H
#define TG_PURE_TERM_H

#include "lib/pure/clock.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TG_TERM_SILENCE_MS = 1500, /* without a sign of life of the active one */
    TG_TERM_JITTER_MS = 400,   /* the caller's jitter is taken modulo this */
    TG_TERM_COLLECT_MS = 500,  /* one presence of every edge arrives in this time */
    TG_TERM_SETTLE_MS = 400,   /* longer than two board intervals' gap: a rival is heard */
    TG_TERM_RIVAL_MS = 500,    /* an equal number heard for this long does not yield */
    TG_TERM_UNSURE_MS = 1000,  /* not announced, or not run, for this long: step down */
    TG_TERM_TICK_MS = 100, /* ticks are at most this far apart; more does not count as waiting */
    TG_TERM_DEAF_MS = 250, /* a claimant that could not hear for this long begins again */
    TG_TERM_INSTANCE_BYTES = 33
};

enum tg_term_role {
    TG_TERM_STANDBY,    /* listens */
    TG_TERM_COLLECTING, /* nobody was heard: gathers what the edges saw */
    TG_TERM_SETTLING,   /* has claimed the number, announces it, does not act yet */
    TG_TERM_ACTIVE
};

struct tg_term {
    enum tg_term_role role;
    uint64_t number; /* own while settling or active; otherwise the highest known */
    char instance[TG_TERM_INSTANCE_BYTES];
    struct tg_mono since; /* of the role; in standby: last sign of life of an active one */
    struct tg_mono ran;   /* last tick while connected */
    struct tg_mono told;  /* last announcement */
    struct tg_mono rival_since, rival_heard; /* a peer with our number */
    int64_t silence_ms;
};

/* A standby that knows no number yet. `instance`: 1..32 bytes, unique among peers. */
void tg_term_begin(struct tg_term *term, const char *instance, struct tg_mono now,
                   uint32_t jitter_ms);

/* Call every TG_TERM_TICK_MS or more often. `connected`: messages can arrive. Cost: constant. */
void tg_term_tick(struct tg_term *term, struct tg_mono now, bool connected, uint32_t jitter_ms);

/* Call before handling anything else: a process that was frozen becomes a standby here, not after
 * its next tick. */
void tg_term_check(struct tg_term *term, struct tg_mono now);

/* The one who speaks has just announced its number, while connected; at least every 500 ms. */
void tg_term_told(struct tg_term *term, struct tg_mono now);

/* A message of an active or settling peer. Of equal numbers the smaller instance name stays, but
 * who settles does not act while a rival is heard, and yields to one that goes on: that one acts
 * already. Own messages that come back are evidence of their number, not of a peer. Returns true
 * when the message counts: it comes from whoever this process follows. */
bool tg_term_heard(struct tg_term *term, uint64_t number, const char *instance, struct tg_mono now);

/* Evidence that a number was in use, from somebody who is not a brain. */
void tg_term_learn(struct tg_term *term, uint64_t number, struct tg_mono now);

/* May decide: lease, move, pace. */
static inline bool tg_term_acts(const struct tg_term *term)
{
    return term->role == TG_TERM_ACTIVE;
}

/* Announces its number: active, or settling. */
static inline bool tg_term_speaks(const struct tg_term *term)
{
    return term->role == TG_TERM_ACTIVE || term->role == TG_TERM_SETTLING;
}

#endif
