"""One embedding model with the index of its vectors and the memories that still wait for one."""

import threading
from collections.abc import Iterable
from itertools import islice

import numpy as np

from memoryd.daemon.store.index import VectorIndex
from memoryd.daemon.store.vectors import Vector
from memoryd.models import Embedder

_CHUNK = 512  # rows taken into the index per lock while it is filled


class Generation:
    """`model` is its number in the database; `pending` are the rows without a vector of it."""

    def __init__(self, model: int, embedder: Embedder) -> None:
        self.model = model
        self.embedder = embedder
        self.index = VectorIndex(embedder.dimensions)
        self.pending: dict[int, None] = {}  # in the order they came
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

    def written(self, row: int, namespace: int, kind: str, vector: Vector | None) -> None:
        """Take in a row with its vector, or note that it waits for one."""
        with self._lock:
            self._touch(row)
            if vector is None:
                self.index.remove(row)
                self.pending[row] = None
            else:
                self.index.add(row, namespace, kind, vector)
                self.pending.pop(row, None)

    def removed(self, row: int) -> None:
        """Forget a row."""
        with self._lock:
            self._touch(row)
            self.index.remove(row)
            self.pending.pop(row, None)

    def next_pending(self, count: int) -> list[int]:
        """Return the oldest rows that wait."""
        with self._lock:
            return list(islice(self.pending, count))

    def postpone(self, rows: Iterable[int]) -> None:
        """Move rows to the end of the queue."""
        with self._lock:
            for row in rows:
                if row in self.pending:
                    del self.pending[row]
                    self.pending[row] = None

    def _touch(self, row: int) -> None:
        if self._touched is not None:
            self._touched.add(row)

    def _take(self, chunk: list[tuple[int, int, str, bytes | None]]) -> None:
        touched = self._touched or set()
        fresh = [item for item in chunk if item[0] not in touched]
        size = 4 * self.index.dimensions
        ready = [(row, place, kind, blob) for row, place, kind, blob in fresh if blob is not None and len(blob) == size]
        if ready:
            matrix = np.frombuffer(b"".join(item[3] for item in ready), np.float32)
            self.index.extend([item[:3] for item in ready], matrix.reshape(len(ready), -1))
        have = {item[0] for item in ready}
        self.pending.update(dict.fromkeys(item[0] for item in fresh if item[0] not in have))
