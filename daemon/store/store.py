"""The store: one SQLite file, its writer thread and its readers, behind one small object.

Readers: `reading()` lends a connection for one snapshot (`readers`). Writers: `write(job)` queues a job for the writer
thread and returns a future that is done once the job is on disk.
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
from memoryd.daemon.store.writer import Follower, Transaction, Writer
from memoryd.daemon.system.presence import hold
from memoryd.daemon.system.supervisor import Supervisor

T = TypeVar("T")

log = logging.getLogger(__name__)

_MOST_CHANGED = 10_000  # rows
_ADVISED_S = 60.0  # for which what to remove is not looked up again

FILE_NAME = "memoryd.sqlite"

# Raised by SQLite where the caller has its own answer: the deadline passed, the full-text index is damaged.
Interrupted = apsw.InterruptError
Damaged = (StorageFailed, apsw.SQLError)


class Derived(Protocol):
    """What is kept in RAM of the memories, in step with each commit: `arrays/arrays.py`."""

    def read(self, connection: apsw.Connection) -> None:
        """Read it; raise `apsw.CorruptError` for damage."""

    def note_snapshot(self) -> None:
        """Note that a reader begins."""

    def follow(self, connection: apsw.Connection, rows: set[int], texts: set[int]) -> None:
        """Take in changed memories and changed texts, on the writer's thread."""

    def warm_up(self, reading: Callable[[], AbstractContextManager[apsw.Connection]], closing: threading.Event) -> None:
        """Read what searches will ask for, until `closing` is set."""


class Store:
    """The database of one data directory."""

    def __init__(self, folder: Path, limit_bytes: int = 0, derived: Derived | None = None) -> None:
        """Open the database of a folder; it takes no more than `limit_bytes` on disk, 0: what the disk holds."""
        self.derived = derived
        self.path, self.limit_bytes = folder / FILE_NAME, limit_bytes
        self._codes = codes.take(self.path)
        self._advice, self._advised_until = "", 0.0
        self._changed: set[int] | None = set()  # rows that may have other vectors than when it was opened; None: any
        self.reserve = Reserve(folder)
        self.supervisor = Supervisor()
        self._connection = connection = self._open_with_reserve()
        self.files = hold([self.path, self.path.with_name(f"{FILE_NAME}-wal")])
        most = reserve.max_pages(limit_bytes, self._page_bytes)
        self._writer = Writer(connection, self._follow_commit, self._room_error, most, self.supervisor, self.reserve)
        self._writer.files = self.files
        self._readers = Readers(self.path)
        self.copying = threading.Lock()  # while a copy is made, or something is erased
        self._warming: threading.Thread | None = None
        self._warmed, self._closing = threading.Event(), threading.Event()

    def _open_with_reserve(self) -> apsw.Connection:
        """Open the database; on a full disk with the room that is kept for that."""
        try:
            return self._open()
        except StorageFailed as error:
            if self.reserve.release():
                return self._open()
            message = f"{error.message} The disk is full." if is_disk_full(self.path.parent) else error.message
            raise StorageFailed(message) from None

    def _open(self) -> apsw.Connection:
        """Open the database for the writer and read what is kept in RAM; raise `StorageFailed`."""
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
        """Lend this thread a reader, within one snapshot of the database."""
        connection = self._readers.take()
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
                if connection.in_transaction:  # SQLite ends it by itself at some errors
                    connection.execute("ROLLBACK")
            finally:
                self._readers.give_back(connection)

    def interrupt_reading(self, thread: int) -> None:
        """Interrupt the statement that a thread reads with, if there is one."""
        self._readers.interrupt(thread)

    def _follow_commit(self, connection: apsw.Connection, rows: set[int], texts: set[int]) -> None:
        """Note changed memories and have what is derived follow, on the writer's thread."""
        if self._changed is not None:
            self._changed |= rows
            if len(self._changed) > _MOST_CHANGED or self._writer.touched_vectors:
                self._changed = None
        if self.derived:
            self.derived.follow(connection, rows, texts)
        if self.limit_bytes:
            self.used_bytes = self._used_size(connection)

    def take_codes(self) -> LoadedCodes | None:
        """Return the codes that the former daemon kept, once."""
        codes, self._codes = self._codes, None
        return codes

    def take_changed(self) -> set[int] | None:
        """Return the rows that were changed since the database was opened, None if that is not known; only once."""
        rows, self._changed = self._changed, None
        return None if rows is None else rows.copy()

    def is_full(self) -> bool:
        """Return whether the database has reached its limit: what is there is read and deleted, nothing is added."""
        return bool(self.limit_bytes) and self.used_bytes >= self.limit_bytes

    def check_room(self) -> None:
        """Raise `StorageFull` when the database has reached its limit, `StorageFailed` on a full disk."""
        if self.reserve.is_spent():
            raise self.reserve.build_error()
        if self.is_full():
            raise reserve.limit_error(self.limit_bytes, self.used_bytes, self._advise())

    def check_room_for_turns(self) -> None:
        """Raise `StorageFull` when only what is added on purpose has room."""
        if self.limit_bytes and self.used_bytes + self._count_coming() >= reserve.TURNS_SHARE * self.limit_bytes:
            raise reserve.turns_error(self.limit_bytes, self.used_bytes, self._advise())

    def _count_coming(self) -> int:
        """Return about how many bytes will be taken by what is still made of turns; 0 while there is plenty of room."""
        if self.used_bytes < reserve.PLENTY_SHARE * self.limit_bytes:
            return 0
        with self.reading() as connection:
            number = extraction.count(connection)
            if not vectors.has_model(connection):  # there may never be one
                number.pop("embed", None)
        return reserve.COMING_BYTES * max(number.values(), default=0)

    def _advise(self) -> str:
        """Return what to remove; looked up once in a while."""
        now = time.monotonic()
        if now >= self._advised_until:
            with self.reading() as connection:
                self._advice = reserve.suggest_removal(connection)
            self._advised_until = now + (_ADVISED_S if self._advice else _ADVISED_S / 12)
        return self._advice

    def _room_error(self) -> MemorydError:
        """Return the error for a write that SQLite had no room for: at the limit, or on a full disk."""
        if self.limit_bytes and not is_disk_full(self.path.parent):
            return reserve.limit_error(self.limit_bytes, self.used_bytes)
        return self.reserve.build_error()

    def _used_size(self, connection: apsw.Connection) -> int:
        """Return how many bytes of the file are in use, those of a log that is not folded in included."""
        return (read_pragma(connection, "page_count") - read_pragma(connection, "freelist_count")) * self._page_bytes

    def write(self, job: Callable[[Transaction], T], alone: bool = False, over_limit: bool = False) -> "Future[T]":
        """Queue a job for the writer; raise `Busy` when too many wait.

        A job that writes thousands of rows runs `alone`; a job that removes something may take the file `over_limit`.
        """
        return self._writer.submit(job, alone, over_limit)

    def refuse_waiting_writes(self) -> None:
        """Refuse the jobs that wait for the writer now."""
        self._writer.refuse_waiting()

    def follow(self, follower: Follower | None) -> None:
        """Pass to `follower` what each transaction changes from now on, on the writer's thread; None: nobody."""
        self._writer.follower = follower

    def count_waiting_writes(self) -> int:
        """Return how many jobs wait for the writer."""
        return self._writer.count_waiting()

    def silence_s(self) -> float:
        """Return for how many seconds the writer has made no progress."""
        return self._writer.silence_s()

    def read_setting(self, name: str) -> str | None:
        """Return a setting of this database."""
        with self.reading() as connection:
            return database_settings.read(connection, name)

    def set_setting(self, name: str, value: str) -> "Future[None]":
        """Write a setting of this database."""
        return self.write(lambda transaction: database_settings.put(transaction.connection, name, value))

    def select_rows(self, selection: Filter, now: float) -> NDArray[np.int64]:
        """Return the row numbers that a filter leaves: one text of all of them is faster than a Python row each."""
        where, values = selection.full_condition(now)
        with self.reading() as connection:
            text = connection.execute(f"SELECT group_concat(m.row) FROM memories m WHERE {where}", values).get
        return np.fromstring(text, np.int64, sep=",") if isinstance(text, str) else np.zeros(0, np.int64)

    def size_bytes(self) -> int:
        """Return the size of the database file and its write-ahead log."""
        paths = (self.path, self.path.with_name(FILE_NAME + "-wal"))
        return sum(path.stat().st_size for path in paths if path.exists())

    def find_problems(self) -> list[str]:
        """Check the file, the full-text index, the vectors and the graph, in snapshots; return what is wrong."""
        try:
            return self._find_problems()
        except DAMAGE as error:  # it cannot be opened any more
            raise StorageFailed(f"The database is damaged: {error}. {WAYS_OUT}") from None

    def _find_problems(self) -> list[str]:
        problems = self._check_integrity("PRAGMA integrity_check(10)") + self._find_wrong_hashes()
        try:
            for check in damage.list_checks():
                with self.reading() as connection:
                    problems += check(connection)
        except StorageFailed:
            if not problems:  # else the damage that is reported is why the rest cannot be checked
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
        """Make all indexes again, and all that is derived from the memories."""
        return self.write(lambda transaction: damage.repair(transaction.connection), alone=True, over_limit=True)

    def warm_soon(self) -> None:
        """Read in the background what the first searches will ask of full text."""
        self._warming = self.supervisor.start("warm", self._warm, self._warmed)

    def _warm(self) -> None:
        try:
            if self.derived:
                self.derived.warm_up(self.reading, self._closing)
        except Damaged as error:
            log.warning("full text could not be warmed: %s", error)
        self._warmed.set()

    def _check_integrity(self, pragma: str) -> list[str]:
        """Return what is wrong; on a connection of its own, as FTS5 checks against what a used one has cached."""
        with closing(open_reader(self.path)) as connection:
            connection.pragma("cache_size", CHECKING_CACHE)
            return damage.check(connection, pragma)

    def close(self) -> None:
        """Finish the waiting writes, fold the write-ahead log into the file and close; twice is as good as once."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._warmed.set()
        if codes := self.take_codes():
            codes.file.close()
        if self._warming is not None:
            self._warming.join()
        self._writer.finish()  # its last jobs may still read
        self._readers.close()
        close(self._connection, self.files[1:])
