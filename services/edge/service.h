/* SPDX-License-Identifier: Apache-2.0
 * The edge's shell: what the process keeps, and one request on its way to its one answer. Decisions
 * are core's. */
#ifndef EDGE_SERVICE_H
#define EDGE_SERVICE_H

#include "lib/io/app.h"
#include "lib/io/http.h"
#include "lib/io/jwt.h"
#include "lib/io/metrics.h"
#include "lib/io/pass_keys.h"
#include "lib/io/sales.h"
#include "lib/pure/challenge.h"
#include "lib/pure/client.h"
#include "lib/pure/rate.h"
#include "services/edge/core.h"
#include "services/edge/core_score.h"
#include "services/edge/roster.h"
#include "services/edge/routes.h"
#include "services/edge/settings.h"

enum {
    EDGE_ORIGINS_MAX = 16,
    EDGE_BOARD_BYTES = 1024,
    EDGE_POLICY_BYTES = 8192,
    EDGE_JWKS_BYTES = 1536,
    EDGE_ETAG_BYTES = 24
};

/* A shared document, prepared once and given to everybody. */
struct edge_document {
    char headers[256]; /* Cache-Control, ETag */
    char etag[EDGE_ETAG_BYTES];
    size_t length;
    struct tg_mono made;
    bool stale;
    enum edge_state state;
    char text[EDGE_BOARD_BYTES];
};

/* Ticket requests that found no index in hand, first come first served: ids of exchanges. */
struct edge_parked {
    uint32_t first, count;
    uint64_t exchanges[TG_MAX_PARKED];
};

struct edge_sale {
    char name[TG_MAX_SALE_NAME_BYTES + 1];
    struct tg_sale *sale;
    struct edge_stock stock;
    struct edge_board board;
    struct edge_lease lease;
    struct edge_parked parked;
    struct edge_roster roster;
    struct edge_document document;
    struct edge_asked asked;
    struct tg_rush rush; /* challenges */
    uint64_t tickets;    /* given since the start */
    uint64_t arrivals;   /* since the last presence */
};

/* Who asked how often; limit.c. */
struct edge_limits {
    struct tg_networks trusted;
    uint8_t hash_key[16];
    struct tg_rate holders, addresses;
    struct tg_rate account_places, device_places; /* signals, no limits */
};

/* Holds asked of the gate. */
struct edge_holds {
    uint64_t answered, unknown; /* since the last load was told */
    uint32_t open;              /* asked and not answered yet */
};

struct edge {
    struct edge_settings settings;
    struct tg_app *app;
    struct tg_sales *sales;
    struct tg_http_server *server;
    unsigned roles; /* enum edge_role */
    struct tg_key_ring tickets;
    struct tg_subkeys subkeys;
    uint8_t nonce[TG_TICKET_NONCE_BYTES]; /* of the last ticket: a random prefix, and a number */
    struct tg_pass_keys passes;
    uint8_t entrant[TG_KEY_BYTES], challenge[TG_KEY_BYTES];
    struct tg_spent spent;
    struct tg_jwt_key buyers;
    struct edge_limits *limits;
    struct edge_lane_rules lanes;
    char *origin_text; /* what origins point into */
    size_t origin_count;
    const char *origins[EDGE_ORIGINS_MAX];
    char jwks[EDGE_JWKS_BYTES];
    size_t jwks_length;
    struct tg_series *requests[EDGE_ROUTE_COUNT];
    struct tg_series *seconds[EDGE_ROUTE_COUNT];
    struct tg_series *places[TG_LANE_DECOY + 1]; /* given, by lane */
    struct edge_holds holds;
    size_t table_count;
    struct edge_sale table[TG_MAX_SALES];
};

/* One request. Lives while it is handled; made again from the exchange when a reply of the bus
 * comes in. */
struct edge_request {
    struct edge *edge;
    struct tg_http_exchange *exchange;
    struct edge_target target;
    struct edge_sale *sale; /* NULL: the route has none, or it is unknown */
    struct edge_view view;  /* of the sale */
    struct edge_now now;
    enum tg_http_method method;
};

struct edge_now edge_now(void);
struct edge_sale *edge_find_sale(struct edge *edge, const char *name);
void edge_request_begin(struct edge_request *request, struct edge *edge,
                        struct tg_http_exchange *exchange, struct edge_now now);
/* The request of a token given to tg_bus_call; false when its client is gone. */
bool edge_request_again(struct edge_request *request, struct edge *edge, uint64_t token);

/* dispatch.c: every request comes in here. */
void edge_handle(void *context, struct tg_http_exchange *exchange);

/* One function a route: each gives exactly one answer, now or after the bus replied. */
void edge_page(struct edge_request *request);
void edge_wait(struct edge_request *request);
void edge_page_unknown(struct edge_request *request); /* for a browser that asks for no sale */
void edge_file(struct edge_request *request);
void edge_policy(struct edge_request *request);
void edge_board_document(struct edge_request *request);
void edge_challenge(struct edge_request *request);
void edge_ticket(struct edge_request *request);
void edge_status(struct edge_request *request);
void edge_draw(struct edge_request *request);
void edge_roster_part(struct edge_request *request);
void edge_jwks(struct edge_request *request);
void edge_reasons(struct edge_request *request);
void edge_reserve(struct edge_request *request);
void edge_reservation(struct edge_request *request); /* read, confirm, extend, cancel */

/* draw.c: the commitment's value and what belongs to it, within an object. */
struct edge_writer;
void edge_write_commitment(struct edge_writer *writer, const struct tg_sale *sale);
/* jwks.c */
bool edge_jwks_prepare(struct edge *edge);
/* lease.c: asks for a block where the core wants one: with every ticket, because a block may last
 * shorter than a tick; and with every tick, for the sales nobody asks for. */
void edge_lease_ahead(struct edge *edge, struct edge_sale *sale, struct edge_now now);
void edge_lease_tick(struct edge *edge);
/* Lets a ticket request wait for the next block, TG_MAX_CALL_MS at most since it came in: it is
 * handled again when one is there. False: it has waited that long, or too many wait. */
bool edge_park(struct edge_request *request);
/* load.c: tells admission how busy this edge is. */
void edge_load_tick(void *context);
/* presence.c: tells the queue what this edge saw; `now` of one sale at once. */
void edge_presence_tick(void *context);
void edge_presence_tell(struct edge *edge, struct edge_sale *sale);

/* The functions of tg_app_spec; `context` is a zeroed struct edge with its settings filled. */
/* Its rights on the bus: of one role, or of both. */
const char *edge_identity(const void *context);
int edge_check(void *context);
int edge_start(struct tg_app *app, void *context);
bool edge_ready(void *context, const char **out_why);
void edge_drain(void *context);
size_t edge_busy(void *context);
void edge_stop(void *context);

#endif
