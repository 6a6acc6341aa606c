"""Threads for embedding many texts, at low priority so that a query's embedding goes before them on a full machine."""

import os
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from memoryd.daemon.store.vectors import Vector
from memoryd.models import Embedder

_NICE = 15


class BulkPool:
    """As many low-priority threads as there are processors; each embeds one text at a time."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(len(os.sched_getaffinity(0)), "bulk-embed", initializer=_be_nice)

    def embed(self, embedder: Embedder, texts: Sequence[str]) -> Vector:
        """Return the vectors of the texts, shape (n, dimensions)."""
        if not texts:
            return np.zeros((0, embedder.dimensions), np.float32)
        return np.concatenate(list(self._pool.map(lambda text: embedder.embed_texts([text]), texts)))

    def close(self) -> None:
        """End the threads; texts not begun are left."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def _be_nice() -> None:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
