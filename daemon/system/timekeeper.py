"""The daemon's time: that of the clock, and the settled time, which decides about deletions.

Dates of memories, and whether they are expired for searches, use the clock. Anything that is deleted or moved uses the
settled time. If the clock jumps by more than a day, or the machine was off for that long, the settled time continues
from its former value until a day of uptime, which cannot be set, has passed. So a clock that is wrong for some hours
after a boot causes no deletions.

Threads: any.
"""

import logging
import threading
from contextlib import suppress

import msgspec

from memoryd.client.protocol import ClockState
from memoryd.daemon.system.clock import Clock, ClockReading, build_reader

DAY_S = 86400.0
SETTING = "clock"

log = logging.getLogger(__name__)


class ClockRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The last reading of the clock, and the jump that the settled time does not follow yet; stored in the database."""

    boot: str
    up_s: float
    now: float
    ahead_s: float = 0.0  # sum of the jumps; negative if the clock is behind
    left_s: float = 0.0  # until the settled time follows the jump


def start_state(read: ClockReading) -> ClockRecord:
    """Return the state for a clock that is right."""
    return ClockRecord(boot=read.boot, up_s=read.up_s, now=read.now)


def follow(known: ClockRecord, read: ClockReading) -> ClockRecord:
    """Return the state after another reading of the clock."""
    is_same_boot = read.boot == known.boot
    passed_s = max(0.0, read.up_s - known.up_s) if is_same_boot else 0.0
    step_s = read.now - known.now - passed_s
    left_s = max(0.0, known.left_s - passed_s)
    ahead_s = known.ahead_s if left_s else 0.0
    if abs(step_s) > DAY_S:
        ahead_s += step_s
        # The day continues over boots, so that time also settles on a machine that runs for an hour a week.
        left_s = left_s if left_s and not is_same_boot else DAY_S
    if abs(ahead_s) <= DAY_S:
        ahead_s = left_s = 0.0
    return ClockRecord(boot=read.boot, up_s=read.up_s, now=read.now, ahead_s=ahead_s, left_s=left_s)


class Timekeeper:
    """The time of a daemon; calling it returns the UTC seconds of the clock."""

    def __init__(self, clock: Clock, kept: str | None) -> None:
        self._clock, self._read, self._lock = clock, build_reader(clock), threading.Lock()
        self._known = _decode(kept) or start_state(self._read())
        self._look()

    def __call__(self) -> float:
        """Return the time of the clock, for dates and for the expiry of memories."""
        return self._clock()

    def read_settled(self) -> float:
        """Return the settled time, for anything that is deleted or moved."""
        known = self._look()
        return known.now - max(0.0, known.ahead_s)

    def has_jumped(self) -> bool:
        """Return whether the clock has jumped and the day after that has not passed."""
        return self._look().ahead_s != 0

    def update(self) -> str:
        """Read the clock and return its state, for the setting `clock`."""
        return msgspec.json.encode(self._look()).decode()

    def read_state(self) -> ClockState:
        """Return the state of the clock."""
        known = self._look()
        if not known.ahead_s:
            return ClockState(state="steady", now=known.now)
        return ClockState(state="jumped", now=known.now, off_s=known.ahead_s, counts_in_s=known.left_s)

    def _look(self) -> ClockRecord:
        with self._lock:
            before, self._known = self._known, follow(self._known, self._read())
            if self._known.ahead_s and self._known.ahead_s != before.ahead_s:
                days = abs(self._known.ahead_s) / DAY_S
                way = "ahead" if self._known.ahead_s > 0 else "back"
                said = "the clock went %.0f days %s, or the machine was off; for a day nothing is deleted by that"
                log.warning(said, days, way)
            return self._known


def _decode(kept: str | None) -> ClockRecord | None:
    with suppress(msgspec.MsgspecError):  # in that case the clock is assumed to be right
        return None if kept is None else msgspec.json.decode(kept, type=ClockRecord)
    return None
