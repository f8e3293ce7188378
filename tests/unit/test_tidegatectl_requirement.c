/* SPDX-License-Identifier: Apache-2.0
 * Rules of catalog/requirements.def, and reading of what daemons tell. */
#include "tests/unit/cmocka_tests.h"
#include "tools/tidegatectl/requirement.h"

#include <string.h>

static bool met(enum ctl_rule rule, const char *wanted, const char *told)
{
    const struct ctl_requirement row = {.rule = rule, .value = wanted};
    return ctl_requirement_met(&row, told);
}

static void a_rule_takes_what_it_says_and_nothing_near(void **state)
{
    assert_true(met(CTL_IS, "on", "on"));
    assert_false(met(CTL_IS, "on", "off"));
    assert_false(met(CTL_IS, "on", "on "));
    assert_true(met(CTL_IS_NOT, "off", "remote_apply"));
    assert_false(met(CTL_IS_NOT, "off", "off"));
    assert_true(met(CTL_AT_LEAST, "7", "7.0.15"));
    assert_true(met(CTL_AT_LEAST, "7", "10.1"));
    assert_false(met(CTL_AT_LEAST, "7", "6.2.18"));
    assert_true(met(CTL_AT_LEAST, "140000", "140000"));
    assert_false(met(CTL_AT_LEAST, "140000", "139999"));
    assert_false(met(CTL_AT_LEAST, "7", ""));
    assert_false(met(CTL_AT_LEAST, "7", "99999999999999999999"));
    assert_true(met(CTL_WITHIN, "2000", "-2000"));
    assert_true(met(CTL_WITHIN, "2000", "2000"));
    assert_false(met(CTL_WITHIN, "2000", "2001"));
    assert_false(met(CTL_WITHIN, "2000", "-2001"));
}

static void what_is_not_known_meets_nothing(void **state)
{
    for (size_t i = 0; i < ctl_requirement_count; i++) {
        assert_false(ctl_requirement_met(&ctl_requirements[i], NULL));
    }
}

static void a_fact_is_a_whole_line(void **state)
{
    static const char facts[] = "fsync on\nfsync_later off\nlast no newline";
    char value[11];
    assert_true(ctl_fact(facts, "fsync", value, sizeof(value)));
    assert_string_equal(value, "on");
    assert_true(ctl_fact(facts, "last", value, sizeof(value)));
    assert_string_equal(value, "no newline");
    assert_false(ctl_fact(facts, "last", value, sizeof(value) - 1));
    assert_false(ctl_fact(facts, "sync", value, sizeof(value)));
    assert_false(ctl_fact(facts, "on", value, sizeof(value)));
    assert_false(ctl_fact("", "fsync", value, sizeof(value)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_takes_what_it_says_and_nothing_near),
        cmocka_unit_test(what_is_not_known_meets_nothing),
        cmocka_unit_test(a_fact_is_a_whole_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
