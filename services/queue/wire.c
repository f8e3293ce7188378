// SPDX-License-Identifier: Apache-2.0
#include "services/queue/wire.h"

#include "lib/io/sales.h"
#include "lib/pure/number.h"
#include "lib/pure/text.h"

#include <string.h>

/* Paces above a thousand million people a second are nonsense; below it, pace x time cannot
 * overflow. */
#define PACE_MILLI_MAX ((uint64_t)1000000000000)

enum tg_reason queue_wire_lease(const char *sale, const Tidegate__V1__LeaseRequest *request,
                                struct queue_event *out_event)
{
    if (strcmp(request->sale, sale) != 0 || !tg_instance_valid(request->edge) ||
        request->count < 1 || request->count > TG_MAX_LEASE_INDEXES) {
        return TG_REASON_MALFORMED;
    }
    out_event->kind = QUEUE_LEASE;
    out_event->lease.edge = request->edge;
    out_event->lease.count = request->count;
    return TG_REASON_NONE;
}

enum tg_reason queue_wire_presence(const char *sale, const Tidegate__V1__Presence *presence,
                                   struct queue_event *out_event)
{
    const uint64_t numbers[] = {presence->index_end,       presence->tickets,
                                presence->board_term,      presence->board_watermark,
                                presence->present_at_open, presence->index_at_open,
                                presence->arrivals,        presence->passes_asked};
    if (strcmp(presence->sale, sale) != 0 || !tg_instance_valid(presence->edge) ||
        !tg_counts_valid(numbers, sizeof numbers / sizeof numbers[0])) {
        return TG_REASON_MALFORMED;
    }
    out_event->kind = QUEUE_PRESENCE;
    out_event->presence.edge = presence->edge;
    out_event->presence.generation = presence->generation;
    out_event->presence.index_end = presence->index_end;
    out_event->presence.tickets = presence->tickets;
    out_event->presence.arrivals = presence->arrivals;
    out_event->presence.passes_asked = presence->passes_asked;
    out_event->presence.board_term = presence->board_term;
    out_event->presence.board_watermark = presence->board_watermark;
    out_event->presence.present_at_open = presence->present_at_open;
    out_event->presence.index_at_open = presence->index_at_open;
    out_event->presence.early_over = presence->early_over;
    return TG_REASON_NONE;
}

enum tg_reason queue_wire_roster(const char *sale, const Tidegate__V1__RosterRequest *request,
                                 uint32_t *out_count)
{
    if (strcmp(request->sale, sale) != 0 || !tg_instance_valid(request->edge) ||
        request->entrants.len == 0 || request->entrants.len % TG_ENTRANT_BYTES != 0 ||
        request->entrants.len / TG_ENTRANT_BYTES > TG_MAX_ROSTER_PAGE) {
        return TG_REASON_MALFORMED;
    }
    *out_count = (uint32_t)(request->entrants.len / TG_ENTRANT_BYTES);
    return TG_REASON_NONE;
}

enum tg_reason queue_wire_peer(const char *sale, const Tidegate__V1__Board *board,
                               struct queue_event *out_event)
{
    const uint64_t numbers[] = {board->term, board->index_end, board->watermark,
                                board->present_at_open, board->index_at_open};
    if (strcmp(board->sale, sale) != 0 || !tg_instance_valid(board->instance) ||
        !tg_counts_valid(numbers, sizeof numbers / sizeof numbers[0])) {
        return TG_REASON_MALFORMED;
    }
    out_event->kind = QUEUE_PEER;
    out_event->peer.generation = board->generation;
    out_event->peer.term = board->term;
    out_event->peer.instance = board->instance;
    out_event->peer.index_end = board->index_end;
    out_event->peer.watermark = board->watermark;
    out_event->peer.present_at_open = board->present_at_open;
    out_event->peer.index_at_open = board->index_at_open;
    return TG_REASON_NONE;
}

enum tg_reason queue_wire_pace(const char *sale, const Tidegate__V1__Pace *pace,
                               struct queue_event *out_event)
{
    if (strcmp(pace->sale, sale) != 0 || pace->term > TG_COUNT_MAX ||
        pace->pace_milli > PACE_MILLI_MAX) {
        return TG_REASON_MALFORMED;
    }
    out_event->kind = QUEUE_PACE;
    out_event->pace.term = pace->term;
    out_event->pace.pace_milli = pace->pace_milli;
    return TG_REASON_NONE;
}

enum tg_reason queue_wire_stock(const char *sale, const Tidegate__V1__Stock *stock,
                                struct queue_event *out_event)
{
    if (strcmp(stock->sale, sale) != 0 || stock->n_items > TG_MAX_ITEMS_PER_SALE ||
        stock->sequence > TG_COUNT_MAX) {
        return TG_REASON_MALFORMED;
    }
    uint64_t free_units = 0;
    uint64_t held = 0, settled = 0;
    for (size_t i = 0; i < stock->n_items; i++) {
        const Tidegate__V1__ItemStock *item = stock->items[i];
        if (item->free > TG_MAX_UNITS_PER_ITEM || item->held > TG_MAX_UNITS_PER_ITEM ||
            item->settled > TG_MAX_UNITS_PER_ITEM) {
            return TG_REASON_MALFORMED;
        }
        free_units += item->free;
        held += item->held;
        settled += item->settled;
    }
    out_event->kind = QUEUE_STOCK;
    out_event->stock.epoch = stock->epoch;
    out_event->stock.known = stock->armed && stock->n_items > 0;
    out_event->stock.paused = stock->paused;
    out_event->stock.gate_now_ms = stock->gate_now_ms;
    out_event->stock.free = free_units;
    out_event->stock.held = held;
    out_event->stock.settled = settled;
    out_event->stock.sequence = stock->sequence;
    return TG_REASON_NONE;
}

void queue_wire_grant(const struct queue_grant *grant, Tidegate__V1__LeaseReply *out_reply)
{
    tidegate__v1__lease_reply__init(out_reply);
    out_reply->reason = (char *)tg_reason_code(grant->reason);
    out_reply->term = grant->term;
    out_reply->generation = grant->generation;
    out_reply->first = grant->first;
    out_reply->count = grant->count;
    out_reply->opened = grant->opened;
}

void queue_wire_board(const char *sale, const char *instance, const struct queue_board *board,
                      struct tg_wall now, Tidegate__V1__Board *out_board)
{
    tidegate__v1__board__init(out_board);
    out_board->sale = (char *)sale;
    out_board->instance = (char *)instance;
    out_board->generation = board->generation;
    out_board->term = board->term;
    out_board->version = board->version;
    out_board->phase = tg_phase_told(board->phase);
    out_board->policy = (char *)tg_order_name(board->order);
    if (board->revealed) {
        out_board->seed.len = sizeof board->seed;
        out_board->seed.data = (uint8_t *)(uintptr_t)board->seed;
    }
    out_board->opens_at_ms = board->opens_at.ms;
    out_board->now_ms = now.ms;
    out_board->index_end = board->index_end;
    out_board->watermark = board->watermark;
    out_board->present_at_open = board->present_at_open;
    out_board->index_at_open = board->index_at_open;
    out_board->pace_milli = board->pace_milli;
    out_board->waiting = board->waiting;
    out_board->remaining = board->remaining;
    out_board->held = board->held;
    out_board->poll_seconds = board->poll_seconds;
    out_board->notice = (char *)tg_reason_code(board->notice);
}
