# SPDX-License-Identifier: Apache-2.0
"""An island: a network namespace with one cable to the rest, over which a daemon reaches NATS, Redis and PostgreSQL. A cut takes the
cable's far end down: what is sent vanishes, and neither side hears that a connection ended."""
import os
import re
import selectors
import shutil
import socket
import subprocess
import threading

READ_BYTES = 65536


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else f"`{' '.join(command)}`: {done.stderr.strip()}"


def forbidden():
    """Why this machine has no islands; "" when it has."""
    if not shutil.which("ip"):
        return "no `ip` (package iproute2)"
    name = f"tg-probe-{os.getpid()}"
    why = run("ip", "netns", "add", name) or run("ip", "netns", "exec", name, "true")
    run("ip", "netns", "del", name)
    return f"network namespaces are not permitted here: {why}" if why else ""


class Relay(threading.Thread):
    """Hands bytes on between a port on the cable's near end and a server that listens on loopback or on a unix socket."""

    def __init__(self, address, family, server):
        super().__init__(daemon=True)
        self.family, self.server = family, server
        self.door = socket.create_server((address, 0))
        self.port = self.door.getsockname()[1]
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.door, selectors.EVENT_READ, None)
        self.pairs = []

    def run(self):
        while True:
            for key, _ in self.selector.select(1):
                if key.fileobj is self.door:
                    self.meet()
                else:
                    self.hand_on(key.fileobj, key.data)
            if self.door.fileno() < 0:
                return

    def meet(self):
        try:
            near = self.door.accept()[0]
        except OSError:
            return
        far = socket.socket(self.family)
        try:
            far.connect(self.server)
        except OSError:
            near.close()
            far.close()
            return
        for one, other in ((near, far), (far, near)):
            one.settimeout(0.5)
            self.selector.register(one, selectors.EVENT_READ, other)

    def hand_on(self, one, other):
        try:
            data = one.recv(READ_BYTES)
            if data:
                other.sendall(data)
                return
        except OSError:
            pass
        for end in (one, other):
            try:
                self.selector.unregister(end)
            except (KeyError, ValueError):
                continue
            end.close()

    def stop(self):
        self.selector.unregister(self.door)
        self.door.close()


class Island:
    """One network namespace for one daemon of a stack. Use as a context."""

    def __init__(self, stack):
        number = os.getpid() % 250
        self.stack, self.name = stack, f"tg-{os.getpid()}"
        self.near, self.far = f"10.213.{number}.1", f"10.213.{number}.2"
        self.relays, self.moved = {}, None

    def __enter__(self):
        near, far = f"{self.name}n", f"{self.name}f"
        faults = [fault for fault in (
            run("ip", "netns", "add", self.name),
            run("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", self.name),
            run("ip", "addr", "add", f"{self.near}/30", "dev", near), run("ip", "link", "set", near, "up"),
            run("ip", "-n", self.name, "addr", "add", f"{self.far}/30", "dev", far),
            run("ip", "-n", self.name, "link", "set", "lo", "up"), run("ip", "-n", self.name, "link", "set", far, "up")) if fault]
        if faults:
            self.__exit__(None, None, None)
            raise OSError(f"no island: {'; '.join(faults)}")
        sockets = re.search(r"host=(\S+)", self.stack.env["TIDEGATE_POSTGRES_URL"]).group(1)
        for server, family, address in (("nats", socket.AF_INET, ("127.0.0.1", int(self.stack.env["TIDEGATE_NATS_PORT"]))),
                                        ("redis", socket.AF_INET, ("127.0.0.1", int(self.stack.env["TIDEGATE_REDIS_PORT"]))),
                                        ("postgres", socket.AF_UNIX, f"{sockets}/.s.PGSQL.5432")):
            self.relays[server] = Relay(self.near, family, address)
            self.relays[server].start()
        return self

    def __exit__(self, kind, value, trace):
        if self.moved:
            self.stack.kill(self.moved)
        for relay in self.relays.values():
            relay.stop()
        run("ip", "link", "del", f"{self.name}n")
        run("ip", "netns", "del", self.name)

    def files(self, daemon):
        """The daemon's stores as they are seen from the island."""
        found = self.stack.addresses_of(daemon, f"{self.near}:{self.relays['redis'].port}",
                                        f"host={self.near} port={self.relays['postgres'].port} dbname=tidegate")
        named = {}
        for variable, address in found.items():
            named[f"{variable}_FILE"] = f"{self.stack.run}/keys/{variable.lower()}-{self.name}"
            self.stack.write_secret(named[f"{variable}_FILE"], address)
        return named

    def move(self, daemon):
        """Starts a daemon again, on the island."""
        self.stack.kill(daemon)
        self.stack.env[f"TIDEGATE_{daemon.upper()}_ADMIN_HOST"] = self.far
        self.stack.start_daemon(daemon, through=("ip", "netns", "exec", self.name), env={
            "TIDEGATE_NATS_URL": f"nats://{self.near}:{self.relays['nats'].port}", **self.files(daemon)})
        self.moved = daemon

    def cut(self):
        run("ip", "-n", self.name, "link", "set", f"{self.name}f", "down")

    def heal(self):
        run("ip", "-n", self.name, "link", "set", f"{self.name}f", "up")
