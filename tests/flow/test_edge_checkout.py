# SPDX-License-Identifier: Apache-2.0
"""The checkout role, answer by answer, among scripted peers."""
import base64
import json
import re
import socket
import struct
import time

import nacl.signing
import pytest
from conftest import BUILD
from edge_peers import PB, Peers
from shop import at_once, eventually, sign_buyer


@pytest.fixture(scope="module")
def peers():
    made = Peers(BUILD)
    yield made
    made.close()


@pytest.fixture
def sale(peers):
    """An open sale whose gate says yes."""
    if "shop" not in peers.sales:
        peers.sale("shop", units=100)
    peers.answers.clear()
    peers.answers["hold"] = peers.held()
    peers.asked.clear()
    return "shop"


def reserve(peers, sale, user="alice", admission=None, key="key-1", body=None, **more):
    headers = {"X_Admission_Token": admission or peers.sign_pass(user, sale), "Idempotency_Key": key, **more}
    return peers.shop.buyer(user).call("POST", f"/sale/{sale}/reserve", body, **{n: v for n, v in headers.items() if v is not None})


def refused(answer, status, code):
    assert (answer.status, answer.code) == (status, code), answer
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.json["type"].endswith(f"#{code}") and answer.json["status"] == status
    assert answer.json["title"] and answer.json["detail"]
    return answer


# -- a win ---------------------------------------------------------------------------------------------------------


def test_win_is_201_with_id_deadline_and_units(peers, sale):
    answer = reserve(peers, sale)
    assert answer.status == 201 and answer.headers["cache-control"] == "no-store"
    assert answer.json == {"reservationId": "res_" + "0" * 25 + "1", "expiresAt": "2030-01-01T00:00:00.000Z",
                           "units": [{"sku": "shop", "unit": 4711}]}
    assert answer.headers["location"] == f"/reservations/{answer.json['reservationId']}"
    assert "idempotent-replayed" not in answer.headers
    request = peers.last("hold")
    assert (request.sale, request.generation, request.user, request.idempotency_key) == ("shop", 1, b"alice", "key-1")
    assert len(request.place) == 16 and len(request.digest) == 16 and request.window == int(time.time()) // 60
    assert request.pass_expires_at_ms == (request.window + 2) * 60000
    assert [(d.item, d.quantity, list(d.units)) for d in request.demands] == [(0, 1, [])]


def test_replay_says_so(peers, sale):
    first = reserve(peers, sale)
    peers.answers["hold"] = peers.held(replayed=True)
    again = reserve(peers, sale)
    assert again.status == 201 and again.headers["idempotent-replayed"] == "true" and again.text == first.text


def test_traceparent_is_passed_on_or_made(peers, sale):
    parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    reserve(peers, sale, traceparent=parent)
    assert parent.encode() in peers.asked[-1][2]
    for odd in ("00-" + "0" * 32 + "-b7ad6b7169203331-01", parent.upper(), parent + "-x", "garbage"):
        reserve(peers, sale, traceparent=odd)
        head = peers.asked[-1][2].decode()
        assert re.search(r"traceparent: ?00-[0-9a-f]{32}-[0-9a-f]{16}-01\r\n", head, re.I) and odd not in head


# -- refused from memory, in this order ----------------------------------------------------------------------------


def test_refusals_from_memory_in_order(peers):
    name = peers.sale("order", units=10)
    peers.asked.clear()

    def nobody():
        return peers.shop.http("POST", f"/sale/{name}/reserve")
    refused(nobody(), 401, "sign_in_required")
    refused(peers.shop.buyer("bob").reserve(name), 403, "pass_required")
    peers.phase(name, "SCHEDULED")
    assert int(refused(nobody(), 409, "sale_not_open").headers["retry-after"]) >= 1
    peers.phase(name, "PAUSED")
    assert int(refused(nobody(), 503, "sale_paused").headers["retry-after"]) >= 1
    peers.stock(name, free=0, held=2, settled=8)
    eventually(lambda: nobody().code == "sold_out", 5, "nothing is free")
    assert refused(nobody(), 409, "sold_out").json["final"] is False
    peers.stock(name, free=0, held=0, settled=10)
    eventually(lambda: nobody().json.get("final") is True, 5, "sold out is final")
    refused(peers.shop.buyer("bob").reserve(name), 409, "sold_out")
    peers.phase(name, "CLOSED")
    refused(nobody(), 409, "sale_closed")
    refused(peers.shop.http("POST", "/sale/nobody/reserve"), 404, "sale_unknown")
    assert peers.asked == []


def test_state_not_heard_is_paused(peers):
    name = peers.sale("unheard")
    peers.quiet.update(("state", "stock"))
    try:
        eventually(lambda: peers.shop.http("POST", f"/sale/{name}/reserve").code == "sale_paused", 6, "stale is paused")
    finally:
        peers.quiet.clear()
    eventually(lambda: peers.shop.http("POST", f"/sale/{name}/reserve").code == "sign_in_required", 6, "heard again")


def test_an_edge_that_was_not_told_the_sales_yet_denies_none(peers, sale):
    peers.quiet.update(("sales", "state"))
    try:
        peers.stack.kill("edge")
        peers.stack.start_daemon("edge", ready=False)
        eventually(lambda: peers.stack.admin("edge", "/livez")[0] == 200, 10, "the edge answers")
        assert int(refused(reserve(peers, sale), 503, "try_again").headers["retry-after"]) >= 1
        assert peers.shop.buyer("bob").ticket(sale).status == 503
    finally:
        peers.quiet.clear()
    peers.stack.wait_ready("edge")
    eventually(lambda: reserve(peers, sale).status == 201, 10, "it knows the sale")
    refused(peers.shop.http("POST", "/sale/nobody/reserve"), 404, "sale_unknown")


def test_a_pass_reaches_the_gate_whatever_the_state(peers):
    name = peers.sale("late", units=10)
    peers.answers["hold"] = peers.held(replayed=True)
    for phase in ("PAUSED", "SCHEDULED", "CLOSED"):
        peers.phase(name, phase)
        assert reserve(peers, name).status == 201, phase
    peers.stock(name, free=0, settled=10)
    assert reserve(peers, name).status == 201
    old = int(time.time()) // 60 - 100
    assert reserve(peers, name, admission=peers.sign_pass("alice", name, window=old)).status == 201
    assert peers.last("hold").window == old


# -- passes --------------------------------------------------------------------------------------------------------


def test_passes_that_do_not_hold(peers, sale):
    good = peers.sign_pass("alice", sale)
    head, claims, signature = good.split(".")
    kid = json.loads(base64.urlsafe_b64decode(head + "=="))["kid"]
    stranger = nacl.signing.SigningKey.generate()

    def headed(text):
        return peers.sign_pass("alice", sale, head=text)
    odd = [
        "", "x", "a.b.c", good[:-1], good + "A", good + ".", good + "=", f"{head}.{claims}.", f"{head}.{claims}.{'A' * 86}",
        f"{claims}.{head}.{signature}", peers.sign_pass("bob", sale), peers.sign_pass("alice", "elsewhere"),
        peers.sign_pass("alice", sale, key=stranger), peers.sign_pass("alice", sale, exp=int(time.time()) + 10**6),
        peers.sign_pass("alice", sale, exp="soon"), peers.sign_pass("alice", sale, role="QUEUED"),
        peers.sign_pass("alice", sale, event_id="elsewhere"), peers.sign_pass("alice", sale, more=1),
        headed('{"alg":"none","typ":"tg-pass+jwt","kid":"%s"}' % kid), headed('{"alg":"HS256","typ":"tg-pass+jwt","kid":"%s"}' % kid),
        headed('{"alg":"eddsa","typ":"tg-pass+jwt","kid":"%s"}' % kid), headed('{"alg":"EdDSA","typ":"JWT","kid":"%s"}' % kid),
        headed('{"alg":"EdDSA","typ":"tg-pass+jwt","kid":"../../dev/null"}'), headed('{"alg":"EdDSA","typ":"tg-pass+jwt","kid":"\' OR 1=1--"}'),
        headed('{"alg":"EdDSA","typ":"tg-pass+jwt","kid":"00000000"}'), headed('{"alg":"EdDSA","typ":"tg-pass+jwt"}'),
        headed('{"typ":"tg-pass+jwt","alg":"EdDSA","kid":"%s"}' % kid), headed('{"alg":"EdDSA","typ":"tg-pass+jwt","kid":"%s"}' % ("k" * 900)),
        peers.get(f"/sale/{sale}/ticket").json["token"],
    ]
    for admission in odd:
        if admission == "":
            continue
        answer = reserve(peers, sale, admission=admission)
        refused(answer, 403, "pass_invalid")
    refused(reserve(peers, sale, X_Admission_Token=""), 403, "pass_invalid")
    assert peers.last("hold") is None


def test_every_flipped_character_of_a_pass_is_refused(peers, sale):
    good = peers.sign_pass("alice", sale)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for at in range(0, len(good), 7):
        if good[at] != ".":
            flipped = good[:at] + alphabet[alphabet.index(good[at]) ^ 1] + good[at + 1:]
            refused(reserve(peers, sale, admission=flipped), 403, "pass_invalid")
    assert peers.last("hold") is None


def test_case_17_pass_of_an_earlier_generation(peers, sale):
    peers.sale("again", generation=2)
    refused(reserve(peers, "again", admission=peers.sign_pass("alice", "again", generation=1)), 409, "restart")
    assert peers.last("hold") is None


def test_pass_of_a_generation_not_heard_of_yet_loses_nothing(peers, sale):
    """Admission knows of the sale that was created again, this edge does not: its definition is not what the buyer chose from."""
    peers.sale("ahead")
    answer = refused(reserve(peers, "ahead", admission=peers.sign_pass("alice", "ahead", generation=7)), 503, "try_again")
    assert int(answer.headers["retry-after"]) >= 1
    peers.phase("ahead", "CLOSED")  # as the one before it is by then
    refused(reserve(peers, "ahead", admission=peers.sign_pass("alice", "ahead", generation=7)), 503, "try_again")
    assert peers.last("hold") is None


def test_pass_without_the_buyer_is_sign_in(peers, sale):
    admission = peers.sign_pass("alice", sale)
    for headers in ({}, {"Authorization": f"Bearer {peers.shop.service}"}, {"Authorization": "Bearer a.b.c"}, {"Authorization": "Basic x"}):
        refused(peers.shop.http("POST", f"/sale/{sale}/reserve", None,
                                {"X-Admission-Token": admission, "Idempotency-Key": "k", **headers}), 401, "sign_in_required")
    assert peers.last("hold") is None


# -- keys and bodies -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [None, "", '""', " ", "a b", "k" * 129, "k" * 7000, "ü", 'a"b', '"a"b"'])
def test_case_34_keys_that_are_none(peers, sale, key):
    answer = reserve(peers, sale, key=key.encode() if key and not key.isascii() else key)
    refused(answer, 400, "idempotency_key_required")
    assert peers.last("hold") is None


def test_case_34_two_keys_or_two_passes_are_refused(peers, sale):
    token = sign_buyer(peers.shop.buyer_secret, {"sub": "alice", "exp": int(time.time()) + 60})
    admission = peers.sign_pass("alice", sale)
    lines = {"Authorization": f"Bearer {token}", "X-Admission-Token": admission, "Idempotency-Key": "k"}
    for twice in lines:
        head = "".join(f"{n}: {v}\r\n" + (f"{n}: {v}\r\n" if n == twice else "") for n, v in lines.items())
        answer = peers.raw(f"POST /sale/{sale}/reserve HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{head}\r\n".encode())
        assert answer.startswith(b"HTTP/1.1 400 "), twice
    assert peers.last("hold") is None


def test_case_34_quoted_and_bare_key_are_one(peers, sale):
    for spelling in ("k-1", '"k-1"'):
        assert reserve(peers, sale, key=spelling).status == 201
        assert peers.last("hold").idempotency_key == "k-1"
    for spelling in ("k" * 128, '"' + "k" * 128 + '"'):
        assert reserve(peers, sale, key=spelling).status == 201
        assert peers.last("hold").idempotency_key == "k" * 128


@pytest.mark.parametrize("body,status,code,names", [
    ("{", 400, "malformed", "body"), ("[]", 400, "malformed", "body"), ("null", 400, "malformed", "body"), (b"\xff", 400, "malformed", "body"),
    ("{}", 400, "malformed", "items"), ('{"items":[]}', 400, "malformed", "items"), ('{"items":{}}', 400, "malformed", "items"),
    ('{"items":[1]}', 400, "malformed", "items"), ('{"items":[{}]}', 400, "malformed", "sku"),
    ('{"items":[{"sku":1,"quantity":1}]}', 400, "malformed", "sku"), ('{"items":[{"sku":"shop"}]}', 400, "malformed", "quantity"),
    ('{"items":[{"sku":"shop","quantity":"1"}]}', 400, "malformed", "quantity"),
    ('{"items":[{"sku":"shop","quantity":1.0}]}', 400, "malformed", "quantity"),
    ('{"items":[{"sku":"shop","quantity":1e0}]}', 400, "malformed", "quantity"),
    ('{"items":[{"sku":"shop","quantity":99999999999999999999}]}', 400, "malformed", "body"),
    ('{"items":[{"sku":"shop","quantity":1,"price":1}]}', 400, "malformed", "price"),
    ('{"items":[{"sku":"shop","quantity":1}],"x":1}', 400, "malformed", "x"),
    ('{"items":[{"sku":"shop","quantity":1}],"items":[]}', 400, "malformed", "twice"),
    ('{"items":[{"sku":"shop","sku":"shop","quantity":1}]}', 400, "malformed", "twice"),
    ('{"seats":["A-4-42"]}', 400, "malformed", "seats"), ('{"items":[{"sku":"shop","quantity":1}]} x', 400, "malformed", "body"),
    ('{"items":[{"sku":"sh\\u0000op","quantity":1}]}', 400, "malformed", "body"),
    ('{"items":[{"sku":"none","quantity":1}]}', 422, "item_unknown", "sku"),
    ('{"items":[{"sku":"SHOP","quantity":1}]}', 422, "item_unknown", "sku"),
    ('{"items":[{"sku":"shop","quantity":0}]}', 422, "quantity_invalid", "quantity"),
    ('{"items":[{"sku":"shop","quantity":-1}]}', 422, "quantity_invalid", "quantity"),
    ('{"items":[{"sku":"shop","quantity":5}]}', 422, "quantity_invalid", "quantity"),
    ('{"items":[{"sku":"shop","quantity":9223372036854775807}]}', 422, "quantity_invalid", "quantity"),
    ('{"items":[{"sku":"shop","quantity":3},{"sku":"shop","quantity":3}]}', 422, "quantity_invalid", "quantity"),
    ("[" * 4000, 400, "malformed", "body"),
])
def test_bodies_that_are_refused_by_name(peers, sale, body, status, code, names):
    answer = reserve(peers, sale, body=body, Content_Type="application/json")
    refused(answer, status, code)
    assert names in answer.json["detail"], answer.json["detail"]
    assert peers.last("hold") is None


def test_same_wish_has_one_digest_however_spelled(peers, sale):
    digests = set()
    for body in (None, '{"items":[{"sku":"shop","quantity":1}]}', ' { "items" : [ {"quantity":1,"sku":"sh\\u006fp"} ] } '):
        assert reserve(peers, sale, body=body).status == 201
        digests.add(peers.last("hold").digest)
    assert len(digests) == 1
    assert reserve(peers, sale, body='{"items":[{"sku":"shop","quantity":2}]}').status == 201
    assert peers.last("hold").demands[0].quantity == 2 and peers.last("hold").digest not in digests
    assert reserve(peers, sale, body='{"items":[{"sku":"shop","quantity":1},{"sku":"shop","quantity":1}]}').status == 201
    assert [(d.item, d.quantity) for d in peers.last("hold").demands] == [(0, 2)]


def test_sale_of_several_items_needs_items(peers):
    name = peers.sale("several", skus=["red", "blue"])
    peers.answers["hold"] = peers.held()
    answer = refused(reserve(peers, name), 400, "malformed")
    assert "items" in answer.json["detail"]
    assert reserve(peers, name, body={"items": [{"sku": "blue", "quantity": 2}, {"sku": "red", "quantity": 1}]}).status == 201
    assert [(d.item, d.quantity) for d in peers.last("hold").demands] == [(0, 1), (1, 2)]


def test_media_type_and_size(peers, sale):
    body = '{"items":[{"sku":"shop","quantity":1}]}'
    for kind in ("text/plain", "application/x-www-form-urlencoded", "application/jsonp", "json", ""):
        refused(reserve(peers, sale, body=body, Content_Type=kind), 415, "unsupported_media")
    assert reserve(peers, sale, body=body, Content_Type="Application/JSON; charset=utf-8").status == 201
    answer = reserve(peers, sale, body="x" * 5000, Content_Type="application/json")
    assert (answer.status, answer.code) == (413, "too_large")


# -- what the gate says --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reply,status,code,member", [
    ({"reason": "sold_out", "final": True}, 409, "sold_out", ("final", True)),
    ({"reason": "sold_out"}, 409, "sold_out", ("final", False)),
    ({"reason": "limit_reached", "reservation_id": "res_" + "0" * 25 + "2"}, 409, "limit_reached", ("reservationId", "res_" + "0" * 25 + "2")),
    ({"reason": "pass_used"}, 403, "pass_used", None), ({"reason": "pass_expired"}, 403, "pass_expired", None),
    ({"reason": "pass_invalid"}, 403, "pass_invalid", None), ({"reason": "idempotency_mismatch"}, 422, "idempotency_mismatch", None),
    ({"reason": "reservation_expired"}, 409, "reservation_expired", None), ({"reason": "sale_not_open"}, 409, "sale_not_open", None),
    ({"reason": "sale_paused", "retry_after_ms": 2500}, 503, "sale_paused", None), ({"reason": "restart"}, 409, "restart", None),
    ({"reason": "sale_closed"}, 409, "sale_closed", None), ({"reason": "quantity_invalid"}, 422, "quantity_invalid", None),
    ({"reason": "try_again"}, 503, "try_again", None), ({"reason": "unknown_gate"}, 503, "try_again", None),
    ({"reason": "doubt"}, 503, "try_again", None), ({"reason": "never heard of"}, 503, "try_again", None),
])
def test_gates_refusals_are_told(peers, sale, reply, status, code, member):
    peers.answers["hold"] = PB["reserve"].HoldReply(**{"reservation_id": "", **reply})
    answer = refused(reserve(peers, sale), status, code)
    if member:
        assert answer.json[member[0]] == member[1]
    if code in ("sale_not_open", "sale_paused", "try_again"):
        assert int(answer.headers["retry-after"]) >= 1
    if "retry_after_ms" in reply:
        assert answer.headers["retry-after"] == "3"


@pytest.mark.parametrize("reply", [
    b"\xff\xff", {"reservation_id": "nonsense"}, {"expires_at_ms": 0}, {"expires_at_ms": 2**62}, {"reservation_id": 'res_"},"x":"'},
    None,
])
def test_nonsense_or_silence_of_the_gate_is_try_again(peers, sale, reply):
    peers.answers["hold"] = peers.held(**reply) if isinstance(reply, dict) else reply
    begun = time.monotonic()
    answer = refused(reserve(peers, sale), 503, "try_again")
    assert int(answer.headers["retry-after"]) >= 1
    assert time.monotonic() - begun < 4


def test_unit_or_item_out_of_bounds_is_not_a_win(peers, sale):
    reply = peers.held()
    reply.units.add(item=99, unit=1)
    peers.answers["hold"] = reply
    refused(reserve(peers, sale), 503, "try_again")


def test_fifty_at_once_have_fifty_answers(peers, sale):
    peers.answers["hold"] = lambda request: peers.held(reservation_id="res_" + request.user.decode()[-2:].rjust(26, "0"))
    admissions = {f"user-{i:02}": peers.sign_pass(f"user-{i:02}", sale) for i in range(50)}
    answers = at_once([lambda user=user: reserve(peers, sale, user, admissions[user]) for user in admissions])
    assert [a.status for a in answers] == [201] * 50
    assert [a.json["reservationId"][-2:] for a in answers] == [user[-2:] for user in admissions]


def test_client_that_left_is_not_answered(peers, sale):
    """The reply finds nobody; the next request on the process is answered as ever."""
    token = sign_buyer(peers.shop.buyer_secret, {"sub": "alice", "exp": int(time.time()) + 60})
    head = (f"POST /sale/{sale}/reserve HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n"
            f"X-Admission-Token: {peers.sign_pass('alice', sale)}\r\nIdempotency-Key: gone\r\n\r\n").encode()
    peers.answers["hold"] = lambda request: (time.sleep(0.2), peers.held())[1]
    connection = socket.create_connection(peers.shop.address, 5)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.sendall(head)
    eventually(lambda: peers.last("hold") is not None, 5, "the gate was asked")
    connection.close()
    peers.answers["hold"] = peers.held()
    assert reserve(peers, sale).status == 201


# -- reservations --------------------------------------------------------------------------------------------------

ID = "res_" + "0" * 25 + "1"


def record(state="PENDING", **fields):
    made = PB["ledger"].ReservationReply(reservation_id=ID, sale="shop", expires_at_ms=1893456000000,
                                         state=PB["common"].ReservationState.Value(f"RESERVATION_STATE_{state}"), **fields)
    made.units.add(item=0, unit=7)
    return made


def confirm(peers, body=None, credential="", **headers):
    body = {"paymentId": "pay-1", "amount": 4900, "currency": "EUR"} if body is None else body
    bearer = {"Authorization": f"Bearer {credential or peers.shop.service}"} if credential is not None else {}
    return peers.shop.http("POST", f"/reservations/{ID}/confirm", body, {**bearer, **headers})


def test_buyer_reads_his_own(peers, sale):
    peers.answers["read"] = record("CONFIRMED", order_id="ord_1", payment_id="pay-1")
    answer = peers.shop.buyer("alice").read(ID)
    assert answer.status == 200 and answer.headers["cache-control"] == "no-store"
    assert answer.json == {"reservationId": ID, "sale": "shop", "state": "confirmed", "expiresAt": "2030-01-01T00:00:00.000Z",
                           "units": [{"sku": "shop", "unit": 7}], "orderId": "ord_1", "paymentId": "pay-1"}
    assert peers.last("read").user == b"alice" and peers.last("read").service_credential == ""
    peers.answers["read"] = record()
    by_shop = peers.shop.http("GET", f"/reservations/{ID}", None, {"Authorization": f"Bearer {peers.shop.service}"})
    assert by_shop.json["state"] == "pending" and by_shop.json["orderId"] is None
    assert peers.last("read").user == b"" and peers.last("read").service_credential == peers.shop.service


@pytest.mark.parametrize("name", ["res_0", "x", ID + "0", "res_" + "a" * 26, ID.replace("res_", "RES_"), "res_" + "I" * 26, "res_" + "Z" * 26])
def test_ids_that_are_none_are_unknown(peers, sale, name):
    for method, act in (("GET", ""), ("POST", "/cancel")):
        refused(peers.shop.buyer("alice").call(method, f"/reservations/{name}{act}"), 404, "reservation_unknown")
    refused(peers.shop.http("POST", f"/reservations/{name}/confirm", {}, {"Authorization": f"Bearer {peers.shop.service}"}), 404,
            "reservation_unknown")
    assert peers.asked == []


def test_confirm_is_the_shops_word(peers, sale):
    peers.answers["confirm"] = record("CONFIRMED", order_id="ord_9")
    answer = confirm(peers)
    assert answer.status == 200 and answer.json["orderId"] == "ord_9" and answer.json["state"] == "confirmed"
    request = peers.last("confirm")
    assert (request.payment_id, request.amount_minor, request.currency) == ("pay-1", 4900, "EUR")
    assert request.service_credential == peers.shop.service and request.reservation_id == ID
    peers.answers["confirm"] = record("CONFIRMED", order_id="ord_9", replayed=True)
    assert confirm(peers).headers["idempotent-replayed"] == "true"


def test_confirm_and_extend_without_the_credential(peers, sale):
    buyer = peers.shop.buyer("alice")
    for act in ("confirm", "extend"):
        for headers in ({}, {"Authorization": f"Bearer {buyer.token}"}, {"Authorization": "Bearer "}, {"Authorization": "Basic x"},
                        {"Authorization": "Bearer " + "x" * 300}):
            refused(peers.shop.http("POST", f"/reservations/{ID}/{act}", {}, headers), 401, "credential_required")
    refused(peers.shop.http("GET", f"/reservations/{ID}"), 401, "sign_in_required")
    refused(peers.shop.http("POST", f"/reservations/{ID}/cancel"), 401, "sign_in_required")
    assert peers.asked == []


@pytest.mark.parametrize("body,names", [
    ("", "body"), ("[]", "body"), ({}, "paymentId"), ({"paymentId": "", "amount": 1, "currency": "EUR"}, "paymentId"),
    ({"paymentId": 1, "amount": 1, "currency": "EUR"}, "paymentId"), ({"paymentId": "x" * 129, "amount": 1, "currency": "EUR"}, "paymentId"),
    ({"paymentId": "a\nb", "amount": 1, "currency": "EUR"}, "paymentId"), ({"paymentId": "p", "currency": "EUR"}, "amount"),
    ({"paymentId": "p", "amount": "1", "currency": "EUR"}, "amount"), ({"paymentId": "p", "amount": 49.0, "currency": "EUR"}, "amount"),
    ({"paymentId": "p", "amount": -1, "currency": "EUR"}, "amount"), ({"paymentId": "p", "amount": 1}, "currency"),
    ({"paymentId": "p", "amount": 1, "currency": "eur"}, "currency"), ({"paymentId": "p", "amount": 1, "currency": "EURO"}, "currency"),
    ({"paymentId": "p", "amount": 1, "currency": "EUR", "tip": 1}, "tip"), ('{"paymentId":"p","paymentId":"q","amount":1,"currency":"EUR"}', "twice"),
])
def test_payments_that_are_refused_by_name(peers, sale, body, names):
    answer = refused(confirm(peers, body), 400, "malformed")
    assert names in answer.json["detail"]
    assert peers.asked == []


@pytest.mark.parametrize("reason,status", [
    ("reservation_unknown", 404), ("reservation_expired", 409), ("reservation_cancelled", 409), ("already_paid", 409),
    ("amount_mismatch", 409), ("extension_refused", 409), ("credential_required", 401), ("forbidden", 403), ("try_again", 503),
    ("stale_epoch", 503),
])
def test_ledgers_refusals_are_told(peers, sale, reason, status):
    code = reason if reason != "stale_epoch" else "try_again"
    for act in ("read", "confirm", "extend", "cancel"):
        peers.answers[act] = PB["ledger"].ReservationReply(reason=reason)
    service = {"Authorization": f"Bearer {peers.shop.service}"}
    refused(confirm(peers), status, code)
    refused(peers.shop.extend(ID), status, code)
    refused(peers.shop.http("POST", f"/reservations/{ID}/cancel", None, service), status, code)
    refused(peers.shop.buyer("alice").read(ID), status, code)


def test_extend_and_cancel(peers, sale):
    peers.answers["extend"] = record()
    extended = peers.shop.extend(ID)
    assert extended.status == 200 and extended.json["expiresAt"] == "2030-01-01T00:00:00.000Z"
    peers.answers["cancel"] = record("CANCELLED")
    cancelled = peers.shop.buyer("alice").cancel(ID)
    assert cancelled.status == 200 and cancelled.json["state"] == "cancelled" and peers.last("cancel").user == b"alice"


@pytest.mark.parametrize("reply", [None, b"\x00\x01", PB["ledger"].ReservationReply(reservation_id="x"), record("UNSPECIFIED")])
def test_nonsense_or_silence_of_the_ledger_is_try_again(peers, sale, reply):
    for act in ("confirm", "read"):
        peers.answers[act] = reply
    refused(confirm(peers), 503, "try_again")
    refused(peers.shop.buyer("alice").read(ID), 503, "try_again")
