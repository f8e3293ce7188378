// SPDX-License-Identifier: Apache-2.0
#include "services/queue/core_parts.h"

#include <string.h>

/* Nobody can come in early any more: every edge that is heard has said so; whoever does not say it
 * has heard no state for so long that it gives no early ticket. */
static bool early_over(const struct queue_brain *brain, struct tg_mono now)
{
    if (brain->open_term != brain->term->number) {
        return false; /* not open yet, or not seen so by this brain since it acts */
    }
    if (now.ms - brain->open_since.ms >= QUEUE_SHUT_OUT_MS) {
        return true;
    }
    for (size_t i = 0; i < TG_MAX_EDGES; i++) {
        const struct queue_edge *edge = &brain->edges[i];
        bool heard = edge->name[0] != '\0' && now.ms - edge->heard.ms <= QUEUE_EDGE_SILENT_MS;
        if (heard && !edge->early_over) {
            return false;
        }
    }
    return true;
}

static bool may_reveal(const struct queue_brain *brain, const struct queue_roster *roster)
{
    const struct tg_draw *draw = &brain->view.draw;
    bool beacon_known = !brain->view.beacon_promised || draw->beacon_length > 0;
    return draw->frozen && !draw->revealed && roster->secret_known && beacon_known;
}

bool queue_draws(const struct queue_brain *brain)
{
    return queue_acts(brain) && brain->view.order != TG_ORDER_FIFO && brain->view.generation != 0;
}

enum queue_draw_step queue_draw_next(const struct queue_brain *brain, struct tg_mono now,
                                     const struct queue_roster *roster)
{
    if (!queue_draws(brain)) {
        return QUEUE_DRAW_REST;
    }
    if (may_reveal(brain, roster)) {
        return QUEUE_DRAW_REVEAL;
    }
    if (!roster->loaded) {
        return QUEUE_DRAW_LOAD;
    }
    if (brain->view.draw.frozen) {
        return roster->closed ? QUEUE_DRAW_REST : QUEUE_DRAW_CLOSE;
    }
    if (roster->unstored > 0) {
        return QUEUE_DRAW_STORE;
    }
    if (!early_over(brain, now)) {
        return QUEUE_DRAW_REST;
    }
    return roster->closed ? QUEUE_DRAW_FREEZE : QUEUE_DRAW_CLOSE;
}

bool queue_draw_takes(const struct queue_brain *brain, const struct queue_roster *roster)
{
    return queue_draws(brain) && !brain->view.draw.frozen && roster->loaded && !roster->closing;
}

void queue_draw_adopt(struct queue_brain *brain)
{
    const struct tg_draw *draw = &brain->view.draw;
    if (brain->view.order != TG_ORDER_FIFO && draw->frozen) {
        brain->opened = true;
        brain->present_at_open = draw->count;
        brain->index_at_open = draw->index_at_open;
    }
}

bool queue_ranks_known(const struct queue_brain *brain)
{
    return brain->view.order == TG_ORDER_FIFO || brain->view.draw.revealed;
}

/* Under fifo a rank is an index. In a draw the early ones have no indexes any more; the others
 * follow in the order of theirs. */
uint64_t queue_rank_of(const struct queue_brain *brain, uint64_t index)
{
    if (brain->view.order == TG_ORDER_FIFO) {
        return index;
    }
    uint64_t after = index > brain->index_at_open ? index - brain->index_at_open : 0;
    return brain->present_at_open + after;
}
