"""A scan of the vector index: the positions nearest to a query, or above a floor.

The heads of the codes (`basis`) show which positions may be among the best; only these are scored by their whole codes.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.arrays.basis import Basis, Blocks, ScanQuery
from memoryd.daemon.arrays.positions import Places, find_top
from memoryd.daemon.store.vectors import Vector

DEEP = 16_384  # positions that are scored by their whole codes, at most, in addition to `k`
_GATHER_BELOW = 7  # gather the allowed positions if fewer than 1 in this many are allowed; at 1 in 6 it is as fast
_ROUNDING = 1e-4  # allows for the rounding of float32 bounds
_WHOLE = 20_000  # up to this many positions, scanning all whole codes is faster than choosing some
_FEW = 8  # fewer queries than this are faster one by one
_BLOCK = 2048  # positions of one matrix product: they stay in the processor's cache


class AlikeQuery(NamedTuple):
    """Which rows to find: at most `k` of a namespace and type, with a cosine above `floor`, changed after a stamp."""

    namespace: int
    kind: str
    floor: float
    k: int
    after: int = 0


class ScanView(NamedTuple):
    """The arrays as they were when a search began."""

    basis: Basis
    heads: Blocks
    rest: Blocks
    present: NDArray[np.bool_]
    scales: NDArray[np.float32]
    tails: NDArray[np.float32]
    namespaces: NDArray[np.int32]
    kinds: NDArray[np.int16]


class _Scan(NamedTuple):
    """Cosines by the heads: of the chosen positions, or of all (`places` is None) with -inf for those not chosen."""

    places: Places | None
    cosines: NDArray[np.float32]  # without the tails
    tails: NDArray[np.float32]
    chosen: int

    def select_positions(self, at: Places) -> Places:
        """Return the positions at some indexes of the scan."""
        return at if self.places is None else self.places[at]


def find_best(view: ScanView, query: ScanQuery, k: int, mask: NDArray[np.bool_]) -> tuple[Places, NDArray[np.float32]]:
    """Return the best chosen positions and their scores, best first."""
    scan = _scan(view, query, mask)
    if scan.places is None and (view.basis.rotation is None or len(mask) <= _WHOLE):
        rest = view.rest.multiply(query.tail, len(mask))
        cosines = scan.cosines + rest * (view.scales * np.float32(query.scale))
        best = find_top(cosines, min(k, scan.chosen))
        return best, cosines[best]
    candidates = scan.select_positions(_select_candidates(view, query, k, scan))
    scores = compute_scores(view, query, candidates)
    best = find_top(scores, k)
    return candidates[best], scores[best]


def _scan(view: ScanView, query: ScanQuery, mask: NDArray[np.bool_]) -> _Scan:
    count = int(np.count_nonzero(mask))
    places = np.flatnonzero(mask) if count * _GATHER_BELOW < len(mask) else None
    among = slice(None) if places is None else places
    cosines = (
        view.heads.multiply(query.head, len(mask)) if places is None else view.heads.multiply_at(query.head, places)
    )
    cosines *= view.scales[among]
    cosines *= np.float32(query.scale)
    cosines += np.float32(query.offset)
    if places is None:
        cosines[~mask] = -np.inf
    return _Scan(places, cosines, view.tails[among], count)


def _select_candidates(view: ScanView, query: ScanQuery, k: int, scan: _Scan) -> Places:
    """Return the indexes of the scan whose positions may be among the best."""
    if view.basis.rotation is None or scan.chosen <= 4 * k:
        return np.flatnonzero(scan.cosines > -np.inf)
    first = find_top(scan.cosines, 4 * k)
    scores = compute_scores(view, query, scan.select_positions(first))
    least = np.partition(scores, len(scores) - k)[len(scores) - k]
    # No tail is expected to be closer to the query's tail than chance allows, or than the tails of the best are.
    closest = float(((scores - scan.cosines[first]) / np.maximum(scan.tails[first] * query.tail_length, 1e-6)).max())
    found = np.flatnonzero(_compute_bounds(query, scan, max(closest, view.basis.compute_chance())) >= least - _ROUNDING)
    return found if len(found) <= DEEP + k else np.sort(found[find_top(scan.cosines[found], DEEP + k)])


def _compute_bounds(query: ScanQuery, scan: _Scan, closest: float = 1.0) -> NDArray[np.float32]:
    """Return upper bounds of the cosines, if no tail has a higher cosine with the query's tail than `closest`."""
    bounds: NDArray[np.float32] = scan.cosines + scan.tails * np.float32(closest * query.tail_length)
    return bounds


def compute_scores(view: ScanView, query: ScanQuery, places: Places) -> NDArray[np.float32]:
    """Return the cosines of positions with a query by their whole codes."""
    dots = view.heads.multiply_at(query.head, places) + view.rest.multiply_at(query.tail, places)
    scores: NDArray[np.float32] = dots * view.scales[places] * np.float32(query.scale) + np.float32(query.offset)
    return scores


def search_above(view: ScanView, queries: Vector, places: Places, alike: AlikeQuery) -> list[Places]:
    """Return for each query the best of some positions above the floor."""
    encoded = view.basis.encode_queries(queries)
    if len(encoded) < _FEW:
        mask = np.zeros(len(view.present), np.bool_)
        mask[places] = True
        return [_search_above_one(view, one, mask, alike) for one in encoded]
    return _search_above_by_blocks(view, encoded, places, alike)


def _search_above_one(view: ScanView, query: ScanQuery, mask: NDArray[np.bool_], alike: AlikeQuery) -> Places:
    scan = _scan(view, query, mask)
    places = scan.select_positions(np.flatnonzero(_compute_bounds(query, scan) > alike.floor - _ROUNDING))
    scores = compute_scores(view, query, places)
    best = find_top(scores, alike.k)
    return places[best[scores[best] > alike.floor]]


def _search_above_by_blocks(
    view: ScanView, encoded: Sequence[ScanQuery], places: Places, alike: AlikeQuery
) -> list[Places]:
    pairs: list[list[tuple[float, int]]] = [[] for _ in encoded]
    tails = np.array([one.tail_length for one in encoded], np.float32)
    heads = _build_matrix([one.head for one in encoded], encoded)
    rest = _build_matrix([one.tail for one in encoded], encoded)
    offsets = np.array([one.offset for one in encoded], np.float32)
    for start in range(0, len(places), _BLOCK):
        part = places[start : start + _BLOCK]
        scores = view.heads.gather(part).astype(np.float32) @ heads * view.scales[part, None] + offsets
        bounds = scores + view.tails[part, None] * tails
        at = np.flatnonzero((bounds > alike.floor - _ROUNDING).any(axis=1))
        scores, part = scores[at], part[at]
        scores += view.rest.gather(part).astype(np.float32) @ rest * view.scales[part, None]
        for query in np.flatnonzero(scores.max(axis=0, initial=-np.inf) > alike.floor):
            best = find_top(scores[:, query], alike.k)
            best = best[scores[best, query] > alike.floor]
            pairs[query] += zip(scores[best, query].tolist(), part[best].tolist(), strict=True)
    return [np.array([place for _, place in sorted(one, reverse=True)[: alike.k]], np.int64) for one in pairs]


def _build_matrix(codes: Sequence[NDArray[Any]], encoded: Sequence[ScanQuery]) -> NDArray[np.float32]:
    """Return a matrix with the codes of each query, times its scale, as a column."""
    scaled = np.stack(codes).astype(np.float32) * np.array([one.scale for one in encoded], np.float32)[:, None]
    return np.ascontiguousarray(scaled.T)
