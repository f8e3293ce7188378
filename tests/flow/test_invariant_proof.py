# SPDX-License-Identifier: Apache-2.0
"""The proof on real stores: clean while a sale goes on, an alarm within two rounds of every lasting corruption, a closed gate
when nobody proves."""
import os
import signal
import time

import pytest

from shop import at_once, eventually


def checks(shop, sale, since_ms=0):
    """(outcome, detail) of the rounds stored since a time."""
    return shop.ledger("SELECT outcome, detail FROM tidegate.checks WHERE sale = %s AND checked_ms > %s ORDER BY checked_ms, id",
                       sale, since_ms)


def alarms(shop, sale):
    return [detail for outcome, detail in checks(shop, sale) if outcome == "alarm"]


def clean_rounds(shop, sale, count):
    since = int(time.time() * 1000)
    return eventually(lambda: [outcome for outcome, _ in checks(shop, sale, since)].count("clean") >= count, 15,
                      f"{count} clean rounds of {sale}")


@pytest.fixture
def lively(shop):
    """A sale with something in every place: (sale, held, settled, released)."""
    sale = shop.sale(units=10)
    held = shop.win(sale)[3].json["reservationId"]
    settled = shop.win(sale)[3].json["reservationId"]
    assert shop.confirm(settled).status == 200
    buyer, _, _, answer = shop.win(sale)
    released = answer.json["reservationId"]
    assert buyer.cancel(released).status == 200
    eventually(lambda: settled in shop.gate(sale, "settled") and released in shop.gate(sale, "released"), what="verdicts obeyed")
    eventually(lambda: shop.redis.scard(shop.gate_key(sale, "unacked")) == 0, what="everything acknowledged")
    eventually(lambda: shop.ledger("SELECT count(*) FROM tidegate.reservations WHERE sale = %s AND obeyed_epoch > 0", sale)[0][0] == 2,
               what="obedience noted")
    clean_rounds(shop, sale, 1)
    return sale, held, settled, released


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


def record(shop, sale, reservation):
    return shop.redis.hget(shop.gate_key(sale, "held"), reservation).decode()


def rogue_incr(shop, sale, held, settled, released):
    shop.redis.hincrby(shop.gate_key(sale, "ctl"), "stock:0", 1)


def rogue_decr(shop, sale, held, settled, released):
    shop.redis.hincrby(shop.gate_key(sale, "ctl"), "stock:0", -1)


def balanced(shop, sale, held, settled, released):
    shop.redis.hincrby(shop.gate_key(sale, "ctl"), "stock:0", 1)
    shop.redis.hincrby(shop.gate_key(sale, "ctl"), "held:0", -1)


def unreadable_counter(shop, sale, held, settled, released):
    shop.redis.hset(shop.gate_key(sale, "ctl"), "held:0", "1e0")


def freed_bit(shop, sale, held, settled, released):
    unit = int(record(shop, sale, held).split()[4].split(":")[1])
    shop.redis.setbit(shop.gate_key(sale, "free:0"), unit, 1)


def deleted_hold(shop, sale, held, settled, released):
    shop.redis.hdel(shop.gate_key(sale, "held"), held)


def deleted_sale(shop, sale, held, settled, released):
    shop.redis.hdel(shop.gate_key(sale, "settled"), settled)


def moved(shop, sale, reservation, place, counter, stock):
    pipe = shop.redis.pipeline(transaction=True)
    pipe.hset(shop.gate_key(sale, place), reservation, record(shop, sale, reservation))
    pipe.hdel(shop.gate_key(sale, "held"), reservation)
    pipe.hincrby(shop.gate_key(sale, "ctl"), "held:0", -1)
    pipe.hincrby(shop.gate_key(sale, "ctl"), counter, 1)
    if stock:
        pipe.setbit(shop.gate_key(sale, "free:0"), int(record(shop, sale, reservation).split()[4].split(":")[1]), 1)
    pipe.execute()


def forged_release(shop, sale, held, settled, released):
    moved(shop, sale, held, "released", "stock:0", True)


def forged_settle(shop, sale, held, settled, released):
    moved(shop, sale, held, "settled", "settled:0", False)


def older_state(shop, sale, held, settled, released):
    """The gate from before the sale was settled there: in itself as right as it was then."""
    pipe = shop.redis.pipeline(transaction=True)
    pipe.hset(shop.gate_key(sale, "held"), settled, shop.redis.hget(shop.gate_key(sale, "settled"), settled))
    pipe.hdel(shop.gate_key(sale, "settled"), settled)
    pipe.hincrby(shop.gate_key(sale, "ctl"), "settled:0", -1)
    pipe.hincrby(shop.gate_key(sale, "ctl"), "held:0", 1)
    pipe.execute()


def edited_unit(shop, sale, held, settled, released):
    place, window, deadline, digest, units, slots, user = record(shop, sale, held).split(" ", 6)
    other = f"0:{(int(units.split(':')[1]) + 5) % 10}"
    shop.redis.hset(shop.gate_key(sale, "held"), held, " ".join((place, window, deadline, digest, other, slots, user)))


def edited_user(shop, sale, held, settled, released):
    shop.redis.hset(shop.gate_key(sale, "held"), held, record(shop, sale, held) + "x")


def garbage_record(shop, sale, held, settled, released):
    shop.redis.hset(shop.gate_key(sale, "held"), held, "garbage")


def wrong_type(shop, sale, held, settled, released):
    shop.redis.delete(shop.gate_key(sale, "used"))
    shop.redis.set(shop.gate_key(sale, "used"), "x")


def older_log(shop, sale, held, settled, released):
    shop.redis.hincrby(shop.gate_key(sale, "ctl"), "seq", -1)


def lost_rows(shop, sale, held, settled, released):
    shop.ledger("SET session_replication_role = replica; DELETE FROM tidegate.holdings WHERE reservation_id = %s;"
                "DELETE FROM tidegate.reservations WHERE id = %s", held, held)


def unsold(shop, sale, held, settled, released):
    shop.ledger("SET session_replication_role = replica; UPDATE tidegate.holdings SET live = false WHERE reservation_id = %s",
                settled)


def gone_gate(shop, sale, held, settled, released):
    keys = shop.redis.keys(f"tg:{{{sale}.0}}:1:*")
    shop.redis.delete(*keys)


CORRUPTIONS = {
    rogue_incr: "C0", rogue_decr: "C0", balanced: "C1", unreadable_counter: "C1", freed_bit: "C1", deleted_hold: "A",
    deleted_sale: "A", forged_release: "B", forged_settle: "C", older_state: "D", edited_unit: "U", edited_user: "U", garbage_record: "C1",
    wrong_type: "C1", older_log: "C1", lost_rows: "E", unsold: "C2", gone_gate: "G"}


@pytest.mark.parametrize("corrupt", CORRUPTIONS, ids=lambda function: function.__name__)
def test_a_lasting_corruption_pauses_within_two_rounds(shop, lively, corrupt):
    sale, held, settled, released = lively
    corrupt(shop, sale, held, settled, released)
    after = int(time.time() * 1000)
    eventually(lambda: any(outcome == "alarm" for outcome, _ in checks(shop, sale, after)), 5, "an alarm")
    rounds = [row for row in checks(shop, sale, after) if row[0] != "void"]
    first = next(index for index, row in enumerate(rounds) if row[0] == "alarm")
    assert first <= 1, rounds  # the round in progress may have looked already
    assert any(part.startswith(f"{CORRUPTIONS[corrupt]} (") for part in rounds[first][1].split("; ")), rounds[first]
    eventually(lambda: shop.state(sale) == "paused", 5, "the ledger has the pause")
    buyer = shop.buyer()
    eventually(lambda: shop.board(sale).get("state") == "paused", 5, "everybody sees it")
    answer = buyer.call("POST", f"/sale/{sale}/reserve", None, Idempotency_Key="k")
    assert answer.status != 201
    causes = shop.ledger("SELECT pause_causes FROM tidegate.sales WHERE sale = %s", sale)[0][0]
    assert any(cause.startswith("proof: ") for cause in causes), causes


def test_two_lives_of_one_unit_without_the_index(own_shop):
    shop = own_shop
    sale = shop.sale(units=10)
    first, second = (shop.win(sale)[3].json["reservationId"] for _ in range(2))
    clean_rounds(shop, sale, 1)
    shop.ledger("DROP INDEX tidegate.holdings_one_owner; SET session_replication_role = replica;"
                "UPDATE tidegate.holdings SET unit = (SELECT unit FROM tidegate.holdings WHERE reservation_id = %s)"
                " WHERE reservation_id = %s", first, second)
    detail = eventually(lambda: alarms(shop, sale), 5, "an alarm")[0]
    assert "C2 (" in detail and "two live owners" in detail, detail
    eventually(lambda: shop.state(sale) == "paused", 5, "paused")


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
    shop.redis.execute_command("ACL", "SETUSER", "checker", "on", ">secret", "resetkeys", "%R~tg:*", "-@all", "+@read", "+info",
                               "+time", "+eval_ro", "+ping")
    shop.stack.kill("invariant")
    port = shop.stack.env["TIDEGATE_REDIS_URL"].rsplit(":", 1)[1]
    shop.stack.start_daemon("invariant", env={
        "TIDEGATE_INVARIANT_REDIS_URL": f"redis://checker:secret@127.0.0.1:{port}",
        "TIDEGATE_INVARIANT_POSTGRES_URL": shop.stack.env["TIDEGATE_LEDGER_URL"].replace("user=tidegate", "user=tidegate_invariant")})
    sale = shop.sale(units=5)
    reservation = shop.win(sale)[3].json["reservationId"]
    clean_rounds(shop, sale, 2)
    eventually(lambda: shop.ledger("SELECT count(*) FROM tidegate.gate_log WHERE sale = %s", sale) == [(1,)], what="log exported")
    shop.redis.hdel(shop.gate_key(sale, "held"), reservation)
    eventually(lambda: shop.state(sale) == "paused", 5, "paused")
