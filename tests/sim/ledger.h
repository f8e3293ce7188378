/* SPDX-License-Identifier: Apache-2.0
 * The ledger as a model: what services/ledger/sql decides, statement by statement, each atomic, on
 * tables of fixed size. Reservations are named by their number in the schedule; `key` orders them
 * as their ids do. */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include "lib/pure/reason.h"
#include "lib/pure/sale.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SIM_IDS = 80,
    SIM_HOLD_UNITS = 4,
    SIM_ITEMS = 2,
    SIM_UNITS = 8, /* at most, per item */
    SIM_PAGE = 8,
    SIM_SNAPSHOT = 3, /* rows of a page */
    SIM_PAUSES = 24,
    SIM_LIFTED = 48,
    SIM_LOG = 700,
    SIM_PAYMENTS = 96,
    SIM_EPOCHS = 20,
    SIM_COMMANDS = 256
};

/* A pause by its number in the schedule; the text of its id is told by sim_pause_text(). */
typedef uint16_t sim_pause;

enum ledger_state { LEDGER_PENDING, LEDGER_CONFIRMED, LEDGER_EXPIRED, LEDGER_CANCELLED };

struct ledger_unit {
    uint8_t item, unit, slot;
    bool live;
};

struct ledger_row {
    bool present, tombstone, restocked, deleted;
    uint8_t state, user, unit_count, extensions, releases;
    uint16_t id;
    uint32_t payment;
    uint64_t key, epoch, obeyed_epoch, window;
    int64_t expires_ms;
    struct ledger_unit units[SIM_HOLD_UNITS];
};

struct ledger_log {
    uint64_t sequence;
    int64_t change, stock_after;
    bool readable;
};

struct ledger {
    /* definition */
    uint8_t item_count, units[SIM_ITEMS], limit;
    uint32_t extensions_max;
    int64_t hold_ms, grace_ms, extend_ms, lease_ms, opens_ms;
    /* state */
    uint8_t stage; /* enum tg_phase: SCHEDULED, OPEN, SOLD_OUT, CLOSED */
    bool armed;
    uint64_t epoch, control_sequence;
    char run_id[41], replication_id[41];
    int64_t last_clean_ms;
    uint32_t clean_rounds, alarms;
    uint32_t pause_count, lifted_count;
    sim_pause pauses[SIM_PAUSES], lifted[SIM_LIFTED];
    uint16_t row_count; /* highest number of a row + 1 */
    uint64_t log_epoch; /* the stored log is kept for one epoch, the last */
    uint32_t log_count;
    uint64_t lapsed_after;
    uint64_t judged[SIM_COMMANDS / 64]; /* bits: commands in the log, by number */
    bool ghosts[SIM_IDS];
    uint8_t compensated[SIM_PAYMENTS];
    struct ledger_row rows[SIM_IDS];
    struct ledger_log log[SIM_LOG];
};

/* What is broken on purpose. */
struct ledger_mutation {
    bool no_tombstone, no_fence, no_tombstone_fence, expire_early, confirm_late, resume_blind,
        load_live_only;
};
extern struct ledger_mutation ledger_mutation;

struct ledger_hold {
    uint16_t id;
    uint8_t user, unit_count;
    uint64_t key, epoch, window;
    struct ledger_unit units[SIM_HOLD_UNITS];
};

enum ledger_outcome { LEDGER_RECORDED, LEDGER_KNOWN, LEDGER_REFUSED };
struct ledger_answer {
    enum ledger_outcome outcome;
    enum tg_reason reason;
    uint8_t state, unit_count;
    bool replayed;
    int64_t expires_ms;
    uint64_t epoch;
    struct ledger_unit units[SIM_HOLD_UNITS];
};

void ledger_record(struct ledger *ledger, int64_t now_ms, const struct ledger_hold *hold,
                   struct ledger_answer *out_answer);
void ledger_read(const struct ledger *ledger, uint16_t id, struct ledger_answer *out_answer);
void ledger_confirm(struct ledger *ledger, int64_t now_ms, uint16_t id, uint32_t payment,
                    struct ledger_answer *out_answer);
void ledger_extend(struct ledger *ledger, int64_t now_ms, uint16_t id,
                   struct ledger_answer *out_answer);
void ledger_cancel(struct ledger *ledger, uint16_t id, struct ledger_answer *out_answer);

/* Ids with `holds` are the gate's word and may get a tombstone under this epoch. */
struct ledger_expiry {
    bool with_holds;
    uint64_t epoch;
    uint8_t count;
    struct ledger_hold holds[SIM_PAGE];
};
/* How many now have a final word; a refusal gives none. */
enum tg_reason ledger_expire(struct ledger *ledger, int64_t now_ms,
                             const struct ledger_expiry *expiry, uint32_t *out_final);

enum ledger_order { LEDGER_SETTLE, LEDGER_RELEASE, LEDGER_EXTEND };
struct ledger_orders {
    uint64_t epoch;
    uint8_t count;
    uint16_t ids[SIM_PAGE];
    uint8_t kinds[SIM_PAGE];
};
enum tg_reason ledger_obeyed(struct ledger *ledger, const struct ledger_orders *orders);

struct ledger_due {
    struct ledger_orders orders;
    bool orders_full, lapsed_full;
    uint8_t lapsed_count;
    uint16_t lapsed[SIM_PAGE];
};
void ledger_due(struct ledger *ledger, int64_t now_ms, uint64_t orders_after, uint8_t limit,
                struct ledger_due *out_due);

struct ledger_page {
    enum tg_reason reason;
    bool end;
    uint8_t count;
    struct ledger_row rows[SIM_SNAPSHOT];
};
void ledger_snapshot(const struct ledger *ledger, uint64_t epoch, uint64_t after, uint8_t limit,
                     struct ledger_page *out_page);

enum tg_reason ledger_arm(struct ledger *ledger, uint64_t epoch, const char *run_id,
                          const char *replication_id);
enum ledger_check { LEDGER_CHECK_CLEAN, LEDGER_CHECK_VOID, LEDGER_CHECK_ALARM };
void ledger_append_check(struct ledger *ledger, int64_t now_ms, uint64_t epoch,
                         enum ledger_check outcome);
/* Entries that continue the stored log; returns where it ends now. */
uint64_t ledger_append_log(struct ledger *ledger, uint64_t epoch, const struct ledger_log *entries,
                           uint32_t count);

enum ledger_command { LEDGER_PAUSE, LEDGER_RESUME, LEDGER_REBUILD, LEDGER_CLOSE };
struct ledger_judge {
    enum ledger_command kind;
    uint16_t number; /* of the command: judged once */
    sim_pause pause; /* the id a pause, or a rebuild's pause, carries */
    uint64_t sequence;
    uint32_t pause_count; /* named by a resume */
    sim_pause pauses[SIM_PAUSES];
};
enum tg_reason ledger_judge(struct ledger *ledger, int64_t now_ms,
                            const struct ledger_judge *judge);
/* A pause of the ledger's own, after a conflict. */
void ledger_pause(struct ledger *ledger, sim_pause pause);

void ledger_tick(struct ledger *ledger, int64_t now_ms);
enum tg_phase ledger_phase(const struct ledger *ledger);
bool ledger_live(const struct ledger_row *row);
struct ledger_row *ledger_find(struct ledger *ledger, uint16_t id);

#endif
