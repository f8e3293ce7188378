/* SPDX-License-Identifier: Apache-2.0
 * The expected values were computed with another implementation (BLAKE2b of Python's hashlib over
 * 8-byte little-endian lengths and bytes): they pin the wire form that every daemon and every
 * stored token relies on. */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/identity.h"

#include <string.h>

static const uint8_t key[TG_KEY_BYTES] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                          11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                          22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

static struct tg_holder holder_of(enum tg_holder_kind kind, const char *bytes, size_t length)
{
    struct tg_holder holder = {.kind = kind, .length = (uint8_t)length};
    memcpy(holder.bytes, bytes, length);
    return holder;
}

static void known_identities(void **state)
{
    struct tg_holder holder = holder_of(TG_HOLDER_USER, "usr_1", 5);
    uint8_t place[TG_PLACE_BYTES];
    char text[2 * TG_PLACE_BYTES + 1];
    char entrant[TG_ENTRANT_LENGTH + 1];
    char reservation[TG_RESERVATION_ID_LENGTH + 1];
    char jti[TG_JTI_LENGTH + 1];
    tg_place("demo", 1, &holder, 42, place);
    tg_hex_encode(place, sizeof(place), text);
    assert_string_equal(text, "807cb5ac3e50db5621f440aebbebe74f");
    tg_entrant(key, "demo", 1, &holder, entrant);
    assert_string_equal(entrant, "4SGCQK0777DMJ5G6QHT2D2F6SQ");
    tg_reservation_id(key, "demo", 1, holder.bytes, holder.length, "key-1", reservation);
    assert_string_equal(reservation, "res_5C23E29DKF4BD2QBSX7ZVY4BPP");
    assert_true(tg_reservation_id_valid(reservation, strlen(reservation)));
    tg_jti(key, "demo", 1, place, holder.bytes, holder.length, 29000000, jti);
    assert_string_equal(jti, "AAAAAAG6gUCc3RtJDnLtNug9L25LiOrw");
}

static void expect_other_reservation(const char *sale, const char *user, size_t user_length,
                                     const char *idempotency)
{
    char base[TG_RESERVATION_ID_LENGTH + 1];
    char other[TG_RESERVATION_ID_LENGTH + 1];
    tg_reservation_id(key, "ab", 1, (const uint8_t *)"cd", 2, "ef", base);
    tg_reservation_id(key, sale, 1, (const uint8_t *)user, user_length, idempotency, other);
    assert_string_not_equal(base, other);
}

static void case_27_no_field_slides_into_its_neighbour(void **state)
{
    expect_other_reservation("abc", "d", 1, "ef");
    expect_other_reservation("a", "bcd", 3, "ef");
    expect_other_reservation("ab", "c", 1, "def");
    expect_other_reservation("ab", "cde", 3, "f");
    expect_other_reservation("ab", "cdef", 4, "");

    uint8_t place[2][TG_PLACE_BYTES];
    struct tg_holder one = holder_of(TG_HOLDER_USER, "1", 1);
    struct tg_holder eleven = holder_of(TG_HOLDER_USER, "11", 2);
    tg_place("sale1", 1, &one, 1, place[0]);
    tg_place("sale", 1, &eleven, 1, place[1]);
    assert_memory_not_equal(place[0], place[1], TG_PLACE_BYTES);
}

static void every_input_counts(void **state)
{
    struct tg_holder user = holder_of(TG_HOLDER_USER, "0123456789abcdef", 16);
    struct tg_holder visitor = holder_of(TG_HOLDER_VISITOR, "0123456789abcdef", 16);
    struct tg_holder other = holder_of(TG_HOLDER_USER, "0123456789abcdeF", 16);
    uint8_t place[6][TG_PLACE_BYTES];
    tg_place("demo", 1, &user, 7, place[0]);
    tg_place("Demo", 1, &user, 7, place[1]);
    tg_place("demo", 2, &user, 7, place[2]);
    tg_place("demo", 1, &visitor, 7, place[3]);
    tg_place("demo", 1, &other, 7, place[4]);
    tg_place("demo", 1, &user, 8, place[5]);
    for (size_t i = 0; i < 6; i++) {
        for (size_t j = 0; j < i; j++) {
            assert_memory_not_equal(place[i], place[j], TG_PLACE_BYTES);
        }
    }
    uint8_t other_key[TG_KEY_BYTES];
    memcpy(other_key, key, sizeof(other_key));
    other_key[31] ^= 1;
    char jti[3][TG_JTI_LENGTH + 1];
    tg_jti(key, "demo", 1, place[0], user.bytes, 16, 5, jti[0]);
    tg_jti(other_key, "demo", 1, place[0], user.bytes, 16, 5, jti[1]);
    tg_jti(key, "demo", 1, place[0], user.bytes, 16, 6, jti[2]);
    assert_string_not_equal(jti[0] + 11, jti[1] + 11);
    assert_string_not_equal(jti[0] + 11, jti[2] + 11);
    assert_memory_equal(jti[0], jti[1], 10); /* the window leads in the open */
}

static void case_33_users_are_compared_as_bytes(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
    } users[] = {{"\xc3\xa9", 2}, {"e\xcc\x81", 3}, {"ab", 2},     {"ab\0evil", 7}, {"Usr_1", 5},
                 {"usr_1", 5},    {" usr_1", 6},    {"usr_1 ", 6}, {"\xc4\xb0", 2}, {"i", 1}};
    char ids[COUNT_OF(users)][TG_RESERVATION_ID_LENGTH + 1];
    for (size_t i = 0; i < COUNT_OF(users); i++) {
        tg_reservation_id(key, "demo", 1, (const uint8_t *)users[i].bytes, users[i].length, "k",
                          ids[i]);
        for (size_t j = 0; j < i; j++) {
            assert_string_not_equal(ids[i], ids[j]);
        }
    }
}

/* Two purposes with the same fields never share a tag: the domain is part of it. */
static void domains_are_apart(void **state)
{
    uint8_t tags[3][32];
    struct tg_mac mac;
    tg_mac_begin(&mac, key, "one");
    tg_mac_text(&mac, "x");
    tg_mac_end(&mac, tags[0], 32);
    tg_mac_begin(&mac, key, "two");
    tg_mac_text(&mac, "x");
    tg_mac_end(&mac, tags[1], 32);
    tg_mac_begin(&mac, NULL, "one");
    tg_mac_text(&mac, "x");
    tg_mac_end(&mac, tags[2], 32);
    assert_memory_not_equal(tags[0], tags[1], 32);
    assert_memory_not_equal(tags[0], tags[2], 32);
}

static void constant_time_equality_is_equality(void **state)
{
    assert_true(tg_equal_constant("abc", "abc", 3));
    assert_false(tg_equal_constant("abc", "abd", 3));
    assert_false(tg_equal_constant("abc", "bbc", 3));
    assert_true(tg_equal_constant("abc", "abd", 2));
    assert_true(tg_equal_constant("", "", 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_identities),
        cmocka_unit_test(case_27_no_field_slides_into_its_neighbour),
        cmocka_unit_test(every_input_counts),
        cmocka_unit_test(case_33_users_are_compared_as_bytes),
        cmocka_unit_test(domains_are_apart),
        cmocka_unit_test(constant_time_equality_is_equality),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
