/* SPDX-License-Identifier: Apache-2.0
 * The ledger's port on PostgreSQL: every operation is one call of a function of sql/, and so one
 * transaction. */
#ifndef LEDGER_STORE_PG_H
#define LEDGER_STORE_PG_H

#include "services/ledger/store.h"

struct store_pg;
struct tg_pg;

/* Over an open pool, which the caller keeps and frees after this. 0 or a negative error. */
TG_MUST_CHECK int store_pg_open(struct tg_pg *pg, const struct ledger_answers *answers,
                                struct store_pg **out_store);
const struct ledger_store *store_pg_port(struct store_pg *store);
/* No statement of it may be in progress. */
struct store_pg *store_pg_free(struct store_pg *store);

#endif
