"""Embed many texts in the background, with a lower priority than queries.

A local model embeds them in parallel on low-priority threads; a model that accepts batches gets one batch after
another. A text that is requested again meanwhile or soon after is embedded only once: the extraction worker and the
thread that embeds pending memories may request the same texts.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import chain

from memoryd.client import linux
from memoryd.client.errors import Unavailable
from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.embedding.api import ABOUT_TEXT, Batching
from memoryd.daemon.store.vectors import Vector, text_hash
from memoryd.daemon.system.model_api import RequestRefused
from memoryd.daemon.system.process import lower_priority
from memoryd.models import Embedder

_NICE = 15
_KEPT = 256  # vectors of recently embedded texts

_Key = tuple[str, bytes]  # a model's fingerprint, the hash of a text


class _Interrupted(Exception):
    """A text was not embedded because the pool was interrupted."""


class BulkPool:
    """A pool with one low-priority thread per processor; each embeds one text at a time."""

    def __init__(self) -> None:
        threads = linux.count_processors()
        self._pool = ThreadPoolExecutor(threads, "bulk-embed", initializer=lower_priority, initargs=(_NICE,))
        self._recent: OrderedDict[_Key, Future[Vector | Exception]] = OrderedDict()
        self._lock = threading.Lock()
        self._interruptions = 0

    def interrupt(self) -> None:
        """Skip the texts that are not started yet; callers that wait for them get `Unavailable`."""
        self._interruptions += 1

    def embed(self, embedder: Embedder, texts: Sequence[str], patient: bool = False) -> list[Vector | Exception]:
        """Return for each text its vector, or the error, so that one bad text does not affect the others.

        `patient`: no client waits, so requests have a long timeout and are retried.
        """
        began = self._interruptions
        keys: list[_Key] = [(embedder.fingerprint, text_hash(text)) for text in texts]
        unknown: dict[_Key, str] = {}
        with self._lock:
            for key, text in zip(keys, texts, strict=True):
                if key in self._recent:
                    self._recent.move_to_end(key)
                else:
                    self._recent[key] = Future()
                    unknown[key] = text
            wanted = [self._recent[key] for key in keys]
        made: Sequence[Vector | Exception] = [RuntimeError("embedding was interrupted")] * len(unknown)
        try:
            made = self._embed_all(embedder, list(unknown.values()), patient)
        finally:  # other callers may wait for the futures of these texts
            self._settle(unknown, made)
        outcomes = [future.result() for future in wanted]
        if self._interruptions > began and any(isinstance(one, _Interrupted) for one in outcomes):
            raise Unavailable("The daemon is stopping.", {"retry_after_ms": 100})
        return outcomes

    def _settle(self, keys: Iterable[_Key], made: Sequence[Vector | Exception]) -> None:
        with self._lock:
            for key, outcome in zip(keys, made, strict=True):
                self._recent[key].set_result(outcome)
                if isinstance(outcome, Exception):  # allow a retry
                    del self._recent[key]
            done = [key for key, future in self._recent.items() if future.done()]
            for key in done[: max(0, len(done) - _KEPT)]:
                del self._recent[key]

    def _embed_all(self, embedder: Embedder, texts: Sequence[str], patient: bool) -> list[Vector | Exception]:
        began = self._interruptions

        def embed_part(part: Sequence[str]) -> list[Vector | Exception]:
            if self._interruptions > began:
                return [_Interrupted()] * len(part)
            if isinstance(embedder, Batching):
                return _embed_batch(embedder, part, patient)
            return [attempt(embedder, text) for text in part]

        if isinstance(embedder, Batching):
            made = [embed_part(part) for part in split_evenly(texts, embedder.batch)]
        else:
            made = list(self._pool.map(embed_part, [[text] for text in texts]))
        return list(chain.from_iterable(made))

    def close(self) -> None:
        """End the threads without waiting for the texts in progress; those not started are skipped."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def attempt(embedder: Embedder, text: str) -> Vector | Exception:
    """Return the vector of a text, or the error."""
    try:
        vector: Vector = embedder.embed_texts([text])[0]
    except Exception as error:
        return error
    return vector


def _embed_batch(embedder: Embedder, texts: Sequence[str], patient: bool) -> list[Vector | Exception]:
    """Embed a batch; if the server rejects it, halve it to find the text that causes that."""
    assert isinstance(embedder, Batching)
    try:
        return list(embedder.embed_batch(texts) if patient else embedder.embed_texts(texts))
    except RequestRefused as error:
        if len(texts) == 1 or error.status not in ABOUT_TEXT:
            return [error] * len(texts)
        half = len(texts) // 2
        return _embed_batch(embedder, texts[:half], patient) + _embed_batch(embedder, texts[half:], patient)
    except Exception as error:
        return [error] * len(texts)
