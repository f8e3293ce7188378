/* SPDX-License-Identifier: Apache-2.0 */
#include "services/edge/place.h"

#include "services/edge/answer.h"
#include "services/edge/challenge.h"

#include "lib/io/now.h"
#include "services/edge/limit.h"
#include "services/edge/score.h"

#include <string.h>

/* Who the new place is for: the signed-in buyer, or, under fifo, a visitor with a random name. */
static enum tg_reason new_holder(struct edge_request *request, const struct edge_caller *caller,
                                 struct tg_holder *out_holder)
{
    enum { VISITOR_BYTES = 16 };
    if (request->sale->sale->challenge == TG_CHALLENGE_TICKET) {
        return edge_challenge_ticket(request, caller, out_holder);
    }
    if (caller->kind == EDGE_CALLER_BUYER) {
        *out_holder = caller->user;
        return TG_REASON_NONE;
    }
    if (tg_sale_draws(request->sale->sale)) {
        return TG_REASON_SIGN_IN_REQUIRED;
    }
    *out_holder = (struct tg_holder){.kind = TG_HOLDER_VISITOR, .length = VISITOR_BYTES};
    tg_random(out_holder->bytes, VISITOR_BYTES);
    return TG_REASON_NONE;
}

static bool same_holder(const struct tg_holder *a, const struct tg_holder *b)
{
    return a->kind == b->kind && a->length == b->length &&
           memcmp(a->bytes, b->bytes, a->length) == 0;
}

static bool entrant_of(const struct edge_request *request, const struct tg_ticket *ticket,
                       uint8_t out_entrant[TG_ENTRANT_BYTES])
{
    char text[TG_ENTRANT_LENGTH + 1];
    tg_entrant(request->edge->entrant, request->sale->name, ticket->generation, &ticket->holder,
               text);
    return tg_base32_id_decode(text, TG_ENTRANT_LENGTH, out_entrant) == 0;
}

/* A ticket of a draw. An early one is entered again, in case the edge that gave it died before it
 * could. A late one of somebody who was in the draw is not kept: a better one is due. */
static bool still_drawn(const struct edge_request *request, const struct edge_caller *caller,
                        const struct tg_ticket *ticket)
{
    uint8_t entrant[TG_ENTRANT_BYTES];
    if (!entrant_of(request, ticket, entrant)) {
        return true;
    }
    if (edge_arrival(request->sale->sale, request->now) == EDGE_ARRIVAL_EARLY) {
        (void)edge_roster_enter(request->sale, entrant);
        return true;
    }
    return ticket->early || caller->kind != EDGE_CALLER_BUYER ||
           !edge_roster_has(&request->sale->roster, entrant);
}

/* Takes the shown ticket if it is the caller's. False: a new one is due. */
static bool keep_shown(const struct edge_request *request, const struct edge_caller *caller,
                       const struct edge_shown *shown, struct edge_place *place,
                       enum tg_reason *out_reason)
{
    *out_reason = TG_REASON_NONE;
    if (shown->text == NULL) {
        return false;
    }
    enum tg_reason reason = edge_open_ticket(request, shown, &place->ticket);
    if (reason == TG_REASON_TICKET_INVALID && !shown->by_cookie) {
        *out_reason =
            reason; /* whoever wrote it should hear of it; a browser cannot help its cookie */
        return true;
    }
    if (reason == TG_REASON_TRY_AGAIN) {
        *out_reason = reason;
        return true;
    }
    if (reason != TG_REASON_NONE) {
        return false;
    }
    if (place->ticket.holder.kind == TG_HOLDER_USER && caller->kind == EDGE_CALLER_BUYER &&
        !same_holder(&place->ticket.holder, &caller->user)) {
        return false; /* somebody else's: a shared browser */
    }
    if (tg_sale_draws(request->sale->sale) && !still_drawn(request, caller, &place->ticket)) {
        return false;
    }
    memcpy(place->text, shown->text, shown->length);
    place->text[shown->length] = '\0';
    if (place->ticket.lane != TG_LANE_LIVE && edge_lane_pardoned(request, caller)) {
        place->ticket.lane = TG_LANE_LIVE;
        edge_place_seal(request->edge, place);
    }
    return true;
}

/* Into the draw, for whoever comes before the opening; who was in it before gets that place back,
 * on whatever device. */
static enum tg_reason enter_draw(struct edge_request *request, struct tg_ticket *ticket)
{
    struct edge_sale *sale = request->sale;
    uint8_t entrant[TG_ENTRANT_BYTES];
    if (!entrant_of(request, ticket, entrant)) {
        return TG_REASON_TRY_AGAIN;
    }
    switch (edge_arrival(sale->sale, request->now)) {
    case EDGE_ARRIVAL_EARLY:
        ticket->early = true;
        return edge_roster_enter(sale, entrant) ? TG_REASON_NONE : TG_REASON_TRY_AGAIN;
    case EDGE_ARRIVAL_UNSURE:
        return TG_REASON_TRY_AGAIN;
    case EDGE_ARRIVAL_LATE:
        break;
    }
    ticket->early = edge_roster_has(&sale->roster, entrant);
    if (ticket->early || sale->sale->order != TG_ORDER_LOTTERY) {
        return TG_REASON_NONE;
    }
    return edge_roster_complete(&sale->roster) ? TG_REASON_REGISTRATION_CLOSED
                                               : TG_REASON_TRY_AGAIN;
}

void edge_place_seal(struct edge *edge, struct edge_place *place)
{
    uint64_t number;
    uint8_t *at = edge->nonce + TG_TICKET_PREFIX_BYTES;
    memcpy(&number, at, sizeof(number));
    number++;
    memcpy(at, &number, sizeof(number));
    tg_ticket_seal(&edge->tickets, &place->ticket, edge->nonce, place->text);
}

static enum tg_reason mint(struct edge_request *request, const struct edge_caller *caller,
                           struct edge_place *place)
{
    struct edge_sale *sale = request->sale;
    struct tg_ticket *ticket = &place->ticket;
    *ticket =
        (struct tg_ticket){.generation = sale->sale->generation,
                           .arrived = request->now.wall,
                           .early = edge_arrival(sale->sale, request->now) == EDGE_ARRIVAL_EARLY};
    memcpy(ticket->sale, sale->name, sizeof(ticket->sale));
    edge_lease_ahead(request->edge, sale, request->now);
    if (!edge_lease_has(&sale->lease)) {
        return TG_REASON_TRY_AGAIN; /* before a challenge is spent */
    }
    enum tg_reason reason = new_holder(request, caller, &ticket->holder);
    if (reason == TG_REASON_NONE && tg_sale_draws(sale->sale)) {
        reason = enter_draw(request, ticket);
    }
    if (reason != TG_REASON_NONE || !edge_lease_take(&sale->lease, &ticket->index)) {
        return reason != TG_REASON_NONE ? reason : TG_REASON_TRY_AGAIN;
    }
    ticket->lane = edge_score_place(request, caller);
    tg_series_add(request->edge->places[ticket->lane], 1);
    edge_place_seal(request->edge, place);
    sale->tickets++;
    sale->arrivals++;
    return TG_REASON_NONE;
}

enum tg_reason edge_take_place(struct edge_request *request, struct edge_place *out_place)
{
    struct edge_caller caller;
    struct edge_shown shown;
    enum tg_reason reason = edge_caller(request, &caller);
    if (reason == TG_REASON_NONE) {
        reason = edge_shown_ticket(request, &shown);
    }
    if (reason != TG_REASON_NONE) {
        return reason;
    }
    if (caller.kind == EDGE_CALLER_REFUSED || caller.kind == EDGE_CALLER_SERVICE) {
        return TG_REASON_SIGN_IN_REQUIRED;
    }
    enum edge_state state = edge_state(&request->view, request->now);
    if (keep_shown(request, &caller, &shown, out_place, &reason)) {
        reason = reason == TG_REASON_NONE ? edge_limit_holder(request, &out_place->ticket.holder)
                                          : reason;
    } else if (state == EDGE_CLOSED || state == EDGE_SOLD_OUT) {
        return state == EDGE_CLOSED ? TG_REASON_SALE_CLOSED : TG_REASON_SOLD_OUT;
    } else {
        reason = caller.kind == EDGE_CALLER_BUYER ? edge_limit_holder(request, &caller.user)
                                                  : edge_limit_address(request);
        reason = reason == TG_REASON_NONE ? mint(request, &caller, out_place) : reason;
    }
    if (reason == TG_REASON_NONE) {
        edge_place_stand(request, out_place);
    }
    return reason;
}

void edge_place_stand(const struct edge_request *request, struct edge_place *place)
{
    struct edge_sale *sale = request->sale;
    const struct tg_ticket *ticket = &place->ticket;
    place->entrant[0] = '\0';
    if (tg_sale_draws(sale->sale)) {
        tg_entrant(request->edge->entrant, sale->name, ticket->generation, &ticket->holder,
                   place->entrant);
    }
    edge_stand(&request->view, request->now, ticket->index, ticket->early, place->entrant,
               &place->standing);
    edge_lease_saw(&sale->lease, ticket->index);
}

void edge_place_cookie(const struct edge_request *request, const struct edge_place *place,
                       struct edge_writer *headers)
{
    enum { WEEK_S = 604800 };
    edge_write_cookie(request, "tg_", place->text, WEEK_S, headers);
}

const char *edge_waiter_state(enum edge_state state)
{
    return state == EDGE_OPEN ? "waiting" : edge_state_name(state);
}

static void write_known(struct edge_writer *body, bool known, uint64_t number)
{
    if (known) {
        edge_write_number(body, number);
    } else {
        edge_write(body, "null");
    }
}

void edge_write_standing(const struct edge_request *request, const struct edge_standing *standing,
                         struct edge_writer *body)
{
    uint32_t dice;
    tg_random(&dice, sizeof(dice));
    edge_write(body, "\"state\":\"");
    edge_write(body, edge_waiter_state(edge_state(&request->view, request->now)));
    edge_write(body, "\",\"position\":");
    write_known(body, standing->known, standing->position);
    edge_write(body, ",\"estimatedWaitSeconds\":");
    write_known(body, standing->known && standing->estimate_seconds < UINT64_MAX,
                standing->estimate_seconds);
    edge_write(body, ",\"pollSeconds\":");
    edge_write_number(body, edge_spread(standing->poll_seconds, dice));
}
