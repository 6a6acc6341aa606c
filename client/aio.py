"""The asyncio client: one stream, any number of calls under way, replies matched by id."""

import asyncio
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from memoryd.client import paths
from memoryd.client.calls import Methods, add_many_calls, joined, namespace_text
from memoryd.client.errors import Busy, TimedOut, Unavailable
from memoryd.client.exchange import decode_reply, encode_call, placed, progress_of, result_of
from memoryd.client.frames import FrameReader
from memoryd.client.protocol import READS, AddedMany, Call, NewMemory, Progress, Reply

R = TypeVar("R")
OnProgress = Callable[[Progress], None]


class AsyncClient(Methods):
    """The same as `Client`, with await. Use it from one event loop."""

    def __init__(
        self,
        namespace: str | Sequence[str] | None = None,
        *,
        socket: str | os.PathLike[str] | None = None,
        timeout_s: float = 30.0,
        autostart: bool = True,
    ) -> None:
        self.namespace = namespace_text(namespace if namespace is not None else os.environ.get("MEMORYD_NAMESPACE"))
        self.socket_path = paths.socket_path(socket)
        self.timeout_s = timeout_s
        self.autostart = autostart
        self._stream: _Stream | None = None
        self._connecting = asyncio.Lock()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the stream; the client may be used again."""
        stream, self._stream = self._stream, None
        if stream:
            await stream.close()

    async def call(self, call: Call[R], on_progress: OnProgress | None = None) -> R:
        """Send one call and return its result; errors as in `Client.call`."""
        call = placed(call, self.namespace)
        give_up_at = time.monotonic() + self.timeout_s
        while True:
            try:
                return result_of(call, await self._exchange(call, on_progress))
            except Busy as busy:
                delay_s = busy.data.get("retry_after_ms", 50) / 1000
                if time.monotonic() + delay_s > give_up_at:
                    raise
                await asyncio.sleep(delay_s)

    async def add_many(
        self,
        memories: Iterable[NewMemory | Mapping[str, Any]],
        *,
        dedup: bool = True,
        dedup_threshold: float | None = None,
        on_progress: OnProgress | None = None,
    ) -> AddedMany:
        """Remember many memories; one transaction, or several where they would not fit into one frame of 16 MiB."""
        calls = add_many_calls(memories, dedup=dedup, dedup_threshold=dedup_threshold)
        return joined([await self.call(call, on_progress) for call in calls])

    async def _exchange(self, call: Call[Any], on_progress: OnProgress | None) -> Reply:
        attempts = 2 if type(call) in READS else 1
        for attempt in range(1, attempts + 1):
            stream = await self._connected()
            try:
                return await stream.exchange(call, self.timeout_s, on_progress)
            except TimeoutError:
                raise TimedOut(f"The daemon did not reply within {self.timeout_s:g} s.") from None
            except OSError:
                if attempt < attempts:
                    continue
        raise Unavailable(
            "The connection broke before the reply; a change may or may not have been made. Read, then repeat it."
        )

    async def _connected(self) -> "_Stream":
        async with self._connecting:
            if self._stream is None or self._stream.is_closed():
                await self.close()
                self._stream = await self._connect()
            return self._stream

    async def _connect(self) -> "_Stream":
        try:
            return await _Stream.open(self.socket_path)
        except OSError as error:
            if not self.autostart:
                raise Unavailable(
                    f"No daemon answers at {self.socket_path} ({error.strerror or error}); start one with `memctl up`."
                ) from None
        from memoryd.client import spawn

        await asyncio.to_thread(spawn.start, self.socket_path)
        try:
            return await _Stream.open(self.socket_path)
        except OSError as error:
            raise Unavailable(f"The daemon was started but does not answer at {self.socket_path}: {error}.") from None


class _Waiting:
    """A call under way: its future, its progress callback, when it was last heard of."""

    def __init__(self, on_progress: OnProgress | None) -> None:
        self.reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self.on_progress = on_progress
        self.heard_at = time.monotonic()


class _Stream:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._waiting: dict[int, _Waiting] = {}
        self._last_id = 0
        self._receiving = asyncio.create_task(self._receive())

    @classmethod
    async def open(cls, path: os.PathLike[str]) -> "_Stream":
        return cls(*await asyncio.open_unix_connection(os.fspath(path)))

    def is_closed(self) -> bool:
        return self._receiving.done() or self._reader.at_eof()

    async def close(self) -> None:
        self._writer.close()
        self._receiving.cancel()
        await asyncio.gather(self._receiving, return_exceptions=True)
        await asyncio.gather(self._writer.wait_closed(), return_exceptions=True)

    async def exchange(self, call: Call[Any], timeout_s: float, on_progress: OnProgress | None) -> Reply:
        self._last_id += 1
        request_id, waiting = self._last_id, _Waiting(on_progress)
        data = encode_call(call, request_id)
        self._waiting[request_id] = waiting
        try:
            self._writer.write(data)
            return await self._reply(waiting, timeout_s)
        finally:
            del self._waiting[request_id]

    async def _reply(self, waiting: _Waiting, timeout_s: float) -> Reply:
        while True:
            remaining_s = waiting.heard_at + timeout_s - time.monotonic()
            done, _ = await asyncio.wait([waiting.reply], timeout=max(0.0, remaining_s))
            if done:
                return waiting.reply.result()
            if time.monotonic() - waiting.heard_at >= timeout_s:
                raise TimeoutError

    async def _receive(self) -> None:
        frames = FrameReader()
        try:
            while data := await self._reader.read(262144):
                for payload in frames.feed(data):
                    self._deliver(decode_reply(payload))
            failure: Exception = ConnectionResetError("the daemon closed the connection")
        except Exception as error:
            failure = error
        for waiting in self._waiting.values():
            if not waiting.reply.done():
                waiting.reply.set_exception(failure)

    def _deliver(self, reply: Reply) -> None:
        waiting = self._waiting.get(reply.id)
        if waiting is None:  # its caller gave up
            return
        if (event := progress_of(reply)) is None:
            if not waiting.reply.done():
                waiting.reply.set_result(reply)
            return
        waiting.heard_at = time.monotonic()
        if waiting.on_progress:
            waiting.on_progress(event)
