/* SPDX-License-Identifier: Apache-2.0
 * What the daemons behind the gate say of their load, as metrics. */
#ifndef ADMISSION_LOAD_H
#define ADMISSION_LOAD_H

#include "services/admission/core_pace.h"

/* The worst instance of one daemon since the last export. */
struct admission_gauge {
    uint64_t p99_us;
    uint64_t in_flight;
    uint32_t heard;
};

void admission_gauge_hear(struct admission_gauge gauges[ADMISSION_DAEMONS],
                          const struct admission_load *load);
/* Sets the metrics from what was heard and starts anew; without a message they keep their last
 * value. */
void admission_gauge_export(struct admission_gauge gauges[ADMISSION_DAEMONS]);

#endif
