"""The pool of reading connections: a read borrows an idle one, or a new one if all are in use.

So there are as many connections as concurrent reads, however many threads come and go; up to `_MOST_IDLE` idle ones are
kept. If no more can be opened, because the process has no free descriptors, a read waits until another one ends.

Threads: any. A thread has one snapshot at a time, on a connection that no other thread uses meanwhile.
"""

import threading
from contextlib import suppress
from pathlib import Path

import apsw

from memoryd.client.errors import Unavailable
from memoryd.daemon.store.connection import BUSY_TIMEOUT_MS, open_reader

_MOST_IDLE = 8  # each has two descriptors and up to 2 MB of pages


class Readers:
    """The readers of one database."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._changed = threading.Condition()
        self._idle: list[apsw.Connection] = []  # the one used last is lent first: its cached pages are the latest
        self._lent: dict[int, apsw.Connection] = {}  # by thread
        self._closed = False

    def take(self) -> apsw.Connection:
        """Lend this thread a connection, until it gives it back."""
        thread = threading.get_ident()
        with self._changed:
            if thread in self._lent:
                raise RuntimeError("This thread is reading already.")
            if connection := self._find_idle():
                self._lent[thread] = connection
                return connection
        try:
            connection = open_reader(self._path)
        except apsw.Error:
            with self._changed:
                # Until a connection is idle, or none will be.
                if not self._changed.wait_for(
                    lambda: self._idle or self._closed or not self._lent, BUSY_TIMEOUT_MS / 1000
                ):
                    raise
                connection = self._find_idle()
                if connection is None:
                    raise
        with self._changed:
            self._lent[thread] = connection
        return connection

    def give_back(self, connection: apsw.Connection) -> None:
        """Keep the connection of this thread for the next read.

        A connection with an unfinished statement is closed, since the next read would get its old snapshot.
        """
        with self._changed:
            del self._lent[threading.get_ident()]
            self._changed.notify()
            is_wanted = not self._closed and len(self._idle) < _MOST_IDLE
            if is_wanted and connection.txn_state("main") == apsw.SQLITE_TXN_NONE:
                self._idle.append(connection)
                return
        connection.close()

    def interrupt(self, thread: int) -> None:
        """Interrupt the statement that a thread reads with, if there is one."""
        with self._changed:
            if thread in self._lent:
                self._lent[thread].interrupt()

    def close(self) -> None:
        """Close all connections."""
        with self._changed:
            self._closed = True
            connections = [*self._idle, *self._lent.values()]
            self._idle.clear()
            self._changed.notify_all()
        for connection in connections:
            with suppress(apsw.ThreadingViolationError):  # a call that could not be ended still uses it
                connection.close()

    def _find_idle(self) -> apsw.Connection | None:
        """Return an idle connection, None if there is none; raise `Unavailable` after `close`."""
        if self._closed:
            raise Unavailable("The daemon is stopping.")
        return self._idle.pop() if self._idle else None
