/* SPDX-License-Identifier: Apache-2.0
 * Write orders: hold, record, acknowledge, confirm, settle, expire (with tombstone), release. README.md says how to read it.
 *
 * What a daemon remembers between two stores is treated like a message on the bus, and a message once sent may be
 * delivered at any later time, any number of times, or never. That covers loss, duplication, reordering, delay, two
 * sweepers at once and a crash of any daemon between any two steps; only the two stores remember. Deadlines may pass at
 * any time (deadline.pml has the clocks). */
#include "must.h"
#ifndef RES
#define RES 3
#endif
#ifndef UNITS
#define UNITS 2 /* 1 or 2 */
#endif

#define NONE 0
#define HELD 1      /* gate */
#define SETTLED 2
#define RELEASED 3
#define PENDING 1   /* ledger */
#define CONFIRMED 2
#define EXPIRED 3

PROPERTY(one_owner);
PROPERTY(no_conflict);
PROPERTY(conserved);
PROPERTY(verdict_first);
PROPERTY(nothing_stranded);
PROPERTY(told_is_committed);
PROPERTY(one_per_request);
PROPERTY(comes_to_rest);

/* the gate */
byte gate[RES], unit[RES];
bool unacked[RES], taken[UNITS];
/* the ledger */
byte row[RES];
bool obeyed[RES];
/* messages */
bool recording[RES], acknowledging[RES], burying[RES], settling[RES], releasing[RES];
/* the client heard 201 */
bool told[RES];

hidden byte k, u, n, m;

/* Which request of a buyer a reservation belongs to: the id is derived from it, so a retry meets its own. */
#ifdef MUT_NEW_ID_ON_RETRY
#define REQUEST(i) ((i) == RES - 1 -> 0 : (i))
#else
#define REQUEST(i) (i)
#endif

inline check() {
    d_step {
        u = 0;
        do
        :: u < UNITS ->
            n = 0; m = 0; k = 0;
            do
            :: k < RES ->
                if
                :: unit[k] == u && (row[k] == PENDING || row[k] == CONFIRMED) -> n++
                :: else
                fi;
                if
                :: unit[k] == u && (gate[k] == HELD || gate[k] == SETTLED) -> m++
                :: else
                fi;
                k++
            :: else -> break
            od;
            MUST(one_owner, n <= 1);
            MUST(conserved, m == taken[u]);
            u++
        :: else -> break
        od;
        n = 0; k = 0;
        do
        :: k < RES ->
            MUST(verdict_first, gate[k] != RELEASED || row[k] == EXPIRED);
            MUST(verdict_first, gate[k] != SETTLED || row[k] == CONFIRMED);
            MUST(nothing_stranded, row[k] == NONE || gate[k] != NONE);
            MUST(nothing_stranded, gate[k] != HELD || unacked[k] || row[k] != NONE);
            MUST(nothing_stranded, !obeyed[k] || gate[k] == SETTLED || gate[k] == RELEASED);
            MUST(told_is_committed, !told[k] || row[k] != NONE);
            if
            :: REQUEST(k) == 0 && (gate[k] == HELD || gate[k] == SETTLED) -> n++
            :: else
            fi;
            k++
        :: else -> break
        od;
        MUST(one_per_request, n <= 1);
        k = 0; u = 0; n = 0; m = 0
    }
}

/* Everything that can happen to reservation i. Guards let nothing happen that changes nothing, so that when nothing more
 * can happen everything that was sent has been delivered. */
active [RES] proctype Reservation() {
    byte i;
    i = _pid;
    do
    :: atomic { /* hold.lua: any free unit; a refusal changes nothing */
        gate[i] == NONE && !(taken[0] && taken[UNITS - 1]) ->
        if
        :: !taken[0] -> unit[i] = 0
        :: !taken[UNITS - 1] -> unit[i] = UNITS - 1
        fi;
        taken[unit[i]] = 1; gate[i] = HELD; unacked[i] = 1;
#ifdef MUT_ANSWER_BEFORE_RECORD
        told[i] = 1;
#endif
#ifdef MUT_ACKNOWLEDGE_BEFORE_RECORD
        acknowledging[i] = 1;
#endif
        check() }
    :: atomic { /* services/reserve/core.c: record, at once or by service_hold.c's resend of unacked */
        gate[i] == HELD && unacked[i] && !burying[i] && !recording[i] -> recording[i] = 1 }
    :: atomic { /* 0003_record.sql, record_batch */
#ifdef MUT_RECORD_REVIVES
        recording[i] && (row[i] == NONE || row[i] == EXPIRED && !obeyed[i]) ->
#else
        recording[i] && row[i] == NONE ->
#endif
#ifdef INDEX
        k = 0; n = 0;
        do
        :: k < RES ->
            if
            :: k != i && unit[k] == unit[i] && (row[k] == PENDING || row[k] == CONFIRMED) -> n++
            :: else
            fi;
            k++
        :: else -> break
        od;
        MUST(no_conflict, n == 0);
        k = 0; n = 0;
#endif
        row[i] = PENDING; check() }
    :: atomic { /* answer recorded or already: core.c, grant */
        recording[i] && (row[i] == PENDING || row[i] == CONFIRMED) && !acknowledging[i] -> acknowledging[i] = 1 }
    :: atomic {
        recording[i] && (row[i] == PENDING || row[i] == CONFIRMED) && !told[i] -> told[i] = 1; check() }
    :: atomic { /* acknowledge.lua */
        acknowledging[i] && gate[i] == HELD && unacked[i] -> unacked[i] = 0; check() }
    :: atomic { /* 0004_verdicts.sql, confirm_reservation */
        row[i] == PENDING -> row[i] = CONFIRMED; check() }
    :: atomic { /* 0004_verdicts.sql, expire_ids: the sweeper's CARRY lane */
        row[i] == PENDING -> row[i] = EXPIRED; check() }
    :: atomic { /* due.lua, reserve.due: the sweeper's BURY lane, once the hold's own time is over; then nothing is sent again */
        gate[i] == HELD && unacked[i] && !burying[i] -> burying[i] = 1 }
#ifdef MUT_NO_TOMBSTONE
    :: atomic { burying[i] && row[i] == NONE && !releasing[i] -> releasing[i] = 1 } /* "missing: release" */
#elif !defined(MUT_NOBODY_BURIES)
    :: atomic { /* 0004_verdicts.sql, expire_reservations: the tombstone */
        burying[i] && row[i] == NONE -> row[i] = EXPIRED; check() }
#endif
    :: atomic { /* 0004_verdicts.sql, due_work: orders until obeyed */
        row[i] == CONFIRMED && !obeyed[i] && !settling[i] -> settling[i] = 1 }
    :: atomic {
        row[i] == EXPIRED && !obeyed[i] && !releasing[i] -> releasing[i] = 1 }
#ifdef MUT_NO_VERDICT
    :: atomic { gate[i] == HELD && !releasing[i] -> releasing[i] = 1 } /* "looks expired: release" */
#endif
    :: atomic { /* settle.lua */
        settling[i] && gate[i] == HELD -> gate[i] = SETTLED; unacked[i] = 0; check() }
    :: atomic { /* release.lua */
#ifdef MUT_RELEASE_TWICE
        releasing[i] && (gate[i] == HELD || gate[i] == RELEASED && taken[unit[i]]) ->
#else
        releasing[i] && gate[i] == HELD ->
#endif
        gate[i] = RELEASED; unacked[i] = 0; taken[unit[i]] = 0; check() }
    :: atomic { /* 0004_verdicts.sql, obeyed_orders: the gate said done or already */
#ifdef MUT_OBEYED_UNSEEN
        (settling[i] && row[i] == CONFIRMED || releasing[i] && row[i] == EXPIRED) && !obeyed[i] ->
#else
        (settling[i] && gate[i] == SETTLED && row[i] == CONFIRMED ||
         releasing[i] && gate[i] == RELEASED && row[i] == EXPIRED) && !obeyed[i] ->
#endif
        obeyed[i] = 1; check() }
    od
}

/* Nothing more can happen: every hold came to a verdict, the gate obeyed it, the ledger knows. */
active proctype Rest() {
    timeout ->
    d_step {
        k = 0;
        do
        :: k < RES ->
            MUST(comes_to_rest, gate[k] != HELD);
            MUST(comes_to_rest, row[k] == NONE || obeyed[k]);
            k++
        :: else -> break
        od
    }
}
