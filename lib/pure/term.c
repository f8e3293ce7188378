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
    term->sure = now;
    term->silence_ms = TG_TERM_SILENCE_MS + (int64_t)(jitter_ms % TG_TERM_JITTER_MS);
    stand_by(term, now);
}

void tg_term_check(struct tg_term *term, struct tg_mono now)
{
    if (now.ms - term->sure.ms > TG_TERM_UNSURE_MS) {
        stand_by(term, now);
    }
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
    term->sure = now;
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
    if (number == term->number && tg_term_speaks(term) && order > 0) {
        return false;
    }
    term->number = number;
    stand_by(term, now);
    return true;
}
