/* SPDX-License-Identifier: Apache-2.0
 * Parts of the queue's core: leases and what edges tell (core_line.c), the movement of the
 * watermark (core_pace.c), who is there (core_presence.c), for how many there is room
 * (core_room.c), the board (core_board.c). Pure, like core.h. */
#ifndef QUEUE_CORE_PARTS_H
#define QUEUE_CORE_PARTS_H

#include "services/queue/core.h"

/* core_line.c: forget everything that belonged to another generation; the term stays. */
void queue_line_reset(struct queue_brain *brain, struct tg_mono now);
/* core_line.c: once per term, when this process speaks for the sale: where its indexes start. */
void queue_line_claim(struct queue_brain *brain, struct tg_mono now);
struct queue_grant queue_line_lease(struct queue_brain *brain, struct tg_mono now, const char *edge,
                                    uint32_t count);
void queue_line_presence(struct queue_brain *brain, struct tg_mono now,
                         const struct queue_event *event);
/* core_line.c: indexes below this one are out, by whoever's word. */
void queue_line_index(struct queue_brain *brain, struct tg_mono now, uint64_t index_end);
/* core_line.c: what a board of ours or of a peer said; never moves anything back. */
void queue_line_saw(struct queue_brain *brain, uint64_t watermark, uint64_t present_at_open,
                    uint64_t index_at_open);
/* core_line.c: record the population at the opening, once. */
void queue_line_open(struct queue_brain *brain, struct tg_mono now);

/* core_draw.c: what the ledger says of the draw comes before what was recorded here. */
void queue_draw_adopt(struct queue_brain *brain);
/* core_draw.c: false in a draw whose seed is not revealed. */
bool queue_ranks_known(const struct queue_brain *brain);
/* core_draw.c: rank of whoever arrived with this index, after the opening if it is a draw. */
uint64_t queue_rank_of(const struct queue_brain *brain, uint64_t index);

/* core_pace.c */
void queue_pace_heard(struct queue_brain *brain, struct tg_mono now, uint64_t term,
                      uint64_t pace_milli);
void queue_stock_heard(struct queue_brain *brain, struct tg_mono now,
                       const struct queue_event *event);
/* The pace in people who come. */
uint64_t queue_pace_now(const struct queue_brain *brain, struct tg_mono now);
/* The speed of the watermark: the pace, and faster for those who do not come. */
uint64_t queue_speed_now(const struct queue_brain *brain, struct tg_mono now);
bool queue_stock_fresh(const struct queue_brain *brain, struct tg_mono now);
/* core_pace.c: whoever comes to the gate may find a unit. */
bool queue_sells(const struct queue_brain *brain, struct tg_mono now);
/* core_pace.c: as the board tells it: the speed, or what was let through lately if there is room
 * for less. */
uint64_t queue_pace_told(const struct queue_brain *brain, struct tg_mono now);
/* core_pace.c: lets people through for the time since the last call. */
void queue_watermark_move(struct queue_brain *brain, struct tg_mono now);
/* core_pace.c: how many of the ranks [from, to) lie in the gap of this term. */
uint64_t queue_gap_within(const struct queue_brain *brain, uint64_t from, uint64_t to);

/* core_presence.c: the absent do not stall the line. People let through, people who asked for a
 * pass, units that left the free ones; the tick judges every half second. */
void queue_presence_reset(struct queue_brain *brain, struct tg_mono now);
void queue_presence_passed(struct queue_presence *presence, uint64_t people);
void queue_presence_asked(struct queue_presence *presence, uint64_t people);
void queue_presence_taken(struct queue_presence *presence, uint64_t units);
void queue_presence_tick(struct queue_brain *brain, struct tg_mono now);
/* core_presence.c: live passes and held units, and those who will ask in a moment. */
uint64_t queue_presence_inside(const struct queue_brain *brain);
/* core_presence.c: let through within the last `slots`. */
uint64_t queue_presence_lately(const struct queue_presence *presence, size_t slots);
/* core_presence.c: of them, who will ask in a moment: within `times` the usual lag. */
uint64_t queue_presence_coming(const struct queue_presence *presence, size_t times);

/* core_room.c: who stands before the gate, and how many people it takes to take what is free. */
enum queue_gate {
    QUEUE_GATE_SELLS,
    QUEUE_GATE_EMPTY, /* nothing is free */
    QUEUE_GATE_SHUT   /* paused, not open, or unknown */
};
void queue_room_reset(struct queue_room *room);
/* Once per slot, with what it saw. */
void queue_room_turn(struct queue_room *room, const struct queue_presence_slot *slot,
                     enum queue_gate gate);
/* Thousandths of people who asked and have neither taken a unit nor had their time. */
uint64_t queue_room_standing_milli(const struct queue_room *room);
/* People who may stand there for so many units. */
uint64_t queue_room_people(const struct queue_room *room, uint64_t free_units);

/* core_board.c: fills a board to publish if its time has come or its content changed in a way that
 * cannot wait. */
bool queue_board_due(struct queue_brain *brain, struct queue_now now,
                     struct queue_board *out_board);

#endif
