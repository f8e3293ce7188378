/* SPDX-License-Identifier: Apache-2.0
 * Recording a batch: arrays in, one row per hold out. */
#include "services/ledger/store_pg_parts.h"

#include <string.h>

enum {
    GENERATIONS,
    EPOCHS,
    IDS,
    USERS,
    PLACES,
    WINDOWS,
    DIGESTS,
    UNIT_HOLDS,
    UNIT_IDS,
    UNIT_USERS,
    ITEMS,
    UNITS,
    SLOTS,
    ARRAYS
};
_Static_assert((int)ARRAYS <= (int)STORE_TEXTS, "one text per array");

static const char record_sql[] = "SELECT * FROM tidegate.record_batch($1, $2::bigint[], "
                                 "$3::bigint[], $4::text[], $5::bytea[], $6::bytea[], "
                                 "$7::bigint[], $8::bytea[], $9::integer[], $10::text[], "
                                 "$11::bytea[], $12::integer[], $13::integer[], $14::integer[])";

static void add_hold(struct store_text *arrays, const struct ledger_hold *hold, uint32_t ordinal)
{
    store_array_number(&arrays[GENERATIONS], (int64_t)hold->generation);
    store_array_number(&arrays[EPOCHS], (int64_t)hold->epoch);
    store_array_text(&arrays[IDS], hold->id.text);
    store_array_bytes(&arrays[USERS], hold->user, hold->user_length);
    store_array_bytes(&arrays[PLACES], hold->place, sizeof hold->place);
    store_array_number(&arrays[WINDOWS], (int64_t)hold->window);
    store_array_bytes(&arrays[DIGESTS], hold->digest, sizeof hold->digest);
    for (uint32_t i = 0; i < hold->unit_count; i++) {
        store_array_number(&arrays[UNIT_HOLDS], ordinal);
        store_array_text(&arrays[UNIT_IDS], hold->id.text);
        store_array_bytes(&arrays[UNIT_USERS], hold->user, hold->user_length);
        store_array_number(&arrays[ITEMS], hold->units[i].item);
        store_array_number(&arrays[UNITS], hold->units[i].unit);
        store_array_number(&arrays[SLOTS], hold->slots[i]);
    }
}

static enum ledger_outcome read_outcome(struct store_row *row, int column)
{
    char text[16];
    store_copy(row, column, text, sizeof text);
    if (strcmp(text, "recorded") == 0) {
        return LEDGER_RECORDED;
    }
    if (strcmp(text, "already") == 0) {
        return LEDGER_ALREADY;
    }
    if (strcmp(text, "refused") == 0) {
        return LEDGER_REFUSED;
    }
    return LEDGER_UNKNOWN;
}

/* Rows come in any order, each with the 1-based position of its hold. A hold without a row stays
 * unknown. */
static void read_row(struct store_pg *store, struct store_row *row)
{
    const uint32_t ordinal = store_small(row, 0);
    if (row->bad || ordinal < 1 || ordinal > TG_MAX_RECORD_BATCH) {
        row->bad = true;
        return;
    }
    struct ledger_recorded *recorded = &store->recorded[ordinal - 1];
    recorded->outcome = read_outcome(row, 1);
    recorded->reason = store_reason(row, 2);
    recorded->state = store_state(row, 3);
    recorded->expires_ms = store_number(row, 4);
    recorded->unit_count = store_units(row, 5, recorded->units);
    recorded->epoch = (uint64_t)store_number(row, 6);
}

static void on_recorded(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    uint32_t count = 0;
    if (status == 0) {
        for (uint32_t i = 0; i < TG_MAX_RECORD_BATCH; i++) {
            store->recorded[i].outcome = LEDGER_UNKNOWN;
            store->recorded[i].reason = TG_REASON_TRY_AGAIN;
        }
        count = (uint32_t)PQntuples(result);
        for (row.row = 0; row.row < (int)count && !row.bad; row.row++) {
            read_row(store, &row);
        }
    }
    status = store_outcome(status, result, &row);
    store->answers.recorded(store->answers.context, token, status, store->recorded, count);
}

int store_pg_record(void *self, const struct ledger_batch *batch, uint64_t token)
{
    struct store_pg *store = self;
    struct store_call call;
    store_call_begin(&call, record_sql);
    store_call_text(&call, batch->sale);
    for (int i = 0; i < ARRAYS; i++) {
        store_array_begin(&store->texts[i]);
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        add_hold(store->texts, &batch->holds[i], i + 1);
    }
    for (int i = 0; i < ARRAYS; i++) {
        store_array_end(&store->texts[i]);
        store_call_text(&call, store->texts[i].data);
    }
    return store_call_run(store, &call, on_recorded, token);
}
