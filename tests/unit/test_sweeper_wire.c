/* SPDX-License-Identifier: Apache-2.0
 * Replies the sweeper hears: well-formed rows become events, others are left out and counted, a
 * reason fails the call. */
#include "services/sweeper/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#define ONE "res_00000000000000000000000001"
#define TWO "res_00000000000000000000000002"

static struct sweeper_wire wire;
static struct sweeper_event event;

static Tidegate__V1__Order order(const char *id, Tidegate__V1__OrderKind kind)
{
    Tidegate__V1__Order made = TIDEGATE__V1__ORDER__INIT;
    made.reservation_id = (char *)id;
    made.kind = kind;
    return made;
}

static void due_rows_are_checked_one_by_one(void **state)
{
    Tidegate__V1__LedgerDueReply reply = TIDEGATE__V1__LEDGER_DUE_REPLY__INIT;
    char *lapsed[] = {(char *)ONE, (char *)"res_short", (char *)"",
                      (char *)"xxx_00000000000000000000000001"};
    Tidegate__V1__Order rows[] = {
        order(TWO, TIDEGATE__V1__ORDER_KIND__ORDER_KIND_SETTLE),
        order(TWO, TIDEGATE__V1__ORDER_KIND__ORDER_KIND_UNSPECIFIED),
        order(ONE, (Tidegate__V1__OrderKind)77),
        order("res_00000000000000000000000001x", TIDEGATE__V1__ORDER_KIND__ORDER_KIND_RELEASE)};
    Tidegate__V1__Order *orders[] = {&rows[0], &rows[1], &rows[2], &rows[3]};
    reply.epoch = 7;
    reply.generation = 2;
    reply.lapsed = lapsed;
    reply.n_lapsed = 4;
    reply.orders = orders;
    reply.n_orders = 4;
    sweeper_wire_due(&wire, &reply, &event);
    assert_int_equal(event.kind, SWEEPER_DUE);
    assert_int_equal(event.epoch, 7);
    assert_int_equal(event.lapsed_count, 1);
    assert_string_equal(event.lapsed[0].text, ONE);
    assert_int_equal(event.order_count, 1);
    assert_int_equal(event.orders[0].kind, SWEEPER_SETTLE);
    assert_int_equal(wire.malformed, 6);
    assert_false(event.lapsed_full);
}

static void more_than_a_page_is_cut_and_full(void **state)
{
    static char *lapsed[SWEEPER_PAGE + 20];
    Tidegate__V1__LedgerDueReply reply = TIDEGATE__V1__LEDGER_DUE_REPLY__INIT;
    for (size_t i = 0; i < SWEEPER_PAGE + 20; i++) {
        lapsed[i] = (char *)ONE;
    }
    reply.lapsed = lapsed;
    reply.n_lapsed = SWEEPER_PAGE + 20;
    sweeper_wire_due(&wire, &reply, &event);
    assert_int_equal(event.lapsed_count, SWEEPER_PAGE);
    assert_true(event.lapsed_full);
}

static void a_reason_fails_the_call(void **state)
{
    Tidegate__V1__LedgerDueReply due = TIDEGATE__V1__LEDGER_DUE_REPLY__INIT;
    Tidegate__V1__ExpireReply expire = TIDEGATE__V1__EXPIRE_REPLY__INIT;
    Tidegate__V1__ObeyReply obey = TIDEGATE__V1__OBEY_REPLY__INIT;
    Tidegate__V1__ObeyedReply obeyed = TIDEGATE__V1__OBEYED_REPLY__INIT;
    Tidegate__V1__GateDueReply gate = TIDEGATE__V1__GATE_DUE_REPLY__INIT;
    due.reason = expire.reason = obey.reason = obeyed.reason = gate.reason = (char *)"stale_epoch";
    sweeper_wire_due(&wire, &due, &event);
    assert_int_equal(event.kind, SWEEPER_FAILED);
    sweeper_wire_verdicts(&wire, &expire, &event);
    assert_int_equal(event.kind, SWEEPER_FAILED);
    sweeper_wire_results(&wire, &obey, &event);
    assert_int_equal(event.kind, SWEEPER_FAILED);
    sweeper_wire_stored(&wire, &obeyed, &event);
    assert_int_equal(event.kind, SWEEPER_FAILED);
    sweeper_wire_gate_due(&wire, &gate, &event);
    assert_int_equal(event.kind, SWEEPER_FAILED);
}

static void only_final_words_count_as_verdicts(void **state)
{
    Tidegate__V1__ExpireReply reply = TIDEGATE__V1__EXPIRE_REPLY__INIT;
    Tidegate__V1__Verdict rows[5];
    Tidegate__V1__Verdict *list[5];
    for (int i = 0; i < 5; i++) {
        tidegate__v1__verdict__init(&rows[i]);
        rows[i].reservation_id = (char *)ONE;
        rows[i].state = (Tidegate__V1__ReservationState)
            i; /* unspecified, pending, confirmed, expired, cancelled */
        list[i] = &rows[i];
    }
    reply.verdicts = list;
    reply.n_verdicts = 5;
    sweeper_wire_verdicts(&wire, &reply, &event);
    assert_int_equal(event.kind, SWEEPER_VERDICTS);
    assert_int_equal(event.final_verdicts, 3);
}

static void an_unknown_obedience_is_no_answer(void **state)
{
    Tidegate__V1__ObeyReply reply = TIDEGATE__V1__OBEY_REPLY__INIT;
    static const enum sweeper_obedience expected[] = {
        SWEEPER_UNANSWERED, SWEEPER_DONE,  SWEEPER_ALREADY,    SWEEPER_NOT_KNOWN_THERE,
        SWEEPER_UNANSWERED, SWEEPER_DOUBT, SWEEPER_UNANSWERED, SWEEPER_UNANSWERED};
    Tidegate__V1__OrderResult rows[8];
    Tidegate__V1__OrderResult *list[8];
    for (int i = 0; i < 8; i++) {
        tidegate__v1__order_result__init(&rows[i]);
        rows[i].reservation_id = (char *)ONE;
        rows[i].kind = TIDEGATE__V1__ORDER_KIND__ORDER_KIND_RELEASE;
        rows[i].obedience = (Tidegate__V1__Obedience)i;
        list[i] = &rows[i];
    }
    reply.results = list;
    reply.n_results = 8;
    sweeper_wire_results(&wire, &reply, &event);
    assert_int_equal(event.result_count, 8);
    for (int i = 0; i < 8; i++) {
        assert_int_equal(event.results[i].obedience, expected[i]);
    }
}

static void a_hold_without_all_a_tombstone_needs_is_left_out(void **state)
{
    uint8_t bytes[TG_MAX_USER_BYTES + 1];
    memset(bytes, 'u', sizeof bytes);
    Tidegate__V1__GateDueReply reply = TIDEGATE__V1__GATE_DUE_REPLY__INIT;
    Tidegate__V1__LapsedHold rows[5];
    Tidegate__V1__LapsedHold *list[5];
    for (int i = 0; i < 5; i++) {
        tidegate__v1__lapsed_hold__init(&rows[i]);
        rows[i].reservation_id = (char *)ONE;
        rows[i].user = (ProtobufCBinaryData){.data = bytes, .len = TG_MAX_USER_BYTES};
        rows[i].place = (ProtobufCBinaryData){.data = bytes, .len = TG_PLACE_BYTES};
        rows[i].digest = (ProtobufCBinaryData){.data = bytes, .len = TG_DIGEST_BYTES};
        list[i] = &rows[i];
    }
    rows[1].user.len = TG_MAX_USER_BYTES + 1;
    rows[2].user.len = 0;
    rows[3].place.len = 15;
    rows[4].digest.len = 17;
    reply.holds = list;
    reply.n_holds = 5;
    sweeper_wire_gate_due(&wire, &reply, &event);
    assert_int_equal(event.hold_count, 1);
    assert_int_equal(event.holds[0].user_length, TG_MAX_USER_BYTES);
    assert_int_equal(wire.malformed, 4);
}

static void the_largest_pages_fit_a_message(void **state)
{
    static struct sweeper_sale sale;
    static char name[TG_MAX_SALE_NAME_BYTES + 1];
    memset(name, 's', TG_MAX_SALE_NAME_BYTES);
    sale.epoch = sale.generation = sale.bury_epoch = sale.bury_generation = UINT64_MAX;
    sale.hold_count = SWEEPER_BURY_PAGE;
    sale.lapsed_count = sale.order_count = sale.result_count = SWEEPER_PAGE;
    for (size_t i = 0; i < SWEEPER_PAGE; i++) {
        memcpy(sale.lapsed[i].text, ONE, sizeof ONE);
        sale.orders[i] = (struct sweeper_order){
            .id = sale.lapsed[i], .kind = SWEEPER_EXTEND, .deadline_ms = INT64_MAX};
        sale.results[i] = (struct sweeper_result){.id = sale.lapsed[i], .kind = SWEEPER_RELEASE};
        if (i < SWEEPER_BURY_PAGE) {
            sale.holds[i] = (struct sweeper_hold){
                .id = sale.lapsed[i], .user_length = TG_MAX_USER_BYTES, .window = UINT64_MAX};
        }
    }
    Tidegate__V1__ExpireRequest expire, bury;
    Tidegate__V1__ObeyRequest obey;
    Tidegate__V1__ObeyedRequest obeyed;
    sweeper_wire_expire(&wire, &sale, name, &expire);
    assert_in_range(tidegate__v1__expire_request__get_packed_size(&expire), 1,
                    TG_MAX_BUS_BODY_BYTES);
    sweeper_wire_bury(&wire, &sale, name, &bury);
    assert_in_range(tidegate__v1__expire_request__get_packed_size(&bury), 1, TG_MAX_BUS_BODY_BYTES);
    sweeper_wire_obey(&wire, &sale, name, &obey);
    assert_in_range(tidegate__v1__obey_request__get_packed_size(&obey), 1, TG_MAX_BUS_BODY_BYTES);
    sweeper_wire_obeyed(&wire, &sale, name, &obeyed);
    assert_in_range(tidegate__v1__obeyed_request__get_packed_size(&obeyed), 1,
                    TG_MAX_BUS_BODY_BYTES);
    assert_int_equal(obeyed.results[0]->obedience, TIDEGATE__V1__OBEDIENCE__OBEDIENCE_DONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(due_rows_are_checked_one_by_one),
        cmocka_unit_test(more_than_a_page_is_cut_and_full),
        cmocka_unit_test(a_reason_fails_the_call),
        cmocka_unit_test(only_final_words_count_as_verdicts),
        cmocka_unit_test(an_unknown_obedience_is_no_answer),
        cmocka_unit_test(a_hold_without_all_a_tombstone_needs_is_left_out),
        cmocka_unit_test(the_largest_pages_fit_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
