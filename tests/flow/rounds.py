# SPDX-License-Identifier: Apache-2.0
"""The checker's rounds, as the ledger stored them."""
import time

from shop import eventually


def checks(shop, sale, since_ms=0):
    """(outcome, detail) of the rounds stored since a time."""
    return shop.ledger("SELECT outcome, detail FROM tidegate.checks WHERE sale = %s AND checked_ms > %s ORDER BY checked_ms, id",
                       sale, since_ms)


def alarms(shop, sale):
    return [detail for outcome, detail in checks(shop, sale) if outcome == "alarm"]


def clean_rounds(shop, sale, count):
    since = int(time.time() * 1000)
    return eventually(lambda: [outcome for outcome, _ in checks(shop, sale, since)].count("clean") >= count, 15,
                      f"{count} clean rounds of {sale}")
