/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/limit.h"

#include "lib/io/now.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)sizeof(((struct edge_limits *)0)->hash_key) == crypto_shorthash_KEYBYTES,
               "key");

static void set_rate(struct tg_rate *rate, int64_t per_second, int64_t burst)
{
    rate->interval_us = per_second > 0 ? 1000000U / (uint64_t)per_second : 0;
    rate->burst = (uint64_t)burst;
}

/* As many new places at one moment as in a minute. */
static void set_places(struct tg_rate *rate, int64_t per_minute)
{
    rate->interval_us = 60U * 1000000U / (uint64_t)per_minute;
    rate->burst = (uint64_t)per_minute;
}

int edge_limits_read(struct edge *edge)
{
    const struct edge_settings *settings = &edge->settings;
    /* Advice is at least a second: one request a second is the least a rate may allow, and as
     * several tabs share a ticket, two are. */
    enum { LEAST_RATE = 2 };
    if (settings->rate > 0 && settings->rate < LEAST_RATE) {
        fprintf(stderr,
                "TIDEGATE_EDGE_RATE=\"%lld\" is refused; expected 0 (no limit) or at least %d: "
                "pages are told to ask once a second when it is nearly their turn\n",
                (long long)settings->rate, LEAST_RATE);
        return TG_ERR_SETTING;
    }
    struct edge_limits *limits = calloc(1, sizeof(*limits));
    edge->limits = limits;
    if (limits == NULL) {
        return -ENOMEM;
    }
    if (tg_networks_parse(settings->trusted_proxies, &limits->trusted) != 0) {
        fprintf(stderr,
                "TIDEGATE_EDGE_TRUSTED_PROXIES=\"%s\" is refused; expected at most %d networks as "
                "10.0.0.0/8, 2001:db8::/32, comma-separated\n",
                settings->trusted_proxies, TG_NETWORKS_MAX);
        return TG_ERR_SETTING;
    }
    tg_random(limits->hash_key, sizeof(limits->hash_key));
    set_rate(&limits->holders, settings->rate, settings->rate_burst);
    set_rate(&limits->addresses, settings->address_rate, settings->rate_burst);
    set_places(&limits->account_places, settings->lane_account_places);
    set_places(&limits->device_places, settings->lane_device_places);
    return 0;
}

enum tg_reason edge_limit_ask(const struct edge_request *request, struct tg_rate *rate,
                              const void *name, size_t length)
{
    uint64_t key;
    if (rate->interval_us == 0) {
        return TG_REASON_NONE;
    }
    crypto_shorthash((uint8_t *)&key, name, length, request->edge->limits->hash_key);
    return tg_rate_ask(rate, key, tg_http_received_us(request->exchange)) == 0
               ? TG_REASON_NONE
               : TG_REASON_RATE_LIMITED;
}

enum tg_reason edge_limit_holder(const struct edge_request *request, const struct tg_holder *holder)
{
    return edge_limit_ask(request, &request->edge->limits->holders, holder->bytes, holder->length);
}

bool edge_client_address(const struct edge_request *request, uint8_t out_address[16])
{
    const struct tg_networks *trusted = &request->edge->limits->trusted;
    const char *peer = tg_http_peer(request->exchange);
    unsigned lines = 0;
    int error = tg_address_parse(peer, strlen(peer), out_address);
    (void)tg_http_header(request->exchange, "x-forwarded-for", &lines);
    bool ours = error == 0 && tg_networks_hold(trusted, out_address);
    while (ours && lines > 0) {
        const char *line = tg_http_header_line(request->exchange, "x-forwarded-for", --lines);
        ours = tg_client_walk(trusted, line, out_address, &error);
    }
    return error == 0 && !ours;
}

enum tg_reason edge_limit_address(const struct edge_request *request)
{
    uint8_t address[TG_ADDRESS_BYTES];
    if (request->edge->limits->addresses.interval_us == 0 ||
        !edge_client_address(request, address)) {
        return TG_REASON_NONE;
    }
    tg_address_bucket(address);
    return edge_limit_ask(request, &request->edge->limits->addresses, address, sizeof(address));
}

void edge_limit_headers(const struct edge *edge, struct edge_writer *headers)
{
    const uint64_t burst = (uint64_t)edge->settings.rate_burst;
    const uint64_t rate = (uint64_t)(edge->settings.rate > 0 ? edge->settings.rate : 1);
    edge_write(headers, "RateLimit-Policy: \"caller\";q=");
    edge_write_number(headers, burst);
    edge_write(headers, ";w=");
    edge_write_number(headers, (burst + rate - 1) / rate);
    edge_write(headers, "\r\nRateLimit: \"caller\";r=0;t=1\r\n");
}
