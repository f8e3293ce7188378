/* SPDX-License-Identifier: Apache-2.0 */
#include "services/reserve/core.h"

#include <string.h>

/* The actions of one step, appended in order. */
struct script {
    struct reserve_action *actions;
    size_t count;
};

static struct reserve_action *append(struct script *script, enum reserve_action_kind kind)
{
    struct reserve_action *action = &script->actions[script->count++];
    memset(action, 0, sizeof *action);
    action->kind = kind;
    return action;
}

/* Ends the flow with a refusal. */
static void refuse(struct reserve_flow *flow, struct script *script, enum tg_reason reason)
{
    struct reserve_action *action =
        append(script, flow->resend ? RESERVE_DO_END : RESERVE_DO_ANSWER);
    action->outcome.reason = reason;
    flow->stage = RESERVE_STAGE_FREE;
}

static void copy_reservation(char out_text[TG_RESERVATION_ID_LENGTH + 1], const char *text)
{
    memcpy(out_text, text, strnlen(text, TG_RESERVATION_ID_LENGTH));
    out_text[strnlen(text, TG_RESERVATION_ID_LENGTH)] = '\0';
}

/* Ends the flow with the reservation. */
static void grant(struct reserve_flow *flow, struct script *script,
                  const struct reserve_ledger_answer *ledger)
{
    struct reserve_action *action =
        append(script, flow->resend ? RESERVE_DO_END : RESERVE_DO_ANSWER);
    struct reserve_outcome *outcome = &action->outcome;
    outcome->replayed = flow->replayed;
    outcome->expires_ms = ledger->expires_ms;
    copy_reservation(outcome->reservation, flow->reservation);
    bool told = ledger->unit_count > 0;
    outcome->unit_count = told ? ledger->unit_count : flow->record.unit_count;
    memcpy(outcome->units, told ? ledger->units : flow->record.units,
           outcome->unit_count * sizeof outcome->units[0]);
    flow->stage = RESERVE_STAGE_FREE;
}

/* Why the daemon's view kept the sale closed. */
static enum tg_reason closed_reason(enum tg_phase phase)
{
    switch (phase) {
    case TG_PHASE_SCHEDULED:
        return TG_REASON_SALE_NOT_OPEN;
    case TG_PHASE_SOLD_OUT:
        return TG_REASON_SOLD_OUT;
    case TG_PHASE_CLOSED:
        return TG_REASON_SALE_CLOSED;
    case TG_PHASE_UNKNOWN:
    case TG_PHASE_OPEN:
    case TG_PHASE_PAUSED:
        break;
    }
    return TG_REASON_SALE_PAUSED;
}

static void record(struct reserve_flow *flow, struct script *script,
                   const struct reserve_hold_answer *gate)
{
    flow->record = gate->record;
    flow->stage = RESERVE_STAGE_RECORD;
    append(script, RESERVE_DO_RECORD);
}

static void refuse_closed(struct reserve_flow *flow, struct script *script)
{
    refuse(flow, script, closed_reason(flow->phase));
    /* The ledger says sold out only when every unit is confirmed. */
    script->actions[script->count - 1].outcome.final = flow->phase == TG_PHASE_SOLD_OUT;
}

static void on_gate(struct reserve_flow *flow, struct script *script,
                    const struct reserve_hold_answer *gate)
{
    switch (gate->taken) {
    case RESERVE_TAKEN_REPLAY_HELD:
        flow->replayed = true;
        record(flow, script, gate);
        return;
    case RESERVE_TAKEN_HELD:
        record(flow, script, gate);
        return;
    case RESERVE_TAKEN_REPLAY_SETTLED:
    case RESERVE_TAKEN_REPLAY_RELEASED:
        flow->replayed = true;
        flow->stage = RESERVE_STAGE_READ;
        append(script, RESERVE_DO_READ);
        return;
    case RESERVE_TAKEN_MISMATCH:
        refuse(flow, script, TG_REASON_IDEMPOTENCY_MISMATCH);
        return;
    case RESERVE_TAKEN_NOT_OPEN:
        refuse_closed(flow, script);
        return;
    case RESERVE_TAKEN_PAUSED:
    case RESERVE_TAKEN_UNPROVED:
        refuse(flow, script, TG_REASON_SALE_PAUSED);
        return;
    case RESERVE_TAKEN_PASS_EXPIRED:
        refuse(flow, script, TG_REASON_PASS_EXPIRED);
        return;
    case RESERVE_TAKEN_PASS_USED:
        refuse(flow, script, TG_REASON_PASS_USED);
        return;
    case RESERVE_TAKEN_LIMIT:
        refuse(flow, script, TG_REASON_LIMIT_REACHED);
        copy_reservation(script->actions[script->count - 1].outcome.reservation, gate->reservation);
        return;
    case RESERVE_TAKEN_SOLD_OUT:
        refuse(flow, script, TG_REASON_SOLD_OUT);
        script->actions[script->count - 1].outcome.final = gate->final;
        return;
    case RESERVE_TAKEN_DOUBT:
        append(script, RESERVE_DO_PAUSE)->cause = RESERVE_PAUSE_DOUBT;
        refuse(flow, script, TG_REASON_TRY_AGAIN);
        return;
    case RESERVE_TAKEN_UNKNOWN_GATE:
    case RESERVE_TAKEN_UNKNOWN:
    case RESERVE_TAKEN_NOT_RUN:
        refuse(flow, script, TG_REASON_TRY_AGAIN);
        return;
    }
}

static void on_known(struct reserve_flow *flow, struct script *script,
                     const struct reserve_ledger_answer *ledger)
{
    switch (ledger->state) {
    case RESERVE_STATE_PENDING:
    case RESERVE_STATE_CONFIRMED:
        if (flow->stage == RESERVE_STAGE_RECORD) {
            append(script, RESERVE_DO_ACKNOWLEDGE)->deadline_ms = ledger->expires_ms;
        }
        grant(flow, script, ledger);
        return;
    case RESERVE_STATE_EXPIRED:
        refuse(flow, script, TG_REASON_RESERVATION_EXPIRED);
        return;
    case RESERVE_STATE_CANCELLED:
        refuse(flow, script, TG_REASON_RESERVATION_CANCELLED);
        return;
    case RESERVE_STATE_UNKNOWN:
        refuse(flow, script, TG_REASON_TRY_AGAIN);
        return;
    }
}

/* The units stay taken at the gate: only a verdict of the ledger gives them back. */
static void on_refused(struct reserve_flow *flow, struct script *script, enum tg_reason reason)
{
    if (reason == TG_REASON_UNIT_CONFLICT) {
        append(script, RESERVE_DO_PAUSE)->cause = RESERVE_PAUSE_UNIT_CONFLICT;
        refuse(flow, script, TG_REASON_TRY_AGAIN);
    } else if (reason == TG_REASON_LIMIT_CONFLICT) {
        refuse(flow, script, TG_REASON_LIMIT_REACHED);
    } else if (reason == TG_REASON_SALE_CLOSED) {
        refuse(flow, script, TG_REASON_SALE_CLOSED);
    } else {
        refuse(flow, script, TG_REASON_TRY_AGAIN);
    }
}

static void on_ledger(struct reserve_flow *flow, struct script *script,
                      const struct reserve_ledger_answer *ledger)
{
    switch (ledger->recorded) {
    case RESERVE_RECORDED_NEW:
        append(script, RESERVE_DO_ACKNOWLEDGE)->deadline_ms = ledger->expires_ms;
        grant(flow, script, ledger);
        return;
    case RESERVE_RECORDED_KNOWN:
        on_known(flow, script, ledger);
        return;
    case RESERVE_RECORDED_REFUSED:
        on_refused(flow, script, ledger->reason);
        return;
    case RESERVE_RECORDED_UNKNOWN:
        refuse(flow, script, TG_REASON_TRY_AGAIN);
        return;
    }
}

size_t reserve_step(struct reserve_flow *flow, const struct reserve_event *event,
                    struct reserve_action out_actions[RESERVE_ACTIONS_MAX])
{
    struct script script = {.actions = out_actions};
    switch (event->kind) {
    case RESERVE_EVENT_BEGIN:
        if (flow->stage == RESERVE_STAGE_FREE) {
            memset(flow, 0, sizeof *flow);
            flow->stage = RESERVE_STAGE_GATE;
            flow->phase = event->begin.phase;
            copy_reservation(flow->reservation, event->begin.request->reservation);
            append(&script, RESERVE_DO_HOLD);
        }
        break;
    case RESERVE_EVENT_RESEND:
        if (flow->stage == RESERVE_STAGE_FREE) {
            memset(flow, 0, sizeof *flow);
            flow->stage = RESERVE_STAGE_RECORD;
            flow->resend = true;
            flow->record = *event->resend.record;
            copy_reservation(flow->reservation, event->resend.reservation);
            append(&script, RESERVE_DO_RECORD);
        }
        break;
    case RESERVE_EVENT_GATE:
        if (flow->stage == RESERVE_STAGE_GATE) {
            on_gate(flow, &script, event->gate);
        }
        break;
    case RESERVE_EVENT_RECORDED:
        if (flow->stage == RESERVE_STAGE_RECORD) {
            on_ledger(flow, &script, event->ledger);
        }
        break;
    case RESERVE_EVENT_READ:
        if (flow->stage == RESERVE_STAGE_READ) {
            on_ledger(flow, &script, event->ledger);
        }
        break;
    }
    return script.count;
}
