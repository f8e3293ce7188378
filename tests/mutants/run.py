#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks the code on purpose, one mutant at a time, and expects the named test to notice. See README.md beside this file."""
import argparse
import concurrent.futures
import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree

from mutants import BACKSTOPS, CHECKS, MUTANTS, SIM_MUTANTS, SIM_SEEDS

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PYTHON = "/usr/bin/python3"
WORK = os.path.join(ROOT, "build", "mutants")
TREE, BUILD = os.path.join(WORK, "tree"), os.path.join(WORK, "build")
TEST_SECONDS = 300
UNENDING = -1
PASSED, FAILED, BROKEN = "passed", "failed", "broken"


class Fault(Exception):
    """A mutant that says nothing: it does not fit, does not build, or its test cannot be run."""


# -- the tree that is mutated ------------------------------------------------------------------------------------------


def replace_file(path, data, mode=0o644):
    """A new file under an old name: what is linked to the old one keeps it."""
    fresh = f"{path}.fresh"
    with open(fresh, "wb") as handle:
        handle.write(data)
    os.chmod(fresh, mode)
    os.replace(fresh, path)


def read(path):
    with open(path, "rb") as handle:
        return handle.read()


def sources():
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True,
                            check=True).stdout.decode().split("\0")
    return [path for path in listed if path and os.path.isfile(os.path.join(ROOT, path))]


def copy_sources():
    """Makes TREE what the sources are now; what did not change keeps its time, so that only the rest is built again."""
    wanted = set(sources())
    for folder, _, names in os.walk(TREE):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, TREE) not in wanted:
                os.unlink(path)
    for path in wanted:
        source, copy = os.path.join(ROOT, path), os.path.join(TREE, path)
        data = read(source)
        if not os.path.exists(copy) or read(copy) != data:
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            replace_file(copy, data, os.stat(source).st_mode & 0o777)


def configure():
    if not os.path.exists(os.path.join(BUILD, "build.ninja")):
        subprocess.run(["cmake", "-G", "Ninja", "-S", TREE, "-B", BUILD, "-DCMAKE_BUILD_TYPE=", "-DCMAKE_C_FLAGS=-O1 -w"], check=True,
                       stdout=subprocess.DEVNULL)


def build(targets):
    if targets:
        done = subprocess.run(["ninja", "-C", BUILD, *sorted(targets)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Fault("does not build: " + "\n".join(line for line in done.stdout.splitlines() if "error" in line)[-600:])


def patched(text, patch):
    if text.count(patch.text) != 1:
        raise Fault(f"does not fit: {patch.file} has its text {text.count(patch.text)} times, not once")
    return text.replace(patch.text, patch.replacement)


def mutate(folder, patches):
    """What the files of `folder` are and what the patches make of them, by path."""
    before, after = {}, {}
    for patch in patches:
        path = os.path.join(folder, patch.file)
        if not os.path.exists(path):
            raise Fault(f"does not fit: there is no {patch.file}")
        before.setdefault(path, read(path))
        after[path] = patched(after.get(path, before[path].decode()), patch)
    return before, after


def apply(patches):
    """Writes the patches into TREE. Returns what the files were."""
    before, after = mutate(TREE, patches)
    for path, text in after.items():
        replace_file(path, text.encode(), os.stat(path).st_mode & 0o777)
    return before


def restore(before):
    for path, data in before.items():
        replace_file(path, data, os.stat(path).st_mode & 0o777)


# -- tests -------------------------------------------------------------------------------------------------------------


def targets_of(test):
    """What has to be built for a test. The gate's scripts are read from the sources."""
    path = test.partition("::")[0]
    if path.endswith(".c"):
        return {os.path.basename(path)[:-2]}
    if path == "tests/sim":
        return {"tidegate-sim"}
    if path == "tests/flow/test_gate_scripts.py":
        return set()
    return {"tidegate-ledger"} if path in ("tests/flow/test_ledger_sql.py", "tests/flow/test_ledger_sales.py") else {"stack"}


def stage(targets):
    """A copy of the tree and of the programs that tests run, so that the tree is free for the next mutant."""
    folder = tempfile.mkdtemp(prefix="stage-", dir=WORK)
    os.chmod(folder, 0o755)
    subprocess.run(["cp", "-al", TREE, f"{folder}/tree"], check=True)
    os.makedirs(f"{folder}/build/bin")
    for name in os.listdir(f"{BUILD}/bin"):
        if name in targets or ("stack" in targets and not name.startswith("test_")):
            shutil.copy2(f"{BUILD}/bin/{name}", f"{folder}/build/bin/{name}")
    return folder


def run(folder, command, **environment):
    """Output and exit code. What does not end is interrupted, so that it can stop the servers it started."""
    with subprocess.Popen(command, cwd=f"{folder}/tree", stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          env={**os.environ, **environment}) as process:
        try:
            return process.communicate(timeout=TEST_SECONDS)[0], process.returncode
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        try:
            output = process.communicate(timeout=30)[0]
        except subprocess.TimeoutExpired:
            process.kill()
            output = process.communicate()[0]
        return f"{output}\nnot finished after {TEST_SECONDS} s", UNENDING


def run_program(folder, path, names):
    """One test of a cmocka program; a property holds or ends its program."""
    found = {}
    for name in names:
        output, code = run(folder, [f"{folder}/build/bin/{os.path.basename(path)[:-2]}"], CMOCKA_TEST_FILTER=name)
        begun = name == "property" or f"[ RUN      ] {name}\n" in output
        found[name] = (PASSED if begun and code == 0 else FAILED if begun else BROKEN, output)
    return found


def run_flow(folder, path, names):
    """A test that pytest ran and found wanting has failed; one whose fixtures could not be made says nothing."""
    report = f"{folder}/{os.path.basename(path)}.xml"
    output, code = run(folder, [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}",
                                *(f"{path}::{name}" for name in sorted(names))], TIDEGATE_TEST_BUILD=f"{folder}/build")
    found = dict.fromkeys(names, (FAILED if code == UNENDING else BROKEN, output))
    cases = xml.etree.ElementTree.parse(report).getroot().iter("testcase") if os.path.exists(report) else ()
    for case in cases:
        name, worst = case.get("name").partition("[")[0], found.get(case.get("name").partition("[")[0])
        tags = {child.tag for child in case}
        outcome = FAILED if "failure" in tags else BROKEN if tags & {"error", "skipped"} else PASSED
        if worst is not None and worst[0] != FAILED:
            found[name] = (outcome, output)
    return found


def run_sim(folder, _, names):
    found = {}
    for name in names:
        options = ["--seeds", str(SIM_SEEDS), *([] if name == "schedules" else ["--mutant", name])]
        output, code = run(folder, [f"{folder}/build/bin/tidegate-sim", "--jobs", "1", *options])
        found[name] = (PASSED if code == 0 else FAILED if "VIOLATION" in output else BROKEN, output)
    return found


# -- the table ---------------------------------------------------------------------------------------------------------


class Row:
    """What is broken (nothing: the test has to pass), which backstop is off, and the test that decides."""

    def __init__(self, name, kind, patches, test, **options):
        self.name, self.kind, self.patches, self.test = name, kind, tuple(patches), test
        self.backstop, self.cheap = options.get("backstop", ""), options.get("cheap", False)
        self.wanted = options.get("wanted", FAILED)
        self.seconds, self.verdict, self.output = 0.0, "", ""

    def judge(self, found, output, seconds):
        words = {(FAILED, FAILED): "killed", (FAILED, PASSED): "SURVIVED", (PASSED, PASSED): "holds", (PASSED, FAILED): "FAILS"}
        self.verdict, self.output, self.seconds = words.get((self.wanted, found), "BROKEN"), output, seconds

    @property
    def good(self):
        return self.verdict in ("killed", "holds")

    def __str__(self):
        short = re.sub("^tests/((flow|unit|prop)/)?", "", self.test)
        return f"{self.name:<46} {self.kind:<9} {self.backstop:<10} {short:<84} {self.seconds:6.1f} {self.verdict}"


def run_tests(folder, rows):
    """Runs the tests of these rows, those of one file together; each row shares the time equally."""
    for path in sorted({row.test.partition("::")[0] for row in rows}):
        mine = [row for row in rows if row.test.partition("::")[0] == path]
        runner = run_sim if path == "tests/sim" else run_program if path.endswith(".c") else run_flow
        begun = time.monotonic()
        found = runner(folder, path, {row.test.partition("::")[2] for row in mine})
        seconds = (time.monotonic() - begun) / len(mine)
        for row in mine:
            row.judge(*found[row.test.partition("::")[2]], seconds)


def decide(rows, lock):
    """Rows with the same patches: one build, one copy."""
    targets = set().union(*(targets_of(row.test) for row in rows))
    try:
        with lock:
            before = apply(rows[0].patches)
            try:
                build(targets)
                folder = stage(targets)
            finally:
                restore(before)
        try:
            run_tests(folder, rows)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except Fault as fault:
        for row in rows:
            row.judge(BROKEN, str(fault), 0.0)
    return rows


def all_rows():
    """Unmutated, the tests pass; every mutant is killed; the same with each backstop switched off."""
    rows = [Row("(nothing)", "-", [], test, wanted=PASSED, cheap=any(m.test == test and m.cheap for m in MUTANTS))
            for test in sorted({mutant.test for mutant in MUTANTS})]
    rows += [Row(mutant.name, mutant.kind, [mutant.patch], mutant.test, cheap=mutant.cheap) for mutant in MUTANTS]
    for backstop, patches in BACKSTOPS.items():
        rows += [Row("(nothing)", "-", patches, test, backstop=backstop, wanted=PASSED) for test in CHECKS[backstop]]
        rows += [Row(mutant.name, mutant.kind, [*patches, mutant.patch], mutant.test, backstop=backstop)
                 for mutant in MUTANTS if backstop in mutant.without]
        rows += [Row(name, "simulated", patches, f"tests/sim::{name}", backstop=backstop) for name in SIM_MUTANTS[backstop]]
    return rows


def selected(options):
    rows = all_rows()
    if options.only:
        named = [row for row in rows if options.only in row.name or options.only == row.backstop]
        tests = {row.test for row in named}
        return [row for row in rows if row in named or (row.wanted == PASSED and not row.backstop and row.test in tests)]
    return [row for row in rows if row.cheap] if options.quick else rows


def decide_all(rows, jobs):
    """Builds once what all tests need, then decides the rows: building is one at a time, running is not."""
    begun = time.monotonic()
    for left in os.listdir(WORK):
        if left.startswith("stage-"):
            shutil.rmtree(os.path.join(WORK, left), ignore_errors=True)
    print(f"mutants: building what {len(rows)} rows need", file=sys.stderr, flush=True)
    copy_sources()
    configure()
    build(set().union(*(targets_of(row.test) for row in rows)))
    print(f"mutants: built in {time.monotonic() - begun:.0f} s", file=sys.stderr, flush=True)
    lock = threading.Lock()
    groups = {}
    for row in rows:
        groups.setdefault(row.patches, []).append(row)
    print(f"{'mutant':<46} {'kind':<9} {'without':<10} {'killed by':<84} {'s':>6} verdict")
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        started = [pool.submit(decide, group, lock) for group in sorted(groups.values(), key=len, reverse=True)]
        for done in concurrent.futures.as_completed(started):
            for row in done.result():
                print(row, flush=True)
                if not row.good:
                    print("    " + row.output.strip()[-3000:].replace("\n", "\n    "), flush=True)
    return time.monotonic() - begun


def list_rows(rows):
    """Names them; says which do not fit the sources any more."""
    bad = 0
    for row in rows:
        try:
            mutate(ROOT, row.patches)
            print(f"{row.name:<46} {row.kind:<9} {row.backstop:<10} {row.test}")
        except Fault as fault:
            bad += 1
            print(f"{row.name} {fault}", file=sys.stderr)
    return 1 if bad else 0


def main():
    parser = argparse.ArgumentParser(prog="tools/dev mutants", description=__doc__)
    parser.add_argument("--only", metavar="TEXT", help="mutants whose name contains TEXT, or all rows without this backstop")
    parser.add_argument("--quick", action="store_true", help="the cheap ones")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="tests that run at once (default: one per core)")
    parser.add_argument("--list", action="store_true", help="name them, say which do not fit the sources, and end")
    options = parser.parse_args()
    rows = selected(options)
    if not rows:
        parser.error(f"no mutant is called {options.only}")
    if options.list:
        return list_rows(rows)
    os.makedirs(TREE, exist_ok=True)
    try:
        with open(os.path.join(WORK, "lock"), "w", encoding="ascii") as lock:  # one run at a time in this tree
            fcntl.flock(lock, fcntl.LOCK_EX)
            seconds = decide_all(rows, options.jobs)
    except Fault as fault:
        print(f"mutants: the unmutated tree {fault}", file=sys.stderr)
        return 1
    bad = [row for row in rows if not row.good]
    killed = sum(row.verdict == "killed" for row in rows)
    print(f"{killed} killed, {sum(row.verdict == 'SURVIVED' for row in rows)} survive, "
          f"{sum(row.verdict == 'BROKEN' for row in rows)} broken; without a mutant {sum(row.verdict == 'holds' for row in rows)} hold, "
          f"{sum(row.verdict == 'FAILS' for row in rows)} fail; {seconds:.0f} s")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
