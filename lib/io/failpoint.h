/* SPDX-License-Identifier: Apache-2.0
 * Named instants (catalog/failpoints.def) at which a build with the option TIDEGATE_FAILPOINTS can
 * be made to fail. Everywhere else the macro is 0 and nothing of this is linked.
 *
 * Rules, separated by commas or white space: POINT=ACTION[:MS][@FIRST[+COUNT]], as
 * "reserve.held=kill@3, ledger.record=error@2+5, edge.told=delay:250". Hits FIRST to FIRST + COUNT
 * - 1 act (default 1+1). kill: SIGKILL to itself. stop: SIGSTOP to itself, until somebody thaws it.
 * error: the operation reports what the point's row says. delay: the process does nothing for MS
 * milliseconds (1..60000, 250). They are read at every hit from the file
 * TIDEGATE_FAILPOINTS_FILE, else from TIDEGATE_FAILPOINTS; other rules begin to count anew. Every
 * action is logged first, as event "failpoint.hit". */
#ifndef TG_IO_FAILPOINT_H
#define TG_IO_FAILPOINT_H

#ifdef TIDEGATE_FAILPOINTS

#include "lib/pure/error.h"

#include <stdint.h>

enum tg_failpoint {
#define TG_POINT(id, name, instant, error) TG_FAILPOINT_##id,
#include "catalog/failpoints.def"
#undef TG_POINT
    TG_FAILPOINT_COUNT
};

enum tg_failpoint_action {
    TG_FAILPOINT_NONE,
    TG_FAILPOINT_KILL,
    TG_FAILPOINT_STOP,
    TG_FAILPOINT_ERROR,
    TG_FAILPOINT_DELAY
};

struct tg_failpoint_rule {
    enum tg_failpoint_action action;
    uint32_t delay_ms;
    uint64_t first, count;
};

/* The rules of a text, by point; TG_ERR_MALFORMED when a word of it is none. */
TG_MUST_CHECK int tg_failpoint_parse(const char *text,
                                     struct tg_failpoint_rule out_rules[TG_FAILPOINT_COUNT]);

/* Counts a hit and does what the rules say. Nonzero: report the error of the point's row. Rules
 * that cannot be read end the process: a test that cannot fail must not seem to pass. */
int tg_failpoint_hit(enum tg_failpoint point);

#define TG_FAILPOINT(id) tg_failpoint_hit(TG_FAILPOINT_##id)

#else

#define TG_FAILPOINT(id) 0

#endif

#endif
