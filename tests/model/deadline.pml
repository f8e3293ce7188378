/* SPDX-License-Identifier: Apache-2.0
 * One recorded reservation at its deadline: confirmations, extensions and expiries race, each a transaction of its own
 * (services/ledger/sql/0004_verdicts.sql). A transaction waits for the row's lock, then reads the clock in a later
 * statement, then decides on the row as it is under the lock; the clock may tick between any two of these. */
#include "must.h"
#ifndef END
#define END 8       /* the clock stops here; everything is over by then */
#endif
#define HOLD 3      /* times in ticks */
#define GRACE 1
#define EXTEND 2
#define EXTENSIONS 2
#define PENDING 1
#define CONFIRMED 2
#define EXPIRED 3

PROPERTY(one_verdict);
PROPERTY(kept_promise);
PROPERTY(in_time_wins);
PROPERTY(late_loses);
PROPERTY(no_revival);
PROPERTY(never_earlier);
PROPERTY(bounded);
PROPERTY(comes_to_rest);

byte clock;
byte state = PENDING, expires = HOLD, extensions, verdicts;
byte promised = HOLD;   /* the latest deadline a buyer was told */
bool locked;

active proctype Clock() {
    do
    :: atomic { clock < END -> clock++ }
    :: clock == END -> break
    od
}

/* Locks the row and reads the clock. since: the clock when the lock was had. */
inline begin_transaction() {
#ifdef MUT_CLOCK_BEFORE_LOCK
    now = clock;
#endif
#ifdef MUT_ROW_BEFORE_LOCK
    atomic { seen_state = state; seen_expires = expires };
#endif
    atomic { !locked -> locked = 1; since = clock };
#ifndef MUT_CLOCK_BEFORE_LOCK
    now = clock;
#endif
}

/* The row as the transaction believes it to be. */
inline see_row() {
#ifndef MUT_ROW_BEFORE_LOCK
    seen_state = state; seen_expires = expires
#else
    skip
#endif
}

inline commit() {
    locked = 0; now = 0; since = 0; seen_state = 0; seen_expires = 0
}

/* confirm_reservation */
active [2] proctype Confirm() {
    byte now, since, seen_state, seen_expires;
    begin_transaction();
    atomic {
        see_row();
        if
#ifdef MUT_CONFIRM_UNCHECKED
        :: seen_state == PENDING ->
#elif defined(MUT_CONFIRM_AT_DEADLINE)
        :: seen_state == PENDING && now < seen_expires ->
#else
        :: seen_state == PENDING && now < seen_expires + GRACE ->
#endif
            MUST(late_loses, since < expires + GRACE);
            state = CONFIRMED; verdicts++;
            MUST(one_verdict, verdicts == 1)
        :: else ->
            MUST(in_time_wins, state != PENDING || now >= promised + GRACE)
        fi;
        commit()
    }
}

/* extend_reservation: the later of the deadline and now + EXTEND, a bounded number of times, never past the deadline. */
active [2] proctype Extend() {
    byte now, since, seen_state, seen_expires, tries;
    bool granted;
    do
    :: tries < 2 ->
        tries++;
        begin_transaction();
        atomic {
            see_row();
            granted = seen_state == PENDING && extensions < EXTENSIONS && now < seen_expires && now + EXTEND > seen_expires;
#ifdef MUT_EXTEND_LATE
            granted = seen_state == PENDING && extensions < EXTENSIONS && now + EXTEND > seen_expires;
#endif
#ifdef MUT_EXTEND_EARLIER
            granted = seen_state == PENDING && extensions < EXTENSIONS && now < seen_expires;
#endif
#ifdef MUT_EXTEND_UNBOUNDED
            granted = seen_state == PENDING && now < seen_expires && now + EXTEND > seen_expires;
#endif
            if
            :: granted ->
                MUST(no_revival, since < expires);
                MUST(never_earlier, now + EXTEND >= expires);
                expires = now + EXTEND; extensions++;
                promised = (promised > expires -> promised : expires);
                MUST(bounded, extensions <= EXTENSIONS && expires <= HOLD + EXTENSIONS * EXTEND)
            :: else
            fi;
            granted = 0;
            commit()
        }
    :: else -> break
    od
}

/* expire_ids: called by the sweeper for what the ledger says has lapsed (CARRY) and, with a tombstone that changes nothing
 * here because the row exists, for what the gate says has lapsed by its own provisional deadline (BURY). */
active [2] proctype Expire() {
    byte now, since, seen_state, seen_expires;
    do
    :: state == PENDING && clock >= HOLD + GRACE -> /* lapsed once, by somebody's reckoning: ask for the verdict */
        begin_transaction();
        atomic {
            see_row();
            if
#ifdef MUT_EXPIRE_OVERWRITES
            :: now >= seen_expires + GRACE ->
#else
#ifdef MUT_BURY_BY_GATE_DEADLINE
            :: seen_state == PENDING && now >= HOLD + GRACE ->
#else
            :: seen_state == PENDING && now >= seen_expires + GRACE ->
#endif
#endif
                MUST(kept_promise, now >= promised + GRACE);
                state = EXPIRED; verdicts++;
                MUST(one_verdict, verdicts == 1)
            :: else
            fi;
            commit()
        }
#ifdef MUT_ASKS_ONCE
        ; break
#endif
    :: state != PENDING -> break
    od
}

active proctype Rest() {
    timeout -> MUST(comes_to_rest, state != PENDING)
}
