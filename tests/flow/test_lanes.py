# SPDX-License-Identifier: Apache-2.0
"""Lanes among scripted peers, so that what reaches admission can be counted. The same person and sale, live and decoy: every answer
has the same headers and the same bytes but those that are anybody's own (token, entrant, index, time)."""
import re
import time

import pytest
from conftest import BUILD
from edge_peers import PB, Peers
from shop import eventually

# Nothing that looks like a program; and everything that does, from an account above its rate.
BROWSER = {"User-Agent": "Mozilla/5.0", "Accept-Language": "de", "Accept": "application/json"}
OWN = re.compile(rb'"(token|entrant)":"[^"]*"|"(index|position|estimatedWaitSeconds|pollSeconds)":\d+')


@pytest.fixture(scope="module")
def peers():
    made = Peers(BUILD, lanes="1", lane_account_places="2", lane_device_places="3", lane_slow_at="4", lane_decoy_at="4", lane_pardoned="ann, paula")
    yield made
    made.close()


def call(peers, user, path, headers):
    return peers.shop.buyer(user).call("GET", path, **{name.replace("-", "_"): value for name, value in headers.items()})


def ticket(peers, sale, user, headers):
    answer = call(peers, user, f"/sale/{sale}/ticket", headers)
    assert answer.status == 200
    return answer


def decoy(peers, sale, user):
    """A ticket beyond the rate of its account, without the headers of a browser."""
    for _ in range(2):
        ticket(peers, sale, user, BROWSER)
    return ticket(peers, sale, user, {})


def places(peers, lane):
    """How many places of this lane were given."""
    found = re.search(rf'^tidegate_places_total{{lane="{lane}"}} (\d+)', peers.stack.admin("edge", "/metrics")[1], re.M)
    return int(found.group(1)) if found else 0


def shape(answer):
    """Headers but the date, cookies and bodies without their own words: what is left must not differ."""
    headers = {name: re.sub(r"tg_[^;]*", lambda m: f"cookie of {len(m.group())}", value)
               for name, value in answer.headers.items() if name not in ("date", "content-length")}
    body = OWN.sub(lambda m: m.group().split(b":")[0], answer.text.encode())
    return answer.status, headers, body


def test_decoy_and_live_answers_differ_in_nothing(peers):
    peers.sale("same", watermark=0)
    before = places(peers, "decoy")
    live, fake = ticket(peers, "same", "lena", BROWSER), decoy(peers, "same", "dave")
    assert places(peers, "decoy") == before + 1
    assert len(live.json["token"]) == len(fake.json["token"]), "names of one length, tickets of one length"
    assert shape(live) == shape(fake)
    peers.answers["pass"] = PB["admission"].PassReply(reason="waiting", watermark=1000)
    for watermark in (0, 1000):  # far from the turn, and at it
        peers.board("same", watermark=watermark)
        for path in ("status", "ticket", "wait", "board", "policy"):
            answers = [call(peers, user, f"/sale/same/{path}", {"X-Ticket": token, **BROWSER})
                       for user, token in (("lena", live.json["token"]), ("dave", fake.json["token"]))]
            assert answers[0].status == 200 and shape(answers[0])[:2] == shape(answers[1])[:2], path
            if path in ("status", "ticket"):
                assert shape(answers[0]) == shape(answers[1]), path


def test_decoys_never_reach_admission_or_the_gate(peers):
    peers.sale("never", watermark=0)
    fake = decoy(peers, "never", "dora").json["token"]
    peers.board("never", watermark=100000)
    peers.answers["pass"] = PB["admission"].PassReply(**{"pass": "h.e.y", "expires_at_ms": int(time.time() * 1000) + 90000})
    asked = len(peers.asked)
    for _ in range(20):
        told = call(peers, "dora", "/sale/never/status", {"X-Ticket": fake})
        assert told.json["state"] == "waiting" and told.json["position"] == 0
    refused = peers.shop.buyer("dora").call("POST", "/sale/never/reserve", Idempotency_Key="k")
    assert (refused.status, refused.code) == (403, "pass_required")
    assert len(peers.asked) == asked, "nothing was asked of anybody"
    live = ticket(peers, "never", "lena", BROWSER).json["token"]
    assert call(peers, "lena", "/sale/never/status", {"X-Ticket": live}).json["state"] == "admitted"


def test_the_tickets_of_a_pardoned_account_are_live(peers):
    peers.sale("pardon", watermark=0)
    before = places(peers, "decoy")
    decoy(peers, "pardon", "paula")
    assert places(peers, "decoy") == before, "no new one is a decoy"
    for _ in range(8):  # a visitor without a browser, beyond the rate of a device
        visitor = peers.get("/sale/pardon/ticket").json
    assert places(peers, "decoy") > before
    peers.board("pardon", watermark=100000)
    peers.answers["pass"] = PB["admission"].PassReply(**{"pass": "h.e.y", "expires_at_ms": int(time.time() * 1000) + 90000})
    assert call(peers, "ann", "/sale/pardon/status", {"X-Ticket": visitor["token"]}).json["state"] == "waiting"
    lifted = ticket(peers, "pardon", "ann", {"X-Ticket": visitor["token"]}).json
    assert lifted["index"] == visitor["index"] and lifted["token"] != visitor["token"], "the place, sealed anew"
    assert call(peers, "ann", "/sale/pardon/status", {"X-Ticket": lifted["token"]}).json["state"] == "admitted"


def test_the_policy_says_what_counts(peers):
    peers.sale("told")
    lanes = peers.get("/sale/told/policy").json["lanes"]
    assert lanes["slowAtPoints"] == 4 and lanes["noPassAtPoints"] == 4 and lanes["accountPlacesPerMinute"] == 2
    assert {signal["name"]: signal["points"] for signal in lanes["signals"]} == {
        "account_velocity": 3, "device_velocity": 1, "no_user_agent": 1, "no_language": 1, "no_accept": 1}


def test_admission_refuses_a_decoy_too_until_lanes_are_off(own_shop):
    """An edge that knows of no lanes asks for the decoy it is shown; with lanes off at admission the same ticket is admitted."""
    stack = own_shop.stack
    sale = own_shop.sale(units=50)
    buyer = own_shop.buyer("dave")

    def begin(daemon, **settings):
        stack.kill(daemon)
        stack.start_daemon(daemon, env={f"TIDEGATE_{daemon.upper()}_{name}": value for name, value in settings.items()})
    begin("admission", LANES="1")
    begin("edge", LANES="1", LANE_SLOW_AT="1", LANE_DECOY_AT="1")
    eventually(lambda: buyer.ticket(sale).status == 200, 15, "a place")
    assert 'tidegate_places_total{lane="decoy"} 1' in stack.admin("edge", "/metrics")[1]
    begin("edge", LANES="0")
    own_shop.win(sale)  # others are let in, so the watermark is past the decoy

    def answers():
        found = re.search(r'^tidegate_passes_total{reason="waiting"} (\d+)', stack.admin("admission", "/metrics")[1], re.M)
        return int(found.group(1)) if found else 0
    eventually(lambda: buyer.status(sale).status == 200 and answers() > 0, 15, "admission was asked")
    for _ in range(5):
        told = buyer.status(sale)
        assert told.status == 200 and told.json["state"] == "waiting"
    begin("admission", LANES="0")
    buyer.admission(sale)
