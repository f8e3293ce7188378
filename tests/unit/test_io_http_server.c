/* SPDX-License-Identifier: Apache-2.0
 * The HTTP server over real sockets: limits in time and number, answers that come later, draining.
 * Client and server share one loop; nothing sleeps, everything is polled with a deadline. */
#include "lib/io/http.h"
#include "lib/io/http_server.h"
#include "lib/io/now.h"
#include "lib/pure/limit.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { LATER_MAX = 16, ANSWER_BYTES = 4096, HUGE_BYTES = 64 * 1024 * 1024, CONNECTIONS = 8 };

static uv_loop_t loop;
static struct tg_http_server *server;
static uint64_t later[LATER_MAX]; /* exchanges kept for later, by id */
static size_t later_count;
static char *huge;

/* /later is answered when the test says so, /huge with more than any socket buffer takes, all else
 * at once. */
static void on_request(void *context, struct tg_http_exchange *exchange)
{
    struct tg_http_answer answer = {.status = 200, .body = "now", .body_length = 3};
    if (strncmp(tg_http_path(exchange), "/later", 6) == 0) {
        assert_true(later_count < LATER_MAX);
        later[later_count++] = tg_http_id(exchange);
        return;
    }
    if (strcmp(tg_http_path(exchange), "/huge") == 0) {
        answer.body = huge;
        answer.body_length = HUGE_BYTES;
    }
    tg_http_answer(exchange, &answer);
}

/* Answers one kept exchange with its path; false when its client is gone. */
static bool answer_later(uint64_t id)
{
    struct tg_http_exchange *exchange = tg_http_find(server, id);
    if (exchange == NULL) {
        return false;
    }
    char body[64];
    snprintf(body, sizeof(body), "%s", tg_http_path(exchange));
    struct tg_http_answer answer = {.status = 200, .body = body, .body_length = strlen(body)};
    tg_http_answer(exchange, &answer);
    return true;
}

static int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(tg_http_port(server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    return fd;
}

static void say(int fd, const char *text)
{
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
}

/* Runs the loop until the condition holds; fails long after any limit. The server's own tick wakes
 * the loop at least every HTTP_TICK_MS. */
#define RUN_UNTIL(condition)                                                                       \
    do {                                                                                           \
        int64_t deadline_ms = tg_now_mono().ms + 20000;                                            \
        while (!(condition)) {                                                                     \
            assert_true(tg_now_mono().ms < deadline_ms);                                           \
            uv_run(&loop, UV_RUN_ONCE);                                                            \
        }                                                                                          \
    } while (0)

/* Adds what has arrived to text; true at the end of the connection. */
static bool hear(int fd, char text[ANSWER_BYTES])
{
    size_t used = strlen(text);
    ssize_t got = recv(fd, text + used, ANSWER_BYTES - 1 - used, 0);
    if (got > 0) {
        text[used + (size_t)got] = '\0';
    }
    return got == 0 || (got < 0 && errno != EAGAIN);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part)) {
        count++;
    }
    return count;
}

/* True when the answer's bytes are there. */
static bool heard(int fd, char text[ANSWER_BYTES], const char *part)
{
    hear(fd, text);
    return strstr(text, part) != NULL;
}

#define HEAD "Host: a\r\n\r\n"

static void test_slow_peers_are_closed(void **state)
{
    char head_text[ANSWER_BYTES] = "", body_text[ANSWER_BYTES] = "", idle_text[ANSWER_BYTES] = "";
    int slow_head = dial(), slow_body = dial(), slow_reader = dial(), idle = dial();
    int small = 4096;
    setsockopt(slow_reader, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
    say(slow_head, "GET / HTTP/1.1\r\nHo");
    say(slow_body, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
    say(slow_reader, "GET /huge HTTP/1.1\r\n" HEAD);
    int64_t begun_ms = tg_now_mono().ms;
    bool head_ended = false, body_ended = false;
    RUN_UNTIL((head_ended |= hear(slow_head, head_text), body_ended |= hear(slow_body, body_text),
               head_ended && body_ended));
    int64_t took_ms = tg_now_mono().ms - begun_ms;
    assert_in_range(took_ms, TG_MAX_HTTP_HEAD_MS - 200, TG_MAX_HTTP_HEAD_MS + 3000);
    assert_string_equal(head_text, "");
    assert_string_equal(body_text, "");
    RUN_UNTIL(tg_http_open_connections(server) == 2);
    RUN_UNTIL(tg_http_open_connections(server) == 1); /* the reader, after its own limit */
    assert_in_range(tg_now_mono().ms - begun_ms, TG_MAX_HTTP_WRITE_MS - 200,
                    TG_MAX_HTTP_WRITE_MS + 3000);
    assert_false(hear(idle, idle_text));
    say(idle, "GET / HTTP/1.1\r\n" HEAD);
    RUN_UNTIL(heard(idle, idle_text, "now"));
    close(slow_head);
    close(slow_body);
    close(slow_reader);
    close(idle);
    RUN_UNTIL(tg_http_open_connections(server) == 0);
}

static void test_bytes_do_not_prolong_a_head(void **state)
{
    char text[ANSWER_BYTES] = "";
    int fd = dial();
    say(fd, "GET / HTTP/1.1\r\n");
    int64_t begun_ms = tg_now_mono().ms, next_ms = begun_ms;
    bool ended = false;
    int64_t last_ms = begun_ms + 3 * TG_MAX_HTTP_HEAD_MS;
    while (!ended) {
        assert_true(tg_now_mono().ms < last_ms);
        if (tg_now_mono().ms >= next_ms) {
            ssize_t sent = send(fd, "X: y\r\n", 6, MSG_NOSIGNAL);
            assert_true(sent == 6 || errno == EPIPE || errno == ECONNRESET);
            next_ms += 300;
        }
        uv_run(&loop, UV_RUN_ONCE);
        ended = hear(fd, text);
    }
    assert_in_range(tg_now_mono().ms - begun_ms, TG_MAX_HTTP_HEAD_MS - 200,
                    TG_MAX_HTTP_HEAD_MS + 3000);
    close(fd);
    RUN_UNTIL(tg_http_open_connections(server) == 0);
}

static void test_later_answers_keep_the_order(void **state)
{
    char text[ANSWER_BYTES] = "";
    int fd = dial();
    later_count = 0;
    say(fd, "GET /later/1 HTTP/1.1\r\n" HEAD "GET / HTTP/1.1\r\n" HEAD
            "GET /later/2 HTTP/1.1\r\n" HEAD);
    RUN_UNTIL(later_count == 1);
    for (int i = 0; i < 20; i++) {
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    assert_int_equal(later_count, 1); /* one in progress, the others are kept */
    assert_int_equal(tg_http_in_progress(server), 1);
    assert_true(answer_later(later[0]));
    assert_null(tg_http_find(server, later[0]));
    RUN_UNTIL(later_count == 2);
    assert_true(answer_later(later[1]));
    RUN_UNTIL(heard(fd, text, "/later/2"));
    assert_int_equal(count_of(text, "HTTP/1.1 200 OK"), 3);
    assert_true(strstr(text, "/later/1") < strstr(text, "now"));
    close(fd);
    RUN_UNTIL(tg_http_open_connections(server) == 0);
    assert_int_equal(tg_http_in_progress(server), 0);
}

static void test_a_client_that_left_is_not_found(void **state)
{
    struct linger at_once = {.l_onoff = 1};
    int fd = dial();
    later_count = 0;
    say(fd, "GET /later HTTP/1.1\r\n" HEAD);
    RUN_UNTIL(later_count == 1);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
    close(fd);
    RUN_UNTIL(tg_http_in_progress(server) == 0);
    assert_false(answer_later(later[0]));
    RUN_UNTIL(tg_http_open_connections(server) == 0);
}

static void test_half_closed_client_is_answered(void **state)
{
    char text[ANSWER_BYTES] = "";
    int fd = dial();
    later_count = 0;
    say(fd, "GET /later HTTP/1.1\r\n" HEAD);
    shutdown(fd, SHUT_WR);
    RUN_UNTIL(later_count == 1);
    for (int i = 0; i < 20; i++) {
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    assert_true(answer_later(later[0]));
    RUN_UNTIL(hear(fd, text));
    assert_non_null(strstr(text, "/later"));
    close(fd);
    RUN_UNTIL(tg_http_open_connections(server) == 0);
}

static void test_expect_continue(void **state)
{
    char text[ANSWER_BYTES] = "";
    int fd = dial();
    say(fd, "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    RUN_UNTIL(heard(fd, text, "HTTP/1.1 100 Continue\r\n\r\n"));
    say(fd, "ab");
    RUN_UNTIL(heard(fd, text, "now"));
    assert_int_equal(count_of(text, "HTTP/1.1 200 OK"), 1);
    close(fd);
    RUN_UNTIL(tg_http_open_connections(server) == 0);
}

static void test_refusal_reaches_a_peer_that_still_sends(void **state)
{
    static char body[32768];
    char text[ANSWER_BYTES] = "";
    int fd = dial();
    memset(body, 'x', sizeof(body) - 1);
    say(fd, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 32767\r\n\r\n");
    say(fd, body);
    RUN_UNTIL(hear(fd, text));
    assert_memory_equal(text, "HTTP/1.1 413 ", 13);
    assert_int_equal(count_of(text, "HTTP/1.1 "), 1);
    close(fd);
    RUN_UNTIL(tg_http_open_connections(server) == 0);
}

static void test_idle_connections_make_room(void **state)
{
    char text[ANSWER_BYTES] = "";
    int fds[CONNECTIONS + 1];
    for (int i = 0; i < CONNECTIONS; i++) {
        fds[i] = dial();
        RUN_UNTIL(tg_http_open_connections(server) == (size_t)i + 1);
    }
    fds[CONNECTIONS] = dial(); /* refused itself, but the oldest idle one goes */
    RUN_UNTIL(tg_http_open_connections(server) == CONNECTIONS - 1);
    RUN_UNTIL(hear(fds[0], text));
    int fd = dial();
    say(fd, "GET / HTTP/1.1\r\n" HEAD);
    RUN_UNTIL(heard(fd, text, "now"));
    close(fd);
    for (int i = 0; i <= CONNECTIONS; i++) {
        close(fds[i]);
    }
    RUN_UNTIL(tg_http_open_connections(server) == 0);
}

static void test_idle_connection_costs_less_than_a_kibibyte(void **state)
{
    assert_true(sizeof(struct http_connection) <= 1024);
    int fd = dial();
    char text[ANSWER_BYTES] = "";
    say(fd, "GET / HTTP/1.1\r\n" HEAD);
    RUN_UNTIL(heard(fd, text, "now"));
    assert_int_equal(tg_http_open_connections(server), 1);
    struct http_link *idle = server->lists[HTTP_IDLE].next;
    struct http_connection *connection =
        (struct http_connection *)((char *)idle - offsetof(struct http_connection, link));
    assert_null(connection->exchange);
    assert_null(connection->kept);
    assert_null(connection->output);
    close(fd);
    RUN_UNTIL(tg_http_open_connections(server) == 0);
}

static void test_drain(void **state)
{
    char busy_text[ANSWER_BYTES] = "", idle_text[ANSWER_BYTES] = "";
    int busy = dial(), idle = dial();
    later_count = 0;
    say(busy, "GET /later HTTP/1.1\r\n" HEAD);
    RUN_UNTIL(later_count == 1 && tg_http_open_connections(server) == 2);
    uint16_t port = tg_http_port(server);
    tg_http_drain(server);
    RUN_UNTIL(hear(idle, idle_text));
    int late = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    RUN_UNTIL(connect(late, (struct sockaddr *)&address, sizeof(address)) != 0);
    assert_int_equal(tg_http_in_progress(server), 1);
    assert_true(answer_later(later[0]));
    RUN_UNTIL(hear(busy, busy_text));
    assert_non_null(strstr(busy_text, "Connection: close\r\n"));
    assert_int_equal(tg_http_in_progress(server), 0);
    close(busy);
    close(idle);
    close(late);
}

static void test_listening_errors_are_told(void **state)
{
    struct tg_http_server *other = NULL;
    struct tg_http_spec spec = {.host = "127.0.0.1",
                                .port = tg_http_port(server),
                                .connections_max = 1,
                                .handler = on_request};
    assert_int_equal(tg_http_listen(&loop, &spec, &other), UV_EADDRINUSE);
    spec.host = "shop.example";
    assert_int_equal(tg_http_listen(&loop, &spec, &other), UV_EINVAL);
    assert_null(other);
}

static void test_dual_stack_and_shared_port(void **state)
{
    struct tg_http_server *first = NULL, *second = NULL;
    struct tg_http_spec spec = {
        .host = "::", .reuse_port = true, .connections_max = 4, .handler = on_request};
    assert_int_equal(tg_http_listen(&loop, &spec, &first), 0);
    spec.port = tg_http_port(first);
    assert_int_equal(tg_http_listen(&loop, &spec, &second), 0);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(spec.port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    RUN_UNTIL(tg_http_open_connections(first) + tg_http_open_connections(second) == 1);
    close(fd);
    tg_http_free(first);
    tg_http_free(second);
}

static int set_up(void **state)
{
    struct tg_http_spec spec = {
        .host = "127.0.0.1", .connections_max = CONNECTIONS, .handler = on_request};
    huge = calloc(1, HUGE_BYTES);
    return huge == NULL || uv_loop_init(&loop) != 0 || tg_http_listen(&loop, &spec, &server) != 0;
}

static int tear_down(void **state)
{
    tg_http_free(server);
    uv_run(&loop, UV_RUN_DEFAULT);
    free(huge);
    return uv_loop_close(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_slow_peers_are_closed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bytes_do_not_prolong_a_head, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_later_answers_keep_the_order, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_a_client_that_left_is_not_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_half_closed_client_is_answered, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_expect_continue, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_refusal_reaches_a_peer_that_still_sends, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_idle_connections_make_room, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_idle_connection_costs_less_than_a_kibibyte, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_drain, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_listening_errors_are_told, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_dual_stack_and_shared_port, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
