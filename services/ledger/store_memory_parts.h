/* SPDX-License-Identifier: Apache-2.0
 * What the files of the memory twin share. Private to services/ledger/store_memory*. */
#ifndef LEDGER_STORE_MEMORY_PARTS_H
#define LEDGER_STORE_MEMORY_PARTS_H

#include "services/ledger/store_memory.h"

enum memory_stage { MEMORY_SCHEDULED, MEMORY_OPEN, MEMORY_SOLD_OUT, MEMORY_CLOSED };

struct memory_page { /* of a roster */
    uint64_t first;
    uint32_t count;
    uint8_t entrants[TG_MAX_ROSTER_PAGE][TG_ENTRANT_BYTES];
};

struct memory_sale {
    struct ledger_sale told; /* definition and state; the phase is derived when it is told */
    enum memory_stage stage;
    bool opened;
    int64_t opened_ms;
    uint32_t page_count, page_room;
    struct memory_page *roster;
};

struct memory_reservation {
    struct ledger_hold hold; /* generation and epoch as recorded */
    struct memory_sale *sale;
    enum ledger_state state;
    int64_t expires_ms;
    uint32_t extensions;
    char payment[TG_MAX_PAYMENT_ID_BYTES + 1];
    char order_id[LEDGER_ORDER_ID_LENGTH + 1];
    int64_t amount_minor;
    char currency[4];
    uint64_t obeyed_epoch;
    bool restocked, live;
};

struct memory_event {
    struct ledger_event event;
    bool published;
};

struct memory_command {
    char id[TG_BASE32_ID_LENGTH + 1];
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    enum ledger_command_kind kind;
    struct ledger_judgement judged;
};

struct memory_log {
    struct ledger_log_place place;
    struct ledger_log_tail tail;
};

struct memory_check {
    char sale[TG_MAX_SALE_NAME_BYTES + 1];
    uint64_t epoch;
    char instance[LEDGER_INSTANCE_BYTES + 1];
    int64_t checked_ms;
};

/* An answer on its way; `tell` reads it from behind the struct. */
struct memory_answer {
    struct memory_answer *next;
    uint64_t token;
    void (*tell)(struct store_memory *store, const struct memory_answer *answer, int status);
    enum tg_reason reason;
    uint64_t number; /* of whatever is counted */
    uint32_t count;  /* rows behind */
    max_align_t rows[];
};

struct store_memory {
    struct ledger_answers answers;
    struct ledger_store port;
    int64_t now_ms;
    uint32_t sale_count;
    struct memory_sale sales[TG_MAX_SALES];
    uint32_t reservation_count, reservations_max;
    struct memory_reservation *reservations; /* never move */
    struct memory_reservation **by_id;       /* sorted */
    uint32_t event_count, event_room;
    struct memory_event *events;
    uint32_t command_count, command_room;
    struct memory_command *commands;
    uint32_t log_count, log_room;
    struct memory_log *logs;
    uint32_t check_count, check_room;
    struct memory_check *checks;
    char publisher[LEDGER_INSTANCE_BYTES + 1];
    int64_t publisher_until_ms;
    struct memory_answer *first, *last;
};

/* An answer of `bytes` more than its head, queued; filled by the caller. */
struct memory_answer *memory_answer_new(struct store_memory *store, uint64_t token, size_t bytes,
                                        void (*tell)(struct store_memory *,
                                                     const struct memory_answer *, int));
/* Makes room for one more element of a growing table. */
void *memory_grow(void *table, uint32_t count, uint32_t *room, size_t size);

struct memory_sale *memory_sale_find(struct store_memory *store, const char *name);
struct memory_reservation *memory_find(struct store_memory *store, const char *id);
/* NULL when there is no room. */
struct memory_reservation *memory_insert(struct store_memory *store,
                                         const struct ledger_hold *hold);
/* Where an id is, or would be, in the order of ids. */
uint32_t memory_place(const struct store_memory *store, const char *id);

void memory_event(struct store_memory *store, const struct memory_sale *sale, const char *kind,
                  const struct memory_reservation *row);
void memory_compensate(struct store_memory *store, const struct memory_reservation *row,
                       const struct ledger_ask *ask, const char *why);
bool memory_compensated(const struct store_memory *store, const char *payment);
void memory_pause(struct store_memory *store, struct memory_sale *sale, const char *id,
                  const char *cause);
bool memory_proof_fresh(const struct store_memory *store, const struct memory_sale *sale);

int memory_record(void *self, const struct ledger_batch *batch, uint64_t token);
int memory_expire(void *self, const struct ledger_expire *ask, uint64_t token);
int memory_obeyed(void *self, const struct ledger_obeyed *ask, uint64_t token);
int memory_due(void *self, const struct ledger_due_ask *ask, uint64_t token);
int memory_incident(void *self, const struct ledger_incident_ask *ask, uint64_t token);
int memory_audit(void *self, const struct ledger_audit_ask *ask, uint64_t token);
int memory_snapshot(void *self, const struct ledger_snapshot_ask *ask, uint64_t token);
int memory_reservation(void *self, const struct ledger_ask *ask, uint64_t token);
int memory_judge(void *self, const struct ledger_command *command, uint64_t token);
int memory_sales(void *self, const char *after, const char *only, uint64_t token);
int memory_tick(void *self, uint64_t token);
int memory_draw(void *self, const struct ledger_draw_ask *ask, uint64_t token);
int memory_armed(void *self, const struct ledger_armed *ask, uint64_t token);
int memory_check(void *self, const struct ledger_check *ask, uint64_t token);
int memory_log_tail(void *self, const struct ledger_log_place *place, uint64_t token);
int memory_log_append(void *self, const struct ledger_log_page *page, uint64_t token);
int memory_events(void *self, const char *instance, uint64_t token);
int memory_published(void *self, const int64_t *ids, uint32_t count, uint64_t token);
int memory_health(void *self, uint64_t token);

#endif
