/* SPDX-License-Identifier: Apache-2.0
 * CPU time of the stack's processes, by the pid files of its run folder: each with all its
 * descendants. Linux /proc. */
#ifndef REHEARSE_CPU_H
#define REHEARSE_CPU_H

#include <stddef.h>

enum { REHEARSE_DAEMONS_MAX = 64, REHEARSE_DAEMON_NAME_BYTES = 32 };

struct rehearse_cpu {
    size_t count;
    struct {
        char name[REHEARSE_DAEMON_NAME_BYTES];
        double seconds; /* user and system, since each started */
    } daemons[REHEARSE_DAEMONS_MAX];
};

/* Reads RUN/pids/NAME.pid; nothing when `run` is "". */
void rehearse_cpu_read(const char *run, struct rehearse_cpu *out_cpu);
/* What was spent between two readings, by name. */
void rehearse_cpu_since(const struct rehearse_cpu *before, struct rehearse_cpu *after);

#endif
