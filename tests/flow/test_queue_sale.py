# SPDX-License-Identifier: Apache-2.0
"""Queue and admission in a whole stack, killed in mid-sale: places keep, positions only fall, nobody is admitted meanwhile."""
import os
import signal
import time

from shop import eventually


def waiting(shop, sale, count):
    """Buyers with tickets, in the order of their indexes: [(buyer, index)]."""
    line = []
    for _ in range(count):
        buyer = shop.buyer()
        answer = eventually(lambda b=buyer: (lambda a: a if a.status == 200 else None)(b.ticket(sale)), 10, "a ticket")
        line.append((buyer, answer.json["index"]))
    return line


def watermark(shop, sale):
    return shop.board(sale).get("watermark", 0)


def test_a_killed_queue_keeps_places_and_goes_on(own_shop):
    sale = own_shop.sale(units=200, pace="20/s")
    line = waiting(own_shop, sale, 60)
    eventually(lambda: watermark(own_shop, sale) > line[0][1], 10, "the line moves")
    last = line[-1][0]
    positions = [last.status(sale).json.get("position", 0)]
    before = watermark(own_shop, sale)
    own_shop.stack.kill("queue")
    for _ in range(10):
        positions.append(last.status(sale).json.get("position", 0))
    frozen = watermark(own_shop, sale)
    own_shop.stack.start_daemon("queue")

    def follows():
        positions.append(last.status(sale).json.get("position", 0))
        return watermark(own_shop, sale) > frozen
    eventually(follows, 10, "the restarted queue goes on")
    assert positions == sorted(positions, reverse=True), "a position rose"
    assert watermark(own_shop, sale) >= before
    board = own_shop.board(sale)
    assert board["term"] == 2
    late = eventually(lambda: (lambda a: a if a.status == 200 else None)(own_shop.buyer().ticket(sale)), 10, "a ticket after the kill")
    assert late.json["index"] > max(index for _, index in line)
    for buyer, index in (line[0], line[30], line[-1]):
        assert buyer.ticket(sale).json["index"] == index, "refreshing costs no place"
        buyer.admission(sale, 20)


def test_without_admission_nobody_is_admitted_and_the_waiting_room_answers(own_shop):
    sale = own_shop.sale(units=200, pace="20/s")
    line = waiting(own_shop, sale, 40)
    winner = line[0][0]
    admission = winner.admission(sale)
    own_shop.stack.kill("admission")
    seen = []

    def stands():
        """The last ten looks, half a second at twenty people a second, saw the same."""
        seen.append(watermark(own_shop, sale))
        time.sleep(0.05)
        return len(seen) > 10 and len(set(seen[-10:])) == 1 and seen[-1] > 0
    eventually(stands, 10, "the watermark stands")
    late = own_shop.buyer()
    late.ticket(sale)  # whoever came before may have been let through by now, on a slow machine
    assert late.status(sale).status == 200
    assert line[1][0].ticket(sale).json["index"] == line[1][1]
    refused = winner.status(sale)
    assert refused.code == "try_again" and "retry-after" in refused.headers
    assert winner.reserve(sale, admission).status == 201, "a pass in hand still buys"
    own_shop.stack.start_daemon("admission")
    late.admission(sale, 20)


def test_a_frozen_queue_is_replaced_and_nobody_meets_a_twin(own_shop):
    sale = own_shop.sale(units=200, pace="20/s")
    line = waiting(own_shop, sale, 20)
    own_shop.stack.start_daemon("queue", "queue-2")
    frozen = own_shop.stack.pid("queue")
    os.kill(frozen, signal.SIGSTOP)
    try:
        eventually(lambda: own_shop.board(sale).get("term") == 2, 8, "the standby has taken over")
    finally:
        os.kill(frozen, signal.SIGCONT)
    after = waiting(own_shop, sale, 40)
    indexes = [index for _, index in line + after]
    assert len(indexes) == len(set(indexes)), "one index for two people"
    assert own_shop.board(sale)["term"] == 2
    line[-1][0].admission(sale, 20)


def test_both_queues_frozen_and_all_edges_restarted_cost_nobody_a_place(own_shop):
    sale = own_shop.sale(units=200, pace="20/s")
    own_shop.stack.start_daemon("queue", "queue-2")
    line = waiting(own_shop, sale, 60)
    last, place = line[-1]
    positions = [last.status(sale).json["position"]]
    own_shop.stack.kill("edge")
    own_shop.stack.start_daemon("edge")

    def known():
        answer = last.status(sale)
        return answer.status == 200 and answer.json.get("position", 0) is not None
    eventually(known, 10, "the new edge knows the line")
    positions.append(last.status(sale).json.get("position", 0))
    for name in ("queue", "queue-2"):
        os.kill(own_shop.stack.pid(name), signal.SIGSTOP)
    try:
        stood = watermark(own_shop, sale)
        for _ in range(40):
            positions.append(last.status(sale).json.get("position", 0))
            time.sleep(0.05)
        assert watermark(own_shop, sale) - stood <= 20, "who is frozen lets nobody in, but for what was on its way"
    finally:
        for name in ("queue", "queue-2"):
            os.kill(own_shop.stack.pid(name), signal.SIGCONT)
    stood = watermark(own_shop, sale)
    eventually(lambda: watermark(own_shop, sale) > stood, 15, "the line moves on")
    positions.append(last.status(sale).json.get("position", 0))
    assert positions == sorted(positions, reverse=True), "a position rose"
    assert last.ticket(sale).json["index"] == place
    indexes = [index for _, index in line + waiting(own_shop, sale, 20)]
    assert len(indexes) == len(set(indexes)), "one index for two people"
    last.admission(sale, 20)
