/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/now.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

enum { POOL_BYTES = 64 * 1024 };

static uint8_t pool[POOL_BYTES];
static size_t pool_left;

static struct timespec read_clock(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0) {
        abort(); /* these clocks cannot be missing on Linux */
    }
    return now;
}

struct tg_wall tg_now_wall(void)
{
    struct timespec now = read_clock(CLOCK_REALTIME);
    return (struct tg_wall){.ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000};
}

struct tg_wall tg_now_wall_coarse(void)
{
    struct timespec now = read_clock(CLOCK_REALTIME_COARSE);
    return (struct tg_wall){.ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000};
}

struct tg_mono tg_now_mono(void)
{
    struct timespec now = read_clock(CLOCK_MONOTONIC);
    return (struct tg_mono){.ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000};
}

uint64_t tg_now_us(void)
{
    struct timespec now = read_clock(CLOCK_MONOTONIC);
    return (uint64_t)now.tv_sec * 1000000U + (uint64_t)now.tv_nsec / 1000U;
}

static void fill(uint8_t *out_bytes, size_t length)
{
    while (length > 0) {
        ssize_t got = getrandom(out_bytes, length, 0);
        if (got < 0) {
            if (errno == EINTR) {
                continue;
            }
            abort();
        }
        out_bytes += got;
        length -= (size_t)got;
    }
}

void tg_random(void *out_bytes, size_t length)
{
    if (length > POOL_BYTES) {
        fill(out_bytes, length);
        return;
    }
    if (length > pool_left) {
        fill(pool, POOL_BYTES);
        pool_left = POOL_BYTES;
    }
    uint8_t *from = pool + (POOL_BYTES - pool_left);
    memcpy(out_bytes, from, length);
    /* What was handed out is gone from the pool: nothing later can read it again. */
    explicit_bzero(from, length);
    pool_left -= length;
}
