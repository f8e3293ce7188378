# SPDX-License-Identifier: Apache-2.0
"""A rush of buyers who do what real clients do: ask again with the same key while the outcome is unknown. What each of them
was told is kept, and judged afterwards."""
import http.client
import random
import threading
import time
import uuid

from shop import NotSo, eventually

AGAIN = {429, 503}


class Attempt:
    """One buyer's one purchase: the answers to his one key, in order."""

    def __init__(self, user):
        self.user, self.key, self.answers, self.broken, self.confirmed = user, uuid.uuid4().hex, [], 0, None

    @property
    def won(self):
        return next((answer for answer in self.answers if answer.status == 201), None)

    @property
    def reservation(self):
        return self.won.json["reservationId"] if self.won else None


class Rush:
    """`count` buyers in `threads` threads for `units` units; `pay` of the winners pay (a share). Who still waits in the line
    when every unit has its winner goes home. Use as a context; `attempts` are the results."""

    def __init__(self, shop, sale, units, count, pay=0.7, threads=6, patience_s=45):
        self.shop, self.sale, self.units, self.pay, self.patience_s = shop, sale, units, pay, patience_s
        self.attempts, self.faults, self.stopped = [], [], threading.Event()
        self.waiting = [shop.buyer() for _ in range(count)]
        self.lock = threading.Lock()
        self.threads = [threading.Thread(target=self.work, daemon=True) for _ in range(threads)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, kind, value, trace):
        if kind:
            self.stopped.set()
        for thread in self.threads:
            thread.join()
        if not kind:
            assert not self.faults, self.faults[:3]

    @property
    def wins(self):
        return [attempt for attempt in list(self.attempts) if attempt.won]

    def wait_wins(self, count, seconds=30):
        eventually(lambda: len(self.wins) >= count, seconds, f"{count} buyers have won")

    def work(self):
        while not self.stopped.is_set():
            with self.lock:
                if not self.waiting:
                    return
                buyer = self.waiting.pop()
            try:
                self.buy(buyer)
            except NotSo as fault:
                self.faults.append(fault)

    def patient(self, call, settled):
        """Repeats a call while its outcome is unknown or the answer is not settled; returns the last answer."""
        deadline = time.monotonic() + self.patience_s
        while not self.stopped.is_set():
            answer = None
            try:
                answer = call()
            except (OSError, http.client.HTTPException):
                pass
            if answer is not None and settled(answer):
                return answer
            if time.monotonic() > deadline:
                raise NotSo(f"no settled answer within {self.patience_s} s, last: {answer}")
            self.stopped.wait(0.05 + random.random() * 0.1)
        return None

    def buy(self, buyer):
        attempt = Attempt(buyer.user)
        if not self.patient(lambda: buyer.ticket(self.sale), lambda answer: answer.status == 200):
            return
        status = self.patient(lambda: buyer.status(self.sale), lambda answer: answer.status == 200 and (
            answer.json.get("admissionToken") or answer.json.get("state") in ("sold_out", "closed") or len(self.wins) >= self.units))
        if not status or "admissionToken" not in status.json:
            return
        self.attempts.append(attempt)

        def reserve():
            answer = buyer.reserve(self.sale, status.json["admissionToken"], attempt.key)
            attempt.answers.append(answer)
            return answer
        self.patient(reserve, lambda answer: answer.status not in AGAIN)
        if attempt.won and random.random() < self.pay:
            payment = f"pay-{attempt.key}"
            attempt.confirmed = self.patient(lambda: self.shop.confirm(attempt.reservation, payment),
                                             lambda answer: answer.status not in AGAIN)


def judge(shop, sale, rush, units):
    """R1 to R4: what was told holds. Returns the states of all reservations."""
    rows = dict(shop.ledger("SELECT id, state FROM tidegate.reservations WHERE sale = %s", sale))
    for attempt in rush.attempts:
        won = False
        for answer in attempt.answers:
            assert answer.status < 500 or answer.status == 503, answer
            assert not (won and answer.code == "sold_out"), f"sold out after a win: {attempt.answers}"
            won = won or answer.status == 201
        if attempt.won:
            assert attempt.reservation in rows, f"answered 201, never recorded: {attempt.reservation}"
            ids = {answer.json["reservationId"] for answer in attempt.answers if answer.status == 201}
            assert ids == {attempt.reservation}
        if attempt.confirmed is not None and attempt.confirmed.status == 200:
            assert rows[attempt.reservation] == "confirmed", (attempt.reservation, rows[attempt.reservation])
    live = shop.ledger("SELECT count(*), count(DISTINCT (item, unit)), count(DISTINCT (user_id, user_slot))"
                       " FROM tidegate.holdings WHERE sale = %s AND live", sale)[0]
    assert live[0] == live[1] == live[2] <= units, live
    shop.referee(sale)
    return rows


def alarms(shop, sale):
    """Details of the checker's alarms."""
    return [row[0] for row in shop.ledger("SELECT detail FROM tidegate.checks WHERE sale = %s AND outcome = 'alarm'", sale)]
