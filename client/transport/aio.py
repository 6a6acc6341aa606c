"""The asyncio client: one stream with any number of concurrent calls, whose replies are matched by id."""

import asyncio
import select
import socket
import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Self, TypeVar

from memoryd.client.calls import add_many_calls, subscribe
from memoryd.client.errors import MemorydError, TimedOut, Unavailable
from memoryd.client.fields import GivenMemory, Words
from memoryd.client.protocol import DECLARED, AddedMany, Call, Progress, Reach, Reply
from memoryd.client.transport import exchange, trust
from memoryd.client.transport.batches import extend_error, join_added
from memoryd.client.transport.endpoint import Endpoint, describe_silent
from memoryd.client.transport.exchange import BrokenStream, OnProgress, encode_call
from memoryd.client.transport.frames import FrameReader

if TYPE_CHECKING:
    from memoryd.client.transport.subscription_aio import AsyncSubscription, Ends

R = TypeVar("R")


class AsyncClient(Endpoint):
    """The same as `Client`, with await. Use it from one event loop."""

    def _prepare_streams(self) -> None:
        self._stream: _Stream | None = None
        self._connecting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the stream; the client can be used again."""
        stream, self._stream = self._stream, None
        if stream and stream.is_of_this_loop():
            await stream.close()

    async def call(self, call: Call[R], on_progress: OnProgress | None = None) -> R:
        """Send one call and return its result; errors as in `Client.call`."""
        call = exchange.set_namespace(call, self.namespace)
        give_up_at = time.monotonic() + self.timeout_s
        while True:
            try:
                return self._postprocess(call, exchange.result_of(call, await self._exchange(call, on_progress)))
            except MemorydError as error:
                delay_s = exchange.retry_after_s(error)
                if delay_s is None or time.monotonic() + delay_s > give_up_at:
                    raise
                await asyncio.sleep(delay_s)

    async def _send_built(self, build: Callable[[], Call[R]]) -> R:
        return await self.call(build())

    async def add_many(
        self,
        memories: Iterable[GivenMemory],
        *,
        dedup: bool = True,
        dedup_threshold: float | None = None,
        allow_secrets: bool = False,
        on_progress: OnProgress | None = None,
    ) -> AddedMany:
        """Remember many memories, like `Client.add_many`."""
        calls = add_many_calls(memories, dedup=dedup, dedup_threshold=dedup_threshold, allow_secrets=allow_secrets)
        done: list[AddedMany] = []
        for call in calls:
            try:
                done.append(await self.call(call, on_progress))
            except MemorydError as error:
                raise extend_error(error, done) from None
        return join_added(done)

    def subscribe(
        self, kinds: Words = (), *, reach: Reach | None = None, limit: int | None = None, idle_s: float | None = None
    ) -> "AsyncSubscription":
        """Follow events within reach with `async for event in …`, like `Client.subscribe`.

        The subscription begins with the first iteration, or with `async with`.
        """
        from memoryd.client.transport.subscription_aio import AsyncSubscription

        call = exchange.set_namespace(subscribe(kinds, reach=reach, limit=limit), self.namespace)
        return AsyncSubscription(self._open, encode_call(call, next(self._ids)), self.timeout_s, idle_s)

    async def _exchange(self, call: Call[Any], on_progress: OnProgress | None) -> Reply:
        request_id = next(self._ids)
        data, reads = encode_call(call, request_id), DECLARED[type(call)].reads
        breaks = exchange.Breaks(call)
        while True:
            try:
                return await self._send(request_id, data, on_progress, reads)
            except BrokenStream as broken:
                pause_s = breaks.next_pause_s(broken, time.monotonic())
            await asyncio.sleep(pause_s)

    async def _send(self, request_id: int, data: bytes, on_progress: OnProgress | None, reads: bool) -> Reply:
        stream = await self._get_stream()
        return await stream.exchange(request_id, data, self.timeout_s, on_progress, reads)

    async def _get_stream(self) -> "_Stream":
        if self._stream and not self._stream.is_of_this_loop():
            raise RuntimeError(
                "This AsyncClient was used in another event loop; make one in each, as by `async with AsyncClient(…)`."
            )
        async with self._connecting:
            if self._stream is None or self._stream.is_closed():
                if self._stream:
                    await self._stream.end()
                await self.close()
                connection = await self._connect_socket()
                self._stream = _Stream(connection, *await _greet(connection, self._greeting))
            return self._stream

    async def _open(self) -> "Ends":
        return await _greet(await self._connect_socket(), self._greeting)

    async def _connect_socket(self) -> socket.socket:
        try:
            return await _connect_socket(self._address, self.timeout_s)
        except OSError as error:
            address = await asyncio.to_thread(self._find_or_start, error)
        try:
            return await _connect_socket(address, self.timeout_s)
        except OSError as error:
            raise describe_silent(address, error) from None


async def _connect_socket(address: str, timeout_s: float) -> socket.socket:
    """Connect; raise OSError if no daemon listens, `TimedOut` if it does not accept the connection."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        give_up_at = time.monotonic() + timeout_s
        while True:
            try:
                connection.connect(address)
                break
            except BlockingIOError:  # a daemon listens, but its queue of connections is full
                if time.monotonic() > give_up_at:
                    raise TimedOut(f"The daemon took no connection within {timeout_s:g} s.") from None
                await asyncio.sleep(exchange.CONNECT_PAUSE_S)
        trust.check_connection(connection, address)
    except BaseException:
        connection.close()
        raise
    return connection


async def _greet(connection: socket.socket, greeting: bytes) -> "Ends":
    try:
        reader, writer = await asyncio.open_unix_connection(sock=connection)
    except BaseException:
        connection.close()
        raise
    writer.write(greeting)
    return reader, writer


class _Waiting:
    """A running call: its future, its progress callback, and the time of the latest reply."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.on_progress = on_progress
        self.heard_at = time.monotonic()

    def note_progress(self, event: Progress) -> None:
        """Process a progress event; if the callback raises, only its own call fails."""
        self.heard_at = time.monotonic()
        try:
            if self.on_progress:
                self.on_progress(event)
        except Exception as error:
            self.fail(error)

    def fail(self, error: Exception) -> None:
        """End the call with an error, unless it has ended."""
        if not self.reply.done():
            self.reply.set_exception(error)
            self.reply.exception()  # asyncio logs exceptions that are never retrieved, and the caller may be gone


class _Stream:
    def __init__(self, connection: socket.socket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._socket, self._reader, self._writer = connection, reader, writer
        self._waiting: dict[int, _Waiting] = {}
        self._ended = select.poll()
        self._ended.register(connection.fileno(), select.POLLRDHUP)
        self._receiving = asyncio.create_task(self._receive())

    def is_of_this_loop(self) -> bool:
        """Return whether the stream belongs to the running event loop; it cannot be used from another one."""
        return self._receiving.get_loop() is asyncio.get_running_loop()

    def is_closed(self) -> bool:
        """Return whether the stream has ended, even if the event loop has not noticed yet."""
        return self._receiving.done() or self._reader.at_eof() or bool(self._ended.poll(0))

    async def end(self) -> None:
        """Process what the daemon sent before it closed the stream: replies to other calls, and why it closed it."""
        await asyncio.wait([self._receiving])

    async def close(self) -> None:
        self._writer.close()
        self._receiving.cancel()
        await asyncio.gather(self._receiving, return_exceptions=True)
        await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)

    async def exchange(
        self, request_id: int, data: bytes, timeout_s: float, on_progress: OnProgress | None, reads: bool
    ) -> Reply:
        """Send a request and return its final reply; raise `BrokenStream` or `TimedOut`."""
        self._waiting[request_id] = waiting = _Waiting(on_progress)
        try:
            self._write(data)
            return await self._await_reply(waiting, timeout_s, reads)
        finally:
            del self._waiting[request_id]

    def _write(self, data: bytes) -> None:
        """Send directly if asyncio's buffer is empty, because asyncio discards received data if its write fails."""
        sent = 0
        if not self._writer.transport.get_write_buffer_size():
            try:
                sent = self._socket.send(data)
            except BlockingIOError:
                pass
            except OSError:
                return  # the stream has ended: `_receive` notices it after the last replies
        if sent < len(data):
            self._writer.write(data[sent:])

    async def _await_reply(self, waiting: _Waiting, timeout_s: float, reads: bool) -> Reply:
        while True:
            remaining_s = waiting.heard_at + timeout_s - time.monotonic()
            done, _ = await asyncio.wait([waiting.reply], timeout=max(0.0, remaining_s))
            if done:
                return waiting.reply.result()
            if time.monotonic() - waiting.heard_at >= timeout_s:
                raise TimedOut(exchange.SILENT[reads].format(timeout_s))

    async def _receive(self) -> None:
        """Deliver each reply to its call until the stream ends; then fail the calls that still wait."""
        reason, heard = "the daemon closed the connection", False
        failure: Exception | None = None
        frames = FrameReader()
        try:
            while data := await self._reader.read(262144):
                heard = True
                for payload in frames.feed(data):
                    reply = exchange.decode_reply(payload)
                    if exchange.is_greeting(reply):
                        continue
                    if reply.id:
                        self._deliver(reply)
                    else:  # an error without an id says why the daemon closes the stream
                        failure = exchange.error_of(reply)
        except MemorydError as error:
            failure = error
        except OSError as error:
            reason = str(error)
        except asyncio.CancelledError:
            failure = Unavailable("The client was closed before the reply.")
            raise
        finally:
            for waiting in self._waiting.values():
                waiting.fail(failure or BrokenStream(reason, heard))

    def _deliver(self, reply: Reply) -> None:
        waiting = self._waiting.get(reply.id)
        if waiting is None:  # the caller gave up
            return
        if (event := exchange.progress_of(reply)) is not None:
            waiting.note_progress(event)
        elif not waiting.reply.done():
            waiting.reply.set_result(reply)
