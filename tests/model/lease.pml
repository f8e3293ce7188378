/* SPDX-License-Identifier: Apache-2.0
 * The lease: a gate sells only for LEASE ticks after the first look of a clean round (services/reserve/lua/attest.lua,
 * hold.lua). Attestations may be delayed without end, repeated, reordered; the checker may die or hang anywhere; a
 * corruption may happen at any time; one attestation is garbled and names any time at all. */
#include "must.h"
#define END 6
#define LEASE 2

PROPERTY(sells_only_under_proof);
PROPERTY(closed_after_corruption);
PROPERTY(one_lease_at_most);
PROPERTY(lease_only_grows);

byte clock = 1, until;          /* Redis's */
byte proved;                    /* first look of the latest clean round */
byte corrupted_at;
bool sent[END + LEASE + 2];     /* attestations, by the gate time they name */

active proctype Clock() {
    do
    :: atomic { clock < END -> clock++ }
    :: clock == END -> break
    od
}

active proctype Corruption() {
    if
    :: atomic { true -> corrupted_at = clock }
    :: true
    fi
}

active [2] proctype Checker() {
    byte first_look;
    bool clean;
    do
    :: atomic { clock < END -> first_look = clock; clean = corrupted_at == 0 };   /* R1 */
        if                                                                        /* P, R2, judge: as late as it likes */
        :: atomic { clean ->
            sent[first_look] = 1;
            proved = (proved > first_look -> proved : first_look) }
        :: true
        fi;
        atomic { first_look = 0; clean = 0 }
    :: break                                                                      /* dies */
    od
}

#ifdef GARBLED
active proctype Garbled() {
    sent[END + LEASE + 1] = 1
}
#endif

active proctype Gate() {
    byte r, old;
    do
    :: atomic { /* attest.lua, any attestation there ever was */
        r = 1;
        do
        :: r < END + LEASE + 1 -> r++
        :: sent[r] -> break
        od;
        old = until;
#ifdef MUT_LEASE_FROM_NOW
        r = clock;
#endif
#ifndef MUT_FUTURE_BELIEVED
        r = (r < clock -> r : clock);
#endif
#ifdef MUT_LEASE_REPLACED
        until = r + LEASE;
#else
        until = (until > r + LEASE -> until : r + LEASE);
#endif
        MUST(one_lease_at_most, until <= clock + LEASE);
        MUST(lease_only_grows, until >= old);
        r = 0; old = 0 }
    :: atomic { /* hold.lua */
        clock < until ->
#ifndef GARBLED
        MUST(sells_only_under_proof, proved != 0 && clock < proved + LEASE);
        MUST(closed_after_corruption, corrupted_at == 0 || clock < corrupted_at + LEASE)
#else
        skip
#endif
        }
    od
}
