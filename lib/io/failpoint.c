/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/failpoint.h"

#include "lib/io/log.h"
#include "lib/pure/number.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum { RULES_BYTES = 4096, DELAY_MS = 250, DELAY_MS_MAX = 60000 };

static const char *const names[TG_FAILPOINT_COUNT] = {
#define TG_POINT(id, name, instant, error) [TG_FAILPOINT_##id] = name,
#include "catalog/failpoints.def"
#undef TG_POINT
};

static const char *const actions[] = {[TG_FAILPOINT_KILL] = "kill",
                                      [TG_FAILPOINT_STOP] = "stop",
                                      [TG_FAILPOINT_ERROR] = "error",
                                      [TG_FAILPOINT_DELAY] = "delay"};

static char read_text[RULES_BYTES];
static struct tg_failpoint_rule rules[TG_FAILPOINT_COUNT];
static uint64_t hits[TG_FAILPOINT_COUNT];

/* A number that ends where one of `ends` or the text does. */
static bool take_number(char **at, const char *ends, uint64_t max, uint64_t *out_value)
{
    size_t length = strcspn(*at, ends);
    if (tg_unsigned_parse(*at, length, max, out_value) != 0 || *out_value == 0) {
        return false;
    }
    *at += length;
    return true;
}

static enum tg_failpoint_action find_action(const char *text, size_t length)
{
    for (int i = TG_FAILPOINT_KILL; i <= TG_FAILPOINT_DELAY; i++) {
        if (strlen(actions[i]) == length && strncmp(actions[i], text, length) == 0) {
            return (enum tg_failpoint_action)i;
        }
    }
    return TG_FAILPOINT_NONE;
}

static int find_point(const char *text, size_t length)
{
    for (int i = 0; i < TG_FAILPOINT_COUNT; i++) {
        if (strlen(names[i]) == length && strncmp(names[i], text, length) == 0) {
            return i;
        }
    }
    return TG_ERR_MALFORMED;
}

/* ACTION[:MS][@FIRST[+COUNT]] */
static int parse_action(char *at, struct tg_failpoint_rule *out_rule)
{
    struct tg_failpoint_rule rule = {.delay_ms = DELAY_MS, .first = 1, .count = 1};
    size_t length = strcspn(at, ":@");
    uint64_t delay_ms = DELAY_MS;
    rule.action = find_action(at, length);
    at += length;
    bool good = rule.action != TG_FAILPOINT_NONE;
    if (good && *at == ':') {
        at++;
        good = rule.action == TG_FAILPOINT_DELAY && take_number(&at, "@", DELAY_MS_MAX, &delay_ms);
    }
    if (good && *at == '@') {
        at++;
        good = take_number(&at, "+", UINT32_MAX, &rule.first);
    }
    if (good && *at == '+') {
        at++;
        good = take_number(&at, "", UINT32_MAX, &rule.count);
    }
    if (!good || *at != '\0') {
        return TG_ERR_MALFORMED;
    }
    rule.delay_ms = (uint32_t)delay_ms;
    *out_rule = rule;
    return 0;
}

int tg_failpoint_parse(const char *text, struct tg_failpoint_rule out_rules[TG_FAILPOINT_COUNT])
{
    struct tg_failpoint_rule parsed[TG_FAILPOINT_COUNT] = {0};
    char copy[RULES_BYTES];
    if (strlen(text) >= sizeof copy) {
        return TG_ERR_MALFORMED;
    }
    memcpy(copy, text, strlen(text) + 1);
    char *rest = copy;
    for (char *word = strsep(&rest, ", \t\n"); word != NULL; word = strsep(&rest, ", \t\n")) {
        if (*word == '\0') {
            continue;
        }
        size_t length = strcspn(word, "=");
        int point = find_point(word, length);
        if (point < 0 || word[length] != '=' ||
            parse_action(word + length + 1, &parsed[point]) != 0) {
            return TG_ERR_MALFORMED;
        }
    }
    memcpy(out_rules, parsed, sizeof parsed);
    return 0;
}

/* A file that is not there has no rules. */
static void read_rules(char out_text[RULES_BYTES])
{
    const char *path = getenv("TIDEGATE_FAILPOINTS_FILE");
    const char *given = path == NULL ? getenv("TIDEGATE_FAILPOINTS") : NULL;
    memset(out_text, 0, RULES_BYTES);
    if (given != NULL) {
        memcpy(out_text, given, strnlen(given, RULES_BYTES - 1));
    }
    int file = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        ssize_t length = read(file, out_text, RULES_BYTES - 1);
        out_text[length > 0 ? length : 0] = '\0';
        close(file);
    }
}

static void renew_rules(void)
{
    char text[RULES_BYTES];
    read_rules(text);
    if (strcmp(text, read_text) == 0) {
        return;
    }
    if (tg_failpoint_parse(text, rules) != 0) {
        tg_log(TG_LOG_ERROR, "failpoint.rules_refused", TG_TEXT_FIELD("rules", text));
        _exit(EX_CONFIG);
    }
    memcpy(read_text, text, sizeof read_text);
    memset(hits, 0, sizeof hits);
}

int tg_failpoint_hit(enum tg_failpoint point)
{
    renew_rules();
    const struct tg_failpoint_rule *rule = &rules[point];
    uint64_t hit = ++hits[point];
    if (rule->action == TG_FAILPOINT_NONE || hit < rule->first ||
        hit - rule->first >= rule->count) {
        return 0;
    }
    tg_log(TG_LOG_WARN, "failpoint.hit", TG_TEXT_FIELD("point", names[point]),
           TG_TEXT_FIELD("action", actions[rule->action]), TG_NUMBER_FIELD("hit", hit));
    switch (rule->action) {
    case TG_FAILPOINT_NONE:
        break;
    case TG_FAILPOINT_KILL:
        kill(getpid(), SIGKILL);
        break;
    case TG_FAILPOINT_STOP:
        kill(getpid(), SIGSTOP);
        break;
    case TG_FAILPOINT_ERROR:
        return TG_ERR_DISCONNECTED;
    case TG_FAILPOINT_DELAY:
        poll(NULL, 0, (int)rule->delay_ms);
        break;
    }
    return 0;
}
