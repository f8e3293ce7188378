/* SPDX-License-Identifier: Apache-2.0
 * From everything known to figures and a verdict. */
#include "tools/rehearse/report.h"

#include <stdlib.h>

static int by_value(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left;
    uint32_t b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

/* p99 of request -> answer over the requests that were sent more than a second after the stock was
 * gone and were told so. */
static void measure_told(struct rehearse_result *result)
{
    const struct rehearse_log *log = &result->crowd->log;
    result->sold_out_told_p99_ms = -1;
    uint32_t *took =
        result->findings.first_empty_ms != INT64_MAX ? calloc(log->count + 1, sizeof(*took)) : NULL;
    if (took == NULL) {
        return;
    }
    size_t count = 0;
    int64_t after_ms = result->findings.first_empty_ms + REHEARSE_TOLD_WITHIN_MS;
    for (size_t i = 0; i < log->count; i++) {
        const struct rehearse_seen *seen = &log->rows[i];
        bool told = seen->told == REHEARSE_TOLD_SOLD_OUT || seen->told == REHEARSE_TOLD_FINAL;
        if (told && (int64_t)seen->sent_ms > after_ms) {
            took[count++] = seen->answered_ms - seen->sent_ms;
        }
    }
    if (count > 0) {
        qsort(took, count, sizeof(*took), by_value);
        size_t p99 = (count * 99 + 99) / 100 - 1;
        result->sold_out_told_p99_ms = took[p99];
    }
    result->sold_out_told = count;
    free(took);
}

/* Mean over the seconds from the first to the last hold until the stock was gone for the first
 * time; and the best second. */
static void measure_holds(struct rehearse_result *result)
{
    const uint32_t *by_second = result->crowd->totals.holds_by_second;
    int64_t empty_ms = result->findings.first_empty_ms;
    int64_t last_second = empty_ms != INT64_MAX ? empty_ms / 1000 : REHEARSE_SECONDS_MAX;
    uint32_t first = REHEARSE_SECONDS_MAX;
    uint32_t last = 0;
    uint64_t sum = 0;
    for (uint32_t second = 0; second < REHEARSE_SECONDS_MAX; second++) {
        if (by_second[second] == 0 || (int64_t)second > last_second) {
            continue;
        }
        first = first == REHEARSE_SECONDS_MAX ? second : first;
        last = second;
        sum += by_second[second];
        if (by_second[second] > result->holds_per_second_peak) {
            result->holds_per_second_peak = by_second[second];
        }
    }
    result->holds_per_second = sum > 0 ? (double)sum / (last - first + 1) : 0;
}

static void fail_if(struct rehearse_result *result, bool failed, const char *why)
{
    size_t room = sizeof(result->failures) / sizeof(result->failures[0]);
    if (failed && result->failure_count < room) {
        result->failures[result->failure_count++] = why;
    }
}

/* What must never happen, however slow anybody is. */
static void judge_rules(struct rehearse_result *result)
{
    const struct rehearse_findings *findings = &result->findings;
    fail_if(result, findings->oversold > 0, "R1: oversold");
    fail_if(result, findings->over_limit > 0, "R1: a buyer has more than the limit");
    fail_if(result, findings->leaked > 0, "R2: gate and ledger do not account for every unit");
    fail_if(result, findings->lost_holds > 0, "R3: a 201 has no row");
    fail_if(result, findings->wrong_holds > 0, "R3: a row is not what the buyer was told");
    fail_if(result, findings->wrong_orders > 0,
            "R3: an order was told that the ledger does not have");
    fail_if(result, findings->refused_after_win > 0,
            "R4: sold out was told for a key that had won");
    fail_if(result, findings->two_for_one_key > 0, "R4: one key has two reservations");
    fail_if(result, findings->false_sold_out > 0, "R5: sold out was told while there was stock");
    fail_if(result, findings->false_alarms > 0,
            "R6: the checker alarmed and nothing was corrupted");
    fail_if(result, findings->alarm_missing, "R6: something was corrupted and nobody noticed");
    fail_if(result, findings->held_while_paused > 0, "R7: held after a pause and its lease");
    fail_if(result, result->crowd->totals.unreadable > 0, "an answer that could not be read");
}

/* What must happen in time. A generator that is late on the same machine may be why it did not. */
static void judge_progress(struct rehearse_result *result)
{
    const struct rehearse_totals *totals = &result->crowd->totals;
    fail_if(result, !result->options->faults && totals->status_5xx > 0,
            "5xx without an injected fault");
    fail_if(result, totals->by_state[REHEARSE_FAILED] > 0,
            "a buyer was told what should not happen");
    fail_if(result, !result->crowd->finished, "somebody was never told how it ended");
    fail_if(result, result->options->settle_s > 0 && !result->settled,
            "holds were left that did not end in time");
    fail_if(result, result->counts.rounds_clean == 0, "the proof never ran");
}

void rehearse_conclude(struct rehearse_result *result)
{
    bool strained = rehearse_strained(&result->crowd->strain, result->options->faults);
    measure_told(result);
    measure_holds(result);
    judge_rules(result);
    bool broken = result->failure_count > 0;
    judge_progress(result);
    result->verdict = result->failure_count > 0 ? REHEARSE_FAIL : REHEARSE_PASS;
    if (strained && !broken) {
        result->verdict = REHEARSE_VOID;
    }
    fail_if(result, strained,
            "the load generator could not keep up: stretch --arrive-s, or take a larger machine");
}
