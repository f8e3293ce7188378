/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/crowd.h"

#include <inttypes.h>
#include <stdio.h>

enum { HEADING_EVERY = 20 };

/* What is ahead: so that nobody wonders for how long nothing seems to happen. */
void rehearse_announce(const struct rehearse_crowd *crowd)
{
    const struct rehearse_options *options = crowd->options;
    const struct rehearse_sale *sale = crowd->sale;
    char opens_at[TG_RFC3339_BYTES];
    int64_t opens_ms =
        sale->opens_at_ms > crowd->begun.ms ? sale->opens_at_ms - crowd->begun.ms : 0;
    int64_t lapse_ms = options->abandon_percent > 0 ? sale->hold_ms + sale->grace_ms : 0;
    int64_t come_ms = (int64_t)options->arrive_s * (1 + REHEARSE_TRAILING) * 1000;
    int64_t least_ms = opens_ms + lapse_ms > come_ms ? opens_ms + lapse_ms : come_ms;
    if (tg_wall_format((struct tg_wall){.ms = sale->opens_at_ms}, opens_at) != 0) {
        return;
    }
    fprintf(stderr,
            "%" PRIu32 " buyers come within %" PRId64 " s, 80 %% of them in the first %" PRIu32
            " s; the sale opens at %s, in %" PRId64 " s; this takes at least %" PRId64
            " s, at most %" PRIu32 " s\n",
            options->buyers, come_ms / 1000, options->arrive_s, opens_at, opens_ms / 1000,
            least_ms / 1000, options->limit_s + options->settle_s);
}

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
        " %7" PRIu64 " %5" PRIu64 " | %6" PRIu64 " %7" PRIu64 " %7" PRIu64 " %4" PRIu64 "%s\n",
        crowd->wheel.now * REHEARSE_TICK_MS / 1000, crowd->arrived,
        by_state[REHEARSE_WAITING] + by_state[REHEARSE_TICKETING], let_in, holding,
        by_state[REHEARSE_BOUGHT], by_state[REHEARSE_ABANDONED], by_state[REHEARSE_SOLD_OUT], other,
        board->view.pace_milli / 1000, board->remaining, board->held, crowd->totals.status_5xx,
        rehearse_strained(&crowd->strain, crowd->options->faults)
            ? "  the load generator does not keep up: this run will be void"
            : "");
}
