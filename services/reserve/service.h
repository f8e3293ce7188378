/* SPDX-License-Identifier: Apache-2.0
 * The shell of the reserve daemon: subjects, store, timers. service.c starts and serves;
 * service_hold.c carries holds and re-sent records, service_care.c one sale's gate, service_obey.c
 * what sweeper and invariant ask. */
#ifndef RESERVE_SERVICE_H
#define RESERVE_SERVICE_H

#include "lib/io/app.h"
#include "lib/io/bus.h"
#include "lib/io/sales.h"
#include "lib/pure/histogram.h"
#include "services/reserve/core.h"
#include "services/reserve/core_care.h"
#include "services/reserve/settings.h"
#include "services/reserve/store.h"
#include "services/reserve/wire.h"

enum {
    RESERVE_LOOK_EVERY_MS = 200,
    RESERVE_RESEND_EVERY_MS = 500,
    RESERVE_LOAD_EVERY_MS = 250,
    RESERVE_PROBE_STALE_MS = 2000,
    RESERVE_RESENDS_MAX = 128, /* re-sent records in progress */
    RESERVE_OBEY_JOBS = 64,
    RESERVE_DUE_JOBS = 16,
    RESERVE_ASKS = 64,          /* attest and trim in progress */
    RESERVE_DUE_PAGES_MAX = 200 /* pages of unacknowledged holds read for one request */
};

/* One hold in progress; `number` tells its successor in the same place apart. */
struct reserve_carried {
    struct reserve_flow flow;
    uint64_t number;
    uint32_t sale; /* index in the sales table */
    uint64_t epoch;
    uint64_t began_us;
    uint8_t user[TG_MAX_USER_BYTES];
    size_t user_length;
    struct tg_bus_incoming *incoming; /* NULL: re-sent */
    char traceparent[TG_TRACEPARENT_LENGTH + 1];
};

/* An acknowledgement on its way to the gate; told in the log once it is done. */
struct reserve_acknowledgement {
    uint64_t number;
    uint32_t sale;
    char reservation[TG_RESERVATION_ID_LENGTH + 1];
    char traceparent[TG_TRACEPARENT_LENGTH + 1];
};

/* What is kept per sale. */
struct reserve_sale {
    struct reserve_care care;
    struct reserve_keys keys;
    struct tg_histogram hold_us; /* since the last load message */
    uint64_t requests, errors;
    uint32_t in_progress;
    char resend_cursor[24];
    uint64_t resend_epoch; /* of the gate that the page on its way was asked of */
    bool resend_busy;
    uint64_t loaded_rows;
    char doubt[TG_BASE32_ID_LENGTH + 1]; /* the pause of this daemon's own doubts; "": none yet */
};

struct reserve_obey_job {
    uint64_t number; /* 0: free */
    uint32_t sale;
    uint64_t epoch;
    size_t outstanding, count;
    struct reserve_order orders[TG_MAX_PAGE];
    enum reserve_obeyed results[TG_MAX_PAGE];
    struct tg_bus_incoming *incoming;
};

struct reserve_due_row {
    char reservation[TG_RESERVATION_ID_LENGTH + 1];
    struct tg_hold_record record;
};
struct reserve_due_job {
    uint64_t number; /* 0: free */
    uint32_t sale, limit, count, pages;
    uint64_t epoch, generation;
    char cursor[24];
    struct reserve_due_row rows[TG_MAX_PAGE];
    struct tg_bus_incoming *incoming;
};

/* One call, one answer. */
struct reserve_ask {
    uint64_t number; /* 0: free */
    bool trim;
    struct tg_bus_incoming *incoming;
};

struct reserve_service {
    struct reserve_settings settings;
    struct tg_app *app;
    struct tg_sales *sales;
    struct reserve_store *store;
    struct reserve_secrets secrets;
    bool draining;
    struct tg_mono probed; /* last time a script answered */
    bool probing;
    struct reserve_keys probe_keys;
    struct reserve_sale by_sale[TG_MAX_SALES]; /* by index in the sales table */
    struct reserve_carried *carried;           /* TG_MAX_HOLDS_IN_PROGRESS */
    uint32_t *free_carried;
    uint32_t free_carried_count, resends;
    uint64_t carried_numbers, acknowledged_numbers, job_numbers;
    /* A ring: the store answers at most as many as it has in flight. */
    struct reserve_acknowledgement acknowledgements[TG_MAX_GATE_IN_FLIGHT];
    struct reserve_obey_job obey_jobs[RESERVE_OBEY_JOBS];
    struct reserve_due_job due_jobs[RESERVE_DUE_JOBS];
    struct reserve_ask asks[RESERVE_ASKS];
    size_t jobs_busy;
};

int reserve_service_start(struct tg_app *app, void *context);
bool reserve_service_ready(void *context, const char **out_why);
void reserve_service_configuration(void *context, char *out_text, size_t capacity);
void reserve_service_drain(void *context);
size_t reserve_service_busy(void *context);
void reserve_service_stop(void *context);

/* ---- between the parts ---- */

/* Index of a sale in the table, or -1 when it is not known. */
int reserve_sale_index(const struct reserve_service *service, const char *name);
/* The keys of the sale's present epoch, made when they changed. NULL: the sale has no definition.
 */
const struct reserve_keys *reserve_sale_keys(struct reserve_service *service, uint32_t index);
/* Seal of the connected Redis; false while there is none. */
bool reserve_present_seal(const struct reserve_service *service, char out_seal[RESERVE_SEAL_BYTES]);

/* Counts a message with a field out of its bounds. */
void reserve_count_invalid(const struct tg_bus_incoming *incoming);

int reserve_hold_open(struct reserve_service *service);
void reserve_hold_close(struct reserve_service *service);
void reserve_hold_serve(void *context, struct tg_bus_incoming *take_incoming);
void reserve_hold_resend_tick(void *context);

void reserve_care_tick(void *context);
void reserve_care_load_tick(void *context);
void reserve_care_sale_changed(void *context, struct tg_sale *sale);
const char *reserve_care_command(void *context, struct tg_sale *sale,
                                 const Tidegate__V1__Command *command);
/* Somebody was told sold out (empty), or units came back: looks at once where that is news. */
void reserve_care_stock_turned(struct reserve_service *service, uint32_t index, bool empty);
/* Closes the gate. id NULL: a doubt of this daemon's; all of them are one pause, until that is
 * lifted. */
void reserve_care_pause(struct reserve_service *service, uint32_t index, const char *id,
                        const char *cause);

void reserve_obey_serve(void *context, struct tg_bus_incoming *take_incoming);
void reserve_due_serve(void *context, struct tg_bus_incoming *take_incoming);
void reserve_attest_serve(void *context, struct tg_bus_incoming *take_incoming);
void reserve_trim_serve(void *context, struct tg_bus_incoming *take_incoming);

#endif
