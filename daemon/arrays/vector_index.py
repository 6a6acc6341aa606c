"""The vector index in RAM: int8 codes of all vectors.

A search scans the heads of all codes (`basis`), then the tails of the rows that may be among the best; the caller
rescores these with the float32 vectors in the database.

Codes and a few columns are stored by position (`positions`): the codes in blocks, so that growing copies nothing; 407
bytes a vector at 384 dimensions. A search returns the same as a scan of all codes, exact to about 0.001. Only if more
than `scan.DEEP` rows may be among the best, which happens beyond some 100,000 vectors, it considers that many of them,
the best by their heads. With fewer than `_LEARN_AT` vectors there is no rotation, and all codes are scanned.

Threads: changes hold a lock. A search takes a view of the arrays and scans without the lock; rows that are changed
meanwhile may be scored wrongly, which the exact rescoring corrects. Every change has a stamp: if a caller reads `stamp`
before a search, it can look for rows that the search missed among those with a later stamp.
"""

import threading
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.arrays import basis
from memoryd.daemon.arrays.basis import ArrayReader, Blocks, Coded
from memoryd.daemon.arrays.columns import Mask
from memoryd.daemon.arrays.positions import Places, Positions, find_distinct, grow
from memoryd.daemon.arrays.scan import AlikeQuery, ScanView, compute_scores, find_best, search_above
from memoryd.daemon.store.vectors import Vector

RowKey = tuple[int, int, str]  # row, namespace, type
RESCORE = 64
_LEARN_AT = 16_384  # vectors, at which the basis is learned
_LEARN_FROM = 8_192  # vectors, of which it is learned
_SAME = 1e-3  # the squared distance below which vectors differ by rounding alone
_LATEST = 8_192  # changes whose stamps are kept


class NearestRows(NamedTuple):
    """Rows by descending approximate cosine."""

    rows: NDArray[np.int64]
    similarities: NDArray[np.float32]


class VectorIndex:
    """Codes of all vectors of one model, with namespace and type of each row for filtering."""

    def __init__(self, dimensions: int, positions: Positions | None = None) -> None:
        self.dimensions = dimensions
        self._positions, self._is_owner = positions or Positions(), positions is None
        self._lock = threading.Lock()
        self._count = self._used = 0
        self._types: dict[str, int] = {}
        self.stamp = 0  # of the latest change
        self._changed: deque[tuple[int, int]] = deque(maxlen=_LATEST)  # stamp and position
        self._basis = basis.make_plain(dimensions)
        self._heads, self._rest = Blocks(self._basis.head), Blocks(dimensions - self._basis.head)
        self._present = np.zeros(0, np.bool_)
        self._scales, self._tails = np.zeros(0, np.float32), np.zeros(0, np.float32)
        self._namespaces, self._kinds = np.zeros(0, np.int32), np.zeros(0, np.int16)
        self._numbers = np.zeros(0, np.int64)  # ids of the vectors in the database

    def __len__(self) -> int:
        return self._count

    def __contains__(self, row: int) -> bool:
        place = self._positions.find_one(row)
        return 0 <= place < self._used and bool(self._present[place])

    def size_bytes(self) -> int:
        """Return the size of the part that is in use."""
        columns = (self._present, self._scales, self._tails, self._namespaces, self._kinds, self._numbers)
        return self._used * (self.dimensions + sum(column.itemsize for column in columns))

    def add(self, row: int, namespace: int, kind: str, vector: Vector) -> None:
        """Add a row or replace its vector."""
        self.extend([(row, namespace, kind)], vector[None, :])

    def extend(self, keys: Sequence[RowKey], vectors: Vector, numbers: Sequence[int] | int = 0) -> None:
        """Add many (row, namespace, type) with their vectors, shape (n, dimensions).

        `numbers` are the ids of the vectors in the database; 0: unknown.
        """
        # Holding the epoch keeps the positions of rows that are deleted meanwhile until the codes are written.
        places, _epoch = self._positions.ensure(row for row, _, _ in keys)
        with self._lock:
            self._make_room(int(places.max(initial=-1)) + 1)
            self._write(places, self._basis.encode(vectors))
            self._namespaces[places] = [namespace for _, namespace, _ in keys]
            self._kinds[places] = [self._types.setdefault(kind, len(self._types)) for _, _, kind in keys]
            self._numbers[places] = numbers
            distinct = find_distinct(places)
            self._count += len(distinct) - int(np.count_nonzero(self._present[distinct]))
            self._present[places] = True
            self.stamp += 1
            self._changed.extend((self.stamp, place) for place in places.tolist())
            if self._basis.rotation is None and self._count >= _LEARN_AT:
                self._learn_basis()

    def remove(self, rows: Iterable[int]) -> None:
        """Remove rows, as far as they are in the index."""
        rows = list(rows)
        with self._lock:
            places = find_distinct(self._select_known(self._positions.find(rows)))
            places = places[places >= 0]
            self._present[places] = False
            self._count -= len(places)
            for codes in (self._heads, self._rest):  # overwritten, so that a dump has nothing of them
                codes.write(places, np.zeros((len(places), codes.width), np.int8))
            if self._is_owner:
                self._positions.give_up(rows)

    def find_nearest(
        self, query: Vector, k: int, allowed: Mask | None = None, namespaces: frozenset[int] | None = None
    ) -> NearestRows:
        """Return the `k` rows most similar to `query` among those that a mask and namespaces allow (None: all)."""
        _epoch = self._positions.epoch  # keeps the positions of the rows found until the end
        view = self._view()
        mask = view.present.copy()
        if allowed is not None:
            permitted = allowed.allowed[: len(mask)]
            mask[: len(permitted)] &= permitted
            mask[len(permitted) :] = False
        if namespaces is not None:
            mask &= np.isin(view.namespaces, np.fromiter(namespaces, np.int32))
        [encoded] = view.basis.encode_queries(query[None, :])
        places, scores = find_best(view, encoded, k, mask)
        return NearestRows(self._positions.read_rows(places), scores)

    def count_missing(self, allowed: Mask) -> int:
        """Return how many of the rows that a mask allows have no vector in the index."""
        present, permitted = self._view().present, allowed.allowed
        shared = min(len(present), len(permitted))
        return int(np.count_nonzero(permitted[:shared] & ~present[:shared]) + np.count_nonzero(permitted[shared:]))

    def find_alike(self, queries: Vector, alike: AlikeQuery) -> list[list[int]]:
        """Return for each query the rows that `alike` describes, most similar first, including uncommitted ones.

        Many queries are compared by matrix products, which costs about a sixth of a scan for each of them.
        """
        if alike.after >= self.stamp:
            return [[] for _ in queries]
        _epoch = self._positions.epoch
        newer = self._find_changed(alike.after) if alike.after else None
        view, kind = self._view(), self._types.get(alike.kind, -1)
        among = slice(None) if newer is None else newer
        mask = view.present[among] & (view.namespaces[among] == alike.namespace) & (view.kinds[among] == kind)
        places = np.flatnonzero(mask) if newer is None else newer[mask]
        return [self._positions.read_rows(one).tolist() for one in search_above(view, queries, places, alike)]

    def _find_changed(self, stamp: int) -> Places | None:
        """Return the positions that were changed after a stamp, None if their stamps are not kept any more."""
        with self._lock:
            if len(self._changed) == _LATEST and self._changed[0][0] > stamp:
                return None
            recent = set()
            for changed, place in reversed(self._changed):
                if changed <= stamp:
                    break
                recent.add(place)
        return np.array(sorted(recent), np.int64)

    def find_missing(self, places: Places) -> list[int]:
        """Return the rows of the positions that have no vector."""
        with self._lock:
            rows: list[int] = self._positions.read_rows(places[self._select_known(places) < 0]).tolist()
        return rows

    def count(self, namespace: int) -> int:
        """Return how many rows of a namespace have a vector."""
        view = self._view()
        return int(np.count_nonzero(view.present & (view.namespaces == namespace)))

    def find_vector_ids(self, rows: Sequence[int]) -> list[int]:
        """Return for each row the id of its vector in the database; 0: unknown."""
        with self._lock:
            places = self._select_known(self._positions.find(rows))
            numbers = np.zeros(len(places), np.int64)
            numbers[places >= 0] = self._numbers[places[places >= 0]]
        ids: list[int] = numbers.tolist()
        return ids

    def note_vector_ids(self, rows: Sequence[int], numbers: Sequence[int], vectors: Vector) -> None:
        """Record the ids of vectors in the database, for rows that still have these vectors."""
        with self._lock:
            places = self._select_known(self._positions.find(rows))
            is_there = places >= 0
            order = np.argsort(places[is_there])
            at = places[is_there][order]
            old_vectors = np.hstack([self._heads.gather(at), self._rest.gather(at)]) * self._scales[at, None]
            coded = self._basis.encode(vectors[is_there][order])
            new_vectors = np.hstack([coded.head, coded.tail]) * coded.scales[:, None]
            same = np.square(old_vectors - new_vectors).sum(axis=1) < _SAME
            self._numbers[at[same]] = np.array(numbers, np.int64)[is_there][order][same]

    def compute_similarities(self, query: Vector, rows: NDArray[np.int64]) -> list[tuple[int, float]]:
        """Return (row, cosine), exact to about 0.001, for the rows that have a vector."""
        places = self._select_known(self._positions.find(rows))
        view, is_there = self._view(), places >= 0  # an earlier view could lack some of these places
        [encoded] = view.basis.encode_queries(query[None, :])
        scores = compute_scores(view, encoded, places[is_there])
        return list(zip(rows[is_there].tolist(), scores.tolist(), strict=True))

    def dump(self) -> dict[str, NDArray[Any]]:
        """Return all arrays that `restore` needs, by position; the row of an unused position is -1."""
        used = slice(self._used)
        rows = np.where(self._present[used], self._positions.read_rows(np.arange(self._used)), -1)
        kinds = np.array(list(self._types), np.str_)
        rotation = np.zeros(0, np.float32) if self._basis.rotation is None else self._basis.rotation
        arrays = {"rows": rows, "types": kinds, "mean": self._basis.mean, "rotation": rotation}
        for name in ("scales", "tails", "namespaces", "kinds", "numbers"):
            arrays[name] = getattr(self, f"_{name}")[used]
        return arrays | self._heads.dump("heads", self._used) | self._rest.dump("rest", self._used)

    def restore(self, read: ArrayReader) -> None:
        """Read the arrays that `dump` returned, by name, for the rows that still exist; the index must be empty."""
        rows, rotation = read("rows"), read("rotation")
        if self._is_owner:
            self._positions.ensure(rows[rows >= 0])
        places_now = self._positions.find(rows)
        indices = np.flatnonzero(places_now >= 0)
        places = places_now[indices]
        with self._lock:
            self._basis = basis.Basis(read("mean"), rotation if len(rotation) else None, self._basis.head)
            self._make_room(int(places.max(initial=-1)) + 1)
            for name in ("scales", "tails", "namespaces", "kinds", "numbers"):
                getattr(self, f"_{name}")[places] = read(name)[indices]
            self._heads.restore("heads", read, indices, places)
            self._rest.restore("rest", read, indices, places)
            self._types = {str(kind): number for number, kind in enumerate(read("types"))}
            self._present[places] = True
            self._count, self.stamp = len(places), 1

    def _select_known(self, places: Places) -> Places:
        """Return the positions, with -1 instead of those that have no vector."""
        inside = (places >= 0) & (places < self._used)
        inside[inside] = self._present[places[inside]]
        return np.where(inside, places, -1)

    def _view(self) -> ScanView:
        with self._lock:
            columns = (self._present, self._scales, self._tails, self._namespaces, self._kinds)
            used = (column[: self._used] for column in columns)
            return ScanView(self._basis, self._heads.view(), self._rest.view(), *used)  # type: ignore[arg-type]

    def _make_room(self, used: int) -> None:
        self._present, self._scales = grow(self._present, used), grow(self._scales, used)
        self._tails, self._namespaces = grow(self._tails, used), grow(self._namespaces, used)
        self._kinds, self._numbers = grow(self._kinds, used), grow(self._numbers, used)
        self._heads.make_room(used)
        self._rest.make_room(used)
        self._used = max(self._used, used)

    def _write(self, places: Places, coded: Coded) -> None:
        self._heads.write(places, coded.head)
        self._rest.write(places, coded.tail)
        self._scales[places], self._tails[places] = coded.scales, coded.tails

    def _learn_basis(self) -> None:
        """Learn the basis from the indexed vectors, and encode them again in new arrays."""
        places = np.flatnonzero(self._present[: self._used])
        coded = Coded(self._heads.gather(places), self._rest.gather(places), self._scales[places], self._tails[places])
        vectors = self._basis.decode(coded)
        self._basis = basis.learn(vectors[:: max(1, len(vectors) // _LEARN_FROM)])
        self._heads, self._rest = Blocks(self._basis.head), Blocks(self.dimensions - self._basis.head)
        self._scales, self._tails = self._scales.copy(), self._tails.copy()
        self._heads.make_room(self._used)
        self._rest.make_room(self._used)
        self._write(places, self._basis.encode(vectors))
