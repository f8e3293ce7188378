/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/tidegatectl/control.h"

#include "lib/io/keys.h"
#include "lib/io/now.h"
#include "lib/io/sales.h"
#include "lib/pure/limit.h"

#include <sodium.h>
#include <string.h>

/* A command lives a little shorter than allowed: the judge's clock may be ahead of ours. */
enum { LIFE_MS = TG_MAX_COMMAND_LIFE_MS - 2 * TG_MAX_CLOCK_SKEW_MS };
/* Acknowledgements are waited for this long after the judgement is there; every daemon obeys a
 * pause within it. */
enum {
    ACK_WINDOW_MS = 1000,
    REPEAT_MS = 500,
    REPEATS_MAX = 16,
    PAUSE_REPEATS_MAX = 40,
    PATIENCE = 4,
    AGAIN_MS = 300,
    STALE_TRIES = 5
};

const char *const ctl_classes[CTL_CLASSES] = {"edge",   "queue",   "admission", "reserve",
                                              "ledger", "sweeper", "invariant"};

bool ctl_acknowledged(const struct ctl_control *control, const char *daemon)
{
    for (size_t i = 0; i < control->ack_count; i++) {
        if (strcmp(control->acks[i].daemon, daemon) == 0) {
            return true;
        }
    }
    return false;
}

/* ---- what is heard ---- */

static bool ack_known(const struct ctl_control *control, const Tidegate__V1__CommandAck *ack)
{
    for (size_t i = 0; i < control->ack_count; i++) {
        if (strcmp(control->acks[i].daemon, ack->daemon) == 0 &&
            strcmp(control->acks[i].instance, ack->instance) == 0) {
            return true;
        }
    }
    return false;
}

static void on_ack(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ctl_control *control = context;
    const Tidegate__V1__CommandAck *ack =
        (const Tidegate__V1__CommandAck *)tg_bus_body(take_incoming);
    if (strcmp(ack->command_id, control->command_id) == 0 && control->ack_count < CTL_ACKS_MAX &&
        !ack_known(control, ack)) {
        struct ctl_ack *mine = &control->acks[control->ack_count++];
        ctl_printable(ack->daemon, strlen(ack->daemon), mine->daemon, sizeof(mine->daemon));
        ctl_printable(ack->instance, strlen(ack->instance), mine->instance, sizeof(mine->instance));
        ctl_printable(ack->effect, strlen(ack->effect), mine->effect, sizeof(mine->effect));
        mine->took_us = ack->took_us;
        mine->heard_us = tg_now_us() - control->sent_us;
    }
    tg_bus_release(take_incoming);
}

static void on_state(void *context, struct tg_bus_incoming *take_incoming)
{
    struct ctl_control *control = context;
    const Tidegate__V1__SaleState *state =
        (const Tidegate__V1__SaleState *)tg_bus_body(take_incoming);
    for (size_t i = 0; strcmp(state->sale, control->wish->sale) == 0 && i < state->n_pauses; i++) {
        control->shown |= strcmp(state->pauses[i]->pause_id, control->command_id) == 0;
    }
    tg_bus_release(take_incoming);
}

static void on_judgement(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    struct ctl_control *control = context;
    const Tidegate__V1__CommandReply *judgement = (const Tidegate__V1__CommandReply *)reply;
    if (status != 0 || control->judgement != NULL) {
        return;
    }
    /* A command that was not even read is refused without its id. */
    bool unread = judgement->command_id[0] == '\0' && judgement->reason[0] != '\0';
    if (!unread && strcmp(judgement->command_id, control->command_id) != 0) {
        return; /* the late answer to a command before this one */
    }
    uint8_t bytes[TG_MAX_BUS_BODY_BYTES];
    size_t length = tidegate__v1__command_reply__get_packed_size(judgement);
    if (length <= sizeof(bytes)) {
        (void)tidegate__v1__command_reply__pack(judgement, bytes);
        control->judgement = tidegate__v1__command_reply__unpack(NULL, length, bytes);
    }
}

/* ---- one command ---- */

static bool accepted(const struct ctl_control *control)
{
    return control->judgement != NULL && control->judgement->reason[0] == '\0';
}

static bool is_pause(const struct ctl_control *control)
{
    return control->wish->kind == TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE &&
           !control->wish->plan;
}

static bool is_judged(const void *context)
{
    const struct ctl_control *control = context;
    return control->judgement != NULL &&
           (!is_pause(control) || !accepted(control) || control->shown);
}

static bool all_acknowledged(const void *context)
{
    const struct ctl_control *control = context;
    for (size_t i = 0; i < CTL_CLASSES; i++) {
        if (!ctl_acknowledged(control, ctl_classes[i])) {
            return false;
        }
    }
    return true;
}

/* The state a command rests on. Pause ids are borrowed from it. */
static void fill_command(const struct ctl_control *control, const Tidegate__V1__SaleState *state,
                         char **pause_ids, Tidegate__V1__Command *out_command)
{
    const struct ctl_wish *wish = control->wish;
    tidegate__v1__command__init(out_command);
    out_command->command_id = (char *)control->command_id;
    out_command->sale = (char *)wish->sale;
    out_command->kind = wish->kind;
    out_command->expires_at_ms = tg_now_wall().ms + LIFE_MS;
    out_command->definition = wish->definition;
    out_command->pace_milli = wish->pace_milli;
    out_command->extend_ms = wish->extend_ms;
    out_command->plan = wish->plan;
    if (wish->cause != NULL) {
        out_command->cause = (char *)wish->cause;
    }
    if (state == NULL) {
        return;
    }
    out_command->control_sequence = state->control_sequence;
    if (wish->kind != TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_APPLY) {
        out_command->generation = state->generation;
    }
    if (wish->kind == TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_RESUME) {
        for (size_t i = 0; i < state->n_pauses && i < TG_MAX_PAUSES; i++) {
            pause_ids[out_command->n_pause_ids++] = state->pauses[i]->pause_id;
        }
        out_command->pause_ids = pause_ids;
    }
}

/* Sends the signed command again and again until it is judged (and, a pause, shown). */
static int send_until_judged(struct ctl_control *control, const Tidegate__V1__Command *command)
{
    struct tg_signed_command signed_command;
    int error = tg_command_sign(&control->key, "operator", command, &signed_command);
    if (error != 0) {
        return error;
    }
    control->sent_us = tg_now_us();
    unsigned repeats =
        is_pause(control) ? 1 + (unsigned)(control->wish->wait_ms / REPEAT_MS) : REPEATS_MAX;
    for (unsigned i = 0; i < repeats && !is_judged(control); i++) {
        if (i == PATIENCE) {
            (void)fprintf(stderr,
                          "tidegatectl: no word from the ledger yet, repeating the command\n");
        }
        control->send_error =
            tg_bus_ask_all(control->session->bus, TG_MESSAGE_CONTROL, control->wish->sale,
                           &signed_command.message.base, TG_MAX_CALL_MS, on_judgement, control, 0);
        (void)ctl_session_until(control->session, is_judged, control, REPEAT_MS);
    }
    if (!control->wish->plan && (is_pause(control) || accepted(control))) {
        int64_t passed_ms = (int64_t)((tg_now_us() - control->sent_us) / 1000);
        (void)ctl_session_until(control->session, all_acknowledged, control,
                                passed_ms < ACK_WINDOW_MS ? ACK_WINDOW_MS - passed_ms : 1);
    }
    tg_command_free(&signed_command);
    return 0;
}

static void forget_last(struct ctl_control *control)
{
    if (control->judgement != NULL) {
        tidegate__v1__command_reply__free_unpacked(control->judgement, NULL);
        control->judgement = NULL;
    }
    control->ack_count = 0;
    control->shown = false;
    tg_command_new_id(control->command_id);
}

static bool is_resume(const struct ctl_control *control)
{
    return control->wish->kind == TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_RESUME;
}

static bool was_seen(const struct ctl_control *control, const char *pause_id)
{
    for (size_t i = 0; i < control->seen_count; i++) {
        if (strcmp(control->seen[i], pause_id) == 0) {
            return true;
        }
    }
    return false;
}

/* The pauses of the first look are what the operator agreed to lift. One that comes while we try
 * again is for a person to look at. */
static bool pauses_agreed(struct ctl_control *control, const Tidegate__V1__SaleState *state)
{
    for (size_t i = 0; i < state->n_pauses && i < TG_MAX_PAUSES; i++) {
        const Tidegate__V1__PauseEntry *pause = state->pauses[i];
        if (!control->looked) {
            (void)snprintf(control->seen[control->seen_count++], sizeof(control->seen[0]), "%s",
                           pause->pause_id);
        } else if (!was_seen(control, pause->pause_id)) {
            char cause[160];
            ctl_printable(pause->cause, strlen(pause->cause), cause, sizeof(cause));
            (void)fprintf(
                stderr,
                "tidegatectl: a new pause came meanwhile: %s: look, and give resume again\n",
                cause);
            return false;
        }
    }
    control->looked = true;
    return true;
}

static enum ctl_exit command_on(struct ctl_control *control, const Tidegate__V1__SaleState *state)
{
    Tidegate__V1__Command command;
    char *pause_ids[TG_MAX_PAUSES];
    bool apply = control->wish->kind == TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_APPLY;
    if (state == NULL && !is_pause(control) && !apply) {
        (void)fprintf(stderr, "tidegatectl: there is no sale %s\n", control->wish->sale);
        return CTL_REFUSED;
    }
    if (is_resume(control) && !pauses_agreed(control, state)) {
        return CTL_REFUSED;
    }
    fill_command(control, state, pause_ids, &command);
    if (send_until_judged(control, &command) != 0) {
        (void)fprintf(stderr, "tidegatectl: the command is too long to be signed\n");
        return CTL_USAGE;
    }
    return CTL_DONE;
}

static enum ctl_exit try_once(struct ctl_control *control)
{
    Tidegate__V1__SalesReply *known = NULL;
    forget_last(control);
    if (is_pause(control)) { /* waits for nobody */
        return command_on(control, NULL);
    }
    enum ctl_exit code = ctl_session_sales(control->session, control->wish->sale, NULL, &known);
    if (code == CTL_DONE) {
        code = command_on(control, known->n_states > 0 ? known->states[0] : NULL);
        tidegate__v1__sales_reply__free_unpacked(known, NULL);
    }
    return code;
}

/* ---- until it is done ---- */

static bool never(const void *context)
{
    return false;
}

/* Whether the refusal passes by itself: the sale moved between our look and our word, or the gate
 * is still being proved. */
static bool worth_another_try(const struct ctl_control *control, unsigned tries, int64_t left_ms)
{
    if (control->judgement == NULL) {
        return false;
    }
    enum tg_reason reason = tg_reason_from_code(control->judgement->reason);
    if (reason == TG_REASON_STALE_SEQUENCE || reason == TG_REASON_PAUSES_MISSING) {
        return tries < STALE_TRIES && !is_pause(control);
    }
    return (reason == TG_REASON_NOT_PROVED || reason == TG_REASON_NOT_ARMED) && left_ms > 0;
}

static enum ctl_exit judge(const struct ctl_control *control)
{
    if (control->judgement == NULL) {
        ctl_session_explain(control->session, "ledger",
                            control->send_error != 0 ? control->send_error : TG_ERR_TIMEOUT);
        return CTL_UNREACHABLE;
    }
    if (!accepted(control)) {
        return CTL_REFUSED;
    }
    return !is_pause(control) || control->shown ? CTL_DONE : CTL_UNREACHABLE;
}

static enum ctl_exit carry_out(const struct ctl_options *options, struct ctl_control *control)
{
    int64_t deadline_ms = tg_now_mono().ms + control->wish->wait_ms;
    int error = tg_bus_serve(control->session->bus, TG_MESSAGE_CONTROL_ACK, on_ack, control);
    if (error == 0) {
        error = tg_bus_serve(control->session->bus, TG_MESSAGE_STATE, on_state, control);
    }
    if (error != 0) {
        ctl_session_explain(control->session, "bus", error);
        return CTL_UNREACHABLE;
    }
    enum ctl_exit code = CTL_DONE;
    bool again = true;
    for (unsigned tries = 1; again; tries++) {
        code = try_once(control);
        again =
            code == CTL_DONE && worth_another_try(control, tries, deadline_ms - tg_now_mono().ms);
        if (again) {
            (void)ctl_session_until(control->session, never, control, AGAIN_MS);
        }
    }
    if (code == CTL_DONE) {
        code = judge(control);
        if (options->format == CTL_TABLE) {
            ctl_control_report(options, control);
        }
        if (code == CTL_DONE && control->wish->follow != NULL && !control->wish->plan) {
            const Tidegate__V1__SaleState *state = control->judgement->state;
            code = control->wish->follow(control->session, control->wish,
                                         state != NULL ? state->epoch : 0);
        }
        if (options->format != CTL_TABLE) {
            ctl_control_report(options, control);
        }
    }
    return code;
}

enum ctl_exit ctl_control(const struct ctl_options *options, const struct ctl_wish *wish)
{
    static struct ctl_control
        control; /* one command per process; too large for the stack's taste */
    struct ctl_session session;
    if (!ctl_needs_keys(options) ||
        tg_keys_sign(options->keys, "control-operator", &control.key) != 0) {
        return CTL_SETTINGS;
    }
    enum ctl_exit code = ctl_session_open(options, false, &session);
    if (code != CTL_DONE) {
        return code;
    }
    control.session = &session;
    control.wish = wish;
    code = carry_out(options, &control);
    ctl_session_close(&session);
    if (control.judgement != NULL) {
        tidegate__v1__command_reply__free_unpacked(control.judgement, NULL);
    }
    sodium_memzero(&control.key, sizeof(control.key));
    return code;
}
