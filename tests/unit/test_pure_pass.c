/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/pass.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define HEAD "{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":\"0a1b2c3d\"}"
#define JTI "AAAAAAG6gUCc3RtJDnLtNug9L25LiOrw"
#define PLACE "gHy1rD5Q21Yh9ECuu-vnTw"
#define TAIL                                                                                       \
    "\"jti\":\"" JTI "\",\"place\":\"" PLACE                                                       \
    "\",\"gen\":1,\"event_id\":\"demo\",\"role\":\"ADMITTED\"}"
#define CLAIMS                                                                                     \
    "{\"iss\":\"tidegate\",\"aud\":\"demo\",\"sub\":\"usr_1\",\"iat\":1740000000,\"exp\":"         \
    "1740000120," TAIL

static struct tg_sign_key sign_key = {.id = "0a1b2c3d"};
static struct tg_verify_key verify_keys[2] = {{.id = "ffffffff"}, {.id = "0a1b2c3d"}};

static int make_keys(void **state)
{
    uint8_t seed[32];
    for (uint8_t i = 0; i < 32; i++) {
        seed[i] = i;
    }
    (void)crypto_sign_seed_keypair(sign_key.public_key, sign_key.secret, seed);
    memcpy(verify_keys[1].public_key, sign_key.public_key, 32);
    seed[0] = 77;
    uint8_t secret[64];
    return crypto_sign_seed_keypair(verify_keys[0].public_key, secret, seed);
}

static struct tg_pass sample(void)
{
    struct tg_pass pass = {.sale = "demo",
                           .generation = 1,
                           .user = "usr_1",
                           .user_length = 5,
                           .window = 29000000,
                           .jti = JTI};
    size_t length = 0;
    assert_int_equal(
        tg_base64url_decode(PLACE, strlen(PLACE), pass.place, sizeof(pass.place), &length), 0);
    return pass;
}

static int verify(const char *text, size_t length)
{
    struct tg_pass pass = {.window = 99};
    int error = tg_pass_verify(verify_keys, 2, text, length, &pass);
    assert_true(error == 0 || pass.window == 99);
    return error;
}

/* What the owner of the key could sign beside our own spelling. */
static size_t sign_parts(const char *head, size_t head_length, const char *claims,
                         size_t claims_length, char *out_text)
{
    uint8_t signature[64];
    size_t length = tg_base64url_encode((const uint8_t *)head, head_length, out_text);
    out_text[length++] = '.';
    length += tg_base64url_encode((const uint8_t *)claims, claims_length, out_text + length);
    (void)crypto_sign_detached(signature, NULL, (const uint8_t *)out_text, length, sign_key.secret);
    out_text[length++] = '.';
    return length + tg_base64url_encode(signature, sizeof(signature), out_text + length);
}

static size_t sign_raw(const char *head, const char *claims, size_t claims_length, char *out_text)
{
    return sign_parts(head, strlen(head), claims, claims_length, out_text);
}

static int verify_raw(const char *head, const char *claims)
{
    static char text[65536];
    return verify(text, sign_raw(head, claims, strlen(claims), text));
}

/* Computed with another implementation (Python's json and PyNaCl). */
static void a_known_pass(void **state)
{
    struct tg_pass pass = sample();
    char text[TG_MAX_PASS_BYTES + 1];
    memcpy(pass.user, "a\"b\\c \xc3\xa9", 8);
    pass.user_length = 8;
    size_t length = tg_pass_sign(&sign_key, &pass, text);
    assert_int_equal(length, strlen(text));
    assert_string_equal(
        text,
        "eyJhbGciOiJFZERTQSIsInR5cCI6InRnLXBhc3Mrand0Iiwia2lkIjoiMGExYjJjM2QifQ."
        "eyJpc3MiOiJ0aWRlZ2F0ZSIsImF1ZCI6ImRlbW8iLCJzdWIiOiJhXCJiXFxjIMOpIiwiaWF0IjoxNzQwMDAwMDAwLC"
        "JleHAiOjE3NDAwMDAx"
        "MjAsImp0aSI6IkFBQUFBQUc2Z1VDYzNSdEpEbkx0TnVnOUwyNUxpT3J3IiwicGxhY2UiOiJnSHkxckQ1UTIxWWg5RU"
        "N1dS12blR3IiwiZ2Vu"
        "IjoxLCJldmVudF9pZCI6ImRlbW8iLCJyb2xlIjoiQURNSVRURUQifQ."
        "a73sqMELy7tNO_s-n19Aj-TWBRBt1JwE8JwyvgKESVJc4E-38cDqnZglp4ESFXTkvA83uPMY82HpSKW6QJ1xCA");
    struct tg_pass back = {0};
    assert_int_equal(tg_pass_verify(verify_keys, 2, text, length, &back), 0);
    assert_string_equal(back.sale, "demo");
    assert_int_equal(back.user_length, 8);
    assert_memory_equal(back.user, pass.user, 8);
    assert_memory_equal(back.place, pass.place, TG_PLACE_BYTES);
    assert_true(back.window == 29000000 && back.generation == 1);
    assert_string_equal(back.jti, JTI);
}

static void the_longest_pass_fits(void **state)
{
    struct tg_pass pass = sample();
    struct tg_pass back = {0};
    char text[TG_MAX_PASS_BYTES + 1];
    memset(pass.user, '"', sizeof(pass.user));
    pass.user_length = sizeof(pass.user);
    memset(pass.sale, 's', TG_MAX_SALE_NAME_BYTES);
    pass.generation = UINT64_MAX;
    pass.window = 253402300799 / 60 - 2;
    size_t length = tg_pass_sign(&sign_key, &pass, text);
    assert_true(length <= TG_MAX_PASS_BYTES);
    assert_int_equal(tg_pass_verify(verify_keys, 2, text, length, &back), 0);
    assert_true(back.generation == UINT64_MAX && back.window == pass.window);
    assert_memory_equal(back.user, pass.user, sizeof(pass.user));
}

static void the_same_pass_is_the_same_text(void **state)
{
    struct tg_pass pass = sample();
    char text[2][TG_MAX_PASS_BYTES + 1];
    assert_int_equal(tg_pass_sign(&sign_key, &pass, text[0]),
                     tg_pass_sign(&sign_key, &pass, text[1]));
    assert_string_equal(text[0], text[1]);
}

static void expiry_follows_from_the_window(void **state)
{
    assert_true(tg_pass_expires(29000000).ms == 1740000120000);
    assert_true(tg_pass_expires(0).ms == 120000);
    assert_true(tg_pass_expires(UINT64_MAX).ms > 253402300000000);
}

static void every_flipped_bit_is_refused(void **state)
{
    struct tg_pass pass = sample();
    char text[TG_MAX_PASS_BYTES + 1];
    size_t length = tg_pass_sign(&sign_key, &pass, text);
    for (size_t bit = 0; bit < length * 8; bit++) {
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        int error = verify(text, length);
        assert_true(error == TG_ERR_MALFORMED || error == TG_ERR_FORGED);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
    }
    assert_int_equal(verify(text, length), 0);
}

static void every_other_length_is_refused(void **state)
{
    struct tg_pass pass = sample();
    char text[2 * TG_MAX_PASS_BYTES];
    size_t length = tg_pass_sign(&sign_key, &pass, text);
    for (size_t cut = 0; cut < length; cut++) {
        assert_int_not_equal(verify(text, cut), 0);
        assert_int_not_equal(verify(text + length - cut, cut), 0);
    }
    for (size_t longer = length + 1; longer < sizeof(text); longer++) {
        text[longer - 1] = 'A';
        assert_int_not_equal(verify(text, longer), 0);
    }
}

/* header.claims.signature: the last character of each part in every other spelling. */
static void respelled_parts_are_refused(void **state)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_=.+/";
    struct tg_pass pass = sample();
    char text[TG_MAX_PASS_BYTES + 1];
    size_t length = tg_pass_sign(&sign_key, &pass, text);
    for (size_t at = 0; at < length; at++) {
        if (at + 1 < length && text[at + 1] != '.') {
            continue;
        }
        char last = text[at];
        for (const char *digit = digits; *digit != '\0'; digit++) {
            text[at] = *digit;
            assert_int_equal(verify(text, length) == 0, *digit == last);
        }
        text[at] = last;
    }
}

/* The group order added to S gives a second signature of the same text for a careless verifier. */
static void a_malleated_signature_is_refused(void **state)
{
    static const uint8_t order[32] = {0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58,       0xd6,
                                      0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, [31] = 0x10};
    char text[TG_MAX_PASS_BYTES + 1];
    struct tg_pass pass = sample();
    size_t length = tg_pass_sign(&sign_key, &pass, text);
    uint8_t signature[64];
    size_t count = 0;
    assert_int_equal(
        tg_base64url_decode(text + length - 86, 86, signature, sizeof(signature), &count), 0);
    unsigned carry = 0;
    for (size_t i = 0; i < 32; i++) {
        carry += (unsigned)signature[32 + i] + order[i];
        signature[32 + i] = (uint8_t)carry;
        carry >>= 8;
    }
    (void)tg_base64url_encode(signature, sizeof(signature), text + length - 86);
    assert_int_equal(verify(text, length), TG_ERR_FORGED);
}

static void case_26_algorithm_and_key_are_ours_to_choose(void **state)
{
    assert_int_equal(verify_raw(HEAD, CLAIMS), 0);
    static const char *const heads[] = {
        "{\"alg\":\"none\",\"typ\":\"tg-pass+jwt\",\"kid\":\"0a1b2c3d\"}",
        "{\"alg\":\"HS256\",\"typ\":\"tg-pass+jwt\",\"kid\":\"0a1b2c3d\"}",
        "{\"alg\":\"eddsa\",\"typ\":\"tg-pass+jwt\",\"kid\":\"0a1b2c3d\"}",
        "{\"alg\":\"EdDSA\",\"typ\":\"JWT\",\"kid\":\"0a1b2c3d\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"0a1b2c3d\"}",
        "{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\"}",
        "{\"typ\":\"tg-pass+jwt\",\"alg\":\"EdDSA\",\"kid\":\"0a1b2c3d\"}",
        "{\"alg\":\"EdDSA\",\"alg\":\"none\",\"typ\":\"tg-pass+jwt\",\"kid\":\"0a1b2c3d\"}",
        "{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":\"0a1b2c3d\",\"crit\":[\"x\"]}",
        "{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":\"../../dev/null\"}",
        "{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":\"' OR 1=1--\"}",
        "{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":\"\"}",
        "{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":null}",
        "{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":\"0A1B2C3D\"}",
        "{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":\"0a1b2c3\"}",
        "{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":\"0a1b2c3d\"} ",
        "{ \"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":\"0a1b2c3d\"}",
        "{}",
        "",
        "[]",
    };
    for (size_t i = 0; i < COUNT_OF(heads); i++) {
        assert_int_not_equal(verify_raw(heads[i], CLAIMS), 0);
    }
    /* 8 characters of a good form: an unknown key, and another known key that did not sign. */
    assert_int_equal(
        verify_raw("{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":\"00000000\"}", CLAIMS),
        TG_ERR_FORGED);
    assert_int_equal(
        verify_raw("{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":\"ffffffff\"}", CLAIMS),
        TG_ERR_FORGED);
    char long_head[20000];
    (void)snprintf(long_head, sizeof(long_head),
                   "{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":\"%10000d\"}", 1);
    assert_int_equal(verify_raw(long_head, CLAIMS), TG_ERR_MALFORMED);
    char text[TG_MAX_PASS_BYTES + 1];
    struct tg_pass back = {0};
    size_t length = sign_raw(HEAD, CLAIMS, strlen(CLAIMS), text);
    assert_int_equal(tg_pass_verify(verify_keys, 0, text, length, &back), TG_ERR_FORGED);
}

/* Anybody may send it: it must not end the process. */
static void a_key_id_with_a_nul_is_malformed(void **state)
{
    static const char head[] = "{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":\"0a1b\0c3d\"}";
    char text[TG_MAX_PASS_BYTES + 1];
    size_t length = sign_parts(head, sizeof(head) - 1, CLAIMS, strlen(CLAIMS), text);
    assert_int_equal(verify(text, length), TG_ERR_MALFORMED);
}

#define BEFORE "{\"iss\":\"tidegate\",\"aud\":\"demo\",\"sub\":"
#define TIMES ",\"iat\":1740000000,\"exp\":1740000120,"

static void case_26_every_other_member_list_is_refused(void **state)
{
    static const char *const claims[] = {
        BEFORE "\"usr_1\",\"sub\":\"usr_2\"" TIMES TAIL,
        BEFORE "1" TIMES TAIL,
        BEFORE "null" TIMES TAIL,
        BEFORE "[\"usr_1\"]" TIMES TAIL,
        BEFORE "\"\"" TIMES TAIL,
        BEFORE "\"us\\u0072_1\"" TIMES TAIL,
        BEFORE "\"us\\r_1\"" TIMES TAIL,
        BEFORE "\"us\\/1\"" TIMES TAIL,
        BEFORE "\"usr_1\\\"" TIMES TAIL,
        BEFORE "\"ab\\u0000evil\"" TIMES TAIL,
        BEFORE "\"\xff\"" TIMES TAIL,
        BEFORE "\"\xc0\xaf\"" TIMES TAIL,
        BEFORE "\"\xed\xa0\x80\"" TIMES TAIL,
        BEFORE "\"a\nb\"" TIMES TAIL,
        BEFORE " \"usr_1\"" TIMES TAIL,
        BEFORE "\"usr_1\",\"iat\":1740000000,\"exp\":1740000180," TAIL,
        BEFORE "\"usr_1\",\"iat\":1740000000,\"exp\":1740000060," TAIL,
        BEFORE "\"usr_1\",\"iat\":1740000001,\"exp\":1740000121," TAIL,
        BEFORE "\"usr_1\",\"iat\":1740000000,\"exp\":1740000120.0," TAIL,
        BEFORE "\"usr_1\",\"iat\":1740000000,\"exp\":1.74000012e9," TAIL,
        BEFORE "\"usr_1\",\"iat\":1740000000,\"exp\":\"1740000120\"," TAIL,
        BEFORE "\"usr_1\",\"iat\":01740000000,\"exp\":1740000120," TAIL,
        BEFORE "\"usr_1\",\"iat\":-60,\"exp\":60," TAIL,
        BEFORE "\"usr_1\",\"iat\":18446744073709551600,\"exp\":104," TAIL,
        BEFORE "\"usr_1\",\"exp\":1740000120,\"iat\":1740000000," TAIL,
        BEFORE "\"usr_1\",\"iat\":1740000000," TAIL,
        "{\"iss\":\"tidegate\",\"aud\":\"de mo\",\"sub\":\"usr_1\"" TIMES TAIL,
        "{\"iss\":\"tidegate\",\"aud\":\"\",\"sub\":\"usr_1\"" TIMES TAIL,
        "{\"iss\":\"tidegate\",\"aud\":[\"demo\"],\"sub\":\"usr_1\"" TIMES TAIL,
        "{\"iss\":\"other\",\"aud\":\"demo\",\"sub\":\"usr_1\"" TIMES TAIL,
        "{\"iss\":\"tidegate\",\"aud\":\"other\",\"sub\":\"usr_1\"" TIMES TAIL,
        CLAIMS " ",
        CLAIMS CLAIMS,
        "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
        "{}",
        "",
    };
    for (size_t i = 0; i < COUNT_OF(claims); i++) {
        assert_int_equal(verify_raw(HEAD, claims[i]), TG_ERR_MALFORMED);
    }
}

static void the_tail_of_the_claims_is_fixed(void **state)
{
    static const char *const tails[] = {
        "\"jti\":\"" JTI "\",\"place\":\"" PLACE
        "\",\"gen\":1,\"event_id\":\"dem0\",\"role\":\"ADMITTED\"}",
        "\"jti\":\"" JTI "\",\"place\":\"" PLACE
        "\",\"gen\":1,\"event_id\":\"demo\",\"role\":\"ADMITTER\"}",
        "\"jti\":\"" JTI "\",\"place\":\"" PLACE
        "\",\"gen\":1,\"event_id\":\"other\",\"role\":\"ADMITTED\"}",
        "\"jti\":\"" JTI "\",\"place\":\"" PLACE
        "\",\"gen\":1,\"event_id\":\"demo\",\"event_id\":\"demo\",\"role\":\"ADMITTED\"}",
        "\"jti\":\"" JTI "\",\"place\":\"" PLACE
        "\",\"gen\":1,\"event_id\":\"demo\",\"role\":\"WAITING\"}",
        "\"jti\":\"" JTI "\",\"place\":\"" PLACE "\",\"gen\":1,\"event_id\":\"demo\"}",
        "\"jti\":\"" JTI "\",\"place\":\"" PLACE
        "\",\"gen\":-1,\"event_id\":\"demo\",\"role\":\"ADMITTED\"}",
        "\"jti\":\"" JTI "\",\"place\":\"" PLACE
        "\",\"gen\":18446744073709551616,\"event_id\":\"demo\",\"role\":\"ADMITTED\"}",
        "\"jti\":\"" JTI "\",\"place\":\"gHy1rD5Q21Yh9ECuu-vnTx\",\"gen\":1,\"event_id\":\"demo\","
        "\"role\":\"ADMITTED\"}",
        "\"jti\":\"" JTI "\",\"place\":\"gHy1rD5Q21Yh9ECuu-vn\",\"gen\":1,\"event_id\":\"demo\","
        "\"role\":\"ADMITTED\"}",
        "\"jti\":\"" JTI "A\",\"place\":\"" PLACE
        "\",\"gen\":1,\"event_id\":\"demo\",\"role\":\"ADMITTED\"}",
        "\"jti\":\"AAAA\",\"place\":\"" PLACE
        "\",\"gen\":1,\"event_id\":\"demo\",\"role\":\"ADMITTED\"}",
        "\"jti\":\"" JTI "\",\"place\":\"" PLACE
        "\",\"gen\":1,\"event_id\":\"demo\",\"role\":\"ADMITTED\",\"x\":1}",
    };
    for (size_t i = 0; i < COUNT_OF(tails); i++) {
        char claims[1024];
        (void)snprintf(claims, sizeof(claims), "%s%s", BEFORE "\"usr_1\"" TIMES, tails[i]);
        assert_int_equal(verify_raw(HEAD, claims), TG_ERR_MALFORMED);
    }
}

static void case_33_users_beyond_their_bounds_are_refused(void **state)
{
    char text[4096];
    char claims[2048];
    char user[TG_MAX_USER_BYTES + 2] = {0};
    memset(user, 'u', TG_MAX_USER_BYTES);
    (void)snprintf(claims, sizeof(claims), BEFORE "\"%s\"" TIMES TAIL, user);
    assert_int_equal(verify_raw(HEAD, claims), 0);
    user[TG_MAX_USER_BYTES] = 'u';
    (void)snprintf(claims, sizeof(claims), BEFORE "\"%s\"" TIMES TAIL, user);
    assert_int_equal(verify_raw(HEAD, claims), TG_ERR_MALFORMED);
    static const char with_nul[] = BEFORE "\"ab\0evil\"" TIMES TAIL;
    assert_int_equal(verify(text, sign_raw(HEAD, with_nul, sizeof(with_nul) - 1, text)),
                     TG_ERR_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_known_pass),
        cmocka_unit_test(the_longest_pass_fits),
        cmocka_unit_test(the_same_pass_is_the_same_text),
        cmocka_unit_test(expiry_follows_from_the_window),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(every_other_length_is_refused),
        cmocka_unit_test(respelled_parts_are_refused),
        cmocka_unit_test(a_malleated_signature_is_refused),
        cmocka_unit_test(case_26_algorithm_and_key_are_ours_to_choose),
        cmocka_unit_test(a_key_id_with_a_nul_is_malformed),
        cmocka_unit_test(case_26_every_other_member_list_is_refused),
        cmocka_unit_test(the_tail_of_the_claims_is_fixed),
        cmocka_unit_test(case_33_users_beyond_their_bounds_are_refused),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, make_keys, NULL);
}
