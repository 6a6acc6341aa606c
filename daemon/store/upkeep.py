"""Maintain the database file: its write-ahead log, and the segments of the full-text index."""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import apsw

from memoryd.client.errors import StorageFailed
from memoryd.daemon.store.connection import BUSY_TIMEOUT_MS, open_reader
from memoryd.daemon.store.store import FILE_NAME, Store

T = TypeVar("T")

_MERGE_PAGES = 16  # about 2 ms of work

# Every change by a client adds to one of these tables; jobs write other tables all the time.
_MARKS = "SELECT name, seq FROM {schema}sqlite_sequence WHERE name IN ('operations', 'turns', 'skipped') ORDER BY name"


def log_size_bytes(store: Store) -> int:
    """Return the size of the write-ahead log."""
    path = store.path.with_name(FILE_NAME + "-wal")
    return path.stat().st_size if path.exists() else 0


def checkpoint(store: Store) -> int:
    """Write the log into the file and empty it, if that is possible without waiting for anybody; return the pages."""
    pages = max(0, int(_fold(store, "PASSIVE")[2]))
    _fold(store, "TRUNCATE", wait_ms=0)
    return pages


def clear_log(store: Store) -> None:
    """Fold the whole log into the file and empty it, as soon as no reader holds a snapshot.

    Writers wait for that, so most of the log is folded beforehand without blocking.
    """
    _fold(store, "PASSIVE")
    _fold(store, "TRUNCATE")


def _fold(store: Store, how: str, wait_ms: int = BUSY_TIMEOUT_MS) -> Any:
    with closing(open_reader(store.path)) as connection:
        connection.set_busy_timeout(wait_ms)
        try:
            connection.pragma("query_only", False)
            return connection.execute(f"PRAGMA wal_checkpoint({how})").fetchone()
        except (apsw.FullError, apsw.IOError) as error:
            if store.reserve.release():  # the next write takes back what is left of it
                return _fold(store, how, wait_ms)
            raise StorageFailed(f"The log could not be folded into the database: {error}.") from None


def merge(connection: apsw.Connection) -> bool:
    """Merge segments a little further; return whether there was anything to do (FTS5 tells by its changes)."""
    before = connection.total_changes()
    connection.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('merge', ?)", (_MERGE_PAGES,))
    return connection.total_changes() - before >= 2


def marks(connection: apsw.Connection) -> list[Any]:
    """Return the latest numbers of operations and turns, which differ once a client has changed anything."""
    return connection.execute(_MARKS.format(schema="")).fetchall()


def read_copy(path: Path, read: Callable[[apsw.Connection], T]) -> T | None:
    """Return the result of `read` for a copy of the database, None if the copy cannot be read."""
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    try:
        with closing(apsw.Connection(f"{path.absolute().as_uri()}?immutable=1", flags=flags)) as connection:
            return read(connection)
    except apsw.Error:
        return None


def marks_of(path: Path) -> list[Any]:
    """Return the `marks` of a copy, nothing when it cannot be read."""
    return read_copy(path, marks) or []
