/* SPDX-License-Identifier: Apache-2.0
 * The hash chain over an exported gate log: each entry's hash covers the entry and the hash before
 * it, so that nobody can change, drop or insert an entry later without every later hash changing.
 * Anyone can recompute it from tidegate.gate_log: the first 32 bytes of BLAKE2b-512 over
 * "gate_log", the columns sale .. source in their order, and the hash before (32 zero bytes before
 * the first entry), each as 8-byte little-endian length and bytes; numbers are 8 bytes
 * little-endian. */
#ifndef LEDGER_CORE_CHAIN_H
#define LEDGER_CORE_CHAIN_H

#include "services/ledger/core.h"

enum { LEDGER_CHAIN_BYTES = 32, LEDGER_LOG_KIND_BYTES = 16, LEDGER_INSTANCE_BYTES = 64 };

struct ledger_log_entry {
    uint64_t sequence;
    char kind[LEDGER_LOG_KIND_BYTES + 1];
    struct ledger_id id;
    uint32_t unit_count;
    struct tg_unit_ref units[TG_MAX_UNITS_PER_HOLD];
    int64_t stock_after;
    int64_t gate_ms;
    char source[LEDGER_INSTANCE_BYTES + 1];
};

/* Which gate's log. */
struct ledger_log_place {
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    uint64_t epoch;
    uint32_t shard;
};

enum { LEDGER_UNITS_TEXT_BYTES = TG_MAX_UNITS_PER_HOLD * 22 + 1 };
/* "item:unit,item:unit". Returns the length. */
size_t ledger_units_format(const struct tg_unit_ref *units, uint32_t count,
                           char out_text[LEDGER_UNITS_TEXT_BYTES]);

/* hash := BLAKE2b(entry, hash). */
void ledger_chain(uint8_t hash[LEDGER_CHAIN_BYTES], const struct ledger_log_place *place,
                  const struct ledger_log_entry *entry);

#endif
