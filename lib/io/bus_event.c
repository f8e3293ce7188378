/* SPDX-License-Identifier: Apache-2.0
 * Events for the world, kept by JetStream. Plain publishes with a reply inbox: none of the
 * library's waiting js_* calls. */
#include "lib/io/bus_inner.h"

#include <jansson.h>
#include <stdio.h>

#define STREAM_NAME "TIDEGATE_EVENTS"
#define STREAM_CREATE "$JS.API.STREAM.CREATE." STREAM_NAME

enum { STREAM_MS = 5000, KIND_BYTES_MAX = 32 };
enum { STREAM_NAME_IN_USE = 10058 };

/* 7 days and 2 minutes in nanoseconds, 1 GiB. */
static const char stream_config[] =
    "{\"name\":\"" STREAM_NAME "\",\"subjects\":[\"" TG_SUBJECT_PREFIX "event.>\"],"
    "\"retention\":\"limits\",\"storage\":\"file\",\"discard\":\"old\",\"num_replicas\":1,"
    "\"max_bytes\":1073741824,\"max_age\":604800000000000,\"duplicate_window\":120000000000}";

int bus_event_status(const char *text, size_t length)
{
    json_t *answer;
    const json_t *fault;
    int status = 0;

    if (text == NULL || length > TG_MAX_BUS_BODY_BYTES) {
        return TG_ERR_MALFORMED;
    }
    answer = json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL);
    if (!json_is_object(answer)) {
        json_decref(answer);
        return TG_ERR_MALFORMED;
    }
    fault = json_object_get(answer, "error");
    if (fault != NULL) {
        /* A stream that is there already, perhaps as an operator shaped it, is what was asked for.
         */
        const json_t *code = json_object_get(fault, "err_code");
        status = json_integer_value(code) == STREAM_NAME_IN_USE ? 0 : TG_ERR_REMOTE;
    } else if (!json_is_string(json_object_get(answer, "stream")) &&
               !json_is_object(json_object_get(answer, "config"))) {
        status = TG_ERR_MALFORMED;
    }
    json_decref(answer);
    return status;
}

static bool word_valid(const char *text, size_t length_max)
{
    size_t length = strlen(text);

    return length <= length_max && tg_sale_name_valid(text, length);
}

static bool message_id_valid(const char *text)
{
    size_t length = strlen(text);

    for (size_t i = 0; i < length; i++) {
        if (text[i] <= ' ' || text[i] > '~') {
            return false;
        }
    }
    return length >= 1 && length <= TG_MAX_EVENT_ID_BYTES;
}

/* NOLINTNEXTLINE(readability-function-size): what an event is made of */
int tg_bus_event(struct tg_bus *bus, const char *sale, const char *kind, const char *message_id,
                 const ProtobufCMessage *body, uint32_t timeout_ms, tg_bus_on_stored *on_stored,
                 void *context, uint64_t token)
{
    struct bus_call call = {
        .kind = BUS_CALL_EVENT, .on_stored = on_stored, .context = context, .token = token};
    struct bus_headers headers = {.names = {"Nats-Msg-Id"}, .values = {message_id}, .count = 1};
    char subject[160];
    struct bus_outgoing outgoing = {.subject = subject, .data = bus->packed, .headers = &headers};

    if (!word_valid(sale, TG_MAX_SALE_NAME_BYTES) || !word_valid(kind, KIND_BYTES_MAX) ||
        !message_id_valid(message_id) || bus_pack(bus, body, &outgoing.length) != 0) {
        return TG_ERR_RANGE;
    }
    snprintf(subject, sizeof(subject), TG_SUBJECT_PREFIX "event.%s.%s", sale, kind);
    return bus_call_send(bus, &call, &outgoing, timeout_ms);
}

int tg_bus_make_stream(struct tg_bus *bus, tg_bus_on_stored *on_stored, void *context)
{
    struct bus_call call = {.kind = BUS_CALL_EVENT, .on_stored = on_stored, .context = context};
    struct bus_outgoing outgoing = {
        .subject = STREAM_CREATE, .data = stream_config, .length = sizeof(stream_config) - 1};

    return bus_call_send(bus, &call, &outgoing, STREAM_MS);
}
