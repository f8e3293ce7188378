#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The one-machine stack: private servers and all daemons in one run folder. See README.md beside this file."""
import argparse
import contextlib
import fcntl
import http.client
import os
import pwd
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LOCAL = os.path.join(ROOT, "deploy", "local")
DAEMONS = ("ledger", "reserve", "sweeper", "invariant", "queue", "admission", "edge")
READY_S = 30
# Before a command: it ends when the thread that starts it does, however that ends.
ENDS_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")
CLAIMS = os.path.join(tempfile.gettempdir(), f"tidegate-ports-{os.getuid()}")


class StackError(Exception):
    """Something did not start; the message says what and where to look."""


def alive(pid):
    try:
        os.kill(pid, 0)
    except OSError as fault:
        return isinstance(fault, PermissionError)
    return True


def claim_port(port):
    """False when another living process has been given this port: its server may not listen yet, or be down for a moment."""
    os.makedirs(CLAIMS, exist_ok=True)
    with open(f"{CLAIMS}/lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        path = f"{CLAIMS}/{port}"
        if os.path.exists(path):
            with open(path, encoding="ascii") as handle:
                if alive(int(handle.read())):
                    return False
        with open(path, "w", encoding="ascii") as handle:
            handle.write(str(os.getpid()))
    return True


def free_port(wanted=0):
    """A port nobody listens on: the wanted one if it is free, else one below the range that outgoing connections use, given to
    nobody else while this process lives."""
    for port in [wanted, *random.sample(range(15000, 32000), 200)]:
        with contextlib.closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port and (port == wanted or claim_port(port)):
            return port
    raise StackError("no free port on 127.0.0.1")


def listens(port):
    """Whether somebody takes connections on this port."""
    with contextlib.closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def wait_for(what, condition, seconds=READY_S):
    """Polls a condition until it is true; says what was waited for when it never is."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        result = condition()
        if result:
            return result
        time.sleep(0.02)
    raise StackError(f"{what}: not so after {seconds} s")


def working_folder(pid):
    """Where a process works; None when there is no such process."""
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return None


def newest_postgres():
    """The folder of the newest packaged PostgreSQL server."""
    base = "/usr/lib/postgresql"
    versions = sorted((v for v in os.listdir(base) if os.path.exists(f"{base}/{v}/bin/initdb")), key=float) \
        if os.path.isdir(base) else []
    if not versions:
        raise StackError("PostgreSQL's server is not installed: run tools/dev setup")
    return f"{base}/{versions[-1]}/bin"


def as_postgres(lasting=False):
    """What comes before a command of PostgreSQL's, which refuses to run as root. It ends with the thread that starts it, unless it is to
    last: told to quit, since killed it would leave its shared memory behind, and by setpriv, since a change of user forgets that signal."""
    end = ["--pdeathsig", "clear" if lasting else "QUIT"]
    return ["setpriv", *(["--reuid", "postgres", "--regid", "postgres", "--init-groups"] if os.geteuid() == 0 else []), *end, "--"]


def reachable(path, uid):
    """Whether another user may walk to this folder."""
    while True:
        info = os.stat(path)
        if not (info.st_mode & 0o001 or (info.st_uid == uid and info.st_mode & 0o100)):
            return False
        parent = os.path.dirname(path)
        if parent == path:
            return True
        path = parent


def make_run_folder(path):
    """The run folder, somewhere the user postgres can reach; a link where that is elsewhere."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path):
        return os.path.realpath(path)
    if os.geteuid() == 0 and not reachable(os.path.dirname(path), pwd.getpwnam("postgres").pw_uid):
        folder = tempfile.mkdtemp(prefix="tidegate-run-")
        os.chmod(folder, 0o711)
        os.symlink(folder, path)
        return folder
    os.mkdir(path, 0o711)
    return path


class Stack:
    """Servers and daemons of one run folder. Start in order, stop in reverse; each process by name."""

    postgres_options = ()  # more of postgres -c, as NAME=VALUE
    guarded = True  # False: NATS lets anybody say anything, for tests that play a stranger

    def __init__(self, run=None, build=None, quiet=False, lasting=False):
        """lasting: what is started outlives this process, until `down`; else it ends with it, even by kill -9."""
        self.run = make_run_folder(os.path.abspath(run or os.path.join(ROOT, "run")))
        self.bin = os.path.join(build or os.path.join(ROOT, "build", "release"), "bin")
        self.quiet = quiet
        self.processes = {}
        self.redis_users = {}
        self.env = {"TIDEGATE_RUN": self.run, "TIDEGATE_LOGS": f"{self.run}/log", "TIDEGATE_KEYS": f"{self.run}/keys"}
        self.with_us = [] if lasting else list(ENDS_WITH_US)
        self.as_postgres = as_postgres(lasting)
        for name in ("log", "pids", "nats", "redis", "postgres"):
            os.makedirs(f"{self.run}/{name}", exist_ok=True)

    def say(self, text):
        if not self.quiet:
            print(text, file=sys.stderr, flush=True)

    # -- processes -------------------------------------------------------------------------------------------------

    def spawn(self, name, command, env=None, cwd=None):
        """Starts a process in a group of its own; output goes to log/NAME.log."""
        with open(f"{self.run}/log/{name}.log", "ab") as log:
            given = {**os.environ, **self.env, **(env or {})}
            for variable in env or {}:
                given.pop(f"{variable}_FILE", None)  # said twice is refused
            process = subprocess.Popen([*self.with_us, *command], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                       cwd=cwd or self.run, env=given, start_new_session=True)
        self.processes[name] = process
        with open(f"{self.run}/pids/{name}.pid", "w", encoding="ascii") as handle:
            handle.write(f"{process.pid}\n")
        return process

    def pid(self, name):
        return self.processes[name].pid

    def alive(self, name):
        return name in self.processes and self.processes[name].poll() is None

    def tail(self, name, lines=15):
        try:
            with open(f"{self.run}/log/{name}.log", encoding="utf-8", errors="replace") as handle:
                return "".join(handle.readlines()[-lines:])
        except OSError:
            return ""

    def tell(self, name, how):
        """Signals one process with its group, for servers with children; a frozen one is thawed to hear it."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid(name), signal.SIGCONT)
            os.killpg(self.pid(name), how)

    def reap(self, name):
        """Waits for the end of a process that was told to end."""
        process = self.processes.pop(name)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(15)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(f"{self.run}/pids/{name}.pid")

    def kill(self, name, how=signal.SIGKILL):
        """Ends one process and waits for it."""
        if name in self.processes:
            self.tell(name, how)
            self.reap(name)

    def stop(self):
        """Daemons first, all at once, then the servers; PostgreSQL by fast shutdown."""
        servers = [name for name in ("nats", "redis", "postgres") if name in self.processes]
        daemons = [name for name in self.processes if name not in servers]
        for names in (daemons, servers):
            for name in names:
                self.tell(name, signal.SIGINT if name == "postgres" else signal.SIGTERM)
            for name in names:
                self.reap(name)

    # -- servers ---------------------------------------------------------------------------------------------------

    def start_nats(self):
        port = self.env.setdefault("TIDEGATE_NATS_PORT", str(free_port()))
        self.env["TIDEGATE_NATS_URL"] = f"nats://127.0.0.1:{port}"
        own = f"{self.run}/nats.conf"
        where = ["-c", own] if os.path.exists(own) else ["-c", f"{LOCAL}/nats.conf", "-sd", f"{self.run}/nats"]
        self.spawn("nats", ["nats-server", *where, "-a", "127.0.0.1", "-p", port])
        self.wait_port("nats", int(port))

    def guard_nats(self):
        """From its next start on NATS (which reloads only what is in its file: the store folder is there too) knows every identity by its NKey, allows it what the catalogue says, and nobody else."""
        with open(f"{LOCAL}/nats.conf", encoding="utf-8") as handle:
            common = handle.read().replace("jetstream {", f'jetstream {{\n  store_dir: "{self.run}/nats"', 1)
        with open(f"{self.run}/nats.conf", "w", encoding="utf-8") as handle:
            handle.write(f"{common}include accounts.conf\n")
        with open(f"{self.run}/accounts.conf", "w", encoding="utf-8") as handle:
            handle.write(self.ctl("keys", "nats", f"{self.run}/keys").stdout)
        self.env["TIDEGATE_NATS_KEYS"] = f"{self.run}/keys"

    def start_redis(self):
        port = self.env.setdefault("TIDEGATE_REDIS_PORT", str(free_port()))
        own = f"{self.run}/redis.conf"
        if not os.path.exists(own):
            self.make_redis_users(own)
        self.env["TIDEGATE_REDIS_URL"] = f"redis://admin:{self.redis_users['admin']}@127.0.0.1:{port}"
        self.spawn("redis", ["redis-server", own, "--port", port, "--dir", f"{self.run}/redis"])
        self.wait_port("redis", int(port))

    def make_redis_users(self, path):
        """Redis's configuration with passwords nobody chose."""
        text = ""
        for name in ("redis.conf", "redis-users.conf"):
            with open(f"{LOCAL}/{name}", encoding="utf-8") as handle:
                text += handle.read()
        for user in ("gate", "audit", "admin"):
            self.redis_users[user] = secrets.token_hex(16)
            text = text.replace(f"{user.upper()}_PASSWORD", self.redis_users[user])
        self.write_secret(path, text)

    @staticmethod
    def write_secret(path, text):
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as handle:
            handle.write(text)

    def addresses_of(self, daemon, redis, postgres):
        """Where a daemon finds its stores, and as whom: {variable: address}. `redis` is host:port, `postgres` all but the user."""
        users = {"reserve": {"REDIS": "gate"}, "invariant": {"REDIS": "audit", "POSTGRES": "tidegate_invariant"},
                 "ledger": {"POSTGRES": "tidegate_ledger"}}.get(daemon, {})
        found = {}
        for store, user in users.items():
            variable = f"TIDEGATE_{daemon.upper()}_{store}_URL"
            shown = f"{user}:{self.redis_users[user]}@" if user in self.redis_users else ""
            found[variable] = f"redis://{shown}{redis}" if store == "REDIS" else f"{postgres} user={user}"
        return found

    def give_addresses(self):
        """Each daemon its stores as its own user; in files, since passwords are in them."""
        redis = self.env["TIDEGATE_REDIS_URL"].removeprefix("redis://").rsplit("@", 1)[-1]
        postgres = self.env["TIDEGATE_POSTGRES_URL"].replace(" user=tidegate", "")
        self.env["TIDEGATE_LEDGER_MIGRATE_URL"] = self.env["TIDEGATE_LEDGER_URL"]
        for daemon in DAEMONS:
            for variable, address in self.addresses_of(daemon, redis, postgres).items():
                path = f"{self.run}/keys/{variable.lower()}"
                self.write_secret(path, address)
                self.env[f"{variable}_FILE"] = path

    def start_postgres(self):
        home, sockets = f"{self.run}/postgres/data", f"{self.run}/postgres/socket"
        if len(sockets) > 90:
            raise StackError(f"the path of the run folder is too long for a unix socket: {sockets}")
        bin_folder = newest_postgres()
        if not os.path.exists(f"{home}/PG_VERSION"):
            os.makedirs(sockets, mode=0o700, exist_ok=True)
            if os.geteuid() == 0:
                user = pwd.getpwnam("postgres")
                for folder in (f"{self.run}/postgres", sockets):
                    os.chown(folder, user.pw_uid, user.pw_gid)
            done = subprocess.run([*self.as_postgres, f"{bin_folder}/initdb", "-D", home, "-U", "tidegate", "-A", "trust",
                                   "-E", "UTF8", "--locale=C", "--no-sync"], cwd="/", capture_output=True, text=True,
                                  check=False)
            if done.returncode:
                raise StackError(f"initdb failed: {done.stderr.strip()}")
        self.env["TIDEGATE_POSTGRES_URL"] = f"host={sockets} dbname=tidegate user=tidegate"
        self.env["TIDEGATE_LEDGER_URL"] = self.env["TIDEGATE_POSTGRES_URL"]
        with open(f"{LOCAL}/postgresql.conf", encoding="utf-8") as handle:
            options = [line.split("#")[0].strip() for line in handle]
        plain = [option.replace(" ", "").replace("'", "") for option in options if option] + list(self.postgres_options)
        settings = [part for option in plain for part in ("-c", option)]
        self.spawn("postgres", [*self.as_postgres, f"{bin_folder}/postgres", "-D", home, "-k", sockets, *settings], cwd="/")
        wait_for("PostgreSQL answers", lambda: self.psql("SELECT 1", "postgres", check=False) is not None)
        if not self.psql("SELECT 1 FROM pg_database WHERE datname = 'tidegate'", "postgres"):
            self.psql("CREATE DATABASE tidegate", "postgres")

    def crash_postgres(self):
        """kill -9 of PostgreSQL; its orphans hold the shared memory until they notice, a moment later."""
        self.kill("postgres")
        home, sockets = os.path.realpath(f"{self.run}/postgres/data"), f"{self.run}/postgres/socket"

        def gone():
            return not [name for name in filter(str.isdigit, os.listdir("/proc")) if working_folder(name) == home]
        wait_for("PostgreSQL is gone", gone)
        # Where no init reaps orphans the dead postmaster stays a zombie, which its successor would take for alive.
        for lock in (f"{home}/postmaster.pid", f"{sockets}/.s.PGSQL.5432.lock"):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(lock)

    def psql(self, sql, database="tidegate", check=True):
        """Runs one statement, returns its rows as text; None when it failed and check is off."""
        done = subprocess.run(["psql", "-X", "-q", "-At", "-h", f"{self.run}/postgres/socket", "-U", "tidegate", "-d", database,
                               "-v", "ON_ERROR_STOP=1", "-c", sql], capture_output=True, text=True, check=False)
        if done.returncode:
            if check:
                raise StackError(f"psql: {done.stderr.strip()}")
            return None
        return done.stdout.strip()

    def wait_port(self, name, port):
        def listening():
            if not self.alive(name):
                raise StackError(f"{name} ended at once:\n{self.tail(name)}")
            return listens(port)
        wait_for(f"{name} listens on port {port}", listening)

    # -- daemons ---------------------------------------------------------------------------------------------------

    def start_daemon(self, daemon, name=None, env=None, ready=True, through=()):
        """Starts a daemon under a name (its class by default), through a command if given, and waits until it is ready."""
        name = name or daemon
        if not os.path.exists(f"{self.bin}/tidegate-{daemon}"):
            raise StackError(f"{self.bin}/tidegate-{daemon} is not built: run tools/dev build")
        port_name = f"TIDEGATE_{name.upper().replace('-', '_')}_ADMIN_PORT"
        port = self.env.setdefault(port_name, str(free_port()))
        own = {f"TIDEGATE_{daemon.upper()}_ADMIN_PORT": port, "TIDEGATE_INSTANCE": f"{name}-{os.urandom(3).hex()}", **(env or {})}
        self.spawn(name, [*through, f"{self.bin}/tidegate-{daemon}"], own)
        if ready:
            self.wait_ready(name)

    def admin(self, name, path):
        """(status, text) of a daemon's admin port; (0, why) when it does not answer."""
        setting = f"TIDEGATE_{name.upper().replace('-', '_')}_ADMIN"
        connection = http.client.HTTPConnection(self.env.get(f"{setting}_HOST", "127.0.0.1"), int(self.env[f"{setting}_PORT"]), timeout=2)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except (OSError, http.client.HTTPException) as fault:
            return 0, str(fault)
        finally:
            connection.close()

    def wait_ready(self, name, seconds=READY_S):
        def ready():
            if not self.alive(name):
                raise StackError(f"{name} ended at once:\n{self.tail(name)}")
            return self.admin(name, "/readyz")[0] == 200
        try:
            wait_for(f"{name} is ready", ready, seconds)
        except StackError as fault:
            raise StackError(f"{fault}: {self.admin(name, '/readyz?verbose')[1]}\n{self.tail(name)}") from fault

    def migrate(self):
        done = subprocess.run([f"{self.bin}/tidegate-ledger", "--migrate"], env={**os.environ, **self.env},
                              capture_output=True, text=True, check=False)
        if done.returncode:
            raise StackError(f"migration failed: {done.stdout}{done.stderr}")

    def ctl(self, *arguments, check=True):
        """Runs tidegatectl against this stack; returns the finished process."""
        done = subprocess.run([f"{self.bin}/tidegatectl", *arguments], env={**os.environ, **self.env}, cwd=self.run,
                              capture_output=True, text=True, check=False)
        if check and done.returncode:
            raise StackError(f"tidegatectl {' '.join(arguments)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def start(self, edge_port=0, daemons=DAEMONS):
        """Everything, in dependency order, each ready before the next is told to be."""
        if not os.path.isdir(f"{self.run}/keys"):
            self.ctl("keys", "new", f"{self.run}/keys")
        if self.guarded:
            self.guard_nats()
        port = str(free_port(edge_port))
        self.env["TIDEGATE_EDGE_PORT"] = port
        self.env["TIDEGATE_EDGE_URL"] = f"http://127.0.0.1:{port}"
        try:
            for server, start in (("NATS", self.start_nats), ("Redis", self.start_redis), ("PostgreSQL", self.start_postgres)):
                start()
                self.say(f"  {server:<12} ready")
            self.migrate()
            self.give_addresses()
            for daemon in daemons:
                self.start_daemon(daemon, ready=False)
            for daemon in daemons:
                self.wait_ready(daemon)
                self.say(f"  {daemon:<12} ready")
        except BaseException:
            self.stop()
            raise
        self.write_env()

    def write_env(self):
        with open(f"{self.run}/env", "w", encoding="utf-8") as handle:
            for name in sorted(self.env):
                handle.write(f"{name}={self.env[name]}\n")


def started_for(pid, run):
    """Whether this process works in this run folder, as all do (Redis writes over its environment): a stale file may name another's."""
    return f"{working_folder(pid)}/".startswith(f"{run}/")


def read_pids(run):
    """What a stack of this run folder has running: name -> process id, newest last."""
    run = os.path.realpath(run)
    folder = os.path.join(run, "pids")
    pids = {}
    for file in sorted(os.listdir(folder), key=lambda f: os.path.getmtime(os.path.join(folder, f))) if os.path.isdir(folder) else []:
        with open(os.path.join(folder, file), encoding="ascii") as handle:
            pid = int(handle.read())
        if started_for(pid, run):
            pids[file[:-4]] = pid
    return pids


def down(run):
    """Stops what `up` left running, and only that; then removes the run folder."""
    pids = read_pids(run)
    for name, pid in reversed(list(pids.items())):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGINT if name == "postgres" else signal.SIGTERM)
    for name, pid in pids.items():
        def ended(pid=pid):
            try:
                os.kill(pid, 0)
            except ProcessLookupError:
                return True
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, os.WNOHANG)
            return False
        try:
            wait_for(f"{name} stops", ended, 15)
        except StackError:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
    if os.path.lexists(run):
        shutil.rmtree(os.path.realpath(run), ignore_errors=True)
        if os.path.islink(run):
            os.unlink(run)
    return len(pids)


def main():
    parser = argparse.ArgumentParser(prog="tools/dev up|down", description=__doc__)
    parser.add_argument("action", choices=("up", "down", "status"))
    parser.add_argument("--run", default=os.environ.get("TIDEGATE_RUN", os.path.join(ROOT, "run")), help="run folder (default: run)")
    parser.add_argument("--build", default=os.path.join(ROOT, "build", "release"), help="build folder (default: build/release)")
    parser.add_argument("--port", type=int, default=8080, help="the edge's port if it is free (default: 8080)")
    options = parser.parse_args()
    try:
        if options.action == "down":
            print(f"stopped {down(options.run)} processes")
            return 0
        running = read_pids(options.run)
        if options.action == "status" or running:
            for name, pid in running.items():
                print(f"{name:<12} {pid}")
            if options.action == "up":
                print("a stack is running in this folder already: tools/dev down stops it", file=sys.stderr)
            return 0 if running else 1
        down(options.run)
        stack = Stack(options.run, options.build, lasting=True)
        stack.start(options.port)
        with open(f"{stack.run}/env", encoding="utf-8") as handle:
            print(handle.read(), end="")
        return 0
    except StackError as fault:
        print(f"stack: {fault}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
