# SPDX-License-Identifier: Apache-2.0
"""The packaged nginx with a configuration of the test's, and the packaged Varnish as it is."""
import contextlib
import os
import shutil
import subprocess
import tempfile

from shop import eventually
from stack import ENDS_WITH_US, free_port, listens


@contextlib.contextmanager
def nginx(http):
    """Runs nginx with http(folder, port) inside its http block, until the context ends. Gives (its address, its folder)."""
    folder, port = tempfile.mkdtemp(prefix="tidegate-nginx-"), free_port()
    os.chmod(folder, 0o777)  # its workers are another user
    temporary = " ".join(f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    with open(f"{folder}/nginx.conf", "w", encoding="utf-8") as handle:
        handle.write(f"worker_processes 1; daemon off; error_log {folder}/error.log; pid {folder}/pid;\n"
                     f"events {{ worker_connections 512; }}\nhttp {{ {temporary}\n{http(folder, port)}\n}}\n")
    yield from running(["nginx", "-c", f"{folder}/nginx.conf"], folder, port)


@contextlib.contextmanager
def varnish(upstream):
    """Runs Varnish with the rules it comes with before one upstream. Gives (its address, its folder)."""
    folder, port = tempfile.mkdtemp(prefix="tidegate-varnish-"), free_port()
    yield from running(["varnishd", "-F", "-j", "none", "-n", f"{folder}/work", "-a", f"127.0.0.1:{port}", "-b", "{}:{}".format(*upstream),
                        "-s", "malloc,16m"], folder, port)


def running(command, folder, port):
    with subprocess.Popen([*ENDS_WITH_US, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: listens(port), 20, f"{command[0]} listens")
            yield ("127.0.0.1", port), folder
        finally:
            process.terminate()
            process.wait(10)
            shutil.rmtree(folder, ignore_errors=True)
