"""A clock that somebody else sets, for demonstrations and tests: the modification time of a file."""

import os
from pathlib import Path

from memoryd.client.errors import Invalid
from memoryd.daemon.core.core import Clock


def clock_of(path: Path) -> Clock:
    """Return a clock that tells when a file was last changed (`touch -d 2026-05-01 FILE` sets it)."""
    if not path.is_file():
        raise Invalid(f"The clock {path} is not a file.")
    return lambda: os.stat(path).st_mtime
