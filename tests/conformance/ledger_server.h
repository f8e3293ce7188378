/* SPDX-License-Identifier: Apache-2.0
 * The ledger's SQL functions on a real PostgreSQL, whose clock is told instead of read. One
 * sequence is one transaction that is undone in the end. */
#ifndef CONFORMANCE_LEDGER_SERVER_H
#define CONFORMANCE_LEDGER_SERVER_H

#include "tests/conformance/conformance.h"

void ledger_server_open(const char *conninfo, const struct conformance_mutant *mutant_or_null);
void ledger_server_begin(void);
/* From now on the clock says this. */
void ledger_server_clock(int64_t now_ms);
/* Adds to the statement under way; ends it. */
__attribute__((format(printf, 1, 2))) void ledger_server_add(const char *format, ...);
void ledger_server_ask(void);
/* Says one line per statement: its rows, column by column. */
void ledger_server_answers(struct conformance_side *side);

#endif
