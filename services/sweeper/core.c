/* SPDX-License-Identifier: Apache-2.0 */
#include "services/sweeper/core.h"

#include <string.h>

static bool same(const struct sweeper_id *a, const struct sweeper_id *b)
{
    return strcmp(a->text, b->text) == 0;
}

static struct sweeper_poison *poison_find(struct sweeper_sale *sale, const struct sweeper_id *id)
{
    for (size_t i = 0; i < SWEEPER_POISON_MAX; i++) {
        if (same(&sale->poison[i].id, id)) {
            return &sale->poison[i];
        }
    }
    return NULL;
}

/* A free row, or the one whose retry is nearest: it loses the least by being forgotten. */
static struct sweeper_poison *poison_room(struct sweeper_sale *sale)
{
    struct sweeper_poison *nearest = &sale->poison[0];
    for (size_t i = 0; i < SWEEPER_POISON_MAX; i++) {
        struct sweeper_poison *row = &sale->poison[i];
        if (row->id.text[0] == '\0') {
            return row;
        }
        if (row->retry_at.ms < nearest->retry_at.ms) {
            nearest = row;
        }
    }
    return nearest;
}

static void poison_note(struct sweeper_sale *sale, const struct sweeper_id *id, struct tg_mono now,
                        struct sweeper_actions *out_actions)
{
    struct sweeper_poison *row = poison_find(sale, id);
    out_actions->poison_count++;
    if (!row) {
        row = poison_room(sale);
        row->id = *id;
        row->delay_ms = SWEEPER_POISON_FIRST_MS;
        out_actions->poison_new[out_actions->poison_new_count++] = *id;
    } else if (row->delay_ms < SWEEPER_POISON_LONGEST_MS) {
        row->delay_ms *= 2;
        if (row->delay_ms > SWEEPER_POISON_LONGEST_MS) {
            row->delay_ms = SWEEPER_POISON_LONGEST_MS;
        }
    }
    row->retry_at.ms = now.ms + row->delay_ms;
}

static void poison_clear(struct sweeper_sale *sale, const struct sweeper_id *id)
{
    struct sweeper_poison *row = poison_find(sale, id);
    if (row) {
        *row = (struct sweeper_poison){0};
    }
}

static void call(struct sweeper_sale *sale, enum sweeper_lane_name name, enum sweeper_call next,
                 struct sweeper_actions *out_actions)
{
    struct sweeper_lane *lane = &sale->lanes[name];
    lane->call = next;
    lane->sequence++;
    out_actions->calls[name] = next;
}

static void begin(struct sweeper_sale *sale, enum sweeper_lane_name name,
                  struct sweeper_actions *out_actions)
{
    sale->lanes[name].full = false;
    sale->lanes[name].progress = false;
    call(sale, name, name == SWEEPER_CARRY ? SWEEPER_CALL_DUE : SWEEPER_CALL_GATE_DUE, out_actions);
}

/* The page is worked off. A full page with progress means more at once; otherwise the lane rests
 * until its next turn. */
static void finish(struct sweeper_sale *sale, enum sweeper_lane_name name, struct tg_mono now,
                   struct sweeper_actions *out_actions)
{
    struct sweeper_lane *lane = &sale->lanes[name];
    if (lane->full && lane->progress) {
        begin(sale, name, out_actions);
        return;
    }
    lane->call = SWEEPER_CALL_NONE;
    lane->next.ms =
        now.ms + (name == SWEEPER_CARRY ? SWEEPER_CARRY_EVERY_MS : SWEEPER_BURY_EVERY_MS);
}

static void rest(struct sweeper_sale *sale, enum sweeper_lane_name name, struct tg_mono now,
                 struct sweeper_actions *out_actions)
{
    sale->lanes[name].full = false;
    finish(sale, name, now, out_actions);
}

static void go_on_to_orders(struct sweeper_sale *sale, struct tg_mono now,
                            struct sweeper_actions *out_actions)
{
    if (sale->order_count > 0) {
        call(sale, SWEEPER_CARRY, SWEEPER_CALL_OBEY, out_actions);
    } else {
        finish(sale, SWEEPER_CARRY, now, out_actions);
    }
}

/* Moves the cursor over a full page of orders. The ledger lists what comes after the cursor and
 * then, round the end, what comes before it. Only a page that lies wholly after the cursor is a
 * reason to ask again at once: a round through rows that do not move ends with the turn. */
static void advance_cursor(struct sweeper_sale *sale, const struct sweeper_event *event)
{
    struct sweeper_lane *lane = &sale->lanes[SWEEPER_CARRY];
    if (!event->orders_full || event->order_count == 0) {
        sale->cursor = (struct sweeper_id){0};
        return;
    }
    const struct sweeper_id *first = &event->orders[0].id;
    const struct sweeper_id *last = &event->orders[event->order_count - 1].id;
    lane->full = true;
    lane->progress =
        strcmp(first->text, sale->cursor.text) > 0 && strcmp(last->text, first->text) >= 0;
    sale->cursor = *last;
}

static void on_due(struct sweeper_sale *sale, struct tg_mono now, const struct sweeper_event *event,
                   struct sweeper_actions *out_actions)
{
    sale->epoch = event->epoch;
    sale->generation = event->generation;
    advance_cursor(sale, event);
    sale->lanes[SWEEPER_CARRY].full |= event->lapsed_full;
    sale->lapsed_count = event->lapsed_count < SWEEPER_PAGE ? event->lapsed_count : SWEEPER_PAGE;
    for (uint32_t i = 0; i < sale->lapsed_count; i++) {
        sale->lapsed[i] = event->lapsed[i];
    }
    sale->order_count = 0;
    for (uint32_t i = 0; i < event->order_count && sale->order_count < SWEEPER_PAGE; i++) {
        const struct sweeper_poison *poison = poison_find(sale, &event->orders[i].id);
        if (!poison || poison->retry_at.ms <= now.ms) {
            sale->orders[sale->order_count++] = event->orders[i];
        }
    }
    if (sale->lapsed_count > 0) {
        call(sale, SWEEPER_CARRY, SWEEPER_CALL_EXPIRE, out_actions);
    } else {
        go_on_to_orders(sale, now, out_actions);
    }
}

static bool ordered(const struct sweeper_sale *sale, const struct sweeper_result *result)
{
    for (uint32_t i = 0; i < sale->order_count; i++) {
        if (sale->orders[i].kind == result->kind && same(&sale->orders[i].id, &result->id)) {
            return true;
        }
    }
    return false;
}

static void on_results(struct sweeper_sale *sale, struct tg_mono now,
                       const struct sweeper_event *event, struct sweeper_actions *out_actions)
{
    sale->result_count = 0;
    for (uint32_t i = 0; i < event->result_count && i < SWEEPER_PAGE; i++) {
        const struct sweeper_result *result = &event->results[i];
        if (!ordered(sale, result)) {
            continue; /* nobody asked: not ours to report */
        }
        switch (result->obedience) {
        case SWEEPER_DONE:
        case SWEEPER_ALREADY:
            poison_clear(sale, &result->id);
            sale->results[sale->result_count++] = *result;
            break;
        case SWEEPER_NOT_KNOWN_THERE:
        case SWEEPER_DOUBT:
            poison_note(sale, &result->id, now, out_actions);
            break;
        case SWEEPER_UNANSWERED:
            break;
        }
    }
    if (sale->result_count > 0) {
        call(sale, SWEEPER_CARRY, SWEEPER_CALL_OBEYED, out_actions);
    } else {
        finish(sale, SWEEPER_CARRY, now, out_actions);
    }
}

static void on_gate_due(struct sweeper_sale *sale, struct tg_mono now,
                        const struct sweeper_event *event, struct sweeper_actions *out_actions)
{
    sale->bury_epoch = event->epoch;
    sale->bury_generation = event->generation;
    sale->lanes[SWEEPER_BURY].full = event->holds_full;
    sale->hold_count =
        event->hold_count < SWEEPER_BURY_PAGE ? event->hold_count : SWEEPER_BURY_PAGE;
    for (uint32_t i = 0; i < sale->hold_count; i++) {
        sale->holds[i] = event->holds[i];
    }
    if (sale->hold_count > 0) {
        call(sale, SWEEPER_BURY, SWEEPER_CALL_BURY, out_actions);
    } else {
        rest(sale, SWEEPER_BURY, now, out_actions);
    }
}

static void on_verdicts(struct sweeper_sale *sale, struct tg_mono now,
                        const struct sweeper_event *event, struct sweeper_actions *out_actions)
{
    sale->lanes[event->lane].progress |= event->final_verdicts > 0;
    if (event->lane == SWEEPER_BURY) {
        out_actions->buried = event->final_verdicts;
        finish(sale, SWEEPER_BURY, now, out_actions);
    } else {
        out_actions->expired = event->final_verdicts;
        go_on_to_orders(sale, now, out_actions);
    }
}

static void on_failed(struct sweeper_sale *sale, struct tg_mono now,
                      const struct sweeper_event *event, struct sweeper_actions *out_actions)
{
    /* Verdicts that could not be had keep nobody else's orders waiting; they are still due at the
     * next turn. */
    if (sale->lanes[event->lane].call == SWEEPER_CALL_EXPIRE && sale->order_count > 0) {
        sale->lanes[event->lane].full = false;
        go_on_to_orders(sale, now, out_actions);
        return;
    }
    rest(sale, event->lane, now, out_actions);
}

static void on_tick(struct sweeper_sale *sale, struct tg_mono now,
                    struct sweeper_actions *out_actions)
{
    for (int name = 0; name < SWEEPER_LANES; name++) {
        const struct sweeper_lane *lane = &sale->lanes[name];
        if (lane->call == SWEEPER_CALL_NONE && lane->next.ms <= now.ms) {
            begin(sale, (enum sweeper_lane_name)name, out_actions);
        }
    }
}

/* Does this event answer the call in flight? */
static bool answers(const struct sweeper_sale *sale, const struct sweeper_event *event)
{
    const struct sweeper_lane *lane = &sale->lanes[event->lane];
    if (lane->call == SWEEPER_CALL_NONE || lane->sequence != event->sequence) {
        return false;
    }
    switch (event->kind) {
    case SWEEPER_TICK:
        return false;
    case SWEEPER_FAILED:
        return true;
    case SWEEPER_DUE:
        return lane->call == SWEEPER_CALL_DUE;
    case SWEEPER_VERDICTS:
        return lane->call == SWEEPER_CALL_EXPIRE || lane->call == SWEEPER_CALL_BURY;
    case SWEEPER_RESULTS:
        return lane->call == SWEEPER_CALL_OBEY;
    case SWEEPER_STORED:
        return lane->call == SWEEPER_CALL_OBEYED;
    case SWEEPER_GATE_DUE:
        return lane->call == SWEEPER_CALL_GATE_DUE;
    }
    return false;
}

void sweeper_step(struct sweeper_sale *sale, struct tg_mono now, const struct sweeper_event *event,
                  struct sweeper_actions *out_actions)
{
    *out_actions = (struct sweeper_actions){0};
    if (event->kind == SWEEPER_TICK) {
        on_tick(sale, now, out_actions);
        return;
    }
    if (!answers(sale, event)) {
        return;
    }
    switch (event->kind) {
    case SWEEPER_TICK:
        break;
    case SWEEPER_FAILED:
        on_failed(sale, now, event, out_actions);
        break;
    case SWEEPER_DUE:
        on_due(sale, now, event, out_actions);
        break;
    case SWEEPER_VERDICTS:
        on_verdicts(sale, now, event, out_actions);
        break;
    case SWEEPER_RESULTS:
        on_results(sale, now, event, out_actions);
        break;
    case SWEEPER_STORED:
        out_actions->obeyed = sale->result_count;
        sale->lanes[SWEEPER_CARRY].progress |= sale->result_count > 0;
        finish(sale, SWEEPER_CARRY, now, out_actions);
        break;
    case SWEEPER_GATE_DUE:
        on_gate_due(sale, now, event, out_actions);
        break;
    }
}

size_t sweeper_in_flight(const struct sweeper_sale *sale)
{
    size_t count = 0;
    for (int name = 0; name < SWEEPER_LANES; name++) {
        count += sale->lanes[name].call != SWEEPER_CALL_NONE;
    }
    return count;
}
