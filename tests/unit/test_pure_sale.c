/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/sale.h"

#include <stdio.h>
#include <string.h>

#define ID_A "01ARZ3NDEKTSV4RRFFQ69G5FAV"
#define ID_B "01BX5ZZKBKACTAV9WEVGEMMVRZ"

static const struct tg_mono fresh = {10000 + TG_MAX_STATE_STALE_MS};
static const struct tg_mono stale = {10000 + TG_MAX_STATE_STALE_MS + 1};

static struct tg_sale open_sale(void)
{
    return (struct tg_sale){.name = "demo", .phase = TG_PHASE_OPEN, .heard = {10000}};
}

static void an_open_sale_is_open_while_heard_of(void **state)
{
    struct tg_sale sale = open_sale();
    assert_int_equal(tg_sale_phase(&sale, fresh), TG_PHASE_OPEN);
    assert_int_equal(tg_sale_phase(&sale, stale), TG_PHASE_PAUSED);
}

static void silence_pauses_every_phase(void **state)
{
    for (int phase = TG_PHASE_UNKNOWN; phase <= TG_PHASE_CLOSED; phase++) {
        struct tg_sale sale = open_sale();
        sale.phase = (enum tg_phase)phase;
        assert_int_equal(tg_sale_phase(&sale, stale), TG_PHASE_PAUSED);
        assert_int_equal(tg_sale_phase(&sale, fresh), phase);
    }
}

static void a_pause_is_honoured_at_once_and_until_it_is_lifted(void **state)
{
    struct tg_sale sale = open_sale();
    assert_int_equal(tg_sale_pause(&sale, ID_A, "operator"), 0);
    assert_int_equal(tg_sale_pause(&sale, ID_A, "operator"), 0);
    assert_int_equal(sale.own_pause_count, 1);
    assert_int_equal(tg_sale_phase(&sale, fresh), TG_PHASE_PAUSED);
    tg_sale_settle_pauses(&sale); /* the state does not know it yet: kept */
    assert_int_equal(tg_sale_phase(&sale, fresh), TG_PHASE_PAUSED);

    sale.pause_count = 1; /* the state carries it now */
    memcpy(sale.pauses[0].id, ID_A, sizeof(ID_A));
    tg_sale_settle_pauses(&sale);
    assert_int_equal(sale.own_pause_count, 0);
    assert_int_equal(tg_sale_phase(&sale, fresh), TG_PHASE_PAUSED);

    sale.pause_count = 0;
    sale.lifted_count = 1;
    memcpy(sale.lifted[0], ID_A, sizeof(ID_A));
    assert_int_equal(tg_sale_phase(&sale, fresh), TG_PHASE_OPEN);
    assert_int_equal(tg_sale_pause(&sale, ID_A, "replayed"),
                     0); /* a replay of what is over does not pause again */
    assert_int_equal(tg_sale_phase(&sale, fresh), TG_PHASE_OPEN);
    assert_int_equal(tg_sale_pause(&sale, ID_B, "another"), 0);
    assert_int_equal(tg_sale_phase(&sale, fresh), TG_PHASE_PAUSED);
}

static void lifting_one_pause_keeps_the_other(void **state)
{
    struct tg_sale sale = open_sale();
    assert_int_equal(tg_sale_pause(&sale, ID_A, "a"), 0);
    assert_int_equal(tg_sale_pause(&sale, ID_B, "b"), 0);
    sale.lifted_count = 1;
    memcpy(sale.lifted[0], ID_A, sizeof(ID_A));
    tg_sale_settle_pauses(&sale);
    assert_int_equal(sale.own_pause_count, 1);
    assert_string_equal(sale.own_pauses[0].id, ID_B);
    assert_string_equal(sale.own_pauses[0].cause, "b");
    assert_int_equal(tg_sale_phase(&sale, fresh), TG_PHASE_PAUSED);
}

static void pauses_do_not_hide_other_phases(void **state)
{
    static const enum tg_phase phases[] = {TG_PHASE_SCHEDULED, TG_PHASE_SOLD_OUT, TG_PHASE_CLOSED};
    for (size_t i = 0; i < COUNT_OF(phases); i++) {
        struct tg_sale sale = open_sale();
        sale.phase = phases[i];
        assert_int_equal(tg_sale_pause(&sale, ID_A, "a"), 0);
        assert_int_equal(tg_sale_phase(&sale, fresh), phases[i]);
    }
}

static void pauses_are_bounded(void **state)
{
    struct tg_sale sale = open_sale();
    char id[TG_BASE32_ID_LENGTH + 1];
    for (unsigned i = 0; i < TG_MAX_PAUSES; i++) {
        (void)snprintf(id, sizeof(id), "%026u", i);
        assert_int_equal(tg_sale_pause(&sale, id, "x"), 0);
    }
    assert_int_equal(tg_sale_pause(&sale, ID_A, "x"), TG_ERR_FULL);
    assert_int_equal(tg_sale_pause(&sale, "", "x"), TG_ERR_RANGE);
    assert_int_equal(tg_sale_pause(&sale, "000000000000000000000000000", "x"), TG_ERR_RANGE);
    assert_int_equal(sale.own_pause_count, TG_MAX_PAUSES);
    assert_int_equal(tg_sale_phase(&sale, fresh), TG_PHASE_PAUSED);
}

static void a_long_cause_is_cut_between_characters(void **state)
{
    struct tg_sale sale = open_sale();
    char cause[400];
    for (size_t i = 0; i < sizeof(cause) - 1; i += 3) {
        memcpy(cause + i, "\xe2\x82\xac", 3);
    }
    cause[sizeof(cause) - 1] = '\0';
    assert_int_equal(tg_sale_pause(&sale, ID_A, cause), 0);
    size_t length = strlen(sale.own_pauses[0].cause);
    assert_int_equal(length, 126);
    assert_true(tg_utf8_valid((const uint8_t *)sale.own_pauses[0].cause, length));
    assert_int_equal(tg_sale_pause(&sale, ID_B, NULL), 0);
    assert_string_equal(sale.own_pauses[1].cause, "");
}

static void items_are_found_by_sku(void **state)
{
    struct tg_sale sale = {.item_count = 2, .items = {{.sku = "a"}, {.sku = "b"}, {.sku = "c"}}};
    assert_int_equal(tg_sale_item(&sale, "a"), 0);
    assert_int_equal(tg_sale_item(&sale, "b"), 1);
    assert_int_equal(tg_sale_item(&sale, "c"), -1);
    assert_int_equal(tg_sale_item(&sale, "A"), -1);
    assert_int_equal(tg_sale_item(&sale, ""), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_open_sale_is_open_while_heard_of),
        cmocka_unit_test(silence_pauses_every_phase),
        cmocka_unit_test(a_pause_is_honoured_at_once_and_until_it_is_lifted),
        cmocka_unit_test(lifting_one_pause_keeps_the_other),
        cmocka_unit_test(pauses_do_not_hide_other_phases),
        cmocka_unit_test(pauses_are_bounded),
        cmocka_unit_test(a_long_cause_is_cut_between_characters),
        cmocka_unit_test(items_are_found_by_sku),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
