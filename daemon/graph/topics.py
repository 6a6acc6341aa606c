"""Topics: communities of clusters by what is similar and what was retrieved together.

The weight of an edge is the cosine of two centroids, if one is among the other's nearest and it reaches a floor, plus
ln(1 + weight of their `co_occurs` edge): a fresh graph has topics by similarity alone, and use brings together what
belongs together. Communities are found by Leiden (Traag, Waltman, van Eck 2019) with modularity and a fixed seed. The
library is loaded when topics are made.
"""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from memoryd.daemon.store.vectors import Vector

NEAREST = 5
_SEED = 20
_BLOCK = 256

Pair = tuple[int, int]


def find_similar(units: Vector, floor: float, nearest: int = NEAREST) -> dict[Pair, float]:
    """Return the cosine of each pair of places (lower first) of which one is among the other's nearest."""
    found: dict[Pair, float] = {}
    k = min(nearest, len(units) - 1)
    for start in range(0, len(units), _BLOCK) if k > 0 else ():
        cosines = units[start : start + _BLOCK] @ units.T
        lines = np.arange(len(cosines))
        cosines[lines, start + lines] = -2.0  # itself
        for _ in range(k):  # several passes of argmax are ten times faster than one argpartition
            best = cosines.argmax(axis=1)
            values = cosines[lines, best]
            cosines[lines, best] = -2.0
            for place, other, cosine in zip((start + lines).tolist(), best.tolist(), values.tolist(), strict=True):
                if cosine >= floor:
                    found[min(place, other), max(place, other)] = cosine
    return found


def weights(cosines: dict[Pair, float], co_occurs: dict[Pair, float]) -> dict[Pair, float]:
    """Return the weight of each edge between places."""
    found = dict(cosines)
    for pair, weight in co_occurs.items():
        found[pair] = found.get(pair, 0.0) + math.log1p(weight)
    return found


def find_communities(edges: dict[Pair, float]) -> list[list[int]]:
    """Return the places in each community of two or more, by rising first place."""
    if not edges:
        return []
    from graspologic_native import leiden

    given = [(str(a), str(b), weight) for a, b, weight in _order(edges)]
    _, found = leiden(
        edges=given,
        starting_communities=None,
        resolution=1.0,
        randomness=0.001,
        iterations=1,
        use_modularity=True,
        seed=_SEED,
        trials=1,
    )
    groups: dict[int, list[int]] = {}
    for place, community in found.items():
        groups.setdefault(community, []).append(int(place))
    return sorted(sorted(group) for group in groups.values() if len(group) > 1)


def _order(edges: dict[Pair, float]) -> Iterator[tuple[int, int, float]]:
    """Yield edges by rising places, since the outcome depends on the order; no long sort, which would hold the GIL."""
    by_first: dict[int, list[tuple[int, float]]] = {}
    for (a, b), weight in edges.items():
        by_first.setdefault(a, []).append((b, weight))
    for a in sorted(by_first):
        for b, weight in sorted(by_first[a]):
            yield a, b, weight


def renumber(groups: Sequence[Sequence[int]], former: Iterable[tuple[int, int]], new: Iterable[int]) -> list[int]:
    """Return a number for each group of nodes: that of the former group it shares most with, else a new one.

    `former` are (node, number) pairs; each former number is given at most once, the largest overlap first.
    """
    number_of = dict(former)
    overlaps = [
        (-count, number, place)
        for place, group in enumerate(groups)
        for number, count in Counter(number_of[node] for node in group if node in number_of).items()
    ]
    given: dict[int, int] = {}
    for _, number, place in sorted(overlaps):
        if place not in given and number not in given.values():
            given[place] = number
    fresh = iter(new)
    return [given[place] if place in given else next(fresh) for place in range(len(groups))]
