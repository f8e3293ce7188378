# SPDX-License-Identifier: Apache-2.0
"""The 99.5 %: they hear that it is over within a second, and cost the stores nothing."""
import json
import os
import re
import subprocess

from shop import eventually

BUYERS, UNITS = 6000, 200


def transactions(shop):
    return shop.ledger("SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()")[0][0]


def commands(shop):
    return shop.redis.info("stats")["total_commands_processed"]


def test_losers_hear_within_a_second(shop):
    """A whole sale, seen by a referee who knows when the last unit went."""
    stack = shop.stack
    sale = shop.sale(units=UNITS, pace="500/s")
    report = f"{stack.run}/report.json"
    done = subprocess.run([f"{stack.bin}/rehearse", "--sale", sale, "--buyers", str(BUYERS), "--arrive-s", "6", "--abandon-percent", "0",
                           "--pay-delay", "0s", "--connections", "256", "--limit-s", "120", "--out", report],
                          env={**os.environ, **stack.env}, cwd=stack.run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    with open(report, encoding="utf-8") as handle:
        said = json.load(handle)
    assert said["confirmed"] == UNITS and said["people"]["told"] >= BUYERS - UNITS, said["people"]
    assert said["rules"]["toldLate"] == 0
    assert said["soldOutToldMsP99"] <= 1000
    print(f"{said['people']['told']} losers, p99 {said['soldOutToldMsP99']} ms")


def test_a_flood_of_losers_reaches_no_store(shop):
    sale = shop.sale(units=1)
    _, _, _, held = shop.win(sale)
    loser = shop.buyer()
    loser.ticket(sale)
    assert shop.confirm(held.json["reservationId"]).status == 200
    eventually(lambda: shop.board(sale).get("state") == "sold_out", 20, "sold out is final")

    def during(command):
        before = transactions(shop), commands(shop)
        output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return output, transactions(shop) - before[0], commands(shop) - before[1]
    _, idle_transactions, idle_commands = during(["sleep", "4"])
    host, port = shop.address
    script = f"{shop.stack.run}/reserve.lua"
    with open(script, "w", encoding="ascii") as handle:
        handle.write('wrk.method = "POST"\n')
    flood = ["wrk", "-t1", "-c32", "-d4s", "-H", f"Authorization: Bearer {loser.token}"]
    for command, refused in (([*flood, "-H", f"X-Ticket: {loser.tickets[sale]}", f"http://{host}:{port}/sale/{sale}/status"], False),
                             ([*flood, "-s", script, f"http://{host}:{port}/sale/{sale}/reserve"], True)):
        output, took_transactions, took_commands = during(command)
        requests = int(re.search(r"(\d+) requests in", output).group(1))
        other = re.search(r"Non-2xx or 3xx responses: (\d+)", output)
        assert requests > 2000 and (int(other.group(1)) if other else 0) == (requests if refused else 0), output
        print(f"{requests} losers: {took_transactions} transactions, {took_commands} commands; idle {idle_transactions}, {idle_commands}")
        assert took_transactions < 2 * idle_transactions + 50 and took_commands < 2 * idle_commands + 50
    assert loser.status(sale).json == {"state": "sold_out"} and loser.reserve(sale).json["final"] is True
