// SPDX-License-Identifier: Apache-2.0
#include "services/admission/core.h"

#include "services/admission/core_judge.h"

#include <string.h>

void admission_begin(struct admission_brain *brain, struct tg_term *term,
                     const struct admission_keys *keys, const struct admission_goals *goals,
                     const char *sale)
{
    memset(brain, 0, sizeof *brain);
    brain->term = term;
    brain->keys = keys;
    strncpy(brain->sale, sale, sizeof brain->sale - 1);
    admission_control_begin(&brain->control, goals);
}

static bool stock_known(const struct admission_brain *brain, struct tg_mono now)
{
    return brain->stock.known && now.ms - brain->stock.heard.ms <= ADMISSION_STOCK_STALE_MS;
}

static void take_flow(struct admission_brain *brain, struct tg_mono now)
{
    const struct admission_flow flow = {.open = brain->view.phase == TG_PHASE_OPEN &&
                                                stock_known(brain, now),
                                        .scheduled = brain->view.phase == TG_PHASE_SCHEDULED,
                                        .watermark = brain->board.watermark};
    admission_control_flow(&brain->control, now, flow);
}

/* What another generation's board, gate and daemons said does not hold for this one. */
static void take_view(struct admission_brain *brain, struct tg_mono now,
                      const struct admission_view *view)
{
    uint64_t operator_milli = brain->view.bounds.operator_milli;
    if (view->generation != brain->view.generation) {
        memset(&brain->board, 0, sizeof brain->board);
        memset(&brain->stock, 0, sizeof brain->stock);
        admission_control_begin(&brain->control, brain->control.goals);
    } else if (view->bounds.operator_milli != operator_milli && view->bounds.operator_milli > 0) {
        admission_control_override(&brain->control);
    }
    brain->view = *view;
    take_flow(brain, now);
}

/* Lower terms are an old brain's, as long as the newer one is heard. The watermark never goes back:
 * whoever was let through stays so. */
static void hear_board(struct admission_brain *brain, struct tg_mono now,
                       const struct admission_event *event)
{
    bool fresh = brain->board.known && now.ms - brain->board.heard.ms <= ADMISSION_BOARD_STALE_MS;
    if (event->board.generation != brain->view.generation ||
        (fresh && event->board.term < brain->board.term)) {
        return;
    }
    brain->board.known = true;
    brain->board.term = event->board.term;
    brain->board.heard = now;
    if (event->board.watermark > brain->board.watermark) {
        brain->board.watermark = event->board.watermark;
    }
}

static void hear_stock(struct admission_brain *brain, struct tg_mono now,
                       const struct admission_event *event)
{
    if (event->stock.epoch < brain->stock.epoch) {
        return;
    }
    brain->stock.known = event->stock.known;
    brain->stock.epoch = event->stock.epoch;
    brain->stock.heard = now;
    take_flow(brain, now);
}

/* Who sets the pace judges it; who stands by follows. */
static void hear_peer(struct admission_brain *brain, struct tg_mono now,
                      const struct admission_event *event)
{
    bool counts = tg_term_heard(brain->term, event->peer.term, event->peer.instance, now);
    if (counts && brain->term->role == TG_TERM_STANDBY) {
        admission_control_follow(&brain->control, now, event->peer.base_milli,
                                 event->peer.ramp_permille);
    }
}

static void hear_signal(struct admission_brain *brain, struct tg_mono now,
                        const struct admission_event *event)
{
    admission_control_signal(&brain->control, now, &event->signal);
    take_flow(brain, now);
}

struct admission_pace admission_pace_now(const struct admission_brain *brain, struct tg_mono now)
{
    struct admission_pace pace = admission_control_pace(&brain->control, now, &brain->view.bounds);
    bool open = brain->view.phase == TG_PHASE_OPEN;
    pace.term = brain->term->number;
    if (!open || !stock_known(brain, now)) {
        pace.pace_milli = 0;
        pace.limiting = open ? ADMISSION_BY_STOCK : ADMISSION_BY_STATE;
    }
    return pace;
}

uint64_t admission_want(const struct admission_brain *brain, struct tg_mono now)
{
    struct admission_pace pace = admission_pace_now(brain, now);
    return pace.pace_milli > 0 ? admission_control_want(&brain->control, &brain->view.bounds) : 0;
}

/* What the queue should not wait for: a freeze, a thaw, another signal, a tenth less. */
static bool differs(const struct admission_pace *pace, const struct admission_pace *told)
{
    return pace->term != told->term || (pace->pace_milli == 0) != (told->pace_milli == 0) ||
           pace->limiting != told->limiting ||
           pace->pace_milli < told->pace_milli - told->pace_milli / 10;
}

/* Every 250 ms, and at once when it must not wait. */
static bool pace_due(struct admission_brain *brain, struct tg_mono now,
                     struct admission_pace *out_pace)
{
    if (!brain->connected || !tg_term_speaks(brain->term) || brain->view.generation == 0) {
        return false;
    }
    struct admission_pace pace = admission_pace_now(brain, now);
    if (!tg_term_acts(brain->term)) {
        pace.pace_milli = 0; /* announces itself, does not let anybody in yet */
    }
    bool same = brain->told_any && !differs(&pace, &brain->told);
    if (same && now.ms - brain->told_at.ms < ADMISSION_PACE_EVERY_MS) {
        return false;
    }
    brain->told_any = true;
    brain->told = pace;
    brain->told_at = now;
    tg_term_told(brain->term, now);
    *out_pace = pace;
    return true;
}

size_t admission_step(struct admission_brain *brain, struct admission_now now,
                      const struct admission_event *event,
                      struct admission_action out_actions[ADMISSION_ACTIONS_MAX])
{
    size_t count = 0;
    enum tg_term_role role = brain->term->role;
    uint64_t number = brain->term->number;
    tg_term_check(brain->term, now.mono);
    switch (event->kind) {
    case ADMISSION_TICK:
        take_view(brain, now.mono, &event->tick.view);
        brain->connected = event->tick.connected;
        tg_term_tick(brain->term, now.mono, event->tick.connected, event->tick.jitter_ms);
        if (tg_term_acts(brain->term)) {
            admission_control_turn(&brain->control, now.mono, &brain->view.bounds,
                                   brain->board.watermark);
        }
        break;
    case ADMISSION_ASK:
        take_view(brain, now.mono, &event->ask.view);
        out_actions[count].kind = ADMISSION_DO_ANSWER;
        admission_judge(brain, now, event, &out_actions[count++].answer);
        break;
    case ADMISSION_BOARD:
        hear_board(brain, now.mono, event);
        break;
    case ADMISSION_PEER:
        hear_peer(brain, now.mono, event);
        break;
    case ADMISSION_STOCK:
        hear_stock(brain, now.mono, event);
        break;
    case ADMISSION_LOAD:
        admission_control_load(&brain->control, now.mono, &event->load);
        break;
    case ADMISSION_SIGNAL:
        hear_signal(brain, now.mono, event);
        break;
    }
    if (role != brain->term->role || number != brain->term->number) {
        out_actions[count].kind = ADMISSION_DO_ROLE;
        out_actions[count].role.role = brain->term->role;
        out_actions[count++].role.term = brain->term->number;
    }
    if (pace_due(brain, now.mono, &out_actions[count].pace)) {
        out_actions[count++].kind = ADMISSION_DO_PACE;
    }
    return count;
}

const char *admission_limiting_name(enum admission_limiting limiting)
{
    static const char *const names[] = {
        [ADMISSION_BY_STATE] = "state",         [ADMISSION_BY_STOCK] = "stock",
        [ADMISSION_BY_SIGNAL] = "signal",       [ADMISSION_BY_UNKNOWN] = "unknown",
        [ADMISSION_BY_START] = "start",         [ADMISSION_BY_OPERATOR] = "operator",
        [ADMISSION_BY_EDGE] = "edge",           [ADMISSION_BY_GATE] = "gate",
        [ADMISSION_BY_LEDGER] = "ledger",       [ADMISSION_BY_ERRORS] = "errors",
        [ADMISSION_BY_IN_FLIGHT] = "in_flight", [ADMISSION_BY_DEMAND] = "demand",
        [ADMISSION_BY_RISING] = "rising",       [ADMISSION_BY_MAXIMUM] = "maximum",
        [ADMISSION_BY_BUDGET] = "budget",       [ADMISSION_BY_RAMP] = "ramp",
    };
    return names[limiting];
}
