"""Clocks: that of the system, and the modification time of a file for demonstrations and tests.

A clock is a function that returns UTC seconds. One with a method `read` also returns the time since the boot, which
cannot be set. A clock without that method counts as always right.
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
    """The time of a clock, the seconds since the boot (including suspended time), and the id of the boot."""

    now: float
    up_s: float
    boot: str


class SystemClock:
    """The clock of the machine."""

    def __init__(self) -> None:
        self._boot = linux.read_boot_id() or uuid.uuid4().hex  # if it is unknown, each start counts as a boot

    def __call__(self) -> float:
        """Return UTC seconds."""
        return time.time()

    def read(self) -> ClockReading:
        """Return the time together with the time since the boot."""
        return ClockReading(time.time(), linux.measure_uptime_s(), self._boot)


class FileClock:
    """A clock that is set from outside: `touch -d 2026-05-01 FILE`.

    The file may contain the seconds since the boot and, after a space, the id of the boot; while it is empty, the clock
    counts as always right.
    """

    def __init__(self, path: Path) -> None:
        if not path.is_file():
            raise Invalid(f"The clock {path} is not a file.")
        self._path = path

    def __call__(self) -> float:
        """Return the modification time of the file."""
        return os.stat(self._path).st_mtime

    def read(self) -> ClockReading:
        """Return that together with the content of the file."""
        now, words = self(), self._path.read_text().split()
        return ClockReading(now, float(words[0]) if words else now, words[1] if words[1:] else "")


def build_reader(clock: Clock) -> Callable[[], ClockReading]:
    """Return a function that reads a clock together with the time since the boot."""

    def read() -> ClockReading:
        now = clock()
        return ClockReading(now, now, "")

    return getattr(clock, "read", read)
