# SPDX-License-Identifier: Apache-2.0
"""Who may say and hear what on the bus: every identity on every subject, against a real NATS with the configuration that
`tidegatectl keys nats` writes. What is allowed is worked out here a second time, from the same rows."""
import base64
import contextlib
import json
import os
import re
import shutil
import socket
import tempfile

import nacl.signing
import psycopg2
import pytest
import redis
from conftest import BUILD, ROOT, close_shop, open_shop
from shop import eventually
from stack import Stack

PREFIX, SALE = "tidegate.v1.", "sku_991"
# Subjects of nobody: refused to all, both ways.
NOBODYS = (">", f"{PREFIX}>", f"{PREFIX}*.{SALE}.hold", f"{PREFIX}ledger.{SALE}.record.more", "other.subject", "$SYS.REQ.SERVER.PING",
           "$JS.API.STREAM.DELETE.TIDEGATE_EVENTS", "$JS.API.STREAM.PURGE.TIDEGATE_EVENTS", "_INBOX.>", "_INBOX.tidegate.nobody.x.1")


def rows(path, macro):
    with open(f"{ROOT}/catalog/{path}", encoding="utf-8") as handle:
        found = re.findall(rf"^{macro}\((.*)\)$", handle.read(), re.M)
    return [[word.strip().strip('"') for word in re.findall(r'"[^"]*"|[^",\s]+', line)] for line in found]


MESSAGES = rows("messages.def", "TG_MESSAGE")
IDENTITIES = {name: kind for name, kind, _ in rows("identities.def", "TG_IDENTITY")}
ARROWS = rows("identities.def", "TG_ARROW")


def meant(words):
    """The identities that the words of a row mean."""
    found = set()
    for word in words.split():
        if word == "all":
            found |= {name for name, kind in IDENTITIES.items() if kind == "daemon"}
        elif word.startswith("edge"):
            found |= {"edge"} | ({"edge-waiting", "edge-checkout"} if word == "edge" else {word})
        else:
            assert word in IDENTITIES, word
            found.add(word)
    return found


def rights():
    """subject -> (those who may publish there, those who may subscribe)."""
    table = {}
    for _, subject, kind, owner, _, _, peers in MESSAGES:
        asked = kind != "PUBLISH"
        hears = meant("all" if kind == "ASK_ALL" else owner) if asked else meant(peers)
        table[PREFIX + subject.replace("%s", SALE)] = (meant(peers if asked else owner), hears)
    for subject, start, end, _ in ARROWS:
        table[subject.replace("*", "one").replace(">", "one.two")] = (meant(start), meant(end))
    for name in IDENTITIES:
        table[f"_INBOX.tidegate.{name}.some-instance.1"] = (set(), {name})
    for subject in NOBODYS:
        table[subject] = (set(), set())
    return table


class Seat:
    """One connection that says every command to its end: what the server refused comes back."""

    def __init__(self, port, seed=None):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=10)
        self.reader = self.socket.makefile("rb")
        info = json.loads(self.reader.readline().split(b" ", 1)[1])
        hello = {"verbose": False, "pedantic": False, "headers": True, "no_responders": True, "protocol": 1}
        if seed:
            raw = base64.b32decode(seed + "=" * (-len(seed) % 8))
            key = nacl.signing.SigningKey(raw[2:34])
            body = bytes([20 << 3]) + bytes(key.verify_key)
            hello["nkey"] = base64.b32encode(body + crc16(body).to_bytes(2, "little")).decode().rstrip("=")
            hello["sig"] = base64.urlsafe_b64encode(key.sign(info["nonce"].encode()).signature).decode().rstrip("=")
        self.sid, self.messages = 0, []
        self.refused = self.say(b"CONNECT " + json.dumps(hello).encode() + b"\r\n")

    def close(self):
        self.reader.close()
        self.socket.close()

    def say(self, data):
        """The error the server answers with; None: it took it."""
        self.socket.sendall(data + b"PING\r\n")
        error = None
        for line in self.reader:
            words = line.split()
            if words[0] == b"PONG":
                return error
            if words[0] == b"-ERR":
                error = line.decode().strip()
            if words[0] in (b"MSG", b"HMSG"):
                self.messages.append((words[1].decode(), words[3].decode() if len(words) > 4 else None,
                                      self.reader.read(int(words[-1]) + 2)[:-2]))
        return error

    def publish(self, subject, body=b"", reply=""):
        return self.say(f"PUB {subject} {reply} {len(body)}\r\n".encode() + body + b"\r\n")

    def subscribe(self, subject):
        self.sid += 1
        return self.say(f"SUB {subject} {self.sid}\r\n".encode())

    def hear(self):
        """The next message: (subject, reply subject, body)."""
        eventually(lambda: self.messages or (self.say(b"") is not None), 10, "a message")
        return self.messages.pop(0)


def crc16(data):
    crc = 0
    for byte in data:
        crc ^= byte << 8
        for _ in range(8):
            crc = (crc << 1 ^ 0x1021 if crc & 0x8000 else crc << 1) & 0xFFFF
    return crc


@pytest.fixture(scope="module")
def bus():
    folder = tempfile.mkdtemp(prefix="tidegate-rights-")
    stack = Stack(os.path.join(folder, "run"), BUILD, quiet=True)
    stack.ctl("keys", "new", f"{stack.run}/keys")
    stack.guard_nats()
    stack.start_nats()
    yield stack
    stack.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def seat(bus):
    """seat(identity) is a connection that shows its key; seat(None) shows none."""
    opened = []

    def take(identity):
        seed = None
        if identity:
            with open(f"{bus.run}/keys/nats-{identity}", encoding="ascii") as handle:
                seed = handle.read().strip()
        opened.append(Seat(int(bus.env["TIDEGATE_NATS_PORT"]), seed))
        return opened[-1]
    yield take
    for one in opened:
        one.close()


def test_every_identity_may_exactly_what_the_catalogue_says(seat, capsys):
    table, wrong, lines = rights(), [], []
    seats = {name: seat(name) for name in IDENTITIES}
    assert all(one.refused is None for one in seats.values())
    for subject, (publishers, subscribers) in table.items():
        cells = []
        for name, one in seats.items():
            errors = {"publish": one.publish(subject), "subscribe": one.subscribe(subject)}
            for way, allowed in (("publish", publishers), ("subscribe", subscribers)):
                if (errors[way] is None) != (name in allowed):
                    wrong.append(f"{name} {way} {subject}: {errors[way] or 'allowed'}")
            cells.append(("p" if errors["publish"] is None else "-") + ("s" if errors["subscribe"] is None else "-"))
        lines.append(f"{subject:<56}" + "".join(f"{cell:>14}" for cell in cells))
    with capsys.disabled():
        print(f"\n{'p: may publish, s: may subscribe, -: refused':<56}" + "".join(f"{name:>14}" for name in seats))
        print("\n".join(lines))
    assert len(lines) > len(MESSAGES) and not wrong, "\n".join(wrong)


def test_nobody_comes_in_without_a_key_of_ours(bus, seat):
    assert "Authorization Violation" in seat(None).refused
    stranger = b"".join((bytes([(18 << 3) | (20 << 3) >> 5, (20 << 3 & 31) << 3]), os.urandom(32)))
    seed = base64.b32encode(stranger + crc16(stranger).to_bytes(2, "little")).decode().rstrip("=")
    assert "Authorization Violation" in Seat(int(bus.env["TIDEGATE_NATS_PORT"]), seed).refused


def test_seventeen_kibibytes_are_refused(seat):
    assert seat("ledger").publish(f"{PREFIX}state.{SALE}", b"x" * (15 << 10)) is None
    one = seat("ledger")
    one.socket.sendall(f"PUB {PREFIX}state.{SALE} {17 << 10}\r\n".encode())
    assert b"Maximum Payload Violation" in one.reader.readline()


def test_a_request_is_answered_once_and_by_who_heard_it(seat):
    inbox, subject = "_INBOX.tidegate.edge-checkout.some.1", f"{PREFIX}reserve.{SALE}.hold"
    edge, reserve, ledger = seat("edge-checkout"), seat("reserve"), seat("ledger")
    assert edge.subscribe(inbox) is None and reserve.subscribe(subject) is None
    assert reserve.publish(inbox, b"unasked") is not None
    assert edge.publish(subject, b"mine?", inbox) is None
    assert reserve.hear() == (subject, inbox, b"mine?")
    assert ledger.publish(inbox, b"not asked") is not None
    assert reserve.publish(inbox, b"yours") is None
    assert reserve.publish(inbox, b"again") is not None
    assert edge.hear()[2] == b"yours" and edge.say(b"") is None and edge.messages == []


@contextlib.contextmanager
def daemon(bus, name, **env):
    """A daemon that is not expected to become ready; said() is why it is not."""
    bus.start_daemon(name, env={**env}, ready=False)

    def said(text):
        eventually(lambda: text in bus.admin(name, "/readyz?verbose")[1], 15, f"{name} says: {text}")
        assert bus.admin(name, "/readyz")[0] == 503
    try:
        yield said
    finally:
        bus.kill(name)


def test_a_daemon_without_its_key_says_so(bus, tmp_path):
    with daemon(bus, "sweeper", TIDEGATE_NATS_KEYS="") as said:
        said("NATS wants an NKey of the identity sweeper")
    shutil.copytree(f"{bus.run}/keys", tmp_path / "keys")
    bus.ctl("keys", "new", str(tmp_path / "other"))
    with daemon(bus, "sweeper", TIDEGATE_NATS_KEYS=str(tmp_path / "other")) as said:
        said("NATS does not know the key of the identity sweeper")
    shutil.copy(f"{bus.run}/keys/nats-queue", tmp_path / "keys/nats-sweeper")
    with daemon(bus, "sweeper", TIDEGATE_NATS_KEYS=str(tmp_path / "keys")) as said:
        said("NATS refuses the identity sweeper")
    done = bus.ctl("sale", "show", check=False)
    assert done.returncode == 69 and "no ledger" in done.stderr
    os.unlink(tmp_path / "keys/nats-operator")
    bus.env["TIDEGATE_NATS_KEYS"], before = str(tmp_path / "keys"), bus.env["TIDEGATE_NATS_KEYS"]
    try:
        done = bus.ctl("sale", "show", check=False)
        assert done.returncode == 69 and "nats-operator" in done.stderr
    finally:
        bus.env["TIDEGATE_NATS_KEYS"] = before


def test_an_integrator_receives_events_and_nothing_else(shop):
    shop.win(shop.sale(units=1))
    with open(f"{shop.stack.run}/keys/nats-integrator", encoding="ascii") as handle:
        one = Seat(int(shop.stack.env["TIDEGATE_NATS_PORT"]), handle.read().strip())
    inbox, stream = "_INBOX.tidegate.integrator.shop", "TIDEGATE_EVENTS"
    assert one.subscribe(f"{inbox}.*") is None

    def answer(subject, body, reply):
        assert one.publish(subject, body, reply) is None
        return one.hear()
    config = {"stream_name": stream, "config": {"durable_name": "shop", "ack_policy": "explicit", "deliver_policy": "all"}}
    made = answer(f"$JS.API.CONSUMER.DURABLE.CREATE.{stream}.shop", json.dumps(config).encode(), f"{inbox}.1")
    assert b'"durable_name":"shop"' in made[2], made
    _, acknowledge, event = answer(f"$JS.API.CONSUMER.MSG.NEXT.{stream}.shop", b"", f"{inbox}.2")
    assert acknowledge.startswith(f"$JS.ACK.{stream}.shop.") and len(event) > 0
    assert one.publish(acknowledge, b"+ACK") is None
    assert one.publish(f"$JS.API.STREAM.DELETE.{stream}") is not None
    one.close()


# -- stores --------------------------------------------------------------------------------------------------------------

# What a user of the gate must not do, key and command; the third is a key of somebody else.
FORBIDDEN_TO_BOTH = (("FLUSHALL",), ("CONFIG", "GET", "*"), ("CONFIG", "SET", "maxmemory", "1"), ("SAVE",), ("SHUTDOWN",), ("KEYS", "*"),
                     ("ACL", "LIST"), ("DEL", "tg:{x.0}:1:ctl"), ("RENAME", "tg:{x.0}:1:ctl", "tg:{x.0}:2:ctl"),
                     ("EXPIRE", "tg:{x.0}:1:ctl", "1"), ("REPLICAOF", "NO", "ONE"), ("SCRIPT", "FLUSH"),
                     ("MONITOR",), ("CLIENT", "LIST"), ("HGET", "other", "x"), ("SUBSCRIBE", "x"), ("FUNCTION", "FLUSH"))
WRITES = (("HSET", "tg:{x.0}:1:ctl", "a", "1"), ("SETBIT", "tg:{x.0}:1:free:0", "1", "1"), ("XADD", "tg:{x.0}:1:log", "*", "a", "1"),
          ("EVAL", "return redis.call('HSET', KEYS[1], 'a', '1')", "1", "tg:{x.0}:1:ctl"))


def as_user(stack, user):
    password = stack.redis_users.get(user)
    return redis.Redis(port=int(stack.env["TIDEGATE_REDIS_PORT"]), username=user if password else None, password=password)


def refused(client, words):
    try:
        client.execute_command(*words)
    except redis.exceptions.ResponseError as fault:  # NoPermissionError is one
        return "permissions" in str(fault) or "NOPERM" in str(fault)
    except redis.exceptions.AuthenticationError:
        return True
    return False


def test_each_user_of_the_gate_is_refused_everything_else(shop):
    sale = shop.sale(units=2)
    shop.win(sale)  # gate and audit can do their work: it was held, recorded and proved
    for user in ("gate", "audit"):
        allowed = [words for words in FORBIDDEN_TO_BOTH if not refused(as_user(shop.stack, user), words)]
        assert not allowed, f"{user} may {allowed}"
    assert [words for words in WRITES if not refused(as_user(shop.stack, "audit"), words)] == []
    assert refused(as_user(shop.stack, "gate"), WRITES[-1])  # only scripts that were loaded
    assert refused(as_user(shop.stack, "nobody"), ("PING",)) and refused(as_user(shop.stack, "nobody"), ("HGET", shop.gate_key(sale, "ctl"), "x"))


def test_each_role_of_the_ledger_is_refused_everything_else(shop):
    forbidden = ["DELETE FROM tidegate.reservations", "TRUNCATE tidegate.holdings", "UPDATE tidegate.gate_log SET kind = 'x'",
                 "DELETE FROM tidegate.control_log", "DROP INDEX tidegate.holdings_one_owner", "CREATE TABLE tidegate.mine (a int)",
                 "ALTER TABLE tidegate.holdings DROP CONSTRAINT holdings_pkey", "CREATE ROLE mine", "UPDATE tidegate.sale_items SET units = 1",
                 "ALTER SYSTEM SET fsync = off", "COPY (SELECT 1) TO PROGRAM 'true'"]
    writes = ["UPDATE tidegate.reservations SET state = 'confirmed'", "INSERT INTO tidegate.checks DEFAULT VALUES",
              "SELECT tidegate.outbox_published('{1}')"]
    url = shop.stack.env["TIDEGATE_LEDGER_URL"]
    for role, statements in (("tidegate_ledger", forbidden), ("tidegate_invariant", forbidden + writes)):
        for statement in statements:
            with contextlib.closing(psycopg2.connect(url.replace("user=tidegate", f"user={role}"))) as connection, \
                    connection.cursor() as cursor:
                connection.set_session(readonly=False, autocommit=True)
                with pytest.raises(psycopg2.errors.InsufficientPrivilege):
                    cursor.execute(statement)


def test_who_is_refused_by_redis_says_so(shop):
    address = f"127.0.0.1:{shop.stack.env['TIDEGATE_REDIS_PORT']}"
    for url, says in ((f"redis://gate:wrong@{address}", "WRONGPASS"), (f"redis://{address}", "NOAUTH")):
        shop.stack.start_daemon("reserve", "reserve-2", env={"TIDEGATE_RESERVE_REDIS_URL": url}, ready=False)
        try:
            eventually(lambda says=says: f"Redis refuses us: {says}" in shop.stack.admin("reserve-2", "/readyz")[1], 15, f"it says {says}")
        finally:
            shop.stack.kill("reserve-2")


def test_doctor_proves_it_and_names_what_is_too_much(shop):
    def said():
        return {(row["source"], row["name"]): (row["value"], row["met"]) for row in json.loads(shop.stack.ctl("-o", "json", "doctor", check=False).stdout)}
    eventually(lambda: said().get(("reserve", "redis_rights")) == ("least", True), 15, "the gate's user has least rights")
    facts = said()
    assert facts[("ledger", "postgres_rights")] == ("least", True) and facts[("ledger", "postgres_tls")] == ("local", True)
    assert facts[("nats", "nats_rights")] == ("least", True)
    assert facts[("nats", "anonymous")] == ("no", True) and facts[("nats", "tls")] == ("local", True)
    as_user(shop.stack, "admin").execute_command("ACL", "SETUSER", "gate", "+config|get")
    shop.stack.psql("GRANT DELETE ON tidegate.reservations TO tidegate_ledger")
    try:
        shop.stack.kill("reserve")
        shop.stack.start_daemon("reserve")
        eventually(lambda: said().get(("reserve", "redis_rights")) == ("to configure", False), 15, "doctor names the gate's user")
        eventually(lambda: said().get(("ledger", "postgres_rights")) == ("to delete", False), 15, "doctor names the ledger's role")
    finally:
        shop.stack.psql("REVOKE DELETE ON tidegate.reservations FROM tidegate_ledger")
        as_user(shop.stack, "admin").execute_command("ACL", "SETUSER", "gate", "-config|get")


def test_a_process_of_a_pod_tells_what_is_open(shop):
    def unhardened():
        return [set(row["value"].split()) for row in json.loads(shop.stack.ctl("-o", "json", "doctor", check=False).stdout)
                if row["name"] == "unhardened" and row["source"] == "sweeper"]
    eventually(lambda: unhardened() == [{"nothing"}], 10, "no pod, nothing to tell")
    for through, closed in (((), set()), (("setpriv", "--no-new-privs"), {"no_new_privileges"})):
        shop.stack.kill("sweeper")
        shop.stack.start_daemon("sweeper", env={"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, through=through)
        told = eventually(unhardened, 10, "the sweeper answers")[0]
        assert "seccomp" in told and closed.isdisjoint(told) and ("no_new_privileges" in told) == (not closed)
    shop.stack.kill("sweeper")
    shop.stack.start_daemon("sweeper")


def test_doctor_refuses_a_bus_that_lets_anybody_in():
    open_one, folder = open_shop(guarded=False)
    try:
        done = open_one.stack.ctl("-o", "json", "doctor", check=False)
        facts = {row["name"]: (row["value"], row["must"]) for row in json.loads(done.stdout) if not row["met"]}
        assert done.returncode == 1 and facts == {"anonymous": ("yes", True), "nats_rights": ("all", False)}, facts
    finally:
        close_shop(open_one, folder)
