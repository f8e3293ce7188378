# SPDX-License-Identifier: Apache-2.0
"""The servers as they are run in production: Redis with a replica and Sentinel behind one address, PostgreSQL behind PgBouncer in
transaction mode. A failover of Redis is an incident that an operator ends; a pooler is nothing to notice."""
import contextlib
import json
import os
import shutil
import signal
import socket
import tempfile
import threading
import time

import pytest
import redis

from conftest import BUILD
from rounds import alarms
from rush import Rush, judge
from shop import Shop, eventually
from stack import LOCAL, Stack, free_port, wait_for

UNITS = 80


class Forwarder:
    """The address that leads to the primary: what a virtual IP, a Service or a proxy is elsewhere. Sentinel's script moves it; a
    connection once made stays where it is."""

    def __init__(self, target_file):
        self.target_file = target_file
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def close(self):
        self.listener.close()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.carry, args=(near,), daemon=True).start()

    def carry(self, near):
        with open(self.target_file, encoding="ascii") as handle:
            host, port = handle.read().split()
        try:
            far = socket.create_connection((host, int(port)), timeout=2)
        except OSError:
            near.close()
            return
        far.settimeout(None)
        back = threading.Thread(target=self.pour, args=(far, near), daemon=True)
        back.start()
        self.pour(near, far)
        back.join()

    @staticmethod
    def pour(source, sink):
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


class GuardedStack(Stack):
    """A stack whose Redis has a replica and a Sentinel; daemons know one address only."""

    def start_redis(self):
        self.ports = {name: free_port() for name in ("redis", "redis-replica", "sentinel")}
        self.target_file = f"{self.run}/redis/target"
        self.point_to("redis")
        self.forwarder = Forwarder(self.target_file)
        self.env["TIDEGATE_REDIS_URL"] = f"redis://127.0.0.1:{self.forwarder.port}"
        for name, more in (("redis", ()), ("redis-replica", ("--replicaof", "127.0.0.1", str(self.ports["redis"])))):
            os.makedirs(f"{self.run}/redis/{name}", exist_ok=True)
            own = shutil.copy(f"{LOCAL}/redis.conf", f"{self.run}/redis/{name}/redis.conf")  # Sentinel has it rewritten
            self.spawn(name, ["redis-server", own, "--port", str(self.ports[name]), "--dir",
                              f"{self.run}/redis/{name}", *more])
            self.wait_port(name, self.ports[name])
        wait_for("the replica follows", lambda: self.redis("redis-replica").info("replication").get("master_link_status") == "up")
        self.start_sentinel()

    def point_to(self, name):
        with open(self.target_file, "w", encoding="ascii") as handle:
            handle.write(f"127.0.0.1 {self.ports[name]}\n")

    def redis(self, name):
        return redis.Redis(port=self.ports[name], socket_timeout=2)

    def start_sentinel(self):
        script, settings = f"{self.run}/redis/moved", f"{self.run}/redis/sentinel.conf"
        with open(script, "w", encoding="ascii") as handle:
            handle.write(f"#!/bin/sh\necho \"$6 $7\" > {self.target_file}\n")
        os.chmod(script, 0o755)
        with open(settings, "w", encoding="ascii") as handle:
            handle.write(f"port {self.ports['sentinel']}\nbind 127.0.0.1\ndir {self.run}/redis\n"
                         f"sentinel monitor gate 127.0.0.1 {self.ports['redis']} 1\nsentinel down-after-milliseconds gate 1500\n"
                         f"sentinel failover-timeout gate 6000\nsentinel client-reconfig-script gate {script}\n")
        self.spawn("sentinel", ["redis-server", settings, "--sentinel"])
        self.wait_port("sentinel", self.ports["sentinel"])
        wait_for("Sentinel knows the replica", lambda: self.redis("sentinel").info("sentinel")["master0"]["slaves"] == 1, 40)

    def promoted(self):
        with open(self.target_file, encoding="ascii") as handle:
            return int(handle.read().split()[1]) == self.ports["redis-replica"]


class PooledStack(Stack):
    """A stack whose ledger and checker reach PostgreSQL through PgBouncer in transaction mode, with few connections."""

    def migrate(self):
        super().migrate()
        self.direct = self.env["TIDEGATE_POSTGRES_URL"]
        self.start_pooler()
        self.env["TIDEGATE_POSTGRES_URL"] = f"host={self.run}/pooler port=6432 dbname=tidegate user=tidegate"

    def start_pooler(self):
        folder = f"{self.run}/pooler"
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o777)
        with open(f"{folder}/ini", "w", encoding="ascii") as handle:
            handle.write(f"[databases]\ntidegate = host={self.run}/postgres/socket dbname=tidegate\n[pgbouncer]\nlisten_addr=\n"
                         f"listen_port=6432\nunix_socket_dir={folder}\nauth_type=trust\nauth_file={folder}/users\n"
                         f"pool_mode=transaction\ndefault_pool_size=4\nlogfile={folder}/log\n")
        with open(f"{folder}/users", "w", encoding="ascii") as handle:
            handle.write('"tidegate" ""\n"tidegate_ledger" ""\n"tidegate_invariant" ""\n')
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{folder}/.s.PGSQL.6432")
        self.spawn("pooler", [*self.as_postgres, shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin"), f"{folder}/ini"],
                   cwd="/")
        wait_for("the pooler listens", lambda: os.path.exists(f"{folder}/.s.PGSQL.6432"))


@contextlib.contextmanager
def opened(kind):
    folder = tempfile.mkdtemp(prefix="tidegate-flow-")
    os.chmod(folder, 0o711)
    stack = kind(os.path.join(folder, "run"), BUILD, quiet=True)
    try:
        stack.start()
        yield Shop(stack)
    finally:
        stack.stop()
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def guarded():
    with opened(GuardedStack) as shop:
        yield shop
        shop.stack.forwarder.close()


@pytest.fixture
def pooled():
    if shutil.which("pgbouncer", path=f"{os.environ['PATH']}:/usr/sbin") is None:
        pytest.skip("pgbouncer is not installed")
    with opened(PooledStack) as shop:
        yield shop


def nothing_sold(shop, rush, seconds):
    """Nobody wins for a while; who had his 201 on the way may still get it."""
    before, until = len(rush.wins), time.monotonic() + seconds
    while time.monotonic() < until:
        assert len(rush.wins) <= before, "sold on a gate that nobody rebuilt"
        rush.stopped.wait(0.1)


def operator_recovers(shop, sale):
    refused = shop.stack.ctl("sale", "resume", sale, check=False)
    assert refused.returncode == 1, refused.stdout + refused.stderr
    report = json.loads(shop.stack.ctl("-o", "json", "incident", "report", sale).stdout)
    assert "rebuild" in report["next"] and report["state"]["pauses"], report
    shop.stack.ctl("sale", "rebuild", sale, "--wait", "90s")
    shop.stack.ctl("sale", "resume", sale, "--wait", "90s")


def test_a_failover_of_redis_pauses_until_an_operator_rebuilds(guarded):
    shop = guarded
    sale = shop.sale(units=UNITS, pace="30/s")
    with Rush(shop, sale, UNITS, UNITS + 20, patience_s=240) as rush:
        rush.wait_wins(15, 60)
        shop.stack.kill("redis")
        eventually(shop.stack.promoted, 60, "Sentinel promotes the replica and moves the address")
        eventually(lambda: shop.stack.redis("redis-replica").info("replication")["role"] == "master", 20, "it is the primary now")
        eventually(lambda: shop.state(sale) == "paused", 30, "the checker pauses")
        nothing_sold(shop, rush, 4)
        assert any("G (" in detail for detail in alarms(shop, sale))
        operator_recovers(shop, sale)
        rush.wait_wins(UNITS, 120)
    rows = judge(shop, sale, rush, UNITS)  # every 201 has its row, every confirmed one is confirmed, nothing is sold twice
    assert sum(state in ("pending", "confirmed") for state in rows.values()) == UNITS
    assert shop.epoch(sale) == 2


def test_an_old_primary_that_lives_on_never_sells(guarded):
    shop = guarded
    sale = shop.sale(units=UNITS, pace="30/s")
    with Rush(shop, sale, UNITS, UNITS + 20, patience_s=240) as rush:
        rush.wait_wins(15, 60)
        os.kill(shop.stack.pid("redis"), signal.SIGSTOP)
        eventually(shop.stack.promoted, 60, "Sentinel promotes the replica and moves the address")
        eventually(lambda: shop.state(sale) == "paused", 30, "the checker pauses")
        operator_recovers(shop, sale)
        shop.stack.kill("sentinel")  # nobody tells the old primary that it is none
        os.kill(shop.stack.pid("redis"), signal.SIGCONT)
        old = shop.stack.redis("redis")
        eventually(old.ping, 10, "the old primary lives on")
        assert old.info("replication")["role"] == "master"
        control = f"tg:{{{sale}.0}}:1:ctl"
        before = old.hget(control, "seq")
        # A reserve daemon cut off with the old primary takes its share of the requests.
        shop.stack.start_daemon("reserve", name="reserve-2", ready=False,
                                env={"TIDEGATE_RESERVE_REDIS_URL": f"redis://127.0.0.1:{shop.stack.ports['redis']}"})
        eventually(lambda: shop.stack.admin("reserve-2", "/livez")[0] == 200, 20, "it runs")
        rush.wait_wins(UNITS, 150)
        assert old.hget(control, "seq") == before, "the old gate moved"
        assert not old.exists(f"tg:{{{sale}.0}}:2:ctl"), "a second gate of this epoch"
    judge(shop, sale, rush, UNITS)
    assert shop.ledger("SELECT count(*) FROM tidegate.reservations WHERE sale = %s AND epoch = 1 AND created_at > (SELECT min(judged_at)"
                       " FROM tidegate.control_log WHERE sale = %s AND kind = 'rebuild')", sale, sale) == [(0,)]


def test_a_whole_sale_through_a_transaction_pooler(pooled):
    shop, units = pooled, 60
    sale = shop.sale(units=units, pace="40/s")
    with Rush(shop, sale, units, units + 20, patience_s=120) as rush:
        rush.wait_wins(units // 3, 60)
        shop.stack.kill("pooler")  # everything in progress has an unknown outcome
        shop.stack.start_pooler()
        rush.wait_wins(units, 120)
    rows = judge(shop, sale, rush, units)
    assert sum(state in ("pending", "confirmed") for state in rows.values()) == units
    assert alarms(shop, sale) == []
    shop.stack.ctl("sale", "rebuild", sale, "--wait", "60s")
    shop.stack.ctl("sale", "resume", sale, "--wait", "60s")
    assert "ledger.statement_refused" not in shop.stack.tail("ledger", 10000)
