/* SPDX-License-Identifier: Apache-2.0
 * Commands: signature and expiry were verified by lib/io/sales; SQL judges; the answer carries the
 * sale's state. */
#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/io/now.h"
#include "services/ledger/service_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void acknowledge(struct ledger *ledger, const Tidegate__V1__Command *command,
                        enum tg_reason reason, uint64_t received_us)
{
    Tidegate__V1__CommandAck ack = TIDEGATE__V1__COMMAND_ACK__INIT;
    char effect[64];
    if (command->plan) {
        return;
    }
    snprintf(effect, sizeof effect, "%s%s", reason == TG_REASON_NONE ? "honoured" : "refused:",
             reason == TG_REASON_NONE ? "" : tg_reason_code(reason));
    ack.command_id = command->command_id;
    ack.sale = command->sale;
    ack.daemon = ledger_text(tg_app_name(ledger->app));
    ack.instance = ledger_text(tg_app_instance(ledger->app));
    ack.effect = effect;
    ack.took_us = tg_now_us() - received_us;
    if (tg_bus_publish(tg_app_bus(ledger->app), TG_MESSAGE_CONTROL_ACK, command->sale, &ack.base) !=
        0) {
        tg_log(TG_LOG_WARN, "ledger.ack_lost", TG_TEXT_FIELD("command", command->command_id));
    }
}

static void refuse(struct tg_bus_incoming *take_incoming, const Tidegate__V1__Command *command,
                   enum tg_reason reason, const char *detail)
{
    Tidegate__V1__CommandReply reply = TIDEGATE__V1__COMMAND_REPLY__INIT;
    reply.command_id = command->command_id;
    reply.reason = ledger_text(tg_reason_code(reason));
    reply.detail = ledger_text(detail);
    tg_bus_reply(take_incoming, &reply.base);
}

bool ledger_on_judge(void *context, struct tg_bus_incoming *take_incoming,
                     const Tidegate__V1__Command *command, const char *key_id, uint64_t received_us)
{
    struct ledger *ledger = context;
    char detail[LEDGER_DETAIL_BYTES] = "";
    uint64_t token;
    enum tg_reason reason = ledger_wire_command(
        command, (const Tidegate__V1__SignedCommand *)tg_bus_body(take_incoming), key_id,
        &ledger->command, detail);
    struct ledger_pending *pending =
        reason == TG_REASON_NONE ? ledger_pending_new(&ledger->pendings, take_incoming, &token)
                                 : NULL;
    if (pending == NULL) {
        reason = reason == TG_REASON_NONE ? TG_REASON_TRY_AGAIN : reason;
        acknowledge(ledger, command, reason, received_us);
        refuse(take_incoming, command, reason, detail);
        return true;
    }
    pending->started_us = received_us;
    const int error = ledger->store->judge(ledger->store->self, &ledger->command, token);
    if (error != 0) {
        ledger_judged(ledger, token, error, NULL);
    }
    return true;
}

/* The command again, from the message that waits: it was unpacked and checked once already. */
static Tidegate__V1__Command *command_of(const struct ledger_pending *pending)
{
    const Tidegate__V1__SignedCommand *signed_command =
        (const Tidegate__V1__SignedCommand *)tg_bus_body(pending->incoming);
    return tidegate__v1__command__unpack(NULL, signed_command->command.len,
                                         signed_command->command.data);
}

void ledger_judged(void *context, uint64_t token, int status,
                   const struct ledger_judgement *judgement)
{
    struct ledger *ledger = context;
    struct ledger_pending *pending = ledger_pending_find(&ledger->pendings, token);
    if (pending == NULL) {
        return;
    }
    if (status == 0 && TG_FAILPOINT(LEDGER_JUDGED) != 0) {
        status = TG_ERR_TIMEOUT;
    }
    ledger_observe(ledger, status, pending->started_us);
    Tidegate__V1__Command *command = command_of(pending);
    pending->judged = calloc(1, sizeof *pending->judged);
    if (pending->judged == NULL || command == NULL) {
        tidegate__v1__command__free_unpacked(command, NULL);
        ledger_pending_refuse(&ledger->pendings, pending, 503, tg_reason_code(TG_REASON_TRY_AGAIN));
        return;
    }
    if (status == 0) {
        *pending->judged = *judgement;
    } else {
        pending->judged->reason = TG_REASON_TRY_AGAIN;
        snprintf(pending->judged->detail, sizeof pending->judged->detail, "%s",
                 "the outcome is not known: repeat the command");
    }
    tg_log(TG_LOG_INFO, "ledger.command_judged", TG_TEXT_FIELD("sale", command->sale),
           TG_TEXT_FIELD("command", command->command_id), TG_NUMBER_FIELD("kind", command->kind),
           TG_TEXT_FIELD("reason", tg_reason_code(pending->judged->reason)),
           TG_TEXT_FIELD("detail", pending->judged->detail));
    acknowledge(ledger, command, pending->judged->reason, pending->started_us);
    if (status == 0 && judgement->reason == TG_REASON_NONE && !command->plan) {
        ledger_tell_states(ledger);
    }
    if (ledger->store->sales(ledger->store->self, "", command->sale, token) != 0) {
        ledger_reply_command(ledger, pending, NULL);
    }
    tidegate__v1__command__free_unpacked(command, NULL);
}

void ledger_reply_command(struct ledger *ledger, struct ledger_pending *pending,
                          const struct ledger_sales *sales)
{
    Tidegate__V1__CommandReply reply = TIDEGATE__V1__COMMAND_REPLY__INIT;
    Tidegate__V1__Command *command = command_of(pending);
    if (command == NULL) {
        ledger_pending_refuse(&ledger->pendings, pending, 503, tg_reason_code(TG_REASON_TRY_AGAIN));
        return;
    }
    reply.command_id = command->command_id;
    reply.reason = ledger_text(tg_reason_code(pending->judged->reason));
    reply.detail = pending->judged->detail;
    if (sales != NULL && sales->count == 1) {
        ledger_wire_sale(&ledger->wire_sales[0], &sales->rows[0]);
        reply.state = &ledger->wire_sales[0].state;
    }
    /* The reply borrows the judgement, which goes with the pending: keep it until it is packed. */
    struct ledger_judgement *judged = pending->judged;
    pending->judged = NULL;
    ledger_pending_reply(&ledger->pendings, pending, &reply.base);
    free(judged);
    tidegate__v1__command__free_unpacked(command, NULL);
}
