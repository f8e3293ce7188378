/* SPDX-License-Identifier: Apache-2.0
 * A caller's place: the one his ticket stands for, or a new one. Costs one MAC check or one seal;
 * no store, no bus. */
#ifndef EDGE_PLACE_H
#define EDGE_PLACE_H

#include "services/edge/credentials.h"
#include "services/edge/writer.h"

struct edge_place {
    struct tg_ticket ticket;
    char text[TG_MAX_TICKET_BYTES + 1];
    char entrant[TG_ENTRANT_LENGTH + 1]; /* "" under fifo: nothing is drawn */
    struct edge_standing standing;
};

/* NONE; SOLD_OUT or SALE_CLOSED when there is no place to give (a state to tell, not an error);
 * MALFORMED, TICKET_INVALID, SIGN_IN_REQUIRED, CHALLENGE_*, or TRY_AGAIN when no index is in hand.
 */
enum tg_reason edge_take_place(struct edge_request *request, struct edge_place *out_place);

/* Seals place->ticket into place->text, under a nonce of this process that was never used. */
void edge_place_seal(struct edge *edge, struct edge_place *place);

/* The standing of an opened ticket, and its entrant where a draw ranks entrants. */
void edge_place_stand(const struct edge_request *request, struct edge_place *place);

/* Set-Cookie of the ticket, so that a refresh finds the place again. */
void edge_place_cookie(const struct edge_request *request, const struct edge_place *place,
                       struct edge_writer *headers);

/* "state":"waiting","position":..,"estimatedWaitSeconds":..,"pollSeconds":.. */
void edge_write_standing(const struct edge_request *request, const struct edge_standing *standing,
                         struct edge_writer *body);

/* The state of a waiter: open is told as waiting. */
const char *edge_waiter_state(enum edge_state state);

#endif
