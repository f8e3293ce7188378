/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/jwt.h"

#include "lib/pure/limit.h"

#include <assert.h>
#include <jansson.h>
#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { TOKEN_BYTES = 4096, PART_BYTES = 3072, ISSUED_BYTES = 1024 };

#define LATEST_S INT64_C(253402300799) /* the last second of the year 9999 */

/* The three parts of a compact token, as they stand in its text. */
struct parts {
    const char *header, *payload, *signature;
    size_t header_length, payload_length, signature_length;
};

static int split(const char *text, size_t length, struct parts *out_parts)
{
    const char *end = text + length;
    const char *first = memchr(text, '.', length);
    const char *second = first != NULL ? memchr(first + 1, '.', (size_t)(end - first - 1)) : NULL;
    if (second == NULL || memchr(second + 1, '.', (size_t)(end - second - 1)) != NULL) {
        return TG_ERR_MALFORMED;
    }
    *out_parts = (struct parts){.header = text,
                                .header_length = (size_t)(first - text),
                                .payload = first + 1,
                                .payload_length = (size_t)(second - first - 1),
                                .signature = second + 1,
                                .signature_length = (size_t)(end - second - 1)};
    return 0;
}

/* The signature by the algorithm of our settings; what the token says of itself is not yet looked
 * at. */
static int verify(const struct tg_jwt_key *key, const char *text, const struct parts *parts)
{
    uint8_t signature[64];
    size_t signature_length = 0;
    if (tg_base64url_decode(parts->signature, parts->signature_length, signature, sizeof(signature),
                            &signature_length) != 0) {
        return TG_ERR_MALFORMED;
    }
    const uint8_t *signed_bytes = (const uint8_t *)text;
    size_t signed_length = parts->header_length + 1 + parts->payload_length;
    bool good = false;
    switch (key->algorithm) {
    case TG_JWT_HS256:
        good = signature_length == crypto_auth_hmacsha256_BYTES &&
               crypto_auth_hmacsha256_verify(signature, signed_bytes, signed_length, key->key) == 0;
        break;
    case TG_JWT_EDDSA:
        good = signature_length == crypto_sign_BYTES &&
               crypto_sign_verify_detached(signature, signed_bytes, signed_length, key->key) == 0;
        break;
    }
    return good ? 0 : TG_ERR_FORGED;
}

/* One part as a JSON object, or NULL. Duplicates, NUL, bad UTF-8 and deep nesting are refused by
 * the parser. */
static json_t *decode_object(const char *text, size_t length)
{
    uint8_t bytes[PART_BYTES];
    size_t decoded = 0;
    if (tg_base64url_decode(text, length, bytes, sizeof(bytes), &decoded) != 0) {
        return NULL;
    }
    json_t *object = json_loadb((const char *)bytes, decoded, JSON_REJECT_DUPLICATES, NULL);
    if (object != NULL && !json_is_object(object)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static bool type_allowed(const json_t *type)
{
    if (type == NULL) {
        return true;
    }
    const char *text = json_string_value(type);
    return text != NULL && (strcasecmp(text, "JWT") == 0 || strcasecmp(text, "at+jwt") == 0);
}

/* The header must say what our settings say; critical extensions are unknown to us (RFC
 * 7515, 4.1.11). */
static int check_header(const struct tg_jwt_key *key, const struct parts *parts)
{
    json_t *header = decode_object(parts->header, parts->header_length);
    if (header == NULL) {
        return TG_ERR_MALFORMED;
    }
    const char *algorithm = json_string_value(json_object_get(header, "alg"));
    const char *wanted = key->algorithm == TG_JWT_HS256 ? "HS256" : "EdDSA";
    bool good = algorithm != NULL && strcmp(algorithm, wanted) == 0 &&
                type_allowed(json_object_get(header, "typ")) &&
                json_object_get(header, "crit") == NULL;
    json_decref(header);
    return good ? 0 : TG_ERR_FORGED;
}

static int check_times(const json_t *claims, struct tg_wall now)
{
    const json_t *expires = json_object_get(claims, "exp");
    const json_t *not_before = json_object_get(claims, "nbf");
    if (!json_is_integer(expires) || (not_before != NULL && !json_is_integer(not_before))) {
        return TG_ERR_MALFORMED;
    }
    int64_t expires_s = json_integer_value(expires);
    int64_t not_before_s = not_before != NULL ? json_integer_value(not_before) : 0;
    if (expires_s < 0 || expires_s > LATEST_S || not_before_s < 0 || not_before_s > LATEST_S) {
        return TG_ERR_MALFORMED;
    }
    bool early = now.ms + TG_MAX_CLOCK_SKEW_MS < not_before_s * 1000;
    bool late = now.ms - TG_MAX_CLOCK_SKEW_MS >= expires_s * 1000;
    return early || late ? TG_ERR_RANGE : 0;
}

static int take_user(const json_t *claims, struct tg_holder *out_user)
{
    const json_t *subject = json_object_get(claims, "sub");
    if (!json_is_string(subject)) {
        return TG_ERR_MALFORMED;
    }
    size_t length = json_string_length(subject);
    const char *user = json_string_value(subject);
    if (!tg_user_valid((const uint8_t *)user, length)) {
        return TG_ERR_MALFORMED;
    }
    memset(out_user, 0, sizeof(*out_user));
    out_user->kind = TG_HOLDER_USER;
    out_user->length = (uint8_t)length;
    memcpy(out_user->bytes, user, length);
    return 0;
}

static int check_claims(const struct parts *parts, struct tg_wall now, struct tg_holder *out_user)
{
    json_t *claims = decode_object(parts->payload, parts->payload_length);
    if (claims == NULL) {
        return TG_ERR_MALFORMED;
    }
    int error = check_times(claims, now);
    if (error == 0) {
        error = take_user(claims, out_user);
    }
    json_decref(claims);
    return error;
}

int tg_jwt_buyer(const struct tg_jwt_key *key, const char *text, size_t length, struct tg_wall now,
                 struct tg_holder *out_user)
{
    struct parts parts;
    if (length > TOKEN_BYTES) {
        return TG_ERR_MALFORMED;
    }
    int error = split(text, length, &parts);
    if (error == 0) {
        error = verify(key, text, &parts);
    }
    if (error == 0) {
        error = check_header(key, &parts);
    }
    if (error == 0) {
        error = check_claims(&parts, now, out_user);
    }
    return error;
}

size_t tg_jwt_issue(const uint8_t secret[32], const char *user, struct tg_wall now, int64_t life_ms,
                    char *out_text)
{
    static const char header[] = "{\"alg\":\"HS256\",\"typ\":\"JWT\"}";
    if (!tg_user_valid((const uint8_t *)user, strlen(user))) {
        return 0;
    }
    json_t *claims = json_pack("{s:s, s:I, s:I}", "sub", user, "iat", (json_int_t)(now.ms / 1000),
                               "exp", (json_int_t)((now.ms + life_ms) / 1000));
    char *payload = claims != NULL ? json_dumps(claims, JSON_COMPACT) : NULL;
    json_decref(claims);
    if (payload == NULL) {
        abort(); /* out of memory */
    }
    size_t length = tg_base64url_encode((const uint8_t *)header, strlen(header), out_text);
    out_text[length++] = '.';
    assert(length + TG_BASE64URL_LENGTH(strlen(payload)) + 1 + 43 < ISSUED_BYTES);
    length += tg_base64url_encode((const uint8_t *)payload, strlen(payload), out_text + length);
    free(payload);
    uint8_t tag[crypto_auth_hmacsha256_BYTES];
    crypto_auth_hmacsha256(tag, (const uint8_t *)out_text, length, secret);
    out_text[length++] = '.';
    return length + tg_base64url_encode(tag, sizeof(tag), out_text + length);
}
