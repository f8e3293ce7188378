# SPDX-License-Identifier: Apache-2.0
"""The referee of a rehearsal, where the stores tell the same thing at different times."""
import json
import os
import signal
import subprocess
import time

from shop import eventually


def test_sold_out_for_good_is_true_from_the_ledgers_word_on(own_shop):
    """All is paid, the gate does not know yet (nobody sweeps): who asks again hears "for good", and that is no lie."""
    shop = own_shop
    sale = shop.sale(units=6, pace="5000/s")
    report = f"{shop.stack.run}/report.json"
    command = [f"{shop.stack.bin}/rehearse", "--sale", sale, "--buyers", "40", "--arrive-s", "1", "--abandon-percent", "0",
               "--pay-delay", "100ms", "--caches", "1", "--wait-until-settled", "60", "--limit-s", "60", "--out", report]
    sweeper = shop.stack.pid("sweeper")
    os.kill(sweeper, signal.SIGSTOP)
    try:
        crowd = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, **shop.stack.env})
        eventually(lambda: shop.state(sale) == "sold_out", 30, "the ledger says sold out")
        until = time.monotonic() + 8  # who has a pass comes again after 5 s
        eventually(lambda: time.monotonic() > until, 10, "the fault has lasted")
        assert shop.redis.hget(shop.gate_key(sale, "ctl"), "held:0") == b"6"
        os.kill(sweeper, signal.SIGCONT)
        crowd.wait(90)
    finally:
        os.kill(sweeper, signal.SIGCONT)
    with open(report, encoding="utf-8") as handle:
        told = json.load(handle)
    assert told["rules"]["falseSoldOutJudged"] and told["rules"]["falseSoldOut"] == 0, told["rules"]
    assert told["verdict"] == "pass", told["failures"]
