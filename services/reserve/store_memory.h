/* SPDX-License-Identifier: Apache-2.0
 * The gate's store in memory: the meaning of the scripts in plain C, for tests. One gate, linear
 * search, a clock that the test sets. Answers within run(): what is decided at once is told at
 * once. It never notices wrong types; it cannot have any. */
#ifndef RESERVE_STORE_MEMORY_H
#define RESERVE_STORE_MEMORY_H

#include "services/reserve/store.h"

enum { RESERVE_MEMORY_ROWS = 4096, RESERVE_MEMORY_UNITS = 4096, RESERVE_MEMORY_PAUSES = 64 };

enum reserve_memory_state { RESERVE_MEMORY_HELD, RESERVE_MEMORY_SETTLED, RESERVE_MEMORY_RELEASED };

struct reserve_memory_row {
    enum reserve_memory_state state;
    bool unacked;
    bool without_units; /* loaded when it had ended already */
    char reservation[TG_RESERVATION_ID_LENGTH + 1];
    struct tg_hold_record record;
};

struct reserve_memory_item {
    uint32_t initial, stock, held, settled;
    uint32_t cursor; /* in bytes of the map, as the script keeps it */
    bool free[RESERVE_MEMORY_UNITS];
};

struct reserve_memory {
    struct reserve_store port; /* first */
    char run_id_text[41], replication_id_text[41];
    bool connected, fails; /* fails: the next call runs and its answer is lost */
    int64_t now_ms;
    bool known, armed, loaded;
    char seal[RESERVE_SEAL_BYTES], ctl[TG_GATE_KEY_BYTES], loader[40];
    int64_t epoch, limit, sequence, attested_until_ms, attested_at_ms, load_at_ms, load_page;
    uint32_t item_count;
    struct reserve_memory_item items[TG_MAX_ITEMS_PER_SALE];
    uint32_t row_count;
    struct reserve_memory_row rows[RESERVE_MEMORY_ROWS];
    uint32_t pause_count;
    char pauses[RESERVE_MEMORY_PAUSES][TG_BASE32_ID_LENGTH + 1];
    char out[65536]; /* words of the answer */
    size_t out_used, word_count;
    struct reserve_word words[RESERVE_WORDS_MAX];
};

/* Empty and connected. The struct is large: not on the stack. */
void reserve_memory_init(struct reserve_memory *memory, const char *run_id,
                         const char *replication_id);

#endif
