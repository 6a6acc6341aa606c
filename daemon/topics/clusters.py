"""Clustering: nearest neighbours, agglomeration, communities. Pure functions on NumPy arrays.

`pause` is called every few milliseconds of work; it may wait, and may raise to cancel.
"""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.store.vectors import Vector

MAX_MEMBERS = 20
_WHOLE = 8192  # up to this many vectors each is compared with all others
_CELL = 400  # vectors per cell, on average
_PROBED = 24  # cells whose vectors are compared with a vector
_ROUNDS = 4  # of k-means
_BLOCK = 256  # vectors of one matrix product
_UNION = 100  # pairs between two pauses
_SEED = 20

Pause = Callable[[], None]
Places = NDArray[np.int64]


class Pairs(NamedTuple):
    """Distinct pairs of indexes into a matrix of vectors, `lower` < `upper`, by falling cosine."""

    lower: Places
    upper: Places
    cosines: NDArray[np.float32]

    def above(self, floor: float) -> "Pairs":
        """Return the pairs with a cosine of at least `floor`."""
        kept = self.cosines >= floor
        return Pairs(self.lower[kept], self.upper[kept], self.cosines[kept])


def find_pairs(units: Vector, floor: float, nearest: int, pause: Pause) -> Pairs:
    """Return the pairs of unit vectors with a cosine of at least `floor` where one is among the other's nearest.

    With more than `_WHOLE` vectors each is compared only with those in the `_PROBED` nearest cells, which misses about
    one in fifty of the pairs that are close enough for a node.
    """
    count = len(units)
    cells, probes = _build_cells(units, pause) if count > _WHOLE else ([np.arange(count)], [np.arange(count)])
    best = np.full((count, nearest), -2.0, np.float32)
    others = np.zeros((count, nearest), np.int64)
    line_of = np.zeros(count, np.int64)
    for members, rows in zip(cells, probes, strict=True):
        candidates = units[members].astype(np.float32)
        line_of[rows] = -1
        line_of[members] = np.arange(len(members))
        for start in range(0, len(rows), _BLOCK):
            part = rows[start : start + _BLOCK]
            cosines = units[part].astype(np.float32) @ candidates.T
            own = np.flatnonzero(line_of[part] >= 0)
            cosines[own, line_of[part[own]]] = -2.0  # a vector is not its own neighbour
            values, places = _find_nearest(cosines, floor, nearest)
            values, places = np.hstack([best[part], values]), np.hstack([others[part], members[places]])
            order = np.argsort(-values, axis=1, kind="stable")[:, :nearest]
            best[part] = np.take_along_axis(values, order, 1)
            others[part] = np.take_along_axis(places, order, 1)
            pause()
        line_of[members] = -1
    one, at = np.nonzero(best >= floor)
    other, cosines = others[one, at], best[one, at]
    keys, first = np.unique(np.minimum(one, other) * count + np.maximum(one, other), return_index=True)
    order = np.argsort(-cosines[first], kind="stable")
    return Pairs(keys[order] // max(1, count), keys[order] % max(1, count), cosines[first][order])


def _find_nearest(cosines: Vector, floor: float, nearest: int) -> tuple[Vector, Places]:
    """Return the largest cosines of each row that reach a floor, with their columns; overwrites the matrix."""
    lines = np.arange(len(cosines))
    values = np.full((len(cosines), nearest), -2.0, np.float32)
    places = np.zeros((len(cosines), nearest), np.int64)
    for number in range(nearest if cosines.size else 0):  # passes of argmax are ten times faster than an argpartition
        best = cosines.argmax(axis=1)
        values[:, number], places[:, number] = cosines[lines, best], best
        if values[:, number].max() < floor:
            break
        cosines[lines, best] = -2.0
    return values, places


def _build_cells(units: Vector, pause: Pause) -> tuple[list[Places], list[Places]]:
    """Return for each cell the vectors in it, and the vectors to compare with them."""
    centres = _find_centres(units, len(units) // _CELL, pause)
    near = np.zeros((len(units), _PROBED), np.int64)
    for start in range(0, len(units), _BLOCK):
        cosines = units[start : start + _BLOCK].astype(np.float32) @ centres.T
        near[start : start + _BLOCK] = _find_nearest(cosines, -1.0, _PROBED)[1]
        pause()
    return _sort_by(near[:, :1], len(centres)), _sort_by(near, len(centres))


def _sort_by(near: Places, count: int) -> list[Places]:
    """Return for each cell the rows of a matrix that contain it."""
    cells = near.ravel()
    order = np.argsort(cells, kind="stable")
    bounds = np.searchsorted(cells[order], np.arange(count + 1))
    return [order[start:end] // near.shape[1] for start, end in pairwise(bounds.tolist())]


def _find_centres(units: Vector, count: int, pause: Pause) -> Vector:
    """Return the centres of cells: k-means of an evenly spread sample, which is deterministic."""
    sample = units[:: max(1, len(units) // (count * 40))].astype(np.float32)
    centres = sample[:: max(1, len(sample) // count)][:count]
    for _ in range(_ROUNDS):
        cell_of = _assign(sample, centres, pause)
        order = np.argsort(cell_of, kind="stable")
        present, starts = np.unique(cell_of[order], return_index=True)
        centres = scale_to_unit(np.add.reduceat(sample[order], starts, axis=0))
        assert len(present) == len(centres)
        pause()
    return centres


def _assign(units: Vector, centres: Vector, pause: Pause) -> Places:
    nearest = np.zeros(len(units), np.int64)
    for start in range(0, len(units), _BLOCK):
        nearest[start : start + _BLOCK] = (units[start : start + _BLOCK].astype(np.float32) @ centres.T).argmax(axis=1)
        pause()
    return nearest


def scale_to_unit(vectors: Vector) -> Vector:
    """Return the rows scaled to length 1; rows of zeros stay zero."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    scaled: Vector = vectors / np.maximum(lengths, np.float32(1e-12))
    return scaled


def agglomerate(
    units: Vector, sizes: Sequence[int], pairs: Pairs, floor: float, most: int, pause: Pause
) -> list[list[int]]:
    """Return groups of unit vectors, as sorted indexes.

    Pairs are processed by falling cosine: the groups of both are merged if their centres (the sums of vectors times
    sizes) have a cosine of at least `floor` and their total size is at most `most`.
    """
    group_of = list(range(len(units)))
    count, lengths = list(sizes), [float(size) for size in sizes]
    sums: dict[int, Vector] = {}

    def find(place: int) -> int:
        while group_of[place] != place:
            group_of[place] = group_of[group_of[place]]
            place = group_of[place]
        return place

    def total(group: int) -> Vector:
        known = sums.get(group)
        return units[group].astype(np.float32) * np.float32(count[group]) if known is None else known

    for number, (lower, upper) in enumerate(zip(pairs.lower.tolist(), pairs.upper.tolist(), strict=True)):
        if number % _UNION == 0:
            pause()
        one, other = find(lower), find(upper)
        if one == other or count[one] + count[other] > most:
            continue
        first, second = total(one), total(other)
        product = float(first @ second)
        if product < floor * lengths[one] * lengths[other]:
            continue
        sums[one] = first + second
        sums.pop(other, None)
        lengths[one] = math.sqrt(lengths[one] ** 2 + lengths[other] ** 2 + 2 * product)
        count[one] += count[other]
        group_of[other] = one
    groups: dict[int, list[int]] = {}
    for place in range(len(units)):
        groups.setdefault(find(place), []).append(place)
    return list(groups.values())


def find_communities(edges: Sequence[tuple[int, int, float]]) -> list[list[int]]:
    """Return the communities of two or more indexes (Leiden), sorted by their first index.

    Deterministic for the same edges in the same order. The library is imported here, since it is rarely needed.
    """
    if not edges:
        return []
    from graspologic_native import leiden

    _, found = leiden(
        edges=[(str(one), str(other), weight) for one, other, weight in edges],
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
