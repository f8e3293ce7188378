/* SPDX-License-Identifier: Apache-2.0 */
#include "services/reserve/core_care.h"

#include <string.h>

struct script {
    enum reserve_care_action *actions;
    size_t count;
};

static void append(struct script *script, enum reserve_care_action action)
{
    script->actions[script->count++] = action;
}

static bool fresh(const struct reserve_care_view *view)
{
    return view->now.ms - view->sale->heard.ms <= TG_MAX_STATE_STALE_MS;
}

bool reserve_care_armed(const struct reserve_care *care, const struct reserve_care_view *view)
{
    const struct reserve_look *look = &care->look;
    return care->looked && look->known && look->armed && view->run_id != NULL &&
           view->sale->armed && (uint64_t)look->epoch == view->sale->epoch &&
           strcmp(look->run_id, view->run_id) == 0 && strcmp(look->run_id, view->sale->run_id) == 0;
}

/* ---- pauses ---- */

static bool names(const struct tg_pause *pauses, uint32_t count, const char *id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(pauses[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

bool reserve_care_lifts(const struct tg_sale *sale, const char *id)
{
    if (names(sale->pauses, sale->pause_count, id) ||
        names(sale->own_pauses, sale->own_pause_count, id)) {
        return false;
    }
    for (uint32_t i = 0; i < sale->lifted_count; i++) {
        if (strcmp(sale->lifted[i], id) == 0) {
            return true;
        }
    }
    return false;
}

static bool in_gate(const struct reserve_look *look, const char *id)
{
    for (uint32_t i = 0; i < look->pause_count; i++) {
        if (strcmp(look->pauses[i], id) == 0) {
            return true;
        }
    }
    return false;
}

bool reserve_care_pause_missing(const struct reserve_care *care, const struct tg_sale *sale)
{
    const struct reserve_look *look = &care->look;
    for (uint32_t i = 0; i < sale->pause_count; i++) {
        if (!in_gate(look, sale->pauses[i].id)) {
            return true;
        }
    }
    for (uint32_t i = 0; i < sale->own_pause_count; i++) {
        if (!in_gate(look, sale->own_pauses[i].id)) {
            return true;
        }
    }
    return false;
}

bool reserve_care_lift_wanted(const struct reserve_care *care, const struct tg_sale *sale)
{
    const struct reserve_look *look = &care->look;
    for (uint32_t i = 0; i < look->pause_count; i++) {
        if (reserve_care_lifts(sale, look->pauses[i])) {
            return true;
        }
    }
    return false;
}

/* ---- loading ---- */

static void give_up(struct reserve_care *care, const struct reserve_care_view *view,
                    int64_t pause_ms)
{
    care->stage = RESERVE_CARE_IDLE;
    care->retry_at.ms = view->now.ms + pause_ms;
}

static bool load_wanted(const struct reserve_care *care, const struct reserve_care_view *view)
{
    const struct tg_sale *sale = view->sale;
    bool alive = false;
    switch (sale->phase) {
    case TG_PHASE_SCHEDULED:
    case TG_PHASE_OPEN:
    case TG_PHASE_PAUSED:
    case TG_PHASE_SOLD_OUT:
        alive = true;
        break;
    case TG_PHASE_UNKNOWN:
    case TG_PHASE_CLOSED:
        break;
    }
    return alive && fresh(view) && !sale->armed && view->run_id != NULL && view->noeviction &&
           care->stage == RESERVE_CARE_IDLE && view->now.ms >= care->retry_at.ms;
}

static void tell(struct reserve_care *care, const char *replication_id, struct script *script)
{
    size_t length = strnlen(replication_id, sizeof care->replication_id - 1);
    memcpy(care->replication_id, replication_id, length);
    care->replication_id[length] = '\0';
    care->stage = RESERVE_CARE_TELL;
    append(script, RESERVE_CARE_DO_TELL);
}

static void begin_load(struct reserve_care *care, const struct reserve_care_view *view,
                       struct script *script)
{
    care->epoch = view->sale->epoch;
    if (!care->look.known || !care->look.armed) {
        care->stage = RESERVE_CARE_BEGIN;
        append(script, RESERVE_CARE_DO_BEGIN);
    } else if (strcmp(care->look.run_id, view->run_id) == 0) {
        /* Whoever armed it did not live to tell. */
        tell(care, care->look.replication_id, script);
    } else {
        give_up(care, view,
                RESERVE_CARE_FOREIGN_MS); /* armed on another run of Redis: only a rebuild helps */
    }
}

static void fetch(struct reserve_care *care, struct script *script)
{
    care->stage = RESERVE_CARE_FETCH;
    append(script, RESERVE_CARE_DO_FETCH);
}

static void on_fetched(struct reserve_care *care, const struct reserve_care_event *event,
                       struct script *script)
{
    care->last_page = event->end;
    if (event->rows == 0) {
        care->stage = RESERVE_CARE_FINISH;
        append(script, RESERVE_CARE_DO_FINISH);
        return;
    }
    size_t length = strnlen(event->after, TG_RESERVATION_ID_LENGTH);
    memcpy(care->after, event->after, length);
    care->after[length] = '\0';
    care->page++;
    care->stage = RESERVE_CARE_PAGE;
    append(script, RESERVE_CARE_DO_PAGE);
}

static void on_paged(struct reserve_care *care, struct script *script)
{
    if (!care->last_page) {
        fetch(care, script);
        return;
    }
    care->stage = RESERVE_CARE_FINISH;
    append(script, RESERVE_CARE_DO_FINISH);
}

/* One answer of the chain; `expected` is the stage it belongs to. */
static bool goes_on(struct reserve_care *care, const struct reserve_care_view *view,
                    const struct reserve_care_event *event, enum reserve_care_stage expected)
{
    if (care->stage != expected) {
        return false;
    }
    if (event->result != RESERVE_RESULT_FAILED && view->sale->epoch == care->epoch &&
        view->run_id != NULL) {
        return true;
    }
    give_up(care, view, RESERVE_CARE_RETRY_MS);
    return false;
}

static void on_begun(struct reserve_care *care, const struct reserve_care_event *event,
                     struct script *script)
{
    if (event->result == RESERVE_RESULT_ARMED_ALREADY) {
        tell(care, event->replication_id, script);
        return;
    }
    care->page = 0;
    care->after[0] = '\0';
    care->last_page = false;
    fetch(care, script);
}

/* ---- looking ---- */

static void on_looked(struct reserve_care *care, const struct reserve_care_view *view,
                      const struct reserve_care_event *event, struct script *script)
{
    care->looking = false;
    if (event->look == NULL) {
        care->looked = false;
        if (event->broken && !care->broken) {
            append(script, RESERVE_CARE_DO_DOUBT);
        }
        if (event->broken) {
            append(script, RESERVE_CARE_DO_PUBLISH);
        }
        care->broken = event->broken;
        return;
    }
    care->broken = false;
    care->looked = true;
    care->look_at = view->now;
    care->look = *event->look;
    append(script, RESERVE_CARE_DO_PUBLISH);
    if (care->look.known && (uint64_t)care->look.epoch != view->sale->epoch) {
        return; /* the epoch changed while we looked: this was another gate */
    }
    if (care->look.known && reserve_care_pause_missing(care, view->sale)) {
        append(script, RESERVE_CARE_DO_PAUSE);
    }
    if (care->look.known && fresh(view) && reserve_care_lift_wanted(care, view->sale)) {
        append(script, RESERVE_CARE_DO_LIFT);
    }
    if (load_wanted(care, view)) {
        begin_load(care, view, script);
    }
}

size_t reserve_care_step(struct reserve_care *care, const struct reserve_care_view *view,
                         const struct reserve_care_event *event,
                         enum reserve_care_action out_actions[RESERVE_CARE_ACTIONS_MAX])
{
    struct script script = {.actions = out_actions};
    switch (event->kind) {
    case RESERVE_CARE_TICK:
        if (!care->looking && view->run_id != NULL) {
            care->looking = true;
            append(&script, RESERVE_CARE_DO_LOOK);
        }
        break;
    case RESERVE_CARE_LOOKED:
        on_looked(care, view, event, &script);
        break;
    case RESERVE_CARE_BEGUN:
        if (goes_on(care, view, event, RESERVE_CARE_BEGIN)) {
            on_begun(care, event, &script);
        }
        break;
    case RESERVE_CARE_FETCHED:
        if (goes_on(care, view, event, RESERVE_CARE_FETCH)) {
            on_fetched(care, event, &script);
        }
        break;
    case RESERVE_CARE_PAGED:
        if (goes_on(care, view, event, RESERVE_CARE_PAGE)) {
            on_paged(care, &script);
        }
        break;
    case RESERVE_CARE_FINISHED:
        if (goes_on(care, view, event, RESERVE_CARE_FINISH)) {
            care->stage = RESERVE_CARE_ARM;
            append(&script, RESERVE_CARE_DO_ARM);
        }
        break;
    case RESERVE_CARE_ARMED:
        if (goes_on(care, view, event, RESERVE_CARE_ARM)) {
            tell(care, event->replication_id, &script);
        }
        break;
    case RESERVE_CARE_TOLD:
        if (care->stage == RESERVE_CARE_TELL) {
            give_up(care, view, RESERVE_CARE_RETRY_MS); /* done, or tried again if the state does
                                                           not say so by then */
        }
        break;
    }
    return script.count;
}
