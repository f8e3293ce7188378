/* SPDX-License-Identifier: Apache-2.0
 * The reads of a checker's round, one step at a time, as services/invariant/round.c. */
#ifndef SIM_INVARIANT_READS_H
#define SIM_INVARIANT_READS_H

#include "tests/sim/sim.h"

/* Carries out the present step, or a page of it, and tells the core how it ended. */
void invariant_read_step(uint8_t node, struct invariant_node *checker);
void invariant_read_judge(struct invariant_node *checker,
                          struct invariant_judgement *out_judgement);
/* What an entry of the log does to the stock. */
void invariant_read_change(const struct redis_log *log, struct ledger_log *entry);

#endif
