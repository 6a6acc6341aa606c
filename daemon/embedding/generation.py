"""One embedding model with the index of its vectors and the memories that still wait for one.

Every memory is in the index, in `pending`, or, once the model could not embed its text, in `failing`.
"""

import threading
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TypeGuard

import numpy as np

from memoryd.daemon.store import vectors
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.index import VectorIndex
from memoryd.daemon.store.vectors import Vector
from memoryd.models import Embedder

_CHUNK = 512  # rows taken into the index per lock while it is filled


class Generation:
    """`model` is its number in the database, `name` the one it was loaded by."""

    def __init__(self, model: int, name: str, embedder: Embedder) -> None:
        self.model = model
        self.name = name
        self.embedder = embedder
        self.index = VectorIndex(embedder.dimensions)
        self.pending: dict[int, None] = {}  # in the order they came
        self.trouble = ""  # why nothing can be embedded now
        self.failing: dict[int, None] = {}  # set aside, so that they hold up neither others nor a change of model
        self._touched: set[int] | None = set()  # rows written or removed while the index is being filled
        self._lock = threading.Lock()

    def fill(self, stored: Iterable[tuple[int, int, str, bytes | None]]) -> None:
        """Take in what a snapshot of the database holds, unless a row was written or removed since."""
        rest = iter(stored)
        while chunk := list(islice(rest, _CHUNK)):
            with self._lock:
                self._take(chunk)
        with self._lock:
            self._touched = None

    def index_row(self, row: int, namespace: int, kind: str, vector: Vector | None) -> None:
        """Take in a row with its vector, or note that it waits for one."""
        with self._lock:
            self._forget(row)
            if vector is None:
                self.index.remove(row)
                self.pending[row] = None
            else:
                self.index.add(row, namespace, kind, vector)

    def remove_row(self, row: int) -> None:
        """Forget a row."""
        with self._lock:
            self._forget(row)
            self.index.remove(row)

    def refresh(self, rows: Iterable[int], stored: Iterable[tuple[int, int, str, bytes | None]]) -> None:
        """Take in what is on disk for some rows; those that are not are forgotten."""
        found = {item[0]: item for item in stored}
        for row in rows:
            if row in found:
                _, namespace, kind, blob = found[row]
                self.index_row(row, namespace, kind, np.frombuffer(blob, np.float32) if self._has_size(blob) else None)
            else:
                self.remove_row(row)

    def exact(self, connection: Connection, rows: Sequence[int]) -> tuple[list[int], Vector]:
        """Return those rows that have a vector, and their exact vectors from disk, shape (rows, dimensions)."""
        places = dict(zip(rows, self.index.places(rows), strict=True))
        known = vectors.read_places(connection, (place for place in places.values() if place))
        found = {row: known[place] for row, place in places.items() if place in known}
        if missing := [row for row in rows if row not in found]:
            looked_up = vectors.places_of(connection, self.model, missing)
            self._learn(looked_up)
            found.update((row, blob) for row, _, blob in looked_up)
        return list(found), vectors.matrix_of(list(found.values())).reshape(len(found), self.index.dimensions)

    def count_waiting(self) -> int:
        """Return how many memories have no vector yet."""
        return len(self.pending) + len(self.failing)

    def next_pending(self, count: int) -> list[int]:
        """Return the oldest rows that wait."""
        with self._lock:
            return list(islice(self.pending, count))

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

    def _learn(self, looked_up: list[tuple[int, int, bytes]]) -> None:
        if looked_up:
            rows, places, blobs = zip(*looked_up, strict=True)
            self.index.learn(rows, places, vectors.matrix_of(blobs))

    def _forget(self, row: int) -> None:
        if self._touched is not None:
            self._touched.add(row)
        self.pending.pop(row, None)
        self.failing.pop(row, None)

    def _has_size(self, blob: bytes | None) -> TypeGuard[bytes]:
        return blob is not None and len(blob) == 4 * self.index.dimensions

    def _take(self, chunk: list[tuple[int, int, str, bytes | None]]) -> None:
        touched = self._touched or set()
        fresh = [item for item in chunk if item[0] not in touched]
        ready = [(row, place, kind, blob) for row, place, kind, blob in fresh if self._has_size(blob)]
        if ready:
            matrix = np.frombuffer(b"".join(item[3] for item in ready), np.float32)
            self.index.extend([item[:3] for item in ready], matrix.reshape(len(ready), -1))
        have = {item[0] for item in ready}
        self.pending.update(dict.fromkeys(item[0] for item in fresh if item[0] not in have))
