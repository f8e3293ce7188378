/* SPDX-License-Identifier: Apache-2.0
 * Holds on their way: the core decides, this sends and answers. */
#include "services/reserve/service.h"

#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"

#include <stdlib.h>
#include <string.h>

/* ---- the table of holds in progress ---- */

int reserve_hold_open(struct reserve_service *service)
{
    service->carried = calloc(TG_MAX_HOLDS_IN_PROGRESS, sizeof service->carried[0]);
    service->free_carried = calloc(TG_MAX_HOLDS_IN_PROGRESS, sizeof service->free_carried[0]);
    if (service->carried == NULL || service->free_carried == NULL) {
        reserve_hold_close(service);
        return TG_ERR_FULL;
    }
    for (uint32_t i = 0; i < TG_MAX_HOLDS_IN_PROGRESS; i++) {
        service->free_carried[i] = i;
    }
    service->free_carried_count = TG_MAX_HOLDS_IN_PROGRESS;
    return 0;
}

void reserve_hold_close(struct reserve_service *service)
{
    free(service->carried);
    free(service->free_carried);
    service->carried = NULL;
    service->free_carried = NULL;
}

static struct reserve_carried *take_place(struct reserve_service *service, uint32_t sale)
{
    if (service->free_carried_count == 0) {
        return NULL;
    }
    uint32_t index = service->free_carried[--service->free_carried_count];
    struct reserve_carried *carried = &service->carried[index];
    carried->number = ++service->carried_numbers * TG_MAX_HOLDS_IN_PROGRESS + index;
    carried->flow.stage = RESERVE_STAGE_FREE;
    carried->sale = sale;
    carried->epoch = tg_sales_at(service->sales, sale)->epoch;
    carried->began_us = tg_now_us();
    carried->incoming = NULL;
    carried->traceparent[0] = '\0';
    service->by_sale[sale].in_progress++;
    return carried;
}

static void leave_place(struct reserve_service *service, struct reserve_carried *carried)
{
    service->by_sale[carried->sale].in_progress--;
    service->free_carried[service->free_carried_count++] =
        (uint32_t)(carried->number % TG_MAX_HOLDS_IN_PROGRESS);
    carried->number = 0;
    carried->flow.stage = RESERVE_STAGE_FREE;
}

static struct reserve_carried *find(struct reserve_service *service, uint64_t number)
{
    struct reserve_carried *carried = &service->carried[number % TG_MAX_HOLDS_IN_PROGRESS];
    return carried->number == number ? carried : NULL;
}

static bool in_progress(const struct reserve_service *service, const char *reservation)
{
    for (uint32_t i = 0; i < TG_MAX_HOLDS_IN_PROGRESS; i++) {
        const struct reserve_carried *carried = &service->carried[i];
        if (carried->number != 0 && strcmp(carried->flow.reservation, reservation) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- what the core wants ---- */

static void feed(struct reserve_service *service, struct reserve_carried *carried,
                 const struct reserve_event *event, const struct reserve_request *request);

static void on_gate(void *context, uint64_t token, const struct reserve_answer *answer)
{
    struct reserve_service *service = context;
    struct reserve_carried *carried = find(service, token);
    if (carried == NULL) {
        return;
    }
    struct reserve_hold_answer hold;
    reserve_answer_hold(answer, &hold);
    struct tg_sale *sale = tg_sales_at(service->sales, carried->sale);
    if (hold.taken == RESERVE_TAKEN_HELD && TG_FAILPOINT(RESERVE_HELD) != 0) {
        hold.taken = RESERVE_TAKEN_UNKNOWN;
    }
    if (hold.taken == RESERVE_TAKEN_HELD) {
        tg_log_step("reservation.held", sale->name, carried->flow.reservation,
                    carried->traceparent);
    } else if (hold.taken == RESERVE_TAKEN_SOLD_OUT) {
        reserve_care_stock_turned(service, carried->sale, true);
    }
    const struct reserve_event event = {.kind = RESERVE_EVENT_GATE, .gate = &hold};
    feed(service, carried, &event, NULL);
}

static void run_hold(struct reserve_service *service, struct reserve_carried *carried,
                     const struct reserve_request *request)
{
    const struct tg_sale *sale = tg_sales_at(service->sales, carried->sale);
    const struct reserve_keys *keys = reserve_sale_keys(service, carried->sale);
    char seal[RESERVE_SEAL_BYTES];
    if (keys == NULL || !reserve_present_seal(service, seal) || TG_FAILPOINT(RESERVE_HOLD) != 0) {
        const struct reserve_answer nothing = {.ending = RESERVE_NOT_RUN};
        on_gate(service, carried->number, &nothing);
        return;
    }
    const struct reserve_hold_terms terms = {.seal = seal,
                                             .source = tg_app_instance(service->app),
                                             .open = carried->flow.phase == TG_PHASE_OPEN,
                                             .provisional_ms = sale->hold_ms + sale->grace_ms};
    struct reserve_call call;
    reserve_call_hold(&call, keys, request, &terms);
    reserve_store_run(service->store, &call, on_gate, service, carried->number);
}

static void on_recorded(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    struct reserve_service *service = context;
    struct reserve_carried *carried = find(service, token);
    if (carried == NULL) {
        return;
    }
    if (status == 0 && TG_FAILPOINT(RESERVE_RECORDED) != 0) {
        status = TG_ERR_TIMEOUT;
    }
    struct reserve_ledger_answer answer;
    reserve_wire_recorded(status, (const Tidegate__V1__RecordReply *)reply, &answer);
    const struct reserve_event event = {.kind = RESERVE_EVENT_RECORDED, .ledger = &answer};
    feed(service, carried, &event, NULL);
}

static void on_read(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    struct reserve_service *service = context;
    struct reserve_carried *carried = find(service, token);
    if (carried == NULL) {
        return;
    }
    struct reserve_ledger_answer answer;
    reserve_wire_read(status, (const Tidegate__V1__ReservationReply *)reply, &answer);
    const struct reserve_event event = {.kind = RESERVE_EVENT_READ, .ledger = &answer};
    feed(service, carried, &event, NULL);
}

static void run_record(struct reserve_service *service, struct reserve_carried *carried)
{
    const struct tg_sale *sale = tg_sales_at(service->sales, carried->sale);
    struct reserve_record_request request;
    reserve_wire_record(sale, carried->epoch, &carried->flow, &request);
    uint64_t number = carried->number;
    int error = TG_FAILPOINT(RESERVE_RECORD);
    if (error == 0) {
        error = tg_bus_call(tg_app_bus(service->app), TG_MESSAGE_LEDGER_RECORD, sale->name,
                            &request.message.base, carried->traceparent, TG_MAX_CALL_MS,
                            on_recorded, service, number);
    }
    if (error != 0) {
        on_recorded(service, number, error, NULL);
    }
}

static void run_read(struct reserve_service *service, struct reserve_carried *carried)
{
    Tidegate__V1__ReadRequest request;
    tidegate__v1__read_request__init(&request);
    request.reservation_id = carried->flow.reservation;
    request.user = (ProtobufCBinaryData){carried->user_length, carried->user};
    uint64_t number = carried->number;
    int error = tg_bus_call(tg_app_bus(service->app), TG_MESSAGE_LEDGER_READ, "", &request.base,
                            carried->traceparent, TG_MAX_CALL_MS, on_read, service, number);
    if (error != 0) {
        on_read(service, number, error, NULL);
    }
}

/* What stays unacknowledged is recorded again: nothing depends on this answer. */
static void on_acknowledged(void *context, uint64_t token, const struct reserve_answer *answer)
{
    struct reserve_service *service = context;
    const struct reserve_acknowledgement *told =
        &service->acknowledgements[token % TG_MAX_GATE_IN_FLIGHT];
    if (told->number != token) {
        return;
    }
    const char *sale = tg_sales_at(service->sales, told->sale)->name;
    enum reserve_obeyed obeyed = reserve_answer_obeyed(answer);
    if (obeyed == RESERVE_OBEYED_DONE && TG_FAILPOINT(RESERVE_ACKNOWLEDGED) == 0) {
        tg_log_step("reservation.acknowledged", sale, told->reservation, told->traceparent);
    } else if (obeyed == RESERVE_OBEYED_DOUBT) {
        tg_log(TG_LOG_ERROR, "gate.doubt", TG_TEXT_FIELD("sale", sale),
               TG_TEXT_FIELD("reservation", told->reservation),
               TG_TEXT_FIELD("script", reserve_script_name(RESERVE_SCRIPT_ACKNOWLEDGE)));
    }
}

static void run_acknowledge(struct reserve_service *service, const struct reserve_carried *carried,
                            int64_t deadline_ms)
{
    const struct reserve_keys *keys = reserve_sale_keys(service, carried->sale);
    char seal[RESERVE_SEAL_BYTES];
    if (keys == NULL || keys->epoch != carried->epoch || !reserve_present_seal(service, seal) ||
        TG_FAILPOINT(RESERVE_ACKNOWLEDGE) != 0) {
        return;
    }
    uint64_t number = ++service->acknowledged_numbers;
    struct reserve_acknowledgement *told =
        &service->acknowledgements[number % TG_MAX_GATE_IN_FLIGHT];
    told->number = number;
    told->sale = carried->sale;
    memcpy(told->reservation, carried->flow.reservation, sizeof told->reservation);
    memcpy(told->traceparent, carried->traceparent, sizeof told->traceparent);
    const struct reserve_gate_name gate = {keys, seal, tg_app_instance(service->app)};
    struct reserve_call call;
    reserve_call_acknowledge(&call, &gate, carried->flow.reservation, deadline_ms);
    reserve_store_run(service->store, &call, on_acknowledged, service, number);
}

static void run_pause(struct reserve_service *service, const struct reserve_carried *carried,
                      enum reserve_pause_cause cause)
{
    switch (cause) {
    case RESERVE_PAUSE_UNIT_CONFLICT:
        /* The ledger pauses with the same id: the reservation's, without its prefix. */
        reserve_care_pause(service, carried->sale,
                           carried->flow.reservation + TG_RESERVATION_ID_LENGTH -
                               TG_BASE32_ID_LENGTH,
                           tg_reason_code(TG_REASON_UNIT_CONFLICT));
        return;
    case RESERVE_PAUSE_DOUBT:
        reserve_care_pause(service, carried->sale, NULL, "doubt");
        return;
    }
}

static void finish(struct reserve_service *service, struct reserve_carried *carried,
                   const struct reserve_outcome *outcome)
{
    struct reserve_sale *kept = &service->by_sale[carried->sale];
    if (carried->incoming == NULL) {
        service->resends--;
    } else {
        struct reserve_hold_reply reply;
        reserve_wire_hold_reply(outcome, &reply);
        tg_bus_reply(carried->incoming, &reply.message.base);
        carried->incoming = NULL;
        kept->requests++;
        kept->errors += outcome->reason == TG_REASON_TRY_AGAIN;
        tg_histogram_add(&kept->hold_us, tg_now_us() - carried->began_us);
    }
    leave_place(service, carried);
}

static void act(struct reserve_service *service, struct reserve_carried *carried,
                const struct reserve_action *action, const struct reserve_request *request)
{
    switch (action->kind) {
    case RESERVE_DO_HOLD:
        run_hold(service, carried, request);
        return;
    case RESERVE_DO_RECORD:
        run_record(service, carried);
        return;
    case RESERVE_DO_READ:
        run_read(service, carried);
        return;
    case RESERVE_DO_ANSWER:
    case RESERVE_DO_END:
        finish(service, carried, &action->outcome);
        return;
    case RESERVE_DO_ACKNOWLEDGE:
        run_acknowledge(service, carried, action->deadline_ms);
        return;
    case RESERVE_DO_PAUSE:
        run_pause(service, carried, action->cause);
        return;
    }
}

/* The action that may end the flow comes last in every step. */
static void feed(struct reserve_service *service, struct reserve_carried *carried,
                 const struct reserve_event *event, const struct reserve_request *request)
{
    struct reserve_action actions[RESERVE_ACTIONS_MAX];
    size_t count = reserve_step(&carried->flow, event, actions);
    for (size_t i = 0; i < count; i++) {
        act(service, carried, &actions[i], request);
    }
}

/* ---- requests ---- */

static void refuse(struct tg_bus_incoming *take_incoming, enum tg_reason reason)
{
    const struct reserve_outcome outcome = {.reason = reason};
    struct reserve_hold_reply reply;
    reserve_wire_hold_reply(&outcome, &reply);
    tg_bus_reply(take_incoming, &reply.message.base);
}

void reserve_hold_serve(void *context, struct tg_bus_incoming *take_incoming)
{
    struct reserve_service *service = context;
    const Tidegate__V1__HoldRequest *message =
        (const Tidegate__V1__HoldRequest *)tg_bus_body(take_incoming);
    int index = reserve_sale_index(service, tg_bus_sale(take_incoming));
    if (index < 0) {
        refuse(take_incoming, tg_sales_missing(service->sales));
        return;
    }
    const struct tg_sale *sale = tg_sales_at(service->sales, (size_t)index);
    struct reserve_request request;
    enum tg_reason reason = strcmp(message->sale, sale->name) == 0
                                ? reserve_wire_hold(&service->secrets, sale, message, &request)
                                : TG_REASON_MALFORMED;
    struct reserve_carried *carried = NULL;
    if (reason == TG_REASON_MALFORMED) {
        reserve_count_invalid(take_incoming);
    } else if (reason == TG_REASON_NONE && !service->draining) {
        carried = take_place(service, (uint32_t)index);
        tg_metric_add(TG_METRIC_GATE_COMMANDS, "full", carried == NULL);
    }
    if (carried == NULL) {
        refuse(take_incoming, reason == TG_REASON_NONE ? TG_REASON_TRY_AGAIN : reason);
        return;
    }
    memcpy(carried->traceparent, tg_bus_traceparent(take_incoming),
           strlen(tg_bus_traceparent(take_incoming)) + 1);
    memcpy(carried->user, request.user, request.user_length);
    carried->user_length = request.user_length;
    carried->incoming = take_incoming;
    const struct reserve_event event = {.kind = RESERVE_EVENT_BEGIN,
                                        .begin = {&request, tg_sale_phase(sale, tg_now_mono())}};
    feed(service, carried, &event, &request);
}

/* ---- records that were not answered ---- */

static void resend(struct reserve_service *service, uint32_t index, const char *reservation,
                   const struct tg_hold_record *record)
{
    if (service->resends >= RESERVE_RESENDS_MAX || service->draining ||
        in_progress(service, reservation)) {
        return;
    }
    struct reserve_carried *carried = take_place(service, index);
    if (carried == NULL) {
        return;
    }
    service->resends++;
    const struct reserve_event event = {.kind = RESERVE_EVENT_RESEND,
                                        .resend = {reservation, record}};
    feed(service, carried, &event, NULL);
}

static void on_unacknowledged(void *context, uint64_t token, const struct reserve_answer *answer)
{
    struct reserve_service *service = context;
    struct reserve_sale *kept = &service->by_sale[token];
    kept->resend_busy = false;
    if (kept->resend_epoch != tg_sales_at(service->sales, token)->epoch) {
        /* Holds of a gate that was rebuilt meanwhile: recorded under the new epoch, which has never
         * heard of them, they would pass the ledger's fence. */
        memcpy(kept->resend_cursor, "0", 2);
        return;
    }
    if (answer->ending != RESERVE_ENDED || !reserve_word_is(answer, 0, "due") ||
        !reserve_word_copy(answer, 1, kept->resend_cursor, sizeof kept->resend_cursor)) {
        memcpy(kept->resend_cursor, "0", 2);
        return;
    }
    for (size_t i = 2; i + 1 < answer->count; i += 2) {
        char reservation[TG_RESERVATION_ID_LENGTH + 1];
        struct tg_hold_record record;
        const struct reserve_word *packed = &answer->words[i + 1];
        if (reserve_word_copy(answer, i, reservation, sizeof reservation) &&
            tg_hold_record_parse(packed->text, packed->length, &record) == 0) {
            resend(service, (uint32_t)token, reservation, &record);
        }
    }
}

static void resend_page(struct reserve_service *service, uint32_t index)
{
    struct reserve_sale *kept = &service->by_sale[index];
    const struct tg_sale *sale = tg_sales_at(service->sales, index);
    const struct reserve_keys *keys = reserve_sale_keys(service, index);
    char seal[RESERVE_SEAL_BYTES];
    if (kept->resend_busy || !kept->care.looked || kept->care.look.unacked == 0 || keys == NULL ||
        !sale->armed || !reserve_present_seal(service, seal)) {
        return;
    }
    if (kept->resend_cursor[0] == '\0') {
        memcpy(kept->resend_cursor, "0", 2);
    }
    const struct reserve_gate_name gate = {keys, seal, tg_app_instance(service->app)};
    struct reserve_call call;
    reserve_call_due(&call, &gate, kept->resend_cursor, 0,
                     sale->hold_ms + sale->grace_ms - RESERVE_RESEND_EVERY_MS);
    kept->resend_busy = true;
    kept->resend_epoch = keys->epoch;
    reserve_store_run(service->store, &call, on_unacknowledged, service, index);
}

void reserve_hold_resend_tick(void *context)
{
    struct reserve_service *service = context;
    size_t count = tg_sales_count(service->sales);
    for (size_t i = 0; i < count && !service->draining; i++) {
        resend_page(service, (uint32_t)i);
    }
}
