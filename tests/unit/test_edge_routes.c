/* SPDX-License-Identifier: Apache-2.0
 * Paths and queries: decoded once, one meaning each. */
#include "services/edge/routes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define ID "res_00000000000000000000000001"

static const struct {
    const char *path;
    enum edge_route route;
    const char *sale, *reservation, *file;
} good[] = {
    {"/sale/a", EDGE_ROUTE_PAGE, "a", "", ""},
    {"/sale/a/wait", EDGE_ROUTE_WAIT, "a", "", ""},
    {"/sale/a/policy", EDGE_ROUTE_POLICY, "a", "", ""},
    {"/sale/a/board", EDGE_ROUTE_BOARD, "a", "", ""},
    {"/sale/a/ticket", EDGE_ROUTE_TICKET, "a", "", ""},
    {"/sale/a/status", EDGE_ROUTE_STATUS, "a", "", ""},
    {"/sale/a/reserve", EDGE_ROUTE_RESERVE, "a", "", ""},
    {"/s%61le/%41b%5F1/%72eserve", EDGE_ROUTE_RESERVE, "Ab_1", "", ""},
    {"/reservations/" ID, EDGE_ROUTE_RESERVATION, "", ID, ""},
    {"/reservations/" ID "/confirm", EDGE_ROUTE_CONFIRM, "", ID, ""},
    {"/reservations/" ID "/extend", EDGE_ROUTE_EXTEND, "", ID, ""},
    {"/reservations/" ID "/cancel", EDGE_ROUTE_CANCEL, "", ID, ""},
    {"/reservations/res_1/cancel", EDGE_ROUTE_CANCEL, "", "", ""},
    {"/.well-known/jwks.json", EDGE_ROUTE_JWKS, "", "", ""},
    {"/reasons", EDGE_ROUTE_REASONS, "", "", ""},
    {"/waiting/page.css", EDGE_ROUTE_FILE, "", "", "page.css"},
};

static const char *const bad[] = {
    "",
    "/",
    "*",
    "/sale",
    "/sale/",
    "/sale//",
    "/sale/a/",
    "//sale/a",
    "/sale//a",
    "/sale/a//wait",
    "/sale/a/wait/",
    "/sale/a/wait/x",
    "/Sale/a",
    "/sale/a/Wait",
    "/sale/./a",
    "/sale/../a",
    "/sale/a/..",
    "/sale/%2e/a",
    "/sale/%2E%2e/a",
    "/sale/a%2Fwait",
    "/sale/a%5cwait",
    "/sale/a\\wait",
    "/sale/a%00/wait",
    "/sale/a%0a/wait",
    "/sale/a%20/wait",
    "/sale/a%7F/wait",
    "/sale/a%/wait",
    "/sale/a%4/wait",
    "/sale/a%4",
    "/sale/a%",
    "/sale/a%g0/wait",
    "/sale/a%0g/wait",
    "/sale/a%2561/../x",
    "/reservations",
    "/reservations/",
    "/reservations/res_00000000000000000000000001/pay",
    "/reservations/res_00000000000000000000000001/confirm/x",
    "/.well-known/jwks.json/x",
    "/.well-known/jwks",
    "/waiting",
    "/waiting/a/b",
    "/reasons/",
    "/reasons/x",
    "/metrics",
    "/livez",
};

static void test_paths_that_are_served(void **state)
{
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct edge_target target;
        edge_route(good[i].path, &target);
        assert_int_equal(target.route, good[i].route);
        assert_string_equal(target.sale, good[i].sale);
        assert_string_equal(target.reservation, good[i].reservation);
        assert_string_equal(target.file, good[i].file);
    }
}

static void test_case_19_paths_that_are_not(void **state)
{
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        struct edge_target target;
        edge_route(bad[i], &target);
        if (target.route != EDGE_ROUTE_NONE) {
            print_error("%s\n", bad[i]);
        }
        assert_int_equal(target.route, EDGE_ROUTE_NONE);
    }
}

static void test_long_segments(void **state)
{
    char path[512];
    struct edge_target target;
    char name[TG_MAX_SALE_NAME_BYTES + 2];
    memset(name, 'x', sizeof(name) - 1);
    name[TG_MAX_SALE_NAME_BYTES] = '\0';
    snprintf(path, sizeof(path), "/sale/%s/board", name);
    edge_route(path, &target);
    assert_int_equal(target.route, EDGE_ROUTE_BOARD);
    assert_string_equal(target.sale, name);
    name[TG_MAX_SALE_NAME_BYTES] = 'x';
    name[TG_MAX_SALE_NAME_BYTES + 1] = '\0';
    snprintf(path, sizeof(path), "/sale/%s/board", name);
    edge_route(path, &target);
    assert_int_equal(target.route, EDGE_ROUTE_NONE);
}

/* Every byte, plain and encoded, in a sale's name: it is kept as one byte of the name, or nothing
 * is served. */
static void test_every_byte_in_a_name(void **state)
{
    for (int byte = 1; byte < 256; byte++) {
        char plain[16] = "/sale/aXb", encoded[16];
        struct edge_target by_plain, by_encoded;
        plain[7] = (char)byte;
        snprintf(encoded, sizeof(encoded), "/sale/a%%%02Xb", byte);
        edge_route(plain, &by_plain);
        edge_route(encoded, &by_encoded);
        if (by_encoded.route == EDGE_ROUTE_PAGE) {
            const char name[] = {'a', (char)byte, 'b', '\0'};
            assert_string_equal(by_encoded.sale, name);
        }
        if (byte != '%' && byte != '/') {
            assert_int_equal(by_plain.route, by_encoded.route);
            assert_string_equal(by_plain.sale, by_encoded.sale);
        }
    }
}

static void test_every_route_has_a_row(void **state)
{
    for (int route = 0; route < EDGE_ROUTE_COUNT; route++) {
        const struct edge_route_row *row = edge_route_row((enum edge_route)route);
        assert_non_null(row->name);
        assert_true(row->roles != 0);
        assert_true(!row->post || row->personal); /* nothing that changes something is shared */
    }
}

static void test_query(void **state)
{
    const char *value = NULL;
    size_t length = 0;
    assert_int_equal(edge_query("", "token", &value, &length), 0);
    assert_int_equal(edge_query("token", "token", &value, &length), 0);
    assert_int_equal(edge_query("xtoken=a&tokenx=b", "token", &value, &length), 0);
    assert_int_equal(edge_query("a=1&token=abc&b", "token", &value, &length), 1);
    assert_int_equal(length, 3);
    assert_memory_equal(value, "abc", 3);
    assert_int_equal(edge_query("token=&token=b&&token=c", "token", &value, &length), 3);
    assert_int_equal(length, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_paths_that_are_served),
        cmocka_unit_test(test_case_19_paths_that_are_not),
        cmocka_unit_test(test_long_segments),
        cmocka_unit_test(test_every_byte_in_a_name),
        cmocka_unit_test(test_every_route_has_a_row),
        cmocka_unit_test(test_query),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
