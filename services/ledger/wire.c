/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ledger/wire.h"

#include <string.h>

static bool same_sale(const char *body, const char *subject,
                      char out_sale[TG_MAX_SALE_NAME_BYTES + 1])
{
    const size_t length = strlen(subject);
    if (!tg_sale_name_valid(subject, length) || strcmp(body, subject) != 0) {
        return false;
    }
    memcpy(out_sale, subject, length + 1);
    return true;
}

static bool take_id(const char *text, struct ledger_id *out_id)
{
    if (!tg_reservation_id_valid(text, strlen(text))) {
        return false;
    }
    memcpy(out_id->text, text, sizeof out_id->text);
    return true;
}

/* "" is allowed: from the start. */
static bool take_cursor(const char *text, struct ledger_id *out_id)
{
    if (text[0] == '\0') {
        out_id->text[0] = '\0';
        return true;
    }
    return take_id(text, out_id);
}

static bool take_bytes(const ProtobufCBinaryData *data, uint8_t *out_bytes, size_t length)
{
    if (data->len != length) {
        return false;
    }
    memcpy(out_bytes, data->data, length);
    return true;
}

static bool take_user(const ProtobufCBinaryData *data, uint8_t out_user[TG_MAX_USER_BYTES],
                      uint8_t *out_length)
{
    if (!tg_user_valid(data->data, data->len)) {
        return false;
    }
    memcpy(out_user, data->data, data->len);
    *out_length = (uint8_t)data->len;
    return true;
}

static bool number_fits(uint64_t value)
{
    return value <= INT64_MAX;
}

static bool take_text(const char *text, char *out_text, size_t capacity)
{
    const size_t length = strlen(text);
    if (length >= capacity || !tg_utf8_valid((const uint8_t *)text, length)) {
        return false;
    }
    memcpy(out_text, text, length + 1);
    return true;
}

static bool take_units(Tidegate__V1__UnitRef *const *list, size_t count,
                       struct tg_unit_ref *out_units)
{
    if (count > TG_MAX_UNITS_PER_HOLD) {
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        out_units[i] = (struct tg_unit_ref){.item = list[i]->item, .unit = list[i]->unit};
        if (list[i]->item > INT32_MAX || list[i]->unit > INT32_MAX) {
            return false;
        }
        for (size_t j = 0; j < i; j++) {
            if (out_units[j].item == out_units[i].item && out_units[j].unit == out_units[i].unit) {
                return false;
            }
        }
    }
    return true;
}

enum tg_reason ledger_wire_record(const Tidegate__V1__RecordRequest *request, const char *sale,
                                  struct ledger_hold *out_hold)
{
    char name[TG_MAX_SALE_NAME_BYTES + 1];
    const bool well = same_sale(request->sale, sale, name) &&
                      take_id(request->reservation_id, &out_hold->id) &&
                      take_user(&request->user, out_hold->user, &out_hold->user_length) &&
                      take_bytes(&request->place, out_hold->place, sizeof out_hold->place) &&
                      take_bytes(&request->digest, out_hold->digest, sizeof out_hold->digest) &&
                      number_fits(request->generation) && number_fits(request->epoch) &&
                      number_fits(request->window) && request->n_units >= 1 &&
                      request->n_units == request->n_user_slots &&
                      take_units(request->units, request->n_units, out_hold->units);
    if (!well) {
        return TG_REASON_MALFORMED;
    }
    out_hold->generation = request->generation;
    out_hold->epoch = request->epoch;
    out_hold->window = request->window;
    out_hold->unit_count = (uint32_t)request->n_units;
    for (uint32_t i = 0; i < out_hold->unit_count; i++) {
        if (request->user_slots[i] > INT32_MAX) {
            return TG_REASON_MALFORMED;
        }
        out_hold->slots[i] = request->user_slots[i];
    }
    return TG_REASON_NONE;
}

static bool take_tombstone(const Tidegate__V1__LapsedHold *hold, struct ledger_tombstone *out)
{
    out->window = hold->window;
    return take_id(hold->reservation_id, &out->id) &&
           take_user(&hold->user, out->user, &out->user_length) &&
           take_bytes(&hold->place, out->place, sizeof out->place) &&
           take_bytes(&hold->digest, out->digest, sizeof out->digest) && number_fits(hold->window);
}

enum tg_reason ledger_wire_expire(const Tidegate__V1__ExpireRequest *request, const char *sale,
                                  struct ledger_expire *out_ask, uint32_t *out_dropped)
{
    *out_dropped = 0;
    out_ask->id_count = 0;
    out_ask->tombstone_count = 0;
    if (!same_sale(request->sale, sale, out_ask->sale) || !number_fits(request->generation) ||
        !number_fits(request->epoch) || request->n_reservation_ids > TG_MAX_PAGE ||
        request->n_tombstones > TG_MAX_PAGE) {
        return TG_REASON_MALFORMED;
    }
    out_ask->generation = request->generation;
    out_ask->epoch = request->epoch;
    for (size_t i = 0; i < request->n_reservation_ids; i++) {
        if (take_id(request->reservation_ids[i], &out_ask->ids[out_ask->id_count])) {
            out_ask->id_count++;
        } else {
            ++*out_dropped;
        }
    }
    for (size_t i = 0; i < request->n_tombstones; i++) {
        if (take_tombstone(request->tombstones[i],
                           &out_ask->tombstones[out_ask->tombstone_count])) {
            out_ask->tombstone_count++;
        } else {
            ++*out_dropped;
        }
    }
    return TG_REASON_NONE;
}

/* Only what the gate really did is taken: done, or done before. */
static bool take_result(const Tidegate__V1__OrderResult *result, struct ledger_id *out_id,
                        enum ledger_order *out_kind)
{
    if (result->obedience != TIDEGATE__V1__OBEDIENCE__OBEDIENCE_DONE &&
        result->obedience != TIDEGATE__V1__OBEDIENCE__OBEDIENCE_ALREADY) {
        return false;
    }
    if (result->kind == TIDEGATE__V1__ORDER_KIND__ORDER_KIND_SETTLE) {
        *out_kind = LEDGER_SETTLE;
    } else if (result->kind == TIDEGATE__V1__ORDER_KIND__ORDER_KIND_RELEASE) {
        *out_kind = LEDGER_RELEASE;
    } else {
        return false;
    }
    return take_id(result->reservation_id, out_id);
}

enum tg_reason ledger_wire_obeyed(const Tidegate__V1__ObeyedRequest *request, const char *sale,
                                  struct ledger_obeyed *out_ask, uint32_t *out_dropped)
{
    *out_dropped = 0;
    out_ask->count = 0;
    if (!same_sale(request->sale, sale, out_ask->sale) || !number_fits(request->epoch) ||
        request->n_results > TG_MAX_PAGE) {
        return TG_REASON_MALFORMED;
    }
    out_ask->epoch = request->epoch;
    for (size_t i = 0; i < request->n_results; i++) {
        if (take_result(request->results[i], &out_ask->ids[out_ask->count],
                        &out_ask->kinds[out_ask->count])) {
            out_ask->count++;
        } else {
            ++*out_dropped;
        }
    }
    return TG_REASON_NONE;
}

static uint32_t page_limit(uint32_t asked, uint32_t max)
{
    return asked == 0 || asked > max ? max : asked;
}

enum tg_reason ledger_wire_due(const Tidegate__V1__LedgerDueRequest *request, const char *sale,
                               struct ledger_due_ask *out_ask)
{
    if (!same_sale(request->sale, sale, out_ask->sale) ||
        !take_cursor(request->orders_after, &out_ask->orders_after)) {
        return TG_REASON_MALFORMED;
    }
    out_ask->limit = page_limit(request->limit, TG_MAX_PAGE);
    return TG_REASON_NONE;
}

enum tg_reason ledger_wire_snapshot(const Tidegate__V1__SnapshotRequest *request, const char *sale,
                                    struct ledger_snapshot_ask *out_ask)
{
    if (!same_sale(request->sale, sale, out_ask->sale) || !number_fits(request->epoch) ||
        !take_cursor(request->after, &out_ask->after)) {
        return TG_REASON_MALFORMED;
    }
    out_ask->epoch = request->epoch;
    out_ask->limit = page_limit(request->limit, TG_MAX_SNAPSHOT_PAGE);
    return TG_REASON_NONE;
}

enum tg_reason ledger_wire_incident(const Tidegate__V1__IncidentRequest *request, const char *sale,
                                    struct ledger_incident_ask *out_ask)
{
    if (!same_sale(request->sale, sale, out_ask->sale) ||
        !tg_utf8_valid((const uint8_t *)request->after, strlen(request->after)) ||
        !take_text(request->after, out_ask->after, sizeof out_ask->after)) {
        return TG_REASON_MALFORMED;
    }
    out_ask->limit = page_limit(request->limit, TG_MAX_SNAPSHOT_PAGE);
    return TG_REASON_NONE;
}

enum tg_reason ledger_wire_audit(const Tidegate__V1__AuditRequest *request, const char *sale,
                                 struct ledger_audit_ask *out_ask)
{
    if (!same_sale(request->sale, sale, out_ask->place.sale) || !number_fits(request->epoch) ||
        !number_fits(request->after) || request->shard > INT32_MAX) {
        return TG_REASON_MALFORMED;
    }
    out_ask->place.epoch = request->epoch;
    out_ask->place.shard = request->shard;
    out_ask->after = request->after;
    out_ask->last = request->last < INT32_MAX ? request->last : INT32_MAX;
    out_ask->limit = page_limit(request->limit, TG_MAX_PAGE);
    return TG_REASON_NONE;
}

enum tg_reason ledger_wire_armed(const Tidegate__V1__ArmedRequest *request, const char *sale,
                                 struct ledger_armed *out_ask)
{
    if (!same_sale(request->sale, sale, out_ask->sale) || !number_fits(request->epoch) ||
        request->run_id[0] == '\0' ||
        !take_text(request->run_id, out_ask->run_id, sizeof out_ask->run_id) ||
        !take_text(request->replication_id, out_ask->replication_id,
                   sizeof out_ask->replication_id)) {
        return TG_REASON_MALFORMED;
    }
    out_ask->epoch = request->epoch;
    return TG_REASON_NONE;
}

static bool take_fixed(const ProtobufCBinaryData *from, uint8_t *out_bytes, size_t length)
{
    if (from->len != length) {
        return false;
    }
    memcpy(out_bytes, from->data, length);
    return true;
}

static bool take_entrants(const ProtobufCBinaryData *from, struct ledger_draw_ask *out_ask)
{
    out_ask->count = (uint32_t)(from->len / TG_ENTRANT_BYTES);
    return from->len > 0 && from->len % TG_ENTRANT_BYTES == 0 &&
           from->len <= sizeof out_ask->entrants &&
           take_fixed(from, out_ask->entrants[0], from->len);
}

static bool take_frozen(const Tidegate__V1__Draw *draw, struct tg_draw *out_draw)
{
    out_draw->count = draw == NULL ? 0 : draw->count;
    out_draw->index_at_open = draw == NULL ? 0 : draw->index_at_open;
    return draw != NULL && draw->count <= TG_MAX_ROSTER_ENTRANTS &&
           number_fits(draw->index_at_open) &&
           take_fixed(&draw->root, out_draw->root, sizeof out_draw->root);
}

static bool take_revealed(const Tidegate__V1__Draw *draw, struct tg_draw *out_draw)
{
    if (draw == NULL || draw->beacon.len > sizeof out_draw->beacon) {
        return false;
    }
    out_draw->beacon_length = (uint8_t)draw->beacon.len;
    return take_fixed(&draw->beacon, out_draw->beacon, out_draw->beacon_length) &&
           take_fixed(&draw->secret, out_draw->secret, sizeof out_draw->secret) &&
           take_fixed(&draw->seed, out_draw->seed, sizeof out_draw->seed);
}

static bool take_step(const Tidegate__V1__DrawRequest *request, struct ledger_draw_ask *out_ask)
{
    switch (request->step) {
    case TIDEGATE__V1__DRAW_STEP__DRAW_STEP_APPEND:
        out_ask->step = LEDGER_ROSTER_APPEND;
        return take_entrants(&request->entrants, out_ask);
    case TIDEGATE__V1__DRAW_STEP__DRAW_STEP_READ:
        out_ask->step = LEDGER_ROSTER_READ;
        return true;
    case TIDEGATE__V1__DRAW_STEP__DRAW_STEP_FREEZE:
        out_ask->step = LEDGER_DRAW_FREEZE;
        return take_frozen(request->draw, &out_ask->draw);
    case TIDEGATE__V1__DRAW_STEP__DRAW_STEP_REVEAL:
        out_ask->step = LEDGER_DRAW_REVEAL;
        return take_revealed(request->draw, &out_ask->draw);
    case TIDEGATE__V1__DRAW_STEP__DRAW_STEP_UNSPECIFIED:
    case _TIDEGATE__V1__DRAW_STEP_IS_INT_SIZE:
        break;
    }
    return false;
}

enum tg_reason ledger_wire_draw(const Tidegate__V1__DrawRequest *request, const char *sale,
                                struct ledger_draw_ask *out_ask)
{
    if (!same_sale(request->sale, sale, out_ask->sale) || !number_fits(request->generation) ||
        !number_fits(request->first) || !take_step(request, out_ask)) {
        return TG_REASON_MALFORMED;
    }
    out_ask->generation = request->generation;
    out_ask->first = request->first;
    return TG_REASON_NONE;
}

enum tg_reason ledger_wire_check(const Tidegate__V1__AppendRequest *request, const char *sale,
                                 struct ledger_check *out_check)
{
    const Tidegate__V1__CheckResult *result = request->check;
    if (result == NULL || !same_sale(request->sale, sale, out_check->sale) ||
        !number_fits(request->epoch) ||
        !take_text(request->instance, out_check->instance, sizeof out_check->instance) ||
        !take_text(result->detail, out_check->detail, sizeof out_check->detail) ||
        !take_text(result->outcome, out_check->outcome, sizeof out_check->outcome) ||
        !number_fits(result->stock) || !number_fits(result->pending) ||
        !number_fits(result->confirmed) || !number_fits(result->initial) ||
        result->round_ms > INT32_MAX) {
        return TG_REASON_MALFORMED;
    }
    if (strcmp(result->outcome, "clean") != 0 && strcmp(result->outcome, "void") != 0 &&
        strcmp(result->outcome, "alarm") != 0) {
        return TG_REASON_MALFORMED;
    }
    out_check->epoch = request->epoch;
    out_check->checked_ms = result->at_ms;
    out_check->stock = (int64_t)result->stock;
    out_check->pending = (int64_t)result->pending;
    out_check->confirmed = (int64_t)result->confirmed;
    out_check->in_flight = result->in_flight;
    out_check->release_pending = result->release_pending;
    out_check->initial = (int64_t)result->initial;
    out_check->round_ms = result->round_ms;
    return TG_REASON_NONE;
}

static bool take_entry(const Tidegate__V1__GateLogEntry *entry, struct ledger_log_entry *out)
{
    out->sequence = entry->sequence;
    out->stock_after = entry->stock_after;
    out->gate_ms = entry->at_ms;
    out->unit_count = (uint32_t)entry->n_units;
    return number_fits(entry->sequence) && take_text(entry->kind, out->kind, sizeof out->kind) &&
           take_cursor(entry->reservation_id, &out->id) &&
           take_text(entry->source, out->source, sizeof out->source) &&
           take_units(entry->units, entry->n_units, out->units);
}

enum tg_reason ledger_wire_log(const Tidegate__V1__AppendRequest *request, const char *sale,
                               struct ledger_log_page *out_page)
{
    out_page->count = 0;
    if (!same_sale(request->sale, sale, out_page->place.sale) || !number_fits(request->epoch) ||
        request->shard > INT32_MAX || request->n_entries > TG_MAX_PAGE) {
        return TG_REASON_MALFORMED;
    }
    out_page->place.epoch = request->epoch;
    out_page->place.shard = request->shard;
    for (size_t i = 0; i < request->n_entries; i++) {
        if (request->entries[i]->sequence <= out_page->tail.sequence) {
            continue;
        }
        if (!take_entry(request->entries[i], &out_page->entries[out_page->count])) {
            return TG_REASON_MALFORMED;
        }
        out_page->count++;
    }
    return TG_REASON_NONE;
}

/* Which reservation, and whose if a buyer asks. */
static enum tg_reason take_ask(const char *id, const ProtobufCBinaryData *user,
                               struct ledger_ask *out_ask)
{
    if (!take_id(id, &out_ask->id)) {
        return TG_REASON_RESERVATION_UNKNOWN;
    }
    if (user->len > 0 && !take_user(user, out_ask->user, &out_ask->user_length)) {
        return TG_REASON_MALFORMED;
    }
    return TG_REASON_NONE;
}

enum tg_reason ledger_wire_read(const Tidegate__V1__ReadRequest *request,
                                struct ledger_ask *out_ask)
{
    *out_ask = (struct ledger_ask){.verb = LEDGER_READ};
    return take_ask(request->reservation_id, &request->user, out_ask);
}

static bool payment_valid(const char *text)
{
    const size_t length = strlen(text);
    bool well = length >= 1 && length <= TG_MAX_PAYMENT_ID_BYTES;
    for (size_t i = 0; i < length; i++) {
        well = well && text[i] > 0x20 && text[i] < 0x7f;
    }
    return well;
}

static bool currency_valid(const char *text)
{
    bool well = strlen(text) == 3;
    for (size_t i = 0; well && i < 3; i++) {
        well = text[i] >= 'A' && text[i] <= 'Z';
    }
    return well;
}

enum tg_reason ledger_wire_confirm(const Tidegate__V1__ConfirmRequest *request,
                                   struct ledger_ask *out_ask)
{
    *out_ask = (struct ledger_ask){.verb = LEDGER_CONFIRM};
    if (!take_id(request->reservation_id, &out_ask->id)) {
        return TG_REASON_RESERVATION_UNKNOWN;
    }
    if (!payment_valid(request->payment_id) || !currency_valid(request->currency) ||
        !number_fits(request->amount_minor)) {
        return TG_REASON_MALFORMED;
    }
    memcpy(out_ask->payment, request->payment_id, strlen(request->payment_id) + 1);
    memcpy(out_ask->currency, request->currency, sizeof out_ask->currency);
    out_ask->amount_minor = (int64_t)request->amount_minor;
    return TG_REASON_NONE;
}

enum tg_reason ledger_wire_extend(const Tidegate__V1__ExtendRequest *request,
                                  struct ledger_ask *out_ask)
{
    *out_ask = (struct ledger_ask){.verb = LEDGER_EXTEND};
    return take_id(request->reservation_id, &out_ask->id) ? TG_REASON_NONE
                                                          : TG_REASON_RESERVATION_UNKNOWN;
}

enum tg_reason ledger_wire_cancel(const Tidegate__V1__CancelRequest *request,
                                  struct ledger_ask *out_ask)
{
    *out_ask = (struct ledger_ask){.verb = LEDGER_CANCEL};
    return take_ask(request->reservation_id, &request->user, out_ask);
}

Tidegate__V1__UnitRef **ledger_wire_units(struct ledger_wire_units *storage,
                                          const struct tg_unit_ref *units, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        tidegate__v1__unit_ref__init(&storage->rows[i]);
        storage->rows[i].item = units[i].item;
        storage->rows[i].unit = units[i].unit;
        storage->list[i] = &storage->rows[i];
    }
    return storage->list;
}
