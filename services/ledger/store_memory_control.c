/* SPDX-License-Identifier: Apache-2.0
 * The twin's judge of commands: what 0006_control.sql decides. */
#include "services/ledger/store_memory_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum tg_reason unproved(const struct store_memory *store, const struct memory_sale *sale,
                               uint32_t rounds)
{
    if (!sale->told.sale.armed) {
        return TG_REASON_NOT_ARMED;
    }
    if (sale->told.sale.clean_rounds < rounds || !memory_proof_fresh(store, sale)) {
        return TG_REASON_NOT_PROVED;
    }
    return TG_REASON_NONE;
}

static bool names(const struct ledger_command *command, const char *id)
{
    for (uint32_t i = 0; i < command->pause_count; i++) {
        if (strcmp(command->pauses[i], id) == 0) {
            return true;
        }
    }
    return false;
}

static enum tg_reason judge_pause(struct store_memory *store, struct memory_sale *sale,
                                  const struct ledger_command *command)
{
    struct tg_sale *told = &sale->told.sale;
    if (sale->stage == MEMORY_CLOSED) {
        return TG_REASON_SALE_CLOSED;
    }
    for (uint32_t i = 0; i < told->lifted_count; i++) {
        if (strcmp(told->lifted[i], command->id) == 0) {
            return TG_REASON_NONE;
        }
    }
    for (uint32_t i = 0; i < told->pause_count; i++) {
        if (strcmp(told->pauses[i].id, command->id) == 0) {
            return TG_REASON_NONE;
        }
    }
    if (told->pause_count == TG_MAX_PAUSES) {
        return TG_REASON_NOT_ALLOWED_NOW;
    }
    if (!command->plan) {
        memory_pause(store, sale, command->id, command->cause);
    }
    return TG_REASON_NONE;
}

/* Named ids go to the end of the list, the oldest ones fall off its front. */
static void lift(struct tg_sale *told, const struct ledger_command *command)
{
    char all[2 * TG_MAX_LIFTED][TG_BASE32_ID_LENGTH + 1];
    uint32_t count = 0;
    for (uint32_t i = 0; i < told->lifted_count; i++) {
        if (!names(command, told->lifted[i])) {
            memcpy(all[count++], told->lifted[i], sizeof all[0]);
        }
    }
    for (uint32_t i = 0; i < command->pause_count; i++) {
        bool again = false;
        for (uint32_t j = i + 1; j < command->pause_count; j++) {
            again = again || strcmp(command->pauses[i], command->pauses[j]) == 0;
        }
        if (!again) {
            memcpy(all[count++], command->pauses[i], sizeof all[0]);
        }
    }
    const uint32_t skip = count > TG_MAX_LIFTED ? count - TG_MAX_LIFTED : 0;
    told->lifted_count = count - skip;
    memcpy(told->lifted, all[skip], told->lifted_count * sizeof all[0]);
    told->pause_count = 0;
}

static enum tg_reason judge_resume(struct store_memory *store, struct memory_sale *sale,
                                   const struct ledger_command *command)
{
    struct tg_sale *told = &sale->told.sale;
    if (sale->stage == MEMORY_CLOSED) {
        return TG_REASON_SALE_CLOSED;
    }
    for (uint32_t i = 0; i < told->pause_count; i++) {
        if (!names(command, told->pauses[i].id)) {
            return TG_REASON_PAUSES_MISSING;
        }
    }
    const enum tg_reason reason = unproved(store, sale, 2);
    if (reason == TG_REASON_NONE && !command->plan) {
        lift(told, command);
        told->control_sequence++;
        memory_event(store, sale, "resumed", NULL);
    }
    return reason;
}

static enum tg_reason judge_open(struct store_memory *store, struct memory_sale *sale,
                                 const struct ledger_command *command)
{
    if (sale->stage != MEMORY_SCHEDULED || sale->told.sale.pause_count > 0) {
        return TG_REASON_NOT_ALLOWED_NOW;
    }
    const enum tg_reason reason = unproved(store, sale, 1);
    if (reason == TG_REASON_NONE && !command->plan) {
        sale->stage = MEMORY_OPEN;
        sale->opened = true;
        sale->opened_ms = store->now_ms;
        sale->told.sale.control_sequence++;
    }
    return reason;
}

static void disarm(struct tg_sale *told)
{
    told->epoch++;
    told->armed = false;
    told->run_id[0] = '\0';
    told->replication_id[0] = '\0';
    told->clean_rounds = 0;
    told->last_clean.ms = 0;
    told->control_sequence++;
}

static enum tg_reason judge_rebuild(struct store_memory *store, struct memory_sale *sale,
                                    const struct ledger_command *command)
{
    char cause[160];
    if (sale->stage == MEMORY_CLOSED) {
        return TG_REASON_SALE_CLOSED;
    }
    if (!command->plan) {
        snprintf(cause, sizeof cause, "rebuild: %s", command->cause);
        memory_pause(store, sale, command->id, cause);
        disarm(&sale->told.sale);
    }
    return TG_REASON_NONE;
}

static enum tg_reason judge_close(struct memory_sale *sale, const struct ledger_command *command)
{
    if (sale->stage != MEMORY_CLOSED && !command->plan) {
        sale->stage = MEMORY_CLOSED;
        sale->told.sale.control_sequence++;
    }
    return TG_REASON_NONE;
}

static enum tg_reason judge_pace(struct memory_sale *sale, const struct ledger_command *command)
{
    struct tg_sale *told = &sale->told.sale;
    const uint64_t now = told->pace_milli == 0 ? told->pace_start_milli : told->pace_milli;
    const uint64_t wanted = command->pace_milli == 0 ? told->pace_start_milli : command->pace_milli;
    if (sale->stage == MEMORY_CLOSED) {
        return TG_REASON_SALE_CLOSED;
    }
    if (wanted > now && command->control_sequence != told->control_sequence) {
        return TG_REASON_STALE_SEQUENCE;
    }
    if (wanted < told->pace_min_milli || wanted > told->pace_max_milli) {
        return TG_REASON_DEFINITION_INVALID;
    }
    if (!command->plan) {
        told->pace_milli = command->pace_milli;
        told->control_sequence++;
    }
    return TG_REASON_NONE;
}

static enum tg_reason judge_beacon(struct memory_sale *sale, const struct ledger_command *command)
{
    struct tg_draw *draw = &sale->told.sale.draw;
    uint8_t value[TG_BEACON_BYTES];
    const size_t digits = strlen(command->cause), length = digits / 2;
    if (sale->told.sale.beacon[0] == '\0') {
        return TG_REASON_NOT_ALLOWED_NOW;
    }
    if (length < 1 || length > sizeof value ||
        tg_hex_decode(command->cause, digits, value, length) != 0) {
        return TG_REASON_MALFORMED;
    }
    if (!draw->frozen) {
        return TG_REASON_NOT_ALLOWED_NOW;
    }
    if (draw->beacon_length > 0) {
        return draw->beacon_length == length && memcmp(draw->beacon, value, length) == 0
                   ? TG_REASON_NONE
                   : TG_REASON_NOT_ALLOWED_NOW;
    }
    if (!command->plan) {
        memcpy(draw->beacon, value, length);
        draw->beacon_length = (uint8_t)length;
    }
    return TG_REASON_NONE;
}

static enum tg_reason judge_extend(struct store_memory *store, struct memory_sale *sale,
                                   const struct ledger_command *command)
{
    const int64_t open_from_ms = store->now_ms - sale->told.sale.grace_ms;
    if (command->plan) {
        return TG_REASON_NONE;
    }
    for (uint32_t i = 0; i < store->reservation_count; i++) {
        struct memory_reservation *row = &store->reservations[i];
        if (row->sale == sale && row->hold.generation == sale->told.sale.generation &&
            row->state == LEDGER_PENDING && row->expires_ms > open_from_ms) {
            row->expires_ms += command->extend_ms;
        }
    }
    sale->told.sale.control_sequence++;
    return TG_REASON_NONE;
}

static bool same_items(const struct tg_sale *a, const struct tg_sale *b)
{
    bool same = a->item_count == b->item_count;
    for (uint32_t i = 0; same && i < a->item_count; i++) {
        const struct tg_item *one = &a->items[i], *other = &b->items[i];
        same = strcmp(one->sku, other->sku) == 0 && one->units == other->units &&
               one->price_minor == other->price_minor &&
               strcmp(one->currency, other->currency) == 0;
    }
    return same;
}

/* Everything but what may still change before a sale opens. */
static bool same_frozen(const struct memory_sale *sale, const struct ledger_command *command)
{
    const struct tg_sale *a = &sale->told.sale, *b = &command->definition;
    return same_items(a, b) && strcmp(sale->told.order, command->order) == 0 &&
           a->limit_per_buyer == b->limit_per_buyer && a->hold_ms == b->hold_ms &&
           a->grace_ms == b->grace_ms && a->extend_ms == b->extend_ms &&
           a->extensions_max == b->extensions_max && a->proof_every_ms == b->proof_every_ms &&
           a->proof_lease_ms == b->proof_lease_ms &&
           a->remaining_bucketed == b->remaining_bucketed && a->shards == b->shards &&
           a->challenge == b->challenge &&
           memcmp(a->commitment, b->commitment, sizeof a->commitment) == 0 &&
           strcmp(a->beacon, b->beacon) == 0;
}

static bool same_movable(const struct tg_sale *a, const struct tg_sale *b)
{
    return a->opens_at.ms == b->opens_at.ms && a->pace_start_milli == b->pace_start_milli &&
           a->pace_min_milli == b->pace_min_milli && a->pace_max_milli == b->pace_max_milli;
}

static void begin_generation(struct memory_sale *sale, const struct ledger_command *command)
{
    const struct tg_sale before = sale->told.sale;
    free(sale->roster);
    memset(sale, 0, sizeof *sale);
    sale->told.sale = command->definition;
    memcpy(sale->told.order, command->order, sizeof sale->told.order);
    snprintf(sale->told.sale.name, sizeof sale->told.sale.name, "%s", command->sale);
    sale->told.sale.generation = before.generation + 1;
    sale->told.sale.epoch = before.epoch + 1;
    sale->told.sale.control_sequence = before.control_sequence + 1;
    sale->told.sale.lifted_count = before.lifted_count;
    memcpy(sale->told.sale.lifted, before.lifted, sizeof before.lifted);
}

static bool any_pending(const struct store_memory *store, const struct memory_sale *sale)
{
    for (uint32_t i = 0; i < store->reservation_count; i++) {
        if (store->reservations[i].sale == sale && store->reservations[i].state == LEDGER_PENDING) {
            return true;
        }
    }
    return false;
}

static enum tg_reason apply_known(struct store_memory *store, struct memory_sale *sale,
                                  const struct ledger_command *command)
{
    struct tg_sale *told = &sale->told.sale;
    const bool stale = command->control_sequence != told->control_sequence;
    if (sale->stage == MEMORY_CLOSED) {
        if (stale) {
            return TG_REASON_STALE_SEQUENCE;
        }
        if (any_pending(store, sale)) {
            return TG_REASON_NOT_ALLOWED_NOW;
        }
        if (!command->plan) {
            begin_generation(sale, command);
        }
        return TG_REASON_NONE;
    }
    const bool frozen = same_frozen(sale, command);
    if (frozen && same_movable(told, &command->definition)) {
        return TG_REASON_NONE;
    }
    if (sale->stage != MEMORY_SCHEDULED || !frozen) {
        return TG_REASON_DEFINITION_FROZEN;
    }
    if (stale) {
        return TG_REASON_STALE_SEQUENCE;
    }
    if (!command->plan) {
        told->opens_at = command->definition.opens_at;
        told->pace_start_milli = command->definition.pace_start_milli;
        told->pace_min_milli = command->definition.pace_min_milli;
        told->pace_max_milli = command->definition.pace_max_milli;
        told->pace_milli = 0;
        told->control_sequence++;
    }
    return TG_REASON_NONE;
}

static enum tg_reason judge_apply(struct store_memory *store, struct memory_sale *sale,
                                  const struct ledger_command *command)
{
    if (sale != NULL) {
        return apply_known(store, sale, command);
    }
    if (store->sale_count == TG_MAX_SALES) {
        return TG_REASON_NOT_ALLOWED_NOW;
    }
    if (!command->plan) {
        begin_generation(&store->sales[store->sale_count++], command);
    }
    return TG_REASON_NONE;
}

static enum tg_reason judge(struct store_memory *store, const struct ledger_command *command)
{
    struct memory_sale *sale = memory_sale_find(store, command->sale);
    if (command->kind == LEDGER_APPLY) {
        return judge_apply(store, sale, command);
    }
    if (sale == NULL) {
        return TG_REASON_SALE_UNKNOWN;
    }
    if (command->generation != 0 && command->generation != sale->told.sale.generation) {
        return TG_REASON_STALE_SEQUENCE;
    }
    const bool stale = command->control_sequence != sale->told.sale.control_sequence;
    switch (command->kind) {
    case LEDGER_APPLY:
        break;
    case LEDGER_OPEN:
        return stale ? TG_REASON_STALE_SEQUENCE : judge_open(store, sale, command);
    case LEDGER_PAUSE:
        return judge_pause(store, sale, command);
    case LEDGER_RESUME:
        return stale ? TG_REASON_STALE_SEQUENCE : judge_resume(store, sale, command);
    case LEDGER_REBUILD:
        return judge_rebuild(store, sale, command);
    case LEDGER_CLOSE:
        return judge_close(sale, command);
    case LEDGER_PACE:
        return judge_pace(sale, command);
    case LEDGER_BEACON:
        return judge_beacon(sale, command);
    case LEDGER_EXTEND_ALL:
        return stale ? TG_REASON_STALE_SEQUENCE : judge_extend(store, sale, command);
    }
    return TG_REASON_MALFORMED;
}

static const struct memory_command *find_command(const struct store_memory *store, const char *id)
{
    for (uint32_t i = 0; i < store->command_count; i++) {
        if (strcmp(store->commands[i].id, id) == 0) {
            return &store->commands[i];
        }
    }
    return NULL;
}

static void keep_command(struct store_memory *store, const struct ledger_command *command,
                         const struct ledger_judgement *judged)
{
    store->commands = memory_grow(store->commands, store->command_count, &store->command_room,
                                  sizeof *store->commands);
    struct memory_command *kept = &store->commands[store->command_count++];
    memcpy(kept->id, command->id, sizeof kept->id);
    memcpy(kept->sale, command->sale, sizeof kept->sale);
    kept->kind = command->kind;
    kept->judged = *judged;
}

static void tell_judged(struct store_memory *store, const struct memory_answer *answer, int status)
{
    store->answers.judged(store->answers.context, answer->token, status,
                          (const struct ledger_judgement *)answer->rows);
}

int memory_judge(void *self, const struct ledger_command *command, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer =
        memory_answer_new(store, token, sizeof(struct ledger_judgement), tell_judged);
    struct ledger_judgement *judgement = (struct ledger_judgement *)answer->rows;
    const struct memory_command *known = find_command(store, command->id);
    if (known != NULL) {
        *judgement = known->judged;
        if (strcmp(known->sale, command->sale) != 0 || known->kind != command->kind) {
            judgement->reason = TG_REASON_MALFORMED;
        }
        judgement->repeated = true;
        return 0;
    }
    judgement->reason = judge(store, command);
    if (!command->plan && !(command->kind == LEDGER_PAUSE && judgement->reason != TG_REASON_NONE)) {
        keep_command(store, command, judgement);
    }
    return 0;
}
