/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ledger/store_pg.h"

#include "lib/io/log.h"
#include "services/ledger/store_pg_parts.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void store_call_begin(struct store_call *call, const char *sql)
{
    call->statement.sql = sql;
    call->statement.parameter_count = 0;
}

void store_call_text(struct store_call *call, const char *value)
{
    const int n = call->statement.parameter_count;
    assert(n < TG_PG_PARAMETERS_MAX);
    call->statement.values[n] = value;
    call->statement.lengths[n] = 0;
    call->statement.formats[n] = 0;
    call->statement.parameter_count = n + 1;
}

void store_call_number(struct store_call *call, int64_t value)
{
    char *digits = call->digits[call->statement.parameter_count];
    snprintf(digits, sizeof call->digits[0], "%" PRId64, value);
    store_call_text(call, digits);
}

void store_call_flag(struct store_call *call, bool value)
{
    store_call_text(call, value ? "t" : "f");
}

int store_call_run(struct store_pg *store, const struct store_call *call,
                   tg_pg_on_result *on_result, uint64_t token)
{
    return tg_pg_run(store->pg, &call->statement, on_result, store, token);
}

int store_outcome(int status, const PGresult *result, const struct store_row *row)
{
    if (status == TG_ERR_STORE) {
        const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
        tg_log(TG_LOG_WARN, "ledger.statement_refused",
               TG_TEXT_FIELD("sqlstate", state != NULL ? state : ""),
               TG_TEXT_FIELD("message", message != NULL ? message : ""));
    } else if (status == 0 && row != NULL && row->bad) {
        tg_log(TG_LOG_ERROR, "ledger.result_malformed", TG_NUMBER_FIELD("row", row->row));
        status = TG_ERR_STORE;
    }
    return status;
}

int store_pg_open(struct tg_pg *pg, const struct ledger_answers *answers,
                  struct store_pg **out_store)
{
    struct store_pg *store = calloc(1, sizeof *store);
    if (store == NULL) {
        return -ENOMEM;
    }
    store->pg = pg;
    store->answers = *answers;
    store->port = (struct ledger_store){.self = store,
                                        .record = store_pg_record,
                                        .expire = store_pg_expire,
                                        .obeyed = store_pg_obeyed,
                                        .due = store_pg_due,
                                        .snapshot = store_pg_snapshot,
                                        .incident = store_pg_incident,
                                        .audit = store_pg_audit,
                                        .draw = store_pg_draw,
                                        .armed = store_pg_armed,
                                        .check = store_pg_check,
                                        .log_tail = store_pg_log_tail,
                                        .log_append = store_pg_log_append,
                                        .reservation = store_pg_reservation,
                                        .sales = store_pg_sales,
                                        .tick = store_pg_tick,
                                        .judge = store_pg_judge,
                                        .events = store_pg_events,
                                        .published = store_pg_published,
                                        .health = store_pg_health};
    *out_store = store;
    return 0;
}

const struct ledger_store *store_pg_port(struct store_pg *store)
{
    return &store->port;
}

struct store_pg *store_pg_free(struct store_pg *store)
{
    if (store != NULL) {
        for (int i = 0; i < STORE_TEXTS; i++) {
            store_text_free(&store->texts[i]);
        }
        free(store);
    }
    return NULL;
}
