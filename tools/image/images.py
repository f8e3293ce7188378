#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The container image, built by podman from deploy/image/Dockerfile, on a base made on this machine from Debian's packages under the
base's public name: no registry is asked. Everything is kept in build/podman. See README.md beside this file."""
import argparse
import datetime
import fcntl
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import yaml

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.dirname(os.path.abspath(__file__))
STORE = os.path.join(ROOT, "build", "podman")
BASE = "docker.io/library/debian:bookworm-slim"
NAME = "localhost/tidegate"
POSTGRES = "/usr/lib/postgresql/15"

# Stand-ins for the public images of the stores that the chart's dev mode names: programs of the installed packages, and what goes along.
STORES = {
    "natsImage": (["nats-server"], []),
    "redisImage": (["redis-server"], []),
    "postgresImage": (["bash", "mkdir", f"{POSTGRES}/bin/initdb", f"{POSTGRES}/bin/postgres"],
                      ["/usr/share/postgresql/15", f"{POSTGRES}/lib/plpgsql.so", f"{POSTGRES}/lib/dict_snowball.so"]),
}
POSTGRES_ENTRYPOINT = f"""#!/bin/bash
set -eu
if [ ! -e "$PGDATA/PG_VERSION" ]; then
    mkdir -p -m 700 "$PGDATA"
    {POSTGRES}/bin/initdb -D "$PGDATA" -U postgres -A "$POSTGRES_HOST_AUTH_METHOD" -E UTF8 --locale=C --no-sync
    echo "host all all all $POSTGRES_HOST_AUTH_METHOD" >>"$PGDATA/pg_hba.conf"
    echo "CREATE DATABASE $POSTGRES_DB" | {POSTGRES}/bin/postgres --single -D "$PGDATA" postgres
fi
exec {POSTGRES}/bin/postgres -D "$PGDATA" -c "listen_addresses=*"
"""


class ImageError(Exception):
    """What could not be made, and why."""


def say(text):
    print(f"image: {text}", file=sys.stderr, flush=True)


def run(*command, told=None, **options):
    """Runs to the end; its output, or an ImageError with the end of it. `told`: what is said before, and after how long it was done."""
    begun = time.monotonic()
    if told:
        say(told)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, errors="replace", **options)
    if done.returncode:
        raise ImageError(f"{' '.join(command[:6])}: exit {done.returncode}\n{done.stdout[-4000:]}")
    if told:
        say(f"  done in {time.monotonic() - begun:.0f} s")
    return done.stdout


def podman(*arguments, **options):
    """podman with a store of its own below build/."""
    env = {**os.environ, "CONTAINERS_CONF": f"{HERE}/containers.conf", "DISABLE_HC_SYSTEMD": "true"}
    return run("podman", "--root", f"{STORE}/root", "--runroot", f"{STORE}/run", "--log-level", "error", *arguments, env=env, **options)


def exists(name):
    return bool(podman("images", "--quiet", "--filter", f"reference={name}").strip())


def mirror():
    """Where apt takes Debian 12 from."""
    for line in run("apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages").splitlines():
        address, _, codename = line.partition(" ")
        if codename == "bookworm":
            return address
    raise ImageError("apt knows no Debian 12 (bookworm) repository; the base of the image is made from one")


def make_base():
    """Debian's smallest system that has apt, under the public name of the base."""
    if exists(BASE):
        return
    with tempfile.TemporaryDirectory(dir=STORE) as folder:
        run("mmdebstrap", "--quiet", "--variant=apt", "bookworm", f"{folder}/base.tar", f"deb {mirror()} bookworm main",
            told=f"making {BASE} of Debian's packages")
        podman("import", f"{folder}/base.tar", BASE)


def loaded_by(programs):
    """The files of the libraries that programs load, under the names they are loaded by."""
    return sorted({path for path in re.findall(r"(/\S+)(?: \(|$)", run("ldd", *programs), re.M) if os.path.isfile(path)})


def copy_into(root, path):
    target = root + (path if path.startswith("/usr/") else f"/usr{path}")
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.isdir(path):
        shutil.copytree(path, target, dirs_exist_ok=True)
    else:
        shutil.copy(path, target)


def make_store(value, name):
    """A stand-in for a public image, under its name, from the packages installed here."""
    if exists(name):
        return
    programs, others = STORES[value]
    paths = [shutil.which(program) for program in programs]
    if None in paths:
        raise ImageError(f"{programs[paths.index(None)]} is not installed: run tools/dev setup")
    with tempfile.TemporaryDirectory(dir=STORE) as folder:
        for directory in ("bin", "lib", "lib64"):
            os.makedirs(f"{folder}/tree/usr/{directory}")
            os.symlink(f"usr/{directory}", f"{folder}/tree/{directory}")
        for path in [*paths, *loaded_by(paths), *others]:
            copy_into(f"{folder}/tree", path)
        os.makedirs(f"{folder}/tree/etc")
        with open(f"{folder}/tree/etc/passwd", "w", encoding="ascii") as users:
            users.write("postgres:x:999:999::/data:/bin/sh\n")
        if value == "postgresImage":
            os.symlink("bash", f"{folder}/tree/usr/bin/sh")
            with open(f"{folder}/tree/usr/bin/docker-entrypoint.sh", "w", encoding="ascii") as script:
                script.write(POSTGRES_ENTRYPOINT)
            os.chmod(f"{folder}/tree/usr/bin/docker-entrypoint.sh", 0o755)
        run("tar", "-C", f"{folder}/tree", "--owner=0", "--group=0", "-cf", f"{folder}/root.tar", ".")
        podman("import", "--change", "ENV PATH=/usr/sbin:/usr/bin", "--change", "STOPSIGNAL SIGINT", f"{folder}/root.tar", name)
    say(f"{name} made of the packages installed here")


def make_pause(name):
    """What holds a pod's namespaces: waits, and reaps."""
    if exists(name):
        return
    with tempfile.TemporaryDirectory(dir=STORE) as folder:
        run("tar", "-C", "/usr/bin", "--owner=0", "--group=0", "-cf", f"{folder}/root.tar", "catatonit")
        podman("import", "--change", 'ENTRYPOINT ["/catatonit", "-P"]', f"{folder}/root.tar", name)


def chart_stores():
    """What the chart's dev mode calls the images of its stores."""
    with open(f"{ROOT}/deploy/k8s/tidegate/values.yaml", encoding="utf-8") as handle:
        dev = yaml.safe_load(handle)["dev"]
    return {value: dev[value] for value in STORES}


def version():
    with open(f"{ROOT}/CMakeLists.txt", encoding="utf-8") as handle:
        return re.search(r"project\(tidegate VERSION (\S+)", handle.read()).group(1)


def build(tag=None):
    """Builds deploy/image/Dockerfile as it is; the image's name."""
    os.makedirs(STORE, exist_ok=True)
    with open(f"{STORE}/lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second build finds what the first has made
        return build_alone(tag)


def build_alone(tag):
    make_base()
    name = f"{NAME}:{tag or version()}"
    revision = run("git", "-C", ROOT, "rev-parse", "HEAD").strip()
    created = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    podman("build", "--pull-never", "--network", "host", "--isolation", "chroot", "-f", f"{ROOT}/deploy/image/Dockerfile", "-t", name,
           "--build-arg", f"VERSION={version()}", "--build-arg", f"REVISION={revision}", "--build-arg", f"CREATED={created}", ROOT,
           told=f"building {name} (some minutes when the sources changed)")
    return name


def main():
    parser = argparse.ArgumentParser(prog="tools/dev image", description=__doc__)
    parser.add_argument("--tag", help="its tag (default: the version)")
    parser.add_argument("--out", help="also save it as an archive, for `docker load`, `ctr images import` or a machine without a registry")
    options = parser.parse_args()
    try:
        name = build(options.tag)
        if options.out:
            podman("save", "--format", "docker-archive", "-o", options.out, name)
    except (ImageError, FileNotFoundError) as fault:
        sys.exit(f"image: {fault}")
    print(podman("images", "--format", "{{.Repository}}:{{.Tag}}  {{.Size}}", name).strip())
    return 0


if __name__ == "__main__":
    sys.exit(main())
