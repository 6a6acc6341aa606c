"""The streams between standard input and output and the SDK's server: the end of the input waits for the last reply.

The SDK ends calls under way when its input ends. A client that writes its requests and closes, like a shell's pipe,
would then get no reply; so the server hears of the end when everything that was asked is answered or cancelled.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import TracebackType
from typing import Any, Self

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, jsonrpc_message_adapter
from pydantic import ValidationError

from memoryd.client.memctl.escapes import replace_lone_surrogates
from memoryd.client.memctl.output import print_note

Incoming = SessionMessage | Exception


class _Open:
    """The requests that have no reply yet."""

    def __init__(self) -> None:
        self._ids: set[str] = set()
        self._none = anyio.Event()
        self._ended = False

    def note_received(self, message: Any) -> None:
        """Take note of what came in."""
        if isinstance(message, JSONRPCRequest):
            self._ids.add(str(message.id))
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._settle((message.params or {}).get("requestId"))  # the server says no more about it

    def note_sent(self, message: Any) -> None:
        """Take note of what went out."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._settle(message.id)

    async def wait_until_finished(self) -> None:
        """Wait until nothing is open; nothing comes in any more."""
        self._ended = True
        if self._ids:
            await self._none.wait()

    def _settle(self, id: Any) -> None:
        self._ids.discard(str(id))
        if self._ended and not self._ids:
            self._none.set()


class _Outgoing:
    """The SDK's stream to standard output; it reports each reply."""

    def __init__(self, inner: Any, asked: _Open) -> None:
        self._inner, self._asked = inner, asked

    async def send(self, item: SessionMessage) -> None:
        """Send a message."""
        await self._inner.send(item)
        self._asked.note_sent(item.message)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()


def _read_again(error: Exception) -> SessionMessage | None:
    """Return the message of a line that the SDK did not read, where that is for a surrogate without its other half."""
    line = str(error.errors()[0]["input"]) if isinstance(error, ValidationError) else ""
    if (whole := replace_lone_surrogates(line)) == line:
        return None
    with suppress(ValidationError):
        return SessionMessage(jsonrpc_message_adapter.validate_json(whole, by_name=False))
    return None


@asynccontextmanager
async def open_streams() -> AsyncIterator[tuple[MemoryObjectReceiveStream[Incoming], _Outgoing]]:
    """Yield what the server reads and writes; only its messages reach standard output meanwhile."""
    asked = _Open()
    give, take = anyio.create_memory_object_stream[Incoming]()

    async def hand_over(incoming: Any) -> None:
        async with give:
            async for item in incoming:
                if isinstance(item, Exception) and (item := _read_again(item)) is None:
                    print_note("memctl: a line of the input is no JSON-RPC message; it is passed over.")
                    continue
                asked.note_received(item.message)
                await give.send(item)
            await asked.wait_until_finished()

    async with stdio_server() as (incoming, outgoing), anyio.create_task_group() as tasks:
        tasks.start_soon(hand_over, incoming)
        yield take, _Outgoing(outgoing, asked)
