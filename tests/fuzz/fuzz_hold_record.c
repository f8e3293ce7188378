/* SPDX-License-Identifier: Apache-2.0
 * The packed hold, as any writer of Redis could have left it: what parses is within every bound,
 * repeats no unit and no slot, and writes itself again byte by byte. */
#include "tests/fuzz/fuzz.h"

#include "lib/pure/hold_record.h"

static void within_bounds(const struct tg_hold_record *record)
{
    HOLDS(record->unit_count >= 1 && record->unit_count <= TG_MAX_UNITS_PER_HOLD);
    HOLDS(record->deadline_ms >= 0 && tg_user_valid(record->user, record->user_length));
    for (uint32_t i = 0; i < record->unit_count; i++) {
        HOLDS(record->units[i].item < TG_MAX_ITEMS_PER_SALE);
        HOLDS(record->units[i].unit < TG_MAX_UNITS_PER_ITEM);
        HOLDS(record->slots[i] < TG_MAX_BUYER_LIMIT);
        for (uint32_t j = 0; j < i; j++) {
            HOLDS(record->slots[i] != record->slots[j]);
            HOLDS(record->units[i].item != record->units[j].item ||
                  record->units[i].unit != record->units[j].unit);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct tg_hold_record record, again;
    char text[TG_HOLD_RECORD_BYTES];
    if (tg_hold_record_parse((const char *)bytes, size, &record) != 0) {
        return 0;
    }
    within_bounds(&record);
    HOLDS(size < sizeof(text) && tg_hold_record_format(&record, text) == size);
    HOLDS(memcmp(text, bytes, size) == 0);
    HOLDS(tg_hold_record_parse(text, size, &again) == 0);
    HOLDS(memcmp(&again, &record, sizeof(record)) == 0);
    return 0;
}
