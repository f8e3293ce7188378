# SPDX-License-Identifier: Apache-2.0
"""The referee of a rehearsal, where the stores tell the same thing at different times."""
import json
import os
import signal
import subprocess
import time

from shop import eventually


def crowd_of(shop, sale, *options):
    """(the running crowd, where its report will be): 40 buyers, who are all told within a minute."""
    report = f"{shop.stack.run}/{sale}.json"
    command = [f"{shop.stack.bin}/rehearse", "--sale", sale, "--buyers", "40", "--arrive-s", "1", "--abandon-percent", "0", "--caches", "1",
               "--wait-until-settled", "60", "--limit-s", "60", "--out", report, *options]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, env={**os.environ, **shop.stack.env}), report


def read(report):
    with open(report, encoding="utf-8") as handle:
        return json.load(handle)


def lasts(seconds):
    until = time.monotonic() + seconds
    eventually(lambda: time.monotonic() > until, seconds + 2, "the fault has lasted")


def test_sold_out_for_good_is_true_from_the_ledgers_word_on(own_shop):
    """All is paid, the gate does not know yet (nobody sweeps): who asks again hears "for good", and that is no lie."""
    shop = own_shop
    sale = shop.sale(units=6, pace="5000/s")
    sweeper = shop.stack.pid("sweeper")
    os.kill(sweeper, signal.SIGSTOP)
    try:
        crowd, report = crowd_of(shop, sale, "--pay-delay", "100ms")
        eventually(lambda: shop.state(sale) == "sold_out", 30, "the ledger says sold out")
        lasts(8)  # who has a pass comes again after 5 s
        assert shop.redis.hget(shop.gate_key(sale, "ctl"), "held:0") == b"6"
        os.kill(sweeper, signal.SIGCONT)
        crowd.communicate(timeout=90)
    finally:
        os.kill(sweeper, signal.SIGCONT)
    told = read(report)
    assert told["rules"]["falseSoldOutJudged"] and told["rules"]["falseSoldOut"] == 0, told["rules"]
    assert told["verdict"] == "pass", told["failures"]


def test_a_run_that_its_own_generator_bounded_is_void(own_shop):
    """Frozen in the middle of the sale, everybody it plays is late: that says nothing about the engine."""
    shop = own_shop
    sale = shop.sale(units=6, pace="5000/s")
    crowd, report = crowd_of(shop, sale, "--pay-delay", "2s")
    try:
        eventually(lambda: shop.ledger("SELECT count(*) FROM tidegate.reservations WHERE sale = %s", sale)[0][0], 30, "a unit is held")
        crowd.send_signal(signal.SIGSTOP)
        lasts(11)
        crowd.send_signal(signal.SIGCONT)
        said = crowd.communicate(timeout=150)[1]
    finally:
        crowd.kill()
    told = read(report)
    assert crowd.returncode == os.EX_TEMPFAIL and told["verdict"] == "void", told
    assert told["client"]["lateSeconds"] > 10 and "stretch --arrive-s" in told["failures"][-1], told
    assert said.startswith("40 buyers come within 3 s"), said[:200]
