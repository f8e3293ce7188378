// SPDX-License-Identifier: Apache-2.0
#include "services/queue/service.h"

#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"
#include "services/queue/wire.h"

static void tell_board(struct queue_service *service, size_t index, const struct queue_board *board)
{
    const char *sale = tg_brains_name(&service->brains, index);
    Tidegate__V1__Board message;
    queue_wire_board(sale, service->brains.term.instance, board, tg_now_wall(), &message);
    if (TG_FAILPOINT(QUEUE_BOARD) == 0) {
        tg_brains_say(&service->brains, TG_MESSAGE_QUEUE_BOARD, index, &message.base);
    }
    tg_metric_set(TG_METRIC_QUEUE_INDEXES, sale, (double)board->index_end);
    tg_metric_set(TG_METRIC_QUEUE_WATERMARK, sale, (double)board->watermark);
    tg_metric_set(TG_METRIC_QUEUE_TERM, sale, (double)board->term);
}

/* Feeds one event; `out_grant` (may be NULL) is filled when the event is a lease. */
static void feed(struct queue_service *service, size_t index, const struct queue_event *event,
                 struct queue_grant *out_grant)
{
    const struct queue_now now = {.mono = tg_now_mono(), .wall = tg_now_wall()};
    struct queue_action actions[QUEUE_ACTIONS_MAX];
    size_t count = queue_step(&service->by_sale[index], now, event, actions);
    for (size_t i = 0; i < count; i++) {
        switch (actions[i].kind) {
        case QUEUE_DO_BOARD:
            tell_board(service, index, &actions[i].board);
            break;
        case QUEUE_DO_GRANT:
            if (out_grant != NULL) {
                *out_grant = actions[i].grant;
            }
            break;
        case QUEUE_DO_ROLE:
            tg_brains_tell_role(&service->brains, actions[i].role.role, actions[i].role.term);
            break;
        }
    }
}

static void on_event(void *context, size_t index, const void *event)
{
    feed(context, index, event, NULL);
}

static void on_begin(void *context, size_t index, const char *sale)
{
    struct queue_service *service = context;
    (void)sale;
    queue_begin(&service->by_sale[index], &service->brains.term, tg_now_mono());
}

static void on_lease(void *context, struct tg_bus_incoming *take_incoming)
{
    struct queue_service *service = context;
    const char *sale = tg_bus_sale(take_incoming);
    int index = tg_brains_find(&service->brains, sale);
    struct queue_grant grant = {.reason = tg_sales_missing(service->brains.sales)};
    struct queue_event event;
    enum tg_reason fault = queue_wire_lease(
        sale, (const Tidegate__V1__LeaseRequest *)tg_bus_body(take_incoming), &event);
    if (fault != TG_REASON_NONE) {
        grant.reason = fault;
    } else if (service->brains.draining) {
        grant.reason = TG_REASON_NOT_MINE;
    } else if (index >= 0) {
        feed(service, (size_t)index, &event, &grant);
    }
    if (grant.reason == TG_REASON_NONE && TG_FAILPOINT(QUEUE_LEASED) != 0) {
        tg_bus_release(take_incoming);
        return;
    }
    Tidegate__V1__LeaseReply reply;
    queue_wire_grant(&grant, &reply);
    tg_bus_reply(take_incoming, &reply.base);
}

/* A standby that was never active stays out of the queue group: edges would ask it half of the time
 * and be refused. */
static void serve_edges(struct queue_service *service)
{
    if (service->leases || !tg_term_acts(&service->brains.term)) {
        return;
    }
    int error =
        tg_bus_serve(tg_app_bus(service->brains.app), TG_MESSAGE_QUEUE_LEASE, on_lease, service);
    if (error == 0) {
        error = queue_draws_serve(&service->draws);
    }
    if (error != 0) {
        tg_log(TG_LOG_ERROR, "queue.leases", TG_TEXT_FIELD("error", tg_error_text(error)));
        return;
    }
    service->leases = true;
}

static void on_tick(void *context, size_t index, const struct tg_brain_tick *tick)
{
    const struct queue_service *service = context;
    struct queue_event event = {.kind = QUEUE_TICK};
    event.tick.view.phase = tick->phase;
    event.tick.view.generation = tick->sale->generation;
    event.tick.view.opens_at = tick->sale->opens_at;
    event.tick.view.inside_max = (uint64_t)service->settings.inside;
    event.tick.view.opened = tick->sale->opened;
    event.tick.view.order = tick->sale->order;
    event.tick.view.beacon_promised = tick->sale->beacon[0] != '\0';
    event.tick.view.draw = tick->sale->draw;
    event.tick.connected = tick->connected;
    event.tick.jitter_ms = tick->jitter_ms;
    feed(context, index, &event, NULL);
    serve_edges(context);
    queue_draws_tick(&((struct queue_service *)context)->draws, index, tick->sale);
}

static void on_presence(void *context, struct tg_bus_incoming *take_incoming)
{
    struct queue_service *service = context;
    struct queue_event event;
    enum tg_reason fault =
        queue_wire_presence(tg_bus_sale(take_incoming),
                            (const Tidegate__V1__Presence *)tg_bus_body(take_incoming), &event);
    tg_brains_take(&service->brains, take_incoming, fault, &event);
}

static void on_board(void *context, struct tg_bus_incoming *take_incoming)
{
    struct queue_service *service = context;
    struct queue_event event;
    enum tg_reason fault =
        queue_wire_peer(tg_bus_sale(take_incoming),
                        (const Tidegate__V1__Board *)tg_bus_body(take_incoming), &event);
    tg_brains_take(&service->brains, take_incoming, fault, &event);
}

static void on_pace(void *context, struct tg_bus_incoming *take_incoming)
{
    struct queue_service *service = context;
    struct queue_event event;
    enum tg_reason fault = queue_wire_pace(
        tg_bus_sale(take_incoming), (const Tidegate__V1__Pace *)tg_bus_body(take_incoming), &event);
    tg_brains_take(&service->brains, take_incoming, fault, &event);
}

static void on_stock(void *context, struct tg_bus_incoming *take_incoming)
{
    struct queue_service *service = context;
    struct queue_event event;
    enum tg_reason fault =
        queue_wire_stock(tg_bus_sale(take_incoming),
                         (const Tidegate__V1__Stock *)tg_bus_body(take_incoming), &event);
    tg_brains_take(&service->brains, take_incoming, fault, &event);
}

int queue_service_start(struct tg_app *app, void *context)
{
    struct queue_service *service = context;
    static const struct tg_bus_subject subjects[] = {
        {TG_MESSAGE_QUEUE_PRESENCE, on_presence},
        {TG_MESSAGE_QUEUE_BOARD, on_board},
        {TG_MESSAGE_ADMISSION_PACE, on_pace},
        {TG_MESSAGE_GATE_STOCK, on_stock},
    };
    const struct tg_brain_spec spec = {.keys_folder = service->settings.keys,
                                       .role_event = "queue.role",
                                       .begin = on_begin,
                                       .tick = on_tick,
                                       .feed = on_event,
                                       .context = service};
    service->brains.app = app;
    queue_draws_begin(&service->draws, &service->brains, service->by_sale, service->settings.keys);
    return tg_brains_start(&service->brains, app, &spec, subjects,
                           sizeof subjects / sizeof subjects[0]);
}

bool queue_service_ready(void *context, const char **out_why)
{
    const struct queue_service *service = context;
    return tg_brains_ready(&service->brains, out_why);
}

void queue_service_drain(void *context)
{
    struct queue_service *service = context;
    service->brains.draining = true;
    queue_draws_end(&service->draws);
}

void queue_service_stop(void *context)
{
    struct queue_service *service = context;
    queue_draws_end(&service->draws);
    tg_brains_stop(&service->brains);
}
