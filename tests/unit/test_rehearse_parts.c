/* SPDX-License-Identifier: Apache-2.0
 * What the crowd is made of: the wheel, kept tickets, user ids, requests as text, answers read. */
#include "tools/rehearse/crowd.h"

#include "lib/pure/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

enum { SLEEPERS = 5000 };

struct night {
    struct rehearse_wheel *wheel;
    uint32_t woken[SLEEPERS]; /* tick */
    uint32_t count;
};

static void note(void *context, const struct rehearse_sleeper *due, uint32_t count)
{
    struct night *night = context;
    assert_in_range(count, 1, REHEARSE_BED_SLEEPERS);
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(night->woken[due[i].buyer], 0);
        assert_int_equal(due[i].due, night->wheel->now);
        night->woken[due[i].buyer] = due[i].due;
    }
    night->count += count;
}

static void everybody_is_woken_once_and_in_time(void **state)
{
    struct rehearse_wheel *wheel = calloc(1, sizeof(*wheel));
    struct night night = {.wheel = wheel};
    static uint32_t wanted[SLEEPERS];
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        wanted[i] = i * 29 % 97000; /* over two rounds of the wheel */
        assert_true(rehearse_wheel_add(wheel, i, wanted[i]) > 0);
    }
    for (uint32_t tick = 0; tick < 10000; tick++) {
        rehearse_wheel_turn(wheel, note, &night);
    }
    assert_int_equal(night.count, SLEEPERS);
    for (uint32_t i = 0; i < SLEEPERS; i++) {
        uint32_t woken_ms = night.woken[i] * REHEARSE_TICK_MS;
        assert_in_range(woken_ms, wanted[i] + 1, wanted[i] + REHEARSE_TICK_MS);
    }
    rehearse_wheel_clear(wheel);
    free(wheel);
}

static void tickets_are_kept_apart(void **state)
{
    enum { TICKETS = 20000 };
    static uint32_t kept[TICKETS];
    struct rehearse_tickets tickets = {0};
    char token[256];
    char entrant[32];
    for (uint32_t i = 0; i < TICKETS; i++) { /* several chunks */
        snprintf(token, sizeof(token), "token-%0*u", (int)(i % 200), i);
        snprintf(entrant, sizeof(entrant), "entrant-%u", i);
        kept[i] = rehearse_tickets_keep(&tickets, token, entrant);
        assert_int_not_equal(kept[i], 0);
    }
    for (uint32_t i = 0; i < TICKETS; i++) {
        snprintf(token, sizeof(token), "token-%0*u", (int)(i % 200), i);
        snprintf(entrant, sizeof(entrant), "entrant-%u", i);
        assert_string_equal(rehearse_tickets_token(&tickets, kept[i]), token);
        assert_string_equal(rehearse_tickets_entrant(&tickets, kept[i]), entrant);
    }
    assert_true(tickets.chunk_count > 1);
    rehearse_tickets_clear(&tickets);
}

static void a_user_id_names_its_buyer_and_run(void **state)
{
    static const uint32_t numbers[] = {0, 7, 1999999};
    char user[64];
    for (size_t i = 0; i < 3; i++) {
        rehearse_user("0a1b2c3d", numbers[i], user);
        assert_int_equal(rehearse_user_number("0a1b2c3d", user, strlen(user)), numbers[i]);
        assert_int_equal(rehearse_user_number("ffffffff", user, strlen(user)), UINT32_MAX);
        assert_int_equal(rehearse_user_number("0a1b2c3d", user, strlen(user) - 1), UINT32_MAX);
    }
    assert_int_equal(rehearse_user_number("0a1b2c3d", "somebody-else-altogether", 24), UINT32_MAX);
    assert_int_equal(rehearse_user_number("0a1b2c3d", "", 0), UINT32_MAX);
}

static void requests_say_what_the_contract_wants(void **state)
{
    static struct rehearse_crowd crowd;
    static struct rehearse_person people[1];
    static struct rehearse_options options = {.host = "edge:8080",
                                              .service_credential = "shop-secret"};
    static struct rehearse_sale sale = {
        .name = "sku_991",
        .item_count = 1,
        .items = {{.sku = "tea", .price_minor = 4900, .currency = "EUR"}}};
    struct rehearse_session *session = calloc(1, sizeof(*session) + 16);
    static char text[REHEARSE_REQUEST_BYTES];
    snprintf(session->reservation, sizeof(session->reservation), "res_%s",
             "00000000000000000000000001");
    memcpy(session->pass, "the-pass", 9);
    people[0].session = session;
    people[0].ticket = rehearse_tickets_keep(&crowd.tickets, "the-ticket", "E");
    crowd.options = &options;
    crowd.sale = &sale;
    crowd.people = people;
    memcpy(crowd.tag, "0a1b2c3d", 9);
    struct rehearse_request request = {.ask = REHEARSE_ASK_BOARD};
    size_t length = rehearse_crowd_write(&crowd, &request, text);
    assert_string_equal(text, "GET /sale/sku_991/board HTTP/1.1\r\nHost: edge:8080\r\n\r\n");
    assert_int_equal(length, strlen(text));
    request.ask = REHEARSE_ASK_STATUS;
    rehearse_crowd_write(&crowd, &request, text);
    assert_non_null(strstr(text, "\r\nAuthorization: Bearer eyJ"));
    assert_non_null(strstr(text, "\r\nX-Ticket: the-ticket\r\n"));
    request.ask = REHEARSE_ASK_RESERVE;
    request.attempt = 2;
    rehearse_crowd_write(&crowd, &request, text);
    assert_non_null(strstr(text, "POST /sale/sku_991/reserve HTTP/1.1\r\n"));
    assert_non_null(strstr(text, "\r\nX-Admission-Token: the-pass\r\nIdempotency-Key: "
                                 "k-0a1b2c3d-0-2\r\nContent-Length: 0\r\n\r\n"));
    request.ask = REHEARSE_ASK_CONFIRM;
    rehearse_crowd_write(&crowd, &request, text);
    assert_non_null(
        strstr(text, "POST /reservations/res_00000000000000000000000001/confirm HTTP/1.1\r\n"));
    assert_non_null(strstr(text, "\r\nAuthorization: Bearer shop-secret\r\n"));
    assert_non_null(strstr(
        text, "\r\n\r\n{\"paymentId\":\"pay-0a1b2c3d-0-2\",\"amount\":4900,\"currency\":\"EUR\"}"));
    sale.item_count = 2; /* then the item is named */
    request.ask = REHEARSE_ASK_RESERVE;
    rehearse_crowd_write(&crowd, &request, text);
    assert_non_null(strstr(text, "{\"items\":[{\"sku\":\"tea\",\"quantity\":1}]}"));
    rehearse_tickets_clear(&crowd.tickets);
    free(session);
}

static struct rehearse_answer read_answer(enum rehearse_ask ask, int status, const char *body)
{
    const struct rehearse_reply reply = {.request = {.ask = (uint8_t)ask},
                                         .status = status,
                                         .body = body,
                                         .body_length = strlen(body),
                                         .retry_after_s = 2};
    struct rehearse_answer answer;
    struct rehearse_details details;
    rehearse_read_answer(&reply, &answer, &details);
    rehearse_details_free(&details);
    return answer;
}

static void answers_are_understood(void **state)
{
    struct rehearse_answer answer = read_answer(
        REHEARSE_ASK_TICKET, 200,
        "{\"token\":\"t\",\"entrant\":\"E\",\"index\":42,\"early\":true,\"state\":\"scheduled\"}");
    assert_int_equal(answer.heard, REHEARSE_HEARD_DONE);
    assert_int_equal(answer.index, 42);
    assert_true(answer.early);
    answer = read_answer(REHEARSE_ASK_TICKET, 200, "{\"state\":\"sold_out\"}");
    assert_int_equal(answer.said, REHEARSE_SAID_SOLD_OUT);
    answer = read_answer(REHEARSE_ASK_STATUS, 200,
                         "{\"state\":\"waiting\",\"position\":3,\"pollSeconds\":4}");
    assert_int_equal(answer.said, REHEARSE_SAID_WAITING);
    assert_int_equal(answer.wait_ms, 4000);
    answer = read_answer(REHEARSE_ASK_STATUS, 200,
                         "{\"state\":\"admitted\",\"admissionToken\":\"p\",\"expiresIn\":90}");
    assert_int_equal(answer.said, REHEARSE_SAID_ADMITTED);
    answer = read_answer(REHEARSE_ASK_RESERVE, 201,
                         "{\"reservationId\":\"res_00000000000000000000000001\",\"units\":[{"
                         "\"sku\":\"a\",\"unit\":7}]}");
    assert_int_equal(answer.heard, REHEARSE_HEARD_DONE);
    answer = read_answer(REHEARSE_ASK_RESERVE, 409,
                         "{\"error\":{\"code\":\"sold_out\"},\"final\":true}");
    assert_int_equal(answer.heard, REHEARSE_HEARD_REFUSED);
    assert_int_equal(answer.reason, TG_REASON_SOLD_OUT);
    assert_true(answer.final);
    assert_int_equal(answer.wait_ms, 2000);
    answer = read_answer(REHEARSE_ASK_CONFIRM, 200, "{\"orderId\":\"ord_1\"}");
    assert_int_equal(answer.heard, REHEARSE_HEARD_DONE);
    answer = read_answer(REHEARSE_ASK_CONFIRM, 409, "{\"error\":{\"code\":\"never_heard_of\"}}");
    assert_int_equal(answer.reason, TG_REASON_COUNT);
}

static void what_cannot_be_read_is_nothing(void **state)
{
    static const struct {
        enum rehearse_ask ask;
        int status;
        const char *body;
    } rows[] = {
        {REHEARSE_ASK_TICKET, 0, ""},
        {REHEARSE_ASK_TICKET, 200, ""},
        {REHEARSE_ASK_TICKET, 200, "[]"},
        {REHEARSE_ASK_TICKET, 200, "{\"token\":\"t\"}"},
        {REHEARSE_ASK_STATUS, 200, "{\"state\":\"admitted\"}"},
        {REHEARSE_ASK_STATUS, 200, "{\"state\":\"dancing\"}"},
        {REHEARSE_ASK_RESERVE, 201, "{\"reservationId\":\"res_x\"}"},
        {REHEARSE_ASK_RESERVE, 201, "{\"reservationId\":7}"},
        {REHEARSE_ASK_CONFIRM, 200, "{\"orderId\":null}"},
        {REHEARSE_ASK_RESERVE, 502, "<html>bad gateway</html>"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(read_answer(rows[i].ask, rows[i].status, rows[i].body).heard,
                         REHEARSE_HEARD_NOTHING);
    }
}

static void a_board_is_read(void **state)
{
    static const char body[] =
        "{\"state\":\"open\",\"policy\":\"fifo\",\"opensAt\":\"2026-12-01T10:00:00.000Z\","
        "\"watermark\":1200,\"presentAtOpen\":0,\"indexAtOpen\":0,\"seed\":null,"
        "\"pacePerSecond\":1000.5,\"waiting\":9,\"remaining\":7,\"held\":3,\"pollSeconds\":2,"
        "\"notice\":null,\"term\":1,\"version\":5,\"now\":\"2026-12-01T10:00:01.250Z\"}";
    struct rehearse_reply reply = {.status = 200, .body = body, .body_length = sizeof(body) - 1};
    struct rehearse_board board;
    struct tg_wall made;
    assert_true(rehearse_read_board(&reply, &board, &made));
    assert_int_equal(board.phase, REHEARSE_PHASE_OPEN);
    assert_int_equal(board.view.watermark, 1200);
    assert_int_equal(board.view.pace_milli, 1000500);
    assert_false(board.view.random);
    assert_int_equal(board.remaining, 7);
    assert_int_equal(board.held, 3);
    assert_int_equal(made.ms % 100000, 1250);
    reply.status = 503;
    assert_false(rehearse_read_board(&reply, &board, &made));
    reply.status = 200;
    reply.body_length--;
    assert_false(rehearse_read_board(&reply, &board, &made));
}

static int set_up(void **state)
{
    return sodium_init() < 0 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everybody_is_woken_once_and_in_time),
        cmocka_unit_test(tickets_are_kept_apart),
        cmocka_unit_test(a_user_id_names_its_buyer_and_run),
        cmocka_unit_test(requests_say_what_the_contract_wants),
        cmocka_unit_test(answers_are_understood),
        cmocka_unit_test(what_cannot_be_read_is_nothing),
        cmocka_unit_test(a_board_is_read),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
