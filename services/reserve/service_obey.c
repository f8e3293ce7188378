/* SPDX-License-Identifier: Apache-2.0
 * What sweeper, ledger and invariant ask of the gate: obey, due, attest, trim. Every one names the
 * epoch it rests on. */
#include "services/reserve/service.h"

#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/io/now.h"

#include <string.h>

/* The connected Redis is the one the ledger knows as the gate of this epoch. While an old primary
 * lives on, each of the two may carry keys of the epoch: what is done on the wrong ones would be
 * told to the ledger as done. */
static bool is_the_gate(const struct tg_sale *sale, const char *present_seal)
{
    char seal[RESERVE_SEAL_BYTES];
    reserve_seal(sale->run_id, sale->replication_id, seal);
    return sale->armed && strcmp(seal, present_seal) == 0;
}

/* The gate of a sale, as calls name it. */
struct meant {
    uint32_t sale;
    char seal[RESERVE_SEAL_BYTES];
    struct reserve_gate_name gate; /* borrows the seal */
};

/* Why nothing is tried, or TG_REASON_NONE. */
static enum tg_reason gate_of(struct reserve_service *service, uint32_t sale, uint64_t epoch,
                              struct meant *out)
{
    const struct reserve_keys *keys = reserve_sale_keys(service, sale);
    if (keys == NULL || service->draining || !reserve_present_seal(service, out->seal)) {
        return TG_REASON_TRY_AGAIN;
    }
    if (epoch != keys->epoch) {
        return TG_REASON_STALE_EPOCH;
    }
    if (!is_the_gate(tg_sales_at(service->sales, sale), out->seal)) {
        return TG_REASON_UNKNOWN_GATE;
    }
    out->sale = sale;
    out->gate = (struct reserve_gate_name){keys, out->seal, tg_app_instance(service->app)};
    return TG_REASON_NONE;
}

static enum tg_reason gate_meant(struct reserve_service *service,
                                 const struct tg_bus_incoming *incoming, uint64_t epoch,
                                 struct meant *out)
{
    const int index = reserve_sale_index(service, tg_bus_sale(incoming));
    return index < 0 ? tg_sales_missing(service->sales)
                     : gate_of(service, (uint32_t)index, epoch, out);
}

static void answer_reason(struct tg_bus_incoming *take_incoming, enum tg_reason reason)
{
    if (reason == TG_REASON_MALFORMED) {
        reserve_count_invalid(take_incoming);
    }
    tg_bus_reply_reason(take_incoming, tg_reason_code(reason));
}

/* ---- obey ---- */

static void obey_finish(struct reserve_service *service, struct reserve_obey_job *job)
{
    Tidegate__V1__ObeyReply reply;
    Tidegate__V1__OrderResult results[TG_MAX_PAGE], *pointers[TG_MAX_PAGE];
    tidegate__v1__obey_reply__init(&reply);
    for (size_t i = 0; i < job->count; i++) {
        tidegate__v1__order_result__init(&results[i]);
        results[i].reservation_id = job->orders[i].reservation;
        results[i].kind = reserve_wire_order_kind(job->orders[i].script);
        results[i].obedience = reserve_wire_obedience(job->results[i]);
        pointers[i] = &results[i];
    }
    reply.epoch = job->epoch;
    reply.n_results = job->count;
    reply.results = pointers;
    if (TG_FAILPOINT(RESERVE_OBEYED) != 0) {
        tg_bus_release(job->incoming);
    } else {
        tg_bus_reply(job->incoming, &reply.base);
    }
    job->number = 0;
    service->jobs_busy--;
}

static void log_order(struct reserve_service *service, const struct reserve_obey_job *job,
                      size_t at)
{
    const char *sale = tg_sales_at(service->sales, job->sale)->name;
    const char *event = job->orders[at].script == RESERVE_SCRIPT_SETTLE    ? "reservation.settled"
                        : job->orders[at].script == RESERVE_SCRIPT_RELEASE ? "reservation.released"
                                                                           : "reservation.extended";
    if (job->results[at] == RESERVE_OBEYED_DONE) {
        tg_log_step(event, sale, job->orders[at].reservation, tg_bus_traceparent(job->incoming));
        if (job->orders[at].script == RESERVE_SCRIPT_RELEASE) {
            reserve_care_stock_turned(service, job->sale, false);
        }
    } else if (job->results[at] == RESERVE_OBEYED_DOUBT) {
        tg_log(TG_LOG_ERROR, "gate.doubt", TG_TEXT_FIELD("sale", sale),
               TG_TEXT_FIELD("reservation", job->orders[at].reservation),
               TG_TEXT_FIELD("script", reserve_script_name(job->orders[at].script)));
    }
}

static void on_obeyed(void *context, uint64_t token, const struct reserve_answer *answer)
{
    struct reserve_service *service = context;
    size_t at = (size_t)(token % TG_MAX_PAGE);
    uint64_t number = token / TG_MAX_PAGE;
    struct reserve_obey_job *job = &service->obey_jobs[number % RESERVE_OBEY_JOBS];
    if (job->number != number) {
        return;
    }
    job->results[at] = reserve_answer_obeyed(answer);
    if (answer->ending == RESERVE_BROKEN) {
        reserve_care_pause(service, job->sale, NULL, "doubt");
    }
    log_order(service, job, at);
    if (--job->outstanding == 0) {
        obey_finish(service, job);
    }
}

static struct reserve_obey_job *obey_job(struct reserve_service *service)
{
    for (uint64_t i = 0; i < RESERVE_OBEY_JOBS; i++) {
        if (service->obey_jobs[i].number == 0) {
            service->obey_jobs[i].number = ++service->job_numbers * RESERVE_OBEY_JOBS + i;
            service->jobs_busy++;
            return &service->obey_jobs[i];
        }
    }
    return NULL;
}

static bool read_orders(const Tidegate__V1__ObeyRequest *message, struct reserve_obey_job *job)
{
    job->count = message->n_orders;
    for (size_t i = 0; i < message->n_orders; i++) {
        if (!reserve_wire_order(message->orders[i], &job->orders[i])) {
            return false;
        }
    }
    return true;
}

void reserve_obey_serve(void *context, struct tg_bus_incoming *take_incoming)
{
    struct reserve_service *service = context;
    const Tidegate__V1__ObeyRequest *message =
        (const Tidegate__V1__ObeyRequest *)tg_bus_body(take_incoming);
    struct meant meant = {0};
    enum tg_reason reason = gate_meant(service, take_incoming, message->epoch, &meant);
    if (message->n_orders == 0 || message->n_orders > TG_MAX_PAGE) {
        reason = TG_REASON_MALFORMED;
    }
    if (reason == TG_REASON_NONE && TG_FAILPOINT(RESERVE_OBEY) != 0) {
        reason = TG_REASON_TRY_AGAIN;
    }
    struct reserve_obey_job *job = reason == TG_REASON_NONE ? obey_job(service) : NULL;
    if (job == NULL) {
        answer_reason(take_incoming, reason == TG_REASON_NONE ? TG_REASON_TRY_AGAIN : reason);
        return;
    }
    if (!read_orders(message, job)) {
        job->number = 0;
        service->jobs_busy--;
        answer_reason(take_incoming, TG_REASON_MALFORMED);
        return;
    }
    job->incoming = take_incoming;
    job->sale = meant.sale;
    job->epoch = message->epoch;
    job->outstanding = job->count;
    uint64_t number = job->number;
    size_t count = job->count;
    for (size_t i = 0; i < count; i++) {
        struct reserve_call call;
        reserve_call_obey(&call, &meant.gate, job->orders[i].script, job->orders[i].reservation,
                          job->orders[i].deadline_ms);
        reserve_store_run(service->store, &call, on_obeyed, service, number * TG_MAX_PAGE + i);
    }
}

/* ---- due ---- */

static void due_finish(struct reserve_service *service, struct reserve_due_job *job,
                       enum tg_reason reason)
{
    Tidegate__V1__GateDueReply reply;
    Tidegate__V1__LapsedHold holds[TG_MAX_PAGE], *pointers[TG_MAX_PAGE];
    tidegate__v1__gate_due_reply__init(&reply);
    for (uint32_t i = 0; i < job->count; i++) {
        struct reserve_due_row *row = &job->rows[i];
        tidegate__v1__lapsed_hold__init(&holds[i]);
        holds[i].reservation_id = row->reservation;
        holds[i].user = (ProtobufCBinaryData){row->record.user_length, row->record.user};
        holds[i].place = (ProtobufCBinaryData){TG_PLACE_BYTES, row->record.place};
        holds[i].window = row->record.window;
        holds[i].digest = (ProtobufCBinaryData){TG_DIGEST_BYTES, row->record.digest};
        pointers[i] = &holds[i];
    }
    reply.reason = (char *)tg_reason_code(reason);
    reply.epoch = job->epoch;
    reply.generation = job->generation;
    reply.n_holds = job->count;
    reply.holds = pointers;
    tg_bus_reply(job->incoming, &reply.base);
    job->number = 0;
    service->jobs_busy--;
}

/* A row that cannot be read is told and skipped: it must not keep the others from coming back. */
static void due_take(struct reserve_service *service, struct reserve_due_job *job,
                     const struct reserve_answer *answer)
{
    for (size_t i = 2; i + 1 < answer->count && job->count < job->limit; i += 2) {
        struct reserve_due_row *row = &job->rows[job->count];
        const struct reserve_word *packed = &answer->words[i + 1];
        bool named = reserve_word_copy(answer, i, row->reservation, sizeof row->reservation) &&
                     tg_reservation_id_valid(row->reservation, strlen(row->reservation));
        if (named && tg_hold_record_parse(packed->text, packed->length, &row->record) == 0) {
            job->count++;
        } else {
            tg_log(TG_LOG_ERROR, "gate.row_unreadable",
                   TG_TEXT_FIELD("sale", tg_sales_at(service->sales, job->sale)->name),
                   TG_TEXT_FIELD("reservation", named ? row->reservation : ""));
        }
    }
}

static void due_page(struct reserve_service *service, struct reserve_due_job *job);

static void on_due(void *context, uint64_t token, const struct reserve_answer *answer)
{
    struct reserve_service *service = context;
    struct reserve_due_job *job = &service->due_jobs[token % RESERVE_DUE_JOBS];
    if (job->number != token) {
        return;
    }
    if (reserve_answer_unknown_gate(answer)) {
        due_finish(service, job, TG_REASON_UNKNOWN_GATE);
        return;
    }
    if (answer->ending != RESERVE_ENDED || !reserve_word_is(answer, 0, "due") ||
        !reserve_word_copy(answer, 1, job->cursor, sizeof job->cursor)) {
        due_finish(service, job,
                   answer->ending == RESERVE_BROKEN ? TG_REASON_DOUBT : TG_REASON_TRY_AGAIN);
        return;
    }
    due_take(service, job, answer);
    job->pages++;
    if (strcmp(job->cursor, "0") == 0 || job->count == job->limit ||
        job->pages >= RESERVE_DUE_PAGES_MAX) {
        due_finish(service, job, TG_REASON_NONE);
    } else {
        due_page(service, job);
    }
}

static void due_page(struct reserve_service *service, struct reserve_due_job *job)
{
    struct meant meant = {0};
    struct reserve_call call;
    const enum tg_reason reason = gate_of(service, job->sale, job->epoch, &meant);
    if (reason != TG_REASON_NONE) {
        due_finish(service, job, reason);
        return;
    }
    reserve_call_due(&call, &meant.gate, job->cursor, INT32_MIN * INT64_C(1000000), 0);
    reserve_store_run(service->store, &call, on_due, service, job->number);
}

static struct reserve_due_job *due_job(struct reserve_service *service)
{
    for (uint64_t i = 0; i < RESERVE_DUE_JOBS; i++) {
        if (service->due_jobs[i].number == 0) {
            service->due_jobs[i].number = ++service->job_numbers * RESERVE_DUE_JOBS + i;
            service->jobs_busy++;
            return &service->due_jobs[i];
        }
    }
    return NULL;
}

void reserve_due_serve(void *context, struct tg_bus_incoming *take_incoming)
{
    struct reserve_service *service = context;
    const Tidegate__V1__GateDueRequest *message =
        (const Tidegate__V1__GateDueRequest *)tg_bus_body(take_incoming);
    const int index = reserve_sale_index(service, tg_bus_sale(take_incoming));
    struct reserve_due_job *job = index >= 0 ? due_job(service) : NULL;
    if (job == NULL) {
        answer_reason(take_incoming,
                      index >= 0 ? TG_REASON_TRY_AGAIN : tg_sales_missing(service->sales));
        return;
    }
    const struct tg_sale *sale = tg_sales_at(service->sales, (size_t)index);
    job->incoming = take_incoming;
    job->sale = (uint32_t)index;
    job->limit =
        message->limit >= 1 && message->limit <= TG_MAX_PAGE ? message->limit : TG_MAX_PAGE;
    job->count = 0;
    job->pages = 0;
    job->epoch = sale->epoch;
    job->generation = sale->generation;
    memcpy(job->cursor, "0", 2);
    due_page(service, job);
}

/* ---- attest and trim: one call, one answer ---- */

static void on_asked(void *context, uint64_t token, const struct reserve_answer *answer)
{
    struct reserve_service *service = context;
    struct reserve_ask *ask = &service->asks[token % RESERVE_ASKS];
    if (ask->number != token) {
        return;
    }
    int64_t until_ms = 0;
    enum tg_reason reason = TG_REASON_TRY_AGAIN;
    if (answer->ending == RESERVE_BROKEN) {
        reason = TG_REASON_DOUBT;
    } else if (reserve_answer_unknown_gate(answer)) {
        reason = TG_REASON_UNKNOWN_GATE;
    } else if (answer->ending == RESERVE_ENDED &&
               reserve_word_is(answer, 0, ask->trim ? "done" : "attested") &&
               reserve_word_number(answer, 1, &until_ms)) {
        reason = TG_REASON_NONE;
    }
    ask->number = 0;
    service->jobs_busy--;
    if (ask->trim || reason != TG_REASON_NONE) {
        answer_reason(ask->incoming, reason);
        return;
    }
    Tidegate__V1__AttestReply reply;
    tidegate__v1__attest_reply__init(&reply);
    reply.attested_until_ms = until_ms;
    tg_bus_reply(ask->incoming, &reply.base);
}

/* Runs the call and answers `take_incoming` when it ends. */
static void ask_run(struct reserve_service *service, struct tg_bus_incoming *take_incoming,
                    bool trim, const struct reserve_call *call)
{
    for (uint64_t i = 0; i < RESERVE_ASKS; i++) {
        struct reserve_ask *ask = &service->asks[i];
        if (ask->number == 0) {
            uint64_t number = ++service->job_numbers * RESERVE_ASKS + i;
            *ask = (struct reserve_ask){number, trim, take_incoming};
            service->jobs_busy++;
            reserve_store_run(service->store, call, on_asked, service, number);
            return;
        }
    }
    answer_reason(take_incoming, TG_REASON_TRY_AGAIN);
}

void reserve_attest_serve(void *context, struct tg_bus_incoming *take_incoming)
{
    struct reserve_service *service = context;
    const Tidegate__V1__AttestRequest *message =
        (const Tidegate__V1__AttestRequest *)tg_bus_body(take_incoming);
    struct meant meant = {0};
    enum tg_reason reason = gate_meant(service, take_incoming, message->epoch, &meant);
    if (message->gate_time_ms <= 0) {
        reason = TG_REASON_MALFORMED;
    }
    if (reason == TG_REASON_NONE && TG_FAILPOINT(RESERVE_ATTEST) != 0) {
        reason = TG_REASON_TRY_AGAIN;
    }
    if (reason != TG_REASON_NONE) {
        answer_reason(take_incoming, reason);
        return;
    }
    const struct reserve_attestation attestation = {
        .run_id = message->run_id,
        .replication_id = message->replication_id,
        .gate_time_ms = message->gate_time_ms,
        .lease_ms = tg_sales_at(service->sales, meant.sale)->proof_lease_ms};
    struct reserve_call call;
    reserve_call_attest(&call, &meant.gate, &attestation);
    ask_run(service, take_incoming, false, &call);
}

void reserve_trim_serve(void *context, struct tg_bus_incoming *take_incoming)
{
    struct reserve_service *service = context;
    const Tidegate__V1__TrimRequest *message =
        (const Tidegate__V1__TrimRequest *)tg_bus_body(take_incoming);
    struct meant meant = {0};
    enum tg_reason reason = gate_meant(service, take_incoming, message->epoch, &meant);
    if (message->shard != 0 || message->stored_sequence > (UINT64_C(1) << 52)) {
        reason = TG_REASON_MALFORMED;
    }
    if (reason != TG_REASON_NONE) {
        answer_reason(take_incoming, reason);
        return;
    }
    struct reserve_call call;
    reserve_call_trim(&call, &meant.gate, message->stored_sequence);
    ask_run(service, take_incoming, true, &call);
}
