/* SPDX-License-Identifier: Apache-2.0 */
#include "services/sweeper/wire.h"

#include "lib/pure/text.h"

#include <string.h>

/* Whether an answer is one: without a reason. Else the event says that the call failed. */
static bool begin(struct sweeper_wire *wire, const char *reason, struct sweeper_event *out_event)
{
    *out_event = (struct sweeper_event){.kind = SWEEPER_FAILED};
    wire->malformed = 0;
    return !reason || reason[0] == '\0';
}

static bool read_id(const char *text, struct sweeper_id *out_id)
{
    if (!text || !tg_reservation_id_valid(text, strlen(text))) {
        return false;
    }
    memcpy(out_id->text, text, TG_RESERVATION_ID_LENGTH + 1);
    return true;
}

static bool read_kind(Tidegate__V1__OrderKind kind, enum sweeper_kind *out_kind)
{
    if (kind == TIDEGATE__V1__ORDER_KIND__ORDER_KIND_SETTLE) {
        *out_kind = SWEEPER_SETTLE;
    } else if (kind == TIDEGATE__V1__ORDER_KIND__ORDER_KIND_RELEASE) {
        *out_kind = SWEEPER_RELEASE;
    } else if (kind == TIDEGATE__V1__ORDER_KIND__ORDER_KIND_EXTEND) {
        *out_kind = SWEEPER_EXTEND;
    } else {
        return false;
    }
    return true;
}

static Tidegate__V1__OrderKind write_kind(enum sweeper_kind kind)
{
    switch (kind) {
    case SWEEPER_SETTLE:
        return TIDEGATE__V1__ORDER_KIND__ORDER_KIND_SETTLE;
    case SWEEPER_RELEASE:
        return TIDEGATE__V1__ORDER_KIND__ORDER_KIND_RELEASE;
    case SWEEPER_EXTEND:
        return TIDEGATE__V1__ORDER_KIND__ORDER_KIND_EXTEND;
    }
    return TIDEGATE__V1__ORDER_KIND__ORDER_KIND_UNSPECIFIED;
}

/* An obedience this build does not know is no answer. */
static enum sweeper_obedience read_obedience(Tidegate__V1__Obedience obedience)
{
    if (obedience == TIDEGATE__V1__OBEDIENCE__OBEDIENCE_DONE) {
        return SWEEPER_DONE;
    }
    if (obedience == TIDEGATE__V1__OBEDIENCE__OBEDIENCE_ALREADY) {
        return SWEEPER_ALREADY;
    }
    if (obedience == TIDEGATE__V1__OBEDIENCE__OBEDIENCE_UNKNOWN_RESERVATION) {
        return SWEEPER_NOT_KNOWN_THERE;
    }
    if (obedience == TIDEGATE__V1__OBEDIENCE__OBEDIENCE_DOUBT) {
        return SWEEPER_DOUBT;
    }
    return SWEEPER_UNANSWERED;
}

void sweeper_wire_due(struct sweeper_wire *wire, const Tidegate__V1__LedgerDueReply *reply,
                      struct sweeper_event *out_event)
{
    if (!begin(wire, reply->reason, out_event)) {
        return;
    }
    uint32_t lapsed = 0, orders = 0;
    for (size_t i = 0; i < reply->n_lapsed && lapsed < SWEEPER_PAGE; i++) {
        if (read_id(reply->lapsed[i], &wire->lapsed[lapsed])) {
            lapsed++;
        } else {
            wire->malformed++;
        }
    }
    for (size_t i = 0; i < reply->n_orders && orders < SWEEPER_PAGE; i++) {
        struct sweeper_order *order = &wire->orders[orders];
        if (read_id(reply->orders[i]->reservation_id, &order->id) &&
            read_kind(reply->orders[i]->kind, &order->kind)) {
            order->deadline_ms = reply->orders[i]->deadline_ms;
            orders++;
        } else {
            wire->malformed++;
        }
    }
    *out_event = (struct sweeper_event){.kind = SWEEPER_DUE,
                                        .epoch = reply->epoch,
                                        .generation = reply->generation,
                                        .lapsed = wire->lapsed,
                                        .lapsed_count = lapsed,
                                        .lapsed_full = reply->n_lapsed >= SWEEPER_PAGE,
                                        .orders = wire->orders,
                                        .order_count = orders,
                                        .orders_full = reply->n_orders >= SWEEPER_PAGE};
}

void sweeper_wire_verdicts(struct sweeper_wire *wire, const Tidegate__V1__ExpireReply *reply,
                           struct sweeper_event *out_event)
{
    if (!begin(wire, reply->reason, out_event)) {
        return;
    }
    out_event->kind = SWEEPER_VERDICTS;
    for (size_t i = 0; i < reply->n_verdicts; i++) {
        const Tidegate__V1__ReservationState state = reply->verdicts[i]->state;
        out_event->final_verdicts +=
            state == TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_EXPIRED ||
            state == TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_CANCELLED ||
            state == TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_CONFIRMED;
    }
}

void sweeper_wire_results(struct sweeper_wire *wire, const Tidegate__V1__ObeyReply *reply,
                          struct sweeper_event *out_event)
{
    if (!begin(wire, reply->reason, out_event)) {
        return;
    }
    uint32_t count = 0;
    for (size_t i = 0; i < reply->n_results && count < SWEEPER_PAGE; i++) {
        struct sweeper_result *result = &wire->results[count];
        if (read_id(reply->results[i]->reservation_id, &result->id) &&
            read_kind(reply->results[i]->kind, &result->kind)) {
            result->obedience = read_obedience(reply->results[i]->obedience);
            count++;
        } else {
            wire->malformed++;
        }
    }
    out_event->kind = SWEEPER_RESULTS;
    out_event->results = wire->results;
    out_event->result_count = count;
}

void sweeper_wire_stored(struct sweeper_wire *wire, const Tidegate__V1__ObeyedReply *reply,
                         struct sweeper_event *out_event)
{
    if (begin(wire, reply->reason, out_event)) {
        out_event->kind = SWEEPER_STORED;
    }
}

static bool read_hold(const Tidegate__V1__LapsedHold *row, struct sweeper_hold *out_hold)
{
    if (!read_id(row->reservation_id, &out_hold->id) ||
        !tg_user_valid(row->user.data, row->user.len) || row->place.len != TG_PLACE_BYTES ||
        row->digest.len != TG_DIGEST_BYTES) {
        return false;
    }
    memcpy(out_hold->user, row->user.data, row->user.len);
    out_hold->user_length = (uint8_t)row->user.len;
    memcpy(out_hold->place, row->place.data, TG_PLACE_BYTES);
    memcpy(out_hold->digest, row->digest.data, TG_DIGEST_BYTES);
    out_hold->window = row->window;
    return true;
}

void sweeper_wire_gate_due(struct sweeper_wire *wire, const Tidegate__V1__GateDueReply *reply,
                           struct sweeper_event *out_event)
{
    if (!begin(wire, reply->reason, out_event)) {
        return;
    }
    uint32_t count = 0;
    for (size_t i = 0; i < reply->n_holds && count < SWEEPER_BURY_PAGE; i++) {
        if (read_hold(reply->holds[i], &wire->holds[count])) {
            count++;
        } else {
            wire->malformed++;
        }
    }
    *out_event = (struct sweeper_event){.kind = SWEEPER_GATE_DUE,
                                        .epoch = reply->epoch,
                                        .generation = reply->generation,
                                        .holds = wire->holds,
                                        .hold_count = count,
                                        .holds_full = reply->n_holds >= SWEEPER_BURY_PAGE};
}

void sweeper_wire_expire(struct sweeper_wire *wire, struct sweeper_sale *sale, char *sale_name,
                         Tidegate__V1__ExpireRequest *out_request)
{
    tidegate__v1__expire_request__init(out_request);
    out_request->sale = sale_name;
    out_request->epoch = sale->epoch;
    out_request->generation = sale->generation;
    for (uint32_t i = 0; i < sale->lapsed_count; i++) {
        wire->ids[i] = sale->lapsed[i].text;
    }
    out_request->n_reservation_ids = sale->lapsed_count;
    out_request->reservation_ids = wire->ids;
}

void sweeper_wire_bury(struct sweeper_wire *wire, struct sweeper_sale *sale, char *sale_name,
                       Tidegate__V1__ExpireRequest *out_request)
{
    tidegate__v1__expire_request__init(out_request);
    out_request->sale = sale_name;
    out_request->epoch = sale->bury_epoch;
    out_request->generation = sale->bury_generation;
    for (uint32_t i = 0; i < sale->hold_count; i++) {
        struct sweeper_hold *hold = &sale->holds[i];
        Tidegate__V1__LapsedHold *row = &wire->hold_rows[i];
        tidegate__v1__lapsed_hold__init(row);
        row->reservation_id = hold->id.text;
        row->user = (ProtobufCBinaryData){.data = hold->user, .len = hold->user_length};
        row->place = (ProtobufCBinaryData){.data = hold->place, .len = TG_PLACE_BYTES};
        row->digest = (ProtobufCBinaryData){.data = hold->digest, .len = TG_DIGEST_BYTES};
        row->window = hold->window;
        wire->hold_list[i] = row;
    }
    out_request->n_tombstones = sale->hold_count;
    out_request->tombstones = wire->hold_list;
}

void sweeper_wire_obey(struct sweeper_wire *wire, struct sweeper_sale *sale, char *sale_name,
                       Tidegate__V1__ObeyRequest *out_request)
{
    tidegate__v1__obey_request__init(out_request);
    out_request->sale = sale_name;
    out_request->epoch = sale->epoch;
    for (uint32_t i = 0; i < sale->order_count; i++) {
        Tidegate__V1__Order *row = &wire->order_rows[i];
        tidegate__v1__order__init(row);
        row->reservation_id = sale->orders[i].id.text;
        row->kind = write_kind(sale->orders[i].kind);
        row->deadline_ms = sale->orders[i].deadline_ms;
        wire->order_list[i] = row;
    }
    out_request->n_orders = sale->order_count;
    out_request->orders = wire->order_list;
}

void sweeper_wire_obeyed(struct sweeper_wire *wire, struct sweeper_sale *sale, char *sale_name,
                         Tidegate__V1__ObeyedRequest *out_request)
{
    tidegate__v1__obeyed_request__init(out_request);
    out_request->sale = sale_name;
    out_request->epoch = sale->epoch;
    for (uint32_t i = 0; i < sale->result_count; i++) {
        Tidegate__V1__OrderResult *row = &wire->result_rows[i];
        tidegate__v1__order_result__init(row);
        row->reservation_id = sale->results[i].id.text;
        row->kind = write_kind(sale->results[i].kind);
        row->obedience = sale->results[i].obedience == SWEEPER_DONE
                             ? TIDEGATE__V1__OBEDIENCE__OBEDIENCE_DONE
                             : TIDEGATE__V1__OBEDIENCE__OBEDIENCE_ALREADY;
        wire->result_list[i] = row;
    }
    out_request->n_results = sale->result_count;
    out_request->results = wire->result_list;
}
