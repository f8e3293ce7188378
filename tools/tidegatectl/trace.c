/* SPDX-License-Identifier: Apache-2.0
 * trace: the way of one reservation through all daemons, from their logs, and what the ledger says
 * of it now. */
#include "lib/io/keys.h"
#include "lib/pure/text.h"
#include "tools/tidegatectl/session.h"
#include "tools/tidegatectl/state.h"
#include "tools/tidegatectl/steps.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum { CREDENTIAL_BYTES = 256 };

/* ---- the ledger's row ---- */

/* The row (to be freed), or NULL and in *out_why a sentence why there is none. */
static Tidegate__V1__ReservationReply *ask_ledger(const struct ctl_options *options,
                                                  const char *reservation, const char **out_why)
{
    static char credential[CREDENTIAL_BYTES];
    struct ctl_session session;
    char path[4096];
    Tidegate__V1__ReadRequest request = TIDEGATE__V1__READ_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    *out_why = "there is no service credential (TIDEGATE_KEYS)";
    if (options->keys == NULL ||
        snprintf(path, sizeof(path), "%s/service", options->keys) >= (int)sizeof(path) ||
        access(path, R_OK) != 0 ||
        tg_keys_text(options->keys, "service", credential, sizeof(credential)) != 0) {
        return NULL;
    }
    *out_why = "NATS does not answer";
    if (ctl_session_open(options, true, &session) != CTL_DONE) {
        return NULL;
    }
    request.reservation_id = (char *)reservation;
    request.service_credential = credential;
    int error = ctl_session_ask(&session, TG_MESSAGE_LEDGER_READ, NULL, &request.base, &reply);
    *out_why =
        error == TG_ERR_NO_RESPONDERS ? "no ledger is connected" : "the ledger did not answer";
    ctl_session_close(&session);
    return error == 0 ? (Tidegate__V1__ReservationReply *)reply : NULL;
}

static json_t *row_json(const Tidegate__V1__ReservationReply *row)
{
    char expires[CTL_VALUE_BYTES];
    json_t *units = json_array();
    ctl_time_text(row->expires_at_ms, expires);
    for (size_t i = 0; i < row->n_units; i++) {
        (void)json_array_append_new(units,
                                    json_pack("{s:I, s:I}", "item", (json_int_t)row->units[i]->item,
                                              "unit", (json_int_t)row->units[i]->unit));
    }
    return json_pack("{s:s, s:s, s:s, s:o, s:s, s:s}", "sale", row->sale, "state",
                     ctl_reservation_text(row->state), "expiresAt", expires, "units", units,
                     "orderId", row->order_id, "paymentId", row->payment_id);
}

static void print_row(const Tidegate__V1__ReservationReply *row)
{
    char expires[CTL_VALUE_BYTES];
    ctl_time_text(row->expires_at_ms, expires);
    (void)printf("ledger now: %s in sale %s, expires %s, units", ctl_reservation_text(row->state),
                 row->sale, expires);
    for (size_t i = 0; i < row->n_units; i++) {
        (void)printf(" %u:%u", row->units[i]->item, row->units[i]->unit);
    }
    (void)printf("%s%s%s\n", row->n_units == 0 ? " none" : "",
                 row->order_id[0] != '\0' ? ", order " : "", row->order_id);
}

/* ---- output ---- */

static json_t *steps_json(const struct ctl_steps *steps)
{
    json_t *list = json_array();
    for (size_t i = 0; i < steps->count; i++) {
        const struct ctl_step *step = &steps->steps[i];
        char when[CTL_VALUE_BYTES];
        ctl_time_text(step->at.ms, when);
        (void)json_array_append_new(list,
                                    json_pack("{s:s, s:s, s:s, s:s, s:s}", "ts", when, "daemon",
                                              step->daemon, "instance", step->instance, "event",
                                              step->event, "traceparent", step->traceparent));
    }
    return list;
}

static void print_steps(const struct ctl_options *options, const struct ctl_steps *steps)
{
    for (size_t i = 0; i < steps->count; i++) {
        const struct ctl_step *step = &steps->steps[i];
        char when[CTL_VALUE_BYTES];
        ctl_time_text(step->at.ms, when);
        (void)printf("%s%s %+9" PRId64 " ms%s  %-10s %-26s %s\n", ctl_colour(options, CTL_DIM),
                     when, step->at.ms - steps->steps[0].at.ms, ctl_colour(options, CTL_PLAIN),
                     step->daemon, step->event, step->instance);
    }
    if (steps->dropped > 0) {
        (void)printf("and %zu further steps\n", steps->dropped);
    }
}

static enum ctl_exit report(const struct ctl_options *options, const char *reservation,
                            const struct ctl_steps *steps)
{
    const char *why = NULL;
    Tidegate__V1__ReservationReply *row = ask_ledger(options, reservation, &why);
    bool known = row != NULL && row->reason[0] == '\0';
    if (options->format != CTL_TABLE) {
        ctl_print_document(options->format, json_pack("{s:s, s:o, s:o}", "reservation", reservation,
                                                      "steps", steps_json(steps), "ledger",
                                                      known ? row_json(row) : json_null()));
    } else {
        print_steps(options, steps);
        if (known) {
            print_row(row);
        } else {
            (void)printf("ledger now: %s\n", row != NULL ? row->reason : why);
        }
    }
    if (row != NULL) {
        tidegate__v1__reservation_reply__free_unpacked(row, NULL);
    }
    if (steps->count == 0 && !known) {
        (void)fprintf(stderr, "tidegatectl: no trace of %s in %s\n", reservation, options->logs);
        return CTL_REFUSED;
    }
    return CTL_DONE;
}

enum ctl_exit ctl_trace(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    static struct ctl_steps steps; /* one per process */
    const char *reservation = arguments->positional[0];
    if (!tg_reservation_id_valid(reservation, strlen(reservation))) {
        (void)fprintf(
            stderr,
            "tidegatectl: RESERVATION: expected res_ and 26 characters, as the buyer was told\n");
        return CTL_USAGE;
    }
    if (options->logs == NULL) {
        (void)fprintf(stderr,
                      "tidegatectl: where are the logs? Give --logs FOLDER or set TIDEGATE_LOGS\n");
        return CTL_SETTINGS;
    }
    int error = ctl_steps_read_folder(&steps, reservation, options->logs, stderr);
    if (error != 0) {
        (void)fprintf(stderr, "tidegatectl: folder of logs %s: %s\n", options->logs,
                      tg_error_text(error));
        return CTL_SETTINGS;
    }
    ctl_steps_sort(&steps);
    return report(options, reservation, &steps);
}
