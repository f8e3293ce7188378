/* SPDX-License-Identifier: Apache-2.0
 * The bus against a real nats-server of its own: round trips, refusals, a server that is late,
 * frozen, gone and back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/io/bus.h"
#include "lib/io/now.h"
#include "lib/pure/limit.h"
#include "tidegate/v1/control.pb-c.h"
#include "tidegate/v1/ledger.pb-c.h"
#include "tidegate/v1/queue.pb-c.h"

#include <arpa/inet.h>
#include <nats/nats.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static uv_loop_t loop;
static char folder[] = "/tmp/tidegate-bus-XXXXXX";
static char url[64], port_text[8];
static pid_t server;

/* What the callbacks saw. */
static unsigned handled, answered, stored, ticks;
static int last_status;
static uint64_t last_token, last_index;
static bool mute;
static struct tg_bus_incoming *kept;
static uint64_t longest_gap_us, last_tick_us;

static int free_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
    close(fd);
    return ntohs(address.sin_port);
}

/* With a password when `guarded`: our clients have none. */
static void server_start_as(bool guarded)
{
    const char *arguments[] = {"setpriv", /* ends with us, however we end */
                               "--pdeathsig", "KILL",
                               "--",          "nats-server",
                               "-a",          "127.0.0.1",
                               "-p",          port_text,
                               "-js",         "-sd",
                               folder,        "-l",
                               "/dev/null",   guarded ? "--user" : NULL,
                               "someone",     "--pass",
                               "secret",      NULL};

    assert_int_equal(posix_spawnp(&server, arguments[0], NULL, NULL,
                                  (char *const *)(uintptr_t)arguments, environ),
                     0);
}

static void server_start(void)
{
    server_start_as(false);
}

static void server_stop(void)
{
    if (server > 0) {
        kill(server, SIGKILL);
        waitpid(server, NULL, 0);
        server = 0;
    }
}

static void on_tick(uv_timer_t *timer)
{
    uint64_t now_us = tg_now_us();

    (void)timer;
    ticks++;
    if (last_tick_us != 0 && now_us - last_tick_us > longest_gap_us) {
        longest_gap_us = now_us - last_tick_us;
    }
    last_tick_us = now_us;
}

/* Runs the loop until the condition holds; false after ms_max. */
static bool run_until(bool (*condition)(const void *), const void *argument, int64_t ms_max)
{
    int64_t end_ms = tg_now_mono().ms + ms_max;

    while (!condition(argument)) {
        if (tg_now_mono().ms > end_ms) {
            return false;
        }
        uv_run(&loop, UV_RUN_ONCE);
    }
    return true;
}

static bool connected(const void *bus)
{
    return tg_bus_connected(bus);
}

static bool disconnected(const void *bus)
{
    return !tg_bus_connected(bus);
}

struct count {
    const unsigned *now;
    unsigned wanted;
};

static bool reached(const void *argument)
{
    const struct count *count = argument;
    return *count->now >= count->wanted;
}

static bool run_until_count(const unsigned *counter, unsigned wanted, int64_t ms_max)
{
    struct count count = {counter, wanted};
    return run_until(reached, &count, ms_max);
}

static bool never(const void *argument)
{
    (void)argument;
    return false;
}

static void run_for(int64_t ms)
{
    assert_false(run_until(never, NULL, ms));
}

static uv_timer_t ticker;

static int setup(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(port_text, sizeof(port_text), "%d", free_port());
    snprintf(url, sizeof(url), "nats://127.0.0.1:%s", port_text);
    uv_loop_init(&loop);
    uv_timer_init(&loop, &ticker);
    uv_timer_start(&ticker, on_tick, 20, 20);
    server_start();
    return 0;
}

static int teardown(void **state)
{
    char command[96];

    (void)state;
    server_stop();
    uv_close((uv_handle_t *)&ticker, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    nats_Close();
    snprintf(command, sizeof(command), "rm -rf %s", folder);
    return system(command);
}

static int open_as(const char *where, const char *daemon, const char *instance,
                   struct tg_bus **out_bus)
{
    const struct tg_bus_spec spec = {
        .url = where, .daemon = daemon, .instance = instance, .identity = daemon};

    return tg_bus_open(&loop, &spec, out_bus);
}

static struct tg_bus *open_bus(const char *daemon, const char *instance)
{
    struct tg_bus *bus = NULL;

    assert_int_equal(open_as(url, daemon, instance, &bus), 0);
    assert_true(run_until(connected, bus, 10000));
    return bus;
}

static void reset(void)
{
    handled = answered = stored = 0;
    last_status = 1;
    last_token = last_index = 0;
    mute = false;
    longest_gap_us = last_tick_us = 0;
}

/* Answers a lease with the count asked for as its first index, and the length of the traceparent as
 * term. */
static void on_lease(void *context, struct tg_bus_incoming *take_incoming)
{
    const Tidegate__V1__LeaseRequest *request =
        (const Tidegate__V1__LeaseRequest *)tg_bus_body(take_incoming);
    Tidegate__V1__LeaseReply reply = TIDEGATE__V1__LEASE_REPLY__INIT;

    (void)context;
    handled++;
    assert_string_equal(tg_bus_sale(take_incoming), "sku_991");
    if (mute) {
        tg_bus_release(take_incoming);
        return;
    }
    if (strcmp(request->edge, "refused") == 0) {
        tg_bus_reply_error(take_incoming, 409, "refused by test");
        return;
    }
    reply.first = request->count;
    reply.term = strlen(tg_bus_traceparent(take_incoming));
    tg_bus_reply(take_incoming, &reply.base);
}

static void on_reply(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    (void)context;
    answered++;
    last_status = status;
    last_token = token;
    if (status == 0) {
        last_index = ((const Tidegate__V1__LeaseReply *)reply)->first;
    } else {
        assert_null(reply);
    }
}

static int ask(struct tg_bus *bus, const char *edge, uint32_t count, uint32_t timeout_ms)
{
    Tidegate__V1__LeaseRequest request = TIDEGATE__V1__LEASE_REQUEST__INIT;

    request.edge = (char *)(uintptr_t)edge;
    request.count = count;
    return tg_bus_call(bus, TG_MESSAGE_QUEUE_LEASE, "sku_991", &request.base,
                       "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", timeout_ms,
                       on_reply, NULL, 4711);
}

static void round_trips(void **state)
{
    struct tg_bus *queue = open_bus("queue", "queue-1");
    struct tg_bus *edge = open_bus("edge", "edge-1");

    (void)state;
    reset();
    assert_int_equal(tg_bus_serve(queue, TG_MESSAGE_QUEUE_LEASE, on_lease, NULL), 0);
    run_for(100); /* the server learns of the subscription */
    for (unsigned i = 1; i <= 1000; i++) {
        assert_int_equal(ask(edge, "e", i, 5000), 0);
    }
    assert_true(run_until_count(&answered, 1000, 10000));
    assert_int_equal(handled, 1000);
    assert_int_equal(last_status, 0);
    assert_int_equal(last_token, 4711);
    assert_int_equal(last_index, 1000);
    run_for(100);
    assert_int_equal(answered, 1000);
    tg_bus_free(edge);
    tg_bus_free(queue);
}

static void outcomes_of_calls(void **state)
{
    struct tg_bus *queue = open_bus("queue", "queue-1");
    struct tg_bus *edge = open_bus("edge", "edge-1");
    uint64_t start_us;

    (void)state;
    reset();
    run_for(100); /* the server forgets who served before */
    start_us = tg_now_us();
    assert_int_equal(ask(edge, "e", 1, 5000), 0);
    assert_true(run_until_count(&answered, 1, 2000));
    assert_int_equal(last_status, TG_ERR_NO_RESPONDERS);
    assert_true(tg_now_us() - start_us < 1000000);

    assert_int_equal(tg_bus_serve(queue, TG_MESSAGE_QUEUE_LEASE, on_lease, NULL), 0);
    run_for(100);
    assert_int_equal(ask(edge, "refused", 1, 5000), 0);
    assert_true(run_until_count(&answered, 2, 2000));
    assert_int_equal(last_status, TG_ERR_REMOTE);

    mute = true;
    start_us = tg_now_us();
    assert_int_equal(ask(edge, "e", 1, 300), 0);
    assert_true(run_until_count(&answered, 3, 2000));
    assert_int_equal(last_status, TG_ERR_TIMEOUT);
    assert_in_range(tg_now_us() - start_us, 300000, 600000);
    tg_bus_free(edge);
    tg_bus_free(queue);
}

static void calls_are_bounded(void **state)
{
    struct tg_bus *edge = open_bus("edge", "edge-1");
    int error = 0;
    unsigned sent = 0;

    (void)state;
    reset();
    while (error == 0) {
        error = ask(edge, "e", 1, 5000);
        sent += error == 0;
    }
    assert_int_equal(error, TG_ERR_FULL);
    assert_int_equal(sent, TG_MAX_BUS_CALLS);
    assert_true(run_until_count(&answered, sent, 10000));
    assert_int_equal(ask(edge, "e", 1, 5000), 0);
    assert_true(run_until_count(&answered, sent + 1, 10000));
    tg_bus_free(edge);
}

static void wrong_names_and_long_bodies_are_not_sent(void **state)
{
    struct tg_bus *edge = open_bus("edge", "edge-1");
    Tidegate__V1__LeaseRequest request = TIDEGATE__V1__LEASE_REQUEST__INIT;
    static char text[TG_MAX_BUS_BODY_BYTES + 1];

    (void)state;
    reset();
    for (size_t i = 0; i < 4; i++) {
        static const char *const names[] = {"", "a.b", "a*", ">"};
        assert_int_equal(tg_bus_call(edge, TG_MESSAGE_QUEUE_LEASE, names[i], &request.base, NULL,
                                     100, on_reply, NULL, 0),
                         TG_ERR_RANGE);
    }
    memset(text, 'x', sizeof(text) - 1);
    request.edge = text;
    assert_int_equal(
        tg_bus_call(edge, TG_MESSAGE_QUEUE_LEASE, "a", &request.base, NULL, 100, on_reply, NULL, 0),
        TG_ERR_RANGE);
    run_for(200);
    assert_int_equal(answered, 0);
    tg_bus_free(edge);
}

/* A client that is not ours: raw bytes on a subject, and what came back in Nats-Service-Error. */
static bool raw_refused(const char *subject, const void *data, int length)
{
    natsConnection *raw = NULL;
    natsMsg *answer = NULL;
    natsSubscription *inbox = NULL;
    const char *error = NULL;
    bool refused = false;

    assert_int_equal(natsConnection_ConnectTo(&raw, url), NATS_OK);
    assert_int_equal(natsConnection_SubscribeSync(&inbox, raw, "raw.inbox"), NATS_OK);
    assert_int_equal(natsConnection_PublishRequest(raw, subject, "raw.inbox", data, length),
                     NATS_OK);
    assert_int_equal(natsConnection_Flush(raw), NATS_OK);
    for (int i = 0; i < 100 && answer == NULL; i++) {
        uv_run(&loop, UV_RUN_NOWAIT);
        natsSubscription_NextMsg(&answer, inbox, 20);
    }
    if (answer != NULL) {
        refused = natsMsgHeader_Get(answer, "Nats-Service-Error", &error) == NATS_OK;
    }
    natsMsg_Destroy(answer);
    natsSubscription_Destroy(inbox);
    natsConnection_Destroy(raw);
    return refused;
}

static void garbage_never_reaches_a_handler(void **state)
{
    static uint8_t bytes[TG_MAX_BUS_BODY_BYTES + 500];
    struct tg_bus *queue = open_bus("queue", "queue-1");

    (void)state;
    reset();
    assert_int_equal(tg_bus_serve(queue, TG_MESSAGE_QUEUE_LEASE, on_lease, NULL), 0);
    assert_int_equal(tg_bus_serve(queue, TG_MESSAGE_LEDGER_SALES, on_lease, NULL), 0);
    assert_int_equal(tg_bus_serve(queue, TG_MESSAGE_RESERVE_OBEY, on_lease, NULL), 0);
    run_for(100);
    memset(bytes, 0xff, sizeof(bytes));
    assert_true(raw_refused("tidegate.v1.queue.sku_991.lease", bytes, 100));
    assert_true(raw_refused("tidegate.v1.queue.sku_991.lease", bytes, TG_MAX_BUS_BODY_BYTES + 1));
    assert_true(raw_refused("tidegate.v1.ledger.sales", "\x0a\x7f", 2));
    assert_true(raw_refused("tidegate.v1.queue.sku!991.lease", "", 0));
    assert_int_equal(handled, 0);
    tg_bus_free(queue);
}

static void on_any(void *context, struct tg_bus_incoming *take_incoming)
{
    (void)context;
    handled++;
    tg_bus_release(take_incoming);
}

/* Random bytes, and many empty rows that unpack to far more than they weigh. */
static void decoding_is_bounded(void **state)
{
    static uint8_t bytes[TG_MAX_BUS_BODY_BYTES];
    struct tg_bus *ledger = open_bus("ledger", "ledger-1");
    natsConnection *raw = NULL;

    (void)state;
    reset();
    assert_int_equal(tg_bus_serve(ledger, TG_MESSAGE_LEDGER_EXPIRE, on_any, NULL), 0);
    run_for(100);
    assert_int_equal(natsConnection_ConnectTo(&raw, url), NATS_OK);
    for (int i = 0; i < 2000; i++) {
        size_t length = 0;
        tg_random(&length, 1);
        tg_random(bytes, length);
        assert_int_equal(
            natsConnection_Publish(raw, "tidegate.v1.ledger.a.expire", bytes, (int)length),
            NATS_OK);
    }
    for (size_t i = 0; i + 1 < sizeof(bytes); i += 2) {
        bytes[i] = 5 << 3 | 2;
        bytes[i + 1] = 0;
    }
    handled = 0;
    assert_int_equal(
        natsConnection_Publish(raw, "tidegate.v1.ledger.a.expire", bytes, (int)sizeof(bytes)),
        NATS_OK);
    assert_int_equal(natsConnection_Publish(raw, "tidegate.v1.ledger.a.expire", bytes, 2000),
                     NATS_OK);
    assert_int_equal(natsConnection_Flush(raw), NATS_OK);
    assert_true(run_until_count(&handled, 1, 5000));
    natsConnection_Destroy(raw);
    tg_bus_free(ledger);
}

static void keep_message(void *context, struct tg_bus_incoming *take_incoming)
{
    (void)context;
    handled++;
    kept = take_incoming;
}

static void a_message_outlives_its_bus(void **state)
{
    struct tg_bus *queue = open_bus("queue", "queue-1");
    struct tg_bus *edge = open_bus("edge", "edge-1");
    Tidegate__V1__LeaseReply reply = TIDEGATE__V1__LEASE_REPLY__INIT;

    (void)state;
    reset();
    assert_int_equal(tg_bus_serve(queue, TG_MESSAGE_QUEUE_LEASE, keep_message, NULL), 0);
    run_for(100);
    assert_int_equal(ask(edge, "e", 7, 300), 0);
    assert_true(run_until_count(&handled, 1, 2000));
    tg_bus_free(queue);
    run_for(50);
    tg_bus_reply(kept, &reply.base);
    assert_true(run_until_count(&answered, 1, 2000));
    assert_int_equal(last_status, TG_ERR_TIMEOUT);
    tg_bus_free(edge);
}

static void on_command(void *context, struct tg_bus_incoming *take_incoming)
{
    Tidegate__V1__CommandReply reply = TIDEGATE__V1__COMMAND_REPLY__INIT;

    handled++;
    reply.command_id = context;
    tg_bus_reply(take_incoming, &reply.base);
}

static void on_judged(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    (void)context;
    (void)token;
    last_status = status;
    if (status == 0) {
        const Tidegate__V1__CommandReply *judged = (const Tidegate__V1__CommandReply *)reply;
        assert_true(judged->command_id[0] == 'A' || judged->command_id[0] == 'B');
    }
    answered++;
}

static void everybody_hears_and_may_answer(void **state)
{
    struct tg_bus *a = open_bus("ledger", "ledger-a");
    struct tg_bus *b = open_bus("ledger", "ledger-b");
    struct tg_bus *tool = open_bus("tidegatectl", "ctl-1");
    Tidegate__V1__SignedCommand command = TIDEGATE__V1__SIGNED_COMMAND__INIT;
    static char names[2][2] = {"A", "B"};

    (void)state;
    reset();
    assert_int_equal(tg_bus_serve(a, TG_MESSAGE_CONTROL, on_command, names[0]), 0);
    assert_int_equal(tg_bus_serve(b, TG_MESSAGE_CONTROL, on_command, names[1]), 0);
    run_for(100);
    assert_int_equal(
        tg_bus_ask_all(tool, TG_MESSAGE_CONTROL, "sku_991", &command.base, 500, on_judged, NULL, 0),
        0);
    assert_true(run_until_count(&answered, 3, 3000));
    assert_int_equal(handled, 2);
    assert_int_equal(last_status, TG_ERR_TIMEOUT);
    tg_bus_free(a);
    tg_bus_free(b);
    tg_bus_free(tool);
}

static void on_stored(void *context, uint64_t token, int status)
{
    (void)context;
    stored++;
    last_token = token;
    last_status = status;
}

static bool ask_server(const char *subject, const char *body, char *out_text, size_t capacity)
{
    natsConnection *raw = NULL;
    natsSubscription *inbox = NULL;
    natsMsg *answer = NULL;

    assert_int_equal(natsConnection_ConnectTo(&raw, url), NATS_OK);
    assert_int_equal(natsConnection_SubscribeSync(&inbox, raw, "ask.inbox"), NATS_OK);
    assert_int_equal(natsConnection_PublishRequestString(raw, subject, "ask.inbox", body), NATS_OK);
    assert_int_equal(natsConnection_Flush(raw), NATS_OK);
    for (int i = 0; i < 100 && answer == NULL; i++) {
        uv_run(&loop, UV_RUN_NOWAIT);
        natsSubscription_NextMsg(&answer, inbox, 20);
    }
    if (answer != NULL) {
        snprintf(out_text, capacity, "%.*s", natsMsg_GetDataLength(answer),
                 natsMsg_GetData(answer));
    }
    natsMsg_Destroy(answer);
    natsSubscription_Destroy(inbox);
    natsConnection_Destroy(raw);
    return answer != NULL;
}

static void events_are_stored_once(void **state)
{
    struct tg_bus *ledger = open_bus("ledger", "ledger-1");
    Tidegate__V1__SaleEvent event = TIDEGATE__V1__SALE_EVENT__INIT;
    char text[4096] = "", kind[] = "held";

    (void)state;
    reset();
    for (int i = 0; i < 2; i++) { /* the second finds it there */
        assert_int_equal(tg_bus_make_stream(ledger, on_stored, NULL), 0);
        assert_true(run_until_count(&stored, 1 + (unsigned)i, 10000));
        assert_int_equal(last_status, 0);
    }
    event.kind = kind;
    for (unsigned i = 0; i < 3; i++) {
        const char *id = i == 2 ? "res_B.held" : "res_A.held";
        assert_int_equal(
            tg_bus_event(ledger, "sku_991", "held", id, &event.base, 2000, on_stored, NULL, i), 0);
        assert_true(run_until_count(&stored, 3 + i, 5000));
        assert_int_equal(last_status, 0);
        assert_int_equal(last_token, i);
    }
    assert_true(ask_server("$JS.API.STREAM.INFO.TIDEGATE_EVENTS", "", text, sizeof(text)));
    assert_non_null(strstr(text, "\"messages\":2"));
    assert_int_equal(
        tg_bus_event(ledger, "sku.991", "held", "x", &event.base, 1, on_stored, NULL, 0),
        TG_ERR_RANGE);
    tg_bus_free(ledger);
}

static void the_service_protocol_is_spoken(void **state)
{
    struct tg_bus *queue = open_bus("queue", "queue-7");
    char text[4096] = "";

    (void)state;
    reset();
    assert_int_equal(tg_bus_serve(queue, TG_MESSAGE_QUEUE_LEASE, on_lease, NULL), 0);
    run_for(100);
    assert_true(ask_server("$SRV.PING", "", text, sizeof(text)));
    assert_non_null(strstr(text, "io.nats.micro.v1.ping_response"));
    assert_non_null(strstr(text, "\"name\":\"tidegate-queue\""));
    assert_true(ask_server("$SRV.INFO.tidegate-queue", "", text, sizeof(text)));
    assert_non_null(strstr(text, "\"subject\":\"tidegate.v1.queue.*.lease\""));
    assert_non_null(strstr(text, "\"queue_group\":\"queue\""));
    assert_true(ask_server("$SRV.STATS.tidegate-queue.queue-7", "", text, sizeof(text)));
    assert_non_null(strstr(text, "\"num_requests\":0"));
    tg_bus_free(queue);
}

static void case_nats_frozen(void **state)
{
    struct tg_bus *queue = open_bus("queue", "queue-1");
    struct tg_bus *edge = open_bus("edge", "edge-1");
    int64_t end_ms;

    (void)state;
    reset();
    assert_int_equal(tg_bus_serve(queue, TG_MESSAGE_QUEUE_LEASE, on_lease, NULL), 0);
    run_for(100);
    kill(server, SIGSTOP);
    assert_true(run_until(disconnected, edge, 6000));
    reset();
    end_ms = tg_now_mono().ms + 5000;
    while (tg_now_mono().ms < end_ms) {
        assert_int_equal(ask(edge, "e", 1, 1000), TG_ERR_DISCONNECTED);
        uv_run(&loop, UV_RUN_ONCE);
    }
    assert_true(longest_gap_us < 200000);
    assert_int_equal(answered, 0);
    kill(server, SIGCONT);
    assert_true(run_until(connected, edge, 10000));
    assert_true(run_until(connected, queue, 10000));
    run_for(300);
    assert_int_equal(ask(edge, "e", 9, 2000), 0);
    assert_true(run_until_count(&answered, 1, 3000));
    assert_int_equal(last_status, 0);
    tg_bus_free(edge);
    tg_bus_free(queue);
}

static void calls_in_flight_fail_when_the_server_dies(void **state)
{
    struct tg_bus *queue = open_bus("queue", "queue-1");
    struct tg_bus *edge = open_bus("edge", "edge-1");

    (void)state;
    reset();
    mute = true;
    assert_int_equal(tg_bus_serve(queue, TG_MESSAGE_QUEUE_LEASE, on_lease, NULL), 0);
    run_for(100);
    assert_int_equal(ask(edge, "e", 1, 30000), 0);
    assert_true(run_until_count(&handled, 1, 2000));
    server_stop();
    assert_true(run_until_count(&answered, 1, 3000));
    assert_int_equal(last_status, TG_ERR_DISCONNECTED);
    run_for(1500);
    assert_true(longest_gap_us < 200000);
    server_start();
    assert_true(run_until(connected, edge, 10000));
    assert_true(run_until(connected, queue, 10000));
    mute = false;
    run_for(300);
    assert_int_equal(ask(edge, "e", 5, 2000), 0);
    assert_true(run_until_count(&answered, 2, 3000));
    assert_int_equal(last_status, 0);
    assert_int_equal(last_index, 5);
    tg_bus_free(edge);
    tg_bus_free(queue);
}

static void refused_credentials_are_tried_again(void **state)
{
    struct tg_bus *queue = open_bus("queue", "queue-1");
    struct tg_bus *edge = open_bus("edge", "edge-1");

    (void)state;
    reset();
    assert_int_equal(tg_bus_serve(queue, TG_MESSAGE_QUEUE_LEASE, on_lease, NULL), 0);
    server_stop();
    server_start_as(true);
    assert_true(run_until(disconnected, edge, 3000));
    run_for(4000); /* long enough for the library to give up */
    assert_true(longest_gap_us < 200000);
    assert_int_equal(ask(edge, "e", 1, 1000), TG_ERR_DISCONNECTED);
    server_stop();
    server_start();
    assert_true(run_until(connected, edge, 10000));
    assert_true(run_until(connected, queue, 10000));
    run_for(200);
    assert_int_equal(ask(edge, "e", 5, 2000), 0);
    assert_true(run_until_count(&answered, 1, 3000));
    assert_int_equal(last_status, 0);
    tg_bus_free(edge);
    tg_bus_free(queue);
}

static struct tg_bus *flooded;

/* Too slow for what comes, until that was noticed. */
static void on_flood(void *context, struct tg_bus_incoming *take_incoming)
{
    uint64_t until_us = tg_now_us() + (tg_bus_healthy(flooded) ? 1000 : 0);

    (void)context;
    handled++;
    while (tg_now_us() < until_us) { /* at work */
    }
    tg_bus_release(take_incoming);
}

static bool unhealthy(const void *bus)
{
    return !tg_bus_healthy(bus);
}

static bool healthy(const void *bus)
{
    return tg_bus_healthy(bus);
}

static void a_slow_consumer_is_bounded_and_seen(void **state)
{
    Tidegate__V1__Presence presence = TIDEGATE__V1__PRESENCE__INIT;
    struct tg_bus *edge = open_bus("edge", "edge-1");
    unsigned before;

    (void)state;
    reset();
    flooded = open_bus("queue", "queue-1");
    assert_int_equal(tg_bus_serve(flooded, TG_MESSAGE_QUEUE_PRESENCE, on_flood, NULL), 0);
    run_for(100);
    for (int i = 0; i < 3 * TG_MAX_BUS_PENDING / 2 && tg_bus_healthy(flooded); i++) {
        assert_int_equal(tg_bus_publish(edge, TG_MESSAGE_QUEUE_PRESENCE, "a", &presence.base), 0);
        if (i % 1000 == 0) {
            uv_run(&loop, UV_RUN_NOWAIT);
        }
    }
    assert_true(run_until(unhealthy, flooded, 20000));
    assert_true(tg_bus_connected(flooded));
    assert_true(run_until(healthy, flooded, 10000));
    before = handled;
    assert_int_equal(tg_bus_publish(edge, TG_MESSAGE_QUEUE_PRESENCE, "a", &presence.base), 0);
    assert_true(run_until_count(&handled, before + 1, 3000));
    tg_bus_free(flooded);
    tg_bus_free(edge);
}

static void answer_garbage(natsConnection *connection, natsSubscription *subscription,
                           natsMsg *message, void *context)
{
    (void)subscription;
    (void)context;
    natsConnection_PublishString(connection, natsMsg_GetReply(message), "\xff\xff garbage");
    natsMsg_Destroy(message);
}

static void garbage_answers_are_told_apart(void **state)
{
    struct tg_bus *edge = open_bus("edge", "edge-1");
    natsConnection *raw = NULL;
    natsSubscription *subscription = NULL;

    (void)state;
    reset();
    assert_int_equal(natsConnection_ConnectTo(&raw, url), NATS_OK);
    assert_int_equal(natsConnection_Subscribe(&subscription, raw, "tidegate.v1.queue.*.lease",
                                              answer_garbage, NULL),
                     NATS_OK);
    assert_int_equal(natsConnection_Flush(raw), NATS_OK);
    assert_int_equal(ask(edge, "e", 1, 2000), 0);
    assert_true(run_until_count(&answered, 1, 3000));
    assert_int_equal(last_status, TG_ERR_MALFORMED);
    /* Answers to calls never made, and to no call at all. */
    assert_int_equal(
        natsConnection_PublishString(raw, "_INBOX.tidegate.edge-1.0000000000010000", "late"),
        NATS_OK);
    assert_int_equal(natsConnection_PublishString(raw, "_INBOX.tidegate.edge-1.x", "odd"), NATS_OK);
    assert_int_equal(
        natsConnection_PublishString(raw, "_INBOX.tidegate.edge-1.ffffffffffffffff", "odd"),
        NATS_OK);
    run_for(200);
    assert_int_equal(answered, 1);
    natsSubscription_Destroy(subscription);
    natsConnection_Destroy(raw);
    tg_bus_free(edge);
}

static void opens_before_the_server_is_there(void **state)
{
    struct tg_bus *queue = NULL;
    struct tg_bus *edge = NULL;

    (void)state;
    reset();
    server_stop();
    assert_int_equal(open_as(url, "queue", "queue-1", &queue), 0);
    assert_int_equal(open_as(url, "edge", "edge-1", &edge), 0);
    assert_int_equal(tg_bus_serve(queue, TG_MESSAGE_QUEUE_LEASE, on_lease, NULL), 0);
    assert_false(tg_bus_connected(edge));
    assert_int_equal(ask(edge, "e", 1, 1000), TG_ERR_DISCONNECTED);
    run_for(1000);
    assert_true(longest_gap_us < 200000);
    server_start();
    assert_true(run_until(connected, edge, 10000));
    assert_true(run_until(connected, queue, 10000));
    run_for(100);
    assert_int_equal(ask(edge, "e", 3, 2000), 0);
    assert_true(run_until_count(&answered, 1, 3000));
    assert_int_equal(last_status, 0);
    tg_bus_free(edge);
    tg_bus_free(queue);
}

static void a_wrong_address_is_refused(void **state)
{
    struct tg_bus *bus = NULL;

    (void)state;
    assert_int_not_equal(open_as("nats://127.0.0.1:port", "queue", "q", &bus), 0);
    assert_int_not_equal(open_as(url, "queue", "q.1", &bus), 0);
    assert_null(bus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),
        cmocka_unit_test(outcomes_of_calls),
        cmocka_unit_test(calls_are_bounded),
        cmocka_unit_test(wrong_names_and_long_bodies_are_not_sent),
        cmocka_unit_test(garbage_never_reaches_a_handler),
        cmocka_unit_test(decoding_is_bounded),
        cmocka_unit_test(a_message_outlives_its_bus),
        cmocka_unit_test(everybody_hears_and_may_answer),
        cmocka_unit_test(events_are_stored_once),
        cmocka_unit_test(the_service_protocol_is_spoken),
        cmocka_unit_test(case_nats_frozen),
        cmocka_unit_test(calls_in_flight_fail_when_the_server_dies),
        cmocka_unit_test(refused_credentials_are_tried_again),
        cmocka_unit_test(a_slow_consumer_is_bounded_and_seen),
        cmocka_unit_test(garbage_answers_are_told_apart),
        cmocka_unit_test(opens_before_the_server_is_there),
        cmocka_unit_test(a_wrong_address_is_refused),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
