/* SPDX-License-Identifier: Apache-2.0
 * The roster of a draw and what was drawn: four functions of 0010_draw.sql with one form of answer.
 */
#include "services/ledger/store_pg_parts.h"

static void on_drawn(void *context, uint64_t token, int status, const PGresult *result)
{
    struct store_pg *store = context;
    struct store_row row = {.result = result};
    struct ledger_drawn *drawn = &store->drawn;
    drawn->count = 0;
    if (status == 0) {
        drawn->reason = store_reason(&row, 0);
        drawn->stored = (uint64_t)store_number(&row, 1);
        const size_t bytes = store_bytes_read(&row, 2, drawn->entrants[0], sizeof drawn->entrants);
        row.bad |= bytes % TG_ENTRANT_BYTES != 0;
        drawn->count = (uint32_t)(bytes / TG_ENTRANT_BYTES);
    }
    status = store_outcome(status, result, &row);
    store->answers.drawn(store->answers.context, token, status, drawn);
}

static const char *sql_of(enum ledger_draw_step step)
{
    switch (step) {
    case LEDGER_ROSTER_APPEND:
        return "SELECT * FROM tidegate.append_roster($1, $2::bigint, $3::bigint, $4::bytea)";
    case LEDGER_ROSTER_READ:
        return "SELECT * FROM tidegate.read_roster($1, $2::bigint, $3::bigint)";
    case LEDGER_DRAW_FREEZE:
        return "SELECT * FROM tidegate.freeze_draw($1, $2::bigint, $3::bigint, $4::bigint, "
               "$5::bigint, $6::bytea)";
    case LEDGER_DRAW_REVEAL:
        break;
    }
    return "SELECT * FROM tidegate.reveal_draw($1, $2::bigint, $3::bytea, $4::bytea, $5::bytea)";
}

static void add_bytes(struct store_call *call, struct store_text *text, const uint8_t *data,
                      size_t length)
{
    store_bytes(text, data, length);
    store_call_text(call, text->data);
}

int store_pg_draw(void *self, const struct ledger_draw_ask *ask, uint64_t token)
{
    struct store_pg *store = self;
    const struct tg_draw *draw = &ask->draw;
    struct store_call call;
    store_call_begin(&call, sql_of(ask->step));
    store_call_text(&call, ask->sale);
    store_call_number(&call, (int64_t)ask->generation);
    switch (ask->step) {
    case LEDGER_ROSTER_APPEND:
        store_call_number(&call, (int64_t)ask->first);
        add_bytes(&call, &store->texts[0], ask->entrants[0], ask->count * TG_ENTRANT_BYTES);
        break;
    case LEDGER_ROSTER_READ:
        store_call_number(&call, (int64_t)ask->first);
        break;
    case LEDGER_DRAW_FREEZE:
        store_call_number(&call, (int64_t)ask->first);
        store_call_number(&call, (int64_t)draw->count);
        store_call_number(&call, (int64_t)draw->index_at_open);
        add_bytes(&call, &store->texts[0], draw->root, sizeof draw->root);
        break;
    case LEDGER_DRAW_REVEAL:
        add_bytes(&call, &store->texts[0], draw->secret, sizeof draw->secret);
        add_bytes(&call, &store->texts[1], draw->beacon, draw->beacon_length);
        add_bytes(&call, &store->texts[2], draw->seed, sizeof draw->seed);
        break;
    }
    return store_call_run(store, &call, on_drawn, token);
}
