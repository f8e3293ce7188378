/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/nkey.h"

#include <string.h>

enum {
    PREFIX_SEED = 18 << 3,
    PREFIX_USER = 20 << 3,
    CRC_BYTES = 2,
    SEED_HEAD = 2,
    PUBLIC_HEAD = 1,
    RAW_BYTES_MAX = SEED_HEAD + TG_NKEY_BYTES + CRC_BYTES
};

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"; /* RFC 4648 */

/* What a seed and a public key begin with: their kinds, in groups of five bits. */
static const uint8_t seed_head[SEED_HEAD] = {PREFIX_SEED | PREFIX_USER >> 5, (PREFIX_USER & 31)
                                                                                 << 3};
static const uint8_t public_head[PUBLIC_HEAD] = {PREFIX_USER};

/* CRC-16/XMODEM. */
static uint16_t checksum(const uint8_t *bytes, size_t length)
{
    unsigned crc = 0;
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned)bytes[i] << 8;
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc & 0x8000) != 0 ? (crc << 1 ^ 0x1021) & 0xffff : crc << 1 & 0xffff;
        }
    }
    return (uint16_t)crc;
}

static void encode(const uint8_t *head, size_t head_length, const uint8_t key[TG_NKEY_BYTES],
                   char *out_text)
{
    uint8_t raw[RAW_BYTES_MAX];
    size_t length = head_length + TG_NKEY_BYTES;
    uint32_t bits = 0;
    unsigned held = 0;
    memcpy(raw, head, head_length);
    memcpy(raw + head_length, key, TG_NKEY_BYTES);
    uint16_t crc = checksum(raw, length);
    raw[length++] = crc & 0xff;
    raw[length++] = crc >> 8;
    for (size_t i = 0; i < length; i++) {
        bits = bits << 8 | raw[i];
        for (held += 8; held >= 5; held -= 5) {
            *out_text++ = alphabet[bits >> (held - 5) & 31];
        }
    }
    if (held > 0) {
        *out_text++ = alphabet[bits << (5 - held) & 31];
    }
    *out_text = '\0';
}

/* The bytes behind `text`; bits beyond the last whole byte must be 0, so that there is one
 * spelling. */
static int read_raw(const char *text, size_t length, uint8_t raw[RAW_BYTES_MAX])
{
    uint32_t bits = 0;
    unsigned held = 0;
    size_t used = 0;
    for (size_t i = 0; i < length; i++) {
        const char *found = text[i] != '\0' ? strchr(alphabet, text[i]) : NULL;
        if (found == NULL) {
            return TG_ERR_MALFORMED;
        }
        bits = (bits << 5 | (uint32_t)(found - alphabet)) & 0xfff;
        held += 5;
        if (held >= 8) {
            held -= 8;
            raw[used++] = (uint8_t)(bits >> held);
        }
    }
    return (bits & ((1U << held) - 1)) == 0 ? 0 : TG_ERR_MALFORMED;
}

static int decode(const char *text, const uint8_t *head, size_t head_length,
                  uint8_t out_key[TG_NKEY_BYTES])
{
    uint8_t raw[RAW_BYTES_MAX];
    size_t length = head_length + TG_NKEY_BYTES;
    if (read_raw(text, head_length == SEED_HEAD ? TG_NKEY_SEED_LENGTH : TG_NKEY_PUBLIC_LENGTH,
                 raw) != 0 ||
        memcmp(raw, head, head_length) != 0 ||
        checksum(raw, length) != (raw[length] | raw[length + 1] << 8)) {
        return TG_ERR_MALFORMED;
    }
    memcpy(out_key, raw + head_length, TG_NKEY_BYTES);
    return 0;
}

void tg_nkey_seed_encode(const uint8_t seed[TG_NKEY_BYTES], char out_text[TG_NKEY_SEED_LENGTH + 1])
{
    encode(seed_head, SEED_HEAD, seed, out_text);
}

int tg_nkey_seed_decode(const char *text, size_t length, uint8_t out_seed[TG_NKEY_BYTES])
{
    return length == TG_NKEY_SEED_LENGTH ? decode(text, seed_head, SEED_HEAD, out_seed)
                                         : TG_ERR_MALFORMED;
}

void tg_nkey_public_encode(const uint8_t key[TG_NKEY_BYTES],
                           char out_text[TG_NKEY_PUBLIC_LENGTH + 1])
{
    encode(public_head, PUBLIC_HEAD, key, out_text);
}

int tg_nkey_public_decode(const char *text, size_t length, uint8_t out_key[TG_NKEY_BYTES])
{
    return length == TG_NKEY_PUBLIC_LENGTH ? decode(text, public_head, PUBLIC_HEAD, out_key)
                                           : TG_ERR_MALFORMED;
}
