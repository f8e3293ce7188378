/* SPDX-License-Identifier: Apache-2.0
 * The shipped scripts on a real Redis, whose clock is told instead of read. What is sent is
 * answered later, in order. */
#ifndef CONFORMANCE_GATE_SERVER_H
#define CONFORMANCE_GATE_SERVER_H

#include "tests/conformance/conformance.h"
#include "tests/sim/gate_script.h"

void gate_server_open(const char *path, const struct conformance_mutant *mutant_or_null);
/* An empty Redis with memory enough. */
void gate_server_begin(void);
void gate_server_clock(int64_t now_ms);
void gate_server_memory(bool exhausted);
void gate_server_run(int script, const struct gate_words *call);
/* One command of a stranger. */
void gate_server_command(int count, const char *const *words, const size_t *lengths);
/* Everything of a key that the model says is of this type. */
void gate_server_dump(enum redis_type type, const char *key, size_t length);
/* Reads every answer; says one line per run and per dump. */
void gate_server_answers(struct conformance_side *side, uint32_t item_count);

/* Both sides say answers and contents with these. */
void gate_say_answer(struct conformance_side *side, int script, uint32_t item_count,
                     const struct redis_word *words, size_t count);
enum { GATE_WORDS = 256 };

#endif
