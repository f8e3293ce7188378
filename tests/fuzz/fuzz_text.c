/* SPDX-License-Identifier: Apache-2.0
 * Integers, durations, times, base64url, base32, hex and UTF-8: whatever is accepted has exactly
 * one spelling, or stands for exactly one value; nothing is read as something near. */
#include "tests/fuzz/fuzz.h"

#include "lib/pure/clock.h"
#include "lib/pure/number.h"
#include "lib/pure/text.h"

enum { TEXT_BYTES = 256 };

static void integers(const char *text, size_t length, struct choice *choice)
{
    char again[32];
    uint64_t value = 0, max = choice_u64(choice);
    int64_t number = 0;
    if (tg_unsigned_parse(text, length, max, &value) == 0) {
        HOLDS(value <= max && tg_unsigned_format(value, again) == length);
        HOLDS(memcmp(again, text, length) == 0);
    }
    if (tg_integer_parse(text, length, INT64_MIN, INT64_MAX, &number) == 0) {
        int written = snprintf(again, sizeof(again), "%lld", (long long)number);
        HOLDS((size_t)written == length && memcmp(again, text, length) == 0);
    }
    uint64_t price = choice_u64(choice), quantity = choice_u64(choice), total = 0;
    if (tg_money_add(value, price, quantity, &total) == 0) {
        __extension__ unsigned __int128 exact = (unsigned __int128)price * quantity + value;
        HOLDS(exact == total);
    }
}

static void encodings(const char *text, size_t length)
{
    char again[2 * TEXT_BYTES + 1];
    uint8_t data[TEXT_BYTES], id[16];
    size_t count = 0;
    if (tg_base64url_decode(text, length, data, sizeof(data), &count) == 0) {
        HOLDS(tg_base64url_encode(data, count, again) == length && strlen(again) == length);
        HOLDS(memcmp(again, text, length) == 0);
    }
    if (tg_base32_id_decode(text, length, id) == 0) {
        tg_base32_id_encode(id, again);
        HOLDS(length == TG_BASE32_ID_LENGTH && memcmp(again, text, length) == 0);
    }
    if (tg_hex_decode(text, length, data, length / 2) == 0) {
        tg_hex_encode(data, length / 2, again);
        HOLDS(strlen(again) == length && memcmp(again, text, length) == 0);
    }
}

/* RFC 3629 decoded by its definition: value from the bits, then shortest form, range, surrogates.
 */
static bool utf8_by_definition(const uint8_t *data, size_t length)
{
    static const uint32_t smallest[] = {0, 0x80, 0x800, 0x10000};
    for (size_t i = 0; i < length;) {
        size_t more = data[i] < 0x80 ? 0 : data[i] < 0xe0 ? 1 : data[i] < 0xf0 ? 2 : 3;
        uint32_t value = more == 0 ? data[i] : data[i] & (0x3fU >> more);
        if ((data[i] >= 0x80 && data[i] < 0xc0) || data[i] >= 0xf8 || i + more >= length) {
            return false;
        }
        for (size_t j = 1; j <= more; j++) {
            if ((data[i + j] & 0xc0) != 0x80) {
                return false;
            }
            value = value << 6 | (data[i + j] & 0x3fU);
        }
        if (value < smallest[more] || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) {
            return false;
        }
        i += more + 1;
    }
    return true;
}

static void names(const char *text, size_t length)
{
    const uint8_t *data = (const uint8_t *)text;
    uint8_t id[16];
    HOLDS(tg_utf8_valid(data, length) == utf8_by_definition(data, length));
    if (tg_user_valid(data, length)) {
        HOLDS(length >= 1 && length <= 128 && utf8_by_definition(data, length));
        for (size_t i = 0; i < length; i++) {
            HOLDS(data[i] >= 0x20 && data[i] != 0x7f);
            HOLDS(data[i] != 0xc2 || data[i + 1] >= 0xa0);
        }
    }
    if (tg_reservation_id_valid(text, length)) {
        HOLDS(length == TG_RESERVATION_ID_LENGTH && memcmp(text, "res_", 4) == 0);
        HOLDS(tg_base32_id_decode(text + 4, length - 4, id) == 0);
    }
    if (tg_sale_name_valid(text, length)) {
        HOLDS(length >= 1 && length <= 64 && strcspn(text, " .*>/{}:%\"\\\r\n") == length);
    }
    if (tg_idempotency_key_valid(text, length)) {
        HOLDS(length >= 1 && length <= 128 && strcspn(text, "\" \r\n") == length);
    }
}

/* Takes C strings: the text ends at its first NUL. */
static void times(const char *text)
{
    char written[TG_RFC3339_BYTES];
    struct tg_wall wall = {-1}, back = {-1};
    int64_t ms = -1;
    if (tg_wall_parse(text, &wall) == 0 && tg_wall_format(wall, written) == 0) {
        HOLDS(strlen(written) == TG_RFC3339_BYTES - 1);
        HOLDS(tg_wall_parse(written, &back) == 0 && back.ms == wall.ms);
    }
    if (tg_duration_parse(text, &ms) == 0) {
        char again[40];
        size_t digits = strspn(text, "0123456789");
        int64_t unit = strcmp(text + digits, "ms") == 0  ? 1
                       : strcmp(text + digits, "s") == 0 ? 1000
                       : strcmp(text + digits, "m") == 0 ? 60000
                                                         : 3600000;
        HOLDS(ms >= 0 && ms % unit == 0 && digits > 0 && strlen(text) - digits <= 2);
        (void)snprintf(again, sizeof(again), "%lld%s", (long long)(ms / unit), text + digits);
        HOLDS(strcmp(again, text) == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct choice choice = {bytes, size, 0};
    char text[TEXT_BYTES] = {0};
    size_t length = choice_below(&choice, TEXT_BYTES - 1);
    length = size - choice.at < length ? size - choice.at : length;
    choice_bytes(&choice, (uint8_t *)text, length);
    integers(text, length, &choice);
    encodings(text, length);
    names(text, length);
    times(text);
    return 0;
}
