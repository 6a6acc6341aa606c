"""Clocks: the system's, and the modification time of a file for demonstrations and tests.

A clock is a function that returns UTC seconds. One with `read` also says how much time really passed, by a count that
nobody can set. A clock that is only a function is always right.
"""

import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from memoryd.client import linux
from memoryd.client.errors import Invalid

Clock = Callable[[], float]


class ClockReading(NamedTuple):
    """What a clock says, the seconds since the boot (sleep included), and which boot that was."""

    now: float
    up_s: float
    boot: str


class SystemClock:
    """The clock of the machine."""

    def __init__(self) -> None:
        self._boot = linux.read_boot_id() or uuid.uuid4().hex  # where it cannot be known each start counts as a boot

    def __call__(self) -> float:
        """Return UTC seconds."""
        return time.time()

    def read(self) -> ClockReading:
        """Return what the clock says beside the time since the boot."""
        return ClockReading(time.time(), linux.measure_uptime_s(), self._boot)


class FileClock:
    """A clock that somebody else sets: `touch -d 2026-05-01 FILE`.

    What is written into the file are the seconds since the boot and, after a space, which boot that is; while it is
    empty the clock is always right.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise Invalid(f"The clock {path} is not a file.")
        self._path = path

    def __call__(self) -> float:
        """Return when the file was changed."""
        return os.stat(self._path).st_mtime

    def read(self) -> ClockReading:
        """Return that beside what is written in the file."""
        now, words = self(), self._path.read_text().split()
        return ClockReading(now, float(words[0]) if words else now, words[1] if words[1:] else "")


def build_reader(clock: Clock) -> Callable[[], ClockReading]:
    """Return what reads a clock beside the time since the boot."""

    def read() -> ClockReading:
        now = clock()
        return ClockReading(now, now, "")

    return getattr(clock, "read", read)
