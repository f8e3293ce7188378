/* SPDX-License-Identifier: Apache-2.0
 * What admission takes from the bus: a sequence of messages, each of any bytes, told to a brain.
 * What is accepted is within its bounds; every request is answered once, and nobody without a
 * ticket sealed with our key gets a pass, whatever boards and stocks say. */
#include "tests/fuzz/fuzz_message.h"

#include "services/admission/wire.h"
#include "tests/unit/admission_goals.h"

#define NUMBER_MAX (UINT64_C(1) << 53)

enum { KINDS = 6, EVENTS_MAX = 64, BODY_BYTES_MAX = 1024 };

static const char sale[] = "sale";
static const struct admission_keys keys = {.tickets = {.keys = {{.id = 7, .key = "sealing key"}}},
                                           .sign = {.id = "01234567"},
                                           .mac = "mac key"};

static enum tg_reason take(uint8_t kind, const ProtobufCMessage *message,
                           struct admission_event *event)
{
    switch (kind) {
    case 0:
        return admission_wire_ask(sale, (const Tidegate__V1__PassRequest *)message, event);
    case 1:
        return admission_wire_board(sale, (const Tidegate__V1__Board *)message, event);
    case 2:
        return admission_wire_peer(sale, (const Tidegate__V1__Pace *)message, event);
    case 3:
        return admission_wire_stock(sale, (const Tidegate__V1__Stock *)message, event);
    case 4:
        return admission_wire_load(sale, (const Tidegate__V1__Load *)message, ADMISSION_RESERVE,
                                   event);
    default:
        return admission_wire_signal(sale, (const Tidegate__V1__Signal *)message, event);
    }
}

static void check(const struct admission_event *event)
{
    switch (event->kind) {
    case ADMISSION_TICK:
        HOLDS(!"a tick does not come from the bus");
        break;
    case ADMISSION_ASK:
        HOLDS(event->ask.ticket_length >= 1 && event->ask.ticket_length <= TG_MAX_TICKET_BYTES);
        HOLDS(tg_user_valid(event->ask.user, event->ask.user_length));
        break;
    case ADMISSION_BOARD:
        HOLDS(event->board.term <= NUMBER_MAX && event->board.watermark <= NUMBER_MAX);
        break;
    case ADMISSION_PEER:
        HOLDS(event->peer.term <= NUMBER_MAX && event->peer.instance[0] != '\0');
        HOLDS(strlen(event->peer.instance) < TG_TERM_INSTANCE_BYTES);
        break;
    case ADMISSION_STOCK:
        break;
    case ADMISSION_LOAD:
        HOLDS(event->load.daemon < ADMISSION_DAEMONS);
        break;
    case ADMISSION_SIGNAL:
        HOLDS(event->signal.name[0] != '\0' && event->signal.valid_ms >= 0);
        break;
    }
}

static void step(struct admission_brain *brain, struct admission_now now,
                 struct admission_event *event)
{
    struct admission_action actions[ADMISSION_ACTIONS_MAX];
    if (event->kind == ADMISSION_ASK) {
        event->ask.view = brain->view;
    }
    size_t count = admission_step(brain, now, event, actions), answers = 0;
    HOLDS(count <= ADMISSION_ACTIONS_MAX);
    for (size_t i = 0; i < count; i++) {
        if (actions[i].kind == ADMISSION_DO_ANSWER) {
            answers++;
            HOLDS(actions[i].answer.reason != TG_REASON_NONE);
            HOLDS(actions[i].answer.reason < TG_REASON_COUNT && actions[i].answer.pass[0] == '\0');
        }
        if (actions[i].kind == ADMISSION_DO_PACE) {
            HOLDS(actions[i].pace.pace_milli <= brain->view.bounds.max_milli);
        }
    }
    HOLDS(answers == (event->kind == ADMISSION_ASK ? 1 : 0));
}

static void tick(struct admission_brain *brain, struct admission_now now)
{
    struct admission_event event = {.kind = ADMISSION_TICK};
    event.tick.connected = true;
    event.tick.view = (struct admission_view){
        .phase = TG_PHASE_OPEN,
        .generation = 1,
        .bounds = {
            .start_milli = 1000, .min_milli = 10, .max_milli = 100000, .budget_milli = 100000}};
    step(brain, now, &event);
}

static void hear(struct admission_brain *brain, struct admission_now now, struct choice *choice)
{
    static const ProtobufCMessageDescriptor *const types[KINDS] = {
        &tidegate__v1__pass_request__descriptor, &tidegate__v1__board__descriptor,
        &tidegate__v1__pace__descriptor,         &tidegate__v1__stock__descriptor,
        &tidegate__v1__load__descriptor,         &tidegate__v1__signal__descriptor};
    struct bus_arena arena = {0};
    struct admission_event event;
    uint8_t body[BODY_BYTES_MAX], kind = choice_byte(choice) % KINDS;
    size_t wanted = choice_below(choice, BODY_BYTES_MAX + 1);
    size_t length = choice_take(choice, body, wanted);
    const ProtobufCMessage *message = bus_unpack(&arena, types[kind], body, length);
    if (message != NULL && take(kind, message, &event) == TG_REASON_NONE) {
        check(&event);
        step(brain, now, &event);
    }
    bus_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct choice choice = {bytes, size, 0};
    struct admission_now now = {{1000000}, {INT64_C(1800000000000)}};
    struct tg_term term;
    struct admission_brain brain;
    tg_term_begin(&term, "admission-a", now.mono, 0);
    admission_begin(&brain, &term, &keys, &goals, sale);
    tick(&brain, now);
    for (int events = 0; events < EVENTS_MAX && choice.at < choice.length; events++) {
        now.mono.ms += 100;
        now.wall.ms += 100;
        tick(&brain, now);
        hear(&brain, now, &choice);
    }
    return 0;
}
