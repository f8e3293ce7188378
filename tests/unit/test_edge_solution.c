/* SPDX-License-Identifier: Apache-2.0
 * Answers to a challenge: read strictly, judged once. */
#include "tests/unit/cmocka_tests.h"

#include "services/edge/solution.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOW_S = 1791916500, TEXT_BYTES = 4096 };

static const uint8_t key[TG_KEY_BYTES] = {7};
static struct tg_spent spent;
static const struct tg_holder usr_1 = {.kind = TG_HOLDER_USER, .length = 5, .bytes = "usr_1"};
static const struct tg_challenge_scope scope = {"demo", 3, "ticket", &usr_1, 0};

static int forget(void **state)
{
    memset(&spent, 0, sizeof(spent));
    return 0;
}

static struct tg_challenge issued(void)
{
    struct tg_challenge challenge = {.cost = 5,
                                     .key_prefix = "0",
                                     .nonce = {1, 2, 3, 4, 5, 6, 7, 8, 9},
                                     .salt = {4, 5, 6},
                                     .expires_at_s = NOW_S + 300,
                                     .patient_at_s = NOW_S + 20};
    tg_challenge_bind(key, &scope, &challenge);
    return challenge;
}

/* The JSON of a challenge with its signature; `solution` is put behind it. */
static void say(const struct tg_challenge *challenge, const char *solution, char out_json[])
{
    char text[TG_CHALLENGE_TEXT_BYTES], hex[2 * TG_CHALLENGE_SIGNATURE_BYTES + 1];
    uint8_t signature[TG_CHALLENGE_SIGNATURE_BYTES];
    tg_challenge_text(challenge, text);
    tg_challenge_sign(key, challenge, signature);
    tg_hex_encode(signature, sizeof(signature), hex);
    snprintf(out_json, TEXT_BYTES, "{\"challenge\":{\"parameters\":%s,\"signature\":\"%s\"}%s}",
             text, hex, solution);
}

static enum tg_reason read_json(const char *json, struct edge_solution *out_solution)
{
    char base64[2 * TEXT_BYTES];
    sodium_bin2base64(base64, sizeof(base64), (const uint8_t *)json, strlen(json),
                      sodium_base64_VARIANT_ORIGINAL);
    return edge_solution(base64, strlen(base64), out_solution);
}

static uint32_t solve(const struct tg_challenge *challenge, char out_hex[])
{
    uint8_t derived[TG_CHALLENGE_DERIVED_BYTES];
    uint32_t counter = 0;
    tg_challenge_derive(challenge, counter, derived);
    while (!tg_challenge_prefixed(challenge, derived)) {
        tg_challenge_derive(challenge, ++counter, derived);
    }
    tg_hex_encode(derived, sizeof(derived), out_hex);
    return counter;
}

static struct edge_solution solved(const struct tg_challenge *challenge)
{
    char json[TEXT_BYTES], solution[256], hex[2 * TG_CHALLENGE_DERIVED_BYTES + 1];
    struct edge_solution read;
    uint32_t counter = solve(challenge, hex);
    snprintf(solution, sizeof(solution),
             ",\"solution\":{\"counter\":%u,\"derivedKey\":\"%s\",\"time\":12.5}", counter, hex);
    say(challenge, solution, json);
    assert_int_equal(read_json(json, &read), TG_REASON_NONE);
    return read;
}

static enum tg_reason judge_for(const struct edge_solution *solution,
                                const struct tg_challenge_scope *of, int64_t now_s)
{
    const struct edge_proof proof = {key, of, &spent, now_s};
    return edge_solution_judge(solution, &proof);
}

static void case_27_a_solution_counts_once(void **state)
{
    struct tg_challenge challenge = issued();
    struct edge_solution solution = solved(&challenge);
    assert_int_equal(judge_for(&solution, &scope, NOW_S), TG_REASON_NONE);
    assert_int_equal(judge_for(&solution, &scope, NOW_S), TG_REASON_CHALLENGE_SPENT);
}

static void case_27_not_by_another_account_nor_for_another_sale(void **state)
{
    struct tg_holder usr_2 = {.kind = TG_HOLDER_USER, .length = 5, .bytes = "usr_2"};
    const struct tg_challenge_scope others[] = {{"demo", 3, "ticket", &usr_2, 0},
                                                {"demo", 3, "ticket", NULL, 0},
                                                {"other", 3, "ticket", &usr_1, 0},
                                                {"demo", 4, "ticket", &usr_1, 0},
                                                {"demo", 3, "pass", &usr_1, 0}};
    struct tg_challenge challenge = issued();
    struct edge_solution solution = solved(&challenge);
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        assert_int_equal(judge_for(&solution, &others[i], NOW_S), TG_REASON_CHALLENGE_INVALID);
    }
    assert_int_equal(judge_for(&solution, &scope, NOW_S), TG_REASON_NONE); /* not spent by them */
}

static void case_27_nothing_counts_after_its_end(void **state)
{
    struct tg_challenge challenge = issued();
    struct edge_solution solution = solved(&challenge);
    assert_int_equal(judge_for(&solution, &scope, NOW_S + 300), TG_REASON_CHALLENGE_EXPIRED);
    assert_int_equal(judge_for(&solution, &scope, NOW_S + 299), TG_REASON_NONE);
}

static void a_wrong_answer_spends_the_challenge(void **state)
{
    struct tg_challenge challenge = issued();
    struct edge_solution wrong = solved(&challenge), right = wrong;
    wrong.counter++;
    assert_int_equal(judge_for(&wrong, &scope, NOW_S), TG_REASON_CHALLENGE_INVALID);
    assert_int_equal(judge_for(&right, &scope, NOW_S), TG_REASON_CHALLENGE_SPENT);
}

static void a_changed_challenge_is_not_ours(void **state)
{
    struct tg_challenge challenge = issued();
    struct edge_solution solution = solved(&challenge);
    solution.challenge.expires_at_s += 300; /* solved rightly, and made to last */
    assert_int_equal(judge_for(&solution, &scope, NOW_S), TG_REASON_CHALLENGE_INVALID);
    solution = solved(&challenge);
    solution.challenge.cost = 1;
    assert_int_equal(judge_for(&solution, &scope, NOW_S), TG_REASON_CHALLENGE_INVALID);
}

static void patience_counts_as_work_and_once(void **state)
{
    struct tg_challenge challenge = issued();
    struct edge_solution waited;
    char json[TEXT_BYTES];
    say(&challenge, "", json);
    assert_int_equal(read_json(json, &waited), TG_REASON_NONE);
    assert_false(waited.worked);
    assert_int_equal(judge_for(&waited, &scope, NOW_S + 19), TG_REASON_CHALLENGE_REQUIRED);
    assert_int_equal(judge_for(&waited, &scope, NOW_S + 20), TG_REASON_NONE);
    assert_int_equal(judge_for(&waited, &scope, NOW_S + 21), TG_REASON_CHALLENGE_SPENT);
}

static void what_is_read_is_what_was_said(void **state)
{
    struct tg_challenge challenge = issued();
    struct edge_solution solution = solved(&challenge);
    assert_memory_equal(&solution.challenge.nonce, challenge.nonce, sizeof(challenge.nonce));
    assert_memory_equal(&solution.challenge.salt, challenge.salt, sizeof(challenge.salt));
    assert_memory_equal(&solution.challenge.bound, challenge.bound, sizeof(challenge.bound));
    assert_string_equal(solution.challenge.key_prefix, challenge.key_prefix);
    assert_int_equal(solution.challenge.cost, challenge.cost);
    assert_true(solution.challenge.expires_at_s == challenge.expires_at_s &&
                solution.challenge.patient_at_s == challenge.patient_at_s);
    assert_true(solution.worked);
}

/* Replaces `from` in the JSON of a right answer. */
static enum tg_reason read_changed(const char *from, const char *to)
{
    struct tg_challenge challenge = issued();
    struct edge_solution solution;
    char json[TEXT_BYTES], changed[2 * TEXT_BYTES], good[128], hex[65];
    uint32_t counter = solve(&challenge, hex);
    snprintf(good, sizeof(good), ",\"solution\":{\"counter\":%u,\"derivedKey\":\"%s\"}", counter,
             hex);
    say(&challenge, good, json);
    char *at = strstr(json, from);
    assert_non_null(at);
    snprintf(changed, sizeof(changed), "%.*s%s%s", (int)(at - json), json, to, at + strlen(from));
    return read_json(changed, &solution);
}

static void odd_spellings_are_refused(void **state)
{
    static const struct {
        const char *from, *to;
    } changes[] = {
        {"PBKDF2/SHA-256", "SHA-256"},
        {"\"cost\":5", "\"cost\":0"},
        {"\"cost\":5", "\"cost\":2001"},
        {"\"cost\":5", "\"cost\":5.0"},
        {"\"cost\":5", "\"cost\":\"5\""},
        {"\"cost\":5", "\"cost\":5,\"cost\":5"},
        {"\"keyLength\":32", "\"keyLength\":16"},
        {"\"keyPrefix\":\"0\"", "\"keyPrefix\":\"\""},
        {"\"keyPrefix\":\"0\"", "\"keyPrefix\":\"00000\""},
        {"\"keyPrefix\":\"0\"", "\"keyPrefix\":\"A\""},
        {"\"nonce\":\"01", "\"nonce\":\"0"},
        {"\"salt\":\"04", "\"salt\":\"G4"},
        {"\"expiresAt\":1", "\"expiresAt\":-1"},
        {"\"patientAt\":1", "\"patientAt\":99991"},
        {"\"signature\":\"", "\"signature\":\"00"},
        {"\"counter\":", "\"counter\":-"},
        {"\"counter\":", "\"counter\":4294967296"},
        {"\"derivedKey\":\"", "\"derivedKey\":\"0"},
        {"\"solution\":{", "\"solution\":[{"},
        {"{\"challenge\":{", "{\"challenge\":{\"challenge\":{"},
    };
    assert_int_equal(read_changed("\"cost\":5", "\"cost\":5,\"further\":[]"), TG_REASON_NONE);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        assert_int_equal(read_changed(changes[i].from, changes[i].to), TG_REASON_CHALLENGE_INVALID);
    }
}

static void what_is_no_base64_is_refused(void **state)
{
    struct edge_solution solution;
    static const char *const texts[] = {"", "!", "e30", "e30=", "e30= ", "bnVsbA==", "W10="};
    char longer[TG_MAX_CHALLENGE_BYTES + 2];
    memset(longer, 'A', sizeof(longer));
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_int_equal(edge_solution(texts[i], strlen(texts[i]), &solution),
                         TG_REASON_CHALLENGE_INVALID);
    }
    assert_int_equal(edge_solution(longer, sizeof(longer), &solution), TG_REASON_CHALLENGE_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(case_27_a_solution_counts_once, forget),
        cmocka_unit_test_setup(case_27_not_by_another_account_nor_for_another_sale, forget),
        cmocka_unit_test_setup(case_27_nothing_counts_after_its_end, forget),
        cmocka_unit_test_setup(a_wrong_answer_spends_the_challenge, forget),
        cmocka_unit_test_setup(a_changed_challenge_is_not_ours, forget),
        cmocka_unit_test_setup(patience_counts_as_work_and_once, forget),
        cmocka_unit_test(what_is_read_is_what_was_said),
        cmocka_unit_test(odd_spellings_are_refused),
        cmocka_unit_test(what_is_no_base64_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
