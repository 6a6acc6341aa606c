"""How good a ranking is, against the set of right answers. Each figure is 0..1; sizes follow the usual definitions."""

from collections.abc import Hashable, Sequence
from math import log2


def recall_at(k: int, ranked: Sequence[Hashable], gold: frozenset[Hashable]) -> float:
    """Return the share of the right answers that are among the first `k`."""
    return len(gold.intersection(ranked[:k])) / len(gold)


def hit_at(k: int, ranked: Sequence[Hashable], gold: frozenset[Hashable]) -> float:
    """Return 1 when any right answer is among the first `k`."""
    return float(not gold.isdisjoint(ranked[:k]))


def ndcg_at(k: int, ranked: Sequence[Hashable], gold: frozenset[Hashable]) -> float:
    """Return the discounted gain (1 / log2(rank + 1) for each right answer) over that of a perfect ranking."""
    gain = sum(1 / log2(rank + 1) for rank, key in enumerate(ranked[:k], 1) if key in gold)
    return gain / sum(1 / log2(rank + 1) for rank in range(1, min(k, len(gold)) + 1))


def reciprocal_rank(ranked: Sequence[Hashable], gold: frozenset[Hashable]) -> float:
    """Return 1 / rank of the first right answer, 0 without one."""
    return next((1 / rank for rank, key in enumerate(ranked, 1) if key in gold), 0.0)


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values lie (nearest rank)."""
    ordered = sorted(values)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]
