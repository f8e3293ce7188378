/* SPDX-License-Identifier: Apache-2.0
 * Which lane a new place gets. */
#include "tests/unit/cmocka_tests.h"

#include "services/edge/core_score.h"

static const struct edge_lane_rules rules = {.on = true, .slow_at = 3, .decoy_at = 5};

static const uint32_t account = 1U << EDGE_SIGNAL_ACCOUNT_VELOCITY;
static const uint32_t device = 1U << EDGE_SIGNAL_DEVICE_VELOCITY;
static const uint32_t no_agent = 1U << EDGE_SIGNAL_NO_USER_AGENT;
static const uint32_t no_language = 1U << EDGE_SIGNAL_NO_LANGUAGE;
static const uint32_t no_accept = 1U << EDGE_SIGNAL_NO_ACCEPT;

static void points_add_up(void **state)
{
    assert_int_equal(edge_score_points(0), 0);
    assert_int_equal(edge_score_points(account | device), 4);
    assert_int_equal(edge_score_points((1U << EDGE_SIGNALS) - 1), 7);
}

static void lanes_begin_at_their_points(void **state)
{
    assert_int_equal(edge_score_lane(&rules, 0), TG_LANE_LIVE);
    assert_int_equal(edge_score_lane(&rules, no_agent | no_language), TG_LANE_LIVE);
    assert_int_equal(edge_score_lane(&rules, account), TG_LANE_SLOW);
    assert_int_equal(edge_score_lane(&rules, no_agent | no_language | no_accept), TG_LANE_SLOW);
    assert_int_equal(edge_score_lane(&rules, account | device), TG_LANE_SLOW);
    assert_int_equal(edge_score_lane(&rules, account | device | no_language), TG_LANE_DECOY);
}

/* case-22: a campus behind one address, with ordinary browsers, is no bot. */
static void a_crowd_behind_one_address_is_live(void **state)
{
    assert_int_equal(edge_score_lane(&rules, device), TG_LANE_LIVE);
}

static void off_everything_is_live(void **state)
{
    const struct edge_lane_rules off = {.on = false, .slow_at = 1, .decoy_at = 1};
    assert_int_equal(edge_score_lane(&off, (1U << EDGE_SIGNALS) - 1), TG_LANE_LIVE);
    assert_true(edge_lane_asks(&off, TG_LANE_DECOY));
}

static void admission_is_asked_for_all_but_decoys(void **state)
{
    assert_true(edge_lane_asks(&rules, TG_LANE_LIVE));
    assert_true(edge_lane_asks(&rules, TG_LANE_SLOW));
    assert_false(edge_lane_asks(&rules, TG_LANE_DECOY));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_add_up),
        cmocka_unit_test(lanes_begin_at_their_points),
        cmocka_unit_test(a_crowd_behind_one_address_is_live),
        cmocka_unit_test(off_everything_is_live),
        cmocka_unit_test(admission_is_asked_for_all_but_decoys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
