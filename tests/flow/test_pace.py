# SPDX-License-Identifier: Apache-2.0
"""How fast people are let in, with queue and admission under test and everybody else played: the tripwire, the ramp, what loads do,
and what an operator sees and says."""
import json
import os
import shutil
import tempfile
import time

import pytest

from bus_probe import Play
from conftest import BUILD
from shop import eventually
from stack import Stack

RAMP_S = 4
LEASED = 200000


@pytest.fixture
def play():
    """An open sale with a long line that moves."""
    folder = tempfile.mkdtemp(prefix="tidegate-pace-")
    stack = Stack(os.path.join(folder, "run"), BUILD, quiet=True)
    stack.ctl("keys", "new", f"{stack.run}/keys")
    stack.start_nats()
    played = Play(stack.env["TIDEGATE_NATS_URL"], "sku_991", units=1000000)
    played.stack, played.pace_from_admission = stack, True
    stack.start_daemon("queue")
    stack.start_daemon("admission", env={"TIDEGATE_ADMISSION_RAMP": f"{RAMP_S}s"})
    while played.seen["index_end"] < LEASED:
        eventually(lambda: (lambda reply: reply and not reply.reason)(played.lease(4096)), 6, "an index lease is granted")
    eventually(played.pace, 6, "admission tells a pace")
    played.set(phase=played.proto.common.SALE_PHASE_OPEN)
    eventually(lambda: played.board() and played.board().watermark > 500, 6, "the line moves")
    yield played
    played.close()
    stack.stop()
    shutil.rmtree(folder, ignore_errors=True)


def last_move(play):
    """When the watermark rose last, by the boards heard."""
    moves = [at for (at, board), (_, before) in zip(play.boards[1:], play.boards) if board.watermark > before.watermark]
    return moves[-1]


def stands(play, boards=8):
    """Enough boards have come with one watermark."""
    return len({board.watermark for _, board in play.boards[-boards:]}) == 1


def ctl(play, *arguments):
    return json.loads(play.stack.ctl(*arguments, "-o", "json").stdout)


@pytest.mark.parametrize("name,value,limit", [("database_cpu", 85001, 0), ("payment_errors", 5001, 0), ("disk_queue", 17500, 17000)])
def test_a_signal_above_its_limit_freezes_the_line_within_a_second(play, name, value, limit):
    told = time.monotonic()
    play.say_signal(name, value, limit)
    eventually(lambda: play.pace().pace_milli == 0, 1, "the pace is frozen")
    eventually(lambda: time.monotonic() > told + 1 and stands(play), 5, "the board stands")
    frozen_after = last_move(play) - told
    print(f"signal {name} to the last board that moved: {frozen_after * 1000:.0f} ms")
    assert frozen_after < 1
    assert (play.pace().limiting, play.pace().detail.split(" ")[0]) == ("signal", name)


def test_after_a_freeze_the_pace_ramps_along_the_curve(play):
    play.say_signal("disk_queue", 2000, 1000)
    eventually(lambda: play.pace().pace_milli == 0, 1, "the pace is frozen")
    count = len(play.paces)
    play.say_signal("disk_queue", 1000, 1000)
    eventually(lambda: play.pace().limiting == "ramp", 1, "the ramp begins")
    eventually(lambda: play.pace().ramp_permille == 1000, RAMP_S + 5, "the ramp is over")
    paces = [(at, pace) for at, pace in play.paces[count:] if pace.pace_milli > 0]
    began, slack = paces[0][0], 0.5  # a message may be late, not early
    assert len(paces) > 8 * RAMP_S // 4 and paces[0][1].ramp_permille < 350
    for (at, pace), (_, before) in zip(paces[1:], paces):
        share = 250 + 750 * min(at - began, RAMP_S) / RAMP_S
        assert share - 750 * slack / RAMP_S <= pace.ramp_permille <= share + 750 * slack / RAMP_S
        assert pace.ramp_permille == 1000 or pace.pace_milli == pace.base_milli * pace.ramp_permille // 1000
        assert pace.ramp_permille >= before.ramp_permille


def test_a_resume_ramps_and_an_opening_does_not(play):
    assert {pace.ramp_permille for _, pace in play.paces if pace.instance != "admission-played"} == {1000}
    play.set(phase=play.proto.common.SALE_PHASE_PAUSED)
    eventually(lambda: play.pace().pace_milli == 0 and play.pace().limiting == "state", 1, "the pause freezes the pace")
    play.set(phase=play.proto.common.SALE_PHASE_OPEN)
    eventually(lambda: play.pace().limiting == "ramp", 1, "the pace ramps")
    assert play.pace().pace_milli < 500000


def test_a_tripped_signal_that_falls_silent_stays_tripped(play):
    play.say_signal("disk_queue", 2000, 1000, valid_ms=300)
    eventually(lambda: play.pace().pace_milli == 0, 1, "the pace is frozen")
    paces = len(play.paces)
    eventually(lambda: len(play.paces) > paces + 8, 6, "two seconds of paces")
    assert {pace.pace_milli for _, pace in play.paces[paces:]} == {0}
    assert ctl(play, "signal", play.sale, "disk_queue", "--withdraw")["limiting"] == "ramp"


def test_loads_move_the_pace(play):
    play.loads = {}
    eventually(lambda: play.pace().pace_milli > 1000000 and play.pace().limiting == "rising", 10, "a calm path is used more")
    play.loads = {"p99_us": 900000}
    eventually(lambda: play.pace().pace_milli <= 500000, 10, "a slow path is spared")
    assert play.pace().limiting in ("edge", "gate", "ledger") and "goal" in play.pace().detail
    play.loads = None
    eventually(lambda: play.pace().limiting == "unknown", 10, "silence is unknown")
    held, paces = play.pace().pace_milli, len(play.paces)
    eventually(lambda: len(play.paces) > paces + 8, 6, "two seconds of paces")
    assert {pace.pace_milli for _, pace in play.paces[paces:]} == {held}


def test_the_operator_sees_what_sets_the_pace(play):
    eventually(lambda: play.pace().limiting == "unknown", 5, "the pace was judged once, and nobody tells a load")
    shown = ctl(play, "pace", play.sale)
    assert (shown["sale"], shown["paceMilli"], shown["limiting"], shown["operatorMilli"]) == (play.sale, 1000000, "unknown", 0)
    frozen = ctl(play, "signal", play.sale, "database_cpu", "91.5%")
    assert (frozen["paceMilli"], frozen["limiting"], frozen["detail"]) == (0, "signal", "database_cpu is 91.500, limit 85.000")
    text = play.stack.ctl("pace", play.sale, "--for", "1s").stdout
    assert text.count("pace 0.000/s by signal: database_cpu is 91.500, limit 85.000") == 2 and "max 5000/s" in text
    assert play.stack.ctl("pace", "nobody", check=False).returncode == 69


def test_a_standby_goes_on_at_the_pace_of_the_one_that_died(play):
    play.loads = {}
    eventually(lambda: play.pace().base_milli > 1100000, 15, "the pace has climbed")
    play.stack.start_daemon("admission", "admission-2", env={"TIDEGATE_ADMISSION_RAMP": f"{RAMP_S}s"})
    heard = len(play.paces)
    eventually(lambda: len(play.paces) > heard + 4, 5, "the second one has heard it")
    play.stack.kill("admission")
    base, died, first = play.pace().base_milli, time.monotonic(), play.pace().instance
    eventually(lambda: play.pace().instance != first and play.pace().pace_milli > 0, 5, "the second one sets it")
    print(f"admission killed to the next pace: {time.monotonic() - died:.2f} s")
    assert time.monotonic() - died < 3.5
    assert play.pace().base_milli >= base and play.pace().ramp_permille == 1000
