"""What a call passes on its way to its handler (`registry.HANDLERS`), and what the handler gets beside it.

A method declares its lane (`@rpc`): `inline` runs on the event loop (shorter than a hop to a thread), `interactive` on
worker threads, `bulk` on one thread of its own, so that an import never delays a search, `control` on another
one, so that a daemon whose workers are all busy still answers `status`.

A handler with long work yields after each part: the worker then serves other clients first, and does not go on if the
client has left meanwhile.
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
    """What a handler gets beside its call, as far as its parameters name it.

    `report` sends progress, `server` is what the server knows of itself, `become` binds the connection to another
    caller, `jobs` runs jobs, `follow` streams at most so many events (None: without end), `process` is the client's.
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
        """All of it, for a handler that needs most."""
        return self

    @property
    def sources(self) -> Sources:
        """What a search draws from; for a bound caller it says who asks."""
        sources = self.core.sources
        return sources._replace(caller=self.caller) if self.caller.bound else sources


class ServerFacts(NamedTuple):
    """What `status` and `stats` report of the server, how to end or restart it, how it greets a client of a version."""

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
    """Hand a call to its handler without the credentials that it holds; the result names what was removed."""
    clean, redacted = _clean(context.core, call)
    handler = HANDLERS[type(call)]
    needs = {name: getattr(context, name) for name in _read_needs(handler)}
    actor = Actor(context.caller.name, getattr(clean, "session", None) or "", context.process)
    with act_as(actor):
        result: Answer[R] = _note_redacted(handler(call=clean, **needs), redacted)
    return _run_as(context, actor, result) if isinstance(result, Generator) else result


def _clean(core: Core, call: Call[R]) -> tuple[Call[R], protocol.Redacted]:
    """Return a call as rooms let it pass, and what was taken out of it."""
    redacted: protocol.Redacted = {}
    for room in list_rooms():
        call, removed = room.clean(core, call)
        redacted |= removed
    return call, redacted


def _note_redacted(result: Any, redacted: protocol.Redacted) -> Any:
    """Note in a result, or in the one that a future or the last part will give, what was taken out of the call."""
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
    """Yield the parts of a long call, each in the name of its actor, on any thread, while its token is in force."""
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
    """Run a call of this process itself and wait for its result."""
    result = run_call(context, call)
    if isinstance(result, Generator):
        result = finish(result)
    return result.result() if isinstance(result, Future) else result


def check() -> None:
    """Refuse to start while a method has no handler, or one with a parameter that `CallContext` does not have."""
    missing = [method_name(method) for method in protocol.METHODS if method not in HANDLERS]
    if missing:
        raise RuntimeError(f"no handler for: {', '.join(missing)}")
    list_stages()  # it raises where a room's stage follows none
    for method, handler in HANDLERS.items():
        if unknown := [name for name in _read_needs(handler) if not hasattr(CallContext, name)]:
            raise RuntimeError(f"the handler of {method_name(method)} takes {unknown[0]!r}, which no CallContext has")
