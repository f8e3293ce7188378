/* SPDX-License-Identifier: Apache-2.0
 * A record that is written reads back the same; a record with one byte changed reads as something
 * else or not at all; and any text that is read writes itself again. */
#include "tests/prop/choice.h"

#include "lib/pure/hold_record.h"

static void choose_user(struct choice *choice, struct tg_hold_record *record)
{
    static const char *const pieces[] = {
        "a", " ", "\"", "\\", "\xc3\xa9", "e\xcc\x81", "\xf0\x9f\x8e\x9f", "0", ","};
    size_t count = 1 + choice_below(choice, 32);
    for (size_t i = 0; i < count; i++) {
        const char *piece = pieces[choice_below(choice, sizeof(pieces) / sizeof(pieces[0]))];
        memcpy(record->user + record->user_length, piece, strlen(piece));
        record->user_length += strlen(piece);
    }
}

static struct tg_hold_record choose_record(struct choice *choice)
{
    struct tg_hold_record record = {.window = choice_u64(choice),
                                    .unit_count = 1 + (uint32_t)choice_below(choice, 64)};
    record.deadline_ms = (int64_t)(choice_u64(choice) >> 1);
    choice_bytes(choice, record.place, sizeof(record.place));
    choice_bytes(choice, record.digest, sizeof(record.digest));
    uint32_t unit = (uint32_t)choice_below(choice, 1000);
    uint32_t rotation = (uint32_t)choice_below(choice, 64);
    for (uint32_t i = 0; i < record.unit_count; i++) {
        unit += 1 + (uint32_t)choice_below(choice, 9000);
        record.units[i] = (struct tg_unit_ref){(uint32_t)choice_below(choice, 32), unit};
        record.slots[i] = (i + rotation) % 64;
    }
    choose_user(choice, &record);
    return record;
}

static void property(struct choice *choice)
{
    struct tg_hold_record record = choose_record(choice);
    struct tg_hold_record back = {0};
    char text[TG_HOLD_RECORD_BYTES];
    char again[TG_HOLD_RECORD_BYTES];
    size_t length = tg_hold_record_format(&record, text);
    HOLDS(length < sizeof(text));
    HOLDS(tg_hold_record_parse(text, length, &back) == 0);
    HOLDS(memcmp(&back, &record, sizeof(record)) == 0);

    text[choice_below(choice, length)] ^= (char)(1 + choice_below(choice, 255));
    memset(&back, 0, sizeof(back));
    if (tg_hold_record_parse(text, length, &back) == 0) {
        HOLDS(memcmp(&back, &record, sizeof(record)) != 0);
        HOLDS(tg_hold_record_format(&back, again) == length && memcmp(again, text, length) == 0);
    }
    HOLDS(tg_hold_record_parse(text, choice_below(choice, 48), &back) !=
          0); /* two tags alone are longer */
}

PROPERTY_MAIN(property, 20000, 1024)
