/* SPDX-License-Identifier: Apache-2.0
 * The packed hold: the value of the gate's held, settled and released hashes. Written by the Lua
 * scripts, read by reserve and invariant. One line of text, fields separated by one space:
 *
 *   place(22 base64url) window deadline_ms digest(22 base64url) units slots user
 *
 * units: "item:unit,unit;item:unit". slots: "0,1", parallel to units. user: last, raw bytes, may
 * contain spaces. */
#ifndef TG_PURE_HOLD_RECORD_H
#define TG_PURE_HOLD_RECORD_H

#include "lib/pure/identity.h"
#include "lib/pure/limit.h"

#include <stddef.h>
#include <stdint.h>

struct tg_unit_ref {
    uint32_t item;
    uint32_t unit;
};

struct tg_hold_record {
    uint8_t place[TG_PLACE_BYTES];
    uint64_t window;
    int64_t deadline_ms;
    uint8_t digest[TG_DIGEST_BYTES];
    uint32_t unit_count; /* 1..TG_MAX_UNITS_PER_HOLD */
    struct tg_unit_ref units[TG_MAX_UNITS_PER_HOLD];
    uint32_t slots[TG_MAX_UNITS_PER_HOLD];
    uint8_t user[TG_MAX_USER_BYTES];
    size_t user_length;
};

enum { TG_HOLD_RECORD_BYTES = 2048 };

/* 0 or TG_ERR_MALFORMED: anything that is not exactly this form, repeats a unit, or is out of
 * bounds. */
TG_MUST_CHECK int tg_hold_record_parse(const char *text, size_t length,
                                       struct tg_hold_record *out_record);
/* out_text: TG_HOLD_RECORD_BYTES. Returns the length. */
size_t tg_hold_record_format(const struct tg_hold_record *record, char *out_text);

#endif
