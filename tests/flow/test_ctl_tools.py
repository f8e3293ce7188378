# SPDX-License-Identifier: Apache-2.0
"""tidegatectl watch, trace, keys and token, and what it says when nobody answers."""
import json
import os
import subprocess

import pytest
import yaml

from shop import eventually


def run(shop, *arguments, env=None, cwd=None, without=()):
    """tidegatectl with exactly this environment."""
    clean = {name: value for name, value in {**os.environ, **shop.stack.env, **(env or {})}.items() if name not in without}
    return subprocess.run([f"{shop.stack.bin}/tidegatectl", *arguments], env=clean, cwd=cwd or shop.stack.run, capture_output=True,
                          text=True, check=False, timeout=60)


def steps(shop, reservation):
    done = run(shop, "trace", reservation, "-o", "json")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    return [(step["daemon"], step["event"]) for step in document["steps"]], document


def test_trace_follows_a_reservation_from_hold_to_settlement(shop):
    name = shop.sale()
    _, _, _, won = shop.win(name)
    reservation = won.json["reservationId"]
    assert shop.confirm(reservation).status == 200

    def settled():
        way, document = steps(shop, reservation)
        return (way, document) if ("reserve", "reservation.settled") in way else None
    way, document = eventually(settled, 10, "the gate settled it")
    order = [event for _, event in way]
    for earlier, later in (("reservation.held", "reservation.recorded"), ("reservation.recorded", "reservation.confirmed"),
                           ("reservation.confirmed", "reservation.settled")):
        assert order.index(earlier) < order.index(later), way
    assert document["ledger"]["state"] == "confirmed" and document["ledger"]["orderId"].startswith("ord_")
    assert [step["ts"] for step in document["steps"]] == sorted(step["ts"] for step in document["steps"])


def test_trace_says_when_there_is_nothing(shop):
    done = run(shop, "trace", "res_" + "0" * 26)
    assert done.returncode == 1 and "no trace of res_" in done.stderr
    assert run(shop, "trace", "res_short").returncode == 2
    assert run(shop, "trace", "res_" + "0" * 26, "--logs", "/nowhere").returncode == 78


def test_watch_prints_lines_where_there_is_no_terminal(shop):
    name = shop.sale(units=7)
    done = run(shop, "watch", name, "--for", "3500ms")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    assert lines[-1].startswith(f"{name} open free=7 held=0 sold=0 waiting="), done.stdout
    assert "\033" not in done.stdout
    told = run(shop, "watch", name, "--for", "1500ms", "-o", "json")
    assert json.loads(told.stdout.splitlines()[0])["free"] == 7


def test_watch_of_a_sale_nobody_has_shows_nothing_as_zero(shop):
    done = run(shop, "watch", "nobody-made-this", "--for", "1500ms")
    assert "nobody-made-this unknown free=- held=- sold=-" in done.stdout
    assert done.returncode == 69 and "nothing was heard of nobody-made-this" in done.stderr


def test_the_edge_takes_a_token_of_the_tool(shop):
    name = shop.sale()
    token = run(shop, "token", "buyer", "usr é 1").stdout.strip()
    headers = {"Authorization": f"Bearer {token}"}
    eventually(lambda: shop.http("GET", f"/sale/{name}/ticket", None, headers).status == 200, 10, "the token is taken")
    forged = {"Authorization": f"Bearer {token[:-2]}"}
    assert shop.http("GET", f"/sale/{name}/ticket", None, forged).status == 401
    assert run(shop, "token", "buyer", "").returncode == 2
    assert run(shop, "token", "buyer", "a\nb").returncode == 2
    assert run(shop, "token", "buyer", "x", "--life", "0s").returncode == 2


def test_keys_are_made_once_and_for_the_owner_only(shop, tmp_path):
    folder = tmp_path / "keys"
    assert run(shop, "keys", "new", str(folder)).returncode == 0
    made = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert run(shop, "keys", "new", str(folder)).returncode == 1
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == made
    for path in folder.iterdir():
        public = path.suffix in (".pub", ".hash")
        assert path.stat().st_mode & 0o777 == (0o644 if public else 0o600), path


def test_half_of_a_configuration_is_not_written(shop, tmp_path):
    done = run(shop, "keys", "nats", str(tmp_path))
    assert done.returncode == 78 and done.stdout == "" and "nats-edge.pub" in done.stderr


@pytest.mark.parametrize("arguments, said", [
    ((), "expected a command"), (("sale", "apply", "-f", "/"), "Is a directory"),
    (("arm", "x", "--wait", "1e3"), "from 1ms to 10m such as"), (("draw", "verify", "http://127.0.0.1:9/sale/x"), "cannot be had there"),
])
def test_a_refusal_says_what_is_expected(shop, arguments, said):
    done = run(shop, *arguments)
    assert done.returncode in (2, 69) and said in done.stderr, done


@pytest.mark.parametrize("arguments", [("sale", "show"), ("sale", "pause", "demo"), ("watch", "demo")])
def test_nobody_answers(shop, arguments):
    done = run(shop, *arguments, env={"TIDEGATE_NATS_URL": "nats://someone:secret@127.0.0.1:9"})
    assert done.returncode == 69
    assert "NATS at nats://127.0.0.1:9 does not answer" in done.stderr and "tools/dev up" in done.stderr
    assert "secret" not in done.stderr


def test_keys_are_asked_for(shop, tmp_path):
    done = run(shop, "sale", "pause", "demo", without=("TIDEGATE_KEYS",), cwd=str(tmp_path))
    assert done.returncode == 78 and "TIDEGATE_KEYS" in done.stderr
    done = run(shop, "sale", "pause", "demo", env={"TIDEGATE_KEYS": str(tmp_path)})
    assert done.returncode == 78 and "control-operator" in done.stderr


def test_run_env_is_read_where_the_environment_is_silent(shop, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "env").write_text("".join(f"{name}={value}\n" for name, value in shop.stack.env.items()), encoding="utf-8")
    names = ("TIDEGATE_NATS_URL", "TIDEGATE_KEYS", "TIDEGATE_LOGS")
    assert run(shop, "sale", "show", without=names, cwd=str(tmp_path)).returncode == 0
    assert run(shop, "sale", "show", without=names, cwd=str(tmp_path), env={}).returncode == 0
    own = run(shop, "sale", "show", cwd=str(tmp_path), env={"TIDEGATE_NATS_URL": "nats://127.0.0.1:9"})
    assert own.returncode == 69  # what is set is not overridden


@pytest.mark.parametrize("arguments", [(), ("sale",), ("sale", "fly", "demo"), ("sale", "pause"), ("sale", "pause", "a", "b"),
                                       ("sale", "apply"), ("sale", "pause", "a/b"), ("sale", "pause", "demo", "--cause", "a\nb"),
                                       ("sale", "pause", "demo", "--cause", "x" * 128), ("pace", "demo", "1e3/s"),
                                       ("pace", "demo", "0/s"), ("pace", "demo", "5/s", "--auto"), ("signal", "demo", "disk", "91"),
                                       ("signal", "demo", "disk", "1e3", "--limit", "5"), ("signal", "demo", "disk"),
                                       ("sale", "resume", "demo", "--wait", "5"), ("watch", "demo", "--for", "0s"),
                                       ("sale", "show", "-o", "xml"), ("--nonsense",)])
def test_usage(shop, arguments):
    done = run(shop, *arguments)
    assert done.returncode == 2 and done.stderr, done.stdout


def test_help_is_there_for_every_command(shop):
    listed = run(shop, "--help")
    assert listed.returncode == 0 and "sale resume SALE" in listed.stdout
    for command in ("sale apply", "sale plan", "sale show", "sale open", "sale pause", "sale resume", "sale rebuild", "sale close",
                    "sale extend", "completion", "warm", "pace", "signal", "watch", "trace", "keys new", "token buyer", "audit tail"):
        done = run(shop, *command.split(), "--help")
        assert done.returncode == 0 and "Exit codes: 0 done" in done.stdout, command
    assert run(shop, "--version").stdout.startswith("tidegatectl ")


def test_yaml_is_the_same_document_as_json(shop):
    name = shop.sale()
    run(shop, "sale", "pause", name, "--cause", "true: é \"quoted\"")
    told = run(shop, "sale", "show", name, "-o", "yaml")
    assert told.stdout.startswith("---\n") and "phase: paused" in told.stdout, told.stdout
    wanted, found = json.loads(run(shop, "sale", "show", name, "-o", "json").stdout), yaml.safe_load(told.stdout)
    for document in (wanted, found):
        for changing in ("cleanRounds", "lastClean", "ledgerNow"):
            document["state"].pop(changing)
    assert found == wanted


def completed(shop, words):
    """What bash offers after these words, the last one unfinished."""
    script = run(shop, "completion", "bash").stdout
    line = " ".join(f"'{word}'" for word in ("tidegatectl", *words))
    asked = f"{script}\nCOMP_WORDS=({line}); COMP_CWORD={len(words)}; _tidegatectl; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", asked], env={"PATH": f"{shop.stack.bin}:{os.environ['PATH']}"}, capture_output=True, text=True,
                          check=True)
    return done.stdout.split()


def test_shells_complete_commands_and_options(shop):
    assert completed(shop, ["sa"]) == ["sale"]
    assert {"pause", "resume", "extend", "rebuild"} <= set(completed(shop, ["sale", ""]))
    assert completed(shop, ["sale", "extend", "demo", "--in"]) == ["--in-flight"]
    assert completed(shop, ["nonsense", ""]) == []
    for shell in ("zsh", "fish"):
        assert "tidegatectl __complete" in run(shop, "completion", shell).stdout
    assert run(shop, "completion", "tcsh").returncode == 2


def test_warm_says_ready_when_everything_is_there(shop):
    name = shop.apply(opens_in=3600)
    done = run(shop, "warm", name)
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{name}: ready (1 edges)\n" and "boards     every edge has the queue's board" in done.stderr
    assert json.loads(run(shop, "warm", name, "-o", "json").stdout) == {"sale": name, "ready": True, "missing": [], "edges": 1}
    assert run(shop, "warm", "nobody").returncode == 1


def test_warm_names_what_is_missing(own_shop):
    name = own_shop.apply(opens_in=3600)
    assert run(own_shop, "warm", name).returncode == 0
    own_shop.stack.kill("admission")
    own_shop.stack.kill("sweeper")
    done = run(own_shop, "warm", name, "--wait", "2s", "-o", "json")
    assert done.returncode == 1 and json.loads(done.stdout)["missing"] == ["sweeper", "admission"]
