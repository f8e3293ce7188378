# SPDX-License-Identifier: Apache-2.0
"""Recovery as an operator has it: a rebuild that shows its plan, may die anywhere and be given again, a resume that says why not,
a report that names what is affected."""
import json
import signal
import subprocess
import time

import pytest

from rounds import clean_rounds
from rush import Rush, judge
from shop import eventually


def ctl_json(shop, *arguments, code=0):
    done = shop.stack.ctl("-o", "json", *arguments, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return json.loads(done.stdout)


def resume(shop, sale):
    shop.stack.ctl("sale", "resume", sale, "--wait", "60s")
    eventually(lambda: shop.board(sale).get("state") == "open", 15, "open again")


@pytest.fixture
def stocked(shop):
    """A sale with three held, two sold and one given back: (sale, reservations held)."""
    sale = shop.sale(units=20)
    wins = [shop.win(sale) for _ in range(6)]
    ids = [answer.json["reservationId"] for _, _, _, answer in wins]
    assert shop.confirm(ids[0]).status == 200 and shop.confirm(ids[1]).status == 200
    assert wins[2][0].cancel(ids[2]).status == 200
    eventually(lambda: ids[2] in shop.gate(sale, "released") and ids[1] in shop.gate(sale, "settled"), what="obeyed")
    return sale, ids[3:]


def test_the_plan_says_what_is_kept_and_changes_nothing(shop, stocked):
    sale, _ = stocked
    before = shop.ledger("SELECT epoch, control_seq FROM tidegate.sales WHERE sale = %s", sale)
    report = ctl_json(shop, "sale", "rebuild", sale, "--dry-run")
    plan = report["rebuild"]
    assert report["accepted"] and "armed" not in plan
    assert {name: plan[name] for name in plan if name != "lost"} == {
        "fromEpoch": 1, "toEpoch": 2, "units": 20, "confirmedUnits": 2, "heldUnits": 3, "freeUnits": 15, "keptReservations": 5,
        "endedReservations": 1}
    assert plan["lost"].startswith("about 0 units")
    text = shop.stack.ctl("sale", "rebuild", sale, "--dry-run").stdout
    assert "epoch    1 -> 2" in text and "20: 2 confirmed, 3 held, 15 free" in text and f"tg:{{{sale}.*}}:2:*" in text
    assert shop.ledger("SELECT epoch, control_seq FROM tidegate.sales WHERE sale = %s", sale) == before
    assert shop.state(sale) == "open"


def test_a_rebuild_goes_from_plan_to_arm_and_may_be_repeated(shop, stocked):
    sale, held = stocked
    for epoch in (2, 3):
        done = shop.stack.ctl("sale", "rebuild", sale, "--cause", "a drill")
        assert [line.split(": ")[1] for line in done.stderr.splitlines() if line.startswith("rebuild ")][-2:] == ["verify", "arm"]
        assert shop.epoch(sale) == epoch and shop.gate(sale, "ctl")["armed"] == "1"
        assert set(shop.gate(sale, "held")) == set(held)
        assert shop.state(sale) == "paused"
    resume(shop, sale)
    assert shop.confirm(held[0]).status == 200
    shop.win(sale)
    shop.referee(sale)


def test_a_resume_says_why_not(shop):
    sale = shop.sale(units=5)
    _, _, _, answer = shop.win(sale)
    eventually(lambda: not shop.gate(sale, "unacked"), what="acknowledged")
    shop.redis.hdel(shop.gate_key(sale, "held"), answer.json["reservationId"])
    eventually(lambda: shop.state(sale) == "paused", 8, "paused")
    refused = ctl_json(shop, "sale", "resume", sale, code=1)
    assert refused["reason"] == "not_proved"
    assert "0 clean rounds of epoch 1 in a row, 2 needed" in refused["detail"]
    assert "the last round: alarm, C1 (1): held or settled is not what the holds add up to" in refused["detail"]
    assert f"A (1): recorded in the ledger, unknown to the gate: {answer.json['reservationId']}" in refused["detail"]
    shop.stack.ctl("sale", "rebuild", sale)
    since = time.time()
    resume(shop, sale)
    rounds = shop.ledger("SELECT count(*) FROM tidegate.checks WHERE sale = %s AND epoch = 2 AND outcome = 'clean'", sale)[0][0]
    assert rounds >= 2, f"resumed after {time.time() - since:.1f} s and {rounds} clean rounds"


def pause_only_at_the_gate(shop, sale, pause_id, cause):
    """A pause that reached reserve, and whose issuer died before the ledger heard of it."""
    shop.redis.hset(shop.gate_key(sale, "pauses"), pause_id, cause)


@pytest.mark.parametrize("pause_id,cause", [("01AAAAAAAAAAAAAAAAAAAAAAAA", "operator"),
                                            ("00000000001764444444123456", "doubt: held row unreadable")])
def test_a_pause_that_only_the_gate_has_reaches_the_ledger_and_is_lifted_by_a_resume(shop, pause_id, cause):
    sale = shop.sale(units=5)
    buyer = shop.buyer()
    admission = buyer.admission(sale)
    pause_only_at_the_gate(shop, sale, pause_id, cause)
    assert buyer.reserve(sale, admission).status == 503
    eventually(lambda: shop.ledger("SELECT pause_ids, pause_causes FROM tidegate.sales WHERE sale = %s", sale) ==
               [([pause_id], [cause])], 10, "the checker carries it to the ledger, under its own id")
    assert shop.state(sale) == "paused"
    resume(shop, sale)
    eventually(lambda: pause_id not in shop.gate(sale, "pauses"), 5, "the gate lets go of it")
    eventually(lambda: buyer.reserve(sale, admission).status == 201, 10, "sold again")


def test_a_doubt_of_the_gate_itself_is_told_and_survived(shop):
    sale = shop.sale(units=5)
    buyer, _, _, answer = shop.win(sale)
    reservation = answer.json["reservationId"]
    eventually(lambda: not shop.gate(sale, "unacked"), what="acknowledged")
    place = shop.gate(sale, "held")[reservation].split(" ")[0]
    shop.redis.hset(shop.gate_key(sale, "used"), place, "29000000 res_00000000000000000000000000")
    assert buyer.cancel(reservation).status == 200  # its release meets a place that is another's
    eventually(lambda: any("doubt: " in cause for cause in shop.ledger(
        "SELECT pause_causes FROM tidegate.sales WHERE sale = %s", sale)[0][0]), 10, "the ledger knows the gate's doubt")
    shop.stack.ctl("sale", "rebuild", sale)
    resume(shop, sale)
    shop.referee(sale)


def test_the_report_names_causes_and_reservations_and_what_to_do(shop):
    sale = shop.sale(units=10)
    wins = [shop.win(sale) for _ in range(3)]
    lost, kept, sold = (answer.json["reservationId"] for _, _, _, answer in wins)
    assert shop.confirm(sold).status == 200
    eventually(lambda: sold in shop.gate(sale, "settled") and not shop.gate(sale, "unacked"), what="settled and acknowledged")
    eventually(lambda: shop.ledger("SELECT count(*) FROM tidegate.gate_log WHERE sale = %s", sale) == [(4,)], what="log exported")
    clean_rounds(shop, sale, 1)
    quiet = ctl_json(shop, "incident", "report", sale)
    assert quiet["affected"] == [] and quiet["next"].startswith("nothing") and quiet["lastRound"] == "clean"
    shop.ledger("SET session_replication_role = replica; DELETE FROM tidegate.holdings WHERE reservation_id = %s;"
                "DELETE FROM tidegate.reservations WHERE id = %s", lost, lost)
    shop.redis.hdel(shop.gate_key(sale, "held"), kept)
    eventually(lambda: shop.state(sale) == "paused", 8, "paused")
    report = ctl_json(shop, "incident", "report", sale)
    assert any(pause["cause"].startswith("proof: ") for pause in report["state"]["pauses"])
    assert report["lastRound"].startswith("alarm: ") and "rebuild" in report["next"]
    kinds = [line["kind"] for line in report["timeline"]]
    assert "paused" in kinds and "check" in kinds and "command" in kinds and "armed" in kinds
    assert [line["at"] for line in report["timeline"]] == sorted(line["at"] for line in report["timeline"])
    affected = {row["reservation"]: row for row in report["affected"]}
    assert affected[lost]["kind"] == "row_lost" and "backup" in affected[lost]["advice"]
    assert affected[lost]["units"] == f"0:{answer_unit(wins[0])}"
    assert affected[kept]["kind"] == "named" and affected[kept]["state"] == "pending" and "A" in affected[kept]["checks"]
    assert affected[kept]["buyer"] == wins[1][0].user and affected[kept]["advice"].startswith("kept")
    assert sold not in affected
    text = shop.stack.ctl("incident", "report", sale).stdout
    assert lost in text and wins[1][0].user in text and "affected reservations:" in text and "proof: " in text
    shop.stack.ctl("sale", "rebuild", sale)
    resume(shop, sale)


def answer_unit(win):
    return win[3].json["units"][0]["unit"]


def test_the_report_of_no_sale_and_of_a_wrong_name(shop):
    assert "there is no sale" in shop.stack.ctl("incident", "report", "nobody", check=False).stderr
    assert shop.stack.ctl("incident", "report", "a b", check=False).returncode == 2


def start_ctl(shop, *arguments):
    """tidegatectl in the background, its progress line by line."""
    return subprocess.Popen([f"{shop.stack.bin}/tidegatectl", *arguments], env=shop.stack.env, cwd=shop.stack.run,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


STAGES = {
    "judged": lambda shop, sale, epoch: shop.epoch(sale) == epoch,
    "begun": lambda shop, sale, epoch: shop.redis.exists(f"tg:{{{sale}.0}}:{epoch}:ctl"),
    "loading": lambda shop, sale, epoch: int(shop.redis.hget(f"tg:{{{sale}.0}}:{epoch}:ctl", "load_page") or 0) >= 2,
    "armed": lambda shop, sale, epoch: shop.redis.hget(f"tg:{{{sale}.0}}:{epoch}:ctl", "armed") == b"1",
    "told": lambda shop, sale, epoch: shop.ledger("SELECT armed FROM tidegate.sales WHERE sale = %s AND epoch = %s", sale,
                                                  epoch) == [(True,)]}


@pytest.fixture(scope="module")
def large(shop):
    """A sale of many pages, sold for good or held, for rebuilds that take their time."""
    sale = shop.sale(units=300, pace="5000/s", per_buyer=3)
    for number in range(100):
        buyer = shop.buyer()
        answer = buyer.reserve(sale, buyer.admission(sale), body={"items": [{"sku": sale, "quantity": 1 + number % 2}]})
        assert answer.status == 201, answer
        if number % 2:
            assert shop.confirm(answer.json["reservationId"], amount=4900 * (1 + number % 2)).status == 200
    return sale


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("victim", ["tidegatectl", "reserve", "ledger", "invariant"])
def test_a_rebuild_may_die_anywhere(shop, large, victim, stage):
    sale, epoch = large, shop.epoch(large) + 1
    live = shop.ledger("SELECT id FROM tidegate.reservations WHERE sale = %s AND state IN ('pending', 'confirmed')", sale)
    process = start_ctl(shop, "sale", "rebuild", sale, "--wait", "60s")
    try:
        eventually(lambda: STAGES[stage](shop, sale, epoch), 30, f"the rebuild is {stage}")
        if victim == "tidegatectl":
            process.kill()
        else:
            shop.stack.kill(victim, signal.SIGKILL)
            shop.stack.start_daemon(victim)
        code = process.wait(70)
    finally:
        process.kill()
    if victim == "tidegatectl":  # given again: it begins anew, whatever the first one left
        shop.stack.ctl("sale", "rebuild", sale, "--wait", "60s")
    else:
        assert code == 0
    resume(shop, sale)
    assert {row[0] for row in live} <= shop.taken(sale), "a live reservation was left behind"
    shop.referee(sale)


def test_a_rebuild_in_a_rush_loses_no_win(own_shop):
    shop, units = own_shop, 120
    sale = shop.sale(units=units, pace="40/s")
    with Rush(shop, sale, units, units + 20, patience_s=120) as rush:
        rush.wait_wins(20)
        shop.stack.ctl("sale", "rebuild", sale)
        resume(shop, sale)
        rush.wait_wins(units, 90)
    rows = judge(shop, sale, rush, units)
    assert sum(state in ("pending", "confirmed") for state in rows.values()) == units
