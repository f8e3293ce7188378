# SPDX-License-Identifier: Apache-2.0
"""What a shop developer meets at the edge of a whole stack: keys, retries, refusals that do not stick."""
import time

from shop import at_once, eventually


def test_case_34_keys_belong_to_buyer_and_sale(shop):
    one, other = shop.sale(units=10), shop.sale(units=10)
    alice, bob = shop.buyer(), shop.buyer()
    passes = {(b.user, s): b.admission(s) for b in (alice, bob) for s in (one, other)}
    won = {(b.user, s): b.reserve(s, passes[b.user, s], "1") for b in (alice, bob) for s in (one, other)}
    assert [answer.status for answer in won.values()] == [201] * 4
    assert len({answer.json["reservationId"] for answer in won.values()}) == 4
    assert bob.read(won[alice.user, one].json["reservationId"]).code == "reservation_unknown"
    assert bob.cancel(won[alice.user, one].json["reservationId"]).code == "reservation_unknown"
    assert alice.reserve(one, passes[alice.user, one], '"1"').text == won[alice.user, one].text


def test_case_34_same_key_for_another_wish_is_422(shop):
    sale = shop.sale(units=10, per_buyer=3)
    buyer, key, admission, first = shop.win(sale)
    changed = buyer.reserve(sale, admission, key, {"items": [{"sku": sale, "quantity": 2}]})
    assert (changed.status, changed.code) == (422, "idempotency_mismatch")
    same = buyer.reserve(sale, admission, key, {"items": [{"sku": sale, "quantity": 1}]})
    assert same.status == 201 and same.text == first.text and same.headers["idempotent-replayed"] == "true"


def test_case_34_fifty_identical_requests_have_one_effect_and_one_answer(shop):
    sale = shop.sale(units=10)
    buyer = shop.buyer()
    admission = buyer.admission(sale)
    answers = at_once([lambda: buyer.reserve(sale, admission, "same")] * 50)
    told = [answer for answer in answers if answer.status == 201]
    assert told and {answer.status for answer in answers} <= {201, 503}
    assert len({answer.text for answer in told}) == 1
    assert eventually(lambda: buyer.reserve(sale, admission, "same").status == 201, 5, "the key finds out")
    assert shop.ledger("SELECT count(*) FROM tidegate.reservations WHERE sale = %s", sale) == [(1,)]


def test_case_35_refusals_do_not_stick(shop):
    sale = shop.apply(units=10, opens_in=3600)
    eventually(lambda: shop.board(sale).get("state") == "scheduled", 10, "scheduled")
    buyer = shop.buyer()
    early = buyer.reserve(sale, None, "k")
    assert (early.status, early.code) == (409, "sale_not_open") and int(early.headers["retry-after"]) > 1000
    eventually(lambda: shop.stack.ctl("sale", "open", sale, check=False).returncode == 0, 20, "opened by hand")
    eventually(lambda: shop.board(sale).get("state") == "open", 10, "open")
    assert buyer.reserve(sale, None, "k").code == "pass_required"
    admission = buyer.admission(sale)
    assert buyer.reserve(sale, admission, "k").status == 201


def test_visitor_keeps_the_place_when_signing_in(shop):
    sale = shop.sale(units=10)
    ticket = eventually(lambda: (lambda a: a if a.status == 200 else None)(shop.http("GET", f"/sale/{sale}/ticket")), 5, "a ticket")
    buyer = shop.buyer()
    buyer.tickets[sale] = ticket.json["token"]
    assert buyer.ticket(sale).json["index"] == ticket.json["index"]
    admission = buyer.admission(sale)
    assert buyer.reserve(sale, admission, "k").status == 201
    thief = shop.buyer()
    thief.tickets[sale] = ticket.json["token"]
    stolen = thief.reserve(sale, thief.admission(sale), "k")
    assert (stolen.status, stolen.code) == (403, "pass_used"), "one place carries one live reservation"


def test_sold_out_is_told_to_all_within_a_second(shop):
    sale = shop.sale(units=2)
    winners = [shop.win(sale) for _ in range(2)]
    loser = shop.buyer()
    held = eventually(lambda: (lambda a: a if a.code == "sold_out" else None)(loser.reserve(sale)), 1, "sold out is told")
    assert held.status == 409 and held.json["final"] is False and int(held.headers["retry-after"]) >= 1
    assert shop.board(sale)["notice"] == "all_held"
    for _, _, _, won in winners:
        assert shop.confirm(won.json["reservationId"]).status == 200
    eventually(lambda: loser.reserve(sale).json.get("final") is True, 5, "sold out is final once all is paid")
    assert loser.call("GET", f"/sale/{sale}/ticket").json == {"state": "sold_out"}
    buyer, key, admission, won = winners[0]
    again = buyer.reserve(sale, admission, key)
    assert again.status == 201 and again.json["reservationId"] == won.json["reservationId"]


def test_operators_pause_is_told_at_once_and_lifted(shop):
    sale = shop.sale(units=10)
    buyer = shop.buyer()
    admission = buyer.admission(sale)
    shop.stack.ctl("sale", "pause", sale)
    paused = shop.buyer().reserve(sale)
    assert (paused.status, paused.code) == (503, "sale_paused") and int(paused.headers["retry-after"]) >= 1
    refused = buyer.reserve(sale, admission, "k")
    assert (refused.status, refused.code) == (503, "sale_paused")
    assert shop.board(sale)["state"] == "paused"
    eventually(lambda: shop.stack.ctl("sale", "resume", sale, check=False).returncode == 0, 20, "resumed")
    eventually(lambda: shop.board(sale).get("state") == "open", 10, "open again")
    begun = time.monotonic()
    answer = eventually(lambda: (lambda a: a if a.status == 201 else None)(buyer.reserve(sale, admission, "k")), 10, "the same key wins now")
    assert answer.json["reservationId"] and time.monotonic() - begun < 10
