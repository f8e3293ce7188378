# SPDX-License-Identifier: Apache-2.0
"""deploy/gateways/passes: HAProxy and nginx let through who holds a fresh pass of the sale, and nobody else; passes as ES256."""
import base64
import contextlib
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
import time

import pytest

from conftest import ROOT, close_shop, open_shop
from shop import base64url, eventually
from stack import free_port

EXAMPLES = os.path.join(ROOT, "deploy", "gateways", "passes")
WINDOW_S = 60


class ShopPage(http.server.BaseHTTPRequestHandler):
    """The shop behind the gateway: says whose pass it was told of."""

    def do_GET(self):
        body = json.dumps({"user": self.headers.get("X-Tidegate-User", "")}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Silent."""


@pytest.fixture(scope="module")
def es256():
    """A shop whose admission signs ES256, with the key as the README makes a file of it."""
    os.environ["TIDEGATE_ADMISSION_PASS_ALGORITHM"] = "ES256"
    try:
        shop, folder = open_shop()
    finally:
        del os.environ["TIDEGATE_ADMISSION_PASS_ALGORITHM"]
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ShopPage)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    shop.page = f"127.0.0.1:{server.server_address[1]}"
    try:
        yield prepare(shop, folder)
    finally:
        server.shutdown()
        close_shop(shop, folder)


def prepare(shop, folder):
    shop.keys = shop.http("GET", "/.well-known/jwks.json").json["keys"]
    with open(f"{EXAMPLES}/README.md", encoding="utf-8") as handle:
        script = re.search(r"^```\n(curl -s.*?)^```$", handle.read(), re.M | re.S).group(1)
    subprocess.run(["bash", "-ec", script], cwd=folder, env={**os.environ, "EDGE": shop.stack.env["TIDEGATE_EDGE_URL"]}, check=True)
    shop.pem = f"{folder}/pass.pem"
    shop.name = shop.sale(units=3)
    shop.holder = shop.buyer("usr_4711")
    shop.fresh = shop.holder.admission(shop.name)
    return shop


def parts(token):
    return [json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in token.split(".")[:2]]


def signed(shop, head=None, **claims):
    """A pass as admission would sign it, changed; the signature is right."""
    ec = next(key for key in shop.keys if key["alg"] == "ES256")
    private = {**ec, "d": base64url(bytes.fromhex(shop.key("pass-es256.current")))}
    old_head, old_claims = parts(shop.fresh)
    text = ".".join(base64url(json.dumps({**old, **new}).encode()) for old, new in ((old_head, head or {}), (old_claims, claims)))
    program = """const crypto = require('crypto'), [key, text] = process.argv.slice(1);
        process.stdout.write(crypto.sign('sha256', text, {key: crypto.createPrivateKey({key: JSON.parse(key), format: 'jwk'}),
            dsaEncoding: 'ieee-p1363'}).toString('base64url'));"""
    done = subprocess.run(["node", "-e", program, json.dumps(private), text], capture_output=True, text=True, check=True)
    return f"{text}.{done.stdout}"


def test_a_library_that_is_not_ours_verifies_an_es256_pass(es256):
    head, claims = parts(es256.fresh)
    ec = next(key for key in es256.keys if key["alg"] == "ES256")
    assert head == {"alg": "ES256", "typ": "tg-pass+jwt", "kid": ec["kid"]} and claims["aud"] == es256.name
    assert {key["alg"] for key in es256.keys} == {"EdDSA", "ES256"} and len({key["kid"] for key in es256.keys}) == 2
    text, signature = es256.fresh.rsplit(".", 1)
    program = """const crypto = require('crypto'), [key, text, signature] = process.argv.slice(1);
        process.exit(crypto.verify('sha256', text, {key: crypto.createPublicKey({key: JSON.parse(key), format: 'jwk'}),
            dsaEncoding: 'ieee-p1363'}, Buffer.from(signature, 'base64url')) ? 0 : 1);"""
    for tried, code in ((text, 0), (text[:-1] + ("A" if text[-1] != "A" else "B"), 1)):
        assert subprocess.run(["node", "-e", program, json.dumps(ec), tried, signature], check=False).returncode == code


def test_an_es256_pass_buys_and_asking_again_is_the_same_pass(es256):
    buyer = es256.buyer()
    first = buyer.admission(es256.name)
    again = buyer.status(es256.name).json["admissionToken"]
    one, other = parts(first)[1], parts(again)[1]
    assert one == other or one["iat"] + WINDOW_S == other["iat"]  # the minute may have turned
    held = buyer.reserve(es256.name, first, "k")
    assert held.status == 201 and buyer.reserve(es256.name, again, "k").json == held.json
    broken = first[:-10] + ("A" if first[-10] != "A" else "B") + first[-9:]
    assert buyer.reserve(es256.name, broken, "other").code == "pass_invalid"


def test_both_algorithms_count_whatever_admission_signs_now(es256):
    buyer = es256.buyer()
    es256.stack.kill("admission")
    es256.stack.start_daemon("admission")  # EdDSA, by default
    try:
        admission = eventually(lambda: buyer.admission(es256.name), 15, "a pass again")
        assert parts(admission)[0]["alg"] == "EdDSA"
        assert buyer.reserve(es256.name, admission, "k").status == 201
        assert es256.holder.reserve(es256.name, es256.fresh, "k").status in (201, 403)  # ES256; used up, or expired meanwhile
    finally:
        es256.stack.kill("admission")
        es256.stack.start_daemon("admission", env={"TIDEGATE_ADMISSION_PASS_ALGORITHM": "ES256"})


def test_an_algorithm_nobody_knows_is_refused_at_start(es256):
    done = subprocess.run([f"{es256.stack.bin}/tidegate-admission"], env={**os.environ, **es256.stack.env, "TIDEGATE_ADMISSION_PASS_ALGORITHM": "none"},
                          capture_output=True, text=True, check=False, timeout=20)
    assert done.returncode != 0 and "expected EdDSA or ES256" in done.stderr


@contextlib.contextmanager
def haproxy(shop):
    port = free_port()
    process = subprocess.Popen(["haproxy", "-db", "-f", f"{EXAMPLES}/haproxy.cfg"], stderr=subprocess.PIPE, env={
        **os.environ, "TIDEGATE_SALE": shop.name, "TIDEGATE_PASS_KEY": shop.pem, "SHOP": shop.page, "LISTEN": f"127.0.0.1:{port}"})
    try:
        yield port, process
    finally:
        process.terminate()
        process.wait(10)


@contextlib.contextmanager
def nginx(shop):
    port, folder = free_port(), os.path.dirname(shop.pem)
    shutil.copy(f"{EXAMPLES}/pass.js", folder)
    with open(f"{EXAMPLES}/nginx.conf", encoding="utf-8") as handle:
        site = handle.read()
    for theirs, ours in (("/etc/nginx/tidegate/pass.pem", shop.pem), ("js_path /etc/nginx/tidegate", f"js_path {folder}"),
                         ("127.0.0.1:8443", f"127.0.0.1:{port}"), ("127.0.0.1:9000", shop.page), ("summer", shop.name)):
        assert theirs in site
        site = site.replace(theirs, ours)
    with open(f"{folder}/nginx.conf", "w", encoding="utf-8") as handle:
        handle.write(f"load_module /usr/lib/nginx/modules/ngx_http_js_module.so;\ndaemon off;\nuser root;\npid {folder}/nginx.pid;\n"
                     f"error_log {folder}/error.log;\nevents {{}}\nhttp {{\naccess_log off;\n{site}}}\n")
    process = subprocess.Popen(["nginx", "-p", folder, "-c", f"{folder}/nginx.conf"], stderr=subprocess.PIPE)
    try:
        yield port, process
    finally:
        process.terminate()
        process.wait(10)


@pytest.mark.parametrize("gateway", [haproxy, nginx], ids=["haproxy", "nginx"])
def test_a_gateway_lets_through_who_holds_a_fresh_pass_of_the_sale(es256, gateway):
    with gateway(es256) as (port, process):
        def ask(admission=None, path="/checkout/pay", **headers):
            shown = {**({"X-Admission-Token": admission} if admission else {}), **headers}
            return es256.http("GET", path, None, shown, ("127.0.0.1", port))

        def listens():
            assert process.poll() is None, process.stderr.read().decode()
            with contextlib.suppress(OSError):
                return ask(path="/").status == 200
            return False
        eventually(listens, 15, "the gateway listens")
        now = int(time.time()) // WINDOW_S * WINDOW_S
        good = signed(es256, exp=now + 2 * WINDOW_S)
        assert json.loads(ask(good).text) == {"user": "usr_4711"}
        assert json.loads(ask(good, X_Tidegate_User="mallory").text) == {"user": "usr_4711"}
        assert json.loads(ask(path="/", X_Tidegate_User="mallory").text) == {"user": ""}
        text, signature = good.rsplit(".", 1)
        eddsa = base64url(json.dumps({"alg": "EdDSA", "typ": "tg-pass+jwt", "kid": "00000000"}).encode())
        refused = {
            "none": None, "nonsense": "x", "no signature": f"{text}.", "an empty part": "..", "another signature": f"{text}.{base64url(bytes(64))}",
            "another text": f"{text[:-4]}AAAA.{signature}", "expired": signed(es256, exp=now - 1), "of another sale": signed(es256, aud="winter"),
            "of another issuer": signed(es256, iss="shop"), "of another kind": signed(es256, {"typ": "JWT"}, exp=now + 120),
            "unsigned": base64url(b'{"alg":"none","typ":"tg-pass+jwt"}') + "." + text.split(".")[1] + ".",
            "of another algorithm": f"{eddsa}.{text.split('.')[1]}.{signature}", "without an end": signed(es256, exp=None)}
        for why, admission in refused.items():
            assert ask(admission).status == 403, (gateway.__name__, why)
