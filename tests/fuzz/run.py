#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the fuzzers one after the other and prints what each did. See README.md beside this file."""
import argparse
import base64
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
BIN = f"{ROOT}/build/fuzz/bin"
LAST_LINES = 40
PRINTED_BYTES_MAX = 4096


def names():
    """Every harness, by its file."""
    return sorted(os.path.basename(path)[5:-2] for path in glob.glob(f"{HERE}/fuzz_*.c"))


def seed_of_commit():
    """The same commit fuzzes the same way, the next one another way."""
    done = subprocess.run(["git", "rev-parse", "--short=7", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    return int(done.stdout, 16) if not done.returncode else 1


def last_number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def run_one(name, seconds, seed, found_in):
    """One harness: its corpus first, then what it can think of. New inputs go to build/, crashes to a folder of their own."""
    new = f"{ROOT}/build/fuzz/corpus/{name}"
    crashes = f"{found_in}/{name}-"
    os.makedirs(new, exist_ok=True)
    command = [f"{BIN}/fuzz_{name}", f"-max_total_time={seconds}", f"-seed={seed}", "-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1",
               "-max_len=20000", "-close_fd_mask=1", f"-artifact_prefix={crashes}", new, f"{HERE}/corpus/{name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace", cwd=ROOT)
    output = done.stderr
    return {"name": name, "code": done.returncode, "output": output,
            "executions": last_number(r"stat::number_of_executed_units:\s*(\d+)", output) or last_number(r"^#(\d+)\s", output),
            "edges": last_number(r"\bcov: (\d+)", output), "features": last_number(r"\bft: (\d+)", output),
            "inputs": last_number(r"corp: (\d+)/", output), "crashes": sorted(glob.glob(f"{crashes}*"))}


def print_row(result):
    state = "ok" if not result["code"] else f"FAILED ({len(result['crashes'])} input kept)"
    print(f"{result['name']:<16} {result['executions']:>12,} {result['edges']:>8,} {result['features']:>9,} "
          f"{result['inputs']:>7,} {len(result['crashes']):>8}  {state}", flush=True)


def print_input(name, path):
    """Where a crash is and how to see it again, also from a log alone."""
    again = f"build/fuzz/bin/fuzz_{name}"
    print(f"input: {path}\nagain: {again} {path}")
    if os.path.getsize(path) <= PRINTED_BYTES_MAX:
        with open(path, "rb") as handle:
            print(f"or: base64 -d > input <<< '{base64.b64encode(handle.read()).decode()}' && {again} input")


def main():
    parser = argparse.ArgumentParser(prog="tools/dev fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these: " + ", ".join(names()))
    parser.add_argument("--seconds", type=int, default=60, help="for each harness (60)")
    parser.add_argument("--seed", type=int, default=seed_of_commit(), help="of every harness (from the commit)")
    parser.add_argument("--jobs", type=int, default=1, help="harnesses at a time (1)")
    options = parser.parse_args()
    unknown = sorted(set(options.names) - set(names()))
    if unknown:
        parser.error("no harness " + ", ".join(unknown))
    print(f"seed {options.seed}")
    found_in = tempfile.mkdtemp(prefix="tidegate-fuzz-")
    print(f"{'harness':<16} {'executions':>12} {'edges':>8} {'features':>9} {'inputs':>7} {'crashes':>8}", flush=True)
    failed = []
    with concurrent.futures.ThreadPoolExecutor(max(1, options.jobs)) as pool:
        for result in pool.map(lambda name: run_one(name, options.seconds, options.seed, found_in), options.names or names()):
            print_row(result)
            if result["code"]:
                failed.append(result)
    for result in failed:
        print(f"\n{result['name']}:\n" + "\n".join(result["output"].splitlines()[-LAST_LINES:]))
        for path in result["crashes"]:
            print_input(result["name"], path)
    if not failed:
        shutil.rmtree(found_in)
    print(f"{len(options.names or names()) - len(failed)} without a crash, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
