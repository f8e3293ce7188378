/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/metrics.h"

#include <assert.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LABELS_MAX = 128, LABEL_BYTES = 129, BUCKETS = 16, SLOTS = 256 };

enum metric_kind { COUNTER, GAUGE, HISTOGRAM };

/* Upper bounds; the text is what `le` says, in seconds. */
static const struct {
    uint64_t us;
    const char *le;
} bounds[BUCKETS] = {
    {100, "0.0001"},  {250, "0.00025"}, {500, "0.0005"},  {1000, "0.001"},
    {2500, "0.0025"}, {5000, "0.005"},  {10000, "0.01"},  {25000, "0.025"},
    {50000, "0.05"},  {100000, "0.1"},  {250000, "0.25"}, {500000, "0.5"},
    {1000000, "1"},   {2500000, "2.5"}, {5000000, "5"},   {10000000, "10"},
};

static const struct {
    const char *name;
    enum metric_kind kind;
    const char *label;
    const char *help;
} catalogue[TG_METRIC_COUNT] = {
#define TG_METRIC(id, name, kind, label, help) {"tidegate_" name, kind, label, help},
#include "catalog/metrics.def"
#undef TG_METRIC
};

struct tg_series {
    char label[LABEL_BYTES];
    uint64_t count; /* counters: the total; histograms: observations */
    double value;   /* gauges, and counters kept by somebody else (CPU time) */
    uint64_t sum_us;
    uint64_t buckets[BUCKETS + 1]; /* not cumulative; the last is +Inf */
};

/* The series of one metric: an open-addressed table, at most half full (128 values and "other" in
 * 256 slots). */
struct table {
    unsigned count;
    struct tg_series *slots[SLOTS];
};

static struct table *tables[TG_METRIC_COUNT];
/* Where everything goes once memory is gone: counted nowhere, but never a crash. */
static struct tg_series lost;

/* The slot that holds the label, or the empty one where it belongs. FNV-1a; labels are of our own
 * making. */
static struct tg_series **slot_of(struct table *table, const char *label)
{
    uint32_t hash = 2166136261U;
    for (const char *at = label; *at != '\0'; at++) {
        hash = (hash ^ (uint8_t)*at) * 16777619U;
    }
    unsigned slot = (hash ^ (hash >> 16)) % SLOTS;
    while (table->slots[slot] != NULL && strcmp(table->slots[slot]->label, label) != 0) {
        slot = (slot + 1) % SLOTS;
    }
    return &table->slots[slot];
}

static struct tg_series *find_or_make(struct table *table, const char *label)
{
    struct tg_series **slot = slot_of(table, label);
    if (*slot == NULL) {
        *slot = calloc(1, sizeof(**slot));
        if (*slot == NULL) {
            return &lost;
        }
        memcpy((*slot)->label, label, strlen(label));
        table->count++;
    }
    return *slot;
}

struct tg_series *tg_metric_series(enum tg_metric metric, const char *label)
{
    assert(metric < TG_METRIC_COUNT);
    struct table *table = tables[metric];
    if (table == NULL) {
        table = calloc(1, sizeof(*table));
        if (table == NULL) {
            return &lost;
        }
        tables[metric] = table;
    }
    if (strlen(label) >= LABEL_BYTES) {
        return find_or_make(table, "other");
    }
    if (table->count >= LABELS_MAX && *slot_of(table, label) == NULL) {
        return find_or_make(table, "other");
    }
    return find_or_make(table, label);
}

void tg_series_add(struct tg_series *series, uint64_t amount)
{
    series->count += amount;
}

void tg_series_observe_us(struct tg_series *series, uint64_t us)
{
    unsigned bucket = 0;
    while (bucket < BUCKETS && us > bounds[bucket].us) {
        bucket++;
    }
    series->buckets[bucket]++;
    series->count++;
    series->sum_us += us;
}

void tg_metric_add(enum tg_metric metric, const char *label, uint64_t amount)
{
    assert(catalogue[metric].kind == COUNTER);
    tg_series_add(tg_metric_series(metric, label), amount);
}

void tg_metric_set(enum tg_metric metric, const char *label, double value)
{
    assert(catalogue[metric].kind != HISTOGRAM);
    tg_metric_series(metric, label)->value = value;
}

void tg_metric_observe_us(enum tg_metric metric, const char *label, uint64_t us)
{
    assert(catalogue[metric].kind == HISTOGRAM);
    tg_series_observe_us(tg_metric_series(metric, label), us);
}

/* Label values may hold anything: backslash, quote and line feed are escaped, as the format wants.
 */
static void print_escaped(FILE *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\\' || *text == '"') {
            fputc('\\', out);
            fputc(*text, out);
        } else if (*text == '\n') {
            fputs("\\n", out);
        } else {
            fputc(*text, out);
        }
    }
}

/* name{label="value",le="..."} and a space. */
static void print_name(FILE *out, enum tg_metric metric, const char *suffix,
                       const struct tg_series *series, const char *le)
{
    const char *label = catalogue[metric].label;
    fprintf(out, "%s%s", catalogue[metric].name, suffix);
    if (label[0] != '\0' || le != NULL) {
        fputc('{', out);
        if (label[0] != '\0') {
            fprintf(out, "%s=\"", label);
            print_escaped(out, series->label);
            fprintf(out, "\"%s", le != NULL ? "," : "");
        }
        if (le != NULL) {
            fprintf(out, "le=\"%s\"", le);
        }
        fputc('}', out);
    }
    fputc(' ', out);
}

static void print_histogram(FILE *out, enum tg_metric metric, const struct tg_series *series)
{
    uint64_t below = 0;
    for (unsigned i = 0; i < BUCKETS; i++) {
        below += series->buckets[i];
        print_name(out, metric, "_bucket", series, bounds[i].le);
        fprintf(out, "%" PRIu64 "\n", below);
    }
    print_name(out, metric, "_bucket", series, "+Inf");
    fprintf(out, "%" PRIu64 "\n", series->count);
    print_name(out, metric, "_sum", series, NULL);
    fprintf(out, "%" PRIu64 ".%06" PRIu64 "\n", series->sum_us / 1000000, series->sum_us % 1000000);
    print_name(out, metric, "_count", series, NULL);
    fprintf(out, "%" PRIu64 "\n", series->count);
}

static void print_series(FILE *out, enum tg_metric metric, const struct tg_series *series)
{
    switch (catalogue[metric].kind) {
    case COUNTER:
        print_name(out, metric, "", series, NULL);
        if (series->value != 0) {
            fprintf(out, "%.15g\n", series->value + (double)series->count);
        } else {
            fprintf(out, "%" PRIu64 "\n", series->count);
        }
        break;
    case GAUGE:
        print_name(out, metric, "", series, NULL);
        fprintf(out, "%.15g\n", series->value);
        break;
    case HISTOGRAM:
        print_histogram(out, metric, series);
        break;
    }
}

char *tg_metrics_text(void)
{
    static const char *const kind_text[] = {"counter", "gauge", "histogram"};
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (out == NULL) {
        return NULL;
    }
    for (unsigned metric = 0; metric < TG_METRIC_COUNT; metric++) {
        const struct table *table = tables[metric];
        if (table == NULL) {
            continue;
        }
        fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", catalogue[metric].name, catalogue[metric].help,
                catalogue[metric].name, kind_text[catalogue[metric].kind]);
        for (unsigned slot = 0; slot < SLOTS; slot++) {
            if (table->slots[slot] != NULL) {
                print_series(out, (enum tg_metric)metric, table->slots[slot]);
            }
        }
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
