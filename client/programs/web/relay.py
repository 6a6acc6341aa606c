"""Calls of the page, as JSON. Only methods that are declared with `page=True` are passed on.

Doctor runs as a separate process, like any client of the daemon. Events are sent as server-sent events. The page reads
them with `fetch`, because `EventSource` cannot send a token.
"""

import asyncio
import sys
from argparse import Namespace
from collections.abc import AsyncIterator, Coroutine
from functools import reduce
from operator import or_
from typing import Annotated, Any, NamedTuple

import msgspec

from memoryd.client.errors import Forbidden, Invalid, MemorydError, TimedOut, UnknownMethod
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
MAX_STREAMS = 8  # usually there is one: one tab reads the stream and shares the events with the other tabs
MAX_CALLS = 32  # in one request
BEAT_S = 10.0  # between two beats, which show that a stream is alive
DOCTOR_S = 60.0  # the time limit of `memctl doctor`
RETRY_S = 0.5  # between two attempts while no daemon answers


class _MethodName(msgspec.Struct):
    method: str


_NAMES = frozenset(map(method_name, ALLOWED))
_tag = msgspec.json.Decoder(_MethodName)
_call = msgspec.json.Decoder(reduce(or_, ALLOWED))
_calls = msgspec.json.Decoder(Annotated[list[msgspec.Raw], msgspec.Meta(min_length=1, max_length=MAX_CALLS)])
_encoder = msgspec.json.Encoder()


def read_call(body: bytes) -> Call[Any]:
    """Return the call in a request; raise `Forbidden` if the page may not make it, `Invalid` if it is invalid."""
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
    """Two clients of the daemon: one for calls for which people wait, one for calls that may take long."""

    quick: AsyncClient
    patient: AsyncClient


async def send_call(clients: Clients, body: bytes) -> bytes:
    """Return the result of a request as JSON text."""
    call = read_call(body)
    if isinstance(call, Update | SettleChange):  # the user of the page is a person
        call = msgspec.structs.replace(call, origin="person")
    if isinstance(call, Add):
        call = msgspec.structs.replace(call, memory=msgspec.structs.replace(call.memory, origin="person"))
    client = clients.patient if isinstance(call, RunJob | Erase) else clients.quick
    return _encoder.encode(await client.call(call))


async def answer_calls(clients: Clients, body: bytes) -> bytes:
    """Return the answer to a call, or the answers to a list of calls, which run at the same time."""
    if not body.lstrip().startswith(b"["):
        return await answer_work(send_call(clients, body))
    try:
        parts = _calls.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        return _encode_error(Invalid(f"The calls cannot be read: {error}."))
    answers = await asyncio.gather(*(answer_work(send_call(clients, bytes(part))) for part in parts))
    return b"[" + b",".join(answers) + b"]"


async def answer_work(work: Coroutine[Any, Any, bytes]) -> bytes:
    """Return `{"result": …}`, or `{"error": …}` with code, message and details if the call fails."""
    try:
        return b'{"result":' + await work + b"}"
    except MemorydError as error:
        return _encode_error(error)


def _encode_error(error: MemorydError) -> bytes:
    return _encoder.encode({"error": {"code": error.code, "message": error.message, "data": error.data}})


# Doctor --------------------------------------------------------------------------------------------------------------


async def read_findings(args: Namespace) -> bytes:
    """Return the output of `memctl doctor --json`; raise `MemorydError` if it takes too long or prints nothing."""
    words = [*(["--socket", args.socket] if args.socket else []), "--json", "--no-autostart"]
    child = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "memoryd.client.programs.memctl", "doctor", *words),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        found, _ = await asyncio.wait_for(child.communicate(), DOCTOR_S)
    except TimeoutError:
        raise TimedOut(f"memctl doctor took more than {DOCTOR_S:.0f} s.") from None
    finally:
        if child.returncode is None:
            child.kill()
            await child.wait()
    if not found:
        raise MemorydError("memctl doctor printed nothing.")
    return found


# Events --------------------------------------------------------------------------------------------------------------


async def follow_events(client: AsyncClient) -> AsyncIterator[bytes]:
    """Yield events without end; `away` if no daemon answers, `open` as soon as one answers."""
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
    """Yield each event as a frame, and beats between events."""
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
    """Return the frame of one event; encoded JSON has no line breaks, so it is one line."""
    return b"event: " + name.encode() + b"\ndata: " + _encoder.encode(value) + b"\n\n"
