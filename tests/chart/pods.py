#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The workloads of the chart as pods of podman, one of each, without a cluster: what the dev scenario renders is started as it stands, hardening
included, every daemon becomes ready by its own --healthcheck, and the chart's test plays its sale. Needs build/release."""
import os
import subprocess
import sys
import tempfile
import time

import run as chart
import yaml

sys.path.insert(0, os.path.join(chart.ROOT, "tools", "image"))
import apart  # noqa: E402  (needs the path above)
import images  # noqa: E402

NETWORK = "tidegate"
IMAGE = "localhost/tidegate:pods"
READY_S = 120
# What podman knows nothing of, or means otherwise.
FOREIGN = ("topologySpreadConstraints", "enableServiceLinks", "automountServiceAccountToken", "imagePullSecrets")


def make_image():
    """The programs of build/release as deploy/image/Dockerfile collects them, without building them anew."""
    programs = [f"{chart.ROOT}/build/release/bin/{name}" for name in (*(f"tidegate-{daemon}" for daemon in chart.OWN_SECRETS), "tidegatectl", "rehearse")]
    with tempfile.TemporaryDirectory(dir=images.STORE) as folder:
        images.run(f"{chart.ROOT}/deploy/image/collect.sh", f"{folder}/tree", *programs)
        images.run("tar", "-C", f"{folder}/tree", "--owner=0", "--group=0", "-cf", f"{folder}/root.tar", ".")
        images.podman("import", "--change", "ENV PATH=/usr/bin", "--change", "USER 65532:65532", f"{folder}/root.tar", IMAGE)


def prepare():
    os.makedirs(images.STORE, exist_ok=True)
    make_image()
    images.make_pause(f"localhost/podman-pause:{images.podman('version', '--format', '{{.Client.Version}}').strip()}-0")
    for value, store in images.chart_stores().items():
        images.make_store(value, store)


def rendered():
    repository, _, tag = IMAGE.rpartition(":")
    once = [option for daemon in chart.OWN_SECRETS for option in ("--set", f"services.{daemon}.replicas=1")]
    done = chart.helm("helm4", "template", "sale", chart.CHART, "-f", f"{chart.ROOT}/tests/k8s/values.yaml", "--set", f"image.repository={repository}",
                      "--set-string", f"image.tag={tag}", *once)
    if done.returncode:
        raise images.ImageError(done.stderr)
    return [made for made in yaml.safe_load_all(done.stdout) if made]


def playable(name, metadata, spec, keys):
    """A pod as podman takes it: keys from a folder, names of volumes made its own, probes asked for by us."""
    for field in FOREIGN:
        spec.pop(field, None)
    for volume in spec.get("volumes", []):
        if "secret" in volume:
            folder = f"{keys}-{name}"
            os.makedirs(folder, exist_ok=True)
            for item in volume.pop("secret")["items"]:
                with open(f"{keys}/{item['key']}", "rb") as source, open(f"{folder}/{item['path']}", "wb") as target:
                    target.write(source.read())
            subprocess.run(["chown", "-R", "65532:65532", folder], check=True)
            volume["hostPath"] = {"path": folder, "type": "Directory"}
    for container in (*spec.get("initContainers", []), *spec["containers"]):
        container.pop("livenessProbe", None)
        container.pop("readinessProbe", None)
        container.pop("ports", None)  # would be published on the machine
        for variable in container.get("env", []):
            if "valueFrom" in variable:
                variable.pop("valueFrom")
                variable["value"] = name
        for mount in container.get("volumeMounts", []):
            mount["name"] = f"{name}-{mount['name']}"
    for volume in spec.get("volumes", []):
        volume["name"] = f"{name}-{volume['name']}"
    spec["restartPolicy"] = "OnFailure"
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": metadata.get("labels", {})}, "spec": spec}


class Pods:
    """Inside the namespaces: podman whose network and running state end with them."""

    def __init__(self, folder):
        self.folder = folder
        # Images are read where they are kept; containers, networks and locks are its own.
        self.own = ("--root", f"{folder}/root", "--runroot", f"{folder}/run", "--tmpdir", f"{folder}/tmp", "--network-config-dir", f"{folder}/networks",
                    "--storage-driver", "overlay", "--storage-opt", f"additionalimagestore={images.STORE}/root", "--log-level", "error")

    def podman(self, *arguments, check=True):
        env = {**os.environ, "CONTAINERS_CONF": f"{images.HERE}/containers.conf", "DISABLE_HC_SYSTEMD": "true"}
        done = subprocess.run(["podman", *self.own, *arguments], env=env,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, errors="replace")
        if check and done.returncode:
            raise images.ImageError(f"podman {' '.join(arguments[:4])}: {done.stdout[-3000:]}")
        return done

    def play(self, pod, configs, aliases):
        path = f"{self.folder}/{pod['metadata']['name']}.yaml"
        with open(path, "w", encoding="utf-8") as handle:
            yaml.safe_dump_all([*configs, pod], handle)
        network = NETWORK + ":" * bool(aliases) + ",".join(f"alias={alias}" for alias in aliases)
        # An init container that fails is tried again by Kubernetes; by podman it is not.
        self.wait(f"{pod['metadata']['name']} starts", lambda: not self.podman("kube", "play", "--replace", "--network", network, path, check=False).returncode)

    def wait(self, what, condition):
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            if condition():
                return
            time.sleep(0.5)
        raise images.ImageError(f"{what}: not so after {READY_S} s\n{self.podman('ps', '-a', check=False).stdout}")


def inside(folder):
    apart.settle(folder)
    pods = Pods(folder)
    pods.podman("network", "create", NETWORK)
    objects = rendered()
    configs = [made for made in objects if made["kind"] == "ConfigMap"]
    services = [made for made in objects if made["kind"] == "Service"]
    keys = f"{folder}/keys"
    images.run(f"{chart.ROOT}/build/release/bin/tidegatectl", "keys", "new", keys)
    with open(f"{keys}/nats-accounts.conf", "w", encoding="ascii") as accounts:
        accounts.write(images.run(f"{chart.ROOT}/build/release/bin/tidegatectl", "keys", "nats", keys))
    daemons, test = [], None
    # Stores first: they have no command of ours.
    for name, metadata, spec in sorted(chart.pods(objects), key=lambda made: "command" in made[2]["containers"][0]):
        pod = playable(name, metadata, spec, keys)
        if "helm.sh/hook" in metadata.get("annotations", {}):
            test = pod
            continue
        labels = pod["metadata"]["labels"]
        pods.play(pod, configs, [made["metadata"]["name"] for made in services if made["spec"]["selector"].items() <= labels.items()])
        daemons += [(name, container) for container in spec["containers"] if "command" in container]
    for name, container in daemons:
        pods.wait(f"{name} is ready", lambda c=container, n=name: pods.podman("exec", f"{n}-{c['name']}", c["command"][0], "--healthcheck",
                                                                                  check=False).returncode == 0)
        print(f"ok   pod {name} is ready", flush=True)
    test["spec"]["restartPolicy"] = "Never"
    pods.play(test, configs, [])
    container = f"{test['metadata']['name']}-{test['spec']['containers'][0]['name']}"
    code = pods.podman("wait", container).stdout.strip()
    if code != "0":
        raise images.ImageError(f"the chart's test ended with {code}:\n{pods.podman('logs', container, check=False).stdout[-3000:]}")
    print("ok   the chart's test: a sale, passed by the referee", flush=True)
    return len(daemons) + 1


def main():
    if sys.argv[1:2] == ["--inside"]:
        try:
            print(f"{inside(sys.argv[2])} passed, 0 failed")
            return 0
        except images.ImageError as fault:
            print(f"FAIL {fault}\n0 passed, 1 failed")
            return 1
    try:
        apart.check()
        chart.install()
        prepare()
        with tempfile.TemporaryDirectory(dir=images.STORE) as folder:
            return apart.run([sys.executable, os.path.abspath(__file__), "--inside", folder], "libpod_parent")
    except (apart.Unavailable, FileNotFoundError) as fault:
        print(f"pods: cannot run here: {fault}", file=sys.stderr)
        return os.EX_UNAVAILABLE


if __name__ == "__main__":
    sys.exit(main())
