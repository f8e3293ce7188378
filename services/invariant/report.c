/* SPDX-License-Identifier: Apache-2.0
 * What follows from a judgement: metrics and log, the result to the ledger, the attestation after a
 * clean round, the pause after an alarm. */
#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"
#include "services/invariant/checker.h"
#include "tidegate/v1/reserve.pb-c.h"

#include <stdio.h>
#include <string.h>

void invariant_judge_void(struct invariant_judgement *out_judgement, const char *note)
{
    *out_judgement = (struct invariant_judgement){.outcome = INVARIANT_VOID, .void_note = note};
}

void invariant_judge_lost(struct invariant_judgement *out_judgement)
{
    *out_judgement = (struct invariant_judgement){.outcome = INVARIANT_ALARM};
    out_judgement->findings[INVARIANT_CHECK_G] =
        (struct invariant_finding){.failures = 1, .note = "Redis is out of reach"};
}

static void on_stored(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    if (status != 0) {
        tg_log(TG_LOG_WARN, "proof.result_not_stored",
               TG_TEXT_FIELD("error", tg_error_text(status)));
    }
}

static void on_attested(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    const Tidegate__V1__AttestReply *answer = (const Tidegate__V1__AttestReply *)reply;
    if (status != 0) {
        tg_log(TG_LOG_WARN, "proof.not_attested", TG_TEXT_FIELD("error", tg_error_text(status)));
    } else if (answer->reason[0] != '\0') {
        tg_log(TG_LOG_WARN, "proof.not_attested", TG_TEXT_FIELD("reason", answer->reason));
    }
}

/* A call that cannot be sent is like one whose answer is lost: the next round makes it good. */
static void store_result(struct invariant *invariant, size_t index, uint32_t round_ms)
{
    struct invariant_work *work = invariant->works[index];
    struct tg_sale *view = tg_sales_at(invariant->sales, index);
    Tidegate__V1__CheckResult result;
    Tidegate__V1__AppendRequest request = TIDEGATE__V1__APPEND_REQUEST__INIT;
    invariant_wire_result(&work->judgement, work->detail, tg_now_wall().ms, round_ms, &result);
    request.sale = view->name;
    request.epoch = work->core.round.step != INVARIANT_REST ? work->core.round.epoch : view->epoch;
    request.instance = (char *)tg_app_instance(invariant->app);
    request.check = &result;
    const int error = tg_bus_call(tg_app_bus(invariant->app), TG_MESSAGE_LEDGER_APPEND, view->name,
                                  &request.base, NULL, TG_MAX_CALL_MS, on_stored, invariant, index);
    if (error != 0) {
        on_stored(invariant, index, error, NULL);
    }
}

static void attest(struct invariant *invariant, size_t index)
{
    struct invariant_work *work = invariant->works[index];
    struct tg_sale *view = tg_sales_at(invariant->sales, index);
    Tidegate__V1__AttestRequest request = TIDEGATE__V1__ATTEST_REQUEST__INIT;
    request.sale = view->name;
    request.epoch = work->core.round.epoch;
    request.run_id = work->server.run_id;
    request.replication_id = work->server.replication_id;
    request.gate_time_ms = work->look1[0].gate_ms; /* the first look is the earliest */
    int error = TG_FAILPOINT(INVARIANT_ATTEST);
    if (error == 0) {
        error = tg_bus_call(tg_app_bus(invariant->app), TG_MESSAGE_RESERVE_ATTEST, view->name,
                            &request.base, NULL, TG_MAX_CALL_MS, on_attested, invariant, index);
    }
    if (error != 0) {
        on_attested(invariant, index, error, NULL);
    }
}

static void alarm_pause(struct invariant *invariant, size_t index)
{
    struct invariant_work *work = invariant->works[index];
    const struct tg_sale *view = tg_sales_at(invariant->sales, index);
    char id[TG_BASE32_ID_LENGTH + 1], cause[sizeof work->core.pause.cause];
    if (strcmp(work->told, work->detail) != 0) {
        memcpy(work->told, work->detail, sizeof work->told);
        tg_log(TG_LOG_ERROR, "proof.alarm", TG_TEXT_FIELD("sale", view->name),
               TG_TEXT_FIELD("detail", work->detail));
    }
    tg_command_new_id(id);
    (void)snprintf(cause, sizeof cause, "proof: %.100s", work->detail);
    invariant_alarm(&work->core, view, id, cause);
}

static void set_sums(const struct tg_sale *view, const struct invariant_judgement *judgement)
{
    const double sum = (double)(judgement->stock + judgement->pending + judgement->confirmed +
                                judgement->in_flight) -
                       (double)judgement->release_pending;
    tg_metric_set(TG_METRIC_PROOF_PENDING, view->name, (double)judgement->pending);
    tg_metric_set(TG_METRIC_PROOF_CONFIRMED, view->name, (double)judgement->confirmed);
    tg_metric_set(TG_METRIC_PROOF_IN_FLIGHT, view->name, (double)judgement->in_flight);
    tg_metric_set(TG_METRIC_PROOF_RELEASE_PENDING, view->name, (double)judgement->release_pending);
    tg_metric_set(TG_METRIC_PROOF_SUM, view->name, sum);
    tg_metric_set(TG_METRIC_PROOF_INITIAL, view->name, (double)judgement->initial);
    tg_metric_set(TG_METRIC_OVERSOLD, view->name, (double)judgement->oversold);
}

static bool is_unobeyed(const struct invariant_work *work, size_t *at,
                        const struct invariant_entry *entry)
{
    while (*at < work->rows.count &&
           memcmp(work->rows.at[*at].id, entry->id, INVARIANT_ID_BYTES) < 0) {
        (*at)++;
    }
    if (*at == work->rows.count ||
        memcmp(work->rows.at[*at].id, entry->id, INVARIANT_ID_BYTES) != 0) {
        return false;
    }
    const uint8_t state = work->rows.at[*at].state;
    const bool ended = state == INVARIANT_EXPIRED || state == INVARIANT_CANCELLED;
    return ended ? !(entry->places & INVARIANT_RELEASED)
                 : state == INVARIANT_CONFIRMED &&
                       !(entry->places & (INVARIANT_SETTLED | INVARIANT_RELEASED));
}

static void warn(const struct tg_sale *view, const char *event, uint32_t count, const uint8_t *id)
{
    if (count > 0) {
        char text[TG_BASE32_ID_LENGTH + 1];
        tg_base32_id_encode(id, text);
        tg_log(TG_LOG_WARN, event, TG_TEXT_FIELD("sale", view->name),
               TG_NUMBER_FIELD("count", count), TG_TEXT_FIELD("one_of_them", text));
    }
}

/* What should have moved on by now. Depends on time, so it only warns. */
static void warn_of_age(struct invariant_work *work, const struct tg_sale *view, struct tg_mono now)
{
    static uint8_t ids[INVARIANT_LINGER_MAX][INVARIANT_ID_BYTES];
    uint8_t id[INVARIANT_ID_BYTES];
    uint32_t count = 0;
    for (size_t i = 0; i < work->r1.count && count < INVARIANT_LINGER_MAX; i++) {
        if (work->r1.at[i].places & INVARIANT_UNACKED) {
            memcpy(ids[count++], work->r1.at[i].id, INVARIANT_ID_BYTES);
        }
    }
    warn(view, "proof.unacknowledged",
         invariant_linger(&work->core.unacked, now, INVARIANT_UNACKED_WARN_MS, ids, count, id), id);
    count = 0;
    size_t at = 0;
    for (size_t i = 0; i < work->r2.count && count < INVARIANT_LINGER_MAX; i++) {
        if (is_unobeyed(work, &at, &work->r2.at[i])) {
            memcpy(ids[count++], work->r2.at[i].id, INVARIANT_ID_BYTES);
        }
    }
    warn(view, "proof.verdict_not_obeyed",
         invariant_linger(&work->core.unobeyed, now, INVARIANT_UNOBEYED_WARN_MS, ids, count, id),
         id);
}

void invariant_report(struct invariant *invariant, size_t index)
{
    struct invariant_work *work = invariant->works[index];
    const struct tg_sale *view = tg_sales_at(invariant->sales, index);
    const struct invariant_judgement *judgement = &work->judgement;
    const struct tg_mono now = tg_now_mono();
    const bool ran = work->core.round.step != INVARIANT_REST;
    const uint32_t round_ms = ran ? (uint32_t)(now.ms - work->core.round.begun.ms) : 0;
    (void)invariant_detail(judgement, work->detail, sizeof work->detail);
    switch (judgement->outcome) {
    case INVARIANT_CLEAN:
        tg_metric_add(TG_METRIC_PROOF_ROUNDS, "clean", 1);
        work->proved = true;
        work->clean = now;
        work->told[0] = '\0';
        attest(invariant, index);
        warn_of_age(work, view, now);
        break;
    case INVARIANT_VOID:
        tg_metric_add(TG_METRIC_PROOF_ROUNDS, "void", 1);
        tg_log(TG_LOG_INFO, "proof.void", TG_TEXT_FIELD("sale", view->name),
               TG_TEXT_FIELD("why", work->detail));
        break;
    case INVARIANT_ALARM:
        tg_metric_add(TG_METRIC_PROOF_ROUNDS, "alarm", 1);
        alarm_pause(invariant, index);
        break;
    }
    if (judgement->initial > 0) {
        set_sums(view, judgement);
    }
    if (ran) {
        tg_metric_observe_us(TG_METRIC_PROOF_SECONDS, "", (uint64_t)round_ms * 1000);
    }
    store_result(invariant, index, round_ms);
}
