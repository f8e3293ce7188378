/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/text.h"

#include "lib/pure/limit.h"

#include <endian.h>
#include <string.h>

static const char base64url_digits[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
static const char base32_digits[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
static const char hex_digits[] = "0123456789abcdef";

size_t tg_base64url_encode(const uint8_t *data, size_t length, char *out_text)
{
    char *at = out_text;
    size_t i = 0;
    for (; i + 8 <= length; i += 6, at += 8) { /* reads eight bytes, takes six */
        uint64_t bits;
        memcpy(&bits, data + i, sizeof(bits));
        bits = be64toh(bits);
#pragma GCC unroll 8
        for (unsigned digit = 0; digit < 8; digit++) {
            at[digit] = base64url_digits[bits >> (58 - 6 * digit) & 63];
        }
    }
    for (; i + 3 <= length; i += 3, at += 4) {
        const uint32_t bits = (uint32_t)data[i] << 16 | (uint32_t)data[i + 1] << 8 | data[i + 2];
#pragma GCC unroll 4
        for (unsigned digit = 0; digit < 4; digit++) {
            at[digit] = base64url_digits[bits >> (18 - 6 * digit) & 63];
        }
    }
    if (i < length) {
        const uint32_t second = i + 1 < length ? data[i + 1] : 0;
        *at++ = base64url_digits[data[i] >> 2];
        *at++ = base64url_digits[(data[i] & 3) << 4 | second >> 4];
        if (i + 1 < length) {
            *at++ = base64url_digits[(second & 15) << 2];
        }
    }
    *at = '\0';
    return (size_t)(at - out_text);
}

/* Value of a digit with the bit DIGIT beside it; 0 for everything else. A table: the ticket of
 * every request comes through here. */
enum { DIGIT = 64 };
static const uint8_t base64url_values[256] = {
    ['A'] = 64,  ['B'] = 65,  ['C'] = 66,  ['D'] = 67,  ['E'] = 68,  ['F'] = 69,  ['G'] = 70,
    ['H'] = 71,  ['I'] = 72,  ['J'] = 73,  ['K'] = 74,  ['L'] = 75,  ['M'] = 76,  ['N'] = 77,
    ['O'] = 78,  ['P'] = 79,  ['Q'] = 80,  ['R'] = 81,  ['S'] = 82,  ['T'] = 83,  ['U'] = 84,
    ['V'] = 85,  ['W'] = 86,  ['X'] = 87,  ['Y'] = 88,  ['Z'] = 89,  ['a'] = 90,  ['b'] = 91,
    ['c'] = 92,  ['d'] = 93,  ['e'] = 94,  ['f'] = 95,  ['g'] = 96,  ['h'] = 97,  ['i'] = 98,
    ['j'] = 99,  ['k'] = 100, ['l'] = 101, ['m'] = 102, ['n'] = 103, ['o'] = 104, ['p'] = 105,
    ['q'] = 106, ['r'] = 107, ['s'] = 108, ['t'] = 109, ['u'] = 110, ['v'] = 111, ['w'] = 112,
    ['x'] = 113, ['y'] = 114, ['z'] = 115, ['0'] = 116, ['1'] = 117, ['2'] = 118, ['3'] = 119,
    ['4'] = 120, ['5'] = 121, ['6'] = 122, ['7'] = 123, ['8'] = 124, ['9'] = 125, ['-'] = 126,
    ['_'] = 127};

/* The 24 bits of four digits. *all keeps DIGIT set while everything was a digit. */
static uint32_t base64url_bits(const char text[4], uint32_t *all)
{
    const uint32_t a = base64url_values[(uint8_t)text[0]], b = base64url_values[(uint8_t)text[1]];
    const uint32_t c = base64url_values[(uint8_t)text[2]], d = base64url_values[(uint8_t)text[3]];
    *all &= a & b & c & d;
    return a << 18 ^ b << 12 ^ c << 6 ^ d ^ (DIGIT << 12 | DIGIT << 6 | DIGIT);
}

int tg_base64url_decode(const char *text, size_t text_length, uint8_t *out_data, size_t capacity,
                        size_t *out_length)
{
    const size_t length = text_length / 4 * 3 + text_length % 4 * 6 / 8;
    const size_t rest = text_length % 4;
    if (length > capacity || rest == 1) {
        return TG_ERR_MALFORMED;
    }
    uint32_t all = DIGIT, bits = 0;
    uint8_t *at = out_data;
    for (const char *end = text + text_length - rest; text < end; text += 4, at += 3) {
        bits = base64url_bits(text, &all);
        at[0] = (uint8_t)(bits >> 16);
        at[1] = (uint8_t)(bits >> 8);
        at[2] = (uint8_t)bits;
    }
    uint32_t loose = 0; /* the bits behind the last whole byte: zero in the one right spelling */
    if (rest > 0) {
        const char last[4] = {text[0], text[1], rest == 3 ? text[2] : 'A', 'A'};
        bits = base64url_bits(last, &all);
        loose = rest == 3 ? bits & 0xff : bits & 0xffff;
        *at++ = (uint8_t)(bits >> 16);
        if (rest == 3) {
            *at++ = (uint8_t)(bits >> 8);
        }
    }
    if (all != DIGIT || loose != 0) {
        return TG_ERR_MALFORMED;
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

/* As base64url_values. A table: the checker reads half a million ids in a round. */
static const uint8_t base32_values[256] = {
    ['0'] = 64, ['1'] = 65, ['2'] = 66, ['3'] = 67, ['4'] = 68, ['5'] = 69, ['6'] = 70, ['7'] = 71,
    ['8'] = 72, ['9'] = 73, ['A'] = 74, ['B'] = 75, ['C'] = 76, ['D'] = 77, ['E'] = 78, ['F'] = 79,
    ['G'] = 80, ['H'] = 81, ['J'] = 82, ['K'] = 83, ['M'] = 84, ['N'] = 85, ['P'] = 86, ['Q'] = 87,
    ['R'] = 88, ['S'] = 89, ['T'] = 90, ['V'] = 91, ['W'] = 92, ['X'] = 93, ['Y'] = 94, ['Z'] = 95};

/* The number that `count` digits, at most 12, spell. */
static uint64_t base32_bits(const char *text, unsigned count, uint32_t *all)
{
    uint64_t bits = 0;
    for (unsigned i = 0; i < count; i++) {
        const uint32_t value = base32_values[(uint8_t)text[i]];
        *all &= value;
        bits = bits << 5 | (value & 31);
    }
    return bits;
}

static void put_big_endian(uint64_t number, uint8_t out_bytes[8])
{
    for (int i = 7; i >= 0; i--, number >>= 8) {
        out_bytes[i] = (uint8_t)number;
    }
}

int tg_base32_id_decode(const char *text, size_t length, uint8_t out_id[16])
{
    if (length != TG_BASE32_ID_LENGTH) {
        return TG_ERR_MALFORMED;
    }
    /* 3 + 12 * 5 bits, 5 in the middle, 12 * 5: 128. */
    uint32_t all = DIGIT;
    const uint64_t first = base32_bits(text, 1, &all), high = base32_bits(text + 1, 12, &all);
    const uint64_t middle = base32_bits(text + 13, 1, &all), low = base32_bits(text + 14, 12, &all);
    if (all != DIGIT || first > 7) {
        return TG_ERR_MALFORMED;
    }
    put_big_endian(first << 61 | high << 1 | middle >> 4, out_id);
    put_big_endian(middle << 60 | low, out_id + 8);
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
