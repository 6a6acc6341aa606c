"""The vectors of queries: a cache of the latest, and threads that embed them or run other work meanwhile."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from memoryd.daemon.embedding.generation import Generation
from memoryd.daemon.store.vectors import Vector

CAPACITY = 1024
_THREADS = 4

R = TypeVar("R")


class QueryVectors:
    """An LRU cache of query vectors, and a pool of threads."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[int, str], Vector] = OrderedDict()
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_THREADS, "query-embed")

    def find(self, generation: Generation, text: str) -> Vector | None:
        """Return the vector of a query if it is known."""
        key = (generation.model, text)
        with self._lock:
            known = self._known.get(key)
            if known is not None:
                self._known.move_to_end(key)
            return known

    def embed(self, generation: Generation, text: str) -> Vector:
        """Return the vector of a query, embedded by this thread."""
        vector = generation.embedder.embed_query(text)
        with self._lock:
            self._known[generation.model, text] = vector
            while len(self._known) > CAPACITY:
                self._known.popitem(last=False)
        return vector

    def run_beside(self, action: Callable[[], R]) -> "Future[R]":
        """Run an action on a thread of the pool."""
        return self._pool.submit(action)

    def close(self) -> None:
        """End the threads; work that has not started is dropped."""
        self._pool.shutdown(wait=True, cancel_futures=True)
