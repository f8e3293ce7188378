# SPDX-License-Identifier: Apache-2.0
"""The gate scripts on a private Redis: a driver that names keys and arguments as the scripts' headers do."""
import os
import shutil
import subprocess
import tempfile
import time

import redis

from stack import ENDS_WITH_US

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LUA = os.path.join(ROOT, "services", "reserve", "lua")
PLAIN = ("ctl", "pauses", "held", "unacked", "settled", "released", "buyers", "used", "log")
FAR = 2 ** 52
ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def reservation(number):
    text = ""
    for _ in range(26):
        text = ALPHABET[number % 32] + text
        number //= 32
    return "res_" + text


def place(number):
    return f"{number:021d}A"


class PrivateRedis:
    """A Redis of the test's own on a unix socket."""

    def __init__(self, *options):
        self.folder = tempfile.mkdtemp(prefix="tidegate-gate-")
        self.socket = os.path.join(self.folder, "redis.sock")
        self.options = options
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [*ENDS_WITH_US, "redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "", "--appendonly", "no",
             "--maxmemory-policy", "noeviction", "--dir", self.folder, *self.options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.client = redis.Redis(unix_socket_path=self.socket)
        deadline = time.monotonic() + 10
        while True:
            try:
                self.client.ping()
                return
            except redis.exceptions.RedisError:
                assert time.monotonic() < deadline, "redis-server does not come up"
                time.sleep(0.02)

    def stop(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


class Gate:
    """One gate. Every method runs one script and gives its words as text."""

    def __init__(self, client, sale="sale", epoch=1, units=(4,), limit=1):
        self.client, self.sale, self.epoch, self.units, self.limit = client, sale, epoch, units, limit
        self.run_id = client.info("server")["run_id"]
        self.replid = client.info("replication")["master_replid"]
        self.scripts = {}
        for name in os.listdir(LUA):
            with open(os.path.join(LUA, name), encoding="utf-8") as handle:
                self.scripts[name[:-4]] = handle.read()

    def key(self, name):
        return f"tg:{{{self.sale}.0}}:{self.epoch}:{name}"

    def keys(self, items=None):
        items = range(len(self.units)) if items is None else items
        return [self.key(name) for name in PLAIN] + [self.key(f"free:{item}") for item in items]

    @property
    def seal(self):
        return f"1 {self.run_id} {self.replid}"

    def run(self, script, keys, *arguments):
        answer = self.client.eval(self.scripts[script], len(keys), *keys, *arguments)
        if isinstance(answer, bytes):
            return answer.decode().split(" ", 1)
        return [word.decode() if word is not None else None for word in answer]

    # -- one method per script --

    def load(self, what, *arguments, loader="reserve-a", run_id=None):
        return self.run("load", self.keys(), what, loader, self.epoch, run_id or self.run_id, *arguments)

    def begin(self, loader="reserve-a", takeover_ms=5000):
        return self.load("begin", self.limit, takeover_ms, *self.units, loader=loader)

    def arm(self, loader="reserve-a"):
        return self.run("arm", self.keys(), loader, self.epoch, self.run_id, self.replid)

    def attest(self, gate_time_ms=None, lease_ms=3000, run_id=None, replid=None, epoch=None):
        return self.run("attest", [self.key("ctl")], self.seal, epoch or self.epoch, run_id or self.run_id,
                        replid or self.replid, self.now_ms() if gate_time_ms is None else gate_time_ms, lease_ms)

    def make(self, rows=()):
        """Loads, verifies, arms and attests for a long time."""
        assert self.begin() == ["begun"]
        if rows:
            assert self.load("page", 1, *[word for row in rows for word in row]) == ["loaded"]
        assert self.load("finish") == ["verified"]
        assert self.arm()[0] == "armed"
        assert self.attest(lease_ms=10 ** 9)[0] == "attested"
        return self

    def hold(self, number, user=None, at=None, window=100, digest="D" * 22, is_open=True, pass_expires_ms=FAR,
             demands=((0, 1, ""),), seal=None, provisional_ms=600000, wanted=None, spelled_out=False):
        arguments = [self.seal if seal is None else seal, reservation(number), user or f"user-{number}", at or place(number),
                     window, digest, pass_expires_ms if is_open else "", provisional_ms, "reserve-a"]
        if len(self.units) > 1 or tuple(demands) != ((0, 1, ""),) or spelled_out:
            total = sum(any_units + (len(named.split(",")) if named else 0) for _, any_units, named in demands)
            arguments += [len(self.units), wanted or total]
            for demand in demands:
                arguments += demand
        return self.run("hold", self.keys([demand[0] for demand in demands]), *arguments)

    def acknowledge(self, number, deadline_ms, epoch=None):
        return self.run("acknowledge", self.keys([]), self.seal, epoch or self.epoch, reservation(number), deadline_ms)

    def extend(self, number, deadline_ms, epoch=None):
        return self.run("extend", self.keys(), self.seal, epoch or self.epoch, reservation(number), deadline_ms)

    def settle(self, number, epoch=None, seal=None):
        return self.run("settle", self.keys(), self.seal if seal is None else seal, epoch or self.epoch, reservation(number), "reserve-a")

    def release(self, number, epoch=None, seal=None):
        return self.run("release", self.keys(), self.seal if seal is None else seal, epoch or self.epoch, reservation(number), "reserve-a")

    def pause(self, *pairs):
        return self.run("pause", [self.key("pauses")], *pairs)

    def lift(self, *ids):
        return self.run("lift", [self.key("pauses")], *ids)

    def look(self):
        return self.run("look", self.keys())

    def due(self, above_ms, up_to_ms, cursor="0", epoch=None):
        return self.run("due", [self.key("ctl"), self.key("unacked"), self.key("held")], self.seal, epoch or self.epoch,
                        cursor, 100, above_ms, up_to_ms)

    def trim(self, sequence, epoch=None):
        return self.run("trim", [self.key("ctl"), self.key("log")], self.seal, epoch or self.epoch, sequence)

    # -- what is in it --

    def now_ms(self):
        seconds, microseconds = self.client.time()
        return seconds * 1000 + microseconds // 1000

    def counters(self, item=0):
        names = ("initial", "stock", "held", "settled")
        row = self.client.hmget(self.key("ctl"), *[f"{name}:{item}" for name in names])
        return dict(zip(names, (int(value) for value in row)))

    def free_units(self, item=0):
        return self.client.bitcount(self.key(f"free:{item}"))

    def state(self, without=()):
        """All of it, by key, for comparing before and after."""
        read = {b"hash": self.client.hgetall, b"set": self.client.smembers, b"string": self.client.get,
                b"stream": self.client.xrange}
        left_out = [self.key(name) for name in without]
        return {key: read[self.client.type(key)](key) for key in self.client.keys("tg:*") if key.decode() not in left_out}

    def conserved(self):
        for item in range(len(self.units)):
            row = self.counters(item)
            assert row["stock"] + row["held"] + row["settled"] == row["initial"] == self.units[item], row
            assert self.free_units(item) == row["stock"], row
        return True

    def log(self):
        return [(int(identity.split(b"-")[0]), {name.decode(): value.decode() for name, value in fields.items()})
                for identity, fields in self.client.xrange(self.key("log"))]
