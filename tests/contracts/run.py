#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What others rely on, held to its own form without a stack: proto files, OpenAPI, AsyncAPI, alerts, dashboard. See README.md."""
import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
ALERTS = os.path.join(ROOT, "deploy/k8s/tidegate/files/alerts.yaml")
DASHBOARD = os.path.join(ROOT, "deploy/k8s/tidegate/files/sale-dashboard.json")
BUF = os.path.join(ROOT, "build/npm/node_modules/.bin/buf")
# What Prometheus and Kubernetes put on every series beside the catalogue's label.
LABELS = {"le", "pod", "instance", "job"}


def command(*arguments):
    """What a checker printed, when it found something; else nothing."""
    done = subprocess.run(arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, timeout=120)
    if done.returncode:
        yield f"{os.path.basename(arguments[0])} {' '.join(arguments[1:3])}: {done.stdout.strip()}"


def last_release():
    tags = subprocess.run(["git", "tag", "--list", "v*", "--sort=-version:refname"], cwd=ROOT, capture_output=True, text=True, check=True)
    return (tags.stdout.split() or [None])[0]


def proto_breaking():
    """Nothing that the last release knew has gone; before the first release, that a field which goes is noticed."""
    release = last_release()
    if release:
        yield from command(BUF, "breaking", "proto", "--against", f".git#tag={release},subdir=proto")
        return
    print("     no release yet: proto files have nothing to keep; the check itself is tried on a copy that loses a field")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(os.path.join(ROOT, "proto"), f"{folder}/proto")
        path = f"{folder}/proto/tidegate/v1/control.proto"
        with open(path, encoding="utf-8") as handle:
            text = handle.read()
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(re.sub(r"^  string cause = 10;.*\n", "", text, flags=re.M))
        if not list(command(BUF, "breaking", f"{folder}/proto", "--against", "proto")):
            yield "buf breaking: a field was removed and nobody noticed"


def catalogue():
    """metric as it is exported -> its label."""
    with open(f"{ROOT}/catalog/metrics.def", encoding="utf-8") as handle:
        rows = re.findall(r'^TG_METRIC\(\w+, "(\w+)", (\w+), "(\w*)"', handle.read(), re.M)
    found = {}
    for name, kind, label in rows:
        for suffix in ("_bucket", "_sum", "_count") if kind == "HISTOGRAM" else ("",):
            found[f"tidegate_{name}{suffix}"] = label
    return found


def expression_faults(where, expression, known):
    """Metrics and labels that the catalogue does not have. Labels of others' series are not judged: there are none."""
    metrics = re.findall(r"\btidegate_\w+", expression)
    for metric in metrics:
        if metric not in known:
            yield f"{where}: {metric} is not in catalog/metrics.def"
    allowed = LABELS | {known.get(metric) for metric in metrics}
    named = re.findall(r'(\w+) *(?:=~|!~|!=|=)(?!=) *"', expression)
    named += [label for group in re.findall(r"\b(?:by|on|without|ignoring) *\(([^)]*)\)", expression) for label in re.findall(r"\w+", group)]
    for label in set(named) - allowed:
        yield f"{where}: no metric of {expression} has a label {label}"
    if not metrics:
        yield f"{where}: {expression} reads nothing of ours"


def rules():
    with open(ALERTS, encoding="utf-8") as handle:
        return [rule for group in yaml.safe_load(handle)["groups"] for rule in group["rules"]]


def alerts():
    """promtool takes the rules, each is tried, reads what exists, and has a page."""
    yield from command("promtool", "check", "rules", ALERTS)
    yield from command("promtool", "check", "config", "deploy/monitoring/prometheus.yml")
    yield from command("promtool", "test", "rules", "deploy/monitoring/alerts.test.yaml")
    with open(f"{ROOT}/deploy/monitoring/alerts.test.yaml", encoding="utf-8") as handle:
        tried = {case["alertname"] for test in yaml.safe_load(handle)["tests"] for case in test["alert_rule_test"] if case.get("exp_alerts")}
    pages = set()
    for rule in rules():
        yield from expression_faults(rule["alert"], rule["expr"], catalogue())
        if rule["alert"] not in tried:
            yield f"{rule['alert']}: deploy/monitoring/alerts.test.yaml never makes it fire"
        page = rule["annotations"].get("runbook", "")
        pages.add(page)
        if not os.path.exists(f"{ROOT}/{page}") or not page.startswith("docs/operations/alerts/"):
            yield f"{rule['alert']}: no page: {page}"
            continue
        with open(f"{ROOT}/{page}", encoding="utf-8") as handle:
            text = handle.read()
        if f"# {rule['alert']}\n" not in text or "## Look" not in text or "## Do" not in text:
            yield f"{page}: expected the title {rule['alert']} and sections Look and Do"
    for page in glob.glob(f"{ROOT}/docs/operations/alerts/*.md"):
        if os.path.relpath(page, ROOT) not in pages:
            yield f"{os.path.relpath(page, ROOT)}: no alert leads here"


def dashboard():
    """Every expression parses, and reads metrics and labels that exist."""
    with open(DASHBOARD, encoding="utf-8") as handle:
        panels = json.load(handle)["panels"]
    recorded = []
    for panel in panels:
        for target in panel.get("targets", []):
            expression = target["expr"].replace("$sale", "demo")
            yield from expression_faults(f"panel {panel['title']}", expression, catalogue())
            recorded.append({"record": f"panel:{len(recorded)}", "expr": expression})
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/dashboard.yaml", "w", encoding="utf-8") as handle:
            json.dump({"groups": [{"name": "dashboard", "rules": recorded}]}, handle)
        yield from command("promtool", "check", "rules", f"{folder}/dashboard.yaml")
    if len(recorded) < 30:
        yield f"only {len(recorded)} expressions found"


def openapi():
    yield from command("node", f"{HERE}/lint.mjs", "openapi", "docs/http.openapi.yaml")


def asyncapi():
    yield from command("node", f"{HERE}/lint.mjs", "asyncapi", "docs/bus.asyncapi.yaml")


def proto_lint():
    yield from command(BUF, "lint", "proto")
    yield from command(BUF, "build", "proto", "-o", os.devnull)


def gateways():
    """The examples that no test runs: Istio's kinds by their schemas, Envoy's provider by what passes say."""
    yield from command("node", f"{HERE}/lint.mjs", "istio", "deploy/gateways/passes/istio.yaml")
    with open(f"{ROOT}/deploy/gateways/passes/envoy.yaml", encoding="utf-8") as handle:
        resources = yaml.safe_load(handle)["static_resources"]
    filters = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]["http_filters"]
    if [one["name"] for one in filters] != ["envoy.filters.http.jwt_authn", "envoy.filters.http.router"]:
        yield "envoy.yaml: expected jwt_authn before the router"
    rules = filters[0]["typed_config"]
    provider = rules["providers"][rules["rules"][0]["requires"]["provider_name"]]
    with open(f"{ROOT}/deploy/gateways/passes/istio.yaml", encoding="utf-8") as handle:
        istio = next(iter(yaml.safe_load_all(handle)))["spec"]["jwtRules"][0]
    with open(f"{ROOT}/lib/pure/pass.c", encoding="utf-8") as handle:
        issuer = re.search(r'\\"iss\\":\\"(\w+)\\"', handle.read()).group(1)
    for name, rule, headers, keys in (("envoy.yaml", provider, provider["from_headers"], provider["remote_jwks"]["http_uri"]["uri"]),
                                      ("istio.yaml", istio, istio["fromHeaders"], istio["jwksUri"])):
        if rule["issuer"] != issuer or len(rule["audiences"]) != 1:
            yield f"{name}: expected the issuer {issuer} and one sale"
        if headers != [{"name": "X-Admission-Token"}] or not keys.endswith("/.well-known/jwks.json"):
            yield f"{name}: passes come in X-Admission-Token, keys from /.well-known/jwks.json"
    clusters = {cluster["name"] for cluster in resources["clusters"]}
    if not {provider["remote_jwks"]["http_uri"]["cluster"], "shop"} <= clusters:
        yield f"envoy.yaml: clusters {clusters} lack one that is used"


def main():
    subprocess.run([f"{ROOT}/tools/npm/setup.sh"], check=True)
    failed = 0
    checks = (proto_lint, proto_breaking, openapi, asyncapi, alerts, dashboard, gateways)
    for check in checks:
        faults = list(check())
        failed += bool(faults)
        print(f"{'FAIL' if faults else 'ok  '} {check.__name__}", flush=True)
        for fault in faults:
            print(f"     {fault}", flush=True)
    print(f"{len(checks) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
