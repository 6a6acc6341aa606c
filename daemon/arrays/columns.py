"""The fields that filters compare, in RAM: columns by position (`positions`), updated with each commit.

Before a search ranks memories, it has to know which it may return by namespace, type, source, tier, age, and whether
they are alive. A query of SQLite for each row would cost more than the ranking; here the answer is a `Mask` with one
boolean per position, in about 0.1 ms for 100,000 rows. The columns take 32 bytes a memory.

Whether a memory is superseded depends on other rows (`successors`). The few memories with a successor are stored with
the time at which their last successor expires. A commit that changes a successor changes this time for all memories
that it supersedes.

`usefulness` has the few memories with feedback, and the factor of their scores.

Threads: the writer changes the columns after each commit, before it replies; readers use the arrays as they are. The
writer sets `namespace`, which makes a position belong to a memory, and `until`, which makes it alive, last.
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
_FEW = 6  # up to so many numbers are compared one by one

# 9e999 is infinity. Pinned memories never expire; memories that searches never return are in no mask.
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
    """Which memories may be returned, by position; the last entry belongs to no memory. A mask holds its epoch."""

    allowed: NDArray[np.bool_]
    positions: Positions
    epoch: Epoch

    def select(self, rows: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
        """Return which of some rows it allows; unknown rows are not allowed."""
        return self.select_at(self.positions.find(rows))

    def select_at(self, places: NDArray[np.signedinteger[Any]]) -> NDArray[np.bool_]:
        """Return which of some positions it allows; -1 and positions newer than the mask are not allowed."""
        flags: NDArray[np.bool_] = self.allowed[np.minimum(places, len(self.allowed) - 1)]
        return flags

    def restrict(self, rows: NDArray[np.integer[Any]]) -> "Mask":
        """Return the mask limited to `rows`."""
        places = self.positions.find(rows)
        inside = np.zeros_like(self.allowed)
        inside[places[(places >= 0) & (places < len(inside))]] = True
        return self._replace(allowed=self.allowed & inside)

    def exclude(self, row: int) -> "Mask":
        """Return the mask without a row."""
        allowed, place = self.allowed.copy(), self.positions.find_one(row)
        if place < len(allowed):
            allowed[place] = False  # for an unknown row -1: the last entry, which belongs to no memory
        return self._replace(allowed=allowed)

    def list_rows(self) -> list[int]:
        """Return the rows that it allows."""
        numbers: list[int] = self.positions.read_rows(np.flatnonzero(self.allowed)).tolist()
        return numbers


class TierCount(NamedTuple):
    """How many memories a namespace has in a tier, and when the oldest and the newest were created."""

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
        self._until: dict[int, float] = {}  # by row that has or had a successor: superseded before this time
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
        """Return the mask of memories that match namespaces, words and dates and are alive.

        `selection.further` is not considered here.
        """
        epoch = self._positions.epoch  # read first, so that all positions read later stay valid
        former = self._superseded  # read before `used`, so that all its positions are below that
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
        """Return the mask of the superseded, unexpired memories in some namespaces (None: all); None: there is none."""
        epoch = self._positions.epoch  # read in the order of `build_mask`
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
        """Return how many memories each of these namespaces has in each tier, including dead ones."""
        columns, rows = self._select_reached(reached)
        namespaces, tiers = columns.namespace[rows], columns.tier[rows]
        words = list(self._words)  # read after the columns, because a word is added before a row has it
        pairs, inverse, counts = np.unique(
            namespaces * np.int64(len(words)) + tiers, return_inverse=True, return_counts=True
        )
        oldest, newest = np.full(len(pairs), np.inf), np.full(len(pairs), -np.inf)
        np.minimum.at(oldest, inverse, columns.created[rows])
        np.maximum.at(newest, inverse, columns.created[rows])
        groups = zip(pairs.tolist(), counts.tolist(), oldest.tolist(), newest.tolist(), strict=True)
        return [TierCount(pair // len(words), words[pair % len(words)], *rest) for pair, *rest in groups]

    def tally(self, column: str, reached: frozenset[int] | None) -> dict[str, int]:
        """Return how many memories of these namespaces have each type or source, the commonest first."""
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
        columns = columns._replace(namespace=columns.namespace.copy())  # the writer may remove a row meanwhile
        if reached is None:
            return columns, columns.namespace != _NOWHERE
        return columns, _match_any(reached, columns.namespace)

    def size_bytes(self) -> int:
        """Return the size of the columns."""
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
        """Update the times of all memories that the rows `numbers` (None: all) supersede, directly or indirectly."""
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
        self._positions.give_up(rows)  # last, so that no mask of a later epoch allows them

    def _find_numbers(self, words: list[str]) -> list[int]:
        return [self._words.setdefault(word, len(self._words)) for word in words]

    def _make_room(self, used: int) -> _Columns:
        """Grow the columns to `used` positions; those without a memory are dead and in no namespace."""
        columns = _Columns._make(grow(column, used) for column in self._columns)
        columns.until[self._used : used] = _GONE
        self._columns, self._used = columns, max(self._used, used)
        return columns

    def _mark_superseded(self) -> _Superseded:
        places = self._positions.find(self._until)
        until = np.fromiter(self._until.values(), np.float64, len(self._until))
        return _Superseded(places[places >= 0], until[places >= 0])


def _match_any(codes: Iterable[int], column: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Return for each entry of a column whether it is one of some numbers."""
    numbers = list(codes)
    if len(numbers) <= _FEW:
        flags = np.zeros(len(column), np.bool_)
        for number in numbers:
            flags |= column == number
        return flags
    snapshot = column.copy()  # the writer may change the column meanwhile
    is_wanted = np.zeros(int(snapshot.max(initial=0)) + 1, np.bool_)
    is_wanted[[number for number in numbers if number < len(is_wanted)]] = True
    matches: NDArray[np.bool_] = is_wanted[snapshot]
    return matches
