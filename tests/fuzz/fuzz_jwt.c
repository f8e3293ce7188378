/* SPDX-License-Identifier: Apache-2.0
 * Buyers' tokens: only what was signed with the key and algorithm of the settings is taken, only
 * within its times, and the user taken is exactly its `sub`; a changed token is never taken, nor
 * one made for the other algorithm. */
#include "tests/fuzz/fuzz.h"

#include "lib/io/jwt.h"
#include "lib/pure/limit.h"

#include <jansson.h>
#include <sodium.h>

enum { PART_BYTES = 1024, TEXT_BYTES = 4096 };

static const struct tg_wall now = {INT64_C(1800000000000)};
static struct tg_jwt_key shared = {.algorithm = TG_JWT_HS256, .key = "a secret of tests"};
static struct tg_jwt_key public = {.algorithm = TG_JWT_EDDSA};
static uint8_t secret[64];

static void make_keys(void)
{
    static const uint8_t seed[32] = "a seed of tests";
    if (public.key[0] == 0) {
        (void)crypto_sign_seed_keypair(public.key, secret, seed);
    }
}

static int take(const struct tg_jwt_key *key, const char *text, size_t length,
                struct tg_holder *out_user)
{
    int error = tg_jwt_buyer(key, text, length, now, out_user);
    if (error == 0) {
        HOLDS(out_user->kind == TG_HOLDER_USER);
        HOLDS(tg_user_valid(out_user->bytes, out_user->length));
    }
    return error;
}

/* Appends a signature with this key over text[0..at). */
static size_t sign(const struct tg_jwt_key *key, char *text, size_t at)
{
    uint8_t signature[64];
    size_t length = crypto_auth_hmacsha256_BYTES;
    if (key->algorithm == TG_JWT_HS256) {
        crypto_auth_hmacsha256(signature, (const uint8_t *)text, at, key->key);
    } else {
        length = sizeof(signature);
        (void)crypto_sign_detached(signature, NULL, (const uint8_t *)text, at, secret);
    }
    text[at++] = '.';
    return at + tg_base64url_encode(signature, length, text + at);
}

/* What a token that was taken must say, read anew. */
static void says_so(const char *payload, size_t length, const struct tg_holder *user)
{
    json_t *claims = json_loadb(payload, length, JSON_REJECT_DUPLICATES, NULL);
    const json_t *subject = json_object_get(claims, "sub"), *from = json_object_get(claims, "nbf");
    int64_t until_s = json_integer_value(json_object_get(claims, "exp"));
    HOLDS(json_is_string(subject) && json_string_length(subject) == user->length);
    HOLDS(memcmp(json_string_value(subject), user->bytes, user->length) == 0);
    HOLDS(until_s * 1000 > now.ms - TG_MAX_CLOCK_SKEW_MS);
    HOLDS(from == NULL || json_integer_value(from) * 1000 <= now.ms + TG_MAX_CLOCK_SKEW_MS);
    json_decref(claims);
}

/* Header and claims of any bytes, properly signed. */
static void signed_nonsense(struct choice *choice)
{
    static const char *const heads[] = {
        "{\"alg\":\"HS256\"}",
        "{\"alg\":\"EdDSA\",\"typ\":\"at+jwt\"}",
        "{\"alg\":\"none\"}",
        "{\"alg\":\"HS256\",\"crit\":[]}",
        "{\"alg\":\"HS256\",\"alg\":\"HS256\"}",
    };
    const struct tg_jwt_key *key = choice_below(choice, 2) == 0 ? &shared : &public;
    size_t head_index = choice_below(choice, COUNT_OF(heads) + 1);
    char text[TEXT_BYTES], head[PART_BYTES], payload[PART_BYTES];
    struct tg_holder user;
    size_t head_length = 0;
    if (head_index < COUNT_OF(heads)) {
        head_length = strlen(heads[head_index]);
        memcpy(head, heads[head_index], head_length);
    } else {
        size_t wanted = choice_below(choice, 128);
        choice_bytes(choice, (uint8_t *)head, wanted);
        head_length = wanted;
    }
    size_t length = choice_take(choice, payload, sizeof(payload));
    size_t at = tg_base64url_encode((const uint8_t *)head, head_length, text);
    text[at++] = '.';
    at += tg_base64url_encode((const uint8_t *)payload, length, text + at);
    at = sign(key, text, at);
    if (take(key, text, at, &user) == 0) {
        HOLDS(head_index != 2 && head_index != 3 && head_index != 4);
        says_so(payload, length, &user);
    }
    HOLDS(take(key == &shared ? &public : &shared, text, at, &user) != 0);
}

static void changed_is_never_taken(struct choice *choice)
{
    char text[TEXT_BYTES], changed[TEXT_BYTES], name[64];
    struct tg_holder user;
    int64_t life_ms = (int64_t)choice_below(choice, 100000);
    size_t wanted = choice_below(choice, 32);
    memset(name, 0, sizeof(name));
    choice_bytes(choice, (uint8_t *)name, wanted);
    size_t length = tg_jwt_issue(shared.key, name, now, life_ms, text);
    HOLDS((length > 0) == tg_user_valid((const uint8_t *)name, strlen(name)));
    if (length == 0) {
        return;
    }
    HOLDS(take(&shared, text, length, &user) == 0);
    HOLDS(user.length == strlen(name) && memcmp(user.bytes, name, user.length) == 0);
    memcpy(changed, text, length);
    size_t changed_length = length;
    choice_damage(choice, changed, &changed_length, sizeof(changed));
    if (changed_length != length || memcmp(changed, text, length) != 0) {
        HOLDS(take(&shared, changed, changed_length, &user) != 0);
    }
}

/* The public key is public: a token "signed" with it as a shared secret is nothing. */
static void confused(struct choice *choice)
{
    struct tg_jwt_key as_secret = {.algorithm = TG_JWT_HS256};
    char text[TEXT_BYTES];
    struct tg_holder user;
    memcpy(as_secret.key, public.key, sizeof(as_secret.key));
    size_t length = tg_jwt_issue(as_secret.key, "buyer", now,
                                 (int64_t)choice_below(choice, 100000) + 10000, text);
    HOLDS(length > 0 && take(&public, text, length, &user) != 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct choice choice = {bytes, size, 0};
    struct tg_holder user;
    size_t length = 0;
    make_keys();
    switch (choice_byte(&choice) % 4) {
    case 0:
        bytes = choice_rest(&choice, &length);
        HOLDS(take(&shared, (const char *)bytes, length, &user) != 0);
        HOLDS(take(&public, (const char *)bytes, length, &user) != 0);
        break;
    case 1:
        signed_nonsense(&choice);
        break;
    case 2:
        changed_is_never_taken(&choice);
        break;
    default:
        confused(&choice);
        break;
    }
    return 0;
}
