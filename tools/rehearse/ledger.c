/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/ledger.h"

#include "lib/pure/number.h"
#include "lib/pure/text.h"
#include "tools/rehearse/crowd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int rehearse_ledger_open(const char *url, PGconn **out_connection)
{
    PGconn *connection = PQconnectdb(url);
    if (PQstatus(connection) != CONNECTION_OK) {
        fprintf(stderr, "rehearse: ledger: %s", PQerrorMessage(connection));
        PQfinish(connection);
        return TG_ERR_DISCONNECTED;
    }
    *out_connection = connection;
    return 0;
}

/* Runs one query with the sale as $1, its generation as $2 and its epoch as $3 (as far as the text
 * uses them). */
static PGresult *query(PGconn *connection, const struct rehearse_sale *sale, int parameters,
                       const char *sql)
{
    char generation[21];
    char epoch[21];
    tg_unsigned_format(sale->generation, generation);
    tg_unsigned_format(sale->epoch, epoch);
    const char *values[3] = {sale->name, generation, epoch};
    PGresult *result = PQexecParams(connection, sql, parameters, NULL, values, NULL, NULL, 0);
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        fprintf(stderr, "rehearse: ledger: %s", PQerrorMessage(connection));
        PQclear(result);
        return NULL;
    }
    return result;
}

static uint64_t number_at(const PGresult *result, int row, int column)
{
    uint64_t number = 0;
    const char *text = PQgetvalue(result, row, column);
    if (tg_unsigned_parse(text, strlen(text), UINT64_MAX, &number) != 0) {
        return 0; /* NULL of an empty sum */
    }
    return number;
}

/* One row of numbers, into as many places; the last place is NULL. */
static int read_numbers(PGconn *connection, const struct rehearse_sale *sale, int parameters,
                        const char *sql, uint64_t *const *out_numbers)
{
    PGresult *result = query(connection, sale, parameters, sql);
    if (result == NULL) {
        return TG_ERR_STORE;
    }
    for (int column = 0; out_numbers[column] != NULL; column++) {
        *out_numbers[column] = number_at(result, 0, column);
    }
    PQclear(result);
    return 0;
}

static void text_at(const PGresult *result, int row, int column, char *out_text, size_t capacity)
{
    snprintf(out_text, capacity, "%s", PQgetvalue(result, row, column));
}

static int read_items(PGconn *connection, struct rehearse_sale *sale)
{
    PGresult *result = query(connection, sale, 2,
                             "SELECT sku, units, price_minor, currency FROM tidegate.sale_items"
                             " WHERE sale = $1 AND generation = $2 ORDER BY item");
    if (result == NULL) {
        return TG_ERR_STORE;
    }
    int count = PQntuples(result);
    sale->item_count = (uint32_t)(count <= TG_MAX_ITEMS_PER_SALE ? count : TG_MAX_ITEMS_PER_SALE);
    for (uint32_t i = 0; i < sale->item_count; i++) {
        struct rehearse_item *item = &sale->items[i];
        text_at(result, (int)i, 0, item->sku, sizeof(item->sku));
        item->units = number_at(result, (int)i, 1);
        item->price_minor = number_at(result, (int)i, 2);
        text_at(result, (int)i, 3, item->currency, sizeof(item->currency));
        sale->units += item->units;
    }
    PQclear(result);
    return sale->item_count > 0 ? 0 : TG_ERR_STORE;
}

int rehearse_ledger_sale(PGconn *connection, const char *name, struct rehearse_sale *out_sale)
{
    struct rehearse_sale sale = {0};
    snprintf(sale.name, sizeof(sale.name), "%s", name);
    PGresult *result = query(connection, &sale, 1,
                             "SELECT generation, epoch, shards, limit_per_buyer, hold_ms, grace_ms,"
                             " tidegate.to_ms(opens_at) FROM tidegate.sales WHERE sale = $1");
    if (result == NULL) {
        return TG_ERR_STORE;
    }
    bool found = PQntuples(result) == 1;
    if (found) {
        sale.generation = number_at(result, 0, 0);
        sale.epoch = number_at(result, 0, 1);
        sale.shards = number_at(result, 0, 2);
        sale.limit_per_buyer = (uint32_t)number_at(result, 0, 3);
        sale.hold_ms = (int64_t)number_at(result, 0, 4);
        sale.grace_ms = (int64_t)number_at(result, 0, 5);
        sale.opens_at_ms = (int64_t)number_at(result, 0, 6);
    }
    PQclear(result);
    if (!found) {
        fprintf(stderr, "rehearse: the ledger has no sale \"%s\"\n", name);
        return TG_ERR_STORE;
    }
    int error = read_items(connection, &sale);
    if (error == 0) {
        *out_sale = sale;
    }
    return error;
}

static int count_reservations(PGconn *connection, const struct rehearse_sale *sale,
                              struct rehearse_counts *counts)
{
    return read_numbers(
        connection, sale, 3,
        "SELECT count(*) FILTER (WHERE NOT tombstone), count(*) FILTER (WHERE state = 'pending'),"
        " count(*) FILTER (WHERE state = 'confirmed'), count(*) FILTER (WHERE state = 'expired' "
        "AND NOT tombstone),"
        " count(*) FILTER (WHERE state = 'cancelled'), count(*) FILTER (WHERE tombstone),"
        " count(*) FILTER (WHERE state <> 'pending' AND NOT tombstone AND obeyed_epoch <> "
        "$3::bigint),"
        " count(*) FILTER (WHERE restocked_at IS NOT NULL)"
        " FROM tidegate.reservations WHERE sale = $1 AND generation = $2",
        (uint64_t *const[]){&counts->recorded, &counts->pending, &counts->confirmed,
                            &counts->expired, &counts->cancelled, &counts->tombstones,
                            &counts->unobeyed, &counts->restocked, NULL});
}

static int count_resold(PGconn *connection, const struct rehearse_sale *sale,
                        struct rehearse_counts *counts)
{
    return read_numbers(
        connection, sale, 2,
        "SELECT count(*) FROM (SELECT h.item, h.unit FROM tidegate.holdings h"
        " JOIN tidegate.reservations r ON r.id = h.reservation_id"
        " WHERE h.sale = $1 AND h.generation = $2 GROUP BY h.item, h.unit"
        " HAVING bool_or(NOT h.live) AND bool_or(h.live AND r.state = 'confirmed')) AS resold",
        (uint64_t *const[]){&counts->resold, NULL});
}

static int count_rounds(PGconn *connection, const struct rehearse_sale *sale,
                        struct rehearse_counts *counts)
{
    return read_numbers(
        connection, sale, 3,
        "SELECT count(*) FILTER (WHERE c.outcome = 'clean'),"
        " count(*) FILTER (WHERE c.outcome = 'void'),"
        " count(*) FILTER (WHERE c.outcome = 'alarm'),"
        " (SELECT count(*) FROM tidegate.outbox o WHERE o.sale = $1 AND o.generation = $2"
        "   AND o.kind = 'compensate'),"
        " (SELECT count(*) FROM tidegate.gate_log g"
        "   WHERE g.sale = $1 AND g.epoch = $3::bigint)"
        " FROM tidegate.checks c WHERE c.sale = $1",
        (uint64_t *const[]){&counts->rounds_clean, &counts->rounds_void, &counts->alarms,
                            &counts->compensations, &counts->logged, NULL});
}

int rehearse_ledger_counts(PGconn *connection, const struct rehearse_sale *sale,
                           struct rehearse_counts *out_counts)
{
    struct rehearse_counts counts = {0};
    int error = count_reservations(connection, sale, &counts);
    if (error == 0) {
        error = count_resold(connection, sale, &counts);
    }
    if (error == 0) {
        error = count_rounds(connection, sale, &counts);
    }
    if (error == 0) {
        *out_counts = counts;
    }
    return error;
}

/* R7. Every pause is an event of the outbox, written with it; what the gate's log has after a
 * pause, the lease and the clocks' slack, and before the next resume, was held in spite of it. */
static int count_held_while_paused(PGconn *connection, const struct rehearse_sale *sale,
                                   struct rehearse_facts *facts)
{
    return read_numbers(
        connection, sale, 2,
        "SELECT count(*) FROM tidegate.gate_log g WHERE g.sale = $1 AND g.kind = 'hold' AND EXISTS"
        " (SELECT FROM tidegate.outbox p WHERE p.sale = $1 AND p.generation = $2 AND p.kind = "
        "'paused' AND tidegate.to_ms(p.at) + 20 + (SELECT proof_lease_ms FROM tidegate.sales"
        " WHERE sale = $1) < g.gate_ms AND NOT EXISTS (SELECT FROM tidegate.outbox r"
        " WHERE r.sale = $1 AND r.generation = $2 AND r.kind = 'resumed' AND r.at > p.at"
        " AND tidegate.to_ms(r.at) - 20 <= g.gate_ms))",
        (uint64_t *const[]){&facts->held_while_paused, NULL});
}

/* R1, recounted from the rows, in case a constraint was dropped. */
static int count_live(PGconn *connection, const struct rehearse_sale *sale,
                      struct rehearse_facts *facts)
{
    facts->units = sale->units;
    return read_numbers(
        connection, sale, 2,
        "WITH live AS (SELECT item, unit, user_id FROM tidegate.holdings"
        " WHERE sale = $1 AND generation = $2 AND live)"
        " SELECT (SELECT count(*) FROM live),"
        " (SELECT count(*) FROM (SELECT FROM live GROUP BY item, unit HAVING count(*) > 1) "
        "AS twice)"
        " + (SELECT count(*) FROM live l LEFT JOIN tidegate.sale_items i ON i.sale = $1 AND "
        "i.generation = $2"
        "    AND i.item = l.item WHERE i.item IS NULL OR l.unit < 0 OR l.unit >= i.units),"
        " (SELECT count(*) FROM (SELECT FROM live GROUP BY user_id HAVING count(*) >"
        "    (SELECT limit_per_buyer FROM tidegate.sales WHERE sale = $1)) AS greedy)",
        (uint64_t *const[]){&facts->live, &facts->units_twice, &facts->buyers_over_limit, NULL});
}

static bool take_row(const PGresult *result, int row, const char *tag, struct rehearse_row *out_row)
{
    const char *id = PQgetvalue(result, row, 0);
    const char *user = PQgetvalue(result, row, 1);
    uint8_t bytes[TG_MAX_USER_BYTES];
    size_t length = strlen(user) / 2;
    if (!tg_reservation_id_valid(id, strlen(id)) ||
        tg_base32_id_decode(id + strlen("res_"), TG_BASE32_ID_LENGTH, out_row->reservation) != 0 ||
        length > sizeof(bytes) || tg_hex_decode(user, strlen(user), bytes, length) != 0) {
        return false;
    }
    out_row->buyer = rehearse_user_number(tag, (const char *)bytes, length);
    out_row->confirmed = PQgetvalue(result, row, 2)[0] == 't';
    out_row->tombstone = PQgetvalue(result, row, 3)[0] == 't';
    out_row->has_unit = !PQgetisnull(result, row, 5);
    out_row->item = (uint32_t)number_at(result, row, 4);
    out_row->unit = (uint32_t)number_at(result, row, 5);
    return true;
}

int rehearse_ledger_rows(PGconn *connection, const struct rehearse_sale *sale, const char *tag,
                         struct rehearse_facts *facts)
{
    int error = count_live(connection, sale, facts);
    if (error == 0) {
        error = count_held_while_paused(connection, sale, facts);
    }
    if (error != 0) {
        return error;
    }
    PGresult *result =
        query(connection, sale, 2,
              "SELECT DISTINCT ON (r.id) r.id, encode(r.user_id, 'hex'), r.state = 'confirmed', "
              "r.tombstone,"
              " h.item, h.unit FROM tidegate.reservations r"
              " LEFT JOIN tidegate.holdings h ON h.reservation_id = r.id"
              " WHERE r.sale = $1 AND r.generation = $2 ORDER BY r.id, h.item, h.unit");
    if (result == NULL) {
        return TG_ERR_STORE;
    }
    int count = PQntuples(result);
    facts->rows = calloc((size_t)count + 1, sizeof(*facts->rows));
    if (facts->rows == NULL) {
        PQclear(result);
        return -ENOMEM;
    }
    for (int i = 0; i < count && error == 0; i++) {
        error = take_row(result, i, tag, &facts->rows[facts->row_count]) ? 0 : TG_ERR_MALFORMED;
        facts->row_count += error == 0;
    }
    PQclear(result);
    rehearse_sort_rows(facts);
    return error;
}

/* What one entry of the log does to the sums. */
static void apply(struct rehearse_stock *stock, const char *kind, uint64_t units)
{
    if (strcmp(kind, "hold") == 0) {
        stock->free -= units;
        stock->held += units;
    } else if (strcmp(kind, "settle") == 0) {
        stock->held -= units;
    } else if (strcmp(kind, "release") == 0) {
        stock->held -= units;
        stock->free += units;
    } else if (strcmp(kind, "return") == 0) {
        stock->free += units;
    }
}

static void read_history(const PGresult *result, int64_t begun_ms, struct rehearse_facts *facts)
{
    struct rehearse_stock stock = {.free = facts->units};
    int count = PQntuples(result);
    for (int i = 0; i < count; i++) {
        apply(&stock, PQgetvalue(result, i, 0), number_at(result, i, 1));
        stock.at_ms = (int64_t)number_at(result, i, 2) - begun_ms;
        facts->stock[facts->stock_count++] = stock;
    }
    facts->stock_known = stock.free <= facts->units && stock.held <= facts->units;
}

int rehearse_ledger_stock(PGconn *connection, const struct rehearse_sale *sale, int64_t begun_ms,
                          uint64_t last_sequence, struct rehearse_facts *facts)
{
    /* What is paid cannot come back by itself: it counts as sold from the ledger's word, although
     * the gate hears it later. */
    PGresult *result = query(
        connection, sale, 3,
        "SELECT g.kind, length(g.units) - length(replace(g.units, ':', '')),"
        " CASE WHEN g.kind = 'settle'"
        " THEN LEAST(g.gate_ms, floor(1000 * extract(epoch FROM r.confirmed_at))::bigint)"
        " ELSE g.gate_ms END AS at_ms"
        " FROM tidegate.gate_log g LEFT JOIN tidegate.reservations r ON r.id = g.reservation_id"
        " WHERE g.sale = $1 AND g.epoch = $3::bigint AND $2::bigint > 0"
        " ORDER BY at_ms, g.shard, g.sequence");
    if (result == NULL) {
        return TG_ERR_STORE;
    }
    int count = PQntuples(result);
    facts->stock = calloc((size_t)count + 1, sizeof(*facts->stock));
    if (facts->stock == NULL) {
        PQclear(result);
        return -ENOMEM;
    }
    read_history(result, begun_ms, facts);
    PQclear(result);
    /* A rebuilt gate begins with what the ledger had: its own log does not say how it came to that.
     */
    bool whole = (uint64_t)count == last_sequence && sale->epoch == 1;
    facts->stock_known = facts->stock_known && whole && sale->item_count == 1;
    return 0;
}
