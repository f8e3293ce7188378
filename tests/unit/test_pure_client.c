/* SPDX-License-Identifier: Apache-2.0
 * case_28: the client's address comes from the right end, without port, and from our proxies only.
 */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/client.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <string.h>

static struct tg_networks trusted(const char *text)
{
    struct tg_networks networks;
    assert_int_equal(tg_networks_parse(text, &networks), 0);
    return networks;
}

/* "?" when it is none. */
static const char *parsed(const char *text)
{
    static char shown[INET6_ADDRSTRLEN];
    uint8_t address[TG_ADDRESS_BYTES];
    if (tg_address_parse(text, strlen(text), address) != 0) {
        return "?";
    }
    assert_non_null(inet_ntop(AF_INET6, address, shown, sizeof(shown)));
    return shown;
}

static void addresses_with_and_without_port(void **state)
{
    assert_string_equal(parsed("192.0.2.7"), "::ffff:192.0.2.7");
    assert_string_equal(parsed("192.0.2.7:53211"), "::ffff:192.0.2.7");
    assert_string_equal(parsed("2001:db8::1"), "2001:db8::1");
    assert_string_equal(parsed("[2001:db8::1]"), "2001:db8::1");
    assert_string_equal(parsed("[2001:db8::1]:443"), "2001:db8::1");
    static const char *const bad[] = {"",
                                      "unknown",
                                      "1.2.3",
                                      "1.2.3.4:",
                                      "1.2.3.4:70000",
                                      "1.2.3.4 ",
                                      "[1.2.3.4]",
                                      "[2001:db8::1",
                                      "[2001:db8::1]x",
                                      "[2001:db8::1]:x",
                                      "[]",
                                      ":80",
                                      "[",
                                      "1.2.3.4:80:1",
                                      "_hidden",
                                      "fe80::1%eth0"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_string_equal(parsed(bad[i]), "?");
    }
}

static void networks_are_read_strictly(void **state)
{
    const struct tg_networks networks = trusted("10.0.0.0/8,127.0.0.1 , 2001:db8::/32");
    assert_int_equal(networks.count, 3);
    static const char *const bad[] = {"10.0.0.1/8", "10.0.0.0/33", "10.0.0.0/", "/8",       ",",
                                      "x",          "10.0.0.0/8x", "::1/129",   "[::1]/128"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct tg_networks out;
        assert_int_equal(tg_networks_parse(bad[i], &out), TG_ERR_MALFORMED);
    }
    assert_int_equal(trusted("").count, 0);
    assert_int_equal(trusted("0.0.0.0/0, ::/0").count, 2);
}

/* The client as the lines say it, the last line first; "?" when it is not known. */
static const char *client(const char *networks, const char *peer, const char *const lines[],
                          size_t count)
{
    static char shown[INET6_ADDRSTRLEN];
    const struct tg_networks ours = trusted(networks);
    uint8_t address[TG_ADDRESS_BYTES];
    assert_int_equal(tg_address_parse(peer, strlen(peer), address), 0);
    bool walking = tg_networks_hold(&ours, address);
    int error = 0;
    while (walking && count > 0) {
        walking = tg_client_walk(&ours, lines[--count], address, &error);
    }
    if (error != 0 || walking) {
        return "?";
    }
    assert_non_null(inet_ntop(AF_INET6, address, shown, sizeof(shown)));
    return shown;
}

static const char *by(const char *networks, const char *peer, const char *line)
{
    return client(networks, peer, &line, 1);
}

static void case_28_the_right_most_hop_that_is_not_ours(void **state)
{
    assert_string_equal(by("10.0.0.0/8", "10.0.0.1", "1.2.3.4, 192.0.2.7"), "::ffff:192.0.2.7");
    assert_string_equal(by("10.0.0.0/8", "10.0.0.1", "1.2.3.4,192.0.2.7:53211,10.9.9.9"),
                        "::ffff:192.0.2.7");
    assert_string_equal(by("10.0.0.0/8", "10.0.0.1", "1.2.3.4, [2001:db8::1]:443"), "2001:db8::1");
    assert_string_equal(by("10.0.0.0/8", "198.51.100.9", "1.2.3.4"), "::ffff:198.51.100.9");
    assert_string_equal(by("", "198.51.100.9", "1.2.3.4"), "::ffff:198.51.100.9");
    assert_string_equal(by("10.0.0.0/8", "10.0.0.1", "1.2.3.4, garbage"), "?");
    assert_string_equal(by("10.0.0.0/8", "10.0.0.1", ""), "?");
    assert_string_equal(by("10.0.0.0/8", "10.0.0.1", ","), "?");
    assert_string_equal(by("10.0.0.0/8", "10.0.0.1", "10.1.1.1, 10.2.2.2"), "?");
    const char *const lines[] = {"1.2.3.4", "192.0.2.7", "10.1.1.1"};
    assert_string_equal(client("10.0.0.0/8", "10.0.0.1", lines, 3), "::ffff:192.0.2.7");
}

static void case_28_a_household_is_one_bucket(void **state)
{
    uint8_t first[TG_ADDRESS_BYTES], second[TG_ADDRESS_BYTES];
    assert_int_equal(tg_address_parse("2001:db8:1:2:3::4", 17, first), 0);
    assert_int_equal(tg_address_parse("2001:db8:1:2:ffff::1", 20, second), 0);
    tg_address_bucket(first);
    tg_address_bucket(second);
    assert_memory_equal(first, second, sizeof(first));
    assert_int_equal(tg_address_parse("192.0.2.7", 9, first), 0);
    assert_int_equal(tg_address_parse("192.0.2.8", 9, second), 0);
    tg_address_bucket(first);
    tg_address_bucket(second);
    assert_memory_not_equal(first, second, sizeof(first));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_with_and_without_port),
        cmocka_unit_test(networks_are_read_strictly),
        cmocka_unit_test(case_28_the_right_most_hop_that_is_not_ours),
        cmocka_unit_test(case_28_a_household_is_one_bucket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
