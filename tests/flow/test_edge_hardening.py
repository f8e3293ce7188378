# SPDX-License-Identifier: Apache-2.0
"""Who asks too often, who hides behind a proxy's header, who never finishes, and what a proxy in front makes of odd bytes."""
import concurrent.futures
import contextlib
import os
import resource
import shutil
import socket
import subprocess
import tempfile
import time

import pytest
from conftest import BUILD
from edge_peers import ROOT, Peers
from shop import eventually
from stack import StackError, free_port, listens

SALE = "sku_991"
CORPUS = os.path.join(ROOT, "tests", "corpus", "http")


@contextlib.contextmanager
def edge(**settings):
    made = Peers(BUILD, **settings)
    try:
        made.sale(SALE)
        made.answers["hold"] = made.held()
        yield made
    finally:
        made.close()


# -- how often ---------------------------------------------------------------------------------------------------------


def test_case_22_a_campus_is_served_and_an_abuser_slowed():
    with edge(rate="10", rate_burst="20") as peers:
        peers.board(SALE, watermark=0)
        tickets = [peers.get(f"/sale/{SALE}/ticket").json["token"] for _ in range(300)]
        for _ in range(3):  # 300 people behind one address, each asking as a page does
            assert {peers.get(f"/sale/{SALE}/status", X_Ticket=ticket).status for ticket in tickets} == {200}
        before = peers.get(f"/sale/{SALE}/status", X_Ticket=tickets[0]).json["position"]
        answers = [peers.get(f"/sale/{SALE}/status", X_Ticket=tickets[0]) for _ in range(200)]
        slowed = [answer for answer in answers if answer.status == 429]
        assert slowed and slowed[0].code == "rate_limited"
        assert slowed[0].headers["retry-after"] == "1"
        assert slowed[0].headers["ratelimit-policy"] == '"caller";q=20;w=2' and slowed[0].headers["ratelimit"] == '"caller";r=0;t=1'
        assert peers.get(f"/sale/{SALE}/status", X_Ticket=tickets[1]).status == 200  # nobody else pays for it
        after = eventually(lambda: (lambda a: a.status == 200 and a)(peers.get(f"/sale/{SALE}/status", X_Ticket=tickets[0])), 10, "asked again")
        assert after.json["position"] == before


def test_case_22_an_account_asking_for_places_is_slowed_and_keeps_its_own():
    with edge(rate="10", rate_burst="20") as peers:
        buyer = peers.shop.buyer("many")
        headers = {"Authorization": f"Bearer {buyer.token}"}
        first = peers.get(f"/sale/{SALE}/ticket", **headers).json["token"]
        assert 429 in {peers.get(f"/sale/{SALE}/ticket", **headers).status for _ in range(100)}
        assert 429 in {buyer.reserve(SALE, peers.sign_pass("many", SALE), f"k{n}").status for n in range(100)}
        kept = eventually(lambda: (lambda a: a.status == 200 and a)(peers.get(f"/sale/{SALE}/ticket", X_Ticket=first)), 10, "asked again")
        assert kept.json["token"] == first


def test_case_22_a_rate_below_the_advised_polls_is_refused():
    with pytest.raises(StackError, match="TIDEGATE_EDGE_RATE.*at least 2"):
        Peers(BUILD, rate="1")


def test_case_28_address_of_the_client_behind_our_proxy():
    with edge(address_rate="1", rate_burst="3", trusted_proxies="127.0.0.0/8") as peers:
        def new_places(count, forwarded):
            return [peers.get(f"/sale/{SALE}/ticket", **({"X-Forwarded-For": forwarded} if forwarded else {})).status for _ in range(count)]
        kept = peers.get(f"/sale/{SALE}/ticket", **{"X-Forwarded-For": "203.0.113.1"}).json["token"]
        assert 429 in new_places(8, "203.0.113.1")
        assert 429 in new_places(8, "1.2.3.4, 203.0.113.1")  # an invented first hop is no escape
        assert 429 in new_places(8, "203.0.113.1:53211")
        assert new_places(1, "203.0.113.2") == [200]         # nor does it lock out somebody else
        spread = [f"[2001:db8:5:5::{n:x}]:443" for n in range(8)]
        assert 429 in [status for address in spread for status in new_places(1, address)]  # one household
        assert new_places(8, None) == [200] * 8              # not known: an address rule may not cost a place
        assert new_places(8, "garbage") == [200] * 8
        again = peers.get(f"/sale/{SALE}/ticket", **{"X-Forwarded-For": "203.0.113.1", "X-Ticket": kept})
        assert again.status == 200 and again.json["token"] == kept


def test_case_28_headers_of_strangers_are_ignored():
    with edge(address_rate="1", rate_burst="3") as peers:
        statuses = [peers.get(f"/sale/{SALE}/ticket", **{"X-Forwarded-For": f"203.0.113.{n}"}).status for n in range(20)]
        assert 429 in statuses


@pytest.mark.parametrize("networks", ["10.0.0.1/8", "proxy.example", "10.0.0.0/8,,"])
def test_case_28_networks_that_are_none_are_refused(networks):
    with pytest.raises(StackError, match="TIDEGATE_EDGE_TRUSTED_PROXIES"):
        Peers(BUILD, trusted_proxies=networks)


# -- who never finishes ------------------------------------------------------------------------------------------------


def resident_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as handle:
        return next(int(line.split()[1]) for line in handle if line.startswith("VmRSS"))


def slow_peer(address, number):
    """One of four kinds: idle, a head that never ends, a body that never comes, an answer that is never read."""
    peer = socket.socket()
    if number % 4 == 3:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    peer.settimeout(20)
    peer.connect(address)
    peer.sendall((b"", b"GET /sale/sku_991/board HTTP/1.1\r\nHost: a\r\nX-Slow: ",
                  b"POST /sale/sku_991/reserve HTTP/1.1\r\nHost: a\r\nContent-Length: 4000\r\n\r\n{",
                  b"GET /sale/sku_991 HTTP/1.1\r\nHost: a\r\n\r\n" * 20)[number % 4])
    return peer


def test_eight_thousand_slow_sockets_cost_little_and_starve_nobody():
    count = 8000
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * count:
        pytest.skip(f"{hard} descriptors a process are too few for {count} sockets")
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * count if hard == resource.RLIM_INFINITY else min(hard, 20000), hard))
    try:
        with edge() as peers, contextlib.ExitStack() as opened:
            pid = peers.stack.pid("edge")
            before = resident_kib(pid)
            for number in range(count):
                opened.enter_context(slow_peer(peers.shop.address, number))
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                honest = list(pool.map(lambda _: peers.get(f"/sale/{SALE}/ticket").status, range(2000)))
            assert honest.count(200) == 2000
            assert resident_kib(pid) - before < 160 * 1024
            assert peers.stack.alive("edge")
            with slow_peer(peers.shop.address, 1) as late:  # a head that never ends is let go in time
                late.settimeout(30)
                assert late.recv(1) == b""
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# -- odd bytes through a proxy -----------------------------------------------------------------------------------------


@contextlib.contextmanager
def haproxy(upstream):
    """HAProxy as it comes, connections to the edge shared by everybody."""
    folder, port = tempfile.mkdtemp(prefix="tidegate-haproxy-"), free_port()
    with open(f"{folder}/haproxy.cfg", "w", encoding="ascii") as handle:
        handle.write(f"""defaults
    mode http
    timeout connect 5s
    timeout client 5s
    timeout server 5s
    http-reuse always
frontend people
    bind 127.0.0.1:{port}
    default_backend edges
backend edges
    server edge {upstream[0]}:{upstream[1]} pool-max-conn 1
""")
    process = subprocess.Popen(["haproxy", "-db", "-f", f"{folder}/haproxy.cfg"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        eventually(lambda: listens(port), 10, "haproxy listens")
        yield ("127.0.0.1", port)
    finally:
        process.terminate()
        process.wait(10)
        shutil.rmtree(folder)


def exchange(address, data):
    """What comes back until the other side closes or is quiet for a moment."""
    received = b""
    with contextlib.closing(socket.create_connection(address, 10)) as peer, contextlib.suppress(OSError):
        peer.sendall(data)
        peer.shutdown(socket.SHUT_WR)
        while part := peer.recv(65536):
            received += part
    return received


def test_the_framing_corpus_through_haproxy_poisons_nobody():
    """After each odd request the next honest one, over the same connection to the edge, gets its own answer."""
    names = sorted(name for name in os.listdir(CORPUS) if name.endswith(".http"))
    assert len(names) >= 100
    with edge() as peers, haproxy(peers.shop.address) as proxy:
        asked = len(peers.asked)
        for number, name in enumerate(names):
            with open(os.path.join(CORPUS, name), "rb") as handle:
                raw = handle.read().partition(b"\n")[2]
            exchange(proxy, raw)
            path = f"/sale/none-{number}/ticket"
            honest = peers.shop.http("GET", path, None, {}, proxy)
            assert (honest.status, honest.code) == (404, "sale_unknown"), name
            board = peers.shop.http("GET", f"/sale/{SALE}/board", None, {}, proxy)
            assert board.status == 200 and board.json["watermark"] == 10**9, name
        assert len(peers.asked) == asked  # and nothing of it reached the gate
