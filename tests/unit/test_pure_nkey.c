/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/nkey.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

/* The pair of the NATS documentation. */
static const char seed_text[] = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
static const char public_text[] = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";

static void the_documented_pair_belongs_together(void **state)
{
    uint8_t seed[TG_NKEY_BYTES], key[TG_NKEY_BYTES], secret[64];
    char text[TG_NKEY_SEED_LENGTH + 1];
    (void)state;
    assert_int_equal(tg_nkey_seed_decode(seed_text, strlen(seed_text), seed), 0);
    tg_nkey_seed_encode(seed, text);
    assert_string_equal(text, seed_text);
    crypto_sign_seed_keypair(key, secret, seed);
    tg_nkey_public_encode(key, text);
    assert_string_equal(text, public_text);
    assert_int_equal(tg_nkey_public_decode(public_text, strlen(public_text), seed), 0);
    assert_memory_equal(seed, key, sizeof(key));
}

static void any_changed_character_is_refused(void **state)
{
    static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567018=a \n";
    uint8_t key[TG_NKEY_BYTES];
    char text[TG_NKEY_SEED_LENGTH + 1];
    (void)state;
    for (size_t i = 0; i < strlen(seed_text); i++) {
        for (const char *other = alphabet; *other != '\0'; other++) {
            memcpy(text, seed_text, sizeof(text));
            text[i] = *other;
            assert_int_equal(tg_nkey_seed_decode(text, strlen(text), key),
                             *other == seed_text[i] ? 0 : TG_ERR_MALFORMED);
        }
    }
}

static void another_length_or_kind_is_refused(void **state)
{
    uint8_t key[TG_NKEY_BYTES];
    (void)state;
    for (size_t length = 0; length < strlen(seed_text); length++) {
        assert_int_equal(tg_nkey_seed_decode(seed_text, length, key), TG_ERR_MALFORMED);
        assert_int_equal(tg_nkey_public_decode(public_text, length > 55 ? 55 : length, key),
                         TG_ERR_MALFORMED);
    }
    assert_int_equal(tg_nkey_public_decode(seed_text, TG_NKEY_PUBLIC_LENGTH, key),
                     TG_ERR_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_documented_pair_belongs_together),
        cmocka_unit_test(any_changed_character_is_refused),
        cmocka_unit_test(another_length_or_kind_is_refused),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
