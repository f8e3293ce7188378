/* SPDX-License-Identifier: Apache-2.0
 * The clocks and the entropy of this machine. The only place that reads them; cores get times as
 * arguments. */
#ifndef TG_IO_NOW_H
#define TG_IO_NOW_H

#include "lib/pure/clock.h"

struct tg_wall tg_now_wall(void);
/* Of the last tick of the kernel, at most 10 ms ago: for what is shown in seconds, at a third of
 * the cost. */
struct tg_wall tg_now_wall_coarse(void);
struct tg_mono tg_now_mono(void);
uint64_t tg_now_us(void); /* monotonic, for latencies */

/* Random bytes from a pool refilled by the kernel (64 KiB at a time); aborts when the kernel has
 * none. */
void tg_random(void *out_bytes, size_t length);

#endif
