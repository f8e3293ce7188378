// SPDX-License-Identifier: Apache-2.0
#include "services/admission/load.h"

#include "lib/io/metrics.h"

void admission_load_hear(struct admission_load *load, const Tidegate__V1__Load *message)
{
    if (message->p99_us > load->p99_us) {
        load->p99_us = message->p99_us;
    }
    if (message->in_flight > load->in_flight) {
        load->in_flight = message->in_flight;
    }
    load->heard++;
    tg_metric_add(TG_METRIC_LOAD_ERRORS, load->daemon, message->errors);
}

void admission_load_export(struct admission_load *load)
{
    if (load->heard == 0) {
        return;
    }
    tg_metric_set(TG_METRIC_LOAD_P99, load->daemon, (double)load->p99_us / 1e6);
    tg_metric_set(TG_METRIC_LOAD_IN_FLIGHT, load->daemon, (double)load->in_flight);
    load->p99_us = 0;
    load->in_flight = 0;
    load->heard = 0;
}
