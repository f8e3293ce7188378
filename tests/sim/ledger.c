/* SPDX-License-Identifier: Apache-2.0
 * Mirrors services/ledger/sql/0003_record.sql and 0004_verdicts.sql; ledger_sale.c the rest. */
#include "tests/sim/ledger.h"

#include <string.h>

struct ledger_mutation ledger_mutation;

struct ledger_row *ledger_find(struct ledger *ledger, uint16_t id)
{
    struct ledger_row *row = &ledger->rows[id];
    return row->present && !row->deleted ? row : NULL;
}

bool ledger_live(const struct ledger_row *row)
{
    return row->present && !row->deleted &&
           (row->state == LEDGER_PENDING || row->state == LEDGER_CONFIRMED);
}

static void answer_with(const struct ledger *ledger, const struct ledger_row *row,
                        enum tg_reason reason, struct ledger_answer *out_answer)
{
    *out_answer = (struct ledger_answer){.outcome = LEDGER_KNOWN,
                                         .reason = reason,
                                         .state = row->state,
                                         .unit_count = row->unit_count,
                                         .expires_ms = row->expires_ms,
                                         .epoch = ledger->epoch};
    memcpy(out_answer->units, row->units, sizeof row->units);
}

static void refuse(enum tg_reason reason, struct ledger_answer *out_answer)
{
    *out_answer = (struct ledger_answer){.outcome = LEDGER_REFUSED, .reason = reason};
}

static struct ledger_row *insert(struct ledger *ledger, const struct ledger_hold *hold)
{
    struct ledger_row *row = &ledger->rows[hold->id];
    *row = (struct ledger_row){.present = true,
                               .id = hold->id,
                               .user = hold->user,
                               .key = hold->key,
                               .window = hold->window,
                               .epoch = ledger->epoch};
    if (hold->id >= ledger->row_count) {
        ledger->row_count = (uint16_t)(hold->id + 1);
    }
    return row;
}

/* ---- record ---- */

/* Is there a live holding of this unit, or of this slot of the user? */
static bool taken(const struct ledger *ledger, const struct ledger_hold *hold,
                  const struct ledger_unit *unit, bool slots)
{
    for (uint16_t i = 0; i < ledger->row_count; i++) {
        const struct ledger_row *row = &ledger->rows[i];
        for (uint8_t n = 0; row->present && n < row->unit_count; n++) {
            const struct ledger_unit *other = &row->units[n];
            if (!other->live) {
                continue;
            }
            if (slots ? row->user == hold->user && other->slot == unit->slot
                      : other->item == unit->item && other->unit == unit->unit) {
                return true;
            }
        }
    }
    return false;
}

static enum tg_reason room_for(const struct ledger *ledger, const struct ledger_hold *hold)
{
    enum tg_reason reason = TG_REASON_NONE;
    for (uint8_t n = 0; n < hold->unit_count; n++) {
        const struct ledger_unit *unit = &hold->units[n];
        if (unit->item >= ledger->item_count || unit->unit >= ledger->units[unit->item] ||
            taken(ledger, hold, unit, false)) {
            return TG_REASON_UNIT_CONFLICT;
        }
        if (unit->slot >= ledger->limit || taken(ledger, hold, unit, true)) {
            reason = TG_REASON_LIMIT_CONFLICT;
        }
    }
    return reason;
}

void ledger_record(struct ledger *ledger, int64_t now_ms, const struct ledger_hold *hold,
                   struct ledger_answer *out_answer)
{
    const struct ledger_row *known = ledger_find(ledger, hold->id);
    if (known != NULL) {
        answer_with(ledger, known, TG_REASON_NONE, out_answer);
        return;
    }
    if (hold->epoch != ledger->epoch && !ledger_mutation.no_fence) {
        refuse(TG_REASON_STALE_EPOCH, out_answer);
        return;
    }
    if (ledger->stage == TG_PHASE_CLOSED) {
        refuse(TG_REASON_SALE_CLOSED, out_answer);
        return;
    }
    const enum tg_reason reason = room_for(ledger, hold);
    if (reason != TG_REASON_NONE) {
        refuse(reason, out_answer);
        return;
    }
    struct ledger_row *row = insert(ledger, hold);
    row->state = LEDGER_PENDING;
    row->expires_ms = now_ms + ledger->hold_ms;
    row->unit_count = hold->unit_count;
    memcpy(row->units, hold->units, sizeof row->units);
    for (uint8_t n = 0; n < row->unit_count; n++) {
        row->units[n].live = true;
    }
    answer_with(ledger, row, TG_REASON_NONE, out_answer);
    out_answer->outcome = LEDGER_RECORDED;
}

/* ---- verdicts ---- */

void ledger_read(const struct ledger *ledger, uint16_t id, struct ledger_answer *out_answer)
{
    const struct ledger_row *row = &ledger->rows[id];
    if (!row->present || row->deleted) {
        refuse(TG_REASON_RESERVATION_UNKNOWN, out_answer);
    } else {
        answer_with(ledger, row, TG_REASON_NONE, out_answer);
    }
}

static bool past_grace(const struct ledger *ledger, const struct ledger_row *row, int64_t now_ms)
{
    return now_ms >= row->expires_ms + ledger->grace_ms;
}

static bool payment_bought(const struct ledger *ledger, uint32_t payment)
{
    for (uint16_t i = 0; i < ledger->row_count; i++) {
        if (ledger->rows[i].present && ledger->rows[i].payment == payment) {
            return true;
        }
    }
    return false;
}

static void settle_payment(struct ledger *ledger, struct ledger_row *row, int64_t now_ms,
                           uint32_t payment, struct ledger_answer *out_answer)
{
    static const enum tg_reason why[] = {TG_REASON_NONE, TG_REASON_ALREADY_PAID,
                                         TG_REASON_RESERVATION_EXPIRED,
                                         TG_REASON_RESERVATION_CANCELLED};
    enum tg_reason reason = why[row->state];
    if (reason == TG_REASON_NONE && past_grace(ledger, row, now_ms) &&
        !ledger_mutation.confirm_late) {
        reason = TG_REASON_RESERVATION_EXPIRED;
    }
    if (reason != TG_REASON_NONE) {
        ledger->compensated[payment] = 1;
    } else if (ledger->compensated[payment]) {
        reason = TG_REASON_PAYMENT_USED;
    } else {
        row->state = LEDGER_CONFIRMED;
        row->payment = payment;
        row->obeyed_epoch = 0;
    }
    answer_with(ledger, row, reason, out_answer);
}

void ledger_confirm(struct ledger *ledger, int64_t now_ms, uint16_t id, uint32_t payment,
                    struct ledger_answer *out_answer)
{
    struct ledger_row *row = ledger_find(ledger, id);
    if (row == NULL) {
        refuse(TG_REASON_RESERVATION_UNKNOWN, out_answer);
    } else if (row->payment == payment) {
        answer_with(ledger, row,
                    row->state == LEDGER_CONFIRMED ? TG_REASON_NONE
                                                   : TG_REASON_RESERVATION_CANCELLED,
                    out_answer);
        out_answer->replayed = true;
    } else if (payment_bought(ledger, payment)) {
        answer_with(ledger, row, TG_REASON_PAYMENT_USED, out_answer);
    } else {
        settle_payment(ledger, row, now_ms, payment, out_answer);
    }
}

void ledger_extend(struct ledger *ledger, int64_t now_ms, uint16_t id,
                   struct ledger_answer *out_answer)
{
    struct ledger_row *row = ledger_find(ledger, id);
    if (row == NULL) {
        refuse(TG_REASON_RESERVATION_UNKNOWN, out_answer);
        return;
    }
    static const enum tg_reason why[] = {TG_REASON_NONE, TG_REASON_EXTENSION_REFUSED,
                                         TG_REASON_RESERVATION_EXPIRED,
                                         TG_REASON_RESERVATION_CANCELLED};
    const int64_t until_ms = now_ms + ledger->extend_ms;
    const bool later = until_ms > row->expires_ms;
    enum tg_reason reason = why[row->state];
    if (reason == TG_REASON_NONE &&
        (now_ms >= row->expires_ms || (later && row->extensions >= ledger->extensions_max))) {
        reason = TG_REASON_EXTENSION_REFUSED;
    }
    if (reason == TG_REASON_NONE && later) {
        row->expires_ms = until_ms;
        row->extensions++;
    }
    answer_with(ledger, row, reason, out_answer);
    out_answer->replayed = reason == TG_REASON_NONE && !later;
}

static void end_holdings(struct ledger_row *row)
{
    row->obeyed_epoch = 0;
    for (uint8_t n = 0; n < row->unit_count; n++) {
        row->units[n].live = false;
    }
}

void ledger_cancel(struct ledger *ledger, uint16_t id, struct ledger_answer *out_answer)
{
    struct ledger_row *row = ledger_find(ledger, id);
    if (row == NULL) {
        refuse(TG_REASON_RESERVATION_UNKNOWN, out_answer);
        return;
    }
    if (row->state == LEDGER_EXPIRED) {
        answer_with(ledger, row, TG_REASON_RESERVATION_EXPIRED, out_answer);
        return;
    }
    const bool replayed = row->state == LEDGER_CANCELLED;
    if (!replayed) {
        row->state = LEDGER_CANCELLED;
        end_holdings(row);
    }
    answer_with(ledger, row, TG_REASON_NONE, out_answer);
    out_answer->replayed = replayed;
}

static void bury(struct ledger *ledger, int64_t now_ms, const struct ledger_hold *hold)
{
    if (ledger_mutation.no_tombstone) {
        ledger->ghosts[hold->id] = true;
        return;
    }
    struct ledger_row *row = insert(ledger, hold);
    row->state = LEDGER_EXPIRED;
    row->tombstone = true;
    row->expires_ms = now_ms;
}

enum tg_reason ledger_expire(struct ledger *ledger, int64_t now_ms,
                             const struct ledger_expiry *expiry, uint32_t *out_final)
{
    *out_final = 0;
    if (expiry->with_holds && expiry->epoch != ledger->epoch &&
        !ledger_mutation.no_tombstone_fence) {
        return TG_REASON_STALE_EPOCH;
    }
    for (uint8_t i = 0; i < expiry->count; i++) {
        struct ledger_row *row = ledger_find(ledger, expiry->holds[i].id);
        if (row == NULL && expiry->with_holds) {
            bury(ledger, now_ms, &expiry->holds[i]);
            row = ledger_find(ledger, expiry->holds[i].id);
        }
        if (row != NULL && row->state == LEDGER_PENDING &&
            (past_grace(ledger, row, now_ms) || ledger_mutation.expire_early)) {
            row->state = LEDGER_EXPIRED;
            end_holdings(row);
        }
        *out_final += row != NULL && row->state != LEDGER_PENDING;
    }
    return TG_REASON_NONE;
}

enum tg_reason ledger_obeyed(struct ledger *ledger, const struct ledger_orders *orders)
{
    if (orders->epoch != ledger->epoch) {
        return TG_REASON_STALE_EPOCH;
    }
    for (uint8_t i = 0; i < orders->count; i++) {
        ledger->ghosts[orders->ids[i]] = false;
        struct ledger_row *row = ledger_find(ledger, orders->ids[i]);
        const bool release = orders->kinds[i] == LEDGER_RELEASE;
        if (row == NULL || row->obeyed_epoch >= ledger->epoch) {
            continue;
        }
        if (release ? row->state == LEDGER_EXPIRED || row->state == LEDGER_CANCELLED
                    : orders->kinds[i] == LEDGER_SETTLE && row->state == LEDGER_CONFIRMED) {
            row->obeyed_epoch = ledger->epoch;
            row->restocked = release;
        }
    }
    return TG_REASON_NONE;
}

/* The row of the smallest key above `after` that `wanted` agrees to. */
static const struct ledger_row *
next_row(const struct ledger *ledger, uint64_t after,
         bool (*wanted)(const struct ledger *ledger, const struct ledger_row *row, int64_t now_ms),
         int64_t now_ms)
{
    const struct ledger_row *best = NULL;
    for (uint16_t i = 0; i < ledger->row_count; i++) {
        const struct ledger_row *row = &ledger->rows[i];
        if (row->present && !row->deleted && row->key > after &&
            (best == NULL || row->key < best->key) && wanted(ledger, row, now_ms)) {
            best = row;
        }
    }
    return best;
}

static bool is_lapsed(const struct ledger *ledger, const struct ledger_row *row, int64_t now_ms)
{
    return row->state == LEDGER_PENDING && past_grace(ledger, row, now_ms);
}

static bool is_ordered(const struct ledger *ledger, const struct ledger_row *row, int64_t now_ms)
{
    return row->state != LEDGER_PENDING && row->obeyed_epoch < ledger->epoch;
}

static void add_order(struct ledger_orders *orders, uint16_t id, enum ledger_order kind)
{
    orders->ids[orders->count] = id;
    orders->kinds[orders->count++] = kind;
}

/* Lapsed ids go round from where the last page ended. */
static void add_lapsed(struct ledger *ledger, int64_t now_ms, uint8_t limit,
                       struct ledger_due *out_due)
{
    const uint64_t begin = ledger->lapsed_after;
    uint64_t after = begin;
    bool wrapped = false;
    while (out_due->lapsed_count < limit) {
        const struct ledger_row *row = next_row(ledger, after, is_lapsed, now_ms);
        if (row == NULL || (wrapped && row->key > begin)) {
            if (wrapped || begin == 0) {
                break;
            }
            wrapped = true;
            after = 0;
            continue;
        }
        out_due->lapsed[out_due->lapsed_count++] = row->id;
        after = row->key;
        ledger->lapsed_after = after;
    }
    out_due->lapsed_full = out_due->lapsed_count == limit;
}

void ledger_due(struct ledger *ledger, int64_t now_ms, uint64_t orders_after, uint8_t limit,
                struct ledger_due *out_due)
{
    *out_due = (struct ledger_due){.orders.epoch = ledger->epoch};
    add_lapsed(ledger, now_ms, limit, out_due);
    uint64_t after = orders_after;
    while (out_due->orders.count < limit) {
        const struct ledger_row *row = next_row(ledger, after, is_ordered, now_ms);
        if (row == NULL) {
            break;
        }
        add_order(&out_due->orders, row->id,
                  row->state == LEDGER_CONFIRMED ? LEDGER_SETTLE : LEDGER_RELEASE);
        after = row->key;
    }
    out_due->orders_full = out_due->orders.count == limit;
    for (uint16_t id = 0; ledger_mutation.no_tombstone && id < SIM_IDS; id++) {
        if (ledger->ghosts[id] && out_due->orders.count < SIM_PAGE) {
            add_order(&out_due->orders, id, LEDGER_RELEASE);
        }
    }
}

static bool is_wanted(const struct ledger *ledger, const struct ledger_row *row, int64_t now_ms)
{
    return !ledger_mutation.load_live_only || ledger_live(row);
}

void ledger_snapshot(const struct ledger *ledger, uint64_t epoch, uint64_t after, uint8_t limit,
                     struct ledger_page *out_page)
{
    out_page->reason = epoch == ledger->epoch ? TG_REASON_NONE : TG_REASON_STALE_EPOCH;
    out_page->count = 0;
    while (out_page->reason == TG_REASON_NONE && out_page->count < limit) {
        const struct ledger_row *row = next_row(ledger, after, is_wanted, 0);
        if (row == NULL) {
            break;
        }
        out_page->rows[out_page->count++] = *row;
        after = row->key;
    }
    out_page->end = out_page->count < limit;
}
