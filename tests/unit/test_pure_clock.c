/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/clock.h"

#include <string.h>
#include <time.h>

static void known_instants_are_written(void **state)
{
    static const struct {
        int64_t ms;
        const char *text;
    } known[] = {{0, "1970-01-01T00:00:00.000Z"},
                 {1796119200123, "2026-12-01T10:00:00.123Z"},
                 {951827696000, "2000-02-29T12:34:56.000Z"},
                 {4107542399999, "2100-02-28T23:59:59.999Z"},
                 {4107542400000, "2100-03-01T00:00:00.000Z"},
                 {253402300799999, "9999-12-31T23:59:59.999Z"}};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        char text[TG_RFC3339_BYTES];
        struct tg_wall back = {.ms = -1};
        assert_int_equal(tg_wall_format((struct tg_wall){known[i].ms}, text), 0);
        assert_string_equal(text, known[i].text);
        assert_int_equal(tg_wall_parse(text, &back), 0);
        assert_true(back.ms == known[i].ms);
    }
}

/* The C library's calendar is the other opinion; steps of a prime number of seconds meet every
 * month and leap rule. */
static void calendar_agrees_with_the_c_library(void **state)
{
    for (int64_t second = 0; second < 253402300800; second += 1299709) {
        char text[TG_RFC3339_BYTES];
        char expected[48];
        struct tm parts;
        time_t when = (time_t)second;
        assert_non_null(gmtime_r(&when, &parts));
        assert_true(strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%S.007Z", &parts) > 0);
        assert_int_equal(tg_wall_format((struct tg_wall){second * 1000 + 7}, text), 0);
        assert_string_equal(text, expected);
        struct tg_wall back = {.ms = -1};
        assert_int_equal(tg_wall_parse(text, &back), 0);
        assert_true(back.ms == second * 1000 + 7);
    }
}

static void years_beyond_are_not_written(void **state)
{
    char text[TG_RFC3339_BYTES];
    assert_int_equal(tg_wall_format((struct tg_wall){-1}, text), TG_ERR_RANGE);
    assert_int_equal(tg_wall_format((struct tg_wall){253402300800000}, text), TG_ERR_RANGE);
    assert_int_equal(tg_wall_format((struct tg_wall){INT64_MAX}, text), TG_ERR_RANGE);
    assert_int_equal(tg_wall_format((struct tg_wall){INT64_MIN}, text), TG_ERR_RANGE);
}

static void zones_and_fractions_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"2026-12-01T10:00:00Z", 1796119200000},
                {"2026-12-01T11:00:00+01:00", 1796119200000},
                {"2026-12-01T04:30:00-05:30", 1796119200000},
                {"2026-12-01T10:00:00.5Z", 1796119200500},
                {"2026-12-01T10:00:00.123456789Z", 1796119200123},
                {"1970-01-01T23:59:00+23:59", 0},
                {"2024-02-29T00:00:00Z", 1709164800000}};
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        struct tg_wall wall = {.ms = -1};
        assert_int_equal(tg_wall_parse(good[i].text, &wall), 0);
        assert_true(wall.ms == good[i].ms);
    }
}

static void near_times_are_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "2026-12-01",
                                      "2026-12-01T10:00:00",
                                      "2026-12-01 10:00:00Z",
                                      "2026-12-01t10:00:00Z",
                                      "2026-12-01T10:00:00z",
                                      "2026-12-01T10:00Z",
                                      "2026-12-01T24:00:00Z",
                                      "2026-12-01T10:60:00Z",
                                      "2026-12-01T10:00:60Z",
                                      "2026-02-29T10:00:00Z",
                                      "2100-02-29T10:00:00Z",
                                      "2026-13-01T10:00:00Z",
                                      "2026-00-01T10:00:00Z",
                                      "2026-12-00T10:00:00Z",
                                      "2026-11-31T10:00:00Z",
                                      "26-12-01T10:00:00Z",
                                      "1969-12-31T23:59:59Z",
                                      "1970-01-01T00:00:00+00:01",
                                      "9999-12-31T23:59:59-00:01",
                                      "2026-12-01T10:00:00.Z",
                                      "2026-12-01T10:00:00.1234567890Z",
                                      "2026-12-01T10:00:00+01",
                                      "2026-12-01T10:00:00+0100",
                                      "2026-12-01T10:00:00+24:00",
                                      "2026-12-01T10:00:00+01:60",
                                      "2026-12-01T10:00:00+01:00x",
                                      "2026-12-01T10:00:00Z ",
                                      " 2026-12-01T10:00:00Z",
                                      "2026-12-01T10:00:00ZZ",
                                      "+026-12-01T10:00:00Z",
                                      "2026-1--01T10:00:00Z"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct tg_wall wall = {.ms = 99};
        assert_int_equal(tg_wall_parse(bad[i], &wall), TG_ERR_MALFORMED);
        assert_true(wall.ms == 99);
    }
}

static void durations_carry_a_unit(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } good[] = {{"0s", 0},       {"250ms", 250},  {"5s", 5000},
                {"10m", 600000}, {"2h", 7200000}, {"9223372036854775807ms", INT64_MAX}};
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        int64_t ms = -1;
        assert_int_equal(tg_duration_parse(good[i].text, &ms), 0);
        assert_true(ms == good[i].ms);
    }
    static const char *const malformed[] = {"",    "5",    "s",    "5 s",   " 5s", "5s ",  "+5s",
                                            "-5s", "05s",  "1e3s", "1.5s",  "5S",  "5sec", "5d",
                                            "5us", "5mss", "ms5",  "1h30m", "0x5s"};
    for (size_t i = 0; i < COUNT_OF(malformed); i++) {
        int64_t ms = 99;
        assert_int_equal(tg_duration_parse(malformed[i], &ms), TG_ERR_MALFORMED);
        assert_true(ms == 99);
    }
    static const char *const large[] = {"9223372036854775808ms", "9223372036854776s",
                                        "2562047788016h", "99999999999999999999999h"};
    for (size_t i = 0; i < COUNT_OF(large); i++) {
        int64_t ms = 99;
        assert_int_equal(tg_duration_parse(large[i], &ms), TG_ERR_RANGE);
        assert_true(ms == 99);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_instants_are_written),
        cmocka_unit_test(calendar_agrees_with_the_c_library),
        cmocka_unit_test(years_beyond_are_not_written),
        cmocka_unit_test(zones_and_fractions_are_read),
        cmocka_unit_test(near_times_are_refused),
        cmocka_unit_test(durations_carry_a_unit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
