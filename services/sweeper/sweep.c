/* SPDX-License-Identifier: Apache-2.0 */
#include "services/sweeper/sweep.h"

#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"
#include "services/sweeper/core.h"
#include "services/sweeper/wire.h"

#include <stdlib.h>

enum { TURN_MS = 50 };

struct sweeper {
    struct tg_app *app;
    struct tg_sales *sales;
    bool draining;
    struct sweeper_wire wire;
    struct sweeper_actions actions;
    struct sweeper_sale work[TG_MAX_SALES]; /* by the sale's index in `sales` */
};

/* What comes back with a reply instead of a pointer: which sale's which lane, and the core's number
 * of the call. */
static uint64_t token_of(size_t index, enum sweeper_lane_name lane, uint32_t sequence)
{
    return (uint64_t)index << 40 | (uint64_t)lane << 32 | sequence;
}

static void on_reply(void *context, uint64_t token, int status, const ProtobufCMessage *reply);

static int send_call(struct sweeper *sweeper, size_t index, enum sweeper_lane_name lane)
{
    struct tg_bus *bus = tg_app_bus(sweeper->app);
    char *name = tg_sales_at(sweeper->sales, index)->name;
    struct sweeper_sale *work = &sweeper->work[index];
    const uint64_t token = token_of(index, lane, work->lanes[lane].sequence);
    union {
        Tidegate__V1__LedgerDueRequest due;
        Tidegate__V1__ExpireRequest expire;
        Tidegate__V1__ObeyRequest obey;
        Tidegate__V1__ObeyedRequest obeyed;
        Tidegate__V1__GateDueRequest gate_due;
        ProtobufCMessage base;
    } request;
    enum tg_message message = TG_MESSAGE_LEDGER_DUE;
    int error = 0;
    switch (work->lanes[lane].call) {
    case SWEEPER_CALL_NONE:
        return 0;
    case SWEEPER_CALL_DUE:
        tidegate__v1__ledger_due_request__init(&request.due);
        request.due.sale = name;
        request.due.limit = SWEEPER_PAGE;
        request.due.orders_after = work->cursor.text;
        break;
    case SWEEPER_CALL_EXPIRE:
        error = TG_FAILPOINT(SWEEPER_DUE);
        message = TG_MESSAGE_LEDGER_EXPIRE;
        sweeper_wire_expire(&sweeper->wire, work, name, &request.expire);
        break;
    case SWEEPER_CALL_OBEY:
        error = TG_FAILPOINT(SWEEPER_VERDICT);
        message = TG_MESSAGE_RESERVE_OBEY;
        sweeper_wire_obey(&sweeper->wire, work, name, &request.obey);
        break;
    case SWEEPER_CALL_OBEYED:
        error = TG_FAILPOINT(SWEEPER_OBEYED);
        message = TG_MESSAGE_LEDGER_OBEYED;
        sweeper_wire_obeyed(&sweeper->wire, work, name, &request.obeyed);
        break;
    case SWEEPER_CALL_GATE_DUE:
        message = TG_MESSAGE_RESERVE_DUE;
        tidegate__v1__gate_due_request__init(&request.gate_due);
        request.gate_due.sale = name;
        request.gate_due.limit = SWEEPER_BURY_PAGE;
        break;
    case SWEEPER_CALL_BURY:
        message = TG_MESSAGE_LEDGER_EXPIRE;
        sweeper_wire_bury(&sweeper->wire, work, name, &request.expire);
        break;
    }
    return error != 0 ? error
                      : tg_bus_call(bus, message, name, &request.base, NULL, TG_MAX_CALL_MS,
                                    on_reply, sweeper, token);
}

static const char *kind_name(enum sweeper_kind kind)
{
    switch (kind) {
    case SWEEPER_SETTLE:
        return "settled";
    case SWEEPER_RELEASE:
        return "released";
    case SWEEPER_EXTEND:
        return "extended";
    }
    return "";
}

/* Counts and logs what a step brought about. */
static void tell(const struct sweeper *sweeper, size_t index)
{
    const char *name = tg_sales_at(sweeper->sales, index)->name;
    const struct sweeper_actions *actions = &sweeper->actions;
    if (actions->expired > 0) {
        tg_metric_add(TG_METRIC_SWEPT, "expired", actions->expired);
    }
    if (actions->buried > 0) {
        tg_metric_add(TG_METRIC_SWEPT, "buried", actions->buried);
    }
    if (actions->poison_count > 0) {
        tg_metric_add(TG_METRIC_SWEPT, "poison", actions->poison_count);
    }
    for (uint32_t i = 0; i < actions->poison_new_count; i++) {
        tg_log(TG_LOG_WARN, "sweeper.order_refused", TG_TEXT_FIELD("sale", name),
               TG_TEXT_FIELD("reservation", actions->poison_new[i].text));
    }
    for (uint32_t i = 0; i < actions->obeyed; i++) {
        const struct sweeper_result *result = &sweeper->work[index].results[i];
        tg_metric_add(TG_METRIC_SWEPT, kind_name(result->kind), 1);
        tg_log_step("reservation.obeyed", name, result->id.text, "");
    }
}

/* One event into the core and its calls onto the bus. A call that cannot be sent, or that would
 * begin a page while draining, fails at once; the core then rests the lane, so this ends after a
 * few turns. */
static void step(struct sweeper *sweeper, size_t index, const struct sweeper_event *event)
{
    struct sweeper_sale *work = &sweeper->work[index];
    sweeper_step(work, tg_now_mono(), event, &sweeper->actions);
    tell(sweeper, index);
    for (int lane = 0; lane < SWEEPER_LANES; lane++) {
        enum sweeper_call next = sweeper->actions.calls[lane];
        while (next != SWEEPER_CALL_NONE) {
            const bool begins = next == SWEEPER_CALL_DUE || next == SWEEPER_CALL_GATE_DUE;
            if (!(begins && sweeper->draining) &&
                send_call(sweeper, index, (enum sweeper_lane_name)lane) == 0) {
                break;
            }
            const struct sweeper_event failed = {.kind = SWEEPER_FAILED,
                                                 .lane = (enum sweeper_lane_name)lane,
                                                 .sequence = work->lanes[lane].sequence};
            struct sweeper_actions after;
            sweeper_step(work, tg_now_mono(), &failed, &after);
            next = after.calls[lane];
        }
    }
}

/* The reply as the event it is for the call in flight. */
static void read_reply(struct sweeper *sweeper, enum sweeper_call call,
                       const ProtobufCMessage *reply, struct sweeper_event *out_event)
{
    *out_event = (struct sweeper_event){.kind = SWEEPER_FAILED};
    switch (call) {
    case SWEEPER_CALL_NONE:
        break;
    case SWEEPER_CALL_DUE:
        sweeper_wire_due(&sweeper->wire, (const Tidegate__V1__LedgerDueReply *)reply, out_event);
        break;
    case SWEEPER_CALL_EXPIRE:
    case SWEEPER_CALL_BURY:
        sweeper_wire_verdicts(&sweeper->wire, (const Tidegate__V1__ExpireReply *)reply, out_event);
        break;
    case SWEEPER_CALL_OBEY:
        sweeper_wire_results(&sweeper->wire, (const Tidegate__V1__ObeyReply *)reply, out_event);
        break;
    case SWEEPER_CALL_OBEYED:
        sweeper_wire_stored(&sweeper->wire, (const Tidegate__V1__ObeyedReply *)reply, out_event);
        break;
    case SWEEPER_CALL_GATE_DUE:
        sweeper_wire_gate_due(&sweeper->wire, (const Tidegate__V1__GateDueReply *)reply, out_event);
        break;
    }
    if (sweeper->wire.malformed > 0) {
        tg_metric_add(TG_METRIC_SWEPT, "malformed", sweeper->wire.malformed);
        tg_log(TG_LOG_WARN, "sweeper.malformed_rows",
               TG_NUMBER_FIELD("rows", sweeper->wire.malformed));
    }
}

static void on_reply(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    struct sweeper *sweeper = context;
    const size_t index = token >> 40;
    const enum sweeper_lane_name lane = (enum sweeper_lane_name)(token >> 32 & 0xff);
    if (index >= tg_sales_count(sweeper->sales)) {
        return;
    }
    struct sweeper_event event = {.kind = SWEEPER_FAILED};
    sweeper->wire.malformed = 0;
    if (status == 0) {
        read_reply(sweeper, sweeper->work[index].lanes[lane].call, reply, &event);
    }
    event.lane = lane;
    event.sequence = (uint32_t)token;
    step(sweeper, index, &event);
}

static void turn(void *context)
{
    struct sweeper *sweeper = context;
    if (sweeper->draining || !tg_bus_connected(tg_app_bus(sweeper->app))) {
        return;
    }
    const struct sweeper_event tick = {.kind = SWEEPER_TICK};
    for (size_t i = 0; i < tg_sales_count(sweeper->sales); i++) {
        step(sweeper, i, &tick);
    }
}

int sweeper_open(struct tg_app *app, const char *keys, struct sweeper **out_sweeper)
{
    struct sweeper *sweeper = calloc(1, sizeof *sweeper);
    if (!sweeper) {
        return TG_ERR_FULL;
    }
    sweeper->app = app;
    const struct tg_sales_spec spec = {.keys_folder = keys};
    int error = tg_sales_open(app, &spec, &sweeper->sales);
    if (error == 0) {
        error = tg_app_every(app, TURN_MS, turn, sweeper);
    }
    if (error != 0) {
        sweeper_free(sweeper);
        return error;
    }
    *out_sweeper = sweeper;
    return 0;
}

struct sweeper *sweeper_free(struct sweeper *sweeper)
{
    if (sweeper) {
        tg_sales_free(sweeper->sales);
        free(sweeper);
    }
    return NULL;
}

bool sweeper_ready(const struct sweeper *sweeper, const char **out_why)
{
    if (!sweeper || !tg_bus_connected(tg_app_bus(sweeper->app))) {
        *out_why = "bus not connected";
        return false;
    }
    if (!tg_sales_known(sweeper->sales)) {
        *out_why = "sales not known yet";
        return false;
    }
    return true;
}

void sweeper_drain(struct sweeper *sweeper)
{
    sweeper->draining = true;
}

size_t sweeper_busy(const struct sweeper *sweeper)
{
    size_t count = 0;
    for (size_t i = 0; i < tg_sales_count(sweeper->sales); i++) {
        count += sweeper_in_flight(&sweeper->work[i]);
    }
    return count;
}
