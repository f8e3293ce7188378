/* SPDX-License-Identifier: Apache-2.0
 * A ledger daemon: one request, one statement, one answer; it dies before or after the commit. The
 * decisions are ledger.c's. */
#include "tests/sim/sim.h"

#include <string.h>

enum { STATE_MS = 900 };
enum { TICK_STATE };

void ledger_node_start(uint8_t node)
{
    sim_at(sim.now + sim_between(&sim.chance, 2, STATE_MS / 2), EVENT_TICK, node, TICK_STATE,
           sim.nodes[node].incarnation);
}

/* state.{sale}: to all. */
void ledger_told(uint8_t node)
{
    const struct ledger *ledger = &sim.ledger;
    union sim_body body;
    struct sim_state *state = &body.state;
    state->phase = ledger_phase(ledger);
    state->epoch = ledger->epoch;
    state->control_sequence = ledger->control_sequence;
    state->armed = ledger->armed;
    memcpy(state->run_id, ledger->run_id, sizeof state->run_id);
    memcpy(state->replication_id, ledger->replication_id, sizeof state->replication_id);
    state->ledger_now_ms = sim_ledger_now();
    state->pause_count = ledger->pause_count;
    state->lifted_count = ledger->lifted_count;
    memcpy(state->pauses, ledger->pauses, sizeof state->pauses);
    memcpy(state->lifted, ledger->lifted, sizeof state->lifted);
    bus_publish(node, MESSAGE_STATE, &body);
}

void ledger_node_tick(uint8_t node)
{
    if (sim_dies(node)) {
        return;
    }
    const uint64_t before = sim.ledger.control_sequence;
    ledger_tick(&sim.ledger, sim_ledger_now());
    if (sim.ledger.control_sequence != before) {
        SIM_NOTE("%s: the sale is %d now", sim_node_name(node), sim.ledger.stage);
    }
    ledger_told(node);
    sim_at(sim.now + STATE_MS, EVENT_TICK, node, TICK_STATE, sim.nodes[node].incarnation);
}

/* ---- statements ---- */

static void record(const struct sim_packet *packet, union sim_body *reply)
{
    ledger_record(&sim.ledger, sim_ledger_now(), &packet->body.record, &reply->answer);
    if (reply->answer.reason == TG_REASON_UNIT_CONFLICT) {
        ledger_pause(&sim.ledger, sim_conflict_pause(packet->body.record.id));
    }
}

static void ask_reservation(const struct sim_packet *packet, union sim_body *reply)
{
    const uint16_t id = packet->body.reservation.id;
    struct ledger *ledger = &sim.ledger;
    switch (packet->kind) {
    case MESSAGE_CONFIRM:
        ledger_confirm(ledger, sim_ledger_now(), id, packet->body.reservation.payment,
                       &reply->answer);
        break;
    case MESSAGE_EXTEND:
        ledger_extend(ledger, sim_ledger_now(), id, &reply->answer);
        break;
    case MESSAGE_CANCEL:
        ledger_cancel(ledger, id, &reply->answer);
        break;
    default:
        ledger_read(ledger, id, &reply->answer);
        break;
    }
}

static void judge(const struct sim_packet *packet, union sim_body *reply)
{
    const struct ledger_judge *command = &packet->body.control;
    const uint32_t before = sim.ledger.pause_count;
    sim_pause pauses[SIM_PAUSES];
    memcpy(pauses, sim.ledger.pauses, sizeof pauses);
    if (command->kind == LEDGER_REBUILD && sim.ledger.epoch + 1 >= SIM_EPOCHS) {
        reply->reason = TG_REASON_NOT_ALLOWED_NOW;
        return;
    }
    reply->reason = ledger_judge(&sim.ledger, sim_ledger_now(), command);
    SIM_NOTE("ledger: command %u kind %d judged '%s'", command->number, command->kind,
             tg_reason_code(reply->reason));
    if (command->kind != LEDGER_RESUME || sim.ledger.pause_count != 0) {
        return;
    }
    for (uint32_t i = 0; i < before; i++) {
        bool named = false;
        for (uint32_t n = 0; n < command->pause_count; n++) {
            named |= command->pauses[n] == pauses[i];
        }
        if (!named && reply->reason == TG_REASON_NONE) {
            sim_fail("a resume lifted pause %s without naming it", sim_pause_text(pauses[i]));
        }
    }
}

static void run(const struct sim_packet *packet, union sim_body *reply)
{
    struct ledger *ledger = &sim.ledger;
    switch (packet->kind) {
    case MESSAGE_RECORD:
        record(packet, reply);
        break;
    case MESSAGE_READ:
    case MESSAGE_CONFIRM:
    case MESSAGE_EXTEND:
    case MESSAGE_CANCEL:
        ask_reservation(packet, reply);
        break;
    case MESSAGE_DUE:
        ledger_due(ledger, sim_ledger_now(), packet->body.due.after, 4, &reply->found);
        break;
    case MESSAGE_EXPIRE:
        reply->verdicts.reason =
            ledger_expire(ledger, sim_ledger_now(), &packet->body.expiry, &reply->verdicts.final);
        break;
    case MESSAGE_OBEYED:
        reply->reason = ledger_obeyed(ledger, &packet->body.obey.orders);
        break;
    case MESSAGE_CHECK:
        ledger_append_check(ledger, sim_ledger_now(), packet->body.check.epoch,
                            packet->body.check.outcome);
        ledger_tick(ledger, sim_ledger_now());
        break;
    case MESSAGE_LOG:
        reply->log.stored = ledger_append_log(ledger, packet->body.log.epoch,
                                              packet->body.log.entries, packet->body.log.count);
        break;
    case MESSAGE_SNAPSHOT:
        ledger_snapshot(ledger, packet->body.snapshot.epoch, packet->body.snapshot.after,
                        SIM_SNAPSHOT, &reply->page);
        break;
    case MESSAGE_ARMED:
        reply->reason = ledger_arm(ledger, packet->body.armed.epoch, packet->body.armed.run_id,
                                   packet->body.armed.replication_id);
        break;
    case MESSAGE_CONTROL:
        judge(packet, reply);
        break;
    default:
        break;
    }
}

/* An extension goes to the gate at once; nothing rests on it. */
static void tell_effect(uint8_t node, const struct sim_packet *packet, const union sim_body *reply)
{
    const uint64_t none = 0;
    if (packet->kind == MESSAGE_EXTEND && reply->answer.reason == TG_REASON_NONE &&
        !reply->answer.replayed) {
        union sim_body order = {.obey = {.orders = {.epoch = reply->answer.epoch,
                                                    .count = 1,
                                                    .ids = {packet->body.reservation.id},
                                                    .kinds = {LEDGER_EXTEND}},
                                         .deadline_ms = reply->answer.expires_ms}};
        bus_call(node, MESSAGE_OBEY, &order, none);
    }
    if (packet->kind == MESSAGE_CONTROL || packet->kind == MESSAGE_ARMED) {
        ledger_told(node);
    }
}

static bool writes(enum sim_message kind)
{
    return kind != MESSAGE_READ && kind != MESSAGE_DUE && kind != MESSAGE_SNAPSHOT;
}

void ledger_request(uint8_t node, const struct sim_packet *packet)
{
    union sim_body reply;
    memset(&reply, 0, 64);
    if (packet->kind == MESSAGE_STATE || sim_dies(node)) {
        return;
    }
    if (sim.corrupted && packet->from >= NODE_PEOPLE) {
        return; /* a late word of theirs could make the corruption true, or mend it */
    }
    if (sim_on(FAULT_NO_COMMIT) && sim_percent(&sim.fault_chance[FAULT_NO_COMMIT], 5)) {
        sim_occurred(FAULT_NO_COMMIT);
        SIM_NOTE("%s: cannot commit", sim_node_name(node));
        return; /* whoever asked hears nothing, or that it is unknown: the same */
    }
    run(packet, &reply);
    if (writes(packet->kind)) {
        oracle_ledger();
    }
    if (sim_on(FAULT_UNKNOWN_COMMIT) && sim_percent(&sim.fault_chance[FAULT_UNKNOWN_COMMIT], 8)) {
        sim_occurred(FAULT_UNKNOWN_COMMIT);
        SIM_NOTE("%s: committed, unknown to all", sim_node_name(node));
        return;
    }
    if (sim_dies(node)) {
        return;
    }
    tell_effect(node, packet, &reply);
    if (sim.nodes[node].up) {
        bus_reply(node, &packet->back, &reply);
    }
}
