/* SPDX-License-Identifier: Apache-2.0
 * What the edge takes from the bus: whatever it accepts is within the bounds its answers rely on,
 * and a reply that says "done" without saying what is never accepted as done. */
#include "tests/fuzz/fuzz_message.h"

#include "services/edge/wire.h"

#define NUMBER_MAX (UINT64_C(1) << 53)
#define TIME_MAX_MS INT64_C(253402300799999)

static const char sale[] = "sale";

static bool time_valid(struct tg_wall wall)
{
    return wall.ms > 0 && wall.ms <= TIME_MAX_MS;
}

static void check_board(const ProtobufCMessage *message)
{
    struct edge_board board;
    if (edge_wire_board(sale, (const Tidegate__V1__Board *)message, &board) != TG_REASON_NONE) {
        return;
    }
    HOLDS(board.known && board.poll_seconds <= 60);
    HOLDS(strnlen(board.instance, sizeof(board.instance)) <= 32 && board.instance[0] != '\0');
    HOLDS(board.term <= NUMBER_MAX && board.version <= NUMBER_MAX);
    HOLDS(board.generation <= NUMBER_MAX && board.view.watermark <= NUMBER_MAX);
    HOLDS(board.view.present_at_open <= NUMBER_MAX && board.view.index_at_open <= NUMBER_MAX);
    HOLDS(board.view.pace_milli <= NUMBER_MAX && board.waiting <= NUMBER_MAX);
    HOLDS(board.remaining <= NUMBER_MAX && board.held <= NUMBER_MAX);
}

static void check_stock(const ProtobufCMessage *message)
{
    const Tidegate__V1__Stock *stock = (const Tidegate__V1__Stock *)message;
    struct edge_stock taken;
    if (edge_wire_stock(sale, stock, &taken) == TG_REASON_NONE) {
        uint64_t initial = 0;
        for (size_t i = 0; i < stock->n_items; i++) {
            initial += stock->items[i]->initial;
        }
        HOLDS(stock->n_items <= TG_MAX_ITEMS_PER_SALE);
        HOLDS(taken.free + taken.held + taken.settled == initial);
        HOLDS(!taken.known || (stock->armed && stock->n_items > 0));
    }
}

static void check_lease(const ProtobufCMessage *message)
{
    struct edge_grant grant;
    if (edge_wire_lease((const Tidegate__V1__LeaseReply *)message, &grant) == TG_REASON_NONE) {
        HOLDS(grant.reason < TG_REASON_COUNT);
        HOLDS(grant.reason != TG_REASON_NONE ||
              (grant.count >= 1 && grant.count <= TG_MAX_LEASE_INDEXES &&
               grant.first + grant.count > grant.first));
    }
}

static void check_pass(const ProtobufCMessage *message)
{
    struct edge_admitted admitted;
    if (edge_wire_pass((const Tidegate__V1__PassReply *)message, &admitted) != TG_REASON_NONE) {
        return;
    }
    HOLDS(admitted.reason < TG_REASON_COUNT);
    if (admitted.reason == TG_REASON_NONE) {
        size_t length = strlen(admitted.pass);
        HOLDS(length >= 1 && length <= TG_MAX_PASS_BYTES && time_valid(admitted.expires_at));
        HOLDS(strspn(admitted.pass, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                    "0123456789-_.") == length);
    }
}

static void check_units(const struct edge_units *units)
{
    HOLDS(units->count <= TG_MAX_UNITS_PER_HOLD);
    for (uint32_t i = 0; i < units->count; i++) {
        HOLDS(units->units[i].item < TG_MAX_ITEMS_PER_SALE);
        HOLDS(units->units[i].unit < TG_MAX_UNITS_PER_ITEM);
    }
}

static void check_hold(const ProtobufCMessage *message)
{
    struct edge_held held;
    if (edge_wire_hold((const Tidegate__V1__HoldReply *)message, &held) != TG_REASON_NONE) {
        return;
    }
    size_t length = strlen(held.reservation);
    HOLDS(held.reason < TG_REASON_COUNT);
    HOLDS(length == 0 || tg_reservation_id_valid(held.reservation, length));
    HOLDS(held.retry_after_ms >= 0 && held.retry_after_ms < 86400000);
    check_units(&held.units);
    HOLDS(held.reason != TG_REASON_NONE ||
          (length > 0 && held.units.count > 0 && time_valid(held.expires_at)));
}

static void check_reservation(const ProtobufCMessage *message)
{
    struct edge_record record;
    if (edge_wire_reservation((const Tidegate__V1__ReservationReply *)message, &record) !=
        TG_REASON_NONE) {
        return;
    }
    HOLDS(record.reason < TG_REASON_COUNT);
    check_units(&record.units);
    if (record.reason == TG_REASON_NONE) {
        HOLDS(tg_reservation_id_valid(record.reservation, strlen(record.reservation)));
        HOLDS(tg_sale_name_valid(record.sale, strlen(record.sale)));
        HOLDS(record.state != NULL && time_valid(record.expires_at));
        HOLDS(strlen(record.order) <= TG_MAX_PAYMENT_ID_BYTES);
        HOLDS(tg_utf8_valid((const uint8_t *)record.payment, strlen(record.payment)));
        HOLDS(tg_utf8_valid((const uint8_t *)record.order, strlen(record.order)));
    }
}

static const struct fuzz_message kinds[] = {
    FUZZ_MESSAGE(board, check_board),       FUZZ_MESSAGE(stock, check_stock),
    FUZZ_MESSAGE(lease_reply, check_lease), FUZZ_MESSAGE(pass_reply, check_pass),
    FUZZ_MESSAGE(hold_reply, check_hold),   FUZZ_MESSAGE(reservation_reply, check_reservation),
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return fuzz_message_run(kinds, COUNT_OF(kinds), bytes, size);
}
