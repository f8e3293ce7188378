/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/hold_record.h"

#include <stdio.h>
#include <string.h>

#define TAG "AAAAAAAAAAAAAAAAAAAAAA"
#define TAG2 "gHy1rD5Q21Yh9ECuu-vnTw"

static int parse(const char *text, struct tg_hold_record *out_record)
{
    return tg_hold_record_parse(text, strlen(text), out_record);
}

static void a_known_record(void **state)
{
    static const char text[] =
        TAG2 " 29000000 1796119200123 " TAG " 0:4711,4712;3:0 0,1,5 a user with spaces ";
    struct tg_hold_record record = {0};
    char again[TG_HOLD_RECORD_BYTES];
    assert_int_equal(parse(text, &record), 0);
    assert_int_equal(record.place[0], 0x80);
    assert_true(record.window == 29000000 && record.deadline_ms == 1796119200123);
    assert_int_equal(record.unit_count, 3);
    assert_int_equal(record.units[1].item, 0);
    assert_int_equal(record.units[1].unit, 4712);
    assert_int_equal(record.units[2].item, 3);
    assert_int_equal(record.units[2].unit, 0);
    assert_int_equal(record.slots[2], 5);
    assert_int_equal(record.user_length, 19);
    assert_memory_equal(record.user, "a user with spaces ", 19);
    assert_int_equal(tg_hold_record_format(&record, again), strlen(text));
    assert_string_equal(again, text);
}

static void other_forms_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        TAG,
        TAG " 1 2 " TAG " 0:1 0",
        TAG " 1 2 " TAG " 0:1 0 ",
        TAG "  1 2 " TAG " 0:1 0 u",
        " " TAG " 1 2 " TAG " 0:1 0 u",
        TAG " 01 2 " TAG " 0:1 0 u",
        TAG " +1 2 " TAG " 0:1 0 u",
        TAG " 1 -2 " TAG " 0:1 0 u",
        TAG " 1 2.0 " TAG " 0:1 0 u",
        TAG " 1 1e+06 " TAG " 0:1 0 u",
        TAG " 1 9223372036854775808 " TAG " 0:1 0 u",
        TAG " 18446744073709551616 2 " TAG " 0:1 0 u",
        TAG "A 1 2 " TAG " 0:1 0 u",
        "AAAAAAAAAAAAAAAAAAAAAB 1 2 " TAG " 0:1 0 u", /* trailing bits */
        "AAAAAAAAAAAAAAAAAAAAA= 1 2 " TAG " 0:1 0 u",
        TAG " 1 2 " TAG " 0:1,1 0,1 u", /* a unit twice */
        TAG " 1 2 " TAG " 0:1;2:5;0:1 0,1,2 u",
        TAG " 1 2 " TAG " 0:1,2 0,0 u",   /* a slot twice */
        TAG " 1 2 " TAG " 0:1;0:2 0,1 u", /* one item, two neighbouring groups */
        TAG " 1 2 " TAG " 0:1,2 0 u",     /* slots missing */
        TAG " 1 2 " TAG " 0:1 0,1 u",     /* slots too many */
        TAG " 1 2 " TAG " 0: 0 u",
        TAG " 1 2 " TAG " 0:1, 0 u",
        TAG " 1 2 " TAG " 0:1; 0 u",
        TAG " 1 2 " TAG " 0:1:2 0 u",
        TAG " 1 2 " TAG " 1 0 u",
        TAG " 1 2 " TAG "  0 u",
        TAG " 1 2 " TAG " 32:1 0 u",      /* item out of bounds */
        TAG " 1 2 " TAG " 0:1000000 0 u", /* unit out of bounds */
        TAG " 1 2 " TAG " 0:1 64 u",      /* slot out of bounds */
        TAG " 1 2 " TAG " 0:1 0 \xff",
        TAG " 1 2 " TAG " 0:1 0 u\n",
    };
    struct tg_hold_record record = {.window = 99};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(parse(bad[i], &record), TG_ERR_MALFORMED);
        assert_true(record.window == 99);
    }
    static const char with_nul[] = TAG " 1 2 " TAG " 0:1 0 ab\0evil";
    assert_int_equal(tg_hold_record_parse(with_nul, sizeof(with_nul) - 1, &record),
                     TG_ERR_MALFORMED);
    assert_int_equal(parse(TAG " 1 2 " TAG " 0:1 0 u", &record), 0);
    assert_int_equal(parse(TAG " 1 2 " TAG " 31:999999 63 u", &record), 0);
}

static void every_cut_is_refused(void **state)
{
    static const char text[] = TAG " 1 2 " TAG " 0:1 0 u";
    struct tg_hold_record record = {0};
    for (size_t length = 0; length < sizeof(text) - 1; length++) {
        char *exact = test_malloc(length + 1); /* guarded: reading behind it is seen */
        memcpy(exact, text, length);
        assert_int_equal(tg_hold_record_parse(exact, length, &record), TG_ERR_MALFORMED);
        test_free(exact);
    }
}

static void the_longest_record_fits_and_one_more_unit_does_not(void **state)
{
    struct tg_hold_record record = {.window = UINT64_MAX,
                                    .deadline_ms = INT64_MAX,
                                    .unit_count = TG_MAX_UNITS_PER_HOLD,
                                    .user_length = TG_MAX_USER_BYTES};
    struct tg_hold_record back = {0};
    char text[2 * TG_HOLD_RECORD_BYTES];
    memset(record.user, 'u', sizeof(record.user));
    for (uint32_t i = 0; i < TG_MAX_UNITS_PER_HOLD; i++) {
        record.units[i] = (struct tg_unit_ref){30 + i % 2, 999000 + i};
        record.slots[i] = i;
    }
    size_t length = tg_hold_record_format(&record, text);
    assert_true(length < TG_HOLD_RECORD_BYTES);
    assert_int_equal(tg_hold_record_parse(text, length, &back), 0);
    assert_memory_equal(&back, &record, sizeof(record));

    length = (size_t)snprintf(text, sizeof(text), TAG " 1 2 " TAG " 0:0");
    for (unsigned i = 1; i <= TG_MAX_UNITS_PER_HOLD; i++) {
        length += (size_t)snprintf(text + length, sizeof(text) - length, ",%u", i);
    }
    (void)snprintf(text + length, sizeof(text) - length, " 0 u");
    assert_int_equal(parse(text, &back), TG_ERR_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_record),
        cmocka_unit_test(other_forms_are_refused),
        cmocka_unit_test(every_cut_is_refused),
        cmocka_unit_test(the_longest_record_fits_and_one_more_unit_does_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
