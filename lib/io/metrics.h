/* SPDX-License-Identifier: Apache-2.0
 * Counters, gauges and histograms of catalog/metrics.def, kept in one table, printed as Prometheus
 * text 0.0.4. */
#ifndef TG_IO_METRICS_H
#define TG_IO_METRICS_H

#include <stdint.h>

enum tg_metric {
#define TG_METRIC(id, name, kind, label, help) TG_METRIC_##id,
#include "catalog/metrics.def"
#undef TG_METRIC
    TG_METRIC_COUNT
};

/* `label` is the value of the metric's one label, "" where it has none. At most 128 values per
 * metric; further ones are counted under "other". Cost: one hash look-up, about 30 ns; resolve once
 * where hot. */
void tg_metric_add(enum tg_metric metric, const char *label, uint64_t amount);
void tg_metric_set(enum tg_metric metric, const char *label, double value);
void tg_metric_observe_us(enum tg_metric metric, const char *label, uint64_t us);

/* A resolved series: stays valid for the process's life. */
struct tg_series;
struct tg_series *tg_metric_series(enum tg_metric metric, const char *label);
void tg_series_add(struct tg_series *series, uint64_t amount);
void tg_series_observe_us(struct tg_series *series, uint64_t us);

/* The whole text; caller frees with free(). Only metrics that were touched are printed. */
char *tg_metrics_text(void);

#endif
