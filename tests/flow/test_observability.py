# SPDX-License-Identifier: Apache-2.0
"""What can be seen of a sale from outside, after one that had everything in it: metrics, logs, traces, answers."""
import glob
import json
import re
import subprocess
import uuid

import pytest

from conftest import ROOT, close_shop, open_shop
from openapi import documented, route
from shop import eventually, sign_buyer
from stack import DAEMONS

# What only an accident counts, an edge that limits, or a lane that is not live.
ACCIDENTS = {"http_connections_closed_total", "bus_call_failures_total", "bus_slow_consumer_total", "load_errors_total", "bus_invalid_total",
             "bus_refused_total", "lane_waits_total"}


class Watched:
    """A shop whose every answer is held against the OpenAPI file, and who remembers every secret that was spoken."""

    def __init__(self, shop):
        self.shop, self.secrets, self.routes = shop, set(), set()
        self.http = shop.http
        shop.http = self.judged

    def judged(self, method, path, body=None, headers=None, address=None):
        answer = self.http(method, path, body, headers, address)
        known = route(path)
        assert known, path
        self.routes.add((method, known, answer.status))
        documented(answer, known, method.lower())
        for name, value in (headers or {}).items():
            if name.replace("_", "-") in ("Authorization", "X-Ticket", "X-Admission-Token", "Idempotency-Key"):
                self.secrets.add(value.removeprefix("Bearer "))
        for name in ("token", "admissionToken"):
            if isinstance(answer.json, dict) and name in answer.json:
                self.secrets.add(answer.json[name])
        return answer


@pytest.fixture(scope="module")
def sale():
    shop, folder = open_shop()
    try:
        yield play(shop)
    finally:
        close_shop(shop, folder)


def play(shop):
    """A sale of two units, with a pause, a rebuild, a lapse, a payment, and people who are told no."""
    watched = Watched(shop)
    watched.parent = f"00-{uuid.uuid4().hex}-{uuid.uuid4().hex[:16]}-01"
    name = watched.name = shop.sale(units=2, hold="5s")
    buyer = watched.buyer = shop.buyer("mary.major+42@example.com")
    admission = buyer.admission(name)
    assert shop.buyer().reserve(name).status == 403
    assert shop.http("GET", f"/sale/{name}/status").status == 400
    assert shop.http("GET", "/sale/nobody/board").status == 404
    assert shop.http("GET", f"/sale/{name}/ticket", None, {"Authorization": f"Bearer {sign_buyer(b'x' * 32, {'sub': 'eve'})}"}).status == 401
    won = buyer.call("POST", f"/sale/{name}/reserve", None, X_Admission_Token=admission, Idempotency_Key="idempotency-4711",
                     traceparent=watched.parent)
    assert won.status == 201, won
    watched.reservation = won.json["reservationId"]
    assert shop.extend(watched.reservation).status == 200
    assert shop.confirm(watched.reservation, payment="payment-0815").status == 200
    assert buyer.read(watched.reservation).status == 200
    loser, lapsing = shop.buyer(), shop.buyer()
    late, early = loser.admission(name), lapsing.admission(name)
    assert lapsing.reserve(name, early).status == 201  # and lapses
    assert loser.reserve(name, late).code == "sold_out"
    eventually(lambda: shop.ledger("SELECT count(*) FROM tidegate.reservations WHERE restocked_at IS NOT NULL")[0][0] == 1, 20, "it was given back")
    shop.stack.ctl("sale", "pause", name, "--cause", "a drill")
    shop.stack.ctl("sale", "rebuild", name)
    shop.stack.ctl("sale", "resume", name, "--wait", "30s")
    eventually(lambda: shop.board(name).get("state") == "open", 10, "open again")
    return watched


def exported(watched, daemon):
    status, text = watched.shop.stack.admin(daemon, "/metrics")
    assert status == 200
    return text


def test_promtool_finds_nothing_wrong_with_the_metrics_of_any_daemon(sale):
    for daemon in DAEMONS:
        done = subprocess.run(["promtool", "check", "metrics"], input=exported(sale, daemon), capture_output=True, text=True, check=False)
        assert done.returncode == 0 and not done.stderr, daemon + "\n" + done.stdout + done.stderr


def test_every_metric_of_the_catalogue_is_exported_by_somebody(sale):
    with open(f"{ROOT}/catalog/metrics.def", encoding="utf-8") as handle:
        rows = dict(re.findall(r'^TG_METRIC\(\w+, "(\w+)", (\w+),', handle.read(), re.M))

    def missing():
        found = dict(re.findall(r"^# TYPE tidegate_(\w+) (\w+)$", "".join(exported(sale, daemon) for daemon in DAEMONS), re.M))
        assert all(rows[name] == kind.upper() for name, kind in found.items())
        return set(rows) - set(found) - ACCIDENTS
    for name in rows:
        eventually(lambda name=name: name not in missing(), 10, f"somebody exports {name}")


def test_labels_are_of_the_catalogue_or_sales_and_hold_no_ids(sale):
    for daemon in DAEMONS:
        for value in re.findall(r'\{\w+="([^"]*)"', exported(sale, daemon)):
            assert re.fullmatch(r"[A-Za-z0-9_.*+ /{}-]{0,64}", value), (daemon, value)
            assert not re.search(r"res_|ord_|@|[0-9a-f]{32}", value), (daemon, value)


def test_ready_says_zero_when_a_daemon_has_lost_the_bus(sale):
    assert re.search(r"^tidegate_daemon_ready 1$", exported(sale, "sweeper"), re.M)
    sale.shop.stack.tell("nats", 19)  # SIGSTOP
    try:
        eventually(lambda: re.search(r"^tidegate_daemon_ready 0$", exported(sale, "sweeper"), re.M), 60, "it is not ready")
    finally:
        sale.shop.stack.tell("nats", 18)  # SIGCONT
    eventually(lambda: re.search(r"^tidegate_daemon_ready 1$", exported(sale, "sweeper"), re.M), 30, "it is ready again")


def lines(watched):
    for daemon in DAEMONS:
        with open(f"{watched.shop.stack.run}/log/{daemon}.log", encoding="utf-8") as handle:
            for line in handle:
                yield daemon, line


def test_a_traceparent_goes_from_http_through_the_bus_into_the_log_lines(sale):
    steps = {(daemon, json.loads(line)["event"]) for daemon, line in lines(sale) if sale.parent[3:35] in line}
    assert {("reserve", "reservation.held"), ("ledger", "reservation.recorded")} <= steps, steps


def test_every_log_line_is_json_with_a_dotted_event(sale):
    for daemon, line in lines(sale):
        told = json.loads(line)
        assert told["daemon"] == daemon and told["level"] in ("info", "warn", "error"), line
        assert re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", told["event"]), line
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", told["ts"]), line


def test_no_log_line_holds_a_token_a_key_or_a_person(sale):
    keys = set()
    for path in glob.glob(f"{sale.shop.stack.env['TIDEGATE_KEYS']}/*"):
        with open(path, encoding="ascii") as handle:
            keys |= {word for row in handle for word in row.split()[1:] if len(word) >= 32 and not path.endswith((".pub", ".hash"))}
    persons = {"mary.major", "payment-0815", "buyer-", "eve"}
    assert len(sale.secrets) > 8 and len(keys) > 8
    text = "".join(line for _, line in lines(sale))
    assert "reservation.confirmed" in text
    for secret in sale.secrets | keys:
        assert secret not in text and secret[-24:] not in text
    for person in persons:
        assert not re.search(rf"\b{re.escape(person)}\b", text), person


def test_every_answer_of_the_whole_sale_was_one_of_the_document(sale):
    seen = {(method, path) for method, path, _ in sale.routes}
    assert {("GET", "/sale/{sale}/ticket"), ("GET", "/sale/{sale}/status"), ("GET", "/sale/{sale}/board"), ("POST", "/sale/{sale}/reserve"),
            ("POST", "/reservations/{id}/confirm"), ("POST", "/reservations/{id}/extend"), ("GET", "/reservations/{id}")} <= seen
    assert {200, 201, 400, 401, 403, 404, 409} <= {status for _, _, status in sale.routes}
