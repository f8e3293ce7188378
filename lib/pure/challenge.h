/* SPDX-License-Identifier: Apache-2.0
 * A proof of work in the form of ALTCHA v2: signed parameters, and an answer that anyone's widget
 * can find. The answer to a challenge is work (a counter whose derived key begins with the prefix)
 * or patience (the challenge itself, shown again after `patient_at_s`). Pure: keys, randomness and
 * time are arguments. Source: docs/decisions/0016-the-challenge.md. */
#ifndef TG_PURE_CHALLENGE_H
#define TG_PURE_CHALLENGE_H

#include "lib/pure/identity.h"

#include <stdbool.h>
#include <stdint.h>

#define TG_CHALLENGE_ALGORITHM "PBKDF2/SHA-256"

enum {
    TG_CHALLENGE_NONCE_BYTES = 16,
    TG_CHALLENGE_BOUND_BYTES = 16,
    TG_CHALLENGE_DERIVED_BYTES = 32,
    TG_CHALLENGE_SIGNATURE_BYTES = 32,
    TG_CHALLENGE_PREFIX_LENGTH = 4, /* hex digits, at most */
    TG_CHALLENGE_COST_MAX = 2000,
    TG_CHALLENGE_TEXT_BYTES = 512 /* the parameters as JSON, with NUL */
};

struct tg_challenge {
    uint32_t cost;                                   /* iterations of one derivation */
    char key_prefix[TG_CHALLENGE_PREFIX_LENGTH + 1]; /* lower-case hex digits */
    uint8_t nonce[TG_CHALLENGE_NONCE_BYTES], salt[TG_CHALLENGE_NONCE_BYTES];
    uint8_t bound[TG_CHALLENGE_BOUND_BYTES]; /* whom and what it is for */
    int64_t expires_at_s, patient_at_s;      /* Unix seconds */
};

/* How much is asked when so many challenges a second are given. */
struct tg_effort {
    uint32_t cost;
    const char *key_prefix;
    uint32_t patience_s; /* for those who wait instead */
};
struct tg_effort tg_challenge_effort(uint32_t per_second);

/* Challenges of the present and the last second; counts one more and returns the larger. */
struct tg_rush {
    int64_t second;
    uint32_t count, before;
};
uint32_t tg_rush_count(struct tg_rush *rush, int64_t now_s);

/* The secret that signs challenges: edges that share the entrant key share it. */
void tg_challenge_key(const uint8_t entrant_key[TG_KEY_BYTES], uint8_t out_key[TG_KEY_BYTES]);

/* bound = MAC over (sale, generation, what it opens, holder, index). `holder` NULL: whoever has
 * the challenge, as the visitor that its nonce names. `index` is a ticket's, 0 before it has one.
 */
struct tg_challenge_scope {
    const char *sale;
    uint64_t generation;
    const char *opens; /* "ticket" or "pass" */
    const struct tg_holder *holder;
    uint64_t index;
};
void tg_challenge_bind(const uint8_t key[TG_KEY_BYTES], const struct tg_challenge_scope *scope,
                       struct tg_challenge *challenge);
bool tg_challenge_bound(const uint8_t key[TG_KEY_BYTES], const struct tg_challenge_scope *scope,
                        const struct tg_challenge *challenge);

/* The parameters as ALTCHA signs them: JSON without spaces, names in order. Every field has quotes
 * or its own slot, so none can slide into its neighbour (case-27). Returns the length. */
size_t tg_challenge_text(const struct tg_challenge *challenge,
                         char out_text[TG_CHALLENGE_TEXT_BYTES]);

/* HMAC-SHA-256 over that text; the key is the lower-case hex of `key`, as ALTCHA's libraries take
 * secrets as text. */
void tg_challenge_sign(const uint8_t key[TG_KEY_BYTES], const struct tg_challenge *challenge,
                       uint8_t out_signature[TG_CHALLENGE_SIGNATURE_BYTES]);
bool tg_challenge_signed(const uint8_t key[TG_KEY_BYTES], const struct tg_challenge *challenge,
                         const uint8_t signature[TG_CHALLENGE_SIGNATURE_BYTES]);

/* derived = PBKDF2-HMAC-SHA-256(nonce || counter as 4 bytes big-endian, salt, cost), RFC 8018. */
void tg_challenge_derive(const struct tg_challenge *challenge, uint32_t counter,
                         uint8_t out_derived[TG_CHALLENGE_DERIVED_BYTES]);
bool tg_challenge_prefixed(const struct tg_challenge *challenge,
                           const uint8_t derived[TG_CHALLENGE_DERIVED_BYTES]);
/* Costs one derivation: about half a microsecond per iteration. */
bool tg_challenge_solved(const struct tg_challenge *challenge, uint32_t counter,
                         const uint8_t derived[TG_CHALLENGE_DERIVED_BYTES]);

/* Challenges spent and not yet expired, of one process: a fixed table, no heap. A nonce is random
 * and ours, so its own bytes choose the bucket. All zeros: empty. */
enum { TG_SPENT_BUCKETS = 16384, TG_SPENT_WAYS = 16 };
struct tg_spent {
    struct tg_spent_bucket {
        uint64_t names[TG_SPENT_WAYS];
        uint32_t until_s[TG_SPENT_WAYS]; /* free again at this second */
    } buckets[TG_SPENT_BUCKETS];
};
enum tg_spend { TG_SPEND_FIRST, TG_SPEND_AGAIN, TG_SPEND_FULL };
enum tg_spend tg_spend(struct tg_spent *spent, const struct tg_challenge *challenge, int64_t now_s);

#endif
