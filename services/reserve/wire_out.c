/* SPDX-License-Identifier: Apache-2.0
 * Messages that go out, and the ledger's rows on their way into the gate. */
#include "services/reserve/wire.h"

#include "lib/pure/number.h"

#include <string.h>

static Tidegate__V1__UnitRef **list_units(const struct tg_unit_ref *units, uint32_t count,
                                          struct reserve_unit_list *list)
{
    for (uint32_t i = 0; i < count; i++) {
        tidegate__v1__unit_ref__init(&list->refs[i]);
        list->refs[i].item = units[i].item;
        list->refs[i].unit = units[i].unit;
        list->pointers[i] = &list->refs[i];
    }
    return list->pointers;
}

void reserve_wire_hold_reply(const struct reserve_outcome *outcome,
                             struct reserve_hold_reply *out_reply)
{
    Tidegate__V1__HoldReply *message = &out_reply->message;
    tidegate__v1__hold_reply__init(message);
    message->reason = (char *)tg_reason_code(outcome->reason);
    message->reservation_id = (char *)outcome->reservation;
    message->expires_at_ms = outcome->expires_ms;
    message->replayed = outcome->replayed;
    message->final = outcome->final;
    message->n_units = outcome->unit_count;
    message->units = list_units(outcome->units, outcome->unit_count, &out_reply->units);
    if (outcome->reason != TG_REASON_NONE &&
        tg_reason_row(outcome->reason)->retry == TG_RETRY_LATER) {
        message->retry_after_ms = 1000;
    }
}

void reserve_wire_record(const struct tg_sale *sale, uint64_t epoch,
                         const struct reserve_flow *flow,
                         struct reserve_record_request *out_request)
{
    const struct tg_hold_record *record = &flow->record;
    Tidegate__V1__RecordRequest *message = &out_request->message;
    tidegate__v1__record_request__init(message);
    message->sale = (char *)sale->name;
    message->generation = sale->generation;
    message->epoch = epoch;
    message->reservation_id = (char *)flow->reservation;
    message->user = (ProtobufCBinaryData){record->user_length, (uint8_t *)record->user};
    message->place = (ProtobufCBinaryData){TG_PLACE_BYTES, (uint8_t *)record->place};
    message->window = record->window;
    message->digest = (ProtobufCBinaryData){TG_DIGEST_BYTES, (uint8_t *)record->digest};
    message->n_units = record->unit_count;
    message->units = list_units(record->units, record->unit_count, &out_request->units);
    message->n_user_slots = record->unit_count;
    message->user_slots = (uint32_t *)record->slots;
}

/* ---- snapshot rows ---- */

static bool row_valid(const Tidegate__V1__SnapshotRow *row)
{
    return tg_reservation_id_valid(row->reservation_id, strlen(row->reservation_id)) &&
           tg_user_valid(row->user.data, row->user.len) && row->place.len == TG_PLACE_BYTES &&
           row->digest.len == TG_DIGEST_BYTES && row->expires_at_ms >= 0 &&
           row->n_units <= TG_MAX_UNITS_PER_HOLD;
}

static void fill_record(const Tidegate__V1__SnapshotRow *row, struct tg_hold_record *record)
{
    memcpy(record->place, row->place.data, TG_PLACE_BYTES);
    memcpy(record->digest, row->digest.data, TG_DIGEST_BYTES);
    memcpy(record->user, row->user.data, row->user.len);
    record->user_length = row->user.len;
    record->window = row->window;
    record->deadline_ms = row->expires_at_ms;
    record->unit_count = (uint32_t)row->n_units;
}

/* A live row: the record with its units, and only if it reads back. */
static bool pack_live(const Tidegate__V1__SnapshotRow *row, char *out_packed, size_t *out_length)
{
    struct tg_hold_record record = {.unit_count = 0}, again;
    if (row->n_units == 0 || row->n_user_slots != row->n_units) {
        return false;
    }
    fill_record(row, &record);
    for (size_t i = 0; i < row->n_units; i++) {
        record.units[i] = (struct tg_unit_ref){row->units[i]->item, row->units[i]->unit};
        record.slots[i] = row->user_slots[i];
    }
    *out_length = tg_hold_record_format(&record, out_packed);
    return tg_hold_record_parse(out_packed, *out_length, &again) == 0;
}

static char *put(char *at, const void *bytes, size_t length)
{
    memcpy(at, bytes, length);
    return at + length;
}

/* A row whose units are somebody else's by now: "-" stands for units and slots. */
static bool pack_ended(const Tidegate__V1__SnapshotRow *row, char *out_packed, size_t *out_length)
{
    char *at = out_packed;
    at += tg_base64url_encode(row->place.data, row->place.len, at);
    *at++ = ' ';
    at += tg_unsigned_format(row->window, at);
    *at++ = ' ';
    at += tg_unsigned_format((uint64_t)row->expires_at_ms, at);
    *at++ = ' ';
    at += tg_base64url_encode(row->digest.data, row->digest.len, at);
    at = put(at, " - - ", 5);
    at = put(at, row->user.data, row->user.len);
    *out_length = (size_t)(at - out_packed);
    return true;
}

bool reserve_wire_snapshot_row(const Tidegate__V1__SnapshotRow *row, const char **out_state,
                               char *out_packed, size_t *out_length)
{
    if (!row_valid(row)) {
        return false;
    }
    if (row->state == TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_PENDING) {
        *out_state = "held";
        return pack_live(row, out_packed, out_length);
    }
    if (row->state == TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_CONFIRMED) {
        *out_state = "settled";
        return pack_live(row, out_packed, out_length);
    }
    *out_state = "released";
    return (row->state == TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_EXPIRED ||
            row->state == TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_CANCELLED) &&
           pack_ended(row, out_packed, out_length);
}

/* ---- orders and stock ---- */

Tidegate__V1__OrderKind reserve_wire_order_kind(enum reserve_script script)
{
    if (script == RESERVE_SCRIPT_SETTLE) {
        return TIDEGATE__V1__ORDER_KIND__ORDER_KIND_SETTLE;
    }
    return script == RESERVE_SCRIPT_RELEASE ? TIDEGATE__V1__ORDER_KIND__ORDER_KIND_RELEASE
                                            : TIDEGATE__V1__ORDER_KIND__ORDER_KIND_EXTEND;
}

Tidegate__V1__Obedience reserve_wire_obedience(enum reserve_obeyed obeyed)
{
    switch (obeyed) {
    case RESERVE_OBEYED_DONE:
        return TIDEGATE__V1__OBEDIENCE__OBEDIENCE_DONE;
    case RESERVE_OBEYED_ALREADY:
        return TIDEGATE__V1__OBEDIENCE__OBEDIENCE_ALREADY;
    case RESERVE_OBEYED_UNKNOWN_RESERVATION:
        return TIDEGATE__V1__OBEDIENCE__OBEDIENCE_UNKNOWN_RESERVATION;
    case RESERVE_OBEYED_UNKNOWN_GATE:
        return TIDEGATE__V1__OBEDIENCE__OBEDIENCE_UNKNOWN_GATE;
    case RESERVE_OBEYED_DOUBT:
        return TIDEGATE__V1__OBEDIENCE__OBEDIENCE_DOUBT;
    case RESERVE_OBEYED_UNKNOWN:
        break;
    }
    return TIDEGATE__V1__OBEDIENCE__OBEDIENCE_UNKNOWN;
}

void reserve_wire_stock(const struct tg_sale *sale, const struct reserve_look *look, bool armed,
                        struct reserve_stock *out_stock)
{
    Tidegate__V1__Stock *message = &out_stock->message;
    tidegate__v1__stock__init(message);
    message->sale = (char *)sale->name;
    message->epoch = sale->epoch;
    message->armed = armed;
    if (!armed) {
        return;
    }
    message->paused = look->pause_count > 0;
    message->attested_until_ms = look->attested_until_ms;
    message->gate_now_ms = look->now_ms;
    message->sequence = (uint64_t)look->sequence;
    message->n_items = look->item_count;
    message->items = out_stock->pointers;
    for (uint32_t i = 0; i < look->item_count; i++) {
        Tidegate__V1__ItemStock *item = &out_stock->items[i];
        tidegate__v1__item_stock__init(item);
        item->item = i;
        item->initial = (uint64_t)look->items[i].initial;
        item->free = (uint64_t)look->items[i].stock;
        item->held = (uint64_t)look->items[i].held;
        item->settled = (uint64_t)look->items[i].settled;
        out_stock->pointers[i] = item;
    }
}
