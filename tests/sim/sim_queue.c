/* SPDX-License-Identifier: Apache-2.0
 * Chance, the queue of events, and what is told when a schedule fails. */
#include "tests/sim/sim.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct sim sim;
struct sim_totals sim_totals;

enum { NOTES = 20000, NOTE_BYTES = 220 };
static char notes[NOTES][NOTE_BYTES];
static uint32_t note_count;

uint64_t sim_draw(struct sim_chance *chance)
{
    uint64_t x = chance->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

uint32_t sim_below(struct sim_chance *chance, uint32_t below)
{
    return (uint32_t)((sim_draw(chance) >> 32) * below >> 32);
}

int64_t sim_between(struct sim_chance *chance, int64_t low, int64_t high)
{
    return low + sim_below(chance, (uint32_t)(high - low + 1));
}

bool sim_percent(struct sim_chance *chance, uint32_t percent)
{
    return sim_below(chance, 100) < percent;
}

static bool before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

void sim_at(int64_t at, enum sim_event_kind kind, uint8_t node, uint16_t a, uint32_t b)
{
    assert(sim.queue_count < SIM_QUEUE);
    const struct sim_event event = {.at = at > sim.now ? at : sim.now,
                                    .order = sim.orders++,
                                    .kind = (uint8_t)kind,
                                    .node = node,
                                    .a = a,
                                    .b = b};
    uint32_t place = sim.queue_count++;
    while (place > 0) {
        const uint32_t above = (place - 1) / 2;
        if (!before(&event, &sim.queue[above])) {
            break;
        }
        sim.queue[place] = sim.queue[above];
        place = above;
    }
    sim.queue[place] = event;
}

bool sim_next(struct sim_event *out_event)
{
    if (sim.queue_count == 0) {
        return false;
    }
    *out_event = sim.queue[0];
    const struct sim_event last = sim.queue[--sim.queue_count];
    uint32_t place = 0;
    for (;;) {
        uint32_t below = place * 2 + 1;
        if (below >= sim.queue_count) {
            break;
        }
        if (below + 1 < sim.queue_count && before(&sim.queue[below + 1], &sim.queue[below])) {
            below++;
        }
        if (!before(&sim.queue[below], &last)) {
            break;
        }
        sim.queue[place] = sim.queue[below];
        place = below;
    }
    sim.queue[place] = last;
    return true;
}

char *sim_room(size_t length)
{
    assert(sim.text_used + length <= SIM_TEXT_BYTES);
    char *room = sim.text + sim.text_used;
    sim.text_used += (length + 15) / 16 * 16;
    return room;
}

bool sim_on(enum sim_fault fault)
{
    return (sim.faults >> fault & 1u) != 0 && !sim.healing && sim.now >= sim.calm_until;
}

void sim_occurred(enum sim_fault fault)
{
    sim_totals.faults[fault]++;
}

void sim_fail(const char *format, ...)
{
    va_list values;
    if (sim.failed) {
        return;
    }
    sim.failed = true;
    va_start(values, format);
    (void)vsnprintf(sim.failure, sizeof sim.failure, format, values);
    va_end(values);
    SIM_NOTE("VIOLATION %s", sim.failure);
}

void sim_note(const char *format, ...)
{
    va_list values;
    char *note = notes[note_count++ % NOTES];
    const int head = snprintf(note, NOTE_BYTES, "%7lld ms  ", (long long)sim.now);
    va_start(values, format);
    (void)vsnprintf(note + head, (size_t)(NOTE_BYTES - head), format, values);
    va_end(values);
}

void sim_print_notes(uint32_t count)
{
    const uint32_t most = count < NOTES ? count : NOTES;
    const uint32_t first = note_count > most ? note_count - most : 0;
    for (uint32_t i = first; i < note_count; i++) {
        (void)printf("  %s\n", notes[i % NOTES]);
    }
    note_count = 0;
}
