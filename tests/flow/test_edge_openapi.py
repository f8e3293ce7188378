# SPDX-License-Identifier: Apache-2.0
"""docs/http.openapi.yaml says what the edge does: routes, codes and the shape of every answer."""
import os
import re
import time

import pytest
from conftest import BUILD, ROOT
from edge_peers import PB, Peers
from openapi import API, documented

ID = "res_" + "0" * 25 + "1"


@pytest.fixture(scope="module")
def peers():
    made = Peers(BUILD)
    made.sale("open", watermark=0)
    yield made
    made.close()


def test_codes_are_those_of_the_catalogue():
    with open(os.path.join(ROOT, "catalog", "reasons.def"), encoding="utf-8") as file:
        rows = re.findall(r'^TG_REASON\([A-Z_]+, "([a-z_]+)", (\d+),', file.read(), re.M)
    assert API["components"]["schemas"]["Code"]["enum"] == [code for code, status in rows if int(status) != 0]


def test_every_route_is_served_and_documented(peers):
    for path, methods in API["paths"].items():
        address = path.replace("{sale}", "open").replace("{id}", ID).replace("{file}", "none.css").replace("{part}", "0")
        allow = peers.shop.http("OPTIONS", address).headers["allow"].split(", ")
        assert {m.upper() for m in methods if m in ("get", "post")} == set(allow) - {"HEAD", "OPTIONS"}, path


def test_waiting_answers_are_documented(peers):
    buyer = peers.shop.buyer("alice")
    for path in ("/sale/{sale}", "/sale/{sale}/wait", "/sale/{sale}/policy", "/sale/{sale}/board"):
        documented(peers.get(path.replace("{sale}", "open")), path)
        documented(peers.get(path.replace("{sale}", "none")), path)
    for path in ("/sale/{sale}/draw.json", "/sale/{sale}/roster/{part}"):
        documented(peers.get(path.replace("{sale}", "open").replace("{part}", "0")), path)
    documented(peers.get("/.well-known/jwks.json"), "/.well-known/jwks.json")
    documented(buyer.ticket("open"), "/sale/{sale}/ticket")
    documented(peers.get("/sale/open/ticket", X_Ticket="x"), "/sale/{sale}/ticket")
    documented(peers.get("/sale/open/ticket", Authorization="Bearer a.b.c"), "/sale/{sale}/ticket")
    status = "/sale/{sale}/status"
    for answer in (buyer.status("open"), peers.get("/sale/open/status"), peers.get("/sale/none/status")):
        documented(answer, status)
    peers.board("open")
    peers.answers["pass"] = PB["admission"].PassReply(**{"pass": "a.b.c", "expires_at_ms": int(time.time() * 1000) + 60000})
    assert documented(buyer.status("open"), status).json["state"] == "admitted"
    documented(peers.get("/sale/open/status", X_Ticket=buyer.tickets["open"]), status)
    for reason in ("sold_out", "sale_closed", "sale_paused", "sale_not_open", "restart", "waiting", "forbidden", "doubt"):
        peers.answers["pass"] = PB["admission"].PassReply(reason=reason)
        documented(buyer.status("open"), status)


def test_checkout_answers_are_documented(peers):
    buyer, reserve = peers.shop.buyer("alice"), "/sale/{sale}/reserve"
    admission = peers.sign_pass("alice", "open")
    for reply in ({}, {"replayed": True}, {"reason": "sold_out", "final": True}, {"reason": "limit_reached"}, {"reason": "pass_used"},
                  {"reason": "sale_paused"}, {"reason": "idempotency_mismatch"}, {"reason": "doubt"}):
        peers.answers["hold"] = peers.held(**reply)
        documented(buyer.reserve("open", admission, "k"), reserve, "post")
    for answer in (buyer.reserve("open"), buyer.reserve("none"), buyer.reserve("open", admission, body="x"),
                   buyer.call("POST", "/sale/open/reserve", "x", X_Admission_Token=admission, Idempotency_Key="k", Content_Type="text/plain"),
                   buyer.reserve("open", admission, body="x" * 5000), peers.shop.http("POST", "/sale/open/reserve")):
        documented(answer, reserve, "post")
    record = PB["ledger"].ReservationReply(reservation_id=ID, sale="open", state=1, expires_at_ms=1893456000000, order_id="ord_1")
    record.units.add(item=0, unit=1)
    for reply in (record, PB["ledger"].ReservationReply(reason="reservation_expired"), PB["ledger"].ReservationReply(reason="forbidden")):
        for act in ("read", "confirm", "extend", "cancel"):
            peers.answers[act] = reply
        if reply.reason != "reservation_expired":
            documented(buyer.read(ID), "/reservations/{id}")
        documented(peers.shop.confirm(ID), "/reservations/{id}/confirm", "post")
        documented(peers.shop.extend(ID), "/reservations/{id}/extend", "post")
        documented(buyer.cancel(ID), "/reservations/{id}/cancel", "post")
    documented(peers.shop.http("POST", f"/reservations/{ID}/confirm"), "/reservations/{id}/confirm", "post")
    documented(peers.shop.http("GET", "/reservations/x"), "/reservations/{id}")
