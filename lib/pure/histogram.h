/* SPDX-License-Identifier: Apache-2.0
 * A log-linear histogram of microseconds: 8 steps per power of two, 1 us .. 17 min, worst
 * error 12.5 %. No heap. */
#ifndef TG_PURE_HISTOGRAM_H
#define TG_PURE_HISTOGRAM_H

#include <stdint.h>

enum { TG_HISTOGRAM_BUCKETS = 8 * 31 };

struct tg_histogram {
    uint64_t count;
    uint64_t sum_us;
    uint64_t buckets[TG_HISTOGRAM_BUCKETS];
};

void tg_histogram_add(struct tg_histogram *histogram, uint64_t us);
/* Upper bound of the bucket that holds the given share (0..1000 per mille) of all; 0 when empty. */
uint64_t tg_histogram_at_us(const struct tg_histogram *histogram, unsigned per_mille);
/* How many were at most `us` (by bucket upper bound). */
uint64_t tg_histogram_below(const struct tg_histogram *histogram, uint64_t us);
void tg_histogram_merge(struct tg_histogram *into, const struct tg_histogram *from);

#endif
