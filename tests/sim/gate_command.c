/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/gate_command.h"

#include "lib/pure/number.h"

#include <assert.h>
#include <inttypes.h>
#include <lauxlib.h>
#include <stdio.h>
#include <string.h>

enum { WORDS_MAX = 128, CACHE = 4096 };

struct gate_run gate_run;

/* The words of one command: 0 is its name, 1 mostly the key. */
struct command_words {
    int count;
    struct redis_word at[WORDS_MAX];
};
typedef int command_run(lua_State *lua, const struct command_words *words, struct redis_key *key);

struct command {
    const char *name;
    command_run *run;
    enum redis_type type; /* of the key; NONE: none, or any */
    bool writes, denied_oom;
};

static struct memory_redis *data(void)
{
    return gate_run.machine->data;
}

static int64_t number_of(const struct redis_word *word)
{
    int64_t value = 0;
    const bool negative = word->length > 0 && word->text[0] == '-';
    if (tg_integer_parse(word->text + negative, word->length - negative, 0, INT64_MAX, &value) !=
        0) {
        return INT64_MIN;
    }
    return negative ? -value : value;
}

/* As number_of, or the command fails. */
static int64_t integer_of(lua_State *lua, const struct redis_word *word)
{
    const int64_t value = number_of(word);
    if (value == INT64_MIN) {
        (void)luaL_error(lua, "ERR value is not an integer or out of range");
    }
    return value;
}

static int push_count(lua_State *lua, int64_t count)
{
    lua_pushnumber(lua, (lua_Number)count);
    return 1;
}

static void push_value(lua_State *lua, const struct redis_key *key, const struct redis_word *field)
{
    const struct redis_entry *entry =
        key != NULL ? redis_get(data(), key, field->text, field->length) : NULL;
    if (entry != NULL) {
        lua_pushlstring(lua, entry->value, entry->value_length);
    } else {
        lua_pushboolean(lua, 0);
    }
}

static struct redis_key *make(const struct command_words *words, struct redis_key *key,
                              enum redis_type type)
{
    if (key == NULL) {
        key = redis_take(data(), words->at[1].text, words->at[1].length);
        key->type = (uint8_t)type;
    }
    return key;
}

/* ---- hashes ---- */

static int run_hmget(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    lua_createtable(lua, words->count - 2, 0);
    for (int i = 2; i < words->count; i++) {
        push_value(lua, key, &words->at[i]);
        lua_rawseti(lua, -2, i - 1);
    }
    return 1;
}

static int run_hget(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    push_value(lua, key, &words->at[2]);
    return 1;
}

static int run_hset(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    key = make(words, key, REDIS_HASH);
    const uint32_t before = key->count;
    for (int i = 2; i + 1 < words->count; i += 2) {
        redis_set(data(), key, &words->at[i], &words->at[i + 1]);
    }
    return push_count(lua, key->count - before);
}

static int run_hsetnx(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    key = make(words, key, REDIS_HASH);
    if (redis_get(data(), key, words->at[2].text, words->at[2].length) != NULL) {
        return push_count(lua, 0);
    }
    redis_set(data(), key, &words->at[2], &words->at[3]);
    return push_count(lua, 1);
}

static int run_remove(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    int64_t count = 0;
    for (int i = 2; i < words->count && key != NULL && key->type != REDIS_NONE; i++) {
        count += redis_remove(data(), key, words->at[i].text, words->at[i].length);
    }
    return push_count(lua, count);
}

static int run_count(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    return push_count(lua, key != NULL ? key->count : 0);
}

static int run_exists(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    return push_count(
        lua, key != NULL && redis_get(data(), key, words->at[2].text, words->at[2].length) != NULL);
}

static int run_hkeys(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    lua_newtable(lua);
    int n = 0;
    for (uint16_t at = key != NULL ? key->first : 0; at != 0; at = data()->entries[at - 1].next) {
        const struct redis_entry *entry = &data()->entries[at - 1];
        lua_pushlstring(lua, entry->field, entry->field_length);
        lua_rawseti(lua, -2, ++n);
    }
    return 1;
}

static int run_hgetall(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    lua_newtable(lua);
    int n = 0;
    for (uint16_t at = key != NULL ? key->first : 0; at != 0; at = data()->entries[at - 1].next) {
        const struct redis_entry *entry = &data()->entries[at - 1];
        lua_pushlstring(lua, entry->field, entry->field_length);
        lua_rawseti(lua, -2, ++n);
        lua_pushlstring(lua, entry->value, entry->value_length);
        lua_rawseti(lua, -2, ++n);
    }
    return 1;
}

static int run_hincrby(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    const struct redis_entry *entry =
        key != NULL ? redis_get(data(), key, words->at[2].text, words->at[2].length) : NULL;
    const struct redis_word old = {entry != NULL ? entry->value : "0",
                                   entry != NULL ? entry->value_length : 1};
    char text[24];
    const int64_t sum = integer_of(lua, &old) + integer_of(lua, &words->at[3]);
    key = make(words, key, REDIS_HASH);
    const struct redis_word value = {text, (size_t)snprintf(text, sizeof text, "%" PRId64, sum)};
    redis_set(data(), key, &words->at[2], &value);
    return push_count(lua, sum);
}

/* ---- sets ---- */

static int run_sadd(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    static const struct redis_word nothing = {"", 0};
    key = make(words, key, REDIS_SET);
    const uint32_t before = key->count;
    redis_set(data(), key, &words->at[2], &nothing);
    return push_count(lua, key->count - before);
}

/* SSCAN key cursor COUNT n: pages of a few, so that cursors are used. */
static int run_sscan(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    enum { PAGE = 3 };
    const struct redis_entry *entries[PAGE];
    uint32_t cursor = 0;
    size_t count = 0;
    char text[16];
    if (key != NULL) {
        count = redis_scan(data(), key, (uint32_t)number_of(&words->at[2]), PAGE, entries, &cursor);
    }
    lua_createtable(lua, 2, 0);
    (void)snprintf(text, sizeof text, "%" PRIu32, cursor);
    lua_pushstring(lua, text);
    lua_rawseti(lua, -2, 1);
    lua_createtable(lua, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(lua, entries[i]->field, entries[i]->field_length);
        lua_rawseti(lua, -2, (int)i + 1);
    }
    lua_rawseti(lua, -2, 2);
    return 1;
}

/* ---- the stream ---- */

static bool text_of(const struct redis_word *word, char *out_text, size_t capacity)
{
    if (word->length >= capacity) {
        return false;
    }
    memcpy(out_text, word->text, word->length);
    out_text[word->length] = '\0';
    return true;
}

static bool is(const struct redis_word *word, const char *text)
{
    return word->length == strlen(text) && memcmp(word->text, text, word->length) == 0;
}

static int64_t sequence_of(const struct redis_word *word)
{
    const struct redis_word head = {word->text, word->length < 2 ? 0 : word->length - 2};
    return number_of(&head);
}

static int run_xadd(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    const int64_t sequence = sequence_of(&words->at[2]);
    if (sequence <= 0 || (key != NULL && (uint64_t)sequence <= key->last_sequence)) {
        return luaL_error(lua, "ERR The ID specified in XADD is equal or smaller than the target");
    }
    key = make(words, key, REDIS_STREAM);
    assert(data()->log_count < REDIS_LOG);
    struct redis_log *log = &data()->log[data()->log_count++];
    *log = (struct redis_log){.sequence = (uint64_t)sequence, .readable = true};
    for (int i = 3; i + 1 < words->count; i += 2) {
        const struct redis_word *field = &words->at[i], *value = &words->at[i + 1];
        if (is(field, "kind")) {
            log->readable &= text_of(value, log->kind, sizeof log->kind);
        } else if (is(field, "reservation")) {
            log->readable &= text_of(value, log->reservation, sizeof log->reservation);
        } else if (is(field, "units")) {
            log->readable &= text_of(value, log->units, sizeof log->units);
        } else if (is(field, "stock_after")) {
            log->stock_after = number_of(value);
        }
    }
    if (key->last != 0) {
        data()->log[key->last - 1].next = (uint16_t)data()->log_count;
    } else {
        key->first = (uint16_t)data()->log_count;
    }
    key->last = (uint16_t)data()->log_count;
    key->last_sequence = (uint64_t)sequence;
    key->count++;
    lua_pushlstring(lua, words->at[2].text, words->at[2].length);
    return 1;
}

/* XTRIM key MINID = id */
static int run_xtrim(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    const uint64_t from = (uint64_t)sequence_of(&words->at[4]);
    int64_t dropped = 0;
    while (key != NULL && key->first != 0 && data()->log[key->first - 1].sequence < from) {
        key->first = data()->log[key->first - 1].next;
        key->last = key->first != 0 ? key->last : 0;
        key->count--;
        dropped++;
    }
    return push_count(lua, dropped);
}

/* ---- bitmaps ---- */

static int run_set(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    key = make(words, key, REDIS_STRING);
    assert(words->at[2].length <= REDIS_BITMAP_BYTES);
    memcpy(key->bitmap, words->at[2].text, words->at[2].length);
    key->bitmap_length = (uint8_t)words->at[2].length;
    return push_count(lua, 1);
}

static int run_getbit(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    const int64_t at = integer_of(lua, &words->at[2]);
    return push_count(lua, key != NULL && at >= 0 ? redis_bit(key, (uint32_t)at) : 0);
}

static int run_setbit(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    const int64_t at = integer_of(lua, &words->at[2]);
    if (at < 0 || at >= REDIS_BITMAP_BYTES * 8) {
        return luaL_error(lua, "ERR bit offset is not an integer or out of range");
    }
    key = make(words, key, REDIS_STRING);
    const uint8_t bit = (uint8_t)(1u << (7 - at % 8));
    if (key->bitmap_length <= at / 8) {
        key->bitmap_length = (uint8_t)(at / 8 + 1);
    }
    const uint32_t before = redis_bit(key, (uint32_t)at);
    if (is(&words->at[3], "1")) {
        key->bitmap[at / 8] |= bit;
    } else {
        key->bitmap[at / 8] &= (uint8_t)~bit;
    }
    return push_count(lua, before);
}

static int run_bitcount(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    return push_count(lua, key != NULL ? redis_bit_count(key) : 0);
}

/* BITPOS key 1 [start [end [BIT]]]: start in bytes, in bits with BIT; no end or -1. */
static int run_bitpos(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    int64_t from = words->count > 3 ? integer_of(lua, &words->at[3]) : 0;
    if (words->count < 6) {
        from *= 8;
    }
    for (; key != NULL && from < key->bitmap_length * 8; from++) {
        if (redis_bit(key, (uint32_t)from)) {
            return push_count(lua, from);
        }
    }
    return push_count(lua, -1);
}

static int run_strlen(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    return push_count(lua, key != NULL ? key->bitmap_length : 0);
}

/* ---- the rest ---- */

static int run_unlink(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    int64_t count = 0;
    for (int i = 1; i < words->count; i++) {
        struct redis_key *each = redis_find(data(), words->at[i].text, words->at[i].length);
        if (each != NULL) {
            redis_unlink(data(), each);
            count++;
        }
    }
    return push_count(lua, count);
}

static int run_pttl(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    return push_count(lua, key != NULL ? -1 : -2);
}

static int run_time(lua_State *lua, const struct command_words *words, struct redis_key *key)
{
    char text[24];
    const int64_t now_ms = gate_run.machine->now_ms;
    lua_createtable(lua, 2, 0);
    lua_pushlstring(lua, text, tg_unsigned_format((uint64_t)(now_ms / 1000), text));
    lua_rawseti(lua, -2, 1);
    lua_pushlstring(lua, text, tg_unsigned_format((uint64_t)(now_ms % 1000 * 1000), text));
    lua_rawseti(lua, -2, 2);
    return 1;
}

static const struct command commands[] = {
    {"HMGET", run_hmget, REDIS_HASH, false, false},
    {"HGET", run_hget, REDIS_HASH, false, false},
    {"HSET", run_hset, REDIS_HASH, true, true},
    {"HSETNX", run_hsetnx, REDIS_HASH, true, true},
    {"HDEL", run_remove, REDIS_HASH, true, false},
    {"HLEN", run_count, REDIS_HASH, false, false},
    {"HEXISTS", run_exists, REDIS_HASH, false, false},
    {"HKEYS", run_hkeys, REDIS_HASH, false, false},
    {"HGETALL", run_hgetall, REDIS_HASH, false, false},
    {"HINCRBY", run_hincrby, REDIS_HASH, true, true},
    {"SADD", run_sadd, REDIS_SET, true, true},
    {"SREM", run_remove, REDIS_SET, true, false},
    {"SCARD", run_count, REDIS_SET, false, false},
    {"SISMEMBER", run_exists, REDIS_SET, false, false},
    {"SSCAN", run_sscan, REDIS_SET, false, false},
    {"XADD", run_xadd, REDIS_STREAM, true, true},
    {"XLEN", run_count, REDIS_STREAM, false, false},
    {"XTRIM", run_xtrim, REDIS_STREAM, true, false},
    {"SET", run_set, REDIS_NONE, true, true},
    {"GETBIT", run_getbit, REDIS_STRING, false, false},
    {"SETBIT", run_setbit, REDIS_STRING, true, true},
    {"BITCOUNT", run_bitcount, REDIS_STRING, false, false},
    {"BITPOS", run_bitpos, REDIS_STRING, false, false},
    {"STRLEN", run_strlen, REDIS_STRING, false, false},
    {"UNLINK", run_unlink, REDIS_NONE, true, false},
    {"PTTL", run_pttl, REDIS_NONE, false, false},
    {"TIME", run_time, REDIS_NONE, false, false},
};

/* Command names are constants of the scripts: Lua keeps each at one address. */
static struct {
    const char *name;
    const struct command *command;
} cache[CACHE];

void gate_command_forget(void)
{
    memset(cache, 0, sizeof cache);
}

static const struct command *command_of(lua_State *lua, const char *name)
{
    const size_t at = (uintptr_t)name / 8 % CACHE;
    if (cache[at].name == name) {
        return cache[at].command;
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(commands[i].name, name) == 0) {
            cache[at].name = name;
            cache[at].command = &commands[i];
            return &commands[i];
        }
    }
    (void)luaL_error(lua, "ERR unknown command '%s'", name);
    return NULL;
}

int gate_command_call(lua_State *lua)
{
    static struct command_words words; /* large, and redis.call never calls itself */
    words.count = lua_gettop(lua);
    if (words.count > WORDS_MAX) {
        return luaL_error(lua, "ERR too many words");
    }
    for (int i = 0; i < words.count; i++) {
        words.at[i].text = lua_tolstring(lua, i + 1, &words.at[i].length);
        if (words.at[i].text == NULL) {
            return luaL_error(lua, "ERR Lua redis lib command arguments must be strings");
        }
    }
    const struct command *command = command_of(lua, words.at[0].text);
    if (command->denied_oom && gate_run.machine->out_of_memory && !gate_run.allow_oom &&
        !gate_run.wrote) {
        return luaL_error(lua, "OOM command not allowed when used memory > 'maxmemory'");
    }
    struct redis_key *key = NULL;
    if (words.count > 1) {
        key = redis_find(data(), words.at[1].text, words.at[1].length);
        if (key != NULL && command->type != REDIS_NONE && key->type != command->type) {
            return luaL_error(lua, "WRONGTYPE Operation against a key of the wrong kind");
        }
    }
    gate_run.wrote |= command->writes;
    return command->run(lua, &words, key);
}
