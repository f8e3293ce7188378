#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks a running Tidegate at every named instant and in every way of the world, and lets the referee judge each time. Real
processes: NATS, Redis, PostgreSQL, all daemons; sales under load. See README.md beside this file."""
import argparse
import os
import queue
import sys
import threading
import time

import matrix
import scenarios
from ground import RULES, Ground, Outcome, ROOT, StackError

SALES_PER_STACK = 40  # a daemon keeps 64 sales in its tables
HEAD = f"{'cell':<30} {'hits':>4} " + " ".join(f"{rule:>3}" for rule in RULES) + f" {'wrong':>5} {'5xx':>5} {'s':>6}  verdict"


def line(outcome):
    """One row of the table; `-`: not judged there, see README.md."""
    def shown(value):
        return "-" if value is None else str(value)
    numbers = " ".join(f"{shown(outcome.rule(rule)):>3}" for rule in RULES)
    verdict = f"skipped: {outcome.skipped}" if outcome.skipped else "pass" if outcome.good else "FAIL: " + "; ".join(outcome.why)
    notes = "".join(f" {name} {value}" for name, value in outcome.notes.items())
    return (f"{outcome.name:<30} {outcome.hits:>4} {numbers} {shown(outcome.number('wrongAnswers')):>5} "
            f"{shown(outcome.number('http5xx')):>5} {outcome.seconds:>6.1f}  {verdict}{notes}")


class Board:
    """Collects the rows and prints each as it comes."""

    def __init__(self):
        self.rows, self.lock = [], threading.Lock()
        print(HEAD, flush=True)

    def add(self, outcome, began):
        outcome.seconds = time.monotonic() - began
        with self.lock:
            self.rows.append(outcome)
            print(line(outcome), flush=True)


def work(jobs, board, build):
    """One worker: a stack for many cells; after a failure it is kept for a look, and the next cell gets a new one."""
    while True:
        try:
            first = jobs.get_nowait()
        except queue.Empty:
            return
        began = time.monotonic()
        try:
            with Ground(build) as ground:
                cell = first
                while cell is not None:
                    outcome = matrix.run_cell(ground, *cell)
                    board.add(outcome, began)
                    began = time.monotonic()
                    ground.keep = not outcome.good
                    if ground.keep:
                        print(f"  its logs: {ground.folder}/run/log", file=sys.stderr, flush=True)
                        break
                    try:
                        cell = jobs.get_nowait() if ground.sales < SALES_PER_STACK else None
                    except queue.Empty:
                        cell = None
        except StackError as fault:
            outcome = Outcome(" ".join(first))
            outcome.why.append(str(fault)[:400])
            board.add(outcome, began)


def run_matrix(cells, board, options):
    jobs = queue.Queue()
    for cell in cells:
        jobs.put(cell)
    workers = [threading.Thread(target=work, args=(jobs, board, options.build)) for _ in range(min(options.jobs, len(cells)))]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def run_scenarios(chosen, board, options):
    for scenario in chosen:
        began = time.monotonic()
        board.add(scenarios.run_scenario(scenario, options), began)


def arguments():
    parser = argparse.ArgumentParser(prog="tools/dev chaos", description=__doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="cells and scenarios whose name contains this")
    parser.add_argument("--jobs", type=int, default=3, help="cells at the same time, each with a stack of its own (default 3)")
    parser.add_argument("--list", action="store_true", help="print the names and stop")
    parser.add_argument("--quick", action="store_true", help="the kill column of the matrix only: what `tools/dev test chaos` runs")
    parser.add_argument("--matrix", action="store_true", help="the matrix without the scenarios")
    parser.add_argument("--scenarios", action="store_true", help="the scenarios without the matrix")
    parser.add_argument("--frozen-s", type=int, default=60, help="how long NATS stands still (default 60)")
    parser.add_argument("--cuts", type=int, default=24, help="offsets at which the append-only file is cut (default 24)")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn: whom to kill next (default 1)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "chaos"), help="build folder (default build/chaos)")
    options = parser.parse_args()
    if options.jobs < 1 or options.frozen_s < 1 or options.cuts < 1:
        parser.error("--jobs, --frozen-s and --cuts must be 1 or more")
    return options


def main():
    options = arguments()
    cells = [] if options.scenarios else [cell for cell in matrix.cells() if options.only in " ".join(cell)]
    if options.quick:
        cells = [cell for cell in cells if cell[1] == "kill"]
    chosen = [] if options.matrix or options.quick else [one for one in scenarios.SCENARIOS if options.only in one.name]
    names = [" ".join(cell) for cell in cells] + [one.name for one in chosen]
    if options.list:
        print("\n".join(names))
        return 0
    if not names:
        print("tools/dev chaos: nothing has such a name; see --list", file=sys.stderr)
        return 2
    began = time.monotonic()
    board = Board()
    run_matrix(cells, board, options)
    run_scenarios(chosen, board, options)
    passed = [row for row in board.rows if row.good]
    skipped = [row for row in board.rows if row.skipped]
    failed = [row for row in board.rows if not row.good and not row.skipped]
    missing = sorted(set(names) - {row.name for row in board.rows})
    for row in failed:
        print(f"failed: {row.name}: {'; '.join(row.why)}")
    for row in skipped:
        print(f"skipped: {row.name}: {row.skipped}")
    for name in missing:
        print(f"empty: {name}")
    print(f"{len(cells)} cells, {len(chosen)} scenarios in {time.monotonic() - began:.0f} s: {len(passed)} passed, "
          f"{len(failed) + len(missing)} failed, {len(skipped)} skipped")
    return 1 if failed or missing else 0


if __name__ == "__main__":
    sys.exit(main())
