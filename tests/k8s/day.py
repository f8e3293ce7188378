#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the chart has to do on a cluster, whichever it is: installed by Helm 3 and Helm 4, sales, an upgrade and a rollback under load,
killed pods, a drain, a pause, and nothing left behind. Used by tests/k8s/run.py and tests/kind/run.py."""
import copy
import json
import os
import subprocess
import tempfile
import time

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
CHART = os.path.join(ROOT, "deploy", "k8s", "tidegate")
RELEASE = "sale"
CLASSES = ("edge", "queue", "admission", "reserve", "ledger", "sweeper", "invariant")
STEP_S = 420  # longest wait for anything, on a machine that is busy
BUYERS, UNITS = 600, 60
AGAIN_MAX = 0.01  # of all answers, while something is replaced: "try again", which the same key finds out about
SALE = """sale: {name}
items: [{{sku: {name}, units: {units}, price: 4900, currency: EUR}}]
opensAt: 2026-01-01T10:00:00Z
policy: {{order: fifo}}
limits: {{perBuyer: 1, holdFor: 8s, grace: 1s, extendBy: 60s, extensions: 2}}
pace: {{start: {pace}/s, max: 1000/s, min: 1/s}}
proof: {{everyMs: 1000, leaseFor: 3s}}
show: {{remaining: exact}}
"""


class Failure(Exception):
    """What is not as it has to be."""


def need(condition, what):
    if not condition:
        raise Failure(what)


class Day:
    """One cluster. `env` leads kubectl and both Helms to it; `image` is there already."""

    def __init__(self, env, kubectl, helms, image, tidegatectl):
        self.env, self.binary, self.helms, self.image, self.tidegatectl = env, kubectl, helms, image, tidegatectl
        self.space = None
        self.made = 0

    # -- commands --------------------------------------------------------------------------------------------------

    def run(self, *command, check=True, stdin=None):
        done = subprocess.run(command, env=self.env, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                              timeout=STEP_S + 60)
        if check:
            need(not done.returncode, f"{' '.join(os.path.basename(part) for part in command[:8])}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def kubectl(self, *arguments, **options):
        return self.run(self.binary, "-n", self.space, *arguments, **options)

    def get(self, *arguments):
        return json.loads(self.kubectl("get", *arguments, "-o", "json").stdout)

    def helm(self, version, command, *arguments, **options):
        return self.run(self.helms[version], "-n", self.space, command, *arguments, **options)

    def values(self):
        repository, _, tag = self.image.rpartition(":")
        return ("-f", f"{HERE}/values.yaml", "--set", f"image.repository={repository}", "--set-string", f"image.tag={tag}")

    def wait(self, what, condition, seconds=STEP_S):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = condition()
            if found:
                return found
            time.sleep(1)
        raise Failure(f"{what}: not so after {seconds} s")

    # -- pods ------------------------------------------------------------------------------------------------------

    def pods(self, component=None):
        selector = f"app.kubernetes.io/instance={RELEASE}" + (f",app.kubernetes.io/component={component}" if component else "")
        return self.get("pods", "-l", selector)["items"]

    def ready_pods(self, component=None):
        return [pod for pod in self.pods(component) if "deletionTimestamp" not in pod["metadata"]
                and any(condition["type"] == "Ready" and condition["status"] == "True" for condition in pod["status"].get("conditions", []))]

    def all_ready(self):
        return all(made["status"].get("readyReplicas", 0) == made["spec"]["replicas"] == made["status"].get("updatedReplicas", 0)
                   == made["status"]["replicas"] for made in self.get("deployments")["items"])

    def test_objects(self):
        """The chart's own test: what the pods below are made of, hardened and with the addresses of this release."""
        text = self.helm("helm4", "template", RELEASE, CHART, *self.values(), "--show-only", "templates/tests/sale.yaml").stdout
        return {made["kind"]: made for made in yaml.safe_load_all(text) if made}

    def start_pod(self, name, command, sale_text=""):
        """A pod that runs one command of the image with the operator's keys."""
        template = self.test_objects()
        config, pod = template["ConfigMap"], template["Pod"]
        for made in (config, pod):
            made["metadata"] = {"name": name, "labels": {"app": "day"}}
        config["data"]["sale.yaml"] = sale_text
        pod["spec"].pop("initContainers")
        container = pod["spec"]["containers"][0]
        container["command"] = command
        container["volumeMounts"].append({"name": "sale", "mountPath": "/sale", "readOnly": True})
        for volume in pod["spec"]["volumes"]:
            if volume["name"] == "sale":
                volume["configMap"]["name"] = name
        self.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": [config, pod]}))

    def ended(self, name):
        """How the pod's container ended; None: it has not."""
        states = self.get("pod", name)["status"].get("containerStatuses", [])
        return states[0]["state"].get("terminated") if states else None

    def finish_pod(self, name):
        """(exit code, its message, its output) of a pod, once it has ended."""
        state = self.wait(f"{name} ends", lambda: self.ended(name))
        logs = self.kubectl("logs", name).stdout
        self.kubectl("delete", "pod,configmap", name, "--wait=false")
        return state["exitCode"], state.get("message", ""), logs

    def ctl(self, *arguments, sale_text="", codes=(0,)):
        """One command of the operator, from inside the cluster."""
        self.made += 1
        name = f"operator-{self.made}"
        self.start_pod(name, ["/usr/bin/tidegatectl", *arguments], sale_text)
        code, _, logs = self.finish_pod(name)
        need(code in codes, f"tidegatectl {' '.join(arguments)}: exit {code}\n{logs}")
        return logs

    # -- sales -----------------------------------------------------------------------------------------------------

    def declare(self, name, units=UNITS, pace=100):
        self.ctl("sale", "apply", "-f", "/sale/sale.yaml", sale_text=SALE.format(name=name, units=units, pace=pace))
        self.ctl("pace", name, f"{pace}/s")  # whatever the purchase path could take

    def play(self, name, *options, buyers=BUYERS, units=UNITS):
        """Buyers by the hundred, through the Service of the edges; the report comes back as the pod's message."""
        self.start_pod(f"play-{name}", ["/usr/bin/rehearse", "--sale", name, "--buyers", str(buyers), "--units", str(units), "--arrive-s", "5",
                                        "--connections", "60", "--limit-s", "400", "--out", "/dev/termination-log", *options])

    def verdict(self, name, units=UNITS, again=0):
        """The referee's report, after what has to be so in every one: nothing lost, nothing contradictory, sold out exactly."""
        code, message, logs = self.finish_pod(f"play-{name}")
        try:
            report = json.loads(message)
        except ValueError:
            raise Failure(f"rehearse left no report: exit {code}\n{logs[-3000:]}") from None
        told = {key: report[key] for key in ("verdict", "confirmed", "oversold", "lostHolds", "wrongAnswers", "unsold", "stillHeld", "http5xx")}
        exact = {"oversold": 0, "lostHolds": 0, "wrongAnswers": 0, "unsold": 0, "stillHeld": 0, "confirmed": units}
        need(all(report[key] == value for key, value in exact.items()), f"not sold out exactly: {told} {report['failures']}")
        need(code == 0 and report["verdict"] == "pass", f"the referee says {report['failures']}: {told}\n{logs[-2000:]}")
        need(report["http5xx"] <= report["client"]["answers"] * again, f"too many answers to try again: {told} {report['http5xxByRequest']}")
        return f"{report['confirmed']} of {units} sold, 0 lost, 0 contradictory, {report['http5xx']} to try again of {report['client']['answers']} answers"

    def board(self, name):
        """The board as the Service of the edges gives it, through the API server."""
        path = f"/api/v1/namespaces/{self.space}/services/{RELEASE}-edge:8080/proxy/sale/{name}/board"
        done = self.run(self.binary, "get", "--raw", path, check=False)
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def sold_some(self, name, units):
        self.wait(f"units of {name} are sold", lambda: 0 < self.board(name).get("remaining", 0) < units)

    # -- steps -----------------------------------------------------------------------------------------------------

    def install(self, version, space):
        self.space = space
        self.run(self.binary, "create", "namespace", space)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([self.tidegatectl, "keys", "new", f"{folder}/keys"], check=True, stdout=subprocess.DEVNULL)
            with open(f"{folder}/keys/nats-accounts.conf", "wb") as accounts:
                subprocess.run([self.tidegatectl, "keys", "nats", f"{folder}/keys"], check=True, stdout=accounts)
            self.kubectl("create", "secret", "generic", "tidegate-keys", f"--from-file={folder}/keys")
        self.helm(version, "install", RELEASE, CHART, *self.values(), "--wait", "--timeout", f"{STEP_S}s")
        self.wait("everything is ready", self.all_ready)
        return f"{len(self.pods())} pods ready"

    def helm_test(self, version):
        self.helm(version, "test", RELEASE, "--timeout", f"{STEP_S}s")

    def uninstall(self, version):
        self.helm(version, "uninstall", RELEASE, "--wait", "--timeout", f"{STEP_S}s")
        kinds = "deployments,replicasets,pods,services,configmaps,jobs,poddisruptionbudgets,secrets"

        def left():
            return [made["kind"] + " " + made["metadata"]["name"] for made in self.get(kinds, "-l", f"app.kubernetes.io/instance={RELEASE}")["items"]
                    if not any(key.startswith("helm.sh/hook") for key in made["metadata"].get("annotations", {}))]
        self.wait("nothing of the release is left", lambda: not left())
        need("tidegate-keys" in [made["metadata"]["name"] for made in self.get("secrets")["items"]], "the keys are gone: they are not the chart's")
        self.run(self.binary, "delete", "namespace", self.space, "--wait=false")

    def plain_sale(self):
        self.declare("plain")
        self.play("plain")
        return self.verdict("plain")

    def under_load(self, name, change):
        """A slow sale begins, the change is made from its first unit on, the rest is sold fast; the change must end while it runs."""
        units = 400
        self.declare(name, units, pace=2)
        self.play(name, "--faults", buyers=800, units=units)
        self.sold_some(name, units)
        change()
        need(self.ended(f"play-{name}") is None and self.board(name).get("remaining", 0) > 0,
             f"{name} was sold out before the change was made: nothing is shown")
        self.ctl("pace", name, "200/s")
        return self.verdict(name, units, AGAIN_MAX)

    def roll(self, command, *arguments):
        before = {pod["metadata"]["uid"] for name in CLASSES for pod in self.pods(name)}
        keys = self.get("secret", "tidegate-keys")["metadata"]["resourceVersion"]
        self.helm("helm4", command, RELEASE, *arguments, "--wait", "--timeout", f"{STEP_S}s")
        self.wait("every deployment is up to date", self.all_ready)
        after = {pod["metadata"]["uid"] for name in CLASSES for pod in self.ready_pods(name)}
        need(after and not after & before, "some pods were not replaced")
        need(self.get("secret", "tidegate-keys")["metadata"]["resourceVersion"] == keys, "the keys were changed")

    def upgrade(self):
        return self.under_load("upgrade", lambda: self.roll("upgrade", CHART, *self.values(), "--set-string", "defaults.podAnnotations.day=2"))

    def rollback(self):
        return self.under_load("rollback", lambda: self.roll("rollback", "1"))

    def kill(self):
        def change():
            for name in (*CLASSES, "nats"):
                victim = self.ready_pods(name)[0]["metadata"]["name"]
                self.kubectl("delete", "pod", victim, "--grace-period=0", "--force", "--wait=false")
                self.wait(f"{name} is back", lambda victim=victim: self.all_ready() and victim not in str(self.pods()))
        return self.under_load("kills", change)

    def drain(self):
        """A node is drained while no other can take its pods: the budgets leave one of each class, and sales go on."""
        def change():
            node = self.get("nodes")["items"][0]["metadata"]["name"]
            try:
                self.kubectl("drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=20s",
                             "--pod-selector", f"app.kubernetes.io/component in ({','.join(CLASSES)})", check=False)
                counts = {name: len(self.ready_pods(name)) for name in CLASSES}
                need(all(count == 1 for count in counts.values()), f"a drain leaves one of each class, not {counts}")
            finally:
                self.kubectl("uncordon", node)
            self.wait("everything is back", self.all_ready)
        return self.under_load("drain", change)

    def pause(self):
        units = 200
        self.declare("pause", units, pace=2)
        self.play("pause", buyers=400, units=units)
        self.sold_some("pause", units)
        self.ctl("sale", "pause", "pause", "--cause", "the price label is wrong")
        need(self.board("pause").get("state") == "paused", f"the board says {self.board('pause')}")
        frozen = self.board("pause")["remaining"]
        time.sleep(5)
        need(self.board("pause")["remaining"] >= frozen, "units were sold while paused")
        self.ctl("sale", "resume", "pause", "--wait", "60s")
        self.wait("the sale is open", lambda: self.board("pause").get("state") == "open")
        self.ctl("pace", "pause", "200/s")
        return self.verdict("pause", units)

    def steps(self):
        """(what, how) in order."""
        return [
            ("Helm 3 installs", lambda: self.install("helm3", "day-three")),
            ("Helm 3 test", lambda: self.helm_test("helm3")),
            ("Helm 3 uninstalls", lambda: self.uninstall("helm3")),
            ("Helm 4 installs", lambda: self.install("helm4", "day-four")),
            ("a sale, sold out exactly", self.plain_sale),
            ("pause and resume by control message", self.pause),
            ("upgrade under load", self.upgrade),
            ("rollback under load", self.rollback),
            ("pods of every class and NATS killed", self.kill),
            ("drain", self.drain),
            ("Helm 4 test", lambda: self.helm_test("helm4")),
            ("Helm 4 uninstalls", lambda: self.uninstall("helm4")),
        ]

    def explain(self):
        """What the cluster looks like, for who has to find out why a step failed."""
        if self.space is None:
            return ""
        text = self.kubectl("get", "pods", "-o", "wide", check=False).stdout
        text += self.kubectl("get", "events", "--sort-by=.lastTimestamp", check=False).stdout[-3000:]
        for pod in copy.copy(self.get("pods")["items"]):
            name = pod["metadata"]["name"]
            if not all(state.get("ready") for state in pod["status"].get("containerStatuses", [{}])):
                text += f"--- {name}\n" + self.kubectl("logs", name, "--all-containers", "--tail=15", check=False).stdout
        return text

    def play_day(self, only=None):
        """Every step in order; the number that passed and failed. What follows a failed step is not tried."""
        passed = 0
        steps = [step for step in self.steps() if not only or step[0] == "Helm 4 installs" or only in step[0]]
        for what, how in steps:
            begun = time.monotonic()
            print(f"...  {what}", flush=True)
            try:
                told = how()
            except (Failure, subprocess.SubprocessError, OSError, KeyError, ValueError) as fault:
                print(f"FAIL {what} {time.monotonic() - begun:.0f} s\n     {fault}\n{self.explain()}", flush=True)
                return passed, 1
            passed += 1
            print(f"ok   {what} {time.monotonic() - begun:.0f} s{': ' + told if told else ''}", flush=True)
        return passed, 0
