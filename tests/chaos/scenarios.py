# SPDX-License-Identifier: Apache-2.0
"""Faults that are no instant of ours: kills in a row, servers that die, freeze, fill up or lose data, cut networks, stepped clocks.
Each scenario is one row of the table. A row says plainly when a machine does not permit it, and why."""
import os
import random
import re
import shutil
import signal
import subprocess
import time

import network
from ground import DAEMONS, Failed, Ground, Outcome, StackError, eventually, judged, resting

SCENARIOS = []
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"


class Skipped(Exception):
    """This machine does not permit it; the message says why."""


class Scenario:
    def __init__(self, name, play):
        self.name, self.play = name, play


def scenario(name):
    def keep(play):
        SCENARIOS.append(Scenario(name, play))
        return play
    return keep


def run_scenario(one, options):
    """A scenario on a stack of its own. What it raises is its failure."""
    outcome = Outcome(one.name)
    ground = Ground(options.build)
    try:
        with ground:
            try:
                one.play(ground, outcome, options)
            except Skipped as why:
                outcome.skipped = str(why)
            except Exception as fault:  # whatever it is, it is this scenario's failure and not the end of the others
                outcome.why.append(re.sub(r"\s+", " ", f"{type(fault).__name__} {fault}")[:400])
            ground.keep = bool(outcome.why)
    except (StackError, OSError) as fault:
        outcome.why.append(re.sub(r"\s+", " ", str(fault))[:400])
    if outcome.why:
        outcome.notes["logs"] = f"{ground.folder}/run/log"
    return outcome


def long_sale(ground, **options):
    """A sale that still sells after half a minute: buyers keep coming."""
    sale = ground.open_sale(units=600, hold="3s")
    return sale, ground.play(sale, **{"buyers": 640, "arrive_s": 15, "limit_s": 240, "settle_s": 90, **options})


# -- kills in a row --------------------------------------------------------------------------------------------------------


@scenario("kills of random daemons")
def kills(ground, outcome, options):
    """200 kills in one sale of a minute: each daemon comes back at once and dies again."""
    dice = random.Random(options.seed)
    sale = ground.open_sale(units=600, hold="3s")
    crowd = ground.play(sale, buyers=640, arrive_s=20, limit_s=240, settle_s=90)
    began = time.monotonic()
    for number in range(200):
        daemon = dice.choice(DAEMONS)
        ground.restart(daemon, ready=False)
        outcome.hits += 1
        resting(max(0.0, began + (number + 1) * 0.3 - time.monotonic()))
    took = time.monotonic() - began
    if crowd.poll() is not None:
        raise Failed(f"the sale was over before the last kill, after {took:.0f} s")
    judged(ground, sale, crowd, outcome, 300)
    outcome.notes.update(oversold=outcome.number("oversold"), lostHolds=outcome.number("lostHolds"), seconds=f"{took:.0f}")


def twenty(ground, outcome, crash):
    sale, crowd = long_sale(ground, arrive_s=20)
    ground.wait_held(sale, 20, crowd)
    for _ in range(20):
        held = ground.held(sale)
        crash()
        outcome.hits += 1
        eventually(lambda held=held: ground.held(sale) > held or crowd.poll() is not None, 60, "it sells again")
        if crowd.poll() is not None:
            raise Failed(f"the sale was over after {outcome.hits} kills")
    judged(ground, sale, crowd, outcome, 300)


@scenario("postgres killed 20 times")
def postgres_kills(ground, outcome, options):
    def crash():
        ground.stack.crash_postgres()
        ground.stack.start_postgres()
    twenty(ground, outcome, crash)


@scenario("nats killed 20 times")
def nats_kills(ground, outcome, options):
    def crash():
        ground.stack.kill("nats")
        ground.stack.start_nats()
    twenty(ground, outcome, crash)


# -- the bus stands still --------------------------------------------------------------------------------------------------


@scenario("nats frozen")
def nats_frozen(ground, outcome, options):
    """No packet, no end of the connection. Nobody crashes, nobody's loop blocks, the gate closes, and all go on by themselves."""
    sale, crowd = long_sale(ground, limit_s=240 + options.frozen_s, arrive_s=15 + options.frozen_s // 2)
    ground.wait_held(sale, 60, crowd)
    os.kill(ground.stack.pid("nats"), signal.SIGSTOP)
    outcome.hits = 1
    until = time.monotonic() + options.frozen_s
    closed = None
    while time.monotonic() < until:
        for daemon in DAEMONS:
            status, text = ground.stack.admin(daemon, "/livez")
            if status != 200:
                raise Failed(f"{daemon} does not live while the bus stands still: {status} {text}")
        if closed is None and time.monotonic() > until - options.frozen_s + 8:
            closed = ground.held(sale)
        resting(0.5)
    after = ground.held(sale)
    os.kill(ground.stack.pid("nats"), signal.SIGCONT)
    if closed is not None and after != closed:
        raise Failed(f"{after - closed} holds while the bus stood still")
    eventually(lambda: ground.held(sale) > after, 60, "it sells again")
    judged(ground, sale, crowd, outcome, 300)
    outcome.notes["frozen"] = f"{options.frozen_s} s"


# -- Redis -----------------------------------------------------------------------------------------------------------------


@scenario("aof cut at many offsets")
def aof_cuts(ground, outcome, options):
    """Redis dies and comes back with less and less of what it had. Each time it is an incident: nothing is sold, nobody is told
    'sold out', until a rebuild; the last restart is rebuilt, resumed and sold to the end."""
    stack, shop = ground.stack, ground.shop
    sale = ground.open_sale(units=300, hold="3s")
    crowd = ground.play(sale, buyers=320, arrive_s=5, limit_s=400, settle_s=90, corrupted=True)
    ground.wait_held(sale, 80, crowd)
    stack.kill("redis")
    folder = f"{stack.run}/redis/appendonlydir"
    log = next(name for name in sorted(os.listdir(folder)) if name.endswith(".incr.aof"))
    with open(f"{folder}/{log}", "rb") as handle:
        whole = handle.read()
    eventually(lambda: shop.state(sale) == "paused", 15, f"{sale} is paused by the checker")
    held = ground.held(sale)
    dice = random.Random(options.seed)
    offsets = sorted({0, len(whole), *(dice.randrange(len(whole)) for _ in range(options.cuts - 2))})
    for offset in offsets:
        with open(f"{folder}/{log}", "wb") as handle:
            handle.write(whole[:offset])
        stack.start_redis()
        outcome.hits += 1
        eventually(lambda: stack.admin("reserve", "/readyz")[0] == 200, 20, "reserve has found it")
        resting(0.5)
        if ground.held(sale) != held or shop.state(sale) != "paused":
            raise Failed(f"cut at {offset} of {len(whole)}: held {ground.held(sale)}, before {held}; {shop.state(sale)}")
        if offset != offsets[-1]:
            stack.kill("redis")
    refused = stack.ctl("sale", "resume", sale, check=False)
    if refused.returncode == 0:
        raise Failed("resumed although the gate was not rebuilt")
    ground.rebuild(sale)
    judged(ground, sale, crowd, outcome, 300)
    outcome.notes["cuts"] = len(offsets)


@scenario("redis out of memory")
def redis_full(ground, outcome, options):
    """Holds are refused whole, what is held can be paid and given back; with room again it goes on."""
    shop = ground.shop
    sale, crowd = long_sale(ground, arrive_s=8)
    ground.wait_held(sale, 100, crowd)
    shop.redis.config_set("maxmemory", 1)
    outcome.hits = 1
    resting(1.5)  # what was on its way is recorded
    held, ended = ground.held(sale), obeyed(shop, sale)
    resting(4)
    if ground.held(sale) != held:
        raise Failed(f"{ground.held(sale) - held} holds without memory")
    if obeyed(shop, sale) == ended:
        raise Failed("nothing was settled or released without memory")
    shop.redis.config_set("maxmemory", 0)
    eventually(lambda: ground.held(sale) > held, 30, "it sells again")
    judged(ground, sale, crowd, outcome, 300)


def obeyed(shop, sale):
    return shop.ledger("SELECT count(*) FROM tidegate.reservations WHERE sale = %s AND obeyed_at IS NOT NULL", sale)[0][0]


@scenario("redis may evict")
def redis_evicts(ground, outcome, options):
    """A policy that may drop keys: the checker closes the running sale, and no new gate is armed on such a Redis."""
    shop = ground.shop
    sale, crowd = long_sale(ground, arrive_s=8, corrupted=True)
    ground.wait_held(sale, 100, crowd)
    shop.redis.config_set("maxmemory-policy", "allkeys-lru")
    outcome.hits = 1
    eventually(lambda: shop.state(sale) == "paused", 15, f"{sale} is paused by the checker")
    eventually(lambda: "noeviction" in ground.stack.admin("reserve", "/readyz?verbose")[1], 15, "reserve is not ready and says why")
    second = shop.apply(units=5)
    resting(3)
    if shop.ledger("SELECT armed FROM tidegate.sales WHERE sale = %s", second)[0][0]:
        raise Failed("a gate was armed on a Redis that may evict it")
    shop.redis.config_set("maxmemory-policy", "noeviction")
    ground.whole()
    ground.rebuild(sale)
    judged(ground, sale, crowd, outcome, 300)


# -- the disk --------------------------------------------------------------------------------------------------------------


def shell(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise Skipped(f"`{' '.join(command)}` is not permitted here: {done.stderr.strip()}")


@scenario("postgres out of disk")
def postgres_full(ground, outcome, options):
    """The log of PostgreSQL lies on a small file system that fills up: no 201 without its row, and with room again it goes on."""
    stack = ground.stack
    home, small = f"{stack.run}/postgres/data", f"{stack.run}/postgres/small"
    os.mkdir(small)
    shell("mount", "-t", "tmpfs", "-o", "size=96m,mode=700", "tmpfs", small)
    try:
        stack.kill("postgres", signal.SIGINT)
        shutil.copytree(f"{home}/pg_wal", f"{small}/pg_wal")
        shell("chown", "-R", f"--reference={home}", small)
        shutil.rmtree(f"{home}/pg_wal")
        os.symlink(f"{small}/pg_wal", f"{home}/pg_wal")
        stack.start_postgres()
        ground.whole()
        sale, crowd = long_sale(ground)
        ground.wait_held(sale, 100, crowd)
        fill(f"{small}/filler")
        # New segments of the log have no room: it panics, and finds none when it comes back.
        eventually(lambda: stack.psql("SELECT pg_switch_wal() FROM pg_logical_emit_message(true, 'chaos', 'x')", check=False) is None, 60,
                   "PostgreSQL has run out of disk")
        outcome.hits = 1
        resting(5)
        os.unlink(f"{small}/filler")
        if not stack.alive("postgres") or stack.psql("SELECT 1", check=False) is None:
            stack.crash_postgres()
            stack.start_postgres()
        held = ground.held(sale)
        eventually(lambda: ground.held(sale) > held, 60, "it sells again")
        judged(ground, sale, crowd, outcome, 300)
    finally:
        stack.kill("postgres", signal.SIGINT)
        subprocess.run(["umount", "-l", small], check=False)


def fill(path):
    """Takes what is left of a file system."""
    with open(path, "wb", buffering=0) as handle:
        try:
            while True:
                handle.write(b"\0" * 65536)
        except OSError:
            return


# -- the network -----------------------------------------------------------------------------------------------------------


def partition(daemon):
    def play(ground, outcome, options):
        """The daemon sits behind a cable of its own; the cable is pulled in mid-sale: packets vanish, nobody hears an end."""
        why = network.forbidden()
        if why:
            raise Skipped(why)
        with network.Island(ground.stack) as island:
            island.move(daemon)
            ground.whole()
            sale, crowd = long_sale(ground, arrive_s=8)
            ground.wait_held(sale, 60, crowd)
            island.cut()
            outcome.hits = 1
            resting(8)
            island.heal()
            held = ground.held(sale)
            eventually(lambda: ground.held(sale) > held or crowd.poll() is not None, 60, "it sells again")
            judged(ground, sale, crowd, outcome, 300)
    return play


for one in DAEMONS[:-1]:
    SCENARIOS.append(Scenario(f"{one} cut off", partition(one)))


# -- clocks ----------------------------------------------------------------------------------------------------------------


def clock(name):
    def play(ground, outcome, options):
        """Its clock jumps ten minutes ahead, then ten minutes back, then is right again; monotonic time goes on."""
        if not os.path.exists(FAKETIME):
            raise Skipped(f"{FAKETIME} is not installed: run tools/dev setup")
        offset = f"{ground.stack.run}/clock"

        def step(text):
            with open(f"{offset}.new", "w", encoding="ascii") as handle:
                handle.write(f"{text}\n")
            os.rename(f"{offset}.new", offset)
        step("+0")
        ground.restart(name, env={"LD_PRELOAD": FAKETIME, "FAKETIME_TIMESTAMP_FILE": offset, "FAKETIME_NO_CACHE": "1",
                                  "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_DONT_RESET": "1"})
        sale, crowd = long_sale(ground, arrive_s=8)
        ground.wait_held(sale, 60, crowd)
        for text in ("+600", "-600", "+0"):
            step(text)
            outcome.hits += 1
            resting(3)
        judged(ground, sale, crowd, outcome, 300)
    return play


for one in DAEMONS:
    SCENARIOS.append(Scenario(f"clock of {one} steps", clock(one)))
