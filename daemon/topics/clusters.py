"""Arithmetic of clusters: joining in order, splitting, merging. Pure functions of NumPy arrays.

Rule of joining (leader clustering): a vector joins the cluster whose centroid has the largest cosine to it, if that is
at least the threshold, else it founds one. A centroid is the running mean of its members' unit vectors and is
renormalised when compared. The outcome depends on the order of the vectors and on nothing else: they are compared in
blocks by one matrix product, and what a join changes within a block is computed again at once.
"""

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.store.vectors import Vector

MAX_MEMBERS = 20
ROOMY = 14  # members that a part of a split has at most, if possible: a full one is split again by the next that joins
STEP = 0.05  # by which the threshold rises each time a cluster is too large
_STRICTEST = 0.99  # above it rounding would distinguish equal vectors
_BLOCK = 256
_NEVER = np.float32(-2.0)  # below every cosine

ClusterPlaces = NDArray[np.int64]


def unit(vectors: Vector) -> Vector:
    """Return the rows at length 1; a row of zeros stays."""
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))[:, None]
    scaled: Vector = vectors / np.maximum(lengths, np.float32(1e-12))
    return scaled


class Clusters:
    """A growing set of clusters: for each the sum of its members' unit vectors, their number, the unit centroid."""

    def __init__(self, dimensions: int) -> None:
        self.count = 0
        self.sizes: ClusterPlaces = np.zeros(_BLOCK, np.int64)
        self._sums = np.zeros((_BLOCK, dimensions), np.float32)
        self.units = np.zeros((_BLOCK, dimensions), np.float32)

    def mean(self, place: int) -> Vector:
        """Return the mean of a cluster's members."""
        mean: Vector = self._sums[place] / np.float32(max(1, self.sizes[place]))
        return mean

    def add(self, total: Vector, size: int) -> int:
        """Append a cluster with the sum of its members' vectors; return its place."""
        self._reserve(1)
        place = self.count
        self.count += 1
        self.replace(place, total, size)
        return place

    def replace(self, place: int, total: Vector, size: int) -> None:
        """Give a cluster other members: the sum of their vectors and their number. With none it is never found."""
        self._sums[place], self.sizes[place] = total, size
        self.units[place] = total / np.float32(max(math.sqrt(total @ total), 1e-12))

    def merge(self, into: int, gone: int) -> None:
        """Move all members of one cluster to another."""
        self.replace(into, self._sums[into] + self._sums[gone], int(self.sizes[into] + self.sizes[gone]))
        self.replace(gone, np.zeros_like(self._sums[gone]), 0)

    def join(self, vectors: Vector, threshold: float) -> Iterator[int]:
        """Yield the place of the cluster that each unit vector joins or founds, in order."""
        for start in range(0, len(vectors), _BLOCK):
            yield from self._join_block(vectors[start : start + _BLOCK], threshold)

    def _join_block(self, block: Vector, threshold: float) -> Iterator[int]:
        """Compare a block at once, then go through it in order: only clusters that it changed are compared again."""
        self._reserve(len(block))
        before = self.count
        cosines = block @ self.units[:before].T
        nearest = cosines.argmax(axis=1) if before else np.full(len(block), -1)
        changed: dict[int, int] = {}  # place → its line in `again`
        again = np.full((len(block), len(block)), _NEVER, np.float32)
        for here, vector in enumerate(block):
            best = int(nearest[here])
            if best in changed:
                cosines[here, [place for place in changed if place < before]] = _NEVER
                best = int(cosines[here].argmax())
            cosine = cosines[here, best] if before else _NEVER
            line = int(again[: len(changed), here].argmax()) if changed else -1
            if changed and again[line, here] > cosine:
                best, cosine = list(changed)[line], again[line, here]
            if cosine < threshold:
                best = self.add(vector, 1)
            else:
                self.replace(best, self._sums[best] + vector, int(self.sizes[best]) + 1)
            line = changed.setdefault(best, len(changed))
            again[line, here + 1 :] = block[here + 1 :] @ self.units[best]
            yield best

    def _reserve(self, more: int) -> None:
        if self.count + more <= len(self.sizes):
            return
        room = max(2 * len(self.sizes), self.count + more)
        for name in ("sizes", "_sums", "units"):
            old = getattr(self, name)
            new = np.zeros((room, *old.shape[1:]), old.dtype)
            new[: self.count] = old[: self.count]
            setattr(self, name, new)

    def find_similar(self, changed: Sequence[int], floor: float) -> Iterator[tuple[float, int, int]]:
        """Yield (cosine, place, other) for each pair of a changed cluster with any that is at or above a cosine.

        Only pairs that fit into one node, each once.
        """
        is_changed = np.zeros(self.count, bool)
        is_changed[list(changed)] = True
        for start in range(0, len(changed), _BLOCK):
            places = np.asarray(changed[start : start + _BLOCK], np.int64)
            cosines = self.units[places] @ self.units[: self.count].T
            lines, others = np.nonzero(cosines >= floor)
            fit = self.sizes[places[lines]] + self.sizes[others] <= MAX_MEMBERS
            for line, other in zip(lines[fit].tolist(), others[fit].tolist(), strict=True):
                place = int(places[line])
                # Two changed ones meet twice: only the lower asks.
                if place != other and not (is_changed[other] and other < place):
                    yield float(cosines[line, other]), place, other


def find_mergeable(clusters: Clusters, changed: Sequence[int], floor: float) -> list[tuple[int, int]]:
    """Return disjoint pairs (into, merged) at or above a cosine that fit into one node, the most similar first.

    The larger takes in the smaller; of equals the one with the lower place.
    """
    taken: set[int] = set()
    found: list[tuple[int, int]] = []
    for _, a, b in sorted(clusters.find_similar(changed, floor), key=lambda pair: (-pair[0], pair[1], pair[2])):
        if not {a, b} & taken:
            taken |= {a, b}
            first, second = sorted((a, b), key=lambda place: (-int(clusters.sizes[place]), place))
            found.append((first, second))
    return found


def group_vectors(vectors: Vector, threshold: float) -> list[list[int]]:
    """Return the positions of vectors in the clusters that they form by themselves, in order."""
    clusters = Clusters(vectors.shape[1])
    groups: dict[int, list[int]] = {}
    for position, place in enumerate(clusters.join(vectors, threshold)):
        groups.setdefault(place, []).append(position)
    return list(groups.values())


# Splitting: everything from the cosines of the members with each other, as these are few ----------------------------


def split(vectors: Vector, threshold: float) -> list[list[int]]:
    """Return the positions of the vectors of one node in parts of at most `MAX_MEMBERS`, if possible with some room.

    They are clustered again `STEP` above the threshold that brought them together, and what is still too large `STEP`
    above that. Small groups that are left over are put together again where they are at least as similar as the node's
    members had to be.
    """
    cosines = vectors @ vectors.T
    return gather(cosines, sorted(group_to_size(cosines, threshold, ROOMY)), threshold, ROOMY)


def group_to_size(cosines: Vector, threshold: float, most: int) -> list[list[int]]:
    """Return the positions of vectors, clustered stricter by `STEP` each time, until each group has at most `most`.

    What no threshold can separate stays together up to `MAX_MEMBERS`; more is cut into equal parts in its order.
    """
    waiting = [(np.arange(len(cosines)), threshold)]
    done: list[list[int]] = []
    while waiting:
        part, strictness = waiting.pop()
        if len(part) <= most:
            done.append(part.tolist())
        elif strictness + STEP > _STRICTEST:
            done += cut_equal_parts(part.tolist(), MAX_MEMBERS)
        else:
            own = cosines[np.ix_(part, part)]
            waiting += [(part[group], strictness + STEP) for group in group_by_cosines(own, strictness + STEP)]
    return done


def group_by_cosines(cosines: Vector, threshold: float) -> list[list[int]]:
    """Return what `group_vectors` does for vectors of which only the cosines with each other are given.

    The cosine of a vector v with the centroid of C is the sum of v·c over C, divided by the length of the sum of C;
    that length squared is the sum of c·d over all pairs of C.
    """
    groups: list[list[int]] = []
    products = np.zeros_like(cosines)  # of each group's sum with each vector
    lengths = np.zeros(len(cosines), cosines.dtype)
    for position, own in enumerate(cosines):
        best = len(groups)
        if best:
            found = products[:best, position] / lengths[:best]
            nearest = int(found.argmax())
            best = nearest if found[nearest] >= threshold else best
        if best == len(groups):
            groups.append([])
        length = math.sqrt(lengths[best] ** 2 + 2 * products[best, position] + own[position])
        products[best] += own
        lengths[best] = max(length, 1e-12)
        groups[best].append(position)
    return groups


def gather(cosines: Vector, groups: list[list[int]], floor: float, most: int) -> list[list[int]]:
    """Put groups together while two of them are each other's nearest, at or above a cosine, and fit into one."""
    belongs = np.zeros((len(groups), len(cosines)), np.float32)
    for place, group in enumerate(groups):
        belongs[place, group] = 1.0
    # Of the groups' sums with each other.
    products = np.asarray(belongs @ cosines @ belongs.T, np.float32)
    while len(groups) > 1:
        pairs = _nearest_pairs(products, [len(group) for group in groups], floor, most)
        if not pairs:
            break
        kept = np.ones(len(groups), bool)
        for place, other in pairs:
            groups[place] = groups[place] + groups[other]
            products[place] += products[other]
            products[:, place] += products[:, other]
            kept[other] = False
        groups = [group for group, keep in zip(groups, kept, strict=True) if keep]
        products = products[np.ix_(kept, kept)]
    return sorted(sorted(group) for group in groups)


def _nearest_pairs(products: Vector, sizes: list[int], floor: float, most: int) -> list[tuple[int, int]]:
    """Return the pairs of groups that are each other's nearest among those they fit together with."""
    lengths = np.sqrt(np.maximum(products.diagonal(), 1e-12))
    found = products / lengths / lengths[:, None]
    counts = np.asarray(sizes)
    found[counts[:, None] + counts > most] = _NEVER
    np.fill_diagonal(found, _NEVER)
    nearest, here = found.argmax(axis=1), np.arange(len(sizes))
    pairs = here[(nearest[nearest] == here) & (here < nearest) & (found[here, nearest] >= floor)]
    return [(place, int(nearest[place])) for place in pairs.tolist()]


def cut_equal_parts(positions: Sequence[int], most: int) -> list[list[int]]:
    """Return positions cut in order into as few parts as possible whose lengths differ by one at most."""
    count = -(-len(positions) // most)
    cuts = [len(positions) * part // count for part in range(count + 1)]
    return [list(positions[a:b]) for a, b in pairwise(cuts)]
