/* SPDX-License-Identifier: Apache-2.0
 * sale open, pause, resume, close; an operator's pace. */
#include "lib/pure/limit.h"
#include "tools/tidegatectl/control.h"
#include "tools/tidegatectl/sale_file.h"

#include <string.h>

/* A pause is one command and ends with its life; the others are made anew. */
enum { WAIT_MS_MAX = 600000, PAUSE_WAIT_MS = 20000, PAUSE_WAIT_MS_MAX = 25000 };

static enum ctl_exit operate(const struct ctl_options *options,
                             const struct ctl_arguments *arguments, struct ctl_wish wish)
{
    bool pause = wish.kind == TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE;
    wish.sale = arguments->positional[0];
    wish.plan = arguments->dry_run;
    wish.wait_ms = pause ? PAUSE_WAIT_MS : 0;
    if (!ctl_sale_name(wish.sale) || !ctl_cause_good(arguments->cause) ||
        (arguments->wait != NULL &&
         !ctl_duration("--wait", arguments->wait, 0, pause ? PAUSE_WAIT_MS_MAX : WAIT_MS_MAX,
                       &wish.wait_ms))) {
        return CTL_USAGE;
    }
    return ctl_control(options, &wish);
}

enum ctl_exit ctl_open(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    return operate(
        options, arguments,
        (struct ctl_wish){.verb = "open", .kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_OPEN});
}

enum ctl_exit ctl_pause(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    return operate(
        options, arguments,
        (struct ctl_wish){.verb = "pause",
                          .kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE,
                          .cause = arguments->cause != NULL ? arguments->cause : "operator"});
}

enum ctl_exit ctl_resume(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    return operate(options, arguments,
                   (struct ctl_wish){.verb = "resume",
                                     .kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_RESUME});
}

enum ctl_exit ctl_close(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    return operate(
        options, arguments,
        (struct ctl_wish){.verb = "close", .kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_CLOSE});
}

enum ctl_exit ctl_extend(const struct ctl_options *options, const struct ctl_arguments *arguments)
{
    struct ctl_wish wish = {.verb = "extend",
                            .kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_EXTEND};
    const char *later = arguments->in_flight;
    if (later == NULL || later[0] != '+') {
        (void)fprintf(stderr, "tidegatectl: expected --in-flight +TIME, such as +180s\n");
        return CTL_USAGE;
    }
    if (!ctl_duration("--in-flight", later + 1, 1, TG_MAX_EXTEND_MS, &wish.extend_ms)) {
        return CTL_USAGE;
    }
    return operate(options, arguments, wish);
}

enum ctl_exit ctl_pace_override(const struct ctl_options *options,
                                const struct ctl_arguments *arguments)
{
    struct ctl_wish wish = {.verb = "pace", .kind = TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PACE};
    bool given = arguments->count > 1;
    if (given == arguments->automatic) {
        (void)fprintf(stderr, "tidegatectl: expected either RATE or --auto\n");
        return CTL_USAGE;
    }
    if (given &&
        (ctl_pace_parse(arguments->positional[1], &wish.pace_milli) != 0 || wish.pace_milli == 0)) {
        (void)fprintf(stderr,
                      "tidegatectl: RATE: expected people per second such as 1000/s, 1/s to "
                      "1000000/s; `sale pause` lets nobody in, --auto gives the pace back\n");
        return CTL_USAGE;
    }
    return operate(options, arguments, wish);
}
