/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cmocka_tests.h"

#include "lib/pure/draw.h"

#include <stdlib.h>
#include <string.h>

enum { BITS = 12 };

static void hex_is(const uint8_t bytes[TG_DRAW_BYTES], const char *hex)
{
    char text[2 * TG_DRAW_BYTES + 1];
    tg_hex_encode(bytes, TG_DRAW_BYTES, text);
    assert_string_equal(text, hex);
}

/* Computed with another implementation (hashlib of Python). */
static void known_commitment_and_seed(void **state)
{
    struct tg_draw draw = {.beacon_length = 3, .beacon = "abc"};
    uint8_t commitment[TG_DRAW_BYTES];
    memset(draw.secret, 1, sizeof(draw.secret));
    memset(draw.root, 2, sizeof(draw.root));
    tg_draw_commit(draw.secret, commitment);
    hex_is(commitment, "72cd6e8422c407fb6d098690f1130b7ded7ec2f7f5e1d30bd9d521f015363793");
    tg_draw_mix(&draw);
    hex_is(draw.seed, "b3385906918e31ec26fb276300576a76f4b74ffe417a06b2131a92eb6eebc21e");
}

/* The test vectors of RFC 6962 implementations: leaves "", 00, 10, 2021, ... */
static void merkle_roots_are_those_of_rfc_6962(void **state)
{
    static const struct {
        const char *bytes;
        size_t length;
    } leaves[] = {{"", 0},
                  {"\x00", 1},
                  {"\x10", 1},
                  {"\x20\x21", 2},
                  {"\x30\x31", 2},
                  {"\x40\x41\x42\x43", 4},
                  {"\x50\x51\x52\x53\x54\x55\x56\x57", 8},
                  {"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f", 16}};
    static const char *const roots[] = {
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"};
    struct tg_merkle merkle;
    uint8_t root[TG_DRAW_BYTES];
    tg_merkle_begin(&merkle);
    for (size_t i = 0; i < COUNT_OF(roots); i++) {
        tg_merkle_root(&merkle, root);
        hex_is(root, roots[i]);
        if (i < COUNT_OF(leaves)) {
            tg_merkle_add(&merkle, leaves[i].bytes, leaves[i].length);
        }
    }
}

static void entrant_of(uint32_t number, uint8_t out_entrant[TG_ENTRANT_BYTES])
{
    struct tg_mac mac;
    tg_mac_begin(&mac, NULL, "test entrant");
    tg_mac_number(&mac, number);
    tg_mac_end(&mac, out_entrant, TG_ENTRANT_BYTES);
}

static void close_all(struct tg_roster *roster, uint64_t slice, uint8_t out_root[TG_DRAW_BYTES])
{
    struct tg_roster_close closing;
    tg_roster_close_begin(&closing);
    while (!tg_roster_close_step(roster, &closing, slice)) {
    }
    assert_true(closing.closed == roster->count);
    tg_merkle_root(&closing.merkle, out_root);
}

/* Field case 29: rows in another order, five entries of one, give the same roster and root. */
static void case_29_a_roster_depends_on_its_entrants_only(void **state)
{
    enum { ENTRANTS = 1000 };
    struct tg_roster forward, backward;
    uint8_t entrant[TG_ENTRANT_BYTES], one[TG_DRAW_BYTES], other[TG_DRAW_BYTES];
    tg_roster_begin(&forward, calloc(1, tg_roster_table_bytes(BITS)), BITS);
    tg_roster_begin(&backward, calloc(1, tg_roster_table_bytes(BITS + 1)), BITS + 1);
    for (uint32_t i = 0; i < ENTRANTS; i++) {
        entrant_of(i, entrant);
        assert_int_equal(tg_roster_add(&forward, entrant), 1);
        entrant_of(ENTRANTS - 1 - i, entrant);
        assert_int_equal(tg_roster_add(&backward, entrant), 1);
    }
    for (int i = 0; i < 5; i++) {
        entrant_of(7, entrant);
        assert_int_equal(tg_roster_add(&forward, entrant), 0);
    }
    assert_true(forward.count == ENTRANTS && backward.count == ENTRANTS);
    close_all(&forward, 100, one);
    close_all(&backward, 1, other);
    assert_memory_equal(one, other, sizeof(one));
    for (uint32_t i = 1; i < ENTRANTS; i++) {
        assert_true(memcmp(forward.slots[i - 1], forward.slots[i], TG_ENTRANT_BYTES) < 0);
    }
    free(forward.slots);
    free(backward.slots);
}

static void a_larger_table_takes_all_over(void **state)
{
    enum { SMALL = 8 };
    struct tg_roster small, large;
    uint8_t entrant[TG_ENTRANT_BYTES], one[TG_DRAW_BYTES], other[TG_DRAW_BYTES];
    tg_roster_begin(&small, calloc(1, tg_roster_table_bytes(SMALL)), SMALL);
    tg_roster_begin(&large, calloc(1, tg_roster_table_bytes(SMALL + 1)), SMALL + 1);
    for (uint32_t i = 0; !tg_roster_crowded(&small); i++) {
        entrant_of(i, entrant);
        assert_int_equal(tg_roster_add(&small, entrant), 1);
    }
    entrant_of(1000, entrant);
    assert_int_equal(tg_roster_add(&small, entrant), TG_ERR_FULL);
    entrant_of(0, entrant);
    assert_int_equal(tg_roster_add(&small, entrant), 0);
    assert_int_equal(tg_roster_move(&large, &small), 0);
    assert_true(large.count == small.count);
    close_all(&small, 64, one);
    close_all(&large, 64, other);
    assert_memory_equal(one, other, sizeof(one));
    free(small.slots);
    free(large.slots);
}

/* What no MAC makes: neighbours without end, and nothing. */
static void nonsense_is_refused(void **state)
{
    struct tg_roster roster;
    uint8_t entrant[TG_ENTRANT_BYTES] = {0};
    tg_roster_begin(&roster, calloc(1, tg_roster_table_bytes(BITS)), BITS);
    assert_int_equal(tg_roster_add(&roster, entrant), TG_ERR_MALFORMED);
    memset(entrant, 0xff, sizeof(entrant));
    int outcome = 1;
    for (uint32_t i = 0; outcome == 1 && i < 2 * TG_ROSTER_RUN_MAX; i++) {
        entrant[14] = (uint8_t)(i >> 8);
        entrant[15] = (uint8_t)i;
        outcome = tg_roster_add(&roster, entrant);
    }
    assert_int_equal(outcome, TG_ERR_FULL);
    assert_true(roster.count == TG_ROSTER_RUN_MAX);
    free(roster.slots);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_commitment_and_seed),
        cmocka_unit_test(merkle_roots_are_those_of_rfc_6962),
        cmocka_unit_test(case_29_a_roster_depends_on_its_entrants_only),
        cmocka_unit_test(a_larger_table_takes_all_over),
        cmocka_unit_test(nonsense_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
