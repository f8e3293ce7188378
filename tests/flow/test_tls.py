# SPDX-License-Identifier: Apache-2.0
"""A whole sale over TLS: NATS and PostgreSQL verify by themselves, Redis through stunnel beside the daemons. And whoever is not who
he should be is refused, in words that say why."""
import json
import os
import pwd
import shutil
import subprocess
import tempfile

import pytest
from conftest import BUILD
from shop import Shop, eventually
from stack import Stack, free_port


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def authority(folder, name):
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.pem")


def certificate(folder, name, issuer):
    """NAME.pem and NAME.key for the host NAME.test."""
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/CN={name}", "-keyout",
            f"{folder}/{name}.key", "-out", f"{folder}/{name}.csr")
    with open(f"{folder}/{name}.ext", "w", encoding="ascii") as handle:
        handle.write(f"subjectAltName=DNS:{name}.test\n")
    openssl("x509", "-req", "-in", f"{folder}/{name}.csr", "-CA", f"{folder}/{issuer}.pem", "-CAkey", f"{folder}/{issuer}.key", "-CAcreateserial",
            "-days", "2", "-extfile", f"{folder}/{name}.ext", "-out", f"{folder}/{name}.pem")


class SecureStack(Stack):
    """Every store speaks TLS only on the way to the daemons; postgres.test is libpq's name for 127.0.0.1."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.tls = f"{self.run}/tls"
        os.mkdir(self.tls, 0o711)
        for name in ("ours", "theirs"):
            authority(self.tls, name)
        for name in ("nats", "redis", "postgres"):
            certificate(self.tls, name, "ours")
        os.chmod(f"{self.tls}/ours.pem", 0o644)
        if os.geteuid() == 0:
            user = pwd.getpwnam("postgres")
            for end in ("key", "pem"):
                os.chown(f"{self.tls}/postgres.{end}", user.pw_uid, user.pw_gid)
        self.postgres_port = free_port()
        self.postgres_options = ("listen_addresses=127.0.0.1", f"port={self.postgres_port}", "ssl=on", f"ssl_cert_file={self.tls}/postgres.pem",
                                 f"ssl_key_file={self.tls}/postgres.key")
        os.environ["PGPORT"] = str(self.postgres_port)

    def start_nats(self):
        with open(f"{self.run}/nats.conf", "a", encoding="utf-8") as handle:
            handle.write(f'tls {{ cert_file: "{self.tls}/nats.pem", key_file: "{self.tls}/nats.key" }}\n')
        super().start_nats()
        self.env.update({"TIDEGATE_NATS_URL": f"tls://127.0.0.1:{self.env['TIDEGATE_NATS_PORT']}", "TIDEGATE_NATS_CA": f"{self.tls}/ours.pem",
                         "TIDEGATE_NATS_SERVER_NAME": "nats.test"})

    def stunnel(self, name, text):
        path = f"{self.tls}/{name}.conf"
        with open(path, "w", encoding="ascii") as handle:
            handle.write(f"foreground = yes\npid =\nsyslog = no\n{text}")
        self.spawn(name, ["stunnel4", path])

    def client_of_redis(self, name, more):
        port = free_port()
        self.stunnel(name, f"[redis]\nclient = yes\naccept = 127.0.0.1:{port}\nconnect = 127.0.0.1:{self.tunnel}\nverifyChain = yes\n{more}")
        self.wait_port(name, port)
        return port

    def give_addresses(self):
        self.tunnel = free_port()
        self.stunnel("stunnel-server", f"[redis]\naccept = 127.0.0.1:{self.tunnel}\nconnect = 127.0.0.1:{self.env['TIDEGATE_REDIS_PORT']}\n"
                                       f"cert = {self.tls}/redis.pem\nkey = {self.tls}/redis.key\n")
        self.wait_port("stunnel-server", self.tunnel)
        port = self.client_of_redis("stunnel-client", f"CAfile = {self.tls}/ours.pem\ncheckHost = redis.test\n")
        self.env["TIDEGATE_LEDGER_MIGRATE_URL"] = self.env["TIDEGATE_LEDGER_URL"]
        for daemon in ("ledger", "reserve", "invariant"):
            self.env.update(self.addresses_of(daemon, f"127.0.0.1:{port}", self.postgres("postgres.test", "ours")))

    def postgres(self, name, issuer, port=None):
        return (f"host={name} hostaddr=127.0.0.1 port={port or self.postgres_port} dbname=tidegate sslmode=verify-full "
                f"sslrootcert={self.tls}/{issuer}.pem")


@pytest.fixture(scope="module")
def secure():
    folder = tempfile.mkdtemp(prefix="tidegate-tls-")
    os.chmod(folder, 0o711)
    before = os.environ.get("PGPORT")
    stack = SecureStack(os.path.join(folder, "run"), BUILD, quiet=True)
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()
        os.environ.pop("PGPORT") if before is None else os.environ.update(PGPORT=before)
        shutil.rmtree(folder, ignore_errors=True)


def test_a_sale_over_tls(secure):
    shop = Shop(secure)
    sale = shop.sale(units=2)
    for _ in range(2):
        reservation = shop.win(sale)[3].json["reservationId"]
        assert shop.confirm(reservation).status == 200
    eventually(lambda: shop.board(sale).get("state") == "sold_out", 10, "sold out")
    facts = {(row["source"], row["name"]): row["value"] for row in json.loads(shop.stack.ctl("-o", "json", "doctor").stdout)}
    assert facts[("nats", "tls")] == facts[("ledger", "postgres_tls")] == "on"
    assert secure.psql("SELECT bool_and(s.ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid) WHERE a.usename LIKE 'tidegate\\_%'") == "t"


def not_ready(stack, daemon, says, **env):
    """A second daemon of this class never becomes ready, and says why."""
    name = f"{daemon}-2"
    stack.start_daemon(daemon, name, env=env, ready=False)
    try:
        eventually(lambda: says in stack.admin(name, "/readyz?verbose")[1], 15, f"{daemon} says: {says}")
        assert stack.admin(name, "/readyz")[0] == 503
    except AssertionError as fault:
        raise AssertionError(f"{fault}; it says {stack.admin(name, '/readyz?verbose')[1]}{stack.tail(name)}") from fault
    finally:
        stack.kill(name)


def test_a_nats_that_is_not_ours_is_refused(secure):
    not_ready(secure, "sweeper", "certificate", TIDEGATE_NATS_CA=f"{secure.tls}/theirs.pem")
    not_ready(secure, "sweeper", "hostname mismatch", TIDEGATE_NATS_SERVER_NAME="redis.test")
    port = str(free_port())
    secure.spawn("plain", ["nats-server", "-a", "127.0.0.1", "-p", port])
    secure.wait_port("plain", int(port))
    not_ready(secure, "sweeper", "Secure Connection not available", TIDEGATE_NATS_URL=f"tls://127.0.0.1:{port}")
    done = subprocess.run([f"{secure.bin}/tidegatectl", "sale", "show"], env={**os.environ, **secure.env, "TIDEGATE_NATS_CA": f"{secure.tls}/theirs.pem"},
                          capture_output=True, text=True, check=False)
    assert done.returncode == 69 and "certificate" in done.stderr, done.stderr


def test_a_postgresql_that_is_not_ours_is_refused(secure):
    def ledger(address, says):
        not_ready(secure, "ledger", says, TIDEGATE_LEDGER_POSTGRES_URL=f"{address} user=tidegate_ledger")
    ledger(secure.postgres("postgres.test", "theirs"), "certificate verify failed")
    ledger(secure.postgres("other.test", "ours"), 'does not match host name "other.test"')
    ledger(secure.postgres("postgres.test", "ours", int(secure.env["TIDEGATE_REDIS_PORT"])), "PostgreSQL: ")


def test_a_redis_that_is_not_ours_is_refused(secure):
    for name, more, says in (("wrong-authority", f"CAfile = {secure.tls}/theirs.pem\ncheckHost = redis.test\n", "certificate"),
                             ("wrong-name", f"CAfile = {secure.tls}/ours.pem\ncheckHost = nats.test\n", "verify failed")):
        port = secure.client_of_redis(name, more)
        not_ready(secure, "reserve", "not connected to a primary Redis", **secure.addresses_of("reserve", f"127.0.0.1:{port}", ""))
        assert says in secure.tail(name, 1000), secure.tail(name, 1000)
