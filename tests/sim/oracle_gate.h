/* SPDX-License-Identifier: Apache-2.0
 * The gate's keys as the oracles read them: from the data itself, by no script. */
#ifndef SIM_ORACLE_GATE_H
#define SIM_ORACLE_GATE_H

#include "tests/sim/sim.h"

struct gate_view {
    uint32_t initial[SIM_ITEMS], stock[SIM_ITEMS], held_units[SIM_ITEMS], settled_units[SIM_ITEMS];
    uint32_t free[SIM_ITEMS]; /* bit n: unit n is free */
    uint32_t held, unacked, settled, released, pauses, slots;
    int64_t attested_until_ms;
    bool armed;
    char run_id[41];
};

/* False: no such gate. */
bool oracle_gate_view(int gate, uint64_t epoch, struct gate_view *out_view);
void oracle_begin(void);

#endif
