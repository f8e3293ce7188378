/* SPDX-License-Identifier: Apache-2.0
 * Blocks of indexes, asked for ahead of need: at half of a block the next one is on its way. A
 * burst that outruns it waits here for the next block, in the order it came. */
#include "lib/io/bus.h"
#include "lib/io/now.h"
#include "services/edge/service.h"
#include "services/edge/wire.h"

bool edge_park(struct edge_request *request)
{
    struct edge_parked *parked = &request->sale->parked;
    uint64_t waited_us = tg_now_us() - tg_http_received_us(request->exchange);
    if (waited_us >= (uint64_t)TG_MAX_CALL_MS * 1000 || parked->count == TG_MAX_PARKED) {
        return false;
    }
    parked->exchanges[(parked->first + parked->count) % TG_MAX_PARKED] =
        tg_http_id(request->exchange);
    parked->count++;
    return true;
}

/* Handles the first `count` of the parked requests again. Whom the block does not reach waits on,
 * behind nobody who came later: all of them are handled again in their order. */
static void unpark(struct edge *edge, struct edge_sale *sale, uint32_t count)
{
    struct edge_parked *parked = &sale->parked;
    for (uint32_t i = 0; i < count; i++) {
        struct edge_request request;
        uint64_t exchange = parked->exchanges[parked->first];
        parked->first = (parked->first + 1) % TG_MAX_PARKED;
        parked->count--;
        if (edge_request_again(&request, edge, exchange)) {
            edge_ticket(&request);
        }
    }
}

/* A block came: as many as it holds get their place. */
static void unpark_granted(struct edge *edge, struct edge_sale *sale, uint32_t granted)
{
    unpark(edge, sale, sale->parked.count < granted ? sale->parked.count : granted);
}

/* No block came for too long: the first in line have waited longest and are told so. */
static void unpark_late(struct edge *edge, struct edge_sale *sale)
{
    const struct edge_parked *parked = &sale->parked;
    const uint64_t now_us = tg_now_us();
    uint32_t late = 0;
    while (late < parked->count) {
        uint64_t id = parked->exchanges[(parked->first + late) % TG_MAX_PARKED];
        const struct tg_http_exchange *exchange = tg_http_find(edge->server, id);
        if (exchange != NULL &&
            now_us - tg_http_received_us(exchange) < (uint64_t)TG_MAX_CALL_MS * 1000) {
            break;
        }
        late++;
    }
    unpark(edge, sale, late);
}

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
        grant.reason == TG_REASON_NONE && grant.generation == sale->lease.generation &&
        (grant.opened || !sale->lease.over);
    if (granted) {
        edge_lease_granted(&sale->lease, grant.first, grant.count);
        unpark_granted(edge, sale, grant.count);
        edge_lease_tick(edge);
    } else {
        edge_lease_failed(&sale->lease, edge_now());
    }
}

static void ask(struct edge *edge, struct edge_sale *sale)
{
    Tidegate__V1__LeaseRequest message = TIDEGATE__V1__LEASE_REQUEST__INIT;
    message.sale = sale->name;
    message.edge = (char *)tg_app_instance(edge->app);
    message.count = edge_lease_ask(&sale->lease, sale->parked.count, edge_now());
    int error =
        tg_bus_call(tg_app_bus(edge->app), TG_MESSAGE_QUEUE_LEASE, sale->name, &message.base, "",
                    TG_MAX_CALL_MS, on_lease_reply, edge, (uint64_t)(sale - edge->table));
    if (error != 0) {
        edge_lease_failed(&sale->lease, edge_now());
    }
}

void edge_lease_ahead(struct edge *edge, struct edge_sale *sale, struct edge_now now)
{
    edge_lease_follow(&sale->lease, sale->sale->generation);
    if (tg_sale_draws(sale->sale) && sale->sale->opened) {
        edge_lease_over(&sale->lease);
    }
    if (sale->sale->phase != TG_PHASE_CLOSED && edge_lease_wants(&sale->lease, now)) {
        ask(edge, sale);
    }
}

void edge_lease_tick(struct edge *edge)
{
    for (size_t i = 0; i < edge->table_count; i++) {
        unpark_late(edge, &edge->table[i]);
        edge_lease_ahead(edge, &edge->table[i], edge_now());
    }
}
