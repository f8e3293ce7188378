/* SPDX-License-Identifier: Apache-2.0
 * What the files of the bus share among themselves; nobody else includes this. Everything here
 * belongs to the loop's thread except the members of bus_link that say otherwise. */
#ifndef TG_IO_BUS_INNER_H
#define TG_IO_BUS_INNER_H

#include "lib/io/bus.h"
#include "lib/io/keys.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"
#include "lib/pure/limit.h"
#include "lib/pure/text.h"

#include <nats/nats.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { BUS_FAULT_BYTES = 200 };

enum bus_kind { BUS_REQUEST, BUS_ASK_ALL, BUS_PUBLISH };

/* A row of catalog/messages.def as data. */
struct bus_row {
    const char *subject; /* with %s where the sale goes */
    const char *label;   /* the same with *, for wildcards and metric labels */
    bool has_sale;
    enum bus_kind kind;
    const char *owner;
    const ProtobufCMessageDescriptor *request, *reply; /* NULL: none */
};
const struct bus_row *bus_row(enum tg_message message);

/* Memory of one decoded message: grows in blocks up to TG_MAX_BUS_DECODED_BYTES, freed as a whole.
 */
struct bus_block;
struct bus_arena {
    struct bus_block *blocks;
    size_t used_bytes, total_bytes;
};
/* NULL when malformed or over the bound. The message lives as long as the arena. */
ProtobufCMessage *bus_unpack(struct bus_arena *arena, const ProtobufCMessageDescriptor *type,
                             const void *data, size_t length);
void bus_arena_reset(struct bus_arena *arena); /* keeps the first block */
void bus_arena_free(struct bus_arena *arena);

/* The socket of nats.c on our loop. The hooks come from any of its threads. */
struct bus_link {
    uv_loop_t *loop;
    uv_thread_t loop_thread;
    uv_async_t wake;
    uv_poll_t *poll; /* on its own duplicate of the socket; NULL until attached */
    int poll_fd;
    uv_mutex_t lock; /* guards the next five */
    int fd_next;     /* attached and not yet polled; -1: none */
    int wanted;      /* UV_READABLE | UV_WRITABLE */
    natsConnection *connection;
    natsMsg **answers; /* for the inbox, not yet handled: a ring of TG_MAX_BUS_PENDING */
    size_t answer_first, answer_count;
    atomic_bool attached;   /* false from the moment the library gives the socket up */
    atomic_bool announced;  /* connected or reconnected callback came, disconnected did not */
    atomic_bool closed;     /* the connection's last callback came */
    atomic_uint deliveries; /* threads of the library that may still call bus_link_answer */
    atomic_uint slow;       /* slow-consumer reports not yet counted */
    bool denied; /* under the lock: a right was missing on this connection; `fault` says which */
    char fault[BUS_FAULT_BYTES]; /* under the lock */
};

struct bus_stats { /* of the service protocol */
    uint64_t requests, errors, processing_us;
    char last_error[80];
};

enum bus_duty { BUS_DUTY_SERVE, BUS_DUTY_INBOX, BUS_DUTY_SERVICE };

struct bus_subscription {
    enum bus_duty duty;
    char subject[128];
    const char *queue;        /* NULL: hears everything */
    natsSubscription *handle; /* NULL until the connection came */
    enum tg_message message;  /* SERVE */
    tg_bus_handler *handler;
    void *context;
    const char *verb; /* SERVICE: PING, INFO or STATS */
    struct bus_stats stats;
};

enum {
    BUS_SUBSCRIPTIONS = 64,
    BUS_WHEEL = 256,
    BUS_TICK_MS = 10,
    BUS_INBOX_BYTES = 112,
    BUS_PREFIX_BYTES = 92
};
enum { BUS_DRAIN_MESSAGES = 64, BUS_POOLED_INCOMING = 64, BUS_ERROR_BYTES = 256 };
enum { BUS_BUFFERED_BYTES = 8 << 20 };
#define BUS_NOWHERE UINT16_MAX

enum bus_call_kind { BUS_CALL_FREE, BUS_CALL_ONE, BUS_CALL_ALL, BUS_CALL_EVENT };

struct bus_call {
    uint64_t id; /* generation << 16 | slot: what the reply subject ends with */
    enum bus_call_kind kind;
    enum tg_message message;
    tg_bus_on_reply *on_reply;
    tg_bus_on_stored *on_stored;
    void *context;
    uint64_t token, sent_us, deadline_us;
    uint16_t next, previous; /* in the wheel, or next free */
};

struct bus_calls {
    struct bus_call *table; /* TG_MAX_BUS_CALLS */
    uint16_t free_first;
    uint16_t wheel[BUS_WHEEL];
    uint64_t tick;
    size_t count;
    uint64_t generation;
};

struct tg_bus_incoming {
    struct tg_bus *bus; /* NULL once the bus is freed */
    struct tg_bus_incoming *next, *previous;
    natsMsg *message;
    struct bus_subscription *subscription;
    ProtobufCMessage *body;
    struct bus_arena arena;
    uint64_t received_us;
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    char traceparent[TG_TRACEPARENT_LENGTH + 1];
};

struct bus_metrics { /* resolved when first needed */
    struct tg_series *calls[TG_MESSAGE_COUNT], *call_seconds[TG_MESSAGE_COUNT];
    struct tg_series *served[TG_MESSAGE_COUNT], *served_seconds[TG_MESSAGE_COUNT];
};

struct tg_bus {
    struct bus_link link;
    natsConnection *connection; /* NULL while none could be made */
    char daemon[32], instance[40], identity[32], inbox[BUS_PREFIX_BYTES];
    char *url, *keys, *ca, *server_name; /* all but url NULL where none */
    struct tg_sign_key nkey;             /* what it showed at the last attempt */
    char fault[BUS_FAULT_BYTES];         /* of the last attempt of ours, or a copy of the link's */
    struct bus_subscription subscriptions[BUS_SUBSCRIPTIONS];
    size_t subscription_count;
    struct bus_calls calls;
    struct tg_bus_incoming *incoming, *pooled;
    size_t incoming_count, pooled_count;
    struct bus_arena scratch; /* replies */
    struct bus_metrics metrics;
    uv_timer_t tick, reopen;
    uv_check_t check;
    uv_idle_t idle;
    struct tg_wall started;
    uint64_t slow_us; /* when the pending limit was last reached; 0: never */
    bool up;          /* what the loop has acted on */
    bool denied;      /* a right is missing: `fault` says which */
    bool freeing;
    int handles_open;
    uint8_t packed[TG_MAX_BUS_BODY_BYTES];
};

/* bus_link.c: hooks of nats.c and its callbacks. */
TG_MUST_CHECK int bus_link_open(struct tg_bus *bus, uv_loop_t *loop);
TG_MUST_CHECK int bus_link_options(struct tg_bus *bus, natsOptions *options, bool patient);
/* Whether a right was missing on this connection; then out_fault (if not NULL) says which. */
bool bus_link_denied(struct tg_bus *bus, char out_fault[BUS_FAULT_BYTES]);
void bus_link_apply(struct tg_bus *bus); /* on the loop: polls what the hooks asked for */
void bus_link_drop(struct bus_link *link);
/* Called by the library's delivery thread. Synchronous subscriptions would do for the inbox too,
 * but NextMsg turns "no responders" into a bare status and drops the subject that says which call
 * it was. */
void bus_link_answer(natsConnection *connection, natsSubscription *subscription,
                     natsMsg *take_message, void *bus);
void bus_link_delivered(void *bus);
natsMsg *bus_link_next_answer(struct bus_link *link); /* on the loop; NULL: none */

/* bus.c: called on the loop when a hook or callback changed something, and after the socket was
 * read. */
void bus_look(struct tg_bus *bus);
void bus_drain(struct tg_bus *bus);
TG_MUST_CHECK int bus_subscribe(struct tg_bus *bus, const struct bus_subscription *wanted,
                                struct bus_subscription **out_subscription);

/* bus_send.c: everything that leaves. `headers` may be NULL. 0, TG_ERR_DISCONNECTED or
 * TG_ERR_RANGE. */
struct bus_headers {
    const char *names[3];
    const char *values[3];
    size_t count;
};
struct bus_outgoing {
    const char *subject, *reply; /* reply may be NULL */
    const void *data;
    size_t length;
    const struct bus_headers *headers;
};
TG_MUST_CHECK int bus_send(struct tg_bus *bus, const struct bus_outgoing *outgoing);
/* Into bus->packed. 0 or TG_ERR_RANGE. */
TG_MUST_CHECK int bus_pack(struct tg_bus *bus, const ProtobufCMessage *body, size_t *out_length);
TG_MUST_CHECK int bus_subject(const struct bus_row *row, const char *sale, char *out_subject,
                              size_t capacity);

/* bus_call.c */
TG_MUST_CHECK int bus_calls_open(struct bus_calls *calls);
/* Takes a slot and sends, with the inbox that names the slot as reply subject. 0, TG_ERR_FULL,
 * TG_ERR_DISCONNECTED or TG_ERR_RANGE; nobody is told of a call that was not sent. */
TG_MUST_CHECK int bus_call_send(struct tg_bus *bus, const struct bus_call *call,
                                const struct bus_outgoing *outgoing, uint32_t timeout_ms);
void bus_calls_reply(struct tg_bus *bus, natsMsg *message);
void bus_calls_expire(struct tg_bus *bus);
void bus_calls_fail(struct tg_bus *bus, int status);

/* bus_serve.c */
void bus_serve_message(struct tg_bus *bus, struct bus_subscription *subscription,
                       natsMsg *take_message);
void bus_serve_free(struct tg_bus *bus);

/* bus_service.c: the nine subjects of the service protocol. */
TG_MUST_CHECK int bus_service_open(struct tg_bus *bus);
void bus_service_answer(struct tg_bus *bus, const char *verb, natsMsg *message);

/* bus_event.c: what JetStream answered. 0 or TG_ERR_REMOTE, TG_ERR_MALFORMED. */
TG_MUST_CHECK int bus_event_status(const char *text, size_t length);

struct tg_series *bus_series(struct tg_series **slot, enum tg_metric metric, const char *label);

#endif
