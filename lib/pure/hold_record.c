/* SPDX-License-Identifier: Apache-2.0
 * One canonical spelling: what does not write itself again is refused. */
#include "lib/pure/hold_record.h"

#include "lib/pure/number.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

static_assert((int)TG_PLACE_BYTES == 16 && (int)TG_DIGEST_BYTES == 16,
              "22 base64url characters each");

/* ---- writing ---- */

static char *put_tag(char *at, const uint8_t tag[16])
{
    at += tg_base64url_encode(tag, 16, at);
    *at++ = ' ';
    return at;
}

static char *put_number(char *at, uint64_t value, char after)
{
    at += tg_unsigned_format(value, at);
    *at++ = after;
    return at;
}

/* "item:unit,unit;item:unit ": a run of units of one item is one group. */
static char *put_units(char *at, const struct tg_hold_record *record)
{
    for (uint32_t i = 0; i < record->unit_count; i++) {
        if (i == 0 || record->units[i].item != record->units[i - 1].item) {
            at = put_number(at, record->units[i].item, ':');
        }
        bool last = i + 1 == record->unit_count;
        bool same = !last && record->units[i + 1].item == record->units[i].item;
        at = put_number(at, record->units[i].unit, last ? ' ' : same ? ',' : ';');
    }
    return at;
}

size_t tg_hold_record_format(const struct tg_hold_record *record, char *out_text)
{
    assert(record->unit_count >= 1 && record->unit_count <= TG_MAX_UNITS_PER_HOLD);
    assert(record->user_length <= TG_MAX_USER_BYTES && record->deadline_ms >= 0);
    char *at = put_tag(out_text, record->place);
    at = put_number(at, record->window, ' ');
    at = put_number(at, (uint64_t)record->deadline_ms, ' ');
    at = put_tag(at, record->digest);
    at = put_units(at, record);
    for (uint32_t i = 0; i < record->unit_count; i++) {
        at = put_number(at, record->slots[i], i + 1 < record->unit_count ? ',' : ' ');
    }
    memcpy(at, record->user, record->user_length);
    at += record->user_length;
    *at = '\0';
    return (size_t)(at - out_text);
}

/* ---- reading ---- */

struct cursor {
    const char *at;
    const char *end;
};

/* A decimal up to one of the characters of `stops`, which is taken and told. */
static bool take_number(struct cursor *cursor, uint64_t max, const char *stops, uint64_t *out_value,
                        char *out_stop)
{
    const char *digits = cursor->at;
    while (cursor->at < cursor->end && *cursor->at >= '0' && *cursor->at <= '9') {
        cursor->at++;
    }
    if (cursor->at == cursor->end || *cursor->at == '\0' || strchr(stops, *cursor->at) == NULL ||
        tg_unsigned_parse(digits, (size_t)(cursor->at - digits), max, out_value) != 0) {
        return false;
    }
    *out_stop = *cursor->at++;
    return true;
}

static bool take_tag(struct cursor *cursor, uint8_t out_tag[16])
{
    enum { LENGTH = TG_BASE64URL_LENGTH(16) };
    size_t length = 0;
    if (cursor->end - cursor->at <= LENGTH || cursor->at[LENGTH] != ' ' ||
        tg_base64url_decode(cursor->at, LENGTH, out_tag, 16, &length) != 0) {
        return false;
    }
    cursor->at += LENGTH + 1;
    return true;
}

static bool repeats(const struct tg_hold_record *record, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++) {
        if ((record->units[i].item == record->units[index].item &&
             record->units[i].unit == record->units[index].unit) ||
            record->slots[i] == record->slots[index]) {
            return true;
        }
    }
    return false;
}

static bool take_units(struct cursor *cursor, struct tg_hold_record *record)
{
    uint64_t item = 0;
    uint64_t unit = 0;
    char stop = ';';
    for (record->unit_count = 0; stop != ' '; record->unit_count++) {
        if (record->unit_count == TG_MAX_UNITS_PER_HOLD) {
            return false;
        }
        if (stop == ';' && !take_number(cursor, TG_MAX_ITEMS_PER_SALE - 1, ":", &item, &stop)) {
            return false;
        }
        if (!take_number(cursor, TG_MAX_UNITS_PER_ITEM - 1, ",; ", &unit, &stop)) {
            return false;
        }
        record->units[record->unit_count] = (struct tg_unit_ref){(uint32_t)item, (uint32_t)unit};
    }
    return true;
}

static bool take_slots(struct cursor *cursor, struct tg_hold_record *record)
{
    for (uint32_t i = 0; i < record->unit_count; i++) {
        uint64_t slot = 0;
        char stop = '\0';
        if (!take_number(cursor, TG_MAX_BUYER_LIMIT - 1, i + 1 < record->unit_count ? "," : " ",
                         &slot, &stop)) {
            return false;
        }
        record->slots[i] = (uint32_t)slot;
        if (repeats(record, i)) {
            return false;
        }
    }
    return true;
}

int tg_hold_record_parse(const char *text, size_t length, struct tg_hold_record *out_record)
{
    struct tg_hold_record record = {0};
    struct cursor cursor = {text, text + length};
    char again[TG_HOLD_RECORD_BYTES];
    uint64_t deadline_ms = 0;
    char stop = '\0';
    if (!take_tag(&cursor, record.place) ||
        !take_number(&cursor, UINT64_MAX, " ", &record.window, &stop) ||
        !take_number(&cursor, INT64_MAX, " ", &deadline_ms, &stop) ||
        !take_tag(&cursor, record.digest) || !take_units(&cursor, &record) ||
        !take_slots(&cursor, &record)) {
        return TG_ERR_MALFORMED;
    }
    record.deadline_ms = (int64_t)deadline_ms;
    record.user_length = (size_t)(cursor.end - cursor.at);
    if (!tg_user_valid((const uint8_t *)cursor.at, record.user_length)) {
        return TG_ERR_MALFORMED;
    }
    memcpy(record.user, cursor.at, record.user_length);
    if (tg_hold_record_format(&record, again) != length || memcmp(again, text, length) != 0) {
        return TG_ERR_MALFORMED; /* one item in two neighbouring groups */
    }
    *out_record = record;
    return 0;
}
