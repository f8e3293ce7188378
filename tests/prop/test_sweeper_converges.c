/* SPDX-License-Identifier: Apache-2.0
 * Sweepers against models of ledger and gate. Calls are lost before or after their effect, answers
 * come late, two sweepers work at once, and more rows than a page are poison. However that goes:
 * the gate gives back only what has a verdict, and once; the ledger hears "obeyed" only of what the
 * gate did; and everything that can come back does, within a bounded number of turns. */
#include "services/sweeper/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

enum { ROWS = 420, POISON = 130, SWEEPERS = 2, SEEDS = 20, STORM_TURNS = 300, CALM_TURNS = 400 };

enum ledger_state { UNSEEN, PENDING, CONFIRMED, EXPIRED };
enum gate_state { HELD, SETTLED, RELEASED };

struct row {
    struct sweeper_id id;
    enum ledger_state ledger;
    enum gate_state gate;
    bool poison, obeyed;
    uint32_t releases;
};

/* A call on its way, or its answer on its way back. */
struct call {
    bool busy, lost;
    int64_t due_ms;
    enum sweeper_call kind;
    uint32_t sequence;
    struct sweeper_event event;
    struct sweeper_id lapsed[SWEEPER_PAGE];
    struct sweeper_order orders[SWEEPER_PAGE];
    struct sweeper_result results[SWEEPER_PAGE];
    struct sweeper_hold holds[SWEEPER_BURY_PAGE];
};

static struct row rows[ROWS];
static struct sweeper_sale sweepers[SWEEPERS];
static struct call calls[SWEEPERS][SWEEPER_LANES];
static struct sweeper_actions actions;
static uint64_t random_state;
static bool storm;
static uint32_t lost_before, lost_after, delivered;

static uint32_t any(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)((random_state >> 33) % below);
}

static struct row *row_of(const struct sweeper_id *id)
{
    for (size_t i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].id.text, id->text) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}

/* ---- ledger and gate: what each call does to them, and what it answers ---- */

static void answer_due(const struct sweeper_sale *sale, struct call *call)
{
    uint32_t lapsed = 0, orders = 0;
    for (size_t i = 0; i < ROWS && lapsed < SWEEPER_PAGE; i++) {
        if (rows[i].ledger == PENDING) {
            call->lapsed[lapsed++] = rows[i].id;
        }
    }
    for (int pass = 0; pass < 2; pass++) { /* after the cursor, then round the end */
        for (size_t i = 0; i < ROWS && orders < SWEEPER_PAGE; i++) {
            const bool after = strcmp(rows[i].id.text, sale->cursor.text) > 0;
            const bool owed =
                (rows[i].ledger == CONFIRMED || rows[i].ledger == EXPIRED) && !rows[i].obeyed;
            if (owed && after == (pass == 0)) {
                call->orders[orders++] = (struct sweeper_order){
                    .id = rows[i].id,
                    .kind = rows[i].ledger == CONFIRMED ? SWEEPER_SETTLE : SWEEPER_RELEASE};
            }
        }
    }
    call->event = (struct sweeper_event){.kind = SWEEPER_DUE,
                                         .epoch = 1,
                                         .generation = 1,
                                         .lapsed = call->lapsed,
                                         .lapsed_count = lapsed,
                                         .lapsed_full = lapsed == SWEEPER_PAGE,
                                         .orders = call->orders,
                                         .order_count = orders,
                                         .orders_full = orders == SWEEPER_PAGE};
}

static void answer_expire(const struct sweeper_sale *sale, struct call *call)
{
    for (uint32_t i = 0; i < sale->lapsed_count; i++) {
        struct row *row = row_of(&sale->lapsed[i]);
        row->ledger = row->ledger == PENDING ? EXPIRED : row->ledger;
    }
    call->event =
        (struct sweeper_event){.kind = SWEEPER_VERDICTS, .final_verdicts = sale->lapsed_count};
}

static void answer_bury(const struct sweeper_sale *sale, struct call *call)
{
    for (uint32_t i = 0; i < sale->hold_count; i++) {
        struct row *row = row_of(&sale->holds[i].id);
        row->ledger = row->ledger == UNSEEN || row->ledger == PENDING ? EXPIRED : row->ledger;
    }
    call->event =
        (struct sweeper_event){.kind = SWEEPER_VERDICTS, .final_verdicts = sale->hold_count};
}

static void answer_obey(const struct sweeper_sale *sale, struct call *call)
{
    for (uint32_t i = 0; i < sale->order_count; i++) {
        struct row *row = row_of(&sale->orders[i].id);
        const bool release = sale->orders[i].kind == SWEEPER_RELEASE;
        const enum gate_state wanted = release ? RELEASED : SETTLED;
        struct sweeper_result *result = &call->results[i];
        *result = (struct sweeper_result){.id = row->id, .kind = sale->orders[i].kind};
        assert_true(release ? row->ledger == EXPIRED
                            : row->ledger == CONFIRMED); /* never without the verdict */
        if (row->poison) {
            result->obedience = any(2) ? SWEEPER_DOUBT : SWEEPER_NOT_KNOWN_THERE;
        } else if (row->gate == wanted) {
            result->obedience = SWEEPER_ALREADY;
        } else {
            result->obedience = SWEEPER_DONE;
            row->gate = wanted;
            row->releases += release;
        }
    }
    call->event = (struct sweeper_event){
        .kind = SWEEPER_RESULTS, .results = call->results, .result_count = sale->order_count};
}

static void answer_obeyed(const struct sweeper_sale *sale, struct call *call)
{
    for (uint32_t i = 0; i < sale->result_count; i++) {
        struct row *row = row_of(&sale->results[i].id);
        assert_true(row->gate == (sale->results[i].kind == SWEEPER_RELEASE ? RELEASED : SETTLED));
        assert_false(row->poison);
        row->obeyed = true;
    }
    call->event = (struct sweeper_event){.kind = SWEEPER_STORED};
}

static void answer_gate_due(struct call *call)
{
    uint32_t count = 0;
    for (size_t i = 0; i < ROWS && count < SWEEPER_BURY_PAGE; i++) {
        if (rows[i].ledger == UNSEEN && rows[i].gate == HELD) {
            call->holds[count++] = (struct sweeper_hold){.id = rows[i].id};
        }
    }
    call->event = (struct sweeper_event){.kind = SWEEPER_GATE_DUE,
                                         .epoch = 1,
                                         .generation = 1,
                                         .holds = call->holds,
                                         .hold_count = count,
                                         .holds_full = count == SWEEPER_BURY_PAGE};
}

static void answer(const struct sweeper_sale *sale, struct call *call)
{
    switch (call->kind) {
    case SWEEPER_CALL_NONE:
        break;
    case SWEEPER_CALL_DUE:
        answer_due(sale, call);
        break;
    case SWEEPER_CALL_EXPIRE:
        answer_expire(sale, call);
        break;
    case SWEEPER_CALL_OBEY:
        answer_obey(sale, call);
        break;
    case SWEEPER_CALL_OBEYED:
        answer_obeyed(sale, call);
        break;
    case SWEEPER_CALL_GATE_DUE:
        answer_gate_due(call);
        break;
    case SWEEPER_CALL_BURY:
        answer_bury(sale, call);
        break;
    }
}

/* ---- the bus ---- */

static void send_calls(int who, int64_t now_ms)
{
    for (int lane = 0; lane < SWEEPER_LANES; lane++) {
        if (actions.calls[lane] == SWEEPER_CALL_NONE) {
            continue;
        }
        struct call *call = &calls[who][lane];
        assert_false(call->busy); /* one in flight per lane */
        call->busy = true;
        call->kind = actions.calls[lane];
        call->sequence = sweepers[who].lanes[lane].sequence;
        const uint32_t fate = storm ? any(10) : 9;
        lost_before += fate == 0;
        lost_after += fate == 1;
        call->lost = fate <= 1;
        if (fate != 0) {
            answer(&sweepers[who], call);
        }
        call->due_ms = now_ms + (call->lost ? 2000 : any(storm ? 300 : 5));
    }
}

static void deliver(int who, int lane, int64_t now_ms)
{
    struct call *call = &calls[who][lane];
    if (!call->busy || call->due_ms > now_ms) {
        return;
    }
    struct sweeper_event event = call->event;
    if (call->lost) {
        event = (struct sweeper_event){.kind = SWEEPER_FAILED};
    }
    event.lane = (enum sweeper_lane_name)lane;
    event.sequence = call->sequence;
    call->busy = false;
    delivered++;
    sweeper_step(&sweepers[who], (struct tg_mono){now_ms}, &event, &actions);
    send_calls(who, now_ms);
}

static void run(int64_t *now_ms, int turns)
{
    for (int i = 0; i < turns; i++) {
        *now_ms += 50;
        for (int who = 0; who < SWEEPERS; who++) {
            const struct sweeper_event tick = {.kind = SWEEPER_TICK};
            sweeper_step(&sweepers[who], (struct tg_mono){*now_ms}, &tick, &actions);
            send_calls(who, *now_ms);
            for (int64_t ms = *now_ms; ms < *now_ms + 50; ms++) {
                deliver(who, SWEEPER_CARRY, ms);
                deliver(who, SWEEPER_BURY, ms);
            }
        }
    }
}

static void begin(uint64_t seed)
{
    random_state = seed * 0x9e3779b97f4a7c15u + 1;
    memset(sweepers, 0, sizeof sweepers);
    memset(calls, 0, sizeof calls);
    for (size_t i = 0; i < ROWS; i++) {
        rows[i] = (struct row){.poison = i < POISON, .ledger = (enum ledger_state)any(3)};
        (void)snprintf(rows[i].id.text, sizeof rows[i].id.text, "res_%026zu", i * 7);
    }
}

static void everything_comes_back_once_whatever_is_lost(void **state)
{
    lost_before = lost_after = delivered = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        int64_t now_ms = 1000;
        begin(seed);
        storm = true;
        run(&now_ms, STORM_TURNS);
        storm = false;
        run(&now_ms, CALM_TURNS);
        for (size_t i = 0; i < ROWS; i++) {
            const struct row *row = &rows[i];
            assert_true(row->releases <= 1);
            assert_true(row->ledger == CONFIRMED || row->ledger == EXPIRED);
            if (row->obeyed == row->poison) {
                fail_msg("seed %llu: row %zu poison %d obeyed %d", (unsigned long long)seed, i,
                         row->poison, row->obeyed);
            }
        }
    }
    print_message("%u calls; lost before their effect %u, after it %u\n", delivered, lost_before,
                  lost_after);
    assert_true(lost_before > 0);
    assert_true(lost_after > 0);
}

/* Poison alone must not make a sweeper spin: calls per turn stay bounded. */
static void poison_alone_is_quiet(void **state)
{
    int64_t now_ms = 1000;
    begin(7);
    storm = false;
    run(&now_ms, CALM_TURNS);
    delivered = 0;
    run(&now_ms, 200); /* ten seconds: 50 turns of each of two sweepers, one round of the cursor
                          each, and their bury lanes */
    assert_in_range(delivered, 1, SWEEPERS * (50 * 5 + 10 * 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_comes_back_once_whatever_is_lost),
        cmocka_unit_test(poison_alone_is_quiet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
