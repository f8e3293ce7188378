/* SPDX-License-Identifier: Apache-2.0
 * PostgreSQL through libpq, non-blocking on our loop, a small pool. One statement = one transaction
 * (autocommit): decisions live in SQL functions, so no session state crosses statements and
 * PgBouncer in transaction mode is fine. A result is told only after ReadyForQuery and only if no
 * error came after it: a failed commit is never a success. */
#ifndef TG_IO_PG_H
#define TG_IO_PG_H

#include "lib/pure/error.h"

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct tg_pg;

struct tg_pg_spec {
    const char *conninfo; /* URL or key=value; statement and connect time-outs are added */
    uint32_t connections; /* 1..32 */
    uint32_t statement_ms;
    uint32_t queue_max; /* statements waiting for a connection */
};

TG_MUST_CHECK int tg_pg_open(uv_loop_t *loop, const struct tg_pg_spec *spec, struct tg_pg **out_pg);
struct tg_pg *tg_pg_free(struct tg_pg *pg);
/* At least one connection is usable. */
bool tg_pg_connected(const struct tg_pg *pg);
/* Why it is not, in libpq's words (no secrets), for people. Valid until the loop goes on. */
const char *tg_pg_fault(const struct tg_pg *pg);
size_t tg_pg_in_progress(const struct tg_pg *pg);

/* status 0: `result` is PGRES_TUPLES_OK or COMMAND_OK, borrowed. TG_ERR_STORE: refused, `result`
 * carries the SQLSTATE; nothing was done. TG_ERR_TIMEOUT, TG_ERR_DISCONNECTED: unknown, `result`
 * NULL. 40001 and 40P01 are repeated up to 5 times first. */
typedef void tg_pg_on_result(void *context, uint64_t token, int status, const PGresult *result);

enum { TG_PG_PARAMETERS_MAX = 24 };
struct tg_pg_statement {
    const char *sql;
    int parameter_count; /* 0: simple protocol, several statements allowed, the last result is told
                          */
    const char *values[TG_PG_PARAMETERS_MAX]; /* text form, or binary where formats says 1; NULL =
                                                 SQL NULL */
    int lengths[TG_PG_PARAMETERS_MAX];        /* binary only */
    int formats[TG_PG_PARAMETERS_MAX];        /* 0 text, 1 binary */
};
/* Copies the parameters. 0 (then on_result is called exactly once), TG_ERR_DISCONNECTED or
 * TG_ERR_FULL. */
TG_MUST_CHECK int tg_pg_run(struct tg_pg *pg, const struct tg_pg_statement *statement,
                            tg_pg_on_result *on_result, void *context, uint64_t token);

#endif
