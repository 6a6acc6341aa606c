"""Full text for a caller who does not reach everything: BM25 over what it reaches, as if there were nothing else.

FTS5's bm25() weighs a word by how many rows of the whole table hold it, so scores would tell a bound caller which words
others' memories hold. Here rarity is counted among the reached rows, from the index of every place where a word stands
(about 0.15 µs a place, 1 ms for a word in 7,000 memories). Formula and constants are those of FTS5 (k1 = 1.2, b = 0.75)
but for the average length, which is fixed.
"""

import math
from collections.abc import Iterable
from typing import Any

import apsw
import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.store import fulltext
from memoryd.daemon.store.facts import Mask, passing

_K1, _B, AVERAGE_WORDS = 1.2, 0.75, 30.0
_WEIGHTS = np.array([1.0, 0.5, 0.35])  # content, metadata, neighbours
_LENGTHS_OF = 2  # times as many rows as are wanted have their length looked up
_PLACES = (
    "SELECT group_concat(doc * 4 + (col = 'metadata') + 2 * (col = 'neighbours')) FROM memories_places WHERE term = ?"
)

Counts = tuple[NDArray[np.int64], NDArray[np.float64]]  # rows, and the weighted number of places in each


class Within:
    """Full text among the rows of a mask; made for one search."""

    def __init__(self, reached: Mask) -> None:
        self._reached = reached
        self.memories = int(np.count_nonzero(reached))
        self._counts: dict[str, Counts] = {}

    def find(self, connection: apsw.Connection, stem: str) -> int | None:
        """Return the number of reached memories that hold a stem, None if none does."""
        return len(self._counted(connection, stem)[0]) or None

    def search(
        self,
        connection: apsw.Connection,
        asked: Iterable[str],
        allowed: Mask,
        limit: int,
    ) -> list[tuple[int, float]]:
        """Return (row, BM25) of the best `limit` rows that hold one of the words and that a mask allows, best first."""
        stems = fulltext.stems_of(connection, " ".join(asked), stop_words=True)
        counted = {stem: self._counted(connection, stem) for stem in stems}
        rows = _distinct([rows for rows, _ in counted.values()])
        rows = rows[passing(allowed, rows)]
        if not len(rows):
            return []
        times = np.zeros((len(counted), len(rows)))
        rarity = np.array([[self._rarity(len(found))] for found, _ in counted.values()])
        for place, (found, counts) in enumerate(counted.values()):
            at = np.searchsorted(rows, found)
            there = (at < len(rows)) & (rows[np.minimum(at, len(rows) - 1)] == found)
            times[place, at[there]] = counts[there]
        best = np.argsort(-_scores(times, rarity, AVERAGE_WORDS), kind="stable")[: _LENGTHS_OF * limit]
        scores = _scores(times[:, best], rarity, _lengths(connection, rows[best]))
        order = np.argsort(-scores, kind="stable")[:limit]
        return list(zip(rows[best][order].tolist(), scores[order].tolist(), strict=True))

    def _rarity(self, documents: int) -> float:
        return max(1e-6, math.log((self.memories - documents + 0.5) / (documents + 0.5)))

    def _counted(self, connection: apsw.Connection, stem: str) -> Counts:
        if stem not in self._counts:
            self._counts[stem] = _counts(connection, stem, self._reached)
        return self._counts[stem]


def _counts(connection: apsw.Connection, stem: str, reached: Mask) -> Counts:
    text = connection.execute(_PLACES, (stem,)).get
    places = np.fromstring(text, np.int64, sep=",") if isinstance(text, str) else np.zeros(0, np.int64)
    places = places[passing(reached, places >> 2)]
    rows, at = np.unique(places >> 2, return_inverse=True)
    weighted: NDArray[np.float64] = np.bincount(at, _WEIGHTS[places & 3], len(rows)).astype(np.float64)
    return rows, weighted


def _distinct(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.unique(np.concatenate(parts)) if parts else np.zeros(0, np.int64)


def _scores(times: Any, rarity: Any, lengths: Any) -> NDArray[np.float64]:
    scores: NDArray[np.float64] = (
        rarity * times * (_K1 + 1) / (times + _K1 * (1 - _B + _B * lengths / AVERAGE_WORDS))
    ).sum(axis=0)
    return scores


def _lengths(connection: apsw.Connection, rows: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the number of words of rows, as FTS5 keeps it: a varint for each column."""
    numbers = ", ".join(map(str, rows.tolist()))
    found: Any = connection.execute(f"SELECT id, sz FROM memories_fts_docsize WHERE id IN ({numbers})")
    known = {row: _sum_of_varints(sizes) for row, sizes in found}
    return np.array([known.get(row, AVERAGE_WORDS) for row in rows.tolist()], np.float64)


def _sum_of_varints(data: bytes) -> int:
    total = value = 0
    for byte in data:
        value = value << 7 | byte & 127
        if byte < 128:
            total, value = total + value, 0
    return total
