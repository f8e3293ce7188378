/* SPDX-License-Identifier: Apache-2.0
 * GET /reservations/{id} and POST .../confirm, .../extend, .../cancel. The ledger judges; paying is
 * the shop's word, so confirm and extend need its credential, which only the ledger can check. */
#include "lib/io/bus.h"
#include "services/edge/credentials.h"
#include "services/edge/demand.h"
#include "services/edge/limit.h"
#include "services/edge/purchase.h"

#include <string.h>

static void write_id(struct edge_writer *body, const char *name, const char *id)
{
    edge_write(body, ",\"");
    edge_write(body, name);
    edge_write(body, "\":");
    if (id[0] != '\0') {
        edge_write_string(body, id);
    } else {
        edge_write(body, "null");
    }
}

static void answer_record(struct edge_request *request, const struct edge_record *record)
{
    char text[EDGE_UNITS_BYTES + 1024];
    struct edge_writer body;
    const struct edge_sale *sale = edge_find_sale(request->edge, record->sale);
    edge_write_begin(&body, text, sizeof(text));
    edge_write(&body, "{\"reservationId\":\"");
    edge_write(&body, record->reservation);
    edge_write(&body, "\",\"sale\":");
    edge_write_string(&body, record->sale);
    edge_write(&body, ",\"state\":");
    edge_write_string(&body, record->state);
    edge_write(&body, ",\"expiresAt\":");
    edge_write_time(&body, record->expires_at);
    edge_write_units(sale != NULL ? sale->sale : NULL, &record->units, &body);
    write_id(&body, "orderId", record->order);
    write_id(&body, "paymentId", record->payment);
    edge_write(&body, "}");
    edge_answer_json(request, record->replayed ? "Idempotent-Replayed: true\r\n" : NULL, &body);
}

static void on_record_reply(void *context, uint64_t token, int status,
                            const ProtobufCMessage *message)
{
    struct edge_request request;
    struct edge_record record;
    if (!edge_request_again(&request, context, token)) {
        return;
    }
    if (status != 0 || edge_wire_reservation((const Tidegate__V1__ReservationReply *)message,
                                             &record) != TG_REASON_NONE) {
        edge_unknown(&request);
    } else if (record.reason == TG_REASON_NONE) {
        answer_record(&request, &record);
    } else {
        edge_refuse_reason(&request, edge_public_reason(record.reason));
    }
}

static void ask_ledger(struct edge_request *request, enum tg_message subject,
                       const ProtobufCMessage *message)
{
    char traceparent[56];
    edge_traceparent(request, traceparent);
    int error =
        tg_bus_call(tg_app_bus(request->edge->app), subject, NULL, message, traceparent,
                    TG_MAX_CALL_MS, on_record_reply, request->edge, tg_http_id(request->exchange));
    if (error != 0) {
        edge_unknown(request);
    }
}

static void confirm(struct edge_request *request, const struct edge_caller *caller)
{
    struct edge_payment payment;
    char fault[EDGE_FAULT_BYTES];
    size_t length;
    const char *body = (const char *)tg_http_body(request->exchange, &length);
    enum tg_reason reason = edge_check_media(request);
    if (reason != TG_REASON_NONE) {
        edge_refuse_reason(request, reason);
        return;
    }
    if (edge_payment(body, length, &payment, fault) != TG_REASON_NONE) {
        const struct edge_problem problem = {.reason = TG_REASON_MALFORMED, .detail = fault};
        edge_refuse_request(request, &problem);
        return;
    }
    Tidegate__V1__ConfirmRequest message = TIDEGATE__V1__CONFIRM_REQUEST__INIT;
    message.reservation_id = request->target.reservation;
    message.service_credential = (char *)caller->credential;
    message.payment_id = payment.id;
    message.amount_minor = payment.amount_minor;
    message.currency = payment.currency;
    ask_ledger(request, TG_MESSAGE_LEDGER_CONFIRM, &message.base);
}

static void extend(struct edge_request *request, const struct edge_caller *caller)
{
    Tidegate__V1__ExtendRequest message = TIDEGATE__V1__EXTEND_REQUEST__INIT;
    message.reservation_id = request->target.reservation;
    message.service_credential = (char *)caller->credential;
    ask_ledger(request, TG_MESSAGE_LEDGER_EXTEND, &message.base);
}

/* The shop by its credential, or the buyer. */
static void name_caller(struct edge_caller *caller, char **out_credential,
                        ProtobufCBinaryData *out_user)
{
    if (caller->kind == EDGE_CALLER_SERVICE) {
        *out_credential = (char *)caller->credential;
    } else {
        *out_user = (ProtobufCBinaryData){.len = caller->user.length, .data = caller->user.bytes};
    }
}

static void cancel(struct edge_request *request, struct edge_caller *caller)
{
    Tidegate__V1__CancelRequest message = TIDEGATE__V1__CANCEL_REQUEST__INIT;
    message.reservation_id = request->target.reservation;
    name_caller(caller, &message.service_credential, &message.user);
    ask_ledger(request, TG_MESSAGE_LEDGER_CANCEL, &message.base);
}

static void read_record(struct edge_request *request, struct edge_caller *caller)
{
    Tidegate__V1__ReadRequest message = TIDEGATE__V1__READ_REQUEST__INIT;
    message.reservation_id = request->target.reservation;
    name_caller(caller, &message.service_credential, &message.user);
    ask_ledger(request, TG_MESSAGE_LEDGER_READ, &message.base);
}

void edge_reservation(struct edge_request *request)
{
    struct edge_caller caller;
    enum edge_route route = request->target.route;
    bool service_only = route == EDGE_ROUTE_CONFIRM || route == EDGE_ROUTE_EXTEND;
    enum tg_reason reason = edge_caller(request, &caller);
    bool known =
        caller.kind == EDGE_CALLER_SERVICE || (!service_only && caller.kind == EDGE_CALLER_BUYER);
    if (reason == TG_REASON_NONE && !known) {
        reason = service_only ? TG_REASON_CREDENTIAL_REQUIRED : TG_REASON_SIGN_IN_REQUIRED;
    }
    if (reason == TG_REASON_NONE && caller.kind == EDGE_CALLER_BUYER) {
        reason = edge_limit_holder(request, &caller.user);
    }
    if (reason == TG_REASON_NONE && request->target.reservation[0] == '\0') {
        reason = TG_REASON_RESERVATION_UNKNOWN;
    }
    if (reason != TG_REASON_NONE) {
        edge_refuse_reason(request, reason);
    } else if (route == EDGE_ROUTE_CONFIRM) {
        confirm(request, &caller);
    } else if (route == EDGE_ROUTE_EXTEND) {
        extend(request, &caller);
    } else if (route == EDGE_ROUTE_CANCEL) {
        cancel(request, &caller);
    } else {
        read_record(request, &caller);
    }
}
