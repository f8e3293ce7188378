// SPDX-License-Identifier: Apache-2.0
#include "services/queue/core_parts.h"

#include "lib/pure/number.h"

#define MICRO ((uint64_t)1000000)

/* A pace is accepted from the highest term; one that has fallen silent no longer binds, because an
 * admission brain that restarts alone cannot know which number its predecessor had. */
void queue_pace_heard(struct queue_brain *brain, struct tg_mono now, uint64_t term,
                      uint64_t pace_milli)
{
    bool silent = !brain->pace_known || now.ms - brain->pace_heard.ms > QUEUE_PACE_STALE_MS;
    if (term < brain->pace_term && !silent) {
        return;
    }
    brain->pace_known = true;
    brain->pace_term = term;
    brain->pace_milli = pace_milli;
    brain->pace_heard = now;
}

uint64_t queue_pace_now(const struct queue_brain *brain, struct tg_mono now)
{
    bool fresh = brain->pace_known && now.ms - brain->pace_heard.ms <= QUEUE_PACE_STALE_MS;
    return fresh ? brain->pace_milli : 0;
}

uint64_t queue_speed_now(const struct queue_brain *brain, struct tg_mono now)
{
    return queue_pace_now(brain, now) * brain->presence.haste_permille / 1000;
}

bool queue_stock_fresh(const struct queue_brain *brain, struct tg_mono now)
{
    return brain->stock.known && now.ms - brain->stock.heard.ms <= QUEUE_STOCK_STALE_MS;
}

/* Units taken since the last stock. A unit that lapsed meanwhile hides one that was taken, so the
 * log is asked too: it has an entry for every hold, settlement and release. Exact for one unit
 * each; of carts at least as many as the free units lost. All are counts within TG_COUNT_MAX. */
static uint64_t taken_since(const struct queue_stock *stock, const struct queue_event *event)
{
    const int64_t lost = (int64_t)stock->free - (int64_t)event->stock.free; /* held - released */
    const int64_t paid = (int64_t)event->stock.settled - (int64_t)stock->settled;
    const int64_t entries = (int64_t)event->stock.sequence - (int64_t)stock->sequence;
    const int64_t taken = (entries - paid + lost) / 2;
    const int64_t most = taken > lost ? taken : lost;
    return most > 0 ? (uint64_t)most : 0;
}

void queue_stock_heard(struct queue_brain *brain, struct tg_mono now,
                       const struct queue_event *event)
{
    struct queue_stock *stock = &brain->stock;
    bool same_gate = stock->known && event->stock.epoch == stock->epoch;
    if (event->stock.epoch < stock->epoch) {
        return;
    }
    if (same_gate && event->stock.gate_now_ms < stock->gate_now_ms) {
        return; /* another reserve instance told something newer already */
    }
    if (same_gate && event->stock.known) {
        queue_presence_taken(&brain->presence, taken_since(stock, event));
    }
    stock->epoch = event->stock.epoch;
    stock->known = event->stock.known;
    stock->paused = event->stock.paused;
    stock->gate_now_ms = event->stock.gate_now_ms;
    stock->heard = now;
    if (event->stock.known) {
        stock->free = event->stock.free;
        stock->held = event->stock.held;
        stock->settled = event->stock.settled;
        stock->sequence = event->stock.sequence;
    }
}

/* People who may still be let in for the units that are free, and within the sale's cap. */
static uint64_t room_left(const struct queue_brain *brain)
{
    const struct queue_presence *presence = &brain->presence;
    uint64_t people = queue_room_people(&brain->room, brain->stock.free);
    uint64_t there = queue_room_standing_milli(&brain->room) / 1000 +
                     presence->slots[presence->at].asked + queue_presence_coming(presence, 1);
    uint64_t room = there < people ? people - there : 0;
    uint64_t inside = queue_presence_inside(brain);
    return inside < brain->view.inside_max ? tg_smaller(room, brain->view.inside_max - inside) : 0;
}

bool queue_sells(const struct queue_brain *brain, struct tg_mono now)
{
    return brain->view.phase == TG_PHASE_OPEN && queue_ranks_known(brain) &&
           queue_stock_fresh(brain, now) && !brain->stock.paused && brain->stock.free > 0;
}

uint64_t queue_pace_told(const struct queue_brain *brain, struct tg_mono now)
{
    uint64_t speed = queue_speed_now(brain, now);
    if (queue_sells(brain, now) && room_left(brain) * 1000 >= speed) {
        return speed;
    }
    uint64_t lately = queue_presence_lately(&brain->presence, QUEUE_TOLD_SLOTS) * MICRO /
                      (QUEUE_TOLD_SLOTS * QUEUE_PRESENCE_SLOT_MS);
    return tg_smaller(lately > QUEUE_TOLD_MIN ? lately : QUEUE_TOLD_MIN, speed);
}

uint64_t queue_gap_within(const struct queue_brain *brain, uint64_t from, uint64_t to)
{
    const uint64_t gap_from = queue_rank_of(brain, brain->gap_from);
    const uint64_t gap_to = queue_rank_of(brain, brain->gap_to);
    uint64_t low = from > gap_from ? from : gap_from;
    uint64_t high = to < gap_to ? to : gap_to;
    return high > low ? high - low : 0;
}

/* How far `people` ranks reach. Ranks of the gap cost time, so that nobody jumps the pace, but they
 * are not people who could take a unit: only those before and behind the gap need room. */
static uint64_t within_room(const struct queue_brain *brain, uint64_t people)
{
    uint64_t room = room_left(brain);
    const uint64_t end = queue_rank_of(brain, brain->index_end);
    const uint64_t gap_from = queue_rank_of(brain, brain->gap_from);
    uint64_t left = end > brain->watermark ? end - brain->watermark : 0;
    people = tg_smaller(people, left);
    uint64_t ghosts = queue_gap_within(brain, brain->watermark, brain->watermark + people);
    uint64_t before = 0;
    if (ghosts > 0 && gap_from > brain->watermark) {
        before = gap_from - brain->watermark;
    }
    if (before > room) {
        return room;
    }
    uint64_t behind = tg_smaller(people - before - ghosts, room - before);
    return before + ghosts + behind;
}

/* A queue and the edges that knew its indexes may have died together: then people hold places that
 * nobody can tell of, beyond everything known. Who did not see this line begin goes on past its
 * known end, at the pace, while units are free; new indexes are given behind that. */
static void walk_on(struct queue_brain *brain, uint64_t people)
{
    if (brain->witnessed || brain->watermark < brain->index_end || room_left(brain) == 0) {
        return;
    }
    brain->gap_from = brain->watermark;
    brain->gap_to = brain->watermark + people;
    brain->index_end = brain->gap_to;
}

void queue_watermark_move(struct queue_brain *brain, struct tg_mono now)
{
    int64_t passed = now.ms - brain->moved.ms;
    uint64_t passed_ms =
        passed < 0 ? 0 : (uint64_t)(passed > QUEUE_STEP_MS_MAX ? QUEUE_STEP_MS_MAX : passed);
    brain->moved = now;
    queue_presence_tick(brain, now);
    if (!queue_acts(brain) || !queue_sells(brain, now)) {
        brain->credit_micro = 0;
        return;
    }
    brain->credit_micro += queue_speed_now(brain, now) * passed_ms;
    uint64_t due = brain->credit_micro / MICRO;
    walk_on(brain, due);
    uint64_t people = within_room(brain, due);
    /* What could not be used is not saved up: a queue that was blocked does not burst when it is
     * free again. */
    brain->credit_micro = people < due ? 0 : brain->credit_micro - people * MICRO;
    uint64_t ghosts = queue_gap_within(brain, brain->watermark, brain->watermark + people);
    queue_presence_passed(&brain->presence, people - ghosts);
    brain->watermark += people;
}
