/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/bus_inner.h"

#include <stdio.h>

int bus_pack(struct tg_bus *bus, const ProtobufCMessage *body, size_t *out_length)
{
    if (protobuf_c_message_get_packed_size(body) > sizeof(bus->packed)) {
        return TG_ERR_RANGE;
    }
    *out_length = protobuf_c_message_pack(body, bus->packed);
    return 0;
}

int bus_subject(const struct bus_row *row, const char *sale, char *out_subject, size_t capacity)
{
    const char *mark = strstr(row->subject, "%s");
    int length;

    if (mark == NULL) {
        length = snprintf(out_subject, capacity, TG_SUBJECT_PREFIX "%s", row->subject);
    } else {
        if (sale == NULL || !tg_sale_name_valid(sale, strlen(sale))) {
            return TG_ERR_RANGE;
        }
        length = snprintf(out_subject, capacity, TG_SUBJECT_PREFIX "%.*s%s%s",
                          (int)(mark - row->subject), row->subject, sale, mark + 2);
    }
    return length > 0 && (size_t)length < capacity ? 0 : TG_ERR_RANGE;
}

static natsStatus send_with_headers(struct tg_bus *bus, const struct bus_outgoing *outgoing)
{
    natsMsg *message = NULL;
    natsStatus s = natsMsg_Create(&message, outgoing->subject, outgoing->reply, outgoing->data,
                                  (int)outgoing->length);

    for (size_t i = 0; s == NATS_OK && i < outgoing->headers->count; i++) {
        s = natsMsgHeader_Set(message, outgoing->headers->names[i], outgoing->headers->values[i]);
    }
    if (s == NATS_OK) {
        s = natsConnection_PublishMsg(bus->connection, message);
    }
    natsMsg_Destroy(message);
    return s;
}

int bus_send(struct tg_bus *bus, const struct bus_outgoing *outgoing)
{
    natsStatus s;

    if (outgoing->length > TG_MAX_BUS_BODY_BYTES) {
        return TG_ERR_RANGE;
    }
    /* A peer that stopped reading is as good as gone: what would be sent late is better not sent.
     */
    if (!tg_bus_connected(bus) || natsConnection_Buffered(bus->connection) > BUS_BUFFERED_BYTES) {
        return TG_ERR_DISCONNECTED;
    }
    if (outgoing->headers != NULL && outgoing->headers->count > 0) {
        s = send_with_headers(bus, outgoing);
    } else if (outgoing->reply != NULL) {
        s = natsConnection_PublishRequest(bus->connection, outgoing->subject, outgoing->reply,
                                          outgoing->data, (int)outgoing->length);
    } else {
        s = natsConnection_Publish(bus->connection, outgoing->subject, outgoing->data,
                                   (int)outgoing->length);
    }
    return s == NATS_OK ? 0 : TG_ERR_DISCONNECTED;
}

int tg_bus_publish(struct tg_bus *bus, enum tg_message message, const char *sale,
                   const ProtobufCMessage *body)
{
    char subject[160];
    struct bus_outgoing outgoing = {.subject = subject, .data = bus->packed};
    int error = bus_subject(bus_row(message), sale, subject, sizeof(subject));

    if (error == 0) {
        error = bus_pack(bus, body, &outgoing.length);
    }
    return error != 0 ? error : bus_send(bus, &outgoing);
}
