/* SPDX-License-Identifier: Apache-2.0
 * The gate's log on its way into the ledger: read a page of the stream, append it, have the gate
 * trim what is stored. Any number of checkers may do this at once: the ledger takes only what
 * continues its log, and tells where that ends. */
#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/io/now.h"
#include "services/invariant/checker.h"
#include "services/invariant/store_gate.h"
#include "tidegate/v1/reserve.pb-c.h"

enum { UNIT_ROOM = TG_MAX_PAGE * 8, BODY_RESERVE = 512, RETRY_MS = 1000 };

/* One page on its way; used within one call only. */
struct page {
    Tidegate__V1__GateLogEntry rows[TG_MAX_PAGE];
    Tidegate__V1__GateLogEntry *list[TG_MAX_PAGE];
    Tidegate__V1__UnitRef units[UNIT_ROOM];
    Tidegate__V1__UnitRef *unit_list[UNIT_ROOM];
    size_t count, unit_count, bytes;
};

static uint64_t token_of(size_t index, uint32_t shard)
{
    return (uint64_t)index << 32 | shard;
}

static struct invariant_export *export_of(const struct invariant *invariant, uint64_t token)
{
    return &invariant->works[token >> 32]->exports[(uint32_t)token];
}

static void rest(struct invariant_export *export, int64_t wait_ms)
{
    export->step = INVARIANT_EXPORT_REST;
    export->next.ms = tg_now_mono().ms + wait_ms;
}

/* Adds an entry; false when the page has no room left for it. */
static bool add(struct page *page, const struct invariant_wire_log *log)
{
    if (page->count == TG_MAX_PAGE || page->unit_count + log->unit_count > UNIT_ROOM) {
        return false;
    }
    Tidegate__V1__GateLogEntry *row = &page->rows[page->count];
    tidegate__v1__gate_log_entry__init(row);
    row->sequence = log->entry.sequence;
    row->kind = (char *)log->kind;
    row->reservation_id = (char *)log->reservation;
    row->source = (char *)log->source;
    row->stock_after = log->entry.stock_after;
    row->at_ms = log->at_ms;
    row->units = &page->unit_list[page->unit_count];
    row->n_units = log->unit_count;
    for (uint32_t i = 0; i < log->unit_count; i++) {
        Tidegate__V1__UnitRef *unit = &page->units[page->unit_count + i];
        tidegate__v1__unit_ref__init(unit);
        unit->item = log->units[i].item;
        unit->unit = log->units[i].unit;
        page->unit_list[page->unit_count + i] = unit;
    }
    const size_t bytes = protobuf_c_message_get_packed_size(&row->base) + 4;
    if (page->bytes + bytes > TG_MAX_BUS_BODY_BYTES - BODY_RESERVE) {
        return false;
    }
    page->list[page->count++] = row;
    page->unit_count += log->unit_count;
    page->bytes += bytes;
    return true;
}

static void on_trimmed(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    struct invariant_export *export = export_of(context, token);
    /* Not trimmed now is trimmed later: what is stored stays stored. */
    rest(export, status == 0 && export->more ? 0 : INVARIANT_EXPORT_EVERY_MS);
}

static void trim(struct invariant *invariant, uint64_t token)
{
    struct invariant_export *export = export_of(invariant, token);
    struct tg_sale *view = tg_sales_at(invariant->sales, token >> 32);
    Tidegate__V1__TrimRequest request = TIDEGATE__V1__TRIM_REQUEST__INIT;
    request.sale = view->name;
    request.epoch = export->epoch;
    request.shard = (uint32_t)token;
    request.stored_sequence = export->stored;
    export->step = INVARIANT_EXPORT_TRIM;
    if (tg_bus_call(tg_app_bus(invariant->app), TG_MESSAGE_RESERVE_TRIM, view->name, &request.base,
                    NULL, TG_MAX_CALL_MS, on_trimmed, invariant, token) != 0) {
        rest(export, RETRY_MS);
    }
}

static void on_stored(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    struct invariant *invariant = context;
    struct invariant_export *export = export_of(invariant, token);
    const Tidegate__V1__AppendReply *answer = (const Tidegate__V1__AppendReply *)reply;
    if (status != 0) {
        rest(export, RETRY_MS);
        return;
    }
    if (answer->stored_sequence > export->stored) {
        export->stored = answer->stored_sequence;
        export->stuck_told = false;
        trim(invariant, token);
        return;
    }
    if (!export->stuck_told) {
        export->stuck_told = true;
        tg_log(TG_LOG_WARN, "export.not_taken",
               TG_TEXT_FIELD("sale", tg_sales_at(invariant->sales, token >> 32)->name),
               TG_TEXT_FIELD("reason", answer->reason),
               TG_NUMBER_FIELD("stored", answer->stored_sequence));
    }
    export->stored = answer->stored_sequence;
    rest(export, RETRY_MS);
}

static void store(struct invariant *invariant, uint64_t token, struct page *page)
{
    struct invariant_export *export = export_of(invariant, token);
    struct tg_sale *view = tg_sales_at(invariant->sales, token >> 32);
    Tidegate__V1__AppendRequest request = TIDEGATE__V1__APPEND_REQUEST__INIT;
    request.sale = view->name;
    request.epoch = export->epoch;
    request.shard = (uint32_t)token;
    request.instance = (char *)tg_app_instance(invariant->app);
    request.entries = page->list;
    request.n_entries = page->count;
    export->step = INVARIANT_EXPORT_STORE;
    if (TG_FAILPOINT(INVARIANT_EXPORT) != 0 ||
        tg_bus_call(tg_app_bus(invariant->app), TG_MESSAGE_LEDGER_APPEND, view->name, &request.base,
                    NULL, TG_MAX_CALL_MS, on_stored, invariant, token) != 0) {
        rest(export, RETRY_MS);
    }
}

static void on_read(void *context, uint64_t token, int status, const redisReply *reply)
{
    struct invariant *invariant = context;
    struct invariant_export *export = export_of(invariant, token);
    static struct page page;
    page.count = 0;
    page.unit_count = 0;
    page.bytes = 0;
    if (invariant_wire_reply(status, reply) != INVARIANT_REPLY_FINE ||
        reply->type != REDIS_REPLY_ARRAY) {
        rest(export, RETRY_MS);
        return;
    }
    size_t i = 0;
    struct invariant_wire_log log;
    while (i < reply->elements && invariant_wire_log(reply->element[i], &log) == 0 &&
           log.entry.readable && add(&page, &log)) {
        i++;
    }
    if (page.count == 0) {
        rest(export, INVARIANT_EXPORT_EVERY_MS);
        return;
    }
    export->more = i < reply->elements || reply->elements == TG_MAX_PAGE;
    store(invariant, token, &page);
}

void invariant_export_turn(struct invariant *invariant, size_t index, struct tg_mono now)
{
    const struct tg_sale *view = tg_sales_at(invariant->sales, index);
    for (uint32_t shard = 0; view->armed && shard < view->shards && shard < INVARIANT_SHARDS_MAX;
         shard++) {
        struct invariant_export *export = &invariant->works[index]->exports[shard];
        if (export->step != INVARIANT_EXPORT_REST || now.ms < export->next.ms) {
            continue;
        }
        if (export->epoch != view->epoch) {
            *export = (struct invariant_export){.epoch = view->epoch};
        }
        const struct invariant_gate gate = {
            .kv = invariant->kv, .sale = view->name, .shard = shard, .epoch = export->epoch};
        const struct invariant_answer answer = {
            .on_reply = on_read, .context = invariant, .token = token_of(index, shard)};
        export->step = INVARIANT_EXPORT_READ;
        if (invariant_gate_log(&gate, export->stored, TG_MAX_PAGE, &answer) != 0) {
            rest(export, RETRY_MS);
        }
    }
}
