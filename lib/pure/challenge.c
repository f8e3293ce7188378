/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/challenge.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

/* Each step is about twice the work for whoever hashes at full speed; a browser feels less, since
 * half of its time goes into calls. One check of an answer stays under a millisecond. */
static const struct {
    uint32_t per_second;
    struct tg_effort effort;
} steps[] = {
    {0, {500, "00", 20}},     {50, {250, "000", 30}},    {200, {500, "000", 45}},
    {800, {1000, "000", 60}}, {3200, {2000, "000", 90}},
};

struct tg_effort tg_challenge_effort(uint32_t per_second)
{
    size_t at = 0;
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        if (per_second >= steps[i].per_second) {
            at = i;
        }
    }
    return steps[at].effort;
}

uint32_t tg_rush_count(struct tg_rush *rush, int64_t now_s)
{
    if (now_s != rush->second) {
        rush->before = now_s == rush->second + 1 ? rush->count : 0;
        rush->second = now_s;
        rush->count = 0;
    }
    if (rush->count < UINT32_MAX) {
        rush->count++;
    }
    return rush->count > rush->before ? rush->count : rush->before;
}

void tg_challenge_key(const uint8_t entrant_key[TG_KEY_BYTES], uint8_t out_key[TG_KEY_BYTES])
{
    struct tg_mac mac;
    tg_mac_begin(&mac, entrant_key, "tidegate challenge key");
    tg_mac_end(&mac, out_key, TG_KEY_BYTES);
}

static void scope_mac(const uint8_t key[TG_KEY_BYTES], const struct tg_challenge_scope *scope,
                      const struct tg_challenge *challenge, uint8_t out_bound[])
{
    struct tg_mac mac;
    tg_mac_begin(&mac, key, "tidegate challenge scope");
    tg_mac_text(&mac, scope->sale);
    tg_mac_number(&mac, scope->generation);
    tg_mac_text(&mac, scope->opens);
    if (scope->holder != NULL) {
        tg_mac_number(&mac, scope->holder->kind);
        tg_mac_field(&mac, scope->holder->bytes, scope->holder->length);
    } else {
        tg_mac_number(&mac, TG_HOLDER_VISITOR);
        tg_mac_field(&mac, challenge->nonce, sizeof(challenge->nonce));
    }
    tg_mac_number(&mac, scope->index);
    tg_mac_end(&mac, out_bound, TG_CHALLENGE_BOUND_BYTES);
}

void tg_challenge_bind(const uint8_t key[TG_KEY_BYTES], const struct tg_challenge_scope *scope,
                       struct tg_challenge *challenge)
{
    scope_mac(key, scope, challenge, challenge->bound);
}

bool tg_challenge_bound(const uint8_t key[TG_KEY_BYTES], const struct tg_challenge_scope *scope,
                        const struct tg_challenge *challenge)
{
    uint8_t bound[TG_CHALLENGE_BOUND_BYTES];
    scope_mac(key, scope, challenge, bound);
    return tg_equal_constant(bound, challenge->bound, sizeof(bound));
}

size_t tg_challenge_text(const struct tg_challenge *challenge,
                         char out_text[TG_CHALLENGE_TEXT_BYTES])
{
    char nonce[2 * TG_CHALLENGE_NONCE_BYTES + 1], salt[2 * TG_CHALLENGE_NONCE_BYTES + 1];
    char bound[2 * TG_CHALLENGE_BOUND_BYTES + 1];
    tg_hex_encode(challenge->nonce, sizeof(challenge->nonce), nonce);
    tg_hex_encode(challenge->salt, sizeof(challenge->salt), salt);
    tg_hex_encode(challenge->bound, sizeof(challenge->bound), bound);
    int length =
        snprintf(out_text, TG_CHALLENGE_TEXT_BYTES,
                 "{\"algorithm\":\"" TG_CHALLENGE_ALGORITHM
                 "\",\"cost\":%u,\"data\":{\"bound\":\"%s\",\"patientAt\":%lld},"
                 "\"expiresAt\":%lld,\"keyLength\":%d,\"keyPrefix\":\"%s\",\"nonce\":\"%s\","
                 "\"salt\":\"%s\"}",
                 challenge->cost, bound, (long long)challenge->patient_at_s,
                 (long long)challenge->expires_at_s, TG_CHALLENGE_DERIVED_BYTES,
                 challenge->key_prefix, nonce, salt);
    assert(length > 0 && length < TG_CHALLENGE_TEXT_BYTES); /* every field has its longest form */
    return (size_t)length;
}

void tg_challenge_sign(const uint8_t key[TG_KEY_BYTES], const struct tg_challenge *challenge,
                       uint8_t out_signature[TG_CHALLENGE_SIGNATURE_BYTES])
{
    _Static_assert((int)TG_CHALLENGE_SIGNATURE_BYTES == (int)crypto_auth_hmacsha256_BYTES, "tag");
    char secret[2 * TG_KEY_BYTES + 1], text[TG_CHALLENGE_TEXT_BYTES];
    crypto_auth_hmacsha256_state state;
    size_t length = tg_challenge_text(challenge, text);
    tg_hex_encode(key, TG_KEY_BYTES, secret);
    (void)crypto_auth_hmacsha256_init(&state, (const uint8_t *)secret, sizeof(secret) - 1);
    (void)crypto_auth_hmacsha256_update(&state, (const uint8_t *)text, length);
    (void)crypto_auth_hmacsha256_final(&state, out_signature);
}

bool tg_challenge_signed(const uint8_t key[TG_KEY_BYTES], const struct tg_challenge *challenge,
                         const uint8_t signature[TG_CHALLENGE_SIGNATURE_BYTES])
{
    uint8_t own[TG_CHALLENGE_SIGNATURE_BYTES];
    tg_challenge_sign(key, challenge, own);
    return tg_equal_constant(own, signature, sizeof(own));
}

void tg_challenge_derive(const struct tg_challenge *challenge, uint32_t counter,
                         uint8_t out_derived[TG_CHALLENGE_DERIVED_BYTES])
{
    _Static_assert((int)TG_CHALLENGE_DERIVED_BYTES == (int)crypto_auth_hmacsha256_BYTES,
                   "one block");
    static const uint8_t first_block[4] = {0, 0, 0, 1};
    uint8_t password[TG_CHALLENGE_NONCE_BYTES + 4], round[crypto_auth_hmacsha256_BYTES];
    crypto_auth_hmacsha256_state keyed, state;
    memcpy(password, challenge->nonce, sizeof(challenge->nonce));
    for (int i = 0; i < 4; i++) {
        password[TG_CHALLENGE_NONCE_BYTES + i] = (uint8_t)(counter >> (24 - 8 * i));
    }
    (void)crypto_auth_hmacsha256_init(&keyed, password, sizeof(password));
    state = keyed;
    (void)crypto_auth_hmacsha256_update(&state, challenge->salt, sizeof(challenge->salt));
    (void)crypto_auth_hmacsha256_update(&state, first_block, sizeof(first_block));
    (void)crypto_auth_hmacsha256_final(&state, round);
    memcpy(out_derived, round, sizeof(round));
    for (uint32_t i = 1; i < challenge->cost; i++) {
        state = keyed;
        (void)crypto_auth_hmacsha256_update(&state, round, sizeof(round));
        (void)crypto_auth_hmacsha256_final(&state, round);
        for (size_t at = 0; at < sizeof(round); at++) {
            out_derived[at] ^= round[at];
        }
    }
}

bool tg_challenge_prefixed(const struct tg_challenge *challenge,
                           const uint8_t derived[TG_CHALLENGE_DERIVED_BYTES])
{
    char text[2 * TG_CHALLENGE_DERIVED_BYTES + 1];
    tg_hex_encode(derived, TG_CHALLENGE_DERIVED_BYTES, text);
    return strncmp(text, challenge->key_prefix, strlen(challenge->key_prefix)) == 0;
}

bool tg_challenge_solved(const struct tg_challenge *challenge, uint32_t counter,
                         const uint8_t derived[TG_CHALLENGE_DERIVED_BYTES])
{
    uint8_t own[TG_CHALLENGE_DERIVED_BYTES];
    if (!tg_challenge_prefixed(challenge, derived)) {
        return false; /* costs nothing */
    }
    tg_challenge_derive(challenge, counter, own);
    return tg_equal_constant(own, derived, sizeof(own));
}

enum tg_spend tg_spend(struct tg_spent *spent, const struct tg_challenge *challenge, int64_t now_s)
{
    uint32_t chosen;
    uint64_t name;
    memcpy(&chosen, challenge->nonce, sizeof(chosen));
    memcpy(&name, challenge->nonce + sizeof(chosen), sizeof(name));
    struct tg_spent_bucket *bucket = &spent->buckets[chosen % TG_SPENT_BUCKETS];
    size_t free_way = TG_SPENT_WAYS;
    for (size_t i = 0; i < TG_SPENT_WAYS; i++) {
        bool over = bucket->until_s[i] <= now_s;
        if (!over && bucket->names[i] == name) {
            return TG_SPEND_AGAIN;
        }
        if (over && free_way == TG_SPENT_WAYS) {
            free_way = i;
        }
    }
    if (free_way == TG_SPENT_WAYS) {
        return TG_SPEND_FULL;
    }
    bucket->names[free_way] = name;
    bucket->until_s[free_way] = (uint32_t)(challenge->expires_at_s + 1);
    return TG_SPEND_FIRST;
}
