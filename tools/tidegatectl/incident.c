/* SPDX-License-Identifier: Apache-2.0
 * incident report: why a sale is paused, what happened since it last ran, which reservations are
 * affected, and what to do with each. */
#include "tools/tidegatectl/incident.h"

#include "lib/pure/reason.h"
#include "tools/tidegatectl/state.h"

#include <inttypes.h>
#include <string.h>

enum { PAGES_MAX = 4096, TEXT_BYTES = 1100 };

enum ctl_exit ctl_incident_page(struct ctl_session *session, const char *sale, const char *after,
                                Tidegate__V1__IncidentReply **out_page)
{
    Tidegate__V1__IncidentRequest request = TIDEGATE__V1__INCIDENT_REQUEST__INIT;
    ProtobufCMessage *reply = NULL;
    request.sale = (char *)sale;
    request.after = after != NULL ? (char *)after : request.after;
    int error = ctl_session_ask(session, TG_MESSAGE_LEDGER_INCIDENT, sale, &request.base, &reply);
    if (error != 0) {
        ctl_session_explain(session, "ledger", error);
        return CTL_UNREACHABLE;
    }
    Tidegate__V1__IncidentReply *page = (Tidegate__V1__IncidentReply *)reply;
    if (page->reason[0] != '\0') {
        const enum tg_reason reason = tg_reason_from_code(page->reason);
        (void)fprintf(stderr, "tidegatectl: %s: %s\n", sale,
                      reason < TG_REASON_COUNT ? tg_reason_row(reason)->detail : "unknown reason");
        tidegate__v1__incident_reply__free_unpacked(page, NULL);
        return reason == TG_REASON_TRY_AGAIN ? CTL_UNREACHABLE : CTL_REFUSED;
    }
    *out_page = page;
    return CTL_DONE;
}

const char *ctl_incident_advice(const Tidegate__V1__IncidentRow *row)
{
    if (strcmp(row->kind, "row_lost") == 0) {
        return "its buyer was told it is his and the ledger lost the row: restore the row from a "
               "backup before the rebuild, or tell the buyer and offer another unit";
    }
    if (strcmp(row->kind, "never_recorded") == 0) {
        return "nothing: nobody was told of it; the rebuild leaves it out and its unit is free";
    }
    if (strcmp(row->kind, "verdict_waits") == 0) {
        return "nothing: the sweeper carries its verdict to the gate; if it stays, look at the "
               "sweeper and at the gate's pauses";
    }
    if (strstr(row->detail, "C2") != NULL) {
        return "the ledger contradicts itself: find the right owner by order and payment, cancel "
               "the other reservation";
    }
    if (strcmp(row->state, "pending") == 0) {
        return "kept: its buyer may pay until the deadline; the rebuild puts the gate right";
    }
    if (strcmp(row->state, "confirmed") == 0) {
        return "kept: it is sold; the rebuild puts the gate right";
    }
    return "nothing: it has ended; the rebuild puts the gate right";
}

/* ---- gathering ---- */

struct report {
    const struct ctl_options *options;
    json_t *timeline, *affected;
    size_t affected_count;
};

static void units_text(const Tidegate__V1__IncidentRow *row, char *out_text, size_t capacity)
{
    size_t length = 0;
    out_text[0] = '\0';
    for (size_t i = 0; i < row->n_units && length < capacity; i++) {
        length += (size_t)snprintf(out_text + length, capacity - length, "%s%u:%u",
                                   i > 0 ? " " : "", row->units[i]->item, row->units[i]->unit);
    }
}

static void add_affected(struct report *report, const Tidegate__V1__IncidentRow *row)
{
    char user[2 * TG_MAX_USER_BYTES], units[256], expires[CTL_VALUE_BYTES];
    ctl_printable((const char *)row->user.data, row->user.len, user, sizeof(user));
    units_text(row, units, sizeof(units));
    ctl_time_text(row->expires_at_ms, expires);
    report->affected_count++;
    if (report->options->format != CTL_TABLE) {
        (void)json_array_append_new(report->affected,
                                    json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s?, s:s}",
                                              "reservation", row->reservation_id, "kind", row->kind,
                                              "checks", row->detail, "state", row->state, "buyer",
                                              user, "units", units, "expiresAt",
                                              row->expires_at_ms != 0 ? expires : NULL, "advice",
                                              ctl_incident_advice(row)));
        return;
    }
    if (report->affected_count == 1) {
        (void)printf("affected reservations:\n");
    }
    (void)printf("  %s  %s%s%s  buyer %s  units %s  ledger: %s\n      %s\n", row->reservation_id,
                 row->kind, row->detail[0] != '\0' ? " by " : "", row->detail,
                 user[0] != '\0' ? user : "unknown", units[0] != '\0' ? units : "unknown",
                 row->state[0] != '\0' ? row->state : "no row", ctl_incident_advice(row));
}

static void add_line(struct report *report, const Tidegate__V1__IncidentRow *row)
{
    char at[CTL_VALUE_BYTES], detail[TEXT_BYTES];
    ctl_time_text(row->at_ms, at);
    ctl_printable(row->detail, strlen(row->detail), detail, sizeof(detail));
    if (report->options->format != CTL_TABLE) {
        (void)json_array_append_new(report->timeline, json_pack("{s:s, s:s, s:s}", "at", at, "kind",
                                                                row->kind, "detail", detail));
    } else {
        (void)printf("  %s  %-9s %s\n", at, row->kind, detail);
    }
}

/* The ledger's words on the sale, above everything else. */
static void begin(const struct ctl_options *options, const Tidegate__V1__IncidentReply *page,
                  const Tidegate__V1__SaleState *state)
{
    char since[CTL_VALUE_BYTES];
    ctl_time_text(page->since_ms, since);
    if (options->format != CTL_TABLE) {
        return;
    }
    ctl_print_state(state);
    (void)printf("  last round: %s\n  units: %" PRIu64 ", confirmed %" PRIu64 ", held %" PRIu64
                 "\nsince %s:\n",
                 page->last_check[0] != '\0' ? page->last_check : "none of this epoch", page->units,
                 page->confirmed_units, page->pending_units, since);
}

static void finish(struct report *report, const Tidegate__V1__IncidentReply *first,
                   const Tidegate__V1__SaleState *state)
{
    const bool paused = state->n_pauses > 0;
    const bool broken = strncmp(first->last_check, "alarm", 5) == 0;
    const char *next = !paused  ? "nothing: the sale is not paused"
                       : broken ? "tidegatectl sale rebuild, then sale resume --wait 30s"
                                : "tidegatectl sale resume";
    if (report->options->format == CTL_TABLE) {
        (void)printf("%snext: %s\n",
                     report->affected_count == 0 ? "no reservation is affected\n" : "", next);
        return;
    }
    char since[CTL_VALUE_BYTES];
    ctl_time_text(first->since_ms, since);
    ctl_print_document(report->options->format,
                       json_pack("{s:o, s:s, s:s, s:{s:I, s:I, s:I, s:I, s:I}, s:O, s:O, s:s}",
                                 "state", ctl_state_json(state), "since", since, "lastRound",
                                 first->last_check, "counts", "units", (json_int_t)first->units,
                                 "pendingUnits", (json_int_t)first->pending_units, "confirmedUnits",
                                 (json_int_t)first->confirmed_units, "liveReservations",
                                 (json_int_t)first->live_reservations, "endedReservations",
                                 (json_int_t)first->ended_reservations, "timeline",
                                 report->timeline, "affected", report->affected, "next", next));
}

/* Every page of it. `first` is the first page; it is kept by the caller. */
static enum ctl_exit take_pages(struct ctl_session *session, struct report *report,
                                const char *sale, const Tidegate__V1__IncidentReply *first)
{
    const Tidegate__V1__IncidentReply *page = first;
    Tidegate__V1__IncidentReply *own = NULL;
    enum ctl_exit code = CTL_DONE;
    for (unsigned number = 0; code == CTL_DONE && number < PAGES_MAX; number++) {
        for (size_t i = 0; i < page->n_rows; i++) {
            if (page->rows[i]->reservation_id[0] != '\0') {
                add_affected(report, page->rows[i]);
            } else {
                add_line(report, page->rows[i]);
            }
        }
        if (page->end || page->n_rows == 0) {
            break;
        }
        Tidegate__V1__IncidentReply *next = NULL;
        code = ctl_incident_page(session, sale, page->rows[page->n_rows - 1]->key, &next);
        if (own != NULL) {
            tidegate__v1__incident_reply__free_unpacked(own, NULL);
        }
        page = own = next;
    }
    if (own != NULL) {
        tidegate__v1__incident_reply__free_unpacked(own, NULL);
    }
    return code;
}

static enum ctl_exit tell(const struct ctl_options *options, struct ctl_session *session,
                          const char *sale, const Tidegate__V1__SaleState *state)
{
    struct report report = {.options = options, .timeline = json_array(), .affected = json_array()};
    Tidegate__V1__IncidentReply *first = NULL;
    enum ctl_exit code = ctl_incident_page(session, sale, NULL, &first);
    if (code == CTL_DONE) {
        begin(options, first, state);
        code = take_pages(session, &report, sale, first);
    }
    if (code == CTL_DONE) {
        finish(&report, first, state);
    }
    if (first != NULL) {
        tidegate__v1__incident_reply__free_unpacked(first, NULL);
    }
    json_decref(report.timeline);
    json_decref(report.affected);
    return code;
}

enum ctl_exit ctl_incident_report(const struct ctl_options *options,
                                  const struct ctl_arguments *arguments)
{
    struct ctl_session session;
    const char *sale = arguments->positional[0];
    Tidegate__V1__SalesReply *known = NULL;
    if (!ctl_sale_name(sale)) {
        return CTL_USAGE;
    }
    enum ctl_exit code = ctl_session_open(options, false, &session);
    if (code != CTL_DONE) {
        return code;
    }
    code = ctl_session_sales(&session, sale, NULL, &known);
    if (code == CTL_DONE && known->n_states == 0) {
        (void)fprintf(stderr, "tidegatectl: there is no sale %s\n", sale);
        code = CTL_REFUSED;
    } else if (code == CTL_DONE) {
        code = tell(options, &session, sale, known->states[0]);
    }
    if (known != NULL) {
        tidegate__v1__sales_reply__free_unpacked(known, NULL);
    }
    ctl_session_close(&session);
    return code;
}
