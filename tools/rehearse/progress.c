/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/crowd.h"

#include <inttypes.h>
#include <stdio.h>

void rehearse_progress(const struct rehearse_crowd *crowd)
{
    const uint64_t *by_state = crowd->totals.by_state;
    const struct rehearse_board *board = &crowd->caches[0].board;
    struct rehearse_client_counts counts;
    rehearse_client_counts(crowd->client, &counts);
    uint64_t let_in =
        by_state[REHEARSE_ASKING] + by_state[REHEARSE_RESERVING] + by_state[REHEARSE_SHORT];
    uint64_t holding = by_state[REHEARSE_HOLDING] + by_state[REHEARSE_PAYING];
    uint64_t other =
        by_state[REHEARSE_LAPSED] + by_state[REHEARSE_OVER] + by_state[REHEARSE_FAILED];
    fprintf(stderr,
            "%4" PRIu32 " s  arrived %-7" PRIu32 " waiting %-7" PRIu64 " let in %-6" PRIu64
            " holding %-6" PRIu64 " bought %-6" PRIu64 " gave up %-5" PRIu64 " told %-7" PRIu64
            " other %-3" PRIu64 " | pace %" PRIu64 "/s watermark %-7" PRIu64 " free %-6" PRIu64
            " held %-6" PRIu64 " | queued %zu 5xx %" PRIu64 "\n",
            crowd->wheel.now * REHEARSE_TICK_MS / 1000, crowd->arrived,
            by_state[REHEARSE_WAITING] + by_state[REHEARSE_TICKETING], let_in, holding,
            by_state[REHEARSE_BOUGHT], by_state[REHEARSE_ABANDONED], by_state[REHEARSE_SOLD_OUT],
            other, board->view.pace_milli / 1000, board->view.watermark, board->remaining,
            board->held, counts.queued, crowd->totals.status_5xx);
}
