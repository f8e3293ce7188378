/* SPDX-License-Identifier: Apache-2.0
 * The signed pause command. The core says when, and repeats it until the ledger's state shows the
 * pause. */
#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/io/now.h"
#include "services/invariant/checker.h"

static void on_judged(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    const Tidegate__V1__CommandReply *answer = (const Tidegate__V1__CommandReply *)reply;
    if (status == 0 && TG_FAILPOINT(INVARIANT_PAUSED) != 0) {
        status = TG_ERR_TIMEOUT;
    }
    if (status != 0) {
        tg_log(TG_LOG_WARN, "proof.pause_unanswered",
               TG_TEXT_FIELD("error", tg_error_text(status)));
    } else {
        tg_log(TG_LOG_WARN, "proof.pause_judged", TG_TEXT_FIELD("command", answer->command_id),
               TG_TEXT_FIELD("reason", answer->reason));
    }
}

void invariant_send_pause(struct invariant *invariant, size_t index)
{
    struct invariant_work *work = invariant->works[index];
    struct tg_sale *view = tg_sales_at(invariant->sales, index);
    struct tg_signed_command signed_command;
    Tidegate__V1__Command command = TIDEGATE__V1__COMMAND__INIT;
    command.command_id = work->core.pause.id;
    command.sale = view->name;
    command.generation = view->generation;
    command.kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE;
    command.expires_at_ms = tg_now_wall().ms + TG_MAX_COMMAND_LIFE_MS - TG_MAX_CLOCK_SKEW_MS;
    command.control_sequence = view->control_sequence;
    command.cause = work->core.pause.cause;
    int error = tg_command_sign(&invariant->key, "invariant", &command, &signed_command);
    if (error == 0 && (error = TG_FAILPOINT(INVARIANT_PAUSE)) == 0) {
        error = tg_bus_call(tg_app_bus(invariant->app), TG_MESSAGE_CONTROL, view->name,
                            &signed_command.message.base, NULL, TG_MAX_CALL_MS, on_judged,
                            invariant, index);
        tg_command_free(&signed_command);
    }
    if (error != 0) {
        on_judged(invariant, index, error, NULL);
    }
}
