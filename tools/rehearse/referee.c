/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/referee.h"

#include "tools/rehearse/core.h"

#include <stdlib.h>
#include <string.h>

static int by_reservation(const void *left, const void *right)
{
    const struct rehearse_row *a = left;
    const struct rehearse_row *b = right;
    return memcmp(a->reservation, b->reservation, sizeof(a->reservation));
}

void rehearse_sort_rows(struct rehearse_facts *facts)
{
    if (facts->row_count > 0) {
        qsort(facts->rows, facts->row_count, sizeof(*facts->rows), by_reservation);
    }
}

static const struct rehearse_row *find_row(const struct rehearse_facts *facts,
                                           const uint8_t reservation[16])
{
    struct rehearse_row key;
    memcpy(key.reservation, reservation, sizeof(key.reservation));
    return facts->row_count > 0
               ? bsearch(&key, facts->rows, facts->row_count, sizeof(*facts->rows), by_reservation)
               : NULL;
}

static int by_key_and_time(const void *left, const void *right)
{
    const struct rehearse_seen *a = left;
    const struct rehearse_seen *b = right;
    if (a->buyer != b->buyer) {
        return a->buyer < b->buyer ? -1 : 1;
    }
    if (a->attempt != b->attempt) {
        return a->attempt < b->attempt ? -1 : 1;
    }
    if (a->answered_ms != b->answered_ms) {
        return a->answered_ms < b->answered_ms ? -1 : 1;
    }
    return a->sent_ms < b->sent_ms ? -1 : a->sent_ms > b->sent_ms;
}

static uint64_t over(uint64_t value, uint64_t bound)
{
    return value > bound ? value - bound : 0;
}

static uint64_t apart(uint64_t a, uint64_t b)
{
    return a > b ? a - b : b - a;
}

/* R1 and R2: the stores among themselves. */
static void judge_stores(const struct rehearse_facts *facts, struct rehearse_findings *findings)
{
    findings->oversold = over(facts->live, facts->units) + facts->units_twice;
    findings->over_limit = facts->buyers_over_limit;
    if (!facts->gate_known) {
        findings->leaked = facts->units; /* nothing can be accounted for */
        return;
    }
    uint64_t accounted = facts->gate_free + facts->gate_held + facts->gate_settled;
    findings->leaked = apart(accounted, facts->units) + apart(facts->gate_free, facts->gate_bits) +
                       apart(over(facts->units, facts->gate_free), facts->live);
}

/* R3: one 201 or order against its row. */
static void judge_row(const struct rehearse_seen *seen, const struct rehearse_facts *facts,
                      struct rehearse_findings *findings)
{
    const struct rehearse_row *row = find_row(facts, seen->reservation);
    bool lost = row == NULL || row->tombstone;
    if (seen->told == REHEARSE_TOLD_CONFIRMED) {
        findings->wrong_orders += lost || !row->confirmed || row->buyer != seen->buyer;
        return;
    }
    findings->lost_holds += lost;
    if (!lost) {
        bool as_told = row->buyer == seen->buyer && row->has_unit && row->item == seen->item &&
                       row->unit == seen->unit;
        findings->wrong_holds += !as_told;
    }
}

/* R4, over the answers to one key: rows [first, last) by time of answer. */
static void judge_key(const struct rehearse_seen *first, const struct rehearse_seen *last,
                      struct rehearse_findings *findings)
{
    const struct rehearse_seen *win = NULL;
    for (const struct rehearse_seen *seen = first; seen < last; seen++) {
        if (seen->ask != REHEARSE_ASK_RESERVE) {
            continue;
        }
        bool refused = seen->told == REHEARSE_TOLD_SOLD_OUT || seen->told == REHEARSE_TOLD_FINAL;
        if (seen->told == REHEARSE_TOLD_HELD && win == NULL) {
            win = seen;
        } else if (seen->told == REHEARSE_TOLD_HELD) {
            findings->two_for_one_key += memcmp(win->reservation, seen->reservation, 16) != 0;
        } else if (refused && win != NULL && seen->sent_ms >= win->answered_ms) {
            findings->refused_after_win++;
        }
    }
}

/* Index of the last change at or before `at_ms`, or -1: the opening stock. */
static int64_t change_before(const struct rehearse_facts *facts, int64_t at_ms)
{
    size_t low = 0;
    size_t high = facts->stock_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (facts->stock[middle].at_ms <= at_ms) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return (int64_t)low - 1;
}

/* Was nothing free (and, for good, nothing held) at some instant of [from, to]? */
static bool was_empty(const struct rehearse_facts *facts, int64_t from_ms, int64_t to_ms,
                      bool for_good)
{
    int64_t start = change_before(facts, from_ms);
    for (int64_t i = start; i < (int64_t)facts->stock_count; i++) {
        if (i < 0) {
            continue; /* before the first change everything was free */
        }
        if (i > start && facts->stock[i].at_ms > to_ms) {
            break;
        }
        if (facts->stock[i].free == 0 && (!for_good || facts->stock[i].held == 0)) {
            return true;
        }
    }
    return false;
}

/* How old the state may be that answered. The gate itself answers a reserve; status and board rest
 * on announcements that count as known for as long as "told within" allows. */
static int64_t state_age_ms(const struct rehearse_seen *seen)
{
    if (seen->ask == REHEARSE_ASK_RESERVE) {
        return REHEARSE_CLOCK_SLACK_MS;
    }
    return REHEARSE_CLOCK_SLACK_MS + REHEARSE_TOLD_WITHIN_MS + (int64_t)seen->age_ms;
}

static void note_false(const struct rehearse_seen *seen, const struct rehearse_facts *facts,
                       struct rehearse_findings *findings)
{
    if (findings->false_sold_out++ > 0) {
        return;
    }
    findings->first_false = *seen;
    int64_t last = change_before(facts, (int64_t)seen->answered_ms);
    findings->stock_then =
        last >= 0 ? facts->stock[last] : (struct rehearse_stock){.free = facts->units};
}

/* R5, and who was told late. */
static void judge_told(const struct rehearse_seen *seen, const struct rehearse_facts *facts,
                       struct rehearse_findings *findings)
{
    bool final = seen->told == REHEARSE_TOLD_FINAL;
    if (final || seen->told == REHEARSE_TOLD_SOLD_OUT) {
        int64_t from_ms = (int64_t)seen->sent_ms - state_age_ms(seen);
        int64_t to_ms = (int64_t)seen->answered_ms + REHEARSE_CLOCK_SLACK_MS;
        if (!was_empty(facts, from_ms, to_ms, final)) {
            note_false(seen, facts, findings);
        }
    } else if (seen->told == REHEARSE_TOLD_WAIT && findings->finished_ms != INT64_MAX) {
        findings->told_late +=
            (int64_t)seen->sent_ms > findings->finished_ms + REHEARSE_TOLD_WITHIN_MS;
    }
}

static void find_moments(const struct rehearse_facts *facts, struct rehearse_findings *findings)
{
    findings->first_empty_ms = INT64_MAX;
    findings->finished_ms = INT64_MAX;
    for (size_t i = 0; i < facts->stock_count; i++) {
        const struct rehearse_stock *stock = &facts->stock[i];
        if (stock->free == 0 && findings->first_empty_ms == INT64_MAX) {
            findings->first_empty_ms = stock->at_ms;
        }
        bool done = stock->free == 0 && stock->held == 0;
        if (!done) {
            findings->finished_ms = INT64_MAX;
        } else if (findings->finished_ms == INT64_MAX) {
            findings->finished_ms = stock->at_ms;
        }
    }
}

void rehearse_judge(struct rehearse_log *log, const struct rehearse_facts *facts,
                    struct rehearse_findings *out_findings)
{
    struct rehearse_findings findings = {0};
    judge_stores(facts, &findings);
    findings.false_alarms = facts->corrupted ? 0 : facts->alarms;
    findings.alarm_missing = facts->corrupted && facts->alarms == 0;
    findings.held_while_paused = facts->held_while_paused;
    find_moments(facts, &findings);
    if (log->count > 0) {
        qsort(log->rows, log->count, sizeof(*log->rows), by_key_and_time);
    }
    size_t first = 0;
    for (size_t i = 0; i < log->count; i++) {
        const struct rehearse_seen *seen = &log->rows[i];
        if (seen->told == REHEARSE_TOLD_HELD || seen->told == REHEARSE_TOLD_CONFIRMED) {
            judge_row(seen, facts, &findings);
        }
        if (facts->stock_known) {
            judge_told(seen, facts, &findings);
        }
        bool last = i + 1 == log->count || log->rows[i + 1].buyer != seen->buyer ||
                    log->rows[i + 1].attempt != seen->attempt;
        if (last) {
            judge_key(&log->rows[first], &log->rows[i + 1], &findings);
            first = i + 1;
        }
    }
    *out_findings = findings;
}

uint64_t rehearse_wrong_answers(const struct rehearse_findings *findings)
{
    return findings->lost_holds + findings->wrong_holds + findings->wrong_orders +
           findings->refused_after_win + findings->two_for_one_key + findings->false_sold_out;
}
