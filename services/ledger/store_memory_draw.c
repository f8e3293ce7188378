/* SPDX-License-Identifier: Apache-2.0
 * The twin's draws: what 0010_draw.sql decides. */
#include "services/ledger/store_memory_parts.h"

#include <string.h>

static uint64_t roster_end(const struct memory_sale *sale)
{
    const struct memory_page *last = &sale->roster[sale->page_count - 1];
    return sale->page_count == 0 ? 0 : last->first + last->count;
}

static enum tg_reason append(struct memory_sale *sale, const struct ledger_draw_ask *ask)
{
    if (sale->told.sale.draw.frozen) {
        return TG_REASON_NOT_ALLOWED_NOW;
    }
    if (ask->first != roster_end(sale)) {
        return TG_REASON_GAP;
    }
    sale->roster =
        memory_grow(sale->roster, sale->page_count, &sale->page_room, sizeof *sale->roster);
    struct memory_page *page = &sale->roster[sale->page_count++];
    page->first = ask->first;
    page->count = ask->count;
    memcpy(page->entrants, ask->entrants, sizeof page->entrants);
    return TG_REASON_NONE;
}

static void read(const struct memory_sale *sale, uint64_t first, struct ledger_drawn *out_drawn)
{
    for (uint32_t i = 0; i < sale->page_count; i++) {
        const struct memory_page *page = &sale->roster[i];
        if (page->first == first) {
            out_drawn->count = page->count;
            memcpy(out_drawn->entrants, page->entrants, sizeof out_drawn->entrants);
        }
    }
}

static enum tg_reason freeze(struct memory_sale *sale, const struct ledger_draw_ask *ask)
{
    struct tg_draw *draw = &sale->told.sale.draw;
    if (draw->frozen) {
        return draw->count == ask->draw.count &&
                       memcmp(draw->root, ask->draw.root, sizeof draw->root) == 0
                   ? TG_REASON_NONE
                   : TG_REASON_NOT_ALLOWED_NOW;
    }
    if (ask->first != roster_end(sale)) {
        return TG_REASON_GAP;
    }
    if (!sale->opened) {
        return TG_REASON_NOT_ALLOWED_NOW;
    }
    *draw = ask->draw;
    draw->frozen = true;
    return TG_REASON_NONE;
}

static bool same_beacon(const struct tg_draw *a, const struct tg_draw *b)
{
    return a->beacon_length == b->beacon_length &&
           memcmp(a->beacon, b->beacon, a->beacon_length) == 0;
}

static enum tg_reason reveal(struct memory_sale *sale, const struct ledger_draw_ask *ask)
{
    const struct tg_sale *told = &sale->told.sale;
    struct tg_draw *draw = &sale->told.sale.draw;
    uint8_t commitment[TG_DRAW_BYTES];
    tg_draw_commit(ask->draw.secret, commitment);
    const bool promised = told->beacon[0] != '\0' && draw->beacon_length == 0;
    const bool another =
        draw->revealed && memcmp(draw->seed, ask->draw.seed, sizeof draw->seed) != 0;
    if (!draw->frozen || memcmp(commitment, told->commitment, sizeof commitment) != 0 ||
        !same_beacon(draw, &ask->draw) || promised || another) {
        return TG_REASON_NOT_ALLOWED_NOW;
    }
    memcpy(draw->secret, ask->draw.secret, sizeof draw->secret);
    memcpy(draw->seed, ask->draw.seed, sizeof draw->seed);
    draw->revealed = true;
    return TG_REASON_NONE;
}

static void tell_drawn(struct store_memory *store, const struct memory_answer *answer, int status)
{
    store->answers.drawn(store->answers.context, answer->token, status,
                         (const struct ledger_drawn *)answer->rows);
}

static enum tg_reason step(struct memory_sale *sale, const struct ledger_draw_ask *ask,
                           struct ledger_drawn *out_drawn)
{
    switch (ask->step) {
    case LEDGER_ROSTER_APPEND:
        return append(sale, ask);
    case LEDGER_ROSTER_READ:
        read(sale, ask->first, out_drawn);
        return TG_REASON_NONE;
    case LEDGER_DRAW_FREEZE:
        return freeze(sale, ask);
    case LEDGER_DRAW_REVEAL:
        break;
    }
    return reveal(sale, ask);
}

int memory_draw(void *self, const struct ledger_draw_ask *ask, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer =
        memory_answer_new(store, token, sizeof(struct ledger_drawn), tell_drawn);
    struct ledger_drawn *drawn = (struct ledger_drawn *)answer->rows;
    struct memory_sale *sale = memory_sale_find(store, ask->sale);
    if (sale == NULL || sale->told.sale.generation != ask->generation ||
        !tg_sale_draws(&sale->told.sale)) {
        drawn->reason = TG_REASON_SALE_UNKNOWN;
        return 0;
    }
    drawn->reason = step(sale, ask, drawn);
    drawn->stored = roster_end(sale);
    return 0;
}
