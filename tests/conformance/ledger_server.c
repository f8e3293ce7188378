/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/conformance/ledger_server.h"

#include <assert.h>
#include <inttypes.h>
#include <libpq-fe.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SQL_BYTES = 1 << 18 };

static struct {
    PGconn *connection;
    size_t used;
    char sql[SQL_BYTES];
} server;

/* Names are looked up in this schema before PostgreSQL's own. */
static const char told_clock[] =
    "CREATE OR REPLACE FUNCTION conformance.clock_timestamp() RETURNS timestamptz LANGUAGE plpgsql "
    "AS $$"
    " BEGIN RETURN timestamptz 'epoch' + current_setting('conformance.now')::bigint * interval '1 "
    "millisecond'; END $$;"
    "SET search_path = conformance, pg_catalog; SET plan_cache_mode = force_generic_plan; SET jit "
    "= off";

__attribute__((noreturn)) static void fatal(const char *what)
{
    (void)fprintf(stderr, "conformance: PostgreSQL: %s: %s\n", what,
                  PQerrorMessage(server.connection));
    exit(70);
}

static void run(const char *sql)
{
    PGresult *result = PQexec(server.connection, sql);
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK) {
        fatal(sql);
    }
    PQclear(result);
}

/* The function as it is stored, with the change in it. */
static void change_function(const struct conformance_mutant *mutant)
{
    const char *const values[] = {mutant->where};
    PGresult *result =
        PQexecParams(server.connection, "SELECT pg_get_functiondef(('tidegate.' || $1)::regproc)",
                     1, NULL, values, NULL, NULL, 0);
    char *changed = NULL;
    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        fatal(mutant->where);
    }
    const char *text = PQgetvalue(result, 0, 0), *at = strstr(text, mutant->from);
    if (at == NULL || asprintf(&changed, "%.*s%s%s", (int)(at - text), text, mutant->to,
                               at + strlen(mutant->from)) < 0) {
        fatal("the mutant does not fit");
    }
    run(changed);
    free(changed);
    PQclear(result);
}

void ledger_server_open(const char *conninfo, const struct conformance_mutant *mutant_or_null)
{
    server.connection = PQconnectdb(conninfo);
    if (PQstatus(server.connection) != CONNECTION_OK) {
        fatal(conninfo);
    }
    run("SET client_min_messages = error");
    if (mutant_or_null != NULL) {
        change_function(mutant_or_null);
    }
    run(told_clock);
}

void ledger_server_add(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const int length = vsnprintf(server.sql + server.used, SQL_BYTES - server.used, format, values);
    va_end(values);
    assert(length >= 0 && server.used + (size_t)length < SQL_BYTES);
    server.used += (size_t)length;
}

void ledger_server_ask(void)
{
    ledger_server_add(";\n");
}

void ledger_server_begin(void)
{
    server.used = 0;
    ledger_server_add("BEGIN;\n");
}

void ledger_server_clock(int64_t now_ms)
{
    ledger_server_add("SET LOCAL conformance.now = '%" PRId64 "';\n", now_ms);
}

static void say_rows(struct conformance_side *side, const PGresult *result)
{
    conformance_line(side);
    for (int row = 0; row < PQntuples(result); row++) {
        conformance_say(side, row > 0 ? "; " : "");
        for (int column = 0; column < PQnfields(result); column++) {
            conformance_say(side, "%s%s", column > 0 ? " " : "", PQgetvalue(result, row, column));
        }
    }
}

void ledger_server_answers(struct conformance_side *side)
{
    ledger_server_add("ROLLBACK");
    if (PQsendQuery(server.connection, server.sql) != 1) {
        fatal("cannot send");
    }
    bool broken = false;
    for (PGresult *result = PQgetResult(server.connection); result != NULL;
         result = PQgetResult(server.connection)) {
        if (PQresultStatus(result) == PGRES_TUPLES_OK) {
            say_rows(side, result);
        } else if (PQresultStatus(result) != PGRES_COMMAND_OK) {
            conformance_line(side);
            conformance_say(side, "error: %s", PQresultErrorMessage(result));
            broken = true;
        }
        PQclear(result);
    }
    if (broken) {
        run("ROLLBACK");
    }
}
