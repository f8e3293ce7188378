/* SPDX-License-Identifier: Apache-2.0
 * doctor and arm: whether the configuration is what the guarantees rest on. Neither changes
 * anything: a gate is armed by the daemons, on a PostgreSQL and a Redis that are sound. */
#include "tools/tidegatectl/doctor.h"

#include "tools/tidegatectl/requirement.h"

#include <string.h>

enum { ARM_WAIT_MS = 30000, ARM_WAIT_MS_MAX = 600000, VALUE_BYTES = 128 };

struct report {
    const struct ctl_options *options;
    json_t *list;                /* NULL: as text */
    bool quiet;                  /* only counts */
    size_t checked, met, broken; /* broken: MUST rows not met, of all patients */
};

static bool concerns(const struct ctl_requirement *requirement, const struct ctl_patient *patient)
{
    static const char *const no_daemons[] = {"nats", "keys", "sale"};
    if (strcmp(requirement->source, "every") != 0) {
        return strcmp(requirement->source, patient->source) == 0;
    }
    for (size_t i = 0; i < sizeof(no_daemons) / sizeof(no_daemons[0]); i++) {
        if (strcmp(patient->source, no_daemons[i]) == 0) {
            return false;
        }
    }
    return true;
}

static void tell_json(struct report *report, const struct ctl_patient *patient,
                      const struct ctl_requirement *requirement, const char *value, bool met)
{
    char expected[VALUE_BYTES];
    ctl_requirement_text(requirement, expected, sizeof(expected));
    (void)json_array_append_new(report->list,
                                json_pack("{s:s,s:s,s:s,s:s,s:s,s:b,s:b,s:s,s:s,s:s}", "source",
                                          patient->source, "instance", patient->instance, "name",
                                          requirement->name, "value", value, "expected", expected,
                                          "met", met, "must", requirement->weight == CTL_MUST,
                                          "guarantees", requirement->guarantees, "why",
                                          requirement->why, "remedy", requirement->remedy));
}

static void tell_text(const struct report *report, const struct ctl_requirement *requirement,
                      const char *value)
{
    char expected[VALUE_BYTES];
    bool must = requirement->weight == CTL_MUST;
    ctl_requirement_text(requirement, expected, sizeof(expected));
    (void)printf("  %s%-6s%s %s is %s, expected %s (%s): %s\n         -> %s\n",
                 ctl_colour(report->options, must ? CTL_RED : CTL_YELLOW),
                 must ? "FAULT" : "advice", ctl_colour(report->options, CTL_PLAIN),
                 requirement->name, value, expected, requirement->guarantees, requirement->why,
                 requirement->remedy);
}

static void judge(struct report *report, const struct ctl_patient *patient,
                  const struct ctl_requirement *requirement)
{
    char told[VALUE_BYTES], value[VALUE_BYTES] = "unknown";
    bool known = ctl_fact(patient->facts, requirement->name, told, sizeof(told));
    if (known) {
        ctl_printable(told, strlen(told), value, sizeof(value));
    } else if (!ctl_fact(patient->facts, "ready", told, sizeof(told)) || strcmp(told, "yes") != 0) {
        return; /* it is not ready, or this is not to be known of it: that row says so */
    }
    bool met = ctl_requirement_met(requirement, known ? value : NULL);
    report->checked++;
    report->met += met ? 1 : 0;
    report->broken += !met && requirement->weight == CTL_MUST ? 1 : 0;
    if (report->list != NULL) {
        tell_json(report, patient, requirement, value, met);
    } else if (!met && !report->quiet) {
        tell_text(report, requirement, value);
    }
}

static void judge_all(struct report *report, const struct ctl_examination *examination)
{
    for (size_t i = 0; i < examination->count; i++) {
        const struct ctl_patient *patient = &examination->patients[i];
        if (report->list == NULL && !report->quiet) {
            (void)printf("%-10s %s\n", patient->source, patient->instance);
        }
        for (size_t row = 0; row < ctl_requirement_count; row++) {
            if (concerns(&ctl_requirements[row], patient)) {
                judge(report, patient, &ctl_requirements[row]);
            }
        }
    }
}

static bool is_broken(const struct ctl_examination *examination)
{
    struct report report = {.options = examination->options, .quiet = true};
    judge_all(&report, examination);
    return report.broken > 0;
}

/* Prints what is and is not as it must be. */
static enum ctl_exit tell(const struct ctl_examination *examination)
{
    struct report report = {.options = examination->options};
    report.list = examination->options->format != CTL_TABLE ? json_array() : NULL;
    judge_all(&report, examination);
    if (report.list != NULL) {
        ctl_print_document(examination->options->format, report.list);
    } else {
        (void)printf("%zu checked, %zu as it should be, %zu in the way of a guarantee\n",
                     report.checked, report.met, report.broken);
    }
    return report.broken > 0 ? CTL_REFUSED : CTL_DONE;
}

/* Waits for the sale only where nothing is in its way. */
static enum ctl_exit examine(const struct ctl_options *options, const char *sale, int64_t wait_ms)
{
    static struct ctl_examination examination; /* one per process */
    struct ctl_session session;
    if (sale != NULL && !ctl_sale_name(sale)) {
        return CTL_USAGE;
    }
    enum ctl_exit code = ctl_session_open(options, false, &session);
    if (code != CTL_DONE) {
        return code;
    }
    examination =
        (struct ctl_examination){.session = &session, .options = options, .pulse = {.sale = sale}};
    code = ctl_examine(&examination);
    if (code == CTL_DONE) {
        if (sale != NULL) {
            ctl_examine_sale(&examination, is_broken(&examination) ? 0 : wait_ms);
        }
        code = tell(&examination);
    }
    ctl_session_close(&session);
    return code;
}

enum ctl_exit ctl_doctor(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    return examine(options, arguments->positional[0], 0);
}

enum ctl_exit ctl_arm(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    int64_t wait_ms = ARM_WAIT_MS;
    if (arguments->wait != NULL &&
        !ctl_duration("--wait", arguments->wait, 1, ARM_WAIT_MS_MAX, &wait_ms)) {
        return CTL_USAGE;
    }
    return examine(options, arguments->positional[0], wait_ms);
}
