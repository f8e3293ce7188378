/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/core_score.h"

static const struct edge_signal_row rows[EDGE_SIGNALS] = {
#define TG_SIGNAL(identity, name_, points_, says_)                                                 \
    [EDGE_SIGNAL_##identity] = {.name = name_, .points = points_, .says = says_},
#include "catalog/signals.def"
#undef TG_SIGNAL
};

const struct edge_signal_row *edge_signal_row(enum edge_signal signal)
{
    return &rows[signal];
}

uint32_t edge_score_points(uint32_t signals)
{
    uint32_t points = 0;
    for (unsigned i = 0; i < EDGE_SIGNALS; i++) {
        points += (signals >> i & 1) * rows[i].points;
    }
    return points;
}

enum tg_lane edge_score_lane(const struct edge_lane_rules *rules, uint32_t signals)
{
    const uint32_t points = edge_score_points(signals);
    if (!rules->on || points < rules->slow_at) {
        return TG_LANE_LIVE;
    }
    return points < rules->decoy_at ? TG_LANE_SLOW : TG_LANE_DECOY;
}

bool edge_lane_asks(const struct edge_lane_rules *rules, enum tg_lane lane)
{
    return !rules->on || lane != TG_LANE_DECOY;
}

const char *edge_lane_name(enum tg_lane lane)
{
    switch (lane) {
    case TG_LANE_LIVE:
        break;
    case TG_LANE_SLOW:
        return "slow";
    case TG_LANE_DECOY:
        return "decoy";
    }
    return "live";
}
