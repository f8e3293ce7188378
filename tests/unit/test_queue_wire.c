/* SPDX-License-Identifier: Apache-2.0
 * What the queue takes from the bus, and what it does not. */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/number.h"
#include "services/queue/wire.h"

#include <string.h>

#define SALE ((char *)"demo")
#define OTHER ((char *)"Demo")
#define LONG_NAME ((char *)"edge-0123456789-0123456789-0123456")

static const uint64_t beyond = TG_COUNT_MAX + 1;

static void a_lease_names_its_sale_its_edge_and_a_count_in_bounds(void **state)
{
    static const struct {
        char *sale, *edge;
        uint32_t count;
        enum tg_reason reason;
    } rows[] = {
        {(char *)"demo", (char *)"edge-1", 1, TG_REASON_NONE},
        {(char *)"demo", (char *)"edge-1", TG_MAX_LEASE_INDEXES, TG_REASON_NONE},
        {(char *)"demo", (char *)"edge-1", TG_MAX_LEASE_INDEXES + 1, TG_REASON_MALFORMED},
        {(char *)"demo", (char *)"edge-1", 0, TG_REASON_MALFORMED},
        {(char *)"demo", (char *)"", 1, TG_REASON_MALFORMED},
        {(char *)"demo", (char *)"Edge", 1, TG_REASON_MALFORMED},
        {(char *)"demo", (char *)"edge 1", 1, TG_REASON_MALFORMED},
        {(char *)"demo", (char *)"edge-0123456789-0123456789-01234", 1, TG_REASON_NONE},
        {(char *)"demo", (char *)"edge-0123456789-0123456789-012345", 1, TG_REASON_MALFORMED},
        {(char *)"Demo", (char *)"edge-1", 1, TG_REASON_MALFORMED},
        {(char *)"", (char *)"edge-1", 1, TG_REASON_MALFORMED},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        Tidegate__V1__LeaseRequest request = TIDEGATE__V1__LEASE_REQUEST__INIT;
        struct queue_event event;
        request.sale = rows[i].sale;
        request.edge = rows[i].edge;
        request.count = rows[i].count;
        assert_int_equal(queue_wire_lease("demo", &request, &event), rows[i].reason);
        if (rows[i].reason == TG_REASON_NONE) {
            assert_int_equal(event.kind, QUEUE_LEASE);
            assert_int_equal(event.lease.count, rows[i].count);
            assert_string_equal(event.lease.edge, rows[i].edge);
        }
    }
}

static void a_presence_is_read_whole_and_bounded(void **state)
{
    Tidegate__V1__Presence good = TIDEGATE__V1__PRESENCE__INIT;
    struct queue_event event;
    good.sale = SALE;
    good.edge = (char *)"edge-1";
    good.generation = 4;
    good.index_end = 10;
    good.tickets = 9;
    good.board_term = 3;
    good.board_watermark = 7;
    good.present_at_open = 5;
    good.index_at_open = 6;
    good.arrivals = 2;
    assert_int_equal(queue_wire_presence("demo", &good, &event), TG_REASON_NONE);
    assert_int_equal(event.presence.generation, 4);
    assert_int_equal(event.presence.index_end, 10);
    assert_int_equal(event.presence.tickets, 9);
    assert_int_equal(event.presence.board_term, 3);
    assert_int_equal(event.presence.board_watermark, 7);
    assert_int_equal(event.presence.present_at_open, 5);
    assert_int_equal(event.presence.index_at_open, 6);
    assert_int_equal(event.presence.arrivals, 2);

    uint64_t *numbers[] = {&good.index_end,       &good.tickets,         &good.board_term,
                           &good.board_watermark, &good.present_at_open, &good.index_at_open,
                           &good.arrivals};
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        uint64_t kept = *numbers[i];
        *numbers[i] = beyond;
        assert_int_equal(queue_wire_presence("demo", &good, &event), TG_REASON_MALFORMED);
        *numbers[i] = kept;
    }
    good.edge = LONG_NAME;
    assert_int_equal(queue_wire_presence("demo", &good, &event), TG_REASON_MALFORMED);
    good.edge = (char *)"edge-1";
    good.sale = OTHER;
    assert_int_equal(queue_wire_presence("demo", &good, &event), TG_REASON_MALFORMED);
}

static void a_board_of_a_peer_is_bounded(void **state)
{
    Tidegate__V1__Board board = TIDEGATE__V1__BOARD__INIT;
    struct queue_event event;
    board.sale = SALE;
    board.instance = (char *)"queue-2";
    board.generation = 1;
    board.term = 2;
    board.watermark = 3;
    board.index_end = 9;
    board.present_at_open = 4;
    board.index_at_open = 5;
    assert_int_equal(queue_wire_peer("demo", &board, &event), TG_REASON_NONE);
    assert_int_equal(event.kind, QUEUE_PEER);
    assert_int_equal(event.peer.term, 2);
    assert_int_equal(event.peer.watermark, 3);
    assert_int_equal(event.peer.index_end, 9);
    assert_int_equal(event.peer.present_at_open, 4);
    assert_int_equal(event.peer.index_at_open, 5);
    board.term = beyond;
    assert_int_equal(queue_wire_peer("demo", &board, &event), TG_REASON_MALFORMED);
    board.term = 2;
    board.instance = (char *)"";
    assert_int_equal(queue_wire_peer("demo", &board, &event), TG_REASON_MALFORMED);
}

static void a_pace_beyond_reason_is_refused(void **state)
{
    Tidegate__V1__Pace pace = TIDEGATE__V1__PACE__INIT;
    struct queue_event event;
    pace.sale = SALE;
    pace.term = 2;
    pace.pace_milli = 1000000;
    assert_int_equal(queue_wire_pace("demo", &pace, &event), TG_REASON_NONE);
    assert_int_equal(event.pace.pace_milli, 1000000);
    pace.pace_milli = UINT64_C(1000000000001);
    assert_int_equal(queue_wire_pace("demo", &pace, &event), TG_REASON_MALFORMED);
    pace.pace_milli = 0;
    pace.sale = OTHER;
    assert_int_equal(queue_wire_pace("demo", &pace, &event), TG_REASON_MALFORMED);
}

static void stock_is_summed_over_items_and_unknown_until_armed(void **state)
{
    Tidegate__V1__ItemStock items[2] = {TIDEGATE__V1__ITEM_STOCK__INIT,
                                        TIDEGATE__V1__ITEM_STOCK__INIT};
    Tidegate__V1__ItemStock *list[TG_MAX_ITEMS_PER_SALE + 1] = {&items[0], &items[1]};
    Tidegate__V1__Stock stock = TIDEGATE__V1__STOCK__INIT;
    struct queue_event event;
    items[0].free = 3;
    items[0].held = 1;
    items[1].free = 4;
    items[1].held = 2;
    stock.sale = SALE;
    stock.epoch = 5;
    stock.armed = true;
    stock.gate_now_ms = 77;
    stock.sequence = 99;
    stock.items = list;
    stock.n_items = 2;
    assert_int_equal(queue_wire_stock("demo", &stock, &event), TG_REASON_NONE);
    assert_true(event.stock.known);
    assert_int_equal(event.stock.free, 7);
    assert_int_equal(event.stock.held, 3);
    assert_int_equal(event.stock.epoch, 5);
    assert_int_equal(event.stock.gate_now_ms, 77);
    assert_int_equal(event.stock.sequence, 99);
    stock.sequence = TG_COUNT_MAX + 1;
    assert_int_equal(queue_wire_stock("demo", &stock, &event), TG_REASON_MALFORMED);
    stock.sequence = TG_COUNT_MAX;
    stock.armed = false;
    assert_int_equal(queue_wire_stock("demo", &stock, &event), TG_REASON_NONE);
    assert_false(event.stock.known);
    stock.armed = true;
    stock.n_items = 0;
    assert_int_equal(queue_wire_stock("demo", &stock, &event), TG_REASON_NONE);
    assert_false(event.stock.known);
    stock.n_items = TG_MAX_ITEMS_PER_SALE + 1;
    assert_int_equal(queue_wire_stock("demo", &stock, &event), TG_REASON_MALFORMED);
    stock.n_items = 2;
    items[1].free = TG_MAX_UNITS_PER_ITEM + 1;
    assert_int_equal(queue_wire_stock("demo", &stock, &event), TG_REASON_MALFORMED);
}

static void a_board_carries_everything_the_core_says(void **state)
{
    const struct queue_board board = {.generation = 2,
                                      .term = 3,
                                      .version = 4,
                                      .phase = TG_PHASE_OPEN,
                                      .opens_at = {5},
                                      .watermark = 6,
                                      .present_at_open = 7,
                                      .index_at_open = 8,
                                      .pace_milli = 9,
                                      .waiting = 10,
                                      .remaining = 11,
                                      .held = 12,
                                      .index_end = 14,
                                      .poll_seconds = 13,
                                      .notice = TG_REASON_NOTICE_ALL_HELD};
    Tidegate__V1__Board message;
    queue_wire_board("demo", "queue-1", &board, (struct tg_wall){99}, &message);
    uint8_t packed[512];
    size_t length = tidegate__v1__board__pack(&message, packed);
    Tidegate__V1__Board *read = tidegate__v1__board__unpack(NULL, length, packed);
    assert_non_null(read);
    assert_string_equal(read->sale, "demo");
    assert_string_equal(read->instance, "queue-1");
    assert_string_equal(read->policy, "fifo");
    assert_string_equal(read->notice, "all_held");
    assert_int_equal(read->phase, TIDEGATE__V1__SALE_PHASE__SALE_PHASE_OPEN);
    assert_int_equal(read->generation + read->term * 100 + read->version * 10000, 40302);
    assert_int_equal(read->opens_at_ms, 5);
    assert_int_equal(read->now_ms, 99);
    assert_int_equal(read->watermark, 6);
    assert_int_equal(read->present_at_open, 7);
    assert_int_equal(read->index_at_open, 8);
    assert_int_equal(read->pace_milli, 9);
    assert_int_equal(read->waiting, 10);
    assert_int_equal(read->remaining, 11);
    assert_int_equal(read->held, 12);
    assert_int_equal(read->poll_seconds, 13);
    assert_int_equal(read->index_end, 14);
    assert_int_equal(read->seed.len, 0);
    tidegate__v1__board__free_unpacked(read, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_names_its_sale_its_edge_and_a_count_in_bounds),
        cmocka_unit_test(a_presence_is_read_whole_and_bounded),
        cmocka_unit_test(a_board_of_a_peer_is_bounded),
        cmocka_unit_test(a_pace_beyond_reason_is_refused),
        cmocka_unit_test(stock_is_summed_over_items_and_unknown_until_armed),
        cmocka_unit_test(a_board_carries_everything_the_core_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
