/* SPDX-License-Identifier: Apache-2.0
 * Batches of holds, what is obviously wrong with one, names of orders, the log's chain. */
#include "tests/unit/cmocka_tests.h"

#include "services/ledger/core.h"
#include "services/ledger/core_chain.h"

#include <stdio.h>
#include <string.h>

enum { BATCHES = 6, IN_FLIGHT = 3 };

static struct ledger_batch storage[BATCHES];
static struct ledger_batches batches;

static int setup(void **state)
{
    ledger_batches_init(&batches, storage, BATCHES, IN_FLIGHT);
    return 0;
}

static struct tg_mono at(int64_t ms)
{
    return (struct tg_mono){.ms = ms};
}

static struct ledger_hold hold_of(unsigned number)
{
    struct ledger_hold hold = {.generation = 1, .epoch = 1, .unit_count = 1};
    snprintf(hold.id.text, sizeof hold.id.text, "res_%026u", number);
    hold.units[0].unit = number;
    hold.user_length = 1;
    return hold;
}

static bool collect(const char *sale, unsigned number, int64_t ms, uint64_t token)
{
    const struct ledger_hold hold = hold_of(number);
    const struct ledger_arrival arrival = {.sale = sale, .hold = &hold, .token = token};
    return ledger_batches_collect(&batches, at(ms), &arrival);
}

static void nothing_collected_is_nothing_to_send(void **state)
{
    assert_int_equal(ledger_batches_next(&batches, at(1000)), LEDGER_NO_BATCH);
    assert_int_equal(ledger_batches_waiting(&batches), 0);
}

static void while_nothing_is_in_flight_a_hold_does_not_wait(void **state)
{
    assert_true(collect("a", 1, 0, 11));
    const uint32_t batch = ledger_batches_next(&batches, at(0));
    assert_int_not_equal(batch, LEDGER_NO_BATCH);
    assert_int_equal(storage[batch].count, 1);
    assert_int_equal(storage[batch].tokens[0], 11);
    assert_int_equal(ledger_batches_next(&batches, at(0)), LEDGER_NO_BATCH);
}

static void beside_one_in_flight_holds_are_collected_for_five_milliseconds(void **state)
{
    assert_true(collect("a", 1, 0, 1));
    const uint32_t first = ledger_batches_next(&batches, at(0));
    assert_true(collect("a", 2, 1, 2));
    assert_true(collect("a", 3, 3, 3));
    assert_int_equal(ledger_batches_next(&batches, at(TG_MAX_RECORD_BATCH_MS)), LEDGER_NO_BATCH);
    const uint32_t second = ledger_batches_next(&batches, at(1 + TG_MAX_RECORD_BATCH_MS));
    assert_int_not_equal(second, LEDGER_NO_BATCH);
    assert_int_not_equal(second, first);
    assert_int_equal(storage[second].count, 2);
    assert_int_equal(ledger_batches_waiting(&batches), 3);
    ledger_batches_done(&batches, first);
    ledger_batches_done(&batches, second);
    assert_int_equal(ledger_batches_waiting(&batches), 0);
}

static void a_full_batch_goes_at_once_and_the_next_hold_begins_another(void **state)
{
    assert_true(collect("a", 0, 0, 0));
    assert_int_not_equal(ledger_batches_next(&batches, at(0)), LEDGER_NO_BATCH);
    for (unsigned i = 1; i <= TG_MAX_RECORD_BATCH + 1; i++) {
        assert_true(collect("a", i, 0, i));
    }
    const uint32_t full = ledger_batches_next(&batches, at(0));
    assert_int_not_equal(full, LEDGER_NO_BATCH);
    assert_int_equal(storage[full].count, TG_MAX_RECORD_BATCH);
    assert_int_equal(ledger_batches_next(&batches, at(0)), LEDGER_NO_BATCH);
}

static void at_most_so_many_are_in_flight(void **state)
{
    static const char *const sales[] = {"a", "b", "c", "d"};
    for (unsigned i = 0; i < COUNT_OF(sales); i++) {
        assert_true(collect(sales[i], i, i, i));
    }
    uint32_t sent[IN_FLIGHT];
    for (unsigned i = 0; i < IN_FLIGHT; i++) {
        sent[i] = ledger_batches_next(&batches, at(100));
        assert_int_not_equal(sent[i], LEDGER_NO_BATCH);
        assert_string_equal(storage[sent[i]].sale, sales[i]); /* the oldest first */
    }
    assert_int_equal(ledger_batches_next(&batches, at(100)), LEDGER_NO_BATCH);
    ledger_batches_done(&batches, sent[1]);
    const uint32_t last = ledger_batches_next(&batches, at(100));
    assert_int_not_equal(last, LEDGER_NO_BATCH);
    assert_string_equal(storage[last].sale, "d");
}

static void sales_do_not_mix(void **state)
{
    assert_true(collect("a", 1, 0, 1));
    assert_true(collect("b", 2, 0, 2));
    assert_true(collect("a", 3, 0, 3));
    const uint32_t first = ledger_batches_next(&batches, at(10));
    const uint32_t second = ledger_batches_next(&batches, at(10));
    assert_int_equal(storage[first].count + storage[second].count, 3);
    assert_string_not_equal(storage[first].sale, storage[second].sale);
}

static void the_same_hold_asked_twice_travels_once(void **state)
{
    assert_true(collect("a", 7, 0, 1));
    assert_true(collect("a", 8, 0, 2));
    assert_true(collect("a", 7, 0, 3));
    assert_true(collect("a", 8, 0, 4));
    const uint32_t batch = ledger_batches_next(&batches, at(0));
    assert_int_equal(storage[batch].count, 2);
    assert_int_equal(storage[batch].follower_count, 2);
    assert_int_equal(storage[batch].follower_holds[0], 0);
    assert_int_equal(storage[batch].follower_tokens[0], 3);
    assert_int_equal(storage[batch].follower_holds[1], 1);
    assert_int_equal(ledger_batches_waiting(&batches), 4);
}

static void a_hold_that_will_be_refused_travels_alone(void **state)
{
    const struct ledger_hold poison = hold_of(99);
    const struct ledger_arrival arrival = {.sale = "a", .hold = &poison, .token = 9, .apart = true};
    assert_true(collect("a", 1, 0, 1));
    assert_true(ledger_batches_collect(&batches, at(0), &arrival));
    assert_true(collect("a", 2, 0, 2));
    uint32_t alone = 0, together = 0;
    for (uint32_t batch = ledger_batches_next(&batches, at(50)); batch != LEDGER_NO_BATCH;
         batch = ledger_batches_next(&batches, at(50))) {
        alone += storage[batch].apart ? storage[batch].count : 0;
        together += storage[batch].apart ? 0 : storage[batch].count;
    }
    assert_int_equal(alone, 1);
    assert_int_equal(together, 2);
}

static void without_a_free_batch_nothing_is_kept(void **state)
{
    char sale[8];
    for (unsigned i = 0; i < BATCHES; i++) {
        snprintf(sale, sizeof sale, "s%u", i);
        assert_true(collect(sale, i, 0, i));
    }
    assert_false(collect("one-more", 100, 0, 100));
    assert_true(collect("s0", 101, 0, 101)); /* its batch is there */
    assert_int_equal(ledger_batches_waiting(&batches), BATCHES + 1);
}

static void a_hold_is_judged_against_its_own_generation(void **state)
{
    struct tg_sale sale = {.generation = 1, .item_count = 2, .limit_per_buyer = 2};
    sale.items[0].units = 10;
    sale.items[1].units = 5;
    struct ledger_hold hold = hold_of(9);
    assert_int_equal(ledger_hold_judge(&sale, &hold), TG_REASON_NONE);
    assert_int_equal(ledger_hold_judge(NULL, &hold), TG_REASON_NONE);
    hold.units[0].unit = 10;
    assert_int_equal(ledger_hold_judge(&sale, &hold), TG_REASON_UNIT_CONFLICT);
    hold.units[0] = (struct tg_unit_ref){.item = 2, .unit = 0};
    assert_int_equal(ledger_hold_judge(&sale, &hold), TG_REASON_UNIT_CONFLICT);
    hold.units[0] = (struct tg_unit_ref){.item = 1, .unit = 4};
    hold.slots[0] = 2;
    assert_int_equal(ledger_hold_judge(&sale, &hold), TG_REASON_LIMIT_CONFLICT);
    hold.generation = 2;
    assert_int_equal(ledger_hold_judge(&sale, &hold), TG_REASON_NONE); /* SQL will say */
}

static void an_order_is_named_after_its_reservation(void **state)
{
    char first[LEDGER_ORDER_ID_LENGTH + 1], again[LEDGER_ORDER_ID_LENGTH + 1],
        other[LEDGER_ORDER_ID_LENGTH + 1];
    ledger_order_id("res_00000000000000000000000001", first);
    ledger_order_id("res_00000000000000000000000001", again);
    ledger_order_id("res_00000000000000000000000002", other);
    assert_string_equal(first, again);
    assert_string_not_equal(first, other);
    assert_int_equal(strlen(first), LEDGER_ORDER_ID_LENGTH);
    assert_memory_equal(first, "ord_", 4);
    uint8_t id[16];
    assert_int_equal(tg_base32_id_decode(first + 4, strlen(first) - 4, id), 0);
}

static struct ledger_log_entry entry_of(uint64_t sequence)
{
    struct ledger_log_entry entry = {.sequence = sequence,
                                     .kind = "hold",
                                     .id = {"res_00000000000000000000000001"},
                                     .unit_count = 2,
                                     .units = {{0, 7}, {1, 8}},
                                     .stock_after = 9,
                                     .gate_ms = 1700000000000,
                                     .source = "reserve-1"};
    return entry;
}

static void every_field_of_an_entry_is_in_its_hash(void **state)
{
    const struct ledger_log_place place = {.sale = "sale", .epoch = 3, .shard = 0};
    const struct ledger_log_entry entry = entry_of(5);
    uint8_t hash[LEDGER_CHAIN_BYTES] = {0};
    ledger_chain(hash, &place, &entry);
    for (int change = 0; change < 11; change++) {
        struct ledger_log_place other_place = place;
        struct ledger_log_entry other = entry;
        uint8_t changed[LEDGER_CHAIN_BYTES] = {0};
        switch (change) {
        case 0:
            other_place.sale[0] = 'S';
            break;
        case 1:
            other_place.epoch++;
            break;
        case 2:
            other_place.shard++;
            break;
        case 3:
            other.sequence++;
            break;
        case 4:
            other.kind[0] = 'H';
            break;
        case 5:
            other.id.text[29] = '2';
            break;
        case 6:
            other.units[1].unit++;
            break;
        case 7:
            other.stock_after--;
            break;
        case 8:
            other.gate_ms++;
            break;
        case 9:
            other.source[0] = 'R';
            break;
        default:
            changed[31] = 1; /* the hash before */
            break;
        }
        ledger_chain(changed, &other_place, &other);
        assert_memory_not_equal(hash, changed, sizeof hash);
    }
}

static void units_are_written_as_they_are_stored(void **state)
{
    const struct tg_unit_ref units[] = {{0, 0}, {1, 42}, {4294967295u, 4294967295u}};
    char text[LEDGER_UNITS_TEXT_BYTES];
    const size_t length = ledger_units_format(units, 3, text);
    assert_int_equal(length, strlen(text));
    assert_string_equal(text, "0:0,1:42,4294967295:4294967295");
    struct tg_unit_ref many[TG_MAX_UNITS_PER_HOLD];
    for (uint32_t i = 0; i < TG_MAX_UNITS_PER_HOLD; i++) {
        many[i] = (struct tg_unit_ref){4294967295u, 4294967295u};
    }
    assert_true(ledger_units_format(many, TG_MAX_UNITS_PER_HOLD, text) < LEDGER_UNITS_TEXT_BYTES);
    assert_int_equal(ledger_units_format(many, 0, text), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(nothing_collected_is_nothing_to_send, setup),
        cmocka_unit_test_setup(while_nothing_is_in_flight_a_hold_does_not_wait, setup),
        cmocka_unit_test_setup(beside_one_in_flight_holds_are_collected_for_five_milliseconds,
                               setup),
        cmocka_unit_test_setup(a_full_batch_goes_at_once_and_the_next_hold_begins_another, setup),
        cmocka_unit_test_setup(at_most_so_many_are_in_flight, setup),
        cmocka_unit_test_setup(sales_do_not_mix, setup),
        cmocka_unit_test_setup(the_same_hold_asked_twice_travels_once, setup),
        cmocka_unit_test_setup(a_hold_that_will_be_refused_travels_alone, setup),
        cmocka_unit_test_setup(without_a_free_batch_nothing_is_kept, setup),
        cmocka_unit_test(a_hold_is_judged_against_its_own_generation),
        cmocka_unit_test(an_order_is_named_after_its_reservation),
        cmocka_unit_test(every_field_of_an_entry_is_in_its_hash),
        cmocka_unit_test(units_are_written_as_they_are_stored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
