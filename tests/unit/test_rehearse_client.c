/* SPDX-License-Identifier: Apache-2.0
 * The pooled client against a real server on the same loop. */
#include "tools/rehearse/client.h"

#include "lib/io/http.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { REPLIES_MAX = 4096, DEADLINE_MS = 10000 };

static struct {
    uv_loop_t loop;
    uv_timer_t deadline;
    struct tg_http_server *server;
    struct rehearse_client *client;
    size_t requests; /* the server saw */
    size_t most_connections;
    size_t replies;
    size_t expected; /* then the loop stops */
    struct rehearse_reply last;
    char last_body[64];
    unsigned told[REPLIES_MAX]; /* by buyer */
    size_t ask_again;           /* from inside a reply: how many more */
} world;

static void handle(void *context, struct tg_http_exchange *exchange)
{
    const char *path = tg_http_path(exchange);
    size_t open = tg_http_open_connections(world.server);
    world.requests++;
    world.most_connections = open > world.most_connections ? open : world.most_connections;
    struct tg_http_answer answer = {.status = 200, .body = path, .body_length = strlen(path)};
    if (strncmp(path, "/busy", 5) == 0) {
        answer.status = 503;
        answer.headers = "Retry-After: 7\r\n";
    } else if (strncmp(path, "/again", 6) == 0) {
        answer.status = 201;
        answer.headers = "Idempotent-Replayed: true\r\nRetry-Afters: 9\r\n";
    }
    tg_http_answer(exchange, &answer);
}

static size_t write_request(void *context, const struct rehearse_request *request,
                            char out_text[REHEARSE_REQUEST_BYTES])
{
    static const char *const paths[] = {"/plain", "/busy", "/again"};
    int length = snprintf(out_text, REHEARSE_REQUEST_BYTES, "GET %s/%u HTTP/1.1\r\nHost: x\r\n\r\n",
                          paths[request->ask], request->buyer);
    return (size_t)length;
}

static void on_reply(void *context, const struct rehearse_reply *reply)
{
    world.last = *reply;
    snprintf(world.last_body, sizeof(world.last_body), "%s", reply->body);
    world.told[reply->request.buyer]++;
    world.replies++;
    if (world.ask_again > 0) {
        world.ask_again--;
        const struct rehearse_request request = {.buyer = reply->request.buyer + 1};
        rehearse_client_ask(world.client, &request);
    }
    if (world.replies == world.expected) {
        uv_stop(&world.loop);
    }
}

static void on_deadline(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static void open_client(uint32_t connections)
{
    struct sockaddr_storage edge = {0};
    struct sockaddr_in *address = (struct sockaddr_in *)&edge;
    address->sin_family = AF_INET;
    address->sin_port = htons(tg_http_port(world.server));
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const struct rehearse_client_spec spec = {.loop = &world.loop,
                                              .edges = &edge,
                                              .edge_count = 1,
                                              .connections = connections,
                                              .write = write_request,
                                              .reply = on_reply};
    assert_int_equal(rehearse_client_open(&spec, &world.client), 0);
}

static int set_up(void **state)
{
    memset(&world, 0, sizeof(world));
    if (uv_loop_init(&world.loop) != 0) {
        return -1;
    }
    uv_timer_init(&world.loop, &world.deadline);
    uv_timer_start(&world.deadline, on_deadline, DEADLINE_MS, 0);
    const struct tg_http_spec spec = {
        .host = "127.0.0.1", .connections_max = 256, .handler = handle};
    return tg_http_listen(&world.loop, &spec, &world.server);
}

static int tear_down(void **state)
{
    world.client = rehearse_client_free(world.client);
    world.server = tg_http_free(world.server);
    uv_close((uv_handle_t *)&world.deadline, NULL);
    uv_run(&world.loop, UV_RUN_DEFAULT);
    return uv_loop_close(&world.loop);
}

/* Runs until `expected` replies came; fails when they don't. */
static void run_until(size_t expected)
{
    world.expected = expected;
    uv_run(&world.loop, UV_RUN_DEFAULT);
    assert_int_equal(world.replies, expected);
}

static void every_request_has_one_reply_over_few_connections(void **state)
{
    open_client(8);
    for (uint32_t i = 0; i < 1000; i++) {
        const struct rehearse_request request = {.buyer = i};
        rehearse_client_ask(world.client, &request);
    }
    run_until(1000);
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(world.told[i], 1);
    }
    struct rehearse_client_counts counts;
    rehearse_client_counts(world.client, &counts);
    assert_int_equal(world.requests, 1000);
    assert_in_range(world.most_connections, 1, 8);
    assert_int_equal(counts.connects, counts.most_connections); /* kept alive */
    assert_int_equal(counts.answered, 1000);
    assert_int_equal(counts.queued, 0);
    assert_in_range(counts.most_queued, 900, 1000);
}

static void answers_carry_status_headers_and_body(void **state)
{
    open_client(1);
    struct rehearse_request request = {.buyer = 1, .ask = 1, .attempt = 3};
    rehearse_client_ask(world.client, &request);
    run_until(1);
    assert_int_equal(world.last.status, 503);
    assert_int_equal(world.last.retry_after_s, 7);
    assert_false(world.last.replayed);
    assert_int_equal(world.last.request.attempt, 3);
    assert_string_equal(world.last_body, "/busy/1");
    assert_true(world.last.answered_us >= world.last.sent_us);
    assert_true(world.last.sent_us >= world.last.request.asked_us);
    request.ask = 2;
    rehearse_client_ask(world.client, &request);
    run_until(2);
    assert_int_equal(world.last.status, 201);
    assert_int_equal(world.last.retry_after_s, 0); /* nothing is left of the answer before */
    assert_true(world.last.replayed);
}

static void a_dropped_request_reaches_the_server_unanswered(void **state)
{
    open_client(2);
    const struct rehearse_request drop = {.buyer = 5, .drop = true};
    rehearse_client_ask(world.client, &drop);
    run_until(1);
    assert_int_equal(world.last.status, 0);
    struct rehearse_client_counts counts;
    rehearse_client_counts(world.client, &counts);
    assert_int_equal(counts.dropped, 1);
    assert_int_equal(counts.unanswered, 0);
    const struct rehearse_request plain = {.buyer = 6};
    rehearse_client_ask(world.client, &plain);
    run_until(2);
    assert_int_equal(world.last.status, 200);
    assert_int_equal(world.requests, 2); /* the dropped one was heard */
}

static void a_reply_may_ask_the_next_one(void **state)
{
    open_client(1);
    world.ask_again = 500;
    const struct rehearse_request request = {.buyer = 0};
    rehearse_client_ask(world.client, &request);
    run_until(501);
    struct rehearse_client_counts counts;
    rehearse_client_counts(world.client, &counts);
    assert_int_equal(counts.connects, 1);
}

static void nobody_there_is_no_answer(void **state)
{
    open_client(4);
    tg_http_drain(world.server); /* stops listening */
    uv_run(&world.loop, UV_RUN_NOWAIT);
    for (uint32_t i = 0; i < 20; i++) {
        const struct rehearse_request request = {.buyer = i};
        rehearse_client_ask(world.client, &request);
    }
    run_until(20);
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(world.told[i], 1);
    }
    assert_int_equal(world.last.status, 0);
}

static void bounds_are_checked(void **state)
{
    struct rehearse_client *client = NULL;
    struct sockaddr_storage edge = {0};
    struct rehearse_client_spec spec = {.loop = &world.loop, .edges = &edge, .edge_count = 1};
    assert_int_equal(rehearse_client_open(&spec, &client), TG_ERR_RANGE);
    spec.connections = REHEARSE_CONNECTIONS_MAX + 1;
    assert_int_equal(rehearse_client_open(&spec, &client), TG_ERR_RANGE);
    spec.connections = 1;
    spec.edge_count = 0;
    assert_int_equal(rehearse_client_open(&spec, &client), TG_ERR_RANGE);
}

#define CLIENT_TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CLIENT_TEST(every_request_has_one_reply_over_few_connections),
        CLIENT_TEST(answers_carry_status_headers_and_body),
        CLIENT_TEST(a_dropped_request_reaches_the_server_unanswered),
        CLIENT_TEST(a_reply_may_ask_the_next_one),
        CLIENT_TEST(nobody_there_is_no_answer),
        CLIENT_TEST(bounds_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
