/* SPDX-License-Identifier: Apache-2.0
 * Paths. Each segment is decoded exactly once; what is decided afterwards rests on the decoded
 * names, so that no spelling of a path walks round a check. Empty and dot segments, encoded slashes
 * and control characters are not found. */
#ifndef EDGE_ROUTES_H
#define EDGE_ROUTES_H

#include "lib/pure/limit.h"
#include "lib/pure/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum edge_route {
    EDGE_ROUTE_NONE,
    EDGE_ROUTE_PAGE,
    EDGE_ROUTE_WAIT,
    EDGE_ROUTE_FILE,
    EDGE_ROUTE_POLICY,
    EDGE_ROUTE_BOARD,
    EDGE_ROUTE_CHALLENGE,
    EDGE_ROUTE_TICKET,
    EDGE_ROUTE_STATUS,
    EDGE_ROUTE_DRAW,
    EDGE_ROUTE_ROSTER,
    EDGE_ROUTE_JWKS,
    EDGE_ROUTE_REASONS,
    EDGE_ROUTE_RESERVE,
    EDGE_ROUTE_RESERVATION,
    EDGE_ROUTE_CONFIRM,
    EDGE_ROUTE_EXTEND,
    EDGE_ROUTE_CANCEL,
    EDGE_ROUTE_COUNT
};

enum edge_role { EDGE_ROLE_WAITING = 1, EDGE_ROLE_CHECKOUT = 2, EDGE_ROLE_BOTH = 3 };

struct edge_route_row {
    const char *name; /* label of metrics */
    unsigned roles;   /* that serve it */
    bool post;        /* POST; otherwise GET and HEAD */
    bool personal;    /* never cached, never minted or spent by HEAD */
};
const struct edge_route_row *edge_route_row(enum edge_route route);

struct edge_target {
    enum edge_route route;
    char sale[TG_MAX_SALE_NAME_BYTES + 1];          /* routes of a sale */
    char file[TG_MAX_SALE_NAME_BYTES + 1];          /* EDGE_ROUTE_FILE: one plain name */
    uint32_t part;                                  /* EDGE_ROUTE_ROSTER */
    char reservation[TG_RESERVATION_ID_LENGTH + 1]; /* "" when it cannot be one */
};

/* Reads a path without query. route NONE when nothing is served there. */
void edge_route(const char *path, struct edge_target *out_target);

/* Value of a query parameter, as it stands. Returns how often it came; *out_value and *out_length
 * of the first. */
unsigned edge_query(const char *query, const char *name, const char **out_value,
                    size_t *out_length);

#endif
