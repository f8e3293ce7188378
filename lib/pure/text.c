/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/text.h"

#include "lib/pure/limit.h"

#include <string.h>

static const char base64url_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char base32_digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
static const char hex_digits[] = "0123456789abcdef";

size_t tg_base64url_encode(const uint8_t *data, size_t length, char *out_text)
{
    char *at = out_text;
    uint32_t bits = 0;
    unsigned held = 0;
    for (size_t i = 0; i < length; i++) {
        bits = bits << 8 | data[i];
        held += 8;
        while (held >= 6) {
            held -= 6;
            *at++ = base64url_digits[bits >> held & 63];
        }
    }
    if (held > 0) {
        *at++ = base64url_digits[bits << (6 - held) & 63];
    }
    *at = '\0';
    return (size_t)(at - out_text);
}

/* Value of a digit plus one; 0 for everything else. A table: a ticket of every request comes
 * through here. */
static const uint8_t base64url_values[256] = {
    ['A'] = 1,  ['B'] = 2,  ['C'] = 3,  ['D'] = 4,  ['E'] = 5,  ['F'] = 6,  ['G'] = 7,  ['H'] = 8,
    ['I'] = 9,  ['J'] = 10, ['K'] = 11, ['L'] = 12, ['M'] = 13, ['N'] = 14, ['O'] = 15, ['P'] = 16,
    ['Q'] = 17, ['R'] = 18, ['S'] = 19, ['T'] = 20, ['U'] = 21, ['V'] = 22, ['W'] = 23, ['X'] = 24,
    ['Y'] = 25, ['Z'] = 26, ['a'] = 27, ['b'] = 28, ['c'] = 29, ['d'] = 30, ['e'] = 31, ['f'] = 32,
    ['g'] = 33, ['h'] = 34, ['i'] = 35, ['j'] = 36, ['k'] = 37, ['l'] = 38, ['m'] = 39, ['n'] = 40,
    ['o'] = 41, ['p'] = 42, ['q'] = 43, ['r'] = 44, ['s'] = 45, ['t'] = 46, ['u'] = 47, ['v'] = 48,
    ['w'] = 49, ['x'] = 50, ['y'] = 51, ['z'] = 52, ['0'] = 53, ['1'] = 54, ['2'] = 55, ['3'] = 56,
    ['4'] = 57, ['5'] = 58, ['6'] = 59, ['7'] = 60, ['8'] = 61, ['9'] = 62, ['-'] = 63, ['_'] = 64};

static uint32_t base64url_value(char digit)
{
    return base64url_values[(uint8_t)digit] - 1U;
}

/* Every character is a digit and the bits behind the last whole byte are zero. */
static bool base64url_canonical(const char *text, size_t length)
{
    bool digits = length % 4 != 1;
    for (size_t i = 0; i < length; i++) {
        digits &= base64url_values[(uint8_t)text[i]] != 0;
    }
    uint32_t loose_bits = length % 4 == 2 ? 15 : length % 4 == 3 ? 3 : 0;
    return digits && (loose_bits == 0 || (base64url_value(text[length - 1]) & loose_bits) == 0);
}

int tg_base64url_decode(const char *text, size_t text_length, uint8_t *out_data, size_t capacity,
                        size_t *out_length)
{
    size_t length = text_length / 4 * 3 + text_length % 4 * 6 / 8;
    if (length > capacity || !base64url_canonical(text, text_length)) {
        return TG_ERR_MALFORMED;
    }
    uint8_t *at = out_data;
    size_t i = 0;
    for (; i + 4 <= text_length; i += 4) {
        uint32_t bits = base64url_value(text[i]) << 18 | base64url_value(text[i + 1]) << 12 |
                        base64url_value(text[i + 2]) << 6 | base64url_value(text[i + 3]);
        *at++ = (uint8_t)(bits >> 16);
        *at++ = (uint8_t)(bits >> 8);
        *at++ = (uint8_t)bits;
    }
    if (text_length - i >= 2) {
        *at++ = (uint8_t)(base64url_value(text[i]) << 2 | base64url_value(text[i + 1]) >> 4);
    }
    if (text_length - i == 3) {
        *at++ = (uint8_t)(base64url_value(text[i + 1]) << 4 | base64url_value(text[i + 2]) >> 2);
    }
    *out_length = length;
    return 0;
}

void tg_base32_id_encode(const uint8_t id[16], char out_text[TG_BASE32_ID_LENGTH + 1])
{
    uint32_t bits = 0;
    unsigned held = 2; /* two leading zero bits make 130 */
    char *at = out_text;
    for (size_t i = 0; i < 16; i++) {
        bits = bits << 8 | id[i];
        held += 8;
        while (held >= 5) {
            held -= 5;
            *at++ = base32_digits[bits >> held & 31];
        }
    }
    *at = '\0';
}

int tg_base32_id_decode(const char *text, size_t length, uint8_t out_id[16])
{
    if (length != TG_BASE32_ID_LENGTH) {
        return TG_ERR_MALFORMED;
    }
    uint8_t id[16];
    uint32_t bits = 0;
    unsigned held = 0;
    size_t filled = 0;
    for (size_t i = 0; i < length; i++) {
        const char *digit = text[i] != '\0' ? strchr(base32_digits, text[i]) : NULL;
        if (digit == NULL || (i == 0 && digit - base32_digits > 7)) {
            return TG_ERR_MALFORMED;
        }
        bits = bits << 5 | (uint32_t)(digit - base32_digits);
        held += i == 0 ? 3 : 5;
        if (held >= 8) {
            held -= 8;
            id[filled++] = (uint8_t)(bits >> held);
        }
    }
    memcpy(out_id, id, sizeof(id));
    return 0;
}

void tg_hex_encode(const uint8_t *data, size_t length, char *out_text)
{
    for (size_t i = 0; i < length; i++) {
        out_text[2 * i] = hex_digits[data[i] >> 4];
        out_text[2 * i + 1] = hex_digits[data[i] & 15];
    }
    out_text[2 * length] = '\0';
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

int tg_hex_decode(const char *text, size_t text_length, uint8_t *out_data, size_t length)
{
    if (text_length % 2 != 0 || text_length / 2 != length) {
        return TG_ERR_MALFORMED;
    }
    for (size_t i = 0; i < text_length; i++) {
        if (hex_value(text[i]) < 0) {
            return TG_ERR_MALFORMED;
        }
    }
    for (size_t i = 0; i < length; i++) {
        out_data[i] =
            (uint8_t)((unsigned)hex_value(text[2 * i]) << 4 | (unsigned)hex_value(text[2 * i + 1]));
    }
    return 0;
}

/* Bytes of the UTF-8 sequence at data (length > 0), 0 when it is not one. Source: RFC 3629
 * section 4. */
static size_t utf8_sequence(const uint8_t *data, size_t length)
{
    uint8_t first = data[0];
    if (first < 0x80) {
        return 1;
    }
    if (first < 0xc2 || first > 0xf4) {
        return 0;
    }
    size_t count = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
    if (count > length) {
        return 0;
    }
    uint8_t low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80; /* below: overlong */
    uint8_t high = first == 0xed   ? 0x9f
                   : first == 0xf4 ? 0x8f
                                   : 0xbf; /* above: surrogate, beyond U+10FFFF */
    if (data[1] < low || data[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < count; i++) {
        if ((data[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return count;
}

bool tg_utf8_valid(const uint8_t *data, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t count = utf8_sequence(data + at, length - at);
        if (count == 0) {
            return false;
        }
        at += count;
    }
    return true;
}

bool tg_user_valid(const uint8_t *data, size_t length)
{
    if (length < 1 || length > TG_MAX_USER_BYTES || !tg_utf8_valid(data, length)) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        bool c1 = data[i] == 0xc2 && data[i + 1] < 0xa0; /* valid UTF-8: a byte follows 0xc2 */
        if (data[i] < 0x20 || data[i] == 0x7f || c1) {
            return false;
        }
    }
    return true;
}

bool tg_sale_name_valid(const char *text, size_t length)
{
    if (length < 1 || length > TG_MAX_SALE_NAME_BYTES) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (base64url_values[(uint8_t)text[i]] == 0) { /* the same 64 characters */
            return false;
        }
    }
    return true;
}

bool tg_instance_valid(const char *text)
{
    size_t length = strlen(text);
    return length >= 1 && length <= 32 &&
           strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-") == length;
}

bool tg_idempotency_key_valid(const char *text, size_t length)
{
    if (length < 1 || length > TG_MAX_IDEMPOTENCY_KEY_BYTES) {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (text[i] < 0x21 || text[i] > 0x7e || text[i] == '"') {
            return false;
        }
    }
    return true;
}

bool tg_reservation_id_valid(const char *text, size_t length)
{
    uint8_t id[16];
    return length == TG_RESERVATION_ID_LENGTH && memcmp(text, "res_", 4) == 0 &&
           tg_base32_id_decode(text + 4, length - 4, id) == 0;
}
