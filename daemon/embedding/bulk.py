"""Embedding many texts, so that a query's embedding precedes them on a busy machine.

A local model embeds them side by side on threads of low priority; one that takes batches gets them one batch after the
other.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from memoryd.daemon.embedding.api import ABOUT_TEXT, Batching
from memoryd.daemon.store.vectors import Vector
from memoryd.daemon.system.process import lower_priority
from memoryd.daemon.system.remote import Refused
from memoryd.models import Embedder

_NICE = 15


class BulkPool:
    """As many low-priority threads as there are processors; each embeds one text at a time."""

    def __init__(self) -> None:
        threads = len(os.sched_getaffinity(0))
        self._pool = ThreadPoolExecutor(threads, "bulk-embed", initializer=lower_priority, initargs=(_NICE,))

    def embed(self, embedder: Embedder, texts: Sequence[str], patient: bool = False) -> list[Vector | Exception]:
        """Return for each text its vector, or why it has none: one bad text does not spoil the others.

        `patient`: nobody waits, so a server may take its time and is asked again.
        """
        if isinstance(embedder, Batching):
            parts = [texts[start : start + embedder.batch] for start in range(0, len(texts), embedder.batch)]
            return [outcome for part in parts for outcome in _embed_batch(embedder, part, patient)]
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


def _embed_batch(embedder: Embedder, texts: Sequence[str], patient: bool) -> list[Vector | Exception]:
    """Embed a batch; one that the server refuses is halved, until it is known which text is to blame."""
    assert isinstance(embedder, Batching)
    try:
        return list(embedder.embed_batch(texts) if patient else embedder.embed_texts(texts))
    except Refused as error:
        if len(texts) == 1 or error.status not in ABOUT_TEXT:
            return [error] * len(texts)
        half = len(texts) // 2
        return _embed_batch(embedder, texts[:half], patient) + _embed_batch(embedder, texts[half:], patient)
    except Exception as error:
        return [error] * len(texts)
