// SPDX-License-Identifier: Apache-2.0
#include "services/queue/core_parts.h"

#include "lib/pure/number.h"

#define MILLI ((uint64_t)1000)

/* From a robot to a person on a slow path. In slots, each of two stages: most need some time, and
 * some much. Their mean is as many seconds. */
static const uint64_t stage_slots[QUEUE_CROWDS] = {1, 4, 9, 18};

void queue_room_reset(struct queue_room *room)
{
    *room = (struct queue_room){.crowd = QUEUE_CROWDS - 1};
}

uint64_t queue_room_standing_milli(const struct queue_room *room)
{
    const struct queue_crowd *crowd = &room->crowds[room->crowd];
    return crowd->early + crowd->late;
}

/* Units per thousand people who had their time. While little is known, who stands counts as one who
 * takes a unit. */
static uint64_t conversion_permille(const struct queue_room *room)
{
    uint64_t had_time = room->crowds[room->crowd].had_time;
    uint64_t unknown = queue_room_standing_milli(room) * QUEUE_ROOM_MEMORY /
                           (QUEUE_ROOM_MEMORY + had_time / MILLI) +
                       QUEUE_ROOM_PRIOR * MILLI;
    uint64_t permille = (room->units + unknown) * 1000 / (had_time + unknown);
    return permille > QUEUE_CONVERSION_MIN ? permille : QUEUE_CONVERSION_MIN;
}

/* Whoever took a unit has had his time. */
static void leave(struct queue_crowd *crowd, uint64_t people)
{
    uint64_t late = tg_smaller(crowd->late, people);
    uint64_t early = tg_smaller(crowd->early, people - late);
    crowd->late -= late;
    crowd->early -= early;
    crowd->had_time += late + early;
}

/* A slot of one supposition. Returns how many had their time. */
static uint64_t pass_time(struct queue_crowd *crowd, uint64_t stage)
{
    uint64_t leaving = crowd->late / stage;
    uint64_t on = crowd->early / stage;
    crowd->early -= on;
    crowd->late += on - leaving;
    crowd->had_time += leaving;
    return leaving;
}

/* Units that people who leave now should take, as earlier ones did; `prior` people took one each.
 */
static uint64_t expected_of(const struct queue_room *room, const struct queue_crowd *crowd,
                            uint64_t leaving, uint64_t prior)
{
    uint64_t people = crowd->had_time + (prior + QUEUE_ROOM_PRIOR) * MILLI;
    uint64_t permille = (room->units + prior * MILLI) * 1000 / people;
    return leaving * permille / 1000;
}

/* The supposition whose people left when units were taken is the right one: it says nothing of how
 * many of them take one. */
static void judge(struct queue_room *room, struct queue_crowd *crowd, uint64_t leaving,
                  uint64_t taken)
{
    uint64_t expected = expected_of(room, crowd, leaving, 0);
    uint64_t apart = taken > expected ? taken - expected : expected - taken;
    apart = tg_smaller(apart, QUEUE_PRESENCE_PEOPLE_MAX * MILLI);
    crowd->missed += apart * apart / (taken + expected + MILLI);
    crowd->missed -= crowd->missed / QUEUE_CROWD_FADE;
}

static void fade(struct queue_room *room)
{
    if (room->crowds[room->crowd].had_time <= QUEUE_ROOM_MEMORY * MILLI) {
        return; /* what is known of few is kept until there is something newer */
    }
    room->units -= room->units / QUEUE_ROOM_FADE;
    for (size_t i = 0; i < QUEUE_CROWDS; i++) {
        room->crowds[i].had_time -= room->crowds[i].had_time / QUEUE_ROOM_FADE;
    }
}

/* In doubt the slower one. */
static size_t likeliest(const struct queue_room *room)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < QUEUE_CROWDS; i++) {
        least = tg_smaller(least, room->crowds[i].missed);
    }
    size_t slowest = QUEUE_CROWDS - 1;
    while (room->crowds[slowest].missed > least + QUEUE_CROWD_DOUBT * MILLI) {
        slowest--;
    }
    return slowest;
}

/* People stand there and the gate is shut, or units were due and none was taken: time stands still,
 * because nobody could have used it; for 40 s at most, then they really do not come. */
static bool stands_still(struct queue_room *room, uint64_t taken, enum queue_gate gate)
{
    if (taken > 0) {
        room->overdue = 0;
        room->still = tg_smaller(room->still, QUEUE_CALM_SLOTS);
    }
    bool shut = gate == QUEUE_GATE_SHUT && queue_room_standing_milli(room) >= MILLI;
    bool overdue = gate == QUEUE_GATE_SELLS && room->overdue >= QUEUE_OVERDUE_UNITS * MILLI;
    bool still = (shut || overdue) && room->still < QUEUE_STILL_SLOTS;
    if (still) {
        room->still++;
    } else if (room->still > 0 && !shut && !overdue) {
        room->still--;
    }
    return still;
}

/* Units whose takers this brain did not see asking, because it did not run yet, say nothing. */
static uint64_t most_taken(const struct queue_room *room)
{
    return (room->crowds[room->crowd].had_time + queue_room_standing_milli(room) +
            QUEUE_ROOM_PRIOR * MILLI) *
           QUEUE_CART_MAX;
}

void queue_room_turn(struct queue_room *room, const struct queue_presence_slot *slot,
                     enum queue_gate gate)
{
    const uint64_t taken = slot->taken * MILLI;
    const bool still = stands_still(room, taken, gate);
    const bool sells = gate == QUEUE_GATE_SELLS;
    const bool calm = room->still == 0; /* what was held up comes at once: it shows no time */
    room->units += taken;
    for (size_t i = 0; i < QUEUE_CROWDS; i++) {
        struct queue_crowd *crowd = &room->crowds[i];
        uint64_t leaving = still ? 0 : pass_time(crowd, stage_slots[i]);
        crowd->early += slot->asked * MILLI;
        if (sells && i == room->crowd) {
            room->overdue += expected_of(room, crowd, leaving, QUEUE_OVERDUE_UNITS);
        }
        if (sells && calm) {
            judge(room, crowd, leaving, taken);
        }
        if (room->units > crowd->had_time) {
            leave(crowd, room->units - crowd->had_time);
        }
    }
    room->units = tg_smaller(room->units, most_taken(room));
    if (sells && !still) {
        fade(room);
    }
    room->crowd = likeliest(room);
}

uint64_t queue_room_people(const struct queue_room *room, uint64_t free_units)
{
    return free_units * QUEUE_ROOM_PERMILLE / conversion_permille(room) + QUEUE_ROOM_CONSTANT;
}
