# SPDX-License-Identifier: Apache-2.0
"""Units come back exactly once: lapses, cancellations, returns, tombstones, mass expiry with a poison row, two sweepers."""
import signal
import time
import uuid

import pytest

from shop import at_once, eventually


def log_of(shop, sale, reservation, kind=None):
    """Entries of the exported gate log about one reservation: (sequence, kind)."""
    rows = shop.ledger("SELECT sequence, kind FROM tidegate.gate_log WHERE sale = %s AND reservation_id = %s ORDER BY sequence",
                       sale, reservation)
    return [row for row in rows if kind in (None, row[1])]


def state_of(shop, reservation):
    rows = shop.ledger("SELECT state, restocked_at IS NOT NULL FROM tidegate.reservations WHERE id = %s", reservation)
    return rows[0] if rows else None


def lapsed(shop, reservation):
    return eventually(lambda: state_of(shop, reservation) == ("expired", True), 25, f"{reservation} lapsed and was restocked")


def test_case_09_who_let_a_hold_lapse_may_buy_again(shop):
    sale = shop.sale(units=2, hold="2s", grace="1s")
    buyer, _, admission, first = shop.win(sale)
    first_id = first.json["reservationId"]
    assert buyer.reserve(sale, admission).code == "limit_reached"
    lapsed(shop, first_id)
    assert buyer.reserve(sale, admission).code == "pass_used"  # the same place needs a pass of a later minute

    buyer.tickets.pop(sale)  # another place in the line
    _, key, admission, second = shop.win(sale, buyer)
    second_id = second.json["reservationId"]
    assert second_id != first_id
    assert shop.confirm(second_id).status == 200
    assert buyer.reserve(sale, admission, key).headers.get("idempotent-replayed") == "true"
    assert buyer.reserve(sale, admission).code == "limit_reached"

    late = f"pay-{uuid.uuid4().hex}"
    for _ in range(2):
        assert shop.confirm(first_id, payment=late).status == 409
    told = shop.ledger("SELECT count(*) FROM tidegate.outbox WHERE kind = 'compensate' AND payment_id = %s", late)
    assert told == [(1,)]
    eventually(lambda: len(log_of(shop, sale, second_id, "settle")) == 1, what="the second one is settled")
    assert len(log_of(shop, sale, first_id, "release")) == 1
    assert state_of(shop, second_id) == ("confirmed", False)
    shop.referee(sale)


def test_a_lapsed_unit_is_sold_once_more_and_to_one(shop):
    sale = shop.sale(units=1, hold="8s", grace="1s")
    others = [shop.buyer() for _ in range(5)]
    passes = [buyer.admission(sale) for buyer in others]  # while the unit is free: nobody is let in to nothing
    _, _, _, first = shop.win(sale)
    early = [buyer.reserve(sale, admission) for buyer, admission in zip(others, passes)]
    assert {answer.code for answer in early} == {"sold_out"}
    assert all(answer.json.get("final") is False for answer in early)  # the unit is held, not sold
    lapsed(shop, first.json["reservationId"])

    def again():
        answers = at_once([lambda b=buyer, a=admission: b.reserve(sale, a) for buyer, admission in zip(others, passes)])
        return [answer for answer in answers if answer.status == 201]
    won = eventually(again, 10, "somebody gets the unit that came back")
    assert len(won) == 1
    assert won[0].json["units"] == first.json["units"]
    assert shop.ledger("SELECT count(*) FROM tidegate.holdings WHERE sale = %s AND live", sale) == [(1,)]
    assert len(shop.ledger("SELECT 1 FROM tidegate.holdings WHERE sale = %s", sale)) == 2
    shop.referee(sale)


def test_cancelled_and_returned_units_come_back(shop):
    sale = shop.sale(units=2, hold="10m")
    buyer, _, _, held = shop.win(sale)
    _, _, _, paid = shop.win(sale)
    held_id, paid_id = held.json["reservationId"], paid.json["reservationId"]
    assert shop.confirm(paid_id).status == 200
    eventually(lambda: paid_id in shop.gate(sale, "settled"), what="the gate has it as sold")
    assert buyer.cancel(held_id).status == 200
    answer = shop.http("POST", f"/reservations/{paid_id}/cancel", None, {"Authorization": f"Bearer {shop.service}"})
    assert answer.status == 200
    for reservation in (held_id, paid_id):
        eventually(lambda r=reservation: state_of(shop, r) == ("cancelled", True), what=f"{reservation} came back")
    eventually(lambda: log_of(shop, sale, held_id, "release") and log_of(shop, sale, paid_id, "return"), what="both are logged")
    assert shop.gate(sale, "ctl")["stock:0"] == "2"
    shop.referee(sale)


def test_what_is_cancelled_many_times_comes_back_once_and_stays_the_new_owners(shop):
    """Buyer and shop give a sold order back at once; then everything about it is said again, while another one has the unit."""
    sale = shop.sale(units=1)
    buyer, key, admission, won = shop.win(sale)
    order, first = won.json["reservationId"], f"pay-{uuid.uuid4().hex}"
    assert shop.confirm(order, first).status == 200
    eventually(lambda: order in shop.gate(sale, "settled"), what="the gate has it as sold")

    def by_shop():
        return shop.http("POST", f"/reservations/{order}/cancel", None, {"Authorization": f"Bearer {shop.service}"})
    assert {answer.status for answer in at_once([by_shop, lambda: buyer.cancel(order)] * 3)} == {200}
    assert shop.buyer().cancel(order).code == "reservation_unknown"  # nobody else's to give
    eventually(lambda: state_of(shop, order) == ("cancelled", True), what="it came back")
    owner = shop.win(sale)[3].json
    assert owner["units"] == won.json["units"] and shop.confirm(owner["reservationId"]).status == 200
    second = f"pay-{uuid.uuid4().hex}"
    for _ in range(2):
        assert by_shop().headers["idempotent-replayed"] == buyer.cancel(order).headers["idempotent-replayed"] == "true"
        assert shop.confirm(order, first).code == shop.confirm(order, second).code == "reservation_cancelled"
        assert shop.extend(order).code == "reservation_cancelled"
        assert buyer.reserve(sale, admission, key).code == "reservation_cancelled"
    told = shop.ledger("SELECT kind, payment_id FROM tidegate.outbox WHERE reservation_id = %s ORDER BY id", order)
    assert told == [("held", ""), ("confirmed", first), ("cancelled", first), ("compensate", second)]
    eventually(lambda: log_of(shop, sale, owner["reservationId"], "settle"), what="the new owner's is settled")
    assert [kind for _, kind in log_of(shop, sale, order)] == ["hold", "settle", "return"]
    assert state_of(shop, owner["reservationId"]) == ("confirmed", False)
    shop.referee(sale)


@pytest.mark.parametrize("between", ["a crash", "a rebuild"])
def test_case_14_a_verdict_that_is_not_carried_yet_comes_back_once(own_shop, between):
    """Between the ledger's verdict and the gate's release the sweeper dies, or the gate is made anew from the ledger."""
    shop = own_shop
    sale = shop.sale(units=2)
    buyer, _, _, held = shop.win(sale)
    paid = shop.win(sale)[3].json["reservationId"]
    held = held.json["reservationId"]
    assert shop.confirm(paid).status == 200
    eventually(lambda: paid in shop.gate(sale, "settled"), what="the gate has it as sold")
    shop.stack.kill("sweeper", signal.SIGKILL)
    for _ in range(3):
        assert buyer.cancel(held).status == 200
        assert shop.http("POST", f"/reservations/{paid}/cancel", None, {"Authorization": f"Bearer {shop.service}"}).status == 200
    assert shop.gate(sale, "ctl")["stock:0"] == "0"
    if between == "a rebuild":
        epoch = shop.epoch(sale)
        shop.stack.ctl("sale", "rebuild", sale)
        eventually(lambda: shop.epoch(sale) == epoch + 1 and shop.gate(sale, "ctl").get("armed") == "1", 15, "the new gate is armed")
        eventually(lambda: shop.stack.ctl("sale", "resume", sale, check=False).returncode == 0, 20, "it is open again")
        assert shop.gate(sale, "ctl")["stock:0"] == "2"
    shop.stack.start_daemon("sweeper")
    for reservation in (held, paid):
        eventually(lambda r=reservation: state_of(shop, r) == ("cancelled", True), 15, f"{reservation} came back")
        assert shop.confirm(reservation).code == "reservation_cancelled"
    assert shop.gate(sale, "ctl")["stock:0"] == "2"

    def given_back():
        return [kind for reservation in (held, paid) for _, kind in log_of(shop, sale, reservation) if kind in ("release", "return")]
    expected = ["release", "return"] if between == "a crash" else []  # a gate made from the ledger never had them
    eventually(lambda: given_back() == expected, what="the exported log tells of it")
    shop.referee(sale)


def test_case_07_who_waits_is_let_in_when_a_unit_comes_back(shop):
    sale = shop.sale(units=1, hold="8s", grace="1s")
    held = shop.win(sale)[3].json["reservationId"]
    eventually(lambda: shop.board(sale).get("notice") == "all_held", 5, "the board says that all units are held")
    waiter = shop.buyer()
    assert waiter.ticket(sale).status == 200
    seen = set()

    def admitted():
        answer = waiter.status(sale).json
        seen.add(answer["state"])
        return answer.get("admissionToken")
    admission = eventually(admitted, 30, "the waiter is let in")
    assert seen <= {"waiting", "admitted"}  # never sold out while a hold may still lapse
    eventually(lambda: waiter.reserve(sale, admission).status == 201, 15, "and gets the unit")
    assert state_of(shop, held)[0] == "expired"
    shop.referee(sale)


def test_two_sweepers_give_back_once(own_shop):
    shop = own_shop
    shop.stack.start_daemon("sweeper", name="sweeper-2")
    sale = shop.sale(units=40, hold="3s", grace="1s", pace="5000/s")
    buyers = [shop.buyer() for _ in range(40)]
    passes = [buyer.admission(sale) for buyer in buyers]
    answers = at_once([lambda b=buyer, a=admission: b.reserve(sale, a) for buyer, admission in zip(buyers, passes)])
    ids = [answer.json["reservationId"] for answer in answers if answer.status == 201]
    assert len(ids) == 40, answers
    for paid in ids[:10]:
        assert shop.confirm(paid).status == 200
    for reservation in ids[10:]:
        lapsed(shop, reservation)
    eventually(lambda: shop.ledger("SELECT count(*) FROM tidegate.gate_log WHERE sale = %s", sale) == [(80,)], what="log exported")
    for reservation in ids[10:]:
        assert [kind for _, kind in log_of(shop, sale, reservation)] == ["hold", "release"]
    assert shop.gate(sale, "ctl")["stock:0"] == "30"
    shop.referee(sale)
    assert not shop.ledger("SELECT 1 FROM tidegate.checks WHERE sale = %s AND outcome = 'alarm'", sale)


def test_a_hold_the_ledger_never_saw_is_buried_and_its_unit_sold(own_shop):
    shop = own_shop
    sale = shop.sale(units=1, hold="2s", grace="1s")
    buyer, key = shop.buyer(), uuid.uuid4().hex
    admission = buyer.admission(sale)
    shop.stack.kill("ledger")
    answer = buyer.reserve(sale, admission, key)
    assert answer.status == 503 and answer.headers.get("retry-after"), answer
    assert len(shop.redis.hkeys(shop_key(shop, sale, "held"))) == 1  # taken at the gate, unknown to the ledger
    deadline = time.monotonic() + 4
    eventually(lambda: time.monotonic() > deadline, 6, "its time to pay is over")
    shop.stack.start_daemon("ledger")
    rows = eventually(lambda: shop.ledger(
        "SELECT id FROM tidegate.reservations WHERE sale = %s AND state = 'expired' AND restocked_at IS NOT NULL", sale),
        20, "the forgotten hold came back")
    assert len(rows) == 1
    assert shop.gate(sale, "ctl")["stock:0"] == "1"
    eventually(lambda: shop.board(sale).get("state") == "open", 20, "open again without anybody's help")
    eventually(lambda: buyer.reserve(sale, admission, key).code == "reservation_expired", 10, "the same key finds the verdict")
    shop.win(sale)
    shop.referee(sale)
    assert not shop.ledger("SELECT 1 FROM tidegate.checks WHERE sale = %s AND outcome = 'alarm'", sale)


def shop_key(shop, sale, name):
    return f"tg:{{{sale}.0}}:1:{name}"


def test_case_07_mass_lapse_with_a_poison_row(own_shop):
    """220 holds lapse within seconds; one hold's record is garbage: all the others come back, although the checker pauses."""
    shop = own_shop
    sale = shop.sale(units=220, hold="6s", grace="1s", pace="5000/s")
    buyers = [shop.buyer() for _ in range(220)]

    def buy(part):
        return [buyer.reserve(sale, buyer.admission(sale)) for buyer in part]
    answers = sum(at_once([lambda p=buyers[i::8]: buy(p) for i in range(8)]), [])
    ids = [answer.json["reservationId"] for answer in answers if answer.status == 201]
    assert len(ids) == 220, [answer for answer in answers if answer.status != 201][:3]
    poison = ids[0]
    shop.redis.hset(shop.gate_key(sale, "held"), poison, "garbage")
    eventually(lambda: shop.ledger(
        "SELECT count(*) FROM tidegate.reservations WHERE sale = %s AND restocked_at IS NOT NULL", sale) == [(219,)],
        30, "219 units are back")
    assert state_of(shop, poison) == ("expired", False)
    metrics = shop.stack.admin("sweeper", "/metrics")[1]
    assert 'tidegate_swept_total{kind="poison"}' in metrics
    with open(f"{shop.stack.run}/log/sweeper.log", encoding="utf-8") as log:
        assert sum(poison in line and "order_refused" in line for line in log) == 1
    assert shop.state(sale) == "paused"  # the gate contradicts itself: never sold on


def test_a_sweeper_killed_at_any_time_loses_nothing(own_shop):
    shop = own_shop
    sale = shop.sale(units=30, hold="2s", grace="1s", pace="5000/s")
    ids = []
    for _ in range(30):
        ids.append(shop.win(sale)[3].json["reservationId"])
        if len(ids) % 5 == 0:
            shop.stack.kill("sweeper", signal.SIGKILL)
            shop.stack.start_daemon("sweeper")
    for reservation in ids:
        lapsed(shop, reservation)
    assert shop.gate(sale, "ctl")["stock:0"] == "30"
    eventually(lambda: shop.ledger("SELECT count(*) FROM tidegate.gate_log WHERE sale = %s AND kind = 'release'", sale) == [(30,)],
               what="thirty releases, no more")
    shop.referee(sale)
