/* SPDX-License-Identifier: Apache-2.0
 * Bytes in, answers out. One request in progress per connection: what a pipelining peer sends
 * meanwhile is kept, up to one read, and reading stops until the answer is written. */
#include "lib/io/http_problem.h"
#include "lib/io/http_server.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void consume(struct http_connection *connection, const char *data, size_t length);

/* ---- exchanges ---- */

static struct tg_http_exchange *exchange_take(struct http_connection *connection)
{
    struct tg_http_server *server = connection->server;
    struct tg_http_exchange *exchange = server->spares;
    if (exchange != NULL) {
        server->spares = exchange->next_spare;
        server->spare_count--;
    } else {
        exchange = malloc(sizeof(*exchange));
        if (exchange == NULL) {
            return NULL;
        }
    }
    exchange->connection = connection;
    exchange->text = exchange->small;
    exchange->length = 0;
    exchange->head_length = 0;
    exchange->peer[0] = '\0';
    memset(&exchange->scan, 0, sizeof(exchange->scan));
    memset(&exchange->body, 0, sizeof(exchange->body));
    exchange->id = ++server->sequence << 16 | connection->slot;
    connection->exchange = exchange;
    return exchange;
}

static void exchange_give_back(struct http_connection *connection)
{
    struct tg_http_server *server = connection->server;
    struct tg_http_exchange *exchange = connection->exchange;
    connection->exchange = NULL;
    if (exchange->text != exchange->small) {
        free(exchange->text);
    }
    if (server->spare_count == TG_MAX_HTTP_SPARE_EXCHANGES) {
        free(exchange);
        return;
    }
    exchange->next_spare = server->spares;
    server->spares = exchange;
    server->spare_count++;
}

/* Room for `length` bytes of text. False when out of memory. */
static bool exchange_room(struct tg_http_exchange *exchange, size_t length)
{
    if (exchange->text != exchange->small || length < HTTP_SMALL_BYTES) {
        return true;
    }
    char *text = malloc(HTTP_FULL_BYTES);
    if (text == NULL) {
        return false;
    }
    memcpy(text, exchange->small, exchange->length);
    exchange->text = text;
    return true;
}

/* ---- writing ---- */

static void begin_linger(struct http_connection *connection);

/* The answer is with the kernel: close, linger, or wait for the next request. */
static void after_answer(struct http_connection *connection)
{
    if (connection->linger_after) {
        begin_linger(connection);
    } else if (connection->close_after || connection->peer_done || connection->server->draining) {
        http_connection_close(connection);
    } else {
        http_enter(connection, HTTP_IDLE);
    }
}

/* Takes up the bytes kept, and reading. */
static void resume(struct http_connection *connection)
{
    char *kept = connection->kept;
    uint32_t length = connection->kept_length;
    connection->kept = NULL;
    connection->kept_length = 0;
    if (kept != NULL) {
        consume(connection, kept, length);
        free(kept);
    }
    if (connection->state != HTTP_CLOSING && !connection->reading && connection->kept == NULL &&
        !connection->peer_done) {
        http_connection_start(connection);
    }
}

static void on_written(uv_write_t *request, int status)
{
    struct http_connection *connection = request->handle->data;
    free(connection->output);
    connection->output = NULL;
    if (connection->state == HTTP_CLOSING) {
        return;
    }
    if (status != 0) {
        http_connection_close(connection);
        return;
    }
    after_answer(connection);
    resume(connection);
}

/* Queues what the kernel did not take: `skip` bytes of the parts are sent already. */
static void write_rest(struct http_connection *connection, const uv_buf_t parts[2], size_t skip)
{
    size_t total = parts[0].len + parts[1].len;
    struct http_output *output = malloc(sizeof(*output) + total - skip);
    if (output == NULL) {
        http_connection_close(connection);
        return;
    }
    output->length = total - skip;
    size_t first = skip < parts[0].len ? parts[0].len - skip : 0;
    size_t second_skip = skip < parts[0].len ? 0 : skip - parts[0].len;
    memcpy(output->bytes, parts[0].base + parts[0].len - first, first);
    memcpy(output->bytes + first, parts[1].base + second_skip, parts[1].len - second_skip);
    connection->output = output;
    uv_buf_t buffer = uv_buf_init(output->bytes, (unsigned)output->length);
    http_enter(connection, HTTP_WRITING);
    if (uv_write(&output->request, (uv_stream_t *)&connection->tcp, &buffer, 1, on_written) != 0) {
        free(output);
        connection->output = NULL;
        http_connection_close(connection);
    }
}

static void write_answer(struct http_connection *connection, const uv_buf_t parts[2])
{
    int written = uv_try_write((uv_stream_t *)&connection->tcp, parts, parts[1].len > 0 ? 2 : 1);
    if (written < 0 && written != UV_EAGAIN) {
        http_connection_close(connection);
        return;
    }
    size_t sent = written > 0 ? (size_t)written : 0;
    if (sent < parts[0].len + parts[1].len) {
        write_rest(connection, parts, sent);
        return;
    }
    after_answer(connection);
}

/* Small answers leave in one piece; larger bodies are not copied. */
static void send_parts(struct http_connection *connection, const struct tg_http_answer *answer,
                       bool head_only)
{
    char *output = connection->server->output;
    const size_t output_bytes = sizeof(connection->server->output);
    size_t header_bytes = answer->headers != NULL ? strlen(answer->headers) : 0;
    size_t head_capacity = TG_HTTP_ANSWER_HEAD_BYTES + header_bytes;
    char *text = head_capacity <= output_bytes ? output : malloc(head_capacity);
    if (text == NULL) {
        http_connection_close(connection);
        return;
    }
    enum tg_http_persistence persistence = TG_HTTP_KEEP;
    if (connection->close_after || connection->linger_after) {
        persistence = TG_HTTP_CLOSE;
    } else if (connection->exchange != NULL && connection->exchange->head.http_1_0) {
        persistence = TG_HTTP_KEEP_SAY;
    }
    size_t length = tg_http_answer_head(answer, tg_now_wall_coarse(), persistence, text);
    size_t body_length =
        head_only || answer->status == 204 || answer->status == 304 ? 0 : answer->body_length;
    uv_buf_t parts[2] = {uv_buf_init(text, (unsigned)length),
                         uv_buf_init((char *)answer->body, (unsigned)body_length)};
    if (text == output && length + body_length <= output_bytes && body_length > 0) {
        memcpy(output + length, answer->body, body_length);
        parts[0].len += body_length;
        parts[1].len = 0;
    }
    write_answer(connection, parts);
    if (text != output) {
        free(text);
    }
}

void tg_http_answer(struct tg_http_exchange *exchange, const struct tg_http_answer *answer)
{
    struct http_connection *connection = exchange->connection;
    assert(connection->state == HTTP_ANSWERING && connection->exchange == exchange);
    connection->close_after = exchange->head.close || connection->server->draining;
    connection->server->in_progress--;
    connection->state = HTTP_BODY_IN; /* no longer in progress, not idle either */
    send_parts(connection, answer, exchange->head.method == TG_HTTP_HEAD);
    if (connection->exchange != NULL) {
        exchange_give_back(connection);
    }
    if (!connection->dispatching && connection->state != HTTP_CLOSING &&
        connection->state != HTTP_WRITING) {
        resume(connection);
    }
}

/* ---- refusing what was not understood ---- */

static void on_shut_down(uv_shutdown_t *request, int status)
{
    free(request);
}

/* Closing at once would reset the connection while the peer still sends, and it might never see the
 * answer. */
static void begin_linger(struct http_connection *connection)
{
    uv_shutdown_t *request = malloc(sizeof(*request));
    if (request == NULL ||
        uv_shutdown(request, (uv_stream_t *)&connection->tcp, on_shut_down) != 0) {
        free(request);
        http_connection_close(connection);
        return;
    }
    if (connection->peer_done) {
        http_connection_close(connection);
        return;
    }
    http_enter(connection, HTTP_LINGERING);
}

static void refuse(struct http_connection *connection, enum tg_reason reason)
{
    char body[TG_HTTP_PROBLEM_BYTES];
    struct tg_http_answer answer = {
        .status = tg_reason_row(reason)->status,
        .content_type = TG_HTTP_PROBLEM_TYPE,
        .headers = "Cache-Control: no-store\r\n",
        .body = body,
        .body_length = tg_http_problem(reason, NULL, "", body),
    };
    tg_metric_add(TG_METRIC_HTTP_REFUSALS, tg_reason_code(reason), 1);
    connection->linger_after = true;
    send_parts(connection, &answer, false);
    if (connection->exchange != NULL) {
        exchange_give_back(connection);
    }
}

/* ---- reading ---- */

static void dispatch(struct http_connection *connection)
{
    struct tg_http_server *server = connection->server;
    struct tg_http_exchange *exchange = connection->exchange;
    exchange->text[exchange->length] = '\0';
    exchange->received_us = tg_now_us();
    http_enter(connection, HTTP_ANSWERING);
    server->in_progress++;
    connection->dispatching = true;
    server->handler(server->context, exchange);
    connection->dispatching = false;
}

/* The head is whole: judge it, then wait for the body if there is one. `more`: further bytes are
 * here already. */
static void end_head(struct http_connection *connection, bool more)
{
    struct tg_http_exchange *exchange = connection->exchange;
    exchange->head_length = exchange->length;
    enum tg_reason reason =
        tg_http_head_parse(exchange->text, exchange->length, exchange->scan.start, &exchange->head);
    if (reason != TG_REASON_NONE) {
        refuse(connection, reason);
        return;
    }
    if (exchange->head.framing == TG_HTTP_NO_BODY) {
        dispatch(connection);
        return;
    }
    size_t body_bytes = exchange->head.framing == TG_HTTP_LENGTH ? exchange->head.content_length
                                                                 : TG_MAX_HTTP_BODY_BYTES;
    if (!exchange_room(exchange, exchange->head_length + body_bytes)) {
        http_connection_close(connection);
        return;
    }
    exchange->body.framing = exchange->head.framing;
    exchange->body.remaining =
        exchange->head.framing == TG_HTTP_LENGTH ? exchange->head.content_length : 0;
    http_enter(connection, HTTP_BODY_IN);
    if (exchange->head.expects && !more) {
        uv_buf_t interim = uv_buf_init((char *)"HTTP/1.1 100 Continue\r\n\r\n", 25);
        if (uv_try_write((uv_stream_t *)&connection->tcp, &interim, 1) != (int)interim.len) {
            http_connection_close(connection);
        }
    }
}

/* Returns how many bytes belonged to the head. */
static size_t take_head(struct http_connection *connection, const char *data, size_t length)
{
    struct tg_http_exchange *exchange = connection->exchange;
    uint32_t before = exchange->length;
    size_t take =
        length < TG_MAX_HTTP_HEAD_BYTES - before ? length : TG_MAX_HTTP_HEAD_BYTES - before;
    if (!exchange_room(exchange, before + take)) {
        http_connection_close(connection);
        return length;
    }
    memcpy(exchange->text + before, data, take);
    exchange->length = before + (uint32_t)take;
    enum tg_reason reason = tg_http_scan(&exchange->scan, exchange->text, exchange->length);
    if (reason != TG_REASON_NONE) {
        refuse(connection, reason);
        return length;
    }
    if (exchange->scan.end) {
        exchange->length = exchange->scan.seen;
        size_t taken = exchange->scan.seen - before;
        end_head(connection, taken < length);
        return taken;
    }
    if (exchange->length == TG_MAX_HTTP_HEAD_BYTES) {
        refuse(connection,
               exchange->scan.lines == 0 ? TG_REASON_URI_TOO_LONG : TG_REASON_HEAD_TOO_LARGE);
        return length;
    }
    return take;
}

static size_t take_body(struct http_connection *connection, const char *data, size_t length)
{
    struct tg_http_exchange *exchange = connection->exchange;
    assert(exchange != NULL && exchange->text != NULL); /* the state says so */
    size_t taken = 0;
    enum tg_reason reason = tg_http_body_feed(&exchange->body, data, length,
                                              exchange->text + exchange->head_length, &taken);
    if (reason != TG_REASON_NONE) {
        refuse(connection, reason);
        return length;
    }
    exchange->length = exchange->head_length + exchange->body.stored;
    if (exchange->body.end) {
        dispatch(connection);
    }
    return taken;
}

static void keep(struct http_connection *connection, const char *data, size_t length)
{
    assert(connection->kept == NULL && length <= TG_MAX_HTTP_READ_BYTES);
    uv_read_stop((uv_stream_t *)&connection->tcp);
    connection->reading = false;
    connection->kept = malloc(length);
    if (connection->kept == NULL) {
        http_connection_close(connection);
        return;
    }
    memcpy(connection->kept, data, length);
    connection->kept_length = (uint32_t)length;
}

static void consume(struct http_connection *connection, const char *data, size_t length)
{
    while (length > 0) {
        size_t taken = length;
        switch ((enum http_state)connection->state) {
        case HTTP_IDLE:
            http_enter(connection, HTTP_HEAD_IN);
            if (exchange_take(connection) == NULL) {
                http_connection_close(connection);
                return;
            }
            taken = 0;
            break;
        case HTTP_HEAD_IN:
            taken = take_head(connection, data, length);
            break;
        case HTTP_BODY_IN:
            taken = take_body(connection, data, length);
            break;
        case HTTP_ANSWERING:
        case HTTP_WRITING:
            if (!connection->linger_after) {
                keep(connection, data, length);
            }
            return;
        case HTTP_LINGERING:
        case HTTP_CLOSING:
        case HTTP_STATES:
            return;
        }
        data += taken;
        length -= taken;
    }
}

static void on_allocate(uv_handle_t *handle, size_t suggested, uv_buf_t *out_buffer)
{
    struct http_connection *connection = handle->data;
    *out_buffer = uv_buf_init(connection->server->input, sizeof(connection->server->input));
}

/* The peer has finished sending; an answer in progress is still given. */
static void end_of_input(struct http_connection *connection)
{
    connection->peer_done = true;
    connection->reading = false;
    if (connection->state != HTTP_ANSWERING && connection->state != HTTP_WRITING) {
        http_connection_close(connection);
    }
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
    struct http_connection *connection = stream->data;
    if (length == 0 || connection->state == HTTP_CLOSING) {
        return;
    }
    if (length == UV_EOF) {
        end_of_input(connection);
    } else if (length < 0) {
        http_connection_close(connection);
    } else if (connection->state == HTTP_LINGERING || connection->linger_after) {
        connection->drained_bytes += (uint32_t)length;
        if (connection->drained_bytes > TG_MAX_HTTP_LINGER_BYTES) {
            http_connection_close(connection);
        }
    } else {
        consume(connection, buffer->base, (size_t)length);
    }
}

void http_connection_start(struct http_connection *connection)
{
    connection->reading = true;
    if (uv_read_start((uv_stream_t *)&connection->tcp, on_allocate, on_read) != 0) {
        http_connection_close(connection);
    }
}

/* ---- the request, as the handler sees it ---- */

enum tg_http_method tg_http_method(const struct tg_http_exchange *exchange)
{
    return exchange->head.method;
}

const char *tg_http_path(const struct tg_http_exchange *exchange)
{
    return exchange->text + exchange->head.path;
}

const char *tg_http_query(const struct tg_http_exchange *exchange)
{
    return exchange->head.query != 0 ? exchange->text + exchange->head.query : "";
}

const char *tg_http_header(const struct tg_http_exchange *exchange, const char *name,
                           unsigned *out_count)
{
    return tg_http_head_find(&exchange->head, exchange->text, name, out_count);
}

const char *tg_http_header_line(const struct tg_http_exchange *exchange, const char *name,
                                unsigned which)
{
    const struct tg_http_head *head = &exchange->head;
    for (uint16_t i = 0; i < head->header_count; i++) {
        if (strcmp(exchange->text + head->headers[i].name, name) == 0 && which-- == 0) {
            return exchange->text + head->headers[i].value;
        }
    }
    return NULL;
}

const uint8_t *tg_http_body(const struct tg_http_exchange *exchange, size_t *out_length)
{
    *out_length = exchange->body.stored;
    return (const uint8_t *)exchange->text + exchange->head_length;
}

const char *tg_http_peer(const struct tg_http_exchange *exchange)
{
    struct tg_http_exchange *own = exchange->connection->exchange;
    struct sockaddr_storage address;
    int length = sizeof(address);
    if (own->peer[0] == '\0' &&
        uv_tcp_getpeername(&exchange->connection->tcp, (struct sockaddr *)&address, &length) == 0) {
        if (uv_ip_name((const struct sockaddr *)&address, own->peer, sizeof(own->peer)) != 0) {
            own->peer[0] = '\0';
        }
    }
    return own->peer;
}

uint64_t tg_http_received_us(const struct tg_http_exchange *exchange)
{
    return exchange->received_us;
}

uint64_t tg_http_id(const struct tg_http_exchange *exchange)
{
    return exchange->id;
}

struct tg_http_exchange *tg_http_find(struct tg_http_server *server, uint64_t id)
{
    uint32_t slot = (uint32_t)(id & UINT16_MAX);
    struct http_connection *connection =
        slot < server->connections_max ? server->slots[slot] : NULL;
    if (connection == NULL || connection->state != HTTP_ANSWERING || connection->exchange == NULL ||
        connection->exchange->id != id) {
        return NULL;
    }
    return connection->exchange;
}
