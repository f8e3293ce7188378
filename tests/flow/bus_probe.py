# SPDX-License-Identifier: Apache-2.0
"""A seat at the bus: the NATS client protocol over one socket, messages of proto/ compiled on the fly. It plays the daemons that
are not under test, so that a single brain can be driven through states the whole stack would never be slow enough to show."""
import contextlib
import glob
import importlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid

from google.protobuf.message import DecodeError

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PREFIX = "tidegate.v1."


def messages():
    """The modules of proto/tidegate/v1, by file name: messages().queue.Board and so on."""
    if not hasattr(messages, "made"):
        folder = tempfile.mkdtemp(prefix="tidegate-proto-")
        protos = glob.glob(f"{ROOT}/proto/tidegate/v1/*.proto")
        subprocess.run(["protoc", "-I", f"{ROOT}/proto", f"--python_out={folder}", *protos], check=True)
        sys.path.insert(0, folder)

        class Made:
            """One attribute per proto file."""
        for path in protos:
            name = os.path.basename(path)[:-6]
            setattr(Made, name, importlib.import_module(f"tidegate.v1.{name}_pb2"))
        messages.made = Made
    return messages.made


class Bus:
    """One connection. Handlers run in its reader thread."""

    def __init__(self, url):
        host, port = url.removeprefix("nats://").split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=10)
        self.socket.settimeout(None)
        self.reader = self.socket.makefile("rb")
        self.lock = threading.Lock()
        self.handlers, self.replies, self.count = {}, {}, 0
        self.reader.readline()
        self.write(b"CONNECT " + json.dumps({"verbose": False, "headers": True, "name": "probe"}).encode() + b"\r\n")
        self.inbox = f"_INBOX.{uuid.uuid4().hex}"
        threading.Thread(target=self.read, daemon=True).start()
        self.subscribe(f"{self.inbox}.*", self.on_reply, prefix="")

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()

    def write(self, data):
        with self.lock:
            self.socket.sendall(data)

    def read(self):
        with contextlib.suppress(OSError, ValueError):
            for line in self.reader:
                words = line.split()
                if words[0] == b"PING":
                    self.write(b"PONG\r\n")
                elif words[0] in (b"MSG", b"HMSG"):
                    self.take(words)

    def take(self, words):
        subject, sid = words[1].decode(), int(words[2])
        headers = words[0] == b"HMSG"
        has_reply = len(words) == (6 if headers else 5)
        reply = words[3].decode() if has_reply else None
        body = self.reader.read(int(words[-1]) + 2)[:-2]
        skip = int(words[-2]) if headers else 0
        handler = self.handlers.get(sid)
        if handler:
            with contextlib.suppress(DecodeError):  # a test's own nonsense comes back to it
                handler(subject, body[skip:], reply, body[:skip])

    def subscribe(self, subject, handler, prefix=PREFIX):
        """handler(subject, body, reply subject or None, headers)."""
        self.count += 1
        self.handlers[self.count] = handler
        self.write(f"SUB {prefix}{subject} {self.count}\r\n".encode())

    def publish(self, subject, body, reply="", prefix=PREFIX):
        self.write(f"PUB {prefix}{subject} {reply} {len(body)}\r\n".encode() + body + b"\r\n")

    def on_reply(self, subject, body, _reply, headers):
        box = self.replies.pop(subject, None)
        if box:
            box["body"], box["headers"] = body, headers
            box["done"].set()

    def ask_raw(self, subject, body, seconds=3):
        """(headers, body) of the reply; None when nobody answers in time."""
        reply = f"{self.inbox}.{uuid.uuid4().hex[:12]}"
        box = self.replies[reply] = {"done": threading.Event()}
        self.publish(subject, body, reply)
        return (box["headers"], box["body"]) if box["done"].wait(seconds) else None

    def ask(self, subject, body, kind, seconds=3):
        """The reply as a message of `kind`; None when nobody answers in time or nobody is there."""
        answer = self.ask_raw(subject, body, seconds)
        return None if answer is None or b"503" in answer[0][:16] else kind.FromString(answer[1])


class Play:
    """Plays a ledger, a gate and an edge for one sale, on a thread that repeats what they repeat. Attributes are the script:
    change them and the daemons hear it with the next repetition."""

    def __init__(self, url, sale, opens_in=3600, units=1000, pace_milli=1000000):
        self.bus, self.sale = Bus(url), sale
        proto = messages()
        self.proto, self.generation, self.epoch = proto, 1, 1
        self.opened = False
        self.phase, self.opens_at = proto.common.SALE_PHASE_SCHEDULED, int((time.time() + opens_in) * 1000)
        self.free = self.units = units
        self.held, self.pace_milli, self.operator_milli, self.sequence = 0, pace_milli, 0, 1
        self.ledger = self.gate = self.edge = True
        self.pace_from_admission = False
        self.loads = None  # what say_loads() repeats; None: nobody tells a load
        self.seen = {"index_end": 0, "tickets": 0, "term": 0, "watermark": 0, "present": 0, "open": 0}
        self.boards, self.paces, self.lock = [], [], threading.Lock()
        self.bus.subscribe("ledger.sales", self.on_sales)
        self.bus.subscribe(f"queue.{sale}.board", self.on_board)
        self.bus.subscribe(f"admission.{sale}.pace", self.on_pace)
        self.running = True
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def close(self):
        self.running = False
        self.thread.join(5)
        self.bus.close()

    def definition(self):
        ledger = self.proto.ledger
        return ledger.SaleDefinition(
            sale=self.sale, generation=self.generation, opens_at_ms=self.opens_at, order="fifo", limit_per_buyer=1, hold_ms=600000,
            grace_ms=30000, extend_ms=60000, extensions_max=2, pace_start_milli=self.pace_milli, pace_min_milli=1000,
            pace_max_milli=5000000, proof_every_ms=1000, proof_lease_ms=3000, shards=1,
            items=[ledger.ItemDefinition(sku=self.sale, units=self.units, price_minor=4900, currency="EUR")])

    def state(self):
        self.opened = self.opened or self.phase == self.proto.common.SALE_PHASE_OPEN
        return self.proto.ledger.SaleState(
            sale=self.sale, generation=self.generation, phase=self.phase, epoch=self.epoch, armed=True, run_id="0" * 40,
            replication_id="1" * 40, control_sequence=self.sequence, definition_digest=b"\0" * 16,
            ledger_now_ms=int(time.time() * 1000), opens_at_ms=self.opens_at, pace_milli=self.operator_milli,
            opened=self.opened)

    def on_sales(self, _subject, _body, reply, _headers):
        if not self.ledger:
            return
        answer = self.proto.ledger.SalesReply(definitions=[self.definition()], states=[self.state()], end=True)
        self.bus.publish(reply, answer.SerializeToString(), prefix="")

    def on_board(self, _subject, body, _reply, _headers):
        board = self.proto.queue.Board.FromString(body)
        self.boards.append((time.monotonic(), board))
        with self.lock:
            if board.term >= self.seen["term"] and board.generation == self.generation:
                self.seen.update(term=board.term, watermark=max(board.watermark, self.seen["watermark"]),
                                 present=board.present_at_open, open=board.index_at_open)

    def on_pace(self, _subject, body, _reply, _headers):
        self.paces.append((time.monotonic(), self.proto.admission.Pace.FromString(body)))

    def say_state(self):
        self.bus.publish(f"state.{self.sale}", self.state().SerializeToString())

    def say_stock(self):
        item = self.proto.reserve.ItemStock(item=0, initial=self.units, free=self.free, held=self.held)
        now = int(time.time() * 1000)
        stock = self.proto.reserve.Stock(sale=self.sale, epoch=self.epoch, armed=True, gate_now_ms=now,
                                         attested_until_ms=now + 3000, items=[item])
        self.bus.publish(f"gate.{self.sale}.stock", stock.SerializeToString())

    def say_pace(self):
        pace = self.proto.admission.Pace(sale=self.sale, term=1, instance="admission-played", pace_milli=self.pace_milli)
        self.bus.publish(f"admission.{self.sale}.pace", pace.SerializeToString())

    def say_presence(self):
        with self.lock:
            presence = self.proto.queue.Presence(
                sale=self.sale, edge="edge-played", generation=self.generation, index_end=self.seen["index_end"],
                tickets=self.seen["tickets"], board_term=self.seen["term"], board_watermark=self.seen["watermark"],
                present_at_open=self.seen["present"], index_at_open=self.seen["open"])
        self.bus.publish(f"queue.{self.sale}.presence", presence.SerializeToString())

    def say_signal(self, name, value_milli, limit_milli=0, valid_ms=30000):
        signal = self.proto.admission.Signal(sale=self.sale, name=name, value_milli=value_milli, limit_milli=limit_milli,
                                             valid_ms=valid_ms)
        self.bus.publish(f"load.{self.sale}.signal", signal.SerializeToString())

    def say_loads(self, p99_us=4000, requests=50, errors=0):
        """Edge, reserve and ledger, all equally busy."""
        for daemon in ("edge", "reserve", "ledger"):
            load = self.proto.common.Load(sale=self.sale, daemon=daemon, instance=f"{daemon}-played", p99_us=p99_us,
                                          requests=requests, errors=errors)
            self.bus.publish(f"load.{self.sale}.{daemon}", load.SerializeToString())

    def say_board(self, **fields):
        board = self.proto.queue.Board(sale=self.sale, generation=self.generation, **fields)
        self.bus.publish(f"queue.{self.sale}.board", board.SerializeToString())

    def run(self):
        with contextlib.suppress(OSError):
            while self.running:
                if self.ledger:
                    self.say_state()
                if self.gate:
                    self.say_stock()
                if not self.pace_from_admission:
                    self.say_pace()
                if self.edge:
                    self.say_presence()
                if self.loads is not None:
                    self.say_loads(**self.loads)
                time.sleep(0.2)

    def set(self, **changes):
        """Changes the script and says the new state at once, as a ledger does."""
        for name, value in changes.items():
            setattr(self, name, value)
        self.sequence += 1
        self.say_state()
        if "free" in changes or "held" in changes:
            self.say_stock()

    def recreate(self):
        """The sale anew under the same name: the ledger raises the generation, the edge forgets what it saw."""
        with self.lock:
            self.generation += 1
            self.seen.update(index_end=0, tickets=0, watermark=0, present=0, open=0)
        self.opened = False
        self.set(phase=self.proto.common.SALE_PHASE_SCHEDULED)

    def lease(self, count=8, edge="edge-played", seconds=3):
        request = self.proto.queue.LeaseRequest(sale=self.sale, edge=edge, count=count)
        reply = self.bus.ask(f"queue.{self.sale}.lease", request.SerializeToString(), self.proto.queue.LeaseReply, seconds)
        if reply and not reply.reason and reply.generation == self.generation:
            self.seen["index_end"] = max(self.seen["index_end"], reply.first + reply.count)
            self.seen["tickets"] += reply.count
        return reply

    def ask_pass(self, ticket, user, sale=None):
        request = self.proto.admission.PassRequest(sale=sale or self.sale, ticket=ticket, user=user)
        return self.bus.ask(f"admission.{self.sale}.pass", request.SerializeToString(), self.proto.admission.PassReply)

    def board(self):
        return self.boards[-1][1] if self.boards else None

    def pace(self):
        return self.paces[-1][1] if self.paces else None
