/* SPDX-License-Identifier: Apache-2.0
 * Won holds: collected into batches, several in flight, each hold answered on its own. A 201 rests
 * on RECORDED or ALREADY, told only after the commit. */
#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"
#include "services/ledger/service_parts.h"

static Tidegate__V1__ReservationState wire_state(enum ledger_state state)
{
    return (Tidegate__V1__ReservationState)state;
}

void ledger_on_record(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ledger *ledger = context;
    const char *sale = tg_bus_sale(take_incoming);
    struct ledger_hold hold;
    uint64_t token;
    const enum tg_reason reason = ledger_wire_record(
        (const Tidegate__V1__RecordRequest *)tg_bus_body(take_incoming), sale, &hold);
    if (reason != TG_REASON_NONE) {
        tg_metric_add(TG_METRIC_BUS_INVALID, "record_request", 1);
    }
    struct ledger_pending *pending = ledger_ask_begin(ledger, take_incoming, reason, &token);
    if (pending == NULL) {
        return;
    }
    pending->id = hold.id;
    const struct ledger_sale *known = ledger_view_find(ledger, sale);
    const struct ledger_arrival arrival = {
        .sale = sale,
        .hold = &hold,
        .token = token,
        .apart = known != NULL && ledger_hold_judge(&known->sale, &hold) != TG_REASON_NONE};
    if (!ledger_batches_collect(&ledger->batches, tg_now_mono(), &arrival)) {
        tg_metric_add(TG_METRIC_LEDGER_BATCH, "full", 1);
        ledger->load.errors++;
        ledger_pending_reply_reason(&ledger->pendings, pending, TG_REASON_TRY_AGAIN);
        return;
    }
    ledger_send_batches(ledger);
}

static void on_batch_timer(uv_timer_t *timer)
{
    struct ledger *ledger = timer->data;
    ledger->batch_timer_set = false;
    for (uint32_t batch = ledger_batches_next(&ledger->batches, tg_now_mono());
         batch != LEDGER_NO_BATCH; batch = ledger_batches_next(&ledger->batches, tg_now_mono())) {
        ledger->batch_sent_us[batch] = tg_now_us();
        int error = TG_FAILPOINT(LEDGER_RECORD);
        if (error == 0) {
            error =
                ledger->store->record(ledger->store->self, &ledger->batches.batches[batch], batch);
        }
        if (error != 0) {
            ledger_recorded(ledger, batch, error, NULL, 0);
        }
    }
    ledger_send_batches(ledger);
}

/* What arrives within the same millisecond travels together: sending always happens from the timer.
 */
void ledger_send_batches(struct ledger *ledger)
{
    if (ledger->batch_timer_set || ledger_batches_waiting(&ledger->batches) == 0) {
        return;
    }
    ledger->batch_timer->data = ledger;
    if (uv_timer_start(ledger->batch_timer, on_batch_timer, 1, 0) == 0) {
        ledger->batch_timer_set = true;
    }
}

static const char *outcome_name(const struct ledger_recorded *row)
{
    switch (row->outcome) {
    case LEDGER_UNKNOWN:
        return "unknown";
    case LEDGER_RECORDED:
        return "recorded";
    case LEDGER_ALREADY:
        return "already";
    case LEDGER_REFUSED:
        return tg_reason_code(row->reason);
    }
    return "";
}

static Tidegate__V1__RecordOutcome wire_outcome(enum ledger_outcome outcome)
{
    switch (outcome) {
    case LEDGER_UNKNOWN:
        break;
    case LEDGER_RECORDED:
        return TIDEGATE__V1__RECORD_OUTCOME__RECORD_OUTCOME_RECORDED;
    case LEDGER_ALREADY:
        return TIDEGATE__V1__RECORD_OUTCOME__RECORD_OUTCOME_ALREADY;
    case LEDGER_REFUSED:
        return TIDEGATE__V1__RECORD_OUTCOME__RECORD_OUTCOME_REFUSED;
    }
    return TIDEGATE__V1__RECORD_OUTCOME__RECORD_OUTCOME_UNSPECIFIED;
}

/* `repeat`: a second request for the same hold in the same batch; its effect was the first one's.
 */
static void answer_hold(struct ledger *ledger, uint64_t token, const struct ledger_hold *hold,
                        const struct ledger_recorded *row)
{
    struct ledger_pending *pending = ledger_pending_find(&ledger->pendings, token);
    if (pending == NULL) {
        return;
    }
    const bool stored = row->outcome == LEDGER_RECORDED;
    Tidegate__V1__RecordReply reply = TIDEGATE__V1__RECORD_REPLY__INIT;
    reply.outcome = wire_outcome(row->outcome);
    reply.reason = ledger_text(tg_reason_code(row->reason));
    reply.state = wire_state(row->state);
    reply.expires_at_ms = row->expires_ms;
    reply.epoch = row->epoch;
    reply.n_units = stored ? hold->unit_count : row->unit_count;
    reply.units = ledger_wire_units(&ledger->wire_units[0], stored ? hold->units : row->units,
                                    (uint32_t)reply.n_units);
    ledger_pending_reply(&ledger->pendings, pending, &reply.base);
}

static void answer_batch(struct ledger *ledger, const struct ledger_batch *batch,
                         const struct ledger_recorded *rows)
{
    bool conflict = false;
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct ledger_hold *hold = &batch->holds[i];
        struct ledger_pending *pending = ledger_pending_find(&ledger->pendings, batch->tokens[i]);
        tg_metric_add(TG_METRIC_LEDGER_BATCH, outcome_name(&rows[i]), 1);
        if (rows[i].outcome == LEDGER_RECORDED) {
            tg_log_step("reservation.recorded", batch->sale, hold->id.text,
                        pending != NULL ? tg_bus_traceparent(pending->incoming) : "");
        } else if (rows[i].outcome == LEDGER_REFUSED) {
            tg_log(TG_LOG_WARN, "ledger.hold_refused", TG_TEXT_FIELD("sale", batch->sale),
                   TG_TEXT_FIELD("reservation", hold->id.text),
                   TG_TEXT_FIELD("reason", tg_reason_code(rows[i].reason)));
        }
        conflict = conflict || rows[i].reason == TG_REASON_UNIT_CONFLICT;
        answer_hold(ledger, batch->tokens[i], hold, &rows[i]);
    }
    for (uint32_t i = 0; i < batch->follower_count; i++) {
        const uint32_t hold = batch->follower_holds[i];
        answer_hold(ledger, batch->follower_tokens[i], &batch->holds[hold], &rows[hold]);
    }
    if (conflict) {
        ledger_tell_states(ledger); /* the ledger paused the sale in the same transaction */
    }
}

void ledger_recorded(void *context, uint64_t token, int status, const struct ledger_recorded *rows,
                     uint32_t count)
{
    struct ledger *ledger = context;
    const uint32_t number = (uint32_t)token;
    struct ledger_batch *batch = &ledger->batches.batches[number];
    if (status == 0 && TG_FAILPOINT(LEDGER_RECORDED) != 0) {
        status = TG_ERR_TIMEOUT;
    }
    ledger_observe(ledger, status, ledger->batch_sent_us[number]);
    if (status == 0 && count == batch->count) {
        tg_metric_add(TG_METRIC_LEDGER_BATCHES, "", 1);
        ledger->load.requests += batch->count;
        answer_batch(ledger, batch, rows);
    } else {
        const struct ledger_recorded unknown = {.outcome = LEDGER_UNKNOWN,
                                                .reason = TG_REASON_TRY_AGAIN};
        tg_metric_add(TG_METRIC_LEDGER_BATCH, outcome_name(&unknown), batch->count);
        ledger->load.errors += batch->count;
        for (uint32_t i = 0; i < batch->count; i++) {
            answer_hold(ledger, batch->tokens[i], &batch->holds[i], &unknown);
        }
        for (uint32_t i = 0; i < batch->follower_count; i++) {
            answer_hold(ledger, batch->follower_tokens[i], &batch->holds[0], &unknown);
        }
    }
    ledger_batches_done(&ledger->batches, number);
    ledger_send_batches(ledger);
}
