/* SPDX-License-Identifier: Apache-2.0
 * Control: two pauses, two resumes that name any of them, two reserve daemons, one gate, over a bus that loses, repeats,
 * delays and reorders commands and states, and daemons that restart. Sets of pauses are bit masks. A hold passes only where
 * the daemon's view is open and the gate has no pause. */
#include "must.h"
#define RESUMES 2
#define DAEMONS 2
#define STATES 5        /* one per change at the ledger: two pauses, two resumes, and the first */

PROPERTY(ledger_keeps_pauses);
PROPERTY(open_only_if_lifted);

/* the ledger: services/ledger/sql/0006_control.sql */
byte active_set, lifted_set, sequence;
byte accepted_at_ledger, named;         /* named: by a judged resume */
byte resumes;
/* every state it ever published, by control sequence */
byte state_active[STATES], state_lifted[STATES];
/* the gate's `pauses` */
byte gate_set, accepted_at_gate;
/* what a daemon knows: lib/io/sales_state.c, lib/pure/sale.c */
byte view_active[DAEMONS], view_lifted[DAEMONS], view_sequence[DAEMONS], own[DAEMONS], accepted_by[DAEMONS];
bool stated[DAEMONS];

inline publish() {
    sequence++;
    state_active[sequence] = active_set; state_lifted[sequence] = lifted_set
}

active proctype Ledger() {
    byte p, r;
    do
    :: atomic { /* judge_pause: a pause that was lifted stays lifted */
        (active_set | lifted_set) != 3 ->
        if
        :: !((active_set | lifted_set) & 1) -> p = 1
        :: !((active_set | lifted_set) & 2) -> p = 2
        fi;
        active_set = active_set | p; accepted_at_ledger = accepted_at_ledger | p; publish(); p = 0 }
    :: atomic { /* judge_resume: all active ones named. One that is late, repeated or based on an older sequence is refused,
                 * so a resume that does something is one that could have been made at this very moment. */
        resumes < RESUMES ->
        resumes++;
        if
        :: r = 1
        :: r = 2
        :: r = 3
        fi;
        if
#ifdef MUT_RESUME_LIFTS_ALL
        :: true ->
#else
        :: (active_set & ~r) == 0 ->
#endif
            named = named | r; lifted_set = lifted_set | r | active_set; active_set = 0; publish()
        :: (active_set & ~r) != 0                       /* pauses_missing */
        fi;
        MUST(ledger_keeps_pauses, active_set != 0 || (accepted_at_ledger & ~named) == 0);
        r = 0 }
    od
}

active [DAEMONS] proctype Reserve() {
    byte d, p, s;
    d = _pid - 1;
    do
    :: atomic { /* a pause command heard: tg_sale_pause */
        (own[d] | view_active[d] | view_lifted[d]) != 3 ->
        if
        :: !((own[d] | view_active[d] | view_lifted[d]) & 1) -> p = 1
        :: !((own[d] | view_active[d] | view_lifted[d]) & 2) -> p = 2
        fi;
        own[d] = own[d] | p; accepted_by[d] = accepted_by[d] | p; p = 0 }
    :: atomic { /* a state heard, any there ever was: sales_state_take */
#ifdef MUT_STATES_IN_ANY_ORDER
        true ->
        s = 0;
#else
        !stated[d] || sequence > view_sequence[d] ->
        s = (stated[d] -> view_sequence[d] + 1 : 0);
#endif
        do
        :: s < sequence -> s++
        :: break
        od;
        view_sequence[d] = s; stated[d] = 1;
        view_active[d] = state_active[s]; view_lifted[d] = state_lifted[s];
        accepted_by[d] = accepted_by[d] | state_active[s];
#ifdef MUT_OWN_PAUSES_FORGOTTEN
        own[d] = 0;
#else
        own[d] = own[d] & ~view_lifted[d] & ~view_active[d];
#endif
        s = 0 }
    :: atomic { /* pause.lua: write_pauses, at once or with the next look */
        ((own[d] | view_active[d]) & ~gate_set) != 0 ->
        gate_set = gate_set | own[d] | view_active[d]; accepted_at_gate = accepted_at_gate | gate_set }
    :: atomic { /* lift.lua: core_care.c, reserve_care_lifts */
#ifdef MUT_LIFT_WHAT_IS_NOT_LISTED
        (gate_set & ~own[d] & ~view_active[d]) != 0 -> gate_set = gate_set & (own[d] | view_active[d]) }
#else
        (gate_set & view_lifted[d] & ~own[d] & ~view_active[d]) != 0 ->
        gate_set = gate_set & ~(view_lifted[d] & ~own[d] & ~view_active[d]) }
#endif
#ifdef MUT_RESUME_OBEYED_UNJUDGED
    :: atomic { /* a resume heard on the bus, obeyed before the ledger judged it */
        if
        :: p = 1
        :: p = 2
        fi;
        ((own[d] | view_active[d] | gate_set) & p) != 0 ->
        own[d] = own[d] & ~p; view_active[d] = view_active[d] & ~p; gate_set = gate_set & ~p; p = 0 }
#endif
    :: atomic { /* hold.lua, on the word of this daemon */
        stated[d] && (own[d] | view_active[d]) == 0 && gate_set == 0 ->
        MUST(open_only_if_lifted, ((accepted_by[d] | accepted_at_gate) & ~named) == 0) }
    :: atomic { /* it dies and starts again, knowing nothing; the gate remembers */
        stated[d] || own[d] != 0 ->
        stated[d] = 0; own[d] = 0; view_active[d] = 0; view_lifted[d] = 0; view_sequence[d] = 0; accepted_by[d] = 0 }
    od
}
