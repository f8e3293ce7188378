/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/failpoint.h"

#include "tests/unit/cmocka_tests.h"

#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void every_form_of_a_rule_is_read(void **state)
{
    struct tg_failpoint_rule rules[TG_FAILPOINT_COUNT];
    assert_int_equal(tg_failpoint_parse("reserve.held=kill@3, ledger.record=error@2+5\n"
                                        "edge.told=delay:1500@4+2 queue.board=stop",
                                        rules),
                     0);
    assert_int_equal(rules[TG_FAILPOINT_RESERVE_HELD].action, TG_FAILPOINT_KILL);
    assert_int_equal(rules[TG_FAILPOINT_RESERVE_HELD].first, 3);
    assert_int_equal(rules[TG_FAILPOINT_RESERVE_HELD].count, 1);
    assert_int_equal(rules[TG_FAILPOINT_LEDGER_RECORD].action, TG_FAILPOINT_ERROR);
    assert_int_equal(rules[TG_FAILPOINT_LEDGER_RECORD].count, 5);
    assert_int_equal(rules[TG_FAILPOINT_EDGE_TOLD].delay_ms, 1500);
    assert_int_equal(rules[TG_FAILPOINT_EDGE_TOLD].first, 4);
    assert_int_equal(rules[TG_FAILPOINT_QUEUE_BOARD].action, TG_FAILPOINT_STOP);
    assert_int_equal(rules[TG_FAILPOINT_QUEUE_BOARD].first, 1);
    assert_int_equal(rules[TG_FAILPOINT_RESERVE_HOLD].action, TG_FAILPOINT_NONE);
    assert_int_equal(tg_failpoint_parse("", rules), 0);
    assert_int_equal(rules[TG_FAILPOINT_RESERVE_HELD].action, TG_FAILPOINT_NONE);
}

static void what_is_no_rule_is_refused_whole(void **state)
{
    static const char *const wrong[] = {
        "reserve.held",
        "reserve.held=",
        "reserve.held=die",
        "reserve.hel=kill",
        "=kill",
        "reserve.held=kill@0",
        "reserve.held=kill@",
        "reserve.held=kill@1+",
        "reserve.held=kill:5",
        "reserve.held=delay:0",
        "reserve.held=delay:x",
        "reserve.held=delay:60001",
        "reserve.held=kill@1+2x",
        "reserve.held=kill@-1",
        "edge.told=stop, nonsense",
    };
    struct tg_failpoint_rule rules[TG_FAILPOINT_COUNT];
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_int_equal(tg_failpoint_parse(wrong[i], rules), TG_ERR_MALFORMED);
    }
}

static void only_the_hits_asked_for_act(void **state)
{
    assert_int_equal(setenv("TIDEGATE_FAILPOINTS", "reserve.hold=error@2+2", 1), 0);
    static const bool acts[] = {false, true, true, false};
    for (size_t i = 0; i < COUNT_OF(acts); i++) {
        assert_int_equal(TG_FAILPOINT(RESERVE_HELD), 0);
        assert_int_equal(TG_FAILPOINT(RESERVE_HOLD), acts[i] ? TG_ERR_DISCONNECTED : 0);
    }
    /* Other rules count anew. */
    assert_int_equal(setenv("TIDEGATE_FAILPOINTS", "reserve.hold=error", 1), 0);
    assert_int_equal(TG_FAILPOINT(RESERVE_HOLD), TG_ERR_DISCONNECTED);
    assert_int_equal(TG_FAILPOINT(RESERVE_HOLD), 0);
    assert_int_equal(unsetenv("TIDEGATE_FAILPOINTS"), 0);
    assert_int_equal(TG_FAILPOINT(RESERVE_HOLD), 0);
}

/* What becomes of a process that hits edge.told once under these rules. */
static int fate_of(const char *rules, int options)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool told = setenv("TIDEGATE_FAILPOINTS", rules, 1) == 0 && TG_FAILPOINT(EDGE_TOLD) == 0;
        _exit(told ? 0 : 1);
    }
    int status = 0;
    assert_int_equal(waitpid(child, &status, options), child);
    if (WIFSTOPPED(status)) {
        int thawed = 0;
        assert_int_equal(kill(child, SIGCONT), 0);
        assert_int_equal(waitpid(child, &thawed, 0), child);
        assert_true(WIFEXITED(thawed) && WEXITSTATUS(thawed) == 0);
    }
    return status;
}

static void actions_do_what_they_say(void **state)
{
    int killed = fate_of("edge.told=kill", 0);
    assert_true(WIFSIGNALED(killed) && WTERMSIG(killed) == SIGKILL);
    int stopped = fate_of("edge.told=stop", WUNTRACED);
    assert_true(WIFSTOPPED(stopped) && WSTOPSIG(stopped) == SIGSTOP);
    int late = fate_of("edge.told=delay:1", 0);
    assert_true(WIFEXITED(late) && WEXITSTATUS(late) == 0);
    int refused = fate_of("edge.told=kil", 0);
    assert_true(WIFEXITED(refused) && WEXITSTATUS(refused) == 78);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_form_of_a_rule_is_read),
        cmocka_unit_test(what_is_no_rule_is_refused_whole),
        cmocka_unit_test(only_the_hits_asked_for_act),
        cmocka_unit_test(actions_do_what_they_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
