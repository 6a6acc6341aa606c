"""Follow events with asyncio: an iterator with a connection of its own, created by `AsyncClient.subscribe`."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from typing import Self

from memoryd.client.errors import TimedOut, Unavailable
from memoryd.client.protocol import Event, Reply, Subscribe, Subscribed
from memoryd.client.transport.exchange import decode_reply, event_of, is_greeting, result_of
from memoryd.client.transport.frames import FrameReader
from memoryd.client.transport.subscription import GONE

Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class AsyncSubscription:
    """Events as they happen. `result` has the counts after the daemon has ended the subscription at its limit."""

    def __init__(
        self, opened: Callable[[], Awaitable[Ends]], data: bytes, timeout_s: float, idle_s: float | None
    ) -> None:
        self.result: Subscribed | None = None
        self._opened, self._data, self._timeout_s, self._idle_s = opened, data, timeout_s, idle_s
        self._frames = FrameReader()
        self._payloads: Iterator[bytes] = iter(())
        self._ends: Ends | None = None
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        """Wait for the next event."""
        if self._ends is None and not self._closed:
            await self._begin()
        try:
            event = None if self._closed else await self._read_event(self._idle_s)
        except TimeoutError:
            event = None
        except BaseException as error:
            was_closed = self._closed
            await self.close()
            if was_closed and isinstance(error, Unavailable):
                raise StopAsyncIteration from None
            raise
        if event is None:
            await self.close()
            raise StopAsyncIteration
        return event

    async def _begin(self) -> None:
        self._ends = await self._opened()
        try:
            self._ends[1].write(self._data)
            await self._read_event(self._timeout_s)  # `started`, or an error
        except TimeoutError:
            await self.close()
            raise TimedOut(f"The daemon did not reply within {self._timeout_s:g} s.") from None
        except BaseException:
            await self.close()
            raise

    async def _read_event(self, limit_s: float | None) -> Event | None:
        """Return the next event, None after the last one."""
        async with asyncio.timeout(limit_s):
            reply = await self._read_reply()
        event = event_of(reply)
        if event is None:
            self.result = result_of(Subscribe(), reply)
        return event

    async def _read_reply(self) -> Reply:
        assert self._ends is not None
        while True:
            for payload in self._payloads:
                reply = decode_reply(payload)
                if not is_greeting(reply):
                    return reply
            try:
                data = await self._ends[0].read(65536)
            except OSError:
                data = b""
            if not data:
                raise Unavailable(GONE)
            self._payloads = self._frames.feed(data)

    async def __aenter__(self) -> Self:
        await self._begin()
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def close(self) -> None:
        """End the subscription."""
        self._closed = True
        ends, self._ends = self._ends, None
        if ends:
            ends[1].close()
            with suppress(OSError):
                await ends[1].wait_closed()
