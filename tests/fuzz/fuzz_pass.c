/* SPDX-License-Identifier: Apache-2.0
 * Passes: what verifies signs again to the same text and is within every bound, even if whoever
 * knows the key signed nonsense; a changed pass never verifies, nor does one of an unknown key. */
#include "tests/fuzz/fuzz.h"

#include "lib/pure/pass.h"

#include <sodium.h>

enum { PART_BYTES = 1024, TEXT_BYTES = 4 * PART_BYTES };

static struct tg_sign_key key = {.id = "01234567"};
static struct tg_verify_key keys[2] = {{.id = "89abcdef"}, {.id = "01234567"}};

static void make_keys(void)
{
    static const uint8_t seed[32] = "a seed of tests", other[32] = "another seed of tests";
    uint8_t secret[64];
    if (key.public_key[0] == 0) {
        (void)crypto_sign_seed_keypair(keys[0].public_key, secret, other);
        (void)crypto_sign_seed_keypair(key.public_key, key.secret, seed);
        memcpy(keys[1].public_key, key.public_key, sizeof(key.public_key));
    }
}

static bool verifies_canonically(const char *text, size_t length)
{
    struct tg_pass pass;
    char again[TG_MAX_PASS_BYTES + 1];
    uint8_t jti[24];
    size_t count = 0;
    if (tg_pass_verify(keys, 2, text, length, &pass) != 0) {
        return false;
    }
    HOLDS(tg_sale_name_valid(pass.sale, strnlen(pass.sale, sizeof(pass.sale))));
    HOLDS(tg_user_valid(pass.user, pass.user_length));
    HOLDS(tg_base64url_decode(pass.jti, TG_JTI_LENGTH, jti, sizeof(jti), &count) == 0);
    HOLDS(count == sizeof(jti) && pass.jti[TG_JTI_LENGTH] == '\0');
    HOLDS(tg_pass_sign(&key, &pass, again) == length && memcmp(again, text, length) == 0);
    return true;
}

static size_t append_part(char *text, size_t at, const char *part, size_t length)
{
    return at + tg_base64url_encode((const uint8_t *)part, length, text + at);
}

/* Header and claims of any bytes, properly signed. The claims begin as ours and are then changed,
 * or are free from the start. */
static void signed_nonsense(struct choice *choice)
{
    static const char own_head[] =
        "{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":\"01234567\"}";
    struct tg_pass pass = {.sale = "sale", .generation = 3, .user = "a\"b\\c", .user_length = 5};
    char text[TEXT_BYTES], part[PART_BYTES];
    uint8_t signature[64], jti[24] = {1};
    size_t at = 0, length = 0;
    (void)tg_base64url_encode(jti, sizeof(jti), pass.jti);
    pass.window = choice_below(choice, 100000);
    size_t own_length = tg_pass_sign(&key, &pass, text);
    char *first = memchr(text, '.', own_length), *second = strchr(first + 1, '.');
    bool own_claims = choice_below(choice, 2) == 0;
    if (own_claims) {
        HOLDS(tg_base64url_decode(first + 1, (size_t)(second - first - 1), (uint8_t *)part,
                                  sizeof(part), &length) == 0);
        choice_damage(choice, part, &length, sizeof(part));
    } else {
        length = choice_take(choice, part, sizeof(part));
    }
    at = append_part(text, 0, own_head, sizeof(own_head) - 1);
    text[at++] = '.';
    at = append_part(text, at, part, length);
    (void)crypto_sign_detached(signature, NULL, (const uint8_t *)text, at, key.secret);
    text[at++] = '.';
    at = append_part(text, at, (const char *)signature, sizeof(signature));
    (void)verifies_canonically(text, at);
}

static void changed_never_verifies(struct choice *choice)
{
    struct tg_pass pass = {.sale = "sale", .user_length = 4};
    struct tg_pass back;
    char text[TG_MAX_PASS_BYTES + 1], changed[TG_MAX_PASS_BYTES + 1];
    uint8_t jti[24];
    memcpy(pass.user, "\"\\u1", 4);
    pass.generation = choice_u64(choice);
    pass.window = choice_below(choice, UINT64_C(4223371676));
    choice_bytes(choice, jti, sizeof(jti));
    choice_bytes(choice, pass.place, sizeof(pass.place));
    (void)tg_base64url_encode(jti, sizeof(jti), pass.jti);
    size_t length = tg_pass_sign(&key, &pass, text);
    HOLDS(verifies_canonically(text, length));
    HOLDS(tg_pass_verify(keys, 1, text, length, &back) == TG_ERR_FORGED);
    memcpy(changed, text, length);
    size_t changed_length = length;
    choice_damage(choice, changed, &changed_length, sizeof(changed));
    if (changed_length != length || memcmp(changed, text, length) != 0) {
        HOLDS(tg_pass_verify(keys, 2, changed, changed_length, &back) != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct choice choice = {bytes, size, 0};
    size_t length = 0;
    make_keys();
    switch (choice_byte(&choice) % 3) {
    case 0:
        bytes = choice_rest(&choice, &length);
        HOLDS(!verifies_canonically((const char *)bytes, length)); /* nobody here knows the key */
        break;
    case 1:
        signed_nonsense(&choice);
        break;
    default:
        changed_never_verifies(&choice);
        break;
    }
    return 0;
}
