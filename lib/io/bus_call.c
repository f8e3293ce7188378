/* SPDX-License-Identifier: Apache-2.0
 * Calls outstanding: a bounded table, found by the id in the last token of the reply subject, and a
 * wheel of deadlines. A slot is free before its callback runs, so a callback may call again. */
#include "lib/io/bus_inner.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>

enum { ID_DIGITS = 16, SLOT_BITS = 16 };
_Static_assert(TG_MAX_BUS_CALLS < BUS_NOWHERE, "slots are 16-bit indexes");

int bus_calls_open(struct bus_calls *calls)
{
    calls->table = calloc(TG_MAX_BUS_CALLS, sizeof(*calls->table));
    if (calls->table == NULL) {
        return -ENOMEM;
    }
    for (size_t i = 0; i < TG_MAX_BUS_CALLS; i++) {
        calls->table[i].next = i + 1 < TG_MAX_BUS_CALLS ? (uint16_t)(i + 1) : BUS_NOWHERE;
    }
    for (size_t i = 0; i < BUS_WHEEL; i++) {
        calls->wheel[i] = BUS_NOWHERE;
    }
    calls->tick = tg_now_us() / (BUS_TICK_MS * 1000);
    /* Ids of an earlier process of the same instance name must not meet ours. */
    tg_random(&calls->generation, sizeof(calls->generation));
    return 0;
}

static uint16_t *bucket(struct bus_calls *calls, uint64_t deadline_us)
{
    return &calls->wheel[deadline_us / (BUS_TICK_MS * 1000) % BUS_WHEEL];
}

static void wheel_add(struct bus_calls *calls, struct bus_call *call)
{
    uint16_t *first = bucket(calls, call->deadline_us);
    uint16_t slot = (uint16_t)(call - calls->table);

    call->previous = BUS_NOWHERE;
    call->next = *first;
    if (*first != BUS_NOWHERE) {
        calls->table[*first].previous = slot;
    }
    *first = slot;
}

static void wheel_remove(struct bus_calls *calls, struct bus_call *call)
{
    if (call->previous == BUS_NOWHERE) {
        *bucket(calls, call->deadline_us) = call->next;
    } else {
        calls->table[call->previous].next = call->next;
    }
    if (call->next != BUS_NOWHERE) {
        calls->table[call->next].previous = call->previous;
    }
}

static void on_tick(uv_timer_t *timer)
{
    (void)timer; /* wakes the loop; the check handle expires, after what has arrived was read */
}

static int begin(struct tg_bus *bus, const struct bus_call *call, uint32_t timeout_ms,
                 char out_inbox[BUS_INBOX_BYTES], struct bus_call **out_call)
{
    struct bus_calls *calls = &bus->calls;
    uint16_t slot = calls->free_first;
    struct bus_call *mine;

    if (slot == BUS_NOWHERE) {
        return TG_ERR_FULL;
    }
    mine = &calls->table[slot];
    calls->free_first = mine->next;
    *mine = *call;
    mine->id = ++calls->generation << SLOT_BITS | slot;
    mine->sent_us = tg_now_us();
    mine->deadline_us = mine->sent_us + (uint64_t)timeout_ms * 1000;
    wheel_add(calls, mine);
    if (calls->count++ == 0) {
        uv_timer_start(&bus->tick, on_tick, BUS_TICK_MS, BUS_TICK_MS);
    }
    snprintf(out_inbox, BUS_INBOX_BYTES, "%s%016llx", bus->inbox, (unsigned long long)mine->id);
    *out_call = mine;
    return 0;
}

static void release(struct tg_bus *bus, struct bus_call *call)
{
    struct bus_calls *calls = &bus->calls;

    wheel_remove(calls, call);
    call->kind = BUS_CALL_FREE;
    call->id = 0;
    call->next = calls->free_first;
    calls->free_first = (uint16_t)(call - calls->table);
    if (--calls->count == 0 && !bus->freeing) {
        uv_timer_stop(&bus->tick);
    }
}

static const char *outcome(int status)
{
    switch (status) {
    case TG_ERR_TIMEOUT:
        return "timeout";
    case TG_ERR_DISCONNECTED:
        return "disconnected";
    case TG_ERR_NO_RESPONDERS:
        return "no_responders";
    case TG_ERR_REMOTE:
        return "remote";
    default:
        return "malformed";
    }
}

static void tell(const struct bus_call *call, int status, const ProtobufCMessage *reply)
{
    if (call->kind == BUS_CALL_EVENT) {
        if (call->on_stored != NULL) {
            call->on_stored(call->context, call->token, status);
        }
    } else {
        call->on_reply(call->context, call->token, status, reply);
    }
}

/* The last word on a call. */
static void end(struct tg_bus *bus, struct bus_call *call, int status,
                const ProtobufCMessage *reply)
{
    struct bus_call copy = *call;
    bool awaited = copy.kind == BUS_CALL_ALL && status == TG_ERR_TIMEOUT;

    release(bus, call);
    if (status != 0 && !awaited) {
        tg_metric_add(TG_METRIC_BUS_CALL_FAILURES, outcome(status), 1);
    }
    if (status == 0 && copy.kind == BUS_CALL_ONE) {
        tg_series_observe_us(bus_series(&bus->metrics.call_seconds[copy.message],
                                        TG_METRIC_BUS_CALL_SECONDS, bus_row(copy.message)->label),
                             tg_now_us() - copy.sent_us);
    }
    tell(&copy, status, reply);
}

void bus_calls_fail(struct tg_bus *bus, int status)
{
    for (size_t i = 0; i < TG_MAX_BUS_CALLS && bus->calls.count > 0 && !bus->freeing; i++) {
        if (bus->calls.table[i].kind != BUS_CALL_FREE) {
            end(bus, &bus->calls.table[i], status, NULL);
        }
    }
}

/* Looks the bucket through again from its start after each callback: it may have changed. */
static void expire_bucket(struct tg_bus *bus, uint16_t *first, uint64_t now_us)
{
    struct bus_calls *calls = &bus->calls;
    uint16_t slot = *first;

    while (slot != BUS_NOWHERE && !bus->freeing) {
        struct bus_call *call = &calls->table[slot];
        if (call->deadline_us > now_us) {
            slot = call->next;
            continue;
        }
        end(bus, call, TG_ERR_TIMEOUT, NULL);
        slot = *first;
    }
}

void bus_calls_expire(struct tg_bus *bus)
{
    struct bus_calls *calls = &bus->calls;
    uint64_t now_us = tg_now_us();
    uint64_t tick = now_us / (BUS_TICK_MS * 1000);
    uint64_t from = tick - calls->tick >= BUS_WHEEL ? tick - BUS_WHEEL + 1 : calls->tick;

    if (tick == calls->tick) {
        return;
    }
    /* The present bucket holds deadlines still to come within this tick: it is looked at again next
     * time. */
    calls->tick = tick;
    for (uint64_t t = from; calls->count > 0 && t <= tick && !bus->freeing; t++) {
        expire_bucket(bus, &calls->wheel[t % BUS_WHEEL], now_us);
    }
}

static struct bus_call *find(struct tg_bus *bus, const char *subject)
{
    size_t before = strlen(bus->inbox);
    uint8_t bytes[ID_DIGITS / 2];
    uint64_t id = 0;
    size_t slot;

    if (strlen(subject) != before + ID_DIGITS ||
        tg_hex_decode(subject + before, ID_DIGITS, bytes, sizeof(bytes)) != 0) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(bytes); i++) {
        id = id << 8 | bytes[i];
    }
    slot = id & ((1U << SLOT_BITS) - 1);
    if (slot >= TG_MAX_BUS_CALLS || bus->calls.table[slot].kind == BUS_CALL_FREE ||
        bus->calls.table[slot].id != id) {
        return NULL; /* answered late, or never asked */
    }
    return &bus->calls.table[slot];
}

static int judge(struct tg_bus *bus, const struct bus_call *call, natsMsg *message,
                 ProtobufCMessage **out_reply)
{
    const char *error_text = NULL;
    size_t length = (size_t)natsMsg_GetDataLength(message);

    if (natsMsg_IsNoResponders(message)) {
        return TG_ERR_NO_RESPONDERS;
    }
    if (natsMsgHeader_Get(message, "Nats-Service-Error", &error_text) == NATS_OK) {
        return TG_ERR_REMOTE;
    }
    if (call->kind == BUS_CALL_EVENT) {
        return bus_event_status(natsMsg_GetData(message), length);
    }
    *out_reply =
        bus_unpack(&bus->scratch, bus_row(call->message)->reply, natsMsg_GetData(message), length);
    return *out_reply == NULL ? TG_ERR_MALFORMED : 0;
}

void bus_calls_reply(struct tg_bus *bus, natsMsg *message)
{
    struct bus_call *call = find(bus, natsMsg_GetSubject(message));
    ProtobufCMessage *reply = NULL;
    int status;

    if (call == NULL) {
        return;
    }
    status = judge(bus, call, message, &reply);
    if (call->kind == BUS_CALL_ALL && status != TG_ERR_NO_RESPONDERS) {
        struct bus_call copy = *call; /* stays open for further answers */
        tell(&copy, status, reply);
    } else {
        end(bus, call, status, reply);
    }
    bus_arena_reset(&bus->scratch);
}

int bus_call_send(struct tg_bus *bus, const struct bus_call *call,
                  const struct bus_outgoing *outgoing, uint32_t timeout_ms)
{
    struct bus_outgoing whole = *outgoing;
    char inbox[BUS_INBOX_BYTES];
    struct bus_call *mine;
    int error = begin(bus, call, timeout_ms, inbox, &mine);

    if (error != 0) {
        return error;
    }
    whole.reply = inbox;
    error = bus_send(bus, &whole);
    if (error != 0) {
        release(bus, mine); /* nothing was sent: nobody is told */
    }
    return error;
}

static int call_row(struct tg_bus *bus, const struct bus_call *call, const char *sale,
                    const ProtobufCMessage *body, const char *traceparent, uint32_t timeout_ms)
{
    const struct bus_row *row = bus_row(call->message);
    struct bus_headers headers = {.names = {"traceparent"}, .values = {traceparent}, .count = 1};
    char subject[160];
    struct bus_outgoing outgoing = {.subject = subject, .data = bus->packed};
    int error = bus_subject(row, sale, subject, sizeof(subject));

    if (traceparent != NULL && strlen(traceparent) == TG_TRACEPARENT_LENGTH) {
        outgoing.headers = &headers;
    }
    if (error == 0) {
        error = bus_pack(bus, body, &outgoing.length);
    }
    if (error == 0) {
        error = bus_call_send(bus, call, &outgoing, timeout_ms);
    }
    if (error == 0) {
        tg_series_add(
            bus_series(&bus->metrics.calls[call->message], TG_METRIC_BUS_CALLS, row->label), 1);
    }
    return error;
}

/* NOLINTNEXTLINE(readability-function-size): what a request is made of */
int tg_bus_call(struct tg_bus *bus, enum tg_message message, const char *sale,
                const ProtobufCMessage *body, const char *traceparent, uint32_t timeout_ms,
                tg_bus_on_reply *on_reply, void *context, uint64_t token)
{
    struct bus_call call = {.kind = BUS_CALL_ONE,
                            .message = message,
                            .on_reply = on_reply,
                            .context = context,
                            .token = token};

    assert(bus_row(message)->kind != BUS_PUBLISH);
    return call_row(bus, &call, sale, body, traceparent, timeout_ms);
}

int tg_bus_ask_all(struct tg_bus *bus, enum tg_message message, const char *sale,
                   const ProtobufCMessage *body, uint32_t timeout_ms, tg_bus_on_reply *on_reply,
                   void *context, uint64_t token)
{
    struct bus_call call = {.kind = BUS_CALL_ALL,
                            .message = message,
                            .on_reply = on_reply,
                            .context = context,
                            .token = token};

    assert(bus_row(message)->kind == BUS_ASK_ALL);
    return call_row(bus, &call, sale, body, NULL, timeout_ms);
}
