"""Pass calls to their handlers (`registry.HANDLERS`), with the context that each handler needs.

A method declares its lane (`@rpc`). `inline` runs on the event loop, for calls that take less time than a change of
threads. `interactive` runs on worker threads. `bulk` has one thread of its own, so that an import never delays a
search, and `control` has another one, so that a daemon whose workers are all busy still answers `status`.

A handler with long work yields after each part: the worker then serves other clients first, and does not continue if
the client has left.
"""

import functools
import inspect
from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from memoryd.client import protocol
from memoryd.client.protocol import Call, Subscribed, method_name
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.registry import HANDLERS, Answer, Parts, ReportProgress, finish
from memoryd.daemon.rooms import list_rooms
from memoryd.daemon.search.pipeline import list_stages
from memoryd.daemon.search.retrieval import Sources
from memoryd.daemon.server.view import EventView
from memoryd.daemon.store.actor import Actor, act_as
from memoryd.daemon.store.caller import Caller

R = TypeVar("R")


class CallContext(NamedTuple):
    """The context of a call. A handler gets the fields that its parameters name.

    `report` sends progress, `server` describes and stops the server, `become` binds the connection to another caller,
    `jobs` runs jobs, `follow` streams up to a number of events (None: no limit), `process` is the client's process.
    """

    core: Core
    report: ReportProgress
    server: "ServerFacts"
    caller: Caller
    become: Callable[[Caller], None]
    jobs: Runner
    follow: "Callable[[EventView, int | None], Future[Subscribed]]"
    process: str = ""

    @property
    def context(self) -> "CallContext":
        """All fields, for a handler that needs most of them."""
        return self

    @property
    def sources(self) -> Sources:
        """The sources of a search, with the caller if it is bound to a namespace."""
        sources = self.core.sources
        return sources._replace(caller=self.caller) if self.caller.bound else sources


class ServerFacts(NamedTuple):
    """What `status` and `stats` report about the server, and the functions that stop, restart and greet."""

    started_at: float
    socket: str
    connections: Callable[[], int]
    clients: Callable[[], list[protocol.Connected]]
    queued: Callable[[], dict[str, int]]
    methods: Callable[[], dict[str, protocol.MethodStats]]
    stop: Callable[[], None]
    restart: Callable[[], None]
    welcome: Callable[[str], protocol.Welcome]


def run_call(context: CallContext, call: Call[R]) -> Answer[R]:
    """Pass a call to its handler without the credentials that it contains; the result says what was removed."""
    clean, redacted = _clean(context.core, call)
    handler = HANDLERS[type(call)]
    needs = {name: getattr(context, name) for name in _read_needs(handler)}
    actor = Actor(context.caller.name, getattr(clean, "session", None) or "", context.process)
    with act_as(actor):
        result: Answer[R] = _note_redacted(handler(call=clean, **needs), redacted)
    return _run_as(context, actor, result) if isinstance(result, Generator) else result


def _clean(core: Core, call: Call[R]) -> tuple[Call[R], protocol.Redacted]:
    """Return a call as cleaned by the rooms, and the kinds of the removed texts."""
    redacted: protocol.Redacted = {}
    for room in list_rooms():
        call, removed = room.clean(core, call)
        redacted |= removed
    return call, redacted


def _note_redacted(result: Any, redacted: protocol.Redacted) -> Any:
    """Record what was removed from the call in its result, or in the later result of a future or a generator."""
    if not redacted:
        return result
    if isinstance(result, Generator):
        return _note_at_end(result, redacted)
    if isinstance(result, Future):
        result.add_done_callback(lambda done: done.exception() or _note_redacted(done.result(), redacted))
    elif "redacted" in result.__struct_fields__:
        result.redacted = redacted
    return result


def _note_at_end(parts: Parts[Any], redacted: protocol.Redacted) -> Parts[Any]:
    return _note_redacted((yield from parts), redacted)


def _run_as(context: CallContext, actor: Actor, parts: Parts[R]) -> Parts[R]:
    """Yield the parts of a long call, each on any thread in the name of its actor, as long as the token is valid."""
    tokens, caller = context.core.tokens, context.caller
    try:
        while True:
            with act_as(actor):
                part = parts.throw(tokens.refuse()) if caller.key and not tokens.is_valid(caller) else next(parts)
            yield part
    except StopIteration as end:
        result: R = end.value
        return result


@functools.cache
def _read_needs(handler: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of a handler's parameters other than its call."""
    return tuple(name for name in inspect.signature(handler).parameters if name != "call")


def perform(context: CallContext, call: Call[R]) -> R:
    """Run a call that the daemon itself makes and wait for the result."""
    result = run_call(context, call)
    if isinstance(result, Generator):
        result = finish(result)
    return result.result() if isinstance(result, Future) else result


def check() -> None:
    """Raise `RuntimeError` if a method has no handler, or a handler has a parameter that `CallContext` lacks."""
    missing = [method_name(method) for method in protocol.METHODS if method not in HANDLERS]
    if missing:
        raise RuntimeError(f"no handler for: {', '.join(missing)}")
    list_stages()  # raises if a room's stage follows one that does not exist
    for method, handler in HANDLERS.items():
        if unknown := [name for name in _read_needs(handler) if not hasattr(CallContext, name)]:
            raise RuntimeError(f"the handler of {method_name(method)} takes {unknown[0]!r}, which `CallContext` lacks")
