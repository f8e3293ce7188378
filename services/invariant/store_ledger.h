/* SPDX-License-Identifier: Apache-2.0
 * What the checker reads from PostgreSQL: one statement per question, so each is one snapshot of
 * the primary. Reads only. */
#ifndef INVARIANT_STORE_LEDGER_H
#define INVARIANT_STORE_LEDGER_H

#include "lib/io/pg.h"
#include "services/invariant/core_check.h"
#include "services/invariant/core_log.h"
#include "services/invariant/wire.h"

enum { INVARIANT_FILL_COUNT = 2000 };

struct invariant_question {
    struct tg_pg *pg;
    const char *sale;
    tg_pg_on_result *on_result;
    void *context;
    uint64_t token;
};

/* All return 0 (then the result comes exactly once), TG_ERR_DISCONNECTED or TG_ERR_FULL. */

/* P: the sale, its items and every reservation of the generation with its holdings. */
TG_MUST_CHECK int invariant_ledger_snapshot(const struct invariant_question *question,
                                            uint64_t generation);
/* The last stored log entry at or before a sequence. */
TG_MUST_CHECK int invariant_ledger_head(const struct invariant_question *question, uint64_t epoch,
                                        uint32_t shard, uint64_t up_to);
/* Stored log entries after a sequence, up to another one, at most INVARIANT_FILL_COUNT. */
TG_MUST_CHECK int invariant_ledger_fill(const struct invariant_question *question, uint64_t epoch,
                                        uint32_t shard, uint64_t after, uint64_t up_to);

/* Reading their results. The sink is called for every joined row of P; a negative return ends the
 * reading and is returned. */
struct invariant_ledger_sink {
    void *context;
    const uint8_t *tag_key;
    /* A reservation with one of its holdings: the row's counts are 0 or 1; `holding_or_null` when
     * there is a live one. */
    int (*row)(void *context, const struct invariant_row *row,
               const struct invariant_holding *holding_or_null);
};
/* 0, TG_ERR_MALFORMED, or what the sink returned. */
TG_MUST_CHECK int invariant_ledger_read(const PGresult *result,
                                        const struct invariant_ledger_sink *sink,
                                        struct invariant_ledger *out_ledger);
/* Places the log at the head found, or at 0 when nothing is stored. 0 or TG_ERR_MALFORMED. */
TG_MUST_CHECK int invariant_ledger_read_head(const PGresult *result, struct invariant_log *out_log);
/* Entry `index` of a fill. 0 or TG_ERR_MALFORMED. */
TG_MUST_CHECK int invariant_ledger_read_fill(const PGresult *result, int index,
                                             struct invariant_log_entry *out_entry);

#endif
