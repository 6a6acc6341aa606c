"""Room for what is written: the limit of the database's size, and a reserve on the disk for what removes.

At the limit itself calls that grow the database are refused before they run, turns a little earlier. SQLite's own
limit is above it: upkeep and background work need room, and what removes has none, since it writes history before it
frees anything.

The reserve is a file that holds nothing, emptied when the disk is full. From then on nothing is added, so that what was
given free serves deletes, the history they write, and folding the log into the database; what is left of it is taken
again after each. Memories are added again once the disk has twice its size. On a small disk it is a part of that.
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

TURNS_SHARE = 0.95  # of the limit from which turns are refused, so that what is added on purpose still has room
PLENTY_SHARE = 0.5  # of the limit below which nobody asks what is still to be made of turns
COMING_BYTES = 4096  # of a turn that was taken in: its vectors, its history, its place in full text
LOW = 0.5  # importance below which turns are proposed for removal
_PROPOSED = 0.25  # of these turns, the oldest
_SPARE_BYTES = 16 * 1024 * 1024  # beyond a small limit
_MOST_PAGES = 4_294_967_294  # that SQLite can count

FILE_NAME = "memoryd.reserve"
SIZE_BYTES = 8 * 1024 * 1024  # the log grows to about that before it is folded
_SHARE = 3  # one part in so many of a small disk
_FULL_BYTES = 1024 * 1024  # with less than that free, a write that does not fit met the end of the disk
_LEFT_BYTES = 256 * 1024  # for the next write

log = logging.getLogger(__name__)


def max_pages(limit_bytes: int, page_bytes: int) -> int:
    """Return the pages that a file of a limited size may have at the very most, 0 for any number."""
    return max((limit_bytes + max(limit_bytes // 10, _SPARE_BYTES)) // page_bytes, 1) if limit_bytes else 0


def let_grow(connection: apsw.Connection, pages: int) -> None:
    """Limit the file to `pages` pages (0: no limit); a file that is larger already keeps its size."""
    connection.pragma("max_page_count", pages or _MOST_PAGES)


def limit_error(limit_bytes: int, used_bytes: int, advice: str = "") -> StorageFull:
    """Return the error for what would grow a database at its limit; `advice` is what `suggest_removal` says."""
    return StorageFull(
        f"The database has reached its limit of {limit_bytes / 1e6:.0f} MB and takes in nothing more."
        f" Raise `max_size_mb` in [storage], or delete memories and shorten `history_days` in [jobs]{advice}.",
        {"limit_bytes": limit_bytes, "used_bytes": used_bytes},
    )


def turns_error(limit_bytes: int, used_bytes: int, advice: str) -> StorageFull:
    """Return the error for turns when the remaining room is kept for `add`."""
    return StorageFull(
        f"The database has nearly reached its limit of {limit_bytes / 1e6:.0f} MB and takes in no more turns; `add`"
        f" still works. Raise `max_size_mb` in [storage]{advice}.",
        {"limit_bytes": limit_bytes, "used_bytes": used_bytes},
    )


def suggest_removal(connection: apsw.Connection) -> str:
    """Return the command that removes the oldest turns of low importance, empty if there are none.

    It reads all memories, so it is not for each call that is refused.
    """
    low = f"FROM memories WHERE turns > 0 AND NOT pinned AND importance < {LOW}"
    number: Any = connection.execute(f"SELECT count(*) {low}").get
    sql = f"SELECT created_at {low} ORDER BY created_at LIMIT 1 OFFSET ?"
    at: Any = connection.execute(sql, (int(number * _PROPOSED),)).get
    if at is None:
        return ""
    day = datetime.fromtimestamp(at + 86400, UTC).date().isoformat()
    command = f"memctl erase --type turn --where 'memory.importance<{LOW}' --before {day}"
    return f", or remove the oldest of low importance: {command}"


class Reserve:
    """The reserve of one data directory; used by any thread."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / FILE_NAME
        self._lock = threading.Lock()
        self._spent = self._path.exists() and (self._size() < measure_size(folder) or is_disk_full(folder))

    def fill(self) -> None:
        """Take the room once the disk has twice as much."""
        with self._lock, suppress(OSError):
            size = measure_size(self._folder)
            missing = max(size - self._size(), 0)
            if (missing or self._spent) and measure_free_bytes(self._folder) >= size + missing:
                self._take(size)
                if self._spent:
                    log.warning("the disk has room again: new memories are taken in")
                self._spent = False

    def release(self) -> bool:
        """Give the room free if the disk is full; return whether there was any."""
        with self._lock, suppress(OSError):
            if self._size() and is_disk_full(self._folder):
                os.truncate(self._path, 0)
                if not self._spent:
                    log.error("the disk is full: what is there is read and deleted, nothing is added")
                self._spent = True
                return True
        return False

    def take_back(self) -> None:
        """Reserve the remaining room again before another program fills it."""
        with self._lock, suppress(OSError):
            here = self._size()
            size = min(measure_size(self._folder), here + measure_free_bytes(self._folder) - _LEFT_BYTES)
            if size > here:
                self._take(size)

    def is_spent(self) -> bool:
        """Return whether additions are refused because the disk is full; notice here when it has room again."""
        if self._spent:
            self.fill()
        return self._spent

    def is_disk_full(self) -> bool:
        """Return whether a write that had no room met the end of the disk."""
        return is_disk_full(self._folder)

    def build_error(self) -> StorageFailed:
        """Return the error for a call that would add something while the disk is full."""
        return StorageFailed(
            "The disk is full. Nothing of this was written; reading and deleting go on."
            f" Make room: {2 * measure_size(self._folder) >> 20} MiB have to be free."
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
    """Return how much of the disk is kept free."""
    space = os.statvfs(folder)
    return min(SIZE_BYTES, space.f_blocks * space.f_frsize // _SHARE)


def measure_free_bytes(folder: Path) -> int:
    """Return how much of the disk a user may still fill."""
    space = os.statvfs(folder)
    return space.f_bavail * space.f_frsize


def is_disk_full(folder: Path) -> bool:
    """Return whether a write that had no room met the end of the disk."""
    try:
        return measure_free_bytes(folder) < _FULL_BYTES
    except OSError:  # there is no such folder
        return False
