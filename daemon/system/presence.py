"""Check that files which the daemon holds open are still at their paths.

If the folder of the data or the socket is deleted or moved, or the database file is replaced, all further writes would
be lost, so the daemon must notice that and end.
"""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class WatchedFile(NamedTuple):
    """The path and the identity of a file in use."""

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
    """Return the identities of the files at some paths; paths without a file are omitted."""
    return [WatchedFile(path, _read_identity(path)) for path in paths if os.path.lexists(path)]


def find_missing(held: Iterable[WatchedFile]) -> Path | None:
    """Return the first path whose file is missing or was replaced."""
    return next((one.path for one in held if not one.is_there()), None)


def _read_identity(path: Path) -> tuple[int, int]:
    status = path.lstat()
    return status.st_dev, status.st_ino
