# SPDX-License-Identifier: Apache-2.0
"""Holds through the real daemons: lost answers found again, one win per buyer, and a gate that closes whatever happens to
Redis. Keys of the gate are spelled as in catalog/keys.def."""
import base64
import hashlib
import json
import os
import re
import shutil
import signal
import struct
import time
import uuid

import nacl.signing
import pytest
import redis

from shop import at_once, base64url, eventually


def with_window(shop, admission, window):
    """The same pass as admission would have issued it in another minute."""
    head, body, _ = admission.split(".")
    text = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)).decode()
    claims = json.loads(text)
    place = base64.urlsafe_b64decode(claims["place"] + "==")

    def field(data):
        return struct.pack("<Q", len(data)) + data
    mac = hashlib.blake2b(key=bytes.fromhex(shop.key("pass-mac")))
    for part in (b"tidegate jti 1", claims["aud"].encode(), struct.pack("<Q", claims["gen"]), place, claims["sub"].encode(),
                 struct.pack("<Q", window)):
        mac.update(field(part))
    jti = base64url(struct.pack(">Q", window) + mac.digest()[:16])
    for name, value in (("iat", window * 60), ("exp", (window + 2) * 60)):
        text = re.sub(rf'"{name}":\d+', f'"{name}":{value}', text)
    signed = f"{head}.{base64url(text.replace(claims['jti'], jti).encode())}"
    seed = bytes.fromhex(shop.key("pass.current"))
    return f"{signed}.{base64url(nacl.signing.SigningKey(seed).sign(signed.encode()).signature)}"


def admitted(shop, sale, count):
    """Buyers with a pass each: [(buyer, pass, key)]."""
    buyers = [shop.buyer() for _ in range(count)]
    passes = at_once([lambda b=buyer: b.admission(sale, 30) for buyer in buyers])
    return [(buyer, admission, uuid.uuid4().hex) for buyer, admission in zip(buyers, passes)]


def reserve_all(sale, people):
    return at_once([lambda b=buyer, a=admission, k=key: b.reserve(sale, a, k) for buyer, admission, key in people])


def counters(shop, sale):
    control = shop.gate(sale, "ctl")
    return {name: int(control[f"{name}:0"]) for name in ("initial", "stock", "held", "settled")}


def lift_all(shop, sale):
    """Resumes by naming every pause the ledger and the gate know."""
    def resumed():
        return shop.stack.ctl("sale", "resume", sale, check=False).returncode == 0
    eventually(resumed, 20, f"{sale} resumes")
    eventually(lambda: shop.board(sale).get("state") == "open", 10, f"{sale} is open again")
    eventually(lambda: not shop.gate(sale, "pauses"), 5, "lifted pauses leave the gate")


def pause(shop, sale):
    shop.stack.ctl("sale", "pause", sale, "--cause", "test")
    eventually(lambda: shop.gate(sale, "pauses"), 5, "the pause is in the gate")


def bodies(answers):
    return {json.dumps(answer.json, sort_keys=True) for answer in answers}


# ---- one win, the same answer ----

def test_fifty_at_once_by_one_user_win_once(shop):
    sale = shop.sale(units=100)
    buyer = shop.buyer()
    admission = buyer.admission(sale)
    answers = at_once([lambda: buyer.reserve(sale, admission) for _ in range(50)])
    won = [answer for answer in answers if answer.status == 201]
    assert len(won) == 1
    lost = [answer for answer in answers if answer.status != 201]
    assert all(answer.code == "limit_reached" and answer.json["reservationId"] == won[0].json["reservationId"] for answer in lost)
    assert counters(shop, sale)["stock"] == 99


def test_case_34_fifty_at_once_with_one_key_are_one_hold(shop):
    sale = shop.sale(units=100, per_buyer=5)
    buyer = shop.buyer()
    admission = buyer.admission(sale)
    answers = at_once([lambda: buyer.reserve(sale, admission, "one-key") for _ in range(50)])
    assert {answer.status for answer in answers} == {201} and len(bodies(answers)) == 1
    assert counters(shop, sale)["stock"] == 99
    other = shop.buyer()
    answer = other.reserve(sale, other.admission(sale), "one-key")
    assert answer.status == 201 and answer.json["reservationId"] != answers[0].json["reservationId"]
    again = buyer.reserve(sale, admission, "one-key", {"items": [{"sku": sale, "quantity": 2}]})
    assert again.status == 422 and again.code == "idempotency_mismatch"


def test_case_10_the_buyers_own_hold_is_named(shop):
    sale = shop.sale(units=1)
    buyer, _, admission, won = shop.win(sale)
    answer = buyer.reserve(sale, admission)
    assert answer.status == 409 and answer.code == "limit_reached"
    assert answer.json["reservationId"] == won.json["reservationId"]


def test_a_place_is_worth_one_hold(shop):
    sale = shop.sale(units=10, per_buyer=3)
    buyer, _, admission, won = shop.win(sale)
    window = int(time.time()) // 60
    assert buyer.reserve(sale, with_window(shop, admission, window + 1)).code == "limit_reached"
    assert buyer.cancel(won.json["reservationId"]).status == 200
    eventually(lambda: won.json["reservationId"] in shop.gate(sale, "released"), 5, "the unit is given back")
    used = int(shop.gate(sale, "released")[won.json["reservationId"]].split(" ")[1])
    assert buyer.reserve(sale, with_window(shop, admission, used)).code == "pass_used"
    assert buyer.reserve(sale, with_window(shop, admission, used + 1)).status == 201


def test_a_lost_201_is_found_again_whatever_has_happened(shop):
    """Stock gone, sale paused, pass spent and expired: the same key still finds the reservation."""
    sale = shop.sale(units=2)
    buyer, key, admission, won = shop.win(sale)
    shop.win(sale)
    late = shop.buyer()
    late_pass = late.admission(sale)
    assert late.reserve(sale, late_pass).code == "sold_out"
    again = buyer.reserve(sale, admission, key)
    assert again.status == 201 and again.json == won.json and again.headers["idempotent-replayed"] == "true"
    expired = with_window(shop, admission, int(time.time()) // 60 - 10)
    assert buyer.reserve(sale, expired, key).json == won.json
    pause(shop, sale)
    assert late.reserve(sale, late_pass).code == "sale_paused"
    for spent in (admission, expired):
        again = buyer.reserve(sale, spent, key)
        assert again.status == 201 and again.json == won.json
    assert buyer.reserve(sale, expired).code in ("sale_paused", "pass_expired")


def test_an_expired_pass_opens_nothing_new(shop):
    """case_35: and the refusal does not stick to its key."""
    sale = shop.sale(units=2)
    buyer = shop.buyer()
    fresh = buyer.admission(sale)
    expired = with_window(shop, fresh, int(time.time()) // 60 - 10)
    assert buyer.reserve(sale, expired, "key").code == "pass_expired"
    assert counters(shop, sale)["stock"] == 2
    assert buyer.reserve(sale, fresh, "key").status == 201


# ---- what Redis may do ----

def test_case_06_paused_commands_are_unknown_then_found(own_shop):
    sale = own_shop.sale(units=50)
    people = admitted(own_shop, sale, 50)
    own_shop.redis.execute_command("CLIENT", "PAUSE", "5000", "WRITE")
    first = reserve_all(sale, people)
    assert {(answer.status, answer.code) for answer in first} == {(503, "try_again")}

    def found():
        answers = reserve_all(sale, people)
        assert not [answer for answer in answers if answer.code == "sold_out"]
        return all(answer.status == 201 for answer in answers) and answers
    if own_shop.stack.ctl("sale", "show", sale, check=False).returncode == 0 and own_shop.state(sale) == "paused":
        lift_all(own_shop, sale)

    def open_and_found():
        if own_shop.state(sale) == "paused":
            lift_all(own_shop, sale)
        return found()
    answers = eventually(open_and_found, 40, "all fifty are found")
    assert len({answer.json["units"][0]["unit"] for answer in answers}) == 50
    assert counters(own_shop, sale) == {"initial": 50, "stock": 0, "held": 50, "settled": 0}
    own_shop.referee(sale)


def test_case_05a_a_flushed_script_cache_is_not_noticed(shop):
    sale = shop.sale(units=5)
    people = admitted(shop, sale, 5)
    for buyer, admission, key in people:
        shop.redis.script_flush()
        assert buyer.reserve(sale, admission, key).status == 201
    assert counters(shop, sale)["held"] == 5


def test_case_04a_a_key_of_another_type_closes_the_gate(own_shop):
    sale = own_shop.sale(units=5)
    buyer, admission, key = admitted(own_shop, sale, 1)[0]
    before = counters(own_shop, sale)
    own_shop.redis.delete(own_shop.gate_key(sale, "buyers"))
    own_shop.redis.set(own_shop.gate_key(sale, "buyers"), "x")
    answer = buyer.reserve(sale, admission, key)
    assert answer.status == 503 and answer.code in ("try_again", "sale_paused")
    assert counters(own_shop, sale) == before
    eventually(lambda: own_shop.gate(sale, "pauses"), 5, "the gate is paused")


def test_one_doubt_found_again_and_again_is_one_pause(own_shop):
    """Every order meets the broken key, turn after turn: what closes the gate is named once, and a resume can name it."""
    shop = own_shop
    sale = shop.sale(units=8)
    won = [shop.win(sale) for _ in range(6)]
    eventually(lambda: shop.redis.scard(shop.gate_key(sale, "unacked")) == 0, what="acknowledged")
    shop.redis.rename(shop.gate_key(sale, "used"), "aside")
    shop.redis.set(shop.gate_key(sale, "used"), "x")
    assert {buyer.cancel(answer.json["reservationId"]).status for buyer, _, _, answer in won} == {200}

    def broken():
        return int(re.search(r'gate_commands_total\{\w+="broken"\} (\d+)', shop.stack.admin("reserve", "/metrics")[1])[1])
    first = eventually(lambda: broken() >= 6 and broken(), 10, "every order met it")
    eventually(lambda: broken() >= first + 12, 20, "and again")
    assert len(shop.gate(sale, "pauses")) <= 2, shop.gate(sale, "pauses")  # the daemon's and the checker's
    shop.redis.rename("aside", shop.gate_key(sale, "used"))
    lift_all(shop, sale)
    eventually(lambda: counters(shop, sale)["stock"] == 8, 20, "all given back")


def test_a_conflict_that_was_resumed_over_does_not_close_the_gate_again(own_shop):
    """The free map names a unit that is held: the ledger refuses and pauses. Once an operator has lifted that very pause, the hold
    that is still there, recorded again every half second until its time is over, is no reason to close. The checker, which would
    see the two, looks elsewhere: nothing but the conflict closes."""
    shop = own_shop
    sale = shop.sale(units=8, lease="60s")
    shop.win(sale)
    buyer, admission, key = admitted(shop, sale, 1)[0]
    eventually(lambda: shop.ledger("SELECT clean_rounds >= 2 FROM tidegate.sales WHERE sale = %s", sale) == [(True,)], 10,
               "proved enough to resume")
    os.kill(shop.stack.pid("invariant"), signal.SIGSTOP)
    free = shop.gate_key(sale, "free:0")
    shop.redis.setbit(free, 0, 1)
    shop.redis.setbit(free, 5, 0)
    assert buyer.reserve(sale, admission, key).status == 503
    eventually(lambda: shop.state(sale) == "paused", 5, "the conflict pauses")
    lift_all(shop, sale)

    def refused():
        return int(re.search(r'ledger_recorded_holds_total\{\w+="unit_conflict"\} (\d+)', shop.stack.admin("ledger", "/metrics")[1])[1])

    def closed():
        with open(f"{shop.stack.run}/log/reserve.log", encoding="utf-8") as lines:
            return sum("gate.paused" in line for line in lines)
    before, again = closed(), refused()
    eventually(lambda: refused() >= again + 4, 10, "recorded again")
    assert closed() == before and shop.gate(sale, "pauses") == {}
    assert shop.win(sale)[3].status == 201


def test_case_04b_out_of_memory_holds_nothing_and_obeys_everything(own_shop):
    sale = own_shop.sale(units=10)
    buyer, key, admission, won = own_shop.win(sale)
    gone, _, _, lost = own_shop.win(sale)
    people = admitted(own_shop, sale, 5)
    eventually(lambda: own_shop.redis.scard(own_shop.gate_key(sale, "unacked")) == 0, what="acknowledged")
    own_shop.redis.config_set("maxmemory", 1)
    answers = reserve_all(sale, people)
    assert {answer.code for answer in answers} <= {"try_again", "sale_paused"}
    assert buyer.reserve(sale, admission, key).json == won.json
    assert own_shop.confirm(won.json["reservationId"]).status == 200
    assert gone.cancel(lost.json["reservationId"]).status == 200
    eventually(lambda: counters(own_shop, sale) == {"initial": 10, "stock": 9, "held": 0, "settled": 1}, 10,
               "sold and given back without memory")
    own_shop.redis.config_set("maxmemory", 0)


def test_a_foreign_writer_closes_the_gate(own_shop):
    sale = own_shop.sale(units=5)
    buyer, admission, key = admitted(own_shop, sale, 1)[0]
    own_shop.redis.hincrby(own_shop.gate_key(sale, "ctl"), "stock:0", 1)
    answer = buyer.reserve(sale, admission, key)
    assert answer.status == 503 and own_shop.gate(sale, "held") == {}
    assert buyer.reserve(sale, admission, key).status == 503
    eventually(lambda: own_shop.state(sale) == "paused", 5, "the sale is paused")


@pytest.mark.parametrize("empty", [False, True])
def test_killed_redis_stays_closed_until_rebuilt_and_resumed(own_shop, empty):
    """It comes back with what its append-only file kept, or with nothing."""
    sale = own_shop.sale(units=6)
    buyer, key, admission, won = own_shop.win(sale)
    confirmed = own_shop.win(sale)[3].json["reservationId"]
    assert own_shop.confirm(confirmed).status == 200
    waiting = admitted(own_shop, sale, 6)
    own_shop.stack.kill("redis")
    for answer in reserve_all(sale, waiting):
        assert answer.status == 503 and answer.code in ("try_again", "sale_paused")
    assert buyer.read(won.json["reservationId"]).status == 200  # what was answered 201 lives on without Redis
    if empty:
        shutil.rmtree(f"{own_shop.stack.run}/redis")
        os.mkdir(f"{own_shop.stack.run}/redis")
    own_shop.stack.start_redis()
    own_shop.stack.wait_ready("reserve")
    until = time.monotonic() + 3
    while time.monotonic() < until:
        for answer in reserve_all(sale, waiting[:2]):
            assert answer.status == 503, answer
    assert set(own_shop.gate(sale, "held")) <= {won.json["reservationId"], confirmed}
    epoch = own_shop.epoch(sale)
    own_shop.stack.ctl("sale", "rebuild", sale)
    eventually(lambda: own_shop.epoch(sale) == epoch + 1, what="a new epoch")
    eventually(lambda: own_shop.gate(sale, "ctl").get("armed") == "1", 10, "the new gate is armed")
    assert buyer.reserve(sale, admission, key).json == won.json
    assert waiting[0][0].reserve(sale, *waiting[0][1:]).status == 503
    lift_all(own_shop, sale)
    answers = reserve_all(sale, waiting)
    assert [answer.status for answer in answers].count(201) == 4
    assert {answer.code for answer in answers if answer.status != 201} == {"sold_out"}
    own_shop.referee(sale)


def test_case_05c_a_replica_is_no_gate(own_shop):
    sale = own_shop.sale(units=5)
    buyer, admission, key = admitted(own_shop, sale, 1)[0]
    own_shop.redis.execute_command("REPLICAOF", "127.0.0.1", "1")
    for _ in range(3):
        answer = buyer.reserve(sale, admission, key)
        assert answer.status == 503 and answer.code in ("try_again", "sale_paused")
    eventually(lambda: own_shop.stack.admin("reserve", "/readyz")[0] == 503, 5, "reserve is not ready")
    own_shop.redis.execute_command("REPLICAOF", "NO", "ONE")
    own_shop.stack.wait_ready("reserve")
    # It has another replication id now, whatever it kept: not the armed gate any more.
    until = time.monotonic() + 3
    while time.monotonic() < until:
        answer = buyer.reserve(sale, admission, key)
        assert answer.status == 503, answer
    assert own_shop.gate(sale, "held") == {}


def test_an_evicting_redis_gets_no_gate(own_shop):
    own_shop.redis.config_set("maxmemory-policy", "allkeys-lru")
    own_shop.stack.kill("reserve")
    own_shop.stack.start_daemon("reserve", ready=False)
    eventually(lambda: "noeviction" in own_shop.stack.admin("reserve", "/readyz?verbose")[1], 10, "reserve says why")
    sale = own_shop.apply(units=5)
    until = time.monotonic() + 3
    while time.monotonic() < until:
        assert not own_shop.redis.exists(own_shop.gate_key(sale, "ctl"))
        time.sleep(0.1)


# ---- what may happen to the daemon ----

def test_a_silent_ledger_is_unknown_and_recorded_later(own_shop):
    """The ledger is frozen between the hold and the record: 503, then found by the same key; nobody had to ask."""
    sale = own_shop.sale(units=3)
    buyer, admission, key = admitted(own_shop, sale, 1)[0]
    os.kill(own_shop.stack.pid("ledger"), signal.SIGSTOP)
    try:
        answer = buyer.reserve(sale, admission, key)
        assert answer.status == 503 and answer.code in ("try_again", "sale_paused")
    finally:
        os.kill(own_shop.stack.pid("ledger"), signal.SIGCONT)
    eventually(lambda: own_shop.redis.scard(own_shop.gate_key(sale, "unacked")) == 0, 10, "recorded by re-sending")
    eventually(lambda: own_shop.board(sale).get("state") == "open", 10, "the sale goes on")
    found = buyer.reserve(sale, admission, key)
    if own_shop.gate(sale, "held"):
        assert found.status == 201 and found.headers["idempotent-replayed"] == "true"
    own_shop.referee(sale)


def test_a_killed_ledger_leaves_its_records_to_be_sent_again(own_shop):
    sale = own_shop.sale(units=3)
    buyer, admission, key = admitted(own_shop, sale, 1)[0]
    own_shop.stack.kill("ledger")
    answer = buyer.reserve(sale, admission, key)
    assert answer.status == 503
    held = own_shop.redis.scard(own_shop.gate_key(sale, "unacked"))
    own_shop.stack.start_daemon("ledger")
    eventually(lambda: own_shop.redis.scard(own_shop.gate_key(sale, "unacked")) == 0, 10, "recorded by re-sending")
    eventually(lambda: own_shop.board(sale).get("state") == "open", 10, "the sale goes on")
    found = buyer.reserve(sale, admission, key)
    assert found.status == 201 and held == 1
    own_shop.referee(sale)


def test_reserve_killed_in_mid_sale_loses_no_201(own_shop):
    sale = own_shop.sale(units=60)
    people = admitted(own_shop, sale, 60)
    told = {}

    def buy(person):
        buyer, admission, key = person
        answer = buyer.reserve(sale, admission, key)
        if answer.status == 201:
            told[key] = answer.json
        return answer

    def run(batch):
        return at_once([lambda p=person: buy(p) for person in batch])
    run(people[:20])
    own_shop.stack.kill("reserve")
    for answer in run(people[20:24]):
        assert answer.status == 503 and answer.code in ("try_again", "sale_paused")
    own_shop.stack.start_daemon("reserve")
    killer = at_once([lambda: run(people[24:]), lambda: own_shop.stack.kill("reserve")])
    assert {answer.status for answer in killer[0]} <= {201, 503}
    own_shop.stack.start_daemon("reserve")
    rows = dict(own_shop.ledger("SELECT id, state FROM tidegate.reservations WHERE sale = %s", sale))
    assert {answer["reservationId"] for answer in told.values()} <= set(rows)
    before = dict(told)

    def all_found():
        return all(answer.status == 201 for answer in run(people))
    eventually(all_found, 20, "everybody has a unit")
    assert all(told[key] == answer for key, answer in before.items())
    assert counters(own_shop, sale) == {"initial": 60, "stock": 0, "held": 60, "settled": 0}
    own_shop.referee(sale)


def test_two_reserve_daemons_sell_one_stock(own_shop):
    own_shop.stack.start_daemon("reserve", name="reserve-2")
    sale = own_shop.sale(units=40)
    people = admitted(own_shop, sale, 60)
    answers = reserve_all(sale, people)
    won = [answer for answer in answers if answer.status == 201]
    assert len(won) == 40 and {answer.code for answer in answers if answer.status != 201} == {"sold_out"}
    assert len({answer.json["units"][0]["unit"] for answer in won}) == 40
    own_shop.stack.kill("reserve")
    found = reserve_all(sale, people)
    assert [answer.json for answer in found if answer.status == 201] == [answer.json for answer in won]
    own_shop.referee(sale)


def test_a_pause_stops_holds_at_the_gate_at_once(shop):
    sale = shop.sale(units=5)
    buyer, admission, key = admitted(shop, sale, 1)[0]
    pause(shop, sale)
    sequence = shop.gate(sale, "ctl")["seq"]
    assert buyer.reserve(sale, admission, key).code == "sale_paused"
    assert shop.gate(sale, "ctl")["seq"] == sequence
    lift_all(shop, sale)
    assert buyer.reserve(sale, admission, key).status == 201


def test_no_key_of_the_gate_ever_expires(shop):
    sale = shop.sale(units=3)
    _, _, _, won = shop.win(sale)
    assert shop.confirm(won.json["reservationId"]).status == 200
    buyer, _, _, lost = shop.win(sale)
    assert buyer.cancel(lost.json["reservationId"]).status == 200
    shop.win(sale)
    for name in ("ctl", "held", "settled", "released", "buyers", "used", "free:0"):
        key = shop.gate_key(sale, name)
        eventually(lambda k=key: shop.redis.exists(k), 5, f"{name} is there")
        assert shop.redis.ttl(key) == -1


def test_redis_sees_nothing_but_the_gates_keys(shop):
    sale = shop.sale(units=3)
    shop.win(sale)
    names = {key.decode().split("}:", 1)[1].split(":", 1)[1] for key in shop.redis.scan_iter(f"tg:{{{sale}.0}}:*")}
    assert names <= {"ctl", "pauses", "held", "unacked", "settled", "released", "buyers", "used", "log", "free:0"}
    with pytest.raises(redis.exceptions.ResponseError):
        shop.redis.hincrby(shop.gate_key(sale, "held"), next(iter(shop.gate(sale, "held"))), 1)
