"""A raw connection for tests: frames and bytes as a test likes them, nothing checked on the way out."""

import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from memoryd.client.transport.frames import FrameReader

LIMIT_S = 100.0


def packed(payload: bytes) -> bytes:
    """Return a payload with its length in front, whatever the length."""
    return len(payload).to_bytes(4, "big") + payload


def request(call: Any, request_id: int = 1, version: int = 1) -> bytes:
    """Return the frame of a request of plain values."""
    return packed(msgspec.msgpack.encode([version, request_id, call]))


class Wire:
    """A stream to a daemon; `receive` returns the next reply as plain values, None at the end of the stream."""

    def __init__(self, path: Path, limit_s: float = LIMIT_S) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(limit_s)
        self.socket.connect(str(path))
        self._replies = self._receive()

    def __enter__(self) -> "Wire":
        return self

    def __exit__(self, *failure: object) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        # A daemon that has closed its end has said why before: that is still to be read.
        with suppress(BrokenPipeError, ConnectionResetError):
            self.socket.sendall(data)

    def receive(self) -> list[Any] | None:
        return next(self._replies, None)

    def ask(self, call: Any, request_id: int = 1, version: int = 1) -> list[Any]:
        """Send one request and return its reply."""
        self.send(request(call, request_id, version))
        reply = self.receive()
        assert reply is not None, "the daemon closed the connection"
        return reply

    def _receive(self) -> Iterator[list[Any]]:
        reader = FrameReader()
        while data := self._data():
            for payload in reader.feed(data):
                yield msgspec.msgpack.decode(payload)

    def _data(self) -> bytes:
        try:
            return self.socket.recv(65536)
        except ConnectionResetError:
            return b""
