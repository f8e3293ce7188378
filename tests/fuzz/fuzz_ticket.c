/* SPDX-License-Identifier: Apache-2.0
 * Tickets: what opens seals again to the same text and is within every bound, even if whoever knows
 * the key sealed nonsense; a changed ticket never opens, nor does one of an unknown key. */
#include "tests/fuzz/fuzz.h"

#include "lib/pure/ticket.h"

#include <sodium.h>

enum { INNER_BYTES_MAX = 300, OUTER_BYTES_MAX = 2 + TG_TICKET_NONCE_BYTES + INNER_BYTES_MAX + 16 };

static const struct tg_key_ring ring = {
    .keys = {{.id = 7, .key = "the key that seals"}, {.id = 9, .key = "the key before it"}}};

static void within_bounds(const struct tg_ticket *ticket)
{
    HOLDS(tg_sale_name_valid(ticket->sale, strnlen(ticket->sale, sizeof(ticket->sale))));
    HOLDS(ticket->lane <= TG_LANE_DECOY && ticket->arrived.ms >= 0);
    if (ticket->holder.kind == TG_HOLDER_USER) {
        HOLDS(tg_user_valid(ticket->holder.bytes, ticket->holder.length));
    } else {
        HOLDS(ticket->holder.kind == TG_HOLDER_VISITOR && ticket->holder.length == 16);
    }
}

/* Opens text and, if it opens, seals it anew with the nonce it carries. */
static bool opens_canonically(const char *text, size_t length)
{
    struct tg_ticket ticket;
    uint8_t outer[OUTER_BYTES_MAX];
    char again[TG_MAX_TICKET_BYTES + 1];
    size_t outer_length = 0;
    if (tg_ticket_open(&ring, text, length, &ticket) != 0) {
        return false;
    }
    within_bounds(&ticket);
    HOLDS(tg_base64url_decode(text, length, outer, sizeof(outer), &outer_length) == 0);
    struct tg_key_ring used = {.keys = {outer[1] == 7 ? ring.keys[0] : ring.keys[1]}};
    HOLDS(tg_ticket_seal(&used, &ticket, outer + 2, again) == length);
    HOLDS(memcmp(again, text, length) == 0);
    return true;
}

/* Any inner bytes, sealed properly with one of the keys. */
static void sealed_nonsense(struct choice *choice)
{
    uint8_t inner[INNER_BYTES_MAX];
    uint8_t outer[OUTER_BYTES_MAX] = {1};
    char text[2 * OUTER_BYTES_MAX];
    unsigned long long sealed_length = 0;
    const uint8_t key = (uint8_t)choice_below(choice, 2);
    outer[1] = ring.keys[key].id;
    choice_bytes(choice, outer + 2, TG_TICKET_NONCE_BYTES);
    size_t inner_length = choice_take(choice, inner, sizeof(inner));
    (void)crypto_aead_xchacha20poly1305_ietf_encrypt(outer + 2 + TG_TICKET_NONCE_BYTES,
                                                     &sealed_length, inner, inner_length, outer, 2,
                                                     NULL, outer + 2, ring.keys[key].key);
    size_t length =
        tg_base64url_encode(outer, 2 + TG_TICKET_NONCE_BYTES + (size_t)sealed_length, text);
    (void)opens_canonically(text, length);
}

static void changed_never_opens(struct choice *choice)
{
    static const struct tg_key_ring other = {.keys = {{.id = 7, .key = "another key of this id"}}};
    struct tg_ticket ticket = {.sale = "sale", .holder = {.kind = TG_HOLDER_USER, .length = 5}};
    struct tg_ticket back;
    uint8_t nonce[TG_TICKET_NONCE_BYTES] = {0};
    char text[TG_MAX_TICKET_BYTES + 1], changed[TG_MAX_TICKET_BYTES + 1];
    memcpy(ticket.holder.bytes, "buyer", 5);
    ticket.index = choice_below(choice, 1000);
    ticket.early = choice_below(choice, 2) == 1;
    ticket.lane = (enum tg_lane)choice_below(choice, 3);
    choice_bytes(choice, nonce, 4);
    size_t length = tg_ticket_seal(&ring, &ticket, nonce, text);
    HOLDS(opens_canonically(text, length));
    HOLDS(tg_ticket_open(&other, text, length, &back) == TG_ERR_FORGED);
    memcpy(changed, text, sizeof(changed));
    size_t changed_length = length;
    choice_damage(choice, changed, &changed_length, sizeof(changed));
    if (changed_length != length || memcmp(changed, text, length) != 0) {
        HOLDS(tg_ticket_open(&ring, changed, changed_length, &back) != 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    struct choice choice = {bytes, size, 0};
    size_t length = 0;
    switch (choice_byte(&choice) % 3) {
    case 0:
        bytes = choice_rest(&choice, &length);
        HOLDS(!opens_canonically((const char *)bytes, length)); /* nobody here knows the key */
        break;
    case 1:
        sealed_nonsense(&choice);
        break;
    default:
        changed_never_opens(&choice);
        break;
    }
    return 0;
}
