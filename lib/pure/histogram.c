/* SPDX-License-Identifier: Apache-2.0
 * Buckets 0..7 hold exactly 0..7 us; behind them 8 equal steps per power of two. */
#include "lib/pure/histogram.h"

#include <stddef.h>

enum { STEPS = 8, STEP_BITS = 3 };

static size_t bucket_of(uint64_t us)
{
    if (us < STEPS) {
        return (size_t)us;
    }
    unsigned power = 63U - (unsigned)__builtin_clzll(us);
    size_t bucket =
        (size_t)(power - STEP_BITS + 1) * STEPS + (us >> (power - STEP_BITS) & (STEPS - 1));
    return bucket < TG_HISTOGRAM_BUCKETS ? bucket : TG_HISTOGRAM_BUCKETS - 1;
}

/* The largest value of a bucket. The last one has no end, but reports the end it would have. */
static uint64_t upper_us(size_t bucket)
{
    if (bucket < STEPS) {
        return bucket;
    }
    unsigned shift = (unsigned)(bucket / STEPS) - 1;
    return ((uint64_t)(STEPS + bucket % STEPS + 1) << shift) - 1;
}

void tg_histogram_add(struct tg_histogram *histogram, uint64_t us)
{
    histogram->count++;
    histogram->sum_us += us;
    histogram->buckets[bucket_of(us)]++;
}

uint64_t tg_histogram_at_us(const struct tg_histogram *histogram, unsigned per_mille)
{
    if (histogram->count == 0) {
        return 0;
    }
    unsigned share = per_mille < 1000 ? per_mille : 1000;
    /* ceil(count x share / 1000), without overflow */
    uint64_t wanted =
        histogram->count / 1000 * share + (histogram->count % 1000 * share + 999) / 1000;
    uint64_t seen = 0;
    size_t last = 0;
    for (size_t i = 0; i < TG_HISTOGRAM_BUCKETS; i++) {
        if (histogram->buckets[i] == 0) {
            continue;
        }
        last = i;
        seen += histogram->buckets[i];
        if (seen >= wanted) {
            break;
        }
    }
    return upper_us(last);
}

uint64_t tg_histogram_below(const struct tg_histogram *histogram, uint64_t us)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < TG_HISTOGRAM_BUCKETS && upper_us(i) <= us; i++) {
        seen += histogram->buckets[i];
    }
    return seen;
}

void tg_histogram_merge(struct tg_histogram *into, const struct tg_histogram *from)
{
    into->count += from->count;
    into->sum_us += from->sum_us;
    for (size_t i = 0; i < TG_HISTOGRAM_BUCKETS; i++) {
        into->buckets[i] += from->buckets[i];
    }
}
