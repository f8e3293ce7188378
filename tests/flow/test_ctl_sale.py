# SPDX-License-Identifier: Apache-2.0
"""tidegatectl sale: declared, changed, paused, resumed, rebuilt and closed by signed commands that every daemon acknowledges."""
import concurrent.futures
import json
import os
import time
import uuid

import pytest

from conftest import ROOT
from shop import eventually

CLASSES = {"edge", "queue", "admission", "reserve", "ledger", "sweeper", "invariant"}


def ctl(shop, *arguments, code=0, env=None):
    """Runs a command with -o json; its document, or None where there is none (a usage error)."""
    stack = shop.stack
    saved = dict(stack.env)
    stack.env.update(env or {})
    try:
        done = stack.ctl(*arguments, "-o", "json", check=False)
    finally:
        stack.env = saved
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout) if done.stdout else None


def definition(shop, name, opens_in=3600, units=10, per_buyer=1, pace="1000/s"):
    opens = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + opens_in))
    path = f"{shop.stack.run}/{name}.yaml"
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(f"""sale: {name}
items: [{{sku: {name}, units: {units}, price: 4900, currency: EUR}}]
opensAt: {opens}
limits: {{perBuyer: {per_buyer}}}
pace: {{start: {pace}, max: 5000/s, min: 1/s}}
proof: {{everyMs: 500, leaseFor: 3s}}
""")
    return path


def new_name():
    return f"ctl-{uuid.uuid4().hex[:8]}"


def show(shop, name):
    return ctl(shop, "sale", "show", name)


def test_apply_is_judged_by_the_ledger_and_acknowledged_by_every_class(shop):
    name = new_name()
    report = ctl(shop, "sale", "apply", "-f", definition(shop, name))
    assert report["accepted"] and report["reason"] == ""
    assert {ack["daemon"] for ack in report["acks"]} == CLASSES and report["missing"] == []
    assert all(0 <= ack["tookUs"] <= ack["heardUs"] < 1_000_000 for ack in report["acks"])
    shown = show(shop, name)
    assert shown["definition"]["items"] == [{"sku": name, "units": 10, "price": 4900, "currency": "EUR"}]
    assert shown["definition"]["generation"] == 1 and shown["state"]["phase"] == "scheduled"


def test_applying_the_same_file_again_changes_nothing(shop):
    name = new_name()
    path = definition(shop, name)
    ctl(shop, "sale", "apply", "-f", path)
    eventually(lambda: show(shop, name)["state"]["armed"], 15, "the gate is armed")
    before = show(shop, name)["state"]["controlSequence"]
    assert ctl(shop, "sale", "apply", "-f", path)["accepted"]
    assert show(shop, name)["state"]["controlSequence"] == before


def test_plan_shows_the_difference_and_changes_nothing(shop):
    name = new_name()
    fresh = ctl(shop, "sale", "plan", "-f", definition(shop, name))
    assert {"field": "limits.perBuyer", "from": None, "to": "1"} in fresh["changes"] and fresh["accepted"]
    ctl(shop, "sale", "show", name, code=1)

    ctl(shop, "sale", "apply", "-f", definition(shop, name))
    planned = ctl(shop, "sale", "plan", "-f", definition(shop, name, opens_in=7200, pace="20/s"))
    assert planned["accepted"]
    assert {change["field"] for change in planned["changes"]} == {"opensAt", "pace.start"}
    assert show(shop, name)["definition"]["paceStartMilli"] == 1000000
    frozen = ctl(shop, "sale", "plan", "-f", definition(shop, name, units=11), code=1)
    assert frozen["reason"] == "definition_frozen"
    assert {"field": "items[0].units", "from": "10", "to": "11"} in frozen["changes"]


def test_opening_time_and_pace_may_still_change_while_scheduled(shop):
    name = new_name()
    ctl(shop, "sale", "apply", "-f", definition(shop, name))
    assert ctl(shop, "sale", "apply", "-f", definition(shop, name, opens_in=7200, pace="20/s"))["accepted"]
    assert show(shop, name)["definition"]["paceStartMilli"] == 20000
    assert ctl(shop, "sale", "apply", "-f", definition(shop, name, per_buyer=2), code=1)["reason"] == "definition_frozen"


def test_a_sale_is_opened_before_its_time(shop):
    name = new_name()
    ctl(shop, "sale", "apply", "-f", definition(shop, name))
    assert ctl(shop, "sale", "open", name, "--wait", "20s")["accepted"]
    assert show(shop, name)["state"]["phase"] == "open"
    assert ctl(shop, "sale", "open", name, code=1)["reason"] == "not_allowed_now"


def test_a_pause_is_heard_by_all_within_a_second_and_resumed_by_name(shop):
    name = shop.sale()
    report = ctl(shop, "sale", "pause", name, "--cause", "price label is wrong")
    assert report["accepted"] and report["missing"] == []
    assert all(ack["heardUs"] < 1_000_000 for ack in report["acks"])
    assert {ack["daemon"] for ack in report["acks"]} == CLASSES
    paused = show(shop, name)["state"]
    assert paused["phase"] == "paused"
    assert paused["pauses"] == [{"id": report["commandId"], "cause": "price label is wrong"}]
    second = ctl(shop, "sale", "pause", name)
    assert {pause["id"] for pause in show(shop, name)["state"]["pauses"]} == {report["commandId"], second["commandId"]}
    assert ctl(shop, "sale", "resume", name, "--wait", "10s")["accepted"]
    resumed = show(shop, name)["state"]
    assert resumed["phase"] == "open" and resumed["pauses"] == []
    eventually(lambda: shop.board(name)["state"] == "open", 5, "the board says so")


def test_a_key_that_is_not_the_operators_is_refused(shop, tmp_path):
    name = shop.sale()
    stranger = str(tmp_path / "keys")
    ctl(shop, "keys", "new", stranger)
    report = ctl(shop, "sale", "pause", name, code=1, env={"TIDEGATE_KEYS": stranger})
    assert report["reason"] == "signature_invalid" and report["acks"] == []
    assert show(shop, name)["state"]["phase"] == "open"


def test_pace_is_bounded_by_the_definition(shop):
    name = shop.sale()
    assert ctl(shop, "pace", name, "7/s")["accepted"]
    assert show(shop, name)["state"]["paceMilli"] == 7000
    assert ctl(shop, "pace", name, "5001/s", code=1)["reason"] == "definition_invalid"
    assert ctl(shop, "pace", name, "--auto")["accepted"]
    assert show(shop, name)["state"]["paceMilli"] == 0


def deadlines(shop, name):
    return dict(shop.ledger("SELECT id, tidegate.to_ms(expires_at) FROM tidegate.reservations WHERE sale = %s", name))


def test_in_a_payment_storm_every_hold_in_flight_gets_more_time(shop):
    name = shop.sale(units=3)
    buyer, key, admission, first = shop.win(name)
    paid, lapsed = (shop.win(name)[3].json["reservationId"] for _ in range(2))
    assert shop.confirm(paid).status == 200
    moved = "UPDATE tidegate.reservations SET expires_at = expires_at {} WHERE id = %s"
    shop.ledger("ALTER TABLE tidegate.reservations DISABLE TRIGGER guard")
    shop.stack.kill("sweeper")  # nobody gives it a verdict
    shop.ledger(moved.format("- interval '20 minutes'"), lapsed)
    shop.ledger("ALTER TABLE tidegate.reservations ENABLE TRIGGER guard")
    before = deadlines(shop, name)
    told = ctl(shop, "sale", "extend", name, "--in-flight", "+180s", "--dry-run")
    assert told["accepted"] and told["detail"] == "1 holds in flight would have 180000 ms more"
    assert deadlines(shop, name) == before
    told = ctl(shop, "sale", "extend", name, "--in-flight", "+180s")
    assert told["accepted"] and told["detail"] == "1 holds in flight have 180000 ms more"
    pending = first.json["reservationId"]
    assert deadlines(shop, name) == {**before, pending: before[pending] + 180000}
    assert buyer.read(pending).json["expiresAt"] > first.json["expiresAt"]
    again = buyer.reserve(name, admission, key)  # the lost answer, found again, knows the new deadline
    assert again.status == 201 and again.json["expiresAt"] == buyer.read(pending).json["expiresAt"]
    shop.stack.start_daemon("sweeper")
    states = "SELECT state FROM tidegate.reservations WHERE id = %s"
    eventually(lambda: shop.ledger(states, lapsed) == [("expired",)], 10, "what had lapsed is given back all the same")
    assert shop.confirm(pending).status == 200
    shop.referee(name)


@pytest.mark.parametrize("later", ["180s", "+2h", "+0s", "+1e3s", "-5s"])
def test_more_time_is_within_an_hour_and_said_with_a_plus(shop, later):
    done = shop.stack.ctl("sale", "extend", "demo", f"--in-flight={later}", check=False)
    assert done.returncode == 2 and "--in-flight" in done.stderr


@pytest.mark.parametrize("command", [("pause",), ("resume",), ("open",), ("close",), ("rebuild",), ("extend", "--in-flight", "+1s")])
def test_a_dry_run_changes_nothing(shop, command):
    name = new_name()
    ctl(shop, "sale", "apply", "-f", definition(shop, name), "--dry-run")
    ctl(shop, "sale", "show", name, code=1)
    ctl(shop, "sale", "apply", "-f", definition(shop, name))
    eventually(lambda: show(shop, name)["state"]["armed"], 15, "the gate is armed")
    before = show(shop, name)["state"]
    told = shop.stack.ctl("sale", command[0], name, *command[1:], "--dry-run", "-o", "json", check=False)
    assert told.returncode in (0, 1) and not json.loads(told.stdout)["acks"], told.stdout
    after = show(shop, name)["state"]
    changing = ("cleanRounds", "lastClean", "ledgerNow")
    assert {k: v for k, v in after.items() if k not in changing} == {k: v for k, v in before.items() if k not in changing}


def test_a_rebuild_takes_the_next_epoch_and_stays_paused_until_resumed(shop):
    name = shop.sale()
    _, _, _, won = shop.win(name)
    assert ctl(shop, "sale", "rebuild", name, "--dry-run")["accepted"]
    assert show(shop, name)["state"]["epoch"] == 1
    assert ctl(shop, "sale", "rebuild", name, "--cause", "drill")["accepted"]
    rebuilt = show(shop, name)["state"]
    assert rebuilt["epoch"] == 2 and rebuilt["phase"] == "paused"
    assert ctl(shop, "sale", "resume", name, "--wait", "20s")["accepted"]
    assert show(shop, name)["state"]["phase"] == "open"
    assert won.json["reservationId"] in shop.gate(name, "held")
    shop.referee(name)


def test_a_closed_sale_is_made_again_under_a_new_generation(shop):
    name = new_name()
    path = definition(shop, name)
    ctl(shop, "sale", "apply", "-f", path)
    assert ctl(shop, "sale", "close", name)["accepted"]
    assert show(shop, name)["state"]["phase"] == "closed"
    assert ctl(shop, "sale", "resume", name, code=1)["reason"] == "sale_closed"
    assert ctl(shop, "sale", "apply", "-f", path)["accepted"]
    again = show(shop, name)["state"]
    assert again["generation"] == 2 and again["phase"] == "scheduled"


def test_all_sales_are_listed(shop):
    names = {new_name() for _ in range(3)}
    for name in names:
        ctl(shop, "sale", "apply", "-f", definition(shop, name))
    listed = [sale["definition"]["sale"] for sale in ctl(shop, "sale", "show")]
    assert names <= set(listed) and listed == sorted(listed)


def test_a_pause_that_comes_while_resume_waits_is_not_lifted_unseen(own_shop):
    shop = own_shop
    name = shop.sale()
    shop.stack.kill("invariant")  # nothing is proved any more: resume has to wait
    ctl(shop, "sale", "rebuild", name)
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        resuming = pool.submit(shop.stack.ctl, "sale", "resume", name, "--wait", "20s", check=False)
        refused = "SELECT count(*) FROM tidegate.control_log WHERE sale = %s AND kind = 'resume'"
        eventually(lambda: shop.ledger(refused, name)[0][0] > 0, 10, "resume has looked and was refused")
        ctl(shop, "sale", "pause", name, "--cause", "smoke in the hall")
        done = resuming.result()
    assert done.returncode == 1 and "smoke in the hall" in done.stderr, done.stdout + done.stderr
    assert show(shop, name)["state"]["phase"] == "paused"


def only_known(shop, text):
    """What the tool says it knows where an unknown key stands."""
    path = f"{shop.stack.run}/known.yaml"
    with open(path, "w", encoding="utf-8") as handle:
        handle.write(text)
    done = shop.stack.ctl("sale", "plan", "-f", path, check=False)
    assert done.returncode == 2
    return {name.strip() for name in done.stderr.split("unknown key; expected one of:")[1].splitlines()[0].split(",")}


def test_the_schema_knows_the_keys_the_tool_knows(shop):
    with open(os.path.join(ROOT, "docs/sale.schema.json"), encoding="utf-8") as handle:
        schema = json.load(handle)["properties"]
    assert only_known(shop, "unknown: 1\n") == set(schema)
    assert only_known(shop, "items: [{unknown: 1}]\n") == set(schema["items"]["items"]["properties"])
    for section in ("policy", "limits", "pace", "proof", "show"):
        assert only_known(shop, f"{section}: {{unknown: 1}}\n") == set(schema[section]["properties"]), section


def whole_file(name, path, value):
    """A sale file whose one integer field has this value."""
    item = {"sku": name, "units": 10, "price": 4900, "currency": "EUR"}
    document = {"sale": name, "items": [item], "opensAt": "2030-01-01T00:00:00Z", "proof": {"leaseFor": "60s"}}
    if path[0] == "items":
        item[path[1]] = value
    else:
        document.setdefault(path[0], {})[path[1]] = value
    return json.dumps(document)  # JSON is YAML


def test_the_schema_has_the_bounds_the_tool_has(shop):
    with open(os.path.join(ROOT, "docs/sale.schema.json"), encoding="utf-8") as handle:
        schema = json.load(handle)["properties"]
    fields = [("items", "units"), ("items", "price"), ("limits", "perBuyer"), ("limits", "extensions"), ("proof", "everyMs")]
    for section, field in fields:
        place = schema[section]["items"] if section == "items" else schema[section]
        rule = place["properties"][field]
        top = 30000 if field == "everyMs" else rule["maximum"]  # half of the longest lease
        for value, code in ((rule["minimum"], 0), (top, 0), (rule["minimum"] - 1, 2), (rule["maximum"] + 1, 2)):
            path = f"{shop.stack.run}/bounds.yaml"
            with open(path, "w", encoding="utf-8") as handle:
                handle.write(whole_file(new_name(), (section, field), value))
            done = shop.stack.ctl("sale", "plan", "-f", path, check=False)
            assert done.returncode == code, (section, field, value, done.stderr)


@pytest.mark.parametrize("command", ["open", "pause", "resume", "rebuild", "close"])
def test_an_unknown_sale_is_named(shop, command):
    done = shop.stack.ctl("sale", command, "nobody-made-this", check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "sale" in done.stderr


def test_a_bad_sale_file_is_refused_before_anything_is_sent(shop):
    path = f"{shop.stack.run}/bad.yaml"
    with open(path, "w", encoding="utf-8") as handle:
        handle.write("sale: bad\nitems: [{sku: bad, units: 1e6, price: 4900, currency: EUR}]\nopensAt: soon\nextra: 1\n")
    done = shop.stack.ctl("sale", "apply", "-f", path, check=False)
    assert done.returncode == 2
    assert f"{path}:2: items[0].units: expected an integer from 1 to 1000000" in done.stderr
    assert f"{path}:3: opensAt: expected a time" in done.stderr
    assert f"{path}:4: extra: unknown key" in done.stderr
    ctl(shop, "sale", "show", "bad", code=1)


def test_the_example_is_applied(shop):
    done = shop.stack.ctl("sale", "plan", "-f", "deploy/local/sale.yaml", check=False)
    assert done.returncode == 2  # relative paths are the caller's
    assert shop.stack.ctl("sale", "apply", "-f", f"{ROOT}/deploy/local/sale.yaml").returncode == 0
    assert show(shop, "first")["definition"]["items"][0]["units"] == 500


def test_a_pause_without_a_ledger_is_honoured_and_repeated_until_one_shows_it(own_shop):
    shop = own_shop
    name = shop.sale()
    buyer, key = shop.buyer(), uuid.uuid4().hex
    admission = buyer.admission(name)
    shop.stack.kill("ledger")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        pausing = pool.submit(ctl, shop, "sale", "pause", name, "--cause", "no ledger")
        eventually(lambda: shop.redis.hlen(shop.gate_key(name, "pauses", 1)) == 1, 5, "the gate itself is closed")
        assert not pausing.done()
        assert buyer.reserve(name, admission, key).status == 503
        shop.stack.start_daemon("ledger")
        report = pausing.result()
    assert report["accepted"] and report["missing"] == []
    assert show(shop, name)["state"]["pauses"] == [{"id": report["commandId"], "cause": "no ledger"}]


def test_without_a_ledger_the_outcome_is_unknown(own_shop):
    shop = own_shop
    name = shop.sale()
    shop.stack.kill("ledger")
    report = ctl(shop, "sale", "pause", name, "--wait", "1s", code=69)
    assert not report["judged"] and report["missing"] == ["ledger"]
    assert all(ack["effect"] == "honoured" for ack in report["acks"])
    done = shop.stack.ctl("sale", "resume", name, check=False)
    assert done.returncode == 69 and "ledger" in done.stderr
    done = shop.stack.ctl("sale", "pause", name, "--wait", "1s", check=False)
    assert done.returncode == 69 and "it is honoured, no unit is given out" in done.stdout
