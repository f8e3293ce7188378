/* SPDX-License-Identifier: Apache-2.0 */
#include "services/reserve/service.h"

#include "lib/io/keys.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"
#include "services/reserve/store_redis.h"

#include <stdlib.h>
#include <string.h>

int reserve_sale_index(const struct reserve_service *service, const char *name)
{
    size_t count = tg_sales_count(service->sales);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(tg_sales_at(service->sales, i)->name, name) == 0) {
            return (int)i;
        }
    }
    return -1;
}

const struct reserve_keys *reserve_sale_keys(struct reserve_service *service, uint32_t index)
{
    const struct tg_sale *sale = tg_sales_at(service->sales, index);
    struct reserve_keys *keys = &service->by_sale[index].keys;
    if (sale->item_count == 0) {
        return NULL;
    }
    if (keys->item_count != sale->item_count || keys->epoch != sale->epoch) {
        reserve_keys_make(sale->name, 0, sale->epoch, sale->item_count, keys);
    }
    return keys;
}

bool reserve_present_seal(const struct reserve_service *service, char out_seal[RESERVE_SEAL_BYTES])
{
    const char *run_id = service->store->run_id(service->store);
    const char *replication_id = service->store->replication_id(service->store);
    if (run_id == NULL || replication_id == NULL) {
        return false;
    }
    reserve_seal(run_id, replication_id, out_seal);
    return true;
}

void reserve_count_invalid(const struct tg_bus_incoming *incoming)
{
    tg_metric_add(TG_METRIC_BUS_INVALID, tg_bus_body(incoming)->descriptor->short_name, 1);
}

/* ---- readiness: a script answers, not a PING ---- */

static void on_probed(void *context, uint64_t token, const struct reserve_answer *answer)
{
    struct reserve_service *service = context;
    service->probing = false;
    if (answer->ending == RESERVE_ENDED) {
        service->probed = tg_now_mono();
    }
}

static void probe_tick(void *context)
{
    struct reserve_service *service = context;
    service->store->check(service->store);
    if (service->probing) {
        return;
    }
    struct reserve_call call;
    service->probing = true;
    reserve_call_look(&call, &service->probe_keys);
    reserve_store_run(service->store, &call, on_probed, service, 0);
}

static void store_changed(void *context, bool usable)
{
    const struct reserve_service *service = context;
    if (usable) {
        tg_log(TG_LOG_INFO, "gate.connected",
               TG_TEXT_FIELD("run_id", service->store->run_id(service->store)),
               TG_NUMBER_FIELD("noeviction", service->store->noeviction(service->store)));
    } else {
        tg_log(TG_LOG_WARN, "gate.disconnected");
    }
}

/* ---- lifecycle ---- */

static int serve(struct reserve_service *service)
{
    static const struct tg_bus_subject served[] = {
        {TG_MESSAGE_RESERVE_HOLD, reserve_hold_serve},
        {TG_MESSAGE_RESERVE_OBEY, reserve_obey_serve},
        {TG_MESSAGE_RESERVE_DUE, reserve_due_serve},
        {TG_MESSAGE_RESERVE_ATTEST, reserve_attest_serve},
        {TG_MESSAGE_RESERVE_TRIM, reserve_trim_serve},
    };
    return tg_bus_serve_all(tg_app_bus(service->app), served, sizeof served / sizeof served[0],
                            service);
}

static int start_timers(struct reserve_service *service)
{
    static const struct {
        uint64_t period_ms;
        void (*tick)(void *context);
    } timers[] = {
        {RESERVE_LOOK_EVERY_MS, reserve_care_tick},
        {RESERVE_RESEND_EVERY_MS, reserve_hold_resend_tick},
        {RESERVE_LOAD_EVERY_MS, reserve_care_load_tick},
        {RESERVE_LOOK_EVERY_MS, probe_tick},
    };
    for (size_t i = 0; i < sizeof timers / sizeof timers[0]; i++) {
        int error = tg_app_every(service->app, timers[i].period_ms, timers[i].tick, service);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

int reserve_service_start(struct tg_app *app, void *context)
{
    struct reserve_service *service = context;
    service->app = app;
    /* No sale has this name in epoch 0: the probe reads an empty place. */
    reserve_keys_make("-", 0, 0, 1, &service->probe_keys);
    int error = tg_keys_secret(service->settings.keys, "pass-mac", service->secrets.pass_mac);
    if (error == 0) {
        error = tg_keys_secret(service->settings.keys, "reservation", service->secrets.reservation);
    }
    if (error == 0) {
        error = reserve_hold_open(service);
    }
    if (error == 0) {
        error = reserve_store_redis_open(tg_app_loop(app), service->settings.redis_url,
                                         store_changed, service, &service->store);
    }
    const struct tg_sales_spec spec = {.keys_folder = service->settings.keys,
                                       .on_change = reserve_care_sale_changed,
                                       .on_command = reserve_care_command,
                                       .context = service};
    if (error == 0) {
        error = tg_sales_open(app, &spec, &service->sales);
    }
    if (error == 0) {
        error = serve(service);
    }
    return error != 0 ? error : start_timers(service);
}

bool reserve_service_ready(void *context, const char **out_why)
{
    const struct reserve_service *service = context;
    if (!tg_bus_connected(tg_app_bus(service->app))) {
        *out_why = "not connected to the bus";
    } else if (!tg_sales_known(service->sales)) {
        *out_why = "the ledger has not told the sales yet";
    } else if (service->store->run_id(service->store) == NULL) {
        const char *fault = service->store->fault(service->store);
        *out_why = fault[0] != '\0' ? fault : "not connected to a primary Redis";
    } else if (!service->store->noeviction(service->store)) {
        *out_why = "Redis may evict keys: maxmemory-policy must be noeviction";
    } else if (tg_now_mono().ms - service->probed.ms > RESERVE_PROBE_STALE_MS) {
        *out_why = "Redis does not run our scripts";
    } else {
        return true;
    }
    return false;
}

void reserve_service_configuration(void *context, char *out_text, size_t capacity)
{
    const struct reserve_service *service = context;
    service->store->configuration(service->store, out_text, capacity);
}

void reserve_service_drain(void *context)
{
    struct reserve_service *service = context;
    service->draining = true; /* what comes now is told to try again: another instance takes it */
}

size_t reserve_service_busy(void *context)
{
    const struct reserve_service *service = context;
    return TG_MAX_HOLDS_IN_PROGRESS - service->free_carried_count + service->jobs_busy;
}

void reserve_service_stop(void *context)
{
    struct reserve_service *service = context;
    service->store = reserve_store_redis_free(service->store);
    service->sales = tg_sales_free(service->sales);
    reserve_hold_close(service);
}
