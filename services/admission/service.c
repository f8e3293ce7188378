// SPDX-License-Identifier: Apache-2.0
#include "services/admission/service.h"

#include "lib/io/failpoint.h"
#include "lib/io/keys.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"
#include "lib/io/pass_keys.h"
#include "services/admission/wire.h"

#include <stdio.h>
#include <string.h>

enum { SHARE_EVERY_MS = 100, EXPORT_EVERY_MS = 1000 };

static struct admission_view view_of(const struct admission_service *service, size_t index,
                                     const struct tg_sale *sale)
{
    return (struct admission_view){.phase = tg_sale_phase(sale, tg_now_mono()),
                                   .generation = sale->generation,
                                   .order = sale->order,
                                   .draw = sale->draw,
                                   .bounds = {.operator_milli = sale->pace_milli,
                                              .start_milli = sale->pace_start_milli,
                                              .min_milli = sale->pace_min_milli,
                                              .max_milli = sale->pace_max_milli,
                                              .budget_milli = service->budgets_milli[index]}};
}

static void tell_pace(struct admission_service *service, size_t index,
                      const struct admission_pace *pace)
{
    const char *sale = tg_brains_name(&service->brains, index);
    char detail[ADMISSION_DETAIL_BYTES];
    Tidegate__V1__Pace message;
    admission_wire_pace(sale, service->brains.term.instance, pace, detail, &message);
    tg_brains_say(&service->brains, TG_MESSAGE_ADMISSION_PACE, index, &message.base);
    tg_metric_set(TG_METRIC_PACE, sale, (double)pace->pace_milli / 1000.0);
    tg_metric_set(TG_METRIC_PACE_BASE, sale, (double)pace->base_milli / 1000.0);
    tg_metric_add(TG_METRIC_PACE_TOLD, admission_limiting_name(pace->limiting), 1);
}

/* Feeds one event; `out_answer` (may be NULL) is filled when the event is a request. */
static void feed(struct admission_service *service, size_t index,
                 const struct admission_event *event, struct admission_answer *out_answer)
{
    struct admission_action actions[ADMISSION_ACTIONS_MAX];
    const struct admission_now now = {.mono = tg_now_mono(), .wall = tg_now_wall()};
    size_t count = admission_step(&service->by_sale[index], now, event, actions);
    for (size_t i = 0; i < count; i++) {
        switch (actions[i].kind) {
        case ADMISSION_DO_PACE:
            tell_pace(service, index, &actions[i].pace);
            break;
        case ADMISSION_DO_ANSWER:
            if (out_answer != NULL) {
                *out_answer = actions[i].answer;
            }
            break;
        case ADMISSION_DO_ROLE:
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
    struct admission_service *service = context;
    service->budgets_milli[index] = (uint64_t)service->settings.budget * 1000;
    admission_begin(&service->by_sale[index], &service->brains.term, &service->keys,
                    &service->goals, sale);
}

static void on_tick(void *context, size_t index, const struct tg_brain_tick *tick)
{
    struct admission_event event = {.kind = ADMISSION_TICK};
    event.tick.view = view_of(context, index, tick->sale);
    event.tick.connected = tick->connected;
    event.tick.jitter_ms = tick->jitter_ms;
    feed(context, index, &event, NULL);
}

static void on_share(void *context)
{
    struct admission_service *service = context;
    uint64_t wants[TG_MAX_SALES];
    uint64_t total_milli = (uint64_t)service->settings.budget * 1000;
    size_t count = service->brains.begun;
    for (size_t i = 0; i < count; i++) {
        wants[i] = admission_want(&service->by_sale[i], tg_now_mono());
    }
    admission_budget_share(wants, count, total_milli, service->budgets_milli);
}

static void on_export(void *context)
{
    struct admission_service *service = context;
    admission_gauge_export(service->gauges);
}

/* The core wrote header and claims; ES256 is libcrypto's, so the signature comes from here. */
static void sign_es256(const struct admission_service *service, struct admission_answer *answer)
{
    uint8_t signature[TG_PASS_SIGNATURE_BYTES];
    if (service->es256 == NULL || answer->reason != TG_REASON_NONE) {
        return;
    }
    size_t length = strlen(answer->pass);
    if (tg_es256_sign(service->es256, answer->pass, length, signature) == 0) {
        (void)tg_pass_attach(answer->pass, length, signature);
    } else {
        answer->reason = TG_REASON_TRY_AGAIN;
        answer->pass[0] = '\0';
    }
}

static void on_ask(void *context, struct tg_bus_incoming *take_incoming)
{
    struct admission_service *service = context;
    if (TG_FAILPOINT(ADMISSION_ASKED) != 0) {
        tg_bus_release(take_incoming);
        return;
    }
    const char *sale_name = tg_bus_sale(take_incoming);
    int index = tg_brains_find(&service->brains, sale_name);
    const struct tg_sale *sale = tg_sales_find(service->brains.sales, sale_name);
    struct admission_answer answer = {.reason = tg_sales_missing(service->brains.sales)};
    struct admission_event event;
    enum tg_reason fault = admission_wire_ask(
        sale_name, (const Tidegate__V1__PassRequest *)tg_bus_body(take_incoming), &event);
    if (fault != TG_REASON_NONE) {
        answer.reason = fault;
    } else if (index >= 0 && sale != NULL) {
        event.ask.view = view_of(service, (size_t)index, sale);
        feed(service, (size_t)index, &event, &answer);
    }
    sign_es256(service, &answer);
    tg_metric_add(TG_METRIC_PASSES,
                  answer.reason == TG_REASON_NONE ? "admitted" : tg_reason_code(answer.reason), 1);
    if (answer.reason == TG_REASON_NONE && TG_FAILPOINT(ADMISSION_PASSED) != 0) {
        tg_bus_release(take_incoming);
        return;
    }
    Tidegate__V1__PassReply reply;
    admission_wire_answer(&answer, &reply);
    tg_bus_reply(take_incoming, &reply.base);
}

static void on_board(void *context, struct tg_bus_incoming *take_incoming)
{
    struct admission_service *service = context;
    struct admission_event event;
    enum tg_reason fault =
        admission_wire_board(tg_bus_sale(take_incoming),
                             (const Tidegate__V1__Board *)tg_bus_body(take_incoming), &event);
    tg_brains_take(&service->brains, take_incoming, fault, &event);
}

static void on_pace(void *context, struct tg_bus_incoming *take_incoming)
{
    struct admission_service *service = context;
    struct admission_event event;
    enum tg_reason fault = admission_wire_peer(
        tg_bus_sale(take_incoming), (const Tidegate__V1__Pace *)tg_bus_body(take_incoming), &event);
    tg_brains_take(&service->brains, take_incoming, fault, &event);
}

static void on_stock(void *context, struct tg_bus_incoming *take_incoming)
{
    struct admission_service *service = context;
    struct admission_event event;
    enum tg_reason fault =
        admission_wire_stock(tg_bus_sale(take_incoming),
                             (const Tidegate__V1__Stock *)tg_bus_body(take_incoming), &event);
    tg_brains_take(&service->brains, take_incoming, fault, &event);
}

static void take_load(struct admission_service *service, struct tg_bus_incoming *take_incoming,
                      enum admission_daemon daemon)
{
    struct admission_event event;
    enum tg_reason fault =
        admission_wire_load(tg_bus_sale(take_incoming),
                            (const Tidegate__V1__Load *)tg_bus_body(take_incoming), daemon, &event);
    if (fault == TG_REASON_NONE) {
        admission_gauge_hear(service->gauges, &event.load);
    }
    tg_brains_take(&service->brains, take_incoming, fault, &event);
}

static void on_load_edge(void *context, struct tg_bus_incoming *take_incoming)
{
    take_load(context, take_incoming, ADMISSION_EDGE);
}

static void on_load_reserve(void *context, struct tg_bus_incoming *take_incoming)
{
    take_load(context, take_incoming, ADMISSION_RESERVE);
}

static void on_load_ledger(void *context, struct tg_bus_incoming *take_incoming)
{
    take_load(context, take_incoming, ADMISSION_LEDGER);
}

static void on_signal(void *context, struct tg_bus_incoming *take_incoming)
{
    struct admission_service *service = context;
    struct admission_event event;
    enum tg_reason fault =
        admission_wire_signal(tg_bus_sale(take_incoming),
                              (const Tidegate__V1__Signal *)tg_bus_body(take_incoming), &event);
    tg_brains_take(&service->brains, take_incoming, fault, &event);
}

static struct admission_goals goals_of(const struct admission_settings *settings)
{
    return (struct admission_goals){.edge_late_us = (uint64_t)settings->edge_late_ms * 1000,
                                    .gate_p99_us = (uint64_t)settings->gate_p99_ms * 1000,
                                    .ledger_p99_us = (uint64_t)settings->ledger_p99_ms * 1000,
                                    .error_permille = (uint64_t)settings->error_permille,
                                    .in_flight = (uint64_t)settings->in_flight,
                                    .database_cpu_milli = (uint64_t)settings->database_cpu * 1000,
                                    .payment_errors_milli =
                                        (uint64_t)settings->payment_errors * 1000,
                                    .ramp_ms = settings->ramp_ms,
                                    .lanes = settings->lanes != 0,
                                    .slow_one_in = (uint64_t)settings->slow_one_in};
}

int admission_service_check(void *context)
{
    struct admission_service *service = context;
    const char *algorithm = service->settings.pass_algorithm;
    bool es256 = strcmp(algorithm, "ES256") == 0;
    if (!es256 && strcmp(algorithm, "EdDSA") != 0) {
        (void)fprintf(stderr,
                      "TIDEGATE_ADMISSION_PASS_ALGORITHM=\"%s\" is refused; expected EdDSA or "
                      "ES256\n",
                      algorithm);
        return TG_ERR_SETTING;
    }
    service->keys.algorithm = es256 ? TG_PASS_ES256 : TG_PASS_EDDSA;
    return 0;
}

static int read_keys(void *context)
{
    struct admission_service *service = context;
    int error = tg_keys_ring(service->settings.keys, "ticket", &service->keys.tickets);
    if (error == 0) {
        error = tg_keys_sign(service->settings.keys, "pass", &service->keys.sign);
    }
    if (error == 0) {
        error = tg_keys_secret(service->settings.keys, "entrant", service->keys.entrant);
    }
    if (error == 0) {
        error = tg_keys_secret(service->settings.keys, "pass-mac", service->keys.mac);
    }
    if (error == 0 && service->keys.algorithm == TG_PASS_ES256) {
        error = tg_pass_keys_es256(service->settings.keys, service->keys.es256_id, &service->es256);
    }
    return error;
}

int admission_service_start(struct tg_app *app, void *context)
{
    struct admission_service *service = context;
    static const struct tg_bus_subject subjects[] = {
        {TG_MESSAGE_ADMISSION_PASS, on_ask},      {TG_MESSAGE_ADMISSION_PACE, on_pace},
        {TG_MESSAGE_QUEUE_BOARD, on_board},       {TG_MESSAGE_GATE_STOCK, on_stock},
        {TG_MESSAGE_LOAD_EDGE, on_load_edge},     {TG_MESSAGE_LOAD_RESERVE, on_load_reserve},
        {TG_MESSAGE_LOAD_LEDGER, on_load_ledger}, {TG_MESSAGE_LOAD_SIGNAL, on_signal},
    };
    const struct tg_brain_spec spec = {.keys_folder = service->settings.keys,
                                       .role_event = "admission.role",
                                       .begin = on_begin,
                                       .tick = on_tick,
                                       .feed = on_event,
                                       .context = service};
    service->goals = goals_of(&service->settings);
    int error = read_keys(service);
    if (error == 0) {
        error = tg_app_on_reload(app, read_keys, service);
    }
    if (error == 0) {
        error = tg_brains_start(&service->brains, app, &spec, subjects,
                                sizeof subjects / sizeof subjects[0]);
    }
    if (error == 0) {
        error = tg_app_every(app, SHARE_EVERY_MS, on_share, service);
    }
    return error != 0 ? error : tg_app_every(app, EXPORT_EVERY_MS, on_export, service);
}

bool admission_service_ready(void *context, const char **out_why)
{
    const struct admission_service *service = context;
    return tg_brains_ready(&service->brains, out_why);
}

/* The pace falls silent; passes are signed until the bus closes. */
void admission_service_drain(void *context)
{
    struct admission_service *service = context;
    service->brains.draining = true;
}

void admission_service_stop(void *context)
{
    struct admission_service *service = context;
    tg_brains_stop(&service->brains);
    service->es256 = tg_es256_free(service->es256);
}
