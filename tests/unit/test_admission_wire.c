/* SPDX-License-Identifier: Apache-2.0
 * What admission takes from the bus, and what it does not. */
#include "tests/unit/cmocka_tests.h"

#include "services/admission/wire.h"

#include <string.h>

#define SALE ((char *)"demo")

static enum tg_reason ask(char *sale, char *ticket, const char *user, size_t user_length)
{
    Tidegate__V1__PassRequest request = TIDEGATE__V1__PASS_REQUEST__INIT;
    struct admission_event event;
    request.sale = sale;
    request.ticket = ticket;
    request.user.data = (uint8_t *)user;
    request.user.len = user_length;
    return admission_wire_ask("demo", &request, &event);
}

static void a_request_needs_a_ticket_and_a_signed_in_buyer(void **state)
{
    char longest[TG_MAX_TICKET_BYTES + 2];
    char user[TG_MAX_USER_BYTES + 1];
    memset(longest, 'A', sizeof longest);
    memset(user, 'u', sizeof user);
    longest[TG_MAX_TICKET_BYTES + 1] = '\0';
    assert_int_equal(ask(SALE, longest, "ann", 3), TG_REASON_TICKET_INVALID);
    longest[TG_MAX_TICKET_BYTES] = '\0';
    assert_int_equal(ask(SALE, longest, "ann", 3), TG_REASON_NONE);
    assert_int_equal(ask(SALE, (char *)"", "ann", 3), TG_REASON_TICKET_REQUIRED);
    assert_int_equal(ask(SALE, (char *)"t", NULL, 0), TG_REASON_SIGN_IN_REQUIRED);
    assert_int_equal(ask(SALE, (char *)"t", user, TG_MAX_USER_BYTES), TG_REASON_NONE);
    assert_int_equal(ask(SALE, (char *)"t", user, TG_MAX_USER_BYTES + 1), TG_REASON_MALFORMED);
    assert_int_equal(ask(SALE, (char *)"t", "a\0b", 3), TG_REASON_MALFORMED);
    assert_int_equal(ask(SALE, (char *)"t", "\xff\xfe", 2), TG_REASON_MALFORMED);
    assert_int_equal(ask((char *)"other", (char *)"t", "ann", 3), TG_REASON_MALFORMED);
}

static void a_board_is_bounded(void **state)
{
    Tidegate__V1__Board board = TIDEGATE__V1__BOARD__INIT;
    struct admission_event event;
    board.sale = SALE;
    board.generation = 1;
    board.term = 2;
    board.watermark = 3;
    assert_int_equal(admission_wire_board("demo", &board, &event), TG_REASON_NONE);
    assert_int_equal(event.board.watermark, 3);
    board.watermark = (UINT64_C(1) << 53) + 1;
    assert_int_equal(admission_wire_board("demo", &board, &event), TG_REASON_MALFORMED);
    board.watermark = 3;
    board.sale = (char *)"other";
    assert_int_equal(admission_wire_board("demo", &board, &event), TG_REASON_MALFORMED);
}

static void a_peer_names_itself(void **state)
{
    Tidegate__V1__Pace pace = TIDEGATE__V1__PACE__INIT;
    struct admission_event event;
    pace.sale = SALE;
    pace.term = 4;
    assert_int_equal(admission_wire_peer("demo", &pace, &event), TG_REASON_MALFORMED);
    pace.instance = (char *)"admission-1";
    assert_int_equal(admission_wire_peer("demo", &pace, &event), TG_REASON_NONE);
    assert_int_equal(event.peer.term, 4);
    pace.ramp_permille = 1001;
    assert_int_equal(admission_wire_peer("demo", &pace, &event), TG_REASON_MALFORMED);
    pace.ramp_permille = 1000;
    pace.term = (UINT64_C(1) << 53) + 1;
    assert_int_equal(admission_wire_peer("demo", &pace, &event), TG_REASON_MALFORMED);
}

static void stock_is_known_only_from_an_armed_gate(void **state)
{
    Tidegate__V1__ItemStock item = TIDEGATE__V1__ITEM_STOCK__INIT;
    Tidegate__V1__ItemStock *items[] = {&item};
    Tidegate__V1__Stock stock = TIDEGATE__V1__STOCK__INIT;
    struct admission_event event;
    stock.sale = SALE;
    stock.armed = true;
    assert_int_equal(admission_wire_stock("demo", &stock, &event), TG_REASON_NONE);
    assert_false(event.stock.known);
    stock.items = items;
    stock.n_items = 1;
    assert_int_equal(admission_wire_stock("demo", &stock, &event), TG_REASON_NONE);
    assert_true(event.stock.known);
    stock.armed = false;
    assert_int_equal(admission_wire_stock("demo", &stock, &event), TG_REASON_NONE);
    assert_false(event.stock.known);
}

static void a_load_is_bounded(void **state)
{
    Tidegate__V1__Load load = TIDEGATE__V1__LOAD__INIT;
    struct admission_event event;
    load.sale = SALE;
    load.p99_us = 4000;
    load.requests = 9;
    load.in_flight = UINT32_MAX;
    assert_int_equal(admission_wire_load("demo", &load, ADMISSION_LEDGER, &event), TG_REASON_NONE);
    assert_int_equal(event.load.daemon, ADMISSION_LEDGER);
    assert_int_equal(event.load.p99_us, 4000);
    load.errors = UINT64_MAX;
    assert_int_equal(admission_wire_load("demo", &load, ADMISSION_LEDGER, &event),
                     TG_REASON_MALFORMED);
    load.errors = 0;
    load.p99_us = UINT64_MAX;
    assert_int_equal(admission_wire_load("demo", &load, ADMISSION_LEDGER, &event),
                     TG_REASON_MALFORMED);
}

static enum tg_reason signal_taken(const char *name, uint64_t limit_milli, int64_t valid_ms)
{
    Tidegate__V1__Signal signal = TIDEGATE__V1__SIGNAL__INIT;
    struct admission_event event;
    signal.sale = SALE;
    signal.name = (char *)name;
    signal.limit_milli = limit_milli;
    signal.valid_ms = valid_ms;
    enum tg_reason reason = admission_wire_signal("demo", &signal, &event);
    if (reason == TG_REASON_NONE) {
        assert_string_equal(event.signal.name, name);
    }
    return reason;
}

static void a_signal_has_a_name_a_limit_and_a_validity(void **state)
{
    assert_int_equal(signal_taken("disk_2", 1, 1000), TG_REASON_NONE);
    assert_int_equal(signal_taken("disk_2", 0, 1000), TG_REASON_MALFORMED);
    assert_int_equal(signal_taken("disk_2", 0, 0), TG_REASON_NONE);
    assert_int_equal(signal_taken("database_cpu", 0, 1000), TG_REASON_NONE);
    assert_int_equal(signal_taken("payment_errors", 0, 1000), TG_REASON_NONE);
    assert_int_equal(signal_taken("", 1, 1000), TG_REASON_MALFORMED);
    assert_int_equal(signal_taken("Disk", 1, 1000), TG_REASON_MALFORMED);
    assert_int_equal(signal_taken("a23456789012345678901234567890123", 1, 1000),
                     TG_REASON_MALFORMED);
    assert_int_equal(signal_taken("disk", 1, -1), TG_REASON_MALFORMED);
    assert_int_equal(signal_taken("disk", 1, ADMISSION_SIGNAL_VALID_MS_MAX + 1),
                     TG_REASON_MALFORMED);
    assert_int_equal(signal_taken("disk", UINT64_MAX, 1000), TG_REASON_MALFORMED);
}

static void the_pace_says_what_sets_it(void **state)
{
    static const struct {
        struct admission_pace pace;
        const char *limiting, *detail;
    } rows[] = {
        {{.limiting = ADMISSION_BY_STATE}, "state", ""},
        {{.limiting = ADMISSION_BY_RISING}, "rising", ""},
        {{.limiting = ADMISSION_BY_GATE, .value = 412000, .goal = 250000},
         "gate",
         "p99 412 ms, goal 250 ms"},
        {{.limiting = ADMISSION_BY_ERRORS, .value = 31, .goal = 10},
         "errors",
         "31 per mille, goal 10"},
        {{.limiting = ADMISSION_BY_IN_FLIGHT, .value = 1500, .goal = 1024},
         "in_flight",
         "1500, goal 1024"},
        {{.limiting = ADMISSION_BY_SIGNAL, .signal = "disk", .value = 91500, .goal = 85000},
         "signal",
         "disk is 91.500, limit 85.000"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct admission_pace pace = rows[i].pace;
        char detail[ADMISSION_DETAIL_BYTES];
        Tidegate__V1__Pace message;
        pace.term = 2;
        pace.pace_milli = 3;
        pace.base_milli = 4;
        pace.ramp_permille = 500;
        admission_wire_pace("demo", "admission-1", &pace, detail, &message);
        assert_string_equal(message.limiting, rows[i].limiting);
        assert_string_equal(message.detail, rows[i].detail);
        assert_int_equal(message.pace_milli, 3);
        assert_int_equal(message.base_milli, 4);
        assert_int_equal(message.ramp_permille, 500);
        assert_int_equal(message.term, 2);
        assert_string_equal(message.instance, "admission-1");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_needs_a_ticket_and_a_signed_in_buyer),
        cmocka_unit_test(a_board_is_bounded),
        cmocka_unit_test(a_peer_names_itself),
        cmocka_unit_test(stock_is_known_only_from_an_armed_gate),
        cmocka_unit_test(a_load_is_bounded),
        cmocka_unit_test(a_signal_has_a_name_a_limit_and_a_validity),
        cmocka_unit_test(the_pace_says_what_sets_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
