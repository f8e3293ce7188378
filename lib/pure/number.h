/* SPDX-License-Identifier: Apache-2.0
 * Strict decimal integers and checked sums. "1e+06", "+1", "01", " 1" and "" are refused, never
 * read as something near. */
#ifndef TG_PURE_NUMBER_H
#define TG_PURE_NUMBER_H

#include "lib/pure/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The whole of text[0..length) as a decimal in [min, max]. 0, TG_ERR_MALFORMED or TG_ERR_RANGE. */
TG_MUST_CHECK int tg_integer_parse(const char *text, size_t length, int64_t min, int64_t max,
                                   int64_t *out_value);
TG_MUST_CHECK int tg_unsigned_parse(const char *text, size_t length, uint64_t max,
                                    uint64_t *out_value);

/* Decimal digits into out_text (at least 21 bytes, NUL added). Returns the length. About 10 ns. */
size_t tg_unsigned_format(uint64_t value, char *out_text);

/* Counts of peers above this are refused: sums of them cannot overflow, and readers of JSON keep
 * them exact. */
#define TG_COUNT_MAX ((uint64_t)1 << 53)
/* All of them are at most TG_COUNT_MAX. */
bool tg_counts_valid(const uint64_t *counts, size_t length);

static inline uint64_t tg_smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t tg_larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* price x quantity summed: minor units of one currency. 0 or TG_ERR_RANGE on overflow. */
TG_MUST_CHECK int tg_money_add(uint64_t total_minor, uint64_t price_minor, uint64_t quantity,
                               uint64_t *out_total_minor);

#endif
