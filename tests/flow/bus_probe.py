# SPDX-License-Identifier: Apache-2.0
"""A small NATS client on a plain socket: what a stranger on the bus can send, and what comes back."""
import importlib
import os
import re
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PREFIX = "tidegate.v1."
KINDS = ("common", "queue", "admission", "reserve", "ledger", "control")


def messages():
    """The rows of catalog/messages.def: (id, subject, kind, owner, request, reply)."""
    with open(f"{ROOT}/catalog/messages.def", encoding="utf-8") as handle:
        found = re.findall(r'^TG_MESSAGE\((\w+), "([^"]+)", (\w+), (\w+), (\w+), (\w+)\)', handle.read(), re.M)
    return found


def types():
    """Message classes by snake-case name, generated from proto/ into a temporary folder."""
    folder = tempfile.mkdtemp(prefix="tidegate-proto-")
    files = [f"{ROOT}/proto/tidegate/v1/{kind}.proto" for kind in KINDS]
    subprocess.run(["protoc", "-I", f"{ROOT}/proto", f"--python_out={folder}", *files], check=True)
    sys.path.insert(0, folder)
    found = {}
    for kind in KINDS:
        module = importlib.import_module(f"tidegate.v1.{kind}_pb2")
        for name, descriptor in module.DESCRIPTOR.message_types_by_name.items():
            found[re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()] = getattr(module, descriptor.name)
    return found


class Bus:
    """Publishes and requests; keeps no state but the socket."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.buffer = b""
        self.count = 0
        self.line()  # INFO
        self.socket.sendall(b'CONNECT {"verbose":false,"headers":true,"no_responders":true,"protocol":1}\r\nPING\r\n')
        assert self.line() == b"PONG"
        self.inbox = f"_INBOX.probe{os.getpid()}{id(self)}"
        self.socket.sendall(f"SUB {self.inbox}.* 1\r\n".encode())

    def close(self):
        self.socket.close()

    def need(self, length):
        while len(self.buffer) < length:
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionError("the server closed the connection")
            self.buffer += data

    def line(self):
        while b"\r\n" not in self.buffer:
            self.need(len(self.buffer) + 1)
        line, self.buffer = self.buffer.split(b"\r\n", 1)
        return line

    def publish(self, subject, body, reply=""):
        head = f"PUB {subject} {reply + ' ' if reply else ''}{len(body)}\r\n".encode()
        self.socket.sendall(head + body + b"\r\n")

    def request(self, subject, body, seconds=3):
        """(headers, body) of the first answer, or None when nobody answered in time."""
        self.count += 1
        reply = f"{self.inbox}.{self.count}"
        self.publish(subject, body, reply)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            self.socket.settimeout(max(0.01, deadline - time.monotonic()))
            try:
                message = self.next()
            except socket.timeout:
                return None
            finally:
                self.socket.settimeout(5)
            if message and message[0] == reply:
                return message[1], message[2]
        return None

    def next(self):
        """The next message as (subject, headers, body); None for a protocol line."""
        line = self.line()
        if line == b"PING":
            self.socket.sendall(b"PONG\r\n")
            return None
        parts = line.decode().split()
        if parts[0] == "-ERR":
            raise ConnectionError(line.decode())
        if parts[0] not in ("MSG", "HMSG"):
            return None
        total = int(parts[-1])
        head = int(parts[-2]) if parts[0] == "HMSG" else 0
        self.need(total + 2)
        data, self.buffer = self.buffer[:total], self.buffer[total + 2:]
        return parts[1], data[:head].decode(errors="replace"), data[head:]
