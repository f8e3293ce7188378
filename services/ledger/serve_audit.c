/* SPDX-License-Identifier: Apache-2.0
 * For an auditor: the exported log of every change of stock, with its chain of hashes. */
#include "services/ledger/service_parts.h"

void ledger_on_audit(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ledger *ledger = context;
    struct ledger_audit_ask ask;
    uint64_t token;
    const enum tg_reason reason =
        ledger_wire_audit((const Tidegate__V1__AuditRequest *)tg_bus_body(take_incoming),
                          tg_bus_sale(take_incoming), &ask);
    struct ledger_pending *pending = ledger_ask_begin(ledger, take_incoming, reason, &token);
    if (pending == NULL) {
        return;
    }
    pending->limit = ask.limit;
    ledger_ask_sent(ledger, token, ledger->store->audit(ledger->store->self, &ask, token));
}

static void fill_entry(struct ledger *ledger, uint32_t i, const struct ledger_audit *page,
                       Tidegate__V1__GateLogEntry *out_entry)
{
    const struct ledger_log_entry *from = &page->entries[i];
    tidegate__v1__gate_log_entry__init(out_entry);
    out_entry->sequence = from->sequence;
    out_entry->kind = ledger_text(from->kind);
    out_entry->reservation_id = ledger_text(from->id.text);
    out_entry->n_units = from->unit_count;
    out_entry->units = ledger_wire_units(&ledger->audit_units[i], from->units, from->unit_count);
    out_entry->stock_after = from->stock_after;
    out_entry->at_ms = from->gate_ms;
    out_entry->source = ledger_text(from->source);
    out_entry->hash = (ProtobufCBinaryData){.len = LEDGER_CHAIN_BYTES,
                                            .data = (uint8_t *)(uintptr_t)page->hashes[i]};
}

void ledger_audit_read(void *context, uint64_t token, int status, const struct ledger_audit *page)
{
    struct ledger *ledger = context;
    struct ledger_pending *pending =
        ledger_ask_end(ledger, token, status, status == 0 ? page->reason : TG_REASON_TRY_AGAIN);
    Tidegate__V1__AuditReply reply = TIDEGATE__V1__AUDIT_REPLY__INIT;
    Tidegate__V1__GateLogEntry entries[TG_MAX_PAGE];
    Tidegate__V1__GateLogEntry *list[TG_MAX_PAGE];
    if (pending == NULL) {
        return;
    }
    size_t bytes = 64;
    for (uint32_t i = 0; i < page->count; i++) {
        fill_entry(ledger, i, page, &entries[i]);
        if (!ledger_row_fits(&bytes, tidegate__v1__gate_log_entry__get_packed_size(&entries[i]))) {
            break;
        }
        list[i] = &entries[i];
        reply.n_entries = i + 1;
    }
    reply.epoch = page->epoch;
    reply.entries = list;
    reply.end = reply.n_entries == page->count && page->count < pending->limit;
    ledger_pending_reply(&ledger->pendings, pending, &reply.base);
}
