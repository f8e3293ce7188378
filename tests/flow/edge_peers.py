# SPDX-License-Identifier: Apache-2.0
"""The edge alone with a real NATS and scripted peers: what it does with every answer, with none, and with nonsense.

The peers speak the bus's own protocol (protobuf over core NATS), so the binary under test is the real one, unchanged."""
import contextlib
import hashlib
import importlib
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

import nacl.signing
from shop import Shop, base64url, eventually
from stack import Stack, StackError, free_port

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PREFIX = "tidegate.v1."


def load_messages():
    """The protobuf modules, generated into a folder of this run."""
    folder = tempfile.mkdtemp(prefix="tidegate-proto-")
    names = sorted(os.listdir(f"{ROOT}/proto/tidegate/v1"))
    subprocess.run(["protoc", "-I", f"{ROOT}/proto", f"--python_out={folder}", *(f"{ROOT}/proto/tidegate/v1/{n}" for n in names)],
                   check=True)
    sys.path.insert(0, folder)
    modules = {n[:-6]: importlib.import_module(f"tidegate.v1.{n[:-6]}_pb2") for n in names}
    shutil.rmtree(folder)
    return modules


PB = load_messages()


class Nats:
    """A client just good enough for tests: subscribe with a handler, publish. One reader thread."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.reader = self.socket.makefile("rb")
        self.reader.readline()
        self.lock = threading.Lock()
        self.handlers = {}
        self.send(b'CONNECT {"verbose":false,"pedantic":false,"headers":true,"protocol":1,"lang":"test","version":"1"}\r\nPING\r\n')
        self.reader.readline()
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def send(self, data):
        with self.lock:
            self.socket.sendall(data)

    def publish(self, subject, body, reply=""):
        self.send(f"PUB {subject} {reply + ' ' if reply else ''}{len(body)}\r\n".encode() + body + b"\r\n")

    def subscribe(self, subject, handler):
        identity = str(len(self.handlers) + 1)
        self.handlers[identity] = handler
        self.send(f"SUB {subject} {identity}\r\nPING\r\n".encode())

    def read(self):
        with contextlib.suppress(OSError, ValueError):
            while line := self.reader.readline():
                words = line.split()
                if words[0] == b"PING":
                    self.send(b"PONG\r\n")
                elif words[0] in (b"MSG", b"HMSG"):
                    self.take(words)

    def take(self, words):
        headed = words[0] == b"HMSG"
        total = int(words[-1])
        skip = int(words[-2]) if headed else 0
        has_reply = len(words) == (6 if headed else 5)
        data = self.reader.read(total + 2)[:-2]
        self.handlers[words[2].decode()](words[1].decode(), words[3].decode() if has_reply else "", data[:skip], data[skip:])

    def close(self):
        self.socket.close()


def digest_of(definition):
    """The digest by which states name their definition; the rule of lib/io/sales_definition.c."""
    mac = hashlib.blake2b()

    def field(data):
        mac.update(struct.pack("<Q", len(data)) + data)

    def number(value):
        field(struct.pack("<Q", value))
    field(b"tidegate definition")
    field(definition.sale.encode())
    number(len(definition.items))
    for item in definition.items:
        field(item.sku.encode())
        number(item.units)
        number(item.price_minor)
        field(item.currency.encode())
    number(definition.opens_at_ms)
    field(definition.order.encode())
    for name in ("limit_per_buyer", "hold_ms", "grace_ms", "extend_ms", "extensions_max", "pace_start_milli", "pace_min_milli",
                 "pace_max_milli", "proof_every_ms", "proof_lease_ms"):
        number(getattr(definition, name))
    number(int(definition.remaining_bucketed))
    number(definition.shards)
    number(definition.challenge)
    field(definition.commitment)
    field(definition.beacon.encode())
    return mac.digest()[:16]


class Peers:
    """Ledger, queue, admission and reserve as the test says they are; the edge under test hears only them."""

    def __init__(self, build, **settings):
        self.folder = tempfile.mkdtemp(prefix="tidegate-edge-")
        self.stack = Stack(os.path.join(self.folder, "run"), build, quiet=True)
        self.stack.ctl("keys", "new", f"{self.stack.run}/keys")
        self.stack.start_nats()
        self.stack.env["TIDEGATE_EDGE_URL"] = f"http://127.0.0.1:{free_port()}"
        self.stack.env["TIDEGATE_EDGE_PORT"] = self.stack.env["TIDEGATE_EDGE_URL"].rsplit(":", 1)[1]
        self.stack.env["TIDEGATE_REDIS_URL"] = "redis://127.0.0.1:1"  # nobody there: the edge has no store
        self.nats = Nats(int(self.stack.env["TIDEGATE_NATS_PORT"]))
        self.sales, self.answers, self.asked, self.presence = {}, {}, [], []
        self.next_index = 0
        self.quiet = set()
        self.stopped = threading.Event()
        self.serve("ledger.sales", PB["ledger"].SalesRequest, self.on_sales)
        self.serve("queue.*.lease", PB["queue"].LeaseRequest, self.on_lease)
        self.serve("admission.*.pass", PB["admission"].PassRequest, self.on_asked("pass"))
        self.serve("reserve.*.hold", PB["reserve"].HoldRequest, self.on_asked("hold"))
        for act, kind in (("read", "ReadRequest"), ("confirm", "ConfirmRequest"), ("extend", "ExtendRequest"),
                          ("cancel", "CancelRequest")):
            self.serve(f"ledger.reservation.{act}", getattr(PB["ledger"], kind), self.on_asked(act))
        self.nats.subscribe(f"{PREFIX}queue.*.presence",
                            lambda s, r, h, body: self.presence.append(PB["queue"].Presence.FromString(body)))
        self.teller = threading.Thread(target=self.tell, daemon=True)
        self.teller.start()
        self.stack.env.update({f"TIDEGATE_EDGE_{name.upper()}": value for name, value in settings.items()})
        try:
            self.stack.start_daemon("edge")
        except StackError:
            self.close()
            raise
        self.shop = Shop(self.stack)

    def close(self):
        self.stopped.set()
        self.teller.join()
        self.nats.close()
        self.stack.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- the bus ---------------------------------------------------------------------------------------------------

    def serve(self, subject, kind, handler):
        def on_message(name, reply, head, body):
            answer = handler(name, kind.FromString(body), head)
            if answer is not None and reply:
                self.nats.publish(reply, answer if isinstance(answer, bytes) else answer.SerializeToString())
        self.nats.subscribe(PREFIX + subject, on_message)

    def on_sales(self, name, request, head):
        if "sales" in self.quiet:
            return None
        chosen = [s for n, s in sorted(self.sales.items()) if request.sale in ("", n)]
        return PB["ledger"].SalesReply(definitions=[s["definition"] for s in chosen], states=[self.state(s) for s in chosen], end=True)

    def on_lease(self, name, request, head):
        if "lease" in self.quiet:
            return None
        first, self.next_index = self.next_index, self.next_index + request.count
        return PB["queue"].LeaseReply(term=1, generation=self.sales[request.sale]["definition"].generation, first=first,
                                      count=request.count)

    def on_asked(self, what):
        def on_request(name, request, head):
            self.asked.append((what, request, head))
            answer = self.answers.get(what)
            return answer(request) if callable(answer) else answer
        return on_request

    def last(self, what):
        """The last request of this kind, None when there was none."""
        return next((request for kind, request, _ in reversed(self.asked) if kind == what), None)

    def tell(self):
        while not self.stopped.wait(0.1):
            for name in list(self.sales):
                self.tell_sale(name)

    def tell_sale(self, name):
        sale = self.sales[name]
        if "state" not in self.quiet:
            self.nats.publish(f"{PREFIX}state.{name}", self.state(sale).SerializeToString())
        if "board" not in self.quiet and sale["board"] is not None:
            self.nats.publish(f"{PREFIX}queue.{name}.board", sale["board"].SerializeToString())
        if "stock" not in self.quiet and sale["stock"] is not None:
            self.nats.publish(f"{PREFIX}gate.{name}.stock", sale["stock"].SerializeToString())

    # -- sales -----------------------------------------------------------------------------------------------------

    def state(self, sale):
        message = sale["state"]
        message.ledger_now_ms = int(time.time() * 1000)
        return message

    def sale(self, name, phase="OPEN", units=10, watermark=10**9, generation=1, opens_in_s=-60, **definition):
        """Declares or changes a sale and waits until the edge tells it so."""
        opens_at_ms = int((time.time() + opens_in_s) * 1000)
        fields = {"sale": name, "generation": generation, "opens_at_ms": opens_at_ms, "order": "fifo", "limit_per_buyer": 4,
                  "hold_ms": 600000, "grace_ms": 30000, "extend_ms": 60000, "extensions_max": 2, "pace_start_milli": 1000000,
                  "pace_min_milli": 10000, "pace_max_milli": 5000000, "proof_every_ms": 1000, "proof_lease_ms": 3000, "shards": 1}
        skus = definition.pop("skus", [name])
        made = PB["ledger"].SaleDefinition(**{**fields, **definition})
        for sku in skus:
            made.items.add(sku=sku, units=units, price_minor=4900, currency="EUR")
        old = self.sales.get(name)
        state = PB["ledger"].SaleState(sale=name, generation=generation, epoch=generation, armed=True, opens_at_ms=opens_at_ms,
                                       definition_digest=digest_of(made), last_clean_ms=int(time.time() * 1000),
                                       control_sequence=old["state"].control_sequence + 1 if old else 1)
        self.sales[name] = {"definition": made, "state": state, "board": None, "stock": None}
        self.phase(name, phase, wait=False)
        self.board(name, watermark=watermark, wait=False)
        self.stock(name, free=units * len(skus))
        eventually(lambda: self.get(f"/sale/{name}/policy").json.get("generation") == generation, 10, f"{name} is known")
        eventually(lambda: self.hears(name, watermark), 10, f"the board of {name} is heard")
        eventually(lambda: self.get(f"/sale/{name}/ticket").status == 200, 10, f"{name} has indexes in hand")
        return name

    def hears(self, name, watermark):
        told = self.get(f"/sale/{name}/board").json
        return told["term"] > 0 and told["watermark"] == watermark and told["remaining"] is not None

    def phase(self, name, phase, wait=True):
        state = self.sales[name]["state"]
        state.phase = PB["common"].SalePhase.Value(f"SALE_PHASE_{phase}")
        state.opened = state.opened or phase in ("OPEN", "SOLD_OUT")
        state.control_sequence += 1
        if wait:
            told = {"OPEN": "open", "PAUSED": "paused", "SCHEDULED": "scheduled", "CLOSED": "closed", "SOLD_OUT": "sold_out"}[phase]
            self.tell_sale(name)
            eventually(lambda: self.get(f"/sale/{name}/board").json["state"] == told, 10, f"{name} is {told}")

    def board(self, name, watermark=10**9, term=1, wait=True, **fields):
        sale = self.sales[name]
        old = sale["board"]
        sale["board"] = PB["queue"].Board(sale=name, generation=sale["definition"].generation, term=term, instance="queue-1",
                                          version=old.version + 1 if old else 1, policy="fifo", watermark=watermark,
                                          **{"pace_milli": 1000000, "poll_seconds": 2, **fields})
        if wait:
            self.tell_sale(name)
            eventually(lambda: self.get(f"/sale/{name}/board").json["watermark"] == watermark, 10, f"watermark {watermark} is heard")

    def stock(self, name, free, held=0, settled=0):
        sale = self.sales[name]
        sale["stock"] = PB["reserve"].Stock(sale=name, epoch=sale["state"].epoch, armed=True)
        sale["stock"].items.add(item=0, initial=free + held + settled, free=free, held=held, settled=settled)
        self.tell_sale(name)

    # -- passes ----------------------------------------------------------------------------------------------------

    def sign_pass(self, user, sale, generation=1, window=None, key=None, head=None, **claims):
        """A pass as admission would sign it; anything about it can be made wrong."""
        with open(f"{self.stack.run}/keys/pass.current", encoding="ascii") as handle:
            kid, seed = handle.read().split()
        window = int(time.time()) // 60 if window is None else window
        head = head or f'{{"alg":"EdDSA","typ":"tg-pass+jwt","kid":"{kid}"}}'
        place = base64url(hashlib.blake2b(f"{user}/{sale}".encode(), digest_size=16).digest())
        fields = {"iss": "tidegate", "aud": sale, "sub": user, "iat": window * 60, "exp": (window + 2) * 60,
                  "jti": base64url(struct.pack(">Q", window) + b"m" * 16), "place": place, "gen": generation, "event_id": sale,
                  "role": "ADMITTED", **claims}
        body = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
        signed = f"{base64url(head.encode())}.{base64url(body.encode())}"
        signing = key or nacl.signing.SigningKey(bytes.fromhex(seed))
        return f"{signed}.{base64url(signing.sign(signed.encode()).signature)}"

    def held(self, **fields):
        """The gate's yes."""
        made = PB["reserve"].HoldReply(**{"reservation_id": "res_" + "0" * 25 + "1", "expires_at_ms": 1893456000000, **fields})
        if not made.reason and not made.units:
            made.units.add(item=0, unit=4711)
        return made

    # -- HTTP ------------------------------------------------------------------------------------------------------

    def get(self, path, **headers):
        return self.shop.http("GET", path, None, headers)

    def raw(self, data):
        """Sends bytes as they are, returns everything until the end of the connection."""
        with contextlib.closing(socket.create_connection(self.shop.address, 10)) as connection:
            connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            received = b""
            while part := connection.recv(65536):
                received += part
            return received
