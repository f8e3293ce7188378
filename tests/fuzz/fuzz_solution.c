/* SPDX-License-Identifier: Apache-2.0
 * Answers to a challenge. The input is the JSON (the base64 around it is put on here) or, with an
 * odd first byte, the base64 itself. What is read is within every bound and says itself again;
 * what is judged right was signed by us, and counts once. */
#include "tests/fuzz/fuzz.h"

#include "services/edge/solution.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

static const uint8_t key[TG_KEY_BYTES] = {7};
static struct tg_spent spent;

static size_t say_again(const struct edge_solution *solution, char *out_base64, size_t capacity)
{
    char text[TG_CHALLENGE_TEXT_BYTES], json[2 * TG_CHALLENGE_TEXT_BYTES];
    char signature[2 * TG_CHALLENGE_SIGNATURE_BYTES + 1], derived[65];
    tg_challenge_text(&solution->challenge, text);
    tg_hex_encode(solution->signature, sizeof(solution->signature), signature);
    tg_hex_encode(solution->derived, sizeof(solution->derived), derived);
    int length =
        snprintf(json, sizeof(json), "{\"challenge\":{\"parameters\":%s,\"signature\":\"%s\"}",
                 text, signature);
    length +=
        snprintf(json + length, sizeof(json) - (size_t)length,
                 solution->worked ? ",\"solution\":{\"counter\":%u,\"derivedKey\":\"%s\"}}" : "}",
                 solution->counter, derived);
    sodium_bin2base64(out_base64, capacity, (const uint8_t *)json, (size_t)length,
                      sodium_base64_VARIANT_ORIGINAL);
    return strlen(out_base64);
}

static void check_read(const struct edge_solution *solution)
{
    char base64[4096], text[TG_CHALLENGE_TEXT_BYTES], text_again[TG_CHALLENGE_TEXT_BYTES];
    struct edge_solution again;
    HOLDS(solution->challenge.cost >= 1 && solution->challenge.cost <= TG_CHALLENGE_COST_MAX);
    size_t length = say_again(solution, base64, sizeof(base64));
    HOLDS(edge_solution(base64, length, &again) == TG_REASON_NONE);
    tg_challenge_text(&solution->challenge, text);
    tg_challenge_text(&again.challenge, text_again);
    HOLDS(strcmp(text, text_again) == 0);
    HOLDS(again.worked == solution->worked && again.counter == solution->counter);
    HOLDS(memcmp(again.derived, solution->derived, sizeof(again.derived)) == 0);
}

static void check_judged(const struct edge_solution *solution)
{
    const struct tg_challenge_scope scope = {"demo", 3, "ticket", NULL, 0};
    const struct edge_proof proof = {key, &scope, &spent, 1791916500};
    enum tg_reason reason = edge_solution_judge(solution, &proof);
    if (reason == TG_REASON_NONE) {
        HOLDS(tg_challenge_signed(key, &solution->challenge, solution->signature));
        HOLDS(tg_challenge_bound(key, &scope, &solution->challenge));
        HOLDS(solution->challenge.expires_at_s > proof.now_s);
        HOLDS(edge_solution_judge(solution, &proof) == TG_REASON_CHALLENGE_SPENT);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    char base64[2 * TG_MAX_CHALLENGE_BYTES];
    struct edge_solution solution;
    if (size == 0 || size > TG_MAX_CHALLENGE_BYTES) {
        return 0;
    }
    memset(&spent, 0, sizeof(spent));
    memset(&solution, 0, sizeof(solution));
    if (bytes[0] % 2 == 1) {
        if (edge_solution((const char *)bytes + 1, size - 1, &solution) == TG_REASON_NONE) {
            check_read(&solution);
        }
        return 0;
    }
    sodium_bin2base64(base64, sizeof(base64), bytes + 1, size - 1, sodium_base64_VARIANT_ORIGINAL);
    if (edge_solution(base64, strlen(base64), &solution) == TG_REASON_NONE) {
        check_read(&solution);
        check_judged(&solution);
    }
    return 0;
}
