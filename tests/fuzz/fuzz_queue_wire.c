/* SPDX-License-Identifier: Apache-2.0
 * What the queue takes from the bus: a sequence of messages, each of any bytes, told to a brain
 * that acts. What is accepted is within its bounds; the watermark never falls, and no two leases
 * share an index. */
#include "tests/fuzz/fuzz_message.h"

#include "lib/pure/number.h"
#include "services/queue/wire.h"
#include "tests/unit/queue_bench.h"

#define PACE_MILLI_MAX UINT64_C(1000000000000)

enum { KINDS = 5, EVENTS_MAX = 24 };

static const char sale[] = "sale";

static bool instance_valid(const char *text)
{
    size_t length = strlen(text);
    return length >= 1 && length < TG_TERM_INSTANCE_BYTES &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

static enum tg_reason take(uint8_t kind, const ProtobufCMessage *message, struct queue_event *event)
{
    switch (kind) {
    case 0:
        return queue_wire_lease(sale, (const Tidegate__V1__LeaseRequest *)message, event);
    case 1:
        return queue_wire_presence(sale, (const Tidegate__V1__Presence *)message, event);
    case 2:
        return queue_wire_peer(sale, (const Tidegate__V1__Board *)message, event);
    case 3:
        return queue_wire_pace(sale, (const Tidegate__V1__Pace *)message, event);
    default:
        return queue_wire_stock(sale, (const Tidegate__V1__Stock *)message, event);
    }
}

static void check_presence(const struct queue_event *event)
{
    const uint64_t numbers[] = {event->presence.index_end,       event->presence.tickets,
                                event->presence.arrivals,        event->presence.board_term,
                                event->presence.board_watermark, event->presence.present_at_open,
                                event->presence.index_at_open};
    HOLDS(instance_valid(event->presence.edge));
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        HOLDS(numbers[i] <= TG_COUNT_MAX);
    }
}

static void check(const struct queue_event *event)
{
    switch (event->kind) {
    case QUEUE_TICK:
        HOLDS(!"a tick does not come from the bus");
        break;
    case QUEUE_LEASE:
        HOLDS(instance_valid(event->lease.edge));
        HOLDS(event->lease.count >= 1 && event->lease.count <= TG_MAX_LEASE_INDEXES);
        break;
    case QUEUE_PRESENCE:
        check_presence(event);
        break;
    case QUEUE_PEER:
        HOLDS(instance_valid(event->peer.instance) && event->peer.term <= TG_COUNT_MAX);
        HOLDS(event->peer.watermark <= TG_COUNT_MAX);
        break;
    case QUEUE_PACE:
        HOLDS(event->pace.pace_milli <= PACE_MILLI_MAX && event->pace.term <= TG_COUNT_MAX);
        break;
    case QUEUE_STOCK:
        HOLDS(event->stock.free <=
              (uint64_t)TG_MAX_ITEMS_PER_SALE * (uint64_t)TG_MAX_UNITS_PER_ITEM);
        break;
    }
}

/* What this brain has promised so far. */
struct promises {
    struct queue_bench bench;
    uint64_t leased_to, watermark;
};

static void keeps_promises(struct promises *promises, const struct queue_event *event)
{
    struct queue_bench *bench = &promises->bench;
    bench->boards = 0;
    bench->grant.reason = TG_REASON_COUNT;
    bench_feed(bench, event);
    if (event->kind == QUEUE_LEASE) {
        HOLDS(bench->grant.reason != TG_REASON_COUNT); /* a lease is always answered */
        if (bench->grant.reason == TG_REASON_NONE) {
            HOLDS(bench->grant.count >= 1 && bench->grant.count <= event->lease.count);
            HOLDS(bench->grant.first >= promises->leased_to);
            promises->leased_to = bench->grant.first + bench->grant.count;
        }
    }
    if (bench->boards > 0) {
        HOLDS(bench->board.watermark >= promises->watermark);
        promises->watermark = bench->board.watermark;
    }
}

static void pass_time(struct promises *promises, uint8_t steps)
{
    for (uint8_t i = 0; i < steps % 16; i++) {
        bench_run(&promises->bench, BENCH_STEP_MS);
        HOLDS(promises->bench.board.watermark >= promises->watermark);
        promises->watermark = promises->bench.board.watermark;
    }
}

static void hear(struct promises *promises, struct choice *choice, uint8_t kind)
{
    static const ProtobufCMessageDescriptor *const types[KINDS] = {
        &tidegate__v1__lease_request__descriptor, &tidegate__v1__presence__descriptor,
        &tidegate__v1__board__descriptor, &tidegate__v1__pace__descriptor,
        &tidegate__v1__stock__descriptor};
    struct bus_arena arena = {0};
    struct queue_event event;
    uint8_t body[256];
    size_t wanted = choice_byte(choice);
    size_t length = choice_take(choice, body, wanted);
    const ProtobufCMessage *message = bus_unpack(&arena, types[kind], body, length);
    if (message != NULL && take(kind, message, &event) == TG_REASON_NONE) {
        check(&event);
        keeps_promises(promises, &event);
    }
    bus_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static struct promises promises, active; /* the second: a copy of the first, once it acts */
    struct choice choice = {bytes, size, 0};
    if (active.bench.connected) {
        promises = active; /* at the same place: what points into it still does */
    } else {
        bench_begin(&promises.bench, "queue-a");
        bench_activate(&promises.bench);
        promises.bench.view.phase = TG_PHASE_OPEN;
        active = promises;
    }
    for (int events = 0; events < EVENTS_MAX && choice.at < choice.length; events++) {
        uint8_t kind = choice_byte(&choice) % (KINDS + 1);
        if (kind == KINDS) {
            pass_time(&promises, choice_byte(&choice));
        } else {
            hear(&promises, &choice, kind);
        }
    }
    return 0;
}
