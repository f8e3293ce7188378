/* SPDX-License-Identifier: Apache-2.0
 * Times and durations as types, so that swapping them does not compile; text forms. Reads no clock
 * (lib/io/clock does). */
#ifndef TG_PURE_CLOCK_H
#define TG_PURE_CLOCK_H

#include "lib/pure/error.h"

#include <stddef.h>
#include <stdint.h>

struct tg_wall {
    int64_t ms;
}; /* Unix milliseconds, UTC */
struct tg_mono {
    int64_t ms;
}; /* monotonic milliseconds: for durations only */

enum { TG_RFC3339_BYTES = 25 }; /* "2026-12-01T10:00:00.123Z" and its NUL */

/* RFC 3339 UTC with milliseconds, years 1970..9999. Returns 0 or TG_ERR_RANGE. */
TG_MUST_CHECK int tg_wall_format(struct tg_wall wall, char out_text[TG_RFC3339_BYTES]);

/* RFC 3339 with a mandatory zone (Z or +hh:mm), seconds fraction optional. Returns 0 or
 * TG_ERR_MALFORMED. */
TG_MUST_CHECK int tg_wall_parse(const char *text, struct tg_wall *out_wall);

/* "250ms" "5s" "10m" "2h": whole number and unit, no spaces. Returns 0, TG_ERR_MALFORMED or
 * TG_ERR_RANGE. */
TG_MUST_CHECK int tg_duration_parse(const char *text, int64_t *out_ms);

#endif
