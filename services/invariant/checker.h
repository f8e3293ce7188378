/* SPDX-License-Identifier: Apache-2.0
 * The checker's shell: what its files share. checker.c turns and wires, round.c reads, report.c
 * tells the outcome, pause.c stops the sale, export.c carries the gate's log to the ledger. */
#ifndef INVARIANT_CHECKER_H
#define INVARIANT_CHECKER_H

#include "lib/io/app.h"
#include "lib/io/kv.h"
#include "lib/io/pg.h"
#include "lib/io/sales.h"
#include "lib/pure/pass.h"
#include "services/invariant/core.h"
#include "services/invariant/settings.h"
#include "services/invariant/wire.h"

struct invariant_entries {
    struct invariant_entry *at;
    size_t count, room;
};
struct invariant_rows {
    struct invariant_row *at;
    size_t count, room;
};
struct invariant_holdings {
    struct invariant_holding *at;
    size_t count, room;
};

enum invariant_export_step {
    INVARIANT_EXPORT_REST,
    INVARIANT_EXPORT_READ,
    INVARIANT_EXPORT_STORE,
    INVARIANT_EXPORT_TRIM
};

/* Export of one shard's log. */
struct invariant_export {
    enum invariant_export_step step;
    uint64_t epoch;
    uint64_t stored; /* the ledger has everything up to here */
    bool more;       /* the page read was a full one */
    bool stuck_told; /* a gap was logged */
    struct tg_mono next;
};

/* One sale's work; made when the sale is first heard of, kept for the process's life. */
struct invariant_work {
    struct invariant_sale core;
    struct invariant_server server;
    struct invariant_look look1[INVARIANT_SHARDS_MAX], look2[INVARIANT_SHARDS_MAX];
    struct invariant_ledger ledger;
    struct invariant_entries r1, r2, claims;
    struct invariant_rows rows;
    struct invariant_holdings holdings;
    struct invariant_export exports[INVARIANT_SHARDS_MAX];
    uint32_t gate_pause_count;
    struct tg_pause gate_pauses[INVARIANT_GATE_PAUSES_MAX]; /* by the last look of shard 0 */
    char cursor[24];                                        /* of the scan in progress */
    uint32_t map_item;                                      /* whose free map is read next */
    uint64_t free_tag;
    struct invariant_judgement judgement;
    char detail[768];
    char told[768]; /* the last alarm's detail that was logged */
    bool proved;    /* a clean round was seen */
    struct tg_mono clean;
};

struct invariant {
    struct tg_app *app;
    struct tg_sales *sales;
    struct tg_kv *kv;
    struct tg_pg *pg;
    const char *keys_folder;
    struct tg_sign_key key;
    uint8_t tag_key[INVARIANT_TAG_KEY_BYTES];
    bool draining;
    struct invariant_work *works[TG_MAX_SALES]; /* by the sale's index in `sales` */
};

/* checker.c */
TG_MUST_CHECK int invariant_open(struct tg_app *app, const struct invariant_settings *settings,
                                 struct invariant **out_invariant);
struct invariant *invariant_free(struct invariant *invariant);
bool invariant_ready(const struct invariant *invariant, const char **out_why);
void invariant_drain(struct invariant *invariant);
size_t invariant_busy(const struct invariant *invariant);

/* round.c: goes on with the round until it waits for an answer, or is over. */
void invariant_proceed(struct invariant *invariant, size_t index);

/* report.c: the round was judged, void, or Redis is lost (`judgement` says so): metrics, log,
 * ledger, attestation, pause. */
void invariant_report(struct invariant *invariant, size_t index);
/* report.c: a judgement for a round that could not be read. */
void invariant_judge_void(struct invariant_judgement *out_judgement, const char *note);
void invariant_judge_lost(struct invariant_judgement *out_judgement);

/* pause.c: sends a pause command once. */
void invariant_send_pause(struct invariant *invariant, size_t index, const char *id,
                          const char *cause);
/* pause.c: carries what a look found in the gate and the ledger lacks to the ledger. */
void invariant_carry_pauses(struct invariant *invariant, size_t index);

/* export.c: a turn of one sale's exports. */
void invariant_export_turn(struct invariant *invariant, size_t index, struct tg_mono now);

#endif
