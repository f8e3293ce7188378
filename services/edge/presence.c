/* SPDX-License-Identifier: Apache-2.0
 * What this edge saw, told to the queue twice a second: a queue that starts anew learns from it
 * where to go on. */
#include "lib/io/bus.h"
#include "lib/io/metrics.h"
#include "services/edge/service.h"
#include "tidegate/v1/queue.pb-c.h"

void edge_presence_tell(struct edge *edge, struct edge_sale *sale)
{
    Tidegate__V1__Presence message = TIDEGATE__V1__PRESENCE__INIT;
    message.sale = sale->name;
    message.edge = (char *)tg_app_instance(edge->app);
    message.generation = sale->sale->generation;
    message.index_end = sale->lease.index_end;
    message.tickets = sale->tickets;
    message.board_term = sale->board.term;
    message.board_watermark = sale->board.view.watermark;
    message.present_at_open = sale->board.view.present_at_open;
    message.index_at_open = sale->board.view.index_at_open;
    message.arrivals = sale->arrivals;
    message.passes_asked = sale->asked.people;
    message.early_over = edge_roster_over(sale);
    if (tg_bus_publish(tg_app_bus(edge->app), TG_MESSAGE_QUEUE_PRESENCE, sale->name,
                       &message.base) == 0) {
        sale->arrivals = 0;
        sale->asked.people = 0;
    }
}

void edge_presence_tick(void *context)
{
    struct edge *edge = context;
    for (size_t i = 0; i < edge->table_count; i++) {
        if (edge->table[i].sale->phase != TG_PHASE_CLOSED) {
            edge_presence_tell(edge, &edge->table[i]);
        }
    }
    tg_metric_set(TG_METRIC_HTTP_CONNECTIONS, "", (double)tg_http_open_connections(edge->server));
}
