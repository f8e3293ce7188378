#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs checks and tests, cheapest first, and closes with `N passed, N failed`. See README.md beside this file."""
import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

import style

sys.path.insert(0, os.path.join(style.ROOT, "tools", "docs"))
import guarantees  # noqa: E402  (needs the path above)

ROOT = style.ROOT
PYTHON = "/usr/bin/python3"


class Tally:
    """What passed and what failed, with the time each part took."""

    def __init__(self):
        self.passed, self.failed, self.failures, self.built = 0, 0, [], {}
        self.results = {}  # kind -> name -> whether it passed every time; what the guarantees are held against

    def note(self, kind, name, good):
        known = self.results.setdefault(kind, {})
        known[name] = good and known.get(name, True)

    def part(self, name, passed, failed, seconds, output=""):
        self.passed += passed
        self.failed += failed
        mark = "ok  " if not failed else "FAIL"
        print(f"{mark} {name:<34} {passed:>5} passed {failed:>3} failed {seconds:7.1f} s", flush=True)
        if failed:
            self.failures.append(name)
            print(output.rstrip()[-6000:], flush=True)

    def check(self, name, faults, seconds):
        faults = list(faults)
        self.part(name, 0 if faults else 1, 1 if faults else 0, seconds, "\n".join(f"     {fault}" for fault in faults[:40]))

    def command(self, name, command, **options):
        begun = time.monotonic()
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, **options)
        self.part(name, int(not done.returncode), int(bool(done.returncode)), time.monotonic() - begun, done.stdout + done.stderr)
        return not done.returncode


def build(tally, preset):
    """Builds a preset, once a run. True: it is there."""
    if preset not in tally.built:
        tally.built[preset] = tally.command(f"build {preset}", ["tools/dev", "build", preset])
    return tally.built[preset]


def run_style(tally, checks):
    for check in checks:
        begun = time.monotonic()
        faults = list(check())
        tally.check(check.__name__, faults, time.monotonic() - begun)


def tidy_one(path):
    done = subprocess.run(["clang-tidy", "-p", "build/clang", "--quiet", path], cwd=ROOT, capture_output=True, text=True, check=False)
    return path, done.returncode, done.stdout


def run_tidy(tally):
    """clang-tidy over the sources that git tracks, two at a time."""
    begun = time.monotonic()
    paths = [path for path in style.tracked(".c") if path.startswith(("lib/", "services/", "tools/"))]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(tidy_one, paths))
    bad = [f"{path}\n{output}" for path, code, output in results if code]
    tally.part("tidy", len(results) - len(bad), len(bad), time.monotonic() - begun, "\n".join(bad))


def unit(program):
    """Seconds, exit code and output of one program."""
    begun = time.monotonic()
    try:
        done = subprocess.run([program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=300, errors="replace")
        output, code = done.stdout + done.stderr, done.returncode
    except subprocess.TimeoutExpired:
        output, code = "not finished after 300 s", 1
    return time.monotonic() - begun, code, output


def run_unit(tally, preset):
    """Every cmocka program of a build, as many at a time as there are cores; each of its tests counts."""
    programs = sorted(glob.glob(f"{ROOT}/build/{preset}/bin/test_*"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        for program, (seconds, code, output) in zip(programs, workers.map(unit, programs)):
            for mark, test in re.findall(r"^\[ +(OK|FAILED|ERROR|SKIPPED) +\] (\w+)$", output, re.M):
                tally.note("unit", f"{os.path.basename(program)}::{test}", mark == "OK")
            passed = sum(map(int, re.findall(r"\[  PASSED  \] (\d+) test", output)))
            failed = sum(map(int, re.findall(r"\[  FAILED  \] (\d+) test", output)))
            if code and not failed:
                failed = 1
            tally.part(f"{preset} {os.path.basename(program)}", passed, failed, seconds, output)


def pytest(*arguments):
    """Runs pytest; ({test: "passed", "skipped" or "failed"}, output). Nothing at all in the results: it did not run."""
    report = f"{ROOT}/build/flow.xml"
    done = subprocess.run([PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", *arguments], cwd=ROOT,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    results = {}
    if os.path.exists(report):
        for case in xml.etree.ElementTree.parse(report).getroot().iter("testcase"):
            name = f"tests/flow/{case.get('classname').split('.')[-1]}.py::{case.get('name')}"
            bad = case.find("failure") is not None or case.find("error") is not None
            results[name] = "failed" if bad else "skipped" if case.find("skipped") is not None else "passed"
        os.unlink(report)
    return results, done.stdout


def run_flow(tally, selection):
    """pytest over tests/flow: real stores, real binaries; three files at a time, since most of it is waiting."""
    begun = time.monotonic()
    results, output = pytest("-n", "3", "--dist", "loadfile", "--durations=12", "tests/flow", *(["-k", selection] if selection else []))
    for name, state in results.items():
        tally.note("flow", name.removeprefix("tests/flow/").split("[")[0], state == "passed")
    states = list(results.values())
    tally.part("flow", states.count("passed"), states.count("failed") if states else 1, time.monotonic() - begun, output)


def run_counting(tally, name, command, counts=r"^(\d+) passed, (\d+) failed$"):
    """A program that counts for itself, exits with 0 when nothing failed and with 69 when this machine cannot run it. Returns what it
    printed."""
    begun = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, errors="replace")
    counted = re.search(counts, done.stdout, re.M)
    passed, failed = map(int, counted.groups()) if counted else (0, 0)
    if done.returncode == os.EX_UNAVAILABLE:
        print(f"skipped {name}: {done.stdout.rstrip()}", flush=True)
        return done.stdout
    if (done.returncode or not passed) and not failed:
        failed = 1
    faults = "\n".join(line for line in done.stdout.splitlines() if not line.startswith("ok "))
    tally.part(name, passed, failed, time.monotonic() - begun, faults)
    return done.stdout


def run_model(tally):
    """Spin over the quick rows of tests/model; each model that holds and each mutant that fails counts."""
    output = run_counting(tally, "model", [PYTHON, "tests/model/run.py", "--quick"])
    for model, verdict in re.findall(r"^(\w+) +.* (?:holds|breaks \w+) +[\d-]+ +[\d-]+ +[\d.]+  (.*)$", output, re.M):
        tally.note("model", model, not verdict.startswith("WRONG"))


def sim(*options):
    """Exit code and output of the simulator."""
    done = subprocess.run(["tools/dev", "sim", *options], cwd=ROOT, capture_output=True, text=True, check=False, errors="replace")
    return done.returncode, done.stdout + done.stderr


def mutant_replays():
    """Why the seed that the mutant without tombstones prints does not show the same violation again, or None."""
    code, output = sim("--mutant", "no_tombstone")
    told = re.search(r"^(VIOLATION: .*)\nreplay: tidegate-sim (--replay (\d+) --mutant no_tombstone)$", output, re.M)
    if not code or not told:
        return "the mutant does not fail with a seed:\n" + output
    again, output = sim(*told.group(2).split())
    if not again or told.group(1) not in output:
        return f"{told.group(2)} does not show: {told.group(1)}\n{output}"
    sound, output = sim("--replay", told.group(3))
    return f"seed {told.group(3)} fails without the mutant, too:\n{output}" if sound else None


def run_sim(tally):
    """Past failing seeds, then so many schedules, the same on every machine; then every mutant has to die, and the one without
    tombstones with a seed that replays."""
    for name, options, pattern in (
            ("sim schedules", ["--seeds", os.environ.get("SIM_SEEDS", "200000")], r"^0 violations, 0 false alarms$"),
            ("sim mutants", ["--mutants"], r"^\d+ mutants, 0 survive$")):
        begun = time.monotonic()
        code, output = sim(*options, "--jobs", str(os.cpu_count()))
        good = not code and re.search(pattern, output, re.M)
        if "--mutants" in options:
            for mutant, fate in re.findall(r"^(\w+) +(dies|SURVIVES)\b", output, re.M):
                tally.note("sim", mutant, fate == "dies")
        else:
            tally.note("sim", "schedules", bool(good))
        counted = re.search(r"^(\d+) mutants", output, re.M)
        tally.part(name, (int(counted.group(1)) if counted else 1) if good else 0, 0 if good else 1, time.monotonic() - begun, output)
    begun = time.monotonic()
    tally.check("sim: a mutant's seed replays", filter(None, [mutant_replays()]), time.monotonic() - begun)


def run_conformance(tally):
    """The simulator's stores against real ones; then every mutant of a real one has to be told apart."""
    for name, options, pattern in (("conformance", [], r"^gate: \d+ sequences .* agree$"),
                                   ("conformance mutants", ["--mutants"], r"^(\d+) mutants, 0 survive$")):
        begun = time.monotonic()
        done = subprocess.run(["tools/dev", "conformance", *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, check=False)
        good = None if done.returncode else re.search(pattern, done.stdout, re.M)
        tally.note("conformance", "mutants" if options else "sequences", bool(good))
        passed = int(good.group(1)) if good and good.groups() else 1
        tally.part(name, passed if good else 0, 0 if good else 1, time.monotonic() - begun, done.stdout)


def run_mutants(tally):
    """The quick mutants: each is killed by its test, which passes without it."""
    begun = time.monotonic()
    done = subprocess.run([PYTHON, "tests/mutants/run.py", "--quick"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    counts = re.search(r"^(\d+) killed, (\d+) survive, (\d+) broken; without a mutant (\d+) hold, (\d+) fail", done.stdout, re.M)
    killed, survive, broken, hold, fail = map(int, counts.groups()) if counts else (0, 1, 0, 0, 0)
    tally.part("mutants", killed + hold, survive + broken + fail, time.monotonic() - begun, done.stdout)


def run_fuzz(tally):
    """Every fuzzer for a few seconds; the corpora themselves are among the unit tests."""
    output = run_counting(tally, "fuzz", ["tools/dev", "fuzz", "--seconds", "5", "--jobs", str(os.cpu_count())],
                          r"^(\d+) without a crash, (\d+) failed$")
    for harness, state in re.findall(r"^(\w+) +[\d,]+ .*  (ok|FAILED)", output, re.M):
        tally.note("fuzz", harness, state == "ok")


def run_browser(tally):
    """The waiting page in Chromium: every state and every journey counts. What is not installed fails."""
    run_counting(tally, "browser", ["tools/dev", "browser"])


def run_chaos(tally):
    """The kill column of the matrix: each daemon killed at each of its instants, in a sale of its own."""
    if tally.command("build chaos", ["tools/dev", "build", "chaos", "stack"]):
        run_style(tally, [style.all_failpoints])
        run_counting(tally, "chaos", [PYTHON, "tests/chaos/run.py", "--quick"], r": (\d+) passed, (\d+) failed, 0 skipped$")


def run_chart(tally):
    """Helm 3 and Helm 4 over every scenario of the chart, schemas, rules of every pod, refusals; then its workloads as pods."""
    run_counting(tally, "chart", [PYTHON, "tests/chart/run.py"])
    run_counting(tally, "chart: pods", [PYTHON, "tests/chart/pods.py"])


def run_contracts(tally):
    """Proto files, OpenAPI, AsyncAPI, alerts and dashboard, each by the linter of its kind."""
    run_counting(tally, "contracts", [PYTHON, "tests/contracts/run.py"])


def checks(tally, full):
    run_style(tally, style.CHECKS)
    sources = style.tracked(".c", ".h")
    tally.command("format", ["clang-format", "--dry-run", "-Werror", *sources])
    tally.command("mutants fit", [PYTHON, "tests/mutants/run.py", "--list"])
    tally.command("documents fresh", [PYTHON, "tools/docs/generate.py", "--check"])
    if build(tally, "release"):
        run_style(tally, style.BINARY_CHECKS)
    if full and build(tally, "clang"):
        run_tidy(tally)


# Parts of `test`, cheapest first: the build each runs on, and what it does. Those in LONG run only when they are named.
LONG = {"browser"}
PARTS = {
    "check": (None, lambda tally, options: checks(tally, full="check" in options.parts or bool(os.environ.get("CI")))),
    "contracts": (None, lambda tally, _: run_contracts(tally)),
    "unit": ("release", lambda tally, _: run_unit(tally, "release")),
    "asan": ("asan", lambda tally, _: run_unit(tally, "asan")),
    "model": (None, lambda tally, _: run_model(tally)),
    "sim": (None, lambda tally, _: run_sim(tally)),
    "conformance": (None, lambda tally, _: run_conformance(tally)),
    "mutants": (None, lambda tally, _: run_mutants(tally)),
    "fuzz": (None, lambda tally, _: run_fuzz(tally)),
    "flow": ("release", lambda tally, options: run_flow(tally, options.selection)),
    "browser": (None, lambda tally, _: run_browser(tally)),
    "chaos": (None, lambda tally, _: run_chaos(tally)),
    "chart": ("release", lambda tally, _: run_chart(tally)),
}


def main():
    parser = argparse.ArgumentParser(prog="tools/dev test|check", description=__doc__)
    parser.add_argument("what", choices=("test", "check"))
    parser.add_argument("parts", nargs="*", choices=(*PARTS, []), help="only these parts of test")
    parser.add_argument("-k", dest="selection", help="only flow tests matching this expression")
    options = parser.parse_args()
    parts = [name for name in PARTS if (name in options.parts if options.parts else name not in LONG)]
    tally = Tally()
    if options.what == "check":
        checks(tally, full=True)
        if build(tally, "asan"):
            run_unit(tally, "asan")
    else:
        for name in parts:
            preset, run = PARTS[name]
            if preset is None or build(tally, preset):
                run(tally, options)
    if options.what == "test" and not options.selection:
        tally.check("guarantees", guarantees.unshown(tally.results, set(parts)), 0)
    if tally.failures:
        print("failed: " + ", ".join(tally.failures))
    print(f"{tally.passed} passed, {tally.failed} failed")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
