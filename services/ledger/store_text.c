/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ledger/store_text.h"

#include "lib/pure/number.h"
#include "lib/pure/text.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void store_text_free(struct store_text *text)
{
    free(text->data);
    *text = (struct store_text){0};
}

/* Room for `more` bytes and a NUL. A statement is bounded by the limits of its batch; memory for it
 * must be there. */
static char *reserve_room(struct store_text *text, size_t more)
{
    if (text->length + more + 1 > text->capacity) {
        size_t capacity = text->capacity == 0 ? 1024 : text->capacity * 2;
        while (capacity < text->length + more + 1) {
            capacity *= 2;
        }
        text->data = realloc(text->data, capacity);
        if (text->data == NULL) {
            abort();
        }
        text->capacity = capacity;
    }
    return text->data + text->length;
}

static void add(struct store_text *text, const char *bytes, size_t length)
{
    memcpy(reserve_room(text, length), bytes, length);
    text->length += length;
    text->data[text->length] = '\0';
}

void store_array_begin(struct store_text *text)
{
    text->length = 0;
    add(text, "{", 1);
}

static void separate(struct store_text *text)
{
    if (text->length > 1) {
        add(text, ",", 1);
    }
}

void store_array_number(struct store_text *text, int64_t value)
{
    char digits[24];
    separate(text);
    int length = snprintf(digits, sizeof digits, "%" PRId64, value);
    add(text, digits, (size_t)length);
}

void store_array_text(struct store_text *text, const char *value)
{
    separate(text);
    add(text, "\"", 1);
    for (const char *at = value; *at != '\0';) {
        size_t plain = strcspn(at, "\"\\");
        add(text, at, plain);
        at += plain;
        if (*at != '\0') {
            add(text, "\\", 1);
            add(text, at, 1);
            at++;
        }
    }
    add(text, "\"", 1);
}

static void add_hex(struct store_text *text, const uint8_t *bytes, size_t length)
{
    char *end = reserve_room(text, 2 * length + 1);
    tg_hex_encode(bytes, length, end);
    text->length += 2 * length;
}

void store_array_bytes(struct store_text *text, const uint8_t *bytes, size_t length)
{
    separate(text);
    add(text, "\"\\\\x", 4);
    add_hex(text, bytes, length);
    add(text, "\"", 1);
}

void store_array_end(struct store_text *text)
{
    add(text, "}", 1);
}

void store_bytes(struct store_text *text, const uint8_t *bytes, size_t length)
{
    text->length = 0;
    add(text, "\\x", 2);
    add_hex(text, bytes, length);
}

static const char *value_of(struct store_row *row, int column, size_t *out_length)
{
    if (column >= PQnfields(row->result) || PQgetisnull(row->result, row->row, column)) {
        row->bad = true;
        *out_length = 0;
        return "";
    }
    *out_length = (size_t)PQgetlength(row->result, row->row, column);
    return PQgetvalue(row->result, row->row, column);
}

int64_t store_number(struct store_row *row, int column)
{
    size_t length;
    int64_t value = 0;
    const char *text = value_of(row, column, &length);
    if (tg_integer_parse(text, length, INT64_MIN, INT64_MAX, &value) != 0) {
        row->bad = true;
    }
    return value;
}

uint32_t store_small(struct store_row *row, int column)
{
    int64_t value = store_number(row, column);
    if (value < 0 || value > UINT32_MAX) {
        row->bad = true;
        return 0;
    }
    return (uint32_t)value;
}

bool store_flag(struct store_row *row, int column)
{
    size_t length;
    const char *text = value_of(row, column, &length);
    return length == 1 && text[0] == 't';
}

void store_copy(struct store_row *row, int column, char *out_text, size_t capacity)
{
    size_t length;
    const char *text = value_of(row, column, &length);
    if (length >= capacity) {
        row->bad = true;
        length = 0;
    }
    memcpy(out_text, text, length);
    out_text[length] = '\0';
}

uint32_t store_bytes_read(struct store_row *row, int column, uint8_t *out_bytes, size_t capacity)
{
    size_t length;
    const char *text = value_of(row, column, &length);
    if (length < 2 || text[0] != '\\' || text[1] != 'x' || length % 2 != 0 ||
        (length - 2) / 2 > capacity ||
        tg_hex_decode(text + 2, length - 2, out_bytes, (length - 2) / 2) != 0) {
        row->bad = true;
        return 0;
    }
    return (uint32_t)((length - 2) / 2);
}

enum ledger_state store_state(struct store_row *row, int column)
{
    static const struct {
        const char *name;
        enum ledger_state state;
    } names[] = {{"", LEDGER_STATE_NONE},
                 {"pending", LEDGER_PENDING},
                 {"confirmed", LEDGER_CONFIRMED},
                 {"expired", LEDGER_EXPIRED},
                 {"cancelled", LEDGER_CANCELLED}};
    size_t length;
    const char *text = value_of(row, column, &length);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i].name, text) == 0) {
            return names[i].state;
        }
    }
    row->bad = true;
    return LEDGER_STATE_NONE;
}

enum tg_reason store_reason(struct store_row *row, int column)
{
    size_t length;
    enum tg_reason reason = tg_reason_from_code(value_of(row, column, &length));
    if (reason == TG_REASON_COUNT) {
        row->bad = true;
    }
    return reason;
}

int store_field(const char **in_text, char separator, const char **out_field)
{
    const char *text = *in_text;
    if (*text == '\0') {
        return -1;
    }
    const char *end = strchr(text, separator);
    *out_field = text;
    *in_text = end == NULL ? text + strlen(text) : end + 1;
    return (int)(end == NULL ? strlen(text) : (size_t)(end - text));
}

static uint32_t part_number(struct store_row *row, const char *text, int length)
{
    uint64_t value = 0;
    if (length <= 0 || tg_unsigned_parse(text, (size_t)length, UINT32_MAX, &value) != 0) {
        row->bad = true;
    }
    return (uint32_t)value;
}

uint32_t store_units(struct store_row *row, int column,
                     struct tg_unit_ref out_units[TG_MAX_UNITS_PER_HOLD])
{
    size_t whole;
    uint32_t count = 0;
    const char *text = value_of(row, column, &whole);
    const char *field;
    for (int length = store_field(&text, ',', &field); length >= 0;
         length = store_field(&text, ',', &field)) {
        const char *colon = memchr(field, ':', (size_t)length);
        if (colon == NULL || count == TG_MAX_UNITS_PER_HOLD) {
            row->bad = true;
            return 0;
        }
        const int head = (int)(colon - field);
        out_units[count].item = part_number(row, field, head);
        out_units[count].unit = part_number(row, colon + 1, length - head - 1);
        count++;
    }
    return count;
}

uint32_t store_slots(struct store_row *row, int column, uint32_t out_slots[TG_MAX_UNITS_PER_HOLD])
{
    size_t whole;
    uint32_t count = 0;
    const char *text = value_of(row, column, &whole);
    const char *field;
    for (int length = store_field(&text, ',', &field); length >= 0;
         length = store_field(&text, ',', &field)) {
        if (count == TG_MAX_UNITS_PER_HOLD) {
            row->bad = true;
            return 0;
        }
        out_slots[count++] = part_number(row, field, length);
    }
    return count;
}
