// SPDX-License-Identifier: Apache-2.0
#include "services/queue/core.h"

#include "services/queue/core_parts.h"

#include <string.h>

void queue_begin(struct queue_brain *brain, struct tg_term *term, struct tg_mono now)
{
    memset(brain, 0, sizeof *brain);
    brain->term = term;
    queue_line_reset(brain, now);
}

static void take_view(struct queue_brain *brain, struct tg_mono now, const struct queue_view *view)
{
    if (view->generation != brain->view.generation) {
        queue_line_reset(brain, now);
    }
    brain->view = *view;
}

static void tick(struct queue_brain *brain, struct queue_now now, const struct queue_event *event)
{
    take_view(brain, now.mono, &event->tick.view);
    brain->connected = event->tick.connected;
    tg_term_tick(brain->term, now.mono, event->tick.connected, event->tick.jitter_ms);
    queue_line_claim(brain, now.mono);
    queue_draw_adopt(brain);
    if (queue_acts(brain) && brain->view.opened) {
        queue_line_open(brain, now.mono);
    }
    queue_watermark_move(brain, now.mono);
}

static void peer(struct queue_brain *brain, struct tg_mono now, const struct queue_event *event)
{
    bool counts = tg_term_heard(brain->term, event->peer.term, event->peer.instance, now);
    if (counts && event->peer.generation == brain->view.generation) {
        brain->evidence = true;
        queue_line_index(brain, now, event->peer.index_end);
        queue_line_saw(brain, event->peer.watermark, event->peer.present_at_open,
                       event->peer.index_at_open);
    }
}

size_t queue_step(struct queue_brain *brain, struct queue_now now, const struct queue_event *event,
                  struct queue_action out_actions[QUEUE_ACTIONS_MAX])
{
    size_t count = 0;
    enum tg_term_role role = brain->term->role;
    uint64_t number = brain->term->number;
    tg_term_check(brain->term, now.mono);
    switch (event->kind) {
    case QUEUE_TICK:
        tick(brain, now, event);
        break;
    case QUEUE_LEASE:
        out_actions[count].kind = QUEUE_DO_GRANT;
        out_actions[count++].grant =
            queue_line_lease(brain, now.mono, event->lease.edge, event->lease.count);
        break;
    case QUEUE_PRESENCE:
        queue_line_presence(brain, now.mono, event);
        break;
    case QUEUE_PEER:
        peer(brain, now.mono, event);
        break;
    case QUEUE_PACE:
        queue_pace_heard(brain, now.mono, event->pace.term, event->pace.pace_milli);
        break;
    case QUEUE_STOCK:
        queue_stock_heard(brain, now.mono, event);
        break;
    }
    if (role != brain->term->role || number != brain->term->number) {
        out_actions[count].kind = QUEUE_DO_ROLE;
        out_actions[count].role.role = brain->term->role;
        out_actions[count++].role.term = brain->term->number;
    }
    if (queue_board_due(brain, now, &out_actions[count].board)) {
        out_actions[count++].kind = QUEUE_DO_BOARD;
    }
    return count;
}
