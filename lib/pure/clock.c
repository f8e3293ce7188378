/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/clock.h"

#include "lib/pure/number.h"

#include <stdbool.h>
#include <string.h>

enum { YEAR_FIRST = 1970, YEAR_LAST = 9999, SECOND_MS = 1000, DAY_S = 86400 };

static bool is_leap(int64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Days from 1970-01-01 to the first day of a year >= 1970. */
static int64_t days_before_year(int64_t year)
{
    int64_t past = year - 1;
    int64_t leap_days = past / 4 - past / 100 + past / 400;
    return 365 * (year - YEAR_FIRST) + leap_days - 477; /* 477 leap days up to 1969 */
}

static int64_t days_of_month(int64_t year, int64_t month)
{
    static const uint8_t days[12] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* `width` digits of value, zero-padded. */
static char *put_digits(char *at, int64_t value, int width)
{
    for (int i = width - 1; i >= 0; i--) {
        at[i] = (char)('0' + value % 10);
        value /= 10;
    }
    return at + width;
}

int tg_wall_format(struct tg_wall wall, char out_text[TG_RFC3339_BYTES])
{
    if (wall.ms < 0 || wall.ms / SECOND_MS / DAY_S >= days_before_year(YEAR_LAST + 1)) {
        return TG_ERR_RANGE;
    }
    int64_t second = wall.ms / SECOND_MS;
    int64_t day = second / DAY_S;
    second %= DAY_S;
    int64_t year = YEAR_FIRST + day / 366; /* never too late, at most some years too early */
    while (days_before_year(year + 1) <= day) {
        year++;
    }
    day -= days_before_year(year);
    int64_t month = 1;
    while (day >= days_of_month(year, month)) {
        day -= days_of_month(year, month);
        month++;
    }
    char *at = put_digits(out_text, year, 4);
    *at++ = '-';
    at = put_digits(at, month, 2);
    *at++ = '-';
    at = put_digits(at, day + 1, 2);
    *at++ = 'T';
    at = put_digits(at, second / 3600, 2);
    *at++ = ':';
    at = put_digits(at, second / 60 % 60, 2);
    *at++ = ':';
    at = put_digits(at, second % 60, 2);
    *at++ = '.';
    at = put_digits(at, wall.ms % SECOND_MS, 3);
    *at++ = 'Z';
    *at = '\0';
    return 0;
}

/* Exactly `width` digits and then `after` (unless NUL) at *at; moves *at behind them. */
static bool take_digits(const char **at, int width, char after, int64_t *out_value)
{
    int64_t value = 0;
    for (int i = 0; i < width; i++) {
        if ((*at)[i] < '0' || (*at)[i] > '9') {
            return false;
        }
        value = value * 10 + ((*at)[i] - '0');
    }
    *at += width;
    if (after != '\0') {
        if (**at != after) {
            return false;
        }
        (*at)++;
    }
    *out_value = value;
    return true;
}

/* ".1" to ".123456789"; what is finer than a millisecond is cut. */
static bool take_fraction(const char **at, int64_t *out_ms)
{
    int64_t ms = 0;
    if (**at == '.') {
        int digits = 0;
        for ((*at)++; **at >= '0' && **at <= '9'; (*at)++, digits++) {
            if (digits < 3) {
                ms = ms * 10 + (**at - '0');
            }
        }
        if (digits < 1 || digits > 9) {
            return false;
        }
        for (; digits < 3; digits++) {
            ms *= 10;
        }
    }
    *out_ms = ms;
    return true;
}

/* "Z" or "+hh:mm" up to the end of the text. */
static bool take_zone(const char *at, int64_t *out_offset_s)
{
    int64_t hours = 0;
    int64_t minutes = 0;
    if (strcmp(at, "Z") == 0) {
        *out_offset_s = 0;
        return true;
    }
    if (*at != '+' && *at != '-') {
        return false;
    }
    int64_t sign = *at++ == '-' ? -1 : 1;
    if (!take_digits(&at, 2, ':', &hours) || !take_digits(&at, 2, '\0', &minutes) || *at != '\0') {
        return false;
    }
    *out_offset_s = sign * (hours * 3600 + minutes * 60);
    return hours <= 23 && minutes <= 59;
}

static bool take_date(const char **at, int64_t *out_day)
{
    int64_t year = 0;
    int64_t month = 0;
    int64_t day = 0;
    if (!take_digits(at, 4, '-', &year) || !take_digits(at, 2, '-', &month) ||
        !take_digits(at, 2, 'T', &day) || year < YEAR_FIRST || month < 1 || month > 12 || day < 1 ||
        day > days_of_month(year, month)) {
        return false;
    }
    *out_day = days_before_year(year) + day - 1;
    for (int64_t past = 1; past < month; past++) {
        *out_day += days_of_month(year, past);
    }
    return true;
}

int tg_wall_parse(const char *text, struct tg_wall *out_wall)
{
    const char *at = text;
    int64_t day = 0;
    int64_t hour = 0;
    int64_t minute = 0;
    int64_t second = 0;
    int64_t fraction_ms = 0;
    int64_t offset_s = 0;
    if (!take_date(&at, &day) || !take_digits(&at, 2, ':', &hour) ||
        !take_digits(&at, 2, ':', &minute) || !take_digits(&at, 2, '\0', &second) || hour > 23 ||
        minute > 59 || second > 59 || !take_fraction(&at, &fraction_ms) ||
        !take_zone(at, &offset_s)) {
        return TG_ERR_MALFORMED;
    }
    int64_t seconds = day * DAY_S + hour * 3600 + minute * 60 + second - offset_s;
    if (seconds < 0 || seconds / DAY_S >= days_before_year(YEAR_LAST + 1)) {
        return TG_ERR_MALFORMED;
    }
    out_wall->ms = seconds * SECOND_MS + fraction_ms;
    return 0;
}

int tg_duration_parse(const char *text, int64_t *out_ms)
{
    static const struct {
        const char *name;
        int64_t ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    size_t digits = strspn(text, "0123456789");
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(text + digits, units[i].name) != 0) {
            continue;
        }
        int64_t count = 0;
        int64_t ms = 0;
        int error = tg_integer_parse(text, digits, 0, INT64_MAX, &count);
        if (error != 0) {
            return error;
        }
        if (__builtin_mul_overflow(count, units[i].ms, &ms)) {
            return TG_ERR_RANGE;
        }
        *out_ms = ms;
        return 0;
    }
    return TG_ERR_MALFORMED;
}
