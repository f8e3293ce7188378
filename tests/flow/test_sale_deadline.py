# SPDX-License-Identifier: Apache-2.0
"""Confirm and expiry at the deadline: exactly one wins, by the ledger's clock, and everybody hears the same."""
import datetime
import glob
import time
import uuid

import pytest

from shop import at_once, eventually


def expires_at(shop, reservation):
    """Deadline and deadline + grace by the ledger's clock, seconds from now."""
    return tuple(float(value) for value in shop.ledger(
        "SELECT extract(epoch FROM r.expires_at - clock_timestamp()),"
        " extract(epoch FROM r.expires_at - clock_timestamp()) + s.grace_ms / 1000.0"
        " FROM tidegate.reservations r JOIN tidegate.sales s ON s.sale = r.sale WHERE r.id = %s", reservation)[0])


def wait(seconds):
    until = time.monotonic() + seconds
    eventually(lambda: time.monotonic() >= until, seconds + 2, "the time has come")


def test_paid_within_the_grace_is_sold(shop):
    sale = shop.sale(units=1, hold="2s", grace="4s")
    reservation = shop.win(sale)[3].json["reservationId"]
    wait(expires_at(shop, reservation)[0] + 0.3)
    assert shop.confirm(reservation).status == 200
    wait(expires_at(shop, reservation)[1] + 0.6)
    assert shop.ledger("SELECT state FROM tidegate.reservations WHERE id = %s", reservation) == [("confirmed",)]
    shop.referee(sale)


def test_paid_after_the_grace_is_told_and_given_back(shop):
    sale = shop.sale(units=1, hold="2s", grace="1s")
    reservation = shop.win(sale)[3].json["reservationId"]
    wait(expires_at(shop, reservation)[1] + 0.05)
    payment = f"pay-{uuid.uuid4().hex}"
    answer = shop.confirm(reservation, payment)
    assert answer.status == 409 and answer.code == "reservation_expired", answer
    assert shop.ledger("SELECT count(*) FROM tidegate.outbox WHERE kind = 'compensate' AND payment_id = %s", payment) == [(1,)]
    eventually(lambda: shop.gate(sale, "ctl")["stock:0"] == "1", 10, "the unit is back")
    shop.referee(sale)


def test_an_extension_moves_the_deadline_and_the_sweeper_waits(shop):
    sale = shop.sale(units=1, hold="2s", grace="1s")
    reservation = shop.win(sale)[3].json["reservationId"]
    assert shop.extend(reservation).status == 200
    assert expires_at(shop, reservation)[0] > 50
    wait(4)
    assert shop.ledger("SELECT state FROM tidegate.reservations WHERE id = %s", reservation) == [("pending",)]
    assert shop.confirm(reservation).status == 200
    shop.referee(sale)


def test_an_extension_reaches_the_gate_and_is_bounded(shop):
    sale = shop.sale(units=1, hold="20s", grace="1s")
    buyer, key, admission, won = shop.win(sale)
    reservation = won.json["reservationId"]
    told = [won.json["expiresAt"]]

    def refused():
        answer = shop.extend(reservation)
        told.extend([answer.json["expiresAt"]] if answer.status == 200 else [])
        return answer.code == "extension_refused"
    eventually(refused, 10, "the bound is reached")
    assert told == sorted(told)  # never earlier
    extensions, expires_ms = shop.ledger(
        "SELECT extensions, (extract(epoch FROM expires_at) * 1000)::bigint FROM tidegate.reservations WHERE id = %s", reservation)[0]
    assert extensions == 2
    eventually(lambda: int(shop.gate(sale, "held")[reservation].split(" ")[2]) == expires_ms, 5, "the gate has the ledger's deadline")
    assert buyer.reserve(sale, admission, key).json["expiresAt"] == told[-1]
    assert buyer.call("POST", f"/reservations/{reservation}/extend").code == "credential_required"
    assert shop.confirm(reservation).status == 200
    assert shop.extend(reservation).code == "extension_refused"
    shop.referee(sale)


def compensations(shop, sale):
    return shop.ledger("SELECT reservation_id, payment_id FROM tidegate.outbox WHERE kind = 'compensate' AND sale = %s", sale)


def test_case_13_paid_in_time_heard_late(shop):
    """A payment that begins asks for its time first; one that did not and is heard of too late goes back once."""
    sale = shop.sale(units=2, hold="8s", grace="1s")
    begun = shop.win(sale)[3].json["reservationId"]
    unheard = shop.win(sale)[3].json["reservationId"]
    assert shop.extend(begun).status == 200
    late = f"pay-{uuid.uuid4().hex}"
    eventually(lambda: unheard in shop.gate(sale, "released"), 25, "the deadline of both is over and the unit is back")
    assert shop.confirm(begun).status == 200
    new_owner = shop.win(sale)[3].json
    assert new_owner["units"] == shop.http("GET", f"/reservations/{unheard}", None, {"Authorization": f"Bearer {shop.service}"}).json["units"]
    for _ in range(5):
        answer = shop.confirm(unheard, late)
        assert (answer.status, answer.code) == (409, "reservation_expired")  # a definite no: nobody has to ask again
    assert compensations(shop, sale) == [(unheard, late)]
    payment = f"pay-{uuid.uuid4().hex}"
    assert shop.confirm(new_owner["reservationId"], payment).status == 200
    assert shop.confirm(new_owner["reservationId"], late).status == 409  # what goes back buys nothing
    assert shop.confirm(new_owner["reservationId"], payment).headers["idempotent-replayed"] == "true"
    assert compensations(shop, sale) == [(unheard, late)]
    shop.referee(sale)


def test_case_41_a_failed_attempt_leaves_the_hold_payable_until_its_deadline(shop):
    sale = shop.sale(units=3, hold="8s", grace="1s")
    sold, paid, unpaid = (shop.win(sale)[3].json for _ in range(3))
    used = f"pay-{uuid.uuid4().hex}"
    assert shop.confirm(sold["reservationId"], used).status == 200
    for reservation in (paid["reservationId"], unpaid["reservationId"]):
        before = shop.ledger("SELECT expires_at FROM tidegate.reservations WHERE id = %s", reservation)
        for attempt, code in (({"amount": 1}, "amount_mismatch"), ({"currency": "USD"}, "amount_mismatch"),
                              ({"payment": used}, "payment_used"), ({"credential": "x" * 32}, "forbidden")):
            assert shop.confirm(reservation, **attempt).code == code
        assert shop.ledger("SELECT expires_at FROM tidegate.reservations WHERE id = %s", reservation) == before
    assert shop.confirm(paid["reservationId"]).status == 200
    eventually(lambda: unpaid["reservationId"] in shop.gate(sale, "released"), 20, "failed attempts keep no unit from coming back")
    assert compensations(shop, sale) == []
    assert shop.win(sale)[3].json["units"] == unpaid["units"]
    shop.referee(sale)


@pytest.mark.parametrize("skew", ["-10m", "+10m"])
def test_case_08_no_daemons_clock_decides_about_a_hold(own_shop, skew):
    shop = own_shop
    sale = shop.sale(units=2, hold="8s", grace="1s")
    library = glob.glob("/usr/lib/*/faketime/libfaketime.so.1")[0]
    for daemon in ("edge", "reserve", "ledger", "sweeper"):
        shop.stack.kill(daemon)
        shop.stack.start_daemon(daemon, env={"LD_PRELOAD": library, "FAKETIME": skew, "FAKETIME_DONT_FAKE_MONOTONIC": "1"})
    eventually(lambda: shop.board(sale).get("state") == "open", 15, "open, as the new daemons see it")
    paid, lapsing = shop.win(sale)[3].json, shop.win(sale)[3].json
    assert shop.confirm(paid["reservationId"]).status == 200
    for answer in (paid, lapsing):
        assert answer["expiresAt"].endswith("Z")
        left = datetime.datetime.fromisoformat(answer["expiresAt"].replace("Z", "+00:00")).timestamp() - time.time()
        assert -30 < left <= 8
    eventually(lambda: lapsing["reservationId"] in shop.gate(sale, "released"), 30, "the other one lapsed")
    early = shop.ledger("SELECT ended_at < expires_at + interval '1 second' FROM tidegate.reservations WHERE id = %s", lapsing["reservationId"])
    assert early == [(False,)]
    shop.referee(sale)


def test_at_the_deadline_exactly_one_wins(shop):
    sale = shop.sale(units=24, hold="3s", grace="1s", pace="5000/s")
    buyers = [shop.buyer() for _ in range(24)]
    passes = [buyer.admission(sale) for buyer in buyers]
    answers = at_once([lambda b=buyer, a=admission: b.reserve(sale, a) for buyer, admission in zip(buyers, passes)])
    ids = [answer.json["reservationId"] for answer in answers]
    payments = {reservation: f"pay-{reservation}" for reservation in ids}

    def confirm_at_the_edge(reservation, offset):
        wait(max(0, expires_at(shop, reservation)[1] + offset))
        return shop.confirm(reservation, payments[reservation])
    told = at_once([lambda r=reservation, n=n: confirm_at_the_edge(r, (n - 12) * 0.01) for n, reservation in enumerate(ids)])
    final = eventually(lambda: (rows := dict(shop.ledger(
        "SELECT id, state FROM tidegate.reservations WHERE sale = %s", sale))) and "pending" not in rows.values() and rows,
        15, "every reservation has its verdict")
    for reservation, answer in zip(ids, told):
        if final[reservation] == "confirmed":
            assert answer.status == 200, (reservation, answer)
        else:
            assert final[reservation] == "expired" and answer.status == 409, (reservation, answer)
        owed = shop.ledger("SELECT count(*) FROM tidegate.outbox WHERE kind = 'compensate' AND payment_id = %s",
                           payments[reservation])[0][0]
        assert owed == (0 if answer.status == 200 else 1)
    sold = sum(state == "confirmed" for state in final.values())
    eventually(lambda: shop.gate(sale, "ctl")["stock:0"] == str(24 - sold), 10, "the others are back")
    shop.referee(sale)
