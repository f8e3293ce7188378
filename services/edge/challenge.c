/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/challenge.h"

#include "lib/io/now.h"
#include "services/edge/answer.h"

#include <sodium.h>
#include <string.h>

enum { ANSWER_BYTES = TG_CHALLENGE_TEXT_BYTES + 128, COOKIE_BYTES = TG_MAX_CHALLENGE_BYTES };

static int64_t now_s(const struct edge_request *request)
{
    return request->now.wall.ms / 1000;
}

/* Whom a new place would be for; `holder` NULL: the visitor named by the challenge. */
static struct tg_challenge_scope ticket_scope(const struct edge_request *request,
                                              const struct edge_caller *caller)
{
    return (struct tg_challenge_scope){.sale = request->sale->name,
                                       .generation = request->sale->sale->generation,
                                       .opens = tg_challenge_before_name(TG_CHALLENGE_TICKET),
                                       .holder = caller->kind == EDGE_CALLER_BUYER ? &caller->user
                                                                                   : NULL};
}

static struct tg_challenge_scope pass_scope(const struct edge_request *request,
                                            const struct tg_ticket *ticket)
{
    return (struct tg_challenge_scope){.sale = request->sale->name,
                                       .generation = ticket->generation,
                                       .opens = tg_challenge_before_name(TG_CHALLENGE_PASS),
                                       .holder = &ticket->holder,
                                       .index = ticket->index};
}

/* One that is given before the opening ends at it: nobody can keep a store of them for the rush. */
static int64_t expires_at_s(const struct edge_request *request)
{
    int64_t end_s = now_s(request) + TG_MAX_CHALLENGE_LIFE_S;
    int64_t opens_s = request->sale->sale->opens_at.ms / 1000;
    return edge_arrival(request->sale->sale, request->now) == EDGE_ARRIVAL_EARLY && opens_s < end_s
               ? opens_s
               : end_s;
}

/* {"parameters":{...},"signature":"..."} */
static void write_challenge(struct edge_request *request, const struct tg_challenge_scope *scope,
                            struct edge_writer *writer)
{
    const uint8_t *key = request->edge->challenge;
    uint8_t signature[TG_CHALLENGE_SIGNATURE_BYTES];
    char text[TG_CHALLENGE_TEXT_BYTES], hex[2 * sizeof(signature) + 1];
    struct tg_effort effort =
        tg_challenge_effort(tg_rush_count(&request->sale->rush, now_s(request)));
    struct tg_challenge challenge = {.cost = effort.cost,
                                     .expires_at_s = expires_at_s(request),
                                     .patient_at_s = now_s(request) + effort.patience_s};
    memcpy(challenge.key_prefix, effort.key_prefix, strlen(effort.key_prefix) + 1);
    tg_random(challenge.nonce, sizeof(challenge.nonce));
    tg_random(challenge.salt, sizeof(challenge.salt));
    tg_challenge_bind(key, scope, &challenge);
    tg_challenge_text(&challenge, text);
    tg_challenge_sign(key, &challenge, signature);
    tg_hex_encode(signature, sizeof(signature), hex);
    edge_write(writer, "{\"parameters\":");
    edge_write(writer, text);
    edge_write(writer, ",\"signature\":\"");
    edge_write(writer, hex);
    edge_write(writer, "\"}");
}

static void answer_challenge(struct edge_request *request, const struct tg_challenge_scope *scope)
{
    char text[ANSWER_BYTES];
    struct edge_writer writer;
    edge_write_begin(&writer, text, sizeof(text));
    write_challenge(request, scope, &writer);
    edge_answer_json(request, NULL, &writer);
}

static enum tg_reason ticket_allowed(const struct edge_request *request,
                                     const struct edge_caller *caller)
{
    bool refused = caller->kind == EDGE_CALLER_REFUSED || caller->kind == EDGE_CALLER_SERVICE ||
                   (tg_sale_draws(request->sale->sale) && caller->kind != EDGE_CALLER_BUYER);
    return refused ? TG_REASON_SIGN_IN_REQUIRED : TG_REASON_NONE;
}

static void give_for_ticket(struct edge_request *request)
{
    struct edge_caller caller;
    enum tg_reason reason = edge_caller(request, &caller);
    if (reason == TG_REASON_NONE) {
        reason = ticket_allowed(request, &caller);
    }
    if (reason != TG_REASON_NONE) {
        edge_refuse_reason(request, reason);
        return;
    }
    const struct tg_challenge_scope scope = ticket_scope(request, &caller);
    answer_challenge(request, &scope);
}

static void give_for_pass(struct edge_request *request)
{
    struct edge_shown shown;
    struct tg_ticket ticket;
    enum tg_reason reason = edge_shown_ticket(request, &shown);
    if (reason == TG_REASON_NONE) {
        reason = shown.text == NULL ? TG_REASON_TICKET_REQUIRED
                                    : edge_open_ticket(request, &shown, &ticket);
    }
    if (reason == TG_REASON_NONE &&
        edge_arrival(request->sale->sale, request->now) == EDGE_ARRIVAL_EARLY) {
        reason = TG_REASON_SALE_NOT_OPEN;
    }
    if (reason != TG_REASON_NONE) {
        edge_refuse_reason(request, reason);
        return;
    }
    const struct tg_challenge_scope scope = pass_scope(request, &ticket);
    answer_challenge(request, &scope);
}

void edge_challenge(struct edge_request *request)
{
    enum edge_state state = edge_state(&request->view, request->now);
    if (request->sale->sale->challenge == TG_CHALLENGE_NONE) {
        edge_refuse_reason(request, TG_REASON_NOT_FOUND);
    } else if (state == EDGE_CLOSED || state == EDGE_SOLD_OUT) {
        edge_refuse_reason(request,
                           state == EDGE_CLOSED ? TG_REASON_SALE_CLOSED : TG_REASON_SOLD_OUT);
    } else if (request->sale->sale->challenge == TG_CHALLENGE_TICKET) {
        give_for_ticket(request);
    } else {
        give_for_pass(request);
    }
}

/* What the caller shows: NONE with text, CHALLENGE_REQUIRED without, MALFORMED when it came twice.
 */
static enum tg_reason shown_answer(const struct edge_request *request, struct edge_shown *out_shown)
{
    unsigned headers, cookies;
    const char *header = tg_http_header(request->exchange, "x-challenge", &headers);
    const char *cookie = tg_http_header(request->exchange, "cookie", &cookies);
    *out_shown = (struct edge_shown){.text = header};
    if (headers > 1 || cookies > 1) {
        return TG_REASON_MALFORMED;
    }
    if (header != NULL) {
        out_shown->length = strlen(header);
        return TG_REASON_NONE;
    }
    bool found = cookie != NULL && edge_cookie(cookie, "tgc_", request->sale->name, out_shown);
    return found ? TG_REASON_NONE : TG_REASON_CHALLENGE_REQUIRED;
}

static enum tg_reason judge_shown(struct edge_request *request,
                                  const struct tg_challenge_scope *scope,
                                  struct edge_solution *out_solution)
{
    struct edge_shown shown;
    const struct edge_proof proof = {.key = request->edge->challenge,
                                     .scope = scope,
                                     .spent = &request->edge->spent,
                                     .now_s = now_s(request)};
    enum tg_reason reason = shown_answer(request, &shown);
    if (reason == TG_REASON_NONE) {
        reason = edge_solution(shown.text, shown.length, out_solution);
    }
    if (reason == TG_REASON_NONE) {
        reason = edge_solution_judge(out_solution, &proof);
    }
    bool told = reason == TG_REASON_NONE || reason == TG_REASON_TRY_AGAIN || !shown.by_cookie;
    return told ? reason : TG_REASON_CHALLENGE_REQUIRED; /* a browser cannot help its cookie */
}

enum tg_reason edge_challenge_ticket(struct edge_request *request, const struct edge_caller *caller,
                                     struct tg_holder *out_holder)
{
    struct edge_solution solution;
    const struct tg_challenge_scope scope = ticket_scope(request, caller);
    enum tg_reason reason = ticket_allowed(request, caller);
    if (reason == TG_REASON_NONE) {
        reason = judge_shown(request, &scope, &solution);
    }
    if (reason != TG_REASON_NONE) {
        return reason;
    }
    if (scope.holder != NULL) {
        *out_holder = *scope.holder;
    } else {
        *out_holder =
            (struct tg_holder){.kind = TG_HOLDER_VISITOR, .length = TG_CHALLENGE_NONCE_BYTES};
        memcpy(out_holder->bytes, solution.challenge.nonce, TG_CHALLENGE_NONCE_BYTES);
    }
    return TG_REASON_NONE;
}

enum tg_reason edge_challenge_pass(struct edge_request *request, struct edge_place *place)
{
    struct edge_solution solution;
    struct edge_shown shown;
    struct tg_ticket *ticket = &place->ticket;
    if (request->sale->sale->challenge != TG_CHALLENGE_PASS || ticket->proved ||
        shown_answer(request, &shown) == TG_REASON_CHALLENGE_REQUIRED) {
        return TG_REASON_NONE;
    }
    const struct tg_challenge_scope scope = pass_scope(request, ticket);
    enum tg_reason reason = judge_shown(request, &scope, &solution);
    if (reason != TG_REASON_NONE) {
        return reason;
    }
    ticket->proved = true;
    edge_place_seal(request->edge, place);
    return TG_REASON_NONE;
}

/* Seconds until the cookie's challenge counts; 0 when there is none of this scope to wait for. */
static int64_t kept_patience(const struct edge_request *request,
                             const struct tg_challenge_scope *scope)
{
    struct edge_shown shown;
    struct edge_solution solution;
    const uint8_t *key = request->edge->challenge;
    if (shown_answer(request, &shown) != TG_REASON_NONE || !shown.by_cookie ||
        edge_solution(shown.text, shown.length, &solution) != TG_REASON_NONE ||
        !tg_challenge_signed(key, &solution.challenge, solution.signature) ||
        !tg_challenge_bound(key, scope, &solution.challenge) ||
        solution.challenge.patient_at_s >= solution.challenge.expires_at_s) {
        return 0;
    }
    int64_t left_s = solution.challenge.patient_at_s - now_s(request);
    return left_s > 0 ? left_s : 0;
}

/* Set-Cookie of a challenge to be shown unsolved. */
static void write_cookie(struct edge_request *request, const struct tg_challenge_scope *scope,
                         struct edge_writer *headers)
{
    char json[ANSWER_BYTES], base64[COOKIE_BYTES];
    struct edge_writer writer;
    _Static_assert((ANSWER_BYTES + 2) / 3 * 4 < COOKIE_BYTES, "the cookie can be shown again");
    edge_write_begin(&writer, json, sizeof(json));
    edge_write(&writer, "{\"challenge\":");
    write_challenge(request, scope, &writer);
    edge_write(&writer, "}");
    edge_write_end(&writer);
    sodium_bin2base64(base64, sizeof(base64), (const uint8_t *)json, writer.length,
                      sodium_base64_VARIANT_ORIGINAL);
    edge_write_cookie(request, "tgc_", base64, TG_MAX_CHALLENGE_LIFE_S, headers);
}

int64_t edge_challenge_patience(struct edge_request *request, struct edge_writer *headers)
{
    struct edge_caller caller;
    if (edge_caller(request, &caller) != TG_REASON_NONE) {
        return 0;
    }
    const struct tg_challenge_scope scope = ticket_scope(request, &caller);
    int64_t left_s = kept_patience(request, &scope);
    if (left_s > 0) {
        return left_s;
    }
    write_cookie(request, &scope, headers);
    return tg_challenge_effort(request->sale->rush.count).patience_s;
}
