/* SPDX-License-Identifier: Apache-2.0
 * What scripts answer: every word, and everything that is no answer; what errors of Redis mean. */
#include "services/reserve/answer.h"
#include "services/reserve/store_redis.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#define PACKED                                                                                     \
    "AAAAAAAAAAAAAAAAAAAAAA 100 1700000000000 BBBBBBBBBBBBBBBBBBBBBA 0:7,9;2:1 0,1,2 a user"

static struct reserve_word words[64];

/* Words until the first NULL. */
static struct reserve_answer answer_of(const char *first, ...)
{
    struct reserve_answer answer = {.ending = RESERVE_ENDED, .words = words};
    va_list list;
    va_start(list, first);
    for (const char *word = first; word != NULL; word = va_arg(list, const char *)) {
        words[answer.count++] = (struct reserve_word){word, strlen(word)};
    }
    va_end(list);
    return answer;
}

static enum reserve_taken taken(struct reserve_answer answer)
{
    struct reserve_hold_answer hold;
    reserve_answer_hold(&answer, &hold);
    return hold.taken;
}

static void words_of_hold(void **state)
{
    struct reserve_hold_answer hold;
    struct reserve_answer answer = answer_of("held", PACKED, NULL);
    reserve_answer_hold(&answer, &hold);
    assert_int_equal(hold.taken, RESERVE_TAKEN_HELD);
    assert_int_equal(hold.record.unit_count, 3);
    assert_int_equal(hold.record.units[2].item, 2);
    assert_int_equal(hold.record.window, 100);
    assert_memory_equal(hold.record.user, "a user", 6);
    assert_int_equal(taken(answer_of("replay", "held", PACKED, NULL)), RESERVE_TAKEN_REPLAY_HELD);
    assert_int_equal(taken(answer_of("replay", "settled", PACKED, NULL)),
                     RESERVE_TAKEN_REPLAY_SETTLED);
    assert_int_equal(taken(answer_of("replay", "released", "x", NULL)),
                     RESERVE_TAKEN_REPLAY_RELEASED);
    assert_int_equal(taken(answer_of("mismatch", NULL)), RESERVE_TAKEN_MISMATCH);
    assert_int_equal(taken(answer_of("unknown_gate", NULL)), RESERVE_TAKEN_UNKNOWN_GATE);
    assert_int_equal(taken(answer_of("paused", "not_open", NULL)), RESERVE_TAKEN_NOT_OPEN);
    assert_int_equal(taken(answer_of("paused", "pause", NULL)), RESERVE_TAKEN_PAUSED);
    assert_int_equal(taken(answer_of("paused", "unproved", NULL)), RESERVE_TAKEN_UNPROVED);
    assert_int_equal(taken(answer_of("pass_expired", NULL)), RESERVE_TAKEN_PASS_EXPIRED);
    assert_int_equal(taken(answer_of("pass_used", NULL)), RESERVE_TAKEN_PASS_USED);
    assert_int_equal(taken(answer_of("doubt", "why", NULL)), RESERVE_TAKEN_DOUBT);
}

static void limit_names_a_reservation(void **state)
{
    struct reserve_hold_answer hold;
    struct reserve_answer answer = answer_of("limit", "res_00000000000000000000000001", NULL);
    reserve_answer_hold(&answer, &hold);
    assert_int_equal(hold.taken, RESERVE_TAKEN_LIMIT);
    assert_string_equal(hold.reservation, "res_00000000000000000000000001");
    assert_int_equal(taken(answer_of("limit", "", NULL)), RESERVE_TAKEN_LIMIT);
    assert_int_equal(taken(answer_of("limit", "somebody", NULL)), RESERVE_TAKEN_DOUBT);
    assert_int_equal(taken(answer_of("limit", NULL)), RESERVE_TAKEN_DOUBT);
}

static void sold_out_is_final_when_nothing_is_held(void **state)
{
    static const struct {
        const char *stock, *held;
        bool final;
    } rows[] = {{"0", "0", true}, {"0", "3", false}, {"1", "0", false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reserve_hold_answer hold;
        struct reserve_answer answer = answer_of("sold_out", rows[i].stock, rows[i].held, NULL);
        reserve_answer_hold(&answer, &hold);
        assert_int_equal(hold.taken, RESERVE_TAKEN_SOLD_OUT);
        assert_int_equal(hold.final, rows[i].final);
    }
    assert_int_equal(taken(answer_of("sold_out", "0", "many", NULL)), RESERVE_TAKEN_DOUBT);
}

static void what_cannot_be_read_is_a_doubt_never_a_guess(void **state)
{
    assert_int_equal(taken(answer_of(NULL, NULL)), RESERVE_TAKEN_DOUBT);
    assert_int_equal(taken(answer_of("", NULL)), RESERVE_TAKEN_DOUBT);
    assert_int_equal(taken(answer_of("HELD", PACKED, NULL)), RESERVE_TAKEN_DOUBT);
    assert_int_equal(taken(answer_of("held", NULL)), RESERVE_TAKEN_DOUBT);
    assert_int_equal(taken(answer_of("held", "garbage", NULL)), RESERVE_TAKEN_DOUBT);
    assert_int_equal(taken(answer_of("replay", "held", "garbage", NULL)), RESERVE_TAKEN_DOUBT);
    assert_int_equal(taken(answer_of("replay", "lost", PACKED, NULL)), RESERVE_TAKEN_DOUBT);
    assert_int_equal(taken((struct reserve_answer){.ending = RESERVE_BROKEN}), RESERVE_TAKEN_DOUBT);
    assert_int_equal(taken((struct reserve_answer){.ending = RESERVE_UNKNOWN}),
                     RESERVE_TAKEN_UNKNOWN);
    assert_int_equal(taken((struct reserve_answer){.ending = RESERVE_NOT_RUN}),
                     RESERVE_TAKEN_NOT_RUN);
}

static void words_of_orders(void **state)
{
    static const struct {
        const char *word;
        enum reserve_obeyed obeyed;
    } rows[] = {
        {"done", RESERVE_OBEYED_DONE},
        {"already", RESERVE_OBEYED_ALREADY},
        {"unknown_reservation", RESERVE_OBEYED_UNKNOWN_RESERVATION},
        {"unknown_gate", RESERVE_OBEYED_UNKNOWN_GATE},
        {"doubt", RESERVE_OBEYED_DOUBT},
        {"anything", RESERVE_OBEYED_DOUBT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct reserve_answer answer = answer_of(rows[i].word, NULL);
        assert_int_equal(reserve_answer_obeyed(&answer), rows[i].obeyed);
    }
    struct reserve_answer answer = {.ending = RESERVE_UNKNOWN};
    assert_int_equal(reserve_answer_obeyed(&answer), RESERVE_OBEYED_UNKNOWN);
    answer.ending = RESERVE_NOT_RUN;
    assert_int_equal(reserve_answer_obeyed(&answer), RESERVE_OBEYED_UNKNOWN);
    answer.ending = RESERVE_BROKEN;
    assert_int_equal(reserve_answer_obeyed(&answer), RESERVE_OBEYED_DOUBT);
}

#define LOOK_HEAD                                                                                  \
    "look", "1000", "4", "run", "replid", "1", "2000", "2", "17", "5", "1", "3", "9", "loader",    \
        "900", "0"

static void words_of_look(void **state)
{
    struct reserve_look look;
    struct reserve_answer answer =
        answer_of(LOOK_HEAD, "2", "9", "4", "3", "2", "4", "2", "5", "5", "0", "0", "5", "1",
                  "00000000000000000000000001", "not an id that fits, far too long", NULL);
    assert_true(reserve_answer_look(&answer, &look));
    assert_true(look.known && look.armed);
    assert_int_equal(look.epoch, 4);
    assert_string_equal(look.run_id, "run");
    assert_int_equal(look.attested_until_ms, 2000);
    assert_int_equal(look.sequence, 17);
    assert_int_equal(look.unacked, 1);
    assert_int_equal(look.item_count, 2);
    assert_int_equal(look.items[0].stock, 4);
    assert_int_equal(look.items[1].free_bits, 5);
    assert_int_equal(look.pause_count, 1);
    answer = answer_of("unknown_gate", "77", NULL);
    assert_true(reserve_answer_look(&answer, &look));
    assert_false(look.known);
    assert_int_equal(look.now_ms, 77);
}

static void looks_of_another_shape(void **state)
{
    struct reserve_look look;
    struct reserve_answer answers[] = {
        answer_of(NULL, NULL),
        {.ending = RESERVE_UNKNOWN},
        {.ending = RESERVE_BROKEN},
    };
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        assert_false(reserve_answer_look(&answers[i], &look));
    }
    struct reserve_answer answer = answer_of(LOOK_HEAD, "2", "9", "4", "3", "2", "4", "2", NULL);
    assert_false(reserve_answer_look(&answer, &look));
    answer = answer_of(LOOK_HEAD, "0", NULL);
    assert_false(reserve_answer_look(&answer, &look));
    answer = answer_of(LOOK_HEAD, "33", NULL);
    assert_false(reserve_answer_look(&answer, &look));
    answer = answer_of(LOOK_HEAD, "1", "9", "4", "-3", "2", "4", "2", NULL);
    assert_false(reserve_answer_look(&answer, &look));
    answer = answer_of(LOOK_HEAD, "1", "9", "4", "", "2", "4", "2", NULL);
    assert_false(reserve_answer_look(&answer, &look));
    answer = answer_of(LOOK_HEAD, "1", "9007199254740992", "4", "3", "2", "4", "2", NULL);
    assert_false(reserve_answer_look(&answer, &look));
}

static void errors_of_redis(void **state)
{
    static const struct {
        const char *text;
        enum reserve_ending ending;
        bool reconnect;
    } rows[] = {
        {"WRONGTYPE Operation against a key holding the wrong kind of value", RESERVE_BROKEN,
         false},
        {"ERR user_script:9: attempt to perform arithmetic on a nil value", RESERVE_BROKEN, false},
        {"OOM command not allowed when used memory > 'maxmemory'.", RESERVE_NOT_RUN, false},
        {"NOSCRIPT No matching script.", RESERVE_NOT_RUN, false},
        {"BUSY Redis is busy running a script.", RESERVE_NOT_RUN, false},
        {"MISCONF Redis is configured to save RDB snapshots", RESERVE_NOT_RUN, false},
        {"READONLY You can't write against a read only replica.", RESERVE_NOT_RUN, true},
        {"LOADING Redis is loading the dataset in memory", RESERVE_NOT_RUN, true},
        {"MASTERDOWN Link with MASTER is down", RESERVE_NOT_RUN, true},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool reconnect = !rows[i].reconnect;
        assert_int_equal(reserve_redis_error(rows[i].text, &reconnect), rows[i].ending);
        assert_int_equal(reconnect, rows[i].reconnect);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_hold),
        cmocka_unit_test(limit_names_a_reservation),
        cmocka_unit_test(sold_out_is_final_when_nothing_is_held),
        cmocka_unit_test(what_cannot_be_read_is_a_doubt_never_a_guess),
        cmocka_unit_test(words_of_orders),
        cmocka_unit_test(words_of_look),
        cmocka_unit_test(looks_of_another_shape),
        cmocka_unit_test(errors_of_redis),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
