/* SPDX-License-Identifier: Apache-2.0
 * The checker's round: R1, P, R2 as services/invariant/round.c reads them, one key after the other and one reservation after
 * the other, while everything moves; the checks of core_check.c. Without FAULT no round may alarm. With FAULT=n one corruption
 * happens at any time; a round that found it there from its begin to its end must alarm. */
#include "must.h"
#ifndef RES
#define RES 2
#endif
#define UNITS RES
#define NONE 0
#define HELD 1      /* gate */
#define SETTLED 2
#define RELEASED 3
#define GONE 4      /* somebody deleted it */
#define PENDING 1   /* ledger */
#define CONFIRMED 2
#define EXPIRED 3
#define CANCELLED 4
#define IN_UNACKED 8

PROPERTY(no_false_alarm);
PROPERTY(lasting_fault_is_found);

byte gate[RES], row[RES];
bool unacked[RES];
byte stock = UNITS, taken;      /* taken: held + settled, as counted */
bool edited[RES], corrupted;
bool obeyed[RES];               /* ledger: the gate did what the row's state orders */

#define ENDED(s) ((s) == EXPIRED || (s) == CANCELLED)
#define PAID(s) ((s) == CONFIRMED || (s) == CANCELLED)
/* Is the gate where an obeyed row put it? `places` holds a bit for each. */
#define DONE(s, places) ((places) & 1 << (RELEASED - 1) || (s) == CONFIRMED && (places) & 1 << (SETTLED - 1))
#define LIVE(s) ((s) == PENDING || (s) == CONFIRMED)

/* What is wrong with reservation i at this very moment, both stores seen at once. */
#define WRONG(i) ((row[i] != NONE && (gate[i] == NONE || gate[i] == GONE)) || (gate[i] == RELEASED && !ENDED(row[i])) || \
    (gate[i] == SETTLED && !PAID(row[i])) || (gate[i] == HELD && !unacked[i] && row[i] == NONE) || \
    (obeyed[i] && gate[i] != NONE && gate[i] != GONE && !DONE(row[i], 1 << (gate[i] - 1))) || \
    (gate[i] == GONE && unacked[i]) || (edited[i] && row[i] != NONE && gate[i] != NONE) || stock + taken != UNITS)

active [RES] proctype Reservation() {
    byte i;
    i = _pid;
    do
    :: atomic { gate[i] == NONE && stock > 0 -> stock--; taken++; gate[i] = HELD; unacked[i] = 1 }
    :: atomic { gate[i] != NONE && row[i] == NONE -> row[i] = PENDING }             /* record, however late */
    :: atomic { gate[i] != NONE && row[i] == NONE -> row[i] = EXPIRED }             /* tombstone */
#ifdef MUT_ACKNOWLEDGE_BEFORE_COMMIT
    :: atomic { gate[i] == HELD && unacked[i] -> unacked[i] = 0 }
#else
    :: atomic { LIVE(row[i]) && gate[i] == HELD && unacked[i] -> unacked[i] = 0 }
#endif
    :: atomic { row[i] == PENDING -> row[i] = CONFIRMED }
    :: atomic { row[i] == PENDING -> row[i] = EXPIRED }
    :: atomic { LIVE(row[i]) -> row[i] = CANCELLED; obeyed[i] = 0 }
    :: atomic { row[i] == CONFIRMED && gate[i] == SETTLED || ENDED(row[i]) && gate[i] == RELEASED -> obeyed[i] = 1 }
    :: atomic { PAID(row[i]) && gate[i] == HELD -> gate[i] = SETTLED; unacked[i] = 0 } /* the order may be old */
    :: atomic { ENDED(row[i]) && (gate[i] == HELD || gate[i] == SETTLED) ->
        gate[i] = RELEASED; unacked[i] = 0; stock++; taken-- }
    od
}

#ifdef FAULT
active proctype Fault() {
    byte i;
    if
    :: i = 0
    :: i = RES - 1
    fi;
    atomic {
#if FAULT == 1      /* a rogue INCR */
        stock <= UNITS -> stock++
#elif FAULT == 2    /* a hold deleted */
        gate[i] == HELD -> gate[i] = GONE
#elif FAULT == 3    /* a forged release */
        gate[i] == HELD && LIVE(row[i]) -> gate[i] = RELEASED; unacked[i] = 0; stock++; taken--
#elif FAULT == 4    /* settled moved to released */
        gate[i] == SETTLED && row[i] == CONFIRMED -> gate[i] = RELEASED; stock++; taken--
#elif FAULT == 5    /* a ledger row lost */
        row[i] != NONE && gate[i] != NONE && !unacked[i] -> row[i] = NONE; obeyed[i] = 0
#elif FAULT == 6    /* a row un-expired */
        row[i] == EXPIRED && gate[i] == RELEASED -> row[i] = PENDING
#elif FAULT == 7    /* a unit edited in one of the stores */
        gate[i] != NONE -> edited[i] = 1
#elif FAULT == 8    /* a forged sale */
        gate[i] == HELD && row[i] == PENDING -> gate[i] = SETTLED; unacked[i] = 0
#elif FAULT == 9    /* an older state of the gate */
        obeyed[i] ->
        if
        :: gate[i] == RELEASED -> stock--; taken++
        :: else
        fi;
        gate[i] = HELD
#endif
        ; corrupted = 1 }
}
#endif

/* first: 0 for the first look, RES for the second. Places of a reservation: 1 held, 2 settled, 4 released, 8 unacked. */
inline scan(first, place) {
    i = 0;
    do
    :: atomic { i < RES -> seen[first + i] = seen[first + i] | ((gate[i] == place) << (place - 1)); i++ }
    :: atomic { i == RES -> break }
    od
}

inline scan_unacked() {
    i = 0;
    do
    :: atomic { i < RES -> seen[i] = seen[i] | (unacked[i] -> IN_UNACKED : 0); i++ }
    :: atomic { i == RES -> break }
    od
}

inline snapshot() {
    atomic { i = 0;
        do
        :: i < RES -> p[i] = row[i]; pending = pending + LIVE(row[i]); was_edited[i] = edited[i];
            was_obeyed[i] = obeyed[i]; i++
        :: else -> break
        od }
}

#define R1 seen[i]
#define R2 seen[RES + i]
#define IS(seen, place) ((seen) & (1 << (place - 1)))

active proctype Checker() {
    byte i, pending, seen[2 * RES], p[RES], look_stock;
    bool alarm, sum_wrong, wrong_before[RES], was_edited[RES], was_obeyed[RES];
    do
    :: atomic { /* the look: one step at the gate */
        i = 0;
        do
        :: i < RES -> wrong_before[i] = corrupted && WRONG(i); i++
        :: else -> break
        od;
        sum_wrong = stock + taken != UNITS; look_stock = stock }
#ifdef MUT_LEDGER_FIRST
        snapshot();
#endif
#ifdef MUT_UNACKED_FIRST
        scan_unacked(); scan(0, HELD);
#else
        scan(0, HELD); scan_unacked();
#endif
        scan(0, SETTLED); scan(0, RELEASED);
#ifndef MUT_LEDGER_FIRST
        snapshot();
#endif
#ifdef MUT_SECOND_LOOK_BACKWARDS
        scan(RES, RELEASED); scan(RES, SETTLED); scan(RES, HELD);
#else
        scan(RES, HELD); scan(RES, SETTLED); scan(RES, RELEASED);
#endif
        atomic { /* invariant_judge */
#ifdef MUT_NAIVE_SUM
            alarm = look_stock + pending != UNITS;
#else
#ifndef MUT_WITHOUT_C0
            alarm = sum_wrong;
#endif
            i = 0;
            do
            :: i < RES ->
#ifndef MUT_WITHOUT_A
#ifdef MUT_A_BY_FIRST_LOOK
                alarm = alarm || p[i] != NONE && !(R1 & 7);
#else
                alarm = alarm || p[i] != NONE && R2 == 0;
#endif
                alarm = alarm || (R1 & IN_UNACKED) && R2 == 0;
#endif
#ifndef MUT_WITHOUT_B
                alarm = alarm || IS(R1, RELEASED) && !ENDED(p[i]);
#endif
#ifndef MUT_WITHOUT_C
                alarm = alarm || IS(R1, SETTLED) && !PAID(p[i]);
#endif
#ifndef MUT_WITHOUT_D
                alarm = alarm || was_obeyed[i] && !DONE(p[i], R2);
#endif
#ifndef MUT_WITHOUT_E
                alarm = alarm || IS(R1, HELD) && !(R1 & IN_UNACKED) && p[i] == NONE;
#endif
#ifndef MUT_WITHOUT_U
                alarm = alarm || was_edited[i] && p[i] != NONE && R2 != 0;
#endif
#ifdef MUT_CONFIRMED_NOT_RELEASED
                alarm = alarm || p[i] == CONFIRMED && IS(R2, RELEASED);
#endif
                i++
            :: else -> break
            od;
#endif
#ifndef FAULT
            MUST(no_false_alarm, !alarm);
#endif
            i = 0;
            do
            :: i < RES ->
                MUST(lasting_fault_is_found, !(wrong_before[i] && WRONG(i)) || alarm);
                wrong_before[i] = 0; was_edited[i] = 0; was_obeyed[i] = 0; R1 = 0; R2 = 0; p[i] = 0;
                i++
            :: else -> break
            od;
            i = 0; pending = 0; look_stock = 0; alarm = 0; sum_wrong = 0
        }
    od
}
