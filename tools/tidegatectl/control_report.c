/* SPDX-License-Identifier: Apache-2.0
 * What became of a command: the ledger's judgement, who acknowledged and when, and the state now.
 */
#include "tools/tidegatectl/control.h"
#include "tools/tidegatectl/state.h"

#include <string.h>

static const char *reason_of(const struct ctl_control *control)
{
    return control->judgement != NULL ? control->judgement->reason : "";
}

static bool was_accepted(const struct ctl_control *control)
{
    return control->judgement != NULL && control->judgement->reason[0] == '\0';
}

static void report_document(const struct ctl_options *options, const struct ctl_control *control)
{
    json_t *acks = json_array();
    json_t *missing = json_array();
    for (size_t i = 0; i < control->ack_count; i++) {
        const struct ctl_ack *ack = &control->acks[i];
        (void)json_array_append_new(
            acks, json_pack("{s:s, s:s, s:s, s:I, s:I}", "daemon", ack->daemon, "instance",
                            ack->instance, "effect", ack->effect, "tookUs",
                            (json_int_t)ack->took_us, "heardUs", (json_int_t)ack->heard_us));
    }
    for (size_t i = 0; i < CTL_CLASSES; i++) {
        if (!ctl_acknowledged(control, ctl_classes[i])) {
            (void)json_array_append_new(missing, json_string(ctl_classes[i]));
        }
    }
    json_t *report = json_pack(
        "{s:s, s:s, s:s, s:b, s:b, s:s, s:s, s:o, s:o}", "command", control->wish->verb, "sale",
        control->wish->sale, "commandId", control->command_id, "judged", control->judgement != NULL,
        "accepted", (int)was_accepted(control), "reason", reason_of(control), "detail",
        control->judgement != NULL ? control->judgement->detail : "", "acks", acks, "missing",
        missing);
    if (control->judgement != NULL && control->judgement->state != NULL) {
        (void)json_object_set_new(report, "state", ctl_state_json(control->judgement->state));
    }
    if (control->wish->changes != NULL) {
        (void)json_object_set(report, control->wish->changes_name, control->wish->changes);
    }
    ctl_print_document(options->format, report);
}

/* A pause holds without a ledger: every daemon obeys it on receipt. */
static bool is_held_back(const struct ctl_control *control)
{
    bool honoured = false;
    for (size_t i = 0; i < control->ack_count; i++) {
        const struct ctl_ack *ack = &control->acks[i];
        honoured |= strcmp(ack->daemon, "reserve") == 0 && strcmp(ack->effect, "honoured") == 0;
    }
    return honoured && !control->wish->plan &&
           control->wish->kind == TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE;
}

static void report_verdict(const struct ctl_options *options, const struct ctl_control *control)
{
    char detail[256] = "";
    const char *plain = ctl_colour(options, CTL_PLAIN);
    if (control->judgement == NULL) {
        (void)printf("%s %s: %snot judged%s: %s\n", control->wish->verb, control->wish->sale,
                     ctl_colour(options, CTL_YELLOW), plain,
                     is_held_back(control)
                         ? "it is honoured, no unit is given out; but no ledger has written it "
                           "down: give it again until one has"
                         : "the outcome is unknown, the same command may be given again");
        return;
    }
    ctl_printable(control->judgement->detail, strlen(control->judgement->detail), detail,
                  sizeof(detail));
    if (was_accepted(control)) {
        (void)printf("%s %s: %s%s%s%s%s\n", control->wish->verb, control->wish->sale,
                     ctl_colour(options, CTL_GREEN), control->wish->plan ? "would be done" : "done",
                     plain, detail[0] != '\0' ? ": " : "", detail);
        return;
    }
    enum tg_reason reason = tg_reason_from_code(control->judgement->reason);
    bool waits = (reason == TG_REASON_NOT_PROVED || reason == TG_REASON_NOT_ARMED) &&
                 control->wish->wait_ms == 0;
    const char *sentence =
        reason < TG_REASON_COUNT ? tg_reason_row(reason)->detail : "unknown reason";
    (void)fprintf(stderr, "tidegatectl: %s %s: refused: %s: %s%s\n", control->wish->verb,
                  control->wish->sale, reason_of(control), detail[0] != '\0' ? detail : sentence,
                  waits ? " (--wait 30s keeps asking)" : "");
}

static void report_acks(const struct ctl_options *options, const struct ctl_control *control)
{
    if (control->ack_count > 0) {
        (void)printf("  %s%-10s %-28s %-24s %s%s\n", ctl_colour(options, CTL_DIM), "DAEMON",
                     "INSTANCE", "EFFECT", "AFTER", ctl_colour(options, CTL_PLAIN));
    }
    for (size_t i = 0; i < control->ack_count; i++) {
        const struct ctl_ack *ack = &control->acks[i];
        (void)printf("  %-10s %-28s %-24s %.1f ms\n", ack->daemon, ack->instance, ack->effect,
                     (double)ack->heard_us / 1000);
    }
    char missing[128] = "";
    for (size_t i = 0; i < CTL_CLASSES; i++) {
        if (!ctl_acknowledged(control, ctl_classes[i])) {
            size_t length = strlen(missing);
            (void)snprintf(missing + length, sizeof(missing) - length, " %s", ctl_classes[i]);
        }
    }
    if (missing[0] != '\0') {
        (void)printf("  %sno acknowledgement within a second from:%s%s\n",
                     ctl_colour(options, CTL_YELLOW), missing, ctl_colour(options, CTL_PLAIN));
    }
}

void ctl_control_report(const struct ctl_options *options, const struct ctl_control *control)
{
    if (options->format != CTL_TABLE) {
        report_document(options, control);
        return;
    }
    report_verdict(options, control);
    if (!control->wish->plan && (was_accepted(control) || control->ack_count > 0)) {
        report_acks(options, control);
    }
    if (was_accepted(control) &&
        control->wish->kind == TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE &&
        !control->wish->plan && !control->shown) {
        (void)printf("  the ledger's state does not show the pause yet: give it again\n");
    }
    if (control->judgement != NULL && control->judgement->state != NULL) {
        ctl_print_state(control->judgement->state);
    }
}
