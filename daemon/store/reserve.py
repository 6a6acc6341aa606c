"""The limit of the database's size, and a reserve of disk space that keeps deletes possible on a full disk.

At the limit, calls that grow the database are refused before they run, turns a little earlier. SQLite's own limit is
higher, because upkeep and background work need room, and so does a delete, which writes history before it frees pages.

The reserve is a file without content, which is emptied when the disk is full. From then on nothing is added, so that
the freed space serves deletes, their history, and checkpoints of the log; after each of these the file takes what is
left of it. Memories are added again once the disk has twice the reserve's size free. On a small disk the reserve is a
part of the disk.
"""

import logging
import os
import threading
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import apsw

from memoryd.client.errors import StorageFailed, StorageFull

TURNS_SHARE = 0.95  # of the limit, from which on turns are refused, so that `add` still has room
PLENTY_SHARE = 0.5  # of the limit, below which the size of queued work on turns is not counted
COMING_BYTES = 4096  # that a recorded turn will add later: vectors, history, entries of full text
LOW_IMPORTANCE = 0.5  # below which turns are proposed for removal
_PROPOSED_SHARE = 0.25  # of these turns, the oldest ones
_SPARE_BYTES = 16 * 1024 * 1024  # how far SQLite's limit is above a small limit, at least
_MOST_PAGES = 4_294_967_294  # SQLite's maximum

FILE_NAME = "memoryd.reserve"
SIZE_BYTES = 8 * 1024 * 1024  # about the size of the log at which SQLite checkpoints it
_DISK_PARTS = 3  # the reserve is at most one of this many parts of the disk
_FULL_BYTES = 1024 * 1024  # if a write fails with less than this free, the disk is full
_LEFT_BYTES = 256 * 1024  # left free for the next write

log = logging.getLogger(__name__)


def max_pages(limit_bytes: int, page_bytes: int) -> int:
    """Return SQLite's limit of pages for a limit of the database's size; 0: none."""
    return max((limit_bytes + max(limit_bytes // 10, _SPARE_BYTES)) // page_bytes, 1) if limit_bytes else 0


def let_grow(connection: apsw.Connection, pages: int) -> None:
    """Limit the file to `pages` pages (0: no limit); a file that is larger already keeps its size."""
    connection.pragma("max_page_count", pages or _MOST_PAGES)


def limit_error(limit_bytes: int, used_bytes: int, advice: str = "") -> StorageFull:
    """Return the error for a call that would grow a database at its limit; `advice` is from `suggest_removal`."""
    return StorageFull(
        f"The database has reached its limit of {limit_bytes / 1e6:.0f} MB; nothing can be added."
        f" Raise `max_size_mb` in [storage], or delete memories and shorten `history_days` in [jobs]{advice}.",
        {"limit_bytes": limit_bytes, "used_bytes": used_bytes},
    )


def turns_error(limit_bytes: int, used_bytes: int, advice: str) -> StorageFull:
    """Return the error for turns when the remaining room is reserved for `add`."""
    return StorageFull(
        f"The database has nearly reached its limit of {limit_bytes / 1e6:.0f} MB; turns are not recorded, `add` still"
        f" works. Raise `max_size_mb` in [storage]{advice}.",
        {"limit_bytes": limit_bytes, "used_bytes": used_bytes},
    )


def suggest_removal(connection: apsw.Connection) -> str:
    """Return advice with a command that removes the oldest turns of low importance; empty if there are none.

    The query reads all memories, so it must not run for each refused call.
    """
    low = f"FROM memories WHERE turns > 0 AND NOT pinned AND importance < {LOW_IMPORTANCE}"
    number: Any = connection.execute(f"SELECT count(*) {low}").get
    sql = f"SELECT created_at {low} ORDER BY created_at LIMIT 1 OFFSET ?"
    at: Any = connection.execute(sql, (int(number * _PROPOSED_SHARE),)).get
    if at is None:
        return ""
    day = datetime.fromtimestamp(at + 86400, UTC).date().isoformat()
    command = f"memctl erase --type turn --where 'memory.importance<{LOW_IMPORTANCE}' --before {day}"
    return f", or remove the oldest of low importance: {command}"


class Reserve:
    """The reserve of one data directory; used by any thread."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / FILE_NAME
        self._lock = threading.Lock()
        self._spent = self._path.exists() and (self._size() < measure_size(folder) or is_disk_full(folder))

    def fill(self) -> None:
        """Take up the reserve's size once the disk has twice as much free."""
        with self._lock, suppress(OSError):
            size = measure_size(self._folder)
            missing = max(size - self._size(), 0)
            if (missing or self._spent) and measure_free_bytes(self._folder) >= size + missing:
                self._take(size)
                if self._spent:
                    log.warning("the disk has room again: memories can be added")
                self._spent = False

    def release(self) -> bool:
        """Free the reserve if the disk is full; return whether there was any left."""
        with self._lock, suppress(OSError):
            if self._size() and is_disk_full(self._folder):
                os.truncate(self._path, 0)
                if not self._spent:
                    log.error("the disk is full: memories can be read and deleted, but not added")
                self._spent = True
                return True
        return False

    def take_back(self) -> None:
        """Reserve the remaining space again before another program fills it."""
        with self._lock, suppress(OSError):
            present = self._size()
            size = min(measure_size(self._folder), present + measure_free_bytes(self._folder) - _LEFT_BYTES)
            if size > present:
                self._take(size)

    def is_spent(self) -> bool:
        """Return whether additions are refused because the disk is full; check first whether it has room again."""
        if self._spent:
            self.fill()
        return self._spent

    def is_disk_full(self) -> bool:
        """Return whether a write failed because of the full disk, not because of the limit of the database."""
        return is_disk_full(self._folder)

    def build_error(self) -> StorageFailed:
        """Return the error for a call that would add something while the disk is full."""
        return StorageFailed(
            "The disk is full, so nothing of this was written. Memories can still be read and deleted."
            f" Free at least {2 * measure_size(self._folder) >> 20} MiB."
        )

    def _take(self, size_bytes: int) -> None:
        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size_bytes)
        finally:
            os.close(descriptor)

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0


def measure_size(folder: Path) -> int:
    """Return the size of the reserve on the disk of a folder."""
    space = os.statvfs(folder)
    return min(SIZE_BYTES, space.f_blocks * space.f_frsize // _DISK_PARTS)


def measure_free_bytes(folder: Path) -> int:
    """Return how many bytes of the disk this user can still fill."""
    space = os.statvfs(folder)
    return space.f_bavail * space.f_frsize


def is_disk_full(folder: Path) -> bool:
    """Return whether the disk of a folder has too little space for a write."""
    try:
        return measure_free_bytes(folder) < _FULL_BYTES
    except OSError:  # there is no such folder
        return False
