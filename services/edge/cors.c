/* SPDX-License-Identifier: Apache-2.0
 * Cross-origin calls: an allow-list, a preflight that names our headers, and refusals that a
 * browser may read too. */
#include "services/edge/answer.h"

#include <string.h>

/* The caller's origin as we list it; NULL when it is none of ours. */
static const char *listed_origin(const struct edge_request *request)
{
    const struct edge *edge = request->edge;
    unsigned count;
    const char *origin = tg_http_header(request->exchange, "origin", &count);
    if (origin == NULL || count != 1) {
        return NULL;
    }
    for (size_t i = 0; i < edge->origin_count; i++) {
        if (strcmp(edge->origins[i], origin) == 0) {
            return edge->origins[i];
        }
    }
    return NULL;
}

void edge_cors_headers(const struct edge_request *request, struct edge_writer *headers)
{
    if (request->edge->origin_count == 0) {
        return;
    }
    edge_write(headers, "Vary: Origin\r\n");
    const char *origin = listed_origin(request);
    if (origin != NULL) {
        edge_write(headers, "Access-Control-Allow-Origin: ");
        edge_write(headers, origin);
        edge_write(headers,
                   "\r\nAccess-Control-Expose-Headers: Retry-After, Idempotent-Replayed\r\n");
    }
}

void edge_options(struct edge_request *request)
{
    char lines[512];
    struct edge_writer headers;
    const struct edge_route_row *row = edge_route_row(request->target.route);
    const char *methods = row->post ? "POST, OPTIONS" : "GET, HEAD, OPTIONS";
    edge_write_begin(&headers, lines, sizeof(lines));
    edge_write(&headers, "Allow: ");
    edge_write(&headers, methods);
    edge_write(&headers, "\r\n");
    if (listed_origin(request) != NULL) {
        edge_write(&headers, "Access-Control-Allow-Methods: ");
        edge_write(&headers, methods);
        edge_write(
            &headers,
            "\r\nAccess-Control-Allow-Headers: authorization, content-type, idempotency-key, "
            "x-admission-token, x-ticket, x-challenge, traceparent\r\n"
            "Access-Control-Max-Age: 600\r\n");
    }
    edge_write_end(&headers);
    const struct edge_reply reply = {.status = 204, .headers = lines};
    edge_answer(request, &reply);
}
