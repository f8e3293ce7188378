#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The browser tests: a stack of its own with a sale for every state, then Chromium over all of them. See README.md."""
import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tools", "stack"))
sys.path.insert(0, os.path.join(ROOT, "tests", "flow"))

from shop import Shop, eventually  # noqa: E402  (needs the paths above)
from stack import Stack, free_port  # noqa: E402

LIMIT_S = 900


def crowd(shop, sale, count):
    """So many visitors take their places."""
    for _ in range(count):
        answer = shop.http("GET", f"/sale/{sale}/ticket")
        assert answer.status == 200, answer


# Sales that are open; all are declared before the first is waited for.
SALES = {
    "fast": {"name": "summer-festival", "units": 500, "hold": "30m"},  # outlives the run
    "waiting": {"name": "winter-concert", "units": 30, "pace": "1/s", "pace_max": "1/s"},
    **{f"near-{n}": {"name": f"night-train-{n}", "units": 1000, "pace": "1/s", "pace_max": "1/s"} for n in range(6)},
    "all held": {"name": "one-piece", "units": 1}, "sold out": {"units": 1},
    "paused": {"name": "paused-sale", "units": 50}, "closed": {"name": "last-year", "units": 5},
    "challenge": {"name": "limited-edition", "units": 50, "challenge": "ticket"},
    "line": {"units": 1, "pace": "1/s", "pace_max": "1/s"}, "pass": {"units": 20, "challenge": "pass"},
    "ticket": {"units": 20, "challenge": "ticket"}, "patience": {"units": 20, "challenge": "ticket"},
}


def open_sales(shop):
    """The name of every sale of SALES, once it is open."""
    names = {key: shop.apply(**options) for key, options in SALES.items()}
    for name in names.values():
        shop.wait_open(name)
    return names


def reserved(shop, sale, act=None):
    """A buyer who holds a unit: what the page keeps for him."""
    buyer, _, _, held = shop.win(sale)
    reservation = held.json["reservationId"]
    if act:
        assert act(buyer, reservation).status == 200
    return {"buyer": buyer.token, "reservation": reservation}


def prepare(shop, sales):
    """One sale per state; what a page of that state needs besides."""
    fast = sales["fast"]
    crowd(shop, sales["waiting"], 3000)  # the line passes people who are not there up to five times as fast
    shop.win(sales["all held"])
    reserved(shop, sales["sold out"], lambda _, reservation: shop.confirm(reservation))
    shop.stack.ctl("sale", "pause", sales["paused"], "--cause", "price label is wrong")
    shop.stack.ctl("sale", "close", sales["closed"])
    scheduled = shop.apply(name="spring-opening", units=3000, opens_in=3 * 86400)
    for sale, state in ((sales["paused"], "paused"), (sales["closed"], "closed"), (sales["sold out"], "sold_out"), (scheduled, "scheduled")):
        eventually(lambda: shop.board(sale).get("state") == state, 20, state)  # noqa: B023  (used before the next turn)
    return {
        "scheduled": {"sale": scheduled}, "challenge": {"sale": sales["challenge"]}, "waiting": {"sale": sales["waiting"]},
        "near": {"sales": [sales[f"near-{n}"] for n in range(6)]},
        "allHeld": {"sale": sales["all held"]}, "paused": {"sale": sales["paused"]}, "signIn": {"sale": fast},
        "turn": {"sale": fast, "keep": {"buyer": shop.buyer().token}},
        "held": {"sale": fast, "keep": reserved(shop, fast)},
        "bought": {"sale": fast, "keep": reserved(shop, fast, lambda _, reservation: shop.confirm(reservation))},
        "lapsed": {"sale": fast, "keep": reserved(shop, fast, lambda buyer, reservation: buyer.cancel(reservation))},
        "sold_out": {"sale": sales["sold out"]}, "closed": {"sale": sales["closed"]}, "trouble": {"sale": fast},
        "unknown": {"sale": "no-such-sale"},
    }


def shops_edge(stack):
    """The address of a second edge, whose page leads to the shop."""
    port = str(free_port())
    stack.start_daemon("edge", "edge-shop", {"TIDEGATE_EDGE_PORT": port, "TIDEGATE_EDGE_SIGN_IN_URL": "https://shop.example/login?sale=",
                                             "TIDEGATE_EDGE_PAY_URL": "https://shop.example/pay?reservation="})
    return f"http://127.0.0.1:{port}"


def journeys(shop, sales):
    """Sales that a whole way through is walked in, one each."""
    with open(f"{shop.stack.env['TIDEGATE_KEYS']}/entrant", encoding="ascii") as handle:
        entrant = bytes.fromhex(handle.read().split()[-1])
    domain = b"tidegate challenge key"
    secret = hashlib.blake2b(len(domain).to_bytes(8, "little") + domain, key=entrant).hexdigest()[:64]
    return {"shop": {"base": shops_edge(shop.stack), "sale": sales["fast"], "buyer": shop.buyer().token}, "line": sales["line"], "buyers": [shop.buyer().token, shop.buyer().token], "service": shop.service,
            "ticket": sales["ticket"], "pass": sales["pass"], "patience": sales["patience"], "secret": secret,
            "away": os.path.join(ROOT, "deploy", "gateways", "nginx", "away.html")}


def walk(shop, plan, only):
    """Runs the scripts in Node; returns their results as (name, fault or None)."""
    with open(f"{shop.stack.run}/plan.json", "w", encoding="utf-8") as handle:
        json.dump(plan, handle)
    command = ["node", os.path.join(HERE, "main.mjs"), handle.name, *([only] if only else [])]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        try:
            for line in process.stdout:
                word, _, rest = line.rstrip("\n").partition(" ")
                if word == "queue-down":  # the pages have been seen: now nobody gives places
                    shop.stack.kill("queue")
                else:
                    yield word, rest
        finally:
            process.terminate()
    if process.returncode > 0:
        yield "FAIL", f"node ended with {process.returncode}"


def main():
    parser = argparse.ArgumentParser(prog="tools/dev browser", description=__doc__)
    parser.add_argument("--only", help="only states and journeys whose name contains this")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="build folder (default: build/release)")
    options = parser.parse_args()
    if subprocess.run([os.path.join(ROOT, "tools", "npm", "setup.sh")], check=False).returncode:
        return 1
    shots = os.path.join(ROOT, "build", "browser", "screenshots")
    if not options.only:
        shutil.rmtree(shots, ignore_errors=True)
    os.makedirs(shots, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="tidegate-browser-")
    os.chmod(folder, 0o711)
    stack = Stack(os.path.join(folder, "run"), os.path.abspath(options.build), quiet=True)
    passed, failed, begun = 0, 0, time.monotonic()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the stack is stopped then too
    stack.start()
    try:
        shop = Shop(stack)
        sales = open_sales(shop)
        plan = {"base": stack.env["TIDEGATE_EDGE_URL"], "states": prepare(shop, sales), "journeys": journeys(shop, sales), "shots": shots,
                "modules": os.path.join(ROOT, "build", "npm", "node_modules"), "limitMs": LIMIT_S * 1000}
        print(f"a stack and its sales: {time.monotonic() - begun:.0f} s", flush=True)
        for word, rest in walk(shop, plan, options.only):
            passed += word == "ok"
            failed += word == "FAIL"
            print(word, rest, flush=True)
    finally:
        stack.stop()
        shutil.rmtree(folder, ignore_errors=True)
    with open(os.path.join(ROOT, "docs", "pages.md"), encoding="utf-8") as handle:
        promised = int(re.search(r"`, (\d+) of them", handle.read()).group(1))
    taken = len(os.listdir(shots))
    if not options.only and taken != promised:
        failed += 1
        print(f"FAIL screenshots: {taken} were taken, docs/pages.md promises {promised}")
    if passed == 0:
        failed += 1
        print("FAIL nothing was tested")
    print(f"{time.monotonic() - begun:.0f} s, screenshots in {os.path.relpath(shots, ROOT)}")
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
