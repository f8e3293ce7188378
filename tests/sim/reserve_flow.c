/* SPDX-License-Identifier: Apache-2.0
 * Holds on their way, as services/reserve/service_hold.c carries them. */
#include "tests/sim/sim.h"

#include <string.h>

enum { RESENDS_MAX = 16 };

static struct reserve_node *at(uint8_t node)
{
    return &sim.reserves[node - NODE_RESERVE];
}

static struct sim_carried *take_place(uint8_t node, uint16_t id)
{
    struct reserve_node *reserve = at(node);
    for (uint32_t i = 0; i < SIM_FLOWS; i++) {
        struct sim_carried *carried = &reserve->carried[i];
        if (carried->number == 0) {
            carried->number = ++reserve->numbers * SIM_FLOWS + i;
            carried->flow.stage = RESERVE_STAGE_FREE;
            carried->id = id;
            carried->epoch = reserve->view.epoch;
            carried->back.number = 0;
            return carried;
        }
    }
    return NULL;
}

static struct sim_carried *find(uint8_t node, uint64_t number)
{
    struct sim_carried *carried = &at(node)->carried[number % SIM_FLOWS];
    return carried->number == number && number != 0 ? carried : NULL;
}

static bool in_progress(uint8_t node, uint16_t id)
{
    for (uint32_t i = 0; i < SIM_FLOWS; i++) {
        if (at(node)->carried[i].number != 0 && at(node)->carried[i].id == id) {
            return true;
        }
    }
    return false;
}

/* ---- what the core wants ---- */

static void feed(uint8_t node, struct sim_carried *carried, const struct reserve_event *event,
                 const struct reserve_request *request);

static void run_hold(uint8_t node, struct sim_carried *carried,
                     const struct reserve_request *request)
{
    const struct tg_sale *view = &at(node)->view;
    struct reserve_gate_name gate;
    if (!reserve_gate_name(node, &gate)) {
        const struct reserve_hold_answer nothing = {.taken = RESERVE_TAKEN_NOT_RUN};
        const struct reserve_event event = {.kind = RESERVE_EVENT_GATE, .gate = &nothing};
        feed(node, carried, &event, NULL);
        return;
    }
    const struct reserve_hold_terms terms = {.seal = gate.seal,
                                             .source = gate.source,
                                             .open = carried->flow.phase == TG_PHASE_OPEN,
                                             .provisional_ms = view->hold_ms + view->grace_ms};
    struct reserve_call call;
    reserve_call_hold(&call, gate.keys, request, &terms);
    gate_call(node, &call, USE_HOLD, carried->number);
}

static void run_record(uint8_t node, const struct sim_carried *carried)
{
    const struct tg_hold_record *record = &carried->flow.record;
    const struct sim_id *id = &sim.ids[carried->id];
    union sim_body body = {.record = {.id = carried->id,
                                      .user = id->buyer,
                                      .key = id->key,
                                      .epoch = carried->epoch,
                                      .window = record->window,
                                      .unit_count = (uint8_t)record->unit_count}};
    for (uint32_t i = 0; i < record->unit_count && i < SIM_HOLD_UNITS; i++) {
        body.record.units[i] = (struct ledger_unit){.item = (uint8_t)record->units[i].item,
                                                    .unit = (uint8_t)record->units[i].unit,
                                                    .slot = (uint8_t)record->slots[i]};
    }
    bus_call(node, MESSAGE_RECORD, &body, carried->number);
}

static void run_read(uint8_t node, const struct sim_carried *carried)
{
    const union sim_body body = {.reservation = {.id = carried->id}};
    bus_call(node, MESSAGE_READ, &body, carried->number);
}

static void run_acknowledge(uint8_t node, const struct sim_carried *carried, int64_t deadline_ms)
{
    struct reserve_gate_name gate;
    struct reserve_call call;
    if (reserve_gate_name(node, &gate) && gate.keys->epoch == carried->epoch) {
        reserve_call_acknowledge(&call, &gate, carried->flow.reservation, deadline_ms);
        gate_call(node, &call, USE_ACKNOWLEDGE, 0);
    }
}

static void run_pause(uint8_t node, const struct sim_carried *carried,
                      enum reserve_pause_cause cause)
{
    const bool conflict = cause == RESERVE_PAUSE_UNIT_CONFLICT;
    reserve_close_gate(node, conflict ? sim_conflict_pause(carried->id) : sim_new_pause(),
                       conflict ? "unit_conflict" : "doubt");
}

static void finish(uint8_t node, struct sim_carried *carried, const struct reserve_outcome *outcome)
{
    if (carried->back.number == 0) {
        at(node)->resends--;
    } else {
        const union sim_body body = {.held = {outcome->reason, outcome->replayed}};
        oracle_answer(carried->id, outcome);
        SIM_NOTE("%s answers %s: %s", sim_node_name(node), sim.ids[carried->id].text,
                 outcome->reason == TG_REASON_NONE ? "201" : tg_reason_code(outcome->reason));
        bus_reply(node, &carried->back, &body);
    }
    carried->number = 0;
}

static void act(uint8_t node, struct sim_carried *carried, const struct reserve_action *action,
                const struct reserve_request *request)
{
    switch (action->kind) {
    case RESERVE_DO_HOLD:
        run_hold(node, carried, request);
        break;
    case RESERVE_DO_RECORD:
        if (sim.mutant == MUTANT_ANSWER_EARLY && carried->back.number != 0) {
            const struct reserve_outcome early = {.reason = TG_REASON_NONE};
            finish(node, carried, &early);
            break;
        }
        run_record(node, carried);
        break;
    case RESERVE_DO_READ:
        run_read(node, carried);
        break;
    case RESERVE_DO_ANSWER:
    case RESERVE_DO_END:
        finish(node, carried, &action->outcome);
        break;
    case RESERVE_DO_ACKNOWLEDGE:
        run_acknowledge(node, carried, action->deadline_ms);
        break;
    case RESERVE_DO_PAUSE:
        run_pause(node, carried, action->cause);
        break;
    }
}

static void feed(uint8_t node, struct sim_carried *carried, const struct reserve_event *event,
                 const struct reserve_request *request)
{
    struct reserve_action actions[RESERVE_ACTIONS_MAX];
    const size_t count = reserve_step(&carried->flow, event, actions);
    for (size_t i = 0; i < count; i++) {
        if (sim_dies(node)) {
            return;
        }
        act(node, carried, &actions[i], request);
    }
}

/* ---- requests ---- */

static void fill_request(const struct sim_packet *packet, struct reserve_request *request)
{
    const struct sim_id *id = &sim.ids[packet->body.hold.id];
    memcpy(request->reservation, id->text, sizeof request->reservation);
    request->user[0] = 'u';
    request->user[1] = (uint8_t)('0' + id->buyer);
    request->user_length = 2;
    memset(request->place, 0, sizeof request->place);
    request->place[0] = id->buyer;
    request->place[1] = id->place;
    memset(request->digest, 0, sizeof request->digest);
    request->digest[0] = packet->body.hold.other_body;
    request->digest[1] = (uint8_t)packet->body.hold.id;
    request->window = packet->body.hold.window;
    request->pass_expires_ms =
        SIM_EPOCH_MS + (int64_t)(packet->body.hold.window + 2) * SIM_WINDOW_MS;
    request->wanted_units = (uint32_t)id->any + (id->named >= 0);
    request->demand_count = 1;
    request->demands[0].item = id->item;
    request->demands[0].any = id->any;
    request->demands[0].named_count = id->named >= 0;
    request->demands[0].named[0] = (uint32_t)(id->named >= 0 ? id->named : 0);
}

void reserve_hold_begin(uint8_t node, const struct sim_packet *packet)
{
    struct reserve_node *reserve = at(node);
    struct reserve_request request;
    struct sim_carried *carried = reserve->stated ? take_place(node, packet->body.hold.id) : NULL;
    if (carried == NULL) {
        const union sim_body body = {.held = {.reason = TG_REASON_TRY_AGAIN}};
        bus_reply(node, &packet->back, &body);
        return;
    }
    fill_request(packet, &request);
    carried->back = packet->back;
    const struct reserve_event event = {
        .kind = RESERVE_EVENT_BEGIN,
        .begin = {&request, tg_sale_phase(&reserve->view, sim_mono(node))}};
    feed(node, carried, &event, &request);
}

void reserve_hold_answered(uint8_t node, const struct sim_gate_call *call)
{
    struct sim_carried *carried = find(node, call->token);
    if (carried != NULL) {
        struct reserve_hold_answer hold;
        reserve_answer_hold(&call->answer, &hold);
        const struct reserve_event event = {.kind = RESERVE_EVENT_GATE, .gate = &hold};
        feed(node, carried, &event, NULL);
    }
}

/* As services/reserve/wire.c reads it. */
static void read_ledger(const struct sim_packet *packet, struct reserve_ledger_answer *out_answer)
{
    static const enum reserve_state states[] = {RESERVE_STATE_PENDING, RESERVE_STATE_CONFIRMED,
                                                RESERVE_STATE_EXPIRED, RESERVE_STATE_CANCELLED};
    const struct ledger_answer *told = &packet->body.answer;
    memset(out_answer, 0, offsetof(struct reserve_ledger_answer, units));
    out_answer->recorded = RESERVE_RECORDED_UNKNOWN;
    if (packet->no_answer || told->reason == TG_REASON_TRY_AGAIN) {
        return;
    }
    out_answer->recorded = told->outcome == LEDGER_RECORDED ? RESERVE_RECORDED_NEW
                           : told->outcome == LEDGER_KNOWN  ? RESERVE_RECORDED_KNOWN
                                                            : RESERVE_RECORDED_REFUSED;
    out_answer->reason = told->reason;
    out_answer->state = states[told->state];
    out_answer->expires_ms = told->expires_ms;
    out_answer->unit_count = told->outcome == LEDGER_KNOWN ? told->unit_count : 0;
    for (uint8_t i = 0; i < out_answer->unit_count; i++) {
        out_answer->units[i] = (struct tg_unit_ref){told->units[i].item, told->units[i].unit};
    }
}

void reserve_hold_replied(uint8_t node, const struct sim_packet *packet)
{
    struct sim_carried *carried = find(node, packet->token);
    if (carried == NULL) {
        return;
    }
    struct reserve_ledger_answer answer;
    read_ledger(packet, &answer);
    if (answer.recorded == RESERVE_RECORDED_REFUSED) {
        oracle_refused(answer.reason, carried->id);
    }
    const struct reserve_event event = {
        .kind = packet->kind == MESSAGE_RECORD ? RESERVE_EVENT_RECORDED : RESERVE_EVENT_READ,
        .ledger = &answer};
    feed(node, carried, &event, NULL);
}

/* ---- records that were not answered ---- */

void reserve_resend_tick(uint8_t node)
{
    struct reserve_node *reserve = at(node);
    const struct tg_sale *view = &reserve->view;
    struct reserve_gate_name gate;
    struct reserve_call call;
    if (reserve->resend_busy || !reserve->care.looked || reserve->care.look.unacked == 0 ||
        !view->armed || !reserve_gate_name(node, &gate) || sim.mutant == MUTANT_NO_RESEND) {
        return;
    }
    reserve_call_due(&call, &gate, reserve->resend_cursor, 0,
                     view->hold_ms + view->grace_ms - SIM_CALL_MS);
    reserve->resend_busy = true;
    reserve->resend_epoch = gate.keys->epoch;
    gate_call(node, &call, USE_RESEND, 0);
}

static void resend(uint8_t node, const char *reservation, const struct tg_hold_record *record)
{
    const int id = sim_id_of(reservation, strlen(reservation));
    if (id < 0 || at(node)->resends >= RESENDS_MAX || in_progress(node, (uint16_t)id)) {
        return;
    }
    struct sim_carried *carried = take_place(node, (uint16_t)id);
    if (carried != NULL) {
        at(node)->resends++;
        const struct reserve_event event = {.kind = RESERVE_EVENT_RESEND,
                                            .resend = {reservation, record}};
        feed(node, carried, &event, NULL);
    }
}

void reserve_resend_answered(uint8_t node, const struct reserve_answer *answer)
{
    struct reserve_node *reserve = at(node);
    reserve->resend_busy = false;
    if (reserve->resend_epoch != reserve->view.epoch) {
        memcpy(reserve->resend_cursor, "0", 2);
        return;
    }
    if (answer->ending != RESERVE_ENDED || !reserve_word_is(answer, 0, "due") ||
        !reserve_word_copy(answer, 1, reserve->resend_cursor, sizeof reserve->resend_cursor)) {
        memcpy(reserve->resend_cursor, "0", 2);
        return;
    }
    for (size_t i = 2; i + 1 < answer->count; i += 2) {
        char reservation[TG_RESERVATION_ID_LENGTH + 1];
        struct tg_hold_record record;
        const struct reserve_word *packed = &answer->words[i + 1];
        if (reserve_word_copy(answer, i, reservation, sizeof reservation) &&
            tg_hold_record_parse(packed->text, packed->length, &record) == 0) {
            resend(node, reservation, &record);
        }
    }
}
