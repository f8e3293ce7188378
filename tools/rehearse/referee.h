/* SPDX-License-Identifier: Apache-2.0
 * The referee: applies the rules R1-R7 of README.md to what buyers were told (seen.h) and what the
 * stores hold at the end. Pure: facts in, findings out. */
#ifndef REHEARSE_REFEREE_H
#define REHEARSE_REFEREE_H

#include "tools/rehearse/seen.h"

/* A row of the ledger. */
struct rehearse_row {
    uint8_t reservation[16];
    uint32_t buyer; /* UINT32_MAX: not one of ours */
    uint32_t item, unit;
    bool tombstone, confirmed;
    bool has_unit; /* a holding was found */
};

/* One change of the gate, in the order it happened; counters after it, summed over items and
 * shards. */
struct rehearse_stock {
    int64_t at_ms; /* since the run began; may be negative */
    uint64_t free, held;
};

/* What the stores hold at the end. */
struct rehearse_facts {
    uint64_t units;
    uint64_t live;        /* live holdings */
    uint64_t units_twice; /* units with several live owners */
    uint64_t buyers_over_limit;
    uint64_t gate_free, gate_held, gate_settled, gate_bits; /* BITCOUNT of the free maps */
    bool gate_known;
    struct rehearse_row *rows; /* sorted by reservation (rehearse_sort_rows) */
    size_t row_count;
    struct rehearse_stock *stock; /* in order */
    size_t stock_count;
    bool stock_known;           /* the whole history, of one epoch */
    uint64_t held_while_paused; /* holds in the gate's log after a pause and its lease */
    uint64_t alarms;
    bool corrupted; /* somebody tampered with a store: an alarm is due */
};

struct rehearse_findings {
    uint64_t oversold;                /* R1, units */
    uint64_t over_limit;              /* R1, buyers */
    uint64_t leaked;                  /* R2, units that neither store accounts for alike */
    uint64_t lost_holds;              /* R3: 201 without a row */
    uint64_t wrong_holds;             /* R3: a row, but not what was told */
    uint64_t wrong_orders;            /* R3: confirmed was told, the row says otherwise */
    uint64_t refused_after_win;       /* R4 */
    uint64_t two_for_one_key;         /* R4 */
    uint64_t false_sold_out;          /* R5 */
    struct rehearse_seen first_false; /* of them, when there is any, */
    struct rehearse_stock stock_then; /* and the stock when it was answered */
    uint64_t false_alarms;            /* R6: alarms although nothing was corrupted */
    bool alarm_missing;               /* R6: something was, and nobody noticed */
    uint64_t held_while_paused;       /* R7, holds */
    uint64_t told_late;     /* asked more than 1 s after the last unit was sold, and not told so */
    int64_t first_empty_ms; /* when stock was first 0; INT64_MAX: never */
    int64_t finished_ms;    /* when nothing was free nor held, to stay; INT64_MAX: never */
};

enum { REHEARSE_TOLD_WITHIN_MS = 1000, REHEARSE_CLOCK_SLACK_MS = 20 };

void rehearse_sort_rows(struct rehearse_facts *facts);

/* Sorts `log` by buyer, attempt and time. */
void rehearse_judge(struct rehearse_log *log, const struct rehearse_facts *facts,
                    struct rehearse_findings *out_findings);

/* R3-R5. */
uint64_t rehearse_wrong_answers(const struct rehearse_findings *findings);

#endif
