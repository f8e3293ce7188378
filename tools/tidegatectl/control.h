/* SPDX-License-Identifier: Apache-2.0
 * A signed command from the operator to a sale: sent to every daemon, judged by the ledger,
 * acknowledged by all. Repeating the same command (same id) is harmless; a pause is repeated until
 * the ledger's state shows it. */
#ifndef TG_CTL_CONTROL_H
#define TG_CTL_CONTROL_H

#include "lib/pure/pass.h"
#include "lib/pure/reason.h"
#include "tidegate/v1/control.pb-c.h"
#include "tools/tidegatectl/session.h"

struct ctl_wish {
    const char *verb; /* for people: "resume" */
    const char *sale;
    Tidegate__V1__CommandKind kind;
    const char *cause;
    uint64_t pace_milli;
    int64_t extend_ms;
    Tidegate__V1__SaleDefinition *definition; /* apply */
    bool plan;
    json_t *changes;          /* what would change, for the report; NULL: none. Borrowed. */
    const char *changes_name; /* its name in the report */
    /* Goes on after the command was accepted; NULL: done then. Returns the exit code. */
    enum ctl_exit (*follow)(struct ctl_session *session, const struct ctl_wish *wish,
                            uint64_t epoch);
    int64_t follow_ms; /* at most this long */
    /* How long to keep asking: while the gate is not armed or not proved; a pause, until the
     * ledger's state shows it. */
    int64_t wait_ms;
};

enum { CTL_ACKS_MAX = 512 };

struct ctl_ack {
    char daemon[16];
    char instance[40];
    char effect[64];
    uint64_t took_us;  /* receipt to effect, by the daemon */
    uint64_t heard_us; /* sent to heard, by us */
};

struct ctl_control {
    struct ctl_session *session;
    const struct ctl_wish *wish;
    struct tg_sign_key key;
    char command_id[TG_BASE32_ID_LENGTH + 1];
    Tidegate__V1__CommandReply *judgement; /* NULL: none heard */
    bool shown;                            /* the ledger's state lists our pause */
    bool looked;                           /* resume: `seen` are the pauses of the first look */
    size_t seen_count;
    char seen[TG_MAX_PAUSES][TG_BASE32_ID_LENGTH + 1];
    uint64_t sent_us;
    int send_error;
    size_t ack_count;
    struct ctl_ack acks[CTL_ACKS_MAX];
};

/* Carries out a wish and reports on stdout. */
enum ctl_exit ctl_control(const struct ctl_options *options, const struct ctl_wish *wish);

/* The classes of daemons; the index of one, or CTL_CLASSES. */
enum { CTL_CLASSES = 7 };
extern const char *const ctl_classes[CTL_CLASSES];
bool ctl_acknowledged(const struct ctl_control *control, const char *daemon);

void ctl_control_report(const struct ctl_options *options, const struct ctl_control *control);

#endif
