"""Latencies in a fixed number of buckets, so that counting one costs less than a microsecond and never allocates.

Bucket i holds times from 2^(i/8 - 20) seconds (1 µs) up to the next, 9 % longer, which is how wrong a percentile can be
at most. What is shorter or longer than all of them is in the first or the last (1,024 s).
"""

from math import log2

from memoryd.client.protocol import LATENCY_LIMITS_S

PER_OCTAVE = 8
SIZE = 30 * PER_OCTAVE
LOWEST_EXPONENT = -20
_OFFSET = -LOWEST_EXPONENT * PER_OCTAVE

_COARSE_EDGES = [round(log2(limit_s) - LOWEST_EXPONENT) * PER_OCTAVE for limit_s in LATENCY_LIMITS_S]


def find_bucket(took_s: float) -> int:
    """Return the number of the bucket that a time belongs to."""
    if took_s <= 0.0:
        return 0
    place = int(log2(took_s) * PER_OCTAVE + _OFFSET)  # what int() cuts off toward zero is in the first one anyway
    return 0 if place < 0 else place if place < SIZE else SIZE - 1


def percentile(counts: list[int], percent: float) -> float:
    """Return the nearest-rank percentile in seconds, interpolated inside its bucket; 0 where nothing was counted."""
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
    """Return how many times were at most each of `LATENCY_LIMITS_S`, which are edges of buckets."""
    return [sum(counts[:edge]) for edge in _COARSE_EDGES]
