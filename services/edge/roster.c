/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/roster.h"

#include "lib/io/bus.h"
#include "lib/io/log.h"
#include "services/edge/service.h"
#include "tidegate/v1/queue.pb-c.h"

#include <stdlib.h>
#include <string.h>

enum { RETRY_MS = 250 };

bool edge_roster_enter(struct edge_sale *sale, const uint8_t entrant[TG_ENTRANT_BYTES])
{
    struct edge_roster *roster = &sale->roster;
    if (roster->unsent == NULL) {
        roster->unsent = calloc(TG_MAX_ROSTER_UNSENT, TG_ENTRANT_BYTES);
    }
    if (roster->unsent == NULL || roster->pushed - roster->entered == TG_MAX_ROSTER_UNSENT) {
        return false;
    }
    memcpy(roster->unsent[roster->pushed++ % TG_MAX_ROSTER_UNSENT], entrant, TG_ENTRANT_BYTES);
    return true;
}

bool edge_roster_has(const struct edge_roster *roster, const uint8_t entrant[TG_ENTRANT_BYTES])
{
    if (!edge_roster_complete(roster)) {
        return false;
    }
    uint64_t from = 0, to = roster->count;
    while (from < to) {
        const uint64_t middle = from + (to - from) / 2;
        int order = memcmp(roster->all[middle], entrant, TG_ENTRANT_BYTES);
        if (order == 0) {
            return true;
        }
        from = order < 0 ? middle + 1 : from;
        to = order < 0 ? to : middle;
    }
    return false;
}

bool edge_roster_over(const struct edge_sale *sale)
{
    return sale->sale->opened && sale->roster.pushed == sale->roster.entered;
}

void edge_roster_free(struct edge_roster *roster)
{
    free(roster->unsent);
    free(roster->all);
    *roster = (struct edge_roster){0};
}

static bool call(struct edge *edge, size_t index, enum tg_message message, ProtobufCMessage *body,
                 tg_bus_on_reply *on_reply)
{
    struct edge_sale *sale = &edge->table[index];
    const uint64_t token = sale->roster.generation << 8 | index;
    sale->roster.busy = tg_bus_call(tg_app_bus(edge->app), message, sale->name, body, "",
                                    TG_MAX_CALL_MS, on_reply, edge, token) == 0;
    if (!sale->roster.busy) {
        sale->roster.retry_at.ms = edge_now().mono.ms + RETRY_MS;
    }
    return sale->roster.busy;
}

/* The sale a reply is about, if it is still of that generation. */
static struct edge_sale *sale_of(struct edge *edge, uint64_t token)
{
    struct edge_sale *sale = &edge->table[token & 0xff];
    if (sale->roster.generation != token >> 8) {
        return NULL;
    }
    sale->roster.busy = false;
    return sale;
}

/* ---- early ones, into the roster ---- */

static void enter_next(struct edge *edge, size_t index);

static void shut_out(struct edge_sale *sale)
{
    struct edge_roster *roster = &sale->roster;
    tg_log(TG_LOG_WARN, "edge.roster_late", TG_TEXT_FIELD("sale", sale->name),
           TG_NUMBER_FIELD("entrants", roster->pushed - roster->entered));
    roster->entered = roster->pushed;
}

static void on_entered(void *context, uint64_t token, int status, const ProtobufCMessage *message)
{
    struct edge *edge = context;
    struct edge_sale *sale = sale_of(edge, token);
    if (sale == NULL) {
        return;
    }
    const Tidegate__V1__RosterReply *reply = (const Tidegate__V1__RosterReply *)message;
    enum tg_reason reason = status == 0 ? tg_reason_from_code(reply->reason) : TG_REASON_TRY_AGAIN;
    if (reason == TG_REASON_NONE) {
        sale->roster.entered += sale->roster.sent;
        enter_next(edge, token & 0xff);
    } else if (reason == TG_REASON_NOT_ALLOWED_NOW) {
        shut_out(sale);
    } else {
        sale->roster.retry_at.ms = edge_now().mono.ms + RETRY_MS;
    }
}

static void enter_next(struct edge *edge, size_t index)
{
    struct edge_sale *sale = &edge->table[index];
    struct edge_roster *roster = &sale->roster;
    uint8_t entrants[TG_MAX_ROSTER_PAGE][TG_ENTRANT_BYTES];
    const uint64_t left = roster->pushed - roster->entered;
    roster->sent = (uint32_t)(left < TG_MAX_ROSTER_PAGE ? left : TG_MAX_ROSTER_PAGE);
    if (roster->sent == 0) {
        return;
    }
    for (uint32_t i = 0; i < roster->sent; i++) {
        memcpy(entrants[i], roster->unsent[(roster->entered + i) % TG_MAX_ROSTER_UNSENT],
               TG_ENTRANT_BYTES);
    }
    Tidegate__V1__RosterRequest message = TIDEGATE__V1__ROSTER_REQUEST__INIT;
    message.sale = sale->name;
    message.edge = (char *)tg_app_instance(edge->app);
    message.generation = roster->generation;
    message.entrants.len = (size_t)roster->sent * TG_ENTRANT_BYTES;
    message.entrants.data = entrants[0];
    (void)call(edge, index, TG_MESSAGE_QUEUE_ROSTER, &message.base, on_entered);
}

/* ---- the frozen roster, from the queue ---- */

static void load_next(struct edge *edge, size_t index);

static void on_part(void *context, uint64_t token, int status, const ProtobufCMessage *message)
{
    struct edge *edge = context;
    struct edge_sale *sale = sale_of(edge, token);
    if (sale == NULL) {
        return;
    }
    const Tidegate__V1__PartReply *reply = (const Tidegate__V1__PartReply *)message;
    struct edge_roster *roster = &sale->roster;
    const uint64_t left = roster->count - roster->loaded;
    const uint64_t wanted = left < TG_MAX_ROSTER_PART ? left : TG_MAX_ROSTER_PART;
    if (status != 0 || reply->reason[0] != '\0' ||
        reply->entrants.len != wanted * TG_ENTRANT_BYTES) {
        roster->retry_at.ms = edge_now().mono.ms + RETRY_MS;
        return;
    }
    memcpy(roster->all[roster->loaded], reply->entrants.data, reply->entrants.len);
    roster->loaded += wanted;
    load_next(edge, token & 0xff);
}

static void load_next(struct edge *edge, size_t index)
{
    struct edge_sale *sale = &edge->table[index];
    struct edge_roster *roster = &sale->roster;
    if (roster->all == NULL) {
        roster->count = sale->sale->draw.count;
        roster->all = calloc(roster->count + 1, TG_ENTRANT_BYTES);
    }
    if (roster->all == NULL || roster->loaded == roster->count) {
        return;
    }
    Tidegate__V1__PartRequest message = TIDEGATE__V1__PART_REQUEST__INIT;
    message.sale = sale->name;
    message.generation = roster->generation;
    message.part = roster->loaded / TG_MAX_ROSTER_PART;
    (void)call(edge, index, TG_MESSAGE_QUEUE_PART, &message.base, on_part);
}

/* ---- every sale ---- */

static void tell_over(struct edge *edge, struct edge_sale *sale)
{
    if (!sale->roster.over_told && edge_roster_over(sale)) {
        sale->roster.over_told = true; /* and again with every presence */
        edge_presence_tell(edge, sale);
    }
}

void edge_roster_tick(struct edge *edge)
{
    for (size_t i = 0; i < edge->table_count; i++) {
        struct edge_sale *sale = &edge->table[i];
        struct edge_roster *roster = &sale->roster;
        if (roster->generation != sale->sale->generation) {
            edge_roster_free(roster);
            roster->generation = sale->sale->generation;
        }
        if (!tg_sale_draws(sale->sale)) {
            continue;
        }
        tell_over(edge, sale);
        if (roster->busy || edge_now().mono.ms < roster->retry_at.ms) {
            continue;
        }
        if (roster->pushed != roster->entered) {
            enter_next(edge, i);
        } else if (sale->sale->draw.frozen && !edge_roster_complete(roster)) {
            load_next(edge, i);
        }
    }
}
