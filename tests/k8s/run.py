#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart on a real API server: a Kubernetes of one node is built from Debian's source and started in namespaces of its own, the
image is built and loaded, then a day is played on it (day.py). Exit 0: all of it holds; 1: something does not; 69: it cannot run here,
and why. See README.md."""
import argparse
import glob
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tools", "image"))
import apart  # noqa: E402  (needs the path above)
import images  # noqa: E402
from day import Day  # noqa: E402
from node import PAUSE_IMAGE, Node, NodeError  # noqa: E402

KEPT = os.path.join(ROOT, "build", "kubernetes")
CHART_TOOLS = os.path.join(ROOT, "build", "chart")


def say(text):
    print(f"k8s: {text}", file=sys.stderr, flush=True)


def prepare(skip_image):
    """Everything the node needs, as files below build/kubernetes; nothing is done twice. Returns the image's name."""
    for command in ([f"{HERE}/build.sh", KEPT], ["/usr/bin/python3", f"{ROOT}/tests/chart/run.py", "--install"], [f"{ROOT}/tools/dev", "build", "release", "tidegatectl"]):
        if subprocess.run(command, check=False).returncode:
            raise apart.Unavailable(f"{os.path.basename(command[0])} did not end well, see above")
    name = f"{images.NAME}:{images.version()}"
    if not skip_image or not images.exists(name):
        images.build()
    images.make_pause(PAUSE_IMAGE)
    names = [name, PAUSE_IMAGE]
    for value, store in images.chart_stores().items():
        images.make_store(value, store)
        names.append(store)
    os.makedirs(f"{KEPT}/images", exist_ok=True)
    for path in glob.glob(f"{KEPT}/images/*"):
        os.unlink(path)
    for number, one in enumerate(names):
        images.podman("save", "--format", "docker-archive", "-o", f"{KEPT}/images/{number}.tar", one)
    return name


def inside(folder, image, only):
    """The first process of the namespaces but one: starts the node, plays the day."""
    apart.settle(folder)
    node = Node(f"{KEPT}/bin", folder)
    begun = time.monotonic()
    try:
        node.start()
        for archive in sorted(glob.glob(f"{KEPT}/images/*.tar")):
            node.load(archive)
    except NodeError as fault:
        print(f"FAIL the node starts\n     {fault}\n0 passed, 1 failed")
        return 1
    print(f"ok   a node of Kubernetes {open(f'{KEPT}/built', encoding='ascii').read().strip()} is ready {time.monotonic() - begun:.0f} s", flush=True)
    env = {**os.environ, "KUBECONFIG": node.kubeconfig, "HOME": folder, "HELM_CACHE_HOME": folder, "HELM_CONFIG_HOME": folder, "HELM_DATA_HOME": folder}
    helms = {name: f"{CHART_TOOLS}/{name}" for name in ("helm3", "helm4")}
    day = Day(env, f"{CHART_TOOLS}/kubectl3", helms, image, f"{ROOT}/build/release/bin/tidegatectl")
    passed, failed = day.play_day(only)
    node.stop()
    print(f"{passed + 1} passed, {failed} failed")
    return 1 if failed else 0


def outside(options):
    apart.check()
    image = prepare(options.skip_image)
    folder = tempfile.mkdtemp(prefix="node-", dir=KEPT)
    say(f"starting the node; its logs are in {folder} while it runs")
    try:
        return apart.run([sys.executable, os.path.abspath(__file__), "--inside", folder, "--image", image,
                          *(["--only", options.only] if options.only else [])], "k8s.io")
    finally:
        if not options.keep_logs:
            shutil.rmtree(folder, ignore_errors=True)


def main():
    parser = argparse.ArgumentParser(prog="tools/dev test-k8s", description=__doc__)
    parser.add_argument("--only", help="only steps whose name contains this, and the installations")
    parser.add_argument("--skip-image", action="store_true", help="take the image that was built last, whatever changed since")
    parser.add_argument("--keep-logs", action="store_true", help="leave the node's folder in build/kubernetes")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--image", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.inside:
        return inside(options.inside, options.image, options.only)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return outside(options)
    except (apart.Unavailable, images.ImageError) as fault:
        print(f"k8s: cannot run here: {fault}", file=sys.stderr)
        return os.EX_UNAVAILABLE
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
