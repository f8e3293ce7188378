/* SPDX-License-Identifier: Apache-2.0
 * Verdicts: what one caller asks of one reservation, what the sweeper asks of many. */
#include "services/ledger/store_pg_parts.h"

#include <string.h>

static void on_reservation(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    struct ledger_reservation answer;
    if (status == 0) {
        answer.reason = store_reason(&row, 0);
        store_copy(&row, 1, answer.sale, sizeof answer.sale);
        answer.state = store_state(&row, 2);
        answer.expires_ms = store_number(&row, 3);
        answer.unit_count = store_units(&row, 4, answer.units);
        store_copy(&row, 5, answer.order_id, sizeof answer.order_id);
        store_copy(&row, 6, answer.payment, sizeof answer.payment);
        answer.replayed = store_flag(&row, 7);
        answer.epoch = (uint64_t)store_number(&row, 8);
    }
    status = store_outcome(status, result, &row);
    store->answers.reservation(store->answers.context, token, status, &answer);
}

int store_pg_reservation(void *self, const struct ledger_ask *ask, uint64_t token)
{
    struct store_pg *store = self;
    struct store_call call;
    char order_id[LEDGER_ORDER_ID_LENGTH + 1];
    const char *user = NULL;
    if (!ask->service) {
        store_bytes(&store->texts[0], ask->user, ask->user_length);
        user = store->texts[0].data;
    }
    switch (ask->verb) {
    case LEDGER_READ:
        store_call_begin(&call, "SELECT * FROM tidegate.read_reservation($1, $2::bytea)");
        store_call_text(&call, ask->id.text);
        store_call_text(&call, user);
        break;
    case LEDGER_CONFIRM:
        store_call_begin(&call,
                         "SELECT * FROM tidegate.confirm_reservation($1, $2, $3::bigint, $4, $5)");
        store_call_text(&call, ask->id.text);
        store_call_text(&call, ask->payment);
        store_call_number(&call, ask->amount_minor);
        store_call_text(&call, ask->currency);
        ledger_order_id(ask->id.text, order_id);
        store_call_text(&call, order_id);
        break;
    case LEDGER_EXTEND:
        store_call_begin(&call, "SELECT * FROM tidegate.extend_reservation($1)");
        store_call_text(&call, ask->id.text);
        break;
    case LEDGER_CANCEL:
        store_call_begin(&call, "SELECT * FROM tidegate.cancel_reservation($1, $2::bytea)");
        store_call_text(&call, ask->id.text);
        store_call_text(&call, user);
        break;
    }
    return store_call_run(store, &call, on_reservation, token);
}

static void on_expired(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    struct ledger_verdicts *verdicts = &store->verdicts;
    verdicts->count = 0;
    if (status == 0) {
        verdicts->reason = store_reason(&row, 2);
        verdicts->epoch = (uint64_t)store_number(&row, 3);
        for (row.row = 1; row.row < PQntuples(result) && verdicts->count < 2 * TG_MAX_PAGE;
             row.row++) {
            struct ledger_verdict *verdict = &verdicts->rows[verdicts->count++];
            store_copy(&row, 0, verdict->id.text, sizeof verdict->id.text);
            verdict->state = store_state(&row, 1);
        }
    }
    status = store_outcome(status, result, &row);
    store->answers.expired(store->answers.context, token, status, verdicts);
}

int store_pg_expire(void *self, const struct ledger_expire *ask, uint64_t token)
{
    struct store_pg *store = self;
    struct store_text *arrays = store->texts;
    struct store_call call;
    store_call_begin(
        &call, "SELECT * FROM tidegate.expire_reservations($1, $2::bigint, $3::bigint, $4::text[], "
               "$5::text[], $6::bytea[], $7::bytea[], $8::bigint[], $9::bytea[])");
    store_call_text(&call, ask->sale);
    store_call_number(&call, (int64_t)ask->generation);
    store_call_number(&call, (int64_t)ask->epoch);
    for (int i = 0; i < 6; i++) {
        store_array_begin(&arrays[i]);
    }
    for (uint32_t i = 0; i < ask->id_count; i++) {
        store_array_text(&arrays[0], ask->ids[i].text);
    }
    for (uint32_t i = 0; i < ask->tombstone_count; i++) {
        const struct ledger_tombstone *tombstone = &ask->tombstones[i];
        store_array_text(&arrays[1], tombstone->id.text);
        store_array_bytes(&arrays[2], tombstone->user, tombstone->user_length);
        store_array_bytes(&arrays[3], tombstone->place, sizeof tombstone->place);
        store_array_number(&arrays[4], (int64_t)tombstone->window);
        store_array_bytes(&arrays[5], tombstone->digest, sizeof tombstone->digest);
    }
    for (int i = 0; i < 6; i++) {
        store_array_end(&arrays[i]);
        store_call_text(&call, arrays[i].data);
    }
    return store_call_run(store, &call, on_expired, token);
}

static void on_obeyed(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    enum tg_reason reason = status == 0 ? store_reason(&row, 0) : TG_REASON_TRY_AGAIN;
    uint32_t stored = status == 0 ? store_small(&row, 1) : 0;
    status = store_outcome(status, result, &row);
    store->answers.obeyed(store->answers.context, token, status, reason, stored);
}

int store_pg_obeyed(void *self, const struct ledger_obeyed *ask, uint64_t token)
{
    struct store_pg *store = self;
    struct store_call call;
    store_array_begin(&store->texts[0]);
    store_array_begin(&store->texts[1]);
    for (uint32_t i = 0; i < ask->count; i++) {
        store_array_text(&store->texts[0], ask->ids[i].text);
        store_array_text(&store->texts[1], ask->kinds[i] == LEDGER_SETTLE ? "settle" : "release");
    }
    store_array_end(&store->texts[0]);
    store_array_end(&store->texts[1]);
    store_call_begin(
        &call, "SELECT * FROM tidegate.obeyed_orders($1, $2::bigint, $3::text[], $4::text[])");
    store_call_text(&call, ask->sale);
    store_call_number(&call, (int64_t)ask->epoch);
    store_call_text(&call, store->texts[0].data);
    store_call_text(&call, store->texts[1].data);
    return store_call_run(store, &call, on_obeyed, token);
}

static void read_due(struct ledger_due *due, struct store_row *row)
{
    char kind[16];
    store_copy(row, 0, kind, sizeof kind);
    if (strcmp(kind, "") == 0) {
        due->known = true;
        due->epoch = (uint64_t)store_number(row, 2);
        due->generation = (uint64_t)store_number(row, 3);
    } else if (strcmp(kind, "lapsed") == 0 && due->lapsed_count < TG_MAX_PAGE) {
        struct ledger_id *id = &due->lapsed[due->lapsed_count++];
        store_copy(row, 1, id->text, sizeof id->text);
    } else if (due->order_count < TG_MAX_PAGE) {
        struct ledger_id *id = &due->orders[due->order_count];
        store_copy(row, 1, id->text, sizeof id->text);
        due->kinds[due->order_count++] =
            strcmp(kind, "settle") == 0 ? LEDGER_SETTLE : LEDGER_RELEASE;
    }
}

static void on_due(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    struct ledger_due *due = &store->due;
    due->known = false;
    due->lapsed_count = 0;
    due->order_count = 0;
    if (status == 0) {
        for (row.row = 0; row.row < PQntuples(result); row.row++) {
            read_due(due, &row);
        }
    }
    status = store_outcome(status, result, &row);
    store->answers.due(store->answers.context, token, status, due);
}

int store_pg_due(void *self, const struct ledger_due_ask *ask, uint64_t token)
{
    struct store_pg *store = self;
    struct store_call call;
    store_call_begin(&call, "SELECT * FROM tidegate.due_work($1, $2, $3, $4::integer)");
    store_call_text(&call, ask->sale);
    store_call_text(&call, ask->orders_after.text);
    store_call_text(&call, ask->lapsed_after.text);
    store_call_number(&call, ask->limit);
    return store_call_run(store, &call, on_due, token);
}
