/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/now.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void clocks_move_forward(void **state)
{
    struct tg_mono before = tg_now_mono();
    uint64_t before_us = tg_now_us();
    for (int i = 0; i < 1000; i++) {
        struct tg_mono after = tg_now_mono();
        uint64_t after_us = tg_now_us();
        assert_true(after.ms >= before.ms);
        assert_true(after_us >= before_us);
        before = after;
        before_us = after_us;
    }
}

static void wall_is_of_this_century(void **state)
{
    struct tg_wall now = tg_now_wall();
    assert_true(now.ms > INT64_C(1700000000000));
    assert_true(now.ms < INT64_C(4102444800000));
}

/* Many draws through the pool's refills: no 16 bytes come twice. */
static void random_bytes_do_not_repeat(void **state)
{
    enum { DRAWS = 9000 };
    static uint64_t seen[DRAWS];
    for (size_t i = 0; i < DRAWS; i++) {
        uint8_t bytes[16];
        tg_random(bytes, sizeof(bytes));
        memcpy(&seen[i], bytes, sizeof(seen[i]));
        for (size_t j = 0; j < i && i % 100 == 0; j++) {
            assert_true(seen[i] != seen[j]);
        }
    }
}

static void random_fills_more_than_the_pool(void **state)
{
    enum { LENGTH = 200000 };
    static uint8_t bytes[LENGTH];
    tg_random(bytes, sizeof(bytes));
    size_t zeros = 0;
    for (size_t i = 0; i < LENGTH; i++) {
        zeros += bytes[i] == 0;
    }
    assert_in_range(zeros, 500, 1100); /* 781 expected; 10 standard deviations are 280 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clocks_move_forward),
        cmocka_unit_test(wall_is_of_this_century),
        cmocka_unit_test(random_bytes_do_not_repeat),
        cmocka_unit_test(random_fills_more_than_the_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
