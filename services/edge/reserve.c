/* SPDX-License-Identifier: Apache-2.0
 * POST /sale/{sale}/reserve. Whoever shows no correctly signed pass for this sale and buyer is
 * refused from memory. Whoever does goes to the gate, even when the sale is sold out or paused and
 * the pass has expired: the gate looks for a replay first, so that a winner whose answer was lost
 * finds it. */
#include "lib/io/bus.h"
#include "lib/io/failpoint.h"
#include "services/edge/credentials.h"
#include "services/edge/demand.h"
#include "services/edge/limit.h"
#include "services/edge/purchase.h"

#include <string.h>
#include <strings.h>

struct wish {
    struct edge_caller caller;
    const char *pass_text;
    struct tg_pass pass;
    char key[TG_MAX_IDEMPOTENCY_KEY_BYTES + 1];
    struct edge_demand demand;
};

static void refuse_from_memory(struct edge_request *request, bool signed_in, enum edge_pass pass)
{
    struct edge_refusal refusal = edge_refuse(&request->view, request->now, signed_in, pass);
    const struct edge_problem problem = {.reason = refusal.reason,
                                         .members = refusal.reason != TG_REASON_SOLD_OUT ? ""
                                                    : refusal.final ? ",\"final\":true"
                                                                    : ",\"final\":false",
                                         .retry_after_ms = refusal.retry_after_ms};
    edge_refuse_request(request, &problem);
}

/* Idempotency-Key, bare or as a quoted string: both spell the same key. */
static enum tg_reason read_key(const struct edge_request *request,
                               char out_key[TG_MAX_IDEMPOTENCY_KEY_BYTES + 1])
{
    unsigned count;
    const char *text = tg_http_header(request->exchange, "idempotency-key", &count);
    if (text == NULL) {
        return TG_REASON_IDEMPOTENCY_KEY_REQUIRED;
    }
    size_t length = strlen(text);
    if (length >= 2 && text[0] == '"' && text[length - 1] == '"') {
        text++;
        length -= 2;
    }
    if (count != 1 || length > TG_MAX_IDEMPOTENCY_KEY_BYTES ||
        !tg_idempotency_key_valid(text, length)) {
        return TG_REASON_IDEMPOTENCY_KEY_REQUIRED;
    }
    memcpy(out_key, text, length);
    out_key[length] = '\0';
    return TG_REASON_NONE;
}

enum tg_reason edge_check_media(const struct edge_request *request)
{
    size_t length;
    tg_http_body(request->exchange, &length);
    const char *type = tg_http_header(request->exchange, "content-type", NULL);
    if (length == 0) {
        return TG_REASON_NONE;
    }
    size_t name_length = type != NULL ? strcspn(type, "; \t") : 0;
    bool json =
        name_length == sizeof(EDGE_JSON) - 1 && strncasecmp(type, EDGE_JSON, name_length) == 0;
    return json ? TG_REASON_NONE : TG_REASON_UNSUPPORTED_MEDIA;
}

/* Correctly signed, of this sale, generation and buyer. Whether it is fresh and unused is the
 * gate's to say. */
static bool check_pass(const struct edge_request *request, struct wish *wish,
                       enum edge_pass *out_fault)
{
    const struct edge *edge = request->edge;
    *out_fault = EDGE_PASS_INVALID;
    size_t length = strlen(wish->pass_text);
    if (length > TG_MAX_PASS_BYTES ||
        tg_pass_keys_verify(&edge->passes, wish->pass_text, length, &wish->pass) != 0) {
        return false;
    }
    const struct tg_holder *user = &wish->caller.user;
    if (strcmp(wish->pass.sale, request->sale->name) != 0 ||
        wish->pass.user_length != user->length ||
        memcmp(wish->pass.user, user->bytes, user->length) != 0) {
        return false;
    }
    uint64_t generation = request->sale->sale->generation;
    *out_fault = wish->pass.generation < generation ? EDGE_PASS_OLD : EDGE_PASS_AHEAD;
    return wish->pass.generation == generation;
}

/* Answers and returns false when the request is one that no pass could help. */
static bool read_wish(struct edge_request *request, struct wish *wish)
{
    char fault[EDGE_FAULT_BYTES] = "";
    size_t length;
    const char *body = (const char *)tg_http_body(request->exchange, &length);
    enum tg_reason reason = read_key(request, wish->key);
    if (reason == TG_REASON_NONE) {
        reason = edge_check_media(request);
    }
    if (reason == TG_REASON_NONE) {
        reason = edge_demand(request->sale->sale, body, length, &wish->demand, fault);
    }
    if (reason != TG_REASON_NONE) {
        const struct edge_problem problem = {.reason = reason,
                                             .detail = fault[0] != '\0' ? fault : NULL};
        edge_refuse_request(request, &problem);
        return false;
    }
    return true;
}

void edge_write_units(const struct tg_sale *sale_or_null, const struct edge_units *units,
                      struct edge_writer *body)
{
    edge_write(body, ",\"units\":[");
    for (uint32_t i = 0; i < units->count; i++) {
        uint32_t item = units->units[i].item;
        edge_write(body, i == 0 ? "{\"sku\":" : ",{\"sku\":");
        if (sale_or_null != NULL && item < sale_or_null->item_count) {
            edge_write_string(body, sale_or_null->items[item].sku);
        } else {
            edge_write(body, "null");
        }
        edge_write(body, ",\"unit\":");
        edge_write_number(body, units->units[i].unit);
        edge_write(body, "}");
    }
    edge_write(body, "]");
}

static void answer_held(struct edge_request *request, const struct edge_held *held)
{
    char text[EDGE_UNITS_BYTES], lines[128];
    struct edge_writer body, headers;
    edge_write_begin(&body, text, sizeof(text));
    edge_write(&body, "{\"reservationId\":\"");
    edge_write(&body, held->reservation);
    edge_write(&body, "\",\"expiresAt\":");
    edge_write_time(&body, held->expires_at);
    edge_write_units(request->sale->sale, &held->units, &body);
    edge_write(&body, "}");
    edge_write_begin(&headers, lines, sizeof(lines));
    edge_write(&headers, "Location: /reservations/");
    edge_write(&headers, held->reservation);
    edge_write(&headers, held->replayed ? "\r\nIdempotent-Replayed: true\r\n" : "\r\n");
    if (!edge_write_end(&body) || !edge_write_end(&headers)) {
        edge_unknown(request);
        return;
    }
    const struct edge_reply reply = {.status = 201,
                                     .content_type = EDGE_JSON,
                                     .headers = lines,
                                     .body = text,
                                     .length = body.length};
    edge_answer(request, &reply);
    if (!held->replayed) {
        tg_log_step("reservation.told", request->sale->name, held->reservation, "");
    }
}

static void answer_refused(struct edge_request *request, const struct edge_held *held)
{
    char members[96] = "";
    struct edge_writer writer;
    enum tg_reason reason = edge_public_reason(held->reason);
    edge_write_begin(&writer, members, sizeof(members));
    if (reason == TG_REASON_SOLD_OUT) {
        edge_write(&writer, held->final ? ",\"final\":true" : ",\"final\":false");
    } else if (held->reservation[0] != '\0') {
        edge_write(&writer, ",\"reservationId\":");
        edge_write_string(&writer, held->reservation);
    }
    edge_write_end(&writer);
    struct edge_problem problem = {
        .reason = reason, .members = members, .retry_after_ms = held->retry_after_ms};
    if (reason == TG_REASON_SALE_NOT_OPEN && problem.retry_after_ms == 0) {
        problem.retry_after_ms = edge_opens_in_ms(request->sale->sale, request->now);
    }
    edge_refuse_request(request, &problem);
}

static void on_hold_reply(void *context, uint64_t token, int status,
                          const ProtobufCMessage *message)
{
    struct edge *edge = context;
    struct edge_request request;
    struct edge_held held;
    edge->holds.open--;
    edge->holds.answered += status == 0;
    edge->holds.unknown += status != 0;
    if (!edge_request_again(&request, edge, token) || request.sale == NULL) {
        return;
    }
    if (status != 0 || TG_FAILPOINT(EDGE_TOLD) != 0 ||
        edge_wire_hold((const Tidegate__V1__HoldReply *)message, &held) != TG_REASON_NONE) {
        edge_unknown(&request);
    } else if (held.reason == TG_REASON_NONE) {
        answer_held(&request, &held);
    } else {
        answer_refused(&request, &held);
    }
}

static void ask_gate(struct edge_request *request, struct wish *wish)
{
    Tidegate__V1__Demand rows[TG_MAX_ITEMS_PER_SALE], *demands[TG_MAX_ITEMS_PER_SALE];
    char traceparent[56];
    for (uint32_t i = 0; i < wish->demand.count; i++) {
        rows[i] = (Tidegate__V1__Demand)TIDEGATE__V1__DEMAND__INIT;
        rows[i].item = wish->demand.rows[i].item;
        rows[i].quantity = wish->demand.rows[i].quantity;
        demands[i] = &rows[i];
    }
    Tidegate__V1__HoldRequest message = TIDEGATE__V1__HOLD_REQUEST__INIT;
    message.sale = request->sale->name;
    message.generation = wish->pass.generation;
    message.user = (ProtobufCBinaryData){.len = wish->pass.user_length, .data = wish->pass.user};
    message.place =
        (ProtobufCBinaryData){.len = sizeof(wish->pass.place), .data = wish->pass.place};
    message.window = wish->pass.window;
    message.jti = wish->pass.jti;
    message.pass_expires_at_ms = tg_pass_expires(wish->pass.window).ms;
    message.idempotency_key = wish->key;
    message.digest =
        (ProtobufCBinaryData){.len = sizeof(wish->demand.digest), .data = wish->demand.digest};
    message.n_demands = wish->demand.count;
    message.demands = demands;
    edge_traceparent(request, traceparent);
    int error = TG_FAILPOINT(EDGE_RESERVE);
    if (error == 0) {
        error = tg_bus_call(tg_app_bus(request->edge->app), TG_MESSAGE_RESERVE_HOLD,
                            request->sale->name, &message.base, traceparent, TG_MAX_CALL_MS,
                            on_hold_reply, request->edge, tg_http_id(request->exchange));
    }
    if (error != 0) {
        request->edge->holds.unknown++;
        edge_unknown(request);
        return;
    }
    request->edge->holds.open++;
}

void edge_reserve(struct edge_request *request)
{
    struct wish wish;
    unsigned passes;
    enum edge_pass fault;
    wish.pass_text = tg_http_header(request->exchange, "x-admission-token", &passes);
    enum tg_reason reason = edge_caller(request, &wish.caller);
    if (reason != TG_REASON_NONE || passes > 1) {
        edge_refuse_reason(request, TG_REASON_MALFORMED);
        return;
    }
    bool signed_in = wish.caller.kind == EDGE_CALLER_BUYER;
    if (wish.pass_text == NULL || !signed_in) {
        refuse_from_memory(request, signed_in, EDGE_PASS_NONE);
        return;
    }
    reason = edge_limit_holder(request, &wish.caller.user);
    if (reason != TG_REASON_NONE) {
        edge_refuse_reason(request, reason);
        return;
    }
    if (!read_wish(request, &wish)) {
        return;
    }
    if (!check_pass(request, &wish, &fault)) {
        refuse_from_memory(request, true, fault);
        return;
    }
    ask_gate(request, &wish);
}
