"""What memctl's tests share: the outcome of a command, and a daemon that says what a test tells it to."""

import io
import socket
import socketserver
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from memoryd.client import Client
from memoryd.client.errors import MemorydError
from memoryd.client.protocol import METHODS, Call, Hello, Record, Welcome
from memoryd.client.transport.frames import FrameReader, frame


class Outcome(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON document on stdout."""
        return msgspec.json.decode(self.out)


Memctl = Callable[..., Outcome]


class Terminal(io.StringIO):
    """A terminal on which somebody types, or that shows what is written."""

    def isatty(self) -> bool:
        return True


class FakeDaemon:
    """Answers each call with the result or error that `replies` holds or makes for its class; keeps the calls."""

    def __init__(self, path: Path) -> None:
        self.replies: dict[type[Call[Any]], Any] = {}
        self.calls: list[Call[Any]] = []
        self._decoder = msgspec.msgpack.Decoder(tuple[int, int, msgspec.Raw])
        self._call_decoder = msgspec.msgpack.Decoder(every_call())
        self._server = socketserver.ThreadingUnixStreamServer(str(path), self._handler())
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, payload: bytes) -> bytes:
        _, number, raw = self._decoder.decode(payload)
        call = self._call_decoder.decode(raw)
        if isinstance(call, Hello):
            return msgspec.msgpack.encode([0, number, Welcome(version="0.1.0", protocol=1, installed="0.1.0")])
        self.calls.append(call)
        reply = self.replies[type(call)]
        reply = reply() if callable(reply) else reply
        if isinstance(reply, MemorydError):
            return msgspec.msgpack.encode([1, number, reply.code, reply.message, reply.data])
        return msgspec.msgpack.encode([0, number, reply])

    def _handler(self) -> type[socketserver.BaseRequestHandler]:
        fake = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                stream: socket.socket = self.request
                reader = FrameReader()
                while data := stream.recv(65536):
                    for payload in reader.feed(data):
                        stream.sendall(frame(fake.answer(payload)))

        return Handler


def everything(client: Client) -> list[Record]:
    """Return all that a daemon has stored."""
    return client.export_memories(limit=1000, reach="all").records


def every_call() -> Any:
    """Return the union of all calls."""
    union: Any = METHODS[0]
    for method in METHODS[1:]:
        union = union | method
    return union
