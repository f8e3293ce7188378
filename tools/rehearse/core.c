/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/core.h"

enum {
    TROUBLE_MS = 500, /* first wait after trouble; grows with each */
    TROUBLE_MS_MAX = 5000,
    SHORT_POLL_MS = 1000, /* all units held: some may return any moment */
    REACTION_MS = 300, /* what it takes at least to notice and press a button, and how much more */
    REACTION_SPREAD_MS = 2700,
    UNDECIDED_POLL_MS = 2000,
    PLACE_USED_MS = 10000 /* a pass of a later minute opens the place again */
};

static const struct rehearse_action nothing = {.what = REHEARSE_DO_NOTHING};

bool rehearse_ended(enum rehearse_state state)
{
    return state >= REHEARSE_BOUGHT;
}

const char *rehearse_state_name(enum rehearse_state state)
{
    static const char *const names[REHEARSE_STATE_COUNT] = {
        [REHEARSE_ABSENT] = "absent",       [REHEARSE_TICKETING] = "ticketing",
        [REHEARSE_WAITING] = "waiting",     [REHEARSE_ASKING] = "asking",
        [REHEARSE_RESERVING] = "reserving", [REHEARSE_SHORT] = "short",
        [REHEARSE_HOLDING] = "holding",     [REHEARSE_PAYING] = "paying",
        [REHEARSE_BOUGHT] = "bought",       [REHEARSE_ABANDONED] = "abandoned",
        [REHEARSE_LAPSED] = "lapsed",       [REHEARSE_SOLD_OUT] = "told",
        [REHEARSE_OVER] = "over",           [REHEARSE_FAILED] = "failed",
    };
    return state < REHEARSE_STATE_COUNT ? names[state] : "unknown";
}

/* +-30 %: people who were told the same second do not come back in the same second. */
static uint32_t spread(uint32_t ms, uint32_t dice)
{
    uint64_t low = (uint64_t)ms * 7 / 10;
    uint64_t width = (uint64_t)ms * 6 / 10;
    return (uint32_t)(low + (width * dice >> 32));
}

static struct rehearse_action sleep_for(uint32_t ms, uint32_t dice)
{
    uint32_t spread_ms = spread(ms, dice);
    return (struct rehearse_action){.what = REHEARSE_DO_SLEEP,
                                    .sleep_ms = spread_ms > 0 ? spread_ms : 1};
}

static struct rehearse_action end(struct rehearse_buyer *buyer, enum rehearse_state state)
{
    buyer->state = state;
    return (struct rehearse_action){.what = REHEARSE_DO_END};
}

static struct rehearse_action go(struct rehearse_buyer *buyer, enum rehearse_state state,
                                 enum rehearse_do what)
{
    buyer->state = state;
    return (struct rehearse_action){.what = what};
}

static struct rehearse_action rest(struct rehearse_buyer *buyer, enum rehearse_state state,
                                   uint32_t ms, uint32_t dice)
{
    buyer->state = state;
    return sleep_for(ms, dice);
}

/* No answer or "not now": wait longer each time, in `state`; give up after too many. */
static struct rehearse_action trouble(struct rehearse_buyer *buyer, enum rehearse_state state,
                                      const struct rehearse_answer *answer,
                                      const struct rehearse_rules *rules, uint32_t dice)
{
    if (buyer->tries >= rules->tries_max) {
        return end(buyer, REHEARSE_FAILED);
    }
    buyer->tries++;
    uint32_t ms = (uint32_t)TROUBLE_MS * buyer->tries;
    if (ms > TROUBLE_MS_MAX) {
        ms = TROUBLE_MS_MAX;
    }
    return rest(buyer, state, answer->wait_ms > 0 ? answer->wait_ms : ms, dice);
}

/* "Come back later" and unknown outcomes: the same request may succeed. */
static bool passing(const struct rehearse_answer *answer)
{
    return answer->heard == REHEARSE_HEARD_NOTHING ||
           (answer->heard == REHEARSE_HEARD_REFUSED && answer->reason < TG_REASON_COUNT &&
            tg_reason_row(answer->reason)->retry == TG_RETRY_LATER);
}

uint8_t rehearse_draw_plan(uint64_t dice, unsigned abandon_percent, unsigned duplicate_percent)
{
    static const uint8_t repeats[] = {REHEARSE_TWICE, REHEARSE_DROP, REHEARSE_AGAIN};
    uint8_t plan = 0;
    if ((dice & 0xffff) % 100 < abandon_percent) {
        plan |= REHEARSE_ABANDON;
    }
    if ((dice >> 16 & 0xffff) % 100 < duplicate_percent) {
        plan |= repeats[(dice >> 32 & 0xffff) % 3];
    }
    return plan;
}

struct rehearse_action rehearse_arrive(struct rehearse_buyer *buyer, uint8_t plan)
{
    *buyer = (struct rehearse_buyer){.plan = plan};
    return go(buyer, REHEARSE_TICKETING, REHEARSE_DO_TICKET);
}

struct rehearse_action rehearse_wake(struct rehearse_buyer *buyer)
{
    switch ((enum rehearse_state)buyer->state) {
    case REHEARSE_TICKETING:
        return (struct rehearse_action){.what = REHEARSE_DO_TICKET};
    case REHEARSE_WAITING:
    case REHEARSE_SHORT:
        return (struct rehearse_action){.what = REHEARSE_DO_BOARD};
    case REHEARSE_ASKING:
        return (struct rehearse_action){.what = REHEARSE_DO_STATUS};
    case REHEARSE_RESERVING:
        return (struct rehearse_action){.what = REHEARSE_DO_RESERVE};
    case REHEARSE_HOLDING:
    case REHEARSE_PAYING:
        return go(buyer, REHEARSE_PAYING, REHEARSE_DO_CONFIRM);
    case REHEARSE_ABSENT:
    case REHEARSE_BOUGHT:
    case REHEARSE_ABANDONED:
    case REHEARSE_LAPSED:
    case REHEARSE_SOLD_OUT:
    case REHEARSE_OVER:
    case REHEARSE_FAILED:
    case REHEARSE_STATE_COUNT:
        break;
    }
    return nothing;
}

/* With the pass in hand: the first time as planned, later plainly. */
static struct rehearse_action reserve(struct rehearse_buyer *buyer)
{
    enum rehearse_do what = REHEARSE_DO_RESERVE;
    if (buyer->plan & REHEARSE_TWICE) {
        what = REHEARSE_DO_RESERVE_TWICE;
    } else if (buyer->plan & REHEARSE_DROP) {
        what = REHEARSE_DO_RESERVE_AND_DROP;
    }
    buyer->plan &= (uint8_t) ~(REHEARSE_TWICE | REHEARSE_DROP);
    return go(buyer, REHEARSE_RESERVING, what);
}

/* One who was let in too late: something came back, he reacts as fast as people do, and presses the
 * button if it is still there by then. */
static struct rehearse_action look_for_returns(struct rehearse_buyer *buyer,
                                               const struct rehearse_board *board, uint32_t dice)
{
    bool roused = (buyer->plan & REHEARSE_ROUSED) != 0;
    buyer->plan &= (uint8_t)~REHEARSE_ROUSED;
    if (board->remaining == 0) {
        return sleep_for(SHORT_POLL_MS, dice);
    }
    if (roused) {
        return reserve(buyer);
    }
    buyer->plan |= REHEARSE_ROUSED;
    uint32_t more_ms = (uint32_t)((uint64_t)REACTION_SPREAD_MS * dice >> 32);
    return (struct rehearse_action){.what = REHEARSE_DO_SLEEP, .sleep_ms = REACTION_MS + more_ms};
}

/* The sale is open: is it his turn, or is there something for one whose turn it was? */
static struct rehearse_action look(struct rehearse_buyer *buyer, const struct rehearse_board *board,
                                   const char *entrant, uint32_t dice)
{
    if (buyer->state == REHEARSE_SHORT) {
        return look_for_returns(buyer, board, dice);
    }
    if (!buyer->ranked &&
        !tg_rank(&board->view, buyer->index, buyer->early, entrant, &buyer->index)) {
        return sleep_for(UNDECIDED_POLL_MS, dice);
    }
    buyer->ranked = true;
    if (buyer->index < board->view.watermark) {
        return go(buyer, REHEARSE_ASKING, REHEARSE_DO_STATUS);
    }
    uint64_t position = tg_position(&board->view, buyer->index);
    return sleep_for(tg_poll_seconds(position, board->view.pace_milli, board->remaining) * 1000,
                     dice);
}

struct rehearse_action rehearse_see_board(struct rehearse_buyer *buyer,
                                          const struct rehearse_board *board, const char *entrant,
                                          uint32_t dice)
{
    if (buyer->state != REHEARSE_WAITING && buyer->state != REHEARSE_SHORT) {
        return nothing;
    }
    switch (board->phase) {
    case REHEARSE_PHASE_SOLD_OUT:
        return end(buyer, REHEARSE_SOLD_OUT);
    case REHEARSE_PHASE_CLOSED:
        return end(buyer, REHEARSE_OVER);
    case REHEARSE_PHASE_UNKNOWN:
        return sleep_for(UNDECIDED_POLL_MS, dice);
    case REHEARSE_PHASE_SCHEDULED:
    case REHEARSE_PHASE_PAUSED:
        return sleep_for(board->poll_s > 0 ? board->poll_s * 1000 : UNDECIDED_POLL_MS, dice);
    case REHEARSE_PHASE_OPEN:
        return look(buyer, board, entrant, dice);
    }
    return nothing;
}

static struct rehearse_action hear_ticket(struct rehearse_buyer *buyer,
                                          const struct rehearse_answer *answer,
                                          const struct rehearse_rules *rules, uint32_t dice)
{
    if (buyer->state != REHEARSE_TICKETING) {
        return nothing;
    }
    if (passing(answer)) {
        return trouble(buyer, REHEARSE_TICKETING, answer, rules, dice);
    }
    if (answer->heard == REHEARSE_HEARD_REFUSED) {
        bool over = answer->reason == TG_REASON_SALE_CLOSED ||
                    answer->reason == TG_REASON_REGISTRATION_CLOSED;
        return end(buyer, over ? REHEARSE_OVER : REHEARSE_FAILED);
    }
    if (answer->said == REHEARSE_SAID_SOLD_OUT || answer->said == REHEARSE_SAID_CLOSED) {
        return end(buyer, answer->said == REHEARSE_SAID_CLOSED ? REHEARSE_OVER : REHEARSE_SOLD_OUT);
    }
    buyer->tries = 0;
    buyer->index = answer->index;
    buyer->early = answer->early;
    buyer->ranked = false;
    return go(buyer, REHEARSE_WAITING, REHEARSE_DO_BOARD);
}

static struct rehearse_action hear_said(struct rehearse_buyer *buyer,
                                        const struct rehearse_answer *answer, uint32_t dice)
{
    uint32_t wait_ms = answer->wait_ms > 0 ? answer->wait_ms : UNDECIDED_POLL_MS;
    switch (answer->said) {
    case REHEARSE_SAID_ADMITTED:
        return reserve(buyer);
    case REHEARSE_SAID_SOLD_OUT:
        return end(buyer, REHEARSE_SOLD_OUT);
    case REHEARSE_SAID_CLOSED:
        return end(buyer, REHEARSE_OVER);
    case REHEARSE_SAID_RESTART:
        return go(buyer, REHEARSE_TICKETING, REHEARSE_DO_TICKET);
    case REHEARSE_SAID_WAITING:
    case REHEARSE_SAID_SCHEDULED:
    case REHEARSE_SAID_PAUSED:
        return rest(buyer, REHEARSE_WAITING, wait_ms, dice);
    case REHEARSE_SAID_NOTHING:
        break;
    }
    return end(buyer, REHEARSE_FAILED);
}

static struct rehearse_action hear_status(struct rehearse_buyer *buyer,
                                          const struct rehearse_answer *answer,
                                          const struct rehearse_rules *rules, uint32_t dice)
{
    if (buyer->state != REHEARSE_ASKING) {
        return nothing;
    }
    if (passing(answer)) {
        return answer->reason == TG_REASON_SOLD_OUT && answer->final
                   ? end(buyer, REHEARSE_SOLD_OUT)
                   : trouble(buyer, REHEARSE_WAITING, answer, rules, dice);
    }
    if (answer->heard == REHEARSE_HEARD_REFUSED) {
        return answer->reason == TG_REASON_RESTART
                   ? go(buyer, REHEARSE_TICKETING, REHEARSE_DO_TICKET)
                   : end(buyer, REHEARSE_FAILED);
    }
    buyer->tries = 0;
    return hear_said(buyer, answer, dice);
}

/* He has it, whatever he thought before: a unit given is never overlooked. */
static struct rehearse_action won(struct rehearse_buyer *buyer, const struct rehearse_rules *rules,
                                  uint32_t dice)
{
    buyer->tries = 0;
    if (buyer->plan & REHEARSE_ABANDON) {
        return end(buyer, REHEARSE_ABANDONED);
    }
    if (buyer->plan & REHEARSE_AGAIN) {
        buyer->plan = (uint8_t)((buyer->plan & ~REHEARSE_AGAIN) | REHEARSE_REPEATING);
        return go(buyer, REHEARSE_HOLDING, REHEARSE_DO_RESERVE);
    }
    return rest(buyer, REHEARSE_HOLDING, rules->pay_ms, dice);
}

/* Had a unit, lost it unnoticed (an answer lost for longer than the hold): a new purchase with a
 * new key. */
static struct rehearse_action start_over(struct rehearse_buyer *buyer,
                                         const struct rehearse_rules *rules, uint32_t dice)
{
    if (buyer->attempt >= 3) {
        return end(buyer, REHEARSE_LAPSED);
    }
    buyer->attempt++;
    buyer->tries = 0;
    return rest(buyer, REHEARSE_ASKING, rules->pay_ms, dice);
}

static struct rehearse_action hear_refusal(struct rehearse_buyer *buyer,
                                           const struct rehearse_answer *answer,
                                           const struct rehearse_rules *rules, uint32_t dice)
{
    enum tg_reason reason = answer->reason;
    if (reason == TG_REASON_SOLD_OUT && answer->final) {
        return end(buyer, REHEARSE_SOLD_OUT);
    }
    if (reason == TG_REASON_SOLD_OUT) {
        buyer->tries = 0;
        return rest(buyer, REHEARSE_SHORT, answer->wait_ms > 0 ? answer->wait_ms : SHORT_POLL_MS,
                    dice);
    }
    if (reason == TG_REASON_PASS_EXPIRED) {
        return go(buyer, REHEARSE_ASKING, REHEARSE_DO_STATUS);
    }
    /* His lapsed hold is over by the ledger's word; the gate may not have obeyed it yet. */
    if ((reason == TG_REASON_PASS_USED || reason == TG_REASON_LIMIT_REACHED) &&
        buyer->attempt > 0) {
        return rest(buyer, REHEARSE_ASKING, PLACE_USED_MS, dice);
    }
    if (reason == TG_REASON_RESERVATION_EXPIRED || reason == TG_REASON_RESERVATION_CANCELLED) {
        return start_over(buyer, rules, dice);
    }
    return end(buyer, reason == TG_REASON_SALE_CLOSED ? REHEARSE_OVER : REHEARSE_FAILED);
}

static struct rehearse_action hear_reserve(struct rehearse_buyer *buyer,
                                           const struct rehearse_answer *answer,
                                           const struct rehearse_rules *rules, uint32_t dice)
{
    if (buyer->state == REHEARSE_HOLDING && (buyer->plan & REHEARSE_REPEATING)) {
        buyer->plan &= (uint8_t)~REHEARSE_REPEATING;
        return sleep_for(rules->pay_ms, dice);
    }
    bool has_one = buyer->state == REHEARSE_HOLDING || buyer->state == REHEARSE_PAYING ||
                   buyer->state == REHEARSE_BOUGHT || buyer->state == REHEARSE_ABANDONED ||
                   buyer->state == REHEARSE_LAPSED;
    if (answer->heard == REHEARSE_HEARD_DONE) {
        return has_one ? nothing : won(buyer, rules, dice);
    }
    if (buyer->state != REHEARSE_RESERVING) {
        return nothing; /* the other one of two */
    }
    if (answer->heard == REHEARSE_HEARD_REFUSED && answer->reason == TG_REASON_SOLD_OUT) {
        return hear_refusal(buyer, answer, rules, dice);
    }
    return passing(answer) ? trouble(buyer, REHEARSE_RESERVING, answer, rules, dice)
                           : hear_refusal(buyer, answer, rules, dice);
}

static struct rehearse_action hear_confirm(struct rehearse_buyer *buyer,
                                           const struct rehearse_answer *answer,
                                           const struct rehearse_rules *rules, uint32_t dice)
{
    if (buyer->state != REHEARSE_PAYING) {
        return nothing;
    }
    if (answer->heard == REHEARSE_HEARD_DONE) {
        return end(buyer, REHEARSE_BOUGHT);
    }
    if (passing(answer)) {
        return trouble(buyer, REHEARSE_PAYING, answer, rules, dice);
    }
    return end(buyer,
               answer->reason == TG_REASON_RESERVATION_EXPIRED ? REHEARSE_LAPSED : REHEARSE_FAILED);
}

struct rehearse_action rehearse_hear(struct rehearse_buyer *buyer,
                                     const struct rehearse_answer *answer,
                                     const struct rehearse_rules *rules, uint32_t dice)
{
    switch (answer->ask) {
    case REHEARSE_ASK_TICKET:
        return hear_ticket(buyer, answer, rules, dice);
    case REHEARSE_ASK_STATUS:
        return hear_status(buyer, answer, rules, dice);
    case REHEARSE_ASK_RESERVE:
        return hear_reserve(buyer, answer, rules, dice);
    case REHEARSE_ASK_CONFIRM:
        return hear_confirm(buyer, answer, rules, dice);
    case REHEARSE_ASK_BOARD:
    case REHEARSE_ASK_COUNT:
        break;
    }
    return nothing;
}
