/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/score.h"

#include "services/edge/limit.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

int edge_lanes_read(struct edge *edge)
{
    const struct edge_settings *settings = &edge->settings;
    if (settings->lane_slow_at > settings->lane_decoy_at) {
        fprintf(stderr,
                "TIDEGATE_EDGE_LANE_SLOW_AT=\"%lld\" is refused; expected at most "
                "TIDEGATE_EDGE_LANE_DECOY_AT (%lld)\n",
                (long long)settings->lane_slow_at, (long long)settings->lane_decoy_at);
        return TG_ERR_SETTING;
    }
    edge->lanes = (struct edge_lane_rules){.on = settings->lanes != 0,
                                           .slow_at = (uint32_t)settings->lane_slow_at,
                                           .decoy_at = (uint32_t)settings->lane_decoy_at};
    return 0;
}

/* A device is an address, as far as it is known, and what it calls itself. */
static size_t device_of(const struct edge_request *request, const char *agent, uint8_t *out_name)
{
    enum { AGENT_BYTES = 256 };
    size_t length = agent != NULL ? strnlen(agent, AGENT_BYTES) : 0;
    if (!edge_client_address(request, out_name)) {
        return 0;
    }
    tg_address_bucket(out_name);
    memcpy(out_name + TG_ADDRESS_BYTES, agent != NULL ? agent : "", length);
    return TG_ADDRESS_BYTES + length;
}

enum tg_lane edge_score_place(const struct edge_request *request, const struct edge_caller *caller)
{
    struct edge *edge = request->edge;
    uint8_t device[TG_ADDRESS_BYTES + 256];
    if (!edge->lanes.on) {
        return TG_LANE_LIVE;
    }
    const char *agent = tg_http_header(request->exchange, "user-agent", NULL);
    size_t length = device_of(request, agent, device);
    const bool account_fast =
        caller->kind == EDGE_CALLER_BUYER &&
        edge_limit_ask(request, &edge->limits->account_places, caller->user.bytes,
                       caller->user.length) != TG_REASON_NONE;
    const bool device_fast = length > 0 && edge_limit_ask(request, &edge->limits->device_places,
                                                          device, length) != TG_REASON_NONE;
    const uint32_t signals =
        edge_signal_bit(EDGE_SIGNAL_ACCOUNT_VELOCITY, account_fast) |
        edge_signal_bit(EDGE_SIGNAL_DEVICE_VELOCITY, device_fast) |
        edge_signal_bit(EDGE_SIGNAL_NO_USER_AGENT, agent == NULL) |
        edge_signal_bit(EDGE_SIGNAL_NO_LANGUAGE,
                        tg_http_header(request->exchange, "accept-language", NULL) == NULL) |
        edge_signal_bit(EDGE_SIGNAL_NO_ACCEPT,
                        tg_http_header(request->exchange, "accept", NULL) == NULL);
    return edge_lane_pardoned(request, caller) ? TG_LANE_LIVE
                                               : edge_score_lane(&edge->lanes, signals);
}

bool edge_lane_pardoned(const struct edge_request *request, const struct edge_caller *caller)
{
    const char *names = request->edge->settings.lane_pardoned;
    if (caller->kind != EDGE_CALLER_BUYER) {
        return false;
    }
    while (*names != '\0') {
        names += strspn(names, ", ");
        size_t length = strcspn(names, ", ");
        if (length == caller->user.length && memcmp(names, caller->user.bytes, length) == 0) {
            return length > 0;
        }
        names += length;
    }
    return false;
}

void edge_write_lanes(const struct edge *edge, struct edge_writer *writer)
{
    if (!edge->lanes.on) {
        edge_write(writer, ",\"lanes\":null");
        return;
    }
    edge_write(writer, ",\"lanes\":{\"signals\":[");
    for (unsigned i = 0; i < EDGE_SIGNALS; i++) {
        const struct edge_signal_row *row = edge_signal_row((enum edge_signal)i);
        edge_write(writer, i == 0 ? "{\"name\":" : ",{\"name\":");
        edge_write_string(writer, row->name);
        edge_write(writer, ",\"points\":");
        edge_write_number(writer, row->points);
        edge_write(writer, ",\"says\":");
        edge_write_string(writer, row->says);
        edge_write(writer, "}");
    }
    edge_write(writer, "],\"slowAtPoints\":");
    edge_write_number(writer, edge->lanes.slow_at);
    edge_write(writer, ",\"noPassAtPoints\":");
    edge_write_number(writer, edge->lanes.decoy_at);
    edge_write(writer, ",\"accountPlacesPerMinute\":");
    edge_write_number(writer, (uint64_t)edge->settings.lane_account_places);
    edge_write(writer, ",\"devicePlacesPerMinute\":");
    edge_write_number(writer, (uint64_t)edge->settings.lane_device_places);
    edge_write(writer,
               ",\"rule\":\"The points of the signals seen when a place is taken are added. "
               "From slowAtPoints on a place is let in only in some of the minutes after "
               "its turn, from noPassAtPoints on it gets no pass. Which of these a place "
               "is, is not told. Nobody is let in faster for it. Who signs in and takes a "
               "place anew is judged anew; the organisers can lift it for an account.\"}");
}
