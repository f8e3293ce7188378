/* SPDX-License-Identifier: Apache-2.0
 * Every request comes in here: path, role, method, sale, then its route. */
#include "services/edge/answer.h"

#include "lib/io/now.h"

#include <string.h>

struct edge_now edge_now(void)
{
    return (struct edge_now){.mono = tg_now_mono(), .wall = tg_now_wall()};
}

struct edge_sale *edge_find_sale(struct edge *edge, const char *name)
{
    for (size_t i = 0; i < edge->table_count; i++) {
        if (strcmp(edge->table[i].name, name) == 0) {
            return &edge->table[i];
        }
    }
    return NULL;
}

void edge_request_begin(struct edge_request *request, struct edge *edge,
                        struct tg_http_exchange *exchange, struct edge_now now)
{
    request->edge = edge;
    request->exchange = exchange;
    request->now = now;
    request->method = tg_http_method(exchange);
    edge_route(tg_http_path(exchange), &request->target);
    request->sale =
        request->target.sale[0] != '\0' ? edge_find_sale(edge, request->target.sale) : NULL;
    if (request->sale != NULL) {
        request->view = (struct edge_view){.sale = request->sale->sale,
                                           .stock = &request->sale->stock,
                                           .board = &request->sale->board};
    }
}

bool edge_request_again(struct edge_request *request, struct edge *edge, uint64_t token)
{
    struct tg_http_exchange *exchange = tg_http_find(edge->server, token);
    if (exchange == NULL) {
        return false;
    }
    edge_request_begin(request, edge, exchange, edge_now());
    return true;
}

static bool method_fits(const struct edge_request *request)
{
    if (edge_route_row(request->target.route)->post) {
        return request->method == TG_HTTP_POST;
    }
    return request->method == TG_HTTP_GET || request->method == TG_HTTP_HEAD;
}

static void run(struct edge_request *request)
{
    static void (*const routes[EDGE_ROUTE_COUNT])(struct edge_request *) = {
        [EDGE_ROUTE_PAGE] = edge_page,
        [EDGE_ROUTE_WAIT] = edge_wait,
        [EDGE_ROUTE_FILE] = edge_file,
        [EDGE_ROUTE_POLICY] = edge_policy,
        [EDGE_ROUTE_BOARD] = edge_board_document,
        [EDGE_ROUTE_CHALLENGE] = edge_challenge,
        [EDGE_ROUTE_TICKET] = edge_ticket,
        [EDGE_ROUTE_STATUS] = edge_status,
        [EDGE_ROUTE_DRAW] = edge_draw,
        [EDGE_ROUTE_ROSTER] = edge_roster_part,
        [EDGE_ROUTE_JWKS] = edge_jwks,
        [EDGE_ROUTE_REASONS] = edge_reasons,
        [EDGE_ROUTE_RESERVE] = edge_reserve,
        [EDGE_ROUTE_RESERVATION] = edge_reservation,
        [EDGE_ROUTE_CONFIRM] = edge_reservation,
        [EDGE_ROUTE_EXTEND] = edge_reservation,
        [EDGE_ROUTE_CANCEL] = edge_reservation,
    };
    routes[request->target.route](request);
}

/* A person who mistyped an address gets a page, a program the refusal. */
static void refuse_unknown_sale(struct edge_request *request)
{
    enum edge_route route = request->target.route;
    const char *accept = tg_http_header(request->exchange, "accept", NULL);
    enum tg_reason reason = tg_sales_missing(request->edge->sales);
    bool person = accept != NULL && strstr(accept, "text/html") != NULL;
    if (person && reason == TG_REASON_SALE_UNKNOWN &&
        (route == EDGE_ROUTE_PAGE || route == EDGE_ROUTE_WAIT)) {
        edge_page_unknown(request);
    } else {
        edge_refuse_reason(request, reason);
    }
}

void edge_handle(void *context, struct tg_http_exchange *exchange)
{
    struct edge_request request;
    /* Received now: the clock was read for it. */
    const struct edge_now now = {.mono = {(int64_t)(tg_http_received_us(exchange) / 1000)},
                                 .wall = tg_now_wall()};
    edge_request_begin(&request, context, exchange, now);
    const struct edge_route_row *row = edge_route_row(request.target.route);
    if (request.target.route == EDGE_ROUTE_NONE || (row->roles & request.edge->roles) == 0) {
        request.target.route = EDGE_ROUTE_NONE;
        edge_refuse_reason(&request, TG_REASON_NOT_FOUND);
    } else if (request.method == TG_HTTP_OPTIONS) {
        edge_options(&request);
    } else if (!method_fits(&request)) {
        edge_refuse_reason(&request, TG_REASON_METHOD_NOT_ALLOWED);
    } else if (request.target.sale[0] != '\0' && request.sale == NULL) {
        refuse_unknown_sale(&request);
    } else if (request.method == TG_HTTP_HEAD && row->personal) {
        const struct edge_reply nothing = {.status = 200, .content_type = EDGE_JSON};
        edge_answer(&request, &nothing);
    } else {
        run(&request);
    }
}
