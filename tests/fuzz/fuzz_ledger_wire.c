/* SPDX-License-Identifier: Apache-2.0
 * What the ledger takes from the bus: whatever is accepted fits the columns it goes into: ids are
 * ids, texts end within their arrays and are UTF-8, numbers fit a bigint, no unit comes twice. */
#include "tests/fuzz/fuzz_message.h"

#include "lib/io/sales.h"
#include "services/ledger/wire.h"

static const char sale[] = "sale";

static void check_text(const char *text, size_t capacity)
{
    size_t length = strnlen(text, capacity);
    HOLDS(length < capacity && tg_utf8_valid((const uint8_t *)text, length));
}

static void check_id(const struct ledger_id *id)
{
    HOLDS(tg_reservation_id_valid(id->text, strnlen(id->text, sizeof(id->text))));
}

static void check_cursor(const struct ledger_id *id)
{
    if (id->text[0] != '\0') {
        check_id(id);
    }
}

static void check_units(const struct tg_unit_ref *units, uint32_t count)
{
    HOLDS(count <= TG_MAX_UNITS_PER_HOLD);
    for (uint32_t i = 0; i < count; i++) {
        HOLDS(units[i].item <= INT32_MAX && units[i].unit <= INT32_MAX);
        for (uint32_t j = 0; j < i; j++) {
            HOLDS(units[i].item != units[j].item || units[i].unit != units[j].unit);
        }
    }
}

static void check_record(const ProtobufCMessage *message)
{
    struct ledger_hold hold;
    if (ledger_wire_record((const Tidegate__V1__RecordRequest *)message, sale, &hold) !=
        TG_REASON_NONE) {
        return;
    }
    check_id(&hold.id);
    check_units(hold.units, hold.unit_count);
    HOLDS(hold.unit_count >= 1 && tg_user_valid(hold.user, hold.user_length));
    HOLDS(hold.generation <= INT64_MAX && hold.epoch <= INT64_MAX && hold.window <= INT64_MAX);
    for (uint32_t i = 0; i < hold.unit_count; i++) {
        HOLDS(hold.slots[i] <= INT32_MAX);
    }
}

static void check_expire(const ProtobufCMessage *message)
{
    static struct ledger_expire ask;
    uint32_t dropped = 0;
    const Tidegate__V1__ExpireRequest *request = (const Tidegate__V1__ExpireRequest *)message;
    if (ledger_wire_expire(request, sale, &ask, &dropped) != TG_REASON_NONE) {
        return;
    }
    HOLDS(ask.id_count <= TG_MAX_PAGE && ask.tombstone_count <= TG_MAX_PAGE);
    HOLDS(ask.id_count + ask.tombstone_count + dropped ==
          request->n_reservation_ids + request->n_tombstones);
    for (uint32_t i = 0; i < ask.id_count; i++) {
        check_id(&ask.ids[i]);
    }
    for (uint32_t i = 0; i < ask.tombstone_count; i++) {
        check_id(&ask.tombstones[i].id);
        HOLDS(tg_user_valid(ask.tombstones[i].user, ask.tombstones[i].user_length));
        HOLDS(ask.tombstones[i].window <= INT64_MAX);
    }
}

static void check_obeyed(const ProtobufCMessage *message)
{
    static struct ledger_obeyed ask;
    uint32_t dropped = 0;
    const Tidegate__V1__ObeyedRequest *request = (const Tidegate__V1__ObeyedRequest *)message;
    if (ledger_wire_obeyed(request, sale, &ask, &dropped) == TG_REASON_NONE) {
        HOLDS(ask.count + dropped == request->n_results && ask.count <= TG_MAX_PAGE);
        for (uint32_t i = 0; i < ask.count; i++) {
            check_id(&ask.ids[i]);
            HOLDS(ask.kinds[i] == LEDGER_SETTLE || ask.kinds[i] == LEDGER_RELEASE);
        }
    }
}

static void check_due(const ProtobufCMessage *message)
{
    struct ledger_due_ask ask = {.limit = 0};
    if (ledger_wire_due((const Tidegate__V1__LedgerDueRequest *)message, sale, &ask) ==
        TG_REASON_NONE) {
        check_cursor(&ask.orders_after);
        HOLDS(ask.limit >= 1 && ask.limit <= TG_MAX_PAGE);
    }
}

static void check_snapshot(const ProtobufCMessage *message)
{
    struct ledger_snapshot_ask ask;
    if (ledger_wire_snapshot((const Tidegate__V1__SnapshotRequest *)message, sale, &ask) ==
        TG_REASON_NONE) {
        check_cursor(&ask.after);
        HOLDS(ask.limit >= 1 && ask.limit <= TG_MAX_SNAPSHOT_PAGE && ask.epoch <= INT64_MAX);
    }
}

static void check_audit(const ProtobufCMessage *message)
{
    struct ledger_audit_ask ask;
    if (ledger_wire_audit((const Tidegate__V1__AuditRequest *)message, sale, &ask) ==
        TG_REASON_NONE) {
        HOLDS(ask.place.epoch <= INT64_MAX && ask.place.shard <= INT32_MAX);
        HOLDS(ask.after <= INT64_MAX && ask.last <= INT32_MAX);
        HOLDS(ask.limit >= 1 && ask.limit <= TG_MAX_PAGE);
    }
}

static void check_armed(const ProtobufCMessage *message)
{
    struct ledger_armed ask;
    if (ledger_wire_armed((const Tidegate__V1__ArmedRequest *)message, sale, &ask) ==
        TG_REASON_NONE) {
        check_text(ask.run_id, sizeof(ask.run_id));
        check_text(ask.replication_id, sizeof(ask.replication_id));
        HOLDS(ask.run_id[0] != '\0' && ask.epoch <= INT64_MAX);
    }
}

static void check_append(const ProtobufCMessage *message)
{
    static struct ledger_log_page page;
    struct ledger_check check;
    const Tidegate__V1__AppendRequest *request = (const Tidegate__V1__AppendRequest *)message;
    if (ledger_wire_check(request, sale, &check) == TG_REASON_NONE) {
        check_text(check.outcome, sizeof(check.outcome));
        check_text(check.detail, sizeof(check.detail));
        check_text(check.instance, sizeof(check.instance));
        HOLDS(check.stock >= 0 && check.pending >= 0 && check.confirmed >= 0 && check.initial >= 0);
    }
    page.tail.sequence = 5;
    if (ledger_wire_log(request, sale, &page) != TG_REASON_NONE) {
        return;
    }
    HOLDS(page.count <= TG_MAX_PAGE && page.count <= request->n_entries);
    for (uint32_t i = 0; i < page.count; i++) {
        HOLDS(page.entries[i].sequence > 5 && page.entries[i].sequence <= INT64_MAX);
        check_text(page.entries[i].kind, sizeof(page.entries[i].kind));
        check_text(page.entries[i].source, sizeof(page.entries[i].source));
        check_cursor(&page.entries[i].id);
        check_units(page.entries[i].units, page.entries[i].unit_count);
    }
}

static void check_ask(enum tg_reason reason, const struct ledger_ask *ask)
{
    if (reason == TG_REASON_NONE) {
        check_id(&ask->id);
        HOLDS(ask->user_length == 0 || tg_user_valid(ask->user, ask->user_length));
        check_text(ask->payment, sizeof(ask->payment));
        check_text(ask->currency, sizeof(ask->currency));
        HOLDS(ask->amount_minor >= 0 && !ask->service);
    }
}

static void check_read(const ProtobufCMessage *message)
{
    struct ledger_ask ask;
    enum tg_reason reason = ledger_wire_read((const Tidegate__V1__ReadRequest *)message, &ask);
    check_ask(reason, &ask);
}

static void check_confirm(const ProtobufCMessage *message)
{
    struct ledger_ask ask;
    enum tg_reason reason =
        ledger_wire_confirm((const Tidegate__V1__ConfirmRequest *)message, &ask);
    check_ask(reason, &ask);
    HOLDS(reason != TG_REASON_NONE || (ask.payment[0] != '\0' && strlen(ask.currency) == 3));
}

static void check_extend(const ProtobufCMessage *message)
{
    struct ledger_ask ask;
    enum tg_reason reason = ledger_wire_extend((const Tidegate__V1__ExtendRequest *)message, &ask);
    check_ask(reason, &ask);
}

static void check_cancel(const ProtobufCMessage *message)
{
    struct ledger_ask ask;
    enum tg_reason reason = ledger_wire_cancel((const Tidegate__V1__CancelRequest *)message, &ask);
    check_ask(reason, &ask);
}

static void check_definition(const struct ledger_command *command)
{
    const struct tg_sale *definition = &command->definition;
    HOLDS(definition->item_count >= 1 && definition->item_count <= TG_MAX_ITEMS_PER_SALE);
    for (uint32_t i = 0; i < definition->item_count; i++) {
        const struct tg_item *item = &definition->items[i];
        HOLDS(tg_sale_name_valid(item->sku, strnlen(item->sku, sizeof(item->sku))));
        HOLDS(item->units >= 1 && item->units <= TG_MAX_UNITS_PER_ITEM);
        HOLDS(strcmp(item->currency, definition->items[0].currency) == 0);
    }
    HOLDS(definition->limit_per_buyer >= 1 && definition->limit_per_buyer <= TG_MAX_BUYER_LIMIT);
    HOLDS(definition->proof_lease_ms >= 2 * definition->proof_every_ms);
    HOLDS(definition->pace_min_milli <= definition->pace_start_milli);
    HOLDS(definition->pace_start_milli <= definition->pace_max_milli);
}

static void check_command(const ProtobufCMessage *message)
{
    static struct ledger_command command;
    char fault[LEDGER_DETAIL_BYTES];
    uint8_t id[16];
    Tidegate__V1__SignedCommand carrier = TIDEGATE__V1__SIGNED_COMMAND__INIT;
    memset(fault, 0, sizeof(fault));
    if (ledger_wire_command((const Tidegate__V1__Command *)message, &carrier, "operator", &command,
                            fault) != TG_REASON_NONE) {
        HOLDS(fault[0] != '\0' && strnlen(fault, sizeof(fault)) < sizeof(fault));
        return;
    }
    HOLDS(tg_base32_id_decode(command.id, strlen(command.id), id) == 0);
    HOLDS(tg_sale_name_valid(command.sale, strlen(command.sale)));
    check_text(command.cause, sizeof(command.cause));
    HOLDS(command.generation <= INT64_MAX && command.control_sequence <= INT64_MAX);
    HOLDS(command.pause_count <= TG_MAX_LIFTED && command.pace_milli <= INT64_MAX);
    for (uint32_t i = 0; i < command.pause_count; i++) {
        HOLDS(tg_base32_id_decode(command.pauses[i], strlen(command.pauses[i]), id) == 0);
    }
    if (command.kind == LEDGER_APPLY) {
        check_definition(&command);
    }
}

static const struct fuzz_message kinds[] = {
    FUZZ_MESSAGE(record_request, check_record),     FUZZ_MESSAGE(expire_request, check_expire),
    FUZZ_MESSAGE(obeyed_request, check_obeyed),     FUZZ_MESSAGE(ledger_due_request, check_due),
    FUZZ_MESSAGE(snapshot_request, check_snapshot), FUZZ_MESSAGE(armed_request, check_armed),
    FUZZ_MESSAGE(append_request, check_append),     FUZZ_MESSAGE(read_request, check_read),
    FUZZ_MESSAGE(confirm_request, check_confirm),   FUZZ_MESSAGE(extend_request, check_extend),
    FUZZ_MESSAGE(cancel_request, check_cancel),     FUZZ_MESSAGE(command, check_command),
    FUZZ_MESSAGE(audit_request, check_audit),
};

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    return fuzz_message_run(kinds, COUNT_OF(kinds), bytes, size);
}
