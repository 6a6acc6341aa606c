"""The store: the SQLite database with its writer thread and its pool of readers.

`reading()` lends a connection for one snapshot (`readers`). `write(job)` queues a job for the writer thread and returns
a future that finishes when the job is on disk.
"""

import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

import apsw
import msgspec
import numpy as np
from numpy.typing import NDArray

from memoryd.client.errors import MemorydError, StorageFailed
from memoryd.daemon.store import codes, damage, database_settings, extraction, fulltext, hashes, reserve, vectors
from memoryd.daemon.store.codes import LoadedCodes
from memoryd.daemon.store.connection import (
    CHECKING_CACHE,
    DAMAGE,
    REPAIR_ADVICE,
    WAYS_OUT,
    close,
    make_durable,
    open_reader,
    open_writer,
    read_pragma,
)
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.migrations import migrate
from memoryd.daemon.store.namespaces import NamespaceTable
from memoryd.daemon.store.readers import Readers
from memoryd.daemon.store.reserve import Reserve, is_disk_full
from memoryd.daemon.store.writer import Transaction, Writer
from memoryd.daemon.system.presence import hold
from memoryd.daemon.system.supervisor import Supervisor

T = TypeVar("T")

log = logging.getLogger(__name__)

_MOST_CHANGED = 10_000  # rows
_ADVISED_S = 60.0  # how long the advice on what to remove is cached

FILE_NAME = "memoryd.sqlite"

# Errors of SQLite that callers handle themselves: a passed deadline, a damaged full-text index.
Interrupted = apsw.InterruptError
Damaged = (StorageFailed, apsw.SQLError)


class Derived(Protocol):
    """The data in RAM that is derived from memories and updated with each commit; implemented in `arrays/arrays.py`."""

    def read(self, connection: apsw.Connection) -> None:
        """Read the data from the database; raise `apsw.CorruptError` if that is damaged."""

    def note_snapshot(self) -> None:
        """Register the start of a reader."""

    def follow(self, connection: apsw.Connection, rows: set[int], texts: set[int]) -> None:
        """Update changed memories and texts. Threads: the writer."""

    def warm_up(self, reading: Callable[[], AbstractContextManager[apsw.Connection]], closing: threading.Event) -> None:
        """Preload data for searches until `closing` is set."""


class Store:
    """The database of one data directory."""

    def __init__(self, folder: Path, limit_bytes: int = 0, derived: Derived | None = None) -> None:
        """Open the database of a folder; it may grow to `limit_bytes`, 0: without a limit."""
        self.derived = derived
        self.path, self.limit_bytes = folder / FILE_NAME, limit_bytes
        self._codes = codes.take(self.path)
        self._advice, self._advised_until = "", 0.0
        self._changed: set[int] | None = set()  # rows whose vectors may have changed since the start; None: all
        self.reserve = Reserve(folder)
        self.supervisor = Supervisor()
        self._connection = connection = self._open_with_reserve()
        self.files = hold([self.path, self.path.with_name(f"{FILE_NAME}-wal")])
        most = reserve.max_pages(limit_bytes, self._page_bytes)
        self.writer = Writer(connection, self._follow_commit, self._room_error, most, self.supervisor, self.reserve)
        self.writer.files = self.files
        self.readers = Readers(self.path)
        self.copying = threading.Lock()  # held while a copy is made or something is erased
        self._warming: threading.Thread | None = None
        self._warmed, self._closing = threading.Event(), threading.Event()

    def _open_with_reserve(self) -> apsw.Connection:
        """Open the database; on a full disk, free the reserve for that."""
        try:
            return self._open()
        except StorageFailed as error:
            if self.reserve.release():
                return self._open()
            message = f"{error.message} The disk is full." if is_disk_full(self.path.parent) else error.message
            raise StorageFailed(message) from None

    def _open(self) -> apsw.Connection:
        """Open the database for the writer and read the data for RAM; raise `StorageFailed`."""
        connection = open_writer(self.path)
        try:
            migrate(connection)
            make_durable(connection)
            self._page_bytes = read_pragma(connection, "page_size")
            self.used_bytes = self._used_size(connection)
            self.namespaces = NamespaceTable(connection)
            if self.derived:
                self.derived.read(connection)
        except BaseException as error:
            connection.close()
            if isinstance(error, apsw.Error):
                advice = f" {WAYS_OUT}" if isinstance(error, DAMAGE) else ""
                raise StorageFailed(f"The database {self.path} cannot be used: {error}.{advice}") from None
            raise
        return connection

    @contextmanager
    def reading(self) -> Iterator[apsw.Connection]:
        """Lend this thread a reader with one snapshot of the database."""
        connection = self.readers.take()
        try:
            if self.derived:
                self.derived.note_snapshot()
            connection.execute("BEGIN")
            yield connection
        except DAMAGE as error:
            log.error("a part of the database cannot be read: %s", error)
            raise StorageFailed(f"A part of the database is damaged. {REPAIR_ADVICE}") from error
        except apsw.IOError as error:
            log.error("the database cannot be read: %s", error)
            raise StorageFailed(f"The database cannot be read: {error}.") from error
        finally:
            try:
                if connection.in_transaction:  # SQLite itself ends it after some errors
                    connection.execute("ROLLBACK")
            finally:
                self.readers.give_back(connection)

    def _follow_commit(self, connection: apsw.Connection, rows: set[int], texts: set[int]) -> None:
        """Record changed memories and update derived data. Threads: the writer."""
        if self._changed is not None:
            self._changed |= rows
            if len(self._changed) > _MOST_CHANGED or self.writer.touched_vectors:
                self._changed = None
        if self.derived:
            self.derived.follow(connection, rows, texts)
        if self.limit_bytes:
            self.used_bytes = self._used_size(connection)

    def take_codes(self) -> LoadedCodes | None:
        """Return the codes that the last daemon saved, only once."""
        codes, self._codes = self._codes, None
        return codes

    def take_changed(self) -> set[int] | None:
        """Return the rows that were changed since the database was opened, None if unknown; only once."""
        rows, self._changed = self._changed, None
        return None if rows is None else rows.copy()

    def is_full(self) -> bool:
        """Return whether the database has reached its limit; memories can then be read and deleted, but not added."""
        return bool(self.limit_bytes) and self.used_bytes >= self.limit_bytes

    def check_room(self) -> None:
        """Raise `StorageFull` when the database has reached its limit, `StorageFailed` on a full disk."""
        if self.reserve.is_spent():
            raise self.reserve.build_error()
        if self.is_full():
            raise reserve.limit_error(self.limit_bytes, self.used_bytes, self._advise())

    def check_room_for_turns(self) -> None:
        """Raise `StorageFull` when the remaining room is reserved for memories that are added on purpose."""
        if self.limit_bytes and self.used_bytes + self._count_coming() >= reserve.TURNS_SHARE * self.limit_bytes:
            raise reserve.turns_error(self.limit_bytes, self.used_bytes, self._advise())

    def _count_coming(self) -> int:
        """Estimate how many bytes the memories made of the present turns will take; 0 if there is plenty of room."""
        if self.used_bytes < reserve.PLENTY_SHARE * self.limit_bytes:
            return 0
        with self.reading() as connection:
            number = extraction.count(connection)
            if not vectors.has_model(connection):  # there may never be one
                number.pop("embed", None)
        return reserve.COMING_BYTES * max(number.values(), default=0)

    def _advise(self) -> str:
        """Return advice on what to remove, cached for a while."""
        now = time.monotonic()
        if now >= self._advised_until:
            with self.reading() as connection:
                self._advice = reserve.suggest_removal(connection)
            self._advised_until = now + (_ADVISED_S if self._advice else _ADVISED_S / 12)
        return self._advice

    def _room_error(self) -> MemorydError:
        """Return the error for a write that failed for lack of room: at the limit, or on a full disk."""
        if self.limit_bytes and not is_disk_full(self.path.parent):
            return reserve.limit_error(self.limit_bytes, self.used_bytes)
        return self.reserve.build_error()

    def _used_size(self, connection: apsw.Connection) -> int:
        """Return how many bytes of the file are in use, including pages that are still in the write-ahead log."""
        return (read_pragma(connection, "page_count") - read_pragma(connection, "freelist_count")) * self._page_bytes

    def write(self, job: Callable[[Transaction], T], alone: bool = False, over_limit: bool = False) -> "Future[T]":
        """Queue a job for the writer; raise `Busy` if too many are queued.

        A job that writes thousands of rows runs `alone`; a job that removes something may take the file `over_limit`.
        """
        return self.writer.submit(job, alone, over_limit)

    def read_setting(self, name: str) -> str | None:
        """Return a setting of this database."""
        with self.reading() as connection:
            return database_settings.read(connection, name)

    def set_setting(self, name: str, value: str) -> "Future[None]":
        """Write a setting of this database."""
        return self.write(lambda transaction: database_settings.put(transaction.connection, name, value))

    def select_rows(self, selection: Filter, now: float) -> NDArray[np.int64]:
        """Return the row numbers that match a filter, read as one text, which is faster than many Python rows."""
        where, values = selection.full_condition(now)
        with self.reading() as connection:
            text = connection.execute(f"SELECT group_concat(m.row) FROM memories m WHERE {where}", values).get
        return np.fromstring(text, np.int64, sep=",") if isinstance(text, str) else np.zeros(0, np.int64)

    def size_bytes(self) -> int:
        """Return the size of the database file and its write-ahead log."""
        paths = (self.path, self.path.with_name(FILE_NAME + "-wal"))
        return sum(path.stat().st_size for path in paths if path.exists())

    def find_problems(self) -> list[str]:
        """Check the file, the full-text index, the vectors and the graph, in snapshots; return the problems."""
        try:
            return self._find_problems()
        except DAMAGE as error:  # it can no longer be opened
            raise StorageFailed(f"The database is damaged: {error}. {WAYS_OUT}") from None

    def _find_problems(self) -> list[str]:
        with closing(open_reader(self.path)) as connection:  # a used one would check FTS5 against its cached data
            connection.pragma("cache_size", CHECKING_CACHE)
            problems = damage.check(connection)
        problems += self._find_wrong_hashes()
        try:
            for check in damage.list_checks():
                with self.reading() as connection:
                    problems += check(connection)
        except StorageFailed:
            if not problems:  # the reported damage is why the rest cannot be checked
                raise
        return problems + fulltext.find_problems(self.path)

    def _find_wrong_hashes(self) -> list[str]:
        try:
            with self.reading() as connection:
                number = len(hashes.find_wrong(connection))
        except (StorageFailed, UnicodeDecodeError, msgspec.DecodeError) as error:
            return [f"memories: not all of them can be read: {error}"]
        return [f"memories: {number} have hashes that are not those of their text"] if number else []

    def rebuild(self) -> "Future[None]":
        """Rebuild all indexes and all data derived from memories."""
        return self.write(lambda transaction: damage.repair(transaction.connection), alone=True, over_limit=True)

    def warm_soon(self) -> None:
        """Preload the full-text index for the first searches, in the background."""
        self._warming = self.supervisor.start("warm", self._warm, self._warmed)

    def _warm(self) -> None:
        try:
            if self.derived:
                self.derived.warm_up(self.reading, self._closing)
        except Damaged as error:
            log.warning("full text could not be warmed: %s", error)
        self._warmed.set()

    def close(self) -> None:
        """Finish queued writes, checkpoint the write-ahead log and close; may be called twice."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._warmed.set()
        if codes := self.take_codes():
            codes.file.close()
        if self._warming is not None:
            self._warming.join()
        self.writer.finish()  # its last jobs may still be reading
        self.readers.close()
        close(self._connection, self.files[1:])
