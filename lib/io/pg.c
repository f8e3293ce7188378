/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/pg.h"

#include "lib/io/pg_connection.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { CONNECTIONS_MAX = 32, CONNECT_MS = 5000, TICK_MS = 20 };

struct tg_pg {
    uv_loop_t *loop;
    char *conninfo;
    uint32_t link_count;
    struct pg_link links[CONNECTIONS_MAX];
    uint32_t statement_ms;
    uint32_t queue_max;
    uint32_t queued;
    struct pg_job *first, *last;
    uv_timer_t timer;
    bool closing;
};

static void give_work(struct tg_pg *pg)
{
    for (uint32_t i = 0; i < pg->link_count && pg->first != NULL && !pg->closing; i++) {
        if (pg->links[i].state != PG_LINK_IDLE) {
            continue;
        }
        struct pg_job *job = pg->first;
        pg->first = job->next;
        pg->last = pg->first == NULL ? NULL : pg->last;
        pg->queued--;
        pg_link_send(&pg->links[i], job);
    }
}

static void on_link_change(void *context, struct pg_link *link)
{
    struct tg_pg *pg = context;
    if (link->state == PG_LINK_IDLE) {
        give_work(pg);
    }
}

/* Statements are queued in the order of their deadlines, all being equally long: the late ones are
 * in front. */
static void end_late_queued(struct tg_pg *pg, uint64_t now)
{
    while (pg->first != NULL && pg->first->deadline_ms <= now) {
        struct pg_job *job = pg->first;
        pg->first = job->next;
        pg->last = pg->first == NULL ? NULL : pg->last;
        pg->queued--;
        pg_job_end(job, TG_ERR_TIMEOUT, NULL);
    }
}

static bool is_late(const struct pg_link *link, uint64_t now)
{
    return (link->state == PG_LINK_BUSY && link->job->deadline_ms <= now) ||
           (link->state == PG_LINK_CONNECTING && link->connect_until_ms <= now);
}

static void on_tick(uv_timer_t *timer)
{
    struct tg_pg *pg = timer->data;
    uint64_t now = uv_now(pg->loop);
    for (uint32_t i = 0; i < pg->link_count; i++) {
        struct pg_link *link = &pg->links[i];
        if (link->state == PG_LINK_BUSY && link->broken) {
            pg_link_drop(link, TG_ERR_DISCONNECTED);
        } else if (is_late(link, now)) {
            pg_link_drop(link, TG_ERR_TIMEOUT);
        } else if (link->state == PG_LINK_DOWN && link->retry_at_ms <= now) {
            pg_link_connect(link, CONNECT_MS);
        }
    }
    end_late_queued(pg, now);
}

int tg_pg_open(uv_loop_t *loop, const struct tg_pg_spec *spec, struct tg_pg **out_pg)
{
    if (spec->connections < 1 || spec->connections > CONNECTIONS_MAX || spec->statement_ms == 0) {
        return TG_ERR_RANGE;
    }
    char *fault = NULL;
    PQconninfoOption *options = PQconninfoParse(spec->conninfo, &fault);
    PQfreemem(fault);
    if (options == NULL) {
        return TG_ERR_SETTING;
    }
    PQconninfoFree(options);
    struct tg_pg *pg = calloc(1, sizeof(*pg));
    if (pg == NULL || (pg->conninfo = strdup(spec->conninfo)) == NULL) {
        free(pg);
        return UV_ENOMEM;
    }
    pg->loop = loop;
    pg->link_count = spec->connections;
    pg->statement_ms = spec->statement_ms;
    pg->queue_max = spec->queue_max;
    int error = uv_timer_init(loop, &pg->timer);
    assert(error == 0);
    pg->timer.data = pg;
    for (uint32_t i = 0; i < pg->link_count; i++) {
        pg_link_init(&pg->links[i], loop, pg->conninfo);
        pg->links[i].on_change = on_link_change;
        pg->links[i].context = pg;
        pg_link_connect(&pg->links[i], CONNECT_MS);
    }
    error = uv_timer_start(&pg->timer, on_tick, TICK_MS, TICK_MS);
    assert(error == 0);
    *out_pg = pg;
    return 0;
}

static void free_pool(uv_handle_t *timer)
{
    struct tg_pg *pg = timer->data;
    free(pg->conninfo);
    free(pg);
}

struct tg_pg *tg_pg_free(struct tg_pg *pg)
{
    if (pg == NULL) {
        return NULL;
    }
    pg->closing = true;
    while (pg->first != NULL) {
        struct pg_job *job = pg->first;
        pg->first = job->next;
        pg_job_end(job, TG_ERR_DISCONNECTED, NULL);
    }
    for (uint32_t i = 0; i < pg->link_count; i++) {
        pg_link_drop(&pg->links[i], TG_ERR_DISCONNECTED);
    }
    uv_close((uv_handle_t *)&pg->timer, free_pool);
    return NULL;
}

bool tg_pg_connected(const struct tg_pg *pg)
{
    for (uint32_t i = 0; i < pg->link_count; i++) {
        if (pg->links[i].state == PG_LINK_IDLE || pg->links[i].state == PG_LINK_BUSY) {
            return true;
        }
    }
    return false;
}

const char *tg_pg_fault(const struct tg_pg *pg)
{
    return pg->links[0].fault[0] != '\0' ? pg->links[0].fault : "PostgreSQL not connected";
}

size_t tg_pg_in_progress(const struct tg_pg *pg)
{
    size_t count = pg->queued;
    for (uint32_t i = 0; i < pg->link_count; i++) {
        count += pg->links[i].state == PG_LINK_BUSY;
    }
    return count;
}

int tg_pg_run(struct tg_pg *pg, const struct tg_pg_statement *statement, tg_pg_on_result *on_result,
              void *context, uint64_t token)
{
    assert(statement->parameter_count >= 0 && statement->parameter_count <= TG_PG_PARAMETERS_MAX);
    if (pg->closing || !tg_pg_connected(pg)) {
        return TG_ERR_DISCONNECTED;
    }
    if (pg->queued >= pg->queue_max) {
        return TG_ERR_FULL;
    }
    struct pg_job *job = pg_job_new(statement);
    if (job == NULL) {
        return TG_ERR_FULL;
    }
    job->on_result = on_result;
    job->context = context;
    job->token = token;
    job->deadline_ms = uv_now(pg->loop) + pg->statement_ms;
    if (pg->last == NULL) {
        pg->first = job;
    } else {
        pg->last->next = job;
    }
    pg->last = job;
    pg->queued++;
    give_work(pg);
    return 0;
}
