/* SPDX-License-Identifier: Apache-2.0
 * The HTTP server's connection, from bytes to requests to answers, without sockets: the functions
 * of libuv it calls are replaced at link time (--wrap), so that one byte string also chooses where
 * reads are cut, how much each write takes, and when the handler answers.
 *   1. The same bytes give the same requests, the same answers and the same end, however they are
 *      cut and however slow the peer and the handler are.
 *   2. A request hidden in the body, in a header or in the target of another one never runs. */
#include "tests/fuzz/fuzz.h"

#include "lib/io/http_server.h"

enum { RAW_BYTES_MAX = 20000, SEEN_BYTES = 262144, STEPS_MAX = 200000, HIDDEN_BYTES_MAX = 600 };

/* One connection's world. */
struct world {
    uv_loop_t loop;
    struct tg_http_server server;
    struct http_connection *slots[1];
    struct http_connection *connection;
    struct choice *choice; /* NULL: everything at once */
    const uint8_t *raw;
    size_t length, at;
    uv_alloc_cb on_allocate;
    uv_read_cb on_read; /* NULL: not reading */
    uv_write_t *write;
    uv_write_cb on_written;
    uv_shutdown_t *shutdown;
    uv_shutdown_cb on_shut_down;
    uv_close_cb on_closed;
    uint64_t unanswered; /* exchange that waits for its answer; 0 = none */
    bool ended;          /* shut down or closed by the server */
};

/* What came of it. */
struct outcome {
    char seen[SEEN_BYTES]; /* requests, as the handler saw them */
    char sent[SEEN_BYTES]; /* answers, without dates and interim ones */
    size_t seen_length, sent_length;
    unsigned requests;
    bool ended;
};

static struct world world;
static struct outcome *outcome;

static uint64_t choose(uint64_t bound, uint64_t otherwise)
{
    return world.choice != NULL ? choice_below(world.choice, bound) : otherwise;
}

static void append(char *text, size_t *length, const void *bytes, size_t count)
{
    HOLDS(*length + count <= SEEN_BYTES);
    memcpy(text + *length, bytes, count);
    *length += count;
}

/* ---- libuv, as far as a connection uses it ---- */

int __wrap_uv_read_start(uv_stream_t *stream, uv_alloc_cb on_allocate, uv_read_cb on_read);
int __wrap_uv_read_stop(uv_stream_t *stream);
int __wrap_uv_try_write(uv_stream_t *stream, const uv_buf_t buffers[], unsigned count);
int __wrap_uv_write(uv_write_t *request, uv_stream_t *stream, const uv_buf_t buffers[],
                    unsigned count, uv_write_cb on_written);
int __wrap_uv_shutdown(uv_shutdown_t *request, uv_stream_t *stream, uv_shutdown_cb on_shut_down);
void __wrap_uv_close(uv_handle_t *handle, uv_close_cb on_closed);

int __wrap_uv_read_start(uv_stream_t *stream, uv_alloc_cb on_allocate, uv_read_cb on_read)
{
    HOLDS(world.on_closed == NULL);
    world.on_allocate = on_allocate;
    world.on_read = on_read;
    return 0;
}

int __wrap_uv_read_stop(uv_stream_t *stream)
{
    world.on_read = NULL;
    return 0;
}

int __wrap_uv_try_write(uv_stream_t *stream, const uv_buf_t buffers[], unsigned count)
{
    static const char interim[] = "HTTP/1.1 100 Continue\r\n\r\n";
    size_t total = 0;
    HOLDS(world.write == NULL && world.on_closed == NULL && world.shutdown == NULL);
    for (unsigned i = 0; i < count; i++) {
        total += buffers[i].len;
    }
    if (total == sizeof(interim) - 1 && memcmp(buffers[0].base, interim, total) == 0) {
        return (int)total;
    }
    size_t take = total;
    if (choose(4, 0) == 1) {
        take = choose(total + 1, total);
    }
    size_t left = take;
    for (unsigned i = 0; i < count; i++) {
        size_t part = buffers[i].len < left ? buffers[i].len : left;
        append(outcome->sent, &outcome->sent_length, buffers[i].base, part);
        left -= part;
    }
    return take > 0 || total == 0 ? (int)take : UV_EAGAIN;
}

int __wrap_uv_write(uv_write_t *request, uv_stream_t *stream, const uv_buf_t buffers[],
                    unsigned count, uv_write_cb on_written)
{
    HOLDS(world.write == NULL && count == 1);
    append(outcome->sent, &outcome->sent_length, buffers[0].base, buffers[0].len);
    request->handle = stream;
    world.write = request;
    world.on_written = on_written;
    return 0;
}

int __wrap_uv_shutdown(uv_shutdown_t *request, uv_stream_t *stream, uv_shutdown_cb on_shut_down)
{
    HOLDS(world.shutdown == NULL);
    request->handle = stream;
    world.shutdown = request;
    world.on_shut_down = on_shut_down;
    world.ended = true;
    return 0;
}

void __wrap_uv_close(uv_handle_t *handle, uv_close_cb on_closed)
{
    HOLDS(world.on_closed == NULL && handle == (uv_handle_t *)&world.connection->tcp);
    world.on_closed = on_closed;
    world.on_read = NULL;
    world.ended = true;
}

/* ---- the handler ---- */

static void answer(struct tg_http_exchange *exchange)
{
    static char large[9000];
    const char *path = tg_http_path(exchange);
    struct tg_http_answer reply = {.status = 200, .body = path, .body_length = strlen(path)};
    if (path[0] == '/' && path[1] == 'L' && outcome->requests <= 8) { /* not in one piece */
        memset(large, 'x', sizeof(large));
        reply.body = large;
        reply.body_length = sizeof(large);
    }
    if (path[0] == '/' && path[1] == 'N') {
        reply.status = 204;
        reply.headers = "X-Test: 1\r\n";
    }
    tg_http_answer(exchange, &reply);
}

static void see(const char *text)
{
    append(outcome->seen, &outcome->seen_length, text, strlen(text) + 1);
}

static void on_request(void *context, struct tg_http_exchange *exchange)
{
    size_t body_length = 0;
    const uint8_t *body = tg_http_body(exchange, &body_length);
    char method = (char)('0' + (int)tg_http_method(exchange));
    HOLDS(body_length <= TG_MAX_HTTP_BODY_BYTES && world.unanswered == 0);
    outcome->requests++;
    append(outcome->seen, &outcome->seen_length, &method, 1);
    see(tg_http_path(exchange));
    see(tg_http_query(exchange));
    for (uint16_t i = 0; i < exchange->head.header_count; i++) {
        see(exchange->text + exchange->head.headers[i].name);
        see(exchange->text + exchange->head.headers[i].value);
    }
    append(outcome->seen, &outcome->seen_length, body, body_length);
    append(outcome->seen, &outcome->seen_length, "\n", 1);
    if (choose(4, 0) == 1) {
        world.unanswered = tg_http_id(exchange);
    } else {
        answer(exchange);
    }
}

/* ---- a run ---- */

static void connect_peer(void)
{
    struct http_connection *connection = calloc(1, sizeof(*connection));
    struct tg_http_server *server = &world.server;
    HOLDS(connection != NULL);
    for (int i = 0; i < HTTP_STATES; i++) {
        server->lists[i].previous = server->lists[i].next = &server->lists[i];
    }
    server->loop = &world.loop;
    server->handler = on_request;
    server->slots = world.slots;
    server->connections_max = 1;
    server->handles = 2;
    server->open_connections = 1;
    server->free_slots = calloc(1, sizeof(*server->free_slots));
    HOLDS(server->free_slots != NULL);
    connection->tcp.data = connection;
    connection->server = server;
    connection->link.previous = connection->link.next = &connection->link;
    world.slots[0] = world.connection = connection;
    http_enter(connection, HTTP_IDLE);
    http_connection_start(connection);
}

static void deliver(void)
{
    uv_buf_t buffer = {0};
    size_t left = world.length - world.at, take = left;
    world.on_allocate((uv_handle_t *)&world.connection->tcp, 65536, &buffer);
    take = take < buffer.len ? take : buffer.len;
    if (world.choice != NULL) {
        size_t most = choice_below(world.choice, 4) == 0 ? take : 24;
        size_t cut = 1 + choice_below(world.choice, most);
        take = cut < take ? cut : take;
    }
    memcpy(buffer.base, world.raw + world.at, take);
    world.at += take;
    world.on_read((uv_stream_t *)&world.connection->tcp, (ssize_t)take, &buffer);
}

static void finish_write(void)
{
    uv_write_t *request = world.write;
    world.write = NULL;
    world.on_written(request, 0);
}

static void answer_late(void)
{
    struct tg_http_exchange *exchange = tg_http_find(&world.server, world.unanswered);
    world.unanswered = 0;
    HOLDS(exchange != NULL); /* nobody closed the connection meanwhile */
    answer(exchange);
}

/* One thing that can happen next; false when nothing is left. */
static bool step(void)
{
    void (*able[3])(void);
    size_t count = 0;
    if (world.on_closed != NULL) {
        return false;
    }
    if (world.write != NULL) {
        able[count++] = finish_write;
    }
    if (world.unanswered != 0) {
        able[count++] = answer_late;
    }
    if (world.on_read != NULL && world.at < world.length) {
        able[count++] = deliver;
    }
    if (count > 0) {
        able[choose(count, 0)]();
    }
    return count > 0;
}

/* Everything closed, as libuv would: what is outstanding is cancelled first. */
static void close_peer(void)
{
    struct tg_http_server *server = &world.server;
    http_connection_close(world.connection);
    if (world.write != NULL) {
        world.on_written(world.write, UV_ECANCELED);
    }
    if (world.shutdown != NULL) {
        world.on_shut_down(world.shutdown, 0);
    }
    world.on_closed((uv_handle_t *)&world.connection->tcp);
    HOLDS(server->in_progress == 0 && server->open_connections == 0 && world.slots[0] == NULL);
    while (server->spares != NULL) {
        struct tg_http_exchange *next = server->spares->next_spare;
        free(server->spares);
        server->spares = next;
    }
    free(server->free_slots);
}

/* Dates differ between runs. */
static void cut_dates(struct outcome *result)
{
    char *at = result->sent, *end = result->sent + result->sent_length;
    for (char *date = memmem(at, (size_t)(end - at), "\r\nDate: ", 8); date != NULL;
         date = memmem(at, (size_t)(end - at), "\r\nDate: ", 8)) {
        char *behind = memmem(date + 2, (size_t)(end - date - 2), "\r\n", 2);
        HOLDS(behind != NULL);
        memmove(date, behind, (size_t)(end - behind));
        end -= behind - date;
        at = date;
    }
    result->sent_length = (size_t)(end - result->sent);
}

static void run(const uint8_t *raw, size_t length, struct choice *choice, struct outcome *out)
{
    memset(&world, 0, sizeof(world));
    outcome = out;
    out->seen_length = out->sent_length = out->requests = 0;
    world.raw = raw;
    world.length = length;
    world.choice = choice;
    connect_peer();
    for (int steps = 0; step(); steps++) {
        HOLDS(steps < STEPS_MAX);
    }
    out->ended = world.ended;
    close_peer();
    cut_dates(out);
}

/* Two runs over the same bytes: at once, and as the choices say. */
static const struct outcome *run_both(const uint8_t *raw, size_t length, struct choice *choice)
{
    static struct outcome whole, cut;
    run(raw, length, NULL, &whole);
    run(raw, length, choice, &cut);
    HOLDS(whole.requests == cut.requests && whole.ended == cut.ended);
    HOLDS(whole.seen_length == cut.seen_length);
    HOLDS(memcmp(whole.seen, cut.seen, whole.seen_length) == 0);
    HOLDS(whole.sent_length == cut.sent_length);
    HOLDS(memcmp(whole.sent, cut.sent, whole.sent_length) == 0);
    return &whole;
}

/* ---- hiding a request ---- */

static size_t put(uint8_t *raw, size_t at, const void *bytes, size_t length)
{
    memcpy(raw + at, bytes, length);
    return at + length;
}

static size_t put_text(uint8_t *raw, size_t at, const char *text)
{
    return put(raw, at, text, strlen(text));
}

/* Free bytes without a line's proper end in them: a bare CR or LF may be there. */
static size_t put_line(uint8_t *raw, size_t at, struct choice *choice, size_t length)
{
    size_t begin = at;
    for (size_t i = 0; i < length; i++) {
        uint8_t byte = choice_byte(choice);
        if (byte == '\n' && at > begin && raw[at - 1] == '\r') {
            continue;
        }
        raw[at++] = byte;
    }
    return at;
}

/* A header line: free, or one that matters for framing, as it is or with a few changes. */
static size_t put_header(uint8_t *raw, size_t at, struct choice *choice)
{
    static const char *const lines[] = {"Content-Length: 0",
                                        "Content-Length: 5",
                                        "Transfer-Encoding: chunked",
                                        "Transfer-Encoding: identity",
                                        "transfer-encoding:chunked, chunked",
                                        "Content-Length : 3",
                                        " Transfer-Encoding: chunked",
                                        "X: y\nContent-Length: 0",
                                        "X: y\rTransfer-Encoding: chunked",
                                        "X: y\n\nGET /hidden HTTP/1.1\nHost: h\n\n",
                                        ": \tContent-Length: 0",
                                        "Connection: close",
                                        "Connection: keep-alive, Content-Length",
                                        "Expect: 100-continue",
                                        "Upgrade: h2c",
                                        "Trailer: Content-Length"};
    char line[96];
    size_t kind = choice_below(choice, 2 * COUNT_OF(lines)), end = at;
    if (kind >= COUNT_OF(lines)) {
        end = put_line(raw, at, choice, 1 + choice_below(choice, 48));
    } else {
        size_t length = strlen(lines[kind]);
        memcpy(line, lines[kind], length);
        if (choice_below(choice, 2) == 1) {
            choice_damage(choice, line, &length, sizeof(line));
        }
        struct choice damaged = {(const uint8_t *)line, length, 0};
        end = put_line(raw, at, &damaged, length);
    }
    return end > at ? put_text(raw, end, "\r\n") : at; /* an empty one would end the head */
}

/* The body as chunks of chosen sizes. */
static size_t put_chunks(uint8_t *raw, size_t at, struct choice *choice, const uint8_t *body,
                         size_t length)
{
    char size[16];
    while (length > 0) {
        size_t take = 1 + choice_below(choice, length);
        (void)snprintf(size, sizeof(size), choice_below(choice, 2) == 0 ? "%zx\r\n" : "%04zX\r\n",
                       take);
        at = put_text(raw, at, size);
        at = put(raw, at, body, take);
        at = put_text(raw, at, "\r\n");
        body += take;
        length -= take;
    }
    return put_text(raw, at, "0\r\n\r\n");
}

/* A body that is a request itself, with free bytes around it. */
static size_t make_body(struct choice *choice, uint8_t out_body[HIDDEN_BYTES_MAX])
{
    static const char hidden[] = "\r\n\r\nGET /hidden HTTP/1.1\r\nHost: h\r\n\r\n";
    size_t before = choice_below(choice, 64), after = choice_below(choice, 64);
    choice_bytes(choice, out_body, before);
    size_t at = put_text(out_body, before, hidden + 2 * choice_below(choice, 3));
    choice_bytes(choice, out_body + at, after);
    return at + after;
}

/* One request with free target and free header lines around a proper framing, then another one.
 * Whatever the free parts are, the handler sees nothing, or the first with exactly its body and
 * then perhaps the second. */
static void hide(struct choice *choice)
{
    static uint8_t raw[RAW_BYTES_MAX];
    uint8_t body[HIDDEN_BYTES_MAX];
    char framing[64];
    size_t body_length = make_body(choice, body), at = put_text(raw, 0, "POST /");
    bool chunked = choice_below(choice, 2) == 1;
    at = put_line(raw, at, choice, choice_below(choice, 32));
    at = put_text(raw, at, " HTTP/1.1\r\nHost: a\r\n");
    for (uint64_t lines = choice_below(choice, 3); lines > 0; lines--) {
        at = put_header(raw, at, choice);
    }
    (void)snprintf(framing, sizeof(framing), "Content-Length: %zu\r\n\r\n", body_length);
    at = put_text(raw, at, chunked ? "Transfer-Encoding: chunked\r\n\r\n" : framing);
    at = chunked ? put_chunks(raw, at, choice, body, body_length) : put(raw, at, body, body_length);
    at = put_text(raw, at, "GET /after HTTP/1.1\r\nHost: a\r\n\r\n");
    const struct outcome *result = run_both(raw, at, choice);
    HOLDS(result->requests <= 2);
    if (result->requests >= 1) {
        HOLDS(result->seen[0] == '0' + TG_HTTP_POST);
        HOLDS(memmem(result->seen, result->seen_length, body, body_length) != NULL);
    }
    if (result->requests == 2) {
        static const char second[] = "\n0/after\0\0host\0a\0\n";
        HOLDS(result->seen_length > sizeof(second) - 1);
        HOLDS(memcmp(result->seen + result->seen_length - (sizeof(second) - 1), second,
                     sizeof(second) - 1) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct choice choice = {bytes, size, 0};
    if (choice_byte(&choice) % 2 == 1) {
        hide(&choice);
        return 0;
    }
    size_t plan_length = choice_byte(&choice);
    struct choice plan = {bytes + choice.at, 0, 0};
    plan.length = plan_length < size - choice.at ? plan_length : size - choice.at;
    const uint8_t *raw = bytes + choice.at + plan.length;
    size_t length = size - choice.at - plan.length;
    if (size > 0 && length <= RAW_BYTES_MAX) {
        (void)run_both(raw, length, &plan);
    }
    return 0;
}
