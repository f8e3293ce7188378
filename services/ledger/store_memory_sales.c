/* SPDX-License-Identifier: Apache-2.0
 * The twin's sales: what 0005_sales.sql and 0006_control.sql decide. */
#include "services/ledger/store_memory_parts.h"

#include <stdio.h>
#include <string.h>

bool memory_proof_fresh(const struct store_memory *store, const struct memory_sale *sale)
{
    const struct tg_sale *told = &sale->told.sale;
    return told->clean_rounds > 0 && told->last_clean.ms + told->proof_lease_ms >= store->now_ms;
}

void memory_pause(struct store_memory *store, struct memory_sale *sale, const char *id,
                  const char *cause)
{
    struct tg_sale *told = &sale->told.sale;
    for (uint32_t i = 0; i < told->pause_count; i++) {
        if (strcmp(told->pauses[i].id, id) == 0) {
            return;
        }
    }
    for (uint32_t i = 0; i < told->lifted_count; i++) {
        if (strcmp(told->lifted[i], id) == 0) {
            return;
        }
    }
    if (told->pause_count == TG_MAX_PAUSES) {
        return;
    }
    struct tg_pause *pause = &told->pauses[told->pause_count++];
    snprintf(pause->id, sizeof pause->id, "%s", id);
    tg_sale_cause(pause, cause, strlen(cause));
    told->control_sequence++;
    memory_event(store, sale, "paused", NULL);
}

static enum tg_phase phase_of(const struct memory_sale *sale)
{
    switch (sale->stage) {
    case MEMORY_CLOSED:
        return TG_PHASE_CLOSED;
    case MEMORY_SCHEDULED:
        return sale->told.sale.pause_count > 0 ? TG_PHASE_PAUSED : TG_PHASE_SCHEDULED;
    case MEMORY_OPEN:
        return sale->told.sale.pause_count > 0 ? TG_PHASE_PAUSED : TG_PHASE_OPEN;
    case MEMORY_SOLD_OUT:
        break;
    }
    return sale->told.sale.pause_count > 0 ? TG_PHASE_PAUSED : TG_PHASE_SOLD_OUT;
}

static void tell_sales(struct store_memory *store, const struct memory_answer *answer, int status)
{
    store->answers.sales(store->answers.context, answer->token, status,
                         (const struct ledger_sales *)answer->rows);
}

/* The smallest name after `after`; NULL when there is none. */
static const struct memory_sale *next_sale(const struct store_memory *store, const char *after)
{
    const struct memory_sale *found = NULL;
    for (uint32_t i = 0; i < store->sale_count; i++) {
        const char *name = store->sales[i].told.sale.name;
        if (strcmp(name, after) > 0 && (found == NULL || strcmp(name, found->told.sale.name) < 0)) {
            found = &store->sales[i];
        }
    }
    return found;
}

static void add_told(const struct store_memory *store, const struct memory_sale *sale,
                     struct ledger_sales *list)
{
    struct ledger_sale *out = &list->rows[list->count++];
    *out = sale->told;
    out->sale.phase = phase_of(sale);
    out->now_ms = store->now_ms;
    out->sale.opened = sale->opened;
    out->open_from_ms = sale->opened && sale->opened_ms < out->sale.opens_at.ms
                            ? sale->opened_ms
                            : out->sale.opens_at.ms;
}

int memory_sales(void *self, const char *after, const char *only, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer =
        memory_answer_new(store, token, sizeof(struct ledger_sales), tell_sales);
    struct ledger_sales *list = (struct ledger_sales *)answer->rows;
    if (only[0] != '\0') {
        const struct memory_sale *sale = memory_sale_find(store, only);
        if (sale != NULL) {
            add_told(store, sale, list);
        }
        return 0;
    }
    for (const struct memory_sale *sale = next_sale(store, after); sale != NULL;
         sale = next_sale(store, sale->told.sale.name)) {
        add_told(store, sale, list);
    }
    return 0;
}

static bool all_confirmed(const struct store_memory *store, const struct memory_sale *sale)
{
    uint64_t live = 0, units = 0;
    for (uint32_t i = 0; i < store->reservation_count; i++) {
        const struct memory_reservation *row = &store->reservations[i];
        if (row->sale == sale && row->state == LEDGER_PENDING) {
            return false;
        }
        if (row->sale == sale && row->live && row->hold.generation == sale->told.sale.generation) {
            live += row->hold.unit_count;
        }
    }
    for (uint32_t i = 0; i < sale->told.sale.item_count; i++) {
        units += sale->told.sale.items[i].units;
    }
    return live == units;
}

static enum memory_stage stage_wanted(const struct store_memory *store,
                                      const struct memory_sale *sale)
{
    switch (sale->stage) {
    case MEMORY_SCHEDULED:
        return sale->told.sale.opens_at.ms <= store->now_ms && sale->told.sale.pause_count == 0 &&
                       sale->told.sale.armed && memory_proof_fresh(store, sale)
                   ? MEMORY_OPEN
                   : MEMORY_SCHEDULED;
    case MEMORY_OPEN:
    case MEMORY_SOLD_OUT:
        return all_confirmed(store, sale) ? MEMORY_SOLD_OUT : MEMORY_OPEN;
    case MEMORY_CLOSED:
        break;
    }
    return MEMORY_CLOSED;
}

static void tell_ticked(struct store_memory *store, const struct memory_answer *answer, int status)
{
    store->answers.ticked(store->answers.context, answer->token, status, answer->count);
}

int memory_tick(void *self, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer = memory_answer_new(store, token, 0, tell_ticked);
    for (uint32_t i = 0; i < store->sale_count; i++) {
        struct memory_sale *sale = &store->sales[i];
        const enum memory_stage wanted = stage_wanted(store, sale);
        if (wanted == sale->stage) {
            continue;
        }
        sale->stage = wanted;
        sale->told.sale.control_sequence++;
        if (!sale->opened) {
            sale->opened = true;
            sale->opened_ms = store->now_ms;
        }
        if (wanted == MEMORY_SOLD_OUT) {
            memory_event(store, sale, "sold_out", NULL);
        }
        answer->count++;
    }
    return 0;
}

static void tell_armed(struct store_memory *store, const struct memory_answer *answer, int status)
{
    store->answers.armed(store->answers.context, answer->token, status, answer->reason);
}

int memory_armed(void *self, const struct ledger_armed *ask, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer = memory_answer_new(store, token, 0, tell_armed);
    struct memory_sale *sale = memory_sale_find(store, ask->sale);
    struct tg_sale *told = sale == NULL ? NULL : &sale->told.sale;
    if (sale == NULL) {
        answer->reason = TG_REASON_SALE_UNKNOWN;
    } else if (told->epoch != ask->epoch) {
        answer->reason = TG_REASON_STALE_EPOCH;
    } else if (sale->stage == MEMORY_CLOSED) {
        answer->reason = TG_REASON_SALE_CLOSED;
    } else if (told->armed) {
        const bool same = strcmp(told->run_id, ask->run_id) == 0 &&
                          strcmp(told->replication_id, ask->replication_id) == 0;
        answer->reason = same ? TG_REASON_NONE : TG_REASON_ALREADY_ARMED;
    } else {
        told->armed = true;
        memcpy(told->run_id, ask->run_id, sizeof told->run_id);
        memcpy(told->replication_id, ask->replication_id, sizeof told->replication_id);
        told->clean_rounds = 0;
        told->last_clean.ms = 0;
        told->control_sequence++;
    }
    return 0;
}

static void tell_checked(struct store_memory *store, const struct memory_answer *answer, int status)
{
    store->answers.checked(store->answers.context, answer->token, status, answer->reason);
}

/* False: this round was told before. */
static bool keep_check(struct store_memory *store, const struct ledger_check *ask)
{
    for (uint32_t i = 0; i < store->check_count; i++) {
        const struct memory_check *check = &store->checks[i];
        if (check->epoch == ask->epoch && check->checked_ms == ask->checked_ms &&
            strcmp(check->sale, ask->sale) == 0 && strcmp(check->instance, ask->instance) == 0) {
            return false;
        }
    }
    store->checks =
        memory_grow(store->checks, store->check_count, &store->check_room, sizeof *store->checks);
    struct memory_check *kept = &store->checks[store->check_count++];
    kept->epoch = ask->epoch;
    kept->checked_ms = ask->checked_ms;
    memcpy(kept->sale, ask->sale, sizeof kept->sale);
    memcpy(kept->instance, ask->instance, sizeof kept->instance);
    return true;
}

int memory_check(void *self, const struct ledger_check *ask, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer = memory_answer_new(store, token, 0, tell_checked);
    struct memory_sale *sale = memory_sale_find(store, ask->sale);
    if (sale == NULL) {
        answer->reason = TG_REASON_SALE_UNKNOWN;
        return 0;
    }
    struct tg_sale *told = &sale->told.sale;
    if (keep_check(store, ask) && told->epoch == ask->epoch && told->armed) {
        const bool clean = strcmp(ask->outcome, "clean") == 0;
        told->clean_rounds = clean ? told->clean_rounds + 1 : 0;
        told->last_clean.ms = clean ? store->now_ms : told->last_clean.ms;
    }
    return 0;
}

static struct memory_log *find_log(struct store_memory *store, const struct ledger_log_place *place)
{
    for (uint32_t i = 0; i < store->log_count; i++) {
        const struct ledger_log_place *known = &store->logs[i].place;
        if (known->epoch == place->epoch && known->shard == place->shard &&
            strcmp(known->sale, place->sale) == 0) {
            return &store->logs[i];
        }
    }
    return NULL;
}

static void tell_log_tail(struct store_memory *store, const struct memory_answer *answer,
                          int status)
{
    store->answers.log_tail(store->answers.context, answer->token, status,
                            (const struct ledger_log_tail *)answer->rows);
}

int memory_log_tail(void *self, const struct ledger_log_place *place, uint64_t token)
{
    struct memory_answer *answer =
        memory_answer_new(self, token, sizeof(struct ledger_log_tail), tell_log_tail);
    const struct memory_log *log = find_log(self, place);
    if (log != NULL) {
        memcpy(answer->rows, &log->tail, sizeof log->tail);
    }
    return 0;
}

static void tell_audit(struct store_memory *store, const struct memory_answer *answer, int status)
{
    store->answers.audit(store->answers.context, answer->token, status,
                         (const struct ledger_audit *)answer->rows);
}

/* The twin keeps where a log ends, not what is in it. */
int memory_audit(void *self, const struct ledger_audit_ask *ask, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer =
        memory_answer_new(store, token, sizeof(struct ledger_audit), tell_audit);
    struct ledger_audit *page = (struct ledger_audit *)answer->rows;
    const struct memory_sale *sale = memory_sale_find(store, ask->place.sale);
    if (sale == NULL) {
        page->reason = TG_REASON_SALE_UNKNOWN;
    } else {
        page->epoch = ask->place.epoch != 0 ? ask->place.epoch : sale->told.sale.epoch;
    }
    return 0;
}

static void tell_log_stored(struct store_memory *store, const struct memory_answer *answer,
                            int status)
{
    store->answers.log_stored(store->answers.context, answer->token, status, answer->reason,
                              answer->number);
}

static bool continues(const struct ledger_log_page *page, uint64_t tail)
{
    bool well = page->tail.sequence == tail && page->count > 0;
    for (uint32_t i = 0; i < page->count; i++) {
        well = well && page->entries[i].sequence == tail + 1 + i;
    }
    return well;
}

int memory_log_append(void *self, const struct ledger_log_page *page, uint64_t token)
{
    struct store_memory *store = self;
    struct memory_answer *answer = memory_answer_new(store, token, 0, tell_log_stored);
    const struct memory_sale *sale = memory_sale_find(store, page->place.sale);
    struct memory_log *log = find_log(store, &page->place);
    const uint64_t tail = log == NULL ? 0 : log->tail.sequence;
    if (sale == NULL || sale->told.sale.epoch < page->place.epoch) {
        answer->reason = TG_REASON_STALE_EPOCH;
        return 0;
    }
    answer->number = tail;
    if (!continues(page, tail)) {
        answer->reason = TG_REASON_GAP;
        return 0;
    }
    if (log == NULL) {
        store->logs =
            memory_grow(store->logs, store->log_count, &store->log_room, sizeof *store->logs);
        log = &store->logs[store->log_count++];
        log->place = page->place;
    }
    log->tail.sequence = tail + page->count;
    memcpy(log->tail.hash, page->hashes[page->count - 1], sizeof log->tail.hash);
    answer->number = log->tail.sequence;
    return 0;
}
