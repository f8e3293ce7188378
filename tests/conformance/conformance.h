/* SPDX-License-Identifier: Apache-2.0
 * Random sequences of operations, each on a model and on the real server; what both say of every
 * operation, and what is stored in the end, must be the same text. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CONFORMANCE_OPERATIONS = 48, CONFORMANCE_LINES = 128, CONFORMANCE_TEXT = 1 << 18 };

struct conformance_chance {
    uint64_t state;
};
/* 0 .. below - 1 */
uint32_t conformance_below(struct conformance_chance *chance, uint32_t below);
bool conformance_percent(struct conformance_chance *chance, uint32_t percent);

/* What one side said, a line per operation and then one per part of what is stored. */
struct conformance_side {
    uint32_t lines;
    size_t used, at[CONFORMANCE_LINES + 1];
    char text[CONFORMANCE_TEXT];
};
void conformance_line(struct conformance_side *side);
__attribute__((format(printf, 2, 3))) void conformance_say(struct conformance_side *side,
                                                           const char *format, ...);
/* Bytes that do not print are told in hex. */
void conformance_bytes(struct conformance_side *side, const char *bytes, size_t length);
/* Sorts `count` pieces of text that the server gives in no order, and says them. */
struct conformance_piece {
    const char *text;
    size_t length;
    const char *more; /* NULL, or what belongs to it */
    size_t more_length;
};
void conformance_sorted(struct conformance_side *side, struct conformance_piece *pieces,
                        size_t count);

/* One sequence: its seed makes the sale, each operation has a seed of its own, so that any of them
 * can be left out. */
struct conformance_sequence {
    uint64_t seed;
    uint32_t count;
    uint64_t operations[CONFORMANCE_OPERATIONS];
};
struct conformance_report {
    struct conformance_side what, model, server; /* what: the operations themselves */
};

/* A changed copy of what the server runs: the comparison has to notice. */
struct conformance_mutant {
    const char *name, *where, *from, *to;
};

struct conformance_part {
    const char *name;
    uint32_t operations_least, operations_most;
    const struct conformance_mutant *mutants;
    size_t mutant_count;
    /* `server`: path or connection string. Ends the process when it cannot. */
    void (*open)(const char *server, const struct conformance_mutant *mutant_or_null);
    void (*run)(const struct conformance_sequence *sequence, struct conformance_report *report);
};
extern const struct conformance_part conformance_gate, conformance_ledger;

#endif
