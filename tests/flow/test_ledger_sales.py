# SPDX-License-Identifier: Apache-2.0
"""Sales in the book of record: definitions, commands and their judgement, opening, proof, the gate's log, the outbox."""
import hashlib
import itertools
import os
import struct
import threading
import time

import psycopg2
import pytest
from conftest import BUILD
from ledger_database import Client, PrivatePostgres, definition, new_id, new_reservation
from shop import at_once, eventually


@pytest.fixture(scope="module")
def postgres():
    server = PrivatePostgres(os.path.join(BUILD, "bin", "tidegate-ledger"))
    yield server
    server.close()


@pytest.fixture
def book(postgres):
    """A fresh ledger: `book()` is one more connection to it."""
    database = postgres.create()
    opened = []

    def connect(user="tidegate_ledger", autocommit=True):
        opened.append(Client(postgres.url(database, user), autocommit))
        return opened[-1]
    yield connect
    for client in opened:
        client.close()


@pytest.fixture
def ledger(book):
    return book()


def prove(ledger, sale="sale", epoch=1, rounds=2):
    for _ in range(rounds):
        assert ledger.check(sale, epoch) == ""


def sequence(ledger, sale="sale"):
    return ledger.sale_row(sale)["control_seq"]


# -- definitions ---------------------------------------------------------------------------------------------------------


def test_apply_makes_a_sale_and_the_same_again_changes_nothing(ledger):
    assert ledger.apply("sale")[:2] == ("", "created")
    before = ledger.sale_row("sale")
    assert before["state"] == "scheduled" and before["epoch"] == 1 and before["generation"] == 1 and not before["armed"]
    assert ledger.apply("sale")[:2] == ("", "unchanged")
    assert ledger.sale_row("sale") == before


def test_a_plan_says_what_would_happen_and_does_nothing(ledger):
    assert ledger.judge("sale", "apply", definition=definition(), plan=True)[:2] == ("", "created")
    assert ledger.rows("SELECT * FROM tidegate.sales") == []
    ledger.open_sale()
    before = ledger.sale_row("sale")
    prove(ledger)
    before = ledger.sale_row("sale")
    for kind, options in (("pause", {}), ("rebuild", {}), ("close", {}), ("pace", {"pace": 2000000}), ("resume", {})):
        assert ledger.judge("sale", kind, before["control_seq"], plan=True, **options)[0] == "", kind
    assert ledger.sale_row("sale") == before
    assert ledger.value("SELECT count(*) FROM tidegate.control_log WHERE kind <> 'apply'") == 0


def test_before_it_opens_only_pace_and_opening_time_may_change(ledger):
    ledger.apply("sale", opens_ms=9999999999000)
    assert ledger.apply("sale", sequence=99, opens_ms=1000, pace_start_milli=2000)[0] == "stale_sequence"
    assert ledger.apply("sale", sequence(ledger), opens_ms=1000, pace_start_milli=2000)[:2] == (
        "", "changed: opensAt, pace.start")
    for said, change in (("items", {"units": 11}), ("limits.holdFor", {"hold_ms": 1000}), ("limits.perBuyer", {"limit_per_buyer": 9}),
                         ("policy.order", {"order": "random"}), ("limits.grace", {"grace_ms": 7}), ("items", {"items": [10, 10]}),
                         ("limits.extensions", {"extensions_max": 9})):
        reason, detail, _ = ledger.apply("sale", sequence(ledger), opens_ms=1000, pace_start_milli=2000, **change)
        assert reason == "definition_frozen" and said in detail
    price = definition(opens_ms=1000, pace_start_milli=2000)
    price["items"][0]["price_minor"] = 1
    assert ledger.judge("sale", "apply", sequence(ledger), definition=price)[0] == "definition_frozen"


def test_once_open_nothing_of_the_definition_changes(ledger):
    ledger.open_sale()
    assert ledger.apply("sale", sequence(ledger), pace_start_milli=2000)[0] == "definition_frozen"
    assert ledger.apply("sale", sequence(ledger), opens_ms=2000)[0] == "definition_frozen"
    assert ledger.apply("sale")[:2] == ("", "unchanged")


def test_a_closed_sale_is_created_again_and_epochs_go_on(ledger):
    ledger.open_sale(hold_ms=1500)
    sold, lapsing = ledger.hold("sale", 0, b"u"), ledger.hold("sale", 1)
    ledger.confirm(sold, "pay-1")
    ledger.judge("sale", "rebuild")
    assert ledger.judge("sale", "close")[0] == ""
    assert ledger.apply("sale", sequence(ledger))[0] == "not_allowed_now"  # a hold is still pending
    eventually(lambda: ledger.expire("sale", [lapsing])[1] == {lapsing: "expired"})
    assert ledger.apply("sale", sequence=1)[0] == "stale_sequence"
    assert ledger.apply("sale", sequence(ledger), units=5)[:2] == ("", "created again, generation 2")
    row = ledger.sale_row("sale")
    assert (row["generation"], row["epoch"], row["state"], row["armed"], row["pause_ids"]) == (2, 3, "scheduled", False, [])
    assert ledger.snapshot("sale", 3) == ("", [])  # what was sold before is another generation's
    assert ledger.due("sale")[2] == []
    assert ledger.record("sale", [(new_reservation(), b"u", [(0, 0, 0)])], 2, 1)[0][:2] == ("refused", "stale_epoch")
    assert ledger.record("sale", [(new_reservation(), b"u", [(0, 0, 0)])], 3, 2)[0][0] == "recorded"
    assert ledger.cancel(sold)["state"] == "cancelled"  # the old sale's order may still be returned
    assert ledger.value("SELECT count(*) FROM tidegate.sale_items WHERE sale = 'sale'") == 2


def test_there_is_an_end_to_the_number_of_sales(ledger):
    for number in range(64):
        assert ledger.apply(f"sale-{number}")[0] == ""
    assert ledger.apply("one-more")[0] == "not_allowed_now"
    assert len(ledger.rows("SELECT * FROM tidegate.list_sales('', NULL, 100)")) == 64


@pytest.mark.parametrize("name", ["", "a" * 65, "}x", "a.b", "a b", "ä", "a;DROP"])
def test_case_04_names_that_would_break_a_key_are_refused(ledger, name):
    with pytest.raises(psycopg2.errors.CheckViolation):
        ledger.apply(name)


@pytest.mark.parametrize("change", [{"limit_per_buyer": 0}, {"hold_ms": 0}, {"shards": 0}, {"pace_max_milli": 1}, {"units": 0}])
def test_a_definition_out_of_bounds_cannot_be_stored(ledger, change):
    with pytest.raises(psycopg2.errors.CheckViolation):
        ledger.apply("sale", **change)
    assert ledger.rows("SELECT * FROM tidegate.sales") == []


# -- opening, selling out ------------------------------------------------------------------------------------------------


def test_a_sale_opens_by_the_clock_once_armed_and_proved(ledger):
    ledger.apply("sale", proof_lease_ms=300)
    assert ledger.tick() == 0  # not armed
    ledger.arm("sale")
    assert ledger.tick() == 0  # not proved
    ledger.check("sale", outcome="void")
    assert ledger.tick() == 0
    ledger.check("sale")
    eventually(lambda: not ledger.value("SELECT tidegate.proof_fresh(s) FROM tidegate.sales s"))
    assert ledger.tick() == 0  # the proof is stale
    ledger.check("sale")
    assert ledger.tick() == 1 and ledger.sale_row("sale")["state"] == "open"
    assert ledger.tick() == 0


def test_a_sale_does_not_open_early_or_while_paused(ledger):
    now_ms = int(ledger.value("SELECT tidegate.to_ms(clock_timestamp())"))
    ledger.apply("sale", opens_ms=now_ms + 700)
    ledger.arm("sale")
    prove(ledger)
    assert ledger.tick() == 0
    pause = new_id()
    assert ledger.judge("sale", "pause", command=pause)[0] == ""
    eventually(lambda: ledger.value("SELECT clock_timestamp() > opens_at FROM tidegate.sales"))
    assert ledger.tick() == 0 and ledger.sale_row("sale")["state"] == "paused"
    assert ledger.judge("sale", "resume", sequence(ledger), pauses=[pause])[0] == ""
    assert ledger.tick() == 1 and ledger.sale_row("sale")["state"] == "open"


def test_many_ledgers_open_a_sale_once(ledger, book):
    ledger.apply("sale")
    ledger.arm("sale")
    prove(ledger)
    before = sequence(ledger)
    assert sum(at_once([lambda c=book(): c.tick() for _ in range(6)])) == 1
    assert sequence(ledger) == before + 1


def test_sold_out_when_all_is_confirmed_and_back_when_some_returns(ledger):
    ledger.open_sale(items=[1, 1])
    first, second = new_reservation(), new_reservation()
    ledger.record("sale", [(first, b"a", [(0, 0, 0)]), (second, b"b", [(1, 0, 0)])])
    ledger.confirm(first, "pay-1")
    assert ledger.tick() == 0  # one is only held
    ledger.confirm(second, "pay-2")
    assert ledger.tick() == 1 and ledger.sale_row("sale")["state"] == "sold_out"
    ledger.cancel(first)
    assert ledger.tick() == 1 and ledger.sale_row("sale")["state"] == "open"
    assert [event[0] for event in ledger.events("sale")].count("sold_out") == 1


def test_an_operator_may_open_early(ledger):
    ledger.apply("sale", opens_ms=9999999999000)
    assert ledger.judge("sale", "open", sequence(ledger))[0] == "not_armed"
    ledger.arm("sale")
    assert ledger.judge("sale", "open", sequence(ledger))[0] == "not_proved"
    prove(ledger)
    assert ledger.judge("sale", "open", 0)[0] == "stale_sequence"
    assert ledger.judge("sale", "open", sequence(ledger))[0] == ""
    assert ledger.judge("sale", "open", sequence(ledger))[0] == "not_allowed_now"
    listed = ledger.row("SELECT opens_ms, open_from_ms, now_ms FROM tidegate.list_sales('', 'sale', 1)")
    assert listed[0] == 9999999999000 and listed[1] <= listed[2]


# -- the draw ------------------------------------------------------------------------------------------------------------

SECRET, ROOT = b"s" * 32, b"r" * 32
COMMITMENT = hashlib.sha256(SECRET).hexdigest()
ENTRANTS = bytes(range(1, 33))  # two


def enter(ledger, first, entrants=ENTRANTS):
    return ledger.row("SELECT reason, stored FROM tidegate.append_roster('sale', 1, %s, %s)", first, entrants)


def freeze(ledger, stored=2, count=2, root=ROOT):
    return ledger.value("SELECT reason FROM tidegate.freeze_draw('sale', 1, %s, %s, 64, %s)", stored, count, root)


def reveal(ledger, secret=SECRET, beacon=b"", seed=b"x" * 32):
    return ledger.value("SELECT reason FROM tidegate.reveal_draw('sale', 1, %s, %s, %s)", secret, beacon, seed)


def test_a_roster_is_frozen_whole_and_once(ledger):
    assert ledger.apply("sale", order="random", commitment=COMMITMENT)[0] == ""
    assert enter(ledger, 0) == ("", 2) and enter(ledger, 0) == ("gap", 2)
    assert freeze(ledger) == "not_allowed_now", "not before the opening"
    assert ledger.arm("sale") == "" and ledger.check("sale") == "" and ledger.tick() >= 1
    assert freeze(ledger, stored=0) == "gap", "by nobody who does not know all of it"
    assert freeze(ledger) == "" == freeze(ledger), "the same again is the same"
    assert freeze(ledger, count=3) == "not_allowed_now" == freeze(ledger, root=b"q" * 32)
    assert enter(ledger, 2) == ("not_allowed_now", 2), "nobody comes in any more"


def test_only_the_promised_secret_is_told_and_after_the_beacon(ledger):
    ledger.open_sale("sale", order="random", commitment=COMMITMENT, beacon="round 7")
    assert reveal(ledger) == "not_allowed_now", "not before the roster is frozen"
    assert enter(ledger, 0) == ("", 2) and freeze(ledger) == ""
    assert reveal(ledger) == "not_allowed_now", "not before the beacon is known"
    assert ledger.value("SELECT reason FROM tidegate.sales s, tidegate.judge_beacon(s, '00ff', false) WHERE s.sale = 'sale'") == ""
    assert reveal(ledger, beacon=b"\x00\xfe") == "not_allowed_now"
    assert reveal(ledger, secret=b"t" * 32, beacon=b"\x00\xff") == "not_allowed_now", "another secret would be another draw"
    assert reveal(ledger, beacon=b"\x00\xff") == "" == reveal(ledger, beacon=b"\x00\xff")
    assert reveal(ledger, beacon=b"\x00\xff", seed=b"y" * 32) == "not_allowed_now", "one draw is the only one"


# -- arming and proof ----------------------------------------------------------------------------------------------------


def test_an_epoch_is_armed_once_by_one_redis(ledger):
    ledger.apply("sale")
    assert ledger.arm("sale", 2) == "stale_epoch"
    assert ledger.arm("sale", 1, "run-1") == ""
    before = sequence(ledger)
    assert ledger.arm("sale", 1, "run-1") == "" and sequence(ledger) == before
    assert ledger.arm("sale", 1, "run-2") == "already_armed"
    assert ledger.arm("nowhere") == "sale_unknown"
    system, timeline = ledger.row("SELECT system_identifier, timeline FROM tidegate.sales")
    assert system.isdigit() and timeline == "00000001"


def test_nothing_is_armed_where_a_commit_is_no_promise(ledger):
    ledger.apply("sale")
    ledger.connection.cursor().execute("SET synchronous_commit = off")
    assert ledger.arm("sale") == "unsound" and not ledger.sale_row("sale")["armed"]
    ledger.connection.cursor().execute("SET synchronous_commit = local")
    assert ledger.arm("sale") == ""


@pytest.mark.parametrize("index", ["holdings_one_owner", "holdings_one_slot"])
def test_nothing_is_armed_where_an_index_guards_by_its_name_only(ledger, book, index):
    ledger.apply("sale")
    owner = book("owner")
    made = owner.value("SELECT pg_get_indexdef(%s::regclass)", f"tidegate.{index}")
    owner.connection.cursor().execute(f"DROP INDEX tidegate.{index}")
    assert ledger.arm("sale") == "unsound"
    owner.connection.cursor().execute(made.replace("UNIQUE ", ""))
    assert ledger.arm("sale") == "unsound" and not ledger.sale_row("sale")["armed"]
    owner.connection.cursor().execute(f"DROP INDEX tidegate.{index}; {made}")
    assert ledger.arm("sale") == ""


def test_two_redises_arming_at_once_leave_one(ledger, book):
    ledger.apply("sale")
    answers = at_once([lambda c=book(), n=n: c.arm("sale", 1, f"run-{n}") for n in range(6)])
    assert sorted(answers) == [""] + ["already_armed"] * 5


def test_clean_rounds_count_in_a_row_and_of_this_epoch_only(ledger):
    def rounds():
        return ledger.sale_row("sale")["clean_rounds"]
    ledger.apply("sale")
    prove(ledger)
    assert rounds() == 0  # nothing was armed
    ledger.arm("sale")
    assert ledger.check("sale", checked_ms=7) == "" and rounds() == 1
    assert ledger.check("sale", checked_ms=7) == "" and rounds() == 1  # the same round told twice
    assert ledger.check("sale", checked_ms=7, instance="other") == "" and rounds() == 2
    ledger.check("sale", outcome="alarm")
    assert rounds() == 0
    prove(ledger)
    ledger.check("sale", outcome="void")
    assert rounds() == 0
    prove(ledger)
    ledger.judge("sale", "rebuild")
    ledger.check("sale", epoch=1)
    assert rounds() == 0  # of the gate before
    ledger.arm("sale", 2)
    prove(ledger, epoch=2)
    assert rounds() == 2
    with pytest.raises(psycopg2.errors.CheckViolation):
        ledger.check("sale", 2, outcome="fine")


# -- pause, resume, rebuild ----------------------------------------------------------------------------------------------


def test_a_resume_names_every_pause_and_rests_on_two_clean_rounds(ledger):
    ledger.open_sale()
    first, second = new_id(), new_id()
    assert ledger.judge("sale", "pause", command=first)[0] == ""
    assert ledger.judge("sale", "pause", command=second)[0] == ""
    assert ledger.judge("sale", "resume", sequence(ledger), pauses=[first])[:2] == ("pauses_missing", f"active and not named: {second}")
    assert ledger.judge("sale", "resume", sequence(ledger) - 1, pauses=[first, second])[0] == "stale_sequence"
    ledger.check("sale", outcome="alarm")
    ledger.check("sale")
    assert ledger.judge("sale", "resume", sequence(ledger), pauses=[first, second])[0] == "not_proved"
    ledger.check("sale")
    stranger = new_id()  # a pause the ledger never heard of, named by the operator who saw it at a gate
    assert ledger.judge("sale", "resume", sequence(ledger), pauses=[first, second, stranger])[0] == ""
    row = ledger.sale_row("sale")
    assert row["state"] == "open" and set(row["lifted_ids"]) == {first, second, stranger}
    assert ledger.judge("sale", "pause", command=stranger)[:2] == ("", "this pause was lifted already")
    assert ledger.sale_row("sale")["state"] == "open"
    assert [event[0] for event in ledger.events("sale")] == ["paused", "paused", "resumed"]


def test_a_repeated_command_is_told_what_it_was_told(ledger):
    ledger.open_sale()
    prove(ledger)
    pause, resume = new_id(), new_id()
    ledger.judge("sale", "pause", command=pause)
    refused = ledger.judge("sale", "resume", 0, command=resume, pauses=[pause])
    assert refused[0] == "stale_sequence"
    again = ledger.judge("sale", "resume", sequence(ledger), command=resume, pauses=[pause])
    assert again == (*refused[:2], True)  # judged once: a fresh command is needed
    assert ledger.judge("sale", "resume", sequence(ledger), pauses=[pause])[0] == ""
    assert ledger.judge("sale", "pause", command=pause) == ("", "paused", True)  # replayed: told again, not done again
    assert ledger.sale_row("sale")["state"] == "open"
    assert ledger.judge("sale", "close", command=pause)[0] == "malformed"
    assert ledger.apply("other")[0] == "" and ledger.judge("other", "pause", command=pause)[0] == "malformed"


def test_every_ledger_hears_a_command_and_one_judges_it(ledger, book):
    ledger.open_sale()
    command = new_id()
    answers = at_once([lambda c=book(): c.judge("sale", "rebuild", command=command) for _ in range(6)])
    assert {answer[:2] for answer in answers} == {("", "paused, the gate of epoch 2 is being built")}
    assert sorted(answer[2] for answer in answers) == [False] + [True] * 5
    assert ledger.sale_row("sale")["epoch"] == 2
    sale = new_id()
    answers = at_once([lambda c=book(): c.judge("fresh", "apply", command=sale, definition=definition()) for _ in range(6)])
    assert {answer[:2] for answer in answers} == {("", "created")}


def test_all_orders_of_two_pauses_and_two_resumes(ledger):
    """Whatever the bus does to the order: a sale is open only if the last resume names every pause that came before it."""
    ledger.open_sale()
    for order in itertools.permutations(("pause 1", "pause 2", "resume 1", "resume 12")):
        ids = {"1": new_id(), "2": new_id()}
        prove(ledger)
        start, active, lifted = sequence(ledger), set(), set()
        for act in order:
            kind, names = act.split()
            if kind == "pause":
                assert ledger.judge("sale", "pause", command=ids[names])[0] == ""
                active |= {names} - lifted
            elif ledger.judge("sale", "resume", sequence(ledger), pauses=[ids[name] for name in names])[0] == "":
                assert active <= set(names)
                active, lifted = set(), lifted | set(names)
            else:
                assert not active <= set(names)
        row = ledger.sale_row("sale")
        assert set(row["pause_ids"]) == {ids[name] for name in active}
        assert row["state"] == ("paused" if active else "open") and row["control_seq"] >= start
        if active:
            assert ledger.judge("sale", "resume", row["control_seq"], pauses=row["pause_ids"])[0] == ""


def test_pauses_are_bounded_and_a_refused_one_may_come_again(ledger):
    ledger.open_sale()
    ids = [new_id() for _ in range(32)]
    for pause in ids:
        assert ledger.judge("sale", "pause", command=pause)[0] == ""
    late = new_id()
    assert ledger.judge("sale", "pause", command=late)[0] == "not_allowed_now"
    prove(ledger)
    assert ledger.judge("sale", "resume", sequence(ledger), pauses=ids)[0] == ""
    assert ledger.judge("sale", "pause", command=late)[0] == ""
    assert ledger.sale_row("sale")["pause_ids"] == [late]
    for _ in range(3):
        more = [late] + [new_id() for _ in range(20)]
        for pause in more[1:]:
            ledger.judge("sale", "pause", command=pause)
        prove(ledger)
        assert ledger.judge("sale", "resume", sequence(ledger), pauses=more)[0] == ""
    lifted = ledger.sale_row("sale")["lifted_ids"]
    assert len(lifted) == 64 and lifted[-1] == more[-1]


def test_a_rebuild_fences_pauses_and_needs_its_own_proof(ledger):
    ledger.open_sale()
    prove(ledger)
    rebuild = new_id()
    assert ledger.judge("sale", "rebuild", command=rebuild)[0] == ""
    row = ledger.sale_row("sale")
    assert (row["state"], row["epoch"], row["armed"], row["clean_rounds"]) == ("paused", 2, False, 0)
    assert row["pause_ids"] == [rebuild]
    assert ledger.judge("sale", "resume", row["control_seq"], pauses=[rebuild])[0] == "not_armed"
    ledger.arm("sale", 2, "run-2")
    assert ledger.judge("sale", "resume", sequence(ledger), pauses=[rebuild])[0] == "not_proved"
    prove(ledger, epoch=1)
    assert ledger.judge("sale", "resume", sequence(ledger), pauses=[rebuild])[0] == "not_proved"
    prove(ledger, epoch=2)
    assert ledger.judge("sale", "resume", sequence(ledger), pauses=[rebuild])[0] == ""
    assert ledger.sale_row("sale")["state"] == "open"


def test_closing_is_for_good_and_lets_holds_end(ledger):
    ledger.open_sale()
    paid, given_back = ledger.hold("sale", 0), ledger.hold("sale", 1)
    assert ledger.judge("sale", "close")[0] == ""
    assert ledger.judge("sale", "close")[:2] == ("", "closed already")
    for kind in ("pause", "rebuild", "pace"):
        assert ledger.judge("sale", kind)[0] == "sale_closed", kind
    assert ledger.judge("sale", "resume", sequence(ledger))[0] == "sale_closed"
    assert ledger.arm("sale") == "sale_closed"
    assert ledger.tick() == 0
    assert ledger.confirm(paid, "pay-1")["reason"] == "" and ledger.cancel(given_back)["reason"] == ""
    with pytest.raises(psycopg2.errors.IntegrityError):
        ledger.rows("UPDATE tidegate.sales SET stage = 'open'")


def test_pace_up_rests_on_the_sequence_and_down_does_not(ledger):
    ledger.open_sale(pace_start_milli=1000000, pace_min_milli=1000, pace_max_milli=5000000)
    assert ledger.judge("sale", "pace", 0, pace=2000000)[0] == "stale_sequence"
    assert ledger.judge("sale", "pace", sequence(ledger), pace=2000000)[0] == ""
    assert ledger.judge("sale", "pace", 0, pace=500000)[0] == ""
    for pace in (999, 5000001):
        assert ledger.judge("sale", "pace", sequence(ledger), pace=pace)[0] == "definition_invalid"
    assert ledger.sale_row("sale")["pace_milli"] == 500000


def test_commands_for_another_generation_or_nothing_are_refused(ledger):
    ledger.open_sale()
    assert ledger.judge("sale", "pause", generation=2)[0] == "stale_sequence"
    assert ledger.judge("nowhere", "pause")[0] == "sale_unknown"
    assert ledger.judge("sale", "dance")[0] == "malformed"
    assert ledger.sale_row("sale")["state"] == "open"


def test_epochs_and_sequences_never_go_back(ledger):
    ledger.open_sale()
    ledger.judge("sale", "rebuild")
    for change in ("epoch = 1", "control_seq = 1", "generation = 0", "sale = 'other'"):
        with pytest.raises(psycopg2.errors.IntegrityError):
            ledger.rows(f"UPDATE tidegate.sales SET {change}")


# -- the gate's log ------------------------------------------------------------------------------------------------------

ZERO = b"\0" * 32


def field(value):
    if isinstance(value, int):
        value = struct.pack("<q", value)
    value = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(value)) + value


def link(before, sale, epoch, shard, entry):
    """The hash of one entry, as docs and services/ledger/core_chain.h say it."""
    text = b"".join(map(field, ("gate_log", sale, epoch, shard, *entry, before)))
    return hashlib.blake2b(text, digest_size=64).digest()[:32]


def append(ledger, after, entries, hashes, epoch=1):
    columns = [list(column) for column in zip(*entries)]
    return ledger.row("""SELECT * FROM tidegate.append_gate_log('sale', %s, 0, %s, %s::bigint[], %s::text[], %s::text[], %s::text[],
        %s::bigint[], %s::bigint[], %s::text[], %s::bytea[])""", epoch, after, *columns, hashes)


def entry_of(number):
    return (number, "hold", new_reservation(), "0:1", 9, 1700000000000 + number, "reserve-1")


def test_the_log_is_stored_without_gaps_and_only_grows(ledger):
    ledger.apply("sale")
    assert ledger.rows("SELECT * FROM tidegate.gate_log_tail('sale', 1, 0)") == []
    entries = [entry_of(number) for number in range(1, 7)]
    hashes = [ZERO]
    for entry in entries:
        hashes.append(link(hashes[-1], "sale", 1, 0, entry))
    assert append(ledger, 1, entries[1:3], hashes[2:4]) == ("gap", 0)
    assert append(ledger, 0, entries[:3], hashes[1:4]) == ("", 3)
    assert append(ledger, 0, entries[:3], hashes[1:4]) == ("gap", 3)
    assert append(ledger, 3, [entries[3], entries[5]], hashes[4:6]) == ("gap", 3)
    assert append(ledger, 3, entries[3:], hashes[4:]) == ("", 6)
    assert append(ledger, 0, entries[:1], hashes[1:2], epoch=2) == ("stale_epoch", 0)  # an epoch that is not yet
    assert ledger.row("SELECT * FROM tidegate.gate_log_tail('sale', 1, 0)") == (6, hashes[-1])
    before = ZERO
    for row in ledger.rows("""SELECT sequence, kind, reservation_id, units, stock_after, gate_ms, source, hash
            FROM tidegate.gate_log ORDER BY sequence"""):
        before = link(before, "sale", 1, 0, row[:7])
        assert row[7] == before


def test_two_checkers_exporting_at_once_store_each_entry_once(ledger, book):
    ledger.apply("sale")
    entries = [entry_of(number) for number in range(1, 41)]

    def export(client):
        while True:
            tail = client.rows("SELECT sequence FROM tidegate.gate_log_tail('sale', 1, 0)")
            after = tail[0][0] if tail else 0
            if after == 40:
                return
            append(client, after, entries[after:after + 3], [ZERO] * len(entries[after:after + 3]))
    at_once([lambda c=book(): export(c) for _ in range(4)])
    assert [row[0] for row in ledger.rows("SELECT sequence FROM tidegate.gate_log ORDER BY 1")] == list(range(1, 41))


# -- the outbox ----------------------------------------------------------------------------------------------------------


def page(client, instance, limit=100):
    return client.rows("SELECT id, message_id, kind, units, user_id FROM tidegate.outbox_page(%s, %s)", instance, limit)


def test_events_are_paged_to_one_publisher_and_marked_once(ledger):
    ledger.open_sale()
    ids = [ledger.hold("sale", unit, b"u%d" % unit) for unit in range(5)]
    first = page(ledger, "one", 3)
    assert [(row[1], row[2], row[3], row[4]) for row in first] == [(f"{r}.held", "held", f"0:{n}", b"u%d" % n)
                                                                  for n, r in enumerate(ids[:3])]
    assert page(ledger, "two") == []  # the lease is another's; that only saves work
    assert page(ledger, "one", 3) == first  # not marked: told again, under the same message id
    marked = "SELECT tidegate.outbox_published(%s::bigint[])"
    assert ledger.value(marked, [row[0] for row in first]) == 3
    assert ledger.value(marked, [row[0] for row in first]) == 0
    assert [row[1] for row in page(ledger, "one")] == [f"{r}.held" for r in ids[3:]]
    ledger.rows("UPDATE tidegate.publisher SET until = clock_timestamp() - interval '1 second'")
    assert len(page(ledger, "two")) == 2  # the first publisher is gone: the next one takes over


def test_case_46_message_ids_are_of_the_event(ledger):
    ledger.open_sale(units=1, limit_per_buyer=1)
    first = ledger.hold("sale", 0, b"u")
    ledger.cancel(first)
    second = ledger.hold("sale", 0, b"u")
    ledger.confirm(second, "pay-1")
    ledger.cancel(second)
    told = [row[1] for row in page(ledger, "one")]
    assert told == [f"{first}.held", f"{first}.cancelled", f"{second}.held", f"{second}.confirmed", f"{second}.cancelled"]
    assert len(set(told)) == len(told)


def test_a_rebuild_is_not_starved_by_writers_who_never_pause(ledger, book):
    ledger.open_sale(units=1000000)
    stop = threading.Event()

    def write(client, first):
        unit = itertools.count(first)
        while not stop.is_set():
            units = [next(unit) for _ in range(20)]
            client.record("sale", [(new_reservation(), b"u%d" % u, [(0, u, 0)]) for u in units])
    threads = [threading.Thread(target=write, args=(book(), 50000 * n)) for n in range(8)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(ledger.live("sale")) > 200, what="writers are writing")
    began = time.monotonic()
    assert ledger.judge("sale", "rebuild")[0] == ""  # lock_timeout would make it fail: it got its turn within 1.5 s
    print(f"fence taken and epoch raised in {1000 * (time.monotonic() - began):.0f} ms beside 8 writers")
    stop.set()
    for thread in threads:
        thread.join()
    assert ledger.sale_row("sale")["epoch"] == 2
