/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/error.h"
#include "lib/pure/reason.h"

#include <errno.h>
#include <string.h>

static void every_code_finds_its_reason(void **state)
{
    for (unsigned i = 0; i < TG_REASON_COUNT; i++) {
        enum tg_reason reason = (enum tg_reason)i;
        assert_int_equal(tg_reason_from_code(tg_reason_code(reason)), reason);
        const struct tg_reason_row *row = tg_reason_row(reason);
        assert_non_null(row->title);
        assert_true(strlen(row->detail) > 0);
        assert_true(row->status == 0 || (row->status >= 200 && row->status < 600));
    }
}

static void unknown_codes_are_no_reason(void **state)
{
    static const char *const unknown[] = {"nope", "SOLD_OUT", "sold_out ", " sold_out", "sold"};
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        assert_int_equal(tg_reason_from_code(unknown[i]), TG_REASON_COUNT);
    }
    assert_int_equal(tg_reason_from_code(""), TG_REASON_NONE);
    assert_int_equal(tg_reason_from_code(NULL), TG_REASON_NONE);
}

static void retry_advice_is_taken_from_the_catalogue(void **state)
{
    assert_int_equal(tg_reason_row(TG_REASON_TRY_AGAIN)->retry, TG_RETRY_LATER);
    assert_int_equal(tg_reason_row(TG_REASON_SALE_CLOSED)->retry, TG_RETRY_NEVER);
    assert_int_equal(tg_reason_row(TG_REASON_PASS_EXPIRED)->retry, TG_RETRY_FRESH);
    assert_int_equal(tg_reason_row(TG_REASON_SOLD_OUT)->status, 409);
}

static void every_error_has_a_sentence(void **state)
{
    for (int error = TG_ERR_SETTING; error <= TG_ERR_MALFORMED; error++) {
        assert_string_not_equal(tg_error_text(error), "unknown error");
    }
    assert_string_equal(tg_error_text(-ENOENT), "No such file or directory");
    assert_string_equal(tg_error_text(-999), "unknown error");
    assert_string_equal(tg_error_text(-5000), "unknown error");
    assert_string_equal(tg_error_text(0), "no error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_finds_its_reason),
        cmocka_unit_test(unknown_codes_are_no_reason),
        cmocka_unit_test(retry_advice_is_taken_from_the_catalogue),
        cmocka_unit_test(every_error_has_a_sentence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
