/* SPDX-License-Identifier: Apache-2.0
 * Signed commands and sale definitions: what is accepted, and every way of being refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/io/sales.h"
#include "lib/pure/pass.h"
#include "tidegate/v1/ledger.pb-c.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

static struct tg_sign_key operator_sign, invariant_sign;
static struct tg_verify_key operator_key, invariant_key;
static const struct tg_wall now = {1790000000000};

static char sale_name[] = "sku_991";

static void make_key(struct tg_sign_key *sign, struct tg_verify_key *verify)
{
    crypto_sign_keypair(sign->public_key, sign->secret);
    memcpy(verify->public_key, sign->public_key, sizeof(verify->public_key));
}

static int setup(void **state)
{
    (void)state;
    assert_true(sodium_init() >= 0);
    make_key(&operator_sign, &operator_key);
    make_key(&invariant_sign, &invariant_key);
    return 0;
}

static Tidegate__V1__Command pause_command(char id[TG_BASE32_ID_LENGTH + 1])
{
    Tidegate__V1__Command command = TIDEGATE__V1__COMMAND__INIT;

    tg_command_new_id(id);
    command.command_id = id;
    command.sale = sale_name;
    command.generation = 1;
    command.kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE;
    command.expires_at_ms = now.ms + 30000;
    return command;
}

static int verify(const Tidegate__V1__SignedCommand *message, const char *sale)
{
    Tidegate__V1__Command *command = NULL;
    int error = tg_command_verify(&operator_key, &invariant_key, message, sale, now, &command);

    if (error == 0) {
        tidegate__v1__command__free_unpacked(command, NULL);
    } else {
        assert_null(command);
    }
    return error;
}

static int sign_and_verify(const struct tg_sign_key *key, const char *name,
                           const Tidegate__V1__Command *command)
{
    struct tg_signed_command made;
    int error;

    assert_int_equal(tg_command_sign(key, name, command, &made), 0);
    error = verify(&made.message, sale_name);
    tg_command_free(&made);
    return error;
}

static void what_was_signed_is_read(void **state)
{
    char id[TG_BASE32_ID_LENGTH + 1];
    Tidegate__V1__Command command = pause_command(id);
    Tidegate__V1__Command *read = NULL;
    struct tg_signed_command made;
    char cause[] = "check B failed";

    (void)state;
    command.cause = cause;
    assert_int_equal(tg_command_sign(&operator_sign, "operator", &command, &made), 0);
    assert_int_equal(
        tg_command_verify(&operator_key, &invariant_key, &made.message, sale_name, now, &read), 0);
    assert_string_equal(read->command_id, id);
    assert_string_equal(read->cause, cause);
    assert_int_equal(read->generation, 1);
    tidegate__v1__command__free_unpacked(read, NULL);
    assert_int_equal(verify(&made.message, "another"), TG_ERR_MALFORMED);
    tg_command_free(&made);
}

static void the_checker_may_only_pause(void **state)
{
    char id[TG_BASE32_ID_LENGTH + 1];
    Tidegate__V1__Command command = pause_command(id);

    (void)state;
    assert_int_equal(sign_and_verify(&invariant_sign, "invariant", &command), 0);
    for (int kind = 1; kind <= 7; kind++) {
        bool may = kind == TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE;
        command.kind = (Tidegate__V1__CommandKind)kind;
        assert_int_equal(sign_and_verify(&operator_sign, "operator", &command), 0);
        assert_int_equal(sign_and_verify(&invariant_sign, "invariant", &command),
                         may ? 0 : TG_ERR_FORGED);
    }
}

static void keys_are_not_mixed_up(void **state)
{
    char id[TG_BASE32_ID_LENGTH + 1];
    Tidegate__V1__Command command = pause_command(id);

    (void)state;
    assert_int_equal(sign_and_verify(&invariant_sign, "operator", &command), TG_ERR_FORGED);
    assert_int_equal(sign_and_verify(&operator_sign, "invariant", &command), TG_ERR_FORGED);
    assert_int_equal(sign_and_verify(&operator_sign, "root", &command), TG_ERR_FORGED);
    assert_int_equal(sign_and_verify(&operator_sign, "", &command), TG_ERR_FORGED);
}

static void every_flipped_bit_is_seen(void **state)
{
    char id[TG_BASE32_ID_LENGTH + 1];
    Tidegate__V1__Command command = pause_command(id);
    struct tg_signed_command made;

    (void)state;
    assert_int_equal(tg_command_sign(&operator_sign, "operator", &command, &made), 0);
    for (size_t bit = 0; bit < made.message.command.len * 8; bit++) {
        made.command[bit / 8] ^= (uint8_t)(1U << bit % 8);
        assert_int_equal(verify(&made.message, sale_name), TG_ERR_FORGED);
        made.command[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    for (size_t bit = 0; bit < sizeof(made.signature) * 8; bit++) {
        made.signature[bit / 8] ^= (uint8_t)(1U << bit % 8);
        assert_int_equal(verify(&made.message, sale_name), TG_ERR_FORGED);
        made.signature[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    made.message.signature.len = 63;
    assert_int_equal(verify(&made.message, sale_name), TG_ERR_MALFORMED);
    made.message.signature.len = 64;
    assert_int_equal(verify(&made.message, sale_name), 0);
    tg_command_free(&made);
}

static void only_living_commands(void **state)
{
    char id[TG_BASE32_ID_LENGTH + 1];
    Tidegate__V1__Command command = pause_command(id);

    (void)state;
    command.expires_at_ms = now.ms - 2001;
    assert_int_equal(sign_and_verify(&operator_sign, "operator", &command), TG_ERR_RANGE);
    command.expires_at_ms = now.ms - 2000;
    assert_int_equal(sign_and_verify(&operator_sign, "operator", &command), 0);
    command.expires_at_ms = now.ms + 32001;
    assert_int_equal(sign_and_verify(&operator_sign, "operator", &command), TG_ERR_RANGE);
    command.expires_at_ms = INT64_MAX;
    assert_int_equal(sign_and_verify(&operator_sign, "operator", &command), TG_ERR_RANGE);
    command.expires_at_ms = INT64_MIN;
    assert_int_equal(sign_and_verify(&operator_sign, "operator", &command), TG_ERR_RANGE);
}

static void signed_but_malformed(void **state)
{
    char id[TG_BASE32_ID_LENGTH + 1], long_cause[129], *ids[1], lower[] = "abc";
    Tidegate__V1__Command command = pause_command(id);

    (void)state;
    memset(long_cause, 'x', sizeof(long_cause) - 1);
    long_cause[sizeof(long_cause) - 1] = '\0';
    command.cause = long_cause;
    assert_int_equal(sign_and_verify(&operator_sign, "operator", &command), TG_ERR_MALFORMED);
    command = pause_command(id);
    command.command_id = lower;
    assert_int_equal(sign_and_verify(&operator_sign, "operator", &command), TG_ERR_MALFORMED);
    command = pause_command(id);
    ids[0] = lower;
    command.pause_ids = ids;
    command.n_pause_ids = 1;
    assert_int_equal(sign_and_verify(&operator_sign, "operator", &command), TG_ERR_MALFORMED);
    command = pause_command(id);
    command.kind = (Tidegate__V1__CommandKind)99;
    assert_int_equal(sign_and_verify(&operator_sign, "operator", &command), TG_ERR_MALFORMED);
    command.kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_UNSPECIFIED;
    assert_int_equal(sign_and_verify(&operator_sign, "operator", &command), TG_ERR_MALFORMED);
}

static char currency[] = "EUR", order[] = "fifo", sku[] = "a-1", other_sku[] = "b_2";

static void fill(Tidegate__V1__SaleDefinition *definition, Tidegate__V1__ItemDefinition items[2],
                 Tidegate__V1__ItemDefinition *list[2])
{
    tidegate__v1__sale_definition__init(definition);
    for (int i = 0; i < 2; i++) {
        tidegate__v1__item_definition__init(&items[i]);
        items[i].sku = i == 0 ? sku : other_sku;
        items[i].units = 500;
        items[i].price_minor = 4900;
        items[i].currency = currency;
        list[i] = &items[i];
    }
    definition->sale = sale_name;
    definition->items = list;
    definition->n_items = 2;
    definition->opens_at_ms = now.ms;
    definition->order = order;
    definition->limit_per_buyer = 1;
    definition->hold_ms = 600000;
    definition->grace_ms = 30000;
    definition->extend_ms = 60000;
    definition->extensions_max = 2;
    definition->pace_start_milli = 1000000;
    definition->pace_min_milli = 10000;
    definition->pace_max_milli = 5000000;
    definition->proof_every_ms = 1000;
    definition->proof_lease_ms = 3000;
    definition->shards = 1;
}

#define REFUSED(field, change)                                                                     \
    do {                                                                                           \
        Tidegate__V1__SaleDefinition definition;                                                   \
        Tidegate__V1__ItemDefinition items[2], *list[2];                                           \
        char fault[160] = "";                                                                      \
        fill(&definition, items, list);                                                            \
        change;                                                                                    \
        assert_int_equal(tg_definition_check(&definition, fault, sizeof(fault)), TG_ERR_RANGE);    \
        if (strstr(fault, field) == NULL) {                                                        \
            fail_msg("\"%s\" does not name %s", fault, field);                                     \
        }                                                                                          \
    } while (0)

static void definitions_out_of_bounds_name_the_field(void **state)
{
    char bad[] = "a b", euro[] = "eur", dollar[] = "USD", luck[] = "luck", lottery[] = "lottery";

    (void)state;
    REFUSED("sale", definition.sale = bad);
    REFUSED("items", definition.n_items = 0);
    REFUSED("sku", items[1].sku = bad);
    REFUSED("twice", items[1].sku = sku);
    REFUSED("units", items[0].units = 0);
    REFUSED("units", items[0].units = 1000001);
    REFUSED("price", items[0].price_minor = UINT64_MAX);
    REFUSED("currency", items[0].currency = euro);
    REFUSED("currency", items[1].currency = dollar);
    REFUSED("opensAt", definition.opens_at_ms = -1);
    REFUSED("order", definition.order = luck);
    REFUSED("commitment", definition.order = lottery);
    REFUSED("beacon", definition.beacon = dollar);
    REFUSED("perBuyer", definition.limit_per_buyer = 0);
    REFUSED("perBuyer", definition.limit_per_buyer = 65);
    REFUSED("holdFor", definition.hold_ms = 0);
    REFUSED("grace", definition.grace_ms = -1);
    REFUSED("extendBy", definition.extend_ms = -1);
    REFUSED("extensions", definition.extensions_max = 101);
    REFUSED("pace.min", definition.pace_min_milli = 0);
    REFUSED("pace.start", definition.pace_start_milli = 5000001);
    REFUSED("pace.max", definition.pace_max_milli = UINT64_MAX);
    REFUSED("everyMs", definition.proof_every_ms = 0);
    REFUSED("leaseFor", definition.proof_lease_ms = 1999);
    REFUSED("shards", definition.shards = 2);
}

static void the_digest_follows_every_field_but_the_generation(void **state)
{
    Tidegate__V1__SaleDefinition definition;
    Tidegate__V1__ItemDefinition items[2], *list[2];
    uint8_t before[TG_DIGEST_BYTES], after[TG_DIGEST_BYTES];
    char fault[160];

    (void)state;
    fill(&definition, items, list);
    assert_int_equal(tg_definition_check(&definition, fault, sizeof(fault)), 0);
    tg_definition_digest(&definition, before);
    definition.generation = 7;
    tg_definition_digest(&definition, after);
    assert_memory_equal(before, after, sizeof(before));
    items[1].price_minor++;
    tg_definition_digest(&definition, after);
    assert_memory_not_equal(before, after, sizeof(before));
    items[1].price_minor--;
    definition.remaining_bucketed = true;
    tg_definition_digest(&definition, after);
    assert_memory_not_equal(before, after, sizeof(before));
}

static void a_definition_is_read_whole(void **state)
{
    static struct tg_sale sale;
    Tidegate__V1__SaleDefinition definition;
    Tidegate__V1__ItemDefinition items[2], *list[2];

    (void)state;
    fill(&definition, items, list);
    tg_definition_read(&definition, &sale);
    assert_string_equal(sale.name, sale_name);
    assert_int_equal(sale.item_count, 2);
    assert_int_equal(tg_sale_item(&sale, other_sku), 1);
    assert_int_equal(sale.items[1].units, 500);
    assert_string_equal(sale.items[1].currency, "EUR");
    assert_int_equal(sale.opens_at.ms, now.ms);
    assert_int_equal(sale.pace_max_milli, 5000000);
    assert_int_equal(sale.proof_lease_ms, 3000);
    assert_false(tg_sale_draws(&sale));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_signed_is_read),
        cmocka_unit_test(the_checker_may_only_pause),
        cmocka_unit_test(keys_are_not_mixed_up),
        cmocka_unit_test(every_flipped_bit_is_seen),
        cmocka_unit_test(only_living_commands),
        cmocka_unit_test(signed_but_malformed),
        cmocka_unit_test(definitions_out_of_bounds_name_the_field),
        cmocka_unit_test(the_digest_follows_every_field_but_the_generation),
        cmocka_unit_test(a_definition_is_read_whole),
    };

    return cmocka_run_group_tests(tests, setup, NULL);
}
