# SPDX-License-Identifier: Apache-2.0
"""docs/http.openapi.yaml says what the edge does: routes, codes and the shape of every answer."""
import os
import re
import time

import pytest
import yaml
from conftest import BUILD, ROOT
from edge_peers import PB, Peers

with open(os.path.join(ROOT, "docs", "http.openapi.yaml"), encoding="utf-8") as handle:
    API = yaml.safe_load(handle)

KINDS = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool, "null": type(None)}
ID = "res_" + "0" * 25 + "1"


def resolve(schema):
    while "$ref" in schema:
        found = API
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema


def faults(value, schema, where="answer"):
    """What of the value the schema does not allow; the part of JSON Schema that the file uses."""
    schema = resolve(schema)
    if "oneOf" in schema:
        fitting = [option for option in schema["oneOf"] if not list(faults(value, option, where))]
        if not fitting:
            yield f"{where}: fits none of {len(schema['oneOf'])} options: {value}"
        return
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    is_kind = [isinstance(value, KINDS[k]) and not (isinstance(value, bool) and k != "boolean") for k in kinds]
    if kinds and not any(is_kind):
        yield f"{where}: {value!r} is no {kinds}"
        return
    if "enum" in schema and value not in schema["enum"] or "const" in schema and value != schema["const"]:
        yield f"{where}: {value!r} is not one of them"
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        yield f"{where}: {value!r} does not match {schema['pattern']}"
    if isinstance(value, (int, float)) and value < schema.get("minimum", value):
        yield f"{where}: {value} is below the minimum"
    if isinstance(value, list):
        for at, item in enumerate(value):
            yield from faults(item, schema.get("items", {}), f"{where}[{at}]")
    if isinstance(value, dict):
        known = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                yield f"{where}: {name} is missing"
        for name, member in value.items():
            if name not in known and schema.get("additionalProperties") is False:
                yield f"{where}: {name} is not in the document"
            yield from faults(member, known.get(name, {}), f"{where}.{name}")


def documented(answer, path, method="get"):
    """Asserts that this answer is one of those the document has for its route."""
    responses = API["paths"][path][method]["responses"]
    assert str(answer.status) in responses, (path, answer)
    response = resolve(responses[str(answer.status)])
    kind = answer.headers.get("content-type", "").split(";")[0]
    assert not answer.text or kind in response["content"], (path, kind)
    if answer.json is not None:
        assert list(faults(answer.json, response["content"][kind].get("schema", {}))) == []
    for name, header in response.get("headers", {}).items():
        if name.lower() in answer.headers and "const" in resolve(header)["schema"]:
            assert answer.headers[name.lower()] == resolve(header)["schema"]["const"]
    return answer


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
