/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/jwt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <sodium.h>

enum { TOKEN_BYTES = 65536 };

static const struct tg_wall now = {.ms = INT64_C(1800000000000)};
static const struct tg_jwt_key hmac_key = {.algorithm = TG_JWT_HS256, .key = {1, 2, 3, 4}};
static char token[TOKEN_BYTES];

static void sign_hmac(const uint8_t key[32], const char *header, const char *payload)
{
    size_t length = tg_base64url_encode((const uint8_t *)header, strlen(header), token);
    token[length++] = '.';
    length += tg_base64url_encode((const uint8_t *)payload, strlen(payload), token + length);
    uint8_t tag[32];
    crypto_auth_hmacsha256(tag, (const uint8_t *)token, length, key);
    token[length++] = '.';
    tg_base64url_encode(tag, sizeof(tag), token + length);
}

static int read_token(const struct tg_jwt_key *key)
{
    struct tg_holder user;
    memset(&user, 0xee, sizeof(user));
    int error = tg_jwt_buyer(key, token, strlen(token), now, &user);
    if (error != 0) {
        assert_int_equal(user.length, 0xee); /* nothing is written unless it is good */
    }
    return error;
}

static int read_claims(const char *payload)
{
    sign_hmac(hmac_key.key, "{\"alg\":\"HS256\",\"typ\":\"JWT\"}", payload);
    return read_token(&hmac_key);
}

static int read_header(const char *header)
{
    sign_hmac(hmac_key.key, header, "{\"sub\":\"a\",\"exp\":1800000060}");
    return read_token(&hmac_key);
}

static void an_issued_token_is_read_back(void **state)
{
    struct tg_holder user;
    size_t length = tg_jwt_issue(hmac_key.key, "b\"\\\xc3\xa9-1", now, 60000, token);
    assert_int_equal(length, strlen(token));
    assert_int_equal(tg_jwt_buyer(&hmac_key, token, length, now, &user), 0);
    assert_int_equal(user.kind, TG_HOLDER_USER);
    assert_int_equal(user.length, 7);
    assert_memory_equal(user.bytes, "b\"\\\xc3\xa9-1", 7);
    char longest[129];
    memset(longest, '"', 128);
    longest[128] = '\0';
    length = tg_jwt_issue(hmac_key.key, longest, now, 60000, token);
    assert_in_range(length, 1, 1023);
    assert_int_equal(tg_jwt_buyer(&hmac_key, token, length, now, &user), 0);
    assert_int_equal(user.length, 128);
    assert_int_equal(tg_jwt_issue(hmac_key.key, "", now, 60000, token), 0);
    assert_int_equal(tg_jwt_issue(hmac_key.key, "a\nb", now, 60000, token), 0);
}

static void any_changed_byte_is_refused(void **state)
{
    size_t length = tg_jwt_issue(hmac_key.key, "buyer-1", now, 60000, token);
    for (size_t i = 0; i < length; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            token[i] ^= (char)(1U << bit);
            struct tg_holder user;
            assert_int_not_equal(tg_jwt_buyer(&hmac_key, token, length, now, &user), 0);
            token[i] ^= (char)(1U << bit);
        }
    }
    for (size_t cut = 0; cut < length; cut++) {
        struct tg_holder user;
        assert_int_not_equal(tg_jwt_buyer(&hmac_key, token, cut, now, &user), 0);
    }
}

static void expiry_allows_two_seconds_of_skew(void **state)
{
    assert_int_equal(read_claims("{\"sub\":\"a\",\"exp\":1800000001}"), 0);
    assert_int_equal(read_claims("{\"sub\":\"a\",\"exp\":1799999999}"), 0);
    assert_int_equal(read_claims("{\"sub\":\"a\",\"exp\":1799999998}"), TG_ERR_RANGE);
    assert_int_equal(read_claims("{\"sub\":\"a\",\"exp\":1800000060,\"nbf\":1800000002}"), 0);
    assert_int_equal(read_claims("{\"sub\":\"a\",\"exp\":1800000060,\"nbf\":1800000003}"),
                     TG_ERR_RANGE);
}

static void times_are_integers_in_range(void **state)
{
    static const char *const bad[] = {
        "{\"sub\":\"a\"}",
        "{\"sub\":\"a\",\"exp\":\"1800000060\"}",
        "{\"sub\":\"a\",\"exp\":1800000060.0}",
        "{\"sub\":\"a\",\"exp\":1.8e9}",
        "{\"sub\":\"a\",\"exp\":-1}",
        "{\"sub\":\"a\",\"exp\":null}",
        "{\"sub\":\"a\",\"exp\":true}",
        "{\"sub\":\"a\",\"exp\":9223372036854775807}",
        "{\"sub\":\"a\",\"exp\":92233720368547758070}",
        "{\"sub\":\"a\",\"exp\":18446744075509551616}",
        "{\"sub\":\"a\",\"exp\":1800000060,\"nbf\":\"1\"}",
        "{\"sub\":\"a\",\"exp\":1800000060,\"nbf\":-1}",
        "{\"sub\":\"a\",\"exp\":1800000060,\"nbf\":9223372036854775807}",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (read_claims(bad[i]) != TG_ERR_MALFORMED) {
            fail_msg("taken or misjudged: %s", bad[i]);
        }
    }
}

/* case-26: who chooses the algorithm, and which duplicate member wins. */
static void case_26_the_algorithm_is_ours(void **state)
{
    assert_int_equal(read_header("{\"alg\":\"HS256\",\"typ\":\"JWT\"}"), 0);
    assert_int_equal(read_header("{\"alg\":\"HS256\"}"), 0);
    assert_int_equal(read_header("{\"alg\":\"HS256\",\"kid\":\"../../dev/null\"}"), 0);
    static const char *const bad[] = {
        "{\"alg\":\"none\"}",
        "{\"alg\":\"hs256\"}",
        "{\"alg\":\"HS512\"}",
        "{\"alg\":\"EdDSA\"}",
        "{\"alg\":\"\"}",
        "{\"alg\":[\"HS256\"]}",
        "{\"alg\":256}",
        "{\"typ\":\"JWT\"}",
        "{}",
        "{\"alg\":\"HS256\\u0000\"}",
        "\"HS256\"",
        "[]",
        "{\"alg\":\"HS256\"",
        "{\"alg\":\"HS256\"} x",
        "{\"alg\":\"none\",\"alg\":\"HS256\"}",
        "{\"alg\":\"HS256\",\"alg\":\"none\"}",
        "{\"alg\":\"HS256\",\"typ\":\"tg-pass+jwt\"}",
        "{\"alg\":\"HS256\",\"typ\":7}",
        "{\"alg\":\"HS256\",\"crit\":[\"b64\"],\"b64\":false}",
        "",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (read_header(bad[i]) == 0) {
            fail_msg("taken: %s", bad[i]);
        }
    }
}

static void case_26_no_signature_is_no_token(void **state)
{
    static const char *const bad[] = {
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIiwiZXhwIjoxODAwMDAwMDYwfQ.",
        "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhIiwiZXhwIjoxODAwMDAwMDYwfQ",
        "..",
        ".",
        "",
        "a.b.c.d",
        "a.b.c",
        "=.=.=",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(token, sizeof(token), "%s", bad[i]);
        assert_int_not_equal(read_token(&hmac_key), 0);
    }
}

/* The public key is public: it must not work as an HMAC secret, nor the secret as a public key. */
static void case_26_keys_do_not_change_roles(void **state)
{
    uint8_t secret[64];
    struct tg_jwt_key public_key = {.algorithm = TG_JWT_EDDSA};
    crypto_sign_keypair(public_key.key, secret);
    sign_hmac(public_key.key, "{\"alg\":\"HS256\"}", "{\"sub\":\"a\",\"exp\":1800000060}");
    assert_int_equal(read_token(&public_key), TG_ERR_FORGED);
    sign_hmac(public_key.key, "{\"alg\":\"EdDSA\"}", "{\"sub\":\"a\",\"exp\":1800000060}");
    assert_int_equal(read_token(&public_key), TG_ERR_FORGED);
}

static void eddsa_tokens_are_read(void **state)
{
    static const char header[] = "{\"alg\":\"EdDSA\"}";
    static const char lower[] = "{\"alg\":\"eddsa\"}";
    static const char payload[] = "{\"sub\":\"shop-7\",\"exp\":1800000060}";
    uint8_t secret[64];
    struct tg_jwt_key key = {.algorithm = TG_JWT_EDDSA};
    crypto_sign_keypair(key.key, secret);
    for (int spelled = 0; spelled < 2; spelled++) {
        const char *chosen = spelled == 0 ? header : lower;
        size_t length = tg_base64url_encode((const uint8_t *)chosen, strlen(chosen), token);
        token[length++] = '.';
        length += tg_base64url_encode((const uint8_t *)payload, strlen(payload), token + length);
        uint8_t signature[64];
        crypto_sign_detached(signature, NULL, (const uint8_t *)token, length, secret);
        token[length++] = '.';
        tg_base64url_encode(signature, sizeof(signature), token + length);
        assert_int_equal(read_token(&key), spelled == 0 ? 0 : TG_ERR_FORGED);
    }
}

static void case_26_duplicates_and_depth_are_refused(void **state)
{
    assert_int_equal(read_claims("{\"sub\":\"a\",\"sub\":\"b\",\"exp\":1800000060}"),
                     TG_ERR_MALFORMED);
    assert_int_equal(read_claims("{\"sub\":\"a\",\"s\\u0075b\":\"b\",\"exp\":1800000060}"),
                     TG_ERR_MALFORMED);
    assert_int_equal(read_claims("{\"sub\":\"a\",\"exp\":1,\"exp\":1800000060}"), TG_ERR_MALFORMED);
    enum { DEPTH = 10000 };
    static char deep[2 * DEPTH + 64];
    size_t length =
        (size_t)snprintf(deep, sizeof(deep), "{\"sub\":\"a\",\"exp\":1800000060,\"x\":");
    memset(deep + length, '[', DEPTH);
    memset(deep + length + DEPTH, ']', DEPTH);
    memcpy(deep + length + 2 * DEPTH, "}", 2);
    assert_int_equal(read_claims(deep), TG_ERR_MALFORMED);
    enum { SHALLOWER = 1200 }; /* under every length limit: the parser itself must cope */
    memset(deep + length, '[', SHALLOWER);
    memset(deep + length + SHALLOWER, ']', SHALLOWER);
    memcpy(deep + length + 2 * SHALLOWER, "}", 2);
    assert_int_equal(read_claims(deep), 0);
    memset(deep + length, '[', 2900 - length);
    memcpy(deep + 2900, "}", 2);
    assert_int_equal(read_claims(deep), TG_ERR_MALFORMED);
}

/* case-33: one notion of a user id, and the byte zero. */
static void case_33_odd_subjects_are_refused(void **state)
{
    static const char *const bad[] = {
        "{\"sub\":\"ab\\u0000evil\",\"exp\":1800000060}",
        "{\"sub\":\"\\ud800\",\"exp\":1800000060}",
        "{\"sub\":\"\\udc00x\",\"exp\":1800000060}",
        "{\"sub\":\"a\xff\",\"exp\":1800000060}",
        "{\"sub\":\"\xed\xa0\x80\",\"exp\":1800000060}",
        "{\"sub\":9007199254740993,\"exp\":1800000060}",
        "{\"sub\":null,\"exp\":1800000060}",
        "{\"sub\":[\"a\"],\"exp\":1800000060}",
        "{\"sub\":\"\",\"exp\":1800000060}",
        "{\"sub\":\"a\\u000ab\",\"exp\":1800000060}",
        "{\"sub\":\"\\u0085\",\"exp\":1800000060}",
        "{\"exp\":1800000060}",
        "[\"sub\"]",
        "\"sub\"",
        "",
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (read_claims(bad[i]) != TG_ERR_MALFORMED) {
            fail_msg("taken or misjudged: %s", bad[i]);
        }
    }
    char payload[1024];
    char emoji[200 * 4 + 1];
    for (int i = 0; i < 200; i++) {
        memcpy(emoji + 4 * i, "\xf0\x9f\x98\x80", 5);
    }
    snprintf(payload, sizeof(payload), "{\"sub\":\"%s\",\"exp\":1800000060}", emoji);
    assert_int_equal(read_claims(payload), TG_ERR_MALFORMED);
}

/* Bytes are compared as they are: composed and decomposed, upper and lower, with and without spaces
 * are different people. */
static void case_33_subjects_are_opaque_bytes(void **state)
{
    static const char *const names[] = {"\xc3\xa9", "e\xcc\x81", "Usr_1", "usr_1",
                                        "\xc4\xb0", " usr_1",    "usr_1 "};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        char payload[128];
        struct tg_holder user;
        snprintf(payload, sizeof(payload), "{\"sub\":\"%s\",\"exp\":1800000060}", names[i]);
        assert_int_equal(read_claims(payload), 0);
        assert_int_equal(tg_jwt_buyer(&hmac_key, token, strlen(token), now, &user), 0);
        assert_int_equal(user.length, strlen(names[i]));
        assert_memory_equal(user.bytes, names[i], user.length);
    }
}

static void a_token_of_another_key_is_forged(void **state)
{
    static const uint8_t other[32] = {9};
    tg_jwt_issue(other, "a", now, 60000, token);
    assert_int_equal(read_token(&hmac_key), TG_ERR_FORGED);
}

static int set_up(void **state)
{
    return sodium_init() < 0 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_issued_token_is_read_back),
        cmocka_unit_test(any_changed_byte_is_refused),
        cmocka_unit_test(expiry_allows_two_seconds_of_skew),
        cmocka_unit_test(times_are_integers_in_range),
        cmocka_unit_test(case_26_the_algorithm_is_ours),
        cmocka_unit_test(case_26_no_signature_is_no_token),
        cmocka_unit_test(case_26_keys_do_not_change_roles),
        cmocka_unit_test(eddsa_tokens_are_read),
        cmocka_unit_test(case_26_duplicates_and_depth_are_refused),
        cmocka_unit_test(case_33_odd_subjects_are_refused),
        cmocka_unit_test(case_33_subjects_are_opaque_bytes),
        cmocka_unit_test(a_token_of_another_key_is_forged),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
