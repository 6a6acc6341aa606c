"""Full text: a person's words ranked by BM25, and the upkeep of FTS5's index, which holds where they stand.

Terms are OR-ed: with AND one absent word would empty the result. Stop words are dropped, first-person pronouns kept.
Cost grows with the commonest term; `MAX_POSTINGS` bounds it: terms enter from the rarest to the commonest until that
many postings would be scored.

BM25 (Robertson, Walker 1994) with the constants of FTS5's own bm25(), k1 = 1.2 and b = 0.75, gives the same scores. It
is computed here because FTS5 weighs a word by how many rows of the whole table hold it, which reveals to a caller who
does not reach all of them what words others' memories hold; and because from arrays it is many times faster.
"""

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import apsw
import numpy as np

from memoryd.daemon.store.facts import Mask
from memoryd.daemon.store.postings import Counts, Postings, Rows, restrict
from memoryd.daemon.store.tokenizer import stems_of, words_of
from memoryd.daemon.store.top import top

MAX_TERMS = 64
MAX_POSTINGS = 50_000
MIN_TERMS = 2  # these are asked whatever they cost
_K1, _B = 1.2, 0.75
_LEAST_RARITY = 1e-6  # of a word that more than half of all memories hold


class Word(NamedTuple):
    """A word of a question: which memories hold it, and how often."""

    text: str
    stem: str
    rarity: float  # inverse document frequency
    rows: Rows
    counts: Counts


class Question(NamedTuple):
    """The words asked, the rarest first, those left out as too common, and the average length of a memory in words.

    `weight` is the BM25 of one place for each word asked.
    """

    words: list[Word]
    left_out: list[str]
    average: float
    weight: float

    @property
    def asked(self) -> list[str]:
        """The words that some memory holds."""
        return [word.text for word in self.words if len(word.rows)]


def ask(
    connection: apsw.Connection,
    postings: Postings,
    text: str,
    max_postings: int = MAX_POSTINGS,
    reached: Mask | None = None,
) -> Question:
    """Return what a person's text asks, of all memories or of those of a mask by row number, as if it were all."""
    documents, average = postings.corpus(reached)
    counted = []
    for word in words_of(connection, text)[:MAX_TERMS]:
        for stem in stems_of(connection, word)[:1]:
            counted.append((_documents(connection, postings, stem, reached), word, stem))
    asked: list[Word] = []
    cost = found = 0
    for number, word, stem in sorted(counted):
        cost, found = cost + number, found + bool(number)
        if found > MIN_TERMS and cost > max_postings:
            break
        rows, counts = restrict(postings.find(connection, stem), reached)
        asked.append(Word(word, stem, _rarity(documents, len(rows)), rows, counts))
    chosen = {word.text for word in asked}
    return Question(asked, [word for _, word, _ in counted if word not in chosen], average, _weight(asked))


def _weight(words: Sequence[Word]) -> float:
    """Sum the rarities; where most memories hold every word that any holds, as in a small store, all count alike."""
    if max((word.rarity for word in words if len(word.rows)), default=1.0) <= _LEAST_RARITY:
        return _LEAST_RARITY * len(words)
    return sum(word.rarity for word in words)


def rank(postings: Postings, question: Question, allowed: Mask, limit: int) -> list[tuple[int, float]]:
    """Return (row, BM25) of the best `limit` memories that a mask by row number allows, best first."""
    total = np.zeros(len(allowed))
    for word in question.words:
        rows = np.minimum(word.rows, len(allowed) - 1)  # rows that the mask does not know fall into its last place
        lengths = postings.lengths(word.rows)
        total[rows] += word.rarity * _saturate(word.counts, lengths, question.average)
    total[~allowed] = 0.0
    best = top(total, limit)
    best = best[total[best] > 0.0]
    return list(zip(best.tolist(), total[best].tolist(), strict=True))


def score(question: Question, texts: Sequence[Counter[str]], lengths: Sequence[int]) -> list[float]:
    """Return the BM25 of texts that are in no index, given how often each has which stem and how many it has in all."""
    total, sizes = np.zeros(len(texts)), np.array(lengths, np.float64)
    for word in question.words:
        times = np.array([stems.get(word.stem, 0) for stems in texts], np.float64)
        total += word.rarity * _saturate(times, sizes, question.average)
    found: list[float] = total.tolist()
    return found


def _documents(connection: apsw.Connection, postings: Postings, stem: str, reached: Mask | None) -> int:
    if reached is None:
        return postings.documents(connection, stem)
    rows, _ = restrict(postings.find(connection, stem), reached)
    return len(rows)


def _rarity(documents: int, holding: int) -> float:
    return max(_LEAST_RARITY, math.log((max(documents, holding) - holding + 0.5) / (holding + 0.5)))


def _saturate(counts: Any, lengths: Any, average: float) -> Any:
    return counts * (_K1 + 1) / (counts + _K1 * (1 - _B + _B / average * lengths))


class stopping_at:
    """Interrupt statements of a connection once the monotonic clock passes a deadline."""

    def __init__(self, connection: apsw.Connection, deadline: float | None) -> None:
        self._connection, self._deadline = connection, deadline

    def __enter__(self) -> None:
        if (deadline := self._deadline) is not None:
            self._connection.set_progress_handler(lambda: time.monotonic() > deadline, 5000)

    def __exit__(self, *_: object) -> None:
        if self._deadline is not None:
            self._connection.set_progress_handler(None)


def rebuild(connection: apsw.Connection) -> None:
    """Build the index again from the rows."""
    connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')")


def problems(connection: apsw.Connection) -> list[str]:
    """Return what FTS5's own check against the rows finds."""
    try:
        connection.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)")
    except apsw.Error as error:
        return [f"full text: {error}"]
    return []
