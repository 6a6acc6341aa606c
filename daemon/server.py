"""The socket's side: frames in, calls to their lanes, replies out.

One asyncio loop. A connection may have many calls under way; replies go out as they finish, matched by id. Backpressure:
past `max_in_flight` calls a connection is not read any further; past a lane's capacity a call gets `busy`; a client that
does not read its replies for `slow_reader_s` is dropped.
"""

import asyncio
import logging
import os
import socket
import struct
import time
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, Union

import msgspec

import memoryd
from memoryd.client.errors import (
    BadFrame,
    Internal,
    Invalid,
    MemorydError,
    Unavailable,
    UnknownMethod,
    VersionMismatch,
)
from memoryd.client.frames import FrameReader, frame
from memoryd.client.protocol import (
    ERROR,
    METHODS,
    PROGRESS,
    PROTOCOL_VERSION,
    RESULT,
    Call,
    Progress,
    Request,
    method_name,
)
from memoryd.daemon.config import ServerConfig
from memoryd.daemon.core.core import Core
from memoryd.daemon.dispatch import HANDLERS, Context, Route, ServerFacts
from memoryd.daemon.lanes import Lane
from memoryd.daemon.meters import Meters

log = logging.getLogger(__name__)

_request = msgspec.msgpack.Decoder(Request)
_call = msgspec.msgpack.Decoder(Union[METHODS])  # type: ignore[valid-type]  # noqa: UP007
_tagged = msgspec.msgpack.Decoder(dict[str, Any])
_encode = msgspec.msgpack.Encoder().encode
_NAMES = frozenset(method_name(method) for method in METHODS)
_WRITE_HIGH_WATER = 1024 * 1024


class Server:
    """Accepts connections on a listening socket and answers calls until it is stopped."""

    def __init__(self, core: Core, config: ServerConfig, listener: socket.socket, stop: Callable[[], None]) -> None:
        self.core, self.config = core, config
        self.meters = Meters()
        self.connections: set[Connection] = set()
        self.draining = False
        self._listener = listener
        self._lanes = {
            "interactive": Lane("interactive", config.workers, config.max_queued),
            "bulk": Lane("bulk", 1, config.max_queued_bulk, nice=True),
        }
        self.facts = ServerFacts(
            started_at=time.monotonic(),
            socket=str(listener.getsockname()),
            connections=lambda: len(self.connections),
            queued=self._queued,
            methods=self.meters.read,
            stop=stop,
        )
        self._asyncio_server: asyncio.Server | None = None

    async def start(self) -> None:
        """Begin to accept connections."""
        self.loop = asyncio.get_running_loop()
        self._asyncio_server = await self.loop.create_unix_server(lambda: Connection(self), sock=self._listener)

    async def stop(self) -> None:
        """Accept no more, let the calls under way finish within `drain_s`, close."""
        self.draining = True
        if self._asyncio_server:
            self._asyncio_server.close()
        give_up_at = time.monotonic() + self.config.drain_s
        while any(connection.in_flight for connection in self.connections) and time.monotonic() < give_up_at:
            await asyncio.sleep(0.01)
        for connection in list(self.connections):
            connection.close()
        for lane in self._lanes.values():
            await asyncio.to_thread(lane.close)

    def submit(self, route: Route, work: Callable[[], None]) -> None:
        """Run work on its lane, which may refuse with `Busy`."""
        self._lanes[route.lane].submit(work)

    def _queued(self) -> dict[str, int]:
        waiting = {name: lane.pending() for name, lane in self._lanes.items()}
        return {**waiting, "writes": self.core.store.waiting_writes()}


class Connection(asyncio.Protocol):
    """One client's stream."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._frames = FrameReader()
        self._transport: asyncio.Transport | None = None
        self._slow: asyncio.TimerHandle | None = None
        self._reading = True
        self.in_flight = 0

    # Transport -------------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Refuse other users and one connection too many."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.set_write_buffer_limits(high=_WRITE_HIGH_WATER)
        if peer_uid(transport.get_extra_info("socket")) != os.getuid():
            log.warning("refused a connection of another user")
            transport.abort()
            return
        self._server.connections.add(self)
        if len(self._server.connections) > self._server.config.max_connections:
            self._refuse(0, Unavailable("The daemon has too many connections.", {"retry_after_ms": 500}))
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the client; its calls under way finish and their replies are dropped."""
        del exc
        self._server.connections.discard(self)
        self._transport = None
        if self._slow:
            self._slow.cancel()

    def data_received(self, data: bytes) -> None:
        """Take every whole frame; a frame over the limit ends the stream, for what follows cannot be told apart."""
        try:
            for payload in self._frames.feed(data):
                self._receive(payload)
        except BadFrame as error:
            self._refuse(0, error)
            self.close()

    def pause_writing(self) -> None:
        """The client does not read: read nothing more from it, and drop it if that lasts."""
        self._regulate(paused=True)
        self._slow = self._server.loop.call_later(self._server.config.slow_reader_s, self._drop_slow)

    def resume_writing(self) -> None:
        """The client reads again."""
        if self._slow:
            self._slow.cancel()
            self._slow = None
        self._regulate()

    def close(self) -> None:
        """Close after what is written has gone out."""
        if self._transport:
            self._transport.close()

    def _drop_slow(self) -> None:
        if self._transport:
            log.warning("dropped a client that did not read its replies")
            self._transport.abort()

    def _regulate(self, paused: bool = False) -> None:
        """Read from the client only while it may have more calls under way and reads its replies."""
        if self._transport is None or self._transport.is_closing():
            return
        wanted = not paused and self._slow is None and self.in_flight < self._server.config.max_in_flight
        if wanted != self._reading:
            self._reading = wanted
            (self._transport.resume_reading if wanted else self._transport.pause_reading)()

    # Calls -----------------------------------------------------------------------------------------------------------

    def _receive(self, payload: bytes) -> None:
        try:
            request = _request.decode(payload)
        except msgspec.MsgspecError as error:
            self._refuse(0, BadFrame(f"A frame is not a request [version, id, call]: {error}."))
            return
        try:
            call = self._understood(request)
        except MemorydError as error:
            self._refuse(request.id, error)
            return
        self._begin(request.id, call, HANDLERS[type(call)])

    def _understood(self, request: Request) -> Call[Any]:
        if request.version != PROTOCOL_VERSION:
            known = {"protocol": PROTOCOL_VERSION, "version": memoryd.__version__}
            raise VersionMismatch(_version_advice(request.version), known)
        if self._server.draining:
            raise Unavailable("The daemon is stopping.")
        try:
            call: Call[Any] = _call.decode(request.call)
            return call
        except msgspec.ValidationError as error:
            raise _refusal(request.call, error) from None
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            raise BadFrame(f"The call is not valid msgpack: {error}.") from None

    def _begin(self, request_id: int, call: Call[Any], route: Route) -> None:
        self.in_flight += 1
        began = time.perf_counter()
        context = Context(self._server.core, partial(self._report, request_id), self._server.facts)
        if route.lane == "inline":
            self._finished(call, began, request_id, _answer(request_id, partial(route.handler, context, call)))
            return
        work = partial(self._work, request_id, call, route, context, began)
        try:
            self._server.submit(route, work)
        except MemorydError as error:
            self._finished(call, began, request_id, (_error(request_id, error), True))
        self._regulate()

    def _work(self, request_id: int, call: Call[Any], route: Route, context: Context, began: float) -> None:
        """Run a handler on a worker; a future is answered when the writer is done with it."""
        try:
            result = route.handler(context, call)
        except BaseException as error:
            self._hand_over(call, began, request_id, _failed(request_id, error))
            return
        if isinstance(result, Future):
            result.add_done_callback(
                lambda done: self._hand_over(call, began, request_id, _answer(request_id, done.result))
            )
        else:
            self._hand_over(call, began, request_id, _answer(request_id, lambda: result))

    def _hand_over(self, call: Call[Any], began: float, request_id: int, answer: tuple[bytes, bool]) -> None:
        """Give an answer made on another thread to the loop."""
        try:
            self._server.loop.call_soon_threadsafe(self._finished, call, began, request_id, answer)
        except RuntimeError:
            log.info("an answer came after the loop had ended")

    def _finished(self, call: Call[Any], began: float, request_id: int, answer: tuple[bytes, bool]) -> None:
        data, failed = answer
        self.in_flight -= 1
        self._server.meters.count(method_name(type(call)), time.perf_counter() - began, failed)
        self._write(data)
        self._regulate()

    def _report(self, request_id: int, event: Progress) -> None:
        data = frame(_encode((PROGRESS, request_id, event)))
        self._server.loop.call_soon_threadsafe(self._write, data)

    def _refuse(self, request_id: int, error: MemorydError) -> None:
        self._write(_error(request_id, error))

    def _write(self, data: bytes) -> None:
        if self._transport and not self._transport.is_closing():
            self._transport.write(data)


def peer_uid(connection: socket.socket) -> int:
    """Return the user id of the process at the other end, as the kernel knows it."""
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _, uid, _ = struct.unpack("3i", credentials)
    return int(uid)


def _answer(request_id: int, result: Callable[[], Any]) -> tuple[bytes, bool]:
    """Return the reply frame of a result, or of the error it raises, and whether it is an error."""
    try:
        return frame(_encode((RESULT, request_id, result()))), False
    except BaseException as error:
        return _failed(request_id, error)


def _failed(request_id: int, error: BaseException) -> tuple[bytes, bool]:
    if not isinstance(error, MemorydError):
        log.error("a call failed", exc_info=error)
        error = Internal(f"The daemon failed: {type(error).__name__}. Its log has the details.")
    return _error(request_id, error), True


def _error(request_id: int, error: MemorydError) -> bytes:
    return frame(_encode((ERROR, request_id, error.code, error.message, error.data)))


def _refusal(call: msgspec.Raw, error: msgspec.ValidationError) -> MemorydError:
    """Return the error for a call that does not fit the contract: its method is unknown, or its fields are wrong."""
    try:
        method = _tagged.decode(call).get("method")
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return BadFrame(f"The call is not a map of text keys: {error}.")
    if method not in _NAMES:
        return UnknownMethod(f"There is no method {method!r}.", {"methods": sorted(_NAMES)})
    return Invalid(f"{method}: {error}.")


def _version_advice(version: int) -> str:
    who = "newer" if version > PROTOCOL_VERSION else "older"
    advice = "restart it with the new version: memctl down && memctl up" if who == "newer" else "upgrade the client"
    return f"The client speaks protocol {version}, {who} than this daemon's {PROTOCOL_VERSION}; {advice}."
