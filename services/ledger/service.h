/* SPDX-License-Identifier: Apache-2.0
 * The ledger as a process: subjects, store, state broadcast, outbox, load. See README.md. */
#ifndef LEDGER_SERVICE_H
#define LEDGER_SERVICE_H

#include "lib/io/app.h"
#include "services/ledger/settings.h"

struct ledger;

TG_MUST_CHECK int ledger_open(struct tg_app *app, const struct ledger_settings *settings,
                              struct ledger **out_ledger);
/* A statement was answered lately by a writable PostgreSQL of our schema, and the bus is connected.
 */
bool ledger_ready(const struct ledger *ledger, const char **out_why);
/* Lines "name value" for tidegatectl doctor; left alone while the ledger is not ready. */
void ledger_configuration(const struct ledger *ledger, char *out_text, size_t capacity);
void ledger_drain(struct ledger *ledger);
size_t ledger_busy(const struct ledger *ledger);
struct ledger *ledger_free(struct ledger *ledger);

#endif
