# SPDX-License-Identifier: Apache-2.0
"""The queue daemon on a real bus, with its neighbours played: leases, the opening, pause, takeover, kill and freeze."""
import os
import shutil
import signal
import tempfile
import time

import pytest

from bus_probe import Play
from conftest import BUILD
from shop import eventually
from stack import Stack


@pytest.fixture
def bus_stack():
    """A run folder with keys and a NATS server, no daemon yet."""
    folder = tempfile.mkdtemp(prefix="tidegate-queue-")
    stack = Stack(os.path.join(folder, "run"), BUILD, quiet=True)
    stack.ctl("keys", "new", f"{stack.run}/keys")
    stack.start_nats()
    yield stack
    stack.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def play(bus_stack):
    """A played world around one sale."""
    played = Play(bus_stack.env["TIDEGATE_NATS_URL"], "sku_991")
    yield played
    played.close()


def granted(play, count=8, seconds=6):
    """A lease that is granted; a standby's refusal is asked again, as edges do."""
    return eventually(lambda: (lambda reply: reply if reply and not reply.reason else None)(play.lease(count)), seconds,
                      "an index lease is granted")


def opened(play):
    play.set(phase=play.proto.common.SALE_PHASE_OPEN)


def roles(stack, name):
    return [line for line in stack.tail(name, 100000).split("\n") if "queue.role" in line]


def test_a_fresh_queue_serves_within_three_seconds_and_from_zero(bus_stack, play):
    bus_stack.start_daemon("queue")
    began = time.monotonic()
    first = granted(play)
    assert time.monotonic() - began < 3.5
    assert (first.first, first.term, first.generation) == (0, 1, 1)
    second = granted(play)
    assert second.first == first.count
    board = eventually(play.board, 2, "a board")
    assert board.phase == play.proto.common.SALE_PHASE_SCHEDULED and board.watermark == 0 and board.policy == "fifo"


def test_the_watermark_follows_the_ledgers_opening_pace_and_stock(bus_stack, play):
    bus_stack.start_daemon("queue")
    while play.seen["index_end"] < 3000:
        granted(play, 4096)
    assert play.board().watermark == 0
    opened(play)
    eventually(lambda: play.board().watermark > 200, 3, "the watermark moves")
    assert play.board().index_at_open == play.seen["index_end"]
    play.set(free=0, held=play.units)
    eventually(lambda: play.board().notice == "all_held", 2, "all held is told")
    stopped = play.board().watermark
    boards = len(play.boards)
    eventually(lambda: len(play.boards) > boards + 4, 3, "boards go on")
    assert play.board().watermark == stopped
    play.set(free=5, held=play.units - 5)
    eventually(lambda: play.board().watermark > stopped, 10, "returned units move it again")
    assert play.board().watermark < stopped + 60


def test_a_pause_stops_it_at_once_and_silence_of_the_ledger_within_its_limit(bus_stack, play):
    bus_stack.start_daemon("queue")
    while play.seen["index_end"] < 20000:
        granted(play, 4096)
    opened(play)
    eventually(lambda: play.board().watermark > 100, 3, "the watermark moves")
    play.set(phase=play.proto.common.SALE_PHASE_PAUSED)
    said = time.monotonic()
    eventually(lambda: play.board().notice == "paused", 1, "the pause is told")
    assert time.monotonic() - said < 0.5
    stopped = play.board().watermark
    opened(play)
    eventually(lambda: play.board().watermark > stopped, 2, "it goes on")
    play.ledger = False
    eventually(lambda: play.board().phase == play.proto.common.SALE_PHASE_PAUSED, 5, "a silent ledger means paused")


def test_a_killed_queue_comes_back_behind_everything_it_gave(bus_stack, play):
    bus_stack.start_daemon("queue")
    for _ in range(20):
        granted(play, 32)
    opened(play)
    eventually(lambda: play.board().watermark > 50, 3, "the watermark moves")
    bus_stack.kill("queue")
    given, watermark = play.seen["index_end"], play.seen["watermark"]
    bus_stack.start_daemon("queue")
    after = granted(play)
    assert after.term == 2 and after.first >= given
    eventually(lambda: play.board().term == 2, 2, "boards of the new term")
    assert all(board.watermark >= watermark for _, board in play.boards if board.term == 2)
    assert play.board().index_at_open == play.seen["open"] > 0
    eventually(lambda: play.board().watermark > watermark, 5, "the line moves on")


def test_a_standby_takes_over_within_three_seconds(bus_stack, play):
    bus_stack.start_daemon("queue")
    granted(play)
    bus_stack.start_daemon("queue", "queue-2")
    replies = [play.lease() for _ in range(20)]
    assert all(reply and not reply.reason for reply in replies), "a fresh standby stays out of the way"
    given = play.seen["index_end"]
    bus_stack.kill("queue")
    died = time.monotonic()
    after = granted(play)
    assert time.monotonic() - died < 3.5
    assert after.term == 2 and after.first >= given
    assert any('"role":"active"' in line for line in roles(bus_stack, "queue-2"))


def test_frozen_and_thawed_the_old_brain_steps_down(bus_stack, play):
    bus_stack.start_daemon("queue")
    opened(play)
    for _ in range(10):
        granted(play, 32)
    bus_stack.start_daemon("queue", "queue-2")
    given = play.seen["index_end"]
    frozen = bus_stack.pid("queue")
    os.kill(frozen, signal.SIGSTOP)
    try:
        eventually(lambda: play.board().term == 2, 6, "the standby has taken over")
        requests = [play.lease(8, seconds=0.3) for _ in range(4)]  # some wait at the frozen one
    finally:
        os.kill(frozen, signal.SIGCONT)
    taken = [reply.first for reply in requests if reply and not reply.reason]
    for _ in range(20):
        reply = play.lease(8)
        if reply and not reply.reason:
            taken.append(reply.first)
            assert reply.term == 2
    assert len(taken) == len(set(taken)) > 0 and min(taken) >= given
    refused = eventually(lambda: (lambda reply: reply if reply and reply.reason else None)(play.lease(8)), 5, "the old one is asked")
    assert refused.reason == "not_mine"
    thawed = time.monotonic()
    eventually(lambda: time.monotonic() - thawed > 1, 3, "a second of boards")
    assert not [board for at, board in play.boards if at > thawed and board.term < 2]


def test_no_stock_message_for_three_seconds_stops_the_line(bus_stack, play):
    bus_stack.start_daemon("queue")
    while play.seen["index_end"] < 20000:
        granted(play, 4096)
    opened(play)
    eventually(lambda: play.board().watermark > 100, 3, "the watermark moves")
    play.gate = False
    silent = time.monotonic()
    eventually(lambda: len(play.boards) > 30 and play.boards[-1][1].watermark == play.boards[-6][1].watermark, 8, "it stops")
    assert time.monotonic() - silent > 2


def test_case_17_a_recreated_sale_starts_from_zero(bus_stack, play):
    bus_stack.start_daemon("queue")
    opened(play)
    for _ in range(5):
        granted(play, 32)
    eventually(lambda: play.board().watermark > 5, 3, "the watermark moves")
    play.recreate()
    fresh = eventually(lambda: (lambda reply: reply if reply and not reply.reason and reply.generation == 2 else None)(play.lease()),
                       5, "a lease of the new generation")
    assert fresh.first == 0
    eventually(lambda: play.board().generation == 2, 2, "boards of the new generation")
    assert play.board().watermark == 0


@pytest.mark.parametrize("field,value", [("edge", ""), ("edge", "No Spaces"), ("count", 0), ("count", 5000), ("sale", "other")])
def test_a_malformed_lease_is_refused_by_name(bus_stack, play, field, value):
    bus_stack.start_daemon("queue")
    granted(play)
    request = play.proto.queue.LeaseRequest(sale=play.sale, edge="edge-played", count=8)
    setattr(request, field, value)
    reply = play.bus.ask(f"queue.{play.sale}.lease", request.SerializeToString(), play.proto.queue.LeaseReply)
    assert reply.reason == "malformed" and reply.count == 0


def test_an_unknown_sale_gets_no_indexes(bus_stack, play):
    bus_stack.start_daemon("queue")
    granted(play)
    request = play.proto.queue.LeaseRequest(sale="nobody", edge="edge-played", count=8)
    reply = play.bus.ask("queue.nobody.lease", request.SerializeToString(), play.proto.queue.LeaseReply)
    assert reply.reason == "sale_unknown"


def test_bytes_that_are_no_message_do_no_harm(bus_stack, play):
    bus_stack.start_daemon("queue")
    granted(play)
    for subject in ("lease", "presence", "board"):
        for body in (b"", b"\xff" * 50, b"\x0a\xff\xff\xff\xff\x0f", b"\x08" * 15360):
            play.bus.publish(f"queue.{play.sale}.{subject}", body)
    assert granted(play).term == 1
    assert bus_stack.alive("queue")
