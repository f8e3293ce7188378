/* SPDX-License-Identifier: Apache-2.0
 * What comes in for the daemon's handlers: length, subject and encoding are checked before a
 * handler sees anything. */
#include "lib/io/bus_inner.h"

#include <assert.h>
#include <stdio.h>

enum { CODE_BAD_REQUEST = 400, CODE_BUSY = 503, BUS_REPLY_BYTES = 512 };

int tg_bus_serve(struct tg_bus *bus, enum tg_message message, tg_bus_handler *handler,
                 void *context)
{
    const struct bus_row *row = bus_row(message);
    struct bus_subscription wanted = {.duty = BUS_DUTY_SERVE,
                                      .queue = row->kind == BUS_REQUEST ? row->owner : NULL,
                                      .message = message,
                                      .handler = handler,
                                      .context = context};

    if (snprintf(wanted.subject, sizeof(wanted.subject), TG_SUBJECT_PREFIX "%s", row->label) >=
        (int)sizeof(wanted.subject)) {
        return TG_ERR_RANGE;
    }
    return bus_subscribe(bus, &wanted, NULL);
}

int tg_bus_serve_all(struct tg_bus *bus, const struct tg_bus_subject *subjects, size_t count,
                     void *context)
{
    int error = 0;
    for (size_t i = 0; i < count && error == 0; i++) {
        error = tg_bus_serve(bus, subjects[i].message, subjects[i].handler, context);
    }
    return error;
}

/* The token of the subject where the row has its %s. */
static bool read_sale(const struct bus_row *row, const char *subject,
                      char out_sale[TG_MAX_SALE_NAME_BYTES + 1])
{
    size_t prefix = strlen(TG_SUBJECT_PREFIX);
    const char *mark = strstr(row->subject, "%s");
    const char *start;
    size_t length;

    out_sale[0] = '\0';
    if (mark == NULL) {
        return true;
    }
    if (strlen(subject) < prefix + (size_t)(mark - row->subject)) {
        return false;
    }
    start = subject + prefix + (mark - row->subject);
    length = strcspn(start, ".");
    if (!tg_sale_name_valid(start, length)) {
        return false;
    }
    memcpy(out_sale, start, length);
    out_sale[length] = '\0';
    return true;
}

static void read_traceparent(natsMsg *message, char out_text[TG_TRACEPARENT_LENGTH + 1])
{
    const char *text = NULL;

    out_text[0] = '\0';
    if (natsMsgHeader_Get(message, "traceparent", &text) == NATS_OK && text != NULL &&
        strlen(text) == TG_TRACEPARENT_LENGTH &&
        strspn(text, "0123456789abcdef-") == TG_TRACEPARENT_LENGTH) {
        memcpy(out_text, text, TG_TRACEPARENT_LENGTH + 1);
    }
}

static void send_error(struct tg_bus *bus, natsMsg *message, int code, const char *text)
{
    char number[16];
    struct bus_headers headers = {.names = {"Nats-Service-Error", "Nats-Service-Error-Code"},
                                  .values = {text, number},
                                  .count = 2};
    struct bus_outgoing outgoing = {
        .subject = natsMsg_GetReply(message), .data = "", .headers = &headers};

    if (outgoing.subject != NULL) {
        snprintf(number, sizeof(number), "%d", code);
        /* Unsent: the caller times out and knows as much. */
        (void)!bus_send(bus, &outgoing);
    }
}

static void note_error(struct bus_subscription *subscription, int code, const char *text)
{
    subscription->stats.errors++;
    snprintf(subscription->stats.last_error, sizeof(subscription->stats.last_error), "%d:%s", code,
             text);
}

static void refuse(struct tg_bus *bus, struct bus_subscription *subscription, natsMsg *message,
                   const char *text)
{
    tg_metric_add(TG_METRIC_BUS_REFUSED, bus_row(subscription->message)->label, 1);
    subscription->stats.requests++;
    note_error(subscription, CODE_BAD_REQUEST, text);
    send_error(bus, message, CODE_BAD_REQUEST, text);
    natsMsg_Destroy(message);
}

static struct tg_bus_incoming *incoming_new(struct tg_bus *bus)
{
    struct tg_bus_incoming *incoming = bus->pooled;

    if (bus->incoming_count == TG_MAX_BUS_CALLS) {
        return NULL;
    }
    if (incoming != NULL) {
        bus->pooled = incoming->next;
        bus->pooled_count--;
    } else {
        incoming = calloc(1, sizeof(*incoming));
        if (incoming == NULL) {
            return NULL;
        }
    }
    incoming->bus = bus;
    incoming->previous = NULL;
    incoming->next = bus->incoming;
    if (bus->incoming != NULL) {
        bus->incoming->previous = incoming;
    }
    bus->incoming = incoming;
    bus->incoming_count++;
    return incoming;
}

static void incoming_free(struct tg_bus_incoming *incoming)
{
    bus_arena_free(&incoming->arena);
    free(incoming);
}

void tg_bus_release(struct tg_bus_incoming *take_incoming)
{
    struct tg_bus_incoming *incoming = take_incoming;
    struct tg_bus *bus = incoming->bus;

    natsMsg_Destroy(incoming->message);
    incoming->message = NULL;
    if (bus == NULL) {
        incoming_free(incoming);
        return;
    }
    if (incoming->previous != NULL) {
        incoming->previous->next = incoming->next;
    } else {
        bus->incoming = incoming->next;
    }
    if (incoming->next != NULL) {
        incoming->next->previous = incoming->previous;
    }
    bus->incoming_count--;
    if (bus->pooled_count == BUS_POOLED_INCOMING) {
        incoming_free(incoming);
        return;
    }
    bus_arena_reset(&incoming->arena);
    incoming->next = bus->pooled;
    bus->pooled = incoming;
    bus->pooled_count++;
}

void bus_serve_message(struct tg_bus *bus, struct bus_subscription *subscription,
                       natsMsg *take_message)
{
    const struct bus_row *row = bus_row(subscription->message);
    size_t length = (size_t)natsMsg_GetDataLength(take_message);
    struct tg_bus_incoming *incoming;

    if (length > TG_MAX_BUS_BODY_BYTES) {
        refuse(bus, subscription, take_message, "body too long");
        return;
    }
    incoming = incoming_new(bus);
    if (incoming == NULL) {
        note_error(subscription, CODE_BUSY, "too many messages in progress");
        send_error(bus, take_message, CODE_BUSY, "too many messages in progress");
        natsMsg_Destroy(take_message);
        return;
    }
    incoming->message = take_message;
    incoming->subscription = subscription;
    incoming->received_us = tg_now_us();
    incoming->body =
        bus_unpack(&incoming->arena, row->request, natsMsg_GetData(take_message), length);
    if (incoming->body == NULL ||
        !read_sale(row, natsMsg_GetSubject(take_message), incoming->sale)) {
        incoming->message = NULL;
        refuse(bus, subscription, take_message,
               incoming->body == NULL ? "body is not the message of this subject"
                                      : "not a sale name");
        tg_bus_release(incoming);
        return;
    }
    read_traceparent(take_message, incoming->traceparent);
    tg_series_add(
        bus_series(&bus->metrics.served[subscription->message], TG_METRIC_BUS_SERVED, row->label),
        1);
    subscription->stats.requests++;
    subscription->handler(subscription->context, incoming);
}

const ProtobufCMessage *tg_bus_body(const struct tg_bus_incoming *incoming)
{
    return incoming->body;
}

const char *tg_bus_sale(const struct tg_bus_incoming *incoming)
{
    return incoming->sale;
}

const char *tg_bus_traceparent(const struct tg_bus_incoming *incoming)
{
    return incoming->traceparent;
}

bool tg_bus_wants_reply(const struct tg_bus_incoming *incoming)
{
    return natsMsg_GetReply(incoming->message) != NULL;
}

static void observe(struct tg_bus *bus, const struct tg_bus_incoming *incoming)
{
    enum tg_message message = incoming->subscription->message;
    uint64_t took_us = tg_now_us() - incoming->received_us;

    incoming->subscription->stats.processing_us += took_us;
    tg_series_observe_us(bus_series(&bus->metrics.served_seconds[message],
                                    TG_METRIC_BUS_SERVED_SECONDS, bus_row(message)->label),
                         took_us);
}

void tg_bus_reply(struct tg_bus_incoming *take_incoming, const ProtobufCMessage *body)
{
    struct tg_bus *bus = take_incoming->bus;
    struct bus_outgoing outgoing = {.subject = natsMsg_GetReply(take_incoming->message)};

    if (bus != NULL && outgoing.subject != NULL) {
        assert(body->descriptor == bus_row(take_incoming->subscription->message)->reply);
        outgoing.data = bus->packed;
        if (bus_pack(bus, body, &outgoing.length) != 0) {
            tg_bus_reply_error(take_incoming, CODE_BUSY, "answer too long");
            return;
        }
        /* Unsent: the caller times out, and what was done is found again by repeating. */
        (void)!bus_send(bus, &outgoing);
        observe(bus, take_incoming);
    }
    tg_bus_release(take_incoming);
}

void tg_bus_reply_reason(struct tg_bus_incoming *take_incoming, const char *reason)
{
    const ProtobufCMessageDescriptor *type = bus_row(take_incoming->subscription->message)->reply;
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field_by_name(type, "reason");
    union {
        ProtobufCMessage base;
        uint8_t bytes[BUS_REPLY_BYTES];
    } reply;

    assert(field != NULL && field->type == PROTOBUF_C_TYPE_STRING);
    assert(type->sizeof_message <= sizeof(reply));
    protobuf_c_message_init(type, &reply);
    memcpy(reply.bytes + field->offset, &reason, sizeof(reason));
    tg_bus_reply(take_incoming, &reply.base);
}

void tg_bus_reply_error(struct tg_bus_incoming *take_incoming, int code, const char *text)
{
    struct tg_bus *bus = take_incoming->bus;

    if (bus != NULL) {
        note_error(take_incoming->subscription, code, text);
        send_error(bus, take_incoming->message, code, text);
        observe(bus, take_incoming);
    }
    tg_bus_release(take_incoming);
}

void bus_serve_free(struct tg_bus *bus)
{
    while (bus->incoming != NULL) {
        struct tg_bus_incoming *incoming = bus->incoming;
        bus->incoming = incoming->next;
        incoming->bus = NULL; /* its handler still holds it and releases it */
        incoming->next = incoming->previous = NULL;
    }
    while (bus->pooled != NULL) {
        struct tg_bus_incoming *incoming = bus->pooled;
        bus->pooled = incoming->next;
        incoming_free(incoming);
    }
}
