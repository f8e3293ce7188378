/* SPDX-License-Identifier: Apache-2.0
 * What an operator asks after an alarm. */
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
