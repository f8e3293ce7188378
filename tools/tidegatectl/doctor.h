/* SPDX-License-Identifier: Apache-2.0
 * What doctor and arm look at: facts of every daemon that answers, of the bus, of the keys, of the
 * sale. */
#ifndef TG_CTL_DOCTOR_H
#define TG_CTL_DOCTOR_H

#include "lib/pure/limit.h"
#include "tools/tidegatectl/session.h"

enum { CTL_PATIENTS_MAX = 64, CTL_FACTS_BYTES = TG_MAX_CONFIGURATION_BYTES + 512 };

/* One that facts are known of: lines "name value". */
struct ctl_patient {
    char source[16];   /* of requirements.def: the daemon's class, "nats", "keys" or "sale" */
    char instance[40]; /* for people */
    char facts[CTL_FACTS_BYTES];
};

/* What was heard of the sale. */
struct ctl_pulse {
    const char *sale; /* NULL: none was named */
    bool state_heard, stock_heard, closed, armed;
    uint64_t epoch;
    int64_t lease_ms; /* left when it was heard; <= 0: not proved */
};

struct ctl_examination {
    struct ctl_session *session;
    const struct ctl_options *options;
    int64_t asked_ms; /* our clock when the daemons were asked */
    bool ended;       /* nobody is waited for any more */
    struct ctl_pulse pulse;
    size_t count;
    struct ctl_patient patients[CTL_PATIENTS_MAX];
};

/* Asks everybody, about a second; with a sale, begins to hear of it. CTL_DONE, or CTL_UNREACHABLE
 * or CTL_REFUSED (no such sale) after a sentence. */
enum ctl_exit ctl_examine(struct ctl_examination *examination);
/* The sale that is named, after it was heard of (up to 3 s), or, with a wait, until it is armed and
 * proved. */
void ctl_examine_sale(struct ctl_examination *examination, int64_t wait_ms);

#endif
