/* SPDX-License-Identifier: Apache-2.0
 * What the daemons behind the gate say of their load, exported as metrics. Heard only: nothing is
 * decided by it. */
#ifndef ADMISSION_LOAD_H
#define ADMISSION_LOAD_H

#include "tidegate/v1/common.pb-c.h"

#include <stdint.h>

/* The worst instance of one daemon since the last export. */
struct admission_load {
    const char *daemon;
    uint64_t p99_us;
    uint32_t in_flight;
    uint32_t heard;
};

void admission_load_hear(struct admission_load *load, const Tidegate__V1__Load *message);
/* Sets the gauges from what was heard and starts anew; without a message they keep their last
 * value. */
void admission_load_export(struct admission_load *load);

#endif
