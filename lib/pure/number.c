/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/number.h"

#include <stdbool.h>
#include <string.h>

enum { TG_UNSIGNED_DIGITS = 20 };

int tg_unsigned_parse(const char *text, size_t length, uint64_t max, uint64_t *out_value)
{
    if (length == 0 || (length > 1 && text[0] == '0')) {
        return TG_ERR_MALFORMED;
    }
    uint64_t value = 0;
    bool overflow = false;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') {
            return TG_ERR_MALFORMED;
        }
        overflow |= __builtin_mul_overflow(value, (uint64_t)10, &value);
        overflow |= __builtin_add_overflow(value, (uint64_t)(text[i] - '0'), &value);
    }
    if (overflow || value > max) {
        return TG_ERR_RANGE;
    }
    *out_value = value;
    return 0;
}

int tg_integer_parse(const char *text, size_t length, int64_t min, int64_t max, int64_t *out_value)
{
    bool negative = length > 0 && text[0] == '-';
    uint64_t magnitude = 0;
    int error = tg_unsigned_parse(text + negative, length - negative,
                                  (uint64_t)INT64_MAX + negative, &magnitude);
    if (error != 0) {
        return error;
    }
    if (negative && magnitude == 0) {
        return TG_ERR_MALFORMED; /* "-0" is another spelling of 0 */
    }
    int64_t value = negative ? -(int64_t)(magnitude - 1) - 1 : (int64_t)magnitude;
    if (value < min || value > max) {
        return TG_ERR_RANGE;
    }
    *out_value = value;
    return 0;
}

size_t tg_unsigned_format(uint64_t value, char *out_text)
{
    size_t count = 1;
    for (uint64_t limit = 10; count < TG_UNSIGNED_DIGITS && value >= limit; limit *= 10) {
        count++;
    }
    out_text[count] = '\0';
    for (size_t at = count; at > 0; at--) {
        out_text[at - 1] = (char)('0' + value % 10);
        value /= 10;
    }
    return count;
}

bool tg_counts_valid(const uint64_t *counts, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (counts[i] > TG_COUNT_MAX) {
            return false;
        }
    }
    return true;
}

int tg_money_add(uint64_t total_minor, uint64_t price_minor, uint64_t quantity,
                 uint64_t *out_total_minor)
{
    uint64_t amount = 0;
    if (__builtin_mul_overflow(price_minor, quantity, &amount) ||
        __builtin_add_overflow(total_minor, amount, &amount)) {
        return TG_ERR_RANGE;
    }
    *out_total_minor = amount;
    return 0;
}
