// SPDX-License-Identifier: Apache-2.0
#include "services/admission/core_judge.h"

#include "lib/pure/rank.h"

#include <string.h>

static enum tg_reason ticket_fault(const struct admission_brain *brain,
                                   const struct admission_event *ask,
                                   const struct tg_ticket *ticket)
{
    if (strcmp(ticket->sale, brain->sale) != 0) {
        return TG_REASON_TICKET_INVALID;
    }
    uint64_t generation = ask->ask.view.generation;
    if (ticket->generation != generation) {
        /* newer than what we know: our view lags, which is not the buyer's fault */
        return ticket->generation < generation ? TG_REASON_RESTART : TG_REASON_TRY_AGAIN;
    }
    bool signed_in = ticket->holder.kind == TG_HOLDER_USER;
    bool same = ticket->holder.length == ask->ask.user_length &&
                memcmp(ticket->holder.bytes, ask->ask.user, ask->ask.user_length) == 0;
    return signed_in && !same ? TG_REASON_FORBIDDEN : TG_REASON_NONE;
}

static enum tg_reason phase_fault(enum tg_phase phase)
{
    switch (phase) {
    case TG_PHASE_UNKNOWN:
        break;
    case TG_PHASE_SCHEDULED:
        return TG_REASON_SALE_NOT_OPEN;
    case TG_PHASE_OPEN:
        return TG_REASON_NONE;
    case TG_PHASE_PAUSED:
        return TG_REASON_SALE_PAUSED;
    case TG_PHASE_SOLD_OUT:
        return TG_REASON_SOLD_OUT;
    case TG_PHASE_CLOSED:
        return TG_REASON_SALE_CLOSED;
    }
    return TG_REASON_TRY_AGAIN;
}

static enum tg_reason turn_fault(const struct admission_brain *brain, struct tg_mono now,
                                 const struct admission_view *view, const struct tg_ticket *ticket)
{
    if (!brain->board.known || now.ms - brain->board.heard.ms > ADMISSION_BOARD_STALE_MS) {
        return TG_REASON_TRY_AGAIN;
    }
    struct tg_board_view board = {.random = view->order != TG_ORDER_FIFO,
                                  .lottery = view->order == TG_ORDER_LOTTERY,
                                  .revealed = view->draw.revealed,
                                  .watermark = brain->board.watermark,
                                  .present_at_open = view->draw.count,
                                  .index_at_open = view->draw.index_at_open};
    char entrant[TG_ENTRANT_LENGTH + 1] = "";
    uint64_t rank;
    if (board.random) {
        memcpy(board.seed, view->draw.seed, sizeof board.seed);
        tg_entrant(brain->keys->entrant, brain->sale, ticket->generation, &ticket->holder, entrant);
    }
    if (!tg_rank(&board, ticket->index, ticket->early, entrant, &rank)) {
        return TG_REASON_WAITING; /* the draw has not been revealed */
    }
    return rank < brain->board.watermark ? TG_REASON_NONE : TG_REASON_WAITING;
}

static uint64_t window_of(struct tg_wall now)
{
    return (uint64_t)now.ms / TG_MAX_PASS_WINDOW_MS;
}

/* Whoever was drawn has one place, on whatever device and with however many tickets. */
static void place_of(const struct admission_brain *brain, const struct admission_event *ask,
                     const struct tg_ticket *ticket, uint8_t out_place[TG_PLACE_BYTES])
{
    bool drawn = ask->ask.view.order != TG_ORDER_FIFO && ticket->early;
    tg_place(brain->sale, ticket->generation, &ticket->holder, drawn ? 0 : ticket->index,
             out_place);
}

/* The turn has come, as the holder can reckon; the answer is that of somebody whose turn has not.
 * No instance remembers who waits: which minute is a slow place's follows from the place, and among
 * slow_one_in minutes there is one. */
static enum tg_reason lane_fault(const struct admission_goals *goals, struct tg_wall now,
                                 enum tg_lane lane, const uint8_t place[TG_PLACE_BYTES])
{
    switch (goals->lanes ? lane : TG_LANE_LIVE) {
    case TG_LANE_LIVE:
        return TG_REASON_NONE;
    case TG_LANE_SLOW:
        return (place[0] + window_of(now)) % goals->slow_one_in == 0 ? TG_REASON_NONE
                                                                     : TG_REASON_WAITING;
    case TG_LANE_DECOY:
        break;
    }
    return TG_REASON_WAITING;
}

static void sign(const struct admission_brain *brain, struct tg_wall now,
                 const struct admission_event *ask, const struct tg_ticket *ticket,
                 struct admission_answer *out_answer)
{
    struct tg_pass pass = {.generation = ticket->generation,
                           .user_length = ask->ask.user_length,
                           .window = window_of(now)};
    memcpy(pass.sale, brain->sale, sizeof pass.sale);
    memcpy(pass.user, ask->ask.user, ask->ask.user_length);
    place_of(brain, ask, ticket, pass.place);
    tg_jti(brain->keys->mac, brain->sale, pass.generation, pass.place, pass.user, pass.user_length,
           pass.window, pass.jti);
    if (brain->keys->algorithm == TG_PASS_ES256) {
        (void)tg_pass_write(TG_PASS_ES256, brain->keys->es256_id, &pass, out_answer->pass);
    } else {
        (void)tg_pass_sign(&brain->keys->sign, &pass, out_answer->pass);
    }
    out_answer->expires_at = tg_pass_expires(pass.window);
}

void admission_judge(const struct admission_brain *brain, struct admission_now now,
                     const struct admission_event *ask, struct admission_answer *out_answer)
{
    struct tg_ticket ticket;
    out_answer->pass[0] = '\0';
    out_answer->expires_at = (struct tg_wall){0};
    out_answer->watermark = brain->board.watermark;
    if (tg_ticket_open(&brain->keys->tickets, ask->ask.ticket, ask->ask.ticket_length, &ticket) !=
        0) {
        out_answer->reason = TG_REASON_TICKET_INVALID;
        return;
    }
    out_answer->reason = ticket_fault(brain, ask, &ticket);
    if (out_answer->reason == TG_REASON_NONE) {
        out_answer->reason = phase_fault(ask->ask.view.phase);
    }
    if (out_answer->reason == TG_REASON_NONE) {
        out_answer->reason = turn_fault(brain, now.mono, &ask->ask.view, &ticket);
    }
    if (out_answer->reason == TG_REASON_NONE) {
        uint8_t place[TG_PLACE_BYTES];
        place_of(brain, ask, &ticket, place);
        out_answer->reason = lane_fault(brain->control.goals, now.wall, ticket.lane, place);
    }
    if (out_answer->reason == TG_REASON_NONE) {
        sign(brain, now.wall, ask, &ticket, out_answer);
    }
}
