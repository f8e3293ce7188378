# SPDX-License-Identifier: Apache-2.0
"""deploy/gateways/nginx as it is, before edges of both roles: what it passes on, what it keeps, and what it says when nobody answers."""
import itertools
import json
import os
import random
import re
import shutil
import threading
import time

import pytest
from conftest import ROOT, close_shop, open_shop
from proxies import nginx
from shop import eventually
from stack import free_port

FILES = os.path.join(ROOT, "deploy", "gateways", "nginx")
PAGE = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}
WAITING = ("waiting-1", "waiting-2")


class Site:
    """A stack whose edges stand behind nginx. `shop` asks nginx only."""

    def __init__(self, shop):
        self.shop, self.stack, self.sale = shop, shop.stack, None
        self.ports = {name: str(free_port()) for name in (*WAITING, "checkout")}
        self.stack.kill("edge")
        for name in self.ports:
            self.start(name)

    def start(self, name):
        self.stack.start_daemon("edge", name, {"TIDEGATE_EDGE_ROLE": name.split("-")[0], "TIDEGATE_EDGE_PORT": self.ports[name]})

    def configuration(self, folder, port):
        """The shipped file with this machine's addresses and folders, and a log that names who was asked."""
        shutil.copytree(FILES, f"{folder}/site")
        with open(f"{FILES}/tidegate.conf", encoding="utf-8") as handle:
            text = handle.read()
        servers = " ".join(f"server 127.0.0.1:{self.ports[name]} fail_timeout=1s;" for name in WAITING)
        for shipped, here in (("server 127.0.0.1:8080 fail_timeout=1s;", servers), ("127.0.0.1:8081", f"127.0.0.1:{self.ports['checkout']}"),
                              ("listen 80;", f"listen 127.0.0.1:{port};"), ("/etc/nginx/tidegate", f"{folder}/site"),
                              ("/var/cache/nginx/tidegate", f"{folder}/cache")):
            assert shipped in text, shipped
            text = text.replace(shipped, here)
        return f"log_format asked '$status|$upstream_addr|$request_uri'; access_log {folder}/asked.log asked;\n{text}"

    def asked(self, name, route=r"[^\"]*"):
        """How many requests an edge has answered."""
        counts = re.findall(rf'^tidegate_http_requests_total{{route="{route}"}} (\d+)', self.stack.admin(name, "/metrics")[1], re.M)
        return sum(int(count) for count in counts)


@pytest.fixture(scope="module")
def site():
    shop, folder = open_shop()
    try:
        made = Site(shop)
        with nginx(made.configuration) as (address, files):
            shop.address, made.log = address, f"{files}/asked.log"
            made.sale = shop.sale(units=50, pace="50/s")
            yield made
    finally:
        close_shop(shop, folder)


class Traffic:
    """Four browsers that ask for everything of the waiting side until told to stop. They keep their places: one that
    took a new one with each request would put as many strangers before the next buyer as it is quick."""

    def __init__(self, site):
        ways = ("", "/wait?lang=de", "/ticket", "/status", "/challenge", f"/board?{random.random()}", "/policy", "/draw.json")
        self.site, self.answers, self.stopped = site, [], threading.Event()
        self.paths = [f"/sale/{site.sale}{way}" for way in ways] + ["/", "/cart", "/sale/other/reserve/", "/.well-known/jwks.json"]
        self.threads = [threading.Thread(target=self.ask, args=(n,), daemon=True) for n in range(4)]

    def ask(self, first):
        cookie = {}
        for path in itertools.islice(itertools.cycle(self.paths), first, None):
            if self.stopped.is_set():
                return
            answer = self.site.shop.http("GET", path, None, {**random.choice([PAGE, {}]), **cookie})
            if "set-cookie" in answer.headers:
                cookie = {"Cookie": answer.headers["set-cookie"].partition(";")[0]}
            self.answers.append((path, answer))

    def since(self, count):
        """As many answers to come."""
        seen = len(self.answers)
        eventually(lambda: len(self.answers) >= seen + count, 30, f"{count} more answers")
        return self.answers[seen:]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        for thread in self.threads:
            thread.join()


def is_away(answer):
    return answer.status == 503 and answer.headers.get("content-security-policy", "").startswith("default-src 'none'; style")


def test_when_all_waiting_edges_are_dead_people_are_told_to_come_back_and_nobody_passes(site):
    buyer, _, _, held = site.shop.win(site.sale)
    winner = site.shop.buyer()
    passed = winner.admission(site.sale)
    place = winner.ticket(site.sale).json["index"]
    with Traffic(site) as traffic:
        traffic.since(50)
        site.stack.kill("waiting-1")
        assert not [answer for _, answer in traffic.since(100) if is_away(answer)], "one waiting edge is enough"
        site.stack.kill("waiting-2")
        traffic.since(8)  # those that were on their way
        before = site.asked("checkout")
        with open(site.log, encoding="utf-8") as handle:
            handle.seek(0, os.SEEK_END)
            refused = traffic.since(1000)
            lines = [line.strip().split("|") for line in handle if line.endswith("\n")]
        assert site.asked("checkout") == before, "somebody passed through to the purchase path"
        mine = {f"127.0.0.1:{site.ports[name]}" for name in WAITING} | {"-", "tidegate_waiting"}
        assert len(lines) > 900 and {part for line in lines for part in re.split("[,: ]+ ", line[1])} <= mine
        assert winner.reserve(site.sale, passed).status == 201, "who has a pass still buys"
        assert buyer.read(held.json["reservationId"]).status == 200
        site.start("waiting-1")
        returned = time.monotonic()
        eventually(lambda: site.shop.http("GET", f"/sale/{site.sale}/ticket").status == 200, 5, "an edge that is back is used")
        print(f"{len(refused)} requests without a waiting edge; used again {time.monotonic() - returned:.1f} s after it was ready")
        eventually(lambda: not [a for _, a in traffic.since(50) if is_away(a)], 5, "everybody is answered again")
    site.start("waiting-2")
    kept = {path.partition("?")[0].rpartition("/")[2] for path, answer in refused if answer.status == 200}
    assert kept <= {site.sale, "board", "policy", "jwks.json"}, "only what is everybody's, as long as it says itself"
    away = [answer for _, answer in refused if answer.status != 200]
    assert len(away) > 500 and all(is_away(answer) for answer in away), "the page, for everything"
    assert {int(answer.headers["retry-after"]) for answer in away} == set(range(5, 16)), "not in step"
    assert {answer.headers["cache-control"] for answer in away} == {"no-store"}
    assert not [answer for answer in away if "set-cookie" in answer.headers]
    pages = {answer.text for answer in away if answer.headers["content-type"].startswith("text/html")}
    problems = {answer.text for answer in away if answer.headers["content-type"].startswith("application/problem+json")}
    assert len(pages) == 1 and "come back shortly" in pages.pop()
    assert len(problems) == 1
    assert winner.ticket(site.sale).json["index"] == place, "the place is kept"


def test_when_no_checkout_edge_answers_the_outcome_is_unknown(site):
    winner = site.shop.buyer()
    passed = winner.admission(site.sale)
    place = winner.ticket(site.sale).json["index"]
    site.stack.kill("checkout")
    refused = winner.reserve(site.sale, passed, "one")
    assert is_away(refused) and 5 <= int(refused.headers["retry-after"]) <= 15
    with open(f"{FILES}/away.json", encoding="utf-8") as handle:
        assert refused.json == json.load(handle)
    assert winner.ticket(site.sale).json["index"] == place, "waiting goes on"
    site.start("checkout")
    held = eventually(lambda: (lambda answer: answer if answer.status == 201 else None)(winner.reserve(site.sale, passed, "one")), 10, "a hold")
    assert winner.reserve(site.sale, passed, "one").json == held.json


def test_a_crowd_at_the_board_costs_one_request_a_second(site):
    board = f"/sale/{site.sale}/board"
    before, begun, asked = sum(site.asked(name, "board") for name in WAITING), time.monotonic(), 0
    while time.monotonic() - begun < 4:
        assert site.shop.http("GET", f"{board}?{random.random()}").status == 200
        asked += 1
    spent = time.monotonic() - begun
    origin = sum(site.asked(name, "board") for name in WAITING) - before
    print(f"{asked} boards in {spent:.1f} s were {origin} requests at the edges")
    assert asked > 100 and 1 <= origin <= spent + 2


def test_nothing_personal_is_kept(site):
    tickets = {site.shop.http("GET", f"/sale/{site.sale}/ticket").json["token"] for _ in range(20)}
    assert len(tickets) == 20
    for path in ("/away.html", "/away.json"):
        assert site.shop.http("GET", path).status == 404, "these are said, not asked for"
