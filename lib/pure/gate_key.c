/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/gate_key.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

static const struct {
    const char *name;
    bool per_item;
} rows[TG_GATE_KEY_COUNT] = {
#define TG_KEY(id, name, type, per_item, holds) {name, per_item},
#include "catalog/keys.def"
#undef TG_KEY
};

size_t tg_gate_key_format(const char *sale, uint32_t shard, uint64_t epoch, enum tg_gate_key key,
                          uint32_t item, char out_text[TG_GATE_KEY_BYTES])
{
    assert(key < TG_GATE_KEY_COUNT);
    int length = snprintf(out_text, TG_GATE_KEY_BYTES, "tg:{%s.%" PRIu32 "}:%" PRIu64 ":%s", sale,
                          shard, epoch, rows[key].name);
    if (rows[key].per_item && length > 0 && length < TG_GATE_KEY_BYTES) {
        length +=
            snprintf(out_text + length, TG_GATE_KEY_BYTES - (size_t)length, ":%" PRIu32, item);
    }
    assert(length > 0 && length < TG_GATE_KEY_BYTES);
    return (size_t)length;
}
