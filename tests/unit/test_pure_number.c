/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/number.h"

#include <string.h>

static int parse(const char *text, int64_t *out_value)
{
    return tg_integer_parse(text, strlen(text), INT64_MIN, INT64_MAX, out_value);
}

static void plain_integers_are_read(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {{"0", 0},
                {"7", 7},
                {"-7", -7},
                {"9223372036854775807", INT64_MAX},
                {"-9223372036854775808", INT64_MIN}};
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        int64_t value = 99;
        assert_int_equal(parse(good[i].text, &value), 0);
        assert_true(value == good[i].value);
    }
}

static void near_integers_are_refused_and_nothing_is_written(void **state)
{
    static const char *const bad[] = {
        "",    "1e+06", "1e6",   " 1",  "1 ",  "+1", "01",  "00", "-0",  "-01", "-",  "--1", "0x1",
        "1.0", "1_0",   "1,000", "-+1", "\t1", "１", "1\n", "a",  "nan", "inf", "1e", ".5"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        int64_t value = 99;
        assert_int_equal(parse(bad[i], &value), TG_ERR_MALFORMED);
        assert_true(value == 99);
    }
    int64_t value = 99;
    assert_int_equal(tg_integer_parse("1\0", 2, 0, 9, &value), TG_ERR_MALFORMED);
}

static void overflow_and_bounds_are_out_of_range(void **state)
{
    static const char *const bad[] = {"9223372036854775808", "-9223372036854775809",
                                      "18446744073709551616", "99999999999999999999999999999999"};
    int64_t value = 99;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(parse(bad[i], &value), TG_ERR_RANGE);
    }
    assert_int_equal(tg_integer_parse("11", 2, 0, 10, &value), TG_ERR_RANGE);
    assert_int_equal(tg_integer_parse("-1", 2, 0, 10, &value), TG_ERR_RANGE);
    assert_true(value == 99);
    uint64_t number = 99;
    assert_int_equal(tg_unsigned_parse("18446744073709551616", 20, UINT64_MAX, &number),
                     TG_ERR_RANGE);
    assert_int_equal(tg_unsigned_parse("-1", 2, UINT64_MAX, &number), TG_ERR_MALFORMED);
    assert_true(number == 99);
    assert_int_equal(tg_unsigned_parse("18446744073709551615", 20, UINT64_MAX, &number), 0);
    assert_true(number == UINT64_MAX);
}

static void only_the_given_length_is_read(void **state)
{
    int64_t value = 0;
    assert_int_equal(tg_integer_parse("123abc", 3, 0, 1000, &value), 0);
    assert_true(value == 123);
}

static void unsigned_is_written_and_read_back(void **state)
{
    static const uint64_t values[] = {0, 1, 9, 10, 99, 100, 4711, 1000000, UINT32_MAX, UINT64_MAX};
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        char text[21];
        uint64_t back = 1;
        size_t length = tg_unsigned_format(values[i], text);
        assert_int_equal(length, strlen(text));
        assert_int_equal(tg_unsigned_parse(text, length, UINT64_MAX, &back), 0);
        assert_true(back == values[i]);
    }
}

static void money_never_wraps(void **state)
{
    uint64_t total = 5;
    assert_int_equal(tg_money_add(100, 4900, 3, &total), 0);
    assert_true(total == 14800);
    assert_int_equal(tg_money_add(1, UINT64_MAX, 1, &total), TG_ERR_RANGE);
    assert_int_equal(tg_money_add(0, UINT64_MAX / 2 + 1, 2, &total), TG_ERR_RANGE);
    assert_true(total == 14800);
    assert_int_equal(tg_money_add(0, UINT64_MAX, 1, &total), 0);
    assert_true(total == UINT64_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_integers_are_read),
        cmocka_unit_test(near_integers_are_refused_and_nothing_is_written),
        cmocka_unit_test(overflow_and_bounds_are_out_of_range),
        cmocka_unit_test(only_the_given_length_is_read),
        cmocka_unit_test(unsigned_is_written_and_read_back),
        cmocka_unit_test(money_never_wraps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
