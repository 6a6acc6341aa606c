"""Embedding many texts, so that a query's embedding precedes them on a busy machine.

A local model embeds them side by side on threads of low priority; one that takes batches gets them one batch after the
other. A text that is asked for again meanwhile, or soon after, is embedded once: the extraction worker and the queue
of texts without a vector may ask for the same.
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
_KEPT = 256  # vectors of texts asked for lately

_Key = tuple[str, bytes]  # a model's fingerprint, the hash of a text


class _Interrupted(Exception):
    """A text was not begun."""


class BulkPool:
    """As many low-priority threads as there are processors; each embeds one text at a time."""

    def __init__(self) -> None:
        threads = linux.count_processors()
        self._pool = ThreadPoolExecutor(threads, "bulk-embed", initializer=lower_priority, initargs=(_NICE,))
        self._recent: OrderedDict[_Key, Future[Vector | Exception]] = OrderedDict()
        self._lock = threading.Lock()
        self._interruptions = 0

    def interrupt(self) -> None:
        """Stop: texts not begun are left, and callers that wait for them get `Unavailable`."""
        self._interruptions += 1

    def embed(self, embedder: Embedder, texts: Sequence[str], patient: bool = False) -> list[Vector | Exception]:
        """Return for each text its vector, or why it has none: one bad text does not spoil the others.

        `patient`: nobody waits, so a server may take its time and is asked again.
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
        finally:  # whoever waits for one of these texts waits for this thread
            self._settle(unknown, made)
        outcomes = [future.result() for future in wanted]
        if self._interruptions > began and any(isinstance(one, _Interrupted) for one in outcomes):
            raise Unavailable("The daemon is stopping.", {"retry_after_ms": 100})
        return outcomes

    def _settle(self, keys: Iterable[_Key], made: Sequence[Vector | Exception]) -> None:
        with self._lock:
            for key, outcome in zip(keys, made, strict=True):
                self._recent[key].set_result(outcome)
                if isinstance(outcome, Exception):  # to be tried again
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
        """End the threads, without waiting for the texts that they are at; those not begun are left."""
        self._pool.shutdown(wait=False, cancel_futures=True)


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
    except RequestRefused as error:
        if len(texts) == 1 or error.status not in ABOUT_TEXT:
            return [error] * len(texts)
        half = len(texts) // 2
        return _embed_batch(embedder, texts[:half], patient) + _embed_batch(embedder, texts[half:], patient)
    except Exception as error:
        return [error] * len(texts)
