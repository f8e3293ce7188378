/* SPDX-License-Identifier: Apache-2.0
 * Mirrors services/ledger/sql/0005_sales.sql and 0006_control.sql. */
#include "tests/sim/ledger.h"

#include <string.h>

enum tg_phase ledger_phase(const struct ledger *ledger)
{
    if (ledger->stage != TG_PHASE_CLOSED && ledger->pause_count > 0) {
        return TG_PHASE_PAUSED;
    }
    return (enum tg_phase)ledger->stage;
}

static bool proof_fresh(const struct ledger *ledger, int64_t now_ms)
{
    return ledger->clean_rounds > 0 && ledger->last_clean_ms + ledger->lease_ms >= now_ms;
}

static bool all_confirmed(const struct ledger *ledger)
{
    uint32_t live = 0, units = 0;
    for (uint8_t item = 0; item < ledger->item_count; item++) {
        units += ledger->units[item];
    }
    for (uint16_t i = 0; i < ledger->row_count; i++) {
        const struct ledger_row *row = &ledger->rows[i];
        if (!ledger_live(row)) {
            continue;
        }
        if (row->state == LEDGER_PENDING) {
            return false;
        }
        live += row->unit_count;
    }
    return live == units;
}

static enum tg_phase stage_wanted(const struct ledger *ledger, int64_t now_ms)
{
    if (ledger->stage == TG_PHASE_SCHEDULED) {
        const bool opens = ledger->opens_ms <= now_ms && ledger->pause_count == 0 &&
                           ledger->armed && proof_fresh(ledger, now_ms);
        return opens ? TG_PHASE_OPEN : TG_PHASE_SCHEDULED;
    }
    return all_confirmed(ledger) ? TG_PHASE_SOLD_OUT : TG_PHASE_OPEN;
}

void ledger_tick(struct ledger *ledger, int64_t now_ms)
{
    if (ledger->stage == TG_PHASE_CLOSED) {
        return;
    }
    const enum tg_phase wanted = stage_wanted(ledger, now_ms);
    if (wanted != (enum tg_phase)ledger->stage) {
        ledger->stage = (uint8_t)wanted;
        ledger->control_sequence++;
    }
}

enum tg_reason ledger_arm(struct ledger *ledger, uint64_t epoch, const char *run_id,
                          const char *replication_id)
{
    if (ledger->epoch != epoch) {
        return TG_REASON_STALE_EPOCH;
    }
    if (ledger->stage == TG_PHASE_CLOSED) {
        return TG_REASON_SALE_CLOSED;
    }
    if (ledger->armed) {
        return strcmp(ledger->run_id, run_id) == 0 &&
                       strcmp(ledger->replication_id, replication_id) == 0
                   ? TG_REASON_NONE
                   : TG_REASON_ALREADY_ARMED;
    }
    ledger->armed = true;
    memcpy(ledger->run_id, run_id, strlen(run_id) + 1);
    memcpy(ledger->replication_id, replication_id, strlen(replication_id) + 1);
    ledger->clean_rounds = 0;
    ledger->last_clean_ms = 0;
    ledger->control_sequence++;
    return TG_REASON_NONE;
}

void ledger_append_check(struct ledger *ledger, int64_t now_ms, uint64_t epoch,
                         enum ledger_check outcome)
{
    if (ledger->epoch != epoch || !ledger->armed) {
        return;
    }
    ledger->alarms += outcome == LEDGER_CHECK_ALARM;
    if (outcome == LEDGER_CHECK_CLEAN) {
        ledger->clean_rounds++;
        ledger->last_clean_ms = now_ms;
    } else {
        ledger->clean_rounds = 0;
    }
}

uint64_t ledger_append_log(struct ledger *ledger, uint64_t epoch, const struct ledger_log *entries,
                           uint32_t count)
{
    if (epoch < ledger->log_epoch) {
        return 0;
    }
    if (epoch > ledger->log_epoch) {
        ledger->log_epoch = epoch;
        ledger->log_count = 0;
    }
    if (count == 0 || entries[0].sequence != ledger->log_count + 1 ||
        ledger->log_count + count > SIM_LOG) {
        return ledger->log_count;
    }
    memcpy(&ledger->log[ledger->log_count], entries, count * sizeof entries[0]);
    ledger->log_count += count;
    return ledger->log_count;
}

/* ---- commands ---- */

static bool named(const sim_pause *pauses, uint32_t count, sim_pause pause)
{
    for (uint32_t i = 0; i < count; i++) {
        if (pauses[i] == pause) {
            return true;
        }
    }
    return false;
}

void ledger_pause(struct ledger *ledger, sim_pause pause)
{
    if (!named(ledger->pauses, ledger->pause_count, pause) &&
        !named(ledger->lifted, ledger->lifted_count, pause) && ledger->pause_count < SIM_PAUSES) {
        ledger->pauses[ledger->pause_count++] = pause;
        ledger->control_sequence++;
    }
}

static void lift(struct ledger *ledger, sim_pause pause)
{
    if (named(ledger->lifted, ledger->lifted_count, pause)) {
        return;
    }
    if (ledger->lifted_count == SIM_LIFTED) {
        memmove(ledger->lifted, ledger->lifted + 1, (SIM_LIFTED - 1) * sizeof ledger->lifted[0]);
        ledger->lifted_count--;
    }
    ledger->lifted[ledger->lifted_count++] = pause;
}

static enum tg_reason judge_resume(struct ledger *ledger, int64_t now_ms,
                                   const struct ledger_judge *judge)
{
    if (judge->sequence != ledger->control_sequence && !ledger_mutation.resume_blind) {
        return TG_REASON_STALE_SEQUENCE;
    }
    if (ledger->stage == TG_PHASE_CLOSED) {
        return TG_REASON_SALE_CLOSED;
    }
    for (uint32_t i = 0; i < ledger->pause_count && !ledger_mutation.resume_blind; i++) {
        if (!named(judge->pauses, judge->pause_count, ledger->pauses[i])) {
            return TG_REASON_PAUSES_MISSING;
        }
    }
    if (!ledger->armed) {
        return TG_REASON_NOT_ARMED;
    }
    if (ledger->clean_rounds < 2 || !proof_fresh(ledger, now_ms)) {
        return TG_REASON_NOT_PROVED;
    }
    ledger->pause_count = 0;
    for (uint32_t i = 0; i < judge->pause_count; i++) {
        lift(ledger, judge->pauses[i]);
    }
    ledger->control_sequence++;
    return TG_REASON_NONE;
}

static void rebuild(struct ledger *ledger, const struct ledger_judge *judge)
{
    ledger_pause(ledger, judge->pause);
    ledger->epoch++;
    ledger->armed = false;
    ledger->run_id[0] = '\0';
    ledger->replication_id[0] = '\0';
    ledger->clean_rounds = 0;
    ledger->last_clean_ms = 0;
    ledger->control_sequence++;
}

enum tg_reason ledger_judge(struct ledger *ledger, int64_t now_ms, const struct ledger_judge *judge)
{
    const uint64_t bit = UINT64_C(1) << judge->number % 64;
    uint64_t *judged = &ledger->judged[judge->number / 64 % (SIM_COMMANDS / 64)];
    if (*judged & bit) {
        return TG_REASON_NONE; /* told what the first was told */
    }
    enum tg_reason reason = TG_REASON_NONE;
    const bool closed = ledger->stage == TG_PHASE_CLOSED;
    switch (judge->kind) {
    case LEDGER_PAUSE:
        if (closed) {
            return TG_REASON_SALE_CLOSED;
        }
        if (ledger->pause_count == SIM_PAUSES &&
            !named(ledger->pauses, ledger->pause_count, judge->pause)) {
            return TG_REASON_NOT_ALLOWED_NOW; /* not in the log: repeating it can still pause */
        }
        ledger_pause(ledger, judge->pause);
        break;
    case LEDGER_RESUME:
        reason = judge_resume(ledger, now_ms, judge);
        break;
    case LEDGER_REBUILD:
        if (closed) {
            reason = TG_REASON_SALE_CLOSED;
        } else {
            rebuild(ledger, judge);
        }
        break;
    case LEDGER_CLOSE:
        ledger->stage = TG_PHASE_CLOSED;
        ledger->control_sequence += !closed;
        break;
    }
    *judged |= bit;
    return reason;
}
