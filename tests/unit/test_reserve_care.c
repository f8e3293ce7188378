/* SPDX-License-Identifier: Apache-2.0
 * One sale's gate: looking, pauses, loading, arming. */
#include "services/reserve/core_care.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#define RUN "0123456789012345678901234567890123456789"
#define OTHER_RUN "9999999999999999999999999999999999999999"
#define REPLID "abcdefabcdefabcdefabcdefabcdefabcdefabcd"
#define PAUSE "00000000000000000000000001"
#define PAUSE_2 "00000000000000000000000002"

static struct reserve_care care;
static struct tg_sale sale;
static struct reserve_look look;
static struct reserve_care_view view;
static enum reserve_care_action actions[RESERVE_CARE_ACTIONS_MAX];

static int fresh_sale(void **state)
{
    memset(&care, 0, sizeof care);
    memset(&sale, 0, sizeof sale);
    memset(&look, 0, sizeof look);
    sale.phase = TG_PHASE_SCHEDULED;
    sale.epoch = 4;
    sale.heard.ms = 10000;
    sale.item_count = 1;
    view = (struct reserve_care_view){
        .now = {10100}, .sale = &sale, .run_id = RUN, .noeviction = true};
    return 0;
}

static size_t step(const struct reserve_care_event *event)
{
    return reserve_care_step(&care, &view, event, actions);
}

static size_t say(enum reserve_care_event_kind kind, enum reserve_step_result result)
{
    const struct reserve_care_event event = {
        .kind = kind, .result = result, .replication_id = REPLID};
    return step(&event);
}

static size_t tick(void)
{
    return say(RESERVE_CARE_TICK, RESERVE_RESULT_DONE);
}

static size_t looked(void)
{
    const struct reserve_care_event event = {.kind = RESERVE_CARE_LOOKED, .look = &look};
    return step(&event);
}

static size_t fetched(uint32_t rows, const char *after, bool end)
{
    const struct reserve_care_event event = {
        .kind = RESERVE_CARE_FETCHED, .rows = rows, .after = after, .end = end};
    return step(&event);
}

/* An armed gate that the ledger knows. */
static void arm_all(void)
{
    sale.armed = true;
    memcpy(sale.run_id, RUN, sizeof RUN);
    look.known = look.armed = true;
    look.epoch = 4;
    look.item_count = 1;
    look.items[0] = (struct reserve_look_item){10, 7, 2, 1, 7};
    memcpy(look.run_id, RUN, sizeof RUN);
    memcpy(look.replication_id, REPLID, sizeof REPLID);
}

static void one_look_at_a_time_and_only_when_connected(void **state)
{
    assert_int_equal(tick(), 1);
    assert_int_equal(actions[0], RESERVE_CARE_DO_LOOK);
    assert_int_equal(tick(), 0);
    arm_all();
    assert_int_equal(looked(), 1);
    assert_int_equal(actions[0], RESERVE_CARE_DO_PUBLISH);
    view.run_id = NULL;
    assert_int_equal(tick(), 0);
}

static void a_gate_is_loaded_page_by_page_and_told_last(void **state)
{
    (void)tick();
    assert_int_equal(looked(), 2);
    assert_int_equal(actions[0], RESERVE_CARE_DO_PUBLISH);
    assert_int_equal(actions[1], RESERVE_CARE_DO_BEGIN);
    assert_int_equal(say(RESERVE_CARE_BEGUN, RESERVE_RESULT_DONE), 1);
    assert_int_equal(actions[0], RESERVE_CARE_DO_FETCH);
    assert_string_equal(care.after, "");
    assert_int_equal(fetched(25, "res_A", false), 1);
    assert_int_equal(actions[0], RESERVE_CARE_DO_PAGE);
    assert_int_equal(care.page, 1);
    assert_int_equal(say(RESERVE_CARE_PAGED, RESERVE_RESULT_DONE), 1);
    assert_int_equal(actions[0], RESERVE_CARE_DO_FETCH);
    assert_string_equal(care.after, "res_A");
    assert_int_equal(fetched(3, "res_B", true), 1);
    assert_int_equal(care.page, 2);
    assert_int_equal(say(RESERVE_CARE_PAGED, RESERVE_RESULT_DONE), 1);
    assert_int_equal(actions[0], RESERVE_CARE_DO_FINISH);
    assert_int_equal(say(RESERVE_CARE_FINISHED, RESERVE_RESULT_DONE), 1);
    assert_int_equal(actions[0], RESERVE_CARE_DO_ARM);
    assert_int_equal(say(RESERVE_CARE_ARMED, RESERVE_RESULT_DONE), 1);
    assert_int_equal(actions[0], RESERVE_CARE_DO_TELL);
    assert_string_equal(care.replication_id, REPLID);
    assert_int_equal(say(RESERVE_CARE_TOLD, RESERVE_RESULT_DONE), 0);
    assert_int_equal(care.stage, RESERVE_CARE_IDLE);
}

static void an_empty_ledger_makes_an_empty_gate(void **state)
{
    (void)tick();
    (void)looked();
    (void)say(RESERVE_CARE_BEGUN, RESERVE_RESULT_DONE);
    assert_int_equal(fetched(0, "", true), 1);
    assert_int_equal(actions[0], RESERVE_CARE_DO_FINISH);
}

static void nothing_is_loaded_when_it_must_not(void **state)
{
    static const enum tg_phase never[] = {TG_PHASE_UNKNOWN, TG_PHASE_CLOSED};
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        fresh_sale(NULL);
        sale.phase = never[i];
        (void)tick();
        assert_int_equal(looked(), 1);
    }
    /* An epoch that was armed once stays as it is: after a loss only a rebuild helps. */
    fresh_sale(NULL);
    sale.armed = true;
    (void)tick();
    assert_int_equal(looked(), 1);
    fresh_sale(NULL);
    view.now.ms = sale.heard.ms + TG_MAX_STATE_STALE_MS + 1;
    (void)tick();
    assert_int_equal(looked(), 1);
    fresh_sale(NULL);
    view.noeviction = false;
    (void)tick();
    assert_int_equal(looked(), 1);
}

static void a_failed_step_begins_anew_later(void **state)
{
    static const enum reserve_care_event_kind steps[] = {RESERVE_CARE_BEGUN, RESERVE_CARE_FETCHED,
                                                         RESERVE_CARE_PAGED, RESERVE_CARE_FINISHED,
                                                         RESERVE_CARE_ARMED};
    for (size_t failing = 0; failing < sizeof steps / sizeof steps[0]; failing++) {
        fresh_sale(NULL);
        (void)tick();
        (void)looked();
        for (size_t i = 0; i < failing; i++) {
            if (steps[i] == RESERVE_CARE_FETCHED) {
                (void)fetched(1, "res_A", true);
            } else {
                (void)say(steps[i], RESERVE_RESULT_DONE);
            }
        }
        assert_int_equal(say(steps[failing], RESERVE_RESULT_FAILED), 0);
        assert_int_equal(care.stage, RESERVE_CARE_IDLE);
        (void)tick();
        assert_int_equal(looked(), 1); /* not at once */
        view.now.ms += RESERVE_CARE_RETRY_MS;
        (void)tick();
        assert_int_equal(looked(), 2);
        assert_int_equal(actions[1], RESERVE_CARE_DO_BEGIN);
    }
}

static void a_new_epoch_ends_the_load_of_the_old_one(void **state)
{
    (void)tick();
    (void)looked();
    (void)say(RESERVE_CARE_BEGUN, RESERVE_RESULT_DONE);
    sale.epoch = 5;
    assert_int_equal(fetched(1, "res_A", true), 0);
    assert_int_equal(care.stage, RESERVE_CARE_IDLE);
    assert_int_equal(say(RESERVE_CARE_PAGED, RESERVE_RESULT_DONE), 0);
}

static void whoever_finds_it_armed_tells_the_ledger(void **state)
{
    arm_all();
    sale.armed = false;
    (void)tick();
    assert_int_equal(looked(), 2);
    assert_int_equal(actions[1], RESERVE_CARE_DO_TELL);
    assert_string_equal(care.replication_id, REPLID);

    /* Armed on another run of Redis: not ours to tell, not ours to load. */
    fresh_sale(NULL);
    arm_all();
    sale.armed = false;
    memcpy(look.run_id, OTHER_RUN, sizeof OTHER_RUN);
    (void)tick();
    assert_int_equal(looked(), 1);
    assert_int_equal(care.stage, RESERVE_CARE_IDLE);

    fresh_sale(NULL);
    (void)tick();
    (void)looked();
    assert_int_equal(say(RESERVE_CARE_BEGUN, RESERVE_RESULT_ARMED_ALREADY), 1);
    assert_int_equal(actions[0], RESERVE_CARE_DO_TELL);
}

static void a_look_at_another_epochs_gate_decides_nothing(void **state)
{
    arm_all();
    sale.armed = false;
    look.epoch = 3;
    look.pause_count = 0;
    sale.pause_count = 1;
    (void)tick();
    assert_int_equal(looked(), 1);
    assert_int_equal(actions[0], RESERVE_CARE_DO_PUBLISH);
    assert_false(reserve_care_armed(&care, &view));
}

static void armed_means_everybody_names_the_same(void **state)
{
    arm_all();
    (void)tick();
    (void)looked();
    assert_true(reserve_care_armed(&care, &view));
    view.run_id = OTHER_RUN;
    assert_false(reserve_care_armed(&care, &view));
    view.run_id = NULL;
    assert_false(reserve_care_armed(&care, &view));
    view.run_id = RUN;
    sale.run_id[0] = 'f';
    assert_false(reserve_care_armed(&care, &view));
    sale.run_id[0] = RUN[0];
    sale.armed = false;
    assert_false(reserve_care_armed(&care, &view));
    sale.armed = true;
    care.look.armed = false;
    assert_false(reserve_care_armed(&care, &view));
}

static void pauses_follow_the_ledger(void **state)
{
    arm_all();
    sale.pause_count = 1;
    memcpy(sale.pauses[0].id, PAUSE, sizeof PAUSE);
    (void)tick();
    assert_int_equal(looked(), 2);
    assert_int_equal(actions[1], RESERVE_CARE_DO_PAUSE);
    look.pause_count = 1;
    memcpy(look.pauses[0], PAUSE, sizeof PAUSE);
    (void)tick();
    assert_int_equal(looked(), 1);
    sale.own_pause_count = 1;
    memcpy(sale.own_pauses[0].id, PAUSE_2, sizeof PAUSE_2);
    (void)tick();
    assert_int_equal(looked(), 2);
    assert_int_equal(actions[1], RESERVE_CARE_DO_PAUSE);
}

static void a_pause_leaves_only_when_it_is_listed_as_lifted(void **state)
{
    arm_all();
    look.pause_count = 1;
    memcpy(look.pauses[0], PAUSE, sizeof PAUSE);
    (void)tick();
    assert_int_equal(looked(), 1); /* the gate's own doubt: nobody lifted it */
    sale.lifted_count = 1;
    memcpy(sale.lifted[0], PAUSE, sizeof PAUSE);
    (void)tick();
    assert_int_equal(looked(), 2);
    assert_int_equal(actions[1], RESERVE_CARE_DO_LIFT);
    assert_true(reserve_care_lifts(&sale, PAUSE));
    assert_false(reserve_care_lifts(&sale, PAUSE_2));
    /* Active again, or a state that is too old: it stays. */
    sale.own_pause_count = 1;
    memcpy(sale.own_pauses[0].id, PAUSE, sizeof PAUSE);
    assert_false(reserve_care_lifts(&sale, PAUSE));
    sale.own_pause_count = 0;
    view.now.ms = sale.heard.ms + TG_MAX_STATE_STALE_MS + 1;
    (void)tick();
    assert_int_equal(looked(), 1);
}

static void a_broken_key_is_doubted_once_and_told(void **state)
{
    const struct reserve_care_event broken = {.kind = RESERVE_CARE_LOOKED, .broken = true};
    arm_all();
    (void)tick();
    (void)looked();
    (void)tick();
    assert_int_equal(step(&broken), 2);
    assert_int_equal(actions[0], RESERVE_CARE_DO_DOUBT);
    assert_int_equal(actions[1], RESERVE_CARE_DO_PUBLISH);
    assert_false(reserve_care_armed(&care, &view));
    (void)tick();
    assert_int_equal(step(&broken), 1);
    assert_int_equal(actions[0], RESERVE_CARE_DO_PUBLISH);
    /* An answer that did not come says nothing: nothing is told, others may know better. */
    const struct reserve_care_event unknown = {.kind = RESERVE_CARE_LOOKED};
    (void)tick();
    assert_int_equal(step(&unknown), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup(name, fresh_sale)
    const struct CMUnitTest tests[] = {
        CASE(one_look_at_a_time_and_only_when_connected),
        CASE(a_gate_is_loaded_page_by_page_and_told_last),
        CASE(an_empty_ledger_makes_an_empty_gate),
        CASE(nothing_is_loaded_when_it_must_not),
        CASE(a_failed_step_begins_anew_later),
        CASE(a_new_epoch_ends_the_load_of_the_old_one),
        CASE(whoever_finds_it_armed_tells_the_ledger),
        CASE(a_look_at_another_epochs_gate_decides_nothing),
        CASE(armed_means_everybody_names_the_same),
        CASE(pauses_follow_the_ledger),
        CASE(a_pause_leaves_only_when_it_is_listed_as_lifted),
        CASE(a_broken_key_is_doubted_once_and_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
