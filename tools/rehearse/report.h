/* SPDX-License-Identifier: Apache-2.0
 * The report of a run: JSON for machines (see README.md for every member), a page of text for
 * people. */
#ifndef REHEARSE_REPORT_H
#define REHEARSE_REPORT_H

#include "tools/rehearse/cpu.h"
#include "tools/rehearse/crowd.h"
#include "tools/rehearse/gate.h"
#include "tools/rehearse/ledger.h"

#include <stdio.h>

enum rehearse_verdict {
    REHEARSE_PASS,
    REHEARSE_FAIL,
    REHEARSE_VOID /* no rule was broken, but the load generator bounded the run: it says nothing */
};

struct rehearse_result {
    const struct rehearse_options *options;
    const struct rehearse_sale *sale;
    const struct rehearse_crowd *crowd;
    struct rehearse_client_counts client, shop, fetch;
    double own_cpu_s; /* of this process */
    struct rehearse_counts counts;
    struct rehearse_facts facts;
    struct rehearse_findings findings;
    struct rehearse_gate gate;
    struct rehearse_cpu cpu;
    bool settled;
    double run_s, settle_s;
    /* computed by rehearse_conclude */
    double sold_out_told_p99_ms; /* -1: nobody asked later than 1 s after the event */
    uint64_t sold_out_told;      /* requests it rests on */
    double holds_per_second;
    uint32_t holds_per_second_peak;
    enum rehearse_verdict verdict;
    const char *failures[24]; /* why the verdict is not pass */
    size_t failure_count;
};

/* Figures that need the log, and the verdict. A broken rule fails at any speed; what a generator
 * that is late may have caused itself does not count against the engine. */
void rehearse_conclude(struct rehearse_result *result);

/* 0 or -errno. */
TG_MUST_CHECK int rehearse_report_json(const struct rehearse_result *result, const char *path);
void rehearse_report_text(const struct rehearse_result *result, FILE *out);

#endif
