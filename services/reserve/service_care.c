/* SPDX-License-Identifier: Apache-2.0
 * One sale's gate: looking, stock, pauses, loading. The core decides (core_care.c). */
#include "services/reserve/service.h"

#include "lib/io/failpoint.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"

#include <string.h>

static void feed(struct reserve_service *service, uint32_t index,
                 const struct reserve_care_event *event, const Tidegate__V1__SnapshotReply *rows);

static struct reserve_care_view view_of(struct reserve_service *service, uint32_t index)
{
    return (struct reserve_care_view){.now = tg_now_mono(),
                                      .sale = tg_sales_at(service->sales, index),
                                      .run_id = service->store->run_id(service->store),
                                      .noeviction = service->store->noeviction(service->store)};
}

/* ---- looking and telling ---- */

static void on_looked(void *context, uint64_t token, const struct reserve_answer *answer)
{
    struct reserve_look look;
    bool read = reserve_answer_look(answer, &look);
    const struct reserve_care_event event = {
        .kind = RESERVE_CARE_LOOKED,
        .look = read ? &look : NULL,
        .broken = !read && (answer->ending == RESERVE_BROKEN || answer->ending == RESERVE_ENDED)};
    feed(context, (uint32_t)token, &event, NULL);
}

static void run_look(struct reserve_service *service, uint32_t index)
{
    const struct reserve_keys *keys = reserve_sale_keys(service, index);
    struct reserve_call call;
    if (keys == NULL) {
        const struct reserve_answer nothing = {.ending = RESERVE_NOT_RUN};
        on_looked(service, index, &nothing);
        return;
    }
    reserve_call_look(&call, keys);
    reserve_store_run(service->store, &call, on_looked, service, index);
}

static void publish_stock(struct reserve_service *service, uint32_t index)
{
    const struct reserve_care *care = &service->by_sale[index].care;
    const struct reserve_care_view view = view_of(service, index);
    bool armed = reserve_care_armed(care, &view);
    struct reserve_stock stock;
    reserve_wire_stock(view.sale, &care->look, armed, &stock);
    stock.message.load_pages = care->stage != RESERVE_CARE_IDLE ? care->page : 0;
    stock.message.load_verified = care->stage >= RESERVE_CARE_ARM;
    if (tg_bus_publish(tg_app_bus(service->app), TG_MESSAGE_GATE_STOCK, view.sale->name,
                       &stock.message.base) != 0) {
        tg_metric_add(TG_METRIC_BUS_CALL_FAILURES, "disconnected", 1);
    }
    if (!armed) {
        return;
    }
    uint64_t sums[3] = {0};
    for (uint32_t i = 0; i < care->look.item_count; i++) {
        sums[0] += stock.items[i].free;
        sums[1] += stock.items[i].held;
        sums[2] += stock.items[i].settled;
    }
    tg_metric_set(TG_METRIC_STOCK, view.sale->name, (double)sums[0]);
    tg_metric_set(TG_METRIC_HELD, view.sale->name, (double)sums[1]);
    tg_metric_set(TG_METRIC_SETTLED, view.sale->name, (double)sums[2]);
    tg_metric_set(TG_METRIC_GATE_UNACKED, view.sale->name, (double)care->look.unacked);
}

/* ---- pauses ---- */

static void on_paused(void *context, uint64_t token, const struct reserve_answer *answer)
{
    const struct reserve_service *service = context;
    if (answer->ending != RESERVE_ENDED) {
        /* Tried again with the next look; until then our own view keeps the sale closed. */
        tg_log(TG_LOG_WARN, "gate.pause_unsure",
               TG_TEXT_FIELD("sale", tg_sales_at(service->sales, (size_t)token)->name));
    }
}

/* What is broken is met by every order and every look: one id for all of it. True: a new one. */
static bool name_doubt(struct reserve_sale *kept, const struct tg_sale *sale)
{
    if (kept->doubt[0] != '\0' && !reserve_care_lifts(sale, kept->doubt)) {
        return false;
    }
    tg_command_new_id(kept->doubt);
    return true;
}

void reserve_care_pause(struct reserve_service *service, uint32_t index, const char *id,
                        const char *cause)
{
    const struct reserve_keys *keys = reserve_sale_keys(service, index);
    const struct tg_sale *sale = tg_sales_at(service->sales, index);
    struct reserve_sale *kept = &service->by_sale[index];
    if (id != NULL && reserve_care_lifts(sale, id)) {
        return; /* met again: an operator has resumed over it */
    }
    if (id != NULL || name_doubt(kept, sale)) {
        tg_log(TG_LOG_ERROR, "gate.paused", TG_TEXT_FIELD("sale", sale->name),
               TG_TEXT_FIELD("pause", id != NULL ? id : kept->doubt),
               TG_TEXT_FIELD("cause", cause));
    }
    if (keys == NULL) {
        return;
    }
    struct reserve_call call;
    reserve_call_pause(&call, keys);
    reserve_call_pause_id(&call, id != NULL ? id : kept->doubt, cause);
    reserve_store_run(service->store, &call, on_paused, service, index);
}

/* Every pause the ledger or a command told, at once; known ones are not changed by it. */
static void write_pauses(struct reserve_service *service, uint32_t index)
{
    const struct tg_sale *sale = tg_sales_at(service->sales, index);
    const struct reserve_keys *keys = reserve_sale_keys(service, index);
    if (keys == NULL || sale->pause_count + sale->own_pause_count == 0) {
        return;
    }
    struct reserve_call call;
    reserve_call_pause(&call, keys);
    for (uint32_t i = 0; i < sale->pause_count; i++) {
        reserve_call_pause_id(&call, sale->pauses[i].id, sale->pauses[i].cause);
    }
    for (uint32_t i = 0; i < sale->own_pause_count; i++) {
        reserve_call_pause_id(&call, sale->own_pauses[i].id, sale->own_pauses[i].cause);
    }
    reserve_store_run(service->store, &call, on_paused, service, index);
}

static void on_lifted(void *context, uint64_t token, const struct reserve_answer *answer)
{
    /* What is still there is seen by the next look. */
}

static void lift_pauses(struct reserve_service *service, uint32_t index)
{
    const struct tg_sale *sale = tg_sales_at(service->sales, index);
    const struct reserve_look *look = &service->by_sale[index].care.look;
    const struct reserve_keys *keys = reserve_sale_keys(service, index);
    if (keys == NULL) {
        return;
    }
    struct reserve_call call;
    reserve_call_lift(&call, keys);
    for (uint32_t i = 0; i < look->pause_count; i++) {
        if (reserve_care_lifts(sale, look->pauses[i])) {
            reserve_call_lift_id(&call, look->pauses[i]);
            tg_log(TG_LOG_INFO, "gate.lifted", TG_TEXT_FIELD("sale", sale->name),
                   TG_TEXT_FIELD("pause", look->pauses[i]));
        }
    }
    reserve_store_run(service->store, &call, on_lifted, service, index);
}

/* ---- loading ---- */

static void log_failure(struct reserve_service *service, uint32_t index, const char *step,
                        const char *why)
{
    tg_log(TG_LOG_WARN, "gate.load_failed",
           TG_TEXT_FIELD("sale", tg_sales_at(service->sales, index)->name),
           TG_TEXT_FIELD("step", step), TG_TEXT_FIELD("why", why));
}

/* The gate's answer to one step of the chain. `word`: what it says when the step is done. */
static struct reserve_care_event step_event(struct reserve_service *service, uint32_t index,
                                            const struct reserve_answer *answer,
                                            enum reserve_care_event_kind kind, const char *word)
{
    struct reserve_care_event event = {.kind = kind, .result = RESERVE_RESULT_FAILED};
    if (answer->ending == RESERVE_ENDED && reserve_word_is(answer, 0, word)) {
        event.result = RESERVE_RESULT_DONE;
        return event;
    }
    char why[64] = "no answer";
    if (answer->ending == RESERVE_ENDED &&
        !reserve_word_copy(answer, answer->count > 1 ? 1 : 0, why, sizeof why)) {
        memcpy(why, "refused", sizeof "refused");
    }
    if (!reserve_word_is(answer, 0, "busy")) {
        log_failure(service, index, word, why);
    }
    return event;
}

/* "armed RUN_ID REPLICATION_ID" on this very Redis. */
static bool armed_here(struct reserve_service *service, const struct reserve_answer *answer,
                       char out_replication_id[41])
{
    const char *run_id = service->store->run_id(service->store);
    return answer->ending == RESERVE_ENDED && run_id != NULL &&
           reserve_word_is(answer, 0, "armed") && reserve_word_is(answer, 1, run_id) &&
           reserve_word_copy(answer, 2, out_replication_id, 41);
}

static void on_begun(void *context, uint64_t token, const struct reserve_answer *answer)
{
    struct reserve_service *service = context;
    char replication_id[41];
    struct reserve_care_event event;
    if (armed_here(service, answer, replication_id)) {
        event = (struct reserve_care_event){.kind = RESERVE_CARE_BEGUN,
                                            .result = RESERVE_RESULT_ARMED_ALREADY,
                                            .replication_id = replication_id};
    } else {
        event = step_event(service, (uint32_t)token, answer, RESERVE_CARE_BEGUN, "begun");
    }
    feed(service, (uint32_t)token, &event, NULL);
}

static void on_paged(void *context, uint64_t token, const struct reserve_answer *answer)
{
    const struct reserve_care_event event =
        step_event(context, (uint32_t)token, answer, RESERVE_CARE_PAGED, "loaded");
    feed(context, (uint32_t)token, &event, NULL);
}

static void on_finished(void *context, uint64_t token, const struct reserve_answer *answer)
{
    const struct reserve_care_event event =
        step_event(context, (uint32_t)token, answer, RESERVE_CARE_FINISHED, "verified");
    feed(context, (uint32_t)token, &event, NULL);
}

static void on_armed(void *context, uint64_t token, const struct reserve_answer *answer)
{
    struct reserve_service *service = context;
    char replication_id[41];
    struct reserve_care_event event =
        step_event(service, (uint32_t)token, answer, RESERVE_CARE_ARMED, "armed");
    event.replication_id = replication_id;
    if (!armed_here(service, answer, replication_id)) {
        event.result = RESERVE_RESULT_FAILED;
    }
    feed(service, (uint32_t)token, &event, NULL);
}

/* False: the chain cannot go on now; it is told as a failure of the step by `on_answer`. */
static bool loader_of(struct reserve_service *service, uint32_t index,
                      struct reserve_loader *out_loader)
{
    *out_loader =
        (struct reserve_loader){.keys = reserve_sale_keys(service, index),
                                .instance = tg_app_instance(service->app),
                                .run_id = service->store->run_id(service->store),
                                .replication_id = service->store->replication_id(service->store)};
    return out_loader->keys != NULL && out_loader->run_id != NULL &&
           out_loader->keys->epoch == service->by_sale[index].care.epoch;
}

/* The rows of a page into the call. False: one is not readable. */
static bool add_rows(struct reserve_call *call, const Tidegate__V1__SnapshotReply *rows,
                     char packed[TG_MAX_SNAPSHOT_PAGE][TG_HOLD_RECORD_BYTES])
{
    for (size_t i = 0; i < rows->n_rows; i++) {
        const char *state = NULL;
        size_t length = 0;
        if (!reserve_wire_snapshot_row(rows->rows[i], &state, packed[i], &length)) {
            return false;
        }
        const struct reserve_word word = {packed[i], length};
        reserve_call_load_row(call, state, rows->rows[i]->reservation_id, &word);
    }
    return true;
}

static void run_page(struct reserve_service *service, uint32_t index,
                     const Tidegate__V1__SnapshotReply *rows)
{
    char packed[TG_MAX_SNAPSHOT_PAGE][TG_HOLD_RECORD_BYTES];
    struct reserve_loader loader;
    struct reserve_call call;
    const struct reserve_answer nothing = {.ending = RESERVE_NOT_RUN};
    if (rows == NULL || !loader_of(service, index, &loader) ||
        TG_FAILPOINT(RESERVE_LOAD_PAGE) != 0) {
        on_paged(service, index, &nothing);
        return;
    }
    reserve_call_load_page(&call, &loader, service->by_sale[index].care.page);
    if (!add_rows(&call, rows, packed)) {
        log_failure(service, index, "page", "a row of the ledger is not readable");
        on_paged(service, index, &nothing);
        return;
    }
    service->by_sale[index].loaded_rows += rows->n_rows;
    reserve_store_run(service->store, &call, on_paged, service, index);
}

static void on_fetched(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    struct reserve_service *service = context;
    const Tidegate__V1__SnapshotReply *rows = (const Tidegate__V1__SnapshotReply *)reply;
    struct reserve_care_event event = {.kind = RESERVE_CARE_FETCHED,
                                       .result = RESERVE_RESULT_FAILED};
    if (status != 0 || rows->reason[0] != '\0' || rows->n_rows > TG_MAX_SNAPSHOT_PAGE ||
        (rows->n_rows == 0 && !rows->end)) {
        log_failure(service, (uint32_t)token, "snapshot",
                    status != 0 ? tg_error_text(status) : rows->reason);
    } else {
        event.result = RESERVE_RESULT_DONE;
        event.rows = (uint32_t)rows->n_rows;
        event.end = rows->end;
        event.after = rows->n_rows > 0 ? rows->rows[rows->n_rows - 1]->reservation_id : "";
    }
    feed(service, (uint32_t)token, &event, rows);
}

static void run_fetch(struct reserve_service *service, uint32_t index)
{
    struct reserve_care *care = &service->by_sale[index].care;
    char *name = tg_sales_at(service->sales, index)->name;
    Tidegate__V1__SnapshotRequest request;
    tidegate__v1__snapshot_request__init(&request);
    request.sale = name;
    request.epoch = care->epoch;
    request.after = care->after;
    request.limit = TG_MAX_SNAPSHOT_PAGE;
    int error = tg_bus_call(tg_app_bus(service->app), TG_MESSAGE_LEDGER_SNAPSHOT, name,
                            &request.base, "", TG_MAX_CALL_MS, on_fetched, service, index);
    if (error != 0) {
        on_fetched(service, index, error, NULL);
    }
}

static void on_told(void *context, uint64_t token, int status, const ProtobufCMessage *reply)
{
    struct reserve_service *service = context;
    const Tidegate__V1__ArmedReply *told = (const Tidegate__V1__ArmedReply *)reply;
    const struct reserve_care_event event = {.kind = RESERVE_CARE_TOLD};
    if (status == 0 && told->reason[0] == '\0') {
        tg_log(TG_LOG_INFO, "gate.armed",
               TG_TEXT_FIELD("sale", tg_sales_at(service->sales, (size_t)token)->name),
               TG_NUMBER_FIELD("epoch", service->by_sale[token].care.epoch),
               TG_NUMBER_FIELD("rows", service->by_sale[token].loaded_rows));
    } else {
        log_failure(service, (uint32_t)token, "tell",
                    status != 0 ? tg_error_text(status) : told->reason);
    }
    feed(service, (uint32_t)token, &event, NULL);
}

static void run_tell(struct reserve_service *service, uint32_t index)
{
    struct reserve_care *care = &service->by_sale[index].care;
    const char *run_id = service->store->run_id(service->store);
    char *name = tg_sales_at(service->sales, index)->name;
    Tidegate__V1__ArmedRequest request;
    tidegate__v1__armed_request__init(&request);
    request.sale = name;
    request.epoch = care->epoch;
    request.run_id = (char *)(run_id != NULL ? run_id : "");
    request.replication_id = care->replication_id;
    int error = run_id == NULL || TG_FAILPOINT(RESERVE_ARMED) != 0
                    ? TG_ERR_DISCONNECTED
                    : tg_bus_call(tg_app_bus(service->app), TG_MESSAGE_LEDGER_ARMED, name,
                                  &request.base, "", TG_MAX_CALL_MS, on_told, service, index);
    if (error != 0) {
        on_told(service, index, error, NULL);
    }
}

static void run_load_step(struct reserve_service *service, uint32_t index,
                          enum reserve_care_action action)
{
    struct reserve_loader loader;
    struct reserve_call call;
    reserve_on_answer *on_answer = on_begun;
    bool possible = loader_of(service, index, &loader);
    if (action == RESERVE_CARE_DO_FINISH) {
        on_answer = on_finished;
    } else if (action == RESERVE_CARE_DO_ARM) {
        on_answer = on_armed;
        possible = possible && TG_FAILPOINT(RESERVE_ARM) == 0;
    }
    if (!possible) {
        const struct reserve_answer nothing = {.ending = RESERVE_NOT_RUN};
        on_answer(service, index, &nothing);
        return;
    }
    if (action == RESERVE_CARE_DO_BEGIN) {
        service->by_sale[index].loaded_rows = 0;
        reserve_call_load_begin(&call, &loader, tg_sales_at(service->sales, index));
    } else if (action == RESERVE_CARE_DO_FINISH) {
        reserve_call_load_finish(&call, &loader);
    } else {
        reserve_call_arm(&call, &loader);
    }
    reserve_store_run(service->store, &call, on_answer, service, index);
}

/* ---- the core's wishes ---- */

static void act(struct reserve_service *service, uint32_t index, enum reserve_care_action action,
                const Tidegate__V1__SnapshotReply *rows)
{
    switch (action) {
    case RESERVE_CARE_DO_LOOK:
        run_look(service, index);
        return;
    case RESERVE_CARE_DO_PUBLISH:
        publish_stock(service, index);
        return;
    case RESERVE_CARE_DO_PAUSE:
        write_pauses(service, index);
        return;
    case RESERVE_CARE_DO_LIFT:
        lift_pauses(service, index);
        return;
    case RESERVE_CARE_DO_DOUBT:
        reserve_care_pause(service, index, NULL, "doubt");
        return;
    case RESERVE_CARE_DO_BEGIN:
    case RESERVE_CARE_DO_FINISH:
    case RESERVE_CARE_DO_ARM:
        run_load_step(service, index, action);
        return;
    case RESERVE_CARE_DO_FETCH:
        run_fetch(service, index);
        return;
    case RESERVE_CARE_DO_PAGE:
        run_page(service, index, rows);
        return;
    case RESERVE_CARE_DO_TELL:
        run_tell(service, index);
        return;
    }
}

static void feed(struct reserve_service *service, uint32_t index,
                 const struct reserve_care_event *event, const Tidegate__V1__SnapshotReply *rows)
{
    enum reserve_care_action actions[RESERVE_CARE_ACTIONS_MAX];
    const struct reserve_care_view view = view_of(service, index);
    size_t count = reserve_care_step(&service->by_sale[index].care, &view, event, actions);
    for (size_t i = 0; i < count; i++) {
        act(service, index, actions[i], rows);
    }
}

void reserve_care_stock_turned(struct reserve_service *service, uint32_t index, bool empty)
{
    const struct reserve_care *care = &service->by_sale[index].care;
    int64_t stock = 0;
    for (uint32_t i = 0; care->looked && i < care->look.item_count; i++) {
        stock += care->look.items[i].stock;
    }
    if (!care->looked || empty == (stock > 0)) {
        const struct reserve_care_event event = {.kind = RESERVE_CARE_TICK};
        feed(service, index, &event, NULL);
    }
}

void reserve_care_tick(void *context)
{
    struct reserve_service *service = context;
    const struct reserve_care_event event = {.kind = RESERVE_CARE_TICK};
    size_t count = tg_sales_count(service->sales);
    for (size_t i = 0; i < count; i++) {
        feed(service, (uint32_t)i, &event, NULL);
    }
}

void reserve_care_load_tick(void *context)
{
    struct reserve_service *service = context;
    size_t count = tg_sales_count(service->sales);
    for (size_t i = 0; i < count; i++) {
        struct reserve_sale *kept = &service->by_sale[i];
        char *name = tg_sales_at(service->sales, i)->name;
        Tidegate__V1__Load load;
        tidegate__v1__load__init(&load);
        load.sale = name;
        load.daemon = (char *)tg_app_name(service->app);
        load.instance = (char *)tg_app_instance(service->app);
        load.p99_us = tg_histogram_at_us(&kept->hold_us, 990);
        load.requests = kept->requests;
        load.errors = kept->errors;
        load.in_flight = kept->in_progress;
        if (tg_bus_publish(tg_app_bus(service->app), TG_MESSAGE_LOAD_RESERVE, name, &load.base) ==
            0) {
            kept->requests = 0;
            kept->errors = 0;
            memset(&kept->hold_us, 0, sizeof kept->hold_us);
        }
    }
}

/* What the next look would find out anyway is done at once: new pauses go in, lifted ones out. */
void reserve_care_sale_changed(void *context, struct tg_sale *sale)
{
    struct reserve_service *service = context;
    int index = service->sales != NULL ? reserve_sale_index(service, sale->name) : -1;
    const struct reserve_care *care = index >= 0 ? &service->by_sale[index].care : NULL;
    if (care == NULL || !care->looked || !care->look.known ||
        (uint64_t)care->look.epoch != sale->epoch) {
        return;
    }
    if (reserve_care_pause_missing(care, sale)) {
        write_pauses(service, (uint32_t)index);
    }
    if (reserve_care_lift_wanted(care, sale)) {
        lift_pauses(service, (uint32_t)index);
    }
}

const char *reserve_care_command(void *context, struct tg_sale *sale,
                                 const Tidegate__V1__Command *command)
{
    struct reserve_service *service = context;
    if (command->kind != TIDEGATE__V1__COMMAND_KIND__COMMAND_KIND_PAUSE || sale == NULL) {
        return "noted";
    }
    int index = reserve_sale_index(service, sale->name);
    if (index >= 0) {
        write_pauses(service, (uint32_t)index);
    }
    return "honoured";
}
