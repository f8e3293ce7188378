/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/crowd.h"

#include <inttypes.h>
#include <stdio.h>

enum { HEADING_EVERY = 20 };

void rehearse_progress(const struct rehearse_crowd *crowd)
{
    static unsigned lines;
    const uint64_t *by_state = crowd->totals.by_state;
    const struct rehearse_board *board = &crowd->caches[0].board;
    if (lines++ % HEADING_EVERY == 0) {
        fputs("    s  arrived  waiting  let in holding  bought gave up told no other | pace/s    "
              "free "
              "   held  5xx\n",
              stderr);
    }
    uint64_t let_in =
        by_state[REHEARSE_ASKING] + by_state[REHEARSE_RESERVING] + by_state[REHEARSE_SHORT];
    uint64_t holding = by_state[REHEARSE_HOLDING] + by_state[REHEARSE_PAYING];
    uint64_t other =
        by_state[REHEARSE_LAPSED] + by_state[REHEARSE_OVER] + by_state[REHEARSE_FAILED];
    fprintf(
        stderr,
        "%5" PRIu32 " %8" PRIu32 " %8" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64 " %7" PRIu64
        " %7" PRIu64 " %5" PRIu64 " | %6" PRIu64 " %7" PRIu64 " %7" PRIu64 " %4" PRIu64 "\n",
        crowd->wheel.now * REHEARSE_TICK_MS / 1000, crowd->arrived,
        by_state[REHEARSE_WAITING] + by_state[REHEARSE_TICKETING], let_in, holding,
        by_state[REHEARSE_BOUGHT], by_state[REHEARSE_ABANDONED], by_state[REHEARSE_SOLD_OUT], other,
        board->view.pace_milli / 1000, board->remaining, board->held, crowd->totals.status_5xx);
}
