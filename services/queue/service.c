// SPDX-License-Identifier: Apache-2.0
#include "services/queue/service.h"

#include "lib/io/bus.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"
#include "services/queue/wire.h"

#include <string.h>

enum { TICK_MS = 50 };

static struct queue_line *find_line(struct queue_service *service, const char *sale)
{
    for (size_t i = 0; i < service->line_count; i++) {
        if (strcmp(service->lines[i].sale, sale) == 0) {
            return &service->lines[i];
        }
    }
    return NULL;
}

static uint32_t random_jitter(void)
{
    uint32_t jitter;
    tg_random(&jitter, sizeof jitter);
    return jitter;
}

static struct queue_now now_of(void)
{
    return (struct queue_now){.mono = tg_now_mono(), .wall = tg_now_wall()};
}

static void tell_board(struct queue_service *service, const struct queue_line *line,
                       const struct queue_board *board)
{
    Tidegate__V1__Board message;
    queue_wire_board(line->sale, service->term.instance, board, tg_now_wall(), &message);
    if (tg_bus_publish(tg_app_bus(service->app), TG_MESSAGE_QUEUE_BOARD, line->sale,
                       &message.base) != 0) {
        tg_metric_add(TG_METRIC_BUS_CALL_FAILURES, "disconnected", 1);
    }
    tg_metric_set(TG_METRIC_QUEUE_INDEXES, line->sale, (double)line->brain.index_end);
    tg_metric_set(TG_METRIC_QUEUE_WATERMARK, line->sale, (double)board->watermark);
    tg_metric_set(TG_METRIC_QUEUE_TERM, line->sale, (double)board->term);
}

static const char *role_name(enum tg_term_role role)
{
    switch (role) {
    case TG_TERM_STANDBY:
        return "standby";
    case TG_TERM_COLLECTING:
        return "collecting";
    case TG_TERM_SETTLING:
        return "settling";
    case TG_TERM_ACTIVE:
        break;
    }
    return "active";
}

/* Feeds one event; `out_grant` (may be NULL) is filled when the event is a lease. */
static void feed(struct queue_service *service, struct queue_line *line,
                 const struct queue_event *event, struct queue_grant *out_grant)
{
    struct queue_action actions[QUEUE_ACTIONS_MAX];
    size_t count = queue_step(&line->brain, now_of(), event, actions);
    for (size_t i = 0; i < count; i++) {
        switch (actions[i].kind) {
        case QUEUE_DO_BOARD:
            tell_board(service, line, &actions[i].board);
            break;
        case QUEUE_DO_GRANT:
            if (out_grant != NULL) {
                *out_grant = actions[i].grant;
            }
            break;
        case QUEUE_DO_ROLE:
            tg_log(TG_LOG_INFO, "queue.role",
                   TG_TEXT_FIELD("role", role_name(actions[i].role.role)),
                   TG_NUMBER_FIELD("term", actions[i].role.term));
            break;
        }
    }
}

static void tick_line(struct queue_service *service, struct queue_line *line)
{
    const struct tg_sale *sale = tg_sales_find(service->sales, line->sale);
    if (sale == NULL || service->draining) {
        return;
    }
    struct queue_event event = {.kind = QUEUE_TICK};
    event.tick.view.phase = tg_sale_phase(sale, tg_now_mono());
    event.tick.view.generation = sale->generation;
    event.tick.view.opens_at = sale->opens_at;
    event.tick.connected = tg_bus_connected(tg_app_bus(service->app));
    event.tick.jitter_ms = random_jitter();
    feed(service, line, &event, NULL);
}

static void on_sale(void *context, struct tg_sale *sale)
{
    struct queue_service *service = context;
    struct queue_line *line = find_line(service, sale->name);
    if (line == NULL) {
        if (service->line_count == TG_MAX_SALES) {
            tg_log(TG_LOG_ERROR, "queue.full", TG_TEXT_FIELD("sale", sale->name));
            return;
        }
        line = &service->lines[service->line_count++];
        memcpy(line->sale, sale->name, sizeof line->sale);
        queue_begin(&line->brain, &service->term, tg_now_mono());
    }
    tick_line(service, line);
}

static const char *on_command(void *context, struct tg_sale *sale,
                              const Tidegate__V1__Command *command)
{
    struct queue_service *service = context;
    if (command->kind != TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE || sale == NULL) {
        return "noted";
    }
    on_sale(service, sale);
    return "honoured";
}

static void on_lease(void *context, struct tg_bus_incoming *take_incoming)
{
    struct queue_service *service = context;
    const char *sale = tg_bus_sale(take_incoming);
    struct queue_line *line = find_line(service, sale);
    struct queue_grant grant = {.reason = TG_REASON_SALE_UNKNOWN};
    struct queue_event event;
    enum tg_reason fault = queue_wire_lease(
        sale, (const Tidegate__V1__LeaseRequest *)tg_bus_body(take_incoming), &event);
    if (fault != TG_REASON_NONE) {
        grant.reason = fault;
    } else if (service->draining) {
        grant.reason = TG_REASON_NOT_MINE;
    } else if (line != NULL) {
        feed(service, line, &event, &grant);
    }
    Tidegate__V1__LeaseReply reply;
    queue_wire_grant(&grant, &reply);
    tg_bus_reply(take_incoming, &reply.base);
}

/* What all publications have in common: checked, fed if the sale is known, released. */
static void take(struct queue_service *service, struct tg_bus_incoming *take_incoming,
                 enum tg_reason fault, const struct queue_event *event)
{
    struct queue_line *line = find_line(service, tg_bus_sale(take_incoming));
    if (fault != TG_REASON_NONE) {
        tg_metric_add(TG_METRIC_BUS_INVALID, tg_bus_body(take_incoming)->descriptor->short_name, 1);
    } else if (line != NULL) {
        feed(service, line, event, NULL);
    }
    tg_bus_release(take_incoming);
}

static void on_presence(void *context, struct tg_bus_incoming *take_incoming)
{
    struct queue_event event;
    enum tg_reason fault =
        queue_wire_presence(tg_bus_sale(take_incoming),
                            (const Tidegate__V1__Presence *)tg_bus_body(take_incoming), &event);
    take(context, take_incoming, fault, &event);
}

static void on_board(void *context, struct tg_bus_incoming *take_incoming)
{
    struct queue_event event;
    enum tg_reason fault =
        queue_wire_peer(tg_bus_sale(take_incoming),
                        (const Tidegate__V1__Board *)tg_bus_body(take_incoming), &event);
    take(context, take_incoming, fault, &event);
}

static void on_pace(void *context, struct tg_bus_incoming *take_incoming)
{
    struct queue_event event;
    enum tg_reason fault = queue_wire_pace(
        tg_bus_sale(take_incoming), (const Tidegate__V1__Pace *)tg_bus_body(take_incoming), &event);
    take(context, take_incoming, fault, &event);
}

static void on_stock(void *context, struct tg_bus_incoming *take_incoming)
{
    struct queue_event event;
    enum tg_reason fault =
        queue_wire_stock(tg_bus_sale(take_incoming),
                         (const Tidegate__V1__Stock *)tg_bus_body(take_incoming), &event);
    take(context, take_incoming, fault, &event);
}

/* A standby that was never active stays out of the queue group: edges would ask it half of the time
 * and be refused. */
static void serve_leases(struct queue_service *service)
{
    if (service->leases || !tg_term_acts(&service->term)) {
        return;
    }
    int error = tg_bus_serve(tg_app_bus(service->app), TG_MESSAGE_QUEUE_LEASE, on_lease, service);
    if (error != 0) {
        tg_log(TG_LOG_ERROR, "queue.leases", TG_TEXT_FIELD("error", tg_error_text(error)));
        return;
    }
    service->leases = true;
}

static void on_tick(void *context)
{
    struct queue_service *service = context;
    for (size_t i = 0; i < service->line_count; i++) {
        tick_line(service, &service->lines[i]);
    }
    serve_leases(service);
}

static int serve(struct queue_service *service)
{
    static const struct {
        enum tg_message subject;
        tg_bus_handler *handler;
    } served[] = {
        {TG_MESSAGE_QUEUE_PRESENCE, on_presence},
        {TG_MESSAGE_QUEUE_BOARD, on_board},
        {TG_MESSAGE_ADMISSION_PACE, on_pace},
        {TG_MESSAGE_GATE_STOCK, on_stock},
    };
    for (size_t i = 0; i < sizeof served / sizeof served[0]; i++) {
        int error =
            tg_bus_serve(tg_app_bus(service->app), served[i].subject, served[i].handler, service);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

int queue_service_start(struct tg_app *app, void *context)
{
    struct queue_service *service = context;
    service->app = app;
    tg_term_begin(&service->term, tg_app_instance(app), tg_now_mono(), random_jitter());
    struct tg_sales_spec spec = {.keys_folder = service->settings.keys,
                                 .on_change = on_sale,
                                 .on_command = on_command,
                                 .context = service};
    int error = tg_sales_open(app, &spec, &service->sales);
    if (error != 0) {
        return error;
    }
    error = serve(service);
    return error != 0 ? error : tg_app_every(app, TICK_MS, on_tick, service);
}

bool queue_service_ready(void *context, const char **out_why)
{
    struct queue_service *service = context;
    if (!tg_bus_connected(tg_app_bus(service->app))) {
        *out_why = "not connected to the bus";
        return false;
    }
    *out_why = "the ledger has not told the sales yet";
    return tg_sales_known(service->sales);
}

void queue_service_drain(void *context)
{
    struct queue_service *service = context;
    service->draining = true; /* falls silent: a standby takes over */
}

void queue_service_stop(void *context)
{
    struct queue_service *service = context;
    service->sales = tg_sales_free(service->sales);
}
