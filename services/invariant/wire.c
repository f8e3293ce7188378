/* SPDX-License-Identifier: Apache-2.0 */
#include "services/invariant/wire.h"

#include "lib/pure/number.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum { GATE_FORMAT = 1, LOOK_HEAD = 9, LOOK_PER_ITEM = 5 };

enum invariant_reply invariant_wire_reply(int status, const redisReply *reply)
{
    if (status != 0 || !reply) {
        return INVARIANT_REPLY_UNUSABLE;
    }
    if (reply->type != REDIS_REPLY_ERROR) {
        return INVARIANT_REPLY_FINE;
    }
    return strstr(reply->str, "WRONGTYPE") ? INVARIANT_REPLY_WRONG_TYPE : INVARIANT_REPLY_UNUSABLE;
}

static bool is_text(const redisReply *reply)
{
    return reply && (reply->type == REDIS_REPLY_STRING || reply->type == REDIS_REPLY_STATUS);
}

/* The value of "name:" in INFO's text. */
static bool info_field(const redisReply *reply, const char *name, char *out_value, size_t capacity)
{
    const char *line = reply->str;
    const size_t name_length = strlen(name);
    while (line && *line) {
        const char *end = strchr(line, '\r');
        const size_t length = end ? (size_t)(end - line) : strlen(line);
        if (length > name_length && memcmp(line, name, name_length) == 0 &&
            line[name_length] == ':' && length - name_length - 1 < capacity) {
            memcpy(out_value, line + name_length + 1, length - name_length - 1);
            out_value[length - name_length - 1] = '\0';
            return true;
        }
        line = end ? end + (end[1] == '\n' ? 2 : 1) : NULL;
    }
    return false;
}

int invariant_wire_server(const redisReply *reply, struct invariant_server *out_server)
{
    char role[16], policy[32];
    struct invariant_server server = {0};
    if (!is_text(reply) || !info_field(reply, "run_id", server.run_id, sizeof server.run_id) ||
        !info_field(reply, "master_replid", server.replication_id, sizeof server.replication_id) ||
        !info_field(reply, "role", role, sizeof role) ||
        !info_field(reply, "maxmemory_policy", policy, sizeof policy)) {
        return TG_ERR_MALFORMED;
    }
    server.primary = strcmp(role, "master") == 0;
    server.evicts = strcmp(policy, "noeviction") != 0;
    *out_server = server;
    return 0;
}

static bool number(const redisReply *reply, uint64_t *out_value)
{
    return is_text(reply) && tg_unsigned_parse(reply->str, reply->len, INT64_MAX, out_value) == 0;
}

static bool server_id(const redisReply *reply, char out_id[INVARIANT_SERVER_ID])
{
    if (!is_text(reply) || reply->len >= INVARIANT_SERVER_ID) {
        return false;
    }
    memcpy(out_id, reply->str, reply->len);
    out_id[reply->len] = '\0';
    return true;
}

/* Everything of ctl that must be a number is one. */
static bool read_ctl(const redisReply *reply, uint64_t epoch, uint32_t item_count,
                     struct invariant_look *look)
{
    redisReply **row = reply->element;
    uint64_t format = 0, own_epoch = 0, items = 0;
    bool fine = number(row[2], &format) && format == GATE_FORMAT && number(row[3], &own_epoch) &&
                own_epoch == epoch && server_id(row[4], look->run_id) &&
                server_id(row[5], look->replication_id) && is_text(row[6]) &&
                number(row[7], &look->sequence) && number(row[8], &items) &&
                items <= TG_MAX_ITEMS_PER_SALE;
    look->armed = fine && strcmp(row[6]->str, "1") == 0;
    look->item_count = (uint32_t)items;
    for (uint32_t i = 0; fine && i < item_count && i < items; i++) {
        redisReply **at = row + LOOK_HEAD + i * LOOK_PER_ITEM;
        struct invariant_item *item = &look->items[i];
        fine = number(at[0], &item->initial) && number(at[1], &item->stock) &&
               number(at[2], &item->held) && number(at[3], &item->settled) &&
               number(at[4], &item->free_bits);
    }
    return fine;
}

int invariant_wire_look(const redisReply *reply, uint64_t epoch, uint32_t item_count,
                        struct invariant_look *out_look)
{
    struct invariant_look look = {0};
    uint64_t gate_ms = 0;
    if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements < 2 ||
        !is_text(reply->element[0]) || !number(reply->element[1], &gate_ms)) {
        return TG_ERR_MALFORMED;
    }
    look.gate_ms = (int64_t)gate_ms;
    if (strcmp(reply->element[0]->str, "look") == 0) {
        if (reply->elements < LOOK_HEAD + (size_t)item_count * LOOK_PER_ITEM) {
            return TG_ERR_MALFORMED;
        }
        look.present = true;
        look.readable = read_ctl(reply, epoch, item_count, &look);
    } else if (strcmp(reply->element[0]->str, "none") != 0) {
        return TG_ERR_MALFORMED;
    }
    *out_look = look;
    return 0;
}

uint32_t invariant_wire_pauses(const redisReply *reply, uint32_t item_count,
                               struct tg_pause out_pauses[INVARIANT_GATE_PAUSES_MAX])
{
    uint32_t count = 0;
    uint8_t bytes[INVARIANT_ID_BYTES];
    for (size_t i = LOOK_HEAD + (size_t)item_count * LOOK_PER_ITEM;
         i + 1 < reply->elements && count < INVARIANT_GATE_PAUSES_MAX; i += 2) {
        const redisReply *id = reply->element[i], *cause = reply->element[i + 1];
        if (!is_text(id) || !is_text(cause) || tg_base32_id_decode(id->str, id->len, bytes) != 0) {
            continue;
        }
        struct tg_pause *pause = &out_pauses[count++];
        memcpy(pause->id, id->str, TG_BASE32_ID_LENGTH + 1);
        tg_sale_cause(pause, cause->str, cause->len);
        if (!tg_user_valid((const uint8_t *)pause->cause, strlen(pause->cause))) {
            (void)snprintf(pause->cause, sizeof pause->cause, "unreadable");
        }
    }
    return count;
}

int invariant_wire_id(const char *text, size_t length, uint8_t out_id[INVARIANT_ID_BYTES])
{
    if (length != TG_RESERVATION_ID_LENGTH || memcmp(text, "res_", 4) != 0) {
        return TG_ERR_MALFORMED;
    }
    return tg_base32_id_decode(text + 4, length - 4, out_id);
}

uint64_t invariant_wire_user_tag(const uint8_t key[INVARIANT_TAG_KEY_BYTES], const uint8_t *user,
                                 size_t length)
{
    _Static_assert(INVARIANT_TAG_KEY_BYTES == crypto_shorthash_KEYBYTES &&
                       crypto_shorthash_BYTES == 8,
                   "one word");
    uint8_t bytes[8];
    uint64_t tag = 0;
    crypto_shorthash(bytes, user, length, key);
    memcpy(&tag, bytes, sizeof tag);
    return tag;
}

/* The id of a field; a field that is none gets a digest of itself, so that it can be told apart. */
static bool entry_id(const redisReply *field, uint8_t out_id[INVARIANT_ID_BYTES])
{
    if (is_text(field) && invariant_wire_id(field->str, field->len, out_id) == 0) {
        return true;
    }
    crypto_generichash(out_id, INVARIANT_ID_BYTES,
                       (const uint8_t *)(is_text(field) ? field->str : ""),
                       is_text(field) ? field->len : 0, NULL, 0);
    return false;
}

/* A reservation given back before the gate was rebuilt has "-" for units and slots: place window
 * deadline digest - - user. */
static bool without_units(const redisReply *value)
{
    const char *at = value->str;
    for (int field = 0; at && field < 4; field++) {
        at = strchr(at, ' ');
        at = at ? at + 1 : NULL;
    }
    return at && strncmp(at, "- - ", 4) == 0 && at[4] != '\0';
}

void invariant_wire_hold(const redisReply *field, const redisReply *value,
                         enum invariant_place place, const uint8_t key[INVARIANT_TAG_KEY_BYTES],
                         struct invariant_entry *out_entry)
{
    struct tg_hold_record record;
    struct invariant_entry entry = {.places = place};
    const bool named = entry_id(field, entry.id);
    if (named && place == INVARIANT_RELEASED && is_text(value) && without_units(value)) {
        *out_entry = entry;
        return;
    }
    if (!named || !is_text(value) || tg_hold_record_parse(value->str, value->len, &record) != 0) {
        entry.places |= INVARIANT_GARBLED;
        *out_entry = entry;
        return;
    }
    for (uint32_t i = 0; i < record.unit_count; i++) {
        entry.units_tag =
            invariant_units_tag(entry.units_tag, record.units[i].item, record.units[i].unit);
    }
    for (uint32_t i = 0; i < record.unit_count; i++) {
        entry.slots |= UINT64_C(1) << record.slots[i];
    }
    entry.unit_count = record.unit_count;
    entry.user_tag = invariant_wire_user_tag(key, record.user, record.user_length);
    *out_entry = entry;
}

void invariant_wire_unacked(const redisReply *member, struct invariant_entry *out_entry)
{
    *out_entry = (struct invariant_entry){.places = INVARIANT_UNACKED};
    if (!entry_id(member, out_entry->id)) {
        out_entry->places |= INVARIANT_GARBLED;
    }
}

/* The claim of this reservation among those of one row; a new one, or NULL when there are too many.
 */
static struct invariant_entry *claim_of(struct invariant_entry *entries, uint32_t *count,
                                        const uint8_t id[INVARIANT_ID_BYTES])
{
    for (uint32_t i = 0; i < *count; i++) {
        if (memcmp(entries[i].id, id, INVARIANT_ID_BYTES) == 0) {
            return &entries[i];
        }
    }
    if (*count == TG_MAX_BUYER_LIMIT) {
        return NULL;
    }
    struct invariant_entry *entry = &entries[(*count)++];
    *entry = (struct invariant_entry){.places = INVARIANT_CLAIMED};
    memcpy(entry->id, id, INVARIANT_ID_BYTES);
    return entry;
}

/* "SLOT:RESERVATION" */
static bool read_claim(const char *text, size_t length, struct invariant_entry *entries,
                       uint32_t *count)
{
    const char *colon = memchr(text, ':', length);
    const size_t digits = colon ? (size_t)(colon - text) : length;
    uint64_t slot = 0;
    uint8_t id[INVARIANT_ID_BYTES];
    if (!colon || tg_unsigned_parse(text, digits, TG_MAX_BUYER_LIMIT - 1, &slot) != 0 ||
        invariant_wire_id(colon + 1, length - digits - 1, id) != 0) {
        return false;
    }
    struct invariant_entry *entry = claim_of(entries, count, id);
    if (!entry || (entry->slots & (UINT64_C(1) << slot))) {
        return false;
    }
    entry->slots |= UINT64_C(1) << slot;
    entry->unit_count++;
    return true;
}

uint32_t invariant_wire_buyer(const redisReply *field, const redisReply *value,
                              const uint8_t key[INVARIANT_TAG_KEY_BYTES],
                              struct invariant_entry out_entries[TG_MAX_BUYER_LIMIT])
{
    _Static_assert(TG_MAX_BUYER_LIMIT <= 64, "a slot is a bit");
    uint32_t count = 0;
    bool fine = is_text(field) && is_text(value);
    for (size_t from = 0; fine && from < value->len;) {
        const char *comma = memchr(value->str + from, ',', value->len - from);
        const size_t length = (comma ? (size_t)(comma - value->str) : value->len) - from;
        fine = read_claim(value->str + from, length, out_entries, &count);
        from += length + 1;
    }
    if (!fine) {
        out_entries[0] = (struct invariant_entry){.places = INVARIANT_CLAIMED | INVARIANT_GARBLED};
        return 1;
    }
    for (uint32_t i = 0; i < count; i++) {
        out_entries[i].user_tag =
            invariant_wire_user_tag(key, (const uint8_t *)field->str, field->len);
    }
    return count;
}

int invariant_wire_units(const char *text, size_t length, struct tg_unit_ref *out_units,
                         uint32_t *out_count)
{
    uint32_t count = 0;
    uint64_t item = 0;
    bool item_next = true;
    size_t from = 0;
    for (size_t at = 0; at <= length; at++) {
        const char stop = at < length ? text[at] : ';';
        if (stop >= '0' && stop <= '9') {
            continue;
        }
        uint64_t value = 0;
        if (tg_unsigned_parse(text + from, at - from, UINT32_MAX, &value) != 0) {
            return TG_ERR_MALFORMED;
        }
        if (item_next && stop == ':') {
            item = value;
        } else if (!item_next && (stop == ',' || stop == ';') && count < TG_MAX_UNITS_PER_HOLD) {
            out_units[count++] = (struct tg_unit_ref){(uint32_t)item, (uint32_t)value};
        } else {
            return TG_ERR_MALFORMED;
        }
        item_next = stop == ';';
        from = at + 1;
    }
    *out_count = count;
    return 0;
}

/* "SEQUENCE-0" */
static bool stream_id(const redisReply *reply, uint64_t *out_sequence)
{
    if (!is_text(reply) || reply->len < 3 || strcmp(reply->str + reply->len - 2, "-0") != 0) {
        return false;
    }
    return tg_unsigned_parse(reply->str, reply->len - 2, INT64_MAX, out_sequence) == 0;
}

static const redisReply *stream_field(const redisReply *fields, const char *name)
{
    for (size_t i = 0; i + 1 < fields->elements; i += 2) {
        if (is_text(fields->element[i]) && strcmp(fields->element[i]->str, name) == 0) {
            return is_text(fields->element[i + 1]) ? fields->element[i + 1] : NULL;
        }
    }
    return NULL;
}

int invariant_wire_log(const redisReply *reply, struct invariant_wire_log *out_log)
{
    struct invariant_wire_log log = {.kind = "", .reservation = "", .source = ""};
    if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
        !stream_id(reply->element[0], &log.entry.sequence) ||
        reply->element[1]->type != REDIS_REPLY_ARRAY) {
        return TG_ERR_MALFORMED;
    }
    const redisReply *fields = reply->element[1];
    const redisReply *kind = stream_field(fields, "kind"), *units = stream_field(fields, "units");
    const redisReply *reservation = stream_field(fields, "reservation"),
                     *source = stream_field(fields, "source");
    uint64_t stock = 0, at_ms = 0;
    log.entry.readable =
        kind && units && reservation && source &&
        number(stream_field(fields, "stock_after"), &stock) &&
        number(stream_field(fields, "at_ms"), &at_ms) &&
        invariant_wire_units(units->str, units->len, log.units, &log.unit_count) == 0 &&
        invariant_log_change(kind->str, kind->len, log.unit_count, &log.entry.change) == 0;
    if (log.entry.readable) {
        log.kind = kind->str;
        log.reservation = reservation->str;
        log.source = source->str;
        log.at_ms = (int64_t)at_ms;
        log.entry.stock_after = (int64_t)stock;
    }
    *out_log = log;
    return 0;
}

static const char *outcome_name(enum invariant_outcome outcome)
{
    switch (outcome) {
    case INVARIANT_CLEAN:
        return "clean";
    case INVARIANT_VOID:
        return "void";
    case INVARIANT_ALARM:
        return "alarm";
    }
    return "void";
}

void invariant_wire_result(const struct invariant_judgement *judgement, char *detail, int64_t at_ms,
                           uint32_t round_ms, Tidegate__V1__CheckResult *out_result)
{
    tidegate__v1__check_result__init(out_result);
    out_result->at_ms = at_ms;
    out_result->outcome = (char *)outcome_name(judgement->outcome);
    out_result->detail = detail;
    out_result->stock = judgement->stock;
    out_result->pending = judgement->pending;
    out_result->confirmed = judgement->confirmed;
    out_result->in_flight = (int64_t)judgement->in_flight;
    out_result->release_pending = (int64_t)judgement->release_pending;
    out_result->initial = judgement->initial;
    out_result->round_ms = round_ms;
}
