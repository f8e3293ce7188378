# SPDX-License-Identifier: Apache-2.0
"""Every answer of every gate script, on a real Redis."""
import concurrent.futures
import time

import pytest
import redis

from gate_scripts import FAR, PLAIN, Gate, PrivateRedis, place, reservation


@pytest.fixture(scope="module")
def server():
    private = PrivateRedis()
    yield private
    private.stop()


@pytest.fixture
def client(server):
    server.client.flushall()
    server.client.config_set("maxmemory", 0)
    yield server.client
    server.client.config_set("maxmemory", 0)


@pytest.fixture
def gate(client):
    return Gate(client, units=(4,)).make()


def unpack(packed):
    place_text, window, deadline, digest, units, slots, user = packed.split(" ", 6)
    return {"place": place_text, "window": int(window), "deadline": int(deadline), "digest": digest, "units": units,
            "slots": slots, "user": user}


# ---- hold ----

def test_a_hold_takes_one_identified_unit(gate):
    word, packed = gate.hold(1, user="an é user", window=77)
    assert word == "held"
    row = unpack(packed)
    assert row["units"] == "0:0" and row["slots"] == "0" and row["user"] == "an é user" and row["window"] == 77
    assert abs(row["deadline"] - gate.now_ms() - 600000) < 2000
    assert gate.counters() == {"initial": 4, "stock": 3, "held": 1, "settled": 0}
    assert gate.client.sismember(gate.key("unacked"), reservation(1))
    assert gate.client.hget(gate.key("buyers"), "an é user").decode() == "0:" + reservation(1)
    assert gate.client.hget(gate.key("used"), place(1)).decode() == "77 " + reservation(1)
    assert gate.conserved()
    (sequence, entry), = gate.log()
    assert sequence == 1 and entry["kind"] == "hold" and entry["reservation"] == reservation(1)
    assert entry["units"] == "0:0" and entry["stock_after"] == "3" and entry["source"] == "reserve-a"
    assert entry["at_ms"].isdigit() and len(entry["at_ms"]) == 13


def test_units_are_distinct_until_none_is_left(client):
    gate = Gate(client, units=(137,)).make()
    taken = [unpack(gate.hold(number)[1])["units"] for number in range(137)]
    assert len(set(taken)) == 137
    assert gate.hold(1000) == ["sold_out", "0", "137"]
    assert gate.conserved()


def test_case_03_one_user_in_parallel_wins_once(client):
    gate = Gate(client, units=(100,)).make()
    with concurrent.futures.ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(lambda n: gate.hold(n, user="U", at=place(n)), range(150)))
    assert sum(answer[0] == "held" for answer in answers) == 1
    winner = next(n for n, answer in enumerate(answers) if answer[0] == "held")
    assert all(answer in (["limit", reservation(winner)],) for n, answer in enumerate(answers) if n != winner)
    assert all(gate.hold(1000 + n)[0] == "held" for n in range(99))
    assert gate.hold(5000)[0] == "sold_out" and gate.counters()["stock"] == 0 and gate.conserved()


def test_a_replay_meets_its_own_unit(gate):
    _, packed = gate.hold(1)
    assert gate.hold(1) == ["replay", "held", packed]
    assert gate.counters()["stock"] == 3


def test_replay_comes_before_everything_else(gate):
    """After sell-out, pause, expired pass, closed sale and lapsed attestation a winner still finds his reservation."""
    _, packed = gate.hold(1)
    for number in range(2, 5):
        gate.hold(number)
    assert gate.hold(1, pass_expires_ms=1) == ["replay", "held", packed]
    gate.pause("0" * 26, "operator")
    gate.client.hset(gate.key("ctl"), "attested_until", 0)
    assert gate.hold(1, is_open=False, pass_expires_ms=1, window=999) == ["replay", "held", packed]
    assert gate.hold(9, is_open=True) == ["paused", "pause"]


def test_replay_tells_what_became_of_it(gate):
    gate.hold(1)
    gate.hold(2)
    assert gate.settle(1) == ["done"] and gate.release(2) == ["done"]
    assert gate.hold(1)[:2] == ["replay", "settled"]
    assert gate.hold(2)[:2] == ["replay", "released"]


def test_the_same_key_for_another_request(gate):
    gate.hold(1)
    assert gate.hold(1, digest="E" * 22) == ["mismatch"]


def test_closed_by_the_daemons_state(gate):
    before = gate.state()
    assert gate.hold(1, is_open=False) == ["paused", "not_open"]
    assert gate.state() == before


def test_closed_by_any_pause_until_all_are_lifted(gate):
    one, two = "0" * 25 + "1", "0" * 25 + "2"
    assert gate.pause(one, "a", two, "b") == ["done", "2"]
    assert gate.pause(one, "again") == ["done", "2"]
    assert gate.hold(1) == ["paused", "pause"]
    assert gate.lift(one) == ["done", "1"]
    assert gate.hold(1) == ["paused", "pause"]
    assert gate.lift(two) == ["done", "0"]
    assert gate.hold(1)[0] == "held"


def test_closed_when_nobody_has_proved_it(client):
    gate = Gate(client)
    gate.begin()
    gate.load("finish")
    gate.arm()
    assert gate.hold(1) == ["paused", "unproved"]
    assert gate.attest(lease_ms=150)[0] == "attested"
    assert gate.hold(1)[0] == "held"
    deadline = time.monotonic() + 3
    while gate.hold(2)[0] == "held":
        gate.release(2)
        gate.client.delete(gate.key("released"), gate.key("used"))
        assert time.monotonic() < deadline, "the attestation never ran out"
    assert gate.hold(3) == ["paused", "unproved"]


def test_a_clock_that_went_back_sells_nothing_until_it_is_proved_again(gate):
    """Redis's clock goes back by ten minutes and no checker lives: all that was noted by it lies ten minutes ahead."""
    assert gate.hold(1)[0] == "held"
    gate.attest()
    for name, value in gate.client.hgetall(gate.key("ctl")).items():
        if name.startswith(b"attested"):
            gate.client.hset(gate.key("ctl"), name, int(value) + 600_000)
    before = gate.state()
    assert gate.hold(2) == ["paused", "unproved"]
    assert gate.state() == before
    assert gate.attest()[0] == "attested"
    assert gate.hold(2)[0] == "held"


def test_an_expired_pass(gate):
    assert gate.hold(1, pass_expires_ms=gate.now_ms() - 1) == ["pass_expired"]
    assert gate.hold(1, pass_expires_ms=gate.now_ms() + 60000)[0] == "held"


def test_a_place_is_used_once(client):
    gate = Gate(client, units=(5,), limit=3).make()
    gate.hold(1, user="A", at=place(7), window=10)
    assert gate.hold(2, user="A", at=place(7), window=11) == ["limit", reservation(1)]
    assert gate.hold(3, user="B", at=place(7), window=11) == ["pass_used"]
    gate.release(1)
    assert gate.hold(4, user="A", at=place(7), window=10) == ["pass_used"]
    assert gate.hold(4, user="A", at=place(7), window=9) == ["pass_used"]
    assert gate.hold(4, user="A", at=place(7), window=11)[0] == "held"
    assert gate.hold(5, user="A", at=place(7), window=12) == ["limit", reservation(4)]


def test_limits_above_one_and_slots_that_come_back(client):
    gate = Gate(client, units=(10,), limit=3).make()
    assert unpack(gate.hold(1, user="A", demands=((0, 2, ""),))[1])["slots"] == "0,1"
    assert gate.hold(2, user="A", demands=((0, 2, ""),)) == ["limit", reservation(1)]
    assert unpack(gate.hold(3, user="A")[1])["slots"] == "2"
    assert gate.hold(4, user="A") == ["limit", reservation(1)]
    gate.release(1)
    assert gate.client.hget(gate.key("buyers"), "A").decode() == "2:" + reservation(3)
    assert unpack(gate.hold(5, user="A", demands=((0, 2, ""),))[1])["slots"] == "0,1"
    assert gate.hold(6, user="B", demands=((0, 4, ""),)) == ["limit", ""]
    assert gate.conserved()


def test_a_buyer_whose_hold_lapsed_buys_again(client):
    """case-09"""
    gate = Gate(client, units=(1,)).make()
    gate.hold(1, user="U", window=10)
    gate.release(1)
    assert gate.hold(2, user="U", at=place(1), window=20)[0] == "held"
    assert gate.settle(2) == ["done"]
    assert gate.hold(3, user="U", at=place(1), window=30) == ["limit", reservation(2)]


def test_a_cart_is_all_or_nothing(client):
    gate = Gate(client, units=(3, 1, 2), limit=8).make()
    word, packed = gate.hold(1, demands=((0, 2, ""), (2, 1, "")))
    assert word == "held" and unpack(packed)["units"] == "0:0,1;2:0" and unpack(packed)["slots"] == "0,1,2"
    before = gate.state()
    assert gate.hold(2, demands=((0, 1, ""), (1, 1, ""), (2, 2, ""))) == ["sold_out", "1", "1"]
    assert gate.state() == before
    assert gate.log()[-1][1]["stock_after"] == "3"
    assert gate.hold(3, demands=((1, 1, ""), (0, 1, "")))[0] == "held"
    assert gate.log()[-1][1]["stock_after"] == "1"
    assert gate.release(1) == ["done"] and gate.log()[-1][1]["stock_after"] == "4"
    assert gate.conserved()


def test_named_units(client):
    gate = Gate(client, units=(10,), limit=5).make()
    assert unpack(gate.hold(1, demands=((0, 0, "7,3"),))[1])["units"] == "0:7,3"
    before = gate.state()
    assert gate.hold(2, demands=((0, 0, "4,3"),)) == ["sold_out", "8", "2"]
    assert gate.hold(2, demands=((0, 0, "10"),)) == ["sold_out", "8", "2"]
    assert gate.hold(2, demands=((0, 0, "4,4"),)) == ["sold_out", "8", "2"]
    assert gate.state() == before
    assert unpack(gate.hold(2, demands=((0, 2, "0,2"),))[1])["units"] == "0:0,2,1,4"
    assert gate.conserved()


def test_freed_units_behind_the_cursor_are_found(client):
    gate = Gate(client, units=(200,)).make()
    for number in range(200):
        assert gate.hold(number)[0] == "held"
    gate.release(3)
    assert unpack(gate.hold(1000)[1])["units"] == "0:3"
    gate.release(150)
    gate.release(4)
    assert {unpack(gate.hold(n)[1])["units"] for n in (1001, 1002)} == {"0:150", "0:4"}
    assert gate.hold(1003)[0] == "sold_out" and gate.conserved()


def test_freed_units_are_found_by_carts_too(client):
    gate = Gate(client, units=(70,), limit=4).make()
    for number in range(70):
        gate.hold(number)
    for number in (69, 2, 40):
        gate.release(number)
    assert sorted(unpack(gate.hold(1000, demands=((0, 3, ""),))[1])["units"][2:].split(",")) == ["2", "40", "69"]
    assert gate.conserved()


# ---- doubt ----

def test_a_foreign_increment_closes_the_gate_at_the_next_hold(gate):
    gate.client.hincrby(gate.key("ctl"), "stock:0", 1)
    before = gate.state(without=["pauses"])
    assert gate.hold(1) == ["doubt", "stock + held + settled is not initial"]
    assert gate.state(without=["pauses"]) == before
    assert gate.hold(2) == ["paused", "pause"]
    (pause, cause), = gate.client.hgetall(gate.key("pauses")).items()
    assert len(pause) == 26 and cause.startswith(b"doubt: ")


def test_a_cart_notices_a_foreign_increment_too(client):
    gate = Gate(client, units=(5, 5), limit=4).make()
    gate.client.hincrby(gate.key("ctl"), "settled:1", 1)
    assert gate.hold(1, demands=((0, 1, ""), (1, 1, ""))) == ["doubt", "stock + held + settled is not initial"]


def test_stock_without_a_free_unit_is_a_doubt(gate):
    gate.client.delete(gate.key("free:0"))
    assert gate.hold(1)[0] == "doubt"
    assert gate.counters()["stock"] == 4


def test_demands_that_do_not_add_up_are_a_doubt(client):
    gate = Gate(client, units=(5,), limit=4).make()
    assert gate.hold(1, demands=((0, 2, ""),), wanted=1) == ["doubt", "demands do not add up"]


@pytest.mark.parametrize("name", [name for name in PLAIN if name not in ("settled", "released")] + ["free:0"])
@pytest.mark.parametrize("known_buyer", [False, True])
def test_case_04a_a_key_of_another_type_changes_nothing(gate, name, known_buyer):
    if known_buyer:
        gate.hold(1, user="U")
        gate.release(1)
    gate.client.delete(gate.key(name))
    if name.startswith("free"):
        gate.client.sadd(gate.key(name), "x")
    else:
        gate.client.set(gate.key(name), "x")
    before = gate.state()
    with pytest.raises(redis.exceptions.ResponseError, match="WRONGTYPE"):
        gate.hold(2, user="U", window=200)
    assert gate.state() == before


@pytest.mark.parametrize("name", ["settled", "released"])
def test_case_04a_keys_a_hold_does_not_write(gate, name):
    """A first-time buyer's hold does not read them; looking does, and everybody who has a history."""
    gate.hold(1, user="U")
    gate.release(1)
    gate.client.delete(gate.key(name))
    gate.client.set(gate.key(name), "x")
    before = gate.state()
    with pytest.raises(redis.exceptions.ResponseError, match="WRONGTYPE"):
        gate.look()
    with pytest.raises(redis.exceptions.ResponseError, match="WRONGTYPE"):
        gate.hold(2, user="U", window=200)
    assert gate.state() == before


@pytest.mark.parametrize("name", ["held", "settled", "released"])
def test_a_row_that_cannot_be_read_is_a_doubt_and_no_mismatch(gate, name):
    """The request is told that nobody knows, not that it is another one."""
    gate.hold(1)
    gate.client.hdel(gate.key("held"), reservation(1))
    gate.client.hset(gate.key(name), reservation(1), "garbage")
    before = gate.state(without=["pauses"])
    assert gate.hold(1) == ["doubt", "row unreadable"]
    assert gate.state(without=["pauses"]) == before and gate.hold(2) == ["paused", "pause"]


def test_doubts_repeated_for_hours_do_not_fill_the_gate(gate):
    """A sweeper comes back to a row it cannot release; what a look tells has a bound, and so has what may be lifted."""
    gate.hold(1)
    gate.client.hset(gate.key("held"), reservation(1), "garbage")
    for _ in range(200):
        assert gate.release(1)[0] == gate.settle(1)[0] == gate.acknowledge(1, 1)[0] == gate.extend(1, 1)[0] == "doubt"
    assert 1 <= gate.client.hlen(gate.key("pauses")) <= 16
    assert len(gate.look()) <= 512


def test_pauses_beyond_what_is_told_are_not_kept(gate):
    for number in range(200):
        gate.pause(f"{number:026d}", "doubt")
    assert gate.pause("9" * 26, "one more") == ["done", "64"]
    assert gate.lift(f"{0:026d}") == ["done", "63"]


@pytest.mark.parametrize("script", ["settle", "release", "acknowledge", "extend"])
@pytest.mark.parametrize("name", ["ctl", "held", "unacked", "settled", "released", "buyers", "used", "log", "free:0"])
def test_case_04a_orders_on_a_key_of_another_type_change_nothing(gate, script, name):
    gate.hold(1)
    gate.client.delete(gate.key(name))
    gate.client.set(gate.key(name), "x") if name != "free:0" else gate.client.sadd(gate.key(name), "x")
    before = gate.state(without=["pauses"])
    touched = {"settle": {"ctl", "held", "unacked", "settled", "released", "log"},
               "release": {"ctl", "held", "unacked", "settled", "released", "buyers", "used", "log", "free:0"},
               "acknowledge": {"ctl", "held", "unacked"}, "extend": {"ctl", "held", "unacked"}}[script]
    run = {"settle": lambda: gate.settle(1), "release": lambda: gate.release(1),
           "acknowledge": lambda: gate.acknowledge(1, gate.now_ms() + 1000), "extend": lambda: gate.extend(1, FAR)}[script]
    if name in touched:
        with pytest.raises(redis.exceptions.ResponseError, match="WRONGTYPE"):
            run()
        assert gate.state(without=["pauses"]) == before
    else:
        assert run() == ["done"]


@pytest.mark.parametrize("field,value", [("stock:0", "x"), ("held:0", ""), ("attested_until", "soon"),
                                         ("cursor:0", "x"), ("seq", "x"), ("initial:0", "-")])
def test_garbage_in_a_counter_changes_nothing(gate, field, value):
    gate.client.hset(gate.key("ctl"), field, value)
    before = gate.state(without=["pauses"])
    try:
        assert gate.hold(1)[0] in ("doubt", "limit")
    except redis.exceptions.ResponseError:
        pass
    assert gate.state(without=["pauses"]) == before


def test_garbage_in_the_limit_is_noticed_by_whoever_it_limits(gate):
    gate.hold(1, user="U")
    gate.client.hset(gate.key("ctl"), "limit", "many")
    before = gate.state()
    with pytest.raises(redis.exceptions.ResponseError):
        gate.hold(2, user="U")
    assert gate.state() == before


def test_one_unit_spelled_out_is_the_same_hold(client):
    """The short form of the call and the list must not differ in what they do."""
    plain, listed = Gate(client, sale="plain", units=(130,)).make(), Gate(client, sale="listed", units=(130,)).make()
    for number in range(131):
        one, other = plain.hold(number), listed.hold(number, spelled_out=True)
        assert one[0] == other[0] and (one[0] != "held" or unpack(one[1])["units"] == unpack(other[1])["units"])
    for number in range(3, 130, 7):
        assert plain.release(number) == listed.release(number) == ["done"]
    one, other = ({unpack(hold(number)[1])["units"] for number in range(200, 219)}
                  for hold in (plain.hold, lambda number: listed.hold(number, spelled_out=True)))
    assert one == other and plain.hold(300)[0] == listed.hold(300, spelled_out=True)[0] == "sold_out"
    for name in ("held", "buyers", "used", "released"):
        one, other = (each.client.hgetall(each.key(name)) for each in (plain, listed))
        assert set(one) == set(other)
    assert plain.counters() == listed.counters() and plain.conserved() and listed.conserved()
    assert [entry["kind"] for _, entry in plain.log()] == [entry["kind"] for _, entry in listed.log()]


def test_a_sequence_that_does_not_grow_changes_nothing(gate):
    gate.hold(1)
    gate.client.hset(gate.key("ctl"), "seq", 0)
    before = gate.state()
    for act in (lambda: gate.hold(2), lambda: gate.settle(1), lambda: gate.release(1)):
        with pytest.raises(redis.exceptions.ResponseError, match="XADD"):
            act()
        assert gate.state() == before


@pytest.mark.parametrize("use", ["garbage", "12", "x res", ""])
def test_an_unreadable_place_is_a_doubt(gate, use):
    gate.client.hset(gate.key("used"), place(1), use)
    assert gate.hold(1) == ["doubt", "used place unreadable"]


def test_case_04b_out_of_memory_holds_nothing_and_gives_back_all(gate):
    gate.hold(1)
    gate.hold(2)
    _, packed = gate.hold(3)
    gate.client.config_set("maxmemory", 1)
    before = gate.state()
    for number in range(10, 1010):
        with pytest.raises(redis.exceptions.ResponseError, match="OOM"):
            gate.hold(number)
    assert gate.state() == before
    assert gate.hold(3) == ["replay", "held", packed]
    assert gate.settle(1) == ["done"] and gate.release(2) == ["done"] and gate.release(1) == ["done"]
    assert gate.acknowledge(3, 1) == ["done"] and gate.extend(3, FAR) == ["done"]
    assert gate.pause("0" * 26, "operator") == ["done", "1"]
    assert gate.conserved() and gate.counters()["stock"] == 3


def test_case_05a_a_flushed_script_cache_is_no_second_hold(gate):
    sha = gate.client.script_load(gate.scripts["hold"])
    gate.client.script_flush()
    with pytest.raises(redis.exceptions.NoScriptError):
        gate.client.evalsha(sha, 0)
    assert gate.hold(1)[0] == "held" and gate.counters()["held"] == 1


# ---- which gate ----

def test_an_unknown_gate_is_never_sold_out(client):
    gate = Gate(client)
    for answer in (gate.hold(1), gate.acknowledge(1, 1), gate.extend(1, 1), gate.settle(1), gate.release(1), gate.attest(),
                   gate.due(-1, 1), gate.trim(0)):
        assert answer == ["unknown_gate"]
    assert gate.look()[0] == "unknown_gate"
    assert client.keys("*") == []


def test_an_unarmed_gate_is_unknown(client):
    gate = Gate(client)
    gate.begin()
    assert gate.hold(1) == ["unknown_gate"] and gate.attest() == ["unknown_gate"]
    gate.load("finish")
    assert gate.hold(1) == ["unknown_gate"] and gate.release(1) == ["unknown_gate"]


def test_another_run_of_redis_is_unknown(gate):
    gate.hold(1)
    for seal in (f"1 {'f' * 40} {gate.replid}", f"1 {gate.run_id} {'f' * 40}", f"2 {gate.run_id} {gate.replid}", ""):
        assert gate.hold(2, seal=seal) == ["unknown_gate"] and gate.settle(1, seal=seal) == ["unknown_gate"]
    assert gate.release(1, seal=f"1 {gate.run_id} {'f' * 40}") == ["unknown_gate"]


def test_orders_of_another_epoch_are_not_obeyed(gate):
    gate.hold(1)
    before = gate.state()
    for answer in (gate.settle(1, epoch=2), gate.release(1, epoch=2), gate.extend(1, FAR, epoch=2),
                   gate.acknowledge(1, 5, epoch=2), gate.due(-1, 1, epoch=2), gate.trim(0, epoch=2), gate.attest(epoch=2)):
        assert answer == ["unknown_gate"]
    assert gate.state() == before


# ---- acknowledge, extend, settle, release ----

def test_acknowledge_puts_the_ledgers_deadline(gate):
    _, packed = gate.hold(1, user="a b c")
    assert gate.acknowledge(1, 1234567890123) == ["done"]
    row = gate.client.hget(gate.key("held"), reservation(1)).decode()
    assert unpack(row) == {**unpack(packed), "deadline": 1234567890123}
    assert not gate.client.exists(gate.key("unacked"))
    gate.extend(1, 1234567890124)
    assert gate.acknowledge(1, 1234567890123) == ["already"]
    assert unpack(gate.client.hget(gate.key("held"), reservation(1)).decode())["deadline"] == 1234567890124
    assert gate.acknowledge(2, 1) == ["unknown_reservation"]
    gate.settle(1)
    assert gate.acknowledge(1, 1) == ["already"]


def test_extend_takes_the_later_deadline(gate):
    gate.hold(1)
    gate.acknowledge(1, 2000000000000)
    assert gate.extend(1, 2000000000000) == ["already"] and gate.extend(1, 1999999999999) == ["already"]
    assert gate.extend(1, 2000000060000) == ["done"]
    assert unpack(gate.client.hget(gate.key("held"), reservation(1)).decode())["deadline"] == 2000000060000
    assert gate.extend(2, FAR) == ["unknown_reservation"]
    gate.settle(1)
    assert gate.extend(1, FAR) == ["already"]


@pytest.mark.parametrize("sooner_than_provisional", [False, True])
def test_an_acknowledgement_that_comes_after_an_extension_does_not_set_it_back(gate, sooner_than_provisional):
    """The ledger recorded and then extended; the gate hears of it the other way round."""
    gate.hold(1, provisional_ms=600000)
    recorded = gate.now_ms() + 500000
    extended = recorded + (1000 if sooner_than_provisional else 10 ** 6)
    assert gate.extend(1, extended) == ["done"] and not gate.client.exists(gate.key("unacked"))
    assert gate.acknowledge(1, recorded) == ["already"]
    assert unpack(gate.client.hget(gate.key("held"), reservation(1)).decode())["deadline"] == extended
    assert gate.extend(1, extended - 1) == ["already"] and gate.extend(1, extended + 1) == ["done"]


def test_settle(gate):
    gate.hold(1)
    assert gate.settle(1) == ["done"]
    assert gate.counters() == {"initial": 4, "stock": 3, "held": 0, "settled": 1}
    assert gate.settle(1) == ["already"]
    assert gate.settle(2) == ["unknown_reservation"]
    assert gate.log()[-1][1]["kind"] == "settle" and gate.log()[-1][1]["stock_after"] == "3"
    assert not gate.client.exists(gate.key("unacked")) and gate.conserved()


def test_a_double_release_gives_back_once(gate):
    gate.hold(1)
    assert gate.release(1) == ["done"]
    assert gate.release(1) == ["already"]
    assert gate.counters()["stock"] == 4 and gate.free_units() == 4
    assert [entry["kind"] for _, entry in gate.log()] == ["hold", "release"]
    assert gate.release(2) == ["unknown_reservation"]


def test_a_settled_reservation_is_returned_by_a_verdict_of_this_epoch(gate):
    gate.hold(1, user="U")
    gate.settle(1)
    assert gate.release(1, epoch=2) == ["unknown_gate"]
    assert gate.counters()["settled"] == 1
    assert gate.release(1) == ["done"] and gate.release(1) == ["already"]
    assert gate.log()[-1][1]["kind"] == "return" and gate.conserved()
    assert gate.client.hget(gate.key("buyers"), "U") == b""


def test_a_late_order_to_settle_what_was_returned_changes_nothing(gate):
    """Confirmed, settled, returned; then the order to settle arrives once more. Nothing is wrong: nobody is paused."""
    gate.hold(1)
    gate.settle(1)
    gate.release(1)
    before = gate.state()
    assert gate.settle(1) == ["already"]
    assert gate.state() == before


@pytest.mark.parametrize("name", ["held", "settled"])
def test_settling_what_is_live_and_given_back_is_a_doubt(gate, name):
    gate.hold(1)
    gate.release(1)
    gate.client.hset(gate.key(name), reservation(1), gate.client.hget(gate.key("released"), reservation(1)))
    before = gate.state(without=["pauses"])
    assert gate.settle(1)[0] == "doubt"
    assert gate.state(without=["pauses"]) == before and gate.hold(2) == ["paused", "pause"]


def test_a_release_never_sets_a_bit_that_is_set(gate):
    gate.hold(1)
    gate.client.setbit(gate.key("free:0"), 0, 1)
    before = gate.state(without=["pauses"])
    assert gate.release(1) == ["doubt", "a unit of this reservation is free"]
    assert gate.state(without=["pauses"]) == before


@pytest.mark.parametrize("spoil", [
    lambda gate: gate.client.hset(gate.key("held"), reservation(1), "garbage"),
    lambda gate: gate.client.hset(gate.key("held"), reservation(1), f"{place(1)} 100 1 {'D' * 22} 9:0 0 user-1"),
    lambda gate: gate.client.hset(gate.key("held"), reservation(1), f"{place(1)} 100 1 {'D' * 22} 0:99 0 user-1"),
    lambda gate: gate.client.hset(gate.key("buyers"), "user-1", ""),
    lambda gate: gate.client.hset(gate.key("used"), place(1), "100 " + reservation(2)),
    lambda gate: gate.client.hset(gate.key("ctl"), "held:0", "0"),
    lambda gate: gate.client.hset(gate.key("settled"), reservation(1), "x"),
])
def test_case_07_a_poison_row_moves_nothing_and_blocks_nobody(gate, spoil):
    gate.hold(1)
    gate.hold(2)
    spoil(gate)
    before = gate.state(without=["pauses"])
    assert gate.release(1)[0] == "doubt"
    assert gate.state(without=["pauses"]) == before
    gate.client.hset(gate.key("ctl"), "held:0", "2")
    assert gate.release(2) == ["done"]


# ---- attest, due, trim, look ----

def test_attestations_only_lengthen_and_only_the_armed_gate(gate):
    gate.client.hset(gate.key("ctl"), "attested_until", 0)
    now = gate.now_ms()
    assert gate.attest(gate_time_ms=now, lease_ms=3000) == ["attested", str(now + 3000)]
    assert gate.attest(gate_time_ms=now - 2000, lease_ms=3000) == ["attested", str(now + 3000)]
    assert gate.attest(run_id="f" * 40) == ["unknown_gate"] and gate.attest(replid="f" * 40) == ["unknown_gate"]
    word, until = gate.attest(gate_time_ms=now + 10 ** 6, lease_ms=3000)
    assert word == "attested" and int(until) <= gate.now_ms() + 3000


def test_a_clock_that_went_back_buys_no_more_than_a_lease(gate):
    gate.client.hset(gate.key("ctl"), "attested_until", gate.now_ms() + 600_000)
    word, until = gate.attest(gate_time_ms=gate.now_ms(), lease_ms=3000)
    assert word == "attested" and int(until) <= gate.now_ms() + 3000


def test_due_lists_what_nobody_acknowledged(gate):
    gate.hold(1, provisional_ms=-1)
    gate.hold(2, provisional_ms=60000)
    gate.hold(3, provisional_ms=-1)
    gate.acknowledge(3, 1)
    assert [word for word in gate.due(-FAR, 0)[2::2]] == [reservation(1)]
    assert [word for word in gate.due(0, FAR)[2::2]] == [reservation(2)]
    gate.client.sadd(gate.key("unacked"), "nonsense")
    assert sorted(gate.due(-FAR, 0)[2::2]) == ["nonsense", reservation(1)]


def test_due_pages_through_everything(client):
    gate = Gate(client, units=(1500,)).make()
    for number in range(1500):
        gate.hold(number, provisional_ms=-1)
    found, cursor, pages = set(), "0", 0
    while True:
        answer = gate.due(-FAR, 0, cursor)
        found.update(answer[2::2])
        cursor, pages = answer[1], pages + 1
        if cursor == "0":
            break
    assert found == {reservation(number) for number in range(1500)} and pages > 1


def test_trim_drops_what_is_stored_and_no_more(gate):
    for number in range(4):
        gate.hold(number)
    assert gate.trim(2) == ["done", "2"]
    assert [sequence for sequence, _ in gate.log()] == [3, 4]
    assert gate.trim(99) == ["unknown_gate"]
    assert gate.trim(4) == ["done", "2"]
    assert gate.release(0) == ["done"] and [sequence for sequence, _ in gate.log()] == [5]


def test_look(client):
    gate = Gate(client, units=(9, 3), limit=2).make()
    gate.hold(1)
    gate.pause("0" * 25 + "7", "why")
    answer = gate.look()
    assert answer[0] == "look" and abs(int(answer[1]) - gate.now_ms()) < 1000
    assert answer[2:6] == ["1", gate.run_id, gate.replid, "1"] and answer[7:13] == ["2", "1", "1", "1", "0", "0"]
    assert answer[16] == "2" and answer[17:29] == ["9", "8", "1", "0", "8", "2", "3", "3", "0", "0", "3", "1"]
    assert answer[29:] == ["0" * 25 + "7"]


# ---- load, arm ----

def row(number, state, units="0:0", slots="0", window=5, user=None):
    return [state, reservation(number), f"{place(number)} {window} 1000 {'D' * 22} {units} {slots} {user or f'user-{number}'}"]


def test_a_loaded_gate_is_as_if_it_had_been_there(client):
    gate = Gate(client, units=(6, 2), limit=3)
    gate.make([row(1, "held", "0:4", "0"), row(2, "settled", "0:1;1:0", "0,1"), row(3, "released", "-", "-"),
               row(4, "held", "0:5", "2", user="user-2")])
    assert gate.conserved() and gate.counters(0) == {"initial": 6, "stock": 3, "held": 2, "settled": 1}
    assert gate.counters(1) == {"initial": 2, "stock": 1, "held": 0, "settled": 1}
    assert gate.hold(1)[:2] == ["replay", "held"] and gate.hold(2)[:2] == ["replay", "settled"]
    assert gate.hold(3)[:2] == ["replay", "released"]
    assert gate.hold(30, user="user-3", at=place(3), window=5) == ["pass_used"]
    assert gate.hold(31, user="user-2") == ["limit", reservation(2)]
    assert gate.release(1) == ["done"] and gate.release(2) == ["done"] and gate.release(4) == ["done"]
    assert gate.conserved() and not client.exists(gate.key("unacked"))


def test_ended_rows_of_a_place_keep_the_latest_window(client):
    gate = Gate(client, units=(6,))
    one, two = row(1, "released", "-", "-", window=9), row(2, "released", "-", "-", window=4)
    two[2] = two[2].replace(place(2), place(1))
    live = row(3, "held", "0:0", "0", window=12)
    live[2] = live[2].replace(place(3), place(2))
    gate.make([one, two, live])
    assert gate.hold(10, at=place(1), window=9) == ["pass_used"] and gate.hold(10, at=place(1), window=10)[0] == "held"
    assert gate.hold(11, at=place(2), window=13) == ["pass_used"]


def test_pages_come_in_order_from_the_one_loader(client):
    gate = Gate(client, units=(50,))
    assert gate.load("page", 1) == ["not_loader"]
    assert gate.begin() == ["begun"]
    assert gate.load("page", 2, *row(1, "held")) == ["wrong_page", "1"]
    assert gate.load("page", 1, *row(1, "held"), loader="reserve-b") == ["not_loader"]
    assert gate.load("page", 1, *row(1, "held")) == ["loaded"]
    assert gate.load("page", 1, *row(1, "held")) == ["wrong_page", "2"]
    assert gate.begin(loader="reserve-b") == ["busy", "reserve-a"]
    assert gate.begin(loader="reserve-b", takeover_ms=0) == ["begun"]
    assert gate.load("page", 2, *row(2, "held", "0:1")) == ["not_loader"]
    assert gate.load("finish", loader="reserve-b") == ["verified"] and gate.counters()["stock"] == 50
    assert gate.arm() == ["not_loaded"]
    assert gate.arm(loader="reserve-b") == ["armed", gate.run_id, gate.replid]
    assert gate.arm() == ["armed", gate.run_id, gate.replid]
    assert gate.begin() == ["armed", gate.run_id, gate.replid]
    assert gate.load("page", 1, *row(1, "held"), loader="reserve-b") == ["not_loader"]


@pytest.mark.parametrize("rows,why", [
    ([row(1, "held"), row(2, "held")], "a unit has two owners"),
    ([row(1, "held", "0:99")], "a unit has two owners"),
    ([row(1, "held", "3:0")], "a unit has two owners"),
    ([row(1, "held", "0:1,2", "0")], "a unit has two owners"),
    ([row(1, "held", "-", "-")], "a unit has two owners"),
    ([["held", reservation(1), "garbage"]], "row unreadable"),
])
def test_a_page_that_contradicts_itself_changes_nothing(client, rows, why):
    gate = Gate(client, units=(5,))
    gate.begin()
    before = gate.state()
    assert gate.load("page", 1, *[word for each in rows for word in each]) == ["doubt", why]
    assert gate.state() == before


def test_a_reservation_that_comes_twice_or_shares_a_place_is_a_doubt(client):
    gate = Gate(client, units=(5,))
    gate.begin()
    assert gate.load("page", 1, *row(1, "held")) == ["loaded"]
    assert gate.load("page", 2, *row(1, "settled", "0:1")) == ["doubt", "a reservation came twice"]
    shared = row(2, "held", "0:1")
    shared[2] = shared[2].replace(place(2), place(1))
    assert gate.load("page", 2, *shared) == ["doubt", "a place has two reservations"]


def test_a_gate_that_does_not_verify_is_not_armed(client):
    gate = Gate(client, units=(5,))
    gate.begin()
    client.setbit(gate.key("free:0"), 2, 0)
    assert gate.load("finish") == ["doubt", "free units are not stock"]
    assert gate.arm() == ["not_loaded"]
    client.setbit(gate.key("free:0"), 2, 1)
    client.hincrby(gate.key("ctl"), "held:0", 1)
    assert gate.load("finish") == ["doubt", "stock + held + settled is not initial"]


def test_keys_that_would_expire_are_not_armed(client):
    gate = Gate(client)
    gate.begin()
    gate.load("finish")
    client.expire(gate.key("free:0"), 1000)
    assert gate.arm() == ["doubt", "a key of the gate would expire"]


def test_a_pause_outlives_a_reload(client):
    gate = Gate(client)
    gate.pause("0" * 26, "operator")
    gate.make()
    assert gate.hold(1) == ["paused", "pause"]


@pytest.mark.parametrize("units", [1, 7, 8, 9, 64, 1000])
def test_the_free_map_has_exactly_the_units(client, units):
    gate = Gate(client, units=(units,), limit=1).make()
    assert gate.free_units() == units and gate.conserved()
    assert [gate.hold(n)[0] for n in range(units)] == ["held"] * units
    assert gate.hold(units) == ["sold_out", "0", str(units)]


def test_numbers_stay_integers_near_the_largest(gate):
    gate.client.hset(gate.key("ctl"), "seq", 2 ** 53 - 2)
    word, packed = gate.hold(1, window=2 ** 40)
    assert word == "held" and unpack(packed)["window"] == 2 ** 40
    assert gate.client.hget(gate.key("ctl"), "seq") == b"9007199254740991"
    assert gate.log()[-1][0] == 9007199254740991
