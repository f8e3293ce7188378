#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The day of tests/k8s/day.py on a cluster of kind, for machines that have Docker and kind. Where they do not it says that it was skipped,
and exits 69: nothing was shown. See README.md."""
import argparse
import os
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "k8s"))
from day import Day  # noqa: E402  (needs the path above)

NAME = "tidegate-test"
IMAGE = "localhost/tidegate:test"


def missing():
    """What this machine lacks, as a sentence; None when it has everything."""
    for program in ("docker", "kind", "kubectl"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    if subprocess.run(["docker", "info"], capture_output=True, check=False).returncode:
        return "Docker does not answer"
    if not helms():
        return "helm is not installed"
    return None


def helms():
    """Helm 3 and Helm 4, each where it is: HELM3 and HELM4, or the one called helm for both."""
    found = {name: os.environ.get(name.upper()) or shutil.which(name) or shutil.which("helm") for name in ("helm3", "helm4")}
    return found if all(found.values()) else None


def step(*command, **options):
    print(f"kind: {' '.join(command[:4])}", file=sys.stderr, flush=True)
    subprocess.run(command, check=True, **options)


def play(only):
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, "KUBECONFIG": f"{folder}/kubeconfig"}
        step(f"{ROOT}/tools/dev", "build", "release", "tidegatectl")
        step("docker", "build", "-f", f"{ROOT}/deploy/image/Dockerfile", "-t", IMAGE, ROOT)
        try:
            step("kind", "create", "cluster", "--name", NAME, "--kubeconfig", f"{folder}/kubeconfig", "--wait", "180s", env=env)
            step("kind", "load", "docker-image", "--name", NAME, IMAGE, env=env)
            day = Day(env, "kubectl", helms(), IMAGE, f"{ROOT}/build/release/bin/tidegatectl")
            return day.play_day(only)
        finally:
            step("kind", "delete", "cluster", "--name", NAME, env=env)


def main():
    parser = argparse.ArgumentParser(prog="tools/dev test-kind", description=__doc__)
    parser.add_argument("--only", help="only steps whose name contains this, and the installations")
    options = parser.parse_args()
    why = missing()
    if why:
        print(f"kind: skipped, nothing was shown: {why}. tools/dev test-k8s needs neither Docker nor kind.")
        return os.EX_UNAVAILABLE
    try:
        passed, failed = play(options.only)
    except subprocess.CalledProcessError as fault:
        print(f"kind: {fault}", file=sys.stderr)
        passed, failed = 0, 1
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
