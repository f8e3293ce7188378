# SPDX-License-Identifier: Apache-2.0
"""Holds and verdicts in the book of record: every function that moves a reservation, its refusals and its races."""
import contextlib
import itertools
import os
import random
import threading
import time

import psycopg2
import pytest
from conftest import BUILD
from ledger_database import Client, PrivatePostgres, new_reservation
from shop import at_once, eventually

BINARY = os.path.join(BUILD, "bin", "tidegate-ledger")


@pytest.fixture(scope="module")
def postgres():
    server = PrivatePostgres(BINARY)
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


def user(number):
    return f"user-{number}".encode()


# -- record --------------------------------------------------------------------------------------------------------------


def test_a_batch_is_stored_whole_and_a_repeat_is_told_what_is_there(ledger):
    sale = ledger.open_sale(hold_ms=5000, limit_per_buyer=3)
    holds = [(new_reservation(), user(n), [(0, 3 * n + i, i) for i in range(3)]) for n in range(3)]
    first = ledger.record(sale, holds)
    assert [answer[:3] for answer in first] == [("recorded", "", "pending")] * 3
    again = ledger.record(sale, holds + [(new_reservation(), user(9), [(0, 9, 0)])])
    assert [answer[0] for answer in again] == ["already"] * 3 + ["recorded"]
    assert [answer[3] for answer in again[:3]] == [answer[3] for answer in first]  # the deadline it was first given
    assert again[1][4] == "0:3,0:4,0:5"
    assert len(ledger.live(sale)) == 10
    assert len([event for event in ledger.events(sale) if event[0] == "held"]) == 4


@pytest.mark.parametrize("what, holds, expected", [
    ("epoch", {"epoch": 2}, "stale_epoch"),
    ("old epoch", {"epoch": 0}, "stale_epoch"),
    ("generation", {"generation": 2}, "stale_epoch"),
])
def test_a_hold_of_another_gate_is_refused(ledger, what, holds, expected):
    sale = ledger.open_sale()
    answer = ledger.record(sale, [(new_reservation(), user(1), [(0, 0, 0)])], **holds)[0]
    assert answer[:2] == ("refused", expected), what
    assert ledger.live(sale) == []


def test_a_closed_or_unknown_sale_records_nothing(ledger):
    sale = ledger.open_sale()
    kept = ledger.hold(sale, 0)
    assert ledger.judge(sale, "close")[0] == ""
    refused, known = ledger.record(sale, [(new_reservation(), user(1), [(0, 1, 0)]), (kept, user(2), [(0, 0, 0)])])
    assert refused[:2] == ("refused", "sale_closed")
    assert known[:3] == ("already", "", "pending")
    assert ledger.record("nowhere", [(new_reservation(), user(1), [(0, 1, 0)])])[0][:2] == ("refused", "sale_unknown")


def test_a_unit_has_one_owner_and_the_conflict_pauses_the_sale(ledger):
    sale = ledger.open_sale()
    ledger.hold(sale, 4)
    late = new_reservation()
    assert ledger.record(sale, [(late, user(2), [(0, 4, 0)])])[0][:2] == ("refused", "unit_conflict")
    row = ledger.sale_row(sale)
    assert row["state"] == "paused" and row["pause_ids"] == [late[4:]]
    assert ledger.state(late) is None
    # Told again after an operator lifted it: refused again, but the same conflict does not pause a second time.
    for _ in range(2):
        ledger.check(sale)
    assert ledger.judge(sale, "resume", row["control_seq"], pauses=row["pause_ids"])[0] == ""
    assert ledger.record(sale, [(late, user(2), [(0, 4, 0)])])[0][:2] == ("refused", "unit_conflict")
    assert ledger.sale_row(sale)["state"] == "open"


@pytest.mark.parametrize("unit, slot, expected", [(10, 0, "unit_conflict"), (-1, 0, "unit_conflict"), (0, 2, "limit_conflict"),
                                                  (0, -1, "limit_conflict")])
def test_what_does_not_exist_cannot_be_stored(ledger, unit, slot, expected):
    sale = ledger.open_sale(units=10, limit_per_buyer=2)
    assert ledger.record(sale, [(new_reservation(), user(1), [(0, unit, slot)])])[0][:2] == ("refused", expected)
    assert ledger.record(sale, [(new_reservation(), user(1), [(1, 0, 0)])])[0][:2] == ("refused", "unit_conflict")
    assert ledger.live(sale) == []


def test_a_cart_is_stored_whole_or_not_at_all(ledger):
    sale = ledger.open_sale(items=[5, 5], limit_per_buyer=4)
    ledger.hold(sale, 2)
    cart = new_reservation()
    answer = ledger.record(sale, [(cart, user(1), [(0, 1, 0), (1, 1, 1), (0, 2, 2)])])[0]
    assert answer[:2] == ("refused", "unit_conflict")
    assert ledger.state(cart) is None and len(ledger.live(sale)) == 1
    assert ledger.record(sale, [(cart, user(1), [(0, 1, 0), (1, 1, 1), (0, 3, 2)])])[0][0] == "recorded"


def test_a_poisoned_batch_costs_only_its_poison(ledger, book):
    sale = ledger.open_sale(units=200)
    poison = new_reservation()
    book("owner").rows(f"""CREATE FUNCTION pg_temp_poison() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.id = '{poison}' THEN RAISE EXCEPTION 'poison'; END IF; RETURN NEW; END $$;
        CREATE TRIGGER poison BEFORE INSERT ON tidegate.reservations FOR EACH ROW EXECUTE FUNCTION pg_temp_poison()""")
    ledger.hold(sale, 150)
    holds = [(new_reservation(), user(n), [(0, n, 0)]) for n in range(100)]
    holds[10] = (poison, user(10), [(0, 10, 0)])              # the store itself refuses it
    holds[20] = (new_reservation(), user(20), [(0, 150, 0)])  # a unit with an owner
    holds[30] = (new_reservation(), user(30), [(0, 999, 0)])  # no such unit
    holds[40] = (new_reservation(), user(39), [(0, 40, 0)])   # the slot of a neighbour in the same batch
    holds[60] = (holds[50][0], user(50), [(0, 50, 0)])        # the same hold twice
    answers = ledger.record(sale, holds)
    assert answers[10][:2] == ("unknown", "try_again")
    assert answers[20][:2] == answers[30][:2] == ("refused", "unit_conflict")
    assert sorted([answers[39][0], answers[40][0]]) == ["recorded", "refused"]
    assert sorted([answers[50][0], answers[60][0]]) == ["already", "recorded"]
    rest = [answers[n][0] for n in range(100) if n not in (10, 20, 30, 39, 40, 50, 60)]
    assert set(rest) == {"recorded"} and len(ledger.live(sale)) == 96


def test_ten_recorders_of_one_unit_never_make_two_owners(ledger, book):
    sale = ledger.open_sale()
    for unit in range(5):
        clients = [book() for _ in range(10)]
        answers = at_once([lambda c=client, n=n, u=unit: c.record(sale, [(new_reservation(), user(100 * u + n), [(0, u, 0)])])[0]
                           for n, client in enumerate(clients)])
        assert sorted(answer[:2] for answer in answers) == [("recorded", "")] + [("refused", "unit_conflict")] * 9
        for client in clients:
            client.close()
    assert len(ledger.live(sale)) == 5
    assert ledger.sale_row(sale)["state"] == "paused"


def test_ten_recorders_of_one_hold_make_one(ledger, book):
    sale = ledger.open_sale()
    hold = (new_reservation(), user(1), [(0, 3, 0)])
    answers = at_once([lambda c=book(): c.record(sale, [hold])[0] for _ in range(10)])
    assert sorted(answer[0] for answer in answers) == ["already"] * 9 + ["recorded"]
    assert len({answer[3] for answer in answers}) == 1
    assert ledger.sale_row(sale)["state"] == "open"


def test_users_are_bytes(ledger):
    sale = ledger.open_sale(limit_per_buyer=1)
    names = ["ab", "AB", "ab ", "abc", "a\u0301b", "áb", "\u202eab"]
    for unit, name in enumerate(names):
        ledger.hold(sale, unit, name.encode())
    refused = ledger.record(sale, [(new_reservation(), b"ab", [(0, 9, 0)])])[0]
    assert refused[:2] == ("refused", "limit_conflict")


# -- the fence -----------------------------------------------------------------------------------------------------------


def test_a_rebuild_waits_for_records_under_way_and_sees_them(ledger, book):
    sale = ledger.open_sale()
    slow = book(autocommit=False)
    reservation = new_reservation()
    assert slow.record(sale, [(reservation, user(1), [(0, 0, 0)])])[0][0] == "recorded"  # not committed yet
    rebuilt = []
    thread = threading.Thread(target=lambda: rebuilt.append(book().judge(sale, "rebuild")))
    thread.start()
    eventually(lambda: ledger.value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") == 1,
               what="the rebuild waits for the fence")
    assert book().judge(sale, "pause")[0] == ""  # a pause takes no fence: it does not wait
    assert rebuilt == []
    slow.connection.commit()
    thread.join()
    assert rebuilt[0][0] == ""
    assert [row[0] for row in ledger.snapshot(sale, 2)[1]] == [reservation]


def test_no_hold_of_the_old_gate_is_stored_after_the_rebuild(ledger, book):
    sale = ledger.open_sale(units=100000)
    stop = threading.Event()
    stale = []

    def record(client, first):
        for unit in range(first, first + 5000):
            answer = client.record(sale, [(new_reservation(), user(unit), [(0, unit, 0)])])[0]
            if answer[:2] == ("refused", "stale_epoch"):
                stale.append(answer)
                return
            assert answer[0] == "recorded", answer
            if stop.is_set():
                return
    threads = [threading.Thread(target=record, args=(book(), 5000 * n)) for n in range(8)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(ledger.live(sale)) > 50, what="holds are being recorded")
    assert ledger.judge(sale, "rebuild")[0] == ""
    seen = ledger.value("SELECT count(*) FROM tidegate.reservations")
    for thread in threads:
        thread.join()
    assert len(stale) == 8
    assert ledger.value("SELECT count(*) FROM tidegate.reservations") == seen
    assert ledger.value("SELECT count(*) FROM tidegate.reservations WHERE epoch <> 1") == 0


def test_a_tombstone_makes_a_late_record_lose_and_the_other_way_round(ledger):
    sale = ledger.open_sale()
    buried, recorded = new_reservation(), new_reservation()
    assert ledger.expire(sale, tombstones=[(buried, user(1))]) == ("", {buried: "expired"})
    assert ledger.record(sale, [(buried, user(1), [(0, 0, 0)])])[0][:3] == ("already", "", "expired")
    assert ledger.record(sale, [(recorded, user(2), [(0, 0, 0)])])[0][0] == "recorded"
    assert ledger.expire(sale, tombstones=[(recorded, user(2))]) == ("", {recorded: "pending"})
    assert ledger.live(sale) == [(0, 0, recorded)]
    assert ("release", buried) in [(kind, name) for name, kind in ledger.due(sale)[2]]  # the gate has to be told
    assert [event for event in ledger.events(sale) if event[1] == buried] == []         # nobody ever heard of it


def test_tombstones_racing_records_leave_one_truth_each(ledger, book):
    sale = ledger.open_sale(units=200)
    recorder, sweeper = book(), book()
    for unit in range(60):
        reservation = new_reservation()
        answer, verdict = at_once([lambda r=reservation, u=unit: recorder.record(sale, [(r, user(u), [(0, u, 0)])])[0],
                                   lambda r=reservation, u=unit: sweeper.expire(sale, tombstones=[(r, user(u))])])
        state = ledger.state(reservation)
        assert verdict == ("", {reservation: state})
        assert answer[:3] == (("recorded", "", "pending") if state == "pending" else ("already", "", "expired"))
        assert ((0, unit, reservation) in ledger.live(sale)) == (state == "pending")


def test_a_tombstone_of_another_epoch_is_no_row(ledger):
    sale = ledger.open_sale()
    reservation = new_reservation()
    assert ledger.judge(sale, "rebuild")[0] == ""
    assert ledger.expire(sale, tombstones=[(reservation, user(1))], epoch=1) == ("stale_epoch", {})
    assert ledger.expire(sale, tombstones=[(reservation, user(1))], epoch=2, generation=2) == ("stale_epoch", {})
    assert ledger.state(reservation) is None


def test_the_fence_refuses_to_work_where_it_would_not_hold(book):
    client = book(autocommit=False)
    client.connection.set_session(isolation_level="REPEATABLE READ")
    with pytest.raises(psycopg2.Error, match="READ COMMITTED"):
        client.record("sale", [(new_reservation(), user(1), [(0, 0, 0)])])


# -- confirm -------------------------------------------------------------------------------------------------------------


def test_case_39_only_the_exact_price_confirms(ledger):
    sale = ledger.open_sale(items=[5, 5], limit_per_buyer=4)
    cart = new_reservation()
    ledger.record(sale, [(cart, user(1), [(0, 0, 0), (0, 1, 1), (1, 0, 2)])])
    for amount, currency in ((1, "EUR"), (4900, "EUR"), (14699, "EUR"), (14701, "EUR"), (14700, "USD"), (0, "EUR")):
        assert ledger.confirm(cart, "pay-1", amount, currency)["reason"] == "amount_mismatch"
    assert ledger.state(cart) == "pending" and [e for e in ledger.events(sale) if e[0] == "compensate"] == []
    done = ledger.confirm(cart, "pay-1", 14700)
    assert done["reason"] == "" and not done["replayed"] and done["order_id"] == "ord_" + cart[4:]
    again = ledger.confirm(cart, "pay-1", 14700)
    assert again["reason"] == "" and again["replayed"] and again["order_id"] == done["order_id"]
    assert ledger.confirm(cart, "pay-1", 1)["reason"] == "amount_mismatch"
    assert [event[0] for event in ledger.events(sale)] == ["held", "confirmed"]


def test_case_39_a_payment_buys_one_thing(ledger):
    sale = ledger.open_sale()
    first, second = ledger.hold(sale, 0), ledger.hold(sale, 1)
    assert ledger.confirm(first, "pay-1")["reason"] == ""
    assert ledger.confirm(second, "pay-1")["reason"] == "payment_used"
    assert ledger.state(second) == "pending"
    assert [event for event in ledger.events(sale) if event[0] == "compensate"] == []  # it bought the first one
    assert ledger.confirm(new_reservation(), "pay-2")["reason"] == "reservation_unknown"


def test_another_payment_is_given_back_once(ledger):
    sale = ledger.open_sale()
    first, second = ledger.hold(sale, 0), ledger.hold(sale, 1)
    assert ledger.confirm(first, "pay-1")["reason"] == ""
    for _ in range(3):
        assert ledger.confirm(first, "pay-2")["reason"] == "already_paid"
    assert [event for event in ledger.events(sale) if event[0] == "compensate"] == [("compensate", first, "pay-2")]
    assert ledger.confirm(second, "pay-2")["reason"] == "payment_used"  # on its way back: it cannot buy any more
    assert ledger.state(second) == "pending"


def test_confirming_at_once_with_two_payments_keeps_one(ledger, book):
    sale = ledger.open_sale(units=40)
    clients = [book() for _ in range(4)]
    for unit in range(20):
        reservation = ledger.hold(sale, unit)
        answers = at_once([lambda c=client, n=n, r=reservation, u=unit: c.confirm(r, f"pay-{u}-{n % 2}")["reason"]
                           for n, client in enumerate(clients)])
        assert sorted(answers) == ["", "", "already_paid", "already_paid"]
    kinds = [event[0] for event in ledger.events(sale)]
    assert kinds.count("confirmed") == kinds.count("compensate") == 20


def test_one_payment_on_many_reservations_at_once_buys_one(ledger, book):
    sale = ledger.open_sale(units=40)
    reservations = [ledger.hold(sale, unit) for unit in range(8)]
    answers = at_once([lambda c=book(), r=reservation: c.confirm(r, "pay-1")["reason"] for reservation in reservations])
    assert sorted(answers) == [""] + ["payment_used"] * 7


def test_the_deadline_ends_and_the_late_payment_is_given_back_once(ledger):
    sale = ledger.open_sale(hold_ms=60, grace_ms=60)
    reservation = ledger.hold(sale, 0)
    eventually(lambda: ledger.due(sale)[1] == [reservation], what="it lapsed")
    assert ledger.state(reservation) == "pending"  # the deadline alone changes nothing
    for _ in range(5):
        assert ledger.confirm(reservation, "late")["reason"] == "reservation_expired"
    assert ledger.expire(sale, [reservation]) == ("", {reservation: "expired"})
    assert ledger.confirm(reservation, "late")["reason"] == "reservation_expired"
    owner = ledger.hold(sale, 0)  # the unit is another's now
    assert ledger.confirm(reservation, "later")["reason"] == "reservation_expired"
    assert ledger.live(sale) == [(0, 0, owner)]
    compensations = [event for event in ledger.events(sale) if event[0] == "compensate"]
    assert sorted(event[2] for event in compensations) == ["late", "later"]


def test_expiry_waits_for_the_grace(ledger):
    sale = ledger.open_sale(hold_ms=1, grace_ms=600000)
    reservation = ledger.hold(sale, 0)
    eventually(lambda: ledger.value("SELECT expires_at < clock_timestamp() FROM tidegate.reservations WHERE id = %s", reservation))
    assert ledger.due(sale)[1] == [] and ledger.expire(sale, [reservation]) == ("", {reservation: "pending"})
    assert ledger.confirm(reservation, "pay-1")["reason"] == ""


def test_case_08_deadlines_are_stamped_and_judged_by_one_clock(ledger):
    sale = ledger.open_sale(hold_ms=1234000)
    reservation = ledger.hold(sale, 0)
    life, age, whole = ledger.row(
        """SELECT extract(epoch FROM expires_at - created_at), extract(epoch FROM clock_timestamp() - created_at),
                  date_trunc('milliseconds', expires_at) = expires_at FROM tidegate.reservations WHERE id = %s""", reservation)
    assert float(life) == 1234.0 and 0 <= float(age) < 60 and whole
    assert ledger.expire(sale, [reservation]) == ("", {reservation: "pending"})
    assert ledger.confirm(reservation, "pay-1")["reason"] == ""


def test_confirm_and_expiry_at_the_deadline_exactly_one_wins(ledger, book):
    """16 clients around the deadline: 8 confirm, 8 are sweepers. Both sides hear the one truth."""
    pairs, clients = 400, 8
    sale = ledger.open_sale(units=pairs, hold_ms=1500, grace_ms=100)
    holds = [(new_reservation(), user(n), [(0, n, 0)]) for n in range(pairs)]
    answers = ledger.record(sale, holds)
    deadline = answers[0][3] / 1000 + 0.1
    ids = [hold[0] for hold in holds]
    confirmers, sweepers = [book() for _ in range(clients)], [book() for _ in range(clients)]
    told, verdicts = {}, {}

    def confirm(client, mine):
        for reservation in mine:
            told[reservation] = client.confirm(reservation, f"pay-{reservation}")["reason"]

    def sweep(client, mine):
        for reservation in mine:
            verdicts[reservation] = client.expire(sale, [reservation])[1][reservation]

    def around(work, client, mine):
        while time.time() < deadline - 0.02:
            time.sleep(0.001)
        work(client, mine)
    spread = [ids[n::clients] for n in range(clients)]
    at_once([lambda n=n: around(confirm, confirmers[n], spread[n]) for n in range(clients)] +
            [lambda n=n: around(sweep, sweepers[n], list(reversed(spread[n]))) for n in range(clients)])
    eventually(lambda: ledger.due(sale, limit=1)[1] == [] or ledger.expire(sale, ledger.due(sale)[1]) is None,
               what="nothing is left to expire")
    compensated = {event[1] for event in ledger.events(sale) if event[0] == "compensate"}
    for reservation in ids:
        state = ledger.state(reservation)
        assert told[reservation] == {"confirmed": "", "expired": "reservation_expired"}[state]
        assert verdicts[reservation] in ({"confirmed": ("confirmed", "pending"), "expired": ("expired", "pending")}[state])
        assert (reservation in compensated) == (state == "expired")
    assert {live[2] for live in ledger.live(sale)} == {r for r in ids if ledger.state(r) == "confirmed"}


def test_case_38_a_locked_row_delays_a_confirm_and_nothing_is_half_done(ledger, book):
    sale = ledger.open_sale()
    reservation = ledger.hold(sale, 0)
    blocker = book(autocommit=False)
    blocker.rows("SELECT 1 FROM tidegate.reservations WHERE id = %s FOR UPDATE", reservation)
    with pytest.raises(psycopg2.errors.LockNotAvailable):  # the role's lock_timeout: a definite no
        ledger.confirm(reservation, "pay-1")
    assert [event[0] for event in ledger.events(sale)] == ["held"]
    blocker.connection.rollback()
    assert ledger.confirm(reservation, "pay-1")["reason"] == ""
    assert [event[0] for event in ledger.events(sale)] == ["held", "confirmed"]


def test_case_38_what_fails_in_the_middle_leaves_nothing(ledger, book):
    sale = ledger.open_sale()
    reservation = ledger.hold(sale, 0)
    book("owner").rows("""CREATE SEQUENCE failures; GRANT USAGE ON failures TO PUBLIC;
        CREATE FUNCTION fail_twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.kind = 'confirmed' AND nextval('failures') <= 2 THEN RAISE EXCEPTION 'clash' USING ERRCODE = '40001'; END IF;
        RETURN NEW; END $$;
        CREATE TRIGGER failing BEFORE INSERT ON tidegate.outbox FOR EACH ROW EXECUTE FUNCTION fail_twice()""")
    for _ in range(2):
        with pytest.raises(psycopg2.errors.SerializationFailure):
            ledger.confirm(reservation, "pay-1")
        assert ledger.state(reservation) == "pending"
    assert ledger.confirm(reservation, "pay-1")["reason"] == ""
    assert [event[0] for event in ledger.events(sale)] == ["held", "confirmed"]


# -- extend, cancel, read ------------------------------------------------------------------------------------------------


def test_extend_takes_the_later_deadline_a_bounded_number_of_times(ledger):
    sale = ledger.open_sale(hold_ms=60000, extend_ms=90000, extensions_max=2)
    reservation = ledger.hold(sale, 0)
    before = ledger.read(reservation)["expires_ms"]
    first = ledger.extend(reservation)
    assert first["reason"] == "" and first["expires_ms"] >= before + 29000
    eventually(lambda: ledger.extend(reservation)["reason"] == "extension_refused", what="the bound is reached")
    assert ledger.value("SELECT extensions FROM tidegate.reservations WHERE id = %s", reservation) == 2
    assert ledger.read(reservation)["expires_ms"] >= first["expires_ms"]


def test_extend_never_shortens_and_then_costs_nothing(ledger):
    sale = ledger.open_sale(hold_ms=600000, extend_ms=1000)
    reservation = ledger.hold(sale, 0)
    before = ledger.read(reservation)["expires_ms"]
    for _ in range(5):
        answer = ledger.extend(reservation)
        assert answer["reason"] == "" and answer["replayed"] and answer["expires_ms"] == before
    assert ledger.value("SELECT extensions FROM tidegate.reservations WHERE id = %s", reservation) == 0


def test_extend_only_before_the_shown_deadline(ledger):
    sale = ledger.open_sale(hold_ms=50, grace_ms=60000)
    lapsing, paid, gone = (ledger.hold(sale, unit) for unit in range(3))
    assert ledger.confirm(paid, "pay-1")["reason"] == "" and ledger.cancel(gone)["reason"] == ""
    eventually(lambda: ledger.value("SELECT expires_at < clock_timestamp() FROM tidegate.reservations WHERE id = %s", lapsing))
    assert ledger.extend(lapsing)["reason"] == "extension_refused"
    assert ledger.confirm(lapsing, "pay-2")["reason"] == ""  # but paying was begun in time: the grace is for that
    assert ledger.extend(paid)["reason"] == "extension_refused"
    assert ledger.extend(gone)["reason"] == "reservation_cancelled"
    assert ledger.extend(new_reservation())["reason"] == "reservation_unknown"


def test_cancel_is_the_buyers_own_or_the_shops(ledger):
    sale = ledger.open_sale()
    reservation = ledger.hold(sale, 0, b"alice")
    assert ledger.cancel(reservation, b"mallory")["reason"] == "reservation_unknown"
    assert ledger.read(reservation, b"mallory")["reason"] == "reservation_unknown"
    assert ledger.read(reservation, b"alice")["state"] == "pending"
    assert ledger.cancel(reservation, b"alice")["reason"] == ""
    again = ledger.cancel(reservation, b"alice")
    assert again["reason"] == "" and again["replayed"] and again["state"] == "cancelled"
    assert ledger.cancel(new_reservation())["reason"] == "reservation_unknown"
    assert ledger.value("SELECT count(*) FROM tidegate.reservations") == 1  # an unknown id never becomes a row
    assert ledger.live(sale) == []


def test_a_return_frees_the_unit_and_its_payment_is_not_compensated(ledger):
    sale = ledger.open_sale()
    reservation = ledger.hold(sale, 0)
    ledger.confirm(reservation, "pay-1")
    assert ledger.obeyed(sale, [(reservation, "settle")]) == ("", 1)
    assert ledger.cancel(reservation)["payment_id"] == "pay-1"
    assert ledger.due(sale)[2] == [(reservation, "release")]
    assert ledger.confirm(reservation, "pay-1")["reason"] == "reservation_cancelled"
    assert [event for event in ledger.events(sale) if event[0] == "compensate"] == []  # `cancelled` carries the payment
    assert ("cancelled", reservation, "pay-1") in ledger.events(sale)
    ledger.hold(sale, 0)


def test_case_09_a_lapsed_buyer_may_buy_again(ledger):
    sale = ledger.open_sale(units=2, hold_ms=1500, limit_per_buyer=1)
    first = ledger.hold(sale, 0, b"u")
    eventually(lambda: ledger.expire(sale, [first])[1] == {first: "expired"})
    second = ledger.hold(sale, 1, b"u")
    assert ledger.confirm(second, "pay-2")["reason"] == ""
    assert ledger.record(sale, [(new_reservation(), b"u", [(0, 0, 0)])])[0][:2] == ("refused", "limit_conflict")
    for _ in range(3):
        assert ledger.confirm(first, "pay-1")["reason"] == "reservation_expired"
    assert ledger.obeyed(sale, [(first, "release")]) == ("", 1)
    assert ledger.obeyed(sale, [(first, "release")]) == ("", 0)  # no second restock
    assert [event for event in ledger.events(sale) if event[0] == "compensate"] == [("compensate", first, "pay-1")]
    assert ledger.live(sale) == [(0, 1, second)]


def test_case_10_a_new_payment_attempt_on_ones_own_hold(ledger):
    sale = ledger.open_sale(units=1, limit_per_buyer=1)
    reservation = ledger.hold(sale, 0, b"u")
    before = ledger.read(reservation, b"u")["expires_ms"]
    assert ledger.confirm(reservation, "declined", 1)["reason"] == "amount_mismatch"
    assert ledger.read(reservation, b"u")["expires_ms"] == before
    assert ledger.confirm(reservation, "new attempt")["reason"] == ""


def test_case_14_many_reasons_to_give_back_one_unit(ledger):
    sale = ledger.open_sale(units=200, hold_ms=1, limit_per_buyer=2)
    unit = itertools.count()
    acts = {"sweeper": lambda r: ledger.expire(sale, [r]), "buyer": lambda r: ledger.cancel(r, b"u" + r.encode()),
            "operator": ledger.cancel, "late payment": lambda r: ledger.confirm(r, "pay-" + r),
            "tombstone": lambda r: ledger.expire(sale, tombstones=[(r, b"u" + r.encode())])}
    for order in itertools.permutations(acts):
        reservation = new_reservation()
        ledger.hold(sale, next(unit), b"u" + reservation.encode(), reservation=reservation)
        for name in order:
            for _ in range(3):
                acts[name](reservation)
        state = ledger.state(reservation)
        assert state in ("expired", "cancelled")
        kinds = [event[0] for event in ledger.events(sale) if event[1] == reservation]
        assert kinds.count("expired") + kinds.count("cancelled") == 1
        assert ledger.obeyed(sale, [(reservation, "release")]) == ("", 1)
        assert ledger.obeyed(sale, [(reservation, "release"), (reservation, "settle")]) == ("", 0)
    assert ledger.live(sale) == []


def test_case_43_carts_in_any_order_never_deadlock(ledger, book):
    sale = ledger.open_sale(items=[200] * 5, limit_per_buyer=64)
    free = [list(range(200)) for _ in range(5)]
    carts = []
    for number in range(150):
        items = random.Random(number).choices(range(5), k=5)
        carts.append((new_reservation(), user(number), [(item, free[item].pop(), slot) for slot, item in enumerate(items)]))
    clients = [book() for _ in range(8)]

    def shop_around(client, mine):
        for cart in mine:
            assert client.record(sale, [cart])[0][0] in ("recorded", "already")
            client.rows("DISCARD ALL")  # as a transaction pooler would
            if random.random() < 0.5:
                client.cancel(cart[0])
    at_once([lambda n=n: shop_around(clients[n], carts[n::4] if n < 4 else list(reversed(carts[n - 4::4]))) for n in range(8)])
    assert ledger.value("SELECT count(*) FROM tidegate.reservations") == 150
    owners = {(item, number) for item, number, _ in ledger.live(sale)}
    assert len(owners) == len(ledger.live(sale))


# -- due, obeyed, snapshot -----------------------------------------------------------------------------------------------


def test_due_is_what_lapsed_and_what_no_gate_has_obeyed(ledger):
    sale = ledger.open_sale(units=20, hold_ms=1500)
    ids = sorted(ledger.hold(sale, unit) for unit in range(9))
    for reservation in ids[:3]:
        assert ledger.confirm(reservation, "pay-" + reservation)["reason"] == ""
    for reservation in ids[3:6]:
        ledger.cancel(reservation)
    eventually(lambda: ledger.due(sale)[1] == ids[6:], what="the rest lapsed")
    orders = [(r, "settle") for r in ids[:3]] + [(r, "release") for r in ids[3:6]]
    assert ledger.due(sale)[2] == orders
    assert ledger.due(sale, orders_after=ids[1], limit=2)[2] == orders[2:4]
    assert ledger.due(sale, lapsed_after=ids[6], limit=2)[1] == [ids[7], ids[8]]
    assert ledger.due(sale, lapsed_after=ids[7])[1] == [ids[8], ids[6], ids[7]]  # round and round: none hides the others
    assert ledger.obeyed(sale, [(ids[0], "release"), (ids[3], "settle"), (ids[7], "release")]) == ("", 0)  # not the verdicts
    assert ledger.obeyed(sale, orders, epoch=2) == ("stale_epoch", 0)
    assert ledger.obeyed(sale, orders + orders) == ("", 6)
    assert ledger.due(sale)[2] == []
    restocked = ledger.rows("SELECT id FROM tidegate.reservations WHERE restocked_at IS NOT NULL ORDER BY id")
    assert [row[0] for row in restocked] == ids[3:6]


def test_a_rebuild_makes_every_verdict_due_again_for_the_new_gate(ledger):
    sale = ledger.open_sale(hold_ms=600000)
    sold, returned, pending = (ledger.hold(sale, unit) for unit in range(3))
    ledger.confirm(sold, "pay-1")
    ledger.cancel(returned)
    ledger.expire(sale, tombstones=[(buried := new_reservation(), b"b")])
    orders = [(sold, "settle"), (returned, "release"), (buried, "release")]
    assert ledger.obeyed(sale, orders) == ("", 3)
    assert ledger.judge(sale, "rebuild")[0] == ""
    epoch, _, due = ledger.due(sale)
    assert epoch == 2 and sorted(due) == sorted(orders)
    assert ledger.obeyed(sale, orders, epoch=1) == ("stale_epoch", 0)
    assert ledger.snapshot(sale, 1)[0] == "stale_epoch"
    rows = {row[0]: row for row in ledger.snapshot(sale, 2)[1]}
    assert {name: row[3] for name, row in rows.items()} == {sold: "confirmed", returned: "cancelled", pending: "pending",
                                                           buried: "expired"}
    assert rows[sold][9:] == ("0:0", "0") and rows[returned][9:] == ("", "") and rows[pending][5] == b"p" * 16
    assert ledger.obeyed(sale, orders, epoch=2) == ("", 3)


def test_a_snapshot_is_paged_by_id(ledger):
    sale = ledger.open_sale(units=30)
    ids = sorted(ledger.hold(sale, unit) for unit in range(30))
    seen, after = [], ""
    while page := ledger.snapshot(sale, 1, after, 7)[1]:
        seen += [row[0] for row in page]
        after = seen[-1]
    assert seen == ids


def test_mass_expiry_with_a_poison_row(ledger, book):
    sale = ledger.open_sale(units=1000, hold_ms=1)
    ids = []
    for first in range(0, 1000, 500):
        holds = [(new_reservation(), user(n), [(0, n, 0)]) for n in range(first, first + 500)]
        assert {answer[0] for answer in ledger.record(sale, holds)} == {"recorded"}
        ids += [hold[0] for hold in holds]
    poison = sorted(ids)[5]
    book("owner").rows(f"""CREATE FUNCTION stuck() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF NEW.id = '{poison}' THEN RAISE EXCEPTION 'stuck'; END IF; RETURN NEW; END $$;
        CREATE TRIGGER stuck BEFORE UPDATE ON tidegate.reservations FOR EACH ROW EXECUTE FUNCTION stuck()""")
    after, turns = "", 0
    while len(ledger.live(sale)) > 1:
        lapsed = ledger.due(sale, lapsed_after=after)[1]
        verdicts = ledger.expire(sale, lapsed)[1]
        assert all(verdicts[r] == ("pending" if r == poison else "expired") for r in lapsed)
        after, turns = lapsed[-1], turns + 1
        assert turns <= 12
    assert ledger.live(sale)[0][2] == poison


# -- guards and roles ----------------------------------------------------------------------------------------------------

TABLES = ("sales", "sale_items", "reservations", "holdings", "gate_log", "outbox", "publisher", "checks", "control_log",
          "schema_migrations")


def test_nobody_deletes(ledger, book):
    sale = ledger.open_sale()
    ledger.hold(sale, 0)
    owner, reader = book("owner"), book("tidegate_invariant")
    for table in TABLES:
        for client in (ledger, reader, owner):
            for sql in (f"DELETE FROM tidegate.{table}", f"TRUNCATE tidegate.{table} CASCADE"):
                with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                    client.rows("SET default_transaction_read_only = off")
                    client.rows(sql)
    for table in ("sale_items", "checks", "control_log", "gate_log", "schema_migrations"):
        column = ledger.value("""SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum = 2""", f"tidegate.{table}")
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            owner.rows(f"UPDATE tidegate.{table} SET {column} = {column}")


def test_the_checker_reads_and_only_reads(ledger, book):
    sale = ledger.open_sale()
    reservation = ledger.hold(sale, 0)
    reader = book("tidegate_invariant")
    for table in TABLES:
        reader.rows(f"SELECT * FROM tidegate.{table}")
    assert reader.value("SELECT tidegate.units_text(%s, true)", reservation) == "0:0"
    for sql in ("UPDATE tidegate.reservations SET state = 'expired', ended_at = now()",
                "INSERT INTO tidegate.control_log VALUES ('x')", "SELECT tidegate.tick_sales()",
                f"SELECT tidegate.cancel_reservation('{reservation}', NULL)"):
        reader.rows("SET default_transaction_read_only = on")
        with pytest.raises((psycopg2.errors.ReadOnlySqlTransaction, psycopg2.errors.InsufficientPrivilege)):
            reader.rows(sql)
        reader.rows("SET default_transaction_read_only = off")  # a habit, not the guard: the role has no rights
        with pytest.raises(psycopg2.errors.InsufficientPrivilege):
            reader.rows(sql)


@pytest.mark.parametrize("state, change", [
    ("expired", "state = 'pending', ended_at = NULL"), ("expired", "state = 'cancelled'"),
    ("cancelled", "state = 'confirmed', ended_at = NULL, confirmed_at = now(), payment_id = 'x', order_id = 'x'"),
    ("confirmed", "state = 'pending'"), ("confirmed", "payment_id = 'other'"), ("pending", "restocked_at = now()"),
    ("pending", "user_id = 'thief'"), ("pending", "expires_at = expires_at - interval '1 hour'"),
    ("pending", "state = 'confirmed'"), ("pending", "epoch = 9"),
])
def test_what_ended_stays_ended(ledger, state, change):
    sale = ledger.open_sale(hold_ms=1 if state == "expired" else 600000)
    reservation = ledger.hold(sale, 0)
    if state == "expired":
        eventually(lambda: ledger.expire(sale, [reservation])[1] == {reservation: "expired"})
    elif state == "cancelled":
        ledger.cancel(reservation)
    elif state == "confirmed":
        ledger.confirm(reservation, "pay-1")
    with pytest.raises(psycopg2.errors.IntegrityError):
        ledger.rows(f"UPDATE tidegate.reservations SET {change}")
    assert ledger.state(reservation) == state


def test_a_holding_only_ends_and_its_copies_are_true(ledger):
    sale = ledger.open_sale(units=5, limit_per_buyer=1)
    first = ledger.hold(sale, 0)
    ledger.cancel(first)
    second = ledger.hold(sale, 0)
    for change in ("live = true", "unit = 1"):
        with pytest.raises(psycopg2.errors.IntegrityError):
            ledger.rows(f"UPDATE tidegate.holdings SET {change} WHERE reservation_id = %s", first)
    for column, value in (("units", 6), ("buyer_limit", 2), ("unit", 5), ("user_slot", 1)):
        with pytest.raises(psycopg2.errors.IntegrityError):
            ledger.rows(f"""INSERT INTO tidegate.holdings (reservation_id, sale, generation, item, unit, units, buyer_limit,
                user_id, user_slot) SELECT reservation_id, sale, generation, item,
                {value if column == 'unit' else 1}, {value if column == 'units' else 'units'},
                {value if column == 'buyer_limit' else 'buyer_limit'}, 'x', {value if column == 'user_slot' else 0}
                FROM tidegate.holdings WHERE reservation_id = %s""", second)


# -- migrations ----------------------------------------------------------------------------------------------------------


def test_migrations_are_applied_once_and_by_one(postgres):
    database = postgres.create(migrated=False)
    done = at_once([lambda: postgres.migrate(database) for _ in range(4)])
    assert [run.returncode for run in done] == [0] * 4, [run.stderr for run in done]
    printed = sorted(line for run in done for line in run.stdout.splitlines())
    assert printed == [f"applied {os.path.basename(path)}" for path in sorted(
        os.listdir(os.path.join(os.path.dirname(__file__), "..", "..", "services", "ledger", "sql")))]
    again = postgres.migrate(database)
    assert (again.returncode, again.stdout) == (0, "")


def test_a_schema_this_binary_does_not_know_is_left_alone(postgres):
    database = postgres.create()
    with contextlib.closing(Client(postgres.url(database))) as owner:
        owner.rows("INSERT INTO tidegate.schema_migrations VALUES (9999, '9999_future.sql', 'x', now())")
    refused = postgres.migrate(database)
    assert refused.returncode == 78 and "9999" in refused.stderr


def test_an_edited_migration_is_told(postgres):
    database = postgres.create()
    with contextlib.closing(Client(postgres.url(database))) as owner:
        owner.rows("ALTER TABLE tidegate.schema_migrations DISABLE TRIGGER no_update")
        owner.rows("UPDATE tidegate.schema_migrations SET digest = 'other' WHERE version = 3")
    refused = postgres.migrate(database)
    assert refused.returncode == 78 and "0003_record.sql" in refused.stderr


