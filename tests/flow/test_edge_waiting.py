# SPDX-License-Identifier: Apache-2.0
"""The waiting role, answer by answer, among scripted peers."""
import json
import re
import time

import pytest
from conftest import BUILD
from edge_peers import PB, Peers
from shop import at_once, eventually, sign_buyer


@pytest.fixture(scope="module")
def peers():
    made = Peers(BUILD)
    yield made
    made.close()


def no_store(answer):
    return answer.headers.get("cache-control") == "no-store"


def cookie_of(answer):
    return answer.headers["set-cookie"].split(";")[0]


def test_page_is_a_shell_without_personal_state(peers):
    peers.sale("page")
    answer = peers.get("/sale/page")
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/html")
    assert answer.headers["cache-control"] == "public, max-age=60"
    assert "set-cookie" not in answer.headers
    assert "default-src 'none'" in answer.headers["content-security-policy"]


def test_unknown_sale_is_404_on_every_route(peers):
    for path in ("", "/wait", "/policy", "/board", "/ticket", "/status"):
        answer = peers.get(f"/sale/nobody{path}")
        assert (answer.status, answer.code) == (404, "sale_unknown"), path
        assert no_store(answer) and answer.headers["content-type"] == "application/problem+json"
        assert answer.json["status"] == 404 and answer.json["type"].endswith("#sale_unknown")


def test_board_is_shared_and_has_a_tag(peers):
    peers.sale("board", watermark=7)
    answer = peers.get("/sale/board/board?x=1&token=abc")
    assert answer.headers["cache-control"] == "public, max-age=1, s-maxage=1, stale-if-error=30"
    assert "vary" not in answer.headers and "set-cookie" not in answer.headers
    for field in ("state", "policy", "opensAt", "now", "watermark", "presentAtOpen", "indexAtOpen", "seed", "pacePerSecond",
                  "waiting", "remaining", "held", "pollSeconds", "notice", "term", "version"):
        assert field in answer.json, field
    assert answer.json["state"] == "open" and answer.json["policy"] == "fifo" and answer.json["watermark"] == 7
    again = peers.get("/sale/board/board", If_None_Match=answer.headers["etag"])
    assert again.status == 304 and again.text == "" and again.headers["etag"] == answer.headers["etag"]
    peers.board("board", watermark=8)
    changed = peers.get("/sale/board/board", If_None_Match=answer.headers["etag"])
    assert changed.status == 200 and changed.headers["etag"] != answer.headers["etag"]


def test_board_buckets_what_remains(peers):
    peers.sale("bucket", units=10000, remaining_bucketed=True)
    for free, told in ((0, 0), (7, 7), (10, 10), (11, 10), (19, 10), (20, 20), (49, 20), (50, 50), (99, 50), (100, 100), (4711, 2000)):
        peers.stock("bucket", free=free, held=1)
        eventually(lambda told=told: peers.get("/sale/bucket/board").json["remaining"] == told, 5, f"{free} told as {told}")


def test_board_of_a_lower_term_is_ignored(peers):
    peers.sale("terms", watermark=50)
    peers.board("terms", watermark=60, term=3)
    peers.sales["terms"]["board"].term = 2
    peers.sales["terms"]["board"].watermark = 999
    told = len(peers.presence)
    eventually(lambda: len(peers.presence) > told + 2, 5, "time passes")
    assert peers.get("/sale/terms/board").json["watermark"] == 60
    eventually(lambda: any(p.sale == "terms" and p.board_term == 3 for p in peers.presence), 5, "presence tells the term")


def test_ticket_is_kept_by_header_and_by_cookie(peers):
    peers.sale("ticket", watermark=0)
    first = peers.get("/sale/ticket/ticket")
    assert first.status == 200 and no_store(first)
    assert set(first.json) == {"token", "entrant", "index", "early", "position", "estimatedWaitSeconds", "state", "pollSeconds"}
    assert re.fullmatch(r"[A-Za-z0-9_-]+", first.json["token"]) and first.json["entrant"] is None  # fifo draws nobody
    assert first.json["state"] == "waiting" and first.json["early"] is False
    assert first.json["position"] == first.json["index"]
    cookie = first.headers["set-cookie"]
    assert cookie.startswith("tg_ticket=") and "HttpOnly" in cookie and "SameSite=Lax" in cookie and "Path=/sale/ticket" in cookie
    by_header = peers.get("/sale/ticket/ticket", X_Ticket=first.json["token"])
    by_cookie = peers.get("/sale/ticket/ticket", Cookie=f"a=b; {cookie_of(first)}; c=d")
    other = peers.get("/sale/ticket/ticket")
    assert by_header.json["index"] == by_cookie.json["index"] == first.json["index"]
    assert by_cookie.json["token"] == first.json["token"]
    assert other.json["index"] > first.json["index"]


def test_ticket_of_another_buyer_is_not_taken_over(peers):
    peers.sale("shared", watermark=0)
    alice, bob = peers.shop.buyer("alice"), peers.shop.buyer("bob")
    hers = alice.ticket("shared").json
    his = bob.call("GET", "/sale/shared/ticket", X_Ticket=hers["token"])
    assert his.status == 200 and his.json["index"] != hers["index"]
    peers.board("shared", watermark=1000)
    stolen = bob.call("GET", "/sale/shared/status", X_Ticket=hers["token"])
    assert (stolen.status, stolen.code) == (403, "forbidden") and no_store(stolen)


def test_early_ticket_before_the_opening(peers):
    peers.sale("early", phase="SCHEDULED", opens_in_s=300, watermark=0)
    ticket = peers.get("/sale/early/ticket")
    assert ticket.json["early"] is True and ticket.json["state"] == "scheduled"
    status = peers.get("/sale/early/status", X_Ticket=ticket.json["token"])
    assert status.status == 200 and status.json["state"] == "scheduled" and status.json["position"] == ticket.json["index"]


def test_no_index_in_hand_is_try_again_while_holders_are_answered(peers):
    peers.sale("lease", watermark=0)
    kept = peers.get("/sale/lease/ticket").json["token"]
    peers.quiet.add("lease")
    try:
        dry = eventually(lambda: next((a for a in (peers.get("/sale/lease/ticket") for _ in range(50)) if a.status == 503), None),
                         20, "the leased indexes run out")
        assert dry.code == "try_again" and int(dry.headers["retry-after"]) >= 1 and no_store(dry)
        assert peers.get("/sale/lease/ticket", X_Ticket=kept).status == 200
        assert peers.get("/sale/lease/status", X_Ticket=kept).status == 200
        assert "trouble" in peers.get("/sale/lease/wait").text
    finally:
        peers.quiet.discard("lease")
    eventually(lambda: peers.get("/sale/lease/ticket").status == 200, 10, "a new lease brings tickets back")


def test_a_thousand_tickets_have_a_thousand_places(peers):
    peers.sale("many", watermark=0)
    places = [answer.json["index"] for answer in (peers.get("/sale/many/ticket") for _ in range(1000)) if answer.status == 200]
    assert len(places) == len(set(places)) == 1000
    assert places == sorted(places)


def test_a_burst_that_outruns_its_block_waits_for_the_next(peers):
    """Found by a rehearsal: thousands of 503 in the first second of a burst, while the next block was on its way."""
    peers.sale("burst", watermark=0)
    answers = at_once([lambda: peers.get("/sale/burst/ticket")] * 300)
    assert {answer.status for answer in answers} == {200}
    assert len({answer.json["index"] for answer in answers}) == 300


@pytest.mark.parametrize("path,headers,code", [
    ("/sale/odd/status", {}, "ticket_required"),
    ("/sale/odd/status?token=", {}, "ticket_invalid"),
    ("/sale/odd/status?token=garbage", {}, "ticket_invalid"),
    ("/sale/odd/status?token=a&token=a", {}, "malformed"),
    ("/sale/odd/status?token=a", {"X_Ticket": "b"}, "malformed"),
    ("/sale/odd/status", {"X_Ticket": "x" * 600}, "ticket_invalid"),
    ("/sale/odd/status", {"Cookie": "tg_odd=garbage"}, "ticket_invalid"),
    ("/sale/odd/ticket", {"X_Ticket": "garbage"}, "ticket_invalid"),
])
def test_odd_tickets_are_400(peers, path, headers, code):
    peers.sale("odd", watermark=0) if "odd" not in peers.sales else None
    answer = peers.get(path, **headers)
    assert (answer.status, answer.code) == (400, code) and no_store(answer)


def test_every_flipped_bit_of_a_ticket_is_refused(peers):
    peers.sale("flip", watermark=0)
    token = peers.get("/sale/flip/ticket").json["token"]
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for at in range(0, len(token), 3):
        flipped = token[:at] + alphabet[alphabet.index(token[at]) ^ 1] + token[at + 1:]
        assert peers.get("/sale/flip/status", X_Ticket=flipped).code == "ticket_invalid", at
    for short in (token[:-1], token + "A", token + "=", " " + token[1:]):
        assert peers.get("/sale/flip/status", X_Ticket=short).code == "ticket_invalid"


def test_broken_cookie_gets_a_new_place(peers):
    peers.sale("broken", watermark=0)
    answer = peers.get("/sale/broken/ticket", Cookie="tg_broken=garbage")
    assert answer.status == 200 and answer.json["index"] >= 0


def test_case_19_ticket_counts_for_its_own_sale_only(peers):
    peers.sale("sku_991", watermark=0)
    peers.sale("SKU_991", watermark=0)
    token = peers.get("/sale/sku_991/ticket").json["token"]
    assert peers.get("/sale/SKU_991/status", X_Ticket=token).code == "ticket_invalid"
    assert peers.get("/sale/sku%5F991/status", X_Ticket=token).json["state"] == "waiting"


def test_case_17_ticket_of_an_earlier_generation_is_told_to_restart(peers):
    peers.sale("again", watermark=0)
    old = peers.get("/sale/again/ticket")
    peers.sale("again", generation=2, watermark=1)
    told = peers.get("/sale/again/status", X_Ticket=old.json["token"])
    assert (told.status, told.json) == (200, {"state": "restart"})
    new = eventually(lambda: (lambda a: a if a.status == 200 else None)(peers.get("/sale/again/ticket", Cookie=cookie_of(old))), 5,
                     "a new place")
    assert new.json["token"] != old.json["token"]
    eventually(lambda: peers.get("/sale/again/status", X_Ticket=new.json["token"]).json["state"] == "waiting", 5, "waiting with it")


def test_a_ticket_of_a_generation_not_heard_of_yet_is_kept(peers):
    """Another edge gave it. Told to begin again, its holder would throw his place away."""
    peers.sale("lag", generation=2, watermark=0)
    newer = peers.get("/sale/lag/ticket")
    peers.stack.kill("edge")
    del peers.sales["lag"]
    peers.stack.start_daemon("edge")
    peers.sale("lag", generation=1, watermark=0)
    assert peers.get("/sale/lag/status", X_Ticket=newer.json["token"]).code == "try_again"
    answer = peers.get("/sale/lag/ticket", Cookie=cookie_of(newer))
    assert answer.code == "try_again" and "set-cookie" not in answer.headers
    peers.sale("lag", generation=2, watermark=0)
    assert peers.get("/sale/lag/ticket", Cookie=cookie_of(newer)).json["token"] == newer.json["token"]


def test_status_waits_then_is_admitted(peers):
    peers.sale("turn", watermark=0)
    buyer = peers.shop.buyer("carol")
    index = buyer.ticket("turn").json["index"]
    waiting = buyer.status("turn")
    assert waiting.json["state"] == "waiting" and waiting.json["position"] == index and no_store(waiting)
    asked = len(peers.asked)
    peers.board("turn", watermark=index + 1)
    peers.answers["pass"] = lambda request: PB["admission"].PassReply(
        **{"pass": "h.e.y", "expires_at_ms": int(time.time() * 1000) + 90000, "watermark": index + 1})
    admitted = buyer.status("turn")
    assert admitted.json["state"] == "admitted" and admitted.json["admissionToken"] == "h.e.y"
    assert 80 <= admitted.json["expiresIn"] <= 90 and no_store(admitted)
    assert len(peers.asked) == asked + 1
    request = peers.last("pass")
    assert request.user == b"carol" and request.ticket == buyer.tickets["turn"] and request.sale == "turn"


def test_position_counts_down_to_the_watermark_and_no_further(peers):
    peers.sale("down", watermark=0)
    for _ in range(5):
        last = peers.get("/sale/down/ticket").json
    for watermark in (0, 2, last["index"]):
        peers.board("down", watermark=watermark)
        told = peers.get("/sale/down/status", X_Ticket=last["token"]).json
        assert told["state"] == "waiting" and told["position"] == last["index"] - watermark
        assert told["estimatedWaitSeconds"] >= 0 and 1 <= told["pollSeconds"] <= 60


def test_turn_needs_a_signed_in_buyer(peers):
    peers.sale("signin")
    visitor = peers.get("/sale/signin/ticket").json["token"]
    asked = len(peers.asked)
    for headers in ({}, {"Authorization": "Bearer x.y.z"}, {"Authorization": "Basic abc"}, {"Authorization": "Bearer secret"}):
        answer = peers.get("/sale/signin/status", X_Ticket=visitor, **headers)
        assert (answer.status, answer.code) == (401, "sign_in_required"), headers
        assert answer.headers["www-authenticate"] == "Bearer" and no_store(answer)
        assert ("was not taken" in answer.json["detail"]) == bool(headers), "who shows a token hears that it is the token"
    assert len(peers.asked) == asked
    peers.answers["pass"] = PB["admission"].PassReply(reason="waiting", watermark=5)
    told = peers.shop.buyer("dora").call("GET", "/sale/signin/status", X_Ticket=visitor)
    assert told.json["state"] == "waiting"


@pytest.mark.parametrize("reason,status,state,code", [
    ("sold_out", 200, "sold_out", None), ("sale_closed", 200, "closed", None), ("sale_paused", 200, "paused", None),
    ("sale_not_open", 200, "scheduled", None), ("restart", 200, "restart", None), ("waiting", 200, "waiting", None),
    ("ticket_invalid", 400, None, "ticket_invalid"), ("forbidden", 403, None, "forbidden"),
    ("doubt", 503, None, "try_again"), ("no_such_reason", 503, None, "try_again"),
])
def test_admissions_word_is_told(peers, reason, status, state, code):
    peers.sale("word") if "word" not in peers.sales else None
    buyer = peers.shop.buyer(f"word-{reason}")
    assert buyer.ticket("word").status == 200
    peers.answers["pass"] = PB["admission"].PassReply(reason=reason, watermark=100)
    answer = buyer.status("word")
    assert (answer.status, answer.json.get("state"), answer.code) == (status, state, code) and no_store(answer)
    if status == 503:
        assert int(answer.headers["retry-after"]) >= 1


def passes_asked(peers, sale):
    """By how many people, as told to the queue until now."""
    told = lambda: [p.passes_asked for p in list(peers.presence) if p.sale == sale]
    seen = len(told())
    eventually(lambda: len(told()) > seen + 1, 5, "presence is told")
    return sum(told())


def test_who_asks_again_is_one_person_to_the_queue(peers):
    """A bus that was away for two seconds once made a crowd of six people, and the line stood for 45 s."""
    peers.sale("word") if "word" not in peers.sales else None
    before = passes_asked(peers, "word")
    peers.answers["pass"] = PB["admission"].PassReply(reason="doubt")
    for number in range(2):
        buyer = peers.shop.buyer(f"again-{number}")
        buyer.ticket("word")
        assert [buyer.status("word").status for _ in range(5)] == [503] * 5
    assert passes_asked(peers, "word") == before + 2


@pytest.mark.parametrize("reply", [b"\xff\xff\xff", PB["admission"].PassReply(**{"pass": 'a"b', "expires_at_ms": 1}),
                                   PB["admission"].PassReply(**{"pass": "", "expires_at_ms": 1}),
                                   PB["admission"].PassReply(**{"pass": "a.b.c", "expires_at_ms": -5}), None])
def test_nonsense_or_silence_of_admission_is_try_again(peers, reply):
    peers.sale("nonsense") if "nonsense" not in peers.sales else None
    buyer = peers.shop.buyer("erin")
    buyer.ticket("nonsense")
    peers.answers["pass"] = reply
    answer = buyer.status("nonsense")
    assert (answer.status, answer.code) == (503, "try_again") and answer.headers["retry-after"]


def test_states_are_told_to_new_and_old(peers):
    peers.sale("states", watermark=0)
    token = peers.get("/sale/states/ticket").json["token"]
    peers.phase("states", "PAUSED")
    assert peers.get("/sale/states/ticket").json["state"] == "paused"
    paused = peers.get("/sale/states/status", X_Ticket=token).json
    assert paused["state"] == "paused" and paused["position"] is not None
    assert peers.get("/sale/states/board").json["notice"] == "paused"
    peers.phase("states", "OPEN")
    peers.stock("states", free=0, held=3, settled=7)
    eventually(lambda: peers.get("/sale/states/board").json["remaining"] == 0, 5, "nothing remains")
    held = peers.get("/sale/states/board").json
    assert (held["state"], held["held"], held["notice"]) == ("open", 3, "all_held")
    assert peers.get("/sale/states/status", X_Ticket=token).json["state"] == "waiting"
    peers.stock("states", free=0, held=0, settled=10)
    eventually(lambda: peers.get("/sale/states/board").json["state"] == "sold_out", 5, "sold out is final")
    before = peers.next_index
    assert peers.get("/sale/states/ticket").json == {"state": "sold_out"}
    assert peers.get("/sale/states/status", X_Ticket=token).json == {"state": "sold_out"}
    assert peers.get("/sale/states/ticket", X_Ticket=token).json["state"] == "sold_out"
    assert peers.next_index == before
    peers.phase("states", "CLOSED")
    assert peers.get("/sale/states/ticket").json == {"state": "closed"}
    assert peers.get("/sale/states/status", X_Ticket=token).json == {"state": "closed"}
    assert "closed" in peers.get("/sale/states/wait").text


def test_state_not_heard_for_three_seconds_is_paused(peers):
    peers.sale("stale", watermark=0)
    peers.quiet.add("state")
    try:
        eventually(lambda: peers.get("/sale/stale/board").json["state"] == "paused", 6, "stale state is paused")
        assert peers.get("/sale/stale/ticket").status == 200
    finally:
        peers.quiet.discard("state")
    eventually(lambda: peers.get("/sale/stale/board").json["state"] == "open", 5, "heard again")


def test_wait_page_renders_the_place(peers):
    peers.sale("wait", watermark=0)
    first = peers.get("/sale/wait/wait")
    assert first.status == 200 and no_store(first) and first.headers["content-type"].startswith("text/html")
    assert re.findall(r'lang="(\w+)" aria-current="true"', peers.get("/sale/wait/wait?lang=de").text) == ["de"]
    cookie = cookie_of(first)
    peers.get("/sale/wait/ticket")
    ticket = peers.get("/sale/wait/ticket", Cookie=cookie).json
    again = peers.get("/sale/wait/wait?auto=30", Cookie=cookie)
    assert again.headers["refresh"] == "30" and cookie_of(again) == cookie
    assert ticket["token"] in cookie and "waiting" in again.text
    for odd in ("auto=5", "auto=1e3", "auto=30&auto=30", "auto="):
        assert "refresh" not in peers.get(f"/sale/wait/wait?{odd}", Cookie=cookie).headers
    peers.board("wait", watermark=ticket["index"] + 1)
    assert "turn" in peers.get("/sale/wait/wait", Cookie=cookie).text


def test_wait_page_tells_a_wait_only_where_the_line_moves(peers):
    def minutes():
        return re.search(r"at most about</dt><dd>(\d*)</dd>", peers.get("/sale/moves/wait", Cookie=cookie).text).group(1)
    peers.sale("moves", watermark=0)
    cookie = cookie_of(peers.get("/sale/moves/wait"))
    peers.get("/sale/moves/ticket")
    assert minutes() == "1"
    peers.stock("moves", free=0, held=3)
    eventually(lambda: minutes() == "", 5, "all is held")
    peers.stock("moves", free=3, held=0)
    eventually(lambda: minutes() == "1", 5, "some returned")
    peers.phase("moves", "PAUSED")
    eventually(lambda: minutes() == "", 5, "paused")


def test_wait_page_says_when_it_opens(peers):
    peers.sale("soon", phase="SCHEDULED", opens_in_s=7200)
    opens = time.strftime("%Y-%m-%d %H:%M", time.gmtime(peers.sales["soon"]["definition"].opens_at_ms / 1000))
    assert f"<dt>Opens (UTC)</dt><dd>{opens}</dd>" in peers.get("/sale/soon/wait").text
    peers.phase("soon", "OPEN")
    assert "<dt>Opens (UTC)</dt><dd></dd>" in peers.get("/sale/soon/wait").text


def test_jwks_names_the_pass_key(peers):
    answer = peers.get("/.well-known/jwks.json")
    assert answer.status == 200 and answer.headers["cache-control"].startswith("public")
    key = answer.json["keys"][0]
    assert (key["kty"], key["crv"], key["alg"], key["use"]) == ("OKP", "Ed25519", "EdDSA", "sig")
    assert len(key["kid"]) == 8 and len(key["x"]) == 43


def test_policy_is_public_and_says_the_rules(peers):
    peers.sale("policy", limit_per_buyer=2)
    answer = peers.get("/sale/policy/policy")
    assert answer.headers["cache-control"] == "public, max-age=60"
    assert answer.json["limits"] == {"perBuyer": 2, "holdForSeconds": 600, "graceSeconds": 30, "extendBySeconds": 60, "extensions": 2}
    assert answer.json["items"] == [{"sku": "policy", "units": 10, "price": 4900, "currency": "EUR"}]


def test_case_26_buyer_tokens_that_choose_for_themselves(peers):
    peers.sale("tokens")
    secret, later = peers.shop.buyer_secret, int(time.time()) + 600
    claims = {"sub": "alice", "exp": later}
    visitor = peers.get("/sale/tokens/ticket").json["token"]
    odd = [
        sign_buyer(secret, claims, {"alg": "none", "typ": "JWT"}), sign_buyer(secret, claims, {"alg": "hs256"}),
        sign_buyer(secret, claims, {"alg": "EdDSA"}), sign_buyer(b"x" * 32, claims),
        sign_buyer(secret, b'{"sub":"a","sub":"b","exp":%d}' % later), sign_buyer(secret, b'{"sub":"a","exp":%d,"exp":1}' % later),
        sign_buyer(secret, {"sub": "alice"}), sign_buyer(secret, {"sub": "alice", "exp": str(later)}),
        sign_buyer(secret, {"sub": "alice", "exp": 1}), sign_buyer(secret, {"sub": "alice", "exp": later, "nbf": later}),
        sign_buyer(secret, b"[" * 1000), sign_buyer(secret, claims).rsplit(".", 1)[0] + ".", sign_buyer(secret, claims)[:-1],
        sign_buyer(secret, claims) + "=", sign_buyer(secret, claims) + ".x",
    ]
    for token in odd:
        for path in ("status", "ticket"):
            headers = {"X_Ticket": visitor} if path == "status" else {}
            answer = peers.get(f"/sale/tokens/{path}", Authorization=f"Bearer {token}", **headers)
            assert (answer.status, answer.code) == (401, "sign_in_required"), (path, token)


@pytest.mark.parametrize("sub,known", [
    ('"\\u00e9"', True), ('"e\\u0301"', True), ('"Usr_1"', True), ('"usr_1"', True), ('"\\u0130"', True), ('" a "', True),
    ('"' + "\\ud83d\\ude00" * 32 + '"', True), ('"' + "\\ud83d\\ude00" * 33 + '"', False), ('"' + "x" * 129 + '"', False),
    ('"ab\\u0000evil"', False), ('"\\ud800"', False), ("9007199254740993", False), ('""', False), ("null", False),
    ('"a\\nb"', False), ('"a\\u0085b"', False),
])
def test_case_33_user_ids_are_bytes(peers, sub, known):
    peers.sale("users") if "users" not in peers.sales else None
    token = sign_buyer(peers.shop.buyer_secret, f'{{"sub":{sub},"exp":{int(time.time()) + 600}}}'.encode())
    answer = peers.get("/sale/users/ticket", Authorization=f"Bearer {token}")
    assert answer.status == (200 if known else 401), answer
    if known:
        peers.answers["pass"] = PB["admission"].PassReply(reason="waiting")
        peers.get("/sale/users/status", Authorization=f"Bearer {token}", X_Ticket=answer.json["token"])
        assert peers.last("pass").user.decode() == json.loads(sub)


def test_presence_tells_the_highest_index(peers):
    peers.sale("presence", watermark=3)
    index = peers.get("/sale/presence/ticket").json["index"]
    eventually(lambda: any(p.sale == "presence" and p.index_end > index and p.tickets >= 1 for p in peers.presence[-10:]), 5,
               "presence tells the leased end")
    told = [p for p in peers.presence if p.sale == "presence"][-1]
    assert told.generation == 1 and told.board_term == 1 and told.board_watermark == 3
