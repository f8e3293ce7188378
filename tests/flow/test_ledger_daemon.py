# SPDX-License-Identifier: Apache-2.0
"""The ledger as a process: no gate, no edge, only NATS and PostgreSQL, and the test in their place."""
import contextlib
import hashlib
import json
import os
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time

import psycopg2
import pytest
from bus_probe import Bus, messages
from conftest import BUILD
from ledger_database import Client, new_id, new_reservation
from shop import at_once, eventually
from stack import Stack, free_port

PLACE, DIGEST = b"p" * 16, b"d" * 16


class Book:
    """A ledger with its servers, and what others say to it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tidegate-book-")
        os.chmod(self.folder, 0o711)
        self.stack = Stack(os.path.join(self.folder, "run"), BUILD, quiet=True)
        self.stack.ctl("keys", "new", f"{self.stack.run}/keys")
        self.stack.start_nats()
        self.stack.start_postgres()
        owner = self.stack.env["TIDEGATE_POSTGRES_URL"]
        self.stack.env["TIDEGATE_LEDGER_MIGRATE_URL"] = owner
        self.stack.env["TIDEGATE_LEDGER_POSTGRES_URL"] = owner.replace("user=tidegate", "user=tidegate_ledger")
        self.proto, self.name = messages(), "sale"
        self.bus = Bus(self.stack.env["TIDEGATE_NATS_URL"])

    def close(self):
        self.bus.close()
        self.stack.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, name="ledger", **options):
        self.stack.start_daemon("ledger", name, **options)

    def client(self):
        return Client(self.stack.env["TIDEGATE_LEDGER_POSTGRES_URL"])

    def sql(self, sql, *parameters):
        with contextlib.closing(self.client()) as client:
            return client.rows(sql, *parameters)

    def ask(self, subject, request, reply, seconds=3):
        return self.bus.ask(subject, request.SerializeToString(), reply, seconds)

    def open_sale(self, sale=None, **changes):
        sale = sale or self.name
        with contextlib.closing(self.client()) as client:
            client.open_sale(sale, **changes)
        return sale

    def record_request(self, sale, unit, user, reservation=None, epoch=1, slot=0):
        ledger, common = self.proto.ledger, self.proto.common
        return ledger.RecordRequest(sale=sale, generation=1, epoch=epoch, reservation_id=reservation or new_reservation(), user=user,
                                    place=PLACE, window=7, digest=DIGEST, units=[common.UnitRef(item=0, unit=unit)], user_slots=[slot])

    def record(self, sale, unit, user=None, reservation=None, seconds=3, **changes):
        reservation = reservation or new_reservation()
        request = self.record_request(sale, unit, user or reservation.encode(), reservation, **changes)
        return self.ask(f"ledger.{sale}.record", request, self.proto.ledger.RecordReply, seconds)

    def verb(self, verb, request):
        return self.ask(f"ledger.reservation.{verb}", request, self.proto.ledger.ReservationReply)

    @property
    def service(self):
        with open(f"{self.stack.run}/keys/service", encoding="ascii") as handle:
            return handle.read().split()[1]

    def states(self, sale):
        """Collects state.{sale} from now on; returns the growing list of (time, state)."""
        heard = []
        self.bus.subscribe(f"state.{sale}", lambda _s, body, *_: heard.append(
            (time.monotonic(), self.proto.ledger.SaleState.FromString(body))))
        return heard


@pytest.fixture
def empty_book():
    """Servers only: not migrated, no ledger running."""
    book = Book()
    yield book
    book.close()


@pytest.fixture(scope="module")
def rough_book():
    book = Book()
    book.stack.migrate()
    yield book
    book.close()


@pytest.fixture
def book(rough_book):
    """Servers and ledger may be killed and frozen; whatever a test left dead is started again for the next."""
    if not rough_book.stack.alive("postgres"):
        rough_book.stack.start_postgres()
    rough_book.stack.kill("ledger-2")
    rough_book.stack.kill("ledger")
    rough_book.start()
    rough_book.name = f"sale-{new_id()[-6:]}"
    return rough_book


@pytest.fixture(scope="module")
def calm_book():
    """Shared by tests that break nothing."""
    book = Book()
    book.stack.migrate()
    book.start()
    yield book
    book.close()


def recorded(reply, proto):
    return reply is not None and reply.outcome == proto.ledger.RECORD_OUTCOME_RECORDED


# -- schema and readiness ------------------------------------------------------------------------------------------------


def test_it_is_ready_when_the_schema_is_its_own(empty_book):
    empty_book.stack.env["TIDEGATE_LEDGER_POSTGRES_URL"] = empty_book.stack.env["TIDEGATE_POSTGRES_URL"]  # the role is not there yet
    empty_book.start(ready=False)
    eventually(lambda: "--migrate" in empty_book.stack.admin("ledger", "/readyz?verbose")[1], what="it says what is missing")
    assert empty_book.stack.admin("ledger", "/livez")[0] == 200
    done = subprocess.run([f"{empty_book.stack.bin}/tidegate-ledger", "--migrate"], env={**os.environ, **empty_book.stack.env},
                          capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == "applied 0001_tables.sql"
    eventually(lambda: empty_book.stack.admin("ledger", "/readyz")[0] == 200, what="ready without a restart")


def test_it_ends_before_a_schema_it_does_not_know(empty_book):
    empty_book.stack.migrate()
    with contextlib.closing(Client(empty_book.stack.env["TIDEGATE_POSTGRES_URL"])) as owner:
        owner.rows("INSERT INTO tidegate.schema_migrations VALUES (9999, '9999_future.sql', 'x', now())")
    empty_book.start(ready=False)
    process = empty_book.stack.processes["ledger"]
    assert process.wait(20) != 0
    assert "ledger.schema_unknown" in empty_book.stack.tail("ledger")


def test_a_ledger_without_postgres_says_so_and_comes_back(book):
    sale = book.open_sale()
    book.stack.crash_postgres()
    eventually(lambda: book.stack.admin("ledger", "/readyz")[0] == 503, what="not ready")
    assert book.stack.admin("ledger", "/livez")[0] == 200
    assert book.record(sale, 0).reason == "try_again"
    assert book.verb("read", book.proto.ledger.ReadRequest(reservation_id=new_reservation(), user=b"u")).reason == "try_again"
    headers, _ = book.bus.ask_raw("ledger.sales", b"")
    assert b"Nats-Service-Error" in headers  # a listing that could not be read is never an empty one
    book.stack.start_postgres()
    eventually(lambda: book.stack.admin("ledger", "/readyz")[0] == 200, 20, "ready again")
    assert recorded(book.record(sale, 0), book.proto)


# -- record --------------------------------------------------------------------------------------------------------------


def test_a_hold_is_recorded_once_and_its_repeat_finds_it(calm_book):
    sale, proto = calm_book.open_sale("once", hold_ms=60000), calm_book.proto
    reservation = new_reservation()
    first = calm_book.record(sale, 3, b"u", reservation)
    assert recorded(first, proto) and first.state == proto.common.RESERVATION_STATE_PENDING and first.epoch == 1
    assert [(unit.item, unit.unit) for unit in first.units] == [(0, 3)]
    again = calm_book.record(sale, 3, b"u", reservation)
    assert again.outcome == proto.ledger.RECORD_OUTCOME_ALREADY and again.expires_at_ms == first.expires_at_ms
    assert [(unit.item, unit.unit) for unit in again.units] == [(0, 3)]
    other = calm_book.record(sale, 3, b"v")
    assert other.outcome == proto.ledger.RECORD_OUTCOME_REFUSED and other.reason == "unit_conflict"
    assert calm_book.record(sale, 4, b"v", epoch=9).reason == "stale_epoch"
    assert calm_book.record("nowhere", 4, b"v").reason == "sale_unknown"


def test_many_holds_travel_in_few_commits(calm_book):
    sale, proto = calm_book.open_sale("many", units=2000), calm_book.proto
    answers = []
    done = threading.Event()
    inbox = f"probe.{new_id()}"

    def take(_subject, body, *_):
        answers.append(proto.ledger.RecordReply.FromString(body))
        if len(answers) == 2000:
            done.set()
    calm_book.bus.subscribe(inbox, take, prefix="")
    before = calm_book.stack.admin("ledger", "/metrics")[1]
    for unit in range(2000):
        request = calm_book.record_request(sale, unit, b"user-%d" % unit)
        calm_book.bus.publish(f"ledger.{sale}.record", request.SerializeToString(), inbox)
    assert done.wait(30)
    assert {answer.outcome for answer in answers} == {proto.ledger.RECORD_OUTCOME_RECORDED}
    after = calm_book.stack.admin("ledger", "/metrics")[1]

    def count(text):
        found = [line for line in text.splitlines() if line.startswith("tidegate_ledger_record_batches_total")]
        return float(found[0].split()[-1]) if found else 0
    assert 4 <= count(after) - count(before) <= 400
    assert calm_book.sql("SELECT count(*) FROM tidegate.reservations WHERE sale = %s", sale) == [(2000,)]


def test_the_same_hold_sent_many_times_at_once_is_one_row(calm_book):
    sale, proto = calm_book.open_sale("repeats"), calm_book.proto
    reservation = new_reservation()
    answers = at_once([lambda: calm_book.record(sale, 0, b"u", reservation) for _ in range(20)])
    good = {proto.ledger.RECORD_OUTCOME_RECORDED, proto.ledger.RECORD_OUTCOME_ALREADY}
    assert {answer.outcome for answer in answers} <= good and len({answer.expires_at_ms for answer in answers}) == 1
    assert calm_book.sql("SELECT count(*) FROM tidegate.holdings WHERE sale = %s", sale) == [(1,)]


def test_a_malformed_hold_is_refused_and_its_neighbours_are_not(calm_book):
    sale, proto = calm_book.open_sale("malformed", units=100), calm_book.proto
    bad = calm_book.record_request(sale, 0, b"")
    elsewhere = calm_book.record_request("other", 0, b"u")
    beyond = calm_book.record_request(sale, 100, b"u")
    answers = at_once([lambda r=request: calm_book.ask(f"ledger.{sale}.record", r, proto.ledger.RecordReply)
                       for request in (bad, elsewhere, beyond)] + [lambda u=unit: calm_book.record(sale, u) for unit in range(20)])
    assert [answer.reason for answer in answers[:3]] == ["malformed", "malformed", "unit_conflict"]
    assert all(recorded(answer, proto) for answer in answers[3:])


def test_no_recorded_answer_without_its_row_however_postgres_dies(book):
    """kill -9 of the postmaster under load, several times: what was told is there."""
    sale, proto = book.open_sale(units=100000), book.proto
    told, unit, stop = set(), iter(range(100000)), threading.Event()
    lock = threading.Lock()

    def work():
        while not stop.is_set():
            with lock:
                number = next(unit)
            reservation = new_reservation()
            answer = book.record(sale, number, None, reservation)
            if recorded(answer, proto):
                told.add(reservation)
            else:
                assert answer is None or answer.reason == "try_again", answer
    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for _ in range(4):
        before = len(told)
        eventually(lambda seen=before: len(told) > seen + 30, 30, "holds are recorded")
        book.stack.crash_postgres()
        book.stack.start_postgres()
    stop.set()
    for thread in threads:
        thread.join()
    rows = {row[0] for row in book.sql("SELECT id FROM tidegate.reservations WHERE state = 'pending'")}
    assert told and told <= rows


def test_killed_backends_are_unknown_never_a_yes_or_a_no(book):
    sale, proto = book.open_sale(units=100000), book.proto
    told, stop = {}, threading.Event()

    def work(first):
        for unit in range(first, first + 10000):
            reservation = new_reservation()
            answer = book.record(sale, unit, None, reservation)
            told[reservation] = answer
            if stop.is_set():
                return
    threads = [threading.Thread(target=work, args=(10000 * n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    with contextlib.closing(Client(book.stack.env["TIDEGATE_POSTGRES_URL"])) as owner:
        for _ in range(40):
            owner.rows("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'tidegate_ledger'")
            seen = len(told)
            eventually(lambda before=seen: len(told) > before + 5, 20, "work goes on")
    stop.set()
    for thread in threads:
        thread.join()
    rows = {row[0] for row in book.sql("SELECT id FROM tidegate.reservations")}
    for reservation, answer in told.items():
        if recorded(answer, proto):
            assert reservation in rows
        else:
            assert answer is None or answer.reason == "try_again", answer
    assert book.stack.alive("ledger")


def test_a_killed_ledger_loses_nothing_it_answered(book):
    sale, proto = book.open_sale(units=100000), book.proto
    told, stop, unit = set(), threading.Event(), iter(range(100000))
    lock = threading.Lock()

    def work():
        while not stop.is_set():
            with lock:
                number = next(unit)
            reservation = new_reservation()
            if recorded(book.record(sale, number, None, reservation, seconds=1), proto):
                told.add(reservation)
    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for _ in range(3):
        before = len(told)
        eventually(lambda seen=before: len(told) > seen + 50, 20, "holds are recorded")
        book.stack.kill("ledger")
        book.start()
    stop.set()
    for thread in threads:
        thread.join()
    rows = {row[0] for row in book.sql("SELECT id FROM tidegate.reservations")}
    assert told and told <= rows


# -- verdicts ------------------------------------------------------------------------------------------------------------


def test_only_the_shop_confirms(calm_book):
    sale, proto = calm_book.open_sale("credentials"), calm_book.proto.ledger
    reservation = new_reservation()
    calm_book.record(sale, 0, b"u", reservation)

    def confirm(credential, **changes):
        fields = {"payment_id": "pay-cred", "amount_minor": 4900, "currency": "EUR", **changes}
        return calm_book.verb("confirm", proto.ConfirmRequest(reservation_id=reservation, service_credential=credential, **fields))
    assert confirm("").reason == "credential_required"
    for wrong in ("wrong", calm_book.service[:-1], calm_book.service + "x", calm_book.service.lower(), "x" * 5000):
        assert confirm(wrong).reason == "forbidden"
    assert calm_book.verb("extend", proto.ExtendRequest(reservation_id=reservation, service_credential="no")).reason == "forbidden"
    for bad in ({"payment_id": ""}, {"payment_id": "a b"}, {"currency": "eur"}, {"amount_minor": 2 ** 63}):
        assert confirm(calm_book.service, **bad).reason == "malformed"
    assert confirm(calm_book.service, amount_minor=1).reason == "amount_mismatch"
    done = confirm(calm_book.service)
    assert done.reason == "" and done.order_id.startswith("ord_") and len(done.order_id) == 30
    again = confirm(calm_book.service)
    assert again.reason == "" and again.replayed and again.order_id == done.order_id


def test_case_40_without_the_shops_credential_no_ledger_starts(calm_book):
    """What would believe everybody for want of a secret does not start."""
    folder = shutil.copytree(f"{calm_book.stack.run}/keys", f"{calm_book.folder}/no-credential")
    secret = f"{folder}/service.hash"
    with open(secret, encoding="ascii") as handle:
        identity, key = handle.read().split()
    os.unlink(secret)
    environment = {**os.environ, **calm_book.stack.env, "TIDEGATE_KEYS": folder, "TIDEGATE_LEDGER_ADMIN_PORT": str(free_port())}
    for text in (None, "", "\n", identity, f"{identity} {key[:-2]}\n", f"{identity} {'0' * 64}\n"):
        if text is not None:
            with open(secret, "w", encoding="ascii") as handle:
                handle.write(text)
        done = subprocess.run([f"{calm_book.stack.bin}/tidegate-ledger"], env=environment, capture_output=True, text=True, timeout=20,
                              check=False)
        assert done.returncode != 0 and "service.hash" in done.stderr, (text, done)


def test_case_41_a_confirm_whose_answer_was_lost_is_found_again(book):
    """Whoever asked gave up and the ledger was killed: the same payment buys once, another one goes back once."""
    sale, proto = book.open_sale(), book.proto.ledger
    reservation = new_reservation()
    book.record(sale, 0, b"u", reservation)
    payments = [f"pay-{reservation}-{number}" for number in range(2)]

    def confirm(payment):
        return proto.ConfirmRequest(reservation_id=reservation, service_credential=book.service, payment_id=payment, amount_minor=4900,
                                    currency="EUR")
    book.bus.publish("ledger.reservation.confirm", confirm(payments[0]).SerializeToString(), f"{book.bus.inbox}.0")
    eventually(lambda: book.sql("SELECT state FROM tidegate.reservations WHERE id = %s", reservation) == [("confirmed",)], what="it is sold")
    book.stack.kill("ledger")
    book.start()
    again = [book.verb("confirm", confirm(payments[0])) for _ in range(2)]
    assert [(answer.reason, answer.replayed) for answer in again] == [("", True)] * 2 and again[0].order_id == again[1].order_id != ""
    assert [book.verb("confirm", confirm(payments[1])).reason for _ in range(2)] == ["already_paid"] * 2
    assert book.sql("SELECT kind, payment_id FROM tidegate.outbox WHERE sale = %s AND kind <> 'held' ORDER BY id", sale) == [
        ("confirmed", payments[0]), ("compensate", payments[1])]


def test_a_buyer_sees_and_cancels_his_own(calm_book):
    sale, proto = calm_book.open_sale("own"), calm_book.proto.ledger
    reservation = new_reservation()
    calm_book.record(sale, 1, b"alice", reservation)

    def read(user=b"", credential=""):
        return calm_book.verb("read", proto.ReadRequest(reservation_id=reservation, user=user, service_credential=credential))
    assert read(b"alice").reason == "" and read(b"", calm_book.service).reason == ""
    assert read(b"mallory").reason == "reservation_unknown"
    assert read(b"").reason == "sign_in_required" and read(b"alice", "wrong").reason == "forbidden"
    assert calm_book.verb("read", proto.ReadRequest(reservation_id="nonsense", user=b"alice")).reason == "reservation_unknown"
    assert calm_book.verb("cancel", proto.CancelRequest(reservation_id=reservation, user=b"mallory")).reason == "reservation_unknown"
    assert calm_book.verb("cancel", proto.CancelRequest(reservation_id=reservation, user=b"alice")).reason == ""


def test_due_expire_obeyed_over_the_bus(calm_book):
    heard = calm_book.states("sweeping")
    sale, proto = calm_book.open_sale("sweeping", hold_ms=300, units=300), calm_book.proto
    eventually(lambda: heard, what="the daemon knows of the sale")
    ids = [new_reservation() for _ in range(120)]
    for unit, reservation in enumerate(ids):
        assert recorded(calm_book.record(sale, unit, None, reservation), proto)

    def due():
        return calm_book.ask(f"ledger.{sale}.due", proto.ledger.LedgerDueRequest(sale=sale, limit=100), proto.ledger.LedgerDueReply)
    first = eventually(lambda: due() if len(due().lapsed) == 100 else None, what="a full page lapsed")
    assert len(set(first.lapsed) | set(due().lapsed)) > 100  # the next page begins after the last
    lost = new_reservation()
    tombstone = proto.reserve.LapsedHold(reservation_id=lost, user=b"u", place=PLACE, window=7, digest=DIGEST)
    bad = proto.reserve.LapsedHold(reservation_id="res_x", user=b"u", place=b"", window=7, digest=DIGEST)
    verdicts = calm_book.ask(f"ledger.{sale}.expire", proto.ledger.ExpireRequest(
        sale=sale, generation=1, epoch=1, reservation_ids=ids[:100], tombstones=[bad, tombstone]), proto.ledger.ExpireReply)
    assert verdicts.reason == "" and len(verdicts.verdicts) == 101
    assert {v.state for v in verdicts.verdicts} == {proto.common.RESERVATION_STATE_EXPIRED}
    stale = calm_book.ask(f"ledger.{sale}.expire", proto.ledger.ExpireRequest(
        sale=sale, generation=1, epoch=2, tombstones=[tombstone]), proto.ledger.ExpireReply)
    assert stale.reason == "stale_epoch" and stale.epoch == 1
    assert calm_book.record(sale, 200, b"u", lost).state == proto.common.RESERVATION_STATE_EXPIRED
    orders = due().orders
    assert {order.kind for order in orders} == {proto.reserve.ORDER_KIND_RELEASE}
    results = [proto.reserve.OrderResult(reservation_id=order.reservation_id, kind=order.kind, obedience=proto.reserve.OBEDIENCE_DONE)
               for order in orders]
    results[0].obedience = proto.reserve.OBEDIENCE_UNKNOWN
    stored = calm_book.ask(f"ledger.{sale}.obeyed", proto.ledger.ObeyedRequest(sale=sale, epoch=1, results=results),
                           proto.ledger.ObeyedReply)
    assert (stored.reason, stored.stored) == ("", len(orders) - 1)


def test_an_extension_is_ordered_at_the_gate(calm_book):
    sale, proto = calm_book.open_sale("extending", hold_ms=30000, extend_ms=60000), calm_book.proto
    reservation, heard = new_reservation(), []
    calm_book.bus.subscribe(f"reserve.{sale}.obey", lambda _s, body, *_: heard.append(proto.reserve.ObeyRequest.FromString(body)))
    calm_book.record(sale, 0, b"u", reservation)
    answer = calm_book.verb("extend", proto.ledger.ExtendRequest(reservation_id=reservation, service_credential=calm_book.service))
    assert answer.reason == ""
    order = eventually(lambda: heard and heard[0], what="the gate hears of it")
    assert order.epoch == 1 and order.sale == sale
    assert [(o.reservation_id, o.kind, o.deadline_ms) for o in order.orders] == [
        (reservation, proto.reserve.ORDER_KIND_EXTEND, answer.expires_at_ms)]


# -- for the gate and its checker ----------------------------------------------------------------------------------------


def test_a_snapshot_of_large_carts_fits_its_messages_and_misses_nothing(calm_book):
    proto = calm_book.proto
    sale = calm_book.open_sale("carts", units=10000, limit_per_buyer=64)
    with contextlib.closing(calm_book.client()) as client:
        holds = [(new_reservation(), bytes([97 + n % 26]) * 120 + b"%d" % n, [(0, 64 * n + i, i) for i in range(64)]) for n in range(60)]
        assert {answer[0] for answer in client.record(sale, holds)} == {"recorded"}
    seen, after, pages = {}, "", 0
    while True:
        page = calm_book.ask(f"ledger.{sale}.snapshot", proto.ledger.SnapshotRequest(sale=sale, epoch=1, after=after, limit=25),
                             proto.ledger.SnapshotReply)
        assert page.reason == "" and (page.rows or page.end) and page.ByteSize() <= 15360
        pages += 1
        assert len(page.rows) < 25  # 25 of these would not fit
        for row in page.rows:
            seen[row.reservation_id] = row
            after = row.reservation_id
        if page.end:
            break
    assert set(seen) == {hold[0] for hold in holds} and pages >= 3
    row = seen[holds[5][0]]
    assert row.user == holds[5][1] and row.place == PLACE and row.digest == DIGEST and row.window == 7
    assert [(u.item, u.unit) for u in row.units] == [(0, 320 + i) for i in range(64)] and list(row.user_slots) == list(range(64))
    stale = calm_book.ask(f"ledger.{sale}.snapshot", proto.ledger.SnapshotRequest(sale=sale, epoch=2), proto.ledger.SnapshotReply)
    assert stale.reason == "stale_epoch" and not stale.end


def field(value):
    value = struct.pack("<q", value) if isinstance(value, int) else value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(value)) + value


def test_the_exported_log_is_chained_and_repeats_are_harmless(calm_book):
    sale, proto = calm_book.open_sale("log"), calm_book.proto
    entries = [proto.ledger.GateLogEntry(sequence=n, kind="hold", reservation_id=new_reservation(), stock_after=10 - n, at_ms=1000 + n,
                                         source="reserve-1", units=[proto.common.UnitRef(item=0, unit=n)]) for n in range(1, 11)]

    def append(part):
        answer = calm_book.ask(f"ledger.{sale}.append", proto.ledger.AppendRequest(sale=sale, epoch=1, shard=0, instance="i", entries=part),
                               proto.ledger.AppendReply)
        return answer.reason, answer.stored_sequence
    assert append(entries[1:3]) == ("gap", 0)
    assert append(entries[:4]) == ("", 4)
    assert append(entries[:4]) == ("", 4)
    assert append(entries[2:8]) == ("", 8)  # overlapping: only what is new
    assert set(at_once([lambda: append(entries) for _ in range(5)])) == {("", 10)}
    before = b"\0" * 32
    for row in calm_book.sql("""SELECT sequence, kind, reservation_id, units, stock_after, gate_ms, source, hash FROM tidegate.gate_log
            WHERE sale = %s ORDER BY sequence""", sale):
        text = b"".join(map(field, ("gate_log", sale, 1, 0, *row[:7], before)))
        before = hashlib.blake2b(text, digest_size=64).digest()[:32]
        assert row[7] == before
    check = proto.ledger.CheckResult(at_ms=5, outcome="clean", stock=1, initial=1)
    request = proto.ledger.AppendRequest(sale=sale, epoch=1, instance="i", check=check)
    assert calm_book.ask(f"ledger.{sale}.append", request, proto.ledger.AppendReply).reason == ""
    check.outcome = "fine"
    request = proto.ledger.AppendRequest(sale=sale, epoch=1, instance="i", check=check)
    assert calm_book.ask(f"ledger.{sale}.append", request, proto.ledger.AppendReply).reason == "malformed"


# -- sales, state, control -----------------------------------------------------------------------------------------------


def test_state_is_told_every_second_and_at_once_on_change(calm_book):
    heard = calm_book.states("telling")
    with contextlib.closing(calm_book.client()) as client:
        client.apply("telling", proof_lease_ms=60000)
    eventually(lambda: len(heard) >= 3, what="three states")
    gaps = [later[0] - sooner[0] for sooner, later in zip(heard, heard[1:])]
    assert max(gaps) < 2.5
    state = heard[-1][1]
    assert state.phase == calm_book.proto.common.SALE_PHASE_SCHEDULED and not state.armed and len(state.definition_digest) == 16
    armed = calm_book.ask("ledger.telling.armed", calm_book.proto.ledger.ArmedRequest(
        sale="telling", epoch=1, run_id="run", replication_id="rep"), calm_book.proto.ledger.ArmedReply)
    asked = time.monotonic()
    assert armed.reason == ""
    told = eventually(lambda: next((at for at, s in heard if s.armed), None), what="armed is told")
    assert told - asked < 0.7 and heard[-1][1].run_id == "run"


def test_sales_are_listed_in_pages_that_fit(calm_book):
    proto = calm_book.proto
    items = [50] * 32
    with contextlib.closing(calm_book.client()) as client:
        for number in range(12):
            assert client.apply(f"listed-{number:02d}", items=items)[0] == ""
    found, after = {}, ""
    while True:
        page = calm_book.ask("ledger.sales", proto.ledger.SalesRequest(after=after), proto.ledger.SalesReply)
        assert page.ByteSize() <= 15360 and len(page.definitions) == len(page.states) > 0
        for definition, state in zip(page.definitions, page.states):
            assert definition.sale == state.sale
            found[state.sale] = definition
            after = state.sale
        if page.end:
            break
    assert len([name for name in found if name.startswith("listed-")]) == 12
    assert len(found["listed-03"].items) == 32 and found["listed-03"].items[31].sku == "sku-31"
    one = calm_book.ask("ledger.sales", proto.ledger.SalesRequest(sale="listed-05"), proto.ledger.SalesReply)
    assert [state.sale for state in one.states] == ["listed-05"] and one.end
    assert list(calm_book.ask("ledger.sales", proto.ledger.SalesRequest(sale="nowhere"), proto.ledger.SalesReply).states) == []


def test_a_command_is_judged_answered_and_acknowledged_by_every_ledger_once(book):
    book.start("ledger-2")
    sale = book.open_sale()
    acks = []
    book.bus.subscribe(f"control.{sale}.ack", lambda _s, body, *_: acks.append(book.proto.control.CommandAck.FromString(body)))
    done = book.stack.ctl("sale", "pause", sale)
    assert "paused" in done.stdout
    eventually(lambda: len([ack for ack in acks if ack.daemon == "ledger"]) == 2, what="both ledgers acknowledge")
    assert {ack.effect for ack in acks} == {"honoured"}
    pauses = book.sql("SELECT pause_ids FROM tidegate.sales WHERE sale = %s", sale)[0][0]
    assert len(pauses) == 1
    assert book.sql("SELECT key_id, kind, reason, octet_length(signature) FROM tidegate.control_log WHERE command_id = %s", pauses[0]) == [
        ("operator", "pause", "", 64)]
    refused = book.stack.ctl("sale", "resume", sale, check=False)
    assert refused.returncode != 0 and "clean rounds" in refused.stdout + refused.stderr  # nobody proves it here
    assert book.sql("SELECT state FROM tidegate.sales WHERE sale = %s", sale) == [("paused",)]


def test_two_ledgers_are_one_to_everybody_else(book):
    book.start("ledger-2")
    sale, proto = book.open_sale(units=500), book.proto
    answers = at_once([lambda u=unit: book.record(sale, u) for unit in range(60)])
    assert all(recorded(answer, proto) for answer in answers)
    for first in range(200, 400, 20):  # each pair wants one unit; batches redone hold by hold must not wait for each other
        contested = at_once([lambda n=n, first=first: book.record(sale, first + n // 2) for n in range(40)])
        assert sorted(answer.outcome for answer in contested) == [proto.ledger.RECORD_OUTCOME_RECORDED] * 20 + \
            [proto.ledger.RECORD_OUTCOME_REFUSED] * 20, book.stack.tail("ledger")
    book.stack.kill("ledger", signal.SIGTERM)
    assert book.sql("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()") == [(0,)]
    for unit in range(100, 110):
        assert recorded(book.record(sale, unit), proto)


# -- events --------------------------------------------------------------------------------------------------------------


def stream(book):
    """How many events JetStream says it keeps."""
    def count():
        reply = f"{book.bus.inbox}.{new_id()}"
        box = book.bus.replies[reply] = {"done": threading.Event()}
        book.bus.publish("$JS.API.STREAM.INFO.TIDEGATE_EVENTS", b"", reply, prefix="")
        return box["done"].wait(3) and json.loads(box["body"]).get("state")
    return eventually(count, what="the stream is there")["messages"]


def test_events_reach_jetstream_once_each(book):
    eventually(lambda: book.sql("SELECT count(*) FROM tidegate.outbox WHERE published_at IS NULL") == [(0,)], 20, "nothing is left over")
    proto, heard, stored = book.proto, [], stream(book)
    book.bus.subscribe("event.>", lambda subject, body, *_: heard.append((subject, proto.ledger.SaleEvent.FromString(body))))
    sale = book.open_sale(units=1000)
    with contextlib.closing(book.client()) as client:
        holds = [(new_reservation(), b"u%d" % n, [(0, n, 0)]) for n in range(600)]
        assert {answer[0] for answer in client.record(sale, holds)} == {"recorded"}
        client.confirm(holds[0][0], "pay-events")
    eventually(lambda: book.sql("SELECT count(*) FROM tidegate.outbox WHERE published_at IS NULL") == [(0,)], 20, "all is published")
    assert stream(book) == stored + 601
    kinds = [event.kind for _, event in heard if event.sale == sale]
    assert kinds.count("held") == 600 and kinds.count("confirmed") == 1
    confirmed = [event for subject, event in heard if subject.endswith(f"event.{sale}.confirmed")][0]
    assert (confirmed.reservation_id, confirmed.payment_id, confirmed.amount_minor, confirmed.currency, confirmed.user) == (
        holds[0][0], "pay-events", 4900, "EUR", b"u0")
    # Published and not marked, as if the ledger had died in between: sent again, stored once.
    book.sql("UPDATE tidegate.outbox SET published_at = NULL WHERE sale = %s AND kind = 'held'", sale)
    eventually(lambda: book.sql("SELECT count(*) FROM tidegate.outbox WHERE published_at IS NULL") == [(0,)], 20, "published again")
    assert stream(book) == stored + 601


def test_a_payment_with_the_longest_name_is_given_back_too(book):
    """Its event is named after it. One that nobody could send would stay at the head of all others."""
    sale, stored = book.open_sale(), stream(book)
    with contextlib.closing(book.client()) as client:
        reservation = client.hold(sale, 1)
        assert client.confirm(reservation, "pay-first")["reason"] == ""
        assert client.confirm(reservation, "p" * 128)["reason"] == "already_paid"
    eventually(lambda: book.sql("SELECT count(*) FROM tidegate.outbox WHERE published_at IS NULL") == [(0,)], 20, "all is published")
    assert stream(book) == stored + 3


def test_events_wait_for_the_bus(book):
    sale = book.open_sale()
    assert recorded(book.record(sale, 0), book.proto)
    eventually(lambda: book.sql("SELECT count(*) FROM tidegate.outbox WHERE published_at IS NULL") == [(0,)], 20, "published")
    book.stack.kill("nats")
    with contextlib.closing(book.client()) as client:
        client.hold(sale, 1)
    book.stack.start_nats()
    book.bus.close()
    book.bus = Bus(book.stack.env["TIDEGATE_NATS_URL"])
    eventually(lambda: book.sql("SELECT count(*) FROM tidegate.outbox WHERE published_at IS NULL") == [(0,)], 30,
               "published after NATS came back")


def test_a_serialization_failure_is_repeated_until_it_is_done(book):
    """case_38: the database asks for a repeat twice, the caller hears one yes and there is one event."""
    sale, proto = book.open_sale(), book.proto.ledger
    reservation = new_reservation()
    book.record(sale, 0, b"u", reservation)
    with contextlib.closing(Client(book.stack.env["TIDEGATE_POSTGRES_URL"])) as owner:
        owner.rows("""CREATE SEQUENCE public.failures; GRANT USAGE ON public.failures TO PUBLIC;
            CREATE FUNCTION public.fail_twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.kind = 'confirmed' AND nextval('public.failures') <= 2 THEN RAISE EXCEPTION 'clash' USING ERRCODE = '40P01'; END IF;
            RETURN NEW; END $$;
            CREATE TRIGGER failing BEFORE INSERT ON tidegate.outbox FOR EACH ROW EXECUTE FUNCTION public.fail_twice()""")
        done = book.verb("confirm", proto.ConfirmRequest(reservation_id=reservation, service_credential=book.service,
                                                         payment_id=f"pay-{reservation}", amount_minor=4900, currency="EUR"))
        assert done.reason == "" and not done.replayed, book.stack.tail("ledger")
        owner.rows("DROP TRIGGER failing ON tidegate.outbox; DROP FUNCTION public.fail_twice; DROP SEQUENCE public.failures")
    assert book.sql("SELECT count(*) FROM tidegate.outbox WHERE kind = 'confirmed' AND sale = %s", sale) == [(1,)]


def test_a_locked_row_is_an_honest_try_again(book):
    """case_38: a row somebody else holds; nothing is half done, the same request later is."""
    sale, proto = book.open_sale(), book.proto.ledger
    reservation = new_reservation()
    book.record(sale, 0, b"u", reservation)
    request = proto.ConfirmRequest(reservation_id=reservation, service_credential=book.service, amount_minor=4900,
                                   payment_id=f"pay-{reservation}", currency="EUR")
    blocker = psycopg2.connect(book.stack.env["TIDEGATE_POSTGRES_URL"])
    with blocker.cursor() as cursor:
        cursor.execute("SELECT 1 FROM tidegate.reservations WHERE id = %s FOR UPDATE", (reservation,))
        assert book.verb("confirm", request).reason == "try_again"
        assert recorded(book.record(sale, 1), book.proto)  # others are served meanwhile
    blocker.rollback()
    blocker.close()
    assert book.verb("confirm", request).reason == ""


def start_pooler(book, binary):
    """A PgBouncer in transaction mode with five server connections; returns its conninfo."""
    folder = f"{book.folder}/pooler"
    os.makedirs(folder)
    os.chmod(folder, 0o777)
    with open(f"{folder}/ini", "w", encoding="ascii") as handle:
        handle.write(f"[databases]\ntidegate = host={book.stack.run}/postgres/socket dbname=tidegate\n"
                     f"[pgbouncer]\nlisten_addr=\nlisten_port=6432\nunix_socket_dir={folder}\nauth_type=trust\nauth_file={folder}/users\n"
                     f"pool_mode=transaction\ndefault_pool_size=5\nlogfile={folder}/log\n")
    with open(f"{folder}/users", "w", encoding="ascii") as handle:
        handle.write('"tidegate_ledger" ""\n')
    book.stack.spawn("pooler", [*book.stack.as_postgres, binary, f"{folder}/ini"], cwd="/")
    eventually(lambda: os.path.exists(f"{folder}/.s.PGSQL.6432"), what="the pooler listens")
    return f"host={folder} port=6432 dbname=tidegate user=tidegate_ledger"


def test_case_43_through_a_transaction_pooler(empty_book):
    binary = shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin")
    if binary is None:
        pytest.skip("pgbouncer is not installed")
    book, proto = empty_book, empty_book.proto
    book.stack.migrate()
    direct = book.stack.env["TIDEGATE_LEDGER_POSTGRES_URL"]
    book.stack.env["TIDEGATE_LEDGER_POSTGRES_URL"] = start_pooler(book, binary)
    book.start()
    book.start("ledger-2")  # 24 connections of two ledgers on five of PostgreSQL
    book.stack.env["TIDEGATE_LEDGER_POSTGRES_URL"] = direct
    sale = book.open_sale(units=1000)
    answers = at_once([lambda first=first: [book.record(sale, first + n) for n in range(30)] for first in range(0, 360, 30)])
    assert all(recorded(answer, proto) for some in answers for answer in some)
    contested = at_once([lambda n=n: book.record(sale, 500 + n // 2) for n in range(40)])
    assert sorted(answer.outcome for answer in contested) == [proto.ledger.RECORD_OUTCOME_RECORDED] * 20 + \
        [proto.ledger.RECORD_OUTCOME_REFUSED] * 20
    for name in ("ledger", "ledger-2"):
        assert "ledger.statement_refused" not in book.stack.tail(name, 10000)
