/* SPDX-License-Identifier: Apache-2.0
 * Property tests: one byte string is the only source of choices, so that one property runs from
 * seeds, from a fuzzer and from a file that replays a failure. A property is `void property(struct
 * choice *)` that asserts; PROPERTY_MAIN makes the program: test_x                  runs
 * seeds 1..RUNS; a failure names its seed test_x SEED             runs that one seed test_x
 * --replay FILE    runs the bytes of a file With -DTIDEGATE_FUZZ it is a libFuzzer target instead.
 */
#ifndef TG_TESTS_CHOICE_H
#define TG_TESTS_CHOICE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct choice {
    const uint8_t *bytes;
    size_t length;
    size_t at;
};

/* The next byte; zeros behind the end, so that every byte string is a whole run. */
static inline uint8_t choice_byte(struct choice *choice)
{
    return choice->at < choice->length ? choice->bytes[choice->at++] : 0;
}

static inline uint64_t choice_u64(struct choice *choice)
{
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        value = value << 8 | choice_byte(choice);
    }
    return value;
}

/* 0 <= result < bound, for bound >= 1. Takes only as many bytes as the bound needs. */
static inline uint64_t choice_below(struct choice *choice, uint64_t bound)
{
    uint64_t value = 0;
    for (uint64_t rest = bound - 1; rest != 0; rest >>= 8) {
        value = value << 8 | choice_byte(choice);
    }
    return value % bound;
}

static inline void choice_bytes(struct choice *choice, uint8_t *out_bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        out_bytes[i] = choice_byte(choice);
    }
}

/* The choices of a seed: splitmix64. */
static inline void choice_fill(uint64_t seed, uint8_t *out_bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        out_bytes[i] = (uint8_t)(z ^ (z >> 31));
    }
}

enum { CHOICE_BYTES_MAX = 8192 };

static inline void choice_run_seed(void (*property)(struct choice *), uint64_t seed, size_t length)
{
    static uint8_t bytes[CHOICE_BYTES_MAX];
    assert(length <= sizeof(bytes));
    choice_fill(seed, bytes, length);
    property(&(struct choice){bytes, length, 0});
}

static inline int choice_replay(void (*property)(struct choice *), const char *path)
{
    static uint8_t bytes[CHOICE_BYTES_MAX];
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        return 1;
    }
    size_t length = fread(bytes, 1, sizeof(bytes), file);
    (void)fclose(file);
    property(&(struct choice){bytes, length, 0});
    return 0;
}

static uint64_t choice_seed_running;

static inline void choice_name_seed(void)
{
    if (choice_seed_running != 0) {
        (void)fprintf(stderr, "failed with seed %llu\n", (unsigned long long)choice_seed_running);
    }
}

/* Asserts of a property: names the seed, then aborts. */
#define HOLDS(condition) ((condition) ? (void)0 : (choice_name_seed(), assert(condition)))

static inline int choice_main(void (*property)(struct choice *), uint64_t runs, size_t length,
                              int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--replay") == 0) {
        return choice_replay(property, argv[2]);
    }
    uint64_t first = argc == 2 ? strtoull(argv[1], NULL, 10) : 1;
    uint64_t last = argc == 2 ? first : runs;
    for (uint64_t seed = first; seed <= last; seed++) {
        choice_seed_running = seed;
        choice_run_seed(property, seed, length);
    }
    printf("%s: %llu seeds hold\n", argv[0], (unsigned long long)(last - first + 1));
    return 0;
}

#ifdef TIDEGATE_FUZZ
#define PROPERTY_MAIN(property, runs, length)                                                      \
    int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);                                 \
    int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)                                  \
    {                                                                                              \
        (property)(&(struct choice){bytes, size, 0});                                              \
        return 0;                                                                                  \
    }
#else
#define PROPERTY_MAIN(property, runs, length)                                                      \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        return choice_main((property), (runs), (length), argc, argv);                              \
    }
#endif

#endif
