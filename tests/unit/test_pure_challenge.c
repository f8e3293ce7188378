/* SPDX-License-Identifier: Apache-2.0
 * The challenge against values that another implementation gave (Python's hashlib and hmac). */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/challenge.h"

#include <stdlib.h>
#include <string.h>

static uint8_t key[TG_KEY_BYTES];

/* nonce 00..0f, salt 10..1f, bound 20..2f */
static struct tg_challenge sample(void)
{
    struct tg_challenge challenge = {
        .cost = 3, .key_prefix = "00", .expires_at_s = 1791916800, .patient_at_s = 1791916620};
    for (uint8_t i = 0; i < 16; i++) {
        challenge.nonce[i] = i;
        challenge.salt[i] = (uint8_t)(16 + i);
        challenge.bound[i] = (uint8_t)(32 + i);
    }
    return challenge;
}

static int counted_key(void **state)
{
    for (uint8_t i = 0; i < TG_KEY_BYTES; i++) {
        key[i] = i;
    }
    return 0;
}

static void text_and_signature_are_those_of_altcha(void **state)
{
    struct tg_challenge challenge = sample();
    char text[TG_CHALLENGE_TEXT_BYTES], hex[2 * TG_CHALLENGE_SIGNATURE_BYTES + 1];
    uint8_t signature[TG_CHALLENGE_SIGNATURE_BYTES];
    size_t length = tg_challenge_text(&challenge, text);
    assert_string_equal(text, "{\"algorithm\":\"PBKDF2/SHA-256\",\"cost\":3,\"data\":{\"bound\":"
                              "\"202122232425262728292a2b2c2d2e2f\",\"patientAt\":1791916620},"
                              "\"expiresAt\":1791916800,\"keyLength\":32,\"keyPrefix\":\"00\","
                              "\"nonce\":\"000102030405060708090a0b0c0d0e0f\","
                              "\"salt\":\"101112131415161718191a1b1c1d1e1f\"}");
    assert_int_equal(length, strlen(text));
    tg_challenge_sign(key, &challenge, signature);
    tg_hex_encode(signature, sizeof(signature), hex);
    assert_string_equal(hex, "446265b8df8f6c14c4afe91f8c1ff4825b7721d76cf9e4d0efc76bf45ddc1f09");
    assert_true(tg_challenge_signed(key, &challenge, signature));
}

static void the_longest_challenge_has_room(void **state)
{
    struct tg_challenge challenge = sample();
    char text[TG_CHALLENGE_TEXT_BYTES];
    challenge.cost = UINT32_MAX;
    challenge.expires_at_s = challenge.patient_at_s = INT64_MIN;
    memcpy(challenge.key_prefix, "ffff", 5);
    assert_in_range(tg_challenge_text(&challenge, text), 250, sizeof(text) - 1);
}

static void every_field_is_signed(void **state)
{
    const struct tg_challenge right = sample();
    struct tg_challenge other[] = {right, right, right, right, right, right, right};
    uint8_t signature[TG_CHALLENGE_SIGNATURE_BYTES];
    tg_challenge_sign(key, &right, signature);
    other[0].cost++;
    other[1].key_prefix[1] = '\0'; /* easier */
    other[2].nonce[15] ^= 1;
    other[3].salt[0] ^= 1;
    other[4].bound[7] ^= 1;
    other[5].expires_at_s++;
    other[6].patient_at_s--;
    for (size_t i = 0; i < COUNT_OF(other); i++) {
        assert_false(tg_challenge_signed(key, &other[i], signature));
    }
    uint8_t other_key[TG_KEY_BYTES] = {1};
    assert_false(tg_challenge_signed(other_key, &right, signature));
}

/* case-27: "1" + "57320807960" spells what "1573208079" + "60" does; the fields do not. */
static void case_27_a_digit_cannot_slide_into_the_next_field(void **state)
{
    struct tg_challenge right = sample(), spliced = sample();
    uint8_t signature[TG_CHALLENGE_SIGNATURE_BYTES];
    right.patient_at_s = 1573208079;
    right.expires_at_s = 60;
    spliced.patient_at_s = 1;
    spliced.expires_at_s = 57320807960;
    tg_challenge_sign(key, &right, signature);
    assert_false(tg_challenge_signed(key, &spliced, signature));
}

static void the_derivation_is_pbkdf2(void **state)
{
    struct tg_challenge challenge = sample();
    uint8_t derived[TG_CHALLENGE_DERIVED_BYTES];
    char hex[2 * TG_CHALLENGE_DERIVED_BYTES + 1];
    tg_challenge_derive(&challenge, 258, derived);
    tg_hex_encode(derived, sizeof(derived), hex);
    assert_string_equal(hex, "3b366f7ad0fe0efc59c8a6aec5231e51d780c58c7aa18811e87334a6ffe47e59");
    assert_false(tg_challenge_solved(&challenge, 258, derived));
    tg_challenge_derive(&challenge, 246, derived);
    tg_hex_encode(derived, sizeof(derived), hex);
    assert_string_equal(hex, "00f30390f4e670828b7b45e8a9d20526c86b7813ee280f512d73959b07b94dd8");
    assert_true(tg_challenge_solved(&challenge, 246, derived));
    memcpy(challenge.key_prefix, "00f", 4); /* an odd number of digits */
    assert_true(tg_challenge_solved(&challenge, 246, derived));
    memcpy(challenge.key_prefix, "00e", 4);
    assert_false(tg_challenge_solved(&challenge, 246, derived));
}

static void a_key_with_the_prefix_but_of_no_work_does_not_solve(void **state)
{
    struct tg_challenge challenge = sample();
    const uint8_t invented[TG_CHALLENGE_DERIVED_BYTES] = {0};
    assert_false(tg_challenge_solved(&challenge, 246, invented));
    uint8_t derived[TG_CHALLENGE_DERIVED_BYTES];
    tg_challenge_derive(&challenge, 246, derived);
    assert_false(tg_challenge_solved(&challenge, 247, derived));
}

static void a_challenge_is_for_one_sale_person_and_thing(void **state)
{
    struct tg_holder usr_1 = {.kind = TG_HOLDER_USER, .length = 5, .bytes = "usr_1"};
    struct tg_holder usr_2 = {.kind = TG_HOLDER_USER, .length = 5, .bytes = "usr_2"};
    const struct tg_challenge_scope right = {"demo", 3, "ticket", &usr_1, 7};
    const struct tg_challenge_scope others[] = {
        {"demo2", 3, "ticket", &usr_1, 7}, {"demo", 4, "ticket", &usr_1, 7},
        {"demo", 3, "pass", &usr_1, 7},    {"demo", 3, "ticket", &usr_2, 7},
        {"demo", 3, "ticket", &usr_1, 8},  {"demo", 3, "ticket", NULL, 7},
        {"dem", 3, "oticket", &usr_1, 7}};
    struct tg_challenge challenge = sample();
    tg_challenge_bind(key, &right, &challenge);
    assert_true(tg_challenge_bound(key, &right, &challenge));
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        assert_false(tg_challenge_bound(key, &others[i], &challenge));
    }
    const struct tg_challenge_scope nobody = {"demo", 3, "ticket", NULL, 0};
    tg_challenge_bind(key, &nobody, &challenge);
    challenge.nonce[0] ^= 1; /* a visitor is named by the nonce */
    assert_false(tg_challenge_bound(key, &nobody, &challenge));
}

static void a_challenge_is_spent_once_until_it_is_over(void **state)
{
    struct tg_spent *spent = calloc(1, sizeof(*spent));
    struct tg_challenge challenge = sample();
    int64_t now_s = challenge.expires_at_s - 300;
    assert_non_null(spent);
    assert_int_equal(tg_spend(spent, &challenge, now_s), TG_SPEND_FIRST);
    assert_int_equal(tg_spend(spent, &challenge, now_s), TG_SPEND_AGAIN);
    assert_int_equal(tg_spend(spent, &challenge, challenge.expires_at_s), TG_SPEND_AGAIN);
    free(spent);
}

static void a_full_bucket_refuses_rather_than_forgets(void **state)
{
    struct tg_spent *spent = calloc(1, sizeof(*spent));
    struct tg_challenge challenge = sample();
    int64_t now_s = challenge.expires_at_s - 300;
    assert_non_null(spent);
    for (uint8_t i = 0; i < TG_SPENT_WAYS; i++) {
        challenge.nonce[8] = i; /* same bucket */
        assert_int_equal(tg_spend(spent, &challenge, now_s), TG_SPEND_FIRST);
    }
    challenge.nonce[8] = TG_SPENT_WAYS;
    assert_int_equal(tg_spend(spent, &challenge, now_s), TG_SPEND_FULL);
    challenge.nonce[8] = 0;
    assert_int_equal(tg_spend(spent, &challenge, now_s), TG_SPEND_AGAIN);
    now_s = challenge.expires_at_s + 1;
    challenge.expires_at_s += 300;
    challenge.nonce[8] = TG_SPENT_WAYS;
    assert_int_equal(tg_spend(spent, &challenge, now_s), TG_SPEND_FIRST);
    free(spent);
}

static double work(struct tg_effort effort)
{
    double tries = 1;
    for (size_t i = 0; i < strlen(effort.key_prefix); i++) {
        tries *= 16;
    }
    return tries * effort.cost;
}

static void more_load_is_more_work_and_more_patience(void **state)
{
    struct tg_effort before = tg_challenge_effort(0);
    for (uint32_t rate = 1; rate < 10000; rate++) {
        struct tg_effort effort = tg_challenge_effort(rate);
        assert_true(work(effort) >= work(before) && effort.patience_s >= before.patience_s);
        assert_true(effort.cost <= TG_CHALLENGE_COST_MAX);
        assert_true(strlen(effort.key_prefix) <= TG_CHALLENGE_PREFIX_LENGTH);
        before = effort;
    }
    assert_true(work(before) >= 32 * work(tg_challenge_effort(0)));
}

static void the_rush_is_that_of_this_or_the_last_second(void **state)
{
    struct tg_rush rush = {0};
    for (uint32_t i = 1; i <= 100; i++) {
        assert_int_equal(tg_rush_count(&rush, 1000), i);
    }
    assert_int_equal(tg_rush_count(&rush, 1001), 100);
    assert_int_equal(tg_rush_count(&rush, 1003), 1);
}

static void the_signing_key_follows_from_the_entrant_key(void **state)
{
    uint8_t derived[TG_KEY_BYTES];
    char hex[2 * TG_KEY_BYTES + 1];
    tg_challenge_key(key, derived);
    tg_hex_encode(derived, sizeof(derived), hex);
    assert_string_equal(hex, "5699a24a9cb9c98a5379fe4d310031ec1986630133bc455fa347265e6c7cbe33");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_and_signature_are_those_of_altcha),
        cmocka_unit_test(the_longest_challenge_has_room),
        cmocka_unit_test(every_field_is_signed),
        cmocka_unit_test(case_27_a_digit_cannot_slide_into_the_next_field),
        cmocka_unit_test(the_derivation_is_pbkdf2),
        cmocka_unit_test(a_key_with_the_prefix_but_of_no_work_does_not_solve),
        cmocka_unit_test(a_challenge_is_for_one_sale_person_and_thing),
        cmocka_unit_test(a_challenge_is_spent_once_until_it_is_over),
        cmocka_unit_test(a_full_bucket_refuses_rather_than_forgets),
        cmocka_unit_test(more_load_is_more_work_and_more_patience),
        cmocka_unit_test(the_rush_is_that_of_this_or_the_last_second),
        cmocka_unit_test(the_signing_key_follows_from_the_entrant_key),
    };
    return cmocka_run_group_tests(tests, counted_key, NULL);
}
