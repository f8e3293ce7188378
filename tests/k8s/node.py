#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A Kubernetes of one node, inside namespaces of its own (network, mounts, processes: see run.py): whatever it starts, mounts or
writes into the kernel's tables is gone with the first process of those namespaces, however that ends."""
import contextlib
import http.client
import json
import os
import secrets
import ssl
import subprocess
import threading
import time

ADDRESS = "10.250.0.1"
PODS = "10.244.0.0/24"
SERVICES = "10.96.0.0/16"
API_PORT = 6443
READY_S = 180
DNS_POLL_S = 1
PAUSE_IMAGE = "localhost/tidegate-pause:1"


class NodeError(Exception):
    """What did not start, and what its log says."""


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        raise NodeError(f"{' '.join(command)}: exit {done.returncode}\n{done.stdout[-2000:]}")
    return done.stdout


class Node:
    """The cluster's processes; `folder` is empty, absolute and on a disk, `programs` has what build.sh built."""

    def __init__(self, programs, folder):
        self.programs, self.folder = programs, folder
        self.kubeconfig = f"{folder}/kubeconfig"
        self.token = secrets.token_hex(16)
        self.processes = {}
        self.failed = None

    def write(self, name, text):
        path = f"{self.folder}/{name}"
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as handle:
            handle.write(text if isinstance(text, str) else json.dumps(text))  # JSON is YAML
        return path

    def spawn(self, name, *command):
        with open(f"{self.folder}/{name}.log", "ab") as log:
            self.processes[name] = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def tail(self, name):
        with open(f"{self.folder}/{name}.log", encoding="utf-8", errors="replace") as handle:
            return "".join(handle.readlines()[-15:])

    def wait(self, what, condition):
        deadline = time.monotonic() + READY_S
        while time.monotonic() < deadline:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise NodeError(f"{name} ended with {process.returncode}:\n{self.tail(name)}")
            if condition():
                return
            time.sleep(0.2)
        raise NodeError(f"{what}: not so after {READY_S} s; logs are in {self.folder}")

    # -- the API ---------------------------------------------------------------------------------------------------

    def api(self, path):
        """(status, document) of one GET; (0, None) when nobody answers."""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # its own certificate, on its own address
        connection = http.client.HTTPSConnection(ADDRESS, API_PORT, timeout=5, context=context)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {self.token}"})
            answer = connection.getresponse()
            text = answer.read()
            return answer.status, json.loads(text) if text[:1] == b"{" else None
        except (OSError, http.client.HTTPException, ValueError):
            return 0, None
        finally:
            connection.close()

    def node_ready(self):
        _, nodes = self.api("/api/v1/nodes")
        return any(condition["type"] == "Ready" and condition["status"] == "True"
                   for node in (nodes or {}).get("items", []) for condition in node["status"].get("conditions", []))

    # -- parts -----------------------------------------------------------------------------------------------------

    def start(self):
        run("ip", "link", "add", "node", "type", "bridge")
        run("ip", "address", "add", f"{ADDRESS}/24", "dev", "node")
        run("ip", "link", "set", "node", "up")
        run("ip", "route", "add", "default", "dev", "node")
        self.start_containers()
        self.start_control_plane()
        self.start_kubelet()
        self.start_names()
        self.wait("the node is ready", self.node_ready)

    def start_containers(self):
        self.write("cni/10-pods.conflist", {"cniVersion": "0.4.0", "name": "pods", "plugins": [
            {"type": "ptp", "ipMasq": False, "ipam": {"type": "host-local", "dataDir": f"{self.folder}/addresses",
                                                       "ranges": [[{"subnet": PODS}]], "routes": [{"dst": "0.0.0.0/0"}]}}]})
        config = self.write("containerd.toml", f"""version = 2
root = "{self.folder}/containerd"
state = "/run/tidegate-containerd"
[grpc]
  address = "/run/tidegate-containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE_IMAGE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{self.folder}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
""")
        self.spawn("containerd", "containerd", "--config", config)
        self.wait("containerd answers", lambda: os.path.exists("/run/tidegate-containerd.sock"))

    def start_control_plane(self):
        self.spawn("etcd", "etcd", "--data-dir", "/run/etcd", "--listen-client-urls", "http://127.0.0.1:2379", "--advertise-client-urls",
                   "http://127.0.0.1:2379", "--listen-peer-urls", "http://127.0.0.1:2380")
        run("openssl", "genrsa", "-out", f"{self.folder}/accounts.key", "2048")
        self.write("tokens.csv", f'{self.token},admin,1,"system:masters"\n')
        self.write("kubeconfig", {
            "apiVersion": "v1", "kind": "Config", "current-context": "node",
            "clusters": [{"name": "node", "cluster": {"server": f"https://{ADDRESS}:{API_PORT}", "insecure-skip-tls-verify": True}}],
            "users": [{"name": "admin", "user": {"token": self.token}}],
            "contexts": [{"name": "node", "context": {"cluster": "node", "user": "admin"}}]})
        os.chmod(self.kubeconfig, 0o600)
        key = f"{self.folder}/accounts.key"
        self.spawn("apiserver", f"{self.programs}/kube-apiserver", "--etcd-servers=http://127.0.0.1:2379", f"--bind-address={ADDRESS}",
                   f"--advertise-address={ADDRESS}", f"--secure-port={API_PORT}", f"--cert-dir={self.folder}/api",
                   f"--service-account-key-file={key}", f"--service-account-signing-key-file={key}",
                   "--service-account-issuer=https://node", "--api-audiences=https://node", f"--token-auth-file={self.folder}/tokens.csv",
                   "--authorization-mode=RBAC", f"--service-cluster-ip-range={SERVICES}", "--kubelet-preferred-address-types=InternalIP")
        self.wait("the API server is ready", lambda: self.api("/readyz")[0] == 200)
        self.spawn("controllers", f"{self.programs}/kube-controller-manager", f"--kubeconfig={self.kubeconfig}",
                   f"--service-account-private-key-file={key}", f"--root-ca-file={self.folder}/api/apiserver.crt", "--leader-elect=false",
                   f"--cert-dir={self.folder}/controllers")
        self.spawn("scheduler", f"{self.programs}/kube-scheduler", f"--kubeconfig={self.kubeconfig}", "--leader-elect=false",
                   f"--cert-dir={self.folder}/scheduler")

    def start_kubelet(self):
        config = self.write("kubelet.yaml", {
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "address": ADDRESS, "readOnlyPort": 0,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}}, "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs", "cgroupsPerQOS": False, "enforceNodeAllocatable": [], "failSwapOn": False,
            "clusterDomain": "cluster.local", "clusterDNS": [ADDRESS], "resolvConf": self.write("resolv.conf", ""),
            "evictionHard": {"memory.available": "100Mi"}, "imageGCHighThresholdPercent": 100, "makeIPTablesUtilChains": True})
        self.spawn("kubelet", f"{self.programs}/kubelet", f"--config={config}", f"--kubeconfig={self.kubeconfig}",
                   "--container-runtime=remote", "--container-runtime-endpoint=unix:///run/tidegate-containerd.sock",
                   "--hostname-override=node", f"--node-ip={ADDRESS}", f"--root-dir={self.folder}/kubelet",
                   f"--cert-dir={self.folder}/kubelet/pki")
        self.spawn("proxy", f"{self.programs}/kube-proxy", f"--kubeconfig={self.kubeconfig}", "--proxy-mode=iptables",
                   f"--cluster-cidr={PODS}", "--hostname-override=node", "--conntrack-max-per-core=0",
                   "--conntrack-tcp-timeout-established=0", "--conntrack-tcp-timeout-close-wait=0")

    def start_names(self):
        """Names of Services, for pods: a file of addresses that follows the API."""
        hosts = self.write("hosts", "")
        self.spawn("names", "dnsmasq", "--keep-in-foreground", "--no-hosts", f"--addn-hosts={hosts}", f"--listen-address={ADDRESS}",
                   "--bind-interfaces", "--no-resolv", "--local=/cluster.local/", "--cache-size=0", "--user=root", "--pid-file=")
        threading.Thread(target=self.follow_services, daemon=True).start()

    def follow_services(self):
        told = ""
        while True:
            _, services = self.api("/api/v1/services")
            text = "".join(sorted(f"{item['spec']['clusterIP']} {item['metadata']['name']}.{item['metadata']['namespace']}.svc.cluster.local\n"
                                  for item in (services or {}).get("items", []))) if services else told
            if text != told:
                self.write("hosts", text)
                self.processes["names"].send_signal(1)  # SIGHUP: reads it again
                told = text
            time.sleep(DNS_POLL_S)

    def load(self, archive):
        run("ctr", "-a", "/run/tidegate-containerd.sock", "-n", "k8s.io", "images", "import", archive)

    def stop(self):
        """In order, so that nothing is written after its folder is gone; what is left ends with the namespaces."""
        for process in reversed(self.processes.values()):
            process.terminate()
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
