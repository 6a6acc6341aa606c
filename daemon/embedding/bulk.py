"""Threads for embedding many texts, at low priority so that a query's embedding goes before them on a full machine."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from memoryd.daemon.process import be_nice
from memoryd.daemon.store.vectors import Vector
from memoryd.models import Embedder

_NICE = 15


class BulkPool:
    """As many low-priority threads as there are processors; each embeds one text at a time."""

    def __init__(self) -> None:
        threads = len(os.sched_getaffinity(0))
        self._pool = ThreadPoolExecutor(threads, "bulk-embed", initializer=be_nice, initargs=(_NICE,))

    def embed(self, embedder: Embedder, texts: Sequence[str]) -> list[Vector | Exception]:
        """Return for each text its vector, or why it has none: one bad text does not spoil the others."""
        return list(self._pool.map(lambda text: attempt(embedder, text), texts))

    def close(self) -> None:
        """End the threads; texts not begun are left."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def attempt(embedder: Embedder, text: str) -> Vector | Exception:
    """Return the vector of a text, or why it has none."""
    try:
        vector: Vector = embedder.embed_texts([text])[0]
    except Exception as error:
        return error
    return vector
