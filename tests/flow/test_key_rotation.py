# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/operations/keys.md, in order, while people buy: nobody valid is refused, and nothing retired is accepted."""
import os
import re
import subprocess
import threading
import time
import uuid

from conftest import ROOT
from shop import eventually

MAYBE = ("try_again",)  # unknown; the same request again finds out


def commands():
    with open(f"{ROOT}/docs/operations/keys.md", encoding="utf-8") as handle:
        return re.findall(r"^```sh\n(.*?)^```", handle.read(), re.M | re.S)


class Crowd:
    """Buyers who come, wait, hold and pay, one after the other in each thread, and people who keep asking with their first ticket."""

    def __init__(self, shop, sale):
        self.shop, self.sale, self.running = shop, sale, True
        self.bought, self.asked, self.refused = 0, 0, []
        self.threads = [threading.Thread(target=self.loop, args=(work,)) for work in (self.buy, self.buy, self.wait)]
        self.waiter = shop.buyer()
        eventually(lambda: self.waiter.ticket(sale).status == 200, 10, "the one who waits has a ticket")

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.running = False
        for thread in self.threads:
            thread.join()

    def loop(self, work):
        while self.running:
            try:
                work()
            except Exception as fault:  # whatever a thread meets is the test's
                self.refused.append(repr(fault))
                return

    def until_known(self, call):
        """Repeats the same request while its outcome is unknown."""
        def known():
            answer = call()
            return None if answer.status == 503 and answer.code in MAYBE else answer
        answer = eventually(known, 20, "an answer that is known")
        if answer.status >= 400:
            self.refused.append(repr(answer))
        return answer

    def buy(self):
        buyer, key = self.shop.buyer(), uuid.uuid4().hex
        self.until_known(lambda: buyer.ticket(self.sale))
        admission = eventually(lambda: (self.until_known(lambda: buyer.status(self.sale)).json or {}).get("admissionToken"), 20, "a pass")
        held = self.until_known(lambda: buyer.reserve(self.sale, admission, key))
        if held.status == 201:
            self.until_known(lambda: self.shop.confirm(held.json["reservationId"], f"pay-{key}"))
            self.bought += 1

    def wait(self):
        self.until_known(lambda: self.waiter.status(self.sale))
        self.asked += 1
        time.sleep(0.01)


def run(shop, block):
    environment = {**os.environ, **shop.stack.env, "PATH": f"{shop.stack.bin}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], env=environment, cwd=shop.stack.run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{block}\n{done.stdout}{done.stderr}"


def reloads(shop):
    """How often each daemon has read its keys anew."""
    return {name: shop.stack.tail(name, 100000).count('"app.reloaded"') for name in ("ledger", "reserve", "admission", "edge", "invariant")}


def test_keys_rotate_and_nobody_valid_is_refused(own_shop):
    shop = own_shop
    sale, other = shop.sale(units=5000), shop.sale(units=2)
    functions, *rotations = commands()
    old = shop.buyer()
    eventually(lambda: old.ticket(sale).status == 200, 10, "a ticket of the old key")
    old_pass = old.admission(sale)
    with open(f"{shop.stack.run}/keys/control-operator", encoding="ascii") as handle:
        old_operator = handle.read()
    with Crowd(shop, sale) as crowd:
        for block in rotations:
            before = crowd.bought
            run(shop, functions + block)
            eventually(lambda before=before: crowd.bought >= before + 3 or crowd.refused, 20, "people go on buying")
        assert min(reloads(shop).values()) >= 5
        assert shop.stack.ctl("sale", "pause", other).returncode == 0  # signed with the new key
    assert crowd.refused == [] and crowd.bought >= 9 and crowd.asked > 0
    answer = old.reserve(sale, old_pass, uuid.uuid4().hex)
    assert answer.status == 201, answer  # its pass was signed with what is now the previous key
    for key in ("ticket", "pass"):
        shop.stack.ctl("keys", "retire", key)
    run(shop, f"{functions}reload")
    eventually(lambda: old.status(sale).status in (400, 401, 403), 10, "a ticket of a retired key is refused")
    assert shop.win(sale)[3].status == 201
    with open(f"{shop.stack.run}/keys/control-operator", "w", encoding="ascii") as handle:
        handle.write(old_operator)
    done = shop.stack.ctl("sale", "pause", sale, check=False)
    assert done.returncode != 0 and "signature" in (done.stdout + done.stderr).lower(), done


def test_each_step_wants_the_one_before(own_shop):
    ctl = own_shop.stack.ctl
    assert ctl("keys", "promote", "ticket", check=False).returncode == 1
    assert ctl("keys", "retire", "ticket", check=False).returncode == 1
    assert ctl("keys", "prepare", "entrant", check=False).returncode == 2
    folder = f"{own_shop.stack.run}/keys"
    before = sorted(os.listdir(folder))
    assert "nothing was changed" in ctl("keys", "prepare", "pass", "--dry-run").stdout and sorted(os.listdir(folder)) == before
    ctl("keys", "prepare", "pass")
    assert sorted(set(os.listdir(folder)) - set(before)) == ["pass.next", "pass.next.pub"]
    assert ctl("keys", "prepare", "pass", check=False).returncode == 1
    assert os.stat(f"{folder}/pass.next").st_mode & 0o777 == 0o600
