/* SPDX-License-Identifier: Apache-2.0
 * What every harness shares. A harness is one file fuzz_NAME.c with one entry,
 * LLVMFuzzerTestOneInput: any byte string is one whole run, and HOLDS states what must be true of
 * it. Built with libFuzzer it searches; built without, replay.c runs its corpus as a unit test. */
#ifndef TG_TESTS_FUZZ_H
#define TG_TESTS_FUZZ_H

#include "tests/prop/choice.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* What the choices have left: the free part of an input, behind its choices. */
static inline const uint8_t *choice_rest(const struct choice *choice, size_t *out_length)
{
    *out_length = choice->length - choice->at;
    return choice->bytes + choice->at;
}

/* Up to `capacity` bytes of free input. Returns how many. */
static inline size_t choice_take(struct choice *choice, void *out_bytes, size_t capacity)
{
    size_t left = choice->length - choice->at;
    size_t length = left < capacity ? left : capacity;
    if (length > 0) {
        memcpy(out_bytes, choice->bytes + choice->at, length);
    }
    choice->at += length;
    return length;
}

/* A text without NUL in it, as C code gets it: at most capacity - 1 bytes. */
static inline void choice_text(struct choice *choice, char *out_text, size_t capacity)
{
    size_t length = choice_take(choice, out_text, capacity - 1);
    out_text[length] = '\0';
}

/* One to four small edits of a text in place: overwrite, cut off, take out, put in. */
static inline void choice_damage(struct choice *choice, char *text, size_t *length, size_t capacity)
{
    for (uint64_t edits = 1 + choice_below(choice, 4); edits > 0 && *length > 0; edits--) {
        size_t at = choice_below(choice, *length);
        switch (choice_below(choice, 4)) {
        case 0:
            text[at] = (char)choice_byte(choice);
            break;
        case 1:
            *length = at;
            break;
        case 2:
            memmove(text + at, text + at + 1, *length - at - 1);
            (*length)--;
            break;
        default:
            if (*length < capacity) {
                memmove(text + at + 1, text + at, *length - at);
                text[at] = (char)choice_byte(choice);
                (*length)++;
            }
            break;
        }
    }
}

#endif
