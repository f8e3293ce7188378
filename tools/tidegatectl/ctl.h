/* SPDX-License-Identifier: Apache-2.0
 * What the commands of tidegatectl share: exit codes, options, output. One process runs one command
 * and ends. */
#ifndef TG_CTL_H
#define TG_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum ctl_exit {
    CTL_DONE = 0,
    CTL_REFUSED = 1,      /* the ledger, or what was asked for, says no */
    CTL_USAGE = 2,        /* the command line or the sale file */
    CTL_UNREACHABLE = 69, /* nobody answers: what happened is unknown */
    CTL_SETTINGS = 78     /* a variable, a key file or a folder */
};

enum ctl_format { CTL_TABLE, CTL_JSON, CTL_YAML };

/* The same for every command; from options and the environment. Texts live as long as the process.
 */
struct ctl_options {
    enum ctl_format format;
    bool color; /* standard output is a terminal and NO_COLOR is not set */
    const char *nats_url;
    const char *nats_keys, *nats_ca, *nats_server_name; /* NULL: not given */
    const char *keys;                                   /* NULL: not given */
    const char *logs;                                   /* NULL: not given */
};

enum { CTL_POSITIONAL_MAX = 3 };

/* What the command line says; absent: NULL or false. */
struct ctl_arguments {
    const char *positional[CTL_POSITIONAL_MAX];
    size_t count;
    const char *file;      /* -f */
    const char *cause;     /* --cause */
    const char *life;      /* --life */
    const char *wait;      /* --wait */
    const char *span;      /* --for */
    const char *limit;     /* --limit */
    const char *valid;     /* --valid */
    const char *entrant;   /* --entrant */
    const char *order;     /* --order */
    const char *in_flight; /* --in-flight */
    const char *last;      /* --last */
    bool dry_run, automatic, withdraw;
};

typedef enum ctl_exit ctl_run(const struct ctl_options *options,
                              const struct ctl_arguments *arguments);

ctl_run ctl_apply, ctl_plan, ctl_show, ctl_open, ctl_pause, ctl_resume, ctl_rebuild, ctl_close,
    ctl_extend, ctl_pace, ctl_pace_override, ctl_signal;
ctl_run ctl_doctor, ctl_arm, ctl_warm;
ctl_run ctl_incident_report, ctl_audit_tail;
ctl_run ctl_draw_new, ctl_draw_beacon, ctl_draw_verify;
ctl_run ctl_keys_new, ctl_keys_nats, ctl_keys_prepare, ctl_keys_promote, ctl_keys_retire;
ctl_run ctl_watch, ctl_token_buyer, ctl_trace;

/* The whole program. Returns the exit code. */
int ctl_main(int argc, char **argv);

/* Sets what the environment does not have from run/env below the present folder, if it is there. */
void ctl_read_run_env(void);

enum ctl_colour { CTL_PLAIN, CTL_BOLD, CTL_GREEN, CTL_YELLOW, CTL_RED, CTL_DIM };
/* The escape sequence of a colour, or "" where none is wanted. */
const char *ctl_colour(const struct ctl_options *options, enum ctl_colour colour);

/* Prints one document, as JSON in a line or as YAML behind "---"; takes it over. */
void ctl_print_document(enum ctl_format format, json_t *take_document);

/* Text for people: anything but printable UTF-8 is shown as "?". out_text is always terminated. */
void ctl_printable(const char *text, size_t length, char *out_text, size_t capacity);

/* "250ms", "5s", "10m" within bounds; else prints what was expected. */
bool ctl_duration(const char *option, const char *text, int64_t min_ms, int64_t max_ms,
                  int64_t *out_ms);

/* The sale's name of the command line; else prints what was expected. */
bool ctl_sale_name(const char *text);

/* A cause an operator gives (NULL: none); else prints what was expected. */
bool ctl_cause_good(const char *cause);

/* The folder of keys; else prints how to name it. */
bool ctl_needs_keys(const struct ctl_options *options);

#endif
