/* SPDX-License-Identifier: Apache-2.0
 * One reservation at a time: read, confirm, extend, cancel. The service credential is judged here,
 * by its hash. */
#include "lib/io/failpoint.h"
#include "lib/io/keys.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "services/ledger/service_parts.h"

#include <sodium.h>
#include <string.h>

enum { CREDENTIAL_BYTES_MAX = 256 };

static enum tg_reason judge_credential(const struct ledger *ledger, const char *credential)
{
    const size_t length = strlen(credential);
    uint8_t hash[TG_KEY_BYTES];
    if (length == 0) {
        return TG_REASON_CREDENTIAL_REQUIRED;
    }
    if (length > CREDENTIAL_BYTES_MAX) {
        return TG_REASON_FORBIDDEN;
    }
    tg_keys_service_hash(credential, length, hash);
    return sodium_memcmp(hash, ledger->service_hash, sizeof hash) == 0 ? TG_REASON_NONE
                                                                       : TG_REASON_FORBIDDEN;
}

/* The buyer speaks for himself; with a credential the shop speaks. */
static enum tg_reason judge_either(const struct ledger *ledger, const char *credential,
                                   struct ledger_ask *ask)
{
    if (credential[0] == '\0' && ask->user_length > 0) {
        return TG_REASON_NONE;
    }
    ask->service = true;
    const enum tg_reason reason = judge_credential(ledger, credential);
    return reason == TG_REASON_CREDENTIAL_REQUIRED ? TG_REASON_SIGN_IN_REQUIRED : reason;
}

static void ask_store(struct ledger *ledger, struct tg_bus_incoming *take_incoming,
                      const struct ledger_ask *ask, enum tg_reason reason)
{
    uint64_t token;
    struct ledger_pending *pending = ledger_ask_begin(ledger, take_incoming, reason, &token);
    if (pending == NULL) {
        return;
    }
    ledger->load.requests++;
    pending->id = ask->id;
    pending->verb = ask->verb;
    int error = ask->verb == LEDGER_CONFIRM ? TG_FAILPOINT(LEDGER_CONFIRM) : 0;
    if (error == 0) {
        error = ledger->store->reservation(ledger->store->self, ask, token);
    }
    ledger_ask_sent(ledger, token, error);
}

void ledger_on_read(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ledger *ledger = context;
    const Tidegate__V1__ReadRequest *request =
        (const Tidegate__V1__ReadRequest *)tg_bus_body(take_incoming);
    struct ledger_ask ask;
    enum tg_reason reason = ledger_wire_read(request, &ask);
    if (reason == TG_REASON_NONE) {
        reason = judge_either(ledger, request->service_credential, &ask);
    }
    ask_store(ledger, take_incoming, &ask, reason);
}

void ledger_on_confirm(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ledger *ledger = context;
    const Tidegate__V1__ConfirmRequest *request =
        (const Tidegate__V1__ConfirmRequest *)tg_bus_body(take_incoming);
    struct ledger_ask ask;
    const enum tg_reason fault = ledger_wire_confirm(request, &ask);
    const enum tg_reason reason = judge_credential(ledger, request->service_credential);
    ask.service = true;
    ask_store(ledger, take_incoming, &ask, reason != TG_REASON_NONE ? reason : fault);
}

void ledger_on_extend(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ledger *ledger = context;
    const Tidegate__V1__ExtendRequest *request =
        (const Tidegate__V1__ExtendRequest *)tg_bus_body(take_incoming);
    struct ledger_ask ask;
    const enum tg_reason fault = ledger_wire_extend(request, &ask);
    const enum tg_reason reason = judge_credential(ledger, request->service_credential);
    ask.service = true;
    ask_store(ledger, take_incoming, &ask, reason != TG_REASON_NONE ? reason : fault);
}

void ledger_on_cancel(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ledger *ledger = context;
    const Tidegate__V1__CancelRequest *request =
        (const Tidegate__V1__CancelRequest *)tg_bus_body(take_incoming);
    struct ledger_ask ask;
    enum tg_reason reason = ledger_wire_cancel(request, &ask);
    if (reason == TG_REASON_NONE) {
        reason = judge_either(ledger, request->service_credential, &ask);
    }
    ask_store(ledger, take_incoming, &ask, reason);
}

/* Nothing rests on this order: a hold the ledger has recorded is released by the ledger's verdict
 * alone. */
static void on_extended(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    if (status != 0) {
        tg_log(TG_LOG_INFO, "ledger.extend_order_lost", TG_NUMBER_FIELD("status", status));
    }
}

static void order_extension(struct ledger *ledger, const struct ledger_pending *pending,
                            const struct ledger_reservation *answer)
{
    Tidegate__V1__Order order = TIDEGATE__V1__ORDER__INIT;
    Tidegate__V1__Order *orders[] = {&order};
    Tidegate__V1__ObeyRequest request = TIDEGATE__V1__OBEY_REQUEST__INIT;
    order.reservation_id = ledger_text(pending->id.text);
    order.kind = TIDEGATE__V1__ORDER_KIND__ORDER_KIND_EXTEND;
    order.deadline_ms = answer->expires_ms;
    request.sale = ledger_text(answer->sale);
    request.epoch = answer->epoch;
    request.n_orders = 1;
    request.orders = orders;
    const int error =
        tg_bus_call(tg_app_bus(ledger->app), TG_MESSAGE_RESERVE_OBEY, answer->sale, &request.base,
                    tg_bus_traceparent(pending->incoming), TG_MAX_CALL_MS, on_extended, ledger, 0);
    if (error != 0) {
        on_extended(ledger, 0, error, NULL);
    }
}

/* What the decision brought about: told to logs, metrics and, for an extension, to the gate. */
static void tell_effect(struct ledger *ledger, const struct ledger_pending *pending,
                        const struct ledger_reservation *answer)
{
    const char *traceparent = tg_bus_traceparent(pending->incoming);
    if (answer->reason != TG_REASON_NONE || answer->replayed) {
        return;
    }
    switch (pending->verb) {
    case LEDGER_READ:
        break;
    case LEDGER_CONFIRM:
        tg_metric_add(TG_METRIC_VERDICTS, "confirmed", 1);
        tg_log_step("reservation.confirmed", answer->sale, pending->id.text, traceparent);
        break;
    case LEDGER_EXTEND:
        tg_log_step("reservation.extended", answer->sale, pending->id.text, traceparent);
        order_extension(ledger, pending, answer);
        break;
    case LEDGER_CANCEL:
        tg_metric_add(TG_METRIC_VERDICTS, "cancelled", 1);
        tg_log_step("reservation.cancelled", answer->sale, pending->id.text, traceparent);
        break;
    }
}

void ledger_reservation_answered(void *context, uint64_t token, int status,
                                 const struct ledger_reservation *answer)
{
    struct ledger *ledger = context;
    struct ledger_pending *pending = ledger_pending_find(&ledger->pendings, token);
    Tidegate__V1__ReservationReply reply = TIDEGATE__V1__RESERVATION_REPLY__INIT;
    if (status == 0 && pending != NULL && pending->verb == LEDGER_CONFIRM &&
        TG_FAILPOINT(LEDGER_CONFIRMED) != 0) {
        status = TG_ERR_TIMEOUT;
    }
    pending = ledger_ask_end(ledger, token, status, TG_REASON_NONE);
    if (pending == NULL) {
        return;
    }
    tell_effect(ledger, pending, answer);
    const struct ledger_id id = pending->id;
    reply.reason = ledger_text(tg_reason_code(answer->reason));
    reply.reservation_id = ledger_text(id.text);
    reply.sale = ledger_text(answer->sale);
    reply.state = (Tidegate__V1__ReservationState)answer->state;
    reply.expires_at_ms = answer->expires_ms;
    reply.n_units = answer->unit_count;
    reply.units = ledger_wire_units(&ledger->wire_units[0], answer->units, answer->unit_count);
    reply.order_id = ledger_text(answer->order_id);
    reply.payment_id = ledger_text(answer->payment);
    reply.replayed = answer->replayed;
    ledger_pending_reply(&ledger->pendings, pending, &reply.base);
}
