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

void invariant_send_pause(struct invariant *invariant, size_t index, const char *id,
                          const char *cause)
{
    struct tg_sale *view = tg_sales_at(invariant->sales, index);
    struct tg_signed_command signed_command;
    Tidegate__V1__Command command = TIDEGATE__V1__COMMAND__INIT;
    command.command_id = (char *)id;
    command.sale = view->name;
    command.generation = view->generation;
    command.kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE;
    command.expires_at_ms = tg_now_wall().ms + TG_MAX_COMMAND_LIFE_MS - TG_MAX_CLOCK_SKEW_MS;
    command.control_sequence = view->control_sequence;
    command.cause = (char *)cause;
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

void invariant_carry_pauses(struct invariant *invariant, size_t index)
{
    struct invariant_work *work = invariant->works[index];
    const struct tg_sale *view = tg_sales_at(invariant->sales, index);
    for (uint32_t i = 0; i < work->gate_pause_count; i++) {
        const struct tg_pause *pause = &work->gate_pauses[i];
        if (invariant_orphan(&work->core, view, pause->id)) {
            tg_log(TG_LOG_WARN, "proof.pause_carried", TG_TEXT_FIELD("sale", view->name),
                   TG_TEXT_FIELD("pause", pause->id), TG_TEXT_FIELD("cause", pause->cause));
            invariant_send_pause(invariant, index, pause->id, pause->cause);
        }
    }
    invariant_orphans_end(&work->core, view, work->gate_pauses, work->gate_pause_count);
}
