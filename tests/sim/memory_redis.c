/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/sim/memory_redis.h"

#include <assert.h>
#include <string.h>

static uint32_t hash_of(const char *text, size_t length)
{
    uint64_t hash = 0x9e3779b97f4a7c15u ^ length;
    while (length >= 8) {
        uint64_t word;
        memcpy(&word, text, 8);
        hash = (hash ^ word) * 0xff51afd7ed558ccdu;
        hash ^= hash >> 32;
        text += 8;
        length -= 8;
    }
    uint64_t rest = 0;
    memcpy(&rest, text, length);
    hash = (hash ^ rest) * 0xc4ceb9fe1a85ec53u;
    hash ^= hash >> 29;
    return (uint32_t)hash | 1u; /* never 0: 0 is the first cursor */
}

void redis_flush(struct memory_redis *redis)
{
    memset(redis, 0, offsetof(struct memory_redis, keys));
}

void redis_copy(struct memory_redis *to, const struct memory_redis *from)
{
    memcpy(to, from, offsetof(struct memory_redis, keys));
    memcpy(to->keys, from->keys, from->key_count * sizeof from->keys[0]);
    memcpy(to->log, from->log, from->log_count * sizeof from->log[0]);
    memcpy(to->entries, from->entries, from->entry_count * sizeof from->entries[0]);
}

static uint16_t *slot_of(struct memory_redis *redis, const char *name, size_t length)
{
    uint32_t at = hash_of(name, length) % REDIS_SLOTS;
    for (;;) {
        uint16_t *slot = &redis->slots[at];
        if (*slot == 0) {
            return slot;
        }
        const struct redis_key *key = &redis->keys[*slot - 1];
        if (key->length == length && memcmp(key->name, name, length) == 0) {
            return slot;
        }
        at = (at + 1) % REDIS_SLOTS;
    }
}

struct redis_key *redis_find(struct memory_redis *redis, const char *name, size_t length)
{
    const uint16_t at = *slot_of(redis, name, length);
    return at != 0 && redis->keys[at - 1].type != REDIS_NONE ? &redis->keys[at - 1] : NULL;
}

struct redis_key *redis_take(struct memory_redis *redis, const char *name, size_t length)
{
    uint16_t *slot = slot_of(redis, name, length);
    if (*slot == 0) {
        assert(redis->key_count < REDIS_KEYS && length < REDIS_KEY_BYTES);
        struct redis_key *key = &redis->keys[redis->key_count++];
        memset(key, 0, sizeof *key);
        memcpy(key->name, name, length);
        key->length = (uint8_t)length;
        *slot = (uint16_t)redis->key_count;
    }
    return &redis->keys[*slot - 1];
}

static uint16_t *bucket_of(struct memory_redis *redis, uint32_t key, uint32_t hash)
{
    return &redis->buckets[(hash ^ key * 0x9e3779b1u) % REDIS_BUCKETS];
}

static void drop_entry(struct memory_redis *redis, uint16_t at)
{
    struct redis_entry *entry = &redis->entries[at - 1];
    uint16_t *link = bucket_of(redis, entry->key, entry->hash);
    while (*link != at) {
        link = &redis->entries[*link - 1].chain;
    }
    *link = entry->chain;
    entry->next = redis->free_entry;
    redis->free_entry = at;
}

void redis_unlink(struct memory_redis *redis, struct redis_key *key)
{
    if (key->type == REDIS_HASH || key->type == REDIS_SET) {
        while (key->first != 0) {
            const uint16_t at = key->first;
            key->first = redis->entries[at - 1].next;
            drop_entry(redis, at);
        }
    }
    key->type = REDIS_NONE;
    key->first = 0;
    key->last = 0;
    key->count = 0;
    key->last_sequence = 0;
    key->bitmap_length = 0;
    memset(key->bitmap, 0, sizeof key->bitmap);
}

static struct redis_entry *find_entry(struct memory_redis *redis, const struct redis_key *key,
                                      const struct redis_word *field, uint32_t hash)
{
    const uint32_t index = (uint32_t)(key - redis->keys);
    for (uint16_t at = *bucket_of(redis, index, hash); at != 0; at = redis->entries[at - 1].chain) {
        struct redis_entry *entry = &redis->entries[at - 1];
        if (entry->hash == hash && entry->key == index && entry->field_length == field->length &&
            memcmp(entry->field, field->text, field->length) == 0) {
            return entry;
        }
    }
    return NULL;
}

struct redis_entry *redis_get(struct memory_redis *redis, const struct redis_key *key,
                              const char *field, size_t length)
{
    const struct redis_word word = {field, length};
    return find_entry(redis, key, &word, hash_of(field, length));
}

static struct redis_entry *add_entry(struct memory_redis *redis, struct redis_key *key,
                                     const struct redis_word *field, uint32_t hash)
{
    uint16_t at = redis->free_entry;
    if (at != 0) {
        redis->free_entry = redis->entries[at - 1].next;
    } else {
        assert(redis->entry_count < REDIS_ENTRIES);
        at = (uint16_t)++redis->entry_count;
    }
    struct redis_entry *entry = &redis->entries[at - 1];
    uint16_t *bucket = bucket_of(redis, (uint32_t)(key - redis->keys), hash);
    assert(field->length <= REDIS_FIELD_BYTES);
    entry->hash = hash;
    entry->key = (uint16_t)(key - redis->keys);
    entry->field_length = (uint8_t)field->length;
    memcpy(entry->field, field->text, field->length);
    entry->chain = *bucket;
    *bucket = at;
    entry->next = 0;
    entry->before = key->last;
    if (key->last != 0) {
        redis->entries[key->last - 1].next = at;
    } else {
        key->first = at;
    }
    key->last = at;
    key->count++;
    return entry;
}

void redis_set(struct memory_redis *redis, struct redis_key *key, const struct redis_word *field,
               const struct redis_word *value)
{
    const uint32_t hash = hash_of(field->text, field->length);
    struct redis_entry *entry = find_entry(redis, key, field, hash);
    if (entry == NULL) {
        entry = add_entry(redis, key, field, hash);
    }
    assert(value->length <= REDIS_VALUE_BYTES);
    entry->value_length = (uint8_t)value->length;
    memcpy(entry->value, value->text, value->length);
}

bool redis_remove(struct memory_redis *redis, struct redis_key *key, const char *field,
                  size_t length)
{
    const struct redis_entry *entry = redis_get(redis, key, field, length);
    if (entry == NULL) {
        return false;
    }
    if (entry->before != 0) {
        redis->entries[entry->before - 1].next = entry->next;
    } else {
        key->first = entry->next;
    }
    if (entry->next != 0) {
        redis->entries[entry->next - 1].before = entry->before;
    } else {
        key->last = entry->before;
    }
    drop_entry(redis, (uint16_t)(entry - redis->entries + 1));
    if (--key->count == 0) {
        key->type = REDIS_NONE;
    }
    return true;
}

size_t redis_scan(struct memory_redis *redis, const struct redis_key *key, uint32_t cursor,
                  size_t wanted, const struct redis_entry **out_entries, uint32_t *out_cursor)
{
    size_t count = 0;
    *out_cursor = 0;
    for (;;) {
        const struct redis_entry *next = NULL;
        for (uint16_t at = key->first; at != 0; at = redis->entries[at - 1].next) {
            const struct redis_entry *entry = &redis->entries[at - 1];
            if (entry->hash > cursor && (next == NULL || entry->hash < next->hash)) {
                next = entry;
            }
        }
        if (next == NULL) {
            *out_cursor = 0;
            return count;
        }
        if (count == wanted) {
            return count;
        }
        out_entries[count++] = next;
        cursor = next->hash;
        *out_cursor = cursor;
    }
}

uint32_t redis_bit(const struct redis_key *key, uint32_t at)
{
    return at / 8 < key->bitmap_length ? key->bitmap[at / 8] >> (7 - at % 8) & 1u : 0;
}

uint32_t redis_bit_count(const struct redis_key *key)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < key->bitmap_length; i++) {
        count += (uint32_t)__builtin_popcount(key->bitmap[i]);
    }
    return count;
}
