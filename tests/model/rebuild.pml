/* SPDX-License-Identifier: Apache-2.0
 * Rebuilding a gate under traffic: the ledger takes the next epoch, two reserve daemons load it page by page and may die at
 * any step, the old gate goes on for as long as it likes, and records, tombstones, orders and obedience of the old epoch are
 * on their way. One unit, one row per page. As in orders.pml a message once sent may be delivered whenever, again, or never;
 * here `named` says that the gate of an epoch named a reservation on the bus at least once, to have it recorded or buried. */
#include "must.h"
#define RES 2
#ifndef HOLDERS
#define HOLDERS RES /* reservations that are ever held */
#endif
#ifndef EPOCHS
#define EPOCHS 2
#endif
#define NONE 0
#define HELD 1      /* gate */
#define SETTLED 2
#define RELEASED 3
#define PENDING 1   /* ledger */
#define CONFIRMED 2
#define EXPIRED 3
#define CANCELLED 4
#define ENDED(i) (row[i] == EXPIRED || row[i] == CANCELLED)
#define G(e, i) gate[(e) * RES + (i)]
#define NAMED(e, i) named[(e) * RES + (i)]
#define TAKEN(e, i) (G(e, i) == HELD || G(e, i) == SETTLED)
#ifndef MUT_OBEYED_BEFORE_IS_ENOUGH
#define DUE(i, e) (obeyed[i] <= e)
#else
#define DUE(i, e) (obeyed[i] == 0)
#endif
#define FREE(e) (!TAKEN(e, 0) && !TAKEN(e, 1))

PROPERTY(one_owner);
PROPERTY(known_to_the_gate);
PROPERTY(verdict_first);
PROPERTY(nothing_stranded);
PROPERTY(no_doubt);
PROPERTY(comes_to_rest);

/* Redis: one set of keys per epoch */
byte gate[EPOCHS * RES];
bool armed[EPOCHS], loaded[EPOCHS];
byte loader[EPOCHS], page[EPOCHS];
/* the ledger */
byte epoch;
bool known_armed = 1;
byte row[RES], obeyed[RES];         /* obeyed: epoch + 1 */
/* messages */
bool named[EPOCHS * RES], attested[EPOCHS], telling[EPOCHS];
#ifdef MUT_SAME_EPOCH
bool rebuilt;
#endif

inline check() {
    MUST(one_owner, (row[0] == PENDING || row[0] == CONFIRMED) + (row[1] == PENDING || row[1] == CONFIRMED) <= 1);
    MUST(known_to_the_gate, !known_armed || (row[0] == NONE || G(epoch, 0) != NONE) && (row[1] == NONE || G(epoch, 1) != NONE));
    MUST(verdict_first, !known_armed || (G(epoch, 0) != RELEASED || ENDED(0)) && (G(epoch, 1) != RELEASED || ENDED(1)));
    MUST(verdict_first, !known_armed || (G(epoch, 0) != SETTLED || row[0] == CONFIRMED || row[0] == CANCELLED) &&
                                        (G(epoch, 1) != SETTLED || row[1] == CONFIRMED || row[1] == CANCELLED));
    MUST(nothing_stranded, obeyed[0] <= epoch || G(epoch, 0) == (ENDED(0) -> RELEASED : SETTLED));
    MUST(nothing_stranded, obeyed[1] <= epoch || G(epoch, 1) == (ENDED(1) -> RELEASED : SETTLED))
}

/* Reservation i at the gate of epoch e. */
active [EPOCHS * RES] proctype At_gate() {
    byte i, e;
    i = _pid % RES; e = _pid / RES;
    do
    :: atomic { /* hold.lua: armed and attested; the lease of an old gate may last as long as it likes here */
        i < HOLDERS && armed[e] && attested[e] && G(e, i) == NONE && FREE(e) -> G(e, i) = HELD; NAMED(e, i) = 1; check() }
#ifdef MUT_RESEND_NAMES_NEW_EPOCH
    :: atomic { /* service_hold.c, resend: names the epoch that state told while the gate's answer was on its way */
        e > 0 && epoch == e && NAMED(e - 1, i) && G(e - 1, i) == HELD && !NAMED(e, i) -> NAMED(e, i) = 1 }
#endif
    :: atomic { /* record_batch, under the fence */
#ifdef MUT_NO_FENCE
        NAMED(e, i) && row[i] == NONE ->
#elif defined(MUT_RECORD_REVIVES)
        NAMED(e, i) && (row[i] == NONE || row[i] == EXPIRED) && epoch == e ->
#else
        NAMED(e, i) && row[i] == NONE && epoch == e ->
#endif
        row[i] = PENDING; check() }
    :: atomic { /* expire_reservations: the tombstone, under the fence */
#ifdef MUT_NO_TOMBSTONE_FENCE
        NAMED(e, i) && row[i] == NONE ->
#else
        NAMED(e, i) && row[i] == NONE && epoch == e ->
#endif
        row[i] = EXPIRED; check() }
    :: atomic { /* due_work's order, obeyed by settle.lua */
        row[i] == CONFIRMED && epoch >= e && armed[e] && G(e, i) == HELD -> G(e, i) = SETTLED; check() }
    :: atomic { /* ... by release.lua */
        ENDED(i) && epoch >= e && armed[e] && TAKEN(e, i) -> G(e, i) = RELEASED; check() }
    :: atomic { /* obeyed_orders, of this epoch */
#ifdef MUT_OBEYED_WITHOUT_EPOCH
        row[i] == CONFIRMED && obeyed[i] <= epoch && armed[e] && G(e, i) == SETTLED ->
#else
        row[i] == CONFIRMED && DUE(i, e) && epoch == e && armed[e] && G(e, i) == SETTLED ->
#endif
        obeyed[i] = epoch + 1; check() }
    :: atomic {
#ifdef MUT_OBEYED_WITHOUT_EPOCH
        ENDED(i) && obeyed[i] <= epoch && armed[e] && G(e, i) == RELEASED ->
#elif defined(MUT_OBEY_WITHOUT_EPOCH)
        /* A daemon that still uses the keys of an older epoch obeys there and answers "done" to the order of the new one. */
        ENDED(i) && obeyed[i] <= epoch && epoch >= e && armed[e] && G(e, i) == RELEASED ->
#elif defined(MUT_UNKNOWN_IS_DONE)
        ENDED(i) && obeyed[i] <= e && epoch == e && (G(e, i) == RELEASED || G(e, i) == NONE) ->
#else
        ENDED(i) && DUE(i, e) && epoch == e && armed[e] && G(e, i) == RELEASED ->
#endif
        obeyed[i] = epoch + 1; check() }
    od
}

/* Verdicts go on all the while: confirm, expire, cancel (also what was confirmed). */
active [RES] proctype Verdict() {
    byte i;
    i = _pid - EPOCHS * RES;
    do
    :: atomic { row[i] == PENDING -> row[i] = CONFIRMED; obeyed[i] = 0; check() }
    :: atomic { row[i] == PENDING -> row[i] = EXPIRED; obeyed[i] = 0; check() }
    :: atomic { row[i] == CONFIRMED -> row[i] = CANCELLED; obeyed[i] = 0; check() }
    od
}

/* judge_rebuild, armed_gate, and the checker's attestation. */
active proctype Ledger() {
    atomic { armed[0] = 1; attested[0] = 1 };
    do
#ifdef MUT_SAME_EPOCH
    :: atomic { !rebuilt -> rebuilt = 1; known_armed = 0; armed[0] = 0; loaded[0] = 0 }
#else
    :: atomic { epoch + 1 < EPOCHS -> epoch++; known_armed = 0 }
#endif
    :: atomic { telling[epoch] && !known_armed -> known_armed = 1; check() }
    :: atomic { known_armed && !attested[epoch] -> attested[epoch] = 1 }
    od
}

/* services/reserve/core_care.c and load.lua, arm.lua: begin, fetch and load page by page, finish, arm, tell. Dies at any
 * step; the other one may take over at any time (really after a silence). */
active [2] proctype Loader() {
    byte me, e, at, row_read;
    me = _pid;
begin:
    atomic { /* state says that no gate of the present epoch is armed: load.lua, begin */
        row_read = 0; at = 0; e = 0;
        !known_armed ->
        e = epoch;
        if
        :: armed[e] -> telling[e] = 1; goto begin   /* whoever armed it did not live to tell */
        :: !armed[e] -> skip
#ifdef MUT_RELOAD_ARMED
        :: armed[e] -> armed[e] = 0
#endif
        fi;
#ifndef MUT_KEEPS_OLD_PAGES
        G(e, 0) = NONE; G(e, 1) = NONE;
#endif
        loader[e] = me; page[e] = 0; loaded[e] = 0
    };
    do
    :: at < RES ->
        if
        :: atomic { epoch == e -> row_read = row[at] }      /* snapshot_page */
        :: atomic { epoch != e -> goto begin }              /* stale_epoch */
        fi;
        if
        :: atomic { /* load.lua, page */
#ifdef MUT_NO_LOADER_CHECK
            !armed[e] && page[e] == at ->
#else
            !armed[e] && loader[e] == me && page[e] == at ->
#endif
            page[e]++; at++;
            MUST(no_doubt, G(e, at - 1) == NONE);
            if
            :: row_read == PENDING -> MUST(no_doubt, FREE(e)); G(e, at - 1) = HELD
            :: row_read == CONFIRMED -> MUST(no_doubt, FREE(e)); G(e, at - 1) = SETTLED
#ifndef MUT_LOAD_WITHOUT_RELEASED
            :: row_read >= EXPIRED -> G(e, at - 1) = RELEASED
#else
            :: row_read >= EXPIRED
#endif
            :: row_read == NONE
            fi;
            row_read = 0 }
        :: atomic { true -> goto begin }                    /* not_loader, wrong_page, or dies */
        fi
    :: atomic { at == RES -> break }
    od;
    if
    :: atomic { /* load.lua, finish */
#ifdef MUT_NO_LOADER_CHECK
        !armed[e] -> loaded[e] = 1 }
#else
        !armed[e] && loader[e] == me -> loaded[e] = 1 }
#endif
    :: atomic { true -> goto begin }
    fi;
    if
    :: atomic { /* arm.lua */
#ifdef MUT_NO_LOADER_CHECK
        !armed[e] && loaded[e] -> armed[e] = 1 }
#else
        !armed[e] && loaded[e] && loader[e] == me -> armed[e] = 1 }
#endif
    :: atomic { true -> goto begin }
    fi;
    goto begin                                              /* lives or not: begin tells */
}

/* Nothing more can happen: every hold of the present gate came to a verdict and the ledger knows it was obeyed here. */
active proctype Rest() {
    timeout ->
    d_step {
        MUST(comes_to_rest, known_armed);
        MUST(comes_to_rest, row[0] == NONE || row[0] != PENDING && obeyed[0] == epoch + 1);
        MUST(comes_to_rest, row[1] == NONE || row[1] != PENDING && obeyed[1] == epoch + 1);
        MUST(comes_to_rest, G(epoch, 0) != HELD && G(epoch, 1) != HELD)
    }
}
