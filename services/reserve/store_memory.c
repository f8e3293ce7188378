/* SPDX-License-Identifier: Apache-2.0
 * Written from the scripts' headers, not from their lines: where the two differ, one of them is
 * wrong. */
#include "services/reserve/store_memory.h"

#include "lib/pure/number.h"

#include <assert.h>
#include <string.h>

/* ---- the call's words and the answer's ---- */

static size_t argument_count(const struct reserve_call *call)
{
    return (size_t)(call->count - call->key_count);
}

/* The argument of this number, from 1 as in the scripts' headers. */
static struct reserve_word argument(const struct reserve_call *call, size_t number)
{
    assert(number >= 1 && number <= argument_count(call));
    size_t at = (size_t)call->key_count + number - 1;
    return (struct reserve_word){call->words[at], call->lengths[at]};
}

static bool same(struct reserve_word word, const char *text)
{
    return word.length == strlen(text) && memcmp(word.text, text, word.length) == 0;
}

static int64_t number(struct reserve_word word)
{
    int64_t value = 0;
    int error = tg_integer_parse(word.text, word.length, INT64_MIN, INT64_MAX, &value);
    assert(error == 0); /* a call is made by our own script.c */
    return value;
}

static void copy(struct reserve_word word, char *out_text, size_t capacity)
{
    assert(word.length < capacity);
    memcpy(out_text, word.text, word.length);
    out_text[word.length] = '\0';
}

static void say_bytes(struct reserve_memory *memory, const char *bytes, size_t length)
{
    assert(memory->out_used + length <= sizeof memory->out);
    char *at = memory->out + memory->out_used;
    memcpy(at, bytes, length);
    memory->words[memory->word_count++] = (struct reserve_word){at, length};
    memory->out_used += length;
}

static void say(struct reserve_memory *memory, const char *text)
{
    say_bytes(memory, text, strlen(text));
}

static void say_number(struct reserve_memory *memory, int64_t value)
{
    char text[21];
    say_bytes(memory, text, tg_unsigned_format((uint64_t)value, text));
}

static void say_record(struct reserve_memory *memory, const struct reserve_memory_row *row)
{
    char text[TG_HOLD_RECORD_BYTES];
    say_bytes(memory, text, tg_hold_record_format(&row->record, text));
}

/* ---- rows ---- */

static struct reserve_memory_row *find(struct reserve_memory *memory, struct reserve_word id)
{
    for (uint32_t i = 0; i < memory->row_count; i++) {
        if (same(id, memory->rows[i].reservation)) {
            return &memory->rows[i];
        }
    }
    return NULL;
}

static bool live(const struct reserve_memory_row *row)
{
    return row->state != RESERVE_MEMORY_RELEASED;
}

static bool of_user(const struct reserve_memory_row *row, struct reserve_word user)
{
    return row->record.user_length == user.length &&
           memcmp(row->record.user, user.text, user.length) == 0;
}

static bool of_place(const struct reserve_memory_row *row, const uint8_t place[TG_PLACE_BYTES])
{
    return memcmp(row->record.place, place, TG_PLACE_BYTES) == 0;
}

static bool in_gate(const struct reserve_memory *memory, const struct reserve_call *call)
{
    return memory->known && memory->armed && same(argument(call, 1), memory->seal) &&
           same((struct reserve_word){call->words[0], call->lengths[0]}, memory->ctl);
}

static bool in_epoch(const struct reserve_memory *memory, const struct reserve_call *call)
{
    return in_gate(memory, call) && number(argument(call, 2)) == memory->epoch;
}

/* ---- hold ---- */

/* Free units from the cursor on, as the two forms of the script find them. */
static bool pick_any(struct reserve_memory_item *item, bool plain, uint32_t count,
                     struct tg_hold_record *record, uint32_t item_number)
{
    uint32_t from = item->cursor * 8, seen = 0;
    while (count > 0 && seen++ < 2 * item->initial + 8) {
        uint32_t unit = from >= item->initial ? 0 : from;
        from = unit + 1;
        if (!item->free[unit]) {
            continue;
        }
        bool mine = false;
        for (uint32_t i = 0; i < record->unit_count; i++) {
            mine = mine || (record->units[i].item == item_number && record->units[i].unit == unit);
        }
        if (!mine) {
            record->units[record->unit_count++] = (struct tg_unit_ref){item_number, unit};
            count--;
            if (!plain) {
                item->cursor = from / 8;
            } else if (unit % 64 == 0) {
                item->cursor = unit / 8;
            }
        }
    }
    return count == 0;
}

/* "5,17" into the record. False: one of them cannot be had. */
static bool pick_named(const struct reserve_memory_item *item, struct reserve_word named,
                       struct tg_hold_record *record, uint32_t item_number)
{
    const char *at = named.text, *end = named.text + named.length;
    uint32_t first = record->unit_count;
    while (at < end) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        size_t length = comma != NULL ? (size_t)(comma - at) : (size_t)(end - at);
        int64_t unit = number((struct reserve_word){at, length});
        if (unit >= item->initial || !item->free[unit]) {
            return false;
        }
        for (uint32_t i = first; i < record->unit_count; i++) {
            if (record->units[i].unit == (uint32_t)unit) {
                return false;
            }
        }
        record->units[record->unit_count++] = (struct tg_unit_ref){item_number, (uint32_t)unit};
        at += length + 1;
    }
    return true;
}

struct demand {
    uint32_t item, any;
    struct reserve_word named;
};

static struct demand demand_of(const struct reserve_call *call, size_t index)
{
    if (argument_count(call) <= 9) {
        return (struct demand){.item = 0, .any = 1, .named = {"", 0}};
    }
    return (struct demand){.item = (uint32_t)number(argument(call, 12 + 3 * index)),
                           .any = (uint32_t)number(argument(call, 13 + 3 * index)),
                           .named = argument(call, 14 + 3 * index)};
}

/* Picks every unit of the cart. False: sold out, said already. */
static bool pick(struct reserve_memory *memory, const struct reserve_call *call, bool plain,
                 struct tg_hold_record *record)
{
    static struct reserve_memory_item before[TG_MAX_ITEMS_PER_SALE];
    memcpy(before, memory->items, memory->item_count * sizeof before[0]);
    size_t demands = argument_count(call) <= 9 ? 1 : (argument_count(call) - 11) / 3;
    for (size_t i = 0; i < demands; i++) {
        struct demand demand = demand_of(call, i);
        struct reserve_memory_item *item = &memory->items[demand.item];
        uint32_t first = record->unit_count;
        bool good = pick_named(item, demand.named, record, demand.item);
        good = good && item->stock >= record->unit_count - first + demand.any;
        good = good && pick_any(item, plain, demand.any, record, demand.item);
        if (!good) {
            say(memory, tg_reason_code(TG_REASON_SOLD_OUT));
            say_number(memory, item->stock);
            say_number(memory, item->held);
            memcpy(memory->items, before, memory->item_count * sizeof before[0]);
            return false;
        }
    }
    return true;
}

/* The lowest free slots of the buyer. False: over the limit. */
static bool give_slots(const struct reserve_memory *memory, struct reserve_word user,
                       int64_t wanted, struct tg_hold_record *record)
{
    bool used[TG_MAX_BUYER_LIMIT] = {false};
    int64_t count = 0;
    for (uint32_t i = 0; i < memory->row_count; i++) {
        const struct reserve_memory_row *row = &memory->rows[i];
        for (uint32_t n = 0; live(row) && of_user(row, user) && n < row->record.unit_count; n++) {
            used[row->record.slots[n]] = true;
            count++;
        }
    }
    if (count + wanted > memory->limit) {
        return false;
    }
    uint32_t slot = 0;
    for (int64_t n = 0; n < wanted; n++) {
        while (used[slot]) {
            slot++;
        }
        record->slots[n] = slot++;
    }
    return true;
}

/* The buyer's live reservation that took slots first. */
static const char *first_live(const struct reserve_memory *memory, struct reserve_word user)
{
    for (uint32_t i = 0; i < memory->row_count; i++) {
        if (live(&memory->rows[i]) && of_user(&memory->rows[i], user)) {
            return memory->rows[i].reservation;
        }
    }
    return "";
}

/* The live reservation of a place, or the given-back one with the latest window. NULL: unused. */
static const struct reserve_memory_row *use_of(const struct reserve_memory *memory,
                                               const uint8_t place[TG_PLACE_BYTES])
{
    const struct reserve_memory_row *use = NULL;
    for (uint32_t i = 0; i < memory->row_count; i++) {
        const struct reserve_memory_row *row = &memory->rows[i];
        if (of_place(row, place) &&
            (use == NULL || live(row) || (!live(use) && row->record.window > use->record.window))) {
            use = row;
        }
    }
    return use;
}

/* False: the place is taken or spent, said already. */
static bool place_free(struct reserve_memory *memory, const struct tg_hold_record *record,
                       struct reserve_word user)
{
    const struct reserve_memory_row *use = use_of(memory, record->place);
    if (use == NULL || (!live(use) && record->window > use->record.window)) {
        return true;
    }
    if (live(use) && of_user(use, user)) {
        say(memory, "limit");
        say(memory, use->reservation);
    } else {
        say(memory, tg_reason_code(TG_REASON_PASS_USED));
    }
    return false;
}

static void replay(struct reserve_memory *memory, const struct reserve_memory_row *row,
                   const struct tg_hold_record *asked)
{
    static const char *const states[] = {"held", "settled", "released"};
    if (memcmp(row->record.digest, asked->digest, TG_DIGEST_BYTES) != 0) {
        say(memory, "mismatch");
        return;
    }
    say(memory, "replay");
    say(memory, states[row->state]);
    if (row->without_units) {
        say(memory, "");
    } else {
        say_record(memory, row);
    }
}

/* False: closed, said already. */
static bool open_now(struct reserve_memory *memory, const struct reserve_call *call)
{
    const char *why = NULL;
    if (argument(call, 7).length == 0) {
        why = "not_open";
    } else if (memory->pause_count > 0) {
        why = "pause";
    } else if (memory->now_ms >= memory->attested_until_ms ||
               memory->now_ms < memory->attested_at_ms) {
        why = "unproved";
    }
    if (why != NULL) {
        say(memory, "paused");
        say(memory, why);
        return false;
    }
    if (memory->now_ms >= number(argument(call, 7))) {
        say(memory, tg_reason_code(TG_REASON_PASS_EXPIRED));
        return false;
    }
    return true;
}

static void read_asked(const struct reserve_memory *memory, const struct reserve_call *call,
                       struct tg_hold_record *out_record)
{
    size_t length = 0;
    struct reserve_word place = argument(call, 4), digest = argument(call, 6);
    struct reserve_word user = argument(call, 3);
    int error = tg_base64url_decode(place.text, place.length, out_record->place, 16, &length);
    assert(error == 0);
    error = tg_base64url_decode(digest.text, digest.length, out_record->digest, 16, &length);
    assert(error == 0);
    out_record->window = (uint64_t)number(argument(call, 5));
    out_record->deadline_ms = memory->now_ms + number(argument(call, 8));
    memcpy(out_record->user, user.text, user.length);
    out_record->user_length = user.length;
}

static void take(struct reserve_memory *memory, const struct reserve_call *call,
                 const struct tg_hold_record *record)
{
    assert(memory->row_count < RESERVE_MEMORY_ROWS);
    struct reserve_memory_row *row = &memory->rows[memory->row_count++];
    *row = (struct reserve_memory_row){.state = RESERVE_MEMORY_HELD, .unacked = true};
    copy(argument(call, 2), row->reservation, sizeof row->reservation);
    row->record = *record;
    for (uint32_t i = 0; i < record->unit_count; i++) {
        struct reserve_memory_item *item = &memory->items[record->units[i].item];
        item->free[record->units[i].unit] = false;
        item->stock--;
        item->held++;
    }
    memory->sequence++;
    say(memory, "held");
    say_record(memory, row);
}

static void run_hold(struct reserve_memory *memory, const struct reserve_call *call)
{
    static struct tg_hold_record record;
    memset(&record, 0, sizeof record);
    if (!in_gate(memory, call)) {
        say(memory, tg_reason_code(TG_REASON_UNKNOWN_GATE));
        return;
    }
    read_asked(memory, call, &record);
    const struct reserve_memory_row *known = find(memory, argument(call, 2));
    if (known != NULL) {
        replay(memory, known, &record);
        return;
    }
    struct reserve_word user = argument(call, 3);
    if (!open_now(memory, call) || !place_free(memory, &record, user)) {
        return;
    }
    bool listed = argument_count(call) > 9, history = false;
    for (uint32_t i = 0; i < memory->row_count; i++) {
        history = history || of_user(&memory->rows[i], user);
    }
    if (!give_slots(memory, user, listed ? number(argument(call, 11)) : 1, &record)) {
        say(memory, "limit");
        say(memory, first_live(memory, user));
        return;
    }
    if (pick(memory, call, !listed && !history, &record)) {
        take(memory, call, &record);
    }
}

/* ---- orders ---- */

static void count_units(struct reserve_memory *memory, const struct reserve_memory_row *row,
                        bool give_back)
{
    for (uint32_t i = 0; i < row->record.unit_count; i++) {
        struct reserve_memory_item *item = &memory->items[row->record.units[i].item];
        *(row->state == RESERVE_MEMORY_HELD ? &item->held : &item->settled) -= 1;
        if (give_back) {
            item->stock++;
            item->free[row->record.units[i].unit] = true;
        } else {
            item->settled++;
        }
    }
}

static void run_settle(struct reserve_memory *memory, struct reserve_memory_row *row)
{
    if (row->state != RESERVE_MEMORY_HELD) {
        say(memory, "already"); /* also when it was given back since */
    } else {
        count_units(memory, row, false);
        row->state = RESERVE_MEMORY_SETTLED;
        row->unacked = false;
        memory->sequence++;
        say(memory, "done");
    }
}

static void run_release(struct reserve_memory *memory, struct reserve_memory_row *row)
{
    if (row->state == RESERVE_MEMORY_RELEASED) {
        say(memory, "already");
        return;
    }
    count_units(memory, row, true);
    row->state = RESERVE_MEMORY_RELEASED;
    row->unacked = false;
    memory->sequence++;
    say(memory, "done");
}

static void run_acknowledge(struct reserve_memory *memory, struct reserve_memory_row *row,
                            int64_t deadline_ms)
{
    if (row->state != RESERVE_MEMORY_HELD || !row->unacked) {
        say(memory, "already");
        return;
    }
    row->record.deadline_ms = deadline_ms;
    row->unacked = false;
    say(memory, "done");
}

static void run_extend(struct reserve_memory *memory, struct reserve_memory_row *row,
                       int64_t deadline_ms)
{
    if (row->state != RESERVE_MEMORY_HELD ||
        (!row->unacked && row->record.deadline_ms >= deadline_ms)) {
        say(memory, "already");
        return;
    }
    row->record.deadline_ms = deadline_ms;
    row->unacked = false;
    say(memory, "done");
}

static void run_order(struct reserve_memory *memory, const struct reserve_call *call)
{
    if (!in_epoch(memory, call)) {
        say(memory, tg_reason_code(TG_REASON_UNKNOWN_GATE));
        return;
    }
    struct reserve_memory_row *row = find(memory, argument(call, 3));
    if (row == NULL) {
        say(memory, "unknown_reservation");
    } else if (call->script == RESERVE_SCRIPT_SETTLE) {
        run_settle(memory, row);
    } else if (call->script == RESERVE_SCRIPT_RELEASE) {
        run_release(memory, row);
    } else if (call->script == RESERVE_SCRIPT_ACKNOWLEDGE) {
        run_acknowledge(memory, row, number(argument(call, 4)));
    } else {
        run_extend(memory, row, number(argument(call, 4)));
    }
}

/* ---- loading ---- */

static void load_begin(struct reserve_memory *memory, const struct reserve_call *call)
{
    if (memory->armed) {
        say(memory, "armed");
        say(memory, memory->run_id_text);
        say(memory, memory->replication_id_text);
        return;
    }
    if (memory->known && !same(argument(call, 2), memory->loader) &&
        memory->now_ms - memory->load_at_ms < number(argument(call, 6))) {
        say(memory, "busy");
        say(memory, memory->loader);
        return;
    }
    copy((struct reserve_word){call->words[0], call->lengths[0]}, memory->ctl, sizeof memory->ctl);
    copy(argument(call, 2), memory->loader, sizeof memory->loader);
    memory->known = true;
    memory->loaded = false;
    memory->epoch = number(argument(call, 3));
    memory->limit = number(argument(call, 5));
    memory->load_at_ms = memory->now_ms;
    memory->load_page = memory->sequence = 0;
    memory->attested_until_ms = memory->attested_at_ms = 0;
    memory->row_count = 0;
    memory->item_count = (uint32_t)(argument_count(call) - 6);
    memset(memory->items, 0, sizeof memory->items);
    for (uint32_t i = 0; i < memory->item_count; i++) {
        struct reserve_memory_item *item = &memory->items[i];
        item->initial = item->stock = (uint32_t)number(argument(call, 7 + i));
        assert(item->initial <= RESERVE_MEMORY_UNITS);
        memset(item->free, true, item->initial);
    }
    say(memory, "begun");
}

/* False: the row contradicts what is there. */
static bool load_row(struct reserve_memory *memory, const struct reserve_call *call, size_t at)
{
    struct reserve_memory_row row = {.state = RESERVE_MEMORY_RELEASED};
    struct reserve_word packed = argument(call, at + 2);
    copy(argument(call, at + 1), row.reservation, sizeof row.reservation);
    row.without_units = same(argument(call, at), "released");
    if (!row.without_units) {
        bool held = same(argument(call, at), "held");
        row.state = held ? RESERVE_MEMORY_HELD : RESERVE_MEMORY_SETTLED;
        if (tg_hold_record_parse(packed.text, packed.length, &row.record) != 0) {
            return false;
        }
    }
    for (uint32_t i = 0; i < row.record.unit_count; i++) {
        struct tg_unit_ref unit = row.record.units[i];
        if (unit.item >= memory->item_count || unit.unit >= memory->items[unit.item].initial ||
            !memory->items[unit.item].free[unit.unit]) {
            return false;
        }
        struct reserve_memory_item *item = &memory->items[unit.item];
        item->free[unit.unit] = false;
        item->stock--;
        *(row.state == RESERVE_MEMORY_HELD ? &item->held : &item->settled) += 1;
    }
    memory->rows[memory->row_count++] = row;
    return true;
}

static void run_load(struct reserve_memory *memory, const struct reserve_call *call)
{
    if (same(argument(call, 1), "begin")) {
        load_begin(memory, call);
        return;
    }
    if (!memory->known || memory->armed || !same(argument(call, 2), memory->loader) ||
        number(argument(call, 3)) != memory->epoch) {
        say(memory, "not_loader");
        return;
    }
    memory->load_at_ms = memory->now_ms;
    if (same(argument(call, 1), "finish")) {
        memory->loaded = true;
        say(memory, "verified");
        return;
    }
    if (number(argument(call, 5)) != memory->load_page + 1) {
        say(memory, "wrong_page");
        say_number(memory, memory->load_page + 1);
        return;
    }
    for (size_t at = 6; at + 2 <= argument_count(call); at += 3) {
        if (!load_row(memory, call, at)) {
            say(memory, "doubt");
            say(memory, "a row contradicts another");
            return;
        }
    }
    memory->load_page++;
    say(memory, "loaded");
}

static void run_arm(struct reserve_memory *memory, const struct reserve_call *call)
{
    if (!memory->known || number(argument(call, 2)) != memory->epoch ||
        (!memory->armed && (!memory->loaded || !same(argument(call, 1), memory->loader)))) {
        say(memory, "not_loaded");
        return;
    }
    memory->armed = true;
    reserve_seal(memory->run_id_text, memory->replication_id_text, memory->seal);
    say(memory, "armed");
    say(memory, memory->run_id_text);
    say(memory, memory->replication_id_text);
}

/* ---- the rest ---- */

static void run_attest(struct reserve_memory *memory, const struct reserve_call *call)
{
    if (!in_epoch(memory, call) || !same(argument(call, 3), memory->run_id_text) ||
        !same(argument(call, 4), memory->replication_id_text)) {
        say(memory, tg_reason_code(TG_REASON_UNKNOWN_GATE));
        return;
    }
    int64_t at_ms = number(argument(call, 5));
    int64_t lease_ms = number(argument(call, 6));
    int64_t until_ms = (at_ms < memory->now_ms ? at_ms : memory->now_ms) + lease_ms;
    if (until_ms > memory->attested_until_ms) {
        memory->attested_until_ms = until_ms;
    } else if (memory->attested_until_ms > memory->now_ms + lease_ms) {
        memory->attested_until_ms = memory->now_ms + lease_ms;
    }
    memory->attested_at_ms = memory->now_ms;
    say(memory, "attested");
    say_number(memory, memory->attested_until_ms);
}

static int pause_at(const struct reserve_memory *memory, struct reserve_word id)
{
    for (uint32_t i = 0; i < memory->pause_count; i++) {
        if (same(id, memory->pauses[i])) {
            return (int)i;
        }
    }
    return -1;
}

static void run_pause(struct reserve_memory *memory, const struct reserve_call *call)
{
    for (size_t i = 1; i <= argument_count(call); i += 2) {
        if (pause_at(memory, argument(call, i)) < 0 &&
            memory->pause_count < RESERVE_MEMORY_PAUSES) {
            copy(argument(call, i), memory->pauses[memory->pause_count++],
                 sizeof memory->pauses[0]);
        }
    }
    say(memory, "done");
    say_number(memory, memory->pause_count);
}

static void run_lift(struct reserve_memory *memory, const struct reserve_call *call)
{
    for (size_t i = 1; i <= argument_count(call); i++) {
        int at = pause_at(memory, argument(call, i));
        if (at >= 0) {
            memory->pause_count--;
            memcpy(memory->pauses[at], memory->pauses[memory->pause_count],
                   sizeof memory->pauses[0]);
        }
    }
    say(memory, "done");
    say_number(memory, memory->pause_count);
}

static void run_look(struct reserve_memory *memory)
{
    uint32_t states[3] = {0}, unacked = 0;
    if (!memory->known) {
        say(memory, tg_reason_code(TG_REASON_UNKNOWN_GATE));
        say_number(memory, memory->now_ms);
        return;
    }
    for (uint32_t i = 0; i < memory->row_count; i++) {
        states[memory->rows[i].state]++;
        unacked += memory->rows[i].unacked;
    }
    const int64_t head[] = {
        memory->attested_until_ms,      memory->limit, memory->sequence,
        states[RESERVE_MEMORY_HELD],    unacked,       states[RESERVE_MEMORY_SETTLED],
        states[RESERVE_MEMORY_RELEASED]};
    say(memory, "look");
    say_number(memory, memory->now_ms);
    say_number(memory, memory->epoch);
    say(memory, memory->run_id_text);
    say(memory, memory->armed ? memory->replication_id_text : "");
    say(memory, memory->armed ? "1" : "0");
    for (size_t i = 0; i < sizeof head / sizeof head[0]; i++) {
        say_number(memory, head[i]);
    }
    say(memory, memory->loader);
    say_number(memory, memory->load_at_ms);
    say_number(memory, memory->load_page);
    say_number(memory, memory->item_count);
    for (uint32_t i = 0; i < memory->item_count; i++) {
        const struct reserve_memory_item *item = &memory->items[i];
        uint32_t free_units = 0;
        for (uint32_t unit = 0; unit < item->initial; unit++) {
            free_units += item->free[unit];
        }
        say_number(memory, item->initial);
        say_number(memory, item->stock);
        say_number(memory, item->held);
        say_number(memory, item->settled);
        say_number(memory, free_units);
        say_number(memory, (item->initial + 7) / 8);
    }
    for (uint32_t i = 0; i < memory->pause_count; i++) {
        say(memory, memory->pauses[i]);
    }
}

static void run_due(struct reserve_memory *memory, const struct reserve_call *call)
{
    if (!in_epoch(memory, call)) {
        say(memory, tg_reason_code(TG_REASON_UNKNOWN_GATE));
        return;
    }
    say(memory, "due");
    say(memory, "0");
    for (uint32_t i = 0; i < memory->row_count; i++) {
        const struct reserve_memory_row *row = &memory->rows[i];
        int64_t left_ms = row->record.deadline_ms - memory->now_ms;
        if (row->unacked && left_ms > number(argument(call, 5)) &&
            left_ms <= number(argument(call, 6))) {
            say(memory, row->reservation);
            say_record(memory, row);
        }
    }
}

static void run_trim(struct reserve_memory *memory, const struct reserve_call *call)
{
    if (!in_epoch(memory, call) || number(argument(call, 3)) > memory->sequence) {
        say(memory, tg_reason_code(TG_REASON_UNKNOWN_GATE));
        return;
    }
    say(memory, "done");
    say(memory, "0");
}

static void run_script(struct reserve_memory *memory, const struct reserve_call *call)
{
    switch (call->script) {
    case RESERVE_SCRIPT_HOLD:
        run_hold(memory, call);
        return;
    case RESERVE_SCRIPT_ACKNOWLEDGE:
    case RESERVE_SCRIPT_EXTEND:
    case RESERVE_SCRIPT_SETTLE:
    case RESERVE_SCRIPT_RELEASE:
        run_order(memory, call);
        return;
    case RESERVE_SCRIPT_ATTEST:
        run_attest(memory, call);
        return;
    case RESERVE_SCRIPT_LOAD:
        run_load(memory, call);
        return;
    case RESERVE_SCRIPT_ARM:
        run_arm(memory, call);
        return;
    case RESERVE_SCRIPT_PAUSE:
        run_pause(memory, call);
        return;
    case RESERVE_SCRIPT_LIFT:
        run_lift(memory, call);
        return;
    case RESERVE_SCRIPT_LOOK:
        run_look(memory);
        return;
    case RESERVE_SCRIPT_DUE:
        run_due(memory, call);
        return;
    case RESERVE_SCRIPT_TRIM:
        run_trim(memory, call);
        return;
    case RESERVE_SCRIPT_COUNT:
        return;
    }
}

/* ---- the port ---- */

static int run(struct reserve_store *port, const struct reserve_call *call,
               reserve_on_answer *on_answer, void *context, uint64_t token)
{
    struct reserve_memory *memory = (struct reserve_memory *)port;
    if (!memory->connected) {
        return TG_ERR_DISCONNECTED;
    }
    memory->out_used = 0;
    memory->word_count = 0;
    run_script(memory, call);
    struct reserve_answer answer = {
        .ending = RESERVE_ENDED, .count = memory->word_count, .words = memory->words};
    if (memory->fails) {
        memory->fails = false;
        answer = (struct reserve_answer){.ending = RESERVE_UNKNOWN};
    }
    on_answer(context, token, &answer);
    return 0;
}

static const char *run_id(const struct reserve_store *port)
{
    const struct reserve_memory *memory = (const struct reserve_memory *)port;
    return memory->connected ? memory->run_id_text : NULL;
}

static const char *replication_id(const struct reserve_store *port)
{
    const struct reserve_memory *memory = (const struct reserve_memory *)port;
    return memory->connected ? memory->replication_id_text : NULL;
}

static const char *fault(const struct reserve_store *port)
{
    return "";
}

static bool noeviction(const struct reserve_store *port)
{
    return ((const struct reserve_memory *)port)->connected;
}

static void configuration(const struct reserve_store *port, char *out_text, size_t capacity)
{
    /* It has no settings. */
}

static void check(struct reserve_store *port)
{
    /* It is always itself. */
}

void reserve_memory_init(struct reserve_memory *memory, const char *run_id_,
                         const char *replication_id_)
{
    memset(memory, 0, sizeof *memory);
    memory->port = (struct reserve_store){run,        run_id,        replication_id, fault,
                                          noeviction, configuration, check};
    memory->connected = true;
    memcpy(memory->run_id_text, run_id_, strnlen(run_id_, sizeof memory->run_id_text - 1));
    memcpy(memory->replication_id_text, replication_id_,
           strnlen(replication_id_, sizeof memory->replication_id_text - 1));
}
