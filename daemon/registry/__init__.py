"""Which function answers which call: `@handles(Method)` above a function registers it.

A handler takes the call as `call` and, by the names of its parameters, what else it needs of the call's `Context`:
`core`, `caller`, `report`, `sources`, `jobs`, `server`, `become`, `follow`, or `context` itself. It returns
the result, or a future of it while the writer works; one that reads long does so in parts. `dispatch.check` refuses to
start the daemon while a method has no handler.
"""

from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

from memoryd.client.protocol import DECLARED, Call, Progress, method_name

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

ReportProgress = Callable[[Progress], None]  # reports to a client how far its call is
Parts = Generator[None, None, R]  # yields after each part of the work, returns the result
Answer: TypeAlias = R | Future[R] | Parts[R]

HANDLERS: dict[type[Call[Any]], Callable[..., Any]] = {}


def handles(method: type[Call[Any]]) -> Callable[[F], F]:
    """Register the function below as the handler; raise `RuntimeError` for what is no method or has one already."""
    if method not in DECLARED:
        raise RuntimeError(f"put @rpc above {method.__name__} in {method.__module__}")

    def register(handler: F) -> F:
        if method in HANDLERS:
            raise RuntimeError(f"two handlers for {method_name(method)}")
        HANDLERS[method] = handler
        return handler

    return register


def finish(parts: Parts[R]) -> R:
    """Do all parts at once; return the result."""
    while True:
        try:
            next(parts)
        except StopIteration as end:
            result: R = end.value
            return result
