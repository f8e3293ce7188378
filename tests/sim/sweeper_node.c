/* SPDX-License-Identifier: Apache-2.0
 * A sweeper: the shipped core between the ledger and the gate, as services/sweeper/sweep.c. */
#include "tests/sim/sim.h"

#include <string.h>

enum { TURN_MS = 50 };

static struct sweeper_sale *at(uint8_t node)
{
    return &sim.sweepers[node - NODE_SWEEPER];
}

void sweeper_start(uint8_t node)
{
    memset(at(node), 0, sizeof *at(node));
    sim_at(sim.now + sim_between(&sim.chance, 2, TURN_MS), EVENT_TICK, node, 0,
           sim.nodes[node].incarnation);
}

static uint64_t key_of(const struct sweeper_id *id)
{
    const int number = sim_id_of(id->text, strlen(id->text));
    return number >= 0 ? sim.ids[number].key : 0;
}

static void fill_orders(const struct sweeper_sale *work, bool results,
                        struct ledger_orders *out_orders)
{
    static const enum ledger_order kinds[] = {LEDGER_SETTLE, LEDGER_RELEASE, LEDGER_EXTEND};
    const uint32_t count = results ? work->result_count : work->order_count;
    out_orders->epoch = work->epoch;
    out_orders->count = 0;
    for (uint32_t i = 0; i < count && i < SIM_PAGE; i++) {
        const struct sweeper_id *id = results ? &work->results[i].id : &work->orders[i].id;
        const int number = sim_id_of(id->text, strlen(id->text));
        const enum sweeper_kind kind = results ? work->results[i].kind : work->orders[i].kind;
        if (number >= 0) {
            out_orders->ids[out_orders->count] = (uint16_t)number;
            out_orders->kinds[out_orders->count++] = (uint8_t)kinds[kind];
        }
    }
}

static void fill_expiry(const struct sweeper_sale *work, bool bury, struct ledger_expiry *out)
{
    const uint32_t count = bury ? work->hold_count : work->lapsed_count;
    *out =
        (struct ledger_expiry){.with_holds = bury, .epoch = bury ? work->bury_epoch : work->epoch};
    for (uint32_t i = 0; i < count && i < SIM_PAGE; i++) {
        const struct sweeper_id *id = bury ? &work->holds[i].id : &work->lapsed[i];
        const int number = sim_id_of(id->text, strlen(id->text));
        if (number >= 0) {
            out->holds[out->count++] =
                (struct ledger_hold){.id = (uint16_t)number,
                                     .user = sim.ids[number].buyer,
                                     .key = sim.ids[number].key,
                                     .window = bury ? work->holds[i].window : 0};
        }
    }
}

/* The mutant that asks nobody: what looks lapsed is released. */
static void release_at_once(uint8_t node, const struct sweeper_sale *work)
{
    union sim_body body = {.obey = {.orders = {.epoch = work->bury_epoch}}};
    for (uint32_t i = 0; i < work->hold_count && i < SIM_PAGE; i++) {
        const int number = sim_id_of(work->holds[i].id.text, TG_RESERVATION_ID_LENGTH);
        if (number >= 0) {
            body.obey.orders.ids[body.obey.orders.count] = (uint16_t)number;
            body.obey.orders.kinds[body.obey.orders.count++] = LEDGER_RELEASE;
        }
    }
    bus_call(node, MESSAGE_OBEY, &body, UINT64_MAX);
}

static void send_call(uint8_t node, enum sweeper_lane_name lane)
{
    struct sweeper_sale *work = at(node);
    const uint64_t token = (uint64_t)lane << 32 | work->lanes[lane].sequence;
    union sim_body body;
    memset(&body, 0, 64);
    switch (work->lanes[lane].call) {
    case SWEEPER_CALL_NONE:
        break;
    case SWEEPER_CALL_DUE:
        body.due.after = key_of(&work->cursor);
        bus_call(node, MESSAGE_DUE, &body, token);
        break;
    case SWEEPER_CALL_EXPIRE:
        fill_expiry(work, false, &body.expiry);
        bus_call(node, MESSAGE_EXPIRE, &body, token);
        break;
    case SWEEPER_CALL_OBEY:
        fill_orders(work, false, &body.obey.orders);
        body.obey.deadline_ms = 0;
        bus_call(node, MESSAGE_OBEY, &body, token);
        break;
    case SWEEPER_CALL_OBEYED:
        fill_orders(work, true, &body.obey.orders);
        bus_call(node, MESSAGE_OBEYED, &body, token);
        break;
    case SWEEPER_CALL_GATE_DUE:
        bus_call(node, MESSAGE_GATE_DUE, &body, token);
        break;
    case SWEEPER_CALL_BURY:
        fill_expiry(work, true, &body.expiry);
        if (sim.mutant == MUTANT_RELEASE_WITHOUT_VERDICT) {
            release_at_once(node, work);
        }
        bus_call(node, MESSAGE_EXPIRE, &body, token);
        break;
    }
}

static void step(uint8_t node, const struct sweeper_event *event)
{
    static struct sweeper_actions actions;
    sweeper_step(at(node), sim_mono(node), event, &actions);
    for (int lane = 0; lane < SWEEPER_LANES; lane++) {
        const enum sweeper_call next = actions.calls[lane];
        const bool skipped = next == SWEEPER_CALL_GATE_DUE && sim.mutant == MUTANT_NO_RESEND;
        if (next != SWEEPER_CALL_NONE && !skipped) {
            if (sim_dies(node)) {
                return;
            }
            send_call(node, (enum sweeper_lane_name)lane);
        }
    }
}

void sweeper_tick(uint8_t node)
{
    const struct sweeper_event tick = {.kind = SWEEPER_TICK};
    int64_t next = INT64_MAX;
    step(node, &tick);
    for (int lane = 0; lane < SWEEPER_LANES; lane++) {
        const struct sweeper_lane *one = &at(node)->lanes[lane];
        const int64_t wanted = one->call == SWEEPER_CALL_NONE ? one->next.ms - sim_mono(node).ms
                                                              : SWEEPER_CARRY_EVERY_MS;
        next = wanted < next ? wanted : next;
    }
    sim_at(sim.now + (next > TURN_MS ? next : TURN_MS), EVENT_TICK, node, 0,
           sim.nodes[node].incarnation);
}

static struct sweeper_id name(uint16_t id)
{
    struct sweeper_id name;
    memcpy(name.text, sim.ids[id].text, sizeof name.text);
    return name;
}

static void take_due(const struct sim_packet *packet, struct sweeper_event *event)
{
    static struct sweeper_id lapsed[SIM_PAGE];
    static struct sweeper_order orders[SIM_PAGE];
    const struct ledger_due *found = &packet->body.found;
    event->kind = SWEEPER_DUE;
    event->epoch = found->orders.epoch;
    event->generation = 1;
    event->lapsed = lapsed;
    event->lapsed_count = found->lapsed_count;
    event->lapsed_full = found->lapsed_full;
    event->orders = orders;
    event->order_count = found->orders.count;
    event->orders_full = found->orders_full;
    for (uint8_t i = 0; i < found->lapsed_count; i++) {
        lapsed[i] = name(found->lapsed[i]);
    }
    for (uint8_t i = 0; i < found->orders.count; i++) {
        orders[i] = (struct sweeper_order){
            .id = name(found->orders.ids[i]),
            .kind = found->orders.kinds[i] == LEDGER_SETTLE ? SWEEPER_SETTLE : SWEEPER_RELEASE};
    }
}

static void take_results(const struct sim_packet *packet, struct sweeper_event *event)
{
    static struct sweeper_result results[SIM_PAGE];
    const struct ledger_orders *orders = &packet->body.results.orders;
    if (packet->body.results.reason != TG_REASON_NONE) {
        return;
    }
    event->kind = SWEEPER_RESULTS;
    event->results = results;
    event->result_count = orders->count;
    for (uint8_t i = 0; i < orders->count; i++) {
        results[i] = (struct sweeper_result){
            .id = name(orders->ids[i]),
            .kind = orders->kinds[i] == LEDGER_SETTLE ? SWEEPER_SETTLE : SWEEPER_RELEASE,
            .obedience = (enum sweeper_obedience)packet->body.results.obedience[i]};
    }
}

static void take_gate_due(const struct sim_packet *packet, struct sweeper_event *event)
{
    static struct sweeper_hold holds[SIM_PAGE];
    if (packet->body.gate_due.reason != TG_REASON_NONE) {
        return;
    }
    event->kind = SWEEPER_GATE_DUE;
    event->epoch = packet->body.gate_due.epoch;
    event->generation = 1;
    event->holds = holds;
    event->hold_count = packet->body.gate_due.count;
    event->holds_full = packet->body.gate_due.full;
    for (uint8_t i = 0; i < packet->body.gate_due.count; i++) {
        holds[i].id = name(packet->body.gate_due.holds[i].id);
        holds[i].window = packet->body.gate_due.holds[i].window;
    }
}

void sweeper_replied(uint8_t node, const struct sim_packet *packet)
{
    struct sweeper_event event = {.kind = SWEEPER_FAILED,
                                  .lane = (enum sweeper_lane_name)(packet->token >> 32 & 1),
                                  .sequence = (uint32_t)packet->token};
    if (packet->token == UINT64_MAX) {
        return;
    }
    if (!packet->no_answer) {
        switch (packet->kind) {
        case MESSAGE_DUE:
            take_due(packet, &event);
            break;
        case MESSAGE_EXPIRE:
            if (packet->body.verdicts.reason == TG_REASON_NONE) {
                event.kind = SWEEPER_VERDICTS;
                event.final_verdicts = packet->body.verdicts.final;
            }
            break;
        case MESSAGE_OBEY:
            take_results(packet, &event);
            break;
        case MESSAGE_OBEYED:
            event.kind = packet->body.reason == TG_REASON_NONE ? SWEEPER_STORED : SWEEPER_FAILED;
            break;
        case MESSAGE_GATE_DUE:
            take_gate_due(packet, &event);
            break;
        default:
            break;
        }
    }
    step(node, &event);
}
