/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tidegatectl/state.h"

#include "lib/pure/clock.h"
#include "lib/pure/sale.h"
#include "tools/tidegatectl/ctl.h"

#include <inttypes.h>
#include <string.h>

const char *ctl_phase_text(Tidegate__V1__SalePhase phase)
{
    switch (phase) {
    case TIDEGATE__V1__SALE_PHASE__SALE_PHASE_SCHEDULED:
        return "scheduled";
    case TIDEGATE__V1__SALE_PHASE__SALE_PHASE_OPEN:
        return "open";
    case TIDEGATE__V1__SALE_PHASE__SALE_PHASE_PAUSED:
        return "paused";
    case TIDEGATE__V1__SALE_PHASE__SALE_PHASE_SOLD_OUT:
        return "sold_out";
    case TIDEGATE__V1__SALE_PHASE__SALE_PHASE_CLOSED:
        return "closed";
    case TIDEGATE__V1__SALE_PHASE__SALE_PHASE_UNSPECIFIED:
    case _TIDEGATE__V1__SALE_PHASE_IS_INT_SIZE:
        break;
    }
    return "unknown";
}

const char *ctl_reservation_text(Tidegate__V1__ReservationState state)
{
    switch (state) {
    case TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_PENDING:
        return "pending";
    case TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_CONFIRMED:
        return "confirmed";
    case TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_EXPIRED:
        return "expired";
    case TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_CANCELLED:
        return "cancelled";
    case TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_UNSPECIFIED:
    case _TIDEGATE__V1__RESERVATION_STATE_IS_INT_SIZE:
        break;
    }
    return "unknown";
}

void ctl_duration_text(int64_t ms, char out_text[CTL_VALUE_BYTES])
{
    static const struct {
        int64_t ms;
        const char *name;
    } units[] = {{3600000, "h"}, {60000, "m"}, {1000, "s"}};
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (ms != 0 && ms % units[i].ms == 0) {
            (void)snprintf(out_text, CTL_VALUE_BYTES, "%" PRId64 "%s", ms / units[i].ms,
                           units[i].name);
            return;
        }
    }
    (void)snprintf(out_text, CTL_VALUE_BYTES, "%" PRId64 "%s", ms, ms == 0 ? "s" : "ms");
}

void ctl_time_text(int64_t ms, char out_text[CTL_VALUE_BYTES])
{
    if (ms == 0) {
        (void)snprintf(out_text, CTL_VALUE_BYTES, "never");
    } else if (tg_wall_format((struct tg_wall){ms}, out_text) != 0) {
        (void)snprintf(out_text, CTL_VALUE_BYTES, "%" PRId64 " ms", ms);
    }
}

void ctl_pace_text(uint64_t pace_milli, char out_text[CTL_VALUE_BYTES])
{
    if (pace_milli % 1000 == 0) {
        (void)snprintf(out_text, CTL_VALUE_BYTES, "%" PRIu64 "/s", pace_milli / 1000);
    } else {
        (void)snprintf(out_text, CTL_VALUE_BYTES, "%" PRIu64 ".%03u/s", pace_milli / 1000,
                       (unsigned)(pace_milli % 1000));
    }
}

/* ---- lines ---- */

struct lines {
    struct ctl_line *lines;
    size_t count;
};

static char *add(struct lines *lines, const char *name)
{
    struct ctl_line *line = &lines->lines[lines->count++];
    (void)snprintf(line->name, sizeof(line->name), "%s", name);
    return line->value;
}

static void add_text(struct lines *lines, const char *name, const char *text)
{
    (void)snprintf(add(lines, name), sizeof(lines->lines->value), "%s", text);
}

static void add_number(struct lines *lines, const char *name, uint64_t number)
{
    (void)snprintf(add(lines, name), sizeof(lines->lines->value), "%" PRIu64, number);
}

static void add_items(struct lines *lines, const Tidegate__V1__SaleDefinition *definition)
{
    for (size_t i = 0; i < definition->n_items && i < TG_MAX_ITEMS_PER_SALE; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "items[%zu].sku", i);
        add_text(lines, name, definition->items[i]->sku);
        (void)snprintf(name, sizeof(name), "items[%zu].units", i);
        add_number(lines, name, definition->items[i]->units);
        (void)snprintf(name, sizeof(name), "items[%zu].price", i);
        add_number(lines, name, definition->items[i]->price_minor);
        (void)snprintf(name, sizeof(name), "items[%zu].currency", i);
        add_text(lines, name, definition->items[i]->currency);
    }
}

size_t ctl_definition_lines(const Tidegate__V1__SaleDefinition *definition,
                            struct ctl_line out_lines[CTL_LINES_MAX])
{
    struct lines lines = {out_lines, 0};
    add_text(&lines, "sale", definition->sale);
    add_items(&lines, definition);
    ctl_time_text(definition->opens_at_ms, add(&lines, "opensAt"));
    add_text(&lines, "policy.order", definition->order);
    add_text(&lines, "policy.challenge", tg_challenge_before_name(definition->challenge));
    add_number(&lines, "limits.perBuyer", definition->limit_per_buyer);
    ctl_duration_text(definition->hold_ms, add(&lines, "limits.holdFor"));
    ctl_duration_text(definition->grace_ms, add(&lines, "limits.grace"));
    ctl_duration_text(definition->extend_ms, add(&lines, "limits.extendBy"));
    add_number(&lines, "limits.extensions", definition->extensions_max);
    ctl_pace_text(definition->pace_start_milli, add(&lines, "pace.start"));
    ctl_pace_text(definition->pace_max_milli, add(&lines, "pace.max"));
    ctl_pace_text(definition->pace_min_milli, add(&lines, "pace.min"));
    add_number(&lines, "proof.everyMs", (uint64_t)definition->proof_every_ms);
    ctl_duration_text(definition->proof_lease_ms, add(&lines, "proof.leaseFor"));
    add_text(&lines, "show.remaining", definition->remaining_bucketed ? "bucketed" : "exact");
    return lines.count;
}

/* ---- JSON ---- */

static void set_time(json_t *object, const char *name, int64_t ms)
{
    char text[CTL_VALUE_BYTES];
    ctl_time_text(ms, text);
    (void)json_object_set_new(object, name, ms == 0 ? json_null() : json_string(text));
}

json_t *ctl_definition_json(const Tidegate__V1__SaleDefinition *definition)
{
    json_t *items = json_array();
    for (size_t i = 0; i < definition->n_items; i++) {
        const Tidegate__V1__ItemDefinition *item = definition->items[i];
        (void)json_array_append_new(items, json_pack("{s:s, s:I, s:I, s:s}", "sku", item->sku,
                                                     "units", (json_int_t)item->units, "price",
                                                     (json_int_t)item->price_minor, "currency",
                                                     item->currency));
    }
    json_t *object = json_pack(
        "{s:s, s:I, s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s}", "sale",
        definition->sale, "generation", (json_int_t)definition->generation, "items", items, "order",
        definition->order, "perBuyer", (json_int_t)definition->limit_per_buyer, "holdMs",
        (json_int_t)definition->hold_ms, "graceMs", (json_int_t)definition->grace_ms, "extendMs",
        (json_int_t)definition->extend_ms, "extensions", (json_int_t)definition->extensions_max,
        "paceStartMilli", (json_int_t)definition->pace_start_milli, "paceMinMilli",
        (json_int_t)definition->pace_min_milli, "paceMaxMilli",
        (json_int_t)definition->pace_max_milli, "proofEveryMs",
        (json_int_t)definition->proof_every_ms, "proofLeaseMs",
        (json_int_t)definition->proof_lease_ms, "remaining",
        definition->remaining_bucketed ? "bucketed" : "exact", "challenge",
        tg_challenge_before_name(definition->challenge));
    set_time(object, "opensAt", definition->opens_at_ms);
    return object;
}

json_t *ctl_state_json(const Tidegate__V1__SaleState *state)
{
    json_t *pauses = json_array();
    for (size_t i = 0; i < state->n_pauses; i++) {
        (void)json_array_append_new(pauses,
                                    json_pack("{s:s, s:s}", "id", state->pauses[i]->pause_id,
                                              "cause", state->pauses[i]->cause));
    }
    json_t *object = json_pack(
        "{s:s, s:I, s:s, s:I, s:b, s:I, s:o, s:I, s:I}", "sale", state->sale, "generation",
        (json_int_t)state->generation, "phase", ctl_phase_text(state->phase), "epoch",
        (json_int_t)state->epoch, "armed", (int)state->armed, "controlSequence",
        (json_int_t)state->control_sequence, "pauses", pauses, "cleanRounds",
        (json_int_t)state->clean_rounds, "paceMilli", (json_int_t)state->pace_milli);
    set_time(object, "opensAt", state->opens_at_ms);
    set_time(object, "lastClean", state->last_clean_ms);
    set_time(object, "ledgerNow", state->ledger_now_ms);
    return object;
}

void ctl_print_state(const Tidegate__V1__SaleState *state)
{
    (void)printf("%s is %s: generation %" PRIu64 ", epoch %" PRIu64 ", gate %s, %u clean rounds\n",
                 state->sale, ctl_phase_text(state->phase), state->generation, state->epoch,
                 state->armed ? "armed" : "not armed", state->clean_rounds);
    for (size_t i = 0; i < state->n_pauses; i++) {
        char cause[160];
        ctl_printable(state->pauses[i]->cause, strlen(state->pauses[i]->cause), cause,
                      sizeof(cause));
        (void)printf("  paused by %s: %s\n", state->pauses[i]->pause_id, cause);
    }
}
