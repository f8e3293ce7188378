/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ledger/service_parts.h"

#include "lib/io/keys.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { SECOND_MS = 1000, OUTBOX_MS = 50, LOAD_MS = 250 };

static const char *outcome_of(int status)
{
    switch (status) {
    case 0:
        return "done";
    case TG_ERR_STORE:
        return "refused";
    case TG_ERR_TIMEOUT:
        return "timeout";
    case TG_ERR_FULL:
        return "full";
    default:
        return "disconnected";
    }
}

void ledger_observe(struct ledger *ledger, int status, uint64_t started_us)
{
    const uint64_t took_us = tg_now_us() - started_us;
    tg_metric_add(TG_METRIC_LEDGER_STATEMENTS, outcome_of(status), 1);
    tg_metric_observe_us(TG_METRIC_LEDGER_SECONDS, "", took_us);
    tg_histogram_add(&ledger->load.latency, took_us);
    if (status != 0) {
        ledger->load.errors++;
    }
}

struct ledger_pending *ledger_ask_begin(struct ledger *ledger,
                                        struct tg_bus_incoming *take_incoming,
                                        enum tg_reason reason, uint64_t *out_token)
{
    struct ledger_pending *pending = NULL;
    if (reason == TG_REASON_NONE) {
        pending = ledger_pending_new(&ledger->pendings, take_incoming, out_token);
        reason = TG_REASON_TRY_AGAIN;
    }
    if (pending == NULL) {
        tg_bus_reply_reason(take_incoming, tg_reason_code(reason));
    }
    return pending;
}

void ledger_ask_sent(struct ledger *ledger, uint64_t token, int error)
{
    if (error != 0) {
        (void)ledger_ask_end(ledger, token, error, TG_REASON_TRY_AGAIN);
    }
}

struct ledger_pending *ledger_ask_end(struct ledger *ledger, uint64_t token, int status,
                                      enum tg_reason reason)
{
    struct ledger_pending *pending = ledger_pending_find(&ledger->pendings, token);
    if (pending == NULL) {
        return NULL;
    }
    ledger_observe(ledger, status, pending->started_us);
    reason = status != 0 ? TG_REASON_TRY_AGAIN : reason;
    if (reason != TG_REASON_NONE) {
        ledger_pending_reply_reason(&ledger->pendings, pending, reason);
        return NULL;
    }
    return pending;
}

/* One process, one load: the same numbers for every sale that is not over. */
void ledger_tell_load(void *context)
{
    struct ledger *ledger = context;
    Tidegate__V1__Load load = TIDEGATE__V1__LOAD__INIT;
    load.daemon = ledger_text(tg_app_name(ledger->app));
    load.instance = ledger_text(tg_app_instance(ledger->app));
    load.p99_us = tg_histogram_at_us(&ledger->load.latency, 990);
    load.requests = ledger->load.requests;
    load.errors = ledger->load.errors;
    load.in_flight = ledger->pendings.used;
    for (uint32_t i = 0; i < ledger->view.count; i++) {
        struct tg_sale *sale = &ledger->view.rows[i].sale;
        load.sale = sale->name;
        if (sale->phase != TG_PHASE_CLOSED &&
            tg_bus_publish(tg_app_bus(ledger->app), TG_MESSAGE_LOAD_LEDGER, sale->name,
                           &load.base) != 0) {
            return;
        }
    }
    memset(&ledger->load, 0, sizeof ledger->load);
}

static int serve_all(struct ledger *ledger)
{
    static const struct tg_bus_subject served[] = {{TG_MESSAGE_LEDGER_RECORD, ledger_on_record},
                                                   {TG_MESSAGE_LEDGER_EXPIRE, ledger_on_expire},
                                                   {TG_MESSAGE_LEDGER_OBEYED, ledger_on_obeyed},
                                                   {TG_MESSAGE_LEDGER_DUE, ledger_on_due},
                                                   {TG_MESSAGE_LEDGER_SNAPSHOT, ledger_on_snapshot},
                                                   {TG_MESSAGE_LEDGER_INCIDENT, ledger_on_incident},
                                                   {TG_MESSAGE_LEDGER_AUDIT, ledger_on_audit},
                                                   {TG_MESSAGE_LEDGER_DRAW, ledger_on_draw},
                                                   {TG_MESSAGE_LEDGER_ARMED, ledger_on_armed},
                                                   {TG_MESSAGE_LEDGER_APPEND, ledger_on_append},
                                                   {TG_MESSAGE_LEDGER_READ, ledger_on_read},
                                                   {TG_MESSAGE_LEDGER_CONFIRM, ledger_on_confirm},
                                                   {TG_MESSAGE_LEDGER_EXTEND, ledger_on_extend},
                                                   {TG_MESSAGE_LEDGER_CANCEL, ledger_on_cancel},
                                                   {TG_MESSAGE_LEDGER_SALES, ledger_on_sales}};
    return tg_bus_serve_all(tg_app_bus(ledger->app), served, sizeof served / sizeof served[0],
                            ledger);
}

static int open_store(struct ledger *ledger, const struct ledger_settings *settings)
{
    const struct tg_pg_spec spec = {.conninfo = settings->postgres_url,
                                    .connections = (uint32_t)settings->connections,
                                    .statement_ms = (uint32_t)settings->statement_ms,
                                    .queue_max = (uint32_t)settings->statement_queue};
    const struct ledger_answers answers = {.context = ledger,
                                           .recorded = ledger_recorded,
                                           .expired = ledger_expired,
                                           .obeyed = ledger_obeyed_stored,
                                           .due = ledger_due_found,
                                           .snapshot = ledger_snapshot_read,
                                           .incident = ledger_incident_read,
                                           .audit = ledger_audit_read,
                                           .drawn = ledger_drawn,
                                           .armed = ledger_armed_known,
                                           .checked = ledger_checked,
                                           .log_tail = ledger_log_tail_known,
                                           .log_stored = ledger_log_stored,
                                           .reservation = ledger_reservation_answered,
                                           .sales = ledger_sales_listed,
                                           .ticked = ledger_ticked,
                                           .judged = ledger_judged,
                                           .events = ledger_events_read,
                                           .published = ledger_events_marked,
                                           .health = ledger_health_known};
    int error = tg_pg_open(tg_app_loop(ledger->app), &spec, &ledger->pg);
    if (error == 0) {
        error = store_pg_open(ledger->pg, &answers, &ledger->store_pg);
    }
    if (error == 0) {
        ledger->store = store_pg_port(ledger->store_pg);
    }
    return error;
}

static int open_tables(struct ledger *ledger, const struct ledger_settings *settings)
{
    ledger->batch_storage = calloc(LEDGER_BATCHES, sizeof *ledger->batch_storage);
    ledger->batch_timer = calloc(1, sizeof *ledger->batch_timer);
    if (ledger->batch_storage == NULL || ledger->batch_timer == NULL) {
        return -ENOMEM;
    }
    ledger_batches_init(&ledger->batches, ledger->batch_storage, LEDGER_BATCHES,
                        ((uint32_t)settings->connections + 3) / 4);
    const int error = uv_timer_init(tg_app_loop(ledger->app), ledger->batch_timer);
    return error != 0 ? error : ledger_pendings_init(&ledger->pendings);
}

static int start_timers(struct ledger *ledger)
{
    int error = tg_app_every(ledger->app, SECOND_MS, ledger_second, ledger);
    if (error == 0) {
        error = tg_app_every(ledger->app, OUTBOX_MS, ledger_publish_outbox, ledger);
    }
    if (error == 0) {
        error = tg_app_every(ledger->app, LOAD_MS, ledger_tell_load, ledger);
    }
    return error;
}

int ledger_open(struct tg_app *app, const struct ledger_settings *settings,
                struct ledger **out_ledger)
{
    struct ledger *ledger = calloc(1, sizeof *ledger);
    if (ledger == NULL) {
        return -ENOMEM;
    }
    *out_ledger = ledger;
    ledger->app = app;
    ledger->unhealthy_why = "PostgreSQL has not answered yet";
    ledger->healthy_at.ms = INT64_MIN / 2;
    ledger->sound_told = true;
    int error = tg_keys_secret(settings->keys, "service.hash", ledger->service_hash);
    if (error == 0) {
        error = open_tables(ledger, settings);
    }
    if (error == 0) {
        error = open_store(ledger, settings);
    }
    if (error == 0) {
        const struct tg_sales_spec spec = {.keys_folder = settings->keys,
                                           .on_judge = ledger_on_judge,
                                           .context = ledger,
                                           .without_state = true};
        error = tg_sales_open(app, &spec, &ledger->control);
    }
    if (error == 0) {
        error = serve_all(ledger);
    }
    return error != 0 ? error : start_timers(ledger);
}

bool ledger_ready(const struct ledger *ledger, const char **out_why)
{
    if (ledger == NULL || tg_now_mono().ms - ledger->healthy_at.ms > LEDGER_FRESH_MS) {
        *out_why = ledger == NULL                 ? "starting"
                   : !tg_pg_connected(ledger->pg) ? tg_pg_fault(ledger->pg)
                                                  : ledger->unhealthy_why;
        return false;
    }
    return true;
}

void ledger_drain(struct ledger *ledger)
{
    ledger->draining = true;
}

size_t ledger_busy(const struct ledger *ledger)
{
    return ledger->pendings.used + ledger_publisher_busy(ledger);
}

static void free_handle(uv_handle_t *handle)
{
    free(handle);
}

struct ledger *ledger_free(struct ledger *ledger)
{
    if (ledger == NULL) {
        return NULL;
    }
    ledger->pg = tg_pg_free(ledger->pg);
    ledger->control = tg_sales_free(ledger->control);
    ledger->store_pg = store_pg_free(ledger->store_pg);
    ledger_pendings_free(&ledger->pendings);
    if (ledger->batch_timer != NULL) {
        uv_close((uv_handle_t *)ledger->batch_timer, free_handle);
    }
    free(ledger->batch_storage);
    free(ledger);
    return NULL;
}
