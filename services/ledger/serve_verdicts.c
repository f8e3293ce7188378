/* SPDX-License-Identifier: Apache-2.0
 * The sweeper's questions: what is due, verdicts on what lapsed, what gates have obeyed. */
#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "services/ledger/service_parts.h"

#include <string.h>

void ledger_on_expire(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ledger *ledger = context;
    uint64_t token;
    uint32_t dropped;
    enum tg_reason reason =
        ledger_wire_expire((const Tidegate__V1__ExpireRequest *)tg_bus_body(take_incoming),
                           tg_bus_sale(take_incoming), &ledger->expire, &dropped);
    if (dropped > 0) {
        tg_metric_add(TG_METRIC_BUS_INVALID, "expire_request", dropped);
    }
    if (ledger_ask_begin(ledger, take_incoming, reason, &token) == NULL) {
        return;
    }
    int error = TG_FAILPOINT(LEDGER_EXPIRE);
    if (error == 0) {
        error = ledger->store->expire(ledger->store->self, &ledger->expire, token);
    }
    ledger_ask_sent(ledger, token, error);
}

void ledger_expired(void *context, uint64_t token, int status,
                    const struct ledger_verdicts *verdicts)
{
    struct ledger *ledger = context;
    Tidegate__V1__ExpireReply reply = TIDEGATE__V1__EXPIRE_REPLY__INIT;
    Tidegate__V1__Verdict rows[2 * TG_MAX_PAGE];
    Tidegate__V1__Verdict *list[2 * TG_MAX_PAGE];
    if (status == 0 && verdicts->count > 0 && TG_FAILPOINT(LEDGER_EXPIRED) != 0) {
        status = TG_ERR_TIMEOUT;
    }
    struct ledger_pending *pending = ledger_ask_end(ledger, token, status, TG_REASON_NONE);
    if (pending == NULL) {
        return;
    }
    const char *sale = tg_bus_sale(pending->incoming);
    for (uint32_t i = 0; i < verdicts->count; i++) {
        tidegate__v1__verdict__init(&rows[i]);
        rows[i].reservation_id = ledger_text(verdicts->rows[i].id.text);
        rows[i].state = (Tidegate__V1__ReservationState)verdicts->rows[i].state;
        list[i] = &rows[i];
        if (verdicts->rows[i].state == LEDGER_EXPIRED) {
            tg_metric_add(TG_METRIC_VERDICTS, "expired", 1);
            tg_log_step("reservation.expired", sale, verdicts->rows[i].id.text,
                        tg_bus_traceparent(pending->incoming));
        }
    }
    reply.reason = ledger_text(tg_reason_code(verdicts->reason));
    reply.epoch = verdicts->epoch;
    reply.n_verdicts = verdicts->count;
    reply.verdicts = list;
    ledger_pending_reply(&ledger->pendings, pending, &reply.base);
}

void ledger_on_obeyed(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ledger *ledger = context;
    uint64_t token;
    uint32_t dropped;
    const enum tg_reason reason =
        ledger_wire_obeyed((const Tidegate__V1__ObeyedRequest *)tg_bus_body(take_incoming),
                           tg_bus_sale(take_incoming), &ledger->obeyed, &dropped);
    if (ledger_ask_begin(ledger, take_incoming, reason, &token) == NULL) {
        return;
    }
    ledger_ask_sent(ledger, token,
                    ledger->store->obeyed(ledger->store->self, &ledger->obeyed, token));
}

void ledger_obeyed_stored(void *context, uint64_t token, int status, enum tg_reason reason,
                          uint32_t stored)
{
    struct ledger *ledger = context;
    Tidegate__V1__ObeyedReply reply = TIDEGATE__V1__OBEYED_REPLY__INIT;
    if (status == 0 && stored > 0 && TG_FAILPOINT(LEDGER_OBEYED) != 0) {
        status = TG_ERR_TIMEOUT;
    }
    struct ledger_pending *pending = ledger_ask_end(ledger, token, status, TG_REASON_NONE);
    if (pending == NULL) {
        return;
    }
    reply.reason = ledger_text(tg_reason_code(reason));
    reply.stored = stored;
    ledger_pending_reply(&ledger->pendings, pending, &reply.base);
}

/* Lapsed ids go round: where the last page of this sale ended. Sales beyond the view start over,
 * which costs only time. */
static struct ledger_id *lapsed_cursor(struct ledger *ledger, const char *sale)
{
    for (uint32_t i = 0; i < ledger->view.count; i++) {
        if (strcmp(ledger->view.rows[i].sale.name, sale) == 0) {
            return &ledger->lapsed_after[i];
        }
    }
    return NULL;
}

void ledger_on_due(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ledger *ledger = context;
    const char *sale = tg_bus_sale(take_incoming);
    struct ledger_due_ask ask;
    uint64_t token;
    const enum tg_reason reason = ledger_wire_due(
        (const Tidegate__V1__LedgerDueRequest *)tg_bus_body(take_incoming), sale, &ask);
    const struct ledger_id *cursor = lapsed_cursor(ledger, sale);
    ask.lapsed_after = cursor != NULL ? *cursor : (struct ledger_id){""};
    if (ledger_ask_begin(ledger, take_incoming, reason, &token) == NULL) {
        return;
    }
    ledger_ask_sent(ledger, token, ledger->store->due(ledger->store->self, &ask, token));
}

void ledger_due_found(void *context, uint64_t token, int status, const struct ledger_due *due)
{
    struct ledger *ledger = context;
    struct ledger_pending *pending = ledger_ask_end(
        ledger, token, status, status != 0 || due->known ? TG_REASON_NONE : TG_REASON_SALE_UNKNOWN);
    Tidegate__V1__LedgerDueReply reply = TIDEGATE__V1__LEDGER_DUE_REPLY__INIT;
    Tidegate__V1__Order orders[TG_MAX_PAGE];
    Tidegate__V1__Order *order_list[TG_MAX_PAGE];
    char *lapsed[TG_MAX_PAGE];
    if (pending == NULL) {
        return;
    }
    for (uint32_t i = 0; i < due->lapsed_count; i++) {
        lapsed[i] = ledger_text(due->lapsed[i].text);
    }
    struct ledger_id *cursor = lapsed_cursor(ledger, tg_bus_sale(pending->incoming));
    if (cursor != NULL && due->lapsed_count > 0) {
        *cursor = due->lapsed[due->lapsed_count - 1];
    }
    for (uint32_t i = 0; i < due->order_count; i++) {
        tidegate__v1__order__init(&orders[i]);
        orders[i].reservation_id = ledger_text(due->orders[i].text);
        orders[i].kind = due->kinds[i] == LEDGER_SETTLE
                             ? TIDEGATE__V1__ORDER_KIND__ORDER_KIND_SETTLE
                             : TIDEGATE__V1__ORDER_KIND__ORDER_KIND_RELEASE;
        order_list[i] = &orders[i];
    }
    reply.epoch = due->epoch;
    reply.generation = due->generation;
    reply.n_lapsed = due->lapsed_count;
    reply.lapsed = lapsed;
    reply.n_orders = due->order_count;
    reply.orders = order_list;
    ledger_pending_reply(&ledger->pendings, pending, &reply.base);
}
