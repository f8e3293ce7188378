/* SPDX-License-Identifier: Apache-2.0
 * For the operator: what happened since the last resume, and which reservations are affected. */
#include "services/ledger/service_parts.h"

#include <string.h>

void ledger_on_incident(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ledger *ledger = context;
    struct ledger_incident_ask ask;
    uint64_t token;
    const enum tg_reason reason =
        ledger_wire_incident((const Tidegate__V1__IncidentRequest *)tg_bus_body(take_incoming),
                             tg_bus_sale(take_incoming), &ask);
    struct ledger_pending *pending = ledger_ask_begin(ledger, take_incoming, reason, &token);
    if (pending == NULL) {
        return;
    }
    pending->limit = ask.limit;
    ledger_ask_sent(ledger, token, ledger->store->incident(ledger->store->self, &ask, token));
}

static void fill_row(struct ledger *ledger, uint32_t i, const struct ledger_incident_row *from,
                     Tidegate__V1__IncidentRow *out_row)
{
    tidegate__v1__incident_row__init(out_row);
    out_row->key = ledger_text(from->key);
    out_row->at_ms = from->at_ms;
    out_row->kind = ledger_text(from->kind);
    out_row->detail = ledger_text(from->detail);
    out_row->reservation_id = ledger_text(from->id.text);
    out_row->state = ledger_text(from->state);
    out_row->expires_at_ms = from->expires_ms;
    out_row->user =
        (ProtobufCBinaryData){.len = from->user_length, .data = (uint8_t *)(uintptr_t)from->user};
    out_row->n_units = from->unit_count;
    out_row->units = ledger_wire_units(&ledger->wire_units[i], from->units, from->unit_count);
}

/* Rows that do not fit one message are left for the next page. */
void ledger_incident_read(void *context, uint64_t token, int status,
                          const struct ledger_incident *page)
{
    struct ledger *ledger = context;
    struct ledger_pending *pending =
        ledger_ask_end(ledger, token, status, status == 0 ? page->reason : TG_REASON_TRY_AGAIN);
    Tidegate__V1__IncidentReply reply = TIDEGATE__V1__INCIDENT_REPLY__INIT;
    Tidegate__V1__IncidentRow rows[TG_MAX_SNAPSHOT_PAGE];
    Tidegate__V1__IncidentRow *list[TG_MAX_SNAPSHOT_PAGE];
    if (pending == NULL) {
        return;
    }
    reply.since_ms = page->since_ms;
    reply.last_check = ledger_text(page->last_check);
    reply.units = page->units;
    reply.pending_units = page->pending_units;
    reply.confirmed_units = page->confirmed_units;
    reply.live_reservations = page->live;
    reply.ended_reservations = page->ended;
    size_t bytes = 64 + strlen(page->last_check) + 80;
    for (uint32_t i = 0; i < page->count; i++) {
        fill_row(ledger, i, &page->rows[i], &rows[i]);
        if (!ledger_row_fits(&bytes, tidegate__v1__incident_row__get_packed_size(&rows[i]))) {
            break;
        }
        list[i] = &rows[i];
        reply.n_rows = i + 1;
    }
    reply.rows = list;
    reply.end = reply.n_rows == page->count && page->count < pending->limit;
    ledger_pending_reply(&ledger->pendings, pending, &reply.base);
}
