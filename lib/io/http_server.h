/* SPDX-License-Identifier: Apache-2.0
 * The HTTP server's own structures, shared by http.c (listening, limits in time, closing) and
 * http_connection.c (bytes in, answers out). An idle connection costs this struct only; buffers
 * exist while a request is being read or answered. */
#ifndef TG_IO_HTTP_SERVER_H
#define TG_IO_HTTP_SERVER_H

#include "lib/io/http_parts.h"

/* What a connection is doing; each state but ANSWERING and CLOSING has a fixed time limit, so one
 * list per state, in order of entry, is also in order of deadline. */
enum http_state {
    HTTP_IDLE,
    HTTP_HEAD_IN,
    HTTP_BODY_IN,
    HTTP_ANSWERING,
    HTTP_WRITING,
    HTTP_LINGERING,
    HTTP_CLOSING,
    HTTP_STATES
};

enum {
    HTTP_SMALL_BYTES =
        2048, /* most heads fit; larger ones and bodies take a buffer of the full size */
    HTTP_FULL_BYTES = TG_MAX_HTTP_HEAD_BYTES + TG_MAX_HTTP_BODY_BYTES + 1,
    HTTP_TICK_MS = 100
};

struct http_connection;

struct tg_http_exchange {
    struct http_connection *connection;
    struct tg_http_exchange *next_spare;
    uint64_t id;
    uint64_t received_us;
    struct tg_http_scan scan;
    struct tg_http_head head;
    struct tg_http_body body;
    uint32_t head_length;
    uint32_t length; /* bytes of text in use: the head, then the body */
    char *text;      /* small, or a buffer of HTTP_FULL_BYTES */
    char peer[64];
    char small[HTTP_SMALL_BYTES];
};

struct http_link {
    struct http_link *previous, *next;
};

struct http_output { /* what the kernel did not take at once */
    uv_write_t request;
    size_t length;
    char bytes[];
};

struct http_connection {
    uv_tcp_t tcp;
    struct http_link link; /* in the list of its state */
    struct tg_http_server *server;
    struct tg_http_exchange *exchange;
    struct http_output *output;
    char *kept; /* bytes of the next requests, read while one is in progress */
    int64_t deadline_ms;
    uint32_t kept_length;
    uint32_t drained_bytes;
    uint16_t slot;
    uint8_t state;
    bool reading, dispatching, peer_done, close_after, linger_after;
};

struct tg_http_server {
    uv_loop_t *loop;
    uv_tcp_t listener;
    uv_timer_t timer;
    tg_http_handler *handler;
    void *context;
    uint64_t sequence;
    size_t in_progress;
    size_t open_connections;
    uint32_t handles; /* open ones; the last to close frees the server when it is done with */
    uint32_t connections_max;
    bool draining, freed;
    struct http_link lists[HTTP_STATES];
    struct http_connection **slots;
    uint16_t *free_slots;
    uint32_t free_slot_count;
    struct tg_http_exchange *spares;
    uint32_t spare_count;
    char input[TG_MAX_HTTP_READ_BYTES];
    char output[8192]; /* an answer on its way to the kernel, within one call */
};

/* Moves to a state and starts its time limit. */
void http_enter(struct http_connection *connection, enum http_state state);
/* Begins reading a connection just accepted. */
void http_connection_start(struct http_connection *connection);
/* Ends a connection at once; its exchange, if any, is gone. Idempotent. */
void http_connection_close(struct http_connection *connection);

#endif
