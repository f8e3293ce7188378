/* SPDX-License-Identifier: Apache-2.0
 * One schedule: daemons, bus, clocks, stores, people and faults of one sale, stepped by one seed.
 * Everything that happens is an event in a queue ordered by time; nothing else decides anything.
 * Times: `now` is true time in ms; every clock is `now` plus an offset of its own. */
#ifndef SIM_SIM_H
#define SIM_SIM_H

#include "services/invariant/core.h"
#include "services/reserve/core.h"
#include "services/reserve/core_care.h"
#include "services/sweeper/core.h"
#include "tests/sim/gate_script.h"
#include "tests/sim/ledger.h"

enum sim_fault {
#define SIM_FAULT(id, name, percent, what) FAULT_##id,
#include "tests/sim/faults.def"
#undef SIM_FAULT
    FAULT_COUNT
};
enum sim_mutant {
    MUTANT_NONE,
#define SIM_MUTANT(id, name, seeds, what) MUTANT_##id,
#define SIM_SCRIPT_MUTANT(id, name, seeds, script, from, to) MUTANT_##id,
#include "tests/sim/mutants.def"
#undef SIM_MUTANT
#undef SIM_SCRIPT_MUTANT
    MUTANT_COUNT
};

enum {
    NODE_RESERVE = 0,
    NODE_LEDGER = 2,
    NODE_SWEEPER = 4,
    NODE_INVARIANT = 6,
    NODE_PEOPLE = 8,
    NODE_OPERATOR = 9,
    NODES = 10,
    TWO = 2 /* of every daemon; and of Redis */
};

enum {
    SIM_BUYERS = 6,
    SIM_PLACES = 2, /* per buyer */
    SIM_PAUSE_TEXTS = 96,
    SIM_WINDOW_MS = 1500, /* of a pass */
    SIM_CALL_MS = 400,
    SIM_FLOWS = 40,
    SIM_JOBS = 24,
    SIM_ENTRIES = 160
};
#define SIM_EPOCH_MS INT64_C(1800000000000) /* true time 0 as Unix time */

/* ---- chance ---- */

struct sim_chance {
    uint64_t state;
};
uint64_t sim_draw(struct sim_chance *chance);
/* 0 .. below - 1 */
uint32_t sim_below(struct sim_chance *chance, uint32_t below);
int64_t sim_between(struct sim_chance *chance, int64_t low, int64_t high);
bool sim_percent(struct sim_chance *chance, uint32_t percent);

/* ---- messages ---- */

enum sim_message {
    MESSAGE_HOLD,
    MESSAGE_RECORD,
    MESSAGE_READ,
    MESSAGE_CONFIRM,
    MESSAGE_EXTEND,
    MESSAGE_CANCEL,
    MESSAGE_DUE,
    MESSAGE_EXPIRE,
    MESSAGE_OBEY,
    MESSAGE_OBEYED,
    MESSAGE_GATE_DUE,
    MESSAGE_ATTEST,
    MESSAGE_TRIM,
    MESSAGE_CHECK,
    MESSAGE_LOG,
    MESSAGE_SNAPSHOT,
    MESSAGE_ARMED,
    MESSAGE_CONTROL,
    MESSAGE_STATE
};

struct sim_state {
    enum tg_phase phase;
    uint64_t epoch, control_sequence;
    bool armed;
    char run_id[41], replication_id[41];
    int64_t ledger_now_ms;
    uint32_t pause_count, lifted_count;
    sim_pause pauses[SIM_PAUSES], lifted[SIM_LIFTED];
};

union sim_body {
    struct {
        uint16_t id;
        bool other_body;
        uint64_t window;
    } hold;
    struct {
        enum tg_reason reason;
        bool replayed;
    } held;
    struct ledger_hold record;
    struct {
        uint16_t id;
        uint32_t payment;
    } reservation; /* read, confirm, extend, cancel */
    struct ledger_answer answer;
    struct {
        uint64_t after;
    } due;
    struct ledger_due found;
    struct ledger_expiry expiry;
    struct {
        enum tg_reason reason;
        uint32_t final;
    } verdicts;
    struct {
        struct ledger_orders orders;
        int64_t deadline_ms; /* of an extension */
    } obey;
    struct {
        enum tg_reason reason;
        struct ledger_orders orders;
        uint8_t obedience[SIM_PAGE]; /* enum sweeper_obedience */
    } results;
    struct {
        enum tg_reason reason;
        uint64_t epoch;
        uint8_t count;
        bool full;
        struct ledger_hold holds[SIM_PAGE];
    } gate_due;
    struct {
        uint64_t epoch;
        int64_t gate_time_ms;
        char run_id[41], replication_id[41];
    } attest;
    struct {
        uint64_t epoch, stored;
    } trim;
    struct {
        uint64_t epoch;
        enum ledger_check outcome;
    } check;
    struct {
        uint64_t epoch, stored;
        uint32_t count;
        struct ledger_log entries[SIM_PAGE];
    } log;
    struct {
        uint64_t epoch, after;
    } snapshot;
    struct ledger_page page;
    struct {
        uint64_t epoch;
        char run_id[41], replication_id[41];
    } armed;
    struct ledger_judge control;
    struct sim_state state;
    enum tg_reason reason; /* of any other reply */
};

/* Where a reply goes to. */
struct sim_return {
    uint8_t node;
    uint16_t call;
    uint32_t number;
    enum sim_message kind;
};

struct sim_packet {
    enum sim_message kind;
    uint8_t from, to;
    bool is_reply, no_answer;
    struct sim_return back; /* number 0: nobody waits */
    uint64_t token;
    union sim_body body;
};

/* ---- the daemons ---- */

struct sim_connection {
    bool up, lost; /* lost: a command of a broken connection was not run, so no later one is */
    uint8_t gate;
    uint32_t generation;
    int64_t last_run; /* commands run in the order they were sent */
    char run_id[41], replication_id[41];
};

struct sim_node {
    bool exists, up, cut;
    uint32_t incarnation;
    int64_t mono_offset;
    struct sim_connection connection; /* reserve and invariant */
    char instance[16];
};

struct sim_carried {
    struct reserve_flow flow;
    uint32_t number; /* 0: free */
    uint16_t id;
    uint64_t epoch;
    struct sim_return back; /* number 0: re-sent */
};

/* Orders or lapsed holds asked of the gate, answered when all are there. */
struct sim_job {
    uint32_t number; /* 0: free */
    enum sim_message kind;
    struct sim_return back;
    uint32_t outstanding, pages;
    uint64_t epoch;
    char cursor[24];
    union sim_body reply;
};

struct reserve_node {
    struct tg_sale view;
    bool stated;
    int64_t ledger_now_ms;
    struct reserve_care care;
    uint32_t numbers, resends;
    bool resend_busy;
    uint64_t resend_epoch;
    char resend_cursor[24];
    struct sim_carried carried[SIM_FLOWS];
    struct sim_job jobs[SIM_JOBS];
};

struct invariant_node {
    struct tg_sale view;
    bool stated, exporting;
    int64_t ledger_now_ms;
    struct invariant_sale core;
    struct invariant_look look1, look2;
    struct invariant_server server;
    struct invariant_ledger ledger;
    uint32_t cursor, export_number;
    uint64_t exported, export_epoch;
    sim_pause pause;
    uint16_t pause_command;
    uint64_t naive_live; /* what a naive sum would have counted */
    uint64_t free_tag;
    size_t r1_count, r2_count, claim_count, row_count, holding_count;
    struct invariant_entry r1[SIM_ENTRIES], r2[SIM_ENTRIES], claims[SIM_ENTRIES];
    struct invariant_row rows[SIM_IDS * 2];
    struct invariant_holding holdings[SIM_IDS];
};

/* ---- people ---- */

/* A reservation by its number: who asks for what under which idempotency key. */
struct sim_id {
    char text[TG_RESERVATION_ID_LENGTH + 1];
    uint8_t bytes[16];
    uint64_t key;
    uint8_t buyer, place, any, item;
    int8_t named;    /* a unit, or -1 */
    uint16_t intent; /* the act it stands for; a retry stays the same act */
    bool told;       /* a 201 was given */
    bool sold;       /* a confirmation was told */
    bool returned;   /* the shop asked to cancel it */
};

enum buyer_stage { BUYER_IDLE, BUYER_ASKING, BUYER_HOLDING, BUYER_PAYING, BUYER_GONE };
struct sim_buyer {
    enum buyer_stage stage;
    uint16_t id;
    uint32_t tries, asked;
    uint32_t payment;
};

/* ---- stores ---- */

struct sim_redis {
    bool up, primary, out_of_memory;
    uint32_t process;
    int64_t clock_offset;
    char run_id[41], replication_id[41];
    struct memory_redis data;
};

/* ---- events ---- */

enum sim_event_kind {
    EVENT_DELIVER,    /* a: packet */
    EVENT_UNANSWERED, /* a: call, b: number */
    EVENT_GATE_RUN,   /* a: gate call */
    EVENT_GATE_REPLY, /* a: gate call */
    EVENT_TICK,       /* node; a: which, b: incarnation */
    EVENT_READ,       /* node: next read of a round; a: round, b: incarnation */
    EVENT_EXPORT,     /* node; b: incarnation */
    EVENT_BUYER,      /* a: buyer */
    EVENT_FAULT,      /* a: fault */
    EVENT_UNDO,       /* a: fault, node */
    EVENT_RESTART,    /* node, b: incarnation */
    EVENT_CONNECT,    /* node, b: incarnation */
    EVENT_OPERATOR,   /* repeats pauses; heals */
    EVENT_HEAL,
    EVENT_KINDS
};
struct sim_event {
    int64_t at;
    uint32_t order;
    uint8_t kind, node;
    uint16_t a;
    uint32_t b;
};

/* Callbacks of gate calls. */
enum sim_gate_use {
    USE_HOLD,
    USE_ACKNOWLEDGE,
    USE_PAUSE,
    USE_LOOK,
    USE_BEGIN,
    USE_PAGE,
    USE_FINISH,
    USE_ARM,
    USE_LIFT,
    USE_OBEY,
    USE_DUE,
    USE_ATTEST,
    USE_TRIM,
    USE_RESEND
};
struct sim_gate_call {
    uint8_t node, gate, script, use;
    uint32_t incarnation, connection, process;
    uint64_t token;
    bool ran;
    int key_count, count;
    struct redis_word *words;
    struct reserve_answer answer;
};

struct sim_call {
    bool open;
    uint8_t node;
    uint32_t number, incarnation;
    enum sim_message kind;
    uint64_t token;
};

enum {
    SIM_PACKETS = 4096,
    SIM_CALLS = 2048,
    SIM_GATE_CALLS = 2048,
    SIM_QUEUE = 8192,
    SIM_TIMEOUTS = 8192, /* a power of two */
    SIM_TEXT_BYTES = 4 << 20,
    SIM_FAILURE_BYTES = 400
};

struct sim {
    uint64_t seed;
    uint32_t faults; /* bits: on in this schedule */
    enum sim_mutant mutant;
    bool trace;
    /* ---- zeroed for every schedule, up to `stale` ---- */
    int64_t now;
    uint32_t orders, events;
    bool failed, healing, over;
    bool attentive; /* the operator makes it run again also while things fail */
    char failure[SIM_FAILURE_BYTES];
    uint64_t excused_epoch; /* alarms and doubts of epochs up to this one have a cause */
    struct sim_chance chance, bus_chance, people_chance, fault_chance[FAULT_COUNT];
    uint32_t loss_percent, late_percent, reorder_percent, duplicate_percent;
    uint32_t crash_per_mille;
    int64_t gate_ms; /* longest way of a command to Redis */
    int primary;
    int64_t calm_until, heal_at, end_at; /* before calm_until nothing fails: the sale opens */
    int64_t ledger_offset;
    struct ledger ledger;
    struct sim_node nodes[NODES];
    struct sim_buyer buyers[SIM_BUYERS];
    uint32_t buyer_count, id_count, intents, payments, pause_texts, commands, call_numbers;
    struct sim_id ids[SIM_IDS];
    char pause_text[SIM_PAUSE_TEXTS][TG_BASE32_ID_LENGTH + 1];
    struct ledger_judge operator_commands[SIM_COMMANDS];
    uint16_t operator_pauses[SIM_PAUSE_TEXTS]; /* command numbers, repeated until shown */
    uint32_t operator_pause_count;
    struct sim_state operator_knows;
    int64_t rebuilt_at;
    int64_t proved_until_ms[SIM_EPOCHS]; /* by clean rounds: look's time + lease */
    bool corrupted, alarmed_since;
    uint32_t rounds_since;
    const char *corruption;
    uint32_t run_ids;
    uint16_t packet_free, call_free, gate_call_free; /* index + 1 */
    uint32_t packet_used, call_used, gate_call_used, queue_count, timeout_first, timeout_last;
    size_t text_used;
    int stale;
    /* ---- set up by whoever uses them ---- */
    struct sim_redis redis[TWO];
    struct memory_redis earlier; /* a snapshot, for restarts that lose a suffix */
    int64_t earlier_at;
    struct reserve_node reserves[TWO];
    struct sweeper_sale sweepers[TWO];
    uint32_t sweeper_page[TWO];
    struct invariant_node invariants[TWO];
    struct sim_event queue[SIM_QUEUE];
    struct sim_event timeouts[SIM_TIMEOUTS]; /* all calls wait equally long: a ring, in order */
    struct sim_packet packets[SIM_PACKETS];
    struct sim_call calls[SIM_CALLS];
    struct sim_gate_call gate_calls[SIM_GATE_CALLS];
    uint16_t packet_next[SIM_PACKETS], call_next[SIM_CALLS], gate_call_next[SIM_GATE_CALLS];
    char text[SIM_TEXT_BYTES];
};
extern struct sim sim;

/* Over all schedules of this process. */
struct sim_totals {
    uint64_t schedules, events, events_least, corruptions, rounds, holds, sold;
    uint64_t faults[FAULT_COUNT];
};
extern struct sim_totals sim_totals;

/* ---- sim_queue.c ---- */
void sim_at(int64_t at, enum sim_event_kind kind, uint8_t node, uint16_t a, uint32_t b);
bool sim_next(struct sim_event *out_event);
/* Room for `length` bytes until the end of the schedule. */
char *sim_room(size_t length);
bool sim_on(enum sim_fault fault);
void sim_occurred(enum sim_fault fault);
__attribute__((format(printf, 1, 2))) void sim_fail(const char *format, ...);
__attribute__((format(printf, 1, 2))) void sim_note(const char *format, ...);
/* Only formats when the schedule is traced. */
#define SIM_NOTE(...)                                                                              \
    do {                                                                                           \
        if (sim.trace) {                                                                           \
            sim_note(__VA_ARGS__);                                                                 \
        }                                                                                          \
    } while (0)
/* The last `count` of them. */
void sim_print_notes(uint32_t count);

/* ---- sim_bus.c ---- */
uint8_t sim_kind(uint8_t node); /* NODE_RESERVE, ... */
const char *sim_node_name(uint8_t node);
struct tg_mono sim_mono(uint8_t node);
int64_t sim_ledger_now(void);
int64_t sim_gate_now(int gate);
void bus_call(uint8_t node, enum sim_message kind, const union sim_body *body, uint64_t token);
void bus_reply(uint8_t node, const struct sim_return *back, const union sim_body *body);
void bus_publish(uint8_t node, enum sim_message kind, const union sim_body *body);
void bus_deliver(uint16_t packet);
/* Calls that nobody answered by now end. */
void bus_timeouts(int64_t before);
void bus_unanswered(uint16_t call, uint32_t number);
/* The daemon dies here, if it is to: the rest of what it was about to do is lost. */
bool sim_dies(uint8_t node);
void sim_crash(uint8_t node, int64_t for_ms);
void sim_start(uint8_t node);

/* ---- sim_gate.c ---- */
const struct reserve_keys *sim_keys(uint64_t epoch);
void sim_keys_open(void);
void gate_call(uint8_t node, const struct reserve_call *call, enum sim_gate_use use,
               uint64_t token);
void gate_call_run(uint16_t index);
void gate_call_reply(uint16_t index);
/* The checker's own look, at once. */
void gate_check(int gate, uint64_t epoch, struct reserve_answer *out_answer);
void gate_connect(uint8_t node);
void gate_break(uint8_t node);
void gate_new_run(int gate);
int sim_id_of(const char *text, size_t length);
const char *sim_pause_text(sim_pause pause);
sim_pause sim_new_pause(void);
sim_pause sim_conflict_pause(uint16_t id);

/* ---- one file each ---- */
void reserve_start(uint8_t node);
void reserve_request(uint8_t node, const struct sim_packet *packet);
void reserve_replied(uint8_t node, const struct sim_packet *packet);
void reserve_gate_answered(uint8_t node, const struct sim_gate_call *call);
void reserve_tick(uint8_t node, uint16_t which);
void reserve_hold_begin(uint8_t node, const struct sim_packet *packet);
void reserve_hold_answered(uint8_t node, const struct sim_gate_call *call);
void reserve_hold_replied(uint8_t node, const struct sim_packet *packet);
void reserve_resend_tick(uint8_t node);
void reserve_resend_answered(uint8_t node, const struct reserve_answer *answer);
void reserve_care_answered(uint8_t node, const struct sim_gate_call *call);
void reserve_care_replied(uint8_t node, const struct sim_packet *packet);
void reserve_care_turn(uint8_t node);
void reserve_close_gate(uint8_t node, sim_pause pause, const char *cause);
void reserve_write_pauses(uint8_t node);
bool reserve_gate_name(uint8_t node, struct reserve_gate_name *out_gate);
void reserve_job_begin(uint8_t node, const struct sim_packet *packet);
void reserve_job_answered(uint8_t node, const struct sim_gate_call *call);
bool view_take(struct tg_sale *view, bool *stated, int64_t *ledger_now_ms,
               const struct sim_state *state, struct tg_mono now);

void ledger_node_start(uint8_t node);
void ledger_request(uint8_t node, const struct sim_packet *packet);
void ledger_node_tick(uint8_t node);
void ledger_told(uint8_t node);

void sweeper_start(uint8_t node);
void sweeper_tick(uint8_t node);
void sweeper_replied(uint8_t node, const struct sim_packet *packet);

void invariant_start(uint8_t node);
void invariant_tick(uint8_t node);
void invariant_read(uint8_t node, uint16_t round);
void invariant_export(uint8_t node);
void invariant_replied(uint8_t node, const struct sim_packet *packet);
void invariant_heard(uint8_t node, const struct sim_packet *packet);

void people_start(void);
void people_turn(uint16_t buyer);
void people_replied(const struct sim_packet *packet);

void operator_turn(void);
void operator_heard(const struct sim_packet *packet);
void operator_pause(void);
void operator_resume(void);
void operator_rebuild(void);
void operator_close(void);
void operator_replay(void);
uint16_t operator_command(const struct ledger_judge *judge);

void fault_plan(void);
void fault_strike(enum sim_fault fault);
void fault_undo(enum sim_fault fault, uint8_t node);
void fault_heal(void);
bool fault_corrupt(void);

/* ---- oracles ---- */
void oracle_ledger(void);
void oracle_hold(const struct sim_gate_call *call, const struct memory_redis *data,
                 const struct reserve_answer *answer);
void oracle_gate(int gate, const struct sim_gate_call *call, const struct reserve_answer *answer);
void oracle_answer(uint16_t id, const struct reserve_outcome *outcome);
void oracle_alarm(uint8_t node, const struct invariant_judgement *judgement);
void oracle_refused(enum tg_reason reason, uint16_t id);
bool oracle_excused(uint64_t epoch);
void oracle_excuse(void);
/* NULL: everything has ended well. Otherwise what has not. */
const char *oracle_unsettled(void);

/* ---- schedule.c ---- */
void schedule_run(uint64_t seed, uint32_t fault_mask, bool trace);

#endif
