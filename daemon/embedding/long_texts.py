"""Vectors of the parts of texts that are longer than the model's window.

A text is found by its best part. Threads: `touch` and `remove` are called by the writer's thread, the embedding thread
embeds the parts, searches read from any.
"""

import logging
import math
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from memoryd.daemon.arrays.columns import Mask
from memoryd.daemon.arrays.positions import Positions, find_distinct
from memoryd.daemon.arrays.vector_index import VectorIndex
from memoryd.daemon.embedding.api import is_trouble
from memoryd.daemon.embedding.bulk import BulkPool
from memoryd.daemon.store import text_parts, vectors
from memoryd.daemon.store.connection import Connection
from memoryd.daemon.store.store import Store
from memoryd.daemon.store.text_parts import Long, TextSpan
from memoryd.daemon.store.vectors import Vector
from memoryd.models import Embedder

_MOST = 64  # parts of a text; the rest is found by its words alone
_READ_CHARS = 200_000
_FRAME = 8  # tokens of the window that are reserved for prefix and special tokens
_TOLERATED = 1.1  # a text is split if it is longer than so many windows
_CHECKED, _CUT = 500, 32  # rows at once
_EMBEDDED = 64  # parts per step; after these no further row is split
_END = re.compile(r"\n+|(?<=[.!?…;])\s+|(?<=[。！？])")  # where a text is split if possible; otherwise between words
_WORD_END = re.compile(r"\s+")
_CODE = re.compile(r"\n[ \t]*(?:```|~~~)")

log = logging.getLogger(__name__)


class PartVectors:
    """The vectors of parts by the row of their memory, and the rows that have to be checked."""

    def __init__(self, dimensions: int) -> None:
        self._positions = Positions()
        self.index = VectorIndex(dimensions, self._positions)
        self._keys: dict[int, list[int]] = {}  # of the parts of each row; keys are never reused
        self._row_of = np.zeros(1, np.int64)  # by key
        self._used = 1  # keys
        self._touched: dict[int, int] = {}  # row: the number of its latest change
        self._changes = 0
        self.waiting: set[int] = set()  # rows known to be long, whose parts have no vectors yet
        self._lock = threading.RLock()  # reentrant, so that a row is replaced in one step

    def fill(self, stored: Iterable[Any], uncut: Iterable[int]) -> None:
        """Add the stored vectors of parts; mark the rows that are not split yet."""
        for row, found in groupby(stored, lambda one: int(one[0])):
            self._take(row, list(found))
        for row in uncut:
            self.touch(row)

    def touch(self, row: int) -> None:
        """Mark a row as new or changed."""
        with self._lock:
            self._changes += 1
            self._touched[row] = self._changes

    def remove(self, row: int) -> None:
        """Remove the parts of a row."""
        with self._lock:
            keys = self._keys.pop(row, [])
            self._touched.pop(row, None)
            self.waiting.discard(row)
            if keys:
                self.index.remove(keys)
                self._positions.give_up(keys)

    def list_touched(self, count: int) -> dict[int, int]:
        """Return the rows that were marked first, with the numbers of their changes."""
        with self._lock:
            return dict(list(self._touched.items())[:count])

    def settle(self, row: int, change: int, stored: Sequence[Any]) -> None:
        """Replace the parts of a row, unless it was marked again meanwhile."""
        with self._lock:
            if self._touched.get(row) == change:
                self.remove(row)
                self._take(row, stored)

    def _take(self, row: int, stored: Sequence[Any]) -> None:
        """Add the parts of a row, as (row, number on disk, blob); mark the row if a vector is missing."""
        known = [one for one in stored if one[2] is not None and len(one[2]) == 4 * self.index.dimensions]
        if len(known) < len(stored):
            self.touch(row)
        if not known:
            return
        with self._lock:
            keys = list(range(self._used, self._used + len(known)))
            self._used += len(keys)
            if self._used > len(self._row_of):
                self._row_of = np.concatenate([self._row_of, np.zeros(2 * self._used, np.int64)])
            self._row_of[keys] = row
            self._keys[row] = keys
        matrix = vectors.build_matrix([one[2] for one in known])
        self.index.extend([(key, 0, "") for key in keys], matrix, [one[1] for one in known])

    def find_nearest(self, query: Vector, count: int, allowed: Mask) -> list[int]:
        """Return the allowed rows whose parts are most similar to a query."""
        if not self._keys:
            return []
        epoch = self._positions.epoch
        places = np.arange(self._positions.count)
        inside = np.append(allowed.select(self._row_of[self._positions.read_rows(places)]), False)
        found = self.index.find_nearest(query, count, Mask(inside, self._positions, epoch))
        rows: list[int] = find_distinct(self._row_of[found.rows]).tolist()
        return rows

    def measure(self, connection: Connection, query: Vector, rows: Iterable[int]) -> dict[int, float]:
        """Return the exact cosine of the best part of each row that has parts."""
        with self._lock:
            keys = {row: self._keys[row] for row in rows if row in self._keys}
        if not keys:
            return {}
        asked = [key for of in keys.values() for key in of]
        ids = dict(zip(asked, self.index.find_vector_ids(asked), strict=True))
        blobs = vectors.read_blobs(connection, [id for id in ids.values() if id])
        cosines = {id: float(np.frombuffer(blob, np.float32) @ query) for id, blob in blobs.items()}
        best = {row: max((cosines.get(ids[key], -1.0) for key in of), default=-1.0) for row, of in keys.items()}
        return {row: cosine for row, cosine in best.items() if cosine > -1.0}


# The work ------------------------------------------------------------------------------------------------------------


def embed_parts(store: Store, bulk: BulkPool, found: PartVectors, model: int, embedder: Embedder) -> bool:
    """Check some changed rows, and split and embed the next long ones; return whether there were any."""
    touched = found.list_touched(_CHECKED)
    if not touched:
        return False
    with store.reading() as connection:
        long = text_parts.select_long(connection, list(touched))
        cut = text_parts.read(connection, long[:_CUT]) if long else []
    for row in touched.keys() - set(long):
        found.settle(row, touched[row], [])
    found.waiting.update(long)
    if not long:
        return True
    ready, texts = list[tuple[Long, list[TextSpan]]](), set[str]()
    for one in cut:
        pieces = split(one.content, embedder.count_tokens, embedder.max_tokens - _FRAME)
        ready.append((one, pieces))
        texts.update(_list_texts(one, pieces))
        if len(texts) >= _EMBEDDED:
            break
    made = _embed(store, bulk, (model, embedder), sorted(texts))
    if made is None:
        return False

    def write(transaction: Any) -> None:
        for key, vector in made.items():
            vectors.put(transaction.connection, model, key, vector)
        for one, pieces in ready:
            if one.pieces is None:
                text_parts.put(transaction.connection, one, pieces)

    store.write(write).result()
    rows = [one.row for one, _ in ready]
    with store.reading() as connection:
        stored = list(text_parts.iterate_vectors(connection, model, rows))
    for row in rows:
        found.settle(row, touched[row], [one for one in stored if one[0] == row and one[2] is not None])
    return True


def _embed(store: Store, bulk: BulkPool, by: tuple[int, Embedder], texts: Sequence[str]) -> dict[bytes, Vector] | None:
    """Embed the texts that have no vector; return the vectors by key, None if the model's server does not answer."""
    model, embedder = by
    keys = [vectors.text_hash(text) for text in texts]
    with store.reading() as connection:
        known = vectors.find(connection, model, keys)
    wanted = [(key, text) for key, text in zip(keys, texts, strict=True) if key not in known]
    made = bulk.embed(embedder, [text for _, text in wanted], patient=True)
    if made and all(map(is_trouble, made)):
        return None
    failed = [one for one in made if isinstance(one, Exception)]
    if failed:
        log.warning("%d parts of long texts could not be embedded, the first: %s", len(failed), failed[0])
    return {key: one for (key, _), one in zip(wanted, made, strict=True) if not isinstance(one, Exception)}


def _list_texts(long: Long, pieces: Sequence[TextSpan]) -> list[str]:
    further = pieces[1:] if long.pieces is None else long.pieces
    return [long.content[start : start + size] for start, size in further]


def split(text: str, count: Callable[[str], int], room: int) -> list[TextSpan]:
    """Split a text into parts of about equal size that fit the model's window, at ends of sentences if possible.

    Prose before code is added as a last part: in one part with the code it would have little weight.
    """
    text = text[:_READ_CHARS]
    pieces = _split_evenly(text, count, room)
    code = _CODE.search(text, 0, pieces[0][1])
    return [*pieces, (0, code.start())] if code else pieces


def _split_evenly(text: str, count: Callable[[str], int], room: int) -> list[TextSpan]:
    total = count(text)
    if total <= _TOLERATED * room:
        return [(0, len(text))]
    size = min(room, math.ceil(total / math.ceil(total / room)) + room // 16)
    made, start, tokens = list[TextSpan](), 0, 0
    ends = [match.end() for match in _END.finditer(text) if 0 < match.end() < len(text)]
    for begin, end in pairwise([0, *ends, len(text)]):
        for first, last in _cut_long(text, begin, end, count, size):
            length = count(text[first:last])
            if tokens and tokens + length > size:
                made.append((start, first - start))
                start, tokens = first, 0
            tokens += length
    made.append((start, len(text) - start))
    return made[:_MOST]


def _cut_long(text: str, start: int, end: int, count: Callable[[str], int], size: int) -> list[tuple[int, int]]:
    """Split a span into spans that are no longer than a part, between words if possible."""
    if end - start <= size or count(text[start:end]) <= size:  # a token has at least one character
        return [(start, end)]
    middle = (start + end) // 2
    space = _WORD_END.search(text, middle, end)
    at = space.end() if space and space.end() < end else middle
    return _cut_long(text, start, at, count, size) + _cut_long(text, at, end, count, size)
