"""Counts and latencies of calls since the daemon started, and during the last 30 to 60 s.

Latencies are counted in a fixed number of buckets, so that counting costs less than a microsecond and never allocates.
Bucket i counts times from 2^(i/8 - 20) seconds (1 µs for i = 0) up to the next limit, which is 9 % longer; so a
percentile is wrong by at most 9 %. Shorter times are counted in the first bucket, longer ones in the last (1,024 s).

Threads: only the event loop counts, without a lock; readers copy a list, which no other thread can interrupt.
"""

from copy import copy
from math import log2
from time import perf_counter

from memoryd.client.protocol import LATENCY_LIMITS_S, MethodStats, Recent

PER_OCTAVE = 8
SIZE = 30 * PER_OCTAVE
LOWEST_EXPONENT = -20
_OFFSET = -LOWEST_EXPONENT * PER_OCTAVE

_COARSE_EDGES = [round(log2(limit_s) - LOWEST_EXPONENT) * PER_OCTAVE for limit_s in LATENCY_LIMITS_S]

TURN_S = 30.0  # "recent" means since the turn before the last


class _Meter:
    __slots__ = ("before", "calls", "errors", "former", "latest", "since", "total_s", "turned_at")

    def __init__(self, now: float) -> None:
        self.calls = self.errors = 0
        self.total_s = 0.0
        self.former = [0] * SIZE  # calls that are no longer recent
        self.before = [0] * SIZE
        self.latest = [0] * SIZE
        self.since = self.turned_at = now  # when `before` and `latest` began

    def turn(self, now: float) -> None:
        """Begin a new turn: the calls of the turn before the last are no longer recent."""
        self.former = [old + new for old, new in zip(self.former, self.before, strict=True)]
        if now - self.turned_at < 2 * TURN_S:
            self.before, self.since = self.latest, self.turned_at
        else:  # no call came for a long time
            self.former = [old + new for old, new in zip(self.former, self.latest, strict=True)]
            self.before, self.since = [0] * SIZE, now - TURN_S
        self.latest, self.turned_at = [0] * SIZE, now


class Meters:
    """One meter per method."""

    def __init__(self) -> None:
        self._meters: dict[str, _Meter] = {}

    def count(self, method: str, took_s: float, failed: bool, now: float) -> None:
        """Count one call that ended `now`, a time of `perf_counter`."""
        meter = self._meters.get(method)
        if meter is None:
            meter = self._meters[method] = _Meter(now)
        elif now - meter.turned_at >= TURN_S:
            meter.turn(now)
        meter.calls += 1
        meter.errors += failed
        meter.total_s += took_s
        meter.latest[find_bucket(took_s)] += 1

    def read(self, now: float | None = None) -> dict[str, MethodStats]:
        """Return the statistics of each method that was called."""
        now = perf_counter() if now is None else now
        return {name: _report(meter, now) for name, meter in sorted(self._meters.copy().items())}


def _report(meter: _Meter, now: float) -> MethodStats:
    seen = copy(meter)
    seen.latest = list(seen.latest)  # the only list that is changed in place
    if now - seen.turned_at >= TURN_S:
        seen.turn(now)
    recent = [old + new for old, new in zip(seen.before, seen.latest, strict=True)]
    everything = [old + new for old, new in zip(seen.former, recent, strict=True)]
    return MethodStats(
        calls=seen.calls,
        errors=seen.errors,
        **_percentiles(everything),
        total_s=round(seen.total_s, 6),
        at_most=sum_coarse(everything),
        recent=Recent(over_s=round(max(now - seen.since, 1e-3), 3), calls=sum(recent), **_percentiles(recent)),
    )


def _percentiles(counts: list[int]) -> dict[str, float]:
    return {f"p{percent}_ms": round(percentile(counts, percent) * 1000, 3) for percent in (50, 95, 99)}


def find_bucket(took_s: float) -> int:
    """Return the number of the bucket that a time belongs to."""
    if took_s <= 0.0:
        return 0
    bucket = int(log2(took_s) * PER_OCTAVE + _OFFSET)  # int() rounds toward zero, but negative ones become 0 anyway
    return 0 if bucket < 0 else bucket if bucket < SIZE else SIZE - 1


def percentile(counts: list[int], percent: float) -> float:
    """Return the nearest-rank percentile in seconds, interpolated inside its bucket; 0 if nothing was counted."""
    total = sum(counts)
    if not total:
        return 0.0
    rank = max(1, -int(-total * percent // 100))  # rounded up
    before = 0
    for place, count in enumerate(counts):
        if before + count >= rank:
            share = (rank - before - 0.5) / count
            return float(2.0 ** ((place + share) / PER_OCTAVE + LOWEST_EXPONENT))
        before += count
    raise AssertionError("the rank is at most the total")


def sum_coarse(counts: list[int]) -> list[int]:
    """Return, for each of `LATENCY_LIMITS_S`, how many latencies were at most that; all are edges of buckets."""
    return [sum(counts[:edge]) for edge in _COARSE_EDGES]
