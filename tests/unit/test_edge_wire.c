/* SPDX-License-Identifier: Apache-2.0
 * Messages of the bus, in and out of their bounds; and the text written from them. */
#include "services/edge/wire.h"

#include "lib/io/http_problem.h"
#include "services/edge/page.h"
#include "services/edge/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ID "res_00000000000000000000000001"

static Tidegate__V1__Board a_board(void)
{
    Tidegate__V1__Board message = TIDEGATE__V1__BOARD__INIT;
    message.sale = (char *)"s";
    message.instance = (char *)"queue-1";
    message.policy = (char *)"fifo";
    message.generation = 3;
    message.term = 2;
    message.version = 9;
    message.watermark = 70;
    message.poll_seconds = 2;
    return message;
}

static void test_board(void **state)
{
    struct edge_board board = {.known = false};
    uint8_t seed[33] = {1, 2, 3};
    Tidegate__V1__Board message = a_board();
    assert_int_equal(edge_wire_board("s", &message, &board), TG_REASON_NONE);
    assert_true(board.known && !board.view.random && !board.view.revealed);
    assert_int_equal(board.view.watermark, 70);
    assert_int_equal(board.generation, 3);
    assert_string_equal(board.instance, "queue-1");
    message.seed = (ProtobufCBinaryData){.len = 32, .data = seed};
    assert_int_equal(edge_wire_board("s", &message, &board), TG_REASON_NONE);
    assert_true(board.view.revealed);
    message.seed.len = 33;
    assert_int_equal(edge_wire_board("s", &message, &board), TG_REASON_MALFORMED);
    message = a_board();
    assert_int_equal(edge_wire_board("t", &message, &board), TG_REASON_MALFORMED);
    message.instance = (char *)"Queue 1";
    assert_int_equal(edge_wire_board("s", &message, &board), TG_REASON_MALFORMED);
    message = a_board();
    message.watermark = UINT64_MAX;
    assert_int_equal(edge_wire_board("s", &message, &board), TG_REASON_MALFORMED);
}

static void test_stock(void **state)
{
    Tidegate__V1__ItemStock rows[2] = {TIDEGATE__V1__ITEM_STOCK__INIT,
                                       TIDEGATE__V1__ITEM_STOCK__INIT};
    Tidegate__V1__ItemStock *items[2] = {&rows[0], &rows[1]};
    Tidegate__V1__Stock message = TIDEGATE__V1__STOCK__INIT;
    struct edge_stock stock;
    rows[0].initial = 10;
    rows[0].free = 7;
    rows[0].held = 1;
    rows[0].settled = 2;
    rows[1].initial = rows[1].free = 5;
    message.sale = (char *)"s";
    message.armed = true;
    message.n_items = 2;
    message.items = items;
    assert_int_equal(edge_wire_stock("s", &message, &stock), TG_REASON_NONE);
    assert_true(stock.known);
    assert_int_equal(stock.free, 12);
    assert_int_equal(stock.held, 1);
    assert_int_equal(stock.settled, 2);
    rows[1].free = 4; /* a sum that is not right is not told to anybody */
    assert_int_equal(edge_wire_stock("s", &message, &stock), TG_REASON_MALFORMED);
    rows[1].free = 5;
    message.armed = false;
    assert_int_equal(edge_wire_stock("s", &message, &stock), TG_REASON_NONE);
    assert_false(stock.known);
    message.n_items = TG_MAX_ITEMS_PER_SALE + 1;
    assert_int_equal(edge_wire_stock("s", &message, &stock), TG_REASON_MALFORMED);
}

static void test_lease(void **state)
{
    Tidegate__V1__LeaseReply reply = TIDEGATE__V1__LEASE_REPLY__INIT;
    struct edge_grant grant;
    assert_int_equal(edge_wire_lease(&reply, &grant),
                     TG_REASON_MALFORMED); /* granted, and nothing */
    reply.count = 64;
    reply.first = 128;
    assert_int_equal(edge_wire_lease(&reply, &grant), TG_REASON_NONE);
    assert_int_equal(grant.first, 128);
    reply.count = TG_MAX_LEASE_INDEXES + 1;
    assert_int_equal(edge_wire_lease(&reply, &grant), TG_REASON_MALFORMED);
    reply.reason = (char *)"not_mine";
    assert_int_equal(edge_wire_lease(&reply, &grant), TG_REASON_NONE);
    assert_int_equal(grant.reason, TG_REASON_NOT_MINE);
    reply.reason = (char *)"because";
    assert_int_equal(edge_wire_lease(&reply, &grant), TG_REASON_MALFORMED);
}

static void test_pass(void **state)
{
    Tidegate__V1__PassReply reply = TIDEGATE__V1__PASS_REPLY__INIT;
    struct edge_admitted admitted;
    reply.expires_at_ms = 1000;
    reply.pass = (char *)"a.b-c_d";
    assert_int_equal(edge_wire_pass(&reply, &admitted), TG_REASON_NONE);
    assert_string_equal(admitted.pass, "a.b-c_d");
    static const char *const bad[] = {"", "a\"b", "a b", "a\\b", "\xc3\xa9", "a=b"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        reply.pass = (char *)bad[i];
        assert_int_equal(edge_wire_pass(&reply, &admitted), TG_REASON_MALFORMED);
    }
    char *longest = malloc(TG_MAX_PASS_BYTES + 2);
    assert_non_null(longest);
    memset(longest, 'x', TG_MAX_PASS_BYTES + 1);
    longest[TG_MAX_PASS_BYTES + 1] = '\0';
    reply.pass = longest;
    assert_int_equal(edge_wire_pass(&reply, &admitted), TG_REASON_MALFORMED);
    longest[TG_MAX_PASS_BYTES] = '\0';
    assert_int_equal(edge_wire_pass(&reply, &admitted), TG_REASON_NONE);
    free(longest);
    reply.reason = (char *)"waiting";
    reply.pass = (char *)"";
    assert_int_equal(edge_wire_pass(&reply, &admitted), TG_REASON_NONE);
    assert_int_equal(admitted.reason, TG_REASON_WAITING);
}

static void test_hold(void **state)
{
    Tidegate__V1__UnitRef unit = TIDEGATE__V1__UNIT_REF__INIT, *units[] = {&unit};
    Tidegate__V1__HoldReply reply = TIDEGATE__V1__HOLD_REPLY__INIT;
    struct edge_held held;
    reply.reservation_id = (char *)ID;
    reply.expires_at_ms = 5;
    assert_int_equal(edge_wire_hold(&reply, &held), TG_REASON_MALFORMED); /* held, and no unit */
    reply.n_units = 1;
    reply.units = units;
    assert_int_equal(edge_wire_hold(&reply, &held), TG_REASON_NONE);
    assert_string_equal(held.reservation, ID);
    unit.unit = TG_MAX_UNITS_PER_ITEM;
    assert_int_equal(edge_wire_hold(&reply, &held), TG_REASON_MALFORMED);
    unit.unit = 0;
    reply.expires_at_ms = -1;
    assert_int_equal(edge_wire_hold(&reply, &held), TG_REASON_MALFORMED);
    reply.expires_at_ms = 5;
    reply.reservation_id = (char *)"res_\"";
    assert_int_equal(edge_wire_hold(&reply, &held), TG_REASON_MALFORMED);
    reply.reason = (char *)"limit_reached";
    reply.retry_after_ms = INT64_MAX;
    assert_int_equal(edge_wire_hold(&reply, &held), TG_REASON_NONE);
    assert_string_equal(held.reservation, "");
    assert_int_equal(held.retry_after_ms, 0);
}

static void test_reservation(void **state)
{
    Tidegate__V1__ReservationReply reply = TIDEGATE__V1__RESERVATION_REPLY__INIT;
    struct edge_record record;
    reply.reservation_id = (char *)ID;
    reply.sale = (char *)"s";
    reply.expires_at_ms = 5;
    assert_int_equal(edge_wire_reservation(&reply, &record), TG_REASON_MALFORMED); /* no state */
    reply.state = TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_EXPIRED;
    assert_int_equal(edge_wire_reservation(&reply, &record), TG_REASON_NONE);
    assert_string_equal(record.state, "expired");
    reply.state = (Tidegate__V1__ReservationState)99;
    assert_int_equal(edge_wire_reservation(&reply, &record), TG_REASON_MALFORMED);
    reply.reason = (char *)"reservation_unknown";
    assert_int_equal(edge_wire_reservation(&reply, &record), TG_REASON_NONE);
    assert_int_equal(record.reason, TG_REASON_RESERVATION_UNKNOWN);
}

static void test_writer_never_outgrows_its_room(void **state)
{
    char text[8];
    struct edge_writer writer;
    edge_write_begin(&writer, text, sizeof(text));
    edge_write(&writer, "1234567");
    assert_true(edge_write_end(&writer));
    assert_string_equal(text, "1234567");
    edge_write(&writer, "8");
    assert_false(edge_write_end(&writer));
    edge_write(&writer, "");
    assert_false(edge_write_end(&writer)); /* once full, always full */
    assert_string_equal(text, "1234567");
}

static void test_writer_of_numbers_times_and_strings(void **state)
{
    char text[256];
    struct edge_writer writer;
    edge_write_begin(&writer, text, sizeof(text));
    static const uint64_t milli[] = {0, 1, 10, 100, 1000, 1500, 1234, 1000000};
    for (size_t i = 0; i < sizeof(milli) / sizeof(milli[0]); i++) {
        edge_write_milli(&writer, milli[i]);
        edge_write(&writer, " ");
    }
    edge_write_time(&writer, (struct tg_wall){.ms = 0});
    edge_write_time(&writer, (struct tg_wall){.ms = -1});
    edge_write_string(&writer, "a\"b\\c\n\x01\x7f");
    edge_write_html(&writer, "<&>\"'");
    assert_true(edge_write_end(&writer));
    assert_string_equal(text, "0 0.001 0.01 0.1 1 1.5 1.234 1000 \"1970-01-01T00:00:00.000Z\"null"
                              "\"a\\\"b\\\\c\\u000a\\u0001\\u007f\"&lt;&amp;&gt;&quot;&#39;");
}

static void test_escape_replaces_what_is_no_utf8_and_cuts_between_characters(void **state)
{
    char out[16];
    size_t length = tg_http_json_escape("a\xff", 2, out, sizeof(out));
    assert_int_equal(length, 2);
    assert_memory_equal(out, "a?", 2);
    length = tg_http_json_escape("\xc3\xa9\xc3\xa9", 4, out, 3);
    assert_int_equal(length, 2);
    assert_memory_equal(out, "\xc3\xa9", 2);
    assert_int_equal(tg_http_json_escape("ab\n", 3, out, 7), 2);
    assert_int_equal(tg_http_json_escape("abc", 3, out, 2), 2);
}

static void test_problem_says_the_code_twice(void **state)
{
    char text[TG_HTTP_PROBLEM_BYTES];
    size_t length = tg_http_problem(TG_REASON_SOLD_OUT, "a \"b\"", ",\"final\":true", text);
    text[length] = '\0';
    assert_string_equal(
        text, "{\"type\":\"/reasons#sold_out\",\"title\":\"Sold out\",\"status\":409,"
              "\"detail\":\"a \\\"b\\\"\",\"final\":true,\"error\":{\"code\":\"sold_out\"}}");
    for (int reason = 1; reason < TG_REASON_COUNT; reason++) {
        length = tg_http_problem((enum tg_reason)reason, NULL, "", text);
        assert_true(length > 0 && length < sizeof(text));
    }
}

static void test_templates(void **state)
{
    static const struct edge_page_value named[] = {{"sale", "a<b"}, {"empty", ""}};
    static const struct edge_page_values values = {.values = named, .count = 2};
    static const struct {
        const char *template, *text;
    } rows[] = {{"", ""},
                {"x", "x"},
                {"{{sale}}", "a&lt;b"},
                {"[{{sale}}][{{empty}}][{{nobody}}]", "[a&lt;b][][]"},
                {"{{sale", "{{sale"},
                {"{{{sale}}}", "}"},
                {"}}{{sale}}{{", "}}a&lt;b{{"}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *text;
        size_t length;
        assert_int_equal(edge_page_render(rows[i].template, &values, &text, &length), 0);
        assert_string_equal(text, rows[i].text);
        assert_int_equal(length, strlen(rows[i].text));
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_board),
        cmocka_unit_test(test_stock),
        cmocka_unit_test(test_lease),
        cmocka_unit_test(test_pass),
        cmocka_unit_test(test_hold),
        cmocka_unit_test(test_reservation),
        cmocka_unit_test(test_writer_never_outgrows_its_room),
        cmocka_unit_test(test_writer_of_numbers_times_and_strings),
        cmocka_unit_test(test_escape_replaces_what_is_no_utf8_and_cuts_between_characters),
        cmocka_unit_test(test_problem_says_the_code_twice),
        cmocka_unit_test(test_templates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
