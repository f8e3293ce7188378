// SPDX-License-Identifier: Apache-2.0
#include "services/admission/wire.h"

#include "lib/pure/number.h"
#include "lib/pure/text.h"

#include <inttypes.h>
#include <stdio.h>
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
        board->watermark > TG_COUNT_MAX) {
        return TG_REASON_MALFORMED;
    }
    out_event->kind = ADMISSION_BOARD;
    out_event->board.generation = board->generation;
    out_event->board.term = board->term;
    out_event->board.watermark = board->watermark;
    return TG_REASON_NONE;
}

enum tg_reason admission_wire_peer(const char *sale, const Tidegate__V1__Pace *pace,
                                   struct admission_event *out_event)
{
    const uint64_t counts[] = {pace->term, pace->base_milli};
    if (strcmp(pace->sale, sale) != 0 || !tg_instance_valid(pace->instance) ||
        !tg_counts_valid(counts, sizeof counts / sizeof counts[0]) || pace->ramp_permille > 1000) {
        return TG_REASON_MALFORMED;
    }
    out_event->kind = ADMISSION_PEER;
    out_event->peer.base_milli = pace->base_milli;
    out_event->peer.ramp_permille = pace->ramp_permille;
    out_event->peer.term = pace->term;
    out_event->peer.instance = pace->instance;
    return TG_REASON_NONE;
}

enum tg_reason admission_wire_stock(const char *sale, const Tidegate__V1__Stock *stock,
                                    struct admission_event *out_event)
{
    if (strcmp(stock->sale, sale) != 0 || stock->n_items > TG_MAX_ITEMS_PER_SALE) {
        return TG_REASON_MALFORMED;
    }
    out_event->kind = ADMISSION_STOCK;
    out_event->stock.epoch = stock->epoch;
    out_event->stock.known = stock->armed && stock->n_items > 0;
    return TG_REASON_NONE;
}

/* Numbers beyond these say nothing more; sums of what is left cannot overflow. */
#define LOAD_P99_US_MAX UINT64_C(3600000000)
#define LOAD_COUNT_MAX UINT64_C(1000000000)

enum tg_reason admission_wire_load(const char *sale, const Tidegate__V1__Load *load,
                                   enum admission_daemon daemon, struct admission_event *out_event)
{
    if (strcmp(load->sale, sale) != 0 || load->p99_us > LOAD_P99_US_MAX ||
        load->requests > LOAD_COUNT_MAX || load->errors > LOAD_COUNT_MAX) {
        return TG_REASON_MALFORMED;
    }
    out_event->kind = ADMISSION_LOAD;
    out_event->load = (struct admission_load){.daemon = daemon,
                                              .p99_us = load->p99_us,
                                              .requests = load->requests,
                                              .errors = load->errors,
                                              .in_flight = load->in_flight};
    return TG_REASON_NONE;
}

static bool signal_name_valid(const char *name)
{
    size_t length = strlen(name);
    return length >= 1 && length < ADMISSION_SIGNAL_NAME_BYTES &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == length;
}

enum tg_reason admission_wire_signal(const char *sale, const Tidegate__V1__Signal *signal,
                                     struct admission_event *out_event)
{
    const uint64_t counts[] = {signal->value_milli, signal->limit_milli};
    bool known = strcmp(signal->name, ADMISSION_SIGNAL_DATABASE_CPU) == 0 ||
                 strcmp(signal->name, ADMISSION_SIGNAL_PAYMENT_ERRORS) == 0;
    bool withdrawn = signal->valid_ms == 0;
    if (strcmp(signal->sale, sale) != 0 || !signal_name_valid(signal->name) ||
        !tg_counts_valid(counts, sizeof counts / sizeof counts[0]) || signal->valid_ms < 0 ||
        signal->valid_ms > ADMISSION_SIGNAL_VALID_MS_MAX ||
        (signal->limit_milli == 0 && !known && !withdrawn)) {
        return TG_REASON_MALFORMED;
    }
    *out_event = (struct admission_event){.kind = ADMISSION_SIGNAL};
    memcpy(out_event->signal.name, signal->name, strlen(signal->name));
    out_event->signal.value_milli = signal->value_milli;
    out_event->signal.limit_milli = signal->limit_milli;
    out_event->signal.valid_ms = signal->valid_ms;
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

/* For people: the measurement that sets the pace beside its goal. */
static void describe(const struct admission_pace *pace, char detail[ADMISSION_DETAIL_BYTES])
{
    detail[0] = '\0';
    if (pace->limiting == ADMISSION_BY_SIGNAL) {
        (void)snprintf(detail, ADMISSION_DETAIL_BYTES,
                       "%s is %" PRIu64 ".%03" PRIu64 ", limit %" PRIu64 ".%03" PRIu64,
                       pace->signal, pace->value / 1000, pace->value % 1000, pace->goal / 1000,
                       pace->goal % 1000);
    } else if (pace->limiting == ADMISSION_BY_EDGE) {
        (void)snprintf(detail, ADMISSION_DETAIL_BYTES,
                       "loop late by %" PRIu64 " ms, goal %" PRIu64 " ms", pace->value / 1000,
                       pace->goal / 1000);
    } else if (pace->limiting == ADMISSION_BY_GATE || pace->limiting == ADMISSION_BY_LEDGER) {
        (void)snprintf(detail, ADMISSION_DETAIL_BYTES, "p99 %" PRIu64 " ms, goal %" PRIu64 " ms",
                       pace->value / 1000, pace->goal / 1000);
    } else if (pace->limiting == ADMISSION_BY_ERRORS || pace->limiting == ADMISSION_BY_IN_FLIGHT) {
        (void)snprintf(detail, ADMISSION_DETAIL_BYTES, "%" PRIu64 "%s, goal %" PRIu64, pace->value,
                       pace->limiting == ADMISSION_BY_ERRORS ? " per mille" : "", pace->goal);
    }
}

void admission_wire_pace(const char *sale, const char *instance, const struct admission_pace *pace,
                         char detail[ADMISSION_DETAIL_BYTES], Tidegate__V1__Pace *out_pace)
{
    describe(pace, detail);
    tidegate__v1__pace__init(out_pace);
    out_pace->sale = (char *)sale;
    out_pace->instance = (char *)instance;
    out_pace->term = pace->term;
    out_pace->pace_milli = pace->pace_milli;
    out_pace->base_milli = pace->base_milli;
    out_pace->ramp_permille = pace->ramp_permille;
    out_pace->limiting = (char *)admission_limiting_name(pace->limiting);
    out_pace->detail = detail;
}
