"""Room on the disk that is kept for what removes: a file that holds nothing, emptied when the disk is full.

From then on nothing is added, so that what was given free serves deletes, the history they write, and folding the log
into the database; what is left of it is taken again after each. Memories are added again once the disk has twice its
size.
"""

import logging
import os
import threading
from contextlib import suppress
from pathlib import Path

from memoryd.client.errors import StorageFailed

FILE_NAME = "memoryd.reserve"
SIZE_BYTES = 8 * 1024 * 1024  # the log grows to about that before it is folded
_FULL_BYTES = 1024 * 1024  # with less than that free, a write that does not fit met the end of the disk
_LEFT_BYTES = 256 * 1024  # for the next write

log = logging.getLogger(__name__)


class Reserve:
    """The reserve of one data directory; used by any thread."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._path = folder, folder / FILE_NAME
        self._lock = threading.Lock()
        self._spent = self._path.exists() and (self._size() < SIZE_BYTES or is_disk_full(folder))

    def fill(self) -> None:
        """Take the room once the disk has twice as much."""
        with self._lock, suppress(OSError):
            missing = SIZE_BYTES - self._size()
            if (missing or self._spent) and measure_free_bytes(self._folder) >= SIZE_BYTES + missing:
                self._take(SIZE_BYTES)
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
        """Take what is left of the room before somebody else fills it."""
        with self._lock, suppress(OSError):
            here = self._size()
            wanted = min(SIZE_BYTES, here + measure_free_bytes(self._folder) - _LEFT_BYTES)
            if wanted > here:
                self._take(wanted)

    def is_spent(self) -> bool:
        """Return whether nothing is added; the end of that is noticed here."""
        if self._spent:
            self.fill()
        return self._spent

    def _take(self, size_bytes: int) -> None:
        descriptor = os.open(self._path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(descriptor, 0, size_bytes)
        finally:
            os.close(descriptor)

    def _size(self) -> int:
        return self._path.stat().st_size if self._path.exists() else 0


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


def build_full_error() -> StorageFailed:
    """Return what is said to whoever would add something to a full disk."""
    return StorageFailed(
        "The disk is full. Nothing of this was written; reading and deleting go on."
        f" Make room: {2 * SIZE_BYTES >> 20} MiB have to be free."
    )
