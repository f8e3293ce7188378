/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/gate_key.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

static void names_carry_sale_shard_and_epoch(void **state)
{
    char text[TG_GATE_KEY_BYTES];
    assert_int_equal(tg_gate_key_format("sku_991", 0, 7, TG_GATE_KEY_HELD, 3, text),
                     strlen("tg:{sku_991.0}:7:held"));
    assert_string_equal(text, "tg:{sku_991.0}:7:held");
    (void)tg_gate_key_format("sku_991", 12, 1, TG_GATE_KEY_FREE, 3, text);
    assert_string_equal(text, "tg:{sku_991.12}:1:free:3");
}

static void the_longest_name_fits(void **state)
{
    char sale[TG_MAX_SALE_NAME_BYTES + 1], text[TG_GATE_KEY_BYTES];
    memset(sale, 'a', sizeof sale - 1);
    sale[sizeof sale - 1] = '\0';
    size_t length =
        tg_gate_key_format(sale, UINT32_MAX, UINT64_MAX, TG_GATE_KEY_FREE, UINT32_MAX, text);
    assert_int_equal(length, strlen(text));
    assert_true(length < TG_GATE_KEY_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_carry_sale_shard_and_epoch),
        cmocka_unit_test(the_longest_name_fits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
