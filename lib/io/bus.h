/* SPDX-License-Identifier: Apache-2.0
 * NATS as the daemons use it: messages of catalog/messages.def, typed, length-checked before
 * unpacking, never blocking the loop. nats.c runs on our loop (event-loop hook, SendAsap);
 * subscriptions are synchronous and drained in a uv_check. Requests use our own inbox; the
 * correlation id is the last token of the reply subject. Every call is refused with
 * TG_ERR_DISCONNECTED while the client is not connected: nothing waits, nothing is replayed stale.
 */
#ifndef TG_IO_BUS_H
#define TG_IO_BUS_H

#include "lib/pure/error.h"

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#define TG_SUBJECT_PREFIX "tidegate.v1."

enum tg_message {
#define TG_MESSAGE(id, subject, kind, owner, request, reply, peers) TG_MESSAGE_##id,
#include "catalog/messages.def"
#undef TG_MESSAGE
    TG_MESSAGE_COUNT
};

enum { TG_TRACEPARENT_LENGTH = 55 };

struct tg_bus;
struct tg_bus_incoming; /* one received message; owned by the handler until replied to or released
                         */

/* Where NATS is and how this process shows who it is. Texts are borrowed during tg_bus_open. */
struct tg_bus_spec {
    const char *url;    /* nats://host:port, or tls://: then the server's certificate is verified */
    const char *daemon; /* "edge": its name in the service protocol */
    const char *instance; /* unique among those */
    const char *identity; /* of catalog/identities.def: the rights it needs, and its inbox */
    const char *keys;     /* folder with nats-IDENTITY; NULL or "": shows none */
    const char *ca; /* file of the authorities trusted with tls://; NULL or "": the system's */
    const char *server_name; /* in its certificate; NULL or "": the URL's host */
};

/* Connects without blocking the loop for more than twice the connect time-out; reconnects for ever.
 * Returns 0 or a negative error. */
TG_MUST_CHECK int tg_bus_open(uv_loop_t *loop, const struct tg_bus_spec *spec,
                              struct tg_bus **out_bus);
/* Sends what is buffered and closes; no callback runs after it. Run the loop until it is empty:
 * closing ends there. NULL is fine. */
struct tg_bus *tg_bus_free(struct tg_bus *bus);
bool tg_bus_connected(const struct tg_bus *bus);
/* Its key file was replaced: connects anew with it, and what is outstanding becomes unknown.
 * Nothing where the key is the same. */
void tg_bus_renew(struct tg_bus *bus);
/* Connected, no pending limit was reached in the last 5 s, and nothing was refused for want of a
 * permission on this connection: what readiness asks. */
bool tg_bus_healthy(const struct tg_bus *bus);

/* Why it is not healthy, for people: what NATS refused, or that it does not answer. "" when it is.
 * Valid until the loop goes on. */
const char *tg_bus_fault(const struct tg_bus *bus);

/* The longest message the server takes, headers included; 0 while not connected. */
int64_t tg_bus_payload_max(const struct tg_bus *bus);

/* Handles a message. Takes the message over: ends with tg_bus_reply or tg_bus_release, now or
 * later. */
typedef void tg_bus_handler(void *context, struct tg_bus_incoming *take_incoming);

/* Serves a subject for every sale (`*`). REQUEST rows join the owner's queue group; ASK_ALL and
 * PUBLISH rows hear everything. Bodies over TG_MAX_BUS_BODY_BYTES or undecodable ones are counted,
 * answered with Nats-Service-Error, and never reach the handler. */
TG_MUST_CHECK int tg_bus_serve(struct tg_bus *bus, enum tg_message message, tg_bus_handler *handler,
                               void *context);

/* The same for each of a table. The first error ends it. */
struct tg_bus_subject {
    enum tg_message message;
    tg_bus_handler *handler;
};
TG_MUST_CHECK int tg_bus_serve_all(struct tg_bus *bus, const struct tg_bus_subject *subjects,
                                   size_t count, void *context);

const ProtobufCMessage *
tg_bus_body(const struct tg_bus_incoming *incoming); /* of the row's request type */
const char *tg_bus_sale(
    const struct tg_bus_incoming *incoming); /* from the subject, validated; "" where it has none */
const char *tg_bus_traceparent(const struct tg_bus_incoming *incoming); /* "" when absent */
bool tg_bus_wants_reply(const struct tg_bus_incoming *incoming);

/* Answers and frees. `body` is of the row's reply type and is not kept. Without a connection the
 * answer is dropped. */
void tg_bus_reply(struct tg_bus_incoming *take_incoming, const ProtobufCMessage *body);
/* The same with nothing but a reason, a code of catalog/reasons.def: the row's reply type has that
 * field. */
void tg_bus_reply_reason(struct tg_bus_incoming *take_incoming, const char *reason);
/* An error of the service protocol instead of a body: Nats-Service-Error(-Code). */
void tg_bus_reply_error(struct tg_bus_incoming *take_incoming, int code, const char *text);
void tg_bus_release(struct tg_bus_incoming *take_incoming);

/* status: 0 and a reply of the row's reply type (borrowed until return), or TG_ERR_TIMEOUT,
 * TG_ERR_DISCONNECTED (unknown), TG_ERR_NO_RESPONDERS (nothing was done), TG_ERR_REMOTE,
 * TG_ERR_MALFORMED, and NULL. */
typedef void tg_bus_on_reply(void *context, uint64_t token, int status,
                             const ProtobufCMessage *reply);

/* Sends a request. `token` comes back with the reply: an id, not a pointer. `sale` is ignored where
 * the subject has none. Returns 0 (then on_reply is called exactly once), TG_ERR_DISCONNECTED,
 * TG_ERR_FULL or TG_ERR_RANGE (body too long). */
TG_MUST_CHECK int tg_bus_call(struct tg_bus *bus, enum tg_message message, const char *sale,
                              const ProtobufCMessage *body, const char *traceparent,
                              uint32_t timeout_ms, tg_bus_on_reply *on_reply, void *context,
                              uint64_t token);

/* Hears every answer of an ASK_ALL request (until the timeout, then once with TG_ERR_TIMEOUT). For
 * tidegatectl. */
TG_MUST_CHECK int tg_bus_ask_all(struct tg_bus *bus, enum tg_message message, const char *sale,
                                 const ProtobufCMessage *body, uint32_t timeout_ms,
                                 tg_bus_on_reply *on_reply, void *context, uint64_t token);

/* Publishes. 0, TG_ERR_DISCONNECTED or TG_ERR_RANGE. */
TG_MUST_CHECK int tg_bus_publish(struct tg_bus *bus, enum tg_message message, const char *sale,
                                 const ProtobufCMessage *body);

/* Publishes an event to JetStream: subject tidegate.v1.event.<sale>.<kind>, Nats-Msg-Id =
 * message_id; on_stored with status 0 when JetStream stored it (or had it already), else a negative
 * error. Stream is made by tg_bus_make_stream. */
typedef void tg_bus_on_stored(void *context, uint64_t token, int status);
TG_MUST_CHECK int tg_bus_event(struct tg_bus *bus, const char *sale, const char *kind,
                               const char *message_id, const ProtobufCMessage *body,
                               uint32_t timeout_ms, tg_bus_on_stored *on_stored, void *context,
                               uint64_t token);
/* Creates the stream TIDEGATE_EVENTS over tidegate.v1.event.> if it is not there (file storage, 1
 * GiB, 7 days). Asynchronous. */
TG_MUST_CHECK int tg_bus_make_stream(struct tg_bus *bus, tg_bus_on_stored *on_stored,
                                     void *context);

#endif
