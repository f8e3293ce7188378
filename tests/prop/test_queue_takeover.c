/* SPDX-License-Identifier: Apache-2.0
 * Three queue brains and three edges on a bus that delays, while brains are frozen, cut off and
 * restarted with empty memory and edges restart. Whatever happens:
 *   - no index an edge accepts was ever accepted before, by any edge in any term;
 *   - within a term and from term to term a connected edge sees the watermark rise only;
 *   - a term starts behind the highest index any edge reports;
 *   - in the end there is exactly one active brain and the line moves. */
#include "tests/prop/choice.h"

#include "services/queue/core.h"

enum {
    BRAINS = 3,
    EDGES = 3,
    STEP_MS = 50,
    FAULTY_STEPS = 900, /* 45 s */
    STEPS_PER_FAULT = 20,
    CALM_STEPS = 160, /* 8 s */
    MESSAGES_MAX = 4096,
    INDEXES_MAX = 400000,
    DELAY_MS_MAX = 120,
    CALL_MS = 2000,
    FAULT_MS_MAX = 6000
};

enum kind { BOARD, PRESENCE, LEASE, GRANT };

struct message {
    bool used;
    enum kind kind;
    int64_t due_ms, sent_ms;
    int from, to; /* brains 0..2, edges 3..5 */
    struct queue_board board;
    struct queue_grant grant;
    struct queue_event event;
};

struct brain {
    struct tg_term term;
    struct queue_brain core;
    char instance[8];
    int64_t frozen_until, cut_until, down_until;
    bool down;
};

struct edge {
    char name[24];
    uint64_t index_end, tickets, arrivals;
    uint64_t board_term, watermark, present_at_open, index_at_open;
    bool asked;
    int64_t asked_ms;
};

static struct message bus[MESSAGES_MAX];
static struct brain brains[BRAINS];
static struct edge edges[EDGES];
static uint8_t taken[INDEXES_MAX / 8];
static int64_t now_ms;
static uint64_t dice;
static uint64_t leased_total;

static uint64_t roll(uint64_t bound)
{
    dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (dice >> 33) % bound;
}

static struct message *send(enum kind kind, int from, int to)
{
    for (size_t i = 0; i < MESSAGES_MAX; i++) {
        if (!bus[i].used) {
            bus[i] = (struct message){.used = true, .kind = kind, .from = from, .to = to};
            bus[i].sent_ms = now_ms;
            bus[i].due_ms = now_ms + (int64_t)roll(DELAY_MS_MAX);
            return &bus[i];
        }
    }
    HOLDS(!"the bus is large enough");
    return NULL;
}

static bool cut(const struct brain *brain)
{
    return brain->down || now_ms < brain->cut_until;
}

static void act(int from, int asker, const struct queue_action *actions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (actions[i].kind == QUEUE_DO_BOARD && !cut(&brains[from])) {
            for (int to = 0; to < BRAINS + EDGES; to++) {
                send(BOARD, from, to)->board = actions[i].board;
            }
        } else if (actions[i].kind == QUEUE_DO_GRANT && !cut(&brains[from])) {
            send(GRANT, from, asker)->grant = actions[i].grant;
        }
    }
}

static void feed(int at, int asker, const struct queue_event *event)
{
    struct queue_action actions[QUEUE_ACTIONS_MAX];
    struct queue_now now = {.mono = {now_ms}, .wall = {now_ms}};
    size_t count = queue_step(&brains[at].core, now, event, actions);
    act(at, asker, actions, count);
}

static void brain_start(int at)
{
    struct brain *brain = &brains[at];
    snprintf(brain->instance, sizeof brain->instance, "queue-%d", at);
    tg_term_begin(&brain->term, brain->instance, (struct tg_mono){now_ms}, (uint32_t)roll(1000));
    queue_begin(&brain->core, &brain->term, (struct tg_mono){now_ms});
    brain->down = false;
}

static void brain_hear(int at, const struct message *message)
{
    struct queue_event event = message->event;
    if (message->kind == BOARD) {
        event = (struct queue_event){.kind = QUEUE_PEER};
        event.peer.generation = message->board.generation;
        event.peer.term = message->board.term;
        event.peer.instance = brains[message->from].instance;
        event.peer.index_end = message->board.index_end;
        event.peer.watermark = message->board.watermark;
        event.peer.present_at_open = message->board.present_at_open;
        event.peer.index_at_open = message->board.index_at_open;
    }
    feed(at, message->from, &event);
}

static void brain_tick(int at)
{
    struct queue_event pace = {.kind = QUEUE_PACE};
    struct queue_event stock = {.kind = QUEUE_STOCK};
    struct queue_event tick = {.kind = QUEUE_TICK};
    bool connected = !cut(&brains[at]);
    pace.pace.term = 1;
    pace.pace.pace_milli = 200000;
    stock.stock.known = true;
    stock.stock.gate_now_ms = now_ms;
    stock.stock.free = 100000;
    tick.tick.view.phase = now_ms > 5000 ? TG_PHASE_OPEN : TG_PHASE_SCHEDULED;
    tick.tick.view.generation = 1;
    tick.tick.view.inside_max = UINT64_MAX;
    tick.tick.view.opened = now_ms > 5000;
    tick.tick.connected = connected;
    tick.tick.jitter_ms = (uint32_t)roll(1000);
    if (connected) {
        feed(at, 0, &pace);
        feed(at, 0, &stock);
    }
    feed(at, 0, &tick);
}

static void edge_take(struct edge *edge, const struct message *message)
{
    const struct queue_grant *grant = &message->grant;
    edge->asked = false;
    if (grant->reason != TG_REASON_NONE || grant->term < edge->board_term) {
        return;
    }
    HOLDS(grant->count > 0 && grant->first + grant->count < INDEXES_MAX);
    for (uint64_t index = grant->first; index < grant->first + grant->count; index++) {
        HOLDS((taken[index / 8] >> (index % 8) & 1) == 0);
        taken[index / 8] |= (uint8_t)(1 << (index % 8));
    }
    leased_total += grant->count;
    edge->tickets += grant->count;
    edge->arrivals += grant->count;
    if (grant->first + grant->count > edge->index_end) {
        edge->index_end = grant->first + grant->count;
    }
}

static void edge_hear(struct edge *edge, const struct message *message)
{
    if (message->kind == GRANT) {
        if (edge->asked && now_ms - edge->asked_ms <= CALL_MS) {
            edge_take(edge, message);
        }
        return;
    }
    const struct queue_board *board = &message->board;
    if (board->term < edge->board_term) {
        return;
    }
    if (board->term > edge->board_term || board->watermark > edge->watermark) {
        HOLDS(board->watermark >= edge->watermark);
        edge->watermark = board->watermark;
    }
    edge->board_term = board->term;
    edge->present_at_open = board->present_at_open;
    edge->index_at_open = board->index_at_open;
}

static void edge_speak(int at)
{
    struct edge *edge = &edges[at];
    for (int to = 0; to < BRAINS; to++) {
        struct queue_event *event = &send(PRESENCE, BRAINS + at, to)->event;
        event->kind = QUEUE_PRESENCE;
        event->presence.edge = edge->name;
        event->presence.generation = 1;
        event->presence.index_end = edge->index_end;
        event->presence.tickets = edge->tickets;
        event->presence.arrivals = edge->arrivals;
        event->presence.board_term = edge->board_term;
        event->presence.board_watermark = edge->watermark;
        event->presence.present_at_open = edge->present_at_open;
        event->presence.index_at_open = edge->index_at_open;
    }
    edge->arrivals = 0;
}

/* A request goes to whichever brain the queue group picks, a frozen one included. */
static void edge_ask(int at)
{
    struct edge *edge = &edges[at];
    int to = (int)roll(BRAINS);
    if (cut(&brains[to]) || (edge->asked && now_ms - edge->asked_ms <= CALL_MS)) {
        return;
    }
    struct queue_event *event = &send(LEASE, BRAINS + at, to)->event;
    event->kind = QUEUE_LEASE;
    event->lease.edge = edge->name;
    event->lease.count = 1 + (uint32_t)roll(24);
    edge->asked = true;
    edge->asked_ms = now_ms;
}

/* A frozen one reads its mail when it thaws; of publications the server drops what is older than a
 * call. */
static bool kept_for_later(const struct message *message)
{
    return now_ms < brains[message->to].frozen_until &&
           (message->kind == LEASE || now_ms - message->sent_ms <= CALL_MS);
}

static void deliver_to_brain(const struct message *message)
{
    if (!cut(&brains[message->to]) && now_ms >= brains[message->to].frozen_until) {
        brain_hear(message->to, message);
    }
}

static void deliver(void)
{
    for (size_t i = 0; i < MESSAGES_MAX; i++) {
        struct message message = bus[i];
        bool to_brain = message.to < BRAINS;
        if (!message.used || message.due_ms > now_ms ||
            (to_brain && !cut(&brains[message.to]) && kept_for_later(&message))) {
            continue;
        }
        bus[i].used = false;
        if (to_brain) {
            deliver_to_brain(&message);
        } else {
            edge_hear(&edges[message.to - BRAINS], &message);
        }
    }
}

/* Indexes leased to an edge that restarts are known to the brain that leased them, and to nobody
 * else until a board tells them. Both at once is the loss that no rule can undo: what is known is
 * gone. */
static bool a_brain_remembers(void)
{
    for (int at = 0; at < BRAINS; at++) {
        if (queue_acts(&brains[at].core) && !cut(&brains[at]) &&
            now_ms >= brains[at].frozen_until) {
            return true;
        }
    }
    return false;
}

static void edge_restart(struct edge *edge)
{
    char name[sizeof edge->name];
    memcpy(name, edge->name, sizeof name);
    memset(edge, 0, sizeof *edge);
    memcpy(edge->name, name, sizeof name);
}

static void fault(struct choice *choice)
{
    struct brain *brain = &brains[choice_below(choice, BRAINS)];
    int64_t until = now_ms + (int64_t)choice_below(choice, FAULT_MS_MAX);
    switch (choice_below(choice, 8)) {
    case 0:
    case 1:
        brain->frozen_until = until;
        break;
    case 2:
        brain->cut_until = until;
        break;
    case 3:
        brain->down = true;
        brain->down_until = until;
        brain->frozen_until = 0;
        break;
    case 4:
        if (a_brain_remembers()) {
            edge_restart(&edges[choice_below(choice, EDGES)]);
        }
        break;
    default:
        break;
    }
}

static void step(size_t number)
{
    now_ms += STEP_MS;
    bool messages_first = roll(2) == 0;
    if (messages_first) {
        deliver();
    }
    for (int at = 0; at < BRAINS; at++) {
        if (brains[at].down && now_ms >= brains[at].down_until) {
            brain_start(at);
        }
        if (!brains[at].down && now_ms >= brains[at].frozen_until) {
            brain_tick(at);
        }
    }
    if (!messages_first) {
        deliver();
    }
    for (int at = 0; at < EDGES; at++) {
        if ((number + (size_t)at * 3) % 10 == 0) {
            edge_speak(at);
        }
        if (roll(4) == 0) {
            edge_ask(at);
        }
    }
}

static void heal(void)
{
    for (int at = 0; at < BRAINS; at++) {
        brains[at].frozen_until = 0;
        brains[at].cut_until = 0;
        if (brains[at].down) {
            brain_start(at);
        }
    }
}

static int active_brains(void)
{
    int active = 0;
    for (int at = 0; at < BRAINS; at++) {
        active += queue_acts(&brains[at].core) ? 1 : 0;
    }
    return active;
}

static void begin(struct choice *choice)
{
    memset(bus, 0, sizeof bus);
    memset(brains, 0, sizeof brains);
    memset(edges, 0, sizeof edges);
    memset(taken, 0, sizeof taken);
    dice = choice_u64(choice);
    now_ms = 1000;
    leased_total = 0;
    for (int at = 0; at < BRAINS; at++) {
        brain_start(at);
    }
    for (int at = 0; at < EDGES; at++) {
        snprintf(edges[at].name, sizeof edges[at].name, "edge-%d", at);
    }
}

static void run(size_t steps)
{
    for (size_t number = 0; number < steps; number++) {
        step(number);
    }
}

static void check_healed(uint64_t leased_before)
{
    HOLDS(active_brains() == 1);
    HOLDS(leased_total > leased_before);
    for (int at = 0; at < EDGES; at++) {
        HOLDS(edges[at].watermark > 0);
    }
}

static void property(struct choice *choice)
{
    begin(choice);
    for (size_t number = 0; number < FAULTY_STEPS; number += STEPS_PER_FAULT) {
        fault(choice);
        run(STEPS_PER_FAULT);
    }
    heal();
    run(CALM_STEPS / 2);
    uint64_t before = leased_total;
    run(CALM_STEPS);
    check_healed(before);
}

PROPERTY_MAIN(property, 60, 512)
