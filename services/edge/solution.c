/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/solution.h"

#include <jansson.h>
#include <sodium.h>
#include <string.h>

static bool read_hex(const json_t *object, const char *name, uint8_t *out_bytes, size_t length)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) &&
           tg_hex_decode(json_string_value(value), json_string_length(value), out_bytes, length) ==
               0;
}

static bool read_number(const json_t *object, const char *name, int64_t max, int64_t *out_number)
{
    const json_t *value = json_object_get(object, name);
    *out_number = json_integer_value(value);
    return json_is_integer(value) && *out_number >= 0 && *out_number <= max;
}

static bool is_text(const json_t *object, const char *name, const char *wanted)
{
    const json_t *value = json_object_get(object, name);
    return json_is_string(value) && strcmp(json_string_value(value), wanted) == 0;
}

static bool read_prefix(const json_t *object, struct tg_challenge *out)
{
    const json_t *value = json_object_get(object, "keyPrefix");
    size_t length = json_string_length(value);
    if (length < 1 || length > TG_CHALLENGE_PREFIX_LENGTH ||
        strspn(json_string_value(value), "0123456789abcdef") != length) {
        return false;
    }
    memcpy(out->key_prefix, json_string_value(value), length + 1);
    return true;
}

static bool read_parameters(const json_t *parameters, struct tg_challenge *out)
{
    const json_t *data = json_object_get(parameters, "data");
    int64_t cost, key_length;
    if (!is_text(parameters, "algorithm", TG_CHALLENGE_ALGORITHM) ||
        !read_number(parameters, "cost", TG_CHALLENGE_COST_MAX, &cost) ||
        !read_number(parameters, "keyLength", TG_CHALLENGE_DERIVED_BYTES, &key_length) ||
        key_length != TG_CHALLENGE_DERIVED_BYTES || cost < 1) {
        return false;
    }
    out->cost = (uint32_t)cost;
    return read_prefix(parameters, out) &&
           read_number(parameters, "expiresAt", UINT32_MAX - 1, &out->expires_at_s) &&
           read_number(data, "patientAt", UINT32_MAX, &out->patient_at_s) &&
           read_hex(parameters, "nonce", out->nonce, sizeof(out->nonce)) &&
           read_hex(parameters, "salt", out->salt, sizeof(out->salt)) &&
           read_hex(data, "bound", out->bound, sizeof(out->bound));
}

static bool read_root(const json_t *root, struct edge_solution *out)
{
    const json_t *challenge = json_object_get(root, "challenge");
    const json_t *solution = json_object_get(root, "solution");
    int64_t counter = 0;
    out->worked = solution != NULL;
    if (out->worked && (!read_number(solution, "counter", UINT32_MAX, &counter) ||
                        !read_hex(solution, "derivedKey", out->derived, sizeof(out->derived)))) {
        return false;
    }
    out->counter = (uint32_t)counter;
    return read_hex(challenge, "signature", out->signature, sizeof(out->signature)) &&
           read_parameters(json_object_get(challenge, "parameters"), &out->challenge);
}

enum tg_reason edge_solution(const char *text, size_t length, struct edge_solution *out_solution)
{
    char json[TG_MAX_CHALLENGE_BYTES];
    size_t json_length;
    struct edge_solution solution = {.worked = false};
    if (length > TG_MAX_CHALLENGE_BYTES ||
        sodium_base642bin((unsigned char *)json, sizeof(json), text, length, NULL, &json_length,
                          NULL, sodium_base64_VARIANT_ORIGINAL) != 0) {
        return TG_REASON_CHALLENGE_INVALID;
    }
    json_t *root = json_loadb(json, json_length, JSON_REJECT_DUPLICATES, NULL);
    bool good = read_root(root, &solution);
    json_decref(root);
    if (!good) {
        return TG_REASON_CHALLENGE_INVALID;
    }
    *out_solution = solution;
    return TG_REASON_NONE;
}

enum tg_reason edge_solution_judge(const struct edge_solution *solution,
                                   const struct edge_proof *proof)
{
    const struct tg_challenge *challenge = &solution->challenge;
    if (!tg_challenge_signed(proof->key, challenge, solution->signature) ||
        !tg_challenge_bound(proof->key, proof->scope, challenge)) {
        return TG_REASON_CHALLENGE_INVALID;
    }
    if (challenge->expires_at_s <= proof->now_s) {
        return TG_REASON_CHALLENGE_EXPIRED;
    }
    if (!solution->worked && proof->now_s < challenge->patient_at_s) {
        return TG_REASON_CHALLENGE_REQUIRED;
    }
    switch (tg_spend(proof->spent, challenge, proof->now_s)) {
    case TG_SPEND_AGAIN:
        return TG_REASON_CHALLENGE_SPENT;
    case TG_SPEND_FULL:
        return TG_REASON_TRY_AGAIN;
    case TG_SPEND_FIRST:
        break;
    }
    bool met =
        !solution->worked || tg_challenge_solved(challenge, solution->counter, solution->derived);
    return met ? TG_REASON_NONE : TG_REASON_CHALLENGE_INVALID;
}
