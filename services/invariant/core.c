/* SPDX-License-Identifier: Apache-2.0 */
#include "services/invariant/core.h"

#include <stdio.h>
#include <string.h>

/* ---- rounds ---- */

static void begin(struct invariant_sale *sale, const struct tg_sale *view, struct tg_mono now)
{
    const uint32_t number = sale->round.number + 1;
    sale->round = (struct invariant_round){.step = INVARIANT_SERVER,
                                           .number = number,
                                           .epoch = view->epoch,
                                           .generation = view->generation,
                                           .shards = view->shards,
                                           .begun = now};
    if (sale->last_epoch != view->epoch) {
        sale->last_epoch = view->epoch;
        memset(sale->logs, 0, sizeof sale->logs);
        sale->unacked.count = 0;
        sale->unobeyed.count = 0;
        sale->orphans.count = 0;
    }
}

enum invariant_turn invariant_turn(struct invariant_sale *sale, const struct tg_sale *view,
                                   struct tg_mono now, bool reachable)
{
    if (reachable) { /* also between two turns: a checker stopped at both had it in between */
        sale->unreachable_turns = 0;
    }
    if (sale->round.step != INVARIANT_REST || now.ms < sale->next_round.ms) {
        return INVARIANT_TURN_NONE;
    }
    const bool watched = view->armed && view->phase != TG_PHASE_CLOSED &&
                         view->phase != TG_PHASE_UNKNOWN && view->shards >= 1 &&
                         view->shards <= INVARIANT_SHARDS_MAX;
    if (!watched) {
        sale->unreachable_turns = 0;
        return INVARIANT_TURN_NONE;
    }
    sale->next_round.ms = now.ms + view->proof_every_ms;
    if (!reachable && now.ms - view->heard.ms > INVARIANT_DEAF_MS) {
        sale->unreachable_turns = 0;
        sale->spared_turns = INVARIANT_SPARED_TURNS;
        return INVARIANT_TURN_NONE;
    }
    if (!reachable && sale->spared_turns > 0) {
        sale->spared_turns--;
        return INVARIANT_TURN_NONE;
    }
    if (!reachable) {
        sale->unreachable_turns++;
        return sale->unreachable_turns >= INVARIANT_UNREACHABLE_TURNS ? INVARIANT_TURN_LOST
                                                                      : INVARIANT_TURN_NONE;
    }
    sale->spared_turns = 0;
    begin(sale, view, now);
    return INVARIANT_TURN_ROUND;
}

void invariant_rest(struct invariant_sale *sale)
{
    sale->round.step = INVARIANT_REST;
}

/* After the last read of a shard: its next shard, or the next part of the round. */
static void next_shard(struct invariant_round *round, enum invariant_step first,
                       enum invariant_step after)
{
    if (round->shard + 1 < round->shards) {
        round->shard++;
        round->step = first;
    } else {
        round->shard = 0;
        round->step = after;
    }
}

static void after_look1(struct invariant_sale *sale, enum invariant_result result)
{
    struct invariant_round *round = &sale->round;
    if (result == INVARIANT_LACKING) {
        /* Nothing more to read there; whether that is a loss, only the ledger's word on the epoch
         * can tell. */
        round->shard = 0;
        round->step = INVARIANT_LEDGER;
    } else {
        round->step = sale->logs[round->shard].placed ? INVARIANT_LOG : INVARIANT_HEAD;
    }
}

static void after_log(struct invariant_sale *sale, enum invariant_result result)
{
    struct invariant_round *round = &sale->round;
    round->log_torn |= result == INVARIANT_TORN;
    round->step = result == INVARIANT_LACKING ? INVARIANT_FILL : INVARIANT_HELD1;
}

/* Entries leave the stream only after the ledger stored them. So what a read of the stream lacked
 * is in the ledger when asked afterwards, or it is nowhere. With what was found there the stream is
 * read again: it may have been trimmed once more. */
static void after_fill(struct invariant_sale *sale, enum invariant_result result)
{
    struct invariant_round *round = &sale->round;
    const bool torn = result == INVARIANT_LACKING || result == INVARIANT_TORN;
    round->log_torn |= torn;
    round->step = torn ? INVARIANT_HELD1 : INVARIANT_LOG;
}

static void garbage(struct invariant_round *round)
{
    round->looked += round->step == INVARIANT_LOOK1;
    round->garbage = true;
    round->shard = 0;
    round->step = INVARIANT_LEDGER;
}

void invariant_advance(struct invariant_sale *sale, enum invariant_result result)
{
    struct invariant_round *round = &sale->round;
    if (result == INVARIANT_UNREAD) {
        round->step = INVARIANT_REST;
        return;
    }
    if (result == INVARIANT_GARBAGE) {
        if (round->step < INVARIANT_LEDGER) {
            garbage(round);
        } else {
            round->garbage = true;
            round->step = INVARIANT_JUDGE;
        }
        return;
    }
    switch (round->step) {
    case INVARIANT_REST:
    case INVARIANT_JUDGE:
        break;
    case INVARIANT_SERVER:
    case INVARIANT_HEAD:
    case INVARIANT_HELD1:
    case INVARIANT_UNACKED1:
    case INVARIANT_SETTLED1:
    case INVARIANT_HELD2:
    case INVARIANT_SETTLED2:
    case INVARIANT_RELEASED2:
    case INVARIANT_FREE2:
        round->step++; /* the steps are in the proof's order */
        break;
    case INVARIANT_LOOK1:
        round->looked++;
        after_look1(sale, result);
        break;
    case INVARIANT_LOG:
        after_log(sale, result);
        break;
    case INVARIANT_FILL:
        after_fill(sale, result);
        break;
    case INVARIANT_RELEASED1:
        round->complete = round->shard + 1 == round->shards;
        next_shard(round, INVARIANT_LOOK1, INVARIANT_BUYERS);
        break;
    case INVARIANT_BUYERS:
        next_shard(round, INVARIANT_BUYERS,
                   round->ledger_read ? INVARIANT_HELD2 : INVARIANT_LEDGER);
        break;
    case INVARIANT_LEDGER:
        round->step = round->complete ? INVARIANT_HELD2 : INVARIANT_JUDGE;
        break;
    case INVARIANT_LOOK2:
        next_shard(round, INVARIANT_HELD2, INVARIANT_JUDGE);
        break;
    }
}

/* ---- the pause ---- */

static bool shown(const struct tg_sale *view, const char *id)
{
    for (uint32_t i = 0; i < view->pause_count; i++) {
        if (strcmp(view->pauses[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

void invariant_alarm(struct invariant_sale *sale, const struct tg_sale *view, const char *new_id,
                     const char *cause)
{
    struct invariant_pause *pause = &sale->pause;
    if (pause->generation == view->generation && pause->id[0] != '\0' &&
        (pause->wanted || shown(view, pause->id))) {
        return; /* on its way, or in force */
    }
    *pause = (struct invariant_pause){.wanted = true, .generation = view->generation};
    (void)snprintf(pause->id, sizeof pause->id, "%s", new_id);
    (void)snprintf(pause->cause, sizeof pause->cause, "%s", cause);
}

static bool lifted(const struct tg_sale *view, const char *id)
{
    for (uint32_t i = 0; i < view->lifted_count; i++) {
        if (strcmp(view->lifted[i], id) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- pauses the ledger lacks ---- */

static bool unknown(const struct tg_sale *view, const char *pause_id)
{
    return !shown(view, pause_id) && !lifted(view, pause_id);
}

bool invariant_orphan(const struct invariant_sale *sale, const struct tg_sale *view,
                      const char *pause_id)
{
    for (uint32_t i = 0; i < sale->orphans.count; i++) {
        if (strcmp(sale->orphans.ids[i], pause_id) == 0) {
            return unknown(view, pause_id);
        }
    }
    return false;
}

void invariant_orphans_end(struct invariant_sale *sale, const struct tg_sale *view,
                           const struct tg_pause *pauses, uint32_t count)
{
    sale->orphans.count = 0;
    for (uint32_t i = 0; i < count && sale->orphans.count < INVARIANT_ORPHANS_MAX; i++) {
        if (unknown(view, pauses[i].id)) {
            memcpy(sale->orphans.ids[sale->orphans.count++], pauses[i].id, sizeof pauses[i].id);
        }
    }
}

bool invariant_pause_due(struct invariant_sale *sale, const struct tg_sale *view,
                         struct tg_mono now)
{
    struct invariant_pause *pause = &sale->pause;
    if (!pause->wanted) {
        return false;
    }
    if (pause->generation != view->generation || view->phase == TG_PHASE_CLOSED ||
        shown(view, pause->id) || lifted(view, pause->id)) {
        pause->wanted = false;
        return false;
    }
    if (now.ms < pause->next.ms) {
        return false;
    }
    pause->next.ms = now.ms + INVARIANT_PAUSE_EVERY_MS;
    return true;
}

/* ---- telling ---- */

static size_t put(char *out_text, size_t capacity, size_t length, const char *text)
{
    const size_t room = capacity - 1 - length;
    const size_t wanted = strlen(text);
    const size_t taken = wanted < room ? wanted : room;
    memcpy(out_text + length, text, taken);
    out_text[length + taken] = '\0';
    return length + taken;
}

size_t invariant_detail(const struct invariant_judgement *judgement, char *out_text,
                        size_t capacity)
{
    size_t length = 0;
    out_text[0] = '\0';
    if (judgement->outcome == INVARIANT_VOID) {
        return put(out_text, capacity, 0, judgement->void_note);
    }
    for (int check = 0; check < INVARIANT_CHECKS; check++) {
        const struct invariant_finding *finding = &judgement->findings[check];
        if (finding->failures == 0) {
            continue;
        }
        char head[32];
        (void)snprintf(head, sizeof head, "%s%s (%u): ", length > 0 ? "; " : "",
                       invariant_check_name((enum invariant_check)check), finding->failures);
        length = put(out_text, capacity, length, head);
        length = put(out_text, capacity, length, finding->note);
        for (uint32_t i = 0; i < finding->id_count; i++) {
            char id[TG_BASE32_ID_LENGTH + 1];
            tg_base32_id_encode(finding->ids[i], id);
            length = put(out_text, capacity, length, i == 0 ? ": res_" : ", res_");
            length = put(out_text, capacity, length, id);
        }
    }
    return length;
}

uint32_t invariant_linger(struct invariant_linger *linger, struct tg_mono now, int64_t limit_ms,
                          const uint8_t (*ids)[INVARIANT_ID_BYTES], uint32_t count,
                          uint8_t out_id[INVARIANT_ID_BYTES])
{
    if (linger->count > 0 && now.ms - linger->since.ms < limit_ms) {
        return 0;
    }
    uint32_t found = 0, at = 0;
    for (uint32_t i = 0; i < linger->count; i++) {
        while (at < count && memcmp(ids[at], linger->ids[i], INVARIANT_ID_BYTES) < 0) {
            at++;
        }
        if (at < count && memcmp(ids[at], linger->ids[i], INVARIANT_ID_BYTES) == 0) {
            memcpy(out_id, ids[at], INVARIANT_ID_BYTES);
            found++;
        }
    }
    linger->since = now;
    linger->count = count < INVARIANT_LINGER_MAX ? count : INVARIANT_LINGER_MAX;
    memcpy(linger->ids, ids, linger->count * sizeof ids[0]);
    return found;
}
