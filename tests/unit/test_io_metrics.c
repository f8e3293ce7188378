/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/metrics.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_line(const char *line)
{
    char *text = tg_metrics_text();
    assert_non_null(text);
    char wanted[256];
    snprintf(wanted, sizeof(wanted), "\n%s\n", line);
    if (strstr(text, wanted) == NULL) {
        print_error("%s", text);
        fail_msg("no line: %s", line);
    }
    free(text);
}

static void nothing_touched_prints_nothing(void **state)
{
    char *text = tg_metrics_text();
    assert_string_equal(text, "");
    free(text);
}

static void counters_add_up_by_label(void **state)
{
    tg_metric_add(TG_METRIC_HTTP_REFUSALS, "sold_out", 2);
    tg_metric_add(TG_METRIC_HTTP_REFUSALS, "sold_out", 3);
    tg_metric_add(TG_METRIC_HTTP_REFUSALS, "malformed", 1);
    expect_line("tidegate_http_refusals_total{reason=\"sold_out\"} 5");
    expect_line("tidegate_http_refusals_total{reason=\"malformed\"} 1");
    expect_line("# TYPE tidegate_http_refusals_total counter");
}

static void gauges_keep_the_last_value(void **state)
{
    tg_metric_set(TG_METRIC_STOCK, "sku_991", 10000);
    tg_metric_set(TG_METRIC_STOCK, "sku_991", 9999);
    expect_line("tidegate_stock_units{sale=\"sku_991\"} 9999");
    tg_metric_set(TG_METRIC_HTTP_CONNECTIONS, "", 3);
    expect_line("tidegate_http_connections 3");
    tg_metric_set(TG_METRIC_PROCESS_CPU, "", 1.25);
    expect_line("tidegate_process_cpu_seconds_total 1.25");
}

static void label_values_are_escaped(void **state)
{
    tg_metric_set(TG_METRIC_HELD, "a\"b\\c\nd", 1);
    expect_line("tidegate_held_units{sale=\"a\\\"b\\\\c\\nd\"} 1");
}

static void histograms_are_cumulative_seconds(void **state)
{
    struct tg_series *series = tg_metric_series(TG_METRIC_BUS_CALL_SECONDS, "ledger.record");
    tg_series_observe_us(series, 100);      /* at a bound: inside it */
    tg_series_observe_us(series, 101);      /* just over it */
    tg_series_observe_us(series, 60000000); /* over all */
    tg_metric_observe_us(TG_METRIC_BUS_CALL_SECONDS, "ledger.record", 2000000);
    expect_line("# TYPE tidegate_bus_call_duration_seconds histogram");
    expect_line(
        "tidegate_bus_call_duration_seconds_bucket{subject=\"ledger.record\",le=\"0.0001\"} 1");
    expect_line(
        "tidegate_bus_call_duration_seconds_bucket{subject=\"ledger.record\",le=\"0.00025\"} 2");
    expect_line("tidegate_bus_call_duration_seconds_bucket{subject=\"ledger.record\",le=\"1\"} 2");
    expect_line("tidegate_bus_call_duration_seconds_bucket{subject=\"ledger.record\",le=\"10\"} 3");
    expect_line(
        "tidegate_bus_call_duration_seconds_bucket{subject=\"ledger.record\",le=\"+Inf\"} 4");
    expect_line("tidegate_bus_call_duration_seconds_sum{subject=\"ledger.record\"} 62.000201");
    expect_line("tidegate_bus_call_duration_seconds_count{subject=\"ledger.record\"} 4");
    tg_metric_observe_us(TG_METRIC_LOOP_LAG, "", 1);
    expect_line("tidegate_loop_lag_seconds_bucket{le=\"+Inf\"} 1");
    expect_line("tidegate_loop_lag_seconds_count 1");
}

static void a_resolved_series_stays_valid(void **state)
{
    struct tg_series *series = tg_metric_series(TG_METRIC_VERDICTS, "confirm");
    for (int i = 0; i < 100; i++) {
        char label[32];
        snprintf(label, sizeof(label), "kind-%d", i);
        tg_metric_add(TG_METRIC_VERDICTS, label, 1);
    }
    tg_series_add(series, 7);
    assert_ptr_equal(series, tg_metric_series(TG_METRIC_VERDICTS, "confirm"));
    expect_line("tidegate_verdicts_total{kind=\"confirm\"} 7");
    expect_line("tidegate_verdicts_total{kind=\"kind-99\"} 1");
}

/* A label a peer could grow never grows the process: values beyond the limit are one series. */
static void further_labels_are_counted_under_other(void **state)
{
    for (int i = 0; i < 1000; i++) {
        char label[32];
        snprintf(label, sizeof(label), "reason-%d", i);
        tg_metric_add(TG_METRIC_PASSES, label, 1);
    }
    expect_line("tidegate_passes_total{reason=\"reason-127\"} 1");
    expect_line("tidegate_passes_total{reason=\"other\"} 872");
    char too_long[300];
    memset(too_long, 'x', sizeof(too_long) - 1);
    too_long[sizeof(too_long) - 1] = '\0';
    tg_metric_add(TG_METRIC_PASSES, too_long, 1);
    expect_line("tidegate_passes_total{reason=\"other\"} 873");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_touched_prints_nothing),
        cmocka_unit_test(counters_add_up_by_label),
        cmocka_unit_test(gauges_keep_the_last_value),
        cmocka_unit_test(label_values_are_escaped),
        cmocka_unit_test(histograms_are_cumulative_seconds),
        cmocka_unit_test(a_resolved_series_stays_valid),
        cmocka_unit_test(further_labels_are_counted_under_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
