/* SPDX-License-Identifier: Apache-2.0
 * The checker against a model of a sale that goes on between its reads. A correct run never alarms,
 * whatever happens between two reads, two elements of a scan included; a lasting corruption alarms
 * within two rounds. The rounds are driven by the shipped core. Mutants of the reading order show
 * that the schedules would find a wrong one. */
#include "services/invariant/core.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNITS = 12, IDS = 48, LOG = 512, SEEDS = 3000, ROUNDS = 6 };

enum gate_state { NOWHERE, HELD, SETTLED, RELEASED };
enum ledger_state { UNSEEN, PENDING, CONFIRMED, EXPIRED, CANCELLED };

struct reservation {
    enum gate_state gate;
    enum ledger_state ledger;
    bool unacked, recorded_units, restocked, obeyed;
    bool unclaimed; /* its buyer's row was edited */
    uint32_t unit, ledger_unit;
    uint64_t user;
};

struct world {
    uint64_t random;
    struct reservation all[IDS];
    bool taken[UNITS];
    uint64_t stock, held, settled, free_bits;
    struct invariant_log_entry log[LOG]; /* sequence n at [n - 1] */
    uint64_t sequence, stored, trimmed;
    bool frozen; /* no more protocol steps */
};

static uint32_t steps_done[8];

static uint32_t any(struct world *w, uint32_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (uint32_t)((w->random >> 33) % below);
}

static void log_entry(struct world *w, int64_t change)
{
    w->log[w->sequence] = (struct invariant_log_entry){.sequence = w->sequence + 1,
                                                       .change = change,
                                                       .stock_after = (int64_t)w->stock,
                                                       .readable = true};
    w->sequence++;
}

/* ---- the protocol: each is one atomic step of one store ---- */

static void step_hold(struct world *w, struct reservation *r)
{
    const uint32_t unit = any(w, UNITS);
    if (r->gate != NOWHERE || r->ledger != UNSEEN || w->taken[unit]) {
        return;
    }
    w->taken[unit] = true;
    *r = (struct reservation){
        .gate = HELD, .unacked = true, .unit = unit, .user = 1 + any(w, 1000000)};
    w->stock--;
    w->held++;
    w->free_bits--;
    log_entry(w, -1);
}

static void step_record(struct world *w, struct reservation *r)
{
    if (r->ledger == UNSEEN && r->gate == HELD) {
        r->ledger = PENDING;
        r->recorded_units = true;
        r->ledger_unit = r->unit;
    }
}

static void step_verdict(struct world *w, struct reservation *r)
{
    const uint32_t which = any(w, 3);
    if (r->ledger == PENDING) {
        r->ledger = which == 0 ? CONFIRMED : which == 1 ? EXPIRED : CANCELLED;
    } else if (r->ledger == CONFIRMED && which == 0) {
        r->ledger = CANCELLED;
        r->obeyed = false;
    } else if (r->ledger == UNSEEN && r->gate == HELD && r->unacked) {
        r->ledger = EXPIRED; /* a tombstone for a hold the gate named */
    }
}

static void step_acknowledge(struct world *w, struct reservation *r)
{
    if (r->gate == HELD && r->ledger != UNSEEN && r->recorded_units) {
        r->unacked = false;
    }
}

static void step_obey(struct world *w, struct reservation *r)
{
    if (r->ledger == CONFIRMED && r->gate == HELD) {
        r->gate = SETTLED;
        w->held--;
        w->settled++;
        log_entry(w, 0);
    } else if ((r->ledger == EXPIRED || r->ledger == CANCELLED) &&
               (r->gate == HELD || r->gate == SETTLED)) {
        w->held -= r->gate == HELD;
        w->settled -= r->gate == SETTLED;
        r->gate = RELEASED;
        w->taken[r->unit] = false;
        w->stock++;
        w->free_bits++;
        log_entry(w, 1);
    } else {
        return;
    }
    r->unacked = false;
}

static void step_obeyed(struct world *w, struct reservation *r)
{
    const bool ended = r->ledger == EXPIRED || r->ledger == CANCELLED;
    r->restocked |= r->gate == RELEASED && ended;
    r->obeyed |= (r->gate == RELEASED && ended) || (r->gate == SETTLED && r->ledger == CONFIRMED);
}

/* Another checker exports and trims the log. */
static void step_export(struct world *w)
{
    if (any(w, 2) == 0) {
        w->stored += any(w, (uint32_t)(w->sequence - w->stored) + 1);
    } else {
        w->trimmed = w->stored;
    }
}

static void go_on(struct world *w)
{
    const uint32_t count = w->frozen ? 0 : any(w, 4);
    for (uint32_t i = 0; i < count && w->sequence < LOG - 1; i++) {
        struct reservation *r = &w->all[any(w, IDS)];
        const uint32_t kind = any(w, 8);
        steps_done[kind]++;
        switch (kind) {
        case 0:
        case 1:
            step_hold(w, r);
            break;
        case 2:
            step_record(w, r);
            break;
        case 3:
            step_verdict(w, r);
            break;
        case 4:
            step_acknowledge(w, r);
            break;
        case 5:
            step_obey(w, r);
            break;
        case 6:
            step_obeyed(w, r);
            break;
        default:
            step_export(w);
            break;
        }
    }
}

/* ---- the reads ---- */

enum mutant {
    RIGHT,
    UNACKED_FIRST,
    R2_BACKWARDS,
    LEDGER_LAST,
    LEDGER_FIRST,
    BUYERS_FIRST,
    BUYERS_LAST,
    MUTANTS
};

struct checker {
    enum mutant mutant;
    struct invariant_sale core;
    struct tg_sale view;
    int64_t now_ms;
    struct invariant_look look1[1], look2[1];
    struct invariant_entry r1[IDS * 4], r2[IDS * 4], claims[IDS];
    size_t r1_count, r2_count, claim_count;
    struct invariant_row rows[IDS];
    size_t row_count;
    struct invariant_holding holdings[IDS];
    size_t holding_count;
    uint64_t free_tag;
    struct invariant_judgement judgement;
    uint32_t naive_differs;
};

static void id_of(size_t index, uint8_t out_id[INVARIANT_ID_BYTES])
{
    memset(out_id, 0, INVARIANT_ID_BYTES);
    out_id[3] = (uint8_t)(index * 37); /* not in the order of the array */
    out_id[15] = (uint8_t)index;
}

static void read_look(const struct world *w, struct invariant_look *look)
{
    *look =
        (struct invariant_look){.present = true,
                                .readable = true,
                                .armed = true,
                                .sequence = w->sequence,
                                .item_count = 1,
                                .items = {{UNITS, w->stock, w->held, w->settled, w->free_bits}}};
}

static enum invariant_result read_log(struct world *w, struct checker *c)
{
    struct invariant_log *log = &c->core.logs[0];
    const struct invariant_look *look = &c->look1[0];
    const uint64_t first = log->sequence > w->trimmed ? log->sequence : w->trimmed;
    for (uint64_t i = first; i < w->sequence && log->sequence < look->sequence; i++) {
        const enum invariant_log_step step = invariant_log_take(log, &w->log[i]);
        if (step != INVARIANT_LOG_TAKEN) {
            return step == INVARIANT_LOG_GAP ? INVARIANT_LACKING : INVARIANT_TORN;
        }
    }
    if (log->sequence < look->sequence) {
        return INVARIANT_LACKING;
    }
    return invariant_log_meets(log, look->sequence, look->items[0].stock) ? INVARIANT_READ
                                                                          : INVARIANT_TORN;
}

static enum invariant_result read_fill(struct world *w, struct checker *c)
{
    struct invariant_log *log = &c->core.logs[0];
    const uint64_t before = log->sequence;
    for (uint64_t i = log->sequence; i < w->stored && i < c->look1[0].sequence; i++) {
        if (invariant_log_take(log, &w->log[i]) != INVARIANT_LOG_TAKEN) {
            return INVARIANT_TORN;
        }
    }
    return log->sequence == before ? INVARIANT_LACKING : INVARIANT_READ;
}

static enum invariant_result read_head(struct world *w, struct checker *c)
{
    const uint64_t head = w->stored < c->look1[0].sequence ? w->stored : c->look1[0].sequence;
    c->core.logs[0] = (struct invariant_log){.placed = true, .sequence = head};
    if (head > 0) {
        c->core.logs[0].stock = w->log[head - 1].stock_after;
        c->core.logs[0].stock_known = true;
    }
    return INVARIANT_READ;
}

/* A scan in some order, with the sale going on between its elements. Whatever is there from start
 * to end is seen. */
static void scan(struct world *w, enum invariant_place place, struct invariant_entry *entries,
                 size_t *count)
{
    const uint32_t start = any(w, IDS);
    for (uint32_t i = 0; i < IDS; i++) {
        const uint32_t index = (start + i * 5) % IDS;
        const struct reservation *r = &w->all[index];
        const bool there = (place == INVARIANT_HELD && r->gate == HELD) ||
                           (place == INVARIANT_UNACKED && r->unacked) ||
                           (place == INVARIANT_SETTLED && r->gate == SETTLED) ||
                           (place == INVARIANT_RELEASED && r->gate == RELEASED) ||
                           (place == INVARIANT_CLAIMED && !r->unclaimed &&
                            (r->gate == HELD || r->gate == SETTLED));
        if (there) {
            struct invariant_entry *entry = &entries[(*count)++];
            *entry = (struct invariant_entry){.places = place};
            id_of(index, entry->id);
            if (place != INVARIANT_UNACKED) {
                entry->unit_count = 1;
                entry->slots = 1;
                entry->units_tag = invariant_units_tag(0, 0, r->unit);
                entry->user_tag = r->user;
            }
        }
        if (i % 8 == 7) {
            go_on(w);
        }
    }
}

static void read_ledger(const struct world *w, struct checker *c)
{
    static const enum invariant_state states[] = {INVARIANT_PENDING, INVARIANT_PENDING,
                                                  INVARIANT_CONFIRMED, INVARIANT_EXPIRED,
                                                  INVARIANT_CANCELLED};
    c->row_count = 0;
    c->holding_count = 0;
    for (size_t i = 0; i < IDS; i++) {
        const struct reservation *r = &w->all[i];
        if (r->ledger == UNSEEN) {
            continue;
        }
        const bool live = r->ledger == PENDING || r->ledger == CONFIRMED;
        struct invariant_row *row = &c->rows[c->row_count++];
        *row = (struct invariant_row){.user_tag = r->user,
                                      .state = (uint8_t)states[r->ledger],
                                      .restocked = r->restocked,
                                      .obeyed = r->obeyed};
        id_of(i, row->id);
        if (r->recorded_units) {
            row->unit_count = 1;
            row->slots = 1;
            row->live_count = live;
            row->units_tag = invariant_units_tag(0, 0, r->ledger_unit);
        }
        if (live && r->recorded_units) {
            struct invariant_holding *holding = &c->holdings[c->holding_count++];
            *holding = (struct invariant_holding){.user_tag = r->user, .unit = r->ledger_unit};
            id_of(i, holding->id);
        }
    }
}

static void scan_buyers(struct world *w, struct checker *c)
{
    c->claim_count = 0;
    scan(w, INVARIANT_CLAIMED, c->claims, &c->claim_count);
}

static void read_free(const struct world *w, struct checker *c)
{
    c->free_tag = 0;
    for (uint32_t unit = 0; unit < UNITS; unit++) {
        c->free_tag = w->taken[unit] ? c->free_tag : invariant_units_tag(c->free_tag, 0, unit);
    }
}

static enum invariant_result perform(struct world *w, struct checker *c)
{
    const bool unacked_first = c->mutant == UNACKED_FIRST, backwards = c->mutant == R2_BACKWARDS;
    switch (c->core.round.step) {
    case INVARIANT_REST:
    case INVARIANT_JUDGE:
        break;
    case INVARIANT_SERVER:
        if (c->mutant == LEDGER_FIRST) {
            read_ledger(w, c);
        } else if (c->mutant == BUYERS_FIRST) {
            scan_buyers(w, c);
        }
        break;
    case INVARIANT_LOOK1:
        read_look(w, &c->look1[0]);
        break;
    case INVARIANT_HEAD:
        return read_head(w, c);
    case INVARIANT_LOG:
        return read_log(w, c);
    case INVARIANT_FILL:
        return read_fill(w, c);
    case INVARIANT_HELD1:
        scan(w, unacked_first ? INVARIANT_UNACKED : INVARIANT_HELD, c->r1, &c->r1_count);
        break;
    case INVARIANT_UNACKED1:
        scan(w, unacked_first ? INVARIANT_HELD : INVARIANT_UNACKED, c->r1, &c->r1_count);
        break;
    case INVARIANT_SETTLED1:
        scan(w, INVARIANT_SETTLED, c->r1, &c->r1_count);
        break;
    case INVARIANT_RELEASED1:
        scan(w, INVARIANT_RELEASED, c->r1, &c->r1_count);
        break;
    case INVARIANT_BUYERS:
        if (c->mutant != BUYERS_FIRST) {
            scan_buyers(w, c);
        }
        break;
    case INVARIANT_LEDGER:
        if (c->mutant != LEDGER_FIRST) {
            read_ledger(w, c);
        }
        break;
    case INVARIANT_HELD2:
        scan(w, backwards ? INVARIANT_RELEASED : INVARIANT_HELD, c->r2, &c->r2_count);
        break;
    case INVARIANT_SETTLED2:
        scan(w, INVARIANT_SETTLED, c->r2, &c->r2_count);
        break;
    case INVARIANT_RELEASED2:
        scan(w, backwards ? INVARIANT_HELD : INVARIANT_RELEASED, c->r2, &c->r2_count);
        break;
    case INVARIANT_FREE2:
        read_free(w, c);
        break;
    case INVARIANT_LOOK2:
        if (c->mutant == LEDGER_LAST) {
            read_ledger(w, c);
        }
        if (c->mutant == BUYERS_LAST) {
            scan_buyers(w, c);
        }
        read_look(w, &c->look2[0]);
        break;
    }
    return INVARIANT_READ;
}

static enum invariant_outcome run_round(struct world *w, struct checker *c)
{
    c->now_ms += 1000;
    c->r1_count = c->r2_count = 0;
    assert_int_equal(invariant_turn(&c->core, &c->view, (struct tg_mono){c->now_ms}, true),
                     INVARIANT_TURN_ROUND);
    while (c->core.round.step != INVARIANT_JUDGE) {
        assert_int_not_equal(c->core.round.step, INVARIANT_REST);
        go_on(w);
        invariant_advance(&c->core, perform(w, c));
    }
    invariant_sort(c->claims, c->claim_count);
    struct invariant_facts facts = {.epoch = 1,
                                    .generation = 1,
                                    .shards = 1,
                                    .looked = c->core.round.looked,
                                    .server = {.primary = true},
                                    .look1 = c->look1,
                                    .look2 = c->look2,
                                    .log_torn = c->core.round.log_torn,
                                    .complete = c->core.round.complete,
                                    .r1 = c->r1,
                                    .r2 = c->r2,
                                    .r1_count = invariant_fold(c->r1, c->r1_count),
                                    .r2_count = invariant_fold(c->r2, c->r2_count),
                                    .free_tag = c->free_tag,
                                    .ledger = {.epoch = 1,
                                               .generation = 1,
                                               .armed = true,
                                               .shards = 1,
                                               .item_count = 1,
                                               .one_owner = true,
                                               .one_slot = true,
                                               .units = {UNITS}},
                                    .claims = c->claims,
                                    .claim_count = c->claim_count,
                                    .rows = c->rows,
                                    .row_count = invariant_fold_rows(c->rows, c->row_count),
                                    .holdings = c->holdings,
                                    .holding_count = c->holding_count};
    invariant_judge(&facts, &c->judgement);
    invariant_rest(&c->core);
    c->naive_differs += c->judgement.stock + c->judgement.pending + c->judgement.confirmed != UNITS;
    return c->judgement.outcome;
}

static void begin(struct world *w, struct checker *c, uint64_t seed, enum mutant mutant)
{
    memset(w, 0, sizeof *w);
    memset(c, 0, sizeof *c);
    w->random = seed * 0x9e3779b97f4a7c15u + 1;
    w->stock = w->free_bits = UNITS;
    c->mutant = mutant;
    c->view = (struct tg_sale){.armed = true,
                               .phase = TG_PHASE_OPEN,
                               .epoch = 1,
                               .generation = 1,
                               .shards = 1,
                               .proof_every_ms = 1000};
}

static struct world world;
static struct checker checker;

/* ---- properties ---- */

static void a_correct_run_never_alarms(void **state)
{
    uint32_t naive = 0, filled = 0;
    memset(steps_done, 0, sizeof steps_done);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        begin(&world, &checker, seed, RIGHT);
        for (int round = 0; round < ROUNDS; round++) {
            if (run_round(&world, &checker) != INVARIANT_CLEAN) {
                char detail[512];
                (void)invariant_detail(&checker.judgement, detail, sizeof detail);
                fail_msg("seed %llu round %d: %s", (unsigned long long)seed, round, detail);
            }
        }
        naive += checker.naive_differs;
        filled += world.trimmed > 0;
    }
    print_message("naive sum differed in %u of %u rounds; log trimmed meanwhile in %u runs\n",
                  naive, SEEDS * ROUNDS, filled);
    assert_true(naive > 0); /* else nothing ever moved between the reads */
    assert_true(filled > 0);
    for (size_t i = 0; i < sizeof steps_done / sizeof steps_done[0]; i++) {
        assert_true(steps_done[i] > 0);
    }
}

static void a_wrong_order_of_reads_is_found_out(void **state)
{
    static const char *const names[MUTANTS] = {"",
                                               "unacked before held",
                                               "R2 backwards",
                                               "P after R2",
                                               "P before R1",
                                               "buyers before R1",
                                               "buyers after R2"};
    for (int mutant = RIGHT + 1; mutant < MUTANTS; mutant++) {
        uint32_t alarms = 0;
        for (uint64_t seed = 1; seed <= SEEDS; seed++) {
            begin(&world, &checker, seed, (enum mutant)mutant);
            for (int round = 0; round < ROUNDS; round++) {
                alarms += run_round(&world, &checker) == INVARIANT_ALARM;
            }
        }
        print_message("%s: %u alarms\n", names[mutant], alarms);
        assert_true(alarms > 0);
    }
}

/* ---- corruptions: each applies itself and says which check owes the alarm; NO_CHECK where there
 * is nothing to corrupt ---- */

#define NO_CHECK INVARIANT_CHECKS

static struct reservation *find(struct world *w, enum gate_state gate, enum ledger_state ledger)
{
    for (size_t i = 0; i < IDS; i++) {
        if (w->all[i].gate == gate && w->all[i].ledger == ledger) {
            return &w->all[i];
        }
    }
    return NULL;
}

static enum invariant_check rogue_incr(struct world *w)
{
    w->stock++;
    return INVARIANT_CHECK_C0;
}

static enum invariant_check balanced_incr(struct world *w)
{
    if (w->held == 0) {
        return NO_CHECK;
    }
    w->stock++;
    w->held--;
    return INVARIANT_CHECK_C1;
}

static enum invariant_check flipped_bit(struct world *w)
{
    w->free_bits++;
    return INVARIANT_CHECK_C1;
}

static enum invariant_check consistent_restock(struct world *w)
{
    if (w->held == 0) {
        return NO_CHECK;
    }
    w->stock++; /* counters and map agree, but no log entry tells of it */
    w->free_bits++;
    w->held--;
    return INVARIANT_CHECK_C1;
}

static enum invariant_check deleted_hold(struct world *w)
{
    struct reservation *r = find(w, HELD, PENDING);
    if (!r) {
        return NO_CHECK;
    }
    r->gate = NOWHERE;
    return INVARIANT_CHECK_A;
}

static enum invariant_check deleted_sale(struct world *w)
{
    struct reservation *r = find(w, SETTLED, CONFIRMED);
    if (!r) {
        return NO_CHECK;
    }
    r->gate = NOWHERE;
    return INVARIANT_CHECK_A;
}

static enum invariant_check forged_release(struct world *w)
{
    struct reservation *r = find(w, HELD, PENDING);
    if (!r) {
        return NO_CHECK;
    }
    r->gate = RELEASED; /* complete: counters, map, log */
    r->unacked = false;
    w->held--;
    w->stock++;
    w->free_bits++;
    log_entry(w, 1);
    return INVARIANT_CHECK_B;
}

static enum invariant_check forged_settle(struct world *w)
{
    struct reservation *r = find(w, HELD, PENDING);
    if (!r) {
        return NO_CHECK;
    }
    r->gate = SETTLED;
    r->unacked = false;
    w->held--;
    w->settled++;
    log_entry(w, 0);
    return INVARIANT_CHECK_C;
}

static enum invariant_check lost_row(struct world *w)
{
    for (size_t i = 0; i < IDS; i++) {
        if (w->all[i].gate == HELD && w->all[i].ledger == PENDING && !w->all[i].unacked) {
            w->all[i].ledger = UNSEEN;
            return INVARIANT_CHECK_E;
        }
    }
    return NO_CHECK;
}

static enum invariant_check edited_unit(struct world *w)
{
    struct reservation *r = find(w, HELD, PENDING);
    if (!r) {
        return NO_CHECK;
    }
    r->unit = (r->unit + 1) % UNITS;
    return INVARIANT_CHECK_U;
}

static enum invariant_check edited_buyer(struct world *w)
{
    struct reservation *r = find(w, HELD, PENDING);
    if (!r) {
        return NO_CHECK;
    }
    r->unclaimed = true;
    return INVARIANT_CHECK_L;
}

static enum invariant_check two_owners(struct world *w)
{
    struct reservation *a = find(w, HELD, PENDING), *b = find(w, SETTLED, CONFIRMED);
    if (!a || !b) {
        return NO_CHECK;
    }
    a->ledger_unit = b->ledger_unit;
    return INVARIANT_CHECK_C2;
}

static enum invariant_check restored_snapshot(struct world *w)
{
    if (w->sequence < 3 || checker.core.logs[0].sequence < 3 ||
        checker.core.logs[0].sequence != w->sequence) {
        return NO_CHECK;
    }
    w->sequence -= 2;
    w->stored = w->stored < w->sequence ? w->stored : w->sequence;
    w->trimmed = w->trimmed < w->sequence ? w->trimmed : w->sequence;
    return INVARIANT_CHECK_C1;
}

static enum invariant_check undone_order(struct world *w)
{
    for (size_t i = 0; i < IDS; i++) {
        struct reservation *r = &w->all[i];
        if (r->obeyed && r->gate == RELEASED && !w->taken[r->unit]) {
            r->gate = HELD; /* counters, map and log in balance: as if never given back */
            w->taken[r->unit] = true;
            w->stock--;
            w->free_bits--;
            w->held++;
            log_entry(w, -1);
            return INVARIANT_CHECK_D;
        }
    }
    return NO_CHECK;
}

static enum invariant_check dropped_log_entry(struct world *w)
{
    if (w->sequence >= LOG - 2) {
        return NO_CHECK;
    }
    log_entry(w, 0);
    w->trimmed = w->sequence; /* gone from the stream, never stored */
    return INVARIANT_CHECK_C1;
}

static void a_lasting_corruption_alarms_within_two_rounds(void **state)
{
    static const struct {
        const char *name;
        enum invariant_check (*apply)(struct world *w);
    } corruptions[] = {{"rogue INCR", rogue_incr},
                       {"INCR in balance", balanced_incr},
                       {"flipped free bit", flipped_bit},
                       {"restock without a log entry", consistent_restock},
                       {"deleted hold", deleted_hold},
                       {"deleted sale", deleted_sale},
                       {"forged release", forged_release},
                       {"forged settle", forged_settle},
                       {"lost ledger row", lost_row},
                       {"edited unit", edited_unit},
                       {"edited buyer", edited_buyer},
                       {"two owners", two_owners},
                       {"restored snapshot", restored_snapshot},
                       {"undone order", undone_order},
                       {"dropped log entry", dropped_log_entry}};
    for (size_t i = 0; i < sizeof corruptions / sizeof corruptions[0]; i++) {
        uint32_t applied = 0;
        for (uint64_t seed = 1; seed <= 400; seed++) {
            begin(&world, &checker, seed, RIGHT);
            (void)run_round(&world, &checker);
            assert_int_equal(run_round(&world, &checker), INVARIANT_CLEAN);
            world.frozen = true;
            assert_int_equal(run_round(&world, &checker), INVARIANT_CLEAN);
            const enum invariant_check owed = corruptions[i].apply(&world);
            if (owed == NO_CHECK) {
                continue;
            }
            applied++;
            (void)run_round(&world, &checker);
            if (checker.judgement.outcome != INVARIANT_ALARM) {
                (void)run_round(&world, &checker);
            }
            if (checker.judgement.findings[owed].failures == 0) {
                fail_msg("%s: not found, seed %llu", corruptions[i].name, (unsigned long long)seed);
            }
        }
        print_message("%s: found %u times\n", corruptions[i].name, applied);
        assert_true(applied > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_correct_run_never_alarms),
        cmocka_unit_test(a_wrong_order_of_reads_is_found_out),
        cmocka_unit_test(a_lasting_corruption_alarms_within_two_rounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
