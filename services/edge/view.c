/* SPDX-License-Identifier: Apache-2.0
 * The waiting page: a shell without any personal state, its files, and the same page with the
 * caller's state written in, for browsers without JavaScript. */
#include "services/edge/answer.h"
#include "services/edge/challenge.h"
#include "services/edge/page.h"
#include "services/edge/place.h"
#include "services/edge/words.h"

#include "lib/pure/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HTML "text/html; charset=utf-8"
#define CHALLENGE "challenge"
#define PAGE_POLICY                                                                                \
    "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'; img-src "   \
    "'self' data:; "                                                                               \
    "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; "               \
    "frame-ancestors 'none'\r\n"                                                                   \
    "X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n"

static void answer_file(struct edge_request *request, const char *name, const char *content_type,
                        const char *headers)
{
    size_t length;
    const char *bytes = edge_page_find(name, &length);
    if (bytes == NULL) {
        edge_refuse_reason(request, TG_REASON_NOT_FOUND);
        return;
    }
    const struct edge_reply reply = {.status = 200,
                                     .content_type = content_type,
                                     .headers = headers,
                                     .body = bytes,
                                     .length = length};
    edge_answer_public(request, &reply);
}

/* Words and the language of this caller. */
static const struct edge_words *words_of(const struct edge_request *request)
{
    const char *asked = NULL;
    size_t length = 0;
    edge_query(tg_http_query(request->exchange), "lang", &asked, &length);
    return edge_words_choose(asked, length,
                             tg_http_header(request->exchange, "accept-language", NULL));
}

/* The shell: the sale's name and the shop's addresses are put in, so it is the same for everybody.
 */
void edge_page(struct edge_request *request)
{
    static const char headers[] = "Cache-Control: public, max-age=60\r\n" PAGE_POLICY;
    const struct edge_page_value shared[] = {{"sale", request->sale->name},
                                             {"signInUrl", request->edge->settings.sign_in_url},
                                             {"payUrl", request->edge->settings.pay_url}};
    const struct edge_page_values values = {edge_words_choose(NULL, 0, NULL), shared,
                                            sizeof(shared) / sizeof(shared[0])};
    size_t length, text_length;
    char *text;
    const char *template = edge_page_find("index.html", &length);
    if (edge_page_render(template, &values, &text, &text_length) != 0) {
        edge_unknown(request);
        return;
    }
    const struct edge_reply reply = {.status = 200,
                                     .content_type = HTML,
                                     .headers = headers,
                                     .body = text,
                                     .length = text_length};
    edge_answer_public(request, &reply);
    free(text);
}

void edge_file(struct edge_request *request)
{
    static const struct {
        const char *ending, *content_type;
    } types[] = {{".css", "text/css; charset=utf-8"},
                 {".js", "text/javascript; charset=utf-8"},
                 {".json", EDGE_JSON},
                 {".svg", "image/svg+xml"}};
    const char *ending = strrchr(request->target.file, '.');
    for (size_t i = 0; ending != NULL && i < sizeof(types) / sizeof(types[0]); i++) {
        if (strcmp(types[i].ending, ending) == 0) {
            answer_file(
                request, request->target.file, types[i].content_type,
                "Cache-Control: public, max-age=300\r\nX-Content-Type-Options: nosniff\r\n");
            return;
        }
    }
    edge_refuse_reason(request, TG_REASON_NOT_FOUND);
}

/* What the template shows besides words; empty when not known. */
struct shown {
    const struct edge_place *place; /* NULL: the caller has none */
    const struct edge_words *words;
    const char *state;
    const char *order; /* NULL: of no sale */
    char number[24], position[24], estimate[24], minutes[24], remaining[24], patience[24];
    char updated[TG_RFC3339_BYTES], clock[9], opens[TG_RFC3339_BYTES], automatic[24];
};

/* `moves`: whether the line does; a wait is told of no other. */
static void format_standing(const struct edge_place *place, bool moves, struct shown *out)
{
    if (place->standing.known) {
        tg_unsigned_format(place->standing.rank + 1, out->number);
        tg_unsigned_format(place->standing.position, out->position);
    }
    if (moves && place->standing.known && place->standing.estimate_seconds < UINT64_MAX) {
        tg_unsigned_format(place->standing.estimate_seconds, out->estimate);
        tg_unsigned_format(place->standing.estimate_seconds / 60 + 1, out->minutes);
    }
}

/* "2026-12-01 10:00", where people wait for it. */
static void format_opening(const struct edge_request *request, struct shown *out)
{
    enum { MINUTE_BYTES = 16, DATE_BYTES = 10 };
    if (strcmp(out->state, edge_state_name(EDGE_SCHEDULED)) == 0 &&
        tg_wall_format(request->view.sale->opens_at, out->opens) == 0) {
        out->opens[DATE_BYTES] = ' ';
        out->opens[MINUTE_BYTES] = '\0';
    }
}

static void format_numbers(const struct edge_request *request, struct shown *out)
{
    uint64_t free, held;
    bool moves = strcmp(out->state, edge_waiter_state(EDGE_OPEN)) == 0;
    if (edge_units(&request->view, request->now, &free, &held)) {
        moves &= free > 0;
        tg_unsigned_format(request->view.sale->remaining_bucketed ? edge_bucket(free) : free,
                           out->remaining);
    }
    if (tg_wall_format(request->now.wall, out->updated) == 0) {
        memcpy(out->clock, strchr(out->updated, 'T') + 1, sizeof(out->clock) - 1); /* HH:MM:SS */
    } else {
        out->updated[0] = '\0';
    }
    if (out->place != NULL) {
        format_standing(out->place, moves, out);
    }
}

/* ?auto=30 asks for a refresh every 10 to 300 s. */
static void write_refresh(const struct edge_request *request, struct edge_writer *headers,
                          struct shown *shown)
{
    const char *text;
    size_t length;
    int64_t seconds;
    if (edge_query(tg_http_query(request->exchange), "auto", &text, &length) == 1 &&
        tg_integer_parse(text, length, 10, 300, &seconds) == 0) {
        tg_unsigned_format((uint64_t)seconds, shown->automatic);
        edge_write(headers, "Refresh: ");
        edge_write(headers, shown->automatic);
        edge_write(headers, "\r\n");
    }
}

/* The message "<before><key><behind>". */
static const char *say(const struct shown *shown, const char *before, const char *key,
                       const char *behind)
{
    char name[64];
    snprintf(name, sizeof(name), "%s%s%s", before, key, behind);
    return edge_words_say(shown->words, name);
}

/* Why a sale is paused; "" when it is not. */
static const char *pause_reason(const struct edge_request *request, const struct shown *shown)
{
    if (strcmp(shown->state, edge_state_name(EDGE_PAUSED)) != 0) {
        return "";
    }
    enum tg_reason notice = edge_pause_notice(&request->view, request->now);
    return say(shown, "pause.", tg_reason_code(notice), "");
}

/* The whole document; *out_text is given with free(). */
static int render_wait(const struct edge_request *request, const struct shown *shown,
                       char **out_text, size_t *out_length)
{
    size_t length;
    const char *plain = say(shown, "", shown->state, ".plain"); /* where script would say more */
    const struct edge_page_value values[] = {
        {"sale", request->target.sale},
        {"state", shown->state},
        {"signInUrl", request->edge->settings.sign_in_url},
        {"language", edge_words_language(shown->words)},
        {"headline", say(shown, "", shown->state, ".headline")},
        {"sentence", plain[0] != '\0' ? plain : say(shown, "", shown->state, ".sentence")},
        {"badge", say(shown, "badge.", shown->state, "")},
        {"reason", pause_reason(request, shown)},
        {"order", shown->order != NULL ? say(shown, "rule.", shown->order, "") : ""},
        {"number", shown->number},
        {"position", shown->position},
        {"estimateSeconds", shown->estimate},
        {"estimateMinutes", shown->minutes},
        {"remaining", shown->remaining},
        {"updated", shown->updated},
        {"clock", shown->clock},
        {"opens", shown->opens},
        {"patience", shown->patience},
        {"auto", shown->automatic},
    };
    const struct edge_page_values all = {shown->words, values, sizeof(values) / sizeof(values[0])};
    return edge_page_render(edge_page_find("wait.html", &length), &all, out_text, out_length);
}

static void answer_rendered(struct edge_request *request, const char *state,
                            const struct edge_place *place_or_null)
{
    struct shown shown = {.place = place_or_null,
                          .words = words_of(request),
                          .state = state,
                          .order = tg_sale_draws(request->view.sale) ? "random" : "fifo"};
    size_t length;
    char *text, lines[EDGE_HEADERS_BYTES];
    struct edge_writer headers;
    edge_write_begin(&headers, lines, sizeof(lines));
    edge_write(&headers, PAGE_POLICY);
    write_refresh(request, &headers, &shown);
    format_numbers(request, &shown);
    format_opening(request, &shown);
    if (place_or_null != NULL) {
        edge_place_cookie(request, place_or_null, &headers);
    } else if (strcmp(state, CHALLENGE) == 0) {
        int64_t left_s = edge_challenge_patience(request, &headers);
        tg_unsigned_format((uint64_t)left_s, shown.patience);
    }
    if (!edge_write_end(&headers) || render_wait(request, &shown, &text, &length) != 0) {
        edge_unknown(request);
        return;
    }
    const struct edge_reply reply = {
        .status = 200, .content_type = HTML, .headers = lines, .body = text, .length = length};
    edge_answer(request, &reply);
    free(text);
}

void edge_wait(struct edge_request *request)
{
    struct edge_place place;
    enum edge_state state = edge_state(&request->view, request->now);
    enum tg_reason reason = edge_take_place(request, &place);
    if (reason == TG_REASON_NONE) {
        bool turn = edge_turn(state, &place.standing) == EDGE_ASK;
        answer_rendered(request, turn ? "turn" : edge_waiter_state(state), &place);
    } else if (reason == TG_REASON_SOLD_OUT || reason == TG_REASON_SALE_CLOSED) {
        answer_rendered(request, edge_state_name(state), NULL);
    } else if (reason == TG_REASON_TRY_AGAIN) {
        answer_rendered(request, "trouble", NULL);
    } else if (reason == TG_REASON_CHALLENGE_REQUIRED) {
        answer_rendered(request, CHALLENGE, NULL);
    } else if (reason == TG_REASON_SIGN_IN_REQUIRED) {
        answer_rendered(request, "signIn", NULL);
    } else {
        edge_refuse_reason(request, reason);
    }
}

void edge_page_unknown(struct edge_request *request)
{
    const struct shown shown = {.words = words_of(request), .state = "unknown"};
    size_t length;
    char *text;
    if (render_wait(request, &shown, &text, &length) != 0) {
        edge_refuse_reason(request, TG_REASON_SALE_UNKNOWN);
        return;
    }
    const struct edge_reply reply = {.status = 404,
                                     .content_type = HTML,
                                     .headers = PAGE_POLICY,
                                     .body = text,
                                     .length = length};
    edge_answer(request, &reply);
    free(text);
}
