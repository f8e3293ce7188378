/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/bus_inner.h"

enum { FIRST_BLOCK_BYTES = 4096, LARGE_BLOCK_BYTES = 65536, ALIGNMENT = 16 };

struct bus_block {
    struct bus_block *next;
    size_t capacity;
    _Alignas(ALIGNMENT) uint8_t bytes[];
};

static struct bus_block *grow(struct bus_arena *arena, size_t need_bytes)
{
    size_t capacity = arena->blocks == NULL ? FIRST_BLOCK_BYTES : LARGE_BLOCK_BYTES;
    struct bus_block *block;

    capacity = capacity < need_bytes ? need_bytes : capacity;
    if (arena->total_bytes + capacity > TG_MAX_BUS_DECODED_BYTES) {
        return NULL;
    }
    block = malloc(sizeof(*block) + capacity);
    if (block == NULL) {
        return NULL;
    }
    block->capacity = capacity;
    block->next = arena->blocks;
    arena->blocks = block;
    arena->used_bytes = 0;
    arena->total_bytes += capacity;
    return block;
}

static void *take(void *context, size_t size)
{
    struct bus_arena *arena = context;
    struct bus_block *block = arena->blocks;
    void *memory;

    if (size > TG_MAX_BUS_DECODED_BYTES) {
        return NULL;
    }
    size = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    if (block == NULL || block->capacity - arena->used_bytes < size) {
        block = grow(arena, size);
        if (block == NULL) {
            return NULL;
        }
    }
    memory = block->bytes + arena->used_bytes;
    arena->used_bytes += size;
    return memory;
}

/* Single pieces are never given back: the arena goes as a whole. */
static void keep(void *context, void *memory)
{
    (void)context;
    (void)memory;
}

ProtobufCMessage *bus_unpack(struct bus_arena *arena, const ProtobufCMessageDescriptor *type,
                             const void *data, size_t length)
{
    ProtobufCAllocator allocator = {.alloc = take, .free = keep, .allocator_data = arena};

    if (length > TG_MAX_BUS_BODY_BYTES) {
        return NULL;
    }
    return protobuf_c_message_unpack(type, &allocator, length, data);
}

void bus_arena_reset(struct bus_arena *arena)
{
    while (arena->blocks != NULL && arena->blocks->next != NULL) {
        struct bus_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
    arena->used_bytes = 0;
    arena->total_bytes = arena->blocks == NULL ? 0 : arena->blocks->capacity;
}

void bus_arena_free(struct bus_arena *arena)
{
    bus_arena_reset(arena);
    free(arena->blocks);
    *arena = (struct bus_arena){0};
}
