/* SPDX-License-Identifier: Apache-2.0
 * The one way an answer leaves: caching, CORS, refusals as problem documents, counters. */
#ifndef EDGE_ANSWER_H
#define EDGE_ANSWER_H

#include "services/edge/service.h"
#include "services/edge/writer.h"

#define EDGE_NO_STORE "Cache-Control: no-store\r\n"
#define EDGE_JSON "application/json"

/* Further header lines of one answer, each ending in CRLF. */
enum { EDGE_HEADERS_BYTES = 2048 };

struct edge_reply {
    int status;
    const char *content_type;
    const char *headers; /* further lines; NULL: none */
    const char *body;
    size_t length;
};

/* Answers with what is nobody else's business: no-store, CORS by the allow-list. */
void edge_answer(struct edge_request *request, const struct edge_reply *reply);
/* The same with 200 and the JSON that was written; where it does not fit the outcome is unknown.
 * headers as of an edge_reply. */
void edge_answer_json(struct edge_request *request, const char *headers, struct edge_writer *body);
/* {"state":"..."}: there is nothing else to tell, and no error. */
void edge_answer_state(struct edge_request *request, const char *state);
/* Answers with a shared document: `headers` say how it is cached; readable from any origin. */
void edge_answer_public(struct edge_request *request, const struct edge_reply *reply);
/* A refusal. detail and members as in tg_http_problem, NULL and "" = none. retry_after_ms 0: none,
 * unless the reason is one to repeat later. */
struct edge_problem {
    enum tg_reason reason;
    const char *detail;
    const char *members;
    int64_t retry_after_ms;
};
void edge_refuse_request(struct edge_request *request, const struct edge_problem *problem);
void edge_refuse_reason(struct edge_request *request, enum tg_reason reason);
/* The outcome is unknown: 503 try_again. */
void edge_unknown(struct edge_request *request);
/* A reason that came over the bus, as an HTTP refusal: what is said on the bus only becomes
 * try_again. */
enum tg_reason edge_public_reason(enum tg_reason reason);

/* Set-Cookie: <prefix><sale>=<value>, of this sale only and out of reach of scripts. */
void edge_write_cookie(const struct edge_request *request, const char *prefix, const char *value,
                       uint64_t max_age_s, struct edge_writer *headers);

/* cors.c */
void edge_cors_headers(const struct edge_request *request, struct edge_writer *headers);
void edge_options(struct edge_request *request);

/* True when If-None-Match names the tag (weak comparison, RFC 9110 13.1.2). */
bool edge_tag_matches(const struct edge_request *request, const char *etag);

#endif
