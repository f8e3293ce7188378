# SPDX-License-Identifier: Apache-2.0
"""Spellings of paths, methods, origins, caches and roles: what holds for every route of the edge."""
import contextlib
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

import pytest
from conftest import BUILD
from edge_peers import PB, Peers
from proxies import nginx, varnish
from shop import eventually

ORIGIN = "https://shop.example"


@pytest.fixture(scope="module")
def peers():
    made = Peers(BUILD, cors_origins=f"{ORIGIN},http://127.0.0.1:3000", cookie_secure="1")
    made.sale("sku_991")
    made.answers["hold"] = made.held()
    yield made
    made.close()


def statuses(raw):
    """Status codes of the answers in a raw reply."""
    return [int(part[:3]) for part in raw.decode().split("HTTP/1.1 ")[1:]]


# -- case-19 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path,status", [
    ("/sale/sku_991/reserve", 403), ("/sale/sku%5F991/reserve", 403), ("/sale/sku%5f991/reserve", 403), ("/s%61le/sku_991/reserve", 403),
    ("/sale/sku_991/reserve?x", 403), ("/sale/sku_991/reserve?/../other", 403),
    ("http://shop.example/sale/sku_991/reserve", 403), ("HTTPS://shop.example:8443/sale/sku_991/reserve?y", 403),
    ("/sale/SKU_991/reserve", 404), ("/SALE/sku_991/reserve", 404), ("/sale//sku_991/reserve", 404), ("//sale/sku_991/reserve", 404),
    ("/sale/x/../sku_991/reserve", 404), ("/sale/./sku_991/reserve", 404), ("/sale/%2e%2e/sku_991/reserve", 404),
    ("/sale/sku_991%2Freserve", 404), ("/sale%2Fsku_991%2Freserve", 404), ("/sale/sku_991/reserve/", 404), ("/sale/sku_991/reserve//", 404),
    ("/sale/sku_991/Reserve", 404), ("/sale/sku%255F991/reserve", 404), ("/sale/sku_991%00/reserve", 404), ("/sale/sku_991%20/reserve", 404),
    ("/sale/sku_991;v=1/reserve", 404), ("/sale/sku_991\\reserve", 404), ("/sale/sku_991%5Creserve", 404), ("/sale/sku_991%/reserve", 404),
    ("/sale/sku_991%zz/reserve", 404), ("/sale/%F0%9F%92%A9/reserve", 404), ("/sale/" + "x" * 64 + "/reserve", 404),
    ("/sale/" + "x" * 65 + "/reserve", 404), ("/sale/" + "%41" * 64 + "/reserve", 404), ("/sale/sku_991/reserve/x/y/z", 404), ("/", 404),
    ("/sale", 404), ("/sale/", 404), ("/reasons", 405), ("/reasons/", 404), ("/Reasons", 404), ("/waiting/..%2fkeys", 404), ("/waiting/index.html", 405),
])
def test_case_19_spellings_of_the_path(peers, path, status):
    """Without a pass each spelling is the same resource with the same refusal, or not there."""
    asked = len(peers.asked)
    token = peers.shop.buyer("alice").token
    raw = peers.raw(f"POST {path} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\nIdempotency-Key: k\r\n"
                    "Content-Length: 0\r\nConnection: close\r\n\r\n".encode())
    assert statuses(raw) == [status], raw
    assert len(peers.asked) == asked


def test_case_19_pass_counts_for_the_resolved_sale(peers):
    peers.sale("SKU_991") if "SKU_991" not in peers.sales else None
    admission = peers.sign_pass("alice", "sku_991")
    buyer = peers.shop.buyer("alice")
    assert buyer.call("POST", "/sale/sku%5F991/reserve", None, X_Admission_Token=admission, Idempotency_Key="k").status == 201
    assert peers.last("hold").sale == "sku_991"
    assert buyer.call("POST", "/sale/SKU_991/reserve", None, X_Admission_Token=admission, Idempotency_Key="k").code == "pass_invalid"


# -- methods -------------------------------------------------------------------------------------------------------

GET_ROUTES = ("/sale/sku_991", "/sale/sku_991/wait", "/sale/sku_991/policy", "/sale/sku_991/board", "/sale/sku_991/ticket",
              "/sale/sku_991/status", "/.well-known/jwks.json", "/reservations/res_00000000000000000000000001")
POST_ROUTES = ("/sale/sku_991/reserve", *(f"/reservations/res_00000000000000000000000001/{act}" for act in ("confirm", "extend", "cancel")))


@pytest.mark.parametrize("path", GET_ROUTES + POST_ROUTES)
def test_other_methods_are_405_with_allow(peers, path):
    allow = "POST, OPTIONS" if path in POST_ROUTES else "GET, HEAD, OPTIONS"
    for method in ("GET", "HEAD", "PUT", "DELETE", "PATCH", "POST", "TRACE"):
        if method in allow:
            continue
        answer = peers.shop.http(method, path)
        assert answer.status == 405 and answer.headers["allow"] == allow, method
        assert answer.headers["cache-control"] == "no-store"
        assert method == "HEAD" or answer.code == "method_not_allowed"


def test_head_and_options_mint_and_spend_nothing(peers):
    def told():
        seen = len(peers.presence)
        eventually(lambda: any(p.sale == "sku_991" for p in peers.presence[seen + 1:]), 5, "presence is told")
        return [p.tickets for p in peers.presence if p.sale == "sku_991"][-1]
    buyer = peers.shop.buyer("head")
    assert buyer.ticket("sku_991").status == 200
    before, asked = told(), len(peers.asked)
    for method in ("HEAD", "OPTIONS"):
        for path in GET_ROUTES + POST_ROUTES:
            answer = peers.shop.http(method, path, None, {"Authorization": f"Bearer {buyer.token}", "X-Ticket": buyer.tickets["sku_991"],
                                                          "X-Admission-Token": peers.sign_pass("head", "sku_991"), "Idempotency-Key": "k"})
            assert answer.text == "" and "set-cookie" not in answer.headers, (method, path)
            assert answer.status == (204 if method == "OPTIONS" else 405 if path in POST_ROUTES else 200), (method, path)
    assert len(peers.asked) == asked
    assert told() == before


def test_head_tells_the_length_of_what_is_shared(peers):
    for path in ("/sale/sku_991", "/sale/sku_991/policy", "/.well-known/jwks.json"):
        full, head = peers.get(path), peers.shop.http("HEAD", path)
        assert head.status == 200 and head.text == "" and head.headers["content-length"] == full.headers["content-length"]
        assert head.headers["cache-control"] == full.headers["cache-control"]


# -- case-32 -------------------------------------------------------------------------------------------------------


def test_case_32_preflight_names_our_headers(peers):
    asked = len(peers.asked)
    answer = peers.shop.http("OPTIONS", "/sale/sku_991/reserve", None, {
        "Origin": ORIGIN, "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type,idempotency-key,x-admission-token"})
    assert answer.status == 204 and answer.text == ""
    assert answer.headers["access-control-allow-origin"] == ORIGIN and answer.headers["vary"] == "Origin"
    assert "POST" in answer.headers["access-control-allow-methods"]
    allowed = {name.strip() for name in answer.headers["access-control-allow-headers"].split(",")}
    assert {"authorization", "content-type", "idempotency-key", "x-admission-token", "x-ticket"} <= allowed
    assert len(peers.asked) == asked


def test_case_32_refusals_can_be_read_across_origins(peers):
    buyer = peers.shop.buyer("cors")
    for path, method, code in (("/sale/sku_991/reserve", "POST", "pass_required"), ("/sale/none/status", "GET", "sale_unknown"),
                               ("/nowhere", "GET", "not_found"), ("/sale/sku_991/reserve", "GET", "method_not_allowed")):
        answer = buyer.call(method, path, None, Origin=ORIGIN)
        assert answer.code == code and answer.headers["access-control-allow-origin"] == ORIGIN
        assert "Retry-After" in answer.headers["access-control-expose-headers"] and answer.headers["vary"] == "Origin"
    for origin in ("https://evil.example", "https://shop.example.evil", "https://shop.example:443", "null", "HTTPS://SHOP.EXAMPLE", ORIGIN + "/"):
        for method in ("POST", "OPTIONS"):
            answer = buyer.call(method, "/sale/sku_991/reserve", None, Origin=origin)
            assert not [name for name in answer.headers if name.startswith("access-control")], origin
            assert answer.headers["vary"] == "Origin"


def test_shared_documents_are_for_every_origin(peers):
    for path in ("/sale/sku_991/board", "/sale/sku_991/policy", "/.well-known/jwks.json"):
        answer = peers.get(path, Origin="https://anyone.example")
        assert answer.headers["access-control-allow-origin"] == "*" and "vary" not in answer.headers


def test_the_type_of_a_problem_points_at_its_meaning(peers):
    problem = peers.get("/sale/none/board").json
    address, anchor = problem["type"].split("#")
    page = peers.get(address)
    assert page.status == 200 and page.headers["content-type"].startswith("text/html")
    assert f'id="{anchor}"' in page.text and problem["title"] in page.text and 'id="stale_epoch"' not in page.text


def test_cookie_is_secure_when_told(peers):
    assert "; Secure" in peers.get("/sale/sku_991/ticket").headers["set-cookie"]


# -- case-21 -------------------------------------------------------------------------------------------------------


def test_case_21_personal_answers_are_not_stored(peers):
    buyer = peers.shop.buyer("cache")
    ticket = buyer.ticket("sku_991")
    peers.answers["pass"] = PB["admission"].PassReply(**{"pass": "a.b.c", "expires_at_ms": int(time.time() * 1000) + 60000})
    answers = [ticket, buyer.status("sku_991"), peers.get("/sale/sku_991/status?token=x"), peers.get("/sale/sku_991/wait"),
               buyer.reserve("sku_991"), buyer.reserve("sku_991", peers.sign_pass("cache", "sku_991"), "k"), peers.get("/nowhere"),
               peers.shop.http("PUT", "/sale/sku_991/ticket"), peers.get("/reservations/x")]
    for answer in answers:
        assert answer.headers["cache-control"] == "no-store", answer


def caching(upstream):
    """nginx with proxy_cache as a default set-up has it."""
    return lambda folder, port: f"""access_log off; proxy_cache_path {folder}/cache keys_zone=all:1m; server {{ listen 127.0.0.1:{port};
  location / {{ proxy_pass http://{upstream[0]}:{upstream[1]}; proxy_cache all; proxy_cache_key $uri; }} }}"""


def test_case_21_a_caching_proxy_serves_nobody_anothers_ticket(peers):
    with nginx(caching(peers.shop.address)) as (proxy, _):
        tickets = [peers.shop.http("GET", "/sale/sku_991/ticket", None, {}, proxy).json["token"] for _ in range(3)]
        assert len(set(tickets)) == 3
        peers.board("sku_991", watermark=0)
        try:
            positions = [peers.shop.http("GET", f"/sale/sku_991/status?token={t}", None, {}, proxy).json["position"] for t in tickets]
            assert len(set(positions)) == 3
        finally:
            peers.board("sku_991")
        bad = peers.shop.http("GET", "/sale/sku_991/status?token=bad", None, {}, proxy)
        good = peers.shop.http("GET", f"/sale/sku_991/status?token={tickets[0]}", None, {}, proxy)
        assert bad.status == 400 and good.status != 400
        boards = {peers.shop.http("GET", f"/sale/sku_991/board?{n}", None, {}, proxy).json["now"] for n in range(20)}
        assert len(boards) <= 2


def test_case_21_varnish_as_it_comes_keeps_what_is_everybodys_and_nothing_else(peers):
    """One board a second at the edge, whoever looks; the same answer to nobody where it is his."""
    def origin():
        return int(re.search(r'^tidegate_http_requests_total{route="board"} (\d+)', peers.stack.admin("edge", "/metrics")[1], re.M).group(1))
    with varnish(peers.shop.address) as (proxy, _):
        tickets = {peers.shop.http("GET", "/sale/sku_991/ticket", None, {}, proxy).json["token"] for _ in range(5)}
        assert len(tickets) == 5
        before, begun, looks = origin(), time.monotonic(), 0
        while time.monotonic() - begun < 3:
            assert peers.shop.http("GET", "/sale/sku_991/board", None, {}, proxy).status == 200
            looks += 1
        asked, spent = origin() - before, time.monotonic() - begun
        print(f"{looks} boards in {spent:.1f} s were {asked} requests at the edge")
        assert looks > 100 and 1 <= asked <= spent + 2


# -- framing, through the whole edge -------------------------------------------------------------------------------


def test_smuggled_request_never_runs(peers):
    asked = len(peers.asked)
    inner = (f"POST /sale/sku_991/reserve HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {peers.shop.buyer('evil').token}\r\n"
             f"X-Admission-Token: {peers.sign_pass('evil', 'sku_991')}\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n")
    for framing in (f"Content-Length: {len(inner)}\r\nTransfer-Encoding: chunked", f"Content-Length: 0\r\nContent-Length: {len(inner)}",
                    "Transfer-Encoding: identity", "Transfer-Encoding : chunked", "Content-Length: +0", "X: y\r\n Content-Length: 0"):
        raw = peers.raw(f"POST /sale/sku_991/reserve HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n0\r\n\r\n{inner}".encode())
        assert statuses(raw) == [400], framing
    assert len(peers.asked) == asked


def test_pipelined_requests_are_answered_in_order(peers):
    token = peers.shop.buyer("pipe").token
    peers.answers["hold"] = lambda request: (time.sleep(0.05), peers.held())[1]
    reserve = (f"POST /sale/sku_991/reserve HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n"
               f"X-Admission-Token: {peers.sign_pass('pipe', 'sku_991')}\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n")
    raw = peers.raw((reserve + "GET /sale/none/board HTTP/1.1\r\nHost: a\r\n\r\n" + reserve
                     + "GET /sale/sku_991/board HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").encode())
    peers.answers["hold"] = peers.held()
    assert statuses(raw) == [201, 404, 201, 200]


# -- roles, settings, life -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("role,served,hidden", [
    ("waiting", ("/sale/x", "/sale/x/board", "/sale/x/ticket"), ("/sale/x/reserve", "/reservations/res_00000000000000000000000001")),
    ("checkout", ("/sale/x/reserve", "/reservations/res_00000000000000000000000001"), ("/sale/x", "/sale/x/board", "/sale/x/ticket")),
])
def test_roles_serve_their_own_routes(role, served, hidden):
    made = Peers(BUILD, role=role)
    try:
        for path in served:
            assert made.shop.http("OPTIONS", path).status == 204, path
        for path in hidden:
            assert made.get(path).code == "not_found", path
        assert made.get("/.well-known/jwks.json").status == 200
    finally:
        made.close()


@pytest.mark.parametrize("name,value", [
    ("ROLE", "queue"), ("PORT", "70000"), ("PORT", "1e3"), ("CONNECTIONS", "0"), ("BUYER_ALGORITHM", "none"), ("CORS_ORIGINS", "shop.example"),
    ("CORS_ORIGINS", "https://a,,https://b"), ("USER_HEADER", "X User"), ("KEYS", "/nonexistent"), ("COOKIE_SECURE", "yes"),
    ("PAGE", "/nonexistent"), ("SIGN_IN_URL", "javascript:alert(1)"), ("PAY_URL", "https://shop example/"),
])
def test_bad_settings_name_themselves(peers, name, value):
    env = {**os.environ, **peers.stack.env, f"TIDEGATE_EDGE_{name}": value, "TIDEGATE_EDGE_ADMIN_PORT": "0"}
    done = subprocess.run([f"{peers.stack.bin}/tidegate-edge"], env=env, capture_output=True, text=True, timeout=20, check=False)
    assert done.returncode == 78, done
    assert name in done.stderr.upper() and value in done.stderr


def test_user_of_a_trusted_proxy():
    made = Peers(BUILD, user_header="x-user")
    try:
        name = made.sale("proxy")
        made.answers["hold"] = made.held()
        admission = {"X-Admission-Token": made.sign_pass("alice", name), "Idempotency-Key": "k"}
        assert made.shop.http("POST", f"/sale/{name}/reserve", None, {**admission, "X-User": "alice"}).status == 201
        assert made.last("hold").user == b"alice"
        assert made.shop.http("POST", f"/sale/{name}/reserve", None, {**admission, "X-User": "bob"}).code == "pass_invalid"
        assert made.shop.buyer("alice").call("POST", f"/sale/{name}/reserve", None, **admission).code == "sign_in_required"
        assert made.shop.http("POST", f"/sale/{name}/reserve", None, {**admission, "X-User": "a\x01b"}).status == 400
    finally:
        made.close()


def test_operators_own_page_goes_before_the_embedded_one():
    folder = tempfile.mkdtemp(prefix="tidegate-page-")
    for name, text in (("index.html", "<p>ours</p>"), ("wait.html", "<p>{{sale}} {{state}}</p>"), ("messages.xx.json", "{}"),
                       (".hidden.css", "x"), ("notes.txt", "x")):
        with open(f"{folder}/{name}", "w", encoding="ascii") as handle:
            handle.write(text)
    made = Peers(BUILD, page=folder)
    try:
        name = made.sale("own", watermark=0)
        assert made.get(f"/sale/{name}").text == "<p>ours</p>"
        assert made.get(f"/sale/{name}/wait").text == "<p>own waiting</p>"
        assert made.get("/waiting/messages.xx.json").json == {}
        assert made.get("/waiting/page.css").headers["content-type"].startswith("text/css")
        for hidden in (".hidden.css", "notes.txt", "wait.html", "..%2Fkeys"):
            assert made.get(f"/waiting/{hidden}").status == 404
    finally:
        made.close()
        subprocess.run(["rm", "-rf", folder], check=False)


def test_the_page_leads_to_the_shop():
    made = Peers(BUILD, sign_in_url="https://shop.example/login?a=1&sale=", pay_url="/pay?reservation=")
    try:
        name = made.sale("links", watermark=0)
        shell = made.get(f"/sale/{name}").text
        assert 'data-sign-in="https://shop.example/login?a=1&amp;sale="' in shell and 'data-pay="/pay?reservation="' in shell
        page = made.get(f"/sale/{name}/wait", Authorization="Bearer a.b.c").text
        assert 'data-state="signIn"' in page and f'href="https://shop.example/login?a=1&amp;sale={name}"' in page
    finally:
        made.close()


def test_bus_gone_is_try_again_and_comes_back():
    made = Peers(BUILD)
    try:
        name = made.sale("gone")
        made.answers["hold"] = made.held()
        buyer = made.shop.buyer("alice")
        assert buyer.ticket(name).status == 200
        made.stack.kill("nats", signal.SIGKILL)
        made.stopped.set()
        answer = buyer.reserve(name, made.sign_pass("alice", name), "k")
        assert (answer.status, answer.code) == (503, "try_again") and answer.headers["retry-after"]
        assert buyer.ticket(name).status == 200, "holders are answered"
        assert made.get(f"/sale/{name}/board").status == 200
        eventually(lambda: made.get(f"/sale/{name}/board").json["state"] == "paused", 6, "no state heard is paused")
        assert made.stack.admin("edge", "/livez")[0] == 200 and made.stack.admin("edge", "/readyz")[0] == 503
        made.stack.start_nats()
        eventually(lambda: made.stack.admin("edge", "/readyz")[0] == 200, 20, "the edge is ready again")
    finally:
        made.close()


def test_drain_finishes_what_is_in_progress():
    made = Peers(BUILD)
    try:
        name = made.sale("drain")
        made.answers["hold"] = lambda request: (time.sleep(0.5), made.held())[1]
        admission = made.sign_pass("alice", name)
        token = made.shop.buyer("alice").token
        with contextlib.closing(socket.create_connection(made.shop.address, 10)) as connection:
            connection.sendall((f"POST /sale/{name}/reserve HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n"
                                f"X-Admission-Token: {admission}\r\nIdempotency-Key: k\r\nContent-Length: 0\r\n\r\n").encode())
            eventually(lambda: made.last("hold") is not None, 5, "the gate was asked")
            made.stack.processes["edge"].terminate()
            received = b""
            while part := connection.recv(65536):
                received += part
        assert statuses(received) == [201] and b"Connection: close" in received
        assert made.stack.processes["edge"].wait(15) == 0
    finally:
        made.close()
