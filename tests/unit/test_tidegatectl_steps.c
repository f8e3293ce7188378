/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_tests.h"

#include "tools/tidegatectl/steps.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ID "res_5C23E29DKF4BD2QBSX7ZVY4BPP"
#define OTHER "res_5C23E29DKF4BD2QBSX7ZVY4BPQ"
#define LINE(ts, daemon, event, id)                                                                \
    "{\"ts\":\"" ts "\",\"level\":\"info\",\"daemon\":\"" daemon "\",\"instance\":\"" daemon       \
    "-1\",\"event\":\"" event "\",\"sale\":\"demo\",\"reservation\":\"" id "\"}\n"

static struct ctl_steps steps;

static void take(const char *line)
{
    ctl_steps_take_line(&steps, ID, line, strlen(line));
}

static void steps_are_told_in_time_order(void **state)
{
    memset(&steps, 0, sizeof(steps));
    take(LINE("2026-12-01T10:00:00.020Z", "ledger", "reservation.recorded", ID));
    take(LINE("2026-12-01T10:00:00.010Z", "reserve", "reservation.held", ID));
    take(LINE("2026-12-01T10:00:00.020Z", "reserve", "reservation.acknowledged", ID));
    take(LINE("2026-12-01T10:00:00.000Z", "reserve", "reservation.held", OTHER));
    ctl_steps_sort(&steps);
    assert_int_equal(steps.count, 3);
    assert_string_equal(steps.steps[0].event, "reservation.held");
    assert_string_equal(steps.steps[0].daemon, "reserve");
    assert_string_equal(steps.steps[0].instance, "reserve-1");
    assert_string_equal(steps.steps[1].event, "reservation.recorded"); /* ties: as read */
    assert_string_equal(steps.steps[2].event, "reservation.acknowledged");
    assert_true(steps.steps[2].at.ms - steps.steps[0].at.ms == 10);
}

static void other_lines_are_passed_over(void **state)
{
    static const char *const lines[] = {
        "",
        "\n",
        ID,
        "{\"reservation\":\"" ID "\"",
        "{\"reservation\":\"" ID "\"}\n",
        "{\"ts\":1,\"daemon\":\"a\",\"instance\":\"b\",\"event\":\"c\",\"reservation\":\"" ID "\"}",
        "{\"ts\":\"yesterday\",\"daemon\":\"a\",\"instance\":\"b\",\"event\":\"c\",\"reservation\":"
        "\"" ID "\"}",
        "{\"ts\":\"2026-12-01T10:00:00Z\",\"daemon\":\"a\",\"instance\":\"b\",\"event\":\"c\","
        "\"other\":\"" ID "\"}",
        "{\"ts\":\"2026-12-01T10:00:00Z\",\"daemon\":\"a\",\"instance\":\"b\",\"event\":\"c\","
        "\"reservation\":[\"" ID "\"]}",
        "[\"" ID "\"]",
        "2026-12-01 server started " ID " \xff\xfe",
        LINE("2026-12-01T10:00:00Z", "a", "b", ID "X"),
    };
    memset(&steps, 0, sizeof(steps));
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        take(lines[i]);
    }
    static const char nul_first[] = "\0{\"reservation\":\"" ID "\"}";
    ctl_steps_take_line(&steps, ID, nul_first, sizeof(nul_first) - 1);
    assert_int_equal(steps.count, 0);
}

static void control_characters_do_not_reach_the_terminal(void **state)
{
    memset(&steps, 0, sizeof(steps));
    take(LINE("2026-12-01T10:00:00Z", "\\u001b[31mred", "reservation.held", ID));
    assert_int_equal(steps.count, 1);
    assert_string_equal(steps.steps[0].daemon, "?[31mred");
}

static void many_steps_are_bounded(void **state)
{
    memset(&steps, 0, sizeof(steps));
    for (int i = 0; i < CTL_STEPS_MAX + 5; i++) {
        take(LINE("2026-12-01T10:00:00Z", "reserve", "reservation.held", ID));
    }
    assert_int_equal(steps.count, CTL_STEPS_MAX);
    assert_int_equal(steps.dropped, 5);
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
}

static void remove_file(const char *folder, const char *name)
{
    char path[128];
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(remove(path), 0);
}

static void a_folder_of_logs_is_read(void **state)
{
    char folder[] = "/tmp/tidegate-steps-XXXXXX";
    assert_non_null(mkdtemp(folder));
    memset(&steps, 0, sizeof(steps));
    write_file(folder, "a.log",
               LINE("2026-12-01T10:00:00Z", "reserve", "reservation.held", ID) "cut line " ID);
    write_file(folder, "b.log",
               "noise\n" LINE("2026-12-01T10:00:01Z", "ledger", "reservation.recorded", ID));
    write_file(folder, "c.txt",
               LINE("2026-12-01T10:00:02Z", "ledger", "reservation.confirmed", ID));
    assert_int_equal(ctl_steps_read_folder(&steps, ID, folder, stderr), 0);
    assert_int_equal(steps.count, 2);
    remove_file(folder, "a.log");
    remove_file(folder, "b.log");
    remove_file(folder, "c.txt");
    assert_int_equal(rmdir(folder), 0);
    assert_true(ctl_steps_read_folder(&steps, ID, folder, stderr) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_are_told_in_time_order),
        cmocka_unit_test(other_lines_are_passed_over),
        cmocka_unit_test(control_characters_do_not_reach_the_terminal),
        cmocka_unit_test(many_steps_are_bounded),
        cmocka_unit_test(a_folder_of_logs_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
