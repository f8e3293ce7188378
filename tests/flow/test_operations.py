# SPDX-License-Identifier: Apache-2.0
"""What docs/operations tells people to do, done: the blocks of sale-day.md in order, the program of control.md."""
import json
import os
import re
import subprocess

import pytest

from conftest import ROOT
from shop import eventually
from stack import DAEMONS


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


@pytest.fixture(scope="module")
def node():
    """Runs a program of node with the packages of tools/npm."""
    subprocess.run([f"{ROOT}/tools/npm/setup.sh"], check=True, capture_output=True)

    def run(*arguments, **environment):
        return subprocess.run(["node", *arguments], cwd=ROOT, env={**os.environ, "NODE_PATH": f"{ROOT}/build/npm/node_modules", **environment},
                              capture_output=True, text=True, check=False, timeout=60)
    return run


def test_a_program_of_another_language_pauses_and_resumes(shop, node, tmp_path):
    name = shop.sale()
    (_, program), = blocks("control.md", "js")
    (tmp_path / "control.js").write_text(program, encoding="utf-8")

    def control(*arguments, key="control-operator"):
        return node(f"{tmp_path}/control.js", f"{shop.stack.env['TIDEGATE_KEYS']}/{key}", name, *arguments,
                    NATS_URL=shop.stack.env["TIDEGATE_NATS_URL"],
                    NATS_NKEY=f"{shop.stack.run}/keys/nats-operator")
    paused = control("pause", "smoke in the hall")
    assert paused.stdout.splitlines()[0] == "accepted: paused", paused.stdout + paused.stderr
    assert set(paused.stdout.splitlines()[1:]) == {f"{daemon} honoured" for daemon in DAEMONS}
    assert shop.state(name) == "paused"
    assert json.loads(shop.stack.ctl("sale", "show", name, "-o", "json").stdout)["state"]["pauses"][0]["cause"] == "smoke in the hall"

    def resumed():
        told = control("resume")
        return told.returncode == 0 and told.stdout.startswith("accepted: resumed, 1 pauses lifted")
    eventually(resumed, 20, "resumed after two clean rounds")
    assert shop.state(name) == "open"
    forged = control("pause", key="control-invariant")
    assert forged.returncode == 1 and forged.stdout.startswith("refused: signature_invalid"), forged.stdout + forged.stderr


def test_the_official_client_of_nats_lists_every_daemon(shop, node):
    told = node("tests/contracts/micro.js", NATS_URL=shop.stack.env["TIDEGATE_NATS_URL"],
                    NATS_NKEY=f"{shop.stack.run}/keys/nats-operator")
    assert told.returncode == 0, told.stderr
    found = json.loads(told.stdout)
    assert {service["name"] for service in found["ping"]} == {f"tidegate-{daemon}" for daemon in DAEMONS}
    for info in found["info"]:
        assert re.fullmatch(r"\d+\.\d+\.\d+", info["version"]) and info["description"]
        assert all(re.fullmatch(r"[A-Za-z0-9_-]+", endpoint["name"]) for endpoint in info["endpoints"])
    served = {endpoint["subject"]: endpoint for stats in found["stats"] for endpoint in stats["endpoints"]}
    assert served["tidegate.v1.ledger.sales"]["num_requests"] > 0 and served["tidegate.v1.ledger.sales"]["average_processing_time"] > 0
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT[\d:.]+Z", stats["started"]) for stats in found["stats"])
    assert found["byName"] == 1 and found["byId"] == 1
