/* SPDX-License-Identifier: Apache-2.0
 * Continuity of a gate's log (part of check C1): every mutation since the last look, in sequence,
 * must lead from the stock then to the stock now. Entries come from the stream, and from the
 * ledger's gate_log where the stream was trimmed meanwhile: it is trimmed only up to what was
 * stored, so what the stream lacks was there before. Pure. */
#ifndef INVARIANT_CORE_LOG_H
#define INVARIANT_CORE_LOG_H

#include "lib/pure/hold_record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How far one shard's log is proved. Plain data; zero it when the epoch changes. */
struct invariant_log {
    uint64_t epoch;
    bool placed; /* `sequence` was taken from somewhere; false: ask the ledger for its head first */
    bool stock_known;  /* false until the first entry was seen */
    uint64_t sequence; /* the last one taken */
    int64_t stock;     /* after it, summed over items */
};

struct invariant_log_entry {
    uint64_t sequence;
    int64_t change; /* of the stock, by the entry's kind and units */
    int64_t stock_after;
    bool readable; /* kind and units are what they should be */
};

enum invariant_log_step {
    INVARIANT_LOG_TAKEN,
    INVARIANT_LOG_GAP, /* the entry is not the next one */
    INVARIANT_LOG_TORN /* it is, but does not give the stock it claims; or it cannot be read */
};

/* Takes the next entry. An entry at or before the position is TAKEN and changes nothing. */
enum invariant_log_step invariant_log_take(struct invariant_log *log,
                                           const struct invariant_log_entry *entry);

/* What a kind of entry does to the stock, times `unit_count`: hold -, release and return +, settle
 * 0. 0, or TG_ERR_MALFORMED for another kind. */
TG_MUST_CHECK int invariant_log_change(const char *kind, size_t kind_length, uint32_t unit_count,
                                       int64_t *out_change);

/* True when the position is the look's sequence and gives its stock. Before the first entry only
 * the sequence counts. */
bool invariant_log_meets(const struct invariant_log *log, uint64_t sequence, uint64_t stock);

#endif
