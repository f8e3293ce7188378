// SPDX-License-Identifier: Apache-2.0
#include "services/queue/core_parts.h"

#include "lib/pure/number.h"

#include <string.h>

void queue_line_reset(struct queue_brain *brain, struct tg_mono now)
{
    brain->witnessed = brain->view.generation != 0 && queue_acts(brain);
    brain->seen = now;
    brain->claimed = 0;
    brain->evidence = false;
    brain->index_end = 0;
    brain->watermark = 0;
    brain->opened = false;
    brain->open_term = 0;
    brain->present_at_open = 0;
    brain->index_at_open = 0;
    brain->gap_from = 0;
    brain->gap_to = 0;
    brain->moved = now;
    brain->credit_micro = 0;
    queue_presence_reset(brain, now);
    memset(&brain->stock, 0, sizeof brain->stock);
    memset(brain->edges, 0, sizeof brain->edges);
}

/* As many as edges may have leased lately without anybody having told: what they lease follows
 * arrivals, so this does. */
static uint64_t gap_of(const struct queue_brain *brain, struct tg_mono now)
{
    uint64_t arrivals = 0;
    for (size_t i = 0; i < TG_MAX_EDGES; i++) {
        const struct queue_edge *edge = &brain->edges[i];
        if (edge->name[0] != '\0' && now.ms - edge->heard.ms < QUEUE_ARRIVALS_FRESH_MS) {
            arrivals += edge->arrivals;
        }
    }
    uint64_t gap = arrivals * 2 + QUEUE_GAP_MIN;
    return gap < TG_MAX_LEASE_INDEXES ? gap : TG_MAX_LEASE_INDEXES;
}

void queue_line_claim(struct queue_brain *brain, struct tg_mono now)
{
    bool collected = now.ms - brain->seen.ms >= QUEUE_COLLECT_MS;
    if (!tg_term_speaks(brain->term) || brain->claimed == brain->term->number || !collected) {
        return;
    }
    brain->gap_from = tg_larger(brain->index_end, brain->watermark);
    brain->gap_to = brain->gap_from + (brain->evidence ? gap_of(brain, now) : 0);
    brain->index_end = brain->gap_to;
    brain->claimed = brain->term->number;
    brain->evidence = true;
    brain->moved = now;
    brain->credit_micro = 0;
    brain->told_any = false;
}

static struct queue_edge *edge_find(struct queue_brain *brain, struct tg_mono now, const char *name)
{
    struct queue_edge *spare = NULL;
    for (size_t i = 0; i < TG_MAX_EDGES; i++) {
        struct queue_edge *edge = &brain->edges[i];
        if (strcmp(edge->name, name) == 0) {
            return edge;
        }
        bool silent = edge->name[0] == '\0' || now.ms - edge->heard.ms > QUEUE_EDGE_SILENT_MS;
        if (spare == NULL && silent) {
            spare = edge;
        }
    }
    if (spare != NULL) {
        memset(spare, 0, sizeof *spare);
        strncpy(spare->name, name, sizeof spare->name - 1);
        spare->heard = now;
    }
    return spare;
}

/* Follows the rate at which this edge uses its blocks up, so that a lost block is a small gap
 * unless arrivals are many. */
static uint32_t block_of(const struct queue_edge *edge, struct tg_mono now)
{
    uint32_t block = edge->block;
    int64_t since_ms = now.ms - edge->leased.ms;
    if (block == 0) {
        block = QUEUE_BLOCK_MIN;
    } else if (since_ms < QUEUE_BLOCK_FAST_MS) {
        block *= 4;
    }
    for (; since_ms >= QUEUE_BLOCK_SLOW_MS && block > QUEUE_BLOCK_MIN;
         since_ms -= QUEUE_BLOCK_SLOW_MS) {
        block /= 2;
    }
    if (now.ms - edge->heard.ms < QUEUE_ARRIVALS_FRESH_MS && edge->arrivals > block) {
        block = edge->arrivals;
    }
    return (uint32_t)tg_smaller(block < QUEUE_BLOCK_MIN ? QUEUE_BLOCK_MIN : block,
                                TG_MAX_LEASE_INDEXES);
}

static enum tg_reason lease_refusal(const struct queue_brain *brain)
{
    if (brain->view.phase == TG_PHASE_UNKNOWN || brain->view.generation == 0) {
        return TG_REASON_SALE_UNKNOWN;
    }
    if (brain->view.phase == TG_PHASE_CLOSED) {
        return TG_REASON_SALE_CLOSED;
    }
    return queue_acts(brain) ? TG_REASON_NONE : TG_REASON_NOT_MINE;
}

struct queue_grant queue_line_lease(struct queue_brain *brain, struct tg_mono now, const char *edge,
                                    uint32_t count)
{
    struct queue_grant grant = {.reason = lease_refusal(brain),
                                .term = brain->term->number,
                                .generation = brain->view.generation,
                                .opened = brain->view.opened};
    if (grant.reason != TG_REASON_NONE) {
        return grant;
    }
    struct queue_edge *row = edge_find(brain, now, edge);
    uint32_t block = row == NULL ? QUEUE_BLOCK_MIN : block_of(row, now);
    grant.first = brain->index_end;
    grant.count = (uint32_t)tg_smaller(count, block);
    if (row != NULL) {
        row->before = row->block;
        row->block = block;
        row->leased = now;
        row->unused += grant.count;
    }
    brain->index_end += grant.count;
    return grant;
}

void queue_line_saw(struct queue_brain *brain, uint64_t watermark, uint64_t present_at_open,
                    uint64_t index_at_open)
{
    brain->watermark = tg_larger(brain->watermark, watermark);
    brain->index_end = tg_larger(brain->index_end, brain->watermark);
    if (!brain->opened && index_at_open > 0) {
        brain->opened = true;
        brain->present_at_open = present_at_open;
        brain->index_at_open = index_at_open;
    }
}

/* An index beyond ours was leased by an earlier term (or is in an old ticket): ours go on behind
 * it. */
void queue_line_index(struct queue_brain *brain, struct tg_mono now, uint64_t index_end)
{
    if (index_end <= brain->index_end) {
        return;
    }
    brain->index_end = index_end;
    if (brain->claimed == brain->term->number) {
        brain->gap_from = index_end;
        brain->index_end += gap_of(brain, now);
        brain->gap_to = brain->index_end;
    }
}

static void hear_edge(struct queue_edge *row, struct tg_mono now, const struct queue_event *event)
{
    uint64_t tickets = event->presence.tickets;
    uint64_t arrivals = event->presence.arrivals;
    uint64_t before = row->tickets <= tickets ? row->tickets : 0; /* it restarted */
    uint64_t given = tickets - before;
    row->unused -= given < row->unused ? given : row->unused;
    row->heard = now;
    row->tickets = tickets;
    row->early_over = event->presence.early_over;
    row->arrivals = arrivals < TG_MAX_LEASE_INDEXES ? (uint32_t)arrivals : TG_MAX_LEASE_INDEXES;
}

void queue_line_presence(struct queue_brain *brain, struct tg_mono now,
                         const struct queue_event *event)
{
    tg_term_learn(brain->term, event->presence.board_term, now);
    if (event->presence.generation != brain->view.generation) {
        return;
    }
    /* the term an edge tells may be of a board of the generation before */
    bool seen_board = event->presence.board_term > 0 && !brain->witnessed;
    brain->evidence = brain->evidence || seen_board || event->presence.index_end > 0;
    struct queue_edge *row = edge_find(brain, now, event->presence.edge);
    if (row != NULL) {
        hear_edge(row, now, event);
    }
    queue_presence_asked(&brain->presence, event->presence.passes_asked);
    queue_line_index(brain, now, event->presence.index_end);
    queue_line_saw(brain, event->presence.board_watermark, event->presence.present_at_open,
                   event->presence.index_at_open);
}

/* Under fifo the tickets given by then are told for information; of a draw it is the roster that
 * counts, and what was leased before dies. */
void queue_line_open(struct queue_brain *brain, struct tg_mono now)
{
    if (brain->open_term != brain->term->number) {
        brain->open_term = brain->term->number;
        brain->open_since = now;
    }
    if (brain->opened) {
        return;
    }
    uint64_t tickets = 0;
    for (size_t i = 0; i < TG_MAX_EDGES; i++) {
        tickets += brain->edges[i].tickets;
    }
    brain->opened = true;
    brain->index_at_open = brain->index_end;
    if (brain->view.order != TG_ORDER_FIFO) {
        for (size_t i = 0; i < TG_MAX_EDGES; i++) {
            brain->edges[i].unused = 0;
        }
        return;
    }
    brain->present_at_open = tickets < brain->index_end ? tickets : brain->index_end;
}
