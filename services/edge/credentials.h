/* SPDX-License-Identifier: Apache-2.0
 * Who is calling: a buyer by the shop's token (or a trusted proxy's header), or a service by its
 * secret, which only the ledger can judge. And what the caller shows: a ticket, by header, cookie
 * or query. */
#ifndef EDGE_CREDENTIALS_H
#define EDGE_CREDENTIALS_H

#include "services/edge/service.h"

enum { EDGE_CREDENTIAL_BYTES = 256 };

enum edge_caller_kind {
    EDGE_CALLER_NOBODY,
    EDGE_CALLER_BUYER,
    EDGE_CALLER_SERVICE, /* shows something that is no buyer's token */
    EDGE_CALLER_REFUSED  /* a token that does not hold, or another scheme */
};
struct edge_caller {
    enum edge_caller_kind kind;
    struct tg_holder user;  /* BUYER */
    const char *credential; /* SERVICE; borrowed from the exchange */
};

/* NONE, or MALFORMED when a header came twice or the proxy's user is none. */
enum tg_reason edge_caller(const struct edge_request *request, struct edge_caller *out_caller);

struct edge_shown {
    const char *text; /* borrowed from the exchange; NULL: none */
    size_t length;
    bool by_cookie; /* the browser sent it by itself */
};
/* The value of cookie <prefix><sale>; false when there is none. */
bool edge_cookie(const char *cookies, const char *prefix, const char *sale,
                 struct edge_shown *out_shown);

/* X-Ticket, else the query's token, else the cookie of this sale. MALFORMED when one of them came
 * twice, or when two of them that the caller wrote differ. */
enum tg_reason edge_shown_ticket(const struct edge_request *request, struct edge_shown *out_shown);

/* Opens a shown ticket and compares it with the sale of the path. NONE, TICKET_INVALID, RESTART
 * when it is of an earlier generation, or TRY_AGAIN when it is of one not heard of yet. */
enum tg_reason edge_open_ticket(const struct edge_request *request, const struct edge_shown *shown,
                                struct tg_ticket *out_ticket);

/* The caller's traceparent when it is one, else a new one. */
void edge_traceparent(const struct edge_request *request, char out_traceparent[56]);

#endif
