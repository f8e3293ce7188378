/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/draw.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

static_assert((int)TG_DRAW_BYTES == (int)crypto_hash_sha256_BYTES, "SHA-256");
static_assert((int)TG_ENTRANT_LENGTH == (int)TG_BASE32_ID_LENGTH, "an entrant is spelled as an id");

void tg_draw_commit(const uint8_t secret[TG_DRAW_BYTES], uint8_t out_commitment[TG_DRAW_BYTES])
{
    (void)crypto_hash_sha256(out_commitment, secret, TG_DRAW_BYTES);
}

static void mix_field(crypto_hash_sha256_state *state, const uint8_t *data, size_t length)
{
    const uint8_t prefix[8] = {(uint8_t)length}; /* little-endian; at most TG_BEACON_BYTES */
    (void)crypto_hash_sha256_update(state, prefix, sizeof(prefix));
    (void)crypto_hash_sha256_update(state, data, length);
}

void tg_draw_mix(struct tg_draw *draw)
{
    crypto_hash_sha256_state state;
    (void)crypto_hash_sha256_init(&state);
    mix_field(&state, draw->secret, sizeof(draw->secret));
    mix_field(&state, draw->beacon, draw->beacon_length);
    mix_field(&state, draw->root, sizeof(draw->root));
    (void)crypto_hash_sha256_final(&state, draw->seed);
}

static void hash_leaf(const void *leaf, size_t length, uint8_t out_hash[TG_DRAW_BYTES])
{
    static const uint8_t prefix = 0;
    crypto_hash_sha256_state state;
    (void)crypto_hash_sha256_init(&state);
    (void)crypto_hash_sha256_update(&state, &prefix, 1);
    (void)crypto_hash_sha256_update(&state, leaf, length);
    (void)crypto_hash_sha256_final(&state, out_hash);
}

static void hash_node(const uint8_t left[TG_DRAW_BYTES], uint8_t right[TG_DRAW_BYTES])
{
    uint8_t node[1 + 2 * TG_DRAW_BYTES] = {1};
    memcpy(node + 1, left, TG_DRAW_BYTES);
    memcpy(node + 1 + TG_DRAW_BYTES, right, TG_DRAW_BYTES);
    (void)crypto_hash_sha256(right, node, sizeof(node));
}

/* Subtrees on the stack: one for every bit of the count. */
static unsigned depth_of(uint64_t count)
{
    return (unsigned)__builtin_popcountll(count);
}

void tg_merkle_begin(struct tg_merkle *merkle)
{
    merkle->count = 0;
}

void tg_merkle_add(struct tg_merkle *merkle, const void *leaf, size_t length)
{
    uint8_t hash[TG_DRAW_BYTES];
    unsigned depth = depth_of(merkle->count);
    hash_leaf(leaf, length, hash);
    for (uint64_t full = merkle->count; (full & 1) == 1; full >>= 1) {
        hash_node(merkle->stack[--depth], hash);
    }
    memcpy(merkle->stack[depth], hash, sizeof(hash));
    merkle->count++;
}

void tg_merkle_root(const struct tg_merkle *merkle, uint8_t out_root[TG_DRAW_BYTES])
{
    unsigned depth = depth_of(merkle->count);
    if (depth == 0) {
        (void)crypto_hash_sha256(out_root, NULL, 0);
        return;
    }
    memcpy(out_root, merkle->stack[--depth], TG_DRAW_BYTES);
    while (depth > 0) {
        hash_node(merkle->stack[--depth], out_root);
    }
}

void tg_roster_begin(struct tg_roster *roster, void *slots, unsigned bits)
{
    assert(bits >= 8 && bits <= 32);
    *roster = (struct tg_roster){.slots = slots, .bits = bits};
}

static uint64_t home_of(const struct tg_roster *roster, const uint8_t entrant[TG_ENTRANT_BYTES])
{
    const uint32_t lead = (uint32_t)entrant[0] << 24 | (uint32_t)entrant[1] << 16 |
                          (uint32_t)entrant[2] << 8 | entrant[3];
    return lead >> (32 - roster->bits);
}

static bool is_empty(const uint8_t entrant[TG_ENTRANT_BYTES])
{
    static const uint8_t zero[TG_ENTRANT_BYTES];
    return memcmp(entrant, zero, sizeof(zero)) == 0;
}

int tg_roster_add(struct tg_roster *roster, const uint8_t entrant[TG_ENTRANT_BYTES])
{
    if (is_empty(entrant)) {
        return TG_ERR_MALFORMED;
    }
    const uint64_t home = home_of(roster, entrant);
    uint64_t at = home;
    int order = 1;
    while (at < home + TG_ROSTER_RUN_MAX && !is_empty(roster->slots[at])) {
        order = memcmp(roster->slots[at], entrant, TG_ENTRANT_BYTES);
        if (order >= 0) {
            break;
        }
        at++;
    }
    if (order == 0) {
        return 0;
    }
    uint64_t free = at;
    while (free < home + TG_ROSTER_RUN_MAX && !is_empty(roster->slots[free])) {
        free++;
    }
    if (free == home + TG_ROSTER_RUN_MAX || tg_roster_crowded(roster)) {
        return TG_ERR_FULL;
    }
    memmove(roster->slots[at + 1], roster->slots[at], (free - at) * TG_ENTRANT_BYTES);
    memcpy(roster->slots[at], entrant, TG_ENTRANT_BYTES);
    roster->count++;
    return 1;
}

static uint64_t slots_of(const struct tg_roster *roster)
{
    return ((uint64_t)1 << roster->bits) + TG_ROSTER_RUN_MAX;
}

int tg_roster_move(struct tg_roster *roster, const struct tg_roster *from)
{
    for (uint64_t i = 0; i < slots_of(from); i++) {
        if (!is_empty(from->slots[i]) && tg_roster_add(roster, from->slots[i]) < 0) {
            return TG_ERR_FULL;
        }
    }
    return 0;
}

void tg_roster_close_begin(struct tg_roster_close *closing)
{
    closing->at = 0;
    closing->closed = 0;
    tg_merkle_begin(&closing->merkle);
}

bool tg_roster_close_step(struct tg_roster *roster, struct tg_roster_close *closing, uint64_t slots)
{
    const uint64_t all = slots_of(roster);
    const uint64_t end = all - closing->at > slots ? closing->at + slots : all;
    for (; closing->at < end; closing->at++) {
        if (!is_empty(roster->slots[closing->at])) {
            char text[TG_ENTRANT_LENGTH + 1];
            uint8_t entrant[TG_ENTRANT_BYTES];
            memcpy(entrant, roster->slots[closing->at], sizeof(entrant));
            memcpy(roster->slots[closing->closed++], entrant, sizeof(entrant));
            tg_base32_id_encode(entrant, text);
            tg_merkle_add(&closing->merkle, text, TG_ENTRANT_LENGTH);
        }
    }
    return closing->at == all;
}
