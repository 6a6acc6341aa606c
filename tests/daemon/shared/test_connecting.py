"""How a real server is connected to: its certificate is checked, a password comes from a file or the environment."""

import select
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from desk import grant
from machines import machines

from configs import NO_MODEL
from memoryd.client.errors import MemorydError, Unavailable
from memoryd.client.shared.calls import GetSharing, ShareRoot
from memoryd.daemon.core.core import Core
from memoryd.daemon.shared import line, server
from postgres import Postgres
from waiting import wait_until
from workbench import Process


class Gate:
    """The TLS of a server: the programs of the tests' PostgreSQL are built without, so it is spoken before them."""

    def __init__(self, target: int, certificate: Path) -> None:
        self._target, self._context = target, ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(certificate, certificate.with_suffix(".key"))
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), closing(client), socket.create_connection(("127.0.0.1", self._target)) as plain:
            client.recv(8)  # the request for TLS
            client.sendall(b"S")
            with self._context.wrap_socket(client, server_side=True) as secured:
                _forward(secured, plain)

    def close(self) -> None:
        self._listener.close()


def _forward(secured: ssl.SSLSocket, plain: socket.socket) -> None:
    """Pass on what either end sends until one closes."""
    while True:
        ready = [secured] if secured.pending() else select.select([secured, plain], [], [])[0]
        for end in ready:
            data = end.recv(65_536)
            if not data:
                return
            (plain if end is secured else secured).sendall(data)


def make_certificate(folder: Path, holder: str) -> Path:
    """Make a certificate of a server that is its own authority."""
    made = folder / f"{holder.replace(':', '_')}.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-days", "2", "-subj", "/CN=memoryd", "-addext", f"subjectAltName={holder}"]
    subprocess.run([*command, "-keyout", made.with_suffix(".key"), "-out", made], check=True, capture_output=True)
    return made


@pytest.fixture
def certificate(folder: Path) -> Path:
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a certificate with")
    return make_certificate(folder, "IP:127.0.0.1")


@pytest.fixture
def open_gate(postgres: Postgres) -> Iterator[Callable[[Path], str]]:
    """Put TLS with a certificate before the server; return its address."""
    gates: list[Gate] = []

    def start(certificate: Path) -> str:
        gates.append(Gate(postgres.port, certificate))
        return f"host=127.0.0.1 port={gates[-1].port} user=postgres dbname=postgres"

    yield start
    for gate in gates:
        gate.close()


def is_secured(address: str) -> bool:
    """Connect; return whether it is by TLS."""
    with closing(server.connect(address)) as opened:
        assert opened.value("SELECT 1") == 1
        return bool(opened.connection.pgconn.ssl_in_use)


def test_a_certificate_is_checked_unless_the_address_says_otherwise(
    postgres: Postgres,
    folder: Path,
    certificate: Path,
    open_gate: Callable[[Path], str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address = open_gate(certificate)
    with pytest.raises(Unavailable, match="certificate verify failed"):
        server.connect(address)
    assert is_secured(f"{address} sslrootcert={certificate}")
    assert is_secured(f"{address} sslmode=require")
    elsewhere = make_certificate(folder, "DNS:db.example")
    other = open_gate(elsewhere)
    with pytest.raises(Unavailable, match="certificate verify failed"):
        server.connect(f"{other} sslrootcert={certificate}")
    with pytest.raises(Unavailable, match=r'certificate for "db\.example".* does not match host name "127\.0\.0\.1"'):
        server.connect(f"{other} sslrootcert={elsewhere}")
    with pytest.raises(Unavailable, match="does not support SSL"):
        server.connect(postgres.address().replace("sslmode=disable", ""))
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert is_secured(address)


def test_the_authorities_of_the_system_are_found(
    folder: Path, certificate: Path, open_gate: Callable[[Path], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(server, "AUTHORITIES", (str(folder / "missing"), str(certificate)))
    assert is_secured(open_gate(certificate))


@pytest.fixture
def locked_address(postgres: Postgres, database: str) -> Iterator[str]:
    """The address of a role that the server lets in with its password alone, which is `open sesame`."""
    role, rules = f"r_{database}", postgres.data / "pg_hba.conf"
    postgres.sql(f"CREATE ROLE {role} LOGIN PASSWORD 'open sesame'")
    former = rules.read_text()
    rules.write_text(f"host all {role} 127.0.0.1/32 scram-sha-256\n{former}")
    postgres.sql("SELECT pg_reload_conf()")
    address = postgres.address(role, database)
    wait_until(lambda: bool(refuse(lambda: server.connect(address))))
    yield address
    rules.write_text(former)
    postgres.sql("SELECT pg_reload_conf()")
    postgres.sql(f"DROP ROLE {role}")


def refuse(connect: Callable[[], server.ServerConnection]) -> str:
    """Return why nobody is let in, nothing where somebody is."""
    try:
        connect().close()
    except MemorydError as error:
        return error.message
    return ""


def test_a_password_comes_from_a_passfile_the_home_folder_or_the_environment(
    core: Core, folder: Path, locked_address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PGPASSWORD", "PGPASSFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(folder))
    assert "no password supplied" in refuse(lambda: line.open_server(core, locked_address, ""))
    with monkeypatch.context() as patch:
        patch.setenv("PGPASSWORD", "open sesame")
        assert not refuse(lambda: line.open_server(core, locked_address, ""))
        patch.setenv("PGPASSWORD", "open barley")
        assert "password authentication failed" in refuse(lambda: line.open_server(core, locked_address, ""))
    given = folder / "passwords"
    given.write_text("127.0.0.1:*:*:*:open sesame\n")
    given.chmod(0o600)
    for passfile in (str(given), "~/passwords"):
        assert not refuse(lambda: line.open_server(core, locked_address, passfile))  # noqa: B023
    assert refuse(lambda: line.open_server(core, locked_address, ""))
    given.rename(folder / ".pgpass")
    assert not refuse(lambda: line.open_server(core, locked_address, ""))


def test_a_root_is_shared_as_the_settings_say(
    folder: Path, postgres: Postgres, database: str, locked_address: str
) -> None:
    role = f"r_{database}"
    grant(postgres, database, role)
    (folder / "passwords").write_text("127.0.0.1:*:*:*:open sesame\n")
    (folder / "passwords").chmod(0o600)
    section = f'[shared.acme]\nserver = "{locked_address}"\npassfile = "passwords"\nmax_rows = 3\n'
    daemon = Process(folder, f"{NO_MODEL}{section}")
    with machines(folder, postgres.address(database=database), "other") as (other,):
        for number in range(8):
            other.add(f"text {number}")
        other.sync()
    try:
        with daemon.start().client("acme") as client:
            client.call(ShareRoot(root="acme", namespaces=["acme/api"]))
            wait_until(lambda: client.call(GetSharing()).roots[0].state == "ready")
            [root] = client.call(GetSharing()).roots
            assert (root.server, root.memories, root.partial) == (locked_address, 3, True)
    finally:
        daemon.stop()
        postgres.sql(f"DROP OWNED BY {role}", database)
