# SPDX-License-Identifier: Apache-2.0
"""The ledger's functions on a private PostgreSQL: a driver that calls them as the daemon does, one statement a transaction."""
import contextlib
import itertools
import json
import os
import pwd
import shutil
import signal
import subprocess
import tempfile

import psycopg2

from stack import as_postgres, newest_postgres, wait_for

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
PLACE, DIGEST = b"p" * 16, b"d" * 16
NUMBERS = itertools.count(1)


def crockford(number):
    text = ""
    for _ in range(26):
        text, number = ALPHABET[number % 32] + text, number // 32
    return text


def new_id():
    """26 characters, never the same: of a command, a pause or, with res_ before it, a reservation."""
    return crockford(next(NUMBERS))


def new_reservation():
    return "res_" + new_id()


class PrivatePostgres:
    """A PostgreSQL of the run's own on a unix socket, with as many databases as there are tests."""

    def __init__(self, ledger_binary, *options):
        self.ledger_binary = ledger_binary
        self.folder = tempfile.mkdtemp(prefix="tidegate-ledger-")
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(self.folder, user.pw_uid, user.pw_gid)
        subprocess.run(self.command("initdb", "-A", "trust", "-E", "UTF8", "--locale=C", "-U", "owner", "--no-sync"), check=True, cwd="/",
                       stdout=subprocess.DEVNULL)
        settings = [part for setting in ("listen_addresses=", "max_connections=80", *options) for part in ("-c", setting)]
        with open(f"{self.folder}/log", "ab") as log:
            self.server = subprocess.Popen(self.command("postgres", "-k", self.folder, *settings), cwd="/", stdout=log, stderr=log)
        wait_for("PostgreSQL answers", self.answers)
        self.count = itertools.count(1)
        self.template = None

    def command(self, program, *arguments):
        return [*as_postgres(), f"{newest_postgres()}/{program}", "-D", f"{self.folder}/data", *arguments]

    def answers(self):
        assert self.server.poll() is None, f"PostgreSQL ended at once: {self.folder}/log"
        with contextlib.suppress(psycopg2.OperationalError):
            psycopg2.connect(self.url("postgres")).close()
            return True
        return False

    def close(self):
        self.server.send_signal(signal.SIGQUIT)
        self.server.wait(30)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database, user="owner"):
        return f"host={self.folder} dbname={database} user={user}"

    def migrate(self, database):
        return subprocess.run([self.ledger_binary, "--migrate"], capture_output=True, text=True, check=False,
                              env={**os.environ, "TIDEGATE_LEDGER_POSTGRES_URL": self.url(database)})

    def create(self, migrated=True):
        """A database; migrated ones are copies of one that was migrated."""
        if migrated and self.template is None:
            self.template = self.create(migrated=False)
            done = self.migrate(self.template)
            assert done.returncode == 0, done.stderr
        name = f"ledger{next(self.count)}"
        with contextlib.closing(psycopg2.connect(self.url("postgres"))) as connection:
            connection.autocommit = True
            with connection.cursor() as cursor:
                cursor.execute(f"CREATE DATABASE {name} TEMPLATE {self.template if migrated else 'template1'}")
        return name


class Client:
    """One connection of the role tidegate_ledger. `row` and `rows` run one statement and commit."""

    def __init__(self, url, autocommit=True):
        self.connection = psycopg2.connect(url)
        self.connection.autocommit = autocommit

    def close(self):
        self.connection.close()

    def rows(self, sql, *parameters):
        with self.connection.cursor() as cursor:
            cursor.execute(sql, parameters)
            return [tuple(bytes(value) if isinstance(value, memoryview) else value for value in row)
                    for row in cursor.fetchall()] if cursor.description else []

    def row(self, sql, *parameters):
        found = self.rows(sql, *parameters)
        assert len(found) == 1, found
        return found[0]

    def value(self, sql, *parameters):
        return self.row(sql, *parameters)[0]

    # -- holds -----------------------------------------------------------------------------------------------------

    def record(self, sale, holds, epoch=1, generation=1):
        """holds: (reservation, user, [(item, unit, slot)]). Answers in their order: (outcome, reason, state, expires, units)."""
        count = len(holds)
        units = [(at, hold[0], hold[1], *unit) for at, hold in enumerate(holds, 1) for unit in hold[2]]
        columns = [list(column) for column in zip(*units)] if units else [[]] * 6
        found = self.rows(
            """SELECT ordinal, outcome, reason, state, expires_ms, units FROM tidegate.record_batch(%s, %s::bigint[],
               %s::bigint[], %s::text[], %s::bytea[], %s::bytea[], %s::bigint[], %s::bytea[], %s::integer[], %s::text[],
               %s::bytea[], %s::integer[], %s::integer[], %s::integer[])""",
            sale, [generation] * count, [epoch] * count, [hold[0] for hold in holds], [hold[1] for hold in holds],
            [PLACE] * count, [7] * count, [DIGEST] * count, *columns)
        assert sorted(row[0] for row in found) == list(range(1, count + 1))
        return [row[1:] for row in sorted(found)]

    def hold(self, sale, unit, user=None, slot=0, epoch=1, reservation=None):
        """One hold of one unit of the first item; returns its id."""
        reservation = reservation or new_reservation()
        answer = self.record(sale, [(reservation, user or f"user of {reservation}".encode(), [(0, unit, slot)])], epoch)[0]
        assert answer[:2] == ("recorded", ""), answer
        return reservation

    ANSWER = ("reason", "sale", "state", "expires_ms", "units", "order_id", "payment_id", "replayed", "epoch")

    def answer(self, function, *parameters):
        marks = ", ".join(["%s"] * len(parameters))
        return dict(zip(self.ANSWER, self.row(f"SELECT * FROM tidegate.{function}({marks})", *parameters)))

    def confirm(self, reservation, payment, amount=4900, currency="EUR"):
        return self.answer("confirm_reservation", reservation, payment, amount, currency, "ord_" + reservation[4:])

    def extend(self, reservation):
        return self.answer("extend_reservation", reservation)

    def cancel(self, reservation, user=None):
        return self.answer("cancel_reservation", reservation, user)

    def read(self, reservation, user=None):
        return self.answer("read_reservation", reservation, user)

    def expire(self, sale, ids=(), tombstones=(), epoch=1, generation=1):
        """tombstones: (reservation, user). Returns (reason, {reservation: state})."""
        count = len(tombstones)
        found = self.rows(
            """SELECT id, state, reason FROM tidegate.expire_reservations(%s, %s, %s, %s::text[], %s::text[], %s::bytea[],
               %s::bytea[], %s::bigint[], %s::bytea[])""", sale, generation, epoch, list(ids),
            [tombstone[0] for tombstone in tombstones], [tombstone[1] for tombstone in tombstones], [PLACE] * count,
            [7] * count, [DIGEST] * count)
        head = [row for row in found if row[0] == ""]
        assert len(head) == 1
        return head[0][2], {row[0]: row[1] for row in found if row[0]}

    def obeyed(self, sale, orders, epoch=1):
        """orders: (reservation, kind). Returns (reason, stored)."""
        return self.row("SELECT * FROM tidegate.obeyed_orders(%s, %s, %s::text[], %s::text[])", sale, epoch,
                        [order[0] for order in orders], [order[1] for order in orders])

    def due(self, sale, orders_after="", lapsed_after="", limit=100):
        """(epoch, [lapsed], [(reservation, kind)])"""
        found = self.rows("SELECT kind, id, epoch FROM tidegate.due_work(%s, %s, %s, %s)", sale, orders_after, lapsed_after,
                          limit)
        return (found[0][2], [row[1] for row in found if row[0] == "lapsed"],
                [(row[1], row[0]) for row in found if row[0] in ("settle", "release")])

    def snapshot(self, sale, epoch, after="", limit=25):
        """(reason, [rows])"""
        found = self.rows("SELECT * FROM tidegate.snapshot_page(%s, %s, %s, %s)", sale, epoch, after, limit)
        return found[0][1], found[1:]

    # -- sales -----------------------------------------------------------------------------------------------------

    def judge(self, sale, kind, sequence=0, command=None, generation=0, **options):
        """(reason, detail, repeated). options: pauses, pace, plan, definition, cause."""
        definition = options.get("definition")
        return self.row("SELECT * FROM tidegate.judge_command(%s, %s, %s, %s, %s, 'operator', %s, %s, %s::text[], %s, %s, %s, %s)",
                        command or new_id(), sale, generation, kind, sequence, b"command", b"signature",
                        list(options.get("pauses", ())), options.get("pace", 0), options.get("cause", "because"),
                        options.get("plan", False), json.dumps(definition) if definition else None)

    def sale_row(self, sale):
        names = ("state", "stage", "epoch", "generation", "armed", "control_seq", "pause_ids", "lifted_ids", "clean_rounds",
                 "pace_milli")
        return dict(zip(names, self.row(f"SELECT {', '.join(names)} FROM tidegate.sales WHERE sale = %s", sale)))

    def apply(self, sale, sequence=0, **changes):
        return self.judge(sale, "apply", sequence, definition=definition(**changes))

    def arm(self, sale, epoch=1, run_id="run-1"):
        return self.value("SELECT * FROM tidegate.armed_gate(%s, %s, %s, 'replication-1')", sale, epoch, run_id)

    def check(self, sale, epoch=1, outcome="clean", checked_ms=None, instance="checker"):
        return self.value("SELECT * FROM tidegate.append_check(%s, %s, %s, %s, %s, '', 0, 0, 0, 0, 0, 0, 5)", sale, epoch,
                          instance, checked_ms if checked_ms is not None else next(NUMBERS), outcome)

    def tick(self):
        return self.value("SELECT tidegate.tick_sales()")

    def open_sale(self, sale="sale", **changes):
        """An armed, proved and open sale; returns its name."""
        assert self.apply(sale, **changes)[0] == ""
        assert self.arm(sale) == ""
        assert self.check(sale) == ""
        assert self.tick() >= 1
        assert self.sale_row(sale)["state"] == "open"
        return sale

    def events(self, sale):
        return self.rows("SELECT kind, reservation_id, payment_id FROM tidegate.outbox WHERE sale = %s ORDER BY id", sale)

    def live(self, sale):
        return self.rows("SELECT item, unit, reservation_id FROM tidegate.holdings WHERE sale = %s AND live ORDER BY 1, 2", sale)

    def state(self, reservation):
        found = self.rows("SELECT state FROM tidegate.reservations WHERE id = %s", reservation)
        return found[0][0] if found else None


def definition(units=10, items=None, **changes):
    """A sale as the daemon hands it to judge_command; opened long ago unless said otherwise."""
    made = {"opens_ms": 1000, "order": "fifo", "limit_per_buyer": 2, "hold_ms": 600000, "grace_ms": 0, "extend_ms": 60000,
            "extensions_max": 2, "pace_start_milli": 1000000, "pace_min_milli": 1000, "pace_max_milli": 5000000,
            "proof_every_ms": 1000, "proof_lease_ms": 60000, "remaining_bucketed": False, "shards": 1, "challenge": 0,
            "items": [{"sku": f"sku-{at}", "units": count, "price_minor": 4900, "currency": "EUR"}
                      for at, count in enumerate(items or [units])]}
    made.update(changes)
    return made
