/* SPDX-License-Identifier: Apache-2.0
 * What an operator asks after an alarm, and an auditor at any time. */
#include "services/ledger/store_pg_parts.h"

#include <stdio.h>
#include <stdlib.h>

/* "{units,pending,confirmed,live,ended}" */
static void read_counts(struct store_row *row, struct ledger_incident *out)
{
    uint64_t *const counts[] = {&out->units, &out->pending_units, &out->confirmed_units, &out->live,
                                &out->ended};
    char text[128];
    store_copy(row, 9, text, sizeof text);
    const char *at = text;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        char *end = NULL;
        at += *at != '\0'; /* the brace, or a comma */
        *counts[i] = strtoull(at, &end, 10);
        row->bad |= end == at;
        at = end;
    }
}

static void read_incident_row(struct ledger_incident_row *out, struct store_row *row)
{
    store_copy(row, 0, out->key, sizeof out->key);
    out->at_ms = store_number(row, 1);
    store_copy(row, 2, out->kind, sizeof out->kind);
    store_copy(row, 3, out->detail, sizeof out->detail);
    store_copy(row, 4, out->id.text, sizeof out->id.text);
    store_copy(row, 5, out->state, sizeof out->state);
    out->expires_ms = store_number(row, 6);
    out->user_length = (uint8_t)store_bytes_read(row, 7, out->user, sizeof out->user);
    out->unit_count = store_units(row, 8, out->units);
}

static void on_incident(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    struct ledger_incident *page = &store->incident;
    page->count = 0;
    if (status == 0) {
        page->since_ms = store_number(&row, 1);
        page->reason = store_reason(&row, 2);
        store_copy(&row, 3, page->last_check, sizeof page->last_check);
        read_counts(&row, page);
        for (row.row = 1; row.row < PQntuples(result) && page->count < TG_MAX_SNAPSHOT_PAGE;
             row.row++) {
            read_incident_row(&page->rows[page->count++], &row);
        }
    }
    status = store_outcome(status, result, &row);
    store->answers.incident(store->answers.context, token, status, page);
}

int store_pg_incident(void *self, const struct ledger_incident_ask *ask, uint64_t token)
{
    struct store_call call;
    store_call_begin(&call, "SELECT * FROM tidegate.incident_page($1, $2, $3::integer)");
    store_call_text(&call, ask->sale);
    store_call_text(&call, ask->after);
    store_call_number(&call, ask->limit);
    return store_call_run(self, &call, on_incident, token);
}

static void read_audit_row(struct ledger_audit *page, struct store_row *row)
{
    struct ledger_log_entry *entry = &page->entries[page->count];
    uint8_t *hash = page->hashes[page->count];
    entry->sequence = (uint64_t)store_number(row, 1);
    store_copy(row, 2, entry->kind, sizeof entry->kind);
    store_copy(row, 3, entry->id.text, sizeof entry->id.text);
    entry->unit_count = store_units(row, 4, entry->units);
    entry->stock_after = store_number(row, 5);
    entry->gate_ms = store_number(row, 6);
    store_copy(row, 7, entry->source, sizeof entry->source);
    row->bad |= store_bytes_read(row, 8, hash, LEDGER_CHAIN_BYTES) != LEDGER_CHAIN_BYTES;
    page->count++;
}

static void on_audit(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    struct ledger_audit *page = &store->audit;
    page->count = 0;
    if (status == 0) {
        page->reason = store_reason(&row, 0);
        page->epoch = (uint64_t)store_number(&row, 1);
        for (row.row = 1; row.row < PQntuples(result) && page->count < TG_MAX_PAGE; row.row++) {
            read_audit_row(page, &row);
        }
    }
    status = store_outcome(status, result, &row);
    store->answers.audit(store->answers.context, token, status, page);
}

int store_pg_audit(void *self, const struct ledger_audit_ask *ask, uint64_t token)
{
    struct store_call call;
    store_call_begin(&call, "SELECT * FROM tidegate.audit_page($1, $2::bigint, $3::integer, "
                            "$4::bigint, $5::integer, $6::integer)");
    store_call_text(&call, ask->place.sale);
    store_call_number(&call, (int64_t)ask->place.epoch);
    store_call_number(&call, ask->place.shard);
    store_call_number(&call, (int64_t)ask->after);
    store_call_number(&call, ask->last);
    store_call_number(&call, ask->limit);
    return store_call_run(self, &call, on_audit, token);
}
