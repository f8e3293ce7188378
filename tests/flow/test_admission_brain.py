# SPDX-License-Identifier: Apache-2.0
"""The admission daemon on a real bus, with its neighbours played: passes, refusals, the pace, takeover. Tickets are sealed and passes
are checked here by another library than the daemon's own code uses for them."""
import base64
import json
import os
import shutil
import struct
import tempfile
import time

import nacl.bindings
import nacl.exceptions
import nacl.signing
import pytest

from bus_probe import Play
from conftest import BUILD
from shop import eventually
from stack import Stack


@pytest.fixture
def bus_stack():
    folder = tempfile.mkdtemp(prefix="tidegate-admission-")
    stack = Stack(os.path.join(folder, "run"), BUILD, quiet=True)
    stack.ctl("keys", "new", f"{stack.run}/keys")
    stack.start_nats()
    yield stack
    stack.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def play(bus_stack):
    """A played world around an open sale whose queue has let 100 ranks through; the daemon under test runs."""
    played = Play(bus_stack.env["TIDEGATE_NATS_URL"], "sku_991")
    played.pace_from_admission = True
    played.phase = played.proto.common.SALE_PHASE_OPEN
    bus_stack.start_daemon("admission", env={"TIDEGATE_ADMISSION_RAMP": "1s"})
    yield played
    played.close()


def key_file(stack, name):
    with open(f"{stack.run}/keys/{name}", encoding="ascii") as handle:
        key_id, text = handle.read().split()
    return key_id, bytes.fromhex(text)


def seal(stack, sale="sku_991", generation=1, user=b"ann", visitor=None, index=5, early=False):
    """A ticket as an edge seals it."""
    key_id, key = key_file(stack, "ticket.current")
    kind, holder = (2, visitor) if visitor else (1, user)
    inner = bytes([len(sale)]) + sale.encode() + struct.pack(">Q", generation) + bytes([kind, len(holder)]) + holder
    inner += struct.pack(">QQ", int(time.time() * 1000), index) + bytes([early, 0])
    head, nonce = bytes([1, int(key_id[:2], 16)]), os.urandom(24)
    sealed = nacl.bindings.crypto_aead_xchacha20poly1305_ietf_encrypt(inner, head, nonce, key)
    return base64.urlsafe_b64encode(head + nonce + sealed).rstrip(b"=").decode()


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def claims(stack, token):
    """The claims of a pass whose signature holds by the published key."""
    _, public = key_file(stack, "pass.current.pub")
    head, body, signature = token.split(".")
    nacl.signing.VerifyKey(public).verify(f"{head}.{body}".encode(), decode(signature))
    assert json.loads(decode(head))["alg"] == "EdDSA"
    return json.loads(decode(body))


def answered(play, ticket, user=b"ann", watermark=100, **board):
    """Says a board and asks for a pass, until the answer rests on that board."""
    def ask():
        play.say_board(**{"term": 1, "watermark": watermark, **board})
        reply = play.ask_pass(ticket, user)
        return reply if reply and reply.reason not in ("try_again", "sale_unknown") else None
    return eventually(ask, 5, "an answer")


def test_a_pass_carries_the_claims_any_jwt_library_reads(bus_stack, play):
    reply = answered(play, seal(bus_stack))
    assert reply.reason == "" and reply.watermark == 100
    told = claims(bus_stack, getattr(reply, "pass"))
    now = time.time()
    assert list(told) == ["iss", "aud", "sub", "iat", "exp", "jti", "place", "gen", "event_id", "role"]
    assert (told["iss"], told["aud"], told["sub"], told["gen"], told["role"]) == ("tidegate", "sku_991", "ann", 1, "ADMITTED")
    assert now - 61 < told["iat"] <= now + 1 and 59 < told["exp"] - now <= 120
    assert reply.expires_at_ms == told["exp"] * 1000


def test_asking_again_in_the_minute_gives_the_same_pass_from_every_instance(bus_stack, play):
    bus_stack.start_daemon("admission", "admission-2")
    ticket = seal(bus_stack)

    def in_one_minute():
        minute = time.time() // 60
        passes = {getattr(answered(play, ticket), "pass") for _ in range(12)}
        return passes if time.time() // 60 == minute else None
    assert len(eventually(in_one_minute, 10, "twelve asks within one minute")) == 1


def test_rank_and_watermark_decide(bus_stack, play):
    assert answered(play, seal(bus_stack, index=99)).reason == ""
    waiting = answered(play, seal(bus_stack, index=100))
    assert waiting.reason == "waiting" and getattr(waiting, "pass") == ""
    eventually(lambda: answered(play, seal(bus_stack, index=100), watermark=101).reason == "", 5, "the next rank's turn")


@pytest.mark.parametrize("changes,user,reason", [
    ({"user": b"bob"}, b"ann", "forbidden"),
    ({"generation": 9}, b"ann", "try_again"),
    ({"sale": "SKU_991"}, b"ann", "ticket_invalid"),
    ({}, b"", "sign_in_required"),
    ({}, b"a\x00b", "malformed"),
    ({}, b"\xff\xfe", "malformed"),
])
def test_refusals_by_name(bus_stack, play, changes, user, reason):
    assert answered(play, seal(bus_stack)).reason == ""
    reply = play.ask_pass(seal(bus_stack, **changes), user)
    assert reply.reason == reason and getattr(reply, "pass") == ""


def test_a_broken_ticket_is_invalid_at_every_place(bus_stack, play):
    ticket = seal(bus_stack)
    assert answered(play, ticket).reason == ""
    for at in range(0, len(ticket), 7):
        other = "A" if ticket[at] != "A" else "B"
        assert play.ask_pass(ticket[:at] + other + ticket[at + 1:], b"ann").reason == "ticket_invalid"
    for spelled in (ticket + "=", ticket[:-1], ticket + "A", " " + ticket, ticket * 20):
        assert play.ask_pass(spelled, b"ann").reason == "ticket_invalid"
    assert play.ask_pass("", b"ann").reason == "ticket_required"


def test_a_visitors_place_serves_whoever_signs_in(bus_stack, play):
    ticket = seal(bus_stack, visitor=b"v" * 16)
    told = [claims(bus_stack, getattr(answered(play, ticket, user), "pass")) for user in (b"ann", b"bob")]
    assert [each["sub"] for each in told] == ["ann", "bob"]
    assert told[0]["place"] == told[1]["place"] and told[0]["jti"] != told[1]["jti"]


def test_case_17_a_ticket_of_an_earlier_sale_starts_again(bus_stack, play):
    old = seal(bus_stack)
    assert answered(play, old).reason == ""
    play.recreate()
    play.set(phase=play.proto.common.SALE_PHASE_OPEN)
    eventually(lambda: play.ask_pass(old, b"ann").reason == "restart", 5, "the old ticket is told to start again")


@pytest.mark.parametrize("phase,reason", [("SCHEDULED", "sale_not_open"), ("PAUSED", "sale_paused"), ("SOLD_OUT", "sold_out"),
                                          ("CLOSED", "sale_closed")])
def test_no_pass_unless_open(bus_stack, play, phase, reason):
    ticket = seal(bus_stack)
    assert answered(play, ticket).reason == ""
    play.set(phase=getattr(play.proto.common, f"SALE_PHASE_{phase}"))
    eventually(lambda: play.ask_pass(ticket, b"ann").reason == reason, 2, f"{reason} while {phase.lower()}")


def test_a_board_older_than_three_seconds_admits_nobody(bus_stack, play):
    ticket = seal(bus_stack)
    assert answered(play, ticket).reason == ""
    silent = time.monotonic()
    eventually(lambda: play.ask_pass(ticket, b"ann").reason == "try_again", 6, "the old board does not count any more")
    assert time.monotonic() - silent > 2


def test_the_pace_names_what_sets_it(bus_stack, play):
    def said(pace_milli, limiting, seconds=5):
        eventually(lambda: play.pace() and (play.pace().pace_milli, play.pace().limiting) == (pace_milli, limiting), seconds,
                   f"pace {pace_milli} by {limiting}")
    said(1000000, "unknown")  # nobody tells a load
    play.set(operator_milli=2500000)
    said(2500000, "operator")
    play.set(operator_milli=1)
    said(1000, "operator")
    play.set(phase=play.proto.common.SALE_PHASE_PAUSED)
    said(0, "state", 1)
    play.set(phase=play.proto.common.SALE_PHASE_OPEN, operator_milli=0)
    said(1000000, "unknown")
    play.gate = False
    said(0, "stock")
    assert play.pace().term == 1


def test_a_standby_takes_the_pace_over(bus_stack, play):
    def set_by_a_daemon():
        pace = play.pace()
        return pace and pace.pace_milli > 0 and pace.instance != "admission-played" and pace
    before = eventually(set_by_a_daemon, 10, "the first one sets the pace")
    first = before.instance
    bus_stack.start_daemon("admission", "admission-2")
    paces = len(play.paces)
    eventually(lambda: len(play.paces) > paces + 12, 6, "three seconds of paces")
    assert {pace.instance for _, pace in play.paces[paces:]} == {first}
    bus_stack.kill("admission")
    died = time.monotonic()
    eventually(lambda: play.pace().instance != first and play.pace().pace_milli > 0, 5, "the second one sets it")
    assert time.monotonic() - died < 3.5 and play.pace().term == before.term + 1


def test_load_is_exported_as_metrics(bus_stack, play):
    load = play.proto.common.Load(sale=play.sale, daemon="reserve", instance="reserve-played", p99_us=4200, requests=10, errors=2,
                                  in_flight=7)

    def exported():
        play.bus.publish(f"load.{play.sale}.reserve", load.SerializeToString())
        text = bus_stack.admin("admission", "/metrics")[1]
        return 'tidegate_load_p99_seconds{daemon="reserve"} 0.0042' in text and \
            'tidegate_load_in_flight{daemon="reserve"} 7' in text and 'tidegate_load_errors_total{daemon="reserve"}' in text
    eventually(exported, 5, "the load shows in the metrics")


def test_bytes_that_are_no_message_do_no_harm(bus_stack, play):
    ticket = seal(bus_stack)
    assert answered(play, ticket).reason == ""
    for subject in (f"admission.{play.sale}.pass", f"admission.{play.sale}.pace", f"load.{play.sale}.ledger", f"gate.{play.sale}.stock"):
        for body in (b"", b"\xff" * 50, b"\x0a\xff\xff\xff\xff\x0f", b"\x08" * 15360):
            play.bus.publish(subject, body)
    assert answered(play, ticket).reason == ""
    assert bus_stack.alive("admission")
