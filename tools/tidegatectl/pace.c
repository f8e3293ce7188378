/* SPDX-License-Identifier: Apache-2.0
 * pace: how fast people are let in and what sets it; an operator's word instead, and back. signal:
 * a measurement from outside, for scripts and alerts. */
#include "lib/io/now.h"
#include "lib/pure/number.h"
#include "tidegate/v1/admission.pb-c.h"
#include "tools/tidegatectl/session.h"

#include <inttypes.h>
#include <string.h>

enum {
    HEAR_MS = 2000,  /* told every 250 ms; a take-over is under 3 s */
    EFFECT_MS = 600, /* from a signal to the pace that takes it into account */
    LINE_MS = 1000,
    VALID_MS = 30000,
    VALID_MS_MAX = 86400000,
    TEXT_BYTES = 160
};

struct pace_seen {
    const char *sale;
    bool heard;
    uint64_t pace_milli, base_milli, term;
    uint32_t ramp_permille;
    char limiting[TEXT_BYTES], detail[TEXT_BYTES], instance[TEXT_BYTES];
};

static void on_pace(void *context, struct tg_bus_incoming *take_incoming)
{
    struct pace_seen *seen = context;
    const Tidegate__V1__Pace *pace = (const Tidegate__V1__Pace *)tg_bus_body(take_incoming);
    if (strcmp(tg_bus_sale(take_incoming), seen->sale) == 0 && pace->term >= seen->term) {
        seen->heard = true;
        seen->pace_milli = pace->pace_milli;
        seen->base_milli = pace->base_milli;
        seen->ramp_permille = pace->ramp_permille;
        seen->term = pace->term;
        ctl_printable(pace->limiting, strlen(pace->limiting), seen->limiting, TEXT_BYTES);
        ctl_printable(pace->detail, strlen(pace->detail), seen->detail, TEXT_BYTES);
        ctl_printable(pace->instance, strlen(pace->instance), seen->instance, TEXT_BYTES);
    }
    tg_bus_release(take_incoming);
}

static bool is_heard(const void *context)
{
    const struct pace_seen *seen = context;
    return seen->heard;
}

static bool never(const void *context)
{
    return false;
}

static void print_line(const struct ctl_options *options, const struct pace_seen *seen)
{
    enum ctl_colour colour = seen->pace_milli == 0 ? CTL_RED : CTL_GREEN;
    (void)printf("%s: pace %s%" PRIu64 ".%03" PRIu64 "/s%s by %s%s%s\n", seen->sale,
                 ctl_colour(options, colour), seen->pace_milli / 1000, seen->pace_milli % 1000,
                 ctl_colour(options, CTL_PLAIN), seen->limiting,
                 seen->detail[0] != '\0' ? ": " : "", seen->detail);
}

/* How a signal that holds everybody back ends: it does not by itself. */
static void print_signal(const struct pace_seen *seen)
{
    if (strcmp(seen->limiting, "signal") == 0) {
        (void)printf("  until it is told better, or withdrawn: tidegatectl signal %s NAME "
                     "--withdraw\n",
                     seen->sale);
    }
}

static json_t *pace_json(const struct pace_seen *seen)
{
    return json_pack("{s:s, s:I, s:s, s:s, s:I, s:i, s:I, s:s}", "sale", seen->sale, "paceMilli",
                     (json_int_t)seen->pace_milli, "limiting", seen->limiting, "detail",
                     seen->detail, "baseMilli", (json_int_t)seen->base_milli, "rampPermille",
                     (int)seen->ramp_permille, "term", (json_int_t)seen->term, "instance",
                     seen->instance);
}

static void print_whole(const struct ctl_options *options, const struct pace_seen *seen,
                        const Tidegate__V1__SalesReply *known)
{
    const Tidegate__V1__SaleDefinition *definition =
        known->n_definitions > 0 ? known->definitions[0] : NULL;
    uint64_t operator_milli = known->n_states > 0 ? known->states[0]->pace_milli : 0;
    if (options->format != CTL_TABLE) {
        json_t *report = pace_json(seen);
        (void)json_object_set_new(report, "operatorMilli",
                                  json_integer((json_int_t)operator_milli));
        ctl_print_document(options->format, report);
        return;
    }
    print_line(options, seen);
    print_signal(seen);
    (void)printf("  the law holds %" PRIu64 "/s; ramp %" PRIu32 ".%" PRIu32 " %%; term %" PRIu64
                 " of %s\n",
                 seen->base_milli / 1000, seen->ramp_permille / 10, seen->ramp_permille % 10,
                 seen->term, seen->instance);
    if (definition != NULL) {
        (void)printf("  declared: start %" PRIu64 "/s, min %" PRIu64 "/s, max %" PRIu64 "/s; ",
                     definition->pace_start_milli / 1000, definition->pace_min_milli / 1000,
                     definition->pace_max_milli / 1000);
        (void)printf(operator_milli > 0 ? "operator: %" PRIu64 "/s (--auto gives it back)\n"
                                        : "operator: none\n",
                     operator_milli / 1000);
    }
}

/* One line a second, or one document. */
static void follow(const struct ctl_options *options, struct ctl_session *session,
                   const struct pace_seen *seen, int64_t span_ms)
{
    for (int64_t left_ms = span_ms; left_ms > 0; left_ms -= LINE_MS) {
        (void)ctl_session_until(session, never, seen, left_ms < LINE_MS ? left_ms : LINE_MS);
        if (options->format != CTL_TABLE) {
            ctl_print_document(options->format, pace_json(seen));
        } else {
            print_line(options, seen);
            (void)fflush(stdout);
        }
    }
}

static enum ctl_exit show(const struct ctl_options *options, struct ctl_session *session,
                          struct pace_seen *seen, int64_t span_ms)
{
    Tidegate__V1__SalesReply *known = NULL;
    int error = tg_bus_serve(session->bus, TG_MESSAGE_ADMISSION_PACE, on_pace, seen);
    enum ctl_exit code = CTL_UNREACHABLE;
    if (error != 0) {
        ctl_session_explain(session, "bus", error);
        return code;
    }
    if (!ctl_session_until(session, is_heard, seen, HEAR_MS)) {
        (void)fprintf(stderr,
                      "tidegatectl: nobody told a pace of %s within 2 s: is there such a sale "
                      "(tidegatectl sale show), and does admission run?\n",
                      seen->sale);
        return code;
    }
    code = ctl_session_sales(session, seen->sale, NULL, &known);
    if (code == CTL_DONE) {
        print_whole(options, seen, known);
        tidegate__v1__sales_reply__free_unpacked(known, NULL);
        follow(options, session, seen, span_ms);
    }
    return code;
}

enum ctl_exit ctl_pace(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    struct pace_seen seen = {.sale = arguments->positional[0]};
    struct ctl_session session;
    int64_t span_ms = 0;
    if (arguments->count > 1 || arguments->automatic) {
        return ctl_pace_override(options, arguments);
    }
    if (!ctl_sale_name(seen.sale) ||
        (arguments->span != NULL &&
         !ctl_duration("--for", arguments->span, 1, INT64_C(7) * 24 * 3600 * 1000, &span_ms))) {
        return CTL_USAGE;
    }
    enum ctl_exit code = ctl_session_open(options, false, &session);
    if (code == CTL_DONE) {
        code = show(options, &session, &seen, span_ms);
        ctl_session_close(&session);
    }
    return code;
}

/* ---- signal ---- */

/* "91", "91.5" or "91.5%" in thousandths. */
static bool read_milli(const char *what, const char *text, uint64_t *out_milli)
{
    size_t length = strlen(text);
    length -= length > 0 && text[length - 1] == '%';
    const char *point = memchr(text, '.', length);
    size_t whole = point != NULL ? (size_t)(point - text) : length;
    size_t decimals = point != NULL ? length - whole - 1 : 0;
    uint64_t units = 0;
    uint64_t milli = 0;
    bool good = tg_unsigned_parse(text, whole, TG_COUNT_MAX / 1000 - 1, &units) == 0 &&
                decimals <= 3 && (point == NULL || decimals > 0);
    for (size_t i = 0; good && i < 3; i++) {
        char digit = i < decimals ? point[1 + i] : '0';
        good = digit >= '0' && digit <= '9';
        milli = milli * 10 + (uint64_t)(digit - '0');
    }
    if (!good) {
        (void)fprintf(stderr,
                      "tidegatectl: %s: expected a number such as 91, 91.5 or 91.5%%, with at most "
                      "three decimals\n",
                      what);
        return false;
    }
    *out_milli = units * 1000 + milli;
    return true;
}

static bool read_signal(const struct ctl_arguments *arguments, Tidegate__V1__Signal *signal)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_";
    signal->sale = (char *)arguments->positional[0];
    signal->name = (char *)arguments->positional[1];
    signal->valid_ms = VALID_MS;
    size_t length = strlen(signal->name);
    if (!ctl_sale_name(signal->sale)) {
        return false;
    }
    if (length < 1 || length > 32 || strspn(signal->name, letters) != length) {
        (void)fprintf(stderr, "tidegatectl: NAME: expected 1 to 32 of a-z 0-9 _\n");
        return false;
    }
    if (arguments->withdraw != (arguments->count == 2)) {
        (void)fprintf(stderr, "tidegatectl: expected either VALUE or --withdraw\n");
        return false;
    }
    if (arguments->withdraw) {
        signal->valid_ms = 0;
        return true;
    }
    bool own =
        strcmp(signal->name, "database_cpu") != 0 && strcmp(signal->name, "payment_errors") != 0;
    if (own && arguments->limit == NULL) {
        (void)fprintf(stderr, "tidegatectl: %s has no limit by itself: give --limit NUMBER\n",
                      signal->name);
        return false;
    }
    return read_milli("VALUE", arguments->positional[2], &signal->value_milli) &&
           (arguments->limit == NULL ||
            read_milli("--limit", arguments->limit, &signal->limit_milli)) &&
           (arguments->valid == NULL ||
            ctl_duration("--valid", arguments->valid, 1, VALID_MS_MAX, &signal->valid_ms));
}

static enum ctl_exit say(const struct ctl_options *options, struct ctl_session *session,
                         const Tidegate__V1__Signal *signal)
{
    struct pace_seen seen = {.sale = signal->sale};
    int error = tg_bus_serve(session->bus, TG_MESSAGE_ADMISSION_PACE, on_pace, &seen);
    if (error == 0) {
        error = tg_bus_publish(session->bus, TG_MESSAGE_LOAD_SIGNAL, signal->sale, &signal->base);
    }
    if (error != 0) {
        ctl_session_explain(session, "bus", error);
        return CTL_UNREACHABLE;
    }
    (void)ctl_session_until(session, never, &seen, EFFECT_MS);
    if (!seen.heard) {
        (void)fprintf(stderr,
                      "tidegatectl: %s was told, but nobody tells a pace of %s: whether it was "
                      "heard is unknown\n",
                      signal->name, signal->sale);
        return CTL_UNREACHABLE;
    }
    if (options->format != CTL_TABLE) {
        ctl_print_document(options->format, pace_json(&seen));
    } else {
        print_line(options, &seen);
        print_signal(&seen);
    }
    return CTL_DONE;
}

enum ctl_exit ctl_signal(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    Tidegate__V1__Signal signal = TIDEGATE__V1__SIGNAL__INIT;
    struct ctl_session session;
    if (!read_signal(arguments, &signal)) {
        return CTL_USAGE;
    }
    enum ctl_exit code = ctl_session_open(options, false, &session);
    if (code == CTL_DONE) {
        code = say(options, &session, &signal);
        ctl_session_close(&session);
    }
    return code;
}
