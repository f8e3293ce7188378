# SPDX-License-Identifier: Apache-2.0
"""`kill -9` of each process in mid-sale: nothing that was answered 201 is lost, nobody is told wrong, the sale goes on by
itself, and the checker accuses nobody. Servers: Redis is an incident, NATS is not."""
import os
import signal
import time

import pytest

from conftest import close_shop, open_shop
from rush import Rush, alarms, judge
from shop import eventually

UNITS = 120


@pytest.fixture(scope="module")
def hardy():
    """One stack for all kills; each test makes its own sale and leaves everything running."""
    shop, folder = open_shop()
    yield shop
    close_shop(shop, folder)


def rush_through(shop, break_it, units=UNITS, count=UNITS + 40, hold="10m"):
    sale = shop.sale(units=units, pace="40/s", hold=hold)
    with Rush(shop, sale, units, count) as rush:
        rush.wait_wins(units // 6)
        break_it()
        rush.wait_wins(units // 2, 60)
    return sale, rush


@pytest.mark.parametrize("daemon", ["ledger", "reserve", "sweeper", "invariant", "queue", "admission", "edge"])
def test_a_killed_daemon_loses_nothing(hardy, daemon):
    def kill_and_restart():
        hardy.stack.kill(daemon, signal.SIGKILL)
        hardy.stack.start_daemon(daemon)
    sale, rush = rush_through(hardy, kill_and_restart)
    rows = judge(hardy, sale, rush, UNITS)
    assert len(rush.wins) == UNITS  # nobody was left behind: every unit found its buyer
    assert sum(state in ("pending", "confirmed") for state in rows.values()) == UNITS
    assert alarms(hardy, sale) == []


@pytest.mark.parametrize("daemon", ["ledger", "reserve", "edge"])
def test_a_daemon_killed_again_and_again_loses_nothing(hardy, daemon):
    def kill_repeatedly():
        for _ in range(4):
            hardy.stack.kill(daemon, signal.SIGKILL)
            hardy.stack.start_daemon(daemon)
    sale, rush = rush_through(hardy, kill_repeatedly)
    judge(hardy, sale, rush, UNITS)
    assert len(rush.wins) == UNITS
    assert alarms(hardy, sale) == []


@pytest.mark.parametrize("daemon", ["ledger", "reserve", "sweeper", "invariant"])
def test_a_drained_daemon_finishes_what_it_began(hardy, daemon):
    def replace():
        hardy.stack.kill(daemon, signal.SIGTERM)
        hardy.stack.start_daemon(daemon)
    sale, rush = rush_through(hardy, replace)
    judge(hardy, sale, rush, UNITS)
    assert len(rush.wins) == UNITS
    assert alarms(hardy, sale) == []


def test_nats_killed_and_restarted(hardy):
    def kill_nats():
        hardy.stack.kill("nats", signal.SIGKILL)
        until = time.monotonic() + 2
        eventually(lambda: time.monotonic() > until, 4, "two seconds without a bus")
        hardy.stack.start_nats()
    sale, rush = rush_through(hardy, kill_nats)
    judge(hardy, sale, rush, UNITS)
    assert len(rush.wins) == UNITS
    assert alarms(hardy, sale) == []
    assert hardy.state(sale) in ("open", "sold_out")


def test_nats_frozen_and_thawed(hardy):
    def freeze():
        os.kill(hardy.stack.pid("nats"), signal.SIGSTOP)
        until = time.monotonic() + 5
        eventually(lambda: time.monotonic() > until, 7, "five seconds of silence")
        os.kill(hardy.stack.pid("nats"), signal.SIGCONT)
    sale, rush = rush_through(hardy, freeze)
    judge(hardy, sale, rush, UNITS)
    assert len(rush.wins) == UNITS
    assert alarms(hardy, sale) == []


def test_postgres_killed_and_restarted(hardy):
    def crash():
        hardy.stack.crash_postgres()
        hardy.stack.start_postgres()
    sale, rush = rush_through(hardy, crash)
    judge(hardy, sale, rush, UNITS)
    assert len(rush.wins) == UNITS
    assert alarms(hardy, sale) == []


def test_redis_killed_is_an_incident_until_rebuilt(own_shop):
    shop = own_shop
    sale = shop.sale(units=UNITS, pace="40/s")
    waiting = shop.buyer()
    with Rush(shop, sale, UNITS, UNITS + 30, patience_s=120) as rush:
        rush.wait_wins(20)
        admission = waiting.admission(sale)
        shop.stack.kill("redis", signal.SIGKILL)
        eventually(lambda: shop.state(sale) == "paused", 10, "the checker pauses")
        shop.stack.start_redis()
        before = len(rush.wins)
        watched = time.monotonic() + 3
        eventually(lambda: time.monotonic() > watched or len(rush.wins) > before, 5, "three seconds of watching")
        assert len(rush.wins) == before, "sold on a gate that nobody rebuilt"
        answer = waiting.reserve(sale, admission)
        assert answer.status == 503, answer
        resumed = shop.stack.ctl("sale", "resume", sale, check=False)
        assert resumed.returncode != 0, "resumed without a rebuild"
        shop.stack.ctl("sale", "rebuild", sale)
        shop.stack.ctl("sale", "resume", sale, "--wait", "30s")
        rush.wait_wins(UNITS // 2, 60)
    assert shop.epoch(sale) == 2
    judge(shop, sale, rush, UNITS)
    eventually(lambda: not any(row[0] == "alarm" for row in shop.ledger(
        "SELECT outcome FROM tidegate.checks WHERE sale = %s ORDER BY id DESC LIMIT 3", sale)), 10, "clean again")
    found = waiting.reserve(sale, admission)
    assert found.status in (201, 409, 403), found
