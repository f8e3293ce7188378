/* SPDX-License-Identifier: Apache-2.0
 * A queue brain on a bench: a clock that is stepped, one sale, and the last answers of the core. */
#ifndef TG_TESTS_QUEUE_BENCH_H
#define TG_TESTS_QUEUE_BENCH_H

#include "services/queue/core.h"

#include <string.h>

enum { BENCH_STEP_MS = 50, BENCH_PACE_MILLI = 1000000, BENCH_ACTIVE_MS = 2500 };

struct queue_bench {
    struct tg_term term;
    struct queue_brain brain;
    struct queue_now now;
    struct queue_view view;
    bool connected;
    bool admission; /* repeats its pace every step */
    bool gate;      /* repeats its stock every step */
    uint64_t pace_milli;
    uint64_t free_units;
    uint64_t held_units;
    /* what came out */
    size_t boards;
    struct queue_board board;
    struct queue_grant grant;
};

static inline void bench_feed(struct queue_bench *bench, const struct queue_event *event)
{
    struct queue_action actions[QUEUE_ACTIONS_MAX];
    size_t count = queue_step(&bench->brain, bench->now, event, actions);
    for (size_t i = 0; i < count; i++) {
        if (actions[i].kind == QUEUE_DO_BOARD) {
            bench->board = actions[i].board;
            bench->boards++;
        } else if (actions[i].kind == QUEUE_DO_GRANT) {
            bench->grant = actions[i].grant;
        }
    }
}

static inline void bench_begin(struct queue_bench *bench, const char *instance)
{
    memset(bench, 0, sizeof *bench);
    bench->now.mono.ms = 1000000;
    bench->now.wall.ms = 1764583200000;
    bench->view.phase = TG_PHASE_SCHEDULED;
    bench->view.generation = 1;
    bench->view.opens_at.ms = bench->now.wall.ms + 60000;
    bench->view.inside_max = UINT64_MAX;
    bench->connected = true;
    bench->admission = true;
    bench->gate = true;
    bench->pace_milli = BENCH_PACE_MILLI;
    bench->free_units = 100000;
    tg_term_begin(&bench->term, instance, bench->now.mono, 0);
    queue_begin(&bench->brain, &bench->term, bench->now.mono);
}

static inline void bench_tick(struct queue_bench *bench)
{
    struct queue_event event = {.kind = QUEUE_TICK};
    bench->view.opened |= bench->view.phase == TG_PHASE_OPEN;
    event.tick.view = bench->view;
    event.tick.connected = bench->connected;
    bench_feed(bench, &event);
}

static inline void bench_pace(struct queue_bench *bench, uint64_t term, uint64_t pace_milli)
{
    struct queue_event event = {.kind = QUEUE_PACE};
    event.pace.term = term;
    event.pace.pace_milli = pace_milli;
    bench_feed(bench, &event);
}

static inline void bench_stock(struct queue_bench *bench)
{
    struct queue_event event = {.kind = QUEUE_STOCK};
    event.stock.epoch = 1;
    event.stock.known = true;
    event.stock.gate_now_ms = bench->now.wall.ms;
    event.stock.free = bench->free_units;
    event.stock.held = bench->held_units;
    bench_feed(bench, &event);
}

/* Lets time pass in steps, with everything repeated that is repeated in life. */
static inline void bench_run(struct queue_bench *bench, int64_t ms)
{
    for (int64_t passed = 0; passed < ms; passed += BENCH_STEP_MS) {
        bench->now.mono.ms += BENCH_STEP_MS;
        bench->now.wall.ms += BENCH_STEP_MS;
        if (bench->admission) {
            bench_pace(bench, 1, bench->pace_milli);
        }
        if (bench->gate) {
            bench_stock(bench);
        }
        bench_tick(bench);
    }
}

static inline void bench_lease(struct queue_bench *bench, const char *edge, uint32_t count)
{
    struct queue_event event = {.kind = QUEUE_LEASE};
    event.lease.edge = edge;
    event.lease.count = count;
    bench_feed(bench, &event);
}

/* Leases until `people` indexes are out, or it is refused. */
static inline void bench_arrive(struct queue_bench *bench, uint64_t people)
{
    bench->grant.reason = TG_REASON_NONE;
    while (bench->brain.index_end < people && bench->grant.reason == TG_REASON_NONE) {
        uint64_t left = people - bench->brain.index_end;
        bench_lease(bench, "edge-a",
                    left > TG_MAX_LEASE_INDEXES ? TG_MAX_LEASE_INDEXES : (uint32_t)left);
    }
}

static inline void bench_activate(struct queue_bench *bench)
{
    bench_run(bench, BENCH_ACTIVE_MS);
}

#endif
