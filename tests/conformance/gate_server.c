/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/conformance/gate_server.h"

#include <assert.h>
#include <hiredis/hiredis.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SENT_MAX = 512,
    SHA = 41,
    LOOK_HEAD = 17,
    LOOK_PER_ITEM = 6,
    CHECK_HEAD = 9,
    CHECK_PER_ITEM = 5
};

/* Stands before each script: TIME is what the test said last. */
static const char told_clock[] =
    "local redis = (function(real) return {call = function(name, ...) if name == 'TIME' then "
    "return real.call('HMGET', 'conformance:time', 's', 'us') end return real.call(name, ...) end} "
    "end)(redis) ";
static const char clock_script[] = "#!lua flags=allow-oom\n"
                                   "redis.call('HSET', KEYS[1], 's', ARGV[1], 'us', ARGV[2])";

enum sent_kind { SENT_SILENT, SENT_RUN, SENT_DUMP };
static struct {
    redisContext *redis;
    char sha[GATE_SCRIPT_COUNT][SHA], clock_sha[SHA];
    bool exhausted;
    size_t sent_count;
    struct {
        enum sent_kind kind;
        int what; /* script, or enum redis_type */
    } sent[SENT_MAX];
} server;

__attribute__((noreturn)) static void fatal(const char *what)
{
    (void)fprintf(stderr, "conformance: Redis: %s: %s\n", what,
                  server.redis != NULL ? server.redis->errstr : "no memory");
    exit(70);
}

static void load_script(const char *text, char out_sha[SHA])
{
    redisReply *reply = redisCommand(server.redis, "SCRIPT LOAD %b", text, strlen(text));
    if (reply == NULL || reply->type != REDIS_REPLY_STRING || reply->len != SHA - 1) {
        fatal(reply != NULL ? reply->str : "SCRIPT LOAD");
    }
    memcpy(out_sha, reply->str, SHA);
    freeReplyObject(reply);
}

static char *with_clock(int script, const struct conformance_mutant *mutant)
{
    const char *source = gate_script_source(script);
    char *text = NULL, *changed = NULL;
    const char *body = source[0] == '#' ? strchr(source, '\n') + 1 : source;
    if (asprintf(&text, "%.*s%s%s", (int)(body - source), source, told_clock, body) < 0) {
        fatal("no memory");
    }
    if (mutant == NULL || strcmp(mutant->where, gate_script_name(script)) != 0) {
        return text;
    }
    const char *at = strstr(text, mutant->from);
    if (at == NULL || asprintf(&changed, "%.*s%s%s", (int)(at - text), text, mutant->to,
                               at + strlen(mutant->from)) < 0) {
        fatal("the mutant does not fit");
    }
    free(text);
    return changed;
}

void gate_server_open(const char *path, const struct conformance_mutant *mutant_or_null)
{
    server.redis = redisConnectUnix(path);
    if (server.redis == NULL || server.redis->err != 0) {
        fatal(path);
    }
    server.exhausted = true; /* whatever it was: the first sequence says otherwise */
    load_script(clock_script, server.clock_sha);
    for (int script = 0; script < GATE_SCRIPT_COUNT; script++) {
        char *text = with_clock(script, mutant_or_null);
        load_script(text, server.sha[script]);
        free(text);
    }
}

static void send(enum sent_kind kind, int what, int count, const char **words,
                 const size_t *lengths)
{
    assert(server.sent_count < SENT_MAX);
    server.sent[server.sent_count].kind = kind;
    server.sent[server.sent_count++].what = what;
    if (redisAppendCommandArgv(server.redis, count, words, lengths) != REDIS_OK) {
        fatal("cannot send");
    }
}

static void send_text(enum sent_kind kind, int what, const char **words)
{
    size_t lengths[8];
    int count = 0;
    for (; words[count] != NULL; count++) {
        lengths[count] = strlen(words[count]);
    }
    send(kind, what, count, words, lengths);
}

void gate_server_begin(void)
{
    server.sent_count = 0;
    gate_server_memory(false);
    send_text(SENT_SILENT, 0, (const char *[]){"FLUSHDB", NULL});
}

void gate_server_clock(int64_t now_ms)
{
    char seconds[24], micros[24];
    (void)snprintf(seconds, sizeof seconds, "%" PRId64, now_ms / 1000);
    (void)snprintf(micros, sizeof micros, "%" PRId64, now_ms % 1000 * 1000);
    send_text(SENT_SILENT, 0,
              (const char *[]){"EVALSHA", server.clock_sha, "1", "conformance:time", seconds,
                               micros, NULL});
}

void gate_server_memory(bool exhausted)
{
    if (exhausted != server.exhausted) {
        server.exhausted = exhausted;
        send_text(SENT_SILENT, 0,
                  (const char *[]){"CONFIG", "SET", "maxmemory", exhausted ? "1" : "0", NULL});
    }
}

void gate_server_run(int script, const struct gate_words *call)
{
    const char *words[GATE_WORDS];
    size_t lengths[GATE_WORDS];
    char keys[12];
    const char *const head[] = {"EVALSHA", server.sha[script], keys};
    assert(call->count + 3 <= GATE_WORDS);
    (void)snprintf(keys, sizeof keys, "%d", call->key_count);
    for (int i = 0; i < call->count + 3; i++) {
        words[i] = i < 3 ? head[i] : call->words[i - 3].text;
        lengths[i] = i < 3 ? strlen(head[i]) : call->words[i - 3].length;
    }
    send(SENT_RUN, script, call->count + 3, words, lengths);
}

void gate_server_command(int count, const char *const *words, const size_t *lengths)
{
    send(SENT_SILENT, 0, count, (const char **)(uintptr_t)words, lengths);
}

void gate_server_dump(enum redis_type type, const char *key, size_t length)
{
    static const char *const commands[] = {[REDIS_NONE] = "EXISTS",
                                           [REDIS_HASH] = "HGETALL",
                                           [REDIS_SET] = "SMEMBERS",
                                           [REDIS_STREAM] = "XRANGE",
                                           [REDIS_STRING] = "GET"};
    const char *words[] = {commands[type], key, "-", "+"};
    const size_t lengths[] = {strlen(commands[type]), length, 1, 1};
    send(SENT_DUMP, (int)type, type == REDIS_STREAM ? 4 : 2, words, lengths);
}

/* ---- what it said ---- */

/* How many words of an answer come in an order; holds and pauses that follow come in none. */
static size_t ordered_words(int script, uint32_t item_count, size_t count)
{
    switch (script) {
    case RESERVE_SCRIPT_DUE:
        return 2;
    case RESERVE_SCRIPT_LOOK:
        return LOOK_HEAD + LOOK_PER_ITEM * (size_t)item_count;
    case GATE_SCRIPT_CHECK:
        return CHECK_HEAD + CHECK_PER_ITEM * (size_t)item_count;
    default:
        break;
    }
    return count;
}

void gate_say_answer(struct conformance_side *side, int script, uint32_t item_count,
                     const struct redis_word *words, size_t count)
{
    struct conformance_piece pieces[GATE_WORDS];
    const size_t ordered = ordered_words(script, item_count, count);
    const size_t step = script == RESERVE_SCRIPT_LOOK ? 1 : 2;
    size_t n = 0;
    for (size_t i = 0; i < count && i < ordered; i++) {
        conformance_say(side, i > 0 ? " " : "");
        conformance_bytes(side, words[i].text, words[i].length);
    }
    for (size_t i = ordered; i < count; i += step) {
        pieces[n] = (struct conformance_piece){words[i].text, words[i].length, NULL, 0};
        if (step == 2 && i + 1 < count) {
            pieces[n].more = words[i + 1].text;
            pieces[n].more_length = words[i + 1].length;
        }
        n++;
    }
    conformance_sorted(side, pieces, n);
}

static void say_run(struct conformance_side *side, int script, uint32_t item_count,
                    const redisReply *reply)
{
    struct redis_word words[GATE_WORDS];
    size_t count = 0;
    if (reply->type == REDIS_REPLY_ERROR) {
        conformance_say(side, strstr(reply->str, "OOM ") != NULL ? "out of memory" : "error");
        return;
    }
    if (reply->type == REDIS_REPLY_STRING) {
        words[count++] = (struct redis_word){reply->str, reply->len};
    }
    for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i < reply->elements; i++) {
        assert(count < GATE_WORDS && reply->element[i]->type == REDIS_REPLY_STRING);
        words[count++] = (struct redis_word){reply->element[i]->str, reply->element[i]->len};
    }
    gate_say_answer(side, script, item_count, words, count);
}

/* sequence kind reservation units stock: what the model keeps of an entry */
static void say_entry(struct conformance_side *side, const redisReply *entry)
{
    static const char *const wanted[] = {"kind", "reservation", "units", "stock_after"};
    const redisReply *fields = entry->element[1];
    conformance_say(side, " %s", entry->element[0]->str);
    for (size_t n = 0; n < sizeof wanted / sizeof wanted[0]; n++) {
        for (size_t i = 0; i + 1 < fields->elements; i += 2) {
            if (strcmp(fields->element[i]->str, wanted[n]) == 0) {
                conformance_say(side, " %s", fields->element[i + 1]->str);
            }
        }
    }
}

static void say_dump(struct conformance_side *side, enum redis_type type, const redisReply *reply)
{
    struct conformance_piece pieces[GATE_WORDS];
    const size_t step = type == REDIS_HASH ? 2 : 1;
    size_t n = 0;
    if (reply->type == REDIS_REPLY_ERROR) {
        conformance_say(side, "%s", reply->str);
    } else if (reply->type == REDIS_REPLY_STRING) {
        conformance_bytes(side, reply->str, reply->len);
    } else if (reply->type == REDIS_REPLY_INTEGER) {
        conformance_say(side, "%s", reply->integer == 0 ? "" : "there");
    } else if (type == REDIS_STREAM) {
        for (size_t i = 0; i < reply->elements; i++) {
            say_entry(side, reply->element[i]);
        }
    } else {
        for (size_t i = 0; i + step <= reply->elements; i += step) {
            pieces[n] =
                (struct conformance_piece){reply->element[i]->str, reply->element[i]->len, NULL, 0};
            if (step == 2) {
                pieces[n].more = reply->element[i + 1]->str;
                pieces[n].more_length = reply->element[i + 1]->len;
            }
            n++;
        }
        conformance_sorted(side, pieces, n);
    }
}

void gate_server_answers(struct conformance_side *side, uint32_t item_count)
{
    for (size_t i = 0; i < server.sent_count; i++) {
        void *answer = NULL;
        if (redisGetReply(server.redis, &answer) != REDIS_OK) {
            fatal("no answer");
        }
        const redisReply *reply = answer;
        if (server.sent[i].kind == SENT_SILENT && reply->type == REDIS_REPLY_ERROR) {
            fatal(reply->str);
        } else if (server.sent[i].kind != SENT_SILENT) {
            conformance_line(side);
        }
        if (server.sent[i].kind == SENT_RUN) {
            say_run(side, server.sent[i].what, item_count, reply);
        } else if (server.sent[i].kind == SENT_DUMP) {
            say_dump(side, (enum redis_type)server.sent[i].what, reply);
        }
        freeReplyObject(answer);
    }
    server.sent_count = 0;
}
