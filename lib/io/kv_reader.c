/* SPDX-License-Identifier: Apache-2.0
 * hiredis allocates an array when its length is announced, before anything of it has arrived, and
 * buffers a text for as long as it comes. Both are bounded here. */
#include "lib/io/kv_internal.h"

#include "lib/pure/limit.h"

static redisReplyObjectFunctions bounded;
static void *(*create_array)(const redisReadTask *task, int elements);

/* NULL ends the reply, and the connection with it, as if memory were short. */
static void *create_bounded_array(const redisReadTask *task, int elements)
{
    return elements <= TG_MAX_REPLY_ELEMENTS ? create_array(task, elements) : NULL;
}

void tg_kv_bound_reader(redisReader *reader)
{
    if (create_array == NULL) {
        bounded = *reader->fn; /* hiredis has one table for all its readers */
        create_array = bounded.createArray;
        bounded.createArray = create_bounded_array;
    }
    reader->fn = &bounded;
}

bool kv_reader_overfull(const redisReader *reader)
{
    return reader->len > TG_MAX_REPLY_BYTES;
}
