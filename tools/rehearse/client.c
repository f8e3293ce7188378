/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/client.h"

#include "lib/io/now.h"

#include <errno.h>
#include <llhttp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { READ_BYTES = 65536, NAME_BYTES = 24, VALUE_BYTES = 16, SWEEP_MS = 250 };

enum connection_state { CLOSED, CONNECTING, IDLE, BUSY, CLOSING };

/* The few response headers a buyer cares for; longer names and values are none of them. */
struct header {
    char name[NAME_BYTES];
    char value[VALUE_BYTES];
    uint8_t name_length, value_length;
    bool in_value;
};

struct connection {
    uv_tcp_t tcp;
    uv_connect_t connect;
    uv_write_t write;
    struct rehearse_client *client;
    enum connection_state state;
    uint32_t number; /* its place in client->connections */
    llhttp_t parser;
    struct header header;
    struct rehearse_request request; /* when BUSY */
    uint64_t sent_us;
    uint32_t retry_after_s;
    bool replayed, overflow;
    size_t body_length;
    char body[REHEARSE_BODY_BYTES + 1];
};

struct rehearse_client {
    struct rehearse_client_spec spec;
    struct sockaddr_storage edges[REHEARSE_EDGES_MAX];
    struct connection **connections; /* allocated when first used */
    uint32_t *idle;                  /* numbers of idle connections: last used first */
    uint32_t idle_count;
    uint32_t *unused; /* numbers of closed ones */
    uint32_t unused_count;
    struct rehearse_request *queue; /* a ring */
    size_t queue_capacity, queue_first, queue_count;
    uv_timer_t sweep;
    bool freed;
    uint32_t handles; /* not yet closed */
    struct rehearse_client_counts counts;
    llhttp_settings_t settings;
};

static char read_buffer[READ_BYTES];
static char request_text[REHEARSE_REQUEST_BYTES];

static void pump(struct rehearse_client *client);
static void close_connection(struct connection *connection);

static void release(struct rehearse_client *client)
{
    if (--client->handles > 0 || !client->freed) {
        return;
    }
    for (uint32_t i = 0; i < client->spec.connections; i++) {
        free(client->connections[i]);
    }
    free(client->connections);
    free(client->idle);
    free(client->unused);
    free(client->queue);
    free(client);
}

/* The one place that tells a request's end. */
static void tell(struct connection *connection, int status)
{
    struct rehearse_client *client = connection->client;
    const struct rehearse_reply reply = {.request = connection->request,
                                         .status = connection->overflow ? 0 : status,
                                         .body = connection->body,
                                         .body_length = connection->body_length,
                                         .retry_after_s = connection->retry_after_s,
                                         .replayed = connection->replayed,
                                         .sent_us = connection->sent_us,
                                         .answered_us = tg_now_us()};
    connection->body[connection->body_length] = '\0';
    if (reply.status != 0) {
        client->counts.answered++;
    } else if (connection->request.drop) {
        client->counts.dropped++;
    } else {
        client->counts.unanswered++;
    }
    if (!client->freed) {
        client->spec.reply(client->spec.context, &reply);
    }
}

static void on_closed(uv_handle_t *handle)
{
    struct connection *connection = handle->data;
    struct rehearse_client *client = connection->client;
    connection->state = CLOSED;
    client->counts.open_connections--;
    if (client->freed) {
        release(client); /* maybe the last one */
        return;
    }
    client->unused[client->unused_count++] = connection->number;
    client->handles--; /* the sweep's handle is still there */
    pump(client);
}

static void forget_idle(struct connection *connection)
{
    struct rehearse_client *client = connection->client;
    for (uint32_t i = 0; i < client->idle_count; i++) {
        if (client->connections[client->idle[i]] == connection) {
            client->idle[i] = client->idle[--client->idle_count];
            return;
        }
    }
}

/* A request in progress has no answer then. */
static void close_connection(struct connection *connection)
{
    enum connection_state state = connection->state;
    if (state == CLOSED || state == CLOSING) {
        return;
    }
    if (state == IDLE) {
        forget_idle(connection);
    }
    connection->state = CLOSING;
    uv_close((uv_handle_t *)&connection->tcp, on_closed);
    if (state == BUSY || state == CONNECTING) {
        tell(connection, 0);
    }
}

static int on_message_begin(llhttp_t *parser)
{
    struct connection *connection = parser->data;
    connection->body_length = 0;
    connection->retry_after_s = 0;
    connection->replayed = false;
    connection->overflow = false;
    connection->header = (struct header){0};
    return 0;
}

static int on_header_field(llhttp_t *parser, const char *at, size_t length)
{
    struct header *header = &((struct connection *)parser->data)->header;
    if (header->in_value) {
        *header = (struct header){0};
    }
    for (size_t i = 0; i < length && header->name_length < NAME_BYTES - 1; i++) {
        header->name[header->name_length++] = at[i];
    }
    return 0;
}

static int on_header_value(llhttp_t *parser, const char *at, size_t length)
{
    struct header *header = &((struct connection *)parser->data)->header;
    header->in_value = true;
    for (size_t i = 0; i < length && header->value_length < VALUE_BYTES - 1; i++) {
        header->value[header->value_length++] = at[i];
    }
    return 0;
}

static int on_header_complete(llhttp_t *parser)
{
    struct connection *connection = parser->data;
    struct header *header = &connection->header;
    header->name[header->name_length] = '\0';
    header->value[header->value_length] = '\0';
    if (strcasecmp(header->name, "retry-after") == 0) {
        unsigned long seconds = strtoul(header->value, NULL, 10);
        connection->retry_after_s = seconds < 3600 ? (uint32_t)seconds : 3600;
    } else if (strcasecmp(header->name, "idempotent-replayed") == 0) {
        connection->replayed = strcmp(header->value, "true") == 0;
    }
    return 0;
}

static int on_body(llhttp_t *parser, const char *at, size_t length)
{
    struct connection *connection = parser->data;
    if (length > REHEARSE_BODY_BYTES - connection->body_length) {
        connection->overflow = true;
        return 0;
    }
    memcpy(connection->body + connection->body_length, at, length);
    connection->body_length += length;
    return 0;
}

/* Whole: the connection is free before the buyer hears, so that his next request may use it. */
static int on_message_complete(llhttp_t *parser)
{
    struct connection *connection = parser->data;
    struct rehearse_client *client = connection->client;
    if (connection->state != BUSY) {
        return -1; /* an answer nobody asked for */
    }
    bool keep = llhttp_should_keep_alive(parser) != 0;
    int status = llhttp_get_status_code(parser);
    if (keep) {
        connection->state = IDLE;
        client->idle[client->idle_count++] = connection->number;
    } else {
        connection->state = CLOSING;
        uv_close((uv_handle_t *)&connection->tcp, on_closed);
    }
    tell(connection, status);
    return 0;
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *out_buffer)
{
    *out_buffer =
        uv_buf_init(read_buffer, sizeof(read_buffer)); /* parsed before the loop reads again */
}

static void on_read(uv_stream_t *stream, ssize_t length, const uv_buf_t *buffer)
{
    struct connection *connection = stream->data;
    if (length == 0 || connection->state == CLOSING) {
        return;
    }
    if (length < 0 || llhttp_execute(&connection->parser, buffer->base, (size_t)length) != HPE_OK) {
        close_connection(connection);
        return;
    }
    if (!connection->client->freed) {
        pump(connection->client);
    }
}

static void on_written(uv_write_t *write, int status)
{
    struct connection *connection = write->handle->data;
    free(write->data);
    if (status != 0 || (connection->state == BUSY && connection->request.drop)) {
        close_connection(connection);
    }
}

/* What the kernel does not take at once is copied and written later. */
static void write_rest(struct connection *connection, const char *text, size_t length)
{
    char *copy = malloc(length);
    if (copy == NULL) {
        abort();
    }
    memcpy(copy, text, length);
    connection->write.data = copy;
    uv_buf_t buffer = uv_buf_init(copy, (unsigned)length);
    if (uv_write(&connection->write, (uv_stream_t *)&connection->tcp, &buffer, 1, on_written) !=
        0) {
        free(copy);
        close_connection(connection);
    }
}

static void send_request(struct connection *connection)
{
    struct rehearse_client *client = connection->client;
    size_t length = client->spec.write(client->spec.context, &connection->request, request_text);
    uv_buf_t buffer = uv_buf_init(request_text, (unsigned)length);
    connection->state = BUSY;
    connection->overflow = false;
    connection->body_length = 0;
    connection->retry_after_s = 0;
    connection->replayed = false;
    connection->sent_us = tg_now_us();
    client->counts.sent++;
    int written = uv_try_write((uv_stream_t *)&connection->tcp, &buffer, 1);
    bool failed = written < 0 && written != UV_EAGAIN;
    size_t done = written > 0 ? (size_t)written : 0;
    if (failed || (done == length && connection->request.drop)) {
        close_connection(connection);
    } else if (done < length) {
        write_rest(connection, request_text + done, length - done);
    }
}

static void on_connected(uv_connect_t *connect, int status)
{
    struct connection *connection = connect->handle->data;
    if (connection->state != CONNECTING) {
        return;
    }
    if (status != 0 || uv_read_start((uv_stream_t *)&connection->tcp, on_alloc, on_read) != 0) {
        close_connection(connection);
        return;
    }
    uv_tcp_nodelay(&connection->tcp, 1);
    send_request(connection);
}

/* Opens connection `number` for a request; it is sent once connected. */
static void open_connection(struct rehearse_client *client, uint32_t number,
                            const struct rehearse_request *request)
{
    struct connection *connection = client->connections[number];
    if (connection == NULL) {
        connection = client->connections[number] = malloc(sizeof(*connection));
        if (connection == NULL) {
            abort();
        }
    }
    memset(connection, 0, offsetof(struct connection, body));
    connection->client = client;
    connection->state = CONNECTING;
    connection->request = *request;
    connection->sent_us = tg_now_us();
    connection->number = number;
    uv_tcp_init(client->spec.loop, &connection->tcp);
    connection->tcp.data = connection;
    llhttp_init(&connection->parser, HTTP_RESPONSE, &client->settings);
    connection->parser.data = connection;
    client->handles++;
    client->counts.connects++;
    client->counts.open_connections++;
    if (client->counts.open_connections > client->counts.most_connections) {
        client->counts.most_connections = client->counts.open_connections;
    }
    const struct sockaddr *edge =
        (const struct sockaddr *)&client->edges[number % client->spec.edge_count];
    if (uv_tcp_connect(&connection->connect, &connection->tcp, edge, on_connected) != 0) {
        close_connection(connection);
    }
}

/* As many queued requests as connections are free. */
static void pump(struct rehearse_client *client)
{
    while (client->queue_count > 0 && (client->idle_count > 0 || client->unused_count > 0)) {
        struct rehearse_request request = client->queue[client->queue_first];
        client->queue_first = (client->queue_first + 1) % client->queue_capacity;
        client->queue_count--;
        if (client->idle_count > 0) {
            struct connection *connection = client->connections[client->idle[--client->idle_count]];
            connection->request = request;
            send_request(connection);
        } else {
            open_connection(client, client->unused[--client->unused_count], &request);
        }
    }
}

static void grow_queue(struct rehearse_client *client)
{
    size_t capacity = 2 * client->queue_capacity;
    struct rehearse_request *queue = malloc(capacity * sizeof(*queue));
    if (queue == NULL) {
        abort();
    }
    for (size_t i = 0; i < client->queue_count; i++) {
        queue[i] = client->queue[(client->queue_first + i) % client->queue_capacity];
    }
    free(client->queue);
    client->queue = queue;
    client->queue_capacity = capacity;
    client->queue_first = 0;
}

void rehearse_client_ask(struct rehearse_client *client, const struct rehearse_request *request)
{
    if (client->queue_count == client->queue_capacity) {
        grow_queue(client);
    }
    size_t last = (client->queue_first + client->queue_count) % client->queue_capacity;
    client->queue[last] = *request;
    client->queue[last].asked_us = tg_now_us();
    client->queue_count++;
    if (client->queue_count > client->counts.most_queued) {
        client->counts.most_queued = client->queue_count;
    }
    pump(client);
}

/* Requests without an answer for too long have none. */
static void on_sweep(uv_timer_t *timer)
{
    struct rehearse_client *client = timer->data;
    uint64_t now_us = tg_now_us();
    for (uint32_t i = 0; i < client->spec.connections; i++) {
        struct connection *connection = client->connections[i];
        bool waits =
            connection != NULL && (connection->state == BUSY || connection->state == CONNECTING);
        if (waits && now_us - connection->sent_us > REHEARSE_ANSWER_MS * UINT64_C(1000)) {
            close_connection(connection);
        }
    }
}

static void set_callbacks(llhttp_settings_t *settings)
{
    llhttp_settings_init(settings);
    settings->on_message_begin = on_message_begin;
    settings->on_header_field = on_header_field;
    settings->on_header_value = on_header_value;
    settings->on_header_value_complete = on_header_complete;
    settings->on_body = on_body;
    settings->on_message_complete = on_message_complete;
}

int rehearse_client_open(const struct rehearse_client_spec *spec,
                         struct rehearse_client **out_client)
{
    enum { FIRST_CAPACITY = 4096 };
    if (spec->edge_count == 0 || spec->edge_count > REHEARSE_EDGES_MAX || spec->connections == 0 ||
        spec->connections > REHEARSE_CONNECTIONS_MAX) {
        return TG_ERR_RANGE;
    }
    struct rehearse_client *client = calloc(1, sizeof(*client));
    if (client == NULL) {
        return -ENOMEM;
    }
    client->spec = *spec;
    memcpy(client->edges, spec->edges, spec->edge_count * sizeof(client->edges[0]));
    client->connections = calloc(spec->connections, sizeof(struct connection *));
    client->idle = calloc(spec->connections, sizeof(*client->idle));
    client->unused = calloc(spec->connections, sizeof(*client->unused));
    client->queue = calloc(FIRST_CAPACITY, sizeof(*client->queue));
    if (client->connections == NULL || client->idle == NULL || client->unused == NULL ||
        client->queue == NULL) {
        abort();
    }
    client->queue_capacity = FIRST_CAPACITY;
    for (uint32_t i = 0; i < spec->connections; i++) {
        client->unused[i] = spec->connections - 1 - i;
    }
    client->unused_count = spec->connections;
    set_callbacks(&client->settings);
    uv_timer_init(spec->loop, &client->sweep);
    client->sweep.data = client;
    client->handles = 1;
    *out_client = client;
    return uv_timer_start(&client->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
}

void rehearse_client_counts(const struct rehearse_client *client,
                            struct rehearse_client_counts *out_counts)
{
    *out_counts = client->counts;
    out_counts->queued = client->queue_count;
    out_counts->waited_us =
        client->queue_count > 0 ? tg_now_us() - client->queue[client->queue_first].asked_us : 0;
}

static void on_sweep_closed(uv_handle_t *handle)
{
    release(handle->data);
}

struct rehearse_client *rehearse_client_free(struct rehearse_client *client)
{
    if (client != NULL) {
        client->freed = true;
        for (uint32_t i = 0; i < client->spec.connections; i++) {
            if (client->connections[i] != NULL) {
                close_connection(client->connections[i]);
            }
        }
        uv_close((uv_handle_t *)&client->sweep, on_sweep_closed);
    }
    return NULL;
}
