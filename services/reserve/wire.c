/* SPDX-License-Identifier: Apache-2.0
 * Requests that come in. */
#include "services/reserve/wire.h"

#include "lib/pure/pass.h"

#include <string.h>

static bool shape_valid(const Tidegate__V1__HoldRequest *message)
{
    return tg_user_valid(message->user.data, message->user.len) &&
           message->place.len == TG_PLACE_BYTES && message->digest.len == TG_DIGEST_BYTES &&
           strlen(message->jti) == TG_JTI_LENGTH &&
           tg_idempotency_key_valid(message->idempotency_key, strlen(message->idempotency_key)) &&
           message->n_demands > 0;
}

static bool pass_valid(const struct reserve_secrets *secrets, const struct tg_sale *sale,
                       const Tidegate__V1__HoldRequest *message)
{
    char jti[TG_JTI_LENGTH + 1];
    if (tg_pass_expires(message->window).ms != message->pass_expires_at_ms) {
        return false;
    }
    tg_jti(secrets->pass_mac, sale->name, sale->generation, message->place.data, message->user.data,
           message->user.len, message->window, jti);
    return tg_equal_constant(jti, message->jti, TG_JTI_LENGTH);
}

/* The demand of this item, made if it is new. NULL: no room. */
static struct reserve_demand *demand_of(struct reserve_request *request, uint32_t item)
{
    for (uint32_t i = 0; i < request->demand_count; i++) {
        if (request->demands[i].item == item) {
            return &request->demands[i];
        }
    }
    if (request->demand_count == TG_MAX_ITEMS_PER_SALE) {
        return NULL;
    }
    struct reserve_demand *demand = &request->demands[request->demand_count++];
    *demand = (struct reserve_demand){.item = item};
    return demand;
}

static bool names_unit(const struct reserve_demand *demand, uint32_t unit)
{
    for (uint32_t i = 0; i < demand->named_count; i++) {
        if (demand->named[i] == unit) {
            return true;
        }
    }
    return false;
}

static enum tg_reason add_named(struct reserve_demand *demand, const Tidegate__V1__Demand *message,
                                uint32_t units)
{
    if (message->quantity != 0 && message->quantity != message->n_units) {
        return TG_REASON_MALFORMED;
    }
    for (size_t i = 0; i < message->n_units; i++) {
        uint32_t unit = message->units[i];
        if (unit >= units) {
            return TG_REASON_ITEM_UNKNOWN;
        }
        if (names_unit(demand, unit) || demand->named_count == TG_MAX_UNITS_PER_HOLD) {
            return TG_REASON_QUANTITY_INVALID;
        }
        demand->named[demand->named_count++] = unit;
    }
    return TG_REASON_NONE;
}

/* One demand per item, summed; at least one unit each and at most what one buyer may have in all.
 */
static enum tg_reason sum_demands(const struct tg_sale *sale,
                                  const Tidegate__V1__HoldRequest *message,
                                  struct reserve_request *request)
{
    for (size_t i = 0; i < message->n_demands; i++) {
        const Tidegate__V1__Demand *asked = message->demands[i];
        if (asked->item >= sale->item_count) {
            return TG_REASON_ITEM_UNKNOWN;
        }
        struct reserve_demand *demand = demand_of(request, asked->item);
        uint64_t count = asked->n_units > 0 ? asked->n_units : asked->quantity;
        if (demand == NULL || count == 0 || count > sale->limit_per_buyer ||
            count > TG_MAX_UNITS_PER_HOLD ||
            request->wanted_units + count > sale->limit_per_buyer ||
            request->wanted_units + count > TG_MAX_UNITS_PER_HOLD) {
            return TG_REASON_QUANTITY_INVALID;
        }
        request->wanted_units += (uint32_t)count;
        if (asked->n_units == 0) {
            demand->any += (uint32_t)count;
            continue;
        }
        enum tg_reason reason = add_named(demand, asked, sale->items[asked->item].units);
        if (reason != TG_REASON_NONE) {
            return reason;
        }
    }
    return TG_REASON_NONE;
}

enum tg_reason reserve_wire_hold(const struct reserve_secrets *secrets, const struct tg_sale *sale,
                                 const Tidegate__V1__HoldRequest *message,
                                 struct reserve_request *out_request)
{
    struct reserve_request *request = out_request;
    if (!shape_valid(message)) {
        return TG_REASON_MALFORMED;
    }
    if (message->generation < sale->generation) {
        return TG_REASON_RESTART;
    }
    if (message->generation > sale->generation || sale->item_count == 0) {
        return TG_REASON_TRY_AGAIN; /* our view lags */
    }
    if (!pass_valid(secrets, sale, message)) {
        return TG_REASON_PASS_INVALID;
    }
    request->demand_count = 0;
    request->wanted_units = 0;
    enum tg_reason reason = sum_demands(sale, message, request);
    if (reason != TG_REASON_NONE) {
        return reason;
    }
    memcpy(request->user, message->user.data, message->user.len);
    request->user_length = message->user.len;
    memcpy(request->place, message->place.data, TG_PLACE_BYTES);
    memcpy(request->digest, message->digest.data, TG_DIGEST_BYTES);
    request->window = message->window;
    request->pass_expires_ms = message->pass_expires_at_ms;
    tg_reservation_id(secrets->reservation, sale->name, sale->generation, request->user,
                      request->user_length, message->idempotency_key, request->reservation);
    return TG_REASON_NONE;
}

bool reserve_wire_order(const Tidegate__V1__Order *message, struct reserve_order *out_order)
{
    if (!tg_reservation_id_valid(message->reservation_id, strlen(message->reservation_id))) {
        return false;
    }
    if (message->kind == TIDEGATE__V1__ORDER_KIND__ORDER_KIND_SETTLE) {
        out_order->script = RESERVE_SCRIPT_SETTLE;
    } else if (message->kind == TIDEGATE__V1__ORDER_KIND__ORDER_KIND_RELEASE) {
        out_order->script = RESERVE_SCRIPT_RELEASE;
    } else if (message->kind == TIDEGATE__V1__ORDER_KIND__ORDER_KIND_EXTEND &&
               message->deadline_ms > 0) {
        out_order->script = RESERVE_SCRIPT_EXTEND;
    } else {
        return false;
    }
    out_order->deadline_ms = message->deadline_ms;
    memcpy(out_order->reservation, message->reservation_id, sizeof out_order->reservation);
    return true;
}

static enum reserve_state read_state(Tidegate__V1__ReservationState state)
{
    static const enum reserve_state states[] = {
        [TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_PENDING] = RESERVE_STATE_PENDING,
        [TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_CONFIRMED] = RESERVE_STATE_CONFIRMED,
        [TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_EXPIRED] = RESERVE_STATE_EXPIRED,
        [TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_CANCELLED] = RESERVE_STATE_CANCELLED,
    };
    return (size_t)state < sizeof states / sizeof states[0] ? states[state] : RESERVE_STATE_UNKNOWN;
}

static bool read_units(size_t count, Tidegate__V1__UnitRef *const *refs,
                       struct reserve_ledger_answer *answer)
{
    if (count > TG_MAX_UNITS_PER_HOLD) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        answer->units[i] = (struct tg_unit_ref){refs[i]->item, refs[i]->unit};
    }
    answer->unit_count = (uint32_t)count;
    return true;
}

void reserve_wire_recorded(int status, const Tidegate__V1__RecordReply *reply,
                           struct reserve_ledger_answer *out_answer)
{
    *out_answer = (struct reserve_ledger_answer){.recorded = RESERVE_RECORDED_UNKNOWN};
    if (status != 0) {
        return;
    }
    out_answer->expires_ms = reply->expires_at_ms;
    out_answer->state = read_state(reply->state);
    bool good = reply->expires_at_ms > 0 && read_units(reply->n_units, reply->units, out_answer);
    if (reply->outcome == TIDEGATE__V1__RECORD_OUTCOME__RECORD_OUTCOME_RECORDED && good) {
        out_answer->recorded = RESERVE_RECORDED_NEW;
    } else if (reply->outcome == TIDEGATE__V1__RECORD_OUTCOME__RECORD_OUTCOME_ALREADY && good) {
        out_answer->recorded = RESERVE_RECORDED_KNOWN;
    } else if (reply->outcome == TIDEGATE__V1__RECORD_OUTCOME__RECORD_OUTCOME_REFUSED) {
        out_answer->recorded = RESERVE_RECORDED_REFUSED;
        out_answer->reason = tg_reason_from_code(reply->reason);
    }
}

void reserve_wire_read(int status, const Tidegate__V1__ReservationReply *reply,
                       struct reserve_ledger_answer *out_answer)
{
    *out_answer = (struct reserve_ledger_answer){.recorded = RESERVE_RECORDED_UNKNOWN};
    if (status != 0 || reply->reason[0] != '\0' ||
        !read_units(reply->n_units, reply->units, out_answer)) {
        return;
    }
    out_answer->expires_ms = reply->expires_at_ms;
    out_answer->state = read_state(reply->state);
    out_answer->recorded = RESERVE_RECORDED_KNOWN;
}
