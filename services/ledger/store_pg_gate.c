/* SPDX-License-Identifier: Apache-2.0
 * What the gate and its checker ask: snapshots for loading, arming, results of rounds, the exported
 * log. */
#include "services/ledger/store_pg_parts.h"

#include <string.h>

static void read_snapshot_row(struct ledger_snapshot_row *out, struct store_row *row)
{
    store_copy(row, 0, out->id.text, sizeof out->id.text);
    out->state = store_state(row, 3);
    out->user_length = (uint8_t)store_bytes_read(row, 4, out->user, sizeof out->user);
    if (store_bytes_read(row, 5, out->place, sizeof out->place) != sizeof out->place ||
        store_bytes_read(row, 7, out->digest, sizeof out->digest) != sizeof out->digest) {
        row->bad = true;
    }
    out->window = (uint64_t)store_number(row, 6);
    out->expires_ms = store_number(row, 8);
    out->unit_count = store_units(row, 9, out->units);
    if (store_slots(row, 10, out->slots) != out->unit_count) {
        row->bad = true;
    }
}

static void on_snapshot(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    struct ledger_snapshot *page = &store->snapshot;
    page->count = 0;
    if (status == 0) {
        page->reason = store_reason(&row, 1);
        page->epoch = (uint64_t)store_number(&row, 2);
        for (row.row = 1; row.row < PQntuples(result) && page->count < TG_MAX_SNAPSHOT_PAGE;
             row.row++) {
            read_snapshot_row(&page->rows[page->count++], &row);
        }
    }
    status = store_outcome(status, result, &row);
    store->answers.snapshot(store->answers.context, token, status, page);
}

int store_pg_snapshot(void *self, const struct ledger_snapshot_ask *ask, uint64_t token)
{
    struct store_call call;
    store_call_begin(&call,
                     "SELECT * FROM tidegate.snapshot_page($1, $2::bigint, $3, $4::integer)");
    store_call_text(&call, ask->sale);
    store_call_number(&call, (int64_t)ask->epoch);
    store_call_text(&call, ask->after.text);
    store_call_number(&call, ask->limit);
    return store_call_run(self, &call, on_snapshot, token);
}

static void on_armed(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    enum tg_reason reason = status == 0 ? store_reason(&row, 0) : TG_REASON_TRY_AGAIN;
    status = store_outcome(status, result, &row);
    store->answers.armed(store->answers.context, token, status, reason);
}

int store_pg_armed(void *self, const struct ledger_armed *ask, uint64_t token)
{
    struct store_call call;
    store_call_begin(&call, "SELECT * FROM tidegate.armed_gate($1, $2::bigint, $3, $4)");
    store_call_text(&call, ask->sale);
    store_call_number(&call, (int64_t)ask->epoch);
    store_call_text(&call, ask->run_id);
    store_call_text(&call, ask->replication_id);
    return store_call_run(self, &call, on_armed, token);
}

static void on_checked(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    enum tg_reason reason = status == 0 ? store_reason(&row, 0) : TG_REASON_TRY_AGAIN;
    status = store_outcome(status, result, &row);
    store->answers.checked(store->answers.context, token, status, reason);
}

int store_pg_check(void *self, const struct ledger_check *ask, uint64_t token)
{
    struct store_call call;
    store_call_begin(
        &call,
        "SELECT * FROM tidegate.append_check($1, $2::bigint, $3, $4::bigint, $5, $6, $7::bigint, "
        "$8::bigint, $9::bigint, $10::bigint, $11::bigint, $12::bigint, $13::integer)");
    store_call_text(&call, ask->sale);
    store_call_number(&call, (int64_t)ask->epoch);
    store_call_text(&call, ask->instance);
    store_call_number(&call, ask->checked_ms);
    store_call_text(&call, ask->outcome);
    store_call_text(&call, ask->detail);
    store_call_number(&call, ask->stock);
    store_call_number(&call, ask->pending);
    store_call_number(&call, ask->confirmed);
    store_call_number(&call, ask->in_flight);
    store_call_number(&call, ask->release_pending);
    store_call_number(&call, ask->initial);
    store_call_number(&call, ask->round_ms);
    return store_call_run(self, &call, on_checked, token);
}

static void on_log_tail(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    struct ledger_log_tail tail = {0}; /* an empty log: sequence 0, zero hash */
    if (status == 0 && PQntuples(result) == 1) {
        tail.sequence = (uint64_t)store_number(&row, 0);
        row.bad |= store_bytes_read(&row, 1, tail.hash, sizeof tail.hash) != sizeof tail.hash;
    }
    status = store_outcome(status, result, &row);
    store->answers.log_tail(store->answers.context, token, status, &tail);
}

int store_pg_log_tail(void *self, const struct ledger_log_place *place, uint64_t token)
{
    struct store_call call;
    store_call_begin(&call, "SELECT * FROM tidegate.gate_log_tail($1, $2::bigint, $3::integer)");
    store_call_text(&call, place->sale);
    store_call_number(&call, (int64_t)place->epoch);
    store_call_number(&call, place->shard);
    return store_call_run(self, &call, on_log_tail, token);
}

static void on_log_stored(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    enum tg_reason reason = status == 0 ? store_reason(&row, 0) : TG_REASON_TRY_AGAIN;
    uint64_t stored = status == 0 ? (uint64_t)store_number(&row, 1) : 0;
    status = store_outcome(status, result, &row);
    store->answers.log_stored(store->answers.context, token, status, reason, stored);
}

int store_pg_log_append(void *self, const struct ledger_log_page *page, uint64_t token)
{
    struct store_pg *store = self;
    struct store_text *arrays = store->texts;
    struct store_call call;
    char units[LEDGER_UNITS_TEXT_BYTES];
    for (int i = 0; i < 8; i++) {
        store_array_begin(&arrays[i]);
    }
    for (uint32_t i = 0; i < page->count; i++) {
        const struct ledger_log_entry *entry = &page->entries[i];
        store_array_number(&arrays[0], (int64_t)entry->sequence);
        store_array_text(&arrays[1], entry->kind);
        store_array_text(&arrays[2], entry->id.text);
        (void)ledger_units_format(entry->units, entry->unit_count, units);
        store_array_text(&arrays[3], units);
        store_array_number(&arrays[4], entry->stock_after);
        store_array_number(&arrays[5], entry->gate_ms);
        store_array_text(&arrays[6], entry->source);
        store_array_bytes(&arrays[7], page->hashes[i], LEDGER_CHAIN_BYTES);
    }
    store_call_begin(&call, "SELECT * FROM tidegate.append_gate_log($1, $2::bigint, $3::integer, "
                            "$4::bigint, $5::bigint[], "
                            "$6::text[], $7::text[], $8::text[], $9::bigint[], $10::bigint[], "
                            "$11::text[], $12::bytea[])");
    store_call_text(&call, page->place.sale);
    store_call_number(&call, (int64_t)page->place.epoch);
    store_call_number(&call, page->place.shard);
    store_call_number(&call, (int64_t)page->tail.sequence);
    for (int i = 0; i < 8; i++) {
        store_array_end(&arrays[i]);
        store_call_text(&call, arrays[i].data);
    }
    return store_call_run(store, &call, on_log_stored, token);
}
