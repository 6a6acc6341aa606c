"""The vectors of queries: embedded in threads of their own, the latest kept in RAM."""

import threading
from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor

from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.store.vectors import Vector

_THREADS = 4


class QueryVectors:
    """An LRU cache of `capacity` query vectors over a pool of threads."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._known: OrderedDict[tuple[int, str], Vector] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_THREADS, "query-embed")

    def find(self, generation: Generation, text: str) -> "Vector | Future[Vector]":
        """Return the vector of a query if it is known, else a future of it."""
        key = (generation.model, text)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
                return known
        return self._pool.submit(self._embed, generation, text)

    def _embed(self, generation: Generation, text: str) -> Vector:
        vector = generation.embedder.embed_query(text)
        with self._lock:
            self._known[generation.model, text] = vector
            while len(self._known) > self._capacity:
                self._known.popitem(last=False)
        return vector

    def close(self) -> None:
        """End the threads; queries not begun are left."""
        self._pool.shutdown(wait=True, cancel_futures=True)
