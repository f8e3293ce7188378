/* SPDX-License-Identifier: Apache-2.0
 * What the checker makes of the stores' answers; above all of wrong ones. */
#include "services/invariant/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

static const uint8_t key[INVARIANT_TAG_KEY_BYTES] = {1, 2, 3};

#define ID "res_0123456789ABCDEFGHJKMNPQRS"
#define OTHER_ID "res_1123456789ABCDEFGHJKMNPQRS"
#define RECORD "AAAAAAAAAAAAAAAAAAAAAA 29000000 1700000000000 AAAAAAAAAAAAAAAAAAAAAA 0:7 0 user one"

/* Replies as hiredis makes them, from a pool. */
static redisReply pool[256];
static redisReply *lists[256];
static size_t pool_used, lists_used;

static int fresh(void **state)
{
    memset(pool, 0, sizeof pool);
    pool_used = lists_used = 0;
    return 0;
}

static redisReply *text(const char *value)
{
    redisReply *reply = &pool[pool_used++];
    *reply = (redisReply){.type = REDIS_REPLY_STRING, .str = (char *)value, .len = strlen(value)};
    return reply;
}

static redisReply *array(const char *const *values, size_t count)
{
    redisReply *reply = &pool[pool_used++];
    *reply =
        (redisReply){.type = REDIS_REPLY_ARRAY, .elements = count, .element = &lists[lists_used]};
    lists_used += count;
    for (size_t i = 0; i < count; i++) {
        reply->element[i] = text(values[i]);
    }
    return reply;
}
#define ARRAY(...)                                                                                 \
    array((const char *const[]){__VA_ARGS__},                                                      \
          sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

/* ---- replies ---- */

static void errors_of_redis_are_told_apart(void **state)
{
    redisReply wrong = {.type = REDIS_REPLY_ERROR,
                        .str = (char *)"ERR WRONGTYPE Operation against a key"};
    redisReply loading = {.type = REDIS_REPLY_ERROR, .str = (char *)"LOADING Redis is loading"};
    assert_int_equal(invariant_wire_reply(0, &wrong), INVARIANT_REPLY_WRONG_TYPE);
    assert_int_equal(invariant_wire_reply(0, &loading), INVARIANT_REPLY_UNUSABLE);
    assert_int_equal(invariant_wire_reply(TG_ERR_TIMEOUT, NULL), INVARIANT_REPLY_UNUSABLE);
    assert_int_equal(invariant_wire_reply(0, text("x")), INVARIANT_REPLY_FINE);
}

static void info_names_the_server(void **state)
{
    struct invariant_server server;
    assert_int_equal(
        invariant_wire_server(text("# Server\r\nrun_id:abc\r\n# Replication\r\nrole:master\r\n"
                                   "master_replid:def\r\nmaster_replid2:000\r\n"
                                   "# Memory\r\nmaxmemory_policy:noeviction\r\n"),
                              &server),
        0);
    assert_string_equal(server.run_id, "abc");
    assert_string_equal(server.replication_id, "def");
    assert_true(server.primary);
    assert_false(server.evicts);
    assert_int_equal(invariant_wire_server(text("run_id:abc\r\nrole:slave\r\nmaster_replid:def\r\n"
                                                "maxmemory_policy:allkeys-lru\r\n"),
                                           &server),
                     0);
    assert_false(server.primary);
    assert_true(server.evicts);
    static const char *const malformed[] = {
        "run_id:abc\r\nrole:master\r\nmaxmemory_policy:noeviction\r\n",
        "run_id:abc\r\nrole:master\r\nmaster_replid:def\r\n",
        "xrun_id:abc\r\nrole:master\r\nmaster_replid:def\r\nmaxmemory_policy:noeviction\r\n",
        ("run_id:0123456789012345678901234567890123456789x\r\nrole:master\r\nmaster_replid:def\r\n"
         "maxmemory_policy:noeviction\r\n"),
    };
    for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++) {
        assert_int_equal(invariant_wire_server(text(malformed[i]), &server), TG_ERR_MALFORMED);
    }
}

static void a_look_is_read_whole(void **state)
{
    struct invariant_look look;
    redisReply *reply = ARRAY("look", "1700000000123", "1", "4", "run", "replid", "1", "17", "1",
                              "10", "6", "3", "1", "6");
    assert_int_equal(invariant_wire_look(reply, 4, 1, &look), 0);
    assert_true(look.present && look.readable && look.armed);
    assert_string_equal(look.run_id, "run");
    assert_string_equal(look.replication_id, "replid");
    assert_int_equal(look.gate_ms, 1700000000123);
    assert_int_equal(look.sequence, 17);
    assert_int_equal(look.items[0].initial, 10);
    assert_int_equal(look.items[0].stock, 6);
    assert_int_equal(look.items[0].held, 3);
    assert_int_equal(look.items[0].settled, 1);
    assert_int_equal(look.items[0].free_bits, 6);
}

static void a_look_at_nothing_is_no_gate(void **state)
{
    struct invariant_look look;
    assert_int_equal(invariant_wire_look(ARRAY("none", "5"), 4, 1, &look), 0);
    assert_false(look.present);
}

/* Each field in turn: whatever is no number, or another gate's, makes the look unreadable, never
 * something near it. */
static void garbage_in_a_look_is_not_readable(void **state)
{
    const char *const right[] = {"look", "9", "1",  "4", "run", "replid", "1",
                                 "17",   "1", "10", "6", "3",   "1",      "6"};
    const char *const bad[] = {"", "-1", "1e3", "007", "99999999999999999999", "x", " 1", "6.0"};
    const size_t fields[] = {2, 3, 7, 8, 9, 10, 11, 12, 13};
    struct invariant_look look;
    for (size_t f = 0; f < sizeof fields / sizeof fields[0]; f++) {
        for (size_t b = 0; b < sizeof bad / sizeof bad[0]; b++) {
            const char *values[14];
            memcpy(values, right, sizeof right);
            values[fields[f]] = bad[b];
            fresh(NULL);
            assert_int_equal(invariant_wire_look(array(values, 14), 4, 1, &look), 0);
            assert_true(look.present);
            assert_false(look.readable);
        }
    }
    fresh(NULL);
    assert_int_equal(invariant_wire_look(array(right, 14), 5, 1, &look), 0);
    assert_false(look.readable); /* the ctl of another epoch */
    assert_int_equal(invariant_wire_look(array(right, 13), 4, 1, &look), TG_ERR_MALFORMED);
    assert_int_equal(invariant_wire_look(text("look"), 4, 1, &look), TG_ERR_MALFORMED);
}

static void an_unarmed_gate_is_read_as_such(void **state)
{
    struct invariant_look look;
    redisReply *reply =
        ARRAY("look", "9", "1", "4", "run", "", "0", "0", "1", "10", "10", "0", "0", "10");
    assert_int_equal(invariant_wire_look(reply, 4, 1, &look), 0);
    assert_true(look.readable);
    assert_false(look.armed);
}

static void pauses_follow_the_counters(void **state)
{
    static char long_cause[160];
    struct tg_pause pauses[INVARIANT_GATE_PAUSES_MAX];
    struct invariant_look look;
    memset(long_cause, 'x', 126);
    memcpy(long_cause + 126, "\xc3\xa4", 3); /* would be cut within the character */
    const char *const values[] = {"look",
                                  "9",
                                  "1",
                                  "4",
                                  "run",
                                  "",
                                  "0",
                                  "0",
                                  "1",
                                  "10",
                                  "10",
                                  "0",
                                  "0",
                                  "10",
                                  "00000000001764444444123456",
                                  "doubt: x",
                                  "no id",
                                  "y",
                                  "01AAAAAAAAAAAAAAAAAAAAAAAA",
                                  long_cause,
                                  "02AAAAAAAAAAAAAAAAAAAAAAAA",
                                  "\xff"};
    redisReply *reply = array(values, sizeof values / sizeof values[0]);
    assert_int_equal(invariant_wire_look(reply, 4, 1, &look), 0);
    assert_true(look.readable);
    assert_int_equal(invariant_wire_pauses(reply, 1, pauses), 3);
    assert_string_equal(pauses[0].id, "00000000001764444444123456");
    assert_string_equal(pauses[0].cause, "doubt: x");
    assert_int_equal(strlen(pauses[1].cause), 126);
    assert_string_equal(pauses[2].cause, "unreadable");
    assert_int_equal(invariant_wire_pauses(ARRAY("none", "5"), 1, pauses), 0);
}

/* ---- records ---- */

static void a_hold_becomes_an_entry(void **state)
{
    struct invariant_entry entry;
    uint8_t id[INVARIANT_ID_BYTES];
    assert_int_equal(invariant_wire_id(ID, strlen(ID), id), 0);
    invariant_wire_hold(text(ID), text(RECORD), INVARIANT_HELD, key, &entry);
    assert_memory_equal(entry.id, id, sizeof id);
    assert_int_equal(entry.places, INVARIANT_HELD);
    assert_int_equal(entry.unit_count, 1);
    assert_true(entry.units_tag == invariant_units_tag(0, 0, 7));
    assert_true(entry.user_tag == invariant_wire_user_tag(key, (const uint8_t *)"user one", 8));
    assert_true(entry.user_tag != invariant_wire_user_tag(key, (const uint8_t *)"user two", 8));
}

static void garbled_records_and_names_are_marked(void **state)
{
    struct invariant_entry one, two;
    invariant_wire_hold(text(ID), text("garbage"), INVARIANT_HELD, key, &one);
    assert_int_equal(one.places, INVARIANT_HELD | INVARIANT_GARBLED);
    invariant_wire_hold(text("no id"), text(RECORD), INVARIANT_SETTLED, key, &one);
    invariant_wire_hold(text("other"), text(RECORD), INVARIANT_SETTLED, key, &two);
    assert_int_equal(one.places, INVARIANT_SETTLED | INVARIANT_GARBLED);
    assert_memory_not_equal(one.id, two.id, sizeof one.id);
    invariant_wire_unacked(text("no id"), &one);
    assert_int_equal(one.places, INVARIANT_UNACKED | INVARIANT_GARBLED);
    invariant_wire_unacked(text(ID), &one);
    assert_int_equal(one.places, INVARIANT_UNACKED);
}

static void a_buyers_row_names_reservations_and_slots(void **state)
{
    static const char *const garbage[] = {"x", ID,           "0:res_x", "64:" ID, "0:" ID ",0:" ID,
                                          ",", "0:" ID ",x", "00:" ID,  "0: " ID, ":" ID};
    struct invariant_entry claims[TG_MAX_BUYER_LIMIT], hold;
    invariant_wire_hold(text(ID), text(RECORD), INVARIANT_HELD, key, &hold);
    assert_int_equal(invariant_wire_buyer(text("user one"), text("0:" ID), key, claims), 1);
    assert_memory_equal(claims[0].id, hold.id, sizeof hold.id);
    assert_int_equal(claims[0].places, INVARIANT_CLAIMED);
    assert_true(claims[0].user_tag == hold.user_tag && claims[0].slots == hold.slots);
    assert_int_equal(
        invariant_wire_buyer(text("u"), text("3:" ID ",1:" OTHER_ID ",63:" ID), key, claims), 2);
    assert_true(claims[0].slots == (UINT64_C(1) << 63 | 8) && claims[0].unit_count == 2);
    assert_true(claims[1].slots == 2);
    assert_int_equal(invariant_wire_buyer(text("u"), text(""), key, claims), 0);
    for (size_t i = 0; i < sizeof garbage / sizeof garbage[0]; i++) {
        assert_int_equal(invariant_wire_buyer(text("u"), text(garbage[i]), key, claims), 1);
        assert_int_equal(claims[0].places, INVARIANT_CLAIMED | INVARIANT_GARBLED);
    }
}

static void only_a_released_record_may_lack_its_units(void **state)
{
    const char *record =
        "AAAAAAAAAAAAAAAAAAAAAA 29000000 1700000000000 AAAAAAAAAAAAAAAAAAAAAA - - user one";
    struct invariant_entry entry;
    invariant_wire_hold(text(ID), text(record), INVARIANT_RELEASED, key, &entry);
    assert_int_equal(entry.places, INVARIANT_RELEASED);
    assert_int_equal(entry.unit_count, 0);
    invariant_wire_hold(text(ID), text(record), INVARIANT_HELD, key, &entry);
    assert_int_equal(entry.places, INVARIANT_HELD | INVARIANT_GARBLED);
    invariant_wire_hold(text(ID), text("- - "), INVARIANT_RELEASED, key, &entry);
    assert_int_equal(entry.places, INVARIANT_RELEASED | INVARIANT_GARBLED);
}

/* ---- the log ---- */

static void units_text_is_read_strictly(void **state)
{
    struct tg_unit_ref units[TG_MAX_UNITS_PER_HOLD];
    uint32_t count = 0;
    assert_int_equal(invariant_wire_units("0:1,5;2:7", 9, units, &count), 0);
    assert_int_equal(count, 3);
    assert_int_equal(units[1].unit, 5);
    assert_int_equal(units[2].item, 2);
    assert_int_equal(units[2].unit, 7);
    const char *const bad[] = {"",      "0",   "0:",   ":1",  "0:1,",  "0:1;",
                               "0:1;2", "0:a", "0:1 ", "0;1", "0:1:2", "0,1:2"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(invariant_wire_units(bad[i], strlen(bad[i]), units, &count),
                         TG_ERR_MALFORMED);
    }
    char many[2048] = "0:0";
    for (int i = 1; i <= TG_MAX_UNITS_PER_HOLD; i++) {
        (void)snprintf(many + strlen(many), sizeof many - strlen(many), ",%d", i);
    }
    assert_int_equal(invariant_wire_units(many, strlen(many), units, &count), TG_ERR_MALFORMED);
}

static redisReply *log_reply(const char *id, redisReply *fields)
{
    redisReply *reply = &pool[pool_used++];
    *reply = (redisReply){.type = REDIS_REPLY_ARRAY, .elements = 2, .element = &lists[lists_used]};
    lists_used += 2;
    reply->element[0] = text(id);
    reply->element[1] = fields;
    return reply;
}

static void a_log_entry_is_read(void **state)
{
    struct invariant_wire_log log;
    redisReply *reply =
        log_reply("42-0", ARRAY("kind", "hold", "reservation", ID, "units", "0:3,4", "stock_after",
                                "8", "source", "reserve-1", "at_ms", "1700000000000"));
    assert_int_equal(invariant_wire_log(reply, &log), 0);
    assert_int_equal(log.entry.sequence, 42);
    assert_true(log.entry.readable);
    assert_int_equal(log.entry.change, -2);
    assert_int_equal(log.entry.stock_after, 8);
    assert_int_equal(log.unit_count, 2);
    assert_string_equal(log.kind, "hold");
    assert_string_equal(log.source, "reserve-1");
}

static void a_foreign_log_entry_is_not_readable(void **state)
{
    struct invariant_wire_log log;
    assert_int_equal(invariant_wire_log(log_reply("42-1", ARRAY("kind", "hold")), &log),
                     TG_ERR_MALFORMED);
    assert_int_equal(invariant_wire_log(log_reply("-0", ARRAY("kind", "hold")), &log),
                     TG_ERR_MALFORMED);
    assert_int_equal(invariant_wire_log(text("42-0"), &log), TG_ERR_MALFORMED);
    assert_int_equal(invariant_wire_log(log_reply("42-0", ARRAY("kind", "hold")), &log), 0);
    assert_false(log.entry.readable);
    assert_int_equal(invariant_wire_log(
                         log_reply("42-0", ARRAY("kind", "gift", "reservation", ID, "units", "0:3",
                                                 "stock_after", "8", "source", "x", "at_ms", "1")),
                         &log),
                     0);
    assert_false(log.entry.readable);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(errors_of_redis_are_told_apart, fresh),
        cmocka_unit_test_setup(info_names_the_server, fresh),
        cmocka_unit_test_setup(a_look_is_read_whole, fresh),
        cmocka_unit_test_setup(a_look_at_nothing_is_no_gate, fresh),
        cmocka_unit_test_setup(garbage_in_a_look_is_not_readable, fresh),
        cmocka_unit_test_setup(an_unarmed_gate_is_read_as_such, fresh),
        cmocka_unit_test_setup(a_hold_becomes_an_entry, fresh),
        cmocka_unit_test_setup(garbled_records_and_names_are_marked, fresh),
        cmocka_unit_test_setup(pauses_follow_the_counters, fresh),
        cmocka_unit_test_setup(a_buyers_row_names_reservations_and_slots, fresh),
        cmocka_unit_test_setup(only_a_released_record_may_lack_its_units, fresh),
        cmocka_unit_test_setup(units_text_is_read_strictly, fresh),
        cmocka_unit_test_setup(a_log_entry_is_read, fresh),
        cmocka_unit_test_setup(a_foreign_log_entry_is_not_readable, fresh),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
