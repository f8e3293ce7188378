/* SPDX-License-Identifier: Apache-2.0
 * The steps of one reservation, found in the JSON log lines of all daemons. */
#ifndef TG_CTL_STEPS_H
#define TG_CTL_STEPS_H

#include "lib/pure/clock.h"
#include "lib/pure/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct ctl_step {
    struct tg_wall at;
    size_t order; /* as read: breaks ties */
    char daemon[16];
    char instance[40];
    char event[48];
    char traceparent[56];
};

enum { CTL_STEPS_MAX = 1024 };

struct ctl_steps {
    size_t count;
    size_t dropped; /* beyond CTL_STEPS_MAX */
    struct ctl_step steps[CTL_STEPS_MAX];
};

/* One log line; takes it if it is a step of this reservation. Anything else, malformed lines
 * included, is passed over. */
void ctl_steps_take_line(struct ctl_steps *steps, const char *reservation, const char *line,
                         size_t length);
/* Every *.log file of a folder. 0 or -errno when the folder cannot be read; files that cannot be
 * are named on `errors`. */
TG_MUST_CHECK int ctl_steps_read_folder(struct ctl_steps *steps, const char *reservation,
                                        const char *folder, FILE *errors);
/* In time order. */
void ctl_steps_sort(struct ctl_steps *steps);

#endif
