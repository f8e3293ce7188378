/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tidegatectl/session.h"

#include "lib/io/now.h"
#include "lib/pure/limit.h"
#include "lib/pure/text.h"

#include <stdlib.h>
#include <string.h>

enum { CONNECT_MS = 2000 };

/* nats://user:password@host -> nats://host */
static void without_credentials(const char *url, char *out_text, size_t capacity)
{
    const char *at = strrchr(url, '@');
    const char *slashes = strstr(url, "://");
    int scheme = slashes != NULL ? (int)(slashes + 3 - url) : 0;
    if (at == NULL || at < url + scheme) {
        (void)snprintf(out_text, capacity, "%s", url);
        return;
    }
    (void)snprintf(out_text, capacity, "%.*s%s", scheme, url, at + 1);
}

static void on_timer(uv_timer_t *timer)
{
    struct ctl_session *session = timer->data;
    session->due = true;
}

bool ctl_session_until(struct ctl_session *session, bool (*done)(const void *context),
                       const void *context, int64_t ms)
{
    session->due = false;
    uv_update_time(&session->loop);
    (void)uv_timer_start(&session->timer, on_timer, (uint64_t)ms, 0);
    while (!done(context) && !session->due) {
        (void)uv_run(&session->loop, UV_RUN_ONCE);
    }
    (void)uv_timer_stop(&session->timer);
    return done(context);
}

static bool is_connected(const void *context)
{
    const struct ctl_session *session = context;
    return tg_bus_connected(session->bus);
}

enum ctl_exit ctl_session_open(const struct ctl_options *options, bool quiet,
                               struct ctl_session *out_session)
{
    struct ctl_session *session = out_session;
    uint8_t random[4];
    char digits[2 * sizeof(random) + 1];
    char instance[32];
    memset(session, 0, sizeof(*session));
    tg_random(random, sizeof(random));
    tg_hex_encode(random, sizeof(random), digits);
    (void)snprintf(instance, sizeof(instance), "ctl-%s", digits);
    without_credentials(options->nats_url, session->server, sizeof(session->server));
    if (uv_loop_init(&session->loop) != 0 || uv_timer_init(&session->loop, &session->timer) != 0) {
        (void)fprintf(stderr, "tidegatectl: no event loop: out of descriptors or memory\n");
        return CTL_UNREACHABLE;
    }
    session->timer.data = session;
    const struct tg_bus_spec bus = {.url = options->nats_url,
                                    .daemon = "tidegatectl",
                                    .instance = instance,
                                    .identity = "operator",
                                    .keys = options->nats_keys,
                                    .ca = options->nats_ca,
                                    .server_name = options->nats_server_name};
    int error = tg_bus_open(&session->loop, &bus, &session->bus);
    if (error == 0 && ctl_session_until(session, is_connected, session, CONNECT_MS)) {
        return CTL_DONE;
    }
    if (!quiet && session->bus == NULL) {
        (void)fprintf(stderr, "tidegatectl: no connection to NATS at %s: %s\n", session->server,
                      tg_error_text(error));
    } else if (!quiet) {
        (void)fprintf(stderr,
                      "tidegatectl: NATS at %s does not answer: is the stack up? Try tools/dev up, "
                      "or set TIDEGATE_NATS_URL; %s\n",
                      session->server, tg_bus_fault(session->bus));
    }
    ctl_session_close(session);
    return CTL_UNREACHABLE;
}

void ctl_session_close(struct ctl_session *session)
{
    session->bus = session->bus != NULL ? tg_bus_free(session->bus) : NULL;
    uv_close((uv_handle_t *)&session->timer, NULL);
    (void)uv_run(&session->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&session->loop);
}

/* ---- one question ---- */

struct question {
    bool answered;
    int status;
    ProtobufCMessage *reply;
};

static ProtobufCMessage *copy(const ProtobufCMessage *message)
{
    size_t length = protobuf_c_message_get_packed_size(message);
    uint8_t *bytes = malloc(length + 1);
    ProtobufCMessage *mine = NULL;
    if (bytes != NULL) {
        (void)protobuf_c_message_pack(message, bytes);
        mine = protobuf_c_message_unpack(message->descriptor, NULL, length, bytes);
    }
    free(bytes);
    return mine;
}

static void on_answer(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    struct question *question = context;
    question->answered = true;
    question->status = status;
    if (status == 0) {
        question->reply = copy(reply);
        question->status = question->reply != NULL ? 0 : TG_ERR_FULL;
    }
}

static bool is_answered(const void *context)
{
    const struct question *question = context;
    return question->answered;
}

int ctl_session_ask(struct ctl_session *session, enum tg_message message, const char *sale,
                    const ProtobufCMessage *body, ProtobufCMessage **out_reply)
{
    struct question question = {0};
    int error = tg_bus_call(session->bus, message, sale, body, NULL, TG_MAX_CALL_MS, on_answer,
                            &question, 0);
    if (error != 0) {
        return error;
    }
    /* The bus answers every call, in doubt with a time-out: the bound here is only a second net. */
    if (!ctl_session_until(session, is_answered, &question, 2 * TG_MAX_CALL_MS)) {
        return TG_ERR_TIMEOUT;
    }
    if (question.status == 0) {
        *out_reply = question.reply;
    }
    return question.status;
}

void ctl_session_explain(const struct ctl_session *session, const char *who, int error)
{
    if (error == TG_ERR_NO_RESPONDERS) {
        (void)fprintf(stderr,
                      "tidegatectl: no %s is connected to NATS at %s: is it running and ready?\n",
                      who, session->server);
        return;
    }
    (void)fprintf(stderr, "tidegatectl: the %s did not answer at %s: %s\n", who, session->server,
                  tg_error_text(error));
}

enum ctl_exit ctl_session_sales(struct ctl_session *session, const char *sale, const char *after,
                                Tidegate__V1__SalesReply **out_reply)
{
    Tidegate__V1__SalesRequest request = TIDEGATE__V1__SALES_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    request.sale = sale != NULL ? (char *)sale : request.sale;
    request.after = after != NULL ? (char *)after : request.after;
    int error = ctl_session_ask(session, TG_MESSAGE_LEDGER_SALES, NULL, &request.base, &reply);
    if (error != 0) {
        ctl_session_explain(session, "ledger", error);
        return CTL_UNREACHABLE;
    }
    *out_reply = (Tidegate__V1__SalesReply *)reply;
    return CTL_DONE;
}
