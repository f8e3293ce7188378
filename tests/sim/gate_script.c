/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/gate_command.h"

#include <assert.h>
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RESERVE_SCRIPT(id, name) extern const char reserve_lua_##name[];
#include "services/reserve/script.def"
#undef RESERVE_SCRIPT
extern const char invariant_look_lua[];

enum { ARENA_BYTES = 256 << 20, WORD_ROOM = 1 << 16, GRAIN = 16, BINS = 1 << 12, KEY_TABLES = 64 };

static struct {
    char *arena, *image;
    size_t used, compiled;
    lua_State *lua;
    int functions[GATE_SCRIPT_COUNT], error_at;
    bool allow_oom[GATE_SCRIPT_COUNT];
    struct reserve_word words[WORD_ROOM];
    size_t word_count;
    struct {
        const char *second, *last; /* enough to tell the lists apart */
        int count, table;
    } keys[KEY_TABLES];
    uint32_t key_tables;
} gate;

/* Blocks given back are kept by size, the list heads at the begin of the arena: a reset resets them
 * too. */
static void **bin_of(size_t size)
{
    return &((void **)(void *)gate.arena)[size / GRAIN];
}

static void *take_block(size_t size)
{
    void **bin = size / GRAIN < BINS ? bin_of(size) : NULL;
    if (bin != NULL && *bin != NULL) {
        void *block = *bin;
        *bin = *(void **)block;
        return block;
    }
    assert(gate.used + size <= ARENA_BYTES);
    char *at = gate.arena + gate.used;
    gate.used += size;
    return at;
}

static void give_block(void *block, size_t size)
{
    if (size / GRAIN < BINS) {
        *(void **)block = *bin_of(size);
        *bin_of(size) = block;
    }
}

static void *allocate(void *context, void *old, size_t old_size, size_t size)
{
    const size_t held = (old_size + GRAIN - 1) / GRAIN * GRAIN;
    const size_t wanted = (size + GRAIN - 1) / GRAIN * GRAIN;
    if (old != NULL && wanted == held) {
        return old;
    }
    void *block = wanted > 0 ? take_block(wanted) : NULL;
    if (old != NULL && held > 0) {
        if (block != NULL) {
            memcpy(block, old, old_size < size ? old_size : size);
        }
        give_block(old, held);
    }
    return block;
}

const char *gate_script_source(int script)
{
    static const char *const sources[GATE_SCRIPT_COUNT] = {
#define RESERVE_SCRIPT(id, name) reserve_lua_##name,
#include "services/reserve/script.def"
#undef RESERVE_SCRIPT
        invariant_look_lua};
    return sources[script];
}

const char *gate_script_name(int script)
{
    return script == GATE_SCRIPT_CHECK ? "check" : reserve_script_name((enum reserve_script)script);
}

/* The source, with the mutation in it if it is meant. Ends the process when it does not fit. */
static char *mutated(int script, const struct gate_mutation *mutations, size_t count)
{
    char *text = strdup(gate_script_source(script));
    for (size_t i = 0; i < count && text != NULL; i++) {
        const struct gate_mutation *mutation = &mutations[i];
        if (strcmp(mutation->script, gate_script_name(script)) != 0) {
            continue;
        }
        char *at = strstr(text, mutation->from), *longer = NULL;
        if (at == NULL || asprintf(&longer, "%.*s%s%s", (int)(at - text), text, mutation->to,
                                   at + strlen(mutation->from)) < 0) {
            (void)fprintf(stderr, "sim: the mutation of %s does not fit: %s\n", mutation->script,
                          mutation->from);
            exit(70);
        }
        free(text);
        text = longer;
    }
    assert(text != NULL);
    return text;
}

static void compile(int script, const struct gate_mutation *mutations, size_t count)
{
    char *text = mutated(script, mutations, count), *body = text;
    gate.allow_oom[script] = strncmp(text, "#!lua flags=allow-oom\n", 22) == 0;
    if (text[0] == '#') {
        body = strchr(text, '\n');
    }
    if (luaL_loadbuffer(gate.lua, body, strlen(body), gate_script_name(script)) != 0) {
        (void)fprintf(stderr, "sim: %s\n", lua_tostring(gate.lua, -1));
        exit(70);
    }
    gate.functions[script] = luaL_ref(gate.lua, LUA_REGISTRYINDEX);
    free(text);
}

void gate_script_open(const struct gate_mutation *mutations, size_t count)
{
    gate.arena = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert(gate.arena != MAP_FAILED);
    gate.used = BINS * sizeof(void *);
    gate.lua = lua_newstate(allocate, NULL);
    assert(gate.lua != NULL);
    lua_gc(gate.lua, LUA_GCSTOP, 0);
    luaL_openlibs(gate.lua);
    lua_newtable(gate.lua);
    lua_pushcfunction(gate.lua, gate_command_call);
    lua_setfield(gate.lua, -2, "call");
    lua_setglobal(gate.lua, "redis");
    for (int script = 0; script < GATE_SCRIPT_COUNT; script++) {
        compile(script, mutations, count);
    }
    lua_gc(gate.lua, LUA_GCCOLLECT, 0);
    lua_gc(gate.lua, LUA_GCSTOP, 0);
    gate_command_forget();
    gate.compiled = gate.used;
    gate.image = malloc(gate.compiled);
    assert(gate.image != NULL);
    memcpy(gate.image, gate.arena, gate.compiled);
}

void gate_script_reset(void)
{
    memcpy(gate.arena, gate.image, gate.compiled);
    gate.used = gate.compiled;
    gate.word_count = 0;
    gate.key_tables = 0;
}

size_t gate_script_memory(void)
{
    return gate.used - gate.compiled;
}

static void push_words(const struct redis_word *words, int count)
{
    lua_createtable(gate.lua, count, 0);
    for (int i = 0; i < count; i++) {
        lua_pushlstring(gate.lua, words[i].text, words[i].length);
        lua_rawseti(gate.lua, -2, i + 1);
    }
}

/* Key names are kept in one place each, and no script changes KEYS: a table is made once. */
static void push_keys(const struct redis_word *words, int count)
{
    const char *second = words[count > 1].text, *last = words[count - 1].text;
    for (uint32_t i = 0; i < gate.key_tables; i++) {
        if (gate.keys[i].second == second && gate.keys[i].last == last &&
            gate.keys[i].count == count) {
            lua_rawgeti(gate.lua, LUA_REGISTRYINDEX, gate.keys[i].table);
            return;
        }
    }
    push_words(words, count);
    if (gate.key_tables < KEY_TABLES) {
        lua_pushvalue(gate.lua, -1);
        const uint32_t at = gate.key_tables++;
        gate.keys[at].second = second;
        gate.keys[at].last = last;
        gate.keys[at].count = count;
        gate.keys[at].table = luaL_ref(gate.lua, LUA_REGISTRYINDEX);
    }
}

static struct reserve_word *word_room(void)
{
    assert(gate.word_count < WORD_ROOM);
    return &gate.words[gate.word_count++];
}

/* One text is its first word and the rest. */
static void read_text(struct reserve_answer *answer)
{
    size_t length = 0;
    const char *text = lua_tolstring(gate.lua, -1, &length);
    const char *space = memchr(text, ' ', length);
    const size_t head = space != NULL ? (size_t)(space - text) : length;
    struct reserve_word *word = word_room();
    *word = (struct reserve_word){text, head};
    if (space != NULL) {
        *word_room() = (struct reserve_word){space + 1, length - head - 1};
    }
    *answer = (struct reserve_answer){RESERVE_ENDED, space != NULL ? 2 : 1, word};
}

static void read_answer(struct reserve_answer *answer)
{
    const size_t first = gate.word_count;
    if (lua_type(gate.lua, -1) == LUA_TSTRING) {
        read_text(answer);
        return;
    }
    const int count = lua_istable(gate.lua, -1) ? (int)lua_objlen(gate.lua, -1) : 0;
    answer->ending = count > 0 ? RESERVE_ENDED : RESERVE_BROKEN;
    for (int i = 1; i <= count; i++) {
        lua_rawgeti(gate.lua, -1, i);
        struct reserve_word *word = word_room();
        word->text = lua_tolstring(gate.lua, -1, &word->length);
        if (word->text == NULL) {
            answer->ending = RESERVE_BROKEN;
            word->length = 0;
        }
        lua_pop(gate.lua, 1);
    }
    answer->count = (size_t)count;
    answer->words = &gate.words[first];
}

void gate_script_run(const struct gate_machine *machine, int script, const struct gate_words *call,
                     struct reserve_answer *out_answer)
{
    gate_run = (struct gate_run){.machine = machine, .allow_oom = gate.allow_oom[script]};
    push_keys(call->words, call->key_count);
    lua_setglobal(gate.lua, "KEYS");
    push_words(call->words + call->key_count, call->count - call->key_count);
    lua_setglobal(gate.lua, "ARGV");
    lua_rawgeti(gate.lua, LUA_REGISTRYINDEX, gate.functions[script]);
    *out_answer = (struct reserve_answer){.ending = RESERVE_BROKEN};
    if (lua_pcall(gate.lua, 0, 1, 0) == 0) {
        read_answer(out_answer);
    } else {
        const char *why = lua_tostring(gate.lua, -1);
        const bool refused = why != NULL && strstr(why, "OOM ") != NULL && !gate_run.wrote;
        out_answer->ending = refused ? RESERVE_NOT_RUN : RESERVE_BROKEN;
        if (why != NULL) {
            struct reserve_word *word = word_room();
            *word = (struct reserve_word){why, strlen(why)};
            out_answer->words = word;
        }
    }
    lua_settop(gate.lua, 0);
}
