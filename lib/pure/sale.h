/* SPDX-License-Identifier: Apache-2.0
 * What a daemon knows of a sale: its definition and its last state, as checked plain data. Filled
 * by lib/io/sales from ledger.sales and state.{sale}; read by every core. */
#ifndef TG_PURE_SALE_H
#define TG_PURE_SALE_H

#include "lib/pure/clock.h"
#include "lib/pure/draw.h"
#include "lib/pure/identity.h"
#include "lib/pure/limit.h"
#include "lib/pure/reason.h"

#include <stdbool.h>
#include <stdint.h>

enum tg_phase {
    TG_PHASE_UNKNOWN,
    TG_PHASE_SCHEDULED,
    TG_PHASE_OPEN,
    TG_PHASE_PAUSED,
    TG_PHASE_SOLD_OUT,
    TG_PHASE_CLOSED
};

/* Before what a proof of work is asked for. */
enum tg_challenge_before { TG_CHALLENGE_NONE, TG_CHALLENGE_TICKET, TG_CHALLENGE_PASS };
/* "none", "ticket", "pass"; "none" for anything else. */
const char *tg_challenge_before_name(uint32_t before);

/* How people are ordered. */
enum tg_order { TG_ORDER_FIFO, TG_ORDER_RANDOM, TG_ORDER_LOTTERY };

/* "fifo", "random", "lottery". */
const char *tg_order_name(enum tg_order order);
/* False for any other text. */
bool tg_order_parse(const char *text, enum tg_order *out_order);

struct tg_item {
    char sku[TG_MAX_SKU_BYTES + 1];
    uint32_t units;
    uint64_t price_minor;
    char currency[4];
};

struct tg_pause {
    char id[TG_BASE32_ID_LENGTH + 1];
    char cause[128];
};

struct tg_sale {
    char name[TG_MAX_SALE_NAME_BYTES + 1];
    uint64_t generation;
    /* definition */
    uint8_t definition_digest[TG_DIGEST_BYTES];
    uint32_t item_count;
    struct tg_item items[TG_MAX_ITEMS_PER_SALE];
    struct tg_wall opens_at;
    enum tg_order order;
    uint8_t commitment[TG_DRAW_BYTES];         /* of a draw's secret */
    char beacon[TG_MAX_BEACON_NAME_BYTES + 1]; /* of a draw; "" = none */
    uint32_t limit_per_buyer;
    int64_t hold_ms, grace_ms, extend_ms;
    uint32_t extensions_max;
    uint64_t pace_start_milli, pace_min_milli, pace_max_milli;
    int64_t proof_every_ms, proof_lease_ms;
    bool remaining_bucketed;
    uint32_t shards;
    uint32_t challenge; /* enum tg_challenge_before */
    /* state */
    enum tg_phase phase;
    uint64_t epoch;
    bool armed;
    char run_id[41], replication_id[41];
    uint64_t control_sequence;
    uint32_t pause_count;
    struct tg_pause pauses[TG_MAX_PAUSES];
    uint32_t lifted_count;
    char lifted[TG_MAX_LIFTED][TG_BASE32_ID_LENGTH + 1];
    struct tg_wall last_clean;
    uint32_t clean_rounds;
    uint64_t pace_milli; /* operator's, 0 = start */
    bool opened;         /* has been open */
    struct tg_draw draw;
    /* own */
    struct tg_mono heard; /* when state was last heard */
    uint32_t
        own_pause_count; /* pauses honoured on receipt of a command and not yet lifted by state */
    struct tg_pause own_pauses[TG_MAX_PAUSES];
};

/* The phase to act on: PAUSED while any pause is active or own, or no state was heard for
 * TG_MAX_STATE_STALE_MS; never turns SCHEDULED, SOLD_OUT or CLOSED into PAUSED unless the state
 * itself is stale. */
enum tg_phase tg_sale_phase(const struct tg_sale *sale, struct tg_mono now);

/* As much of a cause as fits, never cut within a character. `cause` need not be terminated. */
void tg_sale_cause(struct tg_pause *pause, const char *cause, size_t length);

/* Who comes before the opening is drawn, not lined up. */
static inline bool tg_sale_draws(const struct tg_sale *sale)
{
    return sale->order != TG_ORDER_FIFO;
}

/* Honour a pause at once; idempotent by id. TG_ERR_FULL when too many. */
TG_MUST_CHECK int tg_sale_pause(struct tg_sale *sale, const char *id, const char *cause);

/* Drop own pauses that the state's lifted list names, or that its active list now carries. */
void tg_sale_settle_pauses(struct tg_sale *sale);

/* Index of the item of this sku, or -1. */
int tg_sale_item(const struct tg_sale *sale, const char *sku);

#endif
