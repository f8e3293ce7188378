/* SPDX-License-Identifier: Apache-2.0 */
#include "services/ledger/core.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void ledger_batches_init(struct ledger_batches *batches, struct ledger_batch *storage,
                         uint32_t count, uint32_t in_flight_max)
{
    assert(count >= 1 && in_flight_max >= 1);
    *batches =
        (struct ledger_batches){.count = count, .in_flight_max = in_flight_max, .batches = storage};
    for (uint32_t i = 0; i < count; i++) {
        storage[i].state = LEDGER_BATCH_FREE;
    }
}

/* FNV-1a over an id. Ids are MACs: spreading them is enough, nobody can choose them. */
static uint32_t slot_of(const char *id)
{
    uint32_t hash = 2166136261u;
    for (; *id != '\0'; id++) {
        hash = (hash ^ (uint8_t)*id) * 16777619u;
    }
    return hash % LEDGER_BATCH_INDEX;
}

/* The slot that holds this id, or the empty one where it belongs. */
static uint32_t find_slot(const struct ledger_batch *batch, const char *id)
{
    uint32_t slot = slot_of(id);
    while (batch->index[slot] != 0 &&
           strcmp(batch->holds[batch->index[slot] - 1].id.text, id) != 0) {
        slot = (slot + 1) % LEDGER_BATCH_INDEX;
    }
    return slot;
}

static bool takes(const struct ledger_batch *batch, const struct ledger_arrival *arrival)
{
    return batch->state == LEDGER_BATCH_COLLECTING && !batch->apart && !arrival->apart &&
           batch->count < TG_MAX_RECORD_BATCH && batch->follower_count < TG_MAX_RECORD_BATCH &&
           strcmp(batch->sale, arrival->sale) == 0;
}

static struct ledger_batch *batch_for(struct ledger_batches *batches, struct tg_mono now,
                                      const struct ledger_arrival *arrival)
{
    struct ledger_batch *unused = NULL;
    for (uint32_t i = 0; i < batches->count; i++) {
        struct ledger_batch *batch = &batches->batches[i];
        if (takes(batch, arrival)) {
            return batch;
        }
        if (batch->state == LEDGER_BATCH_FREE && unused == NULL) {
            unused = batch;
        }
    }
    if (unused != NULL) {
        unused->state = LEDGER_BATCH_COLLECTING;
        unused->apart = arrival->apart;
        memcpy(unused->sale, arrival->sale, strlen(arrival->sale) + 1);
        unused->opened = now;
        unused->count = 0;
        unused->follower_count = 0;
        memset(unused->index, 0, sizeof unused->index);
    }
    return unused;
}

bool ledger_batches_collect(struct ledger_batches *batches, struct tg_mono now,
                            const struct ledger_arrival *arrival)
{
    assert(strlen(arrival->sale) <= TG_MAX_SALE_NAME_BYTES);
    struct ledger_batch *batch = batch_for(batches, now, arrival);
    if (batch == NULL) {
        return false;
    }
    uint32_t slot = find_slot(batch, arrival->hold->id.text);
    if (batch->index[slot] != 0) {
        batch->follower_holds[batch->follower_count] = batch->index[slot] - 1u;
        batch->follower_tokens[batch->follower_count] = arrival->token;
        batch->follower_count++;
        return true;
    }
    batch->holds[batch->count] = *arrival->hold;
    batch->tokens[batch->count] = arrival->token;
    batch->count++;
    batch->index[slot] = (uint16_t)batch->count;
    return true;
}

uint32_t ledger_batches_next(struct ledger_batches *batches, struct tg_mono now)
{
    uint32_t oldest = LEDGER_NO_BATCH;
    if (batches->in_flight >= batches->in_flight_max) {
        return oldest;
    }
    for (uint32_t i = 0; i < batches->count; i++) {
        const struct ledger_batch *batch = &batches->batches[i];
        if (batch->state != LEDGER_BATCH_COLLECTING) {
            continue;
        }
        const bool ripe = batch->apart || batch->count == TG_MAX_RECORD_BATCH ||
                          batch->follower_count == TG_MAX_RECORD_BATCH ||
                          now.ms - batch->opened.ms >= TG_MAX_RECORD_BATCH_MS ||
                          batches->in_flight == 0;
        if (ripe &&
            (oldest == LEDGER_NO_BATCH || batch->opened.ms < batches->batches[oldest].opened.ms)) {
            oldest = i;
        }
    }
    if (oldest != LEDGER_NO_BATCH) {
        batches->batches[oldest].state = LEDGER_BATCH_IN_FLIGHT;
        batches->in_flight++;
    }
    return oldest;
}

void ledger_batches_done(struct ledger_batches *batches, uint32_t batch)
{
    assert(batch < batches->count && batches->batches[batch].state == LEDGER_BATCH_IN_FLIGHT);
    batches->batches[batch].state = LEDGER_BATCH_FREE;
    batches->in_flight--;
}

uint32_t ledger_batches_waiting(const struct ledger_batches *batches)
{
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < batches->count; i++) {
        const struct ledger_batch *batch = &batches->batches[i];
        if (batch->state != LEDGER_BATCH_FREE) {
            waiting += batch->count + batch->follower_count;
        }
    }
    return waiting;
}

enum tg_reason ledger_hold_judge(const struct tg_sale *sale, const struct ledger_hold *hold)
{
    enum tg_reason reason = TG_REASON_NONE;
    if (sale == NULL || sale->generation != hold->generation) {
        return reason;
    }
    for (uint32_t i = 0; i < hold->unit_count; i++) {
        const struct tg_unit_ref *unit = &hold->units[i];
        if (unit->item >= sale->item_count || unit->unit >= sale->items[unit->item].units) {
            return TG_REASON_UNIT_CONFLICT;
        }
        if (hold->slots[i] >= sale->limit_per_buyer) {
            reason = TG_REASON_LIMIT_CONFLICT;
        }
    }
    return reason;
}

void ledger_order_id(const char *reservation_id, char out_id[LEDGER_ORDER_ID_LENGTH + 1])
{
    struct tg_mac mac;
    uint8_t digest[16];
    char text[TG_BASE32_ID_LENGTH + 1];
    tg_mac_begin(&mac, NULL, "order");
    tg_mac_text(&mac, reservation_id);
    tg_mac_end(&mac, digest, sizeof digest);
    tg_base32_id_encode(digest, text);
    (void)snprintf(out_id, LEDGER_ORDER_ID_LENGTH + 1, "ord_%s", text);
}
