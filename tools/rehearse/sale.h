/* SPDX-License-Identifier: Apache-2.0
 * The sale as the ledger has it: what buyers need to know to pay, and the referee to judge. */
#ifndef REHEARSE_SALE_H
#define REHEARSE_SALE_H

#include "lib/pure/limit.h"

#include <stdint.h>

struct rehearse_item {
    char sku[TG_MAX_SKU_BYTES + 1];
    uint64_t units, price_minor;
    char currency[4];
};

struct rehearse_sale {
    char name[TG_MAX_SALE_NAME_BYTES + 1];
    uint64_t generation, epoch, shards;
    uint32_t limit_per_buyer;
    uint64_t units;
    int64_t hold_ms, grace_ms, opens_at_ms;
    uint32_t item_count;
    struct rehearse_item items[TG_MAX_ITEMS_PER_SALE];
};

#endif
