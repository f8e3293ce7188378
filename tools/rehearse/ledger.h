/* SPDX-License-Identifier: Apache-2.0
 * What the referee reads in PostgreSQL. It blocks: never while the crowd plays. Every call returns
 * 0 or a negative error and says on standard error what PostgreSQL said. */
#ifndef REHEARSE_LEDGER_H
#define REHEARSE_LEDGER_H

#include "tools/rehearse/referee.h"
#include "tools/rehearse/sale.h"

#include <libpq-fe.h>

TG_MUST_CHECK int rehearse_ledger_open(const char *url, PGconn **out_connection);

/* The newest generation of the sale. TG_ERR_STORE when there is none. */
TG_MUST_CHECK int rehearse_ledger_sale(PGconn *connection, const char *name,
                                       struct rehearse_sale *out_sale);

struct rehearse_counts {
    uint64_t recorded, pending, confirmed, expired, cancelled, tombstones;
    uint64_t unobeyed;  /* verdicts the gate of the present epoch has not obeyed */
    uint64_t restocked; /* given back at the gate */
    uint64_t resold;    /* units that lapsed once and were sold after it */
    uint64_t rounds_clean, rounds_void, alarms;
    uint64_t compensations; /* payments to be returned */
    uint64_t logged;        /* entries of the gate's log, present epoch */
};
TG_MUST_CHECK int rehearse_ledger_counts(PGconn *connection, const struct rehearse_sale *sale,
                                         struct rehearse_counts *out_counts);

/* R1's and R7's counts and all reservations into `facts`. `tag` names this run's users. */
TG_MUST_CHECK int rehearse_ledger_rows(PGconn *connection, const struct rehearse_sale *sale,
                                       const char *tag, struct rehearse_facts *facts);

/* The gate's history by its exported log, times relative to `begun_ms`. Known only when it is one
 * epoch from its first entry on and complete up to `last_sequence` (summed over shards). */
TG_MUST_CHECK int rehearse_ledger_stock(PGconn *connection, const struct rehearse_sale *sale,
                                        int64_t begun_ms, uint64_t last_sequence,
                                        struct rehearse_facts *facts);

#endif
