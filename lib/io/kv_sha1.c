/* SPDX-License-Identifier: Apache-2.0
 * SHA-1 as FIPS 180-4 section 6.1 defines it: the name Redis gives a script. Never used for
 * security. */
#include "lib/io/kv_internal.h"

#include <string.h>

static uint32_t rotate(uint32_t value, unsigned bits)
{
    return (value << bits) | (value >> (32 - bits));
}

static uint32_t round_function(unsigned t, const uint32_t v[5])
{
    if (t < 20) {
        return ((v[1] & v[2]) | (~v[1] & v[3])) + 0x5a827999u;
    }
    if (t < 40) {
        return (v[1] ^ v[2] ^ v[3]) + 0x6ed9eba1u;
    }
    if (t < 60) {
        return ((v[1] & v[2]) | (v[1] & v[3]) | (v[2] & v[3])) + 0x8f1bbcdcu;
    }
    return (v[1] ^ v[2] ^ v[3]) + 0xca62c1d6u;
}

static void add_block(uint32_t state[5], const uint8_t block[64])
{
    uint32_t w[80], v[5];
    for (unsigned t = 0; t < 16; t++) {
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    }
    for (unsigned t = 16; t < 80; t++) {
        w[t] = rotate(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    }
    memcpy(v, state, sizeof v);
    for (unsigned t = 0; t < 80; t++) {
        uint32_t next = rotate(v[0], 5) + round_function(t, v) + v[4] + w[t];
        v[4] = v[3];
        v[3] = v[2];
        v[2] = rotate(v[1], 30);
        v[1] = v[0];
        v[0] = next;
    }
    for (unsigned i = 0; i < 5; i++) {
        state[i] += v[i];
    }
}

void kv_sha1(const char *data, size_t length, uint8_t out_digest[KV_SHA1_BYTES])
{
    uint32_t state[5] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u, 0xc3d2e1f0u};
    size_t whole = length / 64 * 64;
    for (size_t at = 0; at < whole; at += 64) {
        add_block(state, (const uint8_t *)data + at);
    }
    uint8_t tail[128] = {0};
    size_t rest = length - whole, padded = rest < 56 ? 64 : 128;
    memcpy(tail, data + whole, rest);
    tail[rest] = 0x80;
    for (unsigned i = 0; i < 8; i++) {
        tail[padded - 1 - i] = (uint8_t)(((uint64_t)length * 8) >> (8 * i));
    }
    for (size_t at = 0; at < padded; at += 64) {
        add_block(state, tail + at);
    }
    for (unsigned i = 0; i < KV_SHA1_BYTES; i++) {
        out_digest[i] = (uint8_t)(state[i / 4] >> (24 - 8 * (i % 4)));
    }
}
