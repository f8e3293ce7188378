/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/rehearse/report.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>

static const char *const asks[REHEARSE_ASK_COUNT] = {
    [REHEARSE_ASK_TICKET] = "ticket",   [REHEARSE_ASK_BOARD] = "board",
    [REHEARSE_ASK_STATUS] = "status",   [REHEARSE_ASK_RESERVE] = "reserve",
    [REHEARSE_ASK_CONFIRM] = "confirm",
};

static const char *const verdicts[] = {
    [REHEARSE_PASS] = "pass", [REHEARSE_FAIL] = "fail", [REHEARSE_VOID] = "void"};

static json_t *whole(uint64_t number)
{
    return json_integer((json_int_t)number);
}

static json_t *rounded(double number)
{
    return json_real((double)(int64_t)(number * 1000 + (number < 0 ? -0.5 : 0.5)) / 1000);
}

static json_t *ms_at(const struct tg_histogram *histogram, unsigned per_mille)
{
    return rounded((double)tg_histogram_at_us(histogram, per_mille) / 1000);
}

/* Members are owned by the object from here on; a failed allocation is told by the dump. */
static void put(json_t *object, const char *name, json_t *take_value)
{
    if (json_object_set_new(object, name, take_value) != 0) {
        fprintf(stderr, "rehearse: out of memory for the report\n");
    }
}

static void put_people(json_t *root, const struct rehearse_result *result)
{
    const struct rehearse_totals *totals = &result->crowd->totals;
    json_t *people = json_object();
    for (unsigned state = 0; state < REHEARSE_STATE_COUNT; state++) {
        if (totals->by_state[state] > 0) {
            put(people, rehearse_state_name((enum rehearse_state)state),
                whole(totals->by_state[state]));
        }
    }
    put(root, "people", people);
    json_t *refusals = json_object();
    for (unsigned reason = 1; reason <= TG_REASON_COUNT; reason++) {
        const char *code =
            reason < TG_REASON_COUNT ? tg_reason_code((enum tg_reason)reason) : "unknown";
        if (totals->refused[reason] > 0) {
            put(refusals, code, whole(totals->refused[reason]));
        }
    }
    put(root, "refusals", refusals);
}

/* What all processes of the stack did, for the winners too, over the people who heard no. */
static double cpu_ms_per_no(const struct rehearse_result *result)
{
    const uint64_t told = result->crowd->totals.by_state[REHEARSE_SOLD_OUT];
    double seconds = 0;
    for (size_t i = 0; i < result->cpu.count; i++) {
        seconds += result->cpu.daemons[i].seconds;
    }
    return told == 0 ? 0 : seconds * 1000 / (double)told;
}

static void put_sale(json_t *root, const struct rehearse_result *result)
{
    const struct rehearse_counts *counts = &result->counts;
    put(root, "sale", json_string(result->sale->name));
    put(root, "buyers", whole(result->options->buyers));
    put(root, "units", whole(result->sale->units));
    put(root, "tickets", whole(result->crowd->totals.tickets));
    put(root, "passes", whole(result->crowd->totals.passes));
    put(root, "held", whole(counts->recorded));
    put(root, "confirmed", whole(counts->confirmed));
    put(root, "expired", whole(counts->expired));
    put(root, "cancelled", whole(counts->cancelled));
    put(root, "resold", whole(counts->resold));
    put(root, "returned", whole(counts->restocked));
    put(root, "unsold", whole(result->gate.free));
    put(root, "stillHeld", whole(result->gate.held));
    put(root, "compensations", whole(counts->compensations));
}

/* What a referee points at: the first false "sold out", and the stock at that moment. */
static json_t *false_sold_out(const struct rehearse_findings *findings)
{
    const struct rehearse_seen *seen = &findings->first_false;
    json_t *first = json_object();
    put(first, "request", json_string(asks[seen->ask]));
    put(first, "final", json_boolean(seen->told == REHEARSE_TOLD_FINAL));
    put(first, "sentMs", whole(seen->sent_ms));
    put(first, "answeredMs", whole(seen->answered_ms));
    put(first, "ageMs", whole(seen->age_ms));
    put(first, "free", whole(findings->stock_then.free));
    put(first, "held", whole(findings->stock_then.held));
    put(first, "changedMs", json_integer(findings->stock_then.at_ms));
    return first;
}

static void put_rules(json_t *root, const struct rehearse_result *result)
{
    const struct rehearse_findings *findings = &result->findings;
    put(root, "oversold", whole(findings->oversold));
    put(root, "lostHolds", whole(findings->lost_holds));
    put(root, "wrongAnswers", whole(rehearse_wrong_answers(findings)));
    json_t *rules = json_object();
    put(rules, "oversold", whole(findings->oversold));
    put(rules, "overLimit", whole(findings->over_limit));
    put(rules, "leaked", whole(findings->leaked));
    put(rules, "lostHolds", whole(findings->lost_holds));
    put(rules, "wrongHolds", whole(findings->wrong_holds));
    put(rules, "wrongOrders", whole(findings->wrong_orders));
    put(rules, "soldOutAfterWin", whole(findings->refused_after_win));
    put(rules, "twoReservationsForOneKey", whole(findings->two_for_one_key));
    put(rules, "falseSoldOut", whole(findings->false_sold_out));
    if (findings->false_sold_out > 0) {
        put(rules, "falseSoldOutFirst", false_sold_out(findings));
    }
    put(rules, "falseSoldOutJudged", json_boolean(result->facts.stock_known));
    put(rules, "falseAlarms", whole(findings->false_alarms));
    put(rules, "alarmMissing", json_boolean(findings->alarm_missing));
    put(rules, "heldWhilePaused", whole(findings->held_while_paused));
    put(rules, "toldLate", whole(findings->told_late));
    put(root, "rules", rules);
    put(root, "http5xx", whole(result->crowd->totals.status_5xx));
    json_t *by_request = json_object();
    for (unsigned ask = 0; ask < REHEARSE_ASK_COUNT; ask++) {
        put(by_request, asks[ask], whole(result->crowd->totals.status_5xx_of[ask]));
    }
    put(root, "http5xxByRequest", by_request);
    put(root, "invariantRounds", whole(result->counts.rounds_clean));
    put(root, "invariantRoundsVoid", whole(result->counts.rounds_void));
    put(root, "alarms", whole(result->counts.alarms));
}

static void put_times(json_t *root, const struct rehearse_result *result)
{
    const struct rehearse_totals *totals = &result->crowd->totals;
    put(root, "soldOutToldMsP99",
        result->sold_out_told_p99_ms < 0 ? json_null() : rounded(result->sold_out_told_p99_ms));
    put(root, "soldOutToldRequests", whole(result->sold_out_told));
    put(root, "holdMsP50", ms_at(&totals->hold, 500));
    put(root, "holdMsP99", ms_at(&totals->hold, 990));
    put(root, "ticketMsP50", ms_at(&totals->ticket, 500));
    put(root, "ticketMsP99", ms_at(&totals->ticket, 990));
    put(root, "statusMsP50", ms_at(&totals->status, 500));
    put(root, "statusMsP99", ms_at(&totals->status, 990));
    put(root, "confirmMsP50", ms_at(&totals->confirm, 500));
    put(root, "confirmMsP99", ms_at(&totals->confirm, 990));
    put(root, "holdsPerSecond", rounded(result->holds_per_second));
    put(root, "holdsPerSecondPeak", whole(result->holds_per_second_peak));
    put(root, "runSeconds", rounded(result->run_s));
    put(root, "settleSeconds", rounded(result->settle_s));
    put(root, "settled", json_boolean(result->settled));
}

static uint64_t all_sent(const struct rehearse_result *result)
{
    return result->client.sent + result->shop.sent + result->fetch.sent;
}

static void put_client(json_t *root, const struct rehearse_result *result)
{
    const struct rehearse_totals *totals = &result->crowd->totals;
    json_t *client = json_object();
    put(client, "connections", whole(result->client.most_connections));
    put(client, "peoplePerConnection",
        rounded(result->client.most_connections > 0
                    ? (double)result->options->buyers / result->client.most_connections
                    : 0));
    put(client, "requests", whole(all_sent(result)));
    put(client, "answers",
        whole(result->client.answered + result->shop.answered + result->fetch.answered));
    put(client, "unanswered",
        whole(result->client.unanswered + result->shop.unanswered + result->fetch.unanswered));
    put(client, "answersDropped", whole(result->client.dropped));
    put(client, "duplicates", whole(totals->duplicates));
    put(client, "replays", whole(totals->replays));
    put(client, "boardsFromCache", whole(totals->boards_from_cache));
    put(client, "boardsFromOrigin", whole(totals->boards_from_origin));
    put(client, "poolWaitMsP50", ms_at(&totals->queue, 500));
    put(client, "poolWaitMsP99", ms_at(&totals->queue, 990));
    put(client, "unreadable", whole(totals->unreadable));
    const struct rehearse_strain *strain = &result->crowd->strain;
    put(client, "turnMsMax", whole(strain->longest_ms));
    put(client, "lateSeconds", rounded((double)strain->late_ms / 1000));
    put(client, "queuedSeconds", rounded((double)strain->queued_ms / 1000));
    put(client, "cpuSeconds", rounded(result->own_cpu_s));
    put(root, "client", client);
    json_t *cpu = json_object();
    for (size_t i = 0; i < result->cpu.count; i++) {
        put(cpu, result->cpu.daemons[i].name, rounded(result->cpu.daemons[i].seconds));
    }
    put(root, "cpuSecondsByDaemon", cpu);
    put(root, "cpuMsPerPersonToldNo", rounded(cpu_ms_per_no(result)));
}

int rehearse_report_json(const struct rehearse_result *result, const char *path)
{
    json_t *root = json_object();
    put(root, "verdict", json_string(verdicts[result->verdict]));
    json_t *failures = json_array();
    for (size_t i = 0; i < result->failure_count; i++) {
        json_array_append_new(failures, json_string(result->failures[i]));
    }
    put(root, "failures", failures);
    put_sale(root, result);
    put_rules(root, result);
    put_times(root, result);
    put_people(root, result);
    put_client(root, result);
    FILE *file = fopen(path, "we");
    int error = file == NULL ? -errno : 0;
    if (error == 0 && (json_dumpf(root, file, JSON_INDENT(2)) != 0 || fputc('\n', file) == EOF)) {
        error = -EIO;
    }
    if (file != NULL && fclose(file) != 0 && error == 0) {
        error = -EIO;
    }
    json_decref(root);
    return error;
}

static void line(FILE *out, const char *name, uint64_t number, const char *remark)
{
    fprintf(out, "  %-28s %12" PRIu64 "  %s\n", name, number, remark);
}

static void text_sale(const struct rehearse_result *result, FILE *out)
{
    const struct rehearse_counts *counts = &result->counts;
    const struct rehearse_totals *totals = &result->crowd->totals;
    fprintf(out,
            "\nsale %s: %" PRIu64 " units, %" PRIu32
            " buyers, %.1f s and %.1f s until the last hold had ended\n\n",
            result->sale->name, result->sale->units, result->options->buyers, result->run_s,
            result->settle_s);
    line(out, "tickets", totals->tickets, "");
    line(out, "passes", totals->passes, "");
    line(out, "units held", counts->recorded, "reservations in the ledger");
    line(out, "confirmed", counts->confirmed, "paid");
    line(out, "expired", counts->expired, "lapsed, given back");
    line(out, "resold", counts->resold, "units that lapsed once and were sold after it");
    line(out, "unsold", result->gate.free, "free at the end");
    line(out, "told sold out", totals->by_state[REHEARSE_SOLD_OUT], "people");
    line(out, "asked twice on purpose", totals->duplicates, "same Idempotency-Key");
}

/* Any of them fails a run: which were they? */
static void text_5xx(const struct rehearse_totals *totals, FILE *out)
{
    char by_reason[256] = "";
    size_t length = 0;
    for (unsigned reason = 1; reason < TG_REASON_COUNT && length < sizeof(by_reason); reason++) {
        if (totals->refused[reason] > 0 && tg_reason_row((enum tg_reason)reason)->status >= 500) {
            length +=
                (size_t)snprintf(by_reason + length, sizeof(by_reason) - length, "%s%s %" PRIu64,
                                 length > 0 ? ", " : "", tg_reason_code((enum tg_reason)reason),
                                 totals->refused[reason]);
        }
    }
    line(out, "5xx", totals->status_5xx, by_reason);
}

static void text_rules(const struct rehearse_result *result, FILE *out)
{
    const struct rehearse_findings *findings = &result->findings;
    fputs("\nreferee\n", out);
    line(out, "R1 oversold", findings->oversold, "live holdings beyond units, or of two owners");
    line(out, "R1 over the limit", findings->over_limit, "buyers");
    line(out, "R2 leaked", findings->leaked, "units gate and ledger do not account for alike");
    line(out, "R3 lost holds", findings->lost_holds, "201 without a row");
    line(out, "R3 wrong rows", findings->wrong_holds + findings->wrong_orders, "not what was told");
    line(out, "R4 sold out after a win", findings->refused_after_win + findings->two_for_one_key,
         "same key");
    line(out, "R5 false sold out", findings->false_sold_out,
         result->facts.stock_known ? "while there was stock"
                                   : "not judged: no whole history of one epoch");
    line(out, "R6 false alarms", findings->false_alarms,
         findings->alarm_missing ? "and none although something was corrupted" : "of the checker");
    line(out, "R7 held while paused", findings->held_while_paused, "after a pause and its lease");
    line(out, "told late", findings->told_late,
         "asked 1 s after the last unit was sold, not told so");
    line(out, "alarms", result->counts.alarms, "of the checker");
    line(out, "clean rounds", result->counts.rounds_clean, "of the proof");
    text_5xx(&result->crowd->totals, out);
}

static void text_times(const struct rehearse_result *result, FILE *out)
{
    const struct rehearse_totals *totals = &result->crowd->totals;
    const struct {
        const char *name;
        const struct tg_histogram *histogram;
    } rows[] = {{"ticket", &totals->ticket},
                {"status", &totals->status},
                {"hold", &totals->hold},
                {"confirm", &totals->confirm},
                {"waiting for a connection", &totals->queue}};
    fputs("\n                                p50 ms     p99 ms\n", out);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fprintf(out, "  %-28s %8.1f   %8.1f\n", rows[i].name,
                (double)tg_histogram_at_us(rows[i].histogram, 500) / 1000,
                (double)tg_histogram_at_us(rows[i].histogram, 990) / 1000);
    }
    if (result->sold_out_told_p99_ms >= 0) {
        fprintf(out,
                "  %-28s            %8.1f   (%" PRIu64
                " requests sent more than 1 s after the event)\n",
                "told sold out", result->sold_out_told_p99_ms, result->sold_out_told);
    }
    fprintf(out, "  holds per second %.0f, best second %" PRIu32 "\n", result->holds_per_second,
            result->holds_per_second_peak);
    fprintf(out,
            "  %" PRIu64 " requests over %" PRIu32
            " connections: each stood for %.0f people; %" PRIu64
            " looks at the board cost the edge %" PRIu64 " requests\n",
            all_sent(result), result->client.most_connections,
            result->client.most_connections > 0
                ? (double)result->options->buyers / result->client.most_connections
                : 0,
            totals->boards_from_cache + totals->boards_from_origin, totals->boards_from_origin);
    const struct rehearse_strain *strain = &result->crowd->strain;
    fprintf(out,
            "  load generator: %.1f s of CPU, longest turn %" PRIu32
            " ms; %.1f s late, %.1f s with a request waiting longer than %d s\n",
            result->own_cpu_s, strain->longest_ms, (double)strain->late_ms / 1000,
            (double)strain->queued_ms / 1000, REHEARSE_WAITED_MS / 1000);
}

void rehearse_report_text(const struct rehearse_result *result, FILE *out)
{
    text_sale(result, out);
    text_rules(result, out);
    text_times(result, out);
    if (result->cpu.count > 0) {
        fputs("\n  CPU seconds:", out);
        for (size_t i = 0; i < result->cpu.count; i++) {
            fprintf(out, "  %s %.1f", result->cpu.daemons[i].name, result->cpu.daemons[i].seconds);
        }
        fprintf(out, "\n  %.2f ms of CPU for each person told no, the winners' share included\n",
                cpu_ms_per_no(result));
    }
    fprintf(out, "\nverdict: %s\n", verdicts[result->verdict]);
    for (size_t i = 0; i < result->failure_count; i++) {
        fprintf(out, "  %s\n", result->failures[i]);
    }
}
