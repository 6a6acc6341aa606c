"""Counts and latencies of calls since the daemon started."""

import threading
from collections import deque
from dataclasses import dataclass, field

from memoryd.client.protocol import MethodStats

_RECENT = 1024  # calls of a method from which percentiles are taken


@dataclass(slots=True)
class _Meter:
    calls: int = 0
    errors: int = 0
    recent_ms: deque[float] = field(default_factory=lambda: deque(maxlen=_RECENT))


class Meters:
    """One meter per method."""

    def __init__(self) -> None:
        self._meters: dict[str, _Meter] = {}
        self._lock = threading.Lock()

    def count(self, method: str, took_s: float, failed: bool) -> None:
        """Count one call."""
        with self._lock:
            meter = self._meters.setdefault(method, _Meter())
            meter.calls += 1
            meter.errors += failed
            meter.recent_ms.append(took_s * 1000)

    def read(self) -> dict[str, MethodStats]:
        """Return the statistics of each method that was called."""
        with self._lock:
            copied = {
                name: (meter.calls, meter.errors, sorted(meter.recent_ms)) for name, meter in self._meters.items()
            }
        return {
            name: MethodStats(
                calls=calls,
                errors=errors,
                p50_ms=round(percentile(times, 50), 3),
                p95_ms=round(percentile(times, 95), 3),
                p99_ms=round(percentile(times, 99), 3),
            )
            for name, (calls, errors, times) in sorted(copied.items())
        }


def percentile(ascending: list[float], percent: float) -> float:
    """Return the nearest-rank percentile of an ascending list, 0 for an empty one."""
    if not ascending:
        return 0.0
    rank = -(-len(ascending) * percent // 100)  # rounded up
    return ascending[max(0, int(rank) - 1)]
