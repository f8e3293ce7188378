/* SPDX-License-Identifier: Apache-2.0
 * Sales and commands between protobuf and the ledger's structs. */
#include "lib/io/sales.h"
#include "services/ledger/wire.h"

#include <stdio.h>
#include <string.h>

static bool kind_of(Tidegate__V1__CommandKind kind, enum ledger_command_kind *out_kind)
{
    switch (kind) {
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_APPLY:
        *out_kind = LEDGER_APPLY;
        return true;
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_OPEN:
        *out_kind = LEDGER_OPEN;
        return true;
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE:
        *out_kind = LEDGER_PAUSE;
        return true;
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_RESUME:
        *out_kind = LEDGER_RESUME;
        return true;
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_REBUILD:
        *out_kind = LEDGER_REBUILD;
        return true;
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_CLOSE:
        *out_kind = LEDGER_CLOSE;
        return true;
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PACE:
        *out_kind = LEDGER_PACE;
        return true;
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_BEACON:
        *out_kind = LEDGER_BEACON;
        return true;
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_EXTEND:
        *out_kind = LEDGER_EXTEND_ALL;
        return true;
    case TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_UNSPECIFIED:
    case _TIDEGATE__V1__COMMAND_KIND_IS_INT_SIZE:
        break;
    }
    return false;
}

/* At most `capacity` - 1 bytes, never half a character; what is not UTF-8 is left out. */
static void take_cause(const char *text, char *out_text, size_t capacity)
{
    size_t length = strlen(text) < capacity ? strlen(text) : capacity - 1;
    while (length > 0 && !tg_utf8_valid((const uint8_t *)text, length)) {
        length--;
    }
    memcpy(out_text, text, length);
    out_text[length] = '\0';
}

static bool id_valid(const char *text)
{
    uint8_t id[16];
    return tg_base32_id_decode(text, strlen(text), id) == 0;
}

static bool take_pauses(const Tidegate__V1__Command *command, struct ledger_command *out)
{
    if (command->n_pause_ids > TG_MAX_LIFTED) {
        return false;
    }
    out->pause_count = (uint32_t)command->n_pause_ids;
    for (uint32_t i = 0; i < out->pause_count; i++) {
        if (!id_valid(command->pause_ids[i])) {
            return false;
        }
        memcpy(out->pauses[i], command->pause_ids[i], sizeof out->pauses[i]);
    }
    return true;
}

static enum tg_reason fault(char out_fault[LEDGER_DETAIL_BYTES], const char *sentence,
                            enum tg_reason reason)
{
    snprintf(out_fault, LEDGER_DETAIL_BYTES, "%s", sentence);
    return reason;
}

enum tg_reason ledger_wire_command(const Tidegate__V1__Command *command,
                                   const Tidegate__V1__SignedCommand *signed_command,
                                   const char *key_id, struct ledger_command *out_command,
                                   char out_fault[LEDGER_DETAIL_BYTES])
{
    memset(out_command, 0, sizeof *out_command);
    if (!kind_of(command->kind, &out_command->kind)) {
        return fault(out_fault, "kind: unknown", TG_REASON_MALFORMED);
    }
    if (!id_valid(command->command_id)) {
        return fault(out_fault, "command_id: 26 characters of Crockford base32 expected",
                     TG_REASON_MALFORMED);
    }
    if (!tg_sale_name_valid(command->sale, strlen(command->sale))) {
        return fault(out_fault, "sale: 1 to 64 characters of A-Z a-z 0-9 _ - expected",
                     TG_REASON_MALFORMED);
    }
    if (command->generation > INT64_MAX || command->control_sequence > INT64_MAX ||
        command->pace_milli > INT64_MAX) {
        return fault(out_fault, "generation, control_sequence, pace_milli: out of range",
                     TG_REASON_MALFORMED);
    }
    if (out_command->kind == LEDGER_EXTEND_ALL &&
        (command->extend_ms < 1 || command->extend_ms > TG_MAX_EXTEND_MS)) {
        return fault(out_fault, "extend_ms: 1 ms to 1 h expected", TG_REASON_MALFORMED);
    }
    if (!take_pauses(command, out_command)) {
        return fault(out_fault, "pause_ids: at most 64 ids of 26 characters expected",
                     TG_REASON_MALFORMED);
    }
    if (out_command->kind == LEDGER_APPLY) {
        if (command->definition == NULL || strcmp(command->definition->sale, command->sale) != 0) {
            return fault(out_fault, "definition: missing, or of another sale",
                         TG_REASON_DEFINITION_INVALID);
        }
        if (tg_definition_check(command->definition, out_fault, LEDGER_DETAIL_BYTES) != 0) {
            return TG_REASON_DEFINITION_INVALID;
        }
        memset(&out_command->definition, 0, sizeof out_command->definition);
        tg_definition_read(command->definition, &out_command->definition);
        snprintf(out_command->order, sizeof out_command->order, "%s", command->definition->order);
    }
    memcpy(out_command->id, command->command_id, sizeof out_command->id);
    memcpy(out_command->sale, command->sale, strlen(command->sale) + 1);
    snprintf(out_command->key, sizeof out_command->key, "%s", key_id);
    take_cause(command->cause, out_command->cause, sizeof out_command->cause);
    out_command->generation = command->generation;
    out_command->control_sequence = command->control_sequence;
    out_command->plan = command->plan;
    out_command->pace_milli = command->pace_milli;
    out_command->extend_ms = command->extend_ms;
    out_command->command = signed_command->command.data;
    out_command->command_length = signed_command->command.len;
    out_command->signature = signed_command->signature.data;
    out_command->signature_length = signed_command->signature.len;
    return TG_REASON_NONE;
}

/* protobuf-c wants pointers it may write through; it never does while packing. */
static struct tg_sale *borrow(const struct ledger_sale *from)
{
    return (struct tg_sale *)(uintptr_t)&from->sale;
}

static void fill_definition(struct ledger_wire_sale *storage, const struct ledger_sale *from)
{
    struct tg_sale *sale = borrow(from);
    Tidegate__V1__SaleDefinition *definition = &storage->definition;
    tidegate__v1__sale_definition__init(definition);
    definition->sale = sale->name;
    definition->generation = sale->generation;
    for (uint32_t i = 0; i < sale->item_count; i++) {
        tidegate__v1__item_definition__init(&storage->items[i]);
        storage->items[i].sku = sale->items[i].sku;
        storage->items[i].units = sale->items[i].units;
        storage->items[i].price_minor = sale->items[i].price_minor;
        storage->items[i].currency = sale->items[i].currency;
        storage->item_list[i] = &storage->items[i];
    }
    definition->n_items = sale->item_count;
    definition->items = storage->item_list;
    definition->opens_at_ms = sale->opens_at.ms;
    definition->order = (char *)(uintptr_t)from->order;
    definition->limit_per_buyer = sale->limit_per_buyer;
    definition->hold_ms = sale->hold_ms;
    definition->grace_ms = sale->grace_ms;
    definition->extend_ms = sale->extend_ms;
    definition->extensions_max = sale->extensions_max;
    definition->pace_start_milli = sale->pace_start_milli;
    definition->pace_min_milli = sale->pace_min_milli;
    definition->pace_max_milli = sale->pace_max_milli;
    definition->proof_every_ms = sale->proof_every_ms;
    definition->proof_lease_ms = sale->proof_lease_ms;
    definition->remaining_bucketed = sale->remaining_bucketed;
    definition->shards = sale->shards;
    definition->challenge = sale->challenge;
    if (sale->order != TG_ORDER_FIFO) {
        definition->commitment.len = sizeof sale->commitment;
        definition->commitment.data = sale->commitment;
    }
    definition->beacon = sale->beacon;
}

static void fill_draw(struct ledger_wire_sale *storage, struct tg_draw *from)
{
    Tidegate__V1__Draw *draw = &storage->draw;
    if (!from->frozen) {
        return;
    }
    tidegate__v1__draw__init(draw);
    draw->frozen = true;
    draw->count = from->count;
    draw->index_at_open = from->index_at_open;
    draw->root = (ProtobufCBinaryData){.len = sizeof from->root, .data = from->root};
    draw->beacon = (ProtobufCBinaryData){.len = from->beacon_length, .data = from->beacon};
    if (from->revealed) {
        draw->secret = (ProtobufCBinaryData){.len = sizeof from->secret, .data = from->secret};
        draw->seed = (ProtobufCBinaryData){.len = sizeof from->seed, .data = from->seed};
    }
    storage->state.draw = draw;
}

static void fill_pauses(struct ledger_wire_sale *storage, struct tg_sale *sale)
{
    for (uint32_t i = 0; i < sale->pause_count; i++) {
        tidegate__v1__pause_entry__init(&storage->pauses[i]);
        storage->pauses[i].pause_id = sale->pauses[i].id;
        storage->pauses[i].cause = sale->pauses[i].cause;
        storage->pause_list[i] = &storage->pauses[i];
    }
    storage->state.n_pauses = sale->pause_count;
    storage->state.pauses = storage->pause_list;
    for (uint32_t i = 0; i < sale->lifted_count; i++) {
        storage->lifted[i] = sale->lifted[i];
    }
    storage->state.n_lifted = sale->lifted_count;
    storage->state.lifted = storage->lifted;
}

void ledger_wire_sale(struct ledger_wire_sale *storage, const struct ledger_sale *from)
{
    struct tg_sale *sale = borrow(from);
    Tidegate__V1__SaleState *state = &storage->state;
    fill_definition(storage, from);
    tidegate__v1__sale_state__init(state);
    state->sale = sale->name;
    state->generation = sale->generation;
    state->phase = tg_phase_told(sale->phase);
    state->epoch = sale->epoch;
    state->armed = sale->armed;
    state->run_id = sale->run_id;
    state->replication_id = sale->replication_id;
    state->control_sequence = sale->control_sequence;
    fill_pauses(storage, sale);
    tg_definition_digest(&storage->definition, storage->digest);
    state->definition_digest =
        (ProtobufCBinaryData){.len = sizeof storage->digest, .data = storage->digest};
    state->ledger_now_ms = from->now_ms;
    state->opens_at_ms = from->open_from_ms;
    state->last_clean_ms = sale->last_clean.ms;
    state->clean_rounds = sale->clean_rounds;
    state->pace_milli = sale->pace_milli;
    state->opened = sale->opened;
    fill_draw(storage, &sale->draw);
}
