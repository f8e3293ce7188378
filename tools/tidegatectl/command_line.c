/* SPDX-License-Identifier: Apache-2.0
 * Reads the command line and starts one command. Commands are rows of one table. */
#include "tools/tidegatectl/ctl.h"

#include <argp.h>
#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    KEY_CAUSE = 256,
    KEY_LIFE,
    KEY_WAIT,
    KEY_FOR,
    KEY_LAST,
    KEY_DRY_RUN,
    KEY_AUTO,
    KEY_LIMIT,
    KEY_VALID,
    KEY_WITHDRAW,
    KEY_ENTRANT,
    KEY_ORDER,
    KEY_IN_FLIGHT
};

#define OPTION_FILE                                                                                \
    {                                                                                              \
        "file", 'f', "FILE", 0,                                                                    \
            "The sale file (YAML; docs/sale.schema.json); - reads standard input", 0               \
    }
#define OPTION_WAIT                                                                                \
    {                                                                                              \
        "wait", KEY_WAIT, "TIME", 0,                                                               \
            "Keep asking for this long while the gate is not armed or not proved", 0               \
    }

#define OPTION_DRY_RUN                                                                             \
    {                                                                                              \
        "dry-run", KEY_DRY_RUN, NULL, 0, "Say how it would be judged, change nothing", 0           \
    }

static const struct argp_option no_options[] = {{0}};
static const struct argp_option file_options[] = {OPTION_FILE, {0}};
static const struct argp_option apply_options[] = {
    OPTION_FILE, {"dry-run", KEY_DRY_RUN, NULL, 0, "The same as sale plan", 0}, {0}};
static const struct argp_option wait_options[] = {OPTION_WAIT, OPTION_DRY_RUN, {0}};
static const struct argp_option close_options[] = {OPTION_DRY_RUN, {0}};
static const struct argp_option extend_options[] = {
    {"in-flight", KEY_IN_FLIGHT, "+TIME", 0,
     "How much later the deadline of every pending hold is, +1s to +1h", 0},
    OPTION_DRY_RUN,
    {0}};
static const struct argp_option arm_options[] = {
    {"wait", KEY_WAIT, "TIME", 0, "How long to wait for the gate to be armed and proved (30s)", 0},
    {0}};
static const struct argp_option pause_options[] = {
    {"cause", KEY_CAUSE, "TEXT", 0, "Why, for people", 0},
    {"wait", KEY_WAIT, "TIME", 0,
     "Repeat it for this long until the ledger shows it (20s, at most 25s)", 0},
    OPTION_DRY_RUN,
    {0}};
static const struct argp_option rebuild_options[] = {
    {"cause", KEY_CAUSE, "TEXT", 0, "Why, for people", 0},
    {"dry-run", KEY_DRY_RUN, NULL, 0, "Show the plan, change nothing", 0},
    {"wait", KEY_WAIT, "TIME", 0, "Follow it for this long until the gate is armed (120s)", 0},
    {0}};
static const struct argp_option beacon_options[] = {
    {"dry-run", KEY_DRY_RUN, NULL, 0, "Say what would happen, change nothing", 0}, {0}};
static const struct argp_option rotate_options[] = {
    {"dry-run", KEY_DRY_RUN, NULL, 0, "Say whether it can be done, change nothing", 0}, {0}};
static const struct argp_option verify_options[] = {
    {"entrant", KEY_ENTRANT, "NAME", 0, "Tell this entrant's rank", 0},
    {"order", KEY_ORDER, "FILE", 0, "Write the whole order, RANK ENTRANT a line", 0},
    {0}};
static const struct argp_option watch_options[] = {
    {"for", KEY_FOR, "TIME", 0, "End after this long", 0}, {0}};
static const struct argp_option audit_options[] = {
    {"last", KEY_LAST, "NUMBER", 0, "Begin with the newest so many (20; 0: with the first)", 0},
    {"for", KEY_FOR, "TIME", 0, "Go on for this long with what comes", 0},
    {0}};
static const struct argp_option pace_options[] = {
    {"auto", KEY_AUTO, NULL, 0, "Give the pace back to the law", 0},
    {"dry-run", KEY_DRY_RUN, NULL, 0, "Say how RATE or --auto would be judged, change nothing", 0},
    {"for", KEY_FOR, "TIME", 0, "Go on for this long, a line a second", 0},
    {0}};
static const struct argp_option signal_options[] = {
    {"limit", KEY_LIMIT, "NUMBER", 0,
     "Above it nobody is let in (database_cpu and payment_errors have one)", 0},
    {"valid", KEY_VALID, "TIME", 0, "Older than this it is unknown (30s)", 0},
    {"withdraw", KEY_WITHDRAW, NULL, 0, "Forget the signal", 0},
    {0}};
static const struct argp_option warm_options[] = {
    {"wait", KEY_WAIT, "TIME", 0, "Wait this long until everything is there (30s)", 0}, {0}};
static const struct argp_option life_options[] = {
    {"life", KEY_LIFE, "TIME", 0, "How long it is valid (1h)", 0}, {0}};
static const struct argp_option logs_options[] = {
    {"logs", 'l', "FOLDER", 0, "Folder of the daemons' JSON logs (TIDEGATE_LOGS)", 0}, {0}};

static ctl_run ctl_completion;

static const struct command {
    const char *name; /* words as they are typed */
    const char *positional;
    size_t positional_min, positional_max;
    const struct argp_option *options;
    ctl_run *run;
    const char *doc;
} commands[] = {
    {"sale apply", "", 0, 0, apply_options, ctl_apply,
     "Declare a sale, or change what may still change"},
    {"sale plan", "", 0, 0, file_options, ctl_plan, "Show what apply would change, change nothing"},
    {"sale show", "[SALE]", 0, 1, no_options, ctl_show,
     "Show a sale's definition and state, or list all sales"},
    {"sale open", "SALE", 1, 1, wait_options, ctl_open, "Open a scheduled sale now"},
    {"sale pause", "SALE", 1, 1, pause_options, ctl_pause,
     "Stop holds at once; repeated until the ledger shows it"},
    {"sale resume", "SALE", 1, 1, wait_options, ctl_resume, "Lift every pause that is active now"},
    {"sale rebuild", "SALE", 1, 1, rebuild_options, ctl_rebuild,
     "Show the plan, pause, load a new gate (next epoch), follow until armed"},
    {"sale extend", "SALE", 1, 1, extend_options, ctl_extend,
     "Give every hold in flight more time to pay: --in-flight +180s"},
    {"sale close", "SALE", 1, 1, close_options, ctl_close, "End a sale for good"},
    {"doctor", "[SALE]", 0, 1, no_options, ctl_doctor,
     "Check the configuration the guarantees rest on; change nothing"},
    {"arm", "SALE", 1, 1, arm_options, ctl_arm,
     "The same, then wait until the sale's gate is armed and proved"},
    {"incident report", "SALE", 1, 1, no_options, ctl_incident_report,
     "Why it is paused, what happened, who is affected and what to do"},
    {"audit tail", "SALE [EPOCH]", 1, 2, audit_options, ctl_audit_tail,
     "The log of every change of stock, with its chain of hashes"},
    {"warm", "SALE", 1, 1, warm_options, ctl_warm,
     "Wait until what a sale needs to open is in place; name what is not"},
    {"pace", "SALE [RATE]", 1, 2, pace_options, ctl_pace,
     "How fast people are let in and what sets it; RATE overrides it"},
    {"signal", "SALE NAME [VALUE]", 2, 3, signal_options, ctl_signal,
     "Tell a measurement from outside; above its limit nobody is let in"},
    {"draw new", "SALE", 1, 1, no_options, ctl_draw_new,
     "Make the secret of a draw, print the commitment for the sale file"},
    {"draw beacon", "SALE VALUE", 2, 2, beacon_options, ctl_draw_beacon,
     "Give the value of the promised beacon, after the opening"},
    {"draw verify", "FOLDER|URL", 1, 1, verify_options, ctl_draw_verify,
     "Draw again from draw.json and roster, or from a sale's address"},
    {"watch", "SALE", 1, 1, watch_options, ctl_watch, "Live view of stock, queue, pace and proof"},
    {"trace", "RESERVATION", 1, 1, logs_options, ctl_trace,
     "The way of a reservation through all daemons"},
    {"keys new", "FOLDER", 1, 1, no_options, ctl_keys_new,
     "Make every key of a deployment in a new folder"},
    {"keys nats", "FOLDER", 1, 1, no_options, ctl_keys_nats,
     "Write NATS's accounts: every identity, its key and its rights"},
    {"keys prepare", "NAME", 1, 1, rotate_options, ctl_keys_prepare,
     "Rotate a key, step 1: make the next one; docs/operations/keys.md"},
    {"keys promote", "NAME", 1, 1, rotate_options, ctl_keys_promote,
     "Step 2: the next one becomes the present one"},
    {"keys retire", "NAME", 1, 1, rotate_options, ctl_keys_retire,
     "Step 3: the previous one is forgotten"},
    {"token buyer", "ID", 1, 1, life_options, ctl_token_buyer,
     "Issue a buyer's token, for demos and tests"},
    {"completion", "bash|zsh|fish", 1, 1, no_options, ctl_completion,
     "Print what a shell needs to complete these commands"},
};
enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static bool wants_file(const struct command *command)
{
    return command->options == file_options || command->options == apply_options;
}

static const char exit_codes[] =
    "Exit codes: 0 done, 1 refused, 2 usage, 69 nobody answers (the outcome is unknown), 78 "
    "settings.\n"
    "Environment: TIDEGATE_NATS_URL, TIDEGATE_KEYS, TIDEGATE_LOGS; where unset, run/env is read.";

/* ---- completion ---- */

/* The shells ask the program itself: what may follow these words. */
static const struct {
    const char *shell, *script;
} shells[] = {
    {"bash", "_tidegatectl() {\n"
             "    COMPREPLY=($(compgen -W \"$(tidegatectl __complete "
             "\"${COMP_WORDS[@]:1:COMP_CWORD-1}\")\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n"
             "}\n"
             "complete -o default -F _tidegatectl tidegatectl\n"},
    {"zsh", "#compdef tidegatectl\n"
            "_tidegatectl() {\n"
            "    compadd -- $(tidegatectl __complete ${words[@]:1:$((CURRENT - 2))}) || _files\n"
            "}\n"
            "compdef _tidegatectl tidegatectl\n"},
    {"fish", "complete -c tidegatectl -a '(tidegatectl __complete (commandline -opc)[2..])'\n"},
};

static enum ctl_exit ctl_completion(const struct ctl_options *options,
                                    const struct ctl_arguments *arguments)
{
    for (size_t i = 0; i < sizeof(shells) / sizeof(shells[0]); i++) {
        if (strcmp(shells[i].shell, arguments->positional[0]) == 0) {
            (void)fputs(shells[i].script, stdout);
            return CTL_DONE;
        }
    }
    (void)fprintf(stderr, "tidegatectl: expected bash, zsh or fish\n");
    return CTL_USAGE;
}

/* Prints a line for each word that may follow `typed`, which is "" or ends with a blank. */
static void complete(const char *typed)
{
    const size_t length = strlen(typed);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        const struct command *command = &commands[i];
        const size_t whole = strlen(command->name);
        if (strncmp(command->name, typed, length) == 0) {
            const size_t word = strcspn(command->name + length, " ");
            const bool again =
                i > 0 && strncmp(commands[i - 1].name, command->name, length + word + 1) == 0;
            if (!again) {
                (void)printf("%.*s\n", (int)word, command->name + length);
            }
        } else if (strncmp(command->name, typed, whole) == 0 && typed[whole] == ' ') {
            for (const struct argp_option *option = command->options; option->name; option++) {
                (void)printf("--%s\n", option->name);
            }
            (void)printf("--output\n--help\n");
        }
    }
}

static int complete_words(int count, char **words)
{
    char typed[256] = "";
    size_t length = 0;
    for (int i = 0; i < count && length < sizeof(typed); i++) {
        length += (size_t)snprintf(typed + length, sizeof(typed) - length, "%s ", words[i]);
    }
    if (length < sizeof(typed)) {
        complete(typed);
    }
    return CTL_DONE;
}

/* ---- options of every command ---- */

static error_t parse_global(int key, char *argument, struct argp_state *state)
{
    struct ctl_options *options = state->input;
    if (key != 'o') {
        return ARGP_ERR_UNKNOWN;
    }
    static const char *const names[] = {"table", "json", "yaml"}; /* as enum ctl_format */
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(argument, names[i]) == 0) {
            options->format = (enum ctl_format)i;
            return 0;
        }
    }
    argp_error(state, "-o: expected table, json or yaml, got %s", argument);
    return EINVAL;
}

static const struct argp_option global_options[] = {
    {"output", 'o', "FORMAT", 0, "table (default), json or yaml", 1}, {0}};
static const struct argp global_argp = {global_options, parse_global, NULL, NULL, NULL, NULL, NULL};
static const struct argp_child global_child[] = {{&global_argp, 0, NULL, 0}, {0}};

/* ---- one command ---- */

struct parsing {
    struct ctl_options *options;
    struct ctl_arguments *arguments;
    const struct command *command;
};

static bool take_option(struct parsing *parsing, int key, const char *argument)
{
    struct ctl_arguments *arguments = parsing->arguments;
    switch (key) {
    case 'f':
        arguments->file = argument;
        return true;
    case 'l':
        parsing->options->logs = argument;
        return true;
    case KEY_CAUSE:
        arguments->cause = argument;
        return true;
    case KEY_LIFE:
        arguments->life = argument;
        return true;
    case KEY_WAIT:
        arguments->wait = argument;
        return true;
    case KEY_FOR:
        arguments->span = argument;
        return true;
    case KEY_ENTRANT:
        arguments->entrant = argument;
        return true;
    case KEY_ORDER:
        arguments->order = argument;
        return true;
    case KEY_LAST:
        arguments->last = argument;
        return true;
    case KEY_IN_FLIGHT:
        arguments->in_flight = argument;
        return true;
    case KEY_DRY_RUN:
        arguments->dry_run = true;
        return true;
    case KEY_AUTO:
        arguments->automatic = true;
        return true;
    case KEY_LIMIT:
        arguments->limit = argument;
        return true;
    case KEY_VALID:
        arguments->valid = argument;
        return true;
    case KEY_WITHDRAW:
        arguments->withdraw = true;
        return true;
    default:
        return false;
    }
}

static error_t parse_command(int key, char *argument, struct argp_state *state)
{
    struct parsing *parsing = state->input;
    struct ctl_arguments *arguments = parsing->arguments;
    if (key == ARGP_KEY_INIT) {
        state->child_inputs[0] = parsing->options;
        return 0;
    }
    if (key == ARGP_KEY_ARG) {
        if (arguments->count == parsing->command->positional_max) {
            argp_error(state, "%s is one argument too many", argument);
        }
        arguments->positional[arguments->count++] = argument;
        return 0;
    }
    if (key == ARGP_KEY_END) {
        if (arguments->count < parsing->command->positional_min) {
            argp_error(state, "expected %s", parsing->command->positional);
        }
        if (wants_file(parsing->command) && arguments->file == NULL) {
            argp_error(state, "expected -f FILE");
        }
        return 0;
    }
    return take_option(parsing, key, argument) ? 0 : ARGP_ERR_UNKNOWN;
}

static enum ctl_exit run_command(const struct command *command, struct ctl_options *options,
                                 int argc, char **argv)
{
    char name[64];
    char doc[512];
    struct ctl_arguments arguments = {0};
    struct parsing parsing = {options, &arguments, command};
    (void)snprintf(name, sizeof(name), "tidegatectl %s", command->name);
    (void)snprintf(doc, sizeof(doc), "%s.\v%s", command->doc, exit_codes);
    const struct argp argp = {
        command->options, parse_command, command->positional, doc, global_child, NULL, NULL};
    argv[0] = name;
    (void)argp_parse(&argp, argc, argv, 0, NULL, &parsing);
    return command->run(options, &arguments);
}

/* ---- which command ---- */

/* How many words of argv name the command; 0: not this one. */
static int words_of(const struct command *command, int argc, char **argv)
{
    char typed[64];
    bool two = strchr(command->name, ' ') != NULL;
    if (argc < 1 + two) {
        return 0;
    }
    int length = two ? snprintf(typed, sizeof(typed), "%s %s", argv[0], argv[1])
                     : snprintf(typed, sizeof(typed), "%s", argv[0]);
    return length < (int)sizeof(typed) && strcmp(typed, command->name) == 0 ? 1 + two : 0;
}

static char *list_commands(int key, const char *text, void *input)
{
    if (key != ARGP_KEY_HELP_POST_DOC) {
        return (char *)text;
    }
    char *list = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&list, &length);
    if (out == NULL) {
        return (char *)text;
    }
    (void)fputs("Commands (each has --help):\n", out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        char usage[64];
        (void)snprintf(usage, sizeof(usage), "%s %s%s", commands[i].name,
                       wants_file(&commands[i]) ? "-f FILE" : "", commands[i].positional);
        (void)fprintf(out, "  %-26s %s\n", usage, commands[i].doc);
    }
    (void)fprintf(out, "\n%s", text);
    return fclose(out) == 0 ? list : (char *)text;
}

/* Stops at the first word that is no option. */
struct first_word {
    struct ctl_options *options;
    int index;
};

static error_t parse_top(int key, char *argument, struct argp_state *state)
{
    struct first_word *first = state->input;
    switch (key) {
    case ARGP_KEY_INIT:
        state->child_inputs[0] = first->options;
        return 0;
    case ARGP_KEY_ARG:
        first->index = state->next - 1;
        state->next = state->argc;
        return 0;
    case ARGP_KEY_END:
        if (first->index == 0) {
            argp_error(state, "expected a command");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static void read_environment(struct ctl_options *options)
{
    ctl_read_run_env();
    const char *url = getenv("TIDEGATE_NATS_URL");
    const char *no_color = getenv("NO_COLOR");
    options->nats_url = url != NULL && url[0] != '\0' ? url : "nats://127.0.0.1:4222";
    options->nats_keys = getenv("TIDEGATE_NATS_KEYS");
    options->nats_ca = getenv("TIDEGATE_NATS_CA");
    options->nats_server_name = getenv("TIDEGATE_NATS_SERVER_NAME");
    options->keys = getenv("TIDEGATE_KEYS");
    options->logs = getenv("TIDEGATE_LOGS");
    options->color = isatty(STDOUT_FILENO) && (no_color == NULL || no_color[0] == '\0');
}

int ctl_main(int argc, char **argv)
{
    struct ctl_options options = {0};
    struct first_word first = {.options = &options};
    char doc[512];
    (void)snprintf(doc, sizeof(doc), "Declares, watches and steers the sales of Tidegate.\v%s",
                   exit_codes);
    (void)setenv("ARGP_HELP_FMT", "rmargin=100", 0);
    const struct argp argp = {NULL,          parse_top, "COMMAND [ARGUMENT...]", doc, global_child,
                              list_commands, NULL};
    argp_program_version = "tidegatectl " TG_VERSION;
    argp_err_exit_status = CTL_USAGE;
    if (argc > 1 && strcmp(argv[1], "__complete") == 0) {
        return complete_words(argc - 2, argv + 2);
    }
    if (sodium_init() < 0) {
        return CTL_SETTINGS;
    }
    read_environment(&options);
    (void)argp_parse(&argp, argc, argv, ARGP_IN_ORDER, NULL, &first);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        int words = words_of(&commands[i], argc - first.index, argv + first.index);
        if (words > 0) {
            int skipped = first.index + words - 1; /* the last word's place becomes argv[0] */
            return run_command(&commands[i], &options, argc - skipped, argv + skipped);
        }
    }
    (void)fprintf(stderr, "tidegatectl: no command %s%s%s; tidegatectl --help lists them\n",
                  argv[first.index], first.index + 1 < argc ? " " : "",
                  first.index + 1 < argc ? argv[first.index + 1] : "");
    return CTL_USAGE;
}
