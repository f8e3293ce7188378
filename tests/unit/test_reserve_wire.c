/* SPDX-License-Identifier: Apache-2.0
 * What a hold must say to reach the gate, the rows of a snapshot, and the words of a script call.
 */
#include "services/reserve/wire.h"

#include "lib/pure/pass.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

static struct reserve_secrets secrets;
static struct tg_sale sale;
static Tidegate__V1__HoldRequest message;
static Tidegate__V1__Demand demands[4], *demand_pointers[4];
static uint8_t user[] = "buyer", place[16], digest[16];
static uint32_t named[8];
static char jti[TG_JTI_LENGTH + 1];
static struct reserve_request request;

static void sign(void)
{
    tg_jti(secrets.pass_mac, sale.name, sale.generation, place, message.user.data, message.user.len,
           message.window, jti);
    message.pass_expires_at_ms = tg_pass_expires(message.window).ms;
}

static int good_request(void **state)
{
    memset(&secrets, 7, sizeof secrets);
    memset(&sale, 0, sizeof sale);
    memset(place, 1, sizeof place);
    memset(digest, 2, sizeof digest);
    memcpy(sale.name, "sale", 5);
    sale.generation = 3;
    sale.epoch = 9;
    sale.item_count = 2;
    sale.items[0].units = 10;
    sale.items[1].units = 5;
    sale.limit_per_buyer = 6;
    tidegate__v1__hold_request__init(&message);
    message.sale = sale.name;
    message.generation = 3;
    message.user = (ProtobufCBinaryData){5, user};
    message.place = (ProtobufCBinaryData){16, place};
    message.digest = (ProtobufCBinaryData){16, digest};
    message.window = 29000000;
    message.idempotency_key = (char *)"key";
    message.jti = jti;
    for (size_t i = 0; i < 4; i++) {
        tidegate__v1__demand__init(&demands[i]);
        demand_pointers[i] = &demands[i];
    }
    demands[0].quantity = 1;
    message.demands = demand_pointers;
    message.n_demands = 1;
    sign();
    return 0;
}

static enum tg_reason read_it(void)
{
    return reserve_wire_hold(&secrets, &sale, &message, &request);
}

static void a_good_request_is_read(void **state)
{
    assert_int_equal(read_it(), TG_REASON_NONE);
    assert_int_equal(request.wanted_units, 1);
    assert_int_equal(request.demand_count, 1);
    assert_memory_equal(request.user, user, 5);
    char id[TG_RESERVATION_ID_LENGTH + 1];
    tg_reservation_id(secrets.reservation, "sale", 3, user, 5, "key", id);
    assert_string_equal(request.reservation, id);
    message.idempotency_key = (char *)"kez";
    assert_int_equal(read_it(), TG_REASON_NONE);
    assert_string_not_equal(request.reservation, id);
}

static void malformed_requests(void **state)
{
    static uint8_t long_user[129];
    memset(long_user, 'u', sizeof long_user);
    message.user.len = 0;
    assert_int_equal(read_it(), TG_REASON_MALFORMED);
    message.user = (ProtobufCBinaryData){129, long_user};
    assert_int_equal(read_it(), TG_REASON_MALFORMED);
    message.user = (ProtobufCBinaryData){2, (uint8_t *)"\xff\xfe"};
    assert_int_equal(read_it(), TG_REASON_MALFORMED);
    message.user = (ProtobufCBinaryData){2, (uint8_t *)"a\0"};
    assert_int_equal(read_it(), TG_REASON_MALFORMED);
    good_request(NULL);
    message.place.len = 15;
    assert_int_equal(read_it(), TG_REASON_MALFORMED);
    good_request(NULL);
    message.digest.len = 17;
    assert_int_equal(read_it(), TG_REASON_MALFORMED);
    good_request(NULL);
    message.jti = (char *)"short";
    assert_int_equal(read_it(), TG_REASON_MALFORMED);
    good_request(NULL);
    message.idempotency_key = (char *)"";
    assert_int_equal(read_it(), TG_REASON_MALFORMED);
    good_request(NULL);
    message.n_demands = 0;
    assert_int_equal(read_it(), TG_REASON_MALFORMED);
}

static void passes_of_others(void **state)
{
    message.generation = 2;
    assert_int_equal(read_it(), TG_REASON_RESTART);
    good_request(NULL);
    for (size_t i = 0; i < TG_JTI_LENGTH; i++) {
        good_request(NULL);
        jti[i] = jti[i] == 'A' ? 'B' : 'A';
        assert_int_equal(read_it(), TG_REASON_PASS_INVALID);
    }
    good_request(NULL);
    message.user = (ProtobufCBinaryData){5, (uint8_t *)"thief"};
    assert_int_equal(read_it(), TG_REASON_PASS_INVALID);
    good_request(NULL);
    place[3] ^= 1;
    assert_int_equal(read_it(), TG_REASON_PASS_INVALID);
    good_request(NULL);
    message.window++;
    assert_int_equal(read_it(), TG_REASON_PASS_INVALID);
    message.pass_expires_at_ms = tg_pass_expires(message.window).ms;
    assert_int_equal(read_it(), TG_REASON_PASS_INVALID);
    good_request(NULL);
    message.pass_expires_at_ms += 60000;
    assert_int_equal(read_it(), TG_REASON_PASS_INVALID);
}

/* Our view lags: that is no word on the pass, and nothing to begin again for. */
static void a_view_that_lags_refuses_nobody(void **state)
{
    message.generation = 4;
    assert_int_equal(read_it(), TG_REASON_TRY_AGAIN);
    good_request(NULL);
    sale.item_count = 0; /* the generation is known, its definition is not yet */
    assert_int_equal(read_it(), TG_REASON_TRY_AGAIN);
}

static void demands_are_summed_per_item(void **state)
{
    demands[0] = demands[1];
    demands[0].item = 1;
    demands[0].quantity = 2;
    demands[1].item = 0;
    demands[1].units = named;
    demands[1].n_units = 2;
    named[0] = 9;
    named[1] = 4;
    demands[2].item = 1;
    demands[2].quantity = 1;
    message.n_demands = 3;
    assert_int_equal(read_it(), TG_REASON_NONE);
    assert_int_equal(request.wanted_units, 5);
    assert_int_equal(request.demand_count, 2);
    assert_int_equal(request.demands[0].item, 1);
    assert_int_equal(request.demands[0].any, 3);
    assert_int_equal(request.demands[1].named_count, 2);
    assert_int_equal(request.demands[1].any, 0);
}

static void demands_out_of_bounds(void **state)
{
    demands[0].quantity = 0;
    assert_int_equal(read_it(), TG_REASON_QUANTITY_INVALID);
    demands[0].quantity = 7;
    assert_int_equal(read_it(), TG_REASON_QUANTITY_INVALID);
    demands[0].quantity = UINT32_MAX;
    demands[1].quantity = 2;
    message.n_demands = 2;
    assert_int_equal(read_it(), TG_REASON_QUANTITY_INVALID);
    demands[0].quantity = 4;
    demands[1].quantity = 3;
    assert_int_equal(read_it(), TG_REASON_QUANTITY_INVALID);
    good_request(NULL);
    demands[0].item = 2;
    assert_int_equal(read_it(), TG_REASON_ITEM_UNKNOWN);
    good_request(NULL);
    demands[0].units = named;
    demands[0].n_units = 1;
    named[0] = 10;
    assert_int_equal(read_it(), TG_REASON_ITEM_UNKNOWN);
    named[0] = 9;
    assert_int_equal(read_it(), TG_REASON_NONE);
    demands[0].quantity = 2;
    assert_int_equal(read_it(), TG_REASON_MALFORMED);
    demands[0].quantity = 2;
    demands[0].n_units = 2;
    named[1] = 9;
    assert_int_equal(read_it(), TG_REASON_QUANTITY_INVALID);
}

static void word_is(const struct reserve_call *call, int index, const char *text)
{
    assert_int_equal(call->lengths[index], strlen(text));
    assert_memory_equal(call->words[index], text, strlen(text));
}

static void a_hold_call_has_the_words_of_its_header(void **state)
{
    struct reserve_keys keys;
    struct reserve_call call;
    char seal[RESERVE_SEAL_BYTES];
    demands[0].item = 1;
    demands[0].quantity = 2;
    demands[1].units = named;
    demands[1].n_units = 2;
    named[0] = 9;
    named[1] = 4;
    message.n_demands = 2;
    assert_int_equal(read_it(), TG_REASON_NONE);
    reserve_keys_make("sale", 0, 9, 2, &keys);
    reserve_seal("0123456789012345678901234567890123456789", "abc", seal);
    const struct reserve_hold_terms terms = {seal, "reserve-a", true, 630000};
    reserve_call_hold(&call, &keys, &request, &terms);
    static const char *const expected[] = {
        "tg:{sale.0}:9:ctl",
        "tg:{sale.0}:9:pauses",
        "tg:{sale.0}:9:held",
        "tg:{sale.0}:9:unacked",
        "tg:{sale.0}:9:settled",
        "tg:{sale.0}:9:released",
        "tg:{sale.0}:9:buyers",
        "tg:{sale.0}:9:used",
        "tg:{sale.0}:9:log",
        "tg:{sale.0}:9:free:1",
        "tg:{sale.0}:9:free:0",
        "1 0123456789012345678901234567890123456789 abc",
        NULL,
        "buyer",
        "AQEBAQEBAQEBAQEBAQEBAQ",
        "29000000",
        "AgICAgICAgICAgICAgICAg",
        "1740000122000",
        "630000",
        "reserve-a",
        "2",
        "4",
        "1",
        "2",
        "",
        "0",
        "0",
        "9,4",
    };
    assert_int_equal(call.key_count, 11);
    assert_int_equal(call.count, sizeof expected / sizeof expected[0]);
    for (int i = 0; i < call.count; i++) {
        word_is(&call, i, expected[i] != NULL ? expected[i] : request.reservation);
    }
}

static void one_unit_of_the_only_item_needs_no_list(void **state)
{
    struct reserve_keys keys;
    struct reserve_call call;
    assert_int_equal(read_it(), TG_REASON_NONE);
    reserve_keys_make("sale", 0, 9, 1, &keys);
    struct reserve_hold_terms terms = {"seal", "reserve-a", true, 630000};
    reserve_call_hold(&call, &keys, &request, &terms);
    assert_int_equal(call.count, 10 + 9);
    word_is(&call, call.count - 1, "reserve-a");
    terms.open = false;
    reserve_call_hold(&call, &keys, &request, &terms);
    word_is(&call, call.count - 3, "");
    /* A named unit, two units, or a sale of several items is spelled out. */
    reserve_keys_make("sale", 0, 9, 2, &keys);
    reserve_call_hold(&call, &keys, &request, &terms);
    assert_int_equal(call.count, 10 + 9 + 5);
    reserve_keys_make("sale", 0, 9, 1, &keys);
    demands[0].units = named;
    demands[0].n_units = 1;
    assert_int_equal(read_it(), TG_REASON_NONE);
    reserve_call_hold(&call, &keys, &request, &terms);
    assert_int_equal(call.count, 10 + 9 + 5);
}

static void negative_numbers_are_written(void **state)
{
    struct reserve_keys keys;
    struct reserve_call call;
    reserve_keys_make("sale", 0, UINT64_MAX, 1, &keys);
    const struct reserve_gate_name gate = {&keys, "1 x", "reserve-a"};
    reserve_call_due(&call, &gate, "0", INT64_MIN, -5);
    word_is(&call, call.count - 2, "-9223372036854775808");
    word_is(&call, call.count - 1, "-5");
    word_is(&call, 4, "18446744073709551615");
}

/* The largest cart, user and page fit the call. */
static void the_largest_calls_fit(void **state)
{
    static struct reserve_request largest;
    static struct reserve_keys keys;
    static struct reserve_call call;
    reserve_keys_make("a-sale-whose-name-is-as-long-as-a-name-may-be-which-is-64-bytes-x", 0,
                      UINT64_MAX, TG_MAX_ITEMS_PER_SALE, &keys);
    largest.user_length = TG_MAX_USER_BYTES;
    largest.window = UINT64_MAX;
    largest.demand_count = TG_MAX_ITEMS_PER_SALE;
    largest.wanted_units = TG_MAX_UNITS_PER_HOLD;
    for (uint32_t i = 0; i < TG_MAX_ITEMS_PER_SALE; i++) {
        largest.demands[i].item = i;
        largest.demands[i].named_count = 2;
        largest.demands[i].named[0] = largest.demands[i].named[1] = UINT32_MAX;
    }
    const struct reserve_hold_terms terms = {"1 x", "r", true, INT64_MAX};
    reserve_call_hold(&call, &keys, &largest, &terms);
    assert_true(call.count <= RESERVE_CALL_WORDS);
    const struct reserve_loader loader = {&keys, "r", "x", "y"};
    const struct reserve_word packed = {"p", 1};
    reserve_call_load_page(&call, &loader, UINT32_MAX);
    for (int i = 0; i < TG_MAX_SNAPSHOT_PAGE; i++) {
        reserve_call_load_row(&call, "held", "res_", &packed);
    }
    static struct tg_sale many;
    many.item_count = TG_MAX_ITEMS_PER_SALE;
    reserve_call_load_begin(&call, &loader, &many);
    reserve_call_pause(&call, &keys);
    for (int i = 0; i < 2 * TG_MAX_PAUSES; i++) {
        reserve_call_pause_id(&call, "id", "cause");
    }
    reserve_call_lift(&call, &keys);
    for (int i = 0; i < TG_MAX_PAUSES + TG_MAX_LIFTED; i++) {
        reserve_call_lift_id(&call, "id");
    }
}

static Tidegate__V1__SnapshotRow row;
static Tidegate__V1__UnitRef refs[2], *ref_pointers[2];
static uint32_t slots[2];
static char packed[TG_HOLD_RECORD_BYTES];

static void good_row(void)
{
    tidegate__v1__snapshot_row__init(&row);
    row.reservation_id = (char *)"res_00000000000000000000000001";
    row.state = TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_PENDING;
    row.user = (ProtobufCBinaryData){5, user};
    row.place = (ProtobufCBinaryData){16, place};
    row.digest = (ProtobufCBinaryData){16, digest};
    row.window = 12;
    row.expires_at_ms = 345;
    for (size_t i = 0; i < 2; i++) {
        tidegate__v1__unit_ref__init(&refs[i]);
        ref_pointers[i] = &refs[i];
        slots[i] = (uint32_t)i;
    }
    refs[0].unit = 7;
    refs[1].item = 1;
    row.units = ref_pointers;
    row.n_units = 2;
    row.user_slots = slots;
    row.n_user_slots = 2;
}

static const char *packed_row(const char **out_state)
{
    size_t length = 0;
    if (!reserve_wire_snapshot_row(&row, out_state, packed, &length)) {
        return NULL;
    }
    packed[length] = '\0';
    return packed;
}

static void snapshot_rows(void **state)
{
    const char *kept = NULL;
    good_row();
    assert_string_equal(packed_row(&kept), "AQEBAQEBAQEBAQEBAQEBAQ 12 345 AgICAgICAgICAgICAgICAg "
                                           "0:7;1:0 0,1 buyer");
    assert_string_equal(kept, "held");
    row.state = TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_CONFIRMED;
    assert_non_null(packed_row(&kept));
    assert_string_equal(kept, "settled");
    row.state = TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_CANCELLED;
    row.n_units = row.n_user_slots = 0;
    assert_string_equal(packed_row(&kept),
                        "AQEBAQEBAQEBAQEBAQEBAQ 12 345 AgICAgICAgICAgICAgICAg - - buyer");
    assert_string_equal(kept, "released");
}

static void snapshot_rows_that_cannot_be(void **state)
{
    const char *kept = NULL;
    good_row();
    row.n_units = 0;
    assert_null(packed_row(&kept));
    good_row();
    row.n_user_slots = 1;
    assert_null(packed_row(&kept));
    good_row();
    slots[1] = 0; /* one slot twice */
    assert_null(packed_row(&kept));
    good_row();
    refs[0].unit = TG_MAX_UNITS_PER_ITEM;
    assert_null(packed_row(&kept));
    good_row();
    row.reservation_id = (char *)"nonsense";
    assert_null(packed_row(&kept));
    good_row();
    row.user.len = 0;
    assert_null(packed_row(&kept));
    good_row();
    row.state = TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_UNSPECIFIED;
    assert_null(packed_row(&kept));
}

static void answers_of_the_ledger(void **state)
{
    Tidegate__V1__RecordReply reply;
    struct reserve_ledger_answer answer;
    tidegate__v1__record_reply__init(&reply);
    reserve_wire_recorded(TG_ERR_TIMEOUT, NULL, &answer);
    assert_int_equal(answer.recorded, RESERVE_RECORDED_UNKNOWN);
    reserve_wire_recorded(0, &reply, &answer);
    assert_int_equal(answer.recorded, RESERVE_RECORDED_UNKNOWN);
    reply.outcome = TIDEGATE__V1__RECORD_OUTCOME__RECORD_OUTCOME_RECORDED;
    reserve_wire_recorded(0, &reply, &answer); /* recorded without a deadline is no answer */
    assert_int_equal(answer.recorded, RESERVE_RECORDED_UNKNOWN);
    reply.expires_at_ms = 5;
    reserve_wire_recorded(0, &reply, &answer);
    assert_int_equal(answer.recorded, RESERVE_RECORDED_NEW);
    reply.outcome = TIDEGATE__V1__RECORD_OUTCOME__RECORD_OUTCOME_REFUSED;
    reply.reason = (char *)"unit_conflict";
    reserve_wire_recorded(0, &reply, &answer);
    assert_int_equal(answer.recorded, RESERVE_RECORDED_REFUSED);
    assert_int_equal(answer.reason, TG_REASON_UNIT_CONFLICT);
    reply.outcome = (Tidegate__V1__RecordOutcome)77;
    reserve_wire_recorded(0, &reply, &answer);
    assert_int_equal(answer.recorded, RESERVE_RECORDED_UNKNOWN);
    Tidegate__V1__ReservationReply read;
    tidegate__v1__reservation_reply__init(&read);
    read.state = TIDEGATE__V1__RESERVATION_STATE__RESERVATION_STATE_EXPIRED;
    reserve_wire_read(0, &read, &answer);
    assert_int_equal(answer.recorded, RESERVE_RECORDED_KNOWN);
    assert_int_equal(answer.state, RESERVE_STATE_EXPIRED);
    read.reason = (char *)"reservation_unknown";
    reserve_wire_read(0, &read, &answer);
    assert_int_equal(answer.recorded, RESERVE_RECORDED_UNKNOWN);
}

static void orders_are_checked(void **state)
{
    Tidegate__V1__Order order;
    struct reserve_order out;
    tidegate__v1__order__init(&order);
    order.reservation_id = (char *)"res_00000000000000000000000001";
    assert_false(reserve_wire_order(&order, &out));
    order.kind = TIDEGATE__V1__ORDER_KIND__ORDER_KIND_RELEASE;
    assert_true(reserve_wire_order(&order, &out));
    assert_int_equal(out.script, RESERVE_SCRIPT_RELEASE);
    order.kind = TIDEGATE__V1__ORDER_KIND__ORDER_KIND_EXTEND;
    assert_false(reserve_wire_order(&order, &out));
    order.deadline_ms = 9;
    assert_true(reserve_wire_order(&order, &out));
    order.kind = (Tidegate__V1__OrderKind)9;
    assert_false(reserve_wire_order(&order, &out));
    order.kind = TIDEGATE__V1__ORDER_KIND__ORDER_KIND_SETTLE;
    order.reservation_id = (char *)"res_";
    assert_false(reserve_wire_order(&order, &out));
}

static void an_unarmed_gate_tells_no_counters(void **state)
{
    struct reserve_look look = {.known = true, .item_count = 1, .pause_count = 1};
    struct reserve_stock stock;
    look.items[0] = (struct reserve_look_item){9, 4, 3, 2, 4};
    reserve_wire_stock(&sale, &look, false, &stock);
    assert_false(stock.message.armed);
    assert_int_equal(stock.message.n_items, 0);
    reserve_wire_stock(&sale, &look, true, &stock);
    assert_true(stock.message.armed && stock.message.paused);
    assert_int_equal(stock.message.n_items, 1);
    assert_int_equal(stock.message.items[0]->free, 4);
    assert_int_equal(stock.message.items[0]->settled, 2);
}

int main(void)
{
    if (sodium_init() < 0) {
        return 1;
    }
#define CASE(name) cmocka_unit_test_setup(name, good_request)
    const struct CMUnitTest tests[] = {
        CASE(a_good_request_is_read),
        CASE(malformed_requests),
        CASE(passes_of_others),
        CASE(a_view_that_lags_refuses_nobody),
        CASE(demands_are_summed_per_item),
        CASE(demands_out_of_bounds),
        CASE(a_hold_call_has_the_words_of_its_header),
        CASE(one_unit_of_the_only_item_needs_no_list),
        CASE(negative_numbers_are_written),
        CASE(the_largest_calls_fit),
        CASE(snapshot_rows),
        CASE(snapshot_rows_that_cannot_be),
        CASE(answers_of_the_ledger),
        CASE(orders_are_checked),
        CASE(an_unarmed_gate_tells_no_counters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
