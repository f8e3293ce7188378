# SPDX-License-Identifier: Apache-2.0
"""The mutants: what is broken, where, and the test that has to notice. A text that is not in its file exactly once is an error."""
import collections

Patch = collections.namedtuple("Patch", "file text replacement")
# `without`: the backstops that are off when it is tried once more. `cheap`: part of the quick selection.
Mutant = collections.namedtuple("Mutant", "name kind patch test without cheap", defaults=((), False))

LUA, SQL = "services/reserve/lua", "services/ledger/sql"
# Indexes by their name only: without one of that name nothing is armed.
ONE_OWNER = ("(sale, generation, item, unit) WHERE live", "(sale, generation, item, unit, reservation_id) WHERE live")
ONE_SLOT = ("(sale, generation, user_id, user_slot) WHERE live", "(sale, generation, user_id, user_slot, reservation_id) WHERE live")
SIM_SEEDS, SIM_MUTANT_SEEDS = 6000, 20000


def gate(name, script, text, replacement, test, without=(), cheap=True):
    return Mutant(f"gate: {name}", "lua", Patch(f"{LUA}/{script}.lua", text, replacement),
                  f"tests/flow/test_gate_scripts.py::test_{test}", without, cheap)


def sql(name, file, text, replacement, test, without=(), suite="sql"):
    return Mutant(f"ledger: {name}", "sql", Patch(f"{SQL}/{file}.sql", text, replacement),
                  f"tests/flow/test_ledger_{suite}.py::test_{test}", without)


def code(kind, name, file, text, replacement, test, cheap=False, folder="unit"):
    program, _, function = test.partition("::")
    return Mutant(name, kind, Patch(file, text, replacement), f"tests/{folder}/test_{program}.c::{function}", (), cheap)


def simulated(kind, name, file, text, replacement, without=()):
    return Mutant(name, kind, Patch(file, text, replacement), "tests/sim::schedules", without)


GATE = (
    gate("a retry is a new hold", "hold", "    if known then\n", "    if false then\n", "replay_comes_before_everything_else"),
    gate("another request under the same key", "hold", "if string.match(known, '^%S+ %d+ %d+ (%S+) ') ~= ARGV[6] then", "if false then",
         "the_same_key_for_another_request"),
    gate("sells while paused", "hold", "call('HLEN', KEYS[2]) ~= 0", "false", "closed_by_any_pause_until_all_are_lifted"),
    gate("sells unproved", "hold", "if ctl[2] - now_ms <= 0 then", "if false then", "closed_when_nobody_has_proved_it"),
    gate("sells on another run of Redis", "hold", "if ctl[1] ~= ARGV[1] then", "if false then", "another_run_of_redis_is_unknown"),
    gate("takes an expired pass", "hold", "elseif ARGV[7] - now_ms <= 0 then", "elseif false then", "an_expired_pass"),
    gate("a place opens again in its window", "hold", "tonumber(ARGV[5]) <= tonumber(window)", "tonumber(ARGV[5]) < tonumber(window)",
         "a_place_is_used_once", ("buyers",)),
    gate("no limit", "hold", "elseif used_count + wanted > limit then", "elseif false then", "limits_above_one_and_slots_that_come_back"),
    gate("half a cart", "hold", "        if stock < count then\n", "        if stock < 0 then\n", "a_cart_is_all_or_nothing"),
    gate("the unit stays free", "hold", "    call('SETBIT', KEYS[10], taken_text, '0')\n", "", "a_hold_takes_one_identified_unit", ("C0",)),
    gate("no sum over one unit", "hold", "    elseif stock + held + ctl[7] ~= initial then\n", "    elseif false then\n",
         "a_foreign_increment_closes_the_gate_at_the_next_hold"),
    gate("no sum over a cart", "hold", "        if stock - count + held + count + row[4] ~= initial then\n", "        if false then\n",
         "a_cart_notices_a_foreign_increment_too"),
    gate("releases twice", "release", "call('HDEL', source_key, reservation)\n", "", "a_double_release_gives_back_once", ("C0", "buyers")),
    gate("releases for another epoch", "release", "if ctl[1] ~= ARGV[1] or ctl[2] ~= ARGV[2] then", "if ctl[1] ~= ARGV[1] then",
         "orders_of_another_epoch_are_not_obeyed", ("C0",)),
    gate("frees what is free", "release", " or call('GETBIT', key, unit) == 1 then", " then", "a_release_never_sets_a_bit_that_is_set",
         ("C0",)),
    gate("nothing is returned", "release", "'settled:', 'return', settled", "'settled:', 'return', false",
         "a_settled_reservation_is_returned_by_a_verdict_of_this_epoch", ("C0",)),
    gate("unknown is done", "release", "    return {'unknown_reservation'}", "    return {'done'}", "a_double_release_gives_back_once"),
    gate("settles what was given back", "settle", "if released == 1 then", "if false then",
         "a_late_order_to_settle_what_was_returned_changes_nothing", ("C0",)),
    gate("an acknowledgement undoes an extension", "extend", "call('SREM', KEYS[4], ARGV[3])\n", "",
         "an_acknowledgement_that_comes_after_an_extension_does_not_set_it_back"),
    gate("an extension shortens", "extend", " and tonumber(deadline) >= tonumber(ARGV[4]) then", " and false then",
         "extend_takes_the_later_deadline"),
    gate("an attestation shortens", "attest", "math.max(tonumber(ctl[5]), math.min(tonumber(ARGV[5]), now_ms) + ARGV[6])",
         "math.min(tonumber(ARGV[5]), now_ms) + ARGV[6]", "attestations_only_lengthen_and_only_the_armed_gate"),
    gate("an unverified gate is armed", "load", "if call('BITCOUNT', KEYS[i]) ~= tonumber(row[2]) then", "if false then",
         "a_gate_that_does_not_verify_is_not_armed"),
    gate("a key that will expire", "arm", "if call('PTTL', KEYS[i]) >= 0 then", "if false then", "keys_that_would_expire_are_not_armed"),
    gate("loads a unit twice", "load", "if plan.taken[name] or call('GETBIT', key, unit) == 0 then", "if false then",
         "a_page_that_contradicts_itself_changes_nothing", ("C0",)),
)

LEDGER = (
    sql("records for another epoch", "0003_record", "WHEN a.epoch <> v_sale.epoch OR a.generation <> v_sale.generation THEN 'stale_epoch'",
        "WHEN a.generation <> v_sale.generation THEN 'stale_epoch'", "a_hold_of_another_gate_is_refused", ("unit index",)),
    sql("records without the fence", "0003_record", "    PERFORM tidegate.fence_shared(p_sale);\n", "",
        "a_rebuild_waits_for_records_under_way_and_sees_them", ("unit index",)),
    sql("half a cart", "0003_record", "IF v_stored <> cardinality(p_items) OR v_stored = 0 THEN", "IF v_stored = 0 THEN",
        "a_cart_is_stored_whole_or_not_at_all"),
    sql("a conflict does not pause", "0003_record", "IF v_why[i] = 'unit_conflict' THEN", "IF false THEN",
        "a_unit_has_one_owner_and_the_conflict_pauses_the_sale"),
    sql("two owners of a unit", "0001_tables", *ONE_OWNER,
        "ten_recorders_of_one_unit_never_make_two_owners"),
    sql("two holds in a slot", "0001_tables", *ONE_SLOT,
        "case_09_a_lapsed_buyer_may_buy_again"),
    sql("no tombstone", "0004_verdicts", "           AS t (id, user_id, place, pass_window, digest)\n",
        "           AS t (id, user_id, place, pass_window, digest) WHERE false\n",
        "a_tombstone_makes_a_late_record_lose_and_the_other_way_round", ("unit index",)),
    sql("a tombstone of another epoch", "0004_verdicts",
        "IF cardinality(p_tomb_ids) > 0 AND (p_epoch <> v_sale.epoch OR p_generation <> v_sale.generation) THEN", "IF false THEN",
        "a_tombstone_of_another_epoch_is_no_row", ("unit index",)),
    sql("expires early", "0004_verdicts", "AND r.expires_at + tidegate.span(s.grace_ms) <= v_now", "AND r.expires_at <= v_now",
        "expiry_waits_for_the_grace", ("unit index",)),
    sql("what expired keeps its unit", "0004_verdicts", "UPDATE tidegate.holdings h SET live = false FROM lapsed l WHERE",
        "UPDATE tidegate.holdings h SET live = true FROM lapsed l WHERE", "case_09_a_lapsed_buyer_may_buy_again"),
    sql("confirms late", "0004_verdicts", "IF v_why = '' AND tidegate.past_grace(v_row) THEN", "IF false THEN",
        "the_deadline_ends_and_the_late_payment_is_given_back_once", ("unit index",)),
    sql("confirms at any price", "0004_verdicts", "IF NOT tidegate.costs(v_row, p_amount, p_currency) THEN", "IF false THEN",
        "case_39_only_the_exact_price_confirms"),
    sql("a payment buys twice", "0004_verdicts", "IF EXISTS (SELECT FROM tidegate.reservations r WHERE r.payment_id = p_payment) THEN",
        "IF false THEN", "case_39_a_payment_buys_one_thing"),
    sql("what goes back buys", "0004_verdicts",
        "IF EXISTS (SELECT FROM tidegate.outbox o WHERE o.message_id = 'compensate.' || p_payment) THEN", "IF false THEN",
        "another_payment_is_given_back_once"),
    sql("compensates once a reservation", "0004_verdicts", "VALUES ('compensate.' || p_payment, p_row.sale",
        "VALUES ('compensate.' || p_row.id, p_row.sale", "the_deadline_ends_and_the_late_payment_is_given_back_once"),
    sql("no compensation", "0004_verdicts", "        PERFORM tidegate.compensate(v_row, p_payment, p_amount, p_currency, v_why);\n", "",
        "another_payment_is_given_back_once"),
    sql("anybody cancels", "0004_verdicts", """r.id = p_id AND (p_user IS NULL OR r.user_id = p_user)
       FOR NO KEY UPDATE""", "r.id = p_id FOR NO KEY UPDATE", "cancel_is_the_buyers_own_or_the_shops"),
    sql("a return keeps its unit", "0004_verdicts", "    UPDATE tidegate.holdings h SET live = false WHERE h.reservation_id = p_id AND h.live;\n",
        "", "a_return_frees_the_unit_and_its_payment_is_not_compensated"),
    sql("a return is not carried", "0004_verdicts", """SET state = 'cancelled', ended_at = date_trunc('milliseconds', clock_timestamp()), \
obeyed_at = NULL, obeyed_epoch = 0""", "SET state = 'cancelled', ended_at = date_trunc('milliseconds', clock_timestamp())",
        "a_return_frees_the_unit_and_its_payment_is_not_compensated", ("unit index",)),
    sql("extends without end", "0004_verdicts", "IF v_row.extensions >= v_sale.extensions_max THEN", "IF false THEN",
        "extend_takes_the_later_deadline_a_bounded_number_of_times"),
    sql("extends too late", "0004_verdicts", "IF v_now >= v_row.expires_at THEN", "IF false THEN",
        "extend_only_before_the_shown_deadline"),
    sql("an extension that moves nothing counts", "0004_verdicts", "IF v_until <= v_row.expires_at THEN", "IF false THEN",
        "extend_never_shortens_and_then_costs_nothing"),
    sql("takes obedience of another epoch", "0004_verdicts", "IF v_epoch <> p_epoch THEN", "IF false THEN",
        "a_rebuild_makes_every_verdict_due_again_for_the_new_gate"),
    sql("takes obedience to no verdict", "0004_verdicts",
        "(o.kind = 'release' AND r.state IN ('expired', 'cancelled'))", "o.kind = 'release'",
        "due_is_what_lapsed_and_what_no_gate_has_obeyed"),
    sql("a new gate is told nothing", "0004_verdicts", "r.state <> 'pending' AND r.obeyed_epoch < v_sale.epoch",
        "r.state <> 'pending' AND r.obeyed_epoch = 0", "a_rebuild_makes_every_verdict_due_again_for_the_new_gate"),
    sql("a snapshot forgets what ended", "0004_verdicts", "WHERE r.sale = p_sale AND r.generation = v_sale.generation AND r.id > p_after",
        "WHERE r.sale = p_sale AND r.state IN ('pending', 'confirmed') AND r.id > p_after",
        "a_rebuild_makes_every_verdict_due_again_for_the_new_gate", ("unit index",)),
    sql("a verdict may change", "0002_guards", """    IF NOT (OLD.state = NEW.state OR OLD.state = 'pending' OR \
(OLD.state = 'confirmed' AND NEW.state = 'cancelled')) THEN""", "    IF false THEN", "what_ended_stays_ended"),
    sql("a resume lifts what it does not name", "0006_control", "IF v_missing IS NOT NULL THEN", "IF false THEN",
        "all_orders_of_two_pauses_and_two_resumes", suite="sales"),
    sql("a resume without proof", "0006_control", "v_why := tidegate.unproved(p_sale, 2);", "v_why := tidegate.judged('', '');",
        "a_resume_names_every_pause_and_rests_on_two_clean_rounds", suite="sales"),
    sql("arms where a commit is no promise", "0005_sales", " OR c.name = 'synchronous_commit' AND c.value = 'off'", "",
        "nothing_is_armed_where_a_commit_is_no_promise", suite="sales"),
    sql("an index is one by its name", "0005_sales", "CASE WHEN x.indisunique AND x.indisvalid AND x.indisready THEN",
        "CASE WHEN x.indisvalid THEN", "nothing_is_armed_where_an_index_guards_by_its_name_only", suite="sales"),
)

PROTOCOL = (
    code("protocol", "reserve: unknown is a yes", "services/reserve/core.c",
         "    case RESERVE_RECORDED_UNKNOWN:\n        refuse(flow, script, TG_REASON_TRY_AGAIN);",
         "    case RESERVE_RECORDED_UNKNOWN:\n        grant(flow, script, ledger);", "reserve_core::unknown_is_never_yes_or_no", cheap=True),
    code("protocol", "reserve: an unknown gate is sold out", "services/reserve/core.c",
         "    case RESERVE_TAKEN_NOT_RUN:\n        refuse(flow, script, TG_REASON_TRY_AGAIN);",
         "    case RESERVE_TAKEN_NOT_RUN:\n        refuse(flow, script, TG_REASON_SOLD_OUT);", "reserve_core::refusals_of_the_gate"),
    code("protocol", "reserve: what expired is granted", "services/reserve/core.c",
         "    case RESERVE_STATE_EXPIRED:\n        refuse(flow, script, TG_REASON_RESERVATION_EXPIRED);",
         "    case RESERVE_STATE_EXPIRED:\n        grant(flow, script, ledger);", "reserve_core::replays_are_answered_by_the_ledgers_word"),
    code("protocol", "reserve: a unit conflict does not pause", "services/reserve/core.c",
         "        append(script, RESERVE_DO_PAUSE)->cause = RESERVE_PAUSE_UNIT_CONFLICT;\n", "", "reserve_core::refusals_of_the_ledger"),
    code("protocol", "reserve: a doubt does not pause", "services/reserve/core.c",
         "        append(script, RESERVE_DO_PAUSE)->cause = RESERVE_PAUSE_DOUBT;\n", "", "reserve_core::a_doubt_pauses_and_is_never_an_answer"),
    code("protocol", "sweeper: reports what the gate did not do", "services/sweeper/core.c",
         "        case SWEEPER_NOT_KNOWN_THERE:\n        case SWEEPER_DOUBT:\n", "        case SWEEPER_DOUBT:\n            break;\n"
         "        case SWEEPER_NOT_KNOWN_THERE:\n            sale->results[sale->result_count++] = *result;\n",
         "sweeper_core::only_what_the_gate_did_is_reported", cheap=True),
    code("protocol", "sweeper: no verdict is asked for", "services/sweeper/core.c", "    if (sale->lapsed_count > 0) {\n", "    if (false) {\n",
         "sweeper_core::a_page_goes_verdict_obey_obeyed"),
    code("protocol", "sweeper: takes any late answer", "services/sweeper/core.c", " || lane->sequence != event->sequence) {", ") {",
         "sweeper_core::late_and_foreign_answers_change_nothing"),
    code("protocol", "sweeper: poison is asked again at once", "services/sweeper/core.c",
         "    row->retry_at.ms = now.ms + row->delay_ms;\n", "    row->retry_at.ms = now.ms;\n",
         "sweeper_core::case_07_poison_is_logged_once_and_retried_later"),
    code("protocol", "sweeper: forgotten holds stay", "services/sweeper/core.c", "    if (sale->hold_count > 0) {\n", "    if (false) {\n",
         "sweeper_converges::everything_comes_back_once_whatever_is_lost", folder="prop"),
    code("protocol", "ledger: the same hold travels twice", "services/ledger/core.c", "    if (batch->index[slot] != 0) {\n", "    if (false) {\n",
         "ledger_core::the_same_hold_asked_twice_travels_once"),
    code("protocol", "ledger: judges by another generation", "services/ledger/core.c",
         "    if (sale == NULL || sale->generation != hold->generation) {\n", "    if (sale == NULL) {\n",
         "ledger_core::a_hold_is_judged_against_its_own_generation"),
    simulated("protocol", "reserve: answers before the commit", "services/reserve/core.c",
              "    case RESERVE_RECORDED_UNKNOWN:\n        refuse(flow, script, TG_REASON_TRY_AGAIN);",
              "    case RESERVE_RECORDED_UNKNOWN:\n        grant(flow, script, ledger);", ("unit index", "buyers", "C0")),
    simulated("protocol", "sweeper: reports whatever it asked", "services/sweeper/core.c", "        switch (result->obedience) {\n",
              "        switch (SWEEPER_DONE) {\n", ("unit index", "buyers", "C0")),
    simulated("protocol", "gate: what is settled stays held", f"{LUA}/settle.lua", "call('HDEL', KEYS[3], reservation)\n", "",
              ("unit index", "C0")),
)

TOKEN = (
    code("token", "pass: no signature", "lib/pure/pass.c", "key != NULL ? check_signature(key, text, parts.signature) : TG_ERR_FORGED",
         "key != NULL ? 0 : TG_ERR_FORGED", "pure_pass::every_flipped_bit_is_refused", cheap=True),
    code("token", "pass: any spelling", "lib/pure/pass.c", "        memcmp(again, text, signed_length) != 0) {\n", "        false) {\n",
         "pure_pass::case_26_every_other_member_list_is_refused"),
    code("token", "pass: any key id", "lib/pure/pass.c", "        if (strcmp(keys[i].id, kid) == 0) {\n", "        if (true) {\n",
         "pure_pass::case_26_algorithm_and_key_are_ours_to_choose"),
    code("token", "ticket: key id zero", "lib/pure/ticket.c", "if (id != 0 && ring->keys[i].id == id) {", "if (ring->keys[i].id == id) {",
         "pure_ticket::key_id_zero_is_never_a_key"),
    code("token", "ticket: any spelling", "lib/pure/text.c", "    if (all != DIGIT || loose != 0) {\n", "    if (all != DIGIT) {\n",
         "pure_ticket::respelled_trailing_bits_are_refused"),
    code("token", "identity: fields slide", "lib/pure/identity.c",
         "    (void)crypto_generichash_update(state_of(mac), prefix, sizeof(prefix));\n", "",
         "pure_identity::case_27_no_field_slides_into_its_neighbour", cheap=True),
    code("token", "identity: a place without its index", "lib/pure/identity.c",
         "    tg_mac_number(&mac, index);\n", "", "pure_identity::every_input_counts"),
    code("token", "reserve: the jti is not recomputed", "services/reserve/wire.c", "return tg_equal_constant(jti, message->jti, TG_JTI_LENGTH);",
         "return true;", "reserve_wire::passes_of_others"),
    code("token", "challenge: not signed by us", "services/edge/solution.c",
         "    if (!tg_challenge_signed(proof->key, challenge, solution->signature) ||\n        !tg_challenge_bound(",
         "    if (!tg_challenge_bound(", "edge_solution::a_changed_challenge_is_not_ours", cheap=True),
    code("token", "challenge: of anybody, for anything", "services/edge/solution.c",
         " ||\n        !tg_challenge_bound(proof->key, proof->scope, challenge)) {\n", ") {\n",
         "edge_solution::case_27_not_by_another_account_nor_for_another_sale"),
    code("token", "challenge: for ever", "services/edge/solution.c", "    if (challenge->expires_at_s <= proof->now_s) {\n",
         "    if (false) {\n", "edge_solution::case_27_nothing_counts_after_its_end"),
    code("token", "challenge: no patience needed", "services/edge/solution.c", "proof->now_s < challenge->patient_at_s", "false",
         "edge_solution::patience_counts_as_work_and_once"),
    code("token", "challenge: spent and forgotten", "lib/pure/challenge.c", "    bucket->names[free_way] = name;\n", "",
         "edge_solution::case_27_a_solution_counts_once", cheap=True),
    code("token", "challenge: a full table forgets", "lib/pure/challenge.c", "        return TG_SPEND_FULL;\n", "        free_way = 0;\n",
         "pure_challenge::a_full_bucket_refuses_rather_than_forgets"),
    code("token", "challenge: a prefix without work", "lib/pure/challenge.c", "    return tg_equal_constant(own, derived, sizeof(own));\n",
         "    return true;\n", "pure_challenge::a_key_with_the_prefix_but_of_no_work_does_not_solve"),
    code("token", "admission: anybody's ticket", "services/admission/core_judge.c", "return signed_in && !same ? TG_REASON_FORBIDDEN : TG_REASON_NONE;",
         "return TG_REASON_NONE;", "admission_core::a_ticket_is_used_by_its_holder_only"),
)

QUEUE = (
    code("queue", "an index twice", "services/queue/core_line.c", "    brain->index_end += grant.count;\n", "    brain->index_end += grant.count / 2;\n",
         "queue_core::case_17_numbers_are_never_given_twice"),
    code("queue", "no gap after a takeover", "services/queue/core_line.c",
         "    brain->gap_to = brain->gap_from + (brain->evidence ? gap_of(brain, now) : 0);\n", "    brain->gap_to = brain->gap_from;\n",
         "queue_core::a_takeover_leaves_room_for_leases_nobody_told_of"),
    code("queue", "moves on unknown stock", "services/queue/core_pace.c", "           queue_stock_fresh(brain, now) && ", "           ",
         "queue_core::it_stops_when_the_stock_is_unknown"),
    code("queue", "saves up what was blocked", "services/queue/core_pace.c",
         "    brain->credit_micro = people < due ? 0 : brain->credit_micro - people * MICRO;\n", "    brain->credit_micro -= people * MICRO;\n",
         "queue_core::it_never_passes_the_next_index_and_saves_nothing_up"),
    code("queue", "an old brain goes on", "lib/pure/term.c", "    term->number = number;\n    stand_by(term, now);\n    return true;",
         "    term->number = number;\n    return true;", "pure_term::a_higher_number_makes_the_active_one_step_down", cheap=True),
    code("queue", "an old brain learns and goes on", "lib/pure/term.c", "    if (tg_term_speaks(term)) {\n        stand_by(term, now);\n    }\n", "",
         "pure_term::evidence_of_a_higher_number_makes_the_active_one_step_down"),
    code("queue", "a thawed brain goes on", "lib/pure/term.c", "    if (now.ms - sure.ms > TG_TERM_UNSURE_MS) {\n", "    if (false) {\n",
         "pure_term::frozen_it_steps_down_before_anything_else"),
    code("queue", "admits at the watermark", "services/admission/core_judge.c", "return rank < brain->board.watermark ?",
         "return rank <= brain->board.watermark ?", "admission_core::a_rank_at_the_watermark_waits"),
    code("queue", "admits by an old board", "services/admission/core_judge.c",
         "    if (!brain->board.known || now.ms - brain->board.heard.ms > ADMISSION_BOARD_STALE_MS) {\n", "    if (!brain->board.known) {\n",
         "admission_core::a_stale_board_says_nothing"),
    code("queue", "admits while a signal is above its limit", "services/admission/core_pace.c",
         "    if (trip != NO_SIGNAL) {\n",
         "    if (false) {\n", "admission_pace::a_freeze_within_a_ramp_begins_it_anew"),
    code("queue", "no ramp after a freeze", "services/admission/core_pace.c",
         "        control->ramping = !control->opening;\n",
         "        control->ramping = false;\n", "admission_pace::a_resume_ramps_from_a_quarter_to_the_whole_in_a_minute"),
    code("queue", "climbs on what is unknown", "services/admission/core_pace.c",
         "    } else if (anything_unknown(control, now)) {\n",
         "    } else if (false) {\n", "admission_pace::what_is_unknown_holds_and_still_slows"),
    code("queue", "climbs on what nobody used", "services/admission/core_pace.c",
         "used < base || flow < used / 1000 * ADMISSION_USED_PERMILLE",
         "false", "admission_pace::a_pace_nobody_uses_does_not_climb"),
    code("queue", "never slows down", "services/admission/core_pace.c",
         "            base = slowed(control, base, flow);\n",
         "", "admission_path::property", folder="prop"),
    code("queue", "waits for the absent", "services/queue/core_presence.c",
         "smaller(passed * 1000 / asked, QUEUE_HASTE_MAX_PERMILLE)",
         "1000", "queue_presence::property", folder="prop"),
    code("queue", "hurries past hidden people", "services/queue/core_presence.c",
         "edges_fresh(brain, now) ? smaller(haste, most) : presence->haste_permille",
         "smaller(haste, most)", "queue_presence::property", folder="prop"),
    code("queue", "no cap inside", "services/queue/core_pace.c",
         "inside < brain->view.inside_max ? smaller(room, brain->view.inside_max - inside) : 0",
         "room", "queue_presence::property", folder="prop"),
    code("queue", "a rank before the draw", "lib/pure/rank.c", "    if (!board->revealed) {\n", "    if (false) {\n",
         "pure_rank::nobody_has_a_rank_before_the_seed_is_known"),
)

CHECKER = (
    code("invariant", "A: a deleted hold", "services/invariant/core_check.c", "        if (!entry || !(entry->places & anywhere)) {\n",
         "        if (!entry) {\n            continue;\n        }\n        if (!(entry->places & anywhere)) {\n",
         "invariant_check::a_deleted_hold_is_found"),
    code("invariant", "B: a forged release", "services/invariant/core_check.c", "if ((entry->places & INVARIANT_RELEASED) && !ended) {",
         "if (false) {", "invariant_check::a_forged_release_is_found"),
    code("invariant", "C: a forged sale", "services/invariant/core_check.c", "if ((entry->places & INVARIANT_SETTLED) && !paid) {", "if (false) {",
         "invariant_check::a_forged_sale_is_found"),
    code("invariant", "D: done and undone", "services/invariant/core_check.c",
         "    if (row->obeyed && !(entry->places & (INVARIANT_RELEASED | settled))) {\n", "    if (false) {\n",
         "invariant_check::a_snapshot_from_before_the_orders_is_found"),
    code("invariant", "L: an edited buyer", "services/invariant/core_check.c", "    check_claims(facts, out_judgement);\n", "",
         "invariant_check::an_edited_row_of_buyers_is_found"),
    code("invariant", "E: a lost row", "services/invariant/core_check.c",
         "if ((entry->places & INVARIANT_HELD) && !(entry->places & INVARIANT_UNACKED) && !row_or_null) {", "if (false) {",
         "invariant_check::a_lost_row_is_found"),
    code("invariant", "U: another unit", "services/invariant/core_check.c", "row->units_tag != entry->units_tag ||\n", "false ||\n",
         "invariant_check::another_unit_or_user_is_found"),
    code("invariant", "L: an edited buyer", "services/invariant/core_check.c",
         "if (!(claim->places & INVARIANT_GARBLED) && (!entry || !claims_it(claim, entry))) {", "if (false) {",
         "invariant_check::an_edited_row_of_buyers_is_found"),
    code("invariant", "C2: a dropped index", "services/invariant/core_check.c", "    if (!facts->ledger.one_owner) {\n", "    if (false) {\n",
         "invariant_check::a_dropped_index_is_found"),
    code("invariant", "a pause only the gate has stays there", "services/invariant/core.c", "            return unknown(view, pause_id);\n",
         "            return false;\n", "invariant_core::a_gates_own_pause_is_carried_to_the_ledger"),
    code("invariant", "C1: a flipped bit", "services/invariant/core_check.c", "    if (item->free_bits != item->stock) {\n", "    if (false) {\n",
         "invariant_check::a_flipped_free_bit_is_found"),
    code("invariant", "C2: two owners", "services/invariant/core_check.c",
         "        if (i > 0 && invariant_by_unit(&holdings[i - 1], holding) == 0) {\n", "        if (false) {\n",
         "invariant_check::two_owners_of_a_unit_are_found", cheap=True),
    code("invariant", "G: another Redis", "services/invariant/core_check.c", "    if (strcmp(facts->server.run_id, ledger->run_id) != 0) {\n",
         "    if (false) {\n", "invariant_check::another_redis_or_postgres_is_found"),
    code("invariant", "an unfinished round is clean", "services/invariant/core_check.c", "        if (out_judgement->outcome == INVARIANT_CLEAN) {\n"
         "            make_void(out_judgement, \"the round was not finished\");\n        }\n", "",
         "invariant_check::an_unfinished_round_is_never_clean"),
    code("invariant", "reads the ledger last", "services/invariant/core.c",
         "        next_shard(round, INVARIANT_BUYERS, INVARIANT_LEDGER);\n", "        next_shard(round, INVARIANT_BUYERS, INVARIANT_HELD2);\n",
         "invariant_core::a_round_reads_r1_then_p_then_r2"),
    code("invariant", "a pause is said once", "services/invariant/core.c", "    pause->next.ms = now.ms + INVARIANT_PAUSE_EVERY_MS;\n",
         "    pause->wanted = false;\n", "invariant_core::a_pause_is_repeated_until_the_ledger_shows_it"),
    simulated("invariant", "A: a deleted hold, simulated", "services/invariant/core_check.c",
              "        if (!entry || !(entry->places & anywhere)) {\n", "        if (!entry) {\n            continue;\n        }\n"
              "        if (!(entry->places & anywhere)) {\n", ("C0",)),
)

MUTANTS = GATE + LEDGER + PROTOCOL + TOKEN + QUEUE + CHECKER

# What stands behind the protocol, switched off: in the shipped code and in the simulator's model of it.
BACKSTOPS = {
    "unit index": (
        Patch(f"{SQL}/0001_tables.sql", *ONE_OWNER),
        Patch("services/invariant/core_check.c", "    if (!facts->ledger.one_owner) {\n", "    if (false) {\n"),
        Patch("tests/sim/ledger.c", "            taken(ledger, hold, unit, false)) {", "            false) {"),
    ),
    "slot index": (
        Patch(f"{SQL}/0001_tables.sql", *ONE_SLOT),
        Patch("services/invariant/core_check.c", "    if (!facts->ledger.one_slot) {\n", "    if (false) {\n"),
        Patch("tests/sim/ledger.c", "unit->slot >= ledger->limit || taken(ledger, hold, unit, true)", "unit->slot >= ledger->limit"),
    ),
    # The limit then rests on the ledger's slots alone, which is what the checker and the simulator's oracles must be told.
    "buyers": (
        Patch(f"{LUA}/hold.lua", "local buyer = call('HGET', KEYS[7], user)\n", "local buyer = ''\n"),
        Patch(f"{LUA}/release.lua", "if cleared ~= #bits or cleared == 0 then", "if false then"),
        Patch("tests/sim/oracle.c", "(reason == TG_REASON_UNIT_CONFLICT || reason == TG_REASON_LIMIT_CONFLICT) &&",
              "reason == TG_REASON_UNIT_CONFLICT &&"),
        Patch("tests/sim/oracle.c", "settled != gate.settled || slots != gate.slots", "settled != gate.settled"),
        Patch("services/invariant/core_check.c", "    check_claims(facts, out_judgement);\n", ""),
        Patch("tests/sim/corruptions.c", "        if (entry->value_length > 0) {\n            entry->value_length = 0;\n",
              "        if (false) {\n"),
    ),
    "C0": (
        Patch(f"{LUA}/hold.lua", "    elseif stock + held + ctl[7] ~= initial then\n", "    elseif false then\n"),
        Patch(f"{LUA}/hold.lua", "        if stock - count + held + count + row[4] ~= initial then\n", "        if false then\n"),
    ),
}

# With a backstop off the protocol itself still holds: these pass without it.
CHECKS = {
    "unit index": ("tests/sim::schedules", "tests/flow/test_ledger_sql.py::test_tombstones_racing_records_leave_one_truth_each",
                   "tests/flow/test_ledger_sql.py::test_case_14_many_reasons_to_give_back_one_unit",
                   "tests/flow/test_sweeper_lapse.py::test_a_lapsed_unit_is_sold_once_more_and_to_one"),
    "slot index": ("tests/sim::schedules", "tests/flow/test_ledger_sql.py::test_case_14_many_reasons_to_give_back_one_unit"),
    "buyers": ("tests/sim::schedules", "tests/flow/test_gate_scripts.py::test_replay_comes_before_everything_else",
               "tests/flow/test_sweeper_lapse.py::test_cancelled_and_returned_units_come_back"),
    "C0": ("tests/sim::schedules", "tests/flow/test_gate_scripts.py::test_units_are_distinct_until_none_is_left",
           "tests/flow/test_gate_scripts.py::test_freed_units_are_found_by_carts_too"),
}

# The simulator's own mutants (tests/sim/mutants.def) that have to die without the backstop too.
PROTOCOL_SIMULATED = ("no_tombstone", "no_fence", "no_tombstone_fence", "release_without_verdict", "new_id_on_retry", "obey_any_epoch",
                      "obey_foreign_gate", "expire_early", "confirm_late", "load_live_only", "answer_before_commit", "no_replay", "no_bit",
                      "no_seal", "no_place", "release_keeps_row", "release_no_return", "settle_no_count")
SIM_MUTANTS = {"unit index": PROTOCOL_SIMULATED, "C0": PROTOCOL_SIMULATED, "slot index": ("no_limit", "no_place", "no_replay", "new_id_on_retry"),
               "buyers": tuple(name for name in PROTOCOL_SIMULATED if name != "no_bit")}  # breaks the way of buyers who are new
