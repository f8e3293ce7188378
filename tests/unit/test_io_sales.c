/* SPDX-License-Identifier: Apache-2.0
 * States into the view: what counts as newer, and that nothing old, doubled or reordered lifts a
 * pause. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/io/sales_inner.h"

#include <string.h>

static char first[] = "00000000000000000000000001", second[] = "00000000000000000000000002";
static uint8_t digest[TG_DIGEST_BYTES] = {1, 2, 3};
static struct sales_entry entry;
static struct tg_mono now;

struct announced {
    Tidegate__V1__SaleState state;
    Tidegate__V1__PauseEntry pause;
    Tidegate__V1__PauseEntry *pauses[TG_MAX_PAUSES + 1];
    char *lifted[TG_MAX_LIFTED + 1];
};

/* An open sale's state at this sequence and second. */
static void announce(struct announced *out, uint64_t sequence, int64_t second_of_ledger)
{
    tidegate__v1__sale_state__init(&out->state);
    tidegate__v1__pause_entry__init(&out->pause);
    out->state.generation = 1;
    out->state.phase = TIDEGATE__V1__SALE_PHASE__SALE_PHASE_OPEN;
    out->state.epoch = 1;
    out->state.control_sequence = sequence;
    out->state.ledger_now_ms = second_of_ledger * 1000;
    out->state.definition_digest = (ProtobufCBinaryData){sizeof(digest), digest};
    out->state.pauses = out->pauses;
    out->state.lifted = out->lifted;
}

static void with_pause(struct announced *out, char *id)
{
    out->pause.pause_id = id;
    out->pauses[0] = &out->pause;
    out->state.n_pauses = 1;
    out->state.phase = TIDEGATE__V1__SALE_PHASE__SALE_PHASE_PAUSED;
}

static void with_lifted(struct announced *out, char *id)
{
    out->lifted[0] = id;
    out->state.n_lifted = 1;
}

static bool take(const struct announced *announced)
{
    return sales_state_take(&entry, &announced->state, now);
}

static enum tg_phase phase(void)
{
    return tg_sale_phase(&entry.sale, now);
}

static void honour(const char *id)
{
    assert_int_equal(tg_sale_pause(&entry.sale, id, "test"), 0);
    entry.pause_generation = 1;
}

/* A sale whose definition came first. */
static int setup(void **state)
{
    (void)state;
    memset(&entry, 0, sizeof(entry));
    entry.defined = true;
    entry.sale.generation = 1;
    now.ms = 1000000;
    return 0;
}

static void a_state_fills_the_view(void **state)
{
    struct announced open;

    (void)state;
    announce(&open, 1, 10);
    open.state.armed = true;
    open.state.clean_rounds = 5;
    assert_true(take(&open));
    assert_int_equal(phase(), TG_PHASE_OPEN);
    assert_int_equal(entry.sale.epoch, 1);
    assert_true(entry.sale.armed);
    assert_true(entry.wanted); /* its digest is another */
    now.ms += TG_MAX_STATE_STALE_MS + 1;
    assert_int_equal(phase(), TG_PHASE_PAUSED);
}

static void a_pause_stays_until_the_ledger_lifts_it(void **state)
{
    struct announced open, paused, resumed;

    (void)state;
    announce(&open, 1, 10);
    assert_true(take(&open));
    honour(first);
    assert_int_equal(phase(), TG_PHASE_PAUSED);
    announce(&open, 2, 11); /* the ledger has not heard of it yet */
    assert_true(take(&open));
    assert_int_equal(phase(), TG_PHASE_PAUSED);
    announce(&paused, 3, 12);
    with_pause(&paused, first);
    assert_true(take(&paused));
    assert_int_equal(entry.sale.own_pause_count, 0);
    assert_int_equal(phase(), TG_PHASE_PAUSED);
    announce(&resumed, 4, 13);
    with_lifted(&resumed, first);
    assert_true(take(&resumed));
    assert_int_equal(phase(), TG_PHASE_OPEN);
}

static void two_pauses_need_two_lifts(void **state)
{
    struct announced resumed;

    (void)state;
    announce(&resumed, 1, 10);
    assert_true(take(&resumed));
    honour(first);
    honour(second);
    announce(&resumed, 2, 11);
    with_lifted(&resumed, first);
    assert_true(take(&resumed));
    assert_int_equal(entry.sale.own_pause_count, 1);
    assert_int_equal(phase(), TG_PHASE_PAUSED);
}

static void older_states_are_not_taken(void **state)
{
    struct announced open, paused;

    (void)state;
    announce(&open, 4, 20);
    assert_true(take(&open));
    announce(&paused, 5, 21);
    with_pause(&paused, first);
    assert_true(take(&paused));
    now.ms += 500;
    assert_false(take(&open)); /* of the sequence before: sent again, or by a slower ledger */
    announce(&open, 5, 20);    /* of this sequence, read a second earlier by another ledger */
    assert_false(take(&open));
    assert_int_equal(phase(), TG_PHASE_PAUSED);
    assert_int_equal(entry.sale.heard.ms, now.ms - 500);
}

static void a_replayed_state_does_not_keep_the_view_fresh(void **state)
{
    struct announced open;

    (void)state;
    announce(&open, 4, 20);
    assert_true(take(&open));
    announce(&open, 3, 19);
    for (int i = 0; i < 10; i++) {
        now.ms += 500;
        assert_false(take(&open));
    }
    assert_int_equal(phase(), TG_PHASE_PAUSED);
}

static void a_ledger_clock_set_back_costs_three_seconds(void **state)
{
    struct announced open;

    (void)state;
    announce(&open, 4, 2000);
    assert_true(take(&open));
    announce(&open, 4, 1000);
    now.ms += 1000;
    assert_false(take(&open));
    now.ms += TG_MAX_STATE_STALE_MS;
    assert_true(take(&open));
    assert_int_equal(phase(), TG_PHASE_OPEN);
}

static void epochs_and_sequences_never_go_back(void **state)
{
    struct announced open;

    (void)state;
    announce(&open, 9, 100);
    open.state.epoch = 3;
    assert_true(take(&open));
    now.ms += TG_MAX_STATE_STALE_MS + 1000; /* not even when nothing else is heard */
    announce(&open, 10, 101);
    open.state.epoch = 2;
    assert_false(take(&open));
    announce(&open, 8, 101);
    open.state.epoch = 3;
    assert_false(take(&open));
    announce(&open, 1, 50); /* a ledger that lost commits, rebuilt */
    open.state.epoch = 4;
    assert_true(take(&open));
}

static void a_new_generation_begins_afresh(void **state)
{
    struct announced open;

    (void)state;
    announce(&open, 9, 100);
    open.state.epoch = 3;
    assert_true(take(&open));
    honour(first);
    entry.sale.item_count = 2;
    announce(&open, 1, 101);
    open.state.generation = 2;
    open.state.epoch = 4;
    assert_true(take(&open));
    assert_false(entry.defined);
    assert_int_equal(entry.sale.item_count, 0); /* whose they were, its gate is not */
    assert_true(entry.wanted);
    assert_int_equal(entry.sale.own_pause_count, 0);
    assert_int_equal(phase(), TG_PHASE_UNKNOWN); /* until its definition is known */
    assert_int_equal(entry.announced, TG_PHASE_OPEN);
    announce(&open, 99, 102); /* the old sale's ledger */
    open.state.epoch = 9;
    assert_false(take(&open));
}

static void a_pause_for_the_next_generation_is_kept(void **state)
{
    struct announced open;

    (void)state;
    announce(&open, 9, 100);
    assert_true(take(&open));
    honour(first);
    entry.pause_generation = 2;
    announce(&open, 1, 101);
    open.state.generation = 2;
    assert_true(take(&open));
    assert_int_equal(entry.sale.own_pause_count, 1);
}

static void malformed_states_change_nothing(void **state)
{
    struct announced bad;
    char lower[] = "0000000000000000000000000a", long_run_id[42];

    (void)state;
    announce(&bad, 1, 10);
    with_pause(&bad, lower);
    assert_false(take(&bad));
    announce(&bad, 1, 10);
    with_lifted(&bad, lower);
    assert_false(take(&bad));
    announce(&bad, 1, 10);
    bad.state.n_pauses = TG_MAX_PAUSES + 1;
    assert_false(take(&bad));
    announce(&bad, 1, 10);
    bad.state.n_lifted = TG_MAX_LIFTED + 1;
    assert_false(take(&bad));
    announce(&bad, 1, 10);
    bad.state.phase = (Tidegate__V1__SalePhase)77;
    assert_false(take(&bad));
    announce(&bad, 1, 10);
    bad.state.generation = 0;
    assert_false(take(&bad));
    announce(&bad, 1, 10);
    bad.state.definition_digest.len = 15;
    assert_false(take(&bad));
    announce(&bad, 1, 10);
    memset(long_run_id, 'a', sizeof(long_run_id) - 1);
    long_run_id[sizeof(long_run_id) - 1] = '\0';
    bad.state.run_id = long_run_id;
    assert_false(take(&bad));
    assert_false(entry.stated);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_state_fills_the_view, setup),
        cmocka_unit_test_setup(a_pause_stays_until_the_ledger_lifts_it, setup),
        cmocka_unit_test_setup(two_pauses_need_two_lifts, setup),
        cmocka_unit_test_setup(older_states_are_not_taken, setup),
        cmocka_unit_test_setup(a_replayed_state_does_not_keep_the_view_fresh, setup),
        cmocka_unit_test_setup(a_ledger_clock_set_back_costs_three_seconds, setup),
        cmocka_unit_test_setup(epochs_and_sequences_never_go_back, setup),
        cmocka_unit_test_setup(a_new_generation_begins_afresh, setup),
        cmocka_unit_test_setup(a_pause_for_the_next_generation_is_kept, setup),
        cmocka_unit_test_setup(malformed_states_change_nothing, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
