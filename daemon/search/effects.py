"""Side effects of searches and reads: access counts, the hot buffer, pairs for the graph, memories given to a session.

A search queues them in microseconds; a thread applies them after the reply, for many searches in one transaction. A
crash loses the queue, which contains statistics but no memories.
"""

import logging
import threading
import time
from collections import Counter
from typing import NamedTuple

from memoryd.client.errors import MemorydError
from memoryd.daemon.rooms import list_rooms
from memoryd.daemon.store import rows
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.writer import Transaction
from memoryd.daemon.tiers.hot import HotBuffer
from memoryd.daemon.tiers.recalls import Recalls

SOON_S = 0.2  # after a search, its marks are applied in RAM, and on disk unless they were written recently
PAUSE_S = 2.0  # between two writes, since each write invalidates the page caches of all readers
_MAX_QUEUED = 4096  # searches; the marks of further ones are dropped

log = logging.getLogger(__name__)


class Mark(NamedTuple):
    """The side effects of one search: the rows returned (best first), and those relevant enough to be paired.

    `accessed` are the rows whose accesses are counted: the relevant ones, or one that was read by its id.
    """

    namespace: str
    session: str
    at: float
    rows: tuple[int, ...]
    met: tuple[int, ...]
    accessed: tuple[int, ...]


class Effects:
    """The queue of marks, and the thread that applies them."""

    def __init__(self, store: Store, hot: HotBuffer, recalls: Recalls) -> None:
        self._store, self._hot, self._recalls = store, hot, recalls
        self._queued: list[Mark] = []
        self._unwritten: list[Mark] = []
        self._written_at = 0.0
        self._wake, self._closing = threading.Event(), threading.Event()
        self._one = threading.Lock()  # one batch at a time
        self._taking = threading.Lock()  # guards the two lists; taken within `_one`, and never held during a write
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the thread."""
        self._thread = self._store.supervisor.start("effects", self._work, self._closing, self._wake)

    def note(self, mark: Mark) -> None:
        """Queue the mark of a search."""
        if (mark.rows or mark.accessed) and len(self._queued) < _MAX_QUEUED:
            self._queued.append(mark)
            self._wake.set()

    def take_in(self) -> None:
        """Apply the queued marks in RAM (hot buffer and sessions) without writing; on an error they stay queued."""
        with self._taking:
            marks, self._queued = self._queued, []
            try:
                for mark in (one for one in marks if one.session):
                    with self._store.reading() as connection:
                        hits: list[rows.Row] = list(rows.read_rows(connection, mark.rows).values())
                    # A search may have had a wider reach than its namespace; other memories cannot be repeated there.
                    reach = self._store.namespaces.reach(mark.namespace, None)
                    visible = [row for row in hits if reach is None or row.namespace in reach]
                    self._recalls.note(mark.namespace, mark.session, visible)
            except BaseException:
                self._queued = marks + self._queued
                raise
            for mark in (one for one in marks if one.rows):
                self._hot.put(mark.namespace, reversed(mark.rows))
            self._unwritten += marks

    def flush(self) -> None:
        """Apply all queued marks and wait until they are on disk."""
        with self._one:
            self.take_in()
            self._write_down()

    def close(self) -> None:
        """End the thread, and apply the rest."""
        self._closing.set()
        self._wake.set()
        if self._thread:
            self._thread.join()
        self.flush()

    def _work(self) -> float | None:
        if self._queued or self._unwritten:
            self._closing.wait(SOON_S)
            with self._one:
                self.take_in()
                if time.monotonic() - self._written_at >= PAUSE_S:
                    self._write_down()
        return PAUSE_S if self._unwritten else None

    def _write_down(self) -> None:
        with self._taking:
            marks, self._unwritten = self._unwritten, []
        self._written_at = time.monotonic()
        if not marks:
            return
        accesses = Counter(row for mark in marks for row in mark.accessed)
        last = {row: mark.at for mark in sorted(marks, key=lambda mark: mark.at) for row in mark.accessed}

        def write(transaction: Transaction) -> None:
            connection = transaction.connection
            rows.count_accesses(connection, ((row, count, last[row]) for row, count in accesses.items()))
            for room in list_rooms():
                room.note_searches(connection, [mark.met for mark in marks])

        try:
            self._store.write(write).result()
        except MemorydError as error:
            log.warning("the marks of %d searches were lost: %s", len(marks), error)
