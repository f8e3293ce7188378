/* SPDX-License-Identifier: Apache-2.0
 * rehearse: the crowd plays, then holds end, then the referee reads both stores, then the report.
 */
#include "tools/rehearse/crowd.h"
#include "tools/rehearse/gate.h"
#include "tools/rehearse/ledger.h"
#include "tools/rehearse/report.h"

#include "lib/io/now.h"

#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sysexits.h>

enum { SETTLE_EVERY_MS = 250, EXPORT_S = 10 };

/* Everything there is to know while waiting for the last holds to end. */
struct settling {
    PGconn *ledger;
    struct rehearse_result *result;
    struct rehearse_sale *sale;
    uint64_t begun_us, settled_us;
    int error;
};

static bool all_ended(const struct rehearse_counts *counts, const struct rehearse_gate *gate)
{
    return counts->pending == 0 && counts->unobeyed == 0 && gate->known && gate->held == 0 &&
           gate->unacked == 0;
}

static void on_settle(uv_timer_t *timer)
{
    struct settling *settling = timer->data;
    struct rehearse_result *result = settling->result;
    /* The epoch may have moved: a rebuild is part of some rehearsals. */
    settling->error = rehearse_ledger_sale(settling->ledger, result->options->sale, settling->sale);
    if (settling->error == 0) {
        settling->error = rehearse_ledger_counts(settling->ledger, settling->sale, &result->counts);
    }
    if (settling->error == 0) {
        settling->error =
            rehearse_gate_read(result->options->redis_url, settling->sale, &result->gate);
    }
    result->settle_s = (double)(tg_now_us() - settling->begun_us) / 1e6;
    result->settled = settling->error == 0 && all_ended(&result->counts, &result->gate);
    bool late = result->settle_s >= result->options->settle_s;
    /* The gate's log reaches the ledger a round later: the referee waits for it, but not for ever.
     */
    if (!result->settled) {
        settling->settled_us = tg_now_us();
    }
    bool logged = result->counts.logged >= result->gate.sequence ||
                  tg_now_us() - settling->settled_us > EXPORT_S * UINT64_C(1000000);
    if ((result->settled && logged) || late || settling->error != 0) {
        uv_close((uv_handle_t *)timer, NULL);
    } else {
        fprintf(stderr,
                "  waiting for the last holds to end: pending %llu, not yet obeyed %llu, held at "
                "the gate %llu\n",
                (unsigned long long)result->counts.pending,
                (unsigned long long)result->counts.unobeyed, (unsigned long long)result->gate.held);
    }
}

static int settle(uv_loop_t *loop, struct settling *settling)
{
    uv_timer_t timer;
    settling->begun_us = settling->settled_us = tg_now_us();
    uv_timer_init(loop, &timer);
    timer.data = settling;
    int error = uv_timer_start(&timer, on_settle, 1, SETTLE_EVERY_MS);
    if (error == 0) {
        uv_run(loop, UV_RUN_DEFAULT);
    }
    return error != 0 ? error : settling->error;
}

static int gather_facts(PGconn *ledger, const struct rehearse_crowd *crowd,
                        struct rehearse_result *result)
{
    struct rehearse_facts *facts = &result->facts;
    int error = rehearse_ledger_rows(ledger, result->sale, crowd->tag, facts);
    if (error == 0) {
        error = rehearse_ledger_stock(ledger, result->sale, crowd->begun.ms, result->gate.sequence,
                                      facts);
    }
    facts->alarms = result->counts.alarms;
    facts->corrupted = result->options->corrupted;
    facts->gate_known = result->gate.known;
    facts->gate_free = result->gate.free;
    facts->gate_held = result->gate.held;
    facts->gate_settled = result->gate.settled;
    facts->gate_bits = result->gate.bits;
    return error;
}

static int judge_and_report(PGconn *ledger, struct rehearse_crowd *crowd,
                            struct rehearse_result *result)
{
    int error = gather_facts(ledger, crowd, result);
    if (error == 0) {
        rehearse_judge(&crowd->log, &result->facts, &result->findings);
        rehearse_conclude(result);
        rehearse_report_text(result, stdout);
        error = rehearse_report_json(result, result->options->out);
        if (error != 0) {
            fprintf(stderr, "rehearse: %s: %s\n", result->options->out, tg_error_text(error));
        }
    }
    free(result->facts.rows);
    free(result->facts.stock);
    return error;
}

static double own_cpu_s(void)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0) {
        return 0;
    }
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static int play(const struct rehearse_options *options, PGconn *ledger, struct rehearse_sale *sale)
{
    static struct rehearse_crowd crowd;
    static struct rehearse_result result;
    struct rehearse_cpu before;
    uv_loop_t loop;
    int error = uv_loop_init(&loop);
    if (error != 0) {
        return EX_OSERR;
    }
    crowd = (struct rehearse_crowd){.options = options, .sale = sale, .loop = &loop};
    result = (struct rehearse_result){.options = options, .sale = sale, .crowd = &crowd};
    rehearse_cpu_read(options->run, &before);
    error = rehearse_crowd_run(&crowd);
    result.run_s = (double)(tg_now_us() - crowd.begun_us) / 1e6;
    if (error == 0) {
        rehearse_client_counts(crowd.client, &result.client);
        struct settling settling = {.ledger = ledger, .result = &result, .sale = sale};
        rehearse_client_counts(crowd.shop, &result.shop);
        rehearse_client_counts(crowd.fetch, &result.fetch);
        rehearse_crowd_hang_up(&crowd);
        PQreset(ledger); /* it has been idle for as long as the sale: the server may be another */
        error = settle(&loop, &settling);
    }
    rehearse_cpu_read(options->run, &result.cpu);
    rehearse_cpu_since(&before, &result.cpu);
    result.own_cpu_s = own_cpu_s();
    if (error == 0) {
        error = judge_and_report(ledger, &crowd, &result);
    }
    rehearse_crowd_free(&crowd);
    uv_run(&loop, UV_RUN_DEFAULT);
    if (error != 0 || uv_loop_close(&loop) != 0) {
        return EX_SOFTWARE;
    }
    static const int codes[] = {[REHEARSE_PASS] = EXIT_SUCCESS,
                                [REHEARSE_FAIL] = EXIT_FAILURE,
                                [REHEARSE_VOID] = EX_TEMPFAIL};
    return codes[result.verdict];
}

static int check_sale(const struct rehearse_options *options, const struct rehearse_sale *sale)
{
    if (options->units != 0 && options->units != sale->units) {
        fprintf(stderr, "rehearse: the sale has %llu units, not %u\n",
                (unsigned long long)sale->units, options->units);
        return EX_USAGE;
    }
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &limit) != 0) {
            return EX_OSERR;
        }
    }
    if (limit.rlim_cur < options->connections + REHEARSE_SHOP_CONNECTIONS + options->caches + 64U) {
        fprintf(
            stderr,
            "rehearse: %u connections need more descriptors than the %llu this process may have\n",
            options->connections, (unsigned long long)limit.rlim_cur);
        return EX_USAGE;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct rehearse_options options;
    struct rehearse_sale sale;
    struct sigaction ignore = {.sa_handler = SIG_IGN};
    if (sodium_init() < 0 || sigaction(SIGPIPE, &ignore, NULL) != 0) {
        return EX_OSERR;
    }
    int code = rehearse_read_options(argc, argv, &options);
    if (code != 0) {
        return code == REHEARSE_HELPED ? EXIT_SUCCESS : code;
    }
    PGconn *ledger = NULL;
    if (rehearse_ledger_open(options.ledger_url, &ledger) != 0) {
        return EX_UNAVAILABLE;
    }
    code = rehearse_ledger_sale(ledger, options.sale, &sale) != 0 ? EX_UNAVAILABLE
                                                                  : check_sale(&options, &sale);
    if (code == 0) {
        code = play(&options, ledger, &sale);
    }
    PQfinish(ledger);
    return code;
}
