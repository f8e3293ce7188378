/* SPDX-License-Identifier: Apache-2.0
 * A Redis in memory: hashes, sets, one kind of stream, bitmaps; as much as the gate's scripts and
 * the checker use. Fixed size, no heap: a copy of the used part is a snapshot. Commands get words
 * and give a reply; they never decide anything. */
#ifndef SIM_MEMORY_REDIS_H
#define SIM_MEMORY_REDIS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    REDIS_KEYS = 224,
    REDIS_SLOTS = 512, /* of the table of keys: a power of two */
    REDIS_ENTRIES = 1200,
    REDIS_BUCKETS = 1024, /* of the table of entries: a power of two */
    REDIS_LOG = 700,
    REDIS_KEY_BYTES = 40,
    REDIS_FIELD_BYTES = 36,
    REDIS_VALUE_BYTES = 128,
    REDIS_BITMAP_BYTES = 16,
    REDIS_RELEASES = 96
};

enum redis_type { REDIS_NONE, REDIS_HASH, REDIS_SET, REDIS_STREAM, REDIS_STRING };

struct redis_word {
    const char *text;
    size_t length;
};

struct redis_entry {
    uint32_t hash;
    uint16_t next, before; /* in its key, index + 1 */
    uint16_t chain;        /* in its bucket, index + 1 */
    uint16_t key;          /* index */
    uint8_t field_length, value_length;
    char field[REDIS_FIELD_BYTES];
    char value[REDIS_VALUE_BYTES];
};

/* One entry of a gate's log, as XADD was given it. */
struct redis_log {
    uint64_t sequence;
    uint16_t next;
    char kind[12], reservation[32], units[64];
    int64_t stock_after;
    bool readable;
};

struct redis_key {
    char name[REDIS_KEY_BYTES];
    uint8_t length, type;
    uint8_t bitmap_length;
    uint16_t first, last; /* entries or log entries, index + 1 */
    uint32_t count;
    uint64_t last_sequence;
    uint8_t bitmap[REDIS_BITMAP_BYTES];
};

struct memory_redis {
    uint32_t key_count, entry_count, log_count;
    uint16_t free_entry;
    uint8_t releases[REDIS_RELEASES]; /* how often this data saw a reservation released */
    uint16_t slots[REDIS_SLOTS];      /* key index + 1 */
    uint16_t buckets[REDIS_BUCKETS];  /* entry index + 1 */
    struct redis_key keys[REDIS_KEYS];
    struct redis_log log[REDIS_LOG];
    struct redis_entry entries[REDIS_ENTRIES];
};

void redis_flush(struct memory_redis *redis);
/* The used part of `from` becomes `to`. */
void redis_copy(struct memory_redis *to, const struct memory_redis *from);

/* NULL: there is none. */
struct redis_key *redis_find(struct memory_redis *redis, const char *name, size_t length);
struct redis_key *redis_take(struct memory_redis *redis, const char *name, size_t length);
void redis_unlink(struct memory_redis *redis, struct redis_key *key);

struct redis_entry *redis_get(struct memory_redis *redis, const struct redis_key *key,
                              const char *field, size_t length);
void redis_set(struct memory_redis *redis, struct redis_key *key, const struct redis_word *field,
               const struct redis_word *value);
bool redis_remove(struct memory_redis *redis, struct redis_key *key, const char *field,
                  size_t length);

/* SCAN: entries in the order of a hash of their field, from `cursor`; what is there all the time is
 * seen. Returns how many; *out_cursor 0: that was the end. */
size_t redis_scan(struct memory_redis *redis, const struct redis_key *key, uint32_t cursor,
                  size_t wanted, const struct redis_entry **out_entries, uint32_t *out_cursor);

uint32_t redis_bit(const struct redis_key *key, uint32_t at);
uint32_t redis_bit_count(const struct redis_key *key);

#endif
