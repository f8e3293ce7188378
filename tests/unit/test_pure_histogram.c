/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/histogram.h"

static void an_empty_one_answers_zero(void **state)
{
    struct tg_histogram histogram = {0};
    assert_true(tg_histogram_at_us(&histogram, 500) == 0);
    assert_true(tg_histogram_below(&histogram, UINT64_MAX) == 0);
}

/* One value alone: every share of it is told within 12.5 %, never too low. */
static void the_error_is_bounded(void **state)
{
    for (uint64_t us = 0; us < UINT64_C(1) << 30; us += us / 37 + 1) {
        struct tg_histogram histogram = {0};
        tg_histogram_add(&histogram, us);
        for (unsigned share = 0; share <= 1000; share += 250) {
            uint64_t told = tg_histogram_at_us(&histogram, share);
            assert_true(told >= us && told - us <= us / 8);
        }
        assert_true(tg_histogram_below(&histogram, tg_histogram_at_us(&histogram, 1000)) == 1);
        assert_true(us == 0 || tg_histogram_below(&histogram, us - us / 8 - 1) == 0);
    }
}

static void shares_split_the_values(void **state)
{
    struct tg_histogram histogram = {0};
    for (unsigned i = 0; i < 990; i++) {
        tg_histogram_add(&histogram, 100);
    }
    for (unsigned i = 0; i < 10; i++) {
        tg_histogram_add(&histogram, 100000);
    }
    assert_true(histogram.count == 1000 && histogram.sum_us == 990 * 100 + 10 * 100000);
    assert_true(tg_histogram_at_us(&histogram, 500) < 113);
    assert_true(tg_histogram_at_us(&histogram, 990) < 113);
    assert_true(tg_histogram_at_us(&histogram, 991) >= 100000);
    assert_true(tg_histogram_at_us(&histogram, 5000) >= 100000);
    assert_true(tg_histogram_below(&histogram, 1000) == 990);
}

static void a_share_includes_the_value_it_falls_on(void **state)
{
    struct tg_histogram histogram = {0};
    tg_histogram_add(&histogram, 1);
    tg_histogram_add(&histogram, 100);
    tg_histogram_add(&histogram, 10000);
    assert_true(tg_histogram_at_us(&histogram, 333) == 1);
    assert_true(tg_histogram_at_us(&histogram, 334) >= 100 &&
                tg_histogram_at_us(&histogram, 334) < 113);
    assert_true(tg_histogram_at_us(&histogram, 667) >= 10000);
}

static void endless_values_land_in_the_last_bucket(void **state)
{
    struct tg_histogram histogram = {0};
    tg_histogram_add(&histogram, UINT64_MAX);
    assert_true(histogram.buckets[TG_HISTOGRAM_BUCKETS - 1] == 1);
    assert_true(tg_histogram_at_us(&histogram, 999) > UINT64_C(1000000000));
}

static void merging_adds(void **state)
{
    struct tg_histogram left = {0};
    struct tg_histogram right = {0};
    tg_histogram_add(&left, 10);
    tg_histogram_add(&right, 10);
    tg_histogram_add(&right, 5000);
    tg_histogram_merge(&left, &right);
    assert_true(left.count == 3 && left.sum_us == 5020);
    assert_true(tg_histogram_below(&left, 20) == 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_one_answers_zero),
        cmocka_unit_test(the_error_is_bounded),
        cmocka_unit_test(shares_split_the_values),
        cmocka_unit_test(endless_values_land_in_the_last_bucket),
        cmocka_unit_test(a_share_includes_the_value_it_falls_on),
        cmocka_unit_test(merging_adds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
