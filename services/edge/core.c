/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/core.h"

#include <string.h>

static bool fresh(const struct edge_stock *stock, struct edge_now now)
{
    return stock->known && now.mono.ms - stock->heard.ms <= EDGE_STOCK_STALE_MS;
}

const char *edge_state_name(enum edge_state state)
{
    switch (state) {
    case EDGE_SCHEDULED:
        return "scheduled";
    case EDGE_OPEN:
        return "open";
    case EDGE_PAUSED:
        return "paused";
    case EDGE_SOLD_OUT:
        return "sold_out";
    case EDGE_CLOSED:
        break;
    }
    return "closed";
}

/* Nothing is free; *out_final: nothing is held either. */
static bool sold(const struct edge_view *view, struct edge_now now, bool *out_final)
{
    *out_final = false;
    if (fresh(view->stock, now)) {
        *out_final = view->stock->held == 0;
        return view->stock->free == 0;
    }
    *out_final = tg_sale_phase(view->sale, now.mono) == TG_PHASE_SOLD_OUT;
    return *out_final;
}

enum edge_state edge_state(const struct edge_view *view, struct edge_now now)
{
    if (view->sale->phase == TG_PHASE_CLOSED) {
        return EDGE_CLOSED;
    }
    bool final;
    if (sold(view, now, &final) && final) {
        return EDGE_SOLD_OUT;
    }
    switch (tg_sale_phase(view->sale, now.mono)) {
    case TG_PHASE_SCHEDULED:
        return EDGE_SCHEDULED;
    case TG_PHASE_OPEN:
    case TG_PHASE_SOLD_OUT: /* the gate knows better: something came back */
        return EDGE_OPEN;
    case TG_PHASE_CLOSED:
        return EDGE_CLOSED;
    case TG_PHASE_UNKNOWN:
    case TG_PHASE_PAUSED:
        break;
    }
    return EDGE_PAUSED;
}

/* The checker's pauses say so. */
static bool by_proof(const struct tg_pause *pauses, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strncmp(pauses[i].cause, "proof:", 6) == 0) {
            return true;
        }
    }
    return false;
}

enum tg_reason edge_pause_notice(const struct edge_view *view, struct edge_now now)
{
    const struct tg_sale *sale = view->sale;
    if (sale->phase == TG_PHASE_UNKNOWN || now.mono.ms - sale->heard.ms > TG_MAX_STATE_STALE_MS) {
        return TG_REASON_NOTICE_PAUSED_SILENT;
    }
    bool proof = by_proof(sale->pauses, sale->pause_count) ||
                 by_proof(sale->own_pauses, sale->own_pause_count);
    return proof ? TG_REASON_NOTICE_PAUSED_PROOF : TG_REASON_NOTICE_PAUSED;
}

bool edge_units(const struct edge_view *view, struct edge_now now, uint64_t *out_free,
                uint64_t *out_held)
{
    if (fresh(view->stock, now)) {
        *out_free = view->stock->free;
        *out_held = view->stock->held;
        return true;
    }
    if (!view->board->known) {
        return false;
    }
    *out_free = view->board->remaining;
    *out_held = view->board->held;
    return true;
}

uint64_t edge_bucket(uint64_t units)
{
    if (units <= 10) {
        return units;
    }
    uint64_t step = 10;
    while (units / 10 >= step) {
        step *= 10;
    }
    if (units / 5 >= step) {
        return 5 * step;
    }
    return units / 2 >= step ? 2 * step : step;
}

int64_t edge_opens_in_ms(const struct tg_sale *sale, struct edge_now now)
{
    enum { LEAST_MS = 1000, MOST_MS = 3600 * 1000 };
    int64_t in_ms = sale->opens_at.ms - now.wall.ms;
    if (in_ms < LEAST_MS) {
        return LEAST_MS;
    }
    return in_ms < MOST_MS ? in_ms : MOST_MS;
}

static struct edge_refusal refuse(enum tg_reason reason, int64_t retry_after_ms)
{
    return (struct edge_refusal){.reason = reason, .retry_after_ms = retry_after_ms};
}

static struct edge_refusal refuse_person(bool signed_in, enum edge_pass pass)
{
    if (!signed_in) {
        return refuse(TG_REASON_SIGN_IN_REQUIRED, 0);
    }
    switch (pass) {
    case EDGE_PASS_NONE:
        return refuse(TG_REASON_PASS_REQUIRED, 0);
    case EDGE_PASS_OLD:
        return refuse(TG_REASON_RESTART, 0);
    case EDGE_PASS_INVALID:
    case EDGE_PASS_AHEAD:
        break;
    }
    return refuse(TG_REASON_PASS_INVALID, 0);
}

struct edge_refusal edge_refuse(const struct edge_view *view, struct edge_now now, bool signed_in,
                                enum edge_pass pass)
{
    enum { PAUSED_RETRY_MS = 5000, HELD_RETRY_MS = 5000, AHEAD_RETRY_MS = 1000 };
    struct edge_refusal sold_out = {.reason = TG_REASON_SOLD_OUT};
    enum edge_state state = edge_state(view, now);
    if (pass == EDGE_PASS_AHEAD) {
        return refuse(TG_REASON_TRY_AGAIN, AHEAD_RETRY_MS); /* all we know is of another sale */
    }
    if (state == EDGE_CLOSED) {
        return refuse(TG_REASON_SALE_CLOSED, 0);
    }
    if (sold(view, now, &sold_out.final)) {
        sold_out.retry_after_ms = sold_out.final ? 0 : HELD_RETRY_MS;
        return sold_out;
    }
    switch (state) {
    case EDGE_PAUSED:
        return refuse(TG_REASON_SALE_PAUSED, PAUSED_RETRY_MS);
    case EDGE_SCHEDULED:
        return refuse(TG_REASON_SALE_NOT_OPEN, edge_opens_in_ms(view->sale, now));
    case EDGE_OPEN:
    case EDGE_SOLD_OUT:
    case EDGE_CLOSED:
        break;
    }
    return refuse_person(signed_in, pass);
}

enum edge_arrival edge_arrival(const struct tg_sale *sale, struct edge_now now)
{
    if (sale->opened) {
        return EDGE_ARRIVAL_LATE;
    }
    return now.mono.ms - sale->heard.ms > TG_MAX_STATE_STALE_MS ? EDGE_ARRIVAL_UNSURE
                                                                : EDGE_ARRIVAL_EARLY;
}

void edge_stand(const struct edge_view *view, struct edge_now now, uint64_t index, bool early,
                const char *entrant, struct edge_standing *out_standing)
{
    enum { UNKNOWN_POLL_S = 2 };
    uint64_t free = UINT64_MAX, held = 0;
    *out_standing = (struct edge_standing){.poll_seconds = UNKNOWN_POLL_S};
    uint64_t rank;
    if (!view->board->known || !tg_rank(&view->board->view, index, early, entrant, &rank)) {
        return;
    }
    if (!edge_units(view, now, &free, &held)) {
        free = UINT64_MAX;
    }
    const struct tg_board_view *board = &view->board->view;
    out_standing->known = true;
    out_standing->rank = rank;
    out_standing->below = rank < board->watermark;
    out_standing->position = tg_position(board, rank);
    out_standing->estimate_seconds = tg_estimate_seconds(board, out_standing->position);
    out_standing->poll_seconds = tg_poll_seconds(out_standing->position, board->pace_milli, free);
}

enum edge_turn edge_turn(enum edge_state state, const struct edge_standing *standing)
{
    if (state != EDGE_OPEN) {
        return EDGE_TELL;
    }
    return standing->known && standing->below ? EDGE_ASK : EDGE_WAIT;
}

uint32_t edge_spread(uint32_t poll_seconds, uint32_t dice)
{
    /* 70..130 % in thousandths, then rounded up or down by chance, so that the mean is kept. */
    uint64_t milli = (uint64_t)poll_seconds * (700 + dice % 601);
    uint64_t seconds = (milli + (dice >> 16) % 1000) / 1000;
    return seconds > 0 ? (uint32_t)seconds : 1;
}

bool edge_board_counts(const struct edge_board *known, const struct edge_board *heard)
{
    if (!known->known || heard->generation != known->generation) {
        return true;
    }
    if (heard->term != known->term) {
        return heard->term > known->term;
    }
    int order = strcmp(heard->instance, known->instance);
    return order < 0 || (order == 0 && heard->version >= known->version);
}

void edge_asked_count(struct edge_asked *asked, uint64_t generation, uint64_t index,
                      struct edge_now now)
{
    const size_t row = index % EDGE_ASKED_ROWS;
    bool known = asked->rows[row].generation == generation && asked->rows[row].index == index;
    if (known && now.mono.ms - asked->rows[row].counted.ms < EDGE_ASKED_MS) {
        return;
    }
    asked->rows[row].generation = generation;
    asked->rows[row].index = index;
    asked->rows[row].counted = now.mono;
    asked->people++;
}

void edge_lease_follow(struct edge_lease *lease, uint64_t generation)
{
    if (lease->generation == generation && lease->size > 0) {
        return;
    }
    *lease = (struct edge_lease){.generation = generation, .size = EDGE_LEASE_FIRST};
    lease->retry_at.ms = INT64_MIN;
}

void edge_lease_over(struct edge_lease *lease)
{
    if (!lease->over) {
        lease->over = true;
        lease->current = (struct edge_block){0};
        lease->spare = (struct edge_block){0};
    }
}

static uint64_t left(const struct edge_block *block)
{
    return block->end - block->next;
}

bool edge_lease_has(const struct edge_lease *lease)
{
    return left(&lease->current) > 0 || left(&lease->spare) > 0;
}

bool edge_lease_take(struct edge_lease *lease, uint64_t *out_index)
{
    if (left(&lease->current) == 0) {
        lease->current = lease->spare;
        lease->spare = (struct edge_block){0};
    }
    if (left(&lease->current) == 0) {
        return false;
    }
    *out_index = lease->current.next++;
    return true;
}

bool edge_lease_wants(const struct edge_lease *lease, struct edge_now now)
{
    if (lease->asked || left(&lease->spare) > 0) {
        return false;
    }
    if (now.mono.ms < lease->retry_at.ms) {
        return false;
    }
    return left(&lease->current) <= lease->size / 2;
}

uint32_t edge_lease_ask(struct edge_lease *lease, uint32_t waiting, struct edge_now now)
{
    enum { FAST_MS = 1000, SLOW_MS = 60000 };
    int64_t lasted_ms = now.mono.ms - lease->asked_at.ms;
    if (!lease->rated) {
        lasted_ms = FAST_MS;
    }
    if (lasted_ms < FAST_MS) {
        lease->size =
            lease->size * 2 < TG_MAX_LEASE_INDEXES ? lease->size * 2 : TG_MAX_LEASE_INDEXES;
    } else if (lasted_ms > SLOW_MS && lease->size > EDGE_LEASE_FIRST) {
        lease->size /= 2;
    }
    while (lease->size < waiting && lease->size * 2 <= TG_MAX_LEASE_INDEXES) {
        lease->size *= 2;
    }
    lease->asked = true;
    lease->asked_at = now.mono;
    return lease->size;
}

void edge_lease_saw(struct edge_lease *lease, uint64_t index)
{
    if (index < UINT64_MAX && index + 1 > lease->index_end) {
        lease->index_end = index + 1;
    }
}

void edge_lease_granted(struct edge_lease *lease, uint64_t first, uint32_t count)
{
    struct edge_block block = {.next = first, .end = first + count};
    lease->asked = false;
    lease->rated = true;
    if (left(&lease->current) == 0) {
        lease->current = block;
    } else {
        lease->spare = block;
    }
    edge_lease_saw(lease, block.end - 1);
}

void edge_lease_failed(struct edge_lease *lease, struct edge_now now)
{
    lease->asked = false;
    lease->rated = false;
    lease->retry_at.ms = now.mono.ms + EDGE_LEASE_RETRY_MS;
}
