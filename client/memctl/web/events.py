"""What happens, as server-sent events that the page reads with `fetch`: EventSource can send no bearer token."""

import asyncio
from collections.abc import AsyncIterator

import msgspec

from memoryd.client.errors import MemorydError
from memoryd.client.protocol import Event
from memoryd.client.transport.aio import AsyncClient

MAX_STREAMS = 8  # one tab leads and passes on what comes, so there is one stream as a rule
BEAT_S = 10.0  # a stream says that it is alive
RETRY_S = 0.5  # while no daemon answers

_encode = msgspec.json.Encoder().encode


async def follow_events(client: AsyncClient) -> AsyncIterator[bytes]:
    """Yield events for ever; `away` when no daemon answers, `open` when one does (again)."""
    while True:
        try:
            async with client.subscribe(reach=None if client.namespace else "all") as events:
                yield _frame("open", {})
                async for frame in _add_beats(aiter(events)):
                    yield frame
        except MemorydError as error:
            yield _frame("away", {"message": error.message})
        await asyncio.sleep(RETRY_S)


async def _add_beats(events: AsyncIterator[Event]) -> AsyncIterator[bytes]:
    """Yield each event as a frame, and a beat while there is none."""
    following = asyncio.ensure_future(anext(events, None))
    try:
        while True:
            done, _ = await asyncio.wait([following], timeout=BEAT_S)
            if not done:
                yield b": beat\n\n"
                continue
            event = following.result()
            if event is None:
                return
            yield _frame("event", event)
            following = asyncio.ensure_future(anext(events, None))
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def _frame(name: str, value: object) -> bytes:
    """Return one event; JSON has no line ends of its own, so it is one line."""
    return b"event: " + name.encode() + b"\ndata: " + _encode(value) + b"\n\n"
