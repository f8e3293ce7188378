/* SPDX-License-Identifier: Apache-2.0
 * One connection against a scripted Redis in the same loop: greeting, answers, deadlines, lost
 * connections, reloaded scripts. */
#include "lib/io/kv.h"

#include "lib/pure/limit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <hiredis/hiredis.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUN_ID "0123456789012345678901234567890123456789"
#define REPLID "abcdefabcdefabcdefabcdefabcdefabcdefabcd"

/* ---- the scripted Redis ---- */

enum mood {
    ANSWERS,
    SILENT,   /* reads and says nothing */
    HANGS_UP, /* closes at the next command that is not the greeting */
    REFUSES,  /* closes every connection at once */
    MUTE,     /* does not even answer the greeting */
    LOADING,  /* answers INFO with an error */
    BOASTS,   /* announces an array no memory has room for */
    FLOODS    /* sends a text without an end */
};

struct fake {
    uv_loop_t loop;
    uv_pipe_t listener;
    char path[64];
    enum mood mood;
    const char *role;
    redisReader *reader;
    uv_pipe_t *peer;
    unsigned connections, commands, loads, noscripts_left;
    uint64_t flooded;
    char last[64];
};

static struct fake *fake;

static void closed(uv_handle_t *handle)
{
    free(handle);
}

static void hang_up(void)
{
    if (fake->peer != NULL) {
        uv_close((uv_handle_t *)fake->peer, closed);
        fake->peer = NULL;
        redisReaderFree(fake->reader);
        fake->reader = NULL;
    }
}

static void say(const char *text)
{
    uv_buf_t buffer = uv_buf_init((char *)text, (unsigned)strlen(text));
    if (fake->peer != NULL) {
        assert_int_equal(uv_try_write((uv_stream_t *)fake->peer, &buffer, 1), (int)strlen(text));
    }
}

/* Half of a text of a gigabyte, as fast as the other side reads. */
static void flood(void)
{
    static char much[65536];
    uv_buf_t buffer = uv_buf_init(much, sizeof much);
    if (fake->flooded == 0) {
        say("$1000000000\r\n");
    }
    while (fake->peer != NULL && fake->flooded < 500 * 1000 * 1000) {
        int sent = uv_try_write((uv_stream_t *)fake->peer, &buffer, 1);
        if (sent < 0) {
            return;
        }
        fake->flooded += (uint64_t)sent;
    }
}

static void say_info(void)
{
    char body[512], reply[600];
    (void)snprintf(body, sizeof body,
                   "redis_version:7.0.15\r\nrun_id:" RUN_ID "\r\nrole:%s\r\nmaster_replid:" REPLID
                   "\r\nmaxmemory_policy:noeviction\r\nloading:0\r\n",
                   fake->role);
    (void)snprintf(reply, sizeof reply, "$%zu\r\n%s\r\n", strlen(body), body);
    say(reply);
}

static void answer(const redisReply *command)
{
    const char *name = command->element[0]->str;
    if (fake->mood == MUTE) {
        return;
    }
    if (strcmp(name, "INFO") == 0) {
        fake->mood == LOADING ? say("-LOADING Redis is loading\r\n") : say_info();
        return;
    }
    fake->commands++;
    (void)snprintf(fake->last, sizeof fake->last, "%s",
                   command->element[command->elements - 1]->str);
    if (fake->mood == HANGS_UP) {
        hang_up();
    } else if (fake->mood == SILENT) {
        return;
    } else if (fake->mood == BOASTS) {
        say("*764583202\r\n$1\r\na\r\n");
    } else if (fake->mood == FLOODS) {
        flood();
    } else if (strcmp(name, "SCRIPT") == 0) {
        fake->loads++;
        say("$2\r\nok\r\n");
    } else if (strcmp(name, "EVALSHA") == 0 && fake->noscripts_left > 0) {
        fake->noscripts_left--;
        say("-NOSCRIPT No matching script.\r\n");
    } else {
        char reply[96];
        (void)snprintf(reply, sizeof reply, "+%s\r\n", fake->last);
        say(reply);
    }
}

static void allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *out_buffer)
{
    static char room[65536];
    *out_buffer = uv_buf_init(room, sizeof room);
}

static void on_bytes(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    if (stream != (uv_stream_t *)fake->peer) {
        return;
    }
    if (count < 0) {
        hang_up();
        return;
    }
    assert_int_equal(redisReaderFeed(fake->reader, buffer->base, (size_t)count), REDIS_OK);
    void *command = NULL;
    while (fake->reader != NULL && redisReaderGetReply(fake->reader, &command) == REDIS_OK &&
           command != NULL) {
        answer(command);
        freeReplyObject(command);
    }
}

static void on_peer(uv_stream_t *listener, int status)
{
    uv_pipe_t *peer = malloc(sizeof *peer);
    assert_non_null(peer);
    assert_int_equal(uv_pipe_init(&fake->loop, peer, 0), 0);
    assert_int_equal(uv_accept(listener, (uv_stream_t *)peer), 0);
    fake->connections++;
    if (fake->mood == REFUSES) {
        uv_close((uv_handle_t *)peer, closed);
        return;
    }
    hang_up();
    fake->peer = peer;
    fake->reader = redisReaderCreate();
    assert_int_equal(uv_read_start((uv_stream_t *)peer, allocate, on_bytes), 0);
}

static int open_fake(void **state)
{
    fake = calloc(1, sizeof *fake);
    fake->role = "master";
    (void)snprintf(fake->path, sizeof fake->path, "/tmp/tidegate-kv-%ld.sock", (long)getpid());
    (void)unlink(fake->path);
    return uv_loop_init(&fake->loop) || uv_pipe_init(&fake->loop, &fake->listener, 0) ||
           uv_pipe_bind(&fake->listener, fake->path) ||
           uv_listen((uv_stream_t *)&fake->listener, 16, on_peer);
}

static int close_fake(void **state)
{
    hang_up();
    uv_close((uv_handle_t *)&fake->listener, NULL);
    uv_run(&fake->loop, UV_RUN_DEFAULT);
    int error = uv_loop_close(&fake->loop);
    (void)unlink(fake->path);
    free(fake);
    return error;
}

/* ---- the client under test ---- */

struct client {
    struct tg_kv *kv;
    unsigned changes_up, changes_down;
    unsigned answers, lost, timed_out, errors;
    char text[64];
    bool again; /* issue one more command from within an answer */
    int again_error;
};

static void on_change(void *context, const struct tg_kv_server *server)
{
    struct client *client = context;
    *(server != NULL ? &client->changes_up : &client->changes_down) += 1;
}

static void on_reply(void *context, uint64_t token, int status, const redisReply *reply)
{
    struct client *client = context;
    if (status == 0) {
        client->answers++;
        client->errors += reply->type == REDIS_REPLY_ERROR;
        (void)snprintf(client->text, sizeof client->text, "%s", reply->str);
    } else if (status == TG_ERR_TIMEOUT) {
        client->timed_out++;
    } else {
        assert_int_equal(status, TG_ERR_DISCONNECTED);
        client->lost++;
    }
    if (client->again) {
        client->again = false;
        const char *argv[] = {"ECHO", "again"};
        client->again_error = tg_kv_command(client->kv, 2, argv, NULL, on_reply, client, 0);
    }
}

static struct client *open_client(uint32_t command_ms, uint32_t in_flight_max)
{
    static struct client client;
    char url[80];
    memset(&client, 0, sizeof client);
    (void)snprintf(url, sizeof url, "unix://%s", fake->path);
    const struct tg_kv_spec spec = {url, command_ms, in_flight_max, on_change, &client};
    assert_int_equal(tg_kv_open(&fake->loop, &spec, &client.kv), 0);
    return &client;
}

/* Runs the loop until the condition holds; fails after 5 seconds. */
#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        uint64_t until_ms = uv_now(&fake->loop) + 5000;                                            \
        while (!(condition)) {                                                                     \
            uv_run(&fake->loop, UV_RUN_ONCE);                                                      \
            assert_true(uv_now(&fake->loop) < until_ms);                                           \
        }                                                                                          \
    } while (0)

static void close_client(struct client *client)
{
    client->kv = tg_kv_free(client->kv);
    assert_null(client->kv);
}

static int echo(struct client *client, const char *text)
{
    const char *argv[] = {"ECHO", text};
    return tg_kv_command(client->kv, 2, argv, NULL, on_reply, client, 0);
}

static void the_server_is_known_before_anything_is_sent(void **state)
{
    struct client *client = open_client(1000, 8);
    assert_null(tg_kv_server(client->kv));
    assert_int_equal(echo(client, "early"), TG_ERR_DISCONNECTED);
    UNTIL(client->changes_up == 1);
    assert_string_equal(tg_kv_server(client->kv)->run_id, RUN_ID);
    assert_true(tg_kv_server(client->kv)->primary);
    assert_int_equal(echo(client, "hello"), 0);
    assert_int_equal(tg_kv_in_flight(client->kv), 1);
    UNTIL(client->answers == 1);
    assert_string_equal(client->text, "hello");
    assert_int_equal(tg_kv_in_flight(client->kv), 0);
    close_client(client);
}

static void one_slow_command_makes_all_of_them_unknown(void **state) /* case_06 */
{
    struct client *client = open_client(60, 64);
    UNTIL(client->changes_up == 1);
    fake->mood = SILENT;
    for (int i = 0; i < 50; i++) {
        assert_int_equal(echo(client, "x"), 0);
    }
    UNTIL(client->timed_out == 50);
    assert_int_equal(client->changes_down, 1);
    assert_int_equal(client->answers + client->lost, 0);
    assert_int_equal(tg_kv_in_flight(client->kv), 0);
    assert_int_equal(echo(client, "x"), TG_ERR_DISCONNECTED);
    fake->mood = ANSWERS;
    UNTIL(client->changes_up == 2);
    assert_int_equal(echo(client, "back"), 0);
    UNTIL(client->answers == 1);
    close_client(client);
}

static void a_lost_connection_makes_them_unknown_and_comes_back(void **state)
{
    struct client *client = open_client(1000, 64);
    UNTIL(client->changes_up == 1);
    fake->mood = HANGS_UP;
    client->again = true;
    assert_int_equal(echo(client, "x"), 0);
    assert_int_equal(echo(client, "y"), 0);
    UNTIL(client->changes_down == 1);
    assert_int_equal(client->lost, 2);
    assert_int_equal(client->again_error,
                     TG_ERR_DISCONNECTED); /* nothing goes out on a dead connection */
    fake->mood = ANSWERS;
    UNTIL(client->changes_up == 2);
    close_client(client);
}

static void an_announced_length_is_no_reason_to_allocate(void **state)
{
    struct client *client = open_client(1000, 8);
    UNTIL(client->changes_up == 1);
    fake->mood = BOASTS;
    assert_int_equal(echo(client, "x"), 0);
    UNTIL(client->changes_down == 1);
    assert_int_equal(client->lost, 1);
    fake->mood = ANSWERS;
    UNTIL(client->changes_up == 2);
    close_client(client);
}

static void a_reply_without_an_end_is_given_up(void **state)
{
    struct client *client = open_client(5000, 8);
    UNTIL(client->changes_up == 1);
    fake->mood = FLOODS;
    assert_int_equal(echo(client, "x"), 0);
    while (client->changes_down == 0 && fake->flooded < 100 * 1000 * 1000) {
        uv_run(&fake->loop, UV_RUN_ONCE);
        flood();
    }
    assert_int_equal(client->lost, 1);
    assert_in_range(fake->flooded, TG_MAX_REPLY_BYTES, 4 * TG_MAX_REPLY_BYTES);
    close_client(client);
}

static void attempts_go_on_while_nobody_serves(void **state)
{
    fake->mood = REFUSES;
    struct client *client = open_client(1000, 8);
    UNTIL(fake->connections >= 3);
    assert_int_equal(client->changes_up, 0);
    fake->mood = LOADING;
    unsigned before = fake->connections;
    UNTIL(fake->connections >= before + 2);
    assert_int_equal(client->changes_up, 0);
    fake->mood = ANSWERS;
    UNTIL(client->changes_up == 1);
    close_client(client);
}

static void a_reconnect_is_a_new_connection(void **state)
{
    struct client *client = open_client(60, 8);
    UNTIL(client->changes_up == 1);
    tg_kv_reconnect(client->kv);
    assert_int_equal(echo(client, "x"), TG_ERR_DISCONNECTED);
    UNTIL(client->changes_up == 2);
    assert_int_equal(client->changes_down, 1);
    assert_int_equal(fake->connections, 2);
    close_client(client);
}

static void a_greeting_that_never_comes_is_given_up(void **state)
{
    fake->mood = MUTE;
    struct client *client = open_client(60, 8);
    UNTIL(fake->connections >= 3);
    assert_int_equal(client->changes_up, 0);
    fake->mood = ANSWERS;
    UNTIL(client->changes_up == 1);
    close_client(client);
}

static void what_is_in_flight_is_bounded(void **state)
{
    struct client *client = open_client(1000, 3);
    UNTIL(client->changes_up == 1);
    assert_int_equal(echo(client, "1") | echo(client, "2") | echo(client, "3"), 0);
    assert_int_equal(echo(client, "4"), TG_ERR_FULL);
    UNTIL(client->answers == 3);
    assert_int_equal(echo(client, "4"), 0);
    UNTIL(client->answers == 4);
    close_client(client);
}

static void a_flushed_script_is_sent_again_once(void **state) /* case_05 */
{
    struct tg_kv_script script = {.name = "s", .source = "return ARGV[1]"};
    tg_kv_script_prepare(&script);
    struct client *client = open_client(1000, 64);
    UNTIL(client->changes_up == 1);
    fake->noscripts_left = 10;
    const char *words[] = {"key", "value"};
    for (int i = 0; i < 10; i++) {
        assert_int_equal(tg_kv_eval(client->kv, &script, 1, 2, words, NULL, on_reply, client, 0),
                         0);
    }
    UNTIL(client->answers == 10);
    assert_int_equal(client->errors, 0);
    assert_string_equal(client->text, "value");
    assert_int_equal(fake->loads, 1);
    /* A server that forgets at once is told twice, not for ever. */
    fake->noscripts_left = 100;
    assert_int_equal(tg_kv_eval(client->kv, &script, 1, 2, words, NULL, on_reply, client, 0), 0);
    UNTIL(client->answers == 11);
    assert_int_equal(client->errors, 1);
    assert_int_equal(fake->loads, 2);
    close_client(client);
}

static void closing_answers_what_is_outstanding(void **state)
{
    struct client *client = open_client(1000, 8);
    UNTIL(client->changes_up == 1);
    fake->mood = SILENT;
    assert_int_equal(echo(client, "x"), 0);
    client->kv = tg_kv_free(client->kv);
    assert_int_equal(client->lost, 1);
    assert_int_equal(client->changes_down, 0); /* nobody is told of what he did himself */
    assert_null(tg_kv_free(NULL));
}

static void bytes_go_through_unchanged(void **state)
{
    struct client *client = open_client(1000, 8);
    UNTIL(client->changes_up == 1);
    const char *argv[] = {"ECHO", "a b\r\nc"};
    const size_t lengths[] = {4, 3};
    assert_int_equal(tg_kv_command(client->kv, 2, argv, lengths, on_reply, client, 0), 0);
    UNTIL(client->answers == 1);
    assert_string_equal(client->text, "a b");
    close_client(client);
}

int main(void)
{
    /* As every daemon does: a write to a closed socket is an error, not the end. */
    const struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (sigaction(SIGPIPE, &ignore, NULL) != 0) {
        return 1;
    }
#define CASE(name) cmocka_unit_test_setup_teardown(name, open_fake, close_fake)
    const struct CMUnitTest tests[] = {
        CASE(the_server_is_known_before_anything_is_sent),
        CASE(one_slow_command_makes_all_of_them_unknown),
        CASE(a_lost_connection_makes_them_unknown_and_comes_back),
        CASE(an_announced_length_is_no_reason_to_allocate),
        CASE(a_reply_without_an_end_is_given_up),
        CASE(attempts_go_on_while_nobody_serves),
        CASE(a_reconnect_is_a_new_connection),
        CASE(a_greeting_that_never_comes_is_given_up),
        CASE(what_is_in_flight_is_bounded),
        CASE(a_flushed_script_is_sent_again_once),
        CASE(closing_answers_what_is_outstanding),
        CASE(bytes_go_through_unchanged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
