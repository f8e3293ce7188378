/* SPDX-License-Identifier: Apache-2.0
 * The port to the book of record. Every operation is one decision, taken wholly or not at all, and
 * is answered exactly once with the caller's token. Adapters: store_pg.h (PostgreSQL),
 * store_memory.h (the same rules in memory, for tests and the simulator). Status of an answer: 0;
 * TG_ERR_STORE (refused, nothing was done); TG_ERR_TIMEOUT, TG_ERR_DISCONNECTED (unknown). Answers
 * are borrowed until the callback returns. */
#ifndef LEDGER_STORE_H
#define LEDGER_STORE_H

#include "services/ledger/core.h"
#include "services/ledger/core_chain.h"

enum {
    LEDGER_EVENTS_PAGE = 256,
    LEDGER_KEY_BYTES = 40,      /* of a row of an incident */
    LEDGER_DETAIL_BYTES = 1024, /* a resume may have to be told 32 pauses */
    LEDGER_COMMAND_BYTES = 8192,
    LEDGER_EVENT_KIND_BYTES = 16,
    LEDGER_CONFIGURATION_BYTES = 512
};

/* How one hold of a batch fared. reason: refused ones (REFUSED), and TRY_AGAIN with UNKNOWN. */
enum ledger_outcome { LEDGER_UNKNOWN, LEDGER_RECORDED, LEDGER_ALREADY, LEDGER_REFUSED };
struct ledger_recorded {
    enum ledger_outcome outcome;
    enum tg_reason reason;
    enum ledger_state state;
    int64_t expires_ms;
    uint64_t epoch;
    uint32_t unit_count; /* already: as stored; recorded: as asked, 0 here */
    struct tg_unit_ref units[TG_MAX_UNITS_PER_HOLD];
};

struct ledger_tombstone {
    struct ledger_id id;
    uint8_t user[TG_MAX_USER_BYTES];
    uint8_t user_length;
    uint8_t place[TG_PLACE_BYTES];
    uint64_t window;
    uint8_t digest[TG_DIGEST_BYTES];
};
struct ledger_expire {
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    uint64_t generation, epoch;
    uint32_t id_count, tombstone_count;
    struct ledger_id ids[TG_MAX_PAGE];
    struct ledger_tombstone tombstones[TG_MAX_PAGE];
};
struct ledger_verdict {
    struct ledger_id id;
    enum ledger_state state;
};
struct ledger_verdicts {
    enum tg_reason reason;
    uint64_t epoch;
    uint32_t count;
    struct ledger_verdict rows[2 * TG_MAX_PAGE];
};

enum ledger_order { LEDGER_SETTLE, LEDGER_RELEASE };
struct ledger_obeyed {
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    uint64_t epoch;
    uint32_t count;
    struct ledger_id ids[TG_MAX_PAGE];
    enum ledger_order kinds[TG_MAX_PAGE];
};

struct ledger_due_ask {
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    struct ledger_id orders_after, lapsed_after; /* "" = from the start */
    uint32_t limit;                              /* 1..TG_MAX_PAGE */
};
struct ledger_due {
    bool known; /* the sale */
    uint64_t epoch, generation;
    uint32_t lapsed_count, order_count;
    struct ledger_id lapsed[TG_MAX_PAGE];
    struct ledger_id orders[TG_MAX_PAGE];
    enum ledger_order kinds[TG_MAX_PAGE];
};

struct ledger_snapshot_ask {
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    uint64_t epoch;
    struct ledger_id after;
    uint32_t limit; /* 1..TG_MAX_SNAPSHOT_PAGE */
};
struct ledger_snapshot_row {
    struct ledger_id id;
    enum ledger_state state;
    uint8_t user[TG_MAX_USER_BYTES];
    uint8_t user_length;
    uint8_t place[TG_PLACE_BYTES];
    uint64_t window;
    uint8_t digest[TG_DIGEST_BYTES];
    int64_t expires_ms;
    uint32_t unit_count;
    struct tg_unit_ref units[TG_MAX_UNITS_PER_HOLD];
    uint32_t slots[TG_MAX_UNITS_PER_HOLD];
};
struct ledger_snapshot {
    enum tg_reason reason;
    uint64_t epoch;
    uint32_t count;
    struct ledger_snapshot_row rows[TG_MAX_SNAPSHOT_PAGE];
};

/* What an operator asks after an alarm (0009_incident.sql). */
struct ledger_incident_ask {
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    char after[LEDGER_KEY_BYTES + 1];
    uint32_t limit; /* 1..TG_MAX_SNAPSHOT_PAGE */
};
struct ledger_incident_row {
    char key[LEDGER_KEY_BYTES + 1];
    int64_t at_ms;
    char kind[LEDGER_EVENT_KIND_BYTES + 1];
    char detail[LEDGER_DETAIL_BYTES + 1];
    struct ledger_id id; /* "" = of no reservation */
    char state[16];      /* "" = the ledger has no such row */
    int64_t expires_ms;
    uint8_t user[TG_MAX_USER_BYTES];
    uint8_t user_length;
    uint32_t unit_count;
    struct tg_unit_ref units[TG_MAX_UNITS_PER_HOLD];
};
struct ledger_incident {
    enum tg_reason reason;
    int64_t since_ms;
    char last_check[LEDGER_DETAIL_BYTES + 1];
    uint64_t units, pending_units, confirmed_units, live, ended;
    uint32_t count;
    struct ledger_incident_row rows[TG_MAX_SNAPSHOT_PAGE];
};

struct ledger_armed {
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    uint64_t epoch;
    char run_id[41], replication_id[41];
};

struct ledger_check {
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    uint64_t epoch;
    char instance[LEDGER_INSTANCE_BYTES + 1];
    int64_t checked_ms;
    char outcome[8]; /* clean, void, alarm */
    char detail[LEDGER_DETAIL_BYTES + 1];
    int64_t stock, pending, confirmed, in_flight, release_pending, initial;
    uint32_t round_ms;
};

struct ledger_log_tail {
    uint64_t sequence;
    uint8_t hash[LEDGER_CHAIN_BYTES];
};
/* `entries` continue `tail`; hashes are computed. */
struct ledger_log_page {
    struct ledger_log_place place;
    struct ledger_log_tail tail;
    uint32_t count;
    struct ledger_log_entry entries[TG_MAX_PAGE];
    uint8_t hashes[TG_MAX_PAGE][LEDGER_CHAIN_BYTES];
};

/* What an auditor asks: entries of a log, in order. */
struct ledger_audit_ask {
    struct ledger_log_place place; /* epoch 0: the present one */
    uint64_t after;
    uint32_t last;  /* 0, or at most so many, the newest */
    uint32_t limit; /* 1..TG_MAX_PAGE */
};
struct ledger_audit {
    enum tg_reason reason;
    uint64_t epoch;
    uint32_t count;
    struct ledger_log_entry entries[TG_MAX_PAGE];
    uint8_t hashes[TG_MAX_PAGE][LEDGER_CHAIN_BYTES];
};

/* The roster of a draw and what was drawn. */
enum ledger_draw_step {
    LEDGER_ROSTER_APPEND,
    LEDGER_ROSTER_READ,
    LEDGER_DRAW_FREEZE,
    LEDGER_DRAW_REVEAL
};
struct ledger_draw_ask {
    enum ledger_draw_step step;
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    uint64_t generation, first;
    uint32_t count; /* append: entrants, 1..TG_MAX_ROSTER_PAGE */
    uint8_t entrants[TG_MAX_ROSTER_PAGE][TG_ENTRANT_BYTES];
    struct tg_draw draw; /* freeze: count, index_at_open, root; reveal: secret, beacon, seed */
};
struct ledger_drawn {
    enum tg_reason reason;
    uint64_t stored; /* entrants in all */
    uint32_t count;  /* read */
    uint8_t entrants[TG_MAX_ROSTER_PAGE][TG_ENTRANT_BYTES];
};

/* A buyer's or the shop's word on one reservation. `service`: asked with the service credential,
 * else by the user. */
enum ledger_verb { LEDGER_READ, LEDGER_CONFIRM, LEDGER_EXTEND, LEDGER_CANCEL };
struct ledger_ask {
    enum ledger_verb verb;
    struct ledger_id id;
    bool service;
    uint8_t user[TG_MAX_USER_BYTES];
    uint8_t user_length;
    char payment[TG_MAX_PAYMENT_ID_BYTES + 1]; /* confirm */
    int64_t amount_minor;
    char currency[4];
};
struct ledger_reservation {
    enum tg_reason reason;
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    enum ledger_state state;
    int64_t expires_ms;
    uint32_t unit_count;
    struct tg_unit_ref units[TG_MAX_UNITS_PER_HOLD];
    char order_id[LEDGER_ORDER_ID_LENGTH + 1];
    char payment[TG_MAX_PAYMENT_ID_BYTES + 1];
    bool replayed;
    uint64_t epoch; /* of the sale */
};

/* A sale as it is told: definition and state, with the numbers struct tg_sale leaves to others. */
struct ledger_sale {
    struct tg_sale sale;
    char order[16];
    int64_t now_ms, open_from_ms;
};
struct ledger_sales {
    uint32_t count;
    struct ledger_sale rows[TG_MAX_SALES];
};

enum ledger_command_kind {
    LEDGER_APPLY,
    LEDGER_OPEN,
    LEDGER_PAUSE,
    LEDGER_RESUME,
    LEDGER_REBUILD,
    LEDGER_CLOSE,
    LEDGER_PACE,
    LEDGER_BEACON,
    LEDGER_EXTEND_ALL /* every pending reservation; LEDGER_EXTEND is of one */
};
struct ledger_command {
    enum ledger_command_kind kind;
    char id[TG_BASE32_ID_LENGTH + 1];
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    uint64_t generation, control_sequence;
    char key[16];
    char cause[128];
    bool plan;
    uint64_t pace_milli;
    int64_t extend_ms; /* 1..TG_MAX_EXTEND_MS where the kind is LEDGER_EXTEND_ALL */
    uint32_t pause_count;
    char pauses[TG_MAX_LIFTED][TG_BASE32_ID_LENGTH + 1];
    struct tg_sale definition; /* apply */
    char order[16];
    const uint8_t *command, *signature; /* as they came, borrowed */
    size_t command_length, signature_length;
};
struct ledger_judgement {
    enum tg_reason reason;
    char detail[LEDGER_DETAIL_BYTES + 1];
    bool repeated;
};

struct ledger_event {
    int64_t id;
    char message_id[TG_MAX_EVENT_ID_BYTES + 1];
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    uint64_t generation;
    char kind[LEDGER_EVENT_KIND_BYTES + 1];
    struct ledger_id reservation;
    uint8_t user[TG_MAX_USER_BYTES];
    uint8_t user_length;
    uint32_t unit_count;
    struct tg_unit_ref units[TG_MAX_UNITS_PER_HOLD];
    char order_id[LEDGER_ORDER_ID_LENGTH + 1];
    char payment[TG_MAX_PAYMENT_ID_BYTES + 1];
    int64_t amount_minor;
    char currency[4];
    char detail[LEDGER_DETAIL_BYTES + 1];
    int64_t at_ms;
};

struct ledger_health {
    uint32_t version; /* of the schema; 0: none */
    bool writable, sound;
    int64_t now_ms;                                 /* its clock */
    char configuration[LEDGER_CONFIGURATION_BYTES]; /* lines "name value" */
};

/* Who hears the answers. */
struct ledger_answers {
    void *context;
    void (*recorded)(void *context, uint64_t token, int status, const struct ledger_recorded *rows,
                     uint32_t count);
    void (*expired)(void *context, uint64_t token, int status,
                    const struct ledger_verdicts *verdicts);
    void (*obeyed)(void *context, uint64_t token, int status, enum tg_reason reason,
                   uint32_t stored);
    void (*due)(void *context, uint64_t token, int status, const struct ledger_due *due);
    void (*snapshot)(void *context, uint64_t token, int status, const struct ledger_snapshot *page);
    void (*incident)(void *context, uint64_t token, int status, const struct ledger_incident *page);
    void (*audit)(void *context, uint64_t token, int status, const struct ledger_audit *page);
    void (*armed)(void *context, uint64_t token, int status, enum tg_reason reason);
    void (*checked)(void *context, uint64_t token, int status, enum tg_reason reason);
    void (*log_tail)(void *context, uint64_t token, int status, const struct ledger_log_tail *tail);
    void (*log_stored)(void *context, uint64_t token, int status, enum tg_reason reason,
                       uint64_t stored_sequence);
    void (*drawn)(void *context, uint64_t token, int status, const struct ledger_drawn *answer);
    void (*reservation)(void *context, uint64_t token, int status,
                        const struct ledger_reservation *answer);
    void (*sales)(void *context, uint64_t token, int status, const struct ledger_sales *sales);
    void (*ticked)(void *context, uint64_t token, int status, uint32_t changed);
    void (*judged)(void *context, uint64_t token, int status,
                   const struct ledger_judgement *judgement);
    void (*events)(void *context, uint64_t token, int status, const struct ledger_event *events,
                   uint32_t count);
    void (*published)(void *context, uint64_t token, int status);
    void (*health)(void *context, uint64_t token, int status, const struct ledger_health *health);
};

/* The operations. Each returns 0 (its answer comes exactly once) or TG_ERR_DISCONNECTED,
 * TG_ERR_FULL (nothing was sent). Arguments are copied. */
struct ledger_store {
    void *self;
    int (*record)(void *self, const struct ledger_batch *batch, uint64_t token);
    int (*expire)(void *self, const struct ledger_expire *ask, uint64_t token);
    int (*obeyed)(void *self, const struct ledger_obeyed *ask, uint64_t token);
    int (*due)(void *self, const struct ledger_due_ask *ask, uint64_t token);
    int (*snapshot)(void *self, const struct ledger_snapshot_ask *ask, uint64_t token);
    int (*incident)(void *self, const struct ledger_incident_ask *ask, uint64_t token);
    int (*audit)(void *self, const struct ledger_audit_ask *ask, uint64_t token);
    int (*armed)(void *self, const struct ledger_armed *ask, uint64_t token);
    int (*check)(void *self, const struct ledger_check *ask, uint64_t token);
    int (*log_tail)(void *self, const struct ledger_log_place *place, uint64_t token);
    int (*log_append)(void *self, const struct ledger_log_page *page, uint64_t token);
    int (*draw)(void *self, const struct ledger_draw_ask *ask, uint64_t token);
    int (*reservation)(void *self, const struct ledger_ask *ask, uint64_t token);
    int (*sales)(void *self, const char *after, const char *only,
                 uint64_t token); /* only "": all after `after` */
    int (*tick)(void *self, uint64_t token);
    int (*judge)(void *self, const struct ledger_command *command, uint64_t token);
    int (*events)(void *self, const char *instance, uint64_t token);
    int (*published)(void *self, const int64_t *ids, uint32_t count, uint64_t token);
    int (*health)(void *self, uint64_t token);
};

#endif
