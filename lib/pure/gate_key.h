/* SPDX-License-Identifier: Apache-2.0
 * Names of the gate's keys, from the rows of catalog/keys.def: tg:{SALE.SHARD}:EPOCH:NAME, and
 * :ITEM where per item. The hash tag keeps the keys of one shard together. Pure. */
#ifndef TG_PURE_GATE_KEY_H
#define TG_PURE_GATE_KEY_H

#include "lib/pure/limit.h"

#include <stddef.h>
#include <stdint.h>

enum tg_gate_key {
#define TG_KEY(id, name, type, per_item, holds) TG_GATE_KEY_##id,
#include "catalog/keys.def"
#undef TG_KEY
    TG_GATE_KEY_COUNT
};

enum { TG_GATE_KEY_BYTES = TG_MAX_SALE_NAME_BYTES + 80 };

/* `sale` is a valid sale name; `item` counts only for keys per item. Returns the length, without
 * NUL. */
size_t tg_gate_key_format(const char *sale, uint32_t shard, uint64_t epoch, enum tg_gate_key key,
                          uint32_t item, char out_text[TG_GATE_KEY_BYTES]);

#endif
