/* SPDX-License-Identifier: Apache-2.0
 * tidegate-conformance: sequences by seed; of one that tells model and server apart, the fewest
 * operations that still do. */
#include "tests/conformance/conformance.h"

#include <assert.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRESS_EVERY = 2000, PARTS = 2, PIECES = 512 };

static const struct conformance_part *const parts[PARTS] = {&conformance_gate, &conformance_ledger};

/* ---- chance ---- */

static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint32_t conformance_below(struct conformance_chance *chance, uint32_t below)
{
    chance->state = mix(chance->state);
    return (uint32_t)((chance->state >> 32) * below >> 32);
}

bool conformance_percent(struct conformance_chance *chance, uint32_t percent)
{
    return conformance_below(chance, 100) < percent;
}

/* ---- what the sides say ---- */

void conformance_line(struct conformance_side *side)
{
    assert(side->lines < CONFORMANCE_LINES);
    side->at[side->lines++] = side->used;
    side->at[side->lines] = side->used;
}

void conformance_say(struct conformance_side *side, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    const int length =
        vsnprintf(side->text + side->used, sizeof side->text - side->used, format, values);
    va_end(values);
    assert(length >= 0 && side->used + (size_t)length < sizeof side->text);
    side->used += (size_t)length;
    side->at[side->lines] = side->used;
}

void conformance_bytes(struct conformance_side *side, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const bool plain = bytes[i] > ' ' && bytes[i] < '~' && bytes[i] != '\\';
        conformance_say(side, plain || bytes[i] == ' ' ? "%c" : "\\%02x", (uint8_t)bytes[i]);
    }
}

static int by_text(const void *a, const void *b)
{
    const struct conformance_piece *x = a, *y = b;
    const size_t shorter = x->length < y->length ? x->length : y->length;
    const int order = shorter > 0 ? memcmp(x->text, y->text, shorter) : 0;
    return order != 0 ? order : (x->length > y->length) - (x->length < y->length);
}

void conformance_sorted(struct conformance_side *side, struct conformance_piece *pieces,
                        size_t count)
{
    assert(count <= PIECES);
    if (count > 1) {
        qsort(pieces, count, sizeof pieces[0], by_text);
    }
    for (size_t i = 0; i < count; i++) {
        conformance_say(side, " [");
        conformance_bytes(side, pieces[i].text, pieces[i].length);
        if (pieces[i].more != NULL) {
            conformance_say(side, "] = [");
            conformance_bytes(side, pieces[i].more, pieces[i].more_length);
        }
        conformance_say(side, "]");
    }
}

/* ---- sequences ---- */

static struct conformance_report report;

static size_t line_length(const struct conformance_side *side, uint32_t line)
{
    return line < side->lines ? side->at[line + 1] - side->at[line] : 0;
}

static bool same_line(uint32_t line)
{
    const size_t length = line_length(&report.model, line);
    return length == line_length(&report.server, line) &&
           memcmp(report.model.text + report.model.at[line],
                  report.server.text + report.server.at[line], length) == 0;
}

static bool differs(const struct conformance_part *part,
                    const struct conformance_sequence *sequence)
{
    struct conformance_side *const sides[] = {&report.what, &report.model, &report.server};
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++) {
        sides[i]->lines = 0;
        sides[i]->used = 0;
        sides[i]->at[0] = 0;
    }
    part->run(sequence, &report);
    bool same = report.model.lines == report.server.lines;
    for (uint32_t line = 0; same && line < report.model.lines; line++) {
        same = same_line(line);
    }
    return !same;
}

static void make(const struct conformance_part *part, uint64_t seed,
                 struct conformance_sequence *out_sequence)
{
    const uint32_t range = part->operations_most - part->operations_least + 1;
    out_sequence->seed = mix(seed);
    out_sequence->count = part->operations_least + (uint32_t)(mix(seed + 1) % range);
    for (uint32_t i = 0; i < out_sequence->count; i++) {
        out_sequence->operations[i] = mix(out_sequence->seed + i);
    }
}

/* Leaves out what is not needed, until everything is. */
static void minimise(const struct conformance_part *part, struct conformance_sequence *sequence)
{
    bool smaller = true;
    while (smaller) {
        smaller = false;
        for (uint32_t at = sequence->count; at-- > 0;) {
            struct conformance_sequence fewer = *sequence;
            memmove(&fewer.operations[at], &fewer.operations[at + 1],
                    (fewer.count - at - 1) * sizeof fewer.operations[0]);
            fewer.count--;
            if (differs(part, &fewer)) {
                *sequence = fewer;
                smaller = true;
            }
        }
    }
    (void)differs(part, sequence);
}

static void print_line(const char *name, const struct conformance_side *side, uint32_t line)
{
    (void)printf("  %-7s %.*s\n", name, (int)line_length(side, line),
                 line < side->lines ? side->text + side->at[line] : "");
}

static int tell(const struct conformance_part *part, uint64_t seed,
                const struct conformance_mutant *mutant)
{
    (void)printf("FAILED %s, seed %" PRIu64 ": the fewest operations that tell them apart\n",
                 part->name, seed);
    for (uint32_t line = 0; line < report.model.lines; line++) {
        const bool same = same_line(line);
        if (line < report.what.lines) {
            print_line(same ? "" : "HERE", &report.what, line);
        }
        if (line < report.what.lines || !same) {
            print_line("model", &report.model, line);
        }
        if (!same) {
            print_line("server", &report.server, line);
        }
    }
    (void)printf("replay: tools/dev conformance --part %s --replay %" PRIu64 "%s%s\n", part->name,
                 seed, mutant != NULL ? " --mutant " : "", mutant != NULL ? mutant->name : "");
    return 1;
}

struct options {
    uint64_t from, count;
    const char *part, *redis, *postgres, *mutant;
};

static const struct conformance_mutant *mutant_of(const struct conformance_part *part,
                                                  const char *name)
{
    for (size_t i = 0; name != NULL && i < part->mutant_count; i++) {
        if (strcmp(part->mutants[i].name, name) == 0) {
            return &part->mutants[i];
        }
    }
    return NULL;
}

static int run_part(const struct conformance_part *part, const struct options *options)
{
    const struct conformance_mutant *mutant = mutant_of(part, options->mutant);
    uint64_t operations = 0;
    struct conformance_sequence sequence;
    part->open(part == &conformance_gate ? options->redis : options->postgres, mutant);
    for (uint64_t i = 0; i < options->count; i++) {
        make(part, options->from + i, &sequence);
        operations += sequence.count;
        if (differs(part, &sequence)) {
            minimise(part, &sequence);
            return tell(part, options->from + i, mutant);
        }
        if ((i + 1) % PROGRESS_EVERY == 0) {
            (void)fprintf(stderr, "%s: %" PRIu64 " sequences\n", part->name, i + 1);
        }
    }
    (void)printf("%s: %" PRIu64 " sequences of %" PRIu64 " operations agree\n", part->name,
                 options->count, options->count > 0 ? operations / options->count : 0);
    return 0;
}

static int usage(void)
{
    (void)printf("tidegate-conformance --redis SOCKET --postgres CONNINFO [--sequences N]\n"
                 "                     [--from S] [--replay S] [--part gate|ledger] [--mutant M]\n"
                 "mutants:");
    for (int i = 0; i < PARTS; i++) {
        for (size_t n = 0; n < parts[i]->mutant_count; n++) {
            (void)printf(" %s", parts[i]->mutants[n].name);
        }
    }
    (void)printf("\n");
    return 64;
}

static bool take_option(int letter, struct options *options)
{
    switch (letter) {
    case 'n':
        options->count = strtoull(optarg, NULL, 10);
        return true;
    case 'f':
        options->from = strtoull(optarg, NULL, 10);
        return true;
    case 'r':
        options->from = strtoull(optarg, NULL, 10);
        options->count = 1;
        return true;
    case 'p':
        options->part = optarg;
        return true;
    case 'm':
        options->mutant = optarg;
        return mutant_of(parts[0], optarg) != NULL || mutant_of(parts[1], optarg) != NULL;
    case 'R':
        options->redis = optarg;
        return true;
    case 'P':
        options->postgres = optarg;
        return true;
    default:
        break;
    }
    return false;
}

/* Is this part meant? A mutant is of one part only. */
static bool is_wanted(const struct conformance_part *part, const struct options *options)
{
    return (options->part == NULL || strcmp(options->part, part->name) == 0) &&
           (options->mutant == NULL || mutant_of(part, options->mutant) != NULL);
}

int main(int argc, char **argv)
{
    static const struct option longs[] = {
        {"sequences", required_argument, NULL, 'n'}, {"from", required_argument, NULL, 'f'},
        {"replay", required_argument, NULL, 'r'},    {"part", required_argument, NULL, 'p'},
        {"mutant", required_argument, NULL, 'm'},    {"redis", required_argument, NULL, 'R'},
        {"postgres", required_argument, NULL, 'P'},  {NULL, 0, NULL, 0}};
    struct options options = {.from = 1, .count = 10000};
    int letter, code = 0;
    while ((letter = getopt_long(argc, argv, "", longs, NULL)) != -1) {
        if (!take_option(letter, &options)) {
            return usage();
        }
    }
    if (options.redis == NULL || options.postgres == NULL) {
        return usage();
    }
    for (int i = 0; i < PARTS && code == 0; i++) {
        code = is_wanted(parts[i], &options) ? run_part(parts[i], &options) : 0;
        (void)fflush(stdout);
    }
    return code;
}
