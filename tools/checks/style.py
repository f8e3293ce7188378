#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that read sources and binaries. Each check is a generator of faults, one line each; none means it holds."""
import glob
import os
import re
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SERVICES = ("edge", "queue", "admission", "reserve", "ledger", "sweeper", "invariant")
SOURCE_ENDINGS = (".c", ".h", ".def", ".py", ".sh", ".lua", ".sql", ".cmake", ".proto", ".js", ".css", ".html")


def tracked(*endings):
    """The tracked files with one of these endings, as paths from the root."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    return [path for path in listed if path.endswith(endings) and os.path.exists(os.path.join(ROOT, path))]


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as handle:
        return handle.read()


def rows(definition, macro):
    """The argument texts of every row of a catalogue file."""
    return re.findall(rf"^{macro}\((.*)\)$", read(f"catalog/{definition}.def"), re.M)


def strings(path):
    """(line number, literal) of every string literal of a C file, comments left out."""
    text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), read(path), flags=re.S)
    for number, line in enumerate(text.split("\n"), 1):
        if not line.lstrip().startswith("#include"):
            for literal in re.findall(r'"((?:[^"\\]|\\.)*)"', line):
                yield number, literal


def spdx():
    """Every source file names its licence in its first three lines."""
    for path in tracked(*SOURCE_ENDINGS):
        if "SPDX-License-Identifier: Apache-2.0" not in "\n".join(read(path).split("\n")[:3]):
            yield f"{path}: no SPDX line"


def layering():
    """core.* and lib/pure include lib/pure only; services never include each other; lib/io never includes a service."""
    for path in tracked(".c", ".h"):
        for include in re.findall(r'^#include [<"]([^>"]+)[>"]', read(path), re.M):
            service = re.match(r"services/([a-z]+)/", path)
            other = re.match(r"services/([a-z]+)/", include)
            if other and not path.startswith("tests/") and (not service or service.group(1) != other.group(1)):
                yield f"{path}: includes {include}: services never include each other, and nothing includes a service"
            pure = path.startswith("lib/pure/") or re.search(r"services/[a-z]+/core[a-z_]*\.[ch]$", path)
            if pure and re.match(r"(lib/io/|uv\.h|nats|hiredis|libpq|tidegate/v1/|jansson|unistd|sys/|time\.h|pthread|stdio\.h)", include) \
                    and not (include == "stdio.h" and path.endswith(".c")):
                yield f"{path}: includes {include}: the pure part does no I/O"


PURE_ALLOWED = re.compile(
    r"^(tg_|inet_pton$|__popcountdi2$|crypto_|sodium_|randombytes_NOTHING|mem|str|bsearch$|qsort$|snprintf$|__snprintf_chk$|__vsnprintf_chk$|vsnprintf$|__assert_fail$|__stack_chk|"
    r"__mem|__str|_GLOBAL_OFFSET_TABLE_|abort$|__ubsan|__asan|__sprintf|[a-z]+_core_)")


def purity(build="build/release"):
    """nm: what the pure parts call is memory, strings, crypto and themselves. No clock, no heap, no system call."""
    objects = glob.glob(f"{ROOT}/{build}/lib/CMakeFiles/tidegate_pure.dir/pure/*.o")
    for service in SERVICES:
        objects += glob.glob(f"{ROOT}/{build}/services/{service}/CMakeFiles/tidegate_{service}.dir/core*.o")
    if len(objects) < len(SERVICES):
        yield f"{build}: only {len(objects)} pure objects found: build first"
    forbidden = re.compile(r"^(str(dup|ndup)|randombytes)")
    for path in objects:
        listed = subprocess.run(["nm", "-u", path], capture_output=True, text=True, check=True).stdout
        own = re.match(r".*/services/([a-z]+)/", path)
        for name in (line.split()[-1].split("@")[0] for line in listed.splitlines()):
            if own and name.startswith(f"{own.group(1)}_"):
                continue
            if not PURE_ALLOWED.match(name) or forbidden.match(name):
                yield f"{os.path.relpath(path, ROOT)}: calls {name}"


STORES = {"libhiredis": {"reserve", "invariant"}, "libpq": {"ledger", "invariant"}}


def stores(build="build/release"):
    """readelf: only reserve and invariant link Redis's client, only ledger and invariant PostgreSQL's."""
    for service in SERVICES:
        binary = f"{ROOT}/{build}/bin/tidegate-{service}"
        if not os.path.exists(binary):
            yield f"tidegate-{service} is not built"
            continue
        needed = subprocess.run(["readelf", "-d", binary], capture_output=True, text=True, check=True).stdout
        for library, allowed in STORES.items():
            linked = f"[{library}." in needed
            if linked != (service in allowed):
                yield f"tidegate-{service}: {'links' if linked else 'does not link'} {library}"


BANNED = {
    r"\b(strcpy|strcat|sprintf|vsprintf|atoi|atol|atof|strtok|rand|srand|alloca|gets|signal)\s*\(": "banned call",
    r"\bnats(Connection_(Request|Flush|RequestString)|Subscription_NextMsg\([^;]*, [1-9])": "waits on the loop",
    r"\bjs_[A-Z]": "waits on the loop",
    r"\b(sleep|usleep|nanosleep)\s*\(": "sleeps",
}


def banned_calls():
    """Calls that overflow, wait or depend on hidden state."""
    for path in tracked(".c", ".h"):
        text = re.sub(r"/\*.*?\*/", lambda m: re.sub(r"[^\n]", " ", m.group()), read(path), flags=re.S)
        for number, line in enumerate(text.split("\n"), 1):
            bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)
            for pattern, why in BANNED.items():
                if re.search(pattern, bare) and not (path.startswith("tests/") and why.startswith("waits")):
                    yield f"{path}:{number}: {why}: {line.strip()[:80]}"


PHASES = {"sold_out"}  # a phase's word and a reason's code at once


def catalogue():
    """Subjects, metrics, keys and reasons are spelled in catalog/ and nowhere else in C."""
    subjects = {row.split('"')[1] for row in rows("messages", "TG_MESSAGE")}
    metrics = {row.split('"')[1] for row in rows("metrics", "TG_METRIC")}
    reasons = {code for code in (row.split('"')[1] for row in rows("reasons", "TG_REASON")) if "_" in code}
    for path in tracked(".c", ".h"):
        if path.startswith(("tests/", "bench/")):
            continue
        for number, literal in strings(path):
            if literal in subjects or (literal.startswith("tidegate.v1.") and path != "lib/io/bus.h"):
                yield f"{path}:{number}: spells the subject {literal}"
            if literal in metrics or literal.removeprefix("tidegate_") in metrics:
                yield f"{path}:{number}: spells the metric {literal}"
            if literal in reasons - PHASES:
                yield f"{path}:{number}: spells the reason {literal}"
            if literal.startswith("tg:{") and path != "services/reserve/keys.c" and not path.startswith("lib/"):
                yield f"{path}:{number}: spells a gate key {literal}"
    for definition, macro in (("messages", "TG_MESSAGE"), ("metrics", "TG_METRIC"), ("reasons", "TG_REASON"), ("limits", "TG_LIMIT"), ("keys", "TG_KEY")):
        names = [row.split(",")[0] for row in rows(definition, macro)]
        for name in {name for name in names if names.count(name) > 1}:
            yield f"catalog/{definition}.def: {name} twice"
    for row in rows("metrics", "TG_METRIC"):
        name, kind = row.split('"')[1], row.split(",")[2].strip()
        if (kind == "COUNTER") != name.endswith("_total"):
            yield f"catalog/metrics.def: {name}: counters, and only they, end in _total"


def places():
    """No path of the machine this was written on, no leftovers."""
    for path in tracked(*SOURCE_ENDINGS, ".md", ".yaml", ".json", ".txt"):
        for number, line in enumerate(read(path).split("\n"), 1):
            if re.search(r"\b(TODO|FIXME|XXX)\b", line) and not path.startswith("tools/checks/"):
                yield f"{path}:{number}: unfinished: {line.strip()[:80]}"
            if re.search(r"(^|[^a-z])/(work|home|root)/[a-z]", line) and not path.startswith("tools/checks/"):
                yield f"{path}:{number}: a path of some machine: {line.strip()[:80]}"


def daemon_shape():
    """Every daemon has the one shape."""
    for service in SERVICES:
        for name in ("main.c", "core.c", "core.h", "wire.c", "wire.h", "settings.def", "README.md"):
            if not os.path.exists(f"{ROOT}/services/{service}/{name}"):
                yield f"services/{service}: no {name}"
        main = f"services/{service}/main.c"
        if os.path.exists(f"{ROOT}/{main}") and read(main).count("\n") > 150:
            yield f"{main}: over 150 lines: wiring only"


def long_functions():
    """No function over 70 lines (5-parameter and nesting limits are clang-tidy's)."""
    for path in tracked(".c"):
        start = None
        for number, line in enumerate(read(path).split("\n"), 1):
            if line == "{":
                start = number
            elif line == "}" and start:
                if number - start - 1 > 70:
                    yield f"{path}:{start}: function of {number - start - 1} lines"
                start = None
            elif line.startswith("}"):
                start = None


def documents():
    """What docs/ and READMEs name in backticks exists: functions as `name()`, SQL as `tidegate.name`, files by their path. Links lead
    to files, and decisions are numbered one after another."""
    decisions = sorted(path for path in tracked(".md") if re.match(r"docs/decisions/\d", path))
    for number, path in enumerate(decisions, 1):
        if not path.startswith(f"docs/decisions/{number:04}-") or f"\n# {number}. " not in read(path):
            yield f"{path}: is not decision {number} by its name or its heading"
    code = "\n".join(read(path) for path in tracked(".c", ".h"))
    statements = "\n".join(read(path) for path in tracked(".sql"))
    tops = {path.split("/")[0] for path in tracked("")}
    for path in tracked(".md"):
        for name in re.findall(r"`([a-z_0-9]+)\(\)`", read(path)):
            if not re.search(rf"\b{name}\(", code):
                yield f"{path}: there is no function {name}()"
        for name in re.findall(r"`(tidegate\.(?!conf`)[a-z_]+)`", read(path)):
            if not re.search(rf"(FUNCTION|TABLE|TYPE|SCHEMA) {name}\b", statements):
                yield f"{path}: there is no {name} in the SQL"
        for name in re.findall(r"`([a-z][A-Za-z0-9_.-]*/[A-Za-z0-9_./-]+)`", read(path)):
            places = (os.path.join(ROOT, name), os.path.join(ROOT, os.path.dirname(path), name))
            if name.split("/")[0] in tops and not re.search("NAME|NNNN", name) and not any(glob.glob(f"{place}*") for place in places):
                yield f"{path}: there is no {name}"
        for link in re.findall(r"\]\((?![a-z]+:)([^)#\s]+)", read(path)):
            if not os.path.exists(os.path.join(ROOT, os.path.dirname(path), link)):
                yield f"{path}: there is no {link}"


def measured():
    """Every number in bold on the first page was measured: it stands in bench/RESULTS.md."""
    results = read("bench/RESULTS.md").replace(",", "")
    numbers = re.findall(r"\*\*([\d,.]+)\*\*", read("README.md"))
    for number in numbers:
        if not re.search(rf"(?<![\d.]){re.escape(number.replace(',', ''))}(\.0)?(?![\d.])", results):
            yield f"README.md: {number} is not in bench/RESULTS.md"
    if not numbers:
        yield "README.md: says nothing that was measured"


DEFINED = {".py": r"^(?:    )?def {}\(", ".c": r"^(static void|TEST) {}\(", ".def": r'"{}"'}


def cases():
    """Every case of tests/cases.md names a test, every test named there exists, and every test of a case has its case there."""
    told = set(re.findall(r"\*\*case-(\d+)\*\*", read("tests/cases.md")))
    for path in tracked(".c", ".py"):
        for name, number in re.findall(r"^(?:def|static void) (\w*case_(\d+)\w*)\(", read(path), re.M) if path.startswith("tests/") else ():
            if number not in told:
                yield f"tests/cases.md: {name} is of a case that is not there"
    for entry in re.split(r"^- ", read("tests/cases.md"), flags=re.M)[1:]:
        named = re.findall(r"`([^`:]+)::(\w+)`", entry)
        if not named:
            yield f"tests/cases.md: no test for {entry.splitlines()[0]}"
        for path, name in named:
            pattern = DEFINED.get(os.path.splitext(path)[1])
            if not pattern or not os.path.exists(f"{ROOT}/tests/{path}") or not re.search(pattern.format(name), read(f"tests/{path}"), re.M):
                yield f"tests/cases.md: there is no {path}::{name}"


def failpoints():
    """Every failpoint of the catalogue stands at exactly one place of the daemon its name begins with, and no other is used."""
    known = {row.split(",")[0]: row.split('"')[1].split(".")[0] for row in rows("failpoints", "TG_POINT")}
    used = [(name, path) for path in tracked(".c") if path.startswith(("lib/", "services/"))
            for name in re.findall(r"TG_FAILPOINT\(([A-Z_]+)\)", read(path))]
    for name, path in used:
        if name not in known or not path.startswith(f"services/{known[name]}/"):
            yield f"{path}: the failpoint {name} is not one of this daemon's in catalog/failpoints.def"
    for name in known:
        if [one for one, _ in used].count(name) != 1:
            yield f"catalog/failpoints.def: {name} is used {[one for one, _ in used].count(name)} times, not once"


def no_failpoints(build="build/release"):
    """Nothing of the failpoints is in what is released: no symbol, no name, no word of them."""
    binaries = [f"tidegate-{service}" for service in SERVICES] + ["tidegatectl", "rehearse"]
    for path in (f"{ROOT}/{build}/bin/{name}" for name in binaries):
        if not os.path.exists(path):
            yield f"{os.path.basename(path)} is not built"
            continue
        with open(path, "rb") as handle:
            if b"failpoint" in handle.read().lower():
                yield f"{os.path.relpath(path, ROOT)}: knows failpoints"


def all_failpoints(build="build/chaos"):
    """The inverse, so that the check above cannot pass for want of the right word: a build for the kill matrix has them."""
    for service in SERVICES:
        listed = subprocess.run(["nm", f"{ROOT}/{build}/bin/tidegate-{service}"], capture_output=True, text=True, check=False).stdout
        if " T tg_failpoint_hit" not in listed:
            yield f"{build}/bin/tidegate-{service}: has no failpoint"


CHECKS = (spdx, documents, measured, cases, places, layering, daemon_shape, long_functions, banned_calls, catalogue, failpoints)
BINARY_CHECKS = (purity, stores, no_failpoints)
