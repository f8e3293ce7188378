/* SPDX-License-Identifier: Apache-2.0
 * The proof itself: comparisons over what one round read, as sorted arrays handed in. Every check
 * is one-sided: it holds at any delay between the reads of a correct run, so a failure is never a
 * matter of timing. The reads and their order: R1 (per shard: look, held, unacked, settled,
 * released) -> buyers -> P (one snapshot of the ledger) -> R2 (held, settled, released, look).
 * Reads nothing itself, allocates nothing. */
#ifndef INVARIANT_CORE_CHECK_H
#define INVARIANT_CORE_CHECK_H

#include "lib/pure/hold_record.h"
#include "lib/pure/identity.h"
#include "lib/pure/limit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    INVARIANT_SHARDS_MAX = 16,
    INVARIANT_IDS_TOLD = 5,
    INVARIANT_ID_BYTES = 16,
    INVARIANT_SERVER_ID = 41
};

/* Where the gate has a reservation; one scan may see it in two places when it moves meanwhile. */
enum invariant_place {
    INVARIANT_HELD = 1,
    INVARIANT_UNACKED = 2,
    INVARIANT_SETTLED = 4,
    INVARIANT_RELEASED = 8,
    INVARIANT_CLAIMED = 16, /* by a row of buyers */
    INVARIANT_GARBLED = 32  /* its record cannot be read */
};

/* One reservation as the gate has it. 48 bytes: 100,000 take 5 MB. */
struct invariant_entry {
    uint8_t id[INVARIANT_ID_BYTES];
    uint64_t units_tag; /* of its units, in any order; 0 with unit_count 0 */
    uint64_t user_tag;
    uint64_t slots;      /* bit n: the buyer's slot n */
    uint32_t unit_count; /* 0: seen without its record */
    uint32_t places;     /* bits of enum invariant_place */
};

enum invariant_state {
    INVARIANT_PENDING,
    INVARIANT_CONFIRMED,
    INVARIANT_EXPIRED,
    INVARIANT_CANCELLED
};

/* One reservation as the ledger's snapshot has it. */
struct invariant_row {
    uint8_t id[INVARIANT_ID_BYTES];
    uint64_t units_tag;
    uint64_t user_tag;
    uint64_t slots;
    uint32_t unit_count; /* holdings, live or not; 0 for a tombstone */
    uint32_t live_count;
    uint8_t state; /* enum invariant_state */
    bool restocked;
    bool obeyed; /* a gate of the present epoch did what this state orders */
};

/* One live holding of the snapshot. */
struct invariant_holding {
    uint8_t id[INVARIANT_ID_BYTES];
    uint64_t user_tag;
    uint32_t item;
    uint32_t unit;
    uint32_t slot;
};

struct invariant_item {
    uint64_t initial, stock, held, settled;
    uint64_t free_bits; /* BITCOUNT of the free map, read in the same step */
};

/* One shard's O(1) look, one atomic step at the gate. */
struct invariant_look {
    bool present;  /* there is a ctl */
    bool readable; /* every field of it is what it should be; else only `present` counts */
    bool armed;
    char run_id[INVARIANT_SERVER_ID];
    char replication_id[INVARIANT_SERVER_ID];
    uint64_t sequence; /* of the log */
    int64_t gate_ms;   /* Redis's clock */
    uint32_t item_count;
    struct invariant_item items[TG_MAX_ITEMS_PER_SALE];
};

/* The Redis behind the connection, read once per round. */
struct invariant_server {
    char run_id[INVARIANT_SERVER_ID];
    char replication_id[INVARIANT_SERVER_ID];
    bool primary;
    bool evicts; /* it may drop keys when it is out of memory */
};

/* What the snapshot says of the sale itself. */
struct invariant_ledger {
    uint64_t epoch, generation;
    bool armed, closed;
    char run_id[INVARIANT_SERVER_ID]; /* armed ones */
    char replication_id[INVARIANT_SERVER_ID];
    char system_identifier[24], timeline[24]; /* when the gate was armed; "" = not stored */
    char system_identifier_now[24], timeline_now[24];
    bool in_recovery; /* a standby answered */
    uint32_t shards;
    uint32_t item_count;
    uint32_t units[TG_MAX_ITEMS_PER_SALE];
    uint64_t holdings_counted; /* by the ledger itself, joined to nothing */
    uint64_t holdings_joined;  /* as read with their reservations */
    bool one_owner, one_slot;  /* the unique indexes over live holdings are there and in force */
};

enum invariant_check {
    INVARIANT_CHECK_G,
    INVARIANT_CHECK_C0,
    INVARIANT_CHECK_C1,
    INVARIANT_CHECK_C2,
    INVARIANT_CHECK_A,
    INVARIANT_CHECK_B,
    INVARIANT_CHECK_C,
    INVARIANT_CHECK_D,
    INVARIANT_CHECK_E,
    INVARIANT_CHECK_U,
    INVARIANT_CHECK_L,
    INVARIANT_CHECKS
};
/* "G", "C0", ... */
const char *invariant_check_name(enum invariant_check check);

/* One failed check with a few of the reservations it fails for. */
struct invariant_finding {
    uint32_t failures;
    uint32_t id_count;
    uint8_t ids[INVARIANT_IDS_TOLD][INVARIANT_ID_BYTES];
    const char *note; /* static text: which of the check's conditions */
};

enum invariant_outcome { INVARIANT_CLEAN, INVARIANT_VOID, INVARIANT_ALARM };

struct invariant_judgement {
    enum invariant_outcome outcome;
    const char *void_note; /* static text when void */
    struct invariant_finding findings[INVARIANT_CHECKS];
    /* stock + pending + confirmed + in_flight - release_pending = initial, once nothing moves */
    uint64_t stock, pending, confirmed, initial;
    uint64_t in_flight;       /* taken at the gate, not live in the ledger */
    uint64_t release_pending; /* live in the ledger, given back at the gate since */
    uint64_t oversold;        /* live holdings beyond units, summed over items */
};

/* Everything one round read. Arrays are sorted with the functions below and folded. */
struct invariant_facts {
    uint64_t epoch, generation; /* the round was begun for: armed by the ledger's own word */
    uint32_t shards;
    uint32_t looked; /* of look1: fewer than `shards` where the round stopped early */
    struct invariant_server server;
    const struct invariant_look *look1, *look2; /* `shards` each; look2 only where R2 was read */
    bool log_torn; /* the log since the last round has a gap or gives another stock */
    bool garbage;  /* a key of the gate is of another type */
    bool complete; /* R2 was read; false: the round stopped after an unarmed look1 */
    const struct invariant_entry *r1, *r2;
    size_t r1_count, r2_count;
    uint64_t free_tag; /* of every unit that the free maps name, read in R2 */
    /* What the rows of buyers name, read between R1 and R2; sorted, not folded: two rows that name
     * one reservation are both judged. units_tag is 0. */
    const struct invariant_entry *claims;
    size_t claim_count;
    struct invariant_ledger ledger;
    const struct invariant_row *rows;
    size_t row_count;
    struct invariant_holding *holdings; /* is reordered */
    size_t holding_count;
};

/* Sorts by id, keeps everything. */
void invariant_sort(struct invariant_entry *entries, size_t count);

/* Orders for qsort: by id; holdings by (item, unit), by (user, slot). */
int invariant_by_entry_id(const void *a, const void *b);
int invariant_by_unit(const void *a, const void *b);
int invariant_by_slot(const void *a, const void *b);

/* Sorts by id and merges rows of one reservation (one per holding, as joined): counts and tags add
 * up. Returns the new count. */
size_t invariant_fold_rows(struct invariant_row *rows, size_t count);

/* Sorts by id and merges what one scan saw of the same reservation. Returns the new count. n log n.
 */
size_t invariant_fold(struct invariant_entry *entries, size_t count);

/* Adds a unit to a units_tag. Order-free; different sets of one size collide with probability
 * 2^-64. */
uint64_t invariant_units_tag(uint64_t tag, uint32_t item, uint32_t unit);

/* The same for every unit that a free map of this item names: one bit each, the first the highest
 * of the first byte. */
uint64_t invariant_free_tag(uint64_t tag, uint32_t item, const uint8_t *map, size_t length);

/* The judgement of a round. Linear in the arrays, plus sorting the holdings twice. */
void invariant_judge(struct invariant_facts *facts, struct invariant_judgement *out_judgement);

#endif
