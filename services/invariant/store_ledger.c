/* SPDX-License-Identifier: Apache-2.0 */
#include "services/invariant/store_ledger.h"

#include "lib/pure/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One statement = one snapshot. First column: what the row is about. The count of holdings is
 * joined to nothing, so that one without its reservation is missed by nobody. A full join, because
 * the planner knows nothing of a sale that began seconds ago and would look up every holding by
 * itself: that takes twice as long. */
static const char snapshot_sql[] =
    "WITH s AS MATERIALIZED (SELECT * FROM tidegate.sales WHERE sale = $1::text),"
    " unique_keys AS (SELECT string_agg(a.attname, ',' ORDER BY a.attname) AS key"
    " FROM pg_index x JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = ANY (x.indkey)"
    " WHERE x.indrelid = 'tidegate.holdings'::regclass AND x.indisunique AND x.indisvalid"
    " AND x.indisready AND x.indislive AND pg_get_expr(x.indpred, x.indrelid) = 'live'"
    " AND x.indexprs IS NULL GROUP BY x.indexrelid)"
    " SELECT 's', s.epoch::text, s.generation::text, s.armed::text, (s.stage = 'closed')::text, "
    "s.run_id,"
    " s.replication_id, s.shards::text, (SELECT count(*) FROM tidegate.holdings h WHERE h.sale = "
    "$1::text"
    " AND h.generation = $2::bigint)::text, NULL, NULL FROM s"
    " UNION ALL SELECT 'd', s.system_identifier, s.timeline,"
    " (SELECT c.system_identifier::text FROM pg_control_system() c), CASE WHEN pg_is_in_recovery() "
    "THEN ''"
    " ELSE substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) END, pg_is_in_recovery()::text, "
    "(SELECT string_agg(k.key, ';') FROM unique_keys k), NULL, NULL, NULL, NULL"
    " FROM s"
    " UNION ALL SELECT 'i', i.item::text, i.units::text, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
    "NULL"
    " FROM tidegate.sale_items i WHERE i.sale = $1::text AND i.generation = $2::bigint"
    " UNION ALL SELECT 'r', r.id, r.state, encode(r.user_id, 'hex'), (r.restocked_at IS NOT "
    "NULL)::text,"
    " h.item::text, h.unit::text, h.user_slot::text, h.live::text,"
    " CASE WHEN h.user_id <> r.user_id THEN encode(h.user_id, 'hex') END,"
    " (r.obeyed_epoch = (SELECT s.epoch FROM s))::text"
    " FROM (SELECT * FROM tidegate.reservations x"
    " WHERE x.sale = $1::text AND x.generation = $2::bigint) r"
    " FULL JOIN (SELECT * FROM tidegate.holdings x"
    " WHERE x.sale = $1::text AND x.generation = $2::bigint) h ON h.reservation_id = r.id";
enum { SNAPSHOT_COLUMNS = 11 };

static const char head_sql[] = "SELECT g.sequence::text, g.stock_after::text FROM "
                               "tidegate.gate_log g WHERE g.sale = $1::text AND"
                               " g.epoch = $2::bigint AND g.shard = $3::integer AND g.sequence <= "
                               "$4::bigint ORDER BY g.sequence DESC LIMIT 1";

static const char fill_sql[] =
    "SELECT g.sequence::text, g.kind, (length(g.units) - length(replace(g.units, ':', '')))::text, "
    "g.stock_after::text"
    " FROM tidegate.gate_log g WHERE g.sale = $1::text AND g.epoch = $2::bigint AND g.shard = "
    "$3::integer AND"
    " g.sequence > $4::bigint AND g.sequence <= $5::bigint ORDER BY g.sequence LIMIT $6::integer";

enum { NUMBER_BYTES = 24 };

static int ask(const struct invariant_question *question, struct tg_pg_statement *statement)
{
    return tg_pg_run(question->pg, statement, question->on_result, question->context,
                     question->token);
}

int invariant_ledger_snapshot(const struct invariant_question *question, uint64_t generation)
{
    char generation_text[NUMBER_BYTES];
    (void)tg_unsigned_format(generation, generation_text);
    struct tg_pg_statement statement = {
        .sql = snapshot_sql, .parameter_count = 2, .values = {question->sale, generation_text}};
    return ask(question, &statement);
}

int invariant_ledger_head(const struct invariant_question *question, uint64_t epoch, uint32_t shard,
                          uint64_t up_to)
{
    char numbers[3][NUMBER_BYTES];
    (void)tg_unsigned_format(epoch, numbers[0]);
    (void)tg_unsigned_format(shard, numbers[1]);
    (void)tg_unsigned_format(up_to, numbers[2]);
    struct tg_pg_statement statement = {
        .sql = head_sql,
        .parameter_count = 4,
        .values = {question->sale, numbers[0], numbers[1], numbers[2]}};
    return ask(question, &statement);
}

int invariant_ledger_fill(const struct invariant_question *question, uint64_t epoch, uint32_t shard,
                          uint64_t after, uint64_t up_to)
{
    char numbers[5][NUMBER_BYTES];
    const uint64_t values[5] = {epoch, shard, after, up_to, INVARIANT_FILL_COUNT};
    struct tg_pg_statement statement = {
        .sql = fill_sql, .parameter_count = 6, .values = {question->sale}};
    for (int i = 0; i < 5; i++) {
        (void)tg_unsigned_format(values[i], numbers[i]);
        statement.values[i + 1] = numbers[i];
    }
    return ask(question, &statement);
}

/* ---- reading ---- */

static bool number_at(const PGresult *result, int row, int column, uint64_t max,
                      uint64_t *out_value)
{
    return !PQgetisnull(result, row, column) &&
           tg_unsigned_parse(PQgetvalue(result, row, column),
                             (size_t)PQgetlength(result, row, column), max, out_value) == 0;
}

static bool flag_at(const PGresult *result, int row, int column)
{
    return strcmp(PQgetvalue(result, row, column), "true") == 0;
}

static bool text_at(const PGresult *result, int row, int column, char *out_text, size_t capacity)
{
    const size_t length = (size_t)PQgetlength(result, row, column);
    if (length >= capacity) {
        return false;
    }
    memcpy(out_text, PQgetvalue(result, row, column), length);
    out_text[length] = '\0';
    return true;
}

static bool user_tag_at(const PGresult *result, int row, int column, const uint8_t *key,
                        uint64_t *out_tag)
{
    uint8_t user[TG_MAX_USER_BYTES];
    const size_t digits = (size_t)PQgetlength(result, row, column);
    if (digits % 2 != 0 || digits / 2 > sizeof user ||
        tg_hex_decode(PQgetvalue(result, row, column), digits, user, digits / 2) != 0) {
        return false;
    }
    *out_tag = invariant_wire_user_tag(key, user, digits / 2);
    return true;
}

static bool read_sale(const PGresult *result, int row, struct invariant_ledger *ledger)
{
    uint64_t shards = 0;
    const bool fine =
        number_at(result, row, 1, INT64_MAX, &ledger->epoch) &&
        number_at(result, row, 2, INT64_MAX, &ledger->generation) &&
        text_at(result, row, 5, ledger->run_id, sizeof ledger->run_id) &&
        text_at(result, row, 6, ledger->replication_id, sizeof ledger->replication_id) &&
        number_at(result, row, 7, UINT32_MAX, &shards) &&
        number_at(result, row, 8, INT64_MAX, &ledger->holdings_counted);
    ledger->armed = flag_at(result, row, 3);
    ledger->closed = flag_at(result, row, 4);
    ledger->shards = (uint32_t)shards;
    return fine;
}

/* "A,B;C,D": the columns of each unique index over live holdings, sorted by name. */
static bool has_key(const char *keys, const char *key)
{
    const size_t length = strlen(key);
    for (const char *at = keys; *at != '\0';) {
        const size_t this_length = strcspn(at, ";");
        if (this_length == length && memcmp(at, key, length) == 0) {
            return true;
        }
        at += this_length + (at[this_length] == ';');
    }
    return false;
}

static bool read_server(const PGresult *result, int row, struct invariant_ledger *ledger)
{
    const char *keys = PQgetvalue(result, row, 6);
    ledger->in_recovery = flag_at(result, row, 5);
    ledger->one_owner = has_key(keys, "generation,item,sale,unit");
    ledger->one_slot = has_key(keys, "generation,sale,user_id,user_slot");
    return text_at(result, row, 1, ledger->system_identifier, sizeof ledger->system_identifier) &&
           text_at(result, row, 2, ledger->timeline, sizeof ledger->timeline) &&
           text_at(result, row, 3, ledger->system_identifier_now,
                   sizeof ledger->system_identifier_now) &&
           text_at(result, row, 4, ledger->timeline_now, sizeof ledger->timeline_now);
}

static bool read_item(const PGresult *result, int row, struct invariant_ledger *ledger)
{
    uint64_t item = 0, units = 0;
    if (!number_at(result, row, 1, TG_MAX_ITEMS_PER_SALE - 1, &item) ||
        !number_at(result, row, 2, UINT32_MAX, &units)) {
        return false;
    }
    ledger->units[item] = (uint32_t)units;
    ledger->item_count = item >= ledger->item_count ? (uint32_t)item + 1 : ledger->item_count;
    return true;
}

static bool read_state(const char *text, uint8_t *out_state)
{
    static const char *const states[] = {"pending", "confirmed", "expired", "cancelled"};
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        if (strcmp(states[i], text) == 0) {
            *out_state = (uint8_t)i;
            return true;
        }
    }
    return false;
}

static int read_row(const PGresult *result, int at, const struct invariant_ledger_sink *sink,
                    struct invariant_ledger *ledger)
{
    struct invariant_row row = {0};
    if (PQgetisnull(result, at, 1)) {
        return 0; /* a holding without its reservation: the counts differ */
    }
    if (invariant_wire_id(PQgetvalue(result, at, 1), (size_t)PQgetlength(result, at, 1), row.id) !=
            0 ||
        !read_state(PQgetvalue(result, at, 2), &row.state) ||
        !user_tag_at(result, at, 3, sink->tag_key, &row.user_tag)) {
        return TG_ERR_MALFORMED;
    }
    row.restocked = flag_at(result, at, 4);
    row.obeyed = flag_at(result, at, 10);
    if (PQgetisnull(result, at, 5)) {
        return sink->row(sink->context, &row, NULL);
    }
    struct invariant_holding holding = {.user_tag = row.user_tag};
    uint64_t item = 0, unit = 0, slot = 0;
    if (!number_at(result, at, 5, UINT32_MAX, &item) ||
        !number_at(result, at, 6, UINT32_MAX, &unit) ||
        !number_at(result, at, 7, UINT32_MAX, &slot) ||
        (!PQgetisnull(result, at, 9) &&
         !user_tag_at(result, at, 9, sink->tag_key, &holding.user_tag))) {
        return TG_ERR_MALFORMED;
    }
    ledger->holdings_joined++;
    memcpy(holding.id, row.id, sizeof holding.id);
    holding.item = (uint32_t)item;
    holding.unit = (uint32_t)unit;
    holding.slot = (uint32_t)slot;
    row.unit_count = 1;
    row.live_count = flag_at(result, at, 8);
    row.units_tag = invariant_units_tag(0, holding.item, holding.unit);
    row.slots = slot < TG_MAX_BUYER_LIMIT ? UINT64_C(1) << slot : 0;
    return sink->row(sink->context, &row, row.live_count ? &holding : NULL);
}

int invariant_ledger_read(const PGresult *result, const struct invariant_ledger_sink *sink,
                          struct invariant_ledger *out_ledger)
{
    *out_ledger = (struct invariant_ledger){0};
    if (PQnfields(result) != SNAPSHOT_COLUMNS) {
        return TG_ERR_MALFORMED;
    }
    const int count = PQntuples(result);
    bool sale_seen = false;
    for (int row = 0; row < count; row++) {
        const char kind = PQgetvalue(result, row, 0)[0];
        int error = TG_ERR_MALFORMED;
        if (kind == 'r') {
            error = read_row(result, row, sink, out_ledger);
        } else if (kind == 's') {
            sale_seen = true;
            error = read_sale(result, row, out_ledger) ? 0 : TG_ERR_MALFORMED;
        } else if (kind == 'd') {
            error = read_server(result, row, out_ledger) ? 0 : TG_ERR_MALFORMED;
        } else if (kind == 'i') {
            error = read_item(result, row, out_ledger) ? 0 : TG_ERR_MALFORMED;
        }
        if (error != 0) {
            return error;
        }
    }
    return sale_seen ? 0 : TG_ERR_MALFORMED;
}

int invariant_ledger_read_head(const PGresult *result, struct invariant_log *out_log)
{
    uint64_t sequence = 0, stock = 0;
    if (PQntuples(result) > 0 &&
        (PQnfields(result) != 2 || !number_at(result, 0, 0, INT64_MAX, &sequence) ||
         !number_at(result, 0, 1, INT64_MAX, &stock))) {
        return TG_ERR_MALFORMED;
    }
    out_log->placed = true;
    out_log->sequence = sequence;
    out_log->stock = (int64_t)stock;
    out_log->stock_known = PQntuples(result) > 0;
    return 0;
}

int invariant_ledger_read_fill(const PGresult *result, int index,
                               struct invariant_log_entry *out_entry)
{
    uint64_t sequence = 0, units = 0, stock = 0;
    if (PQnfields(result) != 4 || !number_at(result, index, 0, INT64_MAX, &sequence) ||
        !number_at(result, index, 2, UINT32_MAX, &units) ||
        !number_at(result, index, 3, INT64_MAX, &stock)) {
        return TG_ERR_MALFORMED;
    }
    *out_entry = (struct invariant_log_entry){.sequence = sequence, .stock_after = (int64_t)stock};
    out_entry->readable =
        invariant_log_change(PQgetvalue(result, index, 1), (size_t)PQgetlength(result, index, 1),
                             (uint32_t)units, &out_entry->change) == 0;
    return 0;
}
