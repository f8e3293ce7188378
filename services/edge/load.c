/* SPDX-License-Identifier: Apache-2.0
 * How busy this edge is, told to admission: people who are let in faster than edges can serve them
 * wait where no daemon behind could see it. */
#include "lib/io/bus.h"
#include "lib/io/metrics.h"
#include "services/edge/service.h"
#include "tidegate/v1/common.pb-c.h"

/* One process, one load: the same numbers for every sale that is not over. */
void edge_load_tick(void *context)
{
    struct edge *edge = context;
    Tidegate__V1__Load load = TIDEGATE__V1__LOAD__INIT;
    load.daemon = (char *)tg_app_name(edge->app);
    load.instance = (char *)tg_app_instance(edge->app);
    load.p99_us = tg_app_lag_us(edge->app);
    load.requests = edge->holds.answered + edge->holds.unknown;
    load.errors = edge->holds.unknown;
    load.in_flight = edge->holds.open;
    for (size_t i = 0; i < edge->table_count; i++) {
        load.sale = edge->table[i].name;
        if (edge->table[i].sale->phase != TG_PHASE_CLOSED &&
            tg_bus_publish(tg_app_bus(edge->app), TG_MESSAGE_LOAD_EDGE, load.sale, &load.base) !=
                0) {
            tg_metric_add(TG_METRIC_BUS_CALL_FAILURES, "disconnected", 1);
        }
    }
    edge->holds.answered = 0;
    edge->holds.unknown = 0;
}
