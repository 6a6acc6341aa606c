"""A server with TLS in front: who is not surely the right one gets nothing."""

import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from database import Team
from joined import decide
from relay import Relay

from memoryd.client.protocol import GetShared
from waiting import wait_until

_SSL_REQUEST = (8).to_bytes(4) + (80877103).to_bytes(4)


def start_tls(certificate: Path, key: Path) -> Callable[[socket.socket], socket.socket]:
    """Return what a server built with OpenSSL does at first: it takes the request for TLS, then speaks as it does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)

    def meet(client: socket.socket) -> socket.socket:
        assert client.recv(8) == _SSL_REQUEST, "it asked for no TLS"
        client.sendall(b"S")
        return context.wrap_socket(client, server_side=True)

    return meet


def make_certificate(folder: Path, name: str) -> tuple[Path, Path]:
    if not shutil.which("openssl"):
        pytest.skip("no openssl is installed, which makes the certificates")
    certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost"
    words = [*command.split(), "-addext", "subjectAltName=DNS:localhost", "-keyout", key, "-out", certificate]
    subprocess.run(words, check=True, capture_output=True)
    return certificate, key


def test_only_the_server_whose_certificate_is_known_is_spoken_to(team: Team, folder: Path) -> None:
    certificate, key = make_certificate(folder, "server")
    other, _ = make_certificate(folder, "other")
    front = Relay(team.server.port, start_tls(certificate, key))

    def join(host: str, root: Path) -> tuple[str, bool]:
        _, client = team.join("ada", server=f"postgresql://ada@{host}:{front.port}/team?sslrootcert={root}")
        added = decide(client, f"Saved by {host} with {root.name}")
        return client.call(GetShared()).roots[0].problem, added.waiting

    try:
        assert join("localhost", certificate) == ("", False)
        problem, waits = join("localhost", other)
        assert ("certificate verify failed" in problem, waits) == (True, True)
        problem, waits = join("127.0.0.1", certificate)
        assert ("does not match" in problem, waits) == (True, True)
        problem, waits = join("localhost", folder / "missing.crt")
        assert ("missing.crt" in problem, waits) == (True, True)
    finally:
        front.close()
    wait_until(lambda: team.list_there() == ["Saved by localhost with server.crt"])
