/* SPDX-License-Identifier: Apache-2.0
 * When the checker reads what, and what it does about the outcome, as pure decisions: rounds per
 * sale (R1 -> P -> R2 -> judge), the pause an alarm calls for, and the export of the gate's log.
 * The comparisons are core_check.h. Never repairs anything. */
#ifndef INVARIANT_CORE_H
#define INVARIANT_CORE_H

#include "lib/pure/sale.h"
#include "services/invariant/core_check.h"
#include "services/invariant/core_log.h"

enum {
    INVARIANT_UNREACHABLE_TURNS =
        2,                    /* turns in a row without a connection: then Redis counts as lost */
    INVARIANT_DEAF_MS = 1250, /* the ledger tells its states every second: nothing for this long */
    INVARIANT_SPARED_TURNS = 4, /* after that, turns for Redis to be found again */
    INVARIANT_PAUSE_EVERY_MS = 1000,
    INVARIANT_EXPORT_EVERY_MS = 250,
    INVARIANT_LINGER_MAX = 1024,
    INVARIANT_ORPHANS_MAX = 16,
    INVARIANT_UNACKED_WARN_MS = 5000,
    INVARIANT_UNOBEYED_WARN_MS = 5000
};

/* What the round does next. R1 and R2 walk the shards one after the other; the order within is the
 * proof's (core_check.h). */
enum invariant_step {
    INVARIANT_REST,
    INVARIANT_SERVER, /* INFO: which Redis is this */
    INVARIANT_LOOK1,
    INVARIANT_HEAD, /* the log's place is not known: ask the ledger for the last stored entry */
    INVARIANT_LOG,  /* stream from the place up to the look's sequence */
    INVARIANT_FILL, /* entries the stream no longer has, from the ledger */
    INVARIANT_HELD1,
    INVARIANT_UNACKED1, /* after held: whatever is held and not here was acknowledged */
    INVARIANT_SETTLED1,
    INVARIANT_RELEASED1,
    INVARIANT_BUYERS, /* of every shard, after all of R1 and before R2: P may be read meanwhile */
    INVARIANT_LEDGER, /* P, unless it was read during BUYERS */
    INVARIANT_HELD2,
    INVARIANT_SETTLED2,
    INVARIANT_RELEASED2,
    INVARIANT_FREE2, /* the free maps of every item */
    INVARIANT_LOOK2,
    INVARIANT_JUDGE
};

/* How a step ended. */
enum invariant_result {
    INVARIANT_READ,    /* done: go on */
    INVARIANT_LACKING, /* LOOK1: no armed gate, or not readable; LOG: the stream starts too late, or
                          ends too early; FILL: the ledger does not have what the stream lacked */
    INVARIANT_TORN,    /* LOG, FILL: an entry contradicts the one before it, or the look */
    INVARIANT_GARBAGE, /* Redis says a key is of another type */
    INVARIANT_UNREAD   /* no answer, or one that is unknown: the round is void */
};

struct invariant_round {
    enum invariant_step step;
    uint32_t shard;
    uint32_t number; /* answers to another round are ignored */
    uint64_t epoch, generation;
    uint32_t shards;
    struct tg_mono begun;
    uint32_t looked; /* shards whose first look was read */
    bool log_torn, garbage, complete;
    bool ledger_asked, ledger_read; /* P, during BUYERS */
};

/* Ids that should have moved on by now. */
struct invariant_linger {
    struct tg_mono since;
    uint32_t count;
    uint8_t ids[INVARIANT_LINGER_MAX][INVARIANT_ID_BYTES];
};

/* The pause an alarm calls for: repeated until the ledger shows it. */
struct invariant_pause {
    bool wanted;
    char id[TG_BASE32_ID_LENGTH + 1]; /* "" = none yet */
    char cause[128];
    uint64_t generation;
    struct tg_mono next; /* next repetition */
};

/* Pauses that the gate has and the ledger lacks: the gate's own doubts, and those whose issuer died
 * before the ledger heard of them. A resume names only what the ledger knows. */
struct invariant_orphans {
    uint32_t count;
    char ids[INVARIANT_ORPHANS_MAX][TG_BASE32_ID_LENGTH + 1];
};

/* One sale's state. Zero it to begin. */
struct invariant_sale {
    struct invariant_round round;
    struct tg_mono next_round;
    uint32_t unreachable_turns;
    uint32_t spared_turns; /* not to be counted: the checker itself was cut off just now */
    struct invariant_log logs[INVARIANT_SHARDS_MAX];
    struct invariant_pause pause;
    struct invariant_orphans orphans; /* of the last look */
    struct invariant_linger unacked, unobeyed;
    uint64_t last_epoch; /* the logs' */
};

enum invariant_turn { INVARIANT_TURN_NONE, INVARIANT_TURN_ROUND, INVARIANT_TURN_LOST };

/* A turn of the clock: begins a round when one is due and the ledger says the gate is armed (also
 * scheduled, also paused; not closed). `reachable`: Redis has a usable connection. ROUND: go on
 * with round.step. LOST: Redis has been out of reach for INVARIANT_UNREACHABLE_TURNS turns and at
 * every look between them: alarm G. Turns are counted, not clocked, so that a checker that was
 * stopped itself accuses nobody; nor does one that does not hear the ledger either, being cut off
 * itself: the lease closes the gate.
 */
enum invariant_turn invariant_turn(struct invariant_sale *sale, const struct tg_sale *view,
                                   struct tg_mono now, bool reachable);

/* The step ended like this; round.step and round.shard say what comes next. REST: the round is
 * void. */
void invariant_advance(struct invariant_sale *sale, enum invariant_result result);

/* The round is over. */
void invariant_rest(struct invariant_sale *sale);

/* An alarm: wants the sale paused. `new_id` is used unless a pause of ours is still on its way or
 * active. */
void invariant_alarm(struct invariant_sale *sale, const struct tg_sale *view, const char *new_id,
                     const char *cause);

/* True when the pause command is to be sent (again) now. */
bool invariant_pause_due(struct invariant_sale *sale, const struct tg_sale *view,
                         struct tg_mono now);

/* Whether this pause of the gate is unknown to the ledger, and was in the look before too (a pause
 * on its way reaches the gate first): then it is to be carried to the ledger under its own id.
 * After every pause of a look invariant_orphans_end. */
bool invariant_orphan(const struct invariant_sale *sale, const struct tg_sale *view,
                      const char *pause_id);
void invariant_orphans_end(struct invariant_sale *sale, const struct tg_sale *view,
                           const struct tg_pause *pauses, uint32_t count);

/* Text of an alarm: "A: recorded in the ledger, unknown to the gate: res_..., res_..." for every
 * failed check. At most `capacity` bytes with the NUL. Returns the length. */
size_t invariant_detail(const struct invariant_judgement *judgement, char *out_text,
                        size_t capacity);

/* How many ids are in `linger` since `limit_ms` or longer and in `ids` too; then `ids` becomes the
 * new set to watch. `ids` sorted, `count` at most INVARIANT_LINGER_MAX (more are not watched).
 * out_id: one of them. */
uint32_t invariant_linger(struct invariant_linger *linger, struct tg_mono now, int64_t limit_ms,
                          const uint8_t (*ids)[INVARIANT_ID_BYTES], uint32_t count,
                          uint8_t out_id[INVARIANT_ID_BYTES]);

#endif
