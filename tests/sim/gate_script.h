/* SPDX-License-Identifier: Apache-2.0
 * The shipped scripts of the gate under Lua 5.1, over a Redis in memory. Compiled once; the state
 * lives in one block of memory, so that going back to "just compiled" is one copy, and every
 * schedule begins with the very same bytes. Nothing is collected meanwhile: what an answer names
 * stays there until the next reset. */
#ifndef SIM_GATE_SCRIPT_H
#define SIM_GATE_SCRIPT_H

#include "services/reserve/script.h"
#include "tests/sim/memory_redis.h"

enum { GATE_SCRIPT_CHECK = RESERVE_SCRIPT_COUNT, GATE_SCRIPT_COUNT }; /* the checker's own look */

/* A wanted fault in a script: `from` occurs in it and becomes `to`. */
struct gate_mutation {
    const char *script, *from, *to;
};

/* Once per process. The mutations are borrowed for the call. */
void gate_script_open(const struct gate_mutation *mutations, size_t count);
/* As shipped; its name. */
const char *gate_script_source(int script);
const char *gate_script_name(int script);
void gate_script_reset(void);
size_t gate_script_memory(void);

/* Where and when a script runs. */
struct gate_machine {
    struct memory_redis *data;
    int64_t now_ms;
    bool out_of_memory;
};

struct gate_words {
    int key_count, count; /* words in all, keys first */
    const struct redis_word *words;
};

/* The words of the answer live until the reset. */
void gate_script_run(const struct gate_machine *machine, int script, const struct gate_words *call,
                     struct reserve_answer *out_answer);

#endif
