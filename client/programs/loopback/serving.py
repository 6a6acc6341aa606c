"""The HTTP server: its port, its limits of connections, how it stops."""

import asyncio
import errno
import signal
import socket
from collections.abc import Callable

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from memoryd.client.errors import MemorydError
from memoryd.client.programs.loopback.guard import ADDRESS, SIGNED_IN

REQUEST_S = 5.0  # time limit for a request with its body
MAX_STRANGERS = 256  # connections that are not signed in
BACKLOG = 64  # connections accepted at once; few, so that a new one is read before it is among the oldest
END_S = 1  # time for open requests at the end; streams would never end by themselves


class _Protocol(H11Protocol):
    """A connection, which is closed if a request is not complete in time: anybody on the machine can open one.

    uvicorn closes only connections that are idle after an answer (`timeout_keep_alive`), and of too many connections it
    refuses the newest one (`limit_concurrency`), which could be the user's. Here the oldest one is closed that is not
    signed in.
    """

    _made_at = 0.0
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._made_at = self.loop.time()
        self._start_timer(REQUEST_S)
        strangers = [one for one in self.connections if isinstance(one, _Protocol) and one._is_stranger()]
        if len(strangers) > MAX_STRANGERS:
            min(strangers, key=lambda one: one._made_at).transport.abort()

    def on_response_complete(self) -> None:
        """Wait for the next request; a client with the token may leave the connection idle until then."""
        # Before the parent's method, which may start a request that is already there.
        self._start_timer(REQUEST_S if self._is_stranger() else REQUEST_S + self.timeout_keep_alive)
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        super().connection_lost(exc)
        if self._late:
            self._late.cancel()

    def _is_stranger(self) -> bool:
        signed_in = self.scope is not None and SIGNED_IN in self.scope
        return not signed_in and not self.transport.is_closing()

    def _start_timer(self, limit_s: float) -> None:
        if self._late:
            self._late.cancel()
        self._late = self.loop.call_later(limit_s, self._drop_late)

    def _drop_late(self) -> None:
        if self.cycle is None or self.cycle.response_complete or self.cycle.more_body:
            self.transport.abort()


def bind_port(*ports: int) -> socket.socket:
    """Return a socket that listens on the first of these ports of 127.0.0.1 that is free; 0 is any free one."""
    for port in ports:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((ADDRESS, port))
            listener.listen()  # clients that connect before the server runs wait in the queue
            return listener
        except OSError as error:
            listener.close()
            reason, is_held = error.strerror, error.errno == errno.EADDRINUSE
    who = " The program that listens there receives the tokens of its callers; `ss -ltne` shows whose it is."
    raise MemorydError(f"Port {ports[0]} of {ADDRESS} cannot be used: {reason}.{who if is_held else ''}")


def make_config(app: ASGIApp, idle_s: int) -> uvicorn.Config:
    """Return the settings of a server; it closes connections that are idle for `idle_s` after an answer."""
    return uvicorn.Config(
        app,
        http=_Protocol,
        ws="none",
        loop="asyncio",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=idle_s,
        timeout_graceful_shutdown=END_S,
    )


class _Server(uvicorn.Server):
    """A server that reports when it is ready; only from then on a signal stops it properly."""

    def __init__(self, config: uvicorn.Config, announce: Callable[[], None]) -> None:
        super().__init__(config)
        self._announce = announce

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._announce()


async def serve_app(app: ASGIApp, listener: socket.socket, idle_s: int, announce: Callable[[], None]) -> None:
    """Serve until Ctrl-C or SIGTERM; call `announce` as soon as requests are answered."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # uvicorn stops at these signals, and then raises them again
    await _Server(make_config(app, idle_s), announce).serve(sockets=[listener])
