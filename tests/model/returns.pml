/* SPDX-License-Identifier: Apache-2.0
 * One unit, two reservations of it one after the other, two payments: late and second payments, cancelling what is held and
 * what is confirmed (a return). Messages as in orders.pml: once sent they may be delivered whenever, again, or never. */
#include "must.h"
#define RES 2
#define NONE 0
#define HELD 1      /* gate */
#define SETTLED 2
#define RELEASED 3
#define PENDING 1   /* ledger */
#define CONFIRMED 2
#define EXPIRED 3
#define CANCELLED 4
#define ENDED(i) (row[i] == EXPIRED || row[i] == CANCELLED)

PROPERTY(one_owner);
PROPERTY(conserved);
PROPERTY(verdict_first);
PROPERTY(returned_once);
PROPERTY(compensated_once);
PROPERTY(buys_once);
PROPERTY(sold_or_given_back);
PROPERTY(nobody_forgets_money);
PROPERTY(no_doubt);
PROPERTY(comes_to_rest);

byte gate[RES], given_back[RES];
bool taken;
byte row[RES], paid[RES];       /* paid: payment + 1 */
bool obeyed[RES], late[RES];    /* late: past deadline + grace */
byte compensated[2];            /* events, per payment */
bool tried[2];
byte calls[4];                  /* of confirm; each pair may be tried twice */
bool settling[RES], releasing[RES], settle_done[RES], release_done[RES];
#ifdef MUT_NO_PAYMENT_LOCK
bool checked[4];
#endif

#define BOUGHT(p) (paid[0] == p + 1 || paid[1] == p + 1)

inline check() {
    MUST(one_owner, (row[0] == PENDING || row[0] == CONFIRMED) + (row[1] == PENDING || row[1] == CONFIRMED) <= 1);
    MUST(conserved, (gate[0] == HELD || gate[0] == SETTLED) + (gate[1] == HELD || gate[1] == SETTLED) == taken);
    MUST(verdict_first, (gate[0] != RELEASED || ENDED(0)) && (gate[1] != RELEASED || ENDED(1)));
    MUST(verdict_first, (gate[0] != SETTLED || row[0] == CONFIRMED || row[0] == CANCELLED) &&
                        (gate[1] != SETTLED || row[1] == CONFIRMED || row[1] == CANCELLED));
    MUST(returned_once, given_back[0] <= 1 && given_back[1] <= 1);
    MUST(compensated_once, compensated[0] <= 1 && compensated[1] <= 1);
    MUST(buys_once, paid[0] == 0 || paid[0] != paid[1]);
    MUST(sold_or_given_back, !(BOUGHT(0) && compensated[0]) && !(BOUGHT(1) && compensated[1]));
    MUST(nobody_forgets_money, (!tried[0] || BOUGHT(0) || compensated[0]) && (!tried[1] || BOUGHT(1) || compensated[1]))
}

/* One call of confirm_reservation (0004_verdicts.sql): the payment's lock and the row's make it one step. */
inline confirm(i, p) {
#ifndef MUT_NO_PAYMENT_LOCK
    tried[p] = 1;
#endif
    if
    :: paid[i] == p + 1                                     /* a repeat */
#ifndef MUT_PAYMENT_REUSED
    :: paid[i] != p + 1 && paid[1 - i] == p + 1             /* payment_used */
    :: paid[i] != p + 1 && paid[1 - i] != p + 1 && (row[i] != PENDING || late[i]) ->
#else
    :: paid[i] != p + 1 && (row[i] != PENDING || late[i]) ->
#endif
#ifdef MUT_LATE_IS_DROPPED
        skip
#else
        if
#ifdef MUT_COMPENSATE_TWICE
        :: compensated[p] < 2 -> compensated[p]++
        :: else
#else
        :: compensated[p] == 0 -> compensated[p] = 1         /* ON CONFLICT (message_id) DO NOTHING */
        :: else
#endif
        fi
#endif
#ifdef MUT_PAYMENT_REUSED
    :: paid[i] != p + 1 && row[i] == PENDING && !late[i] ->
#else
    :: paid[i] != p + 1 && paid[1 - i] != p + 1 && row[i] == PENDING && !late[i] ->
#endif
        if
#ifndef MUT_COMPENSATED_BUYS
        :: compensated[p]                                   /* payment_used: it is on its way back */
        :: !compensated[p] ->
#else
        :: true ->
#endif
#ifdef MUT_NO_PAYMENT_LOCK
            checked[i * 2 + p] = 1
#else
            paid[i] = p + 1; row[i] = CONFIRMED; obeyed[i] = 0
#endif
        fi
    fi
}

active [RES] proctype Reservation() {
    byte i;
    i = _pid;
    do
    :: atomic { gate[i] == NONE && !taken -> taken = 1; gate[i] = HELD; check() } /* hold.lua */
    :: atomic { gate[i] == HELD && row[i] == NONE -> row[i] = PENDING; check() }  /* record_batch; orders.pml has the rest */
    :: atomic { row[i] == PENDING && !late[i] -> late[i] = 1 }
    :: atomic { row[i] == PENDING && late[i] -> row[i] = EXPIRED; check() }       /* expire_ids */
    :: atomic { row[i] != NONE && calls[i * 2] < 2 -> calls[i * 2]++; confirm(i, 0); check() }
    :: atomic { row[i] != NONE && calls[i * 2 + 1] < 2 -> calls[i * 2 + 1]++; confirm(i, 1); check() }
#ifdef MUT_NO_PAYMENT_LOCK
    :: atomic { checked[i * 2] && row[i] == PENDING -> paid[i] = 1; row[i] = CONFIRMED; check() }
    :: atomic { checked[i * 2 + 1] && row[i] == PENDING -> paid[i] = 2; row[i] = CONFIRMED; check() }
#endif
    :: atomic { /* cancel_reservation, of a hold or of an order */
        row[i] == PENDING || row[i] == CONFIRMED -> row[i] = CANCELLED;
#ifndef MUT_CANCEL_KEEPS_OBEYED
        obeyed[i] = 0;
#endif
        check() }
    :: atomic { row[i] == CONFIRMED && !obeyed[i] && !settling[i] -> settling[i] = 1 } /* due_work */
#ifndef MUT_RELEASE_WITHOUT_VERDICT
    :: atomic { ENDED(i) && !obeyed[i] && !releasing[i] -> releasing[i] = 1 }
#else
    :: atomic { late[i] && !releasing[i] -> releasing[i] = 1 }
#endif
    :: atomic { settling[i] && gate[i] == HELD -> gate[i] = SETTLED; check() }         /* settle.lua */
#ifdef MUT_SETTLE_DOUBTS_RETURNED
    :: atomic { settling[i] && gate[i] == RELEASED -> MUST(no_doubt, false) }
#endif
    :: atomic { /* release.lua: of what is held, or settled (a return) */
#ifdef MUT_RELEASE_HELD_ONLY
        releasing[i] && gate[i] == HELD ->
#elif defined(MUT_RELEASE_TWICE)
        releasing[i] && gate[i] != NONE && taken ->
#else
        releasing[i] && (gate[i] == HELD || gate[i] == SETTLED) ->
#endif
        gate[i] = RELEASED; taken = 0;
        given_back[i] = (given_back[i] < 2 -> given_back[i] + 1 : 2);
        check() }
    :: atomic { settling[i] && gate[i] == SETTLED && !settle_done[i] -> settle_done[i] = 1 }
    :: atomic { releasing[i] && gate[i] == RELEASED && !release_done[i] -> release_done[i] = 1 }
    :: atomic { settle_done[i] && !obeyed[i] && /* obeyed_orders: only for the verdict that stands */
#ifdef MUT_OBEYED_ANY_KIND
        row[i] != PENDING ->
#else
        row[i] == CONFIRMED ->
#endif
        obeyed[i] = 1 }
    :: atomic { release_done[i] && !obeyed[i] && ENDED(i) -> obeyed[i] = 1 }
    od
}

active proctype Rest() {
    byte i;
    timeout ->
    d_step {
        do
        :: i < RES ->
            MUST(comes_to_rest, row[i] != PENDING && (row[i] == NONE || obeyed[i]));
            MUST(comes_to_rest, !ENDED(i) || gate[i] == RELEASED);
            MUST(comes_to_rest, row[i] != CONFIRMED || gate[i] == SETTLED);
            i++
        :: else -> break
        od
    }
}
