/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/rate.h"

#include <string.h>

static struct tg_rate rate;

static void begin(uint64_t per_second, uint64_t burst)
{
    memset(&rate, 0, sizeof(rate));
    rate.interval_us = per_second > 0 ? 1000000 / per_second : 0;
    rate.burst = burst;
}

static void a_burst_then_the_rate(void **state)
{
    const uint64_t now = 5000000;
    begin(10, 3);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tg_rate_ask(&rate, 7, now), 0);
    }
    assert_int_equal(tg_rate_ask(&rate, 7, now), 100000);
    assert_int_equal(tg_rate_ask(&rate, 7, now + 40000), 60000);
    assert_int_equal(tg_rate_ask(&rate, 7, now + 100000), 0);
    assert_int_equal(tg_rate_ask(&rate, 7, now + 100000), 100000);
}

/* Being refused is not counted: who goes on asking is let through at the rate, and not never. */
static void the_impatient_get_the_rate(void **state)
{
    unsigned answered = 0;
    begin(10, 5);
    for (uint64_t now = 1000000; now < 11000000; now += 20000) { /* 50 a second for 10 s */
        answered += tg_rate_ask(&rate, 7, now) == 0;
    }
    assert_in_range(answered, 100, 105);
}

static void one_does_not_cost_another(void **state)
{
    begin(10, 1);
    assert_int_equal(tg_rate_ask(&rate, 1, 1000000), 0);
    assert_int_not_equal(tg_rate_ask(&rate, 1, 1000000), 0);
    assert_int_equal(tg_rate_ask(&rate, 2, 1000000), 0);
}

static void no_limit_is_no_limit(void **state)
{
    begin(0, 1);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(tg_rate_ask(&rate, 7, 1), 0);
    }
}

/* Twice as many callers as the table holds: each may be forgotten, none is refused for another. */
static void a_crowd_is_never_refused_for_others(void **state)
{
    begin(10, 1);
    for (uint64_t key = 1; key <= 2ULL * TG_MAX_RATE_CELLS; key++) {
        assert_int_equal(tg_rate_ask(&rate, key * 0x9e3779b97f4a7c15ULL, 1000000), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_then_the_rate),
        cmocka_unit_test(the_impatient_get_the_rate),
        cmocka_unit_test(one_does_not_cost_another),
        cmocka_unit_test(no_limit_is_no_limit),
        cmocka_unit_test(a_crowd_is_never_refused_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
