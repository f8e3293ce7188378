// SPDX-License-Identifier: Apache-2.0
#include "services/queue/core_parts.h"

#include "lib/pure/rank.h"

#include <string.h>

/* Indexes edges have in hand: an edge asks again when it has begun its last block, so it never has
 * more than its last two. */
static uint64_t unused_of(const struct queue_brain *brain, struct tg_mono now)
{
    uint64_t unused = 0;
    for (size_t i = 0; i < TG_MAX_EDGES; i++) {
        const struct queue_edge *edge = &brain->edges[i];
        if (edge->name[0] != '\0' && now.ms - edge->heard.ms <= QUEUE_EDGE_SILENT_MS) {
            uint64_t most = (uint64_t)edge->block + edge->before;
            unused += edge->unused < most ? edge->unused : most;
        }
    }
    return unused;
}

/* Places given and not yet let through: without the indexes no ticket is known for. */
static uint64_t waiting_of(const struct queue_brain *brain, struct tg_mono now)
{
    const uint64_t end =
        queue_ranks_known(brain) ? queue_rank_of(brain, brain->index_end) : brain->index_end;
    uint64_t ranks = end > brain->watermark ? end - brain->watermark : 0;
    uint64_t nobody = unused_of(brain, now) + queue_gap_within(brain, brain->watermark, end);
    return ranks > nobody ? ranks - nobody : 0;
}

/* Advice for everybody at once: whoever stands at a quarter of the line. Those further ahead reckon
 * their own. */
static uint32_t poll_of(const struct queue_board *board, struct tg_wall now)
{
    if (board->phase == TG_PHASE_SCHEDULED) {
        int64_t seconds = (board->opens_at.ms - now.ms) / 2000;
        return seconds < 1 ? 1 : (uint32_t)(seconds > 30 ? 30 : seconds);
    }
    return tg_poll_seconds(board->waiting / 4, board->pace_milli, board->remaining);
}

static enum tg_reason notice_of(const struct queue_brain *brain, struct tg_mono now)
{
    if (brain->view.phase == TG_PHASE_PAUSED) {
        return TG_REASON_NOTICE_PAUSED;
    }
    bool all_held = brain->view.phase == TG_PHASE_OPEN && queue_stock_fresh(brain, now) &&
                    brain->stock.free == 0 && brain->stock.held > 0;
    return all_held ? TG_REASON_NOTICE_ALL_HELD : TG_REASON_NONE;
}

static struct queue_board compose(const struct queue_brain *brain, struct queue_now now)
{
    struct queue_board board = {.generation = brain->view.generation,
                                .term = brain->term->number,
                                .phase = brain->view.phase,
                                .opens_at = brain->view.opens_at,
                                .watermark = brain->watermark,
                                .present_at_open = brain->present_at_open,
                                .index_at_open = brain->index_at_open,
                                .pace_milli = queue_pace_told(brain, now.mono),
                                .waiting = waiting_of(brain, now.mono),
                                .remaining = brain->stock.free,
                                .held = brain->stock.held,
                                .index_end = brain->index_end,
                                .notice = notice_of(brain, now.mono),
                                .order = brain->view.order,
                                .revealed = brain->view.draw.revealed};
    memcpy(board.seed, brain->view.draw.seed, sizeof board.seed);
    board.poll_seconds = poll_of(&board, now.wall);
    return board;
}

static bool same_line(const struct queue_board *a, const struct queue_board *b)
{
    return a->watermark == b->watermark && a->present_at_open == b->present_at_open &&
           a->index_at_open == b->index_at_open && a->index_end == b->index_end &&
           a->pace_milli == b->pace_milli && a->waiting == b->waiting &&
           a->remaining == b->remaining && a->held == b->held && a->poll_seconds == b->poll_seconds;
}

/* Changes people must not wait for. */
static bool same_state(const struct queue_board *a, const struct queue_board *b)
{
    return a->generation == b->generation && a->term == b->term && a->phase == b->phase &&
           a->opens_at.ms == b->opens_at.ms && a->notice == b->notice &&
           a->revealed == b->revealed && (a->remaining == 0) == (b->remaining == 0);
}

bool queue_board_due(struct queue_brain *brain, struct queue_now now, struct queue_board *out_board)
{
    if (!brain->connected || !tg_term_speaks(brain->term) ||
        brain->claimed != brain->term->number || brain->view.generation == 0) {
        return false;
    }
    struct queue_board board = compose(brain, now);
    bool urgent = !brain->told_any || !same_state(&board, &brain->told);
    if (!urgent && now.mono.ms - brain->told_at.ms < QUEUE_BOARD_EVERY_MS) {
        return false;
    }
    bool changed = urgent || !same_line(&board, &brain->told);
    board.version = brain->told_any ? brain->told.version + (changed ? 1 : 0) : 1;
    brain->told = board;
    brain->told_at = now.mono;
    brain->told_any = true;
    tg_term_told(brain->term, now.mono);
    *out_board = board;
    return true;
}
