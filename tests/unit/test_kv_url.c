/* SPDX-License-Identifier: Apache-2.0
 * The URL of a Redis, the name of a script, and what INFO says. */
#include "lib/io/kv_internal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static void tcp_urls_are_read(void **state)
{
    struct kv_url url;
    assert_int_equal(kv_url_parse("redis://127.0.0.1:6380", &url), 0);
    assert_string_equal(url.host, "127.0.0.1");
    assert_int_equal(url.port, 6380);
    assert_int_equal(url.database, 0);
    assert_string_equal(url.password, "");
    assert_int_equal(kv_url_parse("redis://gate:p%40ss%2fword@redis.svc/3", &url), 0);
    assert_string_equal(url.host, "redis.svc");
    assert_int_equal(url.port, 6379);
    assert_string_equal(url.user, "gate");
    assert_string_equal(url.password, "p@ss/word");
    assert_int_equal(url.database, 3);
    assert_int_equal(kv_url_parse("redis://:secret@[::1]:7000/", &url), 0);
    assert_string_equal(url.host, "::1");
    assert_int_equal(url.port, 7000);
    assert_string_equal(url.user, "");
    assert_string_equal(url.password, "secret");
}

static void unix_urls_are_read(void **state)
{
    struct kv_url url;
    assert_int_equal(kv_url_parse("unix:///run/redis.sock", &url), 0);
    assert_string_equal(url.path, "/run/redis.sock");
}

static void other_urls_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "http://x",
        "redis://",
        "redis://:1",
        "redis://h:0",
        "redis://h:65536",
        "redis://h:1x",
        "redis://h:+1",
        "redis://h/x",
        "redis://h/1024",
        "redis://u@h",
        "redis://u:p%zz@h",
        "unix://relative",
        "unix://",
        "redis://[::1",
        "redis://[::1]x",
        "redis://u:%00p@h",
        "REDIS://h",
    };
    struct kv_url url;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(kv_url_parse(bad[i], &url), TG_ERR_MALFORMED);
    }
    char longest[200] = "unix:///";
    memset(longest + 8, 'a', sizeof longest - 9);
    longest[sizeof longest - 1] = '\0';
    assert_int_equal(kv_url_parse(longest, &url), TG_ERR_MALFORMED);
}

static void scripts_are_named_by_sha1(void **state)
{
    /* FIPS 180-4 examples, and lengths around the padding's edges (made with sha1sum). */
    static const struct {
        size_t length;
        const char *sha1;
    } repeated_a[] = {
        {55, "c1c8bbdc22796e28c0e15163d20899b65621d65a"},
        {56, "c2db330f6083854c99d4b5bfb6e8f29f201be699"},
        {63, "03f09f5b158a7a8cdad920bddc29b81c18a551f5"},
        {64, "0098ba824b5c16427bd7a1122a5a442a25ec644d"},
        {119, "ee971065aaa017e0632a8ca6c77bb3bf8b1dfc56"},
        {1000, "291e9a6c66994949b57ba5e650361e98fc36b1ba"},
    };
    struct tg_kv_script script = {.source = "abc"};
    tg_kv_script_prepare(&script);
    assert_string_equal(script.sha1, "a9993e364706816aba3e25717850c26c9cd0d89d");
    script.source = "";
    tg_kv_script_prepare(&script);
    assert_string_equal(script.sha1, "da39a3ee5e6b4b0d3255bfef95601890afd80709");
    char text[1001];
    for (size_t i = 0; i < sizeof repeated_a / sizeof repeated_a[0]; i++) {
        memset(text, 'a', repeated_a[i].length);
        text[repeated_a[i].length] = '\0';
        script.source = text;
        tg_kv_script_prepare(&script);
        assert_string_equal(script.sha1, repeated_a[i].sha1);
    }
}

#define RUN_ID "0123456789012345678901234567890123456789"
#define REPLID "abcdefabcdefabcdefabcdefabcdefabcdefabcd"
static const char info[] = "# Server\r\nredis_version:7.0.15\r\nrun_id:" RUN_ID
                           "\r\n# Memory\r\nmaxmemory_policy:noeviction\r\n"
                           "# Persistence\r\nloading:0\r\naof_enabled:1\r\n# "
                           "Replication\r\nrole:master\r\nmaster_replid:" REPLID "\r\n";

static void info_is_read(void **state)
{
    struct tg_kv_server server;
    assert_int_equal(tg_kv_server_read(info, strlen(info), &server), 0);
    assert_string_equal(server.run_id, RUN_ID);
    assert_string_equal(server.replication_id, REPLID);
    assert_string_equal(server.version, "7.0.15");
    assert_true(server.primary);
    assert_true(server.noeviction);
    assert_string_equal(server.policy, "noeviction");
    assert_true(server.append_only);
}

static int parse_with(const char *from, const char *to, struct tg_kv_server *out_server)
{
    char text[512];
    const char *at = strstr(info, from);
    int length =
        snprintf(text, sizeof text, "%.*s%s%s", (int)(at - info), info, to, at + strlen(from));
    return tg_kv_server_read(text, (size_t)length, out_server);
}

static void what_info_must_say(void **state)
{
    struct tg_kv_server server;
    assert_int_equal(parse_with("role:master", "role:slave", &server), 0);
    assert_false(server.primary);
    assert_int_equal(parse_with("noeviction", "allkeys-lru", &server), 0);
    assert_false(server.noeviction);
    assert_int_equal(parse_with("aof_enabled:1", "aof_enabled:0", &server), 0);
    assert_false(server.append_only);
    assert_int_equal(parse_with("loading:0", "loading:1", &server), TG_ERR_DISCONNECTED);
    assert_int_equal(parse_with("run_id:", "walk_id:", &server), TG_ERR_MALFORMED);
    assert_int_equal(parse_with("master_replid:", "x:", &server), TG_ERR_MALFORMED);
    assert_int_equal(parse_with("maxmemory_policy:", "x:", &server), TG_ERR_MALFORMED);
    assert_int_equal(parse_with(RUN_ID, RUN_ID "0", &server), TG_ERR_MALFORMED);
    assert_int_equal(tg_kv_server_read("", 0, &server), TG_ERR_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tcp_urls_are_read),      cmocka_unit_test(unix_urls_are_read),
        cmocka_unit_test(other_urls_are_refused), cmocka_unit_test(scripts_are_named_by_sha1),
        cmocka_unit_test(info_is_read),           cmocka_unit_test(what_info_must_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
