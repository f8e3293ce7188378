/* SPDX-License-Identifier: Apache-2.0
 * The challenge before a ticket or a pass: who gets one, and whether the caller met his. */
#ifndef EDGE_CHALLENGE_H
#define EDGE_CHALLENGE_H

#include "services/edge/place.h"
#include "services/edge/solution.h"

/* The holder of a new place, once the caller shows a met challenge (X-Challenge, else the cookie of
 * the page without script). NONE, CHALLENGE_*, SIGN_IN_REQUIRED or TRY_AGAIN. */
enum tg_reason edge_challenge_ticket(struct edge_request *request, const struct edge_caller *caller,
                                     struct tg_holder *out_holder);

/* Where the sale asks for it before the pass and the caller shows an answer: seals the place again
 * as proved. NONE also when nothing is shown. */
enum tg_reason edge_challenge_pass(struct edge_request *request, struct edge_place *place);

/* For the page without script: seconds until the challenge in the caller's cookie counts. Without
 * one to wait for, a new one is made; its Set-Cookie goes to headers. */
int64_t edge_challenge_patience(struct edge_request *request, struct edge_writer *headers);

#endif
