/* SPDX-License-Identifier: Apache-2.0
 * What the files of the ledger's shell share. Private to services/ledger/serve_*.c and service.c.
 */
#ifndef LEDGER_SERVICE_PARTS_H
#define LEDGER_SERVICE_PARTS_H

#include "lib/io/bus.h"
#include "lib/io/pg.h"
#include "lib/io/sales.h"
#include "lib/pure/histogram.h"
#include "services/ledger/pending.h"
#include "services/ledger/service.h"
#include "services/ledger/store_pg.h"
#include "services/ledger/wire.h"

enum { LEDGER_BATCHES = 40, LEDGER_FRESH_MS = 3000, LEDGER_REPLY_BYTES = 14000 };

/* What admission hears about us: since the last time it was told. */
struct ledger_load {
    struct tg_histogram latency;
    uint64_t requests, errors;
};

/* The outbox's publisher: one page at a time. */
struct ledger_publisher {
    bool fetching, marking;
    uint32_t waiting;      /* events sent and not yet answered */
    uint32_t stored_count; /* of this page */
    int64_t stored[LEDGER_EVENTS_PAGE];
    int64_t ids[LEDGER_EVENTS_PAGE];
    bool more; /* the page was full */
    bool stream_made;
};

struct ledger {
    struct tg_app *app;
    struct tg_pg *pg;
    struct store_pg *store_pg;
    const struct ledger_store *store;
    struct tg_sales *control;
    struct ledger_pendings pendings;
    struct ledger_batches batches;
    struct ledger_batch *batch_storage;
    uint64_t batch_sent_us[LEDGER_BATCHES];
    uv_timer_t *batch_timer;
    bool batch_timer_set;
    struct ledger_sales view; /* as last listed */
    bool view_busy, view_again;
    struct tg_mono healthy_at; /* last answer of a writable store of our schema */
    const char *unhealthy_why;
    bool sound_told, draining;
    int64_t clock_ahead_ms; /* of PostgreSQL before ours, when it last answered */
    char configuration[LEDGER_CONFIGURATION_BYTES]; /* as it last answered */
    uint8_t service_hash[TG_KEY_BYTES];
    struct ledger_load load;
    struct ledger_publisher publisher;
    struct ledger_id lapsed_after[TG_MAX_SALES]; /* where the last page of lapsed ids ended, by
                                                    place in the view */
    /* scratch of one call */
    struct ledger_expire expire;
    struct ledger_obeyed obeyed;
    struct ledger_log_page log_page;
    struct ledger_command command;
    struct ledger_wire_sale wire_sales[TG_MAX_SALES];
    struct ledger_wire_units wire_units[TG_MAX_SNAPSHOT_PAGE], audit_units[TG_MAX_PAGE];
};

/* Text of a constant where protobuf-c wants a char *; never written to. */
static inline char *ledger_text(const char *text)
{
    return (char *)(uintptr_t)text;
}

/* Whether one more row fits the reply: those that do not are left for the next page. */
static inline bool ledger_row_fits(size_t *bytes, size_t packed)
{
    enum { ROW_FRAME_BYTES = 4 };
    *bytes += packed + ROW_FRAME_BYTES;
    return *bytes <= LEDGER_REPLY_BYTES;
}

/* The cached listing; NULL when unknown. */
struct ledger_sale *ledger_view_find(struct ledger *ledger, const char *sale);
/* Lists and tells the state of every sale now, or again when the present listing is done. */
void ledger_tell_states(struct ledger *ledger);
/* Counts a statement's outcome and time. */
void ledger_observe(struct ledger *ledger, int status, uint64_t started_us);

/* A request that the store is to be asked about. Takes the message over: NULL when it was answered
 * already, with `reason` or, where no place is free for it to wait in, with try_again. */
struct ledger_pending *ledger_ask_begin(struct ledger *ledger,
                                        struct tg_bus_incoming *take_incoming,
                                        enum tg_reason reason, uint64_t *out_token);
/* What came of asking: where the store was not asked the request is answered with try_again. */
void ledger_ask_sent(struct ledger *ledger, uint64_t token, int error);
/* The request that the store answered about; its time is counted. NULL when it is gone or was
 * answered here: with try_again where status says that nothing is known, else with `reason`. */
struct ledger_pending *ledger_ask_end(struct ledger *ledger, uint64_t token, int status,
                                      enum tg_reason reason);

/* Handlers of the bus, by file. */
void ledger_on_record(void *context, struct tg_bus_incoming *take_incoming);
void ledger_on_expire(void *context, struct tg_bus_incoming *take_incoming);
void ledger_on_obeyed(void *context, struct tg_bus_incoming *take_incoming);
void ledger_on_due(void *context, struct tg_bus_incoming *take_incoming);
void ledger_on_incident(void *context, struct tg_bus_incoming *take_incoming);
void ledger_on_audit(void *context, struct tg_bus_incoming *take_incoming);
void ledger_on_snapshot(void *context, struct tg_bus_incoming *take_incoming);
void ledger_on_draw(void *context, struct tg_bus_incoming *take_incoming);
void ledger_on_armed(void *context, struct tg_bus_incoming *take_incoming);
void ledger_on_append(void *context, struct tg_bus_incoming *take_incoming);
void ledger_on_read(void *context, struct tg_bus_incoming *take_incoming);
void ledger_on_confirm(void *context, struct tg_bus_incoming *take_incoming);
void ledger_on_extend(void *context, struct tg_bus_incoming *take_incoming);
void ledger_on_cancel(void *context, struct tg_bus_incoming *take_incoming);
void ledger_on_sales(void *context, struct tg_bus_incoming *take_incoming);
bool ledger_on_judge(void *context, struct tg_bus_incoming *take_incoming,
                     const Tidegate__V1__Command *command, const char *key_id,
                     uint64_t received_us);

/* Answers of the store, by file. */
void ledger_recorded(void *context, uint64_t token, int status, const struct ledger_recorded *rows,
                     uint32_t count);
void ledger_expired(void *context, uint64_t token, int status,
                    const struct ledger_verdicts *verdicts);
void ledger_obeyed_stored(void *context, uint64_t token, int status, enum tg_reason reason,
                          uint32_t stored);
void ledger_due_found(void *context, uint64_t token, int status, const struct ledger_due *due);
void ledger_incident_read(void *context, uint64_t token, int status,
                          const struct ledger_incident *page);
void ledger_audit_read(void *context, uint64_t token, int status, const struct ledger_audit *page);
void ledger_snapshot_read(void *context, uint64_t token, int status,
                          const struct ledger_snapshot *page);
void ledger_drawn(void *context, uint64_t token, int status, const struct ledger_drawn *answer);
void ledger_armed_known(void *context, uint64_t token, int status, enum tg_reason reason);
void ledger_checked(void *context, uint64_t token, int status, enum tg_reason reason);
void ledger_log_tail_known(void *context, uint64_t token, int status,
                           const struct ledger_log_tail *tail);
void ledger_log_stored(void *context, uint64_t token, int status, enum tg_reason reason,
                       uint64_t stored_sequence);
void ledger_reservation_answered(void *context, uint64_t token, int status,
                                 const struct ledger_reservation *answer);
void ledger_sales_listed(void *context, uint64_t token, int status,
                         const struct ledger_sales *sales);
void ledger_ticked(void *context, uint64_t token, int status, uint32_t changed);
void ledger_judged(void *context, uint64_t token, int status,
                   const struct ledger_judgement *judgement);
void ledger_events_read(void *context, uint64_t token, int status,
                        const struct ledger_event *events, uint32_t count);
void ledger_events_marked(void *context, uint64_t token, int status);
void ledger_health_known(void *context, uint64_t token, int status,
                         const struct ledger_health *health);

/* A listing for a request or a command: the token is a pending's. */
void ledger_reply_sales(struct ledger *ledger, struct ledger_pending *pending, int status,
                        const struct ledger_sales *sales);
void ledger_reply_command(struct ledger *ledger, struct ledger_pending *pending,
                          const struct ledger_sales *sales);

/* Sends batches that are ripe; sets the timer for those that will be. */
void ledger_send_batches(struct ledger *ledger);

/* Timers. */
void ledger_second(void *context);
void ledger_publish_outbox(void *context);
void ledger_tell_load(void *context);
size_t ledger_publisher_busy(const struct ledger *ledger);

#endif
