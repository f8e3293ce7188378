// SPDX-License-Identifier: Apache-2.0
#include "services/admission/service.h"

#include "lib/io/bus.h"
#include "lib/io/keys.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"
#include "services/admission/wire.h"

#include <string.h>

enum { TICK_MS = 50, LOAD_EVERY_MS = 1000 };

static struct admission_brain *find_brain(struct admission_service *service, const char *sale)
{
    for (size_t i = 0; i < service->brain_count; i++) {
        if (strcmp(service->brains[i].sale, sale) == 0) {
            return &service->brains[i];
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

static struct admission_view view_of(const struct tg_sale *sale)
{
    return (struct admission_view){.phase = tg_sale_phase(sale, tg_now_mono()),
                                   .generation = sale->generation,
                                   .random = sale->random,
                                   .pace_operator_milli = sale->pace_milli,
                                   .pace_start_milli = sale->pace_start_milli,
                                   .pace_min_milli = sale->pace_min_milli,
                                   .pace_max_milli = sale->pace_max_milli};
}

static void tell_pace(struct admission_service *service, const char *sale,
                      const struct admission_pace *pace)
{
    Tidegate__V1__Pace message;
    admission_wire_pace(sale, service->term.instance, pace, &message);
    if (tg_bus_publish(tg_app_bus(service->app), TG_MESSAGE_ADMISSION_PACE, sale, &message.base) !=
        0) {
        tg_metric_add(TG_METRIC_BUS_CALL_FAILURES, "disconnected", 1);
    }
    tg_metric_set(TG_METRIC_PACE, sale, (double)pace->pace_milli / 1000.0);
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

/* Feeds one event; `out_answer` (may be NULL) is filled when the event is a request. */
static void feed(struct admission_service *service, struct admission_brain *brain,
                 const struct admission_event *event, struct admission_answer *out_answer)
{
    struct admission_action actions[ADMISSION_ACTIONS_MAX];
    const struct admission_now now = {.mono = tg_now_mono(), .wall = tg_now_wall()};
    size_t count = admission_step(brain, now, event, actions);
    for (size_t i = 0; i < count; i++) {
        switch (actions[i].kind) {
        case ADMISSION_DO_PACE:
            tell_pace(service, brain->sale, &actions[i].pace);
            break;
        case ADMISSION_DO_ANSWER:
            if (out_answer != NULL) {
                *out_answer = actions[i].answer;
            }
            break;
        case ADMISSION_DO_ROLE:
            tg_log(TG_LOG_INFO, "admission.role",
                   TG_TEXT_FIELD("role", role_name(actions[i].role.role)),
                   TG_NUMBER_FIELD("term", actions[i].role.term));
            break;
        }
    }
}

static void tick_brain(struct admission_service *service, struct admission_brain *brain)
{
    const struct tg_sale *sale = tg_sales_find(service->sales, brain->sale);
    if (sale == NULL || service->draining) {
        return;
    }
    struct admission_event event = {.kind = ADMISSION_TICK};
    event.tick.view = view_of(sale);
    event.tick.connected = tg_bus_connected(tg_app_bus(service->app));
    event.tick.jitter_ms = random_jitter();
    feed(service, brain, &event, NULL);
}

static void on_tick(void *context)
{
    struct admission_service *service = context;
    for (size_t i = 0; i < service->brain_count; i++) {
        tick_brain(service, &service->brains[i]);
    }
}

static void on_load_tick(void *context)
{
    struct admission_service *service = context;
    admission_load_export(&service->load_reserve);
    admission_load_export(&service->load_ledger);
}

static void on_sale(void *context, struct tg_sale *sale)
{
    struct admission_service *service = context;
    struct admission_brain *brain = find_brain(service, sale->name);
    if (brain == NULL) {
        if (service->brain_count == TG_MAX_SALES) {
            tg_log(TG_LOG_ERROR, "admission.full", TG_TEXT_FIELD("sale", sale->name));
            return;
        }
        brain = &service->brains[service->brain_count++];
        admission_begin(brain, &service->term, &service->keys, sale->name);
    }
    tick_brain(service, brain);
}

static const char *on_command(void *context, struct tg_sale *sale,
                              const Tidegate__V1__Command *command)
{
    struct admission_service *service = context;
    if (command->kind != TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE || sale == NULL) {
        return "noted";
    }
    on_sale(service, sale);
    return "honoured";
}

static void on_ask(void *context, struct tg_bus_incoming *take_incoming)
{
    struct admission_service *service = context;
    const char *sale_name = tg_bus_sale(take_incoming);
    struct admission_brain *brain = find_brain(service, sale_name);
    const struct tg_sale *sale = tg_sales_find(service->sales, sale_name);
    struct admission_answer answer = {.reason = TG_REASON_SALE_UNKNOWN};
    struct admission_event event;
    enum tg_reason fault = admission_wire_ask(
        sale_name, (const Tidegate__V1__PassRequest *)tg_bus_body(take_incoming), &event);
    if (fault != TG_REASON_NONE) {
        answer.reason = fault;
    } else if (brain != NULL && sale != NULL) {
        event.ask.view = view_of(sale);
        feed(service, brain, &event, &answer);
    }
    tg_metric_add(TG_METRIC_PASSES,
                  answer.reason == TG_REASON_NONE ? "admitted" : tg_reason_code(answer.reason), 1);
    Tidegate__V1__PassReply reply;
    admission_wire_answer(&answer, &reply);
    tg_bus_reply(take_incoming, &reply.base);
}

/* What all publications have in common: checked, fed if the sale is known, released. */
static void take(struct admission_service *service, struct tg_bus_incoming *take_incoming,
                 enum tg_reason fault, const struct admission_event *event)
{
    struct admission_brain *brain = find_brain(service, tg_bus_sale(take_incoming));
    if (fault != TG_REASON_NONE) {
        tg_metric_add(TG_METRIC_BUS_INVALID, tg_bus_body(take_incoming)->descriptor->short_name, 1);
    } else if (brain != NULL) {
        feed(service, brain, event, NULL);
    }
    tg_bus_release(take_incoming);
}

static void on_board(void *context, struct tg_bus_incoming *take_incoming)
{
    struct admission_event event;
    enum tg_reason fault =
        admission_wire_board(tg_bus_sale(take_incoming),
                             (const Tidegate__V1__Board *)tg_bus_body(take_incoming), &event);
    take(context, take_incoming, fault, &event);
}

static void on_pace(void *context, struct tg_bus_incoming *take_incoming)
{
    struct admission_event event;
    enum tg_reason fault = admission_wire_peer(
        tg_bus_sale(take_incoming), (const Tidegate__V1__Pace *)tg_bus_body(take_incoming), &event);
    take(context, take_incoming, fault, &event);
}

static void on_stock(void *context, struct tg_bus_incoming *take_incoming)
{
    struct admission_event event;
    enum tg_reason fault =
        admission_wire_stock(tg_bus_sale(take_incoming),
                             (const Tidegate__V1__Stock *)tg_bus_body(take_incoming), &event);
    take(context, take_incoming, fault, &event);
}

static void on_load(void *context, struct tg_bus_incoming *take_incoming)
{
    admission_load_hear(context, (const Tidegate__V1__Load *)tg_bus_body(take_incoming));
    tg_bus_release(take_incoming);
}

static int serve(struct admission_service *service)
{
    const struct {
        enum tg_message subject;
        tg_bus_handler *handler;
        void *context;
    } served[] = {
        {TG_MESSAGE_ADMISSION_PASS, on_ask, service},
        {TG_MESSAGE_ADMISSION_PACE, on_pace, service},
        {TG_MESSAGE_QUEUE_BOARD, on_board, service},
        {TG_MESSAGE_GATE_STOCK, on_stock, service},
        {TG_MESSAGE_LOAD_RESERVE, on_load, &service->load_reserve},
        {TG_MESSAGE_LOAD_LEDGER, on_load, &service->load_ledger},
    };
    for (size_t i = 0; i < sizeof served / sizeof served[0]; i++) {
        int error = tg_bus_serve(tg_app_bus(service->app), served[i].subject, served[i].handler,
                                 served[i].context);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

static int read_keys(struct admission_service *service)
{
    int error = tg_keys_ring(service->settings.keys, "ticket", &service->keys.tickets);
    if (error == 0) {
        error = tg_keys_sign(service->settings.keys, "pass", &service->keys.sign);
    }
    return error != 0 ? error
                      : tg_keys_secret(service->settings.keys, "pass-mac", service->keys.mac);
}

int admission_service_start(struct tg_app *app, void *context)
{
    struct admission_service *service = context;
    service->app = app;
    service->load_reserve.daemon = "reserve";
    service->load_ledger.daemon = "ledger";
    tg_term_begin(&service->term, tg_app_instance(app), tg_now_mono(), random_jitter());
    int error = read_keys(service);
    if (error != 0) {
        return error;
    }
    struct tg_sales_spec spec = {.keys_folder = service->settings.keys,
                                 .on_change = on_sale,
                                 .on_command = on_command,
                                 .context = service};
    error = tg_sales_open(app, &spec, &service->sales);
    if (error == 0) {
        error = serve(service);
    }
    if (error == 0) {
        error = tg_app_every(app, LOAD_EVERY_MS, on_load_tick, service);
    }
    return error != 0 ? error : tg_app_every(app, TICK_MS, on_tick, service);
}

bool admission_service_ready(void *context, const char **out_why)
{
    struct admission_service *service = context;
    if (!tg_bus_connected(tg_app_bus(service->app))) {
        *out_why = "not connected to the bus";
        return false;
    }
    *out_why = "the ledger has not told the sales yet";
    return tg_sales_known(service->sales);
}

/* The pace falls silent so that a standby takes over; passes are signed until the bus closes. */
void admission_service_drain(void *context)
{
    struct admission_service *service = context;
    service->draining = true;
}

void admission_service_stop(void *context)
{
    struct admission_service *service = context;
    service->sales = tg_sales_free(service->sales);
}
