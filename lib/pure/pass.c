/* SPDX-License-Identifier: Apache-2.0
 * Reading is strict by construction: the claims are taken in the order we write them, then written
 * anew and compared. */
#include "lib/pure/pass.h"

#include "lib/pure/number.h"

#include <assert.h>
#include <sodium.h>
#include <stdbool.h>
#include <string.h>

enum {
    WINDOW_S = TG_MAX_PASS_WINDOW_MS / 1000,
    WINDOWS_VALID = 2,
    SIGNATURE_BYTES = TG_PASS_SIGNATURE_BYTES,
    SIGNATURE_LENGTH = TG_BASE64URL_LENGTH(SIGNATURE_BYTES),
    KID_LENGTH = 8,
    HEAD_BYTES = 56, /* {"alg":"EdDSA","typ":"tg-pass+jwt","kid":"01234567"} and some */
    CLAIMS_BYTES = 256 + 2 * TG_MAX_SALE_NAME_BYTES + 2 * TG_MAX_USER_BYTES,
    JTI_BYTES = 24
};

#define HEAD_EDDSA "{\"alg\":\"EdDSA\",\"typ\":\"tg-pass+jwt\",\"kid\":\""
#define HEAD_ES256 "{\"alg\":\"ES256\",\"typ\":\"tg-pass+jwt\",\"kid\":\""
#define HEAD_AFTER "\"}"
static_assert(sizeof(HEAD_EDDSA HEAD_AFTER) - 1 + KID_LENGTH <= HEAD_BYTES, "header fits");
static_assert(crypto_sign_BYTES == 64, "both algorithms sign in 64 bytes");

/* The last window whose expiry is still a year of four digits. */
static const uint64_t window_max = UINT64_C(253402300799) / WINDOW_S - WINDOWS_VALID;

struct tg_wall tg_pass_expires(uint64_t window)
{
    uint64_t bounded = window <= window_max ? window : window_max;
    return (struct tg_wall){.ms = (int64_t)(bounded + WINDOWS_VALID) * TG_MAX_PASS_WINDOW_MS};
}

/* ---- writing ---- */

static char *put_text(char *at, const char *text)
{
    while (*text != '\0') {
        *at++ = *text++;
    }
    return at;
}

static char *put_escaped(char *at, const uint8_t *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '"' || bytes[i] == '\\') {
            *at++ = '\\';
        }
        *at++ = (char)bytes[i];
    }
    return at;
}

static char *put_number(char *at, uint64_t value)
{
    return at + tg_unsigned_format(value, at);
}

static size_t write_head(enum tg_pass_algorithm algorithm, const char *kid, char *out_text)
{
    char *at = put_text(out_text, algorithm == TG_PASS_EDDSA ? HEAD_EDDSA : HEAD_ES256);
    at = put_text(at, kid);
    at = put_text(at, HEAD_AFTER);
    return (size_t)(at - out_text);
}

static size_t write_claims(const struct tg_pass *pass, char *out_text)
{
    char place[TG_BASE64URL_LENGTH(TG_PLACE_BYTES) + 1];
    (void)tg_base64url_encode(pass->place, TG_PLACE_BYTES, place);
    char *at = put_text(out_text, "{\"iss\":\"tidegate\",\"aud\":\"");
    at = put_text(at, pass->sale);
    at = put_text(at, "\",\"sub\":\"");
    at = put_escaped(at, pass->user, pass->user_length);
    at = put_text(at, "\",\"iat\":");
    at = put_number(at, pass->window * WINDOW_S);
    at = put_text(at, ",\"exp\":");
    at = put_number(at, (pass->window + WINDOWS_VALID) * WINDOW_S);
    at = put_text(at, ",\"jti\":\"");
    at = put_text(at, pass->jti);
    at = put_text(at, "\",\"place\":\"");
    at = put_text(at, place);
    at = put_text(at, "\",\"gen\":");
    at = put_number(at, pass->generation);
    at = put_text(at, ",\"event_id\":\"");
    at = put_text(at, pass->sale);
    at = put_text(at, "\",\"role\":\"ADMITTED\"}");
    return (size_t)(at - out_text);
}

size_t tg_pass_write(enum tg_pass_algorithm algorithm, const char *kid, const struct tg_pass *pass,
                     char *out_text)
{
    assert(strlen(kid) == KID_LENGTH && pass->user_length <= TG_MAX_USER_BYTES &&
           pass->window <= window_max);
    char head[HEAD_BYTES];
    char claims[CLAIMS_BYTES];
    size_t length =
        tg_base64url_encode((const uint8_t *)head, write_head(algorithm, kid, head), out_text);
    out_text[length++] = '.';
    return length + tg_base64url_encode((const uint8_t *)claims, write_claims(pass, claims),
                                        out_text + length);
}

size_t tg_pass_attach(char *text, size_t length, const uint8_t signature[TG_PASS_SIGNATURE_BYTES])
{
    text[length++] = '.';
    return length + tg_base64url_encode(signature, TG_PASS_SIGNATURE_BYTES, text + length);
}

size_t tg_pass_sign(const struct tg_sign_key *key, const struct tg_pass *pass, char *out_text)
{
    uint8_t signature[SIGNATURE_BYTES];
    size_t length = tg_pass_write(TG_PASS_EDDSA, key->id, pass, out_text);
    (void)crypto_sign_detached(signature, NULL, (const uint8_t *)out_text, length, key->secret);
    return tg_pass_attach(out_text, length, signature);
}

/* ---- reading ---- */

struct cursor {
    const char *at;
    const char *end;
};

static bool take(struct cursor *cursor, const char *literal)
{
    size_t length = strlen(literal);
    if ((size_t)(cursor->end - cursor->at) < length || memcmp(cursor->at, literal, length) != 0) {
        return false;
    }
    cursor->at += length;
    return true;
}

/* Characters up to the next quotation mark. A NUL is none: whoever reads on would see the text end
 * there. */
static bool take_plain(struct cursor *cursor, char *out_text, size_t capacity, size_t *out_length)
{
    const char *quote = memchr(cursor->at, '"', (size_t)(cursor->end - cursor->at));
    if (quote == NULL || (size_t)(quote - cursor->at) >= capacity) {
        return false;
    }
    *out_length = (size_t)(quote - cursor->at);
    memcpy(out_text, cursor->at, *out_length);
    out_text[*out_length] = '\0';
    cursor->at = quote;
    return strlen(out_text) == *out_length;
}

static bool take_user(struct cursor *cursor, struct tg_pass *pass)
{
    pass->user_length = 0;
    for (; cursor->at < cursor->end && *cursor->at != '"'; cursor->at++) {
        if (*cursor->at == '\\' && ++cursor->at == cursor->end) {
            return false;
        }
        if (pass->user_length == sizeof(pass->user)) {
            return false;
        }
        pass->user[pass->user_length++] = (uint8_t)*cursor->at;
    }
    return tg_user_valid(pass->user, pass->user_length);
}

static bool take_number(struct cursor *cursor, uint64_t max, uint64_t *out_value)
{
    size_t length = 0;
    while (cursor->at + length < cursor->end && cursor->at[length] >= '0' &&
           cursor->at[length] <= '9') {
        length++;
    }
    const char *digits = cursor->at;
    cursor->at += length;
    return tg_unsigned_parse(digits, length, max, out_value) == 0;
}

static bool take_place(struct cursor *cursor, uint8_t out_place[TG_PLACE_BYTES])
{
    char text[TG_BASE64URL_LENGTH(TG_PLACE_BYTES) + 1];
    size_t length = 0;
    size_t bytes = 0;
    return take_plain(cursor, text, sizeof(text), &length) &&
           tg_base64url_decode(text, length, out_place, TG_PLACE_BYTES, &bytes) == 0 &&
           bytes == TG_PLACE_BYTES;
}

static bool take_jti(struct cursor *cursor, char out_jti[TG_JTI_LENGTH + 1])
{
    uint8_t decoded[JTI_BYTES];
    size_t length = 0;
    size_t bytes = 0;
    return take_plain(cursor, out_jti, TG_JTI_LENGTH + 1, &length) &&
           tg_base64url_decode(out_jti, length, decoded, sizeof(decoded), &bytes) == 0 &&
           bytes == sizeof(decoded);
}

/* Reads up to `event_id`: what follows says nothing new and is checked by writing the claims anew.
 */
static bool read_claims(const char *text, size_t length, struct tg_pass *out_pass)
{
    struct cursor cursor = {text, text + length};
    size_t sale_length = 0;
    uint64_t issued_s = 0;
    uint64_t expires_s = 0;
    if (!take(&cursor, "{\"iss\":\"tidegate\",\"aud\":\"") ||
        !take_plain(&cursor, out_pass->sale, sizeof(out_pass->sale), &sale_length) ||
        !tg_sale_name_valid(out_pass->sale, sale_length) || !take(&cursor, "\",\"sub\":\"") ||
        !take_user(&cursor, out_pass) || !take(&cursor, "\",\"iat\":") ||
        !take_number(&cursor, window_max * WINDOW_S, &issued_s) || !take(&cursor, ",\"exp\":") ||
        !take_number(&cursor, (window_max + WINDOWS_VALID) * WINDOW_S, &expires_s) ||
        !take(&cursor, ",\"jti\":\"") || !take_jti(&cursor, out_pass->jti) ||
        !take(&cursor, "\",\"place\":\"") || !take_place(&cursor, out_pass->place) ||
        !take(&cursor, "\",\"gen\":") || !take_number(&cursor, UINT64_MAX, &out_pass->generation)) {
        return false;
    }
    out_pass->window = issued_s / WINDOW_S;
    return true;
}

/* Algorithm and key id of a header in our spelling. */
static bool read_head(const char *text, size_t length, struct tg_pass_read *out_read)
{
    char head[HEAD_BYTES];
    size_t head_length = 0;
    size_t kid_length = 0;
    if (tg_base64url_decode(text, length, (uint8_t *)head, sizeof(head), &head_length) != 0) {
        return false;
    }
    struct cursor cursor = {head, head + head_length};
    bool eddsa = take(&cursor, HEAD_EDDSA);
    out_read->algorithm = eddsa ? TG_PASS_EDDSA : TG_PASS_ES256;
    return (eddsa || take(&cursor, HEAD_ES256)) &&
           take_plain(&cursor, out_read->kid, KID_LENGTH + 1, &kid_length) &&
           kid_length == KID_LENGTH && take(&cursor, HEAD_AFTER) && cursor.at == cursor.end;
}

struct parts {
    size_t head_length;
    const char *claims;
    size_t claims_length;
    const char *signature;
};

static bool split(const char *text, size_t length, struct parts *out_parts)
{
    const char *first = memchr(text, '.', length);
    if (first == NULL || length > TG_MAX_PASS_BYTES) {
        return false;
    }
    const char *end = text + length;
    const char *second = memchr(first + 1, '.', (size_t)(end - first - 1));
    if (second == NULL || end - second - 1 != SIGNATURE_LENGTH) {
        return false;
    }
    out_parts->head_length = (size_t)(first - text);
    out_parts->claims = first + 1;
    out_parts->claims_length = (size_t)(second - first - 1);
    out_parts->signature = second + 1;
    return true;
}

static const struct tg_verify_key *find_key(const struct tg_verify_key *keys, size_t key_count,
                                            const char *kid)
{
    for (size_t i = 0; i < key_count; i++) {
        if (strcmp(keys[i].id, kid) == 0) {
            return &keys[i];
        }
    }
    return NULL;
}

int tg_pass_read(const char *text, size_t length, struct tg_pass_read *out_read)
{
    struct parts parts;
    struct tg_pass_read read = {0};
    char claims[CLAIMS_BYTES];
    char again[TG_MAX_PASS_BYTES + 1];
    size_t claims_length = 0;
    size_t signature_length = 0;
    if (!split(text, length, &parts) || !read_head(text, parts.head_length, &read) ||
        tg_base64url_decode(parts.claims, parts.claims_length, (uint8_t *)claims, sizeof(claims),
                            &claims_length) != 0 ||
        !read_claims(claims, claims_length, &read.pass) ||
        tg_base64url_decode(parts.signature, SIGNATURE_LENGTH, read.signature,
                            sizeof(read.signature), &signature_length) != 0) {
        return TG_ERR_MALFORMED;
    }
    read.signed_length = (size_t)(parts.signature - 1 - text);
    if (tg_pass_write(read.algorithm, read.kid, &read.pass, again) != read.signed_length ||
        memcmp(again, text, read.signed_length) != 0) {
        return TG_ERR_MALFORMED;
    }
    *out_read = read;
    return 0;
}

int tg_pass_verify(const struct tg_verify_key *keys, size_t key_count, const char *text,
                   size_t length, struct tg_pass *out_pass)
{
    struct tg_pass_read read;
    int error = tg_pass_read(text, length, &read);
    if (error != 0) {
        return error;
    }
    const struct tg_verify_key *key = find_key(keys, key_count, read.kid);
    if (read.algorithm != TG_PASS_EDDSA || key == NULL ||
        crypto_sign_verify_detached(read.signature, (const uint8_t *)text, read.signed_length,
                                    key->public_key) != 0) {
        return TG_ERR_FORGED;
    }
    *out_pass = read.pass;
    return 0;
}
