/* SPDX-License-Identifier: Apache-2.0
 * SQL parameters as text: arrays built element by element in growing buffers, and the columns of
 * results read back, checked. A column that is not what it should be makes the whole result
 * malformed: a database that lies is an error, not a guess. */
#ifndef LEDGER_STORE_TEXT_H
#define LEDGER_STORE_TEXT_H

#include "services/ledger/store.h"

#include <libpq-fe.h>

/* A growing text; reused from statement to statement. */
struct store_text {
    char *data;
    size_t length, capacity;
};
void store_text_free(struct store_text *text);

/* Array literals: begin, add elements, end. Text elements are quoted, so any bytes but NUL may be
 * in them. */
void store_array_begin(struct store_text *text);
void store_array_number(struct store_text *text, int64_t value);
void store_array_text(struct store_text *text, const char *value);
void store_array_bytes(struct store_text *text, const uint8_t *bytes, size_t length);
void store_array_end(struct store_text *text);

/* "\x..." for one bytea; NUL-terminated. */
void store_bytes(struct store_text *text, const uint8_t *bytes, size_t length);

/* One row of a result. `bad` gathers: look at it once at the end. */
struct store_row {
    const PGresult *result;
    int row;
    bool bad;
};
int64_t store_number(struct store_row *row, int column);
uint32_t store_small(struct store_row *row, int column);
bool store_flag(struct store_row *row, int column);
void store_copy(struct store_row *row, int column, char *out_text, size_t capacity);
uint32_t store_bytes_read(struct store_row *row, int column, uint8_t *out_bytes, size_t capacity);
enum ledger_state store_state(struct store_row *row, int column);
enum tg_reason store_reason(struct store_row *row, int column);
uint32_t store_units(struct store_row *row, int column,
                     struct tg_unit_ref out_units[TG_MAX_UNITS_PER_HOLD]);
uint32_t store_slots(struct store_row *row, int column, uint32_t out_slots[TG_MAX_UNITS_PER_HOLD]);

/* The next field of "a;b;c" up to `separator`: moves *in_text on; its length, or -1 at the end. */
int store_field(const char **in_text, char separator, const char **out_field);

#endif
