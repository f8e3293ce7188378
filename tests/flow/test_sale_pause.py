# SPDX-License-Identifier: Apache-2.0
"""A pause stops holds at once and is acknowledged by every daemon; confirms go on; only a resume that names it lifts it."""
import json
import time

import pytest

from rush import Rush, judge
from shop import eventually

DAEMONS = {"ledger", "reserve", "sweeper", "invariant", "queue", "admission", "edge"}


def acknowledgements(output):
    """daemon -> milliseconds, from what tidegatectl says."""
    document = json.loads(output)
    return {row["daemon"]: row for row in document["acks"]}


def test_an_operators_pause_stops_holds_at_once(shop):
    sale = shop.sale(units=20)
    held = shop.win(sale)[3].json["reservationId"]
    buyer = shop.buyer()
    admission = buyer.admission(sale)
    began = time.monotonic()
    shop.stack.ctl("sale", "pause", sale, "--cause", "a drill")
    answer = buyer.reserve(sale, admission)
    assert time.monotonic() - began < 3
    assert answer.status == 503 and answer.code == "sale_paused" and answer.headers.get("retry-after"), answer
    assert shop.state(sale) == "paused"
    assert shop.gate(sale, "pauses"), "the gate itself knows"
    eventually(lambda: shop.board(sale).get("state") == "paused", 2, "the board says so")
    assert shop.confirm(held).status == 200  # who holds a unit may pay
    shop.stack.ctl("sale", "resume", sale, "--wait", "10s")
    eventually(lambda: buyer.reserve(sale, admission).status == 201, 10, "sold again after the resume")
    shop.referee(sale)


def test_every_daemon_acknowledges_a_pause(shop):
    sale = shop.sale(units=5)
    done = shop.stack.ctl("-o", "json", "sale", "pause", sale)
    heard = acknowledgements(done.stdout)
    assert DAEMONS <= set(heard), done.stdout
    assert all(row["effect"] in ("honoured", "noted") for row in heard.values()), heard
    shop.stack.ctl("sale", "resume", sale, "--wait", "10s")


def test_no_hold_slips_through_a_pause_in_a_rush(shop):
    sale = shop.sale(units=200, pace="60/s")
    with Rush(shop, sale, 200, 120) as rush:
        rush.wait_wins(15)
        shop.stack.ctl("sale", "pause", sale)
        seen = shop.taken(sale)
        until = time.monotonic() + 2
        eventually(lambda: time.monotonic() > until, 4, "two seconds of pause")
        assert shop.taken(sale) == seen
        shop.stack.ctl("sale", "resume", sale, "--wait", "10s")
        rush.wait_wins(60, 40)
    judge(shop, sale, rush, 200)


def test_the_checkers_pause_is_as_good_as_an_operators(shop):
    sale = shop.sale(units=5)
    shop.win(sale)
    buyer = shop.buyer()
    admission = buyer.admission(sale)
    shop.redis.hincrby(shop.gate_key(sale, "ctl"), "stock:0", 1)
    eventually(lambda: shop.state(sale) == "paused", 5, "paused by the checker")
    assert buyer.reserve(sale, admission).status == 503
    refused = shop.stack.ctl("sale", "resume", sale, check=False)
    assert refused.returncode == 1, refused.stdout + refused.stderr  # still wrong: nothing was proved
    shop.stack.ctl("sale", "rebuild", sale)
    shop.stack.ctl("sale", "resume", sale, "--wait", "20s")
    eventually(lambda: buyer.reserve(sale, admission).status == 201, 10, "sold again on the new gate")
    shop.referee(sale)


@pytest.mark.parametrize("daemon", ["ledger", "reserve", "invariant"])
def test_a_pause_outlives_a_restart(own_shop, daemon):
    shop = own_shop
    sale = shop.sale(units=5)
    buyer = shop.buyer()
    admission = buyer.admission(sale)
    shop.stack.ctl("sale", "pause", sale)
    shop.stack.kill(daemon)
    shop.stack.start_daemon(daemon)
    until = time.monotonic() + 4
    while time.monotonic() < until:
        assert buyer.reserve(sale, admission).status in (503, 429)  # whoever asks this often is told so as well
    assert shop.state(sale) == "paused"
    shop.stack.ctl("sale", "resume", sale, "--wait", "15s")
    eventually(lambda: buyer.reserve(sale, admission).status == 201, 10, "sold after the resume")
