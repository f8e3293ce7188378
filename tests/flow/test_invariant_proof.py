# SPDX-License-Identifier: Apache-2.0
"""The proof on real stores: clean while a sale goes on, a closed gate when nobody proves. Corruptions are test_corruption.py."""
import os
import signal
import time

from rounds import alarms, checks, clean_rounds
from shop import at_once, eventually


def test_a_busy_sale_stays_clean_and_its_log_is_exported(shop):
    sale = shop.sale(units=60, hold="2s", grace="1s", pace="5000/s", per_buyer=2)
    buyers = [shop.buyer() for _ in range(24)]

    def shopping(buyer, number):
        admission = buyer.admission(sale)
        answer = buyer.reserve(sale, admission, body={"items": [{"sku": sale, "quantity": 1 + number % 2}]})
        assert answer.status == 201, answer
        if number % 3 == 0:
            assert shop.confirm(answer.json["reservationId"], amount=4900 * (1 + number % 2)).status == 200
        elif number % 3 == 1:
            assert buyer.cancel(answer.json["reservationId"]).status == 200
        return answer.json["reservationId"]
    at_once([lambda b=buyer, n=number: shopping(b, n) for number, buyer in enumerate(buyers)])
    eventually(lambda: int(shop.gate(sale, "ctl")["held:0"]) == 0, 15, "every hold has ended")
    clean_rounds(shop, sale, 2)
    assert alarms(shop, sale) == []
    sequence = int(shop.gate(sale, "ctl")["seq"])
    assert sequence == 48  # every reservation came and went, or was sold
    stored = eventually(lambda: (rows := shop.ledger(
        "SELECT sequence FROM tidegate.gate_log WHERE sale = %s ORDER BY sequence", sale)) and len(rows) == sequence and rows,
        what="the log is exported")
    assert [row[0] for row in stored] == list(range(1, sequence + 1))
    eventually(lambda: shop.redis.xlen(shop.gate_key(sale, "log")) == 0, what="what is stored is trimmed")
    clean_rounds(shop, sale, 2)  # an empty stream is no gap
    last = shop.ledger("SELECT stock, pending, confirmed, in_flight, release_pending, initial FROM tidegate.checks"
                       " WHERE sale = %s ORDER BY id DESC LIMIT 1", sale)[0]
    assert last[0] + last[1] + last[2] + last[3] - last[4] == last[5] == 60
    metrics = shop.stack.admin("invariant", "/metrics")[1]
    assert f'tidegate_proof_sum_units{{sale="{sale}"}} 60' in metrics
    assert f'tidegate_oversold_units{{sale="{sale}"}} 0' in metrics


def test_a_dead_checker_closes_the_gate_and_a_new_one_opens_it(own_shop):
    shop = own_shop
    sale = shop.sale(units=10)
    shop.win(sale)
    buyer = shop.buyer()
    admission = buyer.admission(sale)
    shop.stack.kill("invariant")
    died = time.monotonic()

    def closed():
        until = int(shop.gate(sale, "ctl")["attested_until"])
        seconds, micros = shop.redis.time()
        return seconds * 1000 + micros // 1000 >= until
    eventually(closed, 4, "the lease has ended")
    assert time.monotonic() - died < 3.5
    refused = buyer.reserve(sale, admission)
    assert refused.status == 503 and refused.code in ("sale_paused", "try_again"), refused
    assert shop.state(sale) == "open"  # nobody decided anything
    shop.stack.start_daemon("invariant")
    eventually(lambda: buyer.reserve(sale, admission).status == 201, 10, "it sells again by itself")
    assert alarms(shop, sale) == []


def test_a_stopped_checker_accuses_nobody(own_shop):
    shop = own_shop
    sale = shop.sale(units=30, hold="2s", grace="1s", pace="5000/s")
    for pause_s in (0.3, 1.5, 5):
        os.kill(shop.stack.pid("invariant"), signal.SIGSTOP)
        until = time.monotonic() + pause_s
        buyer = shop.buyer()
        admission = buyer.admission(sale)
        buyer.reserve(sale, admission)
        eventually(lambda: time.monotonic() > until, pause_s + 2, "the checker stood still")
        os.kill(shop.stack.pid("invariant"), signal.SIGCONT)
        clean_rounds(shop, sale, 2)
    assert alarms(shop, sale) == []
    assert shop.state(sale) == "open"


def test_two_checkers_export_one_log_and_do_not_quarrel(own_shop):
    shop = own_shop
    shop.stack.start_daemon("invariant", name="invariant-2")
    sale = shop.sale(units=50, hold="2s", grace="1s", pace="5000/s")
    for number in range(30):
        _, _, _, answer = shop.win(sale)
        if number % 2:
            assert shop.confirm(answer.json["reservationId"]).status == 200
    eventually(lambda: int(shop.gate(sale, "ctl")["held:0"]) == 0, 15, "every hold has ended")
    sequence = int(shop.gate(sale, "ctl")["seq"])
    eventually(lambda: shop.ledger("SELECT count(*), max(sequence) FROM tidegate.gate_log WHERE sale = %s", sale) ==
               [(sequence, sequence)], what="one gap-free log")
    clean_rounds(shop, sale, 4)
    assert alarms(shop, sale) == []
    instances = shop.ledger("SELECT count(DISTINCT instance) FROM tidegate.checks WHERE sale = %s AND outcome = 'clean'", sale)
    assert instances == [(2,)]


def test_a_flushed_redis_is_an_incident(own_shop):
    shop = own_shop
    sale = shop.sale(units=5)
    _, _, _, answer = shop.win(sale)
    shop.redis.flushall()
    eventually(lambda: shop.state(sale) == "paused", 5, "paused")
    assert "G (" in alarms(shop, sale)[0]
    shop.stack.ctl("sale", "rebuild", sale)
    shop.stack.ctl("sale", "resume", sale, "--wait", "20s")
    eventually(lambda: shop.board(sale).get("state") == "open", 10, "open after rebuild and resume")
    resumed = int(time.time() * 1000)
    assert answer.json["reservationId"] in shop.gate(sale, "held")
    buyer = shop.buyer()
    admission = buyer.admission(sale)
    eventually(lambda: buyer.reserve(sale, admission).status == 201, 5, "sold on the new gate")
    shop.referee(sale)
    assert [row for row in checks(shop, sale, resumed) if row[0] == "alarm"] == []


def test_a_redis_that_became_a_replica_is_an_incident(own_shop):
    shop = own_shop
    sale = shop.sale(units=5)
    shop.win(sale)
    shop.redis.execute_command("REPLICAOF", "127.0.0.1", "1")
    eventually(lambda: shop.state(sale) == "paused", 8, "paused")
    assert any("G (" in detail for detail in alarms(shop, sale))


def test_the_checker_needs_to_read_only(own_shop):
    """Credentials that cannot write either store are enough, for rounds, alarms and the export of the log."""
    shop = own_shop
    with open(shop.stack.env["TIDEGATE_INVARIANT_REDIS_URL_FILE"], encoding="ascii") as handle:
        assert "//audit:" in handle.read()
    with open(shop.stack.env["TIDEGATE_INVARIANT_POSTGRES_URL_FILE"], encoding="ascii") as handle:
        assert "user=tidegate_invariant" in handle.read()
    sale = shop.sale(units=5)
    reservation = shop.win(sale)[3].json["reservationId"]
    clean_rounds(shop, sale, 2)
    eventually(lambda: shop.ledger("SELECT count(*) FROM tidegate.gate_log WHERE sale = %s", sale) == [(1,)], what="log exported")
    shop.redis.hdel(shop.gate_key(sale, "held"), reservation)
    eventually(lambda: shop.state(sale) == "paused", 5, "paused")
