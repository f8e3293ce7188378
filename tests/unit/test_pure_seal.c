/* SPDX-License-Identifier: Apache-2.0
 * The seal is libsodium's own, byte for byte, whatever the lengths. */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/seal.h"

#include <sodium.h>
#include <string.h>

static uint8_t key[TG_SEAL_KEY_BYTES], text[TG_SEAL_TEXT_BYTES_MAX], beside[TG_SEAL_OPEN_BYTES_MAX];

static struct tg_seal seal_of(size_t open_length)
{
    struct tg_seal seal = {.key = key, .open = beside, .open_length = open_length};
    randombytes_buf(seal.nonce, sizeof(seal.nonce));
    return seal;
}

static void fill(void)
{
    randombytes_buf(key, sizeof(key));
    randombytes_buf(text, sizeof(text));
    randombytes_buf(beside, sizeof(beside));
}

static void it_is_libsodiums_byte_for_byte(void **state)
{
    fill();
    for (size_t length = 0; length <= TG_SEAL_TEXT_BYTES_MAX; length++) {
        const struct tg_seal seal = seal_of(length % (TG_SEAL_OPEN_BYTES_MAX + 1));
        uint8_t ours[TG_SEAL_TEXT_BYTES_MAX + TG_SEAL_TAG_BYTES], theirs[sizeof(ours)];
        unsigned long long sealed = 0;
        tg_seal(&seal, text, length, ours);
        crypto_aead_chacha20poly1305_ietf_encrypt(theirs, &sealed, text, length, seal.open,
                                                  seal.open_length, NULL, seal.nonce, seal.key);
        assert_int_equal(sealed, length + TG_SEAL_TAG_BYTES);
        assert_memory_equal(ours, theirs, sealed);
        uint8_t back[TG_SEAL_TEXT_BYTES_MAX];
        assert_int_equal(tg_unseal(&seal, ours, sealed, back), 0);
        assert_memory_equal(back, text, length);
    }
}

static void one_bit_of_anything_is_noticed(void **state)
{
    fill();
    enum { LENGTH = 100, SEALED = LENGTH + TG_SEAL_TAG_BYTES };
    struct tg_seal seal = seal_of(3);
    uint8_t sealed[SEALED], back[LENGTH] = {7};
    tg_seal(&seal, text, LENGTH, sealed);
    for (size_t bit = 0; bit < (size_t)SEALED * 8; bit++) {
        sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(tg_unseal(&seal, sealed, SEALED, back), TG_ERR_FORGED);
        sealed[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    beside[2] ^= 1;
    assert_int_equal(tg_unseal(&seal, sealed, SEALED, back), TG_ERR_FORGED);
    beside[2] ^= 1;
    seal.nonce[11] ^= 1;
    assert_int_equal(tg_unseal(&seal, sealed, SEALED, back), TG_ERR_FORGED);
    seal.nonce[11] ^= 1;
    seal.open_length = 2;
    assert_int_equal(tg_unseal(&seal, sealed, SEALED, back), TG_ERR_FORGED);
    seal.open_length = 3;
    assert_int_equal(back[0], 7); /* nothing was written */
    assert_int_equal(tg_unseal(&seal, sealed, SEALED, back), 0);
}

static void other_lengths_are_forged(void **state)
{
    fill();
    const struct tg_seal seal = seal_of(0);
    uint8_t sealed[TG_SEAL_TEXT_BYTES_MAX + TG_SEAL_TAG_BYTES + 1] = {0};
    uint8_t back[TG_SEAL_TEXT_BYTES_MAX];
    for (size_t length = 0; length < TG_SEAL_TAG_BYTES; length++) {
        assert_int_equal(tg_unseal(&seal, sealed, length, back), TG_ERR_FORGED);
    }
    assert_int_equal(tg_unseal(&seal, sealed, sizeof(sealed), back), TG_ERR_FORGED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_libsodiums_byte_for_byte),
        cmocka_unit_test(one_bit_of_anything_is_noticed),
        cmocka_unit_test(other_lengths_are_forged),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
