/* SPDX-License-Identifier: Apache-2.0
 * The edge's life: settings and keys, what it hears on the bus, readiness and drain. */
#include "services/edge/service.h"

#include "lib/io/bus.h"
#include "lib/io/keys.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"
#include "services/edge/limit.h"
#include "services/edge/page.h"
#include "services/edge/score.h"
#include "services/edge/wire.h"
#include "services/edge/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_TICK_MS = 20, LOAD_TICK_MS = 250, PRESENCE_TICK_MS = 500 };

static void on_board(void *context, struct tg_bus_incoming *take_incoming)
{
    struct edge *edge = context;
    const Tidegate__V1__Board *message = (const Tidegate__V1__Board *)tg_bus_body(take_incoming);
    struct edge_sale *sale = edge_find_sale(edge, tg_bus_sale(take_incoming));
    struct edge_board board;
    if (edge_wire_board(tg_bus_sale(take_incoming), message, &board) != TG_REASON_NONE) {
        tg_metric_add(TG_METRIC_BUS_INVALID, message->base.descriptor->short_name, 1);
    } else if (sale != NULL && board.generation == sale->sale->generation &&
               edge_board_counts(&sale->board, &board)) {
        bool another_term = !sale->board.known || sale->board.term != board.term;
        board.heard = edge_now().mono;
        sale->document.stale |= another_term || sale->board.version != board.version;
        sale->board = board;
        if (board.index_end > 0) { /* what one edge tells a new queue includes what others leased */
            edge_lease_saw(&sale->lease, board.index_end - 1);
        }
        if (another_term) {
            edge_presence_tell(edge, sale);
        }
    }
    tg_bus_release(take_incoming);
}

static void on_stock(void *context, struct tg_bus_incoming *take_incoming)
{
    struct edge *edge = context;
    const Tidegate__V1__Stock *message = (const Tidegate__V1__Stock *)tg_bus_body(take_incoming);
    struct edge_sale *sale = edge_find_sale(edge, tg_bus_sale(take_incoming));
    struct edge_stock stock;
    if (edge_wire_stock(tg_bus_sale(take_incoming), message, &stock) != TG_REASON_NONE) {
        tg_metric_add(TG_METRIC_BUS_INVALID, message->base.descriptor->short_name, 1);
    } else if (sale != NULL && stock.epoch == sale->sale->epoch) {
        stock.heard = edge_now().mono;
        sale->document.stale |= stock.free != sale->stock.free || stock.held != sale->stock.held;
        sale->stock = stock;
    }
    tg_bus_release(take_incoming);
}

/* A sale of another generation or epoch: what was heard of the old one is not about it. */
static void follow(struct edge_sale *sale)
{
    if (sale->board.known && sale->board.generation != sale->sale->generation) {
        sale->board = (struct edge_board){.known = false};
    }
    if (sale->stock.known && sale->stock.epoch != sale->sale->epoch) {
        sale->stock = (struct edge_stock){.known = false};
    }
    sale->document.stale = true;
}

static void on_sale(void *context, struct tg_sale *changed)
{
    struct edge *edge = context;
    struct edge_sale *sale = edge_find_sale(edge, changed->name);
    if (sale == NULL) {
        if (edge->table_count == TG_MAX_SALES) {
            tg_log(TG_LOG_ERROR, "edge.full", TG_TEXT_FIELD("sale", changed->name));
            return;
        }
        sale = &edge->table[edge->table_count++];
        memcpy(sale->name, changed->name, sizeof(sale->name));
    }
    sale->sale = changed;
    follow(sale);
    if (edge->roles & EDGE_ROLE_WAITING) {
        edge_lease_tick(edge); /* the first to come should find an index */
        edge_roster_tick(edge);
    }
}

static const char *on_command(void *context, struct tg_sale *sale,
                              const Tidegate__V1__Command *command)
{
    if (command->kind != TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE || sale == NULL) {
        return "noted";
    }
    on_sale(context, sale);
    return "honoured";
}

static void on_lease_tick(void *context)
{
    edge_lease_tick(context);
    edge_roster_tick(context);
}

static int bad_setting(const char *name, const char *value, const char *expected)
{
    fprintf(stderr, "TIDEGATE_EDGE_%s=\"%s\" is refused; expected %s\n", name, value, expected);
    return TG_ERR_SETTING;
}

static int read_role(struct edge *edge)
{
    static const struct {
        const char *name;
        unsigned roles;
    } roles[] = {
        {"waiting", EDGE_ROLE_WAITING}, {"checkout", EDGE_ROLE_CHECKOUT}, {"both", EDGE_ROLE_BOTH}};
    for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
        if (strcmp(roles[i].name, edge->settings.role) == 0) {
            edge->roles = roles[i].roles;
            return 0;
        }
    }
    return bad_setting("ROLE", edge->settings.role, "waiting, checkout or both");
}

static bool origin_valid(const char *origin)
{
    const char *host = strncmp(origin, "https://", 8) == 0  ? origin + 8
                       : strncmp(origin, "http://", 7) == 0 ? origin + 7
                                                            : "";
    size_t length = strlen(host);
    return length >= 1 && length <= 128 &&
           strspn(host, "abcdefghijklmnopqrstuvwxyz0123456789-.:[]") == length;
}

static int read_origins(struct edge *edge)
{
    const char *setting = edge->settings.cors_origins;
    if (setting[0] == '\0') {
        return 0;
    }
    edge->origin_text = strdup(setting);
    char *rest = edge->origin_text;
    if (rest == NULL) {
        return -ENOMEM;
    }
    for (char *origin = strsep(&rest, ","); origin != NULL; origin = strsep(&rest, ",")) {
        if (!origin_valid(origin) || edge->origin_count == EDGE_ORIGINS_MAX) {
            return bad_setting("CORS_ORIGINS", setting,
                               "at most 16 origins as https://shop.example, comma-separated");
        }
        edge->origins[edge->origin_count++] = origin;
    }
    return 0;
}

static int read_user_header(struct edge *edge)
{
    const char *name = edge->settings.user_header;
    size_t length = strlen(name);
    if (length > 64 || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") != length) {
        return bad_setting("USER_HEADER", name, "a header name in lower case");
    }
    return 0;
}

/* A link of the page: of the web, or of this site. */
static int read_link(const char *name, const char *url)
{
    bool good = url[0] == '\0' || url[0] == '/' || strncmp(url, "https://", 8) == 0 ||
                strncmp(url, "http://", 7) == 0;
    for (const char *at = url; *at != '\0'; at++) {
        good &= *at > 0x20 && *at < 0x7f;
    }
    return good ? 0 : bad_setting(name, url, "an address as https://shop.example/pay?reservation=");
}

static int read_buyer_key(struct edge *edge)
{
    const char *algorithm = edge->settings.buyer_algorithm;
    if (strcmp(algorithm, "HS256") == 0) {
        edge->buyers.algorithm = TG_JWT_HS256;
        return tg_keys_secret(edge->settings.keys, "buyer", edge->buyers.key);
    }
    if (strcmp(algorithm, "EdDSA") != 0) {
        return bad_setting("BUYER_ALGORITHM", algorithm, "HS256 or EdDSA");
    }
    struct tg_verify_key key;
    int error = tg_keys_public(edge->settings.keys, "buyer", &key);
    edge->buyers.algorithm = TG_JWT_EDDSA;
    memcpy(edge->buyers.key, key.public_key, sizeof(edge->buyers.key));
    return error;
}

static int read_keys(void *context)
{
    struct edge *edge = context;
    const char *folder = edge->settings.keys;
    int error = tg_keys_ring(folder, "ticket", &edge->tickets);
    edge->subkeys = (struct tg_subkeys){0}; /* of the keys before: an id may come again */
    edge->tickets.subkeys = &edge->subkeys;
    tg_random(edge->nonce, sizeof(edge->nonce));
    if (error == 0) {
        error = tg_pass_keys_read(folder, &edge->passes);
    }
    if (error == 0) {
        error = tg_keys_secret(folder, "entrant", edge->entrant);
    }
    if (error == 0) {
        tg_challenge_key(edge->entrant, edge->challenge);
        error = read_buyer_key(edge);
    }
    if (error == 0 && !edge_jwks_prepare(edge)) {
        error = TG_ERR_RANGE;
    }
    return error;
}

int edge_check(void *context)
{
    struct edge *edge = context;
    int error = read_role(edge);
    if (error == 0) {
        error = read_origins(edge);
    }
    if (error == 0) {
        error = read_user_header(edge);
    }
    if (error == 0) {
        error = read_link("SIGN_IN_URL", edge->settings.sign_in_url);
    }
    if (error == 0) {
        error = read_link("PAY_URL", edge->settings.pay_url);
    }
    if (error == 0) {
        error = edge_limits_read(edge);
    }
    if (error == 0) {
        error = edge_lanes_read(edge);
    }
    if (error == 0) {
        error = edge_page_load(edge->settings.page);
    }
    if (error == 0) {
        error = edge_words_load();
    }
    return error == 0 ? read_keys(edge) : error;
}

const char *edge_identity(const void *context)
{
    const struct edge *edge = context;
    return edge->roles == EDGE_ROLE_WAITING    ? "edge-waiting"
           : edge->roles == EDGE_ROLE_CHECKOUT ? "edge-checkout"
                                               : "edge";
}

static int hear(struct edge *edge)
{
    const struct tg_sales_spec spec = {.keys_folder = edge->settings.keys,
                                       .on_change = on_sale,
                                       .on_command = on_command,
                                       .context = edge};
    int error = tg_bus_serve(tg_app_bus(edge->app), TG_MESSAGE_QUEUE_BOARD, on_board, edge);
    if (error == 0) {
        error = tg_bus_serve(tg_app_bus(edge->app), TG_MESSAGE_GATE_STOCK, on_stock, edge);
    }
    return error == 0 ? tg_sales_open(edge->app, &spec, &edge->sales) : error;
}

static int listen_public(struct edge *edge)
{
    const struct tg_http_spec spec = {.host = edge->settings.host,
                                      .port = (uint16_t)edge->settings.port,
                                      .reuse_port = edge->settings.reuse_port != 0,
                                      .connections_max = (uint32_t)edge->settings.connections,
                                      .handler = edge_handle,
                                      .context = edge};
    int error = tg_http_listen(tg_app_loop(edge->app), &spec, &edge->server);
    if (error == 0) {
        tg_log(TG_LOG_INFO, "edge.listening", TG_TEXT_FIELD("host", edge->settings.host),
               TG_NUMBER_FIELD("port", tg_http_port(edge->server)),
               TG_TEXT_FIELD("role", edge->settings.role));
    }
    return error;
}

int edge_start(struct tg_app *app, void *context)
{
    struct edge *edge = context;
    edge->app = app;
    int error = tg_app_on_reload(app, read_keys, edge);
    if (error == 0) {
        error = hear(edge);
    }
    if (error == 0) {
        error = listen_public(edge);
    }
    if (error != 0) {
        return error;
    }
    for (int route = 0; route < EDGE_ROUTE_COUNT; route++) {
        const char *name = edge_route_row((enum edge_route)route)->name;
        edge->requests[route] = tg_metric_series(TG_METRIC_HTTP_REQUESTS, name);
        edge->seconds[route] = tg_metric_series(TG_METRIC_HTTP_SECONDS, name);
    }
    for (int lane = TG_LANE_LIVE; lane <= TG_LANE_DECOY; lane++) {
        edge->places[lane] = tg_metric_series(TG_METRIC_PLACES, edge_lane_name((enum tg_lane)lane));
    }
    if (edge->roles & EDGE_ROLE_WAITING) {
        error = tg_app_every(app, LEASE_TICK_MS, on_lease_tick, edge);
    }
    if (error == 0) {
        error = tg_app_every(app, PRESENCE_TICK_MS, edge_presence_tick, edge);
    }
    return error == 0 ? tg_app_every(app, LOAD_TICK_MS, edge_load_tick, edge) : error;
}

bool edge_ready(void *context, const char **out_why)
{
    const struct edge *edge = context;
    *out_why = "the ledger has not told the sales yet";
    return tg_sales_known(edge->sales);
}

void edge_drain(void *context)
{
    struct edge *edge = context;
    tg_http_drain(edge->server);
}

size_t edge_busy(void *context)
{
    const struct edge *edge = context;
    return edge->server != NULL ? tg_http_in_progress(edge->server) : 0;
}

void edge_stop(void *context)
{
    struct edge *edge = context;
    edge->server = tg_http_free(edge->server);
    edge->sales = tg_sales_free(edge->sales);
    tg_pass_keys_free(&edge->passes);
    edge_words_free();
    edge_page_free();
    free(edge->limits);
    edge->limits = NULL;
    for (size_t i = 0; i < edge->table_count; i++) {
        edge_roster_free(&edge->table[i].roster);
    }
    free(edge->origin_text);
    edge->origin_text = NULL;
}
