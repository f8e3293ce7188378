/* SPDX-License-Identifier: Apache-2.0
 * The twin's tables, its queue of answers, and the operations on events. */
#include "services/ledger/store_memory.h"

#include "services/ledger/migrate.h"
#include "services/ledger/store_memory_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 5000 };

int store_memory_open(uint32_t reservations_max, const struct ledger_answers *answers,
                      struct store_memory **out_store)
{
    struct store_memory *store = calloc(1, sizeof *store);
    if (store == NULL) {
        return -ENOMEM;
    }
    store->reservations = calloc(reservations_max, sizeof *store->reservations);
    store->by_id = calloc(reservations_max, sizeof(struct memory_reservation *));
    if (store->reservations == NULL || store->by_id == NULL) {
        (void)store_memory_free(store);
        return -ENOMEM;
    }
    store->reservations_max = reservations_max;
    store->answers = *answers;
    store->port = (struct ledger_store){.self = store,
                                        .record = memory_record,
                                        .expire = memory_expire,
                                        .obeyed = memory_obeyed,
                                        .due = memory_due,
                                        .snapshot = memory_snapshot,
                                        .incident = memory_incident,
                                        .audit = memory_audit,
                                        .draw = memory_draw,
                                        .armed = memory_armed,
                                        .check = memory_check,
                                        .log_tail = memory_log_tail,
                                        .log_append = memory_log_append,
                                        .reservation = memory_reservation,
                                        .sales = memory_sales,
                                        .tick = memory_tick,
                                        .judge = memory_judge,
                                        .events = memory_events,
                                        .published = memory_published,
                                        .health = memory_health};
    *out_store = store;
    return 0;
}

struct store_memory *store_memory_free(struct store_memory *store)
{
    if (store == NULL) {
        return NULL;
    }
    while (store->first != NULL) {
        struct memory_answer *answer = store->first;
        store->first = answer->next;
        free(answer);
    }
    free(store->reservations);
    free((void *)store->by_id);
    free(store->events);
    free(store->commands);
    free(store->logs);
    free(store->checks);
    for (uint32_t i = 0; i < store->sale_count; i++) {
        free(store->sales[i].roster);
    }
    free(store);
    return NULL;
}

const struct ledger_store *store_memory_port(struct store_memory *store)
{
    return &store->port;
}

void store_memory_now(struct store_memory *store, int64_t now_ms)
{
    store->now_ms = now_ms;
}

static bool tell_first(struct store_memory *store, int status)
{
    struct memory_answer *answer = store->first;
    if (answer == NULL) {
        return false;
    }
    store->first = answer->next;
    store->last = store->first == NULL ? NULL : store->last;
    answer->tell(store, answer, status);
    free(answer);
    return true;
}

bool store_memory_deliver(struct store_memory *store)
{
    return tell_first(store, 0);
}

bool store_memory_lose(struct store_memory *store)
{
    return tell_first(store, TG_ERR_TIMEOUT);
}

struct memory_answer *memory_answer_new(struct store_memory *store, uint64_t token, size_t bytes,
                                        void (*tell)(struct store_memory *,
                                                     const struct memory_answer *, int))
{
    struct memory_answer *answer = calloc(1, sizeof *answer + bytes);
    if (answer == NULL) {
        abort();
    }
    answer->token = token;
    answer->tell = tell;
    if (store->last == NULL) {
        store->first = answer;
    } else {
        store->last->next = answer;
    }
    store->last = answer;
    return answer;
}

void *memory_grow(void *table, uint32_t count, uint32_t *room, size_t size)
{
    if (count < *room) {
        return table;
    }
    *room = *room == 0 ? 64 : *room * 2;
    void *larger = realloc(table, *room * size);
    if (larger == NULL) {
        abort();
    }
    return larger;
}

struct memory_sale *memory_sale_find(struct store_memory *store, const char *name)
{
    for (uint32_t i = 0; i < store->sale_count; i++) {
        if (strcmp(store->sales[i].told.sale.name, name) == 0) {
            return &store->sales[i];
        }
    }
    return NULL;
}

uint32_t memory_place(const struct store_memory *store, const char *id)
{
    uint32_t low = 0, high = store->reservation_count;
    while (low < high) {
        const uint32_t middle = (low + high) / 2;
        if (strcmp(store->by_id[middle]->hold.id.text, id) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

struct memory_reservation *memory_find(struct store_memory *store, const char *id)
{
    const uint32_t place = memory_place(store, id);
    if (place < store->reservation_count && strcmp(store->by_id[place]->hold.id.text, id) == 0) {
        return store->by_id[place];
    }
    return NULL;
}

struct memory_reservation *memory_insert(struct store_memory *store, const struct ledger_hold *hold)
{
    if (store->reservation_count == store->reservations_max) {
        return NULL;
    }
    const uint32_t place = memory_place(store, hold->id.text);
    struct memory_reservation *row = &store->reservations[store->reservation_count];
    memmove((void *)(store->by_id + place + 1), (const void *)(store->by_id + place),
            (store->reservation_count - place) * sizeof(struct memory_reservation *));
    store->by_id[place] = row;
    store->reservation_count++;
    memset(row, 0, sizeof *row);
    row->hold = *hold;
    return row;
}

static struct ledger_event *new_event(struct store_memory *store, const struct memory_sale *sale,
                                      const char *kind)
{
    store->events =
        memory_grow(store->events, store->event_count, &store->event_room, sizeof *store->events);
    struct memory_event *kept = &store->events[store->event_count++];
    memset(kept, 0, sizeof *kept);
    kept->event.id = store->event_count;
    kept->event.at_ms = store->now_ms;
    kept->event.generation = sale->told.sale.generation;
    snprintf(kept->event.sale, sizeof kept->event.sale, "%s", sale->told.sale.name);
    snprintf(kept->event.kind, sizeof kept->event.kind, "%s", kind);
    return &kept->event;
}

static void fill_reservation(struct ledger_event *event, const struct memory_reservation *row)
{
    event->reservation = row->hold.id;
    event->generation = row->hold.generation;
    memcpy(event->user, row->hold.user, row->hold.user_length);
    event->user_length = row->hold.user_length;
    event->unit_count = row->hold.unit_count;
    memcpy(event->units, row->hold.units, sizeof event->units);
    memcpy(event->order_id, row->order_id, sizeof event->order_id);
}

void memory_event(struct store_memory *store, const struct memory_sale *sale, const char *kind,
                  const struct memory_reservation *row)
{
    struct ledger_event *event = new_event(store, sale, kind);
    if (row == NULL) {
        snprintf(event->message_id, sizeof event->message_id, "%s.%" PRIu64 ".%s.%" PRIu64,
                 sale->told.sale.name, event->generation, kind, sale->told.sale.control_sequence);
        return;
    }
    fill_reservation(event, row);
    memcpy(event->payment, row->payment, sizeof event->payment);
    event->amount_minor = row->amount_minor;
    memcpy(event->currency, row->currency, sizeof event->currency);
    snprintf(event->message_id, sizeof event->message_id, "%s.%s", row->hold.id.text, kind);
}

bool memory_compensated(const struct store_memory *store, const char *payment)
{
    for (uint32_t i = 0; i < store->event_count; i++) {
        const struct ledger_event *event = &store->events[i].event;
        if (strcmp(event->kind, "compensate") == 0 && strcmp(event->payment, payment) == 0) {
            return true;
        }
    }
    return false;
}

void memory_compensate(struct store_memory *store, const struct memory_reservation *row,
                       const struct ledger_ask *ask, const char *why)
{
    if (memory_compensated(store, ask->payment)) {
        return;
    }
    struct ledger_event *event = new_event(store, row->sale, "compensate");
    fill_reservation(event, row);
    memcpy(event->payment, ask->payment, sizeof event->payment);
    memcpy(event->currency, ask->currency, sizeof event->currency);
    event->amount_minor = ask->amount_minor;
    snprintf(event->detail, sizeof event->detail, "%s", why);
    snprintf(event->message_id, sizeof event->message_id, "compensate.%s", ask->payment);
}

static void tell_events(struct store_memory *store, const struct memory_answer *answer, int status)
{
    store->answers.events(store->answers.context, answer->token, status,
                          (const struct ledger_event *)answer->rows, answer->count);
}

int memory_events(void *self, const char *instance, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer = memory_answer_new(
        store, token, LEDGER_EVENTS_PAGE * sizeof(struct ledger_event), tell_events);
    struct ledger_event *rows = (struct ledger_event *)answer->rows;
    if (strcmp(store->publisher, instance) != 0 && store->publisher_until_ms >= store->now_ms) {
        return 0;
    }
    for (uint32_t i = 0; i < store->event_count && answer->count < LEDGER_EVENTS_PAGE; i++) {
        if (!store->events[i].published) {
            rows[answer->count++] = store->events[i].event;
        }
    }
    if (answer->count > 0) {
        snprintf(store->publisher, sizeof store->publisher, "%s", instance);
        store->publisher_until_ms = store->now_ms + LEASE_MS;
    }
    return 0;
}

static void tell_published(struct store_memory *store, const struct memory_answer *answer,
                           int status)
{
    store->answers.published(store->answers.context, answer->token, status);
}

int memory_published(void *self, const int64_t *ids, uint32_t count, uint64_t token)
{
    struct store_memory *store = self;
    for (uint32_t i = 0; i < count; i++) {
        if (ids[i] >= 1 && ids[i] <= store->event_count) {
            store->events[ids[i] - 1].published = true;
        }
    }
    (void)memory_answer_new(store, token, 0, tell_published);
    return 0;
}

static void tell_health(struct store_memory *store, const struct memory_answer *answer, int status)
{
    const struct ledger_health health = {
        .version = ledger_schema_version(), .writable = true, .sound = true};
    store->answers.health(store->answers.context, answer->token, status, &health);
}

int memory_health(void *self, uint64_t token)
{
    (void)memory_answer_new(self, token, 0, tell_health);
    return 0;
}
