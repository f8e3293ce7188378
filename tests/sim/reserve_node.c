/* SPDX-License-Identifier: Apache-2.0
 * A reserve daemon: its view of the sale, its ticks, and where messages and answers go. The shell
 * in terms of the shipped cores; reserve_flow.c carries holds, reserve_gate.c cares for the gate,
 * reserve_job.c obeys. */
#include "tests/sim/sim.h"

#include <string.h>

enum { LOOK_MS = 600, RESEND_MS = 500, RUSH_MS = 20 };
enum { TICK_LOOK, TICK_RESEND };

static struct reserve_node *at(uint8_t node)
{
    return &sim.reserves[node - NODE_RESERVE];
}

static void again(uint8_t node, uint16_t which, int64_t after_ms)
{
    sim_at(sim.now + after_ms, EVENT_TICK, node, which, sim.nodes[node].incarnation);
}

/* What never changes: the definition. The rest is told by the ledger. */
static void define(struct tg_sale *view)
{
    const struct ledger *ledger = &sim.ledger;
    memset(view, 0, offsetof(struct tg_sale, items));
    memset(&view->opens_at, 0,
           offsetof(struct tg_sale, pauses) - offsetof(struct tg_sale, opens_at));
    view->pause_count = 0;
    view->lifted_count = 0;
    view->own_pause_count = 0;
    view->clean_rounds = 0;
    memcpy(view->name, "s", 2);
    view->item_count = ledger->item_count;
    for (uint8_t i = 0; i < ledger->item_count; i++) {
        view->items[i].units = ledger->units[i];
    }
    view->limit_per_buyer = ledger->limit;
    view->hold_ms = ledger->hold_ms;
    view->grace_ms = ledger->grace_ms;
    view->extend_ms = ledger->extend_ms;
    view->extensions_max = ledger->extensions_max;
    view->proof_every_ms = 1000;
    view->proof_lease_ms = ledger->lease_ms;
    view->shards = 1;
    view->phase = TG_PHASE_UNKNOWN;
    view->heard.ms = INT64_MIN / 2;
}

static bool newer(const struct tg_sale *view, int64_t ledger_now_ms, const struct sim_state *state,
                  struct tg_mono now)
{
    if (state->epoch != view->epoch) {
        return state->epoch > view->epoch;
    }
    if (state->control_sequence != view->control_sequence) {
        return state->control_sequence > view->control_sequence;
    }
    return state->ledger_now_ms >= ledger_now_ms || now.ms - view->heard.ms > TG_MAX_STATE_STALE_MS;
}

/* As lib/io/sales_state.c takes a state. */
bool view_take(struct tg_sale *view, bool *stated, int64_t *ledger_now_ms,
               const struct sim_state *state, struct tg_mono now)
{
    if (*stated && !newer(view, *ledger_now_ms, state, now)) {
        return false;
    }
    if (!*stated) {
        const uint32_t kept = view->own_pause_count;
        define(view);
        view->own_pause_count = kept;
        view->generation = 1;
    }
    *stated = true;
    *ledger_now_ms = state->ledger_now_ms;
    view->phase = state->phase;
    view->epoch = state->epoch;
    view->armed = state->armed;
    memcpy(view->run_id, state->run_id, sizeof view->run_id);
    memcpy(view->replication_id, state->replication_id, sizeof view->replication_id);
    view->control_sequence = state->control_sequence;
    view->heard = now;
    view->pause_count = state->pause_count;
    for (uint32_t i = 0; i < state->pause_count; i++) {
        memcpy(view->pauses[i].id, sim_pause_text(state->pauses[i]), TG_BASE32_ID_LENGTH + 1);
        memcpy(view->pauses[i].cause, "told", 5);
    }
    view->lifted_count = state->lifted_count;
    for (uint32_t i = 0; i < state->lifted_count; i++) {
        memcpy(view->lifted[i], sim_pause_text(state->lifted[i]), TG_BASE32_ID_LENGTH + 1);
    }
    tg_sale_settle_pauses(view);
    return true;
}

void reserve_start(uint8_t node)
{
    struct reserve_node *reserve = at(node);
    define(&reserve->view);
    reserve->stated = false;
    reserve->ledger_now_ms = 0;
    memset(&reserve->care, 0, sizeof reserve->care);
    reserve->resends = 0;
    reserve->resend_busy = false;
    memcpy(reserve->resend_cursor, "0", 2);
    for (int i = 0; i < SIM_FLOWS; i++) {
        reserve->carried[i].number = 0;
        reserve->carried[i].flow.stage = RESERVE_STAGE_FREE;
    }
    for (int i = 0; i < SIM_JOBS; i++) {
        reserve->jobs[i].number = 0;
    }
    sim_at(sim.now + 3, EVENT_CONNECT, node, 0, sim.nodes[node].incarnation);
    again(node, TICK_LOOK, sim_between(&sim.chance, 5, LOOK_MS / 3));
    again(node, TICK_RESEND, sim_between(&sim.chance, 5, RESEND_MS));
}

void reserve_tick(uint8_t node, uint16_t which)
{
    if (which == TICK_LOOK) {
        const bool loading = at(node)->stated && !at(node)->view.armed;
        reserve_care_turn(node);
        again(node, TICK_LOOK, loading ? LOOK_MS / 3 : LOOK_MS + sim_below(&sim.chance, RUSH_MS));
    } else {
        reserve_resend_tick(node);
        again(node, TICK_RESEND, RESEND_MS);
    }
}

static void honour(uint8_t node, const struct ledger_judge *command)
{
    struct reserve_node *reserve = at(node);
    if (command->kind == LEDGER_PAUSE &&
        tg_sale_pause(&reserve->view, sim_pause_text(command->pause), "command") == 0 &&
        reserve->stated) {
        reserve_write_pauses(node);
    }
}

/* Sent before the corruption, for something the ledger has noted as done: it could mend it. */
static bool late_repetition(const struct sim_packet *packet)
{
    if (!sim.corrupted || packet->kind != MESSAGE_OBEY) {
        return false;
    }
    const struct ledger_orders *orders = &packet->body.obey.orders;
    for (uint8_t i = 0; i < orders->count; i++) {
        const struct ledger_row *row = &sim.ledger.rows[orders->ids[i]];
        if (row->present && row->obeyed_epoch == orders->epoch) {
            return true;
        }
    }
    return false;
}

void reserve_request(uint8_t node, const struct sim_packet *packet)
{
    struct reserve_node *reserve = at(node);
    if (late_repetition(packet)) {
        return;
    }
    switch (packet->kind) {
    case MESSAGE_HOLD:
        reserve_hold_begin(node, packet);
        break;
    case MESSAGE_OBEY:
    case MESSAGE_GATE_DUE:
    case MESSAGE_ATTEST:
    case MESSAGE_TRIM:
        reserve_job_begin(node, packet);
        break;
    case MESSAGE_CONTROL:
        honour(node, &packet->body.control);
        break;
    case MESSAGE_STATE:
        if (view_take(&reserve->view, &reserve->stated, &reserve->ledger_now_ms,
                      &packet->body.state, sim_mono(node)) &&
            reserve->care.looked && reserve->care.look.known &&
            reserve->care.look.pause_count <
                reserve->view.pause_count + reserve->view.own_pause_count) {
            reserve_write_pauses(node);
        }
        break;
    default:
        break;
    }
}

void reserve_replied(uint8_t node, const struct sim_packet *packet)
{
    if (packet->kind == MESSAGE_RECORD || packet->kind == MESSAGE_READ) {
        reserve_hold_replied(node, packet);
    } else {
        reserve_care_replied(node, packet);
    }
}

void reserve_gate_answered(uint8_t node, const struct sim_gate_call *call)
{
    switch ((enum sim_gate_use)call->use) {
    case USE_HOLD:
        reserve_hold_answered(node, call);
        break;
    case USE_RESEND:
        reserve_resend_answered(node, &call->answer);
        break;
    case USE_OBEY:
    case USE_DUE:
    case USE_ATTEST:
    case USE_TRIM:
        reserve_job_answered(node, call);
        break;
    case USE_LOOK:
    case USE_BEGIN:
    case USE_PAGE:
    case USE_FINISH:
    case USE_ARM:
        reserve_care_answered(node, call);
        break;
    case USE_ACKNOWLEDGE:
    case USE_PAUSE:
    case USE_LIFT:
        break;
    }
}

bool reserve_gate_name(uint8_t node, struct reserve_gate_name *out_gate)
{
    static char seal[RESERVE_SEAL_BYTES];
    const struct sim_connection *connection = &sim.nodes[node].connection;
    if (!at(node)->stated || !connection->up) {
        return false;
    }
    reserve_seal(connection->run_id, connection->replication_id, seal);
    *out_gate =
        (struct reserve_gate_name){sim_keys(at(node)->view.epoch), seal, sim.nodes[node].instance};
    return true;
}
