# SPDX-License-Identifier: Apache-2.0
"""The packaged nginx with a configuration of the test's."""
import contextlib
import os
import shutil
import subprocess
import tempfile

from shop import eventually
from stack import free_port, listens


@contextlib.contextmanager
def nginx(http):
    """Runs nginx with http(folder, port) inside its http block, until the context ends. Gives (its address, its folder)."""
    folder, port = tempfile.mkdtemp(prefix="tidegate-nginx-"), free_port()
    os.chmod(folder, 0o777)  # its workers are another user
    temporary = " ".join(f"{name}_temp_path {folder}/{name};" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    with open(f"{folder}/nginx.conf", "w", encoding="utf-8") as handle:
        handle.write(f"worker_processes 1; daemon off; error_log {folder}/error.log; pid {folder}/pid;\n"
                     f"events {{ worker_connections 512; }}\nhttp {{ {temporary}\n{http(folder, port)}\n}}\n")
    with subprocess.Popen(["nginx", "-c", f"{folder}/nginx.conf"], stderr=subprocess.DEVNULL) as process:
        try:
            eventually(lambda: listens(port), 10, "nginx listens")
            yield ("127.0.0.1", port), folder
        finally:
            process.terminate()
            process.wait(10)
            shutil.rmtree(folder, ignore_errors=True)
