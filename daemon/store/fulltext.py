"""Full text: a person's words into an FTS5 query that never fails, and BM25 over it.

Terms are OR-ed: with AND one absent word would empty the result. Stop words are dropped, first-person pronouns kept.
FTS5 scores every row that holds any term, so cost grows with the commonest term; `MAX_POSTINGS` bounds it: terms enter
from the rarest to the commonest until that many rows would be scored.
"""

import time
from typing import Any, NamedTuple, Protocol

import apsw
import numpy as np

from memoryd.daemon.store.facts import Mask, passing
from memoryd.daemon.store.stopwords import STOP_WORDS

MAX_TERMS = 64
MAX_POSTINGS = 20_000
_SPARE = 1.5  # times as many matches as should suffice if a filter leaves its share of them
_MAX_KNOWN = 20_000  # stems whose frequency is kept
_COUNT_AFTER = 1_000  # written memories
MIN_TERMS = 2  # these are asked whatever they cost

# bm25() is negative, smaller is better. Weights: content, metadata, neighbours.
BM25 = "-bm25(memories_fts, 1.0, 0.5, 0.35)"
_BEST = f"SELECT rowid, {BM25} AS score FROM memories_fts WHERE memories_fts MATCH ? ORDER BY score DESC LIMIT ?"
_DOCUMENTS = "SELECT doc FROM memories_terms WHERE term = ?"


class Match(NamedTuple):
    """A full-text query: the expression, the words asked and those left out as too common."""

    expression: str
    asked: list[str]
    left_out: list[str]


def words_of(connection: apsw.Connection, text: str) -> list[str]:
    """Return the distinct words of a text in order, split as the index splits them, without stop words.

    If there are only stop words, they are all kept: the question may be about them.
    """
    distinct = list(dict.fromkeys(_tokens(connection.fts5_tokenizer("unicode61", []), text)))
    return [word for word in distinct if word not in STOP_WORDS] or distinct


def stems_of(connection: apsw.Connection, text: str, stop_words: bool = False) -> list[str]:
    """Return the stems of a text in order, as the index keeps them: each once and no stop words, or all."""
    if stop_words:
        return _tokens(connection.fts5_tokenizer("porter", ["unicode61"]), text)
    return _tokens(connection.fts5_tokenizer("porter", ["unicode61"]), " ".join(words_of(connection, text)))


def _tokens(tokenizer: apsw.FTS5Tokenizer, text: str) -> list[str]:
    found: Any = tokenizer(
        text.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False
    )
    return list(found)


class Counted(Protocol):
    """Whoever knows in how many memories a stem occurs, None for a stem that occurs nowhere."""

    def find(self, connection: apsw.Connection, stem: str) -> int | None: ...


class Frequencies:
    """In how many memories a stem occurs, kept in RAM: a guide to what a word costs, so it need not be of this minute.

    A stem that occurs nowhere is asked for each time: it may have been added a moment ago.
    """

    def __init__(self) -> None:
        self._known: dict[str, int] = {}
        self._changes = 0

    def find(self, connection: apsw.Connection, stem: str) -> int | None:
        """Return the number of memories that hold a stem, None if none does."""
        known = self._known.get(stem)
        if known is None:
            known = connection.execute(_DOCUMENTS, (stem,)).get
            if isinstance(known, int):
                if len(self._known) >= _MAX_KNOWN:
                    self._known.clear()
                self._known[stem] = known
        return known

    def changed(self, memories: int) -> None:
        """Note that memories were written; after many of them count anew."""
        self._changes += memories
        if self._changes > _COUNT_AFTER:
            self._changes = 0
            self._known.clear()


def build_match(
    connection: apsw.Connection, frequencies: Counted, text: str, max_postings: int = MAX_POSTINGS
) -> Match | None:
    """Return the query for a person's text, None when it has no word that any memory holds."""
    words = words_of(connection, text)[:MAX_TERMS]
    stemmer = connection.fts5_tokenizer("porter", ["unicode61"])
    counted: list[tuple[int, str]] = []
    for word in words:
        stems = _tokens(stemmer, word)
        documents = frequencies.find(connection, stems[0]) if stems else None
        if documents is not None:
            counted.append((documents, word))
    asked: list[str] = []
    postings = 0
    for documents, word in sorted(counted):
        postings += documents
        if len(asked) >= MIN_TERMS and postings > max_postings:
            break
        asked.append(word)
    if not asked:
        return None
    left_out = [word for _, word in counted if word not in asked]
    return Match(" OR ".join(f'"{word}"' for word in asked), asked, left_out)


def search(
    connection: apsw.Connection,
    match: Match,
    allowed: Mask,
    limit: int,
    deadline: float | None = None,
) -> list[tuple[int, float]]:
    """Return (row, BM25) of the best `limit` matches that a mask by row number allows, best first.

    Raise `apsw.InterruptError` at the deadline (monotonic). Fetching a match costs half of what scoring it does, so as
    many are fetched as the share of allowed rows makes likely to suffice, and all if they did not.
    """
    share = max(float(np.count_nonzero(allowed)), 1.0) / len(allowed)
    with stopping_at(connection, deadline):
        for depth in (int(limit / share * _SPARE) + 1, -1):
            best: list[Any] = connection.execute(_BEST, (match.expression, depth)).fetchall()
            keep = passing(allowed, np.array([row for row, _ in best], np.int64)).tolist()
            passed = [found for found, kept in zip(best, keep, strict=True) if kept]
            if len(passed) >= limit or len(best) != depth:
                break
    return passed[:limit]


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
    """Build the index anew from the rows."""
    connection.execute("INSERT INTO memories_fts (memories_fts) VALUES ('rebuild')")


def problems(connection: apsw.Connection) -> list[str]:
    """Return what FTS5's own check against the rows finds."""
    try:
        connection.execute("INSERT INTO memories_fts (memories_fts, rank) VALUES ('integrity-check', 1)")
    except apsw.Error as error:
        return [f"full text: {error}"]
    return []
