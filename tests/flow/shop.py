# SPDX-License-Identifier: Apache-2.0
"""The client of the flow tests: a shop with sales, buyers and a service credential, and a look into gate and ledger."""
import base64
import hashlib
import hmac
import http.client
import json
import threading
import time
import uuid

import psycopg2
import redis


class NotSo(AssertionError):
    """A condition that did not become true in time."""


def eventually(condition, seconds=10, what="the condition"):
    """Polls until the condition is true and returns its value."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise NotSo(f"not so after {seconds} s: {what} (last: {value!r})")
        time.sleep(0.02)


def at_once(calls):
    """Runs all calls in threads that start together; results in order."""
    results = [None] * len(calls)
    barrier = threading.Barrier(len(calls))

    def run(index):
        barrier.wait()
        results[index] = calls[index]()
    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def solve(challenge):
    """The answer to a challenge as X-Challenge wants it; what the browser's worker does."""
    asked = challenge["parameters"]
    nonce, salt = bytes.fromhex(asked["nonce"]), bytes.fromhex(asked["salt"])
    counter, derived = 0, ""
    while not derived.startswith(asked["keyPrefix"]) or not derived:
        counter += 1
        derived = hashlib.pbkdf2_hmac("sha256", nonce + counter.to_bytes(4, "big"), salt, asked["cost"]).hex()
    return answer_to(challenge, {"counter": counter, "derivedKey": derived})


def answer_to(challenge, solution=None):
    """base64 of a challenge and its solution; without one, of the challenge alone."""
    whole = {"challenge": challenge, **({"solution": solution} if solution else {})}
    return base64.b64encode(json.dumps(whole).encode()).decode()


class Answer:
    """An HTTP answer: status, headers (lower-case names), text and, where it is JSON, the document."""

    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.text = response.read().decode()
        self.json = json.loads(self.text) if "json" in self.headers.get("content-type", "") and self.text else None

    @property
    def code(self):
        """The short code of a refusal, None for an answer that is none."""
        return self.json["error"]["code"] if isinstance(self.json, dict) and "error" in self.json else None

    def __repr__(self):
        return f"<{self.status} {self.text[:300]}>"


def base64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def sign_buyer(secret, claims, header=None):
    """A buyer's token as the shop would issue it (HS256)."""
    head = base64url(json.dumps(header or {"alg": "HS256", "typ": "JWT"}).encode())
    body = base64url(claims if isinstance(claims, bytes) else json.dumps(claims).encode())
    mac = hmac.new(secret, f"{head}.{body}".encode(), hashlib.sha256).digest()
    return f"{head}.{body}.{base64url(mac)}"


class Buyer:
    """One signed-in person with a browser: keeps tickets, asks for passes, reserves."""

    def __init__(self, shop, user):
        self.shop, self.user, self.tickets = shop, user, {}
        self.token = sign_buyer(shop.buyer_secret, {"sub": user, "exp": int(time.time()) + 3600})

    def call(self, method, path, body=None, **headers):
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.shop.http(method, path, body, {"Authorization": f"Bearer {self.token}", **named})

    def ticket(self, sale):
        answer = self.call("GET", f"/sale/{sale}/ticket", **({"X_Ticket": self.tickets[sale]} if sale in self.tickets else {}))
        if answer.status == 200:
            self.tickets[sale] = answer.json["token"]
        return answer

    def status(self, sale):
        return self.call("GET", f"/sale/{sale}/status", X_Ticket=self.tickets[sale])

    def admission(self, sale, seconds=15):
        """Takes a ticket and waits for a pass; returns the pass."""
        if sale not in self.tickets:
            eventually(lambda: self.ticket(sale).status == 200, seconds, f"{self.user} has a ticket for {sale}")

        def admitted():
            answer = self.status(sale)
            return answer.json.get("admissionToken") if answer.status == 200 else None
        return eventually(admitted, seconds, f"{self.user} is admitted to {sale}")

    def reserve(self, sale, admission=None, key=None, body=None):
        headers = {"Idempotency_Key": key or uuid.uuid4().hex}
        if admission:
            headers["X_Admission_Token"] = admission
        return self.call("POST", f"/sale/{sale}/reserve", body, **headers)

    def read(self, reservation):
        return self.call("GET", f"/reservations/{reservation}")

    def cancel(self, reservation):
        return self.call("POST", f"/reservations/{reservation}/cancel")


class Shop:
    """A stack seen from outside, and, for asserting, from inside."""

    def __init__(self, stack):
        self.stack = stack
        host, port = stack.env["TIDEGATE_EDGE_URL"].removeprefix("http://").split(":")
        self.address = (host, int(port))
        self.buyer_secret = bytes.fromhex(self.key("buyer"))
        self.service = self.key("service")
        self.redis = redis.Redis.from_url(stack.env["TIDEGATE_REDIS_URL"])
        self.count, self.applied = 0, []

    def key(self, name):
        with open(f"{self.stack.env['TIDEGATE_KEYS']}/{name}", encoding="ascii") as handle:
            return handle.read().split()[-1]

    def http(self, method, path, body=None, headers=None, address=None):
        host, port = address or self.address
        connection = http.client.HTTPConnection(host, port, timeout=10)
        try:
            if isinstance(body, (dict, list)):
                body = json.dumps(body)
            named = {name.replace("_", "-"): value for name, value in (headers or {}).items()}
            if body is not None:
                named.setdefault("Content-Type", "application/json")
            connection.request(method, path, body, named)
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def buyer(self, user=None):
        self.count += 1
        return Buyer(self, user or f"buyer-{self.count}-{uuid.uuid4().hex[:6]}")

    # -- sales -----------------------------------------------------------------------------------------------------

    def apply(self, name=None, units=10, per_buyer=1, hold="10m", grace="1s", opens_in=0, pace="1000/s", pace_max="5000/s",
              price=4900, challenge="none", policy="order: fifo", lease="3s", check=True):
        """Declares a sale; returns its name."""
        name = name or f"sale-{uuid.uuid4().hex[:8]}"
        opens = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + opens_in))
        path = f"{self.stack.run}/{name}.yaml"
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(f"""sale: {name}
items: [{{sku: {name}, units: {units}, price: {price}, currency: EUR}}]
opensAt: {opens}
policy: {{{policy}, challenge: {challenge}}}
limits: {{perBuyer: {per_buyer}, holdFor: {hold}, grace: {grace}, extendBy: 60s, extensions: 2}}
pace: {{start: {pace}, max: {pace_max}, min: 1/s}}
proof: {{everyMs: 500, leaseFor: {lease}}}
show: {{remaining: exact}}
""")
        self.stack.ctl("sale", "apply", "-f", path, check=check)
        self.applied.append(name)
        return name

    def close(self, sales):
        """Over: proved no more, swept no more."""
        self.ledger("UPDATE tidegate.sales SET stage = 'closed' WHERE sale = ANY(%s)", list(sales))

    def sale(self, **options):
        """A sale that is open: armed, proved and past its opening."""
        name = self.apply(**options)
        self.wait_open(name)
        return name

    def wait_open(self, name):
        """Until it is open, led by a queue, and seen so by the edge."""
        def is_open():
            board = self.board(name)
            return board.get("state") == "open" and board.get("term")
        eventually(is_open, 30, f"{name} is open")

    def board(self, sale):
        answer = self.http("GET", f"/sale/{sale}/board")
        return answer.json if answer.status == 200 else {}

    def win(self, sale, buyer=None, key=None):
        """A buyer who holds a unit: (buyer, key, pass, answer)."""
        buyer = buyer or self.buyer()
        key = key or uuid.uuid4().hex
        admission = buyer.admission(sale)
        answer = buyer.reserve(sale, admission, key)
        assert answer.status == 201, answer
        return buyer, key, admission, answer

    def confirm(self, reservation, payment=None, amount=4900, currency="EUR", credential=None):
        return self.http("POST", f"/reservations/{reservation}/confirm",
                         {"paymentId": payment or f"pay-{uuid.uuid4().hex}", "amount": amount, "currency": currency},
                         {"Authorization": f"Bearer {credential or self.service}"})

    def extend(self, reservation):
        return self.http("POST", f"/reservations/{reservation}/extend", None, {"Authorization": f"Bearer {self.service}"})

    # -- inside ----------------------------------------------------------------------------------------------------

    def ledger(self, sql, *parameters):
        """Rows of one statement, committed."""
        connection = psycopg2.connect(self.stack.env["TIDEGATE_LEDGER_URL"])
        try:
            with connection, connection.cursor() as cursor:
                cursor.execute(sql, parameters)
                return cursor.fetchall() if cursor.description else None
        finally:
            connection.close()

    def gate_key(self, sale, name, epoch=None, shard=0):
        return f"tg:{{{sale}.{shard}}}:{epoch or self.epoch(sale)}:{name}"

    def epoch(self, sale):
        return self.ledger("SELECT epoch FROM tidegate.sales WHERE sale = %s ORDER BY generation DESC LIMIT 1", sale)[0][0]

    def gate(self, sale, name):
        """A gate hash or set, decoded."""
        key = self.gate_key(sale, name)
        if self.redis.type(key) == b"set":
            return {member.decode() for member in self.redis.smembers(key)}
        return {field.decode(): value.decode() for field, value in self.redis.hgetall(key).items()}

    def taken(self, sale):
        """The reservations that have units at the gate, held or settled: read at once, for a verdict moves many together."""
        with self.redis.pipeline(transaction=True) as both:
            held, settled = both.hkeys(self.gate_key(sale, "held")).hkeys(self.gate_key(sale, "settled")).execute()
        assert not set(held) & set(settled)
        return {reservation.decode() for reservation in held + settled}

    def state(self, sale):
        """The ledger's word on the sale's state."""
        return self.ledger("SELECT state FROM tidegate.sales WHERE sale = %s ORDER BY generation DESC LIMIT 1", sale)[0][0]

    def referee(self, sale):
        """Heals nothing, asserts everything: one live owner a unit, gate and ledger agree once the sweeper is through."""
        live = self.ledger("""SELECT h.item, h.unit, h.reservation_id FROM tidegate.holdings h JOIN tidegate.reservations r
            ON r.id = h.reservation_id WHERE h.sale = %s AND h.live""", sale)
        units = {(item, unit) for item, unit, _ in live}
        assert len(units) == len(live), "a unit with two live owners"

        def agree():
            held, settled = self.gate(sale, "held"), self.gate(sale, "settled")
            rows = dict(self.ledger("SELECT id, state FROM tidegate.reservations WHERE sale = %s", sale))
            return set(held) == {i for i, s in rows.items() if s == "pending"} and \
                set(settled) == {i for i, s in rows.items() if s == "confirmed"}
        eventually(agree, 15, "gate and ledger name the same reservations")
        control = self.gate(sale, "ctl")
        counted = sum(int(control[f"{name}:0"]) for name in ("stock", "held", "settled"))
        assert counted == int(control["initial:0"]), control
