/* SPDX-License-Identifier: Apache-2.0
 * The answer to a challenge, as ALTCHA's widget sends it: base64 of
 * {"challenge":{"parameters":{...},"signature":hex},"solution":{"counter":n,"derivedKey":hex}}.
 * Without "solution" it is the challenge itself, for those who wait instead. */
#ifndef EDGE_SOLUTION_H
#define EDGE_SOLUTION_H

#include "lib/pure/challenge.h"
#include "lib/pure/limit.h"
#include "lib/pure/reason.h"

struct edge_solution {
    struct tg_challenge challenge;
    uint8_t signature[TG_CHALLENGE_SIGNATURE_BYTES];
    bool worked; /* has a solution */
    uint32_t counter;
    uint8_t derived[TG_CHALLENGE_DERIVED_BYTES];
};

/* Reads it strictly; nothing of it is to be believed yet. Members we do not know are passed over.
 * NONE or CHALLENGE_INVALID. */
enum tg_reason edge_solution(const char *text, size_t length, struct edge_solution *out_solution);

/* What is judged besides: the secret, for whom and what, the time, and what was spent. */
struct edge_proof {
    const uint8_t *key;
    const struct tg_challenge_scope *scope;
    struct tg_spent *spent;
    int64_t now_s;
};
/* NONE once. Spent before it is checked, so that one challenge costs us one derivation at most.
 * CHALLENGE_INVALID, _EXPIRED, _SPENT; CHALLENGE_REQUIRED while patience is not over; TRY_AGAIN
 * when too many are remembered. */
enum tg_reason edge_solution_judge(const struct edge_solution *solution,
                                   const struct edge_proof *proof);

#endif
