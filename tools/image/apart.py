# SPDX-License-Identifier: Apache-2.0
"""Namespaces of its own for a test that starts containers: network, mounts and processes. What it starts, mounts or writes into the kernel's
tables ends with their first process, however that ends: the machine's own network, firewall and mounts are never touched."""
import contextlib
import glob
import os
import subprocess
import time

NAMESPACES = ("--net", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc")
TRIAL = """ip link add veth0 type veth peer name veth1
mount -t tmpfs tmpfs /run
mkdir /run/upper /run/work
mount -t overlay overlay -o lowerdir=/var,upperdir=/run/upper,workdir=/run/work /var"""
CONTROLLERS = "/sys/fs/cgroup"
GROUPS_S = 15


class Unavailable(Exception):
    """Why this cannot run here."""


def check():
    if os.geteuid() != 0:
        raise Unavailable("containers need root for their namespaces: run it with sudo")
    tried = subprocess.run(["unshare", *NAMESPACES, "sh", "-ec", TRIAL], capture_output=True, text=True, check=False)
    if tried.returncode:
        raise Unavailable(f"this machine gives no namespaces with devices and mounts of their own: {tried.stderr.strip()}")


def groups(parent):
    """Every control group below a parent, the innermost first."""
    found = [path for top in (*glob.glob(f"{CONTROLLERS}/*/{parent}"), f"{CONTROLLERS}/{parent}") for path, _, _ in os.walk(top, topdown=False)]
    return dict.fromkeys(found)


def remove_groups(parent, before):
    """Those of containers that are ending right now."""
    deadline = time.monotonic() + GROUPS_S
    while time.monotonic() < deadline:
        left = [group for group in groups(parent) if group not in before]
        for group in left:
            with contextlib.suppress(OSError):
                os.rmdir(group)
        if not left:
            return
        time.sleep(0.1)


def run(command, parent):
    """Runs a command apart; its exit code. `parent`: the control group its containers get theirs below."""
    before = groups(parent)
    process = subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "unshare", *NAMESPACES, "catatonit", "--", *command])
    try:
        return process.wait()
    finally:
        process.kill()  # and with it all of its namespaces
        process.wait()
        remove_groups(parent, before)


def settle(folder):
    """Inside: what is written below /run and /var from now on goes into `folder`, or into memory."""
    for part in ("upper", "work"):
        os.mkdir(f"{folder}/{part}")
    for mount in (("-t", "tmpfs", "tmpfs", "/run"), ("-t", "tmpfs", "tmpfs", "/dev/shm"),
                  ("-t", "overlay", "overlay", "-o", f"lowerdir=/var,upperdir={folder}/upper,workdir={folder}/work", "/var")):
        subprocess.run(["mount", *mount], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
