/* SPDX-License-Identifier: Apache-2.0
 * Bodies of reserve and confirm: read strictly, refused by name, one digest for one wish. */
#include "services/edge/demand.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const struct tg_sale sale = {
    .name = "s", .limit_per_buyer = 4, .item_count = 2, .items = {{.sku = "red"}, {.sku = "blue"}}};
static const struct tg_sale single = {
    .name = "s", .limit_per_buyer = 1, .item_count = 1, .items = {{.sku = "red"}}};

static enum tg_reason read_demand(const struct tg_sale *of, const char *body,
                                  struct edge_demand *out_demand)
{
    char fault[EDGE_FAULT_BYTES] = "";
    enum tg_reason reason = edge_demand(of, body, strlen(body), out_demand, fault);
    assert_true((reason == TG_REASON_NONE) == (fault[0] == '\0'));
    return reason;
}

static void test_empty_body_is_one_of_the_only_item(void **state)
{
    struct edge_demand empty, spelled;
    assert_int_equal(read_demand(&single, "", &empty), TG_REASON_NONE);
    assert_int_equal(empty.count, 1);
    assert_int_equal(empty.rows[0].item, 0);
    assert_int_equal(empty.rows[0].quantity, 1);
    assert_int_equal(
        read_demand(&single, "{\"items\":[{\"quantity\":1,\"sku\":\"red\"}]}", &spelled),
        TG_REASON_NONE);
    assert_memory_equal(empty.digest, spelled.digest, sizeof(empty.digest));
    assert_int_equal(read_demand(&sale, "", &empty), TG_REASON_MALFORMED);
}

static void test_order_and_repetition_do_not_change_the_digest(void **state)
{
    struct edge_demand a, b, c;
    assert_int_equal(
        read_demand(
            &sale,
            "{\"items\":[{\"sku\":\"red\",\"quantity\":2},{\"sku\":\"blue\",\"quantity\":1}]}", &a),
        0);
    assert_int_equal(
        read_demand(
            &sale,
            "{\"items\":[{\"sku\":\"red\",\"quantity\":1},{\"sku\":\"blue\",\"quantity\":1},"
            "{\"sku\":\"red\",\"quantity\":1}]}",
            &b),
        0);
    assert_int_equal(
        read_demand(
            &sale,
            "{\"items\":[{\"sku\":\"red\",\"quantity\":1},{\"sku\":\"blue\",\"quantity\":2}]}", &c),
        0);
    assert_int_equal(a.count, 2);
    assert_memory_equal(a.digest, b.digest, sizeof(a.digest));
    assert_memory_not_equal(a.digest, c.digest, sizeof(a.digest));
}

static void test_quantities_out_of_range(void **state)
{
    struct edge_demand demand;
    static const char *const bodies[] = {
        "{\"items\":[{\"sku\":\"red\",\"quantity\":0}]}",
        "{\"items\":[{\"sku\":\"red\",\"quantity\":5}]}",
        "{\"items\":[{\"sku\":\"red\",\"quantity\":-9223372036854775808}]}",
        "{\"items\":[{\"sku\":\"red\",\"quantity\":9223372036854775807}]}",
        "{\"items\":[{\"sku\":\"red\",\"quantity\":3},{\"sku\":\"blue\",\"quantity\":2}]}",
    };
    for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
        assert_int_equal(read_demand(&sale, bodies[i], &demand), TG_REASON_QUANTITY_INVALID);
    }
    assert_int_equal(
        read_demand(&sale, "{\"items\":[{\"sku\":\"green\",\"quantity\":1}]}", &demand),
        TG_REASON_ITEM_UNKNOWN);
}

/* A good body with any one byte changed, removed or doubled is read or refused, never misread:
 * whatever is accepted asks for something the sale has, within its limits. */
static void test_mangled_bodies(void **state)
{
    static const char good[] =
        "{\"items\":[{\"sku\":\"red\",\"quantity\":2},{\"sku\":\"blue\",\"quantity\":1}]}";
    char body[sizeof(good) + 1], fault[EDGE_FAULT_BYTES];
    for (size_t at = 0; at < sizeof(good) - 1; at++) {
        for (int byte = 0; byte < 256; byte++) {
            struct edge_demand demand;
            memcpy(body, good, sizeof(good));
            body[at] = (char)byte;
            if (edge_demand(&sale, body, sizeof(good) - 1, &demand, fault) == TG_REASON_NONE) {
                assert_true(demand.count >= 1 && demand.count <= 2);
                assert_true(demand.rows[0].quantity >= 1 && demand.rows[0].quantity <= 4);
            }
        }
    }
    for (size_t length = 1; length < sizeof(good) - 1; length++) {
        struct edge_demand demand;
        assert_int_equal(edge_demand(&sale, good, length, &demand, fault), TG_REASON_MALFORMED);
    }
}

static void test_faults_do_not_outgrow_their_room(void **state)
{
    char body[4096] = "{\"", fault[EDGE_FAULT_BYTES];
    struct edge_demand demand;
    memset(body + 2, 'x', 4000);
    memcpy(body + 4002, "\":1}", 5);
    assert_int_equal(edge_demand(&sale, body, strlen(body), &demand, fault), TG_REASON_MALFORMED);
    assert_true(strlen(fault) < EDGE_FAULT_BYTES);
}

static void test_payments(void **state)
{
    struct edge_payment payment;
    char fault[EDGE_FAULT_BYTES];
    static const char good[] = "{\"paymentId\":\"pay-1\",\"amount\":4900,\"currency\":\"EUR\"}";
    assert_int_equal(edge_payment(good, strlen(good), &payment, fault), TG_REASON_NONE);
    assert_string_equal(payment.id, "pay-1");
    assert_int_equal(payment.amount_minor, 4900);
    assert_string_equal(payment.currency, "EUR");
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"paymentId\":\"p\",\"amount\":1,\"currency\":\"EUR\",\"x\":1}",
        "{\"paymentId\":\"p\",\"amount\":1.5,\"currency\":\"EUR\"}",
        "{\"paymentId\":\"p\",\"amount\":-1,\"currency\":\"EUR\"}",
        "{\"paymentId\":\"\",\"amount\":1,\"currency\":\"EUR\"}",
        "{\"paymentId\":\"p\",\"amount\":1,\"currency\":\"E\\u0000R\"}",
        "{\"paymentId\":\"p\",\"amount\":1,\"currency\":\"eur\"}",
        "{\"paymentId\":null,\"amount\":1,\"currency\":\"EUR\"}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        fault[0] = '\0';
        assert_int_equal(edge_payment(bad[i], strlen(bad[i]), &payment, fault),
                         TG_REASON_MALFORMED);
        assert_true(fault[0] != '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_body_is_one_of_the_only_item),
        cmocka_unit_test(test_order_and_repetition_do_not_change_the_digest),
        cmocka_unit_test(test_quantities_out_of_range),
        cmocka_unit_test(test_mangled_bodies),
        cmocka_unit_test(test_faults_do_not_outgrow_their_room),
        cmocka_unit_test(test_payments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
