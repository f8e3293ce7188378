/* SPDX-License-Identifier: Apache-2.0
 * States and definitions as they come from the bus, checked, into the view. A state that is older
 * than the known one is not taken: neither its freshness nor its list of lifted pauses counts. */
#include "lib/io/sales_inner.h"

#include "lib/io/now.h"

#include <string.h>

static enum tg_phase phase_of(Tidegate__V1__SalePhase phase)
{
    switch (phase) {
    case TIDEGATE__V1__SALE_PHASE__SALE_PHASE_SCHEDULED:
        return TG_PHASE_SCHEDULED;
    case TIDEGATE__V1__SALE_PHASE__SALE_PHASE_OPEN:
        return TG_PHASE_OPEN;
    case TIDEGATE__V1__SALE_PHASE__SALE_PHASE_PAUSED:
        return TG_PHASE_PAUSED;
    case TIDEGATE__V1__SALE_PHASE__SALE_PHASE_SOLD_OUT:
        return TG_PHASE_SOLD_OUT;
    case TIDEGATE__V1__SALE_PHASE__SALE_PHASE_CLOSED:
        return TG_PHASE_CLOSED;
    case TIDEGATE__V1__SALE_PHASE__SALE_PHASE_UNSPECIFIED:
    case _TIDEGATE__V1__SALE_PHASE_IS_INT_SIZE:
        break;
    }
    return TG_PHASE_UNKNOWN;
}

Tidegate__V1__SalePhase tg_phase_told(enum tg_phase phase)
{
    switch (phase) {
    case TG_PHASE_UNKNOWN:
        break;
    case TG_PHASE_SCHEDULED:
        return TIDEGATE__V1__SALE_PHASE__SALE_PHASE_SCHEDULED;
    case TG_PHASE_OPEN:
        return TIDEGATE__V1__SALE_PHASE__SALE_PHASE_OPEN;
    case TG_PHASE_PAUSED:
        return TIDEGATE__V1__SALE_PHASE__SALE_PHASE_PAUSED;
    case TG_PHASE_SOLD_OUT:
        return TIDEGATE__V1__SALE_PHASE__SALE_PHASE_SOLD_OUT;
    case TG_PHASE_CLOSED:
        return TIDEGATE__V1__SALE_PHASE__SALE_PHASE_CLOSED;
    }
    return TIDEGATE__V1__SALE_PHASE__SALE_PHASE_UNSPECIFIED;
}

static bool pause_id_valid(const char *id)
{
    uint8_t bytes[16];

    return tg_base32_id_decode(id, strlen(id), bytes) == 0;
}

static bool length_is(const ProtobufCBinaryData *bytes, size_t length)
{
    return bytes->len == 0 || bytes->len == length;
}

static bool draw_valid(const Tidegate__V1__Draw *draw)
{
    return draw == NULL ||
           (length_is(&draw->root, TG_DRAW_BYTES) && length_is(&draw->secret, TG_DRAW_BYTES) &&
            length_is(&draw->seed, TG_DRAW_BYTES) && draw->beacon.len <= TG_BEACON_BYTES &&
            draw->count <= TG_MAX_ROSTER_ENTRANTS && draw->index_at_open <= INT64_MAX);
}

static void take_bytes(uint8_t *out_bytes, const ProtobufCBinaryData *from)
{
    if (from->len > 0) {
        memcpy(out_bytes, from->data, from->len);
    }
}

static void take_draw(struct tg_draw *out, const Tidegate__V1__Draw *draw)
{
    memset(out, 0, sizeof(*out));
    if (draw == NULL || !draw->frozen || draw->root.len == 0) {
        return;
    }
    out->frozen = true;
    out->count = draw->count;
    out->index_at_open = draw->index_at_open;
    out->revealed = draw->seed.len > 0 && draw->secret.len > 0;
    out->beacon_length = (uint8_t)draw->beacon.len;
    take_bytes(out->root, &draw->root);
    take_bytes(out->beacon, &draw->beacon);
    take_bytes(out->secret, &draw->secret);
    take_bytes(out->seed, &draw->seed);
}

static bool well_formed(const Tidegate__V1__SaleState *state)
{
    if (phase_of(state->phase) == TG_PHASE_UNKNOWN || state->generation == 0 ||
        state->n_pauses > TG_MAX_PAUSES || state->n_lifted > TG_MAX_LIFTED ||
        state->definition_digest.len != TG_DIGEST_BYTES || !draw_valid(state->draw) ||
        strlen(state->run_id) >= sizeof(((struct tg_sale *)0)->run_id) ||
        strlen(state->replication_id) >= sizeof(((struct tg_sale *)0)->replication_id)) {
        return false;
    }
    for (size_t i = 0; i < state->n_pauses; i++) {
        if (!pause_id_valid(state->pauses[i]->pause_id)) {
            return false;
        }
    }
    for (size_t i = 0; i < state->n_lifted; i++) {
        if (!pause_id_valid(state->lifted[i])) {
            return false;
        }
    }
    return true;
}

/* Several ledgers speak, and the bus may deliver in any order or again. Generation, epoch and
 * control sequence never go back; between states of the same sequence the ledger's clock decides,
 * unless we have gone stale: then its clock was set back, and holding on to the old one would keep
 * the sale paused. */
static bool newer(const struct sales_entry *entry, const Tidegate__V1__SaleState *state,
                  struct tg_mono now)
{
    const struct tg_sale *sale = &entry->sale;

    if (state->generation != sale->generation || !entry->stated) {
        return state->generation >= sale->generation;
    }
    if (state->epoch != sale->epoch) {
        return state->epoch > sale->epoch;
    }
    if (state->control_sequence != sale->control_sequence) {
        return state->control_sequence > sale->control_sequence;
    }
    return state->ledger_now_ms >= entry->ledger_now_ms ||
           now.ms - sale->heard.ms > TG_MAX_STATE_STALE_MS;
}

static void take_pauses(struct tg_sale *sale, const Tidegate__V1__SaleState *state)
{
    sale->pause_count = (uint32_t)state->n_pauses;
    for (size_t i = 0; i < state->n_pauses; i++) {
        struct tg_pause *pause = &sale->pauses[i];
        memcpy(pause->id, state->pauses[i]->pause_id, sizeof(pause->id));
        tg_sale_cause(pause, state->pauses[i]->cause, strlen(state->pauses[i]->cause));
    }
    sale->lifted_count = (uint32_t)state->n_lifted;
    for (size_t i = 0; i < state->n_lifted; i++) {
        memcpy(sale->lifted[i], state->lifted[i], sizeof(sale->lifted[i]));
    }
    tg_sale_settle_pauses(sale);
}

static void begin_generation(struct sales_entry *entry, uint64_t generation)
{
    entry->sale.generation = generation;
    entry->sale.item_count =
        0; /* the gate of this generation is not read by the items of another */
    entry->defined = false;
    if (entry->pause_generation < generation) {
        entry->sale.own_pause_count = 0; /* they were meant for an earlier sale of this name */
    }
}

bool sales_state_take(struct sales_entry *entry, const Tidegate__V1__SaleState *state,
                      struct tg_mono now)
{
    struct tg_sale *sale = &entry->sale;

    if (!well_formed(state) || !newer(entry, state, now)) {
        return false;
    }
    if (state->generation != sale->generation) {
        begin_generation(entry, state->generation);
    }
    entry->stated = true;
    entry->ledger_now_ms = state->ledger_now_ms;
    entry->announced = phase_of(state->phase);
    sale->phase = entry->defined ? entry->announced : TG_PHASE_UNKNOWN;
    sale->epoch = state->epoch;
    sale->armed = state->armed;
    memcpy(sale->run_id, state->run_id, strlen(state->run_id) + 1);
    memcpy(sale->replication_id, state->replication_id, strlen(state->replication_id) + 1);
    sale->control_sequence = state->control_sequence;
    sale->last_clean = (struct tg_wall){state->last_clean_ms};
    sale->clean_rounds = state->clean_rounds;
    sale->pace_milli = state->pace_milli;
    sale->opened = state->opened;
    take_draw(&sale->draw, state->draw);
    sale->heard = now;
    take_pauses(sale, state);
    memcpy(entry->announced_digest, state->definition_digest.data, TG_DIGEST_BYTES);
    entry->wanted = !entry->defined ||
                    memcmp(sale->definition_digest, entry->announced_digest, TG_DIGEST_BYTES) != 0;
    return true;
}

bool sales_definition_take(struct sales_entry *entry,
                           const Tidegate__V1__SaleDefinition *definition)
{
    char fault[160];

    if (definition->generation == 0 || tg_definition_check(definition, fault, sizeof(fault)) != 0 ||
        (entry->stated && definition->generation != entry->sale.generation)) {
        return false;
    }
    tg_definition_read(definition, &entry->sale);
    entry->sale.generation = definition->generation;
    entry->defined = true;
    entry->sale.phase = entry->announced;
    entry->wanted = entry->stated && memcmp(entry->sale.definition_digest, entry->announced_digest,
                                            TG_DIGEST_BYTES) != 0;
    return true;
}
