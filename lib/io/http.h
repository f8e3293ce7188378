/* SPDX-License-Identifier: Apache-2.0
 * HTTP/1.1 server on libuv + llhttp (strict), with every limit of catalog/limits.def. One request
 * in progress per connection; ambiguous framing is answered 400 and closed. Request data is
 * borrowed until the exchange is answered. */
#ifndef TG_IO_HTTP_H
#define TG_IO_HTTP_H

#include "lib/pure/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

struct tg_http_server;
struct tg_http_exchange; /* one request and its one answer */

enum tg_http_method { TG_HTTP_GET, TG_HTTP_HEAD, TG_HTTP_POST, TG_HTTP_OPTIONS, TG_HTTP_OTHER };

typedef void tg_http_handler(void *context, struct tg_http_exchange *exchange);

struct tg_http_spec {
    const char *host; /* "127.0.0.1", "::" (dual stack) */
    uint16_t port;    /* 0: any free one */
    bool reuse_port;  /* several processes on one port */
    uint32_t connections_max;
    tg_http_handler *handler;
    void *context;
};

TG_MUST_CHECK int tg_http_listen(uv_loop_t *loop, const struct tg_http_spec *spec,
                                 struct tg_http_server **out_server);
uint16_t tg_http_port(const struct tg_http_server *server);
size_t tg_http_open_connections(const struct tg_http_server *server);
size_t tg_http_in_progress(const struct tg_http_server *server);
/* Stops listening; idle connections close, answers carry Connection: close. */
void tg_http_drain(struct tg_http_server *server);
struct tg_http_server *tg_http_free(struct tg_http_server *server);

enum tg_http_method tg_http_method(const struct tg_http_exchange *exchange);
/* Path as received, still percent-encoded, without query; NUL-terminated. Absolute-form targets are
 * reduced to their path. */
const char *tg_http_path(const struct tg_http_exchange *exchange);
const char *tg_http_query(const struct tg_http_exchange *exchange); /* "" when none */
/* Value of a header (name in lower case), NULL when absent. `out_count` (may be NULL): how often it
 * came. */
const char *tg_http_header(const struct tg_http_exchange *exchange, const char *name,
                           unsigned *out_count);
/* The same when it may come in several lines: line `which`, from 0 in order of arrival; NULL
 * beyond. */
const char *tg_http_header_line(const struct tg_http_exchange *exchange, const char *name,
                                unsigned which);
const uint8_t *tg_http_body(const struct tg_http_exchange *exchange, size_t *out_length);
/* Peer address as text without port. */
const char *tg_http_peer(const struct tg_http_exchange *exchange);
uint64_t tg_http_received_us(const struct tg_http_exchange *exchange);

/* An id that survives an asynchronous gap; look it up again, it may be gone (NULL). */
uint64_t tg_http_id(const struct tg_http_exchange *exchange);
struct tg_http_exchange *tg_http_find(struct tg_http_server *server, uint64_t id);

struct tg_http_answer {
    int status;
    const char *content_type; /* NULL: none */
    const char *headers; /* further header lines, each ending in CRLF; NULL: none. No caller data
                            unchecked. */
    const void *body;
    size_t body_length; /* HEAD: the length is told, the body not sent */
};
/* Answers; the exchange is over. Copies what it needs. Adds Date, Content-Length, Connection. */
void tg_http_answer(struct tg_http_exchange *exchange, const struct tg_http_answer *answer);

#endif
