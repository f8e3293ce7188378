/* SPDX-License-Identifier: Apache-2.0
 * For the gate: pages to load it from, its arming. For its checker: results of rounds, the exported
 * log. */
#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "services/ledger/service_parts.h"

#include <string.h>

enum { LOG_ATTEMPTS_MAX = 3 };

void ledger_on_snapshot(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ledger *ledger = context;
    struct ledger_snapshot_ask ask;
    uint64_t token;
    const enum tg_reason reason =
        ledger_wire_snapshot((const Tidegate__V1__SnapshotRequest *)tg_bus_body(take_incoming),
                             tg_bus_sale(take_incoming), &ask);
    struct ledger_pending *pending = ledger_ask_begin(ledger, take_incoming, reason, &token);
    if (pending == NULL) {
        return;
    }
    pending->limit = ask.limit;
    int error = TG_FAILPOINT(LEDGER_SNAPSHOT);
    if (error == 0) {
        error = ledger->store->snapshot(ledger->store->self, &ask, token);
    }
    ledger_ask_sent(ledger, token, error);
}

static void fill_snapshot_row(struct ledger *ledger, uint32_t i,
                              const struct ledger_snapshot_row *from,
                              Tidegate__V1__SnapshotRow *out_row)
{
    tidegate__v1__snapshot_row__init(out_row);
    out_row->reservation_id = ledger_text(from->id.text);
    out_row->state = (Tidegate__V1__ReservationState)from->state;
    out_row->user =
        (ProtobufCBinaryData){.len = from->user_length, .data = (uint8_t *)(uintptr_t)from->user};
    out_row->place =
        (ProtobufCBinaryData){.len = sizeof from->place, .data = (uint8_t *)(uintptr_t)from->place};
    out_row->window = from->window;
    out_row->digest = (ProtobufCBinaryData){.len = sizeof from->digest,
                                            .data = (uint8_t *)(uintptr_t)from->digest};
    out_row->expires_at_ms = from->expires_ms;
    out_row->n_units = from->unit_count;
    out_row->units = ledger_wire_units(&ledger->wire_units[i], from->units, from->unit_count);
    out_row->n_user_slots = from->unit_count;
    out_row->user_slots = (uint32_t *)(uintptr_t)from->slots;
}

/* Rows that do not fit one message are left for the next page: `end` is told only when the store
 * had no more. */
void ledger_snapshot_read(void *context, uint64_t token, int status,
                          const struct ledger_snapshot *page)
{
    struct ledger *ledger = context;
    struct ledger_pending *pending =
        ledger_ask_end(ledger, token, status, status == 0 ? page->reason : TG_REASON_TRY_AGAIN);
    Tidegate__V1__SnapshotReply reply = TIDEGATE__V1__SNAPSHOT_REPLY__INIT;
    Tidegate__V1__SnapshotRow rows[TG_MAX_SNAPSHOT_PAGE];
    Tidegate__V1__SnapshotRow *list[TG_MAX_SNAPSHOT_PAGE];
    if (pending == NULL) {
        return;
    }
    size_t bytes = 64;
    for (uint32_t i = 0; i < page->count; i++) {
        fill_snapshot_row(ledger, i, &page->rows[i], &rows[i]);
        if (!ledger_row_fits(&bytes, tidegate__v1__snapshot_row__get_packed_size(&rows[i]))) {
            break;
        }
        list[i] = &rows[i];
        reply.n_rows = i + 1;
    }
    reply.epoch = page->epoch;
    reply.rows = list;
    reply.end = reply.n_rows == page->count && page->count < pending->limit;
    ledger_pending_reply(&ledger->pendings, pending, &reply.base);
}

void ledger_on_armed(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ledger *ledger = context;
    struct ledger_armed ask;
    uint64_t token;
    const enum tg_reason reason =
        ledger_wire_armed((const Tidegate__V1__ArmedRequest *)tg_bus_body(take_incoming),
                          tg_bus_sale(take_incoming), &ask);
    if (ledger_ask_begin(ledger, take_incoming, reason, &token) == NULL) {
        return;
    }
    ledger_ask_sent(ledger, token, ledger->store->armed(ledger->store->self, &ask, token));
}

void ledger_armed_known(void *context, uint64_t token, int status, enum tg_reason reason)
{
    struct ledger *ledger = context;
    if (status == 0 && TG_FAILPOINT(LEDGER_ARMED) != 0) {
        status = TG_ERR_TIMEOUT;
    }
    struct ledger_pending *pending = ledger_ask_end(ledger, token, status, TG_REASON_NONE);
    if (pending == NULL) {
        return;
    }
    tg_log(TG_LOG_INFO, "ledger.gate_armed", TG_TEXT_FIELD("sale", tg_bus_sale(pending->incoming)),
           TG_TEXT_FIELD("reason", tg_reason_code(reason)));
    ledger_tell_states(ledger);
    ledger_pending_reply_reason(&ledger->pendings, pending, reason);
}

static void reply_append(struct ledger *ledger, struct ledger_pending *pending,
                         enum tg_reason reason, uint64_t stored)
{
    Tidegate__V1__AppendReply reply = TIDEGATE__V1__APPEND_REPLY__INIT;
    reply.reason = ledger_text(tg_reason_code(reason));
    reply.stored_sequence = stored;
    ledger_pending_reply(&ledger->pendings, pending, &reply.base);
}

/* A page of the log begins with where the stored one ends: its last hash starts the chain. */
static int ask_tail(struct ledger *ledger, const Tidegate__V1__AppendRequest *request,
                    const char *sale, uint64_t token)
{
    struct ledger_log_place place = {.epoch = request->epoch, .shard = request->shard};
    memcpy(place.sale, sale, strlen(sale) + 1);
    return ledger->store->log_tail(ledger->store->self, &place, token);
}

void ledger_on_append(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ledger *ledger = context;
    const Tidegate__V1__AppendRequest *request =
        (const Tidegate__V1__AppendRequest *)tg_bus_body(take_incoming);
    const char *sale = tg_bus_sale(take_incoming);
    struct ledger_check check;
    uint64_t token;
    ledger->log_page.tail = (struct ledger_log_tail){0};
    enum tg_reason reason = request->check != NULL
                                ? ledger_wire_check(request, sale, &check)
                                : ledger_wire_log(request, sale, &ledger->log_page);
    if (ledger_ask_begin(ledger, take_incoming, reason, &token) == NULL) {
        return;
    }
    ledger_ask_sent(ledger, token,
                    request->check != NULL
                        ? ledger->store->check(ledger->store->self, &check, token)
                        : ask_tail(ledger, request, sale, token));
}

void ledger_checked(void *context, uint64_t token, int status, enum tg_reason reason)
{
    struct ledger *ledger = context;
    struct ledger_pending *pending = ledger_ask_end(ledger, token, status, TG_REASON_NONE);
    if (pending != NULL) {
        ledger_pending_reply_reason(&ledger->pendings, pending, reason);
    }
}

void ledger_log_tail_known(void *context, uint64_t token, int status,
                           const struct ledger_log_tail *tail)
{
    struct ledger *ledger = context;
    struct ledger_pending *pending = ledger_ask_end(ledger, token, status, TG_REASON_NONE);
    if (pending == NULL) {
        return;
    }
    struct ledger_log_page *page = &ledger->log_page;
    page->tail = *tail;
    const enum tg_reason reason =
        ledger_wire_log((const Tidegate__V1__AppendRequest *)tg_bus_body(pending->incoming),
                        tg_bus_sale(pending->incoming), page);
    if (reason != TG_REASON_NONE || page->count == 0) {
        reply_append(ledger, pending, reason,
                     tail->sequence); /* nothing new in it: stored already */
        return;
    }
    uint8_t hash[LEDGER_CHAIN_BYTES];
    memcpy(hash, tail->hash, sizeof hash);
    for (uint32_t i = 0; i < page->count; i++) {
        ledger_chain(hash, &page->place, &page->entries[i]);
        memcpy(page->hashes[i], hash, sizeof hash);
    }
    ledger_ask_sent(ledger, token, ledger->store->log_append(ledger->store->self, page, token));
}

/* Another checker was quicker: look at the new tail and try what is left. A true gap stays one. */
void ledger_log_stored(void *context, uint64_t token, int status, enum tg_reason reason,
                       uint64_t stored_sequence)
{
    struct ledger *ledger = context;
    struct ledger_pending *pending = ledger_ask_end(ledger, token, status, TG_REASON_NONE);
    if (pending == NULL) {
        return;
    }
    if (reason == TG_REASON_GAP && ++pending->attempts < LOG_ATTEMPTS_MAX &&
        ask_tail(ledger, (const Tidegate__V1__AppendRequest *)tg_bus_body(pending->incoming),
                 tg_bus_sale(pending->incoming), token) == 0) {
        return;
    }
    reply_append(ledger, pending, reason, stored_sequence);
}
