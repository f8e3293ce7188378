// SPDX-License-Identifier: Apache-2.0
#include "services/queue/keeper.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_BITS = 12, CLOSE_SLOTS = 16384 };

struct queue_keeper *queue_keeper_new(uint64_t generation, uint64_t term, uint32_t serial)
{
    struct queue_keeper *keeper = calloc(1, sizeof *keeper);
    void *slots = calloc(1, tg_roster_table_bytes(FIRST_BITS));
    if (keeper == NULL || slots == NULL) {
        free(slots);
        free(keeper);
        return NULL;
    }
    keeper->generation = generation;
    keeper->term = term;
    keeper->serial = serial;
    tg_roster_begin(&keeper->roster, slots, FIRST_BITS);
    return keeper;
}

struct queue_keeper *queue_keeper_free(struct queue_keeper *keeper)
{
    if (keeper != NULL) {
        free(keeper->roster.slots);
        free(keeper);
    }
    return NULL;
}

static int grow(struct queue_keeper *keeper)
{
    const unsigned bits = keeper->roster.bits + 1;
    struct tg_roster larger;
    void *slots = calloc(1, tg_roster_table_bytes(bits));
    if (slots == NULL) {
        return TG_ERR_FULL;
    }
    tg_roster_begin(&larger, slots, bits);
    if (tg_roster_move(&larger, &keeper->roster) != 0) {
        free(slots);
        return TG_ERR_FULL;
    }
    free(keeper->roster.slots);
    keeper->roster = larger;
    return 0;
}

/* 1: new; 0: known; or an error. */
static int add(struct queue_keeper *keeper, const uint8_t entrant[TG_ENTRANT_BYTES])
{
    if (keeper->roster.count == TG_MAX_ROSTER_ENTRANTS) {
        return TG_ERR_FULL;
    }
    if (tg_roster_crowded(&keeper->roster) && grow(keeper) != 0) {
        return TG_ERR_FULL;
    }
    return tg_roster_add(&keeper->roster, entrant);
}

int queue_keeper_enter(struct queue_keeper *keeper, const uint8_t *entrants, uint32_t count)
{
    if (keeper->state.unstored + count > TG_MAX_ROSTER_UNSTORED) {
        return TG_ERR_FULL;
    }
    for (uint32_t i = 0; i < count; i++) {
        const uint8_t *entrant = entrants + (size_t)i * TG_ENTRANT_BYTES;
        int added = add(keeper, entrant);
        if (added < 0) {
            return added;
        }
        if (added == 1) {
            memcpy(keeper->unstored[keeper->pushed++ % TG_MAX_ROSTER_UNSTORED], entrant,
                   TG_ENTRANT_BYTES);
            keeper->state.unstored++;
        }
    }
    return 0;
}

int queue_keeper_loaded(struct queue_keeper *keeper, const uint8_t *entrants, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        int added = add(keeper, entrants + (size_t)i * TG_ENTRANT_BYTES);
        if (added < 0) {
            return added;
        }
    }
    keeper->stored += count;
    return 0;
}

uint32_t queue_keeper_page(struct queue_keeper *keeper,
                           uint8_t out_entrants[TG_MAX_ROSTER_PAGE][TG_ENTRANT_BYTES])
{
    uint32_t count =
        keeper->state.unstored < TG_MAX_ROSTER_PAGE ? keeper->state.unstored : TG_MAX_ROSTER_PAGE;
    for (uint32_t i = 0; i < count; i++) {
        memcpy(out_entrants[i], keeper->unstored[(keeper->flushed + i) % TG_MAX_ROSTER_UNSTORED],
               TG_ENTRANT_BYTES);
    }
    keeper->sent = count;
    return count;
}

void queue_keeper_flushed(struct queue_keeper *keeper)
{
    keeper->flushed += keeper->sent;
    keeper->stored += keeper->sent;
    keeper->state.unstored -= keeper->sent;
    keeper->sent = 0;
}

bool queue_keeper_close(struct queue_keeper *keeper)
{
    if (!keeper->state.closing) {
        keeper->state.closing = true;
        tg_roster_close_begin(&keeper->closing);
    }
    if (!tg_roster_close_step(&keeper->roster, &keeper->closing, CLOSE_SLOTS)) {
        return false;
    }
    tg_merkle_root(&keeper->closing.merkle, keeper->root);
    keeper->state.closed = true;
    return true;
}
