"""Positions: small dense numbers of the existing memories, by which all arrays in RAM are indexed.

A row number is never reused, so arrays by row number would grow with every memory that was ever written. A position is
reused for another row, once its row is deleted and no reader can still refer to it.

A reader first takes the present `Epoch`, and holds it as long as it uses positions. A position that was given up is
reused only after all epochs up to that time were released; until then its row can still be looked up.

The table from rows to positions has pages, which exist only where there are rows. Threads: one lock, held briefly.
"""

import threading
import weakref
from collections import deque
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]  # positions, -1: none
Array = TypeVar("Array", bound=NDArray[Any])
IntegerT = TypeVar("IntegerT", bound=np.integer[Any])

_BITS = 8  # a page has 256 rows
_INSIDE = (1 << _BITS) - 1
_FIRST_PAGES = 64
_TOP_BLOCK = 16  # scores per block; only the best blocks are examined, which is far cheaper than a full partition


class Epoch:
    """An empty object that users of positions hold; a weak reference tells when all have released it."""

    __slots__ = ("__weakref__",)


class Positions:
    """The positions of one kind of rows."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._page_of = np.zeros(_FIRST_PAGES, np.int32)  # by row >> _BITS; the last entry stays 0, the empty page
        self._pages = np.zeros((_FIRST_PAGES, 1 << _BITS), np.int32)  # positions + 1
        self._held = np.zeros(_FIRST_PAGES, np.int32)  # number of rows in each page
        self._unused = list(range(_FIRST_PAGES - 1, 0, -1))  # numbers of free pages
        self._row_of = np.zeros(1024, np.int64)  # by position; 0: none
        self._alive = np.zeros(1024, np.bool_)
        self.count = 0  # the most positions that were used at once, which is the length that arrays need
        self.epoch = Epoch()
        self._given_up: list[int] = []  # positions, in the present epoch
        self._waiting: deque[tuple[weakref.ref[Epoch], list[int]]] = deque()
        self._free: list[int] = []

    def size_bytes(self) -> int:
        """Return the size of the tables."""
        tables = (self._page_of, self._pages, self._held, self._row_of, self._alive)
        return sum(table.nbytes for table in tables)

    def find(self, rows: Iterable[int] | NDArray[Any]) -> Places:
        """Return the position of each row; -1: it has none."""
        numbers = _make_array(rows)
        with self._lock:
            places: Places = self._look_up(numbers)
        return places

    def find_one(self, row: int) -> int:
        """Return the position of a row; -1: it has none."""
        high = row >> _BITS
        with self._lock:
            return int(self._pages[self._page_of[high], row & _INSIDE]) - 1 if 0 <= high < len(self._page_of) else -1

    def read_rows(self, places: NDArray[np.signedinteger[Any]]) -> NDArray[np.int64]:
        """Return the rows of positions; the caller holds the epoch in which it found them."""
        numbers: NDArray[np.int64] = self._row_of[places]
        return numbers

    def ensure(self, rows: Iterable[int] | NDArray[Any]) -> tuple[Places, Epoch]:
        """Return the position of each row, and the epoch; rows that have none, or gave theirs up, get a new one."""
        numbers = _make_array(rows)
        with self._lock:
            places = self._look_up(numbers)
            # A restored row gets a new position, because readers may still refer to the one from before its deletion.
            former = places[(places >= 0) & ~self._alive[places]]
            if len(former):
                self._remove(find_distinct(former))
                places = self._look_up(numbers)
            new = find_distinct(numbers[places < 0])
            if len(new):
                self._put(new, self._allocate(len(new)))
                places = self._look_up(numbers)
            return places, self.epoch

    def give_up(self, rows: Iterable[int]) -> None:
        """Free the positions of deleted rows; they are reused once no reader holds an older epoch."""
        numbers = _make_array(rows)
        with self._lock:
            places = self._look_up(numbers)
            places = places[(places >= 0) & self._alive[places]]
            self._alive[places] = False
            self._given_up += places.tolist()

    def _look_up(self, rows: NDArray[np.int64]) -> Places:
        high = np.minimum(rows.view(np.uint64) >> np.uint64(_BITS), len(self._page_of) - 1).astype(np.int64)
        places: Places = self._pages[self._page_of[high], rows & _INSIDE].astype(np.int64) - 1
        return places

    def _put(self, rows: NDArray[np.int64], places: Places) -> None:
        high = rows >> _BITS
        self._page_of = grow(self._page_of, int(high.max()) + 2)
        for at in find_distinct(high[self._page_of[high] == 0]).tolist():
            self._page_of[at] = self._add_page()
        pages = self._page_of[high]
        self._pages[pages, rows & _INSIDE] = places + 1
        np.add.at(self._held, pages, 1)
        self._row_of[places] = rows
        self._alive[places] = True

    def _add_page(self) -> int:
        if not self._unused:
            have = len(self._pages)
            self._pages, self._held = grow(self._pages, have + 1), grow(self._held, have + 1)
            self._unused = list(range(min(len(self._pages), len(self._held)) - 1, have - 1, -1))
        return self._unused.pop()

    def _remove(self, places: Places) -> None:
        """Remove the entries of the table from rows to these positions."""
        rows = self._row_of[places]
        places, rows = places[rows != 0], rows[rows != 0]
        high = rows >> _BITS
        pages = self._page_of[high]
        self._pages[pages, rows & _INSIDE] = 0
        np.subtract.at(self._held, pages, 1)
        self._row_of[places] = 0
        for at in find_distinct(high[self._held[pages] == 0]).tolist():
            self._unused.append(int(self._page_of[at]))
            self._page_of[at] = 0

    def _allocate(self, count: int) -> Places:
        self._gather_free()
        reused = np.array(self._free[len(self._free) - min(count, len(self._free)) :], np.int64)
        del self._free[len(self._free) - len(reused) :]
        if len(reused):
            self._remove(reused)
        first, missing = self.count, count - len(reused)
        self._row_of, self._alive = grow(self._row_of, first + missing), grow(self._alive, first + missing)
        self.count += missing
        return np.concatenate([reused, np.arange(first, first + missing)])

    def _gather_free(self) -> None:
        """Collect the positions that were given up and that no epoch protects any more."""
        if self._given_up:
            self._waiting.append((weakref.ref(self.epoch), self._given_up))
            self._given_up, self.epoch = [], Epoch()
        while self._waiting and self._waiting[0][0]() is None:
            self._free += self._waiting.popleft()[1]


def find_distinct(numbers: NDArray[IntegerT]) -> NDArray[IntegerT]:
    """Return the distinct numbers, sorted. `np.unique` would load masked arrays, which takes 9 ms of a start."""
    in_order = np.sort(numbers)
    is_first = np.ones(len(in_order), bool)
    is_first[1:] = in_order[1:] != in_order[:-1]
    distinct: NDArray[IntegerT] = in_order[is_first]
    return distinct


def grow(array: Array, needed: int) -> Array:
    """Return an array with at least `needed` entries along its first axis; a copy is larger by half or more."""
    length = len(array)
    if needed <= length:
        return array
    larger = np.zeros((max(needed, length + length // 2), *array.shape[1:]), array.dtype)
    larger[:length] = array
    return larger  # type: ignore[return-value]


def _make_array(rows: Iterable[int] | NDArray[Any]) -> NDArray[np.int64]:
    return np.ascontiguousarray(rows if isinstance(rows, np.ndarray) else list(rows), np.int64)


def find_top(scores: NDArray[np.floating[Any]], k: int) -> NDArray[np.int64]:
    """Return the positions of the `k` largest scores, largest first."""
    candidates = _find_best_blocks(scores, k) if len(scores) > 4 * _TOP_BLOCK * k else np.arange(len(scores))
    if len(candidates) > k:
        candidates = candidates[np.argpartition(-scores[candidates], k - 1)[:k]]
    return candidates[np.argsort(-scores[candidates], kind="stable")]


def _find_best_blocks(scores: NDArray[np.floating[Any]], k: int) -> NDArray[np.int64]:
    """Return the positions in the `k` blocks with the largest maxima, which have the top `k`, and the unblocked rest.

    A block has scores at a fixed stride, so that NumPy finds the maxima of all blocks side by side.
    """
    count = len(scores) // _TOP_BLOCK
    maxima = scores[: count * _TOP_BLOCK].reshape(_TOP_BLOCK, count).max(axis=0)
    blocks = np.argpartition(-maxima, k - 1)[:k]
    inside = (blocks[:, None] + np.arange(_TOP_BLOCK) * count).ravel()
    return np.concatenate([np.sort(inside), np.arange(count * _TOP_BLOCK, len(scores))])
