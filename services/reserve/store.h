/* SPDX-License-Identifier: Apache-2.0
 * The port to the gate's store: run one script. Adapters: Redis (store_redis.c) and a memory twin
 * with the same meaning (store_memory.c), for tests. */
#ifndef RESERVE_STORE_H
#define RESERVE_STORE_H

#include "services/reserve/script.h"

/* Called exactly once per accepted call, never from within reserve_store_run of the Redis adapter.
 * `answer` is borrowed. */
typedef void reserve_on_answer(void *context, uint64_t token, const struct reserve_answer *answer);

struct reserve_store {
    /* 0, or TG_ERR_DISCONNECTED or TG_ERR_FULL: nothing was done and on_answer is not called. */
    int (*run)(struct reserve_store *store, const struct reserve_call *call,
               reserve_on_answer *on_answer, void *context, uint64_t token);
    /* The run id and replication id of the connected, writable store; NULL while there is none. */
    const char *(*run_id)(const struct reserve_store *store);
    const char *(*replication_id)(const struct reserve_store *store);
    /* While there is none: what it said when it refused us, or "". */
    const char *(*fault)(const struct reserve_store *store);
    bool (*noeviction)(const struct reserve_store *store);
    /* Its settings as lines "name value"; nothing while there is none. */
    void (*configuration)(const struct reserve_store *store, char *out_text, size_t capacity);
    /* Asks whether it is still the primary it was when the connection opened; if not, the
     * connection is given up. Scripts that only read do not notice. Looks at its settings, too. */
    void (*check)(struct reserve_store *store);
};

/* Runs a call; one that is not accepted is answered at once with NOT_RUN, so that there is one path
 * for every outcome. */
void reserve_store_run(struct reserve_store *store, const struct reserve_call *call,
                       reserve_on_answer *on_answer, void *context, uint64_t token);

#endif
