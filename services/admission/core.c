// SPDX-License-Identifier: Apache-2.0
#include "services/admission/core.h"

#include "services/admission/core_judge.h"

#include <string.h>

void admission_begin(struct admission_brain *brain, struct tg_term *term,
                     const struct admission_keys *keys, const char *sale)
{
    memset(brain, 0, sizeof *brain);
    brain->term = term;
    brain->keys = keys;
    strncpy(brain->sale, sale, sizeof brain->sale - 1);
}

/* What another generation's board and gate said does not hold for this one. */
static void take_view(struct admission_brain *brain, const struct admission_view *view)
{
    if (view->generation != brain->view.generation) {
        memset(&brain->board, 0, sizeof brain->board);
        memset(&brain->stock, 0, sizeof brain->stock);
    }
    brain->view = *view;
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
    brain->board.present_at_open = event->board.present_at_open;
    brain->board.index_at_open = event->board.index_at_open;
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
}

struct admission_pace admission_pace_now(const struct admission_brain *brain, struct tg_mono now)
{
    const struct admission_view *view = &brain->view;
    struct admission_pace pace = {.term = brain->term->number};
    bool stock_known =
        brain->stock.known && now.ms - brain->stock.heard.ms <= ADMISSION_STOCK_STALE_MS;
    if (view->phase != TG_PHASE_OPEN) {
        pace.limiting = ADMISSION_BY_STATE;
        return pace;
    }
    if (!stock_known) {
        pace.limiting = ADMISSION_BY_STOCK;
        return pace;
    }
    bool by_operator = view->pace_operator_milli > 0;
    pace.limiting = by_operator ? ADMISSION_BY_OPERATOR : ADMISSION_BY_START;
    pace.pace_milli = by_operator ? view->pace_operator_milli : view->pace_start_milli;
    if (pace.pace_milli < view->pace_min_milli) {
        pace.pace_milli = view->pace_min_milli;
    }
    if (pace.pace_milli > view->pace_max_milli) {
        pace.pace_milli = view->pace_max_milli;
    }
    return pace;
}

/* Every 250 ms, and at once when the pace changes: a freeze does not wait. */
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
    bool same = brain->told_any && pace.term == brain->told.term &&
                pace.pace_milli == brain->told.pace_milli;
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
        take_view(brain, &event->tick.view);
        brain->connected = event->tick.connected;
        tg_term_tick(brain->term, now.mono, event->tick.connected, event->tick.jitter_ms);
        break;
    case ADMISSION_ASK:
        take_view(brain, &event->ask.view);
        out_actions[count].kind = ADMISSION_DO_ANSWER;
        admission_judge(brain, now, event, &out_actions[count++].answer);
        break;
    case ADMISSION_BOARD:
        hear_board(brain, now.mono, event);
        break;
    case ADMISSION_PEER:
        tg_term_heard(brain->term, event->peer.term, event->peer.instance, now.mono);
        break;
    case ADMISSION_STOCK:
        hear_stock(brain, now.mono, event);
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
    switch (limiting) {
    case ADMISSION_BY_START:
        return "start";
    case ADMISSION_BY_OPERATOR:
        return "operator";
    case ADMISSION_BY_STATE:
        return "state";
    case ADMISSION_BY_STOCK:
        break;
    }
    return "stock";
}
