/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/ticket.h"

#include <sodium.h>
#include <string.h>

static const uint8_t nonce[TG_TICKET_NONCE_BYTES] = {9, 8, 7};

static const struct tg_key_ring ring = {
    .keys = {{.id = 2, .key = {2, 2}}, {.id = 1, .key = {1, 1}}, {.id = 3, .key = {3, 3}}}};

static struct tg_ticket sample(void)
{
    return (struct tg_ticket){.sale = "demo",
                              .generation = 3,
                              .holder = {.kind = TG_HOLDER_USER, .length = 5, .bytes = "usr_1"},
                              .arrived = {1796119200123},
                              .index = 4711,
                              .early = true,
                              .lane = TG_LANE_SLOW};
}

static void expect_same(const struct tg_ticket *left, const struct tg_ticket *right)
{
    assert_string_equal(left->sale, right->sale);
    assert_true(left->generation == right->generation && left->index == right->index);
    assert_int_equal(left->holder.kind, right->holder.kind);
    assert_int_equal(left->holder.length, right->holder.length);
    assert_memory_equal(left->holder.bytes, right->holder.bytes, left->holder.length);
    assert_true(left->arrived.ms == right->arrived.ms);
    assert_int_equal(left->early, right->early);
    assert_int_equal(left->proved, right->proved);
    assert_int_equal(left->lane, right->lane);
}

static void a_ticket_opens_as_it_was_sealed(void **state)
{
    struct tg_ticket ticket = sample();
    struct tg_ticket back = {0};
    char text[TG_MAX_TICKET_BYTES + 1];
    size_t length = tg_ticket_seal(&ring, &ticket, nonce, text);
    assert_int_equal(length, strlen(text));
    assert_int_equal(tg_ticket_open(&ring, text, length, &back), 0);
    expect_same(&ticket, &back);
}

static void the_longest_ticket_fits(void **state)
{
    struct tg_ticket ticket = sample();
    struct tg_ticket back = {0};
    char text[TG_MAX_TICKET_BYTES + 1];
    memset(ticket.sale, 's', TG_MAX_SALE_NAME_BYTES);
    memset(ticket.holder.bytes, 'u', TG_MAX_USER_BYTES);
    ticket.holder.length = TG_MAX_USER_BYTES;
    ticket.generation = UINT64_MAX;
    ticket.index = UINT64_MAX;
    ticket.arrived.ms = INT64_MAX;
    size_t length = tg_ticket_seal(&ring, &ticket, nonce, text);
    assert_true(length <= TG_MAX_TICKET_BYTES);
    assert_int_equal(tg_ticket_open(&ring, text, length, &back), 0);
    expect_same(&ticket, &back);
}

static void refused(const struct tg_key_ring *keys, const char *text, size_t length)
{
    struct tg_ticket ticket = {.index = 99};
    int error = tg_ticket_open(keys, text, length, &ticket);
    assert_true(error == TG_ERR_MALFORMED || error == TG_ERR_FORGED);
    assert_true(ticket.index == 99);
}

static void every_flipped_bit_is_refused(void **state)
{
    struct tg_ticket ticket = sample();
    char text[TG_MAX_TICKET_BYTES + 1];
    size_t length = tg_ticket_seal(&ring, &ticket, nonce, text);
    for (size_t bit = 0; bit < length * 8; bit++) {
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
        refused(&ring, text, length);
        text[bit / 8] = (char)(text[bit / 8] ^ 1 << bit % 8);
    }
    uint8_t bytes[TG_MAX_TICKET_BYTES];
    size_t count = 0;
    assert_int_equal(tg_base64url_decode(text, length, bytes, sizeof(bytes), &count), 0);
    for (size_t bit = 0; bit < count * 8; bit++) {
        char flipped[TG_MAX_TICKET_BYTES + 1];
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
        refused(&ring, flipped, tg_base64url_encode(bytes, count, flipped));
        bytes[bit / 8] ^= (uint8_t)(1U << bit % 8);
    }
}

static void every_other_length_is_refused(void **state)
{
    struct tg_ticket ticket = sample();
    char text[2 * TG_MAX_TICKET_BYTES];
    size_t length = tg_ticket_seal(&ring, &ticket, nonce, text);
    for (size_t cut = 0; cut < length; cut++) {
        refused(&ring, text, cut);
        refused(&ring, text + length - cut, cut);
    }
    for (size_t longer = length + 1; longer < sizeof(text); longer++) {
        text[longer - 1] = 'A';
        refused(&ring, text, longer);
    }
}

/* Two of three lengths leave unused bits in the last character: each other spelling of them is
 * refused. */
static void respelled_trailing_bits_are_refused(void **state)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned with_loose_bits = 0;
    for (uint8_t user_length = 5; user_length < 8; user_length++) {
        struct tg_ticket ticket = sample();
        char text[TG_MAX_TICKET_BYTES + 1];
        memset(ticket.holder.bytes, 'u', user_length);
        ticket.holder.length = user_length;
        size_t length = tg_ticket_seal(&ring, &ticket, nonce, text);
        with_loose_bits += length % 4 != 0;
        char last = text[length - 1];
        for (const char *digit = digits; *digit != '\0'; digit++) {
            if (*digit != last) {
                text[length - 1] = *digit;
                refused(&ring, text, length);
            }
        }
    }
    assert_int_equal(with_loose_bits, 2);
}

static void rotation_accepts_three_keys_and_no_other(void **state)
{
    struct tg_ticket ticket = sample();
    struct tg_ticket back = {0};
    char text[TG_MAX_TICKET_BYTES + 1];
    for (size_t i = 0; i < 3; i++) {
        struct tg_key_ring sealing = {0};
        sealing.keys[0].id = ring.keys[i].id;
        memcpy(sealing.keys[0].key, ring.keys[i].key, TG_KEY_BYTES);
        size_t length = tg_ticket_seal(&sealing, &ticket, nonce, text);
        assert_int_equal(tg_ticket_open(&ring, text, length, &back), 0);
        sealing.keys[0].id = 4; /* the right key under an unknown id */
        length = tg_ticket_seal(&sealing, &ticket, nonce, text);
        assert_int_equal(tg_ticket_open(&ring, text, length, &back), TG_ERR_FORGED);
        sealing.keys[0].id = ring.keys[i].id; /* another key under a known id */
        sealing.keys[0].key[31] ^= 1;
        length = tg_ticket_seal(&sealing, &ticket, nonce, text);
        assert_int_equal(tg_ticket_open(&ring, text, length, &back), TG_ERR_FORGED);
    }
}

/* Remembering what a key and a prefix give changes no byte, and a forged ticket is remembered
 * nowhere. */
static void remembered_subkeys_change_no_byte(void **state)
{
    static struct tg_subkeys subkeys;
    struct tg_key_ring remembering = ring;
    struct tg_ticket ticket = sample(), back = {0};
    char text[TG_MAX_TICKET_BYTES + 1], plain[TG_MAX_TICKET_BYTES + 1];
    remembering.subkeys = &subkeys;
    for (uint8_t i = 0; i < 200; i++) { /* more prefixes than slots */
        const uint8_t number = i / 2;
        uint8_t used[TG_TICKET_NONCE_BYTES] = {number, [15] = (uint8_t)(number / 3), [23] = i};
        size_t length = tg_ticket_seal(&remembering, &ticket, used, text);
        assert_int_equal(tg_ticket_seal(&ring, &ticket, used, plain), length);
        assert_string_equal(text, plain);
        assert_int_equal(tg_ticket_open(&remembering, text, length, &back), 0);
        expect_same(&ticket, &back);
    }
    struct tg_subkeys before = subkeys;
    struct tg_key_ring other = {.keys = {{.id = 2, .key = {7}}}};
    const uint8_t foreign[TG_TICKET_NONCE_BYTES] = {200, 1};
    size_t length = tg_ticket_seal(&other, &ticket, foreign, text);
    assert_int_equal(tg_ticket_open(&remembering, text, length, &back), TG_ERR_FORGED);
    assert_memory_equal(&before, &subkeys, sizeof(before));
}

/* An absent slot of the ring has id 0: a ticket that names key 0 must not be opened with its zero
 * key. */
static void key_id_zero_is_never_a_key(void **state)
{
    struct tg_ticket ticket = sample();
    struct tg_key_ring zero = {.keys = {{.id = 9, .key = {0}}}};
    char text[TG_MAX_TICKET_BYTES + 1];
    uint8_t bytes[TG_MAX_TICKET_BYTES];
    size_t count = 0;
    size_t length = tg_ticket_seal(&zero, &ticket, nonce, text);
    assert_int_equal(tg_base64url_decode(text, length, bytes, sizeof(bytes), &count), 0);
    uint8_t plain[TG_MAX_TICKET_BYTES];
    unsigned long long plain_length = 0;
    assert_int_equal(crypto_aead_xchacha20poly1305_ietf_decrypt(plain, &plain_length, NULL,
                                                                bytes + 26, count - 26, bytes, 2,
                                                                nonce, zero.keys[0].key),
                     0);
    bytes[1] = 0;
    unsigned long long sealed_length = 0;
    (void)crypto_aead_xchacha20poly1305_ietf_encrypt(
        bytes + 26, &sealed_length, plain, plain_length, bytes, 2, NULL, nonce, zero.keys[0].key);
    length = tg_base64url_encode(bytes, 26 + (size_t)sealed_length, text);
    struct tg_ticket back = {0};
    assert_int_equal(tg_ticket_open(&zero, text, length, &back), TG_ERR_FORGED);
}

/* Seals any inner bytes as the owner of the key would: a field out of bounds is refused all the
 * same. */
static int open_version(uint8_t version, const uint8_t *inner, size_t inner_length)
{
    uint8_t bytes[TG_MAX_TICKET_BYTES] = {version, ring.keys[0].id};
    char text[2 * TG_MAX_TICKET_BYTES];
    unsigned long long sealed_length = 0;
    struct tg_ticket back = {0};
    memcpy(bytes + 2, nonce, sizeof(nonce));
    (void)crypto_aead_xchacha20poly1305_ietf_encrypt(
        bytes + 26, &sealed_length, inner, inner_length, bytes, 2, NULL, nonce, ring.keys[0].key);
    return tg_ticket_open(&ring, text, tg_base64url_encode(bytes, 26 + (size_t)sealed_length, text),
                          &back);
}

static int open_inner(const uint8_t *inner, size_t inner_length)
{
    return open_version(1, inner, inner_length);
}

static void fields_out_of_bounds_are_refused(void **state)
{
    /* sale "ab", generation 1, user "xy", arrived 5, index 6, flags 0, lane 0 */
    uint8_t inner[] = {2, 'a', 'b', 0, 0, 0, 0, 0, 0, 0, 1, 1, 2, 'x', 'y', 0, 0,
                       0, 0,   0,   0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 6,   0,   0};
    assert_int_equal(open_inner(inner, sizeof(inner)), 0);
    assert_int_equal(open_version(2, inner, sizeof(inner)), TG_ERR_MALFORMED);
    assert_int_equal(open_version(0, inner, sizeof(inner)), TG_ERR_MALFORMED);
    static const struct {
        size_t at;
        uint8_t value;
    } faults[] = {{0, 0},     {0, 1},     {0, 3},    {0, 65},   {0, 255},   {1, '/'},
                  {1, 0},     {11, 0},    {11, 2},   {11, 3},   {12, 0},    {12, 1},
                  {12, 3},    {12, 129},  {12, 255}, {13, 0},   {13, 0x1f}, {13, 0xff},
                  {14, 0xc3}, {15, 0x80}, {31, 4},   {31, 255}, {32, 3},    {32, 255}};
    for (size_t i = 0; i < COUNT_OF(faults); i++) {
        uint8_t changed[sizeof(inner)];
        memcpy(changed, inner, sizeof(inner));
        changed[faults[i].at] = faults[i].value;
        assert_int_equal(open_inner(changed, sizeof(changed)), TG_ERR_MALFORMED);
    }
    for (size_t length = 0; length < sizeof(inner); length++) {
        assert_int_equal(open_inner(inner, length), TG_ERR_MALFORMED);
    }
    uint8_t longer[sizeof(inner) + 1] = {0};
    memcpy(longer, inner, sizeof(inner));
    assert_int_equal(open_inner(longer, sizeof(longer)), TG_ERR_MALFORMED);
}

static void lane_and_flags_do_not_show(void **state)
{
    struct tg_ticket ticket = sample();
    char text[TG_MAX_TICKET_BYTES + 1];
    size_t length = tg_ticket_seal(&ring, &ticket, nonce, text);
    for (int lane = TG_LANE_LIVE; lane <= TG_LANE_DECOY; lane++) {
        for (int flags = 0; flags <= 3; flags++) {
            struct tg_ticket back;
            ticket.lane = (enum tg_lane)lane;
            ticket.early = (flags & 1) != 0;
            ticket.proved = (flags & 2) != 0;
            ticket.index = ticket.early ? 1 : UINT64_MAX;
            assert_int_equal(tg_ticket_seal(&ring, &ticket, nonce, text), length);
            assert_int_equal(tg_ticket_open(&ring, text, length, &back), 0);
            expect_same(&ticket, &back);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_ticket_opens_as_it_was_sealed),
        cmocka_unit_test(the_longest_ticket_fits),
        cmocka_unit_test(every_flipped_bit_is_refused),
        cmocka_unit_test(every_other_length_is_refused),
        cmocka_unit_test(respelled_trailing_bits_are_refused),
        cmocka_unit_test(rotation_accepts_three_keys_and_no_other),
        cmocka_unit_test(remembered_subkeys_change_no_byte),
        cmocka_unit_test(key_id_zero_is_never_a_key),
        cmocka_unit_test(fields_out_of_bounds_are_refused),
        cmocka_unit_test(lane_and_flags_do_not_show),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
