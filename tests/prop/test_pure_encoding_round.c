/* SPDX-License-Identifier: Apache-2.0
 * Encodings: what is written reads back; what reads, writes itself again. Any bytes are either
 * refused or canonical. */
#include "tests/prop/choice.h"

#include "lib/pure/clock.h"
#include "lib/pure/number.h"
#include "lib/pure/text.h"

enum { DATA_BYTES = 96, TEXT_BYTES = 2 * DATA_BYTES + 1 };

static void written_bytes_read_back(struct choice *choice)
{
    uint8_t data[DATA_BYTES];
    uint8_t back[DATA_BYTES];
    char text[TEXT_BYTES];
    size_t count = 0;
    size_t length = choice_below(choice, DATA_BYTES + 1);
    choice_bytes(choice, data, length);
    size_t text_length = tg_base64url_encode(data, length, text);
    HOLDS(text_length == strlen(text) && text_length == TG_BASE64URL_LENGTH(length));
    HOLDS(tg_base64url_decode(text, text_length, back, length, &count) == 0 && count == length);
    HOLDS(memcmp(back, data, length) == 0);
    HOLDS(length == 0 || tg_base64url_decode(text, text_length, back, length - 1, &count) != 0);
    tg_hex_encode(data, length, text);
    HOLDS(tg_hex_decode(text, strlen(text), back, length) == 0 && memcmp(back, data, length) == 0);
}

static void ids_read_back(struct choice *choice)
{
    uint8_t id[16];
    uint8_t back[16];
    char text[TG_BASE32_ID_LENGTH + 1];
    char again[TG_BASE32_ID_LENGTH + 1];
    choice_bytes(choice, id, sizeof(id));
    tg_base32_id_encode(id, text);
    HOLDS(tg_base32_id_decode(text, TG_BASE32_ID_LENGTH, back) == 0 && memcmp(id, back, 16) == 0);
    text[choice_below(choice, TG_BASE32_ID_LENGTH)] = (char)choice_byte(choice);
    if (tg_base32_id_decode(text, TG_BASE32_ID_LENGTH, back) == 0) {
        tg_base32_id_encode(back, again);
        HOLDS(memcmp(again, text, TG_BASE32_ID_LENGTH) == 0);
    }
}

static void any_text_is_canonical_or_refused(struct choice *choice)
{
    static const char alphabet[] = "AQgw048-_zZ=+/. 9e";
    char text[DATA_BYTES];
    uint8_t data[DATA_BYTES];
    char again[TEXT_BYTES];
    size_t count = 0;
    uint64_t number = 0;
    size_t length = choice_below(choice, 24);
    for (size_t i = 0; i < length; i++) {
        text[i] = alphabet[choice_below(choice, sizeof(alphabet) - 1)];
    }
    if (tg_base64url_decode(text, length, data, sizeof(data), &count) == 0) {
        HOLDS(tg_base64url_encode(data, count, again) == length &&
              memcmp(again, text, length) == 0);
    }
    if (tg_unsigned_parse(text, length, UINT64_MAX, &number) == 0) {
        HOLDS(tg_unsigned_format(number, again) == length && memcmp(again, text, length) == 0);
    }
}

static void times_read_back(struct choice *choice)
{
    char text[TG_RFC3339_BYTES];
    struct tg_wall back = {-1};
    struct tg_wall wall = {(int64_t)choice_below(choice, UINT64_C(253402300800000))};
    HOLDS(tg_wall_format(wall, text) == 0 && strlen(text) == TG_RFC3339_BYTES - 1);
    HOLDS(tg_wall_parse(text, &back) == 0 && back.ms == wall.ms);
}

static void property(struct choice *choice)
{
    written_bytes_read_back(choice);
    ids_read_back(choice);
    any_text_is_canonical_or_refused(choice);
    times_read_back(choice);
}

PROPERTY_MAIN(property, 50000, 512)
