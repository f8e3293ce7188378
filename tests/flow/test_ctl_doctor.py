# SPDX-License-Identifier: Apache-2.0
"""tidegatectl doctor and arm against servers that are really misconfigured; and the ledger arms nothing on an unsound one."""
import contextlib
import json
import os
import time

import pytest

from conftest import close_shop, open_shop
from shop import eventually

CLASSES = {"edge", "queue", "admission", "reserve", "ledger", "sweeper", "invariant"}


@pytest.fixture(scope="module")
def ground():
    """A stack of this file's own: each test breaks one thing and mends it."""
    own, folder = open_shop()
    yield own
    close_shop(own, folder)


def ctl(shop, *arguments):
    """(exit code, rows) of a command with -o json."""
    done = shop.stack.ctl(*arguments, "-o", "json", check=False)
    return done.returncode, json.loads(done.stdout) if done.stdout else done.stderr


def unmet(rows):
    """{(source, name): value} of what is not as it should be."""
    return {(row["source"], row["name"]): row["value"] for row in rows if not row["met"]}


def faults(rows):
    return unmet([row for row in rows if row["must"]])


def names(shop, source, name, value):
    """Runs doctor until it refuses because of this."""
    def seen():
        code, rows = ctl(shop, "doctor")
        return code == 1 and value in faults(rows).get((source, name), "")
    eventually(seen, 30, f"doctor names {source} {name} {value}")


def sound(shop, *arguments):
    eventually(lambda: ctl(shop, "doctor", *arguments)[0] == 0, 30, "doctor is content")


@contextlib.contextmanager
def role_setting(shop, setting):
    """What new sessions of the ledger's role begin with; the ledger is restarted, since it keeps its sessions."""
    def restart(statement):
        shop.stack.psql(statement)
        shop.stack.kill("ledger")
        shop.stack.start_daemon("ledger")
    restart(f"ALTER ROLE tidegate_ledger SET {setting}")
    try:
        yield
    finally:
        restart("ALTER ROLE tidegate_ledger SET synchronous_commit = 'on'")


def armed(shop, sale):
    return ctl(shop, "sale", "show", sale)[1]["state"]["armed"]


def arms(shop, sale):
    """What was in the way is mended: arm gets there, once the daemons have looked again."""
    eventually(lambda: ctl(shop, "arm", sale)[0] == 0, 30, f"{sale} is armed and proved")
    assert armed(shop, sale)


def stays_unarmed(shop, sale, seconds=3):
    """Long enough for several attempts of reserve, one a second."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        assert not armed(shop, sale)
        time.sleep(0.2)


def test_a_sound_stack_lacks_nothing_that_must_be(ground):
    code, rows = ctl(ground, "doctor")
    assert code == 0 and faults(rows) == {}, rows
    assert {row["source"] for row in rows} == CLASSES | {"nats", "keys"}
    assert unmet(rows) == {}
    asked = {(row["source"], row["name"]) for row in rows}
    assert {("ledger", "fsync"), ("ledger", "holdings_one_owner"), ("reserve", "maxmemory_policy"), ("edge", "ready")} <= asked


def test_arm_waits_until_the_gate_is_armed_and_proved(ground):
    sale = ground.apply(opens_in=3600)
    code, rows = ctl(ground, "arm", sale)
    assert code == 0 and {"state", "armed", "proved"} == {row["name"] for row in rows if row["source"] == "sale"}
    assert armed(ground, sale)
    code, said = ctl(ground, "arm", "no-such-sale")
    assert code == 1 and "there is no sale" in said


def test_an_evicting_redis_is_named(ground):
    ground.redis.config_set("maxmemory-policy", "allkeys-lru")
    try:
        names(ground, "reserve", "maxmemory_policy", "allkeys-lru")
        sale = ground.apply(opens_in=3600)
        code, rows = ctl(ground, "arm", sale)
        assert code == 1 and ("reserve", "maxmemory_policy") in faults(rows) and not armed(ground, sale)
    finally:
        ground.redis.config_set("maxmemory-policy", "noeviction")
    arms(ground, sale)


def test_a_redis_without_append_only_file_is_advised_against(ground):
    ground.redis.config_set("appendonly", "no")
    try:
        eventually(lambda: ("reserve", "append_only") in unmet(ctl(ground, "doctor")[1]), 30, "doctor sees it")
        assert ctl(ground, "doctor")[0] == 0  # no guarantee rests on it
    finally:
        ground.redis.config_set("appendonly", "yes")


def test_a_ledger_that_commits_asynchronously_arms_nothing(ground):
    with role_setting(ground, "synchronous_commit = off"):
        sale = ground.apply()
        names(ground, "ledger", "synchronous_commit", "off")
        code, rows = ctl(ground, "arm", sale)
        assert code == 1 and faults(rows)[("ledger", "synchronous_commit")] == "off"
        stays_unarmed(ground, sale)
    arms(ground, sale)
    eventually(lambda: ground.board(sale).get("state") == "open", 30, "it opens")


def test_a_ledger_without_its_unit_index_arms_nothing(ground):
    index = ground.stack.psql("SELECT pg_get_indexdef('tidegate.holdings_one_owner'::regclass)")
    ground.stack.psql("DROP INDEX tidegate.holdings_one_owner")
    try:
        names(ground, "ledger", "holdings_one_owner", "missing")
        sale = ground.apply(opens_in=3600)
        code, rows = ctl(ground, "arm", sale)
        assert code == 1 and ("ledger", "holdings_one_owner") in faults(rows)
        stays_unarmed(ground, sale)
        ground.stack.psql(index.replace("UNIQUE ", ""))
        names(ground, "ledger", "holdings_one_owner", "invalid")  # the name alone guards nothing
    finally:
        ground.stack.psql("DROP INDEX IF EXISTS tidegate.holdings_one_owner")
        ground.stack.psql(index)
    arms(ground, sale)


def test_a_daemon_that_is_gone_or_not_ready_is_named(ground):
    ground.stack.kill("sweeper")
    try:
        names(ground, "sweeper", "ready", "nobody answers")
    finally:
        ground.stack.start_daemon("sweeper")
    ground.stack.kill("redis")
    try:
        names(ground, "reserve", "ready", "Redis")
    finally:
        ground.stack.start_redis()
    sound(ground)


def test_a_key_that_others_may_read_is_named(ground):
    path = f"{ground.stack.env['TIDEGATE_KEYS']}/pass-mac"
    os.chmod(path, 0o644)
    try:
        names(ground, "keys", "readable_by_others", "pass-mac")
    finally:
        os.chmod(path, 0o600)
    sound(ground)


def test_a_silent_bus_is_unknown_not_good(ground):
    ground.stack.kill("nats")
    try:
        done = ground.stack.ctl("doctor", check=False)
        assert done.returncode == 69 and "does not answer" in done.stderr
    finally:
        ground.stack.start_nats()
    sound(ground)
