// SPDX-License-Identifier: Apache-2.0
#include "lib/pure/term.h"

#include <string.h>

static void stand_by(struct tg_term *term, struct tg_mono now)
{
    term->role = TG_TERM_STANDBY;
    term->since = now;
}

void tg_term_begin(struct tg_term *term, const char *instance, struct tg_mono now,
                   uint32_t jitter_ms)
{
    memset(term, 0, sizeof *term);
    strncpy(term->instance, instance, sizeof term->instance - 1);
    term->ran = now;
    term->silence_ms = TG_TERM_SILENCE_MS + (int64_t)(jitter_ms % TG_TERM_JITTER_MS);
    stand_by(term, now);
}

void tg_term_check(struct tg_term *term, struct tg_mono now)
{
    struct tg_mono sure = tg_term_speaks(term) ? term->told : term->ran;
    if (now.ms - sure.ms > TG_TERM_UNSURE_MS) {
        stand_by(term, now);
    }
}

void tg_term_told(struct tg_term *term, struct tg_mono now)
{
    term->told = now;
}

static void advance(struct tg_term *term, struct tg_mono now, uint32_t jitter_ms)
{
    int64_t waited_ms = now.ms - term->since.ms;
    switch (term->role) {
    case TG_TERM_STANDBY:
        if (waited_ms >= term->silence_ms) {
            term->role = TG_TERM_COLLECTING;
            term->since = now;
            term->silence_ms = TG_TERM_SILENCE_MS + (int64_t)(jitter_ms % TG_TERM_JITTER_MS);
        }
        break;
    case TG_TERM_COLLECTING:
        if (waited_ms >= TG_TERM_COLLECT_MS) {
            term->role = TG_TERM_SETTLING;
            term->since = now;
            term->told = now; /* it has a second for its first announcement */
            term->number++;
        }
        break;
    case TG_TERM_SETTLING:
        if (waited_ms >= TG_TERM_SETTLE_MS) {
            term->role = TG_TERM_ACTIVE;
            term->since = now;
        }
        break;
    case TG_TERM_ACTIVE:
        break;
    }
}

void tg_term_tick(struct tg_term *term, struct tg_mono now, bool connected, uint32_t jitter_ms)
{
    tg_term_check(term, now);
    if (!connected) {
        return;
    }
    bool claims = term->role == TG_TERM_COLLECTING || term->role == TG_TERM_SETTLING;
    if (claims && now.ms - term->ran.ms > TG_TERM_DEAF_MS) {
        stand_by(term, now);
    }
    int64_t lost_ms = now.ms - term->ran.ms - TG_TERM_TICK_MS;
    if (lost_ms > 0 && term->since.ms + lost_ms <= now.ms) {
        term->since.ms += lost_ms;
    }
    term->ran = now;
    advance(term, now, jitter_ms);
}

void tg_term_learn(struct tg_term *term, uint64_t number, struct tg_mono now)
{
    if (number <= term->number) {
        return;
    }
    term->number = number;
    if (tg_term_speaks(term)) {
        stand_by(term, now);
    }
}

static int64_t rival_for_ms(struct tg_term *term, struct tg_mono now)
{
    if (now.ms - term->rival_heard.ms > TG_TERM_RIVAL_MS) {
        term->rival_since = now;
    }
    term->rival_heard = now;
    return now.ms - term->rival_since.ms;
}

/* A peer claims our number too. */
static bool yields_to_rival(struct tg_term *term, bool smaller, struct tg_mono now)
{
    int64_t heard_for_ms = rival_for_ms(term, now);
    if (term->role == TG_TERM_SETTLING) {
        term->since = now;
        return smaller || heard_for_ms >= TG_TERM_RIVAL_MS;
    }
    /* one that settles has yielded to us by then */
    return smaller && heard_for_ms >= 2 * TG_TERM_RIVAL_MS;
}

bool tg_term_heard(struct tg_term *term, uint64_t number, const char *instance, struct tg_mono now)
{
    if (number < term->number) {
        return false;
    }
    int order = strcmp(instance, term->instance);
    if (order == 0) {
        tg_term_learn(term, number, now);
        return !tg_term_speaks(term);
    }
    if (number == term->number && tg_term_speaks(term) && !yields_to_rival(term, order < 0, now)) {
        return false;
    }
    term->number = number;
    stand_by(term, now);
    return true;
}
