/* SPDX-License-Identifier: Apache-2.0
 * What comes from the bus is checked field by field; one bad row of a page costs only itself. */
#include "tests/unit/cmocka_tests.h"

#include "lib/io/sales.h"
#include "services/ledger/wire.h"

#include <stdio.h>
#include <string.h>

static char id_a[] = "res_00000000000000000000000001", id_b[] = "res_00000000000000000000000002";
static char sale[] = "sale", other_sale[] = "other", empty[] = "";
static uint8_t sixteen[16], user[] = "user";

static ProtobufCBinaryData data_of(uint8_t *bytes, size_t length)
{
    return (ProtobufCBinaryData){.data = bytes, .len = length};
}

struct record_case {
    Tidegate__V1__RecordRequest request;
    Tidegate__V1__UnitRef units[TG_MAX_UNITS_PER_HOLD + 1];
    Tidegate__V1__UnitRef *list[TG_MAX_UNITS_PER_HOLD + 1];
    uint32_t slots[TG_MAX_UNITS_PER_HOLD + 1];
};

static void good_record(struct record_case *made, size_t units)
{
    tidegate__v1__record_request__init(&made->request);
    made->request.sale = sale;
    made->request.generation = 1;
    made->request.epoch = 2;
    made->request.reservation_id = id_a;
    made->request.user = data_of(user, 4);
    made->request.place = data_of(sixteen, 16);
    made->request.digest = data_of(sixteen, 16);
    made->request.window = 7;
    for (size_t i = 0; i < units; i++) {
        tidegate__v1__unit_ref__init(&made->units[i]);
        made->units[i].unit = (uint32_t)i;
        made->list[i] = &made->units[i];
        made->slots[i] = (uint32_t)i;
    }
    made->request.n_units = made->request.n_user_slots = units;
    made->request.units = made->list;
    made->request.user_slots = made->slots;
}

static void a_good_hold_is_taken(void **state)
{
    struct record_case made;
    struct ledger_hold hold;
    good_record(&made, TG_MAX_UNITS_PER_HOLD);
    assert_int_equal(ledger_wire_record(&made.request, "sale", &hold), TG_REASON_NONE);
    assert_string_equal(hold.id.text, id_a);
    assert_int_equal(hold.unit_count, TG_MAX_UNITS_PER_HOLD);
    assert_int_equal(hold.units[3].unit, 3);
    assert_int_equal(hold.slots[3], 3);
    assert_int_equal(hold.user_length, 4);
    assert_int_equal(hold.epoch, 2);
    assert_int_equal(hold.window, 7);
}

static void spoil_who(struct record_case *made, int fault)
{
    static uint8_t nul[] = "a\0b", broken[] = "\xc3\x28", long_user[TG_MAX_USER_BYTES + 1];
    static char short_id[] = "res_1", lower[] = "res_0000000000000000000000000a";
    Tidegate__V1__RecordRequest *request = &made->request;
    switch (fault) {
    case 0:
        request->sale = other_sale;
        break;
    case 1:
        request->reservation_id = short_id;
        break;
    case 2:
        request->reservation_id = lower;
        break;
    case 3:
        request->reservation_id = empty;
        break;
    case 4:
        request->user = data_of(nul, 3);
        break;
    case 5:
        request->user = data_of(broken, 2);
        break;
    case 6:
        memset(long_user, 'u', sizeof long_user);
        request->user = data_of(long_user, sizeof long_user);
        break;
    case 7:
        request->user.len = 0;
        break;
    default:
        request->place.len = 15;
        break;
    }
}

static void spoil_what(struct record_case *made, int fault)
{
    Tidegate__V1__RecordRequest *request = &made->request;
    switch (fault) {
    case 0:
        request->digest.len = 0;
        break;
    case 1:
        request->n_units = request->n_user_slots = 0;
        break;
    case 2:
        request->n_user_slots = 1;
        break;
    case 3:
        made->units[1].unit = made->units[0].unit; /* the same unit twice */
        break;
    case 4:
        good_record(made, TG_MAX_UNITS_PER_HOLD + 1);
        break;
    case 5:
        request->epoch = UINT64_MAX;
        break;
    case 6:
        request->window = UINT64_MAX;
        break;
    case 7:
        made->units[0].unit = UINT32_MAX;
        break;
    default:
        made->slots[0] = UINT32_MAX;
        break;
    }
}

static void a_bad_hold_is_refused(void **state)
{
    static void (*const spoil[])(struct record_case *, int) = {spoil_who, spoil_what};
    for (int fault = 0; fault < 18; fault++) {
        struct record_case made;
        struct ledger_hold hold;
        good_record(&made, 2);
        spoil[fault / 9](&made, fault % 9);
        if (ledger_wire_record(&made.request, "sale", &hold) != TG_REASON_MALFORMED) {
            fail_msg("fault %d was taken", fault);
        }
    }
}

static Tidegate__V1__LapsedHold lapsed_of(char *id)
{
    Tidegate__V1__LapsedHold hold = TIDEGATE__V1__LAPSED_HOLD__INIT;
    hold.reservation_id = id;
    hold.user = data_of(user, 4);
    hold.place = data_of(sixteen, 16);
    hold.digest = data_of(sixteen, 16);
    return hold;
}

static void one_bad_row_of_an_expiry_costs_itself(void **state)
{
    static struct ledger_expire ask;
    char nonsense[] = "nonsense";
    char *ids[] = {id_a, nonsense, id_b};
    Tidegate__V1__LapsedHold good = lapsed_of(id_b), bad = lapsed_of(id_a);
    bad.place.len = 3;
    Tidegate__V1__LapsedHold *tombstones[] = {&bad, &good};
    Tidegate__V1__ExpireRequest request = TIDEGATE__V1__EXPIRE_REQUEST__INIT;
    uint32_t dropped;
    request.sale = sale;
    request.n_reservation_ids = 3;
    request.reservation_ids = ids;
    request.n_tombstones = 2;
    request.tombstones = tombstones;
    assert_int_equal(ledger_wire_expire(&request, "sale", &ask, &dropped), TG_REASON_NONE);
    assert_int_equal(ask.id_count, 2);
    assert_string_equal(ask.ids[1].text, id_b);
    assert_int_equal(ask.tombstone_count, 1);
    assert_string_equal(ask.tombstones[0].id.text, id_b);
    assert_int_equal(dropped, 2);
    request.n_reservation_ids = TG_MAX_PAGE + 1;
    assert_int_equal(ledger_wire_expire(&request, "sale", &ask, &dropped), TG_REASON_MALFORMED);
}

static void only_what_a_gate_did_is_obeyed(void **state)
{
    static struct ledger_obeyed ask;
    Tidegate__V1__OrderResult rows[6];
    Tidegate__V1__OrderResult *list[6];
    for (int i = 0; i < 6; i++) {
        tidegate__v1__order_result__init(&rows[i]);
        rows[i].reservation_id = id_a;
        rows[i].kind = TIDEGATE__V1__ORDER_KIND__ORDER_KIND_RELEASE;
        rows[i].obedience = (Tidegate__V1__Obedience)(i + 1); /* done .. unknown */
        list[i] = &rows[i];
    }
    Tidegate__V1__ObeyedRequest request = TIDEGATE__V1__OBEYED_REQUEST__INIT;
    uint32_t dropped;
    request.sale = sale;
    request.n_results = 6;
    request.results = list;
    assert_int_equal(ledger_wire_obeyed(&request, "sale", &ask, &dropped), TG_REASON_NONE);
    assert_int_equal(ask.count, 2); /* done, already */
    rows[0].kind = TIDEGATE__V1__ORDER_KIND__ORDER_KIND_EXTEND;
    rows[1].kind = TIDEGATE__V1__ORDER_KIND__ORDER_KIND_SETTLE;
    assert_int_equal(ledger_wire_obeyed(&request, "sale", &ask, &dropped), TG_REASON_NONE);
    assert_int_equal(ask.count, 1);
    assert_int_equal(ask.kinds[0], LEDGER_SETTLE);
}

static void pages_are_bounded(void **state)
{
    Tidegate__V1__LedgerDueRequest due = TIDEGATE__V1__LEDGER_DUE_REQUEST__INIT;
    struct ledger_due_ask ask;
    due.sale = sale;
    assert_int_equal(ledger_wire_due(&due, "sale", &ask), TG_REASON_NONE);
    assert_int_equal(ask.limit, TG_MAX_PAGE);
    due.limit = 100000;
    assert_int_equal(ledger_wire_due(&due, "sale", &ask), TG_REASON_NONE);
    assert_int_equal(ask.limit, TG_MAX_PAGE);
    due.limit = 3;
    due.orders_after = id_a;
    assert_int_equal(ledger_wire_due(&due, "sale", &ask), TG_REASON_NONE);
    assert_int_equal(ask.limit, 3);
    due.orders_after = sale;
    assert_int_equal(ledger_wire_due(&due, "sale", &ask), TG_REASON_MALFORMED);
}

static void an_auditor_asks_within_bounds(void **state)
{
    Tidegate__V1__AuditRequest request = TIDEGATE__V1__AUDIT_REQUEST__INIT;
    struct ledger_audit_ask ask;
    request.sale = sale;
    request.last = UINT32_MAX;
    assert_int_equal(ledger_wire_audit(&request, "sale", &ask), TG_REASON_NONE);
    assert_int_equal(ask.last, INT32_MAX);
    assert_int_equal(ask.limit, TG_MAX_PAGE);
    request.shard = UINT32_MAX;
    assert_int_equal(ledger_wire_audit(&request, "sale", &ask), TG_REASON_MALFORMED);
    request.shard = 0;
    request.after = UINT64_MAX;
    assert_int_equal(ledger_wire_audit(&request, "sale", &ask), TG_REASON_MALFORMED);
    request.after = 0;
    assert_int_equal(ledger_wire_audit(&request, "other", &ask), TG_REASON_MALFORMED);
}

static void a_payment_is_named_and_priced(void **state)
{
    static char payment[] = "pay-1", spaced[] = "pay 1", control[] = "pay\x01", euro[] = "EUR",
                small[] = "eur", long_currency[] = "EURO";
    char long_payment[TG_MAX_PAYMENT_ID_BYTES + 2];
    memset(long_payment, 'p', sizeof long_payment - 1);
    long_payment[sizeof long_payment - 1] = '\0';
    Tidegate__V1__ConfirmRequest request = TIDEGATE__V1__CONFIRM_REQUEST__INIT;
    struct ledger_ask ask;
    request.reservation_id = id_a;
    request.payment_id = payment;
    request.currency = euro;
    request.amount_minor = 4900;
    assert_int_equal(ledger_wire_confirm(&request, &ask), TG_REASON_NONE);
    assert_int_equal(ask.amount_minor, 4900);
    char *payments[] = {empty, spaced, control, long_payment};
    for (size_t i = 0; i < COUNT_OF(payments); i++) {
        request.payment_id = payments[i];
        assert_int_equal(ledger_wire_confirm(&request, &ask), TG_REASON_MALFORMED);
    }
    request.payment_id = payment;
    char *currencies[] = {empty, small, long_currency};
    for (size_t i = 0; i < COUNT_OF(currencies); i++) {
        request.currency = currencies[i];
        assert_int_equal(ledger_wire_confirm(&request, &ask), TG_REASON_MALFORMED);
    }
    request.currency = euro;
    request.amount_minor = UINT64_MAX;
    assert_int_equal(ledger_wire_confirm(&request, &ask), TG_REASON_MALFORMED);
    request.reservation_id = payment;
    assert_int_equal(ledger_wire_confirm(&request, &ask), TG_REASON_RESERVATION_UNKNOWN);
}

static void a_log_page_begins_after_what_is_stored(void **state)
{
    static struct ledger_log_page page;
    static char kind[] = "hold", long_kind[] = "a kind that is too long";
    Tidegate__V1__GateLogEntry rows[3];
    Tidegate__V1__GateLogEntry *list[3];
    for (uint64_t i = 0; i < 3; i++) {
        tidegate__v1__gate_log_entry__init(&rows[i]);
        rows[i].sequence = i + 1;
        rows[i].kind = kind;
        rows[i].reservation_id = id_a;
        list[i] = &rows[i];
    }
    Tidegate__V1__AppendRequest request = TIDEGATE__V1__APPEND_REQUEST__INIT;
    request.sale = sale;
    request.n_entries = 3;
    request.entries = list;
    page.tail.sequence = 1;
    assert_int_equal(ledger_wire_log(&request, "sale", &page), TG_REASON_NONE);
    assert_int_equal(page.count, 2);
    assert_int_equal(page.entries[0].sequence, 2);
    page.tail.sequence = 3;
    assert_int_equal(ledger_wire_log(&request, "sale", &page), TG_REASON_NONE);
    assert_int_equal(page.count, 0);
    page.tail.sequence = 0;
    rows[2].kind = long_kind;
    assert_int_equal(ledger_wire_log(&request, "sale", &page), TG_REASON_MALFORMED);
}

static void a_round_has_one_of_three_outcomes(void **state)
{
    static char clean[] = "clean", fine[] = "fine";
    struct ledger_check check;
    Tidegate__V1__CheckResult result = TIDEGATE__V1__CHECK_RESULT__INIT;
    Tidegate__V1__AppendRequest request = TIDEGATE__V1__APPEND_REQUEST__INIT;
    request.sale = sale;
    request.check = &result;
    result.outcome = clean;
    result.in_flight = -3;
    assert_int_equal(ledger_wire_check(&request, "sale", &check), TG_REASON_NONE);
    assert_int_equal(check.in_flight, -3);
    result.outcome = fine;
    assert_int_equal(ledger_wire_check(&request, "sale", &check), TG_REASON_MALFORMED);
    result.outcome = clean;
    result.stock = UINT64_MAX;
    assert_int_equal(ledger_wire_check(&request, "sale", &check), TG_REASON_MALFORMED);
}

static void a_command_is_taken_field_by_field(void **state)
{
    static struct ledger_command taken;
    static char command_id[] = "00000000000000000000000001", pause[] = "00000000000000000000000002",
                bad_pause[] = "pause";
    char long_cause[300];
    char *pauses[] = {pause};
    char fault[LEDGER_DETAIL_BYTES] = "";
    uint8_t bytes[3] = {1, 2, 3};
    Tidegate__V1__SignedCommand envelope = TIDEGATE__V1__SIGNED_COMMAND__INIT;
    Tidegate__V1__Command command = TIDEGATE__V1__COMMAND__INIT;
    for (size_t i = 0; i + 1 < sizeof long_cause; i += 2) {
        memcpy(long_cause + i, "\xc3\xa4", 2);
    }
    long_cause[sizeof long_cause - 2] = '\0';
    envelope.command = data_of(bytes, 3);
    command.command_id = command_id;
    command.sale = sale;
    command.kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_RESUME;
    command.n_pause_ids = 1;
    command.pause_ids = pauses;
    command.cause = long_cause;
    assert_int_equal(ledger_wire_command(&command, &envelope, "operator", &taken, fault),
                     TG_REASON_NONE);
    assert_int_equal(taken.kind, LEDGER_RESUME);
    assert_string_equal(taken.pauses[0], pause);
    assert_true(
        tg_utf8_valid((const uint8_t *)taken.cause, strlen(taken.cause))); /* no half character */
    assert_int_equal(strlen(taken.cause), sizeof taken.cause - 2);
    pauses[0] = bad_pause;
    assert_int_equal(ledger_wire_command(&command, &envelope, "operator", &taken, fault),
                     TG_REASON_MALFORMED);
    assert_non_null(strstr(fault, "pause_ids"));
    pauses[0] = pause;
    command.command_id = bad_pause;
    assert_int_equal(ledger_wire_command(&command, &envelope, "operator", &taken, fault),
                     TG_REASON_MALFORMED);
    command.command_id = command_id;
    command.kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_UNSPECIFIED;
    assert_int_equal(ledger_wire_command(&command, &envelope, "operator", &taken, fault),
                     TG_REASON_MALFORMED);
    command.kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_APPLY;
    assert_int_equal(ledger_wire_command(&command, &envelope, "operator", &taken, fault),
                     TG_REASON_DEFINITION_INVALID);
}

static void a_sale_is_told_as_it_is(void **state)
{
    static struct ledger_sale from;
    static struct ledger_wire_sale wire;
    snprintf(from.sale.name, sizeof from.sale.name, "%s", "sale");
    snprintf(from.order, sizeof from.order, "%s", "fifo");
    from.sale.generation = 2;
    from.sale.item_count = 1;
    snprintf(from.sale.items[0].sku, sizeof from.sale.items[0].sku, "%s", "sku");
    snprintf(from.sale.items[0].currency, sizeof from.sale.items[0].currency, "%s", "EUR");
    from.sale.items[0].units = 5;
    from.sale.phase = TG_PHASE_PAUSED;
    from.sale.pause_count = 1;
    snprintf(from.sale.pauses[0].id, sizeof from.sale.pauses[0].id, "%s",
             "00000000000000000000000001");
    from.sale.lifted_count = 1;
    snprintf(from.sale.lifted[0], sizeof from.sale.lifted[0], "%s", "00000000000000000000000002");
    from.sale.opens_at.ms = 99;
    from.open_from_ms = 50;
    ledger_wire_sale(&wire, &from);
    assert_int_equal(wire.definition.n_items, 1);
    assert_int_equal(wire.definition.opens_at_ms, 99);
    assert_int_equal(wire.state.opens_at_ms, 50);
    assert_int_equal(wire.state.phase, TIDEGATE__V1__SALE_PHASE__SALE_PHASE_PAUSED);
    assert_string_equal(wire.state.pauses[0]->pause_id, from.sale.pauses[0].id);
    assert_string_equal(wire.state.lifted[0], from.sale.lifted[0]);
    uint8_t digest[TG_DIGEST_BYTES];
    tg_definition_digest(&wire.definition, digest);
    assert_memory_equal(wire.state.definition_digest.data, digest, sizeof digest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_good_hold_is_taken),
        cmocka_unit_test(a_bad_hold_is_refused),
        cmocka_unit_test(one_bad_row_of_an_expiry_costs_itself),
        cmocka_unit_test(only_what_a_gate_did_is_obeyed),
        cmocka_unit_test(pages_are_bounded),
        cmocka_unit_test(an_auditor_asks_within_bounds),
        cmocka_unit_test(a_payment_is_named_and_priced),
        cmocka_unit_test(a_log_page_begins_after_what_is_stored),
        cmocka_unit_test(a_round_has_one_of_three_outcomes),
        cmocka_unit_test(a_command_is_taken_field_by_field),
        cmocka_unit_test(a_sale_is_told_as_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
