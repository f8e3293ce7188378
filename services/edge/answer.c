/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/answer.h"

#include "lib/io/http_problem.h"
#include "lib/io/now.h"
#include "services/edge/limit.h"

#include <assert.h>
#include <string.h>

/* Counts and sends. */
static void send_reply(struct edge_request *request, const struct edge_reply *reply,
                       const char *headers)
{
    struct edge *edge = request->edge;
    enum edge_route route = request->target.route;
    uint64_t received_us = tg_http_received_us(request->exchange);
    const struct tg_http_answer answer = {.status = reply->status,
                                          .content_type = reply->content_type,
                                          .headers = headers,
                                          .body = reply->body,
                                          .body_length = reply->length};
    tg_http_answer(request->exchange, &answer);
    tg_series_add(edge->requests[route], 1);
    tg_series_observe_us(edge->seconds[route], tg_now_us() - received_us);
}

void edge_answer(struct edge_request *request, const struct edge_reply *reply)
{
    static char text[EDGE_HEADERS_BYTES]; /* static: not cleared for every answer */
    struct edge_writer headers;
    edge_write_begin(&headers, text, sizeof(text));
    edge_write(&headers, EDGE_NO_STORE);
    edge_cors_headers(request, &headers);
    if (reply->headers != NULL) {
        edge_write(&headers, reply->headers);
    }
    bool whole = edge_write_end(&headers);
    assert(whole); /* every part is bounded: the listed origin, a cookie, a number */
    send_reply(request, reply, text);
}

void edge_answer_json(struct edge_request *request, const char *headers, struct edge_writer *body)
{
    if (!edge_write_end(body)) {
        edge_unknown(request);
        return;
    }
    const struct edge_reply reply = {.status = 200,
                                     .content_type = EDGE_JSON,
                                     .headers = headers,
                                     .body = body->text,
                                     .length = body->length};
    edge_answer(request, &reply);
}

void edge_answer_state(struct edge_request *request, const char *state)
{
    char text[64];
    struct edge_writer body;
    edge_write_begin(&body, text, sizeof(text));
    edge_write(&body, "{\"state\":\"");
    edge_write(&body, state);
    edge_write(&body, "\"}");
    edge_answer_json(request, NULL, &body);
}

void edge_answer_public(struct edge_request *request, const struct edge_reply *reply)
{
    send_reply(request, reply, reply->headers);
}

enum tg_reason edge_public_reason(enum tg_reason reason)
{
    if (reason == TG_REASON_NONE || reason >= TG_REASON_COUNT ||
        tg_reason_row(reason)->status == 0) {
        return TG_REASON_TRY_AGAIN;
    }
    return reason;
}

static void write_retry_after(struct edge_writer *headers, const struct edge_problem *problem)
{
    enum { DEFAULT_MS = 1000 };
    bool later = tg_reason_row(problem->reason)->retry == TG_RETRY_LATER;
    int64_t after_ms = problem->retry_after_ms;
    if (after_ms <= 0 && later && problem->reason != TG_REASON_SOLD_OUT) {
        after_ms = DEFAULT_MS;
    }
    if (after_ms > 0) {
        edge_write(headers, "Retry-After: ");
        edge_write_number(headers, ((uint64_t)after_ms + 999) / 1000);
        edge_write(headers, "\r\n");
    }
}

/* RFC 9110 11.6.1: a 401 names the scheme; 15.5.6: a 405 names the methods; a 429 the rate. */
static void write_required_headers(const struct edge_request *request, int status,
                                   struct edge_writer *headers)
{
    if (status == 401) {
        edge_write(headers, "WWW-Authenticate: Bearer\r\n");
    } else if (status == 405) {
        edge_write(headers, edge_route_row(request->target.route)->post
                                ? "Allow: POST, OPTIONS\r\n"
                                : "Allow: GET, HEAD, OPTIONS\r\n");
    } else if (status == 429) {
        edge_limit_headers(request->edge, headers);
    }
}

/* Whoever shows a token needs to hear that it is this one which is not taken. */
static const char *detail_of(const struct edge_request *request, const struct edge_problem *problem)
{
    bool shown = tg_http_header(request->exchange, "authorization", NULL) != NULL;
    return problem->reason == TG_REASON_SIGN_IN_REQUIRED && shown
               ? "What Authorization says was not taken: expected is Bearer and a JWT of the "
                 "algorithm "
                 "and key agreed on, with sub, and exp to come."
               : problem->detail;
}

void edge_refuse_request(struct edge_request *request, const struct edge_problem *problem)
{
    char body[TG_HTTP_PROBLEM_BYTES], lines[256];
    struct edge_writer headers;
    int status = tg_reason_row(problem->reason)->status;
    edge_write_begin(&headers, lines, sizeof(lines));
    write_retry_after(&headers, problem);
    write_required_headers(request, status, &headers);
    bool whole = edge_write_end(&headers);
    assert(whole);
    struct edge_reply reply = {
        .status = status,
        .content_type = TG_HTTP_PROBLEM_TYPE,
        .headers = lines,
        .body = body,
        .length = tg_http_problem(problem->reason, detail_of(request, problem),
                                  problem->members != NULL ? problem->members : "", body)};
    tg_metric_add(TG_METRIC_HTTP_REFUSALS, tg_reason_code(problem->reason), 1);
    edge_answer(request, &reply);
}

void edge_refuse_reason(struct edge_request *request, enum tg_reason reason)
{
    const struct edge_problem problem = {.reason = reason};
    edge_refuse_request(request, &problem);
}

void edge_unknown(struct edge_request *request)
{
    edge_refuse_reason(request, TG_REASON_TRY_AGAIN);
}

bool edge_tag_matches(const struct edge_request *request, const char *etag)
{
    const char *list = tg_http_header(request->exchange, "if-none-match", NULL);
    if (list == NULL) {
        return false;
    }
    return strcmp(list, "*") == 0 || strstr(list, etag) != NULL;
}

void edge_write_cookie(const struct edge_request *request, const char *prefix, const char *value,
                       uint64_t max_age_s, struct edge_writer *headers)
{
    const char *sale = request->sale->name;
    edge_write(headers, "Set-Cookie: ");
    edge_write(headers, prefix);
    edge_write(headers, sale);
    edge_write(headers, "=");
    edge_write(headers, value);
    edge_write(headers, "; Path=/sale/");
    edge_write(headers, sale);
    edge_write(headers, "; Max-Age=");
    edge_write_number(headers, max_age_s);
    edge_write(headers, "; HttpOnly; SameSite=Lax");
    edge_write(headers, request->edge->settings.cookie_secure != 0 ? "; Secure\r\n" : "\r\n");
}
