#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""embed.py SYMBOL FILE OUT.c: the bytes of FILE as a NUL-terminated C array and its length."""
import os
import sys

symbol, source, out = sys.argv[1:]
with open(source, "rb") as handle:
    data = handle.read()
os.makedirs(os.path.dirname(out), exist_ok=True)
rows = [", ".join(f"0x{byte:02x}" for byte in data[i:i + 20]) for i in range(0, len(data), 20)]
with open(out, "w", encoding="ascii") as handle:
    handle.write("#include <stddef.h>\n")
    handle.write(f"extern const char {symbol}[];\nextern const size_t {symbol}_length;\n")
    handle.write(f"const char {symbol}[] = {{\n" + ",\n".join(rows) + (",\n" if rows else "") + "0x00};\n")
    handle.write(f"const size_t {symbol}_length = {len(data)};\n")
