"""The daemon's time: what the clock says, and how much of it has surely passed.

Everybody may set a clock, nobody the time since the boot. Where the two no longer agree the clock has jumped. The
daemon uses the clock for what it dates, and by the time that has surely passed for what it forgets: so a jump makes
nothing expire. A step is one of three:

- While the machine runs it is a jump. It counts as passed once as much time has passed, when a person confirms it, or
  never when the clock comes back.
- At a boot, and in the first minutes of one when the network sets the clock, it is the time for which the machine was
  off. It counts at once for what is found, and after an hour for what is deleted: a wrong clock is set right by then.
- A boot behind what was known lost the time (a dead battery). Until the clock has caught up, time continues from where
  it was.

Across boots nothing counts but the clock itself. Whether it was set forward in this boot before the daemon came, the
dates of files show that began with the boot.

Threads: any.
"""

import logging
import threading
from collections.abc import Sequence
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from memoryd.client.protocol import ClockState
from memoryd.daemon.system.clock import Clock, Reading, build_date_reader, build_reader

TOLERANCE_S = 3600.0  # what ages by days does not mind less
EARLY_S = 600.0  # of a boot: the network sets the clock
SETTLE_S = 3600.0  # after which the time that a machine was off counts for what is deleted
SETTING = "clock"

_DAY_S, _HOUR_S = 86400.0, 3600.0

log = logging.getLogger(__name__)


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the clock, kept in the database.

    Counted time is what the clock says less `ahead_s` and `settling_s`: it grows only as time passes.
    """

    boot: str
    offset_s: float  # of the clock from the time since the boot
    now: float  # the latest that the clock said
    ahead_s: float = 0.0  # by a jump; below 0 the clock is behind
    until: float = 0.0  # of counted time: from then on a jump ahead counts as passed
    settling_s: float = 0.0  # the time that the machine was off, while it does not count for everything
    settled_at: float = 0.0  # of counted time
    lost: bool = False  # a boot lost the time
    since: float | None = None  # when the clock jumped, by the clock

    def counted_time(self) -> float:
        """Return the time that surely has passed, the machine's being off left out while that settles."""
        return self.now - self.ahead_s - self.settling_s


def start_state(read: Reading) -> Known:
    """Return what is known of a clock that is right."""
    return Known(boot=read.boot, offset_s=read.now - read.up_s, now=read.now)


def follow(known: Known, read: Reading, written: Sequence[float] = ()) -> Known:
    """Return what is known after another look at the clock, and at how files were dated since the boot."""
    if read.boot == known.boot:
        step = read.now - read.up_s - known.offset_s
        if abs(step) <= TOLERANCE_S:
            return _count(replace(known, now=read.now))
        after = _step(known, step, read.up_s < EARLY_S or known.lost)
    else:
        step = read.now - known.now
        jump = min(max(0.0, step), set_since_boot(read, [at for at in written if at >= known.counted_time()]))
        after = _step(_step(known, step - jump, True), jump, False)
        if after.ahead_s > 0 and step < 0:  # it was set right while the machine was off, which is the rest
            after = replace(after, ahead_s=0.0, settling_s=after.settling_s + after.ahead_s)
        after = replace(after, lost=after.ahead_s < 0 and (known.lost or step < -TOLERANCE_S))
    return _count(_record_jump(known, replace(after, boot=read.boot, offset_s=read.now - read.up_s, now=read.now)))


def set_since_boot(read: Reading, written: Sequence[float]) -> float:
    """Return by how much the clock was set forward in this boot, 0 where files do not say so.

    They do where some are dated before what the clock says now of the boot, and were so for longer than a clock is
    wrong at a boot.
    """
    before = [at for at in written if at < read.now - read.up_s - TOLERANCE_S]
    if not before or max(before) - min(before) < EARLY_S:
        return 0.0
    return read.now - read.up_s - min(before)


def _step(known: Known, step: float, was_off: bool) -> Known:
    """Return what is known after the clock was set: back over what was not believed, or forward."""
    if step < 0:
        back = min(known.settling_s, -step)
        return replace(known, settling_s=known.settling_s - back, ahead_s=known.ahead_s + step + back)
    caught_up = min(step, max(0.0, -known.ahead_s))
    rest = step - caught_up
    ahead_s, settling_s = known.ahead_s + caught_up, known.settling_s
    if was_off:
        return replace(known, ahead_s=ahead_s, settling_s=settling_s + rest)
    return replace(known, ahead_s=ahead_s + rest, settling_s=settling_s)


def _record_jump(before: Known, after: Known) -> Known:
    """Say when the clock jumped and until when that is doubted."""
    if abs(after.ahead_s) <= TOLERANCE_S:
        after = replace(after, ahead_s=0.0, lost=False, since=None)
    if after.settling_s <= TOLERANCE_S:
        after = replace(after, settling_s=0.0)
    counted = after.counted_time()
    if after.ahead_s and not before.ahead_s:
        after = replace(after, since=after.now)
    if after.ahead_s > max(0.0, before.ahead_s):
        after = replace(after, until=counted + after.ahead_s)
    if after.settling_s and not before.settling_s:
        after = replace(after, settled_at=counted + SETTLE_S)
    return after


def _count(known: Known) -> Known:
    """Take for passed what was doubted long enough."""
    if known.settling_s and known.counted_time() >= known.settled_at:
        known = replace(known, settling_s=0.0)
    if known.ahead_s > 0 and known.counted_time() >= known.until:
        known = replace(known, ahead_s=0.0, since=None)
    return known


class Timekeeper:
    """The time of a daemon; called it returns the UTC seconds with which things are dated."""

    def __init__(self, clock: Clock, kept: str | None) -> None:
        self._read, self._lock = build_reader(clock), threading.Lock()
        read = self._read()
        self._known = start_state(read)
        if known := _decode(kept):
            self._set(follow(known, read, build_date_reader(clock)()))

    def __call__(self) -> float:
        """Return now, for what is dated; it does not go back where a boot lost the time."""
        known, now = self._look()
        return now - known.ahead_s if known.lost else now

    def read_elapsed(self) -> float:
        """Return the time that has passed, for what expires: no jump makes it later."""
        return _count_elapsed(*self._look())

    def read_settled(self) -> float:
        """Return the time that has surely passed, for what is deleted, moved and forgotten."""
        known, now = self._look()
        return _count_elapsed(known, now) - known.settling_s

    def has_jumped(self) -> bool:
        """Return whether the clock is ahead by a jump that nobody confirmed."""
        known, _ = self._look()
        return known.ahead_s > 0

    def update(self) -> str:
        """Look at the clock and return what is known of it, for the setting `clock`."""
        with self._lock:
            self._set(follow(self._known, self._read()))
        return msgspec.json.encode(self._known).decode()

    def confirm(self) -> str:
        """Take the clock for right from now on; return what is known of it, for the setting `clock`."""
        with self._lock:
            self._known = start_state(self._read())
        return msgspec.json.encode(self._known).decode()

    def read_state(self) -> ClockState:
        """Return how the clock is."""
        known, now = self._look()
        off_s = known.ahead_s or known.settling_s
        state = "ahead" if known.ahead_s > 0 else "behind" if known.ahead_s < 0 else "settling" if off_s else "steady"
        until = known.until if state == "ahead" else known.settled_at if state == "settling" else None
        counted = now - known.ahead_s - known.settling_s
        return ClockState(
            state=state,  # type: ignore[arg-type]
            now=now,
            passed=_count_elapsed(known, now),
            off_s=abs(off_s),
            since=known.since,
            counts_in_s=None if until is None else max(0.0, until - counted),
        )

    def _look(self) -> tuple[Known, float]:
        """Return what is known and what the clock says now; a step is followed."""
        read, known = self._read(), self._known
        if read.boot != known.boot or abs(read.now - read.up_s - known.offset_s) > TOLERANCE_S:
            with self._lock:
                self._set(follow(self._known, read))
                known = self._known
        return known, read.now

    def _set(self, known: Known) -> None:
        before, self._known = self._known, known
        if known.ahead_s and known.ahead_s != before.ahead_s:
            log.warning("the system clock is %s; if it is right, run: memctl jobs confirm-clock", _format_offset(known))


def _decode(kept: str | None) -> Known | None:
    with suppress(msgspec.MsgspecError):  # then the clock is taken for right
        return None if kept is None else msgspec.json.decode(kept, type=Known)
    return None


def _count_elapsed(known: Known, now: float) -> float:
    return now - known.ahead_s if known.lost or known.ahead_s > 0 else now


def _format_offset(known: Known) -> str:
    off = span(abs(known.ahead_s))
    if known.ahead_s > 0:
        return f"{off} ahead of the time that has passed, nothing expires by that"
    return f"{off} behind the time that it showed before"


def span(seconds: float) -> str:
    """Return a span of time in days, or in hours."""
    return f"{seconds / _DAY_S:.0f} days" if seconds >= 2 * _DAY_S else f"{seconds / _HOUR_S:.0f} hours"
