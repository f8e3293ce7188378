# SPDX-License-Identifier: Apache-2.0
"""tidegatectl audit tail: every change of stock in order, chained, while it happens and after a rebuild."""
import json
import subprocess

from shop import eventually
from test_ledger_sales import ZERO, link


def entries(text):
    return [json.loads(line) for line in text.splitlines()]


def tail(shop, *arguments):
    return entries(shop.stack.ctl("audit", "tail", *arguments, "-o", "json").stdout)


def exported(shop, sale, count):
    eventually(lambda: shop.ledger("SELECT count(*) FROM tidegate.gate_log WHERE sale = %s AND epoch = 1", sale)[0][0] >= count, 15,
               f"{count} entries are exported")


def test_the_log_is_shown_with_a_chain_that_can_be_recomputed(shop):
    sale = shop.sale(units=150, pace="5000/s")
    won = [shop.win(sale)[3].json["reservationId"] for _ in range(3)]
    assert shop.confirm(won[0]).status == 200
    exported(shop, sale, 4)
    log = tail(shop, sale, "--last", "0")
    assert [row["sequence"] for row in log] == list(range(1, len(log) + 1))
    assert {row["reservation"] for row in log if row["kind"] == "hold"} == set(won)
    assert [row["reservation"] for row in log if row["kind"] == "settle"] == [won[0]]
    before, stored = ZERO, dict(shop.ledger("SELECT sequence, gate_ms FROM tidegate.gate_log WHERE sale = %s", sale))
    for row in log:
        before = link(before, sale, 1, 0, (row["sequence"], row["kind"], row["reservation"], row["units"], row["stockAfter"],
                                           stored[row["sequence"]], row["source"]))
        assert row["hash"] == before.hex()
    assert tail(shop, sale, "--last", "1") == log[-1:]
    assert tail(shop, sale, "1", "--last", "0") == log and tail(shop, sale, "9", "--last", "0") == []


def test_a_long_log_comes_in_pages(shop):
    sale = shop.apply(units=3, opens_in=3600)
    shop.ledger("INSERT INTO tidegate.gate_log SELECT sale, 5, 0, n, 'hold', 'res_' || lpad(n::text, 26, '0'), '0:1', 1, 1, 'test',"
                " decode(repeat('00', 32), 'hex'), now() FROM tidegate.sales, generate_series(1, 250) n WHERE sale = %s", sale)
    assert [row["sequence"] for row in tail(shop, sale, "5", "--last", "0")] == list(range(1, 251))
    assert [row["sequence"] for row in tail(shop, sale, "5", "--last", "120")] == list(range(131, 251))


def test_it_is_followed_over_a_rebuild(shop):
    sale = shop.sale(units=3, pace="5000/s")
    command = [f"{shop.stack.bin}/tidegatectl", "audit", "tail", sale, "--for", "20s", "-o", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**shop.stack.env}) as follower:
        first = shop.win(sale)[3].json["reservationId"]
        exported(shop, sale, 1)
        shop.stack.ctl("sale", "rebuild", sale, "--wait", "60s")
        shop.stack.ctl("sale", "resume", sale, "--wait", "60s")
        second = shop.win(sale)[3].json["reservationId"]
        out, told = follower.communicate(timeout=60)
    rows = [(row["epoch"], row["reservation"]) for row in entries(out) if row["kind"] == "hold"]
    assert (1, first) in rows and (2, second) in rows, out + told
    assert "the gate was rebuilt: epoch 2" in told


def test_what_is_not_there_is_said(shop):
    done = shop.stack.ctl("audit", "tail", "nothing", check=False)
    assert done.returncode == 1 and "no sale" in done.stderr, done.stderr
    assert shop.stack.ctl("audit", "tail", "nothing", "--last", "many", check=False).returncode == 2
