/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/options.h"

#include "lib/io/config.h"
#include "lib/io/keys.h"
#include "lib/pure/clock.h"
#include "lib/pure/number.h"
#include "lib/pure/text.h"

#include <getopt.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

static const char help[] =
    "rehearse: plays many buyers against a running stack, then judges what they were told.\n\n"
    "  --sale NAME             the sale; declared and applied before (required)\n"
    "  --buyers N              virtual buyers, 1..2000000 (20000)\n"
    "  --units N               refuse to run when the sale has another number of units\n"
    "  --arrive-s S            80 % arrive within S seconds, the rest in twice that (10)\n"
    "                          two cores, stack and all: 10 for 160000, 125 for 2000000 buyers\n"
    "  --abandon-percent P     of those who hold a unit, so many never pay (10)\n"
    "  --duplicate-percent P   so many ask twice with one key: at once, after a lost answer, or "
    "again (10)\n"
    "  --pay-delay D           how long paying takes, as 2s (2s)\n"
    "  --connections N         to the edges, shared by all buyers, 1..19700 (4096)\n"
    "  --caches N              shared caches in front of the board, one request a second each (4)\n"
    "  --wait-until-settled S  then wait at most S seconds until every hold is confirmed or "
    "returned (300; 0: don't)\n"
    "  --limit-s S             give up after S seconds (1800)\n"
    "  --faults                something is broken on purpose: 5xx do not fail the run\n"
    "  --corrupted             a store is tampered with or loses data: an alarm must come\n"
    "  --out FILE              the JSON report (report.json)\n\n"
    "Environment, as in the stack's `run/env`: TIDEGATE_EDGE_URL (several separated by commas),\n"
    "TIDEGATE_LEDGER_URL, TIDEGATE_REDIS_URL, TIDEGATE_KEYS, TIDEGATE_RUN (for CPU time; "
    "optional).\n"
    "Exits 0 when the verdict is pass, 1 when it is fail, 75 when it is void: the load generator "
    "did not keep up.\n";

enum option_id {
    SALE = 1,
    BUYERS,
    UNITS,
    ARRIVE,
    ABANDON,
    DUPLICATE,
    PAY,
    CONNECTIONS,
    CACHES,
    SETTLE,
    LIMIT,
    FAULTS,
    CORRUPTED,
    OUT,
    HELP
};

static const struct option long_options[] = {
    {"sale", required_argument, NULL, SALE},
    {"buyers", required_argument, NULL, BUYERS},
    {"units", required_argument, NULL, UNITS},
    {"arrive-s", required_argument, NULL, ARRIVE},
    {"abandon-percent", required_argument, NULL, ABANDON},
    {"duplicate-percent", required_argument, NULL, DUPLICATE},
    {"pay-delay", required_argument, NULL, PAY},
    {"connections", required_argument, NULL, CONNECTIONS},
    {"caches", required_argument, NULL, CACHES},
    {"wait-until-settled", required_argument, NULL, SETTLE},
    {"limit-s", required_argument, NULL, LIMIT},
    {"faults", no_argument, NULL, FAULTS},
    {"corrupted", no_argument, NULL, CORRUPTED},
    {"out", required_argument, NULL, OUT},
    {"help", no_argument, NULL, HELP},
    {NULL, 0, NULL, 0},
};

/* Whole numbers by option. */
static const struct bound {
    enum option_id id;
    size_t offset;
    int64_t min, max;
} bounds[] = {
    {BUYERS, offsetof(struct rehearse_options, buyers), 1, 2000000},
    {UNITS, offsetof(struct rehearse_options, units), 1, 32000000},
    {ARRIVE, offsetof(struct rehearse_options, arrive_s), 1, 3600},
    {ABANDON, offsetof(struct rehearse_options, abandon_percent), 0, 100},
    {DUPLICATE, offsetof(struct rehearse_options, duplicate_percent), 0, 100},
    {CONNECTIONS, offsetof(struct rehearse_options, connections), 1,
     REHEARSE_CONNECTIONS_MAX - 200},
    {CACHES, offsetof(struct rehearse_options, caches), 1, 64},
    {SETTLE, offsetof(struct rehearse_options, settle_s), 0, 86400},
    {LIMIT, offsetof(struct rehearse_options, limit_s), 1, 86400},
};

static int refuse(const char *what, const char *value, const char *expected)
{
    fprintf(stderr, "rehearse: %s \"%s\" is refused; expected %s\n", what, value, expected);
    return EX_USAGE;
}

static int take_number(enum option_id id, const char *name, const char *text,
                       struct rehearse_options *options)
{
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        if (bounds[i].id != id) {
            continue;
        }
        int64_t number;
        if (tg_integer_parse(text, strlen(text), bounds[i].min, bounds[i].max, &number) != 0) {
            char expected[64];
            snprintf(expected, sizeof(expected), "a whole number from %lld to %lld",
                     (long long)bounds[i].min, (long long)bounds[i].max);
            return refuse(name, text, expected);
        }
        uint32_t value = (uint32_t)number;
        memcpy((char *)options + bounds[i].offset, &value, sizeof(value));
        return 0;
    }
    return EX_USAGE;
}

static int take_option(int id, const char *name, const char *text, struct rehearse_options *options)
{
    switch (id) {
    case SALE:
        options->sale = text;
        return tg_sale_name_valid(text, strlen(text))
                   ? 0
                   : refuse(name, text, "1 to 64 of A-Z a-z 0-9 _ -");
    case OUT:
        options->out = text;
        return 0;
    case FAULTS:
        options->faults = true;
        return 0;
    case CORRUPTED:
        options->corrupted = true;
        return 0;
    case PAY:
        if (tg_duration_parse(text, &options->pay_ms) != 0 || options->pay_ms > 3600000) {
            return refuse(name, text, "a duration up to 1h, as 250ms or 2s");
        }
        return 0;
    case HELP:
        fputs(help, stdout);
        return REHEARSE_HELPED;
    case '?':
        fputs("rehearse: see --help\n", stderr);
        return EX_USAGE;
    default:
        return take_number((enum option_id)id, name, text, options);
    }
}

static int take_edge(char *url, struct rehearse_options *options)
{
    static const char scheme[] = "http://";
    if (strncmp(url, scheme, strlen(scheme)) != 0) {
        return refuse("TIDEGATE_EDGE_URL", url, "http://HOST:PORT");
    }
    char *host = url + strlen(scheme);
    host[strcspn(host, "/")] = '\0';
    if (options->edge_count == 0) {
        snprintf(options->host, sizeof(options->host), "%s", host);
    }
    char *port = strrchr(host, ':');
    bool bracketed = host[0] == '[' && strchr(host, ']') != NULL;
    if (port == NULL || options->edge_count == REHEARSE_EDGES_MAX) {
        return refuse("TIDEGATE_EDGE_URL", host, "at most 16 of http://HOST:PORT");
    }
    *port++ = '\0';
    if (bracketed) {
        *strchr(++host, ']') = '\0';
    }
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    if (getaddrinfo(host, port, &hints, &found) != 0) {
        return refuse("TIDEGATE_EDGE_URL", host, "a host that resolves");
    }
    memcpy(&options->edges[options->edge_count++], found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return 0;
}

static int take_edges(const char *urls, struct rehearse_options *options)
{
    char copy[2048];
    if (strlen(urls) >= sizeof(copy)) {
        return refuse("TIDEGATE_EDGE_URL", urls, "at most 2047 bytes");
    }
    memcpy(copy, urls, strlen(urls) + 1);
    char *rest = copy;
    char *url;
    int error = 0;
    while (error == 0 && (url = strsep(&rest, ",")) != NULL) {
        error = take_edge(url, options);
    }
    return error;
}

/* The stack's addresses and keys, read as every daemon reads its settings. */
struct environment {
    const char *edge_url, *ledger_url, *redis_url, *keys, *run;
};
static const struct tg_setting rows[] = {
    {.name = "edge_url",
     .kind = TG_SETTING_TEXT,
     .offset = offsetof(struct environment, edge_url),
     .default_text = "http://127.0.0.1:8080"},
    {.name = "ledger_url",
     .kind = TG_SETTING_TEXT,
     .offset = offsetof(struct environment, ledger_url)},
    {.name = "redis_url",
     .kind = TG_SETTING_TEXT,
     .offset = offsetof(struct environment, redis_url)},
    {.name = "keys", .kind = TG_SETTING_FILE, .offset = offsetof(struct environment, keys)},
    {.name = "run",
     .kind = TG_SETTING_FILE,
     .offset = offsetof(struct environment, run),
     .default_text = ""},
};

static int read_environment(struct rehearse_options *options)
{
    static struct environment environment; /* its strings live as long as the process */
    if (tg_config_load("rehearse", rows, sizeof(rows) / sizeof(rows[0]), &environment, stderr) !=
        0) {
        fprintf(stderr, "rehearse: run/env of the stack has them: "
                        "while read -r line; do export \"$line\"; done < run/env\n");
        return EX_CONFIG;
    }
    options->ledger_url = environment.ledger_url;
    options->redis_url = environment.redis_url;
    options->run = environment.run;
    if (take_edges(environment.edge_url, options) != 0 ||
        tg_keys_secret(environment.keys, "buyer", options->buyer_secret) != 0 ||
        tg_keys_text(environment.keys, "service", options->service_credential,
                     sizeof(options->service_credential)) != 0) {
        return EX_CONFIG;
    }
    return 0;
}

int rehearse_read_options(int argc, char **argv, struct rehearse_options *out_options)
{
    struct rehearse_options options = {.out = "report.json",
                                       .buyers = 20000,
                                       .arrive_s = 10,
                                       .abandon_percent = 10,
                                       .duplicate_percent = 10,
                                       .pay_ms = 2000,
                                       .connections = 4096,
                                       .caches = 4,
                                       .settle_s = 300,
                                       .limit_s = 1800};
    int error = 0;
    int place = 0;
    int id;
    while (error == 0 && (id = getopt_long(argc, argv, "", long_options, &place)) != -1) {
        error = take_option(id, id == '?' ? "" : long_options[place].name, optarg, &options);
    }
    if (error == 0 && optind < argc) {
        error = refuse("argument", argv[optind], "options only; see --help");
    }
    if (error == 0 && options.sale == NULL) {
        error = refuse("--sale", "", "the name of a sale");
    }
    if (error == 0) {
        error = read_environment(&options);
    }
    if (error == 0) {
        *out_options = options;
    }
    return error;
}
