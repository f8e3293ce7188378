# SPDX-License-Identifier: Apache-2.0
"""Whatever a stranger sends over the bus: a clear refusal or silence, nothing taken, nobody dies."""
import os
import random
import re

import pytest
from bus_probe import ROOT, Bus, messages
from conftest import close_shop, open_shop
from google.protobuf.descriptor import FieldDescriptor
from shop import eventually

SEED = int(os.environ.get("TIDEGATE_TEST_SEED", random.SystemRandom().randrange(2**32)))


def catalogue_rows():
    """(id, subject, kind, owner, request, reply) of every message of the bus."""
    with open(f"{ROOT}/catalog/messages.def", encoding="utf-8") as handle:
        return re.findall(r'^TG_MESSAGE\((\w+), "([^"]+)", (\w+), (\w+), (\w+), (\w+), "[^"]*"\)', handle.read(), re.M)


ROWS = catalogue_rows()


@pytest.fixture(scope="module")
def classes():
    """Message classes by the catalogue's snake-case name."""
    found = {}
    for module in vars(messages()).values():
        for descriptor in getattr(getattr(module, "DESCRIPTOR", None), "message_types_by_name", {}).values():
            found[re.sub(r"(?<!^)(?=[A-Z])", "_", descriptor.name).lower()] = getattr(module, descriptor.name)
    return found


@pytest.fixture(scope="module")
def shop():
    """Its NATS lets strangers say anything: the daemons alone must withstand it."""
    open_one, folder = open_shop(guarded=False)
    yield open_one
    close_shop(open_one, folder)


@pytest.fixture
def bus(shop):
    probe = Bus(shop.stack.env["TIDEGATE_NATS_URL"])
    yield probe
    probe.close()


def daemons_alive(shop):
    return [name for name in shop.stack.processes if not shop.stack.alive(name)] == []


def assert_unharmed(shop, sale, taken):
    """Every daemon lives and is ready, no unit moved, and an honest buyer can still buy."""
    assert daemons_alive(shop)
    for daemon in ("ledger", "reserve", "sweeper", "invariant", "queue", "admission", "edge"):
        eventually(lambda daemon=daemon: shop.stack.admin(daemon, "/readyz")[0] == 200, 10, f"{daemon} is ready")
    assert len(shop.taken(sale)) == taken
    assert shop.state(sale) == "open"


def odd_value(field, chance):
    """A value of the field's type that nobody expects."""
    kind = field.type
    if field.name == "epoch":
        return chance.choice([0, 2, 2**53 + 1])  # never the gate's own: who knows that speaks with authority
    if kind == FieldDescriptor.TYPE_STRING:
        return chance.choice(["", "x", "a" * 5000, "..", "*", ">", "res_", "res_" + "0" * 26, "res_" + "Z" * 26, "é\u202e", "1e+06", "\t"])
    if kind == FieldDescriptor.TYPE_BYTES:
        return chance.choice([b"", b"\x00", b"ab\x00evil", b"\xff" * 16, b"\xed\xa0\x80", os.urandom(16), b"x" * 129])
    if kind in (FieldDescriptor.TYPE_UINT64, FieldDescriptor.TYPE_INT64):
        return chance.choice([0, 1, 2**31, 2**53 + 1, 2**63 - 1])
    if kind in (FieldDescriptor.TYPE_UINT32,):
        return chance.choice([0, 1, 31, 64, 65, 2**31, 2**32 - 1])
    if kind == FieldDescriptor.TYPE_BOOL:
        return chance.choice([True, False])
    if kind == FieldDescriptor.TYPE_ENUM:
        return chance.choice([0, 1, 2, 3, 77, 2**31 - 1])
    raise AssertionError(f"a field type the probe does not know: {kind}")


def odd_message(cls, chance, sale, depth=0):
    """A decodable message full of odd values; the sale's name is right half of the time."""
    message = cls()
    for field in cls.DESCRIPTOR.fields:
        if chance.random() < 0.15 or depth > 2:
            continue
        repeated = field.label == FieldDescriptor.LABEL_REPEATED
        count = chance.choice([0, 1, 2, 70]) if repeated else 1
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            for _ in range(min(count, 3) if depth else count):
                inner = odd_message(field.message_type._concrete_class, chance, sale, depth + 1)
                getattr(message, field.name).add().CopyFrom(inner) if repeated else getattr(message, field.name).CopyFrom(inner)
        elif repeated:
            getattr(message, field.name).extend(odd_value(field, chance) for _ in range(count))
        else:
            setattr(message, field.name, sale if field.name == "sale" and chance.random() < 0.5 else odd_value(field, chance))
    return message


def subject_of(row, sale):
    return row[1].replace("%s", sale)


def test_undecodable_and_oversized_bodies_are_refused(shop, bus):
    sale = shop.sale(units=3)
    eventually(lambda: shop.buyer().ticket(sale).status == 200, 10, "the queue gives indexes")
    chance = random.Random(SEED)
    for row in ROWS:
        for body in (b"\xff" * 40, b"\x0a\xff\xff\xff\xff\x0f", bytes(chance.randrange(256) for _ in range(300)), b"\x0a" + b"\x7f" * 15361):
            if row[2] == "REQUEST":
                answer = bus.ask_raw(subject_of(row, sale), body)
                assert answer is not None and b"Nats-Service-Error" in answer[0], f"{row[0]}: {answer} (seed {SEED})"
            else:
                bus.publish(subject_of(row, sale), body)
    assert_unharmed(shop, sale, 0)


def test_decodable_nonsense_takes_nothing(shop, bus, classes):
    """Seeded; the soft state a stranger can publish (boards, stock) is not spoken here: see the permissions of the bus."""
    sale = shop.sale(units=3)
    chance = random.Random(SEED)
    for _ in range(8):
        for row in ROWS:
            if row[2] == "PUBLISH":
                continue
            body = odd_message(classes[row[4]], chance, sale).SerializeToString()
            if len(body) <= 15360:
                bus.publish(subject_of(row, sale), body, f"{bus.inbox}.0")
    assert_unharmed(shop, sale, 0)
    shop.win(sale)
    shop.referee(sale)


def test_subjects_of_impossible_sales_do_nothing(shop, bus):
    sale = shop.sale(units=3)
    for row in ROWS:
        if "%s" in row[1]:
            for name in ("a" * 65, "x;y", "{x}", "é"):
                bus.publish(subject_of(row, name), b"", f"{bus.inbox}.0")
    assert_unharmed(shop, sale, 0)
