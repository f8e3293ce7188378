/* SPDX-License-Identifier: Apache-2.0
 * GET /sale/{sale}/status: where a ticket stands, and the pass when its turn has come. Answered
 * from memory; only whose rank is below the watermark is asked for at admission. */
#include "lib/io/bus.h"
#include "services/edge/answer.h"
#include "services/edge/limit.h"
#include "services/edge/place.h"
#include "services/edge/wire.h"

#include <string.h>

enum { BODY_BYTES = TG_MAX_PASS_BYTES + 128 };

static void answer_standing(struct edge_request *request, const struct edge_standing *standing)
{
    char text[256];
    struct edge_writer body;
    edge_write_begin(&body, text, sizeof(text));
    edge_write(&body, "{");
    edge_write_standing(request, standing, &body);
    edge_write(&body, "}");
    edge_answer_json(request, NULL, &body);
}

static void answer_admitted(struct edge_request *request, const struct edge_admitted *admitted)
{
    char text[BODY_BYTES];
    struct edge_writer body;
    int64_t left_ms = admitted->expires_at.ms - request->now.wall.ms;
    edge_write_begin(&body, text, sizeof(text));
    edge_write(&body, "{\"state\":\"admitted\",\"admissionToken\":\"");
    edge_write(&body, admitted->pass);
    edge_write(&body, "\",\"expiresIn\":");
    edge_write_number(&body, left_ms > 0 ? (uint64_t)left_ms / 1000 : 0);
    edge_write(&body, "}");
    edge_answer_json(request, NULL, &body);
}

/* Admission's word. What it says of the sale is told as a state; what it says of the caller, as a
 * refusal. */
static void answer_judged(struct edge_request *request, const struct edge_admitted *admitted,
                          struct edge_place *place)
{
    static const struct {
        enum tg_reason reason;
        const char *state;
    } states[] = {
        {TG_REASON_SOLD_OUT, "sold_out"},  {TG_REASON_SALE_CLOSED, "closed"},
        {TG_REASON_SALE_PAUSED, "paused"}, {TG_REASON_SALE_NOT_OPEN, "scheduled"},
        {TG_REASON_RESTART, "restart"},
    };
    if (admitted->reason == TG_REASON_NONE) {
        answer_admitted(request, admitted);
        return;
    }
    if (admitted->reason == TG_REASON_WAITING) {
        answer_standing(request, &place->standing);
        return;
    }
    for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
        if (states[i].reason == admitted->reason) {
            edge_answer_state(request, states[i].state);
            return;
        }
    }
    edge_refuse_reason(request, edge_public_reason(admitted->reason));
}

/* Reads the ticket of a status request; answers and returns false when there is nothing to stand
 * on. */
static bool read_place(struct edge_request *request, struct edge_place *out_place)
{
    struct edge_shown shown;
    enum tg_reason reason = edge_shown_ticket(request, &shown);
    if (reason == TG_REASON_NONE && shown.text == NULL) {
        reason = TG_REASON_TICKET_REQUIRED;
    }
    if (reason == TG_REASON_NONE) {
        reason = edge_open_ticket(request, &shown, &out_place->ticket);
    }
    if (reason == TG_REASON_RESTART) {
        edge_answer_state(request, "restart");
        return false;
    }
    if (reason != TG_REASON_NONE) {
        edge_refuse_reason(request, reason);
        return false;
    }
    memcpy(out_place->text, shown.text, shown.length);
    out_place->text[shown.length] = '\0';
    edge_place_stand(request, out_place);
    return true;
}

static void on_pass_reply(void *context, uint64_t token, int status,
                          const ProtobufCMessage *message)
{
    struct edge_request request;
    struct edge_place place;
    struct edge_admitted admitted;
    if (!edge_request_again(&request, context, token) || request.sale == NULL ||
        !read_place(&request, &place)) {
        return;
    }
    if (status != 0 ||
        edge_wire_pass((const Tidegate__V1__PassReply *)message, &admitted) != TG_REASON_NONE) {
        edge_unknown(&request);
        return;
    }
    answer_judged(&request, &admitted, &place);
}

static void ask_admission(struct edge_request *request, struct edge_place *place)
{
    struct edge_caller caller;
    enum tg_reason reason = edge_caller(request, &caller);
    if (reason == TG_REASON_NONE && caller.kind != EDGE_CALLER_BUYER) {
        reason = TG_REASON_SIGN_IN_REQUIRED;
    }
    if (reason != TG_REASON_NONE) {
        edge_refuse_reason(request, reason);
        return;
    }
    if (request->sale->sale->challenge == TG_CHALLENGE_PASS && !place->ticket.proved) {
        edge_refuse_reason(request, TG_REASON_CHALLENGE_REQUIRED);
        return;
    }
    const struct tg_holder *holder = &place->ticket.holder;
    if (holder->kind == TG_HOLDER_USER &&
        (holder->length != caller.user.length ||
         memcmp(holder->bytes, caller.user.bytes, holder->length) != 0)) {
        edge_refuse_reason(request, TG_REASON_FORBIDDEN);
        return;
    }
    if (!edge_lane_asks(&request->edge->lanes, place->ticket.lane)) {
        tg_metric_add(TG_METRIC_LANE_WAITS, edge_lane_name(place->ticket.lane), 1);
        answer_standing(request, &place->standing);
        return;
    }
    Tidegate__V1__PassRequest message = TIDEGATE__V1__PASS_REQUEST__INIT;
    message.sale = request->sale->name;
    message.ticket = place->text;
    message.user = (ProtobufCBinaryData){.len = caller.user.length, .data = caller.user.bytes};
    edge_asked_count(&request->sale->asked, place->ticket.generation, place->ticket.index,
                     request->now);
    int error = tg_bus_call(tg_app_bus(request->edge->app), TG_MESSAGE_ADMISSION_PASS,
                            request->sale->name, &message.base, "", TG_MAX_CALL_MS, on_pass_reply,
                            request->edge, tg_http_id(request->exchange));
    if (error != 0) {
        edge_unknown(request);
    }
}

void edge_status(struct edge_request *request)
{
    struct edge_place place;
    if (!read_place(request, &place)) {
        return;
    }
    enum tg_reason reason = edge_limit_holder(request, &place.ticket.holder);
    if (reason != TG_REASON_NONE) {
        edge_refuse_reason(request, reason);
        return;
    }
    enum edge_state state = edge_state(&request->view, request->now);
    switch (edge_turn(state, &place.standing)) {
    case EDGE_ASK:
        ask_admission(request, &place);
        return;
    case EDGE_WAIT:
        answer_standing(request, &place.standing);
        return;
    case EDGE_TELL:
        break;
    }
    if (state == EDGE_CLOSED || state == EDGE_SOLD_OUT) {
        edge_answer_state(request, edge_state_name(state));
    } else {
        answer_standing(request, &place.standing);
    }
}
