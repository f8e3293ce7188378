/* SPDX-License-Identifier: Apache-2.0
 * Buyers and the shop: they ask, ask again with the same key, pay, extend, give back, or forget. */
#include "tests/sim/sim.h"

#include <stdio.h>
#include <string.h>

enum { TRIES_MAX = 8 };
enum verb { VERB_HOLD, VERB_ECHO, VERB_CONFIRM, VERB_CANCEL, VERB_EXTEND };

static struct sim_chance *chance(void)
{
    return &sim.people_chance;
}

static void later(uint16_t buyer, int64_t low_ms, int64_t high_ms)
{
    sim_at(sim.now + sim_between(chance(), low_ms, high_ms), EVENT_BUYER, NODE_PEOPLE, buyer, 0);
}

void people_start(void)
{
    for (uint16_t buyer = 0; buyer < sim.buyer_count; buyer++) {
        later(buyer, 500, 1400);
    }
}

static bool new_id(uint8_t buyer, uint16_t *out_id)
{
    if (sim.id_count >= SIM_IDS) {
        return false;
    }
    const uint16_t number = (uint16_t)sim.id_count++;
    struct sim_id *id = &sim.ids[number];
    const uint64_t key = sim_draw(chance()) >> 1 | 1;
    for (int i = 0; i < 8; i++) {
        id->bytes[i] = (uint8_t)(key >> (56 - 8 * i));
    }
    id->bytes[14] = (uint8_t)(number >> 8);
    id->bytes[15] = (uint8_t)number;
    memcpy(id->text, "res_", 4);
    tg_base32_id_encode(id->bytes, id->text + 4);
    id->key = key;
    id->buyer = buyer;
    id->place = (uint8_t)sim_below(chance(), SIM_PLACES);
    id->item = (uint8_t)sim_below(chance(), sim.ledger.item_count);
    id->any = sim.ledger.limit > 1 && sim_percent(chance(), 20) ? 2 : 1;
    id->named = -1;
    if (sim_percent(chance(), 15)) {
        id->any = 0;
        id->named = (int8_t)sim_below(chance(), sim.ledger.units[id->item]);
    }
    id->intent = (uint16_t)sim.intents++;
    *out_id = number;
    return true;
}

static void ask(uint16_t buyer, uint16_t id, enum verb verb)
{
    const union sim_body body = {
        .hold = {.id = id,
                 .other_body = verb == VERB_ECHO && sim_percent(chance(), 15),
                 .window = (uint64_t)(sim.now / SIM_WINDOW_MS)}};
    bus_call(NODE_PEOPLE, MESSAGE_HOLD, &body, buyer | (uint64_t)id << 8 | (uint64_t)verb << 24);
}

static void act(uint16_t buyer, enum sim_message kind, enum verb verb)
{
    const struct sim_buyer *who = &sim.buyers[buyer];
    const union sim_body body = {.reservation = {.id = who->id, .payment = who->payment}};
    bus_call(NODE_PEOPLE, kind, &body, buyer | (uint64_t)who->id << 8 | (uint64_t)verb << 24);
}

static void begin(uint16_t buyer)
{
    struct sim_buyer *who = &sim.buyers[buyer];
    if (sim.id_count > 0 && sim_percent(chance(), 15)) {
        const uint16_t old = (uint16_t)sim_below(chance(), sim.id_count);
        ask(sim.ids[old].buyer, old, VERB_ECHO);
    }
    if (!new_id((uint8_t)buyer, &who->id)) {
        who->stage = BUYER_GONE;
        return;
    }
    who->stage = BUYER_ASKING;
    who->tries = 0;
    ask(buyer, who->id, VERB_HOLD);
}

/* A mutant of the protocol: what is asked again becomes another reservation. */
static void take_new_id(struct sim_buyer *who)
{
    const struct sim_id old = sim.ids[who->id];
    uint16_t id = 0;
    if (new_id(old.buyer, &id)) {
        sim.ids[id].intent = old.intent;
        sim.ids[id].place = (uint8_t)(old.place ^ 1u);
        who->id = id;
    }
}

static void decide(uint16_t buyer)
{
    struct sim_buyer *who = &sim.buyers[buyer];
    const uint32_t draw = sim_below(chance(), 100);
    if (draw < 15) {
        sim.ids[who->id].returned = true;
        act(buyer, MESSAGE_CANCEL, VERB_CANCEL);
        who->stage = BUYER_IDLE;
        later(buyer, 50, 500);
    } else if (draw < 45) {
        who->stage = BUYER_IDLE; /* forgets it */
        later(buyer, 50, 900);
    } else {
        if (draw < 62) {
            act(buyer, MESSAGE_EXTEND, VERB_EXTEND);
        }
        who->stage = BUYER_PAYING;
        who->tries = 0;
        if (who->payment == 0 || !sim_percent(chance(), 8)) {
            who->payment = ++sim.payments % SIM_PAYMENTS;
        }
        later(buyer, 20, sim.ledger.hold_ms + sim.ledger.grace_ms);
    }
}

void people_turn(uint16_t buyer)
{
    struct sim_buyer *who = &sim.buyers[buyer];
    if (sim.healing) {
        return;
    }
    switch (who->stage) {
    case BUYER_IDLE:
        begin(buyer);
        break;
    case BUYER_ASKING:
        if (sim.mutant == MUTANT_NEW_ID_ON_RETRY) {
            take_new_id(who);
        }
        ask(buyer, who->id, VERB_HOLD);
        break;
    case BUYER_HOLDING:
        decide(buyer);
        break;
    case BUYER_PAYING:
        act(buyer, MESSAGE_CONFIRM, VERB_CONFIRM);
        break;
    case BUYER_GONE:
        break;
    }
}

static void held(uint16_t buyer, uint16_t id, const struct sim_packet *packet)
{
    struct sim_buyer *who = &sim.buyers[buyer];
    const enum tg_reason reason =
        packet->no_answer ? TG_REASON_TRY_AGAIN : packet->body.held.reason;
    if (who->stage != BUYER_ASKING || who->id != id) {
        return;
    }
    if (reason == TG_REASON_NONE) {
        sim.ids[id].told = true;
        who->stage = BUYER_HOLDING;
        later(buyer, 10, sim.ledger.hold_ms);
        return;
    }
    const bool again = reason == TG_REASON_TRY_AGAIN || reason == TG_REASON_SALE_PAUSED ||
                       reason == TG_REASON_SALE_NOT_OPEN;
    if (again && ++who->tries < TRIES_MAX) {
        const bool closed = reason != TG_REASON_TRY_AGAIN;
        later(buyer, closed ? 150 : 20, closed ? 500 : 250);
        return;
    }
    who->stage = BUYER_IDLE;
    later(buyer, 50, 500);
}

static void confirmed(uint16_t buyer, uint16_t id, const struct sim_packet *packet)
{
    struct sim_buyer *who = &sim.buyers[buyer];
    const enum tg_reason reason =
        packet->no_answer ? TG_REASON_TRY_AGAIN : packet->body.answer.reason;
    if (who->stage != BUYER_PAYING || who->id != id) {
        return;
    }
    if (reason == TG_REASON_TRY_AGAIN && ++who->tries < TRIES_MAX) {
        later(buyer, 20, 300);
        return;
    }
    if (reason == TG_REASON_NONE) {
        sim.ids[id].sold = true;
        sim_totals.sold++;
        if (sim_percent(chance(), 15)) {
            sim.ids[id].returned = true;
            act(buyer, MESSAGE_CANCEL, VERB_CANCEL);
        }
    }
    who->stage = BUYER_IDLE;
    later(buyer, 50, 500);
}

void people_replied(const struct sim_packet *packet)
{
    const uint16_t buyer = (uint16_t)(packet->token & 0xff);
    const uint16_t id = (uint16_t)(packet->token >> 8 & 0xffff);
    const enum verb verb = (enum verb)(packet->token >> 24);
    if (verb == VERB_HOLD) {
        held(buyer, id, packet);
    } else if (verb == VERB_CONFIRM) {
        confirmed(buyer, id, packet);
    }
}
