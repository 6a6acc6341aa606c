"""The server on the socket: its connections, the lanes that run their calls, start and stop.

It runs on one asyncio loop; `connection.py` handles a single connection.
"""

import asyncio
import socket
import time
from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

from memoryd.client.errors import Unavailable
from memoryd.client.protocol import Call, Subscribed
from memoryd.client.protocol.base import MAX_QUEUED
from memoryd.daemon.core.core import Core
from memoryd.daemon.jobs.runner import Runner
from memoryd.daemon.rooms import list_rooms
from memoryd.daemon.server.connection import Connection
from memoryd.daemon.server.dispatch import CallContext, ServerFacts, perform
from memoryd.daemon.server.envelope import stopping_error
from memoryd.daemon.server.lanes import Lane, LaneWork
from memoryd.daemon.server.meters import Meters
from memoryd.daemon.server.subscriptions import Subscriptions
from memoryd.daemon.server.succession import Succession
from memoryd.daemon.server.view import EventView
from memoryd.daemon.store.caller import USER
from memoryd.daemon.system.listen import BACKLOG, open_bound

WORKERS = 4  # threads of the interactive lane
MAX_QUEUED_BULK = 16
DRAIN_S = 2.0  # time for running calls to finish at a stop
_POLL_S = 0.01
_CROWDED_S = 0.2
_PART_S = 0.5  # time for long calls to finish their current part and reply

R = TypeVar("R")


class Server:
    """Accepts connections on a listening socket and answers calls until it is stopped."""

    def __init__(self, core: Core, listener: socket.socket, stop: Callable[[], None], jobs: Runner) -> None:
        self.core, self.jobs = core, jobs
        self.served_at = 0.0  # when the latest call began
        core.crowded, core.awaited = self._is_crowded, self._is_awaited
        self.meters = Meters()
        self.subscriptions = Subscriptions(core)
        self.connections: set[Connection] = set()
        self.leaving: set[Connection] = set()
        self.received_bytes = 0
        self.draining = self.restarting = False
        self._stop, self._succession = stop, Succession(core.store, self._restart_soon)
        self._started_at = time.monotonic()
        self._listener = listener
        self._lanes = {
            "interactive": Lane("interactive", WORKERS, MAX_QUEUED),
            "bulk": Lane("bulk", 1, MAX_QUEUED_BULK, nice=True),
            "control": Lane("control", 1, MAX_QUEUED),
        }
        self.facts = ServerFacts(
            started_at=self._started_at,
            socket=str(listener.getsockname()),
            connections=lambda: len(self.connections),
            clients=lambda: [connection.describe() for connection in self.connections.copy()],
            queued=self._count_queued,
            methods=self.meters.read,
            stop=self._end,
            restart=self._restart,
            welcome=lambda version: self._succession.greet(version, time.monotonic() - self._started_at),
        )
        self._asyncio_server: asyncio.Server | None = None
        self._bound: list[asyncio.Server] = []  # of sockets that are bound to a token

    async def start(self) -> None:
        """Begin to accept connections."""
        self.loop = asyncio.get_running_loop()
        for room in list_rooms():
            await asyncio.to_thread(room.start, self.core)
        # Not `create_unix_server`: from Python 3.13 on it removes the socket's file at the end, even if a successor
        # has made it. A duplicate, because asyncio closes its socket: clients that connect meanwhile wait in the
        # queue of the original.
        self._asyncio_server = await self.loop.create_server(
            lambda: Connection(self), sock=self._listener.dup(), backlog=BACKLOG
        )
        for path, name in self.core.config.access.sockets.items():
            bound = partial(Connection, self, partial(self.core.tokens.find_named, name))
            self._bound.append(await self.loop.create_server(bound, sock=open_bound(Path(path)), backlog=BACKLOG))

    async def stop(self) -> None:
        """Accept no more connections, let running calls finish within `DRAIN_S`, and close.

        A call that runs in parts then ends after its current part, and its reply says how much is stored. Each client
        without a pending call gets a farewell before its stream ends. A client that sends a call just then knows by the
        farewell that the call was not run, and sends it again to the successor.
        """
        self.draining = True
        for server in (self._asyncio_server, *self._bound):
            if server:
                server.close()
        self.subscriptions.close(stopping_error())
        await asyncio.to_thread(self.jobs.close)
        for room in list_rooms():
            await asyncio.to_thread(room.stop, self.core)
        give_up_at = time.monotonic() + DRAIN_S
        await self._wait_until_quiet(give_up_at)
        self.core.end_calls()
        give_up_at = max(give_up_at, time.monotonic() + _PART_S)
        for lane in self._lanes.values():
            await asyncio.to_thread(lane.run_waiting)
        await self._wait_until_quiet(give_up_at)
        for connection in list(self.connections):
            connection.close_when_sent()
        while self.connections and time.monotonic() < give_up_at:  # until the replies are sent
            await asyncio.sleep(_POLL_S)
        for connection in [*self.connections, *self.leaving]:
            connection.abort()
        give_up_at = time.monotonic() + _PART_S
        ended = [await asyncio.to_thread(lane.close, give_up_at - time.monotonic()) for lane in self._lanes.values()]
        self.core.has_ended &= all(ended)

    async def _wait_until_quiet(self, give_up_at: float) -> None:
        while any(connection.in_flight for connection in self.connections) and time.monotonic() < give_up_at:
            await asyncio.sleep(_POLL_S)

    def _end(self) -> None:
        """Stop, and refuse all calls from now on, so that a client's next call reaches the next daemon."""
        self.draining = True
        self._stop()

    def _restart(self) -> None:
        self.restarting = True
        self._end()

    def _restart_soon(self) -> None:
        with suppress(RuntimeError):  # the loop has ended
            self.loop.call_soon_threadsafe(lambda: None if self.draining else self._restart())

    def perform(self, call: Call[R]) -> R:
        """Run a call that the daemon itself makes, on the calling thread; wait for the result."""
        parts = self.core, lambda event: None, self.facts, USER, lambda caller: None, self.jobs, _refuse
        return perform(CallContext(*parts), call)

    def _is_crowded(self) -> bool:
        """Return whether clients are being served, so that background work should wait."""
        lately = time.monotonic() - self.served_at < _CROWDED_S
        return lately or any(lane.count() for lane in self._lanes.values())

    def _is_awaited(self) -> bool:
        return self._lanes["interactive"].count() > 0

    def submit(self, lane: str, work: LaneWork, client: Connection) -> None:
        """Run a client's work on a lane, which may refuse with `Busy`."""
        self._lanes[lane].submit(work, client)

    def forget(self, client: Connection) -> None:
        """Drop the waiting calls of a client that has disconnected."""
        for lane in self._lanes.values():
            lane.drop(client)

    def _count_queued(self) -> dict[str, int]:
        waiting = {name: lane.count() for name, lane in self._lanes.items()}
        return {**waiting, "writes": self.core.store.writer.count_waiting()}


def _refuse(view: EventView, limit: int | None) -> "Future[Subscribed]":
    """Raise `Unavailable`, because a call of the daemon itself has no client to send events to."""
    raise Unavailable("Only a client can follow events.")
