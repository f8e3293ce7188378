/* SPDX-License-Identifier: Apache-2.0
 * The sweeper's shell: carries out what the core decides, one core per sale, over the bus. */
#ifndef SWEEPER_SWEEP_H
#define SWEEPER_SWEEP_H

#include "lib/io/app.h"
#include "lib/io/sales.h"

struct sweeper;

/* Starts the turns. Returns 0 or a negative error. `keys` is borrowed. */
TG_MUST_CHECK int sweeper_open(struct tg_app *app, const char *keys, struct sweeper **out_sweeper);
struct sweeper *sweeper_free(struct sweeper *sweeper);

/* True while the bus is there and the sales are known; else `out_why` says what is missing. */
bool sweeper_ready(const struct sweeper *sweeper, const char **out_why);
/* Begins no page any more; those begun are worked off. */
void sweeper_drain(struct sweeper *sweeper);
/* Calls in flight. */
size_t sweeper_busy(const struct sweeper *sweeper);

#endif
