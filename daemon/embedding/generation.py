"""One embedding model with the index of its vectors and the memories that have no vector yet.

Every memory is in the index, in `pending`, or, after the model has failed to embed its text, in `failing`.
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

# Row, namespace, type, number on disk and blob of the vector that searches use, blob of the vector of the text alone if
# that is another one, and whether the vector within its context is missing.
StoredVector = tuple[int, int, str, int | None, bytes | None, bytes | None, int]
Stamp = tuple[int, int]

_CHUNK = 512  # rows added to the index per lock while it is filled
_FEW = 256  # up to so many rows are looked up one by one


class Generation:
    """A model and its vectors. `model` is its number in the database, `name` the one by which it was loaded."""

    def __init__(self, model: int, name: str, embedder: Embedder, positions: Positions | None = None) -> None:
        self.model = model
        self.name = name
        self.embedder = embedder
        self.index = VectorIndex(embedder.dimensions, positions)
        # Vectors of the texts alone, for rows that are searched within a context.
        self.own = VectorIndex(embedder.dimensions)
        self.parts = PartVectors(embedder.dimensions)  # parts of long texts
        self.pending: dict[int, None] = {}  # oldest first
        self.compared_at = -math.inf  # time of the last comparison of index and database, in UTC seconds
        self.alone: dict[int, None] = {}  # rows without the vector within their context, found by their text alone
        self.trouble = ""  # why the server cannot embed anything now
        self.failing: dict[int, None] = {}  # set aside, so that they block neither other rows nor a change of the model
        self._touched: set[int] | None = set()  # rows written or removed while the index is being filled
        self._lock = threading.Lock()

    def fill(self, stored: Iterable[StoredVector]) -> None:
        """Add the rows of a snapshot of the database, except those written or removed since."""
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
        """Load codes that an earlier daemon saved; this generation must not be in use yet."""
        self.index.restore(lambda name: kept.arrays[f"index.{name}"])
        self.own.restore(lambda name: kept.arrays[f"own.{name}"])
        self.pending = dict.fromkeys(kept.header.pending)
        self._touched = None

    def index_row(self, row: int, namespace: int, kind: str, vector: Vector | None, own: Vector | None = None) -> None:
        """Add a row with the vector for searches (None: it is pending), and that of its text alone if it is another."""
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
        """Add rows with their vectors in one step; those without a vector become pending."""
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
        """Remove rows."""
        with self._lock:
            for row in rows:
                self._forget(row)
            self.index.remove(rows)
            self.own.remove(rows)
        for row in rows:
            self.parts.remove(row)

    def refresh(self, rows: Iterable[int], stored: Iterable[StoredVector]) -> None:
        """Update rows from the database; rows that are not in `stored` are removed."""
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
        """Return the stamps of the latest changes; `find_alike` can be limited to rows added after them."""
        return self.index.stamp, self.own.stamp

    def find_alike(self, queries: Vector, wanted: AlikeQuery, after: Stamp = (0, 0)) -> list[list[int]]:
        """Return the similar rows for each query, compared by their text alone and within their context."""
        by_search, by_own = (
            index.find_alike(queries, wanted._replace(after=stamp))
            for index, stamp in zip((self.index, self.own), after, strict=True)
        )
        return [list(dict.fromkeys([*one, *other])) for one, other in zip(by_search, by_own, strict=True)]

    def read_exact(self, connection: Connection, rows: Sequence[int]) -> tuple[list[int], Vector]:
        """Return the rows that have a vector, and their exact vectors from disk, shape (rows, dimensions)."""
        if not rows:
            return [], np.zeros((0, self.index.dimensions), np.float32)
        ids = dict(zip(rows, self.index.find_vector_ids(rows), strict=True))
        known = vectors.read_blobs(connection, (id for id in ids.values() if id))
        found = {row: known[id] for row, id in ids.items() if id in known}
        if missing := [row for row in rows if row not in found]:
            looked_up = vectors.look_up(connection, self.model, missing)
            if looked_up:
                rows_now, ids_now, blobs = zip(*looked_up, strict=True)
                self.index.note_vector_ids(rows_now, ids_now, vectors.build_matrix(blobs))
            found.update((row, blob) for row, _, blob in looked_up)
        return list(found), vectors.build_matrix(list(found.values())).reshape(len(found), self.index.dimensions)

    def size_bytes(self) -> int:
        """Return the size of the indexes in bytes."""
        return self.index.size_bytes() + self.own.size_bytes() + self.parts.index.size_bytes()

    def count_waiting(self) -> int:
        """Return how many memories lack a vector of their text, within their context or of their parts."""
        with self._lock:  # a row that is being moved to the index is in neither
            return len(self.pending) + len(self.failing) + len(self.alone) + len(self.parts.waiting)

    def count_missing(self, allowed: Mask) -> int:
        """Return how many of the allowed rows have no vector; if few are pending, these are looked up."""
        with self._lock:
            waiting = [*self.pending, *self.failing] if len(self.pending) + len(self.failing) <= _FEW else None
        if waiting is None:
            return self.index.count_missing(allowed)
        return int(allowed.select(np.array(waiting, np.int64)).sum())

    def list_pending(self, count: int) -> list[int]:
        """Return the oldest pending rows."""
        with self._lock:
            return list(islice(self.pending, count))

    def list_alone(self, count: int) -> list[int]:
        """Return the oldest rows that lack a vector within their context."""
        with self._lock:
            return list(islice(self.alone, count))

    def give_up(self, rows: Iterable[int]) -> None:
        """Stop waiting for the context vectors of rows; they keep the vectors of their own texts."""
        with self._lock:
            for row in rows:
                self.alone.pop(row, None)

    def set_aside(self, rows: Iterable[int]) -> None:
        """Mark rows as failing: the model could not embed them."""
        with self._lock:
            for row in rows:
                if row in self.pending:
                    del self.pending[row]
                    self.failing[row] = None

    def retry(self) -> None:
        """Make failing rows pending again."""
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
