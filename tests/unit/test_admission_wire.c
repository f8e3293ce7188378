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

static void the_pace_names_its_signal(void **state)
{
    static const char *const names[] = {"start", "operator", "state", "stock"};
    for (int limiting = ADMISSION_BY_START; limiting <= ADMISSION_BY_STOCK; limiting++) {
        const struct admission_pace pace = {
            .term = 2, .pace_milli = 3, .limiting = (enum admission_limiting)limiting};
        Tidegate__V1__Pace message;
        admission_wire_pace("demo", "admission-1", &pace, &message);
        assert_string_equal(message.limiting, names[limiting]);
        assert_int_equal(message.pace_milli, 3);
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
        cmocka_unit_test(the_pace_names_its_signal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
