"""Whether files that the daemon holds open are still where others look for them.

Somebody may delete or move the folder of the data or the socket, or put another file in place of the database. What is
written then is found by nobody, so the daemon must notice and end.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class WatchedFile(NamedTuple):
    """A file that is in use, and which one it is."""

    path: Path
    identity: tuple[int, int]

    def is_there(self) -> bool:
        """Return whether the path still leads to this file; also true if that cannot be determined."""
        try:
            return _read_identity(self.path) == self.identity
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError:
            return True


def hold(paths: Iterable[Path]) -> list[WatchedFile]:
    """Return which files those are that are at some paths now; none for a path where there is nothing."""
    return [WatchedFile(path, _read_identity(path)) for path in paths if os.path.lexists(path)]


def find_missing(held: Iterable[WatchedFile]) -> Path | None:
    """Return the first path that leads to another file or to none."""
    return next((one.path for one in held if not one.is_there()), None)


def _read_identity(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino
