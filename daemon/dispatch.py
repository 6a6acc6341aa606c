"""Which function answers which call: an explicit table, checked when the daemon starts.

A method declares its lane (`@rpc`): `inline` runs on the event loop (shorter than a hop to a thread), `interactive` on
worker threads, `bulk` on one thread of its own, so that an import never stands before a search, `control` on another
one, so that a daemon whose workers are all busy still answers `status`.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from memoryd.client.protocol import METHODS, Call, Connected, MethodStats, Progress, Subscribed, Welcome, method_name
from memoryd.daemon.core import privacy
from memoryd.daemon.core.core import Core
from memoryd.daemon.core.view import View
from memoryd.daemon.lifecycle.runner import Runner
from memoryd.daemon.store.caller import Caller

Report = Callable[[Progress], None]

R = TypeVar("R")
C = TypeVar("C", bound=Call[Any])


class Context(NamedTuple):
    """What a handler gets beside its call.

    The core, how to report progress, what the server knows of itself, who calls, how the connection becomes somebody
    else's, who runs jobs, and how the client follows events, at most so many.
    """

    core: Core
    report: Report
    server: "ServerFacts"
    caller: Caller
    become: Callable[[Caller], None]
    jobs: Runner
    follow: "Callable[[View, int | None], Future[Subscribed]]"


class ServerFacts(NamedTuple):
    """What status and stats tell of the server, how to end it, how it greets a client of a version."""

    started_at: float
    socket: str
    connections: Callable[[], int]
    clients: Callable[[], list[Connected]]
    queued: Callable[[], dict[str, int]]
    methods: Callable[[], dict[str, MethodStats]]
    stop: Callable[[], None]
    restart: Callable[[], None]
    welcome: Callable[[str], Welcome]


Handler = Callable[[Context, Any], Any]


HANDLERS: dict[type[Call[Any]], Handler] = {}


def handles(
    method: type[Call[R]],
) -> Callable[[Callable[[Context, Any], "R | Future[R]"]], Callable[[Context, Any], "R | Future[R]"]]:
    """Register the handler of a method."""

    def register(handler: Callable[[Context, Any], "R | Future[R]"]) -> Callable[[Context, Any], "R | Future[R]"]:
        if method in HANDLERS:
            raise RuntimeError(f"two handlers for {method_name(method)}")
        HANDLERS[method] = handler
        return handler

    return register


def carry_out(context: Context, call: Call[R]) -> "R | Future[R]":
    """Hand a call to its handler without the credentials that it holds; the result tells which were taken out."""
    clean, redacted = context.core.privacy.cleaned(call)
    result: R | Future[R] = privacy.tell(HANDLERS[type(call)](context, clean), redacted)
    return result


def perform(context: Context, call: Call[R]) -> R:
    """Carry out a call of this process itself and wait for its result."""
    result = carry_out(context, call)
    return result.result() if isinstance(result, Future) else result


def check() -> None:
    """Refuse to start while a method of the contract has no handler."""
    missing = [method_name(method) for method in METHODS if method not in HANDLERS]
    if missing:
        raise RuntimeError(f"no handler for: {', '.join(missing)}")
