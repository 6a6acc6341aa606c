"""One embedding model with the index of its vectors and the memories that still wait for one.

Every memory is in the index, in `pending`, or, once the model could not embed its text, in `failing`.
"""

import math
import threading
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.arrays.columns import Mask
from memoryd.daemon.arrays.positions import Positions
from memoryd.daemon.arrays.scan import AlikeQuery
from memoryd.daemon.arrays.vector_index import RowKey, VectorIndex
from memoryd.daemon.embedding.long_texts import PartVectors
from memoryd.daemon.store import vectors
from memoryd.daemon.store.codes import LoadedCodes
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.vectors import Vector
from memoryd.models import Embedder

# Row, namespace, type, the vector that searches use with its number on disk, that of the own text where it is another,
# whether it waits for a vector within its context.
StoredVector = tuple[int, int, str, int | None, bytes | None, bytes | None, int]
Stamp = tuple[int, int]

_CHUNK = 512  # rows taken into the index per lock while it is filled
_FEW = 256  # rows that are looked up one by one


class Generation:
    """`model` is its number in the database, `name` the one it was loaded by."""

    def __init__(self, model: int, name: str, embedder: Embedder, positions: Positions | None = None) -> None:
        self.model = model
        self.name = name
        self.embedder = embedder
        self.index = VectorIndex(embedder.dimensions, positions)
        self.own = VectorIndex(embedder.dimensions)  # of the own texts of those that are searched within a context
        self.parts = PartVectors(embedder.dimensions)  # of long texts
        self.pending: dict[int, None] = {}  # in the order they came
        self.compared_at = -math.inf  # when the index was last compared with the disk, in UTC seconds
        self.alone: dict[int, None] = {}  # found by their own text until they have a vector within their context
        self.trouble = ""  # why nothing can be embedded now
        self.failing: dict[int, None] = {}  # set aside, so that they hold up neither others nor a change of model
        self._touched: set[int] | None = set()  # rows written or removed while the index is being filled
        self._lock = threading.Lock()

    def fill(self, stored: Iterable[StoredVector]) -> None:
        """Take in what a snapshot of the database holds, unless a row was written or removed since."""
        rest = iter(stored)
        while chunk := list(islice(rest, _CHUNK)):
            with self._lock:
                self._take(chunk)
        with self._lock:
            self._touched = None

    def dump(self) -> dict[str, NDArray[Any]]:
        """Return the codes of both indexes, for `restore`."""
        parts = (("index", self.index.dump()), ("own", self.own.dump()))
        return {f"{part}.{name}": array for part, arrays in parts for name, array in arrays.items()}

    def restore(self, kept: LoadedCodes) -> None:
        """Take in codes that an earlier daemon kept; nothing may know this generation yet."""
        self.index.restore(lambda name: kept.arrays[f"index.{name}"])
        self.own.restore(lambda name: kept.arrays[f"own.{name}"])
        self.pending = dict.fromkeys(kept.header.pending)
        self._touched = None

    def index_row(self, row: int, namespace: int, kind: str, vector: Vector | None, own: Vector | None = None) -> None:
        """Take in a row with the vector that searches use, and its own where it is another; None: it waits for one."""
        self.parts.touch(row)
        with self._lock:
            self._forget(row)
            if own is None:
                self.own.remove([row])
            else:
                self.own.add(row, namespace, kind, own)
            if vector is None:
                self.index.remove([row])
                self.pending[row] = None
            else:
                self.index.add(row, namespace, kind, vector)

    def index_rows(self, keys: Sequence[RowKey], made: Sequence[Vector | None]) -> None:
        """Take in rows with their vectors, at once; those without one wait for it."""
        there = [at for at, vector in enumerate(made) if vector is not None]
        for row, _, _ in keys:
            self.parts.touch(row)
        with self._lock:
            for row, _, _ in keys:
                self._forget(row)
            self.own.remove(row for row, _, _ in keys)
            if there:
                self.index.extend([keys[at] for at in there], np.stack([made[at] for at in there]))  # type: ignore[misc]
            without = [row for (row, _, _), vector in zip(keys, made, strict=True) if vector is None]
            self.index.remove(without)
            self.pending |= dict.fromkeys(without)

    def remove_rows(self, rows: Sequence[int]) -> None:
        """Forget rows."""
        with self._lock:
            for row in rows:
                self._forget(row)
            self.index.remove(rows)
            self.own.remove(rows)
        for row in rows:
            self.parts.remove(row)

    def refresh(self, rows: Iterable[int], stored: Iterable[StoredVector]) -> None:
        """Take in what is on disk for some rows; those that are not are forgotten."""
        found = {item[0]: item for item in stored}
        for row in rows:
            if row in found:
                _, namespace, kind, _, *blobs, waits = found[row]
                vector, own = (np.frombuffer(blob, np.float32) if self._has_size(blob) else None for blob in blobs)
                self.index_row(row, namespace, kind, vector, own)
                if waits:
                    with self._lock:
                        self.alone[row] = None
            else:
                self.remove_rows([row])

    def take_stamp(self) -> Stamp:
        """Return the stamps of the latest changes: `find_alike` finds what is taken in after them."""
        return self.index.stamp, self.own.stamp

    def find_alike(self, queries: Vector, wanted: AlikeQuery, after: Stamp = (0, 0)) -> list[list[int]]:
        """Return for each query the rows that are wanted, by own texts and, within a context, by both."""
        by_search, by_own = (
            index.find_alike(queries, wanted._replace(after=stamp))
            for index, stamp in zip((self.index, self.own), after, strict=True)
        )
        return [list(dict.fromkeys([*one, *other])) for one, other in zip(by_search, by_own, strict=True)]

    def read_exact(self, connection: Connection, rows: Sequence[int]) -> tuple[list[int], Vector]:
        """Return those rows that have a vector, and their exact vectors from disk, shape (rows, dimensions)."""
        if not rows:
            return [], np.zeros((0, self.index.dimensions), np.float32)
        places = dict(zip(rows, self.index.find_places(rows), strict=True))
        known = vectors.read_places(connection, (place for place in places.values() if place))
        found = {row: known[place] for row, place in places.items() if place in known}
        if missing := [row for row in rows if row not in found]:
            looked_up = vectors.look_up_places(connection, self.model, missing)
            if looked_up:
                numbers, places_now, blobs = zip(*looked_up, strict=True)
                self.index.learn(numbers, places_now, vectors.build_matrix(blobs))
            found.update((row, blob) for row, _, blob in looked_up)
        return list(found), vectors.build_matrix(list(found.values())).reshape(len(found), self.index.dimensions)

    def size_bytes(self) -> int:
        """Return the bytes of the index."""
        return self.index.size_bytes() + self.own.size_bytes() + self.parts.index.size_bytes()

    def count_waiting(self) -> int:
        """Return how many memories have no vector yet, none within their context, or none of their parts."""
        with self._lock:  # a row on its way from the queue to the index is in neither
            return len(self.pending) + len(self.failing) + len(self.alone) + len(self.parts.waiting)

    def count_missing(self, allowed: Mask) -> int:
        """Return how many of the rows that a mask allows have no vector: few are looked up, instead of counting all."""
        with self._lock:
            waiting = [*self.pending, *self.failing] if len(self.pending) + len(self.failing) <= _FEW else None
        if waiting is None:
            return self.index.count_missing(allowed)
        return int(allowed.select(np.array(waiting, np.int64)).sum())

    def list_pending(self, count: int) -> list[int]:
        """Return the oldest rows that wait."""
        with self._lock:
            return list(islice(self.pending, count))

    def list_alone(self, count: int) -> list[int]:
        """Return the oldest rows that wait for a vector within their context."""
        with self._lock:
            return list(islice(self.alone, count))

    def give_up(self, rows: Iterable[int]) -> None:
        """Leave rows with the vectors of their own texts."""
        with self._lock:
            for row in rows:
                self.alone.pop(row, None)

    def set_aside(self, rows: Iterable[int]) -> None:
        """Note that the model could not embed these rows."""
        with self._lock:
            for row in rows:
                if row in self.pending:
                    del self.pending[row]
                    self.failing[row] = None

    def retry(self) -> None:
        """Put what was set aside back into the queue."""
        with self._lock:
            self.pending.update(self.failing)
            self.failing.clear()

    def _forget(self, row: int) -> None:
        if self._touched is not None:
            self._touched.add(row)
        self.pending.pop(row, None)
        self.failing.pop(row, None)
        self.alone.pop(row, None)

    def _has_size(self, blob: bytes | None) -> TypeGuard[bytes]:
        return blob is not None and len(blob) == 4 * self.index.dimensions

    def _take(self, chunk: list[StoredVector]) -> None:
        touched = self._touched or set()
        fresh = [item for item in chunk if item[0] not in touched]
        ready = [(item[:3], item[4], item[3] or 0) for item in fresh if self._has_size(item[4])]
        own = [(item[:3], item[5], 0) for item in fresh if self._has_size(item[5])]
        for index, chosen in ((self.index, ready), (self.own, own)):
            if chosen:
                keys, blobs, numbers = zip(*chosen, strict=True)
                index.extend(keys, vectors.build_matrix(blobs), numbers)
        have = {row for (row, _, _), _, _ in ready}
        self.alone.update(dict.fromkeys(item[0] for item in fresh if item[6]))
        self.pending.update(dict.fromkeys(item[0] for item in fresh if item[0] not in have))
