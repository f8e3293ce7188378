/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/credentials.h"

#include "lib/io/bus.h"
#include "lib/io/now.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* A header that may come once. MALFORMED when it came more often. */
static enum tg_reason single(const struct edge_request *request, const char *name,
                             const char **out_value)
{
    unsigned count;
    *out_value = tg_http_header(request->exchange, name, &count);
    return count > 1 ? TG_REASON_MALFORMED : TG_REASON_NONE;
}

static enum tg_reason by_proxy(const struct edge_request *request, struct edge_caller *out_caller)
{
    const char *user;
    enum tg_reason reason = single(request, request->edge->settings.user_header, &user);
    if (reason != TG_REASON_NONE || user == NULL) {
        return reason;
    }
    size_t length = strlen(user);
    if (!tg_user_valid((const uint8_t *)user, length)) {
        return TG_REASON_MALFORMED;
    }
    out_caller->kind = EDGE_CALLER_BUYER;
    out_caller->user.kind = TG_HOLDER_USER;
    out_caller->user.length = (uint8_t)length;
    memcpy(out_caller->user.bytes, user, length);
    return TG_REASON_NONE;
}

/* Three parts: a compact JWT, or something that wants to be one. A service credential has no dot.
 */
static bool looks_like_jwt(const char *text)
{
    return strchr(text, '.') != NULL;
}

static bool is_credential(const char *text)
{
    size_t length = strlen(text);
    for (size_t i = 0; i < length; i++) {
        if (text[i] <= 0x20 || text[i] >= 0x7f) {
            return false;
        }
    }
    return length >= 1 && length <= EDGE_CREDENTIAL_BYTES;
}

static void by_bearer(const struct edge_request *request, const char *authorization,
                      struct edge_caller *out_caller)
{
    out_caller->kind = EDGE_CALLER_REFUSED;
    if (strncasecmp(authorization, "Bearer ", 7) != 0) {
        return;
    }
    const char *token = authorization + 7;
    if (looks_like_jwt(token)) {
        int error = tg_jwt_buyer(&request->edge->buyers, token, strlen(token), request->now.wall,
                                 &out_caller->user);
        out_caller->kind = error == 0 ? EDGE_CALLER_BUYER : EDGE_CALLER_REFUSED;
    } else if (is_credential(token)) {
        out_caller->kind = EDGE_CALLER_SERVICE;
        out_caller->credential = token;
    }
}

enum tg_reason edge_caller(const struct edge_request *request, struct edge_caller *out_caller)
{
    *out_caller = (struct edge_caller){.kind = EDGE_CALLER_NOBODY};
    if (request->edge->settings.user_header[0] != '\0') {
        enum tg_reason reason = by_proxy(request, out_caller);
        if (reason != TG_REASON_NONE || out_caller->kind == EDGE_CALLER_BUYER) {
            return reason;
        }
    }
    const char *authorization;
    enum tg_reason reason = single(request, "authorization", &authorization);
    if (reason != TG_REASON_NONE || authorization == NULL) {
        return reason;
    }
    by_bearer(request, authorization, out_caller);
    /* Behind a proxy that says who the buyer is, a buyer's token says nothing. */
    if (request->edge->settings.user_header[0] != '\0' && out_caller->kind == EDGE_CALLER_BUYER) {
        out_caller->kind = EDGE_CALLER_REFUSED;
    }
    return TG_REASON_NONE;
}

bool edge_cookie(const char *cookies, const char *prefix, const char *sale,
                 struct edge_shown *out_shown)
{
    size_t prefix_length = strlen(prefix), sale_length = strlen(sale);
    size_t name_length = prefix_length + sale_length;
    while (*cookies != '\0') {
        cookies += strspn(cookies, "; ");
        size_t length = strcspn(cookies, ";");
        if (length > name_length + 1 && memcmp(cookies, prefix, prefix_length) == 0 &&
            memcmp(cookies + prefix_length, sale, sale_length) == 0 &&
            cookies[name_length] == '=') {
            out_shown->text = cookies + name_length + 1;
            out_shown->length = length - name_length - 1;
            out_shown->by_cookie = true;
            return true;
        }
        cookies += length;
    }
    return false;
}

enum tg_reason edge_shown_ticket(const struct edge_request *request, struct edge_shown *out_shown)
{
    const char *header, *cookies, *token = NULL;
    size_t token_length = 0;
    *out_shown = (struct edge_shown){.text = NULL};
    unsigned tokens = edge_query(tg_http_query(request->exchange), "token", &token, &token_length);
    if (single(request, "x-ticket", &header) != TG_REASON_NONE ||
        single(request, "cookie", &cookies) != TG_REASON_NONE || tokens > 1) {
        return TG_REASON_MALFORMED;
    }
    if (header != NULL) {
        out_shown->text = header;
        out_shown->length = strlen(header);
        bool differ = tokens > 0 && (token_length != out_shown->length ||
                                     memcmp(token, header, token_length) != 0);
        return differ ? TG_REASON_MALFORMED : TG_REASON_NONE;
    }
    if (tokens > 0) {
        out_shown->text = token;
        out_shown->length = token_length;
    } else if (cookies != NULL) {
        (void)edge_cookie(cookies, "tg_", request->target.sale, out_shown);
    }
    return TG_REASON_NONE;
}

enum tg_reason edge_open_ticket(const struct edge_request *request, const struct edge_shown *shown,
                                struct tg_ticket *out_ticket)
{
    if (shown->length > TG_MAX_TICKET_BYTES ||
        tg_ticket_open(&request->edge->tickets, shown->text, shown->length, out_ticket) != 0 ||
        strcmp(out_ticket->sale, request->sale->name) != 0) {
        return TG_REASON_TICKET_INVALID;
    }
    uint64_t generation = request->sale->sale->generation;
    if (out_ticket->generation > generation) {
        return TG_REASON_TRY_AGAIN; /* another edge has heard of it already */
    }
    return out_ticket->generation == generation ? TG_REASON_NONE : TG_REASON_RESTART;
}

/* W3C trace context, version 00: 2-32-16-2 lower-case hex digits, ids not all zero. */
static bool is_traceparent(const char *text)
{
    static const char form[] = "00-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx-xxxxxxxxxxxxxxxx-xx";
    if (strlen(text) != sizeof(form) - 1) {
        return false;
    }
    for (size_t i = 0; i < sizeof(form) - 1; i++) {
        bool fits =
            form[i] == 'x' ? strchr("0123456789abcdef", text[i]) != NULL : text[i] == form[i];
        if (!fits) {
            return false;
        }
    }
    return strspn(text + 3, "0") < 32 && strspn(text + 36, "0") < 16;
}

void edge_traceparent(const struct edge_request *request, char out_traceparent[56])
{
    _Static_assert(TG_TRACEPARENT_LENGTH == 55, "the buffer fits");
    const char *shown = tg_http_header(request->exchange, "traceparent", NULL);
    if (shown != NULL && is_traceparent(shown)) {
        memcpy(out_traceparent, shown, 56);
        return;
    }
    uint64_t random[3];
    tg_random(random, sizeof(random));
    snprintf(out_traceparent, 56, "00-%016llx%016llx-%016llx-01",
             (unsigned long long)(random[0] | 1), (unsigned long long)random[1],
             (unsigned long long)(random[2] | 1));
}
