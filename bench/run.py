#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs the benchmarks and writes bench/RESULTS.md. See README.md beside this file."""
import datetime
import os
import platform
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NAMES = ("edge", "gate", "hold", "audit", "rehearse")
RESULTS = os.path.join(ROOT, "bench", "RESULTS.md")


def machine():
    """One line on where this ran."""
    with open("/proc/cpuinfo", encoding="ascii") as handle:
        model = re.search(r"model name\s*: (.*)", handle.read())
    commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    today = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")
    return f"{today}, commit {commit}, {os.cpu_count()} cores ({model.group(1) if model else platform.machine()}), Linux {platform.release().split('-')[0]}"


def sections():
    """The sections of the present results, by name, so that one benchmark can be renewed alone."""
    if not os.path.exists(RESULTS):
        return {}
    with open(RESULTS, encoding="utf-8") as handle:
        return {name: body.strip() for name, body in re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", handle.read(), re.M | re.S)}


def main():
    names = sys.argv[1:] or list(NAMES)
    unknown = [name for name in names if not os.access(f"{ROOT}/bench/{name}/run", os.X_OK)]
    if unknown:
        print(f"bench: no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}", file=sys.stderr)
        return 64
    kept = sections()
    for name in names:
        print(f"== {name}", file=sys.stderr, flush=True)
        done = subprocess.run([f"{ROOT}/bench/{name}/run"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        print(done.stdout, end="", flush=True)
        if done.returncode:
            print(f"bench: {name} failed", file=sys.stderr)
            return 1
        kept[name] = f"Measured {machine()}.\n\n{done.stdout.strip()}"
        with open(RESULTS, "w", encoding="utf-8") as handle:
            handle.write("# Results\n\nWhat was measured, where and at which commit. Ratios are of one interleaved run; absolute figures vary by ±30 % on shared machines.\n")
            for section in sorted(kept):
                handle.write(f"\n## {section}\n\n{kept[section]}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
