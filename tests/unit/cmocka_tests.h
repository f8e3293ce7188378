/* SPDX-License-Identifier: Apache-2.0
 * What cmocka wants included before itself, once. */
#ifndef TG_TESTS_CMOCKA_TESTS_H
#define TG_TESTS_CMOCKA_TESTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
