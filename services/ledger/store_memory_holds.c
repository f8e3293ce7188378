/* SPDX-License-Identifier: Apache-2.0
 * The twin's holds and verdicts: what 0003_record.sql and 0004_verdicts.sql decide. */
#include "services/ledger/store_memory_parts.h"

#include <string.h>

static bool same_user(const struct ledger_hold *a, const uint8_t *user, uint8_t length)
{
    return a->user_length == length && memcmp(a->user, user, length) == 0;
}

static bool past_grace(const struct store_memory *store, const struct memory_reservation *row)
{
    return store->now_ms >= row->expires_ms + row->sale->told.sale.grace_ms;
}

static bool unit_taken(const struct memory_reservation *row, const struct tg_unit_ref *unit)
{
    for (uint32_t i = 0; row->live && i < row->hold.unit_count; i++) {
        if (row->hold.units[i].item == unit->item && row->hold.units[i].unit == unit->unit) {
            return true;
        }
    }
    return false;
}

static bool slot_taken(const struct memory_reservation *row, const struct ledger_hold *hold,
                       uint32_t slot)
{
    for (uint32_t i = 0; row->live && i < row->hold.unit_count; i++) {
        if (row->hold.slots[i] == slot && same_user(&row->hold, hold->user, hold->user_length)) {
            return true;
        }
    }
    return false;
}

/* Against every live holding of the sale; a unit's conflict weighs more than a slot's. */
static enum tg_reason judge_room(const struct store_memory *store, const struct memory_sale *sale,
                                 const struct ledger_hold *hold)
{
    enum tg_reason reason = ledger_hold_judge(&sale->told.sale, hold);
    for (uint32_t r = 0; r < store->reservation_count; r++) {
        const struct memory_reservation *row = &store->reservations[r];
        if (row->sale != sale || row->hold.generation != sale->told.sale.generation) {
            continue;
        }
        for (uint32_t i = 0; i < hold->unit_count; i++) {
            if (unit_taken(row, &hold->units[i])) {
                return TG_REASON_UNIT_CONFLICT;
            }
            if (reason == TG_REASON_NONE && slot_taken(row, hold, hold->slots[i])) {
                reason = TG_REASON_LIMIT_CONFLICT;
            }
        }
    }
    return reason;
}

/* Two units of one hold in one slot. */
static bool slots_clash(const struct ledger_hold *hold)
{
    for (uint32_t i = 0; i < hold->unit_count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (hold->slots[i] == hold->slots[j]) {
                return true;
            }
        }
    }
    return false;
}

static enum tg_reason judge_hold(const struct store_memory *store, const struct memory_sale *sale,
                                 const struct ledger_hold *hold)
{
    if (hold->epoch != sale->told.sale.epoch || hold->generation != sale->told.sale.generation) {
        return TG_REASON_STALE_EPOCH;
    }
    if (sale->stage == MEMORY_CLOSED) {
        return TG_REASON_SALE_CLOSED;
    }
    const enum tg_reason reason = judge_room(store, sale, hold);
    return reason == TG_REASON_NONE && slots_clash(hold) ? TG_REASON_LIMIT_CONFLICT : reason;
}

/* Units are told in the order of items and units, as the table gives them. */
static void sort_units(struct ledger_hold *hold)
{
    for (uint32_t i = 1; i < hold->unit_count; i++) {
        for (uint32_t j = i; j > 0; j--) {
            const struct tg_unit_ref left = hold->units[j - 1], right = hold->units[j];
            if (left.item < right.item || (left.item == right.item && left.unit < right.unit)) {
                break;
            }
            const uint32_t slot = hold->slots[j];
            hold->units[j - 1] = right;
            hold->units[j] = left;
            hold->slots[j] = hold->slots[j - 1];
            hold->slots[j - 1] = slot;
        }
    }
}

/* A hold nobody has seen; NULL: refused, or no room. */
static struct memory_reservation *take_hold(struct store_memory *store, struct memory_sale *sale,
                                            const struct ledger_hold *hold,
                                            struct ledger_recorded *out)
{
    out->outcome = LEDGER_REFUSED;
    out->reason = judge_hold(store, sale, hold);
    if (out->reason == TG_REASON_UNIT_CONFLICT) {
        memory_pause(store, sale, hold->id.text + 4, tg_reason_code(out->reason));
    }
    if (out->reason != TG_REASON_NONE) {
        return NULL;
    }
    struct memory_reservation *row = memory_insert(store, hold);
    if (row == NULL) {
        out->outcome = LEDGER_UNKNOWN;
        out->reason = TG_REASON_TRY_AGAIN;
        return NULL;
    }
    sort_units(&row->hold);
    row->sale = sale;
    row->state = LEDGER_PENDING;
    row->live = true;
    row->expires_ms = store->now_ms + sale->told.sale.hold_ms;
    memory_event(store, sale, "held", row);
    out->outcome = LEDGER_RECORDED;
    return row;
}

static void record_one(struct store_memory *store, struct memory_sale *sale,
                       const struct ledger_hold *hold, struct ledger_recorded *out)
{
    if (sale == NULL) {
        out->outcome = LEDGER_REFUSED;
        out->reason = TG_REASON_SALE_UNKNOWN;
        return;
    }
    out->epoch = sale->told.sale.epoch;
    struct memory_reservation *row = memory_find(store, hold->id.text);
    if (row == NULL) {
        row = take_hold(store, sale, hold, out);
    } else {
        out->outcome = LEDGER_ALREADY;
        out->unit_count = row->hold.unit_count;
        memcpy(out->units, row->hold.units, sizeof out->units);
    }
    if (row != NULL) {
        out->state = row->state;
        out->expires_ms = row->expires_ms;
    }
}

static void tell_recorded(struct store_memory *store, const struct memory_answer *answer,
                          int status)
{
    store->answers.recorded(store->answers.context, answer->token, status,
                            (const struct ledger_recorded *)answer->rows, answer->count);
}

/* In the order of ids, as SQL does when holds of one batch get in each other's way. */
int memory_record(void *self, const struct ledger_batch *batch, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer = memory_answer_new(
        store, token, batch->count * sizeof(struct ledger_recorded), tell_recorded);
    struct ledger_recorded *rows = (struct ledger_recorded *)answer->rows;
    uint32_t order[TG_MAX_RECORD_BATCH];
    answer->count = batch->count;
    for (uint32_t i = 0; i < batch->count; i++) {
        uint32_t place = i;
        for (; place > 0 &&
               strcmp(batch->holds[order[place - 1]].id.text, batch->holds[i].id.text) > 0;
             place--) {
            order[place] = order[place - 1];
        }
        order[place] = i;
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        record_one(store, memory_sale_find(store, batch->sale), &batch->holds[order[i]],
                   &rows[order[i]]);
    }
    return 0;
}

static void end_hold(struct store_memory *store, struct memory_reservation *row,
                     enum ledger_state state)
{
    row->state = state;
    row->live = false;
    row->obeyed_epoch = 0;
    memory_event(store, row->sale, state == LEDGER_EXPIRED ? "expired" : "cancelled", row);
}

static void bury(struct store_memory *store, struct memory_sale *sale,
                 const struct ledger_tombstone *tombstone)
{
    struct ledger_hold hold = {.id = tombstone->id,
                               .generation = sale->told.sale.generation,
                               .epoch = sale->told.sale.epoch,
                               .window = tombstone->window,
                               .user_length = tombstone->user_length};
    memcpy(hold.user, tombstone->user, sizeof hold.user);
    memcpy(hold.place, tombstone->place, sizeof hold.place);
    memcpy(hold.digest, tombstone->digest, sizeof hold.digest);
    struct memory_reservation *row =
        memory_find(store, tombstone->id.text) == NULL ? memory_insert(store, &hold) : NULL;
    if (row != NULL) {
        row->sale = sale;
        row->state = LEDGER_EXPIRED;
        row->expires_ms = store->now_ms;
    }
}

static void give_verdict(struct store_memory *store, const struct memory_sale *sale, const char *id,
                         struct ledger_verdicts *out)
{
    struct memory_reservation *row = memory_find(store, id);
    if (row == NULL || row->sale != sale) {
        return;
    }
    if (row->state == LEDGER_PENDING && past_grace(store, row)) {
        end_hold(store, row, LEDGER_EXPIRED);
    }
    out->rows[out->count].id = row->hold.id;
    out->rows[out->count].state = row->state;
    out->count++;
}

static void tell_expired(struct store_memory *store, const struct memory_answer *answer, int status)
{
    store->answers.expired(store->answers.context, answer->token, status,
                           (const struct ledger_verdicts *)answer->rows);
}

int memory_expire(void *self, const struct ledger_expire *ask, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer =
        memory_answer_new(store, token, sizeof(struct ledger_verdicts), tell_expired);
    struct ledger_verdicts *verdicts = (struct ledger_verdicts *)answer->rows;
    struct memory_sale *sale = memory_sale_find(store, ask->sale);
    if (sale == NULL) {
        verdicts->reason = TG_REASON_SALE_UNKNOWN;
        return 0;
    }
    verdicts->epoch = sale->told.sale.epoch;
    if (ask->tombstone_count > 0 &&
        (ask->epoch != sale->told.sale.epoch || ask->generation != sale->told.sale.generation)) {
        verdicts->reason = TG_REASON_STALE_EPOCH;
        return 0;
    }
    for (uint32_t i = 0; i < ask->tombstone_count; i++) {
        bury(store, sale, &ask->tombstones[i]);
    }
    for (uint32_t i = 0; i < ask->id_count; i++) {
        give_verdict(store, sale, ask->ids[i].text, verdicts);
    }
    for (uint32_t i = 0; i < ask->tombstone_count; i++) {
        give_verdict(store, sale, ask->tombstones[i].id.text, verdicts);
    }
    return 0;
}

static void tell_obeyed(struct store_memory *store, const struct memory_answer *answer, int status)
{
    store->answers.obeyed(store->answers.context, answer->token, status, answer->reason,
                          (uint32_t)answer->number);
}

static bool is_verdict(const struct memory_reservation *row, enum ledger_order kind)
{
    if (kind == LEDGER_SETTLE) {
        return row->state == LEDGER_CONFIRMED;
    }
    return row->state == LEDGER_EXPIRED || row->state == LEDGER_CANCELLED;
}

int memory_obeyed(void *self, const struct ledger_obeyed *ask, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer = memory_answer_new(store, token, 0, tell_obeyed);
    const struct memory_sale *sale = memory_sale_find(store, ask->sale);
    if (sale == NULL || sale->told.sale.epoch != ask->epoch) {
        answer->reason = sale == NULL ? TG_REASON_SALE_UNKNOWN : TG_REASON_STALE_EPOCH;
        return 0;
    }
    for (uint32_t i = 0; i < ask->count; i++) {
        struct memory_reservation *row = memory_find(store, ask->ids[i].text);
        if (row != NULL && row->sale == sale && row->obeyed_epoch < ask->epoch &&
            is_verdict(row, ask->kinds[i])) {
            row->obeyed_epoch = ask->epoch;
            row->restocked = row->restocked || ask->kinds[i] == LEDGER_RELEASE;
            answer->number++;
        }
    }
    return 0;
}

static void tell_due(struct store_memory *store, const struct memory_answer *answer, int status)
{
    store->answers.due(store->answers.context, answer->token, status,
                       (const struct ledger_due *)answer->rows);
}

/* Ids in order, round from the first one after `after`. */
static void due_lapsed(struct store_memory *store, const struct memory_sale *sale,
                       const struct ledger_due_ask *ask, struct ledger_due *due)
{
    uint32_t first = memory_place(store, ask->lapsed_after.text);
    if (memory_find(store, ask->lapsed_after.text) != NULL) {
        first++;
    }
    for (uint32_t i = 0; i < store->reservation_count && due->lapsed_count < ask->limit; i++) {
        const struct memory_reservation *row = store->by_id[(first + i) % store->reservation_count];
        if (row->sale == sale && row->state == LEDGER_PENDING && past_grace(store, row)) {
            due->lapsed[due->lapsed_count++] = row->hold.id;
        }
    }
}

int memory_due(void *self, const struct ledger_due_ask *ask, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer =
        memory_answer_new(store, token, sizeof(struct ledger_due), tell_due);
    struct ledger_due *due = (struct ledger_due *)answer->rows;
    const struct memory_sale *sale = memory_sale_find(store, ask->sale);
    if (sale == NULL) {
        return 0;
    }
    due->known = true;
    due->epoch = sale->told.sale.epoch;
    due->generation = sale->told.sale.generation;
    due_lapsed(store, sale, ask, due);
    for (uint32_t i = 0; i < store->reservation_count && due->order_count < ask->limit; i++) {
        const struct memory_reservation *row = store->by_id[i];
        if (row->sale == sale && row->hold.generation == due->generation &&
            row->state != LEDGER_PENDING && row->obeyed_epoch < due->epoch &&
            strcmp(row->hold.id.text, ask->orders_after.text) > 0) {
            due->kinds[due->order_count] =
                row->state == LEDGER_CONFIRMED ? LEDGER_SETTLE : LEDGER_RELEASE;
            due->orders[due->order_count++] = row->hold.id;
        }
    }
    return 0;
}

static void tell_snapshot(struct store_memory *store, const struct memory_answer *answer,
                          int status)
{
    store->answers.snapshot(store->answers.context, answer->token, status,
                            (const struct ledger_snapshot *)answer->rows);
}

static void fill_snapshot(const struct memory_reservation *row, struct ledger_snapshot_row *out)
{
    out->id = row->hold.id;
    out->state = row->state;
    memcpy(out->user, row->hold.user, sizeof out->user);
    out->user_length = row->hold.user_length;
    memcpy(out->place, row->hold.place, sizeof out->place);
    out->window = row->hold.window;
    memcpy(out->digest, row->hold.digest, sizeof out->digest);
    out->expires_ms = row->expires_ms;
    out->unit_count = row->live ? row->hold.unit_count : 0;
    memcpy(out->units, row->hold.units, sizeof out->units);
    memcpy(out->slots, row->hold.slots, sizeof out->slots);
}

int memory_snapshot(void *self, const struct ledger_snapshot_ask *ask, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer =
        memory_answer_new(store, token, sizeof(struct ledger_snapshot), tell_snapshot);
    struct ledger_snapshot *page = (struct ledger_snapshot *)answer->rows;
    const struct memory_sale *sale = memory_sale_find(store, ask->sale);
    page->epoch = sale == NULL ? 0 : sale->told.sale.epoch;
    if (sale == NULL || page->epoch != ask->epoch) {
        page->reason = sale == NULL ? TG_REASON_SALE_UNKNOWN : TG_REASON_STALE_EPOCH;
        return 0;
    }
    for (uint32_t i = 0; i < store->reservation_count && page->count < ask->limit; i++) {
        const struct memory_reservation *row = store->by_id[i];
        if (row->sale == sale && row->hold.generation == sale->told.sale.generation &&
            strcmp(row->hold.id.text, ask->after.text) > 0) {
            fill_snapshot(row, &page->rows[page->count++]);
        }
    }
    return 0;
}

static void tell_incident(struct store_memory *store, const struct memory_answer *answer,
                          int status)
{
    store->answers.incident(store->answers.context, answer->token, status,
                            (const struct ledger_incident *)answer->rows);
}

static void count_row(const struct memory_reservation *row, struct ledger_incident *page)
{
    page->pending_units += row->state == LEDGER_PENDING ? row->hold.unit_count : 0;
    page->confirmed_units += row->state == LEDGER_CONFIRMED ? row->hold.unit_count : 0;
    page->live += row->state == LEDGER_PENDING || row->state == LEDGER_CONFIRMED;
    page->ended += row->state != LEDGER_PENDING && row->state != LEDGER_CONFIRMED;
}

/* The counts; the twin keeps no log of commands and rounds to tell of. */
int memory_incident(void *self, const struct ledger_incident_ask *ask, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer =
        memory_answer_new(store, token, sizeof(struct ledger_incident), tell_incident);
    struct ledger_incident *page = (struct ledger_incident *)answer->rows;
    const struct memory_sale *sale = memory_sale_find(store, ask->sale);
    if (sale == NULL) {
        page->reason = TG_REASON_SALE_UNKNOWN;
        return 0;
    }
    for (uint32_t i = 0; i < sale->told.sale.item_count; i++) {
        page->units += sale->told.sale.items[i].units;
    }
    for (uint32_t i = 0; i < store->reservation_count; i++) {
        const struct memory_reservation *row = store->by_id[i];
        if (row->sale == sale && row->hold.generation == sale->told.sale.generation) {
            count_row(row, page);
        }
    }
    return 0;
}

/* The price of all units, or -1 when they are not all of this currency. */
static int64_t price_of(const struct memory_reservation *row, const char *currency)
{
    int64_t total = 0;
    for (uint32_t i = 0; i < row->hold.unit_count; i++) {
        const struct tg_item *item = &row->sale->told.sale.items[row->hold.units[i].item];
        if (strcmp(item->currency, currency) != 0) {
            return -1;
        }
        total += (int64_t)item->price_minor;
    }
    return row->hold.unit_count > 0 ? total : -1;
}

static bool payment_used(const struct store_memory *store, const char *payment)
{
    for (uint32_t i = 0; i < store->reservation_count; i++) {
        if (strcmp(store->reservations[i].payment, payment) == 0) {
            return true;
        }
    }
    return false;
}

static enum tg_reason ended_reason(const struct store_memory *store,
                                   const struct memory_reservation *row)
{
    switch (row->state) {
    case LEDGER_STATE_NONE:
    case LEDGER_PENDING:
        break;
    case LEDGER_CONFIRMED:
        return TG_REASON_ALREADY_PAID;
    case LEDGER_EXPIRED:
        return TG_REASON_RESERVATION_EXPIRED;
    case LEDGER_CANCELLED:
        return TG_REASON_RESERVATION_CANCELLED;
    }
    return past_grace(store, row) ? TG_REASON_RESERVATION_EXPIRED : TG_REASON_NONE;
}

static enum tg_reason confirm(struct store_memory *store, struct memory_reservation *row,
                              const struct ledger_ask *ask, bool *out_replayed)
{
    if (row->payment[0] != '\0' && strcmp(row->payment, ask->payment) == 0) {
        if (row->amount_minor != ask->amount_minor || strcmp(row->currency, ask->currency) != 0) {
            return TG_REASON_AMOUNT_MISMATCH;
        }
        *out_replayed = true;
        return row->state == LEDGER_CONFIRMED ? TG_REASON_NONE : TG_REASON_RESERVATION_CANCELLED;
    }
    if (payment_used(store, ask->payment)) {
        return TG_REASON_PAYMENT_USED;
    }
    const enum tg_reason ended = ended_reason(store, row);
    if (ended != TG_REASON_NONE) {
        memory_compensate(store, row, ask, tg_reason_code(ended));
        return ended;
    }
    if (memory_compensated(store, ask->payment)) {
        return TG_REASON_PAYMENT_USED;
    }
    if (price_of(row, ask->currency) != ask->amount_minor) {
        return TG_REASON_AMOUNT_MISMATCH;
    }
    row->state = LEDGER_CONFIRMED;
    memcpy(row->payment, ask->payment, sizeof row->payment);
    memcpy(row->currency, ask->currency, sizeof row->currency);
    row->amount_minor = ask->amount_minor;
    row->obeyed_epoch = 0;
    ledger_order_id(row->hold.id.text, row->order_id);
    memory_event(store, row->sale, "confirmed", row);
    return TG_REASON_NONE;
}

static enum tg_reason extend(const struct store_memory *store, struct memory_reservation *row,
                             bool *out_replayed)
{
    const struct tg_sale *sale = &row->sale->told.sale;
    const int64_t until_ms = store->now_ms + sale->extend_ms;
    if (row->state != LEDGER_PENDING) {
        return row->state == LEDGER_EXPIRED     ? TG_REASON_RESERVATION_EXPIRED
               : row->state == LEDGER_CANCELLED ? TG_REASON_RESERVATION_CANCELLED
                                                : TG_REASON_EXTENSION_REFUSED;
    }
    if (store->now_ms >= row->expires_ms) {
        return TG_REASON_EXTENSION_REFUSED;
    }
    if (until_ms <= row->expires_ms) {
        *out_replayed = true;
        return TG_REASON_NONE;
    }
    if (row->extensions >= sale->extensions_max) {
        return TG_REASON_EXTENSION_REFUSED;
    }
    row->expires_ms = until_ms;
    row->extensions++;
    return TG_REASON_NONE;
}

static enum tg_reason cancel(struct store_memory *store, struct memory_reservation *row,
                             bool *out_replayed)
{
    if (row->state == LEDGER_CANCELLED) {
        *out_replayed = true;
        return TG_REASON_NONE;
    }
    if (row->state == LEDGER_EXPIRED) {
        return TG_REASON_RESERVATION_EXPIRED;
    }
    end_hold(store, row, LEDGER_CANCELLED);
    return TG_REASON_NONE;
}

static enum tg_reason decide(struct store_memory *store, struct memory_reservation *row,
                             const struct ledger_ask *ask, bool *out_replayed)
{
    switch (ask->verb) {
    case LEDGER_READ:
        break;
    case LEDGER_CONFIRM:
        return confirm(store, row, ask, out_replayed);
    case LEDGER_EXTEND:
        return extend(store, row, out_replayed);
    case LEDGER_CANCEL:
        return cancel(store, row, out_replayed);
    }
    return TG_REASON_NONE;
}

static void tell_reservation(struct store_memory *store, const struct memory_answer *answer,
                             int status)
{
    store->answers.reservation(store->answers.context, answer->token, status,
                               (const struct ledger_reservation *)answer->rows);
}

int memory_reservation(void *self, const struct ledger_ask *ask, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer =
        memory_answer_new(store, token, sizeof(struct ledger_reservation), tell_reservation);
    struct ledger_reservation *out = (struct ledger_reservation *)answer->rows;
    struct memory_reservation *row = memory_find(store, ask->id.text);
    if (row == NULL || (!ask->service && !same_user(&row->hold, ask->user, ask->user_length))) {
        out->reason = TG_REASON_RESERVATION_UNKNOWN;
        return 0;
    }
    out->reason = decide(store, row, ask, &out->replayed);
    memcpy(out->sale, row->sale->told.sale.name, sizeof out->sale);
    out->state = row->state;
    out->expires_ms = row->expires_ms;
    out->unit_count = row->hold.unit_count;
    memcpy(out->units, row->hold.units, sizeof out->units);
    memcpy(out->order_id, row->order_id, sizeof out->order_id);
    memcpy(out->payment, row->payment, sizeof out->payment);
    out->epoch = row->sale->told.sale.epoch;
    return 0;
}
