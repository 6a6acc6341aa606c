"""Open SQLite connections with memoryd's settings: WAL, synchronous=FULL, sqlite-vec, files with mode 0600."""

import ctypes
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import apsw
import sqlite_vec
from apsw import Connection as Connection

from memoryd.client.errors import StorageFailed
from memoryd.daemon.system.presence import WatchedFile, find_missing

# Five vectors of 384 dimensions fit into a page; a page of 4,096 bytes would contain two, and waste a quarter.
PAGE_BYTES = 8192
_WRITER_CACHE, _READER_CACHE = -8192, -2048  # KiB; the system caches the pages of readers too
CHECKING_CACHE = -65_536  # KiB, for a check of the whole file, which looks up each row in each index
BUSY_TIMEOUT_MS = 10_000  # another process (a backup, a person's shell) may hold the lock for a moment

DAMAGE = (apsw.CorruptError, apsw.NotADBError)
WAYS_OUT = (
    "`memctl repair --recover` reads what is readable into a new file and says whether something is lost;"
    " `memctl restore latest` takes the latest copy. Both keep this one."
)
REPAIR_ADVICE = f"`memctl repair` rebuilds indexes and full text. If that fails: {WAYS_OUT}"


def open_writer(path: Path) -> apsw.Connection:
    """Open or create the database for the writer; raise `StorageFailed` if it cannot be used."""
    try:
        with suppress(
            FileExistsError
        ):  # not opened here, because closing it would release the locks of other connections
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        connection = apsw.Connection(str(path))
        connection.pragma("page_size", PAGE_BYTES)  # of a new file
        _prepare(connection)
        connection.pragma("cache_size", _WRITER_CACHE)
        connection.pragma("secure_delete", "fast")  # what is deleted within a page is overwritten
    except (OSError, apsw.Error) as error:
        advice = f" {WAYS_OUT}" if isinstance(error, DAMAGE) else ""
        raise StorageFailed(f"The database {path} cannot be opened: {_reason(error)}.{advice}") from None
    return connection


def make_durable(connection: apsw.Connection) -> None:
    """Set a write-ahead log that is synced at every commit. The mode is stored in the file, so others may change it."""
    connection.pragma("journal_mode", "wal")
    connection.pragma("synchronous", "full")
    connection.pragma("wal_autocheckpoint", 1000)
    connection.pragma("journal_size_limit", 16 * 1024 * 1024)  # of the log after a checkpoint


def read_pragma(connection: apsw.Connection, name: str) -> int:
    """Return the value of a pragma that is a whole number."""
    value: Any = connection.pragma(name)
    return int(value)


def open_reader(path: Path) -> apsw.Connection:
    """Open a connection that cannot write."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    _prepare(connection)
    connection.pragma("query_only", True)
    connection.pragma("cache_size", _READER_CACHE)
    return connection


def close(connection: apsw.Connection, log: Sequence[WatchedFile]) -> None:
    """Close the writer's connection; a log at the path of its own log is kept if it belongs to another database."""
    if find_missing(log):
        keep = ctypes.c_int(1)
        connection.file_control("main", apsw.SQLITE_FCNTL_PERSIST_WAL, ctypes.addressof(keep))
    connection.close()


def _prepare(connection: apsw.Connection) -> None:
    connection.set_busy_timeout(BUSY_TIMEOUT_MS)
    connection.enable_load_extension(True)
    connection.load_extension(sqlite_vec.loadable_path())
    connection.enable_load_extension(False)
    connection.pragma("foreign_keys", True)
    connection.pragma("temp_store", "memory")


def _reason(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error).removesuffix(".")
