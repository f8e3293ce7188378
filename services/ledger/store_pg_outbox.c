/* SPDX-License-Identifier: Apache-2.0
 * Events on their way out, and the health of the store. */
#include "services/ledger/store_pg_parts.h"

static void read_event(struct ledger_event *out, struct store_row *row)
{
    out->id = store_number(row, 0);
    store_copy(row, 1, out->message_id, sizeof out->message_id);
    store_copy(row, 2, out->sale, sizeof out->sale);
    out->generation = (uint64_t)store_number(row, 3);
    store_copy(row, 4, out->kind, sizeof out->kind);
    store_copy(row, 5, out->reservation.text, sizeof out->reservation.text);
    out->user_length = (uint8_t)store_bytes_read(row, 6, out->user, sizeof out->user);
    out->unit_count = store_units(row, 7, out->units);
    store_copy(row, 8, out->order_id, sizeof out->order_id);
    store_copy(row, 9, out->payment, sizeof out->payment);
    out->amount_minor = store_number(row, 10);
    store_copy(row, 11, out->currency, sizeof out->currency);
    store_copy(row, 12, out->detail, sizeof out->detail);
    out->at_ms = store_number(row, 13);
}

static void on_events(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    uint32_t count = 0;
    if (status == 0) {
        for (row.row = 0; row.row < PQntuples(result) && count < LEDGER_EVENTS_PAGE; row.row++) {
            read_event(&store->events[count++], &row);
        }
    }
    status = store_outcome(status, result, &row);
    store->answers.events(store->answers.context, token, status, store->events, count);
}

int store_pg_events(void *self, const char *instance, uint64_t token)
{
    struct store_call call;
    store_call_begin(&call, "SELECT * FROM tidegate.outbox_page($1, $2::integer)");
    store_call_text(&call, instance);
    store_call_number(&call, LEDGER_EVENTS_PAGE);
    return store_call_run(self, &call, on_events, token);
}

static void on_published(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    status = store_outcome(status, result, NULL);
    store->answers.published(store->answers.context, token, status);
}

int store_pg_published(void *self, const int64_t *ids, uint32_t count, uint64_t token)
{
    struct store_pg *store = self;
    struct store_call call;
    store_array_begin(&store->texts[0]);
    for (uint32_t i = 0; i < count; i++) {
        store_array_number(&store->texts[0], ids[i]);
    }
    store_array_end(&store->texts[0]);
    store_call_begin(&call, "SELECT tidegate.outbox_published($1::bigint[])");
    store_call_text(&call, store->texts[0].data);
    return store_call_run(store, &call, on_published, token);
}

static void on_health(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    struct ledger_health health = {0};
    if (status == 0) {
        health.version = store_small(&row, 0);
        health.writable = store_flag(&row, 1);
        health.sound = store_flag(&row, 2);
        health.now_ms = store_number(&row, 3);
        store_copy(&row, 4, health.configuration, sizeof health.configuration);
    }
    status = store_outcome(status, result, &row);
    store->answers.health(store->answers.context, token, status, &health);
}

int store_pg_health(void *self, uint64_t token)
{
    struct store_call call;
    store_call_begin(&call, "SELECT * FROM tidegate.health()");
    return store_call_run(self, &call, on_health, token);
}
