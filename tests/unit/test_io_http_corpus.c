/* SPDX-License-Identifier: Apache-2.0
 * Every raw request of tests/corpus/http, whole and cut in two at every byte: the same answers, the
 * same requests seen by the handler, and an end of the connection after a refusal. Client and
 * server share one loop, so that each cut is a real one. */
#include "lib/io/http.h"
#include "lib/pure/limit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

enum { FILE_BYTES_MAX = 16384, ANSWER_BYTES_MAX = 65536, ROUNDS_MAX = 2000 };

static uv_loop_t loop;
static struct tg_http_server *server;
static char seen[1024]; /* what the handler saw, as the corpus spells it */

static void append_spelling(const char *text, size_t length)
{
    size_t used = strlen(seen);
    if (length > 64) {
        snprintf(seen + used, sizeof(seen) - used, "[%zu]", length);
    } else {
        snprintf(seen + used, sizeof(seen) - used, "%.*s", (int)length, text);
    }
}

static void on_request(void *context, struct tg_http_exchange *exchange)
{
    static const char *const names[] = {"GET", "HEAD", "POST", "OPTIONS", "OTHER"};
    size_t body_length;
    const char *body = (const char *)tg_http_body(exchange, &body_length);
    char target[TG_MAX_HTTP_URI_BYTES + 2];
    const char *query = tg_http_query(exchange);
    snprintf(target, sizeof(target), "%s%s%s", tg_http_path(exchange), query[0] != '\0' ? "?" : "",
             query);
    strncat(seen, " ", sizeof(seen) - strlen(seen) - 1);
    strncat(seen, names[tg_http_method(exchange)], sizeof(seen) - strlen(seen) - 1);
    strncat(seen, ":", sizeof(seen) - strlen(seen) - 1);
    append_spelling(target, strlen(target));
    if (body_length > 0 && body_length <= 64) {
        strncat(seen, "(", sizeof(seen) - strlen(seen) - 1);
    }
    if (body_length > 0) {
        append_spelling(body, body_length);
    }
    if (body_length > 0 && body_length <= 64) {
        strncat(seen, ")", sizeof(seen) - strlen(seen) - 1);
    }
    struct tg_http_answer answer = {
        .status = 200, .content_type = "text/plain", .body = "yes", .body_length = 3};
    tg_http_answer(exchange, &answer);
}

static void turn(int times)
{
    for (int i = 0; i < times; i++) {
        uv_run(&loop, UV_RUN_NOWAIT);
    }
}

static int dial(void)
{
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons(tg_http_port(server)),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    int on = 1;
    assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)), 0);
    assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
    turn(2);
    return fd;
}

static void send_all(int fd, const char *data, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, data, length, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN) {
            return; /* refused and closed already: that is what is tested */
        }
        if (sent > 0) {
            data += sent;
            length -= (size_t)sent;
        }
        turn(1);
    }
}

/* Statuses of the answers in text, comma-separated; returns their number. */
static size_t statuses_of(const char *text, bool heads_only, char *out_statuses, size_t capacity)
{
    size_t count = 0;
    out_statuses[0] = '\0';
    while (strncmp(text, "HTTP/1.1 ", 9) == 0 && strstr(text, "\r\n\r\n") != NULL) {
        const char *body = strstr(text, "\r\n\r\n") + 4;
        const char *length = strstr(text, "Content-Length: ");
        assert_non_null(length);
        assert_true(length < body);
        size_t body_length = heads_only ? 0 : strtoul(length + 16, NULL, 10);
        if (strlen(body) < body_length) {
            break;
        }
        snprintf(out_statuses + strlen(out_statuses), capacity - strlen(out_statuses), "%s%.3s",
                 count > 0 ? "," : "", text + 9);
        count++;
        text = body + body_length;
    }
    return count;
}

static size_t count_of(const char *list)
{
    size_t count = 1;
    for (; *list != '\0'; list++) {
        count += *list == ',';
    }
    return count;
}

/* Sends raw, cut at `cut`; true when what came back is what the first line says. */
static bool behaves(const char *expected, const char *raw, size_t length, size_t cut)
{
    static char answer[ANSWER_BYTES_MAX];
    char statuses[256], wanted[256];
    size_t used = 0;
    bool ended = false, refused = expected[0] == '4';
    snprintf(wanted, sizeof(wanted), "%.*s", (int)strcspn(expected, " "), expected);
    seen[0] = '\0';
    int fd = dial();
    send_all(fd, raw, cut);
    turn(2);
    send_all(fd, raw + cut, length - cut);
    answer[0] = '\0';
    size_t got = 0;
    for (int i = 0; i < ROUNDS_MAX && !ended && (refused || got < count_of(wanted)); i++) {
        turn(1);
        ssize_t received = recv(fd, answer + used, sizeof(answer) - 1 - used, 0);
        ended = received == 0 || (received < 0 && errno != EAGAIN);
        used += received > 0 ? (size_t)received : 0;
        answer[used] = '\0';
        got = statuses_of(answer, strncmp(raw, "HEAD", 4) == 0, statuses, sizeof(statuses));
    }
    close(fd);
    turn(3);
    char outcome[1400];
    snprintf(outcome, sizeof(outcome), "%s%s", statuses, seen);
    if (strcmp(outcome, expected) != 0 || ended != refused) {
        print_error("cut at %zu: expected \"%s\", got \"%s\", %s\n", cut, expected, outcome,
                    ended ? "ended" : "open");
        return false;
    }
    return true;
}

static bool check_file(const char *path)
{
    static char text[FILE_BYTES_MAX];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof(text), file);
    assert_true(length > 0 && length < sizeof(text));
    fclose(file);
    char *raw = memchr(text, '\n', length);
    assert_non_null(raw);
    *raw++ = '\0';
    size_t raw_length = length - (size_t)(raw - text);
    size_t step = raw_length > 1024 ? 101 : 1;
    for (size_t cut = 0; cut < raw_length; cut += step) {
        if (!behaves(text, raw, raw_length, cut)) {
            print_error("%s\n", path);
            return false;
        }
    }
    return true;
}

static void test_corpus(void **state)
{
    char path[2048];
    DIR *listing = opendir(HTTP_CORPUS);
    assert_non_null(listing);
    size_t files = 0, failures = 0;
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        if (strstr(entry->d_name, ".http") == NULL) {
            continue;
        }
        snprintf(path, sizeof(path), HTTP_CORPUS "/%s", entry->d_name);
        files++;
        failures += !check_file(path);
    }
    closedir(listing);
    assert_true(files >= 100);
    assert_int_equal(failures, 0);
    assert_int_equal(tg_http_in_progress(server), 0);
}

static int set_up(void **state)
{
    struct tg_http_spec spec = {.host = "127.0.0.1", .connections_max = 64, .handler = on_request};
    return uv_loop_init(&loop) != 0 || tg_http_listen(&loop, &spec, &server) != 0;
}

static int tear_down(void **state)
{
    tg_http_free(server);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_corpus, set_up, tear_down)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
