/* SPDX-License-Identifier: Apache-2.0
 * Sales, their listing, the tick, commands, and the outbox. */
#include "services/ledger/store_pg_parts.h"

#include "lib/pure/number.h"
#include "lib/pure/text.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

enum { SALE_LIST_BYTES = 16384 };

static enum tg_phase read_phase(struct store_row *row, int column)
{
    static const struct {
        const char *name;
        enum tg_phase phase;
    } names[] = {{"scheduled", TG_PHASE_SCHEDULED},
                 {"open", TG_PHASE_OPEN},
                 {"paused", TG_PHASE_PAUSED},
                 {"sold_out", TG_PHASE_SOLD_OUT},
                 {"closed", TG_PHASE_CLOSED}};
    char text[16];
    store_copy(row, column, text, sizeof text);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].name, text) == 0) {
            return names[i].phase;
        }
    }
    row->bad = true;
    return TG_PHASE_UNKNOWN;
}

static void copy_field(struct store_row *row, const char *field, int length, char *out_text,
                       size_t capacity)
{
    if (length < 0 || (size_t)length >= capacity) {
        row->bad = true;
        length = 0;
    }
    memcpy(out_text, field, (size_t)length);
    out_text[length] = '\0';
}

/* "sku:units:price:currency" */
static void read_item(struct store_row *row, const char *text, int length, struct tg_item *out_item)
{
    char copy[256];
    copy_field(row, text, length, copy, sizeof copy);
    const char *at = copy;
    const char *fields[4] = {"", "", "", ""};
    int lengths[4] = {-1, -1, -1, -1};
    for (int i = 0; i < 4; i++) {
        lengths[i] = store_field(&at, ':', &fields[i]);
    }
    uint64_t units = 0, price = 0;
    if (lengths[3] < 0 ||
        tg_unsigned_parse(fields[1], (size_t)lengths[1], UINT32_MAX, &units) != 0 ||
        tg_unsigned_parse(fields[2], (size_t)lengths[2], INT64_MAX, &price) != 0) {
        row->bad = true;
        return;
    }
    copy_field(row, fields[0], lengths[0], out_item->sku, sizeof out_item->sku);
    out_item->units = (uint32_t)units;
    out_item->price_minor = price;
    copy_field(row, fields[3], lengths[3], out_item->currency, sizeof out_item->currency);
}

static void read_items(struct store_row *row, int column, struct tg_sale *sale)
{
    char text[SALE_LIST_BYTES];
    const char *at = text, *field;
    store_copy(row, column, text, sizeof text);
    sale->item_count = 0;
    for (int length = store_field(&at, ';', &field); length >= 0;
         length = store_field(&at, ';', &field)) {
        if (sale->item_count == TG_MAX_ITEMS_PER_SALE) {
            row->bad = true;
            return;
        }
        read_item(row, field, length, &sale->items[sale->item_count++]);
    }
}

/* "id:hex of the cause" */
static void read_pause(struct store_row *row, const char *field, int length,
                       struct tg_pause *out_pause)
{
    const char *colon = memchr(field, ':', (size_t)length);
    if (colon == NULL) {
        row->bad = true;
        return;
    }
    copy_field(row, field, (int)(colon - field), out_pause->id, sizeof out_pause->id);
    const size_t digits = (size_t)(field + length - colon - 1);
    char cause[2 * sizeof out_pause->cause];
    const size_t bytes = digits / 2 < sizeof cause ? digits / 2 : sizeof cause;
    if (tg_hex_decode(colon + 1, 2 * bytes, (uint8_t *)cause, bytes) != 0) {
        row->bad = true;
        return;
    }
    tg_sale_cause(out_pause, cause, bytes);
}

static void read_pauses(struct store_row *row, int pauses, int lifted, struct tg_sale *sale)
{
    char text[SALE_LIST_BYTES];
    const char *at = text, *field;
    store_copy(row, pauses, text, sizeof text);
    sale->pause_count = 0;
    for (int length = store_field(&at, ';', &field);
         length >= 0 && sale->pause_count < TG_MAX_PAUSES; length = store_field(&at, ';', &field)) {
        read_pause(row, field, length, &sale->pauses[sale->pause_count++]);
    }
    at = text;
    store_copy(row, lifted, text, sizeof text);
    sale->lifted_count = 0;
    for (int length = store_field(&at, ';', &field);
         length >= 0 && sale->lifted_count < TG_MAX_LIFTED;
         length = store_field(&at, ';', &field)) {
        copy_field(row, field, length, sale->lifted[sale->lifted_count++], sizeof sale->lifted[0]);
    }
}

/* "count;index;beacon;secret;seed;root", or nothing */
static void read_draw(struct store_row *row, int column, struct tg_draw *out_draw)
{
    char text[512];
    const char *at = text, *fields[6];
    int lengths[6];
    store_copy(row, column, text, sizeof text);
    if (text[0] == '\0') {
        return;
    }
    for (int i = 0; i < 6; i++) {
        lengths[i] = store_field(&at, ';', &fields[i]);
        row->bad |= lengths[i] < 0 || lengths[i] > 2 * TG_BEACON_BYTES;
    }
    if (row->bad) {
        return;
    }
    const size_t beacon = (size_t)lengths[2] / 2, secret = (size_t)lengths[3] / 2;
    row->bad |=
        tg_unsigned_parse(fields[0], (size_t)lengths[0], INT64_MAX, &out_draw->count) != 0 ||
        tg_unsigned_parse(fields[1], (size_t)lengths[1], INT64_MAX, &out_draw->index_at_open) !=
            0 ||
        tg_hex_decode(fields[2], (size_t)lengths[2], out_draw->beacon, beacon) != 0 ||
        (secret != 0 && secret != sizeof out_draw->secret) ||
        tg_hex_decode(fields[3], (size_t)lengths[3], out_draw->secret, secret) != 0 ||
        tg_hex_decode(fields[4], (size_t)lengths[4], out_draw->seed, secret) != 0 ||
        tg_hex_decode(fields[5], (size_t)lengths[5], out_draw->root, sizeof out_draw->root) != 0;
    out_draw->frozen = true;
    out_draw->revealed = secret > 0;
    out_draw->beacon_length = (uint8_t)beacon;
}

static void read_definition(struct store_row *row, struct ledger_sale *out)
{
    struct tg_sale *sale = &out->sale;
    store_copy(row, 0, sale->name, sizeof sale->name);
    sale->generation = (uint64_t)store_number(row, 1);
    read_items(row, 2, sale);
    sale->opens_at.ms = store_number(row, 3);
    store_copy(row, 4, out->order, sizeof out->order);
    sale->limit_per_buyer = store_small(row, 5);
    sale->hold_ms = store_number(row, 6);
    sale->grace_ms = store_number(row, 7);
    sale->extend_ms = store_number(row, 8);
    sale->extensions_max = store_small(row, 9);
    sale->pace_start_milli = (uint64_t)store_number(row, 10);
    sale->pace_min_milli = (uint64_t)store_number(row, 11);
    sale->pace_max_milli = (uint64_t)store_number(row, 12);
    sale->proof_every_ms = store_number(row, 13);
    sale->proof_lease_ms = store_number(row, 14);
    sale->remaining_bucketed = store_flag(row, 15);
    sale->shards = store_small(row, 16);
    sale->challenge = store_small(row, 30);
    uint8_t commitment[sizeof sale->commitment];
    if (store_bytes_read(row, 31, commitment, sizeof commitment) == sizeof commitment) {
        memcpy(sale->commitment, commitment, sizeof commitment);
    }
    store_copy(row, 32, sale->beacon, sizeof sale->beacon);
    row->bad |= !tg_order_parse(out->order, &sale->order);
}

static void read_state(struct store_row *row, struct ledger_sale *out)
{
    struct tg_sale *sale = &out->sale;
    sale->phase = read_phase(row, 17);
    sale->epoch = (uint64_t)store_number(row, 18);
    sale->armed = store_flag(row, 19);
    store_copy(row, 20, sale->run_id, sizeof sale->run_id);
    store_copy(row, 21, sale->replication_id, sizeof sale->replication_id);
    sale->control_sequence = (uint64_t)store_number(row, 22);
    read_pauses(row, 23, 24, sale);
    out->now_ms = store_number(row, 25);
    out->open_from_ms = store_number(row, 26);
    sale->last_clean.ms = store_number(row, 27);
    sale->clean_rounds = store_small(row, 28);
    sale->pace_milli = (uint64_t)store_number(row, 29);
    sale->opened = store_flag(row, 33);
    read_draw(row, 34, &sale->draw);
}

static void on_sales(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    store->sales.count = 0;
    if (status == 0) {
        for (row.row = 0; row.row < PQntuples(result) && store->sales.count < TG_MAX_SALES;
             row.row++) {
            struct ledger_sale *sale = &store->sales.rows[store->sales.count++];
            memset(sale, 0, sizeof *sale);
            read_definition(&row, sale);
            read_state(&row, sale);
        }
    }
    status = store_outcome(status, result, &row);
    store->answers.sales(store->answers.context, token, status, &store->sales);
}

int store_pg_sales(void *self, const char *after, const char *only, uint64_t token)
{
    struct store_call call;
    store_call_begin(&call, "SELECT * FROM tidegate.list_sales($1, $2, $3::integer)");
    store_call_text(&call, after);
    store_call_text(&call, only[0] == '\0' ? NULL : only);
    store_call_number(&call, TG_MAX_SALES);
    return store_call_run(self, &call, on_sales, token);
}

static void on_ticked(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    uint32_t changed = status == 0 ? store_small(&row, 0) : 0;
    status = store_outcome(status, result, &row);
    store->answers.ticked(store->answers.context, token, status, changed);
}

int store_pg_tick(void *self, uint64_t token)
{
    struct store_call call;
    store_call_begin(&call, "SELECT tidegate.tick_sales()");
    return store_call_run(self, &call, on_ticked, token);
}

static void on_judged(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    struct ledger_judgement judgement = {0};
    if (status == 0) {
        judgement.reason = store_reason(&row, 0);
        store_copy(&row, 1, judgement.detail, sizeof judgement.detail);
        judgement.repeated = store_flag(&row, 2);
    }
    status = store_outcome(status, result, &row);
    store->answers.judged(store->answers.context, token, status, &judgement);
}

/* The keys are those of tidegate.definition_of: what did not change compares equal there. */
static char *definition_json(const struct ledger_command *command)
{
    const struct tg_sale *sale = &command->definition;
    char commitment[2 * TG_DRAW_BYTES + 1] = "";
    json_t *items = json_array();
    if (sale->order != TG_ORDER_FIFO) {
        tg_hex_encode(sale->commitment, sizeof sale->commitment, commitment);
    }
    for (uint32_t i = 0; i < sale->item_count; i++) {
        const struct tg_item *item = &sale->items[i];
        json_array_append_new(items,
                              json_pack("{s:s,s:I,s:I,s:s}", "sku", item->sku, "units",
                                        (json_int_t)item->units, "price_minor",
                                        (json_int_t)item->price_minor, "currency", item->currency));
    }
    json_t *root = json_pack(
        "{s:I,s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:b,s:s,s:s,s:I,s:I,s:o}", "opens_ms",
        (json_int_t)sale->opens_at.ms, "order", command->order, "limit_per_buyer",
        (json_int_t)sale->limit_per_buyer, "hold_ms", (json_int_t)sale->hold_ms, "grace_ms",
        (json_int_t)sale->grace_ms, "extend_ms", (json_int_t)sale->extend_ms, "extensions_max",
        (json_int_t)sale->extensions_max, "pace_start_milli", (json_int_t)sale->pace_start_milli,
        "pace_min_milli", (json_int_t)sale->pace_min_milli, "pace_max_milli",
        (json_int_t)sale->pace_max_milli, "proof_every_ms", (json_int_t)sale->proof_every_ms,
        "proof_lease_ms", (json_int_t)sale->proof_lease_ms, "remaining_bucketed",
        (int)sale->remaining_bucketed, "commitment", commitment, "beacon", sale->beacon, "shards",
        (json_int_t)sale->shards, "challenge", (json_int_t)sale->challenge, "items", items);
    char *text = root == NULL ? NULL : json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

static const char *kind_name(enum ledger_command_kind kind)
{
    switch (kind) {
    case LEDGER_APPLY:
        return "apply";
    case LEDGER_OPEN:
        return "open";
    case LEDGER_PAUSE:
        return "pause";
    case LEDGER_RESUME:
        return "resume";
    case LEDGER_REBUILD:
        return "rebuild";
    case LEDGER_CLOSE:
        return "close";
    case LEDGER_PACE:
        return "pace";
    case LEDGER_BEACON:
        return "beacon";
    case LEDGER_EXTEND_ALL:
        return "extend";
    }
    return "";
}

int store_pg_judge(void *self, const struct ledger_command *command, uint64_t token)
{
    struct store_pg *store = self;
    struct store_call call;
    char *definition = NULL;
    if (command->kind == LEDGER_APPLY) {
        definition = definition_json(command);
        if (definition == NULL) {
            return TG_ERR_FULL;
        }
    }
    store_bytes(&store->texts[0], command->command, command->command_length);
    store_bytes(&store->texts[1], command->signature, command->signature_length);
    store_array_begin(&store->texts[2]);
    for (uint32_t i = 0; i < command->pause_count; i++) {
        store_array_text(&store->texts[2], command->pauses[i]);
    }
    store_array_end(&store->texts[2]);
    store_call_begin(
        &call,
        "SELECT * FROM tidegate.judge_command($1, $2, $3::bigint, $4, $5::bigint, $6, $7::bytea, "
        "$8::bytea, $9::text[], $10::bigint, $11, $12::boolean, $13::jsonb)");
    store_call_text(&call, command->id);
    store_call_text(&call, command->sale);
    store_call_number(&call, (int64_t)command->generation);
    store_call_text(&call, kind_name(command->kind));
    store_call_number(&call, (int64_t)command->control_sequence);
    store_call_text(&call, command->key);
    store_call_text(&call, store->texts[0].data);
    store_call_text(&call, store->texts[1].data);
    store_call_text(&call, store->texts[2].data);
    store_call_number(&call, command->kind == LEDGER_EXTEND_ALL ? command->extend_ms
                                                                : (int64_t)command->pace_milli);
    store_call_text(&call, command->cause);
    store_call_flag(&call, command->plan);
    store_call_text(&call, definition);
    int error = store_call_run(store, &call, on_judged, token);
    free(definition);
    return error;
}
