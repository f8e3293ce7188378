/* SPDX-License-Identifier: Apache-2.0
 * GET /sale/{sale}/ticket: a place in the queue, the same for the same ticket. */
#include "services/edge/answer.h"
#include "services/edge/challenge.h"
#include "services/edge/place.h"

#include <string.h>

enum { BODY_BYTES = 1024 };

static void answer_place(struct edge_request *request, const struct edge_place *place)
{
    static char body[BODY_BYTES], lines[1024]; /* static: not cleared for every ticket */
    struct edge_writer writer, headers;
    edge_write_begin(&writer, body, sizeof(body));
    edge_write(&writer, "{\"token\":\"");
    edge_write(&writer, place->text);
    edge_write(&writer, "\",\"entrant\":");
    if (place->entrant[0] != '\0') {
        edge_write(&writer, "\"");
        edge_write(&writer, place->entrant);
        edge_write(&writer, "\"");
    } else {
        edge_write(&writer, "null");
    }
    edge_write(&writer, ",\"index\":");
    edge_write_number(&writer, place->ticket.index);
    edge_write(&writer, place->ticket.early ? ",\"early\":true," : ",\"early\":false,");
    edge_write_standing(request, &place->standing, &writer);
    edge_write(&writer, "}");
    edge_write_begin(&headers, lines, sizeof(lines));
    edge_place_cookie(request, place, &headers);
    if (!edge_write_end(&headers)) {
        edge_unknown(request);
        return;
    }
    edge_answer_json(request, lines, &writer);
}

void edge_ticket(struct edge_request *request)
{
    struct edge_place place;
    enum tg_reason reason = edge_take_place(request, &place);
    if (reason == TG_REASON_NONE) {
        reason = edge_challenge_pass(request, &place);
    }
    if (reason == TG_REASON_NONE) {
        answer_place(request, &place);
    } else if (reason == TG_REASON_SOLD_OUT || reason == TG_REASON_SALE_CLOSED) {
        edge_answer_state(request, edge_state_name(edge_state(&request->view, request->now)));
    } else if (reason == TG_REASON_TRY_AGAIN && edge_park(request)) {
        return; /* handled again when an index is in hand */
    } else if (reason == TG_REASON_TRY_AGAIN) {
        const struct edge_problem problem = {
            .reason = reason,
            .detail = "No place can be given at this moment. Ask again in a second.",
            .retry_after_ms = 1000};
        edge_refuse_request(request, &problem);
    } else {
        edge_refuse_reason(request, reason);
    }
}
