/* SPDX-License-Identifier: Apache-2.0
 * Random tickets and passes open as they were made, and no random damage to one opens as anything.
 */
#include "tests/prop/choice.h"

#include "lib/pure/pass.h"
#include "lib/pure/ticket.h"

#include <sodium.h>

static size_t choose_user(struct choice *choice, uint8_t *out_user)
{
    static const char letters[] = "ab\"\\ {}:,0~";
    size_t length = 1 + choice_below(choice, TG_MAX_USER_BYTES);
    for (size_t i = 0; i < length; i++) {
        out_user[i] = (uint8_t)letters[choice_below(choice, sizeof(letters) - 1)];
    }
    return length;
}

static void choose_sale(struct choice *choice, char *out_sale)
{
    static const char letters[] = "aZ09_-";
    size_t length = 1 + choice_below(choice, TG_MAX_SALE_NAME_BYTES);
    for (size_t i = 0; i < length; i++) {
        out_sale[i] = letters[choice_below(choice, sizeof(letters) - 1)];
    }
}

static void damage(struct choice *choice, char *text, size_t *length)
{
    size_t at = choice_below(choice, *length);
    switch (choice_below(choice, 3)) {
    case 0:
        text[at] = (char)(text[at] ^ (1 + choice_below(choice, 255)));
        return;
    case 1:
        *length = at;
        return;
    default:
        memmove(text + at, text + at + 1, *length - at);
        (*length)--;
        return;
    }
}

static void ticket_round(struct choice *choice)
{
    struct tg_key_ring ring = {.keys = {{.id = (uint8_t)(1 + choice_below(choice, 255))}}};
    struct tg_ticket ticket = {.generation = choice_u64(choice),
                               .arrived = {(int64_t)(choice_u64(choice) >> 1)},
                               .index = choice_u64(choice),
                               .early = choice_below(choice, 2) == 1,
                               .proved = choice_below(choice, 2) == 1,
                               .lane = (enum tg_lane)choice_below(choice, 3)};
    struct tg_ticket back = {0};
    uint8_t nonce[TG_TICKET_NONCE_BYTES];
    char text[TG_MAX_TICKET_BYTES + 1];
    choice_bytes(choice, ring.keys[0].key, TG_KEY_BYTES);
    choice_bytes(choice, nonce, sizeof(nonce));
    choose_sale(choice, ticket.sale);
    if (choice_below(choice, 4) == 0) {
        ticket.holder.kind = TG_HOLDER_VISITOR;
        ticket.holder.length = 16;
        choice_bytes(choice, ticket.holder.bytes, 16);
    } else {
        ticket.holder.kind = TG_HOLDER_USER;
        ticket.holder.length = (uint8_t)choose_user(choice, ticket.holder.bytes);
    }
    size_t length = tg_ticket_seal(&ring, &ticket, nonce, text);
    HOLDS(tg_ticket_open(&ring, text, length, &back) == 0);
    HOLDS(memcmp(back.sale, ticket.sale, sizeof(back.sale)) == 0 &&
          back.generation == ticket.generation);
    HOLDS(memcmp(&back.holder, &ticket.holder, sizeof(back.holder)) == 0);
    HOLDS(back.arrived.ms == ticket.arrived.ms && back.index == ticket.index);
    HOLDS(back.early == ticket.early && back.proved == ticket.proved);
    HOLDS(back.lane == ticket.lane);
    damage(choice, text, &length);
    HOLDS(tg_ticket_open(&ring, text, length, &back) != 0);
}

static void pass_round(struct choice *choice)
{
    struct tg_sign_key key = {.id = "01234567"};
    struct tg_verify_key verify = {.id = "01234567"};
    uint8_t seed[32];
    uint8_t jti[24];
    char text[TG_MAX_PASS_BYTES + 1];
    struct tg_pass back = {0};
    struct tg_pass pass = {.generation = choice_u64(choice),
                           .window = choice_below(choice, UINT64_C(4223371676))};
    choice_bytes(choice, seed, sizeof(seed));
    (void)crypto_sign_seed_keypair(key.public_key, key.secret, seed);
    memcpy(verify.public_key, key.public_key, sizeof(verify.public_key));
    choice_bytes(choice, pass.place, sizeof(pass.place));
    choice_bytes(choice, jti, sizeof(jti));
    (void)tg_base64url_encode(jti, sizeof(jti), pass.jti);
    choose_sale(choice, pass.sale);
    pass.user_length = choose_user(choice, pass.user);
    size_t length = tg_pass_sign(&key, &pass, text);
    HOLDS(length <= TG_MAX_PASS_BYTES && tg_pass_verify(&verify, 1, text, length, &back) == 0);
    HOLDS(back.user_length == pass.user_length &&
          memcmp(back.user, pass.user, pass.user_length) == 0);
    HOLDS(strcmp(back.sale, pass.sale) == 0 && strcmp(back.jti, pass.jti) == 0);
    HOLDS(back.window == pass.window && back.generation == pass.generation);
    HOLDS(memcmp(back.place, pass.place, sizeof(back.place)) == 0);
    damage(choice, text, &length);
    HOLDS(tg_pass_verify(&verify, 1, text, length, &back) != 0);
}

static void property(struct choice *choice)
{
    ticket_round(choice);
    pass_round(choice);
}

PROPERTY_MAIN(property, 2000, 1024)
