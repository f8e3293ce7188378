# SPDX-License-Identifier: Apache-2.0
"""The waiting page: what its files promise, and what a browser makes of them."""
import gzip
import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import threading

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGE = os.path.join(ROOT, "web", "waiting")
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'"
TYPES = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript", ".json": "application/json",
         ".svg": "image/svg+xml"}


def text_of(name):
    with open(os.path.join(PAGE, name), encoding="utf-8") as handle:
        return handle.read()


def catalogues():
    names = [name for name in sorted(os.listdir(PAGE)) if name.startswith("messages.")]
    assert "messages.en.json" in names and len(names) >= 2
    return {name: json.loads(text_of(name)) for name in names}


def placeholders(message):
    forms = message.values() if isinstance(message, dict) else [message]
    return {frozenset(re.findall(r"\{(\w+)\}", form)) for form in forms}


def test_every_language_says_the_same():
    words = catalogues()
    english = words.pop("messages.en.json")
    for name, other in words.items():
        assert set(other) == set(english), name
        for key, message in english.items():
            assert placeholders(other[key]) == placeholders(message), (name, key)
            assert not isinstance(other[key], dict) or "other" in other[key], (name, key)


def test_every_message_used_exists():
    english = catalogues()["messages.en.json"]
    script = text_of("page.js")
    used = set(re.findall(r'data-t="([^"]+)"', text_of("index.html")))
    used |= {key for key in re.findall(r'say\("([\w.]+)"', script)} | set(re.findall(r'"(fault\.\w+)"', script))
    views = re.search(r"const shows = \{(.*?)\};", script, re.S).group(1)
    for view in re.findall(r"(\w+): \[", views):
        used |= {f"badge.{view}", f"{view}.headline", f"{view}.sentence"}
    assert len(used) > 60
    assert used <= set(english), used - set(english)


def test_nothing_inline_and_nothing_from_elsewhere():
    for name in ("index.html", "wait.html"):
        page = text_of(name)
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:", page), name
        assert all(re.search(r"\ssrc=", script) for script in re.findall(r"<script[^>]*>", page)), name
    for name in os.listdir(PAGE):
        if name != "README.md":
            elsewhere = set(re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text_of(name))) - {"http://www.w3.org"}
            assert not elsewhere, (name, elsewhere)


def test_it_is_small():
    sent = ["index.html", "page.css", "page.js", "icon.svg", "messages.de.json"]
    assert sum(len(gzip.compress(text_of(name).encode())) for name in sent) < 30_000


BOARD = {"state": "open", "policy": "fifo", "opensAt": "2026-01-01T10:00:00.000Z", "now": "2026-01-01T10:05:00.000Z",
         "watermark": 1000, "presentAtOpen": 0, "indexAtOpen": 0, "seed": None, "pacePerSecond": 10, "waiting": 5000,
         "remaining": 500, "held": 20, "pollSeconds": 2, "notice": None, "generation": 1, "term": 1, "version": 1}
TICKET = {"token": "t", "entrant": "0123456789ABCDEFGHJKMNPQRS", "index": 4210, "early": False, "position": 3210,
          "estimatedWaitSeconds": 402, "state": "waiting", "pollSeconds": 2}
# What SHA-256 and the rule make of this entrant and this seed; lib/pure/rank.c gives the same.
DRAWN = {"policy": "random", "seed": "00" * 32, "presentAtOpen": 1_000_000, "indexAtOpen": 1_000_000, "watermark": 0}


def drawn_rank():
    name = TICKET["entrant"].encode()
    digest = hashlib.sha256(bytes(32) + len(name).to_bytes(8, "little") + name).digest()
    return int.from_bytes(digest[:8], "big") * DRAWN["presentAtOpen"] >> 64


class Edge(http.server.BaseHTTPRequestHandler):
    """Serves the page under its policy, and for each sale name one unchanging situation."""
    sales = {
        "waiting": {},
        "drawn": DRAWN,
        "paused": {"state": "paused", "notice": "paused"},
        "sold": {"state": "sold_out", "remaining": 0, "held": 0},
        "held": {"remaining": 0, "held": 500, "notice": "all_held"},
        "turn": {"watermark": 9000},
    }

    def answer(self, status, body, content_type="application/json"):
        body = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):  # noqa: N802  (the name http.server calls)
        parts = self.path.split("?")[0].strip("/").split("/")
        if parts[0] == "waiting" and os.path.exists(os.path.join(PAGE, parts[1])):
            self.answer(200, text_of(parts[1]), TYPES[os.path.splitext(parts[1])[1]])
        elif parts[0] != "sale" or parts[1] not in self.sales:
            self.answer(404, {"error": {"code": "sale_unknown"}})
        elif len(parts) == 2:
            self.answer(200, text_of("index.html"), TYPES[".html"])
        elif parts[2] == "board":
            self.answer(200, {**BOARD, **self.sales[parts[1]]})
        elif parts[2] == "ticket":
            self.answer(200, {**TICKET, "early": parts[1] == "drawn"})
        elif parts[2] == "status":
            self.answer(401, {"error": {"code": "sign_in_required"}})
        else:
            self.answer(404, {"error": {"code": "not_found"}})

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def browse():
    """Opens an address in headless Chromium, gives the document as it stands after three virtual seconds."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: the page was not seen in a browser")
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Edge)
    threading.Thread(target=server.serve_forever, daemon=True).start()

    def see(path, *options):
        done = subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                               "--virtual-time-budget=3000", *options, "--dump-dom",
                               f"http://127.0.0.1:{server.server_port}{path}"],
                              capture_output=True, text=True, timeout=60, check=True)
        return done.stdout

    yield see
    server.shutdown()


def shown(document, element):
    return re.search(rf'id="{element}"[^>]*>([^<]*)<', document).group(1)


def state(document):
    return re.search(r'<body data-state="(\w+)"', document).group(1)


def test_browser_counts_who_is_ahead(browse):
    document = browse("/sale/waiting?lang=en")
    assert state(document) == "waiting"
    assert shown(document, "ahead") == "3,210"
    assert shown(document, "estimate") == "5 to 7 minutes"
    assert shown(document, "number") == "4,211"


def test_browser_computes_the_draw(browse):
    assert shown(browse("/sale/drawn?lang=en"), "ahead") == f"{drawn_rank():,}"


def test_browser_speaks_german(browse):
    document = browse("/sale/waiting?lang=de")
    assert '<html lang="de"' in document
    assert shown(document, "headline") == catalogues()["messages.de.json"]["waiting.headline"]


@pytest.mark.parametrize(("sale", "view", "words"), [
    ("paused", "paused", "paused"), ("sold", "sold_out", "sold_out"), ("held", "waiting", "allHeld"),
    ("turn", "signIn", "signIn")])
def test_browser_tells_the_state(browse, sale, view, words):
    document = browse(f"/sale/{sale}?lang=en")
    assert state(document) == view
    assert shown(document, "headline") == catalogues()["messages.en.json"][f"{words}.headline"]
