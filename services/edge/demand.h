/* SPDX-License-Identifier: Apache-2.0
 * What a buyer asks for: the body of a reserve request, read strictly, and its digest over one
 * canonical form, so that the same Idempotency-Key with another wish is noticed however it is
 * spelled. */
#ifndef EDGE_DEMAND_H
#define EDGE_DEMAND_H

#include "lib/pure/sale.h"

enum { EDGE_FAULT_BYTES = 192 };

struct edge_demand {
    uint32_t count; /* items asked for, each once, in the order of the sale's definition */
    struct {
        uint32_t item, quantity;
    } rows[TG_MAX_ITEMS_PER_SALE];
    uint8_t digest[TG_DIGEST_BYTES];
};

/* Empty body: one unit of the only item. Else {"items":[{"sku":"..","quantity":n}]}.
 * NONE, MALFORMED, ITEM_UNKNOWN or QUANTITY_INVALID; then out_fault is a sentence naming the
 * member. */
enum tg_reason edge_demand(const struct tg_sale *sale, const char *body, size_t length,
                           struct edge_demand *out_demand, char out_fault[EDGE_FAULT_BYTES]);

/* {"paymentId":"..","amount":n,"currency":"EUR"}: amount in minor units. NONE or MALFORMED. */
struct edge_payment {
    char id[TG_MAX_PAYMENT_ID_BYTES + 1];
    uint64_t amount_minor;
    char currency[4];
};
enum tg_reason edge_payment(const char *body, size_t length, struct edge_payment *out_payment,
                            char out_fault[EDGE_FAULT_BYTES]);

#endif
