# SPDX-License-Identifier: Apache-2.0
"""What docs/operations tells people to do, done: the blocks of sale-day.md in order, the program of control.md."""
import os
import re
import subprocess

from conftest import ROOT


def blocks(page, language):
    """(line, text) of every block of a page in this language."""
    with open(os.path.join(ROOT, "docs", "operations", page), encoding="utf-8") as handle:
        text = handle.read()
    return [(text.count("\n", 0, found.start()) + 2, found.group(1))
            for found in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)]


def environment(shop):
    """What an operator's shell has: the tools on PATH; the page reads run/env by itself."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
    return {**kept, "PATH": f"{shop.stack.bin}:{kept['PATH']}", "TIDEGATE_RUN": shop.stack.run}


def test_the_sale_day_is_run_as_it_is_written(own_shop):
    written = blocks("sale-day.md", "sh")
    script = "set -euo pipefail\n" + "".join(f"echo '== line {line}' >&2\n{text}" for line, text in written)
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, env=environment(own_shop), capture_output=True, text=True, check=False,
                          timeout=240)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert len(written) > 10 and done.stderr.count("== line ") == len(written)
    for said in ("apply summer: done", "ready (1 edges)", '"orderId":"ord_', "verdict", "pause summer: done", "price label is wrong",
                 "resume summer: done", "pace summer: done", "ms more", "rebuild summer: done", "reservation.confirmed", "close summer: done"):
        assert said in done.stdout + done.stderr, f"{said}: not in\n{done.stdout}{done.stderr}"
    assert own_shop.state("summer") == "closed"
    own_shop.referee("summer")
