# SPDX-License-Identifier: Apache-2.0
"""The guarantees of catalog/guarantees.yaml: whether what they name exists, and whether it passed in a run of the tests."""
import glob
import os
import re

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TABLE = "catalog/guarantees.yaml"
PARTS = ("promise", "mechanism", "shown", "limit")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as handle:
        return handle.read()


def table():
    """id -> {"promise", "mechanism": [(path, name)], "shown": [(kind, name)], "limit"}."""
    guarantees = yaml.safe_load(read(TABLE))
    for row in guarantees.values():
        for part in ("mechanism", "shown"):
            row[part] = [tuple(entry.split(": ", 1)) for entry in row.get(part, [])]
    return guarantees


def file_of(kind, name):
    """Where a test is, as a path from the root; None when the kind has no such test."""
    if kind == "flow" and "::" in name:
        file, function = name.split("::")
        return find(f"tests/flow/{file}", rf"^def {re.escape(function)}\(")
    if kind == "unit" and "::" in name:
        program, test = name.split("::")
        return next((path for folder in ("unit", "prop")
                     if (path := find(f"tests/{folder}/{program}.c", rf"\bcmocka_unit_test\w*\({re.escape(test)}\b"))), None)
    if kind == "model":
        return find(f"tests/model/{name}.pml", "PROPERTY")
    if kind == "sim":
        return "tests/sim/README.md" if name == "schedules" else find("tests/sim/mutants.def", rf', "{re.escape(name)}", ')
    return find(f"tests/fuzz/fuzz_{name}.c", "LLVMFuzzerTestOneInput") if kind == "fuzz" else None


def find(path, pattern):
    exists = os.path.isfile(os.path.join(ROOT, path))
    return path if exists and re.search(pattern, read(path), re.M) else None


def faults():
    """What the table says that is not so: one line each."""
    for identity, row in table().items():
        missing = [part for part in PARTS if not row.get(part)]
        if missing or set(row) - set(PARTS):
            yield f"{TABLE}: {identity}: expected {', '.join(PARTS)}; without: {', '.join(missing) or 'nothing'}"
        for path, name in row["mechanism"]:
            if not os.path.isfile(os.path.join(ROOT, path)) or not re.search(rf"\b{re.escape(name)}\b", read(path)):
                yield f"{TABLE}: {identity}: {path} has no {name}"
        for kind, name in row["shown"]:
            if not file_of(kind, name):
                yield f"{TABLE}: {identity}: there is no test {kind}: {name}"


def unshown(results, kinds):
    """Tests named by a guarantee that did not run or did not pass, of these kinds. `results`: kind -> name -> passed."""
    for identity, row in table().items():
        for kind, name in row["shown"]:
            if kind in kinds and not results.get(kind, {}).get(name, False):
                state = "failed" if name in results.get(kind, {}) else "did not run"
                yield f"{identity} is not shown: {kind}: {name} {state}"
