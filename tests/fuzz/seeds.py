#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the hand-made seeds of the corpora (corpus/NAME/seed-*): one well-formed input per way through a parser, so that a
fuzzer begins behind the first check. Inputs of another name were found by fuzzers and are kept as regression tests."""
import base64
import glob
import hashlib
import hmac
import json
import os
import struct

HERE = os.path.dirname(os.path.abspath(__file__))
ID = "0123456789ABCDEFGHJKMNPQRS"
RESERVATION = "res_" + ID
PLACE, DIGEST, USER, SALE = b"p" * 16, b"d" * 16, b"buyer", "sale"
RECORD = b"cHBwcHBwcHBwcHBwcHBwcA 29411764 1764583800000 ZGRkZGRkZGRkZGRkZGRkZA 0:1,2;1:7 0,1,2 buyer"
ENDED = b"cHBwcHBwcHBwcHBwcHBwcA 29411764 1764583800000 ZGRkZGRkZGRkZGRkZGRkZA - - buyer"


def varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def message(**fields):
    """f1=..., f2=...: integers as varints, text and bytes by length, lists repeated."""
    out = b""
    for name, value in fields.items():
        for one in value if isinstance(value, list) else [value]:
            number = int(name[1:])
            if isinstance(one, int):
                out += varint(number << 3) + varint(one)
            else:
                data = one.encode() if isinstance(one, str) else one
                out += varint(number << 3 | 2) + varint(len(data)) + data
    return out


def unit(item, number):
    return message(f1=item, f2=number)


UNITS = [unit(0, 1), unit(0, 2), unit(1, 7)]
ITEM = message(f1="ticket", f2=10000, f3=4900, f4="EUR")
DEFINITION = message(f1=SALE, f3=[ITEM], f4=1764583200000, f5="fifo", f6=2, f7=600000, f8=30000, f9=60000, f10=2, f11=1000000,
                     f12=10000, f13=5000000, f14=1000, f15=3000, f17=1)
BOARD = message(f1=SALE, f2=1, f3=4, f4="queue-a", f5=9, f6=2, f7="fifo", f8=1764583200000, f9=1764583200100, f10=100, f11=0,
                f12=0, f14=1000000, f15=50, f16=900, f17=10, f18=2)
STOCK = message(f1=SALE, f2=1, f3=1, f5=1764583203000, f6=1764583200000, f7=[message(f1=0, f2=100, f3=90, f4=6, f5=4)])
PACE = message(f1=SALE, f2=3, f3="admission-a", f4=1000000, f5="start")
LAPSED = message(f1=RESERVATION, f2=USER, f3=PLACE, f4=29411764, f5=DIGEST)
ENTRY = message(f1=6, f2="hold", f3=RESERVATION, f4=UNITS, f5=90, f6=1764583200000, f7="reserve-a")
CHECK = message(f1=1764583200000, f2="clean", f3="", f4=90, f5=6, f6=4, f7=0, f8=0, f9=100, f10=12)


def kinds(*bodies):
    """First byte: the kind of message."""
    return {f"{index:02}": bytes([index]) + body for index, body in enumerate(bodies)}


def framed(count, *parts):
    """A sequence of messages: kind, length, body."""
    out = b""
    for kind, body in parts:
        size = len(body).to_bytes(2, "big") if count > 256 else bytes([len(body)])
        out += bytes([kind]) + size + body
    return out


def resp(value):
    if isinstance(value, list):
        return b"*%d\r\n" % len(value) + b"".join(map(resp, value))
    if isinstance(value, int):
        return b":%d\r\n" % value
    return b"$%d\r\n" % len(value) + value + b"\r\n"


def words(*texts):
    return b"".join(bytes([len(text)]) + text for text in texts)


def look(items):
    head = [b"look", b"1764583200000", b"3", b"r" * 40, b"s" * 40, b"1", b"1764583203000", b"2", b"17", b"0", b"0", b"0", b"0",
            b"", b"0", b"0", b"%d" % items]
    return head + [b"100", b"90", b"6", b"4", b"90", b"0"] * items + [ID.encode()]


def http():
    seeds = {}
    plan = bytes(range(7, 47))
    wanted = ("absolute-form", "bare-cr-value", "chunked-and-length", "chunked", "close-ends-it", "get-query", "http-1-0",
              "obs-fold-space", "pipelined-chunked", "space-before-colon", "two-lengths-same", "odd-spelling-of-length")
    for name in wanted:
        with open(f"{HERE}/../corpus/http/{name}.http", "rb") as handle:
            raw = handle.read().split(b"\n", 1)[1]
        seeds[name] = b"\0" + bytes([len(plan)]) + plan + raw
    seeds["large-and-late"] = (b"\0" + bytes([len(plan)]) + plan + b"GET /L HTTP/1.1\r\nHost: a\r\n\r\n" * 3 +
                               b"GET /N HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\nGET / HTTP/1.1\r\n")
    for line in range(16):  # the lines of put_header, undamaged, before either framing
        for chunked in (0, 1):
            seeds[f"framing-{line:02}-{chunked}"] = bytes([1, 0, 0, 2, chunked, 0, 1, line, 0, 200, 0])
    seeds["hidden-length"] = bytes([1, 2]) + b"ab" + bytes([0, 0, 0]) + bytes([3]) + b"abc" + bytes([1, 11]) + b"X-Test: abc" + plan
    seeds["hidden-chunks"] = bytes([1, 0, 0, 2, 1, 0, 2, 17]) + b"Content-Length: 5\r" + plan * 2
    return seeds


def solutions():
    """Challenges signed with the harness's key, with and without an answer, as JSON and as base64."""
    key, nonce, salt = bytes([7]) + bytes(31), bytes(range(16)), bytes(range(16, 32))

    def field(data):
        return struct.pack("<Q", len(data)) + data
    scope = b"".join(map(field, (b"tidegate challenge scope", b"demo", struct.pack("<Q", 3), b"ticket", struct.pack("<Q", 2), nonce,
                                 struct.pack("<Q", 0))))
    bound = hashlib.blake2b(scope, key=key).hexdigest()[:32]
    parameters = json.dumps({"algorithm": "PBKDF2/SHA-256", "cost": 2, "data": {"bound": bound, "patientAt": 1791916400},
                             "expiresAt": 1791916800, "keyLength": 32, "keyPrefix": "0", "nonce": nonce.hex(), "salt": salt.hex()},
                            separators=(",", ":"))
    signature = hmac.new(key.hex().encode(), parameters.encode(), "sha256").hexdigest()
    derived = (hashlib.pbkdf2_hmac("sha256", nonce + struct.pack(">I", at), salt, 2).hex() for at in range(1000))
    counter, found = next((at, text) for at, text in enumerate(derived) if text.startswith("0"))
    challenge = f'{{"challenge":{{"parameters":{parameters},"signature":"{signature}"}}'
    worked = f'{challenge},"solution":{{"counter":{counter},"derivedKey":"{found}","time":1.5}}}}'.encode()
    return {"worked": b"\0" + worked, "waited": b"\0" + challenge.encode() + b"}", "base64": b"\1" + base64.b64encode(worked)}


def seeds():
    text = lambda value: bytes([len(value)]) + value.encode() + b"\xff" * 8
    yaml = f"sale: {SALE}\nitems:\n  - sku: ticket\n    units: 10000\n    price: 4900\n    currency: EUR\nopensAt: 2026-12-01T10:00:00Z\n"
    full = (yaml + "policy: {order: fifo, beacon: none}\nlimits: {perBuyer: 2, holdFor: 10m, grace: 30s, extendBy: 1m, extensions: 2}\n"
            "pace: {start: 1000/s, max: 5000/s, min: 10/s}\nproof: {everyMs: 1000, leaseFor: 3s}\nshow: {remaining: bucketed}\n")
    yield "text", {"integer": text("18446744073709551615"), "negative": text("-9223372036854775808"), "duration": text("250ms"),
                   "time": text("2026-12-01T10:00:00.123+01:00"), "base64url": text("cHBwcHBwcHBwcHBwcHBwcA"),
                   "id": text(RESERVATION), "hex": text("00ff10ab"), "utf8": text("\u00e9\u20ac\U0001f3ab")}
    yield "ticket", {"opaque": b"\0" + b"AQc" + b"A" * 120,
                     "sealed": b"\1\0" + bytes(24) + b"\4sale" + bytes(7) + b"\1" + b"\1\5buyer" + bytes(16) + b"\0\0",
                     "visitor": b"\1\1" + bytes(24) + b"\4sale" + bytes(8) + b"\2\x10" + bytes(16) + bytes(16) + b"\1\2",
                     "changed": b"\2\0\x10\1\2abcd\1\0\x20A"}
    yield "pass", {"opaque": b"\0" + b"eyJhbGciOiJFZERTQSIsInR5cCI6InRnLXBhc3Mrand0Iiwia2lkIjoiMDEyMzQ1NjcifQ.e30." + b"A" * 86,
                   "own": b"\1\0\0\1\0\0\0\x41\0a",
                   "free": b'\1\0\0\1\1{"iss":"tidegate","aud":"sale","sub":"a\\"b","iat":0,"exp":120,"jti":"',
                   "changed": b"\2" + bytes(range(64))}
    yield "jwt", {"opaque": b"\0eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhIiwiZXhwIjoxfQ." + b"A" * 43,
                  "shared": b'\1\0\0{"sub":"buyer","exp":1800000100,"nbf":1799999999,"iat":1}',
                  "public": b'\1\1\1{"sub":"\\u00e9","exp":1800000100}',
                  "head": b'\1\0\5\x1d{"alg":"HS256","typ":"jwt"} {}{"sub":"a","exp":1800000100.0}',
                  "changed": b"\2\0\xff\xff\5buyer\0\x20\1A", "confused": b"\3\0\1\1"}
    yield "hold_record", {"held": RECORD, "ended": ENDED, "spaces": RECORD + b" with spaces", "split": RECORD.replace(b"1:7", b"0:7")}
    yield "settings", {"none": b"", "some": b"nats://127.0.0.1:4222\0info\0edge-a\0::1\x009100\x005s\x0010s\0both\0" + b"127.0.0.1\0",
                       "bad": b"\x01\0\x1b[2J\0\xff\xfe\0\0-1\x005\x0011h\0", "long": b"x" * 1090 + b"\0" + b"y" * 1025}
    yield "control", {"pauses": bytes([4, 0, 0, 1, 0, 0, 0, 20, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1, 1, 2, 0, 3, 1]),
                      "lifts": bytes([0, 2, 0, 1, 0, 2, 1, 1, 2, 1, 3, 0, 2, 1, 4, 2, 0, 1, 0, 0, 0, 0, 30, 0]),
                      "generations": bytes([0, 1, 0, 1, 2, 0, 0, 0, 3, 1, 2, 1, 2, 0, 4, 1, 1, 1, 0, 0, 0, 0, 9, 9]),
                      "definition": bytes([7, 0, 200]) + message(f2=1) + DEFINITION,
                      "wild": bytes([6, 0, 60]) + message(f1=SALE, f2=1, f3=2, f4=1, f9=[message(f1=ID, f2="why")], f10=[ID], f11=DIGEST)}
    yield "bus_body", {"board": b"\3" + BOARD, "stock": b"\x08" + STOCK, "sales": b"\x27" + message(f1=[DEFINITION, DEFINITION], f3=1),
                       "command": b"\x2c" + message(f1=ID, f2=SALE, f4=1, f7=DEFINITION, f8=[ID, ID]),
                       "entries": b"\x1f" + message(f1=SALE, f2=1, f4="invariant-a", f5=CHECK, f6=[ENTRY, ENTRY])}
    yield "http", http()
    yield "demand", {"empty": b"\0", "one": b'\0{"items":[{"sku":"a","quantity":2}]}',
                     "three": b'\1{"items":[{"sku":"c-3","quantity":1},{"quantity":2,"sku":"a"},{"sku":"a","quantity":1}]}',
                     "unknown": b'\1{"items":[],"\xc3\xa9tag":1}', "payment": b'\2{"paymentId":"pay_1","amount":9800,"currency":"EUR"}'}
    yield "solution", solutions()
    yield "edge_wire", kinds(BOARD, STOCK, message(f2=1, f3=1, f4=100, f5=64),
                             message(f2="aaaa.bbbb.cccc", f3=1764583200000, f4=100),
                             message(f2=RESERVATION, f3=1764583800000, f4=UNITS, f5=1),
                             message(f2=RESERVATION, f3=SALE, f4=2, f5=1764583800000, f6=UNITS, f7="ord_1", f8="pay_1"))
    yield "queue_wire", {"lease": framed(1, (0, message(f1=SALE, f2="edge-a", f3=64)), (0, message(f1=SALE, f2="edge-b", f3=4096))),
                         "presence": framed(1, (1, message(f1=SALE, f2="edge-a", f3=1, f4=500, f5=100, f6=3, f7=50, f10=9))) + b"\5\x0f",
                         "peer": framed(1, (2, BOARD)) + b"\5\x0f" + framed(1, (0, message(f1=SALE, f2="edge-a", f3=10))),
                         "pace": framed(1, (3, PACE), (4, STOCK)) + b"\5\x0e"}
    yield "admission_wire", {"ask": framed(999, (0, message(f1=SALE, f2="A" * 64, f3=USER)), (1, BOARD), (3, STOCK),
                                           (0, message(f1=SALE, f2="AQc" + "A" * 200, f3=USER))),
                             "peer": framed(999, (2, PACE), (1, BOARD))}
    yield "reserve_wire", kinds(
        message(f1=SALE, f2=1, f3=USER, f4=PLACE, f5=29411764, f6="j" * 32, f7=1764705960000, f8="key-1", f9=DIGEST,
                f10=[message(f1=0, f2=2), message(f1=1, f2=1, f3=[2])]),
        message(f1=1, f3=1, f4=1764583800000, f5=UNITS, f6=1), message(f2=RESERVATION, f4=2, f5=1764583800000, f6=UNITS),
        message(f1=RESERVATION, f2=1, f3=USER, f4=PLACE, f5=29411764, f6=DIGEST, f7=1764583800000, f8=UNITS, f9=[0, 1, 2]),
        message(f1=RESERVATION, f2=3, f3=1764583860000))
    yield "gate_answer", {"held": bytes([0, 2, 0, 0, 1]) + words(b"held", RECORD), "replay": bytes([0, 2, 1, 0, 1]) + words(b"replay", b"held", RECORD),
                          "sold_out": bytes([0, 2, 0, 0, 0]) + words(b"sold_out", b"0", b"0"),
                          "limit": bytes([0, 2, 0, 0, 0]) + words(b"limit", RESERVATION.encode()),
                          "unknown": bytes([193, 2, 0, 0, 0]) + words(b"held", RECORD), "look": bytes([0, 2, 0, 0, 0]) + words(*look(1)),
                          "error": b"\xff\0OOM command not allowed", "info": b"\xff\0# R\r\nrole:master\r\nmaster_replid:aaaaaaaa\r\n"}
    yield "gate_reply", {"look": b"\1" + resp([b"look", b"1764583200000", b"1", b"3", b"r" * 40, b"s" * 40, b"1", b"17", b"1", b"100", b"90", b"6", b"4", b"90"]),
                         "none": b"\0" + resp([b"none", b"1764583200000"]), "wrong": b"\0-WRONGTYPE Operation against a key\r\n",
                         "info": b"\0" + resp(b"run_id:" + b"r" * 40 + b"\r\nrole:master\r\nmaster_replid:" + b"s" * 40 + b"\r\nmaxmemory_policy:noeviction\r\n"),
                         "scan": b"\0" + resp([RESERVATION.encode(), RECORD, RESERVATION.encode(), ENDED, b"other", b"\0"]),
                         "log": b"\0" + resp([b"17-0", [b"kind", b"hold", b"reservation", RESERVATION.encode(), b"units", b"0:1,2;1:7",
                                                        b"stock_after", b"90", b"at_ms", b"1764583200000", b"source", b"reserve-a"]]),
                         "units": b"\0" + resp(b"0:1,2;1:7")}
    yield "ledger_wire", kinds(
        message(f1=SALE, f2=1, f3=1, f4=RESERVATION, f5=USER, f6=PLACE, f7=29411764, f8=DIGEST, f9=UNITS, f10=[0, 1, 2]),
        message(f1=SALE, f2=1, f3=1, f4=[RESERVATION, "res_"], f5=[LAPSED]),
        message(f1=SALE, f2=1, f3=[message(f1=RESERVATION, f2=1, f3=1), message(f1=RESERVATION, f2=2, f3=2)]),
        message(f1=SALE, f2=100, f3=RESERVATION), message(f1=SALE, f2=1, f3=RESERVATION, f4=25),
        message(f1=SALE, f2=1, f3="r" * 40, f4="s" * 40), message(f1=SALE, f2=1, f4="invariant-a", f5=CHECK, f6=[ENTRY]),
        message(f1=RESERVATION, f2=USER), message(f1=RESERVATION, f2="credential", f3="pay_1", f4=9800, f5="EUR"),
        message(f1=RESERVATION, f2="credential"), message(f1=RESERVATION, f2=USER),
        message(f1=ID, f2=SALE, f3=1, f4=1, f5=1764583230000, f6=4, f7=DEFINITION, f8=[ID], f10="why"))
    yield "sweeper_wire", kinds(message(f2=1, f3=1, f4=[RESERVATION, "no"], f5=[message(f1=RESERVATION, f2=2)]),
                                message(f2=1, f3=[message(f1=RESERVATION, f2=3)]), message(f2=1, f3=[message(f1=RESERVATION, f2=2, f3=1)]),
                                message(f2=3), message(f2=1, f3=1, f4=[LAPSED]))
    yield "sale_file", {"short": yaml.encode(), "full": full.encode(), "twice": (yaml + "sale: other\n").encode(),
                        "two": (yaml + "---\n" + yaml).encode(), "alias": b"items: &a [*a]\nsale: &b {*b : *b}\n",
                        "unknown": (yaml + "price: 1\n\"\\e[2J\": x\n").encode()}


def main():
    for name, files in seeds():
        folder = f"{HERE}/corpus/{name}"
        os.makedirs(folder, exist_ok=True)
        for old in glob.glob(f"{folder}/seed-*"):
            os.unlink(old)
        for label, data in files.items():
            with open(f"{folder}/seed-{label}", "wb") as handle:
                handle.write(data)


if __name__ == "__main__":
    main()
