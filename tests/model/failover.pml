/* SPDX-License-Identifier: Apache-2.0
 * Redis fails over and the old primary lives: some reserve daemons still talk to it, others to the promoted replica, whose
 * copy may lag. Then the operator rebuilds. One unit, two reservations, two servers, two epochs. Leases never end here and
 * daemons never hear of the new epoch unless they like: worse than reality. Loading is one step (rebuild.pml has its own).
 * A gate knows the run id of the Redis it was armed on (`armed_on`); a daemon's connection knows the one it talks to. */
#include "must.h"
#define RES 2
#define NONE 0
#define HELD 1      /* gate; settling and releasing add nothing here */
#define PENDING 1   /* ledger */
#define EXPIRED 3   /* a tombstone or a verdict */
/* server s, epoch e, reservation i */
#define G(s, e, i) gate[(s) * 4 + (e) * 2 + (i)]
#define GATE(s, e) (s) * 2 + (e)
#define NOBODY 9

PROPERTY(one_owner);
PROPERTY(no_conflict);
PROPERTY(known_to_the_gate);
PROPERTY(sold_by_the_armed);

byte gate[8], armed_on[4] = NOBODY;
bool attested[4];
bool promoted;
/* the ledger */
byte epoch, armed_run;
bool known_armed = 1;
byte row[RES];
byte seller[RES] = NOBODY;      /* which server's grant was recorded */
/* messages */
bool named[8];                  /* as G: this gate named the reservation, to be recorded */
bool attesting[4];              /* of (run, epoch) */

#define LIVE(i) (row[i] == PENDING)

inline check() {
    MUST(one_owner, LIVE(0) + LIVE(1) <= 1);
    /* What the ledger sold, the gate it armed knows: no grant of another Redis became a sale. */
    MUST(known_to_the_gate, !known_armed || (!LIVE(0) || G(armed_run, epoch, 0) == HELD) && (!LIVE(1) || G(armed_run, epoch, 1) == HELD));
}

active [8] proctype Hold() {
    byte s, e, i;
    i = _pid & 1; e = (_pid >> 1) & 1; s = _pid >> 2;
    do
    :: atomic { /* hold.lua, by a daemon connected to server s */
#ifdef MUT_NO_SEAL
        armed_on[GATE(s, e)] != NOBODY &&
#else
        armed_on[GATE(s, e)] == s &&
#endif
        attested[GATE(s, e)] && G(s, e, 0) == NONE && G(s, e, 1) == NONE ->
        G(s, e, i) = HELD; named[_pid] = 1 }
    :: atomic { /* record_batch: under the fence, and only what the unit index allows */
        named[_pid] && row[i] == NONE &&
#ifndef MUT_NO_FENCE
        epoch == e &&
#endif
        true ->
        MUST(no_conflict, !LIVE(1 - i));
        if
#ifndef MUT_NO_INDEX
        :: LIVE(1 - i) -> named[_pid] = 0               /* unit_conflict: refused, paused */
#else
        :: LIVE(1 - i) -> row[i] = PENDING
#endif
        :: !LIVE(1 - i) ->
            MUST(sold_by_the_armed, armed_run == s);
            row[i] = PENDING; seller[i] = s
        fi;
        check() }
    od
}

active proctype World() {
    atomic { armed_on[0] = 0; attested[0] = 1 };             /* server 0, epoch 0 sells */
    if
    :: atomic { true -> /* the replica is promoted with what it had: all, or nothing yet of what was held */
        promoted = 1; armed_on[2] = 0; attested[2] = 1;
        if
        :: G(1, 0, 0) = G(0, 0, 0); G(1, 0, 1) = G(0, 0, 1)
        :: skip
        fi }
    fi;
    do
    :: atomic { epoch == 0 -> epoch = 1; known_armed = 0; armed_run = NOBODY } /* judge_rebuild */
    :: atomic { LIVE(0) -> row[0] = EXPIRED }           /* any verdict that frees the unit at the ledger */
    :: atomic { LIVE(1) -> row[1] = EXPIRED }
    od
}

/* A loader connected to server s (load.lua, arm.lua), its telling the ledger (armed_gate), the checker's attestation. */
active [2] proctype Load() {
    byte s;
    bool told;
    s = _pid - 9;
    do
    :: atomic { /* both servers may be loaded with the new epoch, by daemons on both sides */
        epoch == 1 && !known_armed && armed_on[GATE(s, 1)] == NOBODY ->
        G(s, 1, 0) = row[0]; G(s, 1, 1) = row[1];       /* held, released or unknown, as the row is */
        armed_on[GATE(s, 1)] = s }
    :: atomic { /* armed_gate: the first to tell is the one, for good */
#ifdef MUT_LAST_ARMED_WINS
        epoch == 1 && armed_on[GATE(s, 1)] == s && !told -> told = 1;
#else
        epoch == 1 && armed_on[GATE(s, 1)] == s && !known_armed ->
#endif
        known_armed = 1; armed_run = s }
    :: atomic { /* the checker on server s attests what it proved, if it is what the ledger armed */
#ifdef MUT_ATTEST_ANY_RUN
        epoch == 1 && armed_on[GATE(s, 1)] == s && known_armed && !attesting[GATE(s, 1)] ->
#else
        epoch == 1 && armed_on[GATE(s, 1)] == s && known_armed && armed_run == s && !attesting[GATE(s, 1)] ->
#endif
        attesting[GATE(s, 1)] = 1 }
    :: atomic { /* attest.lua, at whichever server the daemon that takes the message is connected to */
        attesting[GATE(s, 1)] && armed_on[GATE(s, 1)] == s && !attested[GATE(s, 1)] -> attested[GATE(s, 1)] = 1 }
#ifdef MUT_NO_PIN
    :: atomic { attesting[GATE(1 - s, 1)] && armed_on[GATE(s, 1)] == s && !attested[GATE(s, 1)] -> attested[GATE(s, 1)] = 1 }
#endif
    od
}
