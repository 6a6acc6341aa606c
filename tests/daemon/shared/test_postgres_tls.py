"""A server with TLS in front: who is not surely the right one gets nothing."""

import shutil
import socket
import ssl
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from database import Team, decide

from memoryd.client.protocol import GetShared
from waiting import wait_until

_SSL_REQUEST = (8).to_bytes(4) + (80877103).to_bytes(4)


class TlsFront:
    """What a server built with OpenSSL does at first: it takes the request for TLS, then speaks as the server does."""

    def __init__(self, port: int, certificate: Path, key: Path) -> None:
        self._port = port
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate, key)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.create_connection(("127.0.0.1", self._port)) as server:
            assert client.recv(8) == _SSL_REQUEST, "it asked for no TLS"
            client.sendall(b"S")
            with self._context.wrap_socket(client, server_side=True) as secure:
                back = threading.Thread(target=self._pass_on, args=(server, secure), daemon=True)
                back.start()
                self._pass_on(secure, server)
                back.join(10)

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_RDWR)


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
    front = TlsFront(team.server.port, certificate, key)

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
