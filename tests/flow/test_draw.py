# SPDX-License-Identifier: Apache-2.0
"""The draw through the real stack: promised, drawn, published, checked by two programs, and refused when one byte differs."""
import base64
import hashlib
import json
import os
import re
import subprocess
import sys

import pytest
from conftest import ROOT
from shop import eventually

ENTRANTS = 40


def drawn_sale(shop, order="random", **options):
    """A scheduled sale with a draw; an hour is left, it is opened by hand."""
    made = json.loads(shop.stack.ctl("-o", "json", "draw", "new", options.get("name") or new_name(shop)).stdout)
    policy = f"order: {order}, commitment: {made['commitment']}, beacon: {options.pop('beacon', 'none')}"
    options["name"] = made["sale"]
    sale = shop.apply(opens_in=3600, policy=policy, **options)
    eventually(lambda: shop.board(sale).get("term"), 30, f"a queue leads {sale}")
    return sale, made["commitment"]


def new_name(shop):
    shop.count += 1
    return f"draw-{os.getpid()}-{shop.count}"


def take(shop, sale, buyer=None):
    """A buyer with a ticket."""
    buyer = buyer or shop.buyer()
    answer = eventually(lambda: (lambda a: a if a.status == 200 else None)(buyer.ticket(sale)), 30, "a ticket")
    return buyer, answer.json


def open_sale(shop, sale):
    eventually(lambda: shop.stack.ctl("sale", "open", sale, check=False).returncode == 0, 60, f"{sale} opened by hand")


def draw_of(shop, sale):
    return shop.http("GET", f"/sale/{sale}/draw.json").json


def revealed(shop, sale, seconds=60):
    return eventually(lambda: (lambda d: d if d["seed"] else None)(draw_of(shop, sale)), seconds, f"{sale} is drawn")


def roster_of(shop, sale, draw):
    """The roster as the edge gives it."""
    parts = [eventually(lambda: (lambda a: a.text if a.status == 200 else None)(shop.http("GET", f"/sale/{sale}/roster/{part}")),
                        30, f"part {part}") for part in range(draw["parts"])]
    return "".join(parts)


def downloaded(shop, sale, folder):
    draw = revealed(shop, sale)
    (folder / "draw.json").write_text(json.dumps(draw))
    (folder / "roster").write_text(roster_of(shop, sale, draw))
    return draw


def number_of(buyer, sale):
    """What the page without script shows as the buyer's number."""
    page = buyer.call("GET", f"/sale/{sale}/wait", X_Ticket=buyer.tickets[sale]).text
    return re.search(r"<dt>Your number</dt><dd>(\d*)</dd>", page).group(1)


def verify(shop, source, *options, **environment):
    return subprocess.run([f"{shop.stack.bin}/tidegatectl", "draw", "verify", *options, str(source)], text=True,
                          capture_output=True, check=False, env={**os.environ, **environment})


def independent(folder, *entrant):
    """The script as the document prints it, executed."""
    with open(os.path.join(ROOT, "docs/draw.md"), encoding="utf-8") as handle:
        script = re.search(r"```python\n(.*?)```", handle.read(), re.S).group(1)
    assert len(script.splitlines()) <= 26
    return subprocess.run([sys.executable, "-c", script, folder / "draw.json", folder / "roster", *entrant], text=True,
                          capture_output=True, check=False)


@pytest.fixture(scope="module")
def drawn(shop, tmp_path_factory):
    """A sale with a draw, opened; early buyers with what they were told before and after."""
    sale, commitment = drawn_sale(shop, units=200, pace="10/s")
    early = [take(shop, sale) for _ in range(ENTRANTS)]
    before = {"policy": shop.http("GET", f"/sale/{sale}/policy").json, "draw": draw_of(shop, sale),
              "status": [buyer.status(sale).json for buyer, _ in early], "number": number_of(early[7][0], sale)}
    for buyer, _ in early[:5]:
        del buyer.tickets[sale]
        take(shop, sale, buyer)  # one person, more tickets
    open_sale(shop, sale)
    folder = tmp_path_factory.mktemp("draw")
    return {"sale": sale, "commitment": commitment, "early": early, "before": before, "folder": folder,
            "draw": downloaded(shop, sale, folder)}


def test_case_29_the_promise_comes_first_and_the_secret_last(drawn):
    before = drawn["before"]
    assert before["policy"]["commitment"] == drawn["commitment"] and before["policy"]["mode"] == "commit-reveal only"
    assert before["draw"]["secret"] is None and before["draw"]["seed"] is None and not before["draw"]["frozen"]
    assert "sha256:" + hashlib.sha256(bytes.fromhex(drawn["draw"]["secret"])).hexdigest() == drawn["commitment"]


def test_case_30_nothing_before_the_draw_says_anything_of_a_rank(drawn):
    told = drawn["before"]["status"] + [{key: ticket[key] for key in ("state", "position", "estimatedWaitSeconds")}
                                        for _, ticket in drawn["early"]]
    assert all(answer["position"] is None and answer["estimatedWaitSeconds"] is None for answer in told)
    assert {answer["state"] for answer in told} == {"scheduled"}
    assert drawn["before"]["number"] == "", "the number of a ticket is none of a place"


def test_case_29_one_account_is_one_entrant(drawn):
    names = {ticket["entrant"] for _, ticket in drawn["early"]}
    assert drawn["draw"]["count"] == ENTRANTS == len(names)
    assert (drawn["folder"] / "roster").read_text().split() == sorted(names)


def test_two_programs_draw_the_same_order(shop, drawn, tmp_path):
    order = tmp_path / "order"
    ours = verify(shop, drawn["folder"], "--order", order)
    assert ours.returncode == 0 and "commit-reveal only" in ours.stdout, ours.stderr
    theirs = independent(drawn["folder"])
    assert theirs.returncode == 0, theirs.stderr
    assert theirs.stdout == order.read_text() and len(theirs.stdout.splitlines()) == ENTRANTS
    entrant = drawn["early"][7][1]["entrant"]
    assert independent(drawn["folder"], entrant).stdout.split()[0] in verify(shop, drawn["folder"], "--entrant", entrant).stdout


def test_a_sales_address_is_enough(shop, drawn, tmp_path):
    address = f"{shop.stack.env['TIDEGATE_EDGE_URL']}/sale/{drawn['sale']}"
    answer = verify(shop, address, TMPDIR=str(tmp_path))
    assert answer.returncode == 0, answer.stderr
    assert os.path.dirname(re.search(r"downloaded to (\S+)", answer.stderr).group(1)) == str(tmp_path)
    assert verify(shop, address, TMPDIR=f"{tmp_path}/none").returncode == 78
    assert verify(shop, address, TMPDIR="x" * 5000).returncode == 78


@pytest.mark.parametrize("what", ["roster", "secret", "beaconValue"])
def test_one_byte_of_another_roster_secret_or_beacon_is_refused_by_both(shop, drawn, tmp_path, what):
    draw, roster = json.loads((drawn["folder"] / "draw.json").read_text()), (drawn["folder"] / "roster").read_text()
    if what == "roster":
        last = roster.rstrip()[-1]
        roster = roster.rstrip()[:-1] + ("0" if last != "0" else "1") + "\n"
    elif what == "secret":
        draw["secret"] = f"{int(draw['secret'][:2], 16) ^ 1:02x}" + draw["secret"][2:]
    else:
        draw["beaconValue"] = "00"
    (tmp_path / "draw.json").write_text(json.dumps(draw))
    (tmp_path / "roster").write_text(roster)
    ours, theirs = verify(shop, tmp_path), independent(tmp_path)
    assert ours.returncode == 1 and ours.stderr.strip() and theirs.returncode != 0, (ours, theirs)


def test_places_are_the_drawn_ones_on_every_device(shop, drawn):
    ranks = {line.split()[1]: int(line.split()[0]) for line in independent(drawn["folder"]).stdout.splitlines()}
    buyer, ticket = drawn["early"][7]
    assert buyer.ticket(drawn["sale"]).json["index"] == ticket["index"], "refreshing keeps the ticket"
    assert number_of(buyer, drawn["sale"]) == str(ranks[ticket["entrant"]] + 1)
    device = shop.buyer(buyer.user)

    def same_place():
        device.tickets.pop(drawn["sale"], None)
        _, again = take(shop, drawn["sale"], device)
        return again["early"] and again["entrant"] == ticket["entrant"]
    eventually(same_place, 30, "another device has the drawn place")
    late, told = take(shop, drawn["sale"])
    assert not told["early"] and told["index"] >= drawn["draw"]["indexAtOpen"]
    board = shop.board(drawn["sale"])
    assert board["seed"] == drawn["draw"]["seed"] and board["presentAtOpen"] == ENTRANTS
    first = min(drawn["early"], key=lambda one: ranks[one[1]["entrant"]])[0]
    first.admission(drawn["sale"], 60)
    late.admission(drawn["sale"], 60)
    one, other = (shop.buyer(first.user) for _ in range(2))
    for again in (one, other):
        take(shop, drawn["sale"], again)
    eventually(lambda: place_of(one, drawn["sale"]) == place_of(other, drawn["sale"]), 30, "two devices, one place")


def place_of(buyer, sale):
    """What a pass stands for."""
    body = buyer.admission(sale, 60).split(".")[1]
    return json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))["place"]


def test_a_visitor_takes_no_part(shop, drawn):
    assert shop.http("GET", f"/sale/{drawn['sale']}/ticket").code == "sign_in_required"


def test_a_promise_is_used_once(shop, drawn):
    policy = f"order: random, commitment: {drawn['commitment']}"
    name = shop.apply(name=new_name(shop), opens_in=3600, policy=policy, check=False)
    assert shop.http("GET", f"/sale/{name}/board").status == 404


def test_a_lottery_is_for_the_registered_and_waits_for_its_beacon(shop, tmp_path):
    sale, _ = drawn_sale(shop, "lottery", units=20, beacon="'test beacon, round 7'")
    buyer, ticket = take(shop, sale)
    assert shop.http("GET", f"/sale/{sale}/policy").json["mode"] == "commit-reveal with beacon"
    assert shop.stack.ctl("draw", "beacon", sale, "00ff", check=False).returncode == 1, "too early to count"
    open_sale(shop, sale)
    eventually(lambda: draw_of(shop, sale)["frozen"], 60, "frozen")
    late = shop.buyer()
    eventually(lambda: late.ticket(sale).code == "registration_closed", 30, "late ones are told so")
    assert draw_of(shop, sale)["secret"] is None and buyer.status(sale).json["position"] is None
    shop.stack.ctl("draw", "beacon", sale, "00ff")
    draw = downloaded(shop, sale, tmp_path)
    assert draw["beaconValue"] == "00ff" and draw["count"] == 1
    assert shop.stack.ctl("draw", "beacon", sale, "01ff", check=False).returncode == 1, "only one draw"
    assert verify(shop, tmp_path, "--entrant", ticket["entrant"]).returncode == 0 == independent(tmp_path).returncode
    (tmp_path / "draw.json").write_text(json.dumps({**draw, "beaconValue": "00fe"}))
    assert verify(shop, tmp_path).returncode == 1 and independent(tmp_path).returncode != 0, "one byte of another beacon"
    buyer.admission(sale, 60)


def test_the_draw_survives_its_queue(own_shop, tmp_path):
    """Killed before the opening and after the reveal: the roster and the secret are not lost with one process."""
    sale, commitment = drawn_sale(own_shop, units=50)
    early = [take(own_shop, sale) for _ in range(10)]
    own_shop.stack.kill("queue")
    own_shop.stack.start_daemon("queue")
    eventually(lambda: own_shop.board(sale).get("term", 0) >= 2, 30, "a queue leads again")
    early += [take(own_shop, sale) for _ in range(5)]
    open_sale(own_shop, sale)
    draw = downloaded(own_shop, sale, tmp_path)
    assert draw["commitment"] == commitment
    assert (tmp_path / "roster").read_text().split() == sorted(ticket["entrant"] for _, ticket in early)
    own_shop.stack.kill("queue")
    own_shop.stack.start_daemon("queue")
    for buyer, _ in early[:3]:
        buyer.admission(sale, 60)
    assert draw_of(own_shop, sale) == draw and roster_of(own_shop, sale, draw) == (tmp_path / "roster").read_text()
