"""Calls of the page: JSON in, JSON out. A method is passed on only when its declaration says `page=True`.

What happens is sent as server-sent events that the page reads with `fetch`: EventSource can send no bearer token.
"""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from functools import reduce
from operator import or_
from typing import Annotated, Any, NamedTuple

import msgspec

from memoryd.client.errors import Forbidden, Invalid, MemorydError, UnknownMethod
from memoryd.client.protocol import (
    DECLARED,
    METHODS,
    Add,
    Call,
    Delete,
    Erase,
    Event,
    RunJob,
    SettleChange,
    Update,
    method_name,
)
from memoryd.client.transport.aio import AsyncClient

ALLOWED = tuple(method for method in METHODS if DECLARED[method].page)
REFUSED = frozenset(method_name(method) for method in METHODS if not DECLARED[method].page)
MAX_STREAMS = 8  # one tab leads and passes on what comes, so there is one stream as a rule
MAX_CALLS = 32  # in one request
BEAT_S = 10.0  # a stream says that it is alive
RETRY_S = 0.5  # while no daemon answers


class _MethodName(msgspec.Struct):
    method: str


_NAMES = frozenset(map(method_name, ALLOWED))
_tag = msgspec.json.Decoder(_MethodName)
_call = msgspec.json.Decoder(reduce(or_, ALLOWED))
_calls = msgspec.json.Decoder(Annotated[list[msgspec.Raw], msgspec.Meta(min_length=1, max_length=MAX_CALLS)])
_encoder = msgspec.json.Encoder()


def read_call(body: bytes) -> Call[Any]:
    """Return the call in a request; raise `Forbidden` for one that is not the page's, `Invalid` for a wrong one."""
    try:
        name = _tag.decode(body).method
        if name in REFUSED:
            raise Forbidden(f"The page may not call {name}; memctl and agents may.")
        if name not in _NAMES:
            raise UnknownMethod(f"There is no method {name}.")
        call: Call[Any] = _call.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise Invalid(f"The call cannot be read: {error}.") from None
    if getattr(call, "allow_secrets", False):
        raise Forbidden("The page stores no credentials.")
    if isinstance(call, Erase) and (len(call.ids) != 1 or call.session is not None):
        raise Forbidden("The page erases one memory at a time; `memctl erase` takes filters.")
    if isinstance(call, Delete) and not call.ids:
        raise Forbidden("The page deletes memories by their ids; `memctl delete` takes filters.")
    return call


class Clients(NamedTuple):
    """The ways to the daemon: one for what people wait for, one for what takes as long as it takes."""

    quick: AsyncClient
    patient: AsyncClient


async def send_call(clients: Clients, body: bytes) -> bytes:
    """Return the result of a request as JSON text."""
    call = read_call(body)
    if isinstance(call, Update | SettleChange):  # whoever uses the page is a person
        call = msgspec.structs.replace(call, origin="person")
    if isinstance(call, Add):
        call = msgspec.structs.replace(call, memory=msgspec.structs.replace(call.memory, origin="person"))
    client = clients.patient if isinstance(call, RunJob | Erase) else clients.quick
    return _encoder.encode(await client.call(call))


async def answer_calls(clients: Clients, body: bytes) -> bytes:
    """Return the answer to a call, or to a list of calls that of each; those run at the same time."""
    if not body.lstrip().startswith(b"["):
        return await answer_work(send_call(clients, body))
    try:
        parts = _calls.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return _encode_error(Invalid(f"The calls cannot be read: {error}."))
    answers = await asyncio.gather(*(answer_work(send_call(clients, bytes(part))) for part in parts))
    return b"[" + b",".join(answers) + b"]"


async def answer_work(work: Coroutine[Any, Any, bytes]) -> bytes:
    """Return `{"result": …}`, or `{"error": …}` with code, sentence and details: an error is an answer, too."""
    try:
        return b'{"result":' + await work + b"}"
    except MemorydError as error:
        return _encode_error(error)


def _encode_error(error: MemorydError) -> bytes:
    return _encoder.encode({"error": {"code": error.code, "message": error.message, "data": error.data}})


# What happens --------------------------------------------------------------------------------------------------------


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
    return b"event: " + name.encode() + b"\ndata: " + _encoder.encode(value) + b"\n\n"
