# SPDX-License-Identifier: Apache-2.0
"""A stack ends with the process that started it, however that ends; one that is to last stays until `down`."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

import pytest

from conftest import BUILD, ROOT
from shop import eventually
from stack import DAEMONS, down, read_pids

STARTER = """
import sys, time
sys.path.insert(0, f"{sys.argv[1]}/tools/stack")
from stack import Stack
stack = Stack(sys.argv[2], sys.argv[3], quiet=True, lasting=sys.argv[4] == "lasting")
stack.start()
print("started", flush=True)
time.sleep(600)
"""


@pytest.fixture
def killed_starter():
    """Has a stack started by another process and kills that one; gives the stack's run folder and what ran in it."""
    folder = tempfile.mkdtemp(prefix="tidegate-starter-")
    os.chmod(folder, 0o711)
    run = f"{folder}/run"

    def start(how):
        with subprocess.Popen([sys.executable, "-c", STARTER, ROOT, run, BUILD, how], stdout=subprocess.PIPE, text=True) as starter:
            assert starter.stdout.readline() == "started\n"
            pids = read_pids(run)
            starter.send_signal(signal.SIGKILL)
        assert set(pids) == {"nats", "redis", "postgres", *DAEMONS}
        return run, pids
    yield start
    down(run)
    shutil.rmtree(folder, ignore_errors=True)


def test_a_stack_ends_with_whoever_started_it(killed_starter):
    run, _ = killed_starter("with its starter")
    eventually(lambda: read_pids(run) == {}, 20, "all of it is gone")


def test_a_stack_that_is_to_last_stays_until_down(killed_starter):
    run, pids = killed_starter("lasting")
    assert read_pids(run) == pids and down(run) == len(pids) and read_pids(run) == {}
