# SPDX-License-Identifier: Apache-2.0
"""The proof of work before a ticket or a pass (policy.challenge), through the real stack."""
import time

from shop import answer_to, at_once, eventually, solve


def challenge_of(shop, sale, **headers):
    answer = shop.http("GET", f"/sale/{sale}/challenge", headers=headers)
    assert answer.status == 200, answer
    assert answer.headers["cache-control"] == "no-store"
    return answer.json


def ticket(shop, sale, answer, **headers):
    return shop.http("GET", f"/sale/{sale}/ticket", headers={"X-Challenge": answer, **headers})


def bearer(buyer):
    return {"Authorization": f"Bearer {buyer.token}"}


def test_a_ticket_costs_one_solution(shop):
    sale = shop.sale(challenge="ticket")
    refused = shop.http("GET", f"/sale/{sale}/ticket")
    assert (refused.status, refused.code) == (403, "challenge_required")
    answer = solve(challenge_of(shop, sale))
    given = ticket(shop, sale, answer)
    assert given.status == 200 and given.json["token"]
    again = shop.http("GET", f"/sale/{sale}/ticket", headers={"X-Ticket": given.json["token"]})
    assert again.json["index"] == given.json["index"], "a place once given needs no challenge"
    assert shop.http("GET", f"/sale/{sale}/policy").json["challenge"] == "ticket"


def test_case_27_two_parallel_redemptions_give_one_ticket(shop):
    sale = shop.sale(challenge="ticket")
    for _ in range(3):
        answer = solve(challenge_of(shop, sale))
        answers = at_once([lambda: ticket(shop, sale, answer)] * 8)  # noqa: B023  (used before the next turn)
        assert sorted(a.code or "given" for a in answers) == ["challenge_spent"] * 7 + ["given"]


def test_case_27_not_from_another_account_nor_for_another_sale(shop):
    sale, other = shop.sale(challenge="ticket"), shop.sale(challenge="ticket")
    one, two = shop.buyer(), shop.buyer()
    answer = solve(challenge_of(shop, sale, **bearer(one)))
    for refused in (ticket(shop, sale, answer, **bearer(two)), ticket(shop, sale, answer), ticket(shop, other, answer, **bearer(one))):
        assert (refused.status, refused.code) == (403, "challenge_invalid")
    assert ticket(shop, sale, answer, **bearer(one)).status == 200


def test_case_27_changed_fields_and_guesses(shop):
    sale = shop.sale(challenge="ticket")
    challenge = challenge_of(shop, sale)
    easier = {**challenge, "parameters": {**challenge["parameters"], "keyPrefix": "0"}}
    later = {**challenge, "parameters": {**challenge["parameters"], "expiresAt": challenge["parameters"]["expiresAt"] + 60}}
    for forged in (easier, later):
        assert ticket(shop, sale, solve(forged)).code == "challenge_invalid"
    guess = {"counter": 1, "derivedKey": challenge["parameters"]["keyPrefix"].ljust(64, "0")}
    assert ticket(shop, sale, answer_to(challenge, guess)).code == "challenge_invalid"
    assert ticket(shop, sale, solve(challenge)).code == "challenge_spent", "one attempt a challenge"
    for text in ("", "e30=", "!", "A" * 4000):
        assert ticket(shop, sale, text).status == 403


def test_case_27_challenges_of_before_the_opening_are_worthless_at_it(shop):
    sale = shop.apply(challenge="ticket", opens_in=6)
    eventually(lambda: shop.board(sale).get("state") == "scheduled", 5, "the sale is known")
    store = [challenge_of(shop, sale) for _ in range(20)]
    opens = max(challenge["parameters"]["expiresAt"] for challenge in store)
    early = ticket(shop, sale, solve(store.pop()))
    assert early.status == 200 and early.json["early"], "before it they count"
    answers = [solve(challenge) for challenge in store]
    eventually(lambda: shop.board(sale).get("state") == "open" and time.time() > opens, 20, "the sale is open")
    assert {ticket(shop, sale, answer).code for answer in answers} == {"challenge_expired"}
    assert ticket(shop, sale, solve(challenge_of(shop, sale))).status == 200


def test_patience_instead_of_work(shop):
    sale = shop.sale(challenge="ticket")
    challenge = challenge_of(shop, sale)
    assert challenge["parameters"]["data"]["patientAt"] <= time.time() + 91
    assert ticket(shop, sale, answer_to(challenge)).code == "challenge_required", "not yet"
    page = shop.http("GET", f"/sale/{sale}/wait?lang=en")
    assert page.status == 200 and 'data-state="challenge"' in page.text
    cookie = page.headers["set-cookie"].split(";")[0]
    assert cookie.startswith(f"tgc_{sale}=")
    second = shop.http("GET", f"/sale/{sale}/wait", headers={"Cookie": cookie})
    assert 'data-state="challenge"' in second.text and "set-cookie" not in second.headers, "the same wait goes on"
    solved = solve(challenge_of(shop, sale))
    assert ticket(shop, sale, solved, Cookie=cookie).status == 200, "who solves meanwhile need not wait"


def test_a_pass_costs_one_solution(shop):
    sale = shop.sale(challenge="pass")
    buyer = shop.buyer()
    eventually(lambda: buyer.ticket(sale).status == 200, 10, "a ticket without a challenge")
    eventually(lambda: buyer.status(sale).code == "challenge_required", 15, "the turn came")
    index = buyer.ticket(sale).json["index"]
    other = shop.buyer()
    other.ticket(sale)
    stolen = solve(challenge_of(shop, sale, **{"X-Ticket": other.tickets[sale]}))
    assert buyer.call("GET", f"/sale/{sale}/ticket", X_Ticket=buyer.tickets[sale], X_Challenge=stolen).code == "challenge_invalid"
    answer = solve(challenge_of(shop, sale, **{"X-Ticket": buyer.tickets[sale]}))
    proved = buyer.call("GET", f"/sale/{sale}/ticket", X_Ticket=buyer.tickets[sale], X_Challenge=answer)
    assert proved.status == 200 and proved.json["index"] == index
    buyer.tickets[sale] = proved.json["token"]
    assert buyer.reserve(sale, buyer.admission(sale)).status == 201


def test_no_challenge_where_none_is_asked(shop):
    sale = shop.sale()
    assert shop.http("GET", f"/sale/{sale}/challenge").status == 404
    assert shop.http("GET", f"/sale/{sale}/ticket").status == 200
