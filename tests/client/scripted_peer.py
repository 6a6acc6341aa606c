"""A server that does with each connection what a test says, and keeps the requests that it read."""

import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from memoryd.client.transport.frames import FrameReader
from wire import packed


class Peer:
    """The server's end of one connection."""

    def __init__(self, server: "Scripted", stream: socket.socket) -> None:
        self._server, self._stream = server, stream
        self._requests = self._read()

    def request(self) -> list[Any]:
        """Read one request; it counts as received."""
        found = next(self._requests)
        if found[2]["method"] == "hello":  # goes ahead of the first one
            self.reply(0, found[1], {"version": "0.1.0", "protocol": 1, "installed": "0.1.0"})
            found = next(self._requests)
        self._server.requests.append(found)
        return found

    def reply(self, *reply: Any) -> None:
        self._stream.sendall(packed(msgspec.msgpack.encode(reply)))

    def _read(self) -> Iterator[list[Any]]:
        reader = FrameReader()
        while data := self._stream.recv(65536):
            for payload in reader.feed(data):
                yield msgspec.msgpack.decode(payload)


Behaviour = Callable[[Peer], None]


class Scripted:
    """Serves one connection after the other, each with the next behaviour; then it closes the connection."""

    def __init__(self, path: Path, behaviours: Sequence[Behaviour]) -> None:
        self.requests: list[list[Any]] = []
        self.over = threading.Event()
        self._behaviours = behaviours
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(path))
        self._listener.listen()
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        for behave in self._behaviours:
            try:
                stream, _ = self._listener.accept()
            except OSError:
                return
            with stream, suppress(StopIteration, OSError):
                stream.settimeout(30)
                behave(Peer(self, stream))
        self._listener.close()

    def close(self) -> None:
        self.over.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(30)
        assert not self._thread.is_alive()


@contextmanager
def scripted(path: Path, *behaviours: Behaviour) -> Iterator[Scripted]:
    """Run a scripted server for the length of a block."""
    server = Scripted(path, behaviours)
    try:
        yield server
    finally:
        server.close()


def breaks(peer: Peer) -> None:
    """Read a request and end the connection without a word."""
    peer.request()


def says(result: Any) -> Behaviour:
    """Answer each request with a result."""

    def behave(peer: Peer) -> None:
        while True:
            _, number, _ = peer.request()
            peer.reply(0, number, result)

    return behave
