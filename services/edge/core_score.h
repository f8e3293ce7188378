/* SPDX-License-Identifier: Apache-2.0
 * Which lane a new place gets, and what a lane means here. Pure: signals are counted elsewhere and
 * come as a set. */
#ifndef EDGE_CORE_SCORE_H
#define EDGE_CORE_SCORE_H

#include "lib/pure/ticket.h"

#include <stdbool.h>
#include <stdint.h>

enum edge_signal {
#define TG_SIGNAL(identity, name, points, says) EDGE_SIGNAL_##identity,
#include "catalog/signals.def"
#undef TG_SIGNAL
    EDGE_SIGNALS
};

struct edge_signal_row {
    const char *name;
    uint32_t points;
    const char *says;
};
const struct edge_signal_row *edge_signal_row(enum edge_signal signal);

/* A set of signals: bit `1 << signal`. */
static inline uint32_t edge_signal_bit(enum edge_signal signal, bool seen)
{
    return (uint32_t)seen << signal;
}

/* off: every place is live, also one sealed otherwise before. */
struct edge_lane_rules {
    bool on;
    uint32_t slow_at, decoy_at; /* points; slow_at <= decoy_at */
};

uint32_t edge_score_points(uint32_t signals);
enum tg_lane edge_score_lane(const struct edge_lane_rules *rules, uint32_t signals);

/* Whether a place whose turn has come is worth a question to admission: decoys are not, while lanes
 * are on. */
bool edge_lane_asks(const struct edge_lane_rules *rules, enum tg_lane lane);

/* "live", "slow", "decoy": for metrics only, never for clients. */
const char *edge_lane_name(enum tg_lane lane);

#endif
