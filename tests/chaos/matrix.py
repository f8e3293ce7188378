# SPDX-License-Identifier: Apache-2.0
"""The kill matrix: every failpoint of the catalogue times kill, stop, error and delay, each in a sale of its own."""
import os
import re
import signal
import threading

from ground import ROOT, Failed, NotSo, Outcome, StackError, eventually, judged, resting

ACTIONS = ("kill", "stop", "error", "delay")
STOP_S = 4  # longer than the lease (3 s) and than any state counts as fresh (3 s)
REPEATS = {"kill": "", "stop": "", "error": "+3", "delay": "+5"}
DELAY_MS = 400

# At which hit the fault happens, counted from the first buyer; points not named here: the 40th, which is mid-sale.
FIRST = {
    "queue.leased": 1, "queue.board": 5, "reserve.obey": 2, "reserve.obeyed": 2, "reserve.attest": 2, "ledger.record": 5,
    "ledger.recorded": 5, "ledger.confirm": 20, "ledger.confirmed": 20, "ledger.expire": 1, "ledger.expired": 1,
    "ledger.obeyed": 2, "ledger.published": 2, "sweeper.due": 1, "sweeper.verdict": 2, "sweeper.obeyed": 2,
    "invariant.attest": 2, "invariant.export": 2,
    # these belong to what an operator or the checker does in mid-sale
    "reserve.load_page": 1, "reserve.arm": 1, "reserve.armed": 1, "ledger.snapshot": 1, "ledger.armed": 1, "ledger.judged": 1,
    "invariant.pause": 1, "invariant.paused": 1,
}
REBUILD = {"reserve.load_page", "reserve.arm", "reserve.armed", "ledger.snapshot", "ledger.armed", "ledger.judged"}
CORRUPT = {"invariant.pause", "invariant.paused"}


def points():
    """The names of catalog/failpoints.def, in its order."""
    with open(os.path.join(ROOT, "catalog", "failpoints.def"), encoding="utf-8") as handle:
        return re.findall(r'^TG_POINT\(\w+, "([a-z_.]+)"', handle.read(), re.M)


def cells():
    return [(point, action) for point in points() for action in ACTIONS]


def rule(point, action):
    delay = f":{DELAY_MS}" if action == "delay" else ""
    return f"{point}={action}{delay}@{FIRST.get(point, 40)}{REPEATS[action]}"


class Operator(threading.Thread):
    """Rebuilds the gate in mid-sale, whatever happens to the commands on their way."""

    def __init__(self, ground, sale):
        super().__init__(daemon=True)
        self.ground, self.sale, self.fault = ground, sale, None

    def run(self):
        try:
            self.ground.rebuild(self.sale)
        except (Failed, NotSo, StackError) as fault:
            self.fault = str(fault)


def corrupt(ground, sale):
    """A foreign INCR: somebody writes the gate who should not."""
    ground.shop.redis.hincrby(ground.shop.gate_key(sale, "ctl"), "stock:0", 1)


def take_effect(ground, daemon, action):
    """What becomes of the process, and what its supervisor does."""
    if action == "kill":
        eventually(lambda: ground.ended(daemon) is not None, 10, f"{daemon} is killed")
        if ground.ended(daemon) != -signal.SIGKILL:
            raise Failed(f"{daemon} ended with {ground.ended(daemon)}, not by the failpoint")
        ground.arm("")
        ground.restart(daemon)
    elif action == "stop":
        eventually(lambda: ground.frozen(daemon), 10, f"{daemon} is frozen")
        resting(STOP_S)
        ground.arm("")
        os.kill(ground.stack.pid(daemon), signal.SIGCONT)


def strike(ground, sale, point, action, outcome):
    """The sale, and the fault in it. Returns the crowd."""
    daemon = point.split(".")[0]
    since = ground.log_size(daemon)
    operator = None
    if point not in REBUILD | CORRUPT:
        ground.arm(rule(point, action))
    crowd = ground.play(sale, corrupted=point in CORRUPT)
    if point in REBUILD | CORRUPT:
        ground.wait_held(sale, 30, crowd)
        ground.arm(rule(point, action))
    if point in REBUILD:
        operator = Operator(ground, sale)
        operator.start()
    if point in CORRUPT:
        corrupt(ground, sale)
    try:
        eventually(lambda: ground.hits(daemon, point, since) > 0 or crowd.poll() is not None, 60, f"{point} is hit")
        outcome.hits = ground.hits(daemon, point, since)
        if outcome.hits > 0:
            take_effect(ground, daemon, action)
    finally:
        if point in CORRUPT:
            eventually(lambda: ground.shop.state(sale) == "paused", 20, f"{sale} is paused by the checker")
            ground.rebuild(sale)
        if operator:
            operator.join(90)
            outcome.why += [operator.fault] if operator.fault else []
    eventually(lambda: crowd.poll() is not None, 180, "the sale ends")
    ground.arm("")
    outcome.hits = ground.hits(daemon, point, since)
    return crowd


def run_cell(ground, point, action):
    """One cell on a running stack."""
    outcome = Outcome(f"{point} {action}")
    crowd = None
    try:
        sale = ground.open_sale()
        crowd = strike(ground, sale, point, action, outcome)
        judged(ground, sale, crowd, outcome)
        if outcome.hits == 0:
            outcome.why.append(f"{point} was never hit: nothing was shown")
    except Exception as fault:  # whatever it is, it is this cell's failure and not the end of the others
        outcome.why.append(re.sub(r"\s+", " ", f"{type(fault).__name__} {fault}")[:400])
        if crowd and crowd.poll() is None:
            crowd.kill()
            crowd.wait()
    return outcome
