/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "lib/io/es256.h"
#include "lib/io/keys.h"
#include "lib/io/pass_keys.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char text[] = "header.claims";
enum { LENGTH = sizeof(text) - 1, PAIRS = 24 };

struct pair {
    struct tg_es256 *secret, *public;
};

static void make(struct pair *pair)
{
    uint8_t secret[TG_ES256_KEY_BYTES], x[TG_ES256_KEY_BYTES];
    assert_int_equal(tg_es256_make(secret, x), 0);
    assert_int_equal(tg_es256_open_secret(secret, &pair->secret), 0);
    assert_int_equal(tg_es256_open_public(x, &pair->public), 0);
}

static void drop(struct pair *pair)
{
    pair->secret = tg_es256_free(pair->secret);
    pair->public = tg_es256_free(pair->public);
}

static void what_one_signs_the_other_verifies(void **state)
{
    for (unsigned i = 0; i < PAIRS; i++) { /* half of all points have an odd y at first */
        struct pair pair, other;
        uint8_t signature[TG_ES256_SIGNATURE_BYTES], x[2][TG_ES256_KEY_BYTES],
            y[2][TG_ES256_KEY_BYTES];
        make(&pair);
        make(&other);
        tg_es256_point(pair.secret, x[0], y[0]);
        tg_es256_point(pair.public, x[1], y[1]);
        assert_memory_equal(x[0], x[1], sizeof(x[0]));
        assert_memory_equal(y[0], y[1], sizeof(y[0]));
        assert_int_equal(y[0][TG_ES256_KEY_BYTES - 1] & 1, 0);
        assert_int_equal(tg_es256_sign(pair.secret, text, LENGTH, signature), 0);
        assert_true(tg_es256_verify(pair.public, text, LENGTH, signature));
        assert_false(tg_es256_verify(other.public, text, LENGTH, signature));
        drop(&pair);
        drop(&other);
    }
}

static void every_flipped_bit_is_refused(void **state)
{
    struct pair pair;
    uint8_t signature[TG_ES256_SIGNATURE_BYTES];
    char changed[sizeof(text)];
    make(&pair);
    assert_int_equal(tg_es256_sign(pair.secret, text, LENGTH, signature), 0);
    for (unsigned bit = 0; bit < 8 * TG_ES256_SIGNATURE_BYTES; bit++) {
        signature[bit / 8] ^= (uint8_t)(1U << bit % 8);
        assert_false(tg_es256_verify(pair.public, text, LENGTH, signature));
        signature[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
    for (unsigned bit = 0; bit < 8 * LENGTH; bit++) {
        memcpy(changed, text, sizeof(changed));
        changed[bit / 8] ^= (char)(1U << bit % 8);
        assert_false(tg_es256_verify(pair.public, changed, LENGTH, signature));
    }
    memset(signature, 0, sizeof(signature));
    assert_false(tg_es256_verify(pair.public, text, LENGTH, signature));
    memset(signature, 255, sizeof(signature));
    assert_false(tg_es256_verify(pair.public, text, LENGTH, signature));
    drop(&pair);
}

/* order - s verifies as well as s, for whoever does not look: one spelling only. */
static void the_other_s_is_refused(void **state)
{
    static const uint8_t order[] = {0xff, 0xff, 0xff, 0xff, 0x00, 0x00, 0x00, 0x00,
                                    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                    0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84,
                                    0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51};
    struct pair pair;
    make(&pair);
    for (unsigned i = 0; i < PAIRS; i++) {
        uint8_t signature[TG_ES256_SIGNATURE_BYTES];
        assert_int_equal(tg_es256_sign(pair.secret, text, LENGTH, signature), 0);
        assert_true(tg_es256_verify(pair.public, text, LENGTH, signature));
        int borrow = 0;
        for (int at = TG_ES256_KEY_BYTES - 1; at >= 0; at--) {
            uint8_t *byte = &signature[TG_ES256_KEY_BYTES + at];
            int left = order[at] - *byte - borrow;
            borrow = left < 0;
            *byte = (uint8_t)(left & 255);
        }
        assert_false(tg_es256_verify(pair.public, text, LENGTH, signature));
    }
    drop(&pair);
}

static void what_is_no_key_is_refused(void **state)
{
    struct tg_es256 *key = NULL;
    uint8_t bytes[TG_ES256_KEY_BYTES] = {0};
    assert_int_equal(tg_es256_open_secret(bytes, &key), TG_ERR_MALFORMED);
    memset(bytes, 255, sizeof(bytes));
    assert_int_equal(tg_es256_open_secret(bytes, &key), TG_ERR_MALFORMED);
    assert_int_equal(tg_es256_open_public(bytes, &key), TG_ERR_MALFORMED);
}

static void case_26_a_pass_has_the_algorithm_of_its_key(void **state)
{
    char folder[] = "/tmp/tidegate-es256-XXXXXX", keys_folder[64], id[9], command[96];
    char pass_text[2][TG_MAX_PASS_BYTES + 1];
    uint8_t signature[TG_PASS_SIGNATURE_BYTES];
    struct tg_pass_keys keys = {0};
    struct tg_sign_key sign;
    struct tg_es256 *secret = NULL;
    struct tg_pass pass = {
        .sale = "s", .user = "u", .user_length = 1, .generation = 1, .window = 29000000};
    struct tg_pass back;
    memset(pass.jti, 'A', TG_JTI_LENGTH);
    assert_non_null(mkdtemp(folder));
    (void)snprintf(keys_folder, sizeof(keys_folder), "%s/keys", folder);
    assert_int_equal(tg_keys_new(keys_folder), 0);
    assert_int_equal(tg_pass_keys_read(keys_folder, &keys), 0);
    assert_int_equal(tg_pass_keys_read(keys_folder, &keys), 0); /* as on SIGHUP */
    assert_int_equal(tg_pass_keys_read("/nowhere", &keys), -ENOENT);
    assert_int_equal(keys.es256_count, 1);
    assert_int_equal(tg_keys_sign(keys_folder, "pass", &sign), 0);
    assert_int_equal(tg_pass_keys_es256(keys_folder, id, &secret), 0);
    assert_string_equal(id, keys.es256_ids[0]);

    size_t length = tg_pass_write(TG_PASS_ES256, id, &pass, pass_text[0]);
    assert_int_equal(tg_es256_sign(secret, pass_text[0], length, signature), 0);
    length = tg_pass_attach(pass_text[0], length, signature);
    assert_int_equal(tg_pass_keys_verify(&keys, pass_text[0], length, &back), 0);
    assert_memory_equal(&back, &pass, sizeof(pass));
    assert_int_equal(tg_pass_verify(keys.eddsa, keys.eddsa_count, pass_text[0], length, &back),
                     TG_ERR_FORGED);
    length = tg_pass_sign(&sign, &pass, pass_text[1]);
    assert_int_equal(tg_pass_keys_verify(&keys, pass_text[1], length, &back), 0);

    /* The other's name, the other's algorithm: nothing that a pass says of itself helps it. */
    for (unsigned i = 0; i < 4; i++) {
        const char *kid = i & 1 ? sign.id : id;
        enum tg_pass_algorithm algorithm = i & 2 ? TG_PASS_EDDSA : TG_PASS_ES256;
        if ((algorithm == TG_PASS_EDDSA) == (kid == sign.id)) {
            continue;
        }
        length = tg_pass_write(algorithm, kid, &pass, pass_text[0]);
        crypto_sign_detached(signature, NULL, (const uint8_t *)pass_text[0], length, sign.secret);
        size_t whole = tg_pass_attach(pass_text[0], length, signature);
        assert_int_equal(tg_pass_keys_verify(&keys, pass_text[0], whole, &back), TG_ERR_FORGED);
        assert_int_equal(tg_es256_sign(secret, pass_text[0], length, signature), 0);
        whole = tg_pass_attach(pass_text[0], length, signature);
        assert_int_equal(tg_pass_keys_verify(&keys, pass_text[0], whole, &back), TG_ERR_FORGED);
    }
    secret = tg_es256_free(secret);
    tg_pass_keys_free(&keys);
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_one_signs_the_other_verifies),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(the_other_s_is_refused),
        cmocka_unit_test(what_is_no_key_is_refused),
        cmocka_unit_test(case_26_a_pass_has_the_algorithm_of_its_key),
    };
    if (sodium_init() < 0) {
        return 1;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
