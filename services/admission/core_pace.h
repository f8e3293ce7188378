/* SPDX-License-Identifier: Apache-2.0
 * The law of the pace of one sale (docs/pace.md): what the purchase path says of itself moves it up
 * slowly and down at once; a signal from outside above its limit freezes it; after a freeze it
 * ramps. Pure, part of the core: integers only. */
#ifndef ADMISSION_CORE_PACE_H
#define ADMISSION_CORE_PACE_H

#include "lib/pure/clock.h"
#include "lib/pure/limit.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ADMISSION_TURN_MS = 1000,        /* the pace is judged this often */
    ADMISSION_COOL_MS = 3000,        /* what was slowed down is felt after about a poll of a page */
    ADMISSION_LOAD_STALE_MS = 1500,  /* told every 250 ms; silent for this long is unknown */
    ADMISSION_LOAD_REQUESTS_MIN = 5, /* a p99 of fewer says nothing */
    ADMISSION_PRESSURE_FULL = 1000,  /* per mille of the goal: above it, slower */
    ADMISSION_PRESSURE_EASY = 600,   /* below it, faster */
    ADMISSION_SLOW_MIN = 500,        /* per mille that is left after one step down, at least */
    ADMISSION_SLOW_MAX = 900,
    ADMISSION_CLIMB_SHARE = 12,    /* a step up is the pace divided by this, or the next if less */
    ADMISSION_CLIMB_PART = 50,     /* a step up is the sale's largest pace divided by this */
    ADMISSION_USED_PERMILLE = 700, /* of the pace that must have been used before it climbs */
    ADMISSION_RAMP_FROM = 250,     /* per mille of the pace at which a thaw begins */
    ADMISSION_SIGNAL_NAME_BYTES = 33,
    ADMISSION_SIGNAL_VALID_MS_MAX = 86400000
};

/* The daemon's settings; one struct for all sales. */
struct admission_goals {
    uint64_t edge_late_us;  /* an edge's loop, at worst */
    uint64_t gate_p99_us;   /* request for a hold to its answer, commit included */
    uint64_t ledger_p99_us; /* a statement */
    uint64_t error_permille;
    uint64_t in_flight;
    uint64_t database_cpu_milli; /* limits of the two signals that have one by themselves */
    uint64_t payment_errors_milli;
    int64_t ramp_ms;
    bool lanes; /* false: every ticket is live, whatever it was sealed as */
    uint64_t
        slow_one_in; /* minutes: in one of them a slow ticket whose turn has come gets a pass */
};

/* What sets the pace. */
enum admission_limiting {
    ADMISSION_BY_STATE,    /* frozen: the sale is not open, or its state is stale */
    ADMISSION_BY_STOCK,    /* frozen: the gate's stock is unknown */
    ADMISSION_BY_SIGNAL,   /* frozen: a signal from outside is above its limit */
    ADMISSION_BY_UNKNOWN,  /* held: a load or a signal is older than it may be */
    ADMISSION_BY_START,    /* as declared, nothing was judged yet */
    ADMISSION_BY_OPERATOR, /* an operator's word */
    ADMISSION_BY_EDGE,
    ADMISSION_BY_GATE,
    ADMISSION_BY_LEDGER,
    ADMISSION_BY_ERRORS,
    ADMISSION_BY_IN_FLIGHT,
    ADMISSION_BY_DEMAND,  /* the line does not use it up: no reason to climb */
    ADMISSION_BY_RISING,  /* nothing is against more: climbing */
    ADMISSION_BY_MAXIMUM, /* the sale's bound */
    ADMISSION_BY_BUDGET,  /* other sales use the same gate and ledger */
    ADMISSION_BY_RAMP     /* lately thawed */
};

enum admission_daemon { ADMISSION_EDGE, ADMISSION_RESERVE, ADMISSION_LEDGER, ADMISSION_DAEMONS };

struct admission_load {
    enum admission_daemon daemon;
    uint64_t p99_us; /* an edge: how late its loop was at worst */
    uint64_t requests;
    uint64_t errors;
    uint64_t in_flight;
};

struct admission_signal {
    char name[ADMISSION_SIGNAL_NAME_BYTES]; /* [a-z0-9_]{1,32}; "" = free row */
    uint64_t value_milli;
    uint64_t limit_milli; /* 0: the goal of this name */
    int64_t valid_ms;     /* 0: withdrawn */
    struct tg_mono heard;
};

/* Bounds and wishes that hold for a sale at this instant. */
struct admission_bounds {
    uint64_t operator_milli; /* 0: the operator set none */
    uint64_t start_milli;
    uint64_t min_milli;
    uint64_t max_milli;
    uint64_t budget_milli; /* this sale's part of what all sales may use */
};

struct admission_flow {
    bool open;      /* the sale is open and its stock known */
    bool scheduled; /* not opened yet */
    uint64_t watermark;
};

struct admission_pressure {
    enum admission_limiting by;
    uint64_t permille;    /* of the goal */
    uint64_t value, goal; /* microseconds, per mille or work, as `by` has it */
};

/* What one daemon told since the last turn: the worst of its instances. */
struct admission_heard {
    bool known;
    struct tg_mono at;
    struct admission_load load;
};

struct admission_control {
    const struct admission_goals *goals;
    struct admission_heard loads[ADMISSION_DAEMONS];
    struct admission_signal signals[TG_MAX_SIGNALS];
    uint64_t base_milli; /* 0: as declared */
    enum admission_limiting by;
    struct admission_pressure pressure; /* of the last turn */
    struct tg_mono turned, slowed;
    uint64_t watermark; /* as of the last turn */
    bool opening;       /* the sale has not been open: its opening is not a thaw */
    bool flowing;
    bool ramping;
    struct tg_mono thawed;
};

struct admission_pace {
    uint64_t term;
    uint64_t pace_milli;    /* people per 1000 s; 0 = freeze */
    uint64_t base_milli;    /* what the law holds, before ramp and budget */
    uint32_t ramp_permille; /* of the pace; 1000: no ramp */
    enum admission_limiting limiting;
    const char *signal; /* its name, or ""; borrowed from the control */
    uint64_t value,
        goal; /* of `limiting`: microseconds, per mille, work, thousandths of a signal */
};

/* Nothing is known yet. `goals` is borrowed. */
void admission_control_begin(struct admission_control *control,
                             const struct admission_goals *goals);

void admission_control_load(struct admission_control *control, struct tg_mono now,
                            const struct admission_load *load);
void admission_control_signal(struct admission_control *control, struct tg_mono now,
                              const struct admission_signal *signal);

/* Once per tick, and after every signal: freezes and thaws. */
void admission_control_flow(struct admission_control *control, struct tg_mono now,
                            struct admission_flow flow);
/* Whoever sets the pace: judges it if a second is over. */
void admission_control_turn(struct admission_control *control, struct tg_mono now,
                            const struct admission_bounds *bounds, uint64_t watermark);
/* A standby follows what the active one says. */
void admission_control_follow(struct admission_control *control, struct tg_mono now,
                              uint64_t base_milli, uint32_t ramp_permille);
/* An operator's new pace is meant now: no ramp any more. */
void admission_control_override(struct admission_control *control);

/* The pace this instant of a sale that is open with known stock; fills all but the term. */
struct admission_pace admission_control_pace(const struct admission_control *control,
                                             struct tg_mono now,
                                             const struct admission_bounds *bounds);
/* What the sale would use if it were alone. */
uint64_t admission_control_want(const struct admission_control *control,
                                const struct admission_bounds *bounds);

/* Divides `total` fairly: nobody gets more than it wants, and nobody less than another who wants
 * more. Whoever wants nothing is told what one more is sure of: it may thaw before the next
 * division. `wants` and `out_shares` have `count` entries. */
void admission_budget_share(const uint64_t *wants, size_t count, uint64_t total,
                            uint64_t *out_shares);

/* The names of the signals that have limits by themselves. */
#define ADMISSION_SIGNAL_DATABASE_CPU "database_cpu"
#define ADMISSION_SIGNAL_PAYMENT_ERRORS "payment_errors"

#endif
