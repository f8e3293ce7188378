/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tidegatectl/view.h"

#include "tools/tidegatectl/state.h"

#include <inttypes.h>
#include <string.h>

enum { BAR_CELLS = 40, LABEL = 8, LATE_MS = TG_MAX_STATE_STALE_MS };

/* ---- hearing ---- */

static void hear(struct ctl_heard *heard, struct tg_mono now)
{
    heard->ever = true;
    heard->at = now;
}

static bool is_fresh(const struct ctl_heard *heard, struct tg_mono now)
{
    return heard->ever && now.ms - heard->at.ms <= LATE_MS;
}

void ctl_view_stock(struct ctl_view *view, const Tidegate__V1__Stock *stock, struct tg_mono now)
{
    hear(&view->stock_heard, now);
    view->initial = view->free = view->held = view->settled = 0;
    for (size_t i = 0; i < stock->n_items; i++) {
        view->initial += stock->items[i]->initial;
        view->free += stock->items[i]->free;
        view->held += stock->items[i]->held;
        view->settled += stock->items[i]->settled;
    }
    view->gate_epoch = stock->epoch;
    view->gate_armed = stock->armed;
    view->gate_paused = stock->paused;
    view->lease_ms = stock->attested_until_ms - stock->gate_now_ms;
}

void ctl_view_board(struct ctl_view *view, const Tidegate__V1__Board *board, struct tg_mono now)
{
    hear(&view->board_heard, now);
    view->waiting = board->waiting;
    view->watermark = board->watermark;
    view->queue_term = board->term;
}

void ctl_view_pace(struct ctl_view *view, const Tidegate__V1__Pace *pace, struct tg_mono now)
{
    hear(&view->pace_heard, now);
    view->pace_milli = pace->pace_milli;
    ctl_printable(pace->limiting, strlen(pace->limiting), view->limiting, sizeof(view->limiting));
}

void ctl_view_state(struct ctl_view *view, const Tidegate__V1__SaleState *state, struct tg_mono now)
{
    const size_t shown = sizeof(view->causes) / sizeof(view->causes[0]);
    hear(&view->state_heard, now);
    view->phase = state->phase;
    view->generation = state->generation;
    view->epoch = state->epoch;
    view->clean_rounds = state->clean_rounds;
    view->proof_age_ms =
        state->last_clean_ms == 0 ? -1 : state->ledger_now_ms - state->last_clean_ms;
    view->pause_count = (uint32_t)state->n_pauses;
    for (size_t i = 0; i < state->n_pauses && i < shown; i++) {
        ctl_printable(state->pauses[i]->cause, strlen(state->pauses[i]->cause), view->causes[i],
                      sizeof(view->causes[i]));
    }
}

/* ---- the screen ---- */

struct screen {
    FILE *out;
    const struct ctl_options *options;
    struct tg_mono now;
};

static void label(const struct screen *screen, const char *text)
{
    (void)fprintf(screen->out, "  %s%-*s%s ", ctl_colour(screen->options, CTL_DIM), LABEL, text,
                  ctl_colour(screen->options, CTL_PLAIN));
}

/* What stands behind numbers that are not fresh. Ends the line. */
static void age(const struct screen *screen, const struct ctl_heard *heard)
{
    if (!is_fresh(heard, screen->now)) {
        (void)fprintf(screen->out, "  %s%s", ctl_colour(screen->options, CTL_RED),
                      heard->ever ? "last heard " : "not heard of yet");
        if (heard->ever) {
            (void)fprintf(screen->out, "%.1f s ago",
                          (double)(screen->now.ms - heard->at.ms) / 1000);
        }
        (void)fputs(ctl_colour(screen->options, CTL_PLAIN), screen->out);
    }
    (void)fputc('\n', screen->out);
}

static enum ctl_colour phase_colour(Tidegate__V1__SalePhase phase)
{
    if (phase == TIDEGATE__V1__SALE_PHASE__SALE_PHASE_OPEN) {
        return CTL_GREEN;
    }
    return phase == TIDEGATE__V1__SALE_PHASE__SALE_PHASE_PAUSED ? CTL_RED : CTL_YELLOW;
}

static void show_head(const struct screen *screen, const struct ctl_view *view)
{
    const char *phase = view->state_heard.ever ? ctl_phase_text(view->phase) : "unknown";
    (void)fprintf(screen->out, "%s%s%s  %s%s%s  generation %" PRIu64 "  epoch %" PRIu64,
                  ctl_colour(screen->options, CTL_BOLD), view->sale,
                  ctl_colour(screen->options, CTL_PLAIN),
                  ctl_colour(screen->options, phase_colour(view->phase)), phase,
                  ctl_colour(screen->options, CTL_PLAIN), view->generation, view->epoch);
    age(screen, &view->state_heard);
}

/* Cells of a part, never more than there are left. */
static int cells(uint64_t part, uint64_t whole, int left)
{
    int count = whole == 0 ? 0 : (int)((part * BAR_CELLS + whole - 1) / whole);
    return count < left ? count : left;
}

static void show_stock(const struct screen *screen, const struct ctl_view *view)
{
    label(screen, "stock");
    if (!view->stock_heard.ever || !view->gate_armed) {
        (void)fputs(view->stock_heard.ever ? "unknown: the gate is not armed" : "unknown",
                    screen->out);
        age(screen, &view->stock_heard);
        return;
    }
    int sold = cells(view->settled, view->initial, BAR_CELLS);
    int held = cells(view->held, view->initial, BAR_CELLS - sold);
    (void)fprintf(
        screen->out,
        "[%s%.*s%s%.*s%s%*s] sold %" PRIu64 "  held %" PRIu64 "  free %" PRIu64 "  of %" PRIu64,
        ctl_colour(screen->options, CTL_GREEN), sold, "########################################",
        ctl_colour(screen->options, CTL_YELLOW), held, "++++++++++++++++++++++++++++++++++++++++",
        ctl_colour(screen->options, CTL_PLAIN), BAR_CELLS - sold - held, "", view->settled,
        view->held, view->free, view->initial);
    age(screen, &view->stock_heard);
}

static void show_gate(const struct screen *screen, const struct ctl_view *view)
{
    label(screen, "gate");
    int64_t left_ms =
        view->lease_ms - (view->stock_heard.ever ? screen->now.ms - view->stock_heard.at.ms : 0);
    if (!view->stock_heard.ever) {
        (void)fputs("unknown", screen->out);
    } else if (left_ms > 0) {
        (void)fprintf(screen->out, "proved for another %.1f s%s", (double)left_ms / 1000,
                      view->gate_paused ? ", paused" : "");
    } else {
        (void)fprintf(screen->out, "%snot proved: it sells nothing%s%s",
                      ctl_colour(screen->options, CTL_RED), view->gate_paused ? ", paused" : "",
                      ctl_colour(screen->options, CTL_PLAIN));
    }
    (void)fputc('\n', screen->out);
}

static void show_queue(const struct screen *screen, const struct ctl_view *view)
{
    char pace[CTL_VALUE_BYTES];
    label(screen, "queue");
    (void)fprintf(screen->out, "waiting %" PRIu64 "  let through %" PRIu64 "  term %" PRIu64,
                  view->waiting, view->watermark, view->queue_term);
    age(screen, &view->board_heard);
    ctl_pace_text(view->pace_milli, pace);
    label(screen, "pace");
    (void)fprintf(screen->out, "%s  set by %s", pace,
                  view->limiting[0] != '\0' ? view->limiting : "nobody");
    age(screen, &view->pace_heard);
}

static void show_proof(const struct screen *screen, const struct ctl_view *view)
{
    label(screen, "proof");
    if (!view->state_heard.ever) {
        (void)fputs("unknown\n", screen->out);
        return;
    }
    if (view->proof_age_ms < 0) {
        (void)fputs("no clean round yet\n", screen->out);
    } else {
        (void)fprintf(screen->out, "%u clean rounds in a row, the last %.1f s ago\n",
                      view->clean_rounds, (double)view->proof_age_ms / 1000);
    }
    for (uint32_t i = 0; i < view->pause_count; i++) {
        label(screen, "paused");
        (void)fprintf(screen->out, "%s%s%s\n", ctl_colour(screen->options, CTL_RED),
                      i < 4 ? view->causes[i] : "and further pauses",
                      ctl_colour(screen->options, CTL_PLAIN));
        if (i == 4) {
            return;
        }
    }
}

void ctl_view_screen(FILE *out, const struct ctl_options *options, const struct ctl_view *view,
                     struct tg_mono now)
{
    const struct screen screen = {out, options, now};
    show_head(&screen, view);
    show_stock(&screen, view);
    show_gate(&screen, view);
    show_queue(&screen, view);
    show_proof(&screen, view);
}

/* ---- lines and JSON ---- */

static void pair(FILE *out, const char *name, bool known, uint64_t value)
{
    if (known) {
        (void)fprintf(out, " %s=%" PRIu64, name, value);
    } else {
        (void)fprintf(out, " %s=-", name);
    }
}

void ctl_view_line(FILE *out, const struct ctl_view *view, struct tg_mono now)
{
    bool state = is_fresh(&view->state_heard, now);
    bool stock = is_fresh(&view->stock_heard, now) && view->gate_armed;
    bool board = is_fresh(&view->board_heard, now);
    (void)fprintf(out, "%s %s", view->sale, state ? ctl_phase_text(view->phase) : "unknown");
    pair(out, "free", stock, view->free);
    pair(out, "held", stock, view->held);
    pair(out, "sold", stock, view->settled);
    pair(out, "waiting", board, view->waiting);
    pair(out, "watermark", board, view->watermark);
    pair(out, "paceMilli", is_fresh(&view->pace_heard, now), view->pace_milli);
    pair(out, "epoch", state, view->epoch);
    pair(out, "cleanRounds", state, view->clean_rounds);
    pair(out, "pauses", state, view->pause_count);
    (void)fputc('\n', out);
}

static json_t *number(bool known, uint64_t value)
{
    return known ? json_integer((json_int_t)value) : json_null();
}

json_t *ctl_view_json(const struct ctl_view *view, struct tg_mono now)
{
    bool state = is_fresh(&view->state_heard, now);
    bool stock = is_fresh(&view->stock_heard, now) && view->gate_armed;
    bool board = is_fresh(&view->board_heard, now);
    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "sale", view->sale,
                     "phase", state ? ctl_phase_text(view->phase) : "unknown", "free",
                     number(stock, view->free), "held", number(stock, view->held), "sold",
                     number(stock, view->settled), "waiting", number(board, view->waiting),
                     "watermark", number(board, view->watermark), "paceMilli",
                     number(is_fresh(&view->pace_heard, now), view->pace_milli), "epoch",
                     number(state, view->epoch), "cleanRounds", number(state, view->clean_rounds),
                     "pauses", number(state, view->pause_count));
}
