/* SPDX-License-Identifier: Apache-2.0
 * Parameters of statements as text, and columns of results read back: what is not as it should be
 * is told, never guessed. */
#include "tests/unit/cmocka_tests.h"

#include "services/ledger/store_text.h"

#include <string.h>

static void arrays_hold_any_text(void **state)
{
    struct store_text text = {0};
    store_array_begin(&text);
    store_array_end(&text);
    assert_string_equal(text.data, "{}");
    store_array_begin(&text);
    store_array_text(&text, "plain");
    store_array_text(&text, "");
    store_array_text(&text, "a\"b\\c,{}' NULL");
    store_array_end(&text);
    assert_string_equal(text.data, "{\"plain\",\"\",\"a\\\"b\\\\c,{}' NULL\"}");
    store_array_begin(&text);
    store_array_number(&text, 0);
    store_array_number(&text, -1);
    store_array_number(&text, INT64_MAX);
    store_array_end(&text);
    assert_string_equal(text.data, "{0,-1,9223372036854775807}");
    store_array_begin(&text);
    store_array_bytes(&text, (const uint8_t *)"\0\xff\"", 3);
    store_array_bytes(&text, (const uint8_t *)"", 0);
    store_array_end(&text);
    assert_string_equal(text.data, "{\"\\\\x00ff22\",\"\\\\x\"}");
    store_bytes(&text, (const uint8_t *)"\x01\x02", 2);
    assert_string_equal(text.data, "\\x0102");
    store_text_free(&text);
}

static void a_growing_text_keeps_what_it_has(void **state)
{
    struct store_text text = {0};
    store_array_begin(&text);
    for (int i = 0; i < 10000; i++) {
        store_array_number(&text, i);
    }
    store_array_end(&text);
    assert_int_equal(text.length, strlen(text.data));
    assert_memory_equal(text.data, "{0,1,2,", 7);
    assert_string_equal(text.data + text.length - 11, ",9998,9999}");
    store_text_free(&text);
    assert_null(text.data);
}

/* A result of one row with these texts; NULL is SQL NULL. */
static PGresult *result_of(const char *const *values, int count)
{
    PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    PGresAttDesc columns[16] = {0};
    static char name[] = "c";
    for (int i = 0; i < count; i++) {
        columns[i].name = name;
    }
    assert_int_equal(PQsetResultAttrs(result, count, columns), 1);
    for (int i = 0; i < count; i++) {
        char copy[512];
        snprintf(copy, sizeof copy, "%s", values[i] != NULL ? values[i] : "");
        assert_int_equal(PQsetvalue(result, 0, i, values[i] != NULL ? copy : NULL,
                                    values[i] != NULL ? (int)strlen(copy) : -1),
                         1);
    }
    return result;
}

static void columns_are_read_whole(void **state)
{
    const char *const values[] = {"-5",      "7",        "t",       "text", "\\x00ff",
                                  "expired", "sold_out", "0:1,2:3", "0,1"};
    PGresult *result = result_of(values, COUNT_OF(values));
    struct store_row row = {.result = result};
    char text[5];
    uint8_t bytes[4];
    struct tg_unit_ref units[TG_MAX_UNITS_PER_HOLD];
    uint32_t slots[TG_MAX_UNITS_PER_HOLD];
    assert_int_equal(store_number(&row, 0), -5);
    assert_int_equal(store_small(&row, 1), 7);
    assert_true(store_flag(&row, 2));
    store_copy(&row, 3, text, sizeof text);
    assert_string_equal(text, "text");
    assert_int_equal(store_bytes_read(&row, 4, bytes, sizeof bytes), 2);
    assert_int_equal(bytes[1], 0xff);
    assert_int_equal(store_state(&row, 5), LEDGER_EXPIRED);
    assert_int_equal(store_reason(&row, 6), TG_REASON_SOLD_OUT);
    assert_int_equal(store_units(&row, 7, units), 2);
    assert_int_equal(units[1].item, 2);
    assert_int_equal(units[1].unit, 3);
    assert_int_equal(store_slots(&row, 8, slots), 2);
    assert_false(row.bad);
    PQclear(result);
}

static void read_as(int kind, struct store_row *row)
{
    char text[5];
    uint8_t bytes[4];
    struct tg_unit_ref units[TG_MAX_UNITS_PER_HOLD];
    uint32_t slots[TG_MAX_UNITS_PER_HOLD];
    switch (kind) {
    case 'n':
        (void)store_number(row, 0);
        break;
    case 's':
        (void)store_small(row, 0);
        break;
    case 'c':
        store_copy(row, 0, text, sizeof text);
        break;
    case 'b':
        (void)store_bytes_read(row, 0, bytes, sizeof bytes);
        break;
    case 't':
        (void)store_state(row, 0);
        break;
    case 'r':
        (void)store_reason(row, 0);
        break;
    case 'u':
        (void)store_units(row, 0, units);
        break;
    default:
        (void)store_slots(row, 0, slots);
        break;
    }
}

static void what_is_not_as_it_should_be_is_told(void **state)
{
    static const struct {
        int kind;
        const char *value;
    } bad[] = {{'n', ""},
               {'n', "1e6"},
               {'n', "12x"},
               {'n', NULL},
               {'n', "99999999999999999999"},
               {'s', "-1"},
               {'s', "4294967296"},
               {'c', "longer"},
               {'b', "00ff"},
               {'b', "\\x0"},
               {'b', "\\xzz"},
               {'b', "\\x0102030405"},
               {'t', "maybe"},
               {'r', "whatever"},
               {'u', "1"},
               {'u', "1:"},
               {'u', ":1"},
               {'u', "1:2,"
                     "x:3"},
               {'u', "1:-2"},
               {'l', "1,x"}};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        PGresult *result = result_of(&bad[i].value, 1);
        struct store_row row = {.result = result};
        read_as(bad[i].kind, &row);
        if (!row.bad) {
            fail_msg("taken as %c: %s", bad[i].kind, bad[i].value != NULL ? bad[i].value : "NULL");
        }
        PQclear(result);
    }
}

static void a_missing_column_is_told(void **state)
{
    const char *const values[] = {"1"};
    PGresult *result = result_of(values, 1);
    struct store_row row = {.result = result};
    assert_int_equal(store_number(&row, 0), 1);
    assert_false(row.bad);
    (void)store_number(&row, 1);
    assert_true(row.bad);
    PQclear(result);
}

static void lists_end(void **state)
{
    const char *text = "a;bc;;d", *field;
    assert_int_equal(store_field(&text, ';', &field), 1);
    assert_int_equal(store_field(&text, ';', &field), 2);
    assert_memory_equal(field, "bc", 2);
    assert_int_equal(store_field(&text, ';', &field), 0);
    assert_int_equal(store_field(&text, ';', &field), 1);
    assert_int_equal(store_field(&text, ';', &field), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays_hold_any_text),
        cmocka_unit_test(a_growing_text_keeps_what_it_has),
        cmocka_unit_test(columns_are_read_whole),
        cmocka_unit_test(what_is_not_as_it_should_be_is_told),
        cmocka_unit_test(a_missing_column_is_told),
        cmocka_unit_test(lists_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
