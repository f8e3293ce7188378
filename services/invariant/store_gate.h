/* SPDX-License-Identifier: Apache-2.0
 * What the checker reads from Redis. Reads only: no call here, and nothing else in this daemon,
 * writes a key. Every reply comes back through the round's callback, with its token. */
#ifndef INVARIANT_STORE_GATE_H
#define INVARIANT_STORE_GATE_H

#include "lib/io/kv.h"
#include "lib/pure/gate_key.h"

enum { INVARIANT_SCAN_COUNT = 500, INVARIANT_LOG_COUNT = 500 };

/* One shard of one sale's gate in one epoch. */
struct invariant_gate {
    struct tg_kv *kv;
    const char *sale;
    uint32_t shard;
    uint64_t epoch;
};

/* Where a reply goes. */
struct invariant_answer {
    tg_kv_on_reply *on_reply;
    void *context;
    uint64_t token;
};

/* All return 0 (then the answer comes exactly once), TG_ERR_DISCONNECTED or TG_ERR_FULL. */
TG_MUST_CHECK int invariant_gate_server(struct tg_kv *kv, const struct invariant_answer *answer);
TG_MUST_CHECK int invariant_gate_look(const struct invariant_gate *gate, uint32_t item_count,
                                      const struct invariant_answer *answer);
/* A page of a hash or set; `cursor` as Redis gave it, "0" to begin. At most 2 ms of Redis's time.
 */
TG_MUST_CHECK int invariant_gate_scan(const struct invariant_gate *gate, enum tg_gate_key key,
                                      const char *cursor, const struct invariant_answer *answer);
/* The free map of an item, whole: 125 kB at a million units. */
TG_MUST_CHECK int invariant_gate_map(const struct invariant_gate *gate, uint32_t item,
                                     const struct invariant_answer *answer);
/* Entries of the log after a sequence, oldest first, at most `count`. */
TG_MUST_CHECK int invariant_gate_log(const struct invariant_gate *gate, uint64_t after,
                                     uint32_t count, const struct invariant_answer *answer);

#endif
