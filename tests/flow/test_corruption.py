# SPDX-License-Identifier: Apache-2.0
"""Lasting corruptions of either store while a sale goes on: each pauses it within two rounds, and the cause of the pause names
what is wrong. And the other side: a checker that is stopped at random moments accuses nobody, where the sum of two numbers read
at two moments would have."""
import os
import random
import signal
import threading
import time

import pytest

from rounds import alarms, checks, clean_rounds
from shop import eventually


def lively(shop):
    """A sale with something in every place: (sale, held, settled, released)."""
    sale = shop.sale(units=60, pace="30/s")
    held = shop.win(sale)[3].json["reservationId"]
    settled = shop.win(sale)[3].json["reservationId"]
    assert shop.confirm(settled).status == 200
    buyer, _, _, answer = shop.win(sale)
    released = answer.json["reservationId"]
    assert buyer.cancel(released).status == 200
    eventually(lambda: settled in shop.gate(sale, "settled") and released in shop.gate(sale, "released"), what="verdicts obeyed")
    eventually(lambda: held not in shop.gate(sale, "unacked"), what="the hold is acknowledged")
    eventually(lambda: shop.ledger("SELECT count(*) FROM tidegate.reservations WHERE sale = %s AND obeyed_epoch > 0", sale)[0][0] == 2,
               what="obedience noted")
    return sale, held, settled, released


def record(shop, sale, reservation, place="held"):
    return shop.redis.hget(shop.gate_key(sale, place), reservation).decode()


def unit_of(packed):
    return int(packed.split()[4].split(":")[1])


def user_of(packed):
    return packed.split(" ", 6)[6]


def rogue_incr(shop, sale, held, settled, released):
    shop.redis.hincrby(shop.gate_key(sale, "ctl"), "stock:0", 1)


def rogue_decr(shop, sale, held, settled, released):
    shop.redis.hincrby(shop.gate_key(sale, "ctl"), "stock:0", -1)


def balanced(shop, sale, held, settled, released):
    pipe = shop.redis.pipeline(transaction=True)
    pipe.hincrby(shop.gate_key(sale, "ctl"), "stock:0", 1)
    pipe.hincrby(shop.gate_key(sale, "ctl"), "held:0", -1)
    pipe.execute()


def unreadable_counter(shop, sale, held, settled, released):
    shop.redis.hset(shop.gate_key(sale, "ctl"), "settled:0", "x")


def freed_bit(shop, sale, held, settled, released):
    shop.redis.setbit(shop.gate_key(sale, "free:0"), unit_of(record(shop, sale, held)), 1)


def deleted_hold(shop, sale, held, settled, released):
    shop.redis.hdel(shop.gate_key(sale, "held"), held)


def deleted_sale(shop, sale, held, settled, released):
    shop.redis.hdel(shop.gate_key(sale, "settled"), settled)


def moved(shop, sale, reservation, from_place, to_place):
    """All of what the script would have done but the log, which only adds."""
    packed = record(shop, sale, reservation, from_place)
    pipe = shop.redis.pipeline(transaction=True)
    pipe.hset(shop.gate_key(sale, to_place), reservation, packed)
    pipe.hdel(shop.gate_key(sale, from_place), reservation)
    pipe.hincrby(shop.gate_key(sale, "ctl"), f"{from_place}:0", -1)
    if to_place == "released":
        pipe.hincrby(shop.gate_key(sale, "ctl"), "stock:0", 1)
        pipe.setbit(shop.gate_key(sale, "free:0"), unit_of(packed), 1)
        pipe.hset(shop.gate_key(sale, "buyers"), user_of(packed), "")
    else:
        pipe.hincrby(shop.gate_key(sale, "ctl"), f"{to_place}:0", 1)
    pipe.execute()


def forged_release(shop, sale, held, settled, released):
    moved(shop, sale, held, "held", "released")


def forged_settle(shop, sale, held, settled, released):
    moved(shop, sale, held, "held", "settled")


def settled_released(shop, sale, held, settled, released):
    moved(shop, sale, settled, "settled", "released")


def older_state(shop, sale, held, settled, released):
    """The gate from before the sale was settled there: in itself as right as it was then."""
    moved(shop, sale, settled, "settled", "held")


def edited_unit(shop, sale, held, settled, released):
    place, window, deadline, digest, units, slots, user = record(shop, sale, held).split(" ", 6)
    other = f"0:{(int(units.split(':')[1]) + 5) % 60}"
    shop.redis.hset(shop.gate_key(sale, "held"), held, " ".join((place, window, deadline, digest, other, slots, user)))


def edited_user(shop, sale, held, settled, released):
    shop.redis.hset(shop.gate_key(sale, "held"), held, record(shop, sale, held) + "x")


def edited_buyers(shop, sale, held, settled, released):
    shop.redis.hset(shop.gate_key(sale, "buyers"), user_of(record(shop, sale, held)), "")


def garbled_buyers(shop, sale, held, settled, released):
    shop.redis.hset(shop.gate_key(sale, "buyers"), user_of(record(shop, sale, held)), f"x:{held}")


def edited_epoch(shop, sale, held, settled, released):
    shop.redis.hset(shop.gate_key(sale, "ctl"), "epoch", 7)


def edited_epoch_of_the_ledger(shop, sale, held, settled, released):
    shop.ledger("UPDATE tidegate.sales SET epoch = epoch + 1 WHERE sale = %s", sale)


def garbage_record(shop, sale, held, settled, released):
    shop.redis.hset(shop.gate_key(sale, "held"), held, "garbage")


def wrong_type(shop, sale, held, settled, released):
    pipe = shop.redis.pipeline(transaction=True)
    pipe.delete(shop.gate_key(sale, "used"))
    pipe.set(shop.gate_key(sale, "used"), "x")
    pipe.execute()


def older_log(shop, sale, held, settled, released):
    shop.redis.hset(shop.gate_key(sale, "ctl"), "seq", 1)


def restored_snapshot(shop, sale, held, settled, released):
    """The gate of a while ago, under the same process: nothing of the server's identity tells."""
    keys = shop.redis.keys(f"tg:{{{sale}.0}}:*")
    dumps = {key: shop.redis.dump(key) for key in keys}
    then = int(shop.gate(sale, "ctl")["seq"])
    eventually(lambda: int(shop.gate(sale, "ctl")["seq"]) >= then + 3, 30, "the sale went on")
    clean_rounds(shop, sale, 1)
    pipe = shop.redis.pipeline(transaction=True)
    for key, dump in dumps.items():
        if dump is not None:
            pipe.restore(key, 0, dump, replace=True)
    pipe.execute()


def lost_rows(shop, sale, held, settled, released):
    shop.ledger("SET session_replication_role = replica; DELETE FROM tidegate.holdings WHERE reservation_id = %s;"
                "DELETE FROM tidegate.reservations WHERE id = %s", held, held)


def unexpired(shop, sale, held, settled, released):
    shop.ledger("SET session_replication_role = replica; UPDATE tidegate.reservations SET state = 'pending', ended_at = NULL,"
                " restocked_at = NULL, expires_at = clock_timestamp() + interval '1 hour' WHERE id = %s", released)


def unsold(shop, sale, held, settled, released):
    shop.ledger("SET session_replication_role = replica; UPDATE tidegate.holdings SET live = false WHERE reservation_id = %s",
                settled)


def gone_gate(shop, sale, held, settled, released):
    shop.redis.delete(*shop.redis.keys(f"tg:{{{sale}.0}}:1:*"))


# What is done, which check finds it, and the words of the cause.
CORRUPTIONS = [
    (rogue_incr, "C0", "stock + held + settled is not initial"), (rogue_decr, "C0", "stock + held + settled is not initial"),
    (balanced, "C1", "free units are not as many as the stock"), (unreadable_counter, "C1", "counters cannot be read"),
    (freed_bit, "C1", "free units are not as many as the stock"), (deleted_hold, "A", "unknown to the gate"),
    (deleted_sale, "A", "unknown to the gate"), (forged_release, "B", "without a verdict"),
    (forged_settle, "C", "sold at the gate without a confirmation"), (settled_released, "B", "without a verdict"),
    (older_state, "D", "undone at the gate"), (edited_unit, "U", "disagree on units"), (edited_user, "U", "disagree on units, slots or user"),
    (edited_buyers, "L", "in no buyer's row"), (garbled_buyers, "C1", "a buyer's row cannot be read"),
    (edited_epoch, "C1", "counters cannot be read"), (edited_epoch_of_the_ledger, "G", "the armed gate is gone"),
    (garbage_record, "C1", "record cannot be read"), (wrong_type, "C1", "of another type"),
    (older_log, "C1", "the log is torn"), (restored_snapshot, "C1", "the log is torn"),
    (lost_rows, "E", "not in the ledger"), (unexpired, "B", "without a verdict"), (unsold, "C2", "lacks its units"),
    (gone_gate, "G", "the armed gate is gone")]


class Going:
    """A sale that goes on: buyers come, hold, pay or change their minds, until it is paused."""

    def __init__(self, shop, sale):
        self.shop, self.sale, self.over = shop, sale, threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)

    def work(self):
        while not self.over.is_set():
            try:
                buyer = self.shop.buyer()
                answer = buyer.reserve(self.sale, buyer.admission(self.sale, seconds=1))
                if random.random() < 0.5:
                    self.shop.confirm(answer.json["reservationId"])
                else:
                    buyer.cancel(answer.json["reservationId"])
            except (AssertionError, KeyError, OSError):
                self.over.wait(0.1)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *fault):
        self.over.set()
        self.thread.join()


@pytest.mark.parametrize("corrupt,check,words", CORRUPTIONS, ids=[row[0].__name__ for row in CORRUPTIONS])
def test_a_lasting_corruption_pauses_within_two_rounds(shop, corrupt, check, words):
    sale, held, settled, released = lively(shop)
    with Going(shop, sale):
        clean_rounds(shop, sale, 1)
        before = int(time.time() * 1000)
        corrupt(shop, sale, held, settled, released)
        after = int(time.time() * 1000)
        eventually(lambda: any(outcome == "alarm" for outcome, _ in checks(shop, sale, before)), 8, "an alarm")
        eventually(lambda: shop.state(sale) == "paused", 5, "the ledger has the pause")
    rounds = [row for row in checks(shop, sale, after) if row[0] != "void"]
    first = next((index for index, row in enumerate(rounds) if row[0] == "alarm"), 0)
    assert first <= 1, rounds  # the round in progress may have looked already
    found = [part for detail in alarms(shop, sale) for part in detail.split("; ") if part.startswith(f"{check} (")]
    assert any(words in part for part in found), alarms(shop, sale)
    causes = shop.ledger("SELECT pause_causes FROM tidegate.sales WHERE sale = %s", sale)[0][0]
    assert any(cause.startswith("proof: ") for cause in causes), causes
    eventually(lambda: shop.board(sale).get("state") == "paused", 5, "everybody sees it")
    assert shop.buyer().call("POST", f"/sale/{sale}/reserve", None, Idempotency_Key="k").status != 201
    live = shop.ledger("SELECT count(*), count(DISTINCT unit) FROM tidegate.holdings WHERE sale = %s AND live", sale)[0]
    assert live[0] == live[1] <= 60


def moved_counters(shop, sale):
    pipe = shop.redis.pipeline(transaction=True)
    pipe.hincrby(shop.gate_key(sale, "ctl"), "held:0", -1)
    pipe.hincrby(shop.gate_key(sale, "ctl"), "settled:0", 1)
    pipe.execute()


def vanished_hold(shop, sale):
    """Taken, counted and logged, and then erased wherever its buyer was named; the ledger never heard of it."""
    ctl, free = shop.gate(sale, "ctl"), shop.gate_key(sale, "free:0")
    seq, stock, unit = int(ctl["seq"]) + 1, int(ctl["stock:0"]) - 1, shop.redis.bitpos(free, 1)
    pipe = shop.redis.pipeline(transaction=True)
    pipe.xadd(shop.gate_key(sale, "log"), {"kind": "hold", "reservation": "res_" + "0" * 26, "units": f"0:{unit}",
                                           "stock_after": stock, "source": "rogue", "at_ms": 1}, id=f"{seq}-0")
    pipe.hset(shop.gate_key(sale, "ctl"), mapping={"seq": seq, "stock:0": stock, "held:0": int(ctl["held:0"]) + 1})
    pipe.setbit(free, unit, 0)
    pipe.execute()


def exchanged_units(shop, sale):
    """A unit somebody has, and another that nobody gets: counted, they are as many as before."""
    free = shop.gate_key(sale, "free:0")
    taken, other = shop.redis.bitpos(free, 0), shop.redis.bitpos(free, 1)
    pipe = shop.redis.pipeline(transaction=True)
    pipe.setbit(free, taken, 1)
    pipe.setbit(free, other, 0)
    pipe.execute()


@pytest.mark.parametrize("corrupt, words", [(moved_counters, "held or settled is not what the holds add up to"),
                                            (vanished_hold, "held or settled is not what the holds add up to"),
                                            (exchanged_units, "a unit is free and taken, or neither")])
def test_a_gate_that_stands_still_must_add_up(shop, corrupt, words):
    sale, *_ = lively(shop)
    clean_rounds(shop, sale, 1)
    corrupt(shop, sale)
    eventually(lambda: any(f"C1 (1): {words}" in detail for detail in alarms(shop, sale)), 5, "an alarm")
    eventually(lambda: shop.state(sale) == "paused", 5, "paused")


@pytest.mark.parametrize("index", ["holdings_one_owner", "holdings_one_slot"])
def test_a_dropped_index_pauses_before_anything_is_wrong(own_shop, index):
    shop = own_shop
    sale = shop.sale(units=10)
    shop.win(sale)
    clean_rounds(shop, sale, 1)
    shop.ledger(f"DROP INDEX tidegate.{index}")
    detail = eventually(lambda: alarms(shop, sale), 5, "an alarm")[0]
    assert detail.startswith("C2 (1): the index that lets"), detail
    eventually(lambda: shop.state(sale) == "paused", 5, "paused")


def test_two_lives_of_one_unit_without_the_index(own_shop):
    """The recount finds it too: with an index of that name that is not over live units only."""
    shop = own_shop
    sale = shop.sale(units=10)
    first, second = (shop.win(sale)[3].json["reservationId"] for _ in range(2))
    clean_rounds(shop, sale, 1)
    shop.ledger("DROP INDEX tidegate.holdings_one_owner; SET session_replication_role = replica;"
                "UPDATE tidegate.holdings SET unit = (SELECT unit FROM tidegate.holdings WHERE reservation_id = %s)"
                " WHERE reservation_id = %s", first, second)
    eventually(lambda: any("C2 (2)" in detail or "C2 (3)" in detail for detail in alarms(shop, sale)), 5, "an alarm")
    eventually(lambda: shop.state(sale) == "paused", 5, "paused")
    metrics = shop.stack.admin("invariant", "/metrics")[1]
    assert f'tidegate_oversold_units{{sale="{sale}"}} 0' in metrics  # two owners, yet not more than there are units


def naive_sum(shop, sale):
    """What a textbook would add up: the counter, then, a moment later, the rows."""
    stock = int(shop.redis.hget(shop.gate_key(sale, "ctl"), "stock:0"))
    live = shop.ledger("SELECT count(*) FROM tidegate.holdings WHERE sale = %s AND live", sale)[0][0]
    return stock + live


def stop_and_go(shop, until):
    """Stops the checker at random moments for random times."""
    while time.monotonic() < until:
        pid = shop.stack.pid("invariant")
        time.sleep(random.uniform(0.01, 0.8))
        os.kill(pid, signal.SIGSTOP)
        time.sleep(random.choice((0.02, 0.2, 1, 2.5)) * random.random())
        os.kill(pid, signal.SIGCONT)


def test_a_minute_of_random_stops_accuses_nobody_where_the_naive_sum_does(own_shop):
    shop = own_shop
    units, minute = 20000, time.monotonic() + 60  # more than can be sold in it, however fast the machine
    sale = shop.sale(units=units, hold="2s", grace="1s", pace="40/s")
    stops = threading.Thread(target=stop_and_go, args=(shop, minute), daemon=True)
    sums = []
    with Going(shop, sale), Going(shop, sale), Going(shop, sale):
        stops.start()
        while time.monotonic() < minute:
            sums.append(naive_sum(shop, sale))
        stops.join()
    clean_rounds(shop, sale, 2)
    wrong = sum(total != units for total in sums)
    print(f"naive sum: {wrong} of {len(sums)} wrong; checker: {len(checks(shop, sale))} rounds, {len(alarms(shop, sale))} alarms")
    assert alarms(shop, sale) == []
    assert wrong > 0
    assert shop.state(sale) == "open"
    shop.referee(sale)
