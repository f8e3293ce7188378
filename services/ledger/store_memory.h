/* SPDX-License-Identifier: Apache-2.0
 * The memory twin of the ledger's port: the rules of sql/ in memory, for tests and the simulator;
 * never in the running product. The caller is its clock and its network: an operation decides at
 * once, its answer waits until it is delivered or lost. tests/unit/test_ledger_twin.c holds it to
 * what PostgreSQL answers. */
#ifndef LEDGER_STORE_MEMORY_H
#define LEDGER_STORE_MEMORY_H

#include "services/ledger/store.h"

struct store_memory;

/* Room for this many reservations; more are answered TG_ERR_STORE. 0 or a negative error. */
TG_MUST_CHECK int store_memory_open(uint32_t reservations_max, const struct ledger_answers *answers,
                                    struct store_memory **out_store);
struct store_memory *store_memory_free(struct store_memory *store);
const struct ledger_store *store_memory_port(struct store_memory *store);

/* The clock of the decisions from here on. */
void store_memory_now(struct store_memory *store, int64_t now_ms);

/* Tells the oldest waiting answer; false when there is none. */
bool store_memory_deliver(struct store_memory *store);
/* Tells it as unknown (TG_ERR_TIMEOUT): what was decided stays decided. */
bool store_memory_lose(struct store_memory *store);

#endif
