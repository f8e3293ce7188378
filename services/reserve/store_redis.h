/* SPDX-License-Identifier: Apache-2.0
 * The gate's store on Redis. */
#ifndef RESERVE_STORE_REDIS_H
#define RESERVE_STORE_REDIS_H

#include "services/reserve/store.h"

#include <uv.h>

/* on_change: the connection became usable (true), or was lost or is a replica (false). */
TG_MUST_CHECK int reserve_store_redis_open(uv_loop_t *loop, const char *url,
                                           void (*on_change)(void *context, bool usable),
                                           void *context, struct reserve_store **out_store);
struct reserve_store *reserve_store_redis_free(struct reserve_store *store);

/* What an error of Redis means for the call: NOT_RUN or BROKEN. `out_reconnect`: the connection
 * leads to the wrong place. */
enum reserve_ending reserve_redis_error(const char *text, bool *out_reconnect);

#endif
