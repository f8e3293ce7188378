/* SPDX-License-Identifier: Apache-2.0
 * For harnesses of wire.c: the first byte of an input says which message the rest is; it is
 * unpacked as the bus does, with its bounds on bytes and memory. */
#ifndef TG_TESTS_FUZZ_MESSAGE_H
#define TG_TESTS_FUZZ_MESSAGE_H

#include "tests/fuzz/fuzz.h"

#include "lib/io/bus_inner.h"

/* What to do with one type of message. */
struct fuzz_message {
    const ProtobufCMessageDescriptor *type;
    void (*check)(const ProtobufCMessage *message);
};

/* Unpacks and checks; what is no message is not a run. */
static inline int fuzz_message_run(const struct fuzz_message *kinds, size_t count,
                                   const uint8_t *bytes, size_t size)
{
    struct bus_arena arena = {0};
    if (size == 0) {
        return 0;
    }
    const struct fuzz_message *kind = &kinds[bytes[0] % count];
    const ProtobufCMessage *message = bus_unpack(&arena, kind->type, bytes + 1, size - 1);
    HOLDS(arena.total_bytes <= TG_MAX_BUS_DECODED_BYTES);
    if (message != NULL) {
        kind->check(message);
    }
    bus_arena_free(&arena);
    return 0;
}

/* A row of a table of kinds: X(type in snake case, function that takes it). */
#define FUZZ_MESSAGE(snake, function)                                                              \
    {                                                                                              \
        &tidegate__v1__##snake##__descriptor, (function)                                           \
    }

#endif
