# SPDX-License-Identifier: Apache-2.0
"""Confirm and expiry at the deadline: exactly one wins, by the ledger's clock, and everybody hears the same."""
import time
import uuid

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
