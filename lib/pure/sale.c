/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/pure/sale.h"

#include <string.h>

const char *tg_challenge_before_name(uint32_t before)
{
    static const char *const names[] = {"none", "ticket", "pass"};
    return names[before <= TG_CHALLENGE_PASS ? before : TG_CHALLENGE_NONE];
}

static const char *const orders[] = {
    [TG_ORDER_FIFO] = "fifo", [TG_ORDER_RANDOM] = "random", [TG_ORDER_LOTTERY] = "lottery"};

const char *tg_order_name(enum tg_order order)
{
    return orders[order];
}

bool tg_order_parse(const char *text, enum tg_order *out_order)
{
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        if (strcmp(orders[i], text) == 0) {
            *out_order = (enum tg_order)i;
            return true;
        }
    }
    return false;
}

enum tg_phase tg_sale_phase(const struct tg_sale *sale, struct tg_mono now)
{
    if (now.ms - sale->heard.ms > TG_MAX_STATE_STALE_MS) {
        return TG_PHASE_PAUSED;
    }
    switch (sale->phase) {
    case TG_PHASE_OPEN:
        return sale->pause_count + sale->own_pause_count > 0 ? TG_PHASE_PAUSED : TG_PHASE_OPEN;
    case TG_PHASE_UNKNOWN:
    case TG_PHASE_SCHEDULED:
    case TG_PHASE_PAUSED:
    case TG_PHASE_SOLD_OUT:
    case TG_PHASE_CLOSED:
        break;
    }
    return sale->phase;
}

static bool names_pause(const struct tg_pause *pauses, uint32_t count, const char *id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(pauses[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

static bool lifted(const struct tg_sale *sale, const char *id)
{
    for (uint32_t i = 0; i < sale->lifted_count; i++) {
        if (strcmp(sale->lifted[i], id) == 0) {
            return true;
        }
    }
    return false;
}

void tg_sale_cause(struct tg_pause *pause, const char *cause, size_t length)
{
    if (length > sizeof pause->cause - 1) {
        length = sizeof pause->cause - 1;
        while (length > 0 && ((uint8_t)cause[length] & 0xc0) == 0x80) {
            length--;
        }
    }
    memcpy(pause->cause, cause, length);
    pause->cause[length] = '\0';
}

int tg_sale_pause(struct tg_sale *sale, const char *id, const char *cause)
{
    size_t id_length = strlen(id);
    if (id_length == 0 || id_length > TG_BASE32_ID_LENGTH) {
        return TG_ERR_RANGE;
    }
    if (names_pause(sale->own_pauses, sale->own_pause_count, id) ||
        names_pause(sale->pauses, sale->pause_count, id) || lifted(sale, id)) {
        return 0; /* a replay of a pause that is known, or known to be over */
    }
    if (sale->own_pause_count == TG_MAX_PAUSES) {
        return TG_ERR_FULL;
    }
    struct tg_pause *pause = &sale->own_pauses[sale->own_pause_count++];
    memcpy(pause->id, id, id_length + 1);
    tg_sale_cause(pause, cause != NULL ? cause : "", cause != NULL ? strlen(cause) : 0);
    return 0;
}

void tg_sale_settle_pauses(struct tg_sale *sale)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < sale->own_pause_count; i++) {
        const char *id = sale->own_pauses[i].id;
        if (!lifted(sale, id) && !names_pause(sale->pauses, sale->pause_count, id)) {
            sale->own_pauses[kept++] = sale->own_pauses[i];
        }
    }
    sale->own_pause_count = kept;
}

int tg_sale_item(const struct tg_sale *sale, const char *sku)
{
    for (uint32_t i = 0; i < sale->item_count; i++) {
        if (strcmp(sale->items[i].sku, sku) == 0) {
            return (int)i;
        }
    }
    return -1;
}
