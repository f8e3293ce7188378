#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Starts a private Redis and a private PostgreSQL and compares the simulator's stores with them, both parts side by side.
See README.md beside this file."""
import argparse
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [f"{ROOT}/tests/flow", f"{ROOT}/tools/stack"]

from gate_scripts import PrivateRedis  # noqa: E402  (needs the paths above)
from ledger_database import Client, PrivatePostgres, definition  # noqa: E402

BIN = f"{ROOT}/build/release/bin"


def database(postgres):
    """A migrated database that knows what a definition has to have; each sequence changes what it is about. Returns its URL."""
    url = postgres.url(postgres.create())
    client = Client(url)
    client.rows("CREATE SCHEMA conformance")
    client.rows(f"CREATE FUNCTION conformance.definition() RETURNS jsonb LANGUAGE sql AS $$ SELECT '{json.dumps(definition())}'::jsonb $$")
    client.close()
    return url


def compare(redis, postgres, options):
    """The gate's sequences and two halves of the ledger's at the same time, each with a database of its own. Returns the exit
    code and what was printed."""
    common = ["--redis", redis.socket, *(["--mutant", options.mutant] if options.mutant else [])]
    if options.replay is not None:
        shares = [(part, options.replay, 1) for part in ("gate", "ledger")]
    else:
        half = (options.sequences + 1) // 2
        shares = [("ledger", options.first, half), ("ledger", options.first + half, options.sequences - half),
                  ("gate", options.first, options.sequences)]
    running = [subprocess.Popen([f"{BIN}/tidegate-conformance", "--part", part, "--from", str(first), "--sequences", str(count),
                                 "--postgres", database(postgres), *common], stdout=subprocess.PIPE, text=True)
               for part, first, count in shares if options.part in (None, part)]
    output = [process.communicate()[0] for process in running]
    return max(process.returncode for process in running), "".join(output)


def mutants():
    listed = subprocess.run([f"{BIN}/tidegate-conformance"], capture_output=True, text=True, check=False).stdout
    return re.search(r"^mutants: (.*)$", listed, re.M).group(1).split()


def run_mutants(redis, postgres, options):
    """Each must be told apart."""
    survived = 0
    for name in mutants():
        options.mutant = name
        code, output = compare(redis, postgres, options)
        told = re.search(r"^FAILED (\w+), seed (\d+)", output, re.M)
        survived += code == 0 or told is None
        print(f"{name:<28} {'told apart by seed ' + told.group(2) if code and told else 'SURVIVES'}", flush=True)
    print(f"{len(mutants())} mutants, {survived} survive")
    return 1 if survived else 0


def main():
    parser = argparse.ArgumentParser(prog="tools/dev conformance", description=__doc__)
    parser.add_argument("--sequences", type=int, default=10000, help="of each part (10000)")
    parser.add_argument("--from", type=int, default=1, dest="first", help="first seed (1)")
    parser.add_argument("--replay", type=int, help="one seed")
    parser.add_argument("--part", choices=("gate", "ledger"))
    parser.add_argument("--mutant", choices=mutants(), help="a server that is wrong: must fail")
    parser.add_argument("--mutants", action="store_true", help="every mutant must be told apart")
    options = parser.parse_args()
    redis, postgres = PrivateRedis(), PrivatePostgres(f"{BIN}/tidegate-ledger")
    try:
        if options.mutants:
            return run_mutants(redis, postgres, options)
        code, output = compare(redis, postgres, options)
        print(output, end="")
        return code
    finally:
        redis.stop()
        postgres.close()


if __name__ == "__main__":
    sys.exit(main())
