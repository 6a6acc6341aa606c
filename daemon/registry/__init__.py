"""The handlers of calls: `@handles(Method)` above a function registers it as the handler of a method.

A handler takes the call as `call`. Its other parameters name the fields of the call's `Context` that it needs:
`core`, `caller`, `report`, `sources`, `jobs`, `server`, `become`, `follow`, or `context` itself. It returns
the result, or a future if the writer produces it; a long read is split into parts. If a method has no handler,
`dispatch.check` does not let the daemon start.
"""

from collections.abc import Callable, Generator
from concurrent.futures import Future
from typing import Any, TypeAlias, TypeVar

from memoryd.client.protocol import DECLARED, Call, Progress, method_name

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

ReportProgress = Callable[[Progress], None]  # reports the progress of a call to its client
Parts = Generator[None, None, R]  # yields after each part of the work, returns the result
Answer: TypeAlias = R | Future[R] | Parts[R]

HANDLERS: dict[type[Call[Any]], Callable[..., Any]] = {}


def handles(method: type[Call[Any]]) -> Callable[[F], F]:
    """Register the function below as the handler; raise `RuntimeError` if it is no method, or has a handler already."""
    if method not in DECLARED:
        raise RuntimeError(f"put @rpc above {method.__name__} in {method.__module__}")

    def register(handler: F) -> F:
        if method in HANDLERS:
            raise RuntimeError(f"two handlers for {method_name(method)}")
        HANDLERS[method] = handler
        return handler

    return register


def finish(parts: Parts[R]) -> R:
    """Run all parts without pauses; return the result."""
    while True:
        try:
            next(parts)
        except StopIteration as end:
            result: R = end.value
            return result
