/* SPDX-License-Identifier: Apache-2.0 */
#include "services/invariant/checker.h"

#include "lib/io/keys.h"
#include "lib/io/log.h"
#include "lib/io/metrics.h"
#include "lib/io/now.h"

#include <stdlib.h>

enum { TURN_MS = 20, CONNECTIONS = 2, STATEMENT_MS = 8000, QUESTIONS_MAX = 256 };

static struct invariant_work *work_of(struct invariant *invariant, size_t index)
{
    if (!invariant->works[index]) {
        invariant->works[index] = calloc(1, sizeof *invariant->works[index]);
        if (!invariant->works[index]) {
            tg_log(TG_LOG_ERROR, "proof.no_memory",
                   TG_TEXT_FIELD("sale", tg_sales_at(invariant->sales, index)->name));
        }
    }
    return invariant->works[index];
}

static void turn_sale(struct invariant *invariant, size_t index, struct tg_mono now)
{
    struct invariant_work *work = work_of(invariant, index);
    const struct tg_sale *view = tg_sales_at(invariant->sales, index);
    if (!work) {
        return;
    }
    if (work->proved) {
        tg_metric_set(TG_METRIC_PROOF_AGE, view->name, (double)(now.ms - work->clean.ms) / 1000);
    }
    switch (invariant_turn(&work->core, view, now, tg_kv_server(invariant->kv) != NULL)) {
    case INVARIANT_TURN_NONE:
        break;
    case INVARIANT_TURN_ROUND:
        invariant_proceed(invariant, index);
        break;
    case INVARIANT_TURN_LOST:
        invariant_judge_lost(&work->judgement);
        invariant_report(invariant, index);
        break;
    }
    if (invariant_pause_due(&work->core, view, now)) {
        invariant_send_pause(invariant, index, work->core.pause.id, work->core.pause.cause);
    }
    invariant_export_turn(invariant, index, now);
}

static void turn(void *context)
{
    struct invariant *invariant = context;
    if (invariant->draining) {
        return;
    }
    const struct tg_mono now = tg_now_mono();
    for (size_t i = 0; i < tg_sales_count(invariant->sales); i++) {
        turn_sale(invariant, i, now);
    }
}

static int open_stores(struct invariant *invariant, const struct invariant_settings *settings)
{
    const struct tg_kv_spec kv = {.url = settings->redis_url,
                                  .command_ms = TG_MAX_GATE_COMMAND_MS,
                                  .in_flight_max = TG_MAX_GATE_IN_FLIGHT};
    const struct tg_pg_spec pg = {.conninfo = settings->postgres_url,
                                  .connections = CONNECTIONS,
                                  .statement_ms = STATEMENT_MS,
                                  .queue_max = QUESTIONS_MAX};
    uv_loop_t *loop = tg_app_loop(invariant->app);
    const int error = tg_kv_open(loop, &kv, &invariant->kv);
    return error != 0 ? error : tg_pg_open(loop, &pg, &invariant->pg);
}

static int read_key(void *context)
{
    struct invariant *invariant = context;
    return tg_keys_sign(invariant->keys_folder, "control-invariant", &invariant->key);
}

int invariant_open(struct tg_app *app, const struct invariant_settings *settings,
                   struct invariant **out_invariant)
{
    struct invariant *invariant = calloc(1, sizeof *invariant);
    if (!invariant) {
        return TG_ERR_FULL;
    }
    invariant->app = app;
    tg_random(invariant->tag_key, sizeof invariant->tag_key);
    invariant->keys_folder = settings->keys;
    int error = read_key(invariant);
    if (error == 0) {
        error = tg_app_on_reload(app, read_key, invariant);
    }
    if (error == 0) {
        error = open_stores(invariant, settings);
    }
    if (error == 0) {
        const struct tg_sales_spec spec = {.keys_folder = settings->keys};
        error = tg_sales_open(app, &spec, &invariant->sales);
    }
    if (error == 0) {
        error = tg_app_every(app, TURN_MS, turn, invariant);
    }
    if (error != 0) {
        invariant_free(invariant);
        return error;
    }
    *out_invariant = invariant;
    return 0;
}

struct invariant *invariant_free(struct invariant *invariant)
{
    if (!invariant) {
        return NULL;
    }
    invariant->kv = tg_kv_free(invariant->kv);
    invariant->pg = tg_pg_free(invariant->pg);
    invariant->sales = tg_sales_free(invariant->sales);
    for (size_t i = 0; i < TG_MAX_SALES; i++) {
        struct invariant_work *work = invariant->works[i];
        if (work) {
            free(work->r1.at);
            free(work->r2.at);
            free(work->claims.at);
            free(work->rows.at);
            free(work->holdings.at);
            free(work);
        }
    }
    free(invariant);
    return NULL;
}

bool invariant_ready(const struct invariant *invariant, const char **out_why)
{
    const char *why = NULL;
    if (!invariant || !tg_bus_connected(tg_app_bus(invariant->app))) {
        why = "bus not connected";
    } else if (!tg_sales_known(invariant->sales)) {
        why = "sales not known yet";
    } else if (!tg_kv_server(invariant->kv)) {
        why = tg_kv_fault(invariant->kv);
        why = why[0] != '\0' ? why : "Redis not connected";
    } else if (!tg_pg_connected(invariant->pg)) {
        why = tg_pg_fault(invariant->pg);
    }
    if (why) {
        *out_why = why;
    }
    return !why;
}

void invariant_drain(struct invariant *invariant)
{
    invariant->draining = true;
}

size_t invariant_busy(const struct invariant *invariant)
{
    size_t count = 0;
    for (size_t i = 0; i < tg_sales_count(invariant->sales); i++) {
        const struct invariant_work *work = invariant->works[i];
        count += work && work->core.round.step != INVARIANT_REST;
        for (size_t shard = 0; work && shard < INVARIANT_SHARDS_MAX; shard++) {
            count += work->exports[shard].step != INVARIANT_EXPORT_REST;
        }
    }
    return count;
}
