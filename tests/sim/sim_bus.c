/* SPDX-License-Identifier: Apache-2.0
 * Daemons that live and die, and the bus between them. */
#include "tests/sim/sim.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

uint8_t sim_kind(uint8_t node)
{
    return node >= NODE_PEOPLE ? node : (uint8_t)(node & ~1u);
}

const char *sim_node_name(uint8_t node)
{
    static const char *const names[NODES] = {"reserve-1", "reserve-2", "ledger-1",  "ledger-2",
                                             "sweeper-1", "sweeper-2", "checker-1", "checker-2",
                                             "people",    "operator"};
    return names[node];
}

static const char *message_name(enum sim_message kind)
{
    static const char *const names[] = {"hold",     "record", "read",    "confirm", "extend",
                                        "cancel",   "due",    "expire",  "obey",    "obeyed",
                                        "gate_due", "attest", "trim",    "check",   "log",
                                        "snapshot", "armed",  "control", "state"};
    return names[kind];
}

struct tg_mono sim_mono(uint8_t node)
{
    return (struct tg_mono){sim.now + sim.nodes[node].mono_offset};
}

int64_t sim_ledger_now(void)
{
    return SIM_EPOCH_MS + sim.now + sim.ledger_offset;
}

int64_t sim_gate_now(int gate)
{
    return SIM_EPOCH_MS + sim.now + sim.redis[gate].clock_offset;
}

/* ---- packets and calls ---- */

static uint16_t packet_take(void)
{
    uint16_t at = sim.packet_free;
    if (at != 0) {
        sim.packet_free = sim.packet_next[at - 1];
        return (uint16_t)(at - 1);
    }
    assert(sim.packet_used < SIM_PACKETS);
    return (uint16_t)sim.packet_used++;
}

static void packet_drop(uint16_t packet)
{
    sim.packet_next[packet] = sim.packet_free;
    sim.packet_free = (uint16_t)(packet + 1);
}

static uint16_t call_take(void)
{
    uint16_t at = sim.call_free;
    if (at != 0) {
        sim.call_free = sim.call_next[at - 1];
        return (uint16_t)(at - 1);
    }
    assert(sim.call_used < SIM_CALLS);
    return (uint16_t)sim.call_used++;
}

static void call_drop(uint16_t call)
{
    sim.calls[call].open = false;
    sim.call_next[call] = sim.call_free;
    sim.call_free = (uint16_t)(call + 1);
}

static int64_t travel_ms(void)
{
    int64_t ms = sim_between(&sim.bus_chance, 1, 4);
    if (sim_on(FAULT_REORDER) && sim_percent(&sim.fault_chance[FAULT_REORDER], 30)) {
        ms += sim_between(&sim.fault_chance[FAULT_REORDER], 1, 120);
        sim_occurred(FAULT_REORDER);
    }
    if (sim_on(FAULT_LATE) && sim_percent(&sim.fault_chance[FAULT_LATE], sim.late_percent)) {
        ms += sim.ledger.hold_ms + sim_between(&sim.fault_chance[FAULT_LATE], 0, 2500);
        sim_occurred(FAULT_LATE);
    }
    return ms;
}

static void send(const struct sim_packet *packet)
{
    uint32_t copies = 1;
    const struct sim_node *to = &sim.nodes[packet->to];
    if (sim.nodes[packet->from].cut || to->cut || !to->up) {
        return;
    }
    if (sim_on(FAULT_LOSS) && sim_percent(&sim.fault_chance[FAULT_LOSS], sim.loss_percent)) {
        sim_occurred(FAULT_LOSS);
        SIM_NOTE("%s -> %s %s lost", sim_node_name(packet->from), sim_node_name(packet->to),
                 message_name(packet->kind));
        return;
    }
    if (sim_on(FAULT_DUPLICATE) &&
        sim_percent(&sim.fault_chance[FAULT_DUPLICATE], sim.duplicate_percent)) {
        sim_occurred(FAULT_DUPLICATE);
        copies = 2;
    }
    for (uint32_t i = 0; i < copies; i++) {
        const uint16_t at = packet_take();
        sim.packets[at] = *packet;
        sim_at(sim.now + travel_ms(), EVENT_DELIVER, packet->to, at, 0);
    }
}

/* ---- who is asked ---- */

static uint8_t group_of(enum sim_message kind)
{
    switch (kind) {
    case MESSAGE_HOLD:
    case MESSAGE_OBEY:
    case MESSAGE_GATE_DUE:
    case MESSAGE_ATTEST:
    case MESSAGE_TRIM:
        return NODE_RESERVE;
    case MESSAGE_RECORD:
    case MESSAGE_READ:
    case MESSAGE_CONFIRM:
    case MESSAGE_EXTEND:
    case MESSAGE_CANCEL:
    case MESSAGE_DUE:
    case MESSAGE_EXPIRE:
    case MESSAGE_OBEYED:
    case MESSAGE_CHECK:
    case MESSAGE_LOG:
    case MESSAGE_SNAPSHOT:
    case MESSAGE_ARMED:
    case MESSAGE_CONTROL:
    case MESSAGE_STATE:
        break;
    }
    return NODE_LEDGER;
}

/* A member of the queue group that is there; NODES: no responders. */
static uint8_t member_of(uint8_t group)
{
    const uint8_t first = (uint8_t)(group + sim_below(&sim.bus_chance, TWO));
    const uint8_t second = first == group ? (uint8_t)(group + 1) : group;
    if (sim.nodes[first].up && !sim.nodes[first].cut) {
        return first;
    }
    return sim.nodes[second].up && !sim.nodes[second].cut ? second : NODES;
}

void bus_call(uint8_t node, enum sim_message kind, const union sim_body *body, uint64_t token)
{
    const uint16_t call = call_take();
    const uint32_t number = ++sim.call_numbers;
    sim.calls[call] = (struct sim_call){.open = true,
                                        .node = node,
                                        .number = number,
                                        .incarnation = sim.nodes[node].incarnation,
                                        .kind = kind,
                                        .token = token};
    const uint8_t to = member_of(group_of(kind));
    const bool nobody = to == NODES || sim.nodes[node].cut;
    assert(sim.timeout_last - sim.timeout_first < SIM_TIMEOUTS);
    sim.timeouts[sim.timeout_last++ % SIM_TIMEOUTS] =
        (struct sim_event){.at = sim.now + SIM_CALL_MS, .a = call, .b = number};
    if (nobody) {
        sim_at(sim.now + 1, EVENT_UNANSWERED, node, call, number);
    }
    if (!nobody) {
        const struct sim_packet packet = {.kind = kind,
                                          .from = node,
                                          .to = to,
                                          .back = {node, call, number, kind},
                                          .body = *body};
        send(&packet);
    }
}

void bus_reply(uint8_t node, const struct sim_return *back, const union sim_body *body)
{
    if (back->number == 0) {
        return;
    }
    const struct sim_packet packet = {.kind = back->kind,
                                      .from = node,
                                      .to = back->node,
                                      .is_reply = true,
                                      .back = *back,
                                      .body = *body};
    send(&packet);
}

void bus_publish(uint8_t node, enum sim_message kind, const union sim_body *body)
{
    for (uint8_t to = 0; to < NODES; to++) {
        const uint8_t to_kind = sim_kind(to);
        const bool wanted =
            kind == MESSAGE_CONTROL
                ? to_kind == NODE_LEDGER || to_kind == NODE_RESERVE || to_kind == NODE_INVARIANT
                : to_kind == NODE_RESERVE || to_kind == NODE_INVARIANT || to_kind == NODE_OPERATOR;
        if (wanted) {
            const struct sim_packet packet = {.kind = kind, .from = node, .to = to, .body = *body};
            send(&packet);
        }
    }
}

static void hand_request(uint8_t node, const struct sim_packet *packet)
{
    switch (sim_kind(node)) {
    case NODE_RESERVE:
        reserve_request(node, packet);
        break;
    case NODE_LEDGER:
        ledger_request(node, packet);
        break;
    case NODE_INVARIANT:
        invariant_heard(node, packet);
        break;
    case NODE_OPERATOR:
        operator_heard(packet);
        break;
    default:
        break;
    }
}

static void hand_reply(uint8_t node, const struct sim_packet *packet)
{
    switch (sim_kind(node)) {
    case NODE_RESERVE:
        reserve_replied(node, packet);
        break;
    case NODE_SWEEPER:
        sweeper_replied(node, packet);
        break;
    case NODE_INVARIANT:
        invariant_replied(node, packet);
        break;
    case NODE_PEOPLE:
        people_replied(packet);
        break;
    default:
        break;
    }
}

/* The reply is somebody's whose call is still open. */
static bool close_call(struct sim_packet *packet)
{
    struct sim_call *call = &sim.calls[packet->back.call];
    if (!call->open || call->number != packet->back.number) {
        return false;
    }
    packet->token = call->token;
    const bool there =
        call->incarnation == sim.nodes[call->node].incarnation && sim.nodes[call->node].up;
    call_drop(packet->back.call);
    return there;
}

void bus_deliver(uint16_t index)
{
    struct sim_packet packet = sim.packets[index];
    packet_drop(index);
    const struct sim_node *node = &sim.nodes[packet.to];
    if (!node->up || node->cut) {
        return;
    }
    SIM_NOTE("%s <- %s %s%s", sim_node_name(packet.to), sim_node_name(packet.from),
             message_name(packet.kind), packet.is_reply ? " reply" : "");
    if (!packet.is_reply) {
        hand_request(packet.to, &packet);
    } else if (close_call(&packet)) {
        hand_reply(packet.to, &packet);
    }
}

void bus_unanswered(uint16_t call, uint32_t number)
{
    struct sim_packet packet = {.kind = sim.calls[call].kind,
                                .to = sim.calls[call].node,
                                .from = sim.calls[call].node,
                                .is_reply = true,
                                .no_answer = true,
                                .back = {.call = call, .number = number}};
    if (close_call(&packet)) {
        SIM_NOTE("%s: no answer to %s", sim_node_name(packet.to), message_name(packet.kind));
        hand_reply(packet.to, &packet);
    }
}

void bus_timeouts(int64_t before)
{
    while (sim.timeout_first != sim.timeout_last) {
        const struct sim_event *next = &sim.timeouts[sim.timeout_first % SIM_TIMEOUTS];
        const bool open = sim.calls[next->a].open && sim.calls[next->a].number == next->b;
        if (open && next->at > before) {
            break;
        }
        sim.timeout_first++;
        if (open) {
            sim.now = next->at;
            sim.events++;
            bus_unanswered(next->a, next->b);
        }
    }
}

/* ---- life and death ---- */

static enum sim_fault death_of(uint8_t node)
{
    switch (sim_kind(node)) {
    case NODE_LEDGER:
        return FAULT_CRASH_LEDGER;
    case NODE_SWEEPER:
        return FAULT_CRASH_SWEEPER;
    case NODE_INVARIANT:
        return FAULT_CRASH_INVARIANT;
    default:
        break;
    }
    return FAULT_CRASH_RESERVE;
}

bool sim_dies(uint8_t node)
{
    if (!sim.nodes[node].up) {
        return true;
    }
    const enum sim_fault fault = death_of(node);
    if (!sim_on(fault) || sim_below(&sim.fault_chance[fault], 1000) >= sim.crash_per_mille) {
        return false;
    }
    sim_occurred(fault);
    sim_crash(node, sim_between(&sim.fault_chance[fault], 20, 900));
    return true;
}

void sim_crash(uint8_t node, int64_t for_ms)
{
    SIM_NOTE("%s dies", sim_node_name(node));
    sim.nodes[node].up = false;
    sim.nodes[node].incarnation++;
    gate_break(node);
    sim_at(sim.now + for_ms, EVENT_RESTART, node, 0, sim.nodes[node].incarnation);
}

void sim_start(uint8_t node)
{
    sim.nodes[node].up = true;
    (void)snprintf(sim.nodes[node].instance, sizeof sim.nodes[node].instance, "i%u.%u", node,
                   sim.nodes[node].incarnation % 1000);
    SIM_NOTE("%s starts", sim_node_name(node));
    switch (sim_kind(node)) {
    case NODE_RESERVE:
        reserve_start(node);
        break;
    case NODE_LEDGER:
        ledger_node_start(node);
        break;
    case NODE_SWEEPER:
        sweeper_start(node);
        break;
    case NODE_INVARIANT:
        invariant_start(node);
        break;
    default:
        break;
    }
}
