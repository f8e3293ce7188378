/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/wire.h"

#include "lib/pure/number.h"
#include "lib/pure/text.h"

#include <string.h>

/* The last millisecond of the year 9999. */
#define TIME_MAX_MS INT64_C(253402300799999)

enum tg_reason edge_wire_board(const char *sale, const Tidegate__V1__Board *message,
                               struct edge_board *out_board)
{
    const uint64_t numbers[] = {
        message->generation,      message->term,          message->version,    message->watermark,
        message->present_at_open, message->index_at_open, message->pace_milli, message->waiting,
        message->remaining,       message->held,          message->index_end};
    enum tg_order order;
    if (strcmp(message->sale, sale) != 0 || !tg_order_parse(message->policy, &order) ||
        !tg_instance_valid(message->instance) ||
        !tg_counts_valid(numbers, sizeof(numbers) / sizeof(numbers[0])) ||
        (message->seed.len != 0 && message->seed.len != sizeof(out_board->view.seed))) {
        return TG_REASON_MALFORMED;
    }
    struct edge_board board = {.known = true,
                               .term = message->term,
                               .version = message->version,
                               .generation = message->generation,
                               .waiting = message->waiting,
                               .remaining = message->remaining,
                               .held = message->held,
                               .index_end = message->index_end,
                               .poll_seconds =
                                   message->poll_seconds < 60 ? message->poll_seconds : 60};
    memcpy(board.instance, message->instance, strlen(message->instance) + 1);
    board.view = (struct tg_board_view){.random = order != TG_ORDER_FIFO,
                                        .lottery = order == TG_ORDER_LOTTERY,
                                        .revealed = message->seed.len > 0,
                                        .watermark = message->watermark,
                                        .present_at_open = message->present_at_open,
                                        .index_at_open = message->index_at_open,
                                        .pace_milli = message->pace_milli};
    if (message->seed.len > 0) {
        memcpy(board.view.seed, message->seed.data, sizeof(board.view.seed));
    }
    *out_board = board;
    return TG_REASON_NONE;
}

enum tg_reason edge_wire_stock(const char *sale, const Tidegate__V1__Stock *message,
                               struct edge_stock *out_stock)
{
    if (strcmp(message->sale, sale) != 0 || message->n_items > TG_MAX_ITEMS_PER_SALE) {
        return TG_REASON_MALFORMED;
    }
    struct edge_stock stock = {.known = message->armed && message->n_items > 0,
                               .epoch = message->epoch};
    for (size_t i = 0; i < message->n_items; i++) {
        const Tidegate__V1__ItemStock *item = message->items[i];
        const uint64_t numbers[] = {item->initial, item->free, item->held, item->settled};
        if (!tg_counts_valid(numbers, 4) ||
            item->free + item->held + item->settled != item->initial) {
            return TG_REASON_MALFORMED;
        }
        stock.free += item->free;
        stock.held += item->held;
        stock.settled += item->settled;
    }
    *out_stock = stock;
    return TG_REASON_NONE;
}

/* The reason of a reply; false when nobody knows it. */
static bool take_reason(const char *code, enum tg_reason *out_reason)
{
    *out_reason = tg_reason_from_code(code);
    return *out_reason < TG_REASON_COUNT;
}

enum tg_reason edge_wire_lease(const Tidegate__V1__LeaseReply *reply, struct edge_grant *out_grant)
{
    if (!take_reason(reply->reason, &out_grant->reason)) {
        return TG_REASON_MALFORMED;
    }
    out_grant->generation = reply->generation;
    out_grant->first = reply->first;
    out_grant->count = reply->count;
    out_grant->opened = reply->opened;
    bool granted = out_grant->reason == TG_REASON_NONE;
    if (granted &&
        (reply->count == 0 || reply->count > TG_MAX_LEASE_INDEXES || reply->first > TG_COUNT_MAX)) {
        return TG_REASON_MALFORMED;
    }
    return TG_REASON_NONE;
}

static bool time_valid(int64_t ms)
{
    return ms > 0 && ms <= TIME_MAX_MS;
}

enum tg_reason edge_wire_pass(const Tidegate__V1__PassReply *reply,
                              struct edge_admitted *out_admitted)
{
    static const char characters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";
    if (!take_reason(reply->reason, &out_admitted->reason)) {
        return TG_REASON_MALFORMED;
    }
    out_admitted->pass = reply->pass;
    out_admitted->expires_at.ms = reply->expires_at_ms;
    out_admitted->watermark = reply->watermark;
    if (out_admitted->reason != TG_REASON_NONE) {
        return TG_REASON_NONE;
    }
    size_t length = strlen(reply->pass);
    if (length == 0 || length > TG_MAX_PASS_BYTES || strspn(reply->pass, characters) != length ||
        !time_valid(reply->expires_at_ms)) {
        return TG_REASON_MALFORMED;
    }
    return TG_REASON_NONE;
}

static bool take_units(size_t count, Tidegate__V1__UnitRef **units, struct edge_units *out_units)
{
    if (count > TG_MAX_UNITS_PER_HOLD) {
        return false;
    }
    out_units->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        if (units[i]->item >= TG_MAX_ITEMS_PER_SALE || units[i]->unit >= TG_MAX_UNITS_PER_ITEM) {
            return false;
        }
        out_units->units[i].item = units[i]->item;
        out_units->units[i].unit = units[i]->unit;
    }
    return true;
}

static bool reservation_valid(const char *id)
{
    return tg_reservation_id_valid(id, strlen(id));
}

enum tg_reason edge_wire_hold(const Tidegate__V1__HoldReply *reply, struct edge_held *out_held)
{
    if (!take_reason(reply->reason, &out_held->reason) ||
        !take_units(reply->n_units, reply->units, &out_held->units)) {
        return TG_REASON_MALFORMED;
    }
    out_held->reservation = reservation_valid(reply->reservation_id) ? reply->reservation_id : "";
    out_held->expires_at.ms = reply->expires_at_ms;
    out_held->replayed = reply->replayed;
    out_held->final = reply->final;
    out_held->retry_after_ms =
        reply->retry_after_ms > 0 && reply->retry_after_ms < 86400000 ? reply->retry_after_ms : 0;
    bool held = out_held->reason == TG_REASON_NONE;
    if (held && (out_held->reservation[0] == '\0' || reply->n_units == 0 ||
                 !time_valid(reply->expires_at_ms))) {
        return TG_REASON_MALFORMED;
    }
    return TG_REASON_NONE;
}

static const char *state_name(Tidegate__V1__ReservationState state)
{
    switch (state) {
    case TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_PENDING:
        return "pending";
    case TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_CONFIRMED:
        return "confirmed";
    case TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_EXPIRED:
        return "expired";
    case TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_CANCELLED:
        return "cancelled";
    case TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_UNSPECIFIED:
    case _TIDEGATE__V1__RESERVATION_STATE_IS_INT_SIZE:
        break;
    }
    return NULL;
}

/* Ids of orders and payments: printable, as long as a column. */
static bool id_valid(const char *id)
{
    size_t length = strlen(id);
    return length <= TG_MAX_PAYMENT_ID_BYTES && tg_utf8_valid((const uint8_t *)id, length);
}

enum tg_reason edge_wire_reservation(const Tidegate__V1__ReservationReply *reply,
                                     struct edge_record *out_record)
{
    if (!take_reason(reply->reason, &out_record->reason) ||
        !take_units(reply->n_units, reply->units, &out_record->units)) {
        return TG_REASON_MALFORMED;
    }
    out_record->reservation = reply->reservation_id;
    out_record->sale = reply->sale;
    out_record->state = state_name(reply->state);
    out_record->order = reply->order_id;
    out_record->payment = reply->payment_id;
    out_record->expires_at.ms = reply->expires_at_ms;
    out_record->replayed = reply->replayed;
    if (out_record->reason != TG_REASON_NONE) {
        return TG_REASON_NONE;
    }
    bool whole = out_record->state != NULL && reservation_valid(reply->reservation_id) &&
                 tg_sale_name_valid(reply->sale, strlen(reply->sale)) &&
                 time_valid(reply->expires_at_ms) && id_valid(reply->order_id) &&
                 id_valid(reply->payment_id);
    return whole ? TG_REASON_NONE : TG_REASON_MALFORMED;
}
