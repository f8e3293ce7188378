# SPDX-License-Identifier: Apache-2.0
"""What docs/ tells people to do, done: the blocks of sale-day.md and shop.md in order, the programs of control.md and shop.md."""
import json
import os
import re
import subprocess

import pytest

from conftest import ROOT
from shop import eventually
from stack import DAEMONS, read_pids


def blocks(page, language):
    """(line, text) of every block of a page in this language."""
    with open(os.path.join(ROOT, "docs", page), encoding="utf-8") as handle:
        text = handle.read()
    return [(text.count("\n", 0, found.start()) + 2, found.group(1))
            for found in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)]


def environment(shop):
    """What an operator's shell has: the tools on PATH; the page reads run/env by itself."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDEGATE_")}
    return {**kept, "PATH": f"{shop.stack.bin}:{kept['PATH']}", "TIDEGATE_RUN": shop.stack.run}


def follow(shop, page):
    """All blocks of a page in one shell, as it tells people to."""
    written = blocks(page, "sh")
    script = "set -euo pipefail\n" + "".join(f"echo '== line {line}' >&2\n{text}" for line, text in written)
    done = subprocess.run(["bash", "-c", script], cwd=ROOT, env=environment(shop), capture_output=True, text=True, check=False,
                          timeout=240)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert written and done.stderr.count("== line ") == len(written)
    return done


def test_the_sale_day_is_run_as_it_is_written(own_shop):
    assert len(blocks("operations/sale-day.md", "sh")) > 10
    done = follow(own_shop, "operations/sale-day.md")
    for said in ("apply summer: done", "ready (1 edges)", '"orderId":"ord_', "verdict", "pause summer: done", "price label is wrong",
                 "resume summer: done", "pace summer: done: pace 20/s", "pace summer: done: back to the law", "ms more", "rebuild summer: done", "reservation.confirmed", "close summer: done"):
        assert said in done.stdout + done.stderr, f"{said}: not in\n{done.stdout}{done.stderr}"
    assert own_shop.state("summer") == "closed"
    own_shop.referee("summer")


@pytest.fixture(scope="module")
def node():
    """Runs a program of node with the packages of tools/npm."""
    subprocess.run([f"{ROOT}/tools/npm/setup.sh"], check=True, capture_output=True)

    def run(*arguments, how=subprocess.run, **environment):
        limits = {"check": False, "timeout": 60} if how is subprocess.run else {}
        return how(["node", *arguments], cwd=ROOT, env={**os.environ, "NODE_PATH": f"{ROOT}/build/npm/node_modules", **environment},
                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **limits)
    return run


def test_a_program_of_another_language_pauses_and_resumes(shop, node, tmp_path):
    name = shop.sale()
    (_, program), = blocks("operations/control.md", "js")
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


def test_a_shop_sells_as_it_is_written_and_hears_of_it(shop, node, tmp_path):
    done = follow(shop, "shop.md")
    assert '"state":"confirmed"' in done.stdout and '"orderId":"ord_' in done.stdout, done.stdout + done.stderr
    (_, program), = blocks("shop.md", "js")
    (tmp_path / "events.js").write_text(program, encoding="utf-8")
    reader = node(tmp_path / "events.js", how=subprocess.Popen, NATS_URL=shop.stack.env["TIDEGATE_NATS_URL"],
                  NATS_NKEY=f"{shop.stack.run}/keys/nats-integrator")
    try:
        heard = {}
        while {("shop", "held"), ("shop", "confirmed")} - set(heard):
            line = reader.stdout.readline()
            assert line, reader.stderr.read()
            name, _, text = line.partition(" ")
            event = json.loads(text)
            heard[event["sale"], event["kind"]] = (name, event)
        name, sold = heard["shop", "confirmed"]
        assert name == f"{sold['reservation_id']}.confirmed" and sold["user"] == "customer-7" and sold["payment_id"] == "payment-1"
    finally:
        reader.kill()
        reader.wait()


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


def test_down_finds_all_that_up_started(shop):
    """Redis gives itself a title, which overwrote the environment it is known by: it went on for ever."""
    assert set(read_pids(shop.stack.run)) == set(shop.stack.processes)
