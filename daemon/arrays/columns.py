"""What filters ask of every memory, in RAM: columns by position (`positions`), kept in step with each commit.

A search needs to know which rows it may return before it ranks them: namespace, type, source, tier, age, and whether
the memory is alive. Asking SQLite row by row costs more than the ranking; here the answer is a `Mask`, one boolean per
position, about 0.1 ms for 100,000 rows. 32 bytes a memory.

What is superseded depends on other rows (`successors`): the few memories that have a successor are kept with the time
at which the last one expires. A commit that changes a successor changes this time for all memories that it supersedes.

`usefulness` has the few memories that somebody gave feedback on, with the factor of their score.

Threads: the writer changes it after each commit, before anybody gets a reply; readers take the arrays as they are. Of a
row `namespace`, without which it is none, and `until`, which makes it alive, are written last.
"""

import math
from collections.abc import Iterable
from itertools import islice
from typing import Any, NamedTuple

import apsw
import numpy as np
from numpy.typing import NDArray

from memoryd.client.transport.batches import split_evenly
from memoryd.daemon.arrays.positions import Epoch, Places, Positions, grow
from memoryd.daemon.store import successors
from memoryd.daemon.store.feedback import factor
from memoryd.daemon.store.filters import Filter
from memoryd.daemon.store.tiers import build_searched

_NOWHERE = 0  # the namespace of a position without a memory
_GONE = -math.inf
_NEVER = -math.inf
_PART = 10_000  # rows read at once
_FEW = 6  # numbers that are compared one by one

# 9e999 is infinity. What is pinned never expires; what searches do not return is in no mask.
_SELECT = (
    "SELECT m.row, m.namespace, m.type, m.source, m.tier, m.created_at,"
    " CASE WHEN NOT {searched} THEN -9e999"
    " WHEN m.pinned OR m.expires_at IS NULL THEN 9e999 ELSE m.expires_at END, m.superseded_by IS NULL{further}"
    " FROM memories m"
)
_RATED = "SELECT m.row, m.feedback FROM memories m WHERE m.feedback <> ''"


class _Columns(NamedTuple):
    namespace: NDArray[np.int32]
    type: NDArray[np.int32]
    source: NDArray[np.int32]
    tier: NDArray[np.int32]
    created: NDArray[np.float64]
    until: NDArray[np.float64]  # alive before this time


class _Superseded(NamedTuple):
    """Positions and the time before which each is superseded."""

    places: Places
    until: NDArray[np.float64]


class Mask(NamedTuple):
    """Which memories may be returned, by position; the last place belongs to no memory. It keeps its epoch alive."""

    allowed: NDArray[np.bool_]
    positions: Positions
    epoch: Epoch

    def select(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Return which of some rows it allows; those that it does not know are not."""
        return self.select_at(self.positions.find(rows))

    def select_at(self, places: NDArray[np.signedinteger[Any]]) -> NDArray[np.bool_]:
        """Return which of some positions it allows; -1, and those later than it, are not."""
        flags: NDArray[np.bool_] = self.allowed[np.minimum(places, len(self.allowed) - 1)]
        return flags

    def restrict(self, rows: NDArray[np.integer[Any]]) -> "Mask":
        """Return the part of it that is in `rows`."""
        places = self.positions.find(rows)
        inside = np.zeros_like(self.allowed)
        inside[places[(places >= 0) & (places < len(inside))]] = True
        return self._replace(allowed=self.allowed & inside)

    def exclude(self, row: int) -> "Mask":
        """Return it without a row."""
        inside, place = self.allowed.copy(), self.positions.find_one(row)
        if place < len(inside):
            inside[place] = False  # of no row: the last place, which is nobody's
        return self._replace(allowed=inside)

    def list_rows(self) -> list[int]:
        """Return the rows that it allows."""
        numbers: list[int] = self.positions.read_rows(np.flatnonzero(self.allowed)).tolist()
        return numbers


class TierCount(NamedTuple):
    """How many memories a namespace has in a tier, and when the oldest and the newest were made."""

    namespace: int
    tier: str
    memories: int
    oldest_at: float
    newest_at: float


class FilterColumns:
    """The columns of one database."""

    def __init__(self, connection: apsw.Connection, positions: Positions) -> None:
        self._positions = positions
        self._words: dict[str, int] = {}
        self._used = 0  # positions up to here have been taken
        none, no_time = np.zeros(0, np.int32), np.zeros(0)
        self._columns = _Columns(none, none, none, none, no_time, no_time)
        searched = build_searched()
        self._fresh = _SELECT.format(searched=searched, further=", m.feedback")
        self._until: dict[int, float] = {}  # superseded before this time, of the rows that are or were to be
        self._superseded = self._mark_superseded()
        self.usefulness: dict[int, float] = {}
        cursor = connection.execute(_SELECT.format(searched=searched, further=""))
        while part := list(islice(cursor, _PART)):
            self._put(part)
        self._follow(connection, None)
        self.usefulness.update((row, factor(feedback)) for row, feedback in connection.execute(_RATED))

    def refresh(self, connection: apsw.Connection, rows: Iterable[int]) -> None:
        """Read these rows again after a commit."""
        numbers = sorted(rows)
        for part in split_evenly(numbers, _PART):
            fresh = connection.execute(f"{self._fresh} WHERE m.row IN ({', '.join(map(str, part))})").fetchall()
            self._put(fresh)
            self._forget(set(part).difference(row for row, *_ in fresh))
        self._follow(connection, numbers)

    def build_mask(self, selection: Filter, now: float) -> Mask:
        """Return which memories namespaces, words, dates and state allow.

        What `chosen.further` asks is not answered here.
        """
        epoch = self._positions.epoch  # before everything else
        former = self._superseded  # before `used`, which is above its positions
        used = self._used
        columns = _Columns._make(column[:used] for column in self._columns)
        allowed = np.zeros(used + 1, np.bool_)
        mask = allowed[:used]
        np.greater(columns.until, now, out=mask)
        mask[former.places[former.until > now]] = False
        if selection.reached is not None:
            mask &= _match_any(selection.reached, columns.namespace)
        for name, values in selection.words.items():
            codes = [self._words[word] for word in values if word in self._words]
            mask &= _match_any(codes, getattr(columns, name))
        if selection.after is not None:
            mask &= columns.created > selection.after
        if selection.before is not None:
            mask &= columns.created < selection.before
        return Mask(allowed, self._positions, epoch)

    def find_superseded(self, reached: frozenset[int] | None, now: float) -> Mask | None:
        """Return which memories of some namespaces, None for all, are superseded and have not expired, if any are."""
        epoch = self._positions.epoch  # in the order of `build_mask`
        places, until = self._superseded
        used = self._used
        if reached is not None:
            is_reached = _match_any(reached, self._columns.namespace[places])
            places, until = places[is_reached], until[is_reached]
        if not len(places):
            return None
        allowed = np.zeros(used + 1, np.bool_)
        allowed[places] = (until > now) & (self._columns.until[places] > now)
        return Mask(allowed, self._positions, epoch) if allowed.any() else None

    def list_places(self) -> Places:
        """Return the positions of all memories."""
        return np.flatnonzero(self._columns.namespace[: self._used] != _NOWHERE)

    def count_standing(self, reached: frozenset[int] | None) -> list[TierCount]:
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
        groups = zip(pairs.tolist(), counts.tolist(), oldest.tolist(), newest.tolist(), strict=True)
        return [TierCount(pair // len(words), words[pair % len(words)], *rest) for pair, *rest in groups]

    def tally(self, column: str, reached: frozenset[int] | None) -> dict[str, int]:
        """Return how many memories of these namespaces have which type or source, the commonest first."""
        columns, rows = self._select_reached(reached)
        numbers = getattr(columns, column)[rows]
        words = list(self._words)
        counts = np.bincount(numbers, minlength=len(words)).tolist()
        tallies = [(word, count) for word, count in zip(words, counts, strict=False) if count]
        return dict(sorted(tallies, key=lambda item: -item[1]))

    def _select_reached(self, reached: frozenset[int] | None) -> tuple[_Columns, NDArray[np.bool_]]:
        """Return the columns, and which of their positions have memories in these namespaces."""
        used = self._used
        columns = _Columns._make(column[:used] for column in self._columns)
        columns = columns._replace(namespace=columns.namespace.copy())  # a row may go meanwhile
        if reached is None:
            return columns, columns.namespace != _NOWHERE
        return columns, _match_any(reached, columns.namespace)

    def size_bytes(self) -> int:
        """Return the bytes of the columns."""
        return sum(column.nbytes for column in self._columns)

    def _put(self, cells: Any) -> None:
        if not cells:
            return
        rows, namespaces, types, sources, tiers, created, until, last, *feedback = map(list, zip(*cells, strict=True))
        if feedback:
            self._rate(rows, feedback[0])
        places, _ = self._positions.ensure(rows)
        columns = self._make_room(int(places.max()) + 1)
        columns.type[places] = self._find_numbers(types)
        columns.source[places] = self._find_numbers(sources)
        columns.tier[places] = self._find_numbers(tiers)
        columns.created[places] = created
        columns.namespace[places] = namespaces
        columns.until[places] = until
        for row, is_last in zip(rows, last, strict=True) if self._until else ():
            if is_last:
                self._until.pop(row, None)

    def _follow(self, connection: apsw.Connection, numbers: list[int] | None) -> None:
        """Note until when those memories are superseded that the rows `numbers` (None: all) supersede, and so on."""
        differs = len(self._until) != len(self._superseded.places)
        while numbers is None or numbers:
            pairs = successors.find_nearest(connection, numbers)
            numbers = []
            for row, by in pairs:
                until = _NEVER if by is None else max(self._find_end(by), self._until.get(by, _NEVER))
                if until != self._until.get(row, _NEVER):
                    self._until[row] = until
                    numbers.append(row)
            differs |= bool(numbers)
        if differs:
            self._superseded = self._mark_superseded()

    def _find_end(self, row: int) -> float:
        place = self._positions.find_one(row)
        return float(self._columns.until[place]) if 0 <= place < self._used else _GONE

    def _rate(self, rows: list[int], feedback: list[str]) -> None:
        if self.usefulness or any(feedback):
            for row, text in zip(rows, feedback, strict=True):
                self.usefulness.pop(row, None)
                if text:
                    self.usefulness[row] = factor(text)

    def _forget(self, rows: set[int]) -> None:
        places = self._positions.find(rows)
        places = places[(places >= 0) & (places < self._used)]
        self._columns.until[places] = _GONE
        self._columns.namespace[places] = _NOWHERE
        for row in rows:
            self.usefulness.pop(row, None)
            self._until.pop(row, None)
        self._positions.give_up(rows)  # after the above: no mask of a later epoch allows them

    def _find_numbers(self, words: list[str]) -> list[int]:
        return [self._words.setdefault(word, len(self._words)) for word in words]

    def _make_room(self, used: int) -> _Columns:
        """Have a place for every position below `used`; those without a memory are dead and in no namespace."""
        columns = _Columns._make(grow(column, used) for column in self._columns)
        columns.until[self._used : used] = _GONE
        self._columns, self._used = columns, max(self._used, used)
        return columns

    def _mark_superseded(self) -> _Superseded:
        places = self._positions.find(self._until)
        until = np.fromiter(self._until.values(), np.float64, len(self._until))
        return _Superseded(places[places >= 0], until[places >= 0])


def _match_any(codes: Iterable[int], column: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Return for each place of a column whether one of the wanted numbers is there."""
    numbers = list(codes)
    if len(numbers) <= _FEW:
        flags = np.zeros(len(column), np.bool_)
        for number in numbers:
            flags |= column == number
        return flags
    present = column.copy()  # the writer continues
    table = np.zeros(int(present.max(initial=0)) + 1, np.bool_)
    table[[number for number in numbers if number < len(table)]] = True
    among: NDArray[np.bool_] = table[present]
    return among
