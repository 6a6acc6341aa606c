"""Makes a function that builds a call a method of both clients.

On a `Client` the method returns the result; on an `AsyncClient` it returns an awaitable of the result, and errors in
the arguments are raised when that is awaited.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

from memoryd.client.protocol import Call

P = ParamSpec("P")
R = TypeVar("R")


class SyncCaller(Protocol):
    """Builds and sends a call and returns its result."""

    def _send_built(self, build: Callable[[], Call[R]], /) -> R: ...


class AsyncCaller(Protocol):
    """Returns an awaitable that builds and sends a call and returns its result."""

    def _send_built(self, build: Callable[[], Call[R]], /) -> Awaitable[R]: ...


class method(Generic[P, R]):
    """A client's method: `build` makes the call, the client sends it."""

    def __init__(self, build: Callable[P, Call[R]]) -> None:
        self.build = build
        self.__doc__ = build.__doc__

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Any, P], R]: ...
    @overload
    def __get__(self, client: SyncCaller, owner: type) -> Callable[P, R]: ...
    @overload
    def __get__(self, client: AsyncCaller, owner: type) -> Callable[P, Awaitable[R]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        if client is None:
            return self.build

        def call(*args: P.args, **kwargs: P.kwargs) -> Any:
            return client._send_built(lambda: self.build(*args, **kwargs))

        call.__doc__ = self.build.__doc__
        call.__name__ = self.build.__name__
        return call
