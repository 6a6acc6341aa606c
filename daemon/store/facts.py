"""What filters ask of every memory, in RAM: columns by row number, kept in step with each commit.

A search needs to know which rows it may return before it ranks them: namespace, type, source, tier, age, and whether
the memory is alive. Asking SQLite row by row costs more than the ranking; here the answer is one boolean per row
number, about 0.1 ms for 100,000 rows. 32 bytes a row number; a deleted row keeps its place, as its number is never
used again.

What is superseded depends on other rows (`successors`): the few memories that have a successor are kept with the time
at which the last one expires. A commit that changes a successor changes that of all that this one supersedes.

`usefulness` has the few memories that somebody gave feedback on, with the factor of their score.

Threads: the writer changes it after each commit, before anybody gets a reply; readers take the arrays as they are. Of a
row `namespace`, which makes it one, and `until`, which makes it alive, are written last.
"""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from memoryd.daemon.store import successors
from memoryd.daemon.store.feedback import factor
from memoryd.daemon.store.filters import Filter

Mask = NDArray[np.bool_]

_FIRST_CAPACITY = 1024
_NOWHERE = -1  # the namespace of a row that does not exist
_GONE = -math.inf
_NEVER = -math.inf
_IN_LIMIT = 10_000

# 9e999 is infinity. What is pinned never expires.
_SELECT = (
    "SELECT m.row, m.namespace, m.type, m.source, m.tier, m.created_at,"
    " CASE WHEN m.pinned OR m.expires_at IS NULL THEN 9e999 ELSE m.expires_at END, m.superseded_by IS NULL{}"
    " FROM memories m"
)
_ALL, _FRESH = _SELECT.format(""), _SELECT.format(", m.feedback")
_RATED = "SELECT m.row, m.feedback FROM memories m WHERE m.feedback <> ''"


class _Columns(NamedTuple):
    namespace: NDArray[np.int32]
    type: NDArray[np.int32]
    source: NDArray[np.int32]
    tier: NDArray[np.int32]
    created: NDArray[np.float64]
    until: NDArray[np.float64]  # alive before this time


class _Superseded(NamedTuple):
    """Rows and the time before which each is superseded."""

    rows: NDArray[np.int64]
    until: NDArray[np.float64]


class Standing(NamedTuple):
    """How many memories a namespace has in a tier, and when the oldest and the newest were made."""

    namespace: int
    tier: str
    memories: int
    oldest_at: float
    newest_at: float


class Facts:
    """The columns of one database."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._words: dict[str, int] = {}
        self._used = 0  # row numbers up to here are taken
        self._columns = _empty(_FIRST_CAPACITY)
        self._until: dict[int, float] = {}  # superseded before this time, of the rows that are or were to be
        self._superseded = _mark_superseded(self._until)
        self._put(connection.execute(_ALL).fetchall())
        self._follow(connection, None)
        rated: Any = connection.execute(_RATED)
        self.usefulness: dict[int, float] = {row: factor(feedback) for row, feedback in rated}

    def refresh(self, connection: apsw.Connection, rows: Iterable[int]) -> None:
        """Take in what a commit left of these rows."""
        numbers = sorted(rows)
        for start in range(0, len(numbers), _IN_LIMIT):
            part = numbers[start : start + _IN_LIMIT]
            found = connection.execute(f"{_FRESH} WHERE m.row IN ({', '.join(map(str, part))})").fetchall()
            gone = set(part).difference(row for row, *_ in found)
            self._forget([row for row in gone if row < len(self._columns.until)])
            self._put(found)
        self._follow(connection, numbers)

    def mask_of(self, chosen: Filter, now: float) -> Mask:
        """Return for each row number whether namespaces, words, dates and state allow it; the last one is no row's.

        What `chosen.further` asks is not answered here.
        """
        superseded = self._superseded  # before `used`, which is above its rows
        used = self._used + 2
        columns = _Columns._make(column[:used] for column in self._columns)
        mask = columns.until > now
        mask[superseded.rows[superseded.until > now]] = False
        if chosen.reached is not None:
            mask &= _is_among(chosen.reached, columns.namespace)
        for name, wanted in chosen.words.items():
            known = [self._words[word] for word in wanted if word in self._words]
            mask &= _is_among(known, getattr(columns, name))
        if chosen.after is not None:
            mask &= columns.created > chosen.after
        if chosen.before is not None:
            mask &= columns.created < chosen.before
        return mask

    def count_by_namespace(self, chosen: Filter, now: float) -> list[tuple[int, int]]:
        """Return (namespace, memories) for what a filter leaves that `mask_of` answers whole."""
        mask = self.mask_of(chosen, now)
        numbers, counts = np.unique(self._columns.namespace[: len(mask)][mask], return_counts=True)
        return [pair for pair in zip(numbers.tolist(), counts.tolist(), strict=True) if pair[0] != _NOWHERE]

    def count_standing(self, reached: frozenset[int] | None) -> list[Standing]:
        """Return how many memories each of these namespaces has in each tier, the dead ones included."""
        columns, rows = self._select_reached(reached)
        namespaces, tiers = columns.namespace[rows], columns.tier[rows]
        words = list(self._words)  # after the columns: a word is known before a row has it
        pairs, inverse, counts = np.unique(
            namespaces * np.int64(len(words)) + tiers, return_inverse=True, return_counts=True
        )
        oldest, newest = np.full(len(pairs), np.inf), np.full(len(pairs), -np.inf)
        np.minimum.at(oldest, inverse, columns.created[rows])
        np.maximum.at(newest, inverse, columns.created[rows])
        found = zip(pairs.tolist(), counts.tolist(), oldest.tolist(), newest.tolist(), strict=True)
        return [Standing(pair // len(words), words[pair % len(words)], *rest) for pair, *rest in found]

    def tally(self, column: str, reached: frozenset[int] | None) -> dict[str, int]:
        """Return how many memories of these namespaces have which type or source, the commonest first."""
        columns, rows = self._select_reached(reached)
        numbers = getattr(columns, column)[rows]
        words = list(self._words)
        counts = np.bincount(numbers, minlength=len(words)).tolist()
        found = [(word, count) for word, count in zip(words, counts, strict=False) if count]
        return dict(sorted(found, key=lambda item: -item[1]))

    def _select_reached(self, reached: frozenset[int] | None) -> tuple[_Columns, Mask]:
        """Return the columns, and which of their rows are memories in these namespaces."""
        used = self._used + 2
        columns = _Columns._make(column[:used] for column in self._columns)
        columns = columns._replace(namespace=columns.namespace.copy())  # a row may go meanwhile
        if reached is None:
            return columns, columns.namespace != _NOWHERE
        return columns, _is_among(reached, columns.namespace)

    def count(self) -> int:
        """Return the largest row number, which is about the number of memories."""
        return self._used

    def size_bytes(self) -> int:
        """Return the bytes of the columns."""
        return sum(column.nbytes for column in self._columns)

    def _put(self, found: Any) -> None:
        if not found:
            return
        rows, namespaces, types, sources, tiers, created, until, last, *feedback = map(list, zip(*found, strict=True))
        if feedback:
            self._rate(rows, feedback[0])
        self._make_room(max(rows))
        columns = self._columns
        columns.type[rows] = self._numbers(types)
        columns.source[rows] = self._numbers(sources)
        columns.tier[rows] = self._numbers(tiers)
        columns.created[rows] = created
        columns.namespace[rows] = namespaces
        columns.until[rows] = until
        self._used = max(self._used, max(rows))
        for row, is_last in zip(rows, last, strict=True) if self._until else ():
            if is_last:
                self._until.pop(row, None)

    def _follow(self, connection: apsw.Connection, changed: list[int] | None) -> None:
        """Note until when those memories are superseded that `changed` rows (None: all) supersede, and so on."""
        differs = len(self._until) != len(self._superseded.rows)
        while changed is None or changed:
            pairs = successors.find_nearest(connection, changed)
            changed = []
            for row, by in pairs:
                until = _NEVER if by is None else max(float(self._columns.until[by]), self._until.get(by, _NEVER))
                if until != self._until.get(row, _NEVER):
                    self._until[row] = until
                    changed.append(row)
            differs |= bool(changed)
        if differs:
            self._superseded = _mark_superseded(self._until)

    def _rate(self, rows: list[int], feedback: list[str]) -> None:
        if self.usefulness or any(feedback):
            for row, text in zip(rows, feedback, strict=True):
                self.usefulness.pop(row, None)
                if text:
                    self.usefulness[row] = factor(text)

    def _forget(self, rows: list[int]) -> None:
        self._columns.until[rows] = _GONE
        self._columns.namespace[rows] = _NOWHERE
        for row in rows:
            self.usefulness.pop(row, None)
            self._until.pop(row, None)

    def _numbers(self, words: list[str]) -> list[int]:
        return [self._words.setdefault(word, len(self._words)) for word in words]

    def _make_room(self, row: int) -> None:
        """Have a place for `row` and one more, which stays empty: masks are looked up there for unknown rows."""
        have = len(self._columns.until)
        if row + 1 < have:
            return
        larger = _empty(max(2 * have, row + 2))
        for name, old in self._columns._asdict().items():
            getattr(larger, name)[:have] = old
        self._columns = larger


def restrict(mask: Mask, rows: NDArray[np.int64]) -> Mask:
    """Return the part of a mask that is in `rows`."""
    inside = np.zeros_like(mask)
    inside[rows[rows < len(mask)]] = True
    return mask & inside


def select_passing(mask: Mask, rows: NDArray[np.integer[Any]]) -> Mask:
    """Return which of some rows a mask allows; rows that it does not know are not."""
    inside: Mask = mask[np.minimum(rows, len(mask) - 1)]
    return inside


def _empty(capacity: int) -> _Columns:
    def numbers() -> NDArray[np.int32]:
        return np.full(capacity, _NOWHERE, np.int32)

    return _Columns(numbers(), numbers(), numbers(), numbers(), np.zeros(capacity), np.full(capacity, _GONE))


def _mark_superseded(until: dict[int, float]) -> _Superseded:
    count = len(until)
    return _Superseded(np.fromiter(until, np.int64, count), np.fromiter(until.values(), np.float64, count))


def _is_among(wanted: Iterable[int], column: NDArray[np.int32]) -> Mask:
    """Return for each place of a column whether one of the wanted numbers is there."""
    numbers = column.copy()  # the writer continues
    largest = int(numbers.max(initial=0))
    table = np.zeros(largest + 2, np.bool_)  # the last place is that of -1
    table[[number for number in wanted if number <= largest]] = True
    return table[numbers]
