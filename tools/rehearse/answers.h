/* SPDX-License-Identifier: Apache-2.0
 * Reads what the edge answered: HTTP status and JSON -> struct rehearse_answer, and the texts a
 * buyer keeps. */
#ifndef REHEARSE_ANSWERS_H
#define REHEARSE_ANSWERS_H

#include "lib/pure/clock.h"
#include "tools/rehearse/client.h"
#include "tools/rehearse/core.h"

struct json_t;

/* What an answer carries beside its meaning. Texts are borrowed from `root`. */
struct rehearse_details {
    struct json_t *root;
    const char *token, *entrant; /* ticket */
    const char *pass;            /* status, admitted */
    const char *reservation;     /* reserve: valid id, else NULL */
    const char *sku;             /* of the first unit, NULL where it is not told */
    int64_t unit;                /* of the first unit; -1: not told */
};

/* Any reply is understood as something: what cannot be read is HEARD_NOTHING. Free with
 * rehearse_details_free. */
void rehearse_read_answer(const struct rehearse_reply *reply, struct rehearse_answer *out_answer,
                          struct rehearse_details *out_details);
void rehearse_details_free(struct rehearse_details *details);

/* A board document; false when it is none. out_made: when the edge made it, 0 when it does not say.
 */
bool rehearse_read_board(const struct rehearse_reply *reply, struct rehearse_board *out_board,
                         struct tg_wall *out_made);

#endif
