/* SPDX-License-Identifier: Apache-2.0 */
#include "services/reserve/script.h"

#include "lib/pure/number.h"

#include <assert.h>
#include <string.h>

enum { TAKEOVER_MS = 5000, DUE_PAGE = 100 };

/* Positions in reserve_keys.text. */
enum {
    KEY_CTL,
    KEY_PAUSES,
    KEY_HELD,
    KEY_UNACKED,
    KEY_SETTLED,
    KEY_RELEASED,
    KEY_BUYERS,
    KEY_USED,
    KEY_LOG,
    KEY_FREE
};

const char *reserve_script_name(enum reserve_script script)
{
    static const char *const names[] = {
#define RESERVE_SCRIPT(id, name) #name,
#include "services/reserve/script.def"
#undef RESERVE_SCRIPT
    };
    return names[script];
}

void reserve_keys_make(const char *sale, uint32_t shard, uint64_t epoch, uint32_t item_count,
                       struct reserve_keys *out_keys)
{
    static const enum tg_gate_key order[RESERVE_PLAIN_KEYS] = {
        TG_GATE_KEY_CTL,     TG_GATE_KEY_PAUSES,  TG_GATE_KEY_HELD,
        TG_GATE_KEY_UNACKED, TG_GATE_KEY_SETTLED, TG_GATE_KEY_RELEASED,
        TG_GATE_KEY_BUYERS,  TG_GATE_KEY_USED,    TG_GATE_KEY_LOG,
    };
    out_keys->epoch = epoch;
    out_keys->item_count = item_count;
    for (uint32_t i = 0; i < RESERVE_PLAIN_KEYS; i++) {
        out_keys->lengths[i] =
            tg_gate_key_format(sale, shard, epoch, order[i], 0, out_keys->text[i]);
    }
    for (uint32_t i = 0; i < item_count; i++) {
        out_keys->lengths[KEY_FREE + i] = tg_gate_key_format(sale, shard, epoch, TG_GATE_KEY_FREE,
                                                             i, out_keys->text[KEY_FREE + i]);
    }
}

/* ---- building blocks ---- */

static void begin(struct reserve_call *call, enum reserve_script script)
{
    call->script = script;
    call->key_count = 0;
    call->count = 0;
    call->own_used = 0;
}

static void add_bytes(struct reserve_call *call, const void *bytes, size_t length)
{
    assert(call->count < RESERVE_CALL_WORDS);
    call->words[call->count] = bytes;
    call->lengths[call->count] = length;
    call->count++;
}

static void add_text(struct reserve_call *call, const char *text)
{
    add_bytes(call, text, strlen(text));
}

/* Room for a text that is made here. */
static char *own_room(struct reserve_call *call, size_t capacity)
{
    assert(call->own_used + capacity <= sizeof call->own);
    return call->own + call->own_used;
}

static void add_own(struct reserve_call *call, size_t length)
{
    add_bytes(call, call->own + call->own_used, length);
    call->own_used += length + 1;
}

static void add_unsigned(struct reserve_call *call, uint64_t value)
{
    add_own(call, tg_unsigned_format(value, own_room(call, 21)));
}

static void add_signed(struct reserve_call *call, int64_t value)
{
    char *text = own_room(call, 22);
    if (value >= 0) {
        add_own(call, tg_unsigned_format((uint64_t)value, text));
        return;
    }
    text[0] = '-';
    add_own(call, 1 + tg_unsigned_format((uint64_t)0 - (uint64_t)value, text + 1));
}

static void add_base64url(struct reserve_call *call, const uint8_t *data, size_t length)
{
    add_own(call,
            tg_base64url_encode(data, length, own_room(call, TG_BASE64URL_LENGTH(length) + 1)));
}

static void add_key(struct reserve_call *call, const struct reserve_keys *keys, uint32_t index)
{
    assert(call->key_count == call->count); /* keys come before arguments */
    add_bytes(call, keys->text[index], keys->lengths[index]);
    call->key_count++;
}

static void add_keys(struct reserve_call *call, const struct reserve_keys *keys, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        add_key(call, keys, i);
    }
}

static void add_every_key(struct reserve_call *call, const struct reserve_keys *keys)
{
    add_keys(call, keys, RESERVE_PLAIN_KEYS + keys->item_count);
}

static size_t put_id(char *at, const char *id)
{
    size_t length = strnlen(id, 40);
    *at = ' ';
    memcpy(at + 1, id, length);
    return 1 + length;
}

void reserve_seal(const char *run_id, const char *replication_id, char out_seal[RESERVE_SEAL_BYTES])
{
    size_t length = tg_unsigned_format(RESERVE_GATE_FORMAT, out_seal);
    length += put_id(out_seal + length, run_id);
    length += put_id(out_seal + length, replication_id);
    out_seal[length] = '\0';
}

/* ---- the scripts ---- */

static void add_named(struct reserve_call *call, const struct reserve_demand *demand)
{
    char *text = own_room(call, demand->named_count * 11 + 1);
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; i < demand->named_count; i++) {
        if (i > 0) {
            text[used++] = ',';
        }
        used += tg_unsigned_format(demand->named[i], text + used);
    }
    add_own(call, used);
}

/* One unit, whichever, of the sale's only item: the script needs no list. */
static bool plain(const struct reserve_keys *keys, const struct reserve_request *request)
{
    return keys->item_count == 1 && request->wanted_units == 1 && request->demands[0].any == 1;
}

void reserve_call_hold(struct reserve_call *out_call, const struct reserve_keys *keys,
                       const struct reserve_request *request,
                       const struct reserve_hold_terms *terms)
{
    begin(out_call, RESERVE_SCRIPT_HOLD);
    add_keys(out_call, keys, RESERVE_PLAIN_KEYS);
    for (uint32_t i = 0; i < request->demand_count; i++) {
        add_key(out_call, keys, KEY_FREE + request->demands[i].item);
    }
    add_text(out_call, terms->seal);
    add_text(out_call, request->reservation);
    add_bytes(out_call, request->user, request->user_length);
    add_base64url(out_call, request->place, sizeof request->place);
    add_unsigned(out_call, request->window);
    add_base64url(out_call, request->digest, sizeof request->digest);
    if (terms->open) {
        add_signed(out_call, request->pass_expires_ms + TG_MAX_CLOCK_SKEW_MS);
    } else {
        add_text(out_call, "");
    }
    add_signed(out_call, terms->provisional_ms);
    add_text(out_call, terms->source);
    if (plain(keys, request)) {
        return;
    }
    add_unsigned(out_call, keys->item_count);
    add_unsigned(out_call, request->wanted_units);
    for (uint32_t i = 0; i < request->demand_count; i++) {
        add_unsigned(out_call, request->demands[i].item);
        add_unsigned(out_call, request->demands[i].any);
        add_named(out_call, &request->demands[i]);
    }
}

void reserve_call_acknowledge(struct reserve_call *out_call, const struct reserve_gate_name *gate,
                              const char *reservation, int64_t deadline_ms)
{
    begin(out_call, RESERVE_SCRIPT_ACKNOWLEDGE);
    add_keys(out_call, gate->keys, RESERVE_PLAIN_KEYS);
    add_text(out_call, gate->seal);
    add_unsigned(out_call, gate->keys->epoch);
    add_text(out_call, reservation);
    add_signed(out_call, deadline_ms);
}

void reserve_call_obey(struct reserve_call *out_call, const struct reserve_gate_name *gate,
                       enum reserve_script script, const char *reservation, int64_t deadline_ms)
{
    begin(out_call, script);
    add_every_key(out_call, gate->keys);
    add_text(out_call, gate->seal);
    add_unsigned(out_call, gate->keys->epoch);
    add_text(out_call, reservation);
    if (script == RESERVE_SCRIPT_EXTEND) {
        add_signed(out_call, deadline_ms);
    } else {
        add_text(out_call, gate->source);
    }
}

void reserve_call_attest(struct reserve_call *out_call, const struct reserve_gate_name *gate,
                         const struct reserve_attestation *attestation)
{
    begin(out_call, RESERVE_SCRIPT_ATTEST);
    add_key(out_call, gate->keys, KEY_CTL);
    add_text(out_call, gate->seal);
    add_unsigned(out_call, gate->keys->epoch);
    add_text(out_call, attestation->run_id);
    add_text(out_call, attestation->replication_id);
    add_signed(out_call, attestation->gate_time_ms);
    add_signed(out_call, attestation->lease_ms);
}

void reserve_call_trim(struct reserve_call *out_call, const struct reserve_gate_name *gate,
                       uint64_t stored_sequence)
{
    begin(out_call, RESERVE_SCRIPT_TRIM);
    add_key(out_call, gate->keys, KEY_CTL);
    add_key(out_call, gate->keys, KEY_LOG);
    add_text(out_call, gate->seal);
    add_unsigned(out_call, gate->keys->epoch);
    add_unsigned(out_call, stored_sequence);
}

void reserve_call_due(struct reserve_call *out_call, const struct reserve_gate_name *gate,
                      const char *cursor, int64_t left_above_ms, int64_t left_up_to_ms)
{
    begin(out_call, RESERVE_SCRIPT_DUE);
    add_key(out_call, gate->keys, KEY_CTL);
    add_key(out_call, gate->keys, KEY_UNACKED);
    add_key(out_call, gate->keys, KEY_HELD);
    add_text(out_call, gate->seal);
    add_unsigned(out_call, gate->keys->epoch);
    add_text(out_call, cursor);
    add_unsigned(out_call, DUE_PAGE);
    add_signed(out_call, left_above_ms);
    add_signed(out_call, left_up_to_ms);
}

void reserve_call_look(struct reserve_call *out_call, const struct reserve_keys *keys)
{
    begin(out_call, RESERVE_SCRIPT_LOOK);
    add_every_key(out_call, keys);
}

void reserve_call_pause(struct reserve_call *out_call, const struct reserve_keys *keys)
{
    begin(out_call, RESERVE_SCRIPT_PAUSE);
    add_key(out_call, keys, KEY_PAUSES);
}

void reserve_call_pause_id(struct reserve_call *call, const char *id, const char *cause)
{
    add_text(call, id);
    add_text(call, cause);
}

void reserve_call_lift(struct reserve_call *out_call, const struct reserve_keys *keys)
{
    begin(out_call, RESERVE_SCRIPT_LIFT);
    add_key(out_call, keys, KEY_PAUSES);
}

void reserve_call_lift_id(struct reserve_call *call, const char *id)
{
    add_text(call, id);
}

static void begin_load(struct reserve_call *call, const struct reserve_loader *loader,
                       const char *what)
{
    begin(call, RESERVE_SCRIPT_LOAD);
    add_every_key(call, loader->keys);
    add_text(call, what);
    add_text(call, loader->instance);
    add_unsigned(call, loader->keys->epoch);
    add_text(call, loader->run_id);
}

void reserve_call_load_begin(struct reserve_call *out_call, const struct reserve_loader *loader,
                             const struct tg_sale *sale)
{
    begin_load(out_call, loader, "begin");
    add_unsigned(out_call, sale->limit_per_buyer);
    add_unsigned(out_call, TAKEOVER_MS);
    for (uint32_t i = 0; i < sale->item_count; i++) {
        add_unsigned(out_call, sale->items[i].units);
    }
}

void reserve_call_load_page(struct reserve_call *out_call, const struct reserve_loader *loader,
                            uint32_t page)
{
    begin_load(out_call, loader, "page");
    add_unsigned(out_call, page);
}

void reserve_call_load_row(struct reserve_call *call, const char *state, const char *reservation,
                           const struct reserve_word *packed)
{
    add_text(call, state);
    add_text(call, reservation);
    add_bytes(call, packed->text, packed->length);
}

void reserve_call_load_finish(struct reserve_call *out_call, const struct reserve_loader *loader)
{
    begin_load(out_call, loader, "finish");
}

void reserve_call_arm(struct reserve_call *out_call, const struct reserve_loader *loader)
{
    begin(out_call, RESERVE_SCRIPT_ARM);
    add_every_key(out_call, loader->keys);
    add_text(out_call, loader->instance);
    add_unsigned(out_call, loader->keys->epoch);
    add_text(out_call, loader->run_id);
    add_text(out_call, loader->replication_id);
}
