"""Full text: a person's words into an FTS5 query that never fails, and BM25 over it.

Terms are OR-ed: with AND one absent word would empty the result. Stop words are dropped, first-person pronouns kept.
FTS5 scores every row that holds any term, so cost grows with the commonest term; `MAX_POSTINGS` bounds it: terms enter
from the rarest to the commonest until that many rows would be scored.
"""

import time
from typing import Any, NamedTuple

import apsw

from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.stopwords import STOP_WORDS

MAX_TERMS = 64
MAX_POSTINGS = 20_000
_DEEPER = 10  # times as many of the best matches, when a filter leaves too few of them
MIN_TERMS = 2  # these are asked whatever they cost

# bm25() is negative, smaller is better. Weights: content, metadata, neighbours.
BM25 = "-bm25(memories_fts, 1.0, 0.5, 0.35)"
# CROSS JOIN: whatever the filter, the words are looked up once; the planner must not ask them row by row.
_BEST = f"SELECT rowid, {BM25} AS score FROM memories_fts WHERE memories_fts MATCH ? ORDER BY score DESC LIMIT ?"
# The unary plus keeps SQLite from asking FTS5 once for each row of the subquery.
_BEST_AMONG = (
    f"SELECT rowid, {BM25} AS score FROM memories_fts WHERE memories_fts MATCH ?"
    " AND +rowid IN (SELECT m.row FROM memories m WHERE {where}) ORDER BY score DESC LIMIT ?"
)
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


def _tokens(tokenizer: apsw.FTS5Tokenizer, text: str) -> list[str]:
    found: Any = tokenizer(
        text.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False, include_colocated=False
    )
    return list(found)


def build_match(connection: apsw.Connection, text: str, max_postings: int = MAX_POSTINGS) -> Match | None:
    """Return the query for a person's text, None when it has no word that any memory holds."""
    words = words_of(connection, text)[:MAX_TERMS]
    stemmer = connection.fts5_tokenizer("porter", ["unicode61"])
    counted: list[tuple[int, str]] = []
    for word in words:
        stems = _tokens(stemmer, word)
        documents = connection.execute(_DOCUMENTS, (stems[0],)).get if stems else None
        if isinstance(documents, int):
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
    chosen: Filter,
    now: float,
    limit: int,
    deadline: float | None = None,
    enough: int | None = None,
) -> list[tuple[int, float]]:
    """Return (row, BM25) of the best matches, best first; raise `apsw.InterruptError` at the deadline (monotonic).

    Looking up each scored row in `memories` costs more than scoring it, so the filter is first applied to the best few
    alone. When `enough` of these pass, the rows after them are returned unfiltered: they serve to look up the score of
    rows that are known otherwise. When too few pass, the best are asked again deeper, and at last all are filtered.
    """
    wanted = limit if enough is None else enough
    with _stopping_at(connection, deadline):
        for depth in (limit, _DEEPER * limit):
            best: list[tuple[int, float]] = list(connection.execute(_BEST, (match.expression, depth)))
            first = _passing(connection, best[: 2 * wanted], chosen, now)
            if enough is not None and len(first) >= enough:
                return first + best[2 * wanted :]
            passed = first + _passing(connection, best[2 * wanted :], chosen, now)
            if len(best) < depth or len(passed) >= wanted:
                return passed[:limit]
        where, values = chosen.where(now)
        sql = _BEST_AMONG.format(where=where)
        return list(connection.execute(sql, (match.expression, *values, limit)))


def _passing(
    connection: apsw.Connection, found: list[tuple[int, float]], chosen: Filter, now: float
) -> list[tuple[int, float]]:
    where, values = chosen.where(now)
    numbers = ", ".join(str(row) for row, _ in found)
    sql = f"SELECT m.row FROM memories m NOT INDEXED WHERE m.row IN ({numbers}) AND {where}"
    passing = {row for (row,) in connection.execute(sql, values)}
    return [match for match in found if match[0] in passing]


class _stopping_at:
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
