// SPDX-License-Identifier: Apache-2.0
#include "services/queue/core_parts.h"

#include "lib/pure/number.h"

void queue_presence_reset(struct queue_brain *brain, struct tg_mono now)
{
    brain->presence = (struct queue_presence){.slot_began = now, .haste_permille = 1000};
    queue_room_reset(&brain->room);
}

void queue_presence_passed(struct queue_presence *presence, uint64_t people)
{
    presence->slots[presence->at].passed += people;
}

void queue_presence_asked(struct queue_presence *presence, uint64_t people)
{
    presence->slots[presence->at].asked += tg_smaller(people, QUEUE_PRESENCE_PEOPLE_MAX);
}

void queue_presence_taken(struct queue_presence *presence, uint64_t units)
{
    presence->slots[presence->at].taken += tg_smaller(units, QUEUE_PRESENCE_PEOPLE_MAX);
}

static const struct queue_presence_slot *slot_before(const struct queue_presence *presence,
                                                     size_t slots)
{
    return &presence->slots[(presence->at + QUEUE_PRESENCE_SLOTS - slots) % QUEUE_PRESENCE_SLOTS];
}

/* Every edge that was there lately has just been heard: one that is late may hide people who ask.
 */
static bool edges_fresh(const struct queue_brain *brain, struct tg_mono now)
{
    bool any = false;
    for (size_t i = 0; i < TG_MAX_EDGES; i++) {
        const struct queue_edge *edge = &brain->edges[i];
        int64_t silent_ms = now.ms - edge->heard.ms;
        if (edge->name[0] == '\0' || silent_ms > QUEUE_EDGE_SILENT_MS) {
            continue;
        }
        if (silent_ms > QUEUE_EDGE_LATE_MS) {
            return false;
        }
        any = true;
    }
    return any;
}

/* Those who asked lately against those let through as long ago as people take to ask. */
static uint64_t wanted_haste(const struct queue_presence *presence)
{
    uint64_t prior = (uint64_t)QUEUE_PRESENCE_PRIOR * 1000;
    uint64_t passed = presence->passed_sum + prior;
    uint64_t asked = presence->asked_sum + prior;
    return asked >= passed ? 1000 : tg_smaller(passed * 1000 / asked, QUEUE_HASTE_MAX_PERMILLE);
}

static enum queue_gate gate_of(const struct queue_brain *brain, struct tg_mono now)
{
    if (queue_stock_fresh(brain, now) && brain->stock.free == 0) {
        return QUEUE_GATE_EMPTY;
    }
    return queue_sells(brain, now) ? QUEUE_GATE_SELLS : QUEUE_GATE_SHUT;
}

/* Slowly up, at once down: absent people cost time, a crowd costs the purchase path. */
static void turn(struct queue_brain *brain, struct tg_mono now)
{
    struct queue_presence *presence = &brain->presence;
    const struct queue_presence_slot *past = slot_before(presence, QUEUE_PRESENCE_LAG_SLOTS);
    presence->passed_sum += past->passed * 1000 - presence->passed_sum / QUEUE_PRESENCE_FADE;
    presence->asked_sum +=
        slot_before(presence, 0)->asked * 1000 - presence->asked_sum / QUEUE_PRESENCE_FADE;
    queue_room_turn(&brain->room, slot_before(presence, 0), gate_of(brain, now));
    uint64_t haste = wanted_haste(presence);
    uint64_t most = presence->haste_permille + presence->haste_permille / QUEUE_HASTE_STEP;
    if (haste > presence->haste_permille) {
        haste = edges_fresh(brain, now) ? tg_smaller(haste, most) : presence->haste_permille;
    }
    presence->haste_permille = haste < 1000 ? 1000 : haste;
    presence->at = (presence->at + 1) % QUEUE_PRESENCE_SLOTS;
    presence->slots[presence->at] = (struct queue_presence_slot){0};
    presence->slot_began.ms += QUEUE_PRESENCE_SLOT_MS;
}

void queue_presence_tick(struct queue_brain *brain, struct tg_mono now)
{
    int64_t behind_ms = now.ms - brain->presence.slot_began.ms;
    if (behind_ms > QUEUE_PRESENCE_SLOT_MS * QUEUE_PRESENCE_SLOTS) {
        queue_presence_reset(brain, now); /* frozen: what it knew is over */
    }
    while (now.ms - brain->presence.slot_began.ms >= QUEUE_PRESENCE_SLOT_MS) {
        turn(brain, now);
    }
}

uint64_t queue_presence_lately(const struct queue_presence *presence, size_t slots)
{
    uint64_t passed = 0;
    for (size_t i = 0; i < slots; i++) {
        passed += slot_before(presence, i)->passed;
    }
    return passed;
}

uint64_t queue_presence_coming(const struct queue_presence *presence, size_t times)
{
    return queue_presence_lately(presence, QUEUE_PRESENCE_LAG_SLOTS * times) * 1000 /
           presence->haste_permille;
}

uint64_t queue_presence_inside(const struct queue_brain *brain)
{
    const struct queue_presence *presence = &brain->presence;
    uint64_t asked = 0, taken = 0;
    for (size_t i = 0; i < QUEUE_PRESENCE_SLOTS; i++) {
        asked += presence->slots[i].asked;
        taken += presence->slots[i].taken;
    }
    uint64_t passes = asked > taken ? asked - taken : 0;
    uint64_t coming = queue_presence_coming(presence, 2); /* the slowest as well */
    return passes + coming + brain->stock.held;
}
