// SPDX-License-Identifier: Apache-2.0
#include "services/admission/wire.h"

#include "lib/pure/number.h"
#include "lib/pure/text.h"

#include <string.h>

enum tg_reason admission_wire_ask(const char *sale, const Tidegate__V1__PassRequest *request,
                                  struct admission_event *out_event)
{
    size_t length = request->ticket == NULL ? 0 : strlen(request->ticket);
    if (strcmp(request->sale, sale) != 0) {
        return TG_REASON_MALFORMED;
    }
    if (length == 0) {
        return TG_REASON_TICKET_REQUIRED;
    }
    if (length > TG_MAX_TICKET_BYTES) {
        return TG_REASON_TICKET_INVALID;
    }
    if (request->user.len == 0) {
        return TG_REASON_SIGN_IN_REQUIRED;
    }
    if (!tg_user_valid(request->user.data, request->user.len)) {
        return TG_REASON_MALFORMED;
    }
    out_event->kind = ADMISSION_ASK;
    out_event->ask.ticket = request->ticket;
    out_event->ask.ticket_length = length;
    out_event->ask.user = request->user.data;
    out_event->ask.user_length = request->user.len;
    return TG_REASON_NONE;
}

enum tg_reason admission_wire_board(const char *sale, const Tidegate__V1__Board *board,
                                    struct admission_event *out_event)
{
    if (strcmp(board->sale, sale) != 0 || board->term > TG_COUNT_MAX ||
        board->watermark > TG_COUNT_MAX || board->present_at_open > TG_COUNT_MAX ||
        board->index_at_open > TG_COUNT_MAX) {
        return TG_REASON_MALFORMED;
    }
    out_event->kind = ADMISSION_BOARD;
    out_event->board.generation = board->generation;
    out_event->board.term = board->term;
    out_event->board.watermark = board->watermark;
    out_event->board.present_at_open = board->present_at_open;
    out_event->board.index_at_open = board->index_at_open;
    return TG_REASON_NONE;
}

enum tg_reason admission_wire_peer(const char *sale, const Tidegate__V1__Pace *pace,
                                   struct admission_event *out_event)
{
    if (strcmp(pace->sale, sale) != 0 || !tg_instance_valid(pace->instance) ||
        pace->term > TG_COUNT_MAX) {
        return TG_REASON_MALFORMED;
    }
    out_event->kind = ADMISSION_PEER;
    out_event->peer.term = pace->term;
    out_event->peer.instance = pace->instance;
    return TG_REASON_NONE;
}

enum tg_reason admission_wire_stock(const char *sale, const Tidegate__V1__Stock *stock,
                                    struct admission_event *out_event)
{
    if (strcmp(stock->sale, sale) != 0) {
        return TG_REASON_MALFORMED;
    }
    out_event->kind = ADMISSION_STOCK;
    out_event->stock.epoch = stock->epoch;
    out_event->stock.known = stock->armed && stock->n_items > 0;
    return TG_REASON_NONE;
}

void admission_wire_answer(const struct admission_answer *answer,
                           Tidegate__V1__PassReply *out_reply)
{
    tidegate__v1__pass_reply__init(out_reply);
    out_reply->reason = (char *)tg_reason_code(answer->reason);
    out_reply->pass = (char *)answer->pass;
    out_reply->expires_at_ms = answer->expires_at.ms;
    out_reply->watermark = answer->watermark;
}

void admission_wire_pace(const char *sale, const char *instance, const struct admission_pace *pace,
                         Tidegate__V1__Pace *out_pace)
{
    tidegate__v1__pace__init(out_pace);
    out_pace->sale = (char *)sale;
    out_pace->instance = (char *)instance;
    out_pace->term = pace->term;
    out_pace->pace_milli = pace->pace_milli;
    out_pace->limiting = (char *)admission_limiting_name(pace->limiting);
}
