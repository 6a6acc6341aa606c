"""The thread of one shared root: it exchanges after a change here, when the server reports one, and every few seconds.

Threads: its own. `wake` and `close` are called by any, `wake` by the writer.
"""

import os
import random
import select
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress

import psycopg
from psycopg import sql

from memoryd.client.errors import Unavailable
from memoryd.daemon.config import SharedConfig
from memoryd.daemon.core.core import Core
from memoryd.daemon.shared import server
from memoryd.daemon.shared.engine import Engine
from memoryd.daemon.shared.questions import Askers
from memoryd.daemon.shared.reader import RootReader
from memoryd.daemon.shared.server import ServerConnection
from memoryd.daemon.shared.tables import shared
from memoryd.daemon.shared.tables.shared import Root

_LONGEST_PAUSE_S = 15.0  # while the server does not answer
_TOGETHER_S = 0.03  # changes within that are pushed together
_REPORT_S = 1.0  # between two looks, however many changes the server reports
_UNTOLD_S = 1.25  # after a report: the server reports none of the changes of the second that follows it


class EngineThread:
    """A root's engine and the thread that drives it."""

    def __init__(self, core: Core, root: Root, machine: str, settings: SharedConfig) -> None:
        self._core, self._settings = core, settings
        self.engine = Engine(core, root, machine, self._connect)
        self.engine.max_rows = settings.max_rows
        self._stopping = threading.Event()
        self._waiting, self._waker = socket.socketpair()
        self._waiting.setblocking(False)
        self._waker.setblocking(False)
        self._failures, self._next_at = 0, 0.0
        self._reported_at, self._channel = 0.0, ""  # on which it listens
        self._reader = RootReader(core, self.engine.root, self._open) if settings.max_rows or root.partial else None
        if self._reader is not None:
            core.state(Askers).by_root[root.name] = self._reader
        self._name = f"shared {root.name}"
        self._thread = core.supervisor.start(self._name, self._work, self._stopping)

    def wake(self) -> None:
        """Exchange soon: something changed here."""
        with suppress(BlockingIOError, OSError):  # it is awake already, or closed
            self._waker.send(b"!")

    def close(self) -> None:
        """End the thread, whatever it waits for."""
        self._stopping.set()
        self.wake()
        connected = self.engine.server
        if connected is not None:
            connected.give_up()
        self._thread.join()
        if self._reader is not None:
            self._core.state(Askers).by_root.pop(self.engine.root.name, None)
            self._reader.close()
        self.engine.close()
        self._waiting.close()
        self._waker.close()
        self._core.supervisor.forget(self._name)

    def _open(self) -> ServerConnection:
        root = self.engine.root
        return open_server(self._core, root.server, root.passfile)

    def _connect(self, root: Root) -> ServerConnection:
        self._channel = ""
        return self._open()

    def _listen(self) -> bool:
        """Listen where the server reports changes of the root; return whether that begins now.

        Another name is given when somebody was kept out.
        """
        connected, channel = self.engine.server, self.engine.channel
        if not self._settings.listen or connected is None or channel == self._channel:
            return False
        with suppress(psycopg.Error):  # it is polled then
            connected.run("UNLISTEN *")
            connected.run(sql.SQL("LISTEN {}").format(sql.Identifier(channel)))
            self._channel, self._reported_at = channel, time.monotonic()
            self._next_at = 0.0  # nobody reported what was changed before
        return self._channel == channel

    def _work(self) -> float:
        """Wait until there is something to exchange, exchange it."""
        is_own = self._wait()
        if self._stopping.is_set():
            return 0.0
        began_at = time.monotonic()
        answered = self.engine.exchange_all(pull=not is_own)
        begins = answered and self._listen()
        self._failures = 0 if answered else self._failures + 1
        pause_s = self._settings.poll_s * min(2.0 ** max(0, self._failures - 1), 2.0**10)
        if begins or (is_own and answered):  # the next pull is due as it was
            return 0.0
        if self.engine.has_more:
            return 0.0
        spread = random.uniform(0.8, 1.2)  # machines that started together do not ask together
        self._next_at = time.monotonic() + min(pause_s, max(_LONGEST_PAUSE_S, self._settings.poll_s)) * spread
        if answered and began_at < self._reported_at + _UNTOLD_S:
            self._next_at = min(self._next_at, self._reported_at + _UNTOLD_S)
        return 0.0

    def _wait(self) -> bool:
        """Wait until an exchange is due; return whether that is for a change here alone, which is to be pushed."""
        while not self._stopping.is_set():
            left_s = self._next_at - time.monotonic()
            if left_s <= 0:
                return False
            connected = self.engine.server
            listening = [connected.connection] if connected and connected.is_open and self._channel else []
            if self._has_heard(listening):
                self._next_at = min(self._next_at, self._reported_at + _REPORT_S)
                self._reported_at = time.monotonic()
                continue
            waited: list[socket.socket | psycopg.Connection[object]] = [self._waiting, *listening]
            ready, _, _ = select.select(waited, [], [], left_s)
            if len(ready) > (self._waiting in ready):
                continue
            if ready and not self._failures:
                self._stopping.wait(_TOGETHER_S)
                self._drain()
                with self._core.store.reading() as connection:
                    if shared.read_dirty(connection, self.engine.root.id, 1):
                        return True
            elif ready:  # the server does not answer: what was changed waits with the rest
                self._drain()
        return False

    def _has_heard(self, listening: Sequence[psycopg.Connection[object]]) -> bool:
        """Return whether the server reported changes, also during an exchange, or is gone."""
        try:
            return sum(1 for one in listening for _ in one.notifies(timeout=0)) > 0
        except psycopg.Error:  # the next exchange finds that the connection was lost
            return True

    def _drain(self) -> None:
        with suppress(BlockingIOError):
            while self._waiting.recv(4096):
                pass


def open_server(core: Core, address: str, passfile: str) -> ServerConnection:
    """Connect to a server, unless this machine is to stay offline."""
    if core.config.network.offline and not server.is_here(address):
        raise Unavailable("This machine is to stay offline ([network] offline).")
    return server.connect(address, os.path.expanduser(passfile))
