#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks every model and every mutant of it with Spin, and prints a table. See README.md beside this file."""
import argparse
import concurrent.futures
import os
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import typing

HERE = os.path.dirname(os.path.abspath(__file__))
MEMORY_MB = 2500
DEPTH = 1000000
SECONDS_MAX = 600


class Row(typing.NamedTuple):
    """One search. `breaks`: the property that must fail, "" when all must hold. `quick`: part of `tools/dev test`."""

    model: str
    options: str
    breaks: str
    quick: bool

    @property
    def name(self):
        return f"{self.model} {self.options}".strip()


# model -> variant -> the properties it must break, one search each; none: all must hold. SLOW: not part of `tools/dev test`.
TABLE = {
    "orders": {
        "RES=3 UNITS=2 SLOW": "",
        "RES=3 UNITS=1": "",
        "RES=2 UNITS=1 INDEX": "",
        "RES=2 UNITS=1 MUT_NO_TOMBSTONE": "one_owner",
        "RES=2 UNITS=1 MUT_NO_TOMBSTONE INDEX": "no_conflict",
        "RES=2 UNITS=1 MUT_NO_VERDICT": "one_owner",
        "RES=2 UNITS=1 MUT_RELEASE_TWICE": "conserved",
        "RES=3 UNITS=1 MUT_RELEASE_TWICE": "one_owner",
        "RES=2 UNITS=1 MUT_RECORD_REVIVES": "verdict_first",
        "RES=3 UNITS=2 MUT_NEW_ID_ON_RETRY": "one_per_request",
        "RES=2 UNITS=1 MUT_ANSWER_BEFORE_RECORD": "told_is_committed",
        "RES=2 UNITS=1 MUT_ACKNOWLEDGE_BEFORE_RECORD": "nothing_stranded",
        "RES=2 UNITS=1 MUT_OBEYED_UNSEEN": "nothing_stranded",
        "RES=2 UNITS=1 MUT_NOBODY_BURIES": "comes_to_rest"},
    "deadline": {
        "": "",
        "MUT_CLOCK_BEFORE_LOCK": "late_loses",
        "MUT_ROW_BEFORE_LOCK": "one_verdict kept_promise",
        "MUT_CONFIRM_UNCHECKED": "late_loses",
        "MUT_EXTEND_LATE": "no_revival",
        "MUT_EXTEND_EARLIER": "never_earlier",
        "MUT_EXTEND_UNBOUNDED": "bounded",
        "MUT_EXPIRE_OVERWRITES": "one_verdict",
        "MUT_BURY_BY_GATE_DEADLINE": "kept_promise",
        "MUT_CONFIRM_AT_DEADLINE": "in_time_wins",
        "MUT_ASKS_ONCE": "comes_to_rest"},
    "returns": {
        "": "",
        "MUT_SETTLE_DOUBTS_RETURNED": "no_doubt",
        "MUT_RELEASE_TWICE": "returned_once conserved",
        "MUT_RELEASE_WITHOUT_VERDICT": "verdict_first one_owner",
        "MUT_RELEASE_HELD_ONLY": "comes_to_rest",
        "MUT_CANCEL_KEEPS_OBEYED": "comes_to_rest",
        "MUT_OBEYED_ANY_KIND": "comes_to_rest",
        "MUT_COMPENSATE_TWICE": "compensated_once",
        "MUT_COMPENSATED_BUYS": "sold_or_given_back",
        "MUT_NO_PAYMENT_LOCK": "sold_or_given_back",
        "MUT_PAYMENT_REUSED": "buys_once",
        "MUT_LATE_IS_DROPPED": "nobody_forgets_money"},
    "rebuild": {
        "": "",
        "EPOCHS=3 HOLDERS=1 SLOW": "",
        "MUT_RESEND_NAMES_NEW_EPOCH": "known_to_the_gate",
        "MUT_NO_FENCE": "known_to_the_gate one_owner",
        "MUT_NO_TOMBSTONE_FENCE": "known_to_the_gate",
        "MUT_RECORD_REVIVES": "verdict_first",
        "MUT_OBEY_WITHOUT_EPOCH": "nothing_stranded",
        "MUT_OBEYED_WITHOUT_EPOCH": "nothing_stranded",
        "MUT_UNKNOWN_IS_DONE": "nothing_stranded",
        "MUT_OBEYED_BEFORE_IS_ENOUGH": "comes_to_rest",
        "MUT_SAME_EPOCH": "known_to_the_gate",
        "MUT_LOAD_WITHOUT_RELEASED": "known_to_the_gate",
        "MUT_NO_LOADER_CHECK": "known_to_the_gate",
        "MUT_KEEPS_OLD_PAGES": "no_doubt",
        "MUT_RELOAD_ARMED": "known_to_the_gate"},
    "failover": {
        "": "",
        "MUT_NO_INDEX": "",
        "MUT_NO_FENCE": "known_to_the_gate",
        "MUT_NO_FENCE MUT_NO_INDEX": "one_owner",
        "MUT_NO_SEAL": "sold_by_the_armed no_conflict",
        "MUT_NO_PIN": "no_conflict",
        "MUT_NO_PIN MUT_NO_INDEX": "one_owner",
        "MUT_ATTEST_ANY_RUN": "known_to_the_gate",
        "MUT_LAST_ARMED_WINS": "known_to_the_gate"},
    "control": {
        "": "",
        "MUT_RESUME_LIFTS_ALL": "ledger_keeps_pauses open_only_if_lifted",
        "MUT_STATES_IN_ANY_ORDER": "open_only_if_lifted",
        "MUT_OWN_PAUSES_FORGOTTEN": "open_only_if_lifted",
        "MUT_LIFT_WHAT_IS_NOT_LISTED": "open_only_if_lifted",
        "MUT_RESUME_OBEYED_UNJUDGED": "open_only_if_lifted"},
    "audit": {
        "RES=2 SLOW": "",
        "RES=1": "",
        "RES=2 MUT_NAIVE_SUM": "no_false_alarm",
        **{f"RES=1 {mutant}": "no_false_alarm" for mutant in (
            "MUT_CONFIRMED_NOT_RELEASED", "MUT_UNACKED_FIRST", "MUT_SECOND_LOOK_BACKWARDS", "MUT_A_BY_FIRST_LOOK",
            "MUT_LEDGER_FIRST", "MUT_ACKNOWLEDGE_BEFORE_COMMIT")},
        **{f"RES=1 FAULT={fault}": "" for fault in range(1, 10)},
        **{f"RES=1 FAULT={fault} {mutant}": "lasting_fault_is_found" for fault, mutant in (
            (1, "MUT_WITHOUT_C0"), (2, "MUT_WITHOUT_A"), (3, "MUT_WITHOUT_B"), (5, "MUT_WITHOUT_E"), (7, "MUT_WITHOUT_U"),
            (8, "MUT_WITHOUT_C"), (9, "MUT_WITHOUT_D"), (1, "MUT_NAIVE_SUM"))}},
    "lease": {
        "": "",
        "GARBLED": "",
        "MUT_LEASE_FROM_NOW": "sells_only_under_proof closed_after_corruption",
        "MUT_LEASE_REPLACED": "lease_only_grows",
        "GARBLED MUT_FUTURE_BELIEVED": "one_lease_at_most"},
}
ROWS = [Row(model, variant.removesuffix("SLOW").strip(), breaks, not variant.endswith("SLOW"))
        for model, variants in TABLE.items() for variant, broken in variants.items() for breaks in broken.split() or [""]]


class Result(typing.NamedTuple):
    row: Row
    good: bool
    verdict: str
    states: str
    depth: str
    seconds: float
    output: str


def limits():
    """A search that outgrows its bounds is a failure, not a danger to the machine."""
    resource.setrlimit(resource.RLIMIT_AS, (2 * MEMORY_MB * 1024 * 1024,) * 2)


def call(command, folder):
    try:
        done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                              timeout=SECONDS_MAX, preexec_fn=limits)
    except subprocess.TimeoutExpired:
        return 1, f"{command[0]}: not finished after {SECONDS_MAX} s"
    return done.returncode, done.stdout


def properties(text):
    return re.findall(r"^PROPERTY\((\w+)\)", text, re.M)


def unbroken():
    """Properties that no mutant breaks, and rows that break what is no property: one line each."""
    for model in TABLE:
        with open(os.path.join(HERE, f"{model}.pml"), encoding="utf-8") as handle:
            known = set(properties(handle.read()))
        broken = {row.breaks for row in ROWS if row.model == model and row.breaks}
        yield from (f"{model}: no mutant breaks {name}" for name in sorted(known - broken))
        yield from (f"{model}: there is no property {name}" for name in sorted(broken - known))


def write_model(row, folder):
    """The model as searched. Of a mutant only the property it must break is watched: a true 'name' never fails."""
    with open(os.path.join(HERE, f"{row.model}.pml"), encoding="utf-8") as handle:
        text = handle.read()
    for name in properties(text) if row.breaks else ():
        if name != row.breaks:
            text = text.replace(f"PROPERTY({name})", f"hidden byte {name} = 1")
    with open(os.path.join(folder, f"{row.model}.pml"), "w", encoding="utf-8") as handle:
        handle.write(text)
    shutil.copy(os.path.join(HERE, "must.h"), folder)


def spin_options(row):
    return [f"-D{option}" for option in row.options.split()]


def optimise(row):
    """Compiling takes longer than most searches."""
    if row.breaks:
        return "-O0"
    return "-O1" if row.quick else "-O2"


def judge(row, output):
    """(as expected, verdict). A search is exhaustive only if nothing cut it short."""
    broken = re.search(r"assertion violated \((\w+)\|\|", output)
    cut = re.search(r"max search depth too small|out of memory|memory limit|-DMEMLIM|hash table full|not finished|aborted", output, re.I)
    if broken:
        return broken.group(1) == row.breaks, f"breaks {broken.group(1)}"
    if cut:
        return False, f"cut short: {cut.group(0)}"
    if not re.search(r"errors: 0\b", output):
        return False, "no result"
    return not row.breaks, "holds"


def search(row, folder):
    """Generates, compiles and runs the search of one row."""
    begun = time.monotonic()
    write_model(row, folder)
    output = ""
    for command in (["spin", *spin_options(row), "-a", f"{row.model}.pml"],
                    ["gcc", optimise(row), "-w", "-DSAFETY", f"-DMEMLIM={MEMORY_MB}", "-o", "pan", "pan.c"],
                    ["./pan", "-E", "-n", f"-m{DEPTH}"]):
        code, output = call(command, folder)
        if code != 0:
            break
    good, verdict = judge(row, output)
    states, depth = re.search(r"(\d+) states, stored", output), re.search(r"depth reached (\d+)", output)
    return Result(row, good, verdict, states.group(1) if states else "-", depth.group(1) if depth else "-",
                  time.monotonic() - begun, output)


def run_row(row):
    with tempfile.TemporaryDirectory(prefix="tidegate-model-") as folder:
        return search(row, folder)


def show(row):
    """The counterexample of a row, step by step."""
    with tempfile.TemporaryDirectory(prefix="tidegate-model-") as folder:
        result = search(row, folder)
        print(f"{row.name}: {result.verdict}")
        if not os.path.exists(os.path.join(folder, f"{row.model}.pml.trail")):
            print(result.output)
            return 0 if result.good else 1
        print(call(["spin", *spin_options(row), "-t", "-p", "-g", f"{row.model}.pml"], folder)[1])
    return 0 if result.good else 1


def wanted(options):
    rows = [row for row in ROWS if row.quick or not options.quick]
    if options.only:
        rows = [row for row in rows if options.only in row.name]
    return rows


def print_result(result, width):
    row = result.row
    expected = f"breaks {row.breaks}" if row.breaks else "holds"
    verdict = result.verdict if result.good else f"WRONG: {result.verdict}"
    print(f"{row.model:<9} {row.options or 'as built':<{width}} {expected:<26} {result.states:>9} {result.depth:>6} "
          f"{result.seconds:>7.1f}  {verdict}", flush=True)
    if not result.good:
        print(result.output.rstrip()[-2000:], flush=True)


def main():
    parser = argparse.ArgumentParser(prog="tools/dev model", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="the rows that `tools/dev test` runs")
    parser.add_argument("--only", metavar="TEXT", help="only rows whose model and variant contain this")
    parser.add_argument("--show", metavar="TEXT", help="print the counterexample of the first such row, step by step")
    options = parser.parse_args()
    if options.show:
        rows = [row for row in ROWS if options.show in row.name]
        return show(rows[0]) if rows else parser.error(f"no row contains '{options.show}'")
    faults = list(unbroken())
    if faults:
        print("\n".join(faults))
        return 1
    rows = wanted(options)
    width = max([len(row.options) for row in rows] or [0]) + 1
    print(f"{'model':<9} {'variant':<{width}} {'expected':<26} {'states':>9} {'depth':>6} {'seconds':>7}  verdict")
    good = 0
    # The long searches first: two at a time end sooner.
    rows.sort(key=lambda row: (bool(row.breaks), row.quick))
    with concurrent.futures.ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for result in pool.map(run_row, rows):
            print_result(result, width)
            good += result.good
    print(f"{good} passed, {len(rows) - good} failed")
    return 0 if rows and good == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
