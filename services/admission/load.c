// SPDX-License-Identifier: Apache-2.0
#include "services/admission/load.h"

#include "lib/io/metrics.h"

#include <string.h>

static const char *const names[ADMISSION_DAEMONS] = {"edge", "reserve", "ledger"};

void admission_gauge_hear(struct admission_gauge gauges[ADMISSION_DAEMONS],
                          const struct admission_load *load)
{
    struct admission_gauge *gauge = &gauges[load->daemon];
    if (load->p99_us > gauge->p99_us) {
        gauge->p99_us = load->p99_us;
    }
    if (load->in_flight > gauge->in_flight) {
        gauge->in_flight = load->in_flight;
    }
    gauge->heard++;
    tg_metric_add(TG_METRIC_LOAD_ERRORS, names[load->daemon], load->errors);
}

void admission_gauge_export(struct admission_gauge gauges[ADMISSION_DAEMONS])
{
    for (size_t i = 0; i < ADMISSION_DAEMONS; i++) {
        if (gauges[i].heard > 0) {
            tg_metric_set(TG_METRIC_LOAD_P99, names[i], (double)gauges[i].p99_us / 1e6);
            tg_metric_set(TG_METRIC_LOAD_IN_FLIGHT, names[i], (double)gauges[i].in_flight);
            memset(&gauges[i], 0, sizeof gauges[i]);
        }
    }
}
