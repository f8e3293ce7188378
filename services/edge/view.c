/* SPDX-License-Identifier: Apache-2.0
 * The waiting page: a shell without any personal state, its files, and the same page with the
 * caller's state written in, for browsers without JavaScript. */
#include "services/edge/answer.h"
#include "services/edge/page.h"
#include "services/edge/place.h"

#include "lib/pure/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HTML "text/html; charset=utf-8"
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

void edge_page(struct edge_request *request)
{
    answer_file(request, "index.html", HTML, "Cache-Control: public, max-age=60\r\n" PAGE_POLICY);
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

/* Numbers as the template shows them; empty when not known. */
struct numbers {
    char number[24], position[24], estimate[24], minutes[24], remaining[24],
        updated[TG_RFC3339_BYTES];
};

static void format_numbers(const struct edge_request *request, const struct edge_place *place,
                           struct numbers *out)
{
    uint64_t free, held;
    memset(out, 0, sizeof(*out));
    if (edge_units(&request->view, request->now, &free, &held)) {
        tg_unsigned_format(request->view.sale->remaining_bucketed ? edge_bucket(free) : free,
                           out->remaining);
    }
    if (tg_wall_format(request->now.wall, out->updated) != 0) {
        out->updated[0] = '\0';
    }
    if (place == NULL) {
        return;
    }
    tg_unsigned_format(place->ticket.index + 1, out->number);
    if (place->standing.known) {
        tg_unsigned_format(place->standing.position, out->position);
    }
    if (place->standing.known && place->standing.estimate_seconds < UINT64_MAX) {
        tg_unsigned_format(place->standing.estimate_seconds, out->estimate);
        tg_unsigned_format(place->standing.estimate_seconds / 60 + 1, out->minutes);
    }
}

/* ?auto=30 asks for a refresh every 10 to 300 s. */
static void write_refresh(const struct edge_request *request, struct edge_writer *headers)
{
    const char *text;
    size_t length;
    int64_t seconds;
    if (edge_query(tg_http_query(request->exchange), "auto", &text, &length) == 1 &&
        tg_integer_parse(text, length, 10, 300, &seconds) == 0) {
        edge_write(headers, "Refresh: ");
        edge_write_number(headers, (uint64_t)seconds);
        edge_write(headers, "\r\n");
    }
}

static void answer_rendered(struct edge_request *request, const char *state,
                            const struct edge_place *place_or_null)
{
    struct numbers numbers;
    size_t length, text_length;
    char *text, lines[2048];
    struct edge_writer headers;
    const char *template = edge_page_find("wait.html", &length);
    format_numbers(request, place_or_null, &numbers);
    const struct edge_page_value values[] = {
        {"sale", request->sale->name},
        {"state", state},
        {"number", numbers.number},
        {"position", numbers.position},
        {"estimateSeconds", numbers.estimate},
        {"estimateMinutes", numbers.minutes},
        {"remaining", numbers.remaining},
        {"updated", numbers.updated},
    };
    if (template == NULL || edge_page_render(template, values, sizeof(values) / sizeof(values[0]),
                                             &text, &text_length) != 0) {
        edge_refuse_reason(request, TG_REASON_NOT_FOUND);
        return;
    }
    edge_write_begin(&headers, lines, sizeof(lines));
    edge_write(&headers, PAGE_POLICY);
    write_refresh(request, &headers);
    if (place_or_null != NULL) {
        edge_place_cookie(request, place_or_null, &headers);
    }
    edge_write_end(&headers);
    const struct edge_reply reply = {
        .status = 200, .content_type = HTML, .headers = lines, .body = text, .length = text_length};
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
    } else {
        edge_refuse_reason(request, reason);
    }
}
