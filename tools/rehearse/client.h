/* SPDX-License-Identifier: Apache-2.0
 * A small HTTP/1.1 client for many people over few connections: a bounded pool of keep-alive
 * connections to the edges, one request in progress each, the rest waits in one queue. libuv and
 * llhttp. A request is written only when its connection is there (the `write` callback), so that a
 * waiting one costs 16 bytes. Never follows, never retries: that is the buyer's. */
#ifndef REHEARSE_CLIENT_H
#define REHEARSE_CLIENT_H

#include "lib/pure/error.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum {
    REHEARSE_CONNECTIONS_MAX = 19900, /* below the 20,000 descriptors a process may have */
    REHEARSE_REQUEST_BYTES = 6144,    /* head and body of a request */
    REHEARSE_BODY_BYTES = 4096,       /* of an answer; more counts as unreadable */
    REHEARSE_ANSWER_MS = 10000,       /* later than this is no answer */
    REHEARSE_EDGES_MAX = 16
};

struct rehearse_request {
    uint32_t buyer;
    uint8_t ask; /* enum rehearse_ask */
    uint8_t attempt;
    bool drop; /* break the connection once it is sent */
    uint64_t asked_us;
};

struct rehearse_reply {
    struct rehearse_request request;
    int status;       /* HTTP; 0: no answer */
    const char *body; /* NUL-terminated, borrowed */
    size_t body_length;
    uint32_t retry_after_s;        /* 0: none */
    bool replayed;                 /* Idempotent-Replayed: true */
    uint64_t sent_us, answered_us; /* monotonic */
};

struct rehearse_client_spec {
    uv_loop_t *loop;
    const struct sockaddr_storage *edges; /* used in turn */
    size_t edge_count;
    uint32_t connections;
    /* Writes the whole request; returns its length. */
    size_t (*write)(void *context, const struct rehearse_request *request,
                    char out_text[REHEARSE_REQUEST_BYTES]);
    /* Exactly once for every request. */
    void (*reply)(void *context, const struct rehearse_reply *reply);
    void *context;
};

struct rehearse_client;

TG_MUST_CHECK int rehearse_client_open(const struct rehearse_client_spec *spec,
                                       struct rehearse_client **out_client);
/* Queues a request. */
void rehearse_client_ask(struct rehearse_client *client, const struct rehearse_request *request);

struct rehearse_client_counts {
    uint64_t sent, answered, unanswered, dropped, connects;
    uint32_t open_connections, most_connections;
    size_t queued, most_queued;
    uint64_t waited_us; /* by now, of the one that has been queued longest */
};
void rehearse_client_counts(const struct rehearse_client *client,
                            struct rehearse_client_counts *out_counts);

/* Closes everything; open requests are not answered any more. The memory goes with the loop's next
 * turns. NULL is fine. */
struct rehearse_client *rehearse_client_free(struct rehearse_client *client);

#endif
