/* SPDX-License-Identifier: Apache-2.0
 * Listening, limits in time and number, draining. */
#include "lib/io/http.h"
#include "lib/io/http_server.h"
#include "lib/io/metrics.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { BACKLOG = 4096 };

static void list_init(struct http_link *list)
{
    list->previous = list->next = list;
}

static void list_remove(struct http_link *link)
{
    link->previous->next = link->next;
    link->next->previous = link->previous;
    link->previous = link->next = link;
}

static void list_append(struct http_link *list, struct http_link *link)
{
    link->previous = list->previous;
    link->next = list;
    list->previous->next = link;
    list->previous = link;
}

static struct http_connection *of_link(struct http_link *link)
{
    return (struct http_connection *)((char *)link - offsetof(struct http_connection, link));
}

static const struct {
    int64_t limit_ms; /* 0 = none */
    const char *name;
} time_limits[HTTP_STATES] = {
    [HTTP_IDLE] = {TG_MAX_HTTP_IDLE_MS, "idle"},
    [HTTP_HEAD_IN] = {TG_MAX_HTTP_HEAD_MS, "head"},
    [HTTP_BODY_IN] = {TG_MAX_HTTP_BODY_MS, "body"},
    [HTTP_WRITING] = {TG_MAX_HTTP_WRITE_MS, "write"},
    [HTTP_LINGERING] = {TG_MAX_HTTP_LINGER_MS, "linger"},
};

void http_enter(struct http_connection *connection, enum http_state state)
{
    struct tg_http_server *server = connection->server;
    list_remove(&connection->link);
    connection->state = state;
    connection->deadline_ms = (int64_t)uv_now(server->loop) + time_limits[state].limit_ms;
    list_append(&server->lists[state], &connection->link);
}

static void on_tick(uv_timer_t *timer)
{
    struct tg_http_server *server = timer->data;
    int64_t now_ms = (int64_t)uv_now(server->loop);
    for (int state = 0; state < HTTP_STATES; state++) {
        struct http_link *list = &server->lists[state];
        while (time_limits[state].limit_ms > 0 && list->next != list &&
               of_link(list->next)->deadline_ms <= now_ms) {
            http_connection_close(of_link(list->next));
            tg_metric_add(TG_METRIC_HTTP_LIMIT_CLOSED, time_limits[state].name, 1);
        }
    }
}

static void release_server(struct tg_http_server *server)
{
    server->handles--;
    if (server->handles > 0 || !server->freed) {
        return;
    }
    while (server->spares != NULL) {
        struct tg_http_exchange *next = server->spares->next_spare;
        free(server->spares);
        server->spares = next;
    }
    free(server->slots);
    free(server->free_slots);
    free(server);
}

static void on_server_handle_closed(uv_handle_t *handle)
{
    release_server(handle->data);
}

static void on_connection_closed(uv_handle_t *handle)
{
    struct http_connection *connection = handle->data;
    struct tg_http_server *server = connection->server;
    list_remove(&connection->link);
    server->slots[connection->slot] = NULL;
    server->free_slots[server->free_slot_count++] = connection->slot;
    server->open_connections--;
    free(connection->kept);
    free(connection);
    release_server(server);
}

void http_connection_close(struct http_connection *connection)
{
    if (connection->state == HTTP_CLOSING) {
        return;
    }
    struct tg_http_server *server = connection->server;
    struct tg_http_exchange *exchange = connection->exchange;
    if (connection->state == HTTP_ANSWERING) {
        server->in_progress--;
    }
    http_enter(connection, HTTP_CLOSING);
    connection->exchange = NULL;
    if (exchange != NULL) {
        if (exchange->text != exchange->small) {
            free(exchange->text);
        }
        free(exchange);
    }
    uv_close((uv_handle_t *)&connection->tcp, on_connection_closed);
}

/* A full house: the connection idle for longest makes room. */
static void make_room(struct tg_http_server *server)
{
    struct http_link *idle = &server->lists[HTTP_IDLE];
    if (idle->next != idle) {
        http_connection_close(of_link(idle->next));
        tg_metric_add(TG_METRIC_HTTP_LIMIT_CLOSED, "connections", 1);
    }
}

static void on_refused_closed(uv_handle_t *handle)
{
    struct tg_http_server *server = handle->data;
    free(handle);
    release_server(server);
}

/* Nobody is idle: the newcomer is accepted and closed, or the kernel would tell us of it for ever.
 */
static void refuse_connection(struct tg_http_server *server)
{
    uv_tcp_t *tcp = malloc(sizeof(*tcp));
    if (tcp == NULL || uv_tcp_init(server->loop, tcp) != 0) {
        free(tcp);
        return;
    }
    tcp->data = server;
    server->handles++;
    int error = uv_accept((uv_stream_t *)&server->listener, (uv_stream_t *)tcp);
    if (error == 0) {
        tg_metric_add(TG_METRIC_HTTP_LIMIT_CLOSED, "connections", 1);
    }
    uv_close((uv_handle_t *)tcp, on_refused_closed);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct tg_http_server *server = listener->data;
    if (status != 0) {
        return;
    }
    if (server->free_slot_count <= server->connections_max / 64) {
        make_room(server); /* its slot is free after this turn of the loop */
    }
    struct http_connection *connection =
        server->free_slot_count > 0 ? calloc(1, sizeof(*connection)) : NULL;
    if (connection == NULL || uv_tcp_init(server->loop, &connection->tcp) != 0) {
        free(connection);
        refuse_connection(server);
        return;
    }
    connection->tcp.data = connection;
    connection->server = server;
    list_init(&connection->link);
    connection->slot = server->free_slots[--server->free_slot_count];
    server->slots[connection->slot] = connection;
    server->handles++;
    server->open_connections++;
    http_enter(connection, HTTP_IDLE);
    if (uv_accept(listener, (uv_stream_t *)&connection->tcp) != 0) {
        http_connection_close(connection);
        return;
    }
    http_connection_start(connection);
}

static struct tg_http_server *server_new(uv_loop_t *loop, const struct tg_http_spec *spec)
{
    struct tg_http_server *server = calloc(1, sizeof(*server));
    if (server == NULL) {
        return NULL;
    }
    server->loop = loop;
    server->handler = spec->handler;
    server->context = spec->context;
    server->connections_max = spec->connections_max;
    server->slots = calloc(spec->connections_max, sizeof(void *));
    server->free_slots = calloc(spec->connections_max, sizeof(server->free_slots[0]));
    if (server->slots == NULL || server->free_slots == NULL) {
        free(server->slots);
        free(server->free_slots);
        free(server);
        return NULL;
    }
    for (uint32_t i = 0; i < spec->connections_max; i++) {
        server->free_slots[i] = (uint16_t)(spec->connections_max - 1 - i);
    }
    server->free_slot_count = spec->connections_max;
    for (int state = 0; state < HTTP_STATES; state++) {
        list_init(&server->lists[state]);
    }
    return server;
}

/* Binds and listens. TCP_NODELAY set here is inherited by what is accepted: one system call instead
 * of one each. */
static int bind_listener(struct tg_http_server *server, const struct tg_http_spec *spec)
{
    struct sockaddr_storage address;
    if (uv_ip6_addr(spec->host, spec->port, (struct sockaddr_in6 *)&address) != 0 &&
        uv_ip4_addr(spec->host, spec->port, (struct sockaddr_in *)&address) != 0) {
        return UV_EINVAL;
    }
    int error = uv_tcp_bind(&server->listener, (const struct sockaddr *)&address, 0);
    if (error == 0) {
        error = uv_tcp_nodelay(&server->listener, 1);
    }
    if (error == 0) {
        error = uv_listen((uv_stream_t *)&server->listener, BACKLOG, on_connection);
    }
    return error;
}

static int open_listener(struct tg_http_server *server, const struct tg_http_spec *spec)
{
    bool ipv6 = strchr(spec->host, ':') != NULL;
    int error = uv_tcp_init_ex(server->loop, &server->listener, ipv6 ? AF_INET6 : AF_INET);
    if (error != 0) {
        return error;
    }
    server->listener.data = server;
    server->handles++;
    uv_timer_init(server->loop, &server->timer);
    server->timer.data = server;
    server->handles++;
    uv_os_fd_t fd;
    int on = 1;
    error = uv_fileno((uv_handle_t *)&server->listener, &fd);
    if (error == 0 && spec->reuse_port &&
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) != 0) {
        error = UV_ENOTSUP;
    }
    return error == 0 ? bind_listener(server, spec) : error;
}

int tg_http_listen(uv_loop_t *loop, const struct tg_http_spec *spec,
                   struct tg_http_server **out_server)
{
    assert(spec->connections_max >= 1 && spec->connections_max <= UINT16_MAX);
    struct tg_http_server *server = server_new(loop, spec);
    if (server == NULL) {
        return UV_ENOMEM;
    }
    int error = open_listener(server, spec);
    if (error == 0) {
        error = uv_timer_start(&server->timer, on_tick, HTTP_TICK_MS, HTTP_TICK_MS);
    }
    if (error != 0) {
        if (server->handles > 0) {
            tg_http_free(server);
        } else {
            free(server->slots);
            free(server->free_slots);
            free(server);
        }
        return error;
    }
    *out_server = server;
    return 0;
}

uint16_t tg_http_port(const struct tg_http_server *server)
{
    struct sockaddr_storage address;
    int length = sizeof(address);
    if (uv_tcp_getsockname(&server->listener, (struct sockaddr *)&address, &length) != 0) {
        return 0;
    }
    return address.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&address)->sin6_port)
                                         : ntohs(((struct sockaddr_in *)&address)->sin_port);
}

size_t tg_http_open_connections(const struct tg_http_server *server)
{
    return server->open_connections;
}

size_t tg_http_in_progress(const struct tg_http_server *server)
{
    return server->in_progress;
}

static void close_list(struct tg_http_server *server, enum http_state state)
{
    struct http_link *list = &server->lists[state];
    while (list->next != list) {
        http_connection_close(of_link(list->next));
    }
}

void tg_http_drain(struct tg_http_server *server)
{
    if (server->draining) {
        return;
    }
    server->draining = true;
    uv_close((uv_handle_t *)&server->listener, on_server_handle_closed);
    close_list(server, HTTP_IDLE);
}

struct tg_http_server *tg_http_free(struct tg_http_server *server)
{
    if (server == NULL) {
        return NULL;
    }
    tg_http_drain(server);
    for (int state = 0; state < HTTP_CLOSING; state++) {
        close_list(server, (enum http_state)state);
    }
    uv_close((uv_handle_t *)&server->timer, on_server_handle_closed);
    server->freed = true;
    return NULL;
}
