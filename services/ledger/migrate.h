/* SPDX-License-Identifier: Apache-2.0
 * The numbered migrations of sql/, embedded, and their one-shot application. Waits; never called on
 * a loop. */
#ifndef LEDGER_MIGRATE_H
#define LEDGER_MIGRATE_H

#include <stdint.h>

/* The schema this binary is made for: the number of its last migration. */
uint32_t ledger_schema_version(void);

/* Applies what is missing, each file in a transaction of its own under an advisory lock, and prints
 * each one's name to standard output. Refuses a database that is ahead of this binary, or whose
 * applied files differ from its own. Returns an exit code: 0, 1 (failed) or 78 (conninfo, or a
 * schema this binary does not know). */
int ledger_migrate(const char *conninfo);

#endif
