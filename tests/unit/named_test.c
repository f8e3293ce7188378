/* SPDX-License-Identifier: Apache-2.0
 * Part of every test program: CMOCKA_TEST_FILTER=name in the environment runs only that test. */
#include "tests/unit/cmocka_tests.h"

#include <stdlib.h>

__attribute__((constructor)) static void run_only_what_is_named(void)
{
    cmocka_set_test_filter(getenv("CMOCKA_TEST_FILTER"));
}
