/* SPDX-License-Identifier: Apache-2.0
 * What everybody hears of sales: the listing on request, the state of each every second and on
 * change. The clock's work on sales (opening, selling out) is done by SQL; any number of ledgers
 * may ask for it. */
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"
#include "services/ledger/migrate.h"
#include "services/ledger/service_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Tokens of listings that nobody on the bus waits for. */
enum { TOKEN_VIEW = 0 };

struct ledger_sale *ledger_view_find(struct ledger *ledger, const char *sale)
{
    for (uint32_t i = 0; i < ledger->view.count; i++) {
        if (strcmp(ledger->view.rows[i].sale.name, sale) == 0) {
            return &ledger->view.rows[i];
        }
    }
    return NULL;
}

void ledger_on_sales(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ledger *ledger = context;
    const Tidegate__V1__SalesRequest *request =
        (const Tidegate__V1__SalesRequest *)tg_bus_body(take_incoming);
    const size_t after = strlen(request->after), only = strlen(request->sale);
    uint64_t token;
    const bool well = (after == 0 || tg_sale_name_valid(request->after, after)) &&
                      (only == 0 || tg_sale_name_valid(request->sale, only));
    if (!well || ledger_pending_new(&ledger->pendings, take_incoming, &token) == NULL) {
        tg_bus_reply_error(take_incoming, well ? 503 : 400,
                           tg_reason_code(well ? TG_REASON_TRY_AGAIN : TG_REASON_MALFORMED));
        return;
    }
    const int error =
        ledger->store->sales(ledger->store->self, request->after, request->sale, token);
    if (error != 0) {
        ledger_sales_listed(ledger, token, error, NULL);
    }
}

/* As many sales as fit one message; `end` when these were all. There is no reason field in the
 * answer: a listing that could not be read is a service error, never an empty list. */
void ledger_reply_sales(struct ledger *ledger, struct ledger_pending *pending, int status,
                        const struct ledger_sales *sales)
{
    Tidegate__V1__SalesReply reply = TIDEGATE__V1__SALES_REPLY__INIT;
    Tidegate__V1__SaleDefinition *definitions[TG_MAX_SALES];
    Tidegate__V1__SaleState *states[TG_MAX_SALES];
    if (status != 0) {
        ledger_pending_refuse(&ledger->pendings, pending, 503, tg_reason_code(TG_REASON_TRY_AGAIN));
        return;
    }
    size_t bytes = 64;
    for (uint32_t i = 0; i < sales->count; i++) {
        struct ledger_wire_sale *wire = &ledger->wire_sales[i];
        ledger_wire_sale(wire, &sales->rows[i]);
        bytes += tidegate__v1__sale_definition__get_packed_size(&wire->definition) +
                 tidegate__v1__sale_state__get_packed_size(&wire->state) + 8;
        if (bytes > LEDGER_REPLY_BYTES && i > 0) {
            break;
        }
        definitions[i] = &wire->definition;
        states[i] = &wire->state;
        reply.n_definitions = reply.n_states = i + 1;
    }
    reply.definitions = definitions;
    reply.states = states;
    reply.end = reply.n_states == sales->count;
    ledger_pending_reply(&ledger->pendings, pending, &reply.base);
}

static void tell_state(struct ledger *ledger, struct ledger_sale *sale)
{
    struct ledger_wire_sale *wire = &ledger->wire_sales[0];
    ledger_wire_sale(wire, sale);
    if (tg_bus_publish(tg_app_bus(ledger->app), TG_MESSAGE_STATE, sale->sale.name,
                       &wire->state.base) != 0) {
        tg_metric_add(TG_METRIC_BUS_CALL_FAILURES, "state", 1);
    }
    tg_metric_set(TG_METRIC_SALE_PHASE, sale->sale.name, (double)sale->sale.phase);
}

static void begin_listing(struct ledger *ledger)
{
    ledger->view_busy = true;
    ledger->view_again = false;
    const int error = ledger->store->sales(ledger->store->self, "", "", TOKEN_VIEW);
    if (error != 0) {
        ledger->view_busy = false;
    }
}

void ledger_tell_states(struct ledger *ledger)
{
    if (ledger->view_busy) {
        ledger->view_again = true;
        return;
    }
    begin_listing(ledger);
}

static void take_view(struct ledger *ledger, const struct ledger_sales *sales)
{
    struct ledger_id cursors[TG_MAX_SALES] = {{""}};
    for (uint32_t i = 0; i < sales->count; i++) {
        const struct ledger_sale *known = ledger_view_find(ledger, sales->rows[i].sale.name);
        if (known != NULL) {
            cursors[i] = ledger->lapsed_after[known - ledger->view.rows];
        }
    }
    memcpy(ledger->lapsed_after, cursors, sizeof cursors);
    ledger->view.count = sales->count;
    memcpy(ledger->view.rows, sales->rows, sales->count * sizeof sales->rows[0]);
    for (uint32_t i = 0; i < ledger->view.count; i++) {
        tell_state(ledger, &ledger->view.rows[i]);
    }
}

void ledger_sales_listed(void *context, uint64_t token, int status,
                         const struct ledger_sales *sales)
{
    struct ledger *ledger = context;
    if (token == TOKEN_VIEW) {
        ledger->view_busy = false;
        if (status == 0) {
            take_view(ledger, sales);
        }
        if (ledger->view_again) {
            begin_listing(ledger);
        }
        return;
    }
    struct ledger_pending *pending = ledger_pending_find(&ledger->pendings, token);
    if (pending == NULL) {
        return;
    }
    if (pending->judged != NULL) {
        ledger_reply_command(ledger, pending, status == 0 ? sales : NULL);
    } else {
        ledger_observe(ledger, status, pending->started_us);
        ledger_reply_sales(ledger, pending, status, sales);
    }
}

void ledger_second(void *context)
{
    struct ledger *ledger = context;
    if (ledger->store->health(ledger->store->self, 0) != 0) {
        ledger->unhealthy_why = "PostgreSQL is not connected";
    }
    if (ledger->store->tick(ledger->store->self, 0) != 0) {
        tg_metric_add(TG_METRIC_LEDGER_STATEMENTS, "unsent", 1);
    }
}

void ledger_ticked(void *context, uint64_t token, int status, uint32_t changed)
{
    struct ledger *ledger = context;
    if (status == 0 && changed > 0) {
        tg_log(TG_LOG_INFO, "ledger.sales_moved", TG_NUMBER_FIELD("sales", changed));
    }
    ledger_tell_states(ledger);
}

void ledger_health_known(void *context, uint64_t token, int status,
                         const struct ledger_health *health)
{
    struct ledger *ledger = context;
    if (status != 0) {
        ledger->unhealthy_why = status == TG_ERR_STORE ? "the schema is not there: run --migrate"
                                                       : "PostgreSQL does not answer";
        return;
    }
    if (health->version > ledger_schema_version()) {
        ledger->unhealthy_why = "the schema is newer than this binary";
        tg_app_fail(ledger->app, "ledger.schema_unknown", TG_ERR_SETTING);
        return;
    }
    if (health->version < ledger_schema_version()) {
        ledger->unhealthy_why = "the schema is older than this binary: run --migrate";
        return;
    }
    if (!health->writable) {
        ledger->unhealthy_why = "PostgreSQL is read-only";
        return;
    }
    if (!health->sound && ledger->sound_told) {
        tg_log(TG_LOG_WARN, "ledger.unsound",
               TG_TEXT_FIELD("why",
                             "a 201 is no promise here: tidegatectl doctor names what to change"));
    }
    ledger->sound_told = health->sound;
    ledger->clock_ahead_ms = health->now_ms - tg_now_wall().ms;
    memcpy(ledger->configuration, health->configuration, sizeof ledger->configuration);
    ledger->healthy_at = tg_now_mono();
}

void ledger_configuration(const struct ledger *ledger, char *out_text, size_t capacity)
{
    const char *why;
    if (!ledger_ready(ledger, &why)) {
        return;
    }
    (void)snprintf(out_text, capacity, "%spostgres_clock_ahead_ms %" PRId64 "\nevent_stream %s\n",
                   ledger->configuration, ledger->clock_ahead_ms,
                   ledger->publisher.stream_made ? "made" : "missing");
}
