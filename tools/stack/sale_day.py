#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""demo: a whole sale, live, in one command. rehearse: many buyers against the running stack, or one of its own."""
import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time

import stack as stacks
from stack import ROOT, Stack, StackError, down, read_pids

RUN = os.path.join(ROOT, "run")
ARRIVE_PER_S = 16000  # people two cores play and serve at once; measured, see tools/rehearse/README.md


class Running:
    """A stack that someone else started: only its addresses are known."""

    def __init__(self, run):
        self.run = os.path.realpath(run)
        self.bin = os.path.join(ROOT, "build", "release", "bin")
        with open(f"{self.run}/env", encoding="utf-8") as handle:
            self.env = dict(line.rstrip("\n").split("=", 1) for line in handle if "=" in line)

    ctl = Stack.ctl


def policy_of(stack, options, name):
    """The order of people; for a draw its secret is made, and promised."""
    if options.policy == "fifo":
        return "order: fifo"
    made = json.loads(stack.ctl("-o", "json", "draw", "new", name).stdout)
    return f"order: {options.policy}, commitment: {made['commitment']}"


def sale_file(stack, options, name):
    """Writes the sale's declaration; its opening leaves time for the first arrivals to wait before it."""
    opens = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=options.opens_in_s)
    path = f"{stack.run}/{name}.yaml"
    policy = policy_of(stack, options, name)
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(f"""sale: {name}
items: [{{sku: {name}, units: {options.units}, price: 4900, currency: EUR}}]
opensAt: {opens.strftime('%Y-%m-%dT%H:%M:%SZ')}
policy: {{{policy}}}
limits: {{perBuyer: 1, holdFor: {options.hold_s}s, grace: {options.grace_s}s, extendBy: 60s, extensions: 2}}
pace: {{start: {options.pace}/s, max: 5000/s, min: 10/s}}
proof: {{everyMs: 1000, leaseFor: 3s}}
show: {{remaining: exact}}
""")
    return path


def rehearse(stack, options, name):
    """Applies the sale, lets the buyers in, and leaves the verdict to the referee inside `rehearse`."""
    stack.ctl("sale", "apply", "-f", sale_file(stack, options, name))
    print(f"the page, also while it runs: {stack.env['TIDEGATE_EDGE_URL']}/sale/{name}", file=sys.stderr, flush=True)
    command = [f"{stack.bin}/rehearse", "--sale", name, "--buyers", str(options.buyers), "--units", str(options.units),
               "--arrive-s", str(options.arrive_s), "--connections", str(options.connections), "--abandon-percent", str(options.abandon_percent), "--out", options.out]
    code = subprocess.run(command, env={**os.environ, **stack.env}, check=False).returncode
    if options.policy == "fifo":
        return code
    return code or show_draw(stack, name)


def show_draw(stack, name):
    """Draws again from what the edge publishes; the files stay as long as the stack does."""
    url = f"{stack.env['TIDEGATE_EDGE_URL']}/sale/{name}"
    print(f"the draw: {url}/draw.json", flush=True)
    return subprocess.run([f"{stack.bin}/tidegatectl", "draw", "verify", url], env={**os.environ, **stack.env, "TMPDIR": stack.run},
                          check=False).returncode


def arguments():
    parser = argparse.ArgumentParser(prog="tools/dev", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for command, buyers, units, hold, abandon in (("demo", 20000, 500, 8, 20), ("rehearse", 200000, 10000, 30, 10)):
        one = commands.add_parser(command, prog=f"tools/dev {command}")
        one.add_argument("--buyers", type=int, default=buyers, help=f"virtual buyers (default {buyers})")
        one.add_argument("--units", type=int, default=units, help=f"units on sale (default {units})")
        one.add_argument("--hold-s", type=int, default=hold, help=f"seconds a buyer has to pay (default {hold})")
        one.add_argument("--grace-s", type=int, default=1, help="technical grace after it (default 1)")
        one.add_argument("--arrive-s", type=int, help="seconds in which 80 %% arrive, the rest in twice that (default: 10, or one for every "
                         f"{ARRIVE_PER_S} buyers, what two cores can do: 125 for 2000000; a run that is bounded by its own load is void)")
        one.add_argument("--opens-in-s", type=int, default=5, help="seconds until the opening (default 5)")
        one.add_argument("--abandon-percent", type=int, default=abandon, help=f"holders who never pay (default {abandon})")
        one.add_argument("--pace", type=int, default=1000, help="people let in per second (default 1000)")
        one.add_argument("--policy", choices=("fifo", "random", "lottery"), default="fifo",
                         help="in the order of arrival, drawn at the opening, or only the registered are drawn (default fifo)")
        one.add_argument("--connections", type=int, default=512, help="shared by all buyers, who wait for one (default 512)")
        one.add_argument("--out", default="", help="where the JSON report goes (default: report.json in the run folder)")
        one.add_argument("--once", action="store_true", help="stop the stack afterwards")
        one.add_argument("--port", type=int, default=8080, help="the page's port if it is free (default 8080)")
    options = parser.parse_args()
    options.arrive_s = max(10, options.buyers // ARRIVE_PER_S) if options.arrive_s is None else options.arrive_s
    for name, low, high in (("buyers", 1, 2000000), ("units", 1, 1000000), ("hold_s", 1, 3600), ("arrive_s", 1, 3600),
                            ("grace_s", 0, 3600), ("opens_in_s", 0, 3600), ("abandon_percent", 0, 100), ("pace", 1, 5000),
                            ("connections", 1, 19700), ("port", 1, 65535)):
        if not low <= getattr(options, name) <= high:
            parser.error(f"--{name.replace('_', '-')} must be from {low} to {high}")
    return options


def own_stack(options):
    """A new stack: in `run` when it is to stay, else in a folder that goes away with it."""
    if options.once:
        run = os.path.join(tempfile.mkdtemp(prefix="tidegate-once-"), "run")
        os.chmod(os.path.dirname(run), 0o711)
    else:
        run = RUN
        down(run)
    stack = Stack(run, lasting=options.command == "demo" and not options.once)
    print("starting NATS, Redis, PostgreSQL and seven daemons, privately:", file=sys.stderr)
    stack.start(options.port)
    return stack


def main():
    options = arguments()
    started = None
    try:
        if read_pids(RUN) and not options.once:
            stack = Running(RUN)
            print("using the running stack (tools/dev down stops it)", file=sys.stderr)
        else:
            stack = started = own_stack(options)
        options.out = os.path.abspath(options.out or f"{stack.run if not options.once else ROOT + '/build'}/report.json")
        name = "demo" if options.command == "demo" and started else f"{options.command}-{int(time.time())}"
        code = rehearse(stack, options, name)
        print(f"report: {options.out}", file=sys.stderr)
        if options.once or (started and options.command == "rehearse"):
            return code
        print(f"the page: {stack.env['TIDEGATE_EDGE_URL']}/sale/{name}   (sold out; README.md: a sale of your own. tools/dev down stops everything)")
        started = None
        return code
    except StackError as fault:
        print(f"tools/dev {options.command}: {fault}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if started:
            started.stop()
            stacks.down(started.run)
            if options.once:
                os.rmdir(os.path.dirname(started.run))


if __name__ == "__main__":
    sys.exit(main())
