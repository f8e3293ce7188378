/* SPDX-License-Identifier: Apache-2.0
 * The proof's comparisons: a right sale is clean, every lasting corruption is found by the check
 * that owes it. */
#include "services/invariant/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

enum { UNITS = 10, MANY = 16 };

/* A sale of ten units: 1 pending, 2 confirmed and settled, 3 expired and released, 4 held and not
 * recorded yet. */
static struct {
    struct invariant_look look1[1], look2[1];
    struct invariant_entry r1[MANY], r2[MANY], claims[MANY];
    struct invariant_row rows[MANY];
    struct invariant_holding holdings[MANY];
    struct invariant_facts facts;
    struct invariant_judgement judgement;
} t;

static void id_of(uint8_t number, uint8_t out_id[INVARIANT_ID_BYTES])
{
    memset(out_id, 0, INVARIANT_ID_BYTES);
    out_id[INVARIANT_ID_BYTES - 1] = number;
}

static struct invariant_entry entry(uint8_t number, uint32_t unit, uint32_t places)
{
    struct invariant_entry made = {
        .unit_count = 1, .slots = 1, .user_tag = number * 1000u, .places = places};
    id_of(number, made.id);
    made.units_tag = invariant_units_tag(0, 0, unit);
    return made;
}

static struct invariant_entry claim(uint8_t number)
{
    struct invariant_entry made = entry(number, 0, INVARIANT_CLAIMED);
    made.units_tag = 0;
    return made;
}

static struct invariant_row row(uint8_t number, uint32_t unit, enum invariant_state state)
{
    const bool live = state == INVARIANT_PENDING || state == INVARIANT_CONFIRMED;
    struct invariant_row made = {.unit_count = 1,
                                 .slots = 1,
                                 .live_count = live,
                                 .user_tag = number * 1000u,
                                 .state = (uint8_t)state};
    id_of(number, made.id);
    made.units_tag = invariant_units_tag(0, 0, unit);
    return made;
}

static struct invariant_holding holding(uint8_t number, uint32_t unit)
{
    struct invariant_holding made = {.user_tag = number * 1000u, .unit = unit};
    id_of(number, made.id);
    return made;
}

#define SET_TEXT(member, text) ((void)snprintf((member), sizeof(member), "%s", (text)))

static int right_sale(void **state)
{
    memset(&t, 0, sizeof t);
    struct invariant_look look = {
        .present = true, .readable = true, .armed = true, .sequence = 9, .item_count = 1};
    SET_TEXT(look.run_id, "run");
    SET_TEXT(look.replication_id, "replication");
    look.items[0] = (struct invariant_item){
        .initial = UNITS, .stock = 7, .held = 2, .settled = 1, .free_bits = 7};
    t.look1[0] = look;
    t.look2[0] = look;
    t.look2[0].sequence++; /* the sale goes on meanwhile */
    t.r1[0] = entry(1, 1, INVARIANT_HELD);
    t.r1[1] = entry(2, 2, INVARIANT_SETTLED);
    t.r1[2] = entry(3, 3, INVARIANT_RELEASED);
    t.r1[3] = entry(4, 4, INVARIANT_HELD | INVARIANT_UNACKED);
    memcpy(t.r2, t.r1, sizeof t.r1);
    t.claims[0] = claim(1);
    t.claims[1] = claim(2);
    t.claims[2] = claim(4);
    t.rows[0] = row(1, 1, INVARIANT_PENDING);
    t.rows[1] = row(2, 2, INVARIANT_CONFIRMED);
    t.rows[2] = row(3, 3, INVARIANT_EXPIRED);
    t.rows[2].restocked = true;
    t.holdings[0] = holding(1, 1);
    t.holdings[1] = holding(2, 2);
    t.facts = (struct invariant_facts){
        .epoch = 5,
        .generation = 2,
        .shards = 1,
        .looked = 1,
        .server = {.run_id = "run", .replication_id = "replication", .primary = true},
        .look1 = t.look1,
        .look2 = t.look2,
        .complete = true,
        .r1 = t.r1,
        .r1_count = 4,
        .r2 = t.r2,
        .r2_count = 4,
        .claims = t.claims,
        .claim_count = 3,
        .ledger = {.epoch = 5,
                   .generation = 2,
                   .armed = true,
                   .run_id = "run",
                   .replication_id = "replication",
                   .system_identifier = "7",
                   .timeline = "1",
                   .system_identifier_now = "7",
                   .timeline_now = "1",
                   .shards = 1,
                   .item_count = 1,
                   .units = {UNITS},
                   .one_owner = true,
                   .one_slot = true,
                   .holdings_counted = 3,
                   .holdings_joined = 3},
        .rows = t.rows,
        .row_count = 3,
        .holdings = t.holdings,
        .holding_count = 2};
    for (uint32_t unit = 0; unit < UNITS; unit++) {
        const bool taken = unit == 1 || unit == 2 || unit == 4;
        t.facts.free_tag =
            taken ? t.facts.free_tag : invariant_units_tag(t.facts.free_tag, 0, unit);
    }
    return 0;
}

/* The reservation is in no buyer's row. */
static void unclaim(uint8_t number)
{
    size_t kept = 0;
    for (size_t i = 0; i < t.facts.claim_count; i++) {
        if (t.claims[i].id[INVARIANT_ID_BYTES - 1] != number) {
            t.claims[kept++] = t.claims[i];
        }
    }
    t.facts.claim_count = kept;
}

static enum invariant_outcome judge(void)
{
    invariant_judge(&t.facts, &t.judgement);
    return t.judgement.outcome;
}

/* Exactly this check fails, and no other. */
static void assert_alarm(enum invariant_check check)
{
    assert_int_equal(judge(), INVARIANT_ALARM);
    for (int i = 0; i < INVARIANT_CHECKS; i++) {
        if ((i == (int)check) != (t.judgement.findings[i].failures > 0)) {
            fail_msg("check %s: %u failures", invariant_check_name((enum invariant_check)i),
                     t.judgement.findings[i].failures);
        }
    }
}

static void a_right_sale_is_clean(void **state)
{
    assert_int_equal(judge(), INVARIANT_CLEAN);
    const struct invariant_judgement *j = &t.judgement;
    assert_int_equal(j->stock + j->pending + j->confirmed + j->in_flight - j->release_pending,
                     j->initial);
    assert_int_equal(j->in_flight, 1);
    assert_int_equal(j->pending, 1);
    assert_int_equal(j->confirmed, 1);
    assert_int_equal(j->oversold, 0);
}

/* Nothing was logged between the looks: what R2 found is all there is. */
static void counters_that_are_not_the_holds_are_found_while_nothing_moves(void **state)
{
    t.look2[0].sequence = t.look1[0].sequence;
    assert_int_equal(judge(), INVARIANT_CLEAN);
    t.look1[0].items[0].held = t.look2[0].items[0].held = 1;
    t.look1[0].items[0].settled = t.look2[0].items[0].settled = 2;
    assert_alarm(INVARIANT_CHECK_C1);
    t.look2[0].sequence++;
    assert_int_equal(judge(), INVARIANT_CLEAN); /* one was settled meanwhile, for all we know */
}

static void a_hold_that_is_gone_without_a_trace_is_found_while_nothing_moves(void **state)
{
    t.look2[0].sequence = t.look1[0].sequence;
    t.facts.r1_count = t.facts.r2_count = 3; /* number 4, which nobody has recorded */
    unclaim(4);
    assert_alarm(INVARIANT_CHECK_C1);
}

static void an_exchanged_free_unit_is_found_while_nothing_moves(void **state)
{
    static const uint8_t map[] = {0x97, 0xc0}, other[] = {0xd3, 0xc0}; /* 1 is held; 5 is free */
    t.look2[0].sequence = t.look1[0].sequence;
    assert_int_equal(invariant_free_tag(0, 0, map, sizeof map), t.facts.free_tag);
    t.facts.free_tag = invariant_free_tag(0, 0, other, sizeof other);
    assert_alarm(INVARIANT_CHECK_C1);
    t.look2[0].sequence++;
    assert_int_equal(judge(), INVARIANT_CLEAN); /* units came and went, for all we know */
}

static void a_sale_without_any_reservation_is_clean(void **state)
{
    t.facts.r1 = t.facts.r2 = NULL;
    t.facts.rows = NULL;
    t.facts.holdings = NULL;
    t.facts.claims = NULL;
    t.facts.r1_count = t.facts.r2_count = t.facts.row_count = t.facts.holding_count = 0;
    t.facts.claim_count = 0;
    t.facts.ledger.holdings_counted = t.facts.ledger.holdings_joined = 0;
    assert_int_equal(judge(), INVARIANT_CLEAN);
    assert_int_equal(invariant_fold(NULL, 0), 0);
    assert_int_equal(invariant_fold_rows(NULL, 0), 0);
}

static void an_obeyed_refund_between_the_reads_is_clean(void **state)
{
    /* cancelled after P, returned at the gate before R2: stock is back already, P still counts it
     * as confirmed */
    t.r2[1].places = INVARIANT_RELEASED;
    t.look2[0].items[0] = (struct invariant_item){
        .initial = UNITS, .stock = 8, .held = 2, .settled = 0, .free_bits = 8};
    assert_int_equal(judge(), INVARIANT_CLEAN);
    assert_int_equal(t.judgement.release_pending, 1);
    const struct invariant_judgement *j = &t.judgement;
    assert_int_equal(j->stock + j->pending + j->confirmed + j->in_flight - j->release_pending,
                     j->initial);
}

static void one_scan_sees_a_moving_reservation_twice(void **state)
{
    struct invariant_entry seen[3] = {entry(2, 2, INVARIANT_SETTLED), entry(1, 1, INVARIANT_HELD),
                                      entry(2, 2, INVARIANT_HELD)};
    struct invariant_entry unacked = {.places = INVARIANT_UNACKED};
    id_of(1, unacked.id);
    struct invariant_entry all[4] = {unacked, seen[0], seen[1], seen[2]};
    assert_int_equal(invariant_fold(all, 4), 2);
    assert_int_equal(all[0].places, INVARIANT_HELD | INVARIANT_UNACKED);
    assert_int_equal(all[0].unit_count, 1);
    assert_int_equal(all[1].places, INVARIANT_HELD | INVARIANT_SETTLED);
    assert_int_equal(invariant_fold(all, 0), 0);
}

static void units_are_compared_in_any_order_but_as_a_set(void **state)
{
    const uint64_t one = invariant_units_tag(invariant_units_tag(0, 0, 1), 0, 4);
    assert_true(one == invariant_units_tag(invariant_units_tag(0, 0, 4), 0, 1));
    assert_true(one != invariant_units_tag(invariant_units_tag(0, 0, 2), 0, 3));
    assert_true(invariant_units_tag(0, 1, 0) != invariant_units_tag(0, 0, 1));
}

/* ---- void ---- */

static void other_epoch_arming_or_shards_make_it_void(void **state)
{
    t.facts.ledger.epoch = 6;
    assert_int_equal(judge(), INVARIANT_VOID);
    right_sale(NULL);
    t.facts.ledger.armed = false;
    assert_int_equal(judge(), INVARIANT_VOID);
    right_sale(NULL);
    t.facts.ledger.generation = 3;
    assert_int_equal(judge(), INVARIANT_VOID);
    right_sale(NULL);
    t.facts.ledger.shards = 2;
    assert_int_equal(judge(), INVARIANT_VOID);
    right_sale(NULL);
    t.look2[0].armed = false;
    assert_int_equal(judge(), INVARIANT_VOID);
    right_sale(NULL);
    t.facts.ledger.closed = true;
    assert_int_equal(judge(), INVARIANT_VOID);
}

static void an_unfinished_round_is_never_clean(void **state)
{
    t.facts.complete = false;
    assert_int_equal(judge(), INVARIANT_VOID);
}

static void a_rebuild_in_between_accuses_nobody(void **state)
{
    t.facts.ledger.epoch = 6; /* the old keys may be gone already */
    t.look1[0] = (struct invariant_look){0};
    t.facts.complete = false;
    assert_int_equal(judge(), INVARIANT_VOID);
}

/* ---- G ---- */

static void another_redis_or_postgres_is_found(void **state)
{
    SET_TEXT(t.facts.server.run_id, "other");
    assert_alarm(INVARIANT_CHECK_G);
    right_sale(NULL);
    SET_TEXT(t.facts.server.replication_id, "other");
    assert_alarm(INVARIANT_CHECK_G);
    right_sale(NULL);
    t.facts.server.primary = false;
    assert_alarm(INVARIANT_CHECK_G);
    right_sale(NULL);
    t.facts.server.evicts = true;
    assert_alarm(INVARIANT_CHECK_G);
    right_sale(NULL);
    SET_TEXT(t.look1[0].run_id, "other");
    assert_alarm(INVARIANT_CHECK_G);
    right_sale(NULL);
    t.facts.ledger.in_recovery = true;
    assert_alarm(INVARIANT_CHECK_G);
    right_sale(NULL);
    SET_TEXT(t.facts.ledger.system_identifier_now, "8");
    assert_alarm(INVARIANT_CHECK_G);
    right_sale(NULL);
    SET_TEXT(t.facts.ledger.timeline_now, "2");
    assert_alarm(INVARIANT_CHECK_G);
}

static void a_flushed_gate_is_found(void **state)
{
    t.look1[0] = (struct invariant_look){0};
    t.facts.complete = false;
    t.facts.r1_count = 0;
    t.facts.r2_count = 0;
    assert_alarm(INVARIANT_CHECK_G);
}

/* ---- C0, C1 ---- */

static void rogue_counters_are_found(void **state)
{
    t.look1[0].items[0].stock++; /* INCR: one more to sell */
    assert_int_equal(judge(), INVARIANT_ALARM);
    assert_true(t.judgement.findings[INVARIANT_CHECK_C0].failures > 0);
    right_sale(NULL);
    t.look1[0].items[0].held++; /* kept in balance by a second hand */
    t.look1[0].items[0].stock--;
    assert_alarm(INVARIANT_CHECK_C1); /* the free map disagrees */
    right_sale(NULL);
    t.look1[0].items[0].stock = UINT64_MAX; /* sums may not wrap round to something right */
    t.look1[0].items[0].free_bits = UINT64_MAX;
    t.look1[0].items[0].held = UNITS;
    assert_alarm(INVARIANT_CHECK_C0);
}

static void a_flipped_free_bit_is_found(void **state)
{
    t.look1[0].items[0].free_bits++;
    assert_alarm(INVARIANT_CHECK_C1);
}

static void a_gate_of_more_units_is_found(void **state)
{
    t.look1[0].items[0].initial++;
    t.look1[0].items[0].stock++;
    t.look1[0].items[0].free_bits++;
    assert_alarm(INVARIANT_CHECK_C1);
}

static void torn_log_garbage_and_unreadable_counters_are_found(void **state)
{
    t.facts.log_torn = true;
    assert_alarm(INVARIANT_CHECK_C1);
    right_sale(NULL);
    t.facts.garbage = true;
    t.facts.complete = false;
    assert_alarm(INVARIANT_CHECK_C1);
    right_sale(NULL);
    t.look1[0] = (struct invariant_look){.present = true};
    t.facts.complete = false;
    assert_alarm(INVARIANT_CHECK_C1);
    right_sale(NULL);
    t.r1[0].places |= INVARIANT_GARBLED;
    assert_alarm(INVARIANT_CHECK_C1);
    assert_int_equal(t.judgement.findings[INVARIANT_CHECK_C1].ids[0][15], 1);
}

/* ---- C2 ---- */

static void two_owners_of_a_unit_are_found(void **state)
{
    /* an index was dropped: 2 lives on unit 1 too */
    t.holdings[1] = holding(2, 1);
    t.rows[1].units_tag = t.rows[0].units_tag;
    t.r1[1].units_tag = t.r2[1].units_tag = t.rows[0].units_tag;
    assert_alarm(INVARIANT_CHECK_C2);
}

static void a_slot_used_twice_is_found(void **state)
{
    t.holdings[1].user_tag = t.holdings[0].user_tag;
    assert_alarm(INVARIANT_CHECK_C2);
}

static void more_live_than_units_is_oversold(void **state)
{
    t.facts.ledger.units[0] = 1;
    t.look1[0].items[0] = (struct invariant_item){.initial = 1, .settled = 1};
    t.holdings[0].unit = 0;
    t.holdings[1].unit = 0;
    assert_int_equal(judge(), INVARIANT_ALARM);
    assert_true(t.judgement.findings[INVARIANT_CHECK_C2].failures > 0);
    assert_int_equal(t.judgement.oversold, 1);
}

static void units_that_do_not_exist_are_found(void **state)
{
    t.holdings[0].unit = UNITS;
    assert_alarm(INVARIANT_CHECK_C2);
    right_sale(NULL);
    t.holdings[0].item = 1;
    assert_alarm(INVARIANT_CHECK_C2);
}

static void a_dropped_index_is_found(void **state)
{
    t.facts.ledger.one_owner = false;
    assert_alarm(INVARIANT_CHECK_C2);
    right_sale(NULL);
    t.facts.ledger.one_slot = false;
    assert_alarm(INVARIANT_CHECK_C2);
}

static void a_state_without_its_holdings_is_found(void **state)
{
    t.rows[1].live_count = 0; /* sold, but the unit is free to be sold again */
    assert_alarm(INVARIANT_CHECK_C2);
    right_sale(NULL);
    t.rows[2].live_count = 1;
    assert_alarm(INVARIANT_CHECK_C2);
    right_sale(NULL);
    t.rows[0].restocked = true;
    assert_alarm(INVARIANT_CHECK_C2);
    right_sale(NULL);
    t.facts.ledger.holdings_counted++; /* a holding of nobody */
    assert_alarm(INVARIANT_CHECK_C2);
}

/* ---- A, B, C, E, U ---- */

static void a_deleted_hold_is_found(void **state)
{
    t.facts.r1 = t.r1 + 1;
    t.facts.r1_count = 3;
    t.facts.r2 = t.r2 + 1;
    t.facts.r2_count = 3;
    unclaim(1);
    assert_alarm(INVARIANT_CHECK_A);
    assert_int_equal(t.judgement.findings[INVARIANT_CHECK_A].ids[0][15], 1);
}

static void a_hold_deleted_before_it_was_recorded_is_found(void **state)
{
    t.r1[3].places = INVARIANT_UNACKED; /* still in unacked, gone from held */
    t.facts.r2_count = 3;
    unclaim(4);
    assert_alarm(INVARIANT_CHECK_A);
}

static void only_a_set_member_is_not_known(void **state)
{
    t.r2[0].places = INVARIANT_UNACKED;
    assert_alarm(INVARIANT_CHECK_A);
}

/* As the script does it: the buyer's row is cleared too. */
static void give_back(uint8_t number)
{
    t.r1[number - 1].places = t.r2[number - 1].places = INVARIANT_RELEASED;
    unclaim(number);
}

static void a_forged_release_is_found(void **state)
{
    for (uint8_t number = 1; number <= 4; number++) { /* 3 has its verdict */
        right_sale(NULL);
        give_back(number);
        if (number == 3) {
            assert_int_equal(judge(), INVARIANT_CLEAN);
        } else {
            assert_alarm(INVARIANT_CHECK_B);
        }
    }
}

static void a_forged_sale_is_found(void **state)
{
    t.r1[0].places = t.r2[0].places = INVARIANT_SETTLED;
    assert_alarm(INVARIANT_CHECK_C);
    right_sale(NULL);
    t.rows[1].state = INVARIANT_CANCELLED; /* cancelled since: fine */
    t.rows[1].live_count = 0;
    t.facts.holding_count = 1;
    assert_int_equal(judge(), INVARIANT_CLEAN);
}

/* The simulator's seed 164481: a state of the gate from before it obeyed was restored, and nothing
 * was wrong but that what the ledger had noted as done was not. */
static void a_snapshot_from_before_the_orders_is_found(void **state)
{
    static const struct {
        enum invariant_state state;
        uint32_t places;
    } undone[] = {{INVARIANT_CONFIRMED, INVARIANT_HELD},
                  {INVARIANT_EXPIRED, INVARIANT_HELD},
                  {INVARIANT_CANCELLED, INVARIANT_HELD},
                  {INVARIANT_CANCELLED, INVARIANT_SETTLED}};
    for (size_t i = 0; i < sizeof undone / sizeof undone[0]; i++) {
        right_sale(NULL);
        const uint8_t at = undone[i].state == INVARIANT_CONFIRMED ? 1 : 2;
        t.rows[at].state = (uint8_t)undone[i].state;
        if (at == 2) { /* live again, so its buyer's row names it */
            t.claims[2] = claim(3);
            t.claims[3] = claim(4);
            t.facts.claim_count = 4;
        }
        t.r1[at].places = t.r2[at].places = undone[i].places;
        assert_int_equal(judge(), INVARIANT_CLEAN); /* the order is still on its way */
        t.rows[at].obeyed = true;
        assert_alarm(INVARIANT_CHECK_D);
        t.r2[at].places |= INVARIANT_RELEASED; /* seen while it moved */
        assert_int_equal(judge(), INVARIANT_CLEAN);
    }
}

static void a_lost_row_is_found(void **state)
{
    t.r1[3].places = t.r2[3].places = INVARIANT_HELD; /* acknowledged, yet not in the ledger */
    assert_alarm(INVARIANT_CHECK_E);
}

static void another_unit_or_user_is_found(void **state)
{
    t.r2[0].units_tag = invariant_units_tag(0, 0, 9);
    assert_alarm(INVARIANT_CHECK_U);
    right_sale(NULL);
    t.r2[1].user_tag++;
    t.claims[1].user_tag++;
    assert_alarm(INVARIANT_CHECK_U);
    right_sale(NULL);
    t.r2[0].unit_count = 2;
    assert_alarm(INVARIANT_CHECK_U);
    right_sale(NULL);
    t.r2[2].unit_count = 0; /* loaded by a rebuild without units: nothing to compare */
    t.r2[2].units_tag = 0;
    t.r2[2].user_tag = 0;
    assert_int_equal(judge(), INVARIANT_CLEAN);
    right_sale(NULL);
    t.rows[1].slots = 2;
    assert_alarm(INVARIANT_CHECK_U);
}

/* ---- L ---- */

static void an_edited_row_of_buyers_is_found(void **state)
{
    unclaim(2); /* he may buy once more */
    assert_alarm(INVARIANT_CHECK_L);
    right_sale(NULL);
    t.claims[0].user_tag++; /* somebody else's */
    assert_alarm(INVARIANT_CHECK_L);
    right_sale(NULL);
    t.claims[0].slots = 2;
    assert_alarm(INVARIANT_CHECK_L);
    right_sale(NULL);
    t.claims[2] = claim(9); /* of a reservation that is none; 4 is in no row */
    assert_alarm(INVARIANT_CHECK_L);
    assert_int_equal(t.judgement.findings[INVARIANT_CHECK_L].failures, 2);
    right_sale(NULL);
    t.claims[3] = claim(4); /* two buyers claim it */
    t.claims[3].user_tag = 1;
    t.facts.claim_count = 4;
    assert_alarm(INVARIANT_CHECK_L);
    right_sale(NULL);
    t.claims[2] = claim(3); /* given back before the row was read */
    unclaim(4);
    t.facts.claim_count = 3;
    assert_alarm(INVARIANT_CHECK_L);
    right_sale(NULL);
    t.claims[0].places |= INVARIANT_GARBLED;
    assert_alarm(INVARIANT_CHECK_C1);
}

static void a_buyers_row_read_in_motion_accuses_nobody(void **state)
{
    t.r1[3].places = INVARIANT_UNACKED; /* its hash was read before it was there; the set after */
    unclaim(4);                         /* the row was read before it was held */
    assert_int_equal(judge(), INVARIANT_CLEAN);
    right_sale(NULL);
    t.r2[1].places = INVARIANT_RELEASED; /* given back before or after its row was read */
    assert_int_equal(judge(), INVARIANT_CLEAN);
    unclaim(2);
    assert_int_equal(judge(), INVARIANT_CLEAN);
}

static void the_detail_names_check_and_reservations_within_its_room(void **state)
{
    char text[512], tight[24];
    give_back(1);
    assert_int_equal(judge(), INVARIANT_ALARM);
    const size_t length = invariant_detail(&t.judgement, text, sizeof text);
    assert_int_equal(length, strlen(text));
    assert_string_equal(
        text, "B (1): given back at the gate without a verdict: res_00000000000000000000000001");
    assert_int_equal(invariant_detail(&t.judgement, tight, sizeof tight), sizeof tight - 1);
    assert_int_equal(strlen(tight), sizeof tight - 1);
}

static void many_failures_tell_five(void **state)
{
    static struct invariant_entry entries[MANY];
    for (uint8_t i = 0; i < MANY; i++) {
        entries[i] = entry((uint8_t)(10 + i), i, INVARIANT_SETTLED);
    }
    t.facts.r1 = entries;
    t.facts.r1_count = MANY;
    assert_int_equal(judge(), INVARIANT_ALARM);
    assert_int_equal(t.judgement.findings[INVARIANT_CHECK_C].failures, MANY);
    assert_int_equal(t.judgement.findings[INVARIANT_CHECK_C].id_count, INVARIANT_IDS_TOLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_right_sale_is_clean, right_sale),
        cmocka_unit_test_setup(counters_that_are_not_the_holds_are_found_while_nothing_moves,
                               right_sale),
        cmocka_unit_test_setup(a_hold_that_is_gone_without_a_trace_is_found_while_nothing_moves,
                               right_sale),
        cmocka_unit_test_setup(an_exchanged_free_unit_is_found_while_nothing_moves, right_sale),
        cmocka_unit_test_setup(a_sale_without_any_reservation_is_clean, right_sale),
        cmocka_unit_test_setup(an_obeyed_refund_between_the_reads_is_clean, right_sale),
        cmocka_unit_test_setup(one_scan_sees_a_moving_reservation_twice, right_sale),
        cmocka_unit_test_setup(units_are_compared_in_any_order_but_as_a_set, right_sale),
        cmocka_unit_test_setup(other_epoch_arming_or_shards_make_it_void, right_sale),
        cmocka_unit_test_setup(an_unfinished_round_is_never_clean, right_sale),
        cmocka_unit_test_setup(a_rebuild_in_between_accuses_nobody, right_sale),
        cmocka_unit_test_setup(another_redis_or_postgres_is_found, right_sale),
        cmocka_unit_test_setup(a_flushed_gate_is_found, right_sale),
        cmocka_unit_test_setup(rogue_counters_are_found, right_sale),
        cmocka_unit_test_setup(a_flipped_free_bit_is_found, right_sale),
        cmocka_unit_test_setup(a_gate_of_more_units_is_found, right_sale),
        cmocka_unit_test_setup(torn_log_garbage_and_unreadable_counters_are_found, right_sale),
        cmocka_unit_test_setup(two_owners_of_a_unit_are_found, right_sale),
        cmocka_unit_test_setup(a_slot_used_twice_is_found, right_sale),
        cmocka_unit_test_setup(more_live_than_units_is_oversold, right_sale),
        cmocka_unit_test_setup(units_that_do_not_exist_are_found, right_sale),
        cmocka_unit_test_setup(a_state_without_its_holdings_is_found, right_sale),
        cmocka_unit_test_setup(a_deleted_hold_is_found, right_sale),
        cmocka_unit_test_setup(a_hold_deleted_before_it_was_recorded_is_found, right_sale),
        cmocka_unit_test_setup(only_a_set_member_is_not_known, right_sale),
        cmocka_unit_test_setup(a_forged_release_is_found, right_sale),
        cmocka_unit_test_setup(a_forged_sale_is_found, right_sale),
        cmocka_unit_test_setup(a_snapshot_from_before_the_orders_is_found, right_sale),
        cmocka_unit_test_setup(a_lost_row_is_found, right_sale),
        cmocka_unit_test_setup(another_unit_or_user_is_found, right_sale),
        cmocka_unit_test_setup(an_edited_row_of_buyers_is_found, right_sale),
        cmocka_unit_test_setup(a_buyers_row_read_in_motion_accuses_nobody, right_sale),
        cmocka_unit_test_setup(a_dropped_index_is_found, right_sale),
        cmocka_unit_test_setup(the_detail_names_check_and_reservations_within_its_room, right_sale),
        cmocka_unit_test_setup(many_failures_tell_five, right_sale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
