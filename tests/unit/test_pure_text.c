/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/limit.h"
#include "lib/pure/text.h"

#include <string.h>

static void base64url_matches_rfc_4648(void **state)
{
    static const struct {
        const char *data;
        const char *text;
    } known[] = {
        {"", ""},           {"f", "Zg"},          {"fo", "Zm8"},          {"foo", "Zm9v"},
        {"foob", "Zm9vYg"}, {"fooba", "Zm9vYmE"}, {"foobar", "Zm9vYmFy"}, {"\xfb\xff", "-_8"}};
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        char text[16];
        uint8_t back[16];
        size_t length = strlen(known[i].data);
        size_t back_length = 99;
        assert_int_equal(tg_base64url_encode((const uint8_t *)known[i].data, length, text),
                         strlen(known[i].text));
        assert_string_equal(text, known[i].text);
        assert_int_equal(TG_BASE64URL_LENGTH(length), strlen(text));
        assert_int_equal(tg_base64url_decode(text, strlen(text), back, length, &back_length), 0);
        assert_int_equal(back_length, length);
        assert_memory_equal(back, known[i].data, length);
    }
}

static void base64url_has_one_spelling(void **state)
{
    static const char *const bad[] = {"Zg==", "Zh",    "Zm9",   "Zm8=",   "Zm+v", "Zm/v",
                                      "Z",    "Zm9vY", "Zm 9v", "Zm9v\n", "Zm.v"};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        uint8_t data[16];
        size_t length = 99;
        assert_int_equal(tg_base64url_decode(bad[i], strlen(bad[i]), data, sizeof(data), &length),
                         TG_ERR_MALFORMED);
        assert_int_equal(length, 99);
    }
    uint8_t data[3];
    size_t length = 99;
    assert_int_equal(tg_base64url_decode("Zm9vYg", 6, data, 3, &length), TG_ERR_MALFORMED);
    assert_int_equal(tg_base64url_decode("Zm9\0", 4, data, 3, &length), TG_ERR_MALFORMED);
    assert_int_equal(length, 99);
}

/* Of all 2-character and 3-character texts exactly one per byte string decodes, and it re-encodes
 * to itself. */
static void base64url_decodes_exactly_what_it_encodes(void **state)
{
    unsigned pairs = 0;
    unsigned triples = 0;
    for (unsigned code = 0; code < 1U << 24; code++) {
        const char text[3] = {(char)(code >> 16), (char)(code >> 8), (char)code};
        uint8_t data[2];
        char again[4];
        size_t length = 0;
        if (code < 1U << 16 && tg_base64url_decode(text + 1, 2, data, sizeof(data), &length) == 0) {
            pairs++;
            assert_int_equal(tg_base64url_encode(data, length, again), 2);
            assert_memory_equal(again, text + 1, 2);
        }
        if (tg_base64url_decode(text, 3, data, sizeof(data), &length) == 0) {
            triples++;
            assert_int_equal(tg_base64url_encode(data, length, again), 3);
            assert_memory_equal(again, text, 3);
        }
    }
    assert_int_equal(pairs, 256);
    assert_int_equal(triples, 65536);
}

static void base32_ids_have_one_spelling(void **state)
{
    uint8_t id[16];
    uint8_t back[16];
    char text[TG_BASE32_ID_LENGTH + 1];
    memset(id, 0xff, sizeof(id));
    tg_base32_id_encode(id, text);
    assert_string_equal(text, "7ZZZZZZZZZZZZZZZZZZZZZZZZZ");
    assert_int_equal(tg_base32_id_decode(text, 26, back), 0);
    assert_memory_equal(back, id, 16);
    memset(id, 0, sizeof(id));
    tg_base32_id_encode(id, text);
    assert_string_equal(text, "00000000000000000000000000");

    static const char *const bad[] = {"8ZZZZZZZZZZZZZZZZZZZZZZZZZ", "7zzzzzzzzzzzzzzzzzzzzzzzzz",
                                      "0000000000000000000000000O", "0000000000000000000000000I",
                                      "0000000000000000000000000L", "0000000000000000000000000U",
                                      "0000000000000000000000000-", "0000000000000000000000000 "};
    memset(back, 99, sizeof(back));
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(tg_base32_id_decode(bad[i], 26, back), TG_ERR_MALFORMED);
        assert_int_equal(back[0], 99);
    }
    assert_int_equal(tg_base32_id_decode("0000000000000000000000000", 25, back), TG_ERR_MALFORMED);
    assert_int_equal(tg_base32_id_decode("000000000000000000000000000", 27, back),
                     TG_ERR_MALFORMED);
    assert_int_equal(tg_base32_id_decode("0000000000000000000000000\0", 26, back),
                     TG_ERR_MALFORMED);
}

static void hex_is_lower_case_and_whole(void **state)
{
    static const uint8_t data[4] = {0x00, 0x9f, 0xa0, 0xff};
    uint8_t back[4] = {0};
    char text[9];
    tg_hex_encode(data, sizeof(data), text);
    assert_string_equal(text, "009fa0ff");
    assert_int_equal(tg_hex_decode(text, 8, back, 4), 0);
    assert_memory_equal(back, data, 4);
    assert_int_equal(tg_hex_decode("009FA0FF", 8, back, 4), TG_ERR_MALFORMED);
    assert_int_equal(tg_hex_decode("009fa0f", 7, back, 4), TG_ERR_MALFORMED);
    assert_int_equal(tg_hex_decode("009fa0ffaa", 10, back, 4), TG_ERR_MALFORMED);
    assert_int_equal(tg_hex_decode("009fa0fg", 8, back, 4), TG_ERR_MALFORMED);
    assert_int_equal(tg_hex_decode("0x9fa0ff", 8, back, 4), TG_ERR_MALFORMED);
}

/* Every string of 1, 2 and 3 bytes: the number of valid ones follows from the number of code points
 * per length. */
static void utf8_counts_are_those_of_unicode(void **state)
{
    const uint64_t ones = 128;
    const uint64_t twos = 0x800 - 0x80;
    const uint64_t threes = 0x10000 - 0x800 - 0x800; /* without surrogates */
    uint64_t valid[4] = {0};
    for (uint32_t code = 0; code < 1U << 24; code++) {
        const uint8_t bytes[3] = {(uint8_t)(code >> 16), (uint8_t)(code >> 8), (uint8_t)code};
        valid[1] += code < 1U << 8 && tg_utf8_valid(bytes + 2, 1);
        valid[2] += code < 1U << 16 && tg_utf8_valid(bytes + 1, 2);
        valid[3] += tg_utf8_valid(bytes, 3);
    }
    assert_true(tg_utf8_valid(NULL, 0));
    assert_true(valid[1] == ones);
    assert_true(valid[2] == ones * ones + twos);
    assert_true(valid[3] == ones * ones * ones + 2 * ones * twos + threes);
}

static size_t encode(uint32_t point, uint8_t out_bytes[4])
{
    if (point < 0x80) {
        out_bytes[0] = (uint8_t)point;
        return 1;
    }
    size_t count = point < 0x800 ? 2 : point < 0x10000 ? 3 : 4;
    static const uint8_t lead[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = count - 1; i > 0; i--) {
        out_bytes[i] = (uint8_t)(0x80 | (point & 0x3f));
        point >>= 6;
    }
    out_bytes[0] = (uint8_t)(lead[count] | point);
    return count;
}

static void utf8_code_points_are_valid_and_surrogates_are_not(void **state)
{
    for (uint32_t point = 0; point < 0x200000; point++) {
        uint8_t bytes[4];
        size_t length = encode(point, bytes);
        bool surrogate = point >= 0xd800 && point < 0xe000;
        assert_int_equal(tg_utf8_valid(bytes, length), !surrogate && point <= 0x10ffff);
        for (size_t cut = 1; cut < length; cut++) {
            assert_false(tg_utf8_valid(bytes, cut));
        }
    }
}

/* Four bytes with every lead and second byte; third and fourth at the edges of a continuation byte.
 */
static void utf8_four_bytes_at_their_edges(void **state)
{
    static const uint8_t edges[] = {0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
    for (unsigned code = 0; code < 16U * 256 * 36; code++) {
        uint8_t bytes[4] = {(uint8_t)(0xf0 + code / 36 / 256), (uint8_t)(code / 36),
                            edges[code % 6], edges[code / 6 % 6]};
        uint32_t point = (uint32_t)(bytes[0] & 7) << 18 | (uint32_t)(bytes[1] & 0x3f) << 12 |
                         (uint32_t)(bytes[2] & 0x3f) << 6 | (bytes[3] & 0x3f);
        uint8_t canonical[4];
        size_t length = encode(point, canonical);
        bool expected = point <= 0x10ffff && length == 4 && memcmp(canonical, bytes, 4) == 0;
        assert_int_equal(tg_utf8_valid(bytes, 4), expected);
    }
}

static bool user(const char *text, size_t length)
{
    return tg_user_valid((const uint8_t *)text, length);
}

static void case_33_users_are_bytes_within_bounds(void **state)
{
    char longest[TG_MAX_USER_BYTES + 1];
    memset(longest, 'a', sizeof(longest));
    assert_true(user(longest, TG_MAX_USER_BYTES));
    assert_false(user(longest, TG_MAX_USER_BYTES + 1));
    assert_false(user("", 0));
    assert_true(user("\xc3\xa9", 2));          /* é composed */
    assert_true(user("e\xcc\x81", 3));         /* é decomposed: another user */
    assert_true(user(" a b ", 5));             /* spaces count */
    assert_false(user("ab\0evil", 7));         /* NUL */
    assert_false(user("\xc0\xaf", 2));         /* overlong / */
    assert_false(user("\xe0\x80\xaf", 3));     /* overlong */
    assert_false(user("\xed\xa0\x80", 3));     /* lone surrogate */
    assert_false(user("\xf4\x90\x80\x80", 4)); /* beyond U+10FFFF */
    assert_false(user("\xff", 1));
    assert_false(user("a\xc3", 2)); /* cut */
    for (unsigned control = 0; control < 0x20; control++) {
        const char text[2] = {'a', (char)control};
        assert_false(user(text, 2));
    }
    assert_false(user("a\x7f", 2));
    for (unsigned c1 = 0x80; c1 < 0xa0; c1++) {
        const char text[3] = {'a', (char)0xc2, (char)c1};
        assert_false(user(text, 3));
    }
    assert_true(user("a\xc2\xa0", 3)); /* no-break space is no control character */
    assert_true(user("\xf0\x9f\x8e\x9f", 4));
}

static void names_and_keys_keep_their_alphabet(void **state)
{
    char longest[TG_MAX_IDEMPOTENCY_KEY_BYTES + 1];
    memset(longest, 'x', sizeof(longest));
    assert_true(tg_sale_name_valid("sku_991-B", 9));
    assert_true(tg_sale_name_valid(longest, TG_MAX_SALE_NAME_BYTES));
    assert_false(tg_sale_name_valid(longest, TG_MAX_SALE_NAME_BYTES + 1));
    assert_false(tg_sale_name_valid("", 0));
    assert_true(tg_idempotency_key_valid(longest, TG_MAX_IDEMPOTENCY_KEY_BYTES));
    assert_false(tg_idempotency_key_valid(longest, TG_MAX_IDEMPOTENCY_KEY_BYTES + 1));
    assert_false(tg_idempotency_key_valid("", 0));
    for (unsigned byte = 0; byte < 256; byte++) {
        const char text[1] = {(char)byte};
        bool name = (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
                    (byte >= 'a' && byte <= 'z') || byte == '_' || byte == '-';
        assert_int_equal(tg_sale_name_valid(text, 1), name);
        assert_int_equal(tg_idempotency_key_valid(text, 1),
                         byte > 0x20 && byte < 0x7f && byte != '"');
    }
}

static void reservation_ids_are_canonical(void **state)
{
    static const char good[] = "res_5C23E29DKF4BD2QBSX7ZVY4BPP";
    assert_true(tg_reservation_id_valid(good, 30));
    assert_false(tg_reservation_id_valid(good, 29));
    assert_false(tg_reservation_id_valid("res_5C23E29DKF4BD2QBSX7ZVY4BPPP", 31));
    assert_false(tg_reservation_id_valid("RES_5C23E29DKF4BD2QBSX7ZVY4BPP", 30));
    assert_false(tg_reservation_id_valid("res_5c23E29DKF4BD2QBSX7ZVY4BPP", 30));
    assert_false(tg_reservation_id_valid("res_8C23E29DKF4BD2QBSX7ZVY4BPP", 30));
    assert_false(tg_reservation_id_valid("res-5C23E29DKF4BD2QBSX7ZVY4BPP", 30));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base64url_matches_rfc_4648),
        cmocka_unit_test(base64url_has_one_spelling),
        cmocka_unit_test(base64url_decodes_exactly_what_it_encodes),
        cmocka_unit_test(base32_ids_have_one_spelling),
        cmocka_unit_test(hex_is_lower_case_and_whole),
        cmocka_unit_test(utf8_counts_are_those_of_unicode),
        cmocka_unit_test(utf8_code_points_are_valid_and_surrogates_are_not),
        cmocka_unit_test(utf8_four_bytes_at_their_edges),
        cmocka_unit_test(case_33_users_are_bytes_within_bounds),
        cmocka_unit_test(names_and_keys_keep_their_alphabet),
        cmocka_unit_test(reservation_ids_are_canonical),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
