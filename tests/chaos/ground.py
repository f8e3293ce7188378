# SPDX-License-Identifier: Apache-2.0
"""The ground a fault happens on: one private stack, one small sale under load, and the referee who judges afterwards."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tools", "stack"), os.path.join(ROOT, "tests", "flow")]

from shop import NotSo, Shop, eventually  # noqa: E402  (needs the paths above)
from stack import DAEMONS, Stack, StackError  # noqa: E402

RULES = {  # rule -> members of rehearse's report that break it
    "R1": ("oversold", "overLimit"),
    "R2": ("leaked",),
    "R3": ("lostHolds", "wrongHolds", "wrongOrders"),
    "R4": ("soldOutAfterWin", "twoReservationsForOneKey"),
    "R5": ("falseSoldOut",),
    "R6": ("falseAlarms", "alarmMissing"),
    "R7": ("heldWhilePaused",),
}


class Failed(Exception):
    """What was to be shown did not happen; the message says what did."""


def resting(seconds):
    """Lets a fault last: returns after so long."""
    threading.Event().wait(seconds)


class Outcome:
    """What one cell or scenario brought: the referee's numbers, what else was seen, and why it failed, if it did."""

    def __init__(self, name):
        self.name, self.hits, self.report, self.why, self.seconds, self.notes, self.skipped = name, 0, None, [], 0.0, {}, ""

    @property
    def good(self):
        return not self.why and not self.skipped

    def rule(self, rule):
        """Violations of one rule; None where it could not be judged."""
        rules = (self.report or {}).get("rules")
        if rules is None or (rule == "R5" and not rules["falseSoldOutJudged"]):
            return None
        return sum(int(rules[member]) for member in RULES[rule])

    def number(self, member):
        return (self.report or {}).get(member)


class Ground:
    """One stack that takes several sales, one after the other. Use as a context."""

    def __init__(self, build, host="127.0.0.1"):
        self.folder = tempfile.mkdtemp(prefix="tidegate-chaos-")
        os.chmod(self.folder, 0o711)
        self.stack = Stack(os.path.join(self.folder, "run"), build, quiet=True)
        self.rules_file = f"{self.stack.run}/failpoints"
        self.stack.env["TIDEGATE_FAILPOINTS_FILE"] = self.rules_file
        self.sales, self.keep = 0, False

    def __enter__(self):
        self.stack.start()
        self.shop = Shop(self.stack)
        return self

    def __exit__(self, kind, value, trace):
        for name in list(self.stack.processes):
            if not self.stack.alive(name):
                self.stack.kill(name)  # it is gone: only collected
        self.stack.stop()
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)

    # -- failpoints ------------------------------------------------------------------------------------------------

    def arm(self, rules):
        """These rules hold from now on, in every daemon; '' disarms."""
        with open(f"{self.rules_file}.new", "w", encoding="ascii") as handle:
            handle.write(rules)
        os.rename(f"{self.rules_file}.new", self.rules_file)

    def log_size(self, daemon):
        return os.path.getsize(f"{self.stack.run}/log/{daemon}.log")

    def hits(self, daemon, point, since):
        """How often a point has acted since the log had this size."""
        with open(f"{self.stack.run}/log/{daemon}.log", "rb") as handle:
            handle.seek(since)
            return handle.read().count(b'"event":"failpoint.hit","point":"' + point.encode() + b'"')

    # -- processes -------------------------------------------------------------------------------------------------

    def frozen(self, name):
        """Whether a process stands still."""
        try:
            with open(f"/proc/{self.stack.pid(name)}/stat", encoding="ascii", errors="replace") as handle:
                return handle.read().rsplit(")", 1)[1].split()[0] == "T"
        except OSError:
            return False

    def ended(self, name):
        """The code a process has ended with, None while it runs."""
        return self.stack.processes[name].poll()

    def restart(self, daemon, env=None, ready=True):
        """What a supervisor does about a process that is gone."""
        if daemon in self.stack.processes:
            self.stack.kill(daemon)
        self.stack.start_daemon(daemon, env=env, ready=ready)

    def dead(self):
        """Processes that have ended although nobody killed them."""
        return [f"{name} ended with {self.ended(name)}" for name in self.stack.processes if not self.stack.alive(name)]

    def whole(self, seconds=30):
        """Waits until every daemon is ready again."""
        for daemon in DAEMONS:
            self.stack.wait_ready(daemon, seconds)

    # -- a sale ----------------------------------------------------------------------------------------------------

    def open_sale(self, units=120, hold="1500ms", grace="300ms", **options):
        self.sales += 1
        return self.shop.sale(name=f"chaos-{self.sales}-{os.urandom(3).hex()}", units=units, hold=hold, grace=grace, **options)

    def close_sale(self, sale):
        self.stack.ctl("sale", "close", sale, check=False)

    def play(self, sale, buyers=130, arrive_s=1, pay="300ms", abandon=10, settle_s=60, limit_s=90, corrupted=False):
        """Lets the buyers in; returns the running crowd. Its verdict is `verdict`'s to read."""
        report = f"{self.stack.run}/{sale}.json"
        command = [f"{self.stack.bin}/rehearse", "--sale", sale, "--buyers", str(buyers), "--arrive-s", str(arrive_s),
                   "--abandon-percent", str(abandon), "--duplicate-percent", "20", "--pay-delay", pay, "--connections", "64",
                   "--caches", "2", "--wait-until-settled", str(settle_s), "--limit-s", str(limit_s), "--faults", "--out", report]
        with open(f"{self.stack.run}/log/rehearse.log", "ab") as log:
            return subprocess.Popen(command + (["--corrupted"] if corrupted else []), stdout=log, stderr=log,
                                    env={**os.environ, **self.stack.env})

    def held(self, sale):
        """Reservations so far."""
        return self.shop.ledger("SELECT count(*) FROM tidegate.reservations WHERE sale = %s AND NOT tombstone", sale)[0][0]

    def wait_held(self, sale, count, crowd, seconds=40):
        """Until so many units were taken, or nobody plays any more."""
        eventually(lambda: self.held(sale) >= count or crowd.poll() is not None, seconds, f"{count} holds in {sale}")

    def operate(self, *arguments, seconds=60):
        """An operator's command, repeated while its outcome is unknown or it is not allowed yet: what an operator would do."""
        def done():
            command = self.stack.ctl("sale", *arguments, check=False)
            return command if command.returncode not in (1, 69) else None
        command = eventually(done, seconds, f"tidegatectl sale {' '.join(arguments)}")
        if command.returncode:
            raise Failed(f"tidegatectl sale {' '.join(arguments)}: exit {command.returncode}: {command.stderr.strip()}")

    def rebuild(self, sale):
        """The operator's way out of an incident."""
        self.operate("rebuild", sale)
        self.operate("resume", sale, "--wait", "20s")

    def verdict(self, sale, crowd, outcome, seconds=180):
        """Waits for the crowd to end and takes over what the referee found."""
        try:
            crowd.wait(seconds)
        except subprocess.TimeoutExpired:
            crowd.kill()
            crowd.wait()
            outcome.why.append(f"the sale has not ended after {seconds} s")
        path = f"{self.stack.run}/{sale}.json"
        if not os.path.exists(path):
            outcome.why.append(f"no report of the crowd (exit {crowd.returncode})")
            return
        with open(path, encoding="utf-8") as handle:
            outcome.report = json.load(handle)
        outcome.why += outcome.report["failures"]
        if "falseSoldOutFirst" in outcome.report["rules"]:
            outcome.why.append(f"first {outcome.report['rules']['falseSoldOutFirst']}")
        if crowd.returncode and not outcome.report["failures"]:
            outcome.why.append(f"the crowd ended with {crowd.returncode}")

    def converged(self, sale, outcome):
        """Nothing is left over: every process lives and is ready, the sale is not paused, every event is published."""
        outcome.why += self.dead()
        try:
            self.whole()
            eventually(lambda: self.shop.state(sale) in ("open", "sold_out"), 10, f"{sale} is not paused")
            eventually(lambda: not self.shop.ledger("SELECT count(*) FROM tidegate.outbox WHERE published_at IS NULL")[0][0], 20,
                       "every event is published")
        except (StackError, NotSo) as fault:
            outcome.why.append(re.sub(r"\s+", " ", str(fault))[:300])


def judged(ground, sale, crowd, outcome, seconds=180):
    """The end of every cell and scenario."""
    ground.verdict(sale, crowd, outcome, seconds)
    ground.converged(sale, outcome)
    ground.close_sale(sale)


__all__ = ["DAEMONS", "Failed", "Ground", "NotSo", "Outcome", "ROOT", "RULES", "Shop", "Stack", "StackError", "eventually", "judged",
           "resting", "signal", "time"]
