/* SPDX-License-Identifier: Apache-2.0
 * What the files of the PostgreSQL adapter share. Private to services/ledger/store_pg*. */
#ifndef LEDGER_STORE_PG_PARTS_H
#define LEDGER_STORE_PG_PARTS_H

#include "lib/io/pg.h"
#include "services/ledger/store_pg.h"
#include "services/ledger/store_text.h"

enum { STORE_TEXTS = 16 };

struct store_pg {
    struct tg_pg *pg;
    struct ledger_answers answers;
    struct ledger_store port;
    struct store_text texts[STORE_TEXTS]; /* arrays of the statement being built */
    struct ledger_recorded recorded[TG_MAX_RECORD_BATCH];
    struct ledger_verdicts verdicts;
    struct ledger_due due;
    struct ledger_snapshot snapshot;
    struct ledger_incident incident;
    struct ledger_audit audit;
    struct ledger_drawn drawn;
    struct ledger_sales sales;
    struct ledger_event events[LEDGER_EVENTS_PAGE];
};

/* A statement being built: parameters in order. Texts are borrowed until it is run. */
struct store_call {
    struct tg_pg_statement statement;
    char digits[TG_PG_PARAMETERS_MAX][24];
};
void store_call_begin(struct store_call *call, const char *sql);
void store_call_text(struct store_call *call, const char *value); /* NULL = SQL NULL */
void store_call_number(struct store_call *call, int64_t value);
void store_call_flag(struct store_call *call, bool value);
TG_MUST_CHECK int store_call_run(struct store_pg *store, const struct store_call *call,
                                 tg_pg_on_result *on_result, uint64_t token);

/* Logs a refused statement (SQLSTATE and message) and returns the status to tell: TG_ERR_STORE also
 * for a result whose rows were not what they should be. */
int store_outcome(int status, const PGresult *result, const struct store_row *row);

int store_pg_record(void *self, const struct ledger_batch *batch, uint64_t token);
int store_pg_expire(void *self, const struct ledger_expire *ask, uint64_t token);
int store_pg_obeyed(void *self, const struct ledger_obeyed *ask, uint64_t token);
int store_pg_due(void *self, const struct ledger_due_ask *ask, uint64_t token);
int store_pg_reservation(void *self, const struct ledger_ask *ask, uint64_t token);
int store_pg_snapshot(void *self, const struct ledger_snapshot_ask *ask, uint64_t token);
int store_pg_incident(void *self, const struct ledger_incident_ask *ask, uint64_t token);
int store_pg_audit(void *self, const struct ledger_audit_ask *ask, uint64_t token);
int store_pg_armed(void *self, const struct ledger_armed *ask, uint64_t token);
int store_pg_check(void *self, const struct ledger_check *ask, uint64_t token);
int store_pg_log_tail(void *self, const struct ledger_log_place *place, uint64_t token);
int store_pg_log_append(void *self, const struct ledger_log_page *page, uint64_t token);
int store_pg_draw(void *self, const struct ledger_draw_ask *ask, uint64_t token);
int store_pg_sales(void *self, const char *after, const char *only, uint64_t token);
int store_pg_tick(void *self, uint64_t token);
int store_pg_judge(void *self, const struct ledger_command *command, uint64_t token);
int store_pg_events(void *self, const char *instance, uint64_t token);
int store_pg_published(void *self, const int64_t *ids, uint32_t count, uint64_t token);
int store_pg_health(void *self, uint64_t token);

#endif
