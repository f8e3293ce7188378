/* SPDX-License-Identifier: Apache-2.0
 * sale show: what the ledger knows of one sale, or of all. */
#include "lib/pure/limit.h"
#include "tools/tidegatectl/session.h"
#include "tools/tidegatectl/state.h"

#include <inttypes.h>
#include <string.h>

static json_t *sale_json(const Tidegate__V1__SalesReply *reply, size_t index)
{
    return json_pack("{s:o, s:o}", "definition", ctl_definition_json(reply->definitions[index]),
                     "state", ctl_state_json(reply->states[index]));
}

static void print_sale(const struct ctl_options *options, const Tidegate__V1__SalesReply *reply)
{
    struct ctl_line lines[CTL_LINES_MAX];
    char last_clean[CTL_VALUE_BYTES];
    char pace[CTL_VALUE_BYTES];
    const Tidegate__V1__SaleState *state = reply->states[0];
    if (options->format != CTL_TABLE) {
        ctl_print_document(options->format, sale_json(reply, 0));
        return;
    }
    ctl_print_state(state);
    ctl_time_text(state->last_clean_ms, last_clean);
    ctl_pace_text(state->pace_milli, pace);
    (void)printf(
        "  last clean round   %s\n  pace now           %s\n  control sequence   %" PRIu64 "\n",
        last_clean, state->pace_milli != 0 ? pace : "as declared", state->control_sequence);
    size_t count = ctl_definition_lines(reply->definitions[0], lines);
    for (size_t i = 0; i < count; i++) {
        (void)printf("  %-18s %s\n", lines[i].name, lines[i].value);
    }
}

static enum ctl_exit show_one(const struct ctl_options *options, struct ctl_session *session,
                              const char *sale)
{
    Tidegate__V1__SalesReply *reply = NULL;
    enum ctl_exit code = ctl_session_sales(session, sale, NULL, &reply);
    if (code != CTL_DONE) {
        return code;
    }
    if (reply->n_states == 0 || reply->n_definitions == 0) {
        (void)fprintf(stderr, "tidegatectl: there is no sale %s\n", sale);
        code = CTL_REFUSED;
    } else {
        print_sale(options, reply);
    }
    tidegate__v1__sales_reply__free_unpacked(reply, NULL);
    return code;
}

static void print_rows(const struct ctl_options *options, const Tidegate__V1__SalesReply *reply,
                       json_t *list)
{
    for (size_t i = 0; i < reply->n_states && i < reply->n_definitions; i++) {
        const Tidegate__V1__SaleState *state = reply->states[i];
        char opens[CTL_VALUE_BYTES];
        if (options->format != CTL_TABLE) {
            (void)json_array_append_new(list, sale_json(reply, i));
            continue;
        }
        ctl_time_text(state->opens_at_ms, opens);
        (void)printf("%-24s %-10s %10" PRIu64 " %6" PRIu64 " %6s  %s\n", state->sale,
                     ctl_phase_text(state->phase), state->generation, state->epoch,
                     state->armed ? "yes" : "no", opens);
    }
}

static enum ctl_exit show_all(const struct ctl_options *options, struct ctl_session *session)
{
    char after[TG_MAX_SALE_NAME_BYTES + 1] = "";
    json_t *list = json_array();
    bool end = false;
    for (unsigned page = 0; !end && page < TG_MAX_SALES; page++) {
        Tidegate__V1__SalesReply *reply = NULL;
        enum ctl_exit code = ctl_session_sales(session, NULL, after, &reply);
        if (code != CTL_DONE) {
            json_decref(list);
            return code;
        }
        if (page == 0 && options->format == CTL_TABLE) {
            (void)printf("%-24s %-10s %10s %6s %6s  %s\n", "SALE", "STATE", "GENERATION", "EPOCH",
                         "ARMED", "OPENS AT");
        }
        print_rows(options, reply, list);
        end = reply->end || reply->n_states == 0;
        if (!end) {
            (void)snprintf(after, sizeof(after), "%s", reply->states[reply->n_states - 1]->sale);
        }
        tidegate__v1__sales_reply__free_unpacked(reply, NULL);
    }
    if (options->format != CTL_TABLE) {
        ctl_print_document(options->format, list);
    } else {
        json_decref(list);
    }
    return CTL_DONE;
}

enum ctl_exit ctl_show(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    struct ctl_session session;
    if (arguments->count > 0 && !ctl_sale_name(arguments->positional[0])) {
        return CTL_USAGE;
    }
    enum ctl_exit code = ctl_session_open(options, false, &session);
    if (code != CTL_DONE) {
        return code;
    }
    code = arguments->count > 0 ? show_one(options, &session, arguments->positional[0])
                                : show_all(options, &session);
    ctl_session_close(&session);
    return code;
}
