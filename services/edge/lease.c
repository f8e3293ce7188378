/* SPDX-License-Identifier: Apache-2.0
 * Blocks of indexes, asked for ahead of need: at half of a block the next one is on its way. A
 * ticket never waits here. */
#include "lib/io/bus.h"
#include "services/edge/service.h"
#include "services/edge/wire.h"

static void on_lease_reply(void *context, uint64_t token, int status,
                           const ProtobufCMessage *message)
{
    struct edge *edge = context;
    struct edge_grant grant;
    struct edge_sale *sale = token < edge->table_count ? &edge->table[token] : NULL;
    if (sale == NULL) {
        return;
    }
    bool granted =
        status == 0 &&
        edge_wire_lease((const Tidegate__V1__LeaseReply *)message, &grant) == TG_REASON_NONE &&
        grant.reason == TG_REASON_NONE && grant.generation == sale->lease.generation;
    if (granted) {
        edge_lease_granted(&sale->lease, grant.first, grant.count);
    } else {
        edge_lease_failed(&sale->lease, edge_now());
    }
}

static void ask(struct edge *edge, size_t index)
{
    struct edge_sale *sale = &edge->table[index];
    Tidegate__V1__LeaseRequest message = TIDEGATE__V1__LEASE_REQUEST__INIT;
    message.sale = sale->name;
    message.edge = (char *)tg_app_instance(edge->app);
    message.count = edge_lease_ask(&sale->lease, edge_now());
    int error = tg_bus_call(tg_app_bus(edge->app), TG_MESSAGE_QUEUE_LEASE, sale->name,
                            &message.base, "", TG_MAX_CALL_MS, on_lease_reply, edge, index);
    if (error != 0) {
        edge_lease_failed(&sale->lease, edge_now());
    }
}

void edge_lease_tick(struct edge *edge)
{
    for (size_t i = 0; i < edge->table_count; i++) {
        struct edge_sale *sale = &edge->table[i];
        edge_lease_follow(&sale->lease, sale->sale->generation);
        if (sale->sale->phase != TG_PHASE_CLOSED && edge_lease_wants(&sale->lease, edge_now())) {
            ask(edge, i);
        }
    }
}
